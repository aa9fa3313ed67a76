/* math: float and double arithmetic with one rounding per operation, the same bits on every machine; no libm

   Offers   sums and products of floats, finite checks, saturation to finite values, fading, square root, logarithm
   Needs    platform, bits
   Touches  nothing but its arguments
   Every header may use all of it, as all of base. Finite checks look at bits: an includer's fast math would take
   comparisons with Inf or NaN for constants. */

/* clang's back end fuses a product with a sum under -ffp-contract=fast, whatever the pragmas of fp_begin say. An empty
   asm statement hides the product from it. AVX-512 has the instruction, and what its kernels call is inlined there. */
#if defined(__clang__) && (defined(__FMA__) || CG_AVX512_)
#  define CG_NO_FMA_(product) __asm__("" : "+x"(product))
#elif defined(__clang__) && defined(__aarch64__)
#  define CG_NO_FMA_(product) __asm__("" : "+w"(product))
#else
#  define CG_NO_FMA_(product) ((void)0)
#endif

/* One rounding each, also where the compiler evaluates float expressions in double (FLT_EVAL_METHOD 1). */
CG_INLINE_ float cg_plus_(float a, float b) { return (float)(a + b); }
CG_INLINE_ float cg_minus_(float a, float b) { return (float)(a - b); }
CG_INLINE_ float cg_times_(float a, float b) {
    float p = a * b;
    CG_NO_FMA_(p);
    return p;
}
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
CG_INLINE_ int cg_is_finite_(float f) { return (cg_as_bits_(f) & CG_ABS_MASK_) < CG_INF_BITS_; }
CG_INLINE_ int cg_is_finite64_(double d) { return (cg_as_bits64_(d) >> 52 & 0x7ff) != 0x7ff; }

/* Inf becomes the largest finite value of its sign; all else, NaN too, stays. */
CG_INLINE_ float cg_saturate_(float v) {
    uint32_t u = cg_as_bits_(v);
    return cg_as_float_(u - ((u & CG_ABS_MASK_) == CG_INF_BITS_));
}
/* To f32: what is beyond its range becomes the largest finite value of its sign; a NaN stays. */
CG_INLINE_ float cg_saturate64_(double d) {
    return d > (double)CG_FLT_MAX_ ? CG_FLT_MAX_ : d < -(double)CG_FLT_MAX_ ? -CG_FLT_MAX_ : (float)d;
}

/* Fading: magnitudes below 2^-100 become +0. Rounding would otherwise keep a decaying value among the denormals,
   which are slow, for ever. */
#define CG_FADE_BITS_ 0x0d800000u /* the bits of 2^-100 */
CG_INLINE_ float cg_faded_(float v) { return (cg_as_bits_(v) & CG_ABS_MASK_) < CG_FADE_BITS_ ? 0.0f : v; }

/* Square root, correctly rounded; x is finite and not negative. */
#if CG_AVX2_ && defined(__SSE2__)
CG_INLINE_ double cg_sqrt_(double x) { return _mm_cvtsd_f64(_mm_sqrt_sd(_mm_setzero_pd(), _mm_set_sd(x))); }
#elif CG_NEON_
CG_INLINE_ double cg_sqrt_(double x) {
    double r;
    __asm__("fsqrt %d0, %d1" : "=w"(r) : "w"(x));
    return r;
}
#else
static double cg_sqrt_(double x) { /* a bit of the root at a time */
    uint64_t u = cg_as_bits64_(x), remainder = u & (((uint64_t)1 << 52) - 1), root = 0, sum = 0;
    int exponent = (int)(u >> 52);
    if (u == 0 || u >> 63) return 0.0;
    if (exponent) {
        remainder |= (uint64_t)1 << 52;
    } else { /* a denormal: its leading bit to bit 52 */
        int shift = 52 - (int)cg_log2_(remainder);
        remainder <<= shift;
        exponent = 1 - shift;
    }
    exponent -= 1023;
    remainder <<= 1 + (exponent & 1); /* an even exponent is left, and room for the bit that rounds */
    exponent -= exponent & 1;
    for (uint64_t bit = (uint64_t)1 << 53; bit; bit >>= 1, remainder <<= 1) {
        uint64_t t = sum + bit;
        if (t <= remainder) {
            sum = t + bit;
            remainder -= t;
            root += bit;
        }
    }
    root = (root + (root & 1)) >> 1; /* there are no ties: the root of one would square to more bits than x has */
    return cg_as_double_(root + ((uint64_t)(exponent / 2 + 1022) << 52));
}
#endif

/* Natural logarithm of a positive finite x (others would loop for ever): x = m*2^e, then the series of artanh for m.
   The error is below 1e-15. */
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
