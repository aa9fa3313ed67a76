/* formats: kernels that measure values, and that write them as f32, f16 and bf16

   Offers   absmax_bits, range, copy, f16_encode, bf16_encode; cg_f16_encode_ and cg_bf16_encode_ of one value
   Needs    base, table
   Touches  nothing but its arguments */

/* absmax_bits: the largest magnitude as bits, with the sign cleared. As integers, bits are ordered as magnitudes are,
   with Inf and then NaN above all finite ones. 0 if n is 0. */
static uint32_t cg_absmax_bits_scalar_(const float *v, size_t n) {
    uint32_t absmax_bits = 0;
    for (size_t i = 0; i < n; i++) absmax_bits = cg_max32_(absmax_bits, cg_load_bits_(v, i) & CG_ABS_MASK_);
    return absmax_bits;
}
#if CG_AVX2_
CG_AVX2_INLINE_ __m256i cg_absmax_step_avx2_(__m256i absmax, const float *v, size_t i) {
    CG_PREFETCH_(cg_at_(v, i + CG_PREFETCH_DISTANCE_));
    absmax = _mm256_max_epu32(absmax, cg_abs_avx2_(cg_load8_avx2_(v, i)));
    return _mm256_max_epu32(absmax, cg_abs_avx2_(cg_load8_avx2_(v, i + 8)));
}
CG_TARGET_AVX2_ static uint32_t cg_absmax_bits_avx2_(const float *v, size_t n) {
    __m256i t0 = _mm256_setzero_si256(), t1 = t0, t2 = t0, t3 = t0;
    size_t i = 0;
    /* a long vector at four places at once: one stream of reads does not keep memory busy */
    if (n >= 16384) {
        const size_t quarter = n / 64 * 16;
        for (; i < quarter; i += 16) {
            t0 = cg_absmax_step_avx2_(t0, v, i);
            t1 = cg_absmax_step_avx2_(t1, v, i + quarter);
            t2 = cg_absmax_step_avx2_(t2, v, i + 2 * quarter);
            t3 = cg_absmax_step_avx2_(t3, v, i + 3 * quarter);
        }
        i = 4 * quarter;
    }
    for (; i + 32 <= n; i += 32) {
        CG_PREFETCH_(cg_at_(v, i + CG_PREFETCH_DISTANCE_));
        CG_PREFETCH_(cg_at_(v, i + CG_PREFETCH_DISTANCE_ + 16));
        t0 = _mm256_max_epu32(t0, cg_abs_avx2_(cg_load8_avx2_(v, i)));
        t1 = _mm256_max_epu32(t1, cg_abs_avx2_(cg_load8_avx2_(v, i + 8)));
        t2 = _mm256_max_epu32(t2, cg_abs_avx2_(cg_load8_avx2_(v, i + 16)));
        t3 = _mm256_max_epu32(t3, cg_abs_avx2_(cg_load8_avx2_(v, i + 24)));
    }
    t0 = _mm256_max_epu32(_mm256_max_epu32(t0, t1), _mm256_max_epu32(t2, t3));
    return cg_max32_(cg_hmax_u32_avx2_(t0), cg_absmax_bits_scalar_(cg_at_(v, i), n - i));
}
#endif
#if CG_NEON_
static uint32_t cg_absmax_bits_neon_(const float *v, size_t n) {
    uint32x4_t t0 = vdupq_n_u32(0), t1 = t0, t2 = t0, t3 = t0;
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        t0 = vmaxq_u32(t0, cg_abs_neon_(cg_load4_neon_(v, i)));
        t1 = vmaxq_u32(t1, cg_abs_neon_(cg_load4_neon_(v, i + 4)));
        t2 = vmaxq_u32(t2, cg_abs_neon_(cg_load4_neon_(v, i + 8)));
        t3 = vmaxq_u32(t3, cg_abs_neon_(cg_load4_neon_(v, i + 12)));
    }
    t0 = vmaxq_u32(vmaxq_u32(t0, t1), vmaxq_u32(t2, t3));
    return cg_max32_(vmaxvq_u32(t0), cg_absmax_bits_scalar_(cg_at_(v, i), n - i));
}
#endif

/* range: lowers *lo to the smallest value and raises *hi to the largest; the caller sets both before. If some value is
   a NaN they have no meaning, which the returned absmax bits show. Of a zero, the sign is unspecified. */
