/* sums: kernels that sum in f64 in an order that all ISAs share, and the axpby of error feedback

   Offers   lane_sum with CG_SUM_*, axpby_fading with CG_AXPBY_*; cg_lanes_reduce_
   Needs    base, table, axpby
   Touches  nothing but its arguments
   Other headers may use: cg_axpby_fading_, cg_axpby_fading_energy_x_, cg_axpby_fading_energy_y_,
   cg_axpy_faded_energy_y_ */

/* The term of a value in lane_sum. */
enum {
    CG_SUM_ABS_,         /* its magnitude */
    CG_SUM_SQUARES_,     /* its square */
    CG_SUM_NEGATIVE_,    /* itself if it is below 0, else +0 */
    CG_SUM_NONNEGATIVE_, /* itself if it is at least 0 (-0 is), else +0; a NaN is +0 in both */
    CG_SUM_VALUES_       /* itself */
};
/* One number of 16 lanes, which are overwritten: halves are added until one lane is left. */
CG_INLINE_ double cg_lanes_reduce_(double *lanes) {
    for (int w = 8; w; w /= 2)
        for (int i = 0; i < w; i++) lanes[i] += lanes[i + w];
    return lanes[0];
}
/* lane_sum: adds the term of v[i] to lanes[i % 16] in f64; to sum up a longer vector, all calls but the last have
   n % 16 == 0. */
