/* matrix: from an operator to the encoders of low-rank factors

   Offers   cg_matrix_encode_; cg_matrix_decode_ is in decode_into
   Needs    base, random, lowrank, atomo, shape
   Touches  the caller's scratch */

/* Writes the factors p (rows of r values), then q (r rows of cols values), to the start of scratch, which has
   cg_scratch_bytes_ and is aligned for floats; the rest of it is work space. */
static cg_status cg_matrix_encode_(const cg_kernels_ *kernels, const cg_info *info, const float *x, float *scratch) {
    const size_t rows = cg_matrix_rows_(&info->op), cols = cg_matrix_cols_(&info->op);
    const unsigned r = cg_matrix_r_(&info->op);
    float *q = scratch + rows * r;
    uint8_t *work = (uint8_t *)(q + r * cols);
    unsigned atoms;
    work += (8 - ((uintptr_t)work & 7)) % 8;
    if (info->op.transform.id == CG_TRANSFORM_LOWRANK)
        return cg_lowrank_encode_(kernels, cg_shared_key_(&info->tag), x, rows, cols, r, scratch, q, work);
    return cg_atomo_encode_(
        kernels, cg_rank_key_(&info->tag), x, rows, cols, info->op.transform.arg, scratch, q, &atoms, work);
}
