/* matrix: kernels that multiply a matrix by a few vectors, and that expand a product of factors

   Offers   project, project_t, lowrank_tile; CG_TILE_COLS_, CG_TILE_ROWS_, CG_PANEL_, CG_POW2_64_
   Needs    base, table, the vector layer
   Touches  nothing but its arguments
   project multiplies two f32 values in f64: the product has 48 bits, so it neither rounds nor overflows nor loses a
   denormal, and fusing it with an addition changes nothing. project_t and lowrank_tile multiply in f32, for speed. */

#define CG_TILE_COLS_ 512u                 /* columns that project sums before it adds up its lanes */
#define CG_POW2_64_ 18446744073709551616.0 /* 2^64: brings what f32 cannot hold into its range */
#define CG_TILE_ROWS_ 8u                   /* rows that project_t sums in f32, and the height of a tile */
#define CG_PANEL_ 32u                      /* vectors that are multiplied with a matrix at once */

/* project: p[a][i] += sum over j of m[i][j]*q[a][j], for a < r: r columns of the product of M and q^T. The sum has four
   lanes by j % 4, added as (0 + 2) + (1 + 3). Rows of m, q and p are stride, q_stride and p_stride values apart; the
   values of q are representable in f32; cols <= CG_TILE_COLS_. prefetch: NULL, or rows*cols floats that come next. */
static void cg_project_scalar_(const float *m, size_t stride, size_t rows, size_t cols, const double *q,
    size_t q_stride, unsigned r, double *p, size_t p_stride, const float *prefetch) {
    (void)prefetch;
    for (size_t i = 0; i < rows; i++) {
        const float *v = cg_at_(m, i * stride);
        for (unsigned a = 0; a < r; a++) {
            const double *w = q + a * q_stride;
            double s[4] = { 0.0, 0.0, 0.0, 0.0 };
            size_t j = 0;
            for (; j + 4 <= cols; j += 4)
                for (size_t l = 0; l < 4; l++) s[l] += (double)cg_load_(v, j + l) * w[j + l];
            for (; j < cols; j++) s[j & 3] += (double)cg_load_(v, j) * w[j];
            p[a * p_stride + i] += (s[0] + s[2]) + (s[1] + s[3]);
        }
    }
}
#if CG_VECTOR_
/* The columns j..cols-1 that fill no vector, then the sum of the lanes s to *p. */
CG_INLINE_ void cg_project_rest_(double *s, const float *v, const double *w, size_t j, size_t cols, double *p) {
    for (; j < cols; j++) s[j & 3] += (double)cg_load_(v, j) * w[j];
    *p += (s[0] + s[2]) + (s[1] + s[3]);
}
/* four values of two rows, times one to four vectors */
CG_VECTOR_FN_ void cg_project4_(
    const float *v, const float *u, size_t j, const double *q, size_t q_stride, int vectors, cg_vd_ *s, cg_vd_ *t) {
    const cg_vd_ x = cg_vd_floats_(v, j), y = cg_vd_floats_(u, j);
    CG_UNROLL_
    for (int a = 0; a < vectors; a++) {
        const cg_vd_ w = cg_vd_load_(q + (size_t)a * q_stride + j);
        s[a] = cg_vd_add_(s[a], cg_vd_mul_(x, w));
        t[a] = cg_vd_add_(t[a], cg_vd_mul_(y, w));
    }
}
/* Rows v and u (only v if next is 0), times `vectors` (1..4, a constant) rows of q. */
CG_VECTOR_FN_ void cg_project2_(const float *v, const float *u, size_t cols, const double *q, size_t q_stride,
    int vectors, double *p, size_t p_stride, size_t next, const float *prefetch) {
    cg_vd_ s[4], t[4];
    size_t j = 0;
    CG_UNROLL_
    for (int a = 0; a < 4; a++) s[a] = t[a] = cg_vd_zero_();
    for (; j + 16 <= cols; j += 16) {
        if (prefetch) { /* rows of a matrix are pages apart, where hardware prefetching does not look */
            CG_PREFETCH_L2_(cg_at_(prefetch, 2 * j));
            CG_PREFETCH_L2_(cg_at_(prefetch, 2 * j + 16));
        }
        cg_project4_(v, u, j, q, q_stride, vectors, s, t);
        cg_project4_(v, u, j + 4, q, q_stride, vectors, s, t);
        cg_project4_(v, u, j + 8, q, q_stride, vectors, s, t);
        cg_project4_(v, u, j + 12, q, q_stride, vectors, s, t);
    }
    for (; j + 4 <= cols; j += 4) cg_project4_(v, u, j, q, q_stride, vectors, s, t);
    CG_UNROLL_
    for (int a = 0; a < vectors; a++, q += q_stride, p += p_stride) {
        double lanes[4];
        cg_vd_store_(lanes, s[a]);
        cg_project_rest_(lanes, v, q, j, cols, p);
        cg_vd_store_(lanes, t[a]);
        if (next) cg_project_rest_(lanes, u, q, j, cols, p + 1);
    }
}
CG_VECTOR_FN_ void cg_project_simd_(const float *m, size_t stride, size_t rows, size_t cols, const double *q,
    size_t q_stride, unsigned r, double *p, size_t p_stride, const float *prefetch) {
    for (size_t i = 0; i < rows; i += 2) {
        const size_t next = i + 1 < rows;
        const float *v = cg_at_(m, i * stride), *u = cg_at_(v, next * stride),
                    *prefetch_row = prefetch ? cg_at_(prefetch, i * cols) : NULL;
        const double *w = q;
        double *t = p + i;
        unsigned left = r;
        for (; left >= 4; left -= 4, w += 4 * q_stride, t += 4 * p_stride, prefetch_row = NULL)
            cg_project2_(v, u, cols, w, q_stride, 4, t, p_stride, next, prefetch_row);
        if (left == 3) cg_project2_(v, u, cols, w, q_stride, 3, t, p_stride, next, prefetch_row);
        if (left == 2) cg_project2_(v, u, cols, w, q_stride, 2, t, p_stride, next, prefetch_row);
        if (left == 1) cg_project2_(v, u, cols, w, q_stride, 1, t, p_stride, next, prefetch_row);
    }
}
#endif

