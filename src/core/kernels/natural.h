/* natural: kernels that round to powers of two: natural compression and natural dithering

   Offers   natural_encode, natural_decode, dither_encode, dither_decode
   Needs    base, random, table, levels, fp8 (cg_noise_bits_)
   Touches  nothing but its arguments */

/* natural_encode: n exponent bytes (that of the f32, at most 254; 0: zero), then n sign bits as sign_encode has them (0
   for a zero). Stochastic: adding 23 random bits below the exponent carries into it with the probability of rounding
   up, and the mean is kept. Nearest: adds half, so that ties go away from zero. Denormals round to 0 or 2^-126
   likewise; what would round above 2^127 becomes that. Returns absmax bits. */
CG_INLINE_ uint32_t cg_natural_encode_split_(
    const float *v, size_t n, cg_key_ key, uint32_t position, int stochastic, uint8_t *exponents, uint8_t *signs) {
    uint32_t absmax_bits = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t u = cg_load_bits_(v, i), m = u & CG_ABS_MASK_;
        uint32_t e = (m + (stochastic ? cg_noise_bits_(key, position + (uint32_t)i) >> 9 : 0x400000u)) >> 23;
        absmax_bits = cg_max32_(absmax_bits, m);
        exponents[i] = (uint8_t)(e < 254 ? e : 254);
        if (i % 8 == 0) signs[i / 8] = 0;
        signs[i / 8] = (uint8_t)(signs[i / 8] | (e ? u >> 31 : 0) << i % 8);
    }
    return absmax_bits;
}
static uint32_t cg_natural_encode_scalar_(
    const float *v, size_t n, cg_key_ key, uint32_t position, int stochastic, uint8_t *out) {
    return cg_natural_encode_split_(v, n, key, position, stochastic, out, out + n);
}
#if CG_AVX2_
/* The first n / 32 * 32 values; returns how many. position % 16 == 0 if stochastic. */
CG_AVX2_INLINE_ size_t cg_natural_encode32_avx2_(
    const float *v, size_t n, cg_key_ key, uint32_t position, int stochastic, uint8_t *out, __m256i *absmax) {
    __m256i t0 = _mm256_setzero_si256(), t1 = t0;
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        __m256i a = cg_load8_avx2_(v, i), b = cg_load8_avx2_(v, i + 8), c = cg_load8_avx2_(v, i + 16),
                d = cg_load8_avx2_(v, i + 24);
        __m256i s = cg_sign_bytes_avx2_(a, b, c, d), p, q, r, t, e;
        cg_prefetch_ahead_avx2_(v, i);
        a = cg_abs_avx2_(a);
        b = cg_abs_avx2_(b);
        c = cg_abs_avx2_(c);
        d = cg_abs_avx2_(d);
        t0 = _mm256_max_epu32(t0, _mm256_max_epu32(a, b));
        t1 = _mm256_max_epu32(t1, _mm256_max_epu32(c, d));
        if (stochastic) {
            p = cg_hash8_avx2_(key, (position + (uint32_t)i) >> 1);
            r = cg_hash8_avx2_(key, ((position + (uint32_t)i) >> 1) + 8);
            q = _mm256_srli_epi32(cg_swap_halves_avx2_(p), 9);
            t = _mm256_srli_epi32(cg_swap_halves_avx2_(r), 9);
            p = _mm256_srli_epi32(p, 9);
            r = _mm256_srli_epi32(r, 9);
        } else {
            p = q = r = t = _mm256_set1_epi32(0x400000);
        }
        a = _mm256_srli_epi32(_mm256_add_epi32(a, p), 23);
        b = _mm256_srli_epi32(_mm256_add_epi32(b, q), 23);
        c = _mm256_srli_epi32(_mm256_add_epi32(c, r), 23);
        d = _mm256_srli_epi32(_mm256_add_epi32(d, t), 23);
        e = _mm256_min_epu8(cg_narrow_avx2_(a, b, c, d), _mm256_set1_epi8((char)-2));
        s = _mm256_andnot_si256(_mm256_cmpeq_epi8(e, _mm256_setzero_si256()), s);
        cg_store_avx2_(out + i, cg_pack_order_avx2_(e));
        cg_put32_(out + n + i / 8, (uint32_t)_mm256_movemask_epi8(cg_pack_order_avx2_(s)));
    }
    *absmax = _mm256_max_epu32(t0, t1);
    return i;
}
CG_TARGET_AVX2_ static uint32_t cg_natural_encode_avx2_(
    const float *v, size_t n, cg_key_ key, uint32_t position, int stochastic, uint8_t *out) {
    __m256i absmax;
    uint32_t absmax_bits;
    size_t i;
    if (stochastic && (position & 15)) return cg_natural_encode_scalar_(v, n, key, position, stochastic, out);
    i = stochastic ? cg_natural_encode32_avx2_(v, n, key, position, 1, out, &absmax)
                   : cg_natural_encode32_avx2_(v, n, key, position, 0, out, &absmax);
    absmax_bits = cg_hmax_u32_avx2_(absmax);
    return i < n ? cg_max32_(absmax_bits,
                       cg_natural_encode_split_(
                           cg_at_(v, i), n - i, key, position + (uint32_t)i, stochastic, out + i, out + n + i / 8))
                 : absmax_bits;
}
#endif
#if CG_NEON_
CG_INLINE_ uint32x4_t cg_natural_encode4_neon_(uint32x4_t m, uint32x4_t h, int stochastic) {
    m = stochastic ? vaddq_u32(m, vshrq_n_u32(h, 9)) : vaddq_u32(m, vdupq_n_u32(0x400000u));
    return vminq_u32(vshrq_n_u32(m, 23), vdupq_n_u32(254));
}
/* 16 values: writes their exponents, raises *absmax, and returns their signs as byte masks. */
CG_INLINE_ uint8x16_t cg_natural_encode16_neon_(
    const float *v, size_t i, cg_key_ key, uint32_t position, int stochastic, uint8_t *out, uint32x4_t *absmax) {
    uint32x4_t a = cg_load4_neon_(v, i), b = cg_load4_neon_(v, i + 4), c = cg_load4_neon_(v, i + 8),
               d = cg_load4_neon_(v, i + 12), h = a, g = a;
    uint8x16_t s = cg_sign_bytes_neon_(a, b, c, d), e;
    a = cg_abs_neon_(a);
    b = cg_abs_neon_(b);
    c = cg_abs_neon_(c);
    d = cg_abs_neon_(d);
    *absmax = vmaxq_u32(*absmax, vmaxq_u32(vmaxq_u32(a, b), vmaxq_u32(c, d)));
    if (stochastic) {
        h = cg_hash4_neon_(key, (position + (uint32_t)i) >> 1);
        g = cg_hash4_neon_(key, ((position + (uint32_t)i) >> 1) + 4);
    }
    e = cg_narrow_neon_(cg_natural_encode4_neon_(a, h, stochastic), cg_natural_encode4_neon_(b, g, stochastic),
        cg_natural_encode4_neon_(c, cg_swap_halves_neon_(h), stochastic),
        cg_natural_encode4_neon_(d, cg_swap_halves_neon_(g), stochastic));
    vst1q_u8(out + i, e);
    return vandq_u8(vtstq_u8(s, s), vtstq_u8(e, e));
}
static uint32_t cg_natural_encode_neon_(
    const float *v, size_t n, cg_key_ key, uint32_t position, int stochastic, uint8_t *out) {
    uint32x4_t absmax = vdupq_n_u32(0);
    size_t i = 0;
    if (stochastic && (position & 15)) return cg_natural_encode_scalar_(v, n, key, position, stochastic, out);
    for (; i + 64 <= n; i += 64) {
        uint8x16_t s[4];
        for (size_t j = 0; j < 4; j++)
            s[j] = cg_natural_encode16_neon_(v, i + 16 * j, key, position, stochastic, out, &absmax);
        cg_put64_(out + n + i / 8, cg_movemask_neon_(s[0], s[1], s[2], s[3]));
    }
    return cg_max32_(vmaxvq_u32(absmax),
        cg_natural_encode_split_(
            cg_at_(v, i), n - i, key, position + (uint32_t)i, stochastic, out + i, out + n + i / 8));
}
#endif

