/* desc.model: model -= rate * result. Everything runs twice, once as always with the step taken here in plain C,
   once with a model: the models, what counted, what is remembered and what crossed must be the same; where an
   error is returned the model is as it was. */
#include "examples/transport_threads.h"
#include <fenv.h>
#include <math.h>
#include <stdio.h>
#define COMPGRAD_IMPLEMENTATION
#include "sim.h"
#include "compgrad_ef.h"
#include "compgrad_sketch.h"
#include "greatest.h"
#include "tier.h"

enum { MOST = 8, GUARD = 256, TAIL = 64, WARM = 128 };
static const uint32_t SIGNALLING = 0x7fa00001u;
static int quick; /* not CG_TEST=long */
static char note[400];
#define SAY(...) (snprintf(note, sizeof note, __VA_ARGS__), note)

static void *room(size_t bytes) {
    void *p = calloc(bytes + 1, 1);
    if (!p) abort();
    return p;
}
static float *floats(size_t n) { return (float *)room(4 * n); }
static uint32_t bits(float v) {
    uint32_t u;
    memcpy(&u, &v, 4);
    return u;
}
static float not_a_number(void) {
    const uint32_t u = 0x7fc00000u;
    float v;
    memcpy(&v, &u, 4);
    return v;
}
static float infinite(void) {
    const uint32_t u = 0x7f800000u;
    float v;
    memcpy(&v, &u, 4);
    return v;
}
static uint64_t mixed(uint64_t z) {
    z = (z + UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 29) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 32;
}
/* Every fifth is 0; of the others a few are much larger. */
static float value(uint64_t seed, int rank, size_t i) {
    const uint64_t h = mixed((seed * 64 + (uint64_t)rank) * UINT64_C(0xd1342543de82ef95) + i);
    const float v = (float)((int)(h & 0xffff) - 0x8000) / 5000.0f;
    return (h >> 20 & 255) < 51 ? 0.0f : (h >> 30 & 255) < 5 ? 100.0f * v : v;
}
static float model_at(uint64_t seed, size_t i) { /* zeros of both signs, denormals, large ones */
    const uint64_t h = mixed(seed ^ UINT64_C(0x1234567) * (i + 1));
    const float v = (float)((int)(h & 0xffff) - 0x8000) / 7000.0f;
    switch (h >> 20 & 15) {
    case 0: return 0.0f;
    case 1: return -0.0f;
    case 2: return v * 1e-39f;
    case 3: return v * 1e30f;
    default: return v;
    }
}
static float stepped(float model, float rate, float result) { /* two roundings */
    volatile float product = -rate * result, sum = model + product;
    return sum;
}
static int same(float a, float b) { return bits(a) == bits(b) || (a == 0.0f && b == 0.0f); }

/* A model with guards on both sides, at any address; after its end signalling NaNs, which even + 0 changes. */
typedef struct place {
    unsigned char *all, *at;
    size_t n;
} place;
static float *place_model(place *p, size_t n, size_t off, uint64_t seed) {
    p->all = (unsigned char *)room(4 * n + 2 * GUARD);
    memset(p->all, 0x5c, 4 * n + 2 * GUARD);
    p->at = p->all + GUARD / 2 + off;
    p->n = n;
    for (size_t i = 0; i < TAIL; i++) memcpy(p->at + 4 * (n + i), &SIGNALLING, 4);
    for (size_t i = 0; i < n; i++) {
        const float v = model_at(seed, i);
        memcpy(p->at + 4 * i, &v, 4);
    }
    return (float *)(void *)p->at;
}
static float placed(const place *p, size_t i) {
    float v;
    memcpy(&v, p->at + 4 * i, 4);
    return v;
}
static int guarded(const place *p) {
    for (const unsigned char *c = p->all; c < p->at; c++)
        if (*c != 0x5c) return 0;
    for (size_t i = 0; i < TAIL; i++)
        if (memcmp(p->at + 4 * (p->n + i), &SIGNALLING, 4)) return 0;
    return 1;
}
static int untouched(const place *p, uint64_t seed) {
    for (size_t i = 0; i < p->n; i++)
        if (bits(placed(p, i)) != bits(model_at(seed, i))) return 0;
    return guarded(p);
}
/* NULL, or what is wrong: bit for bit where there is a result, elsewhere zeros of both signs are one. */
static const char *took_step(const place *p, uint64_t seed, float rate, const float *result) {
    static const char *const wrong = "the model is another";
    for (size_t i = 0; i < p->n; i++) {
        const float want = stepped(model_at(seed, i), rate, result[i]);
        if (result[i] != 0.0f ? bits(want) != bits(placed(p, i)) : !(want == placed(p, i))) return wrong;
    }
    return guarded(p) ? NULL : "wrote beside the model";
}

/* ---- one exchange, on every route ---- */

typedef struct way {
    const char *op, *routes;
    int carries;
    uint32_t fold, flags;
    int weighs;
    const char *back;
    int abstains;
    size_t n;
} way;
/* auto, allgather, ring, tree, scatter, server, merge, shared, region, linear */
static const char ROUTES[] = "-grtcsmhol";
static const way WAYS[] = {
    { "dense", "-grtcsl", 0, 0, 0, 0, NULL, 0, 0 },
    { "topk:0.05", "-grtcsmho", 0, 0, 0, 0, NULL, 0, 0 },
    { "topk:1", "gmo", 0, 0, 0, 0, NULL, 0, 0 },
    { "topk:0.05|golomb", "grs", 0, 0, 0, 0, NULL, 0, 0 },
    { "dgc:0.1", "grho", 0, 0, 0, 0, NULL, 0, 0 },
    { "mstopk:0.05", "gtm", 0, 0, 0, 0, NULL, 0, 0 },
    { "sidco:0.1", "gcm", 0, 0, 0, 0, NULL, 0, 0 },
    { "chunked:100:0.1", "grcsh", 0, 0, 0, 0, NULL, 0, 0 },
    { "threshold:1", "grtcs", 0, 0, 0, 0, NULL, 0, 0 },
    { "blocks:16", "grs", 0, 0, 0, 0, NULL, 0, 0 },
    { "randk:0.2", "-grtcsl", 0, 0, 0, 0, NULL, 0, 0 },
    { "permk:8", "gs", 0, 0, 0, 0, NULL, 0, 0 },
    { "rotate:1|topk:0.1", "grs", 0, 0, 0, 0, NULL, 0, 0 },
    { "rotate:2", "gl", 0, 0, 0, 0, NULL, 0, 0 },
    { "absmax:4:512", "-grtcs", 0, 0, 0, 0, NULL, 0, 0 },
    { "qsgd:4", "gc", 0, 0, 0, 0, NULL, 0, 0 },
    { "efsign", "rtcs", 1, 0, 0, 0, NULL, 0, 0 },
    { "topk:0.1|f16", "grtcs", 1, 0, 0, 0, NULL, 0, 0 },
    { "dense|huffman", "gr", 0, 0, 0, 0, NULL, 0, 0 },
    { "lowrank:2:40:50", "gsl", 0, 0, 0, 0, NULL, 0, 2000 },
    { "atomo:2:40:50", "gs", 0, 0, 0, 0, NULL, 0, 2000 },
    { "topk:0.05", "gs", 0, CG_FOLD_SUM, 0, 0, NULL, 0, 0 },
    { "topk:0.05", "gsch", 0, 0, 0, 1, NULL, 0, 0 },
    { "dense", "gl", 0, CG_FOLD_SUM, 0, 1, NULL, 0, 0 },
    { "sign", "gsc", 0, CG_FOLD_VOTE, 0, 0, NULL, 0, 0 },
    { "topk:0.05", "g", 0, CG_FOLD_CONTRIBUTORS, 0, 0, NULL, 0, 0 },
    { "absmax:4:512", "grtcs", 0, 0, CG_AGREE_SCALES, 0, NULL, 0, 0 },
    { "topk:0.05", "sc", 0, 0, 0, 0, "absmax:8:64", 0, 0 },
    { "topk:0.05", "g", 0, 0, 0, 0, NULL, 1, 0 },
    { "absmax:4:512", "g", 0, 0, 0, 0, NULL, 1, 0 },
};
enum { WAY_COUNT = sizeof WAYS / sizeof *WAYS };
static const float RATES[] = { 0.1f, -2.5f, 0.0f };

