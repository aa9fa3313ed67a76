/* cc -O2 -I. bench/exchange.c -o exchange.out -lm -pthread && ./exchange.out --csv exchange.csv        (or: make bench)

   The time of a whole exchange, compared with a dense one over the same transport in the same run, and with the
   transport's own allreduce alone: between threads, with bench/shaped.sh over TCP links of 1 Gbit/s, and between MPI
   ranks if it is compiled by mpicc with -DEXCHANGE_MPI. Also the time of adding sparse packets, against plain C. */

#define _POSIX_C_SOURCE 200809L
#undef COMPGRAD_LINKED /* private names: a copy of its own */
#define COMPGRAD_STATIC
#define COMPGRAD_IMPLEMENTATION
#include "compgrad_exchange.h"
#include "examples/transport_tcp.h"
#include "examples/transport_threads.h"
#ifdef EXCHANGE_MPI
#  include "examples/transport_mpi.h"
#endif
#include "machine.h"

#include <math.h>

enum { GOAL_N = 1 << 24, QUICK_N = 1 << 20, TCP_N = 1 << 22, PACKETS = 8, ROWS = 6 };
static const double adding_goal = 1.2; /* times the plain loops */

/* The first of a table is what the others are compared with; goal: how many times as fast as that. No op:
   allreduce, of x as it is. */
typedef struct row {
    const char *op;
    uint32_t route;
    const char *how;
    int carry;
    double goal;
} row;
static const row thread_rows[ROWS] = { { "dense", CG_ROUTE_LINEAR, "allreduce", 0, 0 },
    { "topk:0.01", CG_ROUTE_ALLGATHER, "allgather", 0, 5 }, { "absmax:4:512", CG_ROUTE_ALLGATHER, "allgather", 0, 0 },
    { "absmax:4:512", CG_ROUTE_SCATTER, "scatter", 0, 0 }, { "efsign", CG_ROUTE_SCATTER, "scatter, carry", 1, 0 },
    { NULL, 0, "callback alone", 0, 0 } };
static const row tcp_rows[ROWS] = { { "dense", CG_ROUTE_RING, "ring", 0, 0 },
    { "topk:0.01", CG_ROUTE_ALLGATHER, "allgather", 0, 10 }, { "efsign", CG_ROUTE_SCATTER, "scatter, carry", 1, 10 },
    { "absmax:4:512", CG_ROUTE_SCATTER, "scatter", 0, 4 }, { "absmax:4:512", CG_ROUTE_ALLGATHER, "allgather", 0, 0 },
    { "dense", CG_ROUTE_LINEAR, "linear", 0, 0 } };
/* seconds; of these in callbacks, waiting included; bytes */
typedef struct took {
    double all, calls;
    uint64_t sent;
} took;

static FILE *csv;
static int missed;

static void die(const char *what, const char *why) {
    fprintf(stderr, "exchange: %s: %s\n", what, why);
    exit(1);
}

static void *pages(size_t bytes) /* aligned, and touched so that no page fault is timed */
{
    void *p;
    if (posix_memalign(&p, 4096, bytes + 64)) die("memory", "not enough; try --n with a smaller number");
    memset(p, 0, bytes + 64);
    return p;
}

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double least(double a, double b) { return a < b ? a : b; }

static cg_op parse(const char *text) {
    cg_op op;
    if (cg_op_parse(&op, text) != CG_OK) die(text, "does not parse");
    return op;
}

/* ---- data: a Laplace vector, of which every rank has its own turn ---- */

static float *laplace(size_t n) {
    float *x = (float *)pages(n * sizeof *x);
    uint64_t state = 1;
    size_t i;
    for (i = 0; i < n; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        x[i] = (float)log(((double)(state >> 33) + 0.5) * 0x1p-31) * (state >> 32 & 1 ? 1.0f : -1.0f);
    }
    return x;
}

static void turned(float *x, const float *base, size_t n, int rank) {
    const size_t by = ((size_t)rank * (n / 16 + 12345)) % n;
    memcpy(x, base + by, (n - by) * sizeof *x);
    memcpy(x + (n - by), base, by * sizeof *x);
}

/* ---- one rank of an exchange ---- */

