/* cc -O2 -pthread -I. examples/diloco.c -o diloco -lm && ./diloco

   Four workers, here threads, train one model, each on data of its own, and average only every 25th step. Averaging
   less often saves more than any operator does, and operators come on top of it. DiLoCo gives the averages momentum,
   so that fewer of them go as far; SparseLoCo sends 5 % of a difference in 4 bits each; Streaming DiLoCo sends a
   quarter of the model at a time, and goes on training while it is under way. */

#define _POSIX_C_SOURCE 200809L /* for transport_threads.h, under -std=c99 */
#define COMPGRAD_IMPLEMENTATION
#include "compgrad_sync.h"
#include "transport_threads.h"

#include <math.h>
#include <stdio.h>

enum { RANKS = 4, N = 4096, SAMPLES = 512, BATCH = 16, STEPS = 2000 };

static float sample[RANKS][SAMPLES][N], label[RANKS][SAMPLES];

static uint32_t random_of(uint32_t *h) {
    *h = *h * 1664525u + 1013904223u;
    return *h >> 8;
}
static float uniform(uint32_t *h) { return (float)random_of(h) / 8388608.0f - 1.0f; }

/* Sparse features: a sample has about one in sixteen of them, and each rank has some that are its own. */
static void make_samples(void) {
    static float truth[N];
    uint32_t h = 1;
    for (int i = 0; i < N; i++) truth[i] = uniform(&h);
    for (int r = 0; r < RANKS; r++)
        for (int k = 0; k < SAMPLES; k++) {
            float y = uniform(&h);
            for (int i = 0; i < N; i++) {
                const int here = random_of(&h) % (i % RANKS == r ? 8 : 24) == 0;
                sample[r][k][i] = here ? uniform(&h) : 0;
                y += truth[i] * sample[r][k][i];
            }
            label[r][k] = y < 0 ? -1.0f : 1.0f;
        }
}
static float margin(int r, int k, const float *x) {
    float sum = 0;
    for (int i = 0; i < N; i++) sum += sample[r][k][i] * x[i];
    return label[r][k] * sum;
}
static void local_step(int r, uint32_t *h, float *x) {
    static float grad[RANKS][N];
    for (int i = 0; i < N; i++) grad[r][i] = 1e-3f * x[i];
    for (int b = 0; b < BATCH; b++) {
        const int k = (int)(random_of(h) % SAMPLES);
        const float f = -label[r][k] / (1 + expf(margin(r, k, x))) / BATCH;
        for (int i = 0; i < N; i++) grad[r][i] += f * sample[r][k][i];
    }
    for (int i = 0; i < N; i++) x[i] -= 0.05f * grad[r][i];
}
static double loss(const float *x) {
    double sum = 0;
    for (int i = 0; i < N; i++) sum += 5e-4 * (double)x[i] * (double)x[i];
    for (int r = 0; r < RANKS; r++)
        for (int k = 0; k < SAMPLES; k++) sum += log1p(exp(-(double)margin(r, k, x))) / (RANKS * SAMPLES);
    return sum;
}

typedef struct job {
    cg_local_desc desc;
    double bytes[RANKS], loss[2]; /* half way, and at the end */
    int averages;
} job;

static int rank_of(cg_threads_world *world, int rank, void *user) {
    job *j = (job *)user;
    const cg_transport net = cg_threads_transport(world, rank, CG_THREADS_ALL);
    static float x[RANKS][N];
    cg_exchange_desc exchange = CG_ZERO;
    cg_report report;
    cg_local local;
    void *state = malloc(cg_local_memory(&j->desc) + 1), *mem = NULL;
    size_t bytes = 0;
    uint32_t h = (uint32_t)rank + 77;
    cg_status s;
    memset(x[rank], 0, sizeof x[rank]);
    s = cg_local_init(&local, &j->desc, x[rank], state, cg_local_memory(&j->desc));
    if (s == CG_OK) {
        bytes = cg_local_step_memory(&local, &exchange, &net, 0);
        mem = malloc(bytes);
    }
    for (uint64_t step = 0; step < STEPS && s == CG_OK; step++) {
        local_step(rank, &h, x[rank]);
        s = cg_local_step(&local, &exchange, &net, x[rank], step, mem, bytes, &report);
        j->bytes[rank] += (double)report.bytes_out / STEPS;
        if (!rank && report.rounds) j->averages++;
        if (!rank && (step + 1) % (STEPS / 2) == 0) j->loss[step >= STEPS / 2] = loss(cg_local_anchor(&local));
    }
    if (s != CG_OK) fprintf(stderr, "rank %d: %s\n", rank, cg_status_str(s));
    free(mem);
    free(state);
    return (int)s;
}

static int run(const char *name, const char *op, job j) {
    if (cg_op_parse(&j.desc.ef.op, op) != CG_OK) return 1;
    j.desc.ef.n = N;
    if (cg_threads_run(RANKS, rank_of, &j)) return 1;
    printf("%-24s %-34s %8d %10.0f %8.4f %8.4f\n", name, op, j.averages, j.bytes[1], j.loss[0], j.loss[1]);
    return 0;
}

int main(void) {
    const char *const sparse = "chunked:1024:0.05|absmax:4:64:nearest";
    job j = CG_ZERO;
    int bad;
    make_samples();
    printf(
        "%d workers train %d weights for %d steps each, and average now and then.\n\n", (int)RANKS, (int)N, (int)STEPS);
    printf(
        "method                   operator                           averages bytes/step  loss, half way and last\n");
    bad = run("every step", "dense", j);
    j.desc.period = 25;
    bad |= run("local SGD", "dense", j);
    bad |= run("Qsparse-local-SGD", "topk:0.01", j);
    j.desc.outer_rate = 0.7f, j.desc.outer_momentum = 0.9f, j.desc.nesterov = 1;
    bad |= run("DiLoCo", "dense", j);
    bad |= run("DiLoCo", "absmax:4:512", j);
    j.desc.fragments = 4, j.desc.delay = 3, j.desc.mix = 0.5f;
    bad |= run("Streaming DiLoCo", "absmax:4:512", j);
    memset(&j, 0, sizeof j);
    j.desc.period = 25, j.desc.ef.decay = 0.95f, j.desc.outer_rate = 1;
    bad |= run("SparseLoCo", sparse, j);
    return bad;
}
