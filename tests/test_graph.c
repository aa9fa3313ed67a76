/* Graphs: neighbours and weights against definitions written here, what the validator names, 1 - rho against closed
   forms and a Jacobi solver, omega against the sum over t of its definition. */
#include "greatest.h"
#include "tier.h"
#define COMPGRAD_IMPLEMENTATION
#include "compgrad_sync.h"
#include <math.h>
#include <stdio.h>

static char note[400], why[200];
#define SAY(...) (snprintf(note, sizeof note, __VA_ARGS__), 0)
#define TRY(call)             \
  do {                        \
    if (!(call)) FAILm(note); \
  } while (0)

static const double PI = 3.14159265358979323846;
static void *mem;
static int open_graph(cg_graph *g, const cg_graph_desc *d) {
    cg_status s;
    free(mem);
    mem = malloc(cg_graph_memory(d) + 1);
    s = cg_graph_init(g, d, (char *)mem + 1, cg_graph_memory(d), why, sizeof why);
    return s == CG_OK ? 1 : SAY("kind %u, %d nodes: %s", d->kind, d->nodes, why);
}
static uint64_t mix(uint64_t z) {
    z += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 32) * 0xD6E8FEB86659FD93u;
    z = (z ^ z >> 32) * 0xD6E8FEB86659FD93u;
    return z ^ z >> 32;
}

/* ---- what the kinds mean ---- */

static int log2_up(int n) {
    int l = 0;
    while (1 << l < n) l++;
    return l;
}
static int joined(const cg_graph_desc *d, int i, int j) {
    const int n = d->nodes, apart = ((j - i) % n + n) % n;
    int cols;
    if (i == j) return 0;
    switch (d->kind) {
    case CG_GRAPH_RING: return apart == 1 || apart == n - 1;
    case CG_GRAPH_COMPLETE: return 1;
    case CG_GRAPH_STAR: return !i || !j;
    case CG_GRAPH_TORUS: {
        int r, c;
        cols = n / d->rows;
        r = abs(i / cols - j / cols), c = abs(i % cols - j % cols);
        return (!r && (c == 1 || c == cols - 1)) || (!c && (r == 1 || r == d->rows - 1));
    }
    case CG_GRAPH_HYPERCUBE: return !((i ^ j) & ((i ^ j) - 1));
    case CG_GRAPH_EXPONENTIAL:
        for (int k = 0; k < log2_up(n); k++)
            if (apart == 1 << k || n - apart == 1 << k) return 1;
        return 0;
    default:
        for (size_t k = 0; k < d->edge_count; k++)
            if ((d->edges[k][0] == i && d->edges[k][1] == j) || (d->edges[k][0] == j && d->edges[k][1] == i)) return 1;
        return 0;
    }
}
static double weight(const cg_graph_desc *d, int i, int j) { /* Metropolis and Hastings */
    int di = 0, dj = 0;
    double own = 1;
    for (int k = 0; k < d->nodes; k++) di += joined(d, i, k), dj += joined(d, j, k);
    if (i != j) return joined(d, i, j) ? 1.0 / (1 + (di > dj ? di : dj)) : 0;
    for (int k = 0; k < d->nodes; k++)
        if (k != i) own -= weight(d, i, k);
    return own;
}
static double *matrix(const cg_graph_desc *d) {
    double *w = malloc((size_t)(d->nodes * d->nodes) * sizeof *w);
    for (int i = 0; i < d->nodes; i++)
        for (int j = 0; j < d->nodes; j++)
            w[i * d->nodes + j] = d->weights ? (double)d->weights[i * d->nodes + j] : weight(d, i, j);
    return w;
}
static int weights_agree(const cg_graph_desc *d) {
    cg_graph g;
    double *w = matrix(d);
    if (!open_graph(&g, d)) return 0;
    for (int i = 0; i < d->nodes; i++)
        for (int j = 0; j < d->nodes; j++) {
            const double is = (double)cg_graph_weight(&g, i, j, 7);
            if (fabs(is - w[i * d->nodes + j]) > 1e-6 || (is != 0) != (w[i * d->nodes + j] > 1e-9))
                return SAY(
                    "kind %u, %d nodes: weight %d %d is %g, not %g", d->kind, d->nodes, i, j, is, w[i * d->nodes + j]);
        }
    free(w);
    return 1;
}

