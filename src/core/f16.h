/* f16: vectors of f16 and bf16 to f32 and back, for callers

   Offers   cg_f16_from_f32, cg_f16_to_f32, cg_bf16_from_f32, cg_bf16_to_f32
   Needs    base, kernels
   Touches  the caller's output
   Kernels read and write halves as the packet has them, little-endian; these functions as the machine has them. */

/* Between little-endian and the byte order of the machine, in place; half may have any alignment. */
static void cg_swap16_(uint16_t *half, size_t n) {
    for (size_t i = 0; CG_BIG_ENDIAN_ && i < n; i++) {
        uint16_t h = cg_get16_((const uint8_t *)half + 2 * i);
        memcpy((uint8_t *)half + 2 * i, &h, 2);
    }
}
CG_API_ void cg_f16_from_f32(const float *x, size_t n, uint16_t *half) {
    cg_fenv_ env = cg_fenv_enter_();
    if (n) CG_KERNEL_(cg_kernels_now_(), f16_encode(x, n, (uint8_t *)half));
    cg_swap16_(half, n);
    cg_fenv_leave_(env);
}
CG_API_ void cg_bf16_from_f32(const float *x, size_t n, uint16_t *half) {
    if (n) CG_KERNEL_(cg_kernels_now_(), bf16_encode(x, n, (uint8_t *)half));
    cg_swap16_(half, n);
}
/* By chunks, as a big-endian machine needs a little-endian copy. */
static void cg_widen_(int is_bf16, const uint16_t *half, size_t n, float *x) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    uint16_t wire[CG_CHUNK_];
    cg_fenv_ env = cg_fenv_enter_();
    for (size_t i = 0, many; i < n; i += many) {
        const uint8_t *in = (const uint8_t *)half + 2 * i;
        many = cg_min_(CG_CHUNK_, n - i);
        if (CG_BIG_ENDIAN_) {
            memcpy(wire, in, 2 * many);
            cg_swap16_(wire, many);
            in = (const uint8_t *)wire;
        }
        if (is_bf16) CG_KERNEL_(kernels, bf16_decode(in, many, cg_at_mut_(x, i), 0));
        else CG_KERNEL_(kernels, f16_decode(in, many, cg_at_mut_(x, i), 0));
    }
    cg_fenv_leave_(env);
}
CG_API_ void cg_f16_to_f32(const uint16_t *half, size_t n, float *x) { cg_widen_(0, half, n, x); }
CG_API_ void cg_bf16_to_f32(const uint16_t *half, size_t n, float *x) { cg_widen_(1, half, n, x); }