static void cg_lane_sum_scalar_(const float *v, size_t n, int term, double *lanes) {
    for (size_t i = 0; i < n; i++) {
        const uint32_t u = cg_load_bits_(v, i);
        const double d = (double)cg_as_float_(u);
        double *lane = lanes + i % 16;
        switch (term) {
        case CG_SUM_ABS_: *lane += (double)cg_as_float_(u & CG_ABS_MASK_); break;
        /* the product is exact: fused or not, the sum is the same */
        case CG_SUM_SQUARES_: *lane += d * d; break;
        /* f < 0 and f >= 0 by bits: of comparisons clang makes a minimum (AArch64), which differs for -0 and NaN */
        case CG_SUM_NEGATIVE_: *lane += (double)cg_as_float_(u - 0x80000001u < CG_INF_BITS_ ? u : 0u); break;
        case CG_SUM_NONNEGATIVE_: *lane += (double)cg_as_float_(u <= CG_INF_BITS_ || u == CG_SIGN_BIT_ ? u : 0u); break;
        default: *lane += d;
        }
    }
}
#if CG_AVX2_
/* terms of four values */
CG_AVX2_INLINE_ __m256d cg_lane_sum_term_avx2_(const float *v, size_t i, int term) {
    const __m256d d = _mm256_cvtps_pd(_mm_castsi128_ps(cg_load4_avx2_(cg_at_(v, i))));
    switch (term) {
    case CG_SUM_ABS_: return _mm256_andnot_pd(_mm256_set1_pd(-0.0), d);
    case CG_SUM_SQUARES_: return _mm256_mul_pd(d, d);
    case CG_SUM_NEGATIVE_: return _mm256_and_pd(d, _mm256_cmp_pd(d, _mm256_setzero_pd(), _CMP_LT_OQ));
    case CG_SUM_NONNEGATIVE_: return _mm256_and_pd(d, _mm256_cmp_pd(d, _mm256_setzero_pd(), _CMP_GE_OQ));
    default: return d;
    }
}
CG_AVX2_INLINE_ size_t cg_lane_sum16_avx2_(const float *v, size_t n, double *lanes, int term) {
    __m256d s0 = _mm256_loadu_pd(lanes), s1 = _mm256_loadu_pd(lanes + 4), s2 = _mm256_loadu_pd(lanes + 8),
            s3 = _mm256_loadu_pd(lanes + 12);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        CG_PREFETCH_(cg_at_(v, i + 1536));
        s0 = _mm256_add_pd(s0, cg_lane_sum_term_avx2_(v, i, term));
        s1 = _mm256_add_pd(s1, cg_lane_sum_term_avx2_(v, i + 4, term));
        s2 = _mm256_add_pd(s2, cg_lane_sum_term_avx2_(v, i + 8, term));
        s3 = _mm256_add_pd(s3, cg_lane_sum_term_avx2_(v, i + 12, term));
    }
    _mm256_storeu_pd(lanes, s0);
    _mm256_storeu_pd(lanes + 4, s1);
    _mm256_storeu_pd(lanes + 8, s2);
    _mm256_storeu_pd(lanes + 12, s3);
    return i;
}
CG_TARGET_AVX2_ static void cg_lane_sum_avx2_(const float *v, size_t n, int term, double *lanes) {
    size_t i;
    switch (term) {
    case CG_SUM_ABS_: i = cg_lane_sum16_avx2_(v, n, lanes, CG_SUM_ABS_); break;
    case CG_SUM_SQUARES_: i = cg_lane_sum16_avx2_(v, n, lanes, CG_SUM_SQUARES_); break;
    case CG_SUM_NEGATIVE_: i = cg_lane_sum16_avx2_(v, n, lanes, CG_SUM_NEGATIVE_); break;
    case CG_SUM_NONNEGATIVE_: i = cg_lane_sum16_avx2_(v, n, lanes, CG_SUM_NONNEGATIVE_); break;
    default: i = cg_lane_sum16_avx2_(v, n, lanes, CG_SUM_VALUES_);
    }
    _mm256_zeroupper();
    if (i < n) cg_lane_sum_scalar_(cg_at_(v, i), n - i, term, lanes);
}
#endif
#if CG_NEON_
CG_INLINE_ void cg_lane_sum4_neon_(float64x2_t *s, const float *v, size_t i, int term) {
    uint32x4_t u = cg_load4_neon_(v, i);
    float64x2_t low, high;
    if (term == CG_SUM_ABS_) u = cg_abs_neon_(u);
    if (term == CG_SUM_NEGATIVE_)
        u = vandq_u32(u, vcltq_u32(vsubq_u32(u, vdupq_n_u32(0x80000001u)), vdupq_n_u32(CG_INF_BITS_)));
    if (term == CG_SUM_NONNEGATIVE_)
        u = vandq_u32(u, vorrq_u32(vcleq_u32(u, vdupq_n_u32(CG_INF_BITS_)), vceqq_u32(u, vdupq_n_u32(CG_SIGN_BIT_))));
    low = vcvt_f64_f32(vget_low_f32(cg_as_float_neon_(u)));
    high = vcvt_high_f64_f32(cg_as_float_neon_(u));
    s[0] = s[0] + (term == CG_SUM_SQUARES_ ? low * low : low);
    s[1] = s[1] + (term == CG_SUM_SQUARES_ ? high * high : high);
}
CG_INLINE_ size_t cg_lane_sum16_neon_(const float *v, size_t n, double *lanes, int term) {
    float64x2_t s[8];
    size_t i = 0;
    for (int j = 0; j < 8; j++) s[j] = vld1q_f64(lanes + 2 * j);
    for (; i + 16 <= n; i += 16) {
        cg_lane_sum4_neon_(s, v, i, term);
        cg_lane_sum4_neon_(s + 2, v, i + 4, term);
        cg_lane_sum4_neon_(s + 4, v, i + 8, term);
        cg_lane_sum4_neon_(s + 6, v, i + 12, term);
    }
    for (int j = 0; j < 8; j++) vst1q_f64(lanes + 2 * j, s[j]);
    return i;
}
static void cg_lane_sum_neon_(const float *v, size_t n, int term, double *lanes) {
    size_t i;
    switch (term) {
    case CG_SUM_ABS_: i = cg_lane_sum16_neon_(v, n, lanes, CG_SUM_ABS_); break;
    case CG_SUM_SQUARES_: i = cg_lane_sum16_neon_(v, n, lanes, CG_SUM_SQUARES_); break;
    case CG_SUM_NEGATIVE_: i = cg_lane_sum16_neon_(v, n, lanes, CG_SUM_NEGATIVE_); break;
    case CG_SUM_NONNEGATIVE_: i = cg_lane_sum16_neon_(v, n, lanes, CG_SUM_NONNEGATIVE_); break;
    default: i = cg_lane_sum16_neon_(v, n, lanes, CG_SUM_VALUES_);
    }
    cg_lane_sum_scalar_(cg_at_(v, i), n - i, term, lanes);
}
#endif

