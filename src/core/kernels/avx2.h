/* avx2: the operations of the vector layer for AVX2

   Offers   loads, stores, conversions, permutations and the like of cg_vf_, cg_vu_ and cg_vd_, as neon and wasm do
   Needs    base, lanes
   Touches  nothing but its arguments */

#if CG_AVX2_
#  define CG_M_(x) ((__m256i)(x))
CG_VECTOR_FN_ cg_vf_ cg_vf_set_(float f) { return (cg_vf_)_mm256_set1_ps(f); }
/* cg_vf_set_(*p) that stays a load: of a value just stored in a vector gcc makes several shuffles. */
CG_VECTOR_FN_ cg_vf_ cg_vf_broadcast_(const float *p) { return (cg_vf_)_mm256_broadcast_ss(p); }
CG_VECTOR_FN_ cg_vu_ cg_vu_set_(uint32_t u) { return (cg_vu_)_mm256_set1_epi32((int)u); }
CG_VECTOR_FN_ cg_vu_ cg_vb_set_(unsigned byte) { return (cg_vu_)_mm256_set1_epi8((char)byte); }
CG_VECTOR_FN_ cg_vd_ cg_vd_zero_(void) { return (cg_vd_)_mm256_setzero_pd(); }
CG_VECTOR_FN_ cg_vf_ cg_vf_make_(float a, float b, float c, float d, float e, float f, float g, float h) {
    return (cg_vf_)_mm256_setr_ps(a, b, c, d, e, f, g, h);
}
CG_VECTOR_FN_ cg_vu_ cg_vu_load_(const void *p) { return (cg_vu_)_mm256_loadu_si256((const __m256i *)p); }
CG_VECTOR_FN_ void cg_vu_store_(void *p, cg_vu_ x) { _mm256_storeu_si256((__m256i *)p, CG_M_(x)); }
CG_VECTOR_FN_ cg_vd_ cg_vd_load_(const double *p) { return (cg_vd_)_mm256_loadu_pd(p); }
CG_VECTOR_FN_ void cg_vd_store_(double *p, cg_vd_ x) { _mm256_storeu_pd(p, (__m256d)x); }
CG_VECTOR_FN_ __m128i cg_load16_(const void *p) { return _mm_loadu_si128((const __m128i *)p); }
CG_VECTOR_FN_ void cg_store16_(void *p, __m128i x) { _mm_storeu_si128((__m128i *)p, x); }
CG_VECTOR_FN_ __m256i cg_load2x16_(const void *p, const void *q) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(cg_load16_(p)), cg_load16_(q), 1);
}
/* Eight values to y + i, non-temporal stores by 16 bytes: that is what malloc aligns to. i % 4 == 0 then. */
CG_VECTOR_FN_ void cg_vf_stream_(float *y, size_t i, cg_vf_ x, int non_temporal) {
    if (non_temporal) {
        _mm_stream_si128((__m128i *)(void *)(y + i), _mm256_castsi256_si128(CG_M_(x)));
        _mm_stream_si128((__m128i *)(void *)(y + i + 4), _mm256_extracti128_si256(CG_M_(x), 1));
    } else {
        cg_vu_store_(cg_at_mut_(y, i), (cg_vu_)x);
    }
}
CG_VECTOR_FN_ void cg_stream_end_(void) { _mm_sfence(); }
/* After the last operation of a kernel: gcc leaves the instruction out before a tail call. */
CG_VECTOR_FN_ void cg_vector_end_(void) { _mm256_zeroupper(); }

