/* A server that is fed, and its workers, over connections that break: after every feed the model is the first model
   less rate times everything that was accepted, plus what updates have not said; every worker's copy has the
   server's bits of its version; accepted + late + refused = sent; nobody is further ahead than the bound; a push
   counts once, however often it is sent; a server that comes back from a save; everything hostile is refused by name
   and changes nothing. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compgrad_sync.h"
#include "greatest.h"
#include "ref.h"
#include "tier.h"

enum { MOST = 6, N = 130, VERSIONS = 4096, QUEUE = 256 };
typedef struct letter {
    unsigned char *bytes;
    size_t len;
} letter;
typedef struct worker {
    cg_client client;
    void *mem;
    letter queue[QUEUE]; /* on the way to it */
    int count, connected;
    uint64_t noise;
} worker;
typedef struct world {
    cg_server_desc desc;
    cg_client_desc client;
    cg_server server;
    void *mem;
    worker w[MOST];
    float start[N];
    double counted[N], round[N]; /* what has entered delta; what the round under way has */
    double round_weight;
    float rows[MOST][N];
    int in_round;
    uint64_t now, sent, accepted, late, refused, dice;
    unsigned char *model[VERSIONS]; /* the server's model at every version */
    uint64_t mark[VERSIONS];
    const char *wrong;
} world;
static world *g;

static uint32_t below(uint32_t n) {
    g->dice = g->dice * 6364136223846793005u + 1442695040888963407u;
    return n ? (uint32_t)(g->dice >> 33) % n : 0;
}
static cg_op parsed(const char *text) {
    cg_op op;
    if (cg_op_parse(&op, text) != CG_OK) {
        fprintf(stderr, "%s does not parse\n", text);
        exit(2);
    }
    return op;
}
static void client_open(worker *w, int seat) {
    cg_client_desc d = g->client;
    const size_t bytes = cg_client_memory(&d);
    d.seat = seat;
    free(w->mem);
    w->mem = malloc(bytes);
    if (cg_client_init(&w->client, &d, w->mem, bytes) != CG_OK) exit(3);
}
static void world_open(uint32_t mode, const char *up, const char *down, size_t ring, uint64_t dice) {
    char why[200];
    size_t bytes;
    if (!g) g = (world *)calloc(1, sizeof *g);
    memset(g, 0, sizeof *g);
    g->dice = dice * 977 + 5;
    g->desc.up = parsed(up);
    g->desc.down = parsed(down);
    g->desc.n = N;
    g->desc.mode = mode;
    g->desc.workers = MOST;
    g->desc.seed = 99;
    g->desc.rate = 0.5f;
    g->desc.ring_bytes = ring;
    g->desc.timeout = 1000;
    if (mode == CG_SERVER_BACKUP) g->desc.backup = 2;
    if (mode == CG_SERVER_SAMPLED) g->desc.sampled = 3;
    if (mode == CG_SERVER_SSP) g->desc.staleness = 2;
    g->client.ef.n = N;
    g->client.ef.op = g->desc.up;
    g->client.seed = 99;
    for (int i = 0; i < N; i++) g->start[i] = (float)(i % 17) * 0.25f - 2.0f;
    (void)bytes;
    (void)why;
}
static void server_open(void) {
    char why[200];
    const size_t bytes = cg_server_memory(&g->desc);
    free(g->mem);
    g->mem = malloc(bytes);
    if (cg_server_init(&g->server, &g->desc, g->start, g->mem, bytes, why, sizeof why) != CG_OK) {
        fprintf(stderr, "%s\n", why);
        exit(3);
    }
    for (int w = 0; w < MOST; w++) client_open(&g->w[w], w);
}
static void cut_off(worker *w) {
    for (int i = 0; i < w->count; i++) free(w->queue[i].bytes);
    w->count = 0;
    w->connected = 0;
}
static void world_close(void) {
    for (int w = 0; w < MOST; w++) {
        cut_off(&g->w[w]);
        free(g->w[w].mem);
        g->w[w].mem = NULL;
    }
    for (int v = 0; v < VERSIONS; v++) free(g->model[v]);
    memset(g->model, 0, sizeof g->model);
    free(g->mem);
    g->mem = NULL;
}