static cg_op parsed(const char *text) {
    cg_op op;
    if (cg_op_parse(&op, text) != CG_OK) {
        printf("does not parse: %s\n", text);
        abort();
    }
    return op;
}
typedef struct world {
    sim s;
    cg_op back;
    float *x[MOST], *carry[MOST], *warm[MOST], *into[MOST];
    place model[MOST];
    uint64_t seed;
    size_t n;
    int ranks;
} world;
static void world_open(world *w, const way *a, uint32_t route, int ranks, size_t n, uint64_t seed, int which) {
    cg_exchange_desc d = CG_ZERO;
    float *x[MOST] = { NULL };
    memset(w, 0, sizeof *w);
    w->seed = seed;
    w->n = n;
    w->ranks = ranks;
    d.op = parsed(a->op);
    d.route = route;
    d.fold = a->fold;
    d.flags = a->flags;
    d.tag.seed = seed;
    d.tag.step = 3;
    if (a->back) {
        w->back = parsed(a->back);
        d.back = &w->back;
    }
    for (int r = 0; r < ranks; r++) {
        x[r] = w->x[r] = floats(n);
        w->carry[r] = floats(n);
        w->warm[r] = floats(WARM);
        w->into[r] = floats(n);
        for (size_t i = 0; i < n; i++) w->x[r][i] = value(seed, r, i);
        for (size_t i = 0; i < n && a->carries; i++) w->carry[r][i] = value(seed + 1, r, i) / 16.0f;
    }
    sim_open(&w->s, ranks, which, (int)(seed & 1), &d, x, n);
    for (int r = 0; r < ranks; r++) {
        cg_exchange_desc *k = &w->s.rank[r].desc;
        if (a->carries) k->carry = w->carry[r];
        if (strstr(a->op, "lowrank")) k->warm = w->warm[r];
        if (a->weighs) k->weight = 0.5f + (float)r;
        if (a->abstains && r == ranks / 2) k->flags |= CG_ABSTAIN;
    }
}
/* At any address; every second one with an `into`, which is not the place of anything then. */
static void world_model(world *w, float rate) {
    for (int r = 0; r < w->ranks; r++) {
        static const size_t off[] = { 4, 1, 0, 7, 2, 12, 3, 16 };
        w->s.rank[r].desc.model = place_model(&w->model[r], w->n, off[((uint64_t)r + w->seed) % 8], w->seed);
        w->s.rank[r].desc.rate = rate;
        if (((uint64_t)r + w->seed) % 2) w->s.rank[r].desc.into = w->into[r];
    }
}
static void world_close(world *w) {
    sim_close(&w->s);
    for (int r = 0; r < w->ranks; r++) {
        free(w->x[r]);
        free(w->carry[r]);
        free(w->warm[r]);
        free(w->into[r]);
        free(w->model[r].all);
    }
}
static const char *same_report(const cg_report *a, const cg_report *b, size_t n) {
    if (a->bytes_out != b->bytes_out || a->bytes_in != b->bytes_in || a->rounds != b->rounds || a->route != b->route)
        return "other bytes, rounds or route";
    if (a->used_len != b->used_len) return "something else counted";
    if (a->route == CG_ROUTE_LINEAR && a->used_len && memcmp(a->used, "cgrf", 4) == 0) { /* says where the values are */
        float *u = floats(n), *v = floats(n);
        const int same = cg_used_decode(NULL, a->used, a->used_len, 1.0f, 0.0f, u, n) == CG_OK &&
            cg_used_decode(NULL, b->used, b->used_len, 1.0f, 0.0f, v, n) == CG_OK && !memcmp(u, v, 4 * n);
        free(u);
        free(v);
        return same ? NULL : "something else counted";
    }
    return a->used_len && memcmp(a->used, b->used, a->used_len) ? "something else counted" : NULL;
}
static world plain, with;
static const char *compared(float rate) {
    const char *why = NULL;
    for (int r = 0; r < with.ranks && !why; r++) {
        const sim_rank *a = &plain.s.rank[r], *b = &with.s.rank[r];
        if (a->status != CG_OK || b->status != CG_OK) return b->report.why;
        if (memcmp(plain.x[r], plain.x[0], 4 * plain.n)) return "results differ";
        why = same_report(&a->report, &b->report, plain.n);
        if (!why && memcmp(plain.carry[r], with.carry[r], 4 * with.n)) why = "carries differ";
        if (!why && memcmp(plain.warm[r], with.warm[r], 4 * WARM)) why = "warm starts differ";
        if (!why) why = took_step(&with.model[r], with.seed, rate, plain.x[0]);
        if (!why && with.n && memcmp(with.model[r].at, with.model[0].at, 4 * with.n)) why = "ranks have different bits";
        for (size_t i = 0; i < with.n && !why && b->desc.into; i++)
            if (bits(with.x[r][i]) != bits(value(with.seed, r, i))) why = "x changed, though there is into";
    }
    return !why && with.s.stuck ? "ranks wait for ever" : why;
}
static const char *twice(const way *a, uint32_t route, int ranks, size_t n, float rate, uint64_t seed) {
    static const int which[] = { SIM_ALL, SIM_SENDRECV };
    const char *why;
    world_open(&plain, a, route, ranks, n, seed, which[seed / 2 % 2]);
    world_open(&with, a, route, ranks, n, seed, which[seed / 2 % 2]);
    world_model(&with, rate);
    sim_run(&plain.s);
    sim_run(&with.s);
    why = compared(rate);
    world_close(&plain);
    world_close(&with);
    return why;
}
TEST by_every_route(const way *a) {
    static const int sizes[] = { 1, 2, 3, 5, 8 };
    static const size_t lengths[] = { 0, 1, 100, 4095, 4096, 4097 };
    static uint64_t turn;
    static int ways;
    for (const char *c = a->routes; *c; c++, ways++) {
        const uint32_t route = (uint32_t)(strchr(ROUTES, *c) - ROUTES);
        for (int j = 0; j < 5; j++)
            for (int l = 0; l < 5; l++, turn++) {
                const size_t n = a->n ? a->n : l < 3 ? lengths[l] : l == 3 ? lengths[3 + (ways + j) % 3] : 70001;
                const float rate = RATES[turn / 2 % 3];
                const char *why;
                if ((l == 4 && (ways % 5 != j || quick)) || (a->n && l)) continue;
                why = twice(a, route, sizes[j], n, rate, turn);
                ASSERTm(SAY("%s by %c, fold %d, %d ranks, n = %lu, rate %g: %s", a->op, *c, (int)a->fold, sizes[j],
                            (unsigned long)n, (double)rate, why),
                    !why);
            }
    }
    PASS();
}
/* Random-k by linear, and the shared indices: -0 stays -0 where nothing was sent; a step of all values makes it 0. */
TEST touches_what_was_sent(const char *op, uint32_t route) {
    const way a = { op, "", 0, 0, 0, 0, NULL, 0, 0 };
    size_t touched[3] = { 0, 0, 0 };
    world_open(&with, &a, route, 3, 1000, 5, SIM_SENDRECV);
    world_model(&with, -0.5f);
    for (int r = 0; r < 3; r++)
        for (size_t i = 0; i < 1000; i++) {
            const float zero = -0.0f;
            memcpy((unsigned char *)with.model[r].at + 4 * i, &zero, 4);
            with.x[r][i] = 1.0f + (float)i;
        }
    sim_run(&with.s);
    for (int r = 0; r < 3; r++) {
        ASSERT_EQ(CG_OK, with.s.rank[r].status);
        for (size_t i = 0; i < 1000; i++) {
            uint32_t u;
            memcpy(&u, (unsigned char *)with.model[r].at + 4 * i, 4);
            touched[r] += u != 0x80000000u;
        }
        ASSERT_EQ_FMT((size_t)50, touched[r], "%zu");
    }
    world_close(&with);
    PASS();
}
/* Between chunks and words of 64 nothing is left over, whatever is selected. */
TEST every_length(void) {
    const way a = { "threshold:2", "g", 0, 0, 0, 0, NULL, 0, 0 };
    for (size_t n = 0; n < (quick ? 200u : 700u); n++) {
        const char *why = twice(&a, CG_ROUTE_ALLGATHER, 2, n, 0.3f, n);
        ASSERTm(SAY("n = %lu: %s", (unsigned long)n, why), !why);
    }
    PASS();
}
/* Whole chunks that nobody touches. */
TEST next_to_nothing(void) {
    const way a = { "topk:0.00001", "g", 0, 0, 0, 0, NULL, 0, 0 };
    const char *why = twice(&a, CG_ROUTE_ALLGATHER, 2, 300007, 0.3f, 5);
    ASSERTm(why, !why);
    PASS();
}
/* A sparse sum goes to the model alone: neither x nor into is written. */
TEST nothing_else_is_touched(uint32_t fold) {
    const way a = { "topk:0.05", "g", 0, fold, 0, 0, NULL, 0, 0 };
    world_open(&with, &a, CG_ROUTE_ALLGATHER, 3, 9000, 4, SIM_ALL);
    world_model(&with, 0.3f);
    sim_run(&with.s);
    for (int r = 0; r < with.ranks; r++) {
        ASSERT_EQ(CG_OK, with.s.rank[r].status);
        ASSERT(!untouched(&with.model[r], with.seed));
        for (size_t i = 0; i < with.n; i++)
            ASSERT(bits(with.x[r][i]) == bits(value(with.seed, r, i)) && with.into[r][i] == 0.0f);
    }
    world_close(&with);
    PASS();
}

