/* Folds that a minority of ranks cannot spoil, against the plainest median, trimmed mean and mean of clipped norms in
   C: the same values on every rank, on both routes, for every number of ranks; what one and two liars of eight can do;
   what is refused; the residual of the second leg. */
#include <math.h>

#include "greatest.h"
#define COMPGRAD_IMPLEMENTATION
#include "compgrad_exchange.h"
#include "short_names.h"
#include "sim.h"

enum { MEDIAN = CG_FOLD_MEDIAN, TRIMMED = CG_FOLD_TRIMMED, CLIPPED = CG_FOLD_CLIPPED };
enum { MOST = 9, N = 1000 };
static float grad[MOST][N], in[MOST][N], decoded[MOST][N], carry[N];
static sim world;
static char note[200];

static float value(int rank, size_t i) {
    uint32_t h = (uint32_t)i * 2654435761u + (uint32_t)(rank + 1) * 40503u;
    h = (h ^ h >> 15) * 2246822519u;
    h ^= h >> 13;
    return ((float)(h >> 8) / 8388608.0f - 1.0f) * (1.0f + (float)(rank % 3)) + 0.25f;
}
static void fill(int ranks, size_t n) {
    for (int r = 0; r < ranks; r++)
        for (size_t i = 0; i < n; i++) in[r][i] = value(r, i);
}
static int run(const cg_exchange_desc *desc, int ranks, size_t n, int which) {
    float *x[MOST] = { NULL };
    for (int r = 0; r < ranks; r++) {
        memcpy(grad[r], in[r], 4 * n);
        x[r] = grad[r];
    }
    sim_open(&world, ranks, which, 0, desc, x, n);
    if (desc->carry)
        for (int r = 1; r < ranks; r++) world.rank[r].desc.carry = NULL;
    sim_run(&world);
    for (int r = 0; r < ranks; r++) {
        const cg_report *p = &world.rank[r].report;
        if (world.rank[r].status != CG_OK || world.stuck) {
            snprintf(note, sizeof note, "rank %d of %d: %s", r, ranks, p->why);
            return 0;
        }
        if (cg_used_decode(NULL, p->used, p->used_len, 1.0f, 0.0f, decoded[r], n) != CG_OK) return 0;
        if (r && memcmp(grad[r], grad[0], 4 * n)) {
            snprintf(note, sizeof note, "ranks 0 and %d have other results", r);
            return 0;
        }
    }
    return 1;
}
static int ascending(const void *a, const void *b) {
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}
/* Of one coordinate. */
static float trimmed(float *v, int ranks, int cut) {
    double sum = 0.0;
    qsort(v, (size_t)ranks, sizeof *v, ascending);
    for (int r = cut; r < ranks - cut; r++) sum += (double)v[r];
    return (float)(sum / (ranks - 2 * cut));
}
static double norm(const float *v, size_t n) {
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) sum += (double)v[i] * (double)v[i];
    return sqrt(sum);
}
static double median_norm(int ranks, size_t n) {
    float norms[MOST];
    for (int r = 0; r < ranks; r++) norms[r] = (float)norm(decoded[r], n);
    qsort(norms, (size_t)ranks, sizeof *norms, ascending);
    return (double)norms[(ranks - 1) / 2];
}

TEST as_in_plain_c(const char *op, uint32_t route, uint32_t fold, float limit, int ranks, size_t n, int which) {
    cg_exchange_desc desc = CG_ZERO;
    double longest;
    snprintf(note, sizeof note, "%s, fold %u, %d ranks, n %zu", op, (unsigned)fold, ranks, n);
    ASSERT_EQ(CG_OK, cg_op_parse(&desc.op, op));
    desc.route = route;
    desc.fold = fold;
    desc.fold_limit = limit;
    desc.flags = CG_FEEDS_BACK;
    desc.tag.seed = 5;
    fill(ranks, n);
    ASSERTm(note, run(&desc, ranks, n, which));
    longest = (limit > 0.0f ? (double)limit : 1.0) * median_norm(ranks, n);
    for (size_t i = 0; i < n; i++) {
        float v[MOST], want;
        double sum = 0.0;
        for (int r = 0; r < ranks; r++) {
            const double length = norm(decoded[r], n);
            v[r] = decoded[r][i];
            sum += (length > longest ? longest / length : 1.0) * (double)v[r] / ranks;
        }
        if (fold == CLIPPED) {
            ASSERT_IN_RANGEm(note, sum, (double)grad[0][i], 1e-6 * (1.0 + fabs(sum)));
            continue;
        }
        want = trimmed(v, ranks,
            fold == MEDIAN         ? (ranks - 1) / 2
                : ranks * 0.25 < 1 ? 1
                                   : (int)(ranks * (limit > 0.0f ? (double)limit : 0.25)));
        ASSERT_EQm(note, want, grad[0][i]);
    }
    sim_close(&world);
    PASS();
}