/* ---- what has to hold after every feed ---- */

static int by_value(const void *a, const void *b) {
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}
static void round_ends(void) {
    const double rate = (double)g->desc.rate;
    for (int i = 0; i < N; i++) {
        float v[MOST];
        double sum = 0;
        int cut = g->desc.fold == CG_FOLD_MEDIAN ? (g->in_round - 1) / 2 : g->in_round < 3 ? 0 : 1;
        if (!g->desc.fold) {
            g->counted[i] += rate * g->round[i] / g->round_weight;
        } else {
            for (int r = 0; r < g->in_round; r++) v[r] = g->rows[r][i];
            qsort(v, (size_t)g->in_round, sizeof *v, by_value);
            for (int r = cut; r < g->in_round - cut; r++) sum += (double)v[r];
            g->counted[i] += rate * sum / (g->in_round - 2 * cut);
        }
        g->round[i] = 0;
    }
    g->round_weight = 0;
    g->in_round = 0;
}
static void check_model(void) {
    for (int i = 0; i < N; i++) {
        const double want = (double)g->start[i] - g->counted[i] + (double)g->server.delta[i];
        if (fabs(want - (double)cg_server_model(&g->server)[i]) > 1e-4 * (1 + fabs(g->counted[i])))
            g->wrong = "the model is not what was accepted";
    }
    if (g->accepted + g->late + g->refused != g->sent || g->server.accepted != g->accepted ||
        g->server.late != g->late || g->server.refused != g->refused)
        g->wrong = "accepted + late + refused is not what was sent";
}
static void remember_model(void) {
    const uint64_t v = cg_server_version(&g->server);
    if (v >= VERSIONS) exit(4);
    if (g->model[v]) return;
    g->model[v] = (unsigned char *)malloc(4 * N);
    memcpy(g->model[v], cg_server_model(&g->server), 4 * N);
}
static void check_copies(void) {
    for (int w = 0; w < MOST; w++) {
        const cg_client *c = &g->w[w].client;
        if (!cg_client_ready(c)) continue;
        if (c->version >= VERSIONS || !g->model[c->version] || memcmp(c->model, g->model[c->version], 4 * N))
            g->wrong = "a worker's copy differs";
    }
}
static void take_envelopes(void) {
    cg_envelope e;
    while (cg_server_next(&g->server, &e)) {
        worker *w = &g->w[e.to];
        const cg_server_seat *seat = &g->server.seat[e.to];
        const uint32_t kind = (uint32_t)ref_get((const unsigned char *)e.bytes + 4, 4);
        if (e.len > cg_server_message_bytes(&g->server)) g->wrong = "a message is longer than announced";
        if (kind == 21 && g->desc.mode == CG_SERVER_SSP) { /* go */
            uint64_t least = seat->clock;
            for (int q = 0; q < MOST; q++)
                if (g->server.seat[q].state == 1 && g->server.seat[q].clock < least) least = g->server.seat[q].clock;
            if (seat->clock - least > g->desc.staleness) g->wrong = "a worker is too far ahead";
        }
        if (!w->connected) continue; /* lost */
        if (w->count == QUEUE) exit(5);
        w->queue[w->count].bytes = (unsigned char *)malloc(e.len);
        memcpy(w->queue[w->count].bytes, e.bytes, e.len);
        w->queue[w->count++].len = e.len;
    }
}
static void feed(int from, const void *bytes, size_t len, cg_verdict *v) {
    const int was = g->server.arrived;
    const uint64_t round = g->server.round;
    cg_verdict own;
    const int is_push = len >= 64 && ref_get((const unsigned char *)bytes + 4, 4) == 2;
    float d[N];
    if (!v) v = &own;
    if (cg_server_feed(&g->server, g->now, from, bytes, len, v) != CG_OK) g->wrong = "feed refused its arguments";
    if (is_push && v->kind != CG_VERDICT_DUPLICATE) g->sent++;
    if (is_push) {
        g->accepted += v->kind == CG_VERDICT_ACCEPTED;
        g->late += v->kind == CG_VERDICT_LATE || v->kind == CG_VERDICT_ROLLBACK;
        g->refused += v->kind == CG_VERDICT_REFUSED;
    }
    if (v->kind == CG_VERDICT_ACCEPTED) {
        const unsigned char *p = (const unsigned char *)bytes + 64;
        float weight;
        uint32_t bits = (uint32_t)ref_get((const unsigned char *)bytes + 48, 4);
        double factor = 1, norm = 0;
        memcpy(&weight, &bits, 4);
        if (cg_decompress(p, len - 64, d, N) != CG_OK) exit(6);
        for (int i = 0; i < N; i++) norm += (double)d[i] * (double)d[i];
        norm = sqrt(norm);
        if (g->desc.norm_cap > 0.0f && norm > (double)g->desc.norm_cap) factor = (double)g->desc.norm_cap / norm;
        if (g->desc.flags & CG_SERVER_DAMPED) factor /= 1.0 + (double)v->staleness;
        if (g->desc.mode == CG_SERVER_SSP || g->desc.mode == CG_SERVER_ASP)
            for (int i = 0; i < N; i++) g->counted[i] += (double)g->desc.rate * (double)weight * factor * (double)d[i];
        else {
            for (int i = 0; i < N; i++) g->round[i] += (double)weight * factor * (double)d[i];
            for (int i = 0; i < N; i++) g->rows[g->in_round][i] = (float)(factor * (double)d[i]);
            g->round_weight += (double)weight;
            g->in_round++;
        }
    }
    (void)was;
    if (g->server.round != round) round_ends();
    remember_model();
    check_model();
    take_envelopes();
}
static void hello(int w) {
    unsigned char buf[CG_CLIENT_HELLO_BYTES];
    size_t len;
    g->w[w].connected = 1;
    if (cg_client_hello(&g->w[w].client, buf, sizeof buf, &len) != CG_OK) exit(7);
    feed(w, buf, len, NULL);
}
static void push(int w, int twice) {
    worker *k = &g->w[w];
    float grad[N];
    const void *bytes;
    size_t len;
    for (int i = 0; i < N; i++) grad[i] = (float)ref_normal(&k->noise) + 0.05f * k->client.model[i];
    if (cg_client_push(&k->client, grad, g->desc.fold ? 1.0f : 1.0f + (float)(w % 3), &bytes, &len) != CG_OK) exit(8);
    if (len > cg_server_message_bytes(&g->server)) g->wrong = "a push is longer than announced";
    if (!k->connected) return; /* lost on the way */
    feed(w, bytes, len, NULL);
    if (twice) feed(w, bytes, len, NULL);
}
/* One message arrives at a worker. */
static void deliver(int w) {
    worker *k = &g->w[w];
    letter first;
    uint32_t event;
    cg_status s;
    if (!k->count) return;
    first = k->queue[0];
    memmove(k->queue, k->queue + 1, (size_t)--k->count * sizeof *k->queue);
    s = cg_client_feed(&k->client, first.bytes, first.len, &event);
    free(first.bytes);
    check_copies();
    if (s != CG_OK) g->wrong = "a client refused what its server sent";
    if (event == CG_CLIENT_HELLO) hello(w);
    if (event == CG_CLIENT_RESEND) {
        const void *bytes;
        size_t len;
        cg_client_pending(&k->client, &bytes, &len);
        if (!len) g->wrong = "nothing is pending";
        else feed(w, bytes, len, NULL);
    }
}
/* A worker does what comes next for it. */
static void go_on(int w) {
    worker *k = &g->w[w];
    if (!k->connected) hello(w);
    else if (k->count) deliver(w);
    else if (cg_client_ready(&k->client)) push(w, 0);
}
static void something_happens(void) {
    const int w = (int)below(MOST);
    const uint32_t what = below(100);
    unsigned char buf[64];
    size_t len;
    g->now += below(20);
    if (what < 3) cut_off(&g->w[w]); /* the connection breaks, and what was on its way is lost */
    else if (what < 4) {
        cut_off(&g->w[w]);
        client_open(&g->w[w], w); /* the process dies, and another takes its seat */
    } else if (what < 5 && g->w[w].connected) {
        if (cg_client_leave(&g->w[w].client, buf, sizeof buf, &len) != CG_OK) exit(7);
        feed(w, buf, len, NULL);
        cut_off(&g->w[w]);
    } else if (what < 6) {
        g->now += 700; /* who is silent now loses its seat */
        feed(0, NULL, 0, NULL);
    } else if (what < 8 && g->w[w].connected && cg_client_ready(&g->w[w].client)) push(w, 1);
    else go_on(w);
}

