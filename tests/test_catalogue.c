/* The whole catalogue: one table of every preset with what it declares (is the mean right, how large is the error,
   how many bytes), and some hundred compositions picked at random, through one list of properties. Text and
   operator are the same; a packet fits its bound and touches nothing else; all instructions and addresses give the
   same bits; damage is an error or a finite result; NaN and Inf are refused; nothing comes of nothing; the error
   is what was declared; the mean is right. Then traps and other people's defects, one named test each.

   Errors are judged in doubles. Per draw: |x - D| <= sqrt(declared) + rounding. On average: the mean over fixed
   keys may be above what is declared by SIGMAS of its standard errors. Means are judged through fixed +-1
   projections by the variance that follows from the definition: the sample variance of a value is 0 where it was
   never drawn. */
#define COMPGRAD_IMPLEMENTATION
#include "compgrad.h"
#include "ref.h"
#include "ops.h"
#include "greatest.h"
#include "tier.h"

static const size_t SIZES[] = { 0, 1, 7, 31, 33, 64, 1000, 1025, 2049, 70000 };
enum { SIZE_COUNT = sizeof SIZES / sizeof *SIZES, KEYS = 240, PROJECTIONS = 8, COMPOSITIONS = 600, MAX_ROWS = 128 };
static const double SIGMAS = 4.5; /* 7e-6 a comparison, a few thousand comparisons */
static const cg_tag TAG = { 12, 34, 56, 1 };
static char note[400];
static int quick; /* not CG_TEST=long */

#define SAY(...) (snprintf(note, sizeof note, __VA_ARGS__), note)

/* ---- the table ---- */

/* of a bucket; k: values in the packet */
typedef struct stats {
    const float *x;
    size_t n, k;
    double s, top, lo, hi, one, sum;
} stats;
typedef double law(const cg_op *op, const stats *b);

typedef enum bias { UNBIASED, BIASED } bias;
typedef enum when { PER_DRAW, ON_AVERAGE, PROJECTION /* |x - D|^2 = |x|^2 - |D|^2 */ } when;
enum { SURE = 0, SHARED = 1, PRIVATE = 2, MAYBE = 4 }; /* whose key the packet depends on */
enum { AUX = 1, SUPPORT = 2, MATRIX = 4 };

typedef struct row {
    const char *text;
    cg_op op;
    bias mean;
    when error;
    size_t bucket; /* values that the laws below are about; 0: all */
    /* |x - D|^2: what is declared, and what follows from the definition; NULL: not in closed form */
    law *bound, *exact;
    /* wire: bits of a value times 32, bytes of scales for each bucket; indices are told by the operator */
    unsigned rate, scales;
    int keys, needs;
} row;

static row ROWS[MAX_ROWS];
static int row_count;

static double sq(double v) { return v * v; }
static double at(const stats *b, size_t i) { return (double)b->x[i]; }
static size_t ceil_div(size_t a, size_t b) { return (a + b - 1) / b; }
static double levels_of(const cg_op *op) /* above zero */
{
    if (op->quantize.id == CG_QUANTIZE_FLEX16) return 32767.0;
    return op->quantize.arg == 1 ? 0.5 : (double)((1 << (op->quantize.arg - 1)) - 1);
}

static stats look(const float *x, size_t n, size_t k) {
    stats b = { 0, 0, 0, 0, 0, 0, 0, 0, 0 };
    size_t i;
    b.x = x;
    b.n = n;
    b.k = k;
    for (i = 0; i < n; i++) {
        double v = (double)x[i];
        b.s += v * v;
        b.one += fabs(v);
        b.sum += v;
        if (fabs(v) > b.top) b.top = fabs(v);
        if (!i || v < b.lo) b.lo = v;
        if (!i || v > b.hi) b.hi = v;
    }
    return b;
}

/* Constants times |x|^2, each from its paper or derived beside it. */
static double nothing(const cg_op *op, const stats *b) {
    (void)op;
    (void)b;
    return 0.0;
}
static double all_of_it(const cg_op *op, const stats *b) {
    (void)op;
    return b->s;
}
static double half_error(const cg_op *op, const stats *b) {
    (void)op;
    return b->s * 0x1p-22 + (double)b->n * 0x1p-50;
}
static double brain_error(const cg_op *op, const stats *b) {
    (void)op;
    return b->s * 0x1p-16;
}
static double sign_error(const cg_op *op, const stats *b) {
    double e = 0;
    size_t i;
    (void)op;
    for (i = 0; i < b->n; i++) e += sq(fabs(at(b, i)) - 1.0);
    return e;
}
static double efsign_error(const cg_op *op, const stats *b) {
    (void)op;
    return b->n ? b->s - sq(b->one) / (double)b->n : 0.0;
}
static double onebit_error(const cg_op *op, const stats *b) {
    double sum[2] = { 0, 0 }, count[2] = { 0, 0 };
    size_t i;
    (void)op;
    for (i = 0; i < b->n; i++) {
        int up = b->x[i] >= 0.0f;
        sum[up] += at(b, i);
        count[up]++;
    }
    return b->s - (count[0] > 0 ? sq(sum[0]) / count[0] : 0.0) - (count[1] > 0 ? sq(sum[1]) / count[1] : 0.0);
}
static double terngrad_omega(const cg_op *op, const stats *b) {
    (void)op;
    return b->n ? (sqrt((double)b->n) - 1.0) / 2.0 * b->s : 0.0;
}
static double terngrad_clipped(const cg_op *op, const stats *b) /* what is cut off, and the variance of the rest */
{
    double n = (double)b->n, sigma = sqrt(fmax(b->s / n - sq(b->sum / n), 0.0)), c = fmin(b->top, 2.5 * sigma), e = 0;
    size_t i;
    (void)op;
    for (i = 0; i < b->n; i++) {
        double m = fmin(fabs(at(b, i)), c);
        e += sq(fabs(at(b, i)) - m) + m * (c - m);
    }
    return e;
}
/* others err by less than themselves */
static double largest_is_exact(const cg_op *op, const stats *b) {
    (void)op;
    return b->s - sq(b->top);
}
/* p(1-p) <= 1/4 of step^2, and the largest squared is no more than |x|^2; the same half a step for nearest */
static double absmax_omega(const cg_op *op, const stats *b) { return (double)b->n / (4.0 * sq(levels_of(op))) * b->s; }
static double absmax_nearest(const cg_op *op, const stats *b) {
    double e = (double)b->n * sq(b->top / levels_of(op) / 2.0);
    return op->quantize.arg > 1 ? fmin(e, b->s - sq(b->top)) : e;
}
/* Suresh17 */
static double minmax_omega(const cg_op *op, const stats *b) {
    return (double)b->n / (2.0 * sq((1 << op->quantize.arg) - 1)) * b->s;
}
static double minmax_nearest(const cg_op *op, const stats *b) {
    return (double)b->n * sq((b->hi - b->lo) / ((1 << op->quantize.arg) - 1) / 2.0);
}
/* step < 2 top/L */
static double flexpoint_error(const cg_op *op, const stats *b) {
    return fmin(b->s, (double)b->n * sq(b->top / levels_of(op)));
}
static double qsgd_omega(const cg_op *op, const stats *b) {
    double d = (double)b->n, s = (double)op->quantize.arg;
    return fmin(d / (s * s), sqrt(d) / s) * b->s;
}
static double qsgd_max_omega(const cg_op *op, const stats *b) {
    return (double)b->n / (4.0 * sq((double)op->quantize.arg)) * b->s;
}
static double qsgd_nearest(const cg_op *op, const stats *b) {
    return fmin(b->s, (double)b->n * b->s * sq(0.5 / op->quantize.arg));
}
static double threelc_error(const cg_op *op, const stats *b) {
    return b->s - sq(b->top) * (1.0 - sq((double)op->quantize.value - 1.0));
}
static double strom_error(const cg_op *op, const stats *b) {
    double t = (double)op->quantize.value, e = 0;
    size_t i;
    for (i = 0; i < b->n; i++) {
        double m = fabs(at(b, i));
        e += sq(m > t ? m - t : m);
    }
    return e;
}
static double eighth(const cg_op *op, const stats *b) {
    (void)op;
    return b->s / 8.0;
}
/* at most a third of the value */
static double ninth(const cg_op *op, const stats *b) {
    (void)op;
    return b->s / 9.0;
}
/* 2^(1-s), s = 2^(b-1)-1 levels */
static double dither_least(const cg_op *op) { return ldexp(1.0, 2 - (1 << (op->quantize.arg - 1))); }
static double dither_omega(const cg_op *op, const stats *b) /* Horvath19 */
{
    double u = sqrt((double)b->n) * dither_least(op);
    return (0.125 + fmin(u, u * u)) * b->s;
}
static double dither_nearest(const cg_op *op, const stats *b) {
    double norm2 = op->quantize.flags & CG_FLAG_MAX ? sq(b->top) : b->s;
    return fmin(b->s, b->s / 9.0 + (double)b->n * norm2 * sq(dither_least(op) / 2.0));
}
/* Relative half steps of the mantissa, absolute ones among the denormals; MX also cuts off what is above the
   largest code. */
static double e4m3_error(const cg_op *op, const stats *b) {
    (void)op;
    return b->s * 0x1p-8 + (double)b->n * sq(b->top / 448.0 * 0x1p-10);
}
static double e5m2_error(const cg_op *op, const stats *b) {
    (void)op;
    return b->s * 0x1p-6 + (double)b->n * sq(b->top / 57344.0 * 0x1p-17);
}
static double mxfp4_error(const cg_op *op, const stats *b) {
    (void)op;
    return b->s / 16.0 + (double)b->n * sq(b->top / 4.0 * 0.25);
}
static double mxe4m3_error(const cg_op *op, const stats *b) {
    (void)op;
    return b->s / 64.0 + (double)b->n * sq(b->top / 256.0 * 0x1p-10);
}
static double mxe5m2_error(const cg_op *op, const stats *b) {
    (void)op;
    return b->s / 64.0 + (double)b->n * sq(b->top / 32768.0 * 0x1p-17);
}
static double nf4_error(const cg_op *op, const stats *b) /* half of the widest gap, 1 to 0.6962 */
{
    (void)op;
    return fmin(b->s - sq(b->top), (double)b->n * sq(b->top * (1.0 - 0.69619) / 2.0));
}
/* half of the widest gap: 64 fractions of (0.1, 1) */
static double dynamic8_error(const cg_op *op, const stats *b) {
    (void)op;
    return fmin(b->s - sq(b->top), (double)b->n * sq(b->top * 0.9 / 63.0 / 2.0));
}
static double srq_omega(const cg_op *op, const stats *b) {
    return (2.0 * log(1024.0) + 2.0) / sq((1 << op->quantize.arg) - 1) * b->s;
}
static double eden_omega(const cg_op *op, const stats *b) /* D/(1-D), published constants to 2 % */
{
    static const double D[] = { 1.0, 0.3634, 0.1175, 0.03454, 0.009501 };
    double bits = (double)op->quantize.value, part = bits - floor(bits), d = D[(int)bits];
    double omega;
    if (part > 0) d += part * (D[(int)bits + 1] - d);
    omega = 1.02 * d / (1.0 - d);
    if (op->sample.id)
        omega = (1.0 + omega) * (double)ceil_div(b->n, (size_t)ref_count(op->sample.value, 0, b->n)) - 1.0;
    return omega * b->s;
}
/* A sample without selection: one of each stratum, of which the longest counts. */
static double strata(const cg_op *op, const stats *b) {
    if (!b->n) return 1.0;
    return op->sample.id != CG_SAMPLE_RANDK ? (double)op->sample.size
                                            : (double)ceil_div(b->n, (size_t)ref_count(op->sample.value, 0, b->n));
}
static double sample_omega(const cg_op *op, const stats *b) { return (strata(op, b) - 1.0) * b->s; }
static double sample_unscaled(const cg_op *op, const stats *b) { return (1.0 - 1.0 / strata(op, b)) * b->s; }
static double of_the_largest(const cg_op *op, const stats *b) {
    (void)op;
    return b->n ? (1.0 - (double)b->k / (double)b->n) * b->s : 0.0;
}
static double of_every_chunk(const cg_op *op, const stats *b) /* padding belongs to the last of 64 frequencies */
{
    size_t n = op->transform.id ? 64 : b->n;
    return n ? (1.0 - (double)ref_count(op->select.value, 0, n) / (double)n) * b->s : 0.0;
}
static double threshold_error(const cg_op *op, const stats *b) {
    double e = 0;
    size_t i;
    for (i = 0; i < b->n; i++)
        if (fabsf(b->x[i]) <= op->select.value) e += sq(at(b, i));
    return e;
}
/* |x|_1^2/(rd) <= |x|^2/r */
static double wangni_omega(const cg_op *op, const stats *b) { return b->s / (double)op->select.value; }
static double wangnivar_omega(const cg_op *op, const stats *b) { return (double)op->select.value * b->s; }
static double adacomp_error(const cg_op *op, const stats *b) /* Chen18, if half of x is the latest gradient */
{
    double scale = 0, e = 0;
    size_t bin = op->select.size, bins = b->n ? ceil_div(b->n, bin) : 1, i, j;
    for (i = 0; i < bins; i++)
        scale += look(b->x + i * bin, b->n - i * bin < bin ? b->n - i * bin : bin, 0).top / (double)bins;
    for (i = 0; i < bins; i++) {
        stats part = look(b->x + i * bin, b->n - i * bin < bin ? b->n - i * bin : bin, 0);
        for (j = 0; j < part.n; j++)
            e += sq(fabs(at(&part, j)) - (part.top > 0 && 1.5 * fabs(at(&part, j)) >= part.top ? scale : 0.0));
    }
    return e;
}
static double qsparse_error(const cg_op *op, const stats *b) {
    double k = (double)ref_count(op->select.value, 0, b->n), s = (double)op->quantize.arg;
    return b->n ? (1.0 - k / (double)b->n) * b->s + fmin(k / (s * s), sqrt(k) / s) * b->s : 0.0;
}
/* Optimal probabilities do no worse than equal ones: E|D|^2 <= min(rows, cols)/budget |x|^2. */
static double atomo_omega(const cg_op *op, const stats *b) {
    double m = fmin((double)op->transform.size, (double)op->transform.value);
    return fmax(m / (double)op->transform.arg - 1.0, 0.0) * b->s;
}

