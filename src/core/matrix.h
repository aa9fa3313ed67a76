/* matrix: from an operator to the encoders of low-rank factors

   Offers   cg_factor_lowrank_, cg_factor_atomo_ and their work space; cg_matrix_decode_ is in decode_into
   Needs    base, random, lowrank, atomo, plan
   Touches  the caller's scratch
   Other headers may use: cg_lowrank_left_, cg_lowrank_right_ */

/* Both write the factors p (rows of r values), then q (r rows of cols values), to the start of scratch, which has
   cg_scratch_bytes_ and is aligned for floats; the rest of it is work space. */
static uint8_t *cg_matrix_work_(float *behind_factors) {
    uint8_t *work = (uint8_t *)behind_factors;
    return work + (8 - ((uintptr_t)work & 7)) % 8;
}
static cg_status cg_factor_lowrank_(const cg_kernels_ *kernels, const cg_info *info, const float *x, float *scratch) {
    const size_t rows = cg_matrix_rows_(&info->op), cols = cg_matrix_cols_(&info->op);
    const unsigned r = cg_matrix_r_(&info->op);
    float *q = scratch + rows * r;
    return cg_lowrank_encode_(
        kernels, cg_shared_key_(&info->tag), x, rows, cols, r, scratch, q, cg_matrix_work_(q + r * cols));
}
static cg_status cg_factor_atomo_(const cg_kernels_ *kernels, const cg_info *info, const float *x, float *scratch) {
    const size_t rows = cg_matrix_rows_(&info->op), cols = cg_matrix_cols_(&info->op);
    const unsigned r = cg_matrix_r_(&info->op);
    float *q = scratch + rows * r;
    unsigned atoms;
    return cg_atomo_encode_(kernels, cg_rank_key_(&info->tag), x, rows, cols, info->op.transform.arg, scratch, q,
        &atoms, cg_matrix_work_(q + r * cols));
}
static uint64_t cg_work_bytes_lowrank_(const cg_op *op) {
    return cg_lowrank_work_bytes_(cg_matrix_rows_(op), cg_matrix_cols_(op), op->transform.arg);
}
static uint64_t cg_work_bytes_atomo_(const cg_op *op) {
    return cg_atomo_work_bytes_(cg_matrix_rows_(op), cg_matrix_cols_(op));
}

/* A step of PowerSGD in two halves, so that factors of several ranks can be summed in between. op is low-rank, m its
   matrix, work has room for r (rows + cols) doubles and keeps nothing between the halves. */

/* Left factor p[rows][r] = alpha M Q. Q is warm[r][cols], or where that is NULL or all zero the random start of tag. */
CG_OFFERED_ void cg_lowrank_left_(
    const cg_op *op, const cg_tag *tag, const float *warm, const float *m, float alpha, float *p, double *work) {
    const size_t rows = cg_matrix_rows_(op), cols = cg_matrix_cols_(op);
    const unsigned r = cg_matrix_r_(op);
    double *p64 = work, *q64 = p64 + r * rows;
    int is_warm = 0;
    for (size_t i = 0; warm && i < r * cols; i++) {
        q64[i] = (double)cg_load_(warm, i);
        is_warm |= (cg_load_bits_(warm, i) & CG_ABS_MASK_) != 0;
    }
    if (!is_warm) cg_lowrank_init_q_(cg_shared_key_(tag), cols, r, q64);
    cg_matrix_times_(cg_kernels_now_(), m, rows, cols, q64, r, p64);
    for (size_t i = 0; i < rows * r; i++) p[i] = (float)(p64[i % r * rows + i / r] * (double)alpha);
}
/* Makes the columns of p orthonormal, in place, and the right factor q[r][cols] = alpha P^T M of them.
   CG_E_NONFINITE: p is too large; q is not written. */
CG_OFFERED_ cg_status cg_lowrank_right_(
    const cg_op *op, const float *m, float alpha, float *p, float *q, double *work) {
    const size_t rows = cg_matrix_rows_(op), cols = cg_matrix_cols_(op);
    const unsigned r = cg_matrix_r_(op);
    double *p64 = work, *q64 = p64 + r * rows, norm = 0.0;
    for (size_t i = 0; i < rows * r; i++) p64[i % r * rows + i / r] = (double)p[i];
    if (!cg_gram_schmidt_(p64, rows, r, &norm)) return CG_E_NONFINITE;
    cg_lowrank_store_p_(p64, rows, r, 1.0, p, r);
    cg_lowrank_compute_q_(cg_kernels_now_(), m, rows, cols, p, r, r, q64);
    for (size_t i = 0; i < cols * r; i++) q[i] = (float)(q64[i] * (double)alpha);
    return CG_OK;
}
