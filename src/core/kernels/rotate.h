/* rotate: the kernel of the randomized Hadamard transform of 1024 values

   Offers   rotate_from
   Needs    base, table
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
#if CG_AVX2_
CG_AVX2_INLINE_ __m256 cg_sign_mask_avx2_(
    int a, int b, int c, int d, int e, int f, int g, int h) { /* -0 where the argument is 1, else +0 */
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_setr_epi32(a, b, c, d, e, f, g, h), 31));
}
/* Row b holds the sign masks of the four bits of b twice, and then their opposites: a vector of eight from 0 on has the
   signs twice, one from 4 on the signs and their opposites. A load and one xor are cheaper than three shifts and
   shuffles, which compete with the additions. */
#  define CG_FLIP_ROW_(a, b, c, d) \
    { a, b, c, d, a, b, c, d, a ^ CG_SIGN_BIT_, b ^ CG_SIGN_BIT_, c ^ CG_SIGN_BIT_, d ^ CG_SIGN_BIT_, 0, 0, 0, 0 }
#  define CG_FLIP_ROWS_(c, d)                                                                               \
    CG_FLIP_ROW_(0u, 0u, c, d), CG_FLIP_ROW_(CG_SIGN_BIT_, 0u, c, d), CG_FLIP_ROW_(0u, CG_SIGN_BIT_, c, d), \
        CG_FLIP_ROW_(CG_SIGN_BIT_, CG_SIGN_BIT_, c, d)
static const uint32_t cg_flip_rows_[16][16] = { CG_FLIP_ROWS_(0u, 0u), CG_FLIP_ROWS_(CG_SIGN_BIT_, 0u),
    CG_FLIP_ROWS_(0u, CG_SIGN_BIT_), CG_FLIP_ROWS_(CG_SIGN_BIT_, CG_SIGN_BIT_) };
/* negates value i of x where bit i of byte is 1 */
CG_AVX2_INLINE_ __m256 cg_flip8_avx2_(__m256 x, uint32_t byte) {
    const __m128i low = cg_load4_avx2_(cg_flip_rows_[byte & 15u]), high = cg_load4_avx2_(cg_flip_rows_[byte >> 4]);
    return _mm256_xor_ps(x, _mm256_castsi256_ps(_mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1)));
}
CG_AVX2_INLINE_ void cg_butterfly_avx2_(__m256 *a, __m256 *b) {
    __m256 d = _mm256_sub_ps(*a, *b);
    *a = _mm256_add_ps(*a, *b);
    *b = d;
}
CG_AVX2_INLINE_ void cg_butterfly8_avx2_(__m256 *x) { /* three strides between eight vectors */
    cg_butterfly_avx2_(x, x + 1);
    cg_butterfly_avx2_(x + 2, x + 3);
    cg_butterfly_avx2_(x + 4, x + 5);
    cg_butterfly_avx2_(x + 6, x + 7);
    cg_butterfly_avx2_(x, x + 2);
    cg_butterfly_avx2_(x + 1, x + 3);
    cg_butterfly_avx2_(x + 4, x + 6);
    cg_butterfly_avx2_(x + 5, x + 7);
    cg_butterfly_avx2_(x, x + 4);
    cg_butterfly_avx2_(x + 1, x + 5);
    cg_butterfly_avx2_(x + 2, x + 6);
    cg_butterfly_avx2_(x + 3, x + 7);
}
/* Strides 4, 1, 2 within the vector at v + i: each lane gets its pair's other value, plus or minus its own. For stride
   4 the loads repeat a half, which needs no shuffle; flips, if asked for, are done on the way. */