/* Variances, coordinate by coordinate. */
/* v is rounded to lo or hi, and the mean is v */
static double between(double v, double lo, double hi) { return (v - lo) * (hi - v); }
static double grid_variance(const cg_op *op, const stats *b) {
    double base = 0, step = b->top, var = 0, norm = sqrt(b->s);
    size_t i;
    switch (op->quantize.id) {
    case CG_QUANTIZE_ABSMAX:
        step /= levels_of(op);
        if (op->quantize.arg == 1) base = -b->top;
        break;
    case CG_QUANTIZE_LEVELS: step = (op->quantize.flags & CG_FLAG_MAX ? b->top : norm) / op->quantize.arg; break;
    case CG_QUANTIZE_MINMAX:
        base = b->lo;
        step = (op->quantize.flags & CG_FLAG_NORM ? sqrt(2.0) * norm : b->hi - b->lo) / ((1 << op->quantize.arg) - 1);
        break;
    default: break;
    }
    for (i = 0; step > 0 && i < b->n; i++) {
        double t = (at(b, i) - base) / step;
        var += between(t, floor(t), floor(t) + 1.0) * step * step;
    }
    return var;
}
static double sample_variance(const cg_op *op, const stats *b) {
    uint64_t k, s, start, len, j;
    double var = 0;
    if (op->sample.id != CG_SAMPLE_RANDK) return ((double)op->sample.size - 1.0) * b->s;
    for (k = ref_count(op->sample.value, 0, b->n), s = 0; s < k; s++)
        for (ref_stratum(b->n, k, s, &start, &len), j = start; j < start + len; j++)
            var += sq(at(b, (size_t)j)) * ((double)len - 1.0);
    return var;
}
/* The error of rounding to the nearest, which is one number, whatever the bound. */
static double grid_nearest(const cg_op *op, const stats *b) {
    double base = 0, step = b->top, top = 1, e = 0; /* levels up to top, either side of base */
    size_t i;
    switch (op->quantize.id) {
    case CG_QUANTIZE_ABSMAX:
        top = levels_of(op);
        step /= top;
        if (op->quantize.arg == 1) {
            base = -b->top;
            top = 1;
        }
        break;
    case CG_QUANTIZE_MINMAX:
        base = b->lo;
        top = (1 << op->quantize.arg) - 1;
        step = (b->hi - b->lo) / top;
        break;
    case CG_QUANTIZE_LEVELS:
        top = op->quantize.arg;
        step = sqrt(b->s) / top;
        break;
    case CG_QUANTIZE_TRITS: step *= (double)op->quantize.value; break;
    case CG_QUANTIZE_FLEXPOINT:
    case CG_QUANTIZE_FLEX16:
        top = levels_of(op);
        if (step > 0) step = exp2(ceil(log2(step / top)));
        break;
    default: break;
    }
    for (i = 0; i < b->n; i++) {
        double t = step > 0 ? (at(b, i) - base) / step : 0.0, r = fmin(fmax(nearbyint(t), -top), top);
        e += step > 0 ? sq((t - r) * step) : sq(at(b, i) - base);
    }
    return e;
}
static double table_nearest(const stats *b, const double *table, size_t count, double scale) {
    double e = 0;
    size_t i, t;
    for (i = 0; i < b->n; i++) {
        double best = HUGE_VAL;
        for (t = 0; t < count; t++) best = fmin(best, fabs(at(b, i) - table[t] * scale));
        e += sq(best);
    }
    return e;
}
static double mxfp4_nearest(const cg_op *op, const stats *b) /* OCP: the scale is 2^(floor(log2 top) - 2) */
{
    static const double E2M1[] = { -6, -4, -3, -2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3, 4, 6 };
    (void)op;
    return b->top > 0 ? table_nearest(b, E2M1, sizeof E2M1 / sizeof *E2M1, exp2(floor(log2(b->top)) - 2.0)) : 0.0;
}
static double nf4_nearest(const cg_op *op, const stats *b) /* QLoRA's table */
{
    static const double NF4[] = { -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453,
        -0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725,
        0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0 };
    (void)op;
    return table_nearest(b, NF4, sizeof NF4 / sizeof *NF4, b->top);
}
static double power_below(double m) {
    int e;
    frexp(m, &e);
    return ldexp(1.0, e - 1);
}
static double natural_nearest(const cg_op *op, const stats *b) {
    double e = 0;
    size_t i;
    (void)op;
    for (i = 0; i < b->n; i++) {
        double m = fabs(at(b, i)), lo = power_below(m);
        if (m > 0) e += sq(fmin(m - lo, 2 * lo - m));
    }
    return e;
}
static double natural_variance(const cg_op *op, const stats *b) {
    double var = 0;
    size_t i;
    (void)op;
    for (i = 0; i < b->n; i++) {
        double m = fabs(at(b, i)), lo = power_below(m);
        if (m > 0) var += between(m, lo, 2 * lo);
    }
    return var;
}
static double dither_variance(const cg_op *op, const stats *b) {
    double norm = op->quantize.flags & CG_FLAG_MAX ? b->top : sqrt(b->s), u = dither_least(op) * norm, var = 0;
    size_t i;
    for (i = 0; i < b->n; i++) {
        double m = fabs(at(b, i)), lo = m < u ? 0.0 : power_below(m / norm) * norm;
        if (m < norm * (1 - 1e-12)) var += between(m, lo, m < u ? u : 2 * lo);
    }
    return var;
}
static double coins(const stats *b, double unit) /* below unit: +-unit with probability |x|/unit */
{
    double var = 0;
    size_t i;
    for (i = 0; i < b->n; i++) {
        double m = fabs(at(b, i));
        if (m < unit) var += m * (unit - m);
    }
    return var;
}
static double wangni_variance(const cg_op *op, const stats *b) {
    double want = (double)op->select.value * (double)b->n, lambda = want / b->one;
    int t;
    size_t i;
    for (t = 0; t < 2; t++) {
        double sum = 0, kappa;
        size_t unsure = 0;
        for (i = 0; i < b->n; i++)
            if (lambda * fabs(at(b, i)) < 1.0) {
                sum += lambda * fabs(at(b, i));
                unsure++;
            }
        kappa = sum > 0 ? (want - (double)(b->n - unsure)) / sum : 0.0;
        if (kappa > 1.0) lambda *= kappa;
    }
    return coins(b, 1.0 / lambda);
}
static int falling(const void *pa, const void *pb) {
    double a = *(const double *)pa, b = *(const double *)pb;
    return a > b ? -1 : a < b;
}
static double wangnivar_variance(const cg_op *op, const stats *b) /* the closed form, by sorting */
{
    double *m = (double *)ref_alloc(b->n * sizeof *m), one = b->one, s = b->s, extra = (double)op->select.value * b->s,
           lambda;
    size_t i;
    for (i = 0; i < b->n; i++) m[i] = fabs(at(b, i));
    qsort(m, b->n, sizeof *m, falling);
    for (i = 0; i < b->n && m[i] * one > extra + s; i++) {
        one -= m[i];
        s -= sq(m[i]);
    }
    lambda = one / (extra + s);
    free(m);
    return coins(b, 1.0 / lambda);
}

/* The values of a small float around m >= 0: so many mantissa bits, the least normal exponent, the largest value. */
static double small_float_variance(double m, int mantissa, int least, double most) {
    int e;
    double unit, lo;
    frexp(m, &e);
    unit = ldexp(1.0, (e - 1 > least ? e - 1 : least) - mantissa);
    lo = floor(m / unit) * unit;
    return m >= most ? sq(m - most) : between(m, lo, lo + unit);
}
/* OCP's formats with the scale that a law below gives them: the largest value of a bucket becomes the format's, or the
   least power of two is taken with which it can be held. */
static double small_variance(const cg_op *op, const stats *b) {
    double scale = 1.0, var = 0, most = 0;
    int mantissa = 0, least = 0;
    size_t i;
    switch (op->quantize.id) {
    case CG_QUANTIZE_F16: mantissa = 10, least = -14, most = 65504.0; break;
    case CG_QUANTIZE_BF16: mantissa = 7, least = -126, most = 0x1.fep127; break;
    case CG_QUANTIZE_E4M3:
    case CG_QUANTIZE_MXE4M3: mantissa = 3, least = -6, most = 448.0; break;
    case CG_QUANTIZE_E5M2:
    case CG_QUANTIZE_MXE5M2: mantissa = 2, least = -14, most = 57344.0; break;
    default: mantissa = 1, least = 0, most = 6.0; break;
    }
    if (op->quantize.id == CG_QUANTIZE_E4M3 || op->quantize.id == CG_QUANTIZE_E5M2) scale = b->top / most;
    else if (op->quantize.id >= CG_QUANTIZE_MXFP4 && b->top > 0)
        for (scale = 0x1p-127; b->top > most * scale;) scale *= 2.0;
    for (i = 0; scale > 0 && i < b->n; i++)
        var += small_float_variance(fabs(at(b, i)) / scale, mantissa, least, most) * sq(scale);
    return var;
}
/* Relative to the value (v - 1)*(1 + unit - v)/v^2 at most; a quarter of a step squared below the normal values. */
static double small_float_bound(const cg_op *op, const stats *b) {
    const int id = op->quantize.id;
    const double unit = id == CG_QUANTIZE_MXFP4 ? 0.5
        : id == CG_QUANTIZE_MXE4M3              ? 0.125
                                                : 0.25,
                 step = id == CG_QUANTIZE_MXFP4 ? 0.5 / 3.0
        : id == CG_QUANTIZE_MXE4M3              ? 0x1p-9 / 224.0
                                                : 0x1p-16 / 28672.0;
    return b->s * unit * unit / (4.0 * (1.0 + unit)) + (double)b->n * sq(b->top * step / 2.0);
}
/* Its scale off by a 16th, or up by an eighth: .0725 |x|^2 for either rounding, and what denormal scales add. */
static double nvfp4_error(const cg_op *op, const stats *b) {
    (void)op;
    return 0.0725 * b->s + (double)b->n * sq(b->top * 6.0 / 64.0 / 2688.0);
}
static double nf4_variance(const cg_op *op, const stats *b) {
    static const double NF4[] = { -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453,
        -0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725,
        0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0 };
    double var = 0;
    size_t i;
    int t;
    (void)op;
    for (i = 0; b->top > 0 && i < b->n; i++) {
        const double v = at(b, i) / b->top;
        for (t = 0; t < 14 && v >= NF4[t + 1]; t++) {}
        var += between(v, NF4[t], NF4[t + 1]) * sq(b->top);
    }
    return var;
}
static double nf4_spread(const cg_op *op, const stats *b) { /* a quarter of the widest gap squared */
    (void)op;
    return (double)b->n * sq(b->top * (1.0 - 0.69619) / 2.0);
}

static void add(const char *text, cg_op op, bias mean, when error, size_t bucket, law *bound, law *exact, unsigned rate,
    unsigned scales, int keys, int needs) {
    row *r = &ROWS[row_count++];
    if (row_count > MAX_ROWS) {
        fprintf(stderr, "MAX_ROWS\n");
        exit(2);
    }
    r->text = text;
    r->op = op;
    r->mean = mean;
    r->error = error;
    r->bucket = bucket;
    r->bound = bound;
    r->exact = exact;
    r->rate = rate;
    r->scales = scales;
    r->keys = keys;
    r->needs = needs;
}

static cg_op parsed(const char *text) {
    cg_op op;
    if (cg_op_parse(&op, text) != CG_OK) {
        fprintf(stderr, "%s does not parse\n", text);
        exit(2);
    }
    return op;
}

