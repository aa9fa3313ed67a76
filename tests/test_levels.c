/* cg_exchange_levels over threads: nodes x ranks as 2x2, 2x4, 3x2, 1x3, 3x1; the same bits everywhere; what went in is
   in the mean, in a residual or in a carry; what is refused; a message that fails or is damaged, at every place. */
#include "examples/transport_threads.h"

#include <math.h>
#include <stdio.h>

#include "greatest.h"
#include "compgrad_exchange.h"
#include "ref.h"

enum { MOST = 8, N = 1003, CLOSING = 3 /* messages of the exchange that tells other nodes how it went */ };
typedef struct job {
    int nodes, each; /* ranks of a node */
    cg_threads_world *inside[MOST], *between[MOST];
    cg_exchange_desc inner, outer;
    int inner_residual, outer_residual, inner_carry, outer_carry, steps;
    size_t n;
    float x[MOST][N], in[MOST][N];
    float residual[MOST][N], stripe_residual[MOST][N], carry[MOST][N], stripe_carry[MOST][N];
    double put_in[MOST][N]; /* the sum of the gradients of a rank */
    double sums[N];         /* the sum of all means */
    cg_status status[MOST];
    cg_report report[MOST];
    /* a fault: the callback `io` of rank `where` fails (1), or what it receives is changed (2) */
    int fault, where, io, calls[MOST];
    cg_transport real[MOST][2];
    int less, spoiled; /* rank 1 has too little memory, or a NaN */
} job;
static job *j;

static int count(job *k, int rank, void *in, size_t bytes) {
    const int now = k->calls[rank]++;
    if (!k->fault || rank != k->where || now != k->io) return 0;
    if (k->fault == 1) return 77;
    if (bytes) ((unsigned char *)in)[bytes / 2] ^= 4;
    return 0;
}
typedef struct port {
    job *k;
    int rank, which;
} port;
static port ports[MOST][2];
static int sendrecv(void *user, const void *out, size_t out_bytes, int to, void *in, size_t in_bytes, int from) {
    const port *p = (const port *)user;
    const cg_transport *t = &p->k->real[p->rank][p->which];
    int code;
    if (p->k->fault == 1 && p->rank == p->k->where && p->k->calls[p->rank] == p->k->io) {
        cg_threads_abort(p->which ? p->k->between[p->rank % p->k->each] : p->k->inside[p->rank / p->k->each]);
        return count(p->k, p->rank, NULL, 0);
    }
    code = t->sendrecv(t->user, out, out_bytes, to, in, in_bytes, from);
    if (!code) code = count(p->k, p->rank, in, from >= 0 ? in_bytes : 0);
    return code;
}
static int worker(cg_threads_world *world, int rank, void *user) {
    job *k = (job *)user;
    const int node = rank / k->each, local = rank % k->each;
    cg_exchange_desc inner = k->inner, outer = k->outer;
    cg_transport t[2];
    size_t bytes;
    void *mem;
    (void)world;
    k->real[rank][0] = cg_threads_transport(k->inside[node], local, CG_THREADS_ALL);
    k->real[rank][1] = cg_threads_transport(k->between[local], node, CG_THREADS_ALL);
    for (int i = 0; i < 2; i++) {
        const cg_transport none = CG_ZERO;
        t[i] = none;
        ports[rank][i].k = k;
        ports[rank][i].rank = rank;
        ports[rank][i].which = i;
        t[i].user = &ports[rank][i];
        t[i].rank = k->real[rank][i].rank;
        t[i].size = k->real[rank][i].size;
        t[i].sendrecv = sendrecv;
    }
    if (k->inner_residual) inner.residual = k->residual[rank];
    if (k->outer_residual) outer.residual = k->stripe_residual[rank];
    if (k->inner_carry) inner.carry = k->carry[rank];
    if (k->outer_carry) outer.carry = k->stripe_carry[rank];
    bytes = cg_exchange_levels_memory(&inner, &t[0], &outer, &t[1], k->n);
    mem = malloc(bytes + 64);
    memset((char *)mem + bytes, 0x5a, 64);
    for (int step = 0; step < k->steps; step++) {
        uint64_t state = (uint64_t)(rank * 100 + step);
        for (size_t i = 0; i < k->n; i++) k->x[rank][i] = k->in[rank][i] = (float)ref_normal(&state);
        if (k->spoiled && rank == 1) k->x[rank][3] = k->in[rank][3] = NAN;
        inner.tag.step = outer.tag.step = (uint64_t)step;
        k->status[rank] = cg_exchange_levels(&inner, &t[0], &outer, &t[1], k->x[rank], k->n, mem,
            k->less && rank == 1 ? bytes / 3 : bytes, &k->report[rank]);
        if (k->status[rank] != CG_OK) break;
        for (size_t i = 0; i < k->n; i++) k->put_in[rank][i] += (double)k->in[rank][i];
        for (size_t i = 0; i < k->n && rank == 0; i++) k->sums[i] += (double)k->x[0][i];
    }
    for (int i = 0; i < 64; i++)
        if (((char *)mem)[bytes + (size_t)i] != 0x5a) abort();
    free(mem);
    return 0;
}
static void begin(int nodes, int each, const char *in_op, const char *in_back, const char *out_op, uint32_t out_route) {
    static cg_op back;
    memset(j, 0, sizeof *j);
    j->nodes = nodes;
    j->each = each;
    j->n = N;
    j->steps = 1;
    if (cg_op_parse(&j->inner.op, in_op) != CG_OK || cg_op_parse(&j->outer.op, out_op) != CG_OK) abort();
    if (in_back && cg_op_parse(&back, in_back) != CG_OK) abort();
    j->inner.back = in_back ? &back : NULL;
    j->outer.route = out_route;
    j->inner.tag.seed = 3;
    j->outer.tag.seed = 4;
}
static void run(void) {
    for (int m = 0; m < j->nodes; m++) cg_threads_open(&j->inside[m], j->each);
    for (int p = 0; p < j->each; p++) cg_threads_open(&j->between[p], j->nodes);
    for (int m = 0; m < j->nodes; m++) cg_threads_timeout(j->inside[m], 1000);
    for (int p = 0; p < j->each; p++) cg_threads_timeout(j->between[p], 1000);
    cg_threads_run(j->nodes * j->each, worker, j);
    for (int m = 0; m < j->nodes; m++) cg_threads_close(j->inside[m]);
    for (int p = 0; p < j->each; p++) cg_threads_close(j->between[p]);
}

