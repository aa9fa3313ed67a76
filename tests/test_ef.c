/* Every kind of memory against plain arrays that follow its definition, step by step: in pieces (compress, commit)
   and through cg_ef_exchange. Trusted are cg_compress, cg_decode and cg_exchange of one vector; what is tested is
   what is put in, what is remembered, and what comes out. So D is always what the packets say.

   The plain side computes in double. Where the manual's formula, read from left to right, is the order of the
   library's float arithmetic, every operation here is rounded to float as well and bits must be equal; otherwise
   nothing is rounded here, and every number carries a bound of how far m terms k*t, multiplied and added in any
   order in float, can be from it: m * 2^-24 * sum |k t|, and what the terms were off by already. */
#include "examples/transport_threads.h"
#include "greatest.h"
#include "tier.h"
#define COMPGRAD_IMPLEMENTATION
#include "compgrad_ef.h"
#include <math.h>
#include <stdio.h>

enum { MOST = 8, N_MOST = 70000, ROOM = 64 };
static const int SIZES[] = { 1, 2, 3, 5, 8 };
static int quick;      /* not CG_TEST=long */
static char note[300]; /* what went wrong */

#define TRY(call)             \
  do {                        \
    if (!(call)) FAILm(note); \
  } while (0)
/* so that one run shows all of them */
#define COUNT(bad, call)    \
  do {                      \
    if (!(call)) {          \
      printf("%s\n", note); \
      ++bad;                \
    }                       \
  } while (0)
#define SAY(...) (snprintf(k->note, sizeof k->note, __VA_ARGS__), 0)

/* ---- gradients ---- */

static uint32_t hash(uint32_t a, uint32_t b, uint32_t c) {
    uint32_t h = a * 2654435761u ^ (b + 1) * 2246822519u ^ (c + 1) * 3266489917u;
    h = (h ^ h >> 15) * 2246822519u;
    h = (h ^ h >> 13) * 3266489917u;
    return h ^ h >> 16;
}
/* Every worker has a mean of its own. Dyadic: multiples of 1/256 below 16, of which 200 add exactly. Faint: now
   and then a power of two from 2^-90 to 2^-104, or one of its neighbours, that halves then take to just below, to,
   or just above 2^-100. */
enum { DYADIC = 1, FAINT = 2 };
static float gradient(int dyadic, uint32_t rank, uint32_t step, uint32_t i) {
    const uint32_t h = hash(i, step, rank);
    const int32_t own = (int32_t)(hash(i, 999, rank) & 0x3ff) - 512;
    static const float by[] = { 0.99999994f, 1, 1.0000001f };
    if (dyadic == FAINT)
        return step % 13 ? 0.0f : (float)ldexp(h & 1 ? -1 : 1, -90 - (int)(h >> 8) % 15) * by[(h >> 4) % 3];
    if (h % 37 == 0) return 0.0f;
    if (dyadic) return (float)((int32_t)(h >> 8 & 0xfff) - 2048 + own) / 256.0f;
    else {
        const double u = (double)(int32_t)h / 2147483648.0;
        return (float)(u * u * u * (double)(1u << i % 7) + (double)own / 3000.0);
    }
}

/* ---- operators by name ---- */

static int has(const char *op, const char *word) { return strstr(op, word) != NULL; }
static int selects(const char *op) {
    return has(op, "topk") || has(op, "randk") || has(op, "dgc") || has(op, "chunked") || has(op, "adacomp") ||
        has(op, "variance") || has(op, "threshold") || has(op, "stc");
}

/* ---- the plain side ---- */

typedef struct setup { /* a case: desc in words */
    const char *op;
    uint32_t kind;
    float decay, alpha, momentum, rate;
    int nesterov, bytes, dyadic, loose; /* loose: not bit for bit */
    uint64_t reset;
    size_t n;
    /* part: not what was sent counts, but 1: half the values of it, 2: stripes of it, 3: sparse stripes */
    int unaligned, part;
    int jumps; /* gradients grow and shrink suddenly, and are nothing at times */
} setup;

typedef struct plain {
    size_t n;
    int exact;
    double k_decay, k_alpha, k_momentum, scale, a; /* a: what the gradient is multiplied by */
    double *m[3], *b[3];                           /* as cg_ef_read numbers them, and bounds */
    double *g, *p, *pb;
    double error_sent, moved[10]; /* LAQ */
    uint64_t silent, steps;
} plain;

typedef struct term {
    double k, v, b;
} term;
static inline term times(double k, double v, double b) {
    term t;
    t.k = k;
    t.v = v;
    t.b = b;
    return t;
}
#define NONE times(0, 0, 0)
#define FAINTEST ldexp(1.0, -100)
/* Memory: times something else than 1 it counts as 0 below 2^-100. */
static inline term kept(double k, double v, double b) {
    return times(k, k != 1 && fabs((double)(float)(k * v)) < FAINTEST ? 0 : v, b);
}
static inline double rounded(const plain *w, double v) { return w->exact ? (double)(float)v : v; }
/* sum of k v, from left to right. Each k may be a product or 1 - x of two floats: one rounding more; 3e-45:
   denormals. */
static inline void lin(const plain *w, double *v, double *b, int m, term s, term t, term u) {
    const double x = rounded(w, s.k * s.v), y = rounded(w, t.k * t.v), z = rounded(w, u.k * u.v);
    double sum = x;
    if (m > 1) sum = rounded(w, sum + y);
    if (m > 2) sum = rounded(w, sum + z);
    *v = sum;
    if (w->exact) {
        *b = 0;
        return;
    }
    s.b *= fabs(s.k);
    t.b *= fabs(t.k);
    u.b *= fabs(u.k);
    *b = s.b + t.b + u.b + (m + 1) / 16777216.0 * (fabs(x) + fabs(y) + fabs(z) + s.b + t.b + u.b) + 3e-45;
}
#define LIN1(V, B, A) lin(w, &(V), &(B), 1, A, NONE, NONE)
#define LIN2(V, B, A, C) lin(w, &(V), &(B), 2, A, C, NONE)
#define LIN3(V, B, A, C, D) lin(w, &(V), &(B), 3, A, C, D)

static double less_than_one(const plain *w, double k) { return rounded(w, 1.0 - k); }

/* p, and memory as it is while the packet is under way. s: what memory is kept times (expanding operators). The
   order of additions matters only to bits: where the manual leaves it open (1-bit Adam, Nesterov), it is the
   library's, so that packets can be compared. */
static void plain_put(plain *w, const setup *c, const float *grad, const float *aux) {
    const double s = w->scale;
    for (size_t i = 0; i < w->n; i++) {
        double *e = &w->m[0][i], *eb = &w->b[0][i], *u = &w->m[1][i], *ub = &w->b[1][i], *p = &w->p[i], *pb = &w->pb[i];
        const double m = w->k_momentum, rest = less_than_one(w, m);
        const term g = times(w->a, (double)grad[i], 0);
        w->g[i] = (double)grad[i];
        switch (c->kind) {
        case CG_EF_CLASSIC: LIN2(*p, *pb, g, kept(w->k_decay, *e, *eb)); break;
        case CG_EF_LOCO:
        case CG_EF_SCALECOM: LIN2(*p, *pb, g, times(1, *e, *eb)); break;
        case CG_EF_ECQ: LIN2(*p, *pb, g, kept(w->k_alpha, *e, *eb)); break;
        case CG_EF_MOMENTUM:
            if (c->nesterov) LIN2(*u, *ub, kept(m, *u, *ub), times(rounded(w, m * g.k), g.v, 0));
            else LIN2(*u, *ub, kept(m, *u, *ub), g);
            if (c->nesterov) LIN3(*p, *pb, times(1, *e, *eb), times(1, *u, *ub), g);
            else LIN2(*p, *pb, times(1, *e, *eb), times(1, *u, *ub));
            break;
        case CG_EF_SIGNUM:
            LIN2(*e, *eb, kept(m, *e, *eb), times(rounded(w, g.k * rest), g.v, 0));
            *p = *e;
            *pb = *eb;
            break;
        case CG_EF_VARIANCE:
            LIN2(*p, *pb, times(1, *e, *eb), g);
            LIN2(*u, *ub, times(1, *u, *ub), times(rounded(w, g.k * g.k), (double)aux[i], 0));
            break;
        case CG_EF_EF21:
        case CG_EF_DIANA:
        case CG_EF_LAQ:
            if (c->kind == CG_EF_EF21 && m > 0) {
                if (w->steps) LIN2(*u, *ub, kept(m, *u, *ub), times(rounded(w, g.k * rest), g.v, 0));
                else LIN1(*u, *ub, g); /* Fatkhullin 23: v_0 is the first gradient */
                LIN2(*p, *pb, times(s, *u, *ub), times(-s, *e, *eb));
            } else LIN2(*p, *pb, times(rounded(w, s * g.k), g.v, 0), times(-s, *e, *eb));
            break;
        default: /* 1-bit Adam */
            LIN3(*p, *pb, times(1, *e, *eb), times(rounded(w, g.k * rest), g.v, 0),
                kept(rounded(w, s * m), w->m[2][i], w->b[2][i]));
        }
    }
}
/* In bytes: X, what compress leaves, is rounded by 1/250 of the largest of 64 neighbours, and so is what commit
   leaves; twice where the values of a sparse packet come in two batches. */
