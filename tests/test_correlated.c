/* Correlated rounding: N ranks round with one noise that is shifted by rank/N. What follows from the definition alone:
   on a uniform grid the mean of N equal vectors is at most a step/N away, whatever the noise; the error of the mean
   falls by more than independent noise would let it; every rank by itself stays unbiased; and the packet says nothing
   of it, so that everybody decodes it. */
#include <math.h>

#include "compgrad_exchange.h"
#include "ref.h"
#include "ops.h"
#include "sim.h"
#include "short_names.h"
#include "greatest.h"

enum { N = 3000, RANKS = 8, TRIALS = 12 };
static float x[N], mean[N], y[N], grad[RANKS][N];

static cg_op parsed(const char *text) {
    cg_op op;
    if (cg_op_parse(&op, text) != CG_OK) {
        fprintf(stderr, "%s does not parse\n", text);
        exit(2);
    }
    return op;
}
static void fill(float *v, uint64_t state) {
    for (int i = 0; i < N; i++) v[i] = (float)ref_normal(&state);
}
/* mean := of D(x) over the ranks. correlated: what cg_extra has */
static void average(const cg_op *op, uint64_t step, uint32_t ranks, uint32_t correlated) {
    memset(mean, 0, sizeof mean);
    for (uint32_t r = 0; r < ranks; r++) {
        const cg_tag tag = { 5, step, 3, r };
        cg_extra extra = CG_ZERO;
        ops_packet pk;
        extra.correlated = correlated;
        pk = ops_pack_cap(op, &tag, &extra, x, N, cg_bound(op, N));
        if (pk.status != CG_OK || cg_decompress_add(pk.p, pk.len, 1.0f / (float)ranks, mean, N) != CG_OK) exit(2);
        free(pk.p);
    }
}

/* step(i): the distance of the two levels around x[i], by the plainest reading of each grid */
static double absmax_of(size_t i, size_t bucket) {
    const size_t first = bucket ? i / bucket * bucket : 0, end = bucket && first + bucket < N ? first + bucket : N;
    double most = 0;
    for (size_t j = first; j < end; j++) most = fabs((double)x[j]) > most ? fabs((double)x[j]) : most;
    return most;
}
static double range_of(size_t i, size_t bucket) {
    const size_t first = i / bucket * bucket, end = first + bucket < N ? first + bucket : N;
    double low = (double)x[first], high = low;
    for (size_t j = first; j < end; j++) {
        low = (double)x[j] < low ? (double)x[j] : low;
        high = (double)x[j] > high ? (double)x[j] : high;
    }
    return high - low;
}
TEST the_mean_is_a_step_of_a_finer_grid_away(const char *text, uint32_t ranks, int kind) {
    const cg_op op = parsed(text);
    double worst = 0, worst_alone = 0;
    fill(x, 7);
    for (int t = 0; t < 3; t++)
        for (int together = 1; together >= 0; together--) {
            average(&op, (uint64_t)t, ranks, together ? ranks : 0);
            for (size_t i = 0; i < N; i++) {
                const double step = kind == 0 ? absmax_of(i, 512) / 7 /* 4 bits: -7 .. 7 */
                    : kind == 1               ? range_of(i, 512) / 15
                    : kind == 2               ? absmax_of(i, 0) /* terngrad */
                                              : absmax_of(i, 512) / 5 /* 5 levels of the largest */;
                const double off = fabs((double)mean[i] - (double)x[i]) / (step / (double)ranks);
                if (together) worst = off > worst ? off : worst;
                else worst_alone = off > worst_alone ? off : worst_alone;
            }
        }
    ASSERT(worst <= 1.001);
    if (ranks > 2) ASSERT(worst_alone > 1.5); /* noise of its own does not do that */
    PASS();
}

