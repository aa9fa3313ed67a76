/* error: how large the error of each stage is, for any vector, and of stages one after the other

   Offers   the error functions of all rows, cg_op_error_, cg_inflation_
   Needs    base, stages, plan, quantize (levels, tables of values)
   Touches  nothing but its arguments
   Other headers may use: cg_inflation_
   A bound is the least w that is known with E|C(v) - v|^2 <= w |v|^2 for all v; what f32 arithmetic rounds comes on
   top, and values must be normal numbers of the format that they are written in. Most bounds follow from one argument:
   the worst vector has one value T, which fixes the scale, and makes all others alike, so that error - w value^2 of
   each is as large as possible. Inflations are the bounds of the papers: error feedback divides by them, so that better
   ones would change the results of trainings. */

static void cg_error_unknown_(const cg_op *op, uint64_t n, cg_error_ *e) {
    (void)op;
    (void)n;
    e->bound = e->count = -1.0;
}
static void cg_error_none_(const cg_op *op, uint64_t n, cg_error_ *e) {
    (void)op;
    (void)n;
    e->bound = 0.0;
}
/* The error is a part of v itself, between nothing and all of it. */
static void cg_error_by_data_(const cg_op *op, uint64_t n, cg_error_ *e) {
    (void)op;
    (void)n;
    e->bound = 1.0;
    e->count = -1.0;
    e->data_decides = 1;
}
static double cg_min_f64_(double a, double b) { return a < b ? a : b; }
static double cg_max_f64_(double a, double b) { return a > b ? a : b; }
/* A stage that keeps some values as they are, and so at least and at most these shares of |v|^2. */
static void cg_error_keep_(cg_error_ *e, double least, double most) {
    e->least = least;
    e->most = most;
    e->bound = 1.0 - least;
}

/* ---- samples ---- */

/* One value of each stratum, times its length: E|C(v)|^2 = sum of length*v^2. */
static void cg_error_randk_(const cg_op *op, uint64_t n, cg_error_ *e) {
    const uint64_t k = cg_sampled_randk_(op, n, NULL), longest = n / k + (n % k != 0);
    if (e->is_biased) {
        cg_error_keep_(e, 1.0 / (double)longest, 1.0 / (double)(n / k));
        return;
    }
    e->bound = (double)longest - 1.0;
    e->inflation = (double)n / (double)k;
}
static void cg_error_permk_(const cg_op *op, uint64_t n, cg_error_ *e) {
    const double workers = (double)op->sample.size;
    (void)n;
    if (e->is_biased) {
        cg_error_keep_(e, 1.0 / workers, 1.0 / workers);
        return;
    }
    e->bound = workers - 1.0;
    e->inflation = workers;
}

/* One block of a few, in turn; a value at their edges has its turn in two of them. Over all turns. */
static void cg_error_cyclic_(const cg_op *op, uint64_t n, cg_error_ *e) {
    const uint64_t blocks = op->sample.size, least = blocks > n ? blocks / n : 1,
                   most = blocks > n ? least + 1
        : n % blocks                 ? 2
                                     : 1;
    if (e->is_biased) {
        cg_error_keep_(e, (double)least / (double)blocks, (double)most / (double)blocks);
        return;
    }
    e->inflation = (double)blocks / (double)least;
    e->bound = e->inflation - 1.0;
}

/* ---- transforms ---- */

/* Probabilities in the order of the singular values do no worse than equal ones. */
static void cg_error_atomo_(const cg_op *op, uint64_t n, cg_error_ *e) {
    const double rank_ratio = cg_min_f64_((double)cg_matrix_rows_(op), (double)cg_matrix_cols_(op)) /
        (double)cg_matrix_r_(op);
    (void)n;
    e->inflation = rank_ratio > 1.0 ? rank_ratio : 1.0;
    e->bound = e->inflation - 1.0;
}

/* ---- selections ---- */

/* The k largest of n have at least the share k/n. Dropped values of MSTop-k may be larger than kept ones only where
   all of them are below the mean magnitude, and then those kept are above it on average. */