CG_EACH2_(u, cg_vu_max_, u, u, _mm256_max_epu32(CG_M_(x), CG_M_(y)))
CG_EACH2_(u, cg_vu_min_, u, u, _mm256_min_epu32(CG_M_(x), CG_M_(y)))
CG_EACH2_(u, cg_vu_max16_, u, u, _mm256_max_epu16(CG_M_(x), CG_M_(y)))
CG_EACH2_(u, cg_vb_min_, u, u, _mm256_min_epu8(CG_M_(x), CG_M_(y)))
CG_EACH2_(u, cg_vb_sub_sat_, u, u, _mm256_subs_epu8(CG_M_(x), CG_M_(y)))
CG_EACH2_(f, cg_vf_min_, f, f, _mm256_min_ps((__m256)x, (__m256)y)) /* x < y ? x : y */
CG_EACH2_(f, cg_vf_max_, f, f, _mm256_max_ps((__m256)x, (__m256)y)) /* x > y ? x : y */
CG_EACH2_(u, cg_vf_gt_, f, f, _mm256_cmp_ps((__m256)x, (__m256)y, _CMP_GT_OQ))
CG_EACH1_(f, cg_vf_int_, u, _mm256_cvtepi32_ps(CG_M_(x)))
/* To the nearest even integer; what is above 1024 may become that: the instruction gives the smallest integer for what
   is too large. */
CG_EACH1_(u, cg_vu_round_, f, _mm256_cvtps_epi32(_mm256_min_ps((__m256)x, _mm256_set1_ps(1024.0f))))
CG_EACH1_(u, cg_vu_trunc_, f, _mm256_cvttps_epi32((__m256)x))
CG_VECTOR_FN_ cg_vf_ cg_vf_finite_(cg_vf_ x) { /* Inf becomes the largest finite value */
    return cg_vf_max_(cg_vf_min_(x, cg_vf_set_(CG_FLT_MAX_)), cg_vf_set_(-CG_FLT_MAX_));
}
CG_VECTOR_FN_ uint32_t cg_vu_hmax_(cg_vu_ x) { /* the largest of eight */
    __m128i m = _mm_max_epu32(_mm256_castsi256_si128(CG_M_(x)), _mm256_extracti128_si256(CG_M_(x), 1));
    m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0x4e));
    m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0xb1));
    return (uint32_t)_mm_cvtsi128_si32(m);
}
CG_VECTOR_FN_ int cg_vu_any_(cg_vu_ x) { return !_mm256_testz_si256(CG_M_(x), CG_M_(x)); } /* some bit is 1 */
CG_VECTOR_FN_ cg_vu_ cg_vu_swap_halves_(cg_vu_ x) { /* the 16-bit halves of each u32 */
    return (cg_vu_)_mm256_shuffle_epi8(CG_M_(x),
        _mm256_setr_epi8(2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14,
            15, 12, 13));
}
/* The sign bit in lane i where bit from + i of each lane of w is 1, else 0. */
CG_VECTOR_FN_ cg_vu_ cg_vu_signs_(cg_vu_ w, int from) {
    const __m256i up = _mm256_setr_epi32(31, 30, 29, 28, 27, 26, 25, 24);
    return (cg_vu_)_mm256_sllv_epi32(CG_M_(w), _mm256_sub_epi32(up, _mm256_set1_epi32(from))) & CG_SIGN_BIT_;
}

/* Four vectors of i32 to 32 bytes. The pack instructions work on halves of 16 bytes: until cg_vb_put_ or cg_vb_mask_
   the bytes are in the order 0..3 of a, b, c, d, then 4..7 of each. */