static void plain_bytes(plain *w, const setup *c, const float *d) {
    const double k = c->kind == CG_EF_LOCO ? 1 - w->k_decay : c->kind == CG_EF_SCALECOM ? w->k_decay : 1;
    for (size_t i = 0; i < w->n; i += 64) {
        double before = 0, after = 0;
        for (size_t j = i; j < i + 64 && j < w->n; j++) {
            before = fmax(before, fabs(w->m[0][j] + k * w->scale * (double)d[j]) + w->b[0][j]);
            after = fmax(after, fabs(w->m[0][j]) + w->b[0][j]);
        }
        for (size_t j = i; j < i + 64 && j < w->n; j++)
            w->b[0][j] += before / 250 + (after + before / 250) / 250 + (selects(c->op) ? before / 250 : 0);
    }
}
/* D counted; index[i] = 0 where the packet has a value. result: what the optimizer gets, where the kind makes it. */
static void plain_take(
    plain *w, const setup *c, const float *d, const float *index, const float *mean, double *result, double *result_b) {
    const double s = w->scale;
    for (size_t i = 0; i < w->n; i++) {
        double *e = &w->m[0][i], *eb = &w->b[0][i], *u = &w->m[1][i], *ub = &w->b[1][i], *h = &w->m[2][i],
               *hb = &w->b[2][i];
        const double p = w->p[i], pb = w->pb[i], D = (double)d[i], M = mean ? (double)mean[i] : 0;
        const double k = c->kind == CG_EF_LOCO ? less_than_one(w, w->k_decay) : w->k_decay;
        switch (c->kind) {
        case CG_EF_CLASSIC:
        case CG_EF_MOMENTUM:
        case CG_EF_VARIANCE:
        case CG_EF_ONEBIT_ADAM: LIN2(*e, *eb, times(1, p, pb), times(-s, D, 0)); break;
        case CG_EF_LOCO:
        case CG_EF_SCALECOM:
            LIN3(*e, *eb, times(1, *e, *eb), times(rounded(w, k * w->a), w->g[i], 0), times(-rounded(w, k * s), D, 0));
            break;
        case CG_EF_ECQ: LIN3(*e, *eb, kept(w->k_decay, *e, *eb), times(w->a, w->g[i], 0), times(-s, D, 0)); break;
        case CG_EF_EF21:
        case CG_EF_LAQ: LIN2(*e, *eb, times(1, *e, *eb), times(1, D, 0)); break;
        case CG_EF_DIANA: LIN2(*e, *eb, times(1, *e, *eb), times(w->k_alpha, D, 0)); break;
        default: break;
        }
        if (c->kind == CG_EF_MOMENTUM && index[i] == 0.0f) *u = *ub = 0;
        if (c->kind == CG_EF_VARIANCE) {
            if (index[i] == 0.0f) *u = *ub = 0;
            else LIN1(*u, *ub, kept(w->k_decay, *u, *ub));
        }
        result[i] = M;
        result_b[i] = 0;
        if (c->kind == CG_EF_EF21 || c->kind == CG_EF_LAQ || c->kind == CG_EF_DIANA)
            LIN2(result[i], result_b[i], times(1, *h, *hb), times(1, M, 0));
        if (c->kind == CG_EF_EF21 || c->kind == CG_EF_LAQ) {
            *h = result[i];
            *hb = result_b[i];
        }
        if (c->kind == CG_EF_DIANA) LIN2(*h, *hb, times(1, *h, *hb), times(w->k_alpha, M, 0));
        if (c->kind == CG_EF_ONEBIT_ADAM) {
            *h = M;
            *hb = 0;
        }
    }
    if (c->bytes) plain_bytes(w, c, d);
    w->steps++;
    if (c->reset && w->steps % c->reset == 0) {
        memset(w->m[0], 0, w->n * sizeof(double));
        memset(w->b[0], 0, w->n * sizeof(double));
    }
}

/* ---- a worker: the library's memory, and the plain one ---- */

typedef struct rank {
    cg_ef ef;
    cg_ef_desc desc;
    plain w, t; /* t: from what the library has in memory, what it should put in next */
    float *grad, *copy, *aux, *x, *d, *index, *mean, *seen;
    double *result, *result_b;
    uint8_t *packet, *want, *used;
    void *scratch, *memory;
    size_t cap, len, want_len, used_len, scratch_bytes;
    float *carry, *warm; /* of the plain side's exchange */
    double score;
    char note[300];
} rank;

static void *owned[4096]; /* freed when the next case begins */
static size_t owned_count;
static pthread_mutex_t owning = PTHREAD_MUTEX_INITIALIZER;
static void *take(size_t bytes) {
    void *p = calloc(1, bytes ? bytes : 1);
    pthread_mutex_lock(&owning);
    if (!p || owned_count == sizeof owned / sizeof owned[0]) abort();
    owned[owned_count++] = p;
    pthread_mutex_unlock(&owning);
    return p;
}
static void give_back(void) {
    while (owned_count) free(owned[--owned_count]);
}

/* w of the operators used here that expand, as compgrad.h's table states it. Those of 3 bits and more to the
   largest of a bucket do not. */
static double omega(const setup *c) {
    const double n = (double)c->n;
    double a = 0, b = 0;
    if (sscanf(c->op, "qsgd:%lf", &a) == 1) return fmin(n / (a * a), sqrt(n) / a);
    if (c->kind == CG_EF_DIANA && !has(c->op, "nearest") && sscanf(c->op, "absmax:%lf:%lf", &a, &b) == 2)
        return fmin(b, n) / (4 * pow(pow(2, a - 1) - 1, 2));
    if (has(c->op, "terngrad")) return (sqrt(n) - 1) / 2;
    if (sscanf(c->op, "randk:%lf", &a) == 1 && !has(c->op, "unscaled")) return n / (double)(size_t)(a * n + 0.5) - 1;
    return 0;
}
static int keeps_received(uint32_t kind) {
    return kind == CG_EF_EF21 || kind == CG_EF_DIANA || kind == CG_EF_LAQ || kind == CG_EF_ONEBIT_ADAM;
}
static int has_vector(const setup *c, int which) {
    if (which == 0) return 1;
    if (which == 1)
        return c->kind == CG_EF_MOMENTUM || c->kind == CG_EF_VARIANCE || (c->kind == CG_EF_EF21 && c->momentum > 0);
    return keeps_received(c->kind);
}

static int is_difference(uint32_t kind) { return kind == CG_EF_EF21 || kind == CG_EF_DIANA || kind == CG_EF_LAQ; }
static void plain_open(plain *w, const setup *c, int exact) {
    static const double decays[] = { 1, .8f, .1f, .9f, 0, 0, .999f, 0, 0, 0, 0 };
    const double o = omega(c);
    w->n = c->n;
    w->exact = exact;
    w->k_decay = c->decay > 0 ? (double)c->decay : decays[c->kind];
    w->k_alpha = c->alpha > 0 ? (double)c->alpha : c->kind == CG_EF_ECQ ? (double).2f : (double)(float)(1 / (1 + o));
    w->k_momentum = (double)c->momentum;
    w->scale = o > 1 && !has(c->op, "randk") && c->kind != CG_EF_DIANA && c->kind != CG_EF_SIGNUM
        ? (double)(float)(1 / (1 + o))
        : 1;
    w->a = (double)(float)((c->rate > 0 ? (double)c->rate : 1) * (is_difference(c->kind) ? 1 : w->scale));
    for (int v = 0; v < 3; v++) {
        w->m[v] = (double *)take(c->n * sizeof(double));
        w->b[v] = (double *)take(c->n * sizeof(double));
    }
    w->g = (double *)take(c->n * sizeof(double));
    w->p = (double *)take(c->n * sizeof(double));
    w->pb = (double *)take(c->n * sizeof(double));
}
static float *floats(const setup *c, size_t n) {
    return (float *)(void *)((char *)take(n * sizeof(float) + 8) + (c->unaligned ? 1 + 2 * (n % 2) : 0));
}
static int rank_open(rank *k, const setup *c, int size) {
    const size_t n = c->n;
    cg_op op;
    memset(k, 0, sizeof *k);
    plain_open(&k->w, c, !c->loose);
    plain_open(&k->t, c, 1);
    if (cg_op_parse(&op, c->op) != CG_OK) return SAY("%s does not parse", c->op);
    k->desc.op = op;
    k->desc.n = n;
    k->desc.kind = c->kind;
    k->desc.workers = size;
    k->desc.decay = c->decay;
    k->desc.alpha = c->alpha;
    k->desc.momentum = c->momentum;
    k->desc.rate = c->rate;
    k->desc.nesterov = c->nesterov;
    k->desc.bytes = c->bytes;
    k->desc.reset = c->reset;
    k->desc.finite = (int)(n % 3 == 1);
    k->grad = floats(c, n);
    k->copy = (float *)take(n * sizeof(float));
    k->aux = (float *)take(n * sizeof(float));
    k->x = (float *)take(n * sizeof(float));
    k->d = (float *)take(n * sizeof(float));
    k->index = (float *)take(n * sizeof(float));
    k->mean = floats(c, n);
    k->seen = (float *)take(n * sizeof(float));
    k->result = (double *)take(n * sizeof(double));
    k->result_b = (double *)take(n * sizeof(double));
    return 1;
}
static int rank_start(rank *k, const setup *c) {
    const size_t n = c->n;
    const size_t bytes = cg_ef_memory(&k->desc);
    cg_op dense = cg_dense();
    cg_status s;
    k->memory = (char *)take(bytes + 16) + (c->unaligned ? 3 : 0);
    memset(k->memory, 0xa5, bytes);
    s = cg_ef_init(&k->ef, &k->desc, k->memory, bytes);
    if (s != CG_OK) return SAY("%s: init says %s", c->op, cg_status_str(s));
    k->cap = cg_ef_bound(&k->desc);
    k->packet = (uint8_t *)take(k->cap);
    k->want = (uint8_t *)take(k->cap + ROOM);
    k->used = (uint8_t *)take(2 * cg_bound(&dense, n) + (n / 64 + 9) * 2 * CG_HEADER_BYTES);
    k->scratch_bytes = cg_scratch(&k->desc.op, n);
    k->scratch = take(k->scratch_bytes);
    return 1;
}
static void load(float *to, const float *from, size_t n) { memcpy(to, (const void *)from, n * sizeof(float)); }

