/* clang -g -O1 -I. -Itests -fsanitize=fuzzer,address,undefined tests/fuzz/fuzz_exchange.c -o fuzz && ./fuzz CORPUS
   cc -g -O1 -I. -Itests -DFUZZ_MAIN tests/fuzz/fuzz_exchange.c -o fuzz && ./fuzz 10000

   An exchange of 2 to 4 ranks in one thread: the first bytes choose route, operator, callbacks, values and the rest
   of the description, every six bytes after that change a message on its way (ranks.h), with wrong checksums or with
   right ones. Undisturbed, nobody may wait for ever, all ranks come to the same end, and results are the same bits.
   Disturbed, ranks end somehow; who fails has written nothing, results are finite, and where messages have a checksum
   one changed byte is never taken for a result. The second form makes its own inputs, the same every time. */

#define COMPGRAD_IMPLEMENTATION /* in make test, too: the opening records are sealed by the library's own function */
#include "ranks.h"

enum { HEAD = 10, MOST_N = 1200 };
static const char *const ops[] = { "dense", "topk:0.05", "dgc:0.1", "randk:0.2", "rotate:2", "absmax:4:64",
    "absmax:8:512", "efsign", "terngrad", "topk:0.1|absmax:4:64", "qsgd:4", "eden:2", "dense|huffman", "wangni:0.1",
    "topk:0.05|golomb", "demo:0.1", "permk:8", "sign", "natural", "f16", "chunked:100:0.1", "blocks:16", "threshold:1",
    "rotate:1|topk:0.1", "randk:0.5|topk:0.1", "sidco:0.1", "mstopk:0.1", "levels:4", "flexpoint:4:64", "trits:1.5",
    "lowrank:2:10:12", "atomo:2:10:12", "rate:1", "rate:2:unbiased" };
enum { OPS = sizeof ops / sizeof *ops };

typedef struct setting {
    int size, mask, agrees, carry, warm, into, abstains, wrong; /* the last two: ranks, or none */
    uint32_t style;
    size_t n;
    cg_exchange_desc desc;
    cg_op back;
} setting;
static setting now;
static ranks world;