/* All gradients of all steps = the means times the ranks, and what residuals and carries still have. */
TEST nothing_is_lost(int nodes, int each, const char *in_op, const char *in_back, const char *out_op, uint32_t route,
    int what, size_t n) {
    const int ranks = nodes * each;
    begin(nodes, each, in_op, in_back, out_op, route);
    j->n = n;
    j->steps = 6;
    j->inner_residual = what & 1;
    j->outer_residual = what >> 1 & 1;
    j->inner_carry = what >> 2 & 1;
    j->outer_carry = what >> 3 & 1;
    run();
    for (int r = 0; r < ranks; r++) {
        ASSERTm(j->report[r].why, j->status[r] == CG_OK);
        ASSERT_MEM_EQ(j->x[0], j->x[r], 4 * n);
        ASSERT(j->report[r].rounds > 0 || ranks == 1);
        ASSERT_EQ(NULL, j->report[r].used);
    }
    for (size_t i = 0; i < n; i++) {
        double put_in = 0, kept = 0, size = 1;
        for (int r = 0; r < ranks; r++) {
            const int local = r % each, node = r / each;
            const size_t first = cg_stripe_begin(n, each, local), end = cg_stripe_begin(n, each, local + 1);
            put_in += j->put_in[r][i];
            kept += (double)j->residual[r][i];
            if (i >= first && i < end) {
                /* a stripe is the mean of a node: it stands for `each` ranks; back, in every node, for all of them */
                kept += (double)j->stripe_residual[r][i - first] * each + (double)j->carry[r][i - first] * each;
                /* of the server's leader, whose sum is the mean of all */
                if (j->outer_carry && node == 0) kept += (double)j->stripe_carry[r][i - first] * ranks;
            }
        }
        size += fabs(put_in);
        ASSERT_IN_RANGE(put_in, j->sums[i] * ranks + kept, 1e-4 * size);
    }
    PASS();
}
/* With exact operators it is the mean. */
TEST the_mean(int nodes, int each) {
    begin(nodes, each, "dense", NULL, "dense", 0);
    run();
    for (size_t i = 0; i < N; i++) {
        double mean = 0;
        for (int r = 0; r < nodes * each; r++) mean += (double)j->in[r][i] / (nodes * each);
        ASSERT_IN_RANGE(mean, (double)j->x[0][i], 1e-6);
        for (int r = 1; r < nodes * each; r++) ASSERT_EQ(j->x[0][i], j->x[r][i]);
    }
    PASS();
}
TEST refused(int what, const char *word) {
    static float model[N];
    begin(2, 2, "dense", NULL, "topk:0.1", 0);
    if (what == 0) j->inner.weight = 2.0f;
    if (what == 1) j->outer.fold = CG_FOLD_SUM;
    if (what == 2) j->inner.model = model;
    if (what == 3) j->inner.route = CG_ROUTE_RING;
    if (what == 4) j->outer.op = cg_lowrank(10, 10, 2);
    if (what == 5) j->inner.op = cg_lowrank(10, 10, 2);
    run();
    for (int r = 0; r < 4; r++) {
        ASSERT(j->status[r] != CG_OK);
        ASSERTm(j->report[r].why, strstr(j->report[r].why, word));
        ASSERT_MEM_EQ(j->in[r], j->x[r], sizeof j->x[r]);
    }
    PASS();
}
/* A NaN or too little memory on one rank: everybody in every node hears of it. */
TEST one_rank_fails(int less) {
    begin(2, 2, "dense", NULL, "topk:0.1", 0);
    j->less = less;
    j->spoiled = !less;
    j->outer_residual = 1;
    run();
    for (int r = 0; r < 4; r++) {
        ASSERT_EQ(r != 1 ? CG_E_PEER : less ? CG_E_MEMORY : CG_E_NONFINITE, j->status[r]);
        ASSERT_MEM_EQ(j->in[r], j->x[r], sizeof j->x[r]);
        for (size_t i = 0; i < N; i++) ASSERT_EQ(0.0f, j->stripe_residual[r][i]);
    }
    PASS();
}
/* A fault at every call of two ranks. fault 1: the callback fails, and so does its transport; 2: a bit changes. Nobody
   waits (the transport would say that it took a second), what fails has changed nothing, and with CG_CONFIRM a changed
   bit fails everybody or nobody, but in the closing itself. */
