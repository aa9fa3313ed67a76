/* One damaged message, over all routes, operators, folds, kinds of memory and protocols of sketches: a schedule is a
   job, a number of ranks, a set of callbacks, with or without CG_CONFIRM, and one message to one rank that arrives with
   a changed bit, a changed byte, without its end, or as another message of the same call. Whatever happens:
     nobody waits, and both sides of a message name the same number of bytes;
     with CG_CONFIRM all ranks succeed or none does, wherever the damage is;
     who succeeds has the undisturbed result, to the bit, unless plain floats were summed (linear, shared), which have
     no checksum;
     who fails has written nothing, and its error feedback has kept the gradient.
   Of a message that is lost, so that a callback fails, only the second is weaker: ranks may differ if it belonged to
   the closing round of CG_CONFIRM, and that is checked.
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
#include "short_names.h"
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
enum { STUCK = 99, MISSING = 98, REFUSED = 7 };

static uint64_t dice;
static uint32_t below(uint32_t n) {
    dice = dice * 6364136223846793005u + 1442695040888963407u;
    return n ? (uint32_t)(dice >> 33) % n : 0;
}

/* ---- messages ---- */

typedef enum way { BIT, BYTE, CUT, GARBAGE, SWAPPED, PARTS_SWAPPED, WAYS, LOST = WAYS } way;
static const char *const way_names[] = { "a bit", "a byte", "cut", "garbage at the end", "another message",
    "two parts swapped", "lost" };

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
    uint64_t crossed;   /* hash of what has been received */
    long padded, dirty; /* bytes behind packets that an allgather callback sent, and how many of them were not 0 */
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
    if (bus.hurt_io != p->ios - 1 || bus.hurt_rank != rank) return;
    if (bus.how == LOST) {
        memset(bytes, 0x5a, len);
        bus.port[rank].code = MISSING;
    } else damage((unsigned char *)bytes, len, part);
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
static void count_padding(const unsigned char *p, size_t len) {
    cg_info info;
    if (cg_inspect(p, len, &info) != CG_OK) return;
    for (size_t i = info.packet_bytes; i < len; i++) {
        bus.padded++;
        bus.dirty += p[i] != 0;
    }
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
        if (io->kind == CG_IO_ALLGATHER) count_padding((const unsigned char *)io->out, len);
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
enum { CARRY = 1, WARMED = 2, WEIGHTS = 4, MODEL = 8, ABSTAINS = 16, ALONE = 32 };
typedef struct job {
    int what;
    const char *op;
    uint32_t route, fold, flags;
    int with, leader; /* with: CARRY, WARMED ...; ALONE: a list of one layer */
    const char *back;
    uint32_t kind; /* EF */
    float momentum;
} job;
#define PLAINLY(op, route, fold, flags, with, leader, back) \
  { PLAIN, op, route, fold, flags, with, leader, back, 0, 0 }
#define REMEMBERED(op, route, with, kind, momentum) \
  { EF, op, route, 0, 0, with, 0, NULL, kind, momentum }
enum { WAY = 1 << 16 }; /* in flags: times desc.sum */
static const job jobs[] = {
    PLAINLY("dense", AG, 0, 0, WEIGHTS, 0, NULL),
    PLAINLY("topk:0.05", AG, 0, 0, MODEL, 0, NULL),
    PLAINLY("dgc:0.1", AG, SUM, 0, 0, 0, NULL),
    PLAINLY("topk:0.1|absmax:4:64", AG, 0, 0, ABSTAINS, 0, NULL),
    PLAINLY("threshold:1", AG, 0, 0, ABSTAINS, 0, NULL),
    PLAINLY("topk:0.1|golomb", AG, SOME, 0, 0, 0, NULL),
    PLAINLY("sign", AG, VOTE, 0, 0, 0, NULL),
    PLAINLY("absmax:8:64", AG, CG_FOLD_MEDIAN, 0, 0, 0, NULL),
    PLAINLY("topk:0.1|golomb", AG, CG_FOLD_CLIPPED, 0, MODEL, 0, NULL),
    PLAINLY("dense", SERVER, CG_FOLD_MEDIAN, 0, 0, 0, NULL),
    PLAINLY("absmax:4:64", SERVER, CG_FOLD_CLIPPED, 0, CARRY, 0, "efsign"),
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
    PLAINLY("dense", LINEAR, 0, CG_SUM_HALVING *WAY, 0, 0, NULL),
    PLAINLY("topk:0.05", SHARED, 0, CG_SUM_HALVING *WAY, 0, 0, NULL),
    PLAINLY("dense", LINEAR, 0, CG_SUM_RING *WAY, 0, 0, NULL),
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
    { LAYERS, "lowrank:2:9:37", LINEAR, 0, 0, 0, 0, NULL, 0, 0 },
    { LAYERS, "lowrank:2:9:37", LINEAR, SUM, CG_SUM_HALVING *WAY, MODEL, 0, NULL, 0, 0 },
    { LAYERS, "topk:0.05", AG, 0, 0, ALONE, 0, NULL, 0, 0 },
    { LAYERS, "dgc:0.1", TREE, 0, 0, ALONE, 0, NULL, 0, 0 },
    { EF_LAYERS, "topk:0.1", AG, 0, 0, ALONE, 0, NULL, CG_EF_EF21, 0 },
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
    uint32_t rounds, route[PARTS], last_route[PARTS];
    int ios; /* these and route: undisturbed */
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

static cg_extra with_variances;

static int is_list(void) { return now->what == LAYERS || now->what == EF_LAYERS; }
static int parts(void) { return is_list() && !(now->with & ALONE) ? PARTS : 1; }
static int has_ef(void) { return now->what == EF || now->what == EF_LAYERS; }
static size_t part_n(int p) { return p == 0 ? N : p == 1 ? 200 : 7; }
static int keeps_received(uint32_t kind) {
    return kind == CG_EF_EF21 || kind == CG_EF_DIANA || kind == CG_EF_LAQ || kind == CG_EF_ONEBIT_ADAM;
}
/* Small layers travel together, and are of a kind that keeps nothing. */
static int is_confirmed(int p) {
    return confirm || now->what == FETCHED || (has_ef() && p < 2 && keeps_received(now->kind));
}
static float noise(void) {
    const float u = (float)below(1 << 20) / (float)(1 << 20) - 0.5f;
    return 20.0f * u * u * u + 0.01f * u;
}
static cg_exchange_desc desc_of(int rank, int p) {
    cg_exchange_desc d = CG_ZERO;
    actor *a = &cast[rank];
    d.op = p == 1 ? cg_topk(0.1f) : op;
    d.route = p == 1 ? (uint32_t)AG : now->route;
    d.fold = now->fold;
    d.sum = p != 1 && a->transport.sendrecv ? now->flags / WAY : 0;
    d.flags = now->flags % WAY | (confirm ? (uint32_t)CG_CONFIRM : 0);
    d.leader = now->leader;
    d.score = (float)(rank % 2);
    d.tag.seed = 11;
    d.tag.step = step;
    d.tag.tensor = (uint32_t)p;
    if (now->back) d.back = &back;
    if (now->with & WEIGHTS) d.weight = 1.0f + (float)rank / 2.0f;
    if ((now->with & CARRY) && now->what < EF) d.carry = a->carry[p];
    if (now->with & WARMED) d.warm = a->warm;
    if (now->with & MODEL) d.model = a->model[p];
    if ((now->with & ABSTAINS) && rank == 1) d.flags |= CG_ABSTAIN;
    d.rate = 0.5f;
    if (d.op.select.id == CG_SELECT_VARIANCE || d.op.select.id == CG_SELECT_BINS) d.side = &with_variances;
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
    const size_t count = (size_t)parts();
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
            : now->what == LAYERS     ? cg_exchange_layers_memory(layers, count, SMALL, &a->transport)
            : now->what == EF         ? cg_ef_exchange_memory(efs[0], &d[0], &a->transport)
            : now->what == EF_LAYERS  ? cg_ef_layers_memory(efs, layers, count, SMALL, &a->transport)
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
    case LAYERS: s = cg_exchange_layers(layers, count, SMALL, &a->transport, a->mem, a->bytes, &report); break;
    default: s = cg_ef_exchange_layers(efs, layers, count, SMALL, &a->transport, a->mem, a->bytes, &report);
    }
    for (int p = 0; p < PARTS; p++) {
        a->status[p] = is_list() ? layers[p].status : s;
        a->why[p] = is_list() && layers[p].report.why ? layers[p].report.why : report.why;
    }
    for (int p = 0; p < PARTS; p++) a->last_route[p] = is_list() ? layers[p].report.route : report.route;
    a->rounds = report.rounds;
}
/* Plain floats are summed, which have no checksum. */
static int is_raw(int p) { return cast[0].route[p] == LINEAR || cast[0].route[p] == SHARED; }
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
    bus.padded = bus.dirty = 0;
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
/* 0: error feedback of this kind does not take the operator. */
static int state_of(actor *a, int rank) {
    const cg_sketch_desc sketch = { 3, 256, N, 5, 0, { 0 } };
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
        if (cg_ef_init(&a->ef[p], &e, a->state[p], bytes) != CG_OK) return 0;
    }
    if (now->what == SKETCH) bytes = cg_sketch_memory(&sketch);
    if (now->what == SKETCHED) bytes = cg_sketched_memory(&sketched);
    if (now->what == FETCHED) bytes = cg_fetched_memory(&fetched);
    if (now->what >= SKETCH) a->state[0] = memory(bytes);
    if ((now->what == SKETCH && cg_sketch_init(&a->sketch, &sketch, a->state[0], bytes) != CG_OK) ||
        (now->what == SKETCHED && cg_sketched_init(&a->sketched, &sketched, a->state[0], bytes) != CG_OK) ||
        (now->what == FETCHED && cg_fetched_init(&a->fetched, &fetched, a->state[0], bytes) != CG_OK))
        abort();
    return 1;
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
/* Has some rank refused what it was asked for, and do all know of it? */
static int all_refused(void) {
    int refused = 0;
    for (int r = 0; r < size; r++) {
        const cg_status s = cast[r].status[0];
        if (s != CG_E_UNSUPPORTED && s != CG_E_ARG && s != CG_E_PEER) return 0;
        refused |= s != CG_E_PEER;
    }
    return refused;
}
static void remember_all(int before) {
    for (int r = 0; r < size; r++)
        for (int p = 0; p < parts(); p++) {
            actor *a = &cast[r];
            if (before) a->before_len[p] = remember(a, p, a->before[p]);
            else a->len[p] = remember(a, p, a->done[p]);
        }
}
/* A first step, so that memories are not empty; then the second: once refused, and twice undisturbed, with other bytes
   in memory. NO: the operator, the callbacks or the kind does not suit this route. */
typedef enum outcome { NO, YES, WRONG } outcome;
static outcome set_up(const job *j, int ranks, int callbacks, int with_confirm) {
    uint64_t crossed;
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
        if (!state_of(a, r)) return NO;
        new_gradient(a);
    }
    run(0, -1, -1, BIT, 0);
    if (!all_well()) return all_refused() ? NO : WRONG;
    step = 5;
    for (int r = 0; r < size; r++) new_gradient(&cast[r]);
    remember_all(1);
    run(1, -1, -1, BIT, 0);
    for (int r = 0; r < size; r++)
        for (int p = 0; p < parts(); p++) remember(&cast[r], p, cast[r].failed[p]);
    restore_all();
    run(0, -1, -1, BIT, 1);
    crossed = bus.crossed;
    restore_all();
    fill = 0x3c;
    run(0, -1, -1, BIT, 1);
    remember_all(0);
    for (int r = 0; r < size; r++) {
        cast[r].ios = bus.port[r].ios;
        memcpy(cast[r].route, cast[r].last_route, sizeof cast[r].route);
    }
    if (all_refused()) return NO; /* LAQ: a rank that abstains only now */
    return all_well() && crossed == bus.crossed ? YES : WRONG;
}