static double error(const cg_op *op, int together) {
    double sum = 0;
    for (int t = 0; t < TRIALS; t++) {
        fill(x, (uint64_t)t + 20);
        average(op, (uint64_t)t, RANKS, together ? RANKS : 0);
        for (int i = 0; i < N; i++) sum += ((double)mean[i] - (double)x[i]) * ((double)mean[i] - (double)x[i]);
    }
    return sum;
}
/* METHODS: 1.8 to 8 times */
TEST the_variance_of_the_mean_falls(const char *text) {
    const cg_op op = parsed(text);
    ASSERT(error(&op, 0) >= 1.8 * error(&op, 1));
    PASS();
}
/* Of each rank alone: the mean over many steps is x, within five standard errors of the declared variance. */
TEST each_rank_stays_unbiased(const char *text) {
    enum { STEPS = 600 };
    const cg_op op = parsed(text);
    static double sum[N];
    cg_about about;
    fill(x, 9);
    ASSERT_EQ(CG_OK, cg_op_about(&op, N, &about));
    ASSERT(about.unbiased);
    for (uint32_t rank = 1; rank < RANKS; rank += 3) {
        double off = 0, size = 0;
        memset(sum, 0, sizeof sum);
        for (uint64_t t = 0; t < STEPS; t++) {
            const cg_tag tag = { 5, t, 3, rank };
            cg_extra extra = CG_ZERO;
            ops_packet pk;
            extra.correlated = RANKS;
            pk = ops_pack_cap(&op, &tag, &extra, x, N, cg_bound(&op, N));
            ASSERT_EQ(CG_OK, cg_decompress(pk.p, pk.len, y, N));
            for (int i = 0; i < N; i++) sum[i] += (double)y[i];
            free(pk.p);
        }
        for (int i = 0; i < N; i++) {
            const double d = sum[i] / STEPS - (double)x[i];
            off += d * d;
            size += (double)x[i] * (double)x[i];
        }
        /* |error of the mean|^2 <= omega |x|^2 / STEPS in expectation, over 3000 values close to it */
        ASSERT(off <= 1.3 * about.omega * size / STEPS);
    }
    PASS();
}
/* As the first of ranks, with others or without: what differs is only the noise. Nothing differs without noise. */
TEST what_does_not_change(void) {
    const cg_op near = parsed("absmax:4:512:nearest"), noisy = parsed("absmax:4:512");
    const cg_tag tag = { 5, 1, 3, 9 };
    cg_extra extra = CG_ZERO;
    ops_packet a, b;
    fill(x, 3);
    a = ops_pack(&near, &tag, x, N);
    extra.correlated = 4;
    b = ops_pack_cap(&near, &tag, &extra, x, N, cg_bound(&near, N));
    ASSERT_EQ(a.len, b.len);
    ASSERT_MEM_EQ(a.p, b.p, a.len);
    free(a.p);
    free(b.p);
    a = ops_pack_cap(&noisy, &tag, &extra, x, N, cg_bound(&noisy, N)); /* rank 9 of 4 rounds as rank 1 */
    b = ops_pack(&noisy, &tag, x, N);
    ASSERT(memcmp(a.p + 128, b.p + 128, a.len - 128));
    free(a.p);
    free(b.p);
    extra.reserved32 = 1;
    a = ops_pack_cap(&noisy, &tag, &extra, x, N, cg_bound(&noisy, N));
    ASSERT_EQ(CG_E_ARG, a.status);
    free(a.p);
    PASS();
}

