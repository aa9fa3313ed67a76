/* Packets added without leaving their domain: the result is the plain sum in order, the packet a packet like any
   other, and what does not belong together is refused. Votes of signs. */
#define COMPGRAD_IMPLEMENTATION
#include "compgrad.h"
#include "ref.h"
#include "ops.h"
#include "greatest.h"

static char note[256];
static const char *what_op = "";

#define EXPECT(what, cond)                                                             \
  do {                                                                                 \
    if (!(cond)) {                                                                     \
      snprintf(note, sizeof note, "%s: %s, at %lu", what, what_op, (unsigned long)at); \
      FAILm(note);                                                                     \
    }                                                                                  \
  } while (0)

enum { MANY = 1025, VOTERS = 1024 };
/* packets in memory of their exact length */
typedef struct set {
    unsigned char *p[MANY];
    size_t len[MANY], count, n;
} set;

static const void *const *packets(const set *s) {
    static const void *list[MANY];
    size_t i;
    for (i = 0; i < s->count; i++) list[i] = s->p[i];
    return list;
}

static cg_op parsed(const char *text) {
    cg_op op;
    if (cg_op_parse(&op, text) != CG_OK) {
        fprintf(stderr, "does not parse: %s\n", text);
        exit(2);
    }
    return op;
}

static cg_tag tag_of(size_t rank) {
    cg_tag tag = { 3, 5, 7, 0 };
    tag.rank = (uint32_t)rank;
    return tag;
}

static void add_packet(set *s, const cg_op *op, const cg_tag *tag, const cg_extra *side, const float *x, size_t n) {
    ops_packet pk = ops_pack_cap(op, tag, side, x, n, cg_bound(op, n));
    if (pk.status != CG_OK) {
        fprintf(stderr, "%s, n = %lu: %s\n", ops_text(op), (unsigned long)n, ops_status((int)pk.status));
        exit(2);
    }
    s->n = n;
    s->p[s->count] = (unsigned char *)ref_alloc(pk.len);
    memcpy(s->p[s->count], pk.p, pk.len);
    s->len[s->count++] = pk.len;
    free(pk.p);
}

static void drop(set *s) {
    size_t i;
    for (i = 0; i < s->count; i++) free(s->p[i]);
    s->count = 0;
}

/* Reduces into exactly cap bytes and a canary, scratch likewise. */
static ops_packet reduce_cap(const set *s, size_t cap, size_t scratch_bytes) {
    ops_packet r;
    unsigned char *scratch = (unsigned char *)ref_alloc(scratch_bytes + OPS_CANARY);
    size_t i;
    memset(scratch, 0xA5, scratch_bytes + OPS_CANARY);
    r.cap = cap;
    r.p = (unsigned char *)ref_alloc(cap + OPS_CANARY);
    memset(r.p, 0xA5, cap + OPS_CANARY);
    r.len = 12345;
    r.status = cg_reduce(packets(s), s->len, s->count, r.p, cap, &r.len, scratch, scratch_bytes);
    for (i = 0, r.touched = 0; i < OPS_CANARY; i++)
        r.touched |= r.p[cap + i] != 0xA5 || scratch[scratch_bytes + i] != 0xA5;
    free(scratch);
    return r;
}

static ops_packet reduced(const set *s) {
    size_t bound = 0, scratch = 0;
    cg_status status = cg_reduce_plan(packets(s), s->len, s->count, &bound, &scratch);
    ops_packet r;
    memset(&r, 0, sizeof r);
    r.status = status;
    return status == CG_OK ? reduce_cap(s, bound, scratch) : r;
}

/* Which coordinates a packet has values for. */
static int index_set(const unsigned char *p, size_t len, size_t n, unsigned char *has) {
    float *y = (float *)ref_alloc(n * 4);
    size_t i;
    int ok;
    for (i = 0; i < n; i++) y[i] = 1.0f;
    ok = cg_clear(p, len, y, n) == CG_OK;
    for (i = 0; i < n; i++) has[i] = y[i] == 0.0f;
    free(y);
    return ok;
}

/* The plain sum: one packet after the other, where it has values; too large becomes the largest. */
static int plain_sum(const set *s, const cg_extra *side, float *sum, unsigned char *any) {
    float *d = (float *)ref_alloc(s->n * 4);
    unsigned char *has = (unsigned char *)ref_alloc(s->n);
    size_t i, j;
    int ok = 1;
    memset(any, 0, s->n);
    for (i = 0; i < s->n; i++) sum[i] = 0.0f;
    for (j = 0; j < s->count && ok; j++) {
        ok = cg_decode(side, s->p[j], s->len[j], 1, 0, d, s->n) == CG_OK;
        if (ok && side && side->support)
            ok = index_set((const unsigned char *)side->support, side->support_len, s->n, has);
        else if (ok) ok = index_set(s->p[j], s->len[j], s->n, has);
        for (i = 0; ok && i < s->n; i++)
            if (has[i]) {
                sum[i] = any[i] ? ref_clamp(ref_add(sum[i], d[i])) : d[i];
                any[i] = 1;
            }
    }
    free(d);
    free(has);
    return ok;
}

/* The result is that sum bit for bit, has the union of the index sets, and can be added on to: ((a+b)+c) = (a+b+c). */
TEST sums_exactly_once(const set *s, const cg_extra *side, int again_too) {
    float *want = (float *)ref_alloc(s->n * 4), *y = (float *)ref_alloc(s->n * 4);
    unsigned char *any = (unsigned char *)ref_alloc(s->n), *has = (unsigned char *)ref_alloc(s->n);
    ops_packet r, again;
    set part, two;
    cg_info info;
    size_t at = s->n, i;
    EXPECT("plain sum", plain_sum(s, side, want, any));
    r = reduced(s);
    EXPECT(ops_status((int)r.status), r.status == CG_OK);
    EXPECT("wrote beyond", !r.touched && r.len <= r.cap);
    memset(y, 0xff, s->n * 4);
    EXPECT("result does not decode", cg_decode(side, r.p, r.len, 1, 0, y, s->n) == CG_OK);
    for (at = 0; at < s->n; at++) EXPECT("values", ref_bits(y[at]) == ref_bits(want[at]));
    EXPECT("inspect", cg_inspect(r.p, r.len, &info) == CG_OK && info.packet_bytes == r.len && info.n == s->n);
    EXPECT("tag", info.tag.seed == 3 && info.tag.step == 5 && info.tag.tensor == 7);
    if (!side)
        EXPECT("index set",
            index_set(r.p, r.len, s->n, has) &&
                (!info.op.select.id || info.op.transform.id || memcmp(has, any, s->n) == 0));
    if (again_too && s->count >= 2) {
        part = *s;
        part.count = s->count - 1;
        again = reduced(&part);
        EXPECT("part", again.status == CG_OK);
        two.count = 2;
        two.n = s->n;
        two.p[0] = again.p;
        two.len[0] = again.len;
        two.p[1] = s->p[s->count - 1];
        two.len[1] = s->len[s->count - 1];
        again = reduced(&two);
        EXPECT("reduce again", again.status == CG_OK && cg_decode(side, again.p, again.len, 1, 0, y, s->n) == CG_OK);
        for (at = 0; at < s->n; at++) EXPECT("values, reduced again", ref_bits(y[at]) == ref_bits(want[at]));
        free(two.p[0]);
        free(again.p);
    }
    /* a byte less than it takes is too little, and nothing else happens */
    i = r.len;
    again = reduce_cap(s, i - 1, 0);
    if (info.op.select.id && !info.op.transform.id) {
        free(again.p);
        again = reduce_cap(s, i - 1, r.cap * 64 + (1u << 20));
    }
    EXPECT("capacity", again.status == CG_E_CAPACITY && again.len == 0 && !again.touched);
    free(again.p);
    free(r.p);
    free(want);
    free(y);
    free(any);
    free(has);
    PASS();
}

