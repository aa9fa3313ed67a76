/* atomo: factors of a matrix from its singular vectors, sampled with probabilities that keep the mean (ATOMO)

   Offers   cg_atomo_encode_, cg_matrix_work_bytes_
   Needs    base, kernels, lowrank
   Touches  the factors and the work space, both the caller's
   Other headers may use: cg_tridiagonal_, cg_tridiagonal_ql_
   Singular vectors are eigenvectors of the smaller Gram matrix: reflections make it tridiagonal, implicit QL finds its
   eigenvectors. Whatever their accuracy, the factors sent are unbiased, as the product of an orthonormal set of
   vectors with M restores M. */

/* Length of (a, b), also where squares would underflow: a rotation made with it keeps lengths. */
static double cg_hypot_(double a, double b) {
    a = a < 0.0 ? -a : a;
    b = b < 0.0 ? -b : b;
    if (a < b) {
        double c = a;
        a = b;
        b = c;
    }
    if (b == 0.0) return a;
    b /= a;
    return a * cg_sqrt_(1.0 + cg_times64_(b, b));
}
/* g[k][k] = Q*T*Q^T by reflections, g symmetric with magnitudes about 1: the diagonal of T to d[k], the one beside it
   to e[k] (e[k-1] is 0), Q^T to z[k][k]. g is overwritten, y is room for k values. */
static void cg_tridiagonal_(double *g, size_t k, double *z, double *d, double *e, double *y) {
    for (size_t t = 0; t < k; t++) {
        double *v = g + t * k + t + 1, rest, length, dot;
        const size_t n = k - t - 1;
        d[t] = g[t * k + t];
        e[t] = n ? v[0] : 0.0;
        rest = n > 1 ? cg_dot_(v + 1, v + 1, n - 1) : 0.0;
        if (rest < 1e-200) { /* nothing, as g is about 1: no reflection */
            cg_zero64_(v, n);
            continue;
        }
        length = cg_sqrt_(cg_times64_(v[0], v[0]) + rest);
        e[t] = v[0] > 0.0 ? -length : length;
        v[0] -= e[t];
        length = 1.0 / cg_sqrt_(cg_times64_(v[0], v[0]) + rest);
        for (size_t i = 0; i < n; i++) v[i] *= length;
        cg_zero64_(y, n);
        for (size_t i = 0; i < n; i++) cg_axpy_(2.0 * v[i], v + (i + 1) * k, y, n);
        dot = cg_dot_(v, y, n);
        cg_axpy_(-dot, v, y, n);
        for (size_t i = 0; i < n; i++) {
            cg_axpy_(-v[i], y, v + (i + 1) * k, n);
            cg_axpy_(-y[i], v, v + (i + 1) * k, n);
        }
    }
    cg_zero64_(z, k * k);
    for (size_t i = 0; i < k; i++) z[i * k + i] = 1.0;
    for (size_t t = k; t-- > 0;) {
        const double *v = g + t * k + t + 1;
        double *x = z + (t + 1) * k + t + 1;
        const size_t n = k - t - 1;
        cg_zero64_(y, n);
        for (size_t i = 0; i < n; i++) cg_axpy_(2.0 * v[i], x + i * k, y, n);
        for (size_t i = 0; i < n; i++) cg_axpy_(-v[i], y, x + i * k, n);
    }
    for (size_t i = 0; i < k; i++)
        for (size_t j = 0; j < i; j++) {
            double c = z[i * k + j];
            z[i * k + j] = z[j * k + i];
            z[j * k + i] = c;
        }
}
/* Implicit QL on the tridiagonal matrix (d, e): d becomes the eigenvalues, and the rows of z, Q^T before,
   eigenvectors. It stops after 64 sweeps per eigenvalue, converged or not; the rows of z stay orthonormal in any
   case. */
static void cg_tridiagonal_ql_(double *d, double *e, size_t k, double *z) {
    for (size_t l = 0; l < k; l++)
        for (int tries = 0; tries < 64; tries++) {
            size_t m = l, i;
            double shift, s = 1.0, c = 1.0, p = 0.0, r;
            for (; m + 1 < k; m++) {
                double scale = (d[m] < 0.0 ? -d[m] : d[m]) + (d[m + 1] < 0.0 ? -d[m + 1] : d[m + 1]),
                       off = e[m] < 0.0 ? -e[m] : e[m];
                if (off <= scale * 1.1102230246251565e-16 || off < 1e-60) break;
            }
            if (m == l) break;
            shift = (d[l + 1] - d[l]) / (2.0 * e[l]);
            r = cg_hypot_(shift, 1.0);
            shift = d[m] - d[l] + e[l] / (shift + (shift < 0.0 ? -r : r));
            for (i = m; i-- > l;) {
                double f = s * e[i], b = c * e[i], *x = z + i * k, *y = x + k;
                r = cg_hypot_(f, shift);
                e[i + 1] = r;
                if (r == 0.0) {
                    d[i + 1] -= p;
                    e[m] = 0.0;
                    break;
                }
                s = f / r;
                c = shift / r;
                shift = d[i + 1] - p;
                r = cg_times64_(d[i] - shift, s) + 2.0 * cg_times64_(c, b);
                p = cg_times64_(s, r);
                d[i + 1] = shift + p;
                shift = cg_times64_(c, r) - b;
                for (size_t j = 0; j < k; j++) {
                    double u = x[j], v = y[j];
                    y[j] = cg_times64_(s, u) + cg_times64_(c, v);
                    x[j] = cg_times64_(c, u) - cg_times64_(s, v);
                }
            }
            if (i + 1 > l) continue; /* stopped at r == 0 */
            d[l] -= p;
            e[l] = shift;
            e[m] = 0.0;
        }
}

