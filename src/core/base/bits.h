/* bits: byte order, bit patterns of floats, and integer arithmetic that sticks at its maximum

   Offers   sizes of chunk, block and wave; loads and stores of the little-endian wire and of unaligned floats;
            log2, ctz and popcount; the 64-bit mixing step of hashes; sums and products of sizes that saturate
   Needs    platform
   Touches  nothing but its arguments
   Every header may use all of it, as all of base. The intrinsics are included here, after fp_begin: their inline
   functions then have its floating-point flags, unless the includer has read them before. */

#if CG_AVX2_
#  include <immintrin.h>
#endif
#if CG_NEON_
#  include <arm_neon.h>
#endif
#if CG_WASM_
#  include <wasm_simd128.h>
#endif

#define CG_CHUNK_ 2048u        /* values that are worked on while they stay in L1 */
#define CG_BLOCK_ 65536u       /* values per block: the granularity of random keys, of summation order and of threads */
#define CG_ROTATE_BLOCK_ 1024u /* values that are rotated together */
#define CG_DCT_BLOCK_ 64u      /* values of one DCT */
#define CG_SKETCH_LINE_ 256u   /* values that a sketch hashes together */
#define CG_SKETCH_MAX_ROWS_ 15
#define CG_WAVE_ 64u             /* blocks whose partial results are held at once */
#define CG_INF_BITS_ 0x7f800000u /* magnitude bits of Inf; those of a NaN are larger */
#define CG_ABS_MASK_ 0x7fffffffu
#define CG_SIGN_BIT_ 0x80000000u
#define CG_FLT_MAX_ 3.402823466e+38f

/* Is the reserve of a public struct as it must be? */
CG_OFFERED_ int cg_all_zero_(const uint64_t *words, size_t count) {
    uint64_t any = 0;
    for (size_t i = 0; i < count; i++) any |= words[i];
    return !any;
}
#define CG_RESERVE_IS_ZERO_(r) cg_all_zero_((r), sizeof(r) / sizeof *(r))
/* The wire is little-endian, and p may be any address. */
CG_INLINE_ uint16_t cg_get16_(const uint8_t *p) { return (uint16_t)(p[0] | (unsigned)p[1] << 8); }
CG_INLINE_ uint32_t cg_get32_(const uint8_t *p) {
#if CG_BIG_ENDIAN_
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
#else
    uint32_t v;
    memcpy(&v, p, 4);
    return v;
#endif
}
CG_INLINE_ uint64_t cg_get64_(const uint8_t *p) { return cg_get32_(p) | (uint64_t)cg_get32_(p + 4) << 32; }
CG_INLINE_ void cg_put16_(uint8_t *p, uint32_t v) { /* the low 16 bits of v */
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}
CG_INLINE_ void cg_put32_(uint8_t *p, uint32_t v) {
#if CG_BIG_ENDIAN_
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
    p[2] = (uint8_t)(v >> 16);
    p[3] = (uint8_t)(v >> 24);
#else
    memcpy(p, &v, 4);
#endif
}
CG_INLINE_ void cg_put64_(uint8_t *p, uint64_t v) {
    cg_put32_(p, (uint32_t)v);
    cg_put32_(p + 4, (uint32_t)(v >> 32));
}

CG_INLINE_ uint32_t cg_as_bits_(float f) {
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}
CG_INLINE_ float cg_as_float_(uint32_t u) {
    float f;
    memcpy(&f, &u, 4);
    return f;
}

/* v with its sign flipped if sign is CG_SIGN_BIT_, not if it is 0. */
CG_INLINE_ float cg_xor_sign_(float v, uint32_t sign) { return cg_as_float_(cg_as_bits_(v) ^ sign); }

/* Value i of an array of floats of the machine's byte order, which may lie at any address: the caller's vectors are
   never accessed as float lvalues. */
