/* lookup: kernels that find the symbol of a value by thresholds, and the value of a symbol in a table

   Offers   bucketize, nf4_search, table_decode
   Needs    base, table, the vector layer, levels, sums
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
#if CG_VECTOR_
/* A tree search: the index of the node so far, among those of its depth, chooses the next limit from a table.
   Comparisons give 0 or -1, so that what is accumulated is minus the index; its low bits are looked at. */
typedef struct cg_search_tree_ {
    cg_vf_ limits[4]; /* to choose from at each depth */
} cg_search_tree_;
/* value[first + index*stride], index < many (a power of 2), over and over, for lookups by minus the index */
CG_VECTOR_FN_ cg_vf_ cg_lookup_table_(const float *value, size_t first, size_t stride, size_t many) {
    float table[8];
    CG_UNROLL_
    for (size_t j = 0; j < 8; j++) table[(8 - j) % 8] = value[first + (j & (many - 1)) * stride];
    return cg_vf_load_(table, 0);
}
/* A tree of 2^depth - 1 ascending limits, depth 0..4. */
CG_VECTOR_FN_ cg_search_tree_ cg_search_tree_make_(const float *limit, int depth) {
    cg_search_tree_ t;
    t.limits[0] = t.limits[1] = t.limits[2] = t.limits[3] = cg_vf_set_(0.0f);
    CG_UNROLL_
    for (int j = 0; j < depth; j++)
        t.limits[j] = cg_lookup_table_(
            limit, ((size_t)1 << (depth - 1 - j)) - 1, (size_t)1 << (depth - j), (size_t)1 << j);
    return t;
}
/* minus how many limits t is above */
CG_VECTOR_FN_ cg_vu_ cg_search_(cg_vf_ t, const cg_search_tree_ *tree, int depth) {
    cg_vu_ index = cg_vu_set_(0);
    if (depth > 0) index = cg_vf_gt_(t, tree->limits[0]);
    if (depth > 1) index = cg_vu_add_(cg_vu_add_(index, index), cg_vf_gt_(t, cg_vf_lookup4_(tree->limits[1], index)));
    if (depth > 2) index = cg_vu_add_(cg_vu_add_(index, index), cg_vf_gt_(t, cg_vf_lookup4_(tree->limits[2], index)));
    if (depth > 3) index = cg_vu_add_(cg_vu_add_(index, index), cg_vf_gt_(t, cg_vf_lookup8_(tree->limits[3], index)));
    return index;
}
/* Minus the symbols of eight values, without signs; sums: adds to the lanes s[0], s[1]. */
CG_VECTOR_FN_ cg_vu_ cg_bucketize8_(const float *v, size_t i, cg_vf_ inv, const cg_search_tree_ *tree, cg_vf_ centroid,
    cg_vd_ *s, int depth, int sums) {
    const cg_vu_ index = cg_search_(cg_vf_mul_(cg_vf_abs_(cg_vf_load_(v, i)), inv), tree, depth);
    if (sums) {
        const cg_vf_ c = depth < 3 ? cg_vf_lookup4_(centroid, index) : cg_vf_lookup8_(centroid, index);
        s[0] = cg_vd_add_(s[0], cg_vd_mul_(cg_vd_low_(c), cg_lane_sum_term_(v, i, CG_SUM_ABS_)));
        s[1] = cg_vd_add_(s[1], cg_vd_mul_(cg_vd_high_(c), cg_lane_sum_term_(v, i + 4, CG_SUM_ABS_)));
    }
    return index;
}
/* The first n / 32 * 32 values; returns how many. depth and sums are constants, so that each case is compiled alone. */
CG_VECTOR_FN_ size_t cg_bucketize32_(const cg_bucketizer_ *g, const float *v, size_t n, uint8_t *symbols,
    const float *centroid, double *lanes, int depth, int sums) {
    const cg_vf_ inv = cg_vf_set_(g->inv_scale);
    const cg_vu_ sign = cg_vb_set_(g->sign_bit);
    cg_vf_ centroids = inv;
    cg_vd_ s[4];
    cg_search_tree_ tree;
    float limit[7];
    size_t i = 0;
    cg_limits_pad_(g, limit);
    tree = cg_search_tree_make_(limit, depth);
    if (sums) {
        float c[8];
        CG_UNROLL_
        for (int32_t j = 0; j < 8; j++) c[j] = centroid[j <= g->limit_count ? j : 0];
        centroids = cg_lookup_table_(c, 0, 1, depth < 3 ? 4 : 8);
        cg_lanes_load_(s, lanes);
    }
    for (; i + 32 <= n; i += 32) {
        const cg_vu_ a = cg_bucketize8_(v, i, inv, &tree, centroids, s, depth, sums),
                     b = cg_bucketize8_(v, i + 8, inv, &tree, centroids, s + 2, depth, sums),
                     c = cg_bucketize8_(v, i + 16, inv, &tree, centroids, s, depth, sums),
                     d = cg_bucketize8_(v, i + 24, inv, &tree, centroids, s + 2, depth, sums);
        const cg_vu_ negative = cg_vb_narrow_signed_(cg_vu_negative_(cg_vu_floats_(v, i)),
            cg_vu_negative_(cg_vu_floats_(v, i + 8)), cg_vu_negative_(cg_vu_floats_(v, i + 16)),
            cg_vu_negative_(cg_vu_floats_(v, i + 24)));
        cg_vb_put_(symbols + i,
            cg_vu_or_(cg_vb_sub_(cg_vu_set_(0), cg_vb_narrow_signed_(a, b, c, d)), cg_vu_and_(negative, sign)));
    }
    if (sums) cg_lanes_store_(lanes, s);
    return i;
}
CG_VECTOR_FN_ void cg_bucketize_simd_(
    const cg_bucketizer_ *g, const float *v, size_t n, uint8_t *symbols, const float *centroid, double *lanes) {
    size_t i;
    switch (cg_search_tree_depth_(g->limit_count) + (lanes ? 4 : 0)) {
    case 0: i = cg_bucketize32_(g, v, n, symbols, centroid, lanes, 0, 0); break;
    case 1: i = cg_bucketize32_(g, v, n, symbols, centroid, lanes, 1, 0); break;
    case 2: i = cg_bucketize32_(g, v, n, symbols, centroid, lanes, 2, 0); break;
    case 3: i = cg_bucketize32_(g, v, n, symbols, centroid, lanes, 3, 0); break;
    case 4: i = cg_bucketize32_(g, v, n, symbols, centroid, lanes, 0, 1); break;
    case 5: i = cg_bucketize32_(g, v, n, symbols, centroid, lanes, 1, 1); break;
    case 6: i = cg_bucketize32_(g, v, n, symbols, centroid, lanes, 2, 1); break;
    default: i = cg_bucketize32_(g, v, n, symbols, centroid, lanes, 3, 1);
    }
    if (i < n) cg_bucketize_scalar_(g, cg_at_(v, i), n - i, symbols + i, centroid, lanes);
}
#endif

