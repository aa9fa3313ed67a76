/* Nothing lost: what compgrad_ef.h says holds of every kind's memory holds after every step, whatever happened in
   it: rollbacks, packets that counted only in part, transports that fail at any message, NaN here or on another
   rank, other ratios and rates, and a restart from what was saved. Gradients lie on a grid of 2^-10, so that sums
   of f32 selections are exact and must be equal; where something rounds the bound is counted (see roundings). */
#include "examples/transport_threads.h"
#include "greatest.h"
#include "tier.h"
#define COMPGRAD_IMPLEMENTATION
#include "compgrad_ef.h"
#include "short_names.h"
#include <math.h>

enum { MOST = 5, N = 200, ROOM = 4500, ZONE = 64 };
static int many = N; /* floats of a vector, at most ROOM */
#define FLOATS (sizeof(float) * (size_t)many)
static int warming;  /* four dense steps, then other ratios for twenty */
static int trusting; /* desc.finite */
static int quick;    /* not CG_TEST=long */
static char note[500];
static uint64_t dice = 1;

static uint32_t below(uint32_t n) {
    dice = dice * 6364136223846793005u + 1442695040888963407u;
    return n ? (uint32_t)(dice >> 33) % n : 0;
}
static float dyadic(void) { return (float)((int)below(4096) - 2048) / 1024.0f; }
static float special(uint32_t bits) {
    float f;
    memcpy(&f, &bits, 4);
    return f;
}

/* ---- the kinds ---- */

typedef struct plan {
    const char *op;
    uint32_t kind;
    float momentum, decay, alpha, rate, clip; /* clip < 0: by value */
    int nesterov, bytes, exact;               /* exact: so many steps from zero stay on the grid that f32 holds */
    uint64_t reset;
    float ratio; /* the operator has one */
} plan;
enum {
    CLASSIC = CG_EF_CLASSIC,
    LOCO = CG_EF_LOCO,
    SCALECOM = CG_EF_SCALECOM,
    ECQ = CG_EF_ECQ,
    MOMENTUM = CG_EF_MOMENTUM,
    SIGNUM = CG_EF_SIGNUM,
    VARIANCE = CG_EF_VARIANCE,
    EF21 = CG_EF_EF21,
    DIANA = CG_EF_DIANA,
    LAQ = CG_EF_LAQ,
    ONEBIT = CG_EF_ONEBIT_ADAM
};
static const char *const kind_names[] = { "classic", "loco", "scalecom", "ecq", "momentum", "signum", "variance",
    "ef21", "diana", "laq", "onebit" };

static const plan plans[] = {
    /* op, kind, momentum, decay, alpha, rate, clip, nesterov, bytes, exact, reset, ratio */
    { "topk:0.1", CLASSIC, 0, 0, 0, 0, 0, 0, 0, 1000, 0, 0.1f },
    { "topk:0.1", CLASSIC, 0, 0, 0, 0.25f, 0, 0, 0, 1000, 0, 0.1f },
    { "randk:0.1", CLASSIC, 0, 0, 0, 0, 0, 0, 0, 1000, 0, 0.1f },
    { "permk:4", CLASSIC, 0, 0, 0, 0, 0, 0, 0, 1000, 0, 0 },
    { "chunked:64:0.1", CLASSIC, 0, 0, 0, 0, 0, 0, 0, 1000, 7, 0 },
    { "dgc:0.1", CLASSIC, 0, 0, 0, 0, 3.0f, 0, 0, 0, 0, 0.1f },
    { "chunked:64:0.1|absmax:2:64", CLASSIC, 0, 0.95f, 0, 0, 0, 0, 0, 0, 0, 0 },
    { "demo:0.1", CLASSIC, 0, 0.999f, 0, 0, 0, 0, 0, 0, 0, 0 }, { "efsign", CLASSIC, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 },
    { "absmax:4:64", CLASSIC, 0, 0, 0, 0.01f, 0, 0, 0, 0, 0, 0 }, { "qsgd:1", CLASSIC, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 },
    { "terngrad", CLASSIC, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }, { "absmax:1:64", CLASSIC, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 },
    { "wangni:0.2", CLASSIC, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.2f },
    { "lowrank:2:10:20", CLASSIC, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 },
    { "atomo:2:10:20", CLASSIC, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 },
    { "topk:0.1", CLASSIC, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0.1f }, { "efsign", CLASSIC, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0 },
    { "efsign", CLASSIC, 0, 0, 0, 0, -0.4f, 0, 0, 0, 0, 0 }, { "absmax:4:64", LOCO, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 },
    { "absmax:4:64", LOCO, 0, 0, 0, 0.5f, -0.4f, 0, 0, 0, 0, 0 }, { "absmax:4:64", LOCO, 0, 0, 0, 0, 0, 0, 1, 0, 9, 0 },
    { "topk:0.1", LOCO, 0, 0.5f, 0, 0, 0, 0, 0, 8, 0, 0.1f }, { "topk:0.1", SCALECOM, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.1f },
    { "topk:0.1", SCALECOM, 0, 0.5f, 0, 0, 0, 0, 0, 8, 0, 0.1f },
    { "topk:0.1", SCALECOM, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0.1f }, { "levels:3:64:max", ECQ, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 },
    { "topk:0.1", ECQ, 0, 0.5f, 0.5f, 0, 0, 0, 0, 6, 0, 0.1f }, { "absmax:4:64", ECQ, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0 },
    { "topk:0.1", MOMENTUM, 0.5f, 0, 0, 0, 0, 0, 0, 9, 0, 0.1f },
    { "topk:0.1", MOMENTUM, 0.9f, 0, 0, 0, 2.0f, 0, 0, 0, 0, 0.1f },
    { "topk:0.1", MOMENTUM, 0.9f, 0, 0, 0, 0, 1, 0, 0, 0, 0.1f },
    { "topk:0.1", MOMENTUM, 0.9f, 0, 0, 0, -0.4f, 1, 0, 0, 0, 0.1f },
    { "efsign", MOMENTUM, 0.5f, 0, 0, 0, 0, 1, 0, 0, 0, 0 }, { "terngrad", MOMENTUM, 0.9f, 0, 0, 0, 0, 0, 0, 0, 0, 0 },
    { "sign", SIGNUM, 0.9f, 0, 0, 0, 0, 0, 0, 0, 0, 0 }, { "topk:0.1", SIGNUM, 0.5f, 0, 0, 0, 0, 0, 0, 9, 0, 0.1f },
    { "variance:1.5", VARIANCE, 0, 0, 0, 0, 0, 0, 0, 1000, 0, 0 },
    { "topk:0.1", EF21, 0, 0, 0, 0, 0, 0, 0, 1000, 0, 0.1f }, { "absmax:4:64", EF21, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 },
    { "qsgd:1", EF21, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }, { "topk:0.1", EF21, 0.9f, 0, 0, 0, 0, 0, 0, 0, 0, 0.1f },
    { "absmax:4:64", EF21, 0.9f, 0, 0, 0.5f, -0.4f, 0, 0, 0, 0, 0 },
    { "absmax:4:64", DIANA, 0, 0, 0.25f, 0, 0, 0, 0, 0, 0, 0 },
    { "randk:0.25", DIANA, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.25f },
    { "topk:0.1", DIANA, 0, 0, 0.5f, 0, 0, 0, 0, 8, 0, 0.1f },
    { "minmax:3:200:nearest", LAQ, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 },
    { "efsign", ONEBIT, 0.9f, 0, 0, 0, 0, 0, 0, 0, 0, 0 }, { "topk:0.1", ONEBIT, 0.5f, 0, 0, 0, 0, 0, 0, 6, 0, 0.1f }
};
enum { PLANS = sizeof plans / sizeof *plans };

static float or_else(float v, float otherwise) { return v != 0.0f ? v : otherwise; }
static double decay_of(const plan *p) {
    switch (p->kind) {
    case LOCO: return (double)or_else(p->decay, 0.8f);
    case SCALECOM: return (double)or_else(p->decay, 0.1f);
    case ECQ: return (double)or_else(p->decay, 0.9f);
    case VARIANCE: return (double)or_else(p->decay, 0.999f);
    default: return (double)or_else(p->decay, 1.0f);
    }
}
static int receives(const plan *p) {
    return p->kind == EF21 || p->kind == DIANA || p->kind == LAQ || p->kind == ONEBIT;
}
static int differs(const plan *p) { return p->kind == EF21 || p->kind == DIANA || p->kind == LAQ; }
static int remembers_error(const plan *p) {
    return p->kind != SIGNUM && p->kind != EF21 && p->kind != DIANA && p->kind != LAQ;
}
static int warm_starts(const plan *p) { return strncmp(p->op, "lowrank", 7) == 0; }
static int is_matrix(const plan *p) { return warm_starts(p) || strncmp(p->op, "atomo", 5) == 0; }
static int has_velocity(const plan *p) {
    return p->kind == MOMENTUM || p->kind == VARIANCE || (p->kind == EF21 && p->momentum != 0.0f);
}

/* ---- one rank: its memory, at an odd address and between red zones, and the book that is kept of it ---- */

typedef struct lane {
    cg_ef *ef;
    cg_ef_desc d;
    unsigned char *block;
    size_t bytes, room;
    /* velocity, received: as last seen */
    float g[ROOM], aux[ROOM], grad[ROOM], used[ROOM], mean[ROOM], velocity[ROOM], received[ROOM];
    int index[ROOM]; /* the packet that counted has it */
    /* sums; the memory that follows; how far rounding may take it from there */
    double in[ROOM], out[ROOM], want[ROOM], off[ROOM];
    double moved[ROOM];              /* no number of this step was larger */
    double rate, scale, seen, diana; /* seen: the scale when velocity was seen */
    float ratio;                     /* if it was set */
    uint64_t steps;
    unsigned char *packet;
    size_t cap, len;
} lane;
typedef struct trip {
    plan p;
    uint32_t route;
    int carry;
    const char *back;
    uint32_t fold;
} trip;
typedef struct world {
    const plan *p;
    int size;
    lane *lane[MOST];
    uint64_t step;
    double apart[ROOM]; /* H from the mean of all h, by rounding */
    int halved, exact;
    const trip *road; /* of cg_ef_exchange, or NULL */
} world;