/* Modes of axpby_fading: which product fades (cg_faded_: below 2^-100 it is 0), and which squares are summed. */
enum {
    CG_AXPBY_NO_SQUARES_, /* beta*y fades unless beta is 1; lanes may be NULL */
    CG_AXPBY_SQUARES_Y_,  /* the same, and adds squares of the new y to lanes, as lane_sum does */
    CG_AXPBY_SQUARES_X_,  /* the same, with squares of x; x has just been made, and is not prefetched */
    CG_AXPBY_FADE_X_      /* beta counts as 1, alpha*x fades, and squares of the new y are added to lanes */
};
/* axpby_fading: y = beta*y + alpha*x as axpby has it, but that one product fades: rounding would keep decaying memory
   in denormals, which are slow, for ever. x may be y. */
static void cg_axpby_fading_scalar_(
    const float *x, size_t n, float alpha, float beta, float *y, int mode, double *lanes) {
    if (mode == CG_AXPBY_FADE_X_)
        for (size_t i = 0; i < n; i++)
            cg_store_(y, i, cg_plus_(cg_load_(y, i), cg_faded_(cg_times_(alpha, cg_load_(x, i)))));
    else if (beta == 0.0f || beta == 1.0f) cg_axpby_scalar_(x, n, alpha, beta, y, 0);
    else
        for (size_t i = 0; i < n; i++)
            cg_store_(y, i, cg_plus_(cg_faded_(cg_times_(beta, cg_load_(y, i))), cg_times_(alpha, cg_load_(x, i))));
    if (mode) cg_lane_sum_scalar_(mode == CG_AXPBY_SQUARES_X_ ? x : y, n, CG_SUM_SQUARES_, lanes);
}
#if CG_AVX2_
CG_AVX2_INLINE_ __m256 cg_fade8_avx2_(__m256 v, int fades) {
    const __m256i u = _mm256_castps_si256(v);
    return fades ? _mm256_castsi256_ps(_mm256_and_si256(
                       u, _mm256_cmpgt_epi32(cg_abs_avx2_(u), _mm256_set1_epi32((int)CG_FADE_BITS_ - 1))))
                 : v;
}
CG_AVX2_INLINE_ __m256 cg_axpby_fading8_avx2_(
    __m256 x, __m256 a, __m256 b, const float *y, size_t i, int mode, int beta_is_one) {
    const __m256 v = _mm256_castsi256_ps(cg_load8_avx2_(y, i));
    return _mm256_add_ps(beta_is_one ? v : cg_fade8_avx2_(cg_mul8_avx2_(b, v), 1),
        cg_fade8_avx2_(cg_mul8_avx2_(a, x), mode == CG_AXPBY_FADE_X_));
}
CG_AVX2_INLINE_ size_t cg_axpby_fading16_avx2_(
    const float *x, size_t n, float alpha, float beta, float *y, double *lanes, int mode, int beta_is_one) {
    const __m256 a = _mm256_set1_ps(alpha), b = _mm256_set1_ps(beta);
    __m256d s0, s1, s2, s3;
    size_t i = 0;
    s0 = s1 = s2 = s3 = _mm256_setzero_pd();
    if (mode) {
        s0 = _mm256_loadu_pd(lanes);
        s1 = _mm256_loadu_pd(lanes + 4);
        s2 = _mm256_loadu_pd(lanes + 8);
        s3 = _mm256_loadu_pd(lanes + 12);
    }
    for (; i + 16 <= n; i += 16) {
        const __m256 x0 = _mm256_castsi256_ps(cg_load8_avx2_(x, i)), x1 = _mm256_castsi256_ps(cg_load8_avx2_(x, i + 8));
        __m256 y0, y1;
        if (mode != CG_AXPBY_SQUARES_X_) CG_PREFETCH_(cg_at_(x, i + CG_PREFETCH_DISTANCE_));
        CG_PREFETCH_WRITE_(cg_at_(y, i + CG_PREFETCH_DISTANCE_));
        y0 = cg_axpby_fading8_avx2_(x0, a, b, y, i, mode, beta_is_one);
        y1 = cg_axpby_fading8_avx2_(x1, a, b, y, i + 8, mode, beta_is_one);
        cg_store_avx2_(cg_at_mut_(y, i), _mm256_castps_si256(y0));
        cg_store_avx2_(cg_at_mut_(y, i + 8), _mm256_castps_si256(y1));
        if (mode) {
            const float *v = mode == CG_AXPBY_SQUARES_X_ ? x : y;
            s0 = _mm256_add_pd(s0, cg_lane_sum_term_avx2_(v, i, CG_SUM_SQUARES_));
            s1 = _mm256_add_pd(s1, cg_lane_sum_term_avx2_(v, i + 4, CG_SUM_SQUARES_));
            s2 = _mm256_add_pd(s2, cg_lane_sum_term_avx2_(v, i + 8, CG_SUM_SQUARES_));
            s3 = _mm256_add_pd(s3, cg_lane_sum_term_avx2_(v, i + 12, CG_SUM_SQUARES_));
        }
    }
    if (mode) {
        _mm256_storeu_pd(lanes, s0);
        _mm256_storeu_pd(lanes + 4, s1);
        _mm256_storeu_pd(lanes + 8, s2);
        _mm256_storeu_pd(lanes + 12, s3);
    }
    return i;
}
CG_TARGET_AVX2_ static void cg_axpby_fading_avx2_(
    const float *x, size_t n, float alpha, float beta, float *y, int mode, double *lanes) {
    size_t i = 0;
    if (mode == CG_AXPBY_FADE_X_) {
        i = cg_axpby_fading16_avx2_(x, n, alpha, beta, y, lanes, CG_AXPBY_FADE_X_, 1);
    } else if (beta == 0.0f) { /* y is not read: 0*y + -0 would be +0 */
        cg_axpby_avx2_(x, n, alpha, beta, y, 0);
        if (mode) cg_lane_sum_avx2_(mode == CG_AXPBY_SQUARES_X_ ? x : y, n, CG_SUM_SQUARES_, lanes);
        return;
    } else {
        switch (mode * 2 + (beta == 1.0f)) {
        case CG_AXPBY_NO_SQUARES_ * 2:
            i = cg_axpby_fading16_avx2_(x, n, alpha, beta, y, lanes, CG_AXPBY_NO_SQUARES_, 0);
            break;
        case CG_AXPBY_NO_SQUARES_ * 2 + 1:
            i = cg_axpby_fading16_avx2_(x, n, alpha, beta, y, lanes, CG_AXPBY_NO_SQUARES_, 1);
            break;
        case CG_AXPBY_SQUARES_Y_ * 2:
            i = cg_axpby_fading16_avx2_(x, n, alpha, beta, y, lanes, CG_AXPBY_SQUARES_Y_, 0);
            break;
        case CG_AXPBY_SQUARES_Y_ * 2 + 1:
            i = cg_axpby_fading16_avx2_(x, n, alpha, beta, y, lanes, CG_AXPBY_SQUARES_Y_, 1);
            break;
        case CG_AXPBY_SQUARES_X_ * 2:
            i = cg_axpby_fading16_avx2_(x, n, alpha, beta, y, lanes, CG_AXPBY_SQUARES_X_, 0);
            break;
        default: i = cg_axpby_fading16_avx2_(x, n, alpha, beta, y, lanes, CG_AXPBY_SQUARES_X_, 1);
        }
    }
    _mm256_zeroupper();
    if (i < n) cg_axpby_fading_scalar_(cg_at_(x, i), n - i, alpha, beta, cg_at_mut_(y, i), mode, lanes);
}
#endif
#if CG_NEON_
CG_INLINE_ float32x4_t cg_fade4_neon_(float32x4_t v) {
    const uint32x4_t u = vreinterpretq_u32_f32(v);
    return cg_as_float_neon_(vandq_u32(u, vcgeq_u32(cg_abs_neon_(u), vdupq_n_u32(CG_FADE_BITS_))));
}
static void cg_axpby_fading_neon_(
    const float *x, size_t n, float alpha, float beta, float *y, int mode, double *lanes) {
    const float32x4_t a = vdupq_n_f32(alpha), b = vdupq_n_f32(beta);
    const int fade_x = mode == CG_AXPBY_FADE_X_;
    size_t i = 0;
    if (!fade_x && (beta == 0.0f || beta == 1.0f)) {
        cg_axpby_neon_(x, n, alpha, beta, y, 0);
        i = n;
    }
    for (; i + 4 <= n; i += 4) {
        const float32x4_t f = cg_as_float_neon_(cg_load4_neon_(y, i)),
                          g = cg_times_neon_(a, cg_as_float_neon_(cg_load4_neon_(x, i)));
        cg_store4_neon_(y, i, fade_x ? f + cg_fade4_neon_(g) : cg_fade4_neon_(cg_times_neon_(b, f)) + g);
    }
    for (; i < n; i++) {
        const float f = cg_load_(y, i), g = cg_times_(alpha, cg_load_(x, i));
        cg_store_(y, i, fade_x ? cg_plus_(f, cg_faded_(g)) : cg_plus_(cg_faded_(cg_times_(beta, f)), g));
    }
    if (mode) cg_lane_sum_neon_(mode == CG_AXPBY_SQUARES_X_ ? x : y, n, CG_SUM_SQUARES_, lanes);
}
#endif

