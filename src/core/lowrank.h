/* ---- >>linear: factors of a matrix ---- */

/* ---- vectors of f64 ---- */

static double cg_dot_(const double *x, const double *y, size_t n) {
    double s[4] = { 0.0, 0.0, 0.0, 0.0 };
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (size_t l = 0; l < 4; l++) s[l] += cg_times64_(x[i + l], y[i + l]);
    for (; i < n; i++) s[i & 3] += cg_times64_(x[i], y[i]);
    return (s[0] + s[2]) + (s[1] + s[3]);
}
static void cg_axpy_(double a, const double *x, double *y, size_t n) {
    for (size_t i = 0; i < n; i++) y[i] += cg_times64_(a, x[i]);
}
static void cg_zero64_(double *x, size_t n) {
    for (size_t i = 0; i < n; i++) x[i] = 0.0;
}

/* A matrix is walked in strips of up to CG_STRIP_COLS_ columns, those in blocks of CG_TILE_ROWS_ rows, those in runs of
   columns. While one block is worked on the next is fetched, a share with each run: ahead, as many values as the
   run has, one after the other. */
#define CG_STRIP_COLS_ (CG_TILE_ROWS_ * CG_TILE_COLS_)
static const float *cg_matrix_prefetch_addr_(
    const float *m, size_t rows, size_t cols, size_t strip, size_t i, size_t j) {
    const size_t width = cg_min_(CG_STRIP_COLS_, cols - strip);
    if (i + 2 * CG_TILE_ROWS_ > rows || (width < cols && width < CG_STRIP_COLS_)) return NULL;
    return width == cols ? cg_at_(m, (i + CG_TILE_ROWS_) * cols + CG_TILE_ROWS_ * j)
                         : cg_at_(m, (i + CG_TILE_ROWS_ + (j - strip) / CG_TILE_COLS_) * cols + strip);
}
/* p[rank][rows] = M*q[rank][cols], transposed */
static void cg_matrix_times_(
    const cg_kernels_ *k, const float *m, size_t rows, size_t cols, const double *q, unsigned rank, double *p) {
    cg_zero64_(p, rank * rows);
    for (size_t strip = 0; strip < cols; strip += CG_STRIP_COLS_)
        for (size_t i = 0; i < rows; i += CG_TILE_ROWS_)
            for (size_t j = strip; j < cols && j < strip + CG_STRIP_COLS_; j += CG_TILE_COLS_)
                k->project(cg_at_(m, i * cols + j), cols, cg_min_(CG_TILE_ROWS_, rows - i),
                    cg_min_(CG_TILE_COLS_, cols - j), q + j, cols, rank, p + i, rows,
                    cg_matrix_prefetch_addr_(m, rows, cols, strip, i, j));
}

/* ---- lowrank: one step of the power method from a random start ---- */

/* Columns to an orthonormal set, each made orthogonal twice; one that depends on those before it becomes 0. 0: not
   finite. */
static int cg_gram_schmidt_(double *p, size_t rows, unsigned rank, double *norm) {
    for (unsigned a = 0; a < rank; a++) {
        double *x = p + a * rows, before = cg_dot_(x, x, rows), after;
        if (!cg_is_finite64_(before)) return 0;
        *norm = before > *norm ? before : *norm;
        for (int twice = 0; twice < 2; twice++)
            for (unsigned b = 0; b < a; b++) cg_axpy_(-cg_dot_(p + b * rows, x, rows), p + b * rows, x, rows);
        after = cg_dot_(x, x, rows);
        after = after > cg_times64_(before, 1e-18) ? 1.0 / cg_sqrt_(after) : 0.0;
        for (size_t i = 0; i < rows; i++) x[i] *= after;
    }
    return 1;
}
static unsigned cg_matrix_r_clamp_(size_t rows, size_t cols, unsigned rank) {
    return (unsigned)cg_min_(rank, cg_min_(rows, cols));
}
static uint64_t cg_lowrank_work_bytes_(size_t rows, size_t cols, unsigned rank) {
    return cg_mul_sat_(cg_mul_sat_(8, cg_matrix_r_clamp_(rows, cols, rank)), cg_add_sat_(rows, cols));
}
/* The start is uniform over odd multiples of 2^-16: of signs alone, two columns are often the same where cols is
   small. */
