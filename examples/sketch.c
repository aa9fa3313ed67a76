/* cc -O2 -pthread -I. examples/sketch.c -o sketch && ./sketch

   Four workers. First each makes a sketch of its gradient, nine times smaller; the sum of the sketches is the sketch
   of the sum, and shows where that sum is large. Then, as threads, they train by Sketched-SGD: in every step the ranks
   agree by a sketch on one coordinate in a thousand, exchange the values there, and keep the others as residuals. A
   value that waits in a residual for more than about 1 / rate steps comes too late and leads past the minimum. So the
   rate falls, as it does in training; with a constant one the loss would rise again in the end. */

#define _POSIX_C_SOURCE 200809L /* for transport_threads.h, under -std=c99 */
#define COMPGRAD_IMPLEMENTATION
#include "compgrad_sketch.h"
#include "transport_threads.h"
#include <stdio.h>

enum { RANKS = 4, N = 1 << 16, K = N / 1000, STEPS = 200, EVERY = 25 };
static const float first_rate = 0.02f;
static float rate_at(uint64_t step) { return first_rate * (1.0f - (float)step / (float)STEPS); }
/* rank r minimises |x - target[r]|^2 / 2, so all together |x - optimum|^2 / 2 */
static float target[RANKS][N], optimum[N];

static void must(cg_status s, const char *what) {
    if (s != CG_OK) fprintf(stderr, "%s: %s\n", what, cg_status_str(s)), exit(1);
}
static void *get(size_t bytes) {
    void *p = calloc(bytes, 1);
    must(p ? CG_OK : CG_E_MEMORY, "calloc");
    return p;
}
/* in [-1, 1) */
static float draw(uint32_t *state) {
    return (float)((*state = *state * 1664525u + 1013904223u) >> 8) / 8388608.0f - 1.0f;
}
static float size_of(float v) { return v < 0 ? -v : v; }
static int descending(const void *a, const void *b) {
    return (*(const float *)a < *(const float *)b) - (*(const float *)a > *(const float *)b);
}

/* a few large values that the ranks share, under small noise that they do not */
static void make_targets(void) {
    uint32_t shared = 1, own[RANKS] = { 11, 222, 3333, 44444 };
    for (int i = 0; i < N; i++) {
        const float s = draw(&shared), large = size_of(s) > 0.999f ? 20.0f * s : 0.0f;
        for (int r = 0; r < RANKS; r++) optimum[i] += (target[r][i] = large + 0.25f * draw(&own[r])) / (float)RANKS;
    }
}

static int find_heavy(void) {
    static float value[K], sorted[N];
    static uint64_t index[K];
    cg_sketch_desc d = CG_ZERO;
    cg_sketch all, one;
    int found = 0;
    d.rows = 5;
    d.cols = N / 50;
    d.n = N;
    d.seed = 42;
    size_t bytes = cg_sketch_memory(&d);
    char *mem = (char *)get(2 * bytes);
    must(cg_sketch_init(&all, &d, mem, bytes), "the sum");
    must(cg_sketch_init(&one, &d, mem + bytes, bytes), "a worker");
    for (int r = 0; r < RANKS; r++) { /* here one after the other; over a network: cg_sketch_exchange */
        cg_sketch_clear(&one);
        must(cg_sketch_add(&one, target[r], N, 1.0f), "a worker");
        must(cg_sketch_merge(&all, &one), "the sum");
    }
    size_t room = cg_sketch_heavy_scratch(&all, K);
    void *scratch = get(room);
    must(cg_sketch_heavy(&all, K, index, value, scratch, room), "recovery");
    for (int i = 0; i < N; i++) sorted[i] = size_of(optimum[i]);
    qsort(sorted, N, sizeof sorted[0], descending);
    for (int i = 0; i < K; i++) found += size_of(optimum[index[i]]) >= sorted[K - 1];
    printf("A gradient has %lu bytes, its sketch %lu. Of the %d largest sums %.0f %% are found.\n\n",
        (unsigned long)sizeof optimum, (unsigned long)(all.count * sizeof(float)), K, 100.0 * found / K);
    return free(scratch), free(mem), found;
}

static double loss(const float *x) {
    double sum = 0;
    for (int i = 0; i < N; i++) sum += (double)((x[i] - optimum[i]) * (x[i] - optimum[i])) / (2.0 * (double)N);
    return sum;
}

static int worker(cg_threads_world *world, int rank, void *bytes_out) {
    /* only this one, so that every byte is counted */
    const cg_transport net = cg_threads_transport(world, rank, CG_THREADS_SENDRECV);
    float *x = (float *)get(sizeof optimum), *grad = (float *)get(sizeof optimum);
    /* without compression every step takes away `rate` of what is left */
    double dense = loss(x), end = 0.1 * dense, last = 2 * dense;
    int rises = 0;
    cg_exchange_desc road = CG_ZERO;
    cg_sketched_desc d = CG_ZERO;
    cg_sketched sgd;
    cg_report report;
    d.sketch.rows = 5;
    d.sketch.cols = N / 200;
    d.sketch.n = N;
    d.sketch.seed = 42;
    d.k = K;
    void *state = get(cg_sketched_memory(&d));
    must(cg_sketched_init(&sgd, &d, state, cg_sketched_memory(&d)), "Sketched-SGD");
    size_t bytes = cg_sketched_exchange_memory(&sgd, &road, &net);
    void *mem = get(bytes);
    for (road.tag.step = 0;; road.tag.step++) {
        const float rate = rate_at(road.tag.step);
        if (road.tag.step % EVERY == 0) {
            const double now = loss(x);
            if (rank == 0)
                printf("step %3u: loss %.4f, without compression %.4f\n", (unsigned)road.tag.step, now, dense);
            fflush(stdout);
            rises |= now >= last;
            last = now;
        }
        if (road.tag.step == STEPS) break;
        for (int i = 0; i < N; i++) grad[i] = x[i] - target[rank][i];
        must(cg_sketched_exchange(&sgd, &road, &net, grad, mem, bytes, &report), "a step");
        /* grad: the mean, where it was exchanged; else 0 */
        for (int i = 0; i < N; i++) x[i] -= rate * grad[i];
        dense *= (1.0 - (double)rate) * (1.0 - (double)rate);
    }
    if (rank == 0) *(double *)bytes_out = (double)report.bytes_out;
    const int failed = rises || loss(x) > end;
    return free(x), free(grad), free(state), free(mem), failed;
}

int main(void) {
    double bytes = 1;
    printf("%d workers first find the largest sums of their gradients by sketches, then train by Sketched-SGD.\n\n",
        RANKS);
    make_targets();
    int few = find_heavy() < K * 3 / 4, code = cg_threads_run(RANKS, worker, &bytes);
    printf(
        "\nA step sent %.0f bytes; an allreduce of the gradients sends %.0f times as many.\n", bytes, 6.0 * N / bytes);
    return few || code;
}