static int complain(const world *s, int rank, const char *what) {
    snprintf(note, sizeof note,
        "%s: %s %s by %d, n %d, momentum %g decay %g bytes %d nesterov %d, rank %d of %d, step %lu", what,
        kind_names[s->p->kind], s->p->op, s->road ? (int)s->road->route : -1, many, (double)s->p->momentum,
        (double)s->p->decay, s->p->bytes, s->p->nesterov, rank, s->size, (unsigned long)s->step);
    return 0;
}
#define LINE_TEXT(line) LINE_TEXT_(line)
#define LINE_TEXT_(line) #line
#define EXPECT(cond, rank)                                                         \
  do {                                                                             \
    if (!(cond)) return complain(s, rank, "line " LINE_TEXT(__LINE__) ": " #cond); \
  } while (0)

static void *memory(size_t bytes) {
    void *p = malloc(bytes ? bytes : 1);
    if (!p) exit(2);
    return p;
}
static cg_op op_of(const char *text) {
    cg_op op = CG_ZERO;
    if (cg_op_parse(&op, text) != CG_OK) {
        printf("does not parse: %s\n", text);
        exit(2);
    }
    return op;
}
static cg_ef_desc desc_of(const plan *p, int workers) {
    cg_ef_desc d = CG_ZERO;
    d.op = op_of(p->op);
    d.n = (size_t)many;
    d.kind = p->kind;
    d.workers = workers;
    d.momentum = p->momentum;
    d.decay = p->decay;
    d.alpha = p->alpha;
    d.rate = p->rate;
    d.clip = fabsf(p->clip);
    d.clip_by = p->clip < 0.0f ? (uint32_t)CG_CLIP_VALUE : (uint32_t)CG_CLIP_NORM;
    d.nesterov = p->nesterov;
    d.bytes = p->bytes;
    d.reset = p->reset;
    d.finite = trusting;
    if (warming) {
        d.warmup.kind = CG_WARMUP_POWER;
        d.warmup.stages = 4;
        d.warmup.period = 5;
        d.dense_steps = 4;
    }
    if (p->kind == LAQ) {
        d.laq_step = 0.125f;
        d.laq_patience = 4;
    }
    return d;
}
/* A cg_ef of its own, in memory full of garbage. */
static cg_status lane_init(lane *w) {
    size_t i;
    w->bytes = cg_ef_memory(&w->d);
    w->room = w->bytes + 2 * ZONE + 64;
    w->block = (unsigned char *)memory(w->room);
    for (i = 0; i < w->room; i++) w->block[i] = (unsigned char)(0xa5 ^ i * 3);
    w->ef = (cg_ef *)memory(sizeof *w->ef);
    memset(w->ef, 0xdb, sizeof *w->ef);
    return cg_ef_init(w->ef, &w->d, w->block + ZONE + 1, w->bytes);
}
static int zones_hold(const lane *w) {
    size_t i;
    for (i = 0; i < ZONE + 1; i++)
        if (w->block[i] != (unsigned char)(0xa5 ^ i * 3)) return 0;
    for (i = ZONE + 1 + w->bytes; i < w->room; i++)
        if (w->block[i] != (unsigned char)(0xa5 ^ i * 3)) return 0;
    return 1;
}
static void lane_drop(lane *w) { /* whoever still points there sees nonsense */
    memset(w->block, 0xee, w->room);
    memset(w->ef, 0xee, sizeof *w->ef);
    free(w->block);
    free(w->ef);
}
static int world_open(world *s, const plan *p, int size) {
    memset(s, 0, sizeof *s);
    s->p = p;
    s->size = size;
    s->exact = p->exact && (p->kind != ONEBIT || !(size & (size - 1))); /* a third of a sum is not on the grid */
    for (int r = 0; r < size; r++) {
        lane *w = s->lane[r] = (lane *)calloc(1, sizeof *w);
        if (!w) exit(2);
        w->d = desc_of(p, size);
        w->rate = (double)or_else(p->rate, 1.0f);
        EXPECT(lane_init(w) == CG_OK, r);
        w->scale = w->seen = 1.0;
        w->cap = cg_ef_bound(&w->d);
        w->packet = (unsigned char *)memory(w->cap);
    }
    return 1;
}
static void world_close(world *s) {
    for (int r = 0; r < s->size; r++) {
        if (!s->lane[r]) continue;
        lane_drop(s->lane[r]);
        free(s->lane[r]->packet);
        free(s->lane[r]);
        s->lane[r] = NULL;
    }
}
static void world_reset(world *s) {
    memset(s->apart, 0, 2 * FLOATS);
    s->halved = 0;
    for (int r = 0; r < s->size; r++) {
        lane *w = s->lane[r];
        cg_ef_reset(w->ef);
        for (int i = 0; i < many; i++) w->in[i] = w->out[i] = w->want[i] = w->off[i] = 0.0;
        memset(w->velocity, 0, FLOATS);
        memset(w->received, 0, FLOATS);
        w->scale = w->seen = 1.0;
        w->steps = 0;
    }
}
static void give(lane *w) {
    for (int i = 0; i < many; i++) {
        w->g[i] = below(8) ? (float)((int)below(512) - 256) / 1024.0f : dyadic();
        w->aux[i] = (float)below(64) / 16.0f;
    }
    memcpy(w->grad, w->g, FLOATS);
}

/* What was saved, to be compared with what is saved later. */
typedef struct blob {
    unsigned char *bytes;
    size_t len;
    cg_status status;
} blob;
static blob saved(const cg_ef *ef) {
    blob b;
    const size_t cap = cg_ef_save_bytes(ef);
    b.bytes = (unsigned char *)memory(cap);
    b.len = 0;
    b.status = cg_ef_save(ef, b.bytes, cap, &b.len);
    return b;
}
static int same_blob(const blob *a, const blob *b) {
    return a->status == b->status && a->len == b->len && !memcmp(a->bytes, b->bytes, a->len);
}
static int unchanged(const cg_ef *ef, blob *was) { /* and drops it */
    blob now = saved(ef);
    const int same = was->status == CG_OK && same_blob(&now, was);
    free(now.bytes);
    free(was->bytes);
    return same;
}

/* ---- the book: what the manual says of every kind ---- */

/* The gradient, clipped and times the rate. */
static double gradient(const plan *p, const lane *w, int i) {
    const double g = (double)w->g[i], limit = p->clip < 0.0f ? (double)-p->clip / sqrt((double)w->d.workers) : 1e300;
    return (g > limit ? limit : g < -limit ? -limit : g) * (double)cg_ef_stats_of(w->ef).clipped * w->rate;
}
static int clipping_holds(const world *s, int r) {
    const lane *w = s->lane[r];
    double sum = 0.0, want = 1.0;
    for (int i = 0; i < many; i++) sum += (double)w->g[i] * (double)w->g[i];
    if (s->p->clip > 0.0f && sqrt(sum * s->size) > (double)s->p->clip) want = (double)s->p->clip / sqrt(sum * s->size);
    EXPECT(fabs((double)cg_ef_stats_of(w->ef).clipped - want) <= 0x1p-24 * want, r);
    return 1;
}
/* What goes in at this step, before it is compressed. g is clipped and times the rate. */
static double put(const plan *p, const lane *w, int i, double g, int counted) {
    const double m = (double)p->momentum, u = p->kind == MOMENTUM ? (double)w->velocity[i] / w->seen : 0.0;
    switch (p->kind) {
    case MOMENTUM: return p->nesterov ? m * (u + g) + g : m * u + g;
    case SIGNUM: return (1.0 - m) * g;
    /* M comes again by itself */
    case ONEBIT: return (counted ? m * (double)w->received[i] : 0.0) + (1.0 - m) * g;
    case EF21:
    case DIANA:
    case LAQ: return 0.0;
    default: return g;
    }
}
static double fade(const plan *p) {
    return p->kind == CLASSIC || p->kind == ECQ ? decay_of(p) : p->kind == SIGNUM ? (double)p->momentum : 1.0;
}
static double share(const plan *p) {
    return p->kind == LOCO ? 1.0 - decay_of(p) : p->kind == SCALECOM ? decay_of(p) : 1.0;
}
static double memory_of(const plan *p, const lane *w, int i) {
    switch (p->kind) {
    case LOCO:
    case SCALECOM: return share(p) * (w->in[i] - w->out[i]);
    case SIGNUM: return w->in[i];
    case EF21:
    case DIANA:
    case LAQ: return w->out[i];
    default: return w->in[i] - w->out[i];
    }
}
static double alpha_of(const plan *p, const lane *w, uint64_t step) { /* 1/(1+w) = k/n of random-k */
    cg_tag tag = CG_ZERO;
    cg_op op;
    tag.step = step;
    op = cg_ef_op(w->ef, &tag);
    if (p->alpha != 0.0f) return (double)p->alpha;
    return !op.sample.id || !many ? 1.0
                                  : (double)(float)(fmax(1.0, floor((double)op.sample.value * many + 0.5)) / many);
}
static double peak(const double *x, int i) { /* of 64 neighbours */
    const int first = i / 64 * 64, last = first + 64 < many ? first + 64 : many;
    double most = 0.0;
    for (i = first; i < last; i++) most = fabs(x[i]) > most ? fabs(x[i]) : most;
    return most;
}
/* Roundings: no step makes more than eight of an element, and none of them has a result larger than all that is
   added there together. Bytes: 1/250 of the largest neighbour, at compress and at commit. */
static void account(world *s, lane *w, const float *used) {
    const plan *p = s->p;
    const double f = fade(p);
    double held[ROOM], before;
    w->steps++;
    w->scale = differs(p) ? 1.0 : (double)cg_ef_scale(w->ef);
    if (p->kind == DIANA) w->diana = alpha_of(p, w, s->step);
    for (int i = 0; i < many; i++) {
        const double g = gradient(p, w, i), a = put(p, w, i, g, used != NULL), d = used ? (double)used[i] : 0.0;
        before = fabs(w->want[i]);
        w->in[i] = f * w->in[i] + a;
        w->out[i] = f * w->out[i] + (p->kind == DIANA ? w->diana * d : d);
        w->want[i] = memory_of(p, w, i);
        held[i] = before + fabs(a) + fabs(g) + (p->kind == ONEBIT ? fabs((double)w->received[i]) : 0.0);
        w->moved[i] = held[i] + fabs(d) + fabs(w->want[i]);
        if (!s->exact) w->off[i] += 8.0 * 0x1p-24 * w->moved[i] / w->scale;
    }
    for (int i = 0; i < many && p->bytes; i++) w->off[i] += (peak(held, i) + peak(w->want, i)) / 250.0 * 1.001;
    if (p->reset && w->steps % p->reset == 0)
        for (int i = 0; i < many; i++) w->in[i] = w->out[i] = w->want[i] = w->off[i] = 0.0;
}
static int near(double want, float got, double off) { return fabs(want - (double)got) <= off; }
static int finite_all(const float *x, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!(fabs((double)x[i]) <= 3.5e38)) return 0;
    return 1;
}
/* u of MOMENTUM, v of VARIANCE, v of EF21: one step from what was seen last. */
static int velocity_holds(world *s, int r, const float *used) {
    lane *w = s->lane[r];
    const plan *p = s->p;
    const double m = (double)p->momentum;
    float now[ROOM];
    EXPECT(cg_ef_read(w->ef, CG_EF_VELOCITY, now, (size_t)many) == CG_OK, r);
    EXPECT(finite_all(now, (size_t)many), r);
    for (int i = 0; i < many; i++) {
        const double f = w->scale, g = gradient(p, w, i),
                     u = (double)w->velocity[i] * (p->kind == MOMENTUM ? f / w->seen : 1.0);
        double want = p->kind == MOMENTUM ? (p->nesterov ? m * (u + f * g) : m * u + f * g)
            : w->steps == 1               ? g /* EF21 starts at the first gradient */
                                          : m * u + (1.0 - m) * g;
        double off;
        /* squares of what was put in */
        if (p->kind == VARIANCE) want = u + f * f * w->rate * w->rate * (double)w->aux[i];
        off = 8.0 * 0x1p-24 * (fabs(g) + fabs(u) + fabs(want));
        if (p->kind == MOMENTUM && used && w->index[i]) want = off = 0.0;
        if (p->kind == VARIANCE) want = used && w->index[i] ? 0.0 : want * decay_of(p);
        EXPECT(near(want, now[i], off), r);
    }
    memcpy(w->velocity, now, FLOATS);
    w->seen = w->scale;
    return 1;
}
/* H and M, after a step that counted (mean: of all D), or not. */
static int received_holds(world *s, int r, const float *mean) {
    lane *w = s->lane[r];
    const plan *p = s->p;
    float now[ROOM];
    EXPECT(cg_ef_read(w->ef, CG_EF_RECEIVED, now, (size_t)many) == CG_OK, r);
    for (int i = 0; i < many; i++) {
        const double old = (double)w->received[i], d = mean ? (double)mean[i] : 0.0,
                     by = p->kind == DIANA ? w->diana : 1.0;
        const double want = p->kind == ONEBIT ? (mean ? d : old) : old + by * d;
        EXPECT(near(want, now[i], mean ? 4.0 * 0x1p-24 * (fabs(old) + fabs(d)) : 0.0), r);
        if (r == 0) s->apart[i] += mean ? 8.0 * 0x1p-24 * (fabs(old) + fabs(d) + fabs(want)) : 0.0;
    }
    memcpy(w->received, now, FLOATS);
    return 1;
}
/* used: what counted of this rank; mean: of all ranks. NULL: nothing did. */
static int step_holds(world *s, int r, const float *used, const float *mean) {
    lane *w = s->lane[r];
    float now[ROOM];
    account(s, w, used);
    if (!clipping_holds(s, r)) return 0;
    EXPECT(cg_ef_stats_of(w->ef).kept == 1 || !many, r);
    EXPECT(zones_hold(w), r);
    EXPECT(cg_ef_read(w->ef, CG_EF_ERROR, now, (size_t)many) == CG_OK, r);
    for (int i = 0; i < many; i++)
        if (!near(w->want[i] * w->scale, now[i], w->off[i] * w->scale)) {
            char text[120];
            snprintf(text, sizeof text, "memory[%d] is %.9g, not %.9g +- %.3g, %s", i, (double)now[i],
                w->want[i] * w->scale, w->off[i] * w->scale, used ? "committed" : "rolled back");
            return complain(s, r, text);
        }
    if (has_velocity(s->p) && !velocity_holds(s, r, used)) return 0;
    if (receives(s->p) && !received_holds(s, r, mean)) return 0;
    return 1;
}
static size_t carried(const trip *t, int size, int rank, size_t *first);
/* Mean of all h = H, on every rank; what a second leg keeps is not in H yet. */
static int ranks_hold(world *s) {
    double kept[ROOM];
    if (s->p->kind != EF21 && s->p->kind != DIANA && s->p->kind != LAQ) return 1;
    memset(kept, 0, 2 * FLOATS);
    for (int r = 0; r < s->size && s->road; r++) {
        size_t first, count = carried(s->road, s->size, r, &first);
        for (size_t i = 0; i < count && s->lane[r]->d.carry; i++) kept[first + i] += (double)s->lane[r]->ef->carry[i];
    }
    for (int i = 0; i < many; i++) {
        double sum = -s->size * kept[i], off = s->apart[i] + 0x1p-20 * fabs(kept[i]);
        for (int r = 0; r < s->size; r++) {
            sum += s->lane[r]->want[i];
            off += s->lane[r]->off[i];
        }
        for (int r = 0; r < s->size; r++) EXPECT(near(sum / s->size, s->lane[r]->received[i], off), r);
    }
    return 1;
}

/* ---- in pieces: compress, then commit or rollback ---- */

