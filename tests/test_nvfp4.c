/* nvfp4 and geometric, which store scales of their own kinds, against their definitions: every byte of a packet, to
   nearest and at random; and packets of hostile scales. */
#define COMPGRAD_IMPLEMENTATION
#include "compgrad.h"
#include "ref.h"
#include "ops.h"
#include "greatest.h"

static const cg_tag TAG = { 3, 4, 5, 6 };
enum { MOST = 70003 };
static float x[MOST], y[MOST];
static char note[300];
#define SAY(...) (snprintf(note, sizeof note, __VA_ARGS__), note)

static const double E2M1[8] = { 0, 0.5, 1, 1.5, 2, 3, 4, 6 };
static double e4m3(unsigned b) { /* OCP: bias 7, no infinity */
    const int e = (int)(b >> 3 & 15), m = (int)(b & 7);
    return e ? ldexp(1 + m / 8.0, e - 7) : ldexp(m / 8.0, -6);
}
static unsigned char *packed(const cg_op *op, const cg_tag *tag, size_t n, size_t *len) {
    ops_packet pk = ops_pack(op, tag, x, n);
    if (pk.status != CG_OK || pk.touched) {
        fprintf(stderr, "%s: %s\n", ops_text(op), ops_status((int)pk.status));
        exit(2);
    }
    *len = pk.len;
    return pk.p;
}
static size_t up4(size_t v) { return (v + 3) / 4 * 4; }

TEST nvfp4_is_its_definition(size_t n, int kind, int stochastic) {
    const cg_op op = stochastic ? cg_stochastic(cg_nvfp4()) : cg_nvfp4();
    size_t len, i, b;
    double all = 0, g;
    unsigned char *p;
    ref_fill((ref_kind)kind, n + 7, x, n);
    p = packed(&op, &TAG, n, &len);
    for (i = 0; i < n; i++) all = fmax(all, fabs((double)x[i]));
    ASSERT_EQ(CG_HEADER_BYTES + (n ? up4(4 + (n + 15) / 16) : 0) + up4((n + 1) / 2), len);
    ASSERT_ENUM_EQ(CG_OK, cg_decompress(p, len, y, n), ops_status);
    if (!n) {
        free(p);
        PASS();
    }
    g = (double)ref_float((uint32_t)ref_get(p + CG_HEADER_BYTES, 4));
    SAY("n %u, vector %d: %.9g for %.9g", (unsigned)n, kind, g, all);
    ASSERTm(note, 2688.0 * g >= all);
    if (all > 0) ASSERTm(note, 2688.0 * (double)nextafterf((float)g, 0) < all);
    for (b = 0; b * 16 < n; b++) {
        const unsigned byte = p[CG_HEADER_BYTES + 4 + b];
        const size_t end = n - b * 16 < 16 ? n : b * 16 + 16;
        double top = 0, want, scale;
        unsigned nearest = 0, c;
        for (i = b * 16; i < end; i++) top = fmax(top, fabs((double)x[i]));
        want = g > 0 ? top / (6.0 * g) : 0;
        for (c = 0; c < 0x7f; c++) {
            if (stochastic ? e4m3(nearest) < want : fabs(e4m3(c) - want) < fabs(e4m3(nearest) - want)) nearest = c;
            if (!stochastic && fabs(e4m3(c) - want) == fabs(e4m3(nearest) - want) && c % 2 == 0) nearest = c;
        }
        SAY("n %u, vector %d, bucket %u: scale %g, byte %u, not %u", (unsigned)n, kind, (unsigned)b, want, byte,
            nearest);
        ASSERT_EQm(note, nearest, byte);
        scale = (double)(float)(e4m3(byte) * g);
        for (i = b * 16; i < end; i++) {
            const unsigned code = p[CG_HEADER_BYTES + up4(4 + (n + 15) / 16) + i / 2] >> (i % 2 ? 4 : 0) & 15;
            const double v = fabs((double)x[i]), d = fabs((double)y[i]), level = E2M1[code & 7] * scale;
            double below = 0, above = HUGE_VAL, best = HUGE_VAL;
            SAY("n %u, vector %d, value %u: %.9g became %.9g, code %u, scale %g", (unsigned)n, kind, (unsigned)i,
                (double)x[i], (double)y[i], code, scale);
            ASSERTm(note, d == (double)ref_clamp((float)level) || fabs(d - level) <= level * 0x1p-24 + 0x1p-149);
            if (d > 0) ASSERTm(note, (y[i] < 0) == (x[i] < 0));
            for (c = 0; c < 8; c++) {
                const double l = E2M1[c] * scale;
                if (l <= v * (1 + 0x1p-22)) below = l;
                if (l >= v * (1 - 0x1p-22)) above = fmin(above, l);
                best = fmin(best, fabs(l - v));
            }
            if (stochastic)
                ASSERTm(note, level >= below - 1e-300 && level <= fmax(above == HUGE_VAL ? below : above, below));
            else ASSERTm(note, fabs(level - v) <= best + v * 0x1p-22 + 0x1p-148);
            if (stochastic && v > 0) ASSERTm(note, v <= 6 * scale * (1 + 0x1p-22)); /* nothing is cut off */
        }
    }
    free(p);
    PASS();
}