/* ---- errors ---- */

static const way FAULTY[] = { { "topk:0.05", "grtcsmho", 0, 0, 0, 0, NULL, 0, 0 },
    { "dense", "grtcsl", 0, 0, 0, 0, NULL, 0, 0 }, { "absmax:4:512", "grtcs", 0, 0, CG_AGREE_SCALES, 0, NULL, 0, 0 },
    { "efsign", "rs", 1, 0, 0, 0, NULL, 0, 0 }, { "sign", "gs", 0, CG_FOLD_VOTE, 0, 0, NULL, 0, 0 },
    { "topk:0.05", "g", 0, CG_FOLD_CONTRIBUTORS, 0, 0, NULL, 0, 0 },
    { "lowrank:2:40:50", "l", 0, 0, 0, 0, NULL, 0, 0 } };
enum { FAULTY_COUNT = sizeof FAULTY / sizeof *FAULTY, FAULT_N = 2000, FAULT_SEED = 3, FAULT_RANKS = 3 };
static void faulty_open(const way *a, uint32_t route, int which) {
    world_open(&with, a, route, FAULT_RANKS, FAULT_N, FAULT_SEED, which);
    world_model(&with, 0.1f);
}
/* Who failed has its model as it was, the others have taken their step. */
static const char *all_or_nothing(void) {
    for (int r = 0; r < with.ranks; r++) {
        const int ok = with.s.rank[r].status == CG_OK;
        if (!ok && !untouched(&with.model[r], with.seed)) return "a model changed, though this rank failed";
        if (ok && took_step(&with.model[r], with.seed, 0.1f, plain.x[0])) return "no step, though all is well";
    }
    return NULL;
}
static void hurt_packet(void *user, void *bytes, size_t len, int from) {
    unsigned char *p = (unsigned char *)bytes;
    (void)from;
    if (len < CG_HEADER_BYTES || memcmp(p, "cgpk", 4)) return;
    p[len / 2] = (unsigned char)(p[len / 2] ^ 0x10);
    ++*(int *)user;
}
/* At every message of every rank: it fails, or (how 1) a packet is damaged. */
static const char *fails_at(const way *a, uint32_t route, int how, int who, int *total) {
    for (int io = 0, more = 1; more && io < 200; io++) {
        const char *why;
        int hurts = 0;
        faulty_open(a, route, SIM_SENDRECV);
        if (how == 0) {
            with.s.fail_rank = who;
            with.s.fail_io = io;
            with.s.fail_code = 7;
        } else {
            with.s.hurt = hurt_packet;
            with.s.hurt_user = &hurts;
            with.s.hurt_rank = who;
            with.s.hurt_io = io;
        }
        sim_run(&with.s);
        why = all_or_nothing();
        more = with.s.rank[who].ios > io;
        if (how == 0 && !why && more != (with.s.rank[who].status == CG_E_TRANSPORT)) why = "another status";
        if (how == 1 && !why && hurts && with.s.rank[who].status == CG_OK) why = "a damaged packet was taken";
        *total += how == 0 ? more : hurts;
        world_close(&with);
        if (why) return SAY("%s by %d, rank %d, message %d, how %d: %s", a->op, (int)route, who, io, how, why);
    }
    return NULL;
}
TEST a_failure_at_every_message(int how) {
    for (int l = 0; l < FAULTY_COUNT; l++)
        for (const char *c = FAULTY[l].routes; *c; c++) {
            const uint32_t route = (uint32_t)(strchr(ROUTES, *c) - ROUTES);
            int total = 0;
            if (how == 1 && strchr("lo", *c)) continue; /* floats, lists: no packets */
            world_open(&plain, &FAULTY[l], route, FAULT_RANKS, FAULT_N, FAULT_SEED, SIM_SENDRECV);
            sim_run(&plain.s);
            ASSERT_EQ(CG_OK, plain.s.rank[0].status);
            for (int who = 0; who < FAULT_RANKS; who++) {
                const char *why = fails_at(&FAULTY[l], route, how, who, &total);
                ASSERTm(why, !why);
            }
            ASSERTm(SAY("%s by %c: nothing happened", FAULTY[l].op, *c), total > 0);
            world_close(&plain);
        }
    PASS();
}
/* What is wrong with rank 1: 0 a NaN in x, 1 to 3 its rate, 4 its memory. */
TEST refused(int what) {
    static const cg_status own[] = { CG_E_NONFINITE, CG_E_ARG, CG_E_ARG, CG_E_ARG, CG_E_MEMORY };
    for (int l = 0; l < FAULTY_COUNT; l++)
        for (const char *c = FAULTY[l].routes; *c; c++) {
            sim_rank *k = &with.s.rank[1];
            faulty_open(&FAULTY[l], (uint32_t)(strchr(ROUTES, *c) - ROUTES), SIM_ALL);
            if (what == 0) with.x[1][1234] = not_a_number();
            if (what == 1) k->desc.rate = not_a_number();
            if (what == 2) k->desc.rate = infinite();
            if (what == 3) k->desc.rate = -infinite();
            if (what == 4) {
                k->bytes = 64;
                k->mem = room(64);
            }
            if (what >= 1 && what <= 3) ASSERT_EQ(0u, cg_exchange_memory(&k->desc, &k->transport, FAULT_N));
            sim_run(&with.s);
            for (int r = 0; r < FAULT_RANKS; r++) {
                const cg_status got = with.s.rank[r].status;
                ASSERTm(SAY("%s by %c, rank %d: %s", FAULTY[l].op, *c, r, cg_status_str(got)),
                    got == (r == 1 ? own[what] : CG_E_PEER));
                ASSERTm("no blame",
                    with.s.rank[r].report.rank == 1 && with.s.rank[r].report.why && !with.s.rank[r].report.used);
                ASSERTm("the model changed", untouched(&with.model[r], with.seed));
            }
            world_close(&with);
        }
    PASS();
}
/* Of more ranks than the state has room for; and without a model a rate is nobody's business. */
TEST a_rate_of_many(void) {
    static sim s;
    enum { MANY = 18 };
    cg_exchange_desc d = CG_ZERO;
    float x[MANY][4], model[MANY][4], *at[MANY];
    d.op = cg_topk(0.5f);
    for (int turn = 0; turn < 2; turn++) {
        for (int r = 0; r < MANY; r++)
            for (int i = 0; i < 4; i++) {
                at[r] = x[r];
                x[r][i] = (float)(i + 1);
                model[r][i] = 1.0f;
            }
        sim_open(&s, MANY, SIM_ALL, 1, &d, at, 4);
        for (int r = 0; r < MANY; r++) {
            s.rank[r].desc.model = turn && r == 5 ? NULL : model[r];
            s.rank[r].desc.rate = 0.5f;
        }
        s.rank[5].desc.rate = not_a_number();
        sim_run(&s);
        for (int r = 0; r < MANY; r++) {
            ASSERT_EQ(turn ? CG_OK : r == 5 ? CG_E_ARG : CG_E_PEER, s.rank[r].status);
            ASSERT(model[r][0] == 1.0f && model[r][1] == 1.0f &&
                model[r][3] == (turn && r != 5 ? stepped(1.0f, 0.5f, x[5][3]) : 1.0f));
        }
        sim_close(&s);
    }
    PASS();
}

