/* graph: the kinds of graphs, checks of a description, and neighbours and weights

   Offers   cg_graph_joined_, cg_graph_degree_, cg_graph_hop_, cg_graph_edge_weight_; the table of kinds; what
            cg_graph_init needs but for the spectrum
   Needs    spectrum; base
   Touches  the graph and the memory that it is given

   A named kind lists the neighbours of a node, perhaps some of them more than once; EDGES and graphs with weights have
   lists in memory. In named kinds but the star, every node sees the same graph (they are Cayley graphs of an abelian
   group), so that eigenvalues are sums of cosines. */

enum {
    CG_GRAPH_MOST_ = 65536,        /* nodes */
    CG_GRAPH_DENSE_ = 512,         /* nodes up to which eigenvectors are computed */
    CG_GRAPH_KRYLOV_ = 64,         /* steps of Lanczos for omega, at most */
    CG_GRAPH_LISTED_ = 1 << 0,     /* neighbours are in a list of the caller's */
    CG_GRAPH_CHANGES_ = 1 << 1,    /* other neighbours at every step: i hears of i - hop */
    CG_GRAPH_HAS_ROWS_ = 1 << 2,   /* desc.rows counts */
    CG_GRAPH_POWER_OF_2_ = 1 << 3, /* nodes must be one */
    CG_GRAPH_CENTRED_ = 1 << 4     /* all but node 0 have one neighbour */
};
typedef struct cg_graph_row_ {
    uint32_t id, traits;
    size_t (*count)(const cg_graph_desc *);           /* entries of the list of a node */
    int (*peer)(const cg_graph_desc *, int i, int k); /* entry k of the list of i; i itself is none */
    /* the character j of the group at its element p is exp(2 pi sqrt(-1) phase / nodes); NULL: other formulas */
    uint64_t (*phase)(const cg_graph_desc *, uint64_t j, uint64_t p);
    void (*spectrum)(const cg_graph_desc *, double *gap, double *omega); /* NULL: by phase */
} cg_graph_row_;

static unsigned cg_graph_hops_(const cg_graph_desc *d) { /* ceil(log2 nodes) */
    return d->nodes > 1 ? cg_log2_((uint64_t)d->nodes - 1) + 1 : 0;
}
static int cg_graph_around_(const cg_graph_desc *d, int i, int by) { /* i + by on the circle; |by| < nodes */
    const int64_t at = (int64_t)i + by;
    return (int)(at < 0 ? at + d->nodes : at >= d->nodes ? at - d->nodes : at);
}
static size_t cg_graph_two_(const cg_graph_desc *d) { return d->nodes > 1 ? 2 : 0; }
static size_t cg_graph_four_(const cg_graph_desc *d) { return d->nodes > 1 ? 4 : 0; }
static size_t cg_graph_others_(const cg_graph_desc *d) { return (size_t)d->nodes - 1; }
static size_t cg_graph_bits_(const cg_graph_desc *d) { return cg_graph_hops_(d); }
static size_t cg_graph_both_hops_(const cg_graph_desc *d) { return 2 * (size_t)cg_graph_hops_(d); }
static size_t cg_graph_none_(const cg_graph_desc *d) {
    (void)d;
    return 0;
}
static int cg_graph_ring_(const cg_graph_desc *d, int i, int k) { return cg_graph_around_(d, i, k ? 1 : -1); }
static int cg_graph_complete_(const cg_graph_desc *d, int i, int k) {
    (void)d;
    return k < i ? k : k + 1;
}
static int cg_graph_star_(const cg_graph_desc *d, int i, int k) {
    (void)d;
    return i ? 0 : k + 1;
}
static int cg_graph_torus_(const cg_graph_desc *d, int i, int k) {
    const int cols = d->nodes / d->rows, row = i / cols, col = i % cols;
    switch (k) {
    case 0: return row * cols + (col ? col - 1 : cols - 1);
    case 1: return row * cols + (col + 1 < cols ? col + 1 : 0);
    case 2: return (row ? row - 1 : d->rows - 1) * cols + col;
    default: return (row + 1 < d->rows ? row + 1 : 0) * cols + col;
    }
}
static int cg_graph_hypercube_(const cg_graph_desc *d, int i, int k) {
    (void)d;
    return i ^ 1 << k;
}
static int cg_graph_exponential_(const cg_graph_desc *d, int i, int k) {
    const int by = 1 << k / 2; /* below nodes, as k / 2 < ceil(log2 nodes) */
    return cg_graph_around_(d, i, k % 2 ? by : -by);
}
static int cg_graph_no_peer_(const cg_graph_desc *d, int i, int k) {
    (void)d, (void)k;
    return i;
}
static uint64_t cg_graph_phase_circle_(const cg_graph_desc *d, uint64_t j, uint64_t p) {
    return j * p % (uint64_t)d->nodes;
}
static uint64_t cg_graph_phase_torus_(const cg_graph_desc *d, uint64_t j, uint64_t p) {
    const uint64_t rows = (uint64_t)d->rows, cols = (uint64_t)(d->nodes / d->rows);
    return ((j / cols) * (p / cols) % rows * cols + (j % cols) * (p % cols) % cols * rows) % (rows * cols);
}
static uint64_t cg_graph_phase_bits_(const cg_graph_desc *d, uint64_t j, uint64_t p) {
    return (uint64_t)(cg_popcount_(j & p) & 1) * ((uint64_t)d->nodes / 2);
}
static void cg_graph_spectrum_complete_(const cg_graph_desc *d, double *gap, double *omega) {
    *gap = 1.0; /* all eigenvalues beside the 1 are 0 */
    *omega = (double)d->nodes / (double)(d->nodes - 1);
}
/* The star has the eigenvalues 1 - 1/N on the vectors of leaves that add up to 0, and 0 on (N - 1, -1, ..., -1). G then
   has one value for the centre, one between it and a leaf, and two between leaves; its largest eigenvalue is that of 2
   rows. */
