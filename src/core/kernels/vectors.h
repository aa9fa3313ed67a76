/* vectors: what several kernels make of the operations of the vector layer

   Offers   loads of floats, magnitudes, hashes and rounding noise of eight positions, 16 lanes of sums, prefetching
   Needs    base, random, lanes, the ISA's room
   Touches  nothing but its arguments */

#define CG_PREFETCH_DISTANCE_ 512u /* values (2 KB) from the one that is used to the one that is prefetched */
#if CG_VECTOR_
CG_VECTOR_FN_ cg_vu_ cg_vu_floats_(const float *v, size_t i) { return cg_vu_load_(cg_at_(v, i)); }
CG_VECTOR_FN_ cg_vf_ cg_vf_load_(const float *v, size_t i) { return cg_vf_of_(cg_vu_floats_(v, i)); }
CG_VECTOR_FN_ void cg_vf_store_(float *v, size_t i, cg_vf_ x) { cg_vu_store_(cg_at_mut_(v, i), cg_vu_of_(x)); }
CG_VECTOR_FN_ cg_vu_ cg_vu_abs_(cg_vu_ x) { return cg_vu_and_(x, cg_vu_set_(CG_ABS_MASK_)); }
CG_VECTOR_FN_ cg_vf_ cg_vf_abs_(cg_vf_ x) { return cg_vf_of_(cg_vu_abs_(cg_vu_of_(x))); }
CG_VECTOR_FN_ cg_vu_ cg_vu_negative_(cg_vu_ x) { return cg_vf_gt_(cg_vf_set_(0.0f), cg_vf_of_(x)); } /* as a float */
/* the larger of x and the magnitudes of v */
CG_VECTOR_FN_ cg_vu_ cg_vu_absmax_(cg_vu_ x, cg_vu_ v) { return cg_vu_max_(x, cg_vu_abs_(v)); }

/* Called for each 32 values of a chunk: prefetches two cache lines that follow, `ahead` values on, so that memory stays
   busy while the chunk is packed and summed. */
CG_VECTOR_FN_ void cg_prefetch32_(const float *v, size_t i, size_t ahead) {
    CG_PREFETCH_(cg_at_(v, i + ahead));
    CG_PREFETCH_(cg_at_(v, i + ahead + 16));
}
#  define CG_AHEAD_ 1536u

/* cg_hash32_ of eight counters from this one on */
CG_VECTOR_FN_ cg_vu_ cg_vu_hash_(cg_key_ key, uint32_t counter) {
    static const uint32_t lane[8] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    cg_vu_ h = cg_vu_xor_(cg_vu_add_(cg_vu_set_(counter), cg_vu_load_(lane)), cg_vu_set_(key.a));
    h = cg_vu_mul_(cg_vu_xor_(h, cg_vu_shr_(h, 16)), cg_vu_set_(0x7FEB352Du));
    h = cg_vu_add_(cg_vu_xor_(h, cg_vu_shr_(h, 15)), cg_vu_set_(key.b));
    h = cg_vu_mul_(h, cg_vu_set_(0x846CA68Bu));
    return cg_vu_xor_(h, cg_vu_shr_(h, 16));
}
/* cg_noise_bits_ of 32 positions; position % 16 == 0. One hash serves positions p and p + 8 of 16. */
CG_VECTOR_FN_ void cg_vu_noise_(cg_key_ key, uint32_t position, cg_vu_ *noise) {
    noise[0] = cg_vu_hash_(key, position >> 1);
    noise[1] = cg_vu_swap_halves_(noise[0]);
    noise[2] = cg_vu_hash_(key, (position >> 1) + 8);
    noise[3] = cg_vu_swap_halves_(noise[2]);
    if (key.shift) { /* a branch that is foreseen costs less than four additions of 0 */
        const cg_vu_ shift = cg_vu_set_(key.shift);
        for (int i = 0; i < 4; i++) noise[i] = cg_vu_add_(noise[i], shift);
    }
}
/* How many values come before the first whose position is a multiple of 16, at most n. */
CG_INLINE_ size_t cg_noise_head_(int stochastic, uint32_t position, size_t n) {
    return stochastic ? cg_min_(n, (16 - (position & 15)) & 15) : 0;
}
/* the 24 high bits of h as a fraction of 2^24 */
CG_VECTOR_FN_ cg_vf_ cg_vf_uniform_(cg_vu_ h) {
    return cg_vf_mul_(cg_vf_int_(cg_vu_shr_(h, 8)), cg_vf_set_(5.9604644775390625e-8f));
}

/* 16 lanes of sums in four vectors */
CG_VECTOR_FN_ void cg_lanes_load_(cg_vd_ *s, const double *lanes) {
    s[0] = cg_vd_load_(lanes);
    s[1] = cg_vd_load_(lanes + 4);
    s[2] = cg_vd_load_(lanes + 8);
    s[3] = cg_vd_load_(lanes + 12);
}
CG_VECTOR_FN_ void cg_lanes_store_(double *lanes, const cg_vd_ *s) {
    cg_vd_store_(lanes, s[0]);
    cg_vd_store_(lanes + 4, s[1]);
    cg_vd_store_(lanes + 8, s[2]);
    cg_vd_store_(lanes + 12, s[3]);
}
CG_VECTOR_FN_ void cg_lanes_add_(cg_vd_ *s, cg_vf_ x) { /* eight terms to eight lanes */
    s[0] = cg_vd_add_(s[0], cg_vd_low_(x));
    s[1] = cg_vd_add_(s[1], cg_vd_high_(x));
}
#endif