/* natural_decode: 255 counts as 254, and exponent 0 is +0, so that any bytes are legal and finite. */
CG_INLINE_ void cg_natural_decode_split_(const uint8_t *exponents, const uint8_t *signs, size_t n, float *out) {
    for (size_t i = 0; i < n; i++) {
        uint32_t e = exponents[i] < 254 ? exponents[i] : 254u;
        cg_store_(out, i, cg_as_float_(e << 23 | (e ? (uint32_t)(signs[i / 8] >> i % 8 & 1) << 31 : 0u)));
    }
}
static void cg_natural_decode_scalar_(const uint8_t *in, size_t n, float *out, int non_temporal) {
    (void)non_temporal;
    cg_natural_decode_split_(in, in + n, n, out);
}
#if CG_AVX2_
CG_TARGET_AVX2_ static void cg_natural_decode_avx2_(const uint8_t *in, size_t n, float *out, int non_temporal) {
    const __m256i minus = _mm256_set1_epi32((int)CG_SIGN_BIT_), s0 = _mm256_setr_epi32(31, 30, 29, 28, 27, 26, 25, 24);
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        __m256i e = _mm256_min_epu8(cg_load_bytes_avx2_(in + i), _mm256_set1_epi8((char)-2)), w;
        uint32_t zeros = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(e, _mm256_setzero_si256()));
        __m128i exponents[4];
        exponents[0] = _mm256_castsi256_si128(e);
        exponents[2] = _mm256_extracti128_si256(e, 1);
        exponents[1] = _mm_srli_si128(exponents[0], 8);
        exponents[3] = _mm_srli_si128(exponents[2], 8);
        w = _mm256_set1_epi32((int)(cg_get32_(in + n + i / 8) & ~zeros));
        for (int j = 0; j < 4; j++) { /* shift each bit to the place of the sign */
            __m256i s = _mm256_and_si256(_mm256_sllv_epi32(w, _mm256_sub_epi32(s0, _mm256_set1_epi32(8 * j))), minus);
            cg_store_stream_avx2_(out, i + 8 * (size_t)j,
                _mm256_or_si256(s, _mm256_slli_epi32(_mm256_cvtepu8_epi32(exponents[j]), 23)), non_temporal);
        }
    }
    _mm256_zeroupper();
    if (i < n) cg_natural_decode_split_(in + i, in + n + i / 8, n - i, cg_at_mut_(out, i));
}
#endif
#if CG_NEON_
static void cg_natural_decode_neon_(const uint8_t *in, size_t n, float *out, int non_temporal) {
    const uint32x4_t minus = vdupq_n_u32(CG_SIGN_BIT_);
    const int32x4_t low = { 31, 30, 29, 28 }, high = { 27, 26, 25, 24 };
    size_t i = 0;
    (void)non_temporal;
    for (; i + 8 <= n; i += 8) {
        const uint32x4_t w = vdupq_n_u32(in[n + i / 8]);
        uint16x8_t e = vmovl_u8(vmin_u8(vld1_u8(in + i), vdup_n_u8(254)));
        /* by 23 in two steps: a widening shift goes no further than 16 */
        uint32x4_t a = vshll_n_u16(vget_low_u16(e), 16), b = vshll_high_n_u16(e, 16);
        a = vorrq_u32(vshlq_n_u32(a, 7), vandq_u32(vandq_u32(vshlq_u32(w, low), minus), vtstq_u32(a, a)));
        b = vorrq_u32(vshlq_n_u32(b, 7), vandq_u32(vandq_u32(vshlq_u32(w, high), minus), vtstq_u32(b, b)));
        cg_store4_neon_(out, i, cg_as_float_neon_(a));
        cg_store4_neon_(out, i + 4, cg_as_float_neon_(b));
    }
    cg_natural_decode_split_(in + i, in + n + i / 8, n - i, cg_at_mut_(out, i));
}
#endif