/* ---- schedules ---- */

static const int callback_sets[] = { 8, 15, 2, 4, 1 };
static struct { long schedules, hit, noticed, confirmed, unconfirmed, mixed, excused; } tally;
static char note[700];
static const char *complain(const char *what, int rank, int p, long number) {
    const actor *a = &cast[rank < 0 ? 0 : rank];
    const message *m = NULL;
    for (int i = 0; i < bus.logged; i++)
        if (bus.log[i].rank == bus.hurt_rank && bus.log[i].io == bus.hurt_io) m = &bus.log[i];
    snprintf(note, sizeof note,
        "schedule %ld: %s: job of type %d, %s by %s, fold %d, kind %d, with %d, leader %d, back %s, %d ranks, "
        "callbacks "
        "%d%d%d%d%s; message %d of rank %d (%lu bytes): %s; stuck %d, torn %d; rank %d, part %d: status %d, %s",
        number, what, now->what, now->op, route_names[now->route], (int)now->fold, (int)now->kind, now->with,
        now->leader, now->back ? now->back : "none", size, cast[0].transport.sendrecv != NULL,
        cast[0].transport.broadcast != NULL, cast[0].transport.allgather != NULL, cast[0].transport.allreduce != NULL,
        confirm ? ", confirmed" : "", bus.hurt_io, bus.hurt_rank, m ? (unsigned long)m->len : 0, way_names[bus.how],
        bus.stuck, bus.torn, rank, p, (int)a->status[p], a->why[p] ? a->why[p] : "");
    return note;
}
/* Messages of a rank in an allgather of notes: the closing round. */
static int closing_ios(void) {
    const cg_transport *t = &cast[0].transport;
    int log = 0;
    while (1 << log < size) log++;
    return t->allgather ? 1 : t->sendrecv ? log : t->broadcast ? size : 1;
}
static int is_closing(void) { return bus.hurt_io >= cast[bus.hurt_rank].ios - closing_ios(); }
/* NULL, or what is wrong. */
static const char *judge(long number) {
    static unsigned char blob[BLOB];
    int noticed = 0;
    tally.schedules++;
    if ((bus.stuck && bus.how != LOST) || bus.torn) return complain("ranks wait", -1, 0, number);
    for (int p = 0; p < parts(); p++) {
        int well = 0, failed = 0;
        for (int r = 0; r < size; r++) {
            const actor *a = &cast[r];
            const int ok = a->status[p] == CG_OK;
            const size_t len = remember(a, p, blob);
            well += ok;
            if (!ok) failed = r;
            noticed |= !ok;
            if (!ok && (len != a->len[p] || memcmp(blob, a->failed[p], len)))
                return complain("a failure has changed something", r, p, number);
            if (ok && (!is_raw(p) || bus.how == LOST) && (len != a->len[p] || memcmp(blob, a->done[p], len)))
                return complain("a wrong result", r, p, number);
        }
        if (is_confirmed(p)) tally.confirmed++;
        else tally.unconfirmed++;
        if (well == 0 || well == size) continue;
        if (!is_confirmed(p)) tally.mixed++;
        else if (bus.how == LOST && is_closing()) tally.excused++;
        else return complain("some ranks succeed", failed, p, number);
    }
    tally.hit += bus.hit || bus.how == LOST;
    tally.noticed += noticed;
    return NULL;
}
/* Runs schedules on what set_up has left. */
static const char *disturb(int many, long number, int lost) {
    for (int i = 0; i < many; i++) {
        const message *m = &bus.log[below((uint32_t)bus.logged)];
        const char *wrong;
        restore_all();
        fill = (int)below(256);
        run(0, m->rank, m->io, lost ? LOST : (way)below(WAYS), 0);
        wrong = judge(number + i);
        if (wrong) return wrong;
    }
    return NULL;
}
enum { EACH = 8 };
/* All jobs of the list in turn, with other ranks and callbacks every time. */
static const char *schedules(long many, int lost) {
    memset(&tally, 0, sizeof tally);
    for (long bed = 0; tally.schedules < many; bed++) {
        const job *j = &jobs[bed % JOBS];
        const long turn = bed / JOBS;
        const char *wrong;
        outcome could;
        dice = 1000 + (uint64_t)bed;
        could = set_up(j, 2 + (int)below(RANKS - 1), callback_sets[(turn + bed) % 5], (int)(turn + bed) % 2);
        /* of routes that need sendrecv only the first two sets do */
        if (could == NO) could = set_up(j, 2 + (int)below(RANKS - 1), callback_sets[below(2)], (int)(turn + bed) % 2);
        wrong = could == YES ? disturb(EACH, EACH * bed, lost) : complain("undisturbed", -1, 0, EACH * bed);
        set_down();
        if (wrong) return wrong;
    }
    printf("\n%ld schedules, %ld with a changed or lost message, %ld noticed; some ranks only succeed in %ld of %ld "
           "confirmed exchanges, in %ld of %ld others\n",
        tally.schedules, tally.hit, tally.noticed, tally.excused, tally.confirmed, tally.mixed, tally.unconfirmed);
    return NULL;
}
TEST one_damaged_message_lets_nobody_wait_and_confirmed_ranks_agree(long many) {
    const char *wrong = schedules(many, 0);
    if (wrong) FAILm(wrong);
    ASSERT_EQ(0, tally.excused);
    ASSERT(tally.hit > many * 3 / 4 && tally.noticed > many / 3);
    ASSERT(tally.mixed > many / 30); /* what CG_CONFIRM is for */
    PASS();
}
TEST a_lost_message_divides_confirmed_ranks_in_the_closing_round_only(long many) {
    const char *wrong = schedules(many, 1);
    if (wrong) FAILm(wrong);
    ASSERT(tally.excused > 0);
    PASS();
}

