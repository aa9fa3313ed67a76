/* Samples and rotations of each rank's own: which coordinates a rank draws (against the reference, from the packet's
   tag alone), that errors of ranks are independent then, that such packets are never added in their domain, and that
   they are added decoded everywhere else. */
#include <float.h>
#include <math.h>
#include "compgrad_exchange.h"
#include "ref.h"
#include "ops.h"
#include "sim.h"
#include "greatest.h"

enum { N = 3000, RANKS = 8, TRIALS = 24 };
static float x[N], mean[N], y[N];

static cg_op parsed(const char *text) {
    cg_op op;
    char why[200];
    if (cg_op_parse_why(&op, text, why, sizeof why) != CG_OK) {
        fprintf(stderr, "%s: %s\n", text, why);
        exit(2);
    }
    return op;
}
static void fill(float *v, uint64_t state) {
    for (int i = 0; i < N; i++) v[i] = (float)ref_normal(&state);
}
static cg_tag tag_of(uint64_t step, uint32_t rank) {
    const cg_tag tag = { 5, step, 3, rank };
    return tag;
}

/* randk:private takes the reference's coordinates, drawn by hash(shared key, rank), times the stratum's length. */
TEST a_rank_draws_by_its_own_key(void) {
    const cg_op op = cg_private(cg_randk(0.1f));
    fill(x, 1);
    for (uint32_t rank = 0; rank < 3; rank++) {
        const cg_tag tag = tag_of(9, rank);
        const uint64_t k = ref_count(0.1f, 0, N), key = ref_draws(&tag, 1);
        ops_packet pk = ops_pack(&op, &tag, x, N);
        float want[N] = { 0 };
        for (uint64_t j = 0; j < k; j++) {
            uint64_t len, at = ref_draw(key, N, k, j, &len);
            want[at] = ref_mul(x[at], (float)len);
        }
        ASSERT_ENUM_EQ(CG_OK, cg_decompress(pk.p, pk.len, y, N), ops_status);
        ASSERT_MEM_EQ(want, y, sizeof want);
        /* the decoder knows the rank from the packet: with another one there, values come out elsewhere */
        ref_put(pk.p + 124, rank + 1, 4);
        ref_seal(pk.p, pk.len);
        ASSERT_ENUM_EQ(CG_OK, cg_decompress(pk.p, pk.len, y, N), ops_status);
        ASSERT(memcmp(want, y, sizeof want));
        free(pk.p);
    }
    PASS();
}
TEST a_rotation_of_its_own_is_undone(void) {
    const cg_op own = cg_private(cg_rotate(3)), common = cg_rotate(3);
    unsigned char bits[2][3][2];
    fill(x, 2);
    for (uint32_t rank = 0; rank < 2; rank++) {
        const cg_tag tag = tag_of(4, rank);
        ops_packet a = ops_pack(&own, &tag, x, N), b = ops_pack(&common, &tag, x, N);
        double error = 0, size = 0;
        ASSERT_ENUM_EQ(CG_OK, cg_decompress(a.p, a.len, y, N), ops_status);
        for (int i = 0; i < N; i++) {
            error += ((double)x[i] - (double)y[i]) * ((double)x[i] - (double)y[i]);
            size += (double)x[i] * (double)x[i];
        }
        ASSERT(error < 1e-12 * size);
        memcpy(bits[rank][0], a.p + 168, 2);
        memcpy(bits[rank][1], b.p + 168, 2);
        free(a.p);
        free(b.p);
    }
    ASSERT(memcmp(bits[0][0], bits[1][0], 2)); /* private: other values */
    ASSERT_MEM_EQ(bits[0][1], bits[1][1], 2);  /* common: the same */
    PASS();
}

