/* cg_reduce_scatter and cg_all_gather: every stripe's fold against the decoded contributions of all ranks, for every
   number of ranks and the caller's bounds; one call after the other against the route scatter; what all_gather loses,
   and what its carry keeps; faults and damage at every message; error feedback on the first leg. */
#include <math.h>

#include "greatest.h"
#include "compgrad_ef.h"
#include "ref.h"
#include "short_names.h"
#include "sim.h"

enum { MOST = 16, N = 1500, RSCATTER = CG_ROUTE_REDUCE_SCATTER, ALLGATHERS = CG_ROUTE_ALL_GATHER };
static float in[MOST][N], x[MOST][N], decoded[MOST][N], mine[MOST][N], carry[MOST][N], kept[MOST][N];
static size_t bounds[MOST + 1];
static sim world;
static char note[256];

static cg_op parsed(const char *text) {
    cg_op op;
    if (cg_op_parse(&op, text) != CG_OK) {
        fprintf(stderr, "%s does not parse\n", text);
        exit(2);
    }
    return op;
}
static void fill(int ranks) {
    for (int r = 0; r < ranks; r++) {
        uint64_t state = 77 + (uint64_t)r;
        for (int i = 0; i < N; i++) in[r][i] = (float)ref_normal(&state);
        memcpy(x[r], in[r], sizeof x[r]);
        memset(mine[r], 0x5a, sizeof mine[r]);
    }
}
/* Even stripes for style 0; else stripes of uneven lengths, one of them empty, at multiples of nothing. */
static void cut(int ranks, size_t n, int style) {
    for (int r = 0; r <= ranks; r++) bounds[r] = cg_stripe_begin(n, ranks, r);
    for (int r = 1; style && r < ranks; r++) bounds[r] = n * (size_t)r * (size_t)r / (size_t)(ranks * ranks);
    if (style && ranks > 2) bounds[2] = bounds[1];
}
static void describe(cg_exchange_desc *d, const char *op, uint32_t route) {
    const cg_exchange_desc none = CG_ZERO;
    *d = none;
    d->op = parsed(op);
    d->route = route;
    d->flags = CG_FEEDS_BACK;
    d->tag.seed = 9;
    d->tag.step = 4;
    d->bounds = bounds;
}
static void open_world(const cg_exchange_desc *d, int ranks, size_t n, int which, int apart) {
    float *v[MOST];
    for (int r = 0; r < ranks; r++) v[r] = x[r];
    sim_open(&world, ranks, which, 0, d, v, n);
    for (int r = 0; r < ranks && apart; r++) world.rank[r].desc.mine = mine[r];
}
static int all_are(int ranks, cg_status status) {
    for (int r = 0; r < ranks; r++)
        if (world.rank[r].status != status || world.stuck) {
            snprintf(note, sizeof note, "rank %d: status %d, %s, stuck %d", r, (int)world.rank[r].status,
                world.rank[r].report.why, world.stuck);
            return 0;
        }
    return 1;
}