/* Two ranks of eight, or one, send whatever they like: huge values, the opposite, or all the same. */
TEST liars(uint32_t route, uint32_t fold, int many, int lie) {
    enum { RANKS = 8 };
    cg_exchange_desc desc = CG_ZERO;
    double longest = 0.0, off = 0.0;
    desc.op = cg_dense();
    desc.route = route;
    desc.fold = fold;
    fill(RANKS, N);
    for (int r = 8 - many; r < RANKS; r++)
        for (size_t i = 0; i < N; i++)
            in[r][i] = lie == 0 ? (i % 2 ? 1e38f : -1e38f) : lie == 1 ? -100.0f * in[r - 3][i] : 3.0f;
    ASSERTm(note, run(&desc, RANKS, N, SIM_SENDRECV));
    for (int r = 0; r < RANKS - many; r++) longest = norm(in[r], N) > longest ? norm(in[r], N) : longest;
    for (size_t i = 0; i < N; i++) {
        float low = in[0][i], high = in[0][i];
        double honest = 0.0;
        for (int r = 0; r < RANKS - many; r++) {
            const double length = norm(in[r], N), most = median_norm(RANKS, N);
            low = in[r][i] < low ? in[r][i] : low;
            high = in[r][i] > high ? in[r][i] : high;
            honest += (length > most ? most / length : 1.0) * (double)in[r][i] / RANKS;
        }
        if (fold != CLIPPED) ASSERTm("a value that no honest rank has", grad[0][i] >= low && grad[0][i] <= high);
        off += ((double)grad[0][i] - honest) * ((double)grad[0][i] - honest);
    }
    /* all that liars can add is their share of a vector as long as the median of all norms, which is not longer than
       the longest honest one */
    if (fold == CLIPPED) ASSERT(sqrt(off) <= 1.001 * many / RANKS * longest);
    if (lie == 0) { /* what the test is about: the plain mean is spoiled */
        sim_close(&world);
        desc.fold = CG_FOLD_MEAN;
        ASSERT(run(&desc, RANKS, N, SIM_SENDRECV));
        ASSERT(norm(grad[0], N) > 1e30);
    }
    sim_close(&world);
    PASS();
}

/* The leader adds what its second leg has lost before to the fold, and keeps what it loses now. */
TEST second_leg(uint32_t fold) {
    cg_exchange_desc desc = CG_ZERO;
    cg_op back;
    static float before[N];
    ASSERT_EQ(CG_OK, cg_op_parse(&desc.op, "absmax:8:512"));
    ASSERT_EQ(CG_OK, cg_op_parse(&back, "efsign"));
    desc.route = SERVER;
    desc.fold = fold;
    desc.back = &back;
    desc.carry = carry;
    desc.flags = CG_FEEDS_BACK;
    for (size_t i = 0; i < N; i++) before[i] = carry[i] = 0.01f * value(20, i);
    fill(5, N);
    ASSERTm(note, run(&desc, 5, N, SIM_SENDRECV));
    for (size_t i = 0; i < N; i++) {
        float v[MOST];
        double clip = 0.0;
        for (int r = 0; r < 5; r++) {
            const double length = norm(decoded[r], N), most = median_norm(5, N);
            v[r] = decoded[r][i];
            clip += (length > most ? most / length : 1.0) * (double)v[r] / 5;
        }
        ASSERT_IN_RANGE((fold == CLIPPED ? clip : (double)trimmed(v, 5, fold == MEDIAN ? 2 : 1)) + (double)before[i],
            (double)grad[0][i] + (double)carry[i], 2e-6);
    }
    ASSERT(grad[0][0] == grad[0][1] || grad[0][0] == -grad[0][1]); /* one magnitude came back */
    sim_close(&world);
    PASS();
}

TEST refused(const char *op, uint32_t route, uint32_t fold, float limit, float weight, int ranks, const char *word) {
    cg_exchange_desc desc = CG_ZERO;
    float *x[MOST] = { NULL };
    ASSERT_EQ(CG_OK, cg_op_parse(&desc.op, op));
    desc.route = route;
    desc.fold = fold;
    desc.fold_limit = limit;
    desc.weight = weight;
    desc.flags = CG_FEEDS_BACK;
    fill(ranks, N);
    for (int r = 0; r < ranks; r++) x[r] = in[r];
    sim_open(&world, ranks, SIM_ALL, 0, &desc, x, N);
    sim_run(&world);
    for (int r = 0; r < ranks; r++) {
        ASSERT(world.rank[r].status == CG_E_UNSUPPORTED || world.rank[r].status == CG_E_ARG);
        ASSERTm(world.rank[r].report.why, strstr(world.rank[r].report.why, word));
    }
    sim_close(&world);
    PASS();
}
/* Ranks that do not agree on the limit are told. */
TEST limits_differ(void) {
    cg_exchange_desc desc = CG_ZERO;
    float *x[4];
    desc.op = cg_dense();
    desc.fold = TRIMMED;
    fill(4, N);
    for (int r = 0; r < 4; r++) x[r] = in[r];
    sim_open(&world, 4, SIM_SENDRECV, 0, &desc, x, N);
    world.rank[2].desc.fold_limit = 0.3f;
    sim_run(&world);
    for (int r = 0; r < 4; r++) ASSERT_EQ(CG_E_MISMATCH, world.rank[r].status);
    sim_close(&world);
    PASS();
}
/* A failure at every message: nobody has stepped, or all have. */
TEST failures(uint32_t route, uint32_t fold) {
    cg_exchange_desc desc = CG_ZERO;
    float *x[4];
    int ended = 0;
    desc.op = cg_absmax(8, 512);
    desc.route = route;
    desc.fold = fold;
    desc.flags = CG_CONFIRM;
    for (int io = 0; !ended; io++) {
        fill(4, N);
        for (int r = 0; r < 4; r++) {
            memcpy(grad[r], in[r], sizeof grad[r]);
            x[r] = grad[r];
        }
        sim_open(&world, 4, SIM_SENDRECV, 0, &desc, x, N);
        world.fail_rank = 1;
        world.fail_io = io;
        world.fail_code = 7;
        sim_run(&world);
        ended = io >= world.rank[1].ios;
        for (int r = 0; r < 4; r++)
            if (world.rank[r].status != CG_OK) ASSERT_MEM_EQ(in[r], grad[r], sizeof in[r]);
        if (!ended) ASSERT_EQ(CG_E_TRANSPORT, world.rank[1].status);
        sim_close(&world);
    }
    PASS();
}

