/* cc -O2 -pthread -I. examples/error_feedback.c -o error_feedback && ./error_feedback

   Four workers, here threads, minimise the mean of four functions whose minima are far apart, and exchange only the
   1 % largest values of their gradients. Without error feedback they send the same large values again and again, which
   cancel in the mean, and never the rest. With error feedback the values that were not sent, the residual, are added to
   the next gradient, and all of them are sent in the end. Half way the residuals are saved and loaded, as in a restart;
   the figures do not change. */

#define _POSIX_C_SOURCE 200809L /* for transport_threads.h, under -std=c99 */
#define COMPGRAD_IMPLEMENTATION
#include "compgrad_ef.h"
#include "transport_threads.h"

#include <stdio.h>

enum { RANKS = 4, N = 10000, STEPS = 500, EVERY = 50 };
typedef enum plan { ALONE, CLASSIC, EF21, PLANS } plan;

/* rank r minimises |x - target[r]|^2 / 2; all of them |x - optimum|^2 / 2 */
static float target[RANKS][N], optimum[N];
typedef struct job {
    double loss[PLANS][STEPS / EVERY + 1];
} job;

static void make_targets(void) {
    uint32_t h = 1;
    int r, i;
    for (r = 0; r < RANKS; r++)
        for (i = 0; i < N; i++) {
            h = h * 1664525u + 1013904223u;
            target[r][i] = (float)(h >> 8) / 1677721.6f - 5.0f; /* in [-5, 5) */
            optimum[i] += target[r][i] / (float)RANKS;
        }
}

static double loss(const float *x) {
    double sum = 0;
    int i;
    for (i = 0; i < N; i++) sum += (double)((x[i] - optimum[i]) * (x[i] - optimum[i])) / (2.0 * (double)N);
    return sum;
}

/* What a worker remembers, as bytes, and back from them into a new one. */
static cg_status restart(cg_ef *ef, const cg_ef_desc *d, void *memory) {
    size_t len = 0, room = cg_ef_save_bytes(ef);
    void *blob = malloc(room);
    cg_status s = blob ? cg_ef_save(ef, blob, room, &len) : CG_E_MEMORY;
    /* ... here the len bytes would go to a file with the model, and the job would end ... */
    if (s == CG_OK) s = cg_ef_init(ef, d, memory, cg_ef_memory(d));
    if (s == CG_OK) s = cg_ef_load(ef, blob, len);
    free(blob);
    return s;
}

/* One worker's training. The model is the same on all ranks, as they all get the same result. */
static cg_status train(const cg_transport *net, plan how, double *losses) {
    static float model[RANKS][N], grads[RANKS][N];
    float *x = model[net->rank], *grad = grads[net->rank];
    cg_exchange_desc road = CG_ZERO;
    cg_ef_desc d = CG_ZERO;
    cg_ef ef;
    cg_report report;
    size_t bytes;
    void *memory, *mem;
    cg_status s;
    int i;
    d.op = road.op = cg_topk(0.01f);
    d.n = N;
    d.kind = how == EF21 ? CG_EF_EF21 : CG_EF_CLASSIC;
    memory = malloc(cg_ef_memory(&d));
    s = memory ? cg_ef_init(&ef, &d, memory, cg_ef_memory(&d)) : CG_E_MEMORY;
    bytes = s == CG_OK ? cg_ef_exchange_memory(&ef, &road, net) : 0;
    mem = malloc(bytes + 1);
    if (!mem) s = CG_E_MEMORY;
    for (i = 0; i < N; i++) x[i] = 0.0f;
    road.tag.seed = 42;
    for (road.tag.step = 0; s == CG_OK; road.tag.step++) {
        if (road.tag.step % EVERY == 0) losses[road.tag.step / EVERY] = loss(x);
        if (road.tag.step == STEPS) break;
        if (road.tag.step == STEPS / 2) s = restart(&ef, &d, memory);
        for (i = 0; i < N; i++) grad[i] = x[i] - target[net->rank][i];
        if (s != CG_OK) report.why = "the residual could not be restored";
        else if (how == ALONE) s = cg_exchange(&road, net, grad, N, mem, bytes, &report);
        /* grad: what to take a step with */
        else s = cg_ef_exchange(&ef, &road, net, grad, mem, bytes, &report);
        for (i = 0; i < N; i++) x[i] -= 0.01f * grad[i];
        if (s != CG_OK) fprintf(stderr, "rank %d: %s; %s\n", net->rank, cg_status_str(s), report.why);
    }
    free(mem);
    free(memory);
    return s;
}

static int worker(cg_threads_world *world, int rank, void *user) {
    const cg_transport net = cg_threads_transport(world, rank, CG_THREADS_ALL);
    job mine, *j = (job *)user;
    cg_status s = CG_OK;
    int how;
    for (how = 0; how < PLANS && s == CG_OK; how++) s = train(&net, (plan)how, mine.loss[how]);
    if (rank == 0) *j = mine;
    return (int)s;
}

int main(void) {
    job j;
    int i, code;
    printf("%d workers minimise a mean of functions by the 1 %% largest values of their gradients.\n", (int)RANKS);
    fflush(stdout);
    make_targets();
    code = cg_threads_run(RANKS, worker, &j);
    if (code) return code;
    printf("\nloss by step    top-k alone    with error feedback    EF21\n");
    for (i = 0; i <= STEPS / EVERY; i++)
        printf("%12d %14.4f %22.4f %7.4f\n", i * EVERY, j.loss[ALONE][i], j.loss[CLASSIC][i], j.loss[EF21][i]);
    i = STEPS / EVERY;
    printf("\nThe loss of EF21 goes to 0. That of classic error feedback falls to what the values that wait in the "
           "residuals\n"
           "leave, as the rate is constant; that of top-k alone stays.\n");
    return j.loss[CLASSIC][i] < 0.1 * j.loss[ALONE][i] ? 0 : 1;
}
