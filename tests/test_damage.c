/* One damaged message, over all routes, operators, folds and kinds of memory: a schedule is a job, a number of ranks, a
   set of callbacks, with or without CG_CONFIRM, and one message to one rank that arrives with a changed bit, a changed
   byte, without its end, or as another message of the same exchange. Whatever happens:
     nobody waits, and both sides of a message name the same number of bytes;
     with CG_CONFIRM all ranks succeed or none does;
     who succeeds has the undisturbed result, to the bit, unless plain floats were summed (linear, shared), which have
     no checksum;
     who fails has written nothing, and its error feedback has kept the gradient.
   Ranks are threads that stop at every message; all messages are moved by one thread, once every rank waits or has
   ended, so that a schedule always takes the same course. Memory is filled with another pattern in every schedule: what
   crosses must not depend on it. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "greatest.h"
#define COMPGRAD_IMPLEMENTATION
#include "compgrad_ef.h"
#include "compgrad_sketch.h"
#include "tier.h"

enum {
    RANKS = 5,
    PARTS = 4,
    N = 333,
    SMALL = 16,
    WARM = 128,
    CELLS = 4096,
    BLOB = 1 << 16,
    POOL = 1 << 22,
    LOG = 4096
};
enum { STUCK = 99, REFUSED = 7 };

static uint64_t dice;
static uint32_t below(uint32_t n) {
    dice = dice * 6364136223846793005u + 1442695040888963407u;
    return n ? (uint32_t)(dice >> 33) % n : 0;
}

/* ---- messages ---- */

typedef enum way { BIT, BYTE, CUT, GARBAGE, SWAPPED, PARTS_SWAPPED, WAYS } way;
static const char *const way_names[] = { "a bit", "a byte", "cut", "garbage at the end", "another message",
    "two parts swapped" };

typedef struct port {
    pthread_cond_t go;
    cg_io io;
    int waiting, sent, received, done, code, ios;
} port;
typedef struct message {
    int rank, io;
    size_t len, part, at; /* part: bytes of every rank, of an allgather; at: in the pool */
} message;
static struct {
    pthread_mutex_t lock;
    pthread_cond_t all_wait;
    port port[RANKS];
    int size, busy; /* busy: ranks that neither wait nor have ended */
    int stuck, torn, refuse;
    int hurt_rank, hurt_io, hit; /* hurt_io < 0: none */
    way how;
    int recording;
    message log[LOG];
    int logged;
    size_t pooled;
    uint64_t crossed; /* hash of what has been received */
} bus;
static unsigned char pool[POOL];

static int call(
    void *user, uint32_t kind, const void *out, size_t out_bytes, int to, void *in, size_t in_bytes, int from) {
    port *p = (port *)user;
    int code;
    pthread_mutex_lock(&bus.lock);
    p->io.kind = kind;
    p->io.out = out;
    p->io.out_bytes = out_bytes;
    p->io.to = to;
    p->io.in = in;
    p->io.in_bytes = in_bytes;
    p->io.from = from;
    p->sent = kind == CG_IO_SENDRECV && to < 0;
    p->received = kind == CG_IO_SENDRECV && from < 0;
    p->waiting = 1;
    p->code = 0;
    p->ios++;
    if (!--bus.busy) pthread_cond_signal(&bus.all_wait);
    while (p->waiting) pthread_cond_wait(&p->go, &bus.lock);
    code = p->code;
    pthread_mutex_unlock(&bus.lock);
    return code;
}
static int by_sendrecv(void *user, const void *out, size_t out_bytes, int to, void *in, size_t in_bytes, int from) {
    return call(user, CG_IO_SENDRECV, out, out_bytes, to, in, in_bytes, from);
}
static int by_allgather(void *user, const void *mine, void *all, size_t bytes) {
    return call(user, CG_IO_ALLGATHER, mine, bytes, -1, all, bytes, -1);
}
static int by_broadcast(void *user, void *buf, size_t bytes, int root) {
    return call(user, CG_IO_BROADCAST, NULL, 0, -1, buf, bytes, root);
}
static int by_allreduce(void *user, float *inout, size_t n) {
    return call(user, CG_IO_ALLREDUCE, NULL, 0, -1, inout, 4 * n, -1);
}