/* |mean over ranks of D(x) - x|^2 / |x|^2, of one vector that all ranks have, over TRIALS steps. */
static double error_of_mean(const cg_op *op, int ranks) {
    double sum = 0, size = 0;
    for (int t = 0; t < TRIALS; t++) {
        memset(mean, 0, sizeof mean);
        for (int r = 0; r < ranks; r++) {
            const cg_tag tag = tag_of((uint64_t)t, (uint32_t)r);
            ops_packet pk = ops_pack(op, &tag, x, N);
            if (cg_decompress_add(pk.p, pk.len, 1.0f / (float)ranks, mean, N) != CG_OK) exit(2);
            free(pk.p);
        }
        for (int i = 0; i < N; i++) {
            sum += ((double)mean[i] - (double)x[i]) * ((double)mean[i] - (double)x[i]);
            size += (double)x[i] * (double)x[i];
        }
    }
    return sum / size;
}
/* The error falls as 1/W where draws are private, and stays where they are common. */
TEST the_error_of_the_mean_falls(const char *own, const char *common) {
    const cg_op mine = parsed(own), all = parsed(common);
    double one, first;
    fill(x, 3);
    one = error_of_mean(&mine, 1);
    first = error_of_mean(&all, 1);
    ASSERT_IN_RANGE(first, one, 0.1 * first); /* of one rank it is the same */
    for (int w = 2; w <= RANKS; w *= 2) {
        ASSERT_IN_RANGE(1.0, error_of_mean(&mine, w) * w / one, 0.1);
        ASSERT(error_of_mean(&all, w) > 0.97 * first);
    }
    PASS();
}

/* cg_reduce: the sum of the decoded packets, in rank order, as a dense packet; sums of sums, too. */
TEST packets_are_added_decoded(const char *text) {
    const cg_op op = parsed(text), dense = cg_dense();
    const void *packets[4], *pair[2];
    size_t lens[4], pair_lens[2], bound, need, len;
    ops_packet pk[4];
    float sum[N] = { 0 };
    unsigned char *out, *scratch;
    cg_info info;
    for (uint32_t r = 0; r < 4; r++) {
        const cg_tag tag = tag_of(1, r);
        fill(x, 10 + r);
        pk[r] = ops_pack(r == 2 ? &dense : &op, &tag, x, N); /* the third may be any packet of this vector */
        packets[r] = pk[r].p;
        lens[r] = pk[r].len;
        ASSERT_ENUM_EQ(CG_OK, cg_decompress_add(pk[r].p, pk[r].len, 1.0f, sum, N), ops_status);
    }
    ASSERT_ENUM_EQ(CG_OK, cg_reduce_plan(packets, lens, 4, &bound, &need), ops_status);
    out = (unsigned char *)malloc(bound + 1);
    scratch = (unsigned char *)malloc(need + 1);
    ASSERT_ENUM_EQ(CG_OK, cg_reduce(packets, lens, 4, out + 1, bound, &len, scratch, need), ops_status);
    ASSERT_ENUM_EQ(CG_OK, cg_inspect(out + 1, len, &info), ops_status);
    ASSERT(!info.op.sample.id && !info.op.transform.id && info.k == N);
    ASSERT_ENUM_EQ(CG_OK, cg_decompress(out + 1, len, y, N), ops_status);
    ASSERT_MEM_EQ(sum, y, sizeof sum);
    ASSERT_ENUM_EQ(CG_E_CAPACITY, cg_reduce(packets, lens, 4, out, bound - 4, &len, scratch, need), ops_status);
    /* ((0 + 1) + 2) + 3 */
    ASSERT_ENUM_EQ(CG_OK, cg_reduce(packets, lens, 3, out, bound, &len, scratch, need), ops_status);
    pair[0] = out;
    pair_lens[0] = len;
    pair[1] = packets[3];
    pair_lens[1] = lens[3];
    {
        unsigned char *again = (unsigned char *)malloc(bound);
        ASSERT_ENUM_EQ(CG_OK, cg_reduce(pair, pair_lens, 2, again, bound, &len, scratch, need), ops_status);
        ASSERT_ENUM_EQ(CG_OK, cg_decompress(again, len, y, N), ops_status);
        ASSERT_MEM_EQ(sum, y, sizeof sum);
        free(again);
    }
    ref_put(pk[1].p + 112, 2, 8); /* another step */
    ref_seal(pk[1].p, pk[1].len);
    ASSERT_ENUM_EQ(CG_E_MISMATCH, cg_reduce(packets, lens, 4, out, bound, &len, scratch, need), ops_status);
    for (int r = 0; r < 4; r++) free(pk[r].p);
    free(out);
    free(scratch);
    PASS();
}
/* Sums that leave the range of floats saturate. */
TEST sums_saturate(void) {
    const cg_op op = parsed("randk:0.5:private");
    const void *packets[3];
    size_t lens[3], bound, need, len;
    ops_packet pk[3];
    unsigned char *out;
    for (int i = 0; i < N; i++) x[i] = 3e38f;
    for (uint32_t r = 0; r < 3; r++) {
        const cg_tag tag = tag_of(1, r);
        pk[r] = ops_pack(&op, &tag, x, N);
        packets[r] = pk[r].p;
        lens[r] = pk[r].len;
    }
    ASSERT_ENUM_EQ(CG_OK, cg_reduce_plan(packets, lens, 3, &bound, &need), ops_status);
    out = (unsigned char *)malloc(bound);
    ASSERT_ENUM_EQ(CG_OK, cg_reduce(packets, lens, 3, out, bound, &len, NULL, 0), ops_status);
    ASSERT_ENUM_EQ(CG_OK, cg_decompress(out, len, y, N), ops_status);
    for (int i = 0; i < N; i++) ASSERT(y[i] == 0 || y[i] == FLT_MAX || y[i] == 3e38f);
    for (int r = 0; r < 3; r++) free(pk[r].p);
    free(out);
    PASS();
}

