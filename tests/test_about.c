/* cg_op_about held to what operators do: every stage and preset at several parameters and n, on Gaussian and Laplace
   vectors, one outlier, one and two spikes, and a constant. Errors never exceed omega and 1 - delta; where a bound is
   tight, the worst vector reaches it; what is called unbiased is, and what is not is seen not to be; bits and
   fixed_size are those of the packets. Refusals say why. Error feedback has the numbers that it had before they came
   from the rows.

   Statistics. An error of T draws has a mean and a standard error s/sqrt(T). Keys are independent, so the mean exceeds
   the expectation by SIGMAS = 5 standard errors with a probability of 3e-7 where it is about normal; where rare large
   draws make it skew, k of them raise it by at most sqrt(k) standard errors. There are some 10^4 comparisons with fixed
   keys. f32 arithmetic adds at most ROUNDINGS roundings of 2^-24 of the largest magnitude to each value. */
#undef COMPGRAD_LINKED /* it compares private numbers of error feedback */
#define COMPGRAD_STATIC
#define COMPGRAD_NO_SIMD /* nothing here depends on it, and it is quicker to build */
#define COMPGRAD_IMPLEMENTATION
#include "compgrad_ef.h"
#include "ref.h"
#include "ops.h"
#include "greatest.h"
#include "tier.h"

static const double SIGMAS = 5.0, ROUNDINGS = 8.0;
enum { MAX_N = 1500, SIGNS = 4, SIZES = 8, VECTORS = 6 };
static const size_t N_OF[SIZES] = { 1, 2, 7, 64, 100, 1000, 1024, 1500 };
static char note[400];
#define SAY(...) (snprintf(note, sizeof note, __VA_ARGS__), note)

static double sq(double v) { return v * v; }
static double norm2(const float *x, size_t n) {
    double s = 0;
    for (size_t i = 0; i < n; i++) s += sq((double)x[i]);
    return s;
}
static double largest(const float *x, size_t n) {
    double m = 0;
    for (size_t i = 0; i < n; i++) m = fmax(m, fabs((double)x[i]));
    return m;
}

/* ---- the table ---- */