static void cg_error_largest_(const cg_op *op, uint64_t n, cg_error_ *e) {
    e->count = (double)cg_selected_k_(op, n);
    cg_error_keep_(e, e->count / (double)n, 1.0);
}
/* The largest, but perhaps a fifth too few. */
static void cg_error_estimated_(const cg_op *op, uint64_t n, cg_error_ *e) {
    const uint64_t k = cg_k_from_ratio_(op->select.value, 0, n);
    e->count = (double)k;
    cg_error_keep_(e, (double)(k - k / 5) / (double)n, 1.0);
}
static void cg_error_chunked_(const cg_op *op, uint64_t n, cg_error_ *e) {
    const uint64_t chunk = op->select.size, last = n % chunk;
    double least = 1.0;
    if (n >= chunk) least = (double)cg_k_from_ratio_(op->select.value, 0, chunk) / (double)chunk;
    if (last) least = cg_min_f64_(least, (double)cg_k_from_ratio_(op->select.value, 0, last) / (double)last);
    e->count = (double)cg_selected_chunked_(op, n);
    cg_error_keep_(e, least, 1.0);
}
/* The largest of each side: k of m, where k is ratio*m rounded, which is least to m where 1.49 becomes 1. */
static void cg_error_sides_(const cg_op *op, uint64_t n, cg_error_ *e) {
    const double ratio = (double)op->select.value;
    e->count = (double)cg_k_from_ratio_(op->select.value, 0, n);
    cg_error_keep_(e, ratio < 1.0 ? cg_max_f64_(1.0 / (double)n, ratio / 1.5) : 1.0, 1.0);
}
/* The side whose k largest have the larger mean m. Those of the other side have a sum of at most k*m, which may be one
   value: at worst a single value m stands against n - 1 of the same size, or against one of k*m. */
static void cg_error_side_(const cg_op *op, uint64_t n, cg_error_ *e) {
    e->count = (double)cg_selected_k_(op, n);
    cg_error_keep_(e, 1.0 / cg_max_f64_((double)n, 1.0 + e->count * e->count), 1.0);
}
/* Probabilities by magnitude do no worse than equal ones. */
static void cg_error_wangni_(const cg_op *op, uint64_t n, cg_error_ *e) {
    e->inflation = 1.0 / (double)op->select.value;
    e->bound = e->inflation - 1.0;
    e->count = (double)op->select.value * (double)n;
}
static void cg_error_wangnivar_(const cg_op *op, uint64_t n, cg_error_ *e) {
    (void)n;
    e->inflation = 1.0 + (double)op->select.value;
    e->bound = (double)op->select.value;
    e->count = -1.0;
}
static void cg_error_blocks_(const cg_op *op, uint64_t n, cg_error_ *e) {
    (void)op;
    (void)n;
    e->count = -1.0; /* drops zeros */
}

/* Cut to s times their root mean square: at worst one value is all of v, and keeps the share s^2/n of its square. */
static void cg_error_clip_(const cg_op *op, uint64_t n, cg_error_ *e) {
    const double left = (double)op->clip.value / cg_sqrt_((double)n);
    e->bound = left < 1.0 ? (1.0 - left) * (1.0 - left) : 0.0;
    e->is_biased = left < 1.0;
}

/* ---- quantizers; n values have one scale ---- */

/* To nearest, with 0 among the levels, so that no value errs by more than itself. The error of T, or of any value
   relative to it, is at most c; that of others may also be h*T, and at worst they are h*T. */