TEST sums_exactly(const set *s, const cg_extra *side) { return sums_exactly_once(s, side, 1); }

/* Integers times a step against the sum of what each packet decodes to: each value, the sum and the product behind
   it are off by at most half of the smallest denormal, or u of themselves. */
TEST sums_closely(const set *s, const ops_packet *pk) {
    float *d = (float *)ref_alloc(s->n * 4), *y = (float *)ref_alloc(s->n * 4);
    double *want = (double *)ref_alloc(s->n * sizeof *want), *size = (double *)ref_alloc(s->n * sizeof *size);
    size_t at = s->n, r;
    EXPECT("decode sum", cg_decompress(pk->p, pk->len, y, s->n) == CG_OK);
    for (r = 0; r < s->count; r++) {
        EXPECT("decode", cg_decompress(s->p[r], s->len[r], d, s->n) == CG_OK);
        for (at = 0; at < s->n; at++) {
            want[at] += (double)d[at];
            size[at] += fabs((double)d[at]);
        }
    }
    for (at = 0; at < s->n; at++) {
        double bound = ((double)s->count + 1) * (0x1p-150 + 1.01 * 0x1p-24 * size[at]), sum = want[at];
        sum = sum > (double)FLT_MAX ? (double)FLT_MAX : sum < -(double)FLT_MAX ? -(double)FLT_MAX : sum;
        snprintf(note, sizeof note, "%s: %g, want %g, at %lu", what_op, (double)y[at], sum, (unsigned long)at);
        ASSERTm(note, fabs((double)y[at] - sum) <= bound);
    }
    free(d);
    free(y);
    free(want);
    free(size);
    PASS();
}

static void fill(ref_kind kind, size_t rank, float *x, size_t n) {
    size_t i;
    ref_fill(kind, n + 101 * rank, x, n);
    if (kind == REF_OUTLIER)
        for (i = 0; i < n; i++)
            if (i / 16 % 3 != rank % 3) x[i] = 0.0f; /* blocks of zeros */
}

/* ---- sparse ---- */

static const char *const SPARSE[] = { "topk:0.1", "topk:0.03", "threshold:0.002", "topk:0.1|golomb", "blocks:16",
    "topk:0.2|absmax:4:64", "topk:0.2|f16", "stc:0.1", "sbc:0.05", "adaq:0.1", "dgc:0.1", "chunked:64:0.1",
    "threshold:3e38", "topk:0.1|terngrad|quartic", "topk:0.1|huffman", "topk:1", "topk:0.3|bitmap",
    "threshold:0|minmax:8:32|golomb", "wangni:0.1", "blocks:7|bf16", "qsparse:0.1:7", "threshold:1e-4|levels:7|omega" };
enum { SPARSE_COUNT = sizeof SPARSE / sizeof *SPARSE };
static const size_t SIZES[] = { 0, 1, 7, 64, 1000, 4097, 70000 };
enum { SIZE_COUNT = sizeof SIZES / sizeof *SIZES };

TEST sparse_alike(int which) {
    static const ref_kind kinds[] = { REF_LAPLACE, REF_HUGE, REF_TIES, REF_ZEROS, REF_OUTLIER };
    static const size_t counts[] = { 1, 2, 3, 8 };
    cg_op op = parsed(SPARSE[which]);
    float *x = (float *)ref_alloc(70000 * 4);
    size_t i, c, k, r;
    what_op = SPARSE[which];
    for (i = 0; i < SIZE_COUNT; i++)
        for (k = 0; k < 5; k++)
            for (c = 0; c < 4; c++) {
                set s = { { 0 }, { 0 }, 0, 0 };
                if (SIZES[i] > 4097 && (k + c + (size_t)which) % 5) continue;
                for (r = 0; r < counts[c]; r++) {
                    cg_tag tag = tag_of(r);
                    fill(kinds[k], r, x, SIZES[i]);
                    add_packet(&s, &op, &tag, NULL, x, SIZES[i]);
                }
                CHECK_CALL(sums_exactly(&s, NULL));
                drop(&s);
            }
    free(x);
    PASS();
}

/* Any sparse packets of one vector go together, whatever made them. */
TEST sparse_mixed(size_t n) {
    size_t start, r;
    float *x = (float *)ref_alloc(n * 4);
    what_op = "mixed";
    for (start = 0; start < SPARSE_COUNT; start++) {
        set s = { { 0 }, { 0 }, 0, 0 };
        for (r = 0; r < 2 + start % 5; r++) {
            cg_op op = parsed(SPARSE[(start + r * 7) % SPARSE_COUNT]);
            cg_tag tag = tag_of(r);
            fill(r % 3 ? REF_LAPLACE : REF_OUTLIER, r, x, n);
            add_packet(&s, &op, &tag, NULL, x, n);
        }
        CHECK_CALL(sums_exactly(&s, NULL));
        drop(&s);
    }
    free(x);
    PASS();
}

/* One quantizer, but as many scales as there are values: a packet without any must not be read for them. */
TEST scales_of_another_length(void) {
    float x[256];
    cg_op some = parsed("threshold:0.001|absmax:4:8"), none = parsed("threshold:3e38|absmax:4:8"),
          one = parsed("topk:0.01|absmax:4:8");
    const cg_op *ops[3];
    int i, j;
    ops[0] = &some;
    ops[1] = &none;
    ops[2] = &one;
    what_op = "absmax:4:8 of other numbers of values";
    for (i = 0; i < 3; i++)
        for (j = 0; j < 3; j++) {
            set s = { { 0 }, { 0 }, 0, 0 };
            cg_tag tag = tag_of(0);
            ref_fill(REF_TWO, 1, x, 256);
            add_packet(&s, ops[i], &tag, NULL, x, 256);
            add_packet(&s, ops[j], &tag, NULL, x, 256);
            CHECK_CALL(sums_exactly(&s, NULL));
            drop(&s);
        }
    PASS();
}

