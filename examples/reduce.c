/* cc -O2 -I. examples/reduce.c -o reduce && ./reduce

   A server that never decodes: four workers send packets, and the server answers with a packet. Sparse packets are
   merged by index; TernGrad packets with one scale that all workers agreed on are added as integers; signs are
   counted. */

#define COMPGRAD_IMPLEMENTATION
#include "compgrad.h"

#include <stdio.h>
#include <stdlib.h>

enum { N = 100000, WORKERS = 4 };

static float gradient(size_t i, unsigned worker) /* in [-1, 1); a few large, most small */
{
    uint32_t h = (uint32_t)i * 2654435761u ^ (worker + 1) * 0x9E3779B9u;
    float u;
    h = (h ^ h >> 15) * 0x85EBCA6Bu;
    u = (float)(h >> 8) / 8388608.0f - 1.0f;
    return u * u * u;
}

static int check(cg_status s, const char *what) {
    if (s != CG_OK) fprintf(stderr, "%s: %s\n", what, cg_status_str(s));
    return s != CG_OK;
}

/* Compresses on every worker, sums on the server, and compares with the sum of what the workers' packets hold. */
static int run(const char *text, const float *agreed_scale, int vote) {
    static float x[N], sum[N], plain[N];
    void *packets[WORKERS], *result = NULL, *scratch = NULL;
    const void *in[WORKERS];
    size_t lens[WORKERS], bound = 0, need = 0, len = 0, sent = 0, i, differ = 0;
    cg_extra side = CG_ZERO;
    cg_op op;
    unsigned w;
    if (check(cg_op_parse(&op, text), text)) return 1;
    side.scale = agreed_scale;
    for (i = 0; i < N; i++) plain[i] = 0.0f;
    for (w = 0; w < WORKERS; w++) {
        cg_tag tag = { 42, 7, 0, 0 }; /* seed, step and tensor are shared, the rank is not */
        void *work = malloc(cg_scratch(&op, N) + 1);
        tag.rank = w;
        packets[w] = malloc(cg_bound(&op, N));
        in[w] = packets[w];
        for (i = 0; i < N; i++) x[i] = gradient(i, w);
        if (check(cg_compress_with(
                      &op, &tag, &side, x, N, packets[w], cg_bound(&op, N), &lens[w], work, cg_scratch(&op, N)),
                "compress"))
            return 1;
        if (check(cg_decompress_add(packets[w], lens[w], 1.0f, plain, N), "decompress")) return 1;
        sent += lens[w];
        free(work);
    }
    if (check(cg_reduce_plan(in, lens, WORKERS, &bound, &need), "plan")) return 1;
    result = malloc(bound);
    scratch = malloc(need + 1);
    if (vote ? check(cg_vote(in, lens, WORKERS, result, bound, &len), "vote")
             : check(cg_reduce(in, lens, WORKERS, result, bound, &len, scratch, need), "reduce"))
        return 1;
    if (check(cg_decompress(result, len, sum, N), "decompress")) return 1;
    for (i = 0; i < N; i++) differ += vote ? sum[i] != (plain[i] >= 0.0f ? 1.0f : -1.0f) : sum[i] != plain[i];
    printf("%-12s %d packets of %7lu bytes in, one of %7lu bytes out, %lu values differ from decode-then-%s\n", text,
        WORKERS, (unsigned long)(sent / WORKERS), (unsigned long)len, (unsigned long)differ, vote ? "vote" : "add");
    for (w = 0; w < WORKERS; w++) free(packets[w]);
    free(result);
    free(scratch);
    return differ != 0;
}

int main(void) {
    const float scale = 1.0f; /* the largest magnitude of all ranks, from an allreduce */
    printf("A server adds the packets of %d workers with %d values each, and decodes none of them.\n", WORKERS, N);
    return run("topk:0.01", NULL, 0) | run("terngrad", &scale, 0) | run("sign", NULL, 1);
}