/* ---- layers ---- */

enum { LAYERS = 10, SMALL = 400, LAYER_RANKS = 3 };
static const char *const layer_op[LAYERS] = { "topk:0.05", "efsign", "dense", "absmax:4:512", "topk:0.1", "randk:0.5",
    "lowrank:2:50:40", "topk:0.05", "dense", "dense" };
static const size_t layer_n[LAYERS] = { 5000, 100, 0, 30000, 7, 300, 2000, 4097, 399, 1 };
static const int layer_has[LAYERS] = { 1, 1, 1, 1, 3, 2, 3, 0, 0, 1 }; /* 1: a model, 2: an into */
typedef struct pile {
    /* rank 1 alone: that callback fails; rounds upwards (2: it does not); the rate of that layer is NaN */
    int with, fail_at, odd_rounding, bad;
    float *x[LAYER_RANKS][LAYERS], *into[LAYER_RANKS][LAYERS];
    place model[LAYER_RANKS][LAYERS];
    cg_layer layer[LAYER_RANKS][LAYERS];
    void *mem[LAYER_RANKS];
    cg_status status[LAYER_RANKS];
    cg_report report[LAYER_RANKS];
    int calls[LAYER_RANKS];
    cg_transport real[LAYER_RANKS];
} pile;
static pile piles[2];
typedef struct tap {
    const cg_transport *real;
    int *calls, fail_at;
} tap;
static int tapped(void *user, const void *out, size_t out_bytes, int to, void *in, size_t in_bytes, int from) {
    const tap *t = (const tap *)user;
    if ((*t->calls)++ == t->fail_at) return 77;
    return t->real->sendrecv(t->real->user, out, out_bytes, to, in, in_bytes, from);
}
static uint64_t layer_seed(int l) { return 50 + (uint64_t)l; }
static int pile_rank(cg_threads_world *net, int rank, void *user) {
    pile *k = (pile *)user;
    const int alone = k->fail_at >= 0 || k->odd_rounding; /* an allreduce of threads would add in that mode */
    cg_transport t = cg_threads_transport(net, rank, alone ? CG_THREADS_SENDRECV : CG_THREADS_ALL);
    cg_layer *list = k->layer[rank];
    size_t bytes;
    tap own;
    cg_threads_timeout(net, 5000);
    k->real[rank] = t;
    own.real = &k->real[rank];
    own.calls = &k->calls[rank];
    own.fail_at = k->fail_at;
    if (k->fail_at >= 0 && rank == 1) {
        t.user = &own;
        t.sendrecv = tapped;
    }
    memset(list, 0, LAYERS * sizeof *list);
    for (int l = 0; l < LAYERS; l++) {
        cg_exchange_desc *d = &list[l].desc;
        d->op = parsed(layer_op[l]);
        d->tag.tensor = (uint32_t)l;
        list[l].n = layer_n[l];
        list[l].x = k->x[rank][l] = floats(layer_n[l]);
        k->into[rank][l] = floats(layer_n[l]);
        for (size_t i = 0; i < layer_n[l]; i++) list[l].x[i] = value(layer_seed(l), rank, i);
        if (layer_has[l] & 2) d->into = k->into[rank][l];
        if (!(k->with && (layer_has[l] & 1))) continue;
        d->model = place_model(&k->model[rank][l], layer_n[l], (size_t)(rank + l) % 9, layer_seed(l));
        d->rate = k->bad == l && rank == 1 ? not_a_number() : RATES[l % 2];
    }
    bytes = cg_exchange_layers_memory(list, LAYERS, SMALL, &t);
    k->mem[rank] = room(bytes);
#ifdef FE_UPWARD
    if (k->odd_rounding == 1 && rank == 1) fesetround(FE_UPWARD);
#endif
    k->status[rank] = cg_exchange_layers(list, LAYERS, SMALL, &t, k->mem[rank], bytes, &k->report[rank]);
    fesetround(FE_TONEAREST);
    return 0;
}
static void pile_run(pile *k, int models, int fail_at, int odd_rounding, int bad) {
    memset(k, 0, sizeof *k);
    k->with = models;
    k->fail_at = fail_at;
    k->odd_rounding = odd_rounding;
    k->bad = bad;
    cg_threads_run(LAYER_RANKS, pile_rank, k);
}
static void pile_close(pile *k) {
    for (int r = 0; r < LAYER_RANKS; r++) {
        free(k->mem[r]);
        for (int l = 0; l < LAYERS; l++) {
            free(k->x[r][l]);
            free(k->into[r][l]);
            free(k->model[r][l].all);
        }
    }
}
static const float *pile_result(const pile *k, int r, int l) { return layer_has[l] & 2 ? k->into[r][l] : k->x[r][l]; }
/* Layer l of rank r, against a run without models. */
static const char *layer_right(const pile *a, const pile *b, int r, int l) {
    const size_t n = layer_n[l];
    const int ok = b->layer[r][l].status == CG_OK;
    if (layer_has[l] & 1) {
        if (ok) return took_step(&b->model[r][l], layer_seed(l), RATES[l % 2], pile_result(a, 0, l));
        return untouched(&b->model[r][l], layer_seed(l)) ? NULL : "a model changed, though this rank failed";
    }
    if (ok) return memcmp(pile_result(a, 0, l), pile_result(b, r, l), 4 * n) ? "the result is another" : NULL;
    for (size_t i = 0; i < n; i++)
        if (bits(b->x[r][l][i]) != bits(value(layer_seed(l), r, i))) return "x changed, though this rank failed";
    return NULL;
}
TEST layers_take_their_steps(int odd_rounding) {
    pile *a = &piles[0], *b = &piles[1];
#if !defined(__x86_64__) && !defined(__aarch64__)
    if (odd_rounding) SKIPm("no rounding mode of the caller's is known here");
#endif
    pile_run(a, 0, -1, 2 * odd_rounding, -1);
    pile_run(b, 1, -1, odd_rounding, -1);
    for (int r = 0; r < LAYER_RANKS; r++) {
        ASSERT_EQ(CG_OK, a->status[r]);
        ASSERT_EQ(CG_OK, b->status[r]);
        ASSERT_EQ(a->report[r].bytes_out, b->report[r].bytes_out);
        ASSERT_EQ(a->report[r].bytes_in, b->report[r].bytes_in);
        for (int l = 0; l < LAYERS; l++) {
            const char *why = same_report(&a->layer[r][l].report, &b->layer[r][l].report, a->layer[r][l].n);
            if (!why) why = layer_right(a, b, r, l);
            if (!why && (layer_has[l] & 1) && memcmp(b->model[0][l].at, b->model[r][l].at, 4 * layer_n[l]))
                why = "ranks have different bits";
            ASSERTm(SAY("layer %d, rank %d: %s", l, r, why), !why);
            ASSERT_EQ(CG_OK, b->layer[r][l].status);
        }
    }
    pile_close(a);
    pile_close(b);
    PASS();
}
/* The rate of a long layer, and of one that travels with others. */
TEST a_layer_with_a_bad_rate(int which) {
    pile *b = &piles[1];
    pile_run(b, 1, -1, 0, which);
    for (int r = 0; r < LAYER_RANKS; r++) {
        ASSERT_EQ(r == 1 ? CG_E_ARG : CG_E_PEER, b->status[r]);
        if (r == 1) ASSERTm(b->report[r].why, strstr(b->report[r].why, "rate"));
        for (int l = 0; l < LAYERS; l++) {
            const char *why = b->layer[r][l].status == CG_OK ? "exchanged" : layer_right(b, b, r, l);
            ASSERTm(SAY("layer %d, rank %d: %s", l, r, why), !why);
        }
    }
    pile_close(b);
    PASS();
}
TEST a_failure_between_layers(void) {
    pile *a = &piles[0], *b = &piles[1];
    int failed = 1, some = 0;
    pile_run(a, 0, 1 << 20, 0, -1);
    for (int at = 0; failed && at < 400; at += quick ? 3 : 1) {
        pile_run(b, 1, at, 0, -1);
        failed = b->calls[1] > at;
        ASSERT_EQ(failed ? CG_E_TRANSPORT : CG_OK, b->status[1]);
        for (int r = 0; r < LAYER_RANKS; r++)
            for (int l = 0; l < LAYERS; l++) {
                const char *why = layer_right(a, b, r, l);
                ASSERTm(
                    SAY("callback %d, layer %d, rank %d, %s: %s", at, l, r, cg_status_str(b->layer[r][l].status), why),
                    !why);
                some += failed && b->layer[r][l].status == CG_OK && (layer_has[l] & 1);
            }
        pile_close(b);
    }
    ASSERT(!failed && some);
    pile_close(a);
    PASS();
}

