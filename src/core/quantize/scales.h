/* scales: what a quantizer's row holds, and statistics and scales of a bucket

   Offers   cg_quantizer_, cg_bucket_stats_, cg_levels_make_, and the measure, set_scales and legal functions of rows
   Needs    base, kernels, codes (symbols)
   Touches  nothing but its arguments
   Other headers may use: cg_energy_
   A bucket is a run of values that share one set of scales. A row says what must be known of a bucket before its
   values can be coded; the loop in encode.h does the rest: blocks, chunks, buckets, the finite check, packing and
   the checksum. Sums over a bucket are in f64, 16 lanes over each run between multiples of 2048, folded by halves;
   runs are added in order within blocks of 65536, and blocks in order. */

/* What encode needs: nothing; the statistics of the bucket first; or nothing first, but the sum of its lanes gives
   the one scale of the whole vector afterwards. */
enum { CG_NEEDS_NOTHING_, CG_NEEDS_BUCKET_STATS_, CG_NEEDS_SUM_AFTERWARDS_ };
/* What encode writes: bits as they stand in the packet, or a byte per value, still to be packed or entropy coded.
   Levels of 16 bits are always entropy coded, by core/rate.h, which does not call encode. */
enum { CG_OUTPUT_PACKED_, CG_OUTPUT_SYMBOLS_, CG_OUTPUT_LEVELS_ };

/* What is known of a bucket. A measure function fills the fields that its set_scales function reads; absmax_bits
   reaches CG_INF_BITS_ if and only if a value is not finite. */
typedef struct cg_bucket_stats_ {
    uint32_t absmax_bits;
    float lo, hi;       /* smallest and largest value: range */
    double sums[2];     /* norm, range: squares; ternary: squares, values; signed_sums: negative values, the others */
    uint64_t negatives; /* values below zero: signed_sums */
    uint64_t count;     /* values; set by the loop, not by measure */
} cg_bucket_stats_;

/* How a scale is stored in a byte, perhaps times a float that all values share, which then stands before the bytes. */
typedef struct cg_byte_scale_ {
    uint8_t largest;                     /* larger bytes are no scales */
    float (*vector_scale)(float absmax); /* of all values; NULL: there is none */
    /* of what set_scales has made of a bucket */
    unsigned (*put)(const cg_stage *stage, float scale, float vector_scale);
    float (*get)(unsigned byte, float vector_scale);
} cg_byte_scale_;
/* A row of the table of quantizers, in core/rows.h. The functions may be called from several threads at once. */
typedef struct cg_quantizer_ {
    cg_stage_row_ stage;
    uint8_t needs;                    /* CG_NEEDS_* */
    uint8_t scale_count, scale_width; /* stored per bucket: how many, of so many bytes */
    const cg_byte_scale_ *byte_scale; /* NULL: scales are floats */
    /* adds n values, at most CG_CHUNK_, to *stat */
    void (*measure)(
        const cg_kernels_ *kernels, const cg_stage *stage, const float *v, size_t n, cg_bucket_stats_ *stat);
    /* scale_count scales of a bucket; all its values are finite */
    void (*set_scales)(const cg_stage *stage, const cg_bucket_stats_ *stat, float *scales);
    int (*legal)(const float *scales); /* are these scales that an encoder can have stored? */
    uint8_t output;                    /* CG_OUTPUT_* */
    uint8_t bits;                      /* per value; 0: as many as 2*levels + 1 symbols take, or stage.arg */
    uint32_t fixed_bucket;             /* values; 0: the stage's size */
    float full_scale;                  /* encode wants values on a grid where the scale is this large; 0: as they are */
    /* NULL, or the number of levels on either side of zero; 0: symbols have no middle. With CG_HAS_GRID_ symbols are
       such levels times the scale, or steps of it (CG_SCALE_IS_STEP_). */
    int32_t (*levels)(const cg_stage *stage);
    unsigned (*bits_x32)(const cg_stage *stage); /* NULL, or the bits per value, times 32 */
    /* n values of one bucket, at most CG_CHUNK_, to out. position: of v[0] in its block, whose key this is. lanes: 16
       sums to add to, if rescale or CG_NEEDS_SUM_AFTERWARDS_ wants them. Returns the largest magnitude as bits where
       no measure has seen the values, else 0. */
    uint32_t (*encode)(const cg_kernels_ *kernels, const cg_stage *stage, const float *scales, cg_key_ key,
        uint32_t position, const float *v, size_t n, uint8_t *out, double *lanes);
    /* the reverse of encode: any bytes that stored_absmax_bits accepts give n finite floats. stream: out is larger than
       the caches, and aligned to 16 bytes */
    void (*decode)(const cg_kernels_ *kernels, const cg_stage *stage, const float *scales, const uint8_t *in, size_t n,
        float *out, int stream);
    /* NULL, or replaces the scales after encode has added `total` of the bucket to its lanes */
    void (*rescale)(const cg_bucket_stats_ *stat, double total, float *scales);
    /* NULL, or the largest magnitude of n stored values, as bits; from stored_limit on it is Inf or NaN */
    uint32_t (*stored_absmax_bits)(const cg_kernels_ *kernels, const uint8_t *in, size_t n);
    uint32_t stored_limit;
    uint64_t (*promise)(const cg_stage *stage, uint64_t k); /* levels: bytes of k values at most; 0: as the code's */
} cg_quantizer_;
/* The row of a quantize stage; NULL for a user codec or an unknown id. */
static const cg_quantizer_ *cg_quantizer_of_(const cg_stage *q); /* in core/rows.h */
/* Bits per value, times 32. */
static unsigned cg_bits_x32_of_(const cg_quantizer_ *row, const cg_stage *q) {
    const int32_t levels = row->levels ? row->levels(q) : 0;
    unsigned bits = row->bits;
    if (row->bits_x32) return row->bits_x32(q);
    if (bits || !levels) return 32u * (bits ? bits : q->arg);
    return 32 * (cg_log2_(2u * (uint64_t)levels) + 1); /* for 2 levels + 1 symbols */
}
/* The number of levels of quantizers with a grid. */
static int32_t cg_levels_one_(const cg_stage *stage) {
    (void)stage;
    return 1;
}
static int32_t cg_levels_of_bits_(const cg_stage *stage) { return (1 << (stage->arg - 1)) - 1; } /* 0 for 1 bit */
static int32_t cg_levels_of_arg_(const cg_stage *stage) { return stage->arg; }
static int32_t cg_levels_16_bits_(const cg_stage *stage) {
    (void)stage;
    return 32767;
}
static int32_t cg_levels_none_(const cg_stage *stage) {
    (void)stage;
    return 0;
}