static cg_tag tag_of(const world *s, int r) {
    cg_tag t = CG_ZERO;
    t.seed = 7;
    t.step = s->step;
    t.tensor = 3;
    t.rank = (uint32_t)r;
    return t;
}
static cg_status squeeze(world *s, int r, size_t cap) {
    lane *w = s->lane[r];
    const cg_tag tag = tag_of(s, r);
    cg_extra side = CG_ZERO;
    side.aux = w->aux;
    return cg_ef_compress_with(w->ef, &tag, s->p->kind == VARIANCE ? &side : NULL, w->g, w->packet, cap, &w->len);
}
/* What counted, and where it has indices (MOMENTUM) or values (VARIANCE). */
static int take(world *s, int r, const void *packet, size_t len) {
    lane *w = s->lane[r];
    const unsigned char *part = (const unsigned char *)packet;
    float ones[ROOM];
    memset(w->index, 0, FLOATS);
    memset(w->used, 0, FLOATS);
    EXPECT(cg_used_decode(NULL, packet, len, 1.0f, 0.0f, w->used, (size_t)many) == CG_OK, r);
    if (s->p->kind != MOMENTUM && s->p->kind != VARIANCE) return 1;
    for (int i = 0; i < many; i++) ones[i] = 1.0f;
    for (size_t at = 0; at < (size_t)many && len;) { /* packets that cover the vector from left to right */
        cg_info info;
        EXPECT(cg_inspect(part, len, &info) == CG_OK && info.packet_bytes <= len, r);
        if (info.index_code || s->p->kind == VARIANCE)
            EXPECT(cg_clear(part, info.packet_bytes, ones + at, (size_t)info.n) == CG_OK, r);
        part += info.packet_bytes;
        len -= info.packet_bytes;
        at += (size_t)info.n;
    }
    for (int i = 0; i < many; i++) w->index[i] = ones[i] == 0.0f;
    return 1;
}
/* Of what was sent about half counted. */
static int halve(world *s, int r) {
    lane *w = s->lane[r];
    const cg_tag tag = tag_of(s, r);
    cg_op op = w->d.op.select.id ? cg_threshold(1e-30f) : cg_dense();
    size_t cap = cg_bound(&op, (size_t)many), room = cg_scratch(&op, (size_t)many);
    unsigned char *packet = (unsigned char *)memory(cap);
    void *scratch = memory(room);
    cg_status status;
    if (!take(s, r, w->packet, w->len)) return 0;
    for (int i = 0; i < many; i++)
        if (below(2)) w->used[i] = 0.0f;
    status = cg_compress(&op, &tag, w->used, (size_t)many, packet, cap, &w->len, scratch, room);
    if (w->cap < w->len) w->packet = (unsigned char *)realloc(w->packet, w->cap = w->len);
    if (!w->packet) exit(2);
    if (status == CG_OK) memcpy(w->packet, packet, w->len);
    free(packet);
    free(scratch);
    EXPECT(status == CG_OK, r);
    return 1;
}
static void read_all(const cg_ef *ef, float *all) { /* what cannot be read is zeros */
    for (int which = 0; which < 3; which++)
        if (cg_ef_read(ef, which, all + which * many, (size_t)many) != CG_OK) memset(all + which * many, 0, FLOATS);
}
/* Errors, and nothing changes: the right packet still counts afterwards. */
static int wrong_packets(world *s, int r) {
    lane *w = s->lane[r];
    static float was[3 * ROOM], now[3 * ROOM], mean[ROOM], longer[ROOM + 1];
    unsigned char other[8 * ROOM], *bad = (unsigned char *)memory(w->len + 64);
    size_t len, other_len;
    const cg_op dense = cg_dense();
    const cg_tag tag = tag_of(s, r);
    memset(mean, 0, FLOATS);
    read_all(w->ef, was);
    EXPECT(cg_compress(&dense, &tag, longer, (size_t)many + 1, other, sizeof other, &other_len, NULL, 0) == CG_OK, r);
    for (int i = 0; i < 14; i++) {
        const void *packet = bad;
        cg_status status;
        memcpy(bad, w->packet, len = w->len);
        switch (i) {
        case 0: packet = NULL; break;
        case 1: len -= 1; break;
        case 2: len = CG_HEADER_BYTES - 1; break;
        case 3: bad[0] ^= 1; break;
        case 4: bad[len - 1] ^= 0x40; break;
        case 5: bad[w->len / 2] ^= 4; break;
        case 6: bad[4]++; break;
        case 7:
            memset(bad + w->len, 0, 8);
            len += 4;
            break;                 /* too long */
        case 8: bad[155]++; break; /* the checksum alone */
        case 9: len = 4; break;
        case 10:
            packet = other;
            len = other_len;
            break; /* of another n */
        case 11: len = 0; break;
        case 12:
            memset(bad, 0x55, w->len);
            if (!len) len = 5;
            break;
        default:
            packet = NULL;
            len = 5;
            break;
        }
        status = cg_ef_commit(w->ef, packet, len, mean);
        if (status == CG_OK) snprintf(note, sizeof note, "packet %d", i);
        EXPECT(status != CG_OK && status != CG_E_STATE, r);
        read_all(w->ef, now);
        EXPECT(!memcmp(was, now, 3 * FLOATS), r);
    }
    free(bad);
    return 1;
}
/* A step is under way: whatever but commit and rollback is out of order. */
static int out_of_order(world *s, int r, const blob *old) {
    lane *w = s->lane[r];
    static float was[3 * ROOM], now[3 * ROOM];
    const void *bufs[1];
    const cg_tag tag = tag_of(s, r);
    unsigned char *packet = (unsigned char *)memory(w->cap);
    size_t len = 5, bytes;
    cg_exchange_desc x = CG_ZERO;
    cg_transport alone = CG_ZERO;
    cg_report report;
    blob b;
    alone.size = 1;
    bufs[0] = old->bytes;
    read_all(w->ef, was);
    EXPECT(cg_ef_compress(w->ef, &tag, w->g, packet, w->cap, &len) == CG_E_STATE, r);
    bytes = cg_ef_exchange_memory(w->ef, &x, &alone);
    bufs[0] = memory(bytes);
    EXPECT(cg_ef_exchange(w->ef, &x, &alone, w->grad, (void *)(uintptr_t)bufs[0], bytes, &report) == CG_E_STATE, r);
    EXPECT(!memcmp(w->grad, w->g, FLOATS), r);
    free((void *)(uintptr_t)bufs[0]);
    bufs[0] = old->bytes;
    EXPECT(cg_ef_load(w->ef, old->bytes, old->len) == CG_E_STATE, r);
    EXPECT(cg_ef_load_mean(w->ef, bufs, &old->len, 1) == CG_E_STATE, r);
    EXPECT(cg_ef_rescale(w->ef, 0.5f) == CG_E_STATE, r);
    b = saved(w->ef);
    EXPECT(b.status == CG_E_STATE, r);
    free(b.bytes);
    free(packet);
    read_all(w->ef, now);
    EXPECT(!memcmp(was, now, 3 * FLOATS), r);
    return 1;
}
/* No step is under way. */
static int nothing_to_end(world *s, int r) {
    lane *w = s->lane[r];
    static float mean[ROOM];
    blob was = saved(w->ef);
    EXPECT(cg_ef_commit(w->ef, w->packet, w->len, mean) == CG_E_STATE, r);
    EXPECT(cg_ef_rollback(w->ef, w->packet, w->len) == CG_E_STATE, r);
    EXPECT(cg_ef_rollback(w->ef, NULL, 0) == CG_E_STATE, r);
    EXPECT(cg_ef_commit(w->ef, NULL, 0, NULL) == CG_E_STATE, r);
    EXPECT(unchanged(w->ef, &was), r);
    return 1;
}
/* Refused, memory as it was to the bit, and the gradient is not in it. */
static int refused(world *s, int r) {
    static const uint32_t bad[] = { 0x7fc00000u, 0x7f800000u, 0xff800000u, 0xffc00001u, 0x7f800001u };
    lane *w = s->lane[r];
    blob was = saved(w->ef);
    const uint32_t end = (uint32_t)many - 1, i = below(3) ? below(end + 1) : below(2) ? 0 : end;
    const float old = w->g[i];
    w->g[i] = special(bad[below(5)]);
    EXPECT(squeeze(s, r, w->cap) == CG_E_NONFINITE, r);
    EXPECT(w->len == 0, r);
    EXPECT(cg_ef_stats_of(w->ef).kept == 0, r);
    w->g[i] = old;
    EXPECT(unchanged(w->ef, &was), r);
    return nothing_to_end(s, r);
}
static int too_small(world *s, int r) {
    lane *w = s->lane[r];
    blob was = saved(w->ef);
    const size_t cap = below(2) ? 0 : below(CG_HEADER_BYTES + 2);
    EXPECT(squeeze(s, r, cap) == CG_E_CAPACITY, r);
    EXPECT(cg_ef_stats_of(w->ef).kept == 0, r);
    EXPECT(unchanged(w->ef, &was), r);
    return nothing_to_end(s, r);
}
/* To another cg_ef, somewhere else; the old one is gone. */
static int moves(world *s, int r) {
    lane *w = s->lane[r], old = *w;
    blob was = saved(w->ef);
    EXPECT(was.status == CG_OK, r);
    EXPECT(lane_init(w) == CG_OK, r);
    lane_drop(&old);
    EXPECT(cg_ef_load(w->ef, was.bytes, was.len) == CG_OK, r);
    EXPECT(cg_ef_set_rate(w->ef, (float)w->rate) == CG_OK, r); /* desc, rate and ratio are the caller's */
    if (w->ratio > 0.0f) EXPECT(cg_ef_set_ratio(w->ef, w->ratio) == CG_OK, r);
    EXPECT(unchanged(w->ef, &was), r);
    return 1;
}
static int changes(world *s) {
    const int what = (int)below(3);
    const float factor = s->halved ? 2.0f : 0.5f, ratio = s->p->ratio / (float)(1u << below(3));
    const float rate = s->p->exact ? (below(2) ? 0.25f : 0.125f) : 0.125f + (float)below(100) / 100.0f;
    for (int r = 0; r < s->size; r++) {
        lane *w = s->lane[r];
        if (what == 0 && remembers_error(s->p)) {
            float kept[ROOM];
            if (w->d.carry) memcpy(kept, w->ef->carry, 4 * w->d.carry);
            EXPECT(cg_ef_rescale(w->ef, factor) == CG_OK, r);
            /* pending, too */
            for (size_t i = 0; i < w->d.carry; i++) EXPECT(w->ef->carry[i] == kept[i] * factor, r);
            for (int i = 0; i < many; i++) {
                w->in[i] *= (double)factor;
                w->out[i] *= (double)factor;
                w->want[i] *= (double)factor;
                w->off[i] *= (double)factor;
            }
            for (int i = 0; i < many && s->p->bytes; i++) w->off[i] += peak(w->want, i) / 250.0 * 1.001;
        }
        if (what == 1) {
            EXPECT(cg_ef_set_rate(w->ef, rate) == CG_OK, r);
            w->rate = (double)rate;
        }
        if (what == 2 && s->p->ratio > 0.0f) {
            EXPECT(cg_ef_set_ratio(w->ef, ratio) == CG_OK, r);
            w->ratio = ratio;
        }
    }
    if (what == 0) s->halved = !s->halved;
    return 1;
}
/* The mean over ranks of what counted, in rank order. */
static void mean_of(const world *s, const int *counts, float *mean) {
    for (int i = 0; i < many; i++) {
        float sum = 0.0f;
        for (int r = 0; r < s->size; r++)
            if (counts[r]) sum += s->lane[r]->used[i];
        mean[i] = sum / (float)s->size;
    }
}
static int result_holds(world *s, int r, const float *old, const float *mean) {
    const lane *w = s->lane[r];
    for (int i = 0; i < many; i++) {
        const double h = (double)old[i], d = (double)mean[i], want = s->p->kind == ONEBIT ? d : h + d;
        EXPECT(near(want, w->mean[i], 4.0 * 0x1p-24 * (fabs(h) + fabs(d))), r);
    }
    return 1;
}
/* One step of all ranks. Where a mean is remembered they succeed together or not at all. */
static int pieces_step(world *s, int event) {
    int counts[MOST] = { 0 }, gone[MOST] = { 0 }, all = !(event == 1);
    const int victim = (int)below((uint32_t)s->size);
    float mean[ROOM], old[ROOM];
    s->step++;
    if (event == 2 && !changes(s)) return 0;
    for (int r = 0; r < s->size; r++) {
        lane *w = s->lane[r];
        blob was;
        give(w);
        if (event == 3 && !moves(s, r)) return 0;
        if (event == 4 && r == victim && !w->d.finite) {
            if (!refused(s, r)) return 0;
            gone[r] = 1;
            all = 0;
            continue;
        }
        if (event == 5 && !too_small(s, r)) return 0;
        if (event == 6 && !nothing_to_end(s, r)) return 0;
        was = saved(w->ef);
        EXPECT(squeeze(s, r, w->cap) == CG_OK, r);
        EXPECT(w->len <= w->cap, r);
        if (w->ratio > 0.0f && !w->d.warmup.kind && !strcmp(s->p->op, "topk:0.1")) {
            cg_info info;
            EXPECT(cg_inspect(w->packet, w->len, &info) == CG_OK &&
                    (double)info.k == fmax(1.0, floor((double)w->ratio * many + 0.5)),
                r);
        }
        if (event == 7 && !out_of_order(s, r, &was)) return 0;
        free(was.bytes);
        if (event == 8 && !wrong_packets(s, r)) return 0;
        if (event == 9 && !halve(s, r)) return 0;
        if (!take(s, r, w->packet, w->len)) return 0;
    }
    for (int r = 0; r < s->size; r++) counts[r] = !gone[r] && (receives(s->p) ? all : event == 1 ? below(2) == 0 : 1);
    mean_of(s, counts, mean);
    for (int r = 0; r < s->size; r++) {
        lane *w = s->lane[r];
        if (gone[r]) continue;
        memcpy(old, w->received, FLOATS);
        memcpy(w->mean, mean, FLOATS);
        if (counts[r])
            EXPECT(cg_ef_commit(w->ef, w->packet, w->len, receives(s->p) || below(2) ? w->mean : NULL) == CG_OK, r);
        else EXPECT(cg_ef_rollback(w->ef, below(2) ? w->packet : NULL, w->len) == CG_OK, r);
        if (!step_holds(s, r, counts[r] ? w->used : NULL, counts[r] && receives(s->p) ? mean : NULL)) return 0;
        if (counts[r] && receives(s->p) && !result_holds(s, r, old, mean)) return 0;
        if (event == 6 && !nothing_to_end(s, r)) return 0;
        if (s->p->kind == LAQ) EXPECT(cg_ef_moved(w->ef, (double)below(100) / 64.0) == CG_OK, r);
    }
    return ranks_hold(s);
}
TEST schedule(const plan *p, int size, uint64_t seed) {
    static world w;
    int ok, events[14] = { 0 };
    warming = seed / 1000 % 2 == 0;
    trusting = seed / 1000 % 3 == 0;
    ok = world_open(&w, p, size);
    warming = trusting = 0;
    dice = seed;
    for (int t = 0; ok && t < 60; t++) {
        int event = (int)below(14);
        if (p->exact && p->exact < 100 && t % p->exact == 0) world_reset(&w);
        if (p->exact && p->exact < 100 && event == 2) event = 0; /* another rate would be another grid */
        events[event]++;
        ok = pieces_step(&w, event);
    }
    world_close(&w);
    ASSERTm(note, ok);
    PASS();
}

/* ---- over a transport that fails ---- */

#define PLAIN(op, exact) \
  { op, CLASSIC, 0, 0, 0, 0, 0, 0, 0, exact, 0, op[0] == 't' ? 0.1f : 0.0f }