/* Random schedules; then all go on in peace, and everybody makes steps. */
TEST schedules(uint32_t mode, const char *up, const char *down, size_t ring, int extra, int count) {
    for (int run = 0; run < count; run++) {
        uint64_t before;
        world_open(mode, up, down, ring, (uint64_t)(run + 1) * 31 + mode);
        if (extra & 1) g->desc.flags |= CG_SERVER_DAMPED;
        if (extra & 2) g->desc.flags |= CG_SERVER_KEEP_LATE;
        if (extra & 4) g->desc.norm_cap = 9.0f;
        if (extra & 8) g->desc.fold = CG_FOLD_MEDIAN;
        if (extra & 16) g->desc.fold = CG_FOLD_TRIMMED;
        server_open();
        for (int w = 0; w < MOST; w++) g->w[w].noise = (uint64_t)(w * 7 + run);
        remember_model();
        for (int i = 0; i < 400 && !g->wrong; i++) something_happens();
        before = g->accepted;
        for (int i = 0; i < 600 && !g->wrong; i++) {
            g->now++;
            go_on(i % MOST);
        }
        ASSERTm(g->wrong, !g->wrong);
        ASSERT(g->accepted > before + 20); /* nobody waits for ever */
        for (int w = 0; w < MOST; w++)     /* and everybody has taken part, who had a turn */
            ASSERT(g->server.seat[w].state == 1);
        world_close();
    }
    PASS();
}
/* The bound of SSP, in many short schedules of few workers. */
TEST bound_of_ssp(int count) {
    for (int run = 0; run < count; run++) {
        world_open(CG_SERVER_SSP, "dense", "dense", 1 << 14, (uint64_t)run);
        g->desc.staleness = (uint64_t)(run % 4);
        server_open();
        remember_model();
        for (int i = 0; i < 60 && !g->wrong; i++) something_happens();
        ASSERTm(g->wrong, !g->wrong);
        world_close();
    }
    PASS();
}
/* One worker, dense both ways: plain SGD, bit for bit. */
TEST one_worker_is_sgd(uint32_t mode) {
    float model[N], grad[N];
    const void *bytes;
    size_t len;
    uint64_t noise = 3;
    world_open(mode, "dense", "dense", 0, 1);
    g->desc.workers = 1;
    g->desc.backup = 0;
    g->desc.sampled = 1;
    server_open();
    memcpy(model, g->start, sizeof model);
    g->w[0].connected = 1;
    hello(0);
    for (int step = 0; step < 20; step++) {
        while (g->w[0].count) deliver(0);
        ASSERT(cg_client_ready(&g->w[0].client));
        ASSERT_MEM_EQ(model, cg_client_model(&g->w[0].client), sizeof model);
        for (int i = 0; i < N; i++) grad[i] = (float)ref_normal(&noise);
        ASSERT_EQ(CG_OK, cg_client_push(&g->w[0].client, grad, 1.0f, &bytes, &len));
        feed(0, bytes, len, NULL);
        for (int i = 0; i < N; i++) model[i] = ref_add(model[i], -ref_mul(0.5f, grad[i]));
    }
    ASSERTm(g->wrong, !g->wrong);
    world_close();
    PASS();
}
/* A worker that lags gets packets, the values that they have touched, or the whole model. All give the same bits. */
TEST who_lags(const char *down, size_t ring, int steps, uint32_t kind) {
    int seen = 0;
    world_open(CG_SERVER_ASP, "dense", down, ring, 1);
    server_open();
    hello(0);
    hello(1);
    while (g->w[1].count) deliver(1);
    for (int i = 0; i < steps; i++) {
        while (g->w[0].count) deliver(0);
        push(0, 0);
    }
    ASSERT(cg_client_ready(&g->w[1].client));
    push(1, 0);
    for (int i = 0; i < g->w[1].count; i++) seen += ref_get(g->w[1].queue[i].bytes + 4, 4) == kind;
    ASSERT(seen > 0);
    while (g->w[1].count) deliver(1);
    ASSERT(cg_client_ready(&g->w[1].client));
    ASSERT_MEM_EQ(cg_server_model(&g->server), cg_client_model(&g->w[1].client), 4 * N);
    ASSERTm(g->wrong, !g->wrong);
    world_close();
    PASS();
}
/* A server that is restarted from a save is behind its workers: they come back to its version. A save in the middle of
   a round keeps the round; the rest of training is as if nothing had happened where nothing was lost. */
