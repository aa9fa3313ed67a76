/* cg_ef_exchange_layers, over threads: long layers come out, and remember, as if each were exchanged alone; short
   ones as their plain mean, with nothing left to remember; a gradient that is refused, or a callback that fails,
   loses nothing on any rank. Also ranks that abstain from an exchange. */
#include "examples/transport_threads.h"
#include "greatest.h"
#define COMPGRAD_IMPLEMENTATION
#include "compgrad_ef.h"

enum { LAYERS = 6, SMALL = 400, RANKS = 3, STEPS = 5, MOST = 5000 };
static const struct {
    const char *op;
    size_t n;
    uint32_t kind;
    float momentum;
} layer[LAYERS] = { { "topk:0.05", 5000, CG_EF_CLASSIC, 0.0f }, { "topk:0.1", 7, CG_EF_CLASSIC, 0.0f },
    { "absmax:4:512:nearest", 3000, CG_EF_LOCO, 0.0f }, { "topk:0.02", 2000, CG_EF_MOMENTUM, 0.5f },
    { "efsign", 300, CG_EF_CLASSIC, 0.0f }, { "topk:0.1", 1000, CG_EF_EF21, 0.0f } };

typedef struct job {
    /* bad_rank: has a NaN in layer 3 in the last step; fail_at: that callback of rank 1 fails then */
    int together, bad_rank, fail_at;
    float grad[RANKS][LAYERS][MOST], error[RANKS][LAYERS][MOST], before[RANKS][LAYERS][MOST],
        given[RANKS][LAYERS][MOST];
    cg_status status[RANKS], each[RANKS][LAYERS];
    int kept[RANKS][LAYERS], calls[RANKS];
    cg_transport real[RANKS];
} job;
static job *j, *alone;

static float value(int rank, int l, size_t i, int step) { /* dyadic: sums of a few are exact */
    uint32_t h = (uint32_t)i * 2654435761u + (uint32_t)(rank * 131 + l * 17 + step * 7 + 1) * 40503u;
    h = (h ^ h >> 15) * 2246822519u;
    return (float)((int32_t)(h >> 12 & 0xfff) - 2048) / 256.0f;
}
typedef struct tap {
    job *k;
    int rank;
} tap;
static int failing_sendrecv(
    void *user, const void *out, size_t out_bytes, int to, void *in, size_t in_bytes, int from) {
    tap *t = (tap *)user;
    if (t->k->calls[t->rank]++ == t->k->fail_at && t->rank == 1) return 77;
    return t->k->real[t->rank].sendrecv(t->k->real[t->rank].user, out, out_bytes, to, in, in_bytes, from);
}
static void read_errors(cg_ef *ef, float to[LAYERS][MOST]) {
    for (int l = 0; l < LAYERS; l++)
        if (cg_ef_read(&ef[l], CG_EF_ERROR, to[l], layer[l].n) != CG_OK) abort();
}
static void exchange(job *k, int rank, cg_ef *ef, cg_transport *t, int step) {
    cg_ef *efs[LAYERS];
    cg_layer list[LAYERS];
    size_t bytes;
    void *mem;
    memset(list, 0, sizeof list);
    for (int l = 0; l < LAYERS; l++) {
        efs[l] = &ef[l];
        list[l].desc.tag.step = (uint64_t)step;
        list[l].desc.tag.tensor = (uint32_t)l;
        list[l].x = k->grad[rank][l];
    }
    if (k->together) {
        bytes = cg_ef_layers_memory(efs, list, LAYERS, SMALL, t);
        mem = malloc(bytes);
        k->status[rank] = cg_ef_exchange_layers(efs, list, LAYERS, SMALL, t, mem, bytes, NULL);
        for (int l = 0; l < LAYERS; l++) {
            k->each[rank][l] = list[l].status;
            k->kept[rank][l] = cg_ef_stats_of(&ef[l]).kept;
        }
        for (int l = 0; l < LAYERS; l++)
            if (list[l].x != k->grad[rank][l]) abort();
        free(mem);
        return;
    }
    for (int l = 0; l < LAYERS; l++) {
        bytes = cg_ef_exchange_memory(&ef[l], &list[l].desc, t);
        mem = malloc(bytes);
        k->status[rank] = cg_ef_exchange(&ef[l], &list[l].desc, t, k->grad[rank][l], mem, bytes, NULL);
        if (k->status[rank] != CG_OK) abort();
        free(mem);
    }
}
static int worker(cg_threads_world *world, int rank, void *user) {
    job *k = (job *)user;
    cg_transport t = cg_threads_transport(world, rank, CG_THREADS_ALL);
    cg_ef ef[LAYERS];
    void *memory[LAYERS];
    tap own;
    cg_threads_timeout(world, 2000);
    own.k = k;
    own.rank = rank;
    k->real[rank] = t;
    for (int l = 0; l < LAYERS; l++) {
        cg_ef_desc d = CG_ZERO;
        if (cg_op_parse(&d.op, layer[l].op) != CG_OK) abort();
        d.n = layer[l].n;
        d.kind = layer[l].kind;
        d.momentum = layer[l].momentum;
        if (layer[l].n < SMALL) d.small = SMALL; /* the same, one by one */
        memory[l] = malloc(cg_ef_memory(&d));
        if (cg_ef_init(&ef[l], &d, memory[l], cg_ef_memory(&d)) != CG_OK) abort();
    }
    for (int step = 0; step < STEPS; step++) {
        for (int l = 0; l < LAYERS; l++)
            for (size_t i = 0; i < layer[l].n; i++) k->grad[rank][l][i] = value(rank, l, i, step);
        if (step == STEPS - 1) {
            read_errors(ef, k->before[rank]);
            if (rank == k->bad_rank) {
                uint32_t nan = 0x7fc00000u;
                memcpy(&k->grad[rank][3][1234], &nan, 4);
            }
            memcpy(k->given[rank], k->grad[rank], sizeof k->given[rank]);
            k->calls[rank] = 0;
            if (k->fail_at >= 0) {
                t.user = &own;
                t.allgather = NULL;
                t.allreduce = NULL;
                t.broadcast = NULL;
                t.sendrecv = failing_sendrecv;
            }
        }
        exchange(k, rank, ef, &t, step);
    }
    read_errors(ef, k->error[rank]);
    for (int l = 0; l < LAYERS; l++) free(memory[l]);
    return 0;
}
static void run(job *k, int together, int bad_rank, int fail_at) {
    memset(k, 0, sizeof *k);
    k->together = together;
    k->bad_rank = bad_rank;
    k->fail_at = fail_at;
    cg_threads_run(RANKS, worker, k);
}