static double cg_error_to_nearest_(double c, double h, uint64_t n) {
    const double others = ((double)n - 1.0) * h * h;
    return (c + others) / (1.0 + others);
}
/* To the nearest of these magnitudes, from 0 to 1, as shares of T: at worst all others lie in the middle of one gap. */
static double cg_error_to_table_(const float *values, int count, int sign, uint64_t n) {
    const double others = (double)n - 1.0;
    double worst = 0.0;
    for (int i = 0; i + 1 < count; i++) {
        const double a = (double)values[i], b = (double)values[i + 1], middle = (a + b) * 0.5, half = (b - a) * 0.5;
        if (middle * (double)sign < 0.0) continue;
        worst = cg_max_f64_(worst, others * half * half / (1.0 + others * middle * middle));
    }
    return worst;
}
/* n times the expected square of the largest magnitude, as a share of |v|^2: at most n; after a rotation, whose values
   are sums with random signs, at most 2 ln(tails*n) + 2 (tails: 1 for the largest value, 2 for the largest magnitude).
   A bucket that is not a part of one rotated block may have the largest values of its neighbours. */
static double cg_peak_(const cg_op *op, uint64_t n, double tails) {
    double peak;
    if ((cg_op_traits_(op) & (CG_IS_ROTATION_ | CG_IS_SELECTION_)) != CG_IS_ROTATION_) return (double)n;
    peak = 2.0 * cg_ln_(tails * (double)n) + 2.0;
    if (CG_ROTATE_BLOCK_ % n) peak *= 1.0 + 2.0 * (double)n / (double)CG_ROTATE_BLOCK_;
    return cg_min_f64_(peak, (double)n);
}
/* levels on either side of 0, the last of them T; 0 levels: only -T and T. At random, a value v between two levels has
   the variance (v - lower)*(upper - v); at worst the others are below the first level, where they sum up to
   (sqrt(1 + (n-1)/levels^2) - 1)/2. */
static void cg_error_levels_of_max_(const cg_op *op, uint64_t n, int32_t levels, cg_error_ *e) {
    const double b = (double)n, l = (double)levels;
    e->step = levels ? 1.0 / l : 2.0;
    if (!levels) {
        e->bound = cg_min_f64_(b, cg_peak_(op, n, 2.0)) - 1.0;
        if (e->bound < 0.0) e->bound = b - 1.0;
        if (!e->is_biased) e->inflation = 1.0 + b;
        return;
    }
    e->bound = e->is_biased ? cg_error_to_nearest_(0.0, 0.5 / l, n) : (cg_sqrt_(1.0 + (b - 1.0) / (l * l)) - 1.0) / 2.0;
    if (n > 1) e->bound = cg_min_f64_(e->bound, cg_peak_(op, n, 2.0) / (4.0 * l * l));
    if (!e->is_biased) e->inflation = 1.0 + (levels == 1 ? (cg_sqrt_(b) - 1.0) / 2.0 : b / (4.0 * l * l));
}
static void cg_error_grid_(const cg_op *op, uint64_t n, cg_error_ *e) {
    cg_error_levels_of_max_(op, n, cg_quantizer_of_(&op->quantize)->levels(&op->quantize), e);
}
/* Clipped at c <= 2.5 |v|/sqrt(n): what is cut off is less than the values themselves, and the variance of the rest u
   is at most 2.5 |v| |u| - |u|^2, so that both are at most (1 + 2.5 y - 2 y^2) |v|^2, where y = |u|/|v|. */
static void cg_error_terngrad_(const cg_op *op, uint64_t n, cg_error_ *e) {
    if (!(op->quantize.flags & CG_FLAG_CLIP)) cg_error_levels_of_max_(op, n, 1, e);
    else e->bound = op->quantize.flags & CG_FLAG_NEAREST ? 1.0 : 1.78125;
}
/* The range is at most sqrt(2) |v|, and errors are half a step; the ends of the range are exact. */
static void cg_error_minmax_(const cg_op *op, uint64_t n, cg_error_ *e) {
    const double b = (double)n, steps = (double)((1 << (op->quantize.arg & 15)) - 1),
                 exact = op->quantize.flags & CG_FLAG_NORM ? 1.0 : 2.0;
    e->bound = b > exact ? (b - exact) / (2.0 * steps * steps) : 0.0;
    if (!(op->quantize.flags & CG_FLAG_NORM)) {
        e->bound = cg_min_f64_(e->bound, cg_peak_(op, n, 1.0) / (steps * steps));
        e->step = 2.0 / steps;
    }
    if (!e->is_biased) e->inflation = 1.0 + b / (2.0 * steps * steps);
}
/* Of the norm: with a = sqrt(n)/levels and a share y^2 of |v|^2 below the first level, the variance is at most
   (a y - y^2) |v|^2, and n/4 squares of a step. */
