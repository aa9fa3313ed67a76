/* Operators on matrices: low-rank factors and ATOMO, against plain linear algebra in f64. u = 2^-24.

   With an orthonormal p of r columns, what decoding p q gives is off from p p^T M by at most (r + 3) sqrt(r) u
   |M|: 2 sqrt(r) u from rounding p (it is used twice), sqrt(r) u from rounding q, and r u of |p| |q| <= sqrt(r)
   |M| from the sums of a decoder. All norms are Frobenius's. In practice errors have any sign: 5e-7 |M| is what
   exact cases must keep. */
#define COMPGRAD_IMPLEMENTATION
#include "compgrad.h"
#include "ref.h"
#include "ops.h"
#include "greatest.h"

static const cg_tag TAG = { 21, 22, 23, 24 };
static char note[256];
static const double U = 0x1p-24, EXACT = 5e-7;

typedef enum kind { LOWRANK, ATOMO, KINDS } kind;
static const char *const NAMES[KINDS] = { "lowrank", "atomo" };

static cg_op op_of(kind which, size_t rows, size_t cols, int rank) {
    return which == LOWRANK ? cg_lowrank((uint32_t)rows, (uint32_t)cols, rank)
                            : cg_atomo((uint32_t)rows, (uint32_t)cols, rank);
}

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }
static double factor_bound(size_t r) { return ((double)r + 3) * sqrt((double)r) * U * 1.01; }

/* ---- plain linear algebra ---- */