/* In order: the sum of the same packets backwards is another one. */
TEST order_counts(void) {
    set s = { { 0 }, { 0 }, 0, 0 };
    float x[512], y[512], z[512];
    cg_op op = cg_topk(0.5f);
    ops_packet r;
    size_t i;
    for (i = 0; i < 6; i++) {
        cg_tag tag = tag_of(i);
        ref_fill(REF_GAUSSIAN, i, x, 512);
        add_packet(&s, &op, &tag, NULL, x, 512);
    }
    r = reduced(&s);
    ASSERT(r.status == CG_OK && cg_decompress(r.p, r.len, y, 512) == CG_OK);
    free(r.p);
    for (i = 0; i < 3; i++) {
        unsigned char *p = s.p[i];
        size_t len = s.len[i];
        s.p[i] = s.p[5 - i];
        s.len[i] = s.len[5 - i];
        s.p[5 - i] = p;
        s.len[5 - i] = len;
    }
    what_op = "backwards";
    CHECK_CALL(sums_exactly(&s, NULL));
    r = reduced(&s);
    ASSERT(r.status == CG_OK && cg_decompress(r.p, r.len, z, 512) == CG_OK);
    ASSERTm("no sum depends on the order: the test tests nothing", memcmp(y, z, sizeof y) != 0);
    free(r.p);
    drop(&s);
    PASS();
}

/* Values at the indices of one packet. */
TEST given_support(void) {
    set s = { { 0 }, { 0 }, 0, 0 }, other = { { 0 }, { 0 }, 0, 0 };
    static float x[5000];
    cg_op leader = parsed("topk:0.05"), op = cg_given(), op2 = cg_then(cg_given(), cg_f16());
    cg_extra side = CG_ZERO, none = CG_ZERO;
    cg_tag tag = tag_of(0);
    ops_packet pk, r;
    size_t i;
    ref_fill(REF_GAUSSIAN, 50, x, 5000);
    pk = ops_pack(&leader, &tag, x, 5000);
    side.support = pk.p;
    side.support_len = pk.len;
    for (i = 0; i < 5; i++) {
        tag = tag_of(i);
        ref_fill(REF_LAPLACE, i, x, 5000);
        add_packet(&s, i % 2 ? &op2 : &op, &tag, &side, x, 5000);
    }
    what_op = "given";
    CHECK_CALL(sums_exactly(&s, &side));
    r = reduced(&s); /* 250 floats and no indices */
    ASSERT_EQ_FMT((unsigned)(CG_HEADER_BYTES + 4 * 250), (unsigned)r.len, "%u");
    ASSERT(cg_decode(&none, r.p, r.len, 1, 0, x, 5000) != CG_OK);
    free(r.p);
    ref_fill(REF_GAUSSIAN, 51, x, 5000); /* another index set of the same size does not go with it */
    free(pk.p);
    pk = ops_pack(&leader, &tag, x, 5000);
    side.support = pk.p;
    side.support_len = pk.len;
    other.p[0] = s.p[0];
    other.len[0] = s.len[0];
    other.count = 1;
    add_packet(&other, &op, &tag, &side, x, 5000);
    ASSERT_ENUM_EQ(CG_E_MISMATCH, reduced(&other).status, ops_status);
    free(other.p[1]);
    free(pk.p);
    drop(&s);
    PASS();
}

/* ---- dense, and random samples of one key ---- */

static const char *const DENSE[] = { "dense", "f16", "bf16", "huffman", "bf16|huffman", "absmax:8:64", "minmax:4:100",
    "efsign", "sign", "terngrad", "onebit:64", "natural", "dither:4", "dynamic8", "e4m3", "mxfp4", "nf4", "threelc:1",
    "qsgd:7", "strom:0.001", "flexpoint:4:32", "randk:0.3", "randk:0.3:unscaled", "randk:0.3|f16",
    "randk:0.3|absmax:4:64", "randk:0.2|topk:0.2", "randk:0.4|topk:0.1|f16|golomb",
    "randk:0.5|threshold:0.001|terngrad|gamma", "randk:0.1|sign", "cyclic:3", "clip:1", "clip:0.7|absmax:4:64",
    "cyclic:7:unscaled|absmax:4:64", "cyclic:2|topk:0.2" };

TEST dense_alike(const char *text) {
    static const size_t sizes[] = { 0, 1, 33, 2048, 5000, 66000 };
    static const ref_kind kinds[] = { REF_LAPLACE, REF_HUGE, REF_SIGNED_ZEROS };
    cg_op op = parsed(text);
    float *x = (float *)ref_alloc(66000 * 4);
    size_t i, k, r;
    what_op = text;
    for (i = 0; i < 6; i++)
        for (k = 0; k < 3; k++) {
            set s = { { 0 }, { 0 }, 0, 0 };
            cg_info first, info;
            ops_packet pk;
            for (r = 0; r < 1 + i % 4; r++) {
                cg_tag tag = tag_of(r);
                fill(kinds[k], r, x, sizes[i]);
                add_packet(&s, &op, &tag, NULL, x, sizes[i]);
            }
            pk = reduced(&s);
            ASSERT(pk.status == CG_OK && cg_inspect(pk.p, pk.len, &info) == CG_OK &&
                cg_inspect(s.p[0], s.len[0], &first) == CG_OK);
            if (info.op.quantize.id) CHECK_CALL(sums_closely(&s, &pk)); /* scales that happen to be equal */
            else
                CHECK_CALL(
                    sums_exactly_once(&s, NULL, kinds[k] == REF_LAPLACE && op.quantize.id != CG_QUANTIZE_FLEXPOINT));
            ASSERT_EQm(text, first.drawn, info.drawn);
            if (!op.select.id && !info.op.quantize.id)
                ASSERT_EQm(text, CG_HEADER_BYTES + 4 * (size_t)first.drawn, pk.len);
            free(pk.p);
            drop(&s);
        }
    free(x);
    PASS();
}

/* The number that the sample draws may have been asked for. */
TEST asked_for(void) {
    set s = { { 0 }, { 0 }, 0, 0 };
    float x[1000];
    cg_op ops[3];
    size_t i, o;
    ops[0] = cg_randk(0.5f);
    ops[0].k = 37;
    ops[1] = cg_then(cg_randk(0.5f), cg_threshold(0.001f));
    ops[1].k = 41;
    ops[2] = cg_then(cg_randk(0.5f), cg_topk(0.5f));
    ops[2].k = 43;
    for (o = 0; o < 3; o++) {
        for (i = 0; i < 3; i++) {
            cg_tag tag = tag_of(i);
            ref_fill(REF_LAPLACE, i, x, 1000);
            add_packet(&s, &ops[o], &tag, NULL, x, 1000);
        }
        what_op = ops_text(&ops[o]);
        CHECK_CALL(sums_exactly(&s, NULL));
        drop(&s);
    }
    PASS();
}