/* ---- error feedback: two trainings side by side ---- */

typedef struct course {
    const char *op;
    uint32_t kind;
    float momentum;
    int nesterov, bytes;
    uint32_t route;
    size_t n;
    uint64_t dense_steps;
    int carries;
} course;
#define K(kind) CG_EF_##kind
static const course COURSES[] = {
    { "topk:0.02", K(CLASSIC), 0, 0, 0, 0, 9000, 0, 0 },
    { "topk:0.02", K(CLASSIC), 0, 0, 0, CG_ROUTE_MERGE, 700, 2, 0 },
    { "topk:0.05", K(CLASSIC), 0, 0, 1, 0, 500, 0, 0 },
    { "topk:0.02", K(CLASSIC), 0, 0, 0, CG_ROUTE_SHARED, 700, 0, 0 },
    { "efsign", K(CLASSIC), 0, 0, 0, CG_ROUTE_RING, 300, 0, 1 },
    { "lowrank:2:20:15", K(CLASSIC), 0, 0, 0, 0, 300, 0, 0 },
    { "absmax:4:512:nearest", K(LOCO), 0, 0, 0, 0, 900, 0, 0 },
    { "topk:0.05", K(LOCO), 0, 0, 0, 0, 500, 0, 0 },
    { "topk:0.05", K(SCALECOM), 0, 0, 0, 0, 500, 0, 0 },
    { "qsgd:4", K(ECQ), 0, 0, 0, 0, 300, 1, 0 },
    { "topk:0.05", K(MOMENTUM), 0.9f, 0, 0, 0, 5000, 2, 0 },
    { "topk:0.05", K(MOMENTUM), 0.9f, 1, 0, CG_ROUTE_REGION, 600, 0, 0 },
    { "sign", K(SIGNUM), 0.9f, 0, 0, 0, 400, 0, 0 },
    { "variance:1", K(VARIANCE), 0, 0, 0, 0, 400, 0, 0 },
    { "topk:0.05", K(EF21), 0, 0, 0, 0, 5000, 0, 0 },
    { "topk:0.05|absmax:8:64", K(EF21), 0.9f, 0, 0, 0, 300, 2, 0 },
    { "lowrank:2:20:15", K(EF21), 0, 0, 0, 0, 300, 0, 0 },
    { "terngrad", K(DIANA), 0, 0, 0, 0, 400, 0, 0 },
    { "randk:0.25", K(DIANA), 0, 0, 0, 0, 300, 0, 0 },
    { "minmax:4:400:nearest", K(LAQ), 0, 0, 0, 0, 400, 0, 0 },
    { "efsign", K(ONEBIT_ADAM), 0.9f, 0, 0, 0, 400, 0, 0 },
    { "topk:0.1", K(ONEBIT_ADAM), 0.5f, 0, 0, 0, 300, 2, 0 },
    { "topk:0.1", K(CLASSIC), 0, 0, 0, 0, 7, 0, 0 },
    { "topk:0.1", K(EF21), 0, 0, 0, 0, 50, 0, 0 },
    { "efsign", K(ONEBIT_ADAM), 0.5f, 0, 0, 0, 20, 0, 0 },
    { "topk:0.1", K(MOMENTUM), 0.5f, 0, 0, 0, 90, 0, 0 },
    { "topk:0.1", K(CLASSIC), 0, 0, 0, 0, 1, 0, 0 },
};
enum { COURSE_COUNT = sizeof COURSES / sizeof *COURSES, STEPS = 30, NAN_STEP = 7, RATE_STEP = 11, EF_RANKS = 3 };
typedef struct pupil {
    cg_ef ef[COURSE_COUNT];
    void *memory[COURSE_COUNT];
    float *grad[COURSE_COUNT], *aux[COURSE_COUNT];
    place model[COURSE_COUNT];
    cg_report report[COURSE_COUNT];
    void *mem[COURSE_COUNT];
    cg_status status[COURSE_COUNT];
} pupil;
typedef struct school {
    const course *list;
    int count, together, silent;
    char note[EF_RANKS][240];
} school;
static school sc;

static int pupil_open(pupil *u, const cg_transport *t) {
    memset(u, 0, sizeof *u);
    for (int l = 0; l < sc.count; l++) {
        const course *c = &sc.list[l];
        cg_exchange_desc road = CG_ZERO;
        cg_ef_desc d = CG_ZERO;
        d.op = road.op = parsed(c->op);
        d.n = c->n;
        d.kind = c->kind;
        d.momentum = c->momentum;
        d.nesterov = c->nesterov;
        d.bytes = c->bytes;
        d.dense_steps = c->dense_steps;
        d.laq_step = c->kind == CG_EF_LAQ ? 0.1f : 0.0f;
        road.route = c->route;
        if (c->carries) d.carry = cg_exchange_carry(&road, t, c->n);
        u->memory[l] = room(cg_ef_memory(&d));
        if (cg_ef_init(&u->ef[l], &d, u->memory[l], cg_ef_memory(&d)) != CG_OK) return 0;
        u->grad[l] = floats(c->n);
        u->aux[l] = floats(c->n);
        place_model(&u->model[l], c->n, (size_t)(t->rank + l) % 9, (uint64_t)l);
    }
    return 1;
}
static void pupil_close(pupil *u) {
    for (int l = 0; l < sc.count; l++) {
        free(u->memory[l]);
        free(u->grad[l]);
        free(u->aux[l]);
        free(u->model[l].all);
        free(u->mem[l]);
    }
}
static float rate_of(int step, int l) { return RATES[(step + l) % 7 == 0 ? 2 : (step + l) % 3 == 0] / 4.0f; }
static void describe(pupil *u, int l, int step, int rank, int models, cg_extra *side, cg_exchange_desc *d) {
    const course *c = &sc.list[l];
    memset(d, 0, sizeof *d);
    d->tag.step = (uint64_t)step;
    d->tag.tensor = (uint32_t)l;
    d->tag.seed = 4;
    d->route = c->route;
    for (size_t i = 0; i < c->n; i++) {
        u->grad[l][i] = value((uint64_t)(1000 + 50 * step + l), rank, i);
        u->aux[l][i] = u->grad[l][i] * u->grad[l][i] * (float)(mixed(i + 7) & 255) / 256.0f;
    }
    memset(side, 0, sizeof *side);
    side->aux = u->aux[l];
    if (c->kind == CG_EF_VARIANCE) d->side = side;
    if (models) {
        d->model = (float *)(void *)u->model[l].at;
        d->rate = rate_of(step, l);
    }
    /* where nothing is put in memory on rank 1: by a NaN in grad, or (with a model) in the rate of that step */
    if (rank == 1 && l == sc.count / 2 && step == NAN_STEP) u->grad[l][c->n / 2] = not_a_number();
    if (rank == 1 && l == sc.count / 2 && step == RATE_STEP && models) d->rate = not_a_number();
    if (rank == 1 && l == sc.count / 2 && step == RATE_STEP && !models) u->grad[l][c->n / 2] = infinite();
}
static void pupil_exchange(pupil *u, const cg_transport *t, int step, int models) {
    static const cg_layer zero;
    cg_layer list[COURSE_COUNT];
    cg_extra side[COURSE_COUNT];
    cg_ef *efs[COURSE_COUNT];
    size_t bytes;
    for (int l = 0; l < sc.count; l++) {
        efs[l] = &u->ef[l];
        list[l] = zero;
        describe(u, l, step, t->rank, models && (!sc.together || l % 4 != 3), &side[l], &list[l].desc);
        list[l].x = u->grad[l];
        free(u->mem[l]);
        u->mem[l] = NULL;
        if (sc.together) continue;
        bytes = cg_ef_exchange_memory(&u->ef[l], &list[l].desc, t);
        u->mem[l] = room(bytes);
        u->status[l] = cg_ef_exchange(&u->ef[l], &list[l].desc, t, u->grad[l], u->mem[l], bytes, &u->report[l]);
    }
    if (!sc.together) return;
    bytes = cg_ef_layers_memory(efs, list, (size_t)sc.count, 100, t);
    u->mem[0] = room(bytes);
    (void)!cg_ef_exchange_layers(efs, list, (size_t)sc.count, 100, t, u->mem[0], bytes, NULL);
    for (int l = 0; l < sc.count; l++) {
        u->status[l] = list[l].status;
        u->report[l] = list[l].report;
    }
}
/* model -= rate grad, here: always of the first pupil; of the second where it had no model. Tells LAQ how far that
   was. */