static const message *other_message(size_t len) { /* one of the same length, if there seems to be one */
    const message *m = &bus.log[below((uint32_t)bus.logged)];
    for (int i = 0; i < 40 && m->len != len; i++) m = &bus.log[below((uint32_t)bus.logged)];
    return m;
}
static void damage(unsigned char *p, size_t len, size_t part) {
    static unsigned char before[POOL];
    const message *m;
    size_t at = below((uint32_t)len), a, b;
    memcpy(before, p, len);
    switch (bus.how) {
    case BIT: p[at] ^= (unsigned char)(1u << below(8)); break;
    case BYTE: p[at] ^= (unsigned char)(1 + below(255)); break;
    case CUT: memset(p + at, 0, len - at); break;
    case GARBAGE:
        for (; at < len; at++) p[at] = (unsigned char)below(256);
        break;
    case PARTS_SWAPPED:
        a = part ? below((uint32_t)bus.size) : 0;
        b = part ? (a + 1 + below((uint32_t)bus.size - 1)) % (size_t)bus.size : 0;
        if (part) {
            memcpy(p + a * part, before + b * part, part);
            memcpy(p + b * part, before + a * part, part);
            break;
        }
        /* fall through */
    default:
        m = other_message(len);
        memcpy(p, pool + m->at, m->len < len ? m->len : len);
        if (m->len < len) memset(p + m->len, 0, len - m->len);
    }
    bus.hit = memcmp(before, p, len) != 0;
}
static void deliver(int rank, void *bytes, size_t len, size_t part) {
    const port *p = &bus.port[rank];
    const unsigned char *c = (const unsigned char *)bytes;
    if (!len) return;
    if (bus.recording) {
        message *m = &bus.log[bus.logged++];
        if (bus.logged == LOG || bus.pooled + len > POOL) abort();
        m->rank = rank;
        m->io = p->ios - 1;
        m->len = len;
        m->part = part;
        m->at = bus.pooled;
        memcpy(pool + bus.pooled, bytes, len);
        bus.pooled += len;
        for (size_t i = 0; i < len; i++) bus.crossed = (bus.crossed ^ c[i]) * 0x100000001b3u;
    }
    if (bus.hurt_io == p->ios - 1 && bus.hurt_rank == rank) damage((unsigned char *)bytes, len, part);
}
static int match_pair(int a) {
    port *p = &bus.port[a], *q;
    if (!p->waiting || p->io.kind != CG_IO_SENDRECV || p->sent) return 0;
    q = &bus.port[p->io.to];
    if (!q->waiting || q->io.kind != CG_IO_SENDRECV || q->received || q->io.from != a) return 0;
    if (p->io.out_bytes != q->io.in_bytes) {
        bus.torn++;
        return 0; /* both wait for the other's bytes */
    }
    memcpy(q->io.in, p->io.out, p->io.out_bytes);
    deliver(p->io.to, q->io.in, q->io.in_bytes, 0);
    p->sent = q->received = 1;
    return 1;
}
static int match_all(void) {
    const cg_io *first = &bus.port[0].io;
    static float sum[POOL / 4];
    for (int r = 0; r < bus.size; r++) {
        const port *p = &bus.port[r];
        if (!p->waiting || p->io.kind == CG_IO_SENDRECV) return 0;
        if (p->io.kind != first->kind || p->io.in_bytes != first->in_bytes || p->io.from != first->from) {
            bus.torn++;
            return 0;
        }
    }
    if (first->kind == CG_IO_ALLREDUCE) {
        memset(sum, 0, first->in_bytes);
        for (int r = 0; r < bus.size; r++)
            for (size_t i = 0; i < first->in_bytes / 4; i++) sum[i] += ((const float *)bus.port[r].io.in)[i];
    }
    for (int r = 0; r < bus.size; r++) {
        const cg_io *io = &bus.port[r].io;
        size_t len = io->in_bytes;
        if (io->kind == CG_IO_ALLREDUCE) memcpy(io->in, sum, len);
        if (io->kind == CG_IO_ALLGATHER)
            for (int q = 0; q < bus.size; q++) memcpy((char *)io->in + (size_t)q * len, bus.port[q].io.out, len);
        if (io->kind == CG_IO_BROADCAST && r != io->from) memcpy(io->in, bus.port[io->from].io.in, len);
    }
    for (int r = 0; r < bus.size; r++) {
        port *p = &bus.port[r];
        if (p->io.kind == CG_IO_ALLGATHER) deliver(r, p->io.in, (size_t)bus.size * p->io.in_bytes, p->io.in_bytes);
        else if (p->io.kind == CG_IO_ALLREDUCE || r != p->io.from) deliver(r, p->io.in, p->io.in_bytes, 0);
        p->sent = p->received = 1;
    }
    return 1;
}
/* Until all ranks have ended. Who waits when nothing can move is told so, as a transport with a timeout would. */
static void conduct(void) {
    pthread_mutex_lock(&bus.lock);
    for (;;) {
        int moved = 0, alive = 0;
        while (bus.busy) pthread_cond_wait(&bus.all_wait, &bus.lock);
        for (int r = 0; r < bus.size; r++) alive += !bus.port[r].done;
        if (!alive) break;
        for (int r = 0; r < bus.size && !bus.refuse; r++) moved |= match_pair(r);
        if (!bus.refuse) moved |= match_all();
        for (int r = 0; r < bus.size; r++) {
            port *p = &bus.port[r];
            if (!p->waiting || (moved && !(p->sent && p->received))) continue;
            if (!moved) p->code = bus.refuse ? REFUSED : STUCK;
            if (!moved && !bus.refuse) bus.stuck++;
            p->waiting = 0;
            bus.busy++;
            pthread_cond_signal(&p->go);
        }
    }
    pthread_mutex_unlock(&bus.lock);
}