/* ---- any job ---- */

static const char *const operators[] = { "dense", "f16", "bf16", "absmax:4:64", "absmax:2:64:nearest", "minmax:4:64",
    "qsgd:4", "levels:4", "terngrad", "trits:1.5", "sign", "efsign", "onebit:32", "natural", "dynamic8", "threelc:1",
    "flexpoint:4:64", "e4m3", "mxfp4", "nf4:64", "topk:0.05", "mstopk:0.1", "dgc:0.1", "sidco:0.1", "wangni:0.1",
    "sbc:0.1", "stc:0.1", "adaq:0.1", "threshold:1", "strom:1", "chunked:100:0.1", "blocks:16", "adacomp:50",
    "variance:1", "randk:0.2", "permk:8", "rotate:2", "demo:0.1", "srq:4", "drive", "eden:2", "dense|huffman",
    "absmax:4:64|huffman", "topk:0.1|golomb", "topk:0.1|absmax:4:64", "topk:0.1|f16", "randk:0.5|topk:0.1",
    "rotate:1|topk:0.1", "lowrank:2:9:37", "atomo:2:9:37" };
enum { OPERATORS = sizeof operators / sizeof *operators, ROUTES = CG_ROUTE_LINEAR + 1, KINDS = CG_EF_ONEBIT_ADAM + 1 };
static const char *draw_operator(void) { return operators[below(OPERATORS)]; }
static void draw(job *j) {
    static const int types[] = { PLAIN, PLAIN, PLAIN, PLAIN, EF, EF, EF, LAYERS, EF_LAYERS, SKETCH, SKETCHED, FETCHED };
    memset(j, 0, sizeof *j);
    j->what = types[below(sizeof types / sizeof *types)];
    j->op = j->what < SKETCH ? draw_operator() : "dense";
    j->route = below(ROUTES);
    j->fold = below(2) ? below(4) : 0;
    j->flags = below(4) ? 0 : AGREE;
    j->with = (int)(below(32) & below(32) & ~(uint32_t)WARMED) | (below(2) ? CARRY : 0) | (below(2) ? ALONE : 0);
    if (!strncmp(j->op, "lowrank", 7)) j->with |= WARMED;
    j->leader = below(4) ? (int)below(3) : SCORE;
    j->back = below(3) ? NULL : draw_operator();
    j->kind = j->what == EF || j->what == EF_LAYERS ? below(KINDS) : 0;
    j->momentum = j->kind == CG_EF_MOMENTUM || j->kind == CG_EF_SIGNUM || j->what > SKETCH ? 0.5f
        : j->kind == CG_EF_ONEBIT_ADAM                                                     ? 0.9f
        : j->kind == CG_EF_EF21 && below(2)                                                ? 0.5f
                                                                                           : 0.0f;
}
/* Every operator, route, fold, kind, type and way, drawn until together they are taken. */
TEST one_damaged_message_of_any_job(long many) {
    static long of_operator[OPERATORS], of_route[ROUTES], of_fold[4], of_kind[KINDS], of_type[FETCHED + 1];
    long refused = 0, beds = 0;
    memset(&tally, 0, sizeof tally);
    for (long number = 0; tally.schedules < many; number++) {
        job j;
        outcome could;
        const char *wrong;
        dice = 900000 + (uint64_t)number;
        draw(&j);
        could = set_up(&j, 2 + (int)below(RANKS - 1), callback_sets[below(2) ? 0 : below(5)], (int)below(2));
        wrong = could == YES ? disturb(EACH / 2, number, 0)
            : could == NO    ? NULL
                             : complain("undisturbed", -1, 0, number);
        refused += could == NO;
        beds += could == YES;
        set_down();
        if (wrong) FAILm(wrong);
        if (could == NO) continue;
        for (int i = 0; i < OPERATORS; i++) of_operator[i] += j.op == operators[i];
        of_route[j.route]++;
        of_fold[j.fold]++;
        of_kind[j.kind]++;
        of_type[j.what]++;
    }
    printf("\n%ld schedules of %ld jobs (%ld refused), %ld changed, %ld noticed; %ld of %ld not confirmed are mixed\n",
        tally.schedules, beds, refused, tally.hit, tally.noticed, tally.mixed, tally.unconfirmed);
    for (int i = 0; i < OPERATORS && long_test(); i++)
        if (!of_operator[i]) FAILm(operators[i]);
    for (int i = 0; i < ROUTES && long_test(); i++) ASSERT(of_route[i]);
    for (int i = 0; i < KINDS && long_test(); i++) ASSERT(of_kind[i]);
    for (int i = 0; i < 4; i++) ASSERT(of_fold[i] || !long_test());
    for (int i = 0; i <= FETCHED; i++) ASSERT(of_type[i] || !long_test());
    PASS();
}