static void pupil_step(pupil *u, int step, int l) {
    for (size_t i = 0; i < u->model[l].n; i++) {
        const float v = stepped(placed(&u->model[l], i), rate_of(step, l), u->grad[l][i]);
        memcpy(u->model[l].at + 4 * i, &v, 4);
    }
}
static const char *same_memory(const cg_ef *a, const cg_ef *b) {
    const size_t cap = cg_ef_save_bytes(a);
    void *one = room(cap), *two = room(cap);
    size_t la = 0, lb = 0;
    const char *why = NULL;
    if (cg_ef_save(a, one, cap, &la) != CG_OK || cg_ef_save(b, two, cap, &lb) != CG_OK) why = "is not saved";
    else if (la != lb || memcmp(one, two, la)) why = "memories differ";
    free(one);
    free(two);
    return why;
}
static const char *pupils_agree(pupil *u, int l, int step) {
    const course *c = &sc.list[l];
    const int bad = step == NAN_STEP || step == RATE_STEP;
    const char *why = NULL;
    unsigned char *was = (unsigned char *)room(4 * c->n);
    memcpy(was, u[0].model[l].at, 4 * c->n);
    if (u[0].status[l] == CG_OK) pupil_step(&u[0], step, l);
    if (u[1].status[l] == CG_OK && sc.together && l % 4 == 3) pupil_step(&u[1], step, l);
    if (u[0].status[l] != u[1].status[l] && !bad) why = u[1].report[l].why ? u[1].report[l].why : "another status";
    if ((u[0].status[l] == CG_OK) != (u[1].status[l] == CG_OK)) why = "one of them fails";
    if (!why && u[1].status[l] == CG_OK && !sc.together) why = same_report(&u[0].report[l], &u[1].report[l], 0);
    for (size_t i = 0; i < c->n && !why; i++)
        if (!same(placed(&u[0].model[l], i), placed(&u[1].model[l], i))) why = "models differ";
    if (!why && u[1].status[l] != CG_OK && memcmp(u[0].model[l].at, was, 4 * c->n)) why = "the model changed";
    if (!why && !guarded(&u[1].model[l])) why = "wrote beside the model";
    if (!why && c->kind == CG_EF_LAQ &&
        (cg_ef_moved(&u[0].ef[l], 40.0) != CG_OK || cg_ef_moved(&u[1].ef[l], 40.0) != CG_OK))
        why = "does not move";
    if (!why) why = same_memory(&u[0].ef[l], &u[1].ef[l]);
    free(was);
    return why;
}
static int schooled(cg_threads_world *net, int rank, void *user) {
    pupil *u = (pupil *)room(2 * sizeof *u);
    const cg_transport t = cg_threads_transport(net, rank, CG_THREADS_ALL);
    const char *why = NULL;
    (void)user;
    cg_threads_timeout(net, 20000);
    if (!pupil_open(&u[0], &t) || !pupil_open(&u[1], &t)) why = "does not open";
    for (int step = 0; step < STEPS && !why; step++) {
        for (int m = 0; m < 2; m++) pupil_exchange(&u[m], &t, step, m);
        for (int l = 0; l < sc.count && !why; l++) {
            const int bad = (step == NAN_STEP || step == RATE_STEP) && t.size > 1 && (sc.together || l == sc.count / 2);
            why = pupils_agree(u, l, step);
            if (!why && bad != (u[1].status[l] != CG_OK))
                why = u[1].report[l].why ? u[1].report[l].why : "another status";
            if (!why && bad && !sc.together && rank == 1 &&
                u[1].status[l] != (step == NAN_STEP ? CG_E_NONFINITE : CG_E_ARG))
                why = "another error";
            if (why)
                snprintf(sc.note[rank], sizeof sc.note[rank], "%s, kind %d, route %d, step %d, rank %d of %d: %s",
                    sc.list[l].op, (int)sc.list[l].kind, (int)sc.list[l].route, step, rank, t.size, why);
            if (rank == 0) sc.silent += cg_ef_stats_of(&u[1].ef[l]).silent;
        }
    }
    pupil_close(&u[0]);
    pupil_close(&u[1]);
    free(u);
    return why != NULL;
}
static const char *school_run(const course *list, int count, int together, int size) {
    int bad = size;
    memset(&sc, 0, sizeof sc);
    sc.list = list;
    sc.count = count;
    sc.together = together;
    if (!cg_threads_run(size, schooled, NULL)) return NULL;
    for (int r = 0; r < size; r++)
        if (sc.note[r][0] && (bad == size || !strstr(sc.note[r], "callback"))) bad = r;
    return bad < size ? sc.note[bad] : "a rank failed";
}
TEST trainings_agree(const course *c) {
    static int turn;
    for (int size = 1; size <= 3; size++) {
        const char *why;
        if (quick && (size + turn) % 3) continue;
        why = school_run(c, 1, 0, size);
        ASSERTm(why, !why);
        if (c->kind == CG_EF_LAQ) ASSERTm("LAQ is never silent", sc.silent > 0);
    }
    turn++;
    PASS();
}
TEST trainings_of_layers_agree(int size) {
    const char *why = school_run(COURSES, COURSE_COUNT, 1, size);
    ASSERTm(why, !why);
    PASS();
}

/* ---- error feedback, and a callback that fails ---- */