/* The operator as it is used under memory, with room for what it wants to know. */
static cg_op as_used(const rank *k) {
    cg_op op = k->desc.op;
    if (op.sample.id && k->desc.kind != CG_EF_DIANA && k->desc.kind != CG_EF_SIGNUM)
        op.sample.flags |= CG_FLAG_UNSCALED;
    return op;
}
static int same_memory(rank *k, const setup *c, const char *when) {
    const float *residual = cg_ef_residual(&k->ef);
    for (int v = 0; v < 3; v++) {
        if (!has_vector(c, v)) {
            if (cg_ef_read(&k->ef, v, k->seen, c->n) != CG_E_UNSUPPORTED) return SAY("there is no vector %d", v);
            continue;
        }
        if (cg_ef_read(&k->ef, v, k->seen, c->n) != CG_OK) return SAY("vector %d cannot be read", v);
        if (v == 0 && (residual != NULL) == c->bytes) return SAY("a residual in bytes");
        if (v == 0 && residual && memcmp(residual, k->seen, 4 * c->n)) return SAY("the residual is not what is read");
        for (size_t i = 0; i < c->n; i++)
            if (!(fabs((double)k->seen[i] - k->w.m[v][i]) <= k->w.b[v][i]))
                return SAY("%s: %s: vector %d[%zu] of %zu is %.9g, plain %.9g +- %.3g, step %d", c->op, when, v, i,
                    c->n, (double)k->seen[i], k->w.m[v][i], k->w.b[v][i], (int)k->w.steps);
    }
    return 1;
}
/* From the library's own memory: the vector that it should compress now, in k->x, and what the operator is told
   beside. */
static int expect(rank *k, const setup *c, cg_extra *side) {
    for (int v = 0; v < 3; v++) {
        if (!has_vector(c, v)) continue;
        if (cg_ef_read(&k->ef, v, k->seen, c->n) != CG_OK) return SAY("vector %d cannot be read", v);
        for (size_t i = 0; i < c->n; i++) k->t.m[v][i] = (double)k->seen[i];
    }
    if (c->bytes) { /* roundings would add up: from step to step */
        memcpy(k->w.m[0], k->t.m[0], c->n * sizeof(double));
        memset(k->w.b[0], 0, c->n * sizeof(double));
    }
    k->t.steps = k->w.steps;
    plain_put(&k->t, c, k->copy, k->aux);
    memset(side, 0, sizeof *side);
    for (size_t i = 0; i < c->n; i++) {
        k->x[i] = (float)k->t.p[i];
        k->seen[i] = c->kind == CG_EF_VARIANCE ? (float)k->t.m[1][i] : k->copy[i];
    }
    if (c->kind == CG_EF_VARIANCE || has(c->op, "adacomp")) side->aux = k->seen;
    return 1;
}
static void draw(rank *k, const setup *c, uint32_t r, uint32_t step) {
    for (size_t i = 0; i < c->n; i++) {
        static const float by[] = { 1, 1, 1024, 1024, 1.0f / 256, 0, 1, 1, 0, 0, 64 };
        const float g = gradient(c->dyadic, r, step, (uint32_t)i) * (c->jumps ? by[step % 11] : 1.0f);
        k->copy[i] = g;
        k->aux[i] = c->dyadic == FAINT ? fabsf(g)
            : c->dyadic                ? (float)(hash((uint32_t)i, step, r + 77) & 0xff) / 16.0f
                                       : g * g * (float)(hash((uint32_t)i, step, r + 77) & 0xff) / 256.0f;
    }
    load(k->grad, k->copy, c->n);
}
static int sums_are_right(rank *k, const setup *c) {
    const cg_ef_stats st = cg_ef_stats_of(&k->ef);
    double put = 0, sent = 0, off = 0;
    if ((double)cg_ef_scale(&k->ef) != k->w.scale)
        return SAY("%s: scale is %.9g, plain %.9g", c->op, (double)cg_ef_scale(&k->ef), k->w.scale);
    for (size_t i = 0; i < c->n; i++) {
        put += k->w.p[i] * k->w.p[i];
        off += 2 * fabs(k->w.p[i]) * k->w.pb[i] + k->w.pb[i] * k->w.pb[i];
        sent += (double)k->d[i] * (double)k->d[i];
    }
    /* n additions in double each */
    put /= k->w.scale * k->w.scale;
    off = off / (k->w.scale * k->w.scale) + put * (double)(c->n + 8) * ldexp(1.0, -52);
    if (!(fabs(st.put - put) <= off)) return SAY("%s: put is %.17g, plain %.17g", c->op, st.put, put);
    if (!(fabs(st.sent - sent) <= sent * (double)(c->n + 8) * ldexp(1.0, -52)))
        return SAY("%s: sent is %.17g, plain %.17g", c->op, st.sent, sent);
    if (!(fabs((double)st.gain - (put > 0 ? sent / put : 0)) <=
            (ldexp(1.0, -23) + (put > 0 ? 2 * off / put : 0)) * (double)st.gain))
        return SAY("%s: gain is %g", c->op, (double)st.gain);
    return 1;
}

/* ---- in pieces ---- */

/* What counted is less than what was sent: half of the values, or the packet in stripes. */
static int make_used(rank *k, const setup *c, const cg_tag *tag) {
    const cg_op half = cg_topk(0.02f), stripe = c->part == 3 ? cg_threshold(1e-30f) : cg_dense();
    size_t len = 0;
    static float part[N_MOST];
    static uint8_t scratch[32 * N_MOST];
    memcpy(k->used, k->packet, k->len);
    k->used_len = k->len;
    if (c->part == 1) {
        for (size_t i = 0; i < c->n; i++) part[i] = hash((uint32_t)i, (uint32_t)tag->step, 5) % 2 ? k->d[i] : 0.0f;
        if (cg_compress(
                &half, tag, part, c->n, k->used, cg_bound(&half, c->n), &k->used_len, scratch, sizeof scratch) != CG_OK)
            return SAY("half");
        return cg_decompress(k->used, k->used_len, k->d, c->n) == CG_OK;
    }
    /* stripes of 64 j values, the last one shorter */
    for (size_t first = 0, many = 0; c->part >= 2 && first < c->n; first += many) {
        many = 64 * (1 + hash((uint32_t)first, (uint32_t)tag->step, 6) % 5);
        if (many > c->n - first) many = c->n - first;
        if (first == 0) k->used_len = 0;
        if (cg_compress(&stripe, tag, k->d + first, many, k->used + k->used_len, cg_bound(&stripe, many), &len, scratch,
                sizeof scratch) != CG_OK)
            return SAY("stripes");
        k->used_len += len;
    }
    return 1;
}
static void mark(rank *k, const setup *c) { /* where what counted has values */
    for (size_t i = 0; i < c->n; i++) k->index[i] = 1.0f;
    if (c->part == 2 || !(selects(c->op) || c->part)) return;
    for (size_t at = 0, first = 0; at < k->used_len;) {
        cg_info info;
        if (cg_inspect(k->used + at, k->used_len - at, &info) != CG_OK) abort();
        if (cg_clear(k->used + at, info.packet_bytes, k->index + first, (size_t)info.n) != CG_OK) abort();
        at += info.packet_bytes;
        first += (size_t)info.n;
    }
}
static int piece(rank *k, const setup *c, uint32_t r, uint32_t step) {
    cg_tag tag = { 42, step, 3, r };
    const cg_op op = as_used(k), told = cg_ef_op(&k->ef, &tag);
    cg_extra side, *given = NULL, variance = CG_ZERO;
    cg_status s;
    draw(k, c, r, step);
    if (!expect(k, c, &side)) return 0;
    plain_put(&k->w, c, k->copy, k->aux);
    s = cg_compress_with(&op, &tag, &side, k->x, c->n, k->want, k->cap, &k->want_len, k->scratch, k->scratch_bytes);
    if (s != CG_OK) return SAY("%s: the plain side's compress says %s", c->op, cg_status_str(s));
    if (memcmp(&op, &told, sizeof op)) return SAY("%s: cg_ef_op", c->op);
    variance.aux = k->aux;
    if (c->kind == CG_EF_VARIANCE) given = &variance;
    s = given ? cg_ef_compress_with(&k->ef, &tag, given, k->grad, k->packet, k->cap, &k->len)
              : cg_ef_compress(&k->ef, &tag, k->grad, k->packet, k->cap, &k->len);
    if (s != CG_OK) return SAY("%s: compress says %s", c->op, cg_status_str(s));
    if (memcmp(k->grad, k->copy, 4 * c->n)) return SAY("%s: compress wrote to the gradient", c->op);
    if (k->len != k->want_len || memcmp(k->packet, k->want, k->len))
        return SAY("%s, step %u: another packet than that of the plain p (%zu and %zu bytes)", c->op, step, k->len,
            k->want_len);
    if (cg_decompress(k->packet, k->len, k->d, c->n) != CG_OK) return SAY("%s: does not decode", c->op);
    return make_used(k, c, &tag);
}
static int piece_done(rank *k, const setup *c, const float *mean) {
    cg_status s;
    load(k->mean, mean, c->n);
    mark(k, c);
    plain_take(&k->w, c, k->d, k->index, mean, k->result, k->result_b);
    s = cg_ef_commit(&k->ef, k->used, k->used_len, keeps_received(c->kind) ? k->mean : NULL);
    if (s != CG_OK) return SAY("%s: commit says %s", c->op, cg_status_str(s));
    if (!sums_are_right(k, c) || !same_memory(k, c, "after")) return 0;
    if (!keeps_received(c->kind)) return 1;
    load(k->seen, k->mean, c->n);
    for (size_t i = 0; i < c->n; i++)
        if (!(fabs((double)k->seen[i] - k->result[i]) <= k->result_b[i]))
            return SAY("%s: result[%zu] is %.9g, plain %.9g", c->op, i, (double)k->seen[i], k->result[i]);
    return 1;
}
static rank *ranks; /* MOST of them */
static int failed(const rank *k, const setup *c, int size) {
    snprintf(
        note, sizeof note, "kind %d, %d of %d, n %zu: %.230s", (int)c->kind, (int)(k - ranks), size, c->n, k->note);
    return 0;
}
static int pieces(const setup *c, int size, uint32_t steps) {
    static float mean[N_MOST];
    give_back();
    for (int r = 0; r < size; r++)
        if (!rank_open(&ranks[r], c, size) || !rank_start(&ranks[r], c)) return failed(&ranks[r], c, size);
    for (uint32_t step = 0; step < steps; step++) {
        for (int r = 0; r < size; r++)
            if (!piece(&ranks[r], c, (uint32_t)r, step)) return failed(&ranks[r], c, size);
        for (size_t i = 0; i < c->n; i++) {
            double sum = 0;
            for (int r = 0; r < size; r++) sum += (double)ranks[r].d[i];
            mean[i] = (float)(sum / size);
        }
        for (int r = 0; r < size; r++)
            if (!piece_done(&ranks[r], c, mean)) return failed(&ranks[r], c, size);
    }
    return 1;
}

