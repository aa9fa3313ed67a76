/* decode: kernels that turn levels, signs, f16 and bf16 into values

   Offers   levels_decode, sign_decode, f16_decode, bf16_decode, absmax16_bits; cg_f16_decode_ of one value
   Needs    base, table
   Touches  nothing but its arguments */

/* levels_decode: (decode_offset + (symbol - zero_symbol)*step)*postscale, each operation rounded, Inf made finite. A
   symbol above max_symbol counts as max_symbol. */
static void cg_levels_decode_scalar_(
    const cg_levels_ *q, const uint8_t *symbols, size_t n, float *out, int non_temporal) {
    (void)non_temporal;
    for (size_t i = 0; i < n; i++) {
        int32_t level = symbols[i] < q->max_symbol ? symbols[i] : q->max_symbol;
        cg_store_(out, i,
            cg_saturate_(cg_times_(
                cg_plus_(q->decode_offset, cg_times_((float)(level - q->zero_symbol), q->step)), q->postscale)));
    }
}
#if CG_AVX2_
/* usual: postscale is 1, nothing can overflow then. symmetric: zero_symbol is not 0, decode_offset is 0 then. */
CG_AVX2_INLINE_ size_t cg_levels_decode16_avx2_(
    const cg_levels_ *q, const uint8_t *symbols, size_t n, float *out, int non_temporal, int usual, int symmetric) {
    const __m256 decode_offset = _mm256_set1_ps(q->decode_offset), step = _mm256_set1_ps(q->step),
                 postscale = _mm256_set1_ps(q->postscale);
    const __m256 flt_max = _mm256_set1_ps(CG_FLT_MAX_), neg_flt_max = _mm256_set1_ps(-CG_FLT_MAX_);
    const __m128i max_symbol = _mm_set1_epi8((char)q->max_symbol), zero_symbol = _mm_set1_epi8((char)q->zero_symbol);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m128i s = _mm_min_epu8(_mm_loadu_si128((const __m128i *)(const void *)(symbols + i)), max_symbol);
        if (symmetric) s = _mm_sub_epi8(s, zero_symbol); /* within -127 and 127 */
        for (int j = 0; j < 2; j++, s = _mm_srli_si128(s, 8)) {
            __m256 f = cg_mul8_avx2_(
                _mm256_cvtepi32_ps(symmetric ? _mm256_cvtepi8_epi32(s) : _mm256_cvtepu8_epi32(s)), step);
            if (!usual || !symmetric) f = _mm256_add_ps(decode_offset, f);
            if (!usual) f = _mm256_max_ps(_mm256_min_ps(cg_mul8_avx2_(f, postscale), flt_max), neg_flt_max);
            cg_store_stream_avx2_(out, i + 8 * (size_t)j, _mm256_castps_si256(f), non_temporal);
        }
    }
    return i;
}
CG_TARGET_AVX2_ static void cg_levels_decode_avx2_(
    const cg_levels_ *q, const uint8_t *symbols, size_t n, float *out, int non_temporal) {
    size_t i = q->zero_symbol  ? q->postscale == 1.0f ? cg_levels_decode16_avx2_(q, symbols, n, out, non_temporal, 1, 1)
                                                      : cg_levels_decode16_avx2_(q, symbols, n, out, non_temporal, 0, 1)
         : q->postscale == 1.0f ? cg_levels_decode16_avx2_(q, symbols, n, out, non_temporal, 1, 0)
                               : cg_levels_decode16_avx2_(q, symbols, n, out, non_temporal, 0, 0);
    _mm256_zeroupper();
    if (i < n) cg_levels_decode_scalar_(q, symbols + i, n - i, cg_at_mut_(out, i), 0);
}
#endif
#if CG_NEON_
CG_INLINE_ void cg_levels_decode4_neon_(const cg_levels_ *q, int16x4_t level, float *out, size_t i) {
    float32x4_t f = vcvtq_f32_s32(vmovl_s16(level));
    f = (vdupq_n_f32(q->decode_offset) + cg_times_neon_(f, vdupq_n_f32(q->step))) * vdupq_n_f32(q->postscale);
    cg_store4_neon_(out, i, vmaxq_f32(vminq_f32(f, vdupq_n_f32(CG_FLT_MAX_)), vdupq_n_f32(-CG_FLT_MAX_)));
}
static void cg_levels_decode_neon_(
    const cg_levels_ *q, const uint8_t *symbols, size_t n, float *out, int non_temporal) {
    const cg_levels_ g = *q; /* a copy: out cannot alias it */
    const uint8x16_t max_symbol = vdupq_n_u8((uint8_t)g.max_symbol);
    const int16x8_t zero_symbol = vdupq_n_s16((int16_t)g.zero_symbol);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        uint8x16_t s = vminq_u8(vld1q_u8(symbols + i), max_symbol);
        int16x8_t a = vsubq_s16(vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(s))), zero_symbol);
        int16x8_t b = vsubq_s16(vreinterpretq_s16_u16(vmovl_u8(vget_high_u8(s))), zero_symbol);
        cg_levels_decode4_neon_(&g, vget_low_s16(a), out, i);
        cg_levels_decode4_neon_(&g, vget_high_s16(a), out, i + 4);
        cg_levels_decode4_neon_(&g, vget_low_s16(b), out, i + 8);
        cg_levels_decode4_neon_(&g, vget_high_s16(b), out, i + 12);
    }
    cg_levels_decode_scalar_(q, symbols + i, n - i, cg_at_mut_(out, i), non_temporal);
}
#endif

