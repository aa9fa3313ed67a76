/* fp8: kernels of the formats E4M3 and E5M2, the values of E2M1, and E8M0 scales

   Offers   fp8_encode, fp8_decode; cg_e2m1_values_, cg_e2m1_limits_, cg_e8m0_encode_, cg_e8m0_decode_
   Needs    base, random, table, the vector layer, decode
   Touches  nothing but its arguments */

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
#if CG_VECTOR_
/* code of the magnitude, plus q.code_bias */
CG_VECTOR_FN_ cg_vu_ cg_fp8_encode8_(cg_vu_ v, cg_vf_ inv, cg_fp8_format_ q) {
    const cg_vu_ m = cg_vu_min_(cg_vu_abs_(cg_vu_of_(cg_vf_mul_(cg_vf_of_(v), inv))), cg_vu_set_(q.max_bits)),
                 e = cg_vu_max_(cg_vu_and_(m, cg_vu_set_(0x7f800000u)), cg_vu_set_(q.min_normal_bits)),
                 large = cg_vu_add_(e, cg_vu_set_(q.dropped_bits << 23)),
                 sum = cg_vu_of_(cg_vf_add_(cg_vf_of_(m), cg_vf_of_(large)));
    /* sum - large, as the mantissa of large is 0: gcc would reorder the terms of a difference */
    return cg_vu_add_(cg_vu_xor_(sum, large), cg_vu_shr_(e, q.dropped_bits));
}
CG_VECTOR_FN_ size_t cg_fp8_encode32_(const float *v, size_t n, float inv_scale, cg_fp8_format_ q, uint8_t *out) {
    const cg_vf_ inv = cg_vf_set_(inv_scale);
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        const cg_vu_ a = cg_vu_floats_(v, i), b = cg_vu_floats_(v, i + 8), c = cg_vu_floats_(v, i + 16),
                     d = cg_vu_floats_(v, i + 24);
        const cg_vu_ p = cg_fp8_encode8_(a, inv, q), r = cg_fp8_encode8_(b, inv, q), s = cg_fp8_encode8_(c, inv, q),
                     t = cg_fp8_encode8_(d, inv, q), codes = cg_vb_narrow_add_(p, r, s, t, -(int)q.code_bias);
        cg_prefetch32_(v, i, CG_CHUNK_);
        cg_vb_put_(out + i, cg_vu_or_(codes, cg_vb_narrow_tops_(a, b, c, d)));
    }
    return i;
}
CG_VECTOR_FN_ void cg_fp8_encode_simd_(const float *v, size_t n, float inv_scale, int is_e5m2, uint8_t *out) {
    const size_t i = is_e5m2 ? cg_fp8_encode32_(v, n, inv_scale, cg_fp8_format_of_(1), out)
                             : cg_fp8_encode32_(v, n, inv_scale, cg_fp8_format_of_(0), out);
    if (i < n) cg_fp8_encode_scalar_(cg_at_(v, i), n - i, inv_scale, is_e5m2, out + i);
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
#if CG_VECTOR_
CG_VECTOR_FN_ size_t cg_fp8_decode16_(
    const uint8_t *in, size_t n, float scale, int is_e5m2, float *out, int non_temporal) {
    const cg_vf_ scale_v = cg_vf_set_(scale);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        cg_vf_ x, y;
        cg_vf_fp8_(in + i, is_e5m2, &x, &y);
        cg_vf_stream_(out, i, cg_vf_finite_(cg_vf_mul_(x, scale_v)), non_temporal);
        cg_vf_stream_(out, i + 8, cg_vf_finite_(cg_vf_mul_(y, scale_v)), non_temporal);
    }
    return i;
}
CG_VECTOR_FN_ void cg_fp8_decode_simd_(
    const uint8_t *in, size_t n, float scale, int is_e5m2, float *out, int non_temporal) {
    const size_t i = is_e5m2
        ? non_temporal ? cg_fp8_decode16_(in, n, scale, 1, out, 1) : cg_fp8_decode16_(in, n, scale, 1, out, 0)
        : non_temporal ? cg_fp8_decode16_(in, n, scale, 0, out, 1)
                       : cg_fp8_decode16_(in, n, scale, 0, out, 0);
    if (i < n) cg_fp8_decode_scalar_(in + i, n - i, scale, is_e5m2, cg_at_mut_(out, i), 0);
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
