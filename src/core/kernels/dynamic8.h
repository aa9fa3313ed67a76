/* dynamic8: kernels of the 8-bit dynamic tree format, and of Strom's fixed threshold

   Offers   dynamic8_encode, dynamic8_decode, strom_encode; cg_dynamic8_limits_
   Needs    base, table
   Touches  nothing but its arguments
   Dettmers' tree: a sign, then 7 bits that are z zeros, a 1 and 6-z bits f, for 10^-z*(0.1 + 0.9*(f + 0.5)/2^(6-z));
   no 1 at all is 0. So far it is the positive half of bitsandbytes' map, which has 1.0 in addition, on that side
   alone. Here code 127 is 1.0 (not 0.99297), so that the largest magnitude is exact on both sides. As numbers the
   7-bit codes are in the order of the magnitudes. Code 0 has no sign. */

/* the magnitude of each code */
static const float cg_dynamic8_values_[128] = { .0f, 5.49999982e-7f, 3.24999996e-6f, 7.7499999e-6f, 2.12499999e-5f,
    4.37499984e-5f, 6.62500024e-5f, 8.87499991e-5f, .000156249997f, .000268750009f, .000381249993f, .000493749976f,
    .000606250018f, .000718750001f, .000831249985f, .000943750027f, .00128125004f, .00184375001f, .00240624999f,
    .00296874996f, .00353124994f, .00409374991f, .00465625012f, .00521874987f, .00578125007f, .00634374982f,
    .00690625003f, .00746874977f, .00803124998f, .00859375019f, .00915625039f, .00971874967f, .0114062503f,
    .0142187504f, .0170312505f, .0198437497f, .0226562507f, .0254687499f, .0282812491f, .0310937501f, .0339062512f,
    .0367187485f, .0395312496f, .0423437506f, .0451562516f, .047968749f, .05078125f, .053593751f, .0564062484f,
    .0592187494f, .0620312504f, .0648437515f, .0676562488f, .0704687536f, .0732812509f, .0760937482f, .078906253f,
    .0817187503f, .0845312476f, .0873437524f, .0901562497f, .092968747f, .0957812518f, .0985937491f, .107031249f,
    .12109375f, .135156244f, .149218753f, .163281247f, .177343756f, .19140625f, .205468744f, .219531253f, .233593747f,
    .247656256f, .26171875f, .275781244f, .289843738f, .303906262f, .317968756f, .33203125f, .346093744f, .360156238f,
    .374218762f, .388281256f, .40234375f, .416406244f, .430468738f, .444531262f, .458593756f, .47265625f, .486718744f,
    .500781238f, .514843762f, .528906226f, .54296875f, .557031274f, .571093738f, .585156262f, .599218726f, .61328125f,
    .627343774f, .641406238f, .655468762f, .669531226f, .68359375f, .697656274f, .711718738f, .725781262f, .739843726f,
    .75390625f, .767968774f, .782031238f, .796093762f, .810156226f, .82421875f, .838281274f, .852343738f, .866406262f,
    .880468726f, .89453125f, .908593774f, .922656238f, .936718762f, .950781226f, .96484375f, .978906274f, 1.0f };
/* The code is above i where t > limits[i]: the midpoint of values i and i+1, rounded down. */
static const float cg_dynamic8_limits_[128] = { 2.74999991e-7f, 1.89999992e-6f, 5.49999959e-6f, 1.44999995e-5f,
    3.24999965e-5f, 5.50000004e-5f, 7.75000008e-5f, .000122499987f, .000212500003f, .000325000001f, .000437499984f,
    .000549999997f, .000662499981f, .000774999964f, .000887500006f, .00111249997f, .00156250002f, .00212499988f,
    .00268749986f, .00324999983f, .00381249981f, .00437500002f, .00493749976f, .00549999997f, .00606249971f,
    .00662499992f, .00718749966f, .00774999987f, .00831250008f, .00887500029f, .00943749957f, .0105625f, .0128124999f,
    .015625f, .0184374992f, .0212500002f, .0240624994f, .0268749986f, .0296874996f, .0324999988f, .0353124999f,
    .0381249972f, .0409374982f, .0437499993f, .0465625003f, .0493749976f, .0521874987f, .0549999997f, .057812497f,
    .0606249981f, .0634374991f, .0662499964f, .0690625012f, .0718749985f, .0746874958f, .0775000006f, .0803124979f,
    .0831249952f, .0859375f, .0887499973f, .0915624946f, .0943749994f, .0971874967f, .102812499f, .114062496f,
    .128124997f, .142187491f, .15625f, .170312494f, .184375003f, .198437497f, .212499991f, .2265625f, .240624994f,
    .254687488f, .268749982f, .282812476f, .296875f, .310937494f, .324999988f, .339062482f, .353124976f, .3671875f,
    .381249994f, .395312488f, .409374982f, .423437476f, .4375f, .451562494f, .465624988f, .479687482f, .493749976f,
    .5078125f, .521874964f, .535937488f, .550000012f, .564062476f, .578125f, .592187464f, .606249988f, .620312512f,
    .634374976f, .6484375f, .662499964f, .676562488f, .690625012f, .704687476f, .71875f, .732812464f, .746874988f,
    .760937512f, .774999976f, .7890625f, .803124964f, .817187488f, .831250012f, .845312476f, .859375f, .873437464f,
    .887499988f, .901562512f, .915624976f, .9296875f, .943749964f, .957812488f, .971875012f, .989453137f, CG_FLT_MAX_ };
