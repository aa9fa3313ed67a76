/* lowrank: factors P and Q of a matrix M by one step of the power method, P*Q = P*(P^T*M) with orthonormal P (PowerSGD)

   Offers   f64 vectors (cg_dot_, cg_axpy_, cg_zero64_); cg_matrix_times_, cg_gram_schmidt_, cg_matrix_r_clamp_; the
            encoder cg_lowrank_encode_ and its steps
   Needs    base, random, kernels
   Touches  the factors and the work space, both the caller's
   Other headers may use: cg_axpy_, cg_dot_
   M is row-major, rows*cols floats at any address. In f64 a factor is a set of r rows, each a vector, one after the
   other: p[r][rows], q[r][cols]; in a packet p is [rows][r]. r, the rank of the product, is at most min(rows, cols). */

/* x*y; the sum has four lanes by i % 4, so that it vectorizes with the same bits everywhere. */
static double cg_dot_(const double *x, const double *y, size_t n) {
    double s[4] = { 0.0, 0.0, 0.0, 0.0 };
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (size_t l = 0; l < 4; l++) s[l] += cg_times64_(x[i + l], y[i + l]);
    for (; i < n; i++) s[i & 3] += cg_times64_(x[i], y[i]);
    return (s[0] + s[2]) + (s[1] + s[3]);
}
/* y += a*x */
static void cg_axpy_(double a, const double *x, double *y, size_t n) {
    for (size_t i = 0; i < n; i++) y[i] += cg_times64_(a, x[i]);
}
static void cg_zero64_(double *x, size_t n) {
    for (size_t i = 0; i < n; i++) x[i] = 0.0;
}

#define CG_STRIP_COLS_ (CG_TILE_ROWS_ * CG_TILE_COLS_) /* columns */
/* A matrix is walked in strips of up to CG_STRIP_COLS_ columns, a strip in blocks of CG_TILE_ROWS_ rows, a block in
   tiles of up to CG_TILE_COLS_ columns. While one block is worked on the next one below is prefetched, a share with
   each tile: as many values as the tile has, consecutive ones. Here: where the share of the tile at row i, column j
   of the strip begins; NULL at the last blocks and in a narrow last strip. */
static const float *cg_matrix_prefetch_addr_(
    const float *m, size_t rows, size_t cols, size_t strip, size_t i, size_t j) {
    const size_t width = cg_min_(CG_STRIP_COLS_, cols - strip);
    if (i + 2 * CG_TILE_ROWS_ > rows || (width < cols && width < CG_STRIP_COLS_)) return NULL;
    return width == cols ? cg_at_(m, (i + CG_TILE_ROWS_) * cols + CG_TILE_ROWS_ * j)
                         : cg_at_(m, (i + CG_TILE_ROWS_ + (j - strip) / CG_TILE_COLS_) * cols + strip);
}
/* p[r][rows] = (M*q^T)^T for q[r][cols], whose values are representable in f32. */
static void cg_matrix_times_(
    const cg_kernels_ *kernels, const float *m, size_t rows, size_t cols, const double *q, unsigned r, double *p) {
    cg_zero64_(p, r * rows);
    for (size_t strip = 0; strip < cols; strip += CG_STRIP_COLS_)
        for (size_t i = 0; i < rows; i += CG_TILE_ROWS_)
            for (size_t j = strip; j < cols && j < strip + CG_STRIP_COLS_; j += CG_TILE_COLS_)
                CG_KERNEL_(kernels,
                    project(cg_at_(m, i * cols + j), cols, cg_min_(CG_TILE_ROWS_, rows - i),
                        cg_min_(CG_TILE_COLS_, cols - j), q + j, cols, r, p + i, rows,
                        cg_matrix_prefetch_addr_(m, rows, cols, strip, i, j)));
}

/* Makes the r vectors of p[r][rows] orthonormal, each orthogonalized twice against those before it; one that depends on
   them becomes 0. Raises *norm to the largest squared length before. Returns 0 if some length is not finite; p is then
   half done. */
