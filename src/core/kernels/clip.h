/* clip: the kernel that cuts values to a magnitude

   Offers   cut
   Needs    base, table, the vector layer
   Touches  nothing but its arguments */

/* cut: the sign of v with the smaller one of its magnitude and the limit, whose bits are limit_bits; a NaN counts as
   larger than any limit. out may be v. */
static void cg_cut_scalar_(const float *v, size_t n, uint32_t limit_bits, float *out) {
    for (size_t i = 0; i < n; i++) {
        const uint32_t u = cg_load_bits_(v, i), m = u & CG_ABS_MASK_;
        cg_store_(out, i, cg_as_float_((u ^ m) | (m < limit_bits ? m : limit_bits)));
    }
}
#if CG_VECTOR_
CG_VECTOR_FN_ void cg_cut_simd_(const float *v, size_t n, uint32_t limit_bits, float *out) {
    const cg_vu_ limit = cg_vu_set_(limit_bits), sign = cg_vu_set_(CG_SIGN_BIT_);
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        cg_prefetch32_(v, i, CG_AHEAD_);
        CG_UNROLL_
        for (size_t j = 0; j < 4; j++) {
            const cg_vu_ u = cg_vu_floats_(v, i + 8 * j);
            cg_vf_store_(out, i + 8 * j, cg_vf_of_(cg_vu_or_(cg_vu_and_(u, sign), cg_vu_min_(cg_vu_abs_(u), limit))));
        }
    }
    cg_cut_scalar_(cg_at_(v, i), n - i, limit_bits, cg_at_mut_(out, i));
}
#endif