/* One exchange of five ranks with vectors of their own; *s is closed by the caller. */
static float vectors[5][N];
static void run(sim *s, const cg_exchange_desc *desc) {
    float *at[5];
    for (int r = 0; r < 5; r++) {
        fill(vectors[r], 20 + (uint64_t)r);
        at[r] = vectors[r];
    }
    sim_open(s, 5, SIM_ALL, 1, desc, at, N);
    sim_run(s);
}
/* Routes that compress every vector whole have the mean of the decoded packets; on scatter, where stripes are
   compressed, this is so of operators that lose nothing. */
TEST a_route_adds_them(uint32_t route, const char *text) {
    cg_exchange_desc desc = CG_ZERO;
    const cg_op dense = cg_dense();
    static sim s;
    desc.op = parsed(text);
    desc.back = route == CG_ROUTE_SERVER || route == CG_ROUTE_SCATTER ? &dense : NULL;
    desc.route = route;
    desc.tag = tag_of(6, 0);
    run(&s, &desc);
    memset(mean, 0, sizeof mean);
    for (uint32_t r = 0; r < 5; r++) {
        const cg_tag tag = tag_of(6, r);
        ops_packet pk;
        fill(x, 20 + r);
        pk = ops_pack(&desc.op, &tag, x, N);
        ASSERT_ENUM_EQ(CG_OK, cg_decompress_add(pk.p, pk.len, 0.2f, mean, N), ops_status);
        free(pk.p);
    }
    for (int r = 0; r < 5; r++) {
        ASSERT_ENUM_EQ(CG_OK, s.rank[r].status, ops_status);
        ASSERT_MEM_EQ(vectors[0], vectors[r], sizeof vectors[0]);
    }
    for (int i = 0; i < N; i++) ASSERT_IN_RANGE(mean[i], vectors[0][i], 1e-4 * (1 + fabs((double)mean[i])));
    sim_close(&s);
    PASS();
}
TEST re_encoding_routes_take_them(uint32_t route) {
    cg_exchange_desc desc = CG_ZERO;
    static sim s;
    desc.op = parsed("randk:0.5:private|absmax:8:64");
    desc.route = route;
    run(&s, &desc);
    for (int r = 0; r < 5; r++) {
        ASSERT_ENUM_EQ(CG_OK, s.rank[r].status, ops_status);
        ASSERT_MEM_EQ(vectors[0], vectors[r], sizeof vectors[0]);
    }
    sim_close(&s);
    PASS();
}
TEST refused(const char *text, uint32_t route, uint32_t fold, uint32_t flags, const char *why) {
    cg_exchange_desc desc = CG_ZERO;
    static sim s;
    desc.op = parsed(text);
    desc.route = route;
    desc.fold = (cg_fold)fold;
    desc.flags = flags;
    run(&s, &desc);
    for (int r = 0; r < 5; r++) {
        ASSERT_ENUM_EQ(CG_E_UNSUPPORTED, s.rank[r].status, ops_status);
        ASSERT(strstr(s.rank[r].report.why, why));
    }
    sim_close(&s);
    PASS();
}
TEST auto_never_chooses_linear(const char *text) {
    cg_exchange_desc desc = CG_ZERO;
    static sim s;
    desc.op = parsed(text);
    run(&s, &desc);
    for (int r = 0; r < 5; r++) {
        ASSERT_ENUM_EQ(CG_OK, s.rank[r].status, ops_status);
        ASSERT(s.rank[r].report.route != CG_ROUTE_LINEAR);
    }
    sim_close(&s);
    PASS();
}
TEST texts_and_functions_are_the_same(void) {
    const cg_op both = cg_private(cg_then(cg_randk(0.03f), cg_eden(1)));
    char text[200];
    ASSERT_ENUM_EQ(CG_OK, cg_op_print(&both, text, sizeof text), ops_status);
    ASSERT_STR_EQ("randk:0.03:private|rotate:3:private|lloyd:1", text);
    {
        const cg_op op = parsed("randk:0.03:private|eden:1"), own = cg_then(cg_private(cg_randk(0.03f)), cg_eden(1));
        ASSERT_MEM_EQ(&own, &op, sizeof op);
    }
    for (int i = 0; i < 3; i++) {
        const cg_op without = i == 0 ? cg_permk(4) : i == 1 ? cg_topk(0.1f) : cg_dct(), op = cg_private(without);
        ASSERT_EQ(0u, cg_bound(&op, N));
    }
    PASS();
}