static double norm_of(const float *x, size_t n) {
    double sum = 0;
    size_t i;
    for (i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
    return sqrt(sum);
}

static double distance(const float *x, const float *y, size_t n) {
    double sum = 0;
    size_t i;
    for (i = 0; i < n; i++) sum += ((double)x[i] - (double)y[i]) * ((double)x[i] - (double)y[i]);
    return sqrt(sum);
}

/* Columns of a[rows][r] orthonormal, one after the other, three times over. */
static void orthonormal(double *a, size_t rows, size_t r) {
    size_t i, j, c;
    int again;
    for (j = 0; j < r; j++) {
        double norm = 0;
        for (again = 0; again < 3; again++)
            for (c = 0; c < j; c++) {
                double dot = 0;
                for (i = 0; i < rows; i++) dot += a[i * r + c] * a[i * r + j];
                for (i = 0; i < rows; i++) a[i * r + j] -= dot * a[i * r + c];
            }
        for (i = 0; i < rows; i++) norm += a[i * r + j] * a[i * r + j];
        for (i = 0; i < rows; i++) a[i * r + j] /= sqrt(norm);
    }
}

/* One-sided Jacobi: rotates columns of a[rows][cols] until they are orthogonal; then their norms are the singular
   values. Descending. */
static void svd(const float *m, size_t rows, size_t cols, double *sigma, double *left, double *right) {
    double *a = (double *)ref_alloc(rows * cols * sizeof *a), *v = (double *)ref_alloc(cols * cols * sizeof *v);
    size_t i, p, q, *order = (size_t *)ref_alloc(cols * sizeof *order);
    int sweep;
    for (i = 0; i < rows * cols; i++) a[i] = (double)m[i];
    for (i = 0; i < cols; i++) {
        v[i * cols + i] = 1;
        order[i] = i;
    }
    for (sweep = 0; sweep < 60; sweep++)
        for (p = 0; p < cols; p++)
            for (q = p + 1; q < cols; q++) {
                double pp = 0, qq = 0, pq = 0, t, c, s;
                for (i = 0; i < rows; i++) {
                    pp += a[i * cols + p] * a[i * cols + p];
                    qq += a[i * cols + q] * a[i * cols + q];
                    pq += a[i * cols + p] * a[i * cols + q];
                }
                if (fabs(pq) <= 1e-17 * sqrt(pp * qq)) continue;
                t = (qq - pp) / (2 * pq);
                t = (t < 0 ? -1 : 1) / (fabs(t) + sqrt(1 + t * t));
                c = 1 / sqrt(1 + t * t);
                s = c * t;
                for (i = 0; i < rows + cols; i++) {
                    double *row = i < rows ? a + i * cols : v + (i - rows) * cols, x = row[p], y = row[q];
                    row[p] = c * x - s * y;
                    row[q] = s * x + c * y;
                }
            }
    for (p = 0; p < cols; p++) {
        sigma[p] = 0;
        for (i = 0; i < rows; i++) sigma[p] += a[i * cols + p] * a[i * cols + p];
        sigma[p] = sqrt(sigma[p]);
    }
    for (p = 0; p < cols; p++)
        for (q = p + 1; q < cols; q++)
            if (sigma[q] > sigma[p]) {
                double s = sigma[p];
                size_t o = order[p];
                sigma[p] = sigma[q];
                sigma[q] = s;
                order[p] = order[q];
                order[q] = o;
            }
    for (p = 0; left && p < cols; p++) { /* left[cols][rows], right[cols][cols]: vector p in row p */
        for (i = 0; i < rows; i++) left[p * rows + i] = sigma[p] > 0 ? a[i * cols + order[p]] / sigma[p] : 0;
        for (i = 0; i < cols; i++) right[p * cols + i] = v[i * cols + order[p]];
    }
    free(a);
    free(v);
    free(order);
}

/* ---- matrices ---- */

static void gaussian(float *m, size_t n, uint64_t seed) {
    size_t i;
    for (i = 0; i < n; i++) m[i] = (float)ref_normal(&seed);
}

/* sum of `rank` products of vectors, the j-th times decay^j; rounded to f32, so of full rank, but for errors of
   6e-8. With decay 0 all of one size, in small integers: of exactly this rank. */
static void product(float *m, size_t rows, size_t cols, size_t rank, double decay, uint64_t seed) {
    double *a = (double *)ref_alloc(rows * cols * sizeof *a), size = 1;
    size_t i, j, r;
    for (r = 0; r<rank; r++, size *= decay> 0 ? decay : 1) {
        double *x = (double *)ref_alloc((rows + cols) * sizeof *x);
        for (i = 0; i < rows + cols; i++)
            x[i] = decay > 0 ? ref_normal(&seed) : (double)(int)(ref_rand(&seed) % 15) - 7.0;
        for (i = 0; i < rows; i++)
            for (j = 0; j < cols; j++) a[i * cols + j] += size * x[i] * x[rows + j];
        free(x);
    }
    for (i = 0; i < rows * cols; i++) m[i] = (float)a[i];
    free(a);
}

static cg_status round_trip(const cg_op *op, const cg_tag *tag, const float *m, size_t n, float *y) {
    ops_packet pk = ops_pack(op, tag, m, n);
    cg_status s = pk.status;
    if (s == CG_OK && (pk.touched || pk.len > pk.cap)) s = CG_E_STATE;
    if (s == CG_OK) s = cg_decompress(pk.p, pk.len, y, n);
    free(pk.p);
    return s;
}

static const struct {
    size_t rows, cols;
} SHAPES[] = { { 1, 1 }, { 1, 2 }, { 2, 1 }, { 1, 1000 }, { 1000, 1 }, { 3, 1000 }, { 1000, 3 }, { 2, 2 }, { 7, 5 },
    { 8, 8 }, { 16, 33 }, { 33, 16 }, { 31, 32 }, { 64, 64 }, { 257, 65 }, { 65, 257 }, { 40, 600 }, { 600, 40 },
    { 5, 4099 }, { 4099, 5 } };
enum { SHAPE_COUNT = sizeof SHAPES / sizeof *SHAPES };

/* ---- what both promise ---- */

/* All that rank can hold: the matrix itself, also if its own rank is less. */
TEST exact(kind which, size_t shape) {
    size_t rows = SHAPES[shape].rows, cols = SHAPES[shape].cols, n = rows * cols, full = smaller(rows, cols), own;
    float *m = (float *)ref_alloc(n * 4), *y = (float *)ref_alloc(n * 4);
    if (full > 64) full = 64;
    for (own = full;; own = own > 6 ? own / 2 : own - 1) {
        cg_op op = op_of(which, rows, cols, (int)full);
        double off;
        if (own == smaller(rows, cols)) gaussian(m, n, 5);
        else product(m, rows, cols, own, 0, 6 + own);
        ASSERT_ENUM_EQm(ops_text(&op), CG_OK, round_trip(&op, &TAG, m, n, y), ops_status);
        off = distance(m, y, n) / (norm_of(m, n) > 0 ? norm_of(m, n) : 1);
        snprintf(note, sizeof note, "%s of a matrix of rank %lu: off by %.3g", ops_text(&op), (unsigned long)own, off);
        ASSERTm(note, off <= EXACT && off <= factor_bound(full));
        op = op_of(which, rows, cols, (int)(own ? own : 1)); /* and just enough */
        ASSERT_ENUM_EQm(ops_text(&op), CG_OK, round_trip(&op, &TAG, m, n, y), ops_status);
        off = distance(m, y, n) / (norm_of(m, n) > 0 ? norm_of(m, n) : 1);
        snprintf(note, sizeof note, "%s of a matrix of its rank: off by %.3g", ops_text(&op), off);
        ASSERTm(note, off <= EXACT);
        if (own == 0) break;
    }
    free(m);
    free(y);
    PASS();
}

/* 4 rank (rows + cols) bytes, where rank is never more than the matrix has; decoding multiplies what the packet
   holds. */
TEST wire(kind which, size_t shape) {
    size_t rows = SHAPES[shape].rows, cols = SHAPES[shape].cols, n = rows * cols, i, j, a;
    static const int ranks[] = { 1, 2, 5, 64 };
    float *m = (float *)ref_alloc(n * 4), *y = (float *)ref_alloc(n * 4);
    int t;
    gaussian(m, n, shape);
    for (t = 0; t < 4; t++) {
        cg_op op = op_of(which, rows, cols, ranks[t]);
        size_t r = smaller((size_t)ranks[t], smaller(rows, cols));
        ops_packet pk = ops_pack(&op, &TAG, m, n);
        const unsigned char *p = pk.p + CG_HEADER_BYTES, *q = p + 4 * r * rows;
        cg_info info;
        ASSERT_ENUM_EQm(ops_text(&op), CG_OK, pk.status, ops_status);
        ASSERT_EQ_FMTm(ops_text(&op), (unsigned)(CG_HEADER_BYTES + 4 * r * (rows + cols)), (unsigned)pk.len, "%u");
        ASSERT_EQm(ops_text(&op), pk.len, cg_bound(&op, n));
        ASSERT(cg_inspect(pk.p, pk.len, &info) == CG_OK && info.n == n && info.k == r * (rows + cols) &&
            info.index_bytes == 0);
        ASSERT_ENUM_EQm(ops_text(&op), CG_OK, cg_decompress(pk.p, pk.len, y, n), ops_status);
        for (i = 0; i < rows; i++)
            for (j = 0; j < cols; j++) {
                double sum = 0, size = 0;
                for (a = 0; a < r; a++) {
                    double v = (double)ref_float((uint32_t)ref_get(p + 4 * (i * r + a), 4)) *
                        (double)ref_float((uint32_t)ref_get(q + 4 * (a * cols + j), 4));
                    sum += v;
                    size += fabs(v);
                }
                ASSERTm(ops_text(&op),
                    fabs((double)y[i * cols + j] - sum) <= 1.01 * U * (double)r * size + (double)r * 0x1p-149);
            }
        free(pk.p);
    }
    free(m);
    free(y);
    PASS();
}

TEST zero_matrix(kind which, size_t shape) {
    size_t n = SHAPES[shape].rows * SHAPES[shape].cols, i;
    float *m = (float *)ref_alloc(n * 4), *y = (float *)ref_alloc(n * 4);
    cg_op op = op_of(which, SHAPES[shape].rows, SHAPES[shape].cols, 3);
    for (i = 0; i < n; i++) m[i] = i % 3 ? 0.0f : -0.0f;
    memset(y, 0xff, n * 4);
    ASSERT_ENUM_EQm(ops_text(&op), CG_OK, round_trip(&op, &TAG, m, n, y), ops_status);
    for (i = 0; i < n; i++) ASSERTm(ops_text(&op), y[i] == 0.0f);
    free(m);
    free(y);
    PASS();
}

/* Matrices of every size of number. What is a denormal, or becomes one in the product, loses half a denormal each
   time: in q, in each of r products and in each of r sums. */
TEST any_size(kind which, int exponent) {
    enum { ROWS = 12, COLS = 9, N = ROWS * COLS };
    float m[N], y[N];
    cg_op op = op_of(which, ROWS, COLS, COLS);
    double off, bound;
    int kinds, i;
    for (kinds = 0; kinds < 3; kinds++) {
        uint64_t state = 4;
        for (i = 0; i < N; i++) {
            double g = kinds == 0    ? 2 * ref_uniform(&state) - 1
                : kinds == 1         ? (double)(i % 5 == 0) * (ref_uniform(&state) - 0.5)
                : (i / COLS + i) % 2 ? -1.0
                                     : 1.0;
            m[i] = (float)ldexp(g * (1 - 0x1p-24), exponent);
        }
        ASSERT_ENUM_EQm(ops_text(&op), CG_OK, round_trip(&op, &TAG, m, N, y), ops_status);
        for (i = 0; i < N; i++) ASSERTm(ops_text(&op), ref_finite(y[i]));
        off = distance(m, y, N);
        bound = EXACT * norm_of(m, N) + sqrt((double)N) * (3 * COLS) * 0x1p-150;
        snprintf(note, sizeof note, "%s, 2^%d, matrix %d: off by %.3g, bound %.3g", ops_text(&op), exponent, kinds, off,
            bound);
        ASSERTm(note, off <= bound);
    }
    PASS();
}

/* Numbers of very different size in one matrix: small ones may drown, none may become infinite. */
TEST extremes(kind which, int rank) {
    enum { ROWS = 10, COLS = 14, N = ROWS * COLS };
    static const ref_kind kinds[] = { REF_HUGE, REF_GEOMETRIC, REF_DENORMALS, REF_OUTLIER, REF_SIGNED_ZEROS,
        REF_CONSTANT, REF_TWO };
    float m[N], y[N];
    cg_op op = op_of(which, ROWS, COLS, rank);
    size_t k, i;
    for (k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        double off, size;
        ref_fill(kinds[k], 7, m, N);
        ASSERT_ENUM_EQm(ops_text(&op), CG_OK, round_trip(&op, &TAG, m, N, y), ops_status);
        for (i = 0; i < N; i++) ASSERTm(ops_text(&op), ref_finite(y[i]));
        off = distance(m, y, N);
        size = norm_of(m, N);
        snprintf(note, sizeof note, "%s, vector %d: off by %.3g of %.3g", ops_text(&op), (int)kinds[k], off, size);
        if (rank >= ROWS) ASSERTm(note, off <= EXACT * size + 3 * ROWS * sqrt((double)N) * 0x1p-150);
        else if (which == LOWRANK)
            ASSERTm(note, off <= size * (1 + factor_bound((size_t)rank)) + 3 * ROWS * sqrt((double)N) * 0x1p-150);
    }
    PASS();
}

TEST nonfinite(kind which) {
    enum { ROWS = 6, COLS = 11, N = ROWS * COLS };
    static const uint32_t worst[] = { 0x7fc00000u, 0xff800000u, 0x7f800001u, 0x7f800000u };
    float m[N];
    int i, w, rank;
    for (rank = 1; rank <= 6; rank += 5)
        for (i = 0; i < N; i++)
            for (w = 0; w < 4; w++) {
                cg_op op = op_of(which, ROWS, COLS, rank);
                ops_packet pk;
                gaussian(m, N, 1);
                if (i % 2) memset(m, 0, sizeof m); /* alone in a matrix of zeros, too */
                m[i] = ref_float(worst[w]);
                pk = ops_pack(&op, &TAG, m, N);
                ASSERT_ENUM_EQm(ops_text(&op), CG_E_NONFINITE, pk.status, ops_status);
                ASSERT(pk.len == 0 && !pk.touched);
                free(pk.p);
            }
    PASS();
}

TEST refused(kind which) {
    static const char *const behind[] = { "topk:0.1", "f16", "absmax:4:64", "randk:0.5", "rotate:1", "permk:2", "gamma",
        "golomb", "quartic" };
    float m[12] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 }, y[12];
    static unsigned char packet[1024], scratch[1u << 18];
    cg_op op = op_of(which, 3, 4, 2), other;
    char text[64];
    size_t len = 9, i;
    ASSERT(cg_bound(&op, 12) > 0 && cg_scratch(&op, 12) <= sizeof scratch);
    for (i = 0; i < 40; i++)
        if (i != 12) {
            ASSERT_EQ(0u, cg_bound(&op, i));
            if (i < 12)
                ASSERT_ENUM_EQ(CG_E_ARG,
                    cg_compress(&op, &TAG, m, i, packet, sizeof packet, &len, scratch, sizeof scratch), ops_status);
            ASSERT(i >= 12 || len == 0);
        }
    for (i = 0; i < sizeof behind / sizeof *behind; i++) {
        snprintf(text, sizeof text, "%s:2:3:4|%s", NAMES[which], behind[i]);
        ASSERTm(text, cg_op_parse(&other, text) != CG_OK || cg_bound(&other, 12) == 0);
    }
    other = op_of(which, 3, 4, 0);
    ASSERT_EQ(0u, cg_bound(&other, 12));
    other = op_of(which, 3, 4, 65);
    ASSERT_EQ(0u, cg_bound(&other, 12));
    other = op_of(which, 3, 4, -1);
    ASSERT_EQ(0u, cg_bound(&other, 12));
    other = op_of(which, 0, 4, 1);
    ASSERT(cg_bound(&other, 0) == 0 && cg_bound(&other, 12) == 0);
    other = op_of(which, 3, 0, 1);
    ASSERT(cg_bound(&other, 0) == 0 && cg_bound(&other, 12) == 0);
    other = op_of(which, 1, 16777217u, 1); /* more columns than a float can count */
    ASSERT_EQ(0u, cg_bound(&other, 16777217u));
    ASSERT_ENUM_EQ(
        CG_OK, cg_compress(&op, &TAG, m, 12, packet, sizeof packet, &len, scratch, sizeof scratch), ops_status);
    for (i = 0; i < 30; i++)
        if (i != 12) ASSERT_ENUM_EQ(CG_E_MISMATCH, cg_decompress(packet, len, y, i), ops_status);
    ASSERT_ENUM_EQ(
        CG_E_CAPACITY, cg_compress(&op, &TAG, m, 12, packet, len - 1, &len, scratch, sizeof scratch), ops_status);
    ASSERT_ENUM_EQ(CG_E_CAPACITY,
        cg_compress(&op, &TAG, m, 12, packet, sizeof packet, &len, scratch, cg_scratch(&op, 12) - 1), ops_status);
    PASS();
}