enum { UNBIASED = 1, STALLS = 2, FIXED = 4, VARIES = 8 }; /* neither FIXED nor VARIES: it depends on n */
enum { HIDDEN = 16 };                                     /* a bias or lengths that differ, but not in these draws */
enum { KNOWN, NO_DELTA /* the data decides; omega is 1 */, NO_OMEGA };
enum { BITS, MOST /* value codes */, NEAR /* counts or places are random */, NO_BITS };
typedef struct row {
    const char *text; /* matrices: without rows and cols */
    int flags, error, bits;
} row;
static const row ROWS[] = {
    { "dense", UNBIASED | FIXED, KNOWN, BITS },
    { "dense|huffman", UNBIASED | VARIES, KNOWN, MOST },
    { "f16", FIXED, KNOWN, BITS },
    { "bf16", FIXED, KNOWN, BITS },
    { "sign", STALLS | FIXED, NO_OMEGA, BITS },
    { "efsign", STALLS | FIXED, KNOWN, BITS },
    { "onebit", STALLS | FIXED, KNOWN, BITS },
    { "onebit:100", STALLS | FIXED, KNOWN, BITS },
    { "absmax:1:64", UNBIASED | FIXED, KNOWN, BITS },
    { "absmax:1:64:nearest", FIXED, KNOWN, BITS },
    { "absmax:2:512", UNBIASED | FIXED, KNOWN, BITS },
    { "absmax:2:100:nearest", FIXED, KNOWN, BITS },
    { "absmax:4:512", UNBIASED | FIXED, KNOWN, BITS },
    { "absmax:4:5000", UNBIASED | FIXED, KNOWN, BITS },
    { "absmax:4:512:nearest", FIXED, KNOWN, BITS },
    { "absmax:8:1", UNBIASED | FIXED, KNOWN, BITS },
    { "absmax:8:512", UNBIASED | FIXED, KNOWN, BITS },
    { "minmax:1:64", UNBIASED | FIXED, KNOWN, BITS },
    { "minmax:1:64:nearest", FIXED, KNOWN, BITS },
    { "minmax:4:512", UNBIASED | FIXED, KNOWN, BITS },
    { "minmax:4:100:nearest", FIXED, KNOWN, BITS },
    { "minmax:8:100", UNBIASED | FIXED, KNOWN, BITS },
    { "minmax:4:512:norm", UNBIASED | FIXED, KNOWN, BITS },
    { "minmax:4:512:norm:nearest", FIXED, KNOWN, BITS },
    { "klevel:4:512", UNBIASED | VARIES, KNOWN, MOST },
    { "flexpoint:2:64", FIXED, KNOWN, BITS },
    { "flexpoint:8:100", FIXED, KNOWN, BITS },
    { "flex16:512", FIXED, KNOWN, BITS },
    { "levels:1", UNBIASED | FIXED, KNOWN, BITS },
    { "levels:7:512", UNBIASED | FIXED, KNOWN, BITS },
    { "levels:127", UNBIASED | FIXED, KNOWN, BITS },
    { "levels:7:512:nearest", FIXED, KNOWN, BITS },
    { "levels:127:nearest", FIXED, KNOWN, BITS },
    { "levels:7:512:max", UNBIASED | FIXED, KNOWN, BITS },
    { "levels:7:512:max:nearest", FIXED, KNOWN, BITS },
    { "qsgd:4", UNBIASED | VARIES, KNOWN, MOST },
    { "levels:4|gamma", UNBIASED | VARIES, KNOWN, MOST },
    { "terngrad", UNBIASED | FIXED, KNOWN, BITS },
    { "terngrad:nearest", FIXED, KNOWN, BITS },
    { "terngrad:clip", FIXED, KNOWN, BITS },
    { "terngrad:clip:nearest", FIXED, KNOWN, BITS },
    { "trits:1", STALLS | FIXED, KNOWN, BITS },
    { "trits:1.75", STALLS | FIXED, KNOWN, BITS },
    { "threelc:1.5", STALLS | VARIES, KNOWN, MOST },
    { "strom:0.5", STALLS | FIXED, NO_DELTA, BITS },
    { "natural", UNBIASED | FIXED, KNOWN, BITS },
    { "natural:nearest", FIXED, KNOWN, BITS },
    { "dither:2:64", UNBIASED | FIXED, KNOWN, BITS },
    { "dither:3", UNBIASED | FIXED, KNOWN, BITS },
    { "dither:4:512", UNBIASED | FIXED, KNOWN, BITS },
    { "dither:3:100:max", UNBIASED | FIXED, KNOWN, BITS },
    { "dither:3:100:nearest", FIXED, KNOWN, BITS },
    { "dither:3:100:max:nearest", FIXED, KNOWN, BITS },
    { "dynamic8", FIXED, KNOWN, BITS },
    { "dynamic8:256", FIXED, KNOWN, BITS },
    { "e4m3", FIXED, KNOWN, BITS },
    { "e5m2:64", FIXED, KNOWN, BITS },
    { "mxfp4", FIXED, KNOWN, BITS },
    { "mxe4m3", FIXED, KNOWN, BITS },
    { "mxe5m2", FIXED, KNOWN, BITS },
    { "nf4", FIXED, KNOWN, BITS },
    { "nf4:32", FIXED, KNOWN, BITS },
    { "rate:1", STALLS | VARIES, NO_DELTA, MOST },
    { "rate:4:unbiased", UNBIASED | VARIES, NO_OMEGA, MOST },
    { "step:0.5", STALLS | VARIES, KNOWN, MOST },
    { "step:0.5:unbiased", UNBIASED | VARIES, KNOWN, MOST },
    { "topk:0.1|rate:4", STALLS | VARIES, NO_DELTA, MOST },
    { "f16:stochastic", UNBIASED | FIXED, KNOWN, BITS },
    { "bf16:stochastic", UNBIASED | FIXED, KNOWN, BITS },
    { "bf16:stochastic|huffman", UNBIASED | VARIES, KNOWN, MOST },
    { "e4m3:64:stochastic", UNBIASED | FIXED, KNOWN, BITS },
    { "e5m2:stochastic", UNBIASED | FIXED, KNOWN, BITS },
    { "mxfp4:stochastic", UNBIASED | FIXED, KNOWN, BITS },
    { "mxe4m3:stochastic", UNBIASED | FIXED, KNOWN, BITS },
    { "mxe5m2:stochastic", UNBIASED | FIXED, KNOWN, BITS },
    { "nf4:stochastic", UNBIASED | FIXED, KNOWN, BITS },
    { "nf4:32:stochastic", UNBIASED | FIXED, KNOWN, BITS },
    { "topk:0.1|bf16:stochastic", STALLS | FIXED, KNOWN, BITS },
    { "randk:0.25|nf4:stochastic", UNBIASED | FIXED, KNOWN, BITS },
    { "rotate:1", UNBIASED | FIXED, KNOWN, BITS },
    { "rotate:3", UNBIASED | FIXED, KNOWN, BITS },
    { "dct", UNBIASED | FIXED, KNOWN, BITS },
    { "srq:2", UNBIASED | FIXED, KNOWN, BITS },
    { "srq:4", UNBIASED | FIXED, KNOWN, BITS },
    { "rotate:1|minmax:3:100", UNBIASED | FIXED, KNOWN, BITS },
    { "rotate:3|absmax:1:1024", UNBIASED | FIXED, KNOWN, BITS },
    { "rotate:3|absmax:4:512", UNBIASED | FIXED, KNOWN, BITS },
    { "rotate:2|absmax:4:300:nearest", FIXED | HIDDEN, KNOWN, BITS },
    { "dct|absmax:4:300:nearest", FIXED, KNOWN, BITS },
    { "rotate:1|lloyd:2", FIXED | HIDDEN, NO_OMEGA, BITS },
    { "rotate:2|lloyd:2", FIXED | HIDDEN, NO_OMEGA, BITS },
    { "rotate:3|terngrad", UNBIASED | FIXED, KNOWN, BITS },
    { "drive", UNBIASED | FIXED, KNOWN, BITS },
    { "eden:2", UNBIASED | FIXED, KNOWN, BITS },
    { "eden:2.5", UNBIASED | FIXED, KNOWN, BITS },
    { "eden:4", UNBIASED | FIXED, KNOWN, BITS },
    { "eden:0.5", UNBIASED | FIXED, KNOWN, BITS },
    { "topk:0.01", STALLS | FIXED, KNOWN, BITS },
    { "topk:0.3", STALLS | FIXED, KNOWN, BITS },
    { "topk:1", UNBIASED | FIXED, KNOWN, BITS },
    { "topk:k=5", STALLS | FIXED, KNOWN, BITS },
    { "topk:0.1|golomb", STALLS | VARIES, KNOWN, NEAR },
    { "topk:0.1|bitmap", STALLS | FIXED, KNOWN, BITS },
    { "topk:0.1|eliasfano", STALLS | FIXED, KNOWN, BITS },
    { "mstopk:0.05", STALLS | FIXED, KNOWN, BITS },
    { "mstopk:0.8", STALLS | FIXED, KNOWN, BITS },
    { "dgc:0.1", STALLS | VARIES | HIDDEN, KNOWN, NEAR },
    { "sidco:0.1", STALLS | VARIES, KNOWN, NEAR },
    { "chunked:64:0.1", STALLS | FIXED, KNOWN, BITS },
    { "chunked:100:0.07", STALLS | FIXED, KNOWN, BITS },
    { "sides:0.1", STALLS | VARIES, KNOWN, NEAR },
    { "side:0.1", STALLS | VARIES, KNOWN, NEAR },
    { "threshold:0.5", STALLS | VARIES, NO_DELTA, NO_BITS },
    { "variance:1", STALLS | VARIES, NO_DELTA, NO_BITS },
    { "bins:50", STALLS | VARIES, NO_OMEGA, NO_BITS },
    { "given", STALLS, NO_DELTA, NO_BITS },
    { "blocks:32", UNBIASED, KNOWN, NO_BITS },
    { "wangni:0.1", UNBIASED | VARIES, KNOWN, NEAR },
    { "wangni:0.6", UNBIASED | VARIES, KNOWN, NEAR },
    { "wangnivar:0.5", UNBIASED | VARIES, KNOWN, NO_BITS },
    { "randk:0.01", UNBIASED | FIXED, KNOWN, BITS },
    { "randk:0.25", UNBIASED | FIXED, KNOWN, BITS },
    { "randk:0.3", UNBIASED | FIXED, KNOWN, BITS },
    { "randk:0.9", UNBIASED | FIXED, KNOWN, BITS },
    { "randk:k=7", UNBIASED | FIXED, KNOWN, BITS },
    { "randk:0.3:unscaled", STALLS | FIXED, KNOWN, BITS },
    { "permk:4", UNBIASED, KNOWN, BITS },
    { "permk:7:unscaled", STALLS, KNOWN, BITS },
    { "cyclic:4", UNBIASED | FIXED, KNOWN, BITS },
    { "cyclic:7:unscaled", STALLS | FIXED, KNOWN, BITS },
    { "cyclic:5|absmax:4:64", UNBIASED | FIXED, KNOWN, BITS },
    { "cyclic:3|topk:0.3", STALLS | FIXED, KNOWN, BITS },
    { "nvfp4", FIXED, KNOWN, BITS },
    { "nvfp4:stochastic", UNBIASED | FIXED, KNOWN, BITS },
    { "geometric:1", STALLS | FIXED, KNOWN, BITS },
    { "geometric:3:64", STALLS | FIXED, NO_OMEGA, BITS },
    { "topk:0.1|geometric:2", STALLS | FIXED, NO_OMEGA, BITS },
    { "clip:0.7", FIXED, KNOWN, BITS },
    { "clip:0.5|absmax:4:64", FIXED, KNOWN, BITS },
    { "clip:0.5|terngrad", FIXED, KNOWN, BITS },
    { "clip:0.6|efsign", STALLS | FIXED, KNOWN, BITS },
    { "clip:0.5|trits:1.75", STALLS | FIXED, KNOWN, BITS },
    { "topk:0.1|clip:0.5|absmax:4:64", STALLS | FIXED, KNOWN, BITS },
    { "rotate:3|clip:0.5|absmax:2:64", FIXED, KNOWN, BITS },
    { "cyclic:4|clip:0.5", FIXED, KNOWN, BITS },
    { "stc:0.1", STALLS | VARIES, KNOWN, NEAR },
    { "sbc:0.1", STALLS | VARIES, KNOWN, NEAR },
    { "adaq:0.1", STALLS | VARIES, KNOWN, NEAR },
    { "adacomp:50", STALLS | VARIES, NO_OMEGA, NO_BITS },
    { "qsparse:0.1:15", STALLS | FIXED, KNOWN, BITS },
    { "cocktail:0.5:0.1:4", STALLS | FIXED, KNOWN, BITS },
    { "demo_dct:0.25", STALLS | FIXED, KNOWN, BITS },
    { "randk:0.25|absmax:4:512", UNBIASED | FIXED, KNOWN, BITS },
    { "randk:0.25|f16", FIXED, KNOWN, BITS },
    { "randk:0.25|topk:0.3", STALLS | FIXED, KNOWN, BITS },
    { "randk:0.3:unscaled|absmax:2:64", STALLS | FIXED, KNOWN, BITS },
    { "permk:3|levels:4", UNBIASED, KNOWN, BITS },
    { "topk:0.1|absmax:4:512", STALLS | FIXED, KNOWN, BITS },
    { "topk:0.1|terngrad", STALLS | FIXED, KNOWN, BITS },
    { "topk:0.1|strom:0.5", STALLS | FIXED, NO_DELTA, BITS },
    { "dgc:0.1|efsign", STALLS | VARIES | HIDDEN, KNOWN, NEAR },
    { "wangni:0.1|absmax:8:64", UNBIASED | VARIES, KNOWN, NEAR },
    { "wangni:0.1|efsign|golomb", STALLS | VARIES, KNOWN, NEAR },
    { "blocks:32|natural", UNBIASED, KNOWN, NO_BITS },
    { "threshold:0.5|absmax:1:64", STALLS | VARIES, NO_DELTA, NO_BITS },
    { "lowrank:2", STALLS | FIXED, NO_DELTA, BITS },
    { "atomo:2", UNBIASED | FIXED, KNOWN, BITS },
    { "atomo:64", UNBIASED | FIXED, KNOWN, BITS },
};
enum { ROW_COUNT = sizeof ROWS / sizeof *ROWS };

