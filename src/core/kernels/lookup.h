/* lookup: kernels that find the symbol of a value by thresholds, and the value of a symbol in a table

   Offers   bucketize, nf4_search, table_decode
   Needs    base, table, levels, sums
   Touches  nothing but its arguments */

/* bucketize: the symbol is how many of the limit_count ascending limits t = |v|*inv_scale is above (so a tie goes to
   the lower symbol, and a NaN to 0), with sign_bit set where v < 0. With lanes, centroid[symbol without sign]*|v| is
   added to lanes[i % 16]; the product of two f32 is exact in f64. */
static void cg_bucketize_scalar_(
    const cg_bucketizer_ *g, const float *v, size_t n, uint8_t *symbols, const float *centroid, double *lanes) {
    const cg_bucketizer_ q = *g; /* a copy: symbols cannot alias it */
    for (size_t i = 0; i < n; i++) {
        const float f = cg_load_(v, i), magnitude = cg_as_float_(cg_as_bits_(f) & CG_ABS_MASK_),
                    t = cg_times_(magnitude, q.inv_scale);
        unsigned symbol = 0;
        for (int32_t j = 0; j < q.limit_count; j++) symbol += t > q.limit[j];
        symbols[i] = (uint8_t)(symbol | (f < 0.0f ? q.sign_bit : 0u));
        if (lanes) lanes[i % 16] += (double)centroid[symbol] * (double)magnitude;
    }
}
/* Depth of a search tree for so many limits, 0..7. */
CG_INLINE_ int cg_search_tree_depth_(int32_t count) { return count < 1 ? 0 : count < 2 ? 1 : count < 4 ? 2 : 3; }
/* limit[7]: those of g, then Inf, above which nothing is. */
CG_INLINE_ void cg_limits_pad_(const cg_bucketizer_ *g, float *limit) {
    const int32_t all = (1 << cg_search_tree_depth_(g->limit_count)) - 1;
    for (int32_t j = 0; j < 7; j++) limit[j] = j < g->limit_count && j < all ? g->limit[j] : cg_as_float_(CG_INF_BITS_);
}
#if CG_AVX2_
/* A tree search: comparisons give 0 or -1, so that what is accumulated is minus the index of the node; it chooses the
   next limit from a vector by a shuffle. A shuffle looks only at the low 2 bits of a number, or 3: the limit of node
   `index` stands at (4 - index) % 4, or (8 - index) % 8. */

