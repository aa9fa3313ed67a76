/* shape: how many values each slot of an operator leaves

   Offers   cg_sampled_n_, cg_transformed_n_, cg_max_selected_, cg_values_per_index_, cg_shape_of_, sizes of matrices
   Needs    base, random, stages, the clamp of r from lowrank
   Touches  nothing
   Other headers may use: cg_shape_, cg_shape_of_
   The vector has n values, sampled_n after the sample, transformed_n after the transform, and at most max_selected
   after the selection. All operators here have passed cg_op_check_. */

/* Of an operator on matrices only: columns of the left factor, rows and columns of the matrix. */
static unsigned cg_matrix_r_(const cg_op *op) {
    return cg_matrix_r_clamp_(op->transform.size, (size_t)op->transform.value, op->transform.arg);
}
static size_t cg_matrix_rows_(const cg_op *op) { return op->transform.size; }
static size_t cg_matrix_cols_(const cg_op *op) { return (size_t)op->transform.value; }

/* k = clamp(floor(ratio*n + 0.5), 1, n), or with fixed_k > 0 the clamp of that; 0 if n is 0. */
static uint64_t cg_k_from_ratio_(float ratio, uint64_t fixed_k, uint64_t n) {
    double exact_k = (double)ratio * (double)n;
    uint64_t k;
    CG_NO_FMA_(exact_k);
    exact_k += 0.5;
    k = fixed_k ? fixed_k : exact_k >= (double)n ? n : (uint64_t)exact_k;
    return n == 0 ? 0 : k < 1 ? 1 : k > n ? n : k;
}
/* How many of n values the sample leaves. PermK leaves one more to some ranks: tag NULL gives the maximum over all. */
static uint64_t cg_sampled_n_(const cg_op *op, uint64_t n, const cg_tag *tag) {
    if (op->sample.id == CG_SAMPLE_PERMK) { /* one of each group of `size`, and perhaps one of the short last group */
        uint64_t groups = n / op->sample.size, remainder = n % op->sample.size;
        return groups +
            (remainder &&
                (!tag || cg_permk_index_(cg_shared_key_(tag), groups, op->sample.size, tag->rank) < remainder));
    }
    if (!op->sample.id) return n;
    return cg_k_from_ratio_(op->sample.value, cg_has_fixed_k_(op) ? 0 : op->k, n);
}
/* v up to a multiple of `to`; CG_TOO_LARGE_ if that overflows. */
static uint64_t cg_round_up_(uint64_t v, uint64_t to) { return cg_mul_sat_(v / to + (v % to != 0), to); }
/* How many values the transform makes of sampled_n: whole blocks, or the two factors; CG_TOO_LARGE_ on overflow. */
static uint64_t cg_transformed_n_(const cg_op *op, uint64_t sampled_n) {
    switch (op->transform.id) {
    case CG_TRANSFORM_ROTATE: return cg_round_up_(sampled_n, CG_ROTATE_BLOCK_);
    case CG_TRANSFORM_DCT: return cg_round_up_(sampled_n, CG_DCT_BLOCK_);
    case CG_TRANSFORM_LOWRANK:
    case CG_TRANSFORM_ATOMO:
        return cg_mul_sat_((uint64_t)op->transform.size + (uint64_t)op->transform.value, cg_matrix_r_(op));
    default: return sampled_n;
    }
}
/* 0: an operator on matrices whose rows times columns are not n. */
static int cg_matrix_shape_fits_(const cg_op *op, uint64_t n) {
    return !cg_is_matrix_op_(op) || (uint64_t)op->transform.size * (uint64_t)op->transform.value == n;
}
/* How many of transformed_n values the selection keeps at most; just so many if cg_has_fixed_k_, or chunked. */
static uint64_t cg_max_selected_(const cg_op *op, uint64_t transformed_n) {
    uint64_t chunk = op->select.size, k;
    switch (op->select.id) {
    case CG_SELECT_TOPK:
    case CG_SELECT_MSTOPK: return cg_k_from_ratio_(op->select.value, op->k, transformed_n);
    case CG_SELECT_SIDE: return cg_k_from_ratio_(op->select.value, 0, transformed_n);
    case CG_SELECT_DGC:
    case CG_SELECT_SIDCO:
        k = cg_k_from_ratio_(op->select.value, 0, transformed_n);
        return k + k / 10 * 3 + k % 10 * 3 / 10 < transformed_n ? k + k / 10 * 3 + k % 10 * 3 / 10 : transformed_n;
    case CG_SELECT_CHUNKED:
        return transformed_n / chunk * cg_k_from_ratio_(op->select.value, 0, chunk) +
            cg_k_from_ratio_(op->select.value, 0, transformed_n % chunk);
    default: return transformed_n;
    }
}
/* 1, but the block size where one index selects a whole block. */
static uint64_t cg_values_per_index_(const cg_op *op) {
    return op->select.id == CG_SELECT_BLOCKS ? op->select.size : 1;
}
/* Indices for so many values, which are whole blocks but for the last. */
static uint64_t cg_index_count_(const cg_op *op, uint64_t values) {
    uint64_t per_index = cg_values_per_index_(op);
    return values / per_index + (values % per_index != 0);
}

/* All of it at once. */
typedef struct cg_shape_ {
    uint64_t sampled_n, transformed_n; /* of the rank whose sample leaves most */
    uint64_t max_selected, values_per_index;
    int is_matrix;
    size_t rows, cols; /* of the matrix; 0 for other operators, and so is r */
    unsigned r;        /* columns of the left factor */
} cg_shape_;

CG_OFFERED_ cg_shape_ cg_shape_of_(const cg_op *op, uint64_t n) {
    cg_shape_ s;
    memset(&s, 0, sizeof s);
    s.sampled_n = cg_sampled_n_(op, n, NULL);
    s.transformed_n = cg_transformed_n_(op, s.sampled_n);
    s.max_selected = cg_max_selected_(op, s.transformed_n);
    s.values_per_index = cg_values_per_index_(op);
    s.is_matrix = cg_is_matrix_op_(op);
    if (s.is_matrix) {
        s.rows = cg_matrix_rows_(op);
        s.cols = cg_matrix_cols_(op);
        s.r = cg_matrix_r_(op);
    }
    return s;
}