/* Magnitudes below 2^-80 are multiplied by 2^100 before anything is divided by them, as their inverse may overflow. */
CG_INLINE_ int cg_is_tiny_(float scale) { return (cg_as_bits_(scale) & CG_ABS_MASK_) < 0x17800000u; }
#define CG_POW2_100_ 1.2676506002282294e30f       /* 2^100 */
#define CG_POW2_MINUS_100_ 7.888609052210118e-31f /* 2^-100 */

/* The grid of a bucket for encode and decode; inv_step is 0 until cg_encode_levels_ sets it. Tiny magnitudes are scaled
   up so that neither the step nor its inverse leaves the normal range, huge ones down so that a range cannot overflow,
   both by powers of two. */
static cg_levels_ cg_levels_make_(const cg_stage *stage, const float *scales) {
    const cg_quantizer_ *row = cg_quantizer_of_(stage);
    const int32_t levels = row->levels(stage);
    const int is_step = (row->stage.traits & CG_SCALE_IS_STEP_) != 0, is_range = row->scale_count == 2;
    float hi = is_range ? scales[1] : is_step ? cg_saturate_(cg_times_(scales[0], (float)levels)) : scales[0];
    float lo = is_range ? scales[0] : -hi;
    const uint32_t absmax_bits = cg_max32_(cg_as_bits_(lo) & CG_ABS_MASK_, cg_as_bits_(hi) & CG_ABS_MASK_);
    cg_levels_ q;
    q.prescale = absmax_bits >= 0x7e800000u ? 0.5f : absmax_bits < 0x17800000u ? CG_POW2_100_ : 1.0f; /* 2^126, 2^-80 */
    q.postscale = absmax_bits >= 0x7e800000u ? 2.0f : absmax_bits < 0x17800000u ? CG_POW2_MINUS_100_ : 1.0f;
    q.stochastic = !(stage->flags & CG_FLAG_NEAREST) && !(row->stage.traits & CG_ROUNDS_TO_NEAREST_);
    q.inv_step = 0.0f;
    lo *= q.prescale;
    hi *= q.prescale;
    if (levels) { /* so many on either side of the symbol for 0 */
        q.zero_symbol = levels;
        q.max_symbol = 2 * levels;
        q.encode_offset = q.decode_offset = 0.0f;
        q.range = hi;
        q.step = hi / (float)levels;
        if (is_step) {
            q.step = cg_times_(scales[0], q.prescale);
            q.range = cg_times_(q.step, (float)levels);
        }
    } else { /* symbols from the lowest value up, without one for 0 */
        float width = hi - lo;
        q.zero_symbol = 0;
        q.max_symbol = (1 << stage->arg) - 1;
        q.encode_offset = q.decode_offset = lo;
        q.range = width;
        q.step = width / (float)q.max_symbol;
    }
    return q;
}
/* what: CG_SUM_*. The sum is a part of the wire format, in the order of additions that kernels->lane_sum gives it. */
static double cg_lane_sum_of_(const cg_kernels_ *kernels, const float *v, size_t n, int what) {
    double lanes[16] = { 0.0 };
    CG_KERNEL_(kernels, lane_sum(v, n, what, lanes));
    return cg_lanes_reduce_(lanes);
}
/* The measure functions: each also sees whether a value is not finite, see cg_bucket_stats_. */
static void cg_measure_absmax_(
    const cg_kernels_ *kernels, const cg_stage *stage, const float *v, size_t n, cg_bucket_stats_ *stat) {
    (void)stage;
    stat->absmax_bits = cg_max32_(stat->absmax_bits, CG_KERNEL_(kernels, absmax_bits(v, n)));
}
static void cg_measure_norm_(
    const cg_kernels_ *kernels, const cg_stage *stage, const float *v, size_t n, cg_bucket_stats_ *stat) {
    if (stage->flags & CG_FLAG_MAX) {
        stat->absmax_bits = cg_max32_(stat->absmax_bits, CG_KERNEL_(kernels, absmax_bits(v, n)));
    } else { /* squares of finite floats do not overflow a double: Inf or NaN in the sum was Inf or NaN in v */
        double squares = cg_lane_sum_of_(kernels, v, n, CG_SUM_SQUARES_);
        stat->sums[0] += squares;
        if (!cg_is_finite64_(squares)) stat->absmax_bits = CG_INF_BITS_;
    }
}
static void cg_measure_ternary_(
    const cg_kernels_ *kernels, const cg_stage *stage, const float *v, size_t n, cg_bucket_stats_ *stat) {
    stat->absmax_bits = cg_max32_(stat->absmax_bits, CG_KERNEL_(kernels, absmax_bits(v, n)));
    if (!(stage->flags & CG_FLAG_CLIP)) return;
    stat->sums[0] += cg_lane_sum_of_(kernels, v, n, CG_SUM_SQUARES_);
    stat->sums[1] += cg_lane_sum_of_(kernels, v, n, CG_SUM_VALUES_);
}
static void cg_measure_range_(
    const cg_kernels_ *kernels, const cg_stage *stage, const float *v, size_t n, cg_bucket_stats_ *stat) {
    stat->absmax_bits = cg_max32_(stat->absmax_bits, CG_KERNEL_(kernels, range(v, n, &stat->lo, &stat->hi)));
    if (stage->flags & CG_FLAG_NORM) stat->sums[0] += cg_lane_sum_of_(kernels, v, n, CG_SUM_SQUARES_);
}
static void cg_measure_signed_sums_(
    const cg_kernels_ *kernels, const cg_stage *stage, const float *v, size_t n, cg_bucket_stats_ *stat) {
    uint8_t signs[CG_CHUNK_ / 8]; /* n <= CG_CHUNK_ */
    (void)stage;
    stat->absmax_bits = cg_max32_(stat->absmax_bits, CG_KERNEL_(kernels, sign_encode(v, n, signs, NULL)));
    stat->sums[0] += cg_lane_sum_of_(kernels, v, n, CG_SUM_NEGATIVE_);
    stat->sums[1] += cg_lane_sum_of_(kernels, v, n, CG_SUM_NONNEGATIVE_);
    for (size_t i = 0; i < (n + 7) / 8; i++) stat->negatives += cg_popcount_(signs[i]);
}