static void cg_error_levels_(const cg_op *op, uint64_t n, cg_error_ *e) {
    const double b = (double)n, root = cg_sqrt_(b), s = (double)op->quantize.arg, a = root / s;
    if (op->quantize.flags & CG_FLAG_MAX) {
        cg_error_levels_of_max_(op, n, op->quantize.arg, e);
        return;
    }
    if (n > 1) e->bound = e->is_biased ? cg_min_f64_(1.0, a * a / 4.0) : a <= 2.0 ? a * a / 4.0 : a - 1.0;
    if (!e->is_biased) e->inflation = 1.0 + cg_min_f64_(b / (s * s), root / s);
}
/* The step is below 2 T/levels. */
static void cg_error_flexpoint_(const cg_op *op, uint64_t n, cg_error_ *e) {
    const double h = 1.0 / (double)cg_quantizer_of_(&op->quantize)->levels(&op->quantize);
    e->bound = cg_error_to_nearest_(h * h, h, n);
}
static void cg_error_trits_(const cg_op *op, uint64_t n, cg_error_ *e) {
    const double m = (double)op->quantize.value;
    e->bound = cg_error_to_nearest_((m - 1.0) * (m - 1.0), m / 2.0, n);
}
/* One mean, or one for each sign: (sum of |v|)^2 >= |v|^2. */
static void cg_error_mean_(const cg_op *op, uint64_t n, cg_error_ *e) {
    (void)op;
    e->bound = 1.0 - 1.0 / (double)n;
}
/* Floats with a mantissa of which the last bit is `unit` times the first. To nearest: half a unit. At random, between 1
   and 1 + unit the variance is (v - 1)*(1 + unit - v). */
static void cg_error_half_(double unit, cg_error_ *e) {
    e->bound = unit * unit / 4.0;
    e->step = unit;
    if (!e->is_biased) e->bound /= 1.0 + unit;
    if (!e->is_biased) e->inflation = 1.0 + e->bound;
}
static void cg_error_f16_(const cg_op *op, uint64_t n, cg_error_ *e) {
    (void)op;
    (void)n;
    cg_error_half_(0.0009765625, e); /* 2^-10 */
}
static void cg_error_bf16_(const cg_op *op, uint64_t n, cg_error_ *e) {
    (void)op;
    (void)n;
    cg_error_half_(0.0078125, e); /* 2^-7 */
}
/* Powers of two: between 1 and 2 the variance is (v - 1)*(2 - v), and the error to nearest at most 1/3 of v. */
static void cg_error_natural_(const cg_op *op, uint64_t n, cg_error_ *e) {
    (void)op;
    (void)n;
    e->bound = e->is_biased ? 1.0 / 9.0 : 0.125;
    if (!e->is_biased) e->inflation = 1.0 + 0.125;
}
/* Powers of two times the norm down to a lowest one, u, and 0. At random, with a = u sqrt(n) and a share y^2 of |v|^2
   below u: (1 - y^2)/8 + a y - y^2. */
static void cg_error_dither_(const cg_op *op, uint64_t n, cg_error_ *e) {
    const double b = (double)n, root = cg_sqrt_(b);
    double lowest_level = 1.0, a; /* a power of 1/2 */
    for (int i = 2; i < 1 << (op->quantize.arg - 1); i++) lowest_level *= 0.5;
    a = root * lowest_level;
    if (e->is_biased)
        e->bound = op->quantize.flags & CG_FLAG_MAX ? cg_error_to_nearest_(1.0 / 9.0, lowest_level / 2.0, n)
                                                    : (1.0 + 8.0 * cg_min_f64_(1.0, a * a / 4.0)) / 9.0;
    else e->bound = a <= 2.25 ? 0.125 + a * a * (2.0 / 9.0) : a - 1.0;
    if (n == 1) e->bound = 0.0;
    if (!e->is_biased) e->inflation = 1.0 + (0.125 + root * lowest_level);
}
static void cg_error_dynamic8_(const cg_op *op, uint64_t n, cg_error_ *e) {
    (void)op;
    e->bound = cg_error_to_table_(cg_dynamic8_values_, 128, 1, n);
}
/* At random to neighbours among magnitudes, of which T has a variance of c T^2 at most, as have all values but those
   between a and b, as shares of T: at worst all others are there. w is the bound if no v makes
   c + (n-1)*(v - a)*(b - v) > w + w*(n-1)*v^2. */
