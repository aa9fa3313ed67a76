/* dct: the kernel of the DCT of 64 values

   Offers   dct
   Needs    base, table, the vector layer
   Touches  nothing but its arguments
   A fold (sums and differences of x[i] and x[2n-1-i]) turns a DCT-II of 2n values into a DCT-II and a DCT-IV of n.
   Givens rotations of pairs by the angles (2i+1)pi/(4N) turn a DCT-IV of N values into two DCT-II of N/2. After three
   such steps eight products with 8*8 matrices are left. The matrices hold the scaling too: each step leaves out a
   factor of sqrt(1/2), and every value takes three. */

/* clang-format off */
/* DCT-II of 8 over sqrt(8): two lines per input */
static const float cg_dct2_matrix_[64] = {
            0.125f,   0.173379987f,   0.163320377f,   0.146984443f,
            0.125f,  0.0982118696f,  0.0676495135f,  0.0344874226f,
            0.125f,   0.146984443f,  0.0676495135f, -0.0344874226f,
           -0.125f,  -0.173379987f,  -0.163320377f, -0.0982118696f,
            0.125f,  0.0982118696f, -0.0676495135f,  -0.173379987f,
           -0.125f,  0.0344874226f,   0.163320377f,   0.146984443f,
            0.125f,  0.0344874226f,  -0.163320377f, -0.0982118696f,
            0.125f,   0.146984443f, -0.0676495135f,  -0.173379987f,
            0.125f, -0.0344874226f,  -0.163320377f,  0.0982118696f,
            0.125f,  -0.146984443f, -0.0676495135f,   0.173379987f,
            0.125f, -0.0982118696f, -0.0676495135f,   0.173379987f,
           -0.125f, -0.0344874226f,   0.163320377f,  -0.146984443f,
            0.125f,  -0.146984443f,  0.0676495135f,  0.0344874226f,
           -0.125f,   0.173379987f,  -0.163320377f,  0.0982118696f,
            0.125f,  -0.173379987f,   0.163320377f,  -0.146984443f,
            0.125f, -0.0982118696f,  0.0676495135f, -0.0344874226f,
};
/* DCT-III: its transpose */
static const float cg_dct3_matrix_[64] = {
            0.125f,         0.125f,         0.125f,         0.125f,
            0.125f,         0.125f,         0.125f,         0.125f,
      0.173379987f,   0.146984443f,  0.0982118696f,  0.0344874226f,
    -0.0344874226f, -0.0982118696f,  -0.146984443f,  -0.173379987f,
      0.163320377f,  0.0676495135f, -0.0676495135f,  -0.163320377f,
     -0.163320377f, -0.0676495135f,  0.0676495135f,   0.163320377f,
      0.146984443f, -0.0344874226f,  -0.173379987f, -0.0982118696f,
     0.0982118696f,   0.173379987f,  0.0344874226f,  -0.146984443f,
            0.125f,        -0.125f,        -0.125f,         0.125f,
            0.125f,        -0.125f,        -0.125f,         0.125f,
     0.0982118696f,  -0.173379987f,  0.0344874226f,   0.146984443f,
     -0.146984443f, -0.0344874226f,   0.173379987f, -0.0982118696f,
     0.0676495135f,  -0.163320377f,   0.163320377f, -0.0676495135f,
    -0.0676495135f,   0.163320377f,  -0.163320377f,  0.0676495135f,
     0.0344874226f, -0.0982118696f,   0.146984443f,  -0.173379987f,
      0.173379987f,  -0.146984443f,  0.0982118696f, -0.0344874226f,
};
/* DCT-IV, its own inverse */
static const float cg_dct4_matrix_[64] = {
      0.175925463f,   0.169164747f,   0.155903131f,   0.136650234f,
      0.112145945f,  0.0833319575f,  0.0513155647f,  0.0173271466f,
      0.169164747f,   0.112145945f,  0.0173271466f, -0.0833319575f,
     -0.155903131f,  -0.175925463f,  -0.136650234f, -0.0513155647f,
      0.155903131f,  0.0173271466f,  -0.136650234f,  -0.169164747f,
    -0.0513155647f,   0.112145945f,   0.175925463f,  0.0833319575f,
      0.136650234f, -0.0833319575f,  -0.169164747f,  0.0173271466f,
      0.175925463f,  0.0513155647f,  -0.155903131f,  -0.112145945f,
      0.112145945f,  -0.155903131f, -0.0513155647f,   0.175925463f,
    -0.0173271466f,  -0.169164747f,  0.0833319575f,   0.136650234f,
     0.0833319575f,  -0.175925463f,   0.112145945f,  0.0513155647f,
     -0.169164747f,   0.136650234f,  0.0173271466f,  -0.155903131f,
     0.0513155647f,  -0.136650234f,   0.175925463f,  -0.155903131f,
     0.0833319575f,  0.0173271466f,  -0.112145945f,   0.169164747f,
     0.0173271466f, -0.0513155647f,  0.0833319575f,  -0.112145945f,
      0.136650234f,  -0.155903131f,   0.169164747f,  -0.175925463f,
};
/* cos of (2i+1)pi/128, i < 16, then of (2i+1)pi/64, i < 8 */
static const float cg_dct_cos_[24] = {
    0.999698818f, 0.997290432f, 0.992479563f, 0.985277653f,
    0.975702107f, 0.963776052f, 0.949528158f, 0.932992816f,
    0.914209783f, 0.893224299f, 0.870086968f,  0.84485358f,
    0.817584813f,  0.78834641f, 0.757208824f, 0.724247098f,
     0.99879545f, 0.989176512f, 0.970031261f, 0.941544056f,
    0.903989315f, 0.857728601f, 0.803207517f, 0.740951121f,
};
/* sin of the same */
static const float cg_dct_sin_[24] = {
     0.024541229f, 0.0735645667f,  0.122410677f,  0.170961887f,
     0.219101235f,  0.266712755f,  0.313681751f,  0.359895051f,
     0.405241311f,  0.449611336f,  0.492898196f,  0.534997642f,
     0.575808167f,  0.615231574f,  0.653172851f,  0.689540565f,
    0.0490676761f,  0.146730468f,  0.242980182f,  0.336889863f,
     0.427555084f,  0.514102757f,   0.59569931f,  0.671558976f,
};
/* clang-format on */
/* x[2n] to its sums and differences, even[n] and odd[n]; then the reverse, but for a factor of 2 */
CG_INLINE_ void cg_dct_fold_(const float *x, size_t n, float *even, float *odd) {
    for (size_t i = 0; i < n; i++) {
        const float a = x[i], b = x[2 * n - 1 - i];
        even[i] = cg_plus_(a, b);
        odd[i] = cg_minus_(a, b);
    }
}
CG_INLINE_ void cg_dct_unfold_(const float *even, const float *odd, size_t n, float *x) {
    for (size_t i = 0; i < n; i++) {
        const float a = even[i], b = odd[i];
        x[i] = cg_plus_(a, b);
        x[2 * n - 1 - i] = cg_minus_(a, b);
    }
}
CG_INLINE_ float cg_negate_odd_(float f, size_t i) { return cg_as_float_(cg_as_bits_(f) ^ (uint32_t)(i & 1) << 31); }
/* x[2n] to p[n] and q[n], which are inputs of two DCT-II; every other q is negated. n is 16 or 8. Then the inverse. */
CG_INLINE_ void cg_dct_givens_(const float *x, size_t n, float *p, float *q) {
    const float *c = cg_dct_cos_ + (n == 8 ? 16 : 0), *s = cg_dct_sin_ + (n == 8 ? 16 : 0);
    for (size_t i = 0; i < n; i++) {
        const float a = x[i], b = x[2 * n - 1 - i];
        p[i] = cg_plus_(cg_times_(a, c[i]), cg_times_(b, s[i]));
        q[i] = cg_negate_odd_(cg_minus_(cg_times_(b, c[i]), cg_times_(a, s[i])), i);
    }
}
CG_INLINE_ void cg_dct_givens_inv_(const float *p, const float *q, size_t n, float *x) {
    const float *c = cg_dct_cos_ + (n == 8 ? 16 : 0), *s = cg_dct_sin_ + (n == 8 ? 16 : 0);
    for (size_t i = 0; i < n; i++) {
        const float a = p[i], b = cg_negate_odd_(q[i], i);
        x[i] = cg_minus_(cg_times_(a, c[i]), cg_times_(b, s[i]));
        x[2 * n - 1 - i] = cg_plus_(cg_times_(a, s[i]), cg_times_(b, c[i]));
    }
}
/* The outputs p[n] and q[n] of two DCT-II, both as if followed by a 0, to the even and the odd outputs of a DCT-IV of
   2n, `stride` values apart; then the transpose. */
