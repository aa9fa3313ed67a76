/* cg_ef_withdraw: after a step that failed, the state is what it was before that step. Every kind is compared with a
   snapshot of what it kept before, exactly where gradients and factors lie on a grid that floats hold, otherwise within
   the rounding that the header states. A twin that was never given the gradient goes on beside it. */
#include "examples/transport_threads.h"
#include "greatest.h"
#define COMPGRAD_IMPLEMENTATION
#include "compgrad_ef.h"
#include <math.h>
#include <stdio.h>

enum { N = 300, ROOM = 1 << 16 };
static char note[300];
#define EXPECT(what)                                                            \
  do {                                                                          \
    if (!(what)) {                                                              \
      snprintf(note, sizeof note, "line %d: %s: %s", __LINE__, #what, p->name); \
      return 0;                                                                 \
    }                                                                           \
  } while (0)

typedef struct plan {
    const char *name, *op;
    uint32_t kind;
    float momentum, decay, rate, clip;
    uint32_t clip_by;
    int nesterov, bytes;
    uint64_t reset, dense_steps;
    int exact; /* bit for bit */
} plan;
static const plan plans[] = {
    { "classic", "topk:0.1", CG_EF_CLASSIC, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1 },
    { "classic at a rate", "topk:0.1", CG_EF_CLASSIC, 0, 0, 0.25f, 0, 0, 0, 0, 0, 0, 1 },
    { "classic decaying", "chunked:50:0.1|efsign", CG_EF_CLASSIC, 0, 0.95f, 0, 0, 0, 0, 0, 0, 0, 0 },
    { "classic halving", "topk:0.1", CG_EF_CLASSIC, 0, 0.5f, 0, 0, 0, 0, 0, 0, 0, 1 },
    { "classic by sign", "efsign", CG_EF_CLASSIC, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 },
    { "classic clipped", "topk:0.1", CG_EF_CLASSIC, 0, 0, 0.3f, 2.0f, CG_CLIP_NORM, 0, 0, 0, 0, 0 },
    { "classic cut off", "topk:0.1", CG_EF_CLASSIC, 0, 0, 0, 0.5f, CG_CLIP_VALUE, 0, 0, 0, 0, 1 },
    { "classic, expanding", "qsgd:1", CG_EF_CLASSIC, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 },
    { "classic, from dense to expanding", "qsgd:1", CG_EF_CLASSIC, 0, 0, 0, 0, 0, 0, 0, 0, 6, 0 },
    { "classic in bytes", "topk:0.1", CG_EF_CLASSIC, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0 },
    { "classic decaying in bytes", "efsign", CG_EF_CLASSIC, 0, 0.9f, 0, 0.5f, CG_CLIP_VALUE, 0, 1, 0, 0, 0 },
    { "classic with reset", "topk:0.1", CG_EF_CLASSIC, 0, 0, 0, 0, 0, 0, 0, 7, 0, 1 },
    { "loco", "absmax:4:64", CG_EF_LOCO, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 },
    { "loco halving", "topk:0.1", CG_EF_LOCO, 0, 0.5f, 0, 0, 0, 0, 0, 0, 0, 1 },
    { "loco in bytes", "absmax:4:64", CG_EF_LOCO, 0, 0, 0.5f, 0, 0, 0, 1, 0, 0, 0 },
    { "scalecom", "topk:0.1", CG_EF_SCALECOM, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 },
    { "ecq", "levels:3:64:max", CG_EF_ECQ, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 },
    { "ecq in bytes", "absmax:4:64", CG_EF_ECQ, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0 },
    { "momentum", "topk:0.1", CG_EF_MOMENTUM, 0.9f, 0, 0, 0, 0, 0, 0, 0, 0, 0 },
    { "momentum halving", "topk:0.1", CG_EF_MOMENTUM, 0.5f, 0, 0, 0, 0, 0, 0, 0, 0, 1 },
    { "momentum of nesterov", "topk:0.1", CG_EF_MOMENTUM, 0.9f, 0, 0.3f, 3.0f, CG_CLIP_NORM, 1, 0, 0, 0, 0 },
    { "momentum of nesterov, halving", "topk:0.1", CG_EF_MOMENTUM, 0.5f, 0, 0, 0, 0, 1, 0, 0, 0, 1 },
    { "momentum 0", "topk:0.1", CG_EF_MOMENTUM, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 },
    { "momentum, expanding", "terngrad", CG_EF_MOMENTUM, 0.9f, 0, 0, 0, 0, 0, 0, 0, 6, 0 },
    { "momentum with reset", "topk:0.1", CG_EF_MOMENTUM, 0.5f, 0, 0, 0, 0, 0, 0, 7, 0, 1 },
    { "signum", "sign", CG_EF_SIGNUM, 0.9f, 0, 0, 0, 0, 0, 0, 0, 0, 0 },
    { "signum halving", "sign", CG_EF_SIGNUM, 0.5f, 0, 0, 0, 0, 0, 0, 0, 0, 1 },
    { "signum 0", "sign", CG_EF_SIGNUM, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 },
    { "variance", "variance:1.5", CG_EF_VARIANCE, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 },
    { "variance at a rate", "variance:1.5", CG_EF_VARIANCE, 0, 0, 0.3f, 0, 0, 0, 0, 0, 0, 0 },
    { "variance cut off", "variance:1.5", CG_EF_VARIANCE, 0, 0.5f, 0, 0.25f, CG_CLIP_VALUE, 0, 0, 0, 0, 1 },
    { "variance halving", "variance:1.5", CG_EF_VARIANCE, 0, 0.5f, 0.5f, 0, 0, 0, 0, 0, 0, 1 },
    { "ef21", "topk:0.1", CG_EF_EF21, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1 },
    { "ef21 by sign", "efsign", CG_EF_EF21, 0, 0, 0.3f, 1.0f, CG_CLIP_NORM, 0, 0, 0, 0, 1 },
    { "ef21 with momentum", "topk:0.1", CG_EF_EF21, 0.9f, 0, 0.5f, 0.4f, CG_CLIP_VALUE, 0, 0, 0, 0, 0 },
    { "ef21 with momentum, halving", "topk:0.1", CG_EF_EF21, 0.5f, 0, 0, 0, 0, 0, 0, 0, 0, 1 },
    { "diana", "absmax:4:64", CG_EF_DIANA, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1 },
    { "laq", "minmax:3:300:nearest", CG_EF_LAQ, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1 },
    { "one-bit adam", "efsign", CG_EF_ONEBIT_ADAM, 0.9f, 0, 0, 0, 0, 0, 0, 0, 0, 0 },
    { "one-bit adam halving", "topk:0.1", CG_EF_ONEBIT_ADAM, 0.5f, 0, 0, 0, 0, 0, 0, 0, 0, 1 },
};
enum { PLANS = sizeof plans / sizeof *plans };

/* ---- one rank ---- */

typedef struct worker {
    cg_ef ef;
    float state[ROOM / 4], grad[N], aux[N], mean[N];
    unsigned char packet[ROOM];
    size_t len;
    uint64_t step;
} worker;
static worker one, twin;
static uint32_t hash(uint64_t a, uint32_t b) {
    uint32_t h = (uint32_t)a * 2654435761u ^ (b + 1) * 2246822519u;
    h = (h ^ h >> 15) * 2246822519u;
    h = (h ^ h >> 13) * 3266489917u;
    return h ^ h >> 16;
}
/* Multiples of 1/16 below 1: twelve halvings of their sums still fit a float. */
static float gradient(uint64_t step, int i) { return (float)((int)(hash(step, (uint32_t)i) >> 8 & 31) - 16) / 16.0f; }
static int open_one(const plan *p, worker *w) {
    cg_ef_desc d = CG_ZERO;
    if (cg_op_parse(&d.op, p->op) != CG_OK) exit(2);
    d.n = N;
    d.kind = p->kind;
    d.momentum = p->momentum;
    d.decay = p->decay;
    d.rate = p->rate;
    d.clip = p->clip;
    d.clip_by = p->clip_by;
    d.nesterov = p->nesterov;
    d.bytes = p->bytes;
    d.reset = p->reset;
    d.dense_steps = p->dense_steps;
    d.laq_step = p->kind == CG_EF_LAQ ? 0.1f : 0.0f;
    w->step = 0;
    EXPECT(cg_ef_bound(&d) <= ROOM);
    EXPECT(cg_ef_init(&w->ef, &d, w->state, ROOM) == CG_OK);
    return 1;
}
static cg_extra side_of(const worker *w) {
    cg_extra side = CG_ZERO;
    if (w->ef.desc.kind == CG_EF_VARIANCE) side.aux = w->aux;
    return side;
}
static void give(worker *w, uint64_t seed) {
    for (int i = 0; i < N; i++) {
        w->grad[i] = gradient(seed, i);
        w->aux[i] = (float)(hash(seed + 1000, (uint32_t)i) & 15) / 16.0f;
    }
}
static cg_status squeeze(worker *w, uint64_t seed) {
    const cg_extra side = side_of(w);
    cg_tag tag = CG_ZERO;
    tag.seed = 1;
    tag.step = w->step;
    give(w, seed);
    return cg_ef_compress_with(&w->ef, &tag, &side, w->grad, w->packet, ROOM, &w->len);
}
static cg_status withdraw(worker *w) {
    const cg_extra side = side_of(w);
    return side.aux ? cg_ef_withdraw_with(&w->ef, &side, w->grad) : cg_ef_withdraw(&w->ef, w->grad);
}
/* A step that counts: alone, the mean is the rank's own contribution. */
static int counts(const plan *p, worker *w) {
    const cg_extra side = side_of(w);
    w->step++;
    EXPECT(squeeze(w, w->step) == CG_OK);
    EXPECT(cg_decompress(w->packet, w->len, w->mean, N) == CG_OK);
    EXPECT(cg_ef_commit_with(&w->ef, &side, w->packet, w->len, w->mean) == CG_OK);
    return 1;
}
typedef struct snapshot {
    float v[3][N], scale;
    uint64_t steps;
} snapshot;
static void look(const worker *w, snapshot *s) {
    memset(s, 0, sizeof *s);
    for (int v = 0; v < 3; v++) {
        const cg_status status = cg_ef_read(&w->ef, v, s->v[v], N);
        if (status != CG_OK && status != CG_E_UNSUPPORTED) exit(2);
    }
    s->scale = cg_ef_scale(&w->ef);
    s->steps = w->ef.steps;
}
static double decay_of(const plan *p) {
    if (p->kind == CG_EF_ECQ) return 0.9;
    if (p->kind == CG_EF_VARIANCE) return p->decay > 0 ? (double)p->decay : 0.999;
    return p->kind == CG_EF_CLASSIC && p->decay > 0 ? (double)p->decay : 1.0;
}
/* The largest that the step has added up, of 64 neighbours where they share a scale. */
static double largest(const plan *p, const snapshot *was, const snapshot *failed, const float *g, int i) {
    const int first = p->bytes ? i / 64 * 64 : i, last = p->bytes && first + 64 < N ? first + 64 : p->bytes ? N : i + 1;
    double most = 0.0;
    for (int j = first; j < last; j++) {
        double sum = fabs((double)g[j]);
        for (int v = 0; v < 3; v++) sum += fabs((double)was->v[v][j]) + fabs((double)failed->v[v][j]);
        most = fmax(most, sum);
    }
    return most;
}
/* now is was, as stored at the scale of now. */
static int as_before(const plan *p, const snapshot *was, const snapshot *failed, const snapshot *now, const float *g) {
    EXPECT(now->steps == was->steps && now->scale == failed->scale);
    for (int v = 0; v < 3; v++) {
        const int difference = p->kind == CG_EF_EF21 || p->kind == CG_EF_DIANA || p->kind == CG_EF_LAQ;
        double to = v == 2 || difference ? 1.0 : (double)now->scale / (double)was->scale;
        if (v == 1 && p->kind == CG_EF_VARIANCE) to *= to;
        for (int i = 0; i < N; i++) {
            const int forgets = p->momentum == 0.0f &&
                (p->kind == CG_EF_SIGNUM ? v == 0 : p->kind == CG_EF_MOMENTUM && v == 1);
            const int was_reset = v == 0 && p->reset && failed->steps % p->reset == 0;
            const double want = forgets || was_reset ? 0.0 : to * (double)was->v[v][i];
            double off = 8 * 0x1p-24 * largest(p, was, failed, g, i);
            if (v == 0) off /= p->kind == CG_EF_SIGNUM ? (p->momentum > 0 ? (double)p->momentum : 1.0) : decay_of(p);
            if (v == 1 && p->momentum > 0) off /= (double)p->momentum;
            if (v == 1 && p->kind == CG_EF_VARIANCE) off /= decay_of(p);
            if (v == 0 && p->bytes) off += 3.0 / 250 * largest(p, was, failed, g, i) / decay_of(p);
            if (p->exact || v == 2) off = 0.0;
            if (v == 1 && p->kind == CG_EF_VARIANCE) EXPECT(now->v[v][i] >= 0.0f); /* a variance, rounded or not */
            if (!(fabs((double)now->v[v][i] - want) <= off)) {
                snprintf(note, sizeof note, "%s: vector %d, value %d is %.9g, before the step %.9g, off by %.3g > %.3g",
                    p->name, v, i, (double)now->v[v][i], want, fabs((double)now->v[v][i] - want), off);
                return 0;
            }
        }
    }
    return 1;
}

/* ---- a step that fails ---- */

static int no_sum(void *user, float *v, size_t n) {
    (void)user, (void)v, (void)n;
    return 9;
}
enum { BY_HAND, BY_EXCHANGE, BY_LAYERS, HOWS };
static int fails(const plan *p, worker *w, uint64_t seed, int how) {
    static unsigned char mem[8 * ROOM];
    cg_extra side = side_of(w);
    cg_exchange_desc desc = CG_ZERO;
    cg_transport t = CG_ZERO;
    float given[N];
    if (how == BY_HAND) {
        EXPECT(squeeze(w, seed) == CG_OK && cg_ef_rollback(&w->ef, NULL, 0) == CG_OK);
        return 1;
    }
    t.size = 2;
    t.allreduce = no_sum;
    desc.tag.seed = 1;
    desc.tag.step = w->step;
    desc.route = CG_ROUTE_ALLGATHER;
    desc.side = side.aux ? &side : NULL;
    give(w, seed);
    memcpy(given, w->grad, sizeof given);
    if (how == BY_EXCHANGE) {
        EXPECT(cg_ef_exchange_memory(&w->ef, &desc, &t) <= sizeof mem);
        EXPECT(cg_ef_exchange(&w->ef, &desc, &t, w->grad, mem, sizeof mem, NULL) == CG_E_TRANSPORT);
    } else {
        cg_layer layer = CG_ZERO;
        cg_ef *efs[1];
        efs[0] = &w->ef;
        layer.desc = desc;
        layer.x = w->grad;
        EXPECT(cg_ef_layers_memory(efs, &layer, 1, 0, &t) <= sizeof mem);
        EXPECT(cg_ef_exchange_layers(efs, &layer, 1, 0, &t, mem, sizeof mem, NULL) == CG_E_TRANSPORT);
    }
    EXPECT(!memcmp(given, w->grad, sizeof given) && cg_ef_stats_of(&w->ef).kept == 1);
    return 1;
}
/* Given in the first step and in later ones, taken out, and given again: as if it had not been given. */
static int withdrawn(const plan *p, int how) {
    if (!open_one(p, &one) || !open_one(p, &twin)) return 0;
    for (int t = 0; t < 9; t++) {
        snapshot was, failed, now;
        const float *g = one.grad;
        one.step++; /* of the tag: the operator may be another from here on */
        look(&one, &was);
        if (!fails(p, &one, 77 + (uint64_t)t, how)) return 0;
        look(&one, &failed);
        EXPECT(failed.steps == was.steps + 1);
        EXPECT(withdraw(&one) == CG_OK);
        EXPECT(cg_ef_stats_of(&one.ef).kept == 0);
        EXPECT(withdraw(&one) == CG_E_STATE);
        look(&one, &now);
        if (!as_before(p, &was, &failed, &now, g)) return 0;
        if (t == 0) /* from zero to zero, to the bit */
            for (int v = 0; v < 3; v++)
                for (int i = 0; i < N && !p->bytes; i++) EXPECT(fabs((double)now.v[v][i]) <= (p->exact ? 0 : 1e-6));
        one.step--;
        if (!counts(p, &one) || !counts(p, &twin)) return 0;
        if (p->exact && p->reset == 0) EXPECT(one.len == twin.len && !memcmp(one.packet, twin.packet, one.len));
    }
    return 1;
}
TEST withdraws(const plan *p, int how) {
    ASSERTm(note, withdrawn(p, how));
    PASS();
}
/* The kinds do keep it: without a withdrawal the state is another one. */
static int kept(const plan *p) {
    snapshot was, failed, now;
    int differs = 0;
    if (!open_one(p, &one)) return 0;
    for (int t = 0; t < 3; t++)
        if (!counts(p, &one)) return 0;
    look(&one, &was);
    if (!fails(p, &one, 77, BY_HAND)) return 0;
    look(&one, &failed);
    for (int v = 0; v < 3; v++) differs |= memcmp(was.v[v], failed.v[v], sizeof was.v[v]) != 0;
    EXPECT(differs == !((p->kind == CG_EF_EF21 && p->momentum == 0) || p->kind == CG_EF_DIANA || p->kind == CG_EF_LAQ));
    /* another gradient than was given is not noticed, but changes what comes out, unless nothing was kept */
    for (int i = 0; i < N; i++) one.grad[i] += 0.25f;
    EXPECT(withdraw(&one) == CG_OK);
    look(&one, &now);
    for (int v = 0, same = 1; v < 3 && differs; v++) {
        same &= !memcmp(was.v[v], now.v[v], sizeof was.v[v]);
        if (v == 2 && !(p->momentum == 0 && p->kind == CG_EF_SIGNUM)) EXPECT(!same);
    }
    return 1;
}
TEST keeps_it_before(const plan *p) {
    ASSERTm(note, kept(p));
    PASS();
}

/* ---- the fallback: a dense mean where the exchange failed ---- */

/* What all ranks gave = what came out, by either way, + what they still keep. On a grid, so that all of it is exact. */
TEST counted_once(uint32_t kind, int withdraws) {
    static const plan name = { "fallback", "topk:0.1", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1 };
    static worker w[2];
    plan p = name;
    double given[N] = { 0 }, out[N] = { 0 };
    int lost = 0;
    p.kind = kind;
    for (int r = 0; r < 2; r++) ASSERTm(note, open_one(&p, &w[r]));
    for (uint64_t t = 0; t < 30; t++) {
        for (int r = 0; r < 2; r++) {
            float d[N];
            w[r].step = t;
            ASSERT_EQ(CG_OK, squeeze(&w[r], 100 * t + (uint64_t)r));
            for (int i = 0; i < N; i++) given[i] += (double)w[r].grad[i];
            if (t % 3 == 1) { /* no packet arrived: all of the gradient goes another way */
                ASSERT_EQ(CG_OK, cg_ef_rollback(&w[r].ef, NULL, 0));
                if (withdraws) ASSERT_EQ(CG_OK, withdraw(&w[r]));
                memcpy(d, w[r].grad, sizeof d);
            } else {
                ASSERT_EQ(CG_OK, cg_decompress(w[r].packet, w[r].len, d, N));
                ASSERT_EQ(CG_OK, cg_ef_commit(&w[r].ef, w[r].packet, w[r].len, NULL));
            }
            for (int i = 0; i < N; i++) out[i] += (double)d[i];
        }
    }
    for (int i = 0; i < N; i++)
        lost += given[i] != out[i] + (double)w[0].ef.vector[0][i] + (double)w[1].ef.vector[0][i];
    if (withdraws) ASSERT_EQ_FMT(0, lost, "%d");
    else ASSERT(lost > N / 2); /* counted twice */
    PASS();
}

/* ---- when it is refused ---- */

static int same_state(const worker *w, const unsigned char *was, size_t was_len) {
    static unsigned char now[ROOM];
    size_t len;
    return cg_ef_save(&w->ef, now, sizeof now, &len) == CG_OK && len == was_len && !memcmp(was, now, len);
}
static int refuses(void) {
    static const plan momentum = { "refused", "topk:0.1", CG_EF_MOMENTUM, 0.9f, 0, 0, 0, 0, 0, 0, 0, 0, 0 },
                      *p = &momentum;
    static unsigned char was[ROOM];
    static const cg_ef none = CG_ZERO;
    cg_ef forgotten = none;
    snapshot before, failed, after;
    size_t len;
    EXPECT(cg_ef_withdraw(NULL, one.grad) == CG_E_ARG && cg_ef_withdraw(&forgotten, one.grad) == CG_E_STATE);
    if (!open_one(p, &one)) return 0;
    EXPECT(withdraw(&one) == CG_E_STATE); /* nothing was given yet */
    if (!counts(p, &one)) return 0;
    EXPECT(withdraw(&one) == CG_E_STATE); /* committed */
    EXPECT(squeeze(&one, 5) == CG_OK);
    EXPECT(withdraw(&one) == CG_E_STATE); /* pending */
    EXPECT(cg_ef_rollback(&one.ef, NULL, 0) == CG_OK);
    one.grad[3] = (float)HUGE_VAL; /* not what was given; then it is */
    EXPECT(cg_ef_save(&one.ef, was, sizeof was, &len) == CG_OK);
    EXPECT(withdraw(&one) == CG_E_NONFINITE && cg_ef_withdraw(&one.ef, NULL) == CG_E_ARG);
    EXPECT(same_state(&one, was, len));
    give(&one, 5);
    EXPECT(cg_ef_set_rate(&one.ef, 7.0f) == CG_OK); /* of later steps */
    EXPECT(withdraw(&one) == CG_OK && cg_ef_set_rate(&one.ef, 1.0f) == CG_OK);
    look(&one, &before);
    /* refused: not in the state, and no step before it is withdrawn */
    if (!fails(p, &one, 6, BY_HAND)) return 0;
    look(&one, &failed);
    one.grad[0] = (float)HUGE_VAL;
    EXPECT(cg_ef_compress(&one.ef, NULL, one.grad, one.packet, ROOM, &one.len) == CG_E_NONFINITE);
    give(&one, 6);
    EXPECT(withdraw(&one) == CG_E_STATE);
    /* the state was changed in between */
    if (!fails(p, &one, 6, BY_HAND)) return 0;
    EXPECT(cg_ef_rescale(&one.ef, 0.5f) == CG_OK && withdraw(&one) == CG_E_STATE);
    if (!fails(p, &one, 6, BY_HAND)) return 0;
    EXPECT(cg_ef_load(&one.ef, was, len) == CG_OK && withdraw(&one) == CG_E_STATE);
    if (!fails(p, &one, 6, BY_HAND)) return 0;
    cg_ef_reset(&one.ef);
    EXPECT(withdraw(&one) == CG_E_STATE);
    /* of two that failed only the last one */
    look(&one, &before);
    if (!fails(p, &one, 6, BY_HAND)) return 0;
    look(&one, &before);
    if (!fails(p, &one, 7, BY_HAND)) return 0;
    look(&one, &failed);
    EXPECT(withdraw(&one) == CG_OK && withdraw(&one) == CG_E_STATE);
    look(&one, &after);
    return as_before(p, &before, &failed, &after, one.grad);
}
TEST refused(void) {
    ASSERTm(note, refuses());
    PASS();
}
/* A step that is refused has not entered the state, whatever became of the step before it: then nothing can be
   withdrawn, and stats.kept says so. */
enum { COMMITTED, FAILED };
enum { NO_PACKET, SMALL_PACKET, NOT_FINITE, NO_DESC, NO_MEMORY, NO_MEMORY_FOR_LAYERS, REFUSALS };
static int refused_after(int before, int how) {
    static const plan classic = { "refused", "topk:0.1", CG_EF_CLASSIC, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1 }, *p = &classic;
    static unsigned char was[ROOM], mem[8 * ROOM];
    cg_exchange_desc desc = CG_ZERO;
    cg_transport t = CG_ZERO;
    cg_layer layer = CG_ZERO;
    cg_ef *efs[1];
    size_t len;
    cg_status s = CG_OK;
    t.size = 1;
    efs[0] = &one.ef;
    layer.x = one.grad;
    if (!open_one(p, &one) || !counts(p, &one)) return 0;
    if (before == FAILED && !fails(p, &one, 9, BY_HAND)) return 0;
    EXPECT(cg_ef_stats_of(&one.ef).kept == 1);
    EXPECT(cg_ef_save(&one.ef, was, sizeof was, &len) == CG_OK);
    give(&one, 10);
    if (how == NOT_FINITE) one.grad[3] = (float)HUGE_VAL;
    if (how == NO_PACKET) s = cg_ef_compress(&one.ef, NULL, one.grad, NULL, ROOM, &one.len);
    if (how == SMALL_PACKET) s = cg_ef_compress(&one.ef, NULL, one.grad, one.packet, 100, &one.len);
    if (how == NOT_FINITE) s = cg_ef_exchange(&one.ef, &desc, &t, one.grad, mem, sizeof mem, NULL);
    if (how == NO_DESC) s = cg_ef_exchange(&one.ef, NULL, &t, one.grad, mem, sizeof mem, NULL);
    if (how == NO_MEMORY) s = cg_ef_exchange(&one.ef, &desc, &t, one.grad, mem, 100, NULL);
    if (how == NO_MEMORY_FOR_LAYERS) s = cg_ef_exchange_layers(efs, &layer, 1, 0, &t, mem, 100, NULL);
    EXPECT(s != CG_OK && cg_ef_stats_of(&one.ef).kept == 0);
    give(&one, 10);
    EXPECT(withdraw(&one) == CG_E_STATE);
    EXPECT(same_state(&one, was, len));
    return 1;
}
TEST refused_is_not_withdrawn(int before, int how) {
    ASSERTm(note, refused_after(before, how));
    PASS();
}
TEST variances_are_needed(void) {
    static const plan variance = { "refused", "variance:1.5", CG_EF_VARIANCE, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 };
    cg_extra side = CG_ZERO;
    ASSERTm(note, open_one(&variance, &one) && counts(&variance, &one) && fails(&variance, &one, 9, BY_HAND));
    ASSERT_EQ(CG_E_ARG, cg_ef_withdraw(&one.ef, one.grad));
    ASSERT_EQ(CG_E_ARG, cg_ef_withdraw_with(&one.ef, &side, one.grad));
    ASSERT_EQ(CG_OK, withdraw(&one));
    for (int i = 0; i < N; i++) ASSERT(one.ef.vector[1][i] >= 0.0f);
    PASS();
}
/* Agreeing is between a failure and its withdrawal, when the step is to be repeated. */
TEST after_agreeing(void) {
    static const plan ef21 = { "agreed", "topk:0.1", CG_EF_EF21, 0.5f, 0, 0, 0, 0, 0, 0, 0, 0, 1 };
    static unsigned char mem[8 * ROOM];
    cg_exchange_desc desc = CG_ZERO;
    cg_transport t = CG_ZERO;
    t.size = 1;
    ASSERTm(note, open_one(&ef21, &one) && counts(&ef21, &one) && open_one(&ef21, &twin) && counts(&ef21, &twin));
    ASSERTm(note, fails(&ef21, &one, 9, BY_HAND));
    ASSERT_EQ(CG_OK, cg_ef_agree(&one.ef, &desc, &t, mem, sizeof mem, NULL));
    ASSERT_EQ(CG_OK, withdraw(&one));
    ASSERTm(note, counts(&ef21, &one) && counts(&ef21, &twin));
    ASSERT_MEM_EQ(twin.mean, one.mean, sizeof one.mean);
    PASS();
}
/* Whatever was given, the state stays finite. */
TEST extremes(uint32_t kind, float momentum, int nesterov, float by) {
    const plan p = { "extreme", kind == CG_EF_SIGNUM ? "sign" : "topk:0.1", kind, momentum, 0, 0, 0, 0, nesterov, 0, 0,
        0, 0 };
    ASSERTm(note, open_one(&p, &one) && counts(&p, &one));
    for (int t = 0; t < 8; t++) {
        snapshot s;
        cg_tag tag = CG_ZERO;
        give(&one, (uint64_t)t);
        for (int i = 0; i < N; i++) one.grad[i] *= by;
        ASSERT_EQ(CG_OK, cg_ef_compress(&one.ef, &tag, one.grad, one.packet, ROOM, &one.len));
        ASSERT_EQ(CG_OK, cg_ef_rollback(&one.ef, NULL, 0));
        if (t % 2) ASSERT_EQ(CG_OK, withdraw(&one));
        look(&one, &s);
        for (int v = 0; v < 3; v++)
            for (int i = 0; i < N; i++) ASSERT(fabs((double)s.v[v][i]) <= 3.5e38);
    }
    PASS();
}

/* e + u + g is cut off at the largest float, and u is below 0: e - u would be larger still. */
TEST cut_off_sums(void) {
    const plan p = { "cut off", "topk:0.1", CG_EF_MOMENTUM, 0.9f, 0, 0, 0, 0, 1, 0, 0, 0, 0 };
    ASSERTm(note, open_one(&p, &one));
    for (int i = 0; i < N; i++) {
        one.ef.vector[0][i] = 2e38f;
        one.ef.vector[1][i] = -2.5e38f;
        one.grad[i] = 2e38f;
    }
    one.ef.reach = one.ef.size = 1e40;
    ASSERT_EQ(CG_OK, cg_ef_compress(&one.ef, NULL, one.grad, one.packet, ROOM, &one.len));
    ASSERT_EQ(CG_OK, cg_ef_rollback(&one.ef, NULL, 0));
    ASSERT(one.ef.vector[0][5] > 3.4e38f && one.ef.vector[1][5] < -4e37f);
    ASSERT_EQ(CG_OK, withdraw(&one));
    for (int i = 0; i < N; i++) {
        ASSERT(one.ef.vector[0][i] > 1.3e38f && one.ef.vector[0][i] < 2e38f); /* what was cut off stays lost */
        ASSERT(one.ef.vector[1][i] > -2.51e38f && one.ef.vector[1][i] < -2.49e38f);
    }
    PASS();
}
/* The state knows a bound of its magnitudes, also after a withdrawal: by it the next step sees whether sums may leave
   the float range. One value alone, so that the bound is not far off; its sums cancel often. */
TEST stays_bounded(uint32_t kind, int nesterov) {
    const plan p = { "bounded", "topk:0.1", kind, kind == CG_EF_MOMENTUM ? 0.9f : 0.0f, 0, 0, 0, 0, nesterov, 0, 0, 0,
        0 };
    for (uint32_t t = 0; t < 20000; t++) {
        const uint32_t dice = hash(t / 200, t % 200);
        snapshot s;
        if (t % 200 == 0) ASSERTm(note, open_one(&p, &one)); /* so that the largest value is of some steps ago only */
        memset(one.grad, 0, sizeof one.grad);
        one.grad[0] = (float)((int)(dice % 3) - 1) * (dice & 256 ? 1.0f : 0.25f);
        ASSERT_EQ(CG_OK, cg_ef_compress(&one.ef, NULL, one.grad, one.packet, ROOM, &one.len));
        if (dice & 512) ASSERT_EQ(CG_OK, cg_ef_commit(&one.ef, one.packet, one.len, NULL));
        else ASSERT_EQ(CG_OK, cg_ef_rollback(&one.ef, NULL, 0));
        if (!(dice & 512) && dice & 1024) ASSERT_EQ(CG_OK, withdraw(&one));
        look(&one, &s);
        for (int v = 0; v < 2; v++) ASSERT(fabs((double)s.v[v][0]) <= one.ef.reach * (1 + 1e-5));
    }
    PASS();
}

/* ---- ranks, one of which fails at every message of an exchange in turn ---- */

enum { RANKS = 3 };
static const struct way {
    plan p;
    uint32_t route, flags;
    size_t carry;
} ways[] = {
    { { "allgather", "topk:0.1", CG_EF_CLASSIC, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1 }, CG_ROUTE_ALLGATHER, 0, 0 },
    { { "confirmed", "topk:0.1", CG_EF_CLASSIC, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1 }, CG_ROUTE_ALLGATHER, CG_CONFIRM, 0 },
    { { "merge", "topk:0.1", CG_EF_MOMENTUM, 0.5f, 0, 0, 0, 0, 0, 0, 0, 0, 0 }, CG_ROUTE_MERGE, 0, 0 },
    { { "scatter", "efsign", CG_EF_CLASSIC, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }, CG_ROUTE_SCATTER, 0, N },
    { { "linear", "lowrank:2:20:15", CG_EF_CLASSIC, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }, CG_ROUTE_LINEAR, 0, 0 },
    { { "loco", "absmax:4:64", CG_EF_LOCO, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0 }, CG_ROUTE_ALLGATHER, 0, 0 },
    { { "ef21", "topk:0.1", CG_EF_EF21, 0.5f, 0, 0, 0, 0, 0, 0, 0, 0, 1 }, CG_ROUTE_ALLGATHER, 0, 0 },
};
enum { WAYS = sizeof ways / sizeof *ways };
typedef struct faulty {
    const struct way *way;
    int step, at; /* rank 1 fails at its callback number `at`; negative: no rank does */
    int count[RANKS];
    cg_transport inner[RANKS];
    cg_threads_world *world;
    worker w[RANKS];
    cg_status status[RANKS];
} faulty;
static faulty F;
static int falls(const cg_transport *inner) {
    if (inner->rank != 1 || F.count[1]++ != F.at) return 0;
    cg_threads_abort(F.world); /* the others are told */
    return 1;
}
static int faulty_allreduce(void *user, float *v, size_t n) {
    const cg_transport *t = (const cg_transport *)user;
    return falls(t) ? -7 : t->allreduce(t->user, v, n);
}
static int faulty_allgather(void *user, const void *mine, void *all, size_t bytes) {
    const cg_transport *t = (const cg_transport *)user;
    return falls(t) ? -7 : t->allgather(t->user, mine, all, bytes);
}
static int faulty_broadcast(void *user, void *buf, size_t bytes, int root) {
    const cg_transport *t = (const cg_transport *)user;
    return falls(t) ? -7 : t->broadcast(t->user, buf, bytes, root);
}
static int faulty_sendrecv(void *user, const void *out, size_t out_bytes, int to, void *in, size_t in_bytes, int from) {
    const cg_transport *t = (const cg_transport *)user;
    return falls(t) ? -7 : t->sendrecv(t->user, out, out_bytes, to, in, in_bytes, from);
}
static int rank_steps(cg_threads_world *world, int rank, void *user) {
    static unsigned char mems[RANKS][8 * ROOM];
    worker *w = &F.w[rank];
    cg_exchange_desc desc = CG_ZERO;
    cg_transport t;
    (void)user;
    if (rank == 1) F.world = world;
    cg_threads_timeout(world, 5000);
    F.inner[rank] = t = cg_threads_transport(world, rank, CG_THREADS_ALL);
    t.user = &F.inner[rank];
    t.allreduce = faulty_allreduce;
    t.allgather = faulty_allgather;
    t.broadcast = faulty_broadcast;
    t.sendrecv = faulty_sendrecv;
    desc.route = F.way->route;
    desc.flags = F.way->flags;
    desc.tag.seed = 3;
    desc.tag.step = (uint64_t)F.step;
    give(w, (uint64_t)(100 * F.step + rank));
    F.status[rank] = cg_ef_exchange(&w->ef, &desc, &t, w->grad, mems[rank], sizeof mems[rank], NULL);
    return 0;
}
static int all_step(int step, int at) {
    F.step = step;
    F.at = at;
    memset(F.count, 0, sizeof F.count);
    return cg_threads_run(RANKS, rank_steps, NULL) == 0;
}
/* Whoever has the gradient in the state gives it back; whoever has committed cannot. */
static int gives_back(const plan *p, int at, const snapshot *was, float carries[RANKS][N], int *failures) {
    *failures = 0;
    for (int r = 0; r < RANKS; r++) {
        worker *w = &F.w[r];
        snapshot failed, now;
        const int kept = cg_ef_stats_of(&w->ef).kept;
        float given[N];
        if (F.status[r] == CG_OK) {
            EXPECT(kept && cg_ef_withdraw(&w->ef, w->grad) == CG_E_STATE);
            continue;
        }
        ++*failures;
        memcpy(given, w->grad, sizeof given);
        give(w, (uint64_t)(100 * F.step + r));
        EXPECT(!memcmp(given, w->grad, sizeof given));
        look(w, &failed);
        EXPECT(kept == (failed.steps != was[r].steps));
        EXPECT(cg_ef_withdraw(&w->ef, w->grad) == (kept ? CG_OK : CG_E_STATE));
        look(w, &now);
        if (!as_before(p, &was[r], &failed, &now, w->grad)) return 0;
        if (w->ef.carry) EXPECT(!memcmp(carries[r], w->ef.carry, 4 * w->ef.desc.carry));
    }
    EXPECT(at < 0 || F.status[1] == CG_E_TRANSPORT || F.count[1] <= at);
    return 1;
}
static int at_every_message(const struct way *way) {
    static float carries[RANKS][N];
    const plan *p = &way->p;
    int failures = 1;
    F.way = way;
    for (int at = 0; failures; at++) {
        snapshot was[RANKS];
        EXPECT(at < 50);
        for (int r = 0; r < RANKS; r++) {
            cg_ef_desc d;
            if (!open_one(p, &F.w[r])) return 0;
            d = F.w[r].ef.desc;
            d.carry = way->carry;
            EXPECT(cg_ef_init(&F.w[r].ef, &d, F.w[r].state, ROOM) == CG_OK);
        }
        for (int step = 1; step < 4; step++) {
            EXPECT(all_step(step, -1));
            for (int r = 0; r < RANKS; r++) EXPECT(F.status[r] == CG_OK);
        }
        for (int r = 0; r < RANKS; r++) {
            look(&F.w[r], &was[r]);
            if (F.w[r].ef.carry) memcpy(carries[r], F.w[r].ef.carry, 4 * way->carry);
        }
        EXPECT(all_step(4, at));
        if (!gives_back(p, at, was, carries, &failures)) return 0;
        EXPECT(at || failures == RANKS); /* the first message is everybody's */
    }
    return 1;
}
TEST fails_at_every_message(const struct way *way) {
    ASSERTm(note, at_every_message(way));
    PASS();
}

/* ---- a codec that fails has the gradient in the state, too ---- */

static int codec_fails;
static size_t codec_bound(const cg_codec *self, const cg_stage *stage, size_t n) {
    (void)self, (void)stage;
    return 4 * n;
}
static cg_status codec_compress(const cg_codec *self, const cg_stage *stage, const cg_tag *tag, const float *x,
    size_t n, void *out, size_t cap, size_t *len) {
    (void)self, (void)stage, (void)tag, (void)cap;
    *len = 4 * n;
    memcpy(out, x, 4 * n);
    return codec_fails ? CG_E_UNSUPPORTED : CG_OK;
}
static cg_status codec_decode(const cg_codec *self, const cg_stage *stage, const void *in, size_t len, size_t n,
    size_t first, size_t count, float *out) {
    (void)self, (void)stage, (void)len, (void)n;
    memcpy(out, (const float *)in + first, 4 * count);
    return CG_OK;
}
TEST codec_that_fails(void) {
    static const plan by_codec = { "codec", "topk:0.1|user:130:0:0:0", CG_EF_CLASSIC, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1 };
    const cg_codec codec = { 130, codec_bound, codec_compress, codec_decode, NULL };
    const cg_codec *list = &codec;
    cg_extra side = CG_ZERO;
    snapshot was, failed, now;
    side.codecs = &list;
    side.codec_count = 1;
    codec_fails = 0;
    ASSERTm(note, open_one(&by_codec, &one));
    give(&one, 1);
    ASSERT_EQ(CG_OK, cg_ef_compress_with(&one.ef, NULL, &side, one.grad, one.packet, ROOM, &one.len));
    ASSERT_EQ(CG_OK, cg_ef_commit_with(&one.ef, &side, one.packet, one.len, NULL));
    look(&one, &was);
    codec_fails = 1;
    give(&one, 2);
    ASSERT_EQ(CG_E_UNSUPPORTED, cg_ef_compress_with(&one.ef, NULL, &side, one.grad, one.packet, ROOM, &one.len));
    ASSERT_EQ(1, cg_ef_stats_of(&one.ef).kept);
    look(&one, &failed);
    ASSERT_EQ(CG_OK, withdraw(&one));
    look(&one, &now);
    ASSERTm(note, as_before(&by_codec, &was, &failed, &now, one.grad));
    PASS();
}

SUITE(withdrawing) {
    static const float momenta[] = { 0.9f, 1e-3f, 1e-20f, 1e-40f };
    for (int p = 0; p < PLANS; p++) {
        RUN_TESTp(keeps_it_before, &plans[p]);
        for (int how = 0; how < HOWS; how++) RUN_TESTp(withdraws, &plans[p], how);
    }
    RUN_TESTp(counted_once, CG_EF_CLASSIC, 1);
    RUN_TESTp(counted_once, CG_EF_CLASSIC, 0);
    RUN_TEST(refused);
    for (int before = COMMITTED; before <= FAILED; before++)
        for (int how = 0; how < REFUSALS; how++) RUN_TESTp(refused_is_not_withdrawn, before, how);
    RUN_TEST(variances_are_needed);
    RUN_TEST(after_agreeing);
    RUN_TEST(codec_that_fails);
    for (int w = 0; w < WAYS; w++) RUN_TESTp(fails_at_every_message, &ways[w]);
    RUN_TEST(cut_off_sums);
    RUN_TESTp(stays_bounded, CG_EF_CLASSIC, 0);
    RUN_TESTp(stays_bounded, CG_EF_MOMENTUM, 0);
    RUN_TESTp(stays_bounded, CG_EF_MOMENTUM, 1);
    for (int i = 0; i < 4; i++)
        for (int huge = 0; huge < 2; huge++) {
            const float by = huge ? 3e38f : 1e-38f;
            RUN_TESTp(extremes, CG_EF_MOMENTUM, momenta[i], 0, by);
            RUN_TESTp(extremes, CG_EF_MOMENTUM, momenta[i], 1, by);
            RUN_TESTp(extremes, CG_EF_SIGNUM, momenta[i], 0, by);
            RUN_TESTp(extremes, CG_EF_EF21, momenta[i], 0, by);
            RUN_TESTp(extremes, CG_EF_ONEBIT_ADAM, momenta[i], 0, by);
        }
}

GREATEST_MAIN_DEFS();
int main(int argc, char **argv) {
    GREATEST_MAIN_BEGIN();
    RUN_SUITE(withdrawing);
    GREATEST_MAIN_END();
}