static double cg_error_between_(double c, double a, double b, uint64_t n) {
    const double others = (double)n - 1.0, p = 1.0 - c + others * a * b;
    return (cg_sqrt_(p * p + 4.0 * c + others * ((b - a) * (b - a))) - p) / 2.0;
}
static void cg_error_nf4_(const cg_op *op, uint64_t n, cg_error_ *e) {
    (void)op;
    if (!e->is_biased) {
        for (int i = 0; i < 15; i++)
            e->bound = cg_max_f64_(
                e->bound, cg_error_between_(0.0, (double)cg_nf4_values_[i], (double)cg_nf4_values_[i + 1], n));
        e->inflation = 1.0 + e->bound;
        e->step = 0.3038071990013123; /* from -1 to the next */
        return;
    }
    e->bound = cg_max_f64_(cg_error_to_table_(cg_nf4_values_, 16, 1, n), cg_error_to_table_(cg_nf4_values_, 16, -1, n));
}
/* Small floats: half a unit in the last place of normal numbers, or, for MX, what lies above the largest number, which
   is an eighth or a quarter of it; and half a step of denormals, as a share of the least T. At random: as halves, and
   at worst others are below the smallest denormal; `top` is the largest unit, as a share of T. */
static void cg_error_small_(const cg_op *op, uint64_t n, double relative, double half_step, double unit, double lowest,
    double top, cg_error_ *e) {
    (void)op;
    if (e->is_biased) {
        e->bound = cg_error_to_nearest_(relative, half_step, n);
        return;
    }
    e->bound = cg_error_between_(unit * unit / (4.0 * (1.0 + unit)), 0.0, lowest, n);
    e->step = top;
    e->inflation = 1.0 + e->bound;
}
#define CG_ERROR_FLOAT_(format, relative, half_step, unit, lowest, top)         \
  static void cg_error_##format##_(const cg_op *op, uint64_t n, cg_error_ *e) { \
    cg_error_small_(op, n, relative, half_step, unit, lowest, top, e);          \
  }
CG_ERROR_FLOAT_(e4m3, 1.0 / 256.0, 1.0 / (1024.0 * 448.0), 0.125, 1.0 / (512.0 * 448.0), 32.0 / 448.0)
CG_ERROR_FLOAT_(e5m2, 1.0 / 64.0, 1.0 / (131072.0 * 57344.0), 0.25, 1.0 / (65536.0 * 57344.0), 8192.0 / 57344.0)
CG_ERROR_FLOAT_(mxe4m3, 1.0 / 64.0, 1.0 / (1024.0 * 256.0), 0.125, 1.0 / (512.0 * 224.0), 0.125)
CG_ERROR_FLOAT_(mxe5m2, 1.0 / 64.0, 1.0 / (131072.0 * 32768.0), 0.25, 1.0 / (65536.0 * 28672.0), 0.25)
CG_ERROR_FLOAT_(mxfp4, 1.0 / 16.0, 1.0 / 16.0, 0.5, 1.0 / 6.0, 0.5)
#undef CG_ERROR_FLOAT_
/* rate: the step is as large as the bits are few. step: at random each value has a variance of step^2/4 at most, and
   the step is s root mean squares, or the largest magnitude over 32766. To nearest a value in the dead zone is lost. */