static const trip trips[] = { { PLAIN("topk:0.1", 1000), AG, 0, NULL, 0 },
    { PLAIN("topk:0.1", 1000), SERVER, 0, NULL, 0 }, { PLAIN("topk:0.1", 1000), SCATTER, 0, NULL, 0 },
    { PLAIN("topk:0.1", 1000), RING, 0, NULL, 0 }, { PLAIN("topk:0.1", 1000), TREE, 0, NULL, 0 },
    { PLAIN("topk:0.1", 1000), MERGE, 0, NULL, 0 }, { PLAIN("topk:0.1", 1000), SHARED, 0, NULL, 0 },
    { PLAIN("topk:0.1", 1000), REGION, 0, NULL, 0 }, { PLAIN("randk:0.2", 1000), LINEAR, 0, NULL, 0 },
    { PLAIN("topk:0.1", 0), SCATTER, 1, "topk:0.2", 0 }, { PLAIN("efsign", 0), SCATTER, 1, NULL, 0 },
    { PLAIN("efsign", 0), RING, 1, NULL, 0 }, { PLAIN("efsign", 0), TREE, 1, NULL, 0 },
    { PLAIN("efsign", 0), SERVER, 1, "efsign", 0 }, { PLAIN("lowrank:2:10:20", 0), LINEAR, 0, NULL, 0 },
    { PLAIN("qsgd:2", 0), AUTO, 0, NULL, 0 }, { { "topk:0.1", CLASSIC, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0 }, AG, 0, NULL, 0 },
    { { "absmax:4:64", LOCO, 0, 0, 0, 0, 0, 0, 1, 0, 9, 0 }, SCATTER, 0, NULL, 0 },
    { { "topk:0.1", SCALECOM, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }, SHARED, 0, NULL, 0 },
    { { "levels:3:64:max", ECQ, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }, AG, 0, NULL, 0 },
    { { "topk:0.1", MOMENTUM, 0.9f, 0, 0, 0, 2.0f, 0, 0, 0, 0, 0 }, AG, 0, NULL, 0 },
    { { "topk:0.1", MOMENTUM, 0.9f, 0, 0, 0, 0, 1, 0, 0, 0, 0 }, MERGE, 0, NULL, 0 },
    { { "topk:0.1", MOMENTUM, 0.9f, 0, 0, 0, 0, 0, 0, 0, 0, 0 }, SHARED, 0, NULL, 0 },
    { { "topk:0.1", MOMENTUM, 0.9f, 0, 0, 0, 0, 0, 0, 0, 0, 0 }, SCATTER, 0, NULL, 0 },
    { { "sign", SIGNUM, 0.9f, 0, 0, 0, 0, 0, 0, 0, 0, 0 }, AG, 0, NULL, CG_FOLD_VOTE },
    { { "variance:1.5", VARIANCE, 0, 0, 0, 0, 0, 0, 0, 1000, 0, 0 }, AG, 0, NULL, 0 },
    { { "topk:0.1", EF21, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }, AG, 0, NULL, 0 },
    { { "topk:0.1", EF21, 0.9f, 0, 0, 0, 0, 0, 0, 0, 0, 0 }, RING, 0, NULL, 0 },
    { { "efsign", EF21, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }, SCATTER, 1, NULL, 0 },
    { { "absmax:4:64", DIANA, 0, 0, 0.25f, 0, 0, 0, 0, 0, 0, 0 }, AG, 0, NULL, 0 },
    { { "randk:0.25", DIANA, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.25f }, LINEAR, 0, NULL, 0 },
    { { "minmax:3:200:nearest", LAQ, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }, AG, 0, NULL, 0 },
    { { "efsign", ONEBIT, 0.9f, 0, 0, 0, 0, 0, 0, 0, 0, 0 }, SCATTER, 1, NULL, 0 } };
enum { TRIPS = sizeof trips / sizeof *trips };

typedef struct flight {
    world *s;
    const trip *t;
    cg_op back;
    cg_exchange_desc x[MOST];
    cg_extra side[MOST];
    struct wire {
        struct flight *f;
        int rank;
        cg_transport real;
    } wire[MOST];
    int fail_rank, fail_io, late, nan_rank, short_rank, lost_rank; /* < 0: none; lost: has a route of its own */
    int which, ios[MOST], kept[MOST], agreed; /* which: callbacks there are, 0: now these, now those */
    cg_status status[MOST];
    cg_report report[MOST];
    unsigned char *mem[MOST];
    size_t bytes[MOST], given[MOST];
    double results[ROOM], results_off[ROOM]; /* since all was zero */
} flight;

static int fails(struct wire *k, int after) {
    flight *f = k->f;
    if (f->fail_rank != k->rank || f->fail_io != f->ios[k->rank] - after) return 0;
    return after == f->late;
}
static int through(struct wire *k, int code) { return code ? code : fails(k, 1) ? 77 : 0; }
static int by_sum(void *user, float *v, size_t n) {
    struct wire *k = (struct wire *)user;
    if (fails(k, 0)) return 77;
    k->f->ios[k->rank]++;
    return through(k, k->real.allreduce(k->real.user, v, n));
}
static int by_gather(void *user, const void *mine, void *all, size_t bytes) {
    struct wire *k = (struct wire *)user;
    if (fails(k, 0)) return 77;
    k->f->ios[k->rank]++;
    return through(k, k->real.allgather(k->real.user, mine, all, bytes));
}
static int by_cast(void *user, void *buf, size_t bytes, int root) {
    struct wire *k = (struct wire *)user;
    if (fails(k, 0)) return 77;
    k->f->ios[k->rank]++;
    return through(k, k->real.broadcast(k->real.user, buf, bytes, root));
}
static int by_hop(void *user, const void *out, size_t out_bytes, int to, void *in, size_t in_bytes, int from) {
    struct wire *k = (struct wire *)user;
    if (fails(k, 0)) return 77;
    k->f->ios[k->rank]++;
    return through(k, k->real.sendrecv(k->real.user, out, out_bytes, to, in, in_bytes, from));
}
static cg_transport faulty(flight *f, cg_threads_world *threads, int rank) {
    const int which = f->which ? f->which : f->s->step % 2 ? CG_THREADS_ALL : CG_THREADS_SENDRECV;
    cg_transport t;
    struct wire *k = &f->wire[rank];
    k->f = f;
    k->rank = rank;
    k->real = t = cg_threads_transport(threads, rank, which);
    t.user = k;
    if (t.allreduce) t.allreduce = by_sum;
    if (t.allgather) t.allgather = by_gather;
    if (t.broadcast) t.broadcast = by_cast;
    t.sendrecv = by_hop;
    return t;
}
static int pilot(cg_threads_world *threads, int rank, void *user) {
    flight *f = (flight *)user;
    lane *w = f->s->lane[rank];
    const cg_transport t = faulty(f, threads, rank);
    cg_threads_timeout(threads, 10000);
    f->bytes[rank] = cg_ef_exchange_memory(w->ef, &f->x[rank], &t);
    f->mem[rank] = (unsigned char *)memory(f->bytes[rank] + ZONE);
    memset(f->mem[rank] + f->bytes[rank], 0x5a, ZONE);
    f->given[rank] = f->short_rank == rank ? f->bytes[rank] / 2 : f->bytes[rank];
    f->status[rank] = cg_ef_exchange(w->ef, &f->x[rank], &t, w->grad, f->mem[rank], f->given[rank], &f->report[rank]);
    return 0;
}
static void flight_open(flight *f, world *s, const trip *t) {
    memset(f, 0, sizeof *f);
    f->s = s;
    f->t = t;
    if (t->back) f->back = op_of(t->back);
    f->fail_rank = f->nan_rank = f->short_rank = f->lost_rank = -1;
    for (int r = 0; r < s->size; r++) {
        cg_exchange_desc *x = &f->x[r];
        x->route = t->route;
        x->fold = t->fold;
        x->back = t->back ? &f->back : NULL;
        if (t->p.kind == VARIANCE) {
            f->side[r].aux = s->lane[r]->aux;
            x->side = &f->side[r];
        }
    }
}
/* Floats of second-leg memory that a rank needs, and where in the vector they belong. */
static size_t carried(const trip *t, int size, int rank, size_t *first) {
    cg_exchange_desc x = CG_ZERO;
    cg_op back = CG_ZERO;
    size_t at = 0, count = 0;
    x.op = op_of(t->p.op);
    if (t->back) {
        back = op_of(t->back);
        x.back = &back;
    }
    x.route = t->route;
    x.fold = t->fold;
    for (int r = 0; r <= rank; r++) {
        cg_transport k = CG_ZERO;
        k.rank = r;
        k.size = size;
        k.sendrecv = by_hop;
        at += count;
        count = cg_exchange_carry(&x, &k, (size_t)many);
    }
    *first = t->route == SCATTER ? at : 0;
    return count;
}
static int trip_open(world *s, const trip *t, int size) {
    memset(s, 0, sizeof *s);
    s->p = &t->p;
    s->size = size;
    s->exact = t->p.exact;
    s->road = t;
    for (int r = 0; r < size; r++) {
        size_t first;
        lane *w = s->lane[r] = (lane *)calloc(1, sizeof *w);
        if (!w) exit(2);
        w->d = desc_of(&t->p, size);
        if (t->carry) w->d.carry = carried(t, size, r, &first);
        w->rate = (double)or_else(t->p.rate, 1.0f);
        EXPECT(lane_init(w) == CG_OK, r);
        w->scale = w->seen = 1.0;
        w->cap = cg_ef_bound(&w->d);
        w->packet = (unsigned char *)memory(w->cap);
    }
    return 1;
}
/* What the results say, without a word of what counted: sum of all that was put in = sum of all memory + N
   (results + carries). */
static int ledger_holds(flight *f) {
    world *s = f->s;
    const double by = share(s->p);
    double left[ROOM], off[ROOM];
    /* those say it in another way, or forget */
    if (differs(s->p) || s->p->kind == SIGNUM || fade(s->p) != 1.0 || s->p->reset) return 1;
    for (int i = 0; i < many; i++) {
        left[i] = -s->size * f->results[i];
        off[i] = s->size * f->results_off[i];
    }
    for (int r = 0; r < s->size; r++) {
        const lane *w = s->lane[r];
        float now[ROOM];
        size_t first = 0, count = f->t->carry ? carried(f->t, s->size, r, &first) : 0;
        EXPECT(cg_ef_read(w->ef, CG_EF_ERROR, now, (size_t)many) == CG_OK, r);
        for (int i = 0; i < many; i++) {
            left[i] += w->in[i] - (double)now[i] / w->scale / by;
            off[i] += w->off[i] / by;
        }
        for (size_t i = 0; i < count; i++) left[first + i] -= s->size * (double)w->ef->carry[i];
    }
    for (int i = 0; i < many; i++)
        if (!(fabs(left[i]) <= off[i])) {
            char text[120];
            snprintf(text, sizeof text, "%.9g of element %d is lost, beyond %.3g", left[i], i, off[i]);
            return complain(s, -1, text);
        }
    return 1;
}
static int lands(flight *f, int r, blob *was) {
    world *s = f->s;
    lane *w = s->lane[r];
    float mean[ROOM];
    EXPECT(zones_hold(w), r);
    for (int i = 0; i < ZONE; i++) EXPECT(f->mem[r][f->bytes[r] + (size_t)i] == 0x5a, r);
    if (f->status[r] == CG_OK) {
        free(was->bytes);
        if (!take(s, r, f->report[r].used, f->report[r].used_len)) return 0;
        for (int i = 0; i < many; i++) { /* D of all, as far as the result tells */
            const double h = (double)w->received[i], d = (double)w->grad[i];
            mean[i] = s->p->kind == ONEBIT ? w->grad[i] : (float)(d - h);
        }
        return step_holds(s, r, w->used, receives(s->p) ? mean : NULL);
    }
    memcpy(w->g, r == f->nan_rank ? w->grad : w->g, FLOATS);
    EXPECT(!memcmp(w->grad, w->g, FLOATS), r);
    if (!cg_ef_stats_of(w->ef).kept) {
        EXPECT(unchanged(w->ef, was), r);
        return 1;
    }
    free(was->bytes);
    return step_holds(s, r, NULL, NULL);
}
/* One step of all ranks, and what it left. */
static int fly(flight *f) {
    world *s = f->s;
    blob was[MOST];
    double most = 0.0, carries = 0.0;
    int well = 0;
    s->step++;
    for (int r = 0; r < s->size; r++) {
        give(s->lane[r]);
        if (r == f->nan_rank) s->lane[r]->grad[below((uint32_t)many)] = special(0x7fc00000u);
        f->x[r].tag = tag_of(s, 0);
        f->x[r].route = f->lost_rank == r ? (uint32_t)LINEAR : f->t->route;
        f->ios[r] = 0;
        was[r] = saved(s->lane[r]->ef);
    }
    EXPECT(cg_threads_run(s->size, pilot, f) == 0, -1);
    for (int r = 0; r < s->size; r++) {
        const int ok = lands(f, r, &was[r]);
        f->kept[r] = cg_ef_stats_of(s->lane[r]->ef).kept;
        well += f->status[r] == CG_OK;
        free(f->mem[r]);
        if (!ok) return 0;
    }
    f->agreed = well == 0 || well == s->size;
    if (!f->agreed) { /* the last message was lost: nobody can know what the others did */
        world_reset(s);
        memset(f->results, 0, sizeof f->results);
        memset(f->results_off, 0, sizeof f->results_off);
        return 1;
    }
    /* every rank and hop rounds what is no larger than all that was compressed or carried; exact sums of 2^j ranks
       do not */
    for (int r = 0; r < s->size && well && (!s->exact || (s->size & (s->size - 1))); r++) {
        const lane *w = s->lane[r];
        double kept = 0.0;
        for (int i = 0; i < many; i++) most = fmax(most, w->moved[i]);
        for (size_t i = 0; i < w->d.carry; i++) kept = fmax(kept, fabs((double)w->ef->carry[i]));
        carries += kept;
    }
    for (int i = 0; i < many && well; i++) {
        f->results[i] += (double)s->lane[0]->grad[i];
        f->results_off[i] += 8.0 * (s->size + 2) * 0x1p-24 * s->size * (most + carries);
    }
    for (int r = 1; r < s->size && well; r++) EXPECT(!memcmp(s->lane[r]->grad, s->lane[0]->grad, 4 * (size_t)many), r);
    for (int r = 0; r < s->size && s->p->kind == LAQ; r++)
        EXPECT(cg_ef_moved(s->lane[r]->ef, (double)below(100) / 64.0) == CG_OK, r);
    return ledger_holds(f) && ranks_hold(s);
}
/* A failure at every message of every rank, before and after it moved; steps that succeed between. */
static int every_message(flight *f) {
    world *s = f->s;
    for (int r = 0; r < s->size; r++)
        for (int late = 0; late < 2; late++)
            for (int io = 0, more = 1; more; io++) {
                f->fail_rank = -1;
                if (io % 2 == 0) {
                    if (!fly(f)) return 0;
                    EXPECT(f->agreed && f->status[r] == CG_OK, r);
                }
                f->fail_rank = r;
                f->fail_io = io;
                f->late = late;
                if (!fly(f)) return 0;
                more = f->status[r] != CG_OK;
                if (!more) EXPECT(io > 0 && f->ios[r] <= io, r);
                if (more) EXPECT(f->status[r] == CG_E_TRANSPORT && f->report[r].code == 77 && f->kept[r], r);
                for (int q = 0; q < s->size && more; q++) EXPECT(f->kept[q], q);
                if (quick && io > 2) io += 2;
            }
    f->fail_rank = -1;
    return 1;
}
static int every_refusal(flight *f) {
    world *s = f->s;
    for (int r = 0; r < s->size; r++) {
        f->nan_rank = r;
        if (!fly(f)) return 0;
        for (int q = 0; q < s->size; q++)
            EXPECT(f->status[q] == (q == r ? CG_E_NONFINITE : CG_E_PEER) && (q == r || f->report[q].rank == r), q);
        f->nan_rank = -1;
        f->short_rank = r;
        if (!fly(f)) return 0;
        for (int q = 0; q < s->size; q++) EXPECT(f->status[q] == (q == r ? CG_E_MEMORY : CG_E_PEER), q);
        f->short_rank = -1;
        if (f->t->route != LINEAR && f->t->p.kind != DIANA) {
            f->lost_rank = r;
            if (!fly(f)) return 0;
            for (int q = 0; q < s->size; q++) EXPECT(f->status[q] != CG_OK, q);
            f->lost_rank = -1;
        }
        if (!fly(f)) return 0;
        EXPECT(f->status[r] == CG_OK, r);
    }
    return 1;
}
TEST failures(const trip *t, int size) {
    static world w;
    static flight f;
    int ok = trip_open(&w, t, size);
    dice = 1 + (uint64_t)(t - trips) * 8 + (uint64_t)size;
    flight_open(&f, &w, t);
    f.which = CG_THREADS_SENDRECV;
    ok = ok && every_message(&f);
    f.which = CG_THREADS_ALL;
    ok = ok && every_message(&f);
    f.which = 0;
    ok = ok && every_refusal(&f);
    world_close(&w);
    ASSERTm(note, ok);
    PASS();
}