CG_VECTOR_FN_ __m256i cg_packs_(cg_vu_ a, cg_vu_ b) { return _mm256_packs_epi32(CG_M_(a), CG_M_(b)); }
/* saturated to i16, plus a number, saturated to 0..255 */
CG_VECTOR_FN_ cg_vu_ cg_vb_narrow_add_(cg_vu_ a, cg_vu_ b, cg_vu_ c, cg_vu_ d, int plus) {
    const __m256i p = _mm256_set1_epi16((short)plus);
    return (cg_vu_)_mm256_packus_epi16(_mm256_add_epi16(cg_packs_(a, b), p), _mm256_add_epi16(cg_packs_(c, d), p));
}
/* of 0..255 */
CG_VECTOR_FN_ cg_vu_ cg_vb_narrow_(cg_vu_ a, cg_vu_ b, cg_vu_ c, cg_vu_ d) {
    return (cg_vu_)_mm256_packus_epi16(cg_packs_(a, b), cg_packs_(c, d));
}
/* of -128..127 */
CG_VECTOR_FN_ cg_vu_ cg_vb_narrow_signed_(cg_vu_ a, cg_vu_ b, cg_vu_ c, cg_vu_ d) {
    return (cg_vu_)_mm256_packs_epi16(cg_packs_(a, b), cg_packs_(c, d));
}
/* the top bits as top bits of bytes, the other bits 0: saturation keeps the sign */
CG_VECTOR_FN_ cg_vu_ cg_vb_narrow_tops_(cg_vu_ a, cg_vu_ b, cg_vu_ c, cg_vu_ d) {
    return cg_vb_narrow_signed_(a, b, c, d) & 0x80808080u;
}
CG_VECTOR_FN_ __m256i cg_pack_order_(cg_vu_ bytes) {
    return _mm256_permutevar8x32_epi32(CG_M_(bytes), _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}
CG_VECTOR_FN_ void cg_vb_put_(uint8_t *p, cg_vu_ bytes) { cg_vu_store_(p, (cg_vu_)cg_pack_order_(bytes)); }
/* the top bit of each byte, the first lowest; cg_vb_mask_in_order_: of bytes as they were loaded */
CG_VECTOR_FN_ uint32_t cg_vb_mask_(cg_vu_ bytes) { return (uint32_t)_mm256_movemask_epi8(cg_pack_order_(bytes)); }
CG_VECTOR_FN_ uint32_t cg_vb_mask_in_order_(cg_vu_ bytes) { return (uint32_t)_mm256_movemask_epi8(CG_M_(bytes)); }
/* Of four comparisons, a bit for each lane, the first lowest: sooner known than by cg_vb_mask_. */
CG_VECTOR_FN_ uint32_t cg_vu_mask_(cg_vu_ a, cg_vu_ b, cg_vu_ c, cg_vu_ d) {
    return (uint32_t)(_mm256_movemask_ps((__m256)a) | _mm256_movemask_ps((__m256)b) << 8) |
        (uint32_t)(_mm256_movemask_ps((__m256)c) | _mm256_movemask_ps((__m256)d) << 8) << 16;
}
/* The low 16 bits of each, 16 of them to p; values below 2^16. cg_vb_put16_: 32 u16 below 256 as bytes. */
CG_VECTOR_FN_ void cg_vu_put16_(uint8_t *p, cg_vu_ a, cg_vu_ b) {
    cg_vu_store_(p, (cg_vu_)_mm256_permute4x64_epi64(_mm256_packus_epi32(CG_M_(a), CG_M_(b)), 0xd8));
}
CG_VECTOR_FN_ void cg_vb_put16_(uint8_t *p, cg_vu_ a, cg_vu_ b) {
    cg_vu_store_(p, (cg_vu_)_mm256_permute4x64_epi64(_mm256_packus_epi16(CG_M_(a), CG_M_(b)), 0xd8));
}
/* Eight bytes, or eight u16, as u32; 16 bytes as u16. */
CG_VECTOR_FN_ cg_vu_ cg_vu_bytes_(const uint8_t *p) {
    return (cg_vu_)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p));
}
CG_VECTOR_FN_ cg_vu_ cg_vu_u16_(const uint8_t *p) { return (cg_vu_)_mm256_cvtepu16_epi32(cg_load16_(p)); }
CG_VECTOR_FN_ cg_vu_ cg_vu_bytes16_(const uint8_t *p) { return (cg_vu_)_mm256_cvtepu8_epi16(cg_load16_(p)); }
/* Eight u32 from 3 bytes each, and their low 3 bytes. Both access 28 bytes; the top bytes of what is loaded are 0. */
CG_VECTOR_FN_ cg_vu_ cg_vu_load24_(const uint8_t *p) {
    const __m128i spread = _mm_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1);
    return (cg_vu_)_mm256_shuffle_epi8(cg_load2x16_(p, p + 12), _mm256_broadcastsi128_si256(spread));
}
CG_VECTOR_FN_ void cg_vu_store24_(uint8_t *p, cg_vu_ x) {
    const __m128i squeeze = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
    const __m256i w = _mm256_shuffle_epi8(CG_M_(x), _mm256_broadcastsi128_si256(squeeze));
    cg_store16_(p, _mm256_castsi256_si128(w));
    cg_store16_(p + 12, _mm256_extracti128_si256(w, 1));
}
/* Eight f16, to nearest even; what is too large becomes Inf. */
CG_VECTOR_FN_ cg_vf_ cg_vf_f16_(const uint8_t *p) { return (cg_vf_)_mm256_cvtph_ps(cg_load16_(p)); }
CG_VECTOR_FN_ void cg_vf_put_f16_(uint8_t *p, cg_vf_ x) {
    cg_store16_(p, _mm256_cvtps_ph((__m256)x, 0));
} /* 16 bytes of E5M2 or E4M3, where Inf and NaN count as the largest value. Both are f16 with fewer mantissa bits; as
   E4M3 has one exponent bit less, too, its values appear there times 2^-8. */