/* dither_encode: of t = |v|*inv_scale, rounded, at most 1 (as is a NaN), level 0 or m = 1..s for 2^(m-s), where
   s = 2^(bits-1) - 1; bit bits-1 of the symbol is the sign, 0 for level 0. From the lowest power 2^(1-s) on, t rounds
   as natural_encode does. Below it, t becomes that power with probability t/2^(1-s), or, to nearest, if it is more
   than half of it. bits = 2..8. */
/* s: the largest level */
CG_INLINE_ unsigned cg_dither_levels_(unsigned bits) { return (1u << (bits - 1)) - 1u; }
static void cg_dither_encode_scalar_(
    const cg_dither_ *q, cg_key_ key, uint32_t position, const float *v, size_t n, uint8_t *symbols) {
    const unsigned max_level = cg_dither_levels_(q->bits);
    const uint32_t min_level_bits = (uint32_t)(128 - max_level) << 23;
    const float inv_min_level = cg_as_float_((uint32_t)(126 + max_level) << 23); /* 2^(s-1) */
    for (size_t i = 0; i < n; i++) {
        float f = cg_load_(v, i), u = 0.5f;
        uint32_t t = cg_as_bits_(cg_times_(f, q->inv_scale)) & CG_ABS_MASK_, rounding = 0x400000u, m = 0;
        if (q->stochastic) {
            uint32_t h = cg_noise_bits_(key, position + (uint32_t)i);
            rounding = h >> 9;
            u = cg_times_((float)(int32_t)(h >> 8), 5.9604644775390625e-8f);
        }
        t = t < 0x3f800000u ? t : 0x3f800000u;
        /* always so, if t >= 2^(1-s) */
        if (u < cg_times_(cg_as_float_(t), inv_min_level))
            m = ((cg_max32_(t, min_level_bits) + rounding) >> 23) - (127 - max_level);
        symbols[i] = (uint8_t)(m | (m ? cg_as_bits_(f) >> 31 : 0) << (q->bits - 1));
    }
}
#if CG_AVX2_
/* levels of eight values plus 127 - s, or 0 */
CG_AVX2_INLINE_ __m256i cg_dither_encode8_avx2_(
    __m256i v, __m256i h, __m256 inv, __m256i min_level_bits, __m256 inv_min_level, int stochastic) {
    __m256i t = cg_abs_avx2_(_mm256_castps_si256(cg_mul8_avx2_(_mm256_castsi256_ps(v), inv))),
            rounding = _mm256_set1_epi32(0x400000);
    __m256 u = _mm256_set1_ps(0.5f), nonzero;
    if (stochastic) {
        rounding = _mm256_srli_epi32(h, 9);
        u = cg_mul8_avx2_(_mm256_cvtepi32_ps(_mm256_srli_epi32(h, 8)), _mm256_set1_ps(5.9604644775390625e-8f));
    }
    t = _mm256_min_epu32(t, _mm256_set1_epi32(0x3f800000));
    nonzero = _mm256_cmp_ps(u, cg_mul8_avx2_(_mm256_castsi256_ps(t), inv_min_level), _CMP_LT_OQ);
    return _mm256_and_si256(_mm256_srli_epi32(_mm256_add_epi32(_mm256_max_epu32(t, min_level_bits), rounding), 23),
        _mm256_castps_si256(nonzero));
}
CG_AVX2_INLINE_ size_t cg_dither_encode32_avx2_(
    const cg_dither_ *q, cg_key_ key, uint32_t position, const float *v, size_t n, uint8_t *symbols, int stochastic) {
    const unsigned max_level = cg_dither_levels_(q->bits);
    const __m256 inv = _mm256_set1_ps(q->inv_scale),
                 inv_min_level = _mm256_castsi256_ps(_mm256_set1_epi32((int)((126 + max_level) << 23)));
    const __m256i min_level_bits = _mm256_set1_epi32((int)((128 - max_level) << 23)),
                  bias = _mm256_set1_epi8((char)(127 - max_level));
    const __m128i down = _mm_cvtsi32_si128((int)(8 - q->bits));
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        __m256i a = cg_load8_avx2_(v, i), b = cg_load8_avx2_(v, i + 8), c = cg_load8_avx2_(v, i + 16),
                d = cg_load8_avx2_(v, i + 24);
        __m256i sign = _mm256_srl_epi16(cg_sign_bytes_avx2_(a, b, c, d), down), h = a, g = a, m;
        CG_PREFETCH_(cg_at_(v, i + CG_CHUNK_));
        CG_PREFETCH_(cg_at_(v, i + CG_CHUNK_ + 16));
        if (stochastic) {
            h = cg_hash8_avx2_(key, (position + (uint32_t)i) >> 1);
            g = cg_hash8_avx2_(key, ((position + (uint32_t)i) >> 1) + 8);
        }
        a = cg_dither_encode8_avx2_(a, h, inv, min_level_bits, inv_min_level, stochastic);
        b = cg_dither_encode8_avx2_(b, cg_swap_halves_avx2_(h), inv, min_level_bits, inv_min_level, stochastic);
        c = cg_dither_encode8_avx2_(c, g, inv, min_level_bits, inv_min_level, stochastic);
        d = cg_dither_encode8_avx2_(d, cg_swap_halves_avx2_(g), inv, min_level_bits, inv_min_level, stochastic);
        m = _mm256_subs_epu8(cg_narrow_avx2_(a, b, c, d), bias);
        sign = _mm256_andnot_si256(_mm256_cmpeq_epi8(m, _mm256_setzero_si256()), sign);
        cg_store_avx2_(symbols + i, cg_pack_order_avx2_(_mm256_or_si256(m, sign)));
    }
    return i;
}
CG_TARGET_AVX2_ static void cg_dither_encode_avx2_(
    const cg_dither_ *q, cg_key_ key, uint32_t position, const float *v, size_t n, uint8_t *symbols) {
    size_t head = q->stochastic ? cg_min_(n, (16 - (position & 15)) & 15) : 0, i;
    if (head) cg_dither_encode_scalar_(q, key, position, v, head, symbols);
    v = cg_at_(v, head);
    position += (uint32_t)head;
    symbols += head;
    n -= head;
    i = q->stochastic ? cg_dither_encode32_avx2_(q, key, position, v, n, symbols, 1)
                      : cg_dither_encode32_avx2_(q, key, position, v, n, symbols, 0);
    _mm256_zeroupper();
    if (i < n) cg_dither_encode_scalar_(q, key, position + (uint32_t)i, cg_at_(v, i), n - i, symbols + i);
}
#endif
#if CG_NEON_
/* levels of four values plus 127 - s, or 0 */
CG_INLINE_ uint32x4_t cg_dither_encode4_neon_(
    uint32x4_t v, uint32x4_t h, float32x4_t inv, uint32x4_t min_level_bits, float32x4_t inv_min_level, int stochastic) {
    uint32x4_t t = vminq_u32(
        cg_abs_neon_(vreinterpretq_u32_f32(cg_times_neon_(cg_as_float_neon_(v), inv))), vdupq_n_u32(0x3f800000u));
    uint32x4_t rounding = stochastic ? vshrq_n_u32(h, 9) : vdupq_n_u32(0x400000u);
    float32x4_t u = stochastic ? cg_times_neon_(vcvtq_f32_u32(vshrq_n_u32(h, 8)), vdupq_n_f32(5.9604644775390625e-8f))
                               : vdupq_n_f32(0.5f);
    uint32x4_t nonzero = vcltq_f32(u, cg_times_neon_(cg_as_float_neon_(t), inv_min_level));
    return vandq_u32(vshrq_n_u32(vaddq_u32(vmaxq_u32(t, min_level_bits), rounding), 23), nonzero);
}
static void cg_dither_encode_neon_(
    const cg_dither_ *q, cg_key_ key, uint32_t position, const float *v, size_t n, uint8_t *symbols) {
    const unsigned max_level = cg_dither_levels_(q->bits);
    const int stochastic = q->stochastic, down = (int)q->bits - 8;
    const float32x4_t inv = vdupq_n_f32(q->inv_scale),
                      inv_min_level = cg_as_float_neon_(vdupq_n_u32((uint32_t)(126 + max_level) << 23));
    const uint32x4_t min_level_bits = vdupq_n_u32((uint32_t)(128 - max_level) << 23);
    const size_t head = stochastic ? cg_min_(n, (16 - (position & 15)) & 15) : 0;
    size_t i = head;
    cg_dither_encode_scalar_(q, key, position, v, head, symbols);
    for (; i + 16 <= n; i += 16) {
        uint32x4_t a = cg_load4_neon_(v, i), b = cg_load4_neon_(v, i + 4), c = cg_load4_neon_(v, i + 8),
                   d = cg_load4_neon_(v, i + 12), h = a, g = a;
        uint8x16_t sign = vshlq_u8(cg_sign_bytes_neon_(a, b, c, d), vdupq_n_s8((int8_t)down)), m;
        if (stochastic) {
            h = cg_hash4_neon_(key, (position + (uint32_t)i) >> 1);
            g = cg_hash4_neon_(key, ((position + (uint32_t)i) >> 1) + 4);
        }
        m = cg_narrow_neon_(cg_dither_encode4_neon_(a, h, inv, min_level_bits, inv_min_level, stochastic),
            cg_dither_encode4_neon_(b, g, inv, min_level_bits, inv_min_level, stochastic),
            cg_dither_encode4_neon_(c, cg_swap_halves_neon_(h), inv, min_level_bits, inv_min_level, stochastic),
            cg_dither_encode4_neon_(d, cg_swap_halves_neon_(g), inv, min_level_bits, inv_min_level, stochastic));
        m = vqsubq_u8(m, vdupq_n_u8((uint8_t)(127 - max_level)));
        vst1q_u8(symbols + i, vorrq_u8(m, vandq_u8(sign, vtstq_u8(m, m))));
    }
    cg_dither_encode_scalar_(q, key, position + (uint32_t)i, cg_at_(v, i), n - i, symbols + i);
}
#endif