/* ---- through cg_ef_exchange ---- */

typedef struct road {
    uint32_t route, fold;
    const char *back;
    int carry, leader, which;
} road;
typedef struct job {
    const setup *c;
    const road *road;
    int size;
    uint32_t steps;
} job;

static float plain_score(rank *k, const setup *c) { /* VAR: a running mean of |g| */
    double squares = 0;
    for (size_t i = 0; i < c->n; i++) squares += (double)k->copy[i] * (double)k->copy[i];
    k->score = k->score > 0 ? 0.9 * k->score + 0.1 * sqrt(squares) : sqrt(squares);
    return (float)k->score;
}
static int cross(rank *k, const job *j, const cg_transport *t, uint32_t step) {
    const setup *c = j->c;
    const uint32_t r = (uint32_t)t->rank;
    cg_exchange_desc d = CG_ZERO, plain_d;
    cg_op back;
    cg_extra side, variance = CG_ZERO;
    cg_report report;
    cg_status s;
    size_t bytes;
    void *mem;
    d.tag.seed = 42;
    d.tag.step = step;
    d.route = j->road->route;
    d.fold = j->road->fold;
    d.leader = j->road->leader > j->size ? 0 : j->road->leader;
    if (j->road->back) {
        if (cg_op_parse(&back, j->road->back) != CG_OK) return SAY("%s does not parse", j->road->back);
        d.back = &back;
    }
    draw(k, c, r, step);
    if (!expect(k, c, &side)) return 0;
    plain_put(&k->w, c, k->copy, k->aux);
    plain_d = d;
    plain_d.op = as_used(k);
    if (d.leader == CG_LEADER_BY_SCORE) plain_d.score = plain_score(k, c);
    plain_d.side = &side;
    plain_d.warm = k->warm;
    plain_d.carry = k->carry;
    bytes = cg_exchange_memory(&plain_d, t, c->n);
    mem = malloc(bytes ? bytes : 1);
    s = cg_exchange(&plain_d, t, k->x, c->n, mem, bytes, &report);
    if (s == CG_OK) {
        memcpy(k->used, report.used, report.used_len);
        k->used_len = report.used_len;
        if (cg_used_decode(NULL, report.used, report.used_len, 1, 0, k->d, c->n) != CG_OK) {
            free(mem);
            return SAY("used does not decode");
        }
    }
    free(mem);
    if (s != CG_OK) return SAY("%s: plain exchange says %s (%s)", c->op, cg_status_str(s), report.why);
    mark(k, c);
    if (has(c->op, "lowrank") && report.route == CG_ROUTE_LINEAR && memcmp(k->d, k->x, 4 * c->n))
        return SAY("low-rank: not against the mean");
    plain_take(&k->w, c, k->d, k->index, k->x, k->result, k->result_b);
    variance.aux = k->aux;
    if (c->kind == CG_EF_VARIANCE) d.side = &variance;
    bytes = cg_ef_exchange_memory(&k->ef, &d, t);
    mem = malloc(bytes ? bytes : 1);
    s = cg_ef_exchange(&k->ef, &d, t, k->grad, mem, bytes, &report);
    if (s == CG_OK) s = cg_used_decode(NULL, report.used, report.used_len, 1, 0, k->seen, c->n);
    free(mem);
    if (s != CG_OK) return SAY("%s: exchange says %s (%s)", c->op, cg_status_str(s), report.why);
    if (memcmp(k->seen, k->d, 4 * c->n)) return SAY("%s: another packet counted, step %u", c->op, step);
    load(k->seen, k->grad, c->n);
    for (size_t i = 0; i < c->n; i++)
        if (!(fabs((double)k->seen[i] - k->result[i]) <= k->result_b[i]))
            return SAY(
                "%s: result[%zu] is %.9g, plain %.9g, step %u", c->op, i, (double)k->seen[i], k->result[i], step);
    return sums_are_right(k, c) && same_memory(k, c, "after");
}
static int exchanging(cg_threads_world *world, int r, void *user) {
    const job *j = (const job *)user;
    const cg_transport t = cg_threads_transport(world, r, j->road->which ? j->road->which : CG_THREADS_ALL);
    rank *k = &ranks[r];
    cg_exchange_desc d = CG_ZERO;
    cg_op back;
    size_t carry = 0;
    cg_threads_timeout(world, 20000);
    d.op = as_used(k);
    d.route = j->road->route;
    d.fold = j->road->fold;
    d.leader = j->road->leader > j->size ? 0 : j->road->leader;
    d.carry = k->x; /* something: it is only looked at whether there is one */
    if (j->road->back && cg_op_parse(&back, j->road->back) == CG_OK) d.back = &back;
    if (j->road->carry) carry = cg_exchange_carry(&d, &t, j->c->n);
    k->desc.carry = carry;
    if (carry) k->carry = (float *)take(4 * carry);
    if (d.op.transform.id == CG_TRANSFORM_LOWRANK) k->warm = (float *)take(4 * j->c->n);
    if (!rank_start(k, j->c)) return 1;
    for (uint32_t step = 0; step < j->steps; step++)
        if (!cross(k, j, &t, step)) return 1;
    return 0;
}
static int exchanges(const setup *c, const road *way, int size, uint32_t steps) {
    job j;
    int bad;
    j.c = c;
    j.road = way;
    j.size = size;
    j.steps = steps;
    give_back();
    for (int r = 0; r < size; r++)
        if (!rank_open(&ranks[r], c, size)) return failed(&ranks[r], c, size);
    if (!cg_threads_run(size, exchanging, &j)) return 1;
    /* the one that failed first, not those it left alone */
    for (bad = 0; bad < size - 1 && (!ranks[bad].note[0] || has(ranks[bad].note, "callback")); bad++) {}
    return failed(&ranks[bad], c, size);
}

/* ---- cases ---- */

