/* neon: the operations of the vector layer for NEON that halves does not have

   Offers   conversions, lookups, narrowing and widening of cg_vf_, cg_vu_ and cg_vd_
   Needs    base, lanes
   Touches  nothing but its arguments
   avx2 says what each operation does. */

#if CG_NEON_
#  define CG_B_(x) ((uint8x16_t)(x))
CG_EACH2_(u, cg_vu_max_, u, u, vmaxq_u32((uint32x4_t)x, (uint32x4_t)y))
CG_EACH2_(u, cg_vu_min_, u, u, vminq_u32((uint32x4_t)x, (uint32x4_t)y))
CG_EACH2_(u, cg_vu_max16_, u, u, vmaxq_u16((uint16x8_t)x, (uint16x8_t)y))
CG_EACH2_(u, cg_vb_min_, u, u, vminq_u8(CG_B_(x), CG_B_(y)))
CG_EACH2_(u, cg_vb_sub_sat_, u, u, vqsubq_u8(CG_B_(x), CG_B_(y)))
CG_EACH2_(f, cg_vf_min_, f, f, vbslq_u8(CG_B_(x < y), CG_B_(x), CG_B_(y)))
CG_EACH2_(f, cg_vf_max_, f, f, vbslq_u8(CG_B_(x > y), CG_B_(x), CG_B_(y)))
CG_EACH1_(f, cg_vf_int_, u, vcvtq_f32_s32((int32x4_t)x))
CG_EACH1_(u, cg_vu_round_, f, vcvtnq_s32_f32((float32x4_t)x))
CG_EACH1_(u, cg_vu_trunc_, f, vcvtq_s32_f32((float32x4_t)x))
CG_EACH1_(
    f, cg_vf_finite_, f, vmaxq_f32(vminq_f32((float32x4_t)x, vdupq_n_f32(CG_FLT_MAX_)), vdupq_n_f32(-CG_FLT_MAX_)))