/* ---- rotated: decoded with one inverse ---- */

/* The norm of what a packet holds before the inverse. */
static double norm_inside(const unsigned char *p, size_t len) {
    set one = { { 0 }, { 0 }, 1, 0 };
    ops_packet r;
    size_t k, i;
    double sum = 0;
    float *z;
    one.p[0] = (unsigned char *)(uintptr_t)p;
    one.len[0] = len;
    r = reduced(&one); /* alone: floats, or levels of a grid */
    if (r.status != CG_OK) return -1;
    k = (size_t)ref_get(r.p + 96, 8);
    z = (float *)ref_alloc(k * 4);
    if (r.p[44] == 0) {
        for (i = 0; i < k; i++) z[i] = ref_float((uint32_t)ref_get(r.p + CG_HEADER_BYTES + 4 * i, 4));
        /* the same packet as one of k values, not sampled and not transformed */
    } else {
        memset(r.p + 8, 0, 24);
        ref_put(r.p + 80, k, 8);
        ref_put(r.p + 88, k, 8);
        ref_seal(r.p, r.len);
        if (cg_decompress(r.p, r.len, z, k) != CG_OK) return -1;
    }
    for (i = 0; i < k; i++) sum += (double)z[i] * (double)z[i];
    free(r.p);
    free(z);
    return sqrt(sum);
}

/* Let z_i be what packet i holds and R the inverse, |R z| = |z|. Each of the 10 butterflies, the signs and the
   scaling of a round rounds its output once, so a computed inverse is off by at most 12 rounds u |z|; a sum of N
   by (N-1) u sum |z_i|. Both sides together: (24 rounds + 2(N-1)) u sum |z_i|, and a hundredth for products of
   errors. For the DCT, any order of summing 64 products: off by at most 64 u |C| |z|, with the norm of |C| at most
   8. A sample is scaled before, and changes nothing here. */
TEST transformed(const char *text, double rounds) {
    static const size_t sizes[] = { 1, 63, 1000, 1024, 1025, 5000, 70001 };
    cg_op op = parsed(text);
    size_t i, r, j, at;
    const size_t ranks = 5;
    what_op = text;
    for (i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const size_t n = sizes[i];
        float *x = (float *)ref_alloc(n * 4), *y = (float *)ref_alloc(n * 4);
        double *want = (double *)ref_alloc(n * sizeof *want), norms = 0, off = 0, bound, size = 0;
        set s = { { 0 }, { 0 }, 0, 0 };
        cg_info info, one;
        ops_packet pk;
        at = n;
        for (r = 0; r < ranks; r++) {
            cg_tag tag = tag_of(r);
            double norm;
            ref_fill(r % 2 ? REF_LAPLACE : REF_GAUSSIAN, r, x, n);
            add_packet(&s, &op, &tag, NULL, x, n);
            EXPECT("decode", cg_decompress(s.p[r], s.len[r], y, n) == CG_OK);
            for (j = 0; j < n; j++) want[j] += (double)y[j];
            norm = norm_inside(s.p[r], s.len[r]);
            EXPECT("alone", norm > 0);
            norms += norm;
        }
        EXPECT("inspect", cg_inspect(s.p[0], s.len[0], &one) == CG_OK);
        pk = reduced(&s);
        EXPECT(ops_status((int)pk.status), pk.status == CG_OK && !pk.touched);
        EXPECT("inspect", cg_inspect(pk.p, pk.len, &info) == CG_OK);
        EXPECT("not in its domain",
            info.op.transform.id == op.transform.id && info.op.transform.arg == op.transform.arg &&
                info.op.quantize.id == 0);
        if (!op.select.id) EXPECT("size", info.k == one.k && pk.len == CG_HEADER_BYTES + 4 * (size_t)one.k);
        EXPECT("decode sum", cg_decompress(pk.p, pk.len, y, n) == CG_OK);
        for (j = 0; j < n; j++) {
            off += ((double)y[j] - want[j]) * ((double)y[j] - want[j]);
            size += want[j] * want[j];
        }
        bound = 1.01 * ((op.transform.id == CG_TRANSFORM_DCT ? 2 * 512.0 : 24.0 * rounds) + 2.0 * (double)(ranks - 1)) *
            0x1p-24 * norms;
        snprintf(note, sizeof note, "%s, n = %lu: off by %.3g, bound %.3g", text, (unsigned long)n, sqrt(off), bound);
        ASSERTm(note, sqrt(off) <= bound);
        if (n > 1000) ASSERTm(note, bound < 1e-3 * sqrt(size)); /* or the bound would say nothing */
        free(x);
        free(y);
        free(want);
        free(pk.p);
        drop(&s);
    }
    PASS();
}

/* ---- levels of one grid: integers ---- */

static unsigned width_of(unsigned long values) /* ceil(log2(values)) */
{
    unsigned b = 0;
    while (1ul << b < values) b++;
    return b;
}

/* Symbols of N packets with one scale; in the result their sum, with as few bits as hold any such sum (or 16), and
   the step. */
TEST adds_integers(const char *text, int bits, int zero, size_t ranks, size_t n, size_t bucket, float top) {
    cg_op op = parsed(text);
    set s = { { 0 }, { 0 }, 0, 0 };
    float *x = (float *)ref_alloc(n * 4), *y = (float *)ref_alloc(n * 4),
          *scale = (float *)ref_alloc((n / bucket + 1) * 4);
    size_t i, r, at = n, buckets = (n + bucket - 1) / bucket;
    unsigned wide = width_of(2 * (unsigned long)zero * (unsigned long)ranks + 1);
    cg_extra side = CG_ZERO;
    cg_info info;
    ops_packet pk;
    what_op = text;
    for (i = 0; i < buckets; i++) scale[i] = top * (float)(1 + i % 3);
    side.scale = scale;
    for (r = 0; r < ranks; r++) {
        cg_tag tag = tag_of(r);
        uint64_t state = r + 1;
        for (i = 0; i < n; i++) x[i] = ref_mul(scale[i / bucket], (float)(2.0 * ref_uniform(&state) - 1.0));
        if (r % 2 == 0 && n > 3) x[0] = scale[0], x[1] = -scale[0]; /* the ends of the range */
        add_packet(&s, &op, &tag, &side, x, n);
    }
    pk = reduced(&s);
    EXPECT(ops_status((int)pk.status), pk.status == CG_OK && !pk.touched);
    EXPECT("inspect", cg_inspect(pk.p, pk.len, &info) == CG_OK && cg_decompress(pk.p, pk.len, y, n) == CG_OK);
    if (wide <= 16) {
        if (wide > 8) wide = 16; /* beyond a byte: two */
        EXPECT("width",
            info.op.quantize.id == (wide > 8 ? CG_QUANTIZE_FLEX16 : CG_QUANTIZE_FLEXPOINT) &&
                info.op.quantize.arg == (wide > 8 ? 0 : wide));
        EXPECT("size", pk.len == CG_HEADER_BYTES + 4 * buckets + (size_t)ref_pad4(n * (uint64_t)wide));
        for (at = 0; at < n; at++) {
            int want = 0,
                got = (int)ref_get_bits(pk.p + CG_HEADER_BYTES + 4 * buckets, at * wide, (int)wide) -
                ((1 << (wide - 1)) - 1);
            float step = ref_div(scale[at / bucket], (float)zero);
            for (r = 0; r < ranks; r++)
                want += (int)ref_get_bits(s.p[r] + CG_HEADER_BYTES + 4 * buckets, at * (size_t)bits, bits) - zero;
            EXPECT("integer sum", got == want);
            EXPECT("value", ref_bits(y[at]) == ref_bits(ref_clamp(ref_mul((float)want, step))));
        }
    } else { /* no 16 bits hold it: floats, in order */
        EXPECT("floats", info.op.quantize.id == 0 && pk.len == CG_HEADER_BYTES + 4 * n);
        CHECK_CALL(sums_exactly_once(&s, NULL, 0)); /* a part of them may be integers, which round less often */
    }
    free(pk.p);
    free(x);
    free(y);
    free(scale);
    drop(&s);
    PASS();
}

