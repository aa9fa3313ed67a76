/* filter: kernels that select values by magnitude or by chance, and that count them

   Offers   filter, bernoulli, count_above; CG_SLACK_
   Needs    base, random, table, levels
   Touches  nothing but its arguments */

#define CG_SLACK_ 16u /* values beyond those selected that filter and bernoulli may write */

/* filter: in order, index first_index + i (modulo 2^32) and value of every v[i] whose magnitude bits reach
   threshold_bits, which is at most 2^31 (nothing reaches that); a NaN reaches every finite threshold. Returns how many.
   index and value have room for n + CG_SLACK_, and what follows the result is undefined. n <= CG_CHUNK_. */
static size_t cg_filter_scalar_(
    const float *v, size_t n, uint32_t threshold_bits, uint32_t first_index, uint32_t *index, float *value) {
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t u = cg_load_bits_(v, i);
        index[count] = first_index + (uint32_t)i;
        value[count] = cg_as_float_(u);
        count += (u & CG_ABS_MASK_) >= threshold_bits;
    }
    return count;
}
#if CG_AVX2_
/* Which of eight values, or of 32 (a bit each), have magnitude bits above threshold_minus_1, compared as signed. */
CG_AVX2_INLINE_ __m256i cg_filter_mask_avx2_(const float *v, size_t i, __m256i threshold_minus_1) {
    return _mm256_cmpgt_epi32(cg_abs_avx2_(cg_load8_avx2_(v, i)), threshold_minus_1);
}
CG_AVX2_INLINE_ uint64_t cg_filter_mask32_avx2_(const float *v, size_t i, __m256i threshold_minus_1) {
    __m256i a = _mm256_packs_epi32(
        cg_filter_mask_avx2_(v, i, threshold_minus_1), cg_filter_mask_avx2_(v, i + 8, threshold_minus_1));
    __m256i b = _mm256_packs_epi32(
        cg_filter_mask_avx2_(v, i + 16, threshold_minus_1), cg_filter_mask_avx2_(v, i + 24, threshold_minus_1));
    a = cg_pack_order_avx2_(_mm256_packs_epi16(a, b));
    return (uint32_t)_mm256_movemask_epi8(a);
}
CG_TARGET_AVX2_ static size_t cg_filter_avx2_(
    const float *v, size_t n, uint32_t threshold_bits, uint32_t first_index, uint32_t *index, float *value) {
    const __m256i threshold_minus_1 = _mm256_set1_epi32((int)(threshold_bits - 1u));
    const uint64_t guard_bit = (uint64_t)1 << 63; /* keeps ctz defined for an empty mask */
    size_t count = 0, i = 0;
    for (; i + 64 <= n; i += 64) {
        const uintptr_t ahead = (uintptr_t)v + 4 * i + 8192; /* hardware prefetching stops at every page */
        uint64_t m;
        size_t many, j;
        for (unsigned line = 0; line < 256; line += 64) __builtin_prefetch((const void *)(ahead + line), 0, 2);
        m = cg_filter_mask32_avx2_(v, i, threshold_minus_1) |
            cg_filter_mask32_avx2_(v, i + 32, threshold_minus_1) << 32;
        many = (size_t)__builtin_popcountll(m);
        /* two are written without a branch: whether there are 0, 1 or 2 cannot be predicted */
        j = i + (size_t)__builtin_ctzll(m | guard_bit);
        index[count] = first_index + (uint32_t)j;
        value[count] = cg_load_(v, j);
        m &= m - 1;
        j = i + (size_t)__builtin_ctzll(m | guard_bit);
        index[count + 1] = first_index + (uint32_t)j;
        value[count + 1] = cg_load_(v, j);
        if (many > 2) {
            for (size_t c = 2; c < many; c++) {
                m &= m - 1;
                j = i + (size_t)__builtin_ctzll(m);
                index[count + c] = first_index + (uint32_t)j;
                value[count + c] = cg_load_(v, j);
            }
        }
        count += many;
    }
    return count +
        cg_filter_scalar_(cg_at_(v, i), n - i, threshold_bits, first_index + (uint32_t)i, index + count, value + count);
}
#endif
#if CG_NEON_
CG_INLINE_ uint8x16_t cg_filter_mask_neon_(
    const float *v, size_t i, uint32x4_t threshold) { /* byte masks of 16 values */
    return cg_narrow_neon_(vcgeq_u32(cg_abs_neon_(cg_load4_neon_(v, i)), threshold),
        vcgeq_u32(cg_abs_neon_(cg_load4_neon_(v, i + 4)), threshold),
        vcgeq_u32(cg_abs_neon_(cg_load4_neon_(v, i + 8)), threshold),
        vcgeq_u32(cg_abs_neon_(cg_load4_neon_(v, i + 12)), threshold));
}
static size_t cg_filter_neon_(
    const float *v, size_t n, uint32_t threshold_bits, uint32_t first_index, uint32_t *index, float *value) {
    const uint32x4_t threshold = vdupq_n_u32(threshold_bits);
    const uint64_t guard_bit = (uint64_t)1 << 63; /* keeps ctz defined for an empty mask */
    size_t count = 0, i = 0;
    for (; i + 64 <= n; i += 64) {
        uint64_t m = cg_movemask_neon_(cg_filter_mask_neon_(v, i, threshold),
            cg_filter_mask_neon_(v, i + 16, threshold), cg_filter_mask_neon_(v, i + 32, threshold),
            cg_filter_mask_neon_(v, i + 48, threshold));
        size_t many = cg_popcount_(m), j;
        /* two are written without a branch: whether there are 0, 1 or 2 cannot be predicted */
        j = i + cg_ctz_(m | guard_bit);
        index[count] = first_index + (uint32_t)j;
        value[count] = cg_load_(v, j);
        m &= m - 1;
        j = i + cg_ctz_(m | guard_bit);
        index[count + 1] = first_index + (uint32_t)j;
        value[count + 1] = cg_load_(v, j);
        for (size_t c = 2; c < many; c++) {
            m &= m - 1;
            j = i + cg_ctz_(m);
            index[count + c] = first_index + (uint32_t)j;
            value[count + c] = cg_load_(v, j);
        }
        count += many;
    }
    return count +
        cg_filter_scalar_(cg_at_(v, i), n - i, threshold_bits, first_index + (uint32_t)i, index + count, value + count);
}
#endif