/* All of it, in any order. */
static int any_flight(flight *f) {
    world *s = f->s;
    const int event = (int)below(8), r = (int)below((uint32_t)s->size);
    int ok;
    if (event == 0) {
        f->fail_rank = r;
        f->fail_io = (int)below(6);
        f->late = (int)below(2);
    }
    if (event == 1) f->nan_rank = r;
    if (event == 2) f->short_rank = r;
    for (int q = 0; q < s->size && event == 3; q++)
        if (!moves(s, q)) return 0;
    if (event == 4) {
        if (!changes(s)) return 0;
        for (int i = 0; i < many; i++) { /* other units: the ledger starts with what is pending now */
            f->results[i] = f->results_off[i] = 0.0;
            for (int q = 0; q < s->size; q++) {
                lane *w = s->lane[q];
                f->results[i] += (w->in[i] - w->want[i] / share(s->p)) / s->size;
                f->results_off[i] += w->off[i] / share(s->p) / s->size;
            }
        }
        for (int q = 0; q < s->size; q++) {
            size_t first, count = f->t->carry ? carried(f->t, s->size, q, &first) : 0;
            for (size_t i = 0; i < count; i++) f->results[first + i] -= (double)s->lane[q]->ef->carry[i];
        }
    }
    ok = fly(f);
    f->fail_rank = f->nan_rank = f->short_rank = -1;
    return ok;
}
TEST schedule_on(const trip *t, int size, uint64_t seed) {
    static world w;
    static flight f;
    int ok;
    warming = seed / 100 == 2 && t->fold != CG_FOLD_VOTE;
    ok = trip_open(&w, t, size);
    warming = 0;
    dice = seed;
    flight_open(&f, &w, t);
    for (int i = 0; ok && i < 40; i++) ok = any_flight(&f);
    world_close(&w);
    ASSERTm(note, ok);
    PASS();
}

/* No rank may go that way: all hear why, and memory stays as it is. */
TEST no_road(const char *op, uint32_t route, cg_status want) {
    static world w;
    static flight f;
    trip t = trips[0];
    int ok;
    t.p.op = op;
    t.p.exact = 0;
    t.route = route;
    ok = trip_open(&w, &t, 3);
    flight_open(&f, &w, &t);
    for (int i = 0; ok && i < 3; i++) {
        ok = fly(&f);
        for (int r = 0; r < 3; r++) ok = ok && f.status[r] == want && !f.kept[r] && f.report[r].why && *f.report[r].why;
    }
    world_close(&w);
    ASSERTm(note, ok);
    PASS();
}

/* ---- saving ---- */

/* A blob's checksum: two sums over its words, itself as zeros (see THE PACKET in compgrad.h). */
static uint64_t word_at(const unsigned char *p) {
    return p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 | (uint64_t)p[3] << 24;
}
static void sign_blob(blob *b) {
    const size_t words = b->len / 4;
    uint64_t sums[2] = { 0, 0 };
    memset(b->bytes + 240, 0, 16);
    for (size_t i = 0; i < words; i++) {
        sums[0] += word_at(b->bytes + 4 * i);
        sums[1] += (uint64_t)(words - i) * word_at(b->bytes + 4 * i);
    }
    for (size_t i = 0; i < 16; i++) b->bytes[240 + i] = (unsigned char)(sums[i / 8] >> 8 * (i % 8));
}
static blob copy_of(const blob *b) {
    blob c = *b;
    c.bytes = (unsigned char *)memory(b->len + 64);
    memcpy(c.bytes, b->bytes, b->len);
    memset(c.bytes + b->len, 0, 64);
    return c;
}
static int refuses(world *s, const void *bytes, size_t len, int status) { /* status 0: any error */
    blob was = saved(s->lane[0]->ef);
    const cg_status got = cg_ef_load(s->lane[0]->ef, bytes, len);
    if (status) EXPECT((int)got == status, 0);
    EXPECT(got != CG_OK, 0);
    EXPECT(unchanged(s->lane[0]->ef, &was), 0);
    return 1;
}
static int damaged(world *s, const blob *good) {
    blob b = copy_of(good);
    for (size_t i = 0; i < b.len; i++) {
        b.bytes[i] ^= (unsigned char)(1u << below(8));
        if (!refuses(s, b.bytes, b.len, 0)) return 0;
        b.bytes[i] = good->bytes[i];
    }
    for (size_t len = 0; len < b.len; len++) { /* in memory of just that length, for the sanitizer */
        unsigned char *cut = (unsigned char *)memory(len);
        memcpy(cut, b.bytes, len);
        if (!refuses(s, cut, len, 0)) return 0;
        free(cut);
    }
    for (size_t more = 1; more <= 8; more++)
        if (!refuses(s, b.bytes, b.len + more, 0)) return 0;
    b.len += 4;
    sign_blob(&b);
    if (!refuses(s, b.bytes, b.len, 0)) return 0; /* longer, and the sum is right */
    b.len -= 8;
    sign_blob(&b);
    if (!refuses(s, b.bytes, b.len, 0)) return 0;
    EXPECT(cg_ef_load(s->lane[0]->ef, NULL, good->len) == CG_E_ARG, 0);
    free(b.bytes);
    return 1;
}
/* Intact by its sum, and still not for this one, or not to be believed. */
static int foreign(world *s, const blob *good) {
    static const struct {
        size_t at;
        unsigned char to;
        int status;
    } lies[] = { { 4, 3, CG_E_VERSION }, { 5, 1, CG_E_VERSION }, { 4, 2, CG_E_VERSION }, { 4, 1, 0 },
        { 8, 99, CG_E_MISMATCH }, { 12, 0, CG_E_MISMATCH }, { 16, 1, CG_E_MISMATCH }, { 23, 1, CG_E_MISMATCH },
        { 56, 1, 0 }, { 63, 0x80, 0 }, { 64, 0xff, 0 }, { 71, 0xff, 0 }, { 79, 0xff, 0 }, { 195, 0xc0, 0 },
        { 239, 1, 0 }, { 0, 'x', 0 } };
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        blob b = copy_of(good);
        b.bytes[lies[i].at] = lies[i].to;
        if (memcmp(b.bytes, good->bytes, b.len)) {
            sign_blob(&b);
            if (!refuses(s, b.bytes, b.len, lies[i].status)) return 0;
        }
        free(b.bytes);
    }
    if (!s->p->bytes && s->p->kind != SIGNUM) { /* NaN in it */
        blob b = copy_of(good);
        memset(b.bytes + 256 + 40, 0xff, 4);
        sign_blob(&b);
        if (!refuses(s, b.bytes, b.len, 0)) return 0;
        free(b.bytes);
    }
    {
        blob b = copy_of(good); /* that the test signs as the library does */
        sign_blob(&b);
        EXPECT(!memcmp(b.bytes, good->bytes, b.len), 0);
        free(b.bytes);
    }
    return 1;
}
TEST blobs(const plan *p) {
    static world w, other;
    blob b;
    int ok = world_open(&w, p, 1);
    dice = 5;
    for (int t = 0; ok && t < 6; t++) ok = pieces_step(&w, 0);
    ASSERTm(note, ok);
    b = saved(w.lane[0]->ef);
    ASSERT_EQ(CG_OK, b.status);
    ASSERT_EQ(cg_ef_save_bytes(w.lane[0]->ef), b.len);
    for (size_t cap = 0; cap < b.len; cap += 1 + b.len / 50) {
        unsigned char *little = (unsigned char *)memory(cap);
        size_t len = 7;
        ASSERT_EQ(CG_E_CAPACITY, cg_ef_save(w.lane[0]->ef, little, cap, &len));
        ASSERT_EQ((size_t)0, len);
        free(little);
    }
    ASSERTm(note, pieces_step(&w, 0)); /* what must not change is not what was saved */
    ASSERTm(note, damaged(&w, &b) && foreign(&w, &b));
    for (int i = 0; i < PLANS; i++) { /* every other kind, or form of its memory */
        const plan *q = &plans[i];
        const int same = q->kind == p->kind && q->bytes == p->bytes && has_velocity(q) == has_velocity(p) &&
            warm_starts(q) == warm_starts(p);
        if (same) continue;
        ASSERTm(note, world_open(&other, q, 1));
        ASSERTm(note, refuses(&other, b.bytes, b.len, CG_E_MISMATCH));
        world_close(&other);
    }
    many--;
    ok = is_matrix(p) || (world_open(&other, p, 1) && refuses(&other, b.bytes, b.len, CG_E_MISMATCH));
    if (!is_matrix(p)) world_close(&other);
    many++;
    ASSERTm(note, ok);
    world_close(&w);
    free(b.bytes);
    PASS();
}
/* Saved at step 50, loaded by somebody else: packets and memory are those of who was never stopped, to the bit. */
static int same_step(world *a, world *s) {
    float mean[ROOM], mean_a[ROOM];
    const int counts[MOST] = { 1, 1, 1, 1, 1 };
    s->step = ++a->step;
    for (int r = 0; r < s->size; r++) {
        lane *u = a->lane[r], *w = s->lane[r];
        give(u);
        memcpy(w->g, u->g, FLOATS);
        memcpy(w->aux, u->aux, FLOATS);
        EXPECT(squeeze(a, r, u->cap) == CG_OK && squeeze(s, r, w->cap) == CG_OK, r);
        EXPECT(u->len == w->len && !memcmp(u->packet, w->packet, u->len), r);
        if (!take(a, r, u->packet, u->len)) return 0;
    }
    mean_of(a, counts, mean);
    for (int r = 0; r < s->size; r++) {
        lane *u = a->lane[r], *w = s->lane[r];
        const double moved = (double)below(100) / 64.0;
        blob was;
        memcpy(mean_a, mean, FLOATS);
        memcpy(w->mean, mean, FLOATS);
        if (a->step % 7 == 3)
            EXPECT(cg_ef_rollback(u->ef, NULL, 0) == CG_OK && cg_ef_rollback(w->ef, NULL, 0) == CG_OK, r);
        else
            EXPECT(cg_ef_commit(u->ef, u->packet, u->len, mean_a) == CG_OK &&
                    cg_ef_commit(w->ef, w->packet, w->len, w->mean) == CG_OK,
                r);
        EXPECT(!memcmp(mean_a, w->mean, FLOATS), r);
        if (s->p->kind == LAQ) EXPECT(cg_ef_moved(u->ef, moved) == CG_OK && cg_ef_moved(w->ef, moved) == CG_OK, r);
        was = saved(u->ef);
        EXPECT(unchanged(w->ef, &was), r);
    }
    return 1;
}
TEST resumes(const plan *p) {
    static world a, b;
    int ok;
    dice = 77;
    warming = 1;
    ok = world_open(&a, p, 2) && world_open(&b, p, 2);
    a.exact = p->exact >= 100;
    for (int t = 0; ok && t < 50; t++) ok = pieces_step(&a, t % 11 == 5 ? 1 : 0);
    for (int r = 0; ok && r < 2; r++) {
        blob was = saved(a.lane[r]->ef);
        ok = cg_ef_load(b.lane[r]->ef, was.bytes, was.len) == CG_OK;
        free(was.bytes);
    }
    for (int t = 50; ok && t < 100; t++) ok = same_step(&a, &b);
    warming = 0;
    world_close(&a);
    world_close(&b);
    ASSERTm(note, ok);
    PASS();
}
/* The same where cg_ef_exchange keeps a warm start or the error of a second leg. */
TEST resumes_on(const trip *t, int size) {
    static world a, b;
    static flight f, g;
    int ok = trip_open(&a, t, size) && trip_open(&b, t, size);
    dice = 99;
    flight_open(&f, &a, t);
    flight_open(&g, &b, t);
    for (int i = 0; ok && i < 50; i++) ok = fly(&f) && f.status[0] == CG_OK;
    for (int r = 0; ok && r < size; r++) {
        blob was = saved(a.lane[r]->ef);
        ok = cg_ef_load(b.lane[r]->ef, was.bytes, was.len) == CG_OK && unchanged(b.lane[r]->ef, &was);
        for (int i = 0; i < many; i++) {
            lane *u = a.lane[r], *w = b.lane[r];
            w->in[i] = u->in[i];
            w->out[i] = u->out[i];
            w->want[i] = u->want[i];
            w->off[i] = u->off[i];
            w->velocity[i] = u->velocity[i];
            w->received[i] = u->received[i];
            b.apart[i] = a.apart[i];
            g.results[i] = f.results[i];
            g.results_off[i] = f.results_off[i];
        }
        b.lane[r]->steps = a.lane[r]->steps;
    }
    b.step = a.step;
    for (int i = 0; ok && i < 50; i++) {
        const uint64_t roll = dice;
        ok = fly(&f);
        dice = roll;
        ok = ok && fly(&g) && f.status[0] == CG_OK;
        for (int r = 0; ok && r < size; r++) {
            blob was = saved(a.lane[r]->ef);
            ok = unchanged(b.lane[r]->ef, &was) && !memcmp(a.lane[r]->grad, b.lane[r]->grad, 4 * (size_t)many);
            if (!ok) complain(&b, r, "is another run now");
        }
    }
    world_close(&a);
    world_close(&b);
    ASSERTm(note, ok);
    PASS();
}