TEST as_one_by_one(void) {
    run(alone, 0, -1, -1);
    run(j, 1, -1, -1);
    for (int r = 0; r < RANKS; r++) {
        ASSERT_EQ(CG_OK, j->status[r]);
        for (int l = 0; l < LAYERS; l++) {
            ASSERT_EQ(CG_OK, j->each[r][l]);
            ASSERT_MEM_EQ(alone->grad[r][l], j->grad[r][l], 4 * layer[l].n);
            ASSERT_MEM_EQ(alone->error[r][l], j->error[r][l], 4 * layer[l].n);
            ASSERT_MEM_EQ(j->grad[0][l], j->grad[r][l], 4 * layer[l].n);
        }
    }
    PASS();
}
TEST short_ones_are_the_plain_mean(void) {
    run(j, 1, -1, -1);
    for (int l = 0; l < LAYERS; l++)
        for (size_t i = 0; layer[l].n < SMALL && i < layer[l].n; i++) {
            float sum = 0.0f;
            for (int r = 0; r < RANKS; r++) sum += value(r, l, i, STEPS - 1);
            ASSERT_IN_RANGE(sum / RANKS, j->grad[0][l][i], 1e-5);
            ASSERT(j->error[1][l][i] == 0.0f);
        }
    PASS();
}
/* A gradient that is refused on one rank: there nothing is put in memory; elsewhere all of it is. */
TEST a_nan_loses_nothing(void) {
    run(j, 1, 1, -1);
    for (int r = 0; r < RANKS; r++) {
        ASSERT_EQ(r == 1 ? CG_E_NONFINITE : CG_E_PEER, j->status[r]);
        ASSERT_MEM_EQ(j->given[r], j->grad[r], sizeof j->given[r]);
        for (int l = 0; l < LAYERS; l++) {
            ASSERT_EQ(r != 1, j->kept[r][l]);
            for (size_t i = 0; i < layer[l].n; i++) {
                float want = j->before[r][l][i];
                if (r != 1 && layer[l].kind == CG_EF_CLASSIC) want += value(r, l, i, STEPS - 1);
                /* e + 0.2 g, v + u */
                if (r != 1 && (layer[l].kind == CG_EF_LOCO || layer[l].kind == CG_EF_MOMENTUM)) continue;
                ASSERT(want == j->error[r][l][i]);
            }
        }
    }
    PASS();
}
/* Wherever a callback fails: what was exchanged is settled, what was not is kept. */
TEST a_failure_anywhere_loses_nothing(void) {
    int failed = 1;
    run(alone, 0, -1, -1);
    for (int at = 0; failed && at < 400; at++) {
        run(j, 1, -1, at);
        failed = j->calls[1] > at;
        ASSERT_EQ(failed ? CG_E_TRANSPORT : CG_OK, j->status[1]);
        for (int r = 0; r < RANKS; r++)
            for (int l = 0; l < LAYERS; l++) {
                if (layer[l].kind != CG_EF_CLASSIC) continue;
                ASSERT(j->kept[r][l]);
                if (j->each[r][l] == CG_OK) {
                    ASSERT_MEM_EQ(alone->error[r][l], j->error[r][l], 4 * layer[l].n);
                    continue;
                }
                ASSERT_MEM_EQ(j->given[r][l], j->grad[r][l], 4 * layer[l].n);
                for (size_t i = 0; i < layer[l].n; i++)
                    ASSERT(j->before[r][l][i] + j->given[r][l][i] == j->error[r][l][i]);
            }
    }
    ASSERT(!failed);
    PASS();
}
TEST the_same_memory_twice_is_refused(void) {
    cg_transport t = CG_ZERO;
    cg_ef ef;
    cg_ef *efs[2];
    cg_layer list[2];
    cg_ef_desc d = CG_ZERO;
    float g[10] = { 1.0f, 2.0f }, e[10];
    char mem[65536];
    void *memory;
    t.size = 1;
    d.n = 10;
    d.op = cg_topk(0.1f);
    efs[0] = efs[1] = &ef;
    memset(list, 0, sizeof list);
    list[0].x = list[1].x = g;
    memory = malloc(cg_ef_memory(&d));
    ASSERT_EQ(CG_OK, cg_ef_init(&ef, &d, memory, cg_ef_memory(&d)));
    ASSERT(cg_ef_layers_memory(efs, list, 2, 0, &t) <= sizeof mem);
    ASSERT_EQ(CG_E_ARG, cg_ef_exchange_layers(efs, list, 2, 0, &t, mem, sizeof mem, NULL));
    ASSERT_EQ(CG_OK, cg_ef_read(&ef, CG_EF_ERROR, e, 10));
    for (int i = 0; i < 10; i++) ASSERT(e[i] == 0.0f);
    ASSERT_EQ(CG_E_MEMORY, cg_ef_exchange_layers(efs, list, 1, 0, &t, mem, 100, NULL));
    ASSERT_EQ(CG_OK, cg_ef_exchange_layers(efs, list, 1, 0, &t, mem, sizeof mem, NULL));
    ASSERT(g[0] == 0.0f && g[1] == 2.0f);
    free(memory);
    PASS();
}