CG_INLINE_ float cg_load_(const float *v, size_t i) {
    float f;
    memcpy(&f, (const uint8_t *)v + 4 * i, 4);
    return f;
}
CG_INLINE_ uint32_t cg_load_bits_(const float *v, size_t i) {
    uint32_t u;
    memcpy(&u, (const uint8_t *)v + 4 * i, 4);
    return u;
}
CG_INLINE_ void cg_store_(float *v, size_t i, float f) { memcpy((uint8_t *)v + 4 * i, &f, 4); }
/* v + i, computed in bytes: on a pointer that is not aligned for float the C operator would be undefined. */
CG_INLINE_ const float *cg_at_(const float *v, size_t i) {
    return (const float *)(const void *)((const uint8_t *)v + 4 * i);
}
CG_INLINE_ float *cg_at_mut_(float *v, size_t i) { return (float *)(void *)((uint8_t *)v + 4 * i); }

CG_INLINE_ size_t cg_min_(size_t a, size_t b) { return a < b ? a : b; }
CG_INLINE_ uint64_t cg_max64_(uint64_t a, uint64_t b) { return a > b ? a : b; }
CG_INLINE_ uint32_t cg_max32_(uint32_t a, uint32_t b) { return a > b ? a : b; }

/* a/b, rounded down or up, without the division where there is less than one b: it would be seen on short vectors. */
CG_INLINE_ size_t cg_quotient_(size_t a, size_t b) { return a < b ? 0 : a / b; }
CG_INLINE_ uint64_t cg_quotient_up_(uint64_t a, uint64_t b) { return a <= b ? a != 0 : a / b + (a % b != 0); }
CG_INLINE_ unsigned cg_log2_(uint64_t v) { /* rounded down; v > 0 */
#if defined(__GNUC__)
    return 63u - (unsigned)__builtin_clzll(v);
#else
    unsigned l = 0;
    while (v >>= 1) l++;
    return l;
#endif
}
CG_INLINE_ unsigned cg_ctz_(uint64_t v) { /* zeros below the lowest 1; v > 0 */
#if defined(__GNUC__)
    return (unsigned)__builtin_ctzll(v);
#else
    unsigned c = 0;
    while (!(v & 1)) {
        v >>= 1;
        c++;
    }
    return c;
#endif
}
CG_INLINE_ unsigned cg_popcount_(uint64_t v) {
    v = v - (v >> 1 & 0x5555555555555555u);
    v = (v & 0x3333333333333333u) + (v >> 2 & 0x3333333333333333u);
    v = (v + (v >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    return (unsigned)(v * 0x0101010101010101u >> 56);
}

/* The mixing step of every hash and random key (SplitMix64's finalizer and increment): a bijection of 64 bits. */
#define CG_GOLDEN_ 0x9E3779B97F4A7C15u
CG_INLINE_ uint64_t cg_mix64_(uint64_t z) {
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

/* Sizes: sums and products that overflow become CG_TOO_LARGE_ and stay there: one check at the end is enough. */
#define CG_TOO_LARGE_ UINT64_MAX
CG_INLINE_ uint64_t cg_add_sat_(uint64_t a, uint64_t b) { return a > CG_TOO_LARGE_ - b ? CG_TOO_LARGE_ : a + b; }
CG_INLINE_ uint64_t cg_mul_sat_(uint64_t a, uint64_t b) {
    if (CG_LIKELY_(!((a | b) >> 32))) return a * b; /* a division takes longer */
    return b && a > CG_TOO_LARGE_ / b ? CG_TOO_LARGE_ : a * b;
}
CG_INLINE_ uint64_t cg_word_bytes_(uint64_t bits) { /* bytes of the whole u32 words that hold so many bits */
    return bits == CG_TOO_LARGE_ ? bits : (bits / 32 + (bits % 32 != 0)) * 4;
}
/* A number of bytes as public functions return it: 0 for one that no array can have. */
CG_INLINE_ size_t cg_size_or_zero_(uint64_t bytes) { return bytes > SIZE_MAX / 2 ? 0 : (size_t)bytes; }
