enum { CG_SUM_ABS_, CG_SUM_SQUARES_, CG_SUM_NEGATIVE_, CG_SUM_NONNEGATIVE_, CG_SUM_VALUES_ };
/* total: adds to 16 lanes, by position, magnitudes (0), squares (1), what is below 0 (2), what is not (3), or the
   values (4) */
CG_INLINE_ double cg_lanes_reduce_(double *lanes) {
    for (int w = 8; w; w /= 2)
        for (int i = 0; i < w; i++) lanes[i] += lanes[i + w];
    return lanes[0];
}
static void cg_lane_sum_scalar_(const float *v, size_t n, int what, double *lanes) {
    for (size_t i = 0; i < n; i++) {
        const uint32_t u = cg_load_bits_(v, i);
        const double d = (double)cg_as_float_(u);
        double *lane = lanes + i % 16;
        switch (what) {
        case 0: *lane += (double)cg_as_float_(u & CG_ABS_MASK_); break;
        case 1:
            *lane += d * d;
            break; /* exact: fused or not, the sum is the same */
        /* f < 0, f >= 0, by bits: of floats clang makes a minimum (AArch64), which thinks otherwise of -0 and
               NaN */
        case 2: *lane += (double)cg_as_float_(u - 0x80000001u < CG_INF_BITS_ ? u : 0u); break;
        case 3: *lane += (double)cg_as_float_(u <= CG_INF_BITS_ || u == CG_SIGN_BIT_ ? u : 0u); break;
        default: *lane += d;
        }
    }
}
#if CG_AVX2_
CG_AVX2_INLINE_ __m256d cg_lane_sum_term_avx2_(const float *v, size_t i, int what) {
    const __m256d d = _mm256_cvtps_pd(_mm_castsi128_ps(cg_load4_avx2_(cg_at_(v, i))));
    switch (what) {
    case 0: return _mm256_andnot_pd(_mm256_set1_pd(-0.0), d);
    case 1: return _mm256_mul_pd(d, d);
    case 2: return _mm256_and_pd(d, _mm256_cmp_pd(d, _mm256_setzero_pd(), _CMP_LT_OQ));
    case 3: return _mm256_and_pd(d, _mm256_cmp_pd(d, _mm256_setzero_pd(), _CMP_GE_OQ));
    default: return d;
    }
}
CG_AVX2_INLINE_ size_t cg_lane_sum16_avx2_(const float *v, size_t n, double *lanes, int what) {
    __m256d s0 = _mm256_loadu_pd(lanes), s1 = _mm256_loadu_pd(lanes + 4), s2 = _mm256_loadu_pd(lanes + 8),
            s3 = _mm256_loadu_pd(lanes + 12);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        CG_PREFETCH_(cg_at_(v, i + 1536));
        s0 = _mm256_add_pd(s0, cg_lane_sum_term_avx2_(v, i, what));
        s1 = _mm256_add_pd(s1, cg_lane_sum_term_avx2_(v, i + 4, what));
        s2 = _mm256_add_pd(s2, cg_lane_sum_term_avx2_(v, i + 8, what));
        s3 = _mm256_add_pd(s3, cg_lane_sum_term_avx2_(v, i + 12, what));
    }
    _mm256_storeu_pd(lanes, s0);
    _mm256_storeu_pd(lanes + 4, s1);
    _mm256_storeu_pd(lanes + 8, s2);
    _mm256_storeu_pd(lanes + 12, s3);
    return i;
}
CG_TARGET_AVX2_ static void cg_lane_sum_avx2_(const float *v, size_t n, int what, double *lanes) {
    size_t i;
    switch (what) {
    case 0: i = cg_lane_sum16_avx2_(v, n, lanes, 0); break;
    case 1: i = cg_lane_sum16_avx2_(v, n, lanes, 1); break;
    case 2: i = cg_lane_sum16_avx2_(v, n, lanes, 2); break;
    case 3: i = cg_lane_sum16_avx2_(v, n, lanes, 3); break;
    default: i = cg_lane_sum16_avx2_(v, n, lanes, 4);
    }
    _mm256_zeroupper();
    if (i < n) cg_lane_sum_scalar_(cg_at_(v, i), n - i, what, lanes);
}
#endif
#if CG_NEON_
CG_INLINE_ void cg_lane_sum4_neon_(float64x2_t *s, const float *v, size_t i, int what) {
    uint32x4_t u = cg_load4_neon_(v, i);
    float64x2_t low, high;
    if (what == 0) u = cg_abs_neon_(u);
    if (what == 2) u = vandq_u32(u, vcltq_u32(vsubq_u32(u, vdupq_n_u32(0x80000001u)), vdupq_n_u32(CG_INF_BITS_)));
    if (what == 3)
        u = vandq_u32(u, vorrq_u32(vcleq_u32(u, vdupq_n_u32(CG_INF_BITS_)), vceqq_u32(u, vdupq_n_u32(CG_SIGN_BIT_))));
    low = vcvt_f64_f32(vget_low_f32(cg_as_float_neon_(u)));
    high = vcvt_high_f64_f32(cg_as_float_neon_(u));
    s[0] = s[0] + (what == 1 ? low * low : low);
    s[1] = s[1] + (what == 1 ? high * high : high);
}
CG_INLINE_ size_t cg_lane_sum16_neon_(const float *v, size_t n, double *lanes, int what) {
    float64x2_t s[8];
    size_t i = 0;
    for (int j = 0; j < 8; j++) s[j] = vld1q_f64(lanes + 2 * j);
    for (; i + 16 <= n; i += 16) {
        cg_lane_sum4_neon_(s, v, i, what);
        cg_lane_sum4_neon_(s + 2, v, i + 4, what);
        cg_lane_sum4_neon_(s + 4, v, i + 8, what);
        cg_lane_sum4_neon_(s + 6, v, i + 12, what);
    }
    for (int j = 0; j < 8; j++) vst1q_f64(lanes + 2 * j, s[j]);
    return i;
}
static void cg_lane_sum_neon_(const float *v, size_t n, int what, double *lanes) {
    size_t i;
    switch (what) {
    case 0: i = cg_lane_sum16_neon_(v, n, lanes, 0); break;
    case 1: i = cg_lane_sum16_neon_(v, n, lanes, 1); break;
    case 2: i = cg_lane_sum16_neon_(v, n, lanes, 2); break;
    case 3: i = cg_lane_sum16_neon_(v, n, lanes, 3); break;
    default: i = cg_lane_sum16_neon_(v, n, lanes, 4);
    }
    cg_lane_sum_scalar_(cg_at_(v, i), n - i, what, lanes);
}
#endif