typedef struct fault {
    const course *c;
    int with, fail_at, calls; /* of rank 1, in the last step */
    cg_status status[EF_RANKS];
    place model[EF_RANKS];
    float *grad[EF_RANKS];
    cg_transport real[EF_RANKS];
} fault;
static fault faults[2];
static int fault_rank(cg_threads_world *net, int rank, void *user) {
    fault *f = (fault *)user;
    cg_transport t = cg_threads_transport(net, rank, CG_THREADS_SENDRECV);
    cg_exchange_desc x = CG_ZERO;
    cg_ef_desc d = CG_ZERO;
    cg_ef ef;
    tap own;
    void *memory, *mem = NULL;
    cg_threads_timeout(net, 5000);
    f->real[rank] = t;
    own.real = &f->real[rank];
    own.calls = &f->calls;
    own.fail_at = f->fail_at;
    d.op = parsed(f->c->op);
    d.n = f->c->n;
    d.kind = f->c->kind;
    d.momentum = f->c->momentum;
    memory = room(cg_ef_memory(&d));
    if (cg_ef_init(&ef, &d, memory, cg_ef_memory(&d)) != CG_OK) abort();
    f->grad[rank] = floats(d.n);
    place_model(&f->model[rank], d.n, (size_t)rank, 9);
    for (int step = 0; step < 3; step++) { /* the first two are good */
        size_t bytes;
        for (size_t i = 0; i < d.n; i++) f->grad[rank][i] = value((uint64_t)step, rank, i);
        x.tag.step = (uint64_t)step;
        x.route = f->c->route;
        if (step == 2 && f->with) {
            x.model = (float *)(void *)f->model[rank].at;
            x.rate = 0.1f;
        }
        if (step == 2 && rank == 1) {
            t.user = &own;
            t.sendrecv = tapped;
        }
        free(mem);
        bytes = cg_ef_exchange_memory(&ef, &x, &t);
        mem = room(bytes);
        f->status[rank] = cg_ef_exchange(&ef, &x, &t, f->grad[rank], mem, bytes, NULL);
    }
    free(mem);
    free(memory);
    return 0;
}
static void fault_run(fault *f, const course *c, int at, int models) {
    memset(f, 0, sizeof *f);
    f->c = c;
    f->fail_at = at;
    f->with = models;
    cg_threads_run(LAYER_RANKS, fault_rank, f);
}
static void fault_close(fault *f) {
    for (int r = 0; r < LAYER_RANKS; r++) {
        free(f->grad[r]);
        free(f->model[r].all);
    }
}
TEST a_failure_in_training(const course *c) {
    int failed = 1;
    fault_run(&faults[0], c, 1 << 20, 0);
    for (int at = 0; failed && at < 100; at++) {
        fault *f = &faults[1];
        fault_run(f, c, at, 1);
        failed = f->calls > at;
        ASSERT_EQ(failed ? CG_E_TRANSPORT : CG_OK, f->status[1]);
        for (int r = 0; r < LAYER_RANKS; r++) {
            const char *why = untouched(&f->model[r], 9) ? NULL : "the model changed";
            if (f->status[r] == CG_OK) why = took_step(&f->model[r], 9, 0.1f, faults[0].grad[0]);
            ASSERTm(SAY("%s, kind %d, callback %d, rank %d: %s", c->op, (int)c->kind, at, r, why), !why);
        }
        fault_close(f);
    }
    ASSERT(!failed);
    fault_close(&faults[0]);
    PASS();
}

/* A sum that is no float any more is refused by the kinds that remember it: no step, no memory of it, and the next
   one is as after a rollback. */
typedef struct excess {
    uint32_t kind;
    cg_status status[2][3];
    const char *why[2];
    int kept[2], model[2];
    float error[2][2];
} excess;
static int excess_rank(cg_threads_world *net, int rank, void *user) {
    excess *e = (excess *)user;
    const cg_transport t = cg_threads_transport(net, rank, CG_THREADS_ALL);
    cg_exchange_desc x = CG_ZERO;
    cg_ef_desc d = CG_ZERO;
    cg_report report;
    cg_ef ef;
    float grad[4], model[4] = { 1.0f, 1.0f, 1.0f, 1.0f }, was[4];
    void *memory, *mem;
    d.n = 4;
    d.kind = e->kind;
    d.momentum = e->kind == CG_EF_ONEBIT_ADAM ? 0.25f : 0.0f;
    memory = room(cg_ef_memory(&d));
    if (cg_ef_init(&ef, &d, memory, cg_ef_memory(&d)) != CG_OK) abort();
    x.fold = CG_FOLD_SUM;
    x.route = CG_ROUTE_ALLGATHER;
    x.model = model;
    x.rate = 0.5f;
    mem = room(cg_ef_exchange_memory(&ef, &x, &t));
    for (int step = 0; step < 3; step++) {
        for (int i = 0; i < 4; i++) grad[i] = step == 0 ? 1.0f : step == 1 && !i ? 3.4e38f : 0.0f;
        memcpy(was, model, sizeof was);
        x.tag.step = (uint64_t)step;
        e->status[rank][step] = cg_ef_exchange(&ef, &x, &t, grad, mem, cg_ef_exchange_memory(&ef, &x, &t), &report);
        if (step != 1) continue;
        e->why[rank] = report.why;
        e->kept[rank] = cg_ef_stats_of(&ef).kept;
        e->model[rank] = !memcmp(was, model, sizeof was) && !report.used;
        e->error[rank][0] = cg_ef_residual(&ef)[0];
        e->error[rank][1] = cg_ef_residual(&ef)[3];
        cg_ef_reset(&ef);
    }
    free(mem);
    free(memory);
    return 0;
}
TEST a_sum_beyond_floats(uint32_t kind) {
    excess e;
    memset(&e, 0, sizeof e);
    e.kind = kind;
    ASSERT_EQ(0, cg_threads_run(2, excess_rank, &e));
    for (int r = 0; r < 2; r++) {
        ASSERT_EQ(CG_OK, e.status[r][0]);
        ASSERT_EQ(CG_E_NONFINITE, e.status[r][1]);
        ASSERT_EQ(CG_OK, e.status[r][2]);
        ASSERTm(e.why[r], strstr(e.why[r], "not finite"));
        ASSERTm("the model changed", e.model[r]);
        /* EF21: D = 0, and h stays; 1-bit Adam: e + (1 - momentum) g, and not momentum M */
        ASSERT_EQ_FMT(kind == CG_EF_ONEBIT_ADAM ? 0.75f * 3.4e38f : 1.0f, e.error[r][0], "%g");
        ASSERT_EQ_FMT(kind == CG_EF_ONEBIT_ADAM ? 0.0f : 1.0f, e.error[r][1], "%g");
        ASSERT_EQ(1, e.kept[r]);
    }
    PASS();
}

/* ---- sketches ---- */

typedef struct plan {
    size_t n, k;
    int rows;
    size_t cols;
    int candidates, mix;
    float momentum, rate;
    uint32_t route;
    int fetched;
} plan;
static const plan PLANS[] = { { 3000, 20, 5, 200, 0, 0, 0.0f, 0.0f, 0, 0 },
    { 3000, 20, 5, 200, 2, 0, 0.9f, 0.0f, CG_ROUTE_SERVER, 0 }, { 1000, 30, 3, 100, 1, 1, 0.0f, 0.0f, 0, 0 },
    { 50, 60, 3, 40, 0, 0, 0.5f, 0.0f, 0, 0 }, { 3000, 20, 5, 200, 0, 0, 0.9f, 0.5f, 0, 1 },
    { 1000, 30, 3, 100, 0, 0, 0.0f, 0.0f, CG_ROUTE_SERVER, 1 } };
enum { PLAN_COUNT = sizeof PLANS / sizeof *PLANS, SKETCH_STEPS = 12 };
typedef struct sketcher {
    cg_sketched sgd;
    cg_fetched fetch;
    void *memory, *mem;
    size_t bytes;
    float *grad;
    place model;
    cg_status status;
    cg_report report;
} sketcher;
static char sketch_note[MOST][200];