CG_INLINE_ void cg_dct4_from_dct2_(const float *p, const float *q, size_t n, float *even, float *odd, size_t stride) {
    const float sqrt2 = 1.41421354f;
    for (size_t i = 0; i < n; i++) {
        const float a = i ? p[i] : cg_times_(p[0], sqrt2), b = i + 1 < n ? q[n - 1 - i] : cg_times_(q[0], sqrt2);
        even[i * stride] = cg_plus_(a, i ? q[n - i] : 0.0f);
        odd[i * stride] = cg_minus_(i + 1 < n ? p[i + 1] : 0.0f, b);
    }
}
CG_INLINE_ void cg_dct4_to_dct2_(const float *even, const float *odd, size_t stride, size_t n, float *p, float *q) {
    const float sqrt2 = 1.41421354f;
    for (size_t i = 0; i < n; i++) {
        p[i] = cg_plus_(even[i * stride], i ? odd[(i - 1) * stride] : 0.0f);
        q[n - 1 - i] = cg_minus_(i + 1 < n ? even[(i + 1) * stride] : 0.0f, odd[i * stride]);
    }
    p[0] = cg_times_(p[0], sqrt2);
    q[0] = cg_times_(q[0], sqrt2);
}
CG_INLINE_ void cg_interleave_(const float *a, const float *b, size_t n, float *x) {
    for (size_t i = 0; i < n; i++) {
        x[2 * i] = a[i];
        x[2 * i + 1] = b[i];
    }
}
CG_INLINE_ void cg_deinterleave_(const float *x, size_t n, float *a, float *b) {
    for (size_t i = 0; i < n; i++) {
        a[i] = x[2 * i];
        b[i] = x[2 * i + 1];
    }
}
/* v[64] to the inputs t of eight transforms of 8 values: a DCT-II, a DCT-IV, two DCT-II, then a DCT-II and a DCT-IV
   twice. cg_dct_merge_ makes the DCT's outputs of theirs; cg_idct_split_ and cg_idct_merge_ are the same for the
   inverse, with DCT-III in the place of DCT-II. */