/* +0 for -0: a scale must not depend on which zero was seen first. */
static float cg_canonical_zero_(float v) { return cg_as_float_(cg_as_bits_(v) & CG_ABS_MASK_ ? cg_as_bits_(v) : 0u); }
static void cg_set_scales_absmax_(const cg_stage *stage, const cg_bucket_stats_ *stat, float *scales) {
    (void)stage;
    scales[0] = cg_as_float_(stat->absmax_bits);
}
static void cg_set_scales_norm_(const cg_stage *stage, const cg_bucket_stats_ *stat, float *scales) {
    scales[0] = stage->flags & CG_FLAG_MAX ? cg_as_float_(stat->absmax_bits) : cg_saturate64_(cg_sqrt_(stat->sums[0]));
}
static void cg_set_scales_ternary_(const cg_stage *stage, const cg_bucket_stats_ *stat, float *scales) {
    scales[0] = cg_as_float_(stat->absmax_bits);
    /* clipped at 2.5 standard deviations */
    if (stage->flags & CG_FLAG_CLIP && stat->count) {
        double mean = stat->sums[1] / (double)stat->count, mean_square = mean * mean, limit;
        CG_NO_FMA_(mean_square);
        limit = stat->sums[0] / (double)stat->count - mean_square;
        limit = 2.5 * cg_sqrt_(limit > 0.0 ? limit : 0.0);
        if (limit < (double)scales[0]) scales[0] = (float)limit;
    }
}
static void cg_set_scales_range_(const cg_stage *stage, const cg_bucket_stats_ *stat, float *scales) {
    scales[0] = cg_canonical_zero_(stat->lo);
    scales[1] = cg_canonical_zero_(stat->hi);
    if (stage->flags & CG_FLAG_NORM) { /* Suresh: the range is sqrt(2)*norm, which is never too short */
        double width = 1.4142135623730951 * cg_sqrt_(stat->sums[0]), hi;
        CG_NO_FMA_(width);
        hi = (double)scales[0] + width;
        if (hi > (double)scales[1]) scales[1] = cg_saturate64_(hi);
    }
}
static void cg_set_scales_threelc_(const cg_stage *stage, const cg_bucket_stats_ *stat, float *scales) {
    scales[0] = cg_saturate_(cg_times_(cg_as_float_(stat->absmax_bits), stage->value));
}
/* The step: the least power of two of which `levels` steps reach the largest magnitude. */
static void cg_set_scales_pow2_(const cg_stage *stage, const cg_bucket_stats_ *stat, float *scales) {
    const cg_quantizer_ *row = cg_quantizer_of_(stage);
    const unsigned bits = cg_bits_x32_of_(row, stage) / 32;
    const double levels = (double)row->levels(stage), absmax = (double)cg_as_float_(stat->absmax_bits),
                 min_step = 1.401298464324817e-45;                  /* 2^-149 */
    double step = cg_as_double_(cg_as_bits64_(absmax) >> 52 << 52); /* the power of two at or below absmax */
    scales[0] = 0.0f;
    if (!stat->absmax_bits) return;
    for (unsigned i = 0; i < bits && step > min_step; i++) step *= 0.5;
    while (step * levels < absmax && step < 1.7014118346046923e38) step *= 2.0; /* 2^127 */
    scales[0] = (float)step;
}
static void cg_set_scales_signed_means_(const cg_stage *stage, const cg_bucket_stats_ *stat, float *scales) {
    uint64_t others = stat->count - stat->negatives;
    (void)stage;
    scales[0] = stat->negatives ? cg_saturate64_(stat->sums[0] / (double)stat->negatives) : 0.0f;
    scales[1] = others ? cg_saturate64_(stat->sums[1] / (double)others) : 0.0f;
}
static void cg_set_scales_mean_(const cg_stage *stage, const cg_bucket_stats_ *stat, float *scales) {
    (void)stage;
    scales[0] = stat->count ? cg_canonical_zero_(cg_saturate64_((stat->sums[0] + stat->sums[1]) / (double)stat->count))
                            : 0.0f;
}
/* The exponent is that of the largest value of the element format, so that values may be cut off by up to a quarter.
   At random that would be a bias: then the exponent is one more where the largest value would be. */
