/* halves: operations of the vector layer that ISAs with registers of 16 bytes share

   Offers   loads, stores, permutations, packing and the like of cg_vf_, cg_vu_ and cg_vd_ as two parts each
   Needs    base, lanes
   Touches  nothing but its arguments
   avx2 says what each operation does; what differs between NEON and WebAssembly stands in neon and wasm. */

#if CG_NEON_ || CG_WASM_
#  if defined(__clang__)
#    define CG_SHUFFLE_(x, y, a, b, c, d) __builtin_shufflevector(x, y, a, b, c, d)
#  else
#    define CG_SHUFFLE_(x, y, a, b, c, d) __builtin_shuffle(x, y, __extension__(cg_pi_){ a, b, c, d })
#  endif
CG_VECTOR_FN_ cg_vf_ cg_vf_make_(float a, float b, float c, float d, float e, float f, float g, float h) {
    const cg_vf_ v = { { a, b, c, d }, { e, f, g, h } };
    return v;
}
CG_VECTOR_FN_ cg_vf_ cg_vf_set_(float f) { return cg_vf_make_(f, f, f, f, f, f, f, f); }
CG_VECTOR_FN_ cg_vf_ cg_vf_broadcast_(const float *p) { return cg_vf_set_(*p); }
CG_VECTOR_FN_ cg_vu_ cg_vu_set_(uint32_t u) {
    const cg_vu_ v = { { u, u, u, u }, { u, u, u, u } };
    return v;
}
CG_VECTOR_FN_ cg_vu_ cg_vb_set_(unsigned byte) { return cg_vu_set_((byte & 255u) * 0x01010101u); }
CG_VECTOR_FN_ cg_vd_ cg_vd_zero_(void) {
    const cg_vd_ v = { { 0.0, 0.0 }, { 0.0, 0.0 } };
    return v;
}
CG_VECTOR_FN_ cg_vu_ cg_vu_load_(const void *p) {
    cg_vu_ v;
    memcpy(&v.a, p, 16);
    memcpy(&v.b, (const uint8_t *)p + 16, 16);
    return v;
}
CG_VECTOR_FN_ void cg_vu_store_(void *p, cg_vu_ x) {
    memcpy(p, &x.a, 16);
    memcpy((uint8_t *)p + 16, &x.b, 16);
}
CG_VECTOR_FN_ cg_vd_ cg_vd_load_(const double *p) {
    cg_vd_ v;
    memcpy(&v.a, p, 16);
    memcpy(&v.b, p + 2, 16);
    return v;
}
CG_VECTOR_FN_ void cg_vd_store_(double *p, cg_vd_ x) {
    memcpy(p, &x.a, 16);
    memcpy(p + 2, &x.b, 16);
}
CG_VECTOR_FN_ void cg_vf_stream_(float *y, size_t i, cg_vf_ x, int non_temporal) {
    (void)non_temporal;
    cg_vu_store_(cg_at_mut_(y, i), cg_vu_of_(x));
}
CG_VECTOR_FN_ void cg_stream_end_(void) {}
CG_VECTOR_FN_ void cg_vector_end_(void) {}
CG_EACH2_(u, cg_vf_gt_, f, f, x > y)