/* Sums of sums: integers as long as there is room. */
TEST integers_again(void) {
    set s = { { 0 }, { 0 }, 0, 0 }, pair = { { 0 }, { 0 }, 0, 0 };
    float x[300], y[300], z[300], scale = 0.75f;
    cg_op op = cg_terngrad();
    cg_extra side = CG_ZERO;
    cg_info info;
    size_t r, i;
    side.scale = &scale;
    for (r = 0; r < 6; r++) {
        cg_tag tag = tag_of(r);
        uint64_t state = r;
        for (i = 0; i < 300; i++) x[i] = (float)(1.5 * ref_uniform(&state) - 0.75);
        add_packet(&s, &op, &tag, &side, x, 300);
    }
    for (r = 0; r < 6; r += 2) {
        set two = { { 0 }, { 0 }, 2, 300 };
        ops_packet pk;
        two.p[0] = s.p[r];
        two.p[1] = s.p[r + 1];
        two.len[0] = s.len[r];
        two.len[1] = s.len[r + 1];
        pk = reduced(&two);
        ASSERT_ENUM_EQ(CG_OK, pk.status, ops_status);
        pair.p[pair.count] = pk.p;
        pair.len[pair.count++] = pk.len;
    }
    pair.n = 300;
    {
        ops_packet all = reduced(&s), tree = reduced(&pair);
        ASSERT(all.status == CG_OK && tree.status == CG_OK);
        ASSERT(cg_decompress(all.p, all.len, y, 300) == CG_OK && cg_decompress(tree.p, tree.len, z, 300) == CG_OK);
        ASSERT(cg_inspect(tree.p, tree.len, &info) == CG_OK);
        ASSERTm("a sum of sums left the grid", info.op.quantize.id != 0);
        ASSERT_MEM_EQ(y, z, sizeof y);
        free(all.p);
        free(tree.p);
    }
    drop(&s);
    drop(&pair);
    PASS();
}

/* Other scales, or another number of bits: not one grid. */
TEST other_grids(void) {
    set s = { { 0 }, { 0 }, 0, 0 };
    float x[300];
    cg_op a = parsed("absmax:4:100"), b = parsed("absmax:3:100");
    cg_info info;
    ops_packet pk;
    cg_tag tag = tag_of(0);
    int i;
    for (i = 0; i < 2; i++) {
        ref_fill(REF_GAUSSIAN, 1, x, 300);
        add_packet(&s, &a, &tag, NULL, x, 300);
        if (i == 0) ref_fill(REF_GAUSSIAN, 2, x, 300);
        add_packet(&s, i == 0 ? &a : &b, &tag, NULL, x, 300);
        what_op = "absmax of other scales";
        CHECK_CALL(sums_exactly(&s, NULL));
        pk = reduced(&s);
        ASSERT(cg_inspect(pk.p, pk.len, &info) == CG_OK && info.op.quantize.id == 0);
        free(pk.p);
        drop(&s);
    }
    PASS();
}

/* Scales of every size. */
TEST any_scale(const char *text, float scale) {
    enum { N = 200, RANKS = 3 };
    cg_op op = parsed(text);
    set s = { { 0 }, { 0 }, 0, 0 };
    float x[N], scales[4];
    static char name[64];
    cg_extra side = CG_ZERO;
    ops_packet pk;
    size_t r, i;
    for (i = 0; i < 4; i++) scales[i] = scale;
    side.scale = scales;
    for (r = 0; r < RANKS; r++) {
        cg_tag tag = tag_of(r);
        uint64_t state = 9; /* one vector: sums that are not small */
        for (i = 0; i < N; i++) x[i] = (float)((double)scale * (2.0 * ref_uniform(&state) - 1.0));
        add_packet(&s, &op, &tag, &side, x, N);
    }
    snprintf(name, sizeof name, "%s, scale %g", text, (double)scale);
    what_op = name;
    pk = reduced(&s);
    ASSERT_ENUM_EQ(CG_OK, pk.status, ops_status);
    CHECK_CALL(sums_closely(&s, &pk));
    free(pk.p);
    drop(&s);
    PASS();
}

/* ---- what does not belong together ---- */

static cg_status pair_status(const cg_op *a, const cg_tag *ta, size_t na, const cg_op *b, const cg_tag *tb, size_t nb) {
    static float x[3000];
    set s = { { 0 }, { 0 }, 0, 0 };
    ops_packet r;
    ref_fill(REF_GAUSSIAN, 1, x, 3000);
    add_packet(&s, a, ta, NULL, x, na);
    add_packet(&s, b, tb, NULL, x, nb);
    r = reduce_cap(&s, 1u << 16, 1u << 21);
    /* an error that left something behind */
    if (r.status != CG_OK && (r.len != 0 || r.touched)) r.status = CG_E_STATE;
    free(r.p);
    drop(&s);
    return r.status;
}

TEST mismatch(const char *text) {
    cg_op op = parsed(text);
    cg_tag base = tag_of(0), tag;
    ASSERT_ENUM_EQm(text, CG_OK, pair_status(&op, &base, 1000, &op, &base, 1000), ops_status);
    tag = base;
    tag.rank = 9;
    ASSERT_ENUM_EQm(text, CG_OK, pair_status(&op, &base, 1000, &op, &tag, 1000), ops_status);
    ASSERT_ENUM_EQm(text, CG_E_MISMATCH, pair_status(&op, &base, 1000, &op, &base, 1001), ops_status);
    tag = base;
    tag.seed++;
    ASSERT_ENUM_EQm(text, CG_E_MISMATCH, pair_status(&op, &base, 1000, &op, &tag, 1000), ops_status);
    tag = base;
    tag.step++;
    ASSERT_ENUM_EQm(text, CG_E_MISMATCH, pair_status(&op, &base, 1000, &op, &tag, 1000), ops_status);
    tag = base;
    tag.tensor++;
    ASSERT_ENUM_EQm(text, CG_E_MISMATCH, pair_status(&op, &base, 1000, &op, &tag, 1000), ops_status);
    PASS();
}

