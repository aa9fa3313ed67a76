/* fp8: kernels of the formats E4M3 and E5M2, the values of E2M1, and E8M0 scales

   Offers   fp8_encode, fp8_decode; cg_e2m1_values_, cg_e2m1_limits_, cg_e8m0_encode_, cg_e8m0_decode_; cg_noise_bits_
   Needs    base, random, table, decode
   Touches  nothing but its arguments */

/* The hash that a value rounds with: cg_noise_ is these bits as a fraction. */
CG_INLINE_ uint32_t cg_noise_bits_(cg_key_ key, uint32_t position) {
    uint32_t h = cg_hash32_(key, (position >> 4) << 3 | (position & 7));
    return position & 8 ? h << 16 | h >> 16 : h;
}

typedef struct cg_fp8_format_ {
    uint32_t dropped_bits;    /* mantissa bits that f32 has more */
    uint32_t min_normal_bits; /* the smallest normal value, as f32 bits */
    uint32_t max_bits;        /* the largest value, as f32 bits */
    uint32_t code_bias;       /* min_normal_bits >> dropped_bits */
} cg_fp8_format_;
CG_INLINE_ cg_fp8_format_ cg_fp8_format_of_(int is_e5m2) {
    const cg_fp8_format_ e4m3 = { 20, 0x3c800000u, 0x43e00000u, 0x3c8 }, e5m2 = { 21, 0x38800000u, 0x47600000u, 0x1c4 };
    return is_e5m2 ? e5m2 : e4m3;
}
/* fp8_encode: v*inv_scale, rounded, to nearest even as E5M2 or E4M3. Magnitudes beyond the largest value (57344, 448),
   Inf and NaN become it; every value keeps its sign, zeros too. The rounding is done by the addition of a power of
   two so large that the last bit of the sum is the last bit of the code. */
