/* resolve: an operator on n values, resolved once: all that other headers ask of it

   Offers   cg_resolve_
   Needs    stages, plan, rows, compress (bounds), select (cg_scratch_bytes_), layout, reduce (cg_grid_zero_symbol_)
   Touches  nothing
   Other headers may use: cg_resolve_, cg_resolved_
   Traits say what stages are like (CG_IS_F32_ and on, in core/stages.h), the rest what follows from them and n. */

typedef struct cg_resolved_ {
    cg_plan_ plan;
    size_t bound;           /* bytes of any packet; 0: op does not fit n, its codec is not in extra, or they overflow */
    uint64_t scratch_bytes; /* of cg_compress; saturates */
    uint64_t target_k;      /* values that the selection aims at, by its ratio or op.k */
    uint64_t scale_count;   /* without a selection: scales of a packet */
    uint32_t max_level;     /* largest level of a grid around zero, on which packets can be added; 0: there is none */
    int is_unbiased;        /* D(C(x)) is x in expectation */
    int is_nearly_unbiased; /* a selection by chance, and one magnitude for what it has left about equal */
    cg_status extra_status; /* of cg_extra_check_ for op and extra */
    const char *warning;    /* what a report says without error feedback; NULL: nothing is lost for good */
    size_t rows, cols;      /* of the matrix; 0 for other operators and with segments, and so is r */
    unsigned r;             /* columns of the left factor */
    /* With segments: cg_decoder_.segments_hash of their packets; without: 0. The rest is then that of all segments:
       plan.traits those of any, but plan's numbers are those of op on n values; max_level and scale_count are 0 */
    uint64_t segments_hash;
    double inflation[2]; /* with segments: the largest of cg_inflation_ */
} cg_resolved_;

/* What a report says of an operator with a stage that loses a part of the vector for good; NULL: nothing in op needs
   error feedback. */
static const char *cg_biased_why_(const cg_op *op) {
    for (unsigned slot = 0; slot < CG_SLOT_COUNT_; slot++) {
        const cg_stage *s = cg_op_stage_const_(op, slot);
        const cg_stage_row_ *row = cg_stage_row_of_(slot, s);
        if (row->warning && cg_stage_is_biased_(slot, s)) return row->warning;
    }
    return NULL;
}
/* Is D(C(x)) x in expectation? Levels of a normal distribution are nearly so, after two rounds of rotation. */
static int cg_is_unbiased_(const cg_op *op) {
    for (unsigned slot = 0; slot < CG_SLOT_COUNT_; slot++)
        if (cg_stage_is_biased_(slot, cg_op_stage_const_(op, slot))) return 0;
    return !cg_has_(op, CG_WANTS_ROTATION_) || op->transform.arg >= 2;
}
/* A selection by chance leaves magnitudes that are equal, but for the largest: their mean in place of all is nearly
   unbiased, as far as few values are certain to be kept. */
static int cg_is_nearly_unbiased_(const cg_op *op) {
    const cg_stage_row_ *selection = cg_stage_row_of_(CG_SLOT_SELECT_, &op->select);
    const cg_quantizer_ *quantizer = cg_quantizer_of_(&op->quantize);
    cg_op rest = *op;
    rest.quantize = cg_dense().quantize;
    return (selection->traits & (CG_HAS_RATIO_ | CG_IS_BIASED_)) == CG_HAS_RATIO_ && quantizer &&
        quantizer->needs == CG_NEEDS_SUM_AFTERWARDS_ && cg_is_unbiased_(&rest);
}
/* What segments change of *r, which is that of op on n values. */
static void cg_resolve_segments_(const cg_op *op, const cg_extra *extra, size_t n, cg_resolved_ *r) {
    const cg_segments *g = extra->segments;
    r->bound = cg_segments_bound_(op, extra, n);
    r->scratch_bytes = cg_segments_scratch_(op, extra, n);
    r->scale_count = r->max_level = 0;
    r->inflation[0] = r->inflation[1] = 1.0;
    if (!r->bound) return; /* they are refused */
    r->segments_hash = cg_segments_hash_of_(g);
    for (size_t i = 0; i < g->count; i++) {
        const cg_op *one = cg_segment_op_(g, op, i);
        const int is_first = !i || cg_segment_number_(g, i) != cg_segment_number_(g, i - 1);
        const cg_plan_ plan = cg_plan_of_(one, g->n[i]);
        r->plan.traits |= plan.traits;
        for (int residual = 0; residual < 2; residual++)
            r->inflation[residual] = cg_max_f64_(r->inflation[residual], cg_inflation_(one, &plan, residual));
        if (!is_first || one == op) continue;
        r->is_nearly_unbiased = (r->is_nearly_unbiased || r->is_unbiased) &&
            (cg_is_nearly_unbiased_(one) || cg_is_unbiased_(one));
        r->is_unbiased = r->is_unbiased && cg_is_unbiased_(one);
        if (!r->warning) r->warning = cg_biased_why_(one);
    }
}
/* Checks op as one that a caller wants to use, and fills *r in. extra may be NULL. On an error *r is undefined. */
CG_OFFERED_ cg_status cg_resolve_(const cg_op *op, const cg_extra *extra, size_t n, cg_resolved_ *r) {
    const cg_status s = cg_op_check_new_(op);
    cg_layout_ lay;
    unsigned bits;
    memset(r, 0, sizeof *r);
    if (s != CG_OK) return s;
    r->plan = cg_plan_of_(op, n);
    if (!cg_segments_of_(extra) && cg_matrix_shape_fits_(op, n)) r->bound = cg_op_bound_(op, extra, &r->plan);
    r->scratch_bytes = cg_scratch_bytes_(op, &r->plan);
    r->target_k = cg_k_from_ratio_(op->select.value, op->k, n);
    if (cg_layout_make_(op, NULL, r->plan.transformed_n, &lay) == CG_OK) r->scale_count = lay.bucket_count;
    r->max_level = (uint32_t)cg_grid_zero_symbol_(&op->quantize, &bits);
    r->is_unbiased = cg_is_unbiased_(op);
    r->is_nearly_unbiased = cg_is_nearly_unbiased_(op);
    r->extra_status = cg_extra_check_(op, extra);
    r->warning = cg_biased_why_(op);
    if (cg_segments_of_(extra)) {
        cg_resolve_segments_(op, extra, n, r);
        return CG_OK;
    }
    if (!(r->plan.traits & CG_IS_MATRIX_)) return CG_OK;
    r->rows = cg_matrix_rows_(op);
    r->cols = cg_matrix_cols_(op);
    r->r = cg_matrix_r_(op);
    return CG_OK;
}