#define U UNBIASED
#define B BIASED
#define MEAN ON_AVERAGE
#define DRAW PER_DRAW
#define BITS(b) ((b)*32)
static void fill_table(void) {
    row_count = 0;
    /* text                 operator                         mean error bucket bound            exact          rate
       scales keys */
    add("dense", cg_dense(), U, DRAW, 0, nothing, NULL, BITS(32), 0, SURE, 0);
    add("f16", cg_f16(), B, DRAW, 0, half_error, NULL, BITS(16), 0, SURE, 0);
    add("bf16", cg_bf16(), B, DRAW, 0, brain_error, NULL, BITS(16), 0, SURE, 0);
    add("sign", cg_sign(), B, DRAW, 0, sign_error, sign_error, BITS(1), 0, SURE, 0);
    add("efsign", cg_efsign(), B, DRAW, 0, efsign_error, efsign_error, BITS(1), 4, SURE, 0);
    add("onebit", cg_onebit(0), B, DRAW, 0, onebit_error, onebit_error, BITS(1), 8, SURE, 0);
    add("onebit:100", cg_onebit(100), B, DRAW, 100, onebit_error, onebit_error, BITS(1), 8, SURE, 0);
    add("terngrad", cg_terngrad(), U, MEAN, 0, terngrad_omega, grid_variance, BITS(2), 4, PRIVATE, 0);
    add("terngrad:nearest", cg_nearest(cg_terngrad()), B, DRAW, 0, largest_is_exact, grid_nearest, BITS(2), 4, SURE, 0);
    add("terngrad:clip", cg_clipped(cg_terngrad()), B, MEAN, 0, terngrad_clipped, NULL, BITS(2), 4, PRIVATE, 0);
    add("absmax:1:64", cg_absmax(1, 64), U, MEAN, 64, absmax_omega, grid_variance, BITS(1), 4, PRIVATE, 0);
    add("absmax:2:512", cg_absmax(2, 512), U, MEAN, 512, absmax_omega, grid_variance, BITS(2), 4, PRIVATE, 0);
    add("absmax:4:100", cg_absmax(4, 100), U, MEAN, 100, absmax_omega, grid_variance, BITS(4), 4, PRIVATE, 0);
    add("absmax:8:70001", cg_absmax(8, 70001), U, MEAN, 70001, absmax_omega, grid_variance, BITS(8), 4, PRIVATE, 0);
    add("absmax:1:64:nearest", cg_nearest(cg_absmax(1, 64)), B, DRAW, 64, absmax_nearest, grid_nearest, BITS(1), 4,
        SURE, 0);
    add("absmax:4:512:nearest", cg_nearest(cg_absmax(4, 512)), B, DRAW, 512, absmax_nearest, grid_nearest, BITS(4), 4,
        SURE, 0);
    add("minmax:1:64", cg_minmax(1, 64), U, MEAN, 64, minmax_omega, grid_variance, BITS(1), 8, PRIVATE, 0);
    add("minmax:3:512", cg_minmax(3, 512), U, MEAN, 512, minmax_omega, grid_variance, BITS(3), 8, PRIVATE, 0);
    add("minmax:8:100", cg_minmax(8, 100), U, MEAN, 100, minmax_omega, grid_variance, BITS(8), 8, PRIVATE, 0);
    add("minmax:4:512:nearest", cg_nearest(cg_minmax(4, 512)), B, DRAW, 512, minmax_nearest, grid_nearest, BITS(4), 8,
        SURE, 0);
    add("klevel:5:512", cg_klevel(5, 512), U, MEAN, 512, minmax_omega, grid_variance, BITS(5), 8, PRIVATE, 0);
    add("flexpoint:8:100", cg_flexpoint(8, 100), B, DRAW, 100, flexpoint_error, grid_nearest, BITS(8), 4, SURE, 0);
    add("flex16:100", cg_flexpoint(16, 100), B, DRAW, 100, flexpoint_error, grid_nearest, BITS(16), 4, SURE, 0);
    add("flexpoint:2:64", cg_flexpoint(2, 64), B, DRAW, 64, flexpoint_error, grid_nearest, BITS(2), 4, SURE, 0);
    add("qsgd:4", cg_qsgd(4), U, MEAN, 0, qsgd_omega, grid_variance, BITS(4), 4, PRIVATE, 0);
    add("qsgd:127", cg_qsgd(127), U, MEAN, 0, qsgd_omega, grid_variance, BITS(8), 4, PRIVATE, 0);
    add("levels:1", cg_coded(cg_qsgd(1), CG_CODE_PACKED), U, MEAN, 0, qsgd_omega, grid_variance, BITS(2), 4, PRIVATE,
        0);
    add("levels:7:512:max|omega", cg_maxnorm(cg_qsgd(7), 512), U, MEAN, 512, qsgd_max_omega, grid_variance, BITS(4), 4,
        PRIVATE, 0);
    add("levels:4:nearest|omega", cg_nearest(cg_qsgd(4)), B, DRAW, 0, qsgd_nearest, grid_nearest, BITS(4), 4, SURE, 0);
    add("threelc:1", cg_threelc(1.0f), B, DRAW, 0, threelc_error, grid_nearest, BITS(2), 4, SURE, 0);
    add("threelc:1.75", cg_threelc(1.75f), B, DRAW, 0, threelc_error, grid_nearest, BITS(2), 4, SURE, 0);
    add("strom:0.05", cg_strom(0.05f), B, DRAW, 0, strom_error, strom_error, BITS(2), 0, SURE, 0);
    add("natural", cg_natural(), U, MEAN, 0, eighth, natural_variance, BITS(9), 0, PRIVATE, 0);
    add("natural:nearest", cg_nearest(cg_natural()), B, DRAW, 0, ninth, natural_nearest, BITS(9), 0, SURE, 0);
    add("dither:3", cg_dither(3, 0), U, MEAN, 0, dither_omega, dither_variance, BITS(3), 4, PRIVATE, 0);
    add("dither:4:512", cg_dither(4, 512), U, MEAN, 512, dither_omega, dither_variance, BITS(4), 4, PRIVATE, 0);
    add("dither:3:100:max", cg_maxnorm(cg_dither(3, 0), 100), U, MEAN, 100, dither_omega, dither_variance, BITS(3), 4,
        PRIVATE, 0);
    add("dither:4:64:nearest", cg_nearest(cg_dither(4, 64)), B, DRAW, 64, dither_nearest, NULL, BITS(4), 4, SURE, 0);
    add("dynamic8", cg_dynamic8(), B, DRAW, 0, dynamic8_error, NULL, BITS(8), 4, SURE, 0);
    add("e4m3", cg_fp8(), B, DRAW, 512, e4m3_error, NULL, BITS(8), 4, SURE, 0);
    add("e5m2", cg_fp8_e5m2(), B, DRAW, 512, e5m2_error, NULL, BITS(8), 4, SURE, 0);
    add("mxfp4", cg_mxfp4(), B, DRAW, 32, mxfp4_error, mxfp4_nearest, BITS(4), 1, SURE, 0);
    add("mxe4m3", cg_mxe4m3(), B, DRAW, 32, mxe4m3_error, NULL, BITS(8), 1, SURE, 0);
    add("mxe5m2", cg_mxe5m2(), B, DRAW, 32, mxe5m2_error, NULL, BITS(8), 1, SURE, 0);
    add("nf4", cg_nf4(), B, DRAW, 64, nf4_error, nf4_nearest, BITS(4), 4, SURE, 0);
    add("f16:stochastic", cg_stochastic(cg_f16()), U, MEAN, 0, half_error, small_variance, BITS(16), 0, PRIVATE, 0);
    add("bf16:stochastic", cg_stochastic(cg_bf16()), U, MEAN, 0, brain_error, small_variance, BITS(16), 0, PRIVATE, 0);
    add("e4m3:64:stochastic", cg_stochastic(cg_e4m3(64)), U, MEAN, 64, e4m3_error, small_variance, BITS(8), 4, PRIVATE,
        0);
    add("e5m2:stochastic", cg_stochastic(cg_e5m2(512)), U, MEAN, 512, e5m2_error, small_variance, BITS(8), 4, PRIVATE,
        0);
    add("mxfp4:stochastic", cg_stochastic(cg_mxfp4()), U, MEAN, 32, small_float_bound, small_variance, BITS(4), 1,
        PRIVATE, 0);
    add("mxe4m3:stochastic", cg_stochastic(cg_mxe4m3()), U, MEAN, 32, small_float_bound, small_variance, BITS(8), 1,
        PRIVATE, 0);
    add("mxe5m2:stochastic", cg_stochastic(cg_mxe5m2()), U, MEAN, 32, small_float_bound, small_variance, BITS(8), 1,
        PRIVATE, 0);
    add("nf4:stochastic", cg_stochastic(cg_nf4()), U, MEAN, 64, nf4_spread, nf4_variance, BITS(4), 4, PRIVATE, 0);
    add("nvfp4", cg_nvfp4(), B, DRAW, 0, nvfp4_error, NULL, BITS(4), 1, SURE, 0);
    add("nvfp4:stochastic", cg_stochastic(cg_nvfp4()), U, MEAN, 0, nvfp4_error, NULL, BITS(4), 1, PRIVATE, 0);
    add("geometric:1", cg_geometric(1, 0), B, DRAW, 0, efsign_error, efsign_error, BITS(1), 8, SURE, 0);
    add("geometric:3:100", cg_geometric(3, 100), B, DRAW, 100, all_of_it, NULL, BITS(3), 8, SURE, 0);
    add("topk:0.1", cg_topk(0.1f), B, DRAW, 0, of_the_largest, NULL, BITS(32), 0, SURE, 0);
    add("threshold:0.05", cg_threshold(0.05f), B, DRAW, 0, threshold_error, threshold_error, BITS(32), 0, SURE, 0);
    add("dgc:0.05", cg_dgc(0.05f), B, DRAW, 0, of_the_largest, NULL, BITS(32), 0, MAYBE, 0);
    add("mstopk:0.05", cg_mstopk(0.05f), B, PROJECTION, 0, all_of_it, NULL, BITS(32), 0, MAYBE, 0);
    add("sidco:0.05", cg_sidco(0.05f), B, DRAW, 0, of_the_largest, NULL, BITS(32), 0, MAYBE, 0);
    add("wangni:0.1", cg_wangni(0.1f), U, MEAN, 0, wangni_omega, wangni_variance, BITS(32), 0, PRIVATE, 0);
    add("wangnivar:0.5", cg_wangnivar(0.5f), U, MEAN, 0, wangnivar_omega, wangnivar_variance, BITS(32), 0, PRIVATE, 0);
    add("chunked:100:0.07", cg_chunked(0.07f, 100), B, DRAW, 100, of_every_chunk, NULL, BITS(32), 0, SURE, 0);
    add("blocks:32", cg_blocks(32), U, DRAW, 0, nothing, NULL, BITS(32), 0, SURE, 0);
    add("given", cg_given(), B, PROJECTION, 0, all_of_it, NULL, BITS(32), 0, SURE, SUPPORT);
    add("variance:0.5", cg_variance(0.5f), B, PROJECTION, 0, all_of_it, NULL, BITS(32), 0, SURE, AUX);
    add("randk:0.125", cg_randk(0.125f), U, MEAN, 0, sample_omega, sample_variance, BITS(32), 0, SHARED, 0);
    add("randk:0.3", cg_randk(0.3f), U, MEAN, 0, sample_omega, sample_variance, BITS(32), 0, SHARED, 0);
    add("randk:0.125:unscaled", cg_unscaled(cg_randk(0.125f)), B, MEAN, 0, sample_unscaled, NULL, BITS(32), 0, SHARED,
        0);
    add("randk:0.3:private", cg_private(cg_randk(0.3f)), U, MEAN, 0, sample_omega, sample_variance, BITS(32), 0,
        PRIVATE, 0);
    add("permk:4", cg_permk(4), U, MEAN, 0, sample_omega, sample_variance, BITS(32), 0, SHARED | PRIVATE, 0);
    add("permk:3:unscaled", cg_unscaled(cg_permk(3)), B, MEAN, 0, sample_unscaled, NULL, BITS(32), 0, SHARED | PRIVATE,
        0);
    add("cyclic:4", cg_cyclic(4), U, MEAN, 0, sample_omega, NULL, BITS(32), 0, MAYBE, 0);
    add("cyclic:5:unscaled", cg_unscaled(cg_cyclic(5)), B, MEAN, 0, sample_unscaled, NULL, BITS(32), 0, MAYBE, 0);
    add("rotate:1", cg_rotate(1), B, DRAW, 0, nothing, NULL, BITS(32), 0, SHARED, 0);
    add("rotate:2", cg_rotate(2), B, DRAW, 0, nothing, NULL, BITS(32), 0, SHARED, 0);
    add("rotate:3", cg_rotate(3), B, DRAW, 0, nothing, NULL, BITS(32), 0, SHARED, 0);
    add("rotate:3:private", cg_private(cg_rotate(3)), B, DRAW, 0, nothing, NULL, BITS(32), 0, PRIVATE, 0);
    add("dct", cg_dct(), B, DRAW, 0, nothing, NULL, BITS(32), 0, SURE, 0);
    add("srq:4", cg_srq(4), U, MEAN, 1024, srq_omega, NULL, BITS(4), 8, SHARED | PRIVATE, 0);
    add("drive", cg_drive(), U, MEAN, 1024, eden_omega, NULL, BITS(1), 4, SHARED, 0);
    add("eden:2", cg_eden(2.0f), U, MEAN, 1024, eden_omega, NULL, BITS(2), 4, SHARED, 0);
    add("eden:3.5", cg_eden(3.5f), U, MEAN, 1024, eden_omega, NULL, 7 * 16, 4, SHARED, 0);
    add("eden:4", cg_eden(4.0f), U, MEAN, 1024, eden_omega, NULL, BITS(4), 4, SHARED, 0);
    add("eden:0.5", cg_eden(0.5f), U, MEAN, 0, eden_omega, NULL, BITS(1), 4, SHARED, 0);
    add("demo:0.25", cg_demo_dct(0.25f), B, DRAW, 64, of_every_chunk, NULL, BITS(32), 0, SURE, 0);
    add("stc:0.05", cg_stc(0.05f), B, PROJECTION, 0, all_of_it, NULL, BITS(1), 4, SURE, 0);
    add("sbc:0.05", cg_sbc(0.05f), B, PROJECTION, 0, all_of_it, NULL, 0, 4, SURE, 0);
    add("adaq:0.05", cg_adaq(0.05f), B, PROJECTION, 0, all_of_it, NULL, BITS(1), 8, SURE, 0);
    add("adacomp:50", cg_adacomp(50), B, DRAW, 0, adacomp_error, adacomp_error, BITS(1), 4, SURE, AUX);
    add("qsparse:0.1:15", cg_qsparse(0.1f, 15), B, MEAN, 0, qsparse_error, NULL, BITS(5), 4, PRIVATE, 0);
    add("cocktail:0.5:0.1:4", cg_cocktail(0.5f, 0.1f, 4), B, DRAW, 0, all_of_it, NULL, BITS(4), 4, SHARED, 0);
    add("lowrank:3", cg_dense(), B, PROJECTION, 0, all_of_it, NULL, BITS(32), 0, SHARED, MATRIX);
    add("atomo:4", cg_dense(), U, MEAN, 0, atomo_omega, NULL, BITS(32), 0, PRIVATE, MATRIX);
}
#undef U
#undef B
#undef MEAN
#undef DRAW

/* A matrix has to have n values: as square as n allows. */
static cg_op op_for(const row *r, size_t n) {
    size_t rows = 1, d;
    if (!(r->needs & MATRIX)) return r->op;
    for (d = 1; d * d <= n; d++)
        if (n % d == 0) rows = d;
    if (!strncmp(r->text, "lowrank", 7)) return cg_lowrank((uint32_t)rows, (uint32_t)(n / rows ? n / rows : 1), 3);
    return cg_atomo((uint32_t)rows, (uint32_t)(n / rows ? n / rows : 1), 4);
}

