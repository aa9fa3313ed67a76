/* clip: magnitudes beyond s times the root mean square of what the quantizer sees are cut to it. Whatever stands before
   and behind it, a packet has the values that the operator without clip makes of the values cut by hand. */
#define COMPGRAD_IMPLEMENTATION
#include "compgrad_ef.h"
#include "ref.h"
#include "ops.h"
#include "greatest.h"

static const cg_tag TAG = { 7, 8, 9, 2 };
enum { MOST = 140003 };
static float x[MOST], kept[MOST], cut[MOST], y[MOST], z[MOST];
static size_t at[MOST];
static char note[300];
#define SAY(...) (snprintf(note, sizeof note, __VA_ARGS__), note)

/* A codec of the user's: the floats as they are. */
static size_t plain_bound(const cg_codec *self, const cg_stage *stage, size_t n) {
    (void)self;
    (void)stage;
    return 4 * n + 4;
}
static cg_status plain_compress(const cg_codec *self, const cg_stage *stage, const cg_tag *tag, const float *v,
    size_t n, void *out, size_t cap, size_t *len) {
    (void)self;
    (void)stage;
    (void)tag;
    if (cap < 4 * n) return CG_E_CAPACITY;
    memcpy(out, v, 4 * n);
    *len = 4 * n;
    return CG_OK;
}
static cg_status plain_decode(const cg_codec *self, const cg_stage *stage, const void *in, size_t len, size_t n,
    size_t first, size_t count, float *out) {
    (void)self;
    (void)stage;
    (void)n;
    if (len < 4 * (first + count)) return CG_E_CORRUPT;
    memcpy(out, (const char *)in + 4 * first, 4 * count);
    return CG_OK;
}
static const cg_codec PLAIN = { 150, plain_bound, plain_compress, plain_decode, NULL };
static const cg_codec *const CODECS[] = { &PLAIN };

static cg_op parsed(const char *text) {
    cg_op op;
    char why[256];
    if (cg_op_parse_why(&op, text, why, sizeof why) != CG_OK) {
        fprintf(stderr, "%s: %s\n", text, why);
        exit(2);
    }
    return op;
}
static cg_status round_trip(const cg_op *op, const float *v, size_t n, float *out, cg_info *info) {
    cg_extra extra = CG_ZERO;
    size_t cap, need = cg_scratch(op, n), len = 0;
    unsigned char *packet, *scratch = (unsigned char *)ref_alloc(need + 1);
    cg_status s;
    extra.codecs = CODECS;
    extra.codec_count = 1;
    cap = cg_bound_with(op, &extra, n);
    packet = (unsigned char *)ref_alloc(cap);
    s = cg_compress_with(op, &TAG, &extra, v, n, packet, cap, &len, need ? scratch : NULL, need);
    if (s == CG_OK) s = cg_decode(&extra, packet, len, 1, 0, out, n);
    if (s == CG_OK && info) s = cg_inspect(packet, len, info);
    free(packet);
    free(scratch);
    return s;
}

/* The limit, from sums of squares in long double, to within a unit in the last place of a float. */
TEST limit(double s, size_t n, int kind) {
    const cg_op op = cg_clip((float)s);
    long double squares = 0;
    double c, most = 0;
    size_t i;
    ref_fill((ref_kind)kind, n, x, n);
    for (i = 0; i < n; i++) squares += (long double)x[i] * (long double)x[i];
    c = (double)(float)s * (double)sqrtl(squares / (long double)(n ? n : 1));
    ASSERT_ENUM_EQ(CG_OK, round_trip(&op, x, n, y, NULL), ops_status);
    for (i = 0; i < n; i++) most = fmax(most, fabs((double)y[i]));
    for (i = 0; i < n; i++) {
        SAY("clip:%g, n %u, vector %d: %.9g became %.9g, limit %.9g", s, (unsigned)n, kind, (double)x[i], (double)y[i],
            c);
        if (fabs((double)x[i]) <= c * (1 - 0x1p-23)) ASSERTm(note, ref_bits(y[i]) == ref_bits(x[i]));
        else ASSERTm(note, fabs(fabs((double)y[i]) - fmin(c, fabs((double)x[i]))) <= c * 0x1p-23 + 0x1p-149);
        ASSERTm(note, signbit(x[i]) == signbit(y[i]));
        if (fabs((double)x[i]) > c * (1 + 0x1p-23)) ASSERTm(note, fabs((double)y[i]) == most); /* one limit for all */
    }
    PASS();
}

/* D(before|clip:s|behind)(x), where the values that `before` leaves are cut by clip alone. behind may round at random,
   by the place of a value among those. */