/* One value of bernoulli: writes at `count`, and returns count + 1 if v[i] is selected, else count. */
CG_INLINE_ size_t cg_bernoulli_one_(const cg_bernoulli_ *c, const float *v, size_t i, uint32_t first_index,
    uint32_t *index, float *value, size_t count) {
    const float f = cg_load_(v, i), magnitude = cg_as_float_(cg_as_bits_(f) & CG_ABS_MASK_);
    const float u = (float)(cg_hash32_(c->key, (first_index + (uint32_t)i) & 0xffffu) >> 8) * 5.9604644775390625e-8f;
    index[count] = first_index + (uint32_t)i;
    value[count] =
        magnitude >= c->threshold ? f : cg_as_float_(cg_as_bits_(c->threshold) | (cg_as_bits_(f) & CG_SIGN_BIT_));
    return count + (u < cg_times_(cg_times_(magnitude, c->prescale), c->inv_threshold));
}
/* bernoulli: selects v[i] where u < (|v[i]|*prescale)*inv_threshold, each product rounded, with u = the 24 high bits of
   cg_hash32_(key, (first_index + i) % 2^16) over 2^24. The value is v[i] if its magnitude is at least threshold, else
   +-threshold with the sign of v[i]. A NaN is never selected. All n indices belong to the block of the key. Order,
   result and room as for filter. */