/* Wire: what a packet of n values may take, by the figures of the table and the formulas of the header. */
static size_t wire(const row *r, const cg_op *op, size_t n) {
    size_t drawn = n, turned, k, bucket, bytes, index = 0;
    double u, c;
    if (op->sample.id == CG_SAMPLE_RANDK) drawn = (size_t)ref_count(op->sample.value, 0, n);
    if (op->sample.id == CG_SAMPLE_PERMK || op->sample.id == CG_SAMPLE_CYCLIC) drawn = ceil_div(n, op->sample.size);
    turned = op->transform.id == CG_TRANSFORM_ROTATE ? ceil_div(drawn, 1024) * 1024
        : op->transform.id == CG_TRANSFORM_DCT       ? ceil_div(drawn, 64) * 64
                                                     : drawn;
    if (r->needs & MATRIX) {
        size_t rows = op->transform.size, cols = (size_t)op->transform.value, rank = op->transform.arg,
               least = rows < cols ? rows : cols;
        turned = (rows + cols) * (rank < least ? rank : least);
    }
    switch (op->select.id) {
    case CG_SELECT_TOPK:
    case CG_SELECT_MSTOPK:
    case CG_SELECT_SIDE: k = (size_t)ref_count(op->select.value, 0, turned); break;
    case CG_SELECT_DGC:
    case CG_SELECT_SIDCO:
        k = (size_t)ref_count(op->select.value, 0, turned);
        k = k * 13 / 10 < turned ? k * 13 / 10 : turned;
        break;
    case CG_SELECT_CHUNKED:
        k = turned / op->select.size * (size_t)ref_count(op->select.value, 0, op->select.size) +
            (size_t)ref_count(op->select.value, 0, turned % op->select.size);
        break;
    default: k = turned; break;
    }
    bucket = op->quantize.id == CG_QUANTIZE_NVFP4                                       ? 16
        : op->quantize.id >= CG_QUANTIZE_MXFP4 && op->quantize.id <= CG_QUANTIZE_MXE5M2 ? 32
        : op->quantize.id == CG_QUANTIZE_LLOYD                                          ? 1024
                                                                                        : op->quantize.size;
    bytes = k && r->scales ? (size_t)ref_pad4(8 * r->scales * ceil_div(k, bucket ? bucket : k)) : 0;
    if (k && op->quantize.id == CG_QUANTIZE_NVFP4) bytes += 4;
    bytes += (size_t)ref_pad4(k / 32 * r->rate + k % 32 * r->rate / 32) + CG_HEADER_BYTES;
    /* a word for each piece, which is never longer than packed */
    if (op->code.arg) bytes += 4 * ceil_div(k, 8192);
    if (!op->select.id || op->select.id == CG_SELECT_GIVEN) return bytes;
    if (!k) return bytes + 8;
    u = (double)(op->select.id == CG_SELECT_BLOCKS ? ceil_div(turned, op->select.size) : turned);
    c = (double)(op->select.id == CG_SELECT_BLOCKS ? ceil_div(k, op->select.size) : k);
    if (op->code.id == CG_CODE_GOLOMB) {
        double p = c / u, q = p < 1 ? 1.0 + floor(log2(log((sqrt(5.0) - 1.0) / 2.0) / log(1.0 - p))) : 0.0,
               b = fmax(q, 0.0);
        index = op->select.id == CG_SELECT_TOPK ? (size_t)((c * (1.0 + b) + (u - c) / exp2(b)) / 8.0) + 8
                                                : (size_t)(1.125 * u / 8.0) + 12;
    } else {
        /* header: 2 + log2 1/r bits */
        size_t map = (size_t)ref_pad4((uint64_t)u), few = (size_t)((c * (2.0 + log2(u / c)) + 1.0) / 8.0) + 8;
        index = map < few + 8 ? map : few + 8;
    }
    return bytes + index;
}

/* ---- one operator, one vector, and what they need beside ---- */

typedef struct job {
    const cg_op *op;
    cg_tag tag;
    cg_extra side;
    int sided;
    size_t n;
    float *x, *aux;
    unsigned char *support;
} job;

/* exact: sanitizers watch its ends */
static float *floats(size_t n) {
    float *p = (float *)malloc(n ? 4 * n : 1);
    if (!p) exit(2);
    return p;
}
static int needs_aux(const cg_op *op) { return op->select.id == CG_SELECT_BINS || op->select.id == CG_SELECT_VARIANCE; }

static job job_open(const cg_op *op, int kind, size_t n, uint64_t seed) {
    cg_extra none = CG_ZERO;
    job j;
    size_t i;
    j.op = op;
    j.tag = TAG;
    j.side = none;
    j.sided = 0;
    j.n = n;
    j.x = floats(n);
    j.aux = NULL;
    j.support = NULL;
    ref_fill((ref_kind)kind, seed, j.x, n);
    if (needs_aux(op)) { /* a part of x; a variance near x^2, finite too */
        j.aux = floats(n);
        for (i = 0; i < n; i++) {
            double u = ref_uniform(&seed) * 2.0, v = (double)j.x[i];
            j.aux[i] = op->select.id == CG_SELECT_BINS ? (float)(v * (u - 1.0)) : (float)fmin(v * v * u * 2.0, 1e38);
        }
        j.side.aux = j.aux;
        j.sided = 1;
    }
    if (op->select.id == CG_SELECT_GIVEN) {
        cg_op top = cg_topk(0.3f);
        float *other = floats(n);
        ops_packet pk;
        ref_fill(REF_LAPLACE, seed + 5, other, n);
        pk = ops_pack(&top, &j.tag, other, n);
        free(other);
        if (pk.status != CG_OK) exit(2);
        j.support = pk.p;
        j.side.support = pk.p;
        j.side.support_len = pk.len;
        j.sided = 1;
    }
    return j;
}

static void job_close(job *j) {
    free(j->x);
    free(j->aux);
    free(j->support);
}

/* Compresses x (any address) with a scratch that is dirty and `less` bytes short of enough, into cap bytes and a
   canary. */
static ops_packet pack(const job *j, const float *x, size_t cap, size_t less, int dirt) {
    ops_packet r;
    size_t need = cg_scratch(j->op, j->n) - less, i;
    unsigned char *scratch = (unsigned char *)malloc(need + OPS_CANARY);
    if (!scratch) exit(2);
    memset(scratch, dirt, need + OPS_CANARY);
    r.cap = cap;
    r.p = (unsigned char *)ref_alloc(cap + OPS_CANARY);
    memset(r.p, 0xA5, cap + OPS_CANARY);
    r.len = 12345;
    r.status = j->sided
        ? cg_compress_with(j->op, &j->tag, &j->side, x, j->n, r.p, cap, &r.len, need ? scratch : NULL, need)
        : cg_compress(j->op, &j->tag, x, j->n, r.p, cap, &r.len, need ? scratch : NULL, need);
    for (i = cap, r.touched = 0; i < cap + OPS_CANARY; i++) r.touched |= r.p[i] != 0xA5;
    for (i = need; i < need + OPS_CANARY; i++) r.touched |= scratch[i] != dirt;
    free(scratch);
    return r;
}

static ops_packet pack_plain(const job *j) { return pack(j, j->x, cg_bound(j->op, j->n), 0, 0x5A); }

static cg_status unpack(const job *j, const unsigned char *p, size_t len, float *y) {
    return j->support ? cg_decode(&j->side, p, len, 1.0f, 0.0f, y, j->n) : cg_decompress(p, len, y, j->n);
}

static cg_status unpack_add(const job *j, const unsigned char *p, size_t len, float weight, float *y) {
    return j->support ? cg_decode(&j->side, p, len, weight, 1.0f, y, j->n) : cg_decompress_add(p, len, weight, y, j->n);
}

/* ---- properties 1 to 4, 7 and 8 ---- */

/* without padding: 6 * 12 + 16 */
static int same_op(const cg_op *a, const cg_op *b) { return memcmp(a, b, sizeof *a) == 0; }

TEST prints(const cg_op *op) {
    char text[128], more[128];
    cg_op back;
    size_t len;
    ASSERT_ENUM_EQ(CG_OK, cg_op_print(op, text, sizeof text), ops_status);
    ASSERT_ENUM_EQm(text, CG_OK, cg_op_parse(&back, text), ops_status);
    ASSERTm(text, same_op(op, &back));
    len = strlen(text);
    ASSERT_ENUM_EQm(text, CG_OK, cg_op_print(op, more, len + 1), ops_status);
    ASSERT_STR_EQ(text, more);
    ASSERT_ENUM_EQm(text, CG_E_CAPACITY, cg_op_print(op, more, len), ops_status);
    PASS();
}

/* Exact capacities suffice, less does not, nothing beside is touched; what scratch held before and x's address do
   not matter. */
TEST fits(const job *j, const ops_packet *pk) {
    const char *name = ops_text(j->op);
    size_t bound = cg_bound(j->op, j->n);
    unsigned char *odd = (unsigned char *)ref_alloc(4 * j->n + 1);
    ops_packet other;
    ASSERT_ENUM_EQm(name, CG_OK, pk->status, ops_status);
    ASSERT_FALSEm(name, pk->touched);
    ASSERTm(SAY("%s, n %u: %u bytes of %u", name, (unsigned)j->n, (unsigned)pk->len, (unsigned)bound),
        pk->len <= bound && pk->len % 4 == 0 && pk->len >= CG_HEADER_BYTES);
    memcpy(odd + 1, j->x, 4 * j->n);
    other = pack(j, (const float *)(const void *)(odd + 1), bound, 0, 0x00);
    ASSERT_ENUM_EQm(name, CG_OK, other.status, ops_status);
    ASSERT_EQm(name, pk->len, other.len);
    ASSERT_MEM_EQm(name, pk->p, other.p, pk->len);
    free(other.p);
    free(odd);
    other = pack(j, j->x, pk->len - 1, 0, 0xFF);
    ASSERT_ENUM_EQm(name, CG_E_CAPACITY, other.status, ops_status);
    ASSERTm(name, other.len == 0 && !other.touched);
    free(other.p);
    if (cg_scratch(j->op, j->n)) {
        other = pack(j, j->x, bound, 1, 0xFF);
        ASSERT_ENUM_EQm(name, CG_E_CAPACITY, other.status, ops_status);
        ASSERTm(name, other.len == 0 && !other.touched);
        free(other.p);
    }
    PASS();
}

/* Where a packet has values, by the header alone; 0: ref.h cannot tell. */
static int places(const unsigned char *p, unsigned char *has) {
    ref_packet r = ref_open(p);
    uint64_t *index, i, size;
    int matrix = p[20] == CG_TRANSFORM_LOWRANK || p[20] == CG_TRANSFORM_ATOMO;
    if (r.sampled > CG_SAMPLE_RANDK || r.ix == CG_CODE_GOLOMB || r.selected == CG_SELECT_BLOCKS ||
        r.selected == CG_SELECT_GIVEN)
        return 0;
    memset(has, 0, (size_t)r.n);
    /* behind a transform every value drawn depends on every one sent */
    if (p[20]) {
        if (!r.sampled || matrix) memset(has, 1, (size_t)r.n);
        else
            for (i = 0; i < r.drawn; i++) has[ref_draw(ref_draws(&r.tag, p[9] & 2), r.n, r.drawn, i, &size)] = 1;
        return 1;
    }
    index = (uint64_t *)ref_alloc((size_t)r.k * 8);
    if (!ref_get_indices(&r, index)) {
        free(index);
        return 0;
    }
    for (i = 0; i < r.k; i++)
        has[r.sampled ? ref_draw(ref_draws(&r.tag, p[9] & 2), r.n, r.drawn, index[i], &size) : index[i]] = 1;
    free(index);
    return 1;
}

TEST inspects(const job *j, const ops_packet *pk) {
    const char *name = ops_text(j->op);
    cg_info info, head;
    ASSERT_ENUM_EQm(name, CG_OK, cg_inspect(pk->p, pk->len, &info), ops_status);
    ASSERT_ENUM_EQm(name, CG_OK, cg_inspect(pk->p, CG_HEADER_BYTES, &head), ops_status);
    ASSERTm(name, head.packet_bytes == pk->len && info.packet_bytes == pk->len);
    ASSERTm(name, info.value_bytes + info.index_bytes + CG_HEADER_BYTES == pk->len);
    ASSERTm(name, info.n == j->n && info.drawn <= info.n && (j->op->sample.id || info.drawn == info.n));
    ASSERTm(name,
        info.tag.seed == j->tag.seed && info.tag.step == j->tag.step && info.tag.tensor == j->tag.tensor &&
            info.tag.rank == j->tag.rank);
    ASSERTm(name, (info.index_code != 0) == (j->op->select.id && j->op->select.id != CG_SELECT_GIVEN));
    if (j->op->code.id && info.k) ASSERT_EQm(name, j->op->code.id, info.index_code);
    if (!j->op->select.id && !j->op->transform.id) ASSERTm(name, info.k == info.drawn);
    info.op.select.size = j->op->select.size; /* `given` says there whose indices it has */
    if (j->op->k) {                           /* a count that n or the ratio give as well is not told apart */
        int counted = j->op->select.id == CG_SELECT_TOPK || j->op->select.id == CG_SELECT_MSTOPK;
        ref_packet r = ref_open(pk->p);
        ASSERTm(name, counted ? r.k <= j->op->k : r.drawn == (j->op->k < j->n ? j->op->k : j->n));
        ASSERTm(name, !info.op.k || info.op.k == (counted ? r.k : r.drawn));
        info.op.k = j->op->k;
    }
    ASSERTm(name, same_op(j->op, &info.op));
    PASS();
}

TEST clears(const job *j, const ops_packet *pk, const float *d) {
    const char *name = ops_text(j->op);
    float *y = floats(j->n);
    unsigned char *has = (unsigned char *)ref_alloc(j->n);
    size_t i, zeros = 0;
    int known;
    for (i = 0; i < j->n; i++) y[i] = 1.0f + (float)(i % 17);
    if (j->support) {
        ASSERT_ENUM_EQm(name, CG_E_UNSUPPORTED, cg_clear(pk->p, pk->len, y, j->n), ops_status);
        free(y);
        free(has);
        PASS();
    }
    known = places(pk->p, has);
    ASSERT_ENUM_EQm(name, CG_OK, cg_clear(pk->p, pk->len, y, j->n), ops_status);
    for (i = 0; i < j->n; i++) {
        int cleared = ref_bits(y[i]) == 0;
        zeros += (size_t)cleared;
        ASSERTm(
            SAY("%s: value %u was changed, not cleared", name, (unsigned)i), cleared || y[i] == 1.0f + (float)(i % 17));
        ASSERTm(SAY("%s: value %u is %g and was not cleared", name, (unsigned)i, (double)d[i]),
            cleared || ref_bits(d[i]) == 0);
        if (known)
            ASSERTm(SAY("%s: value %u cleared: %d, has: %d", name, (unsigned)i, cleared, has[i]), cleared == has[i]);
    }
    {
        ref_packet r = ref_open(pk->p);
        uint64_t many = j->op->transform.id ? r.drawn : r.k;
        ASSERTm(SAY("%s: %u cleared of %u", name, (unsigned)zeros, (unsigned)many), zeros == many);
    }
    free(y);
    free(has);
    PASS();
}