static void cg_dct_split_(const float *v, float *t) {
    float u[64], w[32];
    cg_dct_fold_(v, 32, u, u + 32);
    cg_dct_fold_(u, 16, w, w + 16);
    cg_dct_fold_(w, 8, t, t + 8);
    cg_dct_givens_(w + 16, 8, t + 16, t + 24);
    cg_dct_givens_(u + 32, 16, w, w + 16);
    cg_dct_fold_(w, 8, t + 32, t + 40);
    cg_dct_fold_(w + 16, 8, t + 48, t + 56);
}
static void cg_dct_merge_(const float *t, float *v) {
    float p[16], q[16];
    for (size_t i = 0; i < 8; i++) {
        v[8 * i] = t[i];
        v[8 * i + 4] = t[8 + i];
    }
    cg_dct4_from_dct2_(t + 16, t + 24, 8, v + 2, v + 6, 8);
    cg_interleave_(t + 32, t + 40, 8, p);
    cg_interleave_(t + 48, t + 56, 8, q);
    cg_dct4_from_dct2_(p, q, 16, v + 1, v + 3, 4);
}
static void cg_idct_split_(const float *v, float *t) {
    float p[16], q[16];
    for (size_t i = 0; i < 8; i++) {
        t[i] = v[8 * i];
        t[8 + i] = v[8 * i + 4];
    }
    cg_dct4_to_dct2_(v + 2, v + 6, 8, 8, t + 16, t + 24);
    cg_dct4_to_dct2_(v + 1, v + 3, 4, 16, p, q);
    cg_deinterleave_(p, 8, t + 32, t + 40);
    cg_deinterleave_(q, 8, t + 48, t + 56);
}
static void cg_idct_merge_(const float *t, float *v) {
    float u[64], w[32];
    cg_dct_unfold_(t + 32, t + 40, 8, w);
    cg_dct_unfold_(t + 48, t + 56, 8, w + 16);
    cg_dct_givens_inv_(w, w + 16, 16, u + 32);
    cg_dct_givens_inv_(t + 16, t + 24, 8, w + 16);
    cg_dct_unfold_(t, t + 8, 8, w);
    cg_dct_unfold_(w, w + 16, 16, u);
    cg_dct_unfold_(u, u + 32, 32, v);
}
/* of the group-th transform of 8 values */
CG_INLINE_ const float *cg_dct_matrix_of_(size_t group, int inverse) {
    return group == 1 || group == 5 || group == 7 ? cg_dct4_matrix_ : inverse ? cg_dct3_matrix_ : cg_dct2_matrix_;
}
/* dct: in place, in the order of operations above: it decides roundings, and is part of the wire format. A matrix
   product adds its terms in the order of the inputs. */