/* value[first + index*stride], index < many, in that order, for a shuffle over `size` (4 or 8) values. */
CG_AVX2_INLINE_ __m256 cg_permute_table_avx2_(
    const float *value, size_t first, size_t stride, size_t many, size_t size) {
    float table[8] = { 0 };
    for (size_t index = 0; index < many; index++) table[(size - index) % size] = value[first + index * stride];
    if (size == 4) memcpy(table + 4, table, 16);
    return _mm256_loadu_ps(table);
}
typedef struct cg_search_tree_avx2_ {
    __m256 limits[4]; /* to choose from at each depth */
} cg_search_tree_avx2_;
/* A tree of 2^depth - 1 ascending limits, depth 0..4. */
CG_AVX2_INLINE_ cg_search_tree_avx2_ cg_search_tree_make_avx2_(const float *limit, int depth) {
    cg_search_tree_avx2_ t;
    t.limits[0] = t.limits[1] = t.limits[2] = t.limits[3] = _mm256_setzero_ps();
    if (depth > 0) t.limits[0] = _mm256_set1_ps(limit[((size_t)1 << (depth - 1)) - 1]);
    if (depth > 1)
        t.limits[1] = cg_permute_table_avx2_(limit, ((size_t)1 << (depth - 2)) - 1, (size_t)1 << (depth - 1), 2, 4);
    if (depth > 2)
        t.limits[2] = cg_permute_table_avx2_(limit, ((size_t)1 << (depth - 3)) - 1, (size_t)1 << (depth - 2), 4, 4);
    if (depth > 3) t.limits[3] = cg_permute_table_avx2_(limit, 0, 2, 8, 8);
    return t;
}
/* -1 where t > limit, else 0 */
CG_AVX2_INLINE_ __m256i cg_exceeds_avx2_(__m256 t, __m256 limit) {
    return _mm256_castps_si256(_mm256_cmp_ps(t, limit, _CMP_GT_OQ));
}
/* minus how many limits t is above */
CG_AVX2_INLINE_ __m256i cg_search_avx2_(__m256 t, const cg_search_tree_avx2_ *tree, int depth) {
    __m256i index = _mm256_setzero_si256();
    if (depth > 0) index = cg_exceeds_avx2_(t, tree->limits[0]);
    if (depth > 1)
        index = _mm256_add_epi32(
            _mm256_add_epi32(index, index), cg_exceeds_avx2_(t, _mm256_permutevar_ps(tree->limits[1], index)));
    if (depth > 2)
        index = _mm256_add_epi32(
            _mm256_add_epi32(index, index), cg_exceeds_avx2_(t, _mm256_permutevar_ps(tree->limits[2], index)));
    if (depth > 3)
        index = _mm256_add_epi32(
            _mm256_add_epi32(index, index), cg_exceeds_avx2_(t, _mm256_permutevar8x32_ps(tree->limits[3], index)));
    return index;
}
CG_AVX2_INLINE_ __m256d cg_centroid_term_avx2_(__m128 centroid, const float *v, size_t i) {
    return _mm256_mul_pd(_mm256_cvtps_pd(centroid), cg_lane_sum_term_avx2_(v, i, CG_SUM_ABS_));
}
/* Minus the symbols of eight values, without signs; sums: adds to the lanes s[0], s[1]. */
CG_AVX2_INLINE_ __m256i cg_bucketize8_avx2_(const float *v, size_t i, __m256 inv, const cg_search_tree_avx2_ *tree,
    __m256 centroid, __m256d *s, int depth, int sums) {
    const __m256 t = cg_mul8_avx2_(_mm256_castsi256_ps(cg_abs_avx2_(cg_load8_avx2_(v, i))), inv);
    const __m256i index = cg_search_avx2_(t, tree, depth);
    if (sums) {
        const __m256 c = depth == 0 ? centroid
            : depth < 3             ? _mm256_permutevar_ps(centroid, index)
                                    : _mm256_permutevar8x32_ps(centroid, index);
        s[0] = _mm256_add_pd(s[0], cg_centroid_term_avx2_(_mm256_castps256_ps128(c), v, i));
        s[1] = _mm256_add_pd(s[1], cg_centroid_term_avx2_(_mm256_extractf128_ps(c, 1), v, i + 4));
    }
    return index;
}
/* The first n / 32 * 32 values; returns how many. depth and sums are constants, so that each case is compiled alone. */
CG_AVX2_INLINE_ size_t cg_bucketize32_avx2_(const cg_bucketizer_ *g, const float *v, size_t n, uint8_t *symbols,
    const float *centroid, double *lanes, int depth, int sums) {
    const __m256 inv = _mm256_set1_ps(g->inv_scale);
    const __m256i sign = _mm256_set1_epi8((char)g->sign_bit);
    __m256 centroids = _mm256_setzero_ps();
    __m256d s[4];
    cg_search_tree_avx2_ tree;
    float limit[7];
    size_t i = 0;
    cg_limits_pad_(g, limit);
    tree = cg_search_tree_make_avx2_(limit, depth);
    if (sums) {
        centroids = depth == 0 ? _mm256_set1_ps(centroid[0])
                               : cg_permute_table_avx2_(centroid, 0, 1, (size_t)g->limit_count + 1, depth < 3 ? 4 : 8);
        s[0] = _mm256_loadu_pd(lanes);
        s[1] = _mm256_loadu_pd(lanes + 4);
        s[2] = _mm256_loadu_pd(lanes + 8);
        s[3] = _mm256_loadu_pd(lanes + 12);
    }
    for (; i + 32 <= n; i += 32) {
        __m256i a = cg_bucketize8_avx2_(v, i, inv, &tree, centroids, s, depth, sums),
                b = cg_bucketize8_avx2_(v, i + 8, inv, &tree, centroids, s + 2, depth, sums);
        __m256i c = cg_bucketize8_avx2_(v, i + 16, inv, &tree, centroids, s, depth, sums),
                d = cg_bucketize8_avx2_(v, i + 24, inv, &tree, centroids, s + 2, depth, sums);
        const __m256i negative = cg_narrow_signed_avx2_(cg_negative_avx2_(cg_load8_avx2_(v, i)),
            cg_negative_avx2_(cg_load8_avx2_(v, i + 8)), cg_negative_avx2_(cg_load8_avx2_(v, i + 16)),
            cg_negative_avx2_(cg_load8_avx2_(v, i + 24)));
        a = _mm256_sub_epi8(_mm256_setzero_si256(), cg_narrow_signed_avx2_(a, b, c, d));
        cg_store_avx2_(symbols + i, cg_pack_order_avx2_(_mm256_or_si256(a, _mm256_and_si256(negative, sign))));
    }
    if (sums) {
        _mm256_storeu_pd(lanes, s[0]);
        _mm256_storeu_pd(lanes + 4, s[1]);
        _mm256_storeu_pd(lanes + 8, s[2]);
        _mm256_storeu_pd(lanes + 12, s[3]);
    }
    return i;
}
CG_TARGET_AVX2_ static void cg_bucketize_avx2_(
    const cg_bucketizer_ *g, const float *v, size_t n, uint8_t *symbols, const float *centroid, double *lanes) {
    size_t i;
    switch (cg_search_tree_depth_(g->limit_count) + (lanes ? 4 : 0)) {
    case 0: i = cg_bucketize32_avx2_(g, v, n, symbols, centroid, lanes, 0, 0); break;
    case 1: i = cg_bucketize32_avx2_(g, v, n, symbols, centroid, lanes, 1, 0); break;
    case 2: i = cg_bucketize32_avx2_(g, v, n, symbols, centroid, lanes, 2, 0); break;
    case 3: i = cg_bucketize32_avx2_(g, v, n, symbols, centroid, lanes, 3, 0); break;
    case 4: i = cg_bucketize32_avx2_(g, v, n, symbols, centroid, lanes, 0, 1); break;
    case 5: i = cg_bucketize32_avx2_(g, v, n, symbols, centroid, lanes, 1, 1); break;
    case 6: i = cg_bucketize32_avx2_(g, v, n, symbols, centroid, lanes, 2, 1); break;
    default: i = cg_bucketize32_avx2_(g, v, n, symbols, centroid, lanes, 3, 1);
    }
    _mm256_zeroupper();
    if (i < n) cg_bucketize_scalar_(g, cg_at_(v, i), n - i, symbols + i, centroid, lanes);
}
#endif
#if CG_NEON_
/* A tree search: the index of the node so far chooses the next limit from a table of eight floats. */