static uint32_t cg_range_scalar_(const float *v, size_t n, float *lo, float *hi) {
    uint32_t absmax_bits = 0;
    for (size_t i = 0; i < n; i++) {
        float f = cg_load_(v, i);
        absmax_bits = cg_max32_(absmax_bits, cg_as_bits_(f) & CG_ABS_MASK_);
        *lo = f < *lo ? f : *lo;
        *hi = f > *hi ? f : *hi;
    }
    return absmax_bits;
}
#if CG_AVX2_
CG_TARGET_AVX2_ static uint32_t cg_range_avx2_(const float *v, size_t n, float *lo, float *hi) {
    __m256i t0 = _mm256_setzero_si256(), t1 = t0;
    __m256 l0 = _mm256_set1_ps(*lo), l1 = l0, h0 = _mm256_set1_ps(*hi), h1 = h0;
    float lows[8], highs[8];
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m256i a = cg_load8_avx2_(v, i), b = cg_load8_avx2_(v, i + 8);
        t0 = _mm256_max_epu32(t0, cg_abs_avx2_(a));
        t1 = _mm256_max_epu32(t1, cg_abs_avx2_(b));
        l0 = _mm256_min_ps(l0, _mm256_castsi256_ps(a));
        l1 = _mm256_min_ps(l1, _mm256_castsi256_ps(b));
        h0 = _mm256_max_ps(h0, _mm256_castsi256_ps(a));
        h1 = _mm256_max_ps(h1, _mm256_castsi256_ps(b));
    }
    _mm256_storeu_ps(lows, _mm256_min_ps(l0, l1));
    _mm256_storeu_ps(highs, _mm256_max_ps(h0, h1));
    for (int j = 0; j < 8; j++) {
        *lo = lows[j] < *lo ? lows[j] : *lo;
        *hi = highs[j] > *hi ? highs[j] : *hi;
    }
    return cg_max32_(cg_hmax_u32_avx2_(_mm256_max_epu32(t0, t1)), cg_range_scalar_(cg_at_(v, i), n - i, lo, hi));
}
#endif
#if CG_NEON_
static uint32_t cg_range_neon_(const float *v, size_t n, float *lo, float *hi) {
    uint32x4_t t0 = vdupq_n_u32(0), t1 = t0;
    float32x4_t l0 = vdupq_n_f32(*lo), l1 = l0, h0 = vdupq_n_f32(*hi), h1 = h0;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint32x4_t a = cg_load4_neon_(v, i), b = cg_load4_neon_(v, i + 4);
        t0 = vmaxq_u32(t0, cg_abs_neon_(a));
        t1 = vmaxq_u32(t1, cg_abs_neon_(b));
        l0 = vminq_f32(l0, cg_as_float_neon_(a));
        l1 = vminq_f32(l1, cg_as_float_neon_(b));
        h0 = vmaxq_f32(h0, cg_as_float_neon_(a));
        h1 = vmaxq_f32(h1, cg_as_float_neon_(b));
    }
    *lo = vminvq_f32(vminq_f32(l0, l1));
    *hi = vmaxvq_f32(vmaxq_f32(h0, h1));
    return cg_max32_(vmaxvq_u32(vmaxq_u32(t0, t1)), cg_range_scalar_(cg_at_(v, i), n - i, lo, hi));
}
#endif

/* copy: f32 to the wire, bits unchanged. Returns absmax bits. */
static uint32_t cg_copy_scalar_(const float *v, size_t n, uint8_t *out) {
    uint32_t absmax_bits = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t u = cg_load_bits_(v, i);
        absmax_bits = cg_max32_(absmax_bits, u & CG_ABS_MASK_);
        cg_put32_(out + 4 * i, u);
    }
    return absmax_bits;
}
#if CG_AVX2_
CG_TARGET_AVX2_ static uint32_t cg_copy_avx2_(const float *v, size_t n, uint8_t *out) {
    __m256i t0 = _mm256_setzero_si256(), t1 = t0;
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m256i a = cg_load8_avx2_(v, i), b = cg_load8_avx2_(v, i + 8);
        cg_store_avx2_(out + 4 * i, a);
        cg_store_avx2_(out + 4 * i + 32, b);
        t0 = _mm256_max_epu32(t0, cg_abs_avx2_(a));
        t1 = _mm256_max_epu32(t1, cg_abs_avx2_(b));
    }
    return cg_max32_(cg_hmax_u32_avx2_(_mm256_max_epu32(t0, t1)), cg_copy_scalar_(cg_at_(v, i), n - i, out + 4 * i));
}
#endif
#if CG_NEON_
static uint32_t cg_copy_neon_(const float *v, size_t n, uint8_t *out) {
    uint32x4_t t0 = vdupq_n_u32(0), t1 = t0;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint32x4_t a = cg_load4_neon_(v, i), b = cg_load4_neon_(v, i + 4);
        vst1q_u8(out + 4 * i, vreinterpretq_u8_u32(a));
        vst1q_u8(out + 4 * i + 16, vreinterpretq_u8_u32(b));
        t0 = vmaxq_u32(t0, cg_abs_neon_(a));
        t1 = vmaxq_u32(t1, cg_abs_neon_(b));
    }
    return cg_max32_(vmaxvq_u32(vmaxq_u32(t0, t1)), cg_copy_scalar_(cg_at_(v, i), n - i, out + 4 * i));
}
#endif