/* ---- jobs ---- */

enum { PLAIN, LAYERS, EF, EF_LAYERS, SKETCH, SKETCHED, FETCHED };
enum {
    AUTO = CG_ROUTE_AUTO,
    AG = CG_ROUTE_ALLGATHER,
    RING = CG_ROUTE_RING,
    TREE = CG_ROUTE_TREE,
    SCATTER = CG_ROUTE_SCATTER,
    SERVER = CG_ROUTE_SERVER,
    MERGE = CG_ROUTE_MERGE,
    SHARED = CG_ROUTE_SHARED,
    REGION = CG_ROUTE_REGION,
    LINEAR = CG_ROUTE_LINEAR
};
enum {
    SUM = CG_FOLD_SUM,
    VOTE = CG_FOLD_VOTE,
    SOME = CG_FOLD_CONTRIBUTORS,
    AGREE = CG_AGREE_SCALES,
    SCORE = CG_LEADER_BY_SCORE,
    CARRY = 1,
    WARMED = 2,
    WEIGHTS = 4,
    MODEL = 8,
    ABSTAINS = 16
};
typedef struct job {
    int what;
    const char *op;
    uint32_t route, fold, flags;
    int with, leader; /* with: CARRY, WARMED ... */
    const char *back;
    uint32_t kind; /* EF */
    float momentum;
} job;
#define PLAINLY(op, route, fold, flags, with, leader, back) \
  { PLAIN, op, route, fold, flags, with, leader, back, 0, 0 }
#define REMEMBERED(op, route, with, kind, momentum) \
  { EF, op, route, 0, 0, with, 0, NULL, kind, momentum }