/* Abstaining: counts with zeros. */
static struct {
    const char *op;
    float x[RANKS][1000];
    cg_status status[RANKS];
    uint64_t out[RANKS];
    uint32_t route, fold;
} a;
static int abstainer(cg_threads_world *world, int rank, void *user) {
    cg_transport t = cg_threads_transport(world, rank, CG_THREADS_ALL);
    cg_exchange_desc d = CG_ZERO;
    cg_report report;
    size_t bytes;
    void *mem;
    (void)user;
    cg_threads_timeout(world, 2000);
    if (cg_op_parse(&d.op, a.op) != CG_OK) abort();
    d.route = a.route;
    d.fold = a.fold;
    if (rank == 1) d.flags = CG_ABSTAIN;
    for (size_t i = 0; i < 1000; i++) a.x[rank][i] = value(rank, 0, i, 0);
    bytes = cg_exchange_memory(&d, &t, 1000);
    mem = malloc(bytes ? bytes : 1);
    a.status[rank] = cg_exchange(&d, &t, a.x[rank], 1000, mem, bytes, &report);
    a.out[rank] = report.bytes_out;
    if (a.status[rank] == CG_OK && rank == 1) { /* nothing of it counted */
        float y[1000];
        if (cg_used_decode(NULL, report.used, report.used_len, 1.0f, 0.0f, y, 1000) != CG_OK) abort();
        for (int i = 0; i < 1000; i++)
            if (y[i] != 0.0f) abort();
    }
    free(mem);
    return 0;
}
TEST to_abstain_is_to_send_zeros(const char *op) {
    float packet[4096], scratch[65536 * 4], sum[1000] = { 0.0f };
    cg_op o;
    size_t len;
    a.op = op;
    a.route = CG_ROUTE_ALLGATHER;
    a.fold = CG_FOLD_MEAN;
    cg_threads_run(RANKS, abstainer, NULL);
    ASSERT_EQ(CG_OK, cg_op_parse(&o, op));
    for (int r = 0; r < RANKS; r += 2) {
        cg_tag tag = CG_ZERO;
        float x[1000];
        tag.rank = (uint32_t)r;
        for (size_t i = 0; i < 1000; i++) x[i] = value(r, 0, i, 0);
        ASSERT_EQ(CG_OK, cg_compress(&o, &tag, x, 1000, packet, sizeof packet, &len, scratch, sizeof scratch));
        ASSERT_EQ(CG_OK, cg_decompress_add(packet, len, 1.0f / 3.0f, sum, 1000));
    }
    for (int r = 0; r < RANKS; r++) {
        ASSERT_EQ(CG_OK, a.status[r]);
        ASSERT_MEM_EQ(sum, a.x[r], sizeof sum);
    }
    PASS();
}
TEST elsewhere_it_is_refused(void) {
    a.op = "topk:0.1";
    a.fold = CG_FOLD_MEAN;
    a.route = CG_ROUTE_SERVER;
    cg_threads_run(RANKS, abstainer, NULL);
    ASSERT_EQ(CG_E_UNSUPPORTED, a.status[1]);
    ASSERT_EQ(CG_E_PEER, a.status[0]);
    a.route = CG_ROUTE_ALLGATHER;
    a.fold = CG_FOLD_CONTRIBUTORS;
    cg_threads_run(RANKS, abstainer, NULL);
    ASSERT_EQ(CG_E_UNSUPPORTED, a.status[1]);
    PASS();
}