TEST mismatched_ops(void) {
    static const char *const pairs[][2] = { { "topk:0.1", "dense" }, { "dense", "topk:0.1" }, { "randk:0.5", "dense" },
        { "randk:0.5", "randk:0.25" }, { "randk:0.5", "randk:0.5:unscaled" }, { "randk:0.5|topk:0.1", "topk:0.1" },
        { "rotate:1", "rotate:2" }, { "rotate:1", "dense" }, { "dct", "rotate:1" }, { "dct|topk:0.1", "topk:0.1" },
        { "rotate:1|topk:0.1", "rotate:1" }, { "topk:0.1|absmax:4:64", "absmax:4:64" } };
    cg_tag tag = tag_of(0);
    size_t i;
    for (i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        cg_op a = parsed(pairs[i][0]), b = parsed(pairs[i][1]);
        snprintf(note, sizeof note, "%s and %s", pairs[i][0], pairs[i][1]);
        ASSERT_ENUM_EQm(note, CG_E_MISMATCH, pair_status(&a, &tag, 1000, &b, &tag, 1000), ops_status);
    }
    PASS();
}

TEST unsupported(void) {
    static const char *const texts[] = { "permk:4", "permk:4|topk:0.1", "lowrank:2:25:40", "atomo:2:25:40" };
    cg_tag tag = tag_of(0);
    size_t i;
    for (i = 0; i < 4; i++) {
        cg_op op = parsed(texts[i]);
        ASSERT_ENUM_EQm(texts[i], CG_E_UNSUPPORTED, pair_status(&op, &tag, 1000, &op, &tag, 1000), ops_status);
    }
    PASS();
}

TEST arguments(void) {
    set s = { { 0 }, { 0 }, 0, 0 };
    float x[100];
    unsigned char out[2048];
    cg_op op = cg_topk(0.1f);
    cg_tag tag = tag_of(0);
    size_t bound, need, len = 5;
    const void *hole[2];
    unsigned char *scratch;
    ref_fill(REF_GAUSSIAN, 1, x, 100);
    add_packet(&s, &op, &tag, NULL, x, 100);
    add_packet(&s, &op, &tag, NULL, x, 100);
    ASSERT_ENUM_EQ(CG_OK, cg_reduce_plan(packets(&s), s.len, 2, &bound, &need), ops_status);
    ASSERT(bound >= CG_HEADER_BYTES && need > 0);
    scratch = (unsigned char *)ref_alloc(need + 3);
    ASSERT_ENUM_EQ(CG_E_ARG, cg_reduce_plan(packets(&s), s.len, 2, NULL, &need), ops_status);
    ASSERT_ENUM_EQ(CG_E_ARG, cg_reduce_plan(packets(&s), s.len, 2, &bound, NULL), ops_status);
    ASSERT_ENUM_EQ(CG_E_ARG, cg_reduce_plan(NULL, s.len, 2, &bound, &need), ops_status);
    ASSERT_ENUM_EQ(CG_E_ARG, cg_reduce_plan(packets(&s), NULL, 2, &bound, &need), ops_status);
    ASSERT_ENUM_EQ(CG_E_ARG, cg_reduce_plan(packets(&s), s.len, 0, &bound, &need), ops_status);
    ASSERT_ENUM_EQ(CG_OK, cg_reduce_plan(packets(&s), s.len, 2, &bound, &need), ops_status);
    ASSERT_ENUM_EQ(CG_E_ARG, cg_reduce(packets(&s), s.len, 2, NULL, bound, &len, scratch, need), ops_status);
    ASSERT_EQ(0u, len);
    ASSERT_ENUM_EQ(CG_E_ARG, cg_reduce(packets(&s), s.len, 2, out, bound, NULL, scratch, need), ops_status);
    ASSERT_ENUM_EQ(CG_E_ARG, cg_reduce(packets(&s), s.len, 0, out, bound, &len, scratch, need), ops_status);
    ASSERT(cg_reduce(packets(&s), s.len, 2, out, bound, &len, NULL, need) == CG_E_ARG && len == 0);
    len = 5;
    ASSERT(cg_reduce(packets(&s), s.len, 2, out, bound, &len, scratch, need - 1) == CG_E_CAPACITY && len == 0);
    len = 5;
    ASSERT(
        cg_reduce(packets(&s), s.len, 2, out, CG_HEADER_BYTES - 1, &len, scratch, need) == CG_E_CAPACITY && len == 0);
    /* any alignment */
    ASSERT_ENUM_EQ(CG_OK, cg_reduce(packets(&s), s.len, 2, out + 1, bound, &len, scratch + 3, need), ops_status);
    hole[0] = s.p[0];
    hole[1] = NULL;
    ASSERT(cg_reduce(hole, s.len, 2, out, bound, &len, scratch, need) == CG_E_ARG && len == 0);
    free(scratch);
    drop(&s);
    PASS();
}

/* ---- damaged members ---- */

static const char *const TARGETS[] = { "dense", "topk:0.2", "topk:0.2|absmax:4:8", "threshold:0.05|golomb",
    "blocks:8|terngrad", "terngrad", "absmax:4:16", "flexpoint:4:16", "randk:0.5|topk:0.3", "rotate:1|absmax:4:64",
    "huffman", "topk:0.5|terngrad|quartic", "levels:3|omega", "dct|topk:0.3" };