/* The exponents of factors could be coded without loss: either that works, or it is refused. */
TEST coded_factors(kind which) {
    float m[512], y[512], z[512];
    cg_op op = op_of(which, 16, 32, 1), coded = cg_coded(op, CG_CODE_HUFFMAN);
    int i;
    if (cg_bound(&coded, 512) == 0) PASS();
    for (i = 0; i < 512; i++) m[i] = (float)(i % 3 - 1);
    ASSERT_ENUM_EQ(CG_OK, round_trip(&op, &TAG, m, 512, y), ops_status);
    ASSERT_ENUM_EQ(CG_OK, round_trip(&coded, &TAG, m, 512, z), ops_status);
    ASSERT_MEM_EQ(y, z, sizeof y);
    PASS();
}

/* y = beta y + alpha D, product by product as for any other packet. */
TEST folds(kind which, size_t shape) {
    static const struct {
        float alpha, beta;
    } fold[] = { { 1, 1 }, { 0.25f, 1 }, { -3.7f, 0 }, { 0, 1 }, { 0, 0 }, { 1, 0.9f }, { 0.3f, -1.1f } };
    size_t rows = SHAPES[shape].rows, cols = SHAPES[shape].cols, n = rows * cols, f, i;
    float *m = (float *)ref_alloc(n * 4), *d = (float *)ref_alloc(n * 4), *y = (float *)ref_alloc(n * 4),
          *want = (float *)ref_alloc(n * 4);
    unsigned char *has = (unsigned char *)ref_alloc(n);
    cg_op op = op_of(which, rows, cols, 4);
    cg_extra direct = CG_ZERO;
    ops_packet pk;
    direct.flags = CG_DECODE_DIRECT;
    gaussian(m, n, 8);
    memset(has, 1, n);
    pk = ops_pack(&op, &TAG, m, n);
    ASSERT(pk.status == CG_OK && cg_decompress(pk.p, pk.len, d, n) == CG_OK);
    for (f = 0; f < sizeof fold / sizeof *fold; f++) {
        for (i = 0; i < n; i++) y[i] = want[i] = i % 7 == 3 ? -0.0f : (float)((int)(i % 1001) - 500) * 0.37f;
        if (fold[f].beta == 0.0f) memset(y, 0xff, n * 4); /* must not be read */
        ref_apply(d, has, fold[f].alpha, fold[f].beta, want, n);
        ASSERT_ENUM_EQ(
            CG_OK, cg_decode(f % 2 ? &direct : NULL, pk.p, pk.len, fold[f].alpha, fold[f].beta, y, n), ops_status);
        ASSERTm(ops_text(&op), memcmp(y, want, n * 4) == 0);
    }
    ASSERT_ENUM_EQ(CG_OK, cg_clear(pk.p, pk.len, y, n), ops_status);
    for (i = 0; i < n; i++) ASSERT(y[i] == 0.0f);
    free(m);
    free(d);
    free(y);
    free(want);
    free(has);
    free(pk.p);
    PASS();
}