CG_VECTOR_FN_ void cg_vf_fp8_(const uint8_t *p, int is_e5m2, cg_vf_ *x, cg_vf_ *y) {
    const __m128i top = _mm_set1_epi8(is_e5m2 ? 0x7b : 0x7e), bottom = _mm_set1_epi8((char)(is_e5m2 ? 0xfb : 0xfe));
    const __m128i b = _mm_min_epi8(_mm_min_epu8(cg_load16_(p), bottom), top), keep = _mm_set1_epi16((short)0xbfff);
    __m128i low = _mm_unpacklo_epi8(_mm_setzero_si128(), b), high = _mm_unpackhi_epi8(_mm_setzero_si128(), b);
    if (!is_e5m2) { /* the sign stays where it is */
        low = _mm_and_si128(_mm_srai_epi16(low, 1), keep);
        high = _mm_and_si128(_mm_srai_epi16(high, 1), keep);
    }
    *x = (cg_vf_)_mm256_cvtph_ps(low) * (is_e5m2 ? 1.0f : 256.0f);
    *y = (cg_vf_)_mm256_cvtph_ps(high) * (is_e5m2 ? 1.0f : 256.0f);
}

/* Four f64: of four floats at v + i, of the first four lanes, of the last. */
CG_VECTOR_FN_ cg_vd_ cg_vd_floats_(const float *v, size_t i) {
    return (cg_vd_)_mm256_cvtps_pd(_mm_castsi128_ps(cg_load16_(cg_at_(v, i))));
}
CG_VECTOR_FN_ cg_vd_ cg_vd_low_(cg_vf_ x) { return (cg_vd_)_mm256_cvtps_pd(_mm256_castps256_ps128((__m256)x)); }
CG_VECTOR_FN_ cg_vd_ cg_vd_high_(cg_vf_ x) { return (cg_vd_)_mm256_cvtps_pd(_mm256_extractf128_ps((__m256)x, 1)); }

