/* What goes wrong in an exchange: a callback that fails, a rank with bad input, a message that arrives changed. No
   rank may return CG_OK with a wrong result, or write to x, carry or warm when it does not; nobody waits for a
   packet that will not come; blame is right.

   What each message can promise (measured here, message by message): opening records   have a hash. Who gets a bad
   one stops; those who got it intact may wait for that rank (their transport's timeout). packets           have a
   checksum and a tag. Whoever gets a bad one passes that on: nobody waits. notes, lengths    a wrong length means
   a message of another size than its sender's: the transport notices, or times out. raw sums          linear and
   the values of shared are plain floats, without a checksum: a changed float is a changed result, and ranks may
   differ. Only NaN is noticed. Whoever cannot trust his network's checksums takes another route. */
#undef COMPGRAD_LINKED /* private names: a copy of its own */
#define COMPGRAD_STATIC
#define COMPGRAD_IMPLEMENTATION
#include "sim.h"
#include "greatest.h"
#define TIER_SPARED
#include "short_names.h"
#include "tier.h"

#if defined(__SANITIZE_ADDRESS__)
#  define ADDRESS_SANITIZER
#elif defined(__has_feature)
#  if __has_feature(address_sanitizer)
#    define ADDRESS_SANITIZER
#  endif
#endif
#ifdef ADDRESS_SANITIZER
#  include <sanitizer/asan_interface.h>
#endif

enum { RANKS = 5, GUARD = 128, IOS = 256, N = 333, TORN = 98, STUCK = 99 };

/* ---- one exchange, set up once and run again and again in the same memory ---- */

typedef struct plan {
    const char *op;
    uint32_t route, fold, flags;
    int carry, warm, weights, leader;
    const char *back;
    size_t n;
} plan;

enum { WAY = 1 << 16 }; /* in flags: times desc.sum */
static const plan plans[] = {
    /* op, route, fold, flags, carry, warm, weights, leader, back, n */
    { "dense", AG, 0, 0, 0, 0, 1, 0, NULL, N },
    { "topk:0.05", AG, 0, 0, 0, 0, 0, 0, NULL, N },
    { "dgc:0.1", AG, SUM, 0, 0, 0, 0, 0, NULL, N },
    { "topk:0.1|absmax:4:64", AG, 0, 0, 0, 0, 0, 0, NULL, N },
    { "topk:0.1|golomb", AG, SOME, 0, 0, 0, 0, 0, NULL, N },
    { "sign", AG, VOTE, 0, 0, 0, 0, 0, NULL, N },
    { "terngrad", AG, 0, AGREE, 0, 0, 0, 0, NULL, N },
    { "absmax:4:64", AG, 0, AGREE, 0, 0, 0, 0, NULL, N },
    { "permk:8", AG, 0, 0, 0, 0, 0, 0, NULL, N },
    { "dense", AG, 0, 0, 0, 0, 0, 0, NULL, 0 },
    { "dense", RING, 0, 0, 0, 0, 0, 0, NULL, N },
    { "topk:0.05", RING, 0, 0, 0, 0, 0, 0, NULL, N },
    { "absmax:4:64", RING, SUM, 0, 0, 0, 1, 0, NULL, N },
    { "efsign", RING, 0, 0, 1, 0, 0, 0, NULL, N },
    { "rate:1", RING, 0, 0, 1, 0, 0, 0, NULL, N },
    { "terngrad", RING, 0, AGREE, 0, 0, 0, 0, NULL, 64 },
    { "absmax:4:64", RING, 0, AGREE, 0, 0, 0, 0, NULL, N },
    { "dense|huffman", RING, 0, 0, 0, 0, 0, 0, NULL, 70 },
    { "dense", TREE, SUM, 0, 0, 0, 0, 0, NULL, N },
    { "dgc:0.1", TREE, 0, 0, 0, 0, 0, 0, NULL, N },
    { "efsign", TREE, 0, 0, 1, 0, 1, 0, NULL, N },
    { "terngrad", TREE, 0, AGREE, 0, 0, 0, 0, NULL, N },
    { "absmax:4:64", TREE, 0, AGREE, 0, 0, 0, 0, NULL, N },
    { "dense", SCATTER, 0, 0, 0, 0, 1, 0, NULL, N },
    { "topk:0.05|golomb", SCATTER, 0, 0, 0, 0, 0, 0, NULL, N },
    { "efsign", SCATTER, 0, 0, 1, 0, 0, 0, NULL, N },
    { "absmax:4:64", SCATTER, 0, AGREE, 0, 0, 0, 0, NULL, N },
    { "absmax:8:64", SCATTER, 0, 0, 0, 0, 0, 0, "absmax:4:64", N },
    { "topk:0.1", SCATTER, 0, 0, 1, 0, 0, 0, "topk:0.2", N },
    { "rate:2:unbiased", SCATTER, 0, 0, 0, 0, 0, 0, NULL, N },
    { "sign", SCATTER, VOTE, 0, 0, 0, 0, 0, NULL, 100 },
    { "topk:0.05", SERVER, 0, 0, 0, 0, 0, SCORE, NULL, N },
    { "efsign", SERVER, 0, 0, 1, 0, 0, 2, "efsign", N },
    { "absmax:4:64", SERVER, SUM, AGREE, 0, 0, 0, 0, NULL, N },
    { "terngrad", SERVER, 0, AGREE, 0, 0, 0, 1, NULL, N },
    { "dense|huffman", SERVER, 0, 0, 0, 0, 0, 0, "absmax:8:64", N },
    { "sign", SERVER, VOTE, 0, 0, 0, 0, 0, NULL, N },
    { "topk:0.05", MERGE, 0, 0, 0, 0, 0, 0, NULL, N },
    { "dgc:0.1", MERGE, SUM, 0, 0, 0, 0, 0, NULL, N },
    { "topk:0.05", SHARED, 0, 0, 0, 0, 0, 0, NULL, N },
    { "dgc:0.1", SHARED, SUM, 0, 0, 0, 1, SCORE, NULL, N },
    { "topk:0.05", REGION, 0, 0, 0, 0, 0, 0, NULL, N },
    { "sidco:0.1", REGION, SUM, 0, 0, 0, 0, 0, NULL, N },
    { "dense", LINEAR, 0, 0, 0, 0, 1, 0, NULL, N },
    { "randk:0.2", LINEAR, SUM, 0, 0, 0, 0, 0, NULL, N },
    { "rotate:2", LINEAR, 0, 0, 0, 0, 0, 0, NULL, N },
    { "lowrank:2:9:37", LINEAR, 0, 0, 0, 1, 0, 0, NULL, N },
    { "lowrank:2:9:37", LINEAR, SUM, 0, 0, 0, 0, 0, NULL, N },
    { "dense", LINEAR, 0, CG_SUM_RING *WAY, 0, 0, 0, 0, NULL, N },
    { "dense", LINEAR, SUM, CG_SUM_HALVING *WAY, 0, 0, 0, 0, NULL, N },
    { "topk:0.05", SHARED, 0, CG_SUM_HALVING *WAY, 0, 0, 0, 0, NULL, N },
    { "lowrank:2:9:37", LINEAR, 0, CG_SUM_HALVING *WAY, 0, 0, 1, 0, NULL, N },
    { "absmax:8:64", AG, CG_FOLD_MEDIAN, 0, 0, 0, 0, 0, NULL, N },
    { "dense", SERVER, CG_FOLD_MEDIAN, 0, 0, 0, 0, 0, NULL, N },
    { "absmax:4:64", SERVER, CG_FOLD_CLIPPED, 0, 1, 0, 0, 0, "efsign", N },
};
enum { PLANS = sizeof plans / sizeof *plans };
static const int sizes[] = { 2, 3, 5 },
                 masks[] = { SIM_SENDRECV, SIM_ALL, SIM_ALLGATHER, SIM_BROADCAST, SIM_ALLREDUCE };
static const char *const route_names[] = { "auto", "allgather", "ring", "tree", "scatter", "server", "merge", "shared",
    "region", "linear" };
static int quick;

/* what a message has in it */
typedef enum carries { OPENING, SCALES, NOTE, LENGTHS, TALLIES, SUMS, PACKETS } carries;
typedef struct trace {
    carries what;
    uint32_t kind;
    int peer, first_leg, by_sum;
} trace;

