/* The quantizers that round to a grid of their own, the rotation and the DCT, against their definitions in double
   arithmetic: sizes on the wire, scales, nearest or neighbouring levels, probabilities, variances, and the constants
   that were published for them.

   Tolerances come from the roundings on the way: U is half a unit in the last place of an f32, LEAST that of a
   denormal. Keys are fixed. What depends on randomness is judged by Bernstein's inequality, or in standard errors. */
#define COMPGRAD_IMPLEMENTATION
#include "compgrad.h"
#include "ref.h"
#include "ops.h"
#include "greatest.h"
#define TIER_SPARED
#include "tier.h"

#define U 0x1p-24
#define LEAST 0x1p-150
static const cg_tag TAG = { UINT64_C(0xFEDCBA9876543210), 12, 34, 5 };
static char note[320];

static double sq(double v) { return v * v; }

static cg_op parsed(const char *text) {
    cg_op op;
    if (cg_op_parse(&op, text) != CG_OK) {
        fprintf(stderr, "does not parse: %s\n", text);
        exit(2);
    }
    return op;
}

/* ---- grids: what a quantizer can represent, for a scale of one ---- */

typedef struct grid {
    double unit[520];
    int count;
} grid;

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void grid_add(grid *g, double v) /* both signs of it */
{
    g->unit[g->count++] = v;
    if (v != 0.0) g->unit[g->count++] = -v;
}

/* OCP's small floats: exponent bits, mantissa bits, bias; `most` is what the format leaves to numbers. */
static void grid_float(grid *g, int exponent, int mantissa, int bias, double most) {
    int e, m;
    for (e = 0; e < 1 << exponent; e++)
        for (m = 0; m < 1 << mantissa; m++) {
            double v = e ? ldexp(1.0 + m * ldexp(1.0, -mantissa), e - bias)
                         : ldexp(m * ldexp(1.0, -mantissa), 1 - bias);
            if (v <= most) grid_add(g, v);
        }
}

/* QLoRA, appendix E */
static const float NF4[16] = { -1.0f, -0.6961928009986877f, -0.5250730514526367f, -0.39491748809814453f,
    -0.28444138169288635f, -0.18477343022823334f, -0.09105003625154495f, 0.0f, 0.07958029955625534f,
    0.16093020141124725f, 0.24611230194568634f, 0.33791524171829224f, 0.44070982933044434f, 0.5626170039176941f,
    0.7229568362236023f, 1.0f };

static grid grid_of(const cg_stage *q) {
    grid g;
    int i, z, f, top = (1 << (q->arg > 8 ? 8 : q->arg)) - 1, half = (top + 1) / 2 - 1;
    g.count = 0;
    switch (q->id) {
    case CG_QUANTIZE_LEVELS:
        for (i = 0; i <= q->arg; i++) grid_add(&g, (double)i / q->arg);
        break;
    case CG_QUANTIZE_FLEXPOINT:
        for (i = 0; i <= half; i++) grid_add(&g, (double)i);
        break;
    case CG_QUANTIZE_TERNGRAD:
    case CG_QUANTIZE_TRITS:
        grid_add(&g, 0.0);
        grid_add(&g, 1.0);
        break;
    case CG_QUANTIZE_MINMAX:
        for (i = 0; i <= top; i++) g.unit[g.count++] = (double)i / top;
        break;
    case CG_QUANTIZE_NATURAL:
        grid_add(&g, 0.0);
        for (i = -126; i <= 127; i++) grid_add(&g, ldexp(1.0, i));
        break;
    case CG_QUANTIZE_DITHER:
        grid_add(&g, 0.0);
        for (i = 1; i <= half; i++) grid_add(&g, ldexp(1.0, i - half));
        break;
    /* sign, z zeros, a one, and what is left of 8 bits a fraction; the largest is 1 */
    case CG_QUANTIZE_DYNAMIC8:
        for (z = 0; z < 7; z++)
            for (f = 0; f < 1 << (6 - z); f++)
                grid_add(&g,
                    z == 0 && f == 63 ? 1.0
                                      : (double)(float)(pow(10.0, -z) * (0.1 + 0.9 * (f + 0.5) / (1 << (6 - z)))));
        grid_add(&g, 0.0);
        break;
    case CG_QUANTIZE_E4M3:
    case CG_QUANTIZE_MXE4M3: grid_float(&g, 4, 3, 7, 448.0); break;
    case CG_QUANTIZE_E5M2:
    case CG_QUANTIZE_MXE5M2: grid_float(&g, 5, 2, 15, 57344.0); break;
    case CG_QUANTIZE_MXFP4: grid_float(&g, 2, 1, 1, 6.0); break;
    case CG_QUANTIZE_NF4:
        for (i = 0; i < 16; i++) g.unit[g.count++] = (double)NF4[i];
        break;
    /* strom, onebit and mean are not grids to round to; flex16 is too long */
    default: break;
    }
    qsort(g.unit, (size_t)g.count, sizeof *g.unit, by_value);
    return g;
}

static int grid_below(const grid *g, double t) /* the last that is <= t; -1: none */
{
    int lo = 0, hi = g->count;
    while (lo < hi) {
        int mid = (lo + hi) / 2;
        if (g->unit[mid] <= t) lo = mid + 1;
        else hi = mid;
    }
    return lo - 1;
}

static int grid_nearest(const grid *g, double t) {
    int i = grid_below(g, t);
    if (i < 0) return 0;
    return i + 1 < g->count && g->unit[i + 1] - t < t - g->unit[i] ? i + 1 : i;
}

/* ---- what stands on the wire ---- */

static int is_mx(const cg_stage *q) {
    return q->id == CG_QUANTIZE_MXFP4 || q->id == CG_QUANTIZE_MXE4M3 || q->id == CG_QUANTIZE_MXE5M2;
}
static int is_small(const cg_stage *q) { return is_mx(q) || q->id == CG_QUANTIZE_E4M3 || q->id == CG_QUANTIZE_E5M2; }
static int is_stochastic(const cg_stage *q) {
    if (is_small(q) || q->id == CG_QUANTIZE_NF4) return q->flags & CG_FLAG_STOCHASTIC;
    return !(q->flags & CG_FLAG_NEAREST) &&
        (q->id == CG_QUANTIZE_LEVELS || q->id == CG_QUANTIZE_TERNGRAD || q->id == CG_QUANTIZE_MINMAX ||
            q->id == CG_QUANTIZE_NATURAL || q->id == CG_QUANTIZE_DITHER);
}

static uint64_t bits_of(const cg_stage *q) {
    uint64_t b = 0;
    switch (q->id) {
    case CG_QUANTIZE_LEVELS:
        while ((1 << b) < 2 * q->arg + 1) b++;
        return b;
    case CG_QUANTIZE_FLEXPOINT:
    case CG_QUANTIZE_MINMAX:
    case CG_QUANTIZE_DITHER: return q->arg;
    case CG_QUANTIZE_TERNGRAD:
    case CG_QUANTIZE_TRITS:
    case CG_QUANTIZE_STROM: return 2;
    case CG_QUANTIZE_ONEBIT: return 1;
    case CG_QUANTIZE_MEAN: return 0;
    case CG_QUANTIZE_NATURAL: return 9;
    case CG_QUANTIZE_FLEX16: return 16;
    case CG_QUANTIZE_NF4:
    case CG_QUANTIZE_MXFP4: return 4;
    default: return 8;
    }
}

static uint64_t scales_of(const cg_stage *q) /* to a bucket */
{
    return q->id == CG_QUANTIZE_NATURAL || q->id == CG_QUANTIZE_STROM ? 0
        : q->id == CG_QUANTIZE_MINMAX || q->id == CG_QUANTIZE_ONEBIT  ? 2
                                                                      : 1;
}

static uint64_t bucket_of(const cg_stage *q, uint64_t k) {
    return is_mx(q) ? 32 : q->size && q->size < k ? q->size : k ? k : 1;
}

static uint64_t value_bytes(const cg_stage *q, uint64_t k) {
    uint64_t b = bucket_of(q, k), buckets = (k + b - 1) / b;
    return ref_pad4(buckets * scales_of(q) * (is_mx(q) ? 8 : 32)) + ref_pad4(k * bits_of(q));
}

static void scales_read(const cg_stage *q, const unsigned char *packet, uint64_t bucket, double *s) {
    const unsigned char *p = packet + CG_HEADER_BYTES;
    uint64_t i, per = scales_of(q);
    s[0] = s[1] = 0.0;
    if (is_mx(q)) {
        s[0] = ldexp(1.0, (int)p[bucket] - 127);
        return;
    }
    for (i = 0; i < per; i++) s[i] = (double)ref_float((uint32_t)ref_get(p + 4 * (bucket * per + i), 4));
}

/* ---- scales: the interval that the definition leaves them ---- */

typedef struct span {
    double lo, hi;
} span;

static span around(double v, double slack) /* rounded to f32, never Inf */
{
    span s;
    slack += fabs(v) * U * (1 + 1e-6) + LEAST;
    s.lo = fmin(fmax(v - slack, -(double)FLT_MAX), (double)FLT_MAX);
    s.hi = fmax(fmin(v + slack, (double)FLT_MAX), -(double)FLT_MAX);
    return s;
}

