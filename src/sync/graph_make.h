/* graph_make: checks a description, lays out a graph in memory, and computes gap and omega

   Offers   cg_graph_memory, cg_graph_init, cg_graph_gap, cg_graph_omega, cg_graph_weight
   Needs    spectrum, graph; base
   Touches  the graph, the memory that it is given, and why */

/* A sentence in the caller's buffer: text and numbers in turn; a number is left out after NULL. */
static cg_status cg_graph_say_(
    char *why, size_t cap, const char *a, uint64_t i, const char *b, uint64_t j, const char *c) {
    cg_text_ t;
    if (!cap) return CG_E_ARG;
    t.at = why;
    t.end = why + cap - 1;
    cg_text_str_(&t, a);
    if (b) cg_text_uint_(&t, i), cg_text_str_(&t, b);
    if (c) cg_text_uint_(&t, j), cg_text_str_(&t, c);
    *t.at = 0;
    return CG_E_ARG;
}
/* The places of a graph's parts in mem; NULL mem: only counts. */
typedef struct cg_graph_plan_ {
    uint64_t *first, *first_back, *at;
    int *peer, *peer_back, *list;
    float *weight;
    double *v, *y, *d, *e, *z;     /* work space of the spectrum */
    size_t arcs, krylov, constant; /* constant: which eigenvector has the eigenvalue 1 */
    uint64_t bytes;
} cg_graph_plan_;
static void *cg_graph_take_(uint8_t *mem, uint64_t *used, uint64_t count, uint64_t each) {
    void *p = mem ? mem + *used : NULL;
    *used = cg_add_sat_(*used, cg_mul_sat_(count, each));
    *used = cg_add_sat_(*used, (64 - *used % 64) % 64);
    return p;
}
static int cg_graph_is_listed_(const cg_graph_desc *d) {
    return (cg_graph_rows_[d->kind].traits & CG_GRAPH_LISTED_) || d->weights;
}
/* Entries of W that are not 0, off the diagonal; or both directions of the edges. */
static size_t cg_graph_arcs_(const cg_graph_desc *d) {
    const size_t nodes = (size_t)d->nodes;
    size_t arcs = 0;
    if (!d->weights) return d->directed ? d->edge_count : 2 * d->edge_count;
    for (size_t i = 0; i < nodes * nodes; i++) arcs += cg_load_(d->weights, i) != 0.0f && i % (nodes + 1);
    return arcs;
}
static void cg_graph_plan_make_(cg_graph_plan_ *p, const cg_graph_desc *d, uint8_t *mem) {
    const uint64_t nodes = (uint64_t)d->nodes;
    const int listed = cg_graph_is_listed_(d), dense = nodes <= CG_GRAPH_DENSE_;
    uint64_t used = 0;
    memset(p, 0, sizeof *p);
    p->list = (int *)cg_graph_take_(mem, &used, nodes, sizeof(int)); /* a named list, and a queue */
    if (listed) {
        p->arcs = cg_graph_arcs_(d);
        p->first = (uint64_t *)cg_graph_take_(mem, &used, nodes + 1, 8);
        p->peer = (int *)cg_graph_take_(mem, &used, p->arcs, sizeof(int));
        p->first_back = (uint64_t *)cg_graph_take_(mem, &used, nodes + 1, 8);
        p->peer_back = (int *)cg_graph_take_(mem, &used, p->arcs, sizeof(int));
        if (d->weights) p->weight = (float *)cg_graph_take_(mem, &used, p->arcs, sizeof(float));
    }
    p->at = (uint64_t *)cg_graph_take_(mem, &used, nodes, 8);
    if (listed && !d->directed) {
        p->krylov = dense ? (size_t)CG_GRAPH_KRYLOV_ : (size_t)(16 * nodes + 1024);
        if (dense) {
            p->v = (double *)cg_graph_take_(mem, &used, nodes * nodes, 8);
            p->y = (double *)cg_graph_take_(mem, &used, nodes * nodes, 8);
        } else {
            p->v = (double *)cg_graph_take_(mem, &used, 3 * nodes, 8);
        }
        p->d = (double *)cg_graph_take_(mem, &used, nodes + p->krylov, 8);
        p->e = (double *)cg_graph_take_(mem, &used, nodes + p->krylov, 8);
        p->z = (double *)cg_graph_take_(mem, &used, dense ? (p->krylov + 3) * nodes : 5 * p->krylov, 8);
        if (dense) p->krylov = CG_GRAPH_KRYLOV_;
    }
    p->bytes = used;
}
/* NULL, or what is wrong with the numbers of a description. */
static const char *cg_graph_wrong_(const cg_graph_desc *d) {
    const uint32_t traits = d->kind < CG_GRAPH_COUNT_ ? cg_graph_rows_[d->kind].traits : 0;
    if (d->kind >= CG_GRAPH_COUNT_) return "kind is none of the CG_GRAPH_ constants";
    if (d->nodes < 1 || d->nodes > CG_GRAPH_MOST_) return "nodes must be 1 to 65536";
    if ((traits & CG_GRAPH_HAS_ROWS_) && (d->rows < 1 || d->nodes % d->rows)) return "nodes must be a multiple of rows";
    if ((traits & CG_GRAPH_POWER_OF_2_) && (d->nodes & (d->nodes - 1)))
        return "the nodes of a hypercube are a power of 2";
    if ((traits & CG_GRAPH_CHANGES_) && d->weights) return "one-peer graphs have their own weights";
    if (d->directed && (!(traits & CG_GRAPH_LISTED_) || d->weights))
        return "only edges without weights may be directed";
    if ((traits & CG_GRAPH_LISTED_) && !d->edges && (d->edge_count || (!d->weights && d->nodes > 1)))
        return "edges is NULL, and so is weights";
    if (!(traits & CG_GRAPH_LISTED_) && d->edge_count) return "edges are for CG_GRAPH_EDGES";
    if (d->edge_count > ((size_t)1 << 30) || (d->weights && d->nodes > 32768)) return "too many edges";
    return NULL;
}
/* first, then peer, of the transposed lists; ascending if i ascends. */
static void cg_graph_transpose_(
    size_t nodes, const uint64_t *first, const int *peer, uint64_t *to_first, int *to_peer, uint64_t *at) {
    memset(at, 0, nodes * sizeof *at);
    for (uint64_t k = 0; k < first[nodes]; k++) at[peer[k]]++;
    to_first[0] = 0;
    for (size_t i = 0; i < nodes; i++) {
        to_first[i + 1] = to_first[i] + at[i];
        at[i] = to_first[i];
    }
    for (size_t i = 0; i < nodes; i++)
        for (uint64_t k = first[i]; k < first[i + 1]; k++) to_peer[at[peer[k]]++] = (int)i;
}
/* The lists of edges: p->first and p->peer by sender, p->first_back and p->peer_back by receiver. */
static cg_status cg_graph_read_edges_(const cg_graph_desc *d, const cg_graph_plan_ *p, char *why, size_t cap) {
    const size_t nodes = (size_t)d->nodes;
    memset(p->at, 0, nodes * sizeof *p->at);
    for (size_t k = 0; k < d->edge_count; k++) {
        const int a = d->edges[k][0], b = d->edges[k][1];
        if (a < 0 || b < 0 || a >= d->nodes || b >= d->nodes)
            return cg_graph_say_(why, cap, "edge ", k, " names a node that is not below nodes, ", nodes, "");
        if (a == b) return cg_graph_say_(why, cap, "edge ", k, " leads from node ", (uint64_t)a, " to itself");
        p->at[a]++;
        if (!d->directed) p->at[b]++;
    }
    p->first_back[0] = 0;
    for (size_t i = 0; i < nodes; i++) {
        p->first_back[i + 1] = p->first_back[i] + p->at[i];
        p->at[i] = p->first_back[i];
    }
    for (size_t k = 0; k < d->edge_count; k++) { /* by sender, in the order given */
        const int a = d->edges[k][0], b = d->edges[k][1];
        p->peer_back[p->at[a]++] = b;
        if (!d->directed) p->peer_back[p->at[b]++] = a;
    }
    cg_graph_transpose_(nodes, p->first_back, p->peer_back, p->first, p->peer, p->at);
    if (d->directed) { /* by receiver, ascending; and once more by sender */
        for (uint64_t k = 0; k <= nodes; k++) p->first_back[k] = p->first[k];
        memcpy(p->peer_back, p->peer, p->arcs * sizeof *p->peer);
        cg_graph_transpose_(nodes, p->first_back, p->peer_back, p->first, p->peer, p->at);
    } else {
        memcpy(p->first_back, p->first, (nodes + 1) * sizeof *p->first);
        memcpy(p->peer_back, p->peer, p->arcs * sizeof *p->peer);
    }
    for (size_t i = 0; i < nodes; i++)
        for (uint64_t k = p->first[i] + 1; k < p->first[i + 1]; k++)
            if (p->peer[k] == p->peer[k - 1])
                return cg_graph_say_(
                    why, cap, "edges has the edge between nodes ", i, " and ", (uint64_t)p->peer[k], " twice");
    return CG_OK;
}
/* The lists of W, and its weights. */
static cg_status cg_graph_read_weights_(const cg_graph_desc *d, const cg_graph_plan_ *p, char *why, size_t cap) {
    const size_t nodes = (size_t)d->nodes;
    uint64_t arcs = 0;
    p->first[0] = 0;
    for (size_t i = 0; i < nodes; i++) {
        double sum = 0.0;
        size_t known = 0, seen = 0;
        const int named = !(cg_graph_rows_[d->kind].traits & CG_GRAPH_LISTED_);
        if (named) known = cg_graph_named_list_(d, (int)i, p->list);
        for (size_t j = 0; j < nodes; j++) {
            const float w = cg_load_(d->weights, i * nodes + j), back = cg_load_(d->weights, j * nodes + i);
            if (!cg_is_finite_(w) || w < 0.0f)
                return cg_graph_say_(
                    why, cap, "row ", i, " of W has an entry that is negative or not finite, for node ", j, "");
            if (cg_as_bits_(w + 0.0f) != cg_as_bits_(back + 0.0f))
                return cg_graph_say_(
                    why, cap, "row ", i, " of W is not symmetric: its entry for node ", j, " is another there");
            sum += (double)w;
            if (j == i || w == 0.0f) continue;
            while (seen < known && (size_t)p->list[seen] < j) seen++;
            if (named && (seen == known || (size_t)p->list[seen] != j))
                return cg_graph_say_(why, cap, "row ", i, " of W has a weight for node ", j, ", which is no neighbour");
            p->peer[arcs] = (int)j;
            p->weight[arcs++] = w;
        }
        p->first[i + 1] = arcs;
        if (cg_abs64_(sum - 1.0) > 1e-5) {
            cg_text_ t;
            if (!cap) return CG_E_ARG;
            t.at = why;
            t.end = why + cap - 1;
            cg_text_str_(&t, "row ");
            cg_text_uint_(&t, i);
            cg_text_str_(&t, " of W adds up to ");
            cg_text_float_(&t, cg_saturate64_(sum));
            cg_text_str_(&t, ", not to 1");
            *t.at = 0;
            return CG_E_ARG;
        }
    }
    if (d->edges) { /* W must lie on them: each arc of W is looked for among the edges, which are few per node */
        const cg_graph_plan_ *q = p;
        memset(q->at, 0, nodes * sizeof *q->at);
        for (size_t k = 0; k < d->edge_count; k++) {
            const int a = d->edges[k][0], b = d->edges[k][1];
            if (a < 0 || b < 0 || a >= d->nodes || b >= d->nodes || a == b)
                return cg_graph_say_(why, cap, "edge ", k, " does not join two nodes below nodes, ", nodes, "");
            if (cg_load_(d->weights, (size_t)a * nodes + (size_t)b) != 0.0f) q->at[a]++, q->at[b]++;
        }
        for (size_t i = 0; i < nodes; i++)
            if (q->at[i] != q->first[i + 1] - q->first[i])
                return cg_graph_say_(
                    why, cap, "row ", i, " of W and edges differ: an edge is missing, or is there twice", 0, NULL);
    }
    memcpy(p->first_back, p->first, (nodes + 1) * sizeof *p->first);
    memcpy(p->peer_back, p->peer, (size_t)arcs * sizeof *p->peer);
    return CG_OK;
}
/* How many nodes node 0 reaches along these lists; *missing := one that it does not. */
static size_t cg_graph_reach_(
    size_t nodes, const uint64_t *first, const int *peer, int *queue, uint64_t *seen, size_t *missing) {
    size_t many = 1;
    memset(seen, 0, nodes * sizeof *seen);
    seen[0] = 1;
    queue[0] = 0;
    for (size_t at = 0; at < many; at++)
        for (uint64_t k = first[queue[at]]; k < first[queue[at] + 1]; k++)
            if (!seen[peer[k]]) {
                seen[peer[k]] = 1;
                queue[many++] = peer[k];
            }
    for (*missing = 0; *missing < nodes && seen[*missing];) ++*missing;
    return many;
}

