/* wasm: the operations of the vector layer for WebAssembly SIMD128 that halves does not have

   Offers   conversions, lookups, narrowing and widening of cg_vf_, cg_vu_ and cg_vd_
   Needs    base, lanes
   Touches  nothing but its arguments
   avx2 says what each operation does. There is no instruction for f16: it is computed. */

#if CG_WASM_
#  define CG_W_(x) ((v128_t)(x))
CG_EACH2_(u, cg_vu_max_, u, u, wasm_u32x4_max(CG_W_(x), CG_W_(y)))
CG_EACH2_(u, cg_vu_min_, u, u, wasm_u32x4_min(CG_W_(x), CG_W_(y)))
CG_EACH2_(u, cg_vu_max16_, u, u, wasm_u16x8_max(CG_W_(x), CG_W_(y)))
CG_EACH2_(u, cg_vb_min_, u, u, wasm_u8x16_min(CG_W_(x), CG_W_(y)))
CG_EACH2_(u, cg_vb_sub_sat_, u, u, wasm_u8x16_sub_sat(CG_W_(x), CG_W_(y)))
CG_EACH2_(f, cg_vf_min_, f, f, wasm_f32x4_pmin(CG_W_(y), CG_W_(x)))
CG_EACH2_(f, cg_vf_max_, f, f, wasm_f32x4_pmax(CG_W_(y), CG_W_(x)))
CG_EACH1_(f, cg_vf_int_, u, wasm_f32x4_convert_i32x4(CG_W_(x)))
CG_EACH1_(u, cg_vu_round_, f, wasm_i32x4_trunc_sat_f32x4(wasm_f32x4_nearest(CG_W_(x))))
CG_EACH1_(u, cg_vu_trunc_, f, wasm_i32x4_trunc_sat_f32x4(CG_W_(x)))
CG_EACH1_(f, cg_vf_finite_, f,
    wasm_f32x4_pmax(wasm_f32x4_pmin(CG_W_(x), wasm_f32x4_splat(CG_FLT_MAX_)), wasm_f32x4_splat(-CG_FLT_MAX_)))