TEST by_hand(const char *before, const char *behind, size_t n, int kind) {
    const cg_op left = parsed(*before ? before : "dense"), clip = cg_clip(1.25f), q = parsed(behind),
                all = cg_then(cg_then(left, clip), q);
    char text[160];
    cg_info info, info_all;
    cg_op again;
    size_t i, k = 0;
    ref_fill((ref_kind)kind, n, x, n);
    for (i = 0; i < n; i++)
        if (x[i] == 0.0f) x[i] = 1e-3f; /* a value that was kept is not 0 */
    SAY("%s|clip:1.25|%s, n %u", before, behind, (unsigned)n);
    ASSERT_ENUM_EQm(note, CG_OK, round_trip(&left, x, n, y, &info), ops_status);
    for (i = 0; i < n; i++)
        if (!*before || y[i] != 0.0f) at[k] = i, kept[k++] = y[i];
    ASSERT_EQm(note, info.k, k);
    ASSERT_ENUM_EQm(note, CG_OK, round_trip(&clip, kept, k, cut, NULL), ops_status);
    ASSERT_ENUM_EQm(note, CG_OK, round_trip(&q, cut, k, z, NULL), ops_status);
    ASSERT_ENUM_EQm(note, CG_OK, round_trip(&all, x, n, y, &info_all), ops_status);
    ASSERTm(note, info_all.k == k && ref_bits(info_all.threshold) == ref_bits(info.threshold));
    ASSERTm(note, info_all.op.clip.id == CG_CLIP_RMS && info_all.op.clip.value == 1.25f);
    for (i = 0, k = 0; i < n; i++) {
        const int here = k < info.k && at[k] == i;
        if (ref_bits(y[i]) != (here ? ref_bits(z[k]) : 0)) {
            SAY("%s|clip:1.25|%s, n %u: value %u is %.9g", before, behind, (unsigned)n, (unsigned)i, (double)y[i]);
            FAILm(note);
        }
        k += (size_t)here;
    }
    ASSERT_ENUM_EQm(note, CG_OK, cg_op_print(&all, text, sizeof text), ops_status);
    ASSERT_ENUM_EQm(text, CG_OK, cg_op_parse(&again, text), ops_status);
    ASSERT_MEM_EQm(text, &all, &again, sizeof all);
    PASS();
}

/* Behind a transform the cut values are those of the rotated vector: rotated back by the inverse, which is the decoder
   of a packet of the same tag. */
TEST behind_a_transform(const char *transform, const char *behind, size_t n) {
    const cg_op op = cg_then(cg_then(parsed(transform), cg_clip(0.5f)), parsed(behind)),
                without = cg_then(parsed(transform), parsed(behind));
    double before = 0, after = 0, dot = 0;
    size_t i;
    ref_fill(REF_LAPLACE, n, x, n);
    ASSERT_ENUM_EQ(CG_OK, round_trip(&op, x, n, y, NULL), ops_status);
    ASSERT_ENUM_EQ(CG_OK, round_trip(&without, x, n, z, NULL), ops_status);
    for (i = 0; i < n; i++) {
        before += (double)z[i] * (double)z[i];
        after += (double)y[i] * (double)y[i];
        dot += (double)y[i] * (double)z[i];
    }
    /* rotated values are about normal: E min(|g|, 1/2)^2 = .185, and E |g| min(|g|, 1/2) = .383 */
    SAY("%s|clip:0.5|%s: |y|^2 %.3f, <y, z> %.3f", transform, behind, after / before, dot / before);
    ASSERTm(note, fabs(after / before - 0.1851) < 0.01 && fabs(dot / before - 0.3829) < 0.01);
    PASS();
}

TEST nonfinite_is_refused(const char *text, size_t n) {
    const cg_op op = parsed(text);
    static const uint32_t EVIL[] = { 0x7f800000u, 0xff800000u, 0x7fc00000u, 0x7f800001u };
    size_t i;
    for (i = 0; i < sizeof EVIL / sizeof *EVIL; i++) {
        ref_fill(REF_GAUSSIAN, n, x, n);
        x[i * (n - 1) / 3] = ref_float(EVIL[i]);
        ASSERT_ENUM_EQm(text, CG_E_NONFINITE, round_trip(&op, x, n, y, NULL), ops_status);
    }
    PASS();
}