static const job jobs[] = {
    PLAINLY("dense", AG, 0, 0, WEIGHTS, 0, NULL),
    PLAINLY("topk:0.05", AG, 0, 0, MODEL, 0, NULL),
    PLAINLY("dgc:0.1", AG, SUM, 0, 0, 0, NULL),
    PLAINLY("topk:0.1|absmax:4:64", AG, 0, 0, ABSTAINS, 0, NULL),
    PLAINLY("threshold:1", AG, 0, 0, ABSTAINS, 0, NULL),
    PLAINLY("topk:0.1|golomb", AG, SOME, 0, 0, 0, NULL),
    PLAINLY("sign", AG, VOTE, 0, 0, 0, NULL),
    PLAINLY("terngrad", AG, 0, AGREE, 0, 0, NULL),
    PLAINLY("absmax:4:64", AG, 0, AGREE, 0, 0, NULL),
    PLAINLY("qsgd:4", AG, 0, 0, WEIGHTS, 0, NULL),
    PLAINLY("permk:8", AG, 0, 0, 0, 0, NULL),
    PLAINLY("lowrank:2:9:37", AG, 0, 0, 0, 0, NULL),
    PLAINLY("dense", RING, 0, 0, 0, 0, NULL),
    PLAINLY("topk:0.05", RING, 0, 0, MODEL, 0, NULL),
    PLAINLY("absmax:4:64", RING, SUM, 0, WEIGHTS, 0, NULL),
    PLAINLY("efsign", RING, 0, 0, CARRY, 0, NULL),
    PLAINLY("absmax:4:64", RING, 0, AGREE, 0, 0, NULL),
    PLAINLY("absmax:4:64:nearest|huffman", RING, 0, 0, CARRY, 0, NULL),
    PLAINLY("dense", TREE, SUM, 0, 0, 0, NULL),
    PLAINLY("dgc:0.1", TREE, 0, 0, 0, 0, NULL),
    PLAINLY("randk:0.2", TREE, 0, 0, 0, 0, NULL),
    PLAINLY("efsign", TREE, 0, 0, CARRY | WEIGHTS, 0, NULL),
    PLAINLY("absmax:4:64", TREE, 0, AGREE, 0, 0, NULL),
    PLAINLY("qsgd:4", TREE, 0, 0, 0, 0, NULL),
    PLAINLY("dense", SCATTER, 0, 0, 0, 0, NULL),
    PLAINLY("topk:0.05|golomb", SCATTER, 0, 0, 0, 0, NULL),
    PLAINLY("efsign", SCATTER, 0, 0, CARRY, 0, NULL),
    PLAINLY("absmax:4:64", SCATTER, 0, AGREE, 0, 0, NULL),
    PLAINLY("topk:0.1", SCATTER, 0, 0, CARRY, 0, "topk:0.2"),
    PLAINLY("sign", SCATTER, VOTE, 0, MODEL, 0, NULL),
    PLAINLY("dense", SERVER, 0, 0, 0, 2, NULL),
    PLAINLY("topk:0.05", SERVER, 0, 0, 0, SCORE, NULL),
    PLAINLY("efsign", SERVER, 0, 0, CARRY, 2, "efsign"),
    PLAINLY("absmax:4:64", SERVER, SUM, AGREE, 0, 0, NULL),
    PLAINLY("dense|huffman", SERVER, 0, 0, WEIGHTS, 0, "absmax:8:64"),
    PLAINLY("sign", SERVER, VOTE, 0, 0, 0, NULL),
    PLAINLY("topk:0.05", MERGE, 0, 0, 0, 0, NULL),
    PLAINLY("dgc:0.1", MERGE, SUM, 0, 0, 0, NULL),
    PLAINLY("topk:0.05", REGION, 0, 0, 0, 0, NULL),
    PLAINLY("sidco:0.1", REGION, SUM, 0, MODEL, 0, NULL),
    PLAINLY("topk:0.05", SHARED, 0, 0, 0, 0, NULL),
    PLAINLY("dgc:0.1", SHARED, SUM, 0, WEIGHTS, SCORE, NULL),
    PLAINLY("dense", LINEAR, 0, 0, WEIGHTS, 0, NULL),
    PLAINLY("randk:0.2", LINEAR, SUM, 0, 0, 0, NULL),
    PLAINLY("lowrank:2:9:37", LINEAR, 0, 0, WARMED, 0, NULL),
    REMEMBERED("topk:0.05", AG, 0, CG_EF_CLASSIC, 0),
    REMEMBERED("absmax:2:64:nearest", RING, CARRY, CG_EF_CLASSIC, 0),
    REMEMBERED("topk:0.1", REGION, 0, CG_EF_CLASSIC, 0),
    REMEMBERED("topk:0.1", MERGE, MODEL, CG_EF_MOMENTUM, 0.5f),
    REMEMBERED("efsign", SERVER, CARRY, CG_EF_LOCO, 0),
    REMEMBERED("topk:0.1", TREE, 0, CG_EF_SCALECOM, 0),
    REMEMBERED("absmax:4:64:nearest", AG, 0, CG_EF_ECQ, 0),
    { EF, "sign", SCATTER, VOTE, 0, 0, 0, NULL, CG_EF_SIGNUM, 0.5f },
    REMEMBERED("variance:1", AG, 0, CG_EF_VARIANCE, 0),
    REMEMBERED("topk:0.1", AG, 0, CG_EF_EF21, 0),
    REMEMBERED("topk:0.1|golomb", SCATTER, MODEL, CG_EF_EF21, 0.5f),
    REMEMBERED("absmax:4:64", SERVER, 0, CG_EF_DIANA, 0),
    REMEMBERED("qsgd:4", RING, 0, CG_EF_DIANA, 0),
    REMEMBERED("absmax:8:64:nearest", AG, 0, CG_EF_LAQ, 0),
    REMEMBERED("efsign", AG, 0, CG_EF_ONEBIT_ADAM, 0.9f),
    REMEMBERED("dgc:0.1", TREE, 0, CG_EF_EF21, 0),
    { LAYERS, "topk:0.05", AG, 0, 0, 0, 0, NULL, 0, 0 },
    { LAYERS, "qsgd:4", SERVER, 0, 0, MODEL, 0, NULL, 0, 0 },
    { LAYERS, "dgc:0.1", RING, 0, 0, 0, 0, NULL, 0, 0 },
    { EF_LAYERS, "topk:0.05", SCATTER, 0, 0, 0, 0, NULL, CG_EF_CLASSIC, 0 },
    { EF_LAYERS, "topk:0.1|golomb", AG, 0, 0, 0, 0, NULL, CG_EF_EF21, 0 },
    { SKETCH, "dense", SCATTER, 0, 0, 0, 0, NULL, 0, 0 },
    { SKETCHED, "dense", TREE, 0, 0, 0, 0, NULL, 0, 0.5f },
    { SKETCHED, "dense", AG, 0, 0, MODEL, 0, NULL, 0, 0 },
    { SKETCHED, "dense", AUTO, 0, 0, 0, 0, NULL, 0, 0.5f },
    { FETCHED, "dense", RING, 0, 0, 0, 0, NULL, 0, 0.9f },
    { FETCHED, "dense", AUTO, 0, 0, 0, 0, NULL, 0, 0.9f },
};
enum { JOBS = sizeof jobs / sizeof *jobs };
static const char *const route_names[] = { "auto", "allgather", "ring", "tree", "scatter", "server", "merge", "shared",
    "region", "linear" };

