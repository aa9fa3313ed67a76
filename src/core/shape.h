/* ---- >>shape: how many values every slot of an operator leaves ---- */

/* Of an operator on matrices. */
static unsigned cg_matrix_r_(const cg_op *op) {
    return cg_matrix_r_clamp_(op->transform.size, (size_t)op->transform.value, op->transform.arg);
}
static size_t cg_matrix_rows_(const cg_op *op) { return op->transform.size; }
static size_t cg_matrix_cols_(const cg_op *op) { return (size_t)op->transform.value; }

/* k = clamp(floor(ratio*n + 0.5), 1, n), or the count asked for */
static uint64_t cg_k_from_ratio_(float ratio, uint64_t asked, uint64_t n) {
    double want = (double)ratio * (double)n;
    uint64_t k;
    CG_NO_FMA_(want);
    want += 0.5;
    k = asked ? asked : want >= (double)n ? n : (uint64_t)want;
    return n == 0 ? 0 : k < 1 ? 1 : k > n ? n : k;
}
/* What the sample leaves; tag NULL: at most. */
static uint64_t cg_sampled_n_(const cg_op *op, uint64_t n, const cg_tag *tag) {
    if (op->sample.id == CG_SAMPLE_PERMK) { /* whole groups of `size`, and perhaps a place in the last */
        uint64_t groups = n / op->sample.size, rest = n % op->sample.size;
        return groups +
            (rest && (!tag || cg_permk_index_(cg_shared_key_(tag), groups, op->sample.size, tag->rank) < rest));
    }
    if (!op->sample.id) return n;
    return cg_k_from_ratio_(op->sample.value, cg_has_fixed_k_(op) ? 0 : op->k, n);
}
static uint64_t cg_round_up_(uint64_t v, uint64_t to) { return cg_mul_sat_(v / to + (v % to != 0), to); }
/* What the transform makes of them. */
static uint64_t cg_transformed_n_(const cg_op *op, uint64_t drawn) {
    switch (op->transform.id) {
    case CG_TRANSFORM_ROTATE: return cg_round_up_(drawn, CG_ROTATE_BLOCK_);
    case CG_TRANSFORM_DCT: return cg_round_up_(drawn, CG_DCT_BLOCK_);
    case CG_TRANSFORM_LOWRANK:
    case CG_TRANSFORM_ATOMO:
        return cg_mul_sat_((uint64_t)op->transform.size + (uint64_t)op->transform.value, cg_matrix_r_(op));
    default: return drawn;
    }
}
static int cg_matrix_shape_fits_(const cg_op *op, uint64_t n) {
    return !cg_is_matrix_op_(op) || (uint64_t)op->transform.size * (uint64_t)op->transform.value == n;
}
/* At most so many are selected of `turned`. */
static uint64_t cg_max_selected_(const cg_op *op, uint64_t turned) {
    uint64_t chunk = op->select.size, k;
    switch (op->select.id) {
    case CG_SELECT_TOPK:
    case CG_SELECT_MSTOPK: return cg_k_from_ratio_(op->select.value, op->k, turned);
    case CG_SELECT_SIDE: return cg_k_from_ratio_(op->select.value, 0, turned);
    case CG_SELECT_DGC:
    case CG_SELECT_SIDCO:
        k = cg_k_from_ratio_(op->select.value, 0, turned);
        return k + k / 10 * 3 + k % 10 * 3 / 10 < turned ? k + k / 10 * 3 + k % 10 * 3 / 10 : turned;
    case CG_SELECT_CHUNKED:
        return turned / chunk * cg_k_from_ratio_(op->select.value, 0, chunk) +
            cg_k_from_ratio_(op->select.value, 0, turned % chunk);
    default: return turned;
    }
}
/* Whole blocks are selected by one index each. */
static uint64_t cg_values_per_index_(const cg_op *op) {
    return op->select.id == CG_SELECT_BLOCKS ? op->select.size : 1;
}
static uint64_t cg_index_count_(const cg_op *op, uint64_t values) {
    uint64_t u = cg_values_per_index_(op);
    return values / u + (values % u != 0);
}

/* All of it at once, at most: what any rank's sample may leave. Fields of a matrix are 0 for other operators. */
typedef struct cg_shape_ {
    uint64_t sampled_n, transformed_n, max_selected, values_per_index;
    int is_matrix;
    size_t rows, cols;
    unsigned r; /* columns of the left factor */
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