static void cg_graph_spectrum_star_(const cg_graph_desc *d, double *gap, double *omega) {
    const double n = (double)d->nodes, r = 1.0 - 1.0 / n, later = r * r / (1.0 - r * r) / (n * n);
    const double centre = r * r, across = 1.0 / (n * n);
    const double off = n > 2.0 ? 1.0 / (n - 1.0) : 0.0, own = n > 2.0 ? 1.0 - off : 0.0;
    const double leaf = 1.0 / (n * n) + later * own * own + (n - 2.0) * later * off * off;
    const double both = across * across * (n - 1.0), apart = centre - leaf;
    *gap = 1.0 / n;
    if (d->nodes == 2) *gap = 1.0;
    *omega = 2.0 / (centre + leaf + cg_sqrt_(apart * apart + 4.0 * both));
}
/* W at step t has the eigenvalues (1 + exp(2 pi i j 2^k / N)) / 2, whose magnitudes are |cos(pi j 2^k / N)|. */
static void cg_graph_spectrum_one_peer_(const cg_graph_desc *d, double *gap, double *omega) {
    const uint64_t nodes = (uint64_t)d->nodes;
    const unsigned hops = cg_graph_hops_(d);
    double largest = 0.0, low = 0.0, high = 1.0;
    for (uint64_t j = 1; j < nodes; j++) {
        double product = 1.0;
        for (unsigned k = 0; k < hops; k++) { /* |cos(pi x)| = sin(pi |1/2 - x|) */
            const uint64_t twice = 2 * ((j << k) % nodes);
            product *= cg_sin_pi_(twice > nodes ? twice - nodes : nodes - twice, 2 * nodes);
        }
        if (product > largest) largest = product;
    }
    for (int round = 0; round < 100; round++) { /* the root of that order, by bisection */
        const double middle = (low + high) / 2.0;
        double power = 1.0;
        for (unsigned k = 0; k < hops; k++) power *= middle;
        if (power < largest) low = middle;
        else high = middle;
    }
    *gap = largest == 0.0 ? 1.0 : 1.0 - high;
    *omega = -1.0;
}