/* Finite, the same on every instruction set and at every address, added as it should be, nothing beyond the end. */
TEST decodes(const job *j, const ops_packet *pk) {
    const char *name = ops_text(j->op);
    const float weight = -0.37f;
    float *d = floats(j->n), *y = floats(j->n);
    unsigned char *odd = (unsigned char *)ref_alloc(4 * j->n + 1 + OPS_CANARY);
    uint64_t state = 3;
    ops_packet other;
    size_t i;
    for (i = 0; i < j->n; i++) d[i] = ref_float(0x7fc00000u); /* y is not read */
    ASSERT_ENUM_EQm(name, CG_OK, unpack(j, pk->p, pk->len, d), ops_status);
    for (i = 0; i < j->n; i++) ASSERTm(SAY("%s: value %u is not finite", name, (unsigned)i), ref_finite(d[i]));

    memset(odd, 0xA5, 4 * j->n + 1 + OPS_CANARY);
    ASSERT_ENUM_EQm(name, CG_OK, unpack(j, pk->p, pk->len, (float *)(void *)(odd + 1)), ops_status);
    ASSERT_MEM_EQm(name, d, odd + 1, 4 * j->n);
    for (i = 0; i < OPS_CANARY; i++)
        ASSERT_EQm(SAY("%s: wrote beyond the end of y", name), 0xA5, odd[4 * j->n + 1 + i]);
    ASSERT_EQm(name, 0xA5, odd[0]);

    ASSERT_ENUM_EQ(CG_OK, cg_isa_force(CG_ISA_SCALAR), ops_status);
    other = pack(j, j->x, cg_bound(j->op, j->n), 0, 0xC3);
    ASSERT_ENUM_EQm(name, CG_OK, unpack(j, pk->p, pk->len, y), ops_status);
    ASSERT_ENUM_EQ(CG_OK, cg_isa_force(CG_ISA_AUTO), ops_status);
    ASSERT_ENUM_EQm(name, CG_OK, other.status, ops_status);
    ASSERTm(SAY("%s, n %u: plain C makes another packet", name, (unsigned)j->n),
        other.len == pk->len && !memcmp(other.p, pk->p, pk->len));
    ASSERTm(SAY("%s, n %u: plain C decodes other floats", name, (unsigned)j->n), !memcmp(d, y, 4 * j->n));
    free(other.p);

    for (i = 0; i < j->n; i++) y[i] = 1.0f + (float)ref_uniform(&state);
    memcpy(odd + 1, y, 4 * j->n);
    ASSERT_ENUM_EQm(name, CG_OK, unpack_add(j, pk->p, pk->len, weight, y), ops_status);
    for (i = 0; i < j->n; i++) {
        float was;
        memcpy(&was, odd + 1 + 4 * i, 4);
        was = ref_add(was, ref_mul(weight, d[i]));
        ASSERTm(SAY("%s, n %u: value %u added is %.9g, should be %.9g", name, (unsigned)j->n, (unsigned)i, (double)y[i],
                    (double)was),
            ref_bits(was) == ref_bits(y[i]));
    }
    CHECK_CALL(inspects(j, pk));
    CHECK_CALL(clears(j, pk, d));
    free(d);
    free(y);
    free(odd);
    PASS();
}

/* A damaged packet: an error that leaves y alone, or a finite result. */
TEST harmless(const job *j, const unsigned char *p, size_t len, cg_status *verdict) {
    const char *name = ops_text(j->op);
    float *y = floats(j->n);
    unsigned char *copy = (unsigned char *)malloc(len ? len : 1); /* exact: sanitizers watch its end */
    cg_info info;
    cg_status s;
    size_t i;
    if (!copy) exit(2);
    memcpy(copy, p, len);
    for (i = 0; i < j->n; i++) y[i] = 3.0f + (float)(i & 7);
    *verdict = unpack(j, copy, len, y);
    for (i = 0; i < j->n; i++)
        ASSERTm(SAY("%s, n %u: %s, value %u is %g", name, (unsigned)j->n, ops_status((int)*verdict), (unsigned)i,
                    (double)y[i]),
            *verdict == CG_OK ? ref_finite(y[i]) : y[i] == 3.0f + (float)(i & 7));
    for (i = 0; i < j->n; i++) y[i] = 5.0f;
    s = cg_clear(copy, len, y, j->n);
    for (i = 0; s != CG_OK && i < j->n; i++) ASSERTm(SAY("%s: cleared and failed", name), y[i] == 5.0f);
    s = cg_inspect(copy, len, &info);
    ASSERTm(name, s == CG_OK || *verdict != CG_OK);
    free(copy);
    free(y);
    PASS();
}

TEST survives(const job *j, const ops_packet *pk, int rounds) {
    const char *name = ops_text(j->op);
    unsigned char *bad = (unsigned char *)ref_alloc(pk->len + 8);
    uint64_t state = pk->len + 77;
    cg_status s;
    size_t len;
    int t, f;
    for (len = 0; len < pk->len;
         len += pk->len <= 400 || len + 4 > pk->len ? 1 : 1 + ref_rand(&state) % (pk->len / 64)) {
        CHECK_CALL(harmless(j, pk->p, len, &s));
        ASSERTm(SAY("%s: %u bytes of %u are taken for a packet", name, (unsigned)len, (unsigned)pk->len), s != CG_OK);
    }
    memcpy(bad, pk->p, pk->len);
    CHECK_CALL(harmless(j, bad, pk->len + 4, &s));
    ASSERTm(SAY("%s: a word too much", name), s != CG_OK);
    for (t = 0; t < rounds; t++) {
        size_t where = ref_rand(&state) % (t % 2 ? pk->len : CG_HEADER_BYTES);
        memcpy(bad, pk->p, pk->len);
        bad[where] = (unsigned char)(bad[where] ^ (1u + ref_rand(&state) % 255u));
        CHECK_CALL(harmless(j, bad, pk->len, &s));
        ASSERTm(SAY("%s: the checksum missed byte %u", name, (unsigned)where), s != CG_OK);
    }
    for (t = 0; t < 2 * rounds; t++) { /* now the checksum is right */
        memcpy(bad, pk->p, pk->len);
        for (f = t % 3; f >= 0; f--) {
            size_t where = t % 4 == 0 || pk->len == CG_HEADER_BYTES
                ? ref_rand(&state) % CG_HEADER_BYTES
                : CG_HEADER_BYTES + ref_rand(&state) % (pk->len - CG_HEADER_BYTES);
            uint32_t how = ref_rand(&state);
            bad[where] = (unsigned char)(how % 5 == 0 ? 0xFF
                    : how % 5 == 1                    ? 0x00
                    : how % 5 == 2                    ? bad[where] ^ 1u << (how >> 8 & 7)
                                                      : how >> 16);
        }
        ref_seal(bad, pk->len);
        CHECK_CALL(harmless(j, bad, pk->len, &s));
    }
    free(bad);
    PASS();
}

/* What the sample draws, from the definitions. */
static int is_drawn(const job *j, size_t i) {
    uint64_t k, t, size, N = j->op->sample.size;
    if (j->op->sample.id == CG_SAMPLE_CYCLIC) { /* one block, at equal distances; the last ends at n */
        const size_t blocks = (size_t)N, many = ceil_div(j->n, blocks), turn = (size_t)(j->tag.step % blocks),
                     first = blocks >= j->n ? turn % j->n : turn * (j->n - many) / (blocks > 1 ? blocks - 1 : 1);
        return i >= first && i < first + many;
    }
    if (j->op->sample.id == CG_SAMPLE_PERMK) {
        uint64_t group = i / N, h = ref_hash(ref_shared(&j->tag), group >> 16, (uint32_t)(group & 65535));
        return ((h * N >> 32) + j->tag.rank) % N == i % N;
    }
    if (!j->op->sample.id) return 1;
    k = ref_count(j->op->sample.value,
        j->op->select.id == CG_SELECT_TOPK || j->op->select.id == CG_SELECT_MSTOPK ? 0 : j->op->k, j->n);
    t = (uint64_t)i * k / j->n;
    for (t = t ? t - 1 : 0; t < k && t <= (uint64_t)i * k / j->n + 1; t++)
        if (ref_draw(ref_draws(&j->tag, j->op->sample.flags & 2), j->n, k, t, &size) == i) return 1;
    return 0;
}

TEST refuses_nonfinite(job *j) {
    static const uint32_t EVIL[] = { 0x7fc00000u, 0x7f800000u, 0xff800000u, 0x7f800001u, 0xffffffffu };
    const char *name = ops_text(j->op);
    size_t at_[6], i;
    int t;
    ops_packet pk;
    cg_info info;
    float *y = floats(j->n);
    if (!j->n) {
        free(y);
        PASS();
    }
    at_[0] = 0;
    at_[1] = j->n - 1;
    at_[2] = j->n / 2;
    at_[3] = j->n / 3;
    at_[4] = j->n > 32 ? 32 : 0;
    at_[5] = j->n * 4 / 5;
    for (t = 0; t < 6; t++) {
        float was = j->x[at_[t]];
        uint32_t evil = EVIL[t % 5];
        int given = 0;
        if (j->support) {
            for (i = 0; i < j->n; i++) y[i] = 1.0f;
            ASSERT_ENUM_EQm(name, CG_OK, cg_clear(j->side.support, j->side.support_len, y, j->n), ops_status);
            given = y[at_[t]] != 0.0f; /* another's places: not even looked at */
        }
        memcpy(&j->x[at_[t]], &evil, 4);
        pk = pack_plain(j);
        memcpy(&j->x[at_[t]], &was, 4);
        ASSERT_FALSEm(name, pk.touched);
        if (given) {
            ASSERTm(SAY("%s, n %u: value %u, %s", name, (unsigned)j->n, (unsigned)at_[t], ops_status((int)pk.status)),
                pk.status == CG_OK || pk.status == CG_E_NONFINITE);
        } else if (is_drawn(j, at_[t])) {
            ASSERTm(SAY("%s, n %u: value %u, %s", name, (unsigned)j->n, (unsigned)at_[t], ops_status((int)pk.status)),
                pk.status == CG_E_NONFINITE);
            ASSERTm(name, pk.len == 0);
        } else {
            ASSERTm(SAY("%s, n %u: value %u is not sent, %s", name, (unsigned)j->n, (unsigned)at_[t],
                        ops_status((int)pk.status)),
                pk.status == CG_OK);
            ASSERT_ENUM_EQm(name, CG_OK, cg_inspect(pk.p, pk.len, &info), ops_status);
        }
        free(pk.p);
    }
    free(y);
    PASS();
}

/* Zeros of either sign become zeros, except as signs. */
TEST keeps_zeros(const cg_op *op, size_t n) {
    const char *name = ops_text(op);
    int negative;
    for (negative = 0; negative < 2; negative++) {
        job j = job_open(op, REF_ZEROS, n, 1);
        float *y = floats(n);
        ops_packet pk;
        size_t i;
        for (i = 0; i < n; i++) j.x[i] = negative && i % 3 ? -0.0f : 0.0f;
        pk = pack_plain(&j);
        ASSERT_ENUM_EQm(name, CG_OK, pk.status, ops_status);
        memset(y, 0xFF, 4 * n);
        ASSERT_ENUM_EQm(name, CG_OK, unpack(&j, pk.p, pk.len, y), ops_status);
        for (i = 0; i < n; i++) {
            if (op->quantize.id != CG_QUANTIZE_SIGN)
                ASSERTm(SAY("%s, n %u: a zero became %g", name, (unsigned)n, (double)y[i]), y[i] == 0.0f);
            else if (!op->transform.id)
                ASSERTm(
                    SAY("%s, n %u: a zero became %g", name, (unsigned)n, (double)y[i]), y[i] == 0.0f || y[i] == 1.0f);
            else ASSERTm(name, ref_finite(y[i]));
        }
        free(pk.p);
        free(y);
        job_close(&j);
    }
    PASS();
}

TEST all_properties(const cg_op *op, int kind, size_t n, int damage) {
    job j = job_open(op, kind, n, 1000 + n);
    ops_packet pk = pack_plain(&j);
    CHECK_CALL(fits(&j, &pk));
    CHECK_CALL(decodes(&j, &pk));
    if (damage) CHECK_CALL(survives(&j, &pk, damage));
    CHECK_CALL(refuses_nonfinite(&j));
    CHECK_CALL(keeps_zeros(op, n));
    free(pk.p);
    job_close(&j);
    PASS();
}

/* ---- the table's rows ---- */

TEST row_properties(const row *r) {
    size_t i;
    for (i = 0; i < SIZE_COUNT; i++) {
        size_t n = SIZES[i], most;
        cg_op op = op_for(r, n);
        int kind = i % 2 ? REF_LAPLACE : REF_GAUSSIAN;
        if (quick && n > 3000) continue;
        if ((r->needs & MATRIX) && !n) { /* there is no such matrix */
            ops_packet pk;
            job j = job_open(&op, kind, n, 1);
            ASSERT_EQm(r->text, 0, cg_bound(&op, n));
            pk = pack(&j, j.x, 1000, 0, 0);
            ASSERT_ENUM_EQm(r->text, CG_E_ARG, pk.status, ops_status);
            free(pk.p);
            job_close(&j);
            continue;
        }
        if (!(r->needs & MATRIX)) {
            cg_op text = parsed(r->text);
            ASSERTm(SAY("%s is not its preset", r->text), same_op(&text, &op));
        }
        CHECK_CALL(prints(&op));
        most = wire(r, &op, n);
        ASSERTm(SAY("%s, n %u: cg_bound says %u, the table %u", r->text, (unsigned)n, (unsigned)cg_bound(&op, n),
                    (unsigned)most),
            cg_bound(&op, n) <= most && (op.select.id || cg_bound(&op, n) == most));
        CHECK_CALL(all_properties(&op, kind, n, n == 31 || n == 1025 ? 60 : n == 70000 ? 2 : 4));
    }
    PASS();
}

/* vectors that nobody declares anything about, but nothing may break */
TEST row_extremes(const row *r) {
    static const int KINDS[] = { REF_OUTLIER, REF_CONSTANT, REF_DENORMALS, REF_TWO, REF_GEOMETRIC, REF_HUGE,
        REF_SIGNED_ZEROS, REF_TIES };
    static const size_t AT[] = { 33, 1025 };
    size_t i, s;
    for (i = 0; i < sizeof KINDS / sizeof *KINDS; i++)
        for (s = 0; s < 2; s++) {
            cg_op op = op_for(r, AT[s]);
            CHECK_CALL(all_properties(&op, KINDS[i], AT[s], 3));
        }
    PASS();
}

