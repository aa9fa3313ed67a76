/* ---- >>matrix: what stands between the pipeline and the factors ---- */

/* Factors p (rows of rank values), then q (rank rows of cols), at the start of room. */
static cg_status cg_matrix_encode_(const cg_kernels_ *kernels, const cg_info *info, const float *x, float *room) {
    const size_t rows = cg_matrix_rows_(&info->op), cols = cg_matrix_cols_(&info->op);
    const unsigned rank = cg_matrix_r_(&info->op);
    float *q = room + rows * rank;
    uint8_t *work = (uint8_t *)(q + rank * cols);
    unsigned atoms;
    work += (8 - ((uintptr_t)work & 7)) % 8;
    if (info->op.transform.id == CG_TRANSFORM_LOWRANK)
        return cg_lowrank_encode_(kernels, cg_shared_key_(&info->tag), x, rows, cols, rank, room, q, work);
    return cg_atomo_encode_(
        kernels, cg_rank_key_(&info->tag), x, rows, cols, info->op.transform.arg, room, q, &atoms, work);
}