TEST faults(int fault, int where) {
    int ended = 0;
    for (int io = 0; !ended; io++) {
        int well = 0;
        begin(2, 2, "absmax:8:64", "absmax:8:64:nearest", "topk:0.1|golomb", CG_ROUTE_ALLGATHER);
        j->inner.flags = CG_CONFIRM;
        j->inner_residual = j->outer_residual = j->inner_carry = 1;
        j->fault = fault;
        j->where = where;
        j->io = io;
        run();
        ended = j->calls[where] <= io;
        for (int r = 0; r < 4; r++) {
            well += j->status[r] == CG_OK;
            ASSERTm("a rank waited", j->report[r].code != CG_THREADS_E_TIMEOUT);
            if (j->status[r] == CG_OK) continue;
            ASSERT_MEM_EQ(j->in[r], j->x[r], sizeof j->x[r]);
            for (size_t i = 0; i < N; i++)
                ASSERT(j->residual[r][i] == 0.0f && j->stripe_residual[r][i] == 0.0f && j->carry[r][i] == 0.0f);
        }
        if (fault == 2 && io < j->calls[where] - CLOSING) ASSERT(well == 0 || well == 4);
        if (fault == 1 && !ended) ASSERT(j->status[where] != CG_OK);
        if (ended) ASSERT_EQ(4, well);
    }
    PASS();
}

SUITE(levels) {
    static const int shapes[][2] = { { 2, 2 }, { 2, 4 }, { 3, 2 }, { 1, 3 }, { 3, 1 }, { 1, 1 } };
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        const int nodes = shapes[s][0], each = shapes[s][1];
        RUN_TESTp(the_mean, nodes, each);
        RUN_TESTp(nothing_is_lost, nodes, each, "dense", NULL, "topk:0.1", CG_ROUTE_ALLGATHER, 2, (size_t)N);
        RUN_TESTp(nothing_is_lost, nodes, each, "absmax:8:64:nearest", "absmax:8:64:nearest", "topk:0.05|f16",
            CG_ROUTE_ALLGATHER, 7, (size_t)N);
        RUN_TESTp(nothing_is_lost, nodes, each, "efsign", "efsign", "efsign", CG_ROUTE_SERVER, 15, (size_t)N);
        RUN_TESTp(nothing_is_lost, nodes, each, "topk:0.2|golomb", NULL, "absmax:4:64:nearest", CG_ROUTE_ALLGATHER, 3,
            (size_t)65);
        RUN_TESTp(nothing_is_lost, nodes, each, "dense", NULL, "topk:0.1", CG_ROUTE_AUTO, 2, (size_t)0);
    }
    RUN_TESTp(refused, 0, "weight");
    RUN_TESTp(refused, 1, "fold");
    RUN_TESTp(refused, 2, "model");
    RUN_TESTp(refused, 3, "legs");
    RUN_TESTp(refused, 4, "rows");
    RUN_TESTp(refused, 5, "rows");
    RUN_TEST1(one_rank_fails, 0);
    RUN_TEST1(one_rank_fails, 1);
    for (int where = 0; where < 4; where += 3) {
        RUN_TESTp(faults, 2, where);
        RUN_TESTp(faults, 1, where);
    }
}

GREATEST_MAIN_DEFS();
int main(int argc, char **argv) {
    GREATEST_MAIN_BEGIN();
    j = (job *)calloc(1, sizeof *j);
    RUN_SUITE(levels);
    free(j);
    GREATEST_MAIN_END();
}