/* ---- references of gap and omega ---- */

/* Eigenvalues by Jacobi's rotations. */
static double slow_gap(double *a, int n) {
    double largest = 0;
    int top = 0;
    for (int sweep = 0; sweep < 60; sweep++)
        for (int p = 0; p < n; p++)
            for (int q = p + 1; q < n; q++) {
                const double off = a[p * n + q];
                double t, c, s;
                if (fabs(off) < 1e-300) continue;
                t = (a[q * n + q] - a[p * n + p]) / (2 * off);
                t = (t < 0 ? -1 : 1) / (fabs(t) + sqrt(t * t + 1));
                c = 1 / sqrt(t * t + 1), s = t * c;
                for (int k = 0; k < n; k++) {
                    const double x = a[k * n + p], y = a[k * n + q];
                    a[k * n + p] = c * x - s * y, a[k * n + q] = s * x + c * y;
                }
                for (int k = 0; k < n; k++) {
                    const double x = a[p * n + k], y = a[q * n + k];
                    a[p * n + k] = c * x - s * y, a[q * n + k] = s * x + c * y;
                }
            }
    for (int i = 0; i < n; i++)
        if (a[i * n + i] > a[top * n + top]) top = i;
    for (int i = 0; i < n; i++)
        if (i != top && fabs(a[i * n + i]) > largest) largest = fabs(a[i * n + i]);
    return 1 - largest;
}
/* 1 / rho(G), G summed over t from its definition, rho by the power method. */
static double slow_omega(const double *w, int n) {
    double *g = calloc((size_t)(n * n), sizeof *g), *m = malloc((size_t)(n * n) * sizeof *m),
           *next = malloc((size_t)(n * n) * sizeof *m), *x = malloc((size_t)n * sizeof *x),
           *y = malloc((size_t)n * sizeof *y), norm = 1, size = 1;
    for (int i = 0; i < n * n; i++) m[i] = w[i] - (i % (n + 1) == 0);
    for (int t = 0; t < 100000 && size > 1e-9; t++) {
        size = 0;
        for (int i = 0; i < n * n; i++) g[i] += m[i] * m[i], size = fmax(size, fabs(m[i]));
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++) {
                double s = 0;
                for (int k = 0; k < n; k++) s += m[i * n + k] * w[k * n + j];
                next[i * n + j] = s;
            }
        memcpy(m, next, (size_t)(n * n) * sizeof *m);
    }
    for (int i = 0; i < n; i++) x[i] = 1;
    for (int t = 0; t < 5000; t++) {
        norm = 0;
        for (int i = 0; i < n; i++) {
            y[i] = 0;
            for (int j = 0; j < n; j++) y[i] += g[i * n + j] * x[j];
            norm = fmax(norm, y[i]);
        }
        for (int i = 0; i < n; i++) x[i] = y[i] / norm;
    }
    free(g), free(m), free(next), free(x), free(y);
    return 1 / norm;
}
static int spectrum_agrees(const cg_graph_desc *d) {
    cg_graph g;
    double *w = matrix(d), gap, omega = slow_omega(w, d->nodes);
    if (!open_graph(&g, d)) return 0;
    gap = slow_gap(w, d->nodes);
    free(w);
    if (fabs(cg_graph_gap(&g) - gap) > 1e-6 * gap)
        return SAY("kind %u, %d nodes: gap %.12g, not %.12g", d->kind, d->nodes, cg_graph_gap(&g), gap);
    if (fabs(cg_graph_omega(&g) - omega) > 1e-6 * omega)
        return SAY("kind %u, %d nodes: omega %.9g, not %.9g", d->kind, d->nodes, cg_graph_omega(&g), omega);
    return 1;
}