/* ---- the spectrum ---- */

/* By characters: 1 - lambda_j and 1 + lambda_j are sums over the neighbours p of node 0 of sin^2 and cos^2. */
static void cg_graph_spectrum_group_(const cg_graph *g, const int *peers, double *gap, double *omega) {
    const cg_graph_row_ *row = &cg_graph_rows_[g->desc.kind];
    const uint64_t nodes = (uint64_t)g->desc.nodes;
    const double self = 1.0 / (double)(1 + g->most);
    double least = 2.0, sum = 0.0;
    for (uint64_t j = 1; j < nodes; j++) {
        double below = 0.0, above = 2.0 * self; /* 1 - lambda, 1 + lambda */
        for (size_t k = 0; k < g->most; k++) {
            const uint64_t phase = row->phase(&g->desc, j, (uint64_t)peers[k]);
            const uint64_t twice = 2 * phase > nodes ? 2 * phase - nodes : nodes - 2 * phase;
            const double s = cg_sin_pi_(phase, nodes), c = cg_sin_pi_(twice, 2 * nodes);
            below += 2.0 * self * s * s;
            above += 2.0 * self * c * c;
        }
        if (below < least) least = below;
        if (above < least) least = above;
        sum += below / above;
    }
    *gap = least;
    *omega = (double)nodes / sum;
}
/* L = I - W times x, from differences, so that small eigenvalues keep their digits. */
static void cg_graph_laplace_(const cg_graph *g, const double *x, double *y) {
    for (int i = 0; i < g->desc.nodes; i++) {
        double sum = 0.0;
        for (uint64_t k = g->first[i]; k < g->first[i + 1]; k++)
            sum += cg_times64_((double)cg_graph_edge_weight_(g, i, g->peer[k], k - g->first[i]), x[i] - x[g->peer[k]]);
        y[i] = sum;
    }
}
/* A start that no symmetry of the graph knows, without mean. */
static void cg_graph_start_(double *x, size_t n) {
    double mean = 0.0;
    for (size_t i = 0; i < n; i++) {
        x[i] = (double)(cg_mix64_((i + 1) * CG_GOLDEN_) >> 11) / 9007199254740992.0 - 0.5;
        mean += x[i] / (double)n;
    }
    for (size_t i = 0; i < n; i++) x[i] -= mean;
}
/* The gap alone, by Lanczos on L across the constant vectors. Vectors are not made orthogonal again: copies of
   eigenvalues that have converged come up, which changes neither end of the spectrum. -1: not to 1e-6. */
