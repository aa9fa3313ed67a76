/* filter: index (from `first` on) and value of what reaches the bound as magnitude bits; NaN always does.
   Room for n values, and CG_SLACK_ more that may be scribbled on. n <= CG_CHUNK_ */
#define CG_SLACK_ 16u
static size_t cg_filter_scalar_(
    const float *v, size_t n, uint32_t bound, uint32_t first, uint32_t *index, float *value) {
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t u = cg_load_bits_(v, i);
        index[count] = first + (uint32_t)i;
        value[count] = cg_as_float_(u);
        count += (u & CG_ABS_MASK_) >= bound;
    }
    return count;
}
#if CG_AVX2_
CG_AVX2_INLINE_ __m256i cg_filter_mask_avx2_(const float *v, size_t i, __m256i below) {
    return _mm256_cmpgt_epi32(cg_abs_avx2_(cg_load8_avx2_(v, i)), below);
}
CG_AVX2_INLINE_ uint64_t cg_filter_mask32_avx2_(const float *v, size_t i, __m256i below) { /* a bit each */
    __m256i a = _mm256_packs_epi32(cg_filter_mask_avx2_(v, i, below), cg_filter_mask_avx2_(v, i + 8, below));
    __m256i b = _mm256_packs_epi32(cg_filter_mask_avx2_(v, i + 16, below), cg_filter_mask_avx2_(v, i + 24, below));
    a = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(a, b), _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    return (uint32_t)_mm256_movemask_epi8(a);
}
CG_TARGET_AVX2_ static size_t cg_filter_avx2_(
    const float *v, size_t n, uint32_t bound, uint32_t first, uint32_t *index, float *value) {
    const __m256i below = _mm256_set1_epi32((int)(bound - 1u));
    const uint64_t last = (uint64_t)1 << 63;
    size_t count = 0, i = 0;
    for (; i + 64 <= n; i += 64) {
        const uintptr_t ahead = (uintptr_t)v + 4 * i + 8192; /* the hardware stops at every page */
        uint64_t m;
        size_t many, j;
        for (unsigned line = 0; line < 256; line += 64) __builtin_prefetch((const void *)(ahead + line), 0, 2);
        m = cg_filter_mask32_avx2_(v, i, below) | cg_filter_mask32_avx2_(v, i + 32, below) << 32;
        many = (size_t)__builtin_popcountll(m);
        /* two without asking: which of 0, 1, 2 it is cannot be predicted */
        j = i + (size_t)__builtin_ctzll(m | last);
        index[count] = first + (uint32_t)j;
        value[count] = cg_load_(v, j);
        m &= m - 1;
        j = i + (size_t)__builtin_ctzll(m | last);
        index[count + 1] = first + (uint32_t)j;
        value[count + 1] = cg_load_(v, j);
        if (many > 2) {
            for (size_t c = 2; c < many; c++) {
                m &= m - 1;
                j = i + (size_t)__builtin_ctzll(m);
                index[count + c] = first + (uint32_t)j;
                value[count + c] = cg_load_(v, j);
            }
        }
        count += many;
    }
    return count + cg_filter_scalar_(cg_at_(v, i), n - i, bound, first + (uint32_t)i, index + count, value + count);
}
#endif
#if CG_NEON_
CG_INLINE_ uint8x16_t cg_filter_mask_neon_(const float *v, size_t i, uint32x4_t bound) { /* 16 values */
    return cg_narrow_neon_(vcgeq_u32(cg_abs_neon_(cg_load4_neon_(v, i)), bound),
        vcgeq_u32(cg_abs_neon_(cg_load4_neon_(v, i + 4)), bound),
        vcgeq_u32(cg_abs_neon_(cg_load4_neon_(v, i + 8)), bound),
        vcgeq_u32(cg_abs_neon_(cg_load4_neon_(v, i + 12)), bound));
}
static size_t cg_filter_neon_(const float *v, size_t n, uint32_t bound, uint32_t first, uint32_t *index, float *value) {
    const uint32x4_t least = vdupq_n_u32(bound);
    const uint64_t last = (uint64_t)1 << 63;
    size_t count = 0, i = 0;
    for (; i + 64 <= n; i += 64) {
        uint64_t m = cg_movemask_neon_(cg_filter_mask_neon_(v, i, least), cg_filter_mask_neon_(v, i + 16, least),
            cg_filter_mask_neon_(v, i + 32, least), cg_filter_mask_neon_(v, i + 48, least));
        size_t many = cg_popcount_(m), j;
        /* two without asking: which of 0, 1, 2 it is cannot be predicted */
        j = i + cg_ctz_(m | last);
        index[count] = first + (uint32_t)j;
        value[count] = cg_load_(v, j);
        m &= m - 1;
        j = i + cg_ctz_(m | last);
        index[count + 1] = first + (uint32_t)j;
        value[count + 1] = cg_load_(v, j);
        for (size_t c = 2; c < many; c++) {
            m &= m - 1;
            j = i + cg_ctz_(m);
            index[count + c] = first + (uint32_t)j;
            value[count + c] = cg_load_(v, j);
        }
        count += many;
    }
    return count + cg_filter_scalar_(cg_at_(v, i), n - i, bound, first + (uint32_t)i, index + count, value + count);
}
#endif