static void scales_want(const cg_stage *q, const float *x, size_t n, span *want) {
    double lo = (double)x[0], hi = lo, top, sum = 0, squares = 0, magnitudes = 0, below = 0, above = 0, mean, var = 0,
           slack, step;
    size_t i, negative = 0;
    const int half = q->id == CG_QUANTIZE_FLEX16 ? 32767 : q->arg ? (1 << ((q->arg > 8 ? 8 : q->arg) - 1)) - 1 : 0;
    int e;
    for (i = 0; i < n; i++) {
        double v = (double)x[i];
        lo = fmin(lo, v);
        hi = fmax(hi, v);
        sum += v;
        magnitudes += fabs(v);
        squares += v * v;
        if (v < 0) {
            below += v;
            negative++;
        } else above += v;
    }
    top = fmax(-lo, hi);
    want[0].lo = want[0].hi = top; /* most of them: the largest magnitude, exactly */
    want[1] = want[0];
    slack = (double)n * 0x1p-52; /* two sums of n doubles */
    switch (q->id) {
    case CG_QUANTIZE_LEVELS:
    case CG_QUANTIZE_DITHER:
        if (q->flags & CG_FLAG_MAX) break;
        want[0] = around(fmax(sqrt(squares), top), slack * sqrt(squares));
        want[0].lo = fmax(want[0].lo, top);
        break;
    case CG_QUANTIZE_MINMAX: /* only with the norm here */
        want[0].lo = want[0].hi = lo;
        want[1] = around(fmax(hi, lo + sqrt(2.0 * squares)), slack * sqrt(squares) + 0x1p-50 * fabs(lo));
        want[1].lo = fmax(want[1].lo, hi);
        break;
    case CG_QUANTIZE_TERNGRAD:
        if (!(q->flags & CG_FLAG_CLIP)) break;
        mean = sum / (double)n;
        for (i = 0; i < n; i++) var += sq((double)x[i] - mean) / (double)n;
        /* E x^2 - mean^2 cancels: sums have at most 128 + 4 + 32 + 4 additions in a row, both twice */
        slack = 4 * 170 * 0x1p-53 * squares / (double)n;
        want[0].lo = fmin(top, around(2.5 * sqrt(fmax(var - slack, 0.0)), 0).lo);
        want[0].hi = fmin(top, around(2.5 * sqrt(var + slack), 0).hi);
        break;
    case CG_QUANTIZE_FLEXPOINT:
    case CG_QUANTIZE_FLEX16: /* the least power of two of which `half` reach the top */
        step = 0.0;
        for (e = 128; e >= -149 && top > 0 && half * ldexp(1.0, e) >= top; e--) step = ldexp(1.0, e);
        want[0].lo = want[0].hi = fmin(step, 0x1p127); /* there is no larger one */
        break;
    case CG_QUANTIZE_TRITS: want[0].lo = want[0].hi = (double)ref_clamp(ref_mul((float)top, q->value)); break;
    case CG_QUANTIZE_ONEBIT:
        want[0] = around(
            negative ? below / (double)negative : 0.0, slack * fabs(below) / (double)(negative ? negative : 1));
        want[1] = around(n > negative ? above / (double)(n - negative) : 0.0,
            slack * above / (double)(n > negative ? n - negative : 1));
        break;
    case CG_QUANTIZE_MEAN: want[0] = around(sum / (double)n, slack * magnitudes / (double)n); break;
    case CG_QUANTIZE_MXFP4:
    case CG_QUANTIZE_MXE4M3:
    case CG_QUANTIZE_MXE5M2:
        /* OCP: floor(log2 top) minus the exponent of the format's largest power of two */
        if (top > 0) frexp(top, &e);
        else e = -1000;
        e = e - 1 - (q->id == CG_QUANTIZE_MXFP4 ? 2 : q->id == CG_QUANTIZE_MXE4M3 ? 8 : 15);
        if (is_stochastic(q)) { /* the least power of two with which nothing is cut off */
            const double most = q->id == CG_QUANTIZE_MXFP4 ? 6.0 : q->id == CG_QUANTIZE_MXE4M3 ? 448.0 : 57344.0;
            for (e = -127; top > ldexp(most, e);) e++;
        }
        want[0].lo = want[0].hi = ldexp(1.0, e < -127 ? -127 : e);
        break;
    default: break;
    }
}

/* ---- one bucket of decoded values ---- */

typedef struct frame {
    double base, mult;
} frame; /* levels are base + mult * unit */

static frame frame_of(const cg_stage *q, const double *s) {
    frame f;
    f.base = q->id == CG_QUANTIZE_MINMAX ? s[0] : 0.0;
    f.mult = q->id == CG_QUANTIZE_MINMAX ? s[1] - s[0]
        : q->id == CG_QUANTIZE_NATURAL   ? 1.0
        : q->id == CG_QUANTIZE_E4M3      ? s[0] / 448.0
        : q->id == CG_QUANTIZE_E5M2      ? s[0] / 57344.0
                                         : s[0];
    return f;
}

static double level_of(frame f, double unit) {
    double v = f.base + f.mult * unit;
    return v > (double)FLT_MAX ? (double)FLT_MAX : v < -(double)FLT_MAX ? -(double)FLT_MAX : v;
}

/* How far a decoded level may lie from the exact one: a rounding each for the step, its multiple, the range and
   the sum. */
static double decode_slack(const cg_stage *q, frame f, double level) {
    switch (q->id) {
    case CG_QUANTIZE_LEVELS: return q->arg == 1 ? 0.0 : 2.001 * U * fabs(level) + 2 * LEAST;
    case CG_QUANTIZE_MINMAX: return U * (3.001 * f.mult + fabs(level)) + 2 * LEAST;
    case CG_QUANTIZE_E4M3:
    case CG_QUANTIZE_E5M2: return 2.001 * U * fabs(level) + 2 * LEAST;
    case CG_QUANTIZE_DITHER:
    case CG_QUANTIZE_DYNAMIC8:
    case CG_QUANTIZE_NF4: return U * fabs(level) + LEAST;
    default: return 0.0; /* powers of two, and the scale itself */
    }
}

/* How far from the exact place a value may be when it is compared: roundings of the inverse, the product, the limits,
   and the sum with the noise. */
static double encode_slack(const cg_stage *q, frame f, double v) {
    int e;
    switch (q->id) {
    case CG_QUANTIZE_LEVELS:
    case CG_QUANTIZE_TERNGRAD:
    case CG_QUANTIZE_TRITS: return U * (3.001 * fabs(v) + 0.5 * f.mult);
    case CG_QUANTIZE_MINMAX: return U * (5.001 * fabs(v - f.base) + 0.5 * f.mult);
    case CG_QUANTIZE_E4M3:
    case CG_QUANTIZE_E5M2:
    case CG_QUANTIZE_DITHER:
    case CG_QUANTIZE_DYNAMIC8:
    case CG_QUANTIZE_NF4: return U * 3.001 * fabs(v) + 2 * LEAST * f.mult;
    /* unless another step was given */
    case CG_QUANTIZE_FLEXPOINT: return frexp(f.mult, &e) == 0.5 ? 0.0 : U * 3.001 * fabs(v);
    default: return 0.0;
    }
}

#define MUST(cond)                                                                                                  \
  do {                                                                                                              \
    if (!(cond)) {                                                                                                  \
      snprintf(note, sizeof note, "%s: %.9g became %.9g, scales %.9g %.9g, value %lu of %lu", ops_text(op), v, got, \
          s[0], s[1], (unsigned long)i, (unsigned long)n);                                                          \
      FAILm(note);                                                                                                  \
    }                                                                                                               \
  } while (0)

TEST bucket_right(const cg_op *op, const grid *g, const float *x, const float *d, size_t n, const double *s) {
    const cg_stage *q = &op->quantize;
    frame f = frame_of(q, s);
    size_t i;
    for (i = 0; i < n; i++) {
        double v = (double)x[i], got = (double)d[i], t, at, near, slack = encode_slack(q, f, v), off;
        int j;
        MUST(ref_finite(d[i]));
        if (q->id == CG_QUANTIZE_STROM) {
            double tau = (double)q->value;
            MUST(got == (v > tau ? tau : v < -tau ? -tau : 0.0));
            continue;
        }
        if (q->id == CG_QUANTIZE_ONEBIT) {
            MUST(got == (v < 0 ? s[0] : s[1]));
            continue;
        }
        /* too many levels for a table; steps are powers of two, so all of it is exact */
        if (q->id == CG_QUANTIZE_FLEX16) {
            MUST(got == (s[0] > 0 ? level_of(f, fmin(fmax(nearbyint(v / s[0]), -32767.0), 32767.0)) : 0.0));
            continue;
        }
        if (q->id == CG_QUANTIZE_MEAN) {
            MUST(got == s[0]);
            continue;
        }
        if (f.mult == 0.0) {
            MUST(got == f.base);
            continue;
        }
        t = (got - f.base) / f.mult;
        near = level_of(f, g->unit[grid_nearest(g, t)]);
        off = decode_slack(q, f, near);
        MUST(fabs(got - near) <= off); /* a level it is */
        at = (v - f.base) / f.mult;
        if (is_stochastic(q)) { /* and one of the two around v */
            j = grid_below(g, at - slack / f.mult);
            MUST(j < 0 || got >= level_of(f, g->unit[j]) - off);
            j = grid_below(g, at + slack / f.mult);
            if (j < 0 || (g->unit[j] < at + slack / f.mult && j + 1 < g->count)) j++;
            MUST(got <= level_of(f, g->unit[j]) + off);
        } else {
            near = level_of(f, g->unit[grid_nearest(g, at)]);
            MUST(fabs(got - v) <= fabs(near - v) + 2 * slack + off);
        }
    }
    PASS();
}

/* ---- every quantizer, any input ---- */

static const char *const OPS[] = { "levels:1", "levels:4:512", "levels:7:100:max", "levels:127:3000", "levels:15:70000",
    "levels:16:64:nearest", "levels:127:nearest:max", "levels:2:1", "flexpoint:2:64", "flexpoint:4:7",
    "flexpoint:8:512", "flexpoint:8:70000", "flexpoint:5:1", "flex16:64", "flex16:70000", "trits:1", "trits:1.5",
    "trits:1.9999", "strom:1", "strom:0.001", "onebit", "onebit:1", "onebit:100", "onebit:3000", "onebit:70000",
    "natural", "natural:nearest", "dither:2", "dither:4:512", "dither:8:100:max", "dither:3:70000", "dither:8",
    "dither:4:64:nearest", "dither:8:nearest:max", "dynamic8", "dynamic8:256", "dynamic8:7", "dynamic8:70000", "e4m3",
    "e5m2", "e4m3:32", "e4m3:1", "e5m2:70000", "mxfp4", "mxe4m3", "mxe5m2", "nf4", "nf4:7", "nf4:70000",
    "minmax:1:64:norm", "minmax:4:512:norm", "minmax:8:3000:norm", "minmax:2:70000:nearest:norm", "terngrad:clip",
    "terngrad:nearest:clip", "e4m3:stochastic", "e5m2:32:stochastic", "e4m3:70000:stochastic", "mxfp4:stochastic",
    "mxe4m3:stochastic", "mxe5m2:stochastic", "nf4:stochastic", "nf4:7:stochastic", "nf4:70000:stochastic" };
enum { OP_COUNT = sizeof OPS / sizeof *OPS };
static const size_t SMALL[] = { 0, 1, 7, 8, 9, 31, 32, 33 }, MIDDLE[] = { 1023, 1024, 1025, 2047, 2048, 2049 };
static const size_t LARGE[] = { 65535, 65536, 65537, 140001 }; /* the last: two buckets of 70000 and a third */

/* more vectors: many ties where the scale is a power of two, and the ends of the range */
enum { HALVES = REF_KINDS, EXTREMES, KINDS };

static void fill(int kind, uint64_t seed, float *x, size_t n) {
    size_t i;
    if (kind < REF_KINDS) {
        ref_fill((ref_kind)kind, seed, x, n);
        return;
    }
    for (i = 0; i < n; i++) {
        uint32_t r = ref_rand(&seed);
        if (kind == HALVES) x[i] = i % 16 == 0 ? 1.0f : (float)((int)(r % 513) - 256) * 0x1p-8f;
        else
            x[i] = (r & 1 ? -1.0f : 1.0f) *
                (r % 6 < 2           ? FLT_MAX
                        : r % 6 == 2 ? FLT_MIN
                        : r % 6 == 3 ? 0x1p-149f
                        : r % 6 == 4 ? 1.0f
                                     : 0.0f);
    }
}