TEST refused(const char *text, const char *why) {
    cg_op op;
    char said[256];
    ASSERT_ENUM_EQm(text, CG_E_ARG, cg_op_parse_why(&op, text, said, sizeof said), ops_status);
    ASSERT_STR_EQ(why, said);
    PASS();
}
TEST refused_in_c(void) {
    static const float BAD[] = { 0.0f, -1.0f, -0.0f };
    cg_op op = cg_then(cg_clip(2.0f), cg_clip(3.0f));
    cg_about about;
    size_t i;
    ASSERT_EQ(0, cg_bound(&op, 100));
    op = cg_then(cg_lowrank(10, 10, 2), cg_clip(2.0f));
    ASSERT_EQ(0, cg_bound(&op, 100));
    for (i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        op = cg_clip(BAD[i]);
        ASSERT_EQ(0, cg_bound(&op, 100));
    }
    op = cg_clip(ref_float(0x7fc00000u));
    ASSERT_EQ(0, cg_bound(&op, 100));
    op = cg_clip(2.5f);
    ASSERT_ENUM_EQ(CG_OK, cg_op_about(&op, 100, &about), ops_status);
    ASSERT(!about.unbiased && about.omega == 0.5625 && !about.needs_memory); /* (1 - 2.5/10)^2 */
    ASSERT_ENUM_EQ(CG_OK, cg_op_about(&op, 6, &about), ops_status);
    ASSERT(about.unbiased && about.omega == 0.0); /* nothing is beyond sqrt(6) */
    PASS();
}

/* Error feedback keeps what was cut: residual + D = gradient + residual before it, in every step. */
TEST error_feedback_keeps_the_rest(const char *text, size_t n) {
    cg_ef_desc desc = CG_ZERO;
    cg_ef ef = CG_ZERO;
    size_t bytes, cap, len, i, step;
    void *mem, *packet;
    desc.n = n;
    desc.op = parsed(text);
    bytes = cg_ef_memory(&desc);
    ASSERT(bytes);
    mem = malloc(bytes);
    cap = cg_ef_bound(&desc);
    packet = malloc(cap);
    ASSERT(mem && packet);
    ASSERT_ENUM_EQ(CG_OK, cg_ef_init(&ef, &desc, mem, bytes), ops_status);
    for (step = 0; step < 3; step++) {
        cg_tag tag = TAG;
        tag.step = step;
        ref_fill(REF_LAPLACE, n + step, x, n);
        for (i = 0; i < n; i++) kept[i] = ref_add(x[i], step ? cg_ef_residual(&ef)[i] : 0.0f);
        ASSERT_ENUM_EQm(text, CG_OK, cg_ef_compress(&ef, &tag, x, packet, cap, &len), ops_status);
        ASSERT_ENUM_EQm(text, CG_OK, cg_decompress(packet, len, y, n), ops_status);
        ASSERT_ENUM_EQm(text, CG_OK, round_trip(&desc.op, kept, n, z, NULL), ops_status);
        ASSERT_ENUM_EQm(text, CG_OK, cg_ef_commit(&ef, packet, len, NULL), ops_status);
        for (i = 0; i < n; i++) {
            SAY("%s, step %u, value %u", text, (unsigned)step, (unsigned)i);
            ASSERTm(note,
                fabs((double)cg_ef_residual(&ef)[i] + (double)y[i] - (double)kept[i]) <=
                    1e-6 * (fabs((double)kept[i]) + fabs((double)y[i])));
        }
    }
    free(mem);
    free(packet);
    PASS();
}