/* coins: what is taken with a chance by its magnitude, a random number for each position modulo 2^16: as it is
   from `unit` on, below as +-unit. Room as for filter. */
CG_INLINE_ size_t cg_bernoulli_one_(
    const cg_bernoulli_ *c, const float *v, size_t i, uint32_t first, uint32_t *index, float *value, size_t count) {
    const float f = cg_load_(v, i), m = cg_as_float_(cg_as_bits_(f) & CG_ABS_MASK_);
    /* 24 bits, below 1 */
    const float coin = (float)(cg_hash32_(c->key, (first + (uint32_t)i) & 0xffffu) >> 8) * 5.9604644775390625e-8f;
    index[count] = first + (uint32_t)i;
    value[count] = m >= c->threshold ? f : cg_as_float_(cg_as_bits_(c->threshold) | (cg_as_bits_(f) & 0x80000000u));
    return count + (coin < cg_times_(cg_times_(m, c->prescale), c->inv_threshold));
}
static size_t cg_bernoulli_scalar_(
    const cg_bernoulli_ *c, const float *v, size_t n, uint32_t first, uint32_t *index, float *value) {
    size_t count = 0;
    for (size_t i = 0; i < n; i++) count = cg_bernoulli_one_(c, v, i, first, index, value, count);
    return count;
}
#if CG_AVX2_
CG_AVX2_INLINE_ uint32_t cg_bernoulli8_avx2_(const cg_bernoulli_ *c, const float *v, size_t i, uint32_t first) {
    const __m256i h = cg_hash8_avx2_(c->key, (first + (uint32_t)i) & 0xffffu);
    const __m256 coin = cg_mul8_avx2_(
        _mm256_cvtepi32_ps(_mm256_srli_epi32(h, 8)), _mm256_set1_ps(5.9604644775390625e-8f));
    const __m256 m = _mm256_castsi256_ps(cg_abs_avx2_(cg_load8_avx2_(v, i)));
    return (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(coin,
        cg_mul8_avx2_(cg_mul8_avx2_(m, _mm256_set1_ps(c->prescale)), _mm256_set1_ps(c->inv_threshold)), _CMP_LT_OQ));
}
CG_TARGET_AVX2_ static size_t cg_bernoulli_avx2_(
    const cg_bernoulli_ *c, const float *v, size_t n, uint32_t first, uint32_t *index, float *value) {
    size_t count = 0, i = 0;
    for (; i + 32 <= n && first % 8 == 0; i += 32) { /* so that eight positions lie in one block */
        uint32_t m = cg_bernoulli8_avx2_(c, v, i, first) | cg_bernoulli8_avx2_(c, v, i + 8, first) << 8 |
            cg_bernoulli8_avx2_(c, v, i + 16, first) << 16 | cg_bernoulli8_avx2_(c, v, i + 24, first) << 24;
        for (; m; m &= m - 1) {
            const size_t j = i + (size_t)__builtin_ctz(m);
            const float f = cg_load_(v, j), size = cg_as_float_(cg_as_bits_(f) & CG_ABS_MASK_);
            index[count] = first + (uint32_t)j;
            value[count++] =
                size >= c->threshold ? f : cg_as_float_(cg_as_bits_(c->threshold) | (cg_as_bits_(f) & 0x80000000u));
        }
    }
    for (; i < n; i++) count = cg_bernoulli_one_(c, v, i, first, index, value, count);
    return count;
}
#endif
#if CG_NEON_
CG_INLINE_ uint32x4_t cg_bernoulli4_neon_(const cg_bernoulli_ *c, const float *v, size_t i, uint32_t first) {
    const uint32x4_t h = cg_hash4_neon_(c->key, (first + (uint32_t)i) & 0xffffu);
    const float32x4_t coin = cg_times_neon_(vcvtq_f32_u32(vshrq_n_u32(h, 8)), vdupq_n_f32(5.9604644775390625e-8f));
    const float32x4_t m = cg_as_float_neon_(cg_abs_neon_(cg_load4_neon_(v, i)));
    return vcltq_f32(coin, cg_times_neon_(cg_times_neon_(m, vdupq_n_f32(c->prescale)), vdupq_n_f32(c->inv_threshold)));
}
static size_t cg_bernoulli_neon_(
    const cg_bernoulli_ *c, const float *v, size_t n, uint32_t first, uint32_t *index, float *value) {
    size_t count = 0, i = 0;
    for (; i + 4 <= n && first % 4 == 0; i += 4) {
        uint32_t take[4];
        if (!vmaxvq_u32(cg_bernoulli4_neon_(c, v, i, first))) continue;
        vst1q_u32(take, cg_bernoulli4_neon_(c, v, i, first));
        for (size_t j = i; j < i + 4; j++)
            if (take[j - i]) count = cg_bernoulli_one_(c, v, j, first, index, value, count);
    }
    for (; i < n; i++) count = cg_bernoulli_one_(c, v, i, first, index, value, count);
    return count;
}
#endif

