/* rate: one step for all values, a dead zone, and levels of 16 bits that are entropy coded: rate and step

   Offers   cg_rate_counts_, cg_rate_count_, the functions that rows of such quantizers name, cg_rate_bound_
   Needs    base, random, codes (rans, rans_plan), quantize/formats
   Touches  nothing but its arguments
   The scales of a packet are two floats. The first is the step; with a sign, values were multiplied by 2^100 before
   they were divided by it. The second is a whole number 4096*c + o: level 1 stands for c/2048 steps, level m > 1
   for m + (o - 2048)/4096 steps; with a sign, values were multiplied by 2^-100. */

#define CG_RATE_LEVELS_MAX_ 32767
#define CG_RATE_PLAIN_ (4096.0f * 2048.0f + 2048.0f) /* level m stands for m steps */
#define CG_RATE_LEAST_ 24u /* bytes that a section of values may have, however few are asked for */

/* What is counted of values on the way to levels, in integers, so that no order matters. */
typedef struct cg_rate_counts_ {
    uint64_t ones, more; /* levels 1, and above */
    uint64_t ones_sum;   /* |v|/step of those, in 65536ths */
    int64_t more_sum;    /* |v|/step - level of those, in 65536ths */
} cg_rate_counts_;

/* Counts n values with their levels. */
CG_NOINLINE_ void cg_rate_count_(
    const cg_rate_grid_ *g, const float *v, const int16_t *level, size_t n, cg_rate_counts_ *c) {
    for (size_t b = 0; b < n; b += CG_RANS_BLOCK_) {
        uint64_t some = cg_rans_nonzero_(level + b, cg_min_(CG_RANS_BLOCK_, n - b));
        for (; some; some &= some - 1) {
            const size_t i = b + cg_ctz_(some);
            const int32_t m = level[i] < 0 ? -level[i] : level[i];
            const float t = cg_times_(cg_times_(cg_as_float_(cg_load_bits_(v, i) & CG_ABS_MASK_), g->lift), g->inv);
            const uint32_t t16 = (uint32_t)(cg_times_(t < 32767.0f ? t : 32767.0f, 65536.0f));
            if (m == 1) {
                c->ones++;
                c->ones_sum += t16;
            } else {
                c->more++;
                c->more_sum += (int64_t)t16 - (int64_t)m * 65536;
            }
        }
    }
}
static void cg_rate_counts_add_(cg_rate_counts_ *s, const cg_rate_counts_ *t) {
    s->ones += t->ones;
    s->more += t->more;
    s->ones_sum += t->ones_sum;
    s->more_sum += t->more_sum;
}
/* The two scales of a grid, of whose values this was counted. */
static void cg_rate_scales_(const cg_rate_grid_ *g, const cg_rate_counts_ *counts, float *scales) {
    scales[0] = g->lift > 1.0f ? -g->step : g->step;
    scales[1] = CG_RATE_PLAIN_;
    if (!g->stochastic) { /* centroids, rounded */
        uint64_t c = counts->ones ? (counts->ones_sum + 16 * counts->ones) / (32 * counts->ones) : 2048;
        int64_t o = counts->more ? (counts->more_sum + (int64_t)(8 * counts->more)) / (int64_t)(16 * counts->more) : 0;
        c = c < 4095 ? c : 4095;
        o = o < -2048 ? -2048 : o > 2047 ? 2047 : o;
        scales[1] = (float)(int32_t)(4096 * (int64_t)c + o + 2048);
    }
    if (g->lift < 1.0f) scales[1] = -scales[1];
}
static int cg_legal_rate_(const float *scales) {
    const float v = cg_as_float_(cg_as_bits_(scales[1]) & CG_ABS_MASK_);
    return cg_is_finite_(scales[0]) && v < 16777216.0f && v == (float)(int32_t)v &&
        !(cg_as_bits_(scales[0]) >> 31 && cg_as_bits_(scales[1]) >> 31);
}
/* in: levels as integers of 16 bits of this machine, at any address. */
CG_DECODE_FN_(cg_decode_rate_) {
    const int32_t pair = (int32_t)cg_as_float_(cg_as_bits_(scales[1]) & CG_ABS_MASK_);
    const float step = cg_as_float_(cg_as_bits_(scales[0]) & CG_ABS_MASK_),
                one = cg_times_(step, (float)(pair / 4096) * 0.00048828125f),
                offset = cg_times_(step, (float)(pair % 4096 - 2048) * 0.000244140625f);
    const float drop = cg_as_bits_(scales[0]) >> 31 ? CG_POW2_MINUS_100_
        : cg_as_bits_(scales[1]) >> 31              ? CG_POW2_100_
                                                    : 1.0f;
    const float value[4] = { step, one, offset, drop };
    CG_UNUSED_(stage);
    CG_UNUSED_(stream);
    CG_KERNEL_(kernels, rate_decode(value, in, n, out));
}
/* Never called: core/rate.h makes the whole section. */
CG_ENCODE_FN_(cg_encode_rate_) {
    CG_UNUSED_(kernels);
    CG_UNUSED_(stage);
    CG_UNUSED_(scales);
    CG_UNUSED_(key);
    CG_UNUSED_(position);
    CG_UNUSED_(v);
    CG_UNUSED_(n);
    CG_UNUSED_(out);
    CG_UNUSED_(lanes);
    return 0;
}
/* Pieces of k levels, and bytes of the table of their lengths, which has 16 bits of each: words of 32 bits. */
CG_INLINE_ uint64_t cg_rans_pieces_(uint64_t k) { return k / CG_RANS_PIECE_ + (k % CG_RANS_PIECE_ != 0); }
/* Bytes of the codes of k levels at most, if nothing limits them: plain pieces. */
static uint64_t cg_rans_codes_bound_(uint64_t k, unsigned width) {
    return cg_add_sat_(4 * cg_rans_pieces_(k),
        cg_add_sat_(
            cg_mul_sat_(k / CG_RANS_PIECE_, CG_RANS_PIECE_ / 8 * width), cg_word_bytes_(k % CG_RANS_PIECE_ * width)));
}
/* The bytes of a section of k values at most, whatever they are; 0: the quantizer promises nothing. */
static uint64_t cg_rate_promise_(const cg_stage *q, uint64_t k) {
    const double asked = (double)k * (double)q->value / 8.0; /* one rounding: the product is exact below 2^29 values */
    uint64_t bytes = asked < 4.0e18 ? (uint64_t)asked & ~(uint64_t)3 : CG_TOO_LARGE_;
    return k && bytes < CG_RATE_LEAST_ ? CG_RATE_LEAST_ : bytes;
}
static uint64_t cg_step_promise_(const cg_stage *q, uint64_t k) {
    (void)q;
    (void)k;
    return 0;
}
enum { CG_RATE_BINS_ = 2048, CG_RATE_ABOVE_BYTES_ = 4 * (CG_RATE_BINS_ + 16) /* of the histogram */ };
/* A histogram, and a plan for each piece: bytes of scratch, at an address that is aligned to 4. */
static uint64_t cg_rans_scratch_(const cg_stage *q, uint64_t k) {
    const cg_quantizer_ *row = cg_quantizer_of_(q);
    if (!row || !row->promise) return 0;
    return cg_add_sat_(CG_RATE_ABOVE_BYTES_, cg_mul_sat_(cg_rans_pieces_(k), (sizeof(cg_rans_plan_) + 63) / 64 * 64));
}