TEST folds_of_stripes(const char *op, uint32_t fold, int ranks, size_t n, int style, int weighted, int apart) {
    static const float w[] = { 1.0f, 2.0f, 0.5f, 3.0f };
    cg_exchange_desc d;
    double weights = 0;
    describe(&d, op, RSCATTER);
    d.fold = fold;
    cut(ranks, n, style);
    fill(ranks);
    open_world(&d, ranks, n, SIM_SENDRECV, apart);
    for (int r = 0; r < ranks; r++) {
        if (weighted) world.rank[r].desc.weight = w[r % 4];
        weights += weighted ? (double)w[r % 4] : 1.0;
    }
    sim_run(&world);
    ASSERTm(note, all_are(ranks, CG_OK));
    for (int r = 0; r < ranks; r++) {
        const cg_report *p = &world.rank[r].report;
        ASSERT_EQ(CG_OK, cg_used_decode(NULL, p->used, p->used_len, 1.0f, 0.0f, decoded[r], n));
    }
    for (int r = 0; r < ranks; r++) {
        const float *got = apart ? mine[r] : x[r] + bounds[r];
        for (size_t i = bounds[r]; i < bounds[r + 1]; i++) {
            float want = 0;
            double vote = 0;
            for (int q = 0; q < ranks; q++) {
                const float alpha = (float)((weighted ? (double)w[q % 4] : 1.0) / (fold == SUM ? 1.0 : weights));
                want = q ? ref_add(want, ref_mul(alpha, decoded[q][i])) : ref_mul(alpha, decoded[q][i]);
                vote += decoded[q][i] >= 0.0f ? 1 : -1;
            }
            if (fold == VOTE) want = vote >= 0 ? 1.0f : -1.0f;
            ASSERT_EQ(want, got[i - bounds[r]]);
        }
        if (apart) ASSERT_MEM_EQ(in[r], x[r], sizeof in[r]);
        for (size_t i = 0; i < n && !apart; i++) /* nothing else of x is written */
            if (i < bounds[r] || i >= bounds[r + 1]) ASSERT_EQ(in[r][i], x[r][i]);
    }
    sim_close(&world);
    PASS();
}
/* A step of the model, only where this rank has a stripe. */
TEST a_stripe_of_the_model(void) {
    static float model[4][N];
    cg_exchange_desc d;
    describe(&d, "absmax:8:512", RSCATTER);
    cut(4, N, 1);
    fill(4);
    open_world(&d, 4, N, SIM_SENDRECV, 1);
    for (int r = 0; r < 4; r++) {
        for (int i = 0; i < N; i++) model[r][i] = (float)i;
        world.rank[r].desc.model = model[r];
        world.rank[r].desc.rate = 0.5f;
    }
    sim_run(&world);
    ASSERTm(note, all_are(4, CG_OK));
    for (int r = 0; r < 4; r++)
        for (size_t i = 0; i < N; i++) {
            float want = (float)i;
            if (i >= bounds[r] && i < bounds[r + 1]) want = ref_add(want, ref_mul(-0.5f, mine[r][i - bounds[r]]));
            ASSERT_EQ(want, model[r][i]);
        }
    sim_close(&world);
    PASS();
}

