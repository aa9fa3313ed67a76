/* mpirun -np N mpi_calls: every callback of examples/transport_mpi.h and its non-blocking form against plain
   references, whole and in pieces. All ranks run all tests and agree on each result, so that none of them leaves
   the others waiting; rank 0 prints. mpi_calls late: what a timeout does, when rank 1 does not come; ends with
   MPI_Abort. mpi_calls forever FILE: exchanges until it is killed; rank R leaves its process id in FILE.R. */
#define _POSIX_C_SOURCE 200809L
#define COMPGRAD_IMPLEMENTATION
#include "../../examples/transport_mpi.h"
#include "greatest.h"
#include <time.h>
#include <unistd.h>

static cg_mpi mpi;
static int rank, size;
static unsigned char out[8 << 20], in[8 << 20];
enum { GUARD = 64 }; /* bytes behind a result that must stay as they were */

/* ---- what MPI is really asked for: these stand before the library's own ---- */

static int pieces, longest; /* since counted(): how many, and the most bytes in one of them */

static void counted(void) {
    pieces = 0;
    longest = 0;
}
static void call_of(int bytes) {
    pieces++;
    if (bytes > longest) longest = bytes;
}

int MPI_Allreduce(const void *a, void *b, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    call_of(4 * count);
    return PMPI_Allreduce(a, b, count, type, op, comm);
}
int MPI_Allgather(const void *a, int count, MPI_Datatype type, void *b, int count2, MPI_Datatype type2, MPI_Comm comm) {
    call_of(count * size);
    return PMPI_Allgather(a, count, type, b, count2, type2, comm);
}
int MPI_Bcast(void *a, int count, MPI_Datatype type, int root, MPI_Comm comm) {
    call_of(count);
    return PMPI_Bcast(a, count, type, root, comm);
}
int MPI_Isend(const void *a, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request) {
    call_of(count);
    return PMPI_Isend(a, count, type, to, tag, comm, request);
}

/* ---- references ---- */

static unsigned char byte_of(int r, size_t i) { return (unsigned char)((i * 2654435761u >> 7) + (size_t)r * 89 + 1); }
/* sums are exact */
static float value_of(int r, size_t i) { return (float)((int)(i % 1009) - 500 + r * (int)(i % 7)); }

static void fill(unsigned char *p, int r, size_t n) {
    size_t i;
    for (i = 0; i < n; i++) p[i] = byte_of(r, i);
}

static int differs(const unsigned char *p, int r, size_t n) {
    size_t i;
    for (i = 0; i < n; i++)
        if (p[i] != byte_of(r, i)) return 1;
    return 0;
}

static int guard_broken(const unsigned char *p) {
    int i;
    for (i = 0; i < GUARD; i++)
        if (p[i] != 0xA5) return 1;
    return 0;
}

static int told(const char *what, int way, size_t n, size_t chunk, int bad) {
    if (bad)
        fprintf(stderr, "rank %d of %d: %s, way %d, length %lu in pieces of %lu: wrong, %d\n", rank, size, what, way,
            (unsigned long)n, (unsigned long)chunk, bad);
    return bad;
}

