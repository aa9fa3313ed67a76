/* cc -O2 -pthread -I. examples/adam.c -o adam -lm && ./adam

   Four workers, here threads, train one network with AdamW, which predicts the next letter of a text of made-up words.
   Three times, with the same data: with dense gradients; with top-k and error feedback, in packets 300 times smaller;
   and with models in place of gradients, in packets as small. It takes half a minute. adam_mpi.c is the same over MPI.

   Adam divides by the root of a running mean of squared gradients. Where gradients are small it makes large steps,
   and there what waits in the residual is large: the last column says how many gradients wait, as Adam counts them.
   Above 3 it suffers. With optimizer=adam every worker's own AdamW takes its step first, on its own model with its
   own gradient, and cg_mean_step takes the models: what they have moved is sent by an unbiased operator, nothing
   waits, and all workers have the same model afterwards. The optimizer is not changed, and its moments are never
   sent. difference:sqrt takes twice the mean of what four models have moved: each variance has the noise of one
   worker, not of the mean. */

#define _POSIX_C_SOURCE 200809L /* for transport_threads.h, under -std=c99 */
#define COMPGRAD_IMPLEMENTATION
#include "compgrad_ef.h"
#ifdef ADAM_MPI
#  include "transport_mpi.h"
#else
#  include "transport_threads.h"
#endif

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { WORKERS = 4, STEPS = 600, BATCH = 16 };
enum { LETTERS = 32, SEEN = 5, CODE = 16, IN = SEEN * CODE, HIDDEN = 1024, WORDS = 500, TEXT = 400000, KEPT = 2000 };
/* the codes of letters, the hidden layer with its biases, the output */
enum { CODES = LETTERS * CODE, LAYER1 = (IN + 1) * HIDDEN, LAYER2 = HIDDEN * LETTERS, N = CODES + LAYER1 + LAYER2 };
static unsigned char text[TEXT];

static uint32_t random_below(uint64_t *state, uint32_t n) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((*state >> 33) * n >> 31);
}
/* Words of 2 to 9 letters; the k-th is drawn about 1/k as often as the first. Letter 0 stands between them. */
static void make_text(void) {
    static unsigned char word[WORDS][10];
    uint64_t state = 1;
    int at = 0;
    for (int w = 0; w < WORDS; w++)
        for (uint32_t i = 0, len = 2 + random_below(&state, 8); i < len; i++)
            word[w][i] = (unsigned char)(1 + random_below(&state, LETTERS - 1));
    while (at < TEXT) {
        const double u = (random_below(&state, 1000000) + .5) / 1e6;
        const int w = (int)exp(u * log(WORDS + 1.0)) - 1;
        for (int i = 0; word[w][i] && at < TEXT; i++) text[at++] = word[w][i];
        if (at < TEXT) text[at++] = 0;
    }
}

/* The loss of predicting text[at] from the letters before it; with a gradient, its derivative times scale is added. */
static double predict(const float *x, int at, float scale, float *grad) {
    const float *layer1 = x + CODES, *layer2 = layer1 + LAYER1;
    float in[IN + 1], hidden[HIDDEN] = { 0 }, out[LETTERS] = { 0 }, back[HIDDEN], largest, sum = 0;
    double loss;
    for (int i = 0; i < IN; i++) in[i] = x[text[at - 1 - i / CODE] * CODE + i % CODE];
    in[IN] = 1;
    for (int i = 0; i <= IN; i++)
        for (int h = 0; h < HIDDEN; h++) hidden[h] += in[i] * layer1[i * HIDDEN + h];
    for (int h = 0; h < HIDDEN; h++) {
        hidden[h] = hidden[h] > 0 ? hidden[h] : 0;
        for (int o = 0; o < LETTERS && hidden[h] > 0; o++) out[o] += hidden[h] * layer2[h * LETTERS + o];
    }
    largest = out[0];
    for (int o = 1; o < LETTERS; o++) largest = out[o] > largest ? out[o] : largest;
    for (int o = 0; o < LETTERS; o++) sum += out[o] = expf(out[o] - largest);
    loss = -log((double)(out[text[at]] / sum) + 1e-30);
    if (!grad) return loss;
    for (int o = 0; o < LETTERS; o++) out[o] = scale * (out[o] / sum - (o == text[at] ? 1.0f : 0.0f));
    for (int h = 0; h < HIDDEN; h++) {
        float *g = grad + CODES + LAYER1 + h * LETTERS;
        back[h] = 0;
        if (hidden[h] <= 0) continue;
        for (int o = 0; o < LETTERS; o++) {
            g[o] += hidden[h] * out[o];
            back[h] += layer2[h * LETTERS + o] * out[o];
        }
    }
    for (int i = 0; i <= IN; i++) {
        float *g = grad + CODES + i * HIDDEN, to_code = 0;
        for (int h = 0; h < HIDDEN; h++) {
            g[h] += in[i] * back[h];
            to_code += layer1[i * HIDDEN + h] * back[h];
        }
        if (i < IN) grad[text[at - 1 - i / CODE] * CODE + i % CODE] += to_code;
    }
    return loss;
}