/* table[index] for four indices 0..7: four byte numbers each */
CG_INLINE_ float32x4_t cg_permute_lookup_neon_(uint8x16x2_t table, uint32x4_t index) {
    const uint32x4_t bytes = index * vdupq_n_u32(0x04040404u) + vdupq_n_u32(0x03020100u);
    return vreinterpretq_f32_u8(vqtbl2q_u8(table, vreinterpretq_u8_u32(bytes)));
}
/* value[first + index*stride], index < many, then zeros */
CG_INLINE_ uint8x16x2_t cg_permute_table_neon_(const float *value, size_t first, size_t stride, size_t many) {
    float table[8] = { 0 };
    uint8x16x2_t t;
    for (size_t index = 0; index < many; index++) table[index] = value[first + index * stride];
    t.val[0] = vreinterpretq_u8_f32(vld1q_f32(table));
    t.val[1] = vreinterpretq_u8_f32(vld1q_f32(table + 4));
    return t;
}
typedef struct cg_search_tree_neon_ {
    float32x4_t root;       /* the limit of depth 0 */
    uint8x16x2_t limits[3]; /* to choose from at the depths after it */
} cg_search_tree_neon_;
/* A tree of 2^depth - 1 ascending limits, depth 1..4. */
CG_INLINE_ cg_search_tree_neon_ cg_search_tree_make_neon_(const float *limit, int depth) {
    cg_search_tree_neon_ t;
    t.root = vdupq_n_f32(limit[((size_t)1 << (depth - 1)) - 1]);
    for (int j = 0; j < 3; j++) {
        const size_t first = depth > j + 1 ? ((size_t)1 << (depth - 2 - j)) - 1 : 0,
                     stride = depth > j + 1 ? (size_t)1 << (depth - 1 - j) : 0;
        t.limits[j] = cg_permute_table_neon_(limit, first, stride, depth > j + 1 ? (size_t)2 << j : 1);
    }
    return t;
}
/* how many limits t is above */
CG_INLINE_ uint32x4_t cg_search_neon_(float32x4_t t, const cg_search_tree_neon_ *tree, int depth) {
    uint32x4_t index = vdupq_n_u32(0);
    if (depth > 0) index = vshrq_n_u32(vcgtq_f32(t, tree->root), 31);
    if (depth > 1)
        index = vsubq_u32(vaddq_u32(index, index), vcgtq_f32(t, cg_permute_lookup_neon_(tree->limits[0], index)));
    if (depth > 2)
        index = vsubq_u32(vaddq_u32(index, index), vcgtq_f32(t, cg_permute_lookup_neon_(tree->limits[1], index)));
    if (depth > 3)
        index = vsubq_u32(vaddq_u32(index, index), vcgtq_f32(t, cg_permute_lookup_neon_(tree->limits[2], index)));
    return index;
}
CG_INLINE_ uint32x4_t cg_bucketize4_neon_(uint32x4_t v, float32x4_t inv, const cg_search_tree_neon_ *tree,
    uint8x16x2_t centroid, float64x2_t *s, int depth, int sums) {
    const float32x4_t magnitude = cg_as_float_neon_(cg_abs_neon_(v));
    const uint32x4_t index = cg_search_neon_(cg_times_neon_(magnitude, inv), tree, depth);
    if (sums) {
        const float32x4_t c = cg_permute_lookup_neon_(centroid, index);
        s[0] = s[0] + vcvt_f64_f32(vget_low_f32(c)) * vcvt_f64_f32(vget_low_f32(magnitude));
        s[1] = s[1] + vcvt_high_f64_f32(c) * vcvt_high_f64_f32(magnitude);
    }
    return index;
}
CG_INLINE_ size_t cg_bucketize16_neon_(const cg_bucketizer_ *g, const float *v, size_t n, uint8_t *symbols,
    const float *centroid, double *lanes, int depth, int sums) {
    const float32x4_t inv = vdupq_n_f32(g->inv_scale);
    const uint8x16_t sign = vdupq_n_u8(g->sign_bit);
    uint8x16x2_t centroids = { { vdupq_n_u8(0), vdupq_n_u8(0) } };
    cg_search_tree_neon_ tree;
    float64x2_t s[8];
    float limit[7];
    size_t i = 0;
    cg_limits_pad_(g, limit);
    tree = cg_search_tree_make_neon_(limit, depth ? depth : 1);
    if (sums) {
        centroids = cg_permute_table_neon_(centroid, 0, 1, (size_t)g->limit_count + 1);
        for (int j = 0; j < 8; j++) s[j] = vld1q_f64(lanes + 2 * j);
    }
    for (; i + 16 <= n; i += 16) {
        uint32x4_t a = cg_load4_neon_(v, i), b = cg_load4_neon_(v, i + 4), c = cg_load4_neon_(v, i + 8),
                   d = cg_load4_neon_(v, i + 12);
        const uint8x16_t negative = cg_narrow_neon_(vcltzq_f32(cg_as_float_neon_(a)), vcltzq_f32(cg_as_float_neon_(b)),
            vcltzq_f32(cg_as_float_neon_(c)), vcltzq_f32(cg_as_float_neon_(d)));
        a = cg_bucketize4_neon_(a, inv, &tree, centroids, s, depth, sums);
        b = cg_bucketize4_neon_(b, inv, &tree, centroids, s + 2, depth, sums);
        c = cg_bucketize4_neon_(c, inv, &tree, centroids, s + 4, depth, sums);
        d = cg_bucketize4_neon_(d, inv, &tree, centroids, s + 6, depth, sums);
        vst1q_u8(symbols + i, vorrq_u8(cg_narrow_neon_(a, b, c, d), vandq_u8(negative, sign)));
    }
    if (sums)
        for (int j = 0; j < 8; j++) vst1q_f64(lanes + 2 * j, s[j]);
    return i;
}
static void cg_bucketize_neon_(
    const cg_bucketizer_ *g, const float *v, size_t n, uint8_t *symbols, const float *centroid, double *lanes) {
    size_t i;
    switch (cg_search_tree_depth_(g->limit_count) + (lanes ? 4 : 0)) {
    case 0: i = cg_bucketize16_neon_(g, v, n, symbols, centroid, lanes, 0, 0); break;
    case 1: i = cg_bucketize16_neon_(g, v, n, symbols, centroid, lanes, 1, 0); break;
    case 2: i = cg_bucketize16_neon_(g, v, n, symbols, centroid, lanes, 2, 0); break;
    case 3: i = cg_bucketize16_neon_(g, v, n, symbols, centroid, lanes, 3, 0); break;
    case 4: i = cg_bucketize16_neon_(g, v, n, symbols, centroid, lanes, 0, 1); break;
    case 5: i = cg_bucketize16_neon_(g, v, n, symbols, centroid, lanes, 1, 1); break;
    case 6: i = cg_bucketize16_neon_(g, v, n, symbols, centroid, lanes, 2, 1); break;
    default: i = cg_bucketize16_neon_(g, v, n, symbols, centroid, lanes, 3, 1);
    }
    cg_bucketize_scalar_(g, cg_at_(v, i), n - i, symbols + i, centroid, lanes);
}
#endif