static cg_op parsed(const char *text) {
    cg_op op;
    char why[256];
    if (cg_op_parse_why(&op, text, why, sizeof why) != CG_OK) {
        fprintf(stderr, "%s: %s\n", text, why);
        exit(2);
    }
    return op;
}
/* A matrix has to have n values: as square as n allows. */
static cg_op op_of(const char *text, size_t n) {
    unsigned rows = 1, rank = 0;
    for (unsigned d = 1; (size_t)d * d <= n; d++)
        if (n % d == 0) rows = d;
    if (sscanf(text, "lowrank:%u", &rank) == 1) return cg_lowrank(rows, (uint32_t)(n / rows), (int)rank);
    if (sscanf(text, "atomo:%u", &rank) == 1) return cg_atomo(rows, (uint32_t)(n / rows), (int)rank);
    return parsed(text);
}
static int has_matrix(const cg_op *op) {
    return op->transform.id == CG_TRANSFORM_LOWRANK || op->transform.id == CG_TRANSFORM_ATOMO;
}

static void vector(int kind, float *x, size_t n) {
    uint64_t state = 1234 + (uint64_t)kind;
    for (size_t i = 0; i < n; i++) {
        const double u = ref_uniform(&state), v = ref_uniform(&state),
                     gauss = sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
        x[i] = kind == 0 ? (float)gauss
            : kind == 1  ? (float)(v < 0.5 ? log(u) : -log(u))
            : kind == 2  ? (float)(0.01 * gauss)
            : kind == 4  ? 0.7f
                         : 0.0f;
    }
    if (kind == 2) x[n / 3] = -50.0f;
    if (kind == 3) x[n / 2] = 3.0f;
    if (kind == 5) x[0] = x[n - 1] = -2.0f;
}
static const char *const VECTOR_NAMES[VECTORS] = { "Gaussian", "Laplace", "outlier", "spike", "constant",
    "two spikes" };

/* ---- what an operator does ---- */

typedef struct outcome {
    double error, spread;     /* mean of |D - x|^2, and its standard error */
    double z, z_own;          /* the farthest projection of the mean from x, by the declared variance and by its own */
    double bits;              /* mean, of the packets without their headers */
    size_t shortest, longest; /* packets */
    int is_random;            /* not all D are equal */
} outcome;