typedef struct actor {
    port *at;
    cg_transport transport;
    float x[PARTS][N], carry[PARTS][N], warm[WARM], model[PARTS][N];
    cg_ef ef[PARTS];
    cg_sketch sketch;
    cg_sketched sketched;
    cg_fetched fetched;
    void *state[PARTS], *mem;
    size_t bytes;
    cg_status status[PARTS];
    const char *why[PARTS];
    /* what was there before the step; and after it if it failed, or succeeded, undisturbed */
    unsigned char before[PARTS][BLOB], failed[PARTS][BLOB], done[PARTS][BLOB];
    size_t before_len[PARTS], len[PARTS];
} actor;
static actor cast[RANKS];
static const job *now;
static int size, confirm, fill;
static uint64_t step;
static cg_op op, back;
static float variances[N];

static int parts(void) { return now->what == LAYERS || now->what == EF_LAYERS ? PARTS : 1; }
static int has_ef(void) { return now->what == EF || now->what == EF_LAYERS; }
static size_t part_n(int p) { return p == 0 ? N : p == 1 ? 200 : 7; }
/* Plain floats are summed: those of linear and shared, and of small layers and sketches that choose linear. */
static int is_raw(int p) { return now->route == LINEAR || now->route == SHARED || now->route == AUTO || p > 1; }
static int keeps_received(uint32_t kind) {
    return kind == CG_EF_EF21 || kind == CG_EF_DIANA || kind == CG_EF_LAQ || kind == CG_EF_ONEBIT_ADAM;
}
static int is_confirmed(void) { return confirm || now->what == FETCHED || (has_ef() && keeps_received(now->kind)); }
static float noise(void) {
    const float u = (float)below(1 << 20) / (float)(1 << 20) - 0.5f;
    return 20.0f * u * u * u + 0.01f * u;
}
static cg_exchange_desc desc_of(int rank, int p) {
    static cg_extra side;
    cg_exchange_desc d = CG_ZERO;
    actor *a = &cast[rank];
    d.op = p == 1 ? cg_topk(0.1f) : op;
    d.route = p == 1 ? (uint32_t)AG : now->route;
    d.fold = now->fold;
    d.flags = now->flags | (confirm ? (uint32_t)CG_CONFIRM : 0);
    d.leader = now->leader;
    d.score = (float)(rank % 2);
    d.tag.seed = 11;
    d.tag.step = step;
    d.tag.tensor = (uint32_t)p;
    if (now->back) d.back = &back;
    if (now->with & WEIGHTS) d.weight = 1.0f + (float)rank / 2.0f;
    if ((now->with & CARRY) && !has_ef()) d.carry = a->carry[p];
    if (now->with & WARMED) d.warm = a->warm;
    if (now->with & MODEL) d.model = a->model[p];
    if ((now->with & ABSTAINS) && rank == 1) d.flags |= CG_ABSTAIN;
    d.rate = 0.5f;
    side.aux = variances;
    if (now->kind == CG_EF_VARIANCE) d.side = &side;
    return d;
}
static void *memory(size_t bytes) {
    void *p = malloc(bytes ? bytes : 1);
    if (!p) abort();
    memset(p, fill, bytes);
    return p;
}
static void act(int rank) {
    actor *a = &cast[rank];
    cg_exchange_desc d[PARTS];
    cg_layer layers[PARTS];
    cg_ef *efs[PARTS];
    cg_report report;
    cg_status s = CG_E_STATE;
    for (int p = 0; p < PARTS; p++) d[p] = desc_of(rank, p);
    memset(layers, 0, sizeof layers);
    for (int p = 0; p < PARTS; p++) {
        layers[p].desc = d[p];
        layers[p].x = a->x[p];
        layers[p].n = part_n(p);
        efs[p] = &a->ef[p];
    }
    if (!a->mem) {
        a->bytes = now->what == PLAIN ? cg_exchange_memory(&d[0], &a->transport, N)
            : now->what == LAYERS     ? cg_exchange_layers_memory(layers, PARTS, SMALL, &a->transport)
            : now->what == EF         ? cg_ef_exchange_memory(efs[0], &d[0], &a->transport)
            : now->what == EF_LAYERS  ? cg_ef_layers_memory(efs, layers, PARTS, SMALL, &a->transport)
            : now->what == SKETCH     ? cg_sketch_exchange_memory(&a->sketch, &d[0], &a->transport)
            : now->what == SKETCHED   ? cg_sketched_exchange_memory(&a->sketched, &d[0], &a->transport)
                                      : cg_fetched_exchange_memory(&a->fetched, &d[0], &a->transport);
        a->mem = malloc(a->bytes + 1);
    }
    memset(a->mem, fill, a->bytes);
    switch (now->what) {
    case PLAIN: s = cg_exchange(&d[0], &a->transport, a->x[0], N, a->mem, a->bytes, &report); break;
    case EF: s = cg_ef_exchange(&a->ef[0], &d[0], &a->transport, a->x[0], a->mem, a->bytes, &report); break;
    case SKETCH: s = cg_sketch_exchange(&a->sketch, &d[0], &a->transport, a->mem, a->bytes, &report); break;
    case SKETCHED:
        s = cg_sketched_exchange(&a->sketched, &d[0], &a->transport, a->x[0], a->mem, a->bytes, &report);
        break;
    case FETCHED: s = cg_fetched_exchange(&a->fetched, &d[0], &a->transport, a->x[0], a->mem, a->bytes, &report); break;
    case LAYERS: s = cg_exchange_layers(layers, PARTS, SMALL, &a->transport, a->mem, a->bytes, &report); break;
    default: s = cg_ef_exchange_layers(efs, layers, PARTS, SMALL, &a->transport, a->mem, a->bytes, &report);
    }
    for (int p = 0; p < PARTS; p++) {
        a->status[p] = parts() > 1 ? layers[p].status : s;
        a->why[p] = parts() > 1 && layers[p].report.why ? layers[p].report.why : report.why;
    }
}
static void *act_thread(void *user) {
    actor *a = (actor *)user;
    act((int)(a - cast));
    pthread_mutex_lock(&bus.lock);
    a->at->done = 1;
    if (!--bus.busy) pthread_cond_signal(&bus.all_wait);
    pthread_mutex_unlock(&bus.lock);
    return NULL;
}
static void run(int refuse, int hurt_rank, int hurt_io, way how, int recording) {
    pthread_t thread[RANKS];
    pthread_attr_t attr;
    bus.size = bus.busy = size;
    bus.stuck = bus.torn = bus.hit = 0;
    bus.refuse = refuse;
    bus.hurt_rank = hurt_rank;
    bus.hurt_io = hurt_io;
    bus.how = how;
    bus.recording = recording;
    if (recording) {
        bus.logged = 0;
        bus.pooled = 0;
        bus.crossed = 0xcbf29ce484222325u;
    }
    for (int r = 0; r < size; r++) {
        bus.port[r].waiting = bus.port[r].done = bus.port[r].ios = 0;
        cast[r].at = &bus.port[r];
    }
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 1 << 20);
    for (int r = 0; r < size; r++)
        if (pthread_create(&thread[r], &attr, act_thread, &cast[r])) abort();
    conduct();
    for (int r = 0; r < size; r++) pthread_join(thread[r], NULL);
    pthread_attr_destroy(&attr);
}