static int barrier(const cg_transport *t) /* everybody hears of everybody, in log2 N hops */
{
    char out = 0, in;
    int d, code = 0;
    for (d = 1; d < t->size && !code; d *= 2)
        code = t->sendrecv(t->user, &out, 1, (t->rank + d) % t->size, &in, 1, (t->rank + t->size - d) % t->size);
    return code;
}

static cg_status exchange(
    const cg_exchange_desc *d, const cg_transport *t, float *x, size_t n, void *mem, size_t bytes, took *sum) {
    cg_exchange_state state;
    cg_report report;
    cg_io io;
    int code = 0;
    cg_status s = cg_exchange_start(&state, d, t, x, n, mem, bytes);
    if (s != CG_OK) return s;
    while ((s = cg_exchange_next(&state, code, &io)) == CG_AGAIN) {
        const double since = seconds();
        code = cg_io_run(t, &io);
        sum->calls += seconds() - since;
    }
    cg_exchange_report(&state, &report);
    sum->sent = report.bytes_out;
    if (s != CG_OK) fprintf(stderr, "exchange: rank %d: %s\n", t->rank, report.why);
    return s;
}

static cg_exchange_desc described(const row *r, float *carry, float *model) {
    cg_exchange_desc d = CG_ZERO;
    d.model = model;
    d.rate = 0.01f;
    if (r->op) d.op = parse(r->op);
    d.route = r->route;
    d.tag.seed = 42;
    if (r->carry) d.carry = carry;
    return d;
}

/* All rows in turn, several times; the best of each. Everybody measures, from when all are ready until all are done. */
static void work(
    const cg_transport *t, const row *rows, const float *base, size_t n, int reps, int stepping, took *best) {
    float *x = (float *)pages(n * sizeof *x), *carry = (float *)pages(n * sizeof *x),
          *model = stepping ? (float *)pages(n * sizeof *x) : NULL;
    size_t most = 0, k;
    void *mem;
    int i, rep;
    for (i = 0; i < ROWS; i++) {
        const cg_exchange_desc d = described(&rows[i], carry, model);
        const size_t bytes = rows[i].op ? cg_exchange_memory(&d, t, n) : 1;
        if (!bytes) die(rows[i].op, "this route does not take it");
        if (bytes > most) most = bytes;
        best[i].all = 1e9;
    }
    mem = pages(most);
    for (rep = 0; rep < reps; rep++)
        for (i = 0; i < ROWS; i++) {
            cg_exchange_desc d = described(&rows[i], carry, model);
            took now = { 0, 0, 0 };
            int code = 0;
            d.tag.step = (uint64_t)rep;
            turned(x, base, n, t->rank);
            code |= barrier(t);
            now.all = -seconds();
            if (!rows[i].op) {
                code |= t->allreduce(t->user, x, n);
                for (k = 0; model && k < n; k++) model[k] -= 0.01f / (float)t->size * x[k];
            } else if (exchange(&d, t, x, n, mem, most, &now) != CG_OK) die(rows[i].op, rows[i].how);
            code |= barrier(t);
            now.all += seconds();
            if (code) die("transport", "a callback failed");
            if (now.all < best[i].all) best[i] = now;
        }
    free(mem);
    free(model);
    free(carry);
    free(x);
}

/* ---- tables ---- */

static void put_goal(double v, double goal, int miss) {
    missed += miss && goal > 0;
    printf(" %7.2f%s", v, miss && goal > 0 ? "!" : " ");
    if (goal > 0) printf("%5.1f", goal);
    else printf("%5s", "");
}

