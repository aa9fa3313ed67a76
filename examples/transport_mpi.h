/* transport_mpi.h - compgrad exchanges over MPI 3 (OpenMPI, MPICH and their descendants).

   #include <mpi.h>
   #define COMPGRAD_IMPLEMENTATION
   #include "transport_mpi.h"                        // compile with mpicc -I (where compgrad.h is)

   cg_mpi mpi;
   int code = cg_mpi_open(&mpi, MPI_COMM_WORLD);     // collective; after MPI_Init
   s = cg_exchange(&desc, &mpi.transport, grad, n, mem, bytes, &report);
   if (s == CG_E_TRANSPORT) cg_mpi_error(report.code, text, sizeof text);
   cg_mpi_close(&mpi);                               // collective; before MPI_Finalize

   To compute while messages travel, drive the exchange yourself, see examples/overlap_mpi.c:

   s = cg_exchange_start(&state, &desc, &mpi.transport, grad, n, mem, bytes);
   if (s == CG_OK) s = cg_exchange_next(&state, 0, &io);
   while (s == CG_AGAIN) {
       code = cg_mpi_io_start(&mpi, &io, &pending);
       for (done = 0; !code && !done; ) { compute_a_little(); code = cg_mpi_io_test(&pending, &done); }
       s = cg_exchange_next(&state, code, &io);
   }

   The callbacks return MPI's error code: the communicator is a duplicate with MPI_ERRORS_RETURN. A wrong rank or a
   message of the wrong size is such an error (MPICH 4.0 hands the latter to MPI_COMM_WORLD's handler: set
   MPI_ERRORS_RETURN there too). If a rank dies, the callbacks return no error: mpirun ends the whole job, as MPI
   has no way to continue without it.

   TIMEOUT. MPI waits for ever for a rank that hangs. To bound it, set mpi.timeout_ms after cg_mpi_open, on all ranks
   (a rank with and one without do not meet: MPI's blocking and non-blocking collectives do not match):

   mpi.timeout_ms = 60000;                           // longer than the slowest computation between two exchanges
   ...
   if (s == CG_E_TRANSPORT && cg_mpi_is_timeout(report.code)) MPI_Abort(MPI_COMM_WORLD, 1);

   The callbacks, cg_mpi_io_test and cg_mpi_io_wait then poll non-blocking calls, and return such a code when so many
   milliseconds have passed without a piece of the data arriving. From then on every call of this cg_mpi returns it. MPI
   cannot take a collective back, so it may go on to use the buffers of that call: do not free them or use them again,
   do not wait for MPI_Finalize, but say what you have to say and call MPI_Abort. cg_mpi_open and cg_mpi_close are not
   bounded (the latter does nothing after a timeout).

   Collectives must begin in the same order on all ranks, so one cg_mpi carries one exchange at a time; for several
   exchanges at the same time open one cg_mpi for each. The struct must not move while it is open. It has no lock:
   give every thread a cg_mpi of its own, and initialise MPI with MPI_THREAD_MULTIPLE. MPI moves data only inside
   its calls, so call cg_mpi_io_test about every millisecond. */

#ifndef COMPGRAD_TRANSPORT_MPI_H
#define COMPGRAD_TRANSPORT_MPI_H

#include "compgrad_exchange.h"
#include <mpi.h>
#include <stdio.h>
#include <string.h>

typedef struct cg_mpi {
    /* hand this to cg_exchange. MPI does not promise the same bits from allreduce on every rank, so
       CG_ALLREDUCE_AGREES is off; set it if your MPI's documentation does promise it */
    cg_transport transport;
    MPI_Comm comm; /* ours alone, so no message meets one of yours */
    /* most bytes in one MPI call, as MPI counts in int: 1 GiB; the same on all ranks */
    size_t chunk;
    int timeout_ms; /* 0: wait for ever; the same on all ranks, see TIMEOUT */
    int code;       /* of the timeout that ended it, or 0 */
} cg_mpi;

/* A code of ours, as no code of MPI is negative: a timeout in a collective, or less by 1 + r, waiting for rank r. */
enum { CG_MPI_E_TIMEOUT = -1 };
static inline int cg_mpi_is_timeout(int code) { return code < 0; }