static outcome measure(const cg_op *op, const cg_about *about, const float *x, size_t n, int draws) {
    static float y[MAX_N], first[MAX_N], aux[MAX_N], other[MAX_N];
    static signed char sign[SIGNS][MAX_N];
    const size_t cap = cg_bound(op, n), scratch_bytes = cg_scratch(op, n);
    const double declared = (1.0 + fmax(about->omega, 0.0)) * norm2(x, n);
    const uint32_t workers = op->sample.id == CG_SAMPLE_PERMK ? op->sample.size : 1,
                   turns = op->sample.id == CG_SAMPLE_CYCLIC ? op->sample.size : 1;
    unsigned char *packet = (unsigned char *)ref_alloc(cap), *scratch = (unsigned char *)ref_alloc(scratch_bytes),
                  *support = NULL;
    double e2 = 0, sum[SIGNS] = { 0 }, squares[SIGNS] = { 0 };
    uint64_t state = 99;
    cg_extra extra = CG_ZERO;
    outcome o = { 0, 0, 0, 0, 0, 0, 0, 0 };
    o.shortest = SIZE_MAX;
    if (op->select.id == CG_SELECT_BINS || op->select.id == CG_SELECT_VARIANCE) {
        for (size_t i = 0; i < n; i++)
            aux[i] = op->select.id == CG_SELECT_BINS ? 0.5f * x[i] : x[i] * x[i] * (i % 4 ? 0.5f : 3.0f);
        extra.aux = aux;
    }
    if (op->select.id == CG_SELECT_GIVEN) {
        cg_op top = cg_topk(0.3f);
        ops_packet pk;
        vector(1, other, n);
        pk = ops_pack(&top, NULL, other, n);
        extra.support = support = pk.p;
        extra.support_len = pk.len;
    }
    for (int p = 0; p < SIGNS; p++)
        for (size_t i = 0; i < n; i++) sign[p][i] = (signed char)(ref_rand(&state) & 1 ? 1 : -1);
    draws = (int)(((uint32_t)draws + workers - 1) / workers * workers); /* all ranks of a key */
    draws = (int)(((uint32_t)draws + turns - 1) / turns * turns);       /* and all blocks */
    for (int t = 0; t < draws; t++) {
        cg_tag tag = { 7, 0, 3, 0 };
        size_t len;
        double e = 0;
        tag.step = (uint64_t)t / workers;
        tag.rank = (uint32_t)t % workers;
        if (cg_compress_with(
                op, &tag, &extra, x, n, packet, cap, &len, scratch_bytes ? scratch : NULL, scratch_bytes) != CG_OK ||
            cg_decode(support ? &extra : NULL, packet, len, 1.0f, 0.0f, y, n) != CG_OK) {
            fprintf(stderr, "%s: cannot compress %lu values\n", ops_text(op), (unsigned long)n);
            exit(2);
        }
        if (!t) memcpy(first, y, 4 * n);
        o.is_random |= memcmp(first, y, 4 * n) != 0;
        o.bits += 8.0 * (double)(len - CG_HEADER_BYTES) / (double)n / draws;
        if (len < o.shortest) o.shortest = len;
        if (len > o.longest) o.longest = len;
        for (size_t i = 0; i < n; i++) e += sq((double)y[i] - (double)x[i]);
        o.error += e / draws;
        e2 += e * e / draws;
        for (int p = 0; p < SIGNS; p++) {
            double z = 0;
            for (size_t i = 0; i < n; i++) z += sign[p][i] * ((double)y[i] - (double)x[i]);
            sum[p] += z / draws;
            squares[p] += z * z / draws;
        }
    }
    o.spread = sqrt(fmax(e2 - sq(o.error), 0.0) / draws);
    for (int p = 0; p < SIGNS; p++) {
        /* A value that was never drawn has a sample variance of 0. The variance of a projection on signs is at most
           (1 + omega) |x|^2 for errors that are independent, or of which one value of a stratum is drawn. */
        const double own = fmax(squares[p] - sq(sum[p]), 0.0), noise = ROUNDINGS * 0x1p-24 * largest(x, n) * (double)n;
        o.z = fmax(o.z, fmax(fabs(sum[p]) - noise, 0.0) / sqrt(fmax(own, declared) / draws));
        o.z_own = fmax(o.z_own, fmax(fabs(sum[p]) - noise, 0.0) / (sqrt(own / draws) + 1e-30));
    }
    free(packet);
    free(scratch);
    free(support);
    return o;
}
/* What f32 arithmetic may add to |D - x|; rotations and frequencies are sums in ten levels a round, and singular
   vectors come from iterations. */
static double rounding(const cg_op *op, const float *x, size_t n) {
    const double top = largest(x, n) * sqrt((double)n), norm = sqrt(norm2(x, n));
    return ROUNDINGS * 0x1p-24 * top * (op->sample.id ? (double)n : 1.0) +
        (op->transform.id ? 64 * 0x1p-24 * norm : 0) + (has_matrix(op) ? 1e-4 * norm : 0);
}

/* ---- the table against the operators ---- */