static void table(const char *over, const char *to, const row *rows, const took *best, int ranks, size_t n, int judge) {
    int i;
    printf("\n%d ranks over %s, n = %lu, from gradients to %s: ms for all of them to finish, and how many times as "
           "fast as dense\n",
        ranks, over, (unsigned long)n, to);
    printf("%-14s %-15s %8s %8s %5s %10s %10s %9s\n", "operator", "route", "ms", "x", "goal", "codec ms", "waits ms",
        "MB sent");
    for (i = 0; i < ROWS; i++) {
        const double times = best[0].all / best[i].all, goal = judge ? rows[i].goal : 0;
        const char *op = rows[i].op ? rows[i].op : strcmp(over, "MPI") ? "allreduce" : "MPI_Allreduce";
        printf("%-14s %-15s %8.1f", op, rows[i].how, 1e3 * best[i].all);
        put_goal(times, goal, times < goal);
        if (rows[i].op)
            printf(" %10.1f %10.1f %9.2f", 1e3 * (best[i].all - best[i].calls), 1e3 * best[i].calls,
                1e-6 * (double)best[i].sent);
        printf("\n");
        fprintf(csv, "%s,%s,\"%s\",%d,%lu,%.6f,%.6f,%lu,%.3f,%g\n", over, op, rows[i].how, ranks, (unsigned long)n,
            best[i].all, best[i].calls, (unsigned long)best[i].sent, times, goal);
    }
}

typedef struct job {
    const float *base;
    size_t n;
    int reps, stepping;
    took best[ROWS];
} job;

static int thread_work(cg_threads_world *world, int rank, void *user) {
    job *j = (job *)user;
    const cg_transport t = cg_threads_transport(world, rank, CG_THREADS_ALL);
    took mine[ROWS];
    work(&t, thread_rows, j->base, j->n, j->reps, j->stepping, mine);
    if (rank == 0) memcpy(j->best, mine, sizeof mine);
    return 0;
}

static void table_of_threads(const float *base, size_t n, int reps, int ranks, int stepping) {
    job j;
    j.base = base;
    j.n = n;
    j.reps = reps;
    j.stepping = stepping;
    if (cg_threads_run(ranks, thread_work, &j)) die("threads", "a rank failed");
    table("threads", stepping ? "a step of the model" : "their mean", thread_rows, j.best, ranks, n,
        ranks == 2 && n >= GOAL_N);
}

/* ---- dense: the callback alone, the exchange in all its forms, and its passes over memory alone ---- */

enum { CALLBACK, REPLACED, INTO, IN_PLACE, STEP_PLAIN, STEP, COPY, DIVIDE, DENSE_ROWS };
static const char *const dense_names[DENSE_ROWS] = { "callback alone", "x replaced", "into", "CG_IN_PLACE",
    "callback, model -= rate * g", "with desc.model", "a checked streaming copy", "a check that divides" };
static const double dense_goals[DENSE_ROWS] = { 0, 3.2, 2.6, 2.0, 0, 0, 0, 0 };
typedef struct dense_job {
    const float *base;
    size_t n;
    int reps;
    double best[DENSE_ROWS];
} dense_job;

static int dense_work(cg_threads_world *world, int rank, void *user) {
    dense_job *j = (dense_job *)user;
    const cg_transport t = cg_threads_transport(world, rank, CG_THREADS_ALL);
    const size_t n = j->n;
    float *x = (float *)pages(4 * n), *y = (float *)pages(4 * n), *model = (float *)pages(4 * n);
    cg_exchange_desc d = CG_ZERO;
    const size_t bytes = cg_exchange_memory(&d, &t, n);
    void *mem = pages(bytes);
    double best[DENSE_ROWS], now;
    size_t i;
    int rep, kind, code = 0;
    for (kind = 0; kind < DENSE_ROWS; kind++) best[kind] = 1e9;
    for (rep = 0; rep < j->reps && !code; rep++)
        for (kind = 0; kind < DENSE_ROWS && !code; kind++) {
            took unused = { 0, 0, 0 };
            memset(&d, 0, sizeof d);
            turned(x, j->base, n, rank);
            code |= barrier(&t);
            now = -seconds();
            if (kind == INTO) d.into = y;
            if (kind == IN_PLACE) d.flags = CG_IN_PLACE;
            if (kind == STEP) d.model = model, d.rate = 0.01f;
            if (kind == CALLBACK || kind == STEP_PLAIN) code |= t.allreduce(t.user, x, n);
            else if (kind == COPY) cg_scale_checked_(x, n, 1.0f, y, 1);
            else if (kind == DIVIDE) cg_scale_checked_(x, n, 0.5f, x, 0);
            else if (exchange(&d, &t, x, n, mem, bytes, &unused) != CG_OK) die("dense", dense_names[kind]);
            for (i = 0; kind == STEP_PLAIN && i < n; i++) model[i] -= 0.005f * x[i];
            code |= barrier(&t);
            now += seconds();
            if (now < best[kind]) best[kind] = now;
        }
    if (rank == 0) memcpy(j->best, best, sizeof best);
    free(mem);
    free(model);
    free(y);
    free(x);
    return code;
}

