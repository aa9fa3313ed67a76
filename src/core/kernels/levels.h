/* levels: kernels that write sign bits and the symbols of a uniform grid

   Offers   sign_encode, levels_encode; cg_hash8_avx2_ and cg_hash4_neon_
   Needs    base, random, table
   Touches  nothing but its arguments
   Other headers may use: cg_hash8_avx2_ */

/* sign_encode: bit i % 8 of out[i / 8] is 1 where v[i] < 0 (so 0 for -0 and NaN), bits after the last are 0. Adds
   |v[i]| to lanes[i % 16] unless lanes is NULL; to sum up a longer vector, all calls but the last have n % 16 == 0.
   Returns absmax bits; with lanes, SIMD versions may return less, but CG_INF_BITS_ or more just where they should. */
static uint32_t cg_sign_encode_scalar_(const float *v, size_t n, uint8_t *out, double *lanes) {
    uint32_t absmax_bits = 0;
    for (size_t i = 0; i < n; i++) {
        float f = cg_load_(v, i);
        uint32_t m = cg_as_bits_(f) & CG_ABS_MASK_;
        absmax_bits = cg_max32_(absmax_bits, m);
        if (lanes) lanes[i % 16] += (double)cg_as_float_(m);
        if (i % 8 == 0) out[i / 8] = 0;
        out[i / 8] = (uint8_t)(out[i / 8] | (unsigned)(f < 0.0f) << i % 8);
    }
    return absmax_bits;
}
#if CG_AVX2_
/* masks of v < 0 */
CG_AVX2_INLINE_ __m256i cg_negative_avx2_(__m256i v) {
    return _mm256_castps_si256(_mm256_cmp_ps(_mm256_castsi256_ps(v), _mm256_setzero_ps(), _CMP_LT_OQ));
}
/* eight magnitudes to eight lanes */
CG_AVX2_INLINE_ void cg_lanes_add_avx2_(__m256d *s, __m256 m) {
    s[0] = _mm256_add_pd(s[0], _mm256_cvtps_pd(_mm256_castps256_ps128(m)));
    s[1] = _mm256_add_pd(s[1], _mm256_cvtps_pd(_mm256_extractf128_ps(m, 1)));
}
/* The first n / 32 * 32 values; returns how many. sums: adds to s, and leaves *absmax 0: a NaN or Inf shows in the sum
   of magnitudes, so that no maximum is needed beside it. */
