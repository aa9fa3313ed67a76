/* make small BEFORE=commit

   What one call costs where vectors are short: compress and decode of 64 values beside those of an earlier commit, and
   selections of 256, 1024 and 4096 values beside a naive heap. All take turns in one process; times are of this
   thread alone.

   This file is compiled three times: with SIDE=small_before and SIDE=small_after, against the headers of each, and
   without for main. It calls public functions only, so that the earlier commit may be as old as 0.1. */

#define _POSIX_C_SOURCE 200809L
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LONGEST = 4096 };
typedef struct small_side {
    size_t (*compress)(const char *op, const float *x, size_t n, uint8_t *packet, size_t cap);
    void (*decode)(const uint8_t *packet, size_t len, float *y, size_t n);
    void (*use)(const char *op, size_t n); /* before compress: what is done once */
} small_side;
extern const small_side small_before, small_after;

#ifdef SIDE
#  define COMPGRAD_IMPLEMENTATION
#  define COMPGRAD_STATIC
#  include "compgrad.h"

static cg_op op;
static uint8_t scratch[1 << 20];
static void side_use(const char *text, size_t n) {
    if (cg_op_parse(&op, text) != CG_OK || cg_scratch(&op, n) > sizeof scratch) exit(1);
}
static size_t side_compress(const char *text, const float *x, size_t n, uint8_t *packet, size_t cap) {
    size_t len;
    (void)text;
    if (cg_compress(&op, NULL, x, n, packet, cap, &len, scratch, sizeof scratch) != CG_OK) exit(1);
    return len;
}
static void side_decode(const uint8_t *packet, size_t len, float *y, size_t n) {
    if (cg_decompress(packet, len, y, n) != CG_OK) exit(1);
}
const small_side SIDE = { side_compress, side_decode, side_use };
#else
static float x[LONGEST], y[LONGEST];
static uint8_t packet[8 * LONGEST];
static size_t packet_len, sink;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}
/* What a user would write: a heap of the k largest magnitudes, its root the smallest of them, then 8 bytes for each. */
static size_t heap_topk(const float *v, size_t n, size_t k, uint8_t *out) {
    static uint32_t at[LONGEST];
    size_t many = 0;
    for (size_t i = 0; i < n; i++) {
        const float m = v[i] < 0.0f ? -v[i] : v[i];
        size_t p;
#  define MAGNITUDE(j) (v[at[j]] < 0.0f ? -v[at[j]] : v[at[j]])
        if (many < k) {
            for (p = many++; p && MAGNITUDE((p - 1) / 2) > m; p = (p - 1) / 2) at[p] = at[(p - 1) / 2];
            at[p] = (uint32_t)i;
        } else if (m > MAGNITUDE(0)) {
            for (p = 0; 2 * p + 1 < k;) {
                size_t child = 2 * p + 1;
                if (child + 1 < k && MAGNITUDE(child + 1) < MAGNITUDE(child)) child++;
                if (MAGNITUDE(child) >= m) break;
                at[p] = at[child];
                p = child;
            }
            at[p] = (uint32_t)i;
        }
    }
    for (size_t j = 0; j < many; j++) {
        memcpy(out + 8 * j, &at[j], 4);
        memcpy(out + 8 * j + 4, &v[at[j]], 4);
    }
    return 8 * many;
}
enum { COMPRESS, DECODE, HEAP };
typedef struct job {
    const small_side *side;
    int what;
    const char *op;
    size_t n, k;
} job;
static double run(const job *j, int times) {
    const double begin = now();
    for (int i = 0; i < times; i++) {
        if (j->what == COMPRESS) sink += j->side->compress(j->op, x, j->n, packet, sizeof packet);
        else if (j->what == DECODE) j->side->decode(packet, packet_len, y, j->n);
        else sink += heap_topk(x, j->n, j->k, packet);
    }
    return (now() - begin) / times;
}
static int ascending(const void *a, const void *b) {
    const double *x1 = (const double *)a, *x2 = (const double *)b;
    return (*x1 > *x2) - (*x1 < *x2);
}
/* Times of some jobs that take turns: of many rounds the one that a twentieth is below, as a clock of a virtual machine
   may be wrong when it is stopped. */