static void cg_error_rate_(const cg_op *op, uint64_t n, cg_error_ *e) {
    (void)op;
    (void)n;
    e->bound = e->is_biased ? 1.0 : -1.0;
    e->data_decides = e->is_biased;
}
static void cg_error_step_(const cg_op *op, uint64_t n, cg_error_ *e) {
    const double s = (double)op->quantize.value, w = cg_max_f64_(s * s, (double)n / 1073610756.0);
    e->bound = e->is_biased ? cg_min_f64_(1.0, w) : w / 4.0;
    if (!e->is_biased) e->inflation = 1.0 + e->bound;
}
/* NVFP4: the scale of a bucket is rounded to E4M3, so that its largest value T, which should become 6, lies between
   6/(1 + 1/16) and 6/(1 - 1/16); at random between 6/(1 + 1/8) and 6. Scales below 2^-6 are denormals and less exact:
   their values are below T of all values times 6*2^-6/2688, and to nearest they may be lost. */
static void cg_error_nvfp4_(const cg_op *op, uint64_t n, cg_error_ *e) {
    const double tiny = 6.0 / 64.0 / 2688.0, all = e->total > 16.0 ? e->total - 16.0 : 0.0;
    (void)op;
    if (e->is_biased) {
        const double share = all * tiny * tiny;
        e->bound = cg_error_to_nearest_(0.04, 0.25 / (6.0 / 1.0625), n);
        e->bound = (e->bound + share) / (1.0 + share);
        return;
    }
    e->bound = cg_error_between_(1.0 / 24.0, 0.0, 0.5 / (6.0 / 1.125), n) + all * (tiny / 12.0) * (tiny / 12.0) / 4.0;
    e->step = 0.375;
    e->inflation = 1.0 + e->bound;
}
/* geometric: one mean magnitude; more levels lie between the least and the largest magnitude, wherever those are. */
static void cg_error_geometric_(const cg_op *op, uint64_t n, cg_error_ *e) {
    e->bound = op->quantize.arg == 1 ? 1.0 - 1.0 / (double)n : -1.0;
}
/* D/(1 - D), where D is the distortion of Lloyd-Max levels for the normal distribution, which rotated values have to
   within 2 %. After fewer than three rounds distribution and bias depend on the data: two equal spikes have an error of
   1 after one round at 1 bit, and one of 1.03 D/(1 - D) after two at 4 bits. */
static void cg_error_lloyd_(const cg_op *op, uint64_t n, cg_error_ *e) {
    static const double distortion[] = { 1.0, 0.3634, 0.1175, 0.03454, 0.009501, 0.009501 };
    const float bits = op->quantize.value;
    const int whole = (int)bits;
    const double more = (double)bits - (double)whole,
                 d = distortion[whole] + more * (distortion[whole + 1] - distortion[whole]);
    (void)n;
    e->bound = op->transform.arg < 3 ? -1.0 : 1.02 * d / (1.0 - d);
    e->is_biased = op->transform.arg < 3;
    e->inflation = 1.0 + (bits < 2.0f ? 0.571 : bits < 3.0f ? 0.133 : 0.036);
}

/* ---- operators ---- */

/* The error of op's stage in that slot; plan is op's, with n > 0. */
static void cg_stage_error_(const cg_op *op, const cg_plan_ *plan, unsigned slot, cg_error_ *e) {
    const cg_stage *s = cg_op_stage_const_(op, slot);
    const cg_quantizer_ *quantizer = cg_quantizer_of_(&op->quantize);
    uint64_t seen[CG_SLOT_COUNT_],
        bucket = quantizer && quantizer->fixed_bucket ? quantizer->fixed_bucket : op->quantize.size;
    seen[CG_SLOT_SAMPLE_] = plan->n;
    seen[CG_SLOT_TRANSFORM_] = plan->sampled_n;
    seen[CG_SLOT_SELECT_] = plan->transformed_n;
    seen[CG_SLOT_QUANTIZE_] = bucket && bucket < plan->max_selected ? bucket : plan->max_selected;
    seen[CG_SLOT_CODE_] = seen[CG_SLOT_CLIP_] = plan->max_selected;
    memset(e, 0, sizeof *e);
    e->most = e->inflation = 1.0;
    e->count = (double)seen[slot];
    e->total = (double)plan->max_selected;
    e->is_biased = cg_stage_is_biased_(slot, s);
    cg_stage_row_of_(slot, s)->error(op, seen[slot], e);
}
/* The error w of a quantizer, *all, with that of a clip before it, b. Values u are left of v, each of its sign and
   nearer to 0, so that |v - u|^2 <= |v|^2 - |u|^2. Its error is orthogonal to v - u if it is unbiased; else it may
   add up: sqrt(w) |u| + |v - u| is largest where |v - u|^2 is b |v|^2, or where |v|^2 = (1 + w) |v - u|^2. */
