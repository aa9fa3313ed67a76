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
        cg_tag tag = { 5, 6, 7, 3 };
        cg_side side;
        size_t len, n = N;
        if (golden_cases[i].n != GOLDEN_N) continue;
        if (cg_op_parse(&op, golden_cases[i].op) != CG_OK) return 1;
        if (op.transform.id == CG_TRANSFORM_LOWRANK) n = 1500000, op.transform.size = 1500, op.transform.value = 1000;
        if (op.transform.id == CG_TRANSFORM_ATOMO) n = 1500000, op.transform.size = 20000, op.transform.value = 75;      /* its cost grows with the cube of the smaller one */
        if (golden_side(&op, &tag, x, n, &side)) return 1;
        size_t cap = cg_bound(&op, n), scratch_bytes = cg_scratch(&op, n);
        void *packet = malloc(cap + 1), *scratch = malloc(scratch_bytes + 1);
        if (!packet || !scratch) return 1;
        if (cg_compress_with(&op, &tag, &side, x, n, packet, cap, &len, scratch, scratch_bytes) != CG_OK) return 1;
        printf("%s %lu %08lx", golden_cases[i].op, (unsigned long)len, (unsigned long)(golden_hash(packet, len) >> 32));
        if (cg_decode(&side, packet, len, 1, 0, y, n) != CG_OK) return 1;
        printf(" %08lx", (unsigned long)(golden_hash_floats(y, n) >> 32));
        if (cg_decode(&side, packet, len, 0.3f, 0.7f, y, n) != CG_OK) return 1;
        printf(" %08lx\n", (unsigned long)(golden_hash_floats(y, n) >> 32));
        free(packet);
        free(scratch);
        golden_side_done(&side);
    }
    return 0;
}