GREATEST_MAIN_DEFS();
int main(int argc, char **argv) {
    static const uint32_t reencode[] = { CG_ROUTE_RING, CG_ROUTE_TREE, CG_ROUTE_SCATTER, CG_ROUTE_SERVER };
    GREATEST_MAIN_BEGIN();
    RUN_TEST(a_rank_draws_by_its_own_key);
    RUN_TEST(a_rotation_of_its_own_is_undone);
    RUN_TESTp(the_error_of_the_mean_falls, "randk:0.1:private", "randk:0.1");
    RUN_TESTp(the_error_of_the_mean_falls, "rotate:3:private|lloyd:1", "rotate:3|lloyd:1");
    RUN_TESTp(the_error_of_the_mean_falls, "randk:0.2:private|rotate:3:private|lloyd:1", "randk:0.2|rotate:3|lloyd:1");
    RUN_TEST1(packets_are_added_decoded, "randk:0.1:private");
    RUN_TEST1(packets_are_added_decoded, "rotate:2:private|absmax:4:64");
    RUN_TEST1(packets_are_added_decoded, "randk:0.3:private|topk:0.2|absmax:4:64");
    RUN_TEST1(packets_are_added_decoded, "randk:0.3|rotate:2:private|lloyd:2");
    RUN_TEST(sums_saturate);
    RUN_TESTp(a_route_adds_them, CG_ROUTE_ALLGATHER, "randk:0.3:private");
    RUN_TESTp(a_route_adds_them, CG_ROUTE_ALLGATHER, "rotate:3:private|absmax:8:64");
    RUN_TESTp(a_route_adds_them, CG_ROUTE_SERVER, "randk:0.3:private|absmax:8:64");
    RUN_TESTp(a_route_adds_them, CG_ROUTE_SCATTER, "rotate:2:private");
    for (size_t i = 0; i < sizeof reencode / sizeof *reencode; i++)
        RUN_TEST1(re_encoding_routes_take_them, reencode[i]);
    RUN_TESTp(refused, "randk:0.1:private", CG_ROUTE_LINEAR, CG_FOLD_MEAN, 0, "private");
    RUN_TESTp(refused, "rotate:2:private", CG_ROUTE_LINEAR, CG_FOLD_MEAN, 0, "private");
    RUN_TESTp(refused, "randk:0.1:private|topk:0.1", CG_ROUTE_ALLGATHER, CG_FOLD_CONTRIBUTORS, 0, "private");
    RUN_TESTp(refused, "randk:0.1:private|sign", CG_ROUTE_ALLGATHER, CG_FOLD_VOTE, 0, "in the same places");
    RUN_TESTp(refused, "randk:0.1:private|absmax:4:64", CG_ROUTE_ALLGATHER, CG_FOLD_MEAN, CG_AGREE_SCALES,
        "sample or rotation");
    RUN_TEST1(auto_never_chooses_linear, "randk:0.1:private");
    RUN_TEST1(auto_never_chooses_linear, "rotate:3:private");
    RUN_TEST(texts_and_functions_are_the_same);
    GREATEST_MAIN_END();
}