TEST from_a_save(uint32_t mode, int behind, uint32_t fold) {
    unsigned char *saved;
    size_t bytes, len;
    uint64_t version;
    world_open(mode, "topk:0.2", "absmax:8:64", 1 << 13, 4);
    g->desc.fold = fold;
    server_open();
    remember_model();
    for (int w = 0; w < MOST; w++) hello(w);
    for (int i = 0; i < 333; i++) go_on((i * 5 + i / 7) % MOST);
    bytes = cg_server_save_bytes(&g->server);
    saved = (unsigned char *)malloc(bytes);
    ASSERT_EQ(CG_E_CAPACITY, cg_server_save(&g->server, saved, bytes - 1, &len));
    ASSERT_EQ(CG_OK, cg_server_save(&g->server, saved, bytes, &len));
    ASSERT_EQ(bytes, len);
    version = cg_server_version(&g->server);
    for (int i = 0; i < (behind ? 200 : 0); i++) go_on(i % MOST);
    ASSERT_EQ(!behind, version == cg_server_version(&g->server));
    {
        char why[200];
        const size_t need = cg_server_memory(&g->desc);
        memset(g->mem, 0xee, need); /* another process */
        ASSERT_EQ(CG_OK, cg_server_init(&g->server, &g->desc, g->start, g->mem, need, why, sizeof why));
    }
    /* damage is found wherever it is */
    for (size_t at = 0; at < bytes; at += 1 + at % 13) {
        saved[at] ^= 0x20;
        ASSERT(cg_server_load(&g->server, saved, bytes) != CG_OK);
        saved[at] ^= 0x20;
        ASSERT(cg_server_load(&g->server, saved, at) != CG_OK);
    }
    ASSERT_EQ(0u, cg_server_version(&g->server));
    ASSERT_EQ(CG_OK, cg_server_load(&g->server, saved, bytes));
    ASSERT_EQ(version, cg_server_version(&g->server));
    for (uint64_t v = version + 1; v < VERSIONS; v++) { /* that history is gone */
        free(g->model[v]);
        g->model[v] = NULL;
    }
    ASSERT_MEM_EQ(g->model[version], cg_server_model(&g->server), 4 * N);
    for (int i = 0; i < N; i++) /* the invariant goes on from the saved state */
        g->counted[i] = (double)g->start[i] + (double)g->server.delta[i] - (double)cg_server_model(&g->server)[i];
    if (behind) { /* of the round as it was saved only the server knows */
        memset(g->round, 0, sizeof g->round);
        for (int i = 0; i < N && g->server.sum; i++) g->round[i] = (double)g->server.sum[i];
        for (int r = 0; r < g->server.arrived && g->server.rows; r++)
            memcpy(g->rows[r], g->server.rows + r * N, sizeof g->rows[r]);
        g->round_weight = g->server.round_weight;
        g->in_round = g->server.arrived;
    }
    g->accepted = g->server.accepted;
    g->late = g->server.late;
    g->refused = g->server.refused;
    g->sent = g->accepted + g->late + g->refused;
    for (int w = 0; w < MOST; w++) {
        cut_off(&g->w[w]);
        if (mode != CG_SERVER_ASP || w < MOST - 1) hello(w);
    }
    /* one comes back only when versions have the numbers again that its own had: they are of another history */
    for (int i = 0; i < 120 && mode == CG_SERVER_ASP; i++) go_on(i % (MOST - 1));
    for (int i = 0; i < 900 && !g->wrong; i++) {
        g->now++;
        go_on(i % MOST);
    }
    ASSERTm(g->wrong, !g->wrong);
    ASSERT(cg_server_version(&g->server) > version + 5);
    ASSERT_EQ(CG_OK, cg_server_load(&g->server, saved, bytes)); /* and once more, over a state that is in use */
    free(saved);
    world_close();
    PASS();
}