static size_t cg_bernoulli_scalar_(
    const cg_bernoulli_ *c, const float *v, size_t n, uint32_t first_index, uint32_t *index, float *value) {
    size_t count = 0;
    for (size_t i = 0; i < n; i++) count = cg_bernoulli_one_(c, v, i, first_index, index, value, count);
    return count;
}
#if CG_AVX2_
/* which of eight are selected, a bit each */
CG_AVX2_INLINE_ uint32_t cg_bernoulli8_avx2_(const cg_bernoulli_ *c, const float *v, size_t i, uint32_t first_index) {
    const __m256i h = cg_hash8_avx2_(c->key, (first_index + (uint32_t)i) & 0xffffu);
    const __m256 u = cg_mul8_avx2_(_mm256_cvtepi32_ps(_mm256_srli_epi32(h, 8)), _mm256_set1_ps(5.9604644775390625e-8f));
    const __m256 magnitude = _mm256_castsi256_ps(cg_abs_avx2_(cg_load8_avx2_(v, i)));
    return (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(u,
        cg_mul8_avx2_(cg_mul8_avx2_(magnitude, _mm256_set1_ps(c->prescale)), _mm256_set1_ps(c->inv_threshold)),
        _CMP_LT_OQ));
}
CG_TARGET_AVX2_ static size_t cg_bernoulli_avx2_(
    const cg_bernoulli_ *c, const float *v, size_t n, uint32_t first_index, uint32_t *index, float *value) {
    size_t count = 0, i = 0;
    for (; i + 32 <= n && first_index % 8 == 0; i += 32) { /* eight positions do not cross the end of a block */
        uint32_t m = cg_bernoulli8_avx2_(c, v, i, first_index) | cg_bernoulli8_avx2_(c, v, i + 8, first_index) << 8 |
            cg_bernoulli8_avx2_(c, v, i + 16, first_index) << 16 | cg_bernoulli8_avx2_(c, v, i + 24, first_index) << 24;
        for (; m; m &= m - 1) {
            const size_t j = i + (size_t)__builtin_ctz(m);
            const float f = cg_load_(v, j), magnitude = cg_as_float_(cg_as_bits_(f) & CG_ABS_MASK_);
            index[count] = first_index + (uint32_t)j;
            value[count++] = magnitude >= c->threshold
                ? f
                : cg_as_float_(cg_as_bits_(c->threshold) | (cg_as_bits_(f) & CG_SIGN_BIT_));
        }
    }
    for (; i < n; i++) count = cg_bernoulli_one_(c, v, i, first_index, index, value, count);
    return count;
}
#endif
#if CG_NEON_
CG_INLINE_ uint32x4_t cg_bernoulli4_neon_(const cg_bernoulli_ *c, const float *v, size_t i, uint32_t first_index) {
    const uint32x4_t h = cg_hash4_neon_(c->key, (first_index + (uint32_t)i) & 0xffffu);
    const float32x4_t u = cg_times_neon_(vcvtq_f32_u32(vshrq_n_u32(h, 8)), vdupq_n_f32(5.9604644775390625e-8f));
    const float32x4_t magnitude = cg_as_float_neon_(cg_abs_neon_(cg_load4_neon_(v, i)));
    return vcltq_f32(
        u, cg_times_neon_(cg_times_neon_(magnitude, vdupq_n_f32(c->prescale)), vdupq_n_f32(c->inv_threshold)));
}
static size_t cg_bernoulli_neon_(
    const cg_bernoulli_ *c, const float *v, size_t n, uint32_t first_index, uint32_t *index, float *value) {
    size_t count = 0, i = 0;
    for (; i + 4 <= n && first_index % 4 == 0; i += 4) {
        uint32_t selected[4];
        if (!vmaxvq_u32(cg_bernoulli4_neon_(c, v, i, first_index))) continue;
        vst1q_u32(selected, cg_bernoulli4_neon_(c, v, i, first_index));
        for (size_t j = i; j < i + 4; j++)
            if (selected[j - i]) count = cg_bernoulli_one_(c, v, j, first_index, index, value, count);
    }
    for (; i < n; i++) count = cg_bernoulli_one_(c, v, i, first_index, index, value, count);
    return count;
}
#endif

/* count_above: adds to *above how many magnitude bits are larger than pivot, pivot < 2^31. Returns absmax bits. */
static uint32_t cg_count_above_scalar_(const float *v, size_t n, uint32_t pivot, size_t *above) {
    uint32_t absmax_bits = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t m = cg_load_bits_(v, i) & CG_ABS_MASK_;
        absmax_bits = cg_max32_(absmax_bits, m);
        *above += m > pivot;
    }
    return absmax_bits;
}
#if CG_AVX2_
CG_TARGET_AVX2_ static uint32_t cg_count_above_avx2_(const float *v, size_t n, uint32_t pivot, size_t *above) {
    const __m256i p = _mm256_set1_epi32((int)pivot);
    __m256i absmax = _mm256_setzero_si256(), gt = absmax;
    uint32_t g[8];
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256i m = cg_abs_avx2_(cg_load8_avx2_(v, i));
        absmax = _mm256_max_epu32(absmax, m);
        gt = _mm256_sub_epi32(gt, _mm256_cmpgt_epi32(m, p));
    }
    cg_store_avx2_(g, gt);
    for (int j = 0; j < 8; j++) *above += g[j];
    return cg_max32_(cg_hmax_u32_avx2_(absmax), cg_count_above_scalar_(cg_at_(v, i), n - i, pivot, above));
}
#endif
#if CG_NEON_
static uint32_t cg_count_above_neon_(const float *v, size_t n, uint32_t pivot, size_t *above) {
    const uint32x4_t p = vdupq_n_u32(pivot);
    uint32x4_t absmax = vdupq_n_u32(0), gt = absmax;
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        uint32x4_t m = cg_abs_neon_(cg_load4_neon_(v, i));
        absmax = vmaxq_u32(absmax, m);
        gt = vsubq_u32(gt, vcgtq_u32(m, p));
    }
    *above += (size_t)vaddlvq_u32(gt);
    return cg_max32_(vmaxvq_u32(absmax), cg_count_above_scalar_(cg_at_(v, i), n - i, pivot, above));
}
#endif