/* dynamic8_encode: t = |v*inv_scale|, rounded, at most 1 (as is a NaN), to the nearest value, ties to the lower. */
static void cg_dynamic8_encode_scalar_(const float *v, size_t n, float inv_scale, uint8_t *symbols) {
    for (size_t i = 0; i < n; i++) {
        float f = cg_load_(v, i);
        uint32_t u = cg_as_bits_(cg_times_(f, inv_scale)) & CG_ABS_MASK_, code = 0;
        float t = cg_as_float_(u < 0x3f800000u ? u : 0x3f800000u);
        for (uint32_t step = 64; step; step /= 2) code += t > cg_dynamic8_limits_[code + step - 1] ? step : 0;
        symbols[i] = (uint8_t)(code | (code ? cg_as_bits_(f) >> 24 & 0x80u : 0u));
    }
}
/* As a function of t the code is close to seven straight lines, one per decade, each the lowest of them in its decade.
   These lines, drawn 0.6 too low and rounded down, give the code or one less (with 0.2 to spare, so that rounding does
   no harm); a comparison with one limit decides. */
#if CG_AVX2_ || CG_NEON_
static const float cg_dynamic8_slope_[8] = { 1111111.11f, 222222.222f, 44444.4444f, 8888.88889f, 1777.77778f,
    355.555556f, 71.1111111f, 0.0f };
static const float cg_dynamic8_intercept_[8] = { .288888889f, 1.17777778f, 2.95555556f, 6.51111111f, 13.6222222f,
    27.8444444f, 56.2888889f, 0.0f };