/* x, packed and decoded, is what the definition says. */
TEST right(const cg_op *op, const float *x, size_t n) {
    const cg_stage *q = &op->quantize;
    ops_packet pk = ops_pack(op, &TAG, x, n);
    float *d = (float *)ref_alloc(n * 4);
    uint64_t bucket = bucket_of(q, n), b;
    grid g = grid_of(q);
    cg_info info;
    snprintf(note, sizeof note, "%s, n = %lu: %s, %lu bytes", ops_text(op), (unsigned long)n,
        ops_status((int)pk.status), (unsigned long)pk.len);
    ASSERTm(note, pk.status == CG_OK && !pk.touched);
    ASSERTm(note, pk.len == CG_HEADER_BYTES + value_bytes(q, n) && pk.len == pk.cap);
    ASSERTm(note,
        cg_inspect(pk.p, pk.len, &info) == CG_OK && info.value_bytes == value_bytes(q, n) && info.index_bytes == 0 &&
            info.k == n);
    memset(d, 0xff, n * 4);
    ASSERTm(note, cg_decompress(pk.p, pk.len, d, n) == CG_OK);
    for (b = 0; b * bucket < n; b++) {
        size_t from = (size_t)(b * bucket), many = n - from < bucket ? n - from : (size_t)bucket;
        double s[2];
        span want[2];
        uint64_t i;
        scales_read(q, pk.p, b, s);
        scales_want(q, x + from, many, want);
        for (i = 0; i < scales_of(q); i++) {
            if (s[i] >= want[i].lo && s[i] <= want[i].hi) continue;
            snprintf(note, sizeof note, "%s, n = %lu, bucket %lu, scale %d: %.9g, not %.9g to %.9g", ops_text(op),
                (unsigned long)n, (unsigned long)b, (int)i, s[i], want[i].lo, want[i].hi);
            FAILm(note);
        }
        CHECK_CALL(bucket_right(op, &g, x + from, d + from, many, s));
    }
    free(pk.p);
    free(d);
    PASS();
}

TEST right_at_sizes(const char *text, const size_t *sizes, size_t count, int first_kind, int last_kind) {
    static unsigned turn;
    cg_op op = parsed(text);
    size_t i;
    int kind;
    for (i = 0; i < count; i++) {
        float *x = (float *)ref_alloc(sizes[i] * 4);
        for (kind = first_kind; kind <= last_kind; kind++) {
            greatest_test_res r;
            if (spared(&turn, 7)) continue;
            fill(kind, 1000 + i, x, sizes[i]);
            r = right(&op, x, sizes[i]);
            if (r != GREATEST_TEST_RES_PASS) {
                printf("\n%s on vector %d, n = %lu\n", text, kind, (unsigned long)sizes[i]);
                free(x);
                return r;
            }
        }
        free(x);
    }
    PASS();
}

/* Behind a selection the quantizer sees the values that were left. */
TEST mean_of_what_was_kept(const char *text) {
    static float x[5000], d[5000], kept[5000];
    cg_op op = parsed(text);
    int kind;
    for (kind = 0; kind < KINDS; kind++) {
        ops_packet pk;
        cg_info info;
        span want[2];
        double s[2];
        size_t i, k = 0;
        /* a mean of zero does not show what was kept */
        if (kind == REF_ZEROS || kind == REF_SIGNED_ZEROS) continue;
        fill(kind, 77, x, 5000);
        pk = ops_pack(&op, &TAG, x, 5000);
        snprintf(note, sizeof note, "%s on vector %d: %s", text, kind, ops_status((int)pk.status));
        ASSERTm(note,
            pk.status == CG_OK && cg_inspect(pk.p, pk.len, &info) == CG_OK &&
                cg_decompress(pk.p, pk.len, d, 5000) == CG_OK);
        ASSERTm(note, info.value_bytes == 4);
        scales_read(&op.quantize, pk.p, 0, s);
        for (i = 0; i < 5000; i++)
            if (d[i] != 0.0f) {
                ASSERTm(note, (double)d[i] == s[0]);
                kept[k++] = x[i];
            }
        if (s[0] != 0.0) {
            ASSERTm(note, k == info.k);
            scales_want(&op.quantize, kept, k, want);
            snprintf(
                note, sizeof note, "%s on vector %d: %.9g, not %.9g to %.9g", text, kind, s[0], want[0].lo, want[0].hi);
            ASSERTm(note, s[0] >= want[0].lo && s[0] <= want[0].hi);
        }
        free(pk.p);
    }
    PASS();
}

/* A code changes the bytes and not the values. */
TEST coded_values_are_the_same(const char *plain, const char *coded) {
    enum { N = 70001 };
    static float x[N], a[N], b[N];
    cg_op p = parsed(plain), c = parsed(coded);
    ops_packet one, two;
    fill(REF_LAPLACE, 5, x, N);
    one = ops_pack(&p, &TAG, x, N);
    two = ops_pack(&c, &TAG, x, N);
    ASSERTm(coded, one.status == CG_OK && two.status == CG_OK && two.len <= two.cap);
    ASSERTm(coded, cg_decompress(one.p, one.len, a, N) == CG_OK && cg_decompress(two.p, two.len, b, N) == CG_OK);
    ASSERTm(coded, memcmp(a, b, sizeof a) == 0);
    free(one.p);
    free(two.p);
    PASS();
}

/* NaN and Inf, wherever they are, also where scales are given and nobody measures. */
TEST nonfinite_is_refused(const char *text) {
    static const size_t at[] = { 0, 8, 2047, 2048, 65535, 65536, 69999, 70000, 70002 };
    enum { N = 70003 };
    static unsigned turn;
    static float x[N], ones[2 * N];
    cg_op op = parsed(text);
    cg_extra side = CG_ZERO;
    size_t i, v;
    fill(REF_GAUSSIAN, 3, x, N);
    for (i = 0; i < 2 * N; i++) ones[i] = 1.0f;
    side.scale = ones;
    for (i = 0; i < sizeof at / sizeof *at; i++)
        for (v = 0; v < 4; v++) {
            float was = x[at[i]];
            ops_packet pk;
            if (spared(&turn, 7)) continue;
            x[at[i]] = ref_float(v == 0 ? 0x7f800000u : v == 1 ? 0xff800000u : v == 2 ? 0x7fc00000u : 0xff800001u);
            pk = ops_pack(&op, &TAG, x, N);
            snprintf(note, sizeof note, "%s, kind %d at %lu: %s", text, (int)v, (unsigned long)at[i],
                ops_status((int)pk.status));
            ASSERTm(note, pk.status == CG_E_NONFINITE && pk.len == 0 && !pk.touched);
            free(pk.p);
            if (op.quantize.id && scales_of(&op.quantize) && op.quantize.id != CG_QUANTIZE_LLOYD) {
                pk = ops_pack_cap(&op, &TAG, &side, x, N, cg_bound(&op, N));
                snprintf(note, sizeof note, "%s, scales given, kind %d at %lu: %s", text, (int)v, (unsigned long)at[i],
                    ops_status((int)pk.status));
                ASSERTm(note, pk.status == CG_E_NONFINITE && pk.len == 0 && !pk.touched);
                free(pk.p);
            }
            x[at[i]] = was;
        }
    PASS();
}

/* ---- scales that were agreed on ---- */

TEST given_scales(const char *text, float top, int kind, size_t n) {
    cg_op op = parsed(text);
    const cg_stage *q = &op.quantize;
    uint64_t bucket = bucket_of(q, n), buckets = (n + bucket - 1) / bucket, per = scales_of(q), b, i;
    float *x = (float *)ref_alloc(n * 4), *d = (float *)ref_alloc(n * 4),
          *s = (float *)ref_alloc((size_t)(buckets * per) * 4 + 4);
    cg_extra side = CG_ZERO;
    ops_packet pk;
    grid g = grid_of(q);
    fill(kind, 9, x, n);
    for (b = 0; b < buckets; b++) { /* another one for every bucket */
        float v = is_mx(q) ? top : ref_mul(top, 1.0f + 0.25f * (float)(b % 3));
        if (per == 1) s[b] = v;
        else {
            s[2 * b] = q->id == CG_QUANTIZE_ONEBIT ? -v : -0.5f * v;
            s[2 * b + 1] = v;
        }
    }
    side.scale = s;
    pk = ops_pack_cap(&op, &TAG, &side, x, n, cg_bound(&op, n));
    snprintf(note, sizeof note, "%s, scale %g: %s", text, (double)top, ops_status((int)pk.status));
    ASSERTm(note, pk.status == CG_OK && !pk.touched && pk.len == CG_HEADER_BYTES + value_bytes(q, n));
    ASSERTm(note, cg_decompress(pk.p, pk.len, d, n) == CG_OK);
    for (b = 0; b < buckets; b++) {
        size_t from = (size_t)(b * bucket), many = n - from < bucket ? n - from : (size_t)bucket;
        double got[2];
        scales_read(q, pk.p, b, got);
        for (i = 0; i < per; i++) ASSERTm(note, got[i] == (double)s[b * per + i]);
        /* beyond the scale: the end of the grid is the nearest */
        CHECK_CALL(bucket_right(&op, &g, x + from, d + from, many, got));
    }
    free(pk.p);
    free(x);
    free(d);
    free(s);
    PASS();
}

TEST wrong_scales(const char *text) {
    enum { N = 300 };
    float x[N], s[2 * N];
    cg_op op = parsed(text);
    const cg_stage *q = &op.quantize;
    const uint64_t per = scales_of(q), buckets = (N + bucket_of(q, N) - 1) / bucket_of(q, N), last = buckets * per - 1;
    const uint32_t wrong[] = { 0x7fc00000u, 0x7f800000u, 0xff800000u, 0xbf800000u }; /* NaN, Inf, -Inf, -1 */
    cg_extra side = CG_ZERO;
    ops_packet pk;
    size_t i, v;
    fill(REF_GAUSSIAN, 4, x, N);
    side.scale = s;
    for (v = 0; v < 4; v++) {
        /* -1 is a mean like any other for onebit and mean, and a maximum that is below the minimum for minmax */
        cg_status want = v == 3 && (q->id == CG_QUANTIZE_ONEBIT || q->id == CG_QUANTIZE_MEAN) ? CG_OK : CG_E_ARG;
        for (i = 0; i < 2 * N; i++) s[i] = i % 2 || per == 1 ? 1.0f : -0.5f;
        s[last] = ref_float(wrong[v]);
        pk = ops_pack_cap(&op, &TAG, &side, x, N, cg_bound(&op, N));
        snprintf(note, sizeof note, "%s, scale %g: %s", text, (double)s[last], ops_status((int)pk.status));
        ASSERTm(note, pk.status == want && (want == CG_OK || pk.len == 0) && !pk.touched);
        free(pk.p);
    }
    PASS();
}

TEST no_scales_to_give(const char *text) {
    float x[40] = { 1 }, s[2] = { 1, 1 };
    cg_op op = parsed(text);
    cg_extra side = CG_ZERO;
    ops_packet pk;
    side.scale = s;
    pk = ops_pack_cap(&op, &TAG, &side, x, 40, cg_bound(&op, 40));
    ASSERT_ENUM_EQm(text, CG_E_UNSUPPORTED, pk.status, ops_status);
    free(pk.p);
    PASS();
}

/* ---- tables and ties, where all arithmetic is exact ---- */

static void round_trip(const cg_op *op, const cg_tag *tag, const float *x, size_t n, float *y) {
    ops_packet pk = ops_pack(op, tag, x, n);
    if (pk.status != CG_OK || cg_decompress(pk.p, pk.len, y, n) != CG_OK) {
        fprintf(stderr, "%s: %s\n", ops_text(op), ops_status((int)pk.status));
        exit(2);
    }
    free(pk.p);
}

/* Every number of the format is itself; every middle goes to the neighbour with the even code; whatever is between
   goes to the nearest. */
