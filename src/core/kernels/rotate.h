/* rotate: the kernel of the randomized Hadamard transform of 1024 values

   Offers   rotate_from
   Needs    base, table, the vector layer
   Touches  nothing but its arguments */

/* rotate_from: `rounds` (1 to 3) times random sign flips, then the Hadamard butterfly, over CG_ROTATE_BLOCK_ values;
   the inverse runs backwards. Bit i % 32 of flips[32*round + i/32] negates v[i] in that round. One multiplication by a
   power of two at the end makes it orthonormal. Within a butterfly the strides come in the order 4, 1, 2, 8, 16, ...,
   512, which suits vectors of eight and of four; as it decides roundings, it is part of the wire format. What overflows
   on the way may end as a NaN of any sign and payload: callers scale down before. from may be v, else they do not
   overlap. */
CG_INLINE_ float cg_rotate_scale_(int rounds) {
    return rounds == 1 ? 0.03125f : rounds == 2 ? 0.0009765625f : 0.000030517578125f; /* 2^-5, 2^-10, 2^-15 */
}
static void cg_flip_scalar_(float *v, const uint32_t *flips) {
    for (size_t i = 0; i < CG_ROTATE_BLOCK_; i++)
        cg_store_(v, i, cg_as_float_(cg_load_bits_(v, i) ^ (flips[i / 32] >> i % 32 & 1u) << 31));
}
CG_INLINE_ void cg_butterfly4_(
    float *v, size_t i, size_t s) { /* strides s, then 2s, of the four values i, i + s, ... */
    float a = cg_load_(v, i), b = cg_load_(v, i + s), c = cg_load_(v, i + 2 * s), d = cg_load_(v, i + 3 * s);
    float ab = cg_plus_(a, b), ba = cg_minus_(a, b), cd = cg_plus_(c, d), dc = cg_minus_(c, d);
    cg_store_(v, i, cg_plus_(ab, cd));
    cg_store_(v, i + s, cg_plus_(ba, dc));
    cg_store_(v, i + 2 * s, cg_minus_(ab, cd));
    cg_store_(v, i + 3 * s, cg_minus_(ba, dc));
}
static void cg_hadamard_scalar_(float *v) {
    for (size_t i = 0; i < CG_ROTATE_BLOCK_; i += 8) {
        for (size_t j = i; j < i + 4; j++) {
            float a = cg_load_(v, j), b = cg_load_(v, j + 4);
            cg_store_(v, j, cg_plus_(a, b));
            cg_store_(v, j + 4, cg_minus_(a, b));
        }
        cg_butterfly4_(v, i, 1);
        cg_butterfly4_(v, i + 4, 1);
    }
    for (size_t s = 8; s < 512; s *= 4)
        for (size_t i = 0; i < CG_ROTATE_BLOCK_; i += 4 * s)
            for (size_t j = i; j < i + s; j++) cg_butterfly4_(v, j, s);
    for (size_t i = 0; i < 512; i++) {
        float a = cg_load_(v, i), b = cg_load_(v, i + 512);
        cg_store_(v, i, cg_plus_(a, b));
        cg_store_(v, i + 512, cg_minus_(a, b));
    }
}
static void cg_rotate_from_scalar_(const float *from, float *v, const uint32_t *flips, int rounds, int inverse) {
    const float scale = cg_rotate_scale_(rounds);
    if (from != v) memcpy(v, from, 4 * CG_ROTATE_BLOCK_);
    for (int r = 0; r < rounds; r++) {
        if (!inverse) cg_flip_scalar_(v, flips + 32 * r);
        cg_hadamard_scalar_(v);
        if (inverse) cg_flip_scalar_(v, flips + 32 * (rounds - 1 - r));
    }
    for (size_t i = 0; i < CG_ROTATE_BLOCK_; i++) cg_store_(v, i, cg_times_(cg_load_(v, i), scale));
}
#if CG_VECTOR_
CG_VECTOR_FN_ void cg_butterfly_(cg_vf_ *a, cg_vf_ *b) {
    const cg_vf_ d = cg_vf_sub_(*a, *b);
    *a = cg_vf_add_(*a, *b);
    *b = d;
}
CG_VECTOR_FN_ void cg_butterfly8_(cg_vf_ *x) { /* three strides between eight vectors */
    cg_butterfly_(x, x + 1);
    cg_butterfly_(x + 2, x + 3);
    cg_butterfly_(x + 4, x + 5);
    cg_butterfly_(x + 6, x + 7);
    cg_butterfly_(x, x + 2);
    cg_butterfly_(x + 1, x + 3);
    cg_butterfly_(x + 4, x + 6);
    cg_butterfly_(x + 5, x + 7);
    cg_butterfly_(x, x + 4);
    cg_butterfly_(x + 1, x + 5);
    cg_butterfly_(x + 2, x + 6);
    cg_butterfly_(x + 3, x + 7);
}
/* Strides up to 32 of the whole block, 64 values at a time, from `from` to v; prefetches 512 values. */
CG_VECTOR_FN_ void cg_hadamard_short_(
    const float *from, float *v, const uint8_t *flips, const float *prefetch, int flip) {
    for (size_t i = 0; i < CG_ROTATE_BLOCK_; i += 64) {
        cg_vf_ x[8];
        cg_prefetch32_(prefetch, i / 2, 0);
        CG_UNROLL_
        for (size_t j = 0; j < 8; j++) x[j] = cg_vf_hadamard_(from, i + 8 * j, flips, flip);
        cg_butterfly8_(x);
        CG_UNROLL_
        for (size_t j = 0; j < 8; j++) cg_vf_store_(v, i + 8 * j, x[j]);
    }
}
/* strides 64, 128, 256: eight vectors, 64 values apart */
CG_VECTOR_FN_ void cg_hadamard_rows_(const float *v, size_t i, cg_vf_ *x) {
    CG_UNROLL_
    for (size_t j = 0; j < 8; j++) x[j] = cg_vf_load_(v, i + 64 * j);
    cg_butterfly8_(x);
}
/* Strides 64 to 512, then flips and scaling where asked for. Sixteen vectors and a spare do not fit the registers of
   AVX2: the first eight are stored meanwhile. */