TEST stripes_of_all(const char *op, int ranks, size_t n, int style, int carried, int apart, int which) {
    cg_exchange_desc d;
    describe(&d, op, ALLGATHERS);
    cut(ranks, n, style);
    fill(ranks);
    open_world(&d, ranks, n, which, apart);
    for (int r = 0; r < ranks; r++) {
        const size_t len = bounds[r + 1] - bounds[r];
        if (apart) memcpy(mine[r], in[r] + bounds[r], 4 * len);
        for (size_t i = 0; i < len; i++) carry[r][i] = kept[r][i] = carried ? 0.01f * (float)(i % 7) : 0.0f;
        if (carried) world.rank[r].desc.carry = carry[r];
        ASSERT_EQ(len && strcmp(op, "dense") ? len : len,
            cg_exchange_carry(&world.rank[r].desc, &world.rank[r].transport, n));
    }
    sim_run(&world);
    ASSERTm(note, all_are(ranks, CG_OK));
    for (int r = 0; r < ranks; r++) {
        const size_t len = bounds[r + 1] - bounds[r];
        const cg_report *p = &world.rank[r].report;
        ASSERT_MEM_EQ(x[0], x[r], 4 * n); /* the same bits everywhere */
        ASSERT_EQ(CG_OK, cg_used_decode(NULL, p->used, p->used_len, 1.0f, 0.0f, decoded[r], len));
        ASSERT_MEM_EQ(decoded[r], x[0] + bounds[r], 4 * len);
        for (size_t i = 0; i < len && carried; i++) { /* what went in is in the stripe or in the carry */
            const double sent = (double)in[r][bounds[r] + i] + (double)kept[r][i];
            ASSERT_IN_RANGE(sent, (double)x[0][bounds[r] + i] + (double)carry[r][i], 1e-6 * (1 + fabs(sent)));
        }
    }
    sim_close(&world);
    PASS();
}
/* Both calls after each other give what the route scatter gives with the same operators, if the first leg has them. */
TEST two_legs_are_scatter(int ranks) {
    static float both[MOST][N];
    const cg_op dense = cg_dense();
    cg_exchange_desc d;
    describe(&d, "absmax:4:512", RSCATTER);
    cut(ranks, N, 0);
    fill(ranks);
    open_world(&d, ranks, N, SIM_SENDRECV, 1);
    sim_run(&world);
    ASSERTm(note, all_are(ranks, CG_OK));
    sim_close(&world);
    describe(&d, "dense", ALLGATHERS);
    for (int r = 0; r < ranks; r++) memset(x[r], 0, sizeof x[r]);
    open_world(&d, ranks, N, SIM_SENDRECV, 1);
    sim_run(&world);
    ASSERTm(note, all_are(ranks, CG_OK));
    sim_close(&world);
    for (int r = 0; r < ranks; r++) memcpy(both[r], x[r], sizeof x[r]);
    describe(&d, "absmax:4:512", SCATTER);
    d.bounds = NULL;
    d.back = &dense;
    fill(ranks);
    open_world(&d, ranks, N, SIM_SENDRECV, 0);
    sim_run(&world);
    ASSERTm(note, all_are(ranks, CG_OK));
    for (int r = 0; r < ranks; r++) ASSERT_MEM_EQ(x[r], both[r], sizeof x[r]);
    sim_close(&world);
    PASS();
}
/* The calls themselves, with one rank; their memory; what they say. */
TEST calls(void) {
    cg_exchange_desc d = CG_ZERO;
    cg_transport t = CG_ZERO;
    cg_report report;
    size_t bytes, b[2] = { 0, N };
    void *mem;
    t.size = 1;
    d.op = cg_topk(0.1f);
    fill(1);
    bytes = cg_reduce_scatter_memory(&d, &t, N, b);
    ASSERT(bytes > 0);
    mem = malloc(bytes);
    ASSERT_EQ(CG_OK, cg_reduce_scatter(&d, &t, in[0], N, b, mine[0], mem, bytes, &report));
    ASSERT_MEM_EQ(in[0], x[0], sizeof in[0]);
    ASSERT_EQ(CG_OK, cg_used_decode(NULL, report.used, report.used_len, 1.0f, 0.0f, decoded[0], N));
    ASSERT_MEM_EQ(decoded[0], mine[0], sizeof mine[0]);
    ASSERT_EQ(CG_E_ARG, cg_reduce_scatter(&d, &t, in[0], N, b, NULL, mem, bytes, &report));
    ASSERT_STR_EQ("mine is NULL", report.why);
    ASSERT_EQ(CG_E_MEMORY, cg_reduce_scatter(&d, &t, in[0], N, b, mine[0], mem, bytes / 2, &report));
    free(mem);
    bytes = cg_all_gather_memory(&d, &t, N, NULL);
    mem = malloc(bytes);
    ASSERT_EQ(CG_OK, cg_all_gather(&d, &t, in[0], NULL, x[0], N, mem, bytes, &report));
    ASSERT_MEM_EQ(decoded[0], decoded[0], 4);
    ASSERTm(report.why, strstr(report.why, "leaves out") && strstr(report.why, "carry"));
    d.carry = carry[0];
    memset(carry[0], 0, sizeof carry[0]);
    free(mem);
    bytes = cg_all_gather_memory(&d, &t, N, NULL);
    mem = malloc(bytes);
    ASSERT_EQ(CG_OK, cg_all_gather(&d, &t, in[0], NULL, x[0], N, mem, bytes, &report));
    ASSERT_STR_EQ("ok", report.why);
    ASSERT_EQ(CG_E_ARG, cg_all_gather(NULL, &t, in[0], NULL, x[0], N, mem, bytes, &report));
    ASSERT_EQ(0u, cg_all_gather_memory(NULL, &t, N, NULL));
    free(mem);
    PASS();
}
TEST refused(const char *op, uint32_t route, int what, const char *word) {
    const cg_op dense = cg_dense();
    cg_exchange_desc d;
    describe(&d, op, route);
    cut(4, N, 0);
    fill(4);
    if (what == 1) bounds[4] = N - 1;
    if (what == 2) bounds[0] = 1;
    if (what == 3) bounds[2] = N + 5;
    if (what == 4) d.back = &dense;
    if (what == 5) d.weight = 2.0f;
    if (what == 6) d.fold = CG_FOLD_SUM;
    if (what == 7) d.flags |= CG_ABSTAIN;
    if (what == 8) d.flags |= CG_AGREE_SCALES;
    if (what == 9) d.fold = CG_FOLD_MEDIAN;
    if (what == 10) d.bounds = NULL;
    open_world(&d, 4, N, SIM_SENDRECV, what == 10);
    sim_run(&world);
    for (int r = 0; r < 4; r++) {
        ASSERT(world.rank[r].status == CG_E_UNSUPPORTED || world.rank[r].status == CG_E_ARG);
        ASSERTm(world.rank[r].report.why, strstr(world.rank[r].report.why, word));
        ASSERT_MEM_EQ(in[r], x[r], sizeof x[r]);
    }
    sim_close(&world);
    PASS();
}
/* Ranks with other bounds are told; so is everybody of a NaN in one rank's stripe. */
TEST ranks_that_differ(uint32_t route) {
    static size_t others[5];
    cg_exchange_desc d;
    describe(&d, "absmax:4:64", route);
    cut(4, N, 0);
    memcpy(others, bounds, sizeof others);
    others[1]++;
    fill(4);
    open_world(&d, 4, N, SIM_SENDRECV, 0);
    world.rank[2].desc.bounds = others;
    sim_run(&world);
    ASSERTm(note, all_are(4, CG_E_MISMATCH));
    sim_close(&world);
    x[1][bounds[1] + 3] = NAN;
    open_world(&d, 4, N, SIM_SENDRECV, 0);
    sim_run(&world);
    for (int r = 0; r < 4; r++) ASSERT_EQ(r == 1 ? CG_E_NONFINITE : CG_E_PEER, world.rank[r].status);
    ASSERT_EQ(bounds[1] + 3, world.rank[1].report.at);
    sim_close(&world);
    PASS();
}
static void flip(void *user, void *bytes, size_t len, int from) {
    (void)from;
    if (len) ((unsigned char *)bytes)[*(const size_t *)user % len] ^= 0x10;
}
/* A callback that fails, and a changed byte, at every message of a rank: nobody waits for one that is alive, what
   failed has changed nothing, and with CG_CONFIRM damage fails all. */
