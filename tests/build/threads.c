/* Prints hashes of packets and decoded floats of a vector large enough to be split over threads. */
#include <stdio.h>
#include <stdlib.h>
#include "golden.h"
#define COMPGRAD_IMPLEMENTATION
#include "compgrad.h"

enum { N = 1500007 };
static float x[N], y[N];

int main(void) {
    golden_fill(x, N);
    for (int i = 0; i < GOLDEN_CASES; i++) {
        cg_op op;
        cg_tag tag = { 5, 6, 7, 8 };
        size_t len;
        if (golden_cases[i].n != GOLDEN_N) continue;
        if (cg_op_parse(&op, golden_cases[i].op) != CG_OK) return 1;
        size_t cap = cg_bound(&op, N), scratch_bytes = cg_scratch(&op, N);
        void *packet = malloc(cap), *scratch = malloc(scratch_bytes + 1);
        if (!packet || !scratch) return 1;
        if (cg_compress(&op, &tag, x, N, packet, cap, &len, scratch, scratch_bytes) != CG_OK) return 1;
        printf("%s %lu %08lx", golden_cases[i].op, (unsigned long)len, (unsigned long)(golden_hash(packet, len) >> 32));
        if (cg_decompress(packet, len, y, N) != CG_OK) return 1;
        printf(" %08lx", (unsigned long)(golden_hash_floats(y, N) >> 32));
        if (cg_decode(NULL, packet, len, 0.3f, 0.7f, y, N) != CG_OK) return 1;
        printf(" %08lx\n", (unsigned long)(golden_hash_floats(y, N) >> 32));
        free(packet);
        free(scratch);
    }
    return 0;
}