/* ---- what is refused ---- */

static void seal(unsigned char *m) { /* the header's hash, as a forger would make it */
    uint64_t h = 0x9E3779B97F4A7C15u;
    for (int i = 0; i < 56; i += 8) {
        uint64_t z = h + ref_get(m + i, 8) + 0x9E3779B97F4A7C15u;
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
        z = (z ^ z >> 27) * 0x94D049BB133111EBu;
        h = z ^ z >> 31;
    }
    ref_put(m + 56, h, 8);
}
/* what: see the table below; word: in the sentence */
TEST hostile(int what, const char *word) {
    static unsigned char m[4096];
    float grad[N], before[2][N];
    const void *bytes;
    size_t len;
    cg_verdict v;
    world_open(CG_SERVER_SSP, "topk:0.2", "absmax:8:64", 1 << 12, 4);
    g->desc.staleness = 1;
    g->desc.weight_cap = 10.0f;
    server_open();
    remember_model();
    hello(0);
    hello(1);
    for (int i = 0; i < 40; i++) go_on(i % 2);
    while (!cg_client_ready(&g->w[0].client)) go_on(g->w[0].count ? 0 : 1);
    for (int i = 0; i < N; i++) grad[i] = (float)i - 50.0f;
    ASSERT_EQ(CG_OK, cg_client_push(&g->w[0].client, grad, 1.0f, &bytes, &len));
    memcpy(m, bytes, len);
    memcpy(before[0], g->server.model, sizeof before[0]);
    memcpy(before[1], g->server.delta, sizeof before[1]);
    switch (what) {
    case 0: m[70] ^= 1; break;                                   /* the packet */
    case 1: ref_put(m + 48, 0, 4); break;                        /* weight 0 */
    case 2: ref_put(m + 48, 0x7fc00000, 4); break;               /* NaN */
    case 3: ref_put(m + 48, 0x42000000, 4); break;               /* 32 */
    case 4: ref_put(m + 48, 0xbf800000, 4); break;               /* -1 */
    case 5: ref_put(m + 16, ref_get(m + 16, 8) + 1, 8); break;   /* the next clock */
    case 6: ref_put(m + 16, ref_get(m + 16, 8) - 2, 8); break;   /* one long gone */
    case 7: ref_put(m + 24, ref_get(m + 24, 8) + 500, 8); break; /* a model that does not exist */
    case 8: ref_put(m + 8, 7, 8); break;                         /* another job */
    case 9: ref_put(m + 4, 99, 4); break;                        /* a message that there is not */
    case 10: ref_put(m + 4, 16, 4); break;                       /* one of servers */
    case 11: m[3]++; break;                                      /* another version */
    case 12: m[0]++; break;
    case 13: len = 63; break;
    case 14: len = 64; break; /* no packet */
    case 15: m[20] ^= 4; break;
    default: break;
    }
    if (what != 15 && what != 13) seal(m);
    feed(what == 16 ? 1 : what == 17 ? 5 : what == 18 ? 77 : what == 19 ? -1 : 0, m, len, &v);
    if (what >= 18) { /* nobody: it is not counted among the pushes */
        g->sent--;
        g->refused--;
        g->wrong = NULL;
    }
    if (what == 0 || (what >= 8 && what != 14 && what < 16)) { /* no push was recognised, or not by the server */
        if (what != 0) {
            g->sent -= g->server.refused != g->refused;
            g->refused = g->server.refused;
            g->sent = g->accepted + g->late + g->refused;
            g->wrong = NULL;
        }
    }
    ASSERT_EQ_FMT((unsigned)CG_VERDICT_REFUSED, v.kind, "%u");
    ASSERTm(v.why, strstr(v.why, word));
    ASSERT(v.status != CG_OK);
    ASSERT_MEM_EQ(before[0], g->server.model, sizeof before[0]);
    ASSERT_MEM_EQ(before[1], g->server.delta, sizeof before[1]);
    ASSERTm(g->wrong, !g->wrong);
    feed(0, bytes, len < 65 ? (cg_client_pending(&g->w[0].client, &bytes, &len), len) : len, &v);
    ASSERT_EQ_FMT((unsigned)CG_VERDICT_ACCEPTED, v.kind, "%u"); /* what is right still counts */
    world_close();
    PASS();
}
/* Huge values are refused before they can spoil anything; a vector of norm 1000 is cut to norm_cap. */
TEST large_pushes(void) {
    float grad[N];
    const void *bytes;
    size_t len;
    double norm = 0;
    cg_verdict v;
    world_open(CG_SERVER_ASP, "dense", "dense", 0, 1);
    g->desc.norm_cap = 2.0f;
    server_open();
    remember_model();
    hello(0);
    while (g->w[0].count) deliver(0);
    for (int i = 0; i < N; i++) grad[i] = 3e38f;
    ASSERT_EQ(CG_OK, cg_client_push(&g->w[0].client, grad, 1.0f, &bytes, &len));
    feed(0, bytes, len, &v);
    ASSERT_EQ_FMT((unsigned)CG_VERDICT_REFUSED, v.kind, "%u");
    ASSERT_EQ(CG_E_NONFINITE, (cg_status)v.status);
    cut_off(&g->w[0]);
    client_open(&g->w[0], 0);
    hello(0);
    while (g->w[0].count) deliver(0);
    for (int i = 0; i < N; i++) grad[i] = 100.0f;
    ASSERT_EQ(CG_OK, cg_client_push(&g->w[0].client, grad, 1.0f, &bytes, &len));
    feed(0, bytes, len, &v);
    ASSERT_EQ_FMT((unsigned)CG_VERDICT_ACCEPTED, v.kind, "%u");
    for (int i = 0; i < N; i++) {
        const double d = (double)cg_server_model(&g->server)[i] - (double)g->start[i];
        norm += d * d;
    }
    ASSERT_IN_RANGE(0.5 * 2.0, sqrt(norm), 1e-4);
    ASSERTm(g->wrong, !g->wrong);
    world_close();
    PASS();
}
TEST wrong_descriptions(void) {
    static const float x0[N];
    cg_server s;
    cg_server_desc d;
    char why[200];
    void *mem;
    size_t bytes;
    world_open(CG_SERVER_BSP, "dense", "dense", 0, 1);
    bytes = cg_server_memory(&g->desc);
    mem = malloc(bytes);
#define BAD(change, word)                                                         \
  do {                                                                            \
    d = g->desc;                                                                  \
    change;                                                                       \
    ASSERT_EQ(0u, cg_server_memory(&d));                                          \
    ASSERT_EQ(CG_E_ARG, cg_server_init(&s, &d, x0, mem, bytes, why, sizeof why)); \
    ASSERTm(why, strstr(why, word));                                              \
  } while (0)
    BAD(d.n = 0, "n is 0");
    BAD(d.mode = 5, "mode");
    BAD(d.workers = 0, "workers");
    BAD(d.backup = 6, "backup");
    BAD(d.mode = CG_SERVER_SAMPLED, "sampled");
    BAD(d.rate = NAN, "rate");
    BAD(d.weight_cap = -1.0f, "weight_cap");
    BAD(d.norm_cap = INFINITY, "norm_cap");
    BAD(d.flags = 8, "flags");
    BAD(d.fold = CG_FOLD_SUM, "folds");
    BAD((d.mode = CG_SERVER_ASP, d.fold = CG_FOLD_MEDIAN), "rounds");
    BAD(d.fold_limit = 0.5f, "fold_limit");
    BAD(d.down = cg_lowrank(3, 3, 1), "down");
    BAD(d.reserved[2] = 1, "reserved");
#undef BAD
    ASSERT_EQ(CG_E_MEMORY, cg_server_init(&s, &g->desc, x0, mem, bytes / 2, why, sizeof why));
    ASSERT_EQ(0, cg_server_next(&s, NULL));
    free(mem);
    world_close();
    PASS();
}