/* One blob of every kind, for good: the same on every machine. */
static const struct {
    int plan;
    uint64_t hash;
} frozen_blobs[] = {
    { 0, 0xffdc20c52e4ebf25u },
    { 8, 0x73d931dea65ef2f5u },
    { 11, 0x387f0f4d766fc921u },
    { 14, 0xf24d6aaeb73f42eeu },
    { 16, 0xdd73585614b370ebu },
    { 19, 0x76955dbeb4e630bau },
    { 21, 0xbb423a6549d43f4fu },
    { 22, 0xf0a53be982d56b57u },
    { 24, 0x9980a8c5b85a3219u },
    { 27, 0x99e8f5783da6334au },
    { 31, 0x47db34b7c6b8f29eu },
    { 36, 0x53bbf8f8d065892eu },
    { 38, 0xe0fb160438849549u },
    { 39, 0x14f69375db7b4292u },
    { 42, 0x00f416a51ac11a09u },
    { 44, 0x0989989d1c534929u },
    { 47, 0x87887af7ea87f751u },
    { 48, 0x2d7fd04601c4dc88u },
};
static uint64_t fnv(uint64_t h, const unsigned char *p, size_t len) {
    for (size_t i = 0; i < len; i++) h = (h ^ p[i]) * 0x100000001b3u;
    return h;
}
TEST frozen(int which) {
    static world w;
    const plan *p = &plans[frozen_blobs[which].plan];
    uint64_t hash = 0xcbf29ce484222325u;
    int ok = world_open(&w, p, 2);
    dice = 4242;
    for (int t = 0; ok && t < 12; t++) ok = pieces_step(&w, t == 5 ? 1 : 0);
    for (int r = 0; ok && r < 2; r++) {
        blob b = saved(w.lane[r]->ef);
        hash = fnv(hash, b.bytes, b.len);
        free(b.bytes);
    }
    world_close(&w);
    ASSERTm(note, ok);
    if (hash != frozen_blobs[which].hash)
        printf("\n    { %d, 0x%016llxu },", frozen_blobs[which].plan, (unsigned long long)hash);
    ASSERT_EQm(kind_names[p->kind], hash, frozen_blobs[which].hash);
    PASS();
}

/* ---- N ranks go on as M: the mean of what is pending stays ---- */

static double raw(const cg_ef *ef, int which, int i, float *all) {
    if (i == 0 && cg_ef_read(ef, which, all, (size_t)many) != CG_OK) memset(all, 0, FLOATS);
    return (double)all[i];
}
/* The book starts anew with what is there. */
static int adopt(world *s, int r) {
    lane *w = s->lane[r];
    const plan *p = s->p;
    float all[ROOM];
    const double by = share(p);
    w->scale = w->seen = differs(p) ? 1.0 : (double)cg_ef_scale(w->ef);
    w->steps = w->ef->steps;
    for (int i = 0; i < many; i++) {
        const double e = raw(w->ef, CG_EF_ERROR, i, all) / w->scale;
        w->in[i] = differs(p) ? 0.0 : e / by;
        w->out[i] = differs(p) ? e : 0.0;
        w->want[i] = e;
        w->off[i] = by == 1.0 && w->scale == 1.0 ? 0.0 : 0x1p-50 * fabs(e);
    }
    if (has_velocity(p)) EXPECT(cg_ef_read(w->ef, CG_EF_VELOCITY, w->velocity, (size_t)many) == CG_OK, r);
    if (receives(p)) EXPECT(cg_ef_read(w->ef, CG_EF_RECEIVED, w->received, (size_t)many) == CG_OK, r);
    return 1;
}
static double squared_if(const plan *p, int which, double scale) {
    return which == CG_EF_RECEIVED || differs(p)         ? 1.0
        : which == CG_EF_VELOCITY && p->kind == VARIANCE ? scale * scale
                                                         : scale;
}
static int hand_over(world *a, world *s) {
    blob blobs_of[MOST];
    const void *bufs[MOST];
    size_t lens[MOST];
    static float all[MOST][ROOM], now[ROOM];
    char text[160];
    const int round = (a->size & (a->size - 1)) || !a->exact || a->p->exact < 100;
    for (int r = 0; r < a->size; r++) {
        blobs_of[r] = saved(a->lane[r]->ef);
        bufs[r] = blobs_of[r].bytes;
        lens[r] = blobs_of[r].len;
    }
    for (int r = 0; r < s->size; r++) EXPECT(cg_ef_load_mean(s->lane[r]->ef, bufs, lens, (size_t)a->size) == CG_OK, r);
    for (int which = 0; which < 3; which++)
        for (int i = 0; i < many; i++) {
            double mean = 0.0, mine[MOST], off = 0.0;
            for (int r = 0; r < a->size; r++)
                mean += raw(a->lane[r]->ef, which, i, all[r]) /
                    squared_if(a->p, which, (double)cg_ef_scale(a->lane[r]->ef)) / a->size;
            if (round || which) off = 0x1p-23 * fabs(mean) + 1e-45;
            /* it is H */
            for (int r = 0; r < a->size && which == 0 && differs(a->p); r++)
                off += a->lane[r]->off[i] / a->size + (r == 0 ? a->apart[i] : 0.0);
            if (s->p->bytes && which == 0) {
                double peaks = 0.0; /* of the mean, no larger than the mean of the largest */
                for (int r = 0; r < a->size; r++) {
                    const int first = i / 64 * 64;
                    double most = 0.0;
                    for (int j = first; j < first + 64 && j < many; j++) most = fmax(most, fabs((double)all[r][j]));
                    peaks += most / a->size;
                }
                off += peaks / 250.0;
            }
            for (int r = 0; r < s->size; r++) {
                mine[r] = raw(s->lane[r]->ef, which, i, now) /
                    squared_if(s->p, which, (double)cg_ef_scale(s->lane[r]->ef));
                if (s->size > 1 && r + 1 < s->size) continue;
                if (!(fabs(mine[r] - mean) <= off)) {
                    snprintf(text, sizeof text, "vector %d of %d ranks: mean[%d] is %.9g, not %.9g +- %.3g", which,
                        a->size, i, mine[r], mean, off);
                    return complain(s, r, text);
                }
            }
            if (which == CG_EF_RECEIVED) {
                s->apart[i] = a->apart[i] + 0x1p-22 * fabs(mean);
                for (int r = 0; r < a->size; r++)
                    s->apart[i] += a->lane[r]->off[i] + 0x1p-22 * fabs(a->lane[r]->want[i]);
            }
        }
    for (int r = 0; r < a->size; r++) free(blobs_of[r].bytes);
    for (int r = 0; r < s->size; r++)
        if (!adopt(s, r)) return 0;
    if (round) s->exact = 0;
    s->step = a->step;
    return 1;
}
/* One bad blob among good ones: an error, and nothing changes. */
TEST bad_among(const plan *p) {
    static world a, b;
    blob good[3], was;
    const void *bufs[3];
    size_t lens[3];
    int ok = world_open(&a, p, 3) && world_open(&b, p, 1);
    dice = 12;
    for (int t = 0; ok && t < 4; t++) ok = pieces_step(&a, 0) && pieces_step(&b, 0);
    ASSERTm(note, ok);
    for (int r = 0; r < 3; r++) {
        good[r] = saved(a.lane[r]->ef);
        bufs[r] = good[r].bytes;
        lens[r] = good[r].len;
    }
    for (int bad = 0; bad < 3; bad++)
        for (int how = 0; how < 4; how++) {
            was = saved(b.lane[0]->ef);
            if (how == 0) good[bad].bytes[300] ^= 1;
            if (how == 1) lens[bad] -= 4;
            if (how == 2) bufs[bad] = NULL;
            if (how == 3) {
                good[bad].bytes[8] ^= 1;
                sign_blob(&good[bad]);
            }
            ASSERTm(p->op, cg_ef_load_mean(b.lane[0]->ef, bufs, lens, 3) != CG_OK);
            ASSERTm(p->op, unchanged(b.lane[0]->ef, &was));
            if (how == 0) good[bad].bytes[300] ^= 1;
            if (how == 3) {
                good[bad].bytes[8] ^= 1;
                sign_blob(&good[bad]);
            }
            lens[bad] = good[bad].len;
            bufs[bad] = good[bad].bytes;
        }
    ASSERT_EQ(CG_OK, cg_ef_load_mean(b.lane[0]->ef, bufs, lens, 3));
    for (int r = 0; r < 3; r++) free(good[r].bytes);
    world_close(&a);
    world_close(&b);
    PASS();
}
TEST elastic(const plan *p, int from, int to) {
    static world a, b;
    int ok = world_open(&a, p, from) && world_open(&b, p, to);
    dice = (uint64_t)(from * 10 + to);
    if (p->exact < 100) a.exact = b.exact = 0;
    for (int t = 0; ok && t < 12; t++) ok = pieces_step(&a, t % 5 == 3 ? 1 : 0);
    for (int t = 0; ok && t < 2; t++) ok = pieces_step(&b, 0); /* what is to be forgotten */
    ok = ok && hand_over(&a, &b);
    for (int t = 0; ok && t < 6; t++) ok = pieces_step(&b, t == 3 ? 1 : 0);
    world_close(&a);
    world_close(&b);
    ASSERTm(note, ok);
    PASS();
}
/* What is pending for the mean: the mean of errors, and all carries. */
static int pending_of(const flight *f, double *sum, double *size) {
    const world *s = f->s;
    float now[ROOM];
    for (int i = 0; i < many; i++) sum[i] = size[i] = 0.0;
    for (int r = 0; r < s->size; r++) {
        const lane *w = s->lane[r];
        size_t first, count = carried(f->t, s->size, r, &first);
        EXPECT(cg_ef_read(w->ef, CG_EF_ERROR, now, (size_t)many) == CG_OK, r);
        for (int i = 0; i < many; i++) {
            sum[i] += (double)now[i] / s->size;
            size[i] += fabs((double)now[i]) / s->size;
        }
        for (size_t i = 0; i < count && w->d.carry; i++) {
            sum[first + i] += (double)w->ef->carry[i];
            size[first + i] += fabs((double)w->ef->carry[i]);
        }
    }
    return 1;
}
static int hand_over_carries(flight *f, flight *g) {
    world *a = f->s, *s = g->s;
    blob blobs_of[MOST];
    const void *bufs[MOST];
    size_t lens[MOST];
    double before[ROOM], after[ROOM], size[ROOM], none[ROOM], carries = 0.0;
    for (int r = 0; r < a->size; r++) {
        const blob b = saved(a->lane[r]->ef);
        blobs_of[r] = copy_of(&b);
        /* no byte more, for the sanitizer */
        bufs[r] = blobs_of[r].bytes = (unsigned char *)realloc(blobs_of[r].bytes, b.len);
        lens[r] = b.len;
        free(b.bytes);
        for (size_t i = 0; i < a->lane[r]->d.carry; i++) carries += fabs((double)a->lane[r]->ef->carry[i]);
    }
    EXPECT(a->size < 3 || carries > 0.0, -1);
    for (int r = 0; r < s->size; r++) EXPECT(cg_ef_load_mean(s->lane[r]->ef, bufs, lens, (size_t)a->size) == CG_OK, r);
    if (!pending_of(f, before, size) || !pending_of(g, after, none)) return 0;
    for (int i = 0; i < many; i++) EXPECT(fabs(before[i] - after[i]) <= 0x1p-23 * size[i], -1);
    for (int r = 0; r < a->size; r++) free(blobs_of[r].bytes);
    for (int r = 0; r < s->size; r++)
        if (!adopt(s, r)) return 0;
    for (int r = 0; r < s->size; r++) { /* the ledger counts what came over, carries too, as put in */
        size_t first, count = carried(g->t, s->size, r, &first);
        for (size_t i = 0; i < count && s->lane[r]->d.carry; i++)
            for (int q = 0; q < s->size; q++) {
                lane *w = s->lane[q];
                w->in[first + i] += (double)s->lane[r]->ef->carry[i];
                w->out[first + i] += (double)s->lane[r]->ef->carry[i];
            }
    }
    memset(g->results, 0, sizeof g->results);
    memset(g->results_off, 0, sizeof g->results_off);
    s->step = a->step;
    return 1;
}
TEST elastic_on(const trip *t, int from, int to) {
    static world a, b;
    static flight f, g;
    int ok = trip_open(&a, t, from) && trip_open(&b, t, to);
    dice = (uint64_t)(from * 10 + to);
    flight_open(&f, &a, t);
    flight_open(&g, &b, t);
    for (int i = 0; ok && i < 8; i++) ok = fly(&f) && f.status[0] == CG_OK;
    for (int i = 0; ok && i < 2; i++) ok = fly(&g) && g.status[0] == CG_OK;
    ok = ok && hand_over_carries(&f, &g);
    for (int i = 0; ok && i < 5; i++) ok = fly(&g) && g.status[0] == CG_OK;
    world_close(&a);
    world_close(&b);
    ASSERTm(note, ok);
    PASS();
}

