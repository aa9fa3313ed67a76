/* plan: how many values each slot of an operator leaves of n, resolved once and passed on

   Offers   cg_plan_, cg_plan_of_, cg_k_from_ratio_, sizes of matrices, and how many values a stage leaves
   Needs    base, random, stages, the clamp of r from lowrank
   Touches  nothing
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
/* v up to a multiple of `to`; CG_TOO_LARGE_ if that overflows. */
static uint64_t cg_round_up_(uint64_t v, uint64_t to) { return cg_mul_sat_(v / to + (v % to != 0), to); }

/* The functions of samples: how many of n values are left. tag NULL: the maximum over all ranks. */
static uint64_t cg_sampled_all_(const cg_op *op, uint64_t n, const cg_tag *tag) {
    (void)op;
    (void)tag;
    return n;
}
static uint64_t cg_sampled_randk_(const cg_op *op, uint64_t n, const cg_tag *tag) {
    (void)tag;
    return cg_k_from_ratio_(op->sample.value, op->k && !cg_has_(op, CG_TAKES_K_) ? op->k : 0, n);
}
/* One of each group of `size`, and perhaps one of the short last group. */
static uint64_t cg_sampled_permk_(const cg_op *op, uint64_t n, const cg_tag *tag) {
    const uint64_t groups = n / op->sample.size, remainder = n % op->sample.size;
    return groups +
        (remainder && (!tag || cg_permk_index_(cg_shared_key_(tag), groups, op->sample.size, tag->rank) < remainder));
}
/* One block of so many, all equally long. */
static uint64_t cg_sampled_cyclic_(const cg_op *op, uint64_t n, const cg_tag *tag) {
    (void)tag;
    return n / op->sample.size + (n % op->sample.size != 0);
}
/* The functions of transforms: how many values they make of sampled_n; CG_TOO_LARGE_ on overflow. */
static uint64_t cg_transformed_same_(const cg_op *op, uint64_t sampled_n) {
    (void)op;
    return sampled_n;
}
static uint64_t cg_transformed_rotate_(const cg_op *op, uint64_t sampled_n) {
    (void)op;
    return cg_round_up_(sampled_n, CG_ROTATE_BLOCK_);
}
static uint64_t cg_transformed_dct_(const cg_op *op, uint64_t sampled_n) {
    (void)op;
    return cg_round_up_(sampled_n, CG_DCT_BLOCK_);
}
static uint64_t cg_transformed_matrix_(const cg_op *op, uint64_t sampled_n) { /* the two factors */
    (void)sampled_n;
    return cg_mul_sat_((uint64_t)op->transform.size + (uint64_t)op->transform.value, cg_matrix_r_(op));
}
/* The functions of selections: how many of n values are kept at most. */
static uint64_t cg_selected_all_(const cg_op *op, uint64_t n) {
    (void)op;
    return n;
}
static uint64_t cg_selected_k_(const cg_op *op, uint64_t n) {
    return cg_k_from_ratio_(op->select.value, op->k && cg_has_(op, CG_TAKES_K_) ? op->k : 0, n);
}
static uint64_t cg_selected_estimate_(const cg_op *op, uint64_t n) { /* 1.3 k */
    const uint64_t k = cg_k_from_ratio_(op->select.value, 0, n), more = k + k / 10 * 3 + k % 10 * 3 / 10;
    return more < n ? more : n;
}
static uint64_t cg_selected_chunked_(const cg_op *op, uint64_t n) {
    const uint64_t chunk = op->select.size;
    return n / chunk * cg_k_from_ratio_(op->select.value, 0, chunk) + cg_k_from_ratio_(op->select.value, 0, n % chunk);
}

/* What follows from an operator and n. */
typedef struct cg_plan_ {
    uint32_t traits;
    uint64_t n, sampled_n, transformed_n;
    uint64_t max_selected;     /* just so many if CG_KEEPS_EXACTLY_ */
    uint64_t values_per_index; /* 1, but the block size where one index selects a whole block */
    uint64_t universe;         /* indices are below it */
} cg_plan_;
/* 0: an operator on matrices whose rows times columns are not n. */
static int cg_matrix_shape_fits_(const cg_op *op, uint64_t n) {
    return !cg_has_(op, CG_IS_MATRIX_) || (uint64_t)op->transform.size * (uint64_t)op->transform.value == n;
}
/* Indices for so many values, which are whole blocks but for the last. */
CG_INLINE_ uint64_t cg_index_count_(const cg_plan_ *plan, uint64_t values) {
    return plan->values_per_index == 1 ? values
                                       : values / plan->values_per_index + (values % plan->values_per_index != 0);
}
/* Does a packet have indices of its own? */
static int cg_has_indices_(const cg_plan_ *plan) {
    return (plan->traits & (CG_IS_SELECTION_ | CG_NEEDS_SUPPORT_)) == CG_IS_SELECTION_;
}
/* How many of n values the sample leaves. */
static uint64_t cg_sampled_n_(const cg_op *op, uint64_t n, const cg_tag *tag); /* in core/rows.h, as those below */
/* Sets all but traits, n and sampled_n, which are set. */
static void cg_plan_resume_(cg_plan_ *plan, const cg_op *op);
/* All but traits, which are set. tag: of the rank whose plan this is; NULL: of the rank whose sample leaves most. */
static void cg_plan_set_(cg_plan_ *plan, const cg_op *op, uint64_t n, const cg_tag *tag);
static cg_plan_ cg_plan_of_(const cg_op *op, uint64_t n) {
    cg_plan_ plan;
    plan.traits = cg_op_traits_(op);
    cg_plan_set_(&plan, op, n, NULL);
    return plan;
}