/* Over many keys the mean of every value is the value, within five deviations of what the levels around it allow. */
TEST nvfp4_keeps_the_mean(int kind) {
    enum { N = 320, DRAWS = 4000 };
    static double sum[N];
    const cg_op op = cg_stochastic(cg_nvfp4());
    size_t len, i, t;
    ref_fill((ref_kind)kind, 3, x, N);
    for (i = 0; i < 16; i++) x[i] = 1e-5f * x[i + 16]; /* a bucket whose scale is a denormal, or the least */
    for (i = 0; i < N; i++) sum[i] = 0;
    for (t = 0; t < DRAWS; t++) {
        cg_tag tag = TAG;
        unsigned char *p;
        tag.step = t;
        p = packed(&op, &tag, N, &len);
        ASSERT_ENUM_EQ(CG_OK, cg_decompress(p, len, y, N), ops_status);
        for (i = 0; i < N; i++) sum[i] += (double)y[i] / DRAWS;
        if (t + 1 == DRAWS)
            for (i = 0; i < N; i++) {
                const double g = (double)ref_float((uint32_t)ref_get(p + CG_HEADER_BYTES, 4)),
                             scale = (double)(float)(e4m3(p[CG_HEADER_BYTES + 4 + i / 16]) * g), v = fabs((double)x[i]);
                double lo = 0, hi = 6 * scale;
                int c;
                for (c = 0; c < 8; c++) {
                    if (E2M1[c] * scale <= v) lo = E2M1[c] * scale;
                    if (E2M1[7 - c] * scale >= v) hi = E2M1[7 - c] * scale;
                }
                SAY("vector %d, value %u: %.9g, mean %.9g, levels %g %g", kind, (unsigned)i, (double)x[i], sum[i], lo,
                    hi);
                ASSERTm(note,
                    fabs(sum[i] - (double)x[i]) <=
                        5 * sqrt(fmax((v - lo) * (hi - v), 0) / DRAWS) + 3e-3 * (hi - lo) + 1e-6 * v);
            }
        free(p);
    }
    PASS();
}

TEST hostile_scales(const char *text, size_t at, uint32_t value, int bytes) {
    cg_op op;
    size_t len, i;
    unsigned char *p;
    ASSERT_ENUM_EQ(CG_OK, cg_op_parse(&op, text), ops_status);
    ref_fill(REF_GAUSSIAN, 1, x, 1000);
    p = packed(&op, &TAG, 1000, &len);
    ref_put(p + CG_HEADER_BYTES + at, value, bytes);
    ref_seal(p, len);
    for (i = 0; i < 1000; i++) y[i] = 7.0f;
    SAY("%s: %08x at %u", text, (unsigned)value, (unsigned)at);
    ASSERT_ENUM_EQm(note, CG_E_CORRUPT, cg_decompress(p, len, y, 1000), ops_status);
    for (i = 0; i < 1000; i++) ASSERTm(note, y[i] == 7.0f);
    free(p);
    PASS();
}