static void cg_dct_scalar_(float *v, int inverse) {
    float x[64], t[64], y[64];
    memcpy(x, v, sizeof x);
    if (inverse) cg_idct_split_(x, t);
    else cg_dct_split_(x, t);
    for (size_t g = 0; g < 8; g++) {
        const float *m = cg_dct_matrix_of_(g, inverse);
        for (size_t j = 0; j < 8; j++) {
            float s = cg_times_(m[j], t[8 * g]);
            for (size_t i = 1; i < 8; i++) s = cg_plus_(s, cg_times_(m[8 * i + j], t[8 * g + i]));
            y[8 * g + j] = s;
        }
    }
    if (inverse) cg_idct_merge_(y, x);
    else cg_dct_merge_(y, x);
    memcpy(v, x, sizeof x);
}
#if CG_VECTOR_
/* As the scalar functions of the same names, for eight pairs; b holds the second values in reverse order. */
CG_VECTOR_FN_ void cg_dct_fold8_(cg_vf_ a, cg_vf_ b, cg_vf_ *even, cg_vf_ *odd) {
    b = cg_vf_reverse_(b);
    *even = cg_vf_add_(a, b);
    *odd = cg_vf_sub_(a, b);
}
CG_VECTOR_FN_ void cg_dct_unfold8_(cg_vf_ even, cg_vf_ odd, cg_vf_ *a, cg_vf_ *b) {
    *a = cg_vf_add_(even, odd);
    *b = cg_vf_reverse_(cg_vf_sub_(even, odd));
}
CG_VECTOR_FN_ cg_vf_ cg_negate_odd8_(cg_vf_ x) {
    static const uint32_t odd[8] = { 0, CG_SIGN_BIT_, 0, CG_SIGN_BIT_, 0, CG_SIGN_BIT_, 0, CG_SIGN_BIT_ };
    return cg_vf_of_(cg_vu_xor_(cg_vu_of_(x), cg_vu_load_(odd)));
}
CG_VECTOR_FN_ void cg_dct_givens8_(cg_vf_ a, cg_vf_ b, size_t angle, cg_vf_ *p, cg_vf_ *q) {
    const cg_vf_ c = cg_vf_load_(cg_dct_cos_, angle), s = cg_vf_load_(cg_dct_sin_, angle);
    b = cg_vf_reverse_(b);
    *p = cg_vf_add_(cg_vf_mul_(a, c), cg_vf_mul_(b, s));
    *q = cg_negate_odd8_(cg_vf_sub_(cg_vf_mul_(b, c), cg_vf_mul_(a, s)));
}
CG_VECTOR_FN_ void cg_dct_givens_inv8_(cg_vf_ p, cg_vf_ q, size_t angle, cg_vf_ *a, cg_vf_ *b) {
    const cg_vf_ c = cg_vf_load_(cg_dct_cos_, angle), s = cg_vf_load_(cg_dct_sin_, angle);
    q = cg_negate_odd8_(q);
    *a = cg_vf_sub_(cg_vf_mul_(p, c), cg_vf_mul_(q, s));
    *b = cg_vf_reverse_(cg_vf_add_(cg_vf_mul_(p, s), cg_vf_mul_(q, c)));
}
/* value 0 times sqrt(2) */
CG_VECTOR_FN_ cg_vf_ cg_sqrt2_first_(cg_vf_ x) {
    return cg_vf_mul_(x, cg_vf_make_(1.41421354f, 1.0f, 1.0f, 1.0f, 1.0f, 1.0f, 1.0f, 1.0f));
}
/* The eight matrix products. Inputs go through memory: a load broadcasts a single value for free. */
CG_VECTOR_FN_ void cg_dct_matvecs_(cg_vf_ *x, int inverse) {
    float t[64];
    CG_UNROLL_
    for (size_t g = 0; g < 8; g++) cg_vf_store_(t, 8 * g, x[g]);
    CG_UNROLL_
    for (size_t g = 0; g < 8; g++) {
        const float *m = cg_dct_matrix_of_(g, inverse);
        cg_vf_ s = cg_vf_mul_(cg_vf_load_(m, 0), cg_vf_broadcast_(t + 8 * g));
        CG_UNROLL_
        for (size_t i = 1; i < 8; i++)
            s = cg_vf_add_(s, cg_vf_mul_(cg_vf_load_(m, 8 * i), cg_vf_broadcast_(t + 8 * g + i)));
        x[g] = s;
    }
}
CG_VECTOR_FN_ void cg_dct_forward_(float *v) {
    const cg_vf_ none = cg_vf_set_(0.0f);
    cg_vf_ x[8], u0, u1, u2, u3, w0, w1, w2, w3, e0, e1, o0, o1, p0, p1, q0, q1;
    cg_dct_fold8_(cg_vf_load_(v, 0), cg_vf_load_(v, 56), &u0, &w0);
    cg_dct_fold8_(cg_vf_load_(v, 8), cg_vf_load_(v, 48), &u1, &w1);
    cg_dct_fold8_(cg_vf_load_(v, 16), cg_vf_load_(v, 40), &u2, &w2);
    cg_dct_fold8_(cg_vf_load_(v, 24), cg_vf_load_(v, 32), &u3, &w3);
    cg_dct_fold8_(u0, u3, &e0, &o0);
    cg_dct_fold8_(u1, u2, &e1, &o1);
    cg_dct_fold8_(e0, e1, x, x + 1);
    cg_dct_givens8_(o0, o1, 16, x + 2, x + 3);
    cg_dct_givens8_(w0, w3, 0, &p0, &q0);
    cg_dct_givens8_(w1, w2, 8, &p1, &q1);
    cg_dct_fold8_(p0, p1, x + 4, x + 5);
    cg_dct_fold8_(q0, q1, x + 6, x + 7);
    cg_dct_matvecs_(x, 0);
    p0 = cg_sqrt2_first_(x[2]);
    q0 = cg_sqrt2_first_(x[3]);
    e0 = cg_vf_add_(p0, cg_vf_reverse_(cg_vf_next_(q0, none)));
    o0 = cg_vf_sub_(cg_vf_next_(p0, none), cg_vf_reverse_(q0));
    cg_vf_interleave_(e0, o0, &e0, &e1);     /* 2, 6, 10, ... */
    cg_vf_interleave_(x[0], x[1], &o0, &o1); /* 0, 4, 8, ... */
    cg_vf_interleave_(o0, e0, &u0, &u1);
    cg_vf_interleave_(o1, e1, &u2, &u3);
    cg_vf_interleave_(x[4], x[5], &p0, &p1);
    cg_vf_interleave_(x[6], x[7], &q0, &q1);
    p0 = cg_sqrt2_first_(p0);
    q0 = cg_sqrt2_first_(q0);
    e0 = cg_vf_add_(p0, cg_vf_reverse_(cg_vf_next_(q1, none)));
    e1 = cg_vf_add_(p1, cg_vf_reverse_(cg_vf_next_(q0, q1)));
    o0 = cg_vf_sub_(cg_vf_next_(p0, p1), cg_vf_reverse_(q1));
    o1 = cg_vf_sub_(cg_vf_next_(p1, none), cg_vf_reverse_(q0));
    cg_vf_interleave_(e0, o0, &w0, &w1);
    cg_vf_interleave_(e1, o1, &w2, &w3);
    cg_vf_interleave_(u0, w0, x, x + 1);
    cg_vf_interleave_(u1, w1, x + 2, x + 3);
    cg_vf_interleave_(u2, w2, x + 4, x + 5);
    cg_vf_interleave_(u3, w3, x + 6, x + 7);
    CG_UNROLL_
    for (size_t i = 0; i < 8; i++) cg_vf_store_(v, 8 * i, x[i]);
}
CG_VECTOR_FN_ void cg_dct_inverse_(float *v) {
    const cg_vf_ none = cg_vf_set_(0.0f);
    cg_vf_ x[8], u0, u1, u2, u3, w0, w1, w2, w3, e0, e1, o0, o1, p0, p1, q0, q1;
    cg_vf_deinterleave_(cg_vf_load_(v, 0), cg_vf_load_(v, 8), &u0, &w0);
    cg_vf_deinterleave_(cg_vf_load_(v, 16), cg_vf_load_(v, 24), &u1, &w1);
    cg_vf_deinterleave_(cg_vf_load_(v, 32), cg_vf_load_(v, 40), &u2, &w2);
    cg_vf_deinterleave_(cg_vf_load_(v, 48), cg_vf_load_(v, 56), &u3, &w3);
    cg_vf_deinterleave_(w0, w1, &e0, &o0);
    cg_vf_deinterleave_(w2, w3, &e1, &o1);
    p0 = cg_sqrt2_first_(cg_vf_add_(e0, cg_vf_prev_(o0, none)));
    p1 = cg_vf_add_(e1, cg_vf_prev_(o1, o0));
    q1 = cg_vf_reverse_(cg_vf_sub_(cg_vf_next_(e0, e1), o0));
    q0 = cg_sqrt2_first_(cg_vf_reverse_(cg_vf_sub_(cg_vf_next_(e1, none), o1)));
    cg_vf_deinterleave_(p0, p1, x + 4, x + 5);
    cg_vf_deinterleave_(q0, q1, x + 6, x + 7);
    cg_vf_deinterleave_(u0, u1, &p0, &q0);
    cg_vf_deinterleave_(u2, u3, &p1, &q1);
    cg_vf_deinterleave_(p0, p1, x, x + 1);
    cg_vf_deinterleave_(q0, q1, &e0, &o0);
    x[2] = cg_sqrt2_first_(cg_vf_add_(e0, cg_vf_prev_(o0, none)));
    x[3] = cg_sqrt2_first_(cg_vf_reverse_(cg_vf_sub_(cg_vf_next_(e0, none), o0)));
    cg_dct_matvecs_(x, 1);
    cg_dct_unfold8_(x[4], x[5], &p0, &p1);
    cg_dct_unfold8_(x[6], x[7], &q0, &q1);
    cg_dct_givens_inv8_(p0, q0, 0, &w0, &w3);
    cg_dct_givens_inv8_(p1, q1, 8, &w1, &w2);
    cg_dct_unfold8_(x[0], x[1], &e0, &e1);
    cg_dct_givens_inv8_(x[2], x[3], 16, &o0, &o1);
    cg_dct_unfold8_(e0, o0, &u0, &u3);
    cg_dct_unfold8_(e1, o1, &u1, &u2);
    cg_dct_unfold8_(u0, w0, x, x + 7);
    cg_dct_unfold8_(u1, w1, x + 1, x + 6);
    cg_dct_unfold8_(u2, w2, x + 2, x + 5);
    cg_dct_unfold8_(u3, w3, x + 3, x + 4);
    CG_UNROLL_
    for (size_t i = 0; i < 8; i++) cg_vf_store_(v, 8 * i, x[i]);
}
CG_VECTOR_FN_ void cg_dct_simd_(float *v, int inverse) {
    if (inverse) cg_dct_inverse_(v);
    else cg_dct_forward_(v);
}
#endif