CG_AVX2_INLINE_ __m256 cg_hadamard8_avx2_(const float *v, size_t i, const uint32_t *flips, int flip) {
    __m256 x = _mm256_castsi256_ps(_mm256_broadcastsi128_si256(cg_load4_avx2_(cg_at_(v, i))));
    __m256 y = _mm256_castsi256_ps(_mm256_broadcastsi128_si256(cg_load4_avx2_(cg_at_(v, i + 4))));
    if (flip) {
        const uint32_t byte = ((const uint8_t *)flips)[i / 8];
        x = _mm256_xor_ps(x, _mm256_castsi256_ps(cg_load_bytes_avx2_((const uint8_t *)cg_flip_rows_[byte & 15u])));
        y = _mm256_xor_ps(y, _mm256_castsi256_ps(cg_load_bytes_avx2_((const uint8_t *)(cg_flip_rows_[byte >> 4] + 4))));
    } else {
        y = _mm256_xor_ps(y, cg_sign_mask_avx2_(0, 0, 0, 0, 1, 1, 1, 1));
    }
    x = _mm256_add_ps(x, y);
    x = _mm256_add_ps(_mm256_permute_ps(x, 0xb1), _mm256_xor_ps(x, cg_sign_mask_avx2_(0, 1, 0, 1, 0, 1, 0, 1)));
    return _mm256_add_ps(_mm256_permute_ps(x, 0x4e), _mm256_xor_ps(x, cg_sign_mask_avx2_(0, 0, 1, 1, 0, 0, 1, 1)));
}
/* Strides up to 32 of the whole block, 64 values at a time, from `from` to v; prefetches 512 values. */
CG_AVX2_INLINE_ void cg_hadamard_short64_avx2_(
    const float *from, float *v, const uint32_t *flips, const float *prefetch, int flip) {
    for (size_t i = 0; i < CG_ROTATE_BLOCK_; i += 64) {
        __m256 x[8];
        CG_PREFETCH_(cg_at_(prefetch, i / 2));
        CG_PREFETCH_(cg_at_(prefetch, i / 2 + 16));
        x[0] = cg_hadamard8_avx2_(from, i, flips, flip);
        x[1] = cg_hadamard8_avx2_(from, i + 8, flips, flip);
        x[2] = cg_hadamard8_avx2_(from, i + 16, flips, flip);
        x[3] = cg_hadamard8_avx2_(from, i + 24, flips, flip);
        x[4] = cg_hadamard8_avx2_(from, i + 32, flips, flip);
        x[5] = cg_hadamard8_avx2_(from, i + 40, flips, flip);
        x[6] = cg_hadamard8_avx2_(from, i + 48, flips, flip);
        x[7] = cg_hadamard8_avx2_(from, i + 56, flips, flip);
        cg_butterfly8_avx2_(x);
        cg_store8_avx2_(v, i, x[0]);
        cg_store8_avx2_(v, i + 8, x[1]);
        cg_store8_avx2_(v, i + 16, x[2]);
        cg_store8_avx2_(v, i + 24, x[3]);
        cg_store8_avx2_(v, i + 32, x[4]);
        cg_store8_avx2_(v, i + 40, x[5]);
        cg_store8_avx2_(v, i + 48, x[6]);
        cg_store8_avx2_(v, i + 56, x[7]);
    }
}
/* strides 64, 128, 256: eight vectors, 64 values apart */
CG_AVX2_INLINE_ void cg_hadamard_rows_avx2_(const float *v, size_t i, __m256 *x) {
    x[0] = cg_load8_ps_avx2_(v, i);
    x[1] = cg_load8_ps_avx2_(v, i + 64);
    x[2] = cg_load8_ps_avx2_(v, i + 128);
    x[3] = cg_load8_ps_avx2_(v, i + 192);
    x[4] = cg_load8_ps_avx2_(v, i + 256);
    x[5] = cg_load8_ps_avx2_(v, i + 320);
    x[6] = cg_load8_ps_avx2_(v, i + 384);
    x[7] = cg_load8_ps_avx2_(v, i + 448);
    cg_butterfly8_avx2_(x);
}
/* Stride 512 between v + i and b, then flips and scaling where asked for; stores both. */
CG_AVX2_INLINE_ void cg_hadamard_last_avx2_(
    float *v, size_t i, __m256 b, const uint32_t *flips, __m256 scale, int flip, int rescale) {
    __m256 a = cg_load8_ps_avx2_(v, i);
    cg_butterfly_avx2_(&a, &b);
    if (flip) {
        a = cg_flip8_avx2_(a, ((const uint8_t *)flips)[i / 8]);
        b = cg_flip8_avx2_(b, ((const uint8_t *)flips)[i / 8 + 64]);
    }
    cg_store8_avx2_(v, i, rescale ? _mm256_mul_ps(a, scale) : a);
    cg_store8_avx2_(v, i + 512, rescale ? _mm256_mul_ps(b, scale) : b);
}
/* Strides 64 to 512. Sixteen vectors and a spare do not fit the registers: the first eight are stored meanwhile. */
CG_AVX2_INLINE_ void cg_hadamard_long64_avx2_(
    float *v, const uint32_t *flips, float scale_factor, const float *prefetch, int flip, int rescale) {
    const __m256 scale = _mm256_set1_ps(scale_factor);
    for (size_t i = 0; i < 64; i += 8) {
        __m256 x[8];
        CG_PREFETCH_(cg_at_(prefetch, 8 * i));
        CG_PREFETCH_(cg_at_(prefetch, 8 * i + 16));
        CG_PREFETCH_(cg_at_(prefetch, 8 * i + 32));
        CG_PREFETCH_(cg_at_(prefetch, 8 * i + 48));
        cg_hadamard_rows_avx2_(v, i, x);
        cg_store8_avx2_(v, i, x[0]);
        cg_store8_avx2_(v, i + 64, x[1]);
        cg_store8_avx2_(v, i + 128, x[2]);
        cg_store8_avx2_(v, i + 192, x[3]);
        cg_store8_avx2_(v, i + 256, x[4]);
        cg_store8_avx2_(v, i + 320, x[5]);
        cg_store8_avx2_(v, i + 384, x[6]);
        cg_store8_avx2_(v, i + 448, x[7]);
        cg_hadamard_rows_avx2_(v, i + 512, x);
        cg_hadamard_last_avx2_(v, i, x[0], flips, scale, flip, rescale);
        cg_hadamard_last_avx2_(v, i + 64, x[1], flips, scale, flip, rescale);
        cg_hadamard_last_avx2_(v, i + 128, x[2], flips, scale, flip, rescale);
        cg_hadamard_last_avx2_(v, i + 192, x[3], flips, scale, flip, rescale);
        cg_hadamard_last_avx2_(v, i + 256, x[4], flips, scale, flip, rescale);
        cg_hadamard_last_avx2_(v, i + 320, x[5], flips, scale, flip, rescale);
        cg_hadamard_last_avx2_(v, i + 384, x[6], flips, scale, flip, rescale);
        cg_hadamard_last_avx2_(v, i + 448, x[7], flips, scale, flip, rescale);
    }
}
CG_TARGET_AVX2_ static void cg_hadamard_short_avx2_(const float *from, float *v, const float *prefetch) {
    cg_hadamard_short64_avx2_(from, v, NULL, prefetch, 0);
}
CG_TARGET_AVX2_ static void cg_hadamard_short_flip_avx2_(
    const float *from, float *v, const uint32_t *flips, const float *prefetch) {
    cg_hadamard_short64_avx2_(from, v, flips, prefetch, 1);
}
CG_TARGET_AVX2_ static void cg_hadamard_long_avx2_(float *v, const float *prefetch) {
    cg_hadamard_long64_avx2_(v, NULL, 1.0f, prefetch, 0, 0);
}
CG_TARGET_AVX2_ static void cg_hadamard_long_scale_avx2_(float *v, float scale, const float *prefetch) {
    cg_hadamard_long64_avx2_(v, NULL, scale, prefetch, 0, 1);
}
CG_TARGET_AVX2_ static void cg_hadamard_long_flip_avx2_(
    float *v, const uint32_t *flips, float scale, const float *prefetch) {
    cg_hadamard_long64_avx2_(v, flips, scale, prefetch, 1, 1);
}
/* While a block is rotated the next one (the 1024 values after `from`) is prefetched, half of it in each pass of the
   first round. */