#define K(kind) CG_EF_##kind
/* op, kind, decay, alpha, momentum, rate, nesterov, bytes, dyadic, loose, reset, n, unaligned, part, jumps */
static const setup CASES[] = {
    { "topk:0.02", K(CLASSIC), 0, 0, 0, 0, 0, 0, 1, 0, 0, 400, 0, 0, 0 },
    { "topk:0.02", K(CLASSIC), 0, 0, 0, 0, 0, 0, 0, 0, 0, 400, 0, 0, 1 },
    { "topk:0.05|f16", K(CLASSIC), 0.95f, 0, 0, 0, 0, 0, 0, 0, 0, 130, 1, 0, 0 },
    { "efsign", K(CLASSIC), 0, 0, 0, 0.125f, 0, 0, 1, 0, 0, 130, 0, 0, 0 },
    { "absmax:4:512:nearest", K(CLASSIC), 0, 0, 0, 0.1f, 0, 0, 0, 0, 0, 400, 1, 0, 0 },
    { "rate:1", K(CLASSIC), 0, 0, 0, 0.1f, 0, 0, 0, 0, 0, 400, 1, 0, 0 },
    { "topk:0.1|rate:3", K(CLASSIC), 0.95f, 0, 0, 0, 0, 0, 0, 0, 0, 400, 0, 0, 0 },
    { "onebit:64", K(CLASSIC), 0, 0, 0, 0, 0, 0, 0, 0, 0, 130, 0, 0, 0 },
    { "randk:0.1", K(CLASSIC), 0, 0, 0, 0, 0, 0, 1, 0, 0, 130, 0, 0, 0 },
    { "clip:1.5|absmax:4:512:nearest", K(CLASSIC), 0, 0, 0, 0, 0, 0, 0, 0, 0, 400, 0, 0, 0 },
    { "qsgd:2", K(CLASSIC), 0, 0, 0, 0, 0, 0, 0, 1, 0, 400, 0, 0, 0 },
    { "terngrad", K(CLASSIC), 0.9f, 0, 0, 0.3f, 0, 0, 0, 1, 0, 130, 0, 0, 0 },
    { "lowrank:2:20:15", K(CLASSIC), 0, 0, 0, 0, 0, 0, 0, 0, 0, 300, 0, 0, 0 },
    { "demo:0.1", K(CLASSIC), 0.999f, 0, 0, 0, 0, 0, 0, 0, 0, 130, 0, 0, 0 },
    { "chunked:64:0.1|absmax:2:64:nearest", K(CLASSIC), 0.95f, 0, 0, 0, 0, 0, 0, 0, 0, 130, 1, 0, 0 },
    { "adacomp:50", K(CLASSIC), 0, 0, 0, 0, 0, 0, 0, 0, 0, 130, 0, 0, 0 },
    { "strom:1.5", K(CLASSIC), 0, 0, 0, 0, 0, 0, 0, 0, 0, 130, 0, 0, 0 },
    { "topk:0.1|absmax:8:64|huffman", K(CLASSIC), 0, 0, 0, 0, 0, 0, 0, 0, 0, 130, 0, 0, 0 },
    { "threelc:1", K(CLASSIC), 0, 0, 0, 0, 0, 0, 0, 0, 0, 130, 0, 0, 0 },
    { "topk:0.05", K(CLASSIC), 0, 0, 0, 0, 0, 1, 0, 1, 0, 130, 0, 0, 0 },
    { "topk:0.05", K(CLASSIC), 0.9f, 0, 0, 0, 0, 1, 0, 1, 0, 130, 0, 3, 0 },
    { "dense", K(CLASSIC), 0, 0, 0, 0, 0, 0, 1, 0, 0, 130, 0, 1, 0 },
    { "topk:0.1", K(CLASSIC), 0, 0, 0, 0, 0, 0, 1, 0, 0, 400, 0, 1, 0 },
    { "efsign", K(CLASSIC), 0, 0, 0, 0, 0, 0, 0, 0, 0, 400, 1, 2, 0 },
    { "absmax:4:512:nearest", K(LOCO), 0, 0, 0, 0, 0, 0, 0, 0, 7, 400, 0, 0, 0 },
    { "absmax:4:512", K(LOCO), 0.5f, 0, 0, 0.1f, 0, 1, 0, 1, 50, 400, 0, 0, 0 },
    { "topk:0.05", K(LOCO), 0, 0, 0, 0, 0, 1, 0, 1, 0, 130, 1, 0, 0 },
    { "topk:0.05", K(LOCO), 0, 0, 0, 0, 0, 0, 0, 1, 0, 130, 1, 1, 0 },
    { "efsign", K(LOCO), 0, 0, 0, 0, 0, 0, 0, 0, 0, 130, 0, 2, 0 },
    { "topk:0.05", K(SCALECOM), 0, 0, 0, 0, 0, 0, 0, 0, 0, 400, 0, 0, 0 },
    { "absmax:3:64", K(SCALECOM), 0.3f, 0, 0, 0.7f, 0, 0, 0, 1, 0, 130, 1, 0, 0 },
    { "topk:0.05|bf16", K(SCALECOM), 0, 0, 0, 0, 0, 1, 0, 1, 0, 130, 0, 0, 0 },
    { "absmax:4:64", K(ECQ), 0, 0, 0, 0, 0, 0, 0, 0, 0, 400, 0, 0, 0 },
    { "topk:0.1", K(ECQ), 0.8f, 0.5f, 0, 0, 0, 0, 0, 0, 0, 130, 1, 0, 0 },
    { "qsgd:4", K(ECQ), 0, 0, 0, 0, 0, 0, 0, 1, 0, 130, 0, 0, 0 },
    { "efsign", K(ECQ), 0, 0, 0, 0.5f, 0, 1, 0, 1, 0, 130, 0, 0, 0 },
    { "topk:0.02", K(MOMENTUM), 0, 0, 0.9f, 0, 0, 0, 0, 0, 0, 400, 0, 0, 0 },
    { "topk:0.02", K(MOMENTUM), 0, 0, 0.5f, 0, 0, 0, 0, 1, 0, 130, 1, 1, 0 },
    { "topk:0.1", K(MOMENTUM), 0, 0, 0.75f, 0, 0, 0, 0, 0, 0, 400, 0, 3, 0 },
    { "topk:0.1", K(MOMENTUM), 0, 0, 0.75f, 0, 0, 0, 0, 0, 0, 400, 0, 2, 0 },
    { "topk:0.05", K(MOMENTUM), 0, 0, 0.9f, 0, 1, 0, 0, 1, 0, 130, 0, 0, 0 },
    { "randk:0.1", K(MOMENTUM), 0, 0, 0.9f, 0, 0, 0, 0, 0, 0, 130, 0, 0, 0 },
    { "dgc:0.05|f16", K(MOMENTUM), 0, 0, 0.9f, 0.1f, 0, 0, 0, 0, 0, 400, 0, 0, 0 },
    { "rate:2", K(MOMENTUM), 0, 0, 0.9f, 0, 0, 0, 0, 0, 0, 400, 0, 0, 0 },
    { "efsign", K(MOMENTUM), 0, 0, 0.9f, 0, 0, 0, 0, 0, 0, 130, 0, 0, 0 },
    { "onebit", K(MOMENTUM), 0, 0, 0.9f, 0.3f, 1, 0, 0, 1, 0, 130, 1, 0, 0 },
    { "terngrad", K(MOMENTUM), 0, 0, 0.9f, 0, 0, 0, 0, 1, 0, 130, 0, 0, 0 },
    { "sign", K(SIGNUM), 0, 0, 0.9f, 0, 0, 0, 0, 0, 0, 400, 0, 0, 0 },
    { "efsign", K(SIGNUM), 0, 0, 0.5f, 0.3f, 0, 0, 0, 0, 0, 130, 1, 0, 0 },
    { "variance:1", K(VARIANCE), 0, 0, 0, 0, 0, 0, 0, 0, 0, 400, 0, 0, 0 },
    { "variance:2|f16", K(VARIANCE), 0.9f, 0, 0, 0, 0, 0, 0, 0, 0, 130, 1, 0, 0 },
    { "variance:1", K(VARIANCE), 0.5f, 0, 0, 0.5f, 0, 0, 1, 0, 0, 130, 0, 1, 0 },
    { "variance:1", K(VARIANCE), 0.9f, 0, 0, 0, 0, 0, 0, 0, 0, 400, 0, 3, 0 },
    { "topk:0.05", K(EF21), 0, 0, 0, 0, 0, 0, 0, 0, 0, 400, 0, 0, 0 },
    { "rate:2", K(EF21), 0, 0, 0, 0.3f, 0, 0, 0, 0, 0, 400, 1, 0, 0 },
    { "efsign", K(EF21), 0, 0, 0, 0.3f, 0, 0, 0, 0, 0, 130, 1, 0, 0 },
    { "lowrank:2:20:15", K(EF21), 0, 0, 0, 0, 0, 0, 0, 0, 0, 300, 0, 0, 0 },
    { "terngrad", K(EF21), 0, 0, 0, 0, 0, 0, 0, 1, 0, 130, 0, 0, 0 },
    { "topk:0.05|absmax:8:64", K(EF21), 0, 0, 0.9f, 0, 0, 0, 0, 0, 0, 130, 0, 0, 0 },
    { "onebit:64", K(EF21), 0, 0, 0.5f, 0.5f, 0, 0, 0, 1, 0, 130, 1, 0, 0 },
    { "dense", K(EF21), 0, 0, 0.9f, 0, 0, 0, 0, 0, 0, 130, 0, 1, 0 },
    { "terngrad", K(DIANA), 0, 0, 0, 0, 0, 0, 0, 1, 0, 400, 0, 0, 0 },
    { "randk:0.25", K(DIANA), 0, 0, 0, 0, 0, 0, 0, 1, 0, 130, 1, 0, 0 },
    { "qsgd:4", K(DIANA), 0, 0.25f, 0, 0, 0, 0, 0, 1, 0, 130, 0, 0, 0 },
    { "topk:0.1", K(DIANA), 0, 0, 0, 0, 0, 0, 0, 0, 0, 130, 0, 3, 0 },
    { "absmax:2:64:nearest", K(DIANA), 0, 0, 0, 0.5f, 0, 0, 0, 1, 0, 130, 0, 0, 0 },
    { "absmax:4:64", K(DIANA), 0, 0, 0, 0, 0, 0, 0, 1, 0, 130, 0, 0, 0 },
    { "topk:0.1", K(DIANA), 0, 0.5f, 0, 0.3f, 0, 0, 0, 1, 0, 130, 0, 1, 0 },
    { "efsign", K(ONEBIT_ADAM), 0, 0, 0.9f, 0, 0, 0, 0, 1, 0, 400, 0, 0, 0 },
    { "onebit", K(ONEBIT_ADAM), 0, 0, 0.5f, 0.3f, 0, 0, 0, 1, 0, 130, 1, 0, 0 },
    { "topk:0.1", K(ONEBIT_ADAM), 0, 0, 0.9f, 0, 0, 0, 0, 1, 0, 130, 0, 0, 0 },
    { "terngrad", K(ONEBIT_ADAM), 0, 0, 0.9f, 0, 0, 0, 0, 1, 0, 130, 0, 0, 0 },
    { "dense", K(ONEBIT_ADAM), 0, 0, 0.9f, 0, 0, 0, 0, 1, 0, 130, 0, 1, 0 },
};
enum { CASE_COUNT = sizeof CASES / sizeof CASES[0] };

TEST in_pieces(int size) {
    int bad = 0;
    for (int i = 0; i < CASE_COUNT; i++) COUNT(bad, pieces(&CASES[i], size, quick ? 15 : 200));
    ASSERT_EQ_FMT(0, bad, "%d");
    PASS();
}
TEST lengths(void) { /* operators without a shape */
    int bad = 0;
    static const size_t many[] = { 1, 2, 63, 64, 65, 4097, 70000 };
    for (size_t l = 0; l < sizeof many / sizeof many[0]; l++)
        for (int i = 0; i < CASE_COUNT; i++) {
            setup c = CASES[i];
            if (has(c.op, "lowrank") || (many[l] > 5000 && i % (quick ? 10 : 3)) ||
                (many[l] < 64 && has(c.op, "randk")))
                continue;
            c.n = many[l];
            COUNT(bad, pieces(&c, 2, many[l] > 5000 ? 3 : 12));
        }
    ASSERT_EQ_FMT(0, bad, "%d");
    PASS();
}

/* Where a top-k begins with the last step's threshold, that may be far off: of long vectors it is the same k
   largest all the same. */
TEST long_and_jumping(void) {
    static const setup some[] = {
        { "topk:0.01", K(CLASSIC), 0, 0, 0, 0, 0, 0, 0, 0, 0, N_MOST, 0, 0, 1 },
        { "topk:0.001|absmax:8:64", K(CLASSIC), 0.5f, 0, 0, 0, 0, 0, 0, 0, 0, N_MOST, 1, 0, 1 },
        { "topk:0.01", K(MOMENTUM), 0, 0, 0.9f, 0, 0, 0, 0, 0, 0, N_MOST, 0, 0, 1 },
        { "topk:0.01", K(ONEBIT_ADAM), 0, 0, 0.9f, 0, 0, 0, 0, 1, 0, N_MOST - 77, 0, 0, 1 },
        { "topk:0.01", K(EF21), 0, 0, 0, 0, 0, 0, 0, 0, 0, N_MOST, 0, 0, 1 },
    };
    static const road way = { CG_ROUTE_ALLGATHER, CG_FOLD_MEAN, NULL, 0, 0, 0 };
    int bad = 0;
    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++) {
        COUNT(bad, pieces(&some[i], 1, quick ? 4 : 23));
        COUNT(bad, exchanges(&some[i], &way, 1, quick ? 2 : 12));
    }
    ASSERT_EQ_FMT(0, bad, "%d");
    PASS();
}