TEST small_floats(const char *text, int mantissa, double top) {
    cg_op op = parsed(text);
    grid g = grid_of(&op.quantize);
    const int mx = is_mx(&op.quantize), zero = g.count / 2;
    int i, rank;
    /* OCP: 2^b codes, two zeros, less NaN and Inf */
    ASSERT_EQ_FMT(mantissa == 1 ? 15 : mantissa == 3 ? 253 : 247, g.count, "%d");
    ASSERT(g.unit[g.count - 1] == top);
    for (i = 0; i < g.count; i++) {
        float x[3], y[3];
        x[0] = (float)top; /* settles the scale: 1 */
        x[1] = (float)g.unit[i];
        x[2] = i + 1 < g.count ? (float)((g.unit[i] + g.unit[i + 1]) / 2) : (float)-top;
        round_trip(&op, &TAG, x, 3, y);
        snprintf(note, sizeof note, "%s: %g became %g, %g became %g", text, (double)x[1], (double)y[1], (double)x[2],
            (double)y[2]);
        ASSERTm(note, y[0] == x[0] && y[1] == x[1]);
        rank = i >= zero ? i - zero : zero - i; /* the code of a magnitude is its rank */
        if (i + 1 < g.count) ASSERTm(note, (double)y[2] == (rank % 2 == 0 ? g.unit[i] : g.unit[i + 1]));
        /* the same for any power of two in the block: exact down to denormals */
        if (mx) {
            float a[2], b[2];
            a[0] = (float)ldexp(top, -120);
            a[1] = (float)ldexp(g.unit[i], -120);
            round_trip(&op, &TAG, a, 2, b);
            ASSERTm(note, a[0] == b[0] && a[1] == b[1]);
        }
    }
    PASS();
}

static double normal_below(double x) { return 0.5 * erfc(-x / sqrt(2.0)); }
static double normal_density(double x) { return exp(-x * x / 2) / sqrt(2 * 3.14159265358979323846); }

static double normal_quantile(double p) {
    double lo = -10, hi = 10;
    int i;
    for (i = 0; i < 200; i++) {
        double mid = (lo + hi) / 2;
        if (normal_below(mid) < p) lo = mid;
        else hi = mid;
    }
    return (lo + hi) / 2;
}

/* The published values are quantiles at equal distances, 8 above and 7 below zero, from (1/2)(1 - 1/30 + 1 - 1/32)
   on, of which the largest is 1. They were computed in f32: of p, of p - 1/2 and of the quotient, whose derivative
   by p is at most 15 at that end. */
TEST nf4_is_the_published_table(void) {
    cg_op op = parsed("nf4");
    const double offset = 0.5 * (2 - 1.0 / 30 - 1.0 / 32), top = normal_quantile(offset);
    float x[16], y[16];
    int i;
    for (i = 0; i < 16; i++) {
        double p = i < 7 ? 1 - offset + (offset - 0.5) * i / 7 : offset - (offset - 0.5) * (15 - i) / 8;
        ASSERT_IN_RANGE(i == 7 ? 0.0 : normal_quantile(p) / top, (double)NF4[i], 40 * U);
    }
    for (i = 0; i < 16; i++) x[i] = NF4[i];
    round_trip(&op, &TAG, x, 16, y);
    ASSERT_MEM_EQ(x, y, sizeof x);
    PASS();
}

TEST dynamic8_is_its_table(void) {
    cg_op op = parsed("dynamic8");
    grid g = grid_of(&op.quantize);
    float x[255], y[255];
    int i;
    ASSERT_EQ_FMT(255, g.count, "%d");
    for (i = 0; i < 255; i++) x[i] = (float)g.unit[i];
    round_trip(&op, &TAG, x, 255, y);
    for (i = 0; i < 255; i++) ASSERT_IN_RANGE((double)x[i], (double)y[i], 0);
    ASSERT(x[0] == -1.0f && x[254] == 1.0f && x[128] == 5.5e-7f);
    PASS();
}

TEST ties(const char *text, const float *in, const float *out, size_t n) {
    cg_op op = parsed(text);
    float y[32];
    size_t i;
    round_trip(&op, &TAG, in, n, y);
    for (i = 0; i < n; i++) {
        snprintf(note, sizeof note, "%s: %g became %g, not %g", text, (double)in[i], (double)y[i], (double)out[i]);
        ASSERTm(note, y[i] == out[i]);
    }
    PASS();
}

/* ---- probabilities, means, variances ---- */

enum { N = 160, KEYS = 3000, PROJECTIONS = 8 };

static void vector(int kind, float *x) {
    uint64_t state = 17;
    int i;
    for (i = 0; i < N; i++) {
        double g = ref_normal(&state), s = ref_rand(&state) & 1 ? 1.0 : -1.0;
        x[i] = (float)(kind == 0 ? g
                : kind == 1      ? -log(ref_uniform(&state)) * s
                : kind == 2      ? (i == 40 ? 8.0 : 0.4 * g)
                                 : 0.7);
    }
}

/* Of K trials with probability p, how far the count strays once in 10^6 comparisons: Bernstein. */
static double stray(double trials, double p) {
    const double l = log(2e6);
    return l / 3 + sqrt(l * l / 9 + 2 * l * trials * p * (1 - p));
}

typedef struct outcome {
    double count, z, spread, error, error_sd, declared;
    int wrong;
} outcome;

/* The two levels around each value, how often the upper one must come up, and whether it did. */
static outcome measure(const cg_op *op, const float *x) {
    static float y[N];
    static double a[N], b[N], p[N], up[N];
    double sum[PROJECTIONS] = { 0 }, squares[PROJECTIONS] = { 0 }, error2 = 0;
    signed char r[PROJECTIONS][N];
    const cg_stage *q = &op->quantize;
    uint64_t bucket = bucket_of(q, N), state = 99;
    ops_packet pk = ops_pack(op, &TAG, x, N);
    grid g = grid_of(q);
    outcome o = { 0, 0, 0, 0, 0, 0, 0 };
    int t, i, j;
    for (i = 0; i < N; i++) {
        double s[2];
        frame f;
        scales_read(q, pk.p, (uint64_t)i / bucket, s);
        f = frame_of(q, s);
        j = grid_below(&g, ((double)x[i] - f.base) / f.mult);
        if (j + 1 == g.count) j--;
        a[i] = level_of(f, g.unit[j]);
        b[i] = level_of(f, g.unit[j + 1]);
        p[i] = fmin(fmax(((double)x[i] - a[i]) / (b[i] - a[i]), 0.0), 1.0);
        up[i] = 0;
        o.declared += sq(b[i] - a[i]) * p[i] * (1 - p[i]);
        for (t = 0; t < PROJECTIONS; t++) r[t][i] = ref_rand(&state) & 1 ? 1 : -1;
    }
    free(pk.p);
    for (t = 0; t < KEYS; t++) {
        cg_tag tag = TAG;
        double error = 0;
        if (t % 3 == 0) tag.step = (uint64_t)t;
        else if (t % 3 == 1) tag.rank = (uint32_t)t;
        else tag.seed = (uint64_t)t;
        round_trip(op, &tag, x, N, y);
        for (i = 0; i < N; i++) {
            up[i] += fabs((double)y[i] - b[i]) < fabs((double)y[i] - a[i]);
            error += sq((double)y[i] - (double)x[i]);
        }
        o.error += error / KEYS;
        error2 += sq(error) / KEYS;
        for (j = 0; j < PROJECTIONS; j++) {
            double z = 0;
            for (i = 0; i < N; i++) z += r[j][i] * ((double)y[i] - (double)x[i]);
            sum[j] += z / KEYS;
            squares[j] += z * z / KEYS;
        }
    }
    o.error_sd = sqrt(fmax(error2 - sq(o.error), 0) / KEYS);
    for (i = 0; i < N; i++) {
        double dev = fabs(up[i] - KEYS * p[i]) / stray(KEYS, p[i]);
        if (dev > o.count) o.count = dev;
        if (dev > 1) o.wrong++;
    }
    for (j = 0; j < PROJECTIONS; j++) { /* one hash serves two values: they must not move together */
        o.z = fmax(o.z, fabs(sum[j]) / sqrt(o.declared / KEYS));
        o.spread = fmax(o.spread, fabs((squares[j] - sq(sum[j])) / o.declared - 1));
    }
    return o;
}

#define SAY(o)                                                                                                       \
  (snprintf(note, sizeof note, "%s, vector %d: count %.2f, z %.2f, spread %.3f, error %.4g +- %.2g (declared %.4g)", \
       text, kind, (o).count, (o).z, (o).spread, (o).error, (o).error_sd, (o).declared),                             \
      note)

TEST unbiased(const char *text, int kind) {
    cg_op op = parsed(text);
    float x[N];
    outcome o;
    vector(kind, x);
    o = measure(&op, x);
    ASSERTm(SAY(o), o.count < 1);
    if (o.declared == 0.0) { /* a level exactly, yet one draw in a million falls on the tie */
        ASSERTm(SAY(o), o.error < 1e-3);
        PASS();
    }
    ASSERTm(SAY(o), o.z < 5);
    ASSERTm(SAY(o), o.spread < 6 * sqrt(2.0 / KEYS)); /* the variance of a sample variance, six times */
    ASSERTm(SAY(o), fabs(o.error - o.declared) <= 5 * o.error_sd + 1e-4 * o.declared);
    PASS();
}

TEST seen_to_be_biased(const char *text, int kind) /* the control: these tests can fail */
{
    cg_op op = parsed(text);
    float x[N];
    outcome o;
    vector(kind, x);
    o = measure(&op, x);
    ASSERTm(SAY(o), o.z > 10 && o.wrong > N / 4);
    PASS();
}

/* f16 and bf16 at random, between their neighbours by the definition: normal values, denormals down to a hundredth of
   the least, values of the format themselves, and the end of the range, where what cannot be held becomes the end. */
TEST halves_keep_the_mean(const char *text, int mantissa, int least, double most) {
    enum { MANY = 400, DRAWS = 3000 };
    static float x[MANY], y[MANY];
    static int ups[MANY];
    cg_op op = parsed(text);
    uint64_t state = 5;
    int i, t;
    for (i = 0; i < MANY; i++) {
        const double u = 1.0 + ref_uniform(&state), sign = i & 1 ? -1.0 : 1.0;
        const int e = i < 100 ? (int)(ref_rand(&state) % 20) - 10
            : i < 200         ? least - (int)(ref_rand(&state) % (unsigned)(mantissa + 7))
            : i < 300         ? least + (int)(ref_rand(&state) % 20)
                              : 0;
        x[i] = (float)(sign * ldexp(u, e));
        if (i >= 200 && i < 300) x[i] = (float)(sign * ldexp(floor(u * exp2(mantissa)) / exp2(mantissa), e));
        if (i >= 300) x[i] = (float)(sign * fmin(most * (1.0 + (i - 350) * exp2(-mantissa - 4)), (double)FLT_MAX));
        ups[i] = 0;
    }
    x[398] = 0.0f, x[399] = -0.0f;
    for (t = 0; t < DRAWS; t++) {
        cg_tag tag = TAG;
        tag.step = (uint64_t)t;
        round_trip(&op, &tag, x, MANY, y);
        for (i = 0; i < MANY; i++) {
            const double m = fabs((double)x[i]), d = fabs((double)y[i]);
            int e;
            double unit, lo;
            frexp(m, &e);
            unit = ldexp(1.0, (e - 1 > least ? e - 1 : least) - mantissa);
            lo = fmin(floor(m / unit) * unit, most);
            snprintf(note, sizeof note, "%s: %.9g became %.9g", text, (double)x[i], (double)y[i]);
            ASSERTm(note, d == lo || (d == lo + unit && lo < m && lo < most));
            ASSERTm(note, signbit(x[i]) == signbit(y[i]));
            ups[i] += d > lo;
            if (t == DRAWS - 1 && m < most) {
                const double p = (m - lo) / unit;
                snprintf(note, sizeof note, "%s: %.9g went up %d times of %d, expected %.6g", text, (double)x[i],
                    ups[i], DRAWS, DRAWS * p);
                ASSERTm(note, fabs(ups[i] - DRAWS * p) <= stray(DRAWS, p));
            }
        }
    }
    PASS();
}