/* tally: how many magnitudes are above the pivot */
static uint32_t cg_count_above_scalar_(const float *v, size_t n, uint32_t pivot, size_t *above) {
    uint32_t top = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t m = cg_load_bits_(v, i) & CG_ABS_MASK_;
        top = cg_max32_(top, m);
        *above += m > pivot;
    }
    return top;
}
#if CG_AVX2_
CG_TARGET_AVX2_ static uint32_t cg_count_above_avx2_(const float *v, size_t n, uint32_t pivot, size_t *above) {
    const __m256i p = _mm256_set1_epi32((int)pivot);
    __m256i top = _mm256_setzero_si256(), gt = top;
    uint32_t g[8];
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256i m = cg_abs_avx2_(cg_load8_avx2_(v, i));
        top = _mm256_max_epu32(top, m);
        gt = _mm256_sub_epi32(gt, _mm256_cmpgt_epi32(m, p));
    }
    cg_store_avx2_(g, gt);
    for (int j = 0; j < 8; j++) *above += g[j];
    return cg_max32_(cg_hmax_u32_avx2_(top), cg_count_above_scalar_(cg_at_(v, i), n - i, pivot, above));
}
#endif
#if CG_NEON_
static uint32_t cg_count_above_neon_(const float *v, size_t n, uint32_t pivot, size_t *above) {
    const uint32x4_t p = vdupq_n_u32(pivot);
    uint32x4_t top = vdupq_n_u32(0), gt = top;
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        uint32x4_t m = cg_abs_neon_(cg_load4_neon_(v, i));
        top = vmaxq_u32(top, m);
        gt = vsubq_u32(gt, vcgtq_u32(m, p));
    }
    *above += (size_t)vaddlvq_u32(gt);
    return cg_max32_(vmaxvq_u32(top), cg_count_above_scalar_(cg_at_(v, i), n - i, pivot, above));
}
#endif