/* ---- one by one ---- */

/* Otherwise what stood there would cross: gradients of before, or whatever malloc gave. */
TEST an_allgather_callback_sends_zeros_behind_a_packet(void) {
    static const char *const ops[] = { "threshold:1", "topk:0.1|golomb", "dense|huffman" };
    long padded = 0;
    for (int i = 0; i < 3; i++)
        for (int ranks = 2; ranks <= RANKS; ranks++) {
            job j = CG_ZERO;
            j.op = ops[i];
            j.route = AG;
            dice = 50 + (uint64_t)ranks;
            ASSERT_EQ(YES, set_up(&j, ranks, 2, 0)); /* which also compares what crosses with other bytes in memory */
            ASSERT_EQ_FMT(0L, bus.dirty, "%ld");
            padded += bus.padded;
            set_down();
        }
    ASSERT(padded > 0);
    PASS();
}
/* By the number of messages; test_bytes has their lengths. */
TEST confirm_costs_one_allgather_and_is_the_default_of_who_remembers_what_was_received(void) {
    for (int i = 0; i < JOBS; i++) {
        int ios[2][RANKS];
        for (int with = 0; with < 2; with++) {
            dice = 70;
            ASSERT_EQ(YES, set_up(&jobs[i], 4, callback_sets[i % 2], with));
            for (int r = 0; r < size; r++) {
                ios[with][r] = cast[r].ios;
                ASSERT_EQ_FMT((uint32_t)cast[r].ios, cast[r].rounds, "%u");
            }
        }
        confirm = 0;
        for (int r = 0; r < size; r++) ASSERT_EQ_FMT(is_confirmed(0) ? 0 : closing_ios(), ios[1][r] - ios[0][r], "%d");
        set_down();
    }
    PASS();
}