TEST declared(const row *r) {
    int biased_seen = 0, lossy = 0, lengths_differ = 0;
    for (int a = 0; a < SIZES; a++) {
        const size_t n = N_OF[a];
        const cg_op op = op_of(r->text, n);
        cg_about about;
        size_t shortest = SIZE_MAX, longest = 0;
        memset(&about, 0xa5, sizeof about);
        SAY("%s, n %lu", r->text, (unsigned long)n);
        ASSERT_EQm(note, CG_OK, cg_op_about(&op, n, &about));
        ASSERTm(about.why, !strncmp(about.why, "ok", 2));
        ASSERT_EQm(note, r->error == NO_OMEGA, about.omega == -1.0);
        ASSERT_EQm(note, r->bits == NO_BITS, about.bits == -1.0);
        ASSERTm(note, about.omega == -1.0 || about.omega >= 0.0);
        if (about.omega == 0.0) ASSERTm(note, about.unbiased && !about.needs_memory && about.delta == 1.0);
        else {
            ASSERT_EQm(note, (r->flags & UNBIASED) != 0, about.unbiased);
            ASSERT_EQm(note, (r->flags & STALLS) != 0, about.needs_memory);
            if (r->error != KNOWN) ASSERTm(note, about.delta == -1.0);
            else ASSERTm(note, about.delta == (about.omega < 1.0 ? 1.0 - about.omega : 0.0));
            if (r->error == NO_DELTA) ASSERTm(note, about.omega >= 1.0);
        }
        if (r->flags & (FIXED | VARIES)) ASSERT_EQm(note, (r->flags & FIXED) != 0, about.fixed_size);
        for (int kind = 0; kind < VECTORS; kind++) {
            float x[MAX_N];
            outcome o;
            double s, bound;
            vector(kind, x, n);
            s = norm2(x, n);
            o = measure(&op, &about, x, n, long_test() ? 500 : 60);
            SAY("%s, n %lu, %s: error %.7g +- %.2g, omega %.7g, delta %.7g; z %.1f; bits %.5g, measured %.5g", r->text,
                (unsigned long)n, VECTOR_NAMES[kind], o.error / s, o.spread / s, about.omega, about.delta, o.z,
                about.bits, o.bits);
            if (about.omega >= 0.0) {
                bound = sq(sqrt(about.omega * s) + rounding(&op, x, n));
                ASSERTm(note, o.error - SIGMAS * o.spread <= bound);
                if (!o.is_random) ASSERTm(note, o.error <= bound);
            }
            if (about.delta > 0.0) {
                bound = sq(sqrt((1.0 - about.delta) * s) + rounding(&op, x, n));
                ASSERTm(note, o.error - SIGMAS * o.spread <= bound);
            }
            if (about.unbiased) ASSERTm(note, o.z < SIGMAS);
            lossy |= o.error > sq(rounding(&op, x, n));
            biased_seen |= o.is_random ? o.z_own > SIGMAS : o.error > sq(rounding(&op, x, n));
            if (about.fixed_size) ASSERT_EQm(note, o.shortest, o.longest);
            if (o.shortest < shortest) shortest = o.shortest;
            if (o.longest > longest) longest = o.longest;
            if (r->bits == BITS) ASSERT_IN_RANGEm(note, about.bits, o.bits, 1e-9 * about.bits);
            if (r->bits == MOST) ASSERTm(note, o.bits <= about.bits * (1 + 1e-9));
            /* counts within a third, and words are whole; ties and zeros stand at places that are not random */
            if (r->bits == NEAR && kind < 2 && n >= 1000)
                ASSERTm(note, fabs(o.bits - about.bits) <= about.bits * 0.32 + 64.0 / (double)n);
        }
        if (about.fixed_size) ASSERT_EQm(note, shortest, longest);
        lengths_differ |= shortest != longest;
    }
    if (!(r->flags & (UNBIASED | HIDDEN))) ASSERTm(r->text, biased_seen && lossy);
    if (r->flags & VARIES && !(r->flags & HIDDEN)) ASSERTm(r->text, lengths_differ);
    PASS();
}
/* Every stage stands in the table. */
TEST all_stages(void) {
    int seen[4][32] = { { 0 } }, clips[4] = { 0 };
    static const int LAST[4] = { CG_SAMPLE_CYCLIC, CG_TRANSFORM_ATOMO, CG_SELECT_VARIANCE, CG_QUANTIZE_GEOMETRIC };
    for (int i = 0; i < ROW_COUNT; i++) {
        const cg_op op = op_of(ROWS[i].text, 64);
        clips[op.clip.id] = 1;
        seen[0][op.sample.id] = seen[1][op.transform.id] = seen[2][op.select.id] = seen[3][op.quantize.id] = 1;
    }
    for (int slot = 0; slot < 4; slot++)
        for (int id = 0; id <= LAST[slot]; id++) {
            SAY("slot %d, stage %d", slot, id);
            ASSERTm(note, seen[slot][id]);
            ASSERTm(note, cg_row_at_((unsigned)slot, (unsigned)id) != NULL);
        }
    for (unsigned id = 0; id <= CG_CLIP_RMS; id++) ASSERT(clips[id] && cg_row_at_(CG_SLOT_CLIP_, id));
    ASSERT(!cg_row_at_(CG_SLOT_CLIP_, CG_CLIP_RMS + 1));
    for (unsigned slot = 0; slot < 4; slot++) ASSERT(!cg_row_at_(slot, (unsigned)LAST[slot] + 1));
    PASS();
}

/* ---- the worst vectors ---- */