/* What the caller has set stays: a dense step takes another route and no aux, but only for itself. */
TEST a_dense_step_keeps_the_description(void) {
    enum { N = 1000 };
    static float grad[2][N], variance[N], state[2][50000];
    static unsigned char mem[400000];
    cg_transport one = CG_ZERO;
    cg_extra extra = CG_ZERO;
    cg_ef ef[2], *efs[2];
    cg_layer layers[2];
    cg_report report;
    one.size = 1;
    extra.aux = variance;
    memset(layers, 0, sizeof layers);
    for (int l = 0; l < 2; l++) {
        cg_ef_desc d = CG_ZERO;
        d.n = N;
        d.kind = l ? CG_EF_CLASSIC : CG_EF_VARIANCE;
        d.op = l ? cg_topk(0.1f) : cg_variance(1.0f);
        d.dense_steps = 1;
        ASSERT(cg_ef_memory(&d) <= sizeof state[l]);
        ASSERT_EQ(CG_OK, cg_ef_init(&ef[l], &d, state[l], sizeof state[l]));
        efs[l] = &ef[l];
        layers[l].x = grad[l];
        layers[l].desc.side = l ? NULL : &extra;
        layers[l].desc.route = l ? CG_ROUTE_MERGE : CG_ROUTE_ALLGATHER;
    }
    for (uint64_t step = 0; step < 3; step++) {
        for (int i = 0; i < N; i++) {
            grad[0][i] = grad[1][i] = (float)(i % 17) - 8.0f;
            variance[i] = 4.0f;
        }
        layers[0].desc.tag.step = layers[1].desc.tag.step = step;
        ASSERT(cg_ef_layers_memory(efs, layers, 2, 0, &one) <= sizeof mem);
        ASSERT(layers[0].desc.side == &extra && layers[1].desc.route == CG_ROUTE_MERGE);
        ASSERT_EQ(CG_OK, cg_ef_exchange_layers(efs, layers, 2, 0, &one, mem, sizeof mem, &report));
        ASSERT(layers[0].desc.side == &extra && layers[1].desc.side == NULL);
        ASSERT_EQ_FMT((unsigned)CG_ROUTE_ALLGATHER, (unsigned)layers[0].desc.route, "%u");
        ASSERT_EQ_FMT((unsigned)CG_ROUTE_MERGE, (unsigned)layers[1].desc.route, "%u");
        if (step) ASSERT_EQ_FMT((unsigned)CG_ROUTE_MERGE, (unsigned)layers[1].report.route, "%u");
    }
    PASS();
}

SUITE(layers) {
    RUN_TEST(as_one_by_one);
    RUN_TEST(short_ones_are_the_plain_mean);
    RUN_TEST(a_nan_loses_nothing);
    RUN_TEST(a_failure_anywhere_loses_nothing);
    RUN_TEST(the_same_memory_twice_is_refused);
    RUN_TEST(a_dense_step_keeps_the_description);
}
SUITE(abstaining) {
    RUN_TESTp(to_abstain_is_to_send_zeros, "topk:0.1");
    RUN_TESTp(to_abstain_is_to_send_zeros, "absmax:4:512");
    RUN_TESTp(to_abstain_is_to_send_zeros, "dense");
    RUN_TESTp(to_abstain_is_to_send_zeros, "qsgd:4");
    RUN_TESTp(to_abstain_is_to_send_zeros, "randk:0.5");
    RUN_TEST(elsewhere_it_is_refused);
}

GREATEST_MAIN_DEFS();
int main(int argc, char **argv) {
    j = (job *)malloc(sizeof *j);
    alone = (job *)malloc(sizeof *alone);
    GREATEST_MAIN_BEGIN();
    RUN_SUITE(layers);
    RUN_SUITE(abstaining);
    free(j);
    free(alone);
    GREATEST_MAIN_END();
}