static void cg_lowrank_init_q_(uint64_t key, size_t cols, unsigned rank, double *q) {
    cg_key_ now = { 0, 0 };
    for (unsigned a = 0; a < rank; a += 2)
        for (size_t j = 0; j < cols; j++) {
            uint64_t at = (uint64_t)(a / 2) * cols + j;
            uint32_t h;
            if (j == 0 || at % CG_BLOCK_ == 0) now = cg_block_key_(key, at / CG_BLOCK_);
            h = cg_hash32_(now, (uint32_t)(at % CG_BLOCK_));
            q[a * cols + j] = ((double)(h & 0xffff) - 32767.5) * (1.0 / 32768);
            if (a + 1 < rank) q[(a + 1) * cols + j] = ((double)(h >> 16) - 32767.5) * (1.0 / 32768);
        }
}
/* p[rows][rank] from w[r][rows], times a power of two; what is beyond r is 0. */
static void cg_lowrank_store_p_(const double *w, size_t rows, unsigned r, double by, float *p, unsigned rank) {
    for (size_t i = 0; i < rows; i++)
        for (unsigned a = 0; a < rank; a++)
            cg_store_(p, i * rank + a, a < r ? (float)((double)(float)w[a * rows + i] * by) : 0.0f);
}
/* q = w^T M with p*by for w; returns the largest magnitude, Inf or NaN if some sum overflowed. */
static double cg_lowrank_compute_q_(const cg_kernels_ *k, const float *m, size_t rows, size_t cols, const float *p,
    unsigned rank, unsigned r, double *q) {
    double top = 0.0;
    cg_zero64_(q, r * cols);
    for (size_t strip = 0; strip < cols; strip += CG_STRIP_COLS_)
        for (size_t i = 0; i < rows; i += CG_TILE_ROWS_)
            for (size_t j = strip; j < cols && j < strip + CG_STRIP_COLS_; j += CG_TILE_COLS_)
                k->project_t(cg_at_(m, i * cols + j), cols, cg_min_(CG_TILE_ROWS_, rows - i),
                    cg_min_(CG_TILE_COLS_, cols - j), cg_at_(p, i * rank), rank, r, q + j, cols,
                    cg_matrix_prefetch_addr_(m, rows, cols, strip, i, j));
    for (size_t i = 0; i < r * cols; i++) {
        double v = cg_as_double_(cg_as_bits64_(q[i]) & (CG_TOO_LARGE_ >> 1));
        if (!cg_is_finite64_(v)) return v;
        top = v > top ? v : top;
    }
    return top;
}
static cg_status cg_lowrank_encode_(const cg_kernels_ *kernels, uint64_t key, const float *m, size_t rows, size_t cols,
    unsigned rank, float *p, float *q, void *work) {
    const cg_kernels_ *k = kernels;
    const unsigned r = cg_matrix_r_clamp_(rows, cols, rank);
    double *pw = (double *)work, *qw = pw + r * rows, norm = 0.0, by = 1.0, up = 1.0, top;
    cg_lowrank_init_q_(key, cols, r, qw);
    cg_matrix_times_(k, m, rows, cols, qw, r, pw);
    if (!cg_gram_schmidt_(pw, rows, r, &norm)) return CG_E_NONFINITE;
    if (norm < 1e-24) by = CG_POW2_64_; /* products of p and tiny values would be denormal */
    cg_lowrank_store_p_(pw, rows, r, by, p, rank);
    top = cg_lowrank_compute_q_(k, m, rows, cols, p, rank, r, qw);
    if (!cg_is_finite64_(top)) {
        by = 1.0 / CG_POW2_64_;
        cg_lowrank_store_p_(pw, rows, r, by, p, rank);
        top = cg_lowrank_compute_q_(k, m, rows, cols, p, rank, r, qw);
    }
    by = 1.0 / by;
    /* q may be larger than all that it is made of */
    if (top * by > (double)CG_FLT_MAX_) {
        up = CG_POW2_64_;
        by *= 1.0 / CG_POW2_64_;
    }
    cg_lowrank_store_p_(pw, rows, r, up, p, rank);
    for (size_t i = 0; i < r * cols; i++) cg_store_(q, i, (float)(qw[i] * by));
    for (size_t i = r * cols; i < rank * cols; i++) cg_store_(q, i, 0.0f);
    return CG_OK;
}