/* How many singular vectors a packet holds at most. */
static unsigned cg_atomo_r_(size_t rows, size_t cols, unsigned budget) {
    return cg_matrix_r_clamp_(rows, cols, budget);
}
/* Bytes of work space of cg_atomo_encode_, aligned for double; saturates. */
static uint64_t cg_atomo_work_bytes_(size_t rows, size_t cols) {
    const uint64_t k = cg_min_(rows, cols), n = rows < cols ? cols : rows;
    uint64_t doubles = cg_add_sat_(cg_mul_sat_(2, cg_mul_sat_(k, k)), cg_mul_sat_(5, k));
    doubles = cg_add_sat_(doubles, cg_mul_sat_(CG_PANEL_, cg_add_sat_(n, k < CG_TILE_COLS_ ? CG_TILE_COLS_ : k)));
    return cg_add_sat_(cg_mul_sat_(8, doubles), cg_mul_sat_(4, cg_add_sat_(k, cg_mul_sat_(rows, cols))));
}
/* panel[many][k] = rows order[0..many) of z, rounded to f32; w[many][n] = (b*panel^T)^T for b[n][k]. many <=
   CG_PANEL_. */
static void cg_atomo_panel_(const cg_kernels_ *kernels, const float *b, size_t n, size_t k, const double *z,
    const uint32_t *order, unsigned many, double *panel, double *w) {
    for (unsigned a = 0; a < many; a++)
        for (size_t j = 0; j < k; j++) panel[a * k + j] = (double)(float)z[order[a] * k + j];
    cg_matrix_times_(kernels, b, n, k, panel, many, w);
}
/* Writes the factors p[rows][r] and q[r][cols] of m, r = cg_atomo_r_: *atoms pairs of singular vectors, then zeros. A
   pair is sent with a probability proportional to its singular value, at most 1, and is divided by it; the number sent
   is at most r. key decides the draw. work: cg_atomo_work_bytes_, aligned for double. CG_E_NONFINITE if m has an Inf or
   NaN; the factors are then zeros. */