/* table_decode: table[symbol % 16], bits unchanged; the caller has scaled the 16 values. */
static void cg_table_decode_scalar_(
    const float *table, const uint8_t *symbols, size_t n, float *out, int non_temporal) {
    (void)non_temporal;
    for (size_t i = 0; i < n; i++) cg_store_(out, i, cg_load_(table, symbols[i] & 15u));
}
#if CG_VECTOR_
CG_VECTOR_FN_ size_t cg_table_decode16_(
    const float *table, const uint8_t *symbols, size_t n, float *out, int non_temporal) {
    const cg_vf_ low = cg_vf_load_(table, 0), high = cg_vf_load_(table, 8);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        cg_vf_stream_(out, i, cg_vf_lookup16_(low, high, cg_vu_bytes_(symbols + i)), non_temporal);
        cg_vf_stream_(out, i + 8, cg_vf_lookup16_(low, high, cg_vu_bytes_(symbols + i + 8)), non_temporal);
    }
    return i;
}
CG_VECTOR_FN_ void cg_table_decode_simd_(
    const float *table, const uint8_t *symbols, size_t n, float *out, int non_temporal) {
    const size_t i = non_temporal ? cg_table_decode16_(table, symbols, n, out, 1)
                                  : cg_table_decode16_(table, symbols, n, out, 0);
    if (i < n) cg_table_decode_scalar_(table, symbols + i, n - i, cg_at_mut_(out, i), 0);
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
#if CG_VECTOR_
CG_VECTOR_FN_ cg_vu_ cg_nf4_search8_(const float *v, size_t i, cg_vf_ inv, const cg_search_tree_ *tree) {
    return cg_search_(cg_vf_mul_(cg_vf_load_(v, i), inv), tree, 4);
}
CG_VECTOR_FN_ void cg_nf4_search_simd_(
    const float *limit, float inv_scale, const float *v, size_t n, uint8_t *symbols) {
    const cg_vf_ inv = cg_vf_set_(inv_scale);
    cg_search_tree_ tree;
    float l[15];
    size_t i = 0;
    memcpy(l, limit, sizeof l);
    tree = cg_search_tree_make_(l, 4);
    for (; i + 32 <= n; i += 32) {
        const cg_vu_ a = cg_nf4_search8_(v, i, inv, &tree), b = cg_nf4_search8_(v, i + 8, inv, &tree),
                     c = cg_nf4_search8_(v, i + 16, inv, &tree), d = cg_nf4_search8_(v, i + 24, inv, &tree);
        cg_prefetch32_(v, i, CG_AHEAD_);
        cg_vb_put_(symbols + i, cg_vb_sub_(cg_vu_set_(0), cg_vb_narrow_signed_(a, b, c, d)));
    }
    if (i < n) cg_nf4_search_scalar_(limit, inv_scale, cg_at_(v, i), n - i, symbols + i);
}
#endif