typedef struct worst {
    const char *text;
    size_t n;
    double others; /* all but one value; -1: whichever of 4000 from -1 to 1 is worst */
    double odd;    /* that value */
} worst;
static const worst WORST[] = {
    { "randk:0.25", 1000, 0.7, 0.7 },
    { "randk:0.3", 1000, 0, 1 }, /* a spike in a stratum of 4 */
    { "randk:0.3:unscaled", 1000, 0, 1 },
    { "permk:4", 1000, 0.7, 0.7 },
    { "permk:7:unscaled", 1000, 0.7, 0.7 },
    { "cyclic:4", 1000, 0.7, 0.7 },
    { "clip:2.5", 1000, 0, 1 },
    { "cyclic:8:unscaled", 1000, 0.7, 0.7 },
    { "cyclic:7", 1000, 0, 1 },
    { "topk:0.1", 1000, 0.7, 0.7 },
    { "mstopk:0.1", 1000, 0.7, 0.7 },
    { "chunked:100:0.07", 1000, 0.7, 0.7 },
    { "wangni:0.25", 1000, 0.7, 0.7 },
    { "wangnivar:0.5", 1000, 0.3, 1 },
    { "efsign", 1000, 0, 1 },
    { "onebit:100", 100, 0, 1 },
    { "terngrad", 1024, 1.0 / 33, 1 },
    { "absmax:1:64", 64, 0, 1 },
    { "absmax:1:64:nearest", 64, 1e-9, 1 },
    { "absmax:2:512", 512, -1, 1 },
    { "nf4:stochastic", 64, -1, 1 },
    { "nf4:stochastic", 64, -1, -1 },
    { "f16:stochastic", 64, 1.000488, 1.000488 },
    { "bf16:stochastic", 64, 1.0038910505836576, 1.0038910505836576 },
    { "e4m3:1000:stochastic", 1000, 0.60504201681, 1 },
    { "absmax:4:512", 512, -1, 1 },
    { "absmax:8:64", 64, -1, 1 },
    { "levels:7:512:max", 512, -1, 1 },
    { "absmax:4:512:nearest", 512, -1, 1 },
    { "levels:7:512:max:nearest", 512, -1, 1 },
    { "trits:1", 1000, -1, 1 },
    { "trits:1.75", 1000, -1, 1 },
    { "minmax:1:64", 64, 1e-9, 1 },
    { "minmax:3:512", 512, 1e-9, 1 },
    { "minmax:3:512:nearest", 512, 1e-9, 1 },
    { "levels:1:64", 64, 0.7, 0.7 },
    { "levels:4:512", 512, 0.7, 0.7 },
    { "levels:4:512:nearest", 512, 0.7, 0.7 },
    { "dither:2:64", 64, 0.7, 0.7 },
    { "natural", 64, 4.0 / 3, 4.0 / 3 },
    { "natural:nearest", 64, 1.4999, 1.4999 },
    { "nf4", 64, -1, 1 },
    { "nf4", 2, -1, 1 },
    { "dynamic8", 1000, 0.11406, 1 }, /* between .10703 and .12109 */
    { "flexpoint:2:64", 64, -1, 1.0001 },
    { "randk:0.25|levels:1:64", 256, 0.7, 0.7 },
    { "topk:0.1|efsign", 1000, 0, 1 },
    { "randk:0.25:unscaled|topk:0.1", 1000, 0.7, 0.7 },
};
/* Of the others half a step or so may lie on either side of a limit: 2 % is for that. */
TEST reached(const worst *w) {
    const cg_op op = parsed(w->text);
    const int tries = w->others < 0 ? 4000 : 1;
    float x[MAX_N];
    cg_about about;
    double most = 0, spread = 0;
    ASSERT_EQ(CG_OK, cg_op_about(&op, w->n, &about));
    for (int t = 0; t < tries; t++) {
        const double others = w->others < 0 ? 2.0 * (t + 0.5) / tries - 1.0 : w->others;
        outcome o;
        double s;
        for (size_t i = 0; i < w->n; i++) x[i] = (float)others;
        x[w->others == 0 ? 7 : 0] = (float)w->odd;
        if (op.quantize.id == CG_QUANTIZE_MINMAX) x[1] = -(float)w->odd;
        s = norm2(x, w->n);
        o = measure(&op, &about, x, w->n, w->others < 0 ? 4 : 2000);
        if (o.error / s > most) {
            most = o.error / s;
            spread = o.spread / s;
        }
    }
    SAY("%s, n %lu: at most %.6g +- %.2g, omega %.6g", w->text, (unsigned long)w->n, most, spread, about.omega);
    ASSERTm(note, most >= 0.98 * about.omega - SIGMAS * spread);
    ASSERTm(note, most <= 1.02 * about.omega + SIGMAS * spread);
    PASS();
}

/* ---- formulas, word for word ---- */

static double omega_of(const char *text, size_t n) {
    const cg_op op = parsed(text);
    cg_about about;
    return cg_op_about(&op, n, &about) == CG_OK ? about.omega : -2.0;
}
TEST formulas(void) {
    static const size_t K[] = { 1, 2, 3, 7, 30, 99, 100 };
    double w;
    for (size_t i = 0; i < sizeof K / sizeof *K; i++) { /* strata: the longest counts */
        cg_op op = cg_randk(1.0f);
        cg_about about;
        op.k = K[i];
        ASSERT_EQ(CG_OK, cg_op_about(&op, 100, &about));
        ASSERT_EQ((double)((100 + K[i] - 1) / K[i] - 1), about.omega);
        ASSERT_EQ(32.0 * (double)K[i] / 100.0, about.bits);
    }
    ASSERT_EQ(0.0, omega_of("randk:0.01", 1));
    ASSERT_EQ(3.0, omega_of("permk:4", 10));
    ASSERT_EQ(0.0, omega_of("topk:0.5", 1));
    ASSERT_IN_RANGE(0.9, omega_of("topk:0.1", 1000), 1e-12);
    ASSERT_IN_RANGE(31.5, omega_of("terngrad", 4096), 1e-12);
    ASSERT_IN_RANGE((2.0 * log(1024.0) + 2.0) / 225.0, omega_of("srq:4", 4096), 1e-9);
    /* the product rule: unbiased after unbiased; what is kept of what is kept */
    w = omega_of("absmax:4:512", 250);
    ASSERT_IN_RANGE(4.0 * (1.0 + w) - 1.0, omega_of("randk:0.25|absmax:4:512", 1000), 1e-9);
    w = omega_of("absmax:4:512:nearest", 50);
    ASSERT_IN_RANGE(1.0 - 0.5 * 0.1 * (1.0 - w), omega_of("cocktail:0.5:0.1:4", 1000), 1e-9);
    ASSERT_IN_RANGE(1.0 - 0.1 / 100.0, omega_of("topk:0.1|efsign", 1000), 1e-9);
    /* unbiased, then biased: the errors may add up */
    ASSERT_IN_RANGE(sq(sqrt(0.9 * 4.0) + sqrt(3.0)), omega_of("randk:0.25|topk:0.1", 1000), 1e-9);
    PASS();
}
/* Nothing of nothing: exact, and only a header. */
TEST no_values(void) {
    for (int i = 0; i < ROW_COUNT; i++) {
        const cg_op op = op_of(ROWS[i].text, 1);
        cg_about about;
        if (has_matrix(&op)) continue;
        ASSERT_EQm(ROWS[i].text, CG_OK, cg_op_about(&op, 0, &about));
        ASSERTm(ROWS[i].text, about.omega == 0.0 && about.delta == 1.0 && about.bits == 0.0 && about.fixed_size);
        ASSERTm(ROWS[i].text, about.unbiased && !about.needs_memory);
    }
    PASS();
}

/* ---- refusals ---- */