static int sketcher_open(sketcher *s, const plan *p, const cg_transport *t) {
    cg_sketched_desc d = CG_ZERO;
    cg_fetched_desc f = CG_ZERO;
    cg_exchange_desc road = CG_ZERO;
    cg_status st;
    memset(s, 0, sizeof *s);
    d.sketch.n = p->n;
    d.sketch.rows = p->rows;
    d.sketch.cols = p->cols;
    d.sketch.seed = 3;
    d.k = f.k = p->k;
    d.candidates = p->candidates;
    d.mix = p->mix;
    d.momentum = f.momentum = p->momentum;
    f.rate = p->rate;
    f.sketch = d.sketch;
    road.route = p->route;
    s->memory = room(p->fetched ? cg_fetched_memory(&f) : cg_sketched_memory(&d));
    st = p->fetched ? cg_fetched_init(&s->fetch, &f, s->memory, cg_fetched_memory(&f))
                    : cg_sketched_init(&s->sgd, &d, s->memory, cg_sketched_memory(&d));
    s->bytes = st != CG_OK ? 0
        : p->fetched       ? cg_fetched_exchange_memory(&s->fetch, &road, t)
                           : cg_sketched_exchange_memory(&s->sgd, &road, t);
    s->mem = room(s->bytes);
    s->grad = floats(p->n);
    place_model(&s->model, p->n, (size_t)t->rank % 9, 77);
    return s->bytes != 0;
}
static void sketcher_step(sketcher *s, const plan *p, const cg_transport *t, int step, int models) {
    cg_exchange_desc road = CG_ZERO;
    road.route = p->route;
    road.tag.step = (uint64_t)step;
    for (size_t i = 0; i < p->n; i++) s->grad[i] = value((uint64_t)(300 + step), t->rank, i);
    if (models) {
        road.model = (float *)(void *)s->model.at;
        road.rate = rate_of(step, 0);
    }
    if (t->rank == 1 && step == 4) s->grad[p->n / 2] = not_a_number();
    if (t->rank == 1 && step == 6 && models) road.rate = infinite();
    if (t->rank == 1 && step == 6 && !models) s->grad[p->n / 2] = infinite();
    s->status = p->fetched ? cg_fetched_exchange(&s->fetch, &road, t, s->grad, s->mem, s->bytes, &s->report)
                           : cg_sketched_exchange(&s->sgd, &road, t, s->grad, s->mem, s->bytes, &s->report);
}
static const char *sketchers_agree(sketcher *s, const plan *p, const cg_transport *t, int step) {
    const int bad = (step == 4 || step == 6) && t->size > 1;
    const cg_status want = !bad ? CG_OK : t->rank != 1 ? CG_E_PEER : step == 4 ? CG_E_NONFINITE : CG_E_ARG;
    const cg_report *a = &s[0].report, *b = &s[1].report;
    size_t moved = 0;
    if (s[1].status != want) return "another status";
    if (bad == (s[0].status == CG_OK)) return "the first has another status";
    for (size_t i = 0; i < p->n && !bad; i++) {
        const float v = stepped(placed(&s[0].model, i), rate_of(step, 0), s[0].grad[i]);
        moved += s[0].grad[i] != 0.0f;
        memcpy(s[0].model.at + 4 * i, &v, 4);
    }
    if (!bad && !moved) return "there is no result";
    for (size_t i = 0; i < p->n; i++)
        if (!same(placed(&s[0].model, i), placed(&s[1].model, i))) return "models differ";
    if (!guarded(&s[1].model)) return "wrote beside the model";
    if (!bad && (a->bytes_out != b->bytes_out || a->bytes_in != b->bytes_in || a->rounds != b->rounds))
        return "other bytes";
    if (p->fetched) {
        if (memcmp(s[0].fetch.error.cells, s[1].fetch.error.cells, 4 * s[0].fetch.error.count)) return "errors differ";
        return memcmp(s[0].fetch.momentum.cells, s[1].fetch.momentum.cells, 4 * s[0].fetch.error.count)
            ? "momenta differ"
            : NULL;
    }
    if (memcmp(s[0].sgd.error, s[1].sgd.error, 4 * p->n)) return "errors differ";
    return s[0].sgd.velocity && memcmp(s[0].sgd.velocity, s[1].sgd.velocity, 4 * p->n) ? "velocities differ" : NULL;
}
static int sketching(cg_threads_world *net, int rank, void *user) {
    const plan *p = (const plan *)user;
    const cg_transport t = cg_threads_transport(net, rank, CG_THREADS_ALL);
    sketcher s[2];
    const char *why = NULL;
    cg_threads_timeout(net, 20000);
    if (!sketcher_open(&s[0], p, &t) || !sketcher_open(&s[1], p, &t)) why = "does not open";
    for (int step = 0; step < SKETCH_STEPS && !why; step++) {
        for (int m = 0; m < 2; m++) sketcher_step(&s[m], p, &t, step, m);
        why = sketchers_agree(s, p, &t, step);
        if (why)
            snprintf(sketch_note[rank], sizeof sketch_note[rank], "fetched %d, route %d, step %d, rank %d of %d: %s",
                p->fetched, (int)p->route, step, rank, t.size, why);
    }
    for (int m = 0; m < 2; m++) {
        free(s[m].memory);
        free(s[m].mem);
        free(s[m].grad);
        free(s[m].model.all);
    }
    return why != NULL;
}
TEST sketches_agree(const plan *p) {
    for (int size = 1; size <= 3; size++) {
        int r = 0;
        memset(sketch_note, 0, sizeof sketch_note);
        if (!cg_threads_run(size, sketching, (void *)(uintptr_t)p)) continue;
        while (r < size - 1 && (!sketch_note[r][0] || strstr(sketch_note[r], "status"))) r++;
        FAILm(sketch_note[r]);
    }
    PASS();
}

/* Cells are no gradient: an exchange of a sketch takes no step. */
TEST a_sketch_has_no_model(void) {
    cg_sketch_desc d = CG_ZERO;
    cg_exchange_desc x = CG_ZERO;
    cg_transport t = CG_ZERO;
    cg_sketch s;
    place model;
    void *cells, *mem;
    size_t bytes;
    d.rows = 5;
    d.cols = 200;
    d.n = 100;
    cells = room(cg_sketch_memory(&d));
    ASSERT_EQ(CG_OK, cg_sketch_init(&s, &d, cells, cg_sketch_memory(&d)));
    for (size_t i = 0; i < s.count; i++) s.cells[i] = 1.0f;
    t.size = 1;
    x.model = place_model(&model, d.n, 4, 3);
    x.rate = not_a_number();
    bytes = cg_sketch_exchange_memory(&s, &x, &t);
    mem = room(bytes);
    ASSERT(bytes > 0);
    ASSERT_EQ(CG_OK, cg_sketch_exchange(&s, &x, &t, mem, bytes, NULL));
    ASSERT(s.cells[0] == 1.0f && untouched(&model, 3));
    free(mem);
    free(cells);
    free(model.all);
    PASS();
}

SUITE(routes) {
    for (int i = 0; i < WAY_COUNT; i++) RUN_TESTp(by_every_route, &WAYS[i]);
    RUN_TESTp(touches_what_was_sent, "randk:0.05", (uint32_t)CG_ROUTE_LINEAR);
    RUN_TESTp(touches_what_was_sent, "topk:0.05", (uint32_t)CG_ROUTE_SHARED);
    RUN_TEST(every_length);
    RUN_TEST(next_to_nothing);
    RUN_TESTp(nothing_else_is_touched, CG_FOLD_MEAN);
    RUN_TESTp(nothing_else_is_touched, CG_FOLD_SUM);
}
SUITE(errors) {
    RUN_TESTp(a_failure_at_every_message, 0);
    RUN_TESTp(a_failure_at_every_message, 1);
    for (int i = 0; i < 5; i++) RUN_TESTp(refused, i);
    RUN_TEST(a_rate_of_many);
}
SUITE(layers) {
    RUN_TESTp(layers_take_their_steps, 0);
    RUN_TESTp(layers_take_their_steps, 1);
    RUN_TESTp(a_layer_with_a_bad_rate, 3);
    RUN_TESTp(a_layer_with_a_bad_rate, 1);
    RUN_TESTp(a_layer_with_a_bad_rate, 2);
    RUN_TEST(a_failure_between_layers);
}
SUITE(feedback) {
    static const int failing[] = { 0, 10, 14, 20 };
    for (int i = 0; i < COURSE_COUNT; i++)
        if (COURSES[i].n) RUN_TESTp(trainings_agree, &COURSES[i]);
    for (int size = 1; size <= 3; size++) RUN_TESTp(trainings_of_layers_agree, size);
    for (int i = 0; i < 4; i++) RUN_TESTp(a_failure_in_training, &COURSES[failing[i]]);
    RUN_TESTp(a_sum_beyond_floats, CG_EF_EF21);
    RUN_TESTp(a_sum_beyond_floats, CG_EF_ONEBIT_ADAM);
}
SUITE(sketches) {
    for (int i = 0; i < PLAN_COUNT; i++) RUN_TESTp(sketches_agree, &PLANS[i]);
    RUN_TEST(a_sketch_has_no_model);
}

GREATEST_MAIN_DEFS();
int main(int argc, char **argv) {
    quick = !long_test();
    GREATEST_MAIN_BEGIN();
    RUN_SUITE(routes);
    RUN_SUITE(errors);
    RUN_SUITE(layers);
    RUN_SUITE(feedback);
    RUN_SUITE(sketches);
    GREATEST_MAIN_END();
}