static void cg_clip_error_(const cg_op *op, const cg_plan_ *plan, cg_error_ *all) {
    const double w = all->bound;
    cg_error_ e;
    if (!cg_is_clipped_(op)) return;
    cg_stage_error_(op, plan, CG_SLOT_CLIP_, &e);
    if (w >= 0.0 && e.bound > 0.0) {
        const double sum = cg_sqrt_(w * (1.0 - e.bound)) + cg_sqrt_(e.bound);
        if (!all->is_biased) all->bound = w < 1.0 ? 1.0 - (1.0 - e.bound) * (1.0 - w) : w;
        else all->bound = w / (1.0 + w) > 1.0 - e.bound ? 1.0 + w : sum * sum;
    }
    all->is_biased |= e.is_biased;
}
/* The error of all stages, and how many values are kept. A stage that is unbiased makes |v|^2 at most 1 + bound times
   as large in expectation, and if the stage behind it is unbiased, too, their errors are orthogonal; otherwise they may
   add up. One that keeps some values as they are leaves the others' energy and the error of what it keeps. */
static void cg_op_error_(const cg_op *op, const cg_plan_ *plan, cg_error_ *all) {
    cg_stage_error_(op, plan, CG_SLOT_QUANTIZE_, all);
    cg_clip_error_(op, plan, all);
    for (unsigned slot = CG_SLOT_QUANTIZE_; slot--;) {
        cg_error_ e;
        const double w = all->bound;
        cg_stage_error_(op, plan, slot, &e);
        if (slot == CG_SLOT_SELECT_) all->count = e.count;
        all->data_decides |= e.data_decides;
        if (w < 0.0 || e.bound < 0.0) all->bound = -1.0;
        else if (e.is_biased) all->bound = w <= 1.0 ? 1.0 - e.least * (1.0 - w) : 1.0 + e.most * (w - 1.0);
        else if (!all->is_biased) all->bound = (1.0 + e.bound) * (1.0 + w) - 1.0;
        else if (e.bound > 0.0) {
            const double sum = cg_sqrt_(w * (1.0 + e.bound)) + cg_sqrt_(e.bound);
            all->bound = sum * sum;
        }
        all->is_biased |= e.is_biased;
    }
}
/* E|C(x)|^2 <= inflation |x|^2 for an unbiased operator, by the bounds of the papers; 1 for biased stages. residual:
   without a quantizer whose values all stay closer to themselves than the largest magnitude of their bucket, as a
   residual cannot grow by it, however large its inflation is; after a transform that has to hold for the mean of
   squares. */
CG_OFFERED_ double cg_inflation_(const cg_op *op, const cg_plan_ *plan, int residual) {
    double inflation = 1.0;
    if (!plan->n || !plan->transformed_n) return 1.0;
    for (unsigned slot = CG_SLOT_SAMPLE_; slot <= CG_SLOT_QUANTIZE_; slot++) {
        cg_error_ e;
        if (cg_stage_is_biased_(slot, cg_op_stage_const_(op, slot))) continue;
        cg_stage_error_(op, plan, slot, &e);
        if (residual && e.step > 0.0 && (op->transform.id ? e.step <= 0.5 : e.step < 1.0)) continue;
        inflation *= e.inflation;
    }
    return inflation;
}
