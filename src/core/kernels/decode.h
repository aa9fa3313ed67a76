/* decode: kernels that turn levels, signs, f16 and bf16 into values

   Offers   levels_decode, sign_decode, f16_decode, bf16_decode, absmax16_bits; cg_f16_decode_ of one value
   Needs    base, table, the vector layer
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
#if CG_VECTOR_
/* usual: postscale is 1, nothing can overflow then. symmetric: zero_symbol is not 0, decode_offset is 0 then. */
CG_VECTOR_FN_ size_t cg_levels_decode16_(
    const cg_levels_ *q, const uint8_t *symbols, size_t n, float *out, int non_temporal, int usual, int symmetric) {
    const cg_vf_ decode_offset = cg_vf_set_(q->decode_offset), step = cg_vf_set_(q->step),
                 postscale = cg_vf_set_(q->postscale);
    const cg_vu_ max_symbol = cg_vu_set_((uint32_t)q->max_symbol), zero_symbol = cg_vu_set_((uint32_t)q->zero_symbol);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        CG_UNROLL_
        for (size_t j = 0; j < 16; j += 8) {
            const cg_vu_ s = cg_vu_min_(cg_vu_bytes_(symbols + i + j), max_symbol);
            cg_vf_ f = cg_vf_mul_(cg_vf_int_(symmetric ? cg_vu_sub_(s, zero_symbol) : s), step);
            if (!usual || !symmetric) f = cg_vf_add_(decode_offset, f);
            if (!usual) f = cg_vf_finite_(cg_vf_mul_(f, postscale));
            cg_vf_stream_(out, i + j, f, non_temporal);
        }
    }
    return i;
}
CG_VECTOR_FN_ void cg_levels_decode_simd_(
    const cg_levels_ *q, const uint8_t *symbols, size_t n, float *out, int non_temporal) {
    size_t i = q->zero_symbol  ? q->postscale == 1.0f ? cg_levels_decode16_(q, symbols, n, out, non_temporal, 1, 1)
                                                      : cg_levels_decode16_(q, symbols, n, out, non_temporal, 0, 1)
         : q->postscale == 1.0f ? cg_levels_decode16_(q, symbols, n, out, non_temporal, 1, 0)
                               : cg_levels_decode16_(q, symbols, n, out, non_temporal, 0, 0);
    if (i < n) cg_levels_decode_scalar_(q, symbols + i, n - i, cg_at_mut_(out, i), 0);
}
#endif

/* sign_decode: -scale where bit i % 8 of in[i / 8] is 1, else scale. */
static void cg_sign_decode_scalar_(const uint8_t *in, size_t n, float scale, float *out, int non_temporal) {
    (void)non_temporal;
    for (size_t i = 0; i < n; i++) cg_store_(out, i, in[i / 8] >> i % 8 & 1 ? -scale : scale);
}
#if CG_VECTOR_
CG_VECTOR_FN_ void cg_sign_decode_simd_(const uint8_t *in, size_t n, float scale, float *out, int non_temporal) {
    const cg_vu_ plus = cg_vu_set_(cg_as_bits_(scale));
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        const cg_vu_ w = cg_vu_set_(cg_get32_(in + i / 8));
        cg_vf_stream_(out, i, cg_vf_of_(cg_vu_xor_(cg_vu_signs_(w, 0), plus)), non_temporal);
        cg_vf_stream_(out, i + 8, cg_vf_of_(cg_vu_xor_(cg_vu_signs_(w, 8), plus)), non_temporal);
        cg_vf_stream_(out, i + 16, cg_vf_of_(cg_vu_xor_(cg_vu_signs_(w, 16), plus)), non_temporal);
        cg_vf_stream_(out, i + 24, cg_vf_of_(cg_vu_xor_(cg_vu_signs_(w, 24), plus)), non_temporal);
    }
    if (i < n) cg_sign_decode_scalar_(in + i / 8, n - i, scale, cg_at_mut_(out, i), 0);
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
#if CG_VECTOR_
CG_VECTOR_FN_ void cg_f16_decode_simd_(const uint8_t *in, size_t n, float *out, int non_temporal) {
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        cg_vf_stream_(out, i, cg_vf_f16_(in + 2 * i), non_temporal);
        cg_vf_stream_(out, i + 8, cg_vf_f16_(in + 2 * i + 16), non_temporal);
    }
    if (i < n) cg_f16_decode_scalar_(in + 2 * i, n - i, cg_at_mut_(out, i), 0);
}
#endif

/* bf16_decode: exact; the 16 bits are the upper half of an f32. */
static void cg_bf16_decode_scalar_(const uint8_t *in, size_t n, float *out, int non_temporal) {
    (void)non_temporal;
    for (size_t i = 0; i < n; i++) cg_store_(out, i, cg_as_float_((uint32_t)cg_get16_(in + 2 * i) << 16));
}
#if CG_VECTOR_
CG_VECTOR_FN_ void cg_bf16_decode_simd_(const uint8_t *in, size_t n, float *out, int non_temporal) {
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        cg_vf_stream_(out, i, cg_vf_of_(cg_vu_shl_(cg_vu_u16_(in + 2 * i), 16)), non_temporal);
        cg_vf_stream_(out, i + 8, cg_vf_of_(cg_vu_shl_(cg_vu_u16_(in + 2 * i + 16), 16)), non_temporal);
    }
    if (i < n) cg_bf16_decode_scalar_(in + 2 * i, n - i, cg_at_mut_(out, i), 0);
}
#endif

/* absmax16_bits: the largest of n 16-bit words of the wire with the top bit cleared: the largest magnitude of 16-bit
   floats as bits, for the finite check of a packet. */
static uint32_t cg_absmax16_bits_scalar_(const uint8_t *in, size_t n) {
    uint32_t absmax_bits = 0;
    for (size_t i = 0; i < n; i++) absmax_bits = cg_max32_(absmax_bits, cg_get16_(in + 2 * i) & 0x7fffu);
    return absmax_bits;
}
#if CG_VECTOR_
CG_VECTOR_FN_ uint32_t cg_absmax16_bits_simd_(const uint8_t *in, size_t n) {
    const cg_vu_ low = cg_vu_set_(0x7fff7fffu);
    cg_vu_ t0 = cg_vu_set_(0), t1 = t0;
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        t0 = cg_vu_max16_(t0, cg_vu_and_(cg_vu_load_(in + 2 * i), low));
        t1 = cg_vu_max16_(t1, cg_vu_and_(cg_vu_load_(in + 2 * i + 32), low));
    }
    t0 = cg_vu_max16_(t0, t1);
    t0 = cg_vu_max_(cg_vu_shr_(t0, 16), cg_vu_and_(t0, cg_vu_set_(0xffff)));
    return cg_max32_(cg_vu_hmax_(t0), cg_absmax16_bits_scalar_(in + 2 * i, n - i));
}
#endif
