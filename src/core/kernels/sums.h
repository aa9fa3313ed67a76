/* sums: kernels that sum in f64 in an order that all ISAs share, and the axpby of error feedback

   Offers   lane_sum with CG_SUM_*, axpby_fading with CG_AXPBY_*; cg_lanes_reduce_
   Needs    base, table, the vector layer, axpby
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
/* One number of 16 lanes, which are overwritten: halves are added until one lane is left. Not inlined: of two of them
   side by side clang 14 makes wrong code for WebAssembly. */
CG_NOINLINE_ double cg_lanes_reduce_(double *lanes) {
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
#if CG_VECTOR_
/* terms of four values */
CG_VECTOR_FN_ cg_vd_ cg_lane_sum_term_(const float *v, size_t i, int term) {
    const cg_vd_ d = cg_vd_floats_(v, i);
    switch (term) {
    case CG_SUM_ABS_: return cg_vd_abs_(d);
    case CG_SUM_SQUARES_: return cg_vd_mul_(d, d);
    case CG_SUM_NEGATIVE_: return cg_vd_negative_(d);
    case CG_SUM_NONNEGATIVE_: return cg_vd_nonnegative_(d);
    default: return d;
    }
}
CG_VECTOR_FN_ void cg_lane_sum_terms_(cg_vd_ *s, const float *v, size_t i, int term) { /* of 16 values */
    s[0] = cg_vd_add_(s[0], cg_lane_sum_term_(v, i, term));
    s[1] = cg_vd_add_(s[1], cg_lane_sum_term_(v, i + 4, term));
    s[2] = cg_vd_add_(s[2], cg_lane_sum_term_(v, i + 8, term));
    s[3] = cg_vd_add_(s[3], cg_lane_sum_term_(v, i + 12, term));
}
CG_VECTOR_FN_ size_t cg_lane_sum16_(const float *v, size_t n, double *lanes, int term) {
    cg_vd_ s[4];
    size_t i = 0;
    cg_lanes_load_(s, lanes);
    for (; i + 16 <= n; i += 16) {
        CG_PREFETCH_(cg_at_(v, i + CG_AHEAD_));
        cg_lane_sum_terms_(s, v, i, term);
    }
    cg_lanes_store_(lanes, s);
    return i;
}
CG_VECTOR_FN_ void cg_lane_sum_simd_(const float *v, size_t n, int term, double *lanes) {
    size_t i;
    switch (term) {
    case CG_SUM_ABS_: i = cg_lane_sum16_(v, n, lanes, CG_SUM_ABS_); break;
    case CG_SUM_SQUARES_: i = cg_lane_sum16_(v, n, lanes, CG_SUM_SQUARES_); break;
    case CG_SUM_NEGATIVE_: i = cg_lane_sum16_(v, n, lanes, CG_SUM_NEGATIVE_); break;
    case CG_SUM_NONNEGATIVE_: i = cg_lane_sum16_(v, n, lanes, CG_SUM_NONNEGATIVE_); break;
    default: i = cg_lane_sum16_(v, n, lanes, CG_SUM_VALUES_);
    }
    if (i < n) cg_lane_sum_scalar_(cg_at_(v, i), n - i, term, lanes);
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
#if CG_VECTOR_
CG_VECTOR_FN_ cg_vf_ cg_fade8_(cg_vf_ v) {
    const cg_vu_ u = cg_vu_of_(v);
    return cg_vf_of_(cg_vu_and_(u, cg_vu_gt_(cg_vu_abs_(u), cg_vu_set_(CG_FADE_BITS_ - 1))));
}
CG_VECTOR_FN_ cg_vf_ cg_axpby_fading8_(cg_vf_ x, cg_vf_ a, cg_vf_ b, cg_vf_ y, int mode, int beta_is_one) {
    const cg_vf_ ax = cg_vf_mul_(a, x);
    return cg_vf_add_(beta_is_one ? y : cg_fade8_(cg_vf_mul_(b, y)), mode == CG_AXPBY_FADE_X_ ? cg_fade8_(ax) : ax);
}
CG_VECTOR_FN_ size_t cg_axpby_fading16_(
    const float *x, size_t n, float alpha, float beta, float *y, double *lanes, int mode, int beta_is_one) {
    const cg_vf_ a = cg_vf_set_(alpha), b = cg_vf_set_(beta);
    cg_vd_ s[4];
    size_t i = 0;
    if (mode) cg_lanes_load_(s, lanes);
    for (; i + 16 <= n; i += 16) {
        const cg_vf_ x0 = cg_vf_load_(x, i), x1 = cg_vf_load_(x, i + 8);
        if (mode != CG_AXPBY_SQUARES_X_) CG_PREFETCH_(cg_at_(x, i + CG_PREFETCH_DISTANCE_));
        CG_PREFETCH_WRITE_(cg_at_(y, i + CG_PREFETCH_DISTANCE_));
        cg_vf_store_(y, i, cg_axpby_fading8_(x0, a, b, cg_vf_load_(y, i), mode, beta_is_one));
        cg_vf_store_(y, i + 8, cg_axpby_fading8_(x1, a, b, cg_vf_load_(y, i + 8), mode, beta_is_one));
        if (mode) cg_lane_sum_terms_(s, mode == CG_AXPBY_SQUARES_X_ ? x : y, i, CG_SUM_SQUARES_);
    }
    if (mode) cg_lanes_store_(lanes, s);
    return i;
}
CG_VECTOR_FN_ void cg_axpby_fading_simd_(
    const float *x, size_t n, float alpha, float beta, float *y, int mode, double *lanes) {
    size_t i = 0;
    if (mode != CG_AXPBY_FADE_X_ && beta == 0.0f) { /* y is not read: 0*y + -0 would be +0 */
        cg_axpby_simd_(x, n, alpha, beta, y, 0);
        if (mode) cg_lane_sum_simd_(mode == CG_AXPBY_SQUARES_X_ ? x : y, n, CG_SUM_SQUARES_, lanes);
        return;
    }
#  define CG_CASE_(mode, one) \
  case 2 * (mode) + (one): i = cg_axpby_fading16_(x, n, alpha, beta, y, lanes, mode, one); break;
    switch (2 * mode + (mode == CG_AXPBY_FADE_X_ || beta == 1.0f)) {
        CG_CASE_(CG_AXPBY_NO_SQUARES_, 0)
        CG_CASE_(CG_AXPBY_NO_SQUARES_, 1)
        CG_CASE_(CG_AXPBY_SQUARES_Y_, 0)
        CG_CASE_(CG_AXPBY_SQUARES_Y_, 1)
        CG_CASE_(CG_AXPBY_SQUARES_X_, 0)
        CG_CASE_(CG_AXPBY_SQUARES_X_, 1)
        CG_CASE_(CG_AXPBY_FADE_X_, 1)
    }
#  undef CG_CASE_
    if (i < n) cg_axpby_fading_scalar_(cg_at_(x, i), n - i, alpha, beta, cg_at_mut_(y, i), mode, lanes);
}
#endif

/* axpby_fading for other headers; x and y may have any alignment. Without squares y may be x itself. */
CG_OFFERED_ void cg_axpby_fading_(
    const cg_kernels_ *kernels, const float *x, size_t n, float alpha, float beta, float *y) {
    CG_KERNEL_(kernels, axpby_fading(x, n, alpha, beta, y, CG_AXPBY_NO_SQUARES_, NULL));
}
/* The same; returns the sum of squares of the new y. */
CG_OFFERED_ double cg_axpby_fading_energy_y_(
    const cg_kernels_ *kernels, const float *x, size_t n, float alpha, float beta, float *y) {
    double lanes[16] = { 0.0 };
    CG_KERNEL_(kernels, axpby_fading(x, n, alpha, beta, y, CG_AXPBY_SQUARES_Y_, lanes));
    return cg_lanes_reduce_(lanes);
}
/* The same; returns the sum of squares of x, which should be in the cache: it is not prefetched. */
CG_OFFERED_ double cg_axpby_fading_energy_x_(
    const cg_kernels_ *kernels, const float *x, size_t n, float alpha, float beta, float *y) {
    double lanes[16] = { 0.0 };
    CG_KERNEL_(kernels, axpby_fading(x, n, alpha, beta, y, CG_AXPBY_SQUARES_X_, lanes));
    return cg_lanes_reduce_(lanes);
}
/* y = y + alpha*x, where alpha*x counts as 0 below 2^-100; returns the sum of squares of the new y. */
CG_OFFERED_ double cg_axpy_faded_energy_y_(
    const cg_kernels_ *kernels, const float *x, size_t n, float alpha, float *y) {
    double lanes[16] = { 0.0 };
    CG_KERNEL_(kernels, axpby_fading(x, n, alpha, 1.0f, y, CG_AXPBY_FADE_X_, lanes));
    return cg_lanes_reduce_(lanes);
}