/* ---- what an actor has ---- */

static size_t put(unsigned char *out, size_t at, const void *bytes, size_t len) {
    if (at + len > BLOB) abort();
    memcpy(out + at, bytes, len);
    return at + len;
}
static size_t remember(const actor *a, int p, unsigned char *out) {
    size_t at = 0, len;
    at = put(out, at, a->x[p], 4 * part_n(p));
    at = put(out, at, a->model[p], 4 * part_n(p));
    at = put(out, at, a->carry[p], 4 * part_n(p));
    at = put(out, at, a->warm, sizeof a->warm);
    if (has_ef()) {
        if (cg_ef_save(&a->ef[p], out + at, BLOB - at, &len) != CG_OK) abort();
        at += len;
    }
    if (now->what == SKETCH) at = put(out, at, a->sketch.cells, 4 * a->sketch.count);
    if (now->what == SKETCHED) {
        at = put(out, at, a->sketched.error, 4 * N);
        if (a->sketched.velocity) at = put(out, at, a->sketched.velocity, 4 * N);
    }
    if (now->what == FETCHED) {
        at = put(out, at, a->fetched.momentum.cells, 4 * a->fetched.momentum.count);
        at = put(out, at, a->fetched.error.cells, 4 * a->fetched.error.count);
    }
    return at;
}
static size_t get(const unsigned char *in, size_t at, void *bytes, size_t len) {
    memcpy(bytes, in + at, len);
    return at + len;
}
static void restore(actor *a, int p) {
    const unsigned char *in = a->before[p];
    size_t at = 0;
    at = get(in, at, a->x[p], 4 * part_n(p));
    at = get(in, at, a->model[p], 4 * part_n(p));
    at = get(in, at, a->carry[p], 4 * part_n(p));
    at = get(in, at, a->warm, sizeof a->warm);
    if (has_ef() && cg_ef_load(&a->ef[p], in + at, a->before_len[p] - at) != CG_OK) abort();
    if (now->what == SKETCH) get(in, at, a->sketch.cells, 4 * a->sketch.count);
    if (now->what == SKETCHED) {
        at = get(in, at, a->sketched.error, 4 * N);
        if (a->sketched.velocity) get(in, at, a->sketched.velocity, 4 * N);
    }
    if (now->what == FETCHED) {
        at = get(in, at, a->fetched.momentum.cells, 4 * a->fetched.momentum.count);
        get(in, at, a->fetched.error.cells, 4 * a->fetched.error.count);
    }
}
static void restore_all(void) {
    for (int r = 0; r < size; r++)
        for (int p = 0; p < parts(); p++) restore(&cast[r], p);
}
static void new_gradient(actor *a) {
    for (int p = 0; p < PARTS; p++)
        for (size_t i = 0; i < part_n(p); i++) a->x[p][i] = noise();
    if (now->what == SKETCH) {
        cg_sketch_clear(&a->sketch);
        if (cg_sketch_add(&a->sketch, a->x[0], N, 1.0f) != CG_OK) abort();
    }
}
static void state_of(actor *a, int rank) {
    const cg_sketch_desc sketch = { 3, 256, N, 5, 0 };
    cg_sketched_desc sketched = CG_ZERO;
    cg_fetched_desc fetched = CG_ZERO;
    size_t bytes = 0;
    sketched.sketch = fetched.sketch = sketch;
    sketched.k = fetched.k = 10;
    sketched.momentum = fetched.momentum = now->momentum;
    for (int p = 0; p < parts() && has_ef(); p++) {
        cg_exchange_desc d = desc_of(rank, p);
        cg_ef_desc e = CG_ZERO;
        e.op = d.op;
        e.n = part_n(p);
        e.kind = p > 1 ? (uint32_t)CG_EF_CLASSIC : now->kind;
        e.momentum = p > 1 ? 0.0f : now->momentum;
        e.laq_step = now->kind == CG_EF_LAQ ? 0.1f : 0.0f;
        if (now->with & CARRY) e.carry = cg_exchange_carry(&d, &a->transport, part_n(p));
        bytes = cg_ef_memory(&e);
        a->state[p] = memory(bytes);
        if (cg_ef_init(&a->ef[p], &e, a->state[p], bytes) != CG_OK) {
            printf("%s: not of kind %d\n", now->op, (int)now->kind);
            abort();
        }
    }
    if (now->what == SKETCH) bytes = cg_sketch_memory(&sketch);
    if (now->what == SKETCHED) bytes = cg_sketched_memory(&sketched);
    if (now->what == FETCHED) bytes = cg_fetched_memory(&fetched);
    if (now->what >= SKETCH) a->state[0] = memory(bytes);
    if ((now->what == SKETCH && cg_sketch_init(&a->sketch, &sketch, a->state[0], bytes) != CG_OK) ||
        (now->what == SKETCHED && cg_sketched_init(&a->sketched, &sketched, a->state[0], bytes) != CG_OK) ||
        (now->what == FETCHED && cg_fetched_init(&a->fetched, &fetched, a->state[0], bytes) != CG_OK))
        abort();
}
static void set_down(void) {
    for (int r = 0; r < RANKS; r++) {
        for (int p = 0; p < PARTS; p++) free(cast[r].state[p]);
        free(cast[r].mem);
    }
    memset(cast, 0, sizeof cast);
}
static int all_well(void) {
    for (int r = 0; r < size; r++)
        for (int p = 0; p < parts(); p++)
            if (cast[r].status[p] != CG_OK) return 0;
    return 1;
}
/* A first step, so that memories are not empty; then the second, once refused and once undisturbed. Returns 0 if the
   callbacks do not suffice for this route. */