/* table[index] of a table of 4 (in both halves), 8 or 16 (low, high); higher bits of the index are ignored. */
CG_VECTOR_FN_ cg_vf_ cg_vf_lookup4_(cg_vf_ table, cg_vu_ index) {
    return (cg_vf_)_mm256_permutevar_ps((__m256)table, CG_M_(index));
}
CG_VECTOR_FN_ cg_vf_ cg_vf_lookup8_(cg_vf_ table, cg_vu_ index) {
    return (cg_vf_)_mm256_permutevar8x32_ps((__m256)table, CG_M_(index));
}
CG_VECTOR_FN_ cg_vf_ cg_vf_lookup16_(cg_vf_ low, cg_vf_ high, cg_vu_ index) {
    return (cg_vf_)_mm256_blendv_ps((__m256)cg_vf_lookup8_(low, index), (__m256)cg_vf_lookup8_(high, index),
        _mm256_castsi256_ps(_mm256_slli_epi32(CG_M_(index), 28)));
}
CG_VECTOR_FN_ cg_vf_ cg_vf_reverse_(cg_vf_ x) {
    return (cg_vf_)_mm256_permutevar8x32_ps((__m256)x, _mm256_setr_epi32(7, 6, 5, 4, 3, 2, 1, 0));
}
CG_VECTOR_FN_ cg_vf_ cg_vf_next_(cg_vf_ x, cg_vf_ next) { /* lanes 1..7 of x, then lane 0 of next */
    return (cg_vf_)_mm256_permutevar8x32_ps(
        _mm256_blend_ps((__m256)x, (__m256)next, 1), _mm256_setr_epi32(1, 2, 3, 4, 5, 6, 7, 0));
}
CG_VECTOR_FN_ cg_vf_ cg_vf_prev_(cg_vf_ x, cg_vf_ last) { /* lane 7 of last, then lanes 0..6 of x */
    return (cg_vf_)_mm256_permutevar8x32_ps(
        _mm256_blend_ps((__m256)x, (__m256)last, 128), _mm256_setr_epi32(7, 0, 1, 2, 3, 4, 5, 6));
}
/* a[0], b[0], a[1], ... to x and y; then the reverse */
CG_VECTOR_FN_ void cg_vf_interleave_(cg_vf_ a, cg_vf_ b, cg_vf_ *x, cg_vf_ *y) {
    const __m256 low = _mm256_unpacklo_ps((__m256)a, (__m256)b), high = _mm256_unpackhi_ps((__m256)a, (__m256)b);
    *x = (cg_vf_)_mm256_permute2f128_ps(low, high, 0x20);
    *y = (cg_vf_)_mm256_permute2f128_ps(low, high, 0x31);
}
CG_VECTOR_FN_ void cg_vf_deinterleave_(cg_vf_ x, cg_vf_ y, cg_vf_ *a, cg_vf_ *b) {
    const __m256 even = _mm256_shuffle_ps((__m256)x, (__m256)y, 0x88),
                 odd = _mm256_shuffle_ps((__m256)x, (__m256)y, 0xdd);
    *a = (cg_vf_)_mm256_permute4x64_pd(_mm256_castps_pd(even), 0xd8);
    *b = (cg_vf_)_mm256_permute4x64_pd(_mm256_castps_pd(odd), 0xd8);
}
/* *s becomes the sum of three bits; returns the carry. */
CG_VECTOR_FN_ cg_vu_ cg_vu_full_adder_(cg_vu_ *s, cg_vu_ a, cg_vu_ b) {
    const cg_vu_ x = *s ^ a, carry = (*s & a) | (x & b);
    *s = x ^ b;
    return carry;
}
/* Adds eight u32 to the u64 lanes of s[2]; lane j gets word CG_WORD_OF_LANE_(j). */
#  define CG_WORD_OF_LANE_(j) ((j) < 4 ? 2 * (j) : 2 * ((j)-4) + 1)
CG_VECTOR_FN_ void cg_vq_add_words_(cg_vq_ *s, const uint8_t *words) {
    const cg_vq_ w = (cg_vq_)cg_vu_load_(words);
    s[0] += w & 0xffffffffu;
    s[1] += w >> 32;
}

/* Signs for the Hadamard transform. Row b holds the sign masks of the four bits of b twice, and then their opposites: a
   vector of eight from 0 on has the signs twice, one from 4 on the signs and their opposites. A load and one xor are
   cheaper than three shifts and shuffles, which compete with the additions. */