/* ---- operators that expand ---- */

static double norm(const float *x, size_t n) {
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
    return sqrt(sum);
}
static double shower(float *g, size_t n) {
    for (size_t i = 0; i < n; i++) g[i] = dyadic();
    return norm(g, n);
}
/* Error feedback as the textbook has it, with the operator as it is: how large memory gets. */
static double textbook(const char *text, size_t n, int steps) {
    static float e[ROOM], g[ROOM], d[ROOM];
    const cg_op op = op_of(text);
    const size_t cap = cg_bound(&op, n), room = cg_scratch(&op, n);
    void *packet = memory(cap), *scratch = memory(room);
    cg_tag tag = CG_ZERO;
    double most = 0.0;
    size_t len;
    memset(e, 0, sizeof e);
    for (int t = 0; t < steps && most < 1e30; t++) {
        shower(g, n);
        for (size_t i = 0; i < n; i++) e[i] += g[i];
        tag.step = (uint64_t)t;
        if (cg_compress(&op, &tag, e, n, packet, cap, &len, scratch, room) != CG_OK ||
            cg_decompress(packet, len, d, n) != CG_OK) {
            most = 1e38;
            break;
        }
        for (size_t i = 0; i < n; i++) e[i] -= d[i];
        most = fmax(most, norm(e, n));
    }
    free(packet);
    free(scratch);
    return most;
}
/* w as compgrad.h states it, so d = 1/(1+w): |e| <= sqrt(1-d) (|e| + |g|) in the mean of squares, which stays below
   |g| sqrt(1-d) / (1 - sqrt(1-d)). Twice that, for it is one draw and not the mean. */
TEST stays_bounded(const char *text, size_t n, double w, int diverges, uint32_t kind) {
    static float g[ROOM];
    cg_ef_desc d = CG_ZERO;
    cg_ef ef;
    void *mem, *packet;
    const double keep = sqrt(1.0 - 1.0 / (1.0 + w));
    double largest = 0.0, most = 0.0;
    size_t len;
    dice = 31;
    d.op = op_of(text);
    d.n = n;
    d.kind = kind;
    mem = memory(cg_ef_memory(&d));
    packet = memory(cg_ef_bound(&d));
    ASSERT_EQ(CG_OK, cg_ef_init(&ef, &d, mem, cg_ef_memory(&d)));
    for (int t = 0; t < 300; t++) {
        const double size = shower(g, n);
        cg_tag tag = CG_ZERO;
        tag.step = (uint64_t)t;
        ASSERT_EQ(CG_OK, cg_ef_compress(&ef, &tag, g, packet, cg_ef_bound(&d), &len));
        ASSERT_EQ(CG_OK, cg_ef_commit(&ef, packet, len, NULL));
        largest = fmax(largest, size);
        most = fmax(most, norm(cg_ef_residual(&ef), n) / (double)cg_ef_scale(&ef));
        ASSERTm(text, most <= 2.0 * largest * keep / (1.0 - keep));
    }
    if (diverges) ASSERTm(text, textbook(text, n, 300) > 1e6 * largest); /* so the bound above is not for free */
    free(mem);
    free(packet);
    PASS();
}

/* ---- limits ---- */