/* f16_encode: to nearest even. Finite values that would round to Inf become +-65504; Inf stays, a NaN becomes a quiet
   one without payload. Returns absmax bits. */
#define CG_F16_LIMIT_ 0x477fefffu /* magnitude bits of the largest value that rounds to 65504 */
/* f32 bits to f16 bits */
CG_INLINE_ uint32_t cg_f16_encode_(uint32_t u) {
    uint32_t sign = u >> 16 & 0x8000u, m = u & CG_ABS_MASK_, shift, rest, h;
    if (m > CG_F16_LIMIT_) {
        if (m < CG_INF_BITS_) return sign | 0x7bffu;
        return sign | (m == CG_INF_BITS_ ? 0x7c00u : 0x7e00u);
    }
    if (m < 0x33000000u) return sign; /* below half of the smallest denormal */
    if (m < 0x38800000u) {            /* becomes denormal */
        shift = 126u - (m >> 23);
        m = (m & 0x7fffffu) | 0x800000u;
    } else {
        shift = 13;
        m -= 0x38000000u;
    }
    h = m >> shift;
    rest = m & ((1u << shift) - 1u);
    h += rest > 1u << (shift - 1) || (rest == 1u << (shift - 1) && (h & 1u));
    return sign | h;
}
static uint32_t cg_f16_encode_scalar_(const float *v, size_t n, uint8_t *out) {
    uint32_t absmax_bits = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t u = cg_load_bits_(v, i);
        absmax_bits = cg_max32_(absmax_bits, u & CG_ABS_MASK_);
        cg_put16_(out + 2 * i, cg_f16_encode_(u));
    }
    return absmax_bits;
}
#if CG_AVX2_
CG_TARGET_AVX2_ static uint32_t cg_f16_encode_avx2_(const float *v, size_t n, uint8_t *out) {
    __m256i t0 = _mm256_setzero_si256(), t1 = t0;
    uint32_t absmax_bits;
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m256i a = cg_load8_avx2_(v, i), b = cg_load8_avx2_(v, i + 8);
        __m128i x = _mm256_cvtps_ph(_mm256_castsi256_ps(a), 0), y = _mm256_cvtps_ph(_mm256_castsi256_ps(b), 0);
        CG_PREFETCH_(cg_at_(v, i + 1536));
        cg_store_avx2_(out + 2 * i, _mm256_inserti128_si256(_mm256_castsi128_si256(x), y, 1));
        t0 = _mm256_max_epu32(t0, cg_abs_avx2_(a));
        t1 = _mm256_max_epu32(t1, cg_abs_avx2_(b));
    }
    absmax_bits = cg_max32_(
        cg_hmax_u32_avx2_(_mm256_max_epu32(t0, t1)), cg_f16_encode_scalar_(cg_at_(v, i), n - i, out + 2 * i));
    if (absmax_bits > CG_F16_LIMIT_) cg_f16_encode_scalar_(v, i, out); /* rare: the instruction gives Inf */
    return absmax_bits;
}
#endif
#if CG_NEON_
static uint32_t cg_f16_encode_neon_(const float *v, size_t n, uint8_t *out) {
    uint32x4_t t0 = vdupq_n_u32(0), t1 = t0;
    uint32_t absmax_bits;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint32x4_t a = cg_load4_neon_(v, i), b = cg_load4_neon_(v, i + 4);
        vst1q_u8(out + 2 * i,
            vreinterpretq_u8_f16(vcvt_high_f16_f32(vcvt_f16_f32(cg_as_float_neon_(a)), cg_as_float_neon_(b))));
        t0 = vmaxq_u32(t0, cg_abs_neon_(a));
        t1 = vmaxq_u32(t1, cg_abs_neon_(b));
    }
    absmax_bits = cg_max32_(vmaxvq_u32(vmaxq_u32(t0, t1)), cg_f16_encode_scalar_(cg_at_(v, i), n - i, out + 2 * i));
    if (absmax_bits > CG_F16_LIMIT_) cg_f16_encode_scalar_(v, i, out); /* rare: the instruction gives Inf */
    return absmax_bits;
}
#endif