CG_AVX2_INLINE_ size_t cg_sign_encode32_avx2_(
    const float *v, size_t n, uint8_t *out, __m256i *absmax, __m256d *s, int sums) {
    __m256i t0 = _mm256_setzero_si256(), t1 = t0;
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        __m256i a = cg_load8_avx2_(v, i), b = cg_load8_avx2_(v, i + 8), c = cg_load8_avx2_(v, i + 16),
                d = cg_load8_avx2_(v, i + 24);
        __m256i ab = _mm256_packs_epi32(cg_negative_avx2_(a), cg_negative_avx2_(b)),
                cd = _mm256_packs_epi32(cg_negative_avx2_(c), cg_negative_avx2_(d));
        __m256i bits = cg_pack_order_avx2_(_mm256_packs_epi16(ab, cd));
        cg_prefetch_ahead_avx2_(v, i);
        cg_put32_(out + i / 8, (uint32_t)_mm256_movemask_epi8(bits));
        a = cg_abs_avx2_(a);
        b = cg_abs_avx2_(b);
        c = cg_abs_avx2_(c);
        d = cg_abs_avx2_(d);
        if (sums) {
            cg_lanes_add_avx2_(s, _mm256_castsi256_ps(a));
            cg_lanes_add_avx2_(s + 2, _mm256_castsi256_ps(b));
            cg_lanes_add_avx2_(s, _mm256_castsi256_ps(c));
            cg_lanes_add_avx2_(s + 2, _mm256_castsi256_ps(d));
        } else {
            t0 = _mm256_max_epu32(t0, _mm256_max_epu32(a, b));
            t1 = _mm256_max_epu32(t1, _mm256_max_epu32(c, d));
        }
    }
    *absmax = _mm256_max_epu32(t0, t1);
    return i;
}
CG_TARGET_AVX2_ static uint32_t cg_sign_encode_avx2_(const float *v, size_t n, uint8_t *out, double *lanes) {
    __m256i absmax;
    __m256d s[4];
    uint32_t absmax_bits;
    size_t i;
    if (lanes) {
        double lane_total = 0.0;
        for (int j = 0; j < 4; j++) s[j] = _mm256_loadu_pd(lanes + 4 * j);
        i = cg_sign_encode32_avx2_(v, n, out, &absmax, s, 1);
        for (int j = 0; j < 4; j++) _mm256_storeu_pd(lanes + 4 * j, s[j]);
        for (int j = 0; j < 16; j++) lane_total += lanes[j];
        absmax_bits = lane_total < 1.7e308 ? 0 : CG_INF_BITS_; /* false for NaN as well */
    } else {
        i = cg_sign_encode32_avx2_(v, n, out, &absmax, s, 0);
        absmax_bits = cg_hmax_u32_avx2_(absmax);
    }
    return i < n ? cg_max32_(absmax_bits, cg_sign_encode_scalar_(cg_at_(v, i), n - i, out + i / 8, lanes))
                 : absmax_bits;
}
#endif
#if CG_NEON_
CG_INLINE_ void cg_lanes_add_neon_(float64x2_t *s, uint32x4_t m) {
    s[0] = s[0] + vcvt_f64_f32(vget_low_f32(cg_as_float_neon_(m)));
    s[1] = s[1] + vcvt_high_f64_f32(cg_as_float_neon_(m));
}
/* Signs of 16 values as byte masks; raises *absmax and, with sums, adds to the 16 lanes s. */
CG_INLINE_ uint8x16_t cg_sign_encode16_neon_(const float *v, size_t i, uint32x4_t *absmax, float64x2x4_t *s, int sums) {
    uint32x4_t a = cg_load4_neon_(v, i), b = cg_load4_neon_(v, i + 4), c = cg_load4_neon_(v, i + 8),
               d = cg_load4_neon_(v, i + 12);
    uint8x16_t mask = cg_narrow_neon_(vcltzq_f32(cg_as_float_neon_(a)), vcltzq_f32(cg_as_float_neon_(b)),
        vcltzq_f32(cg_as_float_neon_(c)), vcltzq_f32(cg_as_float_neon_(d)));
    a = cg_abs_neon_(a);
    b = cg_abs_neon_(b);
    c = cg_abs_neon_(c);
    d = cg_abs_neon_(d);
    *absmax = vmaxq_u32(*absmax, vmaxq_u32(vmaxq_u32(a, b), vmaxq_u32(c, d)));
    if (sums) {
        cg_lanes_add_neon_(&s[0].val[0], a);
        cg_lanes_add_neon_(&s[0].val[2], b);
        cg_lanes_add_neon_(&s[1].val[0], c);
        cg_lanes_add_neon_(&s[1].val[2], d);
    }
    return mask;
}
CG_INLINE_ size_t cg_sign_encode64_neon_(
    const float *v, size_t n, uint8_t *out, uint32x4_t *absmax, float64x2x4_t *s, int sums) {
    size_t i = 0;
    for (; i + 64 <= n; i += 64) {
        uint8x16_t a = cg_sign_encode16_neon_(v, i, absmax, s, sums),
                   b = cg_sign_encode16_neon_(v, i + 16, absmax, s, sums);
        uint8x16_t c = cg_sign_encode16_neon_(v, i + 32, absmax, s, sums),
                   d = cg_sign_encode16_neon_(v, i + 48, absmax, s, sums);
        cg_put64_(out + i / 8, cg_movemask_neon_(a, b, c, d));
    }
    return i;
}
static uint32_t cg_sign_encode_neon_(const float *v, size_t n, uint8_t *out, double *lanes) {
    uint32x4_t absmax = vdupq_n_u32(0);
    float64x2x4_t s[2];
    size_t i;
    if (lanes) {
        s[0] = vld1q_f64_x4(lanes);
        s[1] = vld1q_f64_x4(lanes + 8);
        i = cg_sign_encode64_neon_(v, n, out, &absmax, s, 1);
        vst1q_f64_x4(lanes, s[0]);
        vst1q_f64_x4(lanes + 8, s[1]);
    } else {
        i = cg_sign_encode64_neon_(v, n, out, &absmax, NULL, 0);
    }
    return cg_max32_(vmaxvq_u32(absmax), cg_sign_encode_scalar_(cg_at_(v, i), n - i, out + i / 8, lanes));
}
#endif