/* Which routes a case takes: all that cg_exchange takes for its operator. */
static const struct {
    const char *op;
    uint32_t kind;
    road road;
} WAYS[] = {
    { "", 99, { CG_ROUTE_ALLGATHER, CG_FOLD_MEAN, NULL, 0, 0, 0 } }, /* all of them */
    { "topk:0.02", K(CLASSIC), { CG_ROUTE_MERGE, CG_FOLD_MEAN, NULL, 0, 0, 0 } },
    { "topk:0.02", K(CLASSIC), { CG_ROUTE_SHARED, CG_FOLD_MEAN, NULL, 0, 0, 0 } },
    { "topk:0.02", K(CLASSIC), { CG_ROUTE_SHARED, CG_FOLD_MEAN, NULL, 0, CG_LEADER_BY_SCORE, 0 } },
    { "topk:0.02", K(CLASSIC), { CG_ROUTE_REGION, CG_FOLD_MEAN, NULL, 0, 0, 0 } },
    { "topk:0.02", K(CLASSIC), { CG_ROUTE_SCATTER, CG_FOLD_MEAN, NULL, 0, 0, CG_THREADS_SENDRECV } },
    { "topk:0.02", K(CLASSIC), { CG_ROUTE_SERVER, CG_FOLD_MEAN, NULL, 0, 0, 0 } },
    { "topk:0.02", K(CLASSIC), { CG_ROUTE_SERVER, CG_FOLD_MEAN, "topk:0.05", 1, 2, 0 } },
    { "topk:0.02", K(MOMENTUM), { CG_ROUTE_MERGE, CG_FOLD_MEAN, NULL, 0, 0, 0 } },
    { "topk:0.02", K(MOMENTUM), { CG_ROUTE_SHARED, CG_FOLD_MEAN, NULL, 0, 0, 0 } },
    { "topk:0.05", K(SCALECOM), { CG_ROUTE_SHARED, CG_FOLD_MEAN, NULL, 0, 0, 0 } },
    { "efsign", K(CLASSIC), { CG_ROUTE_SERVER, CG_FOLD_MEAN, NULL, 1, 0, 0 } },
    { "efsign", K(CLASSIC), { CG_ROUTE_SCATTER, CG_FOLD_MEAN, NULL, 1, 0, 0 } },
    { "absmax:4:512:nearest", K(LOCO), { CG_ROUTE_SCATTER, CG_FOLD_MEAN, NULL, 1, 0, 0 } },
    { "absmax:4:512:nearest", K(CLASSIC), { CG_ROUTE_RING, CG_FOLD_MEAN, NULL, 1, 0, 0 } },
    { "efsign", K(ONEBIT_ADAM), { CG_ROUTE_SCATTER, CG_FOLD_MEAN, NULL, 1, 0, 0 } },
    { "absmax:4:64", K(ECQ), { CG_ROUTE_SCATTER, CG_FOLD_MEAN, NULL, 0, 0, 0 } },
    { "randk:0.1", K(CLASSIC), { CG_ROUTE_LINEAR, CG_FOLD_MEAN, NULL, 0, 0, 0 } },
    { "lowrank:2:20:15", K(CLASSIC), { CG_ROUTE_LINEAR, CG_FOLD_MEAN, NULL, 0, 0, 0 } },
    { "lowrank:2:20:15", K(EF21), { CG_ROUTE_LINEAR, CG_FOLD_MEAN, NULL, 0, 0, 0 } },
    { "sign", K(SIGNUM), { CG_ROUTE_ALLGATHER, CG_FOLD_VOTE, NULL, 0, 0, 0 } },
    { "demo:0.1", K(CLASSIC), { CG_ROUTE_ALLGATHER, CG_FOLD_CONTRIBUTORS, NULL, 0, 0, 0 } },
    { "topk:0.05", K(EF21), { CG_ROUTE_SHARED, CG_FOLD_MEAN, NULL, 0, 0, 0 } },
    { "terngrad", K(DIANA), { CG_ROUTE_SCATTER, CG_FOLD_MEAN, NULL, 0, 0, 0 } },
};
/* 200 steps: one operator of every kind, and every route for three ranks */
TEST exchanged(int size) {
    int bad = 0;
    for (size_t w = 0; w < sizeof WAYS / sizeof WAYS[0]; w++)
        for (int i = 0, found = 0; i < CASE_COUNT; i++) {
            const setup *c = &CASES[i];
            const int all = WAYS[w].kind == 99, first = i == 0 || c->kind != CASES[i - 1].kind;
            if (c->part || (!all && (found || c->kind != WAYS[w].kind || strcmp(c->op, WAYS[w].op) || c->bytes)))
                continue;
            found = 1;
            COUNT(bad, exchanges(c, &WAYS[w].road, size, quick ? 5 : all ? (first ? 200 : 6) : size == 3 ? 200 : 30));
        }
    ASSERT_EQ_FMT(0, bad, "%d");
    PASS();
}

/* ---- LAQ ---- */

enum { LAQ_N = 70, LAQ_STEPS = 200, LAQ_PATIENCE = 6, LAQ_STILL = 12 };
typedef struct laq { /* what a rank did, to be looked at afterwards */
    float d[LAQ_STEPS][LAQ_N], mean[LAQ_STEPS][LAQ_N], result[LAQ_STEPS][LAQ_N], h[LAQ_STEPS][LAQ_N],
        H[LAQ_STEPS][LAQ_N];
    cg_ef_stats stats[LAQ_STEPS];
    int abstained[LAQ_STEPS];
} laq;
static laq *laqs;
static int laq_bits;

