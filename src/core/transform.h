/* transform: one block of values rotated or transformed to frequencies, and back

   Offers   cg_transform_block_
   Needs    base, random, kernels (rotate, dct)
   Touches  nothing but its arguments */

#define CG_ROTATE_SIGN_KEY_ 0x6A09E667F3BCC909u /* so that the signs of a rotation differ from the hashes of a sample */

/* Transforms block number `block` from `from`, of any alignment, to v, aligned, which may be the same address. The
   result is finite if the values are: a round multiplies the norm by 2^5, and the norm is at most 2^5 times the largest
   value, so that three rounds make at most 2^20 of it; values from 2^107 on are scaled down first. */
static void cg_transform_block_(const cg_kernels_ *kernels, const cg_stage *stage, uint64_t key, uint64_t block,
    const float *from, float *v, int inverse) {
    const int rotate = stage->id == CG_TRANSFORM_ROTATE;
    const size_t block_size = rotate ? CG_ROTATE_BLOCK_ : CG_DCT_BLOCK_;
    const uint32_t absmax_bits = kernels->absmax_bits(from, block_size);
    const int huge = absmax_bits >= 0x75000000u && absmax_bits < CG_INF_BITS_; /* 2^107 */
    const float lift = rotate && stage->arg == 3 ? 1073741824.0f : 1048576.0f; /* 2^30, 2^20 */
    if (huge)
        for (size_t i = 0; i < block_size; i++) v[i] = cg_times_(cg_load_(from, i), 1.0f / lift);
    if (rotate) {
        uint32_t flips[96];
        const cg_key_ block_key = cg_block_key_(key ^ CG_ROTATE_SIGN_KEY_, block);
        for (uint32_t i = 0; i < 32u * stage->arg; i++) flips[i] = cg_hash32_(block_key, i);
        kernels->rotate_from(huge ? v : from, v, flips, stage->arg, inverse);
    } else {
        if (!huge && v != from) memcpy(v, from, 4 * block_size);
        kernels->dct(v, inverse);
    }
    if (huge)
        for (size_t i = 0; i < block_size; i++) v[i] = cg_saturate_(cg_times_(v[i], lift));
}