#endif
#if CG_AVX2_
/* Eight loads: no slower than a gather instruction, and faster where microcode slows those down. */
CG_AVX2_INLINE_ __m256 cg_lookup8_avx2_(const float *table, const uint32_t *at) {
    return _mm256_setr_ps(
        table[at[0]], table[at[1]], table[at[2]], table[at[3]], table[at[4]], table[at[5]], table[at[6]], table[at[7]]);
}
/* -1 where u, as the bits of a float that is not negative, is above limit */
CG_AVX2_INLINE_ __m256i cg_above_avx2_(__m256i u, float limit) {
    return _mm256_cmpgt_epi32(u, _mm256_castps_si256(_mm256_set1_ps(limit)));
}
CG_AVX2_INLINE_ __m256i cg_dynamic8_encode8_avx2_(__m256i v, __m256 inv, __m256 slope, __m256 intercept) {
    __m256i u = _mm256_min_epu32(
        cg_abs_avx2_(_mm256_castps_si256(cg_mul8_avx2_(_mm256_castsi256_ps(v), inv))), _mm256_set1_epi32(0x3f800000));
    __m256i a = _mm256_add_epi32(cg_above_avx2_(u, 1e-1f), cg_above_avx2_(u, 1e-2f));
    __m256i b = _mm256_add_epi32(cg_above_avx2_(u, 1e-3f), cg_above_avx2_(u, 1e-4f));
    __m256i decade = _mm256_abs_epi32(
        _mm256_add_epi32(_mm256_add_epi32(a, b), _mm256_add_epi32(cg_above_avx2_(u, 1e-5f), cg_above_avx2_(u, 1e-6f))));
    __m256 t = _mm256_castsi256_ps(u), x = cg_mul8_avx2_(t, _mm256_permutevar8x32_ps(slope, decade));
    __m256i code = _mm256_cvttps_epi32(_mm256_add_ps(x, _mm256_permutevar8x32_ps(intercept, decade)));
    uint32_t at[8];
    cg_store_avx2_(at, code);
    return _mm256_sub_epi32(
        code, _mm256_castps_si256(_mm256_cmp_ps(t, cg_lookup8_avx2_(cg_dynamic8_limits_, at), _CMP_GT_OQ)));
}
CG_TARGET_AVX2_ static void cg_dynamic8_encode_avx2_(const float *v, size_t n, float inv_scale, uint8_t *symbols) {
    const __m256 inv = _mm256_set1_ps(inv_scale), slope = _mm256_loadu_ps(cg_dynamic8_slope_),
                 intercept = _mm256_loadu_ps(cg_dynamic8_intercept_);
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        __m256i a = cg_load8_avx2_(v, i), b = cg_load8_avx2_(v, i + 8), c = cg_load8_avx2_(v, i + 16),
                d = cg_load8_avx2_(v, i + 24);
        __m256i code = cg_narrow_avx2_(cg_dynamic8_encode8_avx2_(a, inv, slope, intercept),
            cg_dynamic8_encode8_avx2_(b, inv, slope, intercept), cg_dynamic8_encode8_avx2_(c, inv, slope, intercept),
            cg_dynamic8_encode8_avx2_(d, inv, slope, intercept));
        __m256i sign = _mm256_andnot_si256(
            _mm256_cmpeq_epi8(code, _mm256_setzero_si256()), cg_sign_bytes_avx2_(a, b, c, d));
        CG_PREFETCH_(cg_at_(v, i + CG_CHUNK_));
        CG_PREFETCH_(cg_at_(v, i + CG_CHUNK_ + 16));
        cg_store_avx2_(symbols + i, cg_pack_order_avx2_(_mm256_or_si256(code, sign)));
    }
    _mm256_zeroupper();
    if (i < n) cg_dynamic8_encode_scalar_(cg_at_(v, i), n - i, inv_scale, symbols + i);
}
#endif
#if CG_NEON_
CG_INLINE_ uint32x4_t cg_dynamic8_encode4_neon_(uint32x4_t v, float32x4_t inv) {
    uint32x4_t u = vminq_u32(cg_abs_neon_(vreinterpretq_u32_f32(cg_times_neon_(cg_as_float_neon_(v), inv))),
                   vdupq_n_u32(0x3f800000u)),
               code;
    float32x4_t t = cg_as_float_neon_(u),
                x = cg_times_neon_(t, vdupq_n_f32(cg_dynamic8_slope_[6])) + vdupq_n_f32(cg_dynamic8_intercept_[6]),
                limit = x;
    for (int j = 0; j < 6; j++)
        x = vminq_f32(
            x, cg_times_neon_(t, vdupq_n_f32(cg_dynamic8_slope_[j])) + vdupq_n_f32(cg_dynamic8_intercept_[j]));
    code = vcvtq_u32_f32(x);
    limit = vsetq_lane_f32(cg_dynamic8_limits_[vgetq_lane_u32(code, 0)], limit, 0);
    limit = vsetq_lane_f32(cg_dynamic8_limits_[vgetq_lane_u32(code, 1)], limit, 1);
    limit = vsetq_lane_f32(cg_dynamic8_limits_[vgetq_lane_u32(code, 2)], limit, 2);
    limit = vsetq_lane_f32(cg_dynamic8_limits_[vgetq_lane_u32(code, 3)], limit, 3);
    return vsubq_u32(code, vcgtq_f32(t, limit));
}
static void cg_dynamic8_encode_neon_(const float *v, size_t n, float inv_scale, uint8_t *symbols) {
    const float32x4_t inv = vdupq_n_f32(inv_scale);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        uint32x4_t a = cg_load4_neon_(v, i), b = cg_load4_neon_(v, i + 4), c = cg_load4_neon_(v, i + 8),
                   d = cg_load4_neon_(v, i + 12);
        uint8x16_t code = cg_narrow_neon_(cg_dynamic8_encode4_neon_(a, inv), cg_dynamic8_encode4_neon_(b, inv),
            cg_dynamic8_encode4_neon_(c, inv), cg_dynamic8_encode4_neon_(d, inv));
        vst1q_u8(symbols + i, vorrq_u8(code, vandq_u8(cg_sign_bytes_neon_(a, b, c, d), vtstq_u8(code, code))));
    }
    cg_dynamic8_encode_scalar_(cg_at_(v, i), n - i, inv_scale, symbols + i);
}
#endif