/* A packet is a function of what the table says: body and counts are compared, not the tag. */
TEST row_keys(const row *r) {
    cg_op op = op_for(r, 1000);
    job j = job_open(&op, REF_GAUSSIAN, 1000, 4);
    ops_packet base = pack_plain(&j), other;
    int t, differs[4];
    for (t = 0; t < 4; t++) {
        j.tag = TAG;
        if (t == 0) j.tag.seed++;
        if (t == 1) j.tag.step++;
        if (t == 2) j.tag.tensor++;
        if (t == 3) j.tag.rank++;
        other = pack_plain(&j);
        ASSERT_ENUM_EQm(r->text, CG_OK, other.status, ops_status);
        differs[t] = other.len != base.len || memcmp(base.p, other.p, 104) || memcmp(base.p + 128, other.p + 128, 24) ||
            memcmp(base.p + CG_HEADER_BYTES, other.p + CG_HEADER_BYTES, base.len - CG_HEADER_BYTES);
        /* of a sample without indices only the values tell */
        free(other.p);
    }
    for (t = 0; t < 4 && !(r->keys & MAYBE); t++)
        ASSERTm(SAY("%s: another %s and %s packet", r->text,
                    t == 0       ? "seed"
                        : t == 1 ? "step"
                        : t == 2 ? "tensor"
                                 : "rank",
                    differs[t] ? "another" : "the same"),
            differs[t] == (t < 3 ? r->keys != SURE : (r->keys & PRIVATE) != 0));
    free(base.p);
    job_close(&j);
    PASS();
}

/* ---- 5 and 6: error and mean ---- */

enum { VECTORS = 4 }; /* Gaussian, Laplace, one outlier, constant: every part matters */
static void vector(int kind, float *x, size_t n) {
    uint64_t state = 17;
    size_t i;
    for (i = 0; i < n; i++) {
        double g = ref_normal(&state), s = ref_rand(&state) & 1 ? 1.0 : -1.0;
        x[i] = (float)(kind == 0 ? g
                : kind == 1      ? -log(ref_uniform(&state)) * s
                : kind == 2      ? (i == n / 3 ? 30.0 : 0.4 * g)
                                 : 0.7);
    }
}

static double summed(const row *r, const cg_op *op, law *of, const float *x, size_t n, size_t k) {
    size_t step = r->bucket && r->bucket < n ? r->bucket : n, i;
    double total = 0;
    for (i = 0; i < n; i += step) {
        stats b = look(x + i, n - i < step ? n - i : step, k);
        total += of(op, &b);
    }
    return total;
}

/* f32 arithmetic: eight ulps of the top for every value, and 64 of the norm for what passes through a transform */
static double rounding(const cg_op *op, const stats *all) {
    return sqrt((double)all->n) * all->top * 0x1p-21 + (op->transform.id ? 64.0 * 0x1p-24 * sqrt(all->s) : 0.0);
}

TEST error_per_draw(const row *r, const float *x, size_t n, int kind) {
    cg_op op = op_for(r, n);
    job j = job_open(&op, REF_ZEROS, n, 9);
    float *y = floats(n);
    double e = 0, d2 = 0, bound;
    ops_packet pk;
    cg_info info;
    stats all;
    size_t i;
    memcpy(j.x, x, 4 * n);
    for (i = 0; j.aux && i < n; i++)
        j.aux[i] = op.select.id == CG_SELECT_BINS ? 0.5f * x[i] : x[i] * x[i] * (i % 4 ? 0.5f : 3.0f);
    pk = pack_plain(&j);
    ASSERT_ENUM_EQm(r->text, CG_OK, pk.status, ops_status);
    ASSERT_ENUM_EQm(r->text, CG_OK, unpack(&j, pk.p, pk.len, y), ops_status);
    ASSERT_ENUM_EQm(r->text, CG_OK, cg_inspect(pk.p, pk.len, &info), ops_status);
    for (i = 0; i < n; i++) {
        e += sq((double)y[i] - (double)x[i]);
        d2 += sq((double)y[i]);
    }
    all = look(x, n, (size_t)info.k);
    bound = summed(r, &op, r->bound, x, n, (size_t)info.k);
    ASSERTm(SAY("%s, n %u, vector %d: error %.6g, declared %.6g", r->text, (unsigned)n, kind, e / all.s, bound / all.s),
        sqrt(e) <= sqrt(fmax(bound, 0.0)) + rounding(&op, &all));
    if (r->exact) {
        double exact = fmax(summed(r, &op, r->exact, x, n, (size_t)info.k), 0.0);
        ASSERTm(SAY("%s, n %u, vector %d: error %.6g, by definition %.6g", r->text, (unsigned)n, kind, e / all.s,
                    exact / all.s),
            fabs(sqrt(e) - sqrt(exact)) <= rounding(&op, &all) + 1e-6 * sqrt(exact));
    }
    if (r->error == PROJECTION)
        ASSERTm(
            SAY("%s, n %u, vector %d: error %.6g, but |D|^2 %.6g", r->text, (unsigned)n, kind, e / all.s, d2 / all.s),
            fabs(e - (all.s - d2)) <= (op.transform.id ? 1e-5 : 1e-6) * all.s);
    free(pk.p);
    free(y);
    job_close(&j);
    PASS();
}

/* error: mean of |D - x|^2, spread: its standard error */
typedef struct outcome {
    double error, spread, z;
    int worst;
} outcome;

/* z: the farthest projection of the mean from the truth. var < 0: not known, take the projection's own. */
static outcome measure(const cg_op *op, const float *x, size_t n, int keys, double var, int fixed) {
    job j = job_open(op, REF_ZEROS, n, 9);
    float *y = floats(n);
    signed char *sign = (signed char *)ref_alloc(PROJECTIONS * n);
    double sum[PROJECTIONS + 1] = { 0 }, squares[PROJECTIONS + 1] = { 0 }, e2 = 0;
    stats all = look(x, n, 0);
    outcome o = { 0, 0, 0, 0 };
    uint64_t state = 99;
    size_t i;
    int t, p;
    memcpy(j.x, x, 4 * n);
    for (i = 0; i < PROJECTIONS * n; i++) sign[i] = ref_rand(&state) & 1 ? 1 : -1;
    for (t = 0; t < keys; t++) {
        double e = 0;
        ops_packet pk;
        j.tag.step = (uint64_t)(fixed ? 0 : t);
        j.tag.rank = op->sample.id == CG_SAMPLE_PERMK ? (uint32_t)t % op->sample.size : 1;
        pk = pack_plain(&j);
        if (pk.status != CG_OK || unpack(&j, pk.p, pk.len, y) != CG_OK) {
            fprintf(stderr, "%s: %s\n", ops_text(op), ops_status((int)pk.status));
            exit(2);
        }
        free(pk.p);
        for (i = 0; i < n; i++) e += sq((double)y[i] - (double)x[i]);
        o.error += e / keys;
        e2 += e * e / keys;
        for (p = 0; p < PROJECTIONS; p++) {
            const signed char *s = sign + (size_t)p * n;
            double z = 0;
            for (i = 0; i < n; i++) z += s[i] * ((double)y[i] - (double)x[i]);
            sum[p] += z / keys;
            squares[p] += z * z / keys;
        }
        for (e = 0, i = 0; i < n; i++) e += (double)x[i] * ((double)y[i] - (double)x[i]);
        sum[PROJECTIONS] += e / keys;
        squares[PROJECTIONS] += e * e / keys;
    }
    o.spread = sqrt(fmax(e2 - sq(o.error), 0.0) / keys);
    for (p = 0; p < PROJECTIONS; p++) {
        double v = var >= 0 ? var : squares[p] - sq(sum[p]), z = fabs(sum[p]) / (sqrt(v / keys) + 1e-6 * all.one);
        if (z > o.z) {
            o.z = z;
            o.worst = p;
        }
    }
    /* along x itself, where a wrong scale shows: sum of x^2 var <= top^2 var */
    {
        double v = var >= 0 ? sq(all.top) * var : fmax(squares[PROJECTIONS] - sq(sum[PROJECTIONS]), 0.0);
        double z = fabs(sum[PROJECTIONS]) / (sqrt(v / keys) + 1e-6 * all.s);
        if (z > o.z) {
            o.z = z;
            o.worst = PROJECTIONS;
        }
    }
    free(sign);
    free(y);
    job_close(&j);
    return o;
}

TEST error_on_average(const row *r, const float *x, size_t n, int kind) {
    cg_op op = op_for(r, n);
    stats all = look(x, n, 0);
    double bound = summed(r, &op, r->bound, x, n, 0), var = r->exact ? summed(r, &op, r->exact, x, n, 0) : -1.0,
           round2 = sq(rounding(&op, &all));
    outcome o = measure(&op, x, n, quick ? KEYS / 8 : KEYS, var, 0);
    ASSERTm(SAY("%s, n %u, vector %d: error %.6g +- %.3g, declared %.6g", r->text, (unsigned)n, kind, o.error / all.s,
                o.spread / all.s, bound / all.s),
        o.error - SIGMAS * o.spread <= bound * (1 + 1e-5) + round2);
    if (r->exact) { /* the constant is above the variance, and that is what is measured */
        ASSERTm(SAY("%s, n %u, vector %d: variance %.6g, declared %.6g", r->text, (unsigned)n, kind, var / all.s,
                    bound / all.s),
            var <= bound * (1 + 1e-5) + round2);
        ASSERTm(SAY("%s, n %u, vector %d: error %.6g +- %.3g, by definition %.6g", r->text, (unsigned)n, kind,
                    o.error / all.s, o.spread / all.s, var / all.s),
            fabs(o.error - var) <= SIGMAS * o.spread + 1e-4 * var + round2);
    }
    if (r->mean == UNBIASED)
        ASSERTm(SAY("%s, n %u, vector %d: projection %d is %.2f standard errors off", r->text, (unsigned)n, kind,
                    o.worst, o.z),
            o.z < SIGMAS);
    PASS();
}

TEST row_error(const row *r) {
    static const size_t AT[] = { 1, 7, 33, 1000, 1024, 2049 };
    float x[2049];
    size_t i;
    int kind;
    if (r->error == ON_AVERAGE) {
        for (kind = 0; kind < VECTORS; kind++) {
            vector(kind, x, 1024);
            CHECK_CALL(error_on_average(r, x, 1024, kind));
        }
        vector(1, x, 77);
        if (r->bound != eden_omega) CHECK_CALL(error_on_average(r, x, 77, 1));
        PASS();
    }
    for (i = 0; i < sizeof AT / sizeof *AT; i++) {
        for (kind = 0; kind < VECTORS; kind++) {
            vector(kind, x, AT[i]);
            CHECK_CALL(error_per_draw(r, x, AT[i], kind));
        }
        ref_fill(REF_OUTLIER, 8, x, AT[i]); /* eight decades apart */
        CHECK_CALL(error_per_draw(r, x, AT[i], VECTORS));
        ref_fill(REF_TIES, 8, x, AT[i]);
        x[0] = 1.0f;
        CHECK_CALL(error_per_draw(r, x, AT[i], VECTORS + 1));
    }
    PASS();
}

/* The controls: what is biased is seen to be; an estimate with one key for ever, too. */
TEST seen_to_be_biased(const char *text, int kind, int fixed) {
    cg_op op = parsed(text);
    float x[1024];
    outcome o;
    stats all;
    vector(kind, x, 1024);
    all = look(x, 1024, 0);
    o = measure(&op, x, 1024, 64, 1e-3 * all.s, fixed);
    ASSERTm(SAY("%s, vector %d: z is only %.2f", text, kind, o.z), o.z > 2 * SIGMAS);
    PASS();
}

/* ---- compositions ---- */

static const char *const SAMPLES[] = { "", "", "", "randk:0.4", "randk:0.11:unscaled", "permk:3", "permk:2:unscaled",
    "randk:k=5" };
static const char *const TRANSFORMS[] = { "", "", "", "rotate:1", "rotate:2", "rotate:3", "dct" };
static const char *const SELECTS[] = { "", "", "", "", "topk:0.2", "topk:k=3", "threshold:0.002", "dgc:0.1",
    "mstopk:0.15", "sidco:0.1", "wangni:0.2", "wangnivar:0.7", "bins:50", "sides:0.1", "side:0.1", "chunked:33:0.1",
    "blocks:5", "given", "variance:0.5", "mstopk:k=7" };
static const char *const QUANTIZERS[] = { "", "f16", "bf16", "sign", "efsign", "absmax:1:7", "absmax:2:64",
    "absmax:4:512:nearest", "absmax:8:100000", "minmax:3:33", "minmax:8:512:nearest", "minmax:5:64:norm", "terngrad",
    "terngrad:nearest", "terngrad:clip", "levels:1", "levels:7:100", "levels:127:64:max", "levels:3:nearest",
    "flexpoint:2:9", "flexpoint:8:300", "flex16:77", "trits:1", "trits:1.9", "strom:0.001", "onebit", "onebit:31",
    "mean", "natural", "natural:nearest", "dither:2", "dither:4:100", "dither:8:50:max", "dither:3:nearest", "dynamic8",
    "dynamic8:70", "e4m3", "e4m3:9", "e5m2", "e5m2:2000", "mxfp4", "mxe4m3", "mxe5m2", "nf4", "nf4:100", "lloyd:1",
    "lloyd:2.5", "lloyd:4" };
static const char *const INDEX_CODES[] = { "", "", "", "", "eliasfano", "bitmap", "golomb" };
static const char *const VALUE_CODES[] = { "", "", "", "", "gamma", "delta", "omega", "huffman", "quartic" };
#define COUNT(a) (sizeof(a) / sizeof *(a))
#define PICK(a) (a)[ref_rand(state) % COUNT(a)]

typedef struct picks {
    const char *part[6];
} picks;

/* Which go together, as the header says: any sample, selection and quantizer, but for what looks at x by place,
   what needs a rotation, and codes for what is not there. */
static int legal(const picks *p) {
    const char *t = p->part[1], *s = p->part[2], *q = p->part[3], *v = p->part[5];
    int behind = *p->part[0] || *t;
    int smooth = !strcmp(q, "") || !strncmp(q, "bf16", 4);
    int plain = smooth || !strncmp(q, "f16", 3) || !strncmp(q, "flex16", 6) || !strncmp(q, "sign", 4) ||
        !strncmp(q, "efsign", 6) || !strncmp(q, "mean", 4) || !strncmp(q, "natural", 7) || !strncmp(q, "lloyd", 5);
    int ternary = !strncmp(q, "terngrad", 8) || !strncmp(q, "trits", 5) || !strncmp(q, "strom", 5) ||
        !strncmp(q, "absmax:2", 8) || !strcmp(q, "levels:1") || !strncmp(q, "flexpoint:2", 11);
    int by_place = !strncmp(s, "bins", 4) || !strcmp(s, "given") || !strncmp(s, "variance", 8);
    if (by_place && behind) return 0;
    if (!strncmp(q, "lloyd", 5) && (strncmp(t, "rotate", 6) || *s)) return 0;
    if (!strcmp(q, "mean") && strncmp(s, "side:", 5)) return 0; /* values of both signs have no mean worth sending */
    if (*p->part[4] && (!*s || !strcmp(s, "given"))) return 0;
    if (!strcmp(v, "quartic")) return ternary;
    if (!strcmp(v, "huffman")) return smooth || !plain;
    return !*v || !plain;
}

