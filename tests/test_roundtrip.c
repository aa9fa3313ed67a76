/* Every operator and every composition against the plain reference: the same packet byte for byte, the same
   floats bit for bit, for every way of decoding. */
#define COMPGRAD_IMPLEMENTATION
#include "compgrad.h"
#include "ref.h"
#include "ops.h"
#include "greatest.h"
#define TIER_SPARED
#include "tier.h"

static const cg_tag TAG = { UINT64_C(0x0123456789ABCDEF), 77, 5, 3 };
static const size_t SIZES[] = { 0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 255, 256, 257, 1000, 2047, 2048,
    2049, 4097 };
static const uint32_t BUCKETS[] = { 1, 7, 16, 64, 100, 512, 2048, 3000, 70000 };
enum { SIZE_COUNT = sizeof SIZES / sizeof *SIZES, SMALL_SIZES = 18, BUCKET_COUNT = sizeof BUCKETS / sizeof *BUCKETS };
static const size_t LARGE[] = { 65535, 65536, 65537, 65536 + 2049, 131072 + 17 };

static const struct {
    float alpha, beta;
} FOLDS[] = { { 1, 0 }, { 1, 1 }, { 0.25f, 1 }, { -3.7f, 0 }, { 0, 1 }, { 0, 0 }, { 1, 0.9f }, { 0.3f, -1.1f },
    { 1, 2 }, { -1, 1 } };
enum { FOLD_COUNT = sizeof FOLDS / sizeof *FOLDS };

static char note[256]; /* what failed, for the report */

#define EXPECT(what, cond)                                                                                        \
  do {                                                                                                            \
    if (!(cond)) {                                                                                                \
      snprintf(note, sizeof note, "%s: %s, n = %lu, vector %d", what, ops_text(op), (unsigned long)n, (int)kind); \
      FAILm(note);                                                                                                \
    }                                                                                                             \
  } while (0)

/* A y with everything in it that must survive beta, a sign of zero included. */
static void fill_y(float *y, size_t n) {
    size_t i;
    for (i = 0; i < n; i++) y[i] = i % 7 == 3 ? -0.0f : (float)((int)(i % 1001) - 500) * 0.37f;
}

TEST decodes(const cg_op *op, ref_kind kind, size_t n, const ops_packet *pk, const float *d, const unsigned char *has,
    unsigned turn) {
    float *y = (float *)ref_alloc(n * 4), *want = (float *)ref_alloc(n * 4);
    cg_extra direct = CG_ZERO;
    cg_info info;
    ref_packet r = ref_open(pk->p);
    size_t i;
    unsigned f;
    direct.flags = CG_DECODE_DIRECT;
    memset(y, 0xff, n * 4); /* NaN: must not be read */
    EXPECT("cg_decompress", cg_decompress(pk->p, pk->len, y, n) == CG_OK && memcmp(y, d, n * 4) == 0);
    for (f = turn; f < turn + 2; f++) { /* two of the folds each time, all of them in turn */
        float alpha = FOLDS[f % FOLD_COUNT].alpha, beta = FOLDS[f % FOLD_COUNT].beta;
        fill_y(want, n);
        ref_apply(d, has, alpha, beta, want, n);
        fill_y(y, n);
        EXPECT("cg_decode", cg_decode(f & 1 ? &direct : NULL, pk->p, pk->len, alpha, beta, y, n) == CG_OK);
        EXPECT("cg_decode, values", memcmp(y, want, n * 4) == 0);
    }
    fill_y(want, n);
    fill_y(y, n);
    if (turn % 4 == 0) {
        ref_apply(d, has, 0.7f, 1.0f, want, n);
        EXPECT(
            "cg_decompress_add", cg_decompress_add(pk->p, pk->len, 0.7f, y, n) == CG_OK && memcmp(y, want, n * 4) == 0);
    } else if (turn % 4 == 1) {
        for (i = 0; i < n; i++)
            if (has[i]) want[i] = 0.0f;
        EXPECT("cg_clear", cg_clear(pk->p, pk->len, y, n) == CG_OK && memcmp(y, want, n * 4) == 0);
    }
    memset(&info, 0xff, sizeof info);
    EXPECT("cg_inspect", cg_inspect(pk->p, CG_HEADER_BYTES, &info) == CG_OK);
    EXPECT("cg_info",
        info.n == n && info.drawn == r.drawn && info.k == r.k && info.index_code == (uint32_t)r.ix &&
            info.value_bytes == r.v_bytes && info.index_bytes == r.ix_bytes && info.packet_bytes == pk->len &&
            info.tag.seed == r.tag.seed && info.tag.step == r.tag.step && info.tag.tensor == r.tag.tensor &&
            info.tag.rank == r.tag.rank && ref_bits(info.threshold) == ref_get(pk->p + 144, 4) &&
            info.op.quantize.id == op->quantize.id && info.op.select.id == op->select.id &&
            ref_bits(info.op.sample.value) == ref_bits(op->sample.value));
    free(y);
    free(want);
    PASS();
}