/* Nobody promised a place in memory. */
TEST unaligned(kind which) {
    enum { ROWS = 9, COLS = 7, N = ROWS * COLS };
    float m[N], y[N];
    unsigned char raw[4 * N + 3], out[4 * N + 3], *packet, *scratch;
    cg_op op = op_of(which, ROWS, COLS, 3);
    size_t cap = cg_bound(&op, N), need = cg_scratch(&op, N), len, off;
    ops_packet pk;
    gaussian(m, N, 2);
    pk = ops_pack(&op, &TAG, m, N);
    ASSERT(pk.status == CG_OK && cg_decompress(pk.p, pk.len, y, N) == CG_OK);
    packet = (unsigned char *)ref_alloc(cap + 3);
    scratch = (unsigned char *)ref_alloc(need + 7);
    for (off = 1; off < 4; off++) {
        memcpy(raw + off, m, sizeof m);
        ASSERT_ENUM_EQ(CG_OK,
            cg_compress(&op, &TAG, (const float *)(const void *)(raw + off), N, packet + off, cap, &len,
                scratch + 2 * off, need),
            ops_status);
        ASSERT(len == pk.len && memcmp(packet + off, pk.p, len) == 0);
        ASSERT_ENUM_EQ(CG_OK, cg_decompress(packet + off, len, (float *)(void *)(out + off), N), ops_status);
        ASSERT_MEM_EQ(y, out + off, sizeof y);
    }
    free(packet);
    free(scratch);
    free(pk.p);
    PASS();
}

