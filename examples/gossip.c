/* cc -O2 -pthread -I. examples/gossip.c -o gossip -lm && ./gossip

   Eight nodes, here threads, train one model without a server and without an allreduce: each knows only its
   neighbours in a graph, and mixes its model with theirs after every step. What a node sends is compressed by any
   operator; whether that converges depends on what is compressed. Models themselves (naive) stall: what is lost is
   lost in every step again. Differences (DCD, CHOCO) do not. */

#define _POSIX_C_SOURCE 200809L /* for transport_threads.h, under -std=c99 */
#define COMPGRAD_IMPLEMENTATION
#include "compgrad_sync.h"
#include "transport_threads.h"

#include <math.h>
#include <stdio.h>

enum { NODES = 8, N = 512, SAMPLES = 64, STEPS = 1500 };

/* logistic regression; every node has samples of its own */
static float sample[NODES][SAMPLES][N], label[NODES][SAMPLES];
static float model[NODES][N];

static float uniform(void) { /* -1 to 1 */
    static uint32_t h = 1;
    h = h * 1664525u + 1013904223u;
    return (float)(h >> 8) / 8388608.0f - 1.0f;
}
static void make_samples(void) {
    static float truth[N];
    for (int i = 0; i < N; i++) truth[i] = uniform();
    for (int r = 0; r < NODES; r++)
        for (int k = 0; k < SAMPLES; k++) {
            float y = 4 * uniform();
            for (int i = 0; i < N; i++) {
                sample[r][k][i] = 0.2f * uniform() + 0.01f * (float)((r + i) % 3 - 1);
                y += 10 * truth[i] * sample[r][k][i];
            }
            label[r][k] = y < 0 ? -1.0f : 1.0f;
        }
}
static float margin(int r, int k, const float *x) {
    float sum = 0;
    for (int i = 0; i < N; i++) sum += sample[r][k][i] * x[i];
    return label[r][k] * sum;
}
static void gradient(int r, const float *x, float *grad) {
    for (int i = 0; i < N; i++) grad[i] = 0.01f * x[i];
    for (int k = 0; k < SAMPLES; k++) {
        const float f = -label[r][k] / (1 + expf(margin(r, k, x))) / SAMPLES;
        for (int i = 0; i < N; i++) grad[i] += f * sample[r][k][i];
    }
}
/* of all samples, by the mean of all models; apart: how far a model is from it */
static double loss(double *apart) {
    static float mean[N];
    double sum = 0;
    *apart = 0;
    for (int i = 0; i < N; i++) {
        mean[i] = 0;
        for (int r = 0; r < NODES; r++) mean[i] += model[r][i] / NODES;
        for (int r = 0; r < NODES; r++) *apart += pow((double)(model[r][i] - mean[i]), 2) / NODES;
        sum += 0.005 * (double)mean[i] * (double)mean[i];
    }
    *apart = sqrt(*apart);
    for (int r = 0; r < NODES; r++)
        for (int k = 0; k < SAMPLES; k++) sum += log1p(exp(-(double)margin(r, k, mean))) / (NODES * SAMPLES);
    return sum;
}

typedef struct job {
    const cg_graph *graph;
    const char *op;
    uint32_t kind;
    float eta;
    double bytes[NODES];
    char why[NODES][200];
} job;

static int node(cg_threads_world *world, int rank, void *user) {
    job *j = (job *)user;
    const cg_transport net = cg_threads_transport(world, rank, CG_THREADS_ALL);
    static float grad[NODES][N];
    cg_gossip_desc d = CG_ZERO;
    cg_gossip gossip;
    cg_report report;
    void *state;
    cg_status s = cg_op_parse(&d.op, j->op);
    d.n = N, d.kind = j->kind, d.eta = j->eta, d.graph = j->graph, d.rank = rank, d.seed = 42;
    for (int i = 0; i < N; i++) model[rank][i] = 0;
    state = malloc(cg_gossip_memory(&d) + 1);
    if (s == CG_OK) s = cg_gossip_init(&gossip, &d, model[rank], state, cg_gossip_memory(&d));
    if (s != CG_OK) snprintf(j->why[rank], sizeof j->why[rank], "%s", cg_gossip_why(&gossip));
    for (uint64_t step = 0; step < STEPS && s == CG_OK; step++) {
        gradient(rank, model[rank], grad[rank]);
        s = cg_gossip_step(&gossip, &net, model[rank], grad[rank], 0.5f / (1 + (float)step / 300), step, &report);
        j->bytes[rank] += (double)report.bytes_out / STEPS;
    }
    free(state);
    return (int)s;
}

static int run(const cg_graph *graph, const char *where, const char *name, uint32_t kind, const char *op, float eta) {
    job j = CG_ZERO;
    double l, apart;
    j.graph = graph, j.kind = kind, j.op = op, j.eta = eta;
    printf("%-12s %-12s %-20s ", where, name, op);
    fflush(stdout);
    if (cg_threads_run(NODES, node, &j)) {
        printf("refused: %s\n", j.why[0]);
        return 1;
    }
    l = loss(&apart);
    printf("%7.0f %9.4f %9.4f\n", j.bytes[1], l, apart);
    return 0;
}

int main(void) {
    static char room[2][1 << 14], why[200];
    cg_graph ring, exponential;
    cg_graph_desc d = CG_ZERO;
    int bad = 0;
    d.nodes = NODES;
    if (cg_graph_init(&ring, &d, room[0], sizeof room[0], why, sizeof why) != CG_OK) return puts(why), 1;
    d.kind = CG_GRAPH_EXPONENTIAL;
    if (cg_graph_init(&exponential, &d, room[1], sizeof room[1], why, sizeof why) != CG_OK) return puts(why), 1;
    make_samples();
    printf(
        "%d nodes train by gossip, %d steps. Distances from the mean shrink by 1 - gap per step: the gap is %.3f on a\n"
        "ring, %.3f on an exponential graph; DCD survives operators with omega up to %.2f and %.2f there.\n\n",
        (int)NODES, (int)STEPS, cg_graph_gap(&ring), cg_graph_gap(&exponential), cg_graph_omega(&ring),
        cg_graph_omega(&exponential));
    printf("graph        kind         operator             bytes/step    loss     apart\n");
    bad |= run(&ring, "ring", "D-SGD", CG_GOSSIP_DSGD, "dense", 0);
    bad |= run(&exponential, "exponential", "D-SGD", CG_GOSSIP_DSGD, "dense", 0);
    bad |= run(&ring, "ring", "naive", CG_GOSSIP_NAIVE, "absmax:4:512", 0);
    bad |= run(&ring, "ring", "DCD", CG_GOSSIP_DCD, "absmax:4:512", 0);
    bad |= run(&ring, "ring", "DeepSqueeze", CG_GOSSIP_DEEPSQUEEZE, "absmax:2:512:nearest", 0.1f);
    bad |= run(&ring, "ring", "CHOCO", CG_GOSSIP_CHOCO, "absmax:2:512:nearest", 0.4f);
    bad |= run(&ring, "ring", "CHOCO", CG_GOSSIP_CHOCO, "topk:0.01", 0.05f);
    bad |= !run(&ring, "ring", "DCD", CG_GOSSIP_DCD, "randk:0.25", 0); /* it would diverge */
    return bad;
}