/* one cg_io under way; the buffers it names stay as they are until it is done */
typedef struct cg_mpi_pending {
    cg_mpi *mpi;
    cg_io io;
    int blocking; /* use the blocking collectives, which MPI libraries tune better */
    int code;     /* the first error */
    /* 0: what goes out, or the collective; 1: what comes in. Neither waits for the other */
    MPI_Request request[2];
    size_t total[2], begun[2]; /* in bytes; one piece of each is under way, the last one posted */
    size_t piece[2];
    double since; /* when the last piece was complete, if there is a timeout */
} cg_mpi_pending;

/* All of an allgather at once, or where that is too long the next piece of one rank's part, from that rank to all.
   (One call with an element as long as a part would do, but MPICH 4.0 leaves some of it out beyond 2 GiB, and
   reports success.) */
static inline int cg_mpi_allgather_(cg_mpi_pending *p, size_t at, int count) {
    char *in = (char *)p->io.in + at;
    const MPI_Comm comm = p->mpi->comm;
    if (p->io.in_bytes <= p->mpi->chunk)
        return p->blocking ? MPI_Allgather(p->io.out, count, MPI_BYTE, in, count, MPI_BYTE, comm)
                           : MPI_Iallgather(p->io.out, count, MPI_BYTE, in, count, MPI_BYTE, comm, &p->request[0]);
    return p->blocking ? MPI_Bcast(in, count, MPI_BYTE, (int)(at / p->io.out_bytes), comm)
                       : MPI_Ibcast(in, count, MPI_BYTE, (int)(at / p->io.out_bytes), comm, &p->request[0]);
}

/* The most bytes of the next piece: whole floats, and of an allgather nothing beyond one rank's part. */
static inline size_t cg_mpi_limit_(const cg_mpi_pending *p, size_t at) {
    size_t limit = p->mpi->chunk ? p->mpi->chunk : 1;
    if (p->io.kind == CG_IO_ALLREDUCE) limit = limit < 4 ? 4 : limit / 4 * 4;
    if (p->io.kind == CG_IO_ALLGATHER && p->io.out_bytes && p->io.out_bytes - at % p->io.out_bytes < limit)
        limit = p->io.out_bytes - at % p->io.out_bytes;
    return limit;
}

/* Posts pieces until one is under way or nothing is left; the first one even if it is empty. */
static inline int cg_mpi_post_(cg_mpi_pending *p, int way) {
    const MPI_Comm comm = p->mpi->comm;
    MPI_Request *r = &p->request[way];
    int code = MPI_SUCCESS;
    do {
        const size_t at = p->begun[way], left = p->total[way] - at, limit = cg_mpi_limit_(p, at),
                     bytes = left < limit ? left : limit;
        const int count = (int)bytes;
        char *in = (char *)p->io.in + at;
        switch (p->io.kind) {
        case CG_IO_ALLREDUCE:
            code = p->blocking ? MPI_Allreduce(MPI_IN_PLACE, in, count / 4, MPI_FLOAT, MPI_SUM, comm)
                               : MPI_Iallreduce(MPI_IN_PLACE, in, count / 4, MPI_FLOAT, MPI_SUM, comm, r);
            break;
        case CG_IO_ALLGATHER: code = cg_mpi_allgather_(p, at, count); break;
        case CG_IO_BROADCAST:
            code = p->blocking ? MPI_Bcast(in, count, MPI_BYTE, p->io.from, comm)
                               : MPI_Ibcast(in, count, MPI_BYTE, p->io.from, comm, r);
            break;
        default:
            code = way ? MPI_Irecv(in, count, MPI_BYTE, p->io.from, 0, comm, r)
                       : MPI_Isend((const char *)p->io.out + at, count, MPI_BYTE, p->io.to, 0, comm, r);
        }
        p->piece[way] = bytes;
        p->begun[way] = at + bytes;
    } while (code == MPI_SUCCESS && *r == MPI_REQUEST_NULL && p->begun[way] < p->total[way]);
    return code;
}

/* After an error: a receive must not write into memory that the caller takes back. */
static inline int cg_mpi_drop_(cg_mpi_pending *p, int code) {
    p->code = code;
    if (p->request[1] != MPI_REQUEST_NULL && MPI_Cancel(&p->request[1]) == MPI_SUCCESS)
        MPI_Wait(&p->request[1], MPI_STATUS_IGNORE);
    if (p->request[0] != MPI_REQUEST_NULL && p->io.kind == CG_IO_SENDRECV) MPI_Request_free(&p->request[0]);
    p->request[0] = p->request[1] = MPI_REQUEST_NULL;
    return code;
}