/* Damage: found as it is; with the checksum put right an error or a finite result, and y untouched by an error. */
TEST damaged(kind which) {
    enum { ROWS = 3, COLS = 5, N = ROWS * COLS };
    float m[N], y[N + 2];
    cg_op op = op_of(which, ROWS, COLS, 2);
    ops_packet pk;
    size_t at, i;
    int accepted = 0;
    gaussian(m, N, 3);
    pk = ops_pack(&op, &TAG, m, N);
    ASSERT_ENUM_EQ(CG_OK, pk.status, ops_status);
    for (at = 0; at < 8 * pk.len; at++) {
        unsigned char *p = (unsigned char *)ref_alloc(pk.len);
        cg_status s;
        memcpy(p, pk.p, pk.len);
        p[at / 8] = (unsigned char)(p[at / 8] ^ 1u << at % 8);
        for (i = 0; i < N + 2; i++) y[i] = 77.0f;
        s = cg_decompress(p, pk.len, y + 1, N);
        ASSERT_NEQ(CG_OK, s);
        for (i = 0; i < N + 2; i++) ASSERT(y[i] == 77.0f);
        if (at / 8 < 152 || at / 8 >= CG_HEADER_BYTES) {
            ref_seal(p, pk.len);
            s = cg_decompress(p, pk.len, y + 1, N);
            ASSERT(s == CG_OK || s == CG_E_CORRUPT || s == CG_E_VERSION || s == CG_E_MISMATCH);
            ASSERT(y[0] == 77.0f && y[N + 1] == 77.0f);
            for (i = 1; i <= N; i++) ASSERT(s == CG_OK ? ref_finite(y[i]) : y[i] == 77.0f);
            if (at / 8 >= CG_HEADER_BYTES) { /* any factors that are finite are factors */
                uint32_t w = (uint32_t)ref_get(p + at / 32 * 4, 4);
                ASSERT_EQ((w & 0x7fffffffu) < 0x7f800000u, s == CG_OK);
            }
            accepted += s == CG_OK;
        }
        free(p);
    }
    ASSERT_GT(accepted, 100);
    for (at = 0; at < pk.len; at++) {
        unsigned char *p = (unsigned char *)ref_alloc(at);
        memcpy(p, pk.p, at);
        ASSERT_ENUM_EQ(CG_E_CORRUPT, cg_decompress(p, at, y + 1, N), ops_status);
        free(p);
    }
    free(pk.p);
    PASS();
}

