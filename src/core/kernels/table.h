/* ---- >>kernels
   The scalar kernel is the specification; its SIMD versions stand below it and return the same bits. */

typedef struct cg_checksum_ {
    uint64_t a, b, words;
} cg_checksum_; /* the checksum of some run of words */

typedef struct cg_levels_ {                  /* a bucket's grid; see cg_levels_make_ */
    float prescale, encode_offset, inv_step; /* encode: nearest or noisy integer of (v*prescale - sub)*inv, */
    int32_t zero_symbol, max_symbol;         /* plus bias, within [0, top] */
    float decode_offset, step, postscale;    /* decode: (base + (code - bias)*step)*post, kept finite */
    float range;                             /* what inv is taken of; see cg_encode_levels_ */
    int stochastic;
} cg_levels_;

typedef struct cg_bucketizer_ {
    float inv_scale;
    int32_t limit_count;
    float limit[7];
    uint8_t sign_bit;
} cg_bucketizer_;
typedef struct cg_dither_ {
    float inv_scale;
    unsigned bits;
    int stochastic;
} cg_dither_;

typedef struct cg_bernoulli_ {
    cg_key_ key;
    float threshold, prescale, inv_threshold;
} cg_bernoulli_; /* a value's chance is (|v|*pre)*inv */

typedef struct cg_kernels_ {
    cg_isa isa;
    /* encode; the finite check: each returns the largest magnitude as bits, or where sums show it 0 or Inf's */
    uint32_t (*absmax_bits)(const float *v, size_t n);
    uint32_t (*range)(const float *v, size_t n, float *lo, float *hi);
    uint32_t (*copy)(const float *v, size_t n, uint8_t *out);
    uint32_t (*f16_encode)(const float *v, size_t n, uint8_t *out);
    uint32_t (*bf16_encode)(const float *v, size_t n, uint8_t *out);
    uint32_t (*sign_encode)(const float *v, size_t n, uint8_t *out, double *lanes /* NULL, or adds |v| to 16 */);
    void (*levels_encode)(
        const cg_levels_ *q, cg_key_ key, uint32_t position, const float *v, size_t n, uint8_t *symbols);
    void (*pack)(const uint8_t *symbols, size_t n, unsigned bits, uint8_t *out);
    size_t (*filter)(const float *v, size_t n, uint32_t bound, uint32_t first, uint32_t *index, float *value);
    size_t (*bernoulli)(
        const cg_bernoulli_ *c, const float *v, size_t n, uint32_t first, uint32_t *index, float *value);
    uint32_t (*count_above)(const float *v, size_t n, uint32_t pivot, size_t *above);
    /* decode; stream: out is larger than the caches and aligned to 16 bytes, so go around them */
    void (*unpack)(const uint8_t *in, size_t n, unsigned bits, uint8_t *symbols);
    void (*levels_decode)(const cg_levels_ *q, const uint8_t *symbols, size_t n, float *out, int stream);
    void (*sign_decode)(const uint8_t *in, size_t n, float scale, float *out, int stream);
    void (*f16_decode)(const uint8_t *in, size_t n, float *out, int stream);
    void (*bf16_decode)(const uint8_t *in, size_t n, float *out, int stream);
    uint32_t (*absmax16_bits)(const uint8_t *in, size_t n);
    void (*axpby)(const float *d, size_t n, float alpha, float beta, float *y, int stream);
    void (*move_zero)(float *d, size_t n, float *y, int stream); /* y = d, d = 0 */
    void (*stream_fence)(void);                                  /* after the last that streamed */
    void (*checksum)(cg_checksum_ *sum, const uint8_t *words, size_t count);
    /* transforms and sums */
    void (*rotate_from)(const float *from, float *v, const uint32_t *flips, int rounds, int inverse);
    void (*dct)(float *v, int inverse);
    void (*lane_sum)(const float *v, size_t n, int what, double *lanes);
    void (*axpby_fading)(const float *d, size_t n, float alpha, float beta, float *y, int squares, double *lanes);
    /* more formats */
    void (*bucketize)(
        const cg_bucketizer_ *g, const float *v, size_t n, uint8_t *symbols, const float *centre, double *lanes);
    void (*nf4_search)(const float *limit, float inv, const float *v, size_t n, uint8_t *symbols);
    void (*table_decode)(const float *table, const uint8_t *symbols, size_t n, float *out, int stream);
    void (*fp8_encode)(const float *v, size_t n, float inv, int kind, uint8_t *out);
    void (*fp8_decode)(const uint8_t *in, size_t n, float scale, int kind, float *out, int stream);
    uint32_t (*natural_encode)(const float *v, size_t n, cg_key_ key, uint32_t position, int stochastic, uint8_t *out);
    void (*natural_decode)(const uint8_t *in, size_t n, float *out, int stream);
    void (*dither_encode)(
        const cg_dither_ *q, cg_key_ key, uint32_t position, const float *v, size_t n, uint8_t *symbols);
    void (*dither_decode)(unsigned bits, float scale, const uint8_t *symbols, size_t n, float *out, int stream);
    void (*dynamic8_encode)(const float *v, size_t n, float inv, uint8_t *symbols);
    void (*dynamic8_decode)(const uint8_t *symbols, size_t n, float scale, float *out, int stream);
    void (*strom_encode)(const float *v, size_t n, float tau, uint8_t *symbols);
    void (*vote)(const uint8_t *const *in, size_t count, size_t bytes, uint8_t *out);
    /* matrices */
    void (*project)(const float *m, size_t stride, size_t rows, size_t cols, const double *q, size_t q_stride,
        unsigned rank, double *p, size_t p_stride, const float *ahead);
    void (*project_t)(const float *m, size_t stride, size_t rows, size_t cols, const float *p, size_t p_stride,
        unsigned rank, double *q, size_t q_stride, const float *ahead);
    void (*lowrank_tile)(const float *p, const float *q, size_t q_stride, unsigned rank, size_t rows, size_t count,
        float *out, size_t out_stride, int stream);
} cg_kernels_;