static void choose(const uint8_t *p) {
    static const int masks[] = { SIM_SENDRECV, SIM_ALL, SIM_ALLGATHER, SIM_BROADCAST, SIM_ALLREDUCE,
        SIM_SENDRECV | SIM_ALLREDUCE, SIM_ALLGATHER | SIM_BROADCAST };
    memset(&now, 0, sizeof now);
    /* those whose ranks all get the same; the last: there is none */
    now.desc.route = p[0] % 11 <= CG_ROUTE_LINEAR ? p[0] % 11 : 1000;
    MUST(cg_op_parse(&now.desc.op, ops[p[1] % OPS]) == CG_OK);
    now.size = 2 + p[2] % (RANKS_MOST - 1);
    now.mask = masks[p[2] / 3 % 7];
    now.agrees = p[2] >> 7;
    now.n = p[1] % OPS >= OPS - 2 ? 120 : ((size_t)p[3] << 8 | p[4]) % (MOST_N + 1);
    now.desc.fold = p[6] >> 7 ? (uint32_t)(CG_FOLD_MEDIAN + (p[5] & 3) % 3) : p[5] & 3u;
    now.desc.flags = p[5] >> 2 & 1;
    now.desc.sum = now.desc.route >= 7 && now.mask & SIM_SENDRECV ? p[8] >> 5 : 0; /* 5 and more: there is none */
    now.desc.leader = (p[5] >> 3 & 7) - 1;
    now.desc.weight = p[5] >> 6 & 1 ? 1.0f : 0.0f;
    now.carry = p[5] >> 7;
    now.warm = p[6] & 1;
    if (p[6] & 2) {
        MUST(cg_op_parse(&now.back, ops[(p[6] >> 2) % OPS]) == CG_OK);
        now.desc.back = &now.back;
    }
    now.desc.flags |= (p[7] & 1 ? CG_IN_PLACE : 0) | (p[7] & 2 ? CG_FEEDS_BACK : 0);
    now.desc.tag.seed = p[7];
    now.desc.tag.step = p[7] / 5;
    now.style = p[8] % 16 < FUZZ_STYLES ? p[8] % 16 : FUZZ_MODERATE;
    now.into = p[8] >> 4 & 1;
    now.abstains = (p[9] & 15) - 10;
    now.wrong = (p[9] >> 4) - 10;
}
static float *fresh_vector(int rank) {
    float *x = (float *)malloc(now.n * 4 + !now.n); /* exactly, for the sanitizer */
    MUST(x);
    fuzz_fill(x, now.n, now.style, (uint64_t)rank * 77 + 5);
    if (rank == now.wrong && now.n) x[now.n / 2] = fuzz_wrong((uint32_t)now.n);
    return x;
}
/* Whether a message that arrives in another form is always noticed: not raw floats, scales and counts. */
static int is_checked(uint32_t route) {
    return route != CG_ROUTE_LINEAR && route != CG_ROUTE_SHARED && route != CG_ROUTE_REGION &&
        !(now.desc.flags & CG_AGREE_SCALES);
}
/* A dense sum may be made in into, and on the caller's word in x: after an error these hold anything. */
static int may_scribble(uint32_t route) {
    return route == CG_ROUTE_LINEAR && (now.into || now.desc.flags & CG_IN_PLACE) && !(now.desc.flags & CG_FEEDS_BACK);
}
/* A sum that is too large is Inf on one route; elsewhere results are finite, whatever came. */
static int may_be_infinite(uint32_t route) {
    return (now.style >= FUZZ_HUGE || world.changed) && now.desc.fold == CG_FOLD_SUM && route == CG_ROUTE_ALLGATHER;
}
/* good: the result of rank 0 when nothing was changed, or NULL: this is that time, and x[0] is it. */
static void check(float *const *x, float *const *into, const float *good) {
    const sim *s = &world.s;
    const int one_byte = world.hit_count == 1 && world.changed == 1 && world.hits[0].how == HIT_BYTE;
    for (int r = 0; r < now.size; r++) {
        const sim_rank *k = &s->rank[r];
        const float *result = now.into ? into[r] : x[r], *first = now.into ? into[0] : x[0];
        float *before = fresh_vector(r);
        MUST(k->report.why && k->report.rank >= -1 && k->report.rank < now.size);
        const int scribbled = k->status != CG_OK && may_scribble(k->report.route);
        if ((now.into || (k->status != CG_OK && !scribbled)) && now.n) MUST(!memcmp(x[r], before, now.n * 4));
        for (size_t i = 0; k->status != CG_OK && now.into && !scribbled && i < now.n; i++)
            MUST(fuzz_bits(into[r][i]) == 0);
        for (size_t i = 0; k->status == CG_OK && i < now.n; i++)
            MUST(fuzz_is_finite(result[i]) || may_be_infinite(k->report.route));
        if (!good) {
            MUST(s->stuck == 0 && (k->status == CG_OK) == (s->rank[0].status == CG_OK));
            if (k->status == CG_OK && now.n) MUST(!memcmp(result, first, now.n * 4));
        } else if (k->status == CG_OK && now.n) {
            if (!world.changed || (one_byte && is_checked(k->report.route))) MUST(!memcmp(result, good, now.n * 4));
        }
        free(before);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    float *x[SIM_MOST] = { NULL }, *into[RANKS_MOST], *carry[RANKS_MOST], *warm[RANKS_MOST], *good = NULL;
    fuzz_input in;
    if (size < HEAD) return 0;
    choose(data);
    for (int times = 0; times < 2; times++) { /* as it is, then disturbed */
        in.at = data + HEAD;
        in.left = times ? size - HEAD : 0;
        ranks_read_hits(&world, &in, now.size, 64);
        if (times && !world.hit_count) break;
        for (int r = 0; r < now.size; r++) {
            x[r] = fresh_vector(r);
            into[r] = (float *)calloc(now.n + !now.n, 4);
            carry[r] = (float *)calloc(now.n + 1, 4);
            warm[r] = (float *)calloc(2 * MOST_N, 4);
            MUST(into[r] && carry[r] && warm[r]);
        }
        sim_open(&world.s, now.size, now.mask, now.agrees, &now.desc, x, now.n);
        for (int r = 0; r < now.size; r++) {
            cg_exchange_desc *d = &world.s.rank[r].desc;
            if (now.desc.weight != 0.0f) d->weight = 1.0f + (float)r;
            d->score = (float)(r * 3 % 4);
            if (r == now.abstains) d->flags |= CG_ABSTAIN;
            if (now.carry) d->carry = carry[r];
            if (now.warm) d->warm = warm[r];
            if (now.into) d->into = into[r];
        }
        if (times) ranks_run_states(&world);
        else sim_run(&world.s);
        check(x, into, times ? good : NULL);
        if (!times) {
            good = (float *)malloc(now.n * 4 + 1);
            MUST(good);
            memcpy(good, now.into ? into[0] : x[0], now.n * 4);
        }
        sim_close(&world.s);
        for (int r = 0; r < now.size; r++) {
            free(x[r]);
            free(into[r]);
            free(carry[r]);
            free(warm[r]);
        }
    }
    free(good);
    return 0;
}

/* Whether the exchange that is chosen is not refused; how long x is does not matter to that. */
static int is_accepted(void) {
    static float vector[2 * MOST_N];
    const cg_transport t = sim_transport(0, now.size, now.mask, now.agrees);
    if (now.carry) now.desc.carry = vector;
    if (now.warm) now.desc.warm = vector;
    return cg_exchange_memory(&now.desc, &t, now.n) != 0;
}
/* Every fourth input is undisturbed, another fourth has a single byte changed. Most descriptions that are chosen at
   random are refused, so most of these are taken only if they are not. */
FUZZ_FN size_t fuzz_fresh(uint32_t which, uint64_t *dice, uint8_t *out, size_t cap) {
    const size_t hits = which % 4, size = HEAD + RANKS_HIT_BYTES * hits;
    MUST(size <= cap);
    for (int tries = 0; tries < (which % 16 ? 64 : 1); tries++) {
        fuzz_bytes(dice, out, size);
        if (which % 8 >= 2) out[9] = 0; /* mostly without NaN, and nobody abstains */
        choose(out);
        if (is_accepted()) break;
    }
    for (size_t i = HEAD; i < size; i += RANKS_HIT_BYTES) {
        out[i + 1] %= 16; /* a message that there is */
        if (hits == 1) out[i + 4] = HIT_BYTE;
    }
    return size;
}
