/* traits: what other headers ask of an operator, answered at once

   Offers   cg_traits_of_
   Needs    stages, plan, select (cg_scratch_bytes_), layout, reduce (cg_grid_zero_symbol_)
   Touches  nothing
   Other headers may use: cg_shape_, cg_shape_of_, cg_traits_, cg_traits_of_ */

/* What a report says of an operator with a stage that loses a part of the vector for good; NULL: nothing in op needs
   error feedback. */
static const char *cg_biased_why_(const cg_op *op) {
    for (unsigned slot = 0; slot < CG_SLOT_CODE_; slot++) {
        const cg_stage *s = cg_op_stage_const_(op, slot);
        const cg_stage_row_ *row = cg_stage_row_of_(slot, s);
        if (row->warning && (row->traits & CG_IS_BIASED_ || s->flags & row->biasing_flags)) return row->warning;
    }
    return NULL;
}
/* How many values every slot leaves at most. */
typedef struct cg_shape_ {
    uint64_t sampled_n, transformed_n; /* of the rank whose sample leaves most */
    uint64_t max_selected, values_per_index;
    int is_matrix;
    size_t rows, cols; /* of the matrix; 0 for other operators, and so is r */
    unsigned r;        /* columns of the left factor */
} cg_shape_;

CG_OFFERED_ cg_shape_ cg_shape_of_(const cg_op *op, uint64_t n) {
    const cg_plan_ plan = cg_plan_of_(op, n);
    cg_shape_ s;
    memset(&s, 0, sizeof s);
    s.sampled_n = plan.sampled_n;
    s.transformed_n = plan.transformed_n;
    s.max_selected = plan.max_selected;
    s.values_per_index = plan.values_per_index;
    s.is_matrix = (plan.traits & CG_IS_MATRIX_) != 0;
    if (s.is_matrix) {
        s.rows = cg_matrix_rows_(op);
        s.cols = cg_matrix_cols_(op);
        s.r = cg_matrix_r_(op);
    }
    return s;
}
typedef struct cg_traits_ {
    cg_shape_ shape;
    uint64_t k;             /* values that the selection aims at, by its ratio or op.k */
    int has_fixed_k;        /* it leaves exactly so many */
    int has_user_codec;     /* the values are encoded by a codec of the caller's */
    uint32_t max_level;     /* largest level of a grid around zero, on which packets can be added; 0: there is none */
    uint64_t scale_count;   /* without a selection: scales of a packet */
    uint64_t scratch_bytes; /* of cg_compress; saturates */
    const char *biased_why; /* what happens without error feedback, or NULL */
} cg_traits_;

/* op must be valid (cg_bound is not 0 for it and some n). */
CG_OFFERED_ cg_traits_ cg_traits_of_(const cg_op *op, uint64_t n) {
    const cg_plan_ plan = cg_plan_of_(op, n);
    cg_traits_ t;
    cg_layout_ lay;
    unsigned bits;
    memset(&t, 0, sizeof t);
    t.shape = cg_shape_of_(op, n);
    t.k = cg_k_from_ratio_(op->select.value, op->k, n);
    t.has_fixed_k = (plan.traits & CG_TAKES_K_) != 0;
    t.has_user_codec = cg_is_user_codec_(&op->quantize);
    t.max_level = (uint32_t)cg_grid_zero_symbol_(&op->quantize, &bits);
    if (cg_layout_make_(op, NULL, t.shape.transformed_n, &lay) == CG_OK) t.scale_count = lay.bucket_count;
    t.scratch_bytes = cg_scratch_bytes_(op, &plan);
    t.biased_why = cg_biased_why_(op);
    return t;
}