/* project_t: q[a][j] += sum over i of p[i][a]*m[i][j], for a < r: the product of p^T and M. Products and sums are
   f32, in the order of the rows, over CG_TILE_ROWS_ rows at a time; those sums are added in f64. They may overflow.
   Strides and prefetch as for project. */
static void cg_project_t_scalar_(const float *m, size_t stride, size_t rows, size_t cols, const float *p,
    size_t p_stride, unsigned r, double *q, size_t q_stride, const float *prefetch) {
    (void)prefetch;
    for (size_t i = 0; i < rows; i += CG_TILE_ROWS_)
        for (unsigned a = 0; a < r; a++)
            for (size_t j = 0; j < cols; j++) {
                float s = 0.0f;
                for (size_t l = i; l < rows && l < i + CG_TILE_ROWS_; l++)
                    s = cg_plus_(s, cg_times_(cg_load_(p, l * p_stride + a), cg_load_(m, l * stride + j)));
                q[a * q_stride + j] += (double)s;
            }
}
#if CG_VECTOR_
/* q[0..7] += s */
CG_VECTOR_FN_ void cg_vd_add8_(double *q, cg_vf_ s) {
    cg_vd_store_(q, cg_vd_add_(cg_vd_load_(q), cg_vd_low_(s)));
    cg_vd_store_(q + 4, cg_vd_add_(cg_vd_load_(q + 4), cg_vd_high_(s)));
}
/* Up to CG_TILE_ROWS_ rows, `vectors` (1..4, a constant) columns of p; cols % 16 == 0. */
CG_VECTOR_FN_ void cg_project_t8_(const float *m, size_t stride, size_t rows, size_t cols, const float *p,
    size_t p_stride, int vectors, double *q, size_t q_stride, const float *prefetch) {
    for (size_t j = 0; j + 16 <= cols; j += 16) {
        cg_vf_ s[4], t[4];
        const float *v = cg_at_(m, j);
        CG_UNROLL_
        for (int a = 0; a < 4; a++) s[a] = t[a] = cg_vf_set_(0.0f);
        for (size_t i = 0; i < rows; i++, v = cg_at_(v, stride)) {
            const cg_vf_ x = cg_vf_load_(v, 0), y = cg_vf_load_(v, 8);
            if (prefetch) CG_PREFETCH_L2_(cg_at_(prefetch, rows * j + 16 * i));
            CG_UNROLL_
            for (int a = 0; a < vectors; a++) {
                const cg_vf_ w = cg_vf_set_(cg_load_(p, i * p_stride + (size_t)a));
                s[a] = cg_vf_add_(s[a], cg_vf_mul_(w, x));
                t[a] = cg_vf_add_(t[a], cg_vf_mul_(w, y));
            }
        }
        CG_UNROLL_
        for (int a = 0; a < vectors; a++) {
            cg_vd_add8_(q + (size_t)a * q_stride + j, s[a]);
            cg_vd_add8_(q + (size_t)a * q_stride + j + 8, t[a]);
        }
    }
}
CG_VECTOR_FN_ void cg_project_t_simd_(const float *m, size_t stride, size_t rows, size_t cols, const float *p,
    size_t p_stride, unsigned r, double *q, size_t q_stride, const float *prefetch) {
    const size_t vector_cols = cols & ~(size_t)15;
    for (size_t i = 0; i < rows && vector_cols; i += CG_TILE_ROWS_) {
        const size_t many = cg_min_(CG_TILE_ROWS_, rows - i);
        const float *v = cg_at_(m, i * stride), *w = cg_at_(p, i * p_stride),
                    *prefetch_row = prefetch ? cg_at_(prefetch, i * cols) : NULL;
        double *t = q;
        unsigned left = r;
        for (; left >= 4; left -= 4, w = cg_at_(w, 4), t += 4 * q_stride, prefetch_row = NULL)
            cg_project_t8_(v, stride, many, vector_cols, w, p_stride, 4, t, q_stride, prefetch_row);
        if (left == 3) cg_project_t8_(v, stride, many, vector_cols, w, p_stride, 3, t, q_stride, prefetch_row);
        if (left == 2) cg_project_t8_(v, stride, many, vector_cols, w, p_stride, 2, t, q_stride, prefetch_row);
        if (left == 1) cg_project_t8_(v, stride, many, vector_cols, w, p_stride, 1, t, q_stride, prefetch_row);
    }
    if (vector_cols < cols)
        cg_project_t_scalar_(
            cg_at_(m, vector_cols), stride, rows, cols - vector_cols, p, p_stride, r, q + vector_cols, q_stride, NULL);
}
#endif

