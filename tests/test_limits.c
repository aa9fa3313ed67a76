/* Where an exchange ends: more ranks than a refused one has memory to speak to, sums beyond the largest float,
   weights next to nothing, and a leader that lies. */
#include "greatest.h"
#undef COMPGRAD_LINKED /* private names: a copy of its own */
#define COMPGRAD_STATIC
#define COMPGRAD_NO_SIMD /* nothing here depends on it, and it is quicker to build */
#define COMPGRAD_IMPLEMENTATION
#include "sim.h"

enum { N = 1000 };
static sim s;
static float store[SIM_MOST][N], before[SIM_MOST][N];
static float *x[SIM_MOST];

static void fill(int ranks) {
    for (int r = 0; r < ranks; r++) {
        x[r] = store[r];
        for (size_t i = 0; i < N; i++) store[r][i] = (float)((int)((i + 3) * (size_t)(r + 2) * 7919 % 401) - 200);
        memcpy(before[r], store[r], sizeof store[r]);
    }
}
static int unchanged(int r) { return memcmp(store[r], before[r], sizeof store[r]) == 0; }

/* Refused is only the rank that would have to remember: it tells the others, of however many. */
TEST a_refused_rank_speaks(int ranks) {
    const cg_op back = cg_efsign();
    cg_exchange_desc desc = CG_ZERO;
    desc.op = cg_topk(0.1f);
    desc.back = &back;
    desc.route = CG_ROUTE_SERVER;
    fill(ranks);
    sim_open(&s, ranks, SIM_SENDRECV, 0, &desc, x, N);
    sim_run(&s);
    ASSERT_EQ(0, s.stuck);
    for (int r = 0; r < ranks; r++) {
        ASSERT_EQ_FMT((int)(r ? CG_E_PEER : CG_E_UNSUPPORTED), (int)s.rank[r].status, "%d");
        ASSERT_EQ(0, s.rank[r].report.rank);
        ASSERT(unchanged(r));
    }
    sim_close(&s);
    PASS();
}
TEST a_wrong_weight_is_heard_of(int ranks, float weight) {
    cg_exchange_desc desc = CG_ZERO;
    desc.op = cg_absmax(8, 64);
    desc.route = CG_ROUTE_RING;
    desc.weight = 1.0f;
    fill(ranks);
    sim_open(&s, ranks, SIM_ALL, 0, &desc, x, N);
    s.rank[1].desc.weight = weight;
    sim_run(&s);
    ASSERT_EQ(0, s.stuck);
    for (int r = 0; r < ranks; r++) {
        ASSERT_EQ_FMT((int)(r == 1 ? CG_E_ARG : CG_E_PEER), (int)s.rank[r].status, "%d");
        ASSERT_EQ(1, s.rank[r].report.rank);
        ASSERT(unchanged(r));
    }
    sim_close(&s);
    PASS();
}
/* The mean of two large values is a float, but their sum is not: an error everywhere, and no wrong mean. */
TEST sums_too_large(const char *op, uint32_t route, uint32_t fold, int ranks) {
    cg_exchange_desc desc = CG_ZERO;
    ASSERT_EQ(CG_OK, cg_op_parse(&desc.op, op));
    desc.route = route;
    desc.fold = fold;
    fill(ranks);
    for (int r = 0; r < ranks; r++) store[r][500] = before[r][500] = 3e38f;
    sim_open(&s, ranks, SIM_SENDRECV, 0, &desc, x, N);
    sim_run(&s);
    ASSERT_EQ(0, s.stuck);
    for (int r = 0; r < ranks; r++) {
        ASSERTm(op, s.rank[r].status == CG_E_NONFINITE || s.rank[r].status == CG_E_PEER);
        ASSERTm(op, unchanged(r));
    }
    sim_close(&s);
    PASS();
}
TEST contributors_of_permk(void) {
    cg_exchange_desc desc = CG_ZERO;
    desc.op = cg_permk(4);
    desc.fold = CG_FOLD_CONTRIBUTORS;
    fill(4);
    sim_open(&s, 4, SIM_ALL, 0, &desc, x, N);
    sim_run(&s);
    for (int r = 0; r < 4; r++) ASSERT_EQ(CG_E_UNSUPPORTED, s.rank[r].status);
    sim_close(&s);
    PASS();
}