#define CG_PREFETCH_DISTANCE_ 512u /* values between what is used and what memory is asked for: 2 KB */
#if CG_AVX2_
/* Kernels that end in a call for the rest say _mm256_zeroupper() themselves: gcc leaves it out before a tail call. */
#  define CG_TARGET_AVX2_ __attribute__((target("avx2,f16c,popcnt,bmi,bmi2")))
#  define CG_AVX2_INLINE_ static inline __attribute__((always_inline, unused, target("avx2,f16c,popcnt,bmi,bmi2")))
CG_AVX2_INLINE_ __m256i cg_load8_avx2_(const float *v, size_t i) {
    return _mm256_loadu_si256((const __m256i *)(const void *)((const uint8_t *)v + 4 * i));
}
CG_AVX2_INLINE_ __m256i cg_load_bytes_avx2_(const uint8_t *p) {
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}
CG_AVX2_INLINE_ void cg_store_avx2_(void *p, __m256i v) { _mm256_storeu_si256((__m256i *)p, v); }
CG_AVX2_INLINE_ __m256i cg_abs_avx2_(__m256i v) { return _mm256_and_si256(v, _mm256_set1_epi32(0x7fffffff)); }
CG_AVX2_INLINE_ uint32_t cg_hmax_u32_avx2_(__m256i t) {
    __m128i m = _mm_max_epu32(_mm256_castsi256_si128(t), _mm256_extracti128_si256(t, 1));
    m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0x4e));
    m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0xb1));
    return (uint32_t)_mm_cvtsi128_si32(m);
}
/* by 16 bytes: what malloc aligns to */
CG_AVX2_INLINE_ void cg_store_stream_avx2_(float *y, size_t i, __m256i v, int stream) {
    if (stream) {
        _mm_stream_si128((__m128i *)(void *)(y + i), _mm256_castsi256_si128(v));
        _mm_stream_si128((__m128i *)(void *)(y + i + 4), _mm256_extracti128_si256(v, 1));
    } else {
        cg_store_avx2_(cg_at_mut_(y, i), v);
    }
}
CG_AVX2_INLINE_ __m256 cg_mul8_avx2_(__m256 a, __m256 b) {
    __m256 p = _mm256_mul_ps(a, b);
    CG_NO_FMA_(p);
    return p;
}
/* Memory should not rest while a chunk is packed and summed: ask for what comes after it, two lines for 32 values. */
CG_AVX2_INLINE_ void cg_prefetch_ahead_avx2_(const float *v, size_t i) {
    CG_PREFETCH_(cg_at_(v, i + 1536));
    CG_PREFETCH_(cg_at_(v, i + 1552));
}
#endif
#if CG_NEON_
/* Every access is of bytes, as floats may lie at any address. Float arithmetic is written with operators, as
   vmulq_f32 and the like would keep the flags under which the includer may already have read arm_neon.h. */
CG_INLINE_ uint32x4_t cg_load4_neon_(const float *v, size_t i) {
    return vreinterpretq_u32_u8(vld1q_u8((const uint8_t *)v + 4 * i));
}
CG_INLINE_ void cg_store4_neon_(float *v, size_t i, float32x4_t f) {
    vst1q_u8((uint8_t *)v + 4 * i, vreinterpretq_u8_f32(f));
}
CG_INLINE_ float32x4_t cg_as_float_neon_(uint32x4_t v) { return vreinterpretq_f32_u32(v); }
/* a product that is going to be added to something */
CG_INLINE_ float32x4_t cg_times_neon_(float32x4_t a, float32x4_t b) {
    float32x4_t p = a * b;
    CG_NO_FMA_(p);
    return p;
}
CG_INLINE_ uint32x4_t cg_abs_neon_(uint32x4_t v) { return vandq_u32(v, vdupq_n_u32(CG_ABS_MASK_)); }
/* masks, to a byte each */
CG_INLINE_ uint8x16_t cg_narrow_neon_(uint32x4_t a, uint32x4_t b, uint32x4_t c, uint32x4_t d) {
    uint16x8_t ab = vuzp1q_u16(vreinterpretq_u16_u32(a), vreinterpretq_u16_u32(b));
    uint16x8_t cd = vuzp1q_u16(vreinterpretq_u16_u32(c), vreinterpretq_u16_u32(d));
    return vuzp1q_u8(vreinterpretq_u8_u16(ab), vreinterpretq_u8_u16(cd));
}
/* 64 such bytes, to a bit each */
CG_INLINE_ uint64_t cg_movemask_neon_(uint8x16_t a, uint8x16_t b, uint8x16_t c, uint8x16_t d) {
    const uint8x16_t bit = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201u));
    a = vpaddq_u8(vandq_u8(a, bit), vandq_u8(b, bit));
    c = vpaddq_u8(vandq_u8(c, bit), vandq_u8(d, bit));
    a = vpaddq_u8(a, c);
    return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(a, a)), 0);
}
#endif
