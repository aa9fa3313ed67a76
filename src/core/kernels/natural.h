/* natural: kernels that round to powers of two: natural compression and natural dithering

   Offers   natural_encode, natural_decode, dither_encode, dither_decode
   Needs    base, random, table, the vector layer, levels
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
#if CG_VECTOR_
/* The first n / 32 * 32 values; returns how many. position % 16 == 0 if stochastic. */
CG_VECTOR_FN_ size_t cg_natural_encode32_(
    const float *v, size_t n, cg_key_ key, uint32_t position, int stochastic, uint8_t *out, cg_vu_ *absmax) {
    cg_vu_ t0 = cg_vu_set_(0), t1 = t0;
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        cg_vu_ x[4], noise[4], s, e;
        cg_prefetch32_(v, i, CG_AHEAD_);
        CG_UNROLL_
        for (size_t j = 0; j < 4; j++) x[j] = cg_vu_floats_(v, i + 8 * j);
        s = cg_vb_narrow_tops_(x[0], x[1], x[2], x[3]);
        if (stochastic) cg_vu_noise_(key, position + (uint32_t)i, noise);
        CG_UNROLL_
        for (size_t j = 0; j < 4; j++) {
            x[j] = cg_vu_abs_(x[j]);
            if (j < 2) t0 = cg_vu_max_(t0, x[j]);
            else t1 = cg_vu_max_(t1, x[j]);
            x[j] = cg_vu_add_(x[j], stochastic ? cg_vu_shr_(noise[j], 9) : cg_vu_set_(0x400000));
            x[j] = cg_vu_shr_(x[j], 23);
        }
        e = cg_vb_min_(cg_vb_narrow_add_(x[0], x[1], x[2], x[3], 0), cg_vb_set_(254));
        cg_vb_put_(out + i, e);
        cg_put32_(out + n + i / 8, cg_vb_mask_(cg_vu_andnot_(cg_vb_is_zero_(e), s)));
    }
    *absmax = cg_vu_max_(t0, t1);
    return i;
}
CG_VECTOR_FN_ uint32_t cg_natural_encode_simd_(
    const float *v, size_t n, cg_key_ key, uint32_t position, int stochastic, uint8_t *out) {
    cg_vu_ absmax;
    uint32_t absmax_bits;
    size_t i;
    if (stochastic && (position & 15)) return cg_natural_encode_scalar_(v, n, key, position, stochastic, out);
    i = stochastic ? cg_natural_encode32_(v, n, key, position, 1, out, &absmax)
                   : cg_natural_encode32_(v, n, key, position, 0, out, &absmax);
    absmax_bits = cg_vu_hmax_(absmax);
    return i < n ? cg_max32_(absmax_bits,
                       cg_natural_encode_split_(
                           cg_at_(v, i), n - i, key, position + (uint32_t)i, stochastic, out + i, out + n + i / 8))
                 : absmax_bits;
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
#if CG_VECTOR_
CG_VECTOR_FN_ void cg_natural_decode_simd_(const uint8_t *in, size_t n, float *out, int non_temporal) {
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        const uint32_t zeros = cg_vb_mask_in_order_(cg_vb_is_zero_(cg_vu_load_(in + i)));
        const cg_vu_ w = cg_vu_set_(cg_get32_(in + n + i / 8) & ~zeros);
        CG_UNROLL_
        for (size_t j = 0; j < 4; j++) {
            const cg_vu_ e = cg_vu_min_(cg_vu_bytes_(in + i + 8 * j), cg_vu_set_(254));
            cg_vf_stream_(
                out, i + 8 * j, cg_vf_of_(cg_vu_or_(cg_vu_signs_(w, 8 * (int)j), cg_vu_shl_(e, 23))), non_temporal);
        }
    }
    if (i < n) cg_natural_decode_split_(in + i, in + n + i / 8, n - i, cg_at_mut_(out, i));
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
#if CG_VECTOR_
/* levels of eight values plus 127 - s, or 0 */
CG_VECTOR_FN_ cg_vu_ cg_dither_encode8_(
    cg_vu_ v, cg_vu_ h, cg_vf_ inv, cg_vu_ min_level_bits, cg_vf_ inv_min_level, int stochastic) {
    const cg_vu_ t = cg_vu_min_(cg_vu_abs_(cg_vu_of_(cg_vf_mul_(cg_vf_of_(v), inv))), cg_vu_set_(0x3f800000u)),
                 rounding = stochastic ? cg_vu_shr_(h, 9) : cg_vu_set_(0x400000);
    const cg_vf_ u = stochastic ? cg_vf_uniform_(h) : cg_vf_set_(0.5f);
    return cg_vu_and_(cg_vu_shr_(cg_vu_add_(cg_vu_max_(t, min_level_bits), rounding), 23),
        cg_vf_gt_(cg_vf_mul_(cg_vf_of_(t), inv_min_level), u));
}
CG_VECTOR_FN_ size_t cg_dither_encode32_(
    const cg_dither_ *q, cg_key_ key, uint32_t position, const float *v, size_t n, uint8_t *symbols, int stochastic) {
    const unsigned max_level = cg_dither_levels_(q->bits), down = 8 - q->bits;
    const cg_vf_ inv = cg_vf_set_(q->inv_scale),
                 inv_min_level = cg_vf_of_(cg_vu_set_((uint32_t)(126 + max_level) << 23));
    const cg_vu_ min_level_bits = cg_vu_set_((uint32_t)(128 - max_level) << 23), bias = cg_vb_set_(127 - max_level);
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        const cg_vu_ a = cg_vu_floats_(v, i), b = cg_vu_floats_(v, i + 8), c = cg_vu_floats_(v, i + 16),
                     d = cg_vu_floats_(v, i + 24);
        const cg_vu_ sign = cg_vu_shr_(cg_vb_narrow_tops_(a, b, c, d), down); /* within each byte: no others are set */
        cg_vu_ h[4], m;
        cg_prefetch32_(v, i, CG_CHUNK_);
        h[0] = h[1] = h[2] = h[3] = a;
        if (stochastic) cg_vu_noise_(key, position + (uint32_t)i, h);
        m = cg_vb_narrow_(cg_dither_encode8_(a, h[0], inv, min_level_bits, inv_min_level, stochastic),
            cg_dither_encode8_(b, h[1], inv, min_level_bits, inv_min_level, stochastic),
            cg_dither_encode8_(c, h[2], inv, min_level_bits, inv_min_level, stochastic),
            cg_dither_encode8_(d, h[3], inv, min_level_bits, inv_min_level, stochastic));
        m = cg_vb_sub_sat_(m, bias);
        cg_vb_put_(symbols + i, cg_vu_or_(m, cg_vu_andnot_(cg_vb_is_zero_(m), sign)));
    }
    return i;
}
CG_VECTOR_FN_ void cg_dither_encode_simd_(
    const cg_dither_ *q, cg_key_ key, uint32_t position, const float *v, size_t n, uint8_t *symbols) {
    size_t head = cg_noise_head_(q->stochastic, position, n), i;
    if (head) cg_dither_encode_scalar_(q, key, position, v, head, symbols);
    v = cg_at_(v, head);
    position += (uint32_t)head;
    symbols += head;
    n -= head;
    i = q->stochastic ? cg_dither_encode32_(q, key, position, v, n, symbols, 1)
                      : cg_dither_encode32_(q, key, position, v, n, symbols, 0);
    if (i < n) cg_dither_encode_scalar_(q, key, position + (uint32_t)i, cg_at_(v, i), n - i, symbols + i);
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
#if CG_VECTOR_
CG_VECTOR_FN_ void cg_dither_decode_simd_(
    unsigned bits, float scale, const uint8_t *symbols, size_t n, float *out, int non_temporal) {
    const unsigned max_level = cg_dither_levels_(bits);
    const cg_vf_ scale_v = cg_vf_set_(scale);
    const cg_vu_ level_mask = cg_vu_set_(max_level), bias = cg_vu_set_(127 - max_level), none = cg_vu_set_(0),
                 sign_bit = cg_vu_set_(CG_SIGN_BIT_);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const cg_vu_ b = cg_vu_bytes_(symbols + i), m = cg_vu_and_(b, level_mask),
                     sign = cg_vu_and_(cg_vu_shl_(b, 32 - bits), sign_bit),
                     f = cg_vu_or_(cg_vu_shl_(cg_vu_add_(m, bias), 23), sign);
        cg_vf_stream_(out, i, cg_vf_mul_(cg_vf_of_(cg_vu_and_(f, cg_vu_gt_(m, none))), scale_v), non_temporal);
    }
    if (i < n) cg_dither_decode_scalar_(bits, scale, symbols + i, n - i, cg_at_mut_(out, i), 0);
}
#endif
