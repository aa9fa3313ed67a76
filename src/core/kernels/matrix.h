/* matrix: kernels that multiply a matrix by a few vectors, and that expand a product of factors

   Offers   project, project_t, lowrank_tile; CG_TILE_COLS_, CG_TILE_ROWS_, CG_PANEL_, CG_POW2_64_
   Needs    base, table
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
#if CG_AVX2_ || CG_NEON_
/* The columns j..cols-1 that fill no vector, then the sum of the lanes s to *p. */
CG_INLINE_ void cg_project_rest_(double *s, const float *v, const double *w, size_t j, size_t cols, double *p) {
    for (; j < cols; j++) s[j & 3] += (double)cg_load_(v, j) * w[j];
    *p += (s[0] + s[2]) + (s[1] + s[3]);
}
#endif
#if CG_AVX2_
/* four floats as doubles */
CG_AVX2_INLINE_ __m256d cg_load4_pd_avx2_(const float *v, size_t j) {
    return _mm256_cvtps_pd(_mm_castsi128_ps(_mm_loadu_si128((const __m128i *)(const void *)cg_at_(v, j))));
}
/* Prefetches into L2. Rows of a matrix are pages apart, where hardware prefetching does not look. */
CG_AVX2_INLINE_ void cg_prefetch_l2_avx2_(const float *v, size_t i) {
    _mm_prefetch((const char *)(const void *)cg_at_(v, i), _MM_HINT_T1);
}
/* s += v*w */
#  define CG_MADD_AVX2_(s, v, w) s = _mm256_add_pd(s, _mm256_mul_pd(v, w))
/* four values of two rows, times one to four vectors */
#  define CG_PROJECT_AVX2_(j)                                                 \
    {                                                                         \
      const __m256d x = cg_load4_pd_avx2_(v, j), y = cg_load4_pd_avx2_(u, j); \
      __m256d w_ = _mm256_loadu_pd(q + (j));                                  \
      CG_MADD_AVX2_(s0, x, w_);                                               \
      CG_MADD_AVX2_(t0, y, w_);                                               \
      if (vectors > 1) {                                                      \
        w_ = _mm256_loadu_pd(q + q_stride + (j));                             \
        CG_MADD_AVX2_(s1, x, w_);                                             \
        CG_MADD_AVX2_(t1, y, w_);                                             \
      }                                                                       \
      if (vectors > 2) {                                                      \
        w_ = _mm256_loadu_pd(q + 2 * q_stride + (j));                         \
        CG_MADD_AVX2_(s2, x, w_);                                             \
        CG_MADD_AVX2_(t2, y, w_);                                             \
      }                                                                       \
      if (vectors > 3) {                                                      \
        w_ = _mm256_loadu_pd(q + 3 * q_stride + (j));                         \
        CG_MADD_AVX2_(s3, x, w_);                                             \
        CG_MADD_AVX2_(t3, y, w_);                                             \
      }                                                                       \
    }