TEST refuses(cg_op op, size_t n, const char *why) {
    cg_about about;
    memset(&about, 0xa5, sizeof about);
    ASSERT_EQ(CG_E_ARG, cg_op_about(&op, n, &about));
    ASSERT_STR_EQ(why, about.why);
    ASSERT(strlen(why) < sizeof about.why - 1); /* nothing is cut off */
    ASSERT(about.omega == -1.0 && about.delta == -1.0 && about.bits == -1.0);
    ASSERT(!about.unbiased && !about.needs_memory && !about.fixed_size);
    ASSERT_EQ((size_t)0, cg_bound(&op, n));
    PASS();
}
TEST null_arguments(void) {
    const cg_op op = cg_dense();
    cg_about about;
    ASSERT_EQ(CG_E_ARG, cg_op_about(&op, 10, NULL));
    ASSERT_EQ(CG_E_ARG, cg_op_about(NULL, 10, &about));
    ASSERT_STR_EQ("op is NULL", about.why);
    PASS();
}
TEST a_codec_of_the_users(void) {
    const cg_op alone = cg_user(200, 1, 2, 0.5f), selected = cg_then(cg_topk(0.1f), alone);
    cg_about about;
    ASSERT_EQ(CG_OK, cg_op_about(&alone, 100, &about));
    ASSERT(about.omega == -1.0 && about.delta == -1.0 && about.bits == -1.0 && !about.fixed_size && !about.unbiased);
    ASSERT_STR_EQ("ok; a codec of yours makes the values: only you know its error and size", about.why);
    ASSERT_EQ(CG_OK, cg_op_about(&selected, 100, &about));
    ASSERT(about.needs_memory && about.omega == -1.0);
    CHECK_CALL(refuses(cg_then(alone, cg_coded(cg_dense(), CG_CODE_GOLOMB)), 100,
        "a code for indices needs a selection that sends indices before it, as in 'topk:0.01|golomb'"));
    PASS();
}
/* Any bytes are an operator that is refused, just if cg_bound refuses it, in a whole sentence. */
TEST any_operator(void) {
    uint64_t state = 5;
    int refused = 0;
    for (int t = 0; t < 200000; t++) {
        cg_op op = op_of(ROWS[ref_rand(&state) % ROW_COUNT].text, 60);
        const size_t n = t % 5 == 4 ? (size_t)ref_rand(&state) << (ref_rand(&state) % 32) : ref_rand(&state) % 64;
        cg_about about;
        cg_status s;
        if (t % 3) ((unsigned char *)&op)[ref_rand(&state) % sizeof op] = (unsigned char)ref_rand(&state);
        memset(&about, 0xa5, sizeof about);
        s = cg_op_about(&op, n, &about);
        SAY("%s, n %lu", ops_text(&op), (unsigned long)n);
        if (op.quantize.id < CG_QUANTIZE_USER) ASSERT_EQm(note, cg_bound(&op, n) != 0, s == CG_OK);
        ASSERTm(note, s == CG_OK || s == CG_E_ARG);
        ASSERTm(about.why, memchr(about.why, 0, sizeof about.why - 1) != NULL && about.why[0]);
        refused += s != CG_OK;
        if (s != CG_OK) continue;
        ASSERTm(note, (about.omega == -1.0 || about.omega >= 0.0) && about.omega < HUGE_VAL);
        ASSERTm(note, (about.delta == -1.0 || about.delta >= 0.0) && about.delta <= 1.0);
        ASSERTm(note, about.bits == -1.0 || (about.bits >= 0.0 && about.bits < HUGE_VAL));
    }
    ASSERT(refused > 20000 && refused < 180000);
    PASS();
}

/* ---- error feedback: the formulas that it had in 0.1 ---- */