static double cg_graph_lanczos_(const cg_graph *g, const cg_graph_plan_ *p) {
    const size_t n = (size_t)g->desc.nodes;
    double *q = p->v, *last = q + n, *next = last + n, *a = p->d, *b = p->e, beta = 0.0;
    size_t check = 32;
    cg_graph_start_(q, n);
    memset(last, 0, n * sizeof *last);
    beta = cg_sqrt_(cg_dot_(q, q, n));
    for (size_t i = 0; i < n; i++) q[i] /= beta;
    beta = 0.0;
    for (size_t k = 0; k < p->krylov; k++) {
        double mean = 0.0, *t;
        cg_graph_laplace_(g, q, next);
        for (size_t i = 0; i < n; i++) next[i] -= cg_times64_(beta, last[i]);
        a[k] = cg_dot_(next, q, n);
        for (size_t i = 0; i < n; i++) {
            next[i] -= cg_times64_(a[k], q[i]);
            mean += next[i];
        }
        mean /= (double)n;
        for (size_t i = 0; i < n; i++) next[i] -= mean;
        beta = b[k] = cg_sqrt_(cg_dot_(next, next, n));
        if (k + 1 == check || beta < 1e-13 || k + 1 == p->krylov) {
            const double low = cg_tri_extreme_(a, b, k + 1, 0), high = cg_tri_extreme_(a, b, k + 1, 1);
            const double gap = low < 2.0 - high ? low : 2.0 - high;
            const double error = cg_times64_(beta, cg_tri_last_(a, b, k + 1, low, p->z));
            const double other = cg_times64_(beta, cg_tri_last_(a, b, k + 1, high, p->z));
            /* the error of an eigenvalue is at most the residual; a hundredth more for the rounding of L */
            if (error <= 5e-7 * gap && (2.0 - high - other > gap || other <= 5e-7 * gap) && gap > 2e-10) return gap;
            if (beta < 1e-13) return gap > 2e-10 ? gap : -1.0;
            check += check / 4 + 16;
        }
        for (size_t i = 0; i < n; i++) next[i] /= beta;
        t = last, last = q, q = next, next = t;
    }
    return -1.0;
}
/* out = G x, for G of the manual: x on the diagonal between the factors (W - I) W^t of both sides, summed over t in the
   basis of eigenvectors, where the sum over t is a geometric one. */
