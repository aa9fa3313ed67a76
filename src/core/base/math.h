/* ---- >>math: correctly rounded, the same bits everywhere; no libm ---- */

CG_INLINE_ int cg_is_finite_(float f) { return (cg_as_bits_(f) & CG_ABS_MASK_) < CG_INF_BITS_; }
CG_INLINE_ float cg_saturate64_(double d) { /* to f32, never Inf */
    return d > (double)CG_FLT_MAX_ ? CG_FLT_MAX_ : d < -(double)CG_FLT_MAX_ ? -CG_FLT_MAX_ : (float)d;
}
#define CG_FADE_BITS_ 0x0d800000u /* the bits of 2^-100 */
CG_INLINE_ float cg_faded_(float v) { return (cg_as_bits_(v) & CG_ABS_MASK_) < CG_FADE_BITS_ ? 0.0f : v; }

CG_INLINE_ double cg_times64_(double a, double b) {
    double p = a * b;
    CG_NO_FMA_(p);
    return p;
}
CG_INLINE_ uint64_t cg_as_bits64_(double d) {
    uint64_t u;
    memcpy(&u, &d, 8);
    return u;
}
CG_INLINE_ double cg_as_double_(uint64_t u) {
    double d;
    memcpy(&d, &u, 8);
    return d;
}
CG_INLINE_ int cg_is_finite64_(double d) { return (cg_as_bits64_(d) >> 52 & 0x7ff) != 0x7ff; }

#if CG_AVX2_ && defined(__SSE2__)
CG_INLINE_ double cg_sqrt_(double x) { return _mm_cvtsd_f64(_mm_sqrt_sd(_mm_setzero_pd(), _mm_set_sd(x))); }
#elif CG_NEON_
CG_INLINE_ double cg_sqrt_(double x) {
    double r;
    __asm__("fsqrt %d0, %d1" : "=w"(r) : "w"(x));
    return r;
}
#else
/* Square root to nearest, of what is not negative and finite; a bit of the root at a time. */
static double cg_sqrt_(double x) {
    uint64_t u = cg_as_bits64_(x), rest = u & (((uint64_t)1 << 52) - 1), root = 0, sum = 0;
    int exponent = (int)(u >> 52);
    if (u == 0 || u >> 63) return 0.0;
    if (exponent) {
        rest |= (uint64_t)1 << 52;
    } else {
        int up = 52 - (int)cg_log2_(rest);
        rest <<= up;
        exponent = 1 - up;
    }
    exponent -= 1023;
    rest <<= 1 + (exponent & 1); /* an even exponent is left, and room for the bit that rounds */
    exponent -= exponent & 1;
    for (uint64_t bit = (uint64_t)1 << 53; bit; bit >>= 1, rest <<= 1) {
        uint64_t t = sum + bit;
        if (t <= rest) {
            sum = t + bit;
            rest -= t;
            root += bit;
        }
    }
    root = (root + (root & 1)) >> 1; /* a tie would need a square of 107 bits */
    return cg_as_double_(root + ((uint64_t)(exponent / 2 + 1022) << 52));
}
#endif

/* Natural logarithm: x = m*2^e, then the series of artanh; good to 1e-15. */
static double cg_ln_(double x) {
    double s, s2, t = 0.0, e = 0.0;
    while (x < 0.7071067811865476) {
        x *= 2.0;
        e -= 0.6931471805599453;
    }
    while (x > 1.4142135623730951) {
        x *= 0.5;
        e += 0.6931471805599453;
    }
    s = (x - 1.0) / (x + 1.0);
    s2 = s * s;
    for (int i = 25; i >= 1; i -= 2) {
        t *= s2;
        CG_NO_FMA_(t);
        t += 1.0 / (double)i;
    }
    t *= 2.0 * s;
    CG_NO_FMA_(t);
    return t + e;
}

/* The mixing step of every hash and random number. */
#define CG_GOLDEN_ 0x9E3779B97F4A7C15u

CG_INLINE_ uint64_t cg_mix64_(uint64_t z) {
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}