/* A rank that answers with a record of another version: the other one's, changed in place. The hash of a record is
   written out here as the manual has it. */
static uint64_t mixed(uint64_t z) {
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}
static uint64_t get64(const unsigned char *p) {
    uint64_t u = 0;
    for (int i = 7; i >= 0; i--) u = u << 8 | p[i];
    return u;
}
static uint64_t hash_of(const unsigned char *record) {
    uint64_t h = 56;
    for (int i = 0; i < 56; i += 8) h = mixed(h + get64(record + i) + 0x9e3779b97f4a7c15u);
    return h;
}
typedef struct stranger {
    char magic[5];
    int asked, as_described;
} stranger;
static int answer(void *user, const void *mine, void *all, size_t bytes) {
    stranger *s = (stranger *)user;
    unsigned char *record = (unsigned char *)all + bytes;
    uint64_t h;
    s->asked++;
    if (bytes != 64) return 1;
    memcpy(all, mine, bytes);
    memcpy(record, mine, bytes);
    s->as_described = !memcmp(record, "cgx2", 4) && get64(record + 56) == hash_of(record);
    memcpy(record, s->magic, 4);
    memset(record + 52, 0, 4); /* records of 0.1 had no rank */
    h = hash_of(record);
    for (int i = 0; i < 8; i++) record[56 + i] = (unsigned char)(h >> 8 * i);
    return 0;
}
TEST a_peer_of_0_1_is_refused_by_a_sentence_with_both_versions(void) {
    static const char *const magics[] = { "cgx1", "cgx3" };
    for (int i = 0; i < 2; i++)
        for (int as_layer = 0; as_layer < 2; as_layer++) {
            stranger s = CG_ZERO;
            cg_transport t = CG_ZERO;
            cg_layer layer = CG_ZERO;
            cg_report report;
            cg_status status;
            float x[50];
            char text[400];
            static char mem[1 << 20];
            strcpy(s.magic, magics[i]);
            t.user = &s;
            t.size = 2;
            t.allgather = answer;
            layer.desc.op = cg_topk(0.1f);
            layer.x = x;
            layer.n = 50;
            for (int k = 0; k < 50; k++) x[k] = (float)k;
            status = as_layer ? cg_exchange_layers(&layer, 1, 0, &t, mem, sizeof mem, &report)
                              : cg_exchange(&layer.desc, &t, x, 50, mem, sizeof mem, &report);
            ASSERT(s.as_described);
            ASSERT_EQ_FMT(CG_E_VERSION, (int)status, "%d");
            ASSERT_EQ(1, report.rank);
            ASSERT_EQ(1, s.asked); /* nothing follows */
            for (int k = 0; k < 50; k++) ASSERT(x[k] == (float)k);
            cg_report_print(&report, text, sizeof text);
            ASSERTm(text, strstr(text, "cgx2") && strstr(text, "rank 1"));
            ASSERTm(text, i || (strstr(text, "cgx1") && strstr(text, "0.1")));
        }
    PASS();
}
GREATEST_MAIN_DEFS();
int main(int argc, char **argv) {
    GREATEST_MAIN_BEGIN();
    pthread_mutex_init(&bus.lock, NULL);
    pthread_cond_init(&bus.all_wait, NULL);
    for (int r = 0; r < RANKS; r++) pthread_cond_init(&bus.port[r].go, NULL);
    for (int i = 0; i < N; i++) variances[i] = 0.25f + (float)(i % 5);
    with_variances.aux = variances;
    RUN_TESTp(one_damaged_message_lets_nobody_wait_and_confirmed_ranks_agree, long_test() ? 12000L : 640L);
    RUN_TESTp(one_damaged_message_of_any_job, long_test() ? 12000L : 320L);
    RUN_TESTp(a_lost_message_divides_confirmed_ranks_in_the_closing_round_only, long_test() ? 6000L : 320L);
    RUN_TEST(an_allgather_callback_sends_zeros_behind_a_packet);
    RUN_TEST(confirm_costs_one_allgather_and_is_the_default_of_who_remembers_what_was_received);
    RUN_TEST(a_peer_of_0_1_is_refused_by_a_sentence_with_both_versions);
    GREATEST_MAIN_END();
}