/* A kind is as fast as it should be if it meets its goal or takes at most 1.1 times what its passes take alone. */
static void table_of_dense(const float *base, size_t n, int reps) {
    dense_job j;
    int kind;
    j.base = base;
    j.n = n;
    j.reps = reps;
    if (cg_threads_run(2, dense_work, &j)) die("dense", "a rank failed");
    printf("\n2 ranks over threads, n = %lu, a dense mean by linear: ms for both to finish, times the callback alone, "
           "and that of its passes, each alone\n%-28s %8s %8s %5s %8s\n",
        (unsigned long)n, "", "ms", "x", "goal", "passes");
    for (kind = 0; kind < DENSE_ROWS; kind++) {
        const double times = j.best[kind] / j.best[CALLBACK];
        double passes = kind == REPLACED || kind == INTO ? j.best[COPY] + j.best[CALLBACK] + j.best[DIVIDE]
            : kind == IN_PLACE                           ? j.best[CALLBACK] + j.best[DIVIDE]
                                                         : 0;
        passes /= j.best[CALLBACK];
        printf("%-28s %8.1f", dense_names[kind], 1e3 * j.best[kind]);
        put_goal(times, dense_goals[kind], n >= GOAL_N && times > dense_goals[kind] && times > 1.1 * passes);
        if (passes > 0) printf(" %8.2f", passes);
        printf("\n");
        fprintf(csv, "dense,\"%s\",linear,2,%lu,%.6f,0,0,%.3f,%g\n", dense_names[kind], (unsigned long)n, j.best[kind],
            times, dense_goals[kind]);
    }
}

/* ---- adding up: rank 0 of many, alone with what it has received in an exchange with the others ---- */

enum { MESSAGES = 8 };
typedef struct others {
    const float *base;
    size_t n;
    cg_exchange_desc desc;
    cg_transport net; /* rank 0's, when it is not alone */
    void *message[MESSAGES];
    size_t bytes[MESSAGES];
    int count, next; /* messages that were kept; the next to be given again */
} others;

static int keep_allgather(void *user, const void *mine, void *all, size_t bytes) {
    others *o = (others *)user;
    const int code = o->net.allgather(o->net.user, mine, all, bytes);
    if (o->count == MESSAGES) die("adding", "more messages than expected");
    o->message[o->count] = pages(PACKETS * bytes);
    o->bytes[o->count] = bytes;
    memcpy(o->message[o->count++], all, PACKETS * bytes);
    return code;
}

static int kept_allgather(void *user, const void *mine, void *all, size_t bytes) {
    others *o = (others *)user;
    (void)mine;
    if (o->next == o->count || bytes != o->bytes[o->next]) return 1;
    memcpy(all, o->message[o->next++], PACKETS * bytes);
    return 0;
}

static int others_work(cg_threads_world *world, int rank, void *user) {
    others *o = (others *)user;
    cg_transport t = cg_threads_transport(world, rank, CG_THREADS_ALLGATHER);
    const size_t bytes = cg_exchange_memory(&o->desc, &t, o->n);
    float *x = (float *)pages(o->n * sizeof *x);
    void *mem = pages(bytes);
    cg_status s;
    turned(x, o->base, o->n, rank);
    if (!rank) o->net = t, t.user = o, t.allgather = keep_allgather;
    s = cg_exchange(&o->desc, &t, x, o->n, mem, bytes, NULL);
    free(mem);
    free(x);
    return s != CG_OK;
}

static double add_packets(const cg_exchange_desc *d, others *o, float *x, size_t n, void *mem, size_t bytes) {
    cg_transport t = CG_ZERO;
    cg_exchange_state state;
    cg_io io;
    double since = 0;
    int code = 0;
    cg_status s;
    t.size = PACKETS;
    t.user = o;
    t.allgather = kept_allgather;
    o->next = 0;
    s = cg_exchange_start(&state, d, &t, x, n, mem, bytes);
    while (s == CG_OK || s == CG_AGAIN) {
        since = seconds(); /* the last time: all packets are here */
        s = cg_exchange_next(&state, code, &io);
        if (s != CG_AGAIN) break;
        code = cg_io_run(&t, &io);
    }
    if (s != CG_OK) die("adding", cg_status_str(s));
    return seconds() - since;
}