CG_EACH1_(u, cg_vu_swap_halves_, u, vrev32q_u16((uint16x8_t)x))
CG_VECTOR_FN_ uint32_t cg_vu_hmax_(cg_vu_ x) { return vmaxvq_u32(vmaxq_u32((uint32x4_t)x.a, (uint32x4_t)x.b)); }
CG_VECTOR_FN_ int cg_vu_any_(cg_vu_ x) { return cg_vu_hmax_(x) != 0; }
CG_VECTOR_FN_ cg_vu_ cg_vu_signs_(cg_vu_ w, int from) {
    const int32x4_t low = { 31, 30, 29, 28 }, high = { 27, 26, 25, 24 };
    w.a = (cg_pu_)vshlq_u32((uint32x4_t)w.a, low - vdupq_n_s32(from)) & CG_SIGN_BIT_;
    w.b = (cg_pu_)vshlq_u32((uint32x4_t)w.b, high - vdupq_n_s32(from)) & CG_SIGN_BIT_;
    return w;
}
/* the low halves, or the low bytes, of two parts; the low bytes of four */
CG_VECTOR_FN_ cg_pu_ cg_low16_(cg_pu_ a, cg_pu_ b) { return (cg_pu_)vuzp1q_u16((uint16x8_t)a, (uint16x8_t)b); }
CG_VECTOR_FN_ cg_pu_ cg_low8_(cg_pu_ a, cg_pu_ b) { return (cg_pu_)vuzp1q_u8(CG_B_(a), CG_B_(b)); }
CG_VECTOR_FN_ cg_vu_ cg_vb_narrow_(cg_vu_ a, cg_vu_ b, cg_vu_ c, cg_vu_ d) {
    return cg_vu_join_(
        cg_low8_(cg_low16_(a.a, a.b), cg_low16_(b.a, b.b)), cg_low8_(cg_low16_(c.a, c.b), cg_low16_(d.a, d.b)));
}
CG_VECTOR_FN_ cg_vu_ cg_vb_narrow_signed_(cg_vu_ a, cg_vu_ b, cg_vu_ c, cg_vu_ d) { return cg_vb_narrow_(a, b, c, d); }
CG_VECTOR_FN_ cg_pu_ cg_tops_(cg_vu_ a, cg_vu_ b) {
    const uint16x8_t x = vuzp2q_u16((uint16x8_t)a.a, (uint16x8_t)a.b), y = vuzp2q_u16((uint16x8_t)b.a, (uint16x8_t)b.b);
    return (cg_pu_)vandq_u8(vuzp2q_u8(CG_B_(x), CG_B_(y)), vdupq_n_u8(0x80));
}
CG_VECTOR_FN_ cg_vu_ cg_vb_narrow_tops_(cg_vu_ a, cg_vu_ b, cg_vu_ c, cg_vu_ d) {
    return cg_vu_join_(cg_tops_(a, b), cg_tops_(c, d));
}
CG_VECTOR_FN_ uint8x8_t cg_saturate8_(cg_vu_ a, int16x8_t plus) {
    return vqmovun_s16(vqaddq_s16(vqmovn_high_s32(vqmovn_s32((int32x4_t)a.a), (int32x4_t)a.b), plus));
}
CG_VECTOR_FN_ cg_vu_ cg_vb_narrow_add_(cg_vu_ a, cg_vu_ b, cg_vu_ c, cg_vu_ d, int plus) {
    const int16x8_t p = vdupq_n_s16((int16_t)plus);
    return cg_vu_join_((cg_pu_)vcombine_u8(cg_saturate8_(a, p), cg_saturate8_(b, p)),
        (cg_pu_)vcombine_u8(cg_saturate8_(c, p), cg_saturate8_(d, p)));
}
CG_VECTOR_FN_ uint32_t cg_vb_mask_(cg_vu_ bytes) {
    const uint8x16_t bit = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201u));
    uint8x16_t t = vpaddq_u8(
        vandq_u8(vcltzq_s8((int8x16_t)bytes.a), bit), vandq_u8(vcltzq_s8((int8x16_t)bytes.b), bit));
    t = vpaddq_u8(t, t);
    return vgetq_lane_u32(vreinterpretq_u32_u8(vpaddq_u8(t, t)), 0);
}
CG_VECTOR_FN_ void cg_vu_put16_(uint8_t *p, cg_vu_ a, cg_vu_ b) {
    vst1q_u8(p, CG_B_(cg_low16_(a.a, a.b)));
    vst1q_u8(p + 16, CG_B_(cg_low16_(b.a, b.b)));
}
CG_VECTOR_FN_ void cg_vb_put16_(uint8_t *p, cg_vu_ a, cg_vu_ b) {
    vst1q_u8(p, CG_B_(cg_low8_(a.a, a.b)));
    vst1q_u8(p + 16, CG_B_(cg_low8_(b.a, b.b)));
}
CG_VECTOR_FN_ cg_vu_ cg_widen16_(uint16x8_t w) {
    return cg_vu_join_((cg_pu_)vmovl_u16(vget_low_u16(w)), (cg_pu_)vmovl_high_u16(w));
}
CG_VECTOR_FN_ cg_vu_ cg_vu_bytes_(const uint8_t *p) { return cg_widen16_(vmovl_u8(vld1_u8(p))); }
CG_VECTOR_FN_ cg_vu_ cg_vu_u16_(const uint8_t *p) { return cg_widen16_(vreinterpretq_u16_u8(vld1q_u8(p))); }
CG_VECTOR_FN_ cg_vu_ cg_vu_bytes16_(const uint8_t *p) {
    return cg_vu_join_((cg_pu_)vmovl_u8(vld1_u8(p)), (cg_pu_)vmovl_u8(vld1_u8(p + 8)));
}
CG_VECTOR_FN_ cg_vu_ cg_vu_load24_(const uint8_t *p) {
    const uint8x16_t spread = { 0, 1, 2, 255, 3, 4, 5, 255, 6, 7, 8, 255, 9, 10, 11, 255 };
    return cg_vu_join_((cg_pu_)vqtbl1q_u8(vld1q_u8(p), spread), (cg_pu_)vqtbl1q_u8(vld1q_u8(p + 12), spread));
}
CG_VECTOR_FN_ void cg_vu_store24_(uint8_t *p, cg_vu_ x) {
    const uint8x16_t squeeze = { 0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 255, 255, 255, 255 };
    vst1q_u8(p, vqtbl1q_u8(CG_B_(x.a), squeeze));
    vst1q_u8(p + 12, vqtbl1q_u8(CG_B_(x.b), squeeze));
}
CG_VECTOR_FN_ cg_vf_ cg_vf_f16_(const uint8_t *p) {
    const float16x8_t h = vreinterpretq_f16_u8(vld1q_u8(p));
    return cg_vf_join_((cg_pf_)vcvt_f32_f16(vget_low_f16(h)), (cg_pf_)vcvt_high_f32_f16(h));
}
CG_VECTOR_FN_ void cg_vf_put_f16_(uint8_t *p, cg_vf_ x) {
    vst1q_u8(p, vreinterpretq_u8_f16(vcvt_high_f16_f32(vcvt_f16_f32((float32x4_t)x.a), (float32x4_t)x.b)));
}
CG_VECTOR_FN_ cg_vf_ cg_fp8_half_(uint8x8_t b, int is_e5m2) {
    int16x8_t h = vreinterpretq_s16_u16(vshll_n_u8(b, 8));
    cg_vf_ v;
    if (!is_e5m2) h = vandq_s16(vshrq_n_s16(h, 1), vdupq_n_s16((int16_t)-0x4001));
    v.a = (cg_pf_)vcvt_f32_f16(vget_low_f16(vreinterpretq_f16_s16(h))) * (is_e5m2 ? 1.0f : 256.0f);
    v.b = (cg_pf_)vcvt_high_f32_f16(vreinterpretq_f16_s16(h)) * (is_e5m2 ? 1.0f : 256.0f);
    return v;
}
CG_VECTOR_FN_ void cg_vf_fp8_(const uint8_t *p, int is_e5m2, cg_vf_ *x, cg_vf_ *y) {
    const uint8x16_t low = vminq_u8(vld1q_u8(p), vdupq_n_u8(is_e5m2 ? 0xfb : 0xfe));
    const uint8x16_t b = CG_B_(vminq_s8((int8x16_t)low, vdupq_n_s8(is_e5m2 ? 0x7b : 0x7e)));
    *x = cg_fp8_half_(vget_low_u8(b), is_e5m2);
    *y = cg_fp8_half_(vget_high_u8(b), is_e5m2);
}
CG_VECTOR_FN_ cg_vd_ cg_widen64_(float32x4_t f) {
    return cg_vd_join_((cg_pd_)vcvt_f64_f32(vget_low_f32(f)), (cg_pd_)vcvt_high_f64_f32(f));
}
CG_VECTOR_FN_ cg_vd_ cg_vd_floats_(const float *v, size_t i) {
    return cg_widen64_(vreinterpretq_f32_u8(vld1q_u8((const uint8_t *)v + 4 * i)));
}
CG_VECTOR_FN_ cg_vd_ cg_vd_low_(cg_vf_ x) { return cg_widen64_((float32x4_t)x.a); }
CG_VECTOR_FN_ cg_vd_ cg_vd_high_(cg_vf_ x) { return cg_widen64_((float32x4_t)x.b); }
/* The bytes of a table of floats at an index: four numbers each. */
CG_EACHN_(u, cg_byte_numbers_, u, (x & n) * 0x04040404u + 0x03020100u)
CG_VECTOR_FN_ cg_vf_ cg_vf_lookup4_(cg_vf_ table, cg_vu_ index) {
    const cg_vu_ at = cg_byte_numbers_(index, 3);
    table.b = (cg_pf_)vqtbl1q_u8(CG_B_(table.a), CG_B_(at.b));
    table.a = (cg_pf_)vqtbl1q_u8(CG_B_(table.a), CG_B_(at.a));
    return table;
}
CG_VECTOR_FN_ cg_vf_ cg_vf_lookup8_(cg_vf_ table, cg_vu_ index) {
    const cg_vu_ at = cg_byte_numbers_(index, 7);
    const uint8x16x2_t t = { { CG_B_(table.a), CG_B_(table.b) } };
    table.a = (cg_pf_)vqtbl2q_u8(t, CG_B_(at.a));
    table.b = (cg_pf_)vqtbl2q_u8(t, CG_B_(at.b));
    return table;
}
CG_VECTOR_FN_ cg_vf_ cg_vf_lookup16_(cg_vf_ low, cg_vf_ high, cg_vu_ index) {
    const cg_vu_ at = cg_byte_numbers_(index, 15);
    const uint8x16x4_t t = { { CG_B_(low.a), CG_B_(low.b), CG_B_(high.a), CG_B_(high.b) } };
    low.a = (cg_pf_)vqtbl4q_u8(t, CG_B_(at.a));
    low.b = (cg_pf_)vqtbl4q_u8(t, CG_B_(at.b));
    return low;
}
#  define CG_WORD_OF_LANE_(j) (j)
CG_VECTOR_FN_ void cg_vq_add_words_(cg_vq_ *s, const uint8_t *words) {
    const uint32x4_t v = vreinterpretq_u32_u8(vld1q_u8(words)), w = vreinterpretq_u32_u8(vld1q_u8(words + 16));
    s[0].a = (cg_pq_)vaddw_u32((uint64x2_t)s[0].a, vget_low_u32(v));
    s[0].b = (cg_pq_)vaddw_high_u32((uint64x2_t)s[0].b, v);
    s[1].a = (cg_pq_)vaddw_u32((uint64x2_t)s[1].a, vget_low_u32(w));
    s[1].b = (cg_pq_)vaddw_high_u32((uint64x2_t)s[1].b, w);
}
/* Packing of 2 or 4 bits, which loads and stores that interleave do; returns how many. */
CG_VECTOR_FN_ size_t cg_pack_fast_(const uint8_t *symbols, size_t n, unsigned bits, uint8_t *out) {
    size_t i = 0;
    for (; bits == 2 && i + 64 <= n; i += 64) {
        uint8x16x4_t s = vld4q_u8(symbols + i);
        vst1q_u8(out + i / 4, vsliq_n_u8(vsliq_n_u8(s.val[0], s.val[1], 2), vsliq_n_u8(s.val[2], s.val[3], 2), 4));
    }
    for (; bits == 4 && i + 32 <= n; i += 32) {
        uint8x16x2_t s = vld2q_u8(symbols + i);
        vst1q_u8(out + i / 2, vsliq_n_u8(s.val[0], s.val[1], 4));
    }
    return i;
}
CG_VECTOR_FN_ size_t cg_unpack_fast_(const uint8_t *in, size_t n, unsigned bits, uint8_t *symbols) {
    const uint8x16_t low = vdupq_n_u8((uint8_t)((1u << bits) - 1u));
    size_t i = 0;
    for (; bits == 2 && i + 64 <= n; i += 64) {
        const uint8x16_t w = vld1q_u8(in + i / 4);
        uint8x16x4_t s;
        s.val[0] = vandq_u8(w, low);
        s.val[1] = vandq_u8(vshrq_n_u8(w, 2), low);
        s.val[2] = vandq_u8(vshrq_n_u8(w, 4), low);
        s.val[3] = vshrq_n_u8(w, 6);
        vst4q_u8(symbols + i, s);
    }
    for (; bits == 4 && i + 32 <= n; i += 32) {
        const uint8x16_t w = vld1q_u8(in + i / 2);
        uint8x16x2_t s;
        s.val[0] = vandq_u8(w, low);
        s.val[1] = vshrq_n_u8(w, 4);
        vst2q_u8(symbols + i, s);
    }
    return i;
}
#endif