static void cg_graph_noise_(const cg_graph_plan_ *p, size_t n, const double *x, double *out, double *row) {
    const double *v = p->v, *d = p->d;
    double *y = p->y;
    memset(y, 0, n * n * sizeof *y);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++) {
            const double f = cg_times64_(x[i], v[i * n + k]);
            cg_axpy_(f, v + i * n + k, y + k * n + k, n - k);
        }
    for (size_t k = 0; k < n; k++)
        for (size_t l = k; l < n; l++) {
            const int constant = l == p->constant || k == p->constant;
            y[k * n + l] *= constant ? 0.0 : (1.0 - d[k]) * (1.0 - d[l]) / (1.0 - cg_times64_(d[k], d[l]));
            y[l * n + k] = y[k * n + l];
        }
    for (size_t i = 0; i < n; i++) {
        memset(row, 0, n * sizeof *row);
        for (size_t k = 0; k < n; k++) cg_axpy_(v[i * n + k], y + k * n, row, n);
        out[i] = cg_dot_(row, v + i * n, n);
    }
}
/* 1 / the spectral radius of G, by Lanczos with all vectors kept orthogonal. */
static double cg_graph_dcd_(const cg_graph_plan_ *p, size_t n) {
    double *a = p->d + n, *b = p->e + n, *q = p->z, *row = q + p->krylov * n, *out = row + n, radius = 0.0;
    for (size_t i = 0; i < n; i++) q[i] = 1.0 / cg_sqrt_((double)n); /* the eigenvector, if all nodes see the same */
    for (size_t k = 0; k < p->krylov && k < n; k++) {
        double before = radius, beta;
        cg_graph_noise_(p, n, q + k * n, out, row);
        a[k] = cg_dot_(out, q + k * n, n);
        for (int twice = 0; twice < 2; twice++)
            for (size_t j = 0; j <= k; j++) {
                const double f = cg_dot_(out, q + j * n, n);
                cg_axpy_(-f, q + j * n, out, n);
            }
        beta = b[k] = cg_sqrt_(cg_dot_(out, out, n));
        radius = cg_tri_extreme_(a, b, k + 1, 1);
        if (beta <= 1e-9 * radius || (k && radius - before <= 1e-10 * radius) || k + 1 == p->krylov) break;
        if (k + 1 < n && k + 1 < p->krylov)
            for (size_t i = 0; i < n; i++) q[(k + 1) * n + i] = out[i] / beta;
    }
    return 1.0 / radius;
}
static void cg_graph_spectrum_listed_(cg_graph *g, cg_graph_plan_ *p) {
    const size_t n = (size_t)g->desc.nodes;
    double largest = 0.0, least = 1.0;
    g->omega = -1.0;
    if (n > CG_GRAPH_DENSE_) {
        g->gap = cg_graph_lanczos_(g, p);
        return;
    }
    memset(p->y, 0, n * n * sizeof *p->y);
    for (size_t i = 0; i < n; i++) {
        double own = 1.0;
        for (uint64_t k = g->first[i]; k < g->first[i + 1]; k++) {
            const double w = (double)cg_graph_edge_weight_(g, (int)i, g->peer[k], k - g->first[i]);
            p->y[i * n + (size_t)g->peer[k]] = w;
            own -= w;
        }
        p->y[i * n + i] = own;
    }
    cg_tridiagonal_(p->y, n, p->v, p->d, p->e, p->z);
    cg_tridiagonal_ql_(p->d, p->e, n, p->v);
    for (size_t i = 0; i < n; i++) /* eigenvectors become columns */
        for (size_t j = 0; j < i; j++) {
            const double t = p->v[i * n + j];
            p->v[i * n + j] = p->v[j * n + i];
            p->v[j * n + i] = t;
        }
    for (size_t k = 0; k < n; k++)
        if (p->d[k] > p->d[p->constant]) p->constant = k;
    for (size_t k = 0; k < n; k++) {
        if (k != p->constant && cg_abs64_(p->d[k]) > largest) largest = cg_abs64_(p->d[k]);
        if (p->d[k] < least) least = p->d[k];
    }
    g->gap = 1.0 - largest;
    g->omega = least <= -1.0 + 1e-12 ? 0.0 : cg_graph_dcd_(p, n);
    if (g->gap < 1e-12) g->gap = 0.0;
}