static double omega_quantize_0_1(const cg_stage *q, double k) {
    const double bucket = q->size && (double)q->size < k ? (double)q->size : k, root = sqrt(bucket), s = (double)q->arg;
    const double levels = q->id == CG_QUANTIZE_LEVELS ? s : (double)((1 << (q->arg & 15)) - 1);
    double lowest = 1.0;
    if (q->flags & CG_FLAG_NEAREST) return 0.0;
    switch (q->id) {
    case CG_QUANTIZE_ABSMAX:
        if (q->arg == 1) return bucket;
        return q->arg == 2 ? (root - 1.0) / 2.0
                           : bucket / (4.0 * ((double)(1 << (q->arg - 1)) - 1.0) * ((double)(1 << (q->arg - 1)) - 1.0));
    case CG_QUANTIZE_MINMAX: return bucket / (2.0 * levels * levels);
    case CG_QUANTIZE_LEVELS:
        if (!(q->flags & CG_FLAG_MAX)) return bucket / (s * s) < root / s ? bucket / (s * s) : root / s;
        return q->arg == 1 ? (root - 1.0) / 2.0 : bucket / (4.0 * s * s);
    case CG_QUANTIZE_TERNGRAD: return q->flags & CG_FLAG_CLIP ? 0.0 : (root - 1.0) / 2.0;
    case CG_QUANTIZE_DITHER:
        for (int i = 2; i < 1 << (q->arg - 1); i++) lowest *= 0.5;
        return 0.125 + root * lowest;
    case CG_QUANTIZE_NATURAL: return 0.125;
    case CG_QUANTIZE_LLOYD: return q->value < 2.0f ? 0.571 : q->value < 3.0f ? 0.133 : 0.036;
    default: return 0.0;
    }
}
static cg_resolved_ resolved_of(const cg_op *op, size_t n) {
    cg_resolved_ r;
    memset(&r, 0, sizeof r);
    r.plan = cg_plan_of_(op, n);
    return r;
}
static double omega_now(const cg_op *op, size_t n) {
    const cg_resolved_ r = resolved_of(op, n);
    return cg_omega_(op, &r);
}
static double omega_0_1(const cg_op *op, size_t n) {
    const cg_plan_ plan = cg_plan_of_(op, n);
    double inflation = 1.0;
    if (!n || !plan.transformed_n) return 0.0;
    if (op->sample.id && !(op->sample.flags & CG_FLAG_UNSCALED))
        inflation *= op->sample.id != CG_SAMPLE_RANDK ? (double)op->sample.size : (double)n / (double)plan.sampled_n;
    if (op->transform.id == CG_TRANSFORM_ATOMO) {
        const double rows = (double)op->transform.size, cols = (double)op->transform.value,
                     ratio = (rows < cols ? rows : cols) / (double)cg_matrix_r_(op);
        inflation *= ratio > 1.0 ? ratio : 1.0;
    }
    if (op->select.id == CG_SELECT_WANGNI) inflation *= 1.0 / (double)op->select.value;
    if (op->select.id == CG_SELECT_WANGNIVAR) inflation *= 1.0 + (double)op->select.value;
    return inflation * (1.0 + omega_quantize_0_1(&op->quantize, (double)plan.max_selected)) - 1.0;
}
static float scale_0_1(const cg_op *op, size_t n) {
    const cg_stage *q = &op->quantize;
    const unsigned min_bits = op->transform.id ? 3 : 2;
    cg_op rest = *op;
    double w;
    if (q->id == CG_QUANTIZE_ABSMAX       ? q->arg >= 3
            : q->id == CG_QUANTIZE_MINMAX ? q->arg >= min_bits && !(q->flags & CG_FLAG_NORM)
                                          : q->id == CG_QUANTIZE_LEVELS && q->flags & CG_FLAG_MAX && q->arg >= 2)
        memset(&rest.quantize, 0, sizeof rest.quantize);
    w = omega_0_1(&rest, n);
    return w < 1.0 ? 1.0f : (float)(1.0 / (1.0 + w));
}
/* Bit for bit, for all stages x flags x a few parameters, with samples, transforms and selections before them. */
TEST error_feedback_is_as_it_was(void) {
    static const char *const BEFORE[] = { "dense", "randk:0.1", "randk:0.37:unscaled", "permk:5", "permk:3:unscaled",
        "rotate:1", "rotate:3", "dct", "randk:0.3|rotate:2", "topk:0.1", "wangni:0.3", "wangnivar:0.7", "blocks:5",
        "chunked:16:0.2", "permk:2|wangni:0.5", "dgc:0.3", "sides:0.2" };
    static const uint32_t BUCKETS[] = { 0, 1, 2, 64, 512, 5000 };
    static const size_t N[] = { 0, 1, 2, 7, 64, 1000, 1024, 70001 };
    unsigned compared = 0;
    for (size_t b = 0; b < sizeof BEFORE / sizeof *BEFORE; b++)
        for (unsigned id = 0; id <= CG_QUANTIZE_FLEX16; id++)
            for (unsigned flags = 0; flags < 4; flags++)
                for (unsigned arg = 0; arg <= 9; arg++)
                    for (size_t u = 0; u < sizeof BUCKETS / sizeof *BUCKETS; u++)
                        for (unsigned value = 0; value <= 4; value++) {
                            cg_op op = parsed(BEFORE[b]);
                            cg_ef_desc desc = CG_ZERO;
                            op.quantize.id = (uint8_t)id;
                            op.quantize.flags = (uint8_t)flags;
                            op.quantize.arg = (uint16_t)arg;
                            op.quantize.size = BUCKETS[u];
                            op.quantize.value = (float)value;
                            if (cg_op_check_(&op) != CG_OK) continue;
                            /* 0.1 had no format that rounds at random only if it is told to */
                            if (flags & cg_stage_row_of_(CG_SLOT_QUANTIZE_, &op.quantize)->unbiasing_flags) continue;
                            for (size_t i = 0; i < sizeof N / sizeof *N; i++) {
                                const cg_resolved_ r = resolved_of(&op, N[i]);
                                const double is = omega_now(&op, N[i]), was = omega_0_1(&op, N[i]);
                                desc.n = N[i];
                                compared++;
                                SAY("%s, n %lu: %.17g, was %.17g", ops_text(&op), (unsigned long)N[i], is, was);
                                ASSERTm(note, !memcmp(&is, &was, sizeof is));
                                ASSERTm(note, cg_ef_scale_(&desc, &op, &r) == scale_0_1(&op, N[i]));
                            }
                        }
    for (uint32_t rows = 1; rows < 70; rows += 4)
        for (uint32_t cols = 1; cols < 40; cols += 3)
            for (int r = 1; r <= 64; r += 5) {
                const cg_op a = cg_atomo(rows, cols, r), l = cg_lowrank(rows, cols, r);
                ASSERT_EQ(omega_0_1(&a, (size_t)rows * cols), omega_now(&a, (size_t)rows * cols));
                ASSERT_EQ(omega_0_1(&l, (size_t)rows * cols), omega_now(&l, (size_t)rows * cols));
            }
    ASSERT(compared > 20000);
    PASS();
}

SUITE(about_operators) {
    for (int i = 0; i < ROW_COUNT; i++) RUN_TEST1(declared, &ROWS[i]);
    RUN_TEST(all_stages);
    for (size_t i = 0; i < sizeof WORST / sizeof *WORST; i++) RUN_TEST1(reached, &WORST[i]);
    RUN_TEST(formulas);
    RUN_TEST(no_values);
}
SUITE(refusals) {
    cg_op mean = cg_dense();
    RUN_TEST(null_arguments);
    RUN_TESTp(refuses, cg_lowrank(10, 12, 2), 100,
        "the operator is for a matrix of rows * cols values, and n is another number: this one takes n = 120");
    RUN_TESTp(refuses, cg_topk(0.0f), 100,
        "the selection of the operator is not valid, or has a parameter out of range: as text cg_op_parse_why says "
        "which");
    RUN_TESTp(refuses, cg_then(cg_f16(), cg_bf16()), 100,
        "the operator is not valid: cg_then filled a slot twice, a modifier does not go with its stage, or a parameter "
        "is out of range");
    RUN_TESTp(
        refuses, cg_lloyd(2.0f), 100, "lloyd needs rotate before it and takes no selection, as in 'rotate:3|lloyd:2'");
    RUN_TESTp(refuses, cg_coded(cg_f16(), CG_CODE_QUARTIC), 100,
        "quartic needs a quantizer of three levels before it (terngrad, trits, strom, absmax:2, flexpoint:2 or "
        "levels:1), as in 'terngrad|quartic'");
    mean.quantize.id = CG_QUANTIZE_MEAN;
    RUN_TESTp(refuses, mean, 100,
        "mean needs side before it, as in 'side:0.01|mean': values of both signs have no mean worth sending");
    RUN_TESTp(refuses, cg_dense(), SIZE_MAX / 2, "n is too large: the bytes of a packet overflow");
    RUN_TEST(a_codec_of_the_users);
    RUN_TEST(any_operator);
}
SUITE(error_feedback) { RUN_TEST(error_feedback_is_as_it_was); }

GREATEST_MAIN_DEFS();

int main(int argc, char **argv) {
    GREATEST_MAIN_BEGIN();
    RUN_SUITE(about_operators);
    RUN_SUITE(refusals);
    RUN_SUITE(error_feedback);
    GREATEST_MAIN_END();
}