SUITE(clips) {
    static const char *const quantizers[] = { "dense", "dense|huffman", "f16", "bf16|huffman", "sign", "efsign",
        "absmax:4:64", "absmax:8:70000:nearest", "minmax:4:512", "terngrad", "terngrad:clip", "levels:4",
        "levels:7:64|omega", "flexpoint:8:64", "flex16:512", "trits:1|quartic", "strom:0.5", "onebit:100", "natural",
        "dither:4", "dynamic8", "e4m3:64", "e5m2", "mxfp4:stochastic", "mxe4m3", "nf4:stochastic", "bf16:stochastic",
        "user:150:0:0:0", "nvfp4", "geometric:3", "rate:4", "step:0.3", "rate:1:unbiased" };
    static const char *const before[] = { "topk:0.1", "topk:0.3", "mstopk:0.1", "dgc:0.2", "threshold:0.5",
        "chunked:64:0.2", "sides:0.1", "wangni:0.2", "randk:0.3", "randk:0.3:unscaled", "permk:4", "cyclic:3",
        "randk:0.5|topk:0.2" };
    static const size_t sizes[] = { 0, 1, 2, 31, 1000, 5000 };
    size_t i, j;
    for (i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        RUN_TESTp(limit, 2.5, sizes[i], (int)REF_GAUSSIAN);
        RUN_TESTp(limit, 0.7, sizes[i], (int)REF_LAPLACE);
        RUN_TESTp(limit, 1.0, sizes[i], (int)REF_OUTLIER);
        RUN_TESTp(limit, 1.5, sizes[i], (int)REF_DENORMALS);
        RUN_TESTp(limit, 0.5, sizes[i], (int)REF_HUGE);
        RUN_TESTp(limit, 3.0, sizes[i], (int)REF_ZEROS);
    }
    RUN_TESTp(limit, 2.0, (size_t)MOST, (int)REF_LAPLACE);
    for (i = 0; i < sizeof quantizers / sizeof *quantizers; i++) {
        for (j = 0; j < sizeof sizes / sizeof *sizes; j++)
            RUN_TESTp(by_hand, "", quantizers[i], sizes[j], (int)(i % 2 ? REF_LAPLACE : REF_OUTLIER));
        RUN_TESTp(by_hand, "topk:0.1", quantizers[i], (size_t)1000, (int)REF_LAPLACE);
        RUN_TESTp(by_hand, "randk:0.4", quantizers[i], (size_t)1000, (int)REF_LAPLACE);
    }
    for (i = 0; i < sizeof before / sizeof *before; i++) {
        RUN_TESTp(by_hand, before[i], "absmax:4:64", (size_t)1000, (int)REF_LAPLACE);
        RUN_TESTp(by_hand, before[i], "minmax:3:512", (size_t)5000, (int)REF_GAUSSIAN);
        RUN_TESTp(by_hand, before[i], "dense", (size_t)77, (int)REF_GAUSSIAN);
    }
    RUN_TESTp(by_hand, "", "absmax:4:512", (size_t)MOST, (int)REF_LAPLACE);
    RUN_TESTp(by_hand, "randk:0.7", "absmax:4:70000", (size_t)MOST, (int)REF_LAPLACE);
    RUN_TESTp(by_hand, "topk:0.6", "levels:7|gamma", (size_t)MOST, (int)REF_LAPLACE);
    RUN_TESTp(behind_a_transform, "rotate:3", "dense", (size_t)8192);
    RUN_TESTp(behind_a_transform, "rotate:3", "absmax:8:512", (size_t)8192);
    RUN_TESTp(behind_a_transform, "rotate:2", "dense", (size_t)70000);
    RUN_TESTp(nonfinite_is_refused, "clip:2.5", (size_t)1000);
    RUN_TESTp(nonfinite_is_refused, "clip:0.5|absmax:4:64", (size_t)70001);
    RUN_TESTp(nonfinite_is_refused, "rotate:1|clip:2|efsign", (size_t)3000);
    RUN_TESTp(nonfinite_is_refused, "topk:0.1|clip:2.5|f16", (size_t)1000);
    RUN_TESTp(refused, "absmax:4:512|clip:2",
        "at 13: 'clip' is a clip and must stand before 'absmax'; the order is "
        "sample|transform|selection|clip|quantizer|code");
    RUN_TESTp(refused, "clip:2|topk:0.1",
        "at 7: 'topk' is a selection and must stand before 'clip'; the order is "
        "sample|transform|selection|clip|quantizer|code");
    RUN_TESTp(refused, "clip:2|clip:3|f16", "at 7: 'clip' is a second clip after 'clip': only one fits");
    RUN_TESTp(refused, "clip", "at 4: clip lacks its rms: above 0, as in 'clip:2.5'");
    RUN_TESTp(refused, "clip:0", "at 5: '0' is out of range for the rms of clip: above 0, as in 'clip:2.5'");
    RUN_TESTp(refused, "lowrank:2:10:10|clip:2",
        "at 0: lowrank and atomo are complete operators: no other stage goes with them");
    RUN_TEST(refused_in_c);
    RUN_TESTp(error_feedback_keeps_the_rest, "clip:2.5|bf16", (size_t)3000);
    RUN_TESTp(error_feedback_keeps_the_rest, "clip:1", (size_t)70001);
    RUN_TESTp(error_feedback_keeps_the_rest, "topk:0.1|clip:1|absmax:4:64:nearest", (size_t)70001);
    RUN_TESTp(error_feedback_keeps_the_rest, "clip:1.5|absmax:4:512:nearest", (size_t)70001);
}

GREATEST_MAIN_DEFS();
int main(int argc, char **argv) {
    GREATEST_MAIN_BEGIN();
    RUN_SUITE(clips);
    GREATEST_MAIN_END();
}