/* ---- public ---- */

CG_API_ size_t cg_graph_memory(const cg_graph_desc *desc) {
    cg_graph_plan_ plan;
    if (!desc || cg_graph_wrong_(desc)) return 0;
    cg_graph_plan_make_(&plan, desc, NULL);
    return cg_size_or_zero_(cg_add_sat_(plan.bytes, 64));
}
static cg_status cg_graph_make_(cg_graph *g, const cg_graph_desc *desc, void *mem, char *why, size_t cap) {
    const size_t nodes = (size_t)desc->nodes;
    cg_graph_plan_ p;
    size_t missing;
    cg_status s;
    cg_graph_plan_make_(&p, desc, (uint8_t *)mem + (64 - ((uintptr_t)mem & 63)) % 64);
    g->desc = *desc;
    g->desc.edges = NULL;
    g->desc.weights = NULL;
    g->mark = cg_mix64_(((uint64_t)desc->kind << 32 | (uint64_t)nodes) + CG_GOLDEN_);
    g->mark = cg_mix64_(g->mark ^ (uint64_t)(desc->rows + 2 * (desc->directed != 0)) * CG_GOLDEN_);
    g->gap = g->omega = -1.0;
    if (!p.first) {
        g->most = cg_graph_named_list_(desc, 0, p.list);
        if (nodes < 2) g->gap = 1.0, g->omega = 1e300;
        else if (cg_graph_rows_[desc->kind].spectrum) cg_graph_rows_[desc->kind].spectrum(desc, &g->gap, &g->omega);
        else cg_graph_spectrum_group_(g, p.list, &g->gap, &g->omega);
        return CG_OK;
    }
    s = desc->weights ? cg_graph_read_weights_(desc, &p, why, cap) : cg_graph_read_edges_(desc, &p, why, cap);
    if (s != CG_OK) return s;
    g->first = p.first, g->peer = p.peer, g->first_back = p.first_back, g->peer_back = p.peer_back;
    g->weight = p.weight;
    for (size_t i = 0; i < nodes; i++) {
        const uint64_t out = p.first[i + 1] - p.first[i], in = p.first_back[i + 1] - p.first_back[i];
        if (out > g->most) g->most = (size_t)out;
        if (in > g->most) g->most = (size_t)in;
        for (uint64_t k = p.first[i]; k < p.first[i + 1]; k++)
            g->mark = cg_mix64_(g->mark ^ ((uint64_t)p.peer[k] << 32 | (p.weight ? cg_as_bits_(p.weight[k]) : 0u)));
        g->mark = cg_mix64_(g->mark + out);
    }
    for (int back = 0; back < 2; back++)
        if (cg_graph_reach_(nodes, back ? p.first_back : p.first, back ? p.peer_back : p.peer, p.list, p.at, &missing) <
            nodes)
            return cg_graph_say_(
                why, cap, "the graph falls apart: no way leads between node 0 and node ", missing, "", 0, NULL);
    if (nodes < 2) g->gap = 1.0, g->omega = 1e300;
    else if (!desc->directed) cg_graph_spectrum_listed_(g, &p);
    return CG_OK;
}
CG_API_ cg_status cg_graph_init(
    cg_graph *graph, const cg_graph_desc *desc, void *mem, size_t bytes, char *why, size_t cap) {
    cg_fenv_ env;
    cg_status s;
    if (why && cap) *why = 0;
    if (!why) cap = 0;
    if (graph) memset(graph, 0, sizeof *graph);
    if (!graph || !desc) return cg_graph_say_(why, cap, "graph or desc is NULL", 0, NULL, 0, NULL);
    if (cg_graph_wrong_(desc)) return cg_graph_say_(why, cap, cg_graph_wrong_(desc), 0, NULL, 0, NULL);
    if (!mem || !cg_graph_memory(desc) || bytes < cg_graph_memory(desc)) {
        cg_graph_say_(why, cap, "mem is too small: cg_graph_memory gives ", cg_graph_memory(desc), " bytes", 0, NULL);
        return CG_E_MEMORY;
    }
    env = cg_fenv_enter_();
    s = cg_graph_make_(graph, desc, mem, why, cap);
    cg_fenv_leave_(env);
    if (s != CG_OK) memset(graph, 0, sizeof *graph);
    return s;
}
CG_API_ double cg_graph_gap(const cg_graph *graph) { return graph && graph->desc.nodes ? graph->gap : -1.0; }
CG_API_ double cg_graph_omega(const cg_graph *graph) { return graph && graph->desc.nodes ? graph->omega : -1.0; }
CG_API_ float cg_graph_weight(const cg_graph *graph, int i, int j, uint64_t step) {
    const cg_graph_desc *d = graph ? &graph->desc : NULL;
    double own = 1.0;
    if (!d || i < 0 || j < 0 || i >= d->nodes || j >= d->nodes) return 0.0f;
    if (cg_graph_has_(graph, CG_GRAPH_CHANGES_)) {
        if (d->nodes == 1) return 1.0f;
        return j == i || j == cg_graph_around_(d, i, -cg_graph_hop_(graph, step)) ? 0.5f : 0.0f;
    }
    if (d->directed && i == j) return 1.0f / (float)(1 + cg_graph_degree_(graph, i));
    if (graph->first) {
        for (uint64_t k = graph->first_back[i]; k < graph->first_back[i + 1]; k++) {
            const float w = cg_graph_edge_weight_(graph, i, graph->peer_back[k], k - graph->first_back[i]);
            if (graph->peer_back[k] == j) return w;
            own -= (double)w;
        }
    } else {
        const cg_graph_row_ *row = &cg_graph_rows_[d->kind];
        for (size_t k = 0; i != j && k < row->count(d); k++)
            if (row->peer(d, i, (int)k) == j) return cg_graph_edge_weight_(graph, i, j, 0);
        if (cg_graph_has_(graph, CG_GRAPH_CENTRED_))
            own -= (double)cg_graph_edge_weight_(graph, 0, 1, 0) * (double)cg_graph_degree_(graph, i);
        else own = 1.0 / (double)(1 + graph->most);
    }
    return i == j ? (float)own : 0.0f;
}