static void add_lists(float *restrict y, size_t n, uint32_t *const *index, float *const *value, size_t k) {
    size_t i, j;
    for (i = 0; i < n; i++) y[i] = 0.0f;
    for (i = 0; i < PACKETS; i++)
        for (j = 0; j < k; j++) y[index[i][j]] += value[i][j] * (1.0f / PACKETS);
}

static size_t list_of(const float *y, size_t n, uint32_t *index, float *value) {
    size_t i, k = 0;
    for (i = 0; i < n; i++)
        if (y[i] != 0.0f) index[k] = (uint32_t)i, value[k++] = y[i];
    return k;
}

static void table_of_adding(const float *base, size_t n, int reps) {
    cg_transport t = CG_ZERO;
    float *x = (float *)pages(n * 4), *y = (float *)pages(n * 4), *value[PACKETS];
    uint32_t *index[PACKETS];
    size_t bytes, room, len = 0, k = 0;
    double library = 1e9, plain = 1e9, since;
    void *mem, *packet;
    others o = CG_ZERO;
    int q, rep;
    o.base = base;
    o.n = n;
    o.desc.op = cg_topk(0.01f);
    o.desc.route = CG_ROUTE_ALLGATHER;
    if (cg_threads_run(PACKETS, others_work, &o)) die("adding", "a rank failed");
    room = cg_bound(&o.desc.op, n);
    packet = pages(room);
    t.size = PACKETS;
    t.allgather = kept_allgather;
    bytes = cg_exchange_memory(&o.desc, &t, n);
    mem = pages(bytes);
    for (q = 0; q < PACKETS; q++) {
        turned(x, base, n, q);
        if (cg_compress(&o.desc.op, NULL, x, n, packet, room, &len, mem, bytes) != CG_OK ||
            cg_decompress(packet, len, y, n) != CG_OK)
            die("adding", "a packet");
        index[q] = (uint32_t *)pages(n / 25);
        value[q] = (float *)pages(n / 25);
        k = list_of(y, n, index[q], value[q]);
    }
    for (rep = 0; rep < reps; rep++) {
        turned(x, base, n, 0);
        library = least(library, add_packets(&o.desc, &o, x, n, mem, bytes));
        turned(y, base, n, 0); /* as warm or cold as x was */
        since = seconds();
        add_lists(y, n, index, value, k);
        plain = least(plain, seconds() - since);
    }
    if (memcmp(x, y, n * sizeof *x)) die("adding", "the plain loops have another result");
    printf("\nAdding %d packets of topk:0.01, n = %lu, against one fill and %d loops over ready lists: ms, and times "
           "as long\n",
        (int)PACKETS, (unsigned long)n, (int)PACKETS);
    printf("%-14s %8.1f %8.1f", "allgather", 1e3 * library, 1e3 * plain);
    put_goal(library / plain, n >= GOAL_N ? adding_goal : 0, library / plain > adding_goal);
    printf("\n");
    fprintf(csv, "memory,topk:0.01,adding,%d,%lu,%.6f,,,%.3f,%g\n", (int)PACKETS, (unsigned long)n, library,
        library / plain, adding_goal);
    for (q = 0; q < PACKETS; q++) free(index[q]), free(value[q]);
    for (q = 0; q < o.count; q++) free(o.message[q]);
    free(packet), free(mem), free(x), free(y);
}

/* ---- over TCP: one rank, whose others are processes like this one ---- */

static void tcp_work(int rank, const char *addresses, size_t n, int reps) {
    cg_tcp_desc desc = CG_ZERO;
    cg_tcp net;
    char text[200];
    took best[ROWS];
    int code;
    desc.rank = rank;
    desc.addresses = addresses;
    code = cg_tcp_open(&net, &desc);
    if (code) die(addresses, cg_tcp_error(code, text, sizeof text));
    work(&net.transport, tcp_rows, laplace(n), n, reps, 0, best);
    if (rank == 0) table("TCP", "their mean", tcp_rows, best, net.transport.size, n, n >= TCP_N);
    cg_tcp_close(&net);
}