/* As it comes, damage is found; with the checksum put right there may be a result, which then decodes, or an error. */
TEST damaged(const char *text) {
    cg_op op = parsed(text);
    const size_t n = 90;
    float x[90], y[90];
    set s = { { 0 }, { 0 }, 0, 0 };
    size_t at, r, member, accepted = 0, cap, scratch;
    what_op = text;
    for (r = 0; r < 3; r++) {
        cg_tag tag = tag_of(r);
        ref_fill(REF_GAUSSIAN, r, x, n);
        add_packet(&s, &op, &tag, NULL, x, n);
    }
    ASSERT_ENUM_EQ(CG_OK, cg_reduce_plan(packets(&s), s.len, 3, &cap, &scratch), ops_status);
    for (member = 0; member < 3; member++)
        for (at = 0; at < s.len[member] * 8; at++) {
            unsigned char *p = s.p[member], sum[16];
            size_t bound, need, i;
            ops_packet pk;
            cg_status status;
            memcpy(sum, p + 152, 16);
            p[at / 8] = (unsigned char)(p[at / 8] ^ 1u << at % 8);
            pk = reduce_cap(&s, cap, scratch);
            EXPECT("damage unseen", pk.status != CG_OK && pk.len == 0 && !pk.touched);
            free(pk.p);
            if (at % 3 == member && (at / 8 < 152 || at / 8 >= CG_HEADER_BYTES)) {
                ref_seal(p, s.len[member]);
                status = cg_reduce_plan(packets(&s), s.len, 3, &bound, &need);
                pk = reduce_cap(&s, status == CG_OK && bound < (1u << 20) ? bound : cap,
                    status == CG_OK && need < (1u << 24) ? need : scratch);
                EXPECT("wrote beyond", !pk.touched);
                EXPECT("len", pk.status == CG_OK ? pk.len <= pk.cap : pk.len == 0);
                if (pk.status == CG_OK) {
                    EXPECT("a result that does not decode", cg_decompress(pk.p, pk.len, y, n) == CG_OK);
                    for (i = 0; i < n; i++) EXPECT("a result that is not finite", ref_finite(y[i]));
                    accepted++;
                }
                free(pk.p);
            }
            p[at / 8] = (unsigned char)(p[at / 8] ^ 1u << at % 8);
            memcpy(p + 152, sum, 16);
        }
    ASSERT_GTm("nothing was accepted", accepted, 0);
    for (at = 0; at < s.len[1]; at++) { /* and cut off */
        ops_packet pk;
        unsigned char *whole = s.p[1], *cut = (unsigned char *)ref_alloc(at);
        size_t len = s.len[1];
        memcpy(cut, whole, at);
        s.p[1] = cut;
        s.len[1] = at;
        pk = reduce_cap(&s, cap, scratch);
        EXPECT("cut off", pk.status == CG_E_CORRUPT && pk.len == 0 && !pk.touched);
        free(pk.p);
        free(cut);
        s.p[1] = whole;
        s.len[1] = len;
    }
    drop(&s);
    PASS();
}

/* ---- votes ---- */

TEST votes(const char *text, size_t ranks, size_t n) {
    cg_op op = parsed(text);
    set s = { { 0 }, { 0 }, 0, 0 };
    float *x = (float *)ref_alloc(n * 4), *y = (float *)ref_alloc(n * 4), *first = (float *)ref_alloc(n * 4);
    int *tally = (int *)ref_alloc(n * sizeof *tally);
    unsigned char *out, *has = (unsigned char *)ref_alloc(n);
    size_t at = n, r, len = 7, cap, ties = 0;
    cg_tag tag;
    what_op = text;
    for (r = 0; r < ranks; r++) {
        uint64_t state = 1000 * n + r;
        tag = tag_of(r);
        for (at = 0; at < n; at++) { /* zeros of both signs count as + */
            x[at] = (float)ref_normal(&state) + (at % 3 == 0 ? 0.5f : at % 3 == 1 ? -0.5f : 0.0f);
            if (at % 11 == r % 11) x[at] = at % 2 ? 0.0f : -0.0f;
        }
        add_packet(&s, &op, &tag, NULL, x, n);
        EXPECT("decode", cg_decompress(s.p[r], s.len[r], y, n) == CG_OK);
        for (at = 0; at < n; at++) tally[at] += y[at] > 0 ? 1 : y[at] < 0 ? -1 : 0;
        if (!op.sample.id && !op.transform.id)
            for (at = 0; at < n; at++) EXPECT("sign", y[at] == (x[at] < 0 ? -1.0f : 1.0f));
    }
    cap = s.len[0];
    out = (unsigned char *)ref_alloc(cap + OPS_CANARY);
    memset(out, 0xA5, cap + OPS_CANARY);
    EXPECT("capacity", cg_vote(packets(&s), s.len, ranks, out, cap - 1, &len) == CG_E_CAPACITY && len == 0);
    EXPECT("vote", cg_vote(packets(&s), s.len, ranks, out, cap, &len) == CG_OK && len == cap);
    for (at = cap; at < cap + OPS_CANARY; at++) EXPECT("wrote beyond", out[at] == 0xA5);
    EXPECT("decode the vote", cg_decompress(out, len, y, n) == CG_OK && index_set(out, len, n, has));
    for (at = 0; at < n; at++) {
        EXPECT("majority", y[at] == (!has[at] ? 0.0f : tally[at] < 0 ? -1.0f : 1.0f));
        ties += has[at] && tally[at] == 0;
    }
    if (ranks % 2 == 0 && n >= 1000) EXPECT("no tie: the test tests nothing", ties > 0);
    if (ranks < VOTERS) { /* a vote is a voter; and goes where packets go */
        unsigned char *twice = (unsigned char *)ref_alloc(cap);
        memcpy(first, y, n * 4);
        s.p[ranks] = out;
        s.len[ranks] = len;
        s.count = ranks + 1;
        EXPECT("vote again",
            cg_vote(packets(&s), s.len, ranks + 1, twice, cap, &len) == CG_OK &&
                cg_decompress(twice, len, y, n) == CG_OK);
        for (at = 0; at < n; at++)
            EXPECT("majority and itself", y[at] == (!has[at] ? 0.0f : tally[at] + (int)first[at] < 0 ? -1.0f : 1.0f));
        if (!op.transform.id) CHECK_CALL(sums_exactly(&s, NULL));
        s.count = ranks;
        free(twice);
    }
    free(out);
    free(x);
    free(y);
    free(first);
    free(tally);
    free(has);
    drop(&s);
    PASS();
}

TEST votes_refused(void) {
    set s = { { 0 }, { 0 }, 0, 0 };
    float x[100];
    unsigned char out[512];
    cg_op sign = cg_sign(), ef = cg_efsign(), sparse = parsed("topk:0.1|sign");
    cg_tag tag = tag_of(0), other = tag_of(0);
    static const void *many[MANY];
    static size_t lens[MANY];
    size_t len = 3, i;
    ref_fill(REF_GAUSSIAN, 1, x, 100);
    add_packet(&s, &sign, &tag, NULL, x, 100);
    add_packet(&s, &ef, &tag, NULL, x, 100);
    add_packet(&s, &sparse, &tag, NULL, x, 100);
    other.step++;
    add_packet(&s, &sign, &other, NULL, x, 100);
    add_packet(&s, &sign, &tag, NULL, x, 99);
    add_packet(&s, &sign, &tag, NULL, x, 100);
    s.p[5][CG_HEADER_BYTES] ^= 1;
    for (i = 0; i < MANY; i++) {
        many[i] = s.p[0];
        lens[i] = s.len[0];
    }
    ASSERT_ENUM_EQ(CG_E_ARG, cg_vote(many, lens, 0, out, sizeof out, &len), ops_status);
    ASSERT_EQ(0u, len);
    ASSERT_ENUM_EQ(CG_E_UNSUPPORTED, cg_vote(many, lens, VOTERS + 1, out, sizeof out, &len), ops_status);
    ASSERT_ENUM_EQ(CG_OK, cg_vote(many, lens, VOTERS, out, sizeof out, &len), ops_status);
    ASSERT_ENUM_EQ(CG_E_ARG, cg_vote(many, lens, 2, NULL, sizeof out, &len), ops_status);
    ASSERT_ENUM_EQ(CG_E_ARG, cg_vote(many, lens, 2, out, sizeof out, NULL), ops_status);
    for (i = 1; i < 6; i++) {
        static const cg_status want[] = { CG_OK, CG_E_UNSUPPORTED, CG_E_MISMATCH, CG_E_MISMATCH, CG_E_MISMATCH,
            CG_E_CORRUPT };
        len = 3;
        many[1] = s.p[i];
        lens[1] = s.len[i];
        ASSERT_ENUM_EQ(want[i], cg_vote(many, lens, 2, out, sizeof out, &len), ops_status);
        ASSERT_EQ(0u, len);
    }
    many[0] = many[1] = s.p[2]; /* signs, but not of every value */
    lens[0] = lens[1] = s.len[2];
    ASSERT_ENUM_EQ(CG_E_UNSUPPORTED, cg_vote(many, lens, 2, out, sizeof out, &len), ops_status);
    drop(&s);
    PASS();
}