#define CG_SET_SCALES_MX_(name, max_exponent, max_value)                                                              \
  static void name(const cg_stage *stage, const cg_bucket_stats_ *stat, float *scales) {                              \
    const unsigned byte = cg_e8m0_encode_(stat->absmax_bits, max_exponent);                                           \
    scales[0] = cg_e8m0_decode_(byte);                                                                                \
    if (stage->flags & CG_FLAG_STOCHASTIC && (double)cg_as_float_(stat->absmax_bits) > max_value * (double)scales[0]) \
      scales[0] = cg_e8m0_decode_(byte + 1);                                                                          \
  }
CG_SET_SCALES_MX_(cg_set_scales_mx_e2m1_, 2, 6.0)
CG_SET_SCALES_MX_(cg_set_scales_mx_e4m3_, 8, 448.0)
CG_SET_SCALES_MX_(cg_set_scales_mx_e5m2_, 15, 57344.0)
#undef CG_SET_SCALES_MX_
/* E8M0, which set_scales has already rounded to. */
static unsigned cg_e8m0_put_(const cg_stage *stage, float scale, float vector_scale) {
    (void)stage;
    (void)vector_scale;
    return cg_as_bits_(scale) >> 23;
}
static float cg_e8m0_get_(unsigned byte, float vector_scale) {
    (void)vector_scale;
    return cg_e8m0_decode_(byte);
}
static const cg_byte_scale_ cg_byte_e8m0_ = { 254, NULL, cg_e8m0_put_, cg_e8m0_get_ };
/* NVFP4: the value 6 of E2M1 stands for the largest magnitude of the bucket, times a scale in E4M3, of which the
   largest, 448, stands for the largest of all. The float of all values is rounded up, so that no scale is larger. The
   scale of a bucket is to nearest; at random it must not cut off the largest value, and is rounded up, too. */