typedef struct bed {
    const plan *p;
    sim s;
    int size, mask, torn, outside;
    float *x[RANKS], *carry[RANKS], *warm[RANKS]; /* between guards */
    float x0[RANKS][N + 1], want[N + 1], carry0[RANKS][N + 1], want_carry[RANKS][N + 1], warm0[RANKS][N + 1],
        want_warm[RANKS][N + 1];
    unsigned char *block[RANKS], *mem[RANKS];
    size_t bytes[RANKS], room[RANKS], n, warm_n;
    cg_exchange_desc desc[RANKS];
    cg_op back;
    int late_rank, late_io, late_code; /* the message moves, and then the callback fails */
    trace seen[RANKS][IOS];
    int ios[RANKS];
    /* how to hurt; whose bytes those were; whether any was changed */
    int damage, blame, hit;
} bed;
static bed b;
static char note[400];
static uint64_t dice = 1;

static uint32_t below(uint32_t n) {
    dice = dice * 6364136223846793005u + 1442695040888963407u;
    return n ? (uint32_t)(dice >> 33) % n : 0;
}
static int complain(const char *what, int rank) {
    const sim_rank *k = &b.s.rank[rank < 0 ? 0 : rank];
    snprintf(note, sizeof note,
        "%s: %s %s, %d ranks, callbacks %d, rank %d: status %d, code %d, blames %d, \"%s\"; fail %d@%d late %d@%d hurt "
        "%d@%d damage %d, stuck %d, torn %d",
        what, b.p->op, route_names[b.p->route], b.size, b.mask, rank, (int)k->status, k->report.code, k->report.rank,
        k->report.why ? k->report.why : "(null)", b.s.fail_rank, b.s.fail_io, b.late_rank, b.late_io, b.s.hurt_rank,
        b.s.hurt_io, b.damage, b.s.stuck, b.torn);
    return 0;
}
#define EXPECT(cond, rank)                                                      \
  do {                                                                          \
    if (!(cond)) return complain("line " LINE_TEXT(__LINE__) ": " #cond, rank); \
  } while (0)
#define LINE_TEXT(line) LINE_TEXT_(line)
#define LINE_TEXT_(line) #line

/* Floats between canaries. */
static const float canary = -12345.625f;
static float *fenced(size_t n) {
    float *p = (float *)malloc((n + 2 * GUARD) * sizeof *p);
    if (!p) exit(2);
    for (size_t i = 0; i < GUARD; i++) p[i] = p[GUARD + n + i] = canary;
    return p + GUARD;
}
static int fence_holds(const float *p, size_t n) {
    for (size_t i = 0; i < GUARD; i++)
        if (memcmp(&p[(ptrdiff_t)i - GUARD], &canary, 4) || memcmp(&p[n + i], &canary, 4)) return 0;
    return 1;
}
static float noise(void) {
    const float u = (float)below(1 << 20) / (float)(1 << 20) - 0.5f;
    return 20.0f * u * u * u + 0.01f * u;
}
static void bed_desc(int r) {
    cg_exchange_desc d = CG_ZERO;
    const plan *p = b.p;
    if (cg_op_parse(&d.op, p->op) != CG_OK) {
        printf("does not parse: %s\n", p->op);
        exit(2);
    }
    if (p->back && cg_op_parse(&b.back, p->back) != CG_OK) {
        printf("does not parse: %s\n", p->back);
        exit(2);
    }
    if (p->back) d.back = &b.back;
    d.route = p->route;
    d.fold = p->fold;
    d.flags = p->flags & 0xffff;
    d.sum = b.mask & SIM_SENDRECV ? p->flags >> 16 : 0;
    d.leader = p->leader;
    d.tag.seed = 11;
    d.tag.step = 4;
    d.tag.tensor = 2;
    d.weight = p->weights ? 1.0f + (float)r / 2.0f : 0.0f;
    d.score = (float)(r % 2);
    if (p->carry) d.carry = b.carry[r];
    if (p->warm) d.warm = b.warm[r];
    b.desc[r] = d;
}
static void bed_close(void) {
    for (int r = 0; r < RANKS; r++) {
#ifdef ADDRESS_SANITIZER
        if (b.block[r]) ASAN_UNPOISON_MEMORY_REGION(b.block[r], b.room[r]);
#endif
        free(b.block[r]);
        free(b.x[r] ? b.x[r] - GUARD : NULL);
        free(b.carry[r] ? b.carry[r] - GUARD : NULL);
        free(b.warm[r] ? b.warm[r] - GUARD : NULL);
    }
    memset(&b, 0, sizeof b);
}
/* The fewest bytes at mem that are enough: nothing may be written behind them. */
static size_t fewest(int r, const cg_transport *t, unsigned char *mem, size_t enough) {
    static cg_exchange_state e;
    size_t low = 0;
    while (low < enough) {
        const size_t middle = low + (enough - low) / 2;
        const cg_status s = cg_exchange_start(&e, &b.desc[r], t, b.x[r], b.n, mem, middle);
        if (s == CG_E_MEMORY || e.status == CG_E_MEMORY) low = middle + 1;
        else enough = middle;
    }
    return enough;
}
/* Memory of any alignment, and guards around. */
static void bed_memory(int r) {
    const cg_transport t = sim_transport(r, b.size, b.mask, 0);
    unsigned char *p;
    size_t skip;
    b.bytes[r] = cg_exchange_memory(&b.desc[r], &t, b.n);
    memcpy(b.x[r], b.x0[r], b.n * 4);
    b.block[r] = p = (unsigned char *)malloc(b.bytes[r] + 64 + GUARD);
    if (!p) exit(2);
    memset(p, 0xa5, b.bytes[r] + 64 + GUARD);
    skip = (65 - ((uintptr_t)p & 63)) % 64;
    b.mem[r] = p + skip;
    b.room[r] = b.bytes[r] + 64 + GUARD;
    b.bytes[r] = fewest(r, &t, b.mem[r], b.bytes[r]);
    memset(b.mem[r], 0xa5, b.room[r] - skip);
#ifdef ADDRESS_SANITIZER
    ASAN_POISON_MEMORY_REGION(p, skip);
    ASAN_POISON_MEMORY_REGION(b.mem[r] + b.bytes[r], b.room[r] - skip - b.bytes[r]);
#endif
}
static int memory_fenced(int r) {
#ifndef ADDRESS_SANITIZER
    for (const unsigned char *p = b.block[r]; p < b.mem[r]; p++)
        if (*p != 0xa5) return 0;
    for (const unsigned char *p = b.mem[r] + b.bytes[r]; p < b.block[r] + b.room[r]; p++)
        if (*p != 0xa5) return 0;
#endif
    return fence_holds(b.x[r], b.n) && fence_holds(b.carry[r], b.n) && fence_holds(b.warm[r], b.warm_n);
}
/* Input as it was, no fault. */
static void bed_reset(void) {
    float *x[SIM_MOST] = { NULL };
    for (int r = 0; r < b.size; r++) {
        bed_desc(r);
        x[r] = b.x[r];
        memcpy(b.x[r], b.x0[r], b.n * 4);
        memcpy(b.carry[r], b.carry0[r], b.n * 4);
        memcpy(b.warm[r], b.warm0[r], b.warm_n * 4);
    }
    sim_open(&b.s, b.size, b.mask, 0, &b.desc[0], x, b.n);
    for (int r = 0; r < b.size; r++) {
        b.s.rank[r].desc = b.desc[r];
        b.s.rank[r].mem = b.mem[r];
        b.s.rank[r].bytes = b.bytes[r];
    }
    b.late_io = -1;
    b.torn = b.outside = 0;
}

/* ---- the simulator's loop, for messages that may be changed ---- */

static carries carried(const cg_exchange_state *x) {
    if (x->co.phase == 1) return x->collective.buf == x->opening.gathered ? OPENING : SCALES;
    if (x->collective.kind == CG_COLL_ALLREDUCE_ ||
        (x->collective.kind == CG_COLL_BROADCAST_ && x->collective.swap_back))
        return SUMS;
    if (x->collective.buf == x->note.in || x->collective.buf == x->note.receipt_in ||
        x->collective.mine == x->note.out || x->collective.mine == x->note.receipt_out)
        return NOTE;
    if (x->collective.buf == x->note.all) return LENGTHS;
    if (x->plan.route == CG_ROUTE_REGION && x->collective.kind == CG_COLL_ALLGATHER_ &&
        x->collective.mine == x->reduced.packet && x->co.i >= 0)
        return TALLIES;
    return PACKETS;
}
/* A callback may only be handed bytes of mem, or of the state. */
static int inside(const sim_rank *k, const void *bytes, size_t len) {
    const unsigned char *p = (const unsigned char *)bytes, *mem = (const unsigned char *)k->mem,
                        *state = (const unsigned char *)&k->state;
    if (!len) return 1;
    if (k->state.plan.direct && (const float *)(const void *)p >= k->x &&
        (const float *)(const void *)p <= k->x + k->n) /* dense and linear: x itself is summed */
        return len <= 4 * (size_t)(k->x + k->n - (const float *)(const void *)p);
    if (mem && p >= mem && p <= mem + k->bytes) return len <= (size_t)(mem + k->bytes - p);
    return p >= state && p < state + sizeof k->state && len <= (size_t)(state + sizeof k->state - p);
}
static void look(int r) {
    const sim_rank *k = &b.s.rank[r];
    trace *t = k->ios <= IOS ? &b.seen[r][k->ios - 1] : NULL;
    if (!t) {
        printf("more than %d messages\n", IOS);
        exit(2);
    }
    t->what = carried(&k->state);
    t->kind = k->io.kind;
    t->peer = k->io.kind == CG_IO_SENDRECV || k->io.kind == CG_IO_BROADCAST ? (k->io.from >= 0 ? k->io.from : k->io.to)
                                                                            : -1;
    if (t->peer == r) t->peer = -1; /* the root of a broadcast: somebody else */
    t->first_leg = k->state.plan.route == CG_ROUTE_ALLGATHER;
    if (t->what == PACKETS && (k->state.plan.route == CG_ROUTE_SERVER || k->state.plan.route == CG_ROUTE_SCATTER))
        t->first_leg = k->state.collective.kind != CG_COLL_BROADCAST_ &&
            k->state.collective.buf != k->state.mem.stripes;
    b.outside |= !inside(k, k->io.in, k->io.from < 0 && k->io.kind == CG_IO_SENDRECV ? 0 : k->io.in_bytes);
    b.outside |= !inside(k, k->io.out, k->io.to < 0 && k->io.kind == CG_IO_SENDRECV ? 0 : k->io.out_bytes);
    t->by_sum = k->io.kind == CG_IO_ALLREDUCE && t->what != SUMS;
}
/* Two sides that disagree about a size: both callbacks fail. */
static int tear(void) {
    sim *s = &b.s;
    const cg_io *first = &s->rank[0].io;
    int before = b.torn, all = 1, differ = 0;
    for (int a = 0; a < s->size; a++) {
        sim_rank *k = &s->rank[a], *to;
        all &= k->waiting && k->io.kind != CG_IO_SENDRECV;
        differ |= k->io.kind != first->kind || k->io.in_bytes != first->in_bytes ||
            k->io.out_bytes != first->out_bytes || k->io.from != first->from;
        if (!k->waiting || k->io.kind != CG_IO_SENDRECV || k->sent) continue;
        to = &s->rank[k->io.to];
        if (!to->waiting || to->io.kind != CG_IO_SENDRECV || to->received || to->io.from != a ||
            k->io.out_bytes == to->io.in_bytes)
            continue;
        k->code = to->code = TORN;
        k->waiting = to->waiting = 0;
        b.torn += 2;
    }
    for (int r = 0; all && differ && r < s->size; r++) {
        s->rank[r].code = TORN;
        s->rank[r].waiting = 0;
        b.torn++;
    }
    return b.torn != before;
}
static void late(int r) {
    if (b.late_io >= 0 && b.late_rank == r && b.late_io == b.s.rank[r].ios - 1) b.s.rank[r].code = b.late_code;
}
static int round_of(void) {
    sim *s = &b.s;
    int moved = 0, together;
    for (int r = 0; r < s->size; r++) {
        if (s->rank[r].done || s->rank[r].waiting) continue;
        sim_step(s, r);
        if (!s->rank[r].done) look(r);
        moved = 1;
    }
    moved |= tear();
    for (int r = 0; r < s->size; r++) moved |= sim_match(s, r);
    for (int r = 0; r < s->size; r++) {
        sim_rank *k = &s->rank[r];
        if (!k->waiting || k->io.kind != CG_IO_SENDRECV || !k->sent || !k->received) continue;
        k->waiting = 0;
        late(r);
        moved = 1;
    }
    together = sim_collective(s);
    for (int r = 0; together && r < s->size; r++) late(r);
    return moved | together;
}
static void run(void) {
    sim *s = &b.s;
    for (int r = 0; r < s->size; r++) {
        sim_rank *k = &s->rank[r];
        const cg_status status = cg_exchange_start(&k->state, &k->desc, &k->transport, k->x, k->n, k->mem, k->bytes);
        if (status != CG_OK) sim_finish(k, status);
    }
    while (round_of()) continue;
    for (int r = 0; r < s->size; r++) {
        if (s->rank[r].done) continue;
        s->stuck++;
        sim_finish(&s->rank[r], cg_exchange_next(&s->rank[r].state, STUCK, &s->rank[r].io));
    }
}

/* Sets up, and remembers the undisturbed result. 0: this combination is refused. */
static int bed_open(const plan *p, int size, int mask) {
    bed_close();
    dice = 77;
    b.p = p;
    b.size = size;
    b.mask = mask;
    b.n = p->n;
    b.warm_n = 74;
    for (int r = 0; r < size; r++) {
        b.x[r] = fenced(b.n);
        b.carry[r] = fenced(b.n);
        b.warm[r] = fenced(b.warm_n);
        for (size_t i = 0; i < b.n; i++) {
            b.x0[r][i] = noise();
            b.carry0[r][i] = p->carry ? noise() / 8 : 0.0f;
        }
        for (size_t i = 0; i < b.warm_n; i++) b.warm0[r][i] = (float)(i % 7) - 2.5f; /* the same on all ranks */
        bed_desc(r);
        bed_memory(r);
    }
    bed_reset();
    run();
    for (int r = 0; r < size; r++) {
        b.ios[r] = b.s.rank[r].ios;
        if (b.s.rank[r].status != CG_OK) return 0;
        memcpy(b.want_carry[r], b.carry[r], b.n * 4);
        memcpy(b.want_warm[r], b.warm[r], b.warm_n * 4);
    }
    memcpy(b.want, b.x[0], b.n * 4);
    return 1;
}
static int untouched(int r) {
    return !memcmp(b.x[r], b.x0[r], b.n * 4) && !memcmp(b.carry[r], b.carry0[r], b.n * 4) &&
        !memcmp(b.warm[r], b.warm0[r], b.warm_n * 4);
}
static int as_wanted(int r) {
    return !memcmp(b.x[r], b.want, b.n * 4) && !memcmp(b.carry[r], b.want_carry[r], b.n * 4) &&
        !memcmp(b.warm[r], b.want_warm[r], b.warm_n * 4);
}
/* What holds after any exchange. raw: sums of floats were changed, so nothing is known of a result but that it is
   finite. */
static int sound(int raw) {
    EXPECT(!b.outside, -1);
    for (int r = 0; r < b.size; r++) {
        const sim_rank *k = &b.s.rank[r];
        EXPECT(k->done && k->status != CG_AGAIN && k->status != CG_E_STATE, r);
        EXPECT(memory_fenced(r), r);
        EXPECT(k->report.why && strlen(k->report.why) > 1 && k->report.rank >= -1 && k->report.rank < b.size, r);
        EXPECT((k->report.code != 0) == (k->status == CG_E_TRANSPORT), r);
        EXPECT((k->report.used != NULL) == (k->status == CG_OK), r);
        if (k->status != CG_OK) EXPECT(untouched(r) && k->report.used_len == 0, r);
        else if (!raw) EXPECT(as_wanted(r) && k->report.rank == -1, r);
        for (size_t i = 0; raw && i < b.n; i++) EXPECT(b.x[r][i] - b.x[r][i] == 0.0f, r);
    }
    return 1;
}
/* Good input again, same memory. */
static int recovers(void) {
    bed_reset();
    b.damage = -1;
    run();
    for (int r = 0; r < b.size; r++) EXPECT(b.s.rank[r].status == CG_OK && !b.s.stuck && !b.torn, r);
    return sound(0);
}
#define EACH_BED(p, code)                                                     \
  do {                                                                        \
    for (size_t size_ = 0; size_ < sizeof sizes / sizeof *sizes; size_++)     \
      for (size_t mask_ = 0; mask_ < sizeof masks / sizeof *masks; mask_++) { \
        if (quick && (size_ + mask_) % 2) continue;                           \
        if (!bed_open(p, sizes[size_], masks[mask_])) continue;               \
        tried++;                                                              \
        code;                                                                 \
      }                                                                       \
    bed_close();                                                              \
  } while (0)

/* The simulator's own loop, and memory that it allocates, give the same. */
TEST undisturbed(const plan *p) {
    int tried = 0;
    EACH_BED(p, {
        bed_reset();
        for (int r = 0; r < b.size; r++) b.s.rank[r].mem = NULL;
        sim_run(&b.s);
        for (int r = 0; r < b.size; r++)
            if (b.s.stuck || b.s.rank[r].status != CG_OK || !as_wanted(r)) {
                complain("undisturbed", r);
                FAILm(note);
            }
        sim_close(&b.s);
    });
    ASSERT(tried > 0);
    PASS();
}

/* ---- every callback of every rank fails once ---- */

static int callback_fails(int r, int io, int after) {
    const int code = 1000 + 7 * io;
    const trace *t = &b.seen[r][io];
    bed_reset();
    if (after) {
        b.late_rank = r;
        b.late_io = io;
        b.late_code = code;
    } else {
        b.s.fail_rank = r;
        b.s.fail_io = io;
        b.s.fail_code = code;
    }
    run();
    EXPECT(b.s.rank[r].status == CG_E_TRANSPORT && b.s.rank[r].report.code == code, r);
    EXPECT(b.s.rank[r].report.rank == t->peer && b.s.rank[r].report.rounds == (uint32_t)io && !b.torn, r);
    for (int q = 0; q < b.size; q++) { /* the others were done, or wait for ever */
        const sim_rank *k = &b.s.rank[q];
        EXPECT(q == r || k->status == CG_OK || (k->status == CG_E_TRANSPORT && k->report.code == STUCK), q);
    }
    return sound(0);
}
TEST failing_callbacks(const plan *p) {
    static unsigned turn;
    int tried = 0;
    EACH_BED(p, {
        for (int r = 0; r < b.size; r++)
            for (int io = 0; io < b.ios[r]; io++)
                for (int after = 0; after < 2; after++)
                    if (!spared(&turn, 3) && !callback_fails(r, io, after)) FAILm(note);
        if (!recovers()) FAILm(note);
    });
    ASSERT(tried > 0);
    PASS();
}

/* ---- a rank with bad input, or with another idea of the exchange ---- */

typedef enum guilt {
    NAN_X,
    INF_X,
    BAD_OP,
    BAD_ROUTE,
    BAD_FOLD,
    BAD_FLAG,
    BAD_LEADER,
    BAD_WEIGHT,
    BAD_SCORE,
    NO_X,
    NO_MEM,
    LITTLE_MEM,
    NO_CARRY,
    OTHER_N,
    OTHER_STEP,
    OTHER_SEED,
    OTHER_TENSOR,
    OTHER_OP,
    OTHER_ROUTE,
    OTHER_FOLD,
    OTHER_LEADER,
    OTHER_BACK,
    OTHER_FLAG,
    WEIGHT_OR_NOT,
    GUILTS
} guilt;
/* CG_OK: a mismatch, or that rank cannot do it at all */
static const struct {
    cg_status status;
    const char *why;
} verdicts[GUILTS] = { { CG_E_NONFINITE, "" }, { CG_E_NONFINITE, "" }, { CG_E_ARG, "operator" }, { CG_E_ARG, "route" },
    { CG_E_ARG, "fold" }, { CG_E_ARG, "flag" }, { CG_E_ARG, "leader" }, { CG_E_ARG, "weight" }, { CG_E_ARG, "score" },
    { CG_E_ARG, "x is NULL" }, { CG_E_MEMORY, "mem" }, { CG_E_MEMORY, "mem" }, { CG_E_UNSUPPORTED, "carry" },
    { CG_OK, " n" }, { CG_E_MISMATCH, "step" }, { CG_E_MISMATCH, "seed" }, { CG_E_MISMATCH, "tensor" },
    { CG_OK, "operator" }, { CG_OK, "route" }, { CG_OK, "fold" }, { CG_E_MISMATCH, "leader" }, { CG_OK, "operator" },
    { CG_OK, "flag" }, { CG_OK, "weights" } };
static cg_op other_back;
static float forbidden(void) {
    const uint32_t u = 0x7fc00000u;
    float v;
    memcpy(&v, &u, 4);
    return v;
}
/* 0: means nothing here. */
static int commit(guilt g, sim_rank *k) {
    cg_exchange_desc *d = &k->desc;
    const uint32_t inf = 0xff800000u;
    switch (g) {
    case NAN_X:
        if (!k->n) return 0;
        k->x[below((uint32_t)k->n)] = forbidden();
        break;
    case INF_X:
        if (!k->n) return 0;
        memcpy(&k->x[below((uint32_t)k->n)], &inf, 4);
        break;
    case BAD_OP: d->op.quantize.id = 99; break;
    case BAD_ROUTE: d->route = CG_ROUTE_LINEAR + 1 + below(1000); break;
    case BAD_FOLD: d->fold = CG_FOLD_CLIPPED + 1; break;
    case BAD_FLAG: d->flags |= 0x80000000u; break;
    case BAD_LEADER: d->leader = below(2) ? b.size + 1 : -2; break;
    case BAD_WEIGHT: d->weight = below(2) ? -1.0f : forbidden(); break;
    case BAD_SCORE: d->score = forbidden(); break;
    case NO_X:
        if (!k->n) return 0;
        k->x = NULL;
        break;
    case NO_MEM: k->mem = NULL; break;
    case LITTLE_MEM: k->bytes = below(3) ? below((uint32_t)k->bytes) : k->bytes - 1; break;
    case NO_CARRY:
        if (!cg_exchange_carry(d, &k->transport, k->n) || !d->carry) return 0;
        d->carry = NULL;
        break;
    case OTHER_N:
        if (!k->n) return 0;
        k->n--;
        break;
    case OTHER_STEP: d->tag.step++; break;
    case OTHER_SEED: d->tag.seed ^= (uint64_t)1 << 63; break;
    case OTHER_TENSOR: d->tag.tensor = 77; break;
    case OTHER_OP:
        if (cg_op_parse(&d->op, b.p->n % 2 ? "topk:0.051" : "f16") != CG_OK) exit(2);
        break;
    case OTHER_ROUTE: d->route = d->route == CG_ROUTE_ALLGATHER ? CG_ROUTE_SERVER : CG_ROUTE_ALLGATHER; break;
    case OTHER_FOLD: d->fold = d->fold == CG_FOLD_SUM ? CG_FOLD_MEAN : CG_FOLD_SUM; break;
    case OTHER_LEADER: d->leader = d->leader > 1 ? 1 : 2; break;
    case OTHER_BACK:
        if (!d->back) return 0;
        other_back = cg_absmax(5, 64);
        d->back = &other_back;
        break;
    case OTHER_FLAG: d->flags ^= CG_AGREE_SCALES; break;
    default: d->weight = d->weight != 0.0f ? 0.0f : 2.0f;
    }
    return 1;
}
/* what x has elsewhere is nobody's business */
static int samples(const plan *p) { return !strncmp(p->op, "randk", 5) || !strncmp(p->op, "permk", 5); }
static int commits(guilt g, int guilty) {
    static float given[N + 1];
    static double plenty[1 << 17];
    sim_rank *k = &b.s.rank[guilty];
    bed_reset();
    b.damage = (int)g;
    if (((g == NAN_X || g == INF_X) && samples(b.p)) || !commit(g, k)) return 1;
    memcpy(given, b.x[guilty], b.n * 4);
    if (g >= OTHER_N) {
        k->mem = plenty;
        k->bytes = sizeof plenty;
    } /* what that takes */
    run();
    EXPECT(b.s.stuck == 0 && b.torn == 0, guilty);
    if (verdicts[g].status != CG_OK) EXPECT(k->status == verdicts[g].status, guilty);
    else EXPECT(k->status == CG_E_MISMATCH || k->status == CG_E_UNSUPPORTED || k->status == CG_E_ARG, guilty);
    if (verdicts[g].status != CG_OK || k->status == CG_E_MISMATCH)
        EXPECT(strstr(k->report.why, verdicts[g].why) != NULL, guilty);
    EXPECT(k->status == CG_E_MISMATCH ? k->report.rank == (guilty == 0) : k->report.rank == guilty, guilty);
    for (int r = 0; r < b.size; r++) {
        const sim_rank *q = &b.s.rank[r];
        if (r == guilty) continue;
        EXPECT(q->status == (k->status == CG_E_MISMATCH ? CG_E_MISMATCH : CG_E_PEER), r);
        EXPECT(q->report.rank == guilty && untouched(r), r);
        EXPECT(
            strstr(q->report.why, k->status == CG_E_MISMATCH ? verdicts[g].why : cg_status_str(k->status)) != NULL, r);
    }
    EXPECT(!memcmp(b.x[guilty], given, b.n * 4) && memory_fenced(guilty), guilty);
    return recovers();
}
TEST failing_ranks(const plan *p) {
    static unsigned turn;
    int tried = 0;
    EACH_BED(p, {
        for (int r = 0; r < b.size; r++)
            for (int g = 0; g < GUILTS; g++)
                if (!spared(&turn, 5) && !commits((guilt)g, r)) FAILm(note);
    });
    ASSERT(tried > 0);
    PASS();
}
/* Several at once: every rank names one that is guilty, and those that have failed themselves their own error. */
TEST failing_together(const plan *p) {
    int tried = 0;
    EACH_BED(p, {
        bed_reset();
        b.s.rank[b.size - 1].desc.score = forbidden();
        b.s.rank[0].mem = NULL;
        run();
        for (int r = 0; r < b.size; r++) {
            const sim_rank *k = &b.s.rank[r];
            const int wrong = k->status !=
                    (r == 0                   ? CG_E_MEMORY
                            : r == b.size - 1 ? CG_E_ARG
                                              : CG_E_PEER) ||
                k->report.rank != (r == b.size - 1 ? r : 0);
            if (wrong || b.s.stuck || !untouched(r)) {
                complain("two failed", r);
                FAILm(note);
            }
        }
        if (!recovers()) FAILm(note);
    });
    ASSERT(tried > 0);
    PASS();
}
/* A sampling operator sees NaN only where it looks. */
static int not_finite_at(int guilty, size_t i, int drawn) {
    bed_reset();
    b.x[guilty][i] = forbidden();
    run();
    for (int r = 0; r < b.size; r++) {
        const sim_rank *k = &b.s.rank[r];
        EXPECT(k->status == (!drawn ? CG_OK : r == guilty ? CG_E_NONFINITE : CG_E_PEER) && !b.s.stuck, r);
        EXPECT(drawn || !memcmp(b.x[r], b.want, b.n * 4), r);
    }
    return 1;
}
TEST unseen_values(const plan *p) {
    static unsigned char packet[4 * N + 1024], scratch[1 << 16];
    int tried = 0;
    EACH_BED(p, {
        for (int r = 0; r < b.size; r++) {
            static float ones[N];
            cg_tag tag = b.desc[r].tag;
            size_t len;
            int count[2] = { 0 }; /* not drawn, drawn */
            tag.rank = (uint32_t)r;
            for (size_t i = 0; i < b.n; i++) ones[i] = 1.0f;
            ASSERT_EQ(CG_OK,
                cg_compress(&b.desc[r].op, &tag, ones, b.n, packet, sizeof packet, &len, scratch, sizeof scratch));
            ASSERT_EQ(CG_OK, cg_clear(packet, len, ones, b.n));
            for (size_t i = 0; i < b.n && (count[0] < 3 || count[1] < 3); i++) {
                const int drawn = ones[i] < 0.5f;
                if (count[drawn]++ < 3 && !not_finite_at(r, i, drawn)) FAILm(note);
            }
            ASSERT(count[0] >= 3 && count[1] >= 3);
        }
    });
    ASSERT(tried > 0);
    PASS();
}
/* What cannot be added up without Inf is an error for all, or saturates for all. */
TEST huge_values(const plan *p) {
    int tried = 0;
    EACH_BED(p, {
        for (int same = 0; same < 2; same++) {
            bed_reset();
            for (int r = 0; r < b.size; r++)
                for (size_t i = 0; i < b.n; i++) b.x[r][i] = i % 3 && !same && r % 2 ? -3.4e38f : 3.4e38f;
            for (int r = 0; r < b.size; r++) memcpy(b.x0[r], b.x[r], b.n * 4);
            run();
            for (int r = 0; r < b.size; r++) {
                const cg_status status = b.s.rank[r].status;
                if (b.s.stuck || b.torn || (status == CG_OK) != (b.s.rank[0].status == CG_OK)) {
                    complain("huge values", b.s.rank[0].status == CG_OK ? r : 0);
                    FAILm(note);
                }
                if (status == CG_OK ? memcmp(b.x[r], b.x[0], b.n * 4) != 0 : !untouched(r)) {
                    complain("huge values: results", r);
                    FAILm(note);
                }
            }
        }
    });
    ASSERT(tried > 0);
    PASS();
}

/* ---- messages that arrive changed ---- */

typedef enum damage {
    FLIP,
    FLIP_EARLY,
    ZERO_RUN,
    RANDOM,
    TRUNCATED,
    POISON,
    ONES,
    ABSURD, /* of anything */
    /* intact packets, but not of this exchange */
    NEXT_STEP,
    NEXT_SEED,
    NEXT_TENSOR,
    NEXT_N,
    NEXT_RANK,
    NEXT_OP,
    /* records with a right hash */
    RECORD_STATUS,
    RECORD_LENGTH,
    RECORD_WEIGHT,
    RECORD_SCORE,
    RECORD_SCALE,
    RECORD_N,
    RECORD_TAG,
    DAMAGES
} damage;

/* Whose bytes are at p? -1: of several, or of no interest to this rank. */
static int owner(const sim_rank *k, const unsigned char *p, const unsigned char *end) {
    const cg_exchange_state *x = &k->state;
    if (k->io.kind == CG_IO_ALLREDUCE) return -1;
    if (k->io.kind == CG_IO_SENDRECV && x->collective.kind == CG_COLL_SENDRECV_) return k->io.from;
    if (x->collective.kind == CG_COLL_BROADCAST_ && k->io.kind != CG_IO_ALLGATHER) return x->collective.root;
    if (x->collective.kind == CG_COLL_BROADCAST_)
        return (size_t)(p - (const unsigned char *)k->io.in) / k->io.out_bytes == (size_t)x->collective.root
            ? x->collective.root
            : -1;
    if (x->collective.kind != CG_COLL_ALLGATHER_ || x->collective.via == CG_VIA_ALLREDUCE_ ||
        (x->co.phase == 2 && x->plan.route == CG_ROUTE_SERVER && x->plan.root != x->transport.rank))
        return -1;
    for (int q = 0; q < b.size; q++)
        if (q != x->transport.rank && p >= cg_gathered_(x, (size_t)q) &&
            end <= cg_gathered_(x, (size_t)q) + x->collective.sizes[q])
            return q;
    return -1;
}
static size_t reseal(unsigned char *p, size_t len, damage how) {
    cg_info info;
    cg_plan_ stages;
    if (cg_header_get_(p, len, &info, &stages) != CG_OK) return 0;
    if (how == NEXT_STEP) info.tag.step--;
    if (how == NEXT_SEED) info.tag.seed++;
    if (how == NEXT_TENSOR) info.tag.tensor++;
    if (how == NEXT_N) info.n++;
    if (how == NEXT_RANK) info.tag.rank++;
    if (how == NEXT_OP) info.op.code.size ^= 1;
    if (how == NEXT_OP && info.op.quantize.id == CG_QUANTIZE_ABSMAX) {
        info.op.code.size ^= 1;
        info.op.quantize.flags ^= CG_FLAG_NEAREST;
    }
    cg_packet_finalize_(cg_kernels_now_(), &info, p,
        cg_checksum_of_(cg_kernels_now_(), p + CG_HEADER_BYTES, info.packet_bytes - CG_HEADER_BYTES));
    return info.packet_bytes;
}
static void rehash(unsigned char *r, damage how) {
    static const uint32_t bad_weights[] = { 0x00000000u, 0xbf800000u, 0x7f800000u, 0x7fc00000u },
                          bad_scales[] = { 0x7f800000u, 0x7fc00000u };
    if (how == RECORD_STATUS) cg_put32_(r + 4, 1 + below(400));
    if (how == RECORD_LENGTH) cg_put64_(r + 32, (uint64_t)1 << (30 + below(34)));
    if (how == RECORD_WEIGHT) cg_put32_(r + 40, bad_weights[below(4)]);
    if (how == RECORD_SCORE) cg_put32_(r + 44, bad_scales[below(2)]);
    if (how == RECORD_SCALE) cg_put32_(r + 48, bad_scales[below(2)]);
    if (how == RECORD_N) cg_put64_(r + 8, cg_get64_(r + 8) + 1);
    if (how == RECORD_TAG) cg_put64_(r + 24, cg_get64_(r + 24) ^ 1);
    cg_put64_(r + 56, cg_hash_bytes_(r, 56));
}
static void hurt(void *user, void *bytes, size_t len, int from) {
    const sim_rank *k = &b.s.rank[b.s.hurt_rank];
    unsigned char *p = (unsigned char *)bytes, *at = p, copy[64];
    const damage how = (damage)b.damage;
    size_t run = len;
    (void)user;
    b.blame = -1;
    b.hit = 0;
    if (!len || (k->io.kind == CG_IO_BROADCAST && from == b.s.hurt_rank)) return; /* nothing came */
    if (k->io.kind == CG_IO_ALLGATHER) {                                          /* one rank's, and not mine */
        run = k->io.out_bytes;
        at = p + run * ((size_t)(b.s.hurt_rank + 1 + (int)below((uint32_t)b.size - 1)) % (size_t)b.size);
    }
    if (how >= NEXT_STEP && k->io.kind == CG_IO_ALLREDUCE) return;
    if (how >= RECORD_STATUS) {
        at += 64 * below((uint32_t)(run / 64));
        run = 64;
        rehash(at, how);
    } else if (how >= NEXT_STEP) {
        run = reseal(at, run, how);
    } else switch (how) {
        case FLIP:
            at += below((uint32_t)run);
            run = 1;
            *at ^= (unsigned char)(1u << below(8));
            break;
        case FLIP_EARLY:
            at += below(run < 24 ? (uint32_t)run : 24);
            run = 1;
            *at ^= (unsigned char)(1u << below(8));
            break;
        case ZERO_RUN:
            at += below((uint32_t)run);
            run = (size_t)(p + len - at) < 40 ? (size_t)(p + len - at) : 40;
            memset(at, 0, run);
            break;
        case RANDOM:
            for (size_t i = 0; i < run; i++) at[i] = (unsigned char)below(256);
            break;
        case TRUNCATED:
            at += run / 2;
            run -= run / 2;
            memset(at, 0, run);
            break;
        case POISON:
            memset(copy, 0, sizeof copy);
            cg_put32_(copy, CG_FAILURE_MAGIC_);
            cg_put32_(copy + 4, below(3) ? 1 + below(20) : below(1u << 31));
            cg_put32_(copy + 8, below(2) ? below((uint32_t)b.size) : below(1u << 31) + RANKS);
            run = run < 12 ? run : 12;
            memcpy(at, copy, run);
            break;
        case ONES: memset(at, 0xff, run); break;
        default:
            if (run >= 8) at += run == 16 ? 0 : 8 * below((uint32_t)(run / 8));
            cg_put64_(copy, (uint64_t)1 << 63);
            run = run < 8 ? run : 8;
            memcpy(at, copy, run);
        }
    b.blame = run ? owner(k, at, at + run) : -1;
    b.hit = 1;
}
static int arrives_changed(int r, int io, int how) {
    bed_reset();
    b.s.hurt_rank = r;
    b.s.hurt_io = io;
    b.s.hurt = hurt;
    b.damage = how;
    b.hit = 0;
    run();
    return 1;
}
static int is_verdict(cg_status s) { return s == CG_E_CORRUPT || s == CG_E_MISMATCH || s == CG_E_VERSION; }
/* Whoever finds something wrong with bytes names their owner. */
static int blamed(int r) {
    const sim_rank *k = &b.s.rank[r];
    if (b.hit && b.blame >= 0 && b.damage != POISON && is_verdict(k->status)) EXPECT(k->report.rank == b.blame, r);
    return 1;
}
static int wants_any(int how) { return how < NEXT_STEP; }
static int wants_packets(int how) { return how < RECORD_STATUS; }
static int wants_records(int how) { return how < NEXT_STEP || how >= RECORD_STATUS; }
/* Every message of a kind, damaged in every way. */
#define EACH_DAMAGE(p, carries, wanted, times, code)                             \
  do {                                                                           \
    EACH_BED(p, {                                                                \
  for (int r = 0; r < b.size; r++)                                               \
    for (int io = 0; io < b.ios[r]; io++)                                        \
      for (int how = 0; b.seen[r][io].what == (carries) && how < DAMAGES; how++) \
        for (int again = 0; wanted(how) && again < (times); again++) {           \
          static unsigned turn;                                                  \
          if (damages && spared(&turn, 5)) continue;                             \
          const trace seen = b.seen[r][io];                                      \
          arrives_changed(r, io, how);                                           \
          damages++;                                                             \
          (void)seen;                                                            \
          code;                                                                  \
        }                                                                        \
  if (!recovers()) FAILm(note);                                                  \
    });                                                                          \
  } while (0)

/* Packets: nobody waits, the right rank is named, and what is not of this exchange is not taken. */
static int packet_changed(int r, const trace *t, int how) {
    const sim_rank *k = &b.s.rank[r];
    EXPECT(b.s.stuck == 0 && b.torn == 0, r);
    for (int q = 0; q < b.size; q++) {
        const sim_rank *other = &b.s.rank[q];
        if (!sound(0) || !blamed(q)) return 0;
        EXPECT(other->status == CG_OK || other->status == CG_E_PEER || is_verdict(other->status), q);
        /* whose failure it is: the owner of the bytes, or who found it; sums of NaN do not say */
        if (other->status == CG_E_PEER && b.blame >= 0 && how != POISON)
            EXPECT(other->report.rank == b.blame || other->report.rank == r ||
                    (other->report.rank == -1 && b.p->route == SHARED),
                q);
    }
    if (!b.hit || t->by_sum || b.blame < 0) return 1;
    if (how == POISON || how == RANDOM || how == ONES) EXPECT(k->status != CG_OK, r);
    if (how >= NEXT_STEP && how <= NEXT_N) EXPECT(k->status == CG_E_MISMATCH || k->status == CG_E_CORRUPT, r);
    if ((how == NEXT_STEP || how == NEXT_SEED || how == NEXT_TENSOR) && !samples(b.p))
        EXPECT(k->status == CG_E_MISMATCH, r);
    if ((how == NEXT_RANK || how == NEXT_OP) && t->first_leg) EXPECT(k->status != CG_OK, r);
    return 1;
}
TEST changed_packets(const plan *p) {
    int tried = 0, damages = 0;
    EACH_DAMAGE(p, PACKETS, wants_packets, how == FLIP ? 3 : 1, if (!packet_changed(r, &seen, how)) FAILm(note));
    ASSERT(p->route == CG_ROUTE_LINEAR || damages > 0);
    PASS();
}
/* Records: who got a bad one stops and names its owner; nobody has a wrong result. What says what cannot be, and
   has a right hash, is found. */
static int record_changed(int r, const trace *t, int how) {
    const sim_rank *k = &b.s.rank[r];
    if (!sound(0)) return 0;
    for (int q = 0; q < b.size; q++) {
        if (!blamed(q)) return 0;
        EXPECT(b.s.rank[q].status == CG_OK || b.s.rank[q].status == CG_E_PEER || b.s.rank[q].status == CG_E_TRANSPORT ||
                is_verdict(b.s.rank[q].status),
            q);
    }
    if (!b.hit || t->by_sum || b.blame < 0) return 1;
    EXPECT(how == ZERO_RUN || how == TRUNCATED || k->status != CG_OK, r);
    if (how < NEXT_STEP && k->status != CG_OK) EXPECT(k->status == CG_E_CORRUPT, r);
    if (how == RECORD_STATUS) EXPECT(k->status == CG_E_PEER && k->report.rank == b.blame, r);
    if (how == RECORD_N || how == RECORD_TAG) EXPECT(k->status == CG_E_MISMATCH, r);
    if (how >= RECORD_LENGTH && how <= RECORD_SCALE) EXPECT(k->status == CG_E_CORRUPT, r);
    return 1;
}
TEST changed_records(const plan *p) {
    int tried = 0, damages = 0;
    EACH_DAMAGE(p, OPENING, wants_records, how == FLIP ? 2 : 1, if (!record_changed(r, &seen, how)) FAILm(note));
    ASSERT(damages > 0);
    PASS();
}
/* Notes and lengths: no wrong result, nothing beyond a buffer. Sizes that do not fit end in the transport. */
static int length_changed(void) {
    for (int q = 0; q < b.size; q++) {
        const sim_rank *k = &b.s.rank[q];
        if (!sound(0)) return 0;
        EXPECT(k->status == CG_OK || k->status == CG_E_PEER || k->status == CG_E_TRANSPORT || is_verdict(k->status), q);
    }
    return 1;
}
TEST changed_notes(const plan *p) {
    int tried = 0, damages = 0;
    EACH_DAMAGE(p, NOTE, wants_any, 2, if (!length_changed()) FAILm(note));
    PASS();
}
TEST changed_lengths(const plan *p) {
    int tried = 0, damages = 0;
    EACH_DAMAGE(p, LENGTHS, wants_any, 2, if (!length_changed()) FAILm(note));
    PASS();
}
/* Scales that ranks agree on, one by one: a changed one must not give ranks different grids. */
static int scale_changed(int r, const trace *t, int how) {
    const sim_rank *k = &b.s.rank[r];
    /* NaN */
    if (how == ONES && b.hit && b.blame >= 0 && !t->by_sum)
        EXPECT(k->status == CG_E_CORRUPT && k->report.rank == b.blame, r);
    EXPECT(b.s.stuck == 0 && b.torn == 0, r);
    return length_changed();
}
TEST changed_scales(const plan *p) {
    int tried = 0, damages = 0;
    EACH_DAMAGE(p, SCALES, wants_any, 4, if (!scale_changed(r, &seen, how)) FAILm(note));
    PASS();
}
/* How many values have which size, in Ok-Topk: a changed count must not change what survives. */
TEST changed_tallies(const plan *p) {
    int tried = 0, damages = 0;
    EACH_DAMAGE(p, TALLIES, wants_any, 4, if (!length_changed()) FAILm(note));
    ASSERT(damages > 0);
    PASS();
}
/* Raw sums: a changed float cannot be noticed, and ranks may differ. But no NaN and no Inf come out, and who does
   not succeed has written nothing. */
static int sum_changed(int r, const trace *t, int how) {
    /* that one's result is told to all by rank 0, once more */
    const int nan = how == ONES && b.hit && t->kind != CG_IO_ALLREDUCE;
    if (!sound(1)) return 0;
    EXPECT(b.torn == 0, r);
    for (int q = 0; q < b.size; q++) {
        const sim_rank *k = &b.s.rank[q];
        if (k->status == CG_E_TRANSPORT) EXPECT(b.s.stuck, q);
        else
            EXPECT(k->status == CG_OK || k->status == CG_E_PEER || k->status == CG_E_NONFINITE ||
                    k->status == CG_E_CORRUPT,
                q);
    }
    if (nan) EXPECT(b.s.rank[r].status != CG_OK, r);
    return 1;
}
TEST changed_sums(const plan *p) {
    int tried = 0, damages = 0;
    EACH_DAMAGE(p, SUMS, wants_any, 2, if (!sum_changed(r, &seen, how)) FAILm(note));
    ASSERT(damages > 0);
    PASS();
}
/* Nobody waits for a rank that got NaN where the others got a sum. */
static int nobody_stuck(int r) {
    EXPECT(b.s.stuck == 0, r);
    return 1;
}
TEST sums_of_nan(const plan *p) {
    int tried = 0, damages = 0;
    EACH_DAMAGE(p, SUMS, wants_any, 1, if (how == ONES && !nobody_stuck(r)) FAILm(note));
    ASSERT(damages > 0);
    PASS();
}

/* ---- the calls themselves ---- */

static int calls;
static int code_of_callback(
    void *user, const void *out, size_t out_bytes, int to, void *in, size_t in_bytes, int from) {
    (void)out, (void)out_bytes, (void)to, (void)in, (void)in_bytes, (void)from;
    return ++calls == *(const int *)user ? -42 : 0;
}
TEST wrong_order(void) {
    cg_exchange_state e;
    cg_exchange_desc d = CG_ZERO;
    cg_transport t = sim_transport(0, 2, SIM_SENDRECV, 0);
    float x[4] = { 1, 2, 3, 4 };
    static double mem[4096];
    cg_report report;
    cg_io io;
    memset(&e, 0, sizeof e);
    memset(&io, 0x55, sizeof io);
    ASSERT_EQ(CG_E_STATE, cg_exchange_next(&e, 0, &io)); /* before start */
    ASSERT_EQ(CG_IO_NONE, io.kind);
    ASSERT_EQ(CG_E_ARG, cg_exchange_next(NULL, 0, &io));
    ASSERT_EQ(CG_E_ARG, cg_exchange_start(NULL, &d, &t, x, 4, mem, sizeof mem));
    ASSERT_EQ(CG_E_ARG, cg_exchange_start(&e, NULL, &t, x, 4, mem, sizeof mem));
    ASSERT_EQ(CG_E_ARG, cg_exchange_start(&e, &d, NULL, x, 4, mem, sizeof mem));
    ASSERT_EQ(CG_OK, cg_exchange_start(&e, &d, &t, x, 4, mem, sizeof mem));
    ASSERT_EQ(CG_E_ARG, cg_exchange_next(&e, 0, NULL));
    /* nothing was under way: the code means nothing */
    ASSERT_EQ(CG_AGAIN, cg_exchange_next(&e, 77, &io));
    ASSERT_EQ(CG_IO_SENDRECV, io.kind);
    ASSERT_EQ(CG_E_TRANSPORT, cg_exchange_next(&e, -5, &io));
    cg_exchange_report(&e, &report);
    ASSERT_EQ(-5, report.code);
    ASSERT_EQ(1, report.rank);
    ASSERT_EQ(0u, report.rounds);
    ASSERT_EQ(CG_ROUTE_LINEAR, report.route);
    ASSERT(report.why && !report.used && !report.used_len);
    ASSERT_EQ(CG_E_STATE, cg_exchange_next(&e, 0, &io)); /* after the end */
    ASSERT_EQ(CG_E_STATE, cg_exchange_next(&e, 0, &io));
    cg_exchange_report(&e, NULL);
    cg_exchange_report(NULL, &report);
    ASSERT_EQ(-5, report.code);
    PASS();
}
/* one rank needs no callback; a second call after CG_OK is refused */
TEST alone(void) {
    cg_exchange_state e;
    cg_exchange_desc d = CG_ZERO;
    cg_transport t = sim_transport(0, 1, 0, 0);
    float x[4] = { 1, 2, 3, 4 };
    static double mem[4096];
    cg_io io;
    ASSERT_EQ(CG_OK, cg_exchange_start(&e, &d, &t, x, 4, mem, sizeof mem));
    ASSERT_EQ(CG_OK, cg_exchange_next(&e, 0, &io));
    ASSERT_EQ(CG_E_STATE, cg_exchange_next(&e, 0, &io));
    x[2] = forbidden();
    ASSERT_EQ(CG_OK, cg_exchange_start(&e, &d, &t, x, 4, mem, sizeof mem));
    ASSERT_EQ(CG_E_NONFINITE, cg_exchange_next(&e, 0, &io));
    PASS();
}
TEST mute(void) { /* start fails where nothing can be said, and says why */
    cg_exchange_state e;
    cg_exchange_desc d = CG_ZERO;
    cg_transport t[4];
    float x[4] = { 1, 2, 3, 4 };
    static double mem[4096];
    cg_report report;
    cg_io io;
    t[0] = sim_transport(2, 2, SIM_ALL, 0);
    t[1] = sim_transport(-1, 2, SIM_ALL, 0);
    t[2] = sim_transport(0, 0, SIM_ALL, 0);
    t[3] = sim_transport(0, 2, 0, 0);
    for (int i = 0; i < 4; i++) {
        ASSERT_EQ(CG_E_ARG, cg_exchange_start(&e, &d, &t[i], x, 4, mem, sizeof mem));
        cg_exchange_report(&e, &report);
        ASSERT(strstr(report.why, i < 3 ? "rank" : "callback") != NULL);
        ASSERT_EQ(CG_E_STATE, cg_exchange_next(&e, 0, &io));
        memset(&report, 0x55, sizeof report);
        ASSERT_EQ(CG_E_ARG, cg_exchange(&d, &t[i], x, 4, mem, sizeof mem, &report));
        ASSERT(strstr(report.why, i < 3 ? "rank" : "callback") != NULL);
        ASSERT_EQ(0u, cg_exchange_memory(&d, &t[i], 4));
    }
    ASSERT_EQ(CG_E_ARG, cg_exchange(NULL, &t[0], x, 4, mem, sizeof mem, &report));
    ASSERT_EQ(CG_E_ARG, cg_exchange(&d, NULL, x, 4, mem, sizeof mem, NULL));
    /* more ranks than fit into the state: no memory at all is a reason, too */
    t[0] = sim_transport(3, 17, SIM_ALL, 0);
    ASSERT_EQ(CG_E_MEMORY, cg_exchange_start(&e, &d, &t[0], x, 4, NULL, 0));
    cg_exchange_report(&e, &report);
    ASSERT_EQ(3, report.rank);
    ASSERT_EQ(CG_E_STATE, cg_exchange_next(&e, 0, &io));
    PASS();
}
/* cg_exchange keeps the callback's code, with and without a report */
TEST blocking_driver(void) {
    cg_exchange_desc d = CG_ZERO;
    cg_transport t = sim_transport(0, 2, SIM_SENDRECV, 0);
    float x[4] = { 1, 2, 3, 4 }, before[4] = { 1, 2, 3, 4 };
    static double mem[4096];
    int when = 1;
    cg_report report;
    t.sendrecv = code_of_callback;
    t.user = &when;
    calls = 0;
    ASSERT_EQ(CG_E_TRANSPORT, cg_exchange(&d, &t, x, 4, mem, sizeof mem, &report));
    ASSERT(report.code == -42 && calls == 1);
    calls = 0;
    ASSERT_EQ(CG_E_TRANSPORT, cg_exchange(&d, &t, x, 4, mem, sizeof mem, NULL));
    /* a callback that moves nothing: the record that was there before is no record; the other rank may not know that,
       so that this one goes on */
    when = 100;
    calls = 0;
    memset(mem, 0, sizeof mem);
    ASSERT_EQ(CG_E_CORRUPT, cg_exchange(&d, &t, x, 4, mem, sizeof mem, &report));
    ASSERT(report.code == 0 && report.rank == 1 && calls > 1);
    ASSERT(!memcmp(x, before, sizeof x));
    PASS();
}
/* Descriptions that differ in what is not a number: given scales on one rank only. */
TEST given_scales_on_one_rank(void) {
    static const plan p = { "absmax:4:64", SERVER, 0, 0, 0, 0, 0, 0, NULL, N };
    float scales[N];
    cg_extra side = CG_ZERO;
    for (size_t i = 0; i < N; i++) scales[i] = 4.0f;
    side.scale = scales;
    ASSERT(bed_open(&p, 3, SIM_SENDRECV));
    bed_reset();
    b.s.rank[1].desc.side = &side;
    free(b.block[1]);
    b.desc[1].side = &side;
    bed_memory(1);
    b.s.rank[1].mem = b.mem[1];
    b.s.rank[1].bytes = b.bytes[1];
    run();
    for (int r = 0; r < 3; r++)
        if (b.s.stuck || b.torn || b.s.rank[r].status != CG_E_MISMATCH) {
            complain("scales on one rank only", r);
            FAILm(note);
        }
    PASS();
}

/* Bytes as sums, in several rounds: who finds that one of them is no sum still takes part in the others. */
static void not_a_number(void *user, void *bytes, size_t len, int from) {
    (void)user, (void)from;
    memset(bytes, 0xff, len);
}
TEST long_strings_as_sums(void) {
    enum { LONG = 30000 };
    static sim s;
    float *x[SIM_MOST] = { NULL };
    cg_exchange_desc d = CG_ZERO;
    d.route = CG_ROUTE_ALLGATHER;
    for (int io = 1; io < 4; io++) {
        for (int r = 0; r < 2; r++) x[r] = (float *)calloc(LONG, 4);
        sim_open(&s, 2, SIM_ALLREDUCE, 0, &d, x, LONG);
        s.hurt = not_a_number;
        s.hurt_rank = 1;
        s.hurt_io = io;
        sim_run(&s);
        ASSERT(s.rank[0].ios >= 4 && s.rank[1].ios >= io + 1);
        ASSERT_EQ(0, s.stuck);
        ASSERT_EQ(CG_OK, s.rank[0].status);
        ASSERT_EQ(io < 3 ? CG_E_CORRUPT : CG_OK, s.rank[1].status); /* the last has its own bytes alone */
        sim_close(&s);
        for (int r = 0; r < 2; r++) free(x[r]);
    }
    PASS();
}
/* Levels of agreed scales and weights, where sums are encoded at every hop: refused by all, or done by all. */
TEST agreed_scales_and_weights(void) {
    static const plan both[] = { { "absmax:4:64", RING, 0, AGREE, 0, 0, 1, 0, NULL, N },
        { "absmax:4:64", TREE, 0, AGREE, 0, 0, 1, 0, NULL, N }, { "terngrad", TREE, 0, AGREE, 0, 0, 1, 0, NULL, N } };
    for (size_t i = 0; i < sizeof both / sizeof *both; i++) {
        const int done = bed_open(&both[i], 3, SIM_SENDRECV);
        for (int r = 0; r < 3; r++) {
            const cg_status status = b.s.rank[r].status;
            const int kept = done ? !memcmp(b.x[r], b.x[0], b.n * 4) : untouched(r);
            if (!kept || status != (done ? CG_OK : CG_E_UNSUPPORTED) || b.s.stuck || b.torn) {
                complain("agreed scales and weights", r);
                FAILm(note);
            }
        }
        bed_close();
    }
    PASS();
}

SUITE(callbacks) {
    for (size_t i = 0; i < PLANS; i++) {
        RUN_TEST1(undisturbed, &plans[i]);
        RUN_TEST1(failing_callbacks, &plans[i]);
    }
}
SUITE(ranks) {
    for (size_t i = 0; i < PLANS; i++) {
        RUN_TEST1(failing_ranks, &plans[i]);
        RUN_TEST1(failing_together, &plans[i]);
        RUN_TEST1(huge_values, &plans[i]);
        if (samples(&plans[i])) RUN_TEST1(unseen_values, &plans[i]);
    }
    RUN_TEST(given_scales_on_one_rank);
    RUN_TEST(agreed_scales_and_weights);
}
SUITE(messages) {
    for (size_t i = 0; i < PLANS; i++) {
        const plan *p = &plans[i];
        RUN_TEST1(changed_records, p);
        if (p->route != LINEAR && p->n) RUN_TEST1(changed_packets, p);
        RUN_TEST1(changed_notes, p);
        RUN_TEST1(changed_lengths, p);
        if (p->flags & CG_AGREE_SCALES) RUN_TEST1(changed_scales, p);
        if (p->route == REGION) RUN_TEST1(changed_tallies, p);
        if (p->route == LINEAR || p->route == SHARED) {
            RUN_TEST1(changed_sums, p);
            RUN_TEST1(sums_of_nan, p);
        }
    }
    RUN_TEST(long_strings_as_sums);
}
SUITE(order) {
    RUN_TEST(wrong_order);
    RUN_TEST(alone);
    RUN_TEST(mute);
    RUN_TEST(blocking_driver);
}

GREATEST_MAIN_DEFS();

int main(int argc, char **argv) {
    quick = !long_test();
    GREATEST_MAIN_BEGIN();
    RUN_SUITE(order);
    RUN_SUITE(callbacks);
    RUN_SUITE(messages);
    RUN_SUITE(ranks);
    GREATEST_MAIN_END();
}