static int set_up(const job *j, int ranks, int callbacks, int with_confirm) {
    set_down();
    now = j;
    size = ranks;
    confirm = with_confirm;
    step = 4;
    fill = 0xa5;
    if (cg_op_parse(&op, j->op) != CG_OK || (j->back && cg_op_parse(&back, j->back) != CG_OK)) abort();
    for (int r = 0; r < size; r++) {
        actor *a = &cast[r];
        a->transport.rank = r;
        a->transport.size = size;
        a->transport.user = &bus.port[r];
        if (callbacks & 1) a->transport.allreduce = by_allreduce;
        if (callbacks & 2) a->transport.allgather = by_allgather;
        if (callbacks & 4) a->transport.broadcast = by_broadcast;
        if (callbacks & 8) a->transport.sendrecv = by_sendrecv;
        if (callbacks == 15) a->transport.flags = CG_ALLREDUCE_AGREES;
        for (size_t i = 0; i < WARM; i++) a->warm[i] = (float)(i % 7) - 2.5f;
        for (int p = 0; p < PARTS; p++)
            for (size_t i = 0; i < N; i++) {
                a->carry[p][i] = j->with & CARRY ? noise() / 8 : 0.0f;
                a->model[p][i] = (float)(i % 9);
            }
        state_of(a, r);
        new_gradient(a);
    }
    run(0, -1, -1, BIT, 0);
    if (!all_well()) return 0;
    step = 5;
    for (int r = 0; r < size; r++) {
        new_gradient(&cast[r]);
        for (int p = 0; p < parts(); p++) cast[r].before_len[p] = remember(&cast[r], p, cast[r].before[p]);
    }
    run(1, -1, -1, BIT, 0);
    for (int r = 0; r < size; r++)
        for (int p = 0; p < parts(); p++) remember(&cast[r], p, cast[r].failed[p]);
    restore_all();
    run(0, -1, -1, BIT, 1);
    for (int r = 0; r < size; r++)
        for (int p = 0; p < parts(); p++) cast[r].len[p] = remember(&cast[r], p, cast[r].done[p]);
    return all_well();
}