/* bf16_encode: to nearest even. Finite values that would round to Inf become the largest, 0x7f7f; Inf stays, a NaN
   becomes quiet and keeps the rest of its upper bits. Returns absmax bits. */
#define CG_BF16_LIMIT_ 0x7f7f7fffu /* magnitude bits of the largest value that rounds to 0x7f7f */
CG_INLINE_ uint32_t cg_bf16_encode_(uint32_t u) {
    uint32_t m = u & CG_ABS_MASK_;
    if (m > CG_BF16_LIMIT_) {
        if (m < CG_INF_BITS_) return (u >> 16 & 0x8000u) | 0x7f7fu;
        return u >> 16 | (m > CG_INF_BITS_ ? 0x40u : 0u);
    }
    return (u + 0x7fffu + (u >> 16 & 1u)) >> 16;
}
static uint32_t cg_bf16_encode_scalar_(const float *v, size_t n, uint8_t *out) {
    uint32_t absmax_bits = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t u = cg_load_bits_(v, i);
        absmax_bits = cg_max32_(absmax_bits, u & CG_ABS_MASK_);
        cg_put16_(out + 2 * i, cg_bf16_encode_(u));
    }
    return absmax_bits;
}
#if CG_AVX2_
/* wrong above CG_BF16_LIMIT_ */
CG_AVX2_INLINE_ __m256i cg_bf16_encode8_avx2_(__m256i u) {
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
    return _mm256_srli_epi32(_mm256_add_epi32(_mm256_add_epi32(u, _mm256_set1_epi32(0x7fff)), odd), 16);
}
CG_TARGET_AVX2_ static uint32_t cg_bf16_encode_avx2_(const float *v, size_t n, uint8_t *out) {
    __m256i t0 = _mm256_setzero_si256(), t1 = t0;
    uint32_t absmax_bits;
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m256i a = cg_load8_avx2_(v, i), b = cg_load8_avx2_(v, i + 8);
        __m256i h = _mm256_packus_epi32(cg_bf16_encode8_avx2_(a), cg_bf16_encode8_avx2_(b));
        CG_PREFETCH_(cg_at_(v, i + 1536));
        cg_store_avx2_(out + 2 * i, _mm256_permute4x64_epi64(h, 0xd8));
        t0 = _mm256_max_epu32(t0, cg_abs_avx2_(a));
        t1 = _mm256_max_epu32(t1, cg_abs_avx2_(b));
    }
    absmax_bits = cg_max32_(
        cg_hmax_u32_avx2_(_mm256_max_epu32(t0, t1)), cg_bf16_encode_scalar_(cg_at_(v, i), n - i, out + 2 * i));
    if (absmax_bits > CG_BF16_LIMIT_) cg_bf16_encode_scalar_(v, i, out);
    return absmax_bits;
}
#endif
#if CG_NEON_
CG_INLINE_ uint32x4_t cg_bf16_round_neon_(uint32x4_t u) { /* added to u, makes its upper half round to nearest even */
    return vaddq_u32(vandq_u32(vshrq_n_u32(u, 16), vdupq_n_u32(1)), vdupq_n_u32(0x7fff));
}
static uint32_t cg_bf16_encode_neon_(const float *v, size_t n, uint8_t *out) {
    uint32x4_t t0 = vdupq_n_u32(0), t1 = t0;
    uint32_t absmax_bits;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint32x4_t a = cg_load4_neon_(v, i), b = cg_load4_neon_(v, i + 4);
        uint16x8_t h = vaddhn_high_u32(vaddhn_u32(a, cg_bf16_round_neon_(a)), b, cg_bf16_round_neon_(b));
        vst1q_u8(out + 2 * i, vreinterpretq_u8_u16(h));
        t0 = vmaxq_u32(t0, cg_abs_neon_(a));
        t1 = vmaxq_u32(t1, cg_abs_neon_(b));
    }
    absmax_bits = cg_max32_(vmaxvq_u32(vmaxq_u32(t0, t1)), cg_bf16_encode_scalar_(cg_at_(v, i), n - i, out + 2 * i));
    if (absmax_bits > CG_BF16_LIMIT_) cg_bf16_encode_scalar_(v, i, out);
    return absmax_bits;
}
#endif