/* table_decode: table[symbol % 16], bits unchanged; the caller has scaled the 16 values. */
static void cg_table_decode_scalar_(
    const float *table, const uint8_t *symbols, size_t n, float *out, int non_temporal) {
    (void)non_temporal;
    for (size_t i = 0; i < n; i++) cg_store_(out, i, cg_load_(table, symbols[i] & 15u));
}
#if CG_AVX2_
CG_AVX2_INLINE_ size_t cg_table_decode16_avx2_(
    const float *table, const uint8_t *symbols, size_t n, float *out, int non_temporal) {
    const __m256 low = cg_load8_ps_avx2_(table, 0), high = cg_load8_ps_avx2_(table, 8);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const __m128i s = cg_load4_avx2_(symbols + i);
        const __m256i a = _mm256_cvtepu8_epi32(s), b = _mm256_cvtepu8_epi32(_mm_srli_si128(s, 8));
        const __m256 x = _mm256_blendv_ps(_mm256_permutevar8x32_ps(low, a), _mm256_permutevar8x32_ps(high, a),
            _mm256_castsi256_ps(_mm256_slli_epi32(a, 28)));
        const __m256 y = _mm256_blendv_ps(_mm256_permutevar8x32_ps(low, b), _mm256_permutevar8x32_ps(high, b),
            _mm256_castsi256_ps(_mm256_slli_epi32(b, 28)));
        cg_store_stream_avx2_(out, i, _mm256_castps_si256(x), non_temporal);
        cg_store_stream_avx2_(out, i + 8, _mm256_castps_si256(y), non_temporal);
    }
    return i;
}
CG_TARGET_AVX2_ static void cg_table_decode_avx2_(
    const float *table, const uint8_t *symbols, size_t n, float *out, int non_temporal) {
    size_t i = non_temporal ? cg_table_decode16_avx2_(table, symbols, n, out, 1)
                            : cg_table_decode16_avx2_(table, symbols, n, out, 0);
    _mm256_zeroupper();
    if (i < n) cg_table_decode_scalar_(table, symbols + i, n - i, cg_at_mut_(out, i), 0);
}
#endif
#if CG_NEON_
static void cg_table_decode_neon_(const float *table, const uint8_t *symbols, size_t n, float *out, int non_temporal) {
    const uint8_t *p = (const uint8_t *)table;
    uint8x16x4_t t;
    size_t i = 0;
    t.val[0] = vld1q_u8(p);
    t.val[1] = vld1q_u8(p + 16);
    t.val[2] = vld1q_u8(p + 32);
    t.val[3] = vld1q_u8(p + 48);
    for (; i + 8 <= n; i += 8) {
        const uint16x8_t s = vmovl_u8(vand_u8(vld1_u8(symbols + i), vdup_n_u8(15)));
        const uint32x4_t times = vdupq_n_u32(0x04040404u), plus = vdupq_n_u32(0x03020100u);
        const uint32x4_t a = vmovl_u16(vget_low_u16(s)) * times + plus, b = vmovl_u16(vget_high_u16(s)) * times + plus;
        cg_store4_neon_(out, i, vreinterpretq_f32_u8(vqtbl4q_u8(t, vreinterpretq_u8_u32(a))));
        cg_store4_neon_(out, i + 4, vreinterpretq_f32_u8(vqtbl4q_u8(t, vreinterpretq_u8_u32(b))));
    }
    cg_table_decode_scalar_(table, symbols + i, n - i, cg_at_mut_(out, i), non_temporal);
}
#endif