/* accrue: y = beta*y + alpha*d, and adds the squares of y to 16 lanes, or those of d, or none. beta*y counts as 0
   below 2^-100 unless beta is 1: rounding would keep it in denormals, which are slow, for ever. RECALL: as Y, but
   it is alpha*d that fades so, and beta is 1. All of it waits for memory, so that is asked ahead; d is not where
   its squares are asked for: then it has just been made. */
enum { CG_AXPBY_NO_SQUARES_, CG_AXPBY_SQUARES_Y_, CG_AXPBY_SQUARES_X_, CG_AXPBY_FADE_X_ };
static void cg_axpby_fading_scalar_(
    const float *d, size_t n, float alpha, float beta, float *y, int squares, double *lanes) {
    if (squares == CG_AXPBY_FADE_X_)
        for (size_t i = 0; i < n; i++)
            cg_store_(y, i, cg_plus_(cg_load_(y, i), cg_faded_(cg_times_(alpha, cg_load_(d, i)))));
    else if (beta == 0.0f || beta == 1.0f) cg_axpby_scalar_(d, n, alpha, beta, y, 0);
    else
        for (size_t i = 0; i < n; i++)
            cg_store_(y, i, cg_plus_(cg_faded_(cg_times_(beta, cg_load_(y, i))), cg_times_(alpha, cg_load_(d, i))));
    if (squares) cg_lane_sum_scalar_(squares == CG_AXPBY_SQUARES_X_ ? d : y, n, CG_SUM_SQUARES_, lanes);
}
#if CG_AVX2_
CG_AVX2_INLINE_ __m256 cg_fade8_avx2_(__m256 v, int fades) {
    const __m256i u = _mm256_castps_si256(v);
    return fades ? _mm256_castsi256_ps(_mm256_and_si256(
                       u, _mm256_cmpgt_epi32(cg_abs_avx2_(u), _mm256_set1_epi32((int)CG_FADE_BITS_ - 1))))
                 : v;
}
CG_AVX2_INLINE_ __m256 cg_axpby_fading8_avx2_(
    __m256 d, __m256 a, __m256 b, const float *y, size_t i, int squares, int one) {
    const __m256 v = _mm256_castsi256_ps(cg_load8_avx2_(y, i));
    return _mm256_add_ps(one ? v : cg_fade8_avx2_(cg_mul8_avx2_(b, v), 1),
        cg_fade8_avx2_(cg_mul8_avx2_(a, d), squares == CG_AXPBY_FADE_X_));
}
CG_AVX2_INLINE_ size_t cg_axpby_fading16_avx2_(
    const float *d, size_t n, float alpha, float beta, float *y, double *lanes, int squares, int one) {
    const __m256 a = _mm256_set1_ps(alpha), b = _mm256_set1_ps(beta);
    __m256d s0, s1, s2, s3;
    size_t i = 0;
    s0 = s1 = s2 = s3 = _mm256_setzero_pd();
    if (squares) {
        s0 = _mm256_loadu_pd(lanes), s1 = _mm256_loadu_pd(lanes + 4), s2 = _mm256_loadu_pd(lanes + 8),
        s3 = _mm256_loadu_pd(lanes + 12);
    }
    for (; i + 16 <= n; i += 16) {
        const __m256 d0 = _mm256_castsi256_ps(cg_load8_avx2_(d, i)), d1 = _mm256_castsi256_ps(cg_load8_avx2_(d, i + 8));
        __m256 y0, y1;
        if (squares != CG_AXPBY_SQUARES_X_) CG_PREFETCH_(cg_at_(d, i + CG_PREFETCH_DISTANCE_));
        CG_PREFETCH_WRITE_(cg_at_(y, i + CG_PREFETCH_DISTANCE_));
        y0 = cg_axpby_fading8_avx2_(d0, a, b, y, i, squares, one);
        y1 = cg_axpby_fading8_avx2_(d1, a, b, y, i + 8, squares, one);
        cg_store_avx2_(cg_at_mut_(y, i), _mm256_castps_si256(y0));
        cg_store_avx2_(cg_at_mut_(y, i + 8), _mm256_castps_si256(y1));
        if (squares) {
            const float *v = squares == CG_AXPBY_SQUARES_X_ ? d : y;
            s0 = _mm256_add_pd(s0, cg_lane_sum_term_avx2_(v, i, 1));
            s1 = _mm256_add_pd(s1, cg_lane_sum_term_avx2_(v, i + 4, 1));
            s2 = _mm256_add_pd(s2, cg_lane_sum_term_avx2_(v, i + 8, 1));
            s3 = _mm256_add_pd(s3, cg_lane_sum_term_avx2_(v, i + 12, 1));
        }
    }
    if (squares) {
        _mm256_storeu_pd(lanes, s0);
        _mm256_storeu_pd(lanes + 4, s1);
        _mm256_storeu_pd(lanes + 8, s2);
        _mm256_storeu_pd(lanes + 12, s3);
    }
    return i;
}
CG_TARGET_AVX2_ static void cg_axpby_fading_avx2_(
    const float *d, size_t n, float alpha, float beta, float *y, int squares, double *lanes) {
    size_t i = 0;
    if (squares == CG_AXPBY_FADE_X_) {
        i = cg_axpby_fading16_avx2_(d, n, alpha, beta, y, lanes, CG_AXPBY_FADE_X_, 1);
    } else if (beta == 0.0f) { /* y is not read: 0*y + -0 would be +0 */
        cg_axpby_avx2_(d, n, alpha, beta, y, 0);
        if (squares) cg_lane_sum_avx2_(squares == CG_AXPBY_SQUARES_X_ ? d : y, n, CG_SUM_SQUARES_, lanes);
        return;
    } else {
        switch (squares * 2 + (beta == 1.0f)) {
        case CG_AXPBY_NO_SQUARES_ * 2:
            i = cg_axpby_fading16_avx2_(d, n, alpha, beta, y, lanes, CG_AXPBY_NO_SQUARES_, 0);
            break;
        case CG_AXPBY_NO_SQUARES_ * 2 + 1:
            i = cg_axpby_fading16_avx2_(d, n, alpha, beta, y, lanes, CG_AXPBY_NO_SQUARES_, 1);
            break;
        case CG_AXPBY_SQUARES_Y_ * 2:
            i = cg_axpby_fading16_avx2_(d, n, alpha, beta, y, lanes, CG_AXPBY_SQUARES_Y_, 0);
            break;
        case CG_AXPBY_SQUARES_Y_ * 2 + 1:
            i = cg_axpby_fading16_avx2_(d, n, alpha, beta, y, lanes, CG_AXPBY_SQUARES_Y_, 1);
            break;
        case CG_AXPBY_SQUARES_X_ * 2:
            i = cg_axpby_fading16_avx2_(d, n, alpha, beta, y, lanes, CG_AXPBY_SQUARES_X_, 0);
            break;
        default: i = cg_axpby_fading16_avx2_(d, n, alpha, beta, y, lanes, CG_AXPBY_SQUARES_X_, 1);
        }
    }
    _mm256_zeroupper();
    if (i < n) cg_axpby_fading_scalar_(cg_at_(d, i), n - i, alpha, beta, cg_at_mut_(y, i), squares, lanes);
}
#endif
#if CG_NEON_
CG_INLINE_ float32x4_t cg_fade4_neon_(float32x4_t v) {
    const uint32x4_t u = vreinterpretq_u32_f32(v);
    return cg_as_float_neon_(vandq_u32(u, vcgeq_u32(cg_abs_neon_(u), vdupq_n_u32(CG_FADE_BITS_))));
}
static void cg_axpby_fading_neon_(
    const float *d, size_t n, float alpha, float beta, float *y, int squares, double *lanes) {
    const float32x4_t a = vdupq_n_f32(alpha), b = vdupq_n_f32(beta);
    const int recall = squares == CG_AXPBY_FADE_X_;
    size_t i = 0;
    if (!recall && (beta == 0.0f || beta == 1.0f)) {
        cg_axpby_neon_(d, n, alpha, beta, y, 0);
        i = n;
    }
    for (; i + 4 <= n; i += 4) {
        const float32x4_t f = cg_as_float_neon_(cg_load4_neon_(y, i)),
                          g = cg_times_neon_(a, cg_as_float_neon_(cg_load4_neon_(d, i)));
        cg_store4_neon_(y, i, recall ? f + cg_fade4_neon_(g) : cg_fade4_neon_(cg_times_neon_(b, f)) + g);
    }
    for (; i < n; i++) {
        const float f = cg_load_(y, i), g = cg_times_(alpha, cg_load_(d, i));
        cg_store_(y, i, recall ? cg_plus_(f, cg_faded_(g)) : cg_plus_(cg_faded_(cg_times_(beta, f)), g));
    }
    if (squares) cg_lane_sum_neon_(squares == CG_AXPBY_SQUARES_X_ ? d : y, n, CG_SUM_SQUARES_, lanes);
}
#endif