static float cg_nvfp4_vector_scale_(float absmax) {
    float scale = (float)((double)absmax / 2688.0);
    if ((double)scale * 2688.0 < (double)absmax) scale = cg_as_float_(cg_as_bits_(scale) + 1);
    return scale;
}
static double cg_e4m3_value_(unsigned byte) { return 256.0 * (double)cg_f16_decode_((byte & 0x7fu) << 7); }
static float cg_nvfp4_get_(unsigned byte, float vector_scale) {
    return (float)(cg_e4m3_value_(byte) * (double)vector_scale);
}
static unsigned cg_nvfp4_put_(const cg_stage *stage, float absmax, float vector_scale) {
    const double scale = vector_scale > 0.0f ? (double)absmax / (6.0 * (double)vector_scale) : 0.0;
    const float nearest = (float)scale;
    uint8_t byte;
    cg_fp8_encode_scalar_(&nearest, 1, 1.0f, 0, &byte);
    if (stage->flags & CG_FLAG_STOCHASTIC && cg_e4m3_value_(byte) < scale && byte < 0x7e) byte++;
    return byte;
}
static const cg_byte_scale_ cg_byte_e4m3_ = { 0x7e, cg_nvfp4_vector_scale_, cg_nvfp4_put_, cg_nvfp4_get_ };
/* geometric: the smallest magnitude but 0, and the largest; for one level their mean. */
static void cg_measure_magnitudes_(
    const cg_kernels_ *kernels, const cg_stage *stage, const float *v, size_t n, cg_bucket_stats_ *stat) {
    uint32_t least = cg_as_bits_(stat->lo) - 1; /* 0 becomes the largest number */
    stat->absmax_bits = cg_max32_(stat->absmax_bits, CG_KERNEL_(kernels, absmax_bits(v, n)));
    if (stage->arg == 1) {
        stat->sums[0] += cg_lane_sum_of_(kernels, v, n, CG_SUM_ABS_);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const uint32_t m = (cg_load_bits_(v, i) & CG_ABS_MASK_) - 1;
        least = m < least ? m : least;
    }
    stat->lo = cg_as_float_(least + 1);
}
static void cg_set_scales_magnitudes_(const cg_stage *stage, const cg_bucket_stats_ *stat, float *scales) {
    scales[0] = stat->lo;
    scales[1] = cg_as_float_(stat->absmax_bits);
    if (stage->arg == 1) scales[0] = scales[1] = cg_saturate64_(stat->sums[0] / (double)stat->count);
    if (!stat->absmax_bits) scales[0] = scales[1] = 0.0f;
}
static int cg_legal_magnitudes_(const float *scales) {
    return cg_as_bits_(scales[0]) < CG_INF_BITS_ && cg_as_bits_(scales[1]) < CG_INF_BITS_ && scales[0] <= scales[1];
}
static int cg_legal_magnitude_(const float *scales) { return cg_as_bits_(scales[0]) < CG_INF_BITS_; }
static int cg_legal_finite_(const float *scales) { return cg_is_finite_(scales[0]); }
static int cg_legal_range_(const float *scales) {
    return cg_is_finite_(scales[0]) && cg_is_finite_(scales[1]) && scales[0] <= scales[1];
}
static int cg_legal_finite2_(const float *scales) { return cg_is_finite_(scales[0]) && cg_is_finite_(scales[1]); }
/* Sum of squares of n values, in the order of sums of this library (16 lanes, folded by halves); Inf or NaN if one of
   them is. */
CG_OFFERED_ double cg_energy_(const cg_kernels_ *kernels, const float *v, size_t n) {
    return cg_lane_sum_of_(kernels, v, n, CG_SUM_SQUARES_);
}