CG_EACH1_(u, cg_vu_swap_halves_, u, x << 16 | x >> 16)
CG_VECTOR_FN_ uint32_t cg_vu_hmax_(cg_vu_ x) {
    const cg_pu_ m = (cg_pu_)wasm_u32x4_max(CG_W_(x.a), CG_W_(x.b));
    return cg_max32_(cg_max32_(m[0], m[1]), cg_max32_(m[2], m[3]));
}
CG_VECTOR_FN_ int cg_vu_any_(cg_vu_ x) { return wasm_v128_any_true(CG_W_(x.a | x.b)); }
CG_VECTOR_FN_ cg_vu_ cg_vu_signs_(cg_vu_ w, int from) { /* shifts by a number for each lane are products */
    const cg_pu_ low = { 1u << 31, 1u << 30, 1u << 29, 1u << 28 }, high = { 1u << 27, 1u << 26, 1u << 25, 1u << 24 };
    w.a = (w.a >> (unsigned)from) * low & CG_SIGN_BIT_;
    w.b = (w.b >> (unsigned)from) * high & CG_SIGN_BIT_;
    return w;
}
CG_VECTOR_FN_ cg_vu_ cg_vb_narrow_add_(cg_vu_ a, cg_vu_ b, cg_vu_ c, cg_vu_ d, int plus) {
    const v128_t p = wasm_i16x8_splat((int16_t)plus);
    return cg_vu_join_(
        (cg_pu_)wasm_u8x16_narrow_i16x8(wasm_i16x8_add_sat(wasm_i16x8_narrow_i32x4(CG_W_(a.a), CG_W_(a.b)), p),
            wasm_i16x8_add_sat(wasm_i16x8_narrow_i32x4(CG_W_(b.a), CG_W_(b.b)), p)),
        (cg_pu_)wasm_u8x16_narrow_i16x8(wasm_i16x8_add_sat(wasm_i16x8_narrow_i32x4(CG_W_(c.a), CG_W_(c.b)), p),
            wasm_i16x8_add_sat(wasm_i16x8_narrow_i32x4(CG_W_(d.a), CG_W_(d.b)), p)));
}
CG_VECTOR_FN_ cg_vu_ cg_vb_narrow_(cg_vu_ a, cg_vu_ b, cg_vu_ c, cg_vu_ d) { return cg_vb_narrow_add_(a, b, c, d, 0); }
CG_VECTOR_FN_ cg_vu_ cg_vb_narrow_signed_(cg_vu_ a, cg_vu_ b, cg_vu_ c, cg_vu_ d) {
    return cg_vu_join_((cg_pu_)wasm_i8x16_narrow_i16x8(wasm_i16x8_narrow_i32x4(CG_W_(a.a), CG_W_(a.b)),
                           wasm_i16x8_narrow_i32x4(CG_W_(b.a), CG_W_(b.b))),
        (cg_pu_)wasm_i8x16_narrow_i16x8(
            wasm_i16x8_narrow_i32x4(CG_W_(c.a), CG_W_(c.b)), wasm_i16x8_narrow_i32x4(CG_W_(d.a), CG_W_(d.b))));
}
CG_VECTOR_FN_ cg_vu_ cg_vb_narrow_tops_(cg_vu_ a, cg_vu_ b, cg_vu_ c, cg_vu_ d) {
    cg_vu_ v = cg_vb_narrow_signed_(a, b, c, d);
    v.a &= 0x80808080u;
    v.b &= 0x80808080u;
    return v;
}
CG_VECTOR_FN_ uint32_t cg_vb_mask_(cg_vu_ bytes) {
    return (uint32_t)wasm_i8x16_bitmask(CG_W_(bytes.a)) | (uint32_t)wasm_i8x16_bitmask(CG_W_(bytes.b)) << 16;
}
CG_VECTOR_FN_ void cg_vu_put16_(uint8_t *p, cg_vu_ a, cg_vu_ b) {
    wasm_v128_store(p, wasm_u16x8_narrow_i32x4(CG_W_(a.a), CG_W_(a.b)));
    wasm_v128_store(p + 16, wasm_u16x8_narrow_i32x4(CG_W_(b.a), CG_W_(b.b)));
}
CG_VECTOR_FN_ void cg_vb_put16_(uint8_t *p, cg_vu_ a, cg_vu_ b) {
    wasm_v128_store(p, wasm_u8x16_narrow_i16x8(CG_W_(a.a), CG_W_(a.b)));
    wasm_v128_store(p + 16, wasm_u8x16_narrow_i16x8(CG_W_(b.a), CG_W_(b.b)));
}
CG_VECTOR_FN_ cg_vu_ cg_widen16_(v128_t w) {
    return cg_vu_join_((cg_pu_)wasm_u32x4_extend_low_u16x8(w), (cg_pu_)wasm_u32x4_extend_high_u16x8(w));
}
CG_VECTOR_FN_ cg_vu_ cg_vu_bytes_(const uint8_t *p) { return cg_widen16_(wasm_u16x8_load8x8(p)); }
CG_VECTOR_FN_ cg_vu_ cg_vu_u16_(const uint8_t *p) { return cg_widen16_(wasm_v128_load(p)); }
CG_VECTOR_FN_ cg_vu_ cg_vu_bytes16_(const uint8_t *p) {
    return cg_vu_join_((cg_pu_)wasm_u16x8_load8x8(p), (cg_pu_)wasm_u16x8_load8x8(p + 8));
}
CG_VECTOR_FN_ cg_vu_ cg_vu_load24_(const uint8_t *p) {
    const v128_t spread = wasm_i8x16_make(0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1);
    return cg_vu_join_((cg_pu_)wasm_i8x16_swizzle(wasm_v128_load(p), spread),
        (cg_pu_)wasm_i8x16_swizzle(wasm_v128_load(p + 12), spread));
}
CG_VECTOR_FN_ void cg_vu_store24_(uint8_t *p, cg_vu_ x) {
    const v128_t squeeze = wasm_i8x16_make(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
    wasm_v128_store(p, wasm_i8x16_swizzle(CG_W_(x.a), squeeze));
    wasm_v128_store(p + 12, wasm_i8x16_swizzle(CG_W_(x.b), squeeze));
}
/* Small floats shifted to the place of f32's mantissa, m, plus the difference of the exponents' biases, are normal
   values; with a bias larger by 1, less the smallest normal value, denormal ones. The lesser of the two is right. */
CG_VECTOR_FN_ cg_pf_ cg_small_float_(cg_pu_ m, cg_pu_ sign, uint32_t bias) {
    const cg_pf_ denormal = (cg_pf_)(m + (bias + (1u << 23))) - cg_as_float_(bias + (1u << 23));
    return (cg_pf_)((cg_pu_)wasm_u32x4_min(CG_W_(m + bias), CG_W_(denormal)) | sign);
}
CG_VECTOR_FN_ cg_pf_ cg_f16_part_(cg_pu_ h) {
    const cg_pu_ m = (h & 0x7fff) << 13, special = (cg_pu_)(m >= 0x0f800000u), nan = (cg_pu_)(m > 0x0f800000u);
    const cg_pu_ f = (cg_pu_)cg_small_float_(m, (h & 0x8000) << 16, 112u << 23);
    return (cg_pf_)(f | (special & CG_INF_BITS_) | (nan & 0x400000u));
}
CG_VECTOR_FN_ cg_vf_ cg_vf_f16_(const uint8_t *p) {
    const cg_vu_ h = cg_vu_u16_(p);
    return cg_vf_join_(cg_f16_part_(h.a), cg_f16_part_(h.b));
}
/* To nearest even: a normal value by the bits that are dropped; a denormal by adding 0.5, which drops those below
   2^-24. */
CG_VECTOR_FN_ cg_pu_ cg_put_f16_part_(cg_pu_ u) {
    const cg_pu_ m = u & CG_ABS_MASK_, normal = (m + (0xc8000fffu + (m >> 13 & 1))) >> 13,
                 denormal = (cg_pu_)((cg_pf_)m + 0.5f) - 0x3f000000u, small = (cg_pu_)(m < 0x38800000u),
                 large = (cg_pu_)(m >= 0x47800000u);
    return (((small & denormal) | (~small & normal)) & ~large) | (large & 0x7c00) | (u >> 16 & 0x8000);
}
CG_VECTOR_FN_ void cg_vf_put_f16_(uint8_t *p, cg_vf_ x) {
    wasm_v128_store(
        p, wasm_u16x8_narrow_i32x4(CG_W_(cg_put_f16_part_((cg_pu_)x.a)), CG_W_(cg_put_f16_part_((cg_pu_)x.b))));
}
CG_VECTOR_FN_ cg_vf_ cg_fp8_half_(const uint8_t *p, int is_e5m2) {
    const uint32_t bias = is_e5m2 ? 112u << 23 : 120u << 23;
    const v128_t most = wasm_u32x4_splat(is_e5m2 ? 0x7b : 0x7e);
    const cg_vu_ b = cg_vu_bytes_(p);
    const unsigned up = is_e5m2 ? 21 : 20;
    return cg_vf_join_(cg_small_float_((cg_pu_)wasm_u32x4_min(CG_W_(b.a & 0x7f), most) << up, (b.a & 0x80) << 24, bias),
        cg_small_float_((cg_pu_)wasm_u32x4_min(CG_W_(b.b & 0x7f), most) << up, (b.b & 0x80) << 24, bias));
}
CG_VECTOR_FN_ void cg_vf_fp8_(const uint8_t *p, int is_e5m2, cg_vf_ *x, cg_vf_ *y) {
    *x = cg_fp8_half_(p, is_e5m2);
    *y = cg_fp8_half_(p + 8, is_e5m2);
}
CG_VECTOR_FN_ cg_vd_ cg_widen64_(v128_t f) {
    return cg_vd_join_(
        (cg_pd_)wasm_f64x2_promote_low_f32x4(f), (cg_pd_)wasm_f64x2_promote_low_f32x4(wasm_i64x2_shuffle(f, f, 1, 1)));
}
CG_VECTOR_FN_ cg_vd_ cg_vd_floats_(const float *v, size_t i) { return cg_widen64_(wasm_v128_load(cg_at_(v, i))); }
CG_VECTOR_FN_ cg_vd_ cg_vd_low_(cg_vf_ x) { return cg_widen64_(CG_W_(x.a)); }
CG_VECTOR_FN_ cg_vd_ cg_vd_high_(cg_vf_ x) { return cg_widen64_(CG_W_(x.b)); }
/* Of a table of up to 16 floats in parts: a swizzle gives 0 for a number beyond its part, and the others are or-ed. */
CG_VECTOR_FN_ cg_pf_ cg_lookup_part_(cg_pf_ part, cg_pu_ index, unsigned first, unsigned mask) {
    const cg_pu_ at = (index & mask) * 0x04040404u + 0x03020100u;
    return (cg_pf_)wasm_i8x16_swizzle(CG_W_(part), wasm_i8x16_sub(CG_W_(at), wasm_i8x16_splat((int8_t)(4 * first))));
}
CG_VECTOR_FN_ cg_vf_ cg_vf_lookup4_(cg_vf_ table, cg_vu_ index) {
    table.b = cg_lookup_part_(table.a, index.b, 0, 3);
    table.a = cg_lookup_part_(table.a, index.a, 0, 3);
    return table;
}
CG_VECTOR_FN_ cg_pf_ cg_lookup8_part_(cg_vf_ table, cg_pu_ index, unsigned first, unsigned mask) {
    return (cg_pf_)((cg_pu_)cg_lookup_part_(table.a, index, first, mask) |
        (cg_pu_)cg_lookup_part_(table.b, index, first + 4, mask));
}
CG_VECTOR_FN_ cg_vf_ cg_vf_lookup8_(cg_vf_ table, cg_vu_ index) {
    return cg_vf_join_(cg_lookup8_part_(table, index.a, 0, 7), cg_lookup8_part_(table, index.b, 0, 7));
}
CG_VECTOR_FN_ cg_vf_ cg_vf_lookup16_(cg_vf_ low, cg_vf_ high, cg_vu_ index) {
    return cg_vf_join_(
        (cg_pf_)((cg_pu_)cg_lookup8_part_(low, index.a, 0, 15) | (cg_pu_)cg_lookup8_part_(high, index.a, 8, 15)),
        (cg_pf_)((cg_pu_)cg_lookup8_part_(low, index.b, 0, 15) | (cg_pu_)cg_lookup8_part_(high, index.b, 8, 15)));
}
#  define CG_WORD_OF_LANE_(j) (j)
CG_VECTOR_FN_ void cg_vq_add_words_(cg_vq_ *s, const uint8_t *words) {
    const v128_t v = wasm_v128_load(words), w = wasm_v128_load(words + 16);
    s[0].a += (cg_pq_)wasm_u64x2_extend_low_u32x4(v);
    s[0].b += (cg_pq_)wasm_u64x2_extend_high_u32x4(v);
    s[1].a += (cg_pq_)wasm_u64x2_extend_low_u32x4(w);
    s[1].b += (cg_pq_)wasm_u64x2_extend_high_u32x4(w);
}
CG_VECTOR_FN_ size_t cg_pack_fast_(const uint8_t *symbols, size_t n, unsigned bits, uint8_t *out) {
    (void)symbols, (void)n, (void)bits, (void)out;
    return 0;
}
CG_VECTOR_FN_ size_t cg_unpack_fast_(const uint8_t *in, size_t n, unsigned bits, uint8_t *symbols) {
    (void)in, (void)n, (void)bits, (void)symbols;
    return 0;
}
#endif