/* Bytes are in order here, and narrow what is in their range alike. */
CG_VECTOR_FN_ void cg_vb_put_(uint8_t *p, cg_vu_ bytes) { cg_vu_store_(p, bytes); }
CG_VECTOR_FN_ uint32_t cg_vb_mask_in_order_(cg_vu_ bytes) { return cg_vb_mask_(bytes); }
CG_VECTOR_FN_ uint32_t cg_vu_mask_(cg_vu_ a, cg_vu_ b, cg_vu_ c, cg_vu_ d) {
    return cg_vb_mask_(cg_vb_narrow_signed_(a, b, c, d));
}
CG_VECTOR_FN_ cg_vf_ cg_vf_reverse_(cg_vf_ x) {
    return cg_vf_join_(CG_SHUFFLE_(x.b, x.b, 3, 2, 1, 0), CG_SHUFFLE_(x.a, x.a, 3, 2, 1, 0));
}
CG_VECTOR_FN_ cg_vf_ cg_vf_next_(cg_vf_ x, cg_vf_ next) {
    return cg_vf_join_(CG_SHUFFLE_(x.a, x.b, 1, 2, 3, 4), CG_SHUFFLE_(x.b, next.a, 1, 2, 3, 4));
}
CG_VECTOR_FN_ cg_vf_ cg_vf_prev_(cg_vf_ x, cg_vf_ last) {
    return cg_vf_join_(CG_SHUFFLE_(last.b, x.a, 3, 4, 5, 6), CG_SHUFFLE_(x.a, x.b, 3, 4, 5, 6));
}
CG_VECTOR_FN_ void cg_vf_interleave_(cg_vf_ a, cg_vf_ b, cg_vf_ *x, cg_vf_ *y) {
    x->a = CG_SHUFFLE_(a.a, b.a, 0, 4, 1, 5);
    x->b = CG_SHUFFLE_(a.a, b.a, 2, 6, 3, 7);
    y->a = CG_SHUFFLE_(a.b, b.b, 0, 4, 1, 5);
    y->b = CG_SHUFFLE_(a.b, b.b, 2, 6, 3, 7);
}
CG_VECTOR_FN_ void cg_vf_deinterleave_(cg_vf_ x, cg_vf_ y, cg_vf_ *a, cg_vf_ *b) {
    a->a = CG_SHUFFLE_(x.a, x.b, 0, 2, 4, 6);
    a->b = CG_SHUFFLE_(y.a, y.b, 0, 2, 4, 6);
    b->a = CG_SHUFFLE_(x.a, x.b, 1, 3, 5, 7);
    b->b = CG_SHUFFLE_(y.a, y.b, 1, 3, 5, 7);
}
CG_VECTOR_FN_ cg_pu_ cg_pu_select_(cg_pu_ mask, cg_pu_ x, cg_pu_ y) { return (mask & x) | (~mask & y); }
CG_VECTOR_FN_ cg_vu_ cg_vu_full_adder_(cg_vu_ *s, cg_vu_ a, cg_vu_ b) {
    const cg_vu_ x = cg_vu_xor_(*s, a);
    cg_vu_ carry;
    carry.a = cg_pu_select_(x.a, b.a, a.a);
    carry.b = cg_pu_select_(x.b, b.b, a.b);
    *s = cg_vu_xor_(x, b);
    return carry;
}
CG_VECTOR_FN_ cg_vf_ cg_vf_flip_(cg_vf_ x, uint32_t byte) {
    return cg_vf_of_(cg_vu_xor_(cg_vu_of_(x), cg_vu_signs_(cg_vu_set_(byte), 0)));
}
CG_VECTOR_FN_ cg_pf_ cg_pf_hadamard_(cg_pf_ x) { /* strides 1, 2 */
    const cg_pu_ odd = { 0, CG_SIGN_BIT_, 0, CG_SIGN_BIT_ }, pair = { 0, 0, CG_SIGN_BIT_, CG_SIGN_BIT_ };
    x = CG_SHUFFLE_(x, x, 1, 0, 3, 2) + (cg_pf_)((cg_pu_)x ^ odd);
    return CG_SHUFFLE_(x, x, 2, 3, 0, 1) + (cg_pf_)((cg_pu_)x ^ pair);
}
CG_VECTOR_FN_ cg_vf_ cg_vf_hadamard_(const float *v, size_t i, const uint8_t *flips, int flip) {
    cg_vf_ x = cg_vf_of_(cg_vu_load_(cg_at_(v, i))), y;
    if (flip) x = cg_vf_flip_(x, flips[i / 8]);
    y.a = cg_pf_hadamard_(x.a + x.b);
    y.b = cg_pf_hadamard_(x.a - x.b);
    return y;
}
/* Two symbols are joined in 16 bits, 4 in 32, 8 in 64: the upper of two moves down to the lower one's end. Unpacking
   does the same in reverse order. */
CG_VECTOR_FN_ size_t cg_pack_most_(const uint8_t *symbols, size_t n, unsigned bits, uint8_t *out) {
    const uint32_t ones = (1u << bits) - 1u;
    const cg_pu_ low2 = cg_vu_set_(ones * 0x10001u).a, low4 = cg_vu_set_((1u << 2 * bits) - 1u).a;
    const cg_pq_ low8 = { ((uint64_t)1 << 4 * bits) - 1, ((uint64_t)1 << 4 * bits) - 1 };
    size_t i = cg_pack_fast_(symbols, n, bits, out);
    /* stores are of 8 bytes, of which `bits` count: the one after it overwrites the others */
    for (; i + 16 <= n && i / 8 * bits + bits + 8 <= n / 8 * bits; i += 16) {
        cg_pu_ w;
        memcpy(&w, symbols + i, 16);
        w = cg_pu_select_(low2, w, (cg_pu_)((cg_ph_)w >> (uint16_t)(8 - bits)));
        w = cg_pu_select_(low4, w, w >> (16 - 2 * bits));
        w = cg_pu_select_((cg_pu_)low8, w, (cg_pu_)((cg_pq_)w >> (uint64_t)(32 - 4 * bits)));
        cg_put64_(out + i / 8 * bits, ((cg_pq_)w)[0]);
        cg_put64_(out + i / 8 * bits + bits, ((cg_pq_)w)[1]);
    }
    return i;
}
CG_VECTOR_FN_ size_t cg_unpack_most_(const uint8_t *in, size_t n, unsigned bits, uint8_t *symbols) {
    const cg_pu_ low8 = { ~0u, 0, ~0u, 0 }, low4 = cg_vu_set_(0xffff).a, low2 = cg_vu_set_(0xff00ff).a,
                 low1 = cg_vb_set_((1u << bits) - 1u).a;
    size_t i = cg_unpack_fast_(in, n, bits, symbols);
    for (; i + 16 <= n && i / 8 * bits + bits + 8 <= n / 8 * bits; i += 16) {
        const cg_pq_ v = { cg_get64_(in + i / 8 * bits), cg_get64_(in + i / 8 * bits + bits) };
        cg_pu_ w = cg_pu_select_(low8, (cg_pu_)v, (cg_pu_)(v << (uint64_t)(32 - 4 * bits)));
        w = cg_pu_select_(low4, w, w << (16 - 2 * bits));
        w = cg_pu_select_(low2, w, (cg_pu_)((cg_ph_)w << (uint16_t)(8 - bits))) & low1;
        memcpy(symbols + i, &w, 16);
    }
    return i;
}
#endif