static double exchanged(const char *text, uint32_t route, uint32_t flags, uint64_t step, int *same) {
    static sim world;
    cg_exchange_desc desc = CG_ZERO;
    float *v[RANKS];
    double sum = 0;
    const cg_op back = cg_dense(); /* a second leg that rounds would hide what the first has gained */
    desc.op = parsed(text);
    desc.route = route;
    desc.flags = flags;
    if (route == SCATTER) desc.back = &back;
    desc.tag.seed = 5;
    desc.tag.step = step;
    fill(x, 40 + step);
    for (int r = 0; r < RANKS; r++) {
        memcpy(grad[r], x, sizeof x);
        v[r] = grad[r];
    }
    sim_open(&world, RANKS, SIM_SENDRECV, 0, &desc, v, N);
    sim_run(&world);
    for (int r = 0; r < RANKS; r++) {
        *same &= world.rank[r].status == CG_OK && !memcmp(grad[r], grad[0], sizeof x);
        if (world.rank[r].status != CG_OK) printf("%s\n", world.rank[r].report.why);
    }
    sim_close(&world);
    for (int i = 0; i < N; i++) sum += ((double)grad[0][i] - (double)x[i]) * ((double)grad[0][i] - (double)x[i]);
    return sum;
}
TEST exchanges_round_together(const char *text, uint32_t route, double times) {
    double alone = 0, together = 0;
    int same = 1;
    for (uint64_t t = 0; t < 6; t++) {
        alone += exchanged(text, route, 0, t, &same);
        together += exchanged(text, route, CG_CORRELATED, t, &same);
    }
    ASSERT(same);
    ASSERT(alone >= times * together);
    PASS();
}
TEST refused(const char *text, uint32_t route) {
    static sim world;
    cg_exchange_desc desc = CG_ZERO;
    float *v[RANKS];
    desc.op = parsed(text);
    desc.route = route;
    desc.flags = CG_CORRELATED;
    for (int r = 0; r < RANKS; r++) {
        memcpy(grad[r], x, sizeof x);
        v[r] = grad[r];
    }
    sim_open(&world, RANKS, SIM_SENDRECV, 0, &desc, v, N);
    sim_run(&world);
    for (int r = 0; r < RANKS; r++) {
        ASSERT_EQ(CG_E_UNSUPPORTED, world.rank[r].status);
        ASSERT(strstr(world.rank[r].report.why, "added once"));
        ASSERT_MEM_EQ(x, grad[r], sizeof x);
    }
    sim_close(&world);
    /* ranks that differ in the flag are told */
    desc.route = AG;
    sim_open(&world, RANKS, SIM_SENDRECV, 0, &desc, v, N);
    world.rank[3].desc.flags = 0;
    sim_run(&world);
    for (int r = 0; r < RANKS; r++) ASSERT_EQ(CG_E_MISMATCH, world.rank[r].status);
    sim_close(&world);
    PASS();
}

SUITE(correlated) {
    static const char *const ops[] = { "absmax:4:512", "absmax:8:512", "minmax:4:512", "levels:4:512:max", "terngrad",
        "natural", "dither:3:512", "f16:stochastic", "bf16:stochastic", "e4m3:stochastic", "mxfp4:stochastic",
        "nf4:stochastic", "rotate:3|absmax:4:512", "srq:4" };
    static const struct {
        const char *op;
        int kind;
    } grids[] = { { "absmax:4:512", 0 }, { "minmax:4:512", 1 }, { "terngrad", 2 }, { "levels:5:512:max", 3 } };
    for (size_t i = 0; i < 4; i++)
        for (uint32_t ranks = 1; ranks <= RANKS; ranks += 1 + ranks / 3)
            RUN_TESTp(the_mean_is_a_step_of_a_finer_grid_away, grids[i].op, ranks, grids[i].kind);
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) RUN_TEST1(the_variance_of_the_mean_falls, ops[i]);
    RUN_TEST1(each_rank_stays_unbiased, "absmax:4:512");
    RUN_TEST1(each_rank_stays_unbiased, "natural");
    RUN_TEST1(each_rank_stays_unbiased, "terngrad");
    RUN_TEST(what_does_not_change);
    RUN_TESTp(exchanges_round_together, "absmax:4:512", AG, 1.8);
    RUN_TESTp(exchanges_round_together, "absmax:4:512", SERVER, 1.8);
    RUN_TESTp(exchanges_round_together, "natural", AG, 1.8);
    RUN_TESTp(exchanges_round_together, "absmax:4:512", SCATTER, 1.8);
    RUN_TESTp(refused, "absmax:4:512", RING);
    RUN_TESTp(refused, "absmax:4:512", TREE);
    RUN_TESTp(refused, "randk:0.5", LINEAR);
}

GREATEST_MAIN_DEFS();
int main(int argc, char **argv) {
    GREATEST_MAIN_BEGIN();
    RUN_SUITE(correlated);
    GREATEST_MAIN_END();
}