/* Everybody's own optimizer, as it is. */
typedef struct adamw {
    float m[N], v[N];
    int steps;
} adamw;
static void adamw_step(adamw *a, float *x, const float *g, float rate) {
    const float left_m = 1 - powf(.9f, (float)++a->steps), left_v = 1 - powf(.999f, (float)a->steps);
    for (int i = 0; i < N; i++) {
        a->m[i] = .9f * a->m[i] + .1f * g[i];
        a->v[i] = .999f * a->v[i] + .001f * g[i] * g[i];
        x[i] -= rate * (a->m[i] / left_m / (sqrtf(a->v[i] / left_v) + 1e-8f) + .01f * x[i]);
    }
}

typedef struct way {
    const char *name, *config;
    int models; /* cg_mean_step takes models, after the optimizer; otherwise gradients, before it */
    double loss, bytes, delay;
} way;
static way ways[] = { { "dense gradients", "dense memory=classic", 0, 0, 0, 0 },
    { "top-k, error feedback", "topk:0.0038|f16|golomb memory=classic route=allgather", 0, 0, 0, 0 },
    { "models, unbiased", "randk:0.08|eden:1 memory=difference:sqrt optimizer=adam", 1, 0, 0, 0 } };
enum { WAYS = sizeof ways / sizeof *ways };

static int train(const cg_transport *t, way *w) {
    const size_t n = N;
    uint64_t state = 7, draw = 100 + (uint64_t)t->rank;
    float *x = (float *)malloc(2 * n * sizeof *x), *grad = x + N;
    adamw *own = (adamw *)calloc(1, sizeof *own);
    char why[500];
    const size_t bytes = cg_mean_memory(w->config, &n, 1, t, why, sizeof why);
    void *mem = malloc(bytes + 1);
    cg_mean *mean = NULL;
    cg_report report;
    int failed = !x || !own || !mem || cg_mean_open(&mean, w->config, &n, 1, t, mem, bytes) != CG_OK;
    if (failed) fprintf(stderr, "%s\n", bytes ? cg_mean_why(mean) : why);
    for (int i = 0; i < N && !failed; i++) /* the same on all workers */
        x[i] = ((float)random_below(&state, 1 << 20) / (1 << 19) - 1) *
            (i < CODES                   ? 1.0f
                    : i < CODES + LAYER1 ? .2f
                                         : .03f);
    for (int step = 0; step < STEPS && !failed; step++) {
        const float rate = .016f * /* the best of five for dense gradients */
            (step < 30 ? (float)(step + 1) / 30 : .5f + .5f * cosf(3.14159f * (float)step / STEPS));
        for (int i = 0; i < N; i++) grad[i] = 0;
        for (int b = 0; b < BATCH; b++)
            predict(x, SEEN + (int)random_below(&draw, TEXT - KEPT - SEEN), 1.0f / BATCH, grad);
        if (w->models) {
            adamw_step(own, x, grad, rate);
            failed = cg_mean_step_flat(mean, x) != CG_OK;
        } else {
            failed = cg_mean_step_flat(mean, grad) != CG_OK;
            adamw_step(own, x, grad, rate);
        }
        if (failed) fprintf(stderr, "step %d: %s\n", step, cg_mean_why(mean));
        cg_mean_report(mean, &report);
        if (!t->rank && step)
            w->bytes += (double)report.bytes_out / (STEPS - 1); /* the first step of models is dense */
    }
    if (!t->rank && !failed) { /* all have the same model */
        w->loss = 0;
        for (int at = TEXT - KEPT; at < TEXT; at++) w->loss += predict(x, at, 0, NULL) / KEPT;
        w->delay = (double)cg_ef_stats_of(cg_mean_state(mean, 0)).delay;
    }
    free(x);
    free(own);
    free(mem);
    return failed;
}
static void show(int workers) {
    printf("%d workers, %d weights, %d steps of AdamW: loss on text that nobody has seen.\n\n", workers, (int)N,
        (int)STEPS);
    printf("%-24s %-54s %8s %12s %6s %10s\n", "", "configuration", "loss", "bytes/step", "less", "waiting");
    for (int i = 0; i < WAYS; i++)
        printf("%-24s %-54s %8.3f %12.0f %5.0fx %10.1f\n", ways[i].name, ways[i].config, ways[i].loss, ways[i].bytes,
            ways[0].bytes / ways[i].bytes, ways[i].delay);
    printf("\nA packet is 300 times smaller than the model; every worker sends it to three others, where dense values "
           "are\n"
           "summed on the way, in one and a half times the model.\n");
}

#ifdef ADAM_MPI
int main(int argc, char **argv) {
    cg_mpi mpi;
    int failed = 0;
    MPI_Init(&argc, &argv);
    if (cg_mpi_open(&mpi, MPI_COMM_WORLD)) MPI_Abort(MPI_COMM_WORLD, 1);
    make_text();
    for (int i = 0; i < WAYS && !failed; i++) { failed = train(&mpi.transport, &ways[i]); }
    if (failed) MPI_Abort(MPI_COMM_WORLD, 1);
    if (!mpi.transport.rank) show(mpi.transport.size);
    cg_mpi_close(&mpi);
    MPI_Finalize();
    return 0;
}
#else
static int worker(cg_threads_world *world, int rank, void *user) {
    const cg_transport t = cg_threads_transport(world, rank, CG_THREADS_ALL);
    return train(&t, (way *)user);
}
int main(void) {
    make_text();
    for (int i = 0; i < WAYS; i++)
        if (cg_threads_run(WORKERS, worker, &ways[i])) return 1;
    show(WORKERS);
    return 0;
}
#endif