/* dither_decode: the level as a power of two, times scale, rounded; bits of a symbol above the low `bits` are
   ignored. */
static void cg_dither_decode_scalar_(
    unsigned bits, float scale, const uint8_t *symbols, size_t n, float *out, int non_temporal) {
    const unsigned max_level = cg_dither_levels_(bits);
    (void)non_temporal;
    for (size_t i = 0; i < n; i++) {
        uint32_t m = symbols[i] & max_level, sign = (uint32_t)(symbols[i] >> (bits - 1) & 1) << 31;
        cg_store_(out, i, cg_times_(cg_as_float_(m ? sign | (m + 127 - max_level) << 23 : 0u), scale));
    }
}
#if CG_AVX2_
CG_TARGET_AVX2_ static void cg_dither_decode_avx2_(
    unsigned bits, float scale, const uint8_t *symbols, size_t n, float *out, int non_temporal) {
    const unsigned max_level = cg_dither_levels_(bits);
    const __m256 scale_v = _mm256_set1_ps(scale);
    const __m128i level_mask = _mm_set1_epi8((char)max_level), bias = _mm_set1_epi8((char)(127 - max_level)),
                  up = _mm_cvtsi32_si128((int)(8 - bits));
    const __m128i high = _mm_set1_epi8((char)(1u << (bits - 1)));
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m128i b = _mm_loadu_si128((const __m128i *)(const void *)(symbols + i)), m = _mm_and_si128(b, level_mask);
        __m128i none = _mm_cmpeq_epi8(m, _mm_setzero_si128()),
                sign = _mm_sll_epi16(_mm_andnot_si128(none, _mm_and_si128(b, high)), up);
        m = _mm_andnot_si128(none, _mm_add_epi8(m, bias));
        for (int j = 0; j < 2; j++, m = _mm_srli_si128(m, 8), sign = _mm_srli_si128(sign, 8)) {
            __m256i f = _mm256_or_si256(
                _mm256_slli_epi32(_mm256_cvtepu8_epi32(m), 23), _mm256_slli_epi32(_mm256_cvtepu8_epi32(sign), 24));
            cg_store_stream_avx2_(out, i + 8 * (size_t)j,
                _mm256_castps_si256(cg_mul8_avx2_(_mm256_castsi256_ps(f), scale_v)), non_temporal);
        }
    }
    _mm256_zeroupper();
    if (i < n) cg_dither_decode_scalar_(bits, scale, symbols + i, n - i, cg_at_mut_(out, i), 0);
}
#endif
#if CG_NEON_
CG_INLINE_ void cg_dither_decode4_neon_(uint16x4_t m, uint16x4_t sign, float32x4_t scale, float *out, size_t i) {
    uint32x4_t f = vorrq_u32(vshlq_n_u32(vmovl_u16(m), 23), vshlq_n_u32(vmovl_u16(sign), 24));
    cg_store4_neon_(out, i, cg_as_float_neon_(f) * scale);
}
static void cg_dither_decode_neon_(
    unsigned bits, float scale, const uint8_t *symbols, size_t n, float *out, int non_temporal) {
    const unsigned max_level = cg_dither_levels_(bits);
    const float32x4_t scale_v = vdupq_n_f32(scale);
    const int up = 8 - (int)bits;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint8x8_t b = vld1_u8(symbols + i), m = vand_u8(b, vdup_n_u8((uint8_t)max_level)), nonzero = vtst_u8(m, m);
        uint8x8_t sign = vand_u8(vand_u8(vshl_u8(b, vdup_n_s8((int8_t)up)), vdup_n_u8(0x80)), nonzero);
        uint16x8_t w = vmovl_u8(vand_u8(vadd_u8(m, vdup_n_u8((uint8_t)(127 - max_level))), nonzero)),
                   g = vmovl_u8(sign);
        cg_dither_decode4_neon_(vget_low_u16(w), vget_low_u16(g), scale_v, out, i);
        cg_dither_decode4_neon_(vget_high_u16(w), vget_high_u16(g), scale_v, out, i + 4);
    }
    cg_dither_decode_scalar_(bits, scale, symbols + i, n - i, cg_at_mut_(out, i), non_temporal);
}
#endif