SUITE(sparse) {
    int i;
    for (i = 0; i < SPARSE_COUNT; i++) RUN_TEST1(sparse_alike, i);
    RUN_TEST1(sparse_mixed, 700);
    RUN_TEST1(sparse_mixed, 9000);
    RUN_TEST(scales_of_another_length);
    RUN_TEST(order_counts);
    RUN_TEST(given_support);
}

SUITE(dense) {
    size_t i;
    for (i = 0; i < sizeof DENSE / sizeof *DENSE; i++) RUN_TEST1(dense_alike, DENSE[i]);
    RUN_TEST(asked_for);
    RUN_TESTp(transformed, "rotate:1", 1.0);
    RUN_TESTp(transformed, "rotate:2", 2.0);
    RUN_TESTp(transformed, "rotate:1|absmax:4:1024", 1.0);
    RUN_TESTp(transformed, "srq:4", 1.0);
    RUN_TESTp(transformed, "eden:2", 2.0);
    RUN_TESTp(transformed, "rotate:1|topk:0.2|f16", 1.0);
    RUN_TESTp(transformed, "dct", 1.0);
    RUN_TESTp(transformed, "demo:0.2", 1.0);
    RUN_TESTp(transformed, "randk:0.5|rotate:2|absmax:8:64", 2.0);
}

SUITE(integers) {
    static const float scales[] = { 0x1p-149f, 3 * 0x1p-149f, 1e-43f, 1e-41f, 3e-39f, 1e-37f, 1e-30f, 1e-20f, 1.0f,
        1e20f, 3e38f };
    size_t n, i;
    for (n = 2; n <= 64; n++) RUN_TESTp(adds_integers, "terngrad", 2, 1, n, 501, 501, 0.3f);
    for (n = 1; n <= 20; n++) RUN_TESTp(adds_integers, "absmax:4:64", 4, 7, n, 1000, 64, 1.7f);
    for (n = 1; n <= 5; n++) {
        RUN_TESTp(adds_integers, "absmax:2:2048", 2, 1, n, 5000, 2048, 1e-6f);
        RUN_TESTp(adds_integers, "absmax:8:100", 8, 127, n, 333, 100, 1.0f);
        RUN_TESTp(adds_integers, "levels:15:100", 5, 15, 2 * n, 333, 100, 1.0f);
        RUN_TESTp(adds_integers, "absmax:5:100000", 5, 15, n, 70000, 100000, 1e30f);
    }
    RUN_TESTp(adds_integers, "terngrad", 2, 1, (size_t)127, (size_t)77, (size_t)77, 0.3f);
    RUN_TESTp(adds_integers, "terngrad", 2, 1, (size_t)128, (size_t)77, (size_t)77, 0.3f);
    RUN_TESTp(adds_integers, "terngrad", 2, 1, (size_t)1000, (size_t)77, (size_t)77, 0.3f);
    RUN_TESTp(adds_integers, "absmax:4:64", 4, 7, (size_t)300, (size_t)130, (size_t)64, 1.7f);
    for (n = 257; n <= 260; n++) RUN_TESTp(adds_integers, "absmax:8:100", 8, 127, n, (size_t)333, (size_t)100, 1.0f);
    RUN_TEST(integers_again);
    RUN_TEST(other_grids);
    for (i = 0; i < sizeof scales / sizeof *scales; i++) {
        RUN_TESTp(any_scale, "terngrad", scales[i]);
        RUN_TESTp(any_scale, "absmax:4:64", scales[i]);
        RUN_TESTp(any_scale, "absmax:3:50:nearest", scales[i]);
    }
}

SUITE(refusals) {
    static const char *const texts[] = { "dense", "f16", "terngrad", "absmax:4:64", "topk:0.1", "threshold:0.05|f16",
        "randk:0.3", "randk:0.3|topk:0.2", "rotate:1", "rotate:2|topk:0.1", "dct" };
    size_t i;
    for (i = 0; i < sizeof texts / sizeof *texts; i++) RUN_TEST1(mismatch, texts[i]);
    RUN_TEST(mismatched_ops);
    RUN_TEST(unsupported);
    RUN_TEST(arguments);
    for (i = 0; i < sizeof TARGETS / sizeof *TARGETS; i++) RUN_TEST1(damaged, TARGETS[i]);
}

SUITE(majority) {
    static const size_t sizes[] = { 0, 1, 7, 8, 9, 31, 32, 33, 1000, 4099, 40001 };
    size_t n, i;
    for (n = 1; n <= 9; n++)
        for (i = 0; i < sizeof sizes / sizeof *sizes; i++) RUN_TESTp(votes, "sign", n, sizes[i]);
    for (n = 10; n <= 64; n += n < 20 || n > 60 ? 1 : 7) RUN_TESTp(votes, "sign", n, (size_t)1003);
    for (n = 125; n <= 129; n++) RUN_TESTp(votes, "sign", n, (size_t)333);
    for (n = 254; n <= 257; n++) RUN_TESTp(votes, "sign", n, (size_t)333);
    for (n = 510; n <= 513; n++) RUN_TESTp(votes, "sign", n, (size_t)333);
    for (n = VOTERS - 2; n <= VOTERS; n++) RUN_TESTp(votes, "sign", n, (size_t)333);
    RUN_TESTp(votes, "randk:0.3|sign", (size_t)5, (size_t)2000);
    RUN_TEST(votes_refused);
}

GREATEST_MAIN_DEFS();

int main(int argc, char **argv) {
    GREATEST_MAIN_BEGIN();
    RUN_SUITE(sparse);
    RUN_SUITE(dense);
    RUN_SUITE(integers);
    RUN_SUITE(refusals);
    RUN_SUITE(majority);
    GREATEST_MAIN_END();
}