#  define CG_FLIP_ROW_(a, b, c, d) \
    { a, b, c, d, a, b, c, d, a ^ CG_SIGN_BIT_, b ^ CG_SIGN_BIT_, c ^ CG_SIGN_BIT_, d ^ CG_SIGN_BIT_, 0, 0, 0, 0 }
#  define CG_FLIP_ROWS_(c, d)                                                                               \
    CG_FLIP_ROW_(0u, 0u, c, d), CG_FLIP_ROW_(CG_SIGN_BIT_, 0u, c, d), CG_FLIP_ROW_(0u, CG_SIGN_BIT_, c, d), \
        CG_FLIP_ROW_(CG_SIGN_BIT_, CG_SIGN_BIT_, c, d)
static const uint32_t cg_flip_rows_[16][16] = { CG_FLIP_ROWS_(0u, 0u), CG_FLIP_ROWS_(CG_SIGN_BIT_, 0u),
    CG_FLIP_ROWS_(0u, CG_SIGN_BIT_), CG_FLIP_ROWS_(CG_SIGN_BIT_, CG_SIGN_BIT_) };
/* negates lane i where bit i of byte is 1 */
CG_VECTOR_FN_ cg_vf_ cg_vf_flip_(cg_vf_ x, uint32_t byte) {
    return (cg_vf_)((cg_vu_)x ^ (cg_vu_)cg_load2x16_(cg_flip_rows_[byte & 15u], cg_flip_rows_[byte >> 4]));
}
/* The Hadamard butterfly of the eight values at v + i, strides 4, 1, 2: each lane gets its pair's other value, plus or
   minus its own. For stride 4 the loads repeat a half, which needs no shuffle. flip: whether the bits of flips negate
   values before. */
CG_VECTOR_FN_ cg_vf_ cg_vf_hadamard_(const float *v, size_t i, const uint8_t *flips, int flip) {
    const cg_vu_ odd = { 0, CG_SIGN_BIT_, 0, CG_SIGN_BIT_, 0, CG_SIGN_BIT_, 0, CG_SIGN_BIT_ };
    const cg_vu_ pair = { 0, 0, CG_SIGN_BIT_, CG_SIGN_BIT_, 0, 0, CG_SIGN_BIT_, CG_SIGN_BIT_ };
    const cg_vu_ half = { 0, 0, 0, 0, CG_SIGN_BIT_, CG_SIGN_BIT_, CG_SIGN_BIT_, CG_SIGN_BIT_ };
    cg_vu_ x = (cg_vu_)_mm256_broadcastsi128_si256(cg_load16_(cg_at_(v, i)));
    cg_vu_ y = (cg_vu_)_mm256_broadcastsi128_si256(cg_load16_(cg_at_(v, i + 4)));
    cg_vf_ z;
    if (flip) {
        x ^= cg_vu_load_(cg_flip_rows_[flips[i / 8] & 15u]);
        y ^= cg_vu_load_(cg_flip_rows_[flips[i / 8] >> 4] + 4);
    } else {
        y ^= half;
    }
    z = (cg_vf_)x + (cg_vf_)y;
    z = (cg_vf_)_mm256_permute_ps((__m256)z, 0xb1) + (cg_vf_)((cg_vu_)z ^ odd);
    return (cg_vf_)_mm256_permute_ps((__m256)z, 0x4e) + (cg_vf_)((cg_vu_)z ^ pair);
}

