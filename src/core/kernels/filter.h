/* filter: kernels that select values by magnitude or by chance, and that count them

   Offers   filter, bernoulli, count_above; CG_SLACK_
   Needs    base, random, table, the vector layer, levels
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
#if CG_VECTOR_
/* Which of 32 values (a bit each) have magnitude bits above threshold_minus_1, compared as signed. */
CG_VECTOR_FN_ uint64_t cg_filter_mask32_(const float *v, size_t i, cg_vu_ threshold_minus_1) {
    return cg_vb_mask_(cg_vb_narrow_signed_(cg_vu_gt_(cg_vu_abs_(cg_vu_floats_(v, i)), threshold_minus_1),
        cg_vu_gt_(cg_vu_abs_(cg_vu_floats_(v, i + 8)), threshold_minus_1),
        cg_vu_gt_(cg_vu_abs_(cg_vu_floats_(v, i + 16)), threshold_minus_1),
        cg_vu_gt_(cg_vu_abs_(cg_vu_floats_(v, i + 24)), threshold_minus_1)));
}
CG_VECTOR_FN_ size_t cg_filter_simd_(
    const float *v, size_t n, uint32_t threshold_bits, uint32_t first_index, uint32_t *index, float *value) {
    const cg_vu_ threshold_minus_1 = cg_vu_set_(threshold_bits - 1u);
    const uint64_t guard_bit = (uint64_t)1 << 63; /* keeps ctz defined for an empty mask */
    size_t count = 0, i = 0;
    for (; i + 64 <= n; i += 64) {
        const uintptr_t ahead = (uintptr_t)v + 4 * i + 8192; /* hardware prefetching stops at every page */
        uint64_t m;
        size_t many, j;
        for (unsigned line = 0; line < 256; line += 64) CG_PREFETCH_L2_((const void *)(ahead + line));
        m = cg_filter_mask32_(v, i, threshold_minus_1) | cg_filter_mask32_(v, i + 32, threshold_minus_1) << 32;
        many = (size_t)__builtin_popcountll(m);
        /* two are written without a branch: whether there are 0, 1 or 2 cannot be predicted */
        j = i + cg_ctz_(m | guard_bit);
        index[count] = first_index + (uint32_t)j;
        value[count] = cg_load_(v, j);
        m &= m - 1;
        j = i + cg_ctz_(m | guard_bit);
        index[count + 1] = first_index + (uint32_t)j;
        value[count + 1] = cg_load_(v, j);
        if (many > 2) {
            for (size_t c = 2; c < many; c++) {
                m &= m - 1;
                j = i + cg_ctz_(m);
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

/* The value that is sent for f, if it is selected. */
CG_INLINE_ float cg_bernoulli_value_(const cg_bernoulli_ *c, float f) {
    const uint32_t u = cg_as_bits_(f);
    return cg_as_float_(u & CG_ABS_MASK_) >= c->threshold
        ? f
        : cg_as_float_(cg_as_bits_(c->threshold) | (u & CG_SIGN_BIT_));
}
/* One value of bernoulli: writes at `count`, and returns count + 1 if v[i] is selected, else count. */
CG_INLINE_ size_t cg_bernoulli_one_(const cg_bernoulli_ *c, const float *v, size_t i, uint32_t first_index,
    uint32_t *index, float *value, size_t count) {
    const float f = cg_load_(v, i), magnitude = cg_as_float_(cg_as_bits_(f) & CG_ABS_MASK_);
    const float u = (float)(cg_hash32_(c->key, (first_index + (uint32_t)i) & 0xffffu) >> 8) * 5.9604644775390625e-8f;
    index[count] = first_index + (uint32_t)i;
    value[count] = cg_bernoulli_value_(c, f);
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
#if CG_VECTOR_
CG_VECTOR_FN_ cg_vu_ cg_bernoulli8_(const cg_bernoulli_ *c, const float *v, size_t i, uint32_t first_index) {
    const cg_vf_ u = cg_vf_uniform_(cg_vu_hash_(c->key, (first_index + (uint32_t)i) & 0xffffu)),
                 probability = cg_vf_mul_(
                     cg_vf_mul_(cg_vf_abs_(cg_vf_load_(v, i)), cg_vf_set_(c->prescale)), cg_vf_set_(c->inv_threshold));
    return cg_vf_gt_(probability, u);
}
CG_VECTOR_FN_ size_t cg_bernoulli_simd_(
    const cg_bernoulli_ *c, const float *v, size_t n, uint32_t first_index, uint32_t *index, float *value) {
    size_t count = 0, i = 0;
    for (; i + 32 <= n && first_index % 8 == 0; i += 32) { /* eight positions do not cross the end of a block */
        uint32_t m = cg_vu_mask_(cg_bernoulli8_(c, v, i, first_index), cg_bernoulli8_(c, v, i + 8, first_index),
            cg_bernoulli8_(c, v, i + 16, first_index), cg_bernoulli8_(c, v, i + 24, first_index));
        for (; m; m &= m - 1) {
            const size_t j = i + cg_ctz_(m);
            index[count] = first_index + (uint32_t)j;
            value[count++] = cg_bernoulli_value_(c, cg_load_(v, j));
        }
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
#if CG_VECTOR_
CG_VECTOR_FN_ uint32_t cg_count_above_simd_(const float *v, size_t n, uint32_t pivot, size_t *above) {
    const cg_vu_ p = cg_vu_set_(pivot);
    cg_vu_ absmax = cg_vu_set_(0), gt = absmax;
    uint32_t g[8];
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const cg_vu_ a = cg_vu_abs_(cg_vu_floats_(v, i)), b = cg_vu_abs_(cg_vu_floats_(v, i + 8));
        absmax = cg_vu_max_(absmax, cg_vu_max_(a, b));
        gt = cg_vu_sub_(cg_vu_sub_(gt, cg_vu_gt_(a, p)), cg_vu_gt_(b, p));
    }
    cg_vu_store_(g, gt);
    for (int j = 0; j < 8; j++) *above += g[j];
    return cg_max32_(cg_vu_hmax_(absmax), cg_count_above_scalar_(cg_at_(v, i), n - i, pivot, above));
}
#endif
