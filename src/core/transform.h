/* ---- >>transform: blocks of 1024 rotated, or of 64 to frequencies, and back ---- */

#define CG_ROTATE_SIGN_KEY_ 0x6A09E667F3BCC909u /* signs of a rotation are not the draws of a sample */

/* One block, from where it lies. Sums of 2^10 values, twice, must not overflow. */
static void cg_transform_block_(const cg_kernels_ *kernels, const cg_stage *stage, uint64_t key, uint64_t block,
    const float *from, float *v, int inverse) {
    const int rotate = stage->id == CG_TRANSFORM_ROTATE;
    const size_t unit = rotate ? CG_ROTATE_BLOCK_ : CG_DCT_BLOCK_;
    const uint32_t top = kernels->absmax_bits(from, unit);
    const int huge = top >= 0x75000000u && top < CG_INF_BITS_; /* 2^107 */
    /* 2^-20 */
    if (huge)
        for (size_t i = 0; i < unit; i++) v[i] = cg_times_(cg_load_(from, i), 9.5367431640625e-07f);
    if (rotate) {
        uint32_t flips[64];
        const cg_key_ k = cg_block_key_(key ^ CG_ROTATE_SIGN_KEY_, block);
        for (uint32_t i = 0; i < 32u * stage->arg; i++) flips[i] = cg_hash32_(k, i);
        kernels->rotate_from(huge ? v : from, v, flips, stage->arg, inverse);
    } else {
        if (!huge && v != from) memcpy(v, from, 4 * unit);
        kernels->dct(v, inverse);
    }
    if (huge)
        for (size_t i = 0; i < unit; i++) v[i] = cg_saturate_(cg_times_(v[i], 1048576.0f));
}