static const cg_graph_row_ cg_graph_rows_[] = {
    { CG_GRAPH_RING, 0, cg_graph_two_, cg_graph_ring_, cg_graph_phase_circle_, NULL },
    { CG_GRAPH_COMPLETE, 0, cg_graph_others_, cg_graph_complete_, NULL, cg_graph_spectrum_complete_ },
    { CG_GRAPH_STAR, CG_GRAPH_CENTRED_, cg_graph_others_, cg_graph_star_, NULL, cg_graph_spectrum_star_ },
    { CG_GRAPH_TORUS, CG_GRAPH_HAS_ROWS_, cg_graph_four_, cg_graph_torus_, cg_graph_phase_torus_, NULL },
    { CG_GRAPH_HYPERCUBE, CG_GRAPH_POWER_OF_2_, cg_graph_bits_, cg_graph_hypercube_, cg_graph_phase_bits_, NULL },
    { CG_GRAPH_EXPONENTIAL, 0, cg_graph_both_hops_, cg_graph_exponential_, cg_graph_phase_circle_, NULL },
    { CG_GRAPH_ONE_PEER, CG_GRAPH_CHANGES_, cg_graph_both_hops_, cg_graph_exponential_, NULL,
        cg_graph_spectrum_one_peer_ },
    { CG_GRAPH_EDGES, CG_GRAPH_LISTED_, cg_graph_none_, cg_graph_no_peer_, NULL, NULL },
};
enum { CG_GRAPH_COUNT_ = (int)(sizeof cg_graph_rows_ / sizeof *cg_graph_rows_) };
static int cg_graph_has_(const cg_graph *g, uint32_t trait) {
    return (cg_graph_rows_[g->desc.kind].traits & trait) != 0;
}

/* peers[0..result) := the neighbours of i, ascending, in any direction. peers has room for g->most, or for what count
   of a named kind says. */
static size_t cg_graph_named_list_(const cg_graph_desc *d, int i, int *peers) {
    const cg_graph_row_ *row = &cg_graph_rows_[d->kind];
    const size_t count = row->count(d);
    size_t kept = 0;
    for (size_t k = 0; k < count; k++) {
        const int p = row->peer(d, i, (int)k);
        size_t at = kept;
        if (p == i) continue;
        while (at && peers[at - 1] > p) at--;
        if (at && peers[at - 1] == p) continue;
        memmove(peers + at + 1, peers + at, (kept - at) * sizeof *peers);
        peers[at] = p;
        kept++;
    }
    return kept;
}
/* Neighbours that i sends to. Of named kinds all nodes but the star's have as many. */
static size_t cg_graph_degree_(const cg_graph *g, int i) {
    if (g->first) return (size_t)(g->first[i + 1] - g->first[i]);
    return cg_graph_has_(g, CG_GRAPH_CENTRED_) && i ? 1 : g->most;
}
/* Whether i sends to j; back: whether j sends to i. */
static int cg_graph_joined_(const cg_graph *g, int i, int j, int back) {
    const uint64_t *first = back ? g->first_back : g->first;
    const int *peer = back ? g->peer_back : g->peer;
    const cg_graph_row_ *row = &cg_graph_rows_[g->desc.kind];
    if (i == j) return 0;
    for (uint64_t k = first ? first[i] : 0; first && k < first[i + 1]; k++)
        if (peer[k] == j) return 1;
    for (size_t k = 0; !first && k < row->count(&g->desc); k++)
        if (row->peer(&g->desc, i, (int)k) == j) return 1;
    return 0;
}
/* Graphs that change: at that step i sends to i + hop, and hears of i - hop. */
static int cg_graph_hop_(const cg_graph *g, uint64_t step) {
    const unsigned hops = cg_graph_hops_(&g->desc);
    return hops ? 1 << step % hops : 0;
}
/* The weight of an edge from j to i that is there at that step, k its place in the list of i. */
static float cg_graph_edge_weight_(const cg_graph *g, int i, int j, uint64_t k) {
    if (g->weight) return g->weight[g->first[i] + k];
    if (cg_graph_has_(g, CG_GRAPH_CHANGES_)) return 0.5f;
    if (g->desc.directed) return 1.0f / (float)(1 + cg_graph_degree_(g, j));
    return 1.0f /
        (float)(1 +
            (cg_graph_degree_(g, i) > cg_graph_degree_(g, j) ? cg_graph_degree_(g, i) : cg_graph_degree_(g, j)));
}