/* lowrank_tile: out[i][j] = p[i][0]*q[0][j] + p[i][1]*q[1][j] + ..., j < count, products and sums rounded to f32 in
   this order; where that is not finite, summed in f64 and kept within the range of f32. p has r values per row, rows of
   q and out are q_stride and out_stride floats apart. Finite factors give finite values. non_temporal: every row of out
   begins at a multiple of 16 bytes. */
CG_INLINE_ float cg_lowrank_one_(const float *p, const float *q, size_t q_stride, unsigned r, size_t j) {
    float s = 0.0f;
    for (unsigned a = 0; a < r; a++) {
        float t = cg_times_(cg_load_(p, a), cg_load_(q, a * q_stride + j));
        s = a ? cg_plus_(s, t) : t;
    }
    if ((cg_as_bits_(s) & CG_ABS_MASK_) >= CG_INF_BITS_) {
        double d = 0.0;
        for (unsigned a = 0; a < r; a++) d += (double)cg_load_(p, a) * (double)cg_load_(q, a * q_stride + j);
        s = cg_saturate64_(d);
    }
    return s;
}
static void cg_lowrank_tile_scalar_(const float *p, const float *q, size_t q_stride, unsigned r, size_t rows,
    size_t count, float *out, size_t out_stride, int non_temporal) {
    (void)non_temporal;
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < count; j++)
            cg_store_(out, i * out_stride + j, cg_lowrank_one_(cg_at_(p, i * r), q, q_stride, r, j));
}
#if CG_VECTOR_
/* rows is 1 or 4, a constant; count % 16 == 0, r > 0 */
CG_VECTOR_FN_ void cg_lowrank16_(const float *p, const float *q, size_t q_stride, unsigned r, size_t count, float *out,
    size_t out_stride, size_t rows, int non_temporal) {
    for (size_t j = 0; j + 16 <= count; j += 16) {
        cg_vf_ s[4], t[4];
        cg_vu_ absmax = cg_vu_set_(0);
        const float *v = cg_at_(q, j);
        CG_UNROLL_
        for (size_t i = 0; i < rows; i++) {
            const cg_vf_ w = cg_vf_set_(cg_load_(p, i * r));
            s[i] = cg_vf_mul_(w, cg_vf_load_(v, 0));
            t[i] = cg_vf_mul_(w, cg_vf_load_(v, 8));
        }
        for (size_t a = 1; a < r; a++) {
            const cg_vf_ x = cg_vf_load_(v = cg_at_(v, q_stride), 0), y = cg_vf_load_(v, 8);
            CG_UNROLL_
            for (size_t i = 0; i < rows; i++) {
                const cg_vf_ w = cg_vf_set_(cg_load_(p, a + i * r));
                s[i] = cg_vf_add_(s[i], cg_vf_mul_(w, x));
                t[i] = cg_vf_add_(t[i], cg_vf_mul_(w, y));
            }
        }
        CG_UNROLL_
        for (size_t i = 0; i < rows; i++)
            absmax = cg_vu_absmax_(cg_vu_absmax_(absmax, cg_vu_of_(s[i])), cg_vu_of_(t[i]));
        if (CG_LIKELY_(!cg_vu_any_(cg_vu_gt_(absmax, cg_vu_set_(CG_INF_BITS_ - 1))))) {
            CG_UNROLL_
            for (size_t i = 0; i < rows; i++) {
                cg_vf_stream_(out, j + i * out_stride, s[i], non_temporal);
                cg_vf_stream_(out, j + i * out_stride + 8, t[i], non_temporal);
            }
        } else {
            cg_lowrank_tile_scalar_(p, cg_at_(q, j), q_stride, r, rows, 16, cg_at_mut_(out, j), out_stride, 0);
        }
    }
}
CG_VECTOR_FN_ void cg_lowrank_tile_simd_(const float *p, const float *q, size_t q_stride, unsigned r, size_t rows,
    size_t count, float *out, size_t out_stride, int non_temporal) {
    const size_t vector_cols = r ? count & ~(size_t)15 : 0;
    /* a q of few rows is read faster than four rows of out are written at once */
    const size_t step = r > 6 ? 4 : 1;
    for (size_t i = 0, many; i < rows; i += many) {
        const float *u = cg_at_(p, i * r);
        float *to = cg_at_mut_(out, i * out_stride);
        many = i + step <= rows ? step : 1;
        if (many == 4 && non_temporal) cg_lowrank16_(u, q, q_stride, r, vector_cols, to, out_stride, 4, 1);
        else if (many == 4) cg_lowrank16_(u, q, q_stride, r, vector_cols, to, out_stride, 4, 0);
        else if (non_temporal) cg_lowrank16_(u, q, q_stride, r, vector_cols, to, out_stride, 1, 1);
        else cg_lowrank16_(u, q, q_stride, r, vector_cols, to, out_stride, 1, 0);
    }
    if (vector_cols < count)
        cg_lowrank_tile_scalar_(p, cg_at_(q, vector_cols), q_stride, r, rows, count - vector_cols,
            cg_at_mut_(out, vector_cols), out_stride, 0);
}
#endif