/* levels_encode: symbol = t rounded to nearest even + zero_symbol, kept within [0, max_symbol], where
   t = (v*prescale - encode_offset)*inv_step, each operation rounded, plus cg_noise_ if stochastic. Values of the grid
   keep |t| below 2^9, so that adding 1.5*2^23 rounds; others are clamped. An Inf or NaN gives any symbol. */
CG_INLINE_ uint8_t cg_level_encode_(const cg_levels_ *q, float v, float noise) {
    float t = cg_times_(cg_minus_(cg_times_(v, q->prescale), q->encode_offset), q->inv_step);
    int32_t level;
    if (q->stochastic) t = cg_plus_(t, noise);
    t = t < -1024.0f ? -1024.0f : t > 1024.0f ? 1024.0f : t;
    level = (int32_t)(cg_as_bits_(cg_plus_(t, 12582912.0f)) - 0x4b400000u) + q->zero_symbol;
    return (uint8_t)(level < 0 ? 0 : level > q->max_symbol ? q->max_symbol : level);
}
static void cg_levels_encode_scalar_(
    const cg_levels_ *q, cg_key_ key, uint32_t position, const float *v, size_t n, uint8_t *symbols) {
    for (size_t i = 0; i < n; i++)
        symbols[i] = cg_level_encode_(q, cg_load_(v, i), q->stochastic ? cg_noise_(key, position + (uint32_t)i) : 0.0f);
}
#if CG_AVX2_
CG_AVX2_INLINE_ __m256i cg_hash8_avx2_(
    cg_key_ key, uint32_t counter) { /* cg_hash32_ of eight counters from this one on */
    __m256i h = _mm256_add_epi32(_mm256_set1_epi32((int)counter), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    h = _mm256_xor_si256(h, _mm256_set1_epi32((int)key.a));
    h = _mm256_mullo_epi32(_mm256_xor_si256(h, _mm256_srli_epi32(h, 16)), _mm256_set1_epi32(0x7FEB352D));
    h = _mm256_add_epi32(_mm256_xor_si256(h, _mm256_srli_epi32(h, 15)), _mm256_set1_epi32((int)key.b));
    h = _mm256_mullo_epi32(h, _mm256_set1_epi32((int)0x846CA68Bu));
    return _mm256_xor_si256(h, _mm256_srli_epi32(h, 16));
}
/* Levels of eight values with hashes h. prescale, subtract: whether these steps change anything. */
CG_AVX2_INLINE_ __m256i cg_levels_encode8_avx2_(
    __m256i v, __m256i h, const cg_levels_ *q, int stochastic, int prescale, int subtract) {
    __m256 t = _mm256_castsi256_ps(v);
    if (prescale) t = cg_mul8_avx2_(t, _mm256_set1_ps(q->prescale));
    if (subtract) t = _mm256_sub_ps(t, _mm256_set1_ps(q->encode_offset));
    t = cg_mul8_avx2_(t, _mm256_set1_ps(q->inv_step));
    if (stochastic) t = _mm256_add_ps(t, cg_mul8_avx2_(_mm256_cvtepi32_ps(h), _mm256_set1_ps(2.3283064365386963e-10f)));
    /* the minimum, as the conversion of too large a value gives the smallest integer */
    return _mm256_cvtps_epi32(_mm256_min_ps(t, _mm256_set1_ps(1024.0f)));
}
CG_AVX2_INLINE_ size_t cg_levels_encode32_avx2_(const cg_levels_ *q, cg_key_ key, uint32_t position, const float *v,
    size_t n, uint8_t *symbols, int stochastic, int prescale, int subtract) {
    const __m256i zero_symbol = _mm256_set1_epi16((short)q->zero_symbol),
                  max_symbol = _mm256_set1_epi8((char)q->max_symbol);
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        __m256i h = _mm256_setzero_si256(), g = h, a, b, c, d;
        CG_PREFETCH_(cg_at_(v, i + CG_CHUNK_)); /* this chunk was measured before and is in L1; the next one is not */
        CG_PREFETCH_(cg_at_(v, i + CG_CHUNK_ + 16));
        if (stochastic) {
            uint32_t p = position + (uint32_t)i;
            h = cg_hash8_avx2_(key, p >> 1);
            g = cg_hash8_avx2_(key, (p >> 1) + 8);
        }
        a = cg_levels_encode8_avx2_(cg_load8_avx2_(v, i), h, q, stochastic, prescale, subtract);
        b = cg_levels_encode8_avx2_(
            cg_load8_avx2_(v, i + 8), cg_swap_halves_avx2_(h), q, stochastic, prescale, subtract);
        c = cg_levels_encode8_avx2_(cg_load8_avx2_(v, i + 16), g, q, stochastic, prescale, subtract);
        d = cg_levels_encode8_avx2_(
            cg_load8_avx2_(v, i + 24), cg_swap_halves_avx2_(g), q, stochastic, prescale, subtract);
        a = _mm256_add_epi16(_mm256_packs_epi32(a, b), zero_symbol);
        c = _mm256_add_epi16(_mm256_packs_epi32(c, d), zero_symbol);
        a = cg_pack_order_avx2_(_mm256_packus_epi16(a, c));
        cg_store_avx2_(symbols + i, _mm256_min_epu8(a, max_symbol));
    }
    return i;
}
CG_TARGET_AVX2_ static void cg_levels_encode_avx2_(
    const cg_levels_ *q, cg_key_ key, uint32_t position, const float *v, size_t n, uint8_t *symbols) {
    const int mode = (q->stochastic ? 3 : 0) + (q->prescale != 1.0f ? 2 : q->encode_offset != 0.0f ? 1 : 0);
    /* one hash serves positions p and p + 8 of 16: vectors begin at a multiple of 16 */
    size_t head = q->stochastic ? cg_min_(n, (16 - (position & 15)) & 15) : 0, i = 0;
    if (head) cg_levels_encode_scalar_(q, key, position, v, head, symbols);
    v = cg_at_(v, head);
    position += (uint32_t)head;
    symbols += head;
    n -= head;
    switch (mode) {
    case 0: i = cg_levels_encode32_avx2_(q, key, position, v, n, symbols, 0, 0, 0); break;
    case 1: i = cg_levels_encode32_avx2_(q, key, position, v, n, symbols, 0, 0, 1); break;
    case 2: i = cg_levels_encode32_avx2_(q, key, position, v, n, symbols, 0, 1, 1); break;
    case 3: i = cg_levels_encode32_avx2_(q, key, position, v, n, symbols, 1, 0, 0); break;
    case 4: i = cg_levels_encode32_avx2_(q, key, position, v, n, symbols, 1, 0, 1); break;
    default: i = cg_levels_encode32_avx2_(q, key, position, v, n, symbols, 1, 1, 1);
    }
    _mm256_zeroupper();
    if (i < n) cg_levels_encode_scalar_(q, key, position + (uint32_t)i, cg_at_(v, i), n - i, symbols + i);
}
#endif
#if CG_NEON_
CG_INLINE_ uint32x4_t cg_hash4_neon_(cg_key_ key, uint32_t counter) { /* cg_hash32_ of four counters from this one on */
    const uint32x4_t lane = { 0, 1, 2, 3 };
    uint32x4_t h = veorq_u32(vaddq_u32(vdupq_n_u32(counter), lane), vdupq_n_u32(key.a));
    h = vmulq_u32(veorq_u32(h, vshrq_n_u32(h, 16)), vdupq_n_u32(0x7FEB352Du));
    h = vmulq_u32(vaddq_u32(veorq_u32(h, vshrq_n_u32(h, 15)), vdupq_n_u32(key.b)), vdupq_n_u32(0x846CA68Bu));
    return veorq_u32(h, vshrq_n_u32(h, 16));
}
CG_INLINE_ int16x4_t cg_levels_encode4_neon_(
    uint32x4_t v, uint32x4_t h, const cg_levels_ *q, int stochastic, int no_offset) {
    float32x4_t t = cg_as_float_neon_(v);
    if (!no_offset) t = cg_times_neon_(t, vdupq_n_f32(q->prescale)) - vdupq_n_f32(q->encode_offset);
    t = cg_times_neon_(t, vdupq_n_f32(q->inv_step));
    if (stochastic)
        t = t + cg_times_neon_(vcvtq_f32_s32(vreinterpretq_s32_u32(h)), vdupq_n_f32(2.3283064365386963e-10f));
    /* both saturate, as does the addition of zero_symbol: the clamp of values outside the grid */
    return vqmovn_s32(vcvtnq_s32_f32(t));
}
CG_INLINE_ size_t cg_levels_encode16_neon_(const cg_levels_ *q, cg_key_ key, uint32_t position, const float *v,
    size_t n, uint8_t *symbols, int stochastic, int no_offset) {
    const int16x8_t zero_symbol = vdupq_n_s16((int16_t)q->zero_symbol);
    const uint8x16_t max_symbol = vdupq_n_u8((uint8_t)q->max_symbol);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        uint32x4_t h = vdupq_n_u32(0), g = h;
        int16x4_t a, b, c, d;
        if (stochastic) {
            h = cg_hash4_neon_(key, (position + (uint32_t)i) >> 1);
            g = cg_hash4_neon_(key, ((position + (uint32_t)i) >> 1) + 4);
        }
        a = cg_levels_encode4_neon_(cg_load4_neon_(v, i), h, q, stochastic, no_offset);
        b = cg_levels_encode4_neon_(cg_load4_neon_(v, i + 4), g, q, stochastic, no_offset);
        c = cg_levels_encode4_neon_(cg_load4_neon_(v, i + 8), cg_swap_halves_neon_(h), q, stochastic, no_offset);
        d = cg_levels_encode4_neon_(cg_load4_neon_(v, i + 12), cg_swap_halves_neon_(g), q, stochastic, no_offset);
        vst1q_u8(symbols + i,
            vminq_u8(vcombine_u8(vqmovun_s16(vqaddq_s16(vcombine_s16(a, b), zero_symbol)),
                         vqmovun_s16(vqaddq_s16(vcombine_s16(c, d), zero_symbol))),
                max_symbol));
    }
    return i;
}
static void cg_levels_encode_neon_(
    const cg_levels_ *q, cg_key_ key, uint32_t position, const float *v, size_t n, uint8_t *symbols) {
    const int no_offset = q->prescale == 1.0f && q->encode_offset == 0.0f;
    size_t head = q->stochastic ? cg_min_(n, (16 - (position & 15)) & 15) : 0, done;
    cg_levels_encode_scalar_(q, key, position, v, head, symbols);
    v = cg_at_(v, head);
    position += (uint32_t)head;
    symbols += head;
    n -= head;
    if (q->stochastic && no_offset) done = cg_levels_encode16_neon_(q, key, position, v, n, symbols, 1, 1);
    else if (q->stochastic) done = cg_levels_encode16_neon_(q, key, position, v, n, symbols, 1, 0);
    else if (no_offset) done = cg_levels_encode16_neon_(q, key, position, v, n, symbols, 0, 1);
    else done = cg_levels_encode16_neon_(q, key, position, v, n, symbols, 0, 0);
    cg_levels_encode_scalar_(q, key, position + (uint32_t)done, cg_at_(v, done), n - done, symbols + done);
}
#endif