/* axpby_fading for other headers; x and y may have any alignment. Without squares y may be x itself. */
CG_OFFERED_ void cg_axpby_fading_(
    const cg_kernels_ *kernels, const float *x, size_t n, float alpha, float beta, float *y) {
    kernels->axpby_fading(x, n, alpha, beta, y, CG_AXPBY_NO_SQUARES_, NULL);
}
/* The same; returns the sum of squares of the new y. */
CG_OFFERED_ double cg_axpby_fading_energy_y_(
    const cg_kernels_ *kernels, const float *x, size_t n, float alpha, float beta, float *y) {
    double lanes[16] = { 0.0 };
    kernels->axpby_fading(x, n, alpha, beta, y, CG_AXPBY_SQUARES_Y_, lanes);
    return cg_lanes_reduce_(lanes);
}
/* The same; returns the sum of squares of x, which should be in the cache: it is not prefetched. */
CG_OFFERED_ double cg_axpby_fading_energy_x_(
    const cg_kernels_ *kernels, const float *x, size_t n, float alpha, float beta, float *y) {
    double lanes[16] = { 0.0 };
    kernels->axpby_fading(x, n, alpha, beta, y, CG_AXPBY_SQUARES_X_, lanes);
    return cg_lanes_reduce_(lanes);
}
/* y = y + alpha*x, where alpha*x counts as 0 below 2^-100; returns the sum of squares of the new y. */
CG_OFFERED_ double cg_axpy_faded_energy_y_(
    const cg_kernels_ *kernels, const float *x, size_t n, float alpha, float *y) {
    double lanes[16] = { 0.0 };
    kernels->axpby_fading(x, n, alpha, 1.0f, y, CG_AXPBY_FADE_X_, lanes);
    return cg_lanes_reduce_(lanes);
}
