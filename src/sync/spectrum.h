/* spectrum: eigenvalues of symmetric matrices in f64, in a fixed order of operations; no libm

   Offers   cg_sin_pi_, cg_abs64_, cg_tri_extreme_, cg_tri_last_
   Needs    base
   Touches  the matrices and vectors that it is given
   A tridiagonal matrix has diagonal a[0..n) and off-diagonal b[0..n-1), b[i] between i and i + 1. */

/* sin(pi k / n), 0 <= k <= n: reduced to at most pi/4 in integers, then the Taylor series. */
static double cg_sin_pi_(uint64_t k, uint64_t n) {
    const double pi = 3.14159265358979323846;
    double x, x2, term, sum;
    int cosine = 0;
    if (2 * k > n) k = n - k;
    if (4 * k > n) {
        cosine = 1; /* sin(pi k / n) = cos(pi (n - 2 k) / 2 n) */
        x = pi * (double)(n - 2 * k) / (2.0 * (double)n);
    } else {
        x = pi * (double)k / (double)n;
    }
    x2 = cg_times64_(x, x);
    term = sum = cosine ? 1.0 : x;
    for (int i = cosine ? 1 : 2; i < 24; i += 2) {
        term = cg_times64_(term, -x2) / (double)(i * (i + 1));
        sum += term;
    }
    return sum;
}
static double cg_abs64_(double v) { return v < 0.0 ? -v : v; }

/* How many eigenvalues lie below x (Sturm). */
static size_t cg_tri_below_(const double *a, const double *b, size_t n, double x) {
    size_t below = 0;
    double d = 1.0;
    for (size_t i = 0; i < n; i++) {
        d = a[i] - x - (i ? cg_times64_(b[i - 1], b[i - 1]) / d : 0.0);
        if (d == 0.0) d = -1e-300;
        below += d < 0.0;
    }
    return below;
}
/* The smallest eigenvalue, or the largest, by bisection. */
static double cg_tri_extreme_(const double *a, const double *b, size_t n, int largest) {
    double low = a[0], high = a[0];
    for (size_t i = 0; i < n; i++) {
        const double reach = (i ? cg_abs64_(b[i - 1]) : 0.0) + (i + 1 < n ? cg_abs64_(b[i]) : 0.0);
        if (a[i] - reach < low) low = a[i] - reach;
        if (a[i] + reach > high) high = a[i] + reach;
    }
    for (int round = 0; round < 200 && high > low; round++) {
        const double middle = low + (high - low) / 2.0;
        const size_t below = cg_tri_below_(a, b, n, middle);
        if (middle <= low || middle >= high) break;
        if (largest ? below >= n : below >= 1) high = middle;
        else low = middle;
    }
    return low + (high - low) / 2.0;
}
/* The magnitude of the last component of the unit eigenvector of x, an eigenvalue, by two steps of inverse iteration.
   work: 5 n doubles. */
static double cg_tri_last_(const double *a, const double *b, size_t n, double x, double *work) {
    double *const d = work, *const u = d + n, *const w = u + n, *const y = w + n, *const l = y + n;
    double sum = 0.0;
    if (n == 1) return 1.0;
    for (size_t i = 0; i < n; i++) y[i] = 1.0;
    for (int round = 0; round < 3; round++) {
        /* Gauss with row exchanges: rows of U have d, u and w */
        double di = a[0] - x, ui = b[0], yi = y[0];
        for (size_t i = 0; i + 1 < n; i++) {
            const double below = b[i], next = a[i + 1] - x, far = i + 2 < n ? b[i + 1] : 0.0;
            if (cg_abs64_(di) >= cg_abs64_(below)) {
                double pivot = di == 0.0 ? 1e-30 : di, m = below / pivot;
                d[i] = pivot, u[i] = ui, w[i] = 0.0, l[i] = yi;
                yi = y[i + 1] - cg_times64_(m, yi);
                di = next - cg_times64_(m, ui), ui = far;
            } else {
                double m = di / below;
                d[i] = below, u[i] = next, w[i] = far, l[i] = y[i + 1];
                yi = yi - cg_times64_(m, y[i + 1]);
                di = ui - cg_times64_(m, next), ui = -cg_times64_(m, far);
            }
        }
        d[n - 1] = di == 0.0 ? 1e-30 : di, l[n - 1] = yi;
        sum = 0.0;
        for (size_t i = n; i-- > 0;) {
            double v = l[i];
            if (i + 1 < n) v -= cg_times64_(u[i], y[i + 1]);
            if (i + 2 < n) v -= cg_times64_(w[i], y[i + 2]);
            y[i] = v / d[i];
        }
        for (size_t i = 0; i < n; i++) sum += cg_times64_(y[i], y[i]);
        sum = cg_sqrt_(sum);
        for (size_t i = 0; i < n; i++) y[i] /= sum;
    }
    return cg_abs64_(y[n - 1]);
}