/* Symbols of 2..7 bits to a string of bits, and back; both return how many they have done, a multiple of eight. */
CG_VECTOR_FN_ size_t cg_pack_most_(const uint8_t *symbols, size_t n, unsigned bits, uint8_t *out) {
    const __m256i pair = _mm256_set1_epi16((short)(1 | 1 << (8 + bits))), low = _mm256_set1_epi64x(0xffffffff),
                  quad = _mm256_set1_epi32(1 | 1 << (16 + 2 * bits)), nibbles = _mm256_set1_epi16(0x1001);
    const __m128i up = _mm_cvtsi32_si128((int)(32 - 4 * bits));
    uint8_t bytes[16];
    __m256i squeeze;
    size_t i = 0;
    for (; bits == 4 && i + 64 <= n; i += 64)
        cg_vb_put16_(out + i / 2, (cg_vu_)_mm256_maddubs_epi16(CG_M_(cg_vu_load_(symbols + i)), nibbles),
            (cg_vu_)_mm256_maddubs_epi16(CG_M_(cg_vu_load_(symbols + i + 32)), nibbles));
    if (bits == 4) return i;
    /* join 2 symbols in 16 bits, 4 in 32, 8 in 64, then move the bytes in use side by side */
    for (unsigned j = 0; j < 16; j++) bytes[j] = (uint8_t)(j < bits ? j : j < 2 * bits ? 8 + j - bits : 0x80);
    squeeze = _mm256_broadcastsi128_si256(cg_load16_(bytes));
    /* stores are of 16 bytes, of which 2*bits count: they stay within the bytes of whole groups of eight */
    for (; i + 32 <= n && i / 8 * bits + 2 * bits + 16 <= n / 8 * bits; i += 32) {
        uint8_t *to = out + i / 8 * bits;
        __m256i w = _mm256_madd_epi16(_mm256_maddubs_epi16(pair, CG_M_(cg_vu_load_(symbols + i))), quad);
        w = _mm256_or_si256(_mm256_and_si256(w, low), _mm256_srl_epi64(_mm256_andnot_si256(low, w), up));
        w = _mm256_shuffle_epi8(w, squeeze);
        cg_store16_(to, _mm256_castsi256_si128(w));
        cg_store16_(to + 2 * bits, _mm256_extracti128_si256(w, 1));
    }
    return i;
}
CG_VECTOR_FN_ size_t cg_unpack_most_(const uint8_t *in, size_t n, unsigned bits, uint8_t *symbols) {
    const __m128i by4 = _mm_cvtsi32_si128((int)(4 * bits)), by2 = _mm_cvtsi32_si128((int)(2 * bits)),
                  by1 = _mm_cvtsi32_si128((int)bits);
    const __m256i low4 = _mm256_set1_epi64x((long long)(((uint64_t)1 << 4 * bits) - 1)),
                  low2 = _mm256_set1_epi32((int)((1u << 2 * bits) - 1u)),
                  low1 = _mm256_set1_epi16((short)((1u << bits) - 1u));
    uint8_t bytes[16];
    __m256i spread;
    size_t i = 0;
    for (; bits == 4 && i + 32 <= n; i += 32) {
        const cg_vu_ w = cg_vu_bytes16_(in + i / 2);
        cg_vu_store_(symbols + i, (w | cg_vu_shl16_(w, 4)) & 0x0f0f0f0fu);
    }
    for (unsigned j = 0; j < 16; j++) bytes[j] = (uint8_t)(j % 8 < bits ? j / 8 * bits + j % 8 : 0x80);
    spread = _mm256_broadcastsi128_si256(cg_load16_(bytes));
    for (; i + 32 <= n && i / 8 * bits + 2 * bits + 16 <= n / 8 * bits; i += 32) {
        const uint8_t *p = in + i / 8 * bits;
        __m256i w = _mm256_shuffle_epi8(cg_load2x16_(p, p + 2 * bits), spread);
        w = _mm256_or_si256(
            _mm256_and_si256(w, low4), _mm256_slli_epi64(_mm256_and_si256(_mm256_srl_epi64(w, by4), low4), 32));
        w = _mm256_or_si256(
            _mm256_and_si256(w, low2), _mm256_slli_epi32(_mm256_and_si256(_mm256_srl_epi32(w, by2), low2), 16));
        w = _mm256_or_si256(
            _mm256_and_si256(w, low1), _mm256_slli_epi16(_mm256_and_si256(_mm256_srl_epi16(w, by1), low1), 8));
        cg_vu_store_(symbols + i, (cg_vu_)w);
    }
    return i;
}
#endif