/* A leader that sends, under a right checksum, indices of another kind: those who get it refuse it. */
static uint8_t lie[1 << 14];
static size_t lie_len;
static void swap_indices(sim *all, int rank) {
    cg_exchange_state *e = &all->rank[0].state;
    if (rank != 0 || e->co.phase != 2 || all->rank[0].io.kind != CG_IO_BROADCAST) return;
    if (all->rank[0].io.in == (void *)e->note.in) {
        memcpy(e->reduced.packet, lie, lie_len);
        cg_note_put_(e, e->note.in, 0, lie_len, CG_ROUND_REDUCED_);
    } else {
        cg_ex_fail_(e, CG_E_STATE, 0, "done with it"); /* it need not believe itself */
    }
}
TEST a_leader_that_lies(const char *op) {
    static uint8_t scratch[1 << 20];
    static float last[N];
    cg_exchange_desc desc = CG_ZERO;
    cg_op other;
    desc.op = cg_dgc(0.1f); /* whose length is announced */
    desc.route = CG_ROUTE_SHARED;
    desc.leader = 1;
    last[N - 1] = 100.0f; /* of the DCT's 64 frequencies some are beyond N */
    ASSERT_EQ(CG_OK, cg_op_parse(&other, op));
    ASSERT_EQ(CG_OK, cg_compress(&other, &desc.tag, last, N, lie, sizeof lie, &lie_len, scratch, sizeof scratch));
    fill(3);
    sim_open(&s, 3, SIM_ALL, 1, &desc, x, N);
    s.after = swap_indices;
    sim_run(&s);
    ASSERT_EQ(0, s.stuck);
    for (int r = 1; r < 3; r++) {
        ASSERT_EQ_FMT((int)CG_E_MISMATCH, (int)s.rank[r].status, "%d");
        ASSERT_EQ(0, s.rank[r].report.rank);
        ASSERT(unchanged(r));
    }
    sim_close(&s);
    PASS();
}

/* An owner's lists have room for what all ranks may send, and a packet can say that it has more. */
TEST a_packet_with_too_many(uint32_t route) {
    static uint8_t scratch[1 << 20], many[1 << 14];
    const cg_op all = cg_threshold(0.0f);
    cg_exchange_desc desc = CG_ZERO;
    size_t len, kept, lost;
    cg_exchange_state *e;
    desc.op = cg_topk(0.01f);
    desc.route = route;
    fill(2);
    sim_open(&s, 2, SIM_ALL, 1, &desc, x, N);
    e = &s.rank[0].state;
    s.rank[0].bytes = cg_exchange_memory(&desc, &s.rank[0].transport, N);
    s.rank[0].mem = malloc(s.rank[0].bytes);
    ASSERT_EQ(CG_OK, cg_exchange_start(e, &desc, &s.rank[0].transport, x[0], N, s.rank[0].mem, s.rank[0].bytes));
    ASSERT_EQ(CG_OK, cg_compress(&all, &desc.tag, x[0], N, many, sizeof many, &len, scratch, sizeof scratch));
    ASSERT(e->mem.list_cap < 100);
    ASSERT_EQ(CG_E_CORRUPT,
        cg_threshold_split_(
            e, many, len, N, 1, 0, desc.tag, e->reduced.packet, &kept, e->dropped.buf[0], e->dropped.cap, 0, &lost));
    sim_close(&s);
    PASS();
}

GREATEST_MAIN_DEFS();
int main(int argc, char **argv) {
    GREATEST_MAIN_BEGIN();
    RUN_TESTp(a_refused_rank_speaks, 3);
    RUN_TESTp(a_refused_rank_speaks, 16);
    RUN_TESTp(a_refused_rank_speaks, 17);
    RUN_TESTp(a_refused_rank_speaks, 20);
    RUN_TESTp(a_wrong_weight_is_heard_of, 3, 1e-40f);
    RUN_TESTp(a_wrong_weight_is_heard_of, 19, -1.0f);
    for (int ranks = 2; ranks <= 5; ranks++) {
        RUN_TESTp(sums_too_large, "dense", (uint32_t)CG_ROUTE_RING, (uint32_t)CG_FOLD_MEAN, ranks);
        RUN_TESTp(sums_too_large, "dense", (uint32_t)CG_ROUTE_TREE, (uint32_t)CG_FOLD_MEAN, ranks);
        for (uint32_t route = CG_ROUTE_RING; route <= CG_ROUTE_MERGE; route++)
            RUN_TESTp(sums_too_large, "topk:0.1", route, (uint32_t)CG_FOLD_MEAN, ranks);
        RUN_TESTp(sums_too_large, "topk:0.1", (uint32_t)CG_ROUTE_REGION, (uint32_t)CG_FOLD_MEAN, ranks);
        RUN_TESTp(sums_too_large, "topk:0.1", (uint32_t)CG_ROUTE_ALLGATHER, (uint32_t)CG_FOLD_CONTRIBUTORS, ranks);
    }
    RUN_TESTp(sums_too_large, "dense", (uint32_t)CG_ROUTE_LINEAR, (uint32_t)CG_FOLD_SUM, 3);
    RUN_TESTp(sums_too_large, "topk:0.1", (uint32_t)CG_ROUTE_SHARED, (uint32_t)CG_FOLD_SUM, 3);
    RUN_TEST(contributors_of_permk);
    RUN_TESTp(a_leader_that_lies, "randk:0.05");
    RUN_TESTp(a_leader_that_lies, "demo:0.05");
    RUN_TESTp(a_leader_that_lies, "threshold:1");
    RUN_TESTp(a_packet_with_too_many, (uint32_t)CG_ROUTE_MERGE);
    RUN_TESTp(a_packet_with_too_many, (uint32_t)CG_ROUTE_REGION);
    GREATEST_MAIN_END();
}