#ifdef EXCHANGE_MPI
static void mpi_work(size_t n, int reps) {
    took best[ROWS];
    cg_mpi mpi;
    if (cg_mpi_open(&mpi, MPI_COMM_WORLD) != MPI_SUCCESS) die("MPI", "cg_mpi_open failed");
    work(&mpi.transport, thread_rows, laplace(n), n, reps, 0, best);
    if (!mpi.transport.rank) table("MPI", "their mean", thread_rows, best, mpi.transport.size, n, 0);
    cg_mpi_close(&mpi);
    MPI_Finalize();
}
static int mpi_rank(void) {
    int rank = 0;
    if (MPI_Init(NULL, NULL) != MPI_SUCCESS || MPI_Comm_rank(MPI_COMM_WORLD, &rank) != MPI_SUCCESS)
        die("MPI", "MPI_Init failed");
    return rank;
}
#else
static int mpi_rank(void) { return -1; } /* there is no MPI here */
static void mpi_work(size_t n, int reps) { (void)n, (void)reps; }
#endif

int main(int argc, char **argv) {
    static const char usage[] =
        "exchange [--quick] [--n N] [--reps R] [--csv PATH] [--tcp RANK host:port,host:port,...]\n"
        "  --quick     n = 2^20 and few repetitions: only shows that it runs\n"
        "  --n N       values in the vector (default 2^24, over TCP 2^22; goals are judged only from that on)\n"
        "  --reps R    repetitions; the best time is reported (default 9)\n"
        "  --csv PATH  file for the figures (default bench/out/exchange.csv); over TCP they are appended\n"
        "  --tcp       run as one rank of several processes, see bench/shaped.sh\n";
    const char *path = "bench/out/exchange.csv", *addresses = NULL;
    size_t n = 0;
    float *base, *y;
    int reps = 9, rank = -1, a;

    for (a = 1; a < argc; a++) {
        const char *value = a + 1 < argc ? argv[a + 1] : "";
        if (!strcmp(argv[a], "--help")) return fputs(usage, stdout), 0;
        if (!strcmp(argv[a], "--quick")) {
            n = QUICK_N;
            reps = 3;
            continue;
        }
        if (!strcmp(argv[a], "--n")) n = (size_t)strtoul(value, NULL, 0);
        else if (!strcmp(argv[a], "--reps")) reps = atoi(value);
        else if (!strcmp(argv[a], "--csv")) path = value;
        else if (!strcmp(argv[a], "--tcp") && a + 2 < argc) rank = atoi(value), addresses = argv[++a + 1];
        else return fputs(usage, stderr), 2;
        a++;
    }
    if (!n) n = addresses ? TCP_N : GOAL_N;
    if (n > UINT32_MAX || reps < 1 || !*path) return fputs(usage, stderr), 2;
    if (!addresses) rank = mpi_rank();
    csv = fopen(rank > 0 ? "/dev/null" : path, rank >= 0 ? "a" : "w");
    if (!csv) die(path, "cannot be written");
    if (addresses) tcp_work(rank, addresses, n, reps);
    else if (rank >= 0) mpi_work(n, reps);
    else {
        fputs("over,op,how,ranks,n,seconds,seconds_in_callbacks,bytes_sent,times,goal\n", csv);
        printf("compgrad %s, %s. ! marks a missed goal%s.\n", cg_version(), cg_isa_name(cg_isa_used()),
            n >= GOAL_N ? "" : "; goals are for n = 2^24 and not judged here");
        base = laplace(n);
        find_limits();
        y = (float *)pages(n * sizeof *y);
        print_machine(seconds, y, n);
        free(y);
        table_of_dense(base, n, reps);
        table_of_threads(base, n, reps, 2, 0);
        table_of_threads(base, n, reps, 2, 1);
        table_of_threads(base, n, reps, 4, 0);
        table_of_adding(base, n, reps);
        free(base);
    }
    if (rank <= 0) printf("\n%d goal%s missed; all figures are in %s\n", missed, missed == 1 ? "" : "s", path);
    if (fclose(csv)) die(path, "cannot be written");
    return 0;
}
