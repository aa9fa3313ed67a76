/* cc -O2 -I. examples/simd.c -o simd && ./simd

   Which instruction sets this build and CPU have, that they all write the same bytes, and how fast each is.
   The library finds the best one by itself; forcing one is for tests and for curiosity. */

#define COMPGRAD_IMPLEMENTATION
#include "compgrad.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define N (1 << 20)
#define REPEATS 20

static const char *const operators[] = { "dense", "f16", "bf16", "sign", "efsign", "absmax:8:512",
    "absmax:8:512:nearest", "minmax:4:512", "terngrad", "threshold:0.4", "topk:0.01", "randk:0.01",
    "topk:0.01|absmax:4:512" };
/* the first is what the others must equal */
static const cg_isa isas[] = { CG_ISA_SCALAR, CG_ISA_AVX2, CG_ISA_NEON, CG_ISA_AVX512, CG_ISA_WASM };
enum { ISAS = sizeof isas / sizeof isas[0], OPERATORS = sizeof operators / sizeof operators[0] };

static uint32_t fnv1a(const void *p, size_t n) {
    const unsigned char *b = (const unsigned char *)p;
    uint32_t h = 2166136261u;
    while (n--) h = (h ^ *b++) * 16777619u;
    return h;
}

static double gbps(clock_t ticks) { return 4e-9 * N * CLOCKS_PER_SEC / (double)(ticks > 0 ? ticks : 1); }

int main(void) {
    const cg_tag tag = { 42, 1, 2, 3 };
    float *x = (float *)malloc(N * sizeof *x), *y = (float *)malloc(N * sizeof *y),
          *y0 = (float *)malloc(N * sizeof *y0);
    uint32_t r = 1;
    size_t i, j;
    int failed = 0;

    if (!x || !y || !y0) return 1;
    for (i = 0; i < N; i++) {
        float u;
        r = r * 1664525u + 1013904223u, u = (float)(r >> 8) / 16777216.0f - 0.5f;
        x[i] = u * u * u * 4.0f;
    }

    printf("Every operator in this list with every instruction set that this build and this CPU have.\n");
    printf("compgrad %s uses %s here. Found:", cg_version(), cg_isa_name(cg_isa_used()));
    for (j = 0; j < ISAS; j++)
        if (cg_isa_found(isas[j])) printf(" %s", cg_isa_name(isas[j]));
    printf("\n\n%-24s %-8s %10s %10s  %-10s %12s %12s\n", "operator", "isa", "bytes", "checksum", "", "encode GB/s",
        "decode GB/s");

    for (i = 0; i < OPERATORS; i++) {
        cg_op op;
        cg_status s = cg_op_parse(&op, operators[i]);
        const size_t cap = s == CG_OK ? cg_bound(&op, N) : 0, room = s == CG_OK ? cg_scratch(&op, N) : 0;
        unsigned char *first = (unsigned char *)malloc(cap + 1), *packet = (unsigned char *)malloc(cap + 1);
        void *scratch = malloc(room + 1);
        size_t first_len = 0, len = 0;
        if (!first || !packet || !scratch) return 1;

        for (j = 0; s == CG_OK && j < ISAS; j++) {
            clock_t encode = 0, decode = 0, t;
            int k, same = 1;
            if (cg_isa_force(isas[j]) != CG_OK) continue; /* not in this build or CPU */
            for (k = 0; s == CG_OK && k < REPEATS; k++) {
                t = clock();
                s = cg_compress(&op, &tag, x, N, packet, cap, &len, scratch, room);
                encode += clock() - t;
                t = clock();
                if (s == CG_OK) s = cg_decompress(packet, len, y, N);
                decode += clock() - t;
            }
            if (s != CG_OK) break;
            if (!first_len) {
                memcpy(first, packet, first_len = len);
                memcpy(y0, y, N * sizeof *y);
            } else {
                same = len == first_len && !memcmp(packet, first, len) && !memcmp(y, y0, N * sizeof *y);
            }
            failed |= !same;
            printf("%-24s %-8s %10lu   %08lx  %-10s %12.2f %12.2f\n", operators[i], cg_isa_name(isas[j]),
                (unsigned long)len, (unsigned long)fnv1a(packet, len), same ? "same" : "DIFFERENT",
                REPEATS * gbps(encode), REPEATS * gbps(decode));
        }
        if (s != CG_OK) {
            fprintf(stderr, "%s: %s\n", operators[i], cg_status_str(s));
            return 1;
        }
        free(first);
        free(packet);
        free(scratch);
    }
    if (cg_isa_force(CG_ISA_AUTO) != CG_OK) failed = 1; /* back to what the CPU has */
    free(x);
    free(y);
    free(y0);
    puts(failed ? "\nThe packets differ: please report this." : "\nEvery instruction set wrote the same bytes.");
    return failed;
}