/* sign_decode: -scale where bit i % 8 of in[i / 8] is 1, else scale. */
static void cg_sign_decode_scalar_(const uint8_t *in, size_t n, float scale, float *out, int non_temporal) {
    (void)non_temporal;
    for (size_t i = 0; i < n; i++) cg_store_(out, i, in[i / 8] >> i % 8 & 1 ? -scale : scale);
}
#if CG_AVX2_
CG_TARGET_AVX2_ static void cg_sign_decode_avx2_(
    const uint8_t *in, size_t n, float scale, float *out, int non_temporal) {
    const __m256i minus = _mm256_set1_epi32((int)CG_SIGN_BIT_), plus = _mm256_set1_epi32((int)cg_as_bits_(scale));
    const __m256i s0 = _mm256_setr_epi32(31, 30, 29, 28, 27, 26, 25, 24),
                  s1 = _mm256_sub_epi32(s0, _mm256_set1_epi32(8));
    const __m256i s2 = _mm256_sub_epi32(s1, _mm256_set1_epi32(8)), s3 = _mm256_sub_epi32(s2, _mm256_set1_epi32(8));
    size_t i = 0;
    for (; i + 32 <= n; i += 32) { /* shift each bit to the place of the sign */
        __m256i w = _mm256_set1_epi32((int)cg_get32_(in + i / 8));
        cg_store_stream_avx2_(
            out, i, _mm256_xor_si256(_mm256_and_si256(_mm256_sllv_epi32(w, s0), minus), plus), non_temporal);
        cg_store_stream_avx2_(
            out, i + 8, _mm256_xor_si256(_mm256_and_si256(_mm256_sllv_epi32(w, s1), minus), plus), non_temporal);
        cg_store_stream_avx2_(
            out, i + 16, _mm256_xor_si256(_mm256_and_si256(_mm256_sllv_epi32(w, s2), minus), plus), non_temporal);
        cg_store_stream_avx2_(
            out, i + 24, _mm256_xor_si256(_mm256_and_si256(_mm256_sllv_epi32(w, s3), minus), plus), non_temporal);
    }
    _mm256_zeroupper();
    if (i < n) cg_sign_decode_scalar_(in + i / 8, n - i, scale, cg_at_mut_(out, i), 0);
}
#endif
#if CG_NEON_
static void cg_sign_decode_neon_(const uint8_t *in, size_t n, float scale, float *out, int non_temporal) {
    const uint32x4_t minus = vdupq_n_u32(CG_SIGN_BIT_), plus = vdupq_n_u32(cg_as_bits_(scale));
    const int32x4_t low = { 31, 30, 29, 28 }, high = { 27, 26, 25, 24 };
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const uint32x4_t w = vdupq_n_u32(in[i / 8]);
        cg_store4_neon_(out, i, cg_as_float_neon_(veorq_u32(vandq_u32(vshlq_u32(w, low), minus), plus)));
        cg_store4_neon_(out, i + 4, cg_as_float_neon_(veorq_u32(vandq_u32(vshlq_u32(w, high), minus), plus)));
    }
    cg_sign_decode_scalar_(in + i / 8, n - i, scale, cg_at_mut_(out, i), non_temporal);
}
#endif

