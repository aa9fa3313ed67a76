/* cc -O2 -I. examples/quickstart.c -o quickstart && ./quickstart

   Four workers, here in one process, agree on the mean of their gradients by exchanging packets:
   the 1 % largest values of each, every one as a half float. */

#define COMPGRAD_IMPLEMENTATION
#include "compgrad.h"

#include <stdio.h>
#include <stdlib.h>

#define N 100000
#define WORKERS 4

static float grad[N], mean[N], truth[N];

/* A few large values that the workers share, under small noise that they do not. */
static void make_gradient(float *g, unsigned worker) {
    uint32_t signal = 1, noise = 100 + worker;
    int i;
    for (i = 0; i < N; i++) {
        signal = signal * 1664525u + 1013904223u;
        noise = noise * 1664525u + 1013904223u;
        g[i] = (float)(noise >> 8) / 16777216.0f - 0.5f;
        if (signal >> 24 == 0) g[i] += (float)(signal & 0xffffu) / 1024.0f - 32.0f;
    }
}

int main(void) {
    double error = 0, norm = 0;
    unsigned worker;
    int i;

    const cg_op op = cg_then(cg_topk(0.01f), cg_f16());
    const size_t cap = cg_bound(&op, N), room = cg_scratch(&op, N);
    void *packet = malloc(cap), *scratch = malloc(room);
    if (!packet || !scratch) return 1;

    printf("%d workers send the 1 %% largest of %d values each, as half floats.\n", WORKERS, N);
    for (worker = 0; worker < WORKERS; worker++) {
        cg_tag tag = { 42, 0, 0, 0 }; /* seed, step, tensor, rank */
        size_t len;
        cg_status s;
        tag.rank = worker;
        make_gradient(grad, worker);
        for (i = 0; i < N; i++) truth[i] += grad[i] / WORKERS;

        s = cg_compress(&op, &tag, grad, N, packet, cap, &len, scratch, room);
        /* ... here the len bytes would cross the network ... */
        if (s == CG_OK) s = cg_decompress_add(packet, len, 1.0f / WORKERS, mean, N);
        if (s != CG_OK) {
            fprintf(stderr, "worker %u: %s\n", worker, cg_status_str(s));
            return 1;
        }
        printf("worker %u sent %lu bytes instead of %lu\n", worker, (unsigned long)len, (unsigned long)sizeof grad);
    }

    for (i = 0; i < N; i++) {
        double d = (double)mean[i] - (double)truth[i];
        error += d * d;
        norm += (double)truth[i] * (double)truth[i];
    }
    printf("the mean of the packets is off by %.1f %% of the energy of the true mean\n", 100 * error / norm);
    free(packet);
    free(scratch);
    return error < 0.25 * norm ? 0 : 1;
}
