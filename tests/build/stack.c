/* How much stack compress and decode really use: on a painted stack of our own, for every golden case
   and ISA. -fstack-usage sees single functions only; this sees the sum along the calls. */
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>
#include "golden.h"
#define COMPGRAD_IMPLEMENTATION
#include "compgrad.h"

enum { STACK = 1 << 20, LIMIT = 40 << 10, PAINT = 0xa5 };
static unsigned char stack[STACK];
static float x[GOLDEN_MAX], y[GOLDEN_MAX];
static ucontext_t back, there;
static cg_op op;
static void *packet, *scratch;
static size_t n, cap, scratch_bytes;
static int code;

static void nothing(void) { memset(y, 0, sizeof y); memcpy(x, y, sizeof x); }

static void work(void) {
    size_t len;
    cg_side direct = CG_ZERO;
    cg_info info;
    direct.flags = CG_DECODE_DIRECT;
    code = cg_compress(&op, NULL, x, n, packet, cap, &len, scratch, scratch_bytes) != CG_OK
        || cg_decompress(packet, len, y, n) != CG_OK || cg_decode(NULL, packet, len, 0.5f, 2, y, n) != CG_OK
        || cg_decode(&direct, packet, len, 1, 0, y, n) != CG_OK || cg_clear(packet, len, y, n) != CG_OK
        || cg_inspect(packet, len, &info) != CG_OK;
}

static long depth(void (*f)(void)) {
    long i = 0;
    memset(stack, PAINT, STACK);
    getcontext(&there);
    there.uc_stack.ss_sp = stack;
    there.uc_stack.ss_size = STACK;
    there.uc_link = &back;
    makecontext(&there, f, 0);
    swapcontext(&back, &there);
    while (i < STACK && stack[i] == PAINT) i++;
    return STACK - i;
}

int main(void) {
    long most = 0, own = depth(nothing);        /* the C library's share */
    const char *where = "";
    for (int isa = CG_ISA_SCALAR; isa <= CG_ISA_NEON; isa++) {
        if (cg_isa_force((cg_isa)isa) != CG_OK) continue;
        for (int i = 0; i < GOLDEN_CASES; i++)
            for (int large = 0; large < 2; large++) {
                n = large ? (size_t)GOLDEN_MAX : golden_cases[i].n;
                if (cg_op_parse(&op, golden_cases[i].op) != CG_OK) return 1;
                cap = cg_bound(&op, n), scratch_bytes = cg_scratch(&op, n);
                packet = malloc(cap), scratch = malloc(scratch_bytes + 1);
                golden_fill(x, n);
                long d = depth(work) - own;
                if (code) { printf("%s failed\n", golden_cases[i].op); return 1; }
                if (d > most) most = d, where = golden_cases[i].op;
                free(packet);
                free(scratch);
            }
    }
    printf("%ld bytes of stack, by %s\n", most, where);
    return most > LIMIT;
}