TEST faults(const char *op, uint32_t route, int carried, int damaged) {
    cg_exchange_desc d;
    int ended = 0;
    describe(&d, op, route);
    d.flags |= CG_CONFIRM;
    cut(3, N, 1);
    for (int io = 0; !ended; io++)
        for (size_t at = 0; at < (damaged ? 60u : 1u); at += 23) {
            int well = 0;
            fill(3);
            open_world(&d, 3, N, SIM_SENDRECV, 0);
            for (int r = 0; r < 3; r++) {
                memset(carry[r], 0, sizeof carry[r]);
                if (carried) world.rank[r].desc.carry = carry[r];
            }
            if (damaged) {
                world.hurt = flip;
                world.hurt_user = &at;
                world.hurt_rank = 1;
                world.hurt_io = io;
            } else {
                world.fail_rank = 1;
                world.fail_io = io;
                world.fail_code = 7;
            }
            sim_run(&world);
            ended = io >= world.rank[1].ios;
            for (int r = 0; r < 3; r++) {
                well += world.rank[r].status == CG_OK;
                if (world.rank[r].status == CG_OK) continue;
                ASSERT_MEM_EQ(in[r], x[r], sizeof x[r]);
                for (int i = 0; i < N; i++) ASSERT_EQ(0.0f, carry[r][i]);
            }
            if (damaged) {
                ASSERT_EQ(0, world.stuck);
                ASSERT(well == 0 || well == 3);
            } else if (!ended) ASSERT_EQ(CG_E_TRANSPORT, world.rank[1].status);
            sim_close(&world);
        }
    PASS();
}

/* Error feedback on the first leg: what is not in the contribution is in the residual, and sooner or later arrives. */
TEST with_error_feedback(void) {
    cg_exchange_desc d = CG_ZERO;
    cg_transport t = CG_ZERO;
    cg_ef_desc e = CG_ZERO;
    cg_ef ef = CG_ZERO;
    cg_report report;
    static double sum[N];
    void *state, *mem;
    size_t bytes;
    t.size = 1;
    e.n = N;
    e.op = cg_topk(0.1f);
    bytes = cg_ef_memory(&e);
    state = malloc(bytes);
    ASSERT_EQ(CG_OK, cg_ef_init(&ef, &e, state, bytes));
    d.route = RSCATTER;
    bytes = cg_ef_exchange_memory(&ef, &d, &t);
    mem = malloc(bytes);
    memset(sum, 0, sizeof sum);
    for (int step = 0; step < 40; step++) {
        fill(1);
        d.tag.step = (uint64_t)step;
        ASSERT_EQ(CG_OK, cg_ef_exchange(&ef, &d, &t, x[0], mem, bytes, &report));
        for (int i = 0; i < N; i++) sum[i] += (double)x[0][i];
    }
    for (int i = 0; i < N; i++) ASSERT_IN_RANGE(40.0 * (double)in[0][i], sum[i] + (double)cg_ef_residual(&ef)[i], 1e-3);
    d.route = ALLGATHERS;
    ASSERT_EQ(CG_E_UNSUPPORTED, cg_ef_exchange(&ef, &d, &t, x[0], mem, bytes, &report));
    ASSERTm(report.why, strstr(report.why, "cg_all_gather"));
    free(mem);
    free(state);
    e.kind = CG_EF_EF21;
    bytes = cg_ef_memory(&e);
    state = malloc(bytes);
    ASSERT_EQ(CG_OK, cg_ef_init(&ef, &e, state, bytes));
    d.route = RSCATTER;
    mem = malloc(1 << 20);
    ASSERT_EQ(CG_E_UNSUPPORTED, cg_ef_exchange(&ef, &d, &t, x[0], mem, 1 << 20, &report));
    ASSERTm(report.why, strstr(report.why, "stripe"));
    free(mem);
    free(state);
    PASS();
}