SUITE(robust) {
    static const struct {
        const char *op;
        int clipped_only;
    } ops[] = { { "dense", 0 }, { "absmax:8:512", 0 }, { "efsign", 0 }, { "randk:0.5", 0 }, { "eden:4", 0 },
        { "topk:0.1", 1 }, { "topk:0.1|absmax:4:64|golomb", 1 }, { "randk:0.3:private", 1 }, { "terngrad", 0 } };
    static const size_t sizes[] = { 0, 1, 63, 65, N };
    for (size_t o = 0; o < sizeof ops / sizeof ops[0]; o++)
        for (int ranks = 1; ranks <= MOST; ranks += 1 + ranks / 4)
            for (size_t s = 0; s < 5; s++)
                for (uint32_t fold = ops[o].clipped_only ? CLIPPED : MEDIAN; fold <= CLIPPED; fold++) {
                    const uint32_t route = (ranks + (int)s) % 2 ? AG : SERVER;
                    const int which = s % 2 ? SIM_ALL : SIM_SENDRECV;
                    const float limit = fold == CLIPPED && s % 3 == 1 ? 1.5f
                        : fold == TRIMMED && ranks > 3                ? 0.4f
                                                                      : 0.0f;
                    if (fold == TRIMMED && ranks < 3) continue;
                    if (sizes[s] == 1 && o == 8) continue; /* one value of terngrad is its own maximum */
                    RUN_TESTp(as_in_plain_c, ops[o].op, route, fold, limit, ranks, sizes[s], which);
                }
    for (uint32_t fold = MEDIAN; fold <= CLIPPED; fold++) {
        for (int lie = 0; lie < 3; lie++) {
            RUN_TESTp(liars, AG, fold, 1 + lie % 2, lie);
            RUN_TESTp(liars, SERVER, fold, 2, lie);
        }
        RUN_TEST1(second_leg, fold);
        RUN_TESTp(failures, AG, fold);
        RUN_TESTp(failures, SERVER, fold);
        RUN_TESTp(refused, "dense", SCATTER, fold, 0.0f, 0.0f, 4, "allgather or server");
        RUN_TESTp(refused, "dense", LINEAR, fold, 0.0f, 0.0f, 4, "allgather or server");
        RUN_TESTp(refused, "dense", AG, fold, 0.0f, 2.0f, 4, "weights");
        RUN_TESTp(refused, "dense", AG, fold, -1.0f, 0.0f, 4, "fold_limit");
        RUN_TESTp(refused, "dense", AG, fold, NAN, 0.0f, 4, "fold_limit");
        RUN_TESTp(refused, "dense", AG, fold, INFINITY, 0.0f, 4, "fold_limit");
    }
    RUN_TESTp(refused, "dense", AG, MEDIAN, 0.5f, 0.0f, 4, "fold_limit");
    RUN_TESTp(refused, "dense", AG, TRIMMED, 0.5f, 0.0f, 4, "below 0.5");
    RUN_TESTp(refused, "dense", AG, TRIMMED, 0.0f, 0.0f, 2, "3 ranks");
    RUN_TESTp(refused, "topk:0.1", AG, MEDIAN, 0.0f, 0.0f, 4, "clipped");
    RUN_TESTp(refused, "permk:2", AG, TRIMMED, 0.0f, 0.0f, 4, "clipped");
    RUN_TESTp(refused, "randk:0.3:private", AG, MEDIAN, 0.0f, 0.0f, 4, "clipped");
    RUN_TESTp(refused, "dense", AG, (uint32_t)CG_FOLD_MEAN, 0.5f, 0.0f, 4, "fold_limit");
    RUN_TEST(limits_differ);
}

GREATEST_MAIN_DEFS();
int main(int argc, char **argv) {
    GREATEST_MAIN_BEGIN();
    RUN_SUITE(robust);
    GREATEST_MAIN_END();
}