/* Nothing has come for too long. A receive can be taken back, unless it has begun; a send and a collective cannot. */
static inline int cg_mpi_give_up_(cg_mpi_pending *p) {
    const int peer = p->io.kind != CG_IO_SENDRECV ? -1 : p->request[1] != MPI_REQUEST_NULL ? p->io.from : p->io.to;
    int done;
    if (p->request[1] != MPI_REQUEST_NULL && MPI_Cancel(&p->request[1]) == MPI_SUCCESS)
        MPI_Test(&p->request[1], &done, MPI_STATUS_IGNORE);
    p->request[0] = p->request[1] = MPI_REQUEST_NULL;
    return p->code = p->mpi->code = CG_MPI_E_TIMEOUT - (peer + 1);
}

/* A piece is complete: was it as long as it should be, and what follows it? */
static inline int cg_mpi_follow_(cg_mpi_pending *p, int way, MPI_Status *status) {
    int count = 0, code = MPI_SUCCESS;
    if (way == 1) code = MPI_Get_count(status, MPI_BYTE, &count);
    if (way == 1 && code == MPI_SUCCESS && (size_t)count != p->piece[1]) code = MPI_ERR_COUNT;
    if (code == MPI_SUCCESS && p->begun[way] < p->total[way]) code = cg_mpi_post_(p, way);
    if (p->mpi->timeout_ms > 0) p->since = MPI_Wtime();
    return code;
}

static inline int cg_mpi_start_(cg_mpi *m, const cg_io *io, int blocking, cg_mpi_pending *p) {
    const int is_sendrecv = io->kind == CG_IO_SENDRECV,
              is_whole = io->kind == CG_IO_ALLGATHER && io->in_bytes <= m->chunk;
    int code = MPI_SUCCESS;
    memset(p, 0, sizeof *p);
    p->mpi = m;
    p->io = *io;
    p->blocking = blocking;
    p->request[0] = p->request[1] = MPI_REQUEST_NULL;
    p->total[0] = is_sendrecv || is_whole ? io->out_bytes : io->in_bytes;
    if (io->kind == CG_IO_ALLGATHER && !is_whole) { /* our own part is there already when its turn comes */
        char *mine = (char *)io->in + (size_t)m->transport.rank * io->out_bytes;
        if ((const void *)mine != io->out) memcpy(mine, io->out, io->out_bytes);
    }
    p->total[1] = io->in_bytes;
    if (m->code) return p->code = m->code;
    if (io->kind > CG_IO_SENDRECV) return p->code = MPI_ERR_ARG;
    if (m->timeout_ms > 0) p->since = MPI_Wtime();
    if (is_sendrecv && io->from >= 0) code = cg_mpi_post_(p, 1);
    if (code == MPI_SUCCESS && (is_sendrecv ? io->to >= 0 : io->kind != CG_IO_NONE && p->total[0] > 0))
        code = cg_mpi_post_(p, 0);
    return code == MPI_SUCCESS ? code : cg_mpi_drop_(p, code);
}

/* ---- one cg_io without blocking: start it, then test until it is done, or wait. All return the code of MPI; after an
        error the cg_io is done. ---- */

static inline int cg_mpi_io_start(cg_mpi *m, const cg_io *io, cg_mpi_pending *p) { return cg_mpi_start_(m, io, 0, p); }

static inline int cg_mpi_io_test(cg_mpi_pending *p, int *done) {
    int way, flag;
    for (way = 0; way < 2; way++) {
        MPI_Status status;
        int code;
        if (p->request[way] == MPI_REQUEST_NULL) continue;
        code = MPI_Test(&p->request[way], &flag, &status);
        if (code == MPI_SUCCESS && flag) code = cg_mpi_follow_(p, way, &status);
        if (code != MPI_SUCCESS) cg_mpi_drop_(p, code);
    }
    *done = p->request[0] == MPI_REQUEST_NULL && p->request[1] == MPI_REQUEST_NULL;
    if (!*done && p->mpi->timeout_ms > 0 && MPI_Wtime() - p->since > p->mpi->timeout_ms / 1000.0) {
        *done = 1;
        cg_mpi_give_up_(p);
    }
    return p->code;
}