static cg_graph_desc named(uint32_t kind, int nodes, int rows) {
    cg_graph_desc d = CG_ZERO;
    d.kind = kind, d.nodes = nodes, d.rows = rows;
    return d;
}
static int list[1 << 16][2];
static float entries[64 * 64];
/* A path, a random tree with further edges, the ring as a list. */
static cg_graph_desc listed(int nodes, int which) {
    cg_graph_desc d = named(CG_GRAPH_EDGES, nodes, 0);
    d.edges = (const int(*)[2])list;
    for (int i = 1; i < nodes; i++, d.edge_count++) {
        list[d.edge_count][0] = which == 1 ? (int)(mix((uint64_t)i) % (uint64_t)i) : i - 1;
        list[d.edge_count][1] = i;
    }
    if (which == 2 && nodes > 2) list[d.edge_count][0] = nodes - 1, list[d.edge_count++][1] = 0;
    for (int i = 0; which == 1 && i < nodes; i++) {
        const int a = (int)(mix((uint64_t)i + 99) % (uint64_t)nodes),
                  b = (int)(mix((uint64_t)i + 999) % (uint64_t)nodes);
        if (a == b || joined(&d, a, b)) continue;
        list[d.edge_count][0] = a, list[d.edge_count++][1] = b;
    }
    return d;
}
/* A mean of random permutations and their transposes, in quarters: symmetric, and rows add up to 1 exactly. */
static cg_graph_desc weighted(int nodes, uint64_t seed) {
    cg_graph_desc d = named(CG_GRAPH_EDGES, nodes, 0);
    memset(entries, 0, sizeof entries);
    for (int i = 0; i < nodes; i++) entries[i * nodes + i] += 0.25f;
    for (int part = 0; part < 3; part++) { /* three matchings of a quarter each */
        int order[64];
        for (int i = 0; i < nodes; i++) order[i] = i;
        for (int i = nodes - 1; i > 0; i--) {
            const int j = (int)(mix(seed * 977 + (uint64_t)(part * 64 + i)) % (uint64_t)(i + 1)), t = order[i];
            order[i] = order[j], order[j] = t;
        }
        for (int i = 0; i + 1 < nodes; i += 2) {
            entries[order[i] * nodes + order[i + 1]] += 0.25f;
            entries[order[i + 1] * nodes + order[i]] += 0.25f;
        }
        if (nodes % 2) entries[order[nodes - 1] * (nodes + 1)] += 0.25f;
    }
    d.weights = entries;
    return d;
}