/* Factors whose products overflow, with both signs in one sum: a result all the same. */
TEST overflowing_factors(kind which) {
    enum { ROWS = 3, COLS = 40, N = ROWS * COLS, R = 3 };
    float m[N], y[N];
    cg_op op = op_of(which, ROWS, COLS, R);
    ops_packet pk;
    int round;
    size_t i;
    gaussian(m, N, 3);
    pk = ops_pack(&op, &TAG, m, N);
    ASSERT_ENUM_EQ(CG_OK, pk.status, ops_status);
    for (round = 0; round < 50; round++) {
        uint64_t state = (uint64_t)round;
        for (i = 0; i < R * (ROWS + COLS); i++) {
            float v = ref_rand(&state) % 4 ? FLT_MAX : 1e-30f;
            ref_put(pk.p + CG_HEADER_BYTES + 4 * i, ref_bits(ref_rand(&state) % 2 ? v : -v), 4);
        }
        ref_seal(pk.p, pk.len);
        ASSERT_ENUM_EQ(CG_OK, cg_decompress(pk.p, pk.len, y, N), ops_status);
        for (i = 0; i < N; i++) ASSERTm("a product that is not finite", ref_finite(y[i]));
    }
    free(pk.p);
    PASS();
}

/* ---- lowrank ---- */

/* The projection of M on the columns of M q, with q from the shared key: two columns from each hash, 16 bits for
   each number. */
TEST projects(size_t shape, int rank, uint64_t step) {
    size_t rows = SHAPES[shape].rows, cols = SHAPES[shape].cols, n = rows * cols,
           r = smaller((size_t)rank, smaller(rows, cols)), i, j, a;
    float *m = (float *)ref_alloc(n * 4), *y = (float *)ref_alloc(n * 4), *z = (float *)ref_alloc(n * 4);
    double *p = (double *)ref_alloc(rows * r * sizeof *p), off = 0, norm, error, bound;
    cg_op op = op_of(LOWRANK, rows, cols, rank);
    cg_tag tag = TAG;
    tag.step = step;
    gaussian(m, n, shape + 40);
    for (a = 0; a < r; a++)
        for (j = 0; j < cols; j++) {
            uint64_t at = (uint64_t)(a / 2) * cols + j;
            uint32_t h = ref_hash(ref_shared(&tag), at / 65536, (uint32_t)(at % 65536)),
                     half = a % 2 ? h >> 16 : h & 0xffff;
            for (i = 0; i < rows; i++) p[i * r + a] += (double)m[i * cols + j] * (((double)half - 32767.5) / 32768);
        }
    orthonormal(p, rows, r);
    ASSERT_ENUM_EQm(ops_text(&op), CG_OK, round_trip(&op, &tag, m, n, y), ops_status);
    norm = norm_of(m, n);
    for (j = 0; j < cols; j++) {
        double *q = (double *)ref_alloc(r * sizeof *q);
        for (a = 0; a < r; a++)
            for (i = 0; i < rows; i++) q[a] += p[i * r + a] * (double)m[i * cols + j];
        for (i = 0; i < rows; i++) {
            double want = 0;
            for (a = 0; a < r; a++) want += p[i * r + a] * q[a];
            off += (want - (double)y[i * cols + j]) * (want - (double)y[i * cols + j]);
        }
        free(q);
    }
    off = sqrt(off);
    error = distance(m, y, n);
    bound = factor_bound(r) * norm;
    snprintf(
        note, sizeof note, "%s: off by %.3g, bound %.3g; error %.3g of %.3g", ops_text(&op), off, bound, error, norm);
    ASSERTm(note, off <= bound);
    ASSERTm(note, error <= norm * (1 + factor_bound(r))); /* a projection takes away, and never adds */
    tag.rank += 5;                                        /* the key is shared: all ranks use one q */
    ASSERT(round_trip(&op, &tag, m, n, z) == CG_OK && memcmp(y, z, n * 4) == 0);
    free(m);
    free(y);
    free(z);
    free(p);
    PASS();
}

