/* transform: one block of values rotated or transformed to frequencies, and back

   Offers   cg_transformer_, a row of the table of transforms, with its functions for rotations and the DCT
   Needs    base, random, kernels (rotate, dct), stages
   Touches  nothing but its arguments */

#define CG_ROTATE_SIGN_KEY_ 0x6A09E667F3BCC909u /* so that the signs of a rotation differ from the hashes of a sample */

/* A row of the table of transforms, in core/rows.h. */
typedef struct cg_transformer_ {
    cg_stage_row_ stage;
    uint64_t (*transformed_n)(const cg_op *op, uint64_t sampled_n); /* see core/plan.h */
    size_t block; /* values that are transformed together; 0: none (no transform, or a matrix) */
    void (*apply)(const cg_kernels_ *kernels, const cg_stage *stage, uint64_t key, uint64_t block, const float *from,
        float *v, int inverse);
    /* matrices: writes the factors of x to scratch, and how many bytes of work space that takes behind them */
    cg_status (*factor)(const cg_kernels_ *kernels, const cg_info *info, const float *x, float *scratch);
    uint64_t (*work_bytes)(const cg_op *op);
} cg_transformer_;
static const cg_transformer_ *cg_transformer_of_(const cg_op *op); /* in core/rows.h */

static void cg_apply_rotation_(const cg_kernels_ *kernels, const cg_stage *stage, uint64_t key, uint64_t block,
    const float *from, float *v, int inverse) {
    uint32_t flips[96];
    const cg_key_ block_key = cg_block_key_(key ^ CG_ROTATE_SIGN_KEY_, block);
    for (uint32_t i = 0; i < 32u * stage->arg; i++) flips[i] = cg_hash32_(block_key, i);
    CG_KERNEL_(kernels, rotate_from(from, v, flips, stage->arg, inverse));
}
static void cg_apply_dct_(const cg_kernels_ *kernels, const cg_stage *stage, uint64_t key, uint64_t block,
    const float *from, float *v, int inverse) {
    (void)stage;
    (void)key;
    (void)block;
    if (v != from) memcpy(v, from, 4 * CG_DCT_BLOCK_);
    CG_KERNEL_(kernels, dct(v, inverse));
}
/* Transforms block number `block` from `from`, of any alignment, to v, aligned, which may be the same address. The
   result is finite if the values are: a round multiplies the norm by 2^5, and the norm is at most 2^5 times the largest
   value, so that three rounds make at most 2^20 of it; values from 2^107 on are scaled down first. */
static void cg_transform_block_(const cg_kernels_ *kernels, const cg_op *op, uint64_t key, uint64_t block,
    const float *from, float *v, int inverse) {
    const cg_transformer_ *row = cg_transformer_of_(op);
    const size_t block_size = row->block;
    const uint32_t absmax_bits = CG_KERNEL_(kernels, absmax_bits(from, block_size));
    const int huge = absmax_bits >= 0x75000000u && absmax_bits < CG_INF_BITS_; /* 2^107 */
    const float lift = op->transform.arg == 3 ? 1073741824.0f : 1048576.0f;    /* 2^30 for three rounds, 2^20 */
    if (huge)
        for (size_t i = 0; i < block_size; i++) v[i] = cg_times_(cg_load_(from, i), 1.0f / lift);
    row->apply(kernels, &op->transform, key, block, huge ? v : from, v, inverse);
    if (huge)
        for (size_t i = 0; i < block_size; i++) v[i] = cg_saturate_(cg_times_(v[i], lift));
}
