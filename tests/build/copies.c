/* Several copies of the library in one program. Compiled with -DCOPY=name this is a function of that
   name beside its own implementation (private with COMPGRAD_STATIC); without, the program that calls
   them and uses the one public copy itself. All must make the same packets and floats. */
#include <stdio.h>
#include "golden.h"
#ifdef COPY
#  define COMPGRAD_IMPLEMENTATION
#else
#  define COPY mine
#endif
#include "compgrad_ef.h"
#include "compgrad_sketch.h"
#include "compgrad_sync.h"

#ifdef __cplusplus
#  define LINKED extern "C"
#else
#  define LINKED extern
#endif
LINKED uint64_t COPY(void);
LINKED uint64_t copy_a(void);
LINKED uint64_t copy_b(void);
LINKED uint64_t copy_c(void);

static float x[GOLDEN_N], y[GOLDEN_N];
static unsigned char packet[1 << 16], scratch[1 << 21];

uint64_t COPY(void) {
    uint64_t h = 0;
    for (int i = 0; i < GOLDEN_CASES; i++) {
        size_t n = golden_cases[i].n, len;
        cg_op op;
        cg_extra side;
        if (n > GOLDEN_N) continue;
        golden_fill(x, n);
        if (cg_op_parse(&op, golden_cases[i].op) != CG_OK || golden_side(&op, NULL, x, n, &side)) return 0;
        if (cg_compress_with(&op, NULL, &side, x, n, packet, sizeof packet, &len, scratch, sizeof scratch) != CG_OK)
            return 0;
        if (cg_decode(&side, packet, len, 1, 0, y, n) != CG_OK) return 0;
        golden_side_done(&side);
        h = h * 31 + golden_hash(packet, len) + golden_hash_floats(y, n);
        {
            cg_exchange_desc desc = CG_ZERO;
            cg_transport alone = CG_ZERO;
            alone.size = 1;
            desc.op = cg_topk(0.1f);
            if (cg_exchange(&desc, &alone, y, n, scratch, sizeof scratch, NULL) != CG_OK) return 0;
            h = h * 31 + golden_hash_floats(y, n);
            if (n) {
                cg_ef_desc d = CG_ZERO;
                cg_ef ef;
                d.op = desc.op;
                d.n = n;
                if (cg_ef_init(&ef, &d, scratch, sizeof scratch) != CG_OK ||
                    cg_ef_compress(&ef, NULL, x, packet, sizeof packet, &len) != CG_OK ||
                    cg_ef_commit(&ef, packet, len, NULL) != CG_OK)
                    return 0;
                h = h * 31 + golden_hash(packet, len) + golden_hash_floats(cg_ef_residual(&ef), n);
            }
            {
                cg_sketch_desc d = CG_ZERO;
                cg_sketch sketch;
                d.rows = 3;
                d.n = n;
                d.cols = n + 1;
                if (cg_sketch_init(&sketch, &d, scratch, sizeof scratch) != CG_OK ||
                    cg_sketch_add(&sketch, x, n, 1) != CG_OK || cg_sketch_estimate_all(&sketch, y, n) != CG_OK)
                    return 0;
                h = h * 31 + golden_hash_floats(sketch.cells, sketch.count) + golden_hash_floats(y, n);
            }
        }
    }
    return h;
}

#ifndef COMPGRAD_IMPLEMENTATION
int main(void) {
    uint64_t a = copy_a(), b = copy_b(), c = copy_c(), m = mine();
    printf("%lx %lx %lx %lx\n", (unsigned long)a, (unsigned long)b, (unsigned long)c, (unsigned long)m);
    return m == 0 || a != m || b != m || c != m;
}
#endif