/* f16_decode: exact; Inf stays, a NaN becomes quiet. */
CG_INLINE_ float cg_f16_decode_(uint32_t h) {
    uint32_t sign = (h & 0x8000u) << 16, m = h & 0x7fffu;
    if (m >= 0x7c00u) return cg_as_float_(sign | (m << 13) | 0x7f800000u | (m > 0x7c00u ? 0x400000u : 0u));
    if (m < 0x400u) return cg_as_float_(sign | cg_as_bits_((float)m * 5.9604644775390625e-8f));
    return cg_as_float_(sign | ((m << 13) + 0x38000000u));
}
static void cg_f16_decode_scalar_(const uint8_t *in, size_t n, float *out, int non_temporal) {
    (void)non_temporal;
    for (size_t i = 0; i < n; i++) cg_store_(out, i, cg_f16_decode_(cg_get16_(in + 2 * i)));
}
#if CG_AVX2_
CG_TARGET_AVX2_ static void cg_f16_decode_avx2_(const uint8_t *in, size_t n, float *out, int non_temporal) {
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        cg_store_stream_avx2_(out, i,
            _mm256_castps_si256(_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(in + 2 * i)))),
            non_temporal);
    _mm256_zeroupper();
    if (i < n) cg_f16_decode_scalar_(in + 2 * i, n - i, cg_at_mut_(out, i), 0);
}
#endif
#if CG_NEON_
static void cg_f16_decode_neon_(const uint8_t *in, size_t n, float *out, int non_temporal) {
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        float16x8_t h = vreinterpretq_f16_u8(vld1q_u8(in + 2 * i));
        cg_store4_neon_(out, i, vcvt_f32_f16(vget_low_f16(h)));
        cg_store4_neon_(out, i + 4, vcvt_high_f32_f16(h));
    }
    cg_f16_decode_scalar_(in + 2 * i, n - i, cg_at_mut_(out, i), non_temporal);
}
#endif

/* bf16_decode: exact; the 16 bits are the upper half of an f32. */
static void cg_bf16_decode_scalar_(const uint8_t *in, size_t n, float *out, int non_temporal) {
    (void)non_temporal;
    for (size_t i = 0; i < n; i++) cg_store_(out, i, cg_as_float_((uint32_t)cg_get16_(in + 2 * i) << 16));
}
#if CG_AVX2_
CG_TARGET_AVX2_ static void cg_bf16_decode_avx2_(const uint8_t *in, size_t n, float *out, int non_temporal) {
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        cg_store_stream_avx2_(out, i,
            _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)(in + 2 * i))), 16),
            non_temporal);
    _mm256_zeroupper();
    if (i < n) cg_bf16_decode_scalar_(in + 2 * i, n - i, cg_at_mut_(out, i), 0);
}
#endif
#if CG_NEON_
static void cg_bf16_decode_neon_(const uint8_t *in, size_t n, float *out, int non_temporal) {
    const uint16x8_t zero = vdupq_n_u16(0);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint16x8_t h = vreinterpretq_u16_u8(vld1q_u8(in + 2 * i));
        cg_store4_neon_(out, i, vreinterpretq_f32_u16(vzip1q_u16(zero, h)));
        cg_store4_neon_(out, i + 4, vreinterpretq_f32_u16(vzip2q_u16(zero, h)));
    }
    cg_bf16_decode_scalar_(in + 2 * i, n - i, cg_at_mut_(out, i), non_temporal);
}
#endif

/* absmax16_bits: the largest of n 16-bit words of the wire with the top bit cleared: the largest magnitude of 16-bit
   floats as bits, for the finite check of a packet. */
static uint32_t cg_absmax16_bits_scalar_(const uint8_t *in, size_t n) {
    uint32_t absmax_bits = 0;
    for (size_t i = 0; i < n; i++) absmax_bits = cg_max32_(absmax_bits, cg_get16_(in + 2 * i) & 0x7fffu);
    return absmax_bits;
}
#if CG_AVX2_
CG_TARGET_AVX2_ static uint32_t cg_absmax16_bits_avx2_(const uint8_t *in, size_t n) {
    const __m256i low = _mm256_set1_epi16(0x7fff);
    __m256i t0 = _mm256_setzero_si256(), t1 = t0;
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        t0 = _mm256_max_epu16(t0, _mm256_and_si256(cg_load_bytes_avx2_(in + 2 * i), low));
        t1 = _mm256_max_epu16(t1, _mm256_and_si256(cg_load_bytes_avx2_(in + 2 * i + 32), low));
    }
    t0 = _mm256_max_epu16(t0, t1);
    t0 = _mm256_max_epu32(_mm256_srli_epi32(t0, 16), _mm256_and_si256(t0, _mm256_set1_epi32(0xffff)));
    return cg_max32_(cg_hmax_u32_avx2_(t0), cg_absmax16_bits_scalar_(in + 2 * i, n - i));
}
#endif
#if CG_NEON_
static uint32_t cg_absmax16_bits_neon_(const uint8_t *in, size_t n) {
    const uint16x8_t low = vdupq_n_u16(0x7fff);
    uint16x8_t t0 = vdupq_n_u16(0), t1 = t0;
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        t0 = vmaxq_u16(t0, vandq_u16(vreinterpretq_u16_u8(vld1q_u8(in + 2 * i)), low));
        t1 = vmaxq_u16(t1, vandq_u16(vreinterpretq_u16_u8(vld1q_u8(in + 2 * i + 16)), low));
    }
    return cg_max32_(vmaxvq_u16(vmaxq_u16(t0, t1)), cg_absmax16_bits_scalar_(in + 2 * i, n - i));
}
#endif