TEST neighbours_and_weights(void) {
    for (int n = 1; n <= 17; n++) {
        const uint32_t plain[] = { CG_GRAPH_RING, CG_GRAPH_COMPLETE, CG_GRAPH_STAR, CG_GRAPH_EXPONENTIAL };
        for (size_t k = 0; k < sizeof plain / sizeof *plain; k++) {
            cg_graph_desc d = named(plain[k], n, 0);
            TRY(weights_agree(&d));
        }
        for (int rows = 1; rows <= n; rows++)
            if (n % rows == 0) {
                cg_graph_desc d = named(CG_GRAPH_TORUS, n, rows);
                TRY(weights_agree(&d));
            }
        if (!(n & (n - 1))) {
            cg_graph_desc d = named(CG_GRAPH_HYPERCUBE, n, 0);
            TRY(weights_agree(&d));
        }
        for (int which = 0; n > 1 && which < 3; which++) {
            cg_graph_desc d = listed(n, which);
            TRY(weights_agree(&d));
        }
    }
    PASS();
}
TEST given_weights(void) {
    int done = 0;
    for (uint64_t seed = 1; seed < 12; seed++) {
        cg_graph_desc d = weighted(6 + (int)seed, seed);
        cg_graph g;
        if (cg_graph_init(&g, &d, mem = realloc(mem, cg_graph_memory(&d)), cg_graph_memory(&d), why, sizeof why) !=
            CG_OK) {
            ASSERT(strstr(why, "falls apart")); /* three matchings need not join all */
            continue;
        }
        TRY(weights_agree(&d));
        TRY(spectrum_agrees(&d));
        done++;
    }
    ASSERT(done >= 6);
    PASS();
}
TEST one_peer(void) {
    for (int n = 1; n <= 33; n++) {
        cg_graph_desc d = named(CG_GRAPH_ONE_PEER, n, 0);
        const int period = log2_up(n);
        double rho = 0;
        cg_graph g;
        TRY(open_graph(&g, &d));
        for (uint64_t t = 0; t < 12; t++)
            for (int i = 0; i < n; i++) {
                const int from = period ? ((i - (1 << t % (uint64_t)period)) % n + n) % n : i;
                for (int j = 0; j < n; j++)
                    ASSERT_EQ((n > 1 && (j == i || j == from) ? 0.5f
                                      : n == 1                ? 1.0f
                                                              : 0.0f),
                        cg_graph_weight(&g, i, j, t));
            }
        for (int j = 1; j < n; j++) {
            double p = 1;
            for (int k = 0; k < period; k++) p *= fabs(cos(PI * j * (1 << k) / n));
            rho = fmax(rho, p);
        }
        if (n & (n - 1)) rho = pow(rho, 1.0 / period);
        else rho = 0; /* exact after a period */
        if (fabs(cg_graph_gap(&g) - (1 - rho)) > 1e-6 * (1 - rho)) {
            (void)SAY("%d nodes: %.12g, not %.12g", n, cg_graph_gap(&g), 1 - rho);
            FAILm(note);
        }
        ASSERT_EQ(n == 1 ? 1e300 : -1.0, cg_graph_omega(&g));
    }
    PASS();
}
/* (1 + 2 cos(2 pi / N)) / 3, and the same ring as a list: dense solver and Lanczos. */
TEST gap_of_rings(void) {
    const int nodes[] = { 4, 5, 8, 64, 4096, 300, 513, 1000 };
    for (size_t k = 0; k < sizeof nodes / sizeof *nodes; k++) {
        const int n = nodes[k];
        const double s = sin(PI / n), other = n % 2 ? 1 + (1 + 2 * cos(PI * (n - 1) / n)) / 3 : 2.0 / 3;
        const double gap = fmin(4.0 / 3 * s * s, other);
        cg_graph_desc d = named(CG_GRAPH_RING, n, 0);
        cg_graph g;
        TRY(open_graph(&g, &d));
        if (fabs(cg_graph_gap(&g) - gap) > 1e-6 * gap) {
            (void)SAY("ring of %d: %.15g, not %.15g", n, cg_graph_gap(&g), gap);
            FAILm(note);
        }
        if (n > 1000 && !long_test()) continue;
        d = listed(n, 2);
        TRY(open_graph(&g, &d));
        if (fabs(cg_graph_gap(&g) - gap) > 1e-6 * gap) {
            (void)SAY("listed ring of %d: %.15g, not %.15g", n, cg_graph_gap(&g), gap);
            FAILm(note);
        }
    }
    PASS();
}
/* The path of N nodes has the eigenvalues (1 + 2 cos(pi j / N)) / 3. */
TEST gap_of_paths(void) {
    const int nodes[] = { 2, 3, 8, 100, 700, 4096 };
    for (size_t k = 0; k < 4 + (long_test() ? 2 : 1); k++) {
        const int n = nodes[k];
        const double s = sin(PI / (2 * n)), gap = n == 2 ? 1 : 4.0 / 3 * s * s;
        cg_graph_desc d = listed(n, 0);
        cg_graph g;
        TRY(open_graph(&g, &d));
        if (fabs(cg_graph_gap(&g) - gap) > 1e-6 * gap) {
            (void)SAY("path of %d: %.15g, not %.15g", n, cg_graph_gap(&g), gap);
            FAILm(note);
        }
    }
    PASS();
}
TEST gap_and_omega(void) {
    for (int n = 2; n <= 18; n++) {
        const uint32_t plain[] = { CG_GRAPH_RING, CG_GRAPH_COMPLETE, CG_GRAPH_STAR, CG_GRAPH_EXPONENTIAL };
        for (size_t k = 0; k < sizeof plain / sizeof *plain; k++) {
            cg_graph_desc d = named(plain[k], n, 0);
            TRY(spectrum_agrees(&d));
        }
        for (int rows = 2; rows <= 4; rows++)
            if (n % rows == 0) {
                cg_graph_desc d = named(CG_GRAPH_TORUS, n, rows);
                TRY(spectrum_agrees(&d));
            }
        if (!(n & (n - 1))) {
            cg_graph_desc d = named(CG_GRAPH_HYPERCUBE, n, 0);
            TRY(spectrum_agrees(&d));
        }
        for (int which = 0; which < 3; which++) {
            cg_graph_desc d = listed(n, which);
            TRY(spectrum_agrees(&d));
        }
    }
    PASS();
}
static int omega_is(cg_graph_desc d, double omega) {
    cg_graph g;
    if (!open_graph(&g, &d)) return 0;
    return fabs(cg_graph_omega(&g) - omega) < 6e-4 ||
        SAY("kind %u, %d nodes: omega %g, not %g", d.kind, d.nodes, cg_graph_omega(&g), omega);
}
/* The figures that were known before. */
TEST known_omegas(void) {
    TRY(omega_is(named(CG_GRAPH_RING, 8, 0), 1.366));
    TRY(omega_is(named(CG_GRAPH_RING, 16, 0), 1.366));
    TRY(omega_is(named(CG_GRAPH_RING, 32, 0), 1.366));
    TRY(omega_is(named(CG_GRAPH_TORUS, 16, 4), 1.067));
    TRY(omega_is(named(CG_GRAPH_HYPERCUBE, 16, 0), 1.067));
    TRY(omega_is(named(CG_GRAPH_COMPLETE, 8, 0), 1.143));
    TRY(omega_is(named(CG_GRAPH_EXPONENTIAL, 16, 0), 1.087));
    TRY(omega_is(named(CG_GRAPH_STAR, 8, 0), 1.302));
    TRY(omega_is(listed(8, 0), 1.431));
    TRY(omega_is(listed(1000, 1), -1));
    { /* two nodes that swap their models: lambda_min = -1 */
        const float swap[4] = { 0, 1, 1, 0 };
        cg_graph_desc d = named(CG_GRAPH_EDGES, 2, 0);
        cg_graph g;
        d.weights = swap;
        TRY(omega_is(d, 0));
        TRY(open_graph(&g, &d));
        ASSERT_EQ(0.0, cg_graph_gap(&g));
    }
    { /* a W that has the symmetry of a ring, as rows of numbers */
        cg_graph_desc d = named(CG_GRAPH_EDGES, 512, 0);
        float *w = calloc(512 * 512, sizeof *w);
        for (int i = 0; i < 512; i++)
            w[i * 513] = 0.5f, w[i * 512 + (i + 1) % 512] = 0.25f, w[i * 512 + (i + 511) % 512] = 0.25f;
        d.weights = w;
        {
            double sum = 0;
            for (int j = 1; j < 512; j++) sum += (1 - cos(2 * PI * j / 512)) / (3 + cos(2 * PI * j / 512));
            TRY(omega_is(d, 512 / sum));
        }
        free(w);
    }
    PASS();
}
/* every text names the row, edge or field */
static int refused(const cg_graph_desc *d, const char *text) {
    static char room[1 << 16];
    cg_graph g;
    const size_t bytes = cg_graph_memory(d);
    if (bytes > sizeof room) return SAY("%zu bytes", bytes);
    if (cg_graph_init(&g, d, room, sizeof room, why, sizeof why) != CG_E_ARG) return SAY("accepted: %s", text);
    if (strcmp(why, text)) return SAY("\"%s\", not \"%s\"", why, text);
    if (cg_graph_init(&g, d, room, sizeof room, NULL, 0) != CG_E_ARG) return SAY("accepted without why");
    if (cg_graph_init(&g, d, room, sizeof room, why, 9) != CG_E_ARG) return SAY("accepted with a short why");
    if (strlen(why) != 8 || strncmp(why, text, 8)) return SAY("a short why holds \"%s\"", why);
    return cg_graph_gap(&g) == -1 && cg_graph_weight(&g, 0, 0, 0) == 0;
}
TEST the_validator_names_it(void) {
    float w[9] = { .5f, .25f, .25f, .25f, .5f, .25f, .25f, .25f, .5f };
    int e[3][2] = { { 0, 1 }, { 1, 2 }, { 1, 0 } };
    cg_graph_desc d = named(CG_GRAPH_RING, 0, 0);
    cg_graph g;
    TRY(refused(&d, "nodes must be 1 to 65536"));
    d = named(99, 3, 0);
    TRY(refused(&d, "kind is none of the CG_GRAPH_ constants"));
    d = named(CG_GRAPH_TORUS, 10, 3);
    TRY(refused(&d, "nodes must be a multiple of rows"));
    d = named(CG_GRAPH_HYPERCUBE, 12, 0);
    TRY(refused(&d, "the nodes of a hypercube are a power of 2"));
    d = named(CG_GRAPH_RING, 5, 0);
    d.directed = 1;
    TRY(refused(&d, "only edges without weights may be directed"));
    d = named(CG_GRAPH_EDGES, 3, 0);
    TRY(refused(&d, "edges is NULL, and so is weights"));
    d.edges = (const int(*)[2])e, d.edge_count = 3;
    TRY(refused(&d, "edges has the edge between nodes 0 and 1 twice"));
    e[2][1] = 3;
    TRY(refused(&d, "edge 2 names a node that is not below nodes, 3"));
    e[2][1] = 1;
    TRY(refused(&d, "edge 2 leads from node 1 to itself"));
    d.edge_count = 1;
    TRY(refused(&d, "the graph falls apart: no way leads between node 0 and node 2"));
    d.edge_count = 2, d.directed = 1; /* 0 to 1 to 2, and no way back */
    TRY(refused(&d, "the graph falls apart: no way leads between node 0 and node 1"));
    e[2][0] = 2, e[2][1] = 0, d.edge_count = 3;
    TRY(open_graph(&g, &d));
    ASSERT_EQ(-1.0, cg_graph_gap(&g));
    ASSERT_EQ(0.5f, cg_graph_weight(&g, 1, 0, 0));
    ASSERT_EQ(0.0f, cg_graph_weight(&g, 0, 1, 0));
    d = named(CG_GRAPH_EDGES, 3, 0);
    d.weights = w;
    TRY(open_graph(&g, &d));
    w[5] = NAN;
    TRY(refused(&d, "row 1 of W has an entry that is negative or not finite, for node 2"));
    w[5] = -.25f;
    TRY(refused(&d, "row 1 of W has an entry that is negative or not finite, for node 2"));
    w[5] = .3f;
    TRY(refused(&d, "row 1 of W is not symmetric: its entry for node 2 is another there"));
    w[5] = .25f, w[8] = .4f;
    TRY(refused(&d, "row 2 of W adds up to 0.9, not to 1"));
    w[8] = .5f, d.kind = CG_GRAPH_STAR;
    TRY(refused(&d, "row 1 of W has a weight for node 2, which is no neighbour"));
    d.kind = CG_GRAPH_RING;
    TRY(open_graph(&g, &d));
    d.kind = CG_GRAPH_EDGES, d.edges = (const int(*)[2])e, d.edge_count = 2;
    TRY(refused(&d, "row 0 of W and edges differ: an edge is missing, or is there twice"));
    d.kind = CG_GRAPH_ONE_PEER;
    TRY(refused(&d, "one-peer graphs have their own weights"));
    d = named(CG_GRAPH_RING, 4, 0);
    ASSERT_EQ(CG_E_MEMORY, cg_graph_init(&g, &d, mem, cg_graph_memory(&d) - 1, why, sizeof why));
    ASSERT(strstr(why, "mem is too small"));
    ASSERT_EQ(CG_E_ARG, cg_graph_init(NULL, &d, mem, 4, why, sizeof why));
    ASSERT_EQ(CG_E_ARG, cg_graph_init(&g, NULL, mem, 4, why, sizeof why));
    PASS();
}

GREATEST_MAIN_DEFS();
int main(int argc, char **argv) {
    GREATEST_MAIN_BEGIN();
    RUN_TEST(neighbours_and_weights);
    RUN_TEST(given_weights);
    RUN_TEST(one_peer);
    RUN_TEST(gap_of_rings);
    RUN_TEST(gap_of_paths);
    RUN_TEST(gap_and_omega);
    RUN_TEST(known_omegas);
    RUN_TEST(the_validator_names_it);
    free(mem);
    GREATEST_MAIN_END();
}