TEST lengths(const plan *p, int length) {
    static const int events[] = { 0, 1, 6, 3, 0, 7, 1, 0, 9, 5, 0, 4, 8, 0 };
    static world w;
    int ok;
    many = length;
    dice = (uint64_t)length;
    ok = world_open(&w, p, 2);
    for (size_t t = 0; ok && t < sizeof events / sizeof *events; t++) {
        if (p->exact && p->exact < 100 && t % (size_t)p->exact == 0) world_reset(&w);
        ok = pieces_step(&w, (events[t] == 4 || events[t] == 9) && !length ? 0 : events[t]);
    }
    world_close(&w);
    many = N;
    ASSERTm(note, ok);
    PASS();
}
/* More than a chunk, and not a whole number of anything. */
TEST long_ones(const plan *p) {
    static const int events[] = { 0, 1, 9, 3, 2, 0 };
    static world w;
    int ok;
    many = 4437;
    dice = 6;
    ok = world_open(&w, p, 2);
    w.exact = p->exact >= 100;
    for (size_t t = 0; ok && t < sizeof events / sizeof *events; t++) ok = pieces_step(&w, events[t]);
    world_close(&w);
    many = N;
    ASSERTm(note, ok);
    PASS();
}
TEST lengths_on(const trip *t, int length) {
    static world w;
    static flight f;
    int ok;
    many = length;
    dice = (uint64_t)length + 1;
    ok = trip_open(&w, t, 3);
    flight_open(&f, &w, t);
    for (int i = 0; ok && i < 4; i++) ok = fly(&f) && (f.status[0] == CG_OK || complain(&w, 0, "failed"));
    for (int r = 0; ok && r < 3; r++) { /* and a failure, for each */
        f.fail_rank = r;
        f.fail_io = r % 2;
        ok = fly(&f);
        if (ok && (f.status[r] == CG_OK || (length && !f.kept[r])))
            ok = complain(&w, r, f.status[r] == CG_OK ? "no failure" : "not kept");
    }
    world_close(&w);
    many = N;
    ASSERTm(note, ok);
    PASS();
}
/* Values that no sum holds: memory stays finite, whatever is sent or not. */
TEST huge(const plan *p) {
    static const float sizes[] = { 3e38f, -3.4e38f, 2e38f, 3.4028234e38f };
    static world w;
    static float all[3 * ROOM];
    float mean[ROOM];
    ASSERTm(note, world_open(&w, p, 1));
    dice = 3;
    for (int t = 0; t < 24; t++) {
        lane *k = w.lane[0];
        cg_status s;
        w.step++;
        give(k);
        for (int i = 0; i < N; i++)
            if (below(3)) k->g[i] = sizes[t % 6 < 3 ? 0 : below(4)];
        s = squeeze(&w, 0, k->cap);
        ASSERT_EQ_FMTm(p->op, (int)CG_OK, (int)s, "%d");
        memset(mean, 0, FLOATS);
        if (receives(p)) ASSERTm(note, take(&w, 0, k->packet, k->len));
        if (t % 4 == 3) s = cg_ef_rollback(k->ef, k->packet, k->len);
        else s = cg_ef_commit(k->ef, k->packet, k->len, receives(p) ? k->used : NULL);
        ASSERT_EQ(CG_OK, s);
        read_all(k->ef, all);
        ASSERTm(p->op, finite_all(all, 3 * N));
        if (t == 12) ASSERTm(note, moves(&w, 0));
        if (t == 18 && remembers_error(p)) ASSERT_EQ(CG_OK, cg_ef_rescale(k->ef, 1e30f));
        read_all(k->ef, all);
        ASSERTm(p->op, finite_all(all, 3 * N));
    }
    world_close(&w);
    PASS();
}
/* Numbers below 2^-126 are numbers: nothing of them is lost. */
TEST tiny(const plan *p) {
    static world w;
    static float all[ROOM];
    ASSERTm(note, world_open(&w, p, 1));
    dice = 4;
    for (int t = 0; t < 30; t++) {
        lane *k = w.lane[0];
        w.step++;
        for (int i = 0; i < N; i++) {
            k->g[i] = (float)((int)below(64) - 32) * 1e-45f;
            k->aux[i] = 1e-45f;
        }
        ASSERT_EQ(CG_OK, squeeze(&w, 0, k->cap));
        ASSERTm(note, take(&w, 0, k->packet, k->len));
        if (t % 5 == 4) ASSERT_EQ(CG_OK, cg_ef_rollback(k->ef, k->packet, k->len));
        else ASSERT_EQ(CG_OK, cg_ef_commit(k->ef, k->packet, k->len, NULL));
        account(&w, k, t % 5 == 4 ? NULL : k->used);
        ASSERT_EQ(CG_OK, cg_ef_read(k->ef, CG_EF_ERROR, all, N));
        for (int i = 0; i < N; i++) ASSERT_EQm(p->op, k->want[i], (double)all[i]);
    }
    world_close(&w);
    PASS();
}
static cg_status try_init(const cg_ef_desc *d) {
    const size_t bytes = cg_ef_memory(d);
    void *mem = memory(bytes);
    cg_ef ef;
    const cg_status s = cg_ef_init(&ef, d, mem, bytes);
    free(mem);
    return bytes || s != CG_OK ? s : CG_E_STATE; /* 0 bytes are for those that are refused */
}
TEST nonsense(void) {
    const float nan = special(0x7fc00000u), inf = special(0x7f800000u);
    const cg_ef_desc good = desc_of(&plans[0], 2);
    cg_ef_desc d;
    cg_ef ef;
    char mem[64];
#define TOO_LONG(change)                                                            \
  do {                                                                              \
    d = good;                                                                       \
    change;                                                                         \
    ASSERTm(#change, try_init(&d) == CG_E_ARG || try_init(&d) == CG_E_UNSUPPORTED); \
    ASSERT_EQm(#change, (size_t)0, cg_ef_memory(&d));                               \
  } while (0)
#define BAD(change)                                  \
  do {                                               \
    TOO_LONG(change);                                \
    ASSERT_EQm(#change, (size_t)0, cg_ef_bound(&d)); \
  } while (0)
    ASSERT_EQ(CG_OK, try_init(&good));
    BAD(d.kind = 99);
    BAD(d.kind = MOMENTUM; d.momentum = nan);
    BAD(d.kind = MOMENTUM; d.momentum = 1.5f);
    BAD(d.kind = MOMENTUM; d.momentum = -0.5f);
    BAD(d.kind = MOMENTUM; d.momentum = 0.9f; d.bytes = 1);
    BAD(d.kind = EF21; d.bytes = 1);
    BAD(d.kind = SIGNUM; d.momentum = 0.9f; d.bytes = 1);
    BAD(d.kind = EF21; d.reset = 5);
    BAD(d.kind = DIANA; d.reset = 5);
    BAD(d.decay = 1.5f);
    BAD(d.decay = nan);
    BAD(d.decay = -0.1f);
    BAD(d.kind = ECQ; d.alpha = nan);
    BAD(d.kind = DIANA; d.alpha = -1.0f);
    BAD(d.clip = nan);
    BAD(d.clip = -1.0f);
    BAD(d.clip = inf);
    BAD(d.rate = nan);
    BAD(d.rate = inf);
    BAD(d.clip_by = 7);
    BAD(d.workers = -1);
    BAD(d.momentum = 0.5f); /* of CLASSIC */
    BAD(d.nesterov = 1);
    BAD(d.kind = LAQ; d.laq_step = 0.0f);
    BAD(d.kind = LAQ; d.laq_step = nan);
    BAD(d.warmup.kind = 77);
    BAD(d.warmup.kind = CG_WARMUP_TABLE; d.warmup.stages = 3);
    BAD(d.rule_count = 2);
    BAD(d.op.select.value = nan);
    BAD(d.op.select.value = 2.0f);
    BAD(d.op.select.id = 200);
    BAD(d.op = op_of("variance:2")); /* only VARIANCE has one */
    BAD(d.kind = VARIANCE);
    BAD(d.op = op_of("lowrank:2:10:21"));
    TOO_LONG(d.n = SIZE_MAX);
    TOO_LONG(d.n = SIZE_MAX / 4 + 1);
    TOO_LONG(d.n = SIZE_MAX / 2; d.bytes = 1);
    TOO_LONG(d.n = SIZE_MAX / 8; d.kind = EF21);
    TOO_LONG(d.carry = SIZE_MAX / 4);
    TOO_LONG(d.carry = SIZE_MAX);
    ASSERT_EQ((size_t)0, cg_ef_memory(NULL));
    ASSERT_EQ((size_t)0, cg_ef_bound(NULL));
    ASSERT_EQ(CG_E_ARG, cg_ef_init(NULL, &good, mem, sizeof mem));
    ASSERT_EQ(CG_E_ARG, cg_ef_init(&ef, NULL, mem, sizeof mem));
    ASSERT_EQ(CG_E_MEMORY, cg_ef_init(&ef, &good, mem, sizeof mem));
    ASSERT_EQ(CG_E_MEMORY, cg_ef_init(&ef, &good, NULL, cg_ef_memory(&good)));
    ASSERT_EQ(CG_E_MEMORY, cg_ef_init(&ef, &good, mem, 0));
    PASS();
}
/* A description without n, and a state that was never initialised: nothing would be averaged, so both are refused, on
   all ranks and in words. */
static int without_init(cg_threads_world *net, int rank, void *user) {
    const cg_transport ranks = cg_threads_transport(net, rank, CG_THREADS_ALL), *transport = &ranks;
    int *wrong = (int *)user + 8 * rank;
    cg_exchange_desc x = CG_ZERO;
    cg_report report;
    cg_ef_desc d = CG_ZERO;
    float grad[4] = { 1.0f, 2.0f, 3.0f, 4.0f };
    unsigned char mem[64], room[8192];
    uint8_t packet[512];
    size_t len;
    cg_ef ef;
    memset(&ef, 0, sizeof ef);
    d.op = cg_topk(0.5f);
    if (cg_ef_memory(&d) != 0 || cg_ef_bound(&d) != 0) wrong[0]++;
    if (cg_ef_init(&ef, &d, mem, sizeof mem) != CG_E_ARG) wrong[1]++;
    if (cg_ef_exchange(&ef, &x, transport, grad, room, sizeof room, &report) != CG_E_STATE) wrong[2]++;
    else if (!strstr(report.why, "cg_ef_init")) wrong[3]++;
    if (grad[0] != 1.0f || grad[3] != 4.0f) wrong[4]++;
    if (cg_ef_compress(&ef, NULL, grad, packet, sizeof packet, &len) != CG_E_STATE) wrong[5]++;
    if (cg_ef_save(&ef, packet, sizeof packet, &len) != CG_E_STATE) wrong[6]++;
    if (cg_ef_rescale(&ef, 2.0f) != CG_E_STATE || cg_ef_set_rate(&ef, 2.0f) != CG_E_STATE) wrong[7]++;
    return 0;
}
TEST init_forgotten(void) {
    for (int size = 1; size <= 3; size++) {
        int wrong[3][8];
        memset(wrong, 0, sizeof wrong);
        ASSERT_EQ(0, cg_threads_run(size, without_init, wrong));
        for (int rank = 0; rank < size; rank++)
            for (int i = 0; i < 8; i++) ASSERT_EQ_FMT(0, wrong[rank][i] * (i + 1), "%d");
    }
    PASS();
}
/* Arguments that are not, on one that works. */
TEST bad_calls(void) {
    static world w;
    const float nan = special(0x7fc00000u);
    cg_tag tag = CG_ZERO;
    blob was;
    size_t len;
    lane *k;
    float out[ROOM];
    ASSERTm(note, world_open(&w, &plans[0], 1));
    k = w.lane[0];
    ASSERTm(note, pieces_step(&w, 0));
    was = saved(k->ef);
    ASSERT_EQ(CG_E_ARG, cg_ef_compress(k->ef, &tag, NULL, k->packet, k->cap, &len));
    ASSERT_EQ(CG_E_ARG, cg_ef_compress(k->ef, &tag, k->g, NULL, k->cap, &len));
    ASSERT_EQ(CG_E_ARG, cg_ef_compress(k->ef, &tag, k->g, k->packet, k->cap, NULL));
    ASSERT_EQ(CG_E_ARG, cg_ef_compress(NULL, &tag, k->g, k->packet, k->cap, &len));
    ASSERT_EQ(CG_E_ARG, cg_ef_commit(NULL, k->packet, k->len, NULL));
    ASSERT_EQ(CG_E_ARG, cg_ef_rollback(NULL, k->packet, k->len));
    ASSERT_EQ(CG_E_ARG, cg_ef_rescale(k->ef, nan));
    ASSERT_EQ(CG_E_ARG, cg_ef_rescale(NULL, 1.0f));
    ASSERT_EQ(CG_E_ARG, cg_ef_set_rate(k->ef, nan));
    ASSERT_EQ(CG_E_ARG, cg_ef_set_ratio(k->ef, nan));
    ASSERT_EQ(CG_E_ARG, cg_ef_set_ratio(k->ef, 0.0f));
    ASSERT_EQ(CG_E_ARG, cg_ef_set_ratio(k->ef, 1.5f));
    ASSERT_EQ(CG_E_ARG, cg_ef_moved(k->ef, (double)nan));
    ASSERT_EQ(CG_E_ARG, cg_ef_moved(k->ef, -1.0));
    ASSERT_EQ(CG_E_ARG, cg_ef_save(k->ef, NULL, 1000, &len));
    ASSERT_EQ(CG_E_ARG, cg_ef_load(NULL, was.bytes, was.len));
    ASSERT_EQ(CG_E_ARG, cg_ef_load_mean(k->ef, NULL, NULL, 0));
    ASSERT_EQ(CG_E_MISMATCH, cg_ef_read(k->ef, CG_EF_ERROR, out, N - 1));
    ASSERT_EQ(CG_E_UNSUPPORTED, cg_ef_read(k->ef, CG_EF_VELOCITY, out, N));
    ASSERT_EQ(CG_E_ARG, cg_ef_read(k->ef, 3, out, N));
    ASSERTm("something changed", unchanged(k->ef, &was));
    ASSERTm(note, pieces_step(&w, 0));
    world_close(&w);
    PASS();
}
/* A mean that is not finite is not remembered, and a missing one is noticed; then the right one counts. */
TEST bad_means(const plan *p) {
    static world w;
    static float was[3 * ROOM], now[3 * ROOM];
    const uint32_t bad[] = { 0x7fc00000u, 0x7f800000u };
    lane *k;
    ASSERTm(note, world_open(&w, p, 1));
    k = w.lane[0];
    for (int t = 0; t < 3; t++) ASSERTm(note, pieces_step(&w, 0));
    w.step++;
    give(k);
    ASSERT_EQ(CG_OK, squeeze(&w, 0, k->cap));
    ASSERTm(note, take(&w, 0, k->packet, k->len));
    read_all(k->ef, was);
    ASSERT_EQ(CG_E_ARG, cg_ef_commit(k->ef, k->packet, k->len, NULL));
    for (int i = 0; i < 2; i++) {
        memcpy(k->mean, k->used, FLOATS);
        k->mean[77] = special(bad[i]);
        ASSERT_EQ(CG_E_NONFINITE, cg_ef_commit(k->ef, k->packet, k->len, k->mean));
    }
    read_all(k->ef, now);
    ASSERT_EQ(0, memcmp(was, now, 3 * FLOATS));
    memcpy(k->mean, k->used, FLOATS);
    ASSERT_EQ(CG_OK, cg_ef_commit(k->ef, k->packet, k->len, k->mean));
    ASSERTm(note, step_holds(&w, 0, k->used, k->used));
    world_close(&w);
    PASS();
}

/* A codec of the user's that fails: the gradient is in memory, as after a rollback, or it is not there at all. */
static int codec_fails;
static size_t codec_bound(const cg_codec *self, const cg_stage *stage, size_t n) {
    (void)self;
    (void)stage;
    return 4 * n + 4;
}
static cg_status codec_compress(const cg_codec *self, const cg_stage *stage, const cg_tag *tag, const float *x,
    size_t n, void *out, size_t cap, size_t *len) {
    (void)self;
    (void)stage;
    (void)tag;
    (void)cap;
    memcpy(out, x, *len = 4 * n);
    return codec_fails ? CG_E_UNSUPPORTED : CG_OK;
}
static cg_status codec_decode(const cg_codec *self, const cg_stage *stage, const void *in, size_t len, size_t n,
    size_t first, size_t count, float *out) {
    (void)self;
    (void)stage;
    (void)n;
    for (size_t i = 0; i < count; i++) {
        if (4 * (first + i) + 4 > len) return CG_E_CORRUPT;
        memcpy(&out[i], (const char *)in + 4 * (first + i), 4);
        if (!(fabs((double)out[i]) < 3.5e38)) return CG_E_CORRUPT;
    }
    return CG_OK;
}
static int codec_step(world *s, int failing, const cg_extra *side) {
    lane *w = s->lane[0];
    const cg_tag tag = tag_of(s, 0);
    blob was = saved(w->ef);
    cg_status status;
    s->step++;
    give(w);
    codec_fails = failing;
    status = cg_ef_compress_with(w->ef, &tag, side, w->g, w->packet, w->cap, &w->len);
    EXPECT((status == CG_OK) == !failing, 0);
    if (failing && !cg_ef_stats_of(w->ef).kept) {
        EXPECT(unchanged(w->ef, &was), 0);
        return 1;
    }
    free(was.bytes);
    if (failing) return step_holds(s, 0, NULL, NULL);
    EXPECT(cg_used_decode(side, w->packet, w->len, 1.0f, 0.0f, w->used, N) == CG_OK, 0);
    /* without the codec nobody can read it */
    EXPECT(cg_ef_commit(w->ef, w->packet, w->len, w->used) != CG_OK, 0);
    memcpy(w->mean, w->used, FLOATS);
    EXPECT(cg_ef_commit_with(w->ef, side, w->packet, w->len, w->mean) == CG_OK, 0);
    memset(w->index, 0, FLOATS);
    return step_holds(s, 0, w->used, w->used);
}
TEST codec(uint32_t kind, float momentum, int bytes) {
    static const cg_codec mine = { 130, codec_bound, codec_compress, codec_decode, NULL };
    const cg_codec *const list[1] = { &mine };
    static world w;
    plan p = { "dense", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 };
    cg_extra side = CG_ZERO;
    lane *k;
    int ok = 1;
    p.kind = kind;
    p.momentum = momentum;
    p.bytes = bytes;
    side.codecs = list;
    side.codec_count = 1;
    ASSERTm(note, world_open(&w, &p, 1));
    k = w.lane[0];
    k->d.op = cg_user(130, 0, 0, 0.0f);
    k->cap = 8 * N + 1000;
    free(k->packet);
    k->packet = (unsigned char *)memory(k->cap);
    {
        const lane old = *k;
        lane gone = old;
        ASSERT_EQ(CG_OK, lane_init(k));
        lane_drop(&gone);
    }
    dice = 8;
    for (int t = 0; ok && t < 12; t++) ok = codec_step(&w, t % 3 == 1, &side);
    world_close(&w);
    ASSERTm(note, ok);
    PASS();
}

GREATEST_MAIN_DEFS();
int main(int argc, char **argv) {
    static const int edges[] = { 1, 2, 63, 64, 65 };
    GREATEST_MAIN_BEGIN();
    quick = !long_test();
    for (int i = 0; i < PLANS; i++)
        for (int size = 1; size <= 3; size++)
            for (int seed = 1; seed <= (quick ? 2 : 4); seed++)
                RUN_TESTp(schedule, &plans[i], size, (uint64_t)(seed * 1000 + i));
    for (int i = 0; i < TRIPS; i++)
        for (int size = 2 + i % 2; size <= (quick ? 2 + i % 2 : 4); size += 2) RUN_TESTp(failures, &trips[i], size);
    for (int i = 0; i < TRIPS; i++)
        for (int seed = 1; seed <= (quick ? 1 : 2); seed++)
            RUN_TESTp(schedule_on, &trips[i], 1 + (i + seed) % 4, (uint64_t)(seed * 100 + i));
    RUN_TESTp(no_road, "efsign", RING, CG_E_UNSUPPORTED);
    RUN_TESTp(no_road, "topk:0.1", LINEAR, CG_E_UNSUPPORTED);
    for (int i = 0; i < PLANS; i++) {
        if (!quick || i % 4 == 0) RUN_TESTp(blobs, &plans[i]);
        RUN_TESTp(resumes, &plans[i]);
        RUN_TESTp(huge, &plans[i]);
        for (int n = 0; n < 5; n++)
            if (!is_matrix(&plans[i])) RUN_TESTp(lengths, &plans[i], edges[n]);
        if (plans[i].exact == 1000 && plans[i].rate == 0.0f && !receives(&plans[i])) RUN_TESTp(tiny, &plans[i]);
        if (receives(&plans[i])) RUN_TESTp(bad_means, &plans[i]);
        RUN_TESTp(bad_among, &plans[i]);
        if (!is_matrix(&plans[i])) RUN_TESTp(long_ones, &plans[i]);
    }
    for (int i = 0; i < TRIPS; i++)
        for (int n = 0; n < 5; n++)
            if (!is_matrix(&trips[i].p)) RUN_TESTp(lengths_on, &trips[i], edges[n]);
    for (int i = 0; i < TRIPS; i++)
        for (int size = 1; size <= 3; size += quick ? 2 : 1)
            if (trips[i].carry || is_matrix(&trips[i].p) || trips[i].p.kind == LAQ)
                RUN_TESTp(resumes_on, &trips[i], size);
    for (size_t i = 0; i < sizeof frozen_blobs / sizeof *frozen_blobs; i++) RUN_TESTp(frozen, (int)i);
    for (int from = 1; from <= 5; from++)
        for (int to = 1; to <= 5; to++) {
            for (int i = 0; i < PLANS; i++)
                if ((!quick || (i + from + to) % 5 == 0) && (strcmp(plans[i].op, "permk:4") || (from < 5 && to < 5)))
                    RUN_TESTp(elastic, &plans[i], from, to);
            for (int i = 0; i < TRIPS; i++)
                if (trips[i].carry && trips[i].p.kind == CLASSIC && (!quick || (i + from + to) % 5 == 0))
                    RUN_TESTp(elastic_on, &trips[i], from, to);
        }
    RUN_TESTp(stays_bounded, "randk:0.01", 4096, 99.0, 1, CLASSIC);
    RUN_TESTp(stays_bounded, "permk:8", 4096, 7.0, 1, CLASSIC);
    RUN_TESTp(stays_bounded, "qsgd:1", 4096, 64.0, 1, CLASSIC);
    RUN_TESTp(stays_bounded, "terngrad", 4096, 31.5, 0, CLASSIC);
    RUN_TESTp(stays_bounded, "levels:1:4096:max", 4096, 31.5, 0, CLASSIC);
    RUN_TESTp(stays_bounded, "absmax:1:512", 4096, 512.0, 0, CLASSIC);
    RUN_TESTp(stays_bounded, "wangni:0.05", 4096, 19.0, 0, CLASSIC);
    RUN_TESTp(stays_bounded, "atomo:2:16:16", 256, 7.0, 0, CLASSIC);
    RUN_TEST(nonsense);
    RUN_TEST(init_forgotten);
    RUN_TEST(bad_calls);
    RUN_TESTp(codec, CLASSIC, 0.0f, 0);
    RUN_TESTp(codec, CLASSIC, 0.0f, 1);
    RUN_TESTp(codec, LOCO, 0.0f, 0);
    RUN_TESTp(codec, MOMENTUM, 0.5f, 0);
    RUN_TESTp(codec, SIGNUM, 0.5f, 0);
    RUN_TESTp(codec, ONEBIT, 0.5f, 0);
    RUN_TESTp(codec, EF21, 0.0f, 0);
    RUN_TESTp(codec, EF21, 0.5f, 0);
    GREATEST_MAIN_END();
}