/* A decaying spectrum. No matrix of this rank is nearer than the tail of the spectrum; for a normal q the mean of
   the square of the error is at most (1 + k / (r - k - 1)) times the tail after k, for every k < r - 1 (Halko,
   Martinsson, Tropp, theorem 10.5); ours is uniform, which differs little. */
TEST near_best(int rank, double decay) {
    enum { ROWS = 48, COLS = 36, N = ROWS * COLS, KEYS = 60 };
    static float m[N], y[N];
    double sigma[COLS], best = 0, bound = 1e300, mean = 0, tail;
    int t, k, i;
    cg_op op = op_of(LOWRANK, ROWS, COLS, rank);
    product(m, ROWS, COLS, COLS, decay, 77);
    svd(m, ROWS, COLS, sigma, NULL, NULL);
    for (i = rank; i < COLS; i++) best += sigma[i] * sigma[i];
    for (k = 1; k <= rank - 2; k++) {
        for (tail = 0, i = k; i < COLS; i++) tail += sigma[i] * sigma[i];
        if ((1 + (double)k / (rank - k - 1)) * tail < bound) bound = (1 + (double)k / (rank - k - 1)) * tail;
    }
    for (t = 0; t < KEYS; t++) {
        cg_tag tag = TAG;
        double error;
        tag.step = (uint64_t)t;
        ASSERT_ENUM_EQ(CG_OK, round_trip(&op, &tag, m, N, y), ops_status);
        error = distance(m, y, N);
        mean += error * error / KEYS;
        snprintf(note, sizeof note, "%s: error %.4g, best possible %.4g", ops_text(&op), error, sqrt(best));
        ASSERTm(note, error * error >= best * (1 - 1e-6));
    }
    snprintf(
        note, sizeof note, "%s: mean square %.4g, best possible %.4g, bound %.4g", ops_text(&op), mean, best, bound);
    ASSERTm(note, mean <= bound);
    PASS();
}

/* ---- ATOMO ---- */

/* p = min(1, s sigma / sum sigma), with what is at 1 taken out and the rest done again until none is above. */
static void chances(const double *sigma, int many, double budget, double *p) {
    int i, sure[64] = { 0 }, again = 1;
    while (again) {
        double left = budget, sum = 0;
        again = 0;
        for (i = 0; i < many; i++)
            if (sure[i]) left -= 1;
            else sum += sigma[i];
        for (i = 0; i < many; i++) {
            p[i] = sure[i] ? 1 : sum > 0 ? left * sigma[i] / sum : 0;
            if (!sure[i] && p[i] >= 1) {
                sure[i] = 1;
                again = 1;
            }
        }
    }
}

/* Over keys: each singular value has the right mean, with the variance sigma^2 (1/p - 1); what crosses between
   vectors has mean 0, and is never there; the square of the error has the mean of all these variances. */