static picks pick(uint64_t *state) {
    picks p;
    p.part[0] = PICK(SAMPLES);
    p.part[1] = PICK(TRANSFORMS);
    p.part[2] = PICK(SELECTS);
    p.part[3] = PICK(QUANTIZERS);
    p.part[4] = PICK(INDEX_CODES);
    p.part[5] = PICK(VALUE_CODES);
    /* cg_op has one k, and it would be top-k's */
    if (strstr(p.part[0], "k=") && strstr(p.part[2], "topk")) p.part[0] = "";
    return p;
}

static void spell(const picks *p, char *text, size_t cap) {
    size_t i, used = 0;
    text[0] = 0;
    for (i = 0; i < 6; i++)
        if (*p->part[i]) used += (size_t)snprintf(text + used, cap - used, "%s%s", used ? "|" : "", p->part[i]);
    if (!used) snprintf(text, cap, "dense");
}

/* The same by cg_then and cg_coded. Lloyd-Max does not parse without its rotation, nor mean without its side. */
static cg_op compose(const picks *p) {
    cg_op op = cg_dense();
    size_t i;
    for (i = 0; i < 4; i++) {
        cg_op one = cg_dense();
        if (!strncmp(p->part[i], "lloyd:", 6)) {
            one.quantize.id = CG_QUANTIZE_LLOYD;
            one.quantize.value = (float)atof(p->part[i] + 6);
        } else if (!strcmp(p->part[i], "mean")) {
            one.quantize.id = CG_QUANTIZE_MEAN;
        } else if (*p->part[i]) {
            one = parsed(p->part[i]);
        }
        op = cg_then(op, one);
    }
    for (i = 1; i < 4; i++)
        if (!strcmp(p->part[4], i == 1 ? "eliasfano" : i == 2 ? "bitmap" : "golomb")) op = cg_coded(op, (cg_coding)i);
    for (i = 1; i < 6; i++)
        if (!strcmp(p->part[5],
                i == 1       ? "gamma"
                    : i == 2 ? "delta"
                    : i == 3 ? "omega"
                    : i == 4 ? "huffman"
                             : "quartic"))
            op = cg_coded(op, (cg_coding)(CG_CODE_PACKED + i));
    return op;
}

TEST refused(const cg_op *op, size_t n, const char *text) {
    job j = job_open(op, REF_GAUSSIAN, n, 3);
    char print[128];
    ops_packet pk = pack(&j, j.x, 200000, 0, 0);
    ASSERTm(text, cg_bound(op, n) == 0 && cg_scratch(op, n) == 0);
    ASSERTm(SAY("%s: %s", text, ops_status((int)pk.status)), pk.status == CG_E_ARG && pk.len == 0 && !pk.touched);
    ASSERT_ENUM_EQm(text, CG_E_ARG, cg_op_print(op, print, sizeof print), ops_status);
    free(pk.p);
    job_close(&j);
    PASS();
}

static unsigned accepted_count, refused_count;

TEST composition(uint64_t *state, int t) {
    picks p = pick(state);
    size_t n = t % 40 == 39 ? 70000 : SIZES[(size_t)t % (SIZE_COUNT - 1)];
    int kind = (int)(ref_rand(state) % REF_KINDS), ok;
    char text[256];
    cg_op op, whole;
    if (quick && n > 3000) n = 513;
    if (strstr(p.part[0], "permk:2")) n = n ? n : 2;
    op = compose(&p);
    spell(&p, text, sizeof text);
    ok = cg_op_parse(&whole, text) == CG_OK;
    ASSERTm(SAY("%s: parse says %d, the rules %d", text, ok, legal(&p)), ok == legal(&p));
    if (!ok) {
        refused_count++;
        return refused(&op, n, text);
    }
    accepted_count++;
    ASSERTm(SAY("%s is not its stages", text), same_op(&op, &whole));
    ASSERTm(SAY("%s: no bound", text), cg_bound(&op, n) > 0);
    CHECK_CALL(prints(&op));
    return all_properties(&op, kind, n, n > 3000 ? 2 : 8);
}

TEST compositions(int from, int to) {
    uint64_t state = UINT64_C(20240229) + (uint64_t)from;
    int t;
    for (t = from; t < to; t++) CHECK_CALL(composition(&state, t));
    PASS();
}

TEST both_were_met(void) {
    ASSERTm(SAY("%u composed, %u refused", accepted_count, refused_count),
        accepted_count >= (quick ? 30u : 250u) && refused_count >= (quick ? 10u : 100u));
    PASS();
}

/* Changes that do not belong to the stage, and slots filled twice. */
TEST wrong_changes(void) {
    cg_op ops[16];
    int i, n = 0;
    ops[n++] = cg_nearest(cg_f16());
    ops[n++] = cg_nearest(cg_sign());
    ops[n++] = cg_nearest(cg_dense());
    ops[n++] = cg_unscaled(cg_topk(0.1f));
    ops[n++] = cg_clipped(cg_absmax(4, 64));
    ops[n++] = cg_maxnorm(cg_natural(), 64);
    ops[n++] = cg_then(cg_topk(0.1f), cg_threshold(1.0f));
    ops[n++] = cg_then(cg_f16(), cg_sign());
    ops[n++] = cg_then(cg_drive(), cg_absmax(4, 64));
    ops[n++] = cg_then(cg_lowrank(10, 10, 2), cg_f16());
    ops[n++] = cg_then(cg_lowrank(10, 10, 2), cg_topk(0.1f));
    ops[n++] = cg_then(cg_stc(0.1f), cg_coded(cg_dense(), CG_CODE_BITMAP));
    ops[n++] = cg_lowrank(10, 11, 2); /* not 100 values */
    ops[n++] = cg_eden(0.0f);
    ops[n++] = cg_eden(4.5f);
    ops[n++] = cg_qsgd(128);
    for (i = 0; i < n; i++) {
        job j = job_open(&ops[i], REF_GAUSSIAN, 100, 3);
        ops_packet pk = pack(&j, j.x, 2000, 0, 0);
        ASSERT_EQ_FMTm(SAY("operator %d", i), 0u, (unsigned)cg_bound(&ops[i], 100), "%u");
        ASSERT_ENUM_EQm(SAY("operator %d", i), CG_E_ARG, pk.status, ops_status);
        ASSERT_EQ(0, pk.len);
        free(pk.p);
        job_close(&j);
    }
    PASS();
}

/* ---- traps (METHODS 1.9) ---- */

/* What op makes of x with one key. */
static void image(const cg_op *op, uint64_t step, const float *x, size_t n, float *y) {
    job j = job_open(op, REF_ZEROS, n, 1);
    ops_packet pk;
    memcpy(j.x, x, 4 * n);
    j.tag.step = step;
    pk = pack_plain(&j);
    if (pk.status != CG_OK || unpack(&j, pk.p, pk.len, y) != CG_OK) {
        fprintf(stderr, "%s: %s\n", ops_text(op), ops_status((int)pk.status));
        exit(2);
    }
    free(pk.p);
    job_close(&j);
}

/* Denormals round to 0 or 2^-126 with the right mean, but not with a variance of 1/8. */
TEST natural_and_denormals(void) {
    enum { N = 8192 };
    cg_op op = cg_natural();
    float x[N], y[N];
    double sum = 0, e = 0, p = 0.25, z;
    int i;
    for (i = 0; i < N; i++) x[i] = (i % 2 ? -1.0f : 1.0f) * 0x1p-128f;
    image(&op, 1, x, N, y);
    for (i = 0; i < N; i++) {
        double v = (double)y[i] * (i % 2 ? -1.0 : 1.0) * 0x1p126;
        ASSERT(v == 0.0 || v == 1.0);
        ASSERT(v != 0.0 || ref_bits(y[i]) == 0);
        sum += v / N;
        e += sq(v - p) / N;
    }
    z = fabs(sum - p) / sqrt(p * (1 - p) / N);
    ASSERTm(SAY("mean %g, z %.2f", sum, z), z < SIGMAS);
    ASSERT_IN_RANGE(3.0, e / (p * p), 0.3); /* (1-p)/p, 24 times 1/8 */
    PASS();
}

/* Beyond 2^127 there is nothing to round up to: biased, but never Inf. Just below it is still unbiased. */
TEST natural_clamp_at_254(void) {
    enum { N = 4096 };
    cg_op op = cg_natural(), nearest = cg_nearest(op);
    float x[N], y[N];
    double sum = 0;
    int i;
    for (i = 0; i < N; i++) x[i] = (i % 2 ? -1.0f : 1.0f) * (i % 3 ? FLT_MAX : 0x1.8p127f);
    image(&op, 1, x, N, y);
    for (i = 0; i < N; i++) ASSERT(y[i] == (i % 2 ? -0x1p127f : 0x1p127f));
    image(&nearest, 1, x, N, y);
    for (i = 0; i < N; i++) ASSERT(y[i] == (i % 2 ? -0x1p127f : 0x1p127f));
    for (i = 0; i < N; i++) x[i] = 0x1.8p126f;
    image(&op, 1, x, N, y);
    for (i = 0; i < N; i++) {
        ASSERT(y[i] == 0x1p126f || y[i] == 0x1p127f);
        sum += (double)(y[i] * 0x1p-126f) / N;
    }
    ASSERT_IN_RANGE(1.5, sum, SIGMAS * 0.5 / sqrt((double)N));
    PASS();
}

/* One value s, the others s/(sqrt(d)+1): the variance is (sqrt(d)-1)/2 of |x|^2, and no ratio makes it more. */
TEST terngrad_worst_omega(void) {
    enum { D = 1024 };
    cg_op op = cg_terngrad();
    float x[D];
    double worst = (sqrt((double)D) - 1.0) / 2.0, t;
    outcome o;
    stats all;
    int i;
    for (i = 0; i < D; i++) x[i] = i == 100 ? 1.0f : (float)(1.0 / (sqrt((double)D) + 1.0));
    all = look(x, D, 0);
    o = measure(&op, x, D, KEYS, worst * all.s, 0);
    ASSERT_IN_RANGE(worst, o.error / all.s, SIGMAS * o.spread / all.s);
    ASSERT_LTm(SAY("z %.2f", o.z), o.z, SIGMAS);
    for (t = 0.002; t < 1.0; t *= 1.05) {
        for (i = 0; i < D; i++) x[i] = i == 100 ? 1.0f : (float)t;
        all = look(x, D, 0);
        ASSERTm(SAY("others %g", t), grid_variance(&op, &all) <= worst * all.s * (1 + 1e-6));
    }
    PASS();
}

/* Two spikes a > b: after one round of signs and Hadamard every value has the sign of a's share, and b is lost for
   all keys. Two rounds mix it: the mean is right. */
TEST one_round_is_biased_two_are_not(void) {
    enum { D = 1024, T = 2000 };
    cg_op one = parsed("rotate:1|lloyd:1"), two = parsed("rotate:2|lloyd:1");
    float x[D] = { 0 }, y[D];
    double sum[2] = { 0, 0 }, squares[2] = { 0, 0 };
    int t, i, trials = quick ? T / 8 : T;
    x[3] = 1.0f;
    x[700] = -0.6f;
    for (t = 0; t < 20; t++) {
        image(&one, (uint64_t)t, x, D, y);
        ASSERT_IN_RANGE(0.0, y[700], 1e-5);
        ASSERT_IN_RANGE(1.36, y[3], 1e-4); /* (a^2 + b^2)/a */
    }
    for (t = 0; t < trials; t++) {
        image(&two, (uint64_t)t, x, D, y);
        for (i = 0; i < 2; i++) {
            double v = (double)y[i ? 700 : 3];
            sum[i] += v / trials;
            squares[i] += v * v / trials;
        }
    }
    for (i = 0; i < 2; i++) {
        double truth = i ? -0.6 : 1.0, se = sqrt((squares[i] - sq(sum[i])) / trials);
        /* sums of 1024 are nearly normal */
        ASSERTm(SAY("mean %g +- %g of %g", sum[i], se, truth), fabs(sum[i] - truth) < SIGMAS * se + 2.0 / D);
        ASSERTm(SAY("one round's bias would not be seen: %g", se), 0.36 > 2 * SIGMAS * se);
    }
    PASS();
}

/* Where a value was never drawn its sample variance is 0 and every mean looks infinitely wrong; the declared one
   knows. */
TEST never_drawn_is_not_biased(const char *text) {
    enum { N = 64, T = 200 };
    cg_op op = parsed(text);
    float x[N], y[N];
    double sum = 0, p;
    int t, i;
    for (i = 0; i < N; i++) x[i] = 1.0f;
    x[9] = 1e-6f;
    for (t = 0; t < T; t++) {
        image(&op, (uint64_t)t, x, N, y);
        sum += (double)y[9] / T;
    }
    if (op.sample.id) { /* drawn, but rarely: 1 in 64 */
        p = 1.0 / N;
        ASSERTm(SAY("mean %g", sum), fabs(sum - 1e-6) / (1e-6 * sqrt((1 - p) / p / T)) < SIGMAS);
    } else {
        ASSERT(sum == 0.0); /* the trap: no draw in 200 */
        ASSERT(fabs(sum - 1e-6) / sqrt(1e-6 / T) < SIGMAS);
    }
    PASS();
}

/* The L1 scale is a contraction on heavy tails, where ||x||_2/sqrt(d) is not. */
TEST efsign_on_heavy_tails(void) {
    enum { D = 4096 };
    cg_op op = cg_efsign();
    float x[D], y[D];
    double e = 0, l2 = 0;
    uint64_t state = 5;
    stats all;
    int i;
    for (i = 0; i < D; i++) x[i] = (float)((ref_rand(&state) & 1 ? 1.0 : -1.0) * pow(ref_uniform(&state), -1.5));
    all = look(x, D, 0);
    image(&op, 1, x, D, y);
    for (i = 0; i < D; i++) {
        e += sq((double)y[i] - (double)x[i]);
        l2 += sq(fabs((double)x[i]) - sqrt(all.s / D));
    }
    ASSERTm(SAY("error %g", e / all.s), e < all.s);
    ASSERTm(SAY("the L2 scale's error is only %g", l2 / all.s), l2 > all.s); /* the control */
    PASS();
}