static int cg_gram_schmidt_(double *p, size_t rows, unsigned r, double *norm) {
    for (unsigned a = 0; a < r; a++) {
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
/* The r that a matrix of this shape can have: at most min(rows, cols). */
static unsigned cg_matrix_r_clamp_(size_t rows, size_t cols, unsigned r) {
    return (unsigned)cg_min_(r, cg_min_(rows, cols));
}
/* Bytes of work space of cg_lowrank_encode_, aligned for double; saturates. */
static uint64_t cg_lowrank_work_bytes_(size_t rows, size_t cols, unsigned r) {
    return cg_mul_sat_(cg_mul_sat_(8, cg_matrix_r_clamp_(rows, cols, r)), cg_add_sat_(rows, cols));
}
/* The random start q[r][cols], uniform over odd multiples of 2^-16 in (-1, 1). Of signs alone, two vectors would
   often be equal where cols is small. One hash serves two vectors; vectors a and a + 1, a even, share block keys. */
static void cg_lowrank_init_q_(uint64_t key, size_t cols, unsigned r, double *q) {
    cg_key_ block_key = { 0, 0, 0 };
    for (unsigned a = 0; a < r; a += 2)
        for (size_t j = 0; j < cols; j++) {
            uint64_t at = (uint64_t)(a / 2) * cols + j;
            uint32_t h;
            if (j == 0 || at % CG_BLOCK_ == 0) block_key = cg_block_key_(key, at / CG_BLOCK_);
            h = cg_hash32_(block_key, (uint32_t)(at % CG_BLOCK_));
            q[a * cols + j] = ((double)(h & 0xffff) - 32767.5) * (1.0 / 32768);
            if (a + 1 < r) q[(a + 1) * cols + j] = ((double)(h >> 16) - 32767.5) * (1.0 / 32768);
        }
}
/* p[rows][r_max], as packets have it, from w[r][rows]: rounded to f32, times factor, a power of two; what is beyond r
   is 0. */
static void cg_lowrank_store_p_(const double *w, size_t rows, unsigned r, double factor, float *p, unsigned r_max) {
    for (size_t i = 0; i < rows; i++)
        for (unsigned a = 0; a < r_max; a++)
            cg_store_(p, i * r_max + a, a < r ? (float)((double)(float)w[a * rows + i] * factor) : 0.0f);
}
/* q[r][cols] = p^T*M, of the first r columns of p[rows][r_max]. Returns the largest magnitude, Inf or NaN if some sum
   overflowed. */
static double cg_lowrank_compute_q_(const cg_kernels_ *kernels, const float *m, size_t rows, size_t cols,
    const float *p, unsigned r_max, unsigned r, double *q) {
    double absmax = 0.0;
    cg_zero64_(q, r * cols);
    for (size_t strip = 0; strip < cols; strip += CG_STRIP_COLS_)
        for (size_t i = 0; i < rows; i += CG_TILE_ROWS_)
            for (size_t j = strip; j < cols && j < strip + CG_STRIP_COLS_; j += CG_TILE_COLS_)
                CG_KERNEL_(kernels,
                    project_t(cg_at_(m, i * cols + j), cols, cg_min_(CG_TILE_ROWS_, rows - i),
                        cg_min_(CG_TILE_COLS_, cols - j), cg_at_(p, i * r_max), r_max, r, q + j, cols,
                        cg_matrix_prefetch_addr_(m, rows, cols, strip, i, j)));
    for (size_t i = 0; i < r * cols; i++) {
        double v = cg_as_double_(cg_as_bits64_(q[i]) & (CG_TOO_LARGE_ >> 1));
        if (!cg_is_finite64_(v)) return v;
        absmax = v > absmax ? v : absmax;
    }
    return absmax;
}
/* Writes the factors p[rows][r_max] and q[r_max][cols] of m; columns and rows beyond cg_matrix_r_clamp_ are 0. key
   seeds the start, and is shared by all ranks. work: cg_lowrank_work_bytes_, aligned for double. CG_E_NONFINITE if m
   has an Inf or NaN. Sums in f32 are kept in range by powers of two: p is stored 2^64 larger while m is tiny, 2^64
   smaller if q overflows, and for good 2^64 larger where q would not fit f32. */
static cg_status cg_lowrank_encode_(const cg_kernels_ *kernels, uint64_t key, const float *m, size_t rows, size_t cols,
    unsigned r_max, float *p, float *q, void *work) {
    const unsigned r = cg_matrix_r_clamp_(rows, cols, r_max);
    double *pw = (double *)work, *qw = pw + r * rows, norm = 0.0, factor = 1.0, p_scale = 1.0, absmax;
    cg_lowrank_init_q_(key, cols, r, qw);
    cg_matrix_times_(kernels, m, rows, cols, qw, r, pw);
    if (!cg_gram_schmidt_(pw, rows, r, &norm)) return CG_E_NONFINITE;
    if (norm < 1e-24) factor = CG_POW2_64_; /* products of p and tiny values would be denormal */
    cg_lowrank_store_p_(pw, rows, r, factor, p, r_max);
    absmax = cg_lowrank_compute_q_(kernels, m, rows, cols, p, r_max, r, qw);
    if (!cg_is_finite64_(absmax)) {
        factor = 1.0 / CG_POW2_64_;
        cg_lowrank_store_p_(pw, rows, r, factor, p, r_max);
        absmax = cg_lowrank_compute_q_(kernels, m, rows, cols, p, r_max, r, qw);
    }
    factor = 1.0 / factor;
    if (absmax * factor > (double)CG_FLT_MAX_) { /* q may be larger than every value of m */
        p_scale = CG_POW2_64_;
        factor *= 1.0 / CG_POW2_64_;
    }
    cg_lowrank_store_p_(pw, rows, r, p_scale, p, r_max);
    for (size_t i = 0; i < r * cols; i++) cg_store_(q, i, (float)(qw[i] * factor));
    for (size_t i = r * cols; i < r_max * cols; i++) cg_store_(q, i, 0.0f);
    return CG_OK;
}