static void measure(const job *jobs, int many, double *ns) {
    enum { ROUNDS = 1200 };
    static double times[4][ROUNDS];
    for (int round = 0; round < ROUNDS; round++)
        for (int j = 0; j < many; j++) {
            const job *now_job = &jobs[j];
            if (now_job->what != HEAP) now_job->side->use(now_job->op, now_job->n);
            if (now_job->what == DECODE)
                packet_len = now_job->side->compress(now_job->op, x, now_job->n, packet, sizeof packet);
            times[j][round] = run(now_job, now_job->n > 64 ? 10 : 200);
        }
    for (int j = 0; j < many; j++) {
        qsort(times[j], ROUNDS, sizeof times[j][0], ascending);
        ns[j] = times[j][ROUNDS / 20];
    }
}
static void fill(void) {
    uint32_t s = 1;
    for (int i = 0; i < LONGEST; i++) {
        float sum = 0.0f;
        for (int j = 0; j < 4; j++) sum += (float)((s = s * 1664525u + 1013904223u) >> 8) / 16777216.0f - 0.5f;
        x[i] = sum;
    }
}
int main(void) {
    static const struct {
        const char *op;
        double most;
    } ops[] = { { "topk:0.01|absmax:4:512", 0.5 }, { "dense", 0.6 }, { "bf16", 0.6 }, { "absmax:8:512", 0.6 } };
    static const char *const selections[] = { "topk:0.01", "topk:0.1", "dgc:0.01", "dgc:0.1" };
    int slow = 0;
    double ns[4];
    fill();
    printf("%-22s %6s | %8s %8s %6s | %8s %8s %6s\n", "operator, 64 values", "goal", "encode", "after", "ratio",
        "decode", "after", "ratio");
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        const job jobs[] = { { &small_before, COMPRESS, ops[i].op, 64, 0 },
            { &small_after, COMPRESS, ops[i].op, 64, 0 }, { &small_before, DECODE, ops[i].op, 64, 0 },
            { &small_after, DECODE, ops[i].op, 64, 0 } };
        measure(jobs, 4, ns);
        printf("%-22s %6.2f | %6.0fns %6.0fns %5.2f%s | %6.0fns %6.0fns %5.2f%s\n", ops[i].op, ops[i].most, ns[0],
            ns[1], ns[1] / ns[0], ns[1] > ops[i].most * ns[0] ? "*" : " ", ns[2], ns[3], ns[3] / ns[2],
            ns[3] > ops[i].most * ns[2] ? "*" : " ");
        slow += (ns[1] > ops[i].most * ns[0]) + (ns[3] > ops[i].most * ns[2]);
    }
    printf("\n%-22s %6s | %8s %8s %8s %6s\n", "selection", "values", "heap", "before", "after", "ratio");
    for (size_t i = 0; i < sizeof selections / sizeof *selections; i++)
        for (size_t n = 256; n <= LONGEST; n *= 4) {
            const size_t k = (size_t)(atof(strchr(selections[i], ':') + 1) * (double)n + 0.5);
            const job jobs[] = { { NULL, HEAP, NULL, n, k }, { &small_before, COMPRESS, selections[i], n, 0 },
                { &small_after, COMPRESS, selections[i], n, 0 } };
            measure(jobs, 3, ns);
            printf("%-22s %6d | %6.0fns %6.0fns %6.0fns %5.2f%s\n", selections[i], (int)n, ns[0], ns[1], ns[2],
                ns[2] / ns[0], ns[2] > ns[0] ? "*" : "");
            slow += ns[2] > ns[0];
        }
    printf("*: slower than the goal, or than the heap: %d\n", slow);
    return sink == 42 ? 2 : 0;
}
#endif
