/* clang -g -O1 -I. -Itests -fsanitize=fuzzer,address,undefined tests/fuzz/fuzz_exchange.c -o fuzz && ./fuzz CORPUS
   cc -g -O1 -I. -Itests -DFUZZ_MAIN tests/fuzz/fuzz_exchange.c -o fuzz && ./fuzz 10000

   An exchange between 2 to 4 ranks in one thread: the first bytes choose route, operator, callbacks and the rest
   of the description, every five bytes after that change a byte of a message on its way. Undisturbed, nobody may
   wait for ever, all ranks come to the same end, and results are the same bits. Disturbed, ranks end somehow; who
   fails has written nothing, results are finite, and where messages have a checksum one changed byte is never
   taken for a result. The second form makes its own inputs, the same every time. */

#define COMPGRAD_IMPLEMENTATION
#include "sim.h"

#define MUST(c)                                       \
  do {                                                \
    if (!(c)) {                                       \
      fprintf(stderr, "line %d: %s\n", __LINE__, #c); \
      abort();                                        \
    }                                                 \
  } while (0)

enum { HEAD = 8, HIT = 5, MOST_HITS = 8, MOST_N = 1200, MOST_RANKS = 4 };
static const char *const ops[] = { "dense", "topk:0.05", "dgc:0.1", "randk:0.2", "rotate:2", "absmax:4:64",
    "absmax:8:512", "efsign", "terngrad", "topk:0.1|absmax:4:64", "qsgd:4", "eden:2", "dense|huffman", "wangni:0.1",
    "topk:0.05|golomb", "demo:0.1", "permk:8", "sign", "natural", "f16", "chunked:100:0.1", "blocks:16", "threshold:1",
    "rotate:1|topk:0.1", "randk:0.5|topk:0.1", "sidco:0.1", "mstopk:0.1", "levels:4", "flexpoint:4:64", "trits:1.5",
    "lowrank:2:10:12", "atomo:2:10:12" };
enum { OPS = sizeof ops / sizeof *ops };

typedef struct setting {
    int size, mask, agrees, carry, warm;
    size_t n;
    cg_exchange_desc desc;
    cg_op back;
} setting;
typedef struct hit {
    int rank, io;
    size_t at;
    uint8_t by;
} hit;
static setting now;
static hit hits[MOST_HITS];
static int hit_count, changed;

static void choose(const uint8_t *p) {
    static const int masks[] = { SIM_SENDRECV, SIM_ALL, SIM_ALLGATHER, SIM_BROADCAST, SIM_ALLREDUCE,
        SIM_SENDRECV | SIM_ALLREDUCE, SIM_ALLGATHER | SIM_BROADCAST };
    memset(&now, 0, sizeof now);
    now.desc.route = p[0] % 11; /* 10: there is none */
    MUST(cg_op_parse(&now.desc.op, ops[p[1] % OPS]) == CG_OK);
    now.size = 2 + p[2] % (MOST_RANKS - 1);
    now.mask = masks[p[2] / 3 % 7];
    now.agrees = p[2] >> 7;
    now.n = p[1] % OPS >= OPS - 2 ? 120 : ((size_t)p[3] << 8 | p[4]) % (MOST_N + 1);
    now.desc.fold = p[5] & 3;
    now.desc.flags = p[5] >> 2 & 1;
    now.desc.leader = (p[5] >> 3 & 7) - 1;
    now.desc.weight = p[5] >> 6 & 1 ? 1.0f : 0.0f;
    now.carry = p[5] >> 7;
    now.warm = p[6] & 1;
    if (p[6] & 2) {
        MUST(cg_op_parse(&now.back, ops[(p[6] >> 2) % OPS]) == CG_OK);
        now.desc.back = &now.back;
    }
    now.desc.tag.seed = p[7];
    now.desc.tag.step = p[7] / 5;
}
static void fill(float *x, int rank, size_t n) {
    uint64_t dice = (uint64_t)rank * 77 + 5;
    for (size_t i = 0; i < n; i++) {
        float u;
        dice = dice * 6364136223846793005u + 1442695040888963407u;
        u = (float)(dice >> 40) / (float)(1 << 24) - 0.5f;
        x[i] = 20.0f * u * u * u;
    }
}
/* Bytes that arrive at rank r in its io-th message. */
static void disturb(void *user, void *bytes, size_t len, int from) {
    const int r = *(const int *)user;
    const sim *s = (const sim *)(const void *)((const char *)user - offsetof(sim, hurt_rank));
    if (s->rank[r].io.kind == CG_IO_BROADCAST && from == r) return; /* nothing came */
    for (int h = 0; h < hit_count; h++)
        if (hits[h].rank == r && hits[h].io == s->rank[r].ios - 1 && len) {
            ((uint8_t *)bytes)[hits[h].at % len] ^= hits[h].by;
            changed += hits[h].by != 0;
        }
}
/* is anything to be changed in what comes to r next? */
static void aim(sim *s, int r) {
    for (int h = 0; h < hit_count; h++)
        if (hits[h].rank == r && hits[h].io == s->rank[r].ios - 1) {
            s->hurt_rank = r;
            s->hurt_io = hits[h].io;
        }
}
/* Two sides that disagree about a size, after a changed note: both callbacks fail. */
static int tear(sim *s) {
    int torn = 0, all = 1, differ = 0;
    for (int a = 0; a < s->size; a++) {
        sim_rank *k = &s->rank[a], *to;
        const cg_io *first = &s->rank[0].io;
        all &= k->waiting && k->io.kind != CG_IO_SENDRECV;
        differ |= k->io.kind != first->kind || k->io.in_bytes != first->in_bytes ||
            k->io.out_bytes != first->out_bytes || k->io.from != first->from;
        if (!k->waiting || k->io.kind != CG_IO_SENDRECV || k->sent) continue;
        to = &s->rank[k->io.to];
        if (!to->waiting || to->io.kind != CG_IO_SENDRECV || to->received || to->io.from != a ||
            k->io.out_bytes == to->io.in_bytes)
            continue;
        k->code = to->code = 98;
        k->waiting = to->waiting = 0;
        torn = 1;
    }
    for (int r = 0; all && differ && r < s->size; r++) {
        s->rank[r].code = 98;
        s->rank[r].waiting = 0;
        torn = 1;
    }
    MUST(!torn || changed);
    return torn;
}
/* A callback may only be handed bytes of mem, or of the state, however long a note says that a message is. */
static int inside(const sim_rank *k, const void *bytes, size_t len) {
    const unsigned char *p = (const unsigned char *)bytes, *mem = (const unsigned char *)k->mem,
                        *state = (const unsigned char *)&k->state;
    if (!len) return 1;
    if (p >= mem && p <= mem + k->bytes) return len <= (size_t)(mem + k->bytes - p);
    return p >= state && p < state + sizeof k->state && len <= (size_t)(state + sizeof k->state - p);
}
static int turn(sim *s) {
    int moved = 0;
    for (int r = 0; r < s->size; r++) {
        const sim_rank *k = &s->rank[r];
        if (k->done || k->waiting) continue;
        sim_step(s, r);
        if (!k->done) MUST(inside(k, k->io.in, k->io.in_bytes) && inside(k, k->io.out, k->io.out_bytes));
        moved = 1;
    }
    moved |= tear(s);
    for (int a = 0; a < s->size; a++) {
        if (s->rank[a].waiting && s->rank[a].io.kind == CG_IO_SENDRECV && s->rank[a].io.to >= 0)
            aim(s, s->rank[a].io.to);
        moved |= sim_match(s, a);
    }
    for (int r = 0; r < s->size; r++) {
        sim_rank *k = &s->rank[r];
        if (k->waiting && k->io.kind == CG_IO_SENDRECV && k->sent && k->received) {
            k->waiting = 0;
            moved = 1;
        }
        if (k->waiting && k->io.kind != CG_IO_SENDRECV) aim(s, r);
    }
    return moved | sim_collective(s);
}
static void exchange(sim *s, float *const *x, float *const *carry, float *const *warm) {
    sim_open(s, now.size, now.mask, now.agrees, &now.desc, x, now.n);
    changed = 0;
    for (int r = 0; r < now.size; r++) {
        cg_exchange_desc *d = &s->rank[r].desc;
        if (now.desc.weight != 0.0f) d->weight = 1.0f + (float)r;
        d->score = (float)(r * 3 % 4);
        if (now.carry) d->carry = carry[r];
        if (now.warm) d->warm = warm[r];
    }
    if (!hit_count) {
        sim_run(s);
        return;
    }
    s->hurt = disturb;
    s->hurt_user = &s->hurt_rank;
    for (int r = 0; r < now.size; r++) {
        sim_rank *k = &s->rank[r];
        k->bytes = cg_exchange_memory(&k->desc, &k->transport, k->n);
        k->mem = malloc(k->bytes + !k->bytes); /* whatever was there before */
        MUST(k->mem);
        if (cg_exchange_start(&k->state, &k->desc, &k->transport, k->x, k->n, k->mem, k->bytes) != CG_OK)
            sim_finish(k, k->state.status);
    }
    while (turn(s)) continue;
    for (int r = 0; r < now.size; r++)
        if (!s->rank[r].done) {
            MUST(changed);
            s->stuck++;
            sim_finish(&s->rank[r], cg_exchange_next(&s->rank[r].state, 99, &s->rank[r].io));
        }
}
/* Whether a message that arrives in another form is always noticed: not raw floats, scales and counts. */
static int is_checked(uint32_t route) {
    return route != CG_ROUTE_LINEAR && route != CG_ROUTE_SHARED && route != CG_ROUTE_REGION &&
        !(now.desc.flags & CG_AGREE_SCALES);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static sim s;
    float *x[SIM_MOST] = { NULL }, *carry[MOST_RANKS], *warm[MOST_RANKS], *good = NULL;
    cg_status verdict = CG_OK;
    if (size < HEAD) return 0;
    choose(data);
    for (int times = 0; times < 2; times++) { /* as it is, then disturbed */
        hit_count = 0;
        for (size_t at = HEAD; times && at + HIT <= size && hit_count < MOST_HITS; at += HIT) {
            hit *h = &hits[hit_count++];
            h->rank = data[at] % now.size;
            h->io = data[at + 1] % 64;
            h->at = (size_t)data[at + 2] << 8 | data[at + 3];
            h->by = data[at + 4];
        }
        if (times && !hit_count) break;
        for (int r = 0; r < now.size; r++) {
            x[r] = (float *)malloc(now.n * 4 + !now.n); /* exactly, for the sanitizer */
            carry[r] = (float *)calloc(now.n + 1, 4);
            warm[r] = (float *)calloc(2 * MOST_N, 4);
            MUST(x[r] && carry[r] && warm[r]);
            fill(x[r], r, now.n);
        }
        exchange(&s, x, carry, warm);
        for (int r = 0; r < now.size; r++) {
            const sim_rank *k = &s.rank[r];
            float *before = (float *)malloc(now.n * 4 + !now.n);
            MUST(before && k->report.why && k->report.rank >= -1 && k->report.rank < now.size);
            fill(before, r, now.n);
            if (k->status != CG_OK) MUST(now.n == 0 || !memcmp(x[r], before, now.n * 4));
            for (size_t i = 0; i < now.n; i++) MUST(x[r][i] - x[r][i] == 0.0f);
            if (!times) {
                MUST(s.stuck == 0 && (k->status == CG_OK) == (s.rank[0].status == CG_OK));
                if (k->status == CG_OK && now.n) MUST(!memcmp(x[r], x[0], now.n * 4));
            } else if (k->status == CG_OK && now.n) {
                MUST(verdict == CG_OK);
                if (!changed || (changed == 1 && hit_count == 1 && is_checked(k->report.route)))
                    MUST(!memcmp(x[r], good, now.n * 4));
            }
            free(before);
        }
        verdict = times ? verdict : s.rank[0].status;
        if (!times) {
            good = x[0];
            x[0] = NULL;
        }
        sim_close(&s);
        for (int r = 0; r < now.size; r++) {
            free(x[r]);
            free(carry[r]);
            free(warm[r]);
        }
    }
    free(good);
    return 0;
}

#ifdef FUZZ_MAIN
int main(int argc, char **argv) {
    const long rounds = argc > 1 ? atol(argv[1]) : 0;
    uint64_t dice = 1;
    if (argc < 2) {
        fprintf(stderr, "usage: fuzz ROUNDS\n");
        return 2;
    }
    for (long i = 0; i < rounds; i++) {
        uint8_t data[HEAD + 3 * HIT];
        size_t size = HEAD + HIT * (size_t)(i % 4);
        for (size_t j = 0; j < size; j++) {
            dice = dice * 6364136223846793005u + 1442695040888963407u;
            data[j] = (uint8_t)(dice >> 56);
        }
        for (size_t j = HEAD; j < size; j += HIT) data[j + 1] %= 16; /* a message that there is */
        LLVMFuzzerTestOneInput(data, size);
    }
    printf("%ld exchanges\n", rounds);
    return 0;
}
#endif