TEST unbiased(int budget, double decay, int rows, int cols, int by_rank) {
    enum { KEYS = 3000, MOST = 12 };
    static float m[MOST * MOST], y[MOST * MOST];
    double sigma[MOST], left[MOST * MOST], right[MOST * MOST], p[MOST],
        mean[MOST] = { 0 }, often[MOST] = { 0 }, square = 0, square2 = 0, declared = 0, worst = 0, t_norm, error;
    const size_t n = (size_t)rows * (size_t)cols;
    const int many = rows < cols ? rows : cols;
    cg_op op = op_of(ATOMO, (size_t)rows, (size_t)cols, budget);
    int t, i, j, a, sent;
    product(m, (size_t)rows, (size_t)cols, (size_t)many, decay, 5);
    if (rows >= cols) {
        svd(m, (size_t)rows, (size_t)cols, sigma, left, right);
    } else { /* of the transpose */
        static float turned[MOST * MOST];
        for (i = 0; i < rows; i++)
            for (j = 0; j < cols; j++) turned[j * rows + i] = m[i * cols + j];
        svd(turned, (size_t)cols, (size_t)rows, sigma, right, left);
    }
    chances(sigma, many, budget, p);
    for (i = 0; i < many; i++) declared += sigma[i] * sigma[i] * (1 / p[i] - 1);
    t_norm = norm_of(m, n);
    for (t = 0; t < KEYS; t++) {
        cg_tag tag = TAG;
        if (by_rank) tag.rank = (uint32_t)t;
        else tag.step = (uint64_t)t;
        ASSERT_ENUM_EQ(CG_OK, round_trip(&op, &tag, m, n, y), ops_status);
        for (a = 0, sent = 0; a < many; a++) {
            double dot = 0, off;
            for (i = 0; i < rows; i++)
                for (j = 0; j < cols; j++) dot += left[a * rows + i] * (double)y[i * cols + j] * right[a * cols + j];
            mean[a] += dot / KEYS;
            off = fabs(dot) < 0.5 * sigma[a] / p[a] ? fabs(dot) : fabs(dot - sigma[a] / p[a]);
            if (off > worst) worst = off; /* sent with sigma/p, or not at all */
            often[a] += (fabs(dot) > 0.5 * sigma[a] / p[a]) / (double)KEYS;
            sent += fabs(dot) > 0.5 * sigma[a] / p[a];
        }
        ASSERTm("not as many as the budget", sent == budget);
        error = distance(m, y, n);
        square += error * error / KEYS;
        square2 += error * error * error * error / KEYS;
    }
    snprintf(note, sizeof note, "%s: %.3g between 0 and sigma/p", ops_text(&op), worst);
    ASSERTm(note, worst < 1e-5 * t_norm);
    for (a = 0; a < many; a++) {
        double se = sqrt(sigma[a] * sigma[a] * (1 / p[a] - 1) / KEYS) + 1e-6 * t_norm;
        snprintf(note, sizeof note, "%s, sigma %d: mean %.5g, want %.5g +- %.2g, sent %.3f, p %.3f", ops_text(&op), a,
            mean[a], sigma[a], se, often[a], p[a]);
        ASSERTm(note, fabs(mean[a] - sigma[a]) < 4.5 * se);
        ASSERTm(note, fabs(often[a] - p[a]) <= 4.5 * sqrt(p[a] * (1 - p[a]) / KEYS) + 1e-9);
    }
    error = sqrt((square2 - square * square) / KEYS);
    snprintf(note, sizeof note, "%s: mean square of the error %.5g +- %.2g, declared %.5g", ops_text(&op), square,
        error, declared);
    ASSERTm(note, fabs(square - declared) < 4.5 * error + 1e-6 * t_norm * t_norm);
    PASS();
}

SUITE(both) {
    static const int exponents[] = { -149, -148, -145, -140, -130, -126, -120, -100, -80, -64, -63, -40, -20, 0, 20, 40,
        62, 63, 64, 65, 90, 100, 120, 125, 126, 127, 128 };
    size_t shape, i;
    int k;
    for (k = 0; k < KINDS; k++) {
        for (shape = 0; shape < SHAPE_COUNT; shape++) {
            RUN_TESTp(exact, (kind)k, shape);
            RUN_TESTp(wire, (kind)k, shape);
            RUN_TESTp(zero_matrix, (kind)k, shape);
            RUN_TESTp(folds, (kind)k, shape);
        }
        for (i = 0; i < sizeof exponents / sizeof *exponents; i++) RUN_TESTp(any_size, (kind)k, exponents[i]);
        RUN_TESTp(extremes, (kind)k, 2);
        RUN_TESTp(extremes, (kind)k, 10);
        RUN_TEST1(nonfinite, (kind)k);
        RUN_TEST1(refused, (kind)k);
        RUN_TEST1(coded_factors, (kind)k);
        RUN_TEST1(unaligned, (kind)k);
        RUN_TEST1(damaged, (kind)k);
        RUN_TEST1(overflowing_factors, (kind)k);
    }
}

SUITE(lowrank) {
    size_t shape;
    int rank;
    for (shape = 0; shape < SHAPE_COUNT; shape++)
        for (rank = 1; rank <= 9; rank += 1 + rank / 3) RUN_TESTp(projects, shape, rank, (uint64_t)rank);
    for (rank = 4; rank <= 20; rank += 4) {
        RUN_TESTp(near_best, rank, 0.7);
        RUN_TESTp(near_best, rank, 0.9);
    }
}

SUITE(atomo) {
    int by_rank;
    for (by_rank = 0; by_rank < 2; by_rank++) {
        RUN_TESTp(unbiased, 1, 0.8, 8, 6, by_rank);
        RUN_TESTp(unbiased, 2, 0.8, 6, 12, by_rank);
        RUN_TESTp(unbiased, 3, 0.5, 12, 8, by_rank); /* the first are sure */
        RUN_TESTp(unbiased, 4, 0.6, 7, 7, by_rank);
        RUN_TESTp(unbiased, 5, 0.9, 9, 10, by_rank);
    }
}

GREATEST_MAIN_DEFS();

int main(int argc, char **argv) {
    GREATEST_MAIN_BEGIN();
    RUN_SUITE(both);
    RUN_SUITE(lowrank);
    RUN_SUITE(atomo);
    GREATEST_MAIN_END();
}