TEST agrees(const cg_op *op, const cg_tag *tag, ref_kind kind, size_t n) {
    static unsigned turn;
    float *x = (float *)ref_alloc(n * 4), *d = (float *)ref_alloc(n * 4);
    unsigned char *has = (unsigned char *)ref_alloc(n), *want;
    ops_packet pk;
    size_t len = 0;
    ops_packet exact;
    greatest_test_res decoded;
    ref_fill(kind, n + (size_t)kind, x, n);
    want = ref_compress(op, tag, x, n, &len);
    pk = ops_pack(op, tag, x, n);
    EXPECT(ops_status((int)pk.status), pk.status == CG_OK);
    EXPECT("wrote beyond cg_bound", !pk.touched);
    EXPECT("length beyond cg_bound", pk.len <= pk.cap && len <= pk.cap);
    if (pk.len != len || memcmp(pk.p, want, len) != 0) {
        ASSERT_EQ_FMT((unsigned)len, (unsigned)pk.len, "%u bytes");
        EXPECT("packet", 0);
    }
    ref_decode(want, d, has);
    exact = pk; /* of its exact length: a sanitizer sees reads beyond it */
    exact.p = (unsigned char *)ref_alloc(len);
    memcpy(exact.p, pk.p, len);
    decoded = decodes(op, kind, n, &exact, d, has, turn++);
    free(x);
    free(d);
    free(has);
    free(want);
    free(pk.p);
    free(exact.p);
    return decoded;
}

static unsigned next_kind; /* all the vectors in turn */

TEST small_sizes(int sample, int select) {
    static unsigned turn;
    int c, q, b;
    size_t i;
    for (c = 0; c < (select ? OPS_CODES : 1); c++)
        for (q = 0; q < OPS_QUANTIZERS; q++)
            for (i = 0; i < SIZE_COUNT; i++) {
                /* every bucket at the sizes that are cheap, one in turn at the others */
                int buckets = ops_has_bucket(q) && i < SMALL_SIZES ? BUCKET_COUNT : 1;
                for (b = 0; b < buckets; b++) {
                    uint32_t bucket = BUCKETS[buckets > 1 ? (unsigned)b : next_kind / REF_KINDS % BUCKET_COUNT];
                    cg_op op = ops_compose(sample, select, c, q, bucket);
                    next_kind++;
                    if (!spared(&turn, 5))
                        CHECK_CALL(agrees(&op, &TAG, (ref_kind)((next_kind - 1) % REF_KINDS), SIZES[i]));
                }
            }
    PASS();
}

TEST large_sizes(int sample, int select) {
    static unsigned turn;
    int q;
    for (q = 0; q < OPS_QUANTIZERS; q++, next_kind++) {
        cg_op op = ops_compose(sample, select, 0, q, BUCKETS[next_kind % BUCKET_COUNT]);
        if (spared(&turn, 7)) continue;
        CHECK_CALL(agrees(&op, &TAG, (ref_kind)(next_kind % REF_KINDS), LARGE[next_kind % 5]));
    }
    PASS();
}

/* Each vector with each quantizer and each bucket, which the product above visits only in turn. */
TEST all_vectors(ref_kind kind) {
    static const size_t size[] = { 5, 300, 2500 };
    static unsigned turn;
    int q, b, i;
    for (q = 0; q < OPS_QUANTIZERS; q++)
        for (b = 0; b < (ops_has_bucket(q) ? (int)BUCKET_COUNT : 1); b++)
            for (i = 0; i < 3; i++) {
                cg_op op = ops_quantizer(q, BUCKETS[b]);
                if (!spared(&turn, 5)) CHECK_CALL(agrees(&op, &TAG, kind, size[i]));
            }
    PASS();
}