/* dynamic8_decode: the value of the code times scale, rounded; -0 (0x80) counts as +0. */
static void cg_dynamic8_decode_scalar_(const uint8_t *symbols, size_t n, float scale, float *out, int non_temporal) {
    (void)non_temporal;
    for (size_t i = 0; i < n; i++) {
        float f = cg_dynamic8_values_[symbols[i] & 0x7f];
        cg_store_(out, i, cg_times_(symbols[i] > 0x80 ? -f : f, scale));
    }
}
#if CG_AVX2_
CG_TARGET_AVX2_ static void cg_dynamic8_decode_avx2_(
    const uint8_t *symbols, size_t n, float scale, float *out, int non_temporal) {
    const float *value = cg_dynamic8_values_;
    const __m256 scale_v = _mm256_set1_ps(scale);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m128i b = _mm_loadl_epi64((const __m128i *)(const void *)(symbols + i)),
                s = _mm_cmpeq_epi8(b, _mm_set1_epi8(-128));
        __m256i w = _mm256_cvtepi8_epi32(_mm_andnot_si128(s, b)); /* the code -0 becomes 0 */
        const uint8_t *p = symbols + i;
        __m256 f = _mm256_setr_ps(value[p[0] & 0x7f], value[p[1] & 0x7f], value[p[2] & 0x7f], value[p[3] & 0x7f],
            value[p[4] & 0x7f], value[p[5] & 0x7f], value[p[6] & 0x7f], value[p[7] & 0x7f]);
        f = _mm256_or_ps(f, _mm256_castsi256_ps(_mm256_and_si256(w, _mm256_set1_epi32((int)CG_SIGN_BIT_))));
        cg_store_stream_avx2_(out, i, _mm256_castps_si256(cg_mul8_avx2_(f, scale_v)), non_temporal);
    }
    _mm256_zeroupper();
    if (i < n) cg_dynamic8_decode_scalar_(symbols + i, n - i, scale, cg_at_mut_(out, i), 0);
}
#endif
#if CG_NEON_
static void cg_dynamic8_decode_neon_(const uint8_t *symbols, size_t n, float scale, float *out, int non_temporal) {
    const float32x4_t scale_v = vdupq_n_f32(scale);
    size_t i = 0;
    (void)non_temporal;
    for (; i + 4 <= n; i += 4) {
        float f[4];
        for (size_t j = 0; j < 4; j++) {
            const float value = cg_dynamic8_values_[symbols[i + j] & 0x7f];
            f[j] = symbols[i + j] > 0x80 ? -value : value;
        }
        cg_store4_neon_(out, i, cg_as_float_neon_(cg_load4_neon_(f, 0)) * scale_v);
    }
    cg_dynamic8_decode_scalar_(symbols + i, n - i, scale, cg_at_mut_(out, i), 0);
}
#endif

/* strom_encode: symbol 2 where v > tau, 0 where v < -tau, else (a NaN, too) 1; tau >= 0. */
static void cg_strom_encode_scalar_(const float *v, size_t n, float tau, uint8_t *symbols) {
    for (size_t i = 0; i < n; i++) {
        float f = cg_load_(v, i);
        symbols[i] = (uint8_t)(1 + (f > tau) - (f < -tau));
    }
}
#if CG_AVX2_
CG_AVX2_INLINE_ __m256i cg_strom_encode8_avx2_(const float *v, size_t i, __m256 tau, __m256 minus) {
    __m256 f = _mm256_castsi256_ps(cg_load8_avx2_(v, i));
    return _mm256_sub_epi32(_mm256_castps_si256(_mm256_cmp_ps(f, minus, _CMP_LT_OQ)),
        _mm256_castps_si256(_mm256_cmp_ps(f, tau, _CMP_GT_OQ)));
}
CG_TARGET_AVX2_ static void cg_strom_encode_avx2_(const float *v, size_t n, float tau, uint8_t *symbols) {
    const __m256 t = _mm256_set1_ps(tau), m = _mm256_set1_ps(-tau);
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        __m256i ab = _mm256_packs_epi32(cg_strom_encode8_avx2_(v, i, t, m), cg_strom_encode8_avx2_(v, i + 8, t, m));
        __m256i cd = _mm256_packs_epi32(
            cg_strom_encode8_avx2_(v, i + 16, t, m), cg_strom_encode8_avx2_(v, i + 24, t, m));
        cg_prefetch_ahead_avx2_(v, i);
        cg_store_avx2_(
            symbols + i, cg_pack_order_avx2_(_mm256_add_epi8(_mm256_packs_epi16(ab, cd), _mm256_set1_epi8(1))));
    }
    _mm256_zeroupper();
    if (i < n) cg_strom_encode_scalar_(cg_at_(v, i), n - i, tau, symbols + i);
}
#endif
#if CG_NEON_
CG_INLINE_ uint32x4_t cg_strom_encode4_neon_(const float *v, size_t i, float32x4_t tau, float32x4_t minus) {
    float32x4_t f = cg_as_float_neon_(cg_load4_neon_(v, i));
    return vsubq_u32(vcltq_f32(f, minus), vcgtq_f32(f, tau));
}
static void cg_strom_encode_neon_(const float *v, size_t n, float tau, uint8_t *symbols) {
    const float32x4_t t = vdupq_n_f32(tau), m = vdupq_n_f32(-tau);
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        vst1q_u8(symbols + i,
            vaddq_u8(cg_narrow_neon_(cg_strom_encode4_neon_(v, i, t, m), cg_strom_encode4_neon_(v, i + 4, t, m),
                         cg_strom_encode4_neon_(v, i + 8, t, m), cg_strom_encode4_neon_(v, i + 12, t, m)),
                vdupq_n_u8(1)));
    cg_strom_encode_scalar_(cg_at_(v, i), n - i, tau, symbols + i);
}
#endif
