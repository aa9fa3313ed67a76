/* The bytes that cross are part of the format: a hash of everything that ranks of one exchange tell each other,
   and of what they end with, must never change and is the same on every machine, whatever its byte order. */
#include "greatest.h"
#define COMPGRAD_IMPLEMENTATION
#include "sim.h"

typedef struct wire_case {
    size_t n;
    const char *op;
    uint32_t route;
    int size, which, carry;
    uint32_t fold, flags;
    uint64_t crossed, result;
} wire_case;
static wire_case cases[] = {
#include "wire.h"
    { 0, NULL, 0, 0, 0, 0, 0, 0, 0, 0 }
};
enum { N = 150001 }; /* at most: two blocks and a rest */

/* Integers and shifts only, so that every machine has the same. */
static void fill(float *x, size_t n, uint32_t seed) {
    for (size_t i = 0; i < n; i++) {
        uint32_t h = (uint32_t)i * 2654435761u + seed * 40503u;
        h = (h ^ h >> 15) * 2246822519u;
        h ^= h >> 13;
        x[i] = (float)((int32_t)(h & 0xffff) - 32768) * (float)(1u << (h >> 28)) / 16384.0f;
    }
}
static uint64_t hash(uint64_t h, const float *x, size_t n) {
    for (size_t i = 0; i < n; i++) {
        uint32_t u;
        memcpy(&u, &x[i], 4);
        for (int b = 0; b < 4; b++) h = (h ^ (u >> 8 * b & 255)) * 0x100000001b3u;
    }
    return h;
}
static int run(const wire_case *c, uint64_t *crossed, uint64_t *result) {
    static float x[SIM_MOST][N], carry[SIM_MOST][N];
    float *all[SIM_MOST];
    cg_exchange_desc desc = CG_ZERO;
    static sim s;
    int ok = 1;
    if (cg_op_parse(&desc.op, c->op) != CG_OK) return 0;
    desc.route = c->route;
    desc.fold = c->fold;
    desc.flags = c->flags;
    desc.tag.seed = 11;
    desc.tag.step = 5;
    desc.tag.tensor = 2;
    for (int r = 0; r < c->size; r++) {
        fill(x[r], c->n, (uint32_t)r + 1);
        fill(carry[r], c->n, (uint32_t)r + 100);
        all[r] = x[r];
    }
    sim_open(&s, c->size, c->which, 1, &desc, all, c->n);
    for (int r = 0; r < c->size; r++)
        if (c->carry) s.rank[r].desc.carry = carry[r];
    sim_run(&s);
    *result = 0xcbf29ce484222325u;
    for (int r = 0; r < c->size; r++) {
        ok &= s.rank[r].status == CG_OK;
        *result = hash(hash(*result, x[r], c->n), carry[r], c->n);
    }
    *crossed = s.transcript;
    sim_close(&s);
    return ok;
}
TEST frozen(const wire_case *c) {
    uint64_t crossed, result;
    ASSERTm(c->op, run(c, &crossed, &result));
    if (crossed != c->crossed || result != c->result)
        printf("\n%lu: %s, route %u, %d ranks: 0x%016llx, 0x%016llx", (unsigned long)c->n, c->op, (unsigned)c->route,
            c->size, (unsigned long long)crossed, (unsigned long long)result);
    ASSERT_EQm(c->op, crossed, c->crossed);
    ASSERT_EQm(c->op, result, c->result);
    PASS();
}

GREATEST_MAIN_DEFS();
int main(int argc, char **argv) {
    GREATEST_MAIN_BEGIN();
    for (const wire_case *c = cases; c->op; c++) RUN_TESTp(frozen, c);
    GREATEST_MAIN_END();
}