/* ---- theorems ---- */

static double norm2(const float *x, size_t n) {
    double s = 0;
    size_t i;
    for (i = 0; i < n; i++) s += sq((double)x[i]);
    return s;
}

/* E|Q(x) - x|^2 / |x|^2 over keys, and its standard error */
static double omega(const cg_op *op, const float *x, size_t n, int keys, double *sd) {
    float *y = (float *)ref_alloc(n * 4);
    double mean = 0, square = 0, all = norm2(x, n);
    int t;
    size_t i;
    for (t = 0; t < keys; t++) {
        cg_tag tag = TAG;
        double e = 0;
        tag.step = 5000 + (uint64_t)t;
        round_trip(op, &tag, x, n, y);
        for (i = 0; i < n; i++) e += sq((double)y[i] - (double)x[i]);
        mean += e / all / keys;
        square += sq(e / all) / keys;
    }
    free(y);
    if (sd) *sd = sqrt(fmax(square - sq(mean), 0) / keys);
    return mean;
}

/* Alistarh: omega <= min(d/s^2, sqrt(d)/s), whatever the vector. */
TEST qsgd_variance(int s, size_t d, int kind) {
    char text[40];
    float *x = (float *)ref_alloc(d * 4);
    double got, sd, bound = fmin((double)d / (s * s), sqrt((double)d) / s);
    cg_op op;
    snprintf(text, sizeof text, "levels:%d", s);
    op = parsed(text);
    fill(kind, 6, x, d);
    got = omega(&op, x, d, 300, &sd);
    snprintf(
        note, sizeof note, "%s, d = %lu, vector %d: %g +- %g, bound %g", text, (unsigned long)d, kind, got, sd, bound);
    ASSERTm(note, got <= bound + 5 * sd);
    free(x);
    PASS();
}

/* Suresh: half a step each way, of a range of sqrt(2)|x| or less: omega <= B/(2(2^b-1)^2). */
TEST minmax_variance(const char *text, int bits, size_t d, int kind) {
    float *x = (float *)ref_alloc(d * 4);
    double got, sd, bound = (double)d / (2 * sq((1 << bits) - 1));
    cg_op op = parsed(text);
    fill(kind, 6, x, d);
    got = omega(&op, x, d, 200, &sd);
    snprintf(
        note, sizeof note, "%s, d = %lu, vector %d: %g +- %g, bound %g", text, (unsigned long)d, kind, got, sd, bound);
    ASSERTm(note, got <= bound + 5 * sd);
    free(x);
    PASS();
}

/* What the header declares of a normal vector: the error is below 1 - d of the energy. */
TEST normal_error(const char *text, double contraction) {
    enum { MANY = 1 << 16 };
    static float x[MANY];
    cg_op op = parsed(text);
    double got;
    fill(REF_GAUSSIAN, 12, x, MANY);
    got = omega(&op, x, MANY, 1, NULL);
    snprintf(note, sizeof note, "%s: error %.5f, declared %.5f", text, got, 1 - contraction);
    ASSERTm(note, got < 1 - contraction);
    PASS();
}

/* Horvath: omega = 1/8 at 4/3 of a power of two, less elsewhere (down to the smallest normal number). */
TEST natural_variance(void) {
    static float x[4096];
    cg_op op = parsed("natural"), near = parsed("natural:nearest");
    double sd, got;
    size_t i;
    int kind;
    for (i = 0; i < 4096; i++) x[i] = (float)ldexp(i % 2 ? 4.0 / 3 : -4.0 / 3, (int)(i % 7));
    got = omega(&op, x, 4096, 200, &sd);
    ASSERT_IN_RANGE(0.125, got, 5 * sd + 1e-6);
    ASSERT(sd < 0.001);
    for (kind = 0; kind <= REF_OUTLIER; kind++) {
        fill(kind, 8, x, 4096);
        ASSERT(omega(&op, x, 4096, 50, &sd) <= 0.125 + 5 * sd);
        ASSERT(omega(&near, x, 4096, 1, NULL) <= 1.0 / 9); /* at worst a third of the value, at 3/2 */
    }
    PASS();
}

/* TernGrad: sum of |x|(s - |x|), at most (sqrt(d) - 1)/2 of |x|^2, which one s and all others s/(1 + sqrt(d)) reach. */
TEST terngrad_variance(void) {
    enum { D = 1024 };
    float x[D];
    double got, sd, declared = 0, s;
    cg_op op = parsed("terngrad");
    int i, kind;
    for (i = 0; i < D; i++) x[i] = i == 9 ? 3.0f : (i % 2 ? 3.0f : -3.0f) / (1 + 32.0f);
    got = omega(&op, x, D, 3000, &sd);
    ASSERT_IN_RANGE((sqrt((double)D) - 1) / 2, got, 5 * sd + 1e-4);
    ASSERT(sd < 0.1);
    for (kind = 0; kind <= REF_OUTLIER; kind++) {
        fill(kind, 8, x, D);
        for (i = 0, s = 0, declared = 0; i < D; i++)
            if (fabs((double)x[i]) > s) s = fabs((double)x[i]);
        for (i = 0; i < D; i++) declared += fabs((double)x[i]) * (s - fabs((double)x[i])) / norm2(x, D);
        got = omega(&op, x, D, 1000, &sd);
        ASSERT_IN_RANGE(declared, got, 5 * sd + 1e-4);
        ASSERT(declared <= (sqrt((double)D) - 1) / 2);
    }
    PASS();
}

/* Horvath: dithering with s powers of two has omega <= 1/8 + min(2^(1-s) sqrt(d), 2^(2-2s) d) for the L2 norm. */
TEST dither_variance(int bits, size_t d, int kind) {
    char text[40];
    float *x = (float *)ref_alloc(d * 4);
    const int s = (1 << (bits - 1)) - 1;
    double got, sd, bound = 0.125 + fmin(ldexp(sqrt((double)d), 1 - s), ldexp((double)d, 2 - 2 * s));
    cg_op op;
    snprintf(text, sizeof text, "dither:%d", bits);
    op = parsed(text);
    fill(kind, 6, x, d);
    got = omega(&op, x, d, 200, &sd);
    snprintf(
        note, sizeof note, "%s, d = %lu, vector %d: %g +- %g, bound %g", text, (unsigned long)d, kind, got, sd, bound);
    ASSERTm(note, got <= bound + 5 * sd);
    free(x);
    PASS();
}

/* ---- rotation and DCT ---- */

/* What the transform made of x: the packet of the dense quantizer holds it. Returns how many values. */
static size_t turned(const char *text, const cg_tag *tag, const float *x, size_t n, float *z) {
    cg_op op = parsed(text);
    ops_packet pk = ops_pack(&op, tag, x, n);
    size_t k, i;
    if (pk.status != CG_OK) {
        fprintf(stderr, "%s: %s\n", text, ops_status((int)pk.status));
        exit(2);
    }
    k = (pk.len - CG_HEADER_BYTES) / 4;
    for (i = 0; i < k; i++) z[i] = ref_float((uint32_t)ref_get(pk.p + CG_HEADER_BYTES + 4 * i, 4));
    free(pk.p);
    return k;
}

static int odd_bits(unsigned v) {
    int odd = 0;
    for (; v; v &= v - 1) odd ^= 1;
    return odd;
}

enum { BLOCK = 1024 };

static void hadamard(double *v) /* by its definition, but for the order of the sums */
{
    size_t s, i, j;
    for (s = 1; s < BLOCK; s *= 2)
        for (i = 0; i < BLOCK; i += 2 * s)
            for (j = i; j < i + s; j++) {
                double a = v[j], b = v[j + s];
                v[j] = a + b;
                v[j + s] = a - b;
            }
    for (i = 0; i < BLOCK; i++) v[i] /= 32;
}

/* One round is H*D/32 with signs D; two rounds are H*D'*H*D with the same D, and three H*D''*H*D'*H*D. Unit vectors
   show every entry. */
TEST rotation_is_signs_and_hadamard(uint32_t step, size_t block) {
    static float x[3 * BLOCK], z[3 * BLOCK], w[3 * BLOCK];
    static double v[BLOCK];
    int first[BLOCK], second[BLOCK], third[BLOCK] = { 0 }, i, j, minus = 0, minus2 = 0, minus3 = 0;
    cg_tag tag = TAG;
    tag.step = step;
    memset(x, 0, sizeof x);
    for (i = 0; i < BLOCK; i++) {
        x[block * BLOCK + (size_t)i] = 1.0f;
        ASSERT(turned("rotate:1", &tag, x, 3 * BLOCK, z) == 3 * BLOCK);
        first[i] = z[block * BLOCK] > 0 ? 1 : -1;
        for (j = 0; j < BLOCK; j++)
            ASSERT((double)z[block * BLOCK + (size_t)j] * 32 == (odd_bits((unsigned)(i & j)) ? -first[i] : first[i]));
        if (i % 8 == 0) { /* more rounds take longer to look at */
            turned("rotate:2", &tag, x, 3 * BLOCK, z);
            for (j = 0; j < BLOCK; j++) v[j] = (double)z[block * BLOCK + (size_t)j];
            hadamard(v);
            for (j = 0; j < BLOCK; j++) {
                int sign = (v[j] > 0 ? 1 : -1) * (odd_bits((unsigned)(i & j)) ? -first[i] : first[i]);
                ASSERT_IN_RANGE(1.0, fabs(v[j]) * 32, 1e-12); /* sums of +-1 are exact */
                if (i == 0) second[j] = sign;
                ASSERT_EQ(second[j], sign);
            }
            turned("rotate:3", &tag, x, 3 * BLOCK, w);
            for (j = 0; j < BLOCK; j++) v[j] = (double)w[block * BLOCK + (size_t)j];
            hadamard(v);
            for (j = 0; j < BLOCK; j++) { /* the third signs, times what two rounds make: integers over 1024 */
                double two = (double)z[block * BLOCK + (size_t)j];
                ASSERT_IN_RANGE(fabs(two), fabs(v[j]), 1e-12);
                if (fabs(two) < 1e-12) continue;
                if (!third[j]) third[j] = (v[j] > 0) == (two > 0) ? 1 : -1;
                ASSERT_EQ(third[j], (v[j] > 0) == (two > 0) ? 1 : -1);
            }
        }
        x[block * BLOCK + (size_t)i] = 0.0f;
    }
    for (i = 0, j = 0; i < BLOCK; i++) {
        minus += first[i] < 0;
        minus2 += second[i] < 0;
        minus3 += third[i] < 0;
        j += first[i] == second[i];
    }
    ASSERT_IN_RANGE(512.0, (double)minus, stray(BLOCK, 0.5));
    ASSERT_IN_RANGE(512.0, (double)minus2, stray(BLOCK, 0.5));
    ASSERT_IN_RANGE(512.0, (double)minus3, stray(BLOCK, 0.5));
    for (i = 0; i < BLOCK; i++) ASSERT(third[i]);
    ASSERT_IN_RANGE(512.0, (double)j, stray(BLOCK, 0.5));
    PASS();
}