SUITE(server) {
    static const struct {
        const char *up, *down;
        size_t ring;
    } ops[] = { { "dense", "dense", 0 }, { "topk:0.1", "topk:0.2", 1 << 14 }, { "absmax:4:64", "absmax:8:64", 1 << 12 },
        { "efsign", "topk:0.05|absmax:4:64", 1 << 12 }, { "topk:0.2|golomb", "randk:0.2:unscaled", 1 << 13 } };
    const int count = long_test() ? 40 : 4;
    for (uint32_t mode = CG_SERVER_BSP; mode <= CG_SERVER_SAMPLED; mode++) {
        for (size_t o = 0; o < sizeof ops / sizeof *ops; o++)
            RUN_TESTp(schedules, mode, ops[o].up, ops[o].down, ops[o].ring, (int)(o * 3 + mode) % 8, count);
        RUN_TEST1(one_worker_is_sgd, mode);
    }
    RUN_TESTp(schedules, CG_SERVER_BSP, "dense", "topk:0.3", (size_t)1 << 13, 8, count);
    RUN_TESTp(schedules, CG_SERVER_BACKUP, "absmax:8:64", "dense", (size_t)1 << 13, 16, count);
    RUN_TESTp(schedules, CG_SERVER_SAMPLED, "dense", "dense", (size_t)0, 8 + 4, count);
    RUN_TEST1(bound_of_ssp, long_test() ? 10000 : 1000);
    RUN_TESTp(who_lags, "topk:0.03", (size_t)1 << 16, 30, 19u); /* the values that were touched */
    RUN_TESTp(who_lags, "topk:0.01", (size_t)1 << 16, 1, 18u);  /* packets */
    RUN_TESTp(who_lags, "topk:0.1", (size_t)0, 9, 20u);         /* the whole model */
    RUN_TESTp(who_lags, "dense", (size_t)1 << 16, 9, 20u);
    for (uint32_t mode = CG_SERVER_BSP; mode <= CG_SERVER_SAMPLED; mode++) {
        RUN_TESTp(from_a_save, mode, 0, 0u);
        RUN_TESTp(from_a_save, mode, 1, 0u);
    }
    RUN_TESTp(from_a_save, CG_SERVER_BSP, 1, (uint32_t)CG_FOLD_MEDIAN);
    {
        static const char *const words[] = { "damaged", "positive", "positive", "weight_cap", "positive", "future",
            "past", "not had", "another job", "no such", "no such", "another version", "none of", "shorter", "damaged",
            "intact", "another worker", "hello", "no seat", "no seat" };
        for (int what = 0; what < 20; what++) RUN_TESTp(hostile, what, words[what]);
    }
    RUN_TEST(large_pushes);
    RUN_TEST(wrong_descriptions);
}

GREATEST_MAIN_DEFS();
int main(int argc, char **argv) {
    GREATEST_MAIN_BEGIN();
    RUN_SUITE(server);
    free(g);
    GREATEST_MAIN_END();
}