TEST counts_and_extremes(void) {
    static const uint64_t ks[] = { 1, 2, 9, 99, 100, 101, UINT64_C(1) << 40, UINT64_MAX };
    static const float ratios[] = { 1.0f, 0.999999f, 0.5f, 0.005f, 0.004999f, 1e-30f, 1e-45f };
    cg_tag tags[] = { { 0, 0, 0, 0 }, { UINT64_MAX, UINT64_MAX, UINT32_MAX, UINT32_MAX }, { 1, 2, 3, 4 } };
    size_t i, t;
    for (t = 0; t < 3; t++) {
        cg_op op;
        for (i = 0; i < sizeof ks / sizeof *ks; i++) {
            op = cg_topk(0.5f);
            op.k = ks[i];
            CHECK_CALL(agrees(&op, &tags[t], REF_LAPLACE, 100));
            op = cg_then(op, cg_then(cg_randk(0.4f), cg_absmax(4, 16))); /* k is top-k's */
            CHECK_CALL(agrees(&op, &tags[t], REF_LAPLACE, 100));
            op = cg_randk(0.5f);
            op.k = ks[i];
            CHECK_CALL(agrees(&op, &tags[t], REF_GAUSSIAN, 100));
            op = cg_then(op, cg_threshold(0.05f)); /* ... else random-k's */
            CHECK_CALL(agrees(&op, &tags[t], REF_GAUSSIAN, 100));
        }
        for (i = 0; i < sizeof ratios / sizeof *ratios; i++) {
            op = cg_topk(ratios[i]);
            CHECK_CALL(agrees(&op, &tags[t], REF_LAPLACE, 101));
            op = cg_then(cg_randk(ratios[i]), cg_f16());
            CHECK_CALL(agrees(&op, &tags[t], REF_HUGE, 101));
        }
        op = cg_threshold(0.0f);
        CHECK_CALL(agrees(&op, &tags[t], REF_SIGNED_ZEROS, 1001));
        CHECK_CALL(agrees(&op, &tags[t], REF_DENORMALS, 1001));
        op = cg_then(cg_threshold(FLT_MAX), cg_minmax(4, 16));
        CHECK_CALL(agrees(&op, &tags[t], REF_HUGE, 1001));
        op = cg_coded(op, CG_CODE_BITMAP);
        CHECK_CALL(agrees(&op, &tags[t], REF_HUGE, 1001));
        op = cg_coded(cg_f16(), CG_CODE_BITMAP); /* a code with nothing to code */
        if (cg_bound(&op, 100)) CHECK_CALL(agrees(&op, &tags[t], REF_LAPLACE, 100));
    }
    PASS();
}