/* H of what the rotation made of ones is the signs: every block and every tag has others, but all ranks the same. */
TEST rotation_signs_are_shared(void) {
    enum { BLOCKS = 4, TAGS = 5 };
    static float x[BLOCKS * BLOCK], z[BLOCKS * BLOCK];
    static double v[TAGS][BLOCKS * BLOCK];
    cg_tag tags[TAGS];
    int t, u;
    size_t i, a, b;
    for (i = 0; i < BLOCKS * BLOCK; i++) x[i] = 1.0f;
    for (t = 0; t < TAGS; t++) tags[t] = TAG;
    tags[1].rank++;
    tags[2].step++;
    tags[3].seed++;
    tags[4].tensor++;
    for (t = 0; t < TAGS; t++) {
        turned("rotate:1", &tags[t], x, BLOCKS * BLOCK, z);
        for (i = 0; i < BLOCKS * BLOCK; i++) v[t][i] = (double)z[i];
        for (b = 0; b < BLOCKS; b++) hadamard(v[t] + b * BLOCK);
    }
    ASSERT_MEM_EQ(v[0], v[1], sizeof v[0]);
    for (t = 1; t < TAGS; t++)
        for (u = t; u < TAGS; u++)
            for (a = 0; a < BLOCKS; a++)
                for (b = 0; b < BLOCKS; b++) {
                    double same = 0;
                    if (t == u && a == b) continue;
                    for (i = 0; i < BLOCK; i++) same += v[t][a * BLOCK + i] == v[u][b * BLOCK + i];
                    ASSERT_IN_RANGE(512.0, same, stray(BLOCK, 0.5));
                }
    PASS();
}

/* Each of the ten levels of sums is orthogonal up to its scale and rounds once: U of the norm. Denormals round
   once more at the end. */
TEST rotation_keeps_the_norm(int rounds, int kind, size_t n) {
    const size_t full = (n + BLOCK - 1) / BLOCK * BLOCK;
    char text[20];
    float *x = (float *)ref_alloc(full * 4), *y = (float *)ref_alloc(full * 4), *z = (float *)ref_alloc(full * 4);
    double levels = 10.0 * rounds * U * 1.001;
    size_t b, i;
    cg_op op;
    snprintf(text, sizeof text, "rotate:%d", rounds);
    op = parsed(text);
    fill(kind, 21, x, n);
    if (kind == REF_HUGE)
        for (i = 0; i < n; i++) x[i] *= 0x1p-7f; /* so that no sum leaves the range */
    ASSERT(turned(text, &TAG, x, n, z) == full);
    round_trip(&op, &TAG, x, n, y);
    for (b = 0; b < full; b += BLOCK) { /* filled up with zeros, which z must hold too */
        double in = sqrt(norm2(x + b, BLOCK)), error = 0;
        size_t m = n - b < BLOCK ? n - b : BLOCK;
        for (i = b; i < b + m; i++) error += sq((double)x[i] - (double)y[i]);
        snprintf(note, sizeof note, "%s, vector %d, n = %lu, block %lu: norm %.9g became %.9g, error %.3g", text, kind,
            (unsigned long)n, (unsigned long)(b / BLOCK), in, sqrt(norm2(z + b, BLOCK)), sqrt(error));
        ASSERTm(note, fabs(sqrt(norm2(z + b, BLOCK)) - in) <= levels * in + 32 * LEAST);
        ASSERTm(note, sqrt(error) <= 2 * levels * in + 64 * LEAST);
    }
    free(x);
    free(y);
    free(z);
    PASS();
}

TEST rotation_of_extremes(const char *text) /* may have to saturate, but nothing becomes Inf */
{
    enum { M = 3000 };
    static float x[M], y[M], z[M + BLOCK];
    size_t i, k;
    int kind;
    cg_op op = parsed(text);
    for (kind = 0; kind < 3; kind++) {
        for (i = 0; i < M; i++)
            x[i] = kind == 0 ? FLT_MAX : kind == 1 ? (i % 2 ? FLT_MAX : -FLT_MAX) : i == 5 ? -FLT_MAX : 0.0f;
        k = turned(text, &TAG, x, M, z);
        for (i = 0; i < k; i++) ASSERTm(text, ref_finite(z[i]));
        round_trip(&op, &TAG, x, M, y);
        for (i = 0; i < M; i++) ASSERTm(text, ref_finite(y[i]));
        if (kind == 2) ASSERT_IN_RANGEm(text, -1.0, (double)(y[5] / FLT_MAX), 40 * U);
    }
    PASS();
}

/* Orthonormal DCT-II by its formula. Norm-wise the fast one has three foldings (U), at most two turns (3 U sqrt
   2), an 8 x 8 product (9 U sqrt 8) and a last sum (3 U): 40 U. */
TEST dct_is_the_formula(int kind, size_t n) {
    const size_t full = (n + 63) / 64 * 64;
    float *x = (float *)ref_alloc(full * 4), *z = (float *)ref_alloc(full * 4), *y = (float *)ref_alloc(full * 4);
    cg_op op = parsed("dct");
    size_t b, i, k;
    fill(kind, 31, x, n);
    if (kind == REF_HUGE)
        for (i = 0; i < n; i++) x[i] *= 0.0625f;
    ASSERT(turned("dct", &TAG, x, n, z) == full);
    round_trip(&op, &TAG, x, n, y);
    for (b = 0; b < full; b += 64) {
        double norm = sqrt(norm2(x + b, 64)), error = 0, back = 0;
        for (k = 0; k < 64; k++) {
            double s = 0;
            for (i = 0; i < 64; i++)
                s += (double)x[b + i] * cos(3.14159265358979323846 * ((double)i + 0.5) * (double)k / 64);
            error += sq(s * sqrt((k ? 2.0 : 1.0) / 64) - (double)z[b + k]);
        }
        for (i = b; i < b + 64 && i < n; i++) back += sq((double)x[i] - (double)y[i]);
        snprintf(note, sizeof note, "dct, vector %d, n = %lu, block %lu: norm %.9g, error %.3g, there and back %.3g",
            kind, (unsigned long)n, (unsigned long)(b / 64), norm, sqrt(error), sqrt(back));
        ASSERTm(note, sqrt(error) <= 40 * U * norm + 200 * LEAST); /* denormals: every product of a matrix rounds */
        ASSERTm(note, sqrt(back) <= 80 * U * norm + 400 * LEAST);
    }
    free(x);
    free(y);
    free(z);
    PASS();
}

/* Of a unit vector nothing cancels: a coefficient is the sum of two terms of at most sqrt(2/64), each a product of
   at most three coefficients, so that six roundings and that of the sum make less than 3 U. */
TEST dct_of_unit_vectors(void) {
    float x[64] = { 0 }, z[64];
    size_t i, k;
    for (i = 0; i < 64; i++) {
        x[i] = 1.0f;
        turned("dct", &TAG, x, 64, z);
        x[i] = 0.0f;
        for (k = 0; k < 64; k++) {
            double want = sqrt((k ? 2.0 : 1.0) / 64) * cos(3.14159265358979323846 * ((double)i + 0.5) * (double)k / 64);
            snprintf(note, sizeof note, "dct, coefficient %d of unit vector %d: %.9g, not %.9g", (int)k, (int)i,
                (double)z[k], want);
            ASSERTm(note, fabs(want - (double)z[k]) <= 3 * U);
        }
    }
    PASS();
}

/* ---- EDEN: rotate, then Lloyd-Max ---- */

/* Lloyd's own iteration for a normal distribution: centres by magnitude, and the distortion. */
static double lloyd(int bits, double *centre) {
    const int m = 1 << (bits - 1);
    double d = 1, a, b;
    int i, turn;
    for (i = 0; i < m; i++) centre[i] = (i + 0.5) * 3 / m;
    for (turn = 0; turn < 20000; turn++) {
        double next[8];
        for (i = 0; i < m; i++) {
            a = i ? (centre[i - 1] + centre[i]) / 2 : 0;
            b = i + 1 < m ? (centre[i] + centre[i + 1]) / 2 : 40;
            next[i] = (normal_density(a) - normal_density(b)) / (normal_below(-a) - normal_below(-b));
        }
        memcpy(centre, next, sizeof *next * (size_t)m);
    }
    for (i = 0; i < m; i++) { /* E z^2 less the energy of the centres */
        a = i ? (centre[i - 1] + centre[i]) / 2 : 0;
        b = i + 1 < m ? (centre[i] + centre[i + 1]) / 2 : 40;
        d -= 2 * sq(centre[i]) * (normal_below(-a) - normal_below(-b));
    }
    return d;
}

static double CENTRE[5][8], DISTORTION[5]; /* by bits */

TEST lloyd_constants(void) {
    static const double published[5] = { 0, 0.3634, 0.1175, 0.03454, 0.009501 },
                        digit[5] = { 0, 1e-4, 1e-4, 1e-5, 1e-6 };
    int b;
    for (b = 1; b <= 4; b++) DISTORTION[b] = lloyd(b, CENTRE[b]);
    for (b = 1; b <= 4; b++) ASSERT_IN_RANGE(published[b], DISTORTION[b], digit[b]);
    ASSERT_IN_RANGE(0.79788, CENTRE[1][0], 5e-6);
    ASSERT_IN_RANGE(0.45278, CENTRE[2][0], 5e-6);
    ASSERT_IN_RANGE(1.51042, CENTRE[2][1], 5e-6);
    PASS();
}

static int nearest_centre(int bits, double t) {
    int i, best = 0;
    for (i = 1; i < 1 << (bits - 1); i++)
        if (fabs(t - CENTRE[bits][i]) < fabs(t - CENTRE[bits][best])) best = i;
    return best;
}

/* Every rotated value is at its nearest centre, as many as the fraction says at one of a bit more; the scale is
   |z|^2 / <centres, z>. */