CG_VECTOR_FN_ void cg_hadamard_long_(
    float *v, const uint8_t *flips, float scale_factor, const float *prefetch, int flip, int rescale) {
    const cg_vf_ scale = cg_vf_set_(scale_factor);
    for (size_t i = 0; i < 64; i += 8) {
        cg_vf_ x[8];
        cg_prefetch32_(prefetch, 8 * i, 0);
        cg_prefetch32_(prefetch, 8 * i, 32);
        cg_hadamard_rows_(v, i, x);
        CG_UNROLL_
        for (size_t j = 0; j < 8; j++) cg_vf_store_(v, i + 64 * j, x[j]);
        cg_hadamard_rows_(v, i + 512, x);
        CG_UNROLL_
        for (size_t j = 0; j < 8; j++) {
            const size_t at = i + 64 * j;
            cg_vf_ a = cg_vf_load_(v, at), b = x[j];
            cg_butterfly_(&a, &b);
            if (flip) {
                a = cg_vf_flip_(a, flips[at / 8]);
                b = cg_vf_flip_(b, flips[at / 8 + 64]);
            }
            cg_vf_store_(v, at, rescale ? cg_vf_mul_(a, scale) : a);
            cg_vf_store_(v, at + 512, rescale ? cg_vf_mul_(b, scale) : b);
        }
    }
}
/* While a block is rotated the next one (the 1024 values after `from`) is prefetched, half of it in each pass of the
   first round. */
CG_VECTOR_FN_ void cg_rotate_from_simd_(const float *from, float *v, const uint32_t *flips, int rounds, int inverse) {
    const float scale = cg_rotate_scale_(rounds), *prefetch = from == v ? v : cg_at_(from, CG_ROTATE_BLOCK_);
    const uint8_t *bits = (const uint8_t *)flips;
    if (inverse) cg_hadamard_short_(from, v, NULL, prefetch, 0);
    else cg_hadamard_short_(from, v, bits, prefetch, 1);
    prefetch = cg_at_(prefetch, 512);
    for (int r = 1; r < rounds; r++) {
        cg_hadamard_long_(v, NULL, 1.0f, prefetch, 0, 0);
        cg_hadamard_short_(v, v, bits + 128 * (inverse ? rounds - r : r), v, 1);
        prefetch = v;
    }
    if (inverse) cg_hadamard_long_(v, bits, scale, prefetch, 1, 1);
    else cg_hadamard_long_(v, NULL, scale, prefetch, 0, 1);
}
#endif