static inline int cg_mpi_io_wait(cg_mpi_pending *p) {
    int done = p->mpi->timeout_ms <= 0;
    while (!done) cg_mpi_io_test(p, &done);
    while (p->request[0] != MPI_REQUEST_NULL || p->request[1] != MPI_REQUEST_NULL) {
        MPI_Status status;
        int way = 0, code = MPI_Waitany(2, p->request, &way, &status);
        if (code == MPI_SUCCESS) code = cg_mpi_follow_(p, way, &status);
        if (code != MPI_SUCCESS) cg_mpi_drop_(p, code);
    }
    return p->code;
}

/* ---- the callbacks ---- */

static inline int cg_mpi_run_(
    void *user, uint32_t kind, const void *out, size_t out_bytes, int to, void *in, size_t in_bytes, int from) {
    cg_mpi_pending p;
    cg_io io;
    memset(&io, 0, sizeof io);
    io.kind = kind;
    io.to = to;
    io.from = from;
    io.out = out;
    io.out_bytes = out_bytes;
    io.in = in;
    io.in_bytes = in_bytes;
    cg_mpi_start_((cg_mpi *)user, &io, ((cg_mpi *)user)->timeout_ms <= 0, &p);
    return cg_mpi_io_wait(&p);
}

static inline int cg_mpi_allreduce(void *user, float *inout, size_t n) {
    return cg_mpi_run_(user, CG_IO_ALLREDUCE, NULL, 0, -1, inout, 4 * n, -1);
}

static inline int cg_mpi_allgather(void *user, const void *mine, void *all, size_t bytes_each) {
    const cg_mpi *m = (const cg_mpi *)user;
    return cg_mpi_run_(user, CG_IO_ALLGATHER, mine, bytes_each, -1, all, bytes_each * (size_t)m->transport.size, -1);
}

static inline int cg_mpi_broadcast(void *user, void *buf, size_t bytes, int root) {
    return cg_mpi_run_(user, CG_IO_BROADCAST, NULL, 0, -1, buf, bytes, root);
}

static inline int cg_mpi_sendrecv(
    void *user, const void *out, size_t out_bytes, int to, void *in, size_t in_bytes, int from) {
    return cg_mpi_run_(user, CG_IO_SENDRECV, out, out_bytes, to, in, in_bytes, from);
}

/* ---- open, close, errors ---- */

static inline int cg_mpi_open(cg_mpi *m, MPI_Comm comm) {
    int code;
    memset(m, 0, sizeof *m);
    m->chunk = (size_t)1 << 30;
    m->comm = MPI_COMM_NULL;
    code = MPI_Comm_dup(comm, &m->comm);
    if (code == MPI_SUCCESS) code = MPI_Comm_set_errhandler(m->comm, MPI_ERRORS_RETURN);
    if (code == MPI_SUCCESS) code = MPI_Comm_rank(m->comm, &m->transport.rank);
    if (code == MPI_SUCCESS) code = MPI_Comm_size(m->comm, &m->transport.size);
    m->transport.user = m;
    m->transport.allreduce = cg_mpi_allreduce;
    m->transport.allgather = cg_mpi_allgather;
    m->transport.broadcast = cg_mpi_broadcast;
    m->transport.sendrecv = cg_mpi_sendrecv;
    return code;
}

static inline int cg_mpi_close(cg_mpi *m) {
    if (m->code) return m->code; /* what is under way in it would keep us waiting */
    return m->comm == MPI_COMM_NULL ? MPI_SUCCESS : MPI_Comm_free(&m->comm);
}

/* MPI's words for a code that a callback returned, or ours for a timeout. */
static inline const char *cg_mpi_error(int code, char *text, size_t cap) {
    char all[MPI_MAX_ERROR_STRING + 200] = "", who[60] = "in a collective, which some rank did not join";
    int len = 0;
    size_t n;
    if (!cap) return text;
    if (code < CG_MPI_E_TIMEOUT) snprintf(who, sizeof who, "waiting for rank %d", CG_MPI_E_TIMEOUT - 1 - code);
    if (cg_mpi_is_timeout(code))
        snprintf(all, sizeof all, "timeout, %s; MPI may still use the buffers: end the job with MPI_Abort", who);
    else MPI_Error_string(code, all, &len);
    n = strlen(all);
    if (n > cap - 1) n = cap - 1;
    memcpy(text, all, n);
    text[n] = '\0';
    return text;
}

#endif