TEST eden_rounds_to_centres(const char *text, int kind, size_t n) {
    const size_t full = (n + BLOCK - 1) / BLOCK * BLOCK, blocks = full / BLOCK;
    cg_op op = parsed(text);
    const double bits = (double)op.quantize.value;
    const int low = (int)bits, finer = (int)((bits - low) * BLOCK);
    float *x = (float *)ref_alloc(full * 4), *y = (float *)ref_alloc(full * 4), *z = (float *)ref_alloc(full * 4),
          *w = (float *)ref_alloc(full * 4);
    char rotation[20];
    ops_packet pk;
    size_t b, i;
    fill(kind, 41, x, n);
    if (kind == REF_HUGE)
        for (i = 0; i < n; i++) x[i] *= 0x1p-7f;
    pk = ops_pack(&op, &TAG, x, n);
    snprintf(note, sizeof note, "%s, vector %d, n = %lu: %s, %lu bytes", text, kind, (unsigned long)n,
        ops_status((int)pk.status), (unsigned long)pk.len);
    ASSERTm(note, pk.status == CG_OK && !pk.touched && pk.len == pk.cap);
    ASSERTm(note, (double)pk.len == CG_HEADER_BYTES + 4.0 * (double)blocks + bits * BLOCK / 8 * (double)blocks);
    ASSERTm(note, cg_decompress(pk.p, pk.len, y, n) == CG_OK);
    if (n < full) { /* the same blocks, but all of them come out */
        ops_packet whole = ops_pack(&op, &TAG, x, full);
        ASSERTm(note,
            whole.status == CG_OK && cg_decompress(whole.p, whole.len, w, full) == CG_OK && memcmp(w, y, n * 4) == 0);
        memcpy(y, w, full * 4);
        free(whole.p);
    }
    snprintf(rotation, sizeof rotation, "rotate:%d", (int)op.transform.arg);
    turned(rotation, &TAG, x, full, z); /* what was rounded */
    turned(rotation, &TAG, y, full, w); /* what it became; there and back: 20 levels of sums a round */
    for (b = 0; b < blocks; b++) {
        double scale = (double)ref_float((uint32_t)ref_get(pk.p + CG_HEADER_BYTES + 4 * b, 4)), product = 0,
               norm = sqrt(norm2(z + b * BLOCK, BLOCK));
        double blur = (20 * op.transform.arg + 1) * U * sqrt(norm2(w + b * BLOCK, BLOCK)) + 200 * LEAST;
        int high = 0;
        for (i = b * BLOCK; i < (b + 1) * BLOCK; i++) {
            double t = norm > 0 ? fabs((double)z[i]) * 32 / norm : 0, got = fabs((double)w[i]), c = 0, off = 1e300;
            int bit, part, best = low;
            /* which of the tables it is from: they share no value */
            for (bit = low; bit <= low + (finer > 0); bit++)
                for (part = 0; part < 1 << (bit - 1); part++)
                    if (fabs(got - scale * CENTRE[bit][part]) < off) {
                        off = fabs(got - scale * CENTRE[bit][part]);
                        c = CENTRE[bit][part];
                        best = bit;
                    }
            high += best > low;
            product += c * fabs((double)z[i]);
            /* denormals whose rounding hides the centres, and zeros */
            if (off <= blur + 2 * U * got &&
                (blur > 0.02 * scale ||
                    ((w[i] < 0) == (z[i] < 0) &&
                        fabs(c - t) <= fabs(CENTRE[best][nearest_centre(best, t)] - t) + 10 * U * t + 4 * U)))
                continue;
            snprintf(note, sizeof note,
                "%s, vector %d, n = %lu, value %lu: %.9g became %.9g, %.9g in units became %.9g", text, kind,
                (unsigned long)n, (unsigned long)i, (double)z[i], (double)w[i], t, c);
            FAILm(note);
        }
        snprintf(note, sizeof note, "%s, vector %d, n = %lu, block %lu: scale %.9g, not %.9g; %d finer", text, kind,
            (unsigned long)n, (unsigned long)b, scale, product > 0 ? sq(norm) / product : 0, high);
        if (blur > 0.02 * scale) continue;
        ASSERTm(note, fabs(scale - sq(norm) / product) <= 4 * U * scale + LEAST);
        ASSERTm(note, high == finer);
    }
    free(pk.p);
    free(x);
    free(y);
    free(z);
    free(w);
    PASS();
}

static void heavy(int kind, float *x, size_t n) /* normal, Laplace, log-normal with signs */
{
    uint64_t state = 4711;
    size_t i;
    for (i = 0; i < n; i++) {
        double s = ref_rand(&state) & 1 ? 1.0 : -1.0;
        x[i] = (float)(kind == 0 ? ref_normal(&state)
                : kind == 1      ? -log(ref_uniform(&state)) * s
                                 : exp(ref_normal(&state)) * s);
    }
}

/* The error is D/(1 - D) of the energy; of a mixture of tables, with the mean D. */
TEST eden_error(const char *text, double bits, int kind) {
    enum { MANY = 1 << 18 };
    static float x[MANY];
    cg_op op = parsed(text);
    const int low = (int)bits;
    double d = low == 4 ? DISTORTION[4] : DISTORTION[low] + (bits - low) * (DISTORTION[low + 1] - DISTORTION[low]), got;
    heavy(kind, x, MANY);
    got = omega(&op, x, MANY, 4, NULL);
    snprintf(note, sizeof note, "%s, distribution %d: %.5f, published %.5f", text, kind, got, d / (1 - d));
    ASSERTm(note, fabs(got - d / (1 - d)) <= 0.02 * d / (1 - d));
    PASS();
}

/* The mean of K estimates is K times as good, down to what bias there is. */
TEST eden_is_unbiased(const char *text, int kind) {
    enum { M = 8192, K = 100 };
    static float x[M], y[M];
    static double mean[M];
    cg_op op = parsed(text);
    double one = 0, all = 0, ratio;
    int t;
    size_t i;
    heavy(kind, x, M);
    memset(mean, 0, sizeof mean);
    for (t = 0; t < K; t++) {
        cg_tag tag = TAG;
        tag.step = 900 + (uint64_t)t;
        round_trip(&op, &tag, x, M, y);
        for (i = 0; i < M; i++) {
            mean[i] += (double)y[i] / K;
            one += sq((double)y[i] - (double)x[i]) / K;
        }
    }
    for (i = 0; i < M; i++) all += sq(mean[i] - (double)x[i]);
    /* 1, and 1 + K * bias^2 / variance otherwise; its spread is about sqrt(2/M) = 0.016 */
    ratio = all / one * K;
    snprintf(
        note, sizeof note, "%s, distribution %d: the mean of %d has %.3f/%d of the error", text, kind, K, ratio, K);
    ASSERTm(note, fabs(ratio - 1) < 5 * sqrt(2.0 / M));
    PASS();
}

/* A few equal spikes and a small rest: sums of +-1 tie often after few rounds, the rest decides all ties alike, and is
   far too large in the mean. place: neighbours, 128 apart, scattered with both signs, or at 2^s - 1. */
enum { COPIES = 64 }; /* of the block in one vector: each has a rotation of its own */
static void spikes(int many, double small, int place, float *x) {
    uint64_t state = 99;
    int i;
    for (i = 0; i < BLOCK; i++) x[i] = (float)(small * ref_normal(&state));
    for (i = 0; i < many; i++) {
        const int at[4] = { i, 128 * i, (i * (i + 1) / 2 * 37 + 5) % BLOCK, (1 << i) - 1 };
        x[at[place]] = place == 2 && i % 2 ? -1.0f : 1.0f;
    }
    for (i = 1; i < COPIES; i++) memcpy(x + i * BLOCK, x, BLOCK * sizeof *x);
}

/* |E D(x) - x|^2 / |x|^2 from `trials` rotations: the product of the errors of two means that share no rotation, in
   which variance cancels; *spread is the standard deviation of this estimate. */
static double bias2(const cg_op *op, const float *x, int trials, double *spread) {
    static float y[COPIES * BLOCK];
    static double mean[2][BLOCK];
    double product = 0, norm = norm2(x, BLOCK), error = 0;
    const int half = trials / COPIES * COPIES / 2;
    int t, c, i;
    memset(mean, 0, sizeof mean);
    for (t = 0; t < trials / COPIES; t++) {
        cg_tag tag = TAG;
        tag.step = 5000 + (uint64_t)t;
        round_trip(op, &tag, x, COPIES * BLOCK, y);
        for (c = 0; c < COPIES; c++)
            for (i = 0; i < BLOCK; i++) {
                const double d = (double)y[c * BLOCK + i] - (double)x[i];
                mean[c % 2][i] += d / half;
                error += d * d;
            }
    }
    for (i = 0; i < BLOCK; i++) product += mean[0][i] * mean[1][i];
    /* two vectors of independent noise, each of this square, in 1024 directions */
    *spread = error / (2.0 * half) / half / norm / sqrt(BLOCK);
    return product / norm;
}

/* What README says of eden and drive: the bias, as a share of |x|, at most so much on any of these vectors. */
TEST eden_on_spikes(const char *text, double most) {
    static float x[COPIES * BLOCK];
    const int trials = long_test() ? 16384 : 4096;
    cg_op op = parsed(text);
    double spread, worst = 0;
    int many, e, place;
    for (many = 1; many <= 8; many++)
        for (e = 2; e <= 6; e++)
            for (place = 0; place < 4; place++) {
                double got;
                if (!long_test() && place != (many + e) % 4) continue;
                spikes(many, pow(10, -e), place, x);
                got = bias2(&op, x, trials, &spread);
                if (got > worst) worst = got;
                snprintf(note, sizeof note, "%s, %d spikes (%d), rest 1e-%d: bias^2 %.3g +- %.2g, at most %.3g", text,
                    many, place, e, got, spread, most * most);
                ASSERTm(note, got < most * most + 4 * spread);
            }
    printf(
        "  %s on spikes: bias at most %.3f %% of |x| (spread %.3f %%)\n", text, 100 * sqrt(worst), 100 * sqrt(spread));
    PASS();
}

TEST two_rounds_would_be_seen(void) {
    static float x[COPIES * BLOCK];
    cg_op op = parsed("rotate:2|lloyd:1");
    double spread, got;
    spikes(4, 1e-6, 0, x);
    got = bias2(&op, x, 4096, &spread);
    snprintf(note, sizeof note, "bias^2 %.3g +- %.2g", got, spread);
    ASSERTm(note, got > sq(0.03) + 4 * spread);
    PASS();
}

/* ---- all of it ---- */

static void every_isa(void (*suite)(void)) /* the plain C and what this machine runs */
{
    if (cg_isa_force(CG_ISA_SCALAR) == CG_OK) suite();
    if (cg_isa_force(CG_ISA_AUTO) == CG_OK) suite();
}

static void definitions_small(void) {
    int i;
    for (i = 0; i < OP_COUNT; i++) {
        RUN_TESTp(right_at_sizes, OPS[i], SMALL, sizeof SMALL / sizeof *SMALL, 0, KINDS - 1);
        RUN_TESTp(right_at_sizes, OPS[i], MIDDLE, sizeof MIDDLE / sizeof *MIDDLE, 0, KINDS - 1);
    }
}

SUITE(definitions) {
    int i;
    every_isa(definitions_small);
    for (i = 0; i < OP_COUNT; i++) {
        int kind = (int[]){ REF_LAPLACE, REF_OUTLIER, HALVES, REF_GAUSSIAN }[i % 4];
        RUN_TESTp(right_at_sizes, OPS[i], LARGE, sizeof LARGE / sizeof *LARGE, kind, kind);
        RUN_TEST1(nonfinite_is_refused, OPS[i]);
    }
    RUN_TEST1(nonfinite_is_refused, "rotate:2|lloyd:1");
    RUN_TEST1(nonfinite_is_refused, "rotate:3|lloyd:2.25");
    RUN_TEST1(nonfinite_is_refused, "rotate:1");
    RUN_TEST1(nonfinite_is_refused, "dct");
    RUN_TEST1(mean_of_what_was_kept, "side:1|mean");
    RUN_TEST1(mean_of_what_was_kept, "sbc:0.05");
    RUN_TESTp(coded_values_are_the_same, "levels:4", "qsgd:4");
    RUN_TESTp(coded_values_are_the_same, "trits:1.5", "threelc:1.5");
    RUN_TESTp(coded_values_are_the_same, "minmax:4:512:norm", "klevel:4:512");
}