/* nf4_search: the symbol is how many of 15 ascending limits v*inv_scale, rounded, is above: ties go to the lower
   symbol, a NaN to 0. */
static void cg_nf4_search_scalar_(const float *limit, float inv_scale, const float *v, size_t n, uint8_t *symbols) {
    float l[15]; /* a copy: symbols cannot alias it */
    memcpy(l, limit, sizeof l);
    for (size_t i = 0; i < n; i++) {
        const float t = cg_times_(cg_load_(v, i), inv_scale);
        unsigned index = t > l[7] ? 8u : 0u;
        index += t > l[index + 3] ? 4u : 0u;
        index += t > l[index + 1] ? 2u : 0u;
        index += t > l[index] ? 1u : 0u;
        symbols[i] = (uint8_t)index;
    }
}
#if CG_AVX2_
CG_AVX2_INLINE_ __m256i cg_nf4_search8_avx2_(const float *v, size_t i, __m256 inv, const cg_search_tree_avx2_ *tree) {
    return cg_search_avx2_(cg_mul8_avx2_(cg_load8_ps_avx2_(v, i), inv), tree, 4);
}
CG_TARGET_AVX2_ static void cg_nf4_search_avx2_(
    const float *limit, float inv_scale, const float *v, size_t n, uint8_t *symbols) {
    const __m256 inv = _mm256_set1_ps(inv_scale);
    cg_search_tree_avx2_ tree;
    float l[15];
    size_t i = 0;
    memcpy(l, limit, sizeof l);
    tree = cg_search_tree_make_avx2_(l, 4);
    for (; i + 32 <= n; i += 32) {
        const __m256i a = cg_nf4_search8_avx2_(v, i, inv, &tree), b = cg_nf4_search8_avx2_(v, i + 8, inv, &tree);
        const __m256i c = cg_nf4_search8_avx2_(v, i + 16, inv, &tree), d = cg_nf4_search8_avx2_(v, i + 24, inv, &tree);
        cg_prefetch_ahead_avx2_(v, i);
        cg_store_avx2_(symbols + i,
            cg_pack_order_avx2_(_mm256_sub_epi8(_mm256_setzero_si256(), cg_narrow_signed_avx2_(a, b, c, d))));
    }
    _mm256_zeroupper();
    if (i < n) cg_nf4_search_scalar_(limit, inv_scale, cg_at_(v, i), n - i, symbols + i);
}
#endif
#if CG_NEON_
static void cg_nf4_search_neon_(const float *limit, float inv_scale, const float *v, size_t n, uint8_t *symbols) {
    const float32x4_t inv = vdupq_n_f32(inv_scale);
    cg_search_tree_neon_ tree;
    float l[15];
    size_t i = 0;
    memcpy(l, limit, sizeof l);
    tree = cg_search_tree_make_neon_(l, 4);
    for (; i + 16 <= n; i += 16) {
        const uint32x4_t a = cg_search_neon_(cg_times_neon_(cg_as_float_neon_(cg_load4_neon_(v, i)), inv), &tree, 4);
        const uint32x4_t b = cg_search_neon_(
            cg_times_neon_(cg_as_float_neon_(cg_load4_neon_(v, i + 4)), inv), &tree, 4);
        const uint32x4_t c = cg_search_neon_(
            cg_times_neon_(cg_as_float_neon_(cg_load4_neon_(v, i + 8)), inv), &tree, 4);
        const uint32x4_t d = cg_search_neon_(
            cg_times_neon_(cg_as_float_neon_(cg_load4_neon_(v, i + 12)), inv), &tree, 4);
        vst1q_u8(symbols + i, cg_narrow_neon_(a, b, c, d));
    }
    cg_nf4_search_scalar_(limit, inv_scale, cg_at_(v, i), n - i, symbols + i);
}
#endif