static void cg_fp8_encode_scalar_(const float *v, size_t n, float inv_scale, int is_e5m2, uint8_t *out) {
    const cg_fp8_format_ q = cg_fp8_format_of_(is_e5m2);
    for (size_t i = 0; i < n; i++) {
        float f = cg_load_(v, i);
        uint32_t m = cg_as_bits_(cg_times_(f, inv_scale)) & CG_ABS_MASK_, e, large, sum;
        m = m < q.max_bits ? m : q.max_bits;
        e = cg_max32_(m & 0x7f800000u, q.min_normal_bits);
        large = e + (q.dropped_bits << 23);
        sum = cg_as_bits_(cg_plus_(cg_as_float_(m), cg_as_float_(large)));
        out[i] = (uint8_t)((cg_as_bits_(f) >> 24 & 0x80u) | (sum - large + (e >> q.dropped_bits) - q.code_bias));
    }
}
#if CG_AVX2_
/* code of the magnitude, plus q.code_bias */
CG_AVX2_INLINE_ __m256i cg_fp8_encode8_avx2_(__m256i v, __m256 inv, cg_fp8_format_ q) {
    __m256i m = cg_abs_avx2_(_mm256_castps_si256(cg_mul8_avx2_(_mm256_castsi256_ps(v), inv))), e, large, sum;
    m = _mm256_min_epu32(m, _mm256_set1_epi32((int)q.max_bits));
    e = _mm256_max_epu32(_mm256_and_si256(m, _mm256_set1_epi32(0x7f800000)), _mm256_set1_epi32((int)q.min_normal_bits));
    large = _mm256_add_epi32(e, _mm256_set1_epi32((int)(q.dropped_bits << 23)));
    sum = _mm256_castps_si256(_mm256_add_ps(_mm256_castsi256_ps(m), _mm256_castsi256_ps(large)));
    return _mm256_add_epi32(_mm256_sub_epi32(sum, large), _mm256_srl_epi32(e, _mm_cvtsi32_si128((int)q.dropped_bits)));
}
CG_AVX2_INLINE_ size_t cg_fp8_encode32_avx2_(
    const float *v, size_t n, float inv_scale, cg_fp8_format_ q, uint8_t *out) {
    const __m256 inv = _mm256_set1_ps(inv_scale);
    const __m256i bias = _mm256_set1_epi16((short)q.code_bias);
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        __m256i a = cg_load8_avx2_(v, i), b = cg_load8_avx2_(v, i + 8), c = cg_load8_avx2_(v, i + 16),
                d = cg_load8_avx2_(v, i + 24);
        __m256i ab = _mm256_sub_epi16(
            _mm256_packs_epi32(cg_fp8_encode8_avx2_(a, inv, q), cg_fp8_encode8_avx2_(b, inv, q)), bias);
        __m256i cd = _mm256_sub_epi16(
            _mm256_packs_epi32(cg_fp8_encode8_avx2_(c, inv, q), cg_fp8_encode8_avx2_(d, inv, q)), bias);
        CG_PREFETCH_(cg_at_(v, i + CG_CHUNK_));
        CG_PREFETCH_(cg_at_(v, i + CG_CHUNK_ + 16));
        cg_store_avx2_(out + i,
            cg_pack_order_avx2_(_mm256_or_si256(_mm256_packus_epi16(ab, cd), cg_sign_bytes_avx2_(a, b, c, d))));
    }
    return i;
}
CG_TARGET_AVX2_ static void cg_fp8_encode_avx2_(const float *v, size_t n, float inv_scale, int is_e5m2, uint8_t *out) {
    size_t i = is_e5m2 ? cg_fp8_encode32_avx2_(v, n, inv_scale, cg_fp8_format_of_(1), out)
                       : cg_fp8_encode32_avx2_(v, n, inv_scale, cg_fp8_format_of_(0), out);
    _mm256_zeroupper();
    if (i < n) cg_fp8_encode_scalar_(cg_at_(v, i), n - i, inv_scale, is_e5m2, out + i);
}
#endif
#if CG_NEON_
CG_INLINE_ uint32x4_t cg_fp8_encode4_neon_(uint32x4_t v, float32x4_t inv, cg_fp8_format_ q) {
    uint32x4_t m = vminq_u32(
        cg_abs_neon_(vreinterpretq_u32_f32(cg_times_neon_(cg_as_float_neon_(v), inv))), vdupq_n_u32(q.max_bits));
    uint32x4_t e = vmaxq_u32(vandq_u32(m, vdupq_n_u32(0x7f800000u)), vdupq_n_u32(q.min_normal_bits));
    uint32x4_t large = vaddq_u32(e, vdupq_n_u32(q.dropped_bits << 23));
    uint32x4_t sum = vreinterpretq_u32_f32(cg_as_float_neon_(m) + cg_as_float_neon_(large));
    return vsubq_u32(vaddq_u32(vsubq_u32(sum, large), vshlq_u32(e, vdupq_n_s32(-(int32_t)q.dropped_bits))),
        vdupq_n_u32(q.code_bias));
}
static void cg_fp8_encode_neon_(const float *v, size_t n, float inv_scale, int is_e5m2, uint8_t *out) {
    const cg_fp8_format_ q = cg_fp8_format_of_(is_e5m2);
    const float32x4_t inv = vdupq_n_f32(inv_scale);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        uint32x4_t a = cg_load4_neon_(v, i), b = cg_load4_neon_(v, i + 4), c = cg_load4_neon_(v, i + 8),
                   d = cg_load4_neon_(v, i + 12);
        uint8x16_t m = cg_narrow_neon_(cg_fp8_encode4_neon_(a, inv, q), cg_fp8_encode4_neon_(b, inv, q),
            cg_fp8_encode4_neon_(c, inv, q), cg_fp8_encode4_neon_(d, inv, q));
        vst1q_u8(out + i, vorrq_u8(m, cg_sign_bytes_neon_(a, b, c, d)));
    }
    cg_fp8_encode_scalar_(cg_at_(v, i), n - i, inv_scale, is_e5m2, out + i);
}
#endif

/* fp8_decode: the value of the code times scale, rounded, Inf made finite. Codes of NaN and Inf count as the largest
   value of their sign, so that any byte is legal. Both formats are f16 with fewer mantissa bits; as E4M3 has one
   exponent bit less, too, its values appear there times 2^-8. */