static cg_status cg_atomo_encode_(const cg_kernels_ *kernels, uint64_t key, const float *m, size_t rows, size_t cols,
    unsigned budget, float *p, float *q, unsigned *atoms, void *work) {
    const int tall = cols <= rows;
    const size_t k = cg_min_(rows, cols), n = tall ? rows : cols;
    const unsigned r = cg_atomo_r_(rows, cols, budget);
    double *g = (double *)work, *z = g + k * k, *d = z + k * k, *e = d + k, *sigma = e + k, *tail = sigma + k,
           *probability = tail + k;
    double *panel = probability + k, *w = panel + CG_PANEL_ * (k < CG_TILE_COLS_ ? (size_t)CG_TILE_COLS_ : k),
           absmax = 0.0, scale, u, total = 0.0, cumulative = 0.0, rank_left, unit_scale = 1.0;
    uint32_t *order = (uint32_t *)(void *)(w + CG_PANEL_ * n);
    float *transposed = (float *)(void *)(order + k);
    const float *a = tall ? transposed : m, *b = tall ? m : transposed; /* [k][n], and its transpose: n >= k */
    size_t count = 0, certain_n = 0;
    unsigned sent_n = 0;
    *atoms = 0;
    for (size_t i = 0; i < r * rows; i++) cg_store_(p, i, 0.0f);
    for (size_t i = 0; i < r * cols; i++) cg_store_(q, i, 0.0f);
    if (!k) return CG_OK;
    for (size_t i = 0; i < rows; i += 16) /* in squares of 16, for the caches */
        for (size_t j = 0; j < cols; j += 16)
            for (size_t x = i; x < rows && x < i + 16; x++)
                for (size_t y = j; y < cols && y < j + 16; y++) transposed[y * rows + x] = cg_load_(m, x * cols + y);
    /* the upper half of the Gram matrix; an Inf or NaN of m shows in its diagonal */
    cg_zero64_(g, k * k);
    for (size_t i = 0; i < k; i += CG_PANEL_) {
        const unsigned many = (unsigned)cg_min_(CG_PANEL_, k - i);
        for (size_t j = 0; j < n; j += CG_TILE_COLS_) {
            const size_t run_length = cg_min_(CG_TILE_COLS_, n - j);
            for (unsigned x = 0; x < many; x++)
                for (size_t y = 0; y < run_length; y++)
                    panel[x * CG_TILE_COLS_ + y] = (double)cg_load_(a, (i + x) * n + j + y);
            CG_KERNEL_(kernels,
                project(
                    cg_at_(a, i * n + j), n, k - i, run_length, panel, CG_TILE_COLS_, many, g + i * k + i, k, NULL));
        }
    }
    for (size_t i = 0; i < k; i++) {
        if (!cg_is_finite64_(g[i * k + i])) return CG_E_NONFINITE;
        absmax = g[i * k + i] > absmax ? g[i * k + i] : absmax;
        for (size_t j = 0; j < i; j++) g[i * k + j] = g[j * k + i];
    }
    if (absmax == 0.0) return CG_OK;
    scale = cg_as_double_((2046 - (cg_as_bits64_(absmax) >> 52)) << 52); /* a power of two, brings absmax near 1 */
    for (size_t i = 0; i < k * k; i++) g[i] *= scale;
    cg_tridiagonal_(g, k, z, d, e, tail);
    cg_tridiagonal_ql_(d, e, k, z);
    /* singular values, as lengths of what will be sent; then sorted, the largest first */
    for (size_t i = 0; i < k; i++) order[i] = (uint32_t)i;
    for (size_t i = 0; i < k; i += CG_PANEL_) {
        const unsigned many = (unsigned)cg_min_(CG_PANEL_, k - i);
        cg_atomo_panel_(kernels, b, n, k, z, order + i, many, panel, w);
        for (unsigned x = 0; x < many; x++) sigma[i + x] = cg_sqrt_(cg_dot_(w + x * n, w + x * n, n));
    }
    for (size_t i = 1; i < k; i++) {
        const double s = sigma[i];
        const uint32_t o = order[i];
        size_t j = i;
        for (; j > 0 && sigma[j - 1] < s; j--) {
            sigma[j] = sigma[j - 1];
            order[j] = order[j - 1];
        }
        sigma[j] = s;
        order[j] = o;
    }
    /* smaller ones are 0 but for rounding */
    while (count < k && sigma[count] > sigma[0] * 1.1920928955078125e-7) count++;
    for (size_t i = count; i-- > 0;) tail[i] = sigma[i] + (i + 1 < count ? tail[i + 1] : 0.0);
    /* First those whose probability is 1. For the others one uniform number u in [0, 1): one is sent where the
       running sum of probabilities, from u on, passes an integer. */
    rank_left = (double)r;
    for (; certain_n < count && rank_left > 0.0 &&
         (rank_left >= (double)(count - certain_n) || cg_times64_(rank_left, sigma[certain_n]) >= tail[certain_n]);
         rank_left -= 1.0)
        probability[certain_n++] = 1.0;
    sent_n = (unsigned)certain_n;
    for (size_t i = certain_n; i < count; i++) total += sigma[i];
    u = (double)(cg_mix64_(key + CG_GOLDEN_) >> 24) * (1.0 / 1099511627776.0);
    for (size_t i = certain_n; i < count && sent_n < r; i++) {
        const double before = u + cg_times64_(rank_left, cumulative / total);
        cumulative += sigma[i];
        if ((uint64_t)(u + cg_times64_(rank_left, cumulative / total)) > (uint64_t)before) {
            const double c = rank_left * (sigma[i] / total);
            sigma[sent_n] = sigma[i];
            order[sent_n] = order[i];
            probability[sent_n++] = c < 1.0 ? c : 1.0;
        }
    }
    /* the factor that holds sigma is kept in the range of f32 at the expense of the unit vectors */
    for (unsigned i = 0; i < sent_n; i++)
        if (sigma[i] / probability[i] > (double)CG_FLT_MAX_) unit_scale = CG_POW2_64_;
    for (unsigned i = 0; i < sent_n; i += CG_PANEL_) {
        const unsigned many = (unsigned)cg_min_(CG_PANEL_, sent_n - i);
        cg_atomo_panel_(kernels, b, n, k, z, order + i, many, panel, w);
        for (unsigned x = 0; x < many; x++) {
            const double *v = tall ? w + x * n : panel + x * k, *h = tall ? panel + x * k : w + x * n;
            const double inv_unit_scale = 1.0 / unit_scale;
            for (size_t y = 0; y < rows; y++)
                cg_store_(
                    p, y * r + i + x, (float)(tall ? v[y] / probability[i + x] * inv_unit_scale : v[y] * unit_scale));
            for (size_t y = 0; y < cols; y++)
                cg_store_(q, (i + x) * cols + y,
                    (float)(tall ? h[y] * unit_scale : h[y] / probability[i + x] * inv_unit_scale));
        }
    }
    *atoms = sent_n;
    return CG_OK;
}