/* A matrix of lower rank than asked for comes back whole: collapsed columns are left out, not divided by their norm. */
TEST lowrank_of_a_deficient_matrix(int rank, float scale) {
    enum { ROWS_ = 24, COLS = 40, N = ROWS_ * COLS };
    cg_op op = cg_lowrank(ROWS_, COLS, 4);
    float x[N], y[N];
    double u[4][ROWS_], v[4][COLS], e = 0;
    uint64_t state = 11;
    stats all;
    int i, j, a;
    for (a = 0; a < 4; a++) {
        for (i = 0; i < ROWS_; i++) u[a][i] = ref_normal(&state);
        for (j = 0; j < COLS; j++) v[a][j] = ref_normal(&state);
    }
    for (i = 0; i < ROWS_; i++)
        for (j = 0; j < COLS; j++) {
            double m = 0;
            for (a = 0; a < rank; a++) m += u[a][i] * v[a][j];
            x[i * COLS + j] = (float)m * scale;
        }
    image(&op, 1, x, N, y);
    all = look(x, N, 0);
    for (i = 0; i < N; i++) e += sq((double)y[i] - (double)x[i]);
    ASSERTm(SAY("rank %d: relative error %g", rank, sqrt(e / all.s)), sqrt(e) <= 5e-7 * sqrt(all.s));
    PASS();
}

/* The figures that the header gives for normal vectors; those of EDEN hold within 2 % from 2^18 samples on. */
TEST of_a_normal_vector(const char *text, double least, double most) {
    enum { N = 1 << 18 };
    static float x[N], y[N];
    cg_op op = parsed(text);
    double e = 0, s = 0;
    uint64_t state = 31;
    int i;
    for (i = 0; i < N; i++) x[i] = (float)ref_normal(&state);
    image(&op, 1, x, N, y);
    for (i = 0; i < N; i++) {
        e += sq((double)y[i] - (double)x[i]);
        s += sq((double)x[i]);
    }
    ASSERTm(SAY("%s: error %g, not from %g to %g", text, e / s, least, most), e / s >= least && e / s <= most);
    PASS();
}

/* ---- other people's defects (METHODS 3.1) ---- */

/* Every quantizer with a scale, told that it is zero although the values are not: no division by it. */
TEST scale_of_zero(const char *text) {
    enum { N = 300 };
    cg_op op = parsed(text);
    job j = job_open(&op, REF_GAUSSIAN, N, 6);
    float scales[2 * N] = { 0 }, y[N];
    ops_packet pk;
    int i;
    j.side.scale = scales;
    j.sided = 1;
    pk = pack_plain(&j);
    ASSERT_ENUM_EQm(text, CG_OK, pk.status, ops_status);
    ASSERT_ENUM_EQm(text, CG_OK, cg_decompress(pk.p, pk.len, y, N), ops_status);
    for (i = 0; i < N; i++) ASSERTm(SAY("%s: %g", text, (double)y[i]), y[i] == 0.0f);
    free(pk.p);
    job_close(&j);
    PASS();
}

/* The sign of zero, of either zero, is +; it is one bit, not a third level. */
TEST sign_of_zero(void) {
    static const char *const TEXTS[] = { "sign", "efsign", "onebit" };
    static const float X[] = { 0.0f, -0.0f, 2.0f, -2.0f, -0.0f, 0.0f };
    static const float WANT[3][6] = { { 1, 1, 1, -1, 1, 1 },
        { 2 / 3.0f, 2 / 3.0f, 2 / 3.0f, -2 / 3.0f, 2 / 3.0f, 2 / 3.0f }, { 0.4f, 0.4f, 0.4f, -2, 0.4f, 0.4f } };
    float y[6];
    int t, i;
    for (t = 0; t < 3; t++) {
        cg_op op = parsed(TEXTS[t]);
        image(&op, 1, X, 6, y);
        for (i = 0; i < 6; i++) ASSERTm(SAY("%s: value %d is %g", TEXTS[t], i, (double)y[i]), y[i] == WANT[t][i]);
    }
    PASS();
}

/* One-bit codecs at every length around a word: nothing behind the end of x, packet or y is touched. */
TEST one_bit_ends_where_it_ends(const char *text) {
    cg_op op = parsed(text);
    size_t n;
    for (n = 1; n <= 70; n++) {
        job j = job_open(&op, REF_LAPLACE, n, n);
        ops_packet pk = pack_plain(&j);
        unsigned char room[4 * 70 + OPS_CANARY];
        size_t i;
        ASSERT_ENUM_EQm(text, CG_OK, pk.status, ops_status);
        ASSERT_FALSEm(text, pk.touched);
        memset(room, 0xA5, sizeof room);
        ASSERT_ENUM_EQm(text, CG_OK, unpack(&j, pk.p, pk.len, (float *)(void *)room), ops_status);
        for (i = 4 * n; i < sizeof room; i++)
            ASSERTm(SAY("%s, n %u: byte %u", text, (unsigned)n, (unsigned)i), room[i] == 0xA5);
        free(pk.p);
        job_close(&j);
    }
    PASS();
}

/* Twice the gradient, twice the result, bit for bit: no scale is taken for granted. */
TEST follows_the_scale(const char *text) {
    enum { N = 1100 };
    static const int POWERS[] = { 1, 20, -30, 60, -60 };
    cg_op op = parsed(text);
    float x[N], y[N], z[N];
    size_t t;
    int i;
    ref_fill(REF_LAPLACE, 4, x, N);
    image(&op, 1, x, N, y);
    for (t = 0; t < COUNT(POWERS); t++) {
        float more[N];
        for (i = 0; i < N; i++) more[i] = ldexpf(x[i], POWERS[t]);
        image(&op, 1, more, N, z);
        for (i = 0; i < N; i++)
            ASSERTm(SAY("%s: %g times 2^%d is %g, not %g", text, (double)x[i], POWERS[t], (double)z[i],
                        (double)ldexpf(y[i], POWERS[t])),
                z[i] == ldexpf(y[i], POWERS[t]));
    }
    PASS();
}

/* A constant bucket has a range of zero, and comes back whole from all that represent its end. */
TEST constant_bucket(const char *text) {
    static const float VALUES[] = { 0.3f, -0.3f, 1e-30f, -3e38f, 0x1p-149f };
    cg_op op = parsed(text);
    size_t v, i;
    for (v = 0; v < COUNT(VALUES); v++) {
        float x[100], y[100];
        for (i = 0; i < 100; i++) x[i] = VALUES[v];
        image(&op, 1, x, 100, y);
        for (i = 0; i < 100; i++)
            ASSERTm(SAY("%s: %g became %g", text, (double)x[i], (double)y[i]),
                fabs((double)y[i] - (double)x[i]) <= 0x1p-22 * fabs((double)x[i]));
    }
    PASS();
}

/* What is full already is not filled up by another block or bucket. */
TEST aligned_is_not_padded(void) {
    static const struct {
        const char *text;
        size_t n, bytes;
    } WANT[] = {
        { "rotate:2|sign", 1024, 128 },
        { "rotate:2|sign", 1025, 256 },
        { "drive", 2048, 256 + 8 },
        { "dct|sign", 64, 8 },
        { "dct|sign", 65, 16 },
        { "absmax:8:64", 128, 128 + 8 },
        { "absmax:8:64", 129, 132 + 12 },
        { "mxe4m3", 32, 32 + 4 },
        { "mxfp4", 160, 80 + 8 },
        { "onebit:32", 64, 8 + 16 },
    };
    size_t i;
    for (i = 0; i < COUNT(WANT); i++) {
        cg_op op = parsed(WANT[i].text);
        ASSERT_EQ_FMTm(
            WANT[i].text, (unsigned)(WANT[i].bytes + CG_HEADER_BYTES), (unsigned)cg_bound(&op, WANT[i].n), "%u");
    }
    PASS();
}

/* No vector, no place: null pointers are fine where there is nothing. */
TEST no_values_at_all(const row *r) {
    job j = job_open(&r->op, REF_ZEROS, 0, 1);
    ops_packet pk = pack(&j, NULL, cg_bound(&r->op, 0), 0, 1);
    ASSERT_ENUM_EQm(r->text, CG_OK, pk.status, ops_status);
    ASSERT_EQm(r->text, (size_t)CG_HEADER_BYTES, pk.len);
    ASSERT_ENUM_EQm(r->text, CG_OK, unpack(&j, pk.p, pk.len, NULL), ops_status);
    ASSERT_ENUM_EQm(r->text, CG_OK, unpack_add(&j, pk.p, pk.len, 2.0f, NULL), ops_status);
    free(pk.p);
    job_close(&j);
    PASS();
}

/* ---- suites ---- */

SUITE(presets) {
    int i;
    for (i = 0; i < row_count; i++) {
        RUN_TEST1(row_properties, &ROWS[i]);
        RUN_TEST1(row_extremes, &ROWS[i]);
        RUN_TEST1(row_keys, &ROWS[i]);
        if (!(ROWS[i].needs & MATRIX)) RUN_TEST1(no_values_at_all, &ROWS[i]);
    }
}

SUITE(errors) {
    int i;
    for (i = 0; i < row_count; i++) RUN_TEST1(row_error, &ROWS[i]);
    RUN_TESTp(seen_to_be_biased, "absmax:2:512:nearest", 0, 0);
    RUN_TESTp(seen_to_be_biased, "natural:nearest", 3, 0);
    RUN_TESTp(seen_to_be_biased, "randk:0.3:unscaled", 3, 0);
    RUN_TESTp(seen_to_be_biased, "topk:0.1", 1, 0);
    RUN_TESTp(seen_to_be_biased, "terngrad", 0, 1);
    RUN_TESTp(seen_to_be_biased, "wangni:0.1", 0, 1);
}

SUITE(grid) {
    int t, total = quick ? COMPOSITIONS / 8 : COMPOSITIONS;
    for (t = 0; t < total; t += 15) RUN_TESTp(compositions, t, t + 15 < total ? t + 15 : total);
    RUN_TEST(both_were_met);
    RUN_TEST(wrong_changes);
}

SUITE(traps) {
    int rank;
    RUN_TEST(natural_and_denormals);
    RUN_TEST(natural_clamp_at_254);
    RUN_TEST(terngrad_worst_omega);
    RUN_TEST(one_round_is_biased_two_are_not);
    RUN_TEST1(never_drawn_is_not_biased, "terngrad");
    RUN_TEST1(never_drawn_is_not_biased, "wangni:0.9");
    RUN_TEST1(never_drawn_is_not_biased, "randk:k=1");
    RUN_TEST(efsign_on_heavy_tails);
    RUN_TESTp(of_a_normal_vector, "e4m3", 0.0, 0.002);
    RUN_TESTp(of_a_normal_vector, "e5m2", 0.0, 0.01);
    RUN_TESTp(of_a_normal_vector, "nf4", 0.0, 0.01);
    RUN_TESTp(of_a_normal_vector, "drive", 0.571 * 0.98, 0.571 * 1.02);
    RUN_TESTp(of_a_normal_vector, "eden:2", 0.133 * 0.98, 0.133 * 1.02);
    RUN_TESTp(of_a_normal_vector, "eden:3", 0.0358 * 0.98, 0.0358 * 1.02);
    RUN_TESTp(of_a_normal_vector, "eden:4", 0.0096 * 0.98, 0.0096 * 1.02);
    for (rank = 1; rank <= 4; rank++) {
        RUN_TESTp(lowrank_of_a_deficient_matrix, rank, 1.0f);
        RUN_TESTp(lowrank_of_a_deficient_matrix, rank, 1e-20f);
    }
}

SUITE(defects) {
    static const char *const SCALED[] = { "efsign", "absmax:1:64", "absmax:4:64", "minmax:4:64", "terngrad", "qsgd:4",
        "levels:4:64:max", "flexpoint:8:64", "flex16:64", "trits:1.5", "onebit:64", "side:1|mean", "dither:4:64",
        "dynamic8", "e4m3:64", "e5m2:64", "nf4" };
    static const char *const ONE_BIT[] = { "sign", "efsign", "onebit", "onebit:32", "absmax:1:64", "minmax:1:33",
        "drive", "topk:0.5|sign", "randk:0.5|sign", "terngrad" };
    static const char *const LINEAR[] = { "efsign", "onebit", "absmax:1:64", "absmax:4:512", "minmax:3:512",
        "klevel:4:512", "terngrad", "terngrad:clip", "qsgd:7", "levels:7:64:max", "trits:1.5", "natural", "dither:4",
        "dynamic8", "e4m3", "e5m2", "mxfp4", "mxe4m3", "mxe5m2", "nf4", "flexpoint:4:64", "flex16:64", "drive",
        "eden:2.5", "srq:4", "dct|absmax:4:64", "stc:0.1", "sbc:0.1", "adaq:0.1", "qsparse:0.1:7", "cocktail:0.5:0.1:4",
        "demo:0.25", "wangni:0.1", "wangnivar:0.5", "dgc:0.1", "sidco:0.1", "mstopk:0.1", "permk:4|bf16",
        "lowrank:3:25:44", "atomo:3:25:44" };
    static const char *const CONSTANT[] = { "efsign", "onebit", "absmax:1:64", "absmax:4:64", "minmax:1:64",
        "minmax:8:64:nearest", "terngrad", "trits:1", "levels:3:64:max", "dynamic8", "nf4", "sbc:1", "stc:1" };
    size_t i;
    for (i = 0; i < COUNT(SCALED); i++) RUN_TEST1(scale_of_zero, SCALED[i]);
    RUN_TEST(sign_of_zero);
    for (i = 0; i < COUNT(ONE_BIT); i++) RUN_TEST1(one_bit_ends_where_it_ends, ONE_BIT[i]);
    for (i = 0; i < COUNT(LINEAR); i++) RUN_TEST1(follows_the_scale, LINEAR[i]);
    for (i = 0; i < COUNT(CONSTANT); i++) RUN_TEST1(constant_bucket, CONSTANT[i]);
    RUN_TEST(aligned_is_not_padded);
}

GREATEST_MAIN_DEFS();

int main(int argc, char **argv) {
    quick = !long_test();
    fill_table();
    GREATEST_MAIN_BEGIN();
    RUN_SUITE(presets);
    RUN_SUITE(errors);
    RUN_SUITE(grid);
    RUN_SUITE(traps);
    RUN_SUITE(defects);
    GREATEST_MAIN_END();
}