/* Gradients change now and then: in between there is little to say. One worker begins with nothing at all: R = 0. */
static void laq_gradient(int r, uint32_t step, float *g) {
    for (uint32_t i = 0; i < LAQ_N; i++)
        g[i] = r == 0 && step < 4 ? 0.0f : gradient(0, (uint32_t)r, step / LAQ_STILL, i);
}
/* As much as |D|^2, at times: so that all terms of the rule decide, now and then. */
static double laq_moved(uint32_t step) {
    return step % 5 == 1 ? 0.0 : pow(10, (double)(hash(step, 1, 1) % 1000) / 200) * (step / 30 % 2 ? 0.01 : 1);
}
static setup laq_setup(char *op) {
    setup c;
    memset(&c, 0, sizeof c);
    sprintf(op, "minmax:%d:%d:nearest", laq_bits, LAQ_N);
    c.op = op;
    c.kind = CG_EF_LAQ;
    c.n = LAQ_N;
    return c;
}
static int laq_open(rank *k, const setup *c, int size) {
    if (!rank_open(k, c, size)) return 0;
    k->desc.laq_step = 0.25f;
    k->desc.laq_weight = 0.5f;
    k->desc.laq_patience = LAQ_PATIENCE;
    return rank_start(k, c);
}
static int laq_note(rank *k, laq *z, uint32_t step) { /* after the step */
    z->stats[step] = cg_ef_stats_of(&k->ef);
    if (cg_ef_read(&k->ef, CG_EF_ERROR, z->h[step], LAQ_N) != CG_OK ||
        cg_ef_read(&k->ef, CG_EF_RECEIVED, z->H[step], LAQ_N) != CG_OK)
        return SAY("LAQ: cannot be read");
    return cg_ef_moved(&k->ef, laq_moved(step)) == CG_OK;
}
static int laq_pieces(int size) {
    char op[40];
    const setup c = laq_setup(op);
    give_back();
    for (int r = 0; r < size; r++)
        if (!laq_open(&ranks[r], &c, size)) return failed(&ranks[r], &c, size);
    for (uint32_t step = 0; step < LAQ_STEPS; step++) {
        for (int r = 0; r < size; r++) {
            rank *k = &ranks[r];
            cg_tag tag = { 42, step, 3, (uint32_t)r };
            laq_gradient(r, step, k->grad);
            if (cg_ef_compress(&k->ef, &tag, k->grad, k->packet, k->cap, &k->len) != CG_OK ||
                cg_decompress(k->packet, k->len, laqs[r].d[step], LAQ_N) != CG_OK) {
                (void)SAY("LAQ: no packet");
                return failed(k, &c, size);
            }
            laqs[r].abstained[step] = k->len <= CG_HEADER_BYTES + 8;
        }
        for (size_t i = 0; i < LAQ_N; i++) {
            double sum = 0;
            for (int r = 0; r < size; r++) sum += (double)laqs[r].d[step][i];
            for (int r = 0; r < size; r++) laqs[r].result[step][i] = laqs[r].mean[step][i] = (float)(sum / size);
        }
        for (int r = 0; r < size; r++)
            if (cg_ef_commit(&ranks[r].ef, ranks[r].packet, ranks[r].len, laqs[r].result[step]) != CG_OK ||
                !laq_note(&ranks[r], &laqs[r], step))
                return failed(&ranks[r], &c, size);
    }
    return 1;
}
static int laq_worker(cg_threads_world *world, int r, void *user) {
    const cg_transport t = cg_threads_transport(world, r, CG_THREADS_ALL);
    rank *k = &ranks[r];
    cg_exchange_desc d = CG_ZERO;
    cg_report report;
    size_t bytes;
    void *mem;
    cg_status s = CG_OK;
    if (!laq_open(k, (const setup *)user, t.size)) return 1;
    bytes = cg_ef_exchange_memory(&k->ef, &d, &t);
    mem = take(bytes);
    for (uint32_t step = 0; step < LAQ_STEPS && s == CG_OK; step++) {
        d.tag.step = step;
        laq_gradient(r, step, laqs[r].result[step]);
        s = cg_ef_exchange(&k->ef, &d, &t, laqs[r].result[step], mem, bytes, &report);
        if (s == CG_OK) s = cg_used_decode(NULL, report.used, report.used_len, 1, 0, laqs[r].d[step], LAQ_N);
        laqs[r].abstained[step] = report.used_len <= CG_HEADER_BYTES + 8;
        if (s == CG_OK && !laq_note(k, &laqs[r], step)) return 1;
    }
    if (s != CG_OK) (void)SAY("LAQ: exchange says %s", cg_status_str(s));
    return s != CG_OK;
}
static int laq_exchanges(int size) {
    char op[40];
    const setup c = laq_setup(op);
    give_back();
    if (cg_threads_run(size, laq_worker, (void *)(uintptr_t)&c)) return failed(&ranks[0], &c, size);
    for (uint32_t step = 0; step < LAQ_STEPS; step++)
        for (size_t i = 0; i < LAQ_N; i++) {
            double sum = 0;
            for (int r = 0; r < size; r++) sum += (double)laqs[r].d[step][i];
            for (int r = 0; r < size; r++) laqs[r].mean[step][i] = (float)(sum / size);
        }
    return 1;
}
/* What one rank did in one step, from its memory before it. */
typedef struct laq_plain {
    double error_sent;
    int silent, sent_count;
} laq_plain;
static int laq_step_is_right(rank *k, const laq *z, int r, uint32_t step, laq_plain *w, int size) {
    const double tau = 1 / (pow(2, laq_bits) - 1), unit = ldexp(1.0, -24);
    double R = 0, sent = 0, left = 0, moved = 0, bar, put = 0, really = 0;
    float g[LAQ_N], p[LAQ_N];
    int silent, close;
    laq_gradient(r, step, g);
    for (size_t i = 0; i < LAQ_N; i++) {
        p[i] = g[i] - (step ? z->h[step - 1][i] : 0.0f);
        R = fmax(R, fabs((double)p[i]));
        put += (double)p[i] * (double)p[i];
        really += (double)z->d[step][i] * (double)z->d[step][i];
    }
    for (size_t i = 0; i < LAQ_N; i++) { /* 2^b levels on +-R, nearest */
        const double level = R > 0 ? 2 * tau * R * floor(((double)p[i] + R) / (2 * tau * R) + 0.5) - R : 0;
        /* p + R, its quotient and the level are rounded; half way between two levels it may go either way */
        const double off = 4 * unit * R, away = fabs((double)z->d[step][i] - level),
                     tie = fabs(fabs((double)p[i] - level) - tau * R);
        sent += level * level;
        left += ((double)p[i] - level) * ((double)p[i] - level);
        if (!z->abstained[step] && !(away <= off || (fabs(away - 2 * tau * R) <= off && tie <= off)))
            return SAY("LAQ: D[%zu] is %.9g, plain %.9g of p %.9g, R %.9g, step %u", i, (double)z->d[step][i], level,
                (double)p[i], R, step);
        if (z->abstained[step] && z->d[step][i] != 0.0f) return SAY("LAQ: silent, and sends");
        if (z->h[step][i] != (step ? z->h[step - 1][i] : 0.0f) + z->d[step][i])
            return SAY("LAQ: h[%zu] is not the sum of D, step %u", i, step);
    }
    for (uint32_t j = 1; j <= 10 && j <= step; j++) moved += laq_moved(step - j);
    bar = (double)0.5f / 10 * moved / (0.25 * 0.25) + 3 * (left + w->error_sent);
    /* the sums of squares above are of exact levels: off by 8 * 2^-24 R per level */
    close = fabs(sent - bar) <= 1e-4 * bar;
    silent = step > 0 && w->silent < LAQ_PATIENCE && sent < bar;
    if (silent != z->abstained[step] && !(close && step > 0 && w->silent < LAQ_PATIENCE))
        return SAY("LAQ: %s at step %u: |D|^2 %.9g, bar %.9g, %d in a row",
            silent ? "should be silent" : "should speak", step, sent, bar, w->silent);
    if (z->stats[step].silent != z->abstained[step]) return SAY("LAQ: stats.silent");
    if (!(fabs(z->stats[step].put - put) <= 1e-12 * put && fabs(z->stats[step].sent - really) <= 1e-12 * really))
        return SAY("LAQ: put or sent, step %u", step);
    w->silent = z->abstained[step] ? w->silent + 1 : 0;
    if (!z->abstained[step]) {
        w->error_sent = left;
        w->sent_count++;
    }
    for (size_t i = 0; i < LAQ_N; i++) { /* N products and sums, a sum with H */
        const double before = step ? (double)z->H[step - 1][i] : 0, want = before + (double)z->mean[step][i];
        double mass = fabs(want);
        for (int q = 0; q < size; q++) mass += fabs((double)laqs[q].d[step][i]);
        if (!(fabs((double)z->result[step][i] - want) <= (size + 2) * unit * mass))
            return SAY("LAQ: result[%zu] is %.9g, plain %.9g", i, (double)z->result[step][i], want);
        if (z->H[step][i] != z->result[step][i]) return SAY("LAQ: H is not the result");
    }
    return 1;
}
TEST lazy(int size, int bits, int (*how)(int)) {
    int spoke = 0;
    laq_bits = bits;
    TRY(how(size));
    for (int r = 0; r < size; r++) {
        laq_plain w = { 0, 0, 0 };
        rank *k = &ranks[r];
        for (uint32_t step = 0; step < LAQ_STEPS; step++)
            if (!laq_step_is_right(k, &laqs[r], r, step, &w, size)) FAILm(k->note);
        spoke += w.sent_count;
    }
    ASSERT(spoke > size * LAQ_STEPS / LAQ_STILL && spoke < size * LAQ_STEPS * 2 / 3); /* both happen often */
    PASS();
}

/* ---- a learning rate ---- */

/* Inside (MEM-SGD, cg_ef_set_rate) or outside, with the error rescaled: the model moves by the same, bit for bit
   if rates are powers of two. */
TEST rates(void) {
    static const float RATES[] = { 1, 1, 0.5f, 0.5f, 0.25f, 2, 2, 0.125f };
    static const setup in = { "topk:0.05", K(CLASSIC), 0, 0, 0, 1, 0, 0, 1, 0, 0, 300, 0, 0, 0 };
    static const setup out = { "topk:0.05", K(CLASSIC), 0, 0, 0, 0, 0, 0, 1, 0, 0, 300, 0, 0, 0 };
    rank *a = &ranks[0], *b = &ranks[1];
    float last = 1;
    give_back();
    TRY(rank_open(a, &in, 1) && rank_start(a, &in) && rank_open(b, &out, 1) && rank_start(b, &out));
    for (uint32_t step = 0; step < 120; step++) {
        const float rate = RATES[step / 7 % (sizeof RATES / sizeof *RATES)];
        cg_tag tag = { 1, step, 0, 0 };
        draw(a, &in, 0, step);
        if (rate != last) ASSERT_EQ(CG_OK, cg_ef_rescale(&b->ef, last / rate));
        ASSERT_EQ(CG_OK, cg_ef_set_rate(&a->ef, rate));
        last = rate;
        ASSERT_EQ(CG_OK, cg_ef_compress(&a->ef, &tag, a->grad, a->packet, a->cap, &a->len));
        ASSERT_EQ(CG_OK, cg_ef_compress(&b->ef, &tag, a->grad, b->packet, b->cap, &b->len));
        ASSERT_EQ(CG_OK, cg_decompress(a->packet, a->len, a->d, in.n));
        ASSERT_EQ(CG_OK, cg_decompress(b->packet, b->len, b->d, in.n));
        for (size_t i = 0; i < in.n; i++) ASSERT_EQ_FMT((double)a->d[i], (double)(rate * b->d[i]), "%.9g");
        ASSERT_EQ(CG_OK, cg_ef_commit(&a->ef, a->packet, a->len, NULL));
        ASSERT_EQ(CG_OK, cg_ef_commit(&b->ef, b->packet, b->len, NULL));
    }
    PASS();
}
/* ---- memory that is not fed any more ---- */

TEST faint(cg_isa isa) { /* as in_pieces and exchanged, around 2^-100 */
    static const setup some[] = {
        { "topk:0.1", K(CLASSIC), 0.5f, 0, 0, 0, 0, 0, FAINT, 0, 0, 400, 0, 0, 0 },
        { "topk:0.1", K(CLASSIC), 0.5f, 0, 0, 0, 0, 1, FAINT, 1, 0, 400, 0, 0, 0 },
        { "topk:0.1", K(CLASSIC), 0, 0, 0, 0, 0, 0, FAINT, 0, 0, 130, 0, 0, 0 }, /* times 1: nothing is lost */
        { "topk:0.1", K(LOCO), 0, 0, 0, 0, 0, 0, FAINT, 1, 0, 130, 0, 0, 0 },
        { "topk:0.1", K(ECQ), 0.5f, 0.5f, 0, 0, 0, 0, FAINT, 0, 0, 400, 1, 0, 0 },
        { "topk:0.1", K(ECQ), 0.5f, 0.25f, 0, 0, 0, 1, FAINT, 1, 0, 130, 0, 0, 0 },
        { "topk:0.1", K(MOMENTUM), 0, 0, 0.5f, 0, 0, 0, FAINT, 0, 0, 400, 1, 0, 0 },
        { "topk:0.1", K(MOMENTUM), 0, 0, 0.5f, 0, 1, 0, FAINT, 0, 0, 130, 0, 0, 0 },
        { "efsign", K(MOMENTUM), 0, 0, 0.5f, 0, 0, 0, FAINT, 0, 0, 130, 0, 0, 0 },
        { "sign", K(SIGNUM), 0, 0, 0.5f, 0, 0, 0, FAINT, 0, 0, 400, 0, 0, 0 },
        { "variance:1", K(VARIANCE), 0.5f, 0, 0, 0, 0, 0, FAINT, 0, 0, 400, 1, 0, 0 },
        { "dense", K(EF21), 0, 0, 0, 0, 0, 0, FAINT, 0, 0, 130, 0, 0, 0 }, /* p = g - h: nothing is lost */
        { "topk:0.1", K(EF21), 0, 0, 0.5f, 0, 0, 0, FAINT, 0, 0, 400, 0, 0, 0 },
        { "dense", K(ONEBIT_ADAM), 0, 0, 0.5f, 0, 0, 0, FAINT, 0, 0, 400, 1, 0, 0 },
        { "topk:0.1", K(ONEBIT_ADAM), 0, 0, 0.5f, 0, 0, 0, FAINT, 0, 0, 130, 0, 0, 0 },
    };
    static const road way = { CG_ROUTE_ALLGATHER, CG_FOLD_MEAN, NULL, 0, 0, 0 };
    int bad = 0;
    ASSERT_EQ(CG_OK, cg_isa_force(isa));
    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++) {
        COUNT(bad, pieces(&some[i], 1, 40));
        COUNT(bad, pieces(&some[i], 2, 40));
        COUNT(bad, exchanges(&some[i], &way, 2, 40));
    }
    ASSERT_EQ(CG_OK, cg_isa_force(CG_ISA_AUTO));
    ASSERT_EQ_FMT(0, bad, "%d");
    PASS();
}
/* Fed for five steps, and then only every fourth stretch of 64: the rest of what fades ends at exactly 0, as
   denormals never would. */