/* Rows v and u (only v if next is 0), times `vectors` (1..4, a constant) rows of q. */
CG_AVX2_INLINE_ void cg_project2_avx2_(const float *v, const float *u, size_t cols, const double *q, size_t q_stride,
    int vectors, double *p, size_t p_stride, size_t next, const float *prefetch) {
    __m256d s0 = _mm256_setzero_pd(), s1 = s0, s2 = s0, s3 = s0, t0 = s0, t1 = s0, t2 = s0, t3 = s0;
    double s[8][4];
    size_t j = 0;
    for (; j + 16 <= cols; j += 16) {
        if (prefetch) {
            cg_prefetch_l2_avx2_(prefetch, 2 * j);
            cg_prefetch_l2_avx2_(prefetch, 2 * j + 16);
        }
        CG_PROJECT_AVX2_(j)
        CG_PROJECT_AVX2_(j + 4)
        CG_PROJECT_AVX2_(j + 8)
        CG_PROJECT_AVX2_(j + 12)
    }
    for (; j + 4 <= cols; j += 4) CG_PROJECT_AVX2_(j)
    _mm256_storeu_pd(s[0], s0);
    _mm256_storeu_pd(s[1], s1);
    _mm256_storeu_pd(s[2], s2);
    _mm256_storeu_pd(s[3], s3);
    _mm256_storeu_pd(s[4], t0);
    _mm256_storeu_pd(s[5], t1);
    _mm256_storeu_pd(s[6], t2);
    _mm256_storeu_pd(s[7], t3);
    for (int a = 0; a < vectors; a++, q += q_stride, p += p_stride) {
        cg_project_rest_(s[a], v, q, j, cols, p);
        if (next) cg_project_rest_(s[a + 4], u, q, j, cols, p + 1);
    }
}
CG_TARGET_AVX2_ static void cg_project_avx2_(const float *m, size_t stride, size_t rows, size_t cols, const double *q,
    size_t q_stride, unsigned r, double *p, size_t p_stride, const float *prefetch) {
    for (size_t i = 0; i < rows; i += 2) {
        const size_t next = i + 1 < rows;
        const float *v = cg_at_(m, i * stride), *u = cg_at_(v, next * stride),
                    *prefetch_row = prefetch ? cg_at_(prefetch, i * cols) : NULL;
        const double *w = q;
        double *t = p + i;
        unsigned left = r;
        for (; left >= 4; left -= 4, w += 4 * q_stride, t += 4 * p_stride, prefetch_row = NULL)
            cg_project2_avx2_(v, u, cols, w, q_stride, 4, t, p_stride, next, prefetch_row);
        if (left == 3) cg_project2_avx2_(v, u, cols, w, q_stride, 3, t, p_stride, next, prefetch_row);
        if (left == 2) cg_project2_avx2_(v, u, cols, w, q_stride, 2, t, p_stride, next, prefetch_row);
        if (left == 1) cg_project2_avx2_(v, u, cols, w, q_stride, 1, t, p_stride, next, prefetch_row);
    }
}
#endif
#if CG_NEON_
/* Row v, times `vectors` (1..4, a constant) rows of q. */
CG_INLINE_ void cg_project1_neon_(
    const float *v, size_t cols, const double *q, size_t q_stride, int vectors, double *p, size_t p_stride) {
    const double *q1 = q + q_stride, *q2 = q1 + q_stride, *q3 = q2 + q_stride;
    float64x2_t s0 = vdupq_n_f64(0.0), s1 = s0, s2 = s0, s3 = s0, t0 = s0, t1 = s0, t2 = s0, t3 = s0;
    double s[4][4];
    size_t j = 0;
    for (; j + 4 <= cols; j += 4) {
        float32x4_t f = cg_as_float_neon_(cg_load4_neon_(v, j));
        float64x2_t x = vcvt_f64_f32(vget_low_f32(f)), y = vcvt_high_f64_f32(f);
        s0 = s0 + x * vld1q_f64(q + j);
        t0 = t0 + y * vld1q_f64(q + j + 2);
        if (vectors > 1) {
            s1 = s1 + x * vld1q_f64(q1 + j);
            t1 = t1 + y * vld1q_f64(q1 + j + 2);
        }
        if (vectors > 2) {
            s2 = s2 + x * vld1q_f64(q2 + j);
            t2 = t2 + y * vld1q_f64(q2 + j + 2);
        }
        if (vectors > 3) {
            s3 = s3 + x * vld1q_f64(q3 + j);
            t3 = t3 + y * vld1q_f64(q3 + j + 2);
        }
    }
    vst1q_f64(s[0], s0);
    vst1q_f64(s[1], s1);
    vst1q_f64(s[2], s2);
    vst1q_f64(s[3], s3);
    vst1q_f64(s[0] + 2, t0);
    vst1q_f64(s[1] + 2, t1);
    vst1q_f64(s[2] + 2, t2);
    vst1q_f64(s[3] + 2, t3);
    for (int a = 0; a < vectors; a++, q += q_stride, p += p_stride) cg_project_rest_(s[a], v, q, j, cols, p);
}
static void cg_project_neon_(const float *m, size_t stride, size_t rows, size_t cols, const double *q, size_t q_stride,
    unsigned r, double *p, size_t p_stride, const float *prefetch) {
    (void)prefetch;
    for (size_t i = 0; i < rows; i++) {
        const float *v = cg_at_(m, i * stride);
        const double *w = q;
        double *t = p + i;
        unsigned left = r;
        for (; left >= 4; left -= 4, w += 4 * q_stride, t += 4 * p_stride)
            cg_project1_neon_(v, cols, w, q_stride, 4, t, p_stride);
        if (left == 3) cg_project1_neon_(v, cols, w, q_stride, 3, t, p_stride);
        if (left == 2) cg_project1_neon_(v, cols, w, q_stride, 2, t, p_stride);
        if (left == 1) cg_project1_neon_(v, cols, w, q_stride, 1, t, p_stride);
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
#if CG_AVX2_
/* s += w*x and t += w*y with w = p[at] */
#  define CG_PROJECT_T_AVX2_(s, t, at)                  \
    {                                                   \
      const __m256 w = _mm256_set1_ps(cg_load_(p, at)); \
      s = _mm256_add_ps(s, cg_mul8_avx2_(w, x));        \
      t = _mm256_add_ps(t, cg_mul8_avx2_(w, y));        \
    }
/* q[0..7] += s */
CG_AVX2_INLINE_ void cg_add8_avx2_(double *q, __m256 s) {
    _mm256_storeu_pd(q, _mm256_add_pd(_mm256_loadu_pd(q), _mm256_cvtps_pd(_mm256_castps256_ps128(s))));
    _mm256_storeu_pd(q + 4, _mm256_add_pd(_mm256_loadu_pd(q + 4), _mm256_cvtps_pd(_mm256_extractf128_ps(s, 1))));
}
/* Up to CG_TILE_ROWS_ rows, `vectors` (1..4, a constant) columns of p; cols % 16 == 0. */
CG_AVX2_INLINE_ void cg_project_t8_avx2_(const float *m, size_t stride, size_t rows, size_t cols, const float *p,
    size_t p_stride, int vectors, double *q, size_t q_stride, const float *prefetch) {
    for (size_t j = 0; j + 16 <= cols; j += 16) {
        __m256 s0 = _mm256_setzero_ps(), s1 = s0, s2 = s0, s3 = s0, t0 = s0, t1 = s0, t2 = s0, t3 = s0;
        const float *v = cg_at_(m, j);
        for (size_t i = 0; i < rows; i++, v = cg_at_(v, stride)) {
            const __m256 x = _mm256_castsi256_ps(cg_load8_avx2_(v, 0)), y = _mm256_castsi256_ps(cg_load8_avx2_(v, 8));
            if (prefetch) cg_prefetch_l2_avx2_(prefetch, rows * j + 16 * i);
            CG_PROJECT_T_AVX2_(s0, t0, i * p_stride)
            if (vectors > 1) CG_PROJECT_T_AVX2_(s1, t1, i * p_stride + 1)
            if (vectors > 2) CG_PROJECT_T_AVX2_(s2, t2, i * p_stride + 2)
            if (vectors > 3) CG_PROJECT_T_AVX2_(s3, t3, i * p_stride + 3)
        }
        cg_add8_avx2_(q + j, s0);
        cg_add8_avx2_(q + j + 8, t0);
        if (vectors > 1) {
            cg_add8_avx2_(q + q_stride + j, s1);
            cg_add8_avx2_(q + q_stride + j + 8, t1);
        }
        if (vectors > 2) {
            cg_add8_avx2_(q + 2 * q_stride + j, s2);
            cg_add8_avx2_(q + 2 * q_stride + j + 8, t2);
        }
        if (vectors > 3) {
            cg_add8_avx2_(q + 3 * q_stride + j, s3);
            cg_add8_avx2_(q + 3 * q_stride + j + 8, t3);
        }
    }
}
CG_TARGET_AVX2_ static void cg_project_t_avx2_(const float *m, size_t stride, size_t rows, size_t cols, const float *p,
    size_t p_stride, unsigned r, double *q, size_t q_stride, const float *prefetch) {
    const size_t vector_cols = cols & ~(size_t)15;
    for (size_t i = 0; i < rows && vector_cols; i += CG_TILE_ROWS_) {
        const size_t many = cg_min_(CG_TILE_ROWS_, rows - i);
        const float *v = cg_at_(m, i * stride), *w = cg_at_(p, i * p_stride),
                    *prefetch_row = prefetch ? cg_at_(prefetch, i * cols) : NULL;
        double *t = q;
        unsigned left = r;
        for (; left >= 4; left -= 4, w = cg_at_(w, 4), t += 4 * q_stride, prefetch_row = NULL)
            cg_project_t8_avx2_(v, stride, many, vector_cols, w, p_stride, 4, t, q_stride, prefetch_row);
        if (left == 3) cg_project_t8_avx2_(v, stride, many, vector_cols, w, p_stride, 3, t, q_stride, prefetch_row);
        if (left == 2) cg_project_t8_avx2_(v, stride, many, vector_cols, w, p_stride, 2, t, q_stride, prefetch_row);
        if (left == 1) cg_project_t8_avx2_(v, stride, many, vector_cols, w, p_stride, 1, t, q_stride, prefetch_row);
    }
    _mm256_zeroupper();
    if (vector_cols < cols)
        cg_project_t_scalar_(
            cg_at_(m, vector_cols), stride, rows, cols - vector_cols, p, p_stride, r, q + vector_cols, q_stride, NULL);
}
#endif
#if CG_NEON_
/* s += w*x and t += w*y with w = p[at] */
#  define CG_PROJECT_T_NEON_(s, t, at)                    \
    {                                                     \
      const float32x4_t w = vdupq_n_f32(cg_load_(p, at)); \
      s = s + cg_times_neon_(w, x);                       \
      t = t + cg_times_neon_(w, y);                       \
    }
CG_INLINE_ void cg_add4_neon_(double *q, float32x4_t s) {
    vst1q_f64(q, vld1q_f64(q) + vcvt_f64_f32(vget_low_f32(s)));
    vst1q_f64(q + 2, vld1q_f64(q + 2) + vcvt_high_f64_f32(s));
}
/* Up to CG_TILE_ROWS_ rows, `vectors` (1..4, a constant) columns of p; cols % 8 == 0. */
CG_INLINE_ void cg_project_t8_neon_(const float *m, size_t stride, size_t rows, size_t cols, const float *p,
    size_t p_stride, int vectors, double *q, size_t q_stride) {
    for (size_t j = 0; j + 8 <= cols; j += 8) {
        float32x4_t s0 = vdupq_n_f32(0.0f), s1 = s0, s2 = s0, s3 = s0, t0 = s0, t1 = s0, t2 = s0, t3 = s0;
        const float *v = cg_at_(m, j);
        for (size_t i = 0; i < rows; i++, v = cg_at_(v, stride)) {
            const float32x4_t x = cg_as_float_neon_(cg_load4_neon_(v, 0)), y = cg_as_float_neon_(cg_load4_neon_(v, 4));
            CG_PROJECT_T_NEON_(s0, t0, i * p_stride)
            if (vectors > 1) CG_PROJECT_T_NEON_(s1, t1, i * p_stride + 1)
            if (vectors > 2) CG_PROJECT_T_NEON_(s2, t2, i * p_stride + 2)
            if (vectors > 3) CG_PROJECT_T_NEON_(s3, t3, i * p_stride + 3)
        }
        cg_add4_neon_(q + j, s0);
        cg_add4_neon_(q + j + 4, t0);
        if (vectors > 1) {
            cg_add4_neon_(q + q_stride + j, s1);
            cg_add4_neon_(q + q_stride + j + 4, t1);
        }
        if (vectors > 2) {
            cg_add4_neon_(q + 2 * q_stride + j, s2);
            cg_add4_neon_(q + 2 * q_stride + j + 4, t2);
        }
        if (vectors > 3) {
            cg_add4_neon_(q + 3 * q_stride + j, s3);
            cg_add4_neon_(q + 3 * q_stride + j + 4, t3);
        }
    }
}
static void cg_project_t_neon_(const float *m, size_t stride, size_t rows, size_t cols, const float *p, size_t p_stride,
    unsigned r, double *q, size_t q_stride, const float *prefetch) {
    const size_t vector_cols = cols & ~(size_t)7;
    (void)prefetch;
    for (size_t i = 0; i < rows && vector_cols; i += CG_TILE_ROWS_) {
        const size_t many = cg_min_(CG_TILE_ROWS_, rows - i);
        const float *v = cg_at_(m, i * stride), *w = cg_at_(p, i * p_stride);
        double *t = q;
        unsigned left = r;
        for (; left >= 4; left -= 4, w = cg_at_(w, 4), t += 4 * q_stride)
            cg_project_t8_neon_(v, stride, many, vector_cols, w, p_stride, 4, t, q_stride);
        if (left == 3) cg_project_t8_neon_(v, stride, many, vector_cols, w, p_stride, 3, t, q_stride);
        if (left == 2) cg_project_t8_neon_(v, stride, many, vector_cols, w, p_stride, 2, t, q_stride);
        if (left == 1) cg_project_t8_neon_(v, stride, many, vector_cols, w, p_stride, 1, t, q_stride);
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
#if CG_AVX2_
/* not 0 if some value is Inf or NaN */
CG_AVX2_INLINE_ int cg_overflow_avx2_(__m256 s, __m256 t) {
    const __m256i absmax = _mm256_max_epu32(cg_abs_avx2_(_mm256_castps_si256(s)), cg_abs_avx2_(_mm256_castps_si256(t)));
    return _mm256_movemask_epi8(_mm256_cmpgt_epi32(absmax, _mm256_set1_epi32((int)CG_INF_BITS_ - 1)));
}
CG_AVX2_INLINE_ void cg_lowrank_out_avx2_(float *out, size_t j, __m256 s, __m256 t, int non_temporal) {
    cg_store_stream_avx2_(out, j, _mm256_castps_si256(s), non_temporal);
    cg_store_stream_avx2_(out, j + 8, _mm256_castps_si256(t), non_temporal);
}
/* s = w*x and t = w*y, or added to, with w = p[at] */
#  define CG_OUTER_AVX2_(s, t, at)                                                                        \
    {                                                                                                     \
      const __m256 w = _mm256_set1_ps(cg_load_(p, at)), c = cg_mul8_avx2_(w, x), d = cg_mul8_avx2_(w, y); \
      s = a ? _mm256_add_ps(s, c) : c;                                                                    \
      t = a ? _mm256_add_ps(t, d) : d;                                                                    \
    }
/* rows is 1 or 4, a constant; count % 16 == 0 */
CG_AVX2_INLINE_ void cg_lowrank16_avx2_(const float *p, const float *q, size_t q_stride, unsigned r, size_t count,
    float *out, size_t out_stride, int rows, int non_temporal) {
    for (size_t j = 0; j + 16 <= count; j += 16) {
        __m256 s0 = _mm256_setzero_ps(), s1 = s0, s2 = s0, s3 = s0, t0 = s0, t1 = s0, t2 = s0, t3 = s0;
        const float *v = cg_at_(q, j);
        int over;
        for (size_t a = 0; a < r; a++, v = cg_at_(v, q_stride)) {
            const __m256 x = _mm256_castsi256_ps(cg_load8_avx2_(v, 0)), y = _mm256_castsi256_ps(cg_load8_avx2_(v, 8));
            CG_OUTER_AVX2_(s0, t0, a)
            if (rows > 1) {
                CG_OUTER_AVX2_(s1, t1, a + r)
                CG_OUTER_AVX2_(s2, t2, a + 2 * (size_t)r) CG_OUTER_AVX2_(s3, t3, a + 3 * (size_t)r)
            }
        }
        over = cg_overflow_avx2_(s0, t0);
        if (rows > 1) over |= cg_overflow_avx2_(s1, t1) | cg_overflow_avx2_(s2, t2) | cg_overflow_avx2_(s3, t3);
        if (CG_LIKELY_(!over)) {
            cg_lowrank_out_avx2_(out, j, s0, t0, non_temporal);
            if (rows > 1) {
                cg_lowrank_out_avx2_(out, j + out_stride, s1, t1, non_temporal);
                cg_lowrank_out_avx2_(out, j + 2 * out_stride, s2, t2, non_temporal);
                cg_lowrank_out_avx2_(out, j + 3 * out_stride, s3, t3, non_temporal);
            }
        } else {
            cg_lowrank_tile_scalar_(p, cg_at_(q, j), q_stride, r, (size_t)rows, 16, cg_at_mut_(out, j), out_stride, 0);
        }
    }
}
CG_TARGET_AVX2_ static void cg_lowrank_tile_avx2_(const float *p, const float *q, size_t q_stride, unsigned r,
    size_t rows, size_t count, float *out, size_t out_stride, int non_temporal) {
    const size_t vector_cols = count & ~(size_t)15;
    size_t i = 0;
    for (; r > 6 && i + 4 <= rows;
         i += 4) { /* a q of fewer rows is read faster than four rows of out are written at once */
        if (non_temporal)
            cg_lowrank16_avx2_(
                cg_at_(p, i * r), q, q_stride, r, vector_cols, cg_at_mut_(out, i * out_stride), out_stride, 4, 1);
        else
            cg_lowrank16_avx2_(
                cg_at_(p, i * r), q, q_stride, r, vector_cols, cg_at_mut_(out, i * out_stride), out_stride, 4, 0);
    }
    for (; i < rows; i++) {
        if (non_temporal)
            cg_lowrank16_avx2_(
                cg_at_(p, i * r), q, q_stride, r, vector_cols, cg_at_mut_(out, i * out_stride), out_stride, 1, 1);
        else
            cg_lowrank16_avx2_(
                cg_at_(p, i * r), q, q_stride, r, vector_cols, cg_at_mut_(out, i * out_stride), out_stride, 1, 0);
    }
    _mm256_zeroupper();
    if (vector_cols < count)
        cg_lowrank_tile_scalar_(p, cg_at_(q, vector_cols), q_stride, r, rows, count - vector_cols,
            cg_at_mut_(out, vector_cols), out_stride, 0);
}
#endif
#if CG_NEON_
static void cg_lowrank_tile_neon_(const float *p, const float *q, size_t q_stride, unsigned r, size_t rows,
    size_t count, float *out, size_t out_stride, int non_temporal) {
    const size_t vector_cols = r ? count & ~(size_t)7 : 0;
    for (size_t i = 0; i < rows; i++, p = cg_at_(p, r), out = cg_at_mut_(out, out_stride)) {
        for (size_t j = 0; j < vector_cols; j += 8) {
            const float *v = cg_at_(q, j);
            float32x4_t w = vdupq_n_f32(cg_load_(p, 0)), s = cg_times_neon_(w, cg_as_float_neon_(cg_load4_neon_(v, 0)));
            float32x4_t t = cg_times_neon_(w, cg_as_float_neon_(cg_load4_neon_(v, 4)));
            for (unsigned a = 1; a < r; a++) {
                v = cg_at_(v, q_stride);
                w = vdupq_n_f32(cg_load_(p, a));
                s = s + cg_times_neon_(w, cg_as_float_neon_(cg_load4_neon_(v, 0)));
                t = t + cg_times_neon_(w, cg_as_float_neon_(cg_load4_neon_(v, 4)));
            }
            if (vmaxvq_u32(vmaxq_u32(cg_abs_neon_(vreinterpretq_u32_f32(s)), cg_abs_neon_(vreinterpretq_u32_f32(t)))) <
                CG_INF_BITS_) {
                cg_store4_neon_(out, j, s);
                cg_store4_neon_(out, j + 4, t);
            } else {
                cg_lowrank_tile_scalar_(p, cg_at_(q, j), q_stride, r, 1, 8, cg_at_mut_(out, j), 0, non_temporal);
            }
        }
        if (vector_cols < count)
            cg_lowrank_tile_scalar_(p, cg_at_(q, vector_cols), q_stride, r, 1, count - vector_cols,
                cg_at_mut_(out, vector_cols), 0, non_temporal);
    }
}
#endif
