/* formats: kernels that measure values, and that write them as f32, f16 and bf16

   Offers   absmax_bits, range, copy, f16_encode, bf16_encode; cg_f16_encode_ and cg_bf16_encode_ of one value
   Needs    base, table, the vector layer
   Touches  nothing but its arguments */

/* absmax_bits: the largest magnitude as bits, with the sign cleared. As integers, bits are ordered as magnitudes are,
   with Inf and then NaN above all finite ones. 0 if n is 0. */
static uint32_t cg_absmax_bits_scalar_(const float *v, size_t n) {
    uint32_t absmax_bits = 0;
    for (size_t i = 0; i < n; i++) absmax_bits = cg_max32_(absmax_bits, cg_load_bits_(v, i) & CG_ABS_MASK_);
    return absmax_bits;
}
#if CG_VECTOR_
CG_VECTOR_FN_ cg_vu_ cg_absmax16_(cg_vu_ absmax, const float *v, size_t i) { /* and 16 values at v + i */
    CG_PREFETCH_(cg_at_(v, i + CG_PREFETCH_DISTANCE_));
    return cg_vu_absmax_(cg_vu_absmax_(absmax, cg_vu_floats_(v, i)), cg_vu_floats_(v, i + 8));
}
CG_VECTOR_FN_ uint32_t cg_absmax_bits_simd_(const float *v, size_t n) {
    cg_vu_ t0 = cg_vu_set_(0), t1 = t0, t2 = t0, t3 = t0;
    size_t i = 0;
    /* a long vector at four places at once: one stream of reads does not keep memory busy */
    if (n >= 16384) {
        const size_t quarter = n / 64 * 16;
        for (; i < quarter; i += 16) {
            t0 = cg_absmax16_(t0, v, i);
            t1 = cg_absmax16_(t1, v, i + quarter);
            t2 = cg_absmax16_(t2, v, i + 2 * quarter);
            t3 = cg_absmax16_(t3, v, i + 3 * quarter);
        }
        i = 4 * quarter;
    }
    for (; i + 32 <= n; i += 32) {
        cg_prefetch32_(v, i, CG_PREFETCH_DISTANCE_);
        t0 = cg_vu_absmax_(t0, cg_vu_floats_(v, i));
        t1 = cg_vu_absmax_(t1, cg_vu_floats_(v, i + 8));
        t2 = cg_vu_absmax_(t2, cg_vu_floats_(v, i + 16));
        t3 = cg_vu_absmax_(t3, cg_vu_floats_(v, i + 24));
    }
    t0 = cg_vu_max_(cg_vu_max_(t0, t1), cg_vu_max_(t2, t3));
    return cg_max32_(cg_vu_hmax_(t0), cg_absmax_bits_scalar_(cg_at_(v, i), n - i));
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
#if CG_VECTOR_
CG_VECTOR_FN_ uint32_t cg_range_simd_(const float *v, size_t n, float *lo, float *hi) {
    cg_vu_ t0 = cg_vu_set_(0), t1 = t0;
    cg_vf_ l0 = cg_vf_set_(*lo), l1 = l0, h0 = cg_vf_set_(*hi), h1 = h0;
    float lows[8], highs[8];
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const cg_vu_ a = cg_vu_floats_(v, i), b = cg_vu_floats_(v, i + 8);
        t0 = cg_vu_absmax_(t0, a);
        t1 = cg_vu_absmax_(t1, b);
        l0 = cg_vf_min_(l0, cg_vf_of_(a));
        l1 = cg_vf_min_(l1, cg_vf_of_(b));
        h0 = cg_vf_max_(h0, cg_vf_of_(a));
        h1 = cg_vf_max_(h1, cg_vf_of_(b));
    }
    cg_vf_store_(lows, 0, cg_vf_min_(l0, l1));
    cg_vf_store_(highs, 0, cg_vf_max_(h0, h1));
    for (int j = 0; j < 8; j++) {
        *lo = lows[j] < *lo ? lows[j] : *lo;
        *hi = highs[j] > *hi ? highs[j] : *hi;
    }
    return cg_max32_(cg_vu_hmax_(cg_vu_max_(t0, t1)), cg_range_scalar_(cg_at_(v, i), n - i, lo, hi));
}
#endif

/* copy: f32 to the wire, bits unchanged.
   f16_encode: to nearest even. Finite values that would round to Inf become +-65504; Inf stays, a NaN becomes a quiet
   one without payload.
   bf16_encode: to nearest even. Finite values that would round to Inf become the largest, 0x7f7f; Inf stays, a NaN
   becomes quiet and keeps the rest of its upper bits.
   All return absmax bits. */