SUITE(legs) {
    static const int ranks[] = { 1, 2, 3, 4, 5, 7, 8, 16 };
    static const char *const ops[] = { "dense", "absmax:4:64", "topk:0.1", "efsign", "randk:0.3",
        "topk:0.1|absmax:4:64", "rotate:3|absmax:4:64", "qsgd:4", "topk:0.2|golomb", "bf16" };
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++)
        for (size_t o = 0; o < sizeof ops / sizeof *ops; o++) {
            const size_t n = (i + o) % 4 == 3 ? 37 : N;
            const int style = (int)(i + o) % 2;
            RUN_TESTp(folds_of_stripes, ops[o], (uint32_t)(o % 3 == 2), ranks[i], n, style, (int)(o + i) % 3 == 1,
                (int)o % 2);
            RUN_TESTp(stripes_of_all, ops[o], ranks[i], n, style, (int)(o + i) % 3 != 1, (int)o % 2,
                o % 2 ? SIM_SENDRECV : SIM_ALL);
        }
    RUN_TESTp(folds_of_stripes, "sign", (uint32_t)VOTE, 5, (size_t)N, 1, 0, 1);
    RUN_TESTp(folds_of_stripes, "dense", 0, 3, (size_t)0, 0, 0, 1);
    RUN_TESTp(stripes_of_all, "topk:0.1", 3, (size_t)0, 0, 1, 1, SIM_ALLREDUCE);
    RUN_TESTp(stripes_of_all, "absmax:4:64", 5, (size_t)N, 1, 1, 1, SIM_ALLREDUCE);
    RUN_TESTp(stripes_of_all, "topk:0.1|golomb", 5, (size_t)N, 1, 1, 1, SIM_BROADCAST);
    RUN_TEST(a_stripe_of_the_model);
    for (size_t i = 0; i < 7; i++) RUN_TEST1(two_legs_are_scatter, ranks[i]);
    RUN_TEST(calls);
    for (int what = 1; what <= 3; what++) {
        RUN_TESTp(refused, "dense", RSCATTER, what, "bounds must");
        RUN_TESTp(refused, "dense", ALLGATHERS, what, "bounds must");
    }
    RUN_TESTp(refused, "dense", RSCATTER, 4, "back must be NULL");
    RUN_TESTp(refused, "dense", ALLGATHERS, 4, "back must be NULL");
    RUN_TESTp(refused, "dense", ALLGATHERS, 5, "adds nothing");
    RUN_TESTp(refused, "dense", ALLGATHERS, 6, "adds nothing");
    RUN_TESTp(refused, "absmax:4:64", ALLGATHERS, 8, "adds nothing");
    RUN_TESTp(refused, "dense", RSCATTER, 7, "abstain");
    RUN_TESTp(refused, "dense", ALLGATHERS, 7, "abstain");
    RUN_TESTp(refused, "dense", RSCATTER, 9, "allgather or server");
    RUN_TESTp(refused, "permk:4", RSCATTER, 0, "PermK");
    RUN_TESTp(refused, "permk:4", ALLGATHERS, 0, "PermK");
    RUN_TESTp(refused, "dense", SCATTER, 0, "bounds are for");
    RUN_TESTp(refused, "dense", AG, 10, "mine is for");
    RUN_TEST1(ranks_that_differ, RSCATTER);
    RUN_TEST1(ranks_that_differ, ALLGATHERS);
    for (int damaged = 0; damaged < 2; damaged++) {
        RUN_TESTp(faults, "absmax:4:64", RSCATTER, 0, damaged);
        RUN_TESTp(faults, "topk:0.1|golomb", RSCATTER, 0, damaged);
        RUN_TESTp(faults, "absmax:4:64", ALLGATHERS, 1, damaged);
        RUN_TESTp(faults, "topk:0.1|golomb", ALLGATHERS, 1, damaged);
    }
    RUN_TEST(with_error_feedback);
}

GREATEST_MAIN_DEFS();
int main(int argc, char **argv) {
    GREATEST_MAIN_BEGIN();
    RUN_SUITE(legs);
    GREATEST_MAIN_END();
}