static int together(int bad) /* the same on all ranks, so that all leave a test at the same place */
{
    int worst = 0;
    PMPI_Allreduce(&bad, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return worst;
}

/* A cg_io by the callbacks, or without blocking, by test or by wait; or by the callbacks with a timeout. */
typedef enum how { BLOCKING, TESTED, WAITED, BOUNDED, WAYS } how;

static int run(how way, uint32_t kind, const void *o, size_t ob, int to, void *i, size_t ib, int from) {
    const cg_transport *t = &mpi.transport;
    cg_mpi_pending p;
    cg_io io;
    int code, done = 0;
    if (way == BOUNDED) {
        mpi.timeout_ms = 60000;
        code = run(BLOCKING, kind, o, ob, to, i, ib, from);
        mpi.timeout_ms = 0;
        return code;
    }
    if (way == BLOCKING) switch (kind) {
        case CG_IO_ALLREDUCE: return t->allreduce(t->user, (float *)i, ib / 4);
        case CG_IO_ALLGATHER: return t->allgather(t->user, o, i, ob);
        case CG_IO_BROADCAST: return t->broadcast(t->user, i, ib, from);
        case CG_IO_SENDRECV: return t->sendrecv(t->user, o, ob, to, i, ib, from);
        default: break;
        }
    memset(&io, 0, sizeof io);
    io.kind = kind;
    io.out = o;
    io.out_bytes = ob;
    io.to = to;
    io.in = i;
    io.in_bytes = ib;
    io.from = from;
    code = cg_mpi_io_start(&mpi, &io, &p);
    if (way == WAITED) return cg_mpi_io_wait(&p);
    while (!code && !done) code = cg_mpi_io_test(&p, &done);
    return code;
}

/* ---- each call; the arguments are how, the length and the most bytes in a piece ---- */

static int allreduce_is_wrong(how way, size_t n, size_t chunk) {
    float *x = (float *)(void *)in;
    size_t i;
    int r, bad = 0;
    mpi.chunk = chunk;
    memset(in, 0xA5, 4 * n + GUARD);
    for (i = 0; i < n; i++) x[i] = value_of(rank, i);
    counted();
    bad += run(way, CG_IO_ALLREDUCE, NULL, 0, -1, x, 4 * n, -1) != 0;
    if (way == BLOCKING && (pieces != (int)((n + (chunk / 4) - 1) / (chunk / 4)) || (size_t)longest > chunk))
        bad += 100;
    for (i = 0; i < n; i++) {
        float sum = 0;
        for (r = 0; r < size; r++) sum += value_of(r, i);
        if (x[i] < sum || x[i] > sum) bad += 10;
    }
    return told("allreduce", (int)way, n, chunk, bad + guard_broken(in + 4 * n));
}

static int allgather_is_wrong(how way, size_t n, size_t chunk) {
    /* else rank by rank */
    const size_t all = n * (size_t)size, calls = !all ? 0 : all <= chunk ? 1 : (size_t)size * ((n + chunk - 1) / chunk);
    int r, bad = 0;
    mpi.chunk = chunk;
    memset(in, 0xA5, n * (size_t)size + GUARD);
    fill(out, rank, n);
    counted();
    bad += run(way, CG_IO_ALLGATHER, out, n, -1, in, n * (size_t)size, -1) != 0;
    if (way == BLOCKING && (pieces != (int)calls || (size_t)longest > chunk)) bad += 100;
    for (r = 0; r < size; r++) bad += 10 * differs(in + n * (size_t)r, r, n);
    return told("allgather", (int)way, n, chunk, bad + guard_broken(in + n * (size_t)size));
}

static int broadcast_is_wrong(how way, size_t n, size_t chunk, int root) {
    int bad = 0;
    mpi.chunk = chunk;
    memset(in, 0xA5, n + GUARD);
    if (rank == root) fill(in, root, n);
    counted();
    bad += run(way, CG_IO_BROADCAST, NULL, 0, -1, in, n, root) != 0;
    if (way == BLOCKING && (pieces != (int)((n + chunk - 1) / chunk) || (size_t)longest > chunk)) bad += 100;
    return told("broadcast", (int)way, n, chunk, bad + 10 * differs(in, root, n) + guard_broken(in + n));
}

/* Rank r sends n + 37 r bytes by `shift` ranks; in a line instead of a ring the ends have only one neighbour. */
static int shift_is_wrong(how way, size_t n, size_t chunk, int shift, int ring) {
    int to = rank + shift, from = rank - shift, bad = 0;
    const size_t mine = n ? n + 37 * (size_t)rank : 0;
    size_t theirs;
    if (ring) {
        to = (to + size) % size;
        from = (from + size) % size;
    }
    if (to < 0 || to >= size) to = -1;
    if (from < 0 || from >= size) from = -1;
    theirs = n && from >= 0 ? n + 37 * (size_t)from : 0;
    mpi.chunk = chunk;
    memset(in, 0xA5, theirs + GUARD);
    fill(out, rank, mine);
    counted();
    bad += run(way, CG_IO_SENDRECV, out, mine, to, in, theirs, from) != 0;
    if (pieces != (to < 0 ? 0 : mine ? (int)((mine + chunk - 1) / chunk) : 1) || (size_t)longest > chunk) bad += 100;
    return told("sendrecv", (int)way, n, chunk, bad + 10 * differs(in, from, theirs) + guard_broken(in + theirs));
}

static const size_t whole = (size_t)1 << 30;

TEST allreduce_sums(void) {
    const size_t n[] = { 0, 1, 2, 7, 249, 250, 251, 3003 };
    size_t i;
    int way, bad = 0;
    for (way = 0; way < WAYS; way++)
        for (i = 0; i < sizeof n / sizeof *n; i++)
            bad += allreduce_is_wrong((how)way, n[i], whole) + allreduce_is_wrong((how)way, n[i], 1000);
    bad += allreduce_is_wrong(BLOCKING, 251, 1002); /* pieces are whole floats */
    bad += allreduce_is_wrong(BLOCKING, 17, 4) + allreduce_is_wrong(BLOCKING, 100003, whole);
    ASSERT_EQ_FMT(0, together(bad), "%d");
    PASS();
}

TEST allgather_puts_rank_after_rank(void) {
    const size_t n[] = { 0, 1, 3, 124, 125, 126, 1000, 3001 };
    size_t i;
    int way, bad = 0;
    for (way = 0; way < WAYS; way++)
        for (i = 0; i < sizeof n / sizeof *n; i++)
            bad += allgather_is_wrong((how)way, n[i], whole) + allgather_is_wrong((how)way, n[i], 1000);
    bad += allgather_is_wrong(BLOCKING, 5, 1) + allgather_is_wrong(BLOCKING, 70001, whole); /* 1: a byte at a time */
    ASSERT_EQ_FMT(0, together(bad), "%d");
    PASS();
}

TEST broadcast_reaches_all(void) {
    const size_t n[] = { 0, 1, 999, 1000, 1001, 3001 };
    size_t i;
    int way, root, bad = 0;
    for (way = 0; way < WAYS; way++)
        for (i = 0; i < sizeof n / sizeof *n; i++)
            for (root = 0; root < size; root += size / 2 ? size / 2 : 1)
                bad += broadcast_is_wrong((how)way, n[i], whole, root) + broadcast_is_wrong((how)way, n[i], 1000, root);
    ASSERT_EQ_FMT(0, together(bad), "%d");
    PASS();
}

TEST sendrecv_shifts(void) {
    const size_t n[] = { 0, 1, 1000, 3001 };
    const int shifts[] = { 0, 1, size / 2, size - 1 }; /* 0: to itself */
    size_t i, k;
    int way, bad = 0;
    for (way = 0; way < WAYS; way++)
        for (i = 0; i < sizeof n / sizeof *n; i++)
            for (k = 0; k < 4; k++)
                bad += shift_is_wrong((how)way, n[i], whole, shifts[k], 1) +
                    shift_is_wrong((how)way, n[i], 1000, shifts[k], 1) +
                    shift_is_wrong((how)way, n[i], 1000, shifts[k], 0);
    bad += shift_is_wrong(BLOCKING, 4 << 20, whole, 1, 1);
    ASSERT_EQ_FMT(0, together(bad), "%d");
    PASS();
}

/* Rank 0 sends and receives at once, but the last rank answers only when all of the message has come round. */
TEST sendrecv_does_not_tie_its_two_directions(void) {
    const cg_transport *t = &mpi.transport;
    const size_t n = 3 << 20;
    int bad = 0;
    mpi.chunk = 1 << 20; /* too long to be sent ahead */
    fill(out, 0, n);
    memset(in, 0, n);
    if (size == 1) SKIPm("one rank");
    if (rank == 0) bad = t->sendrecv(t->user, out, n, 1, in, n, size - 1) != 0;
    else {
        bad = t->sendrecv(t->user, NULL, 0, -1, in, n, rank - 1) != 0;
        bad += t->sendrecv(t->user, in, n, (rank + 1) % size, NULL, 0, -1) != 0;
    }
    ASSERT_EQ_FMT(0, together(bad + 10 * differs(in, 0, n)), "%d");
    PASS();
}

TEST messages_keep_their_order(void) {
    const cg_transport *t = &mpi.transport;
    int i, bad = 0, to = (rank + 1) % size, from = (rank + size - 1) % size;
    mpi.chunk = whole;
    for (i = 0; i < 100; i++) {
        int mine = i * 1000 + rank, theirs = -1;
        bad += t->sendrecv(t->user, &mine, sizeof mine, to, &theirs, sizeof theirs, from) != 0;
        bad += theirs != i * 1000 + from;
    }
    ASSERT_EQ_FMT(0, together(bad), "%d");
    PASS();
}

TEST the_callers_communicator_is_left_alone(void) {
    const cg_transport *t = &mpi.transport;
    MPI_Errhandler handler;
    MPI_Request request;
    int theirs = -1, ours = -1, mine = 7000 + rank, to = (rank + 1) % size, from = (rank + size - 1) % size, bad = 0;
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &handler);
    bad += handler != MPI_ERRORS_ARE_FATAL;
    PMPI_Irecv(&theirs, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
    bad += t->sendrecv(t->user, &rank, sizeof rank, to, &ours, sizeof ours, from) != 0;
    PMPI_Send(&mine, 1, MPI_INT, to, 0, MPI_COMM_WORLD);
    PMPI_Wait(&request, MPI_STATUS_IGNORE);
    bad += ours != from || theirs != 7000 + from || (t->flags & CG_ALLREDUCE_AGREES);
    ASSERT_EQ_FMT(0, together(bad), "%d");
    PASS();
}

/* ---- failures: a code, no abort, and the transport goes on ---- */

static int broken(void) { return allgather_is_wrong(BLOCKING, 1001, 1000) + shift_is_wrong(TESTED, 1001, 1000, 1, 1); }

TEST a_rank_that_is_none_is_an_error(void) {
    char text[200] = "";
    int way, bad = 0;
    for (way = 0; way < WAYS; way++) {
        /* which must not take what comes later */
        int code = run((how)way, CG_IO_SENDRECV, out, 8, size, in, 8, (rank + size - 1) % size);
        bad += code == 0;
        bad += strlen(cg_mpi_error(code, text, sizeof text)) < 5;
        bad += run((how)way, CG_IO_SENDRECV, out, 8, -1, in, 8, size + 3) == 0;
        bad += run((how)way, CG_IO_BROADCAST, NULL, 0, -1, in, 8, size) == 0;
        bad += run((how)way, CG_IO_BROADCAST, NULL, 0, -1, in, 8, -5) == 0;
    }
    bad += run(TESTED, 77, out, 8, -1, in, 8, -1) == 0;
    bad += run(TESTED, CG_IO_NONE, NULL, 0, -1, NULL, 0, -1) != 0;
    cg_mpi_error(MPI_ERR_COUNT, text, 3);
    bad += strlen(text) != 2;
    ASSERT_EQ_FMT(0, together(bad + broken()), "%d");
    PASS();
}

TEST a_message_of_another_size_is_an_error(void) {
    int way, bad = 0, to = (rank + 1) % size, from = (rank + size - 1) % size;
    if (size == 1) SKIPm("OpenMPI cuts a message to itself silently");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* for MPICH, as transport_mpi.h says */
    mpi.chunk = whole;
    for (way = 0; way < WAYS; way++) {
        memset(in, 0xA5, 50 + GUARD);
        bad += run((how)way, CG_IO_SENDRECV, out, 100, to, in, 50, from) == 0; /* longer than the buffer */
        bad += guard_broken(in + 50);
        bad += together(0);
        /* shorter: MPI alone would accept it */
        bad += run((how)way, CG_IO_SENDRECV, out, 50, to, in, 100, from) == 0;
        bad += together(0);
        bad += run((how)way, CG_IO_SENDRECV, out, 0, to, in, 1, from) == 0;
        bad += together(0);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    ASSERT_EQ_FMT(0, together(bad + broken()), "%d");
    PASS();
}

TEST two_at_once_by_two_transports(void) {
    static int a[1000], b[1000], all_a[64000], all_b[64000];
    cg_mpi second;
    cg_mpi_pending pa, pb;
    cg_io io;
    int i, bad = 0, first = rank % 2;
    if (size > 64) SKIPm("many ranks");
    bad += cg_mpi_open(&second, MPI_COMM_WORLD) != 0;
    mpi.chunk = second.chunk = 1000;
    for (i = 0; i < 1000; i++) {
        a[i] = rank;
        b[i] = -rank;
    }
    memset(&io, 0, sizeof io);
    io.kind = CG_IO_ALLGATHER;
    io.out_bytes = sizeof a;
    io.in_bytes = sizeof a * (size_t)size;
    io.to = io.from = -1;
    for (i = 0; i < 2; i++) /* even and odd ranks begin with another one */
        if (i == first) {
            io.out = a;
            io.in = all_a;
            bad += cg_mpi_io_start(&mpi, &io, &pa) != 0;
        } else {
            io.out = b;
            io.in = all_b;
            bad += cg_mpi_io_start(&second, &io, &pb) != 0;
        }
    for (i = 0; i < 2;) {
        int done_a = 0, done_b = 0;
        bad += cg_mpi_io_test(&pa, &done_a) || cg_mpi_io_test(&pb, &done_b);
        i = done_a + done_b;
    }
    for (i = 0; i < 1000 * size; i++) bad += all_a[i] != i / 1000 || all_b[i] != -(i / 1000);
    bad += cg_mpi_close(&second) != 0 || cg_mpi_close(&second) != 0; /* the second time does nothing */
    ASSERT_EQ_FMT(0, together(bad), "%d");
    PASS();
}

/* ---- whole exchanges: the same bits on all ranks, whether the callbacks block or not ---- */

enum { VALUES = 5000 };

static cg_status exchange(how way, const cg_exchange_desc *desc, float *x, void *mem, size_t bytes) {
    cg_exchange_state state;
    cg_mpi_pending p;
    cg_status s;
    cg_io io;
    int code = 0;
    if (way == BLOCKING || way == BOUNDED) {
        mpi.timeout_ms = way == BOUNDED ? 60000 : 0;
        s = cg_exchange(desc, &mpi.transport, x, VALUES, mem, bytes, NULL);
        mpi.timeout_ms = 0;
        return s;
    }
    s = cg_exchange_start(&state, desc, &mpi.transport, x, VALUES, mem, bytes);
    if (s != CG_OK) return s;
    while ((s = cg_exchange_next(&state, code, &io)) == CG_AGAIN) {
        int done = 0;
        code = cg_mpi_io_start(&mpi, &io, &p);
        while (!code && !done && way == TESTED) code = cg_mpi_io_test(&p, &done);
        if (!code && way == WAITED) code = cg_mpi_io_wait(&p);
    }
    return s;
}

static uint32_t sum_by, dense_flags; /* desc.sum and desc.flags */
static int exchange_is_wrong(const char *op, cg_route route) {
    static float x[VALUES], first[VALUES], other[VALUES];
    cg_exchange_desc desc = CG_ZERO;
    size_t bytes, i;
    void *mem;
    int way, bad = cg_op_parse(&desc.op, op) != CG_OK;
    desc.route = (uint32_t)route;
    desc.sum = sum_by;
    desc.flags = dense_flags;
    bytes = cg_exchange_memory(&desc, &mpi.transport, VALUES);
    mem = malloc(bytes + 1);
    for (way = 0; mem && way < WAYS; way++) {
        for (i = 0; i < VALUES; i++) x[i] = value_of(rank, i);
        bad += exchange((how)way, &desc, x, mem, bytes) != CG_OK;
        if (way == BLOCKING) memcpy(first, x, sizeof x);
        bad += 10 * (memcmp(first, x, sizeof x) != 0);
    }
    memcpy(other, x, sizeof x);
    PMPI_Bcast(other, VALUES, MPI_FLOAT, 0, MPI_COMM_WORLD);
    bad += 1000 * (!mem || memcmp(other, x, sizeof x) != 0);
    for (i = 0; i < VALUES && !strcmp(op, "dense"); i++) {
        float sum = 0;
        int r;
        for (r = 0; r < size; r++) sum += value_of(r, i);
        sum /= (float)size;
        if (x[i] < sum - 1e-3f || x[i] > sum + 1e-3f) bad += 10000;
    }
    free(mem);
    return told(op, (int)route, VALUES, mpi.chunk, bad);
}

TEST exchanges_do_not_depend_on_blocking(void) {
    int bad = 0, pass;
    for (pass = 0; pass < 2; pass++) {
        mpi.chunk = pass ? 1000 : whole;
        bad += exchange_is_wrong("dense", CG_ROUTE_LINEAR) + exchange_is_wrong("dense", CG_ROUTE_RING);
        bad += exchange_is_wrong("topk:0.01|absmax:4:512", CG_ROUTE_ALLGATHER) +
            exchange_is_wrong("topk:0.01", CG_ROUTE_MERGE);
        bad += exchange_is_wrong("absmax:8:512", CG_ROUTE_SCATTER) + exchange_is_wrong("topk:0.05", CG_ROUTE_SHARED);
        bad += exchange_is_wrong("dense", CG_ROUTE_SERVER) + exchange_is_wrong("topk:0.01", CG_ROUTE_REGION);
    }
    mpi.chunk = whole;
    for (sum_by = CG_SUM_RING; sum_by <= CG_SUM_HALVING; sum_by++)
        bad += exchange_is_wrong("dense", CG_ROUTE_LINEAR) + exchange_is_wrong("topk:0.05", CG_ROUTE_SHARED);
    sum_by = CG_SUM_AUTO;
    dense_flags = CG_IN_PLACE;
    bad += exchange_is_wrong("dense", CG_ROUTE_LINEAR);
    dense_flags = 0;
    ASSERT_EQ_FMT(0, together(bad), "%d");
    PASS();
}

SUITE(calls) {
    RUN_TEST(allreduce_sums);
    RUN_TEST(allgather_puts_rank_after_rank);
    RUN_TEST(broadcast_reaches_all);
    RUN_TEST(sendrecv_shifts);
    RUN_TEST(sendrecv_does_not_tie_its_two_directions);
    RUN_TEST(messages_keep_their_order);
    RUN_TEST(the_callers_communicator_is_left_alone);
    RUN_TEST(two_at_once_by_two_transports);
    RUN_TEST(exchanges_do_not_depend_on_blocking);
}

SUITE(failures) {
    RUN_TEST(a_rank_that_is_none_is_an_error);
    RUN_TEST(a_message_of_another_size_is_an_error);
}

/* ---- mpi_calls late: rank 1 does not come to a call, and the others wait for 0.3 seconds ---- */

enum { LATE_ALLREDUCE, LATE_ALLGATHER, LATE_BROADCAST, LATE_RECEIVE, LATE_SEND, LATE_TEST, LATE_EXCHANGE, LATE_ALL };

static int wait_in_vain(cg_mpi *m, int what) /* the code */
{
    static float x[VALUES];
    const cg_transport *t = &m->transport;
    cg_exchange_desc desc = CG_ZERO;
    cg_report report = CG_ZERO;
    cg_mpi_pending p;
    size_t bytes;
    cg_io io;
    int done = 0, i;
    memset(&io, 0, sizeof io);
    io.kind = CG_IO_BROADCAST;
    io.in = in;
    io.in_bytes = 100;
    io.to = -1;
    io.from = 1;
    switch (what) {
    case LATE_ALLREDUCE: return t->allreduce(t->user, x, 100);
    case LATE_ALLGATHER: return t->allgather(t->user, out, in, 100);
    case LATE_BROADCAST: return t->broadcast(t->user, in, 100, 1);
    case LATE_RECEIVE: return t->sendrecv(t->user, NULL, 0, -1, in, 100, 1);
    case LATE_SEND: return t->sendrecv(t->user, out, sizeof out, 1, NULL, 0, -1); /* too long to be sent ahead */
    case LATE_TEST:
        cg_mpi_io_start(m, &io, &p);
        while (!done) cg_mpi_io_test(&p, &done);
        return p.code;
    default: break;
    }
    for (i = 0; i < VALUES; i++) x[i] = (float)i;
    desc.op = cg_topk(0.01f);
    bytes = cg_exchange_memory(&desc, t, VALUES);
    if (bytes > sizeof out || cg_exchange(&desc, t, x, VALUES, out, bytes, &report) != CG_E_TRANSPORT) return 0;
    for (i = 0; i < VALUES; i++)
        if (x[i] < (float)i || x[i] > (float)i) return 0;
    return report.code;
}

/* Six pieces with 0.2 seconds between them: each begins the 0.3 seconds anew. */
static int slow_pieces(cg_mpi *m) {
    const struct timespec pause = { 0, 200000000 };
    int k, bad = 0;
    m->chunk = 1000;
    fill(out, 1, 6000);
    for (k = 0; k < 6 && rank == 1; k++)
        nanosleep(&pause, NULL), bad += PMPI_Send(out + 1000 * k, 1000, MPI_BYTE, 0, 0, m->comm) != MPI_SUCCESS;
    if (rank == 0) bad = m->transport.sendrecv(m, NULL, 0, -1, in, 6000, 1) != 0 || differs(in, 1, 6000);
    return told("slow pieces", 0, 6000, 1000, bad);
}

static int late(void) {
    static cg_mpi m[LATE_ALL + 1]; /* one for each, as MPI may go on to use them */
    const struct timespec pause = { 0, 500000000 };
    char text[200];
    int what, code, bad = 0;
    for (what = 0; what < LATE_ALL; what++) {
        bad += cg_mpi_open(&m[what], MPI_COMM_WORLD) != 0;
        m[what].timeout_ms = 300;
        if (rank == 1) nanosleep(&pause, NULL);
        else {
            const int named = what == LATE_RECEIVE || what == LATE_SEND;
            double start = MPI_Wtime(), took;
            code = wait_in_vain(&m[what], what);
            took = MPI_Wtime() - start;
            bad += told("not in time", what, 0, 0, took < 0.29 || took > 3);
            cg_mpi_error(code, text, sizeof text);
            bad += told("another code", what, 0, 0, !cg_mpi_is_timeout(code) || !strstr(text, "MPI_Abort"));
            bad += told(text, what, 0, 0, !strstr(text, named ? "timeout, waiting for rank 1;" : "timeout, in a coll"));
            start = MPI_Wtime(); /* and at once from now on */
            bad += told("later calls", what, 0, 0, m[what].transport.broadcast(&m[what], in, 1, 0) != code);
            bad += told("close", what, 0, 0, cg_mpi_close(&m[what]) != code || MPI_Wtime() - start > 0.2);
        }
        bad = together(bad);
    }
    bad += cg_mpi_open(&m[LATE_ALL], MPI_COMM_WORLD) != 0;
    m[LATE_ALL].timeout_ms = 300;
    bad = together(bad + slow_pieces(&m[LATE_ALL]));
    if (rank == 0) printf("late: %d wrong\n", bad), fflush(stdout);
    together(0);
    return MPI_Abort(MPI_COMM_WORLD, 1); /* as the manual says */
}

static int forever(const char *file) {
    char name[4096];
    FILE *f;
    snprintf(name, sizeof name, "%s.%d", file, rank);
    f = fopen(name, "w");
    if (!f || fprintf(f, "%ld\n", (long)getpid()) < 0 || fclose(f)) return 1;
    for (;;)
        if (allgather_is_wrong(BLOCKING, 1000, 1000)) return 1;
}

GREATEST_MAIN_DEFS();

int main(int argc, char **argv) {
    int code = MPI_Init(&argc, &argv);
    if (code == MPI_SUCCESS) code = cg_mpi_open(&mpi, MPI_COMM_WORLD);
    if (code != MPI_SUCCESS) return 1;
    rank = mpi.transport.rank;
    size = mpi.transport.size;
    if (argc > 2 && !strcmp(argv[1], "forever")) return forever(argv[2]);
    if (argc > 1 && !strcmp(argv[1], "late")) return late();
    if (rank && !freopen("/dev/null", "w", stdout)) return 1;
    {
        GREATEST_MAIN_BEGIN();
        RUN_SUITE(calls);
        RUN_SUITE(failures);
        cg_mpi_close(&mpi);
        MPI_Finalize();
        GREATEST_MAIN_END();
    }
}