#define CG_F16_LIMIT_ 0x477fefffu  /* magnitude bits of the largest value that rounds to 65504 */
#define CG_BF16_LIMIT_ 0x7f7f7fffu /* magnitude bits of the largest value that rounds to 0x7f7f */
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
CG_INLINE_ uint32_t cg_bf16_encode_(uint32_t u) {
    uint32_t m = u & CG_ABS_MASK_;
    if (m > CG_BF16_LIMIT_) {
        if (m < CG_INF_BITS_) return (u >> 16 & 0x8000u) | 0x7f7fu;
        return u >> 16 | (m > CG_INF_BITS_ ? 0x40u : 0u);
    }
    return (u + 0x7fffu + (u >> 16 & 1u)) >> 16;
}
enum { CG_TO_F32_, CG_TO_F16_, CG_TO_BF16_ };
CG_INLINE_ uint32_t cg_floats_put_scalar_(const float *v, size_t n, uint8_t *out, int to) {
    uint32_t absmax_bits = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t u = cg_load_bits_(v, i);
        absmax_bits = cg_max32_(absmax_bits, u & CG_ABS_MASK_);
        if (to == CG_TO_F32_) cg_put32_(out + 4 * i, u);
        else cg_put16_(out + 2 * i, to == CG_TO_F16_ ? cg_f16_encode_(u) : cg_bf16_encode_(u));
    }
    return absmax_bits;
}
static uint32_t cg_copy_scalar_(const float *v, size_t n, uint8_t *out) {
    return cg_floats_put_scalar_(v, n, out, CG_TO_F32_);
}
static uint32_t cg_f16_encode_scalar_(const float *v, size_t n, uint8_t *out) {
    return cg_floats_put_scalar_(v, n, out, CG_TO_F16_);
}
static uint32_t cg_bf16_encode_scalar_(const float *v, size_t n, uint8_t *out) {
    return cg_floats_put_scalar_(v, n, out, CG_TO_BF16_);
}
#if CG_VECTOR_
CG_VECTOR_FN_ cg_vu_ cg_bf16_encode8_(cg_vu_ u) { /* wrong above CG_BF16_LIMIT_ */
    const cg_vu_ odd = cg_vu_and_(cg_vu_shr_(u, 16), cg_vu_set_(1));
    return cg_vu_shr_(cg_vu_add_(cg_vu_add_(u, cg_vu_set_(0x7fff)), odd), 16);
}
/* What the operations do wrong above the limit is rare, and the scalar kernel does it again. */
CG_VECTOR_FN_ uint32_t cg_floats_put_simd_(const float *v, size_t n, uint8_t *out, int to) {
    const uint32_t limit = to == CG_TO_F32_ ? CG_ABS_MASK_ : to == CG_TO_F16_ ? CG_F16_LIMIT_ : CG_BF16_LIMIT_;
    const size_t width = to == CG_TO_F32_ ? 4 : 2;
    cg_vu_ t0 = cg_vu_set_(0), t1 = t0;
    uint32_t absmax_bits;
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const cg_vu_ a = cg_vu_floats_(v, i), b = cg_vu_floats_(v, i + 8);
        if (width < 4) CG_PREFETCH_(cg_at_(v, i + CG_AHEAD_));
        if (to == CG_TO_F32_) cg_vu_store_(out + 4 * i, a), cg_vu_store_(out + 4 * i + 32, b);
        if (to == CG_TO_F16_) cg_vf_put_f16_(out + 2 * i, cg_vf_of_(a)), cg_vf_put_f16_(out + 2 * i + 16, cg_vf_of_(b));
        if (to == CG_TO_BF16_) cg_vu_put16_(out + 2 * i, cg_bf16_encode8_(a), cg_bf16_encode8_(b));
        t0 = cg_vu_absmax_(t0, a);
        t1 = cg_vu_absmax_(t1, b);
    }
    absmax_bits = cg_max32_(
        cg_vu_hmax_(cg_vu_max_(t0, t1)), cg_floats_put_scalar_(cg_at_(v, i), n - i, out + width * i, to));
    if (absmax_bits > limit) cg_floats_put_scalar_(v, i, out, to);
    return absmax_bits;
}
CG_VECTOR_FN_ uint32_t cg_copy_simd_(const float *v, size_t n, uint8_t *out) {
    return cg_floats_put_simd_(v, n, out, CG_TO_F32_);
}
CG_VECTOR_FN_ uint32_t cg_f16_encode_simd_(const float *v, size_t n, uint8_t *out) {
    return cg_floats_put_simd_(v, n, out, CG_TO_F16_);
}
CG_VECTOR_FN_ uint32_t cg_bf16_encode_simd_(const float *v, size_t n, uint8_t *out) {
    return cg_floats_put_simd_(v, n, out, CG_TO_BF16_);
}
#endif