/* Levels by pow, which is right to a unit or two; then the nearest of them. */
TEST geometric_is_its_definition(int bits, uint32_t bucket, size_t n, int kind) {
    const cg_op op = cg_geometric(bits, bucket);
    const int levels = 1 << (bits - 1);
    const size_t step = bucket && bucket < n ? bucket : n ? n : 1, buckets = (n + step - 1) / step;
    size_t len, i, b;
    unsigned char *p;
    ref_fill((ref_kind)kind, n + 3, x, n);
    p = packed(&op, &TAG, n, &len);
    ASSERT_EQ(CG_HEADER_BYTES + 8 * buckets + up4((n * (size_t)bits + 7) / 8), len);
    ASSERT_ENUM_EQ(CG_OK, cg_decompress(p, len, y, n), ops_status);
    for (b = 0; b < buckets; b++) {
        const size_t from = b * step, end = n - from < step ? n : from + step;
        double lo = HUGE_VAL, hi = 0, sum = 0, level[8];
        int l;
        for (i = from; i < end; i++) {
            const double m = fabs((double)x[i]);
            if (m > 0) lo = fmin(lo, m);
            hi = fmax(hi, m);
            sum += m;
        }
        if (hi == 0) lo = 0;
        if (bits == 1) lo = hi = sum / (double)(end - from);
        SAY("geometric:%d:%u, n %u, vector %d: scales %.9g %.9g", bits, (unsigned)bucket, (unsigned)n, kind, lo, hi);
        for (l = 0; l < 2; l++) {
            const double s = (double)ref_float((uint32_t)ref_get(p + CG_HEADER_BYTES + 8 * b + 4 * (size_t)l, 4)),
                         want = l ? hi : lo;
            ASSERTm(note, bits == 1 ? fabs(s - want) <= want * 0x1p-23 + 0x1p-149 : s == want);
        }
        for (l = 0; l < levels; l++) level[l] = lo > 0 ? lo * pow(hi / lo, (l + 0.5) / levels) : 0;
        for (i = from; i < end; i++) {
            const double v = fabs((double)x[i]), d = fabs((double)y[i]);
            double best = HUGE_VAL, off = HUGE_VAL;
            for (l = 0; l < levels; l++) {
                best = fmin(best, fabs(level[l] - v));
                off = fmin(off, fabs(level[l] - d));
            }
            SAY("geometric:%d:%u, n %u, vector %d: %.9g became %.9g", bits, (unsigned)bucket, (unsigned)n, kind,
                (double)x[i], (double)y[i]);
            ASSERTm(note, off <= d * 0x1p-22 + 0x1p-149);
            ASSERTm(note, fabs(d - v) <= best * (1 + 0x1p-20) + d * 0x1p-21 + 0x1p-148);
            if (d > 0) ASSERTm(note, (y[i] < 0) == (x[i] < 0));
        }
    }
    free(p);
    PASS();
}
TEST nonfinite_is_refused(const char *text) {
    cg_op op;
    size_t i;
    ASSERT_ENUM_EQ(CG_OK, cg_op_parse(&op, text), ops_status);
    for (i = 0; i < 4; i++) {
        ops_packet pk;
        ref_fill(REF_GAUSSIAN, 1, x, 66000);
        x[i * 21999] = ref_float(i % 2 ? 0x7fc00000u : 0xff800000u);
        pk = ops_pack(&op, &TAG, x, 66000);
        ASSERT_ENUM_EQm(text, CG_E_NONFINITE, pk.status, ops_status);
        free(pk.p);
    }
    PASS();
}

SUITE(scales_of_their_own) {
    static const size_t sizes[] = { 0, 1, 15, 16, 17, 33, 1000, 2049 };
    static const int kinds[] = { REF_GAUSSIAN, REF_LAPLACE, REF_OUTLIER, REF_ZEROS, REF_DENORMALS, REF_HUGE, REF_TIES };
    static const uint32_t bad[] = { 0x7f800000u, 0x7fc00000u, 0xbf800000u, 0x7f7fffffu };
    size_t i, j;
    int b;
    for (i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (j = 0; j < sizeof kinds / sizeof *kinds; j++) {
            RUN_TESTp(nvfp4_is_its_definition, sizes[i], kinds[j], 0);
            RUN_TESTp(nvfp4_is_its_definition, sizes[i], kinds[j], 1);
            for (b = 1; b <= 4; b++) {
                RUN_TESTp(geometric_is_its_definition, b, 0u, sizes[i], kinds[j]);
                RUN_TESTp(geometric_is_its_definition, b, 100u, sizes[i], kinds[j]);
            }
        }
    RUN_TESTp(nvfp4_is_its_definition, (size_t)MOST, (int)REF_LAPLACE, 0);
    RUN_TESTp(nvfp4_is_its_definition, (size_t)MOST, (int)REF_LAPLACE, 1);
    RUN_TESTp(geometric_is_its_definition, 3, 0u, (size_t)MOST, (int)REF_LAPLACE);
    RUN_TEST1(nvfp4_keeps_the_mean, (int)REF_GAUSSIAN);
    RUN_TEST1(nvfp4_keeps_the_mean, (int)REF_LAPLACE);
    for (i = 0; i < sizeof bad / sizeof *bad; i++) RUN_TESTp(hostile_scales, "nvfp4", (size_t)0, bad[i], 4);
    RUN_TESTp(hostile_scales, "nvfp4", (size_t)9, 0x7fu, 1);
    RUN_TESTp(hostile_scales, "nvfp4", (size_t)9, 0x81u, 1);
    RUN_TESTp(hostile_scales, "mxfp4", (size_t)9, 0xffu, 1);
    for (i = 0; i < sizeof bad / sizeof *bad; i++) RUN_TESTp(hostile_scales, "geometric:3", (size_t)0, bad[i], 4);
    RUN_TESTp(hostile_scales, "geometric:2", (size_t)4, 0x7f800000u, 4);
    RUN_TESTp(hostile_scales, "geometric:2", (size_t)4, 0u, 4); /* below the smallest */
    RUN_TEST1(nonfinite_is_refused, "nvfp4");
    RUN_TEST1(nonfinite_is_refused, "nvfp4:stochastic");
    RUN_TEST1(nonfinite_is_refused, "geometric:1");
    RUN_TEST1(nonfinite_is_refused, "geometric:3:1000");
}
GREATEST_MAIN_DEFS();
int main(int argc, char **argv) {
    GREATEST_MAIN_BEGIN();
    RUN_SUITE(scales_of_their_own);
    GREATEST_MAIN_END();
}