static int ends(const setup *c, int which) {
    rank *k = &ranks[0];
    int alive = 0;
    give_back();
    if (!rank_open(k, c, 1) || !rank_start(k, c)) return failed(k, c, 1);
    for (uint32_t step = 0; step < 2000; step++) {
        cg_tag tag = { 42, step, 3, 0 };
        if (step < 8 || step % 64 == 0) draw(k, c, 0, step);
        for (size_t i = 0; i < c->n; i++)
            if (step >= 5 && i / 64 % 4) k->grad[i] = 0.0f;
        if (cg_ef_compress(&k->ef, &tag, k->grad, k->packet, k->cap, &k->len) != CG_OK ||
            cg_decompress(k->packet, k->len, k->mean, c->n) != CG_OK ||
            cg_ef_commit(&k->ef, k->packet, k->len, keeps_received(c->kind) ? k->mean : NULL) != CG_OK) {
            (void)SAY("%s: step %u fails", c->op, step);
            return failed(k, c, 1);
        }
    }
    if (cg_ef_read(&k->ef, which, k->seen, c->n) != CG_OK) (void)SAY("vector %d cannot be read", which);
    for (size_t i = 0; i < c->n; i++) {
        if (i / 64 % 4 && k->seen[i] != 0.0f && !k->note[0])
            (void)SAY("%s: vector %d[%zu] is still %g", c->op, which, i, (double)k->seen[i]);
        alive += i / 64 % 4 == 0 && k->seen[i] != 0.0f;
    }
    if (!alive && !k->note[0]) (void)SAY("%s: nothing is left of vector %d", c->op, which);
    return k->note[0] ? failed(k, c, 1) : 1;
}
TEST fading(void) {
    static const struct {
        setup c;
        int which;
    } some[] = {
        { { "topk:0.02", K(CLASSIC), 0.9f, 0, 0, 0, 0, 0, 0, 0, 0, 600, 0, 0, 0 }, CG_EF_ERROR },
        { { "topk:0.02", K(CLASSIC), 0.9f, 0, 0, 0, 0, 1, 0, 0, 0, 600, 0, 0, 0 }, CG_EF_ERROR },
        { { "topk:0.02", K(ECQ), 0, 0, 0, 0, 0, 0, 0, 0, 0, 600, 0, 0, 0 }, CG_EF_ERROR },
        { { "topk:0.02", K(ECQ), 0, 0, 0, 0, 0, 1, 0, 0, 0, 600, 0, 0, 0 }, CG_EF_ERROR },
        { { "absmax:4:64", K(MOMENTUM), 0, 0, 0.9f, 0, 0, 0, 0, 0, 0, 600, 0, 0, 0 }, CG_EF_VELOCITY },
        { { "absmax:4:64", K(MOMENTUM), 0, 0, 0.9f, 0, 1, 0, 0, 0, 0, 600, 0, 0, 0 }, CG_EF_VELOCITY },
        { { "sign", K(SIGNUM), 0, 0, 0.9f, 0, 0, 0, 0, 0, 0, 600, 0, 0, 0 }, CG_EF_ERROR },
        { { "topk:0.02", K(EF21), 0, 0, 0.9f, 0, 0, 0, 0, 0, 0, 600, 0, 0, 0 }, CG_EF_VELOCITY },
        { { "dense", K(ONEBIT_ADAM), 0, 0, 0.9f, 0, 0, 0, 0, 0, 0, 600, 0, 0, 0 }, CG_EF_RECEIVED },
    };
    int bad = 0;
    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++) COUNT(bad, ends(&some[i].c, some[i].which));
    ASSERT_EQ_FMT(0, bad, "%d");
    PASS();
}
/* 1-bit Adam: a rollback takes out what was put in, also if that was nothing */
TEST taken_back(void) {
    static const setup c = { "dense", K(ONEBIT_ADAM), 0, 0, 0.5f, 0, 0, 0, FAINT, 0, 0, 130, 0, 0, 0 };
    rank *k = &ranks[0];
    cg_tag tag = { 42, 50, 3, 0 };
    /* the last gradient but 0 was in step 39: M is between 2^-91 and 2^-105 */
    TRY(pieces(&c, 1, 40));
    for (size_t i = 0; i < c.n; i++) k->grad[i] = 0.0f;
    ASSERT_EQ(CG_OK, cg_ef_compress(&k->ef, &tag, k->grad, k->packet, k->cap, &k->len));
    ASSERT_EQ(CG_OK, cg_ef_rollback(&k->ef, k->packet, k->len));
    ASSERT_EQ(CG_OK, cg_ef_read(&k->ef, CG_EF_ERROR, k->seen, c.n));
    for (size_t i = 0; i < c.n; i++) ASSERT_EQ_FMT(0.0, (double)k->seen[i], "%g");
    PASS();
}
TEST carry_rescaled(void) {
    cg_ef_desc d = CG_ZERO;
    static float memory[4096];
    cg_ef ef;
    d.n = d.carry = 3;
    ASSERT(cg_ef_memory(&d) <= sizeof memory);
    ASSERT_EQ(CG_OK, cg_ef_init(&ef, &d, memory, sizeof memory));
    ef.carry[0] = 3.0f;
    ef.carry[1] = (float)ldexp(1.0, -99);
    ef.carry[2] = (float)ldexp(-1.0, -140);
    ASSERT_EQ(CG_OK, cg_ef_rescale(&ef, 1.0f));
    ASSERT(ef.carry[0] == 3.0f && ef.carry[1] == (float)ldexp(1.0, -99) && ef.carry[2] == (float)ldexp(-1.0, -140));
    ASSERT_EQ(CG_OK, cg_ef_rescale(&ef, 0.25f));
    ASSERT(ef.carry[0] == 0.75f && ef.carry[1] == 0.0f && ef.carry[2] == 0.0f);
    PASS();
}
TEST rescaled(int bytes) { /* times 1 it stays as it is, but for what bytes round */
    const setup c = { "topk:0.1", K(CLASSIC), 0, 0, 0, 0, 0, bytes, FAINT, bytes, 0, 130, 0, 0, 0 };
    rank *k = &ranks[0];
    int gone = 0;
    TRY(pieces(&c, 1, 14));
    ASSERT_EQ(CG_OK, cg_ef_read(&k->ef, CG_EF_ERROR, k->x, c.n));
    ASSERT_EQ(CG_OK, cg_ef_rescale(&k->ef, 1.0f));
    ASSERT_EQ(CG_OK, cg_ef_read(&k->ef, CG_EF_ERROR, k->seen, c.n));
    if (!bytes) ASSERT_MEM_EQ(k->x, k->seen, 4 * c.n);
    load(k->x, k->seen, c.n);
    ASSERT_EQ(CG_OK, cg_ef_rescale(&k->ef, 0.5f));
    ASSERT_EQ(CG_OK, cg_ef_read(&k->ef, CG_EF_ERROR, k->seen, c.n));
    for (size_t i = 0; i < c.n; i++) {
        const double half = 0.5 * (double)k->x[i], want = fabs(half) < FAINTEST ? 0 : half;
        if (!bytes || want == 0) ASSERT_EQ_FMT(want, (double)k->seen[i], "%g");
        gone += half != want;
    }
    ASSERT(gone);
    PASS();
}
TEST reading(void) {
    static const setup c = { "topk:0.1", K(CLASSIC), 0, 0, 0, 0, 0, 0, 1, 0, 0, 130, 0, 0, 0 };
    rank *k = &ranks[0];
    TRY(pieces(&c, 1, 3));
    ASSERT_EQ(CG_E_ARG, cg_ef_read(&k->ef, 3, k->seen, c.n));
    ASSERT_EQ(CG_E_ARG, cg_ef_read(&k->ef, -1, k->seen, c.n));
    ASSERT_EQ(CG_E_ARG, cg_ef_read(&k->ef, 0, NULL, c.n));
    ASSERT_EQ(CG_E_MISMATCH, cg_ef_read(&k->ef, 0, k->seen, c.n - 1));
    ASSERT_EQ(CG_E_UNSUPPORTED, cg_ef_read(&k->ef, CG_EF_VELOCITY, k->seen, c.n));
    PASS();
}

GREATEST_MAIN_DEFS();
int main(int argc, char **argv) {
    GREATEST_MAIN_BEGIN();
    quick = !long_test();
    ranks = (rank *)calloc(MOST, sizeof *ranks);
    laqs = (laq *)calloc(MOST, sizeof *laqs);
    for (size_t i = 0; i < sizeof SIZES / sizeof SIZES[0]; i++)
        if (!quick || SIZES[i] < 8) RUN_TESTp(in_pieces, SIZES[i]);
    RUN_TEST(lengths);
    RUN_TEST(long_and_jumping);
    for (size_t i = 0; i < sizeof SIZES / sizeof SIZES[0]; i++)
        if (!quick || SIZES[i] % 5) RUN_TESTp(exchanged, SIZES[i]);
    for (size_t i = 0; i < sizeof SIZES / sizeof SIZES[0]; i++)
        for (int bits = 1; bits <= 8; bits += 1 + bits % 3) {
            RUN_TESTp(lazy, SIZES[i], bits, laq_pieces);
            RUN_TESTp(lazy, SIZES[i], bits, laq_exchanges);
        }
    RUN_TEST(rates);
    RUN_TESTp(faint, CG_ISA_AUTO);
    RUN_TESTp(faint, CG_ISA_SCALAR);
    RUN_TEST(fading);
    RUN_TEST(taken_back);
    RUN_TESTp(rescaled, 0);
    RUN_TESTp(rescaled, 1);
    RUN_TEST(carry_rescaled);
    RUN_TEST(reading);
    give_back();
    free(ranks);
    free(laqs);
    GREATEST_MAIN_END();
}
