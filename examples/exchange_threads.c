/* cc -O2 -pthread -I. examples/exchange_threads.c -o exchange_threads && ./exchange_threads

   Four ranks, here threads of one process, exchange a gradient of a million values: the 1 % largest of each rank,
   then all of them as 4 bits. Every rank ends with the same mean, to the bit, and far fewer bytes have moved than
   without compression. */

#define _POSIX_C_SOURCE 200809L /* for transport_threads.h, under -std=c99 */
#define COMPGRAD_IMPLEMENTATION
#include "compgrad_exchange.h"
#include "transport_threads.h"

#include <stdio.h>

enum { RANKS = 4, N = 1000000 };

typedef struct job {
    const char *op;
    uint64_t hash[RANKS];
    cg_report report[RANKS];
} job;

/* A few large values that the ranks share, under small noise that they do not. */
static void make_gradient(float *g, int rank) {
    uint32_t signal = 1, noise = 100u + (uint32_t)rank;
    int i;
    for (i = 0; i < N; i++) {
        signal = signal * 1664525u + 1013904223u;
        noise = noise * 1664525u + 1013904223u;
        g[i] = (float)(noise >> 8) / 16777216.0f - 0.5f;
        if (signal >> 24 == 0) g[i] += (float)(signal & 0xffffu) / 1024.0f - 32.0f;
    }
}

static uint64_t hash(const float *x) {
    const unsigned char *p = (const unsigned char *)x;
    uint64_t h = 14695981039346656037u;
    size_t i;
    for (i = 0; i < N * sizeof *x; i++) h = (h ^ p[i]) * 1099511628211u;
    return h;
}

/* What every rank does. A code other than 0 makes the calls of those who wait for it fail as well. */
static int worker(cg_threads_world *world, int rank, void *user) {
    job *j = (job *)user;
    /* only this one, so that every byte that moves is counted */
    const cg_transport net = cg_threads_transport(world, rank, CG_THREADS_SENDRECV);
    cg_exchange_desc desc = CG_ZERO;
    float *grad = (float *)malloc(N * sizeof *grad);
    void *mem = NULL;
    size_t bytes = 0;
    cg_status s = cg_op_parse(&desc.op, j->op);
    /* seed, step and tensor are the same on all ranks; the rank is filled in */
    desc.tag.seed = 42;
    if (s == CG_OK) bytes = cg_exchange_memory(&desc, &net, N);
    mem = malloc(bytes + 1);
    if (s == CG_OK && (!grad || !mem)) s = CG_E_MEMORY;
    if (s == CG_OK) {
        make_gradient(grad, rank);
        s = cg_exchange(&desc, &net, grad, N, mem, bytes, &j->report[rank]); /* grad becomes the mean */
        if (s == CG_OK) j->hash[rank] = hash(grad);
        else fprintf(stderr, "rank %d: %s; %s\n", rank, cg_status_str(s), j->report[rank].why);
    }
    free(mem);
    free(grad);
    return (int)s;
}

static int run(const char *op) {
    job j = CG_ZERO;
    /* an allreduce by a ring, all ranks together */
    uint64_t sent = 0, plain = (uint64_t)N * sizeof(float) * 2 * (RANKS - 1);
    int r, agree = 1, code;
    j.op = op;
    code = cg_threads_run(RANKS, worker, &j);
    if (code) return code;
    for (r = 0; r < RANKS; r++) {
        sent += j.report[r].bytes_out;
        agree &= j.hash[r] == j.hash[0];
    }
    printf("%-13s %8lu bytes sent by %d ranks, %5.1f times fewer than %lu; %s\n", op, (unsigned long)sent, RANKS,
        (double)plain / (double)sent, (unsigned long)plain, agree ? "all ranks agree" : "THE RANKS DO NOT AGREE");
    return !agree;
}

int main(void) {
    printf(
        "%d ranks, threads of this process, exchange the mean of their gradients of %d values.\n", (int)RANKS, (int)N);
    return run("topk:0.01") | run("absmax:4:512") ? 1 : 0;
}