/* ---- schedules ---- */

static const int callback_sets[] = { 8, 15, 2, 4, 1 };
static struct { long schedules, hit, noticed, confirmed, mixed, unconfirmed, mixed_unconfirmed; } tally;
static char note[600];
static const char *complain(const char *what, int rank, int p, long number) {
    const actor *a = &cast[rank < 0 ? 0 : rank];
    const message *m = NULL;
    for (int i = 0; i < bus.logged; i++)
        if (bus.log[i].rank == bus.hurt_rank && bus.log[i].io == bus.hurt_io) m = &bus.log[i];
    snprintf(note, sizeof note,
        "schedule %ld: %s: job %d, %s by %s, kind %d, %d ranks%s; message %d of rank %d (%lu bytes): %s; stuck %d, "
        "torn "
        "%d; rank %d, part %d: status %d, %s",
        number, what, (int)(now - jobs), now->op, route_names[now->route], (int)now->kind, size,
        confirm ? ", confirmed" : "", bus.hurt_io, bus.hurt_rank, m ? (unsigned long)m->len : 0, way_names[bus.how],
        bus.stuck, bus.torn, rank, p, (int)a->status[p], a->why[p] ? a->why[p] : "");
    return note;
}
/* NULL, or what is wrong. */
static const char *judge(long number) {
    static unsigned char blob[BLOB];
    int noticed = 0;
    tally.schedules++;
    if (bus.stuck || bus.torn) return complain("ranks wait", -1, 0, number);
    for (int p = 0; p < parts(); p++) {
        int well = 0;
        for (int r = 0; r < size; r++) {
            const actor *a = &cast[r];
            const int ok = a->status[p] == CG_OK;
            const size_t len = remember(a, p, blob);
            well += ok;
            noticed |= !ok;
            if (!ok && (len != a->len[p] || memcmp(blob, a->failed[p], len)))
                return complain("a failure has changed something", r, p, number);
            if (ok && !is_raw(p) && (len != a->len[p] || memcmp(blob, a->done[p], len)))
                return complain("a wrong result", r, p, number);
        }
        if (is_confirmed()) tally.confirmed++;
        else tally.unconfirmed++;
        if (well == 0 || well == size) continue;
        if (is_confirmed()) {
            tally.mixed++;
            for (int r = 0; r < size; r++)
                if (cast[r].status[p] != CG_OK) return complain("some ranks succeed", r, p, number);
        }
        tally.mixed_unconfirmed++;
    }
    tally.hit += bus.hit;
    tally.noticed += noticed;
    return NULL;
}
/* Many schedules for each of many beds: all jobs in turn, with other ranks and callbacks every time. */
TEST schedules(long many) {
    enum { EACH = 8 };
    const char *wrong;
    memset(&tally, 0, sizeof tally);
    for (long bed = 0; tally.schedules < many; bed++) {
        const job *j = &jobs[bed % JOBS];
        const long turn = bed / JOBS;
        dice = 1000 + (uint64_t)bed;
        /* of routes that need sendrecv only the first two sets do */
        if (!set_up(j, 2 + (int)below(RANKS - 1), callback_sets[(turn + bed) % 5], (int)(turn + bed) % 2) &&
            !set_up(j, 2 + (int)below(RANKS - 1), callback_sets[below(2)], (int)(turn + bed) % 2))
            FAILm(complain("undisturbed", -1, 0, bed));
        for (int i = 0; i < EACH && tally.schedules < many; i++) {
            const message *m = &bus.log[below((uint32_t)bus.logged)];
            restore_all();
            fill = (int)below(256);
            run(0, m->rank, m->io, (way)below(WAYS), 0);
            wrong = judge(EACH * bed + i);
            if (wrong) FAILm(wrong);
        }
        set_down();
    }
    printf("\n%ld schedules, %ld with a changed message, %ld noticed; some ranks only succeed in %ld of %ld confirmed "
           "exchanges, in %ld of %ld others\n",
        tally.schedules, tally.hit, tally.noticed, tally.mixed, tally.confirmed, tally.mixed_unconfirmed,
        tally.unconfirmed);
    PASS();
}
GREATEST_MAIN_DEFS();
int main(int argc, char **argv) {
    GREATEST_MAIN_BEGIN();
    pthread_mutex_init(&bus.lock, NULL);
    pthread_cond_init(&bus.all_wait, NULL);
    for (int r = 0; r < RANKS; r++) pthread_cond_init(&bus.port[r].go, NULL);
    RUN_TESTp(schedules, long_test() ? 10000 : 640);
    GREATEST_MAIN_END();
}