CG_TARGET_AVX2_ static void cg_rotate_from_avx2_(
    const float *from, float *v, const uint32_t *flips, int rounds, int inverse) {
    const float scale = cg_rotate_scale_(rounds), *prefetch = from == v ? v : cg_at_(from, CG_ROTATE_BLOCK_);
    if (inverse) cg_hadamard_short_avx2_(from, v, prefetch);
    else cg_hadamard_short_flip_avx2_(from, v, flips, prefetch);
    prefetch = cg_at_(prefetch, 512);
    for (int r = 1; r < rounds; r++) {
        cg_hadamard_long_avx2_(v, prefetch);
        cg_hadamard_short_flip_avx2_(v, v, flips + 32 * (inverse ? rounds - r : r), v);
        prefetch = v;
    }
    if (inverse) cg_hadamard_long_flip_avx2_(v, flips, scale, prefetch);
    else cg_hadamard_long_scale_avx2_(v, scale, prefetch);
}
#endif
#if CG_NEON_
CG_INLINE_ float32x4_t cg_flip4_neon_(
    float32x4_t x, uint32_t word) { /* negates value i of x where bit i of word is 1, i < 4 */
    const int32x4_t up = { 31, 30, 29, 28 };
    return cg_as_float_neon_(
        veorq_u32(vreinterpretq_u32_f32(x), vandq_u32(vshlq_u32(vdupq_n_u32(word), up), vdupq_n_u32(CG_SIGN_BIT_))));
}
CG_INLINE_ void cg_butterfly_neon_(float32x4_t *a, float32x4_t *b) {
    float32x4_t d = *a - *b;
    *a = *a + *b;
    *b = d;
}
CG_INLINE_ void cg_butterfly_x4_neon_(
    float32x4_t *x, size_t s) { /* all four pairs of eight vectors that are s apart; s is 1, 2 or 4 */
    cg_butterfly_neon_(x, x + s);
    cg_butterfly_neon_(x + (s == 1 ? 2 : 1), x + s + (s == 1 ? 2 : 1));
    cg_butterfly_neon_(x + (s == 4 ? 2 : 4), x + s + (s == 4 ? 2 : 4));
    cg_butterfly_neon_(x + (s == 4 ? 3 : s == 2 ? 5 : 6), x + s + (s == 4 ? 3 : s == 2 ? 5 : 6));
}
/* strides 1, 2 within a vector: each lane gets its pair's other value, plus or minus its own */
CG_INLINE_ float32x4_t cg_hadamard4_neon_(float32x4_t x) {
    const uint32x4_t odd = { 0, CG_SIGN_BIT_, 0, CG_SIGN_BIT_ }, high = { 0, 0, CG_SIGN_BIT_, CG_SIGN_BIT_ };
    x = vrev64q_f32(x) + cg_as_float_neon_(veorq_u32(vreinterpretq_u32_f32(x), odd));
    return vextq_f32(x, x, 2) + cg_as_float_neon_(veorq_u32(vreinterpretq_u32_f32(x), high));
}
/* strides 4, 1, 2, 8, 16 of the 32 values at v + i, to x; flips before where asked for */
CG_INLINE_ void cg_hadamard_short32_neon_(const float *v, size_t i, const uint32_t *flips, float32x4_t *x, int flip) {
    x[0] = cg_as_float_neon_(cg_load4_neon_(v, i));
    x[1] = cg_as_float_neon_(cg_load4_neon_(v, i + 4));
    x[2] = cg_as_float_neon_(cg_load4_neon_(v, i + 8));
    x[3] = cg_as_float_neon_(cg_load4_neon_(v, i + 12));
    x[4] = cg_as_float_neon_(cg_load4_neon_(v, i + 16));
    x[5] = cg_as_float_neon_(cg_load4_neon_(v, i + 20));
    x[6] = cg_as_float_neon_(cg_load4_neon_(v, i + 24));
    x[7] = cg_as_float_neon_(cg_load4_neon_(v, i + 28));
    if (flip) {
        const uint32_t w = flips[i / 32];
        x[0] = cg_flip4_neon_(x[0], w);
        x[1] = cg_flip4_neon_(x[1], w >> 4);
        x[2] = cg_flip4_neon_(x[2], w >> 8);
        x[3] = cg_flip4_neon_(x[3], w >> 12);
        x[4] = cg_flip4_neon_(x[4], w >> 16);
        x[5] = cg_flip4_neon_(x[5], w >> 20);
        x[6] = cg_flip4_neon_(x[6], w >> 24);
        x[7] = cg_flip4_neon_(x[7], w >> 28);
    }
    cg_butterfly_x4_neon_(x, 1);
    x[0] = cg_hadamard4_neon_(x[0]);
    x[1] = cg_hadamard4_neon_(x[1]);
    x[2] = cg_hadamard4_neon_(x[2]);
    x[3] = cg_hadamard4_neon_(x[3]);
    x[4] = cg_hadamard4_neon_(x[4]);
    x[5] = cg_hadamard4_neon_(x[5]);
    x[6] = cg_hadamard4_neon_(x[6]);
    x[7] = cg_hadamard4_neon_(x[7]);
    cg_butterfly_x4_neon_(x, 2);
    cg_butterfly_x4_neon_(x, 4);
}
/* strides up to 32 of the whole block */
CG_INLINE_ void cg_hadamard_short64_neon_(float *v, const uint32_t *flips, int flip) {
    for (size_t i = 0; i < CG_ROTATE_BLOCK_; i += 64) {
        float32x4_t x[8], y[8];
        cg_hadamard_short32_neon_(v, i, flips, x, flip);
        cg_hadamard_short32_neon_(v, i + 32, flips, y, flip);
        for (size_t j = 0; j < 8; j++) {
            cg_store4_neon_(v, i + 4 * j, x[j] + y[j]);
            cg_store4_neon_(v, i + 4 * j + 32, x[j] - y[j]);
        }
    }
}
/* strides 64, 128, 256: eight vectors, 64 values apart */
CG_INLINE_ void cg_hadamard_rows_neon_(const float *v, size_t i, float32x4_t *x) {
    x[0] = cg_as_float_neon_(cg_load4_neon_(v, i));
    x[1] = cg_as_float_neon_(cg_load4_neon_(v, i + 64));
    x[2] = cg_as_float_neon_(cg_load4_neon_(v, i + 128));
    x[3] = cg_as_float_neon_(cg_load4_neon_(v, i + 192));
    x[4] = cg_as_float_neon_(cg_load4_neon_(v, i + 256));
    x[5] = cg_as_float_neon_(cg_load4_neon_(v, i + 320));
    x[6] = cg_as_float_neon_(cg_load4_neon_(v, i + 384));
    x[7] = cg_as_float_neon_(cg_load4_neon_(v, i + 448));
    cg_butterfly_x4_neon_(x, 1);
    cg_butterfly_x4_neon_(x, 2);
    cg_butterfly_x4_neon_(x, 4);
}
/* strides 64 to 512, then flips where asked for, then scaling */
CG_INLINE_ void cg_hadamard_long64_neon_(float *v, const uint32_t *flips, float scale_factor, int flip) {
    const float32x4_t scale = vdupq_n_f32(scale_factor);
    for (size_t i = 0; i < 64; i += 4) {
        float32x4_t x[8], y[8];
        cg_hadamard_rows_neon_(v, i, x);
        cg_hadamard_rows_neon_(v, i + 512, y);
        for (size_t j = 0; j < 8; j++) {
            float32x4_t a = x[j] + y[j], b = x[j] - y[j];
            const size_t at = i + 64 * j;
            if (flip) {
                a = cg_flip4_neon_(a, flips[at / 32] >> at % 32);
                b = cg_flip4_neon_(b, flips[at / 32 + 16] >> at % 32);
            }
            cg_store4_neon_(v, at, a * scale);
            cg_store4_neon_(v, at + 512, b * scale);
        }
    }
}
static void cg_rotate_from_neon_(const float *from, float *v, const uint32_t *flips, int rounds, int inverse) {
    const float scale = cg_rotate_scale_(rounds);
    if (from != v) memcpy(v, from, 4 * CG_ROTATE_BLOCK_);
    if (inverse) cg_hadamard_short64_neon_(v, NULL, 0);
    else cg_hadamard_short64_neon_(v, flips, 1);
    for (int r = 1; r < rounds; r++) {
        cg_hadamard_long64_neon_(v, NULL, 1.0f, 0);
        cg_hadamard_short64_neon_(v, flips + 32 * (inverse ? rounds - r : r), 1);
    }
    if (inverse) cg_hadamard_long64_neon_(v, flips, scale, 1);
    else cg_hadamard_long64_neon_(v, NULL, scale, 0);
}
#endif