static void cg_fp8_decode_scalar_(const uint8_t *in, size_t n, float scale, int is_e5m2, float *out, int non_temporal) {
    (void)non_temporal;
    for (size_t i = 0; i < n; i++) {
        uint32_t m = in[i] & 0x7fu, max_code = is_e5m2 ? 0x7bu : 0x7eu;
        float f = cg_f16_decode_((in[i] & 0x80u) << 8 | (m < max_code ? m : max_code) << (is_e5m2 ? 8 : 7));
        cg_store_(out, i, cg_saturate_(cg_times_(cg_times_(f, is_e5m2 ? 1.0f : 256.0f), scale)));
    }
}
#if CG_AVX2_
CG_AVX2_INLINE_ size_t cg_fp8_decode16_avx2_(
    const uint8_t *in, size_t n, float scale, int is_e5m2, float *out, int non_temporal) {
    const __m256 scale_v = _mm256_set1_ps(scale), flt_max = _mm256_set1_ps(CG_FLT_MAX_),
                 neg_flt_max = _mm256_set1_ps(-CG_FLT_MAX_);
    const __m128i max_code = _mm_set1_epi8(is_e5m2 ? 0x7b : 0x7e), low = _mm_set1_epi8(0x7f),
                  zero = _mm_setzero_si128();
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m128i b = _mm_loadu_si128((const __m128i *)(const void *)(in + i)), s = _mm_andnot_si128(low, b), h[2];
        __m128i m = _mm_min_epu8(_mm_and_si128(b, low), max_code);
        h[0] = _mm_unpacklo_epi8(zero, m);
        h[1] = _mm_unpackhi_epi8(zero, m);
        if (!is_e5m2) {
            h[0] = _mm_srli_epi16(h[0], 1);
            h[1] = _mm_srli_epi16(h[1], 1);
        }
        h[0] = _mm_or_si128(h[0], _mm_unpacklo_epi8(zero, s));
        h[1] = _mm_or_si128(h[1], _mm_unpackhi_epi8(zero, s));
        for (int j = 0; j < 2; j++) {
            __m256 f = _mm256_cvtph_ps(h[j]);
            if (!is_e5m2) f = cg_mul8_avx2_(f, _mm256_set1_ps(256.0f));
            f = _mm256_max_ps(_mm256_min_ps(cg_mul8_avx2_(f, scale_v), flt_max), neg_flt_max);
            cg_store_stream_avx2_(out, i + 8 * (size_t)j, _mm256_castps_si256(f), non_temporal);
        }
    }
    return i;
}
CG_TARGET_AVX2_ static void cg_fp8_decode_avx2_(
    const uint8_t *in, size_t n, float scale, int is_e5m2, float *out, int non_temporal) {
    size_t i = is_e5m2
        ? non_temporal ? cg_fp8_decode16_avx2_(in, n, scale, 1, out, 1) : cg_fp8_decode16_avx2_(in, n, scale, 1, out, 0)
        : non_temporal ? cg_fp8_decode16_avx2_(in, n, scale, 0, out, 1)
                       : cg_fp8_decode16_avx2_(in, n, scale, 0, out, 0);
    _mm256_zeroupper();
    if (i < n) cg_fp8_decode_scalar_(in + i, n - i, scale, is_e5m2, cg_at_mut_(out, i), 0);
}
#endif
#if CG_NEON_
static void cg_fp8_decode_neon_(const uint8_t *in, size_t n, float scale, int is_e5m2, float *out, int non_temporal) {
    const float32x4_t scale_v = vdupq_n_f32(scale), rescale = vdupq_n_f32(is_e5m2 ? 1.0f : 256.0f);
    const float32x4_t flt_max = vdupq_n_f32(CG_FLT_MAX_), neg_flt_max = vdupq_n_f32(-CG_FLT_MAX_);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint8x8_t b = vld1_u8(in + i), m = vmin_u8(vand_u8(b, vdup_n_u8(0x7f)), vdup_n_u8(is_e5m2 ? 0x7b : 0x7e));
        uint16x8_t w = vshlq_u16(vmovl_u8(m), vdupq_n_s16(is_e5m2 ? 8 : 7));
        float16x8_t h = vreinterpretq_f16_u16(vorrq_u16(w, vshll_n_u8(vand_u8(b, vdup_n_u8(0x80)), 8)));
        cg_store4_neon_(
            out, i, vmaxq_f32(vminq_f32(vcvt_f32_f16(vget_low_f16(h)) * rescale * scale_v, flt_max), neg_flt_max));
        cg_store4_neon_(
            out, i + 4, vmaxq_f32(vminq_f32(vcvt_high_f32_f16(h) * rescale * scale_v, flt_max), neg_flt_max));
    }
    cg_fp8_decode_scalar_(in + i, n - i, scale, is_e5m2, cg_at_mut_(out, i), non_temporal);
}
#endif

/* E2M1 by bucketize: the code is above i where t > limits[i]. To nearest, ties to the even code: where a tie goes up,
   the limit is the float below it. */
static const float cg_e2m1_values_[8] = { 0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f };
static const float cg_e2m1_limits_[7] = { 0.25f, 0.749999940f, 1.25f, 1.74999988f, 2.5f, 3.49999976f, 5.0f };

/* E8M0: the byte b stands for 2^(b-127). Encodes the power of two of the magnitude, rounded down, over 2^emax, within
   0..254; a magnitude of 0 gives 0. */
static unsigned cg_e8m0_encode_(uint32_t absmax_bits, int emax) {
    int e;
    if (!absmax_bits) return 0;
    e = (absmax_bits >> 23 ? (int)(absmax_bits >> 23) : (int)cg_log2_(absmax_bits) - 22) - emax;
    return (unsigned)(e < 0 ? 0 : e > 254 ? 254 : e);
}
/* 255, which is NaN, counts as 254. */
static float cg_e8m0_decode_(unsigned byte) {
    return cg_as_float_(!byte ? 0x00400000u : byte < 254 ? (uint32_t)byte << 23 : 254u << 23);
}