static void given(void) {
    static const char *const ops[] = { "levels:4:512", "levels:127:100:max", "levels:3:nearest", "flexpoint:8:64",
        "flexpoint:4:70000", "flex16:70000", "trits:1.5", "onebit", "onebit:100", "dither:4:512", "dither:8:max",
        "dither:3:nearest", "dynamic8:256", "e4m3", "e5m2:70000", "mxfp4", "mxe4m3", "mxe5m2", "nf4",
        "minmax:4:512:norm", "minmax:8:512", "absmax:4:512", "terngrad", "terngrad:clip" };
    static const float tops[] = { 1.0f, 0.125f, 0x1p-10f, 0x1p-60f, 0x1p-126f, 0x1p120f };
    size_t i, t;
    for (i = 0; i < sizeof ops / sizeof *ops; i++) {
        if (strncmp(ops[i], "absmax", 6) != 0) {
            for (t = 0; t < sizeof tops / sizeof *tops; t++) {
                RUN_TESTp(given_scales, ops[i], tops[t], REF_GAUSSIAN, 3001);
                RUN_TESTp(given_scales, ops[i], tops[t], EXTREMES, 3001);
            }
            RUN_TESTp(given_scales, ops[i], 0.25f, REF_TIES, 70001);
        }
        RUN_TEST1(wrong_scales, ops[i]);
    }
}

SUITE(agreed_scales) {
    every_isa(given);
    RUN_TEST1(no_scales_to_give, "natural");
    RUN_TEST1(no_scales_to_give, "strom:1");
    RUN_TEST1(no_scales_to_give, "rotate:2|lloyd:2");
}

#define TIES(text, in, out) RUN_TESTp(ties, text, in, out, sizeof(in) / sizeof *(in))
SUITE(tables) {
    /* steps of a quarter, and 1 for the scale: to even */
    static const float quarter[] = { 1, 0.125f, 0.375f, 0.625f, 0.875f, -0.125f, -0.375f, -0.625f, -0.875f, 0.25f };
    static const float quarter_out[] = { 1, 0, 0.5f, 0.5f, 1, 0, -0.5f, -0.5f, -1, 0.25f };
    static const float seven[] = { 7, 0.5f, 1.5f, 2.5f, -3.5f, -6.5f, 5.5f, 0.25f },
                       seven_out[] = { 7, 0, 2, 2, -4, -6, 6, 0 };
    static const float trit[] = { 1, 0.5f, -0.5f, 0.5000001f, -0.75f, 0.25f }, trit_out[] = { 1, 0, 0, 1, -1, 0 };
    /* powers of two: away from zero */
    static const float power[] = { 1.5f, -3, 2.9999998f, 0x1p-127f, -0x1p-127f, 0x1.8p-127f, 0x0.fp-127f, FLT_MAX,
        -FLT_MAX, 0x1p-126f, 0x1p127f };
    static const float power_out[] = { 2, -4, 2, 0x1p-126f, -0x1p-126f, 0x1p-126f, 0, 0x1p127f, -0x1p127f, 0x1p-126f,
        0x1p127f };
    /* 1, 1/2, .. 1/64, 0; half of the least stays down */
    static const float dithered[] = { 1, 0.75f, -0.375f, 0.3749999f, 0x1p-7f, 0x1.000002p-7f, -0x1p-6f };
    static const float dithered_out[] = { 1, 1, -0.5f, 0.25f, 0, 0x1p-6f, -0x1p-6f };
    RUN_TESTp(small_floats, "mxfp4", 1, 6.0);
    RUN_TESTp(small_floats, "mxe4m3", 3, 448.0);
    RUN_TESTp(small_floats, "mxe5m2", 2, 57344.0);
    RUN_TESTp(small_floats, "e4m3", 3, 448.0);
    RUN_TESTp(small_floats, "e5m2", 2, 57344.0);
    RUN_TEST(nf4_is_the_published_table);
    RUN_TEST(dynamic8_is_its_table);
    TIES("levels:4:nearest:max", quarter, quarter_out);
    TIES("flexpoint:4:64", seven, seven_out);
    TIES("trits:1", trit, trit_out);
    TIES("terngrad:nearest", trit, trit_out);
    TIES("natural:nearest", power, power_out);
    TIES("dither:4:nearest:max", dithered, dithered_out);
}

SUITE(estimates) {
    static const char *const ops[] = { "levels:1", "levels:4", "levels:16:32", "levels:3:32:max", "levels:127:max",
        "minmax:2:32:norm", "minmax:5:160:norm", "terngrad", "natural", "dither:2", "dither:4", "dither:3:32:max",
        "dither:8", "e4m3:stochastic", "e5m2:32:stochastic", "mxfp4:stochastic", "mxe4m3:stochastic",
        "mxe5m2:stochastic", "nf4:stochastic", "nf4:160:stochastic" };
    static const size_t dims[] = { 1, 10, 100, 3000 };
    static const int levels[] = { 1, 3, 16, 127 };
    size_t i, j;
    int kind;
    for (i = 0; i < sizeof ops / sizeof *ops; i++)
        for (kind = 0; kind < 4; kind++) RUN_TESTp(unbiased, ops[i], kind);
    RUN_TESTp(seen_to_be_biased, "levels:4:nearest", 0);
    RUN_TESTp(seen_to_be_biased, "minmax:2:32:nearest:norm", 1);
    RUN_TESTp(seen_to_be_biased, "natural:nearest", 0);
    RUN_TESTp(seen_to_be_biased, "dither:4:nearest", 1);
    RUN_TESTp(seen_to_be_biased, "terngrad:nearest", 0);
    RUN_TESTp(seen_to_be_biased, "mxfp4", 0);
    RUN_TESTp(seen_to_be_biased, "nf4", 1);
    for (i = 0; i < 2; i++)
        RUN_TESTp(halves_keep_the_mean, i ? "bf16:stochastic" : "f16:stochastic", i ? 7 : 10, i ? -126 : -14,
            i ? 0x1.fep127 : 65504.0);
    for (i = 0; i < 4; i++)
        for (j = 0; j < 4; j++)
            for (kind = 0; kind <= REF_CONSTANT; kind++) RUN_TESTp(qsgd_variance, levels[j], dims[i], kind);
    for (i = 0; i < 4; i++)
        for (kind = 0; kind <= REF_CONSTANT; kind++) {
            RUN_TESTp(dither_variance, 2, dims[i], kind);
            RUN_TESTp(dither_variance, 3, dims[i], kind);
            RUN_TESTp(dither_variance, 4, dims[i], kind);
        }
    for (i = 0; i < 4; i++)
        for (kind = 0; kind <= REF_CONSTANT; kind++) {
            RUN_TESTp(minmax_variance, "minmax:2:3000:norm", 2, dims[i], kind);
            RUN_TESTp(minmax_variance, "minmax:6:3000:norm", 6, dims[i], kind);
            RUN_TESTp(minmax_variance, "minmax:3:3000", 3, dims[i], kind);
        }
    RUN_TESTp(normal_error, "e4m3", 0.998);
    RUN_TESTp(normal_error, "e5m2", 0.99);
    RUN_TESTp(normal_error, "nf4", 0.99);
    RUN_TEST(natural_variance);
    RUN_TEST(terngrad_variance);
}

static void turns(void) {
    static const size_t sizes[] = { 1, 7, 63, 64, 65, 1023, 1024, 1025, 2047, 2049, 5000 };
    size_t i;
    int kind;
    for (i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (kind = 0; kind < REF_KINDS; kind++) {
            RUN_TESTp(rotation_keeps_the_norm, 1, kind, sizes[i]);
            RUN_TESTp(rotation_keeps_the_norm, 2, kind, sizes[i]);
            RUN_TESTp(rotation_keeps_the_norm, 3, kind, sizes[i]);
            RUN_TESTp(dct_is_the_formula, kind, sizes[i]);
        }
    RUN_TEST(dct_of_unit_vectors);
    RUN_TESTp(rotation_keeps_the_norm, 1, REF_LAPLACE, 65537);
    RUN_TESTp(rotation_keeps_the_norm, 2, REF_OUTLIER, 65537);
    RUN_TESTp(rotation_keeps_the_norm, 3, REF_OUTLIER, 65537);
    RUN_TEST1(rotation_of_extremes, "rotate:1");
    RUN_TEST1(rotation_of_extremes, "rotate:2");
    RUN_TEST1(rotation_of_extremes, "rotate:3");
    RUN_TEST1(rotation_of_extremes, "dct");
}

SUITE(transforms) {
    RUN_TEST(rotation_signs_are_shared);
    every_isa(turns);
    RUN_TESTp(rotation_is_signs_and_hadamard, 1, 0);
    RUN_TESTp(rotation_is_signs_and_hadamard, 2, 2);
}

static void rounding(void) {
    static const char *const ops[] = { "rotate:2|lloyd:1", "rotate:2|lloyd:2.25", "drive", "eden:1.5", "eden:2",
        "eden:3", "eden:4" };
    static const size_t sizes[] = { 1, 1000, 1024, 1025, 4096, 5000 };
    size_t i, j;
    int kind;
    for (i = 0; i < sizeof ops / sizeof *ops; i++) {
        for (j = 0; j < sizeof sizes / sizeof *sizes; j++)
            for (kind = 0; kind < REF_KINDS; kind++) RUN_TESTp(eden_rounds_to_centres, ops[i], kind, sizes[j]);
        RUN_TESTp(eden_rounds_to_centres, ops[i], REF_LAPLACE, 65537);
    }
}

SUITE(eden) {
    int kind;
    RUN_TEST(lloyd_constants);
    every_isa(rounding);
    for (kind = 0; kind < 3; kind++) {
        RUN_TESTp(eden_error, "drive", 1, kind);
        RUN_TESTp(eden_error, "eden:1.5", 1.5, kind);
        RUN_TESTp(eden_error, "eden:2", 2, kind);
        RUN_TESTp(eden_error, "eden:2.25", 2.25, kind);
        RUN_TESTp(eden_error, "eden:3", 3, kind);
        RUN_TESTp(eden_error, "eden:4", 4, kind);
        RUN_TESTp(eden_is_unbiased, "eden:1", kind);
        RUN_TESTp(eden_is_unbiased, "eden:2", kind);
    }
    RUN_TESTp(eden_on_spikes, "drive", 0.004);
    RUN_TESTp(eden_on_spikes, "eden:2", 0.002);
    RUN_TESTp(eden_on_spikes, "eden:4", 0.001);
    RUN_TEST(two_rounds_would_be_seen);
}

GREATEST_MAIN_DEFS();

int main(int argc, char **argv) {
    GREATEST_MAIN_BEGIN();
    RUN_SUITE(definitions);
    RUN_SUITE(agreed_scales);
    RUN_SUITE(tables);
    RUN_SUITE(estimates);
    RUN_SUITE(transforms);
    RUN_SUITE(eden);
    GREATEST_MAIN_END();
}