/* Few of many: wide low parts before a short high part, down to the last word of the packet. */
TEST few_of_many(int code) {
    static const size_t sizes[] = { 64, 255, 1024, 4095, 4096, 65537, 131089 };
    static unsigned turn;
    size_t i;
    uint64_t k;
    for (i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (k = 1; k <= 12; k++) {
            cg_op op = cg_topk(0.5f);
            if (spared(&turn, 5)) continue;
            op.k = k;
            op = cg_coded(cg_then(op, ops_quantizer((int)(k + i) % OPS_QUANTIZERS, 3)), (cg_coding)code);
            CHECK_CALL(agrees(&op, &TAG, REF_LAPLACE, sizes[i]));
        }
    PASS();
}

/* A tag that is not given is all zero, and text makes the same packet as functions. */
TEST null_tag_and_text(void) {
    cg_op op = cg_then(cg_randk(0.5f), cg_then(cg_topk(0.1f), cg_absmax(4, 64))), parsed;
    CHECK_CALL(agrees(&op, NULL, REF_LAPLACE, 1000));
    ASSERT_ENUM_EQ(CG_OK, cg_op_parse(&parsed, "randk:0.5|topk:0.1|absmax:4:64"), ops_status);
    CHECK_CALL(agrees(&parsed, NULL, REF_LAPLACE, 1000));
    PASS();
}

/* cg_bound is exact where the packet's size is known beforehand. */
TEST bound_is_tight(void) {
    size_t i;
    int q;
    for (q = 0; q < OPS_QUANTIZERS; q++)
        for (i = 0; i < SIZE_COUNT; i++) {
            cg_op op = ops_quantizer(q, 100);
            ref_shape s = ref_shape_of(op.quantize.id, 0, op.quantize.arg, op.quantize.size, SIZES[i]);
            ASSERT_EQ_FMTm(
                ops_text(&op), (unsigned)(CG_HEADER_BYTES + s.bytes), (unsigned)cg_bound(&op, SIZES[i]), "%u");
        }
    PASS();
}

/* cg_bound suffices: for random operators with something in every slot, random ratios, lengths and ranks. The packet
   has just that much room. Vectors of few values make ties, and packets of the greatest length. */
TEST bound_suffices(void) {
    static const char *const samples[] = { "", "randk:%s|", "randk:%s:unscaled|", "permk:2|", "permk:3|", "permk:16|",
        "cyclic:3|" },
                             *const transforms[] = { "", "", "", "rotate:1|", "dct|" },
                             *const selections[] = { "topk:%s", "mstopk:%s", "dgc:%s", "sidco:%s", "wangni:%s",
                                 "wangnivar:0.5", "threshold:0.7", "chunked:37:%s", "sides:%s", "side:%s", "blocks:5",
                                 "bins:20", "variance:1" },
                             *const quantizers[] = { "", "|f16", "|absmax:4:64", "|efsign", "|levels:7:32|huffman",
                                 "|terngrad|quartic", "|absmax:3:16|gamma", "|natural" },
                             *const codes[] = { "", "|eliasfano", "|bitmap", "|golomb" };
    static float x[3000];
    const unsigned trials = long_test() ? 300000 : 12000;
    uint64_t random = 5;
    unsigned tried = 0;
#define ANY(list) list[ref_rand(&random) % (sizeof list / sizeof *list)]
    for (unsigned trial = 0; trial < trials; trial++) {
        const size_t n = trial % 3 ? ref_rand(&random) % 400 : ref_rand(&random) % 3000;
        const uint32_t span = 1 + ref_rand(&random) % 40;
        cg_tag tag = { 1, 0, 0, 0 };
        cg_extra extra = CG_ZERO;
        char format[160], ratio[32], text[160];
        size_t cap, room, len = 0;
        void *packet, *scratch;
        cg_status s;
        cg_op op;
        tag.step = trial;
        tag.rank = ref_rand(&random) % 3;
        snprintf(ratio, sizeof ratio, "%.7g", 0.002 + ref_uniform(&random) * (trial % 2 ? 0.1 : 0.99));
        snprintf(format, sizeof format, "%s%s%s%s%s", ANY(samples), ANY(transforms), ANY(selections), ANY(quantizers),
            ANY(codes));
        snprintf(text, sizeof text, format, ratio, ratio);
        if (cg_op_parse(&op, text) != CG_OK) continue; /* bins and variance take neither sample nor transform */
        for (size_t i = 0; i < n; i++) x[i] = (float)(ref_rand(&random) % span) - (float)(span / 2);
        if (op.select.id == CG_SELECT_BINS || op.select.id == CG_SELECT_VARIANCE) extra.aux = x;
        cap = cg_bound(&op, n);
        room = cg_scratch(&op, n);
        packet = malloc(cap + 1);
        scratch = malloc(room + 1);
        if (!packet || !scratch) FAILm("no memory");
        s = cg_compress_with(&op, &tag, &extra, x, n, packet, cap, &len, scratch, room);
        free(packet), free(scratch);
        if (s == CG_E_ARG || s == CG_E_UNSUPPORTED) continue; /* a rank that permk does not have, for one */
        if (s != CG_OK || len > cap) {
            snprintf(note, sizeof note, "%s, n = %lu, rank %u: %s", text, (unsigned long)n, (unsigned)tag.rank,
                cg_status_str(s));
            FAILm(note);
        }
        tried++;
    }
#undef ANY
    ASSERT(tried > trials / 2);
    PASS();
}

SUITE(roundtrip) {
    int s, t, k;
    for (s = 0; s < OPS_SAMPLES; s++)
        for (t = 0; t < OPS_SELECTS; t++) {
            RUN_TESTp(small_sizes, s, t);
            RUN_TESTp(large_sizes, s, t);
        }
    for (k = 0; k < REF_KINDS; k++) RUN_TEST1(all_vectors, (ref_kind)k);
    RUN_TEST(counts_and_extremes);
    for (k = 0; k < OPS_CODES; k++) RUN_TEST1(few_of_many, k);
    RUN_TEST(null_tag_and_text);
    RUN_TEST(bound_is_tight);
    RUN_TEST(bound_suffices);
}

GREATEST_MAIN_DEFS();

int main(int argc, char **argv) {
    GREATEST_MAIN_BEGIN();
    RUN_SUITE(roundtrip);
    GREATEST_MAIN_END();
}
