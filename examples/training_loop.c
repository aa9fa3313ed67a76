/* cc -O2 -I. examples/training_loop.c -o training_loop && ./training_loop

   Two processes train one small network by plain SGD, and then by AdamW, each on images of its own: first with dense
   gradients, then with compressed ones. Look for cg_mean_: four calls, and the step stands between the gradient and the
   optimizer. On several machines, with the same list on each: ./training_loop RANK host0:4000,host1:4000 */

#define _POSIX_C_SOURCE 200809L /* for transport_tcp.h, under -std=c99 */
#define COMPGRAD_IMPLEMENTATION
#include "compgrad_ef.h"
#include "transport_tcp.h"

#include <stdio.h>
#include <sys/wait.h>

enum { IN = 128, HIDDEN = 64, OUT = 10, BATCH = 16, STEPS = 400, TENSORS = 4, LOCAL = 2 };
static const size_t sizes[TENSORS] = { HIDDEN * IN, HIDDEN, OUT *HIDDEN, OUT };
static float w1[HIDDEN * IN], b1[HIDDEN], w2[OUT * HIDDEN], b2[OUT]; /* the model */
static float g1[HIDDEN * IN], c1[HIDDEN], g2[OUT * HIDDEN], c2[OUT]; /* its gradient */
static float *const model[TENSORS] = { w1, b1, w2, b2 }, *const grads[TENSORS] = { g1, c1, g2, c2 };

static uint32_t dice; /* of this process */
static float noise(void) {
    dice = dice * 1664525u + 1013904223u;
    return (float)(dice >> 8) / 8388608.0f - 1.0f; /* in [-1, 1) */
}
static float root(float x) { /* so that nothing need be linked */
    float r = x > 1.0f ? x : 1.0f;
    for (int i = 0; i < 40; i++) r = 0.5f * (r + x / r);
    return r;
}
/* An image of class c: a pattern of the class under noise. */
static int image(float *x) {
    const int c = (int)((noise() + 1.0f) * 0.5f * OUT) % OUT;
    for (int i = 0; i < IN; i++) {
        uint32_t h = (uint32_t)(c * IN + i) * 2654435761u;
        x[i] = (h >> 31 ? 0.5f : -0.5f) + 1.5f * noise();
    }
    return c;
}
/* Forward and backward on this process's own batch; the loss is that of a squared error. */
static float gradient(void) {
    float loss = 0.0f;
    for (int t = 0; t < TENSORS; t++) memset(grads[t], 0, sizes[t] * sizeof(float));
    for (int b = 0; b < BATCH; b++) {
        float x[IN], h[HIDDEN], y[OUT], dh[HIDDEN];
        const int c = image(x);
        for (int j = 0; j < HIDDEN; j++) {
            h[j] = b1[j];
            for (int i = 0; i < IN; i++) h[j] += w1[j * IN + i] * x[i];
            if (h[j] < 0.0f) h[j] = 0.0f;
            dh[j] = 0.0f;
        }
        for (int k = 0; k < OUT; k++) {
            y[k] = b2[k] - (k == c ? 1.0f : 0.0f);
            for (int j = 0; j < HIDDEN; j++) y[k] += w2[k * HIDDEN + j] * h[j];
            loss += y[k] * y[k] / BATCH;
            for (int j = 0; j < HIDDEN; j++) {
                g2[k * HIDDEN + j] += 2.0f * y[k] * h[j] / BATCH;
                dh[j] += 2.0f * y[k] * w2[k * HIDDEN + j] / BATCH;
            }
            c2[k] += 2.0f * y[k] / BATCH;
        }
        for (int j = 0; j < HIDDEN; j++) {
            if (h[j] <= 0.0f) continue;
            c1[j] += dh[j];
            for (int i = 0; i < IN; i++) g1[j * IN + i] += dh[j] * x[i];
        }
    }
    return loss;
}
static void begin(int rank) { /* the same model on all ranks, other images on each */
    dice = 1;
    for (int t = 0; t < TENSORS; t++)
        for (size_t i = 0; i < sizes[t]; i++) model[t][i] = 0.1f * noise();
    dice = 1000u + (uint32_t)rank;
}
static float mean_loss, bytes_out; /* of the last 50 steps; per step */
static void count(const cg_mean *mean, float loss, int step) {
    cg_report report;
    cg_mean_report(mean, &report);
    if (step == 0) mean_loss = bytes_out = 0.0f;
    bytes_out += (float)report.bytes_out / STEPS;
    if (step >= STEPS - 50) mean_loss += loss / 50.0f;
}

/* ---- the two loops ---- */

static cg_status train_sgd(cg_mean *mean) {
    for (int step = 0; step < STEPS; step++) {
        const float loss = gradient();
        const cg_status s = cg_mean_step(mean, grads); /* grads := their mean over all ranks */
        if (s != CG_OK) return s;                      /* nothing has changed: cg_mean_why says why */
        for (int t = 0; t < TENSORS; t++)
            for (size_t i = 0; i < sizes[t]; i++) model[t][i] -= 0.02f * grads[t][i];
        count(mean, loss, step);
    }
    return CG_OK;
}
static cg_status train_adamw(cg_mean *mean) {
    static float m[TENSORS][HIDDEN * IN], v[TENSORS][HIDDEN * IN];
    float fade1 = 1.0f, fade2 = 1.0f;
    memset(m, 0, sizeof m);
    memset(v, 0, sizeof v);
    for (int step = 0; step < STEPS; step++) {
        const float loss = gradient();
        const cg_status s = cg_mean_step(mean, grads);
        if (s != CG_OK) return s;
        fade1 *= 0.9f;
        fade2 *= 0.999f;
        for (int t = 0; t < TENSORS; t++)
            for (size_t i = 0; i < sizes[t]; i++) {
                const float g = grads[t][i];
                m[t][i] = 0.9f * m[t][i] + 0.1f * g;
                v[t][i] = 0.999f * v[t][i] + 0.001f * g * g;
                model[t][i] -= 0.002f *
                    (m[t][i] / (1.0f - fade1) / (root(v[t][i] / (1.0f - fade2)) + 1e-8f) + 0.01f * model[t][i]);
            }
        count(mean, loss, step);
    }
    return CG_OK;
}

static int run(const cg_transport *net, const char *loop, const char *config, cg_status (*train)(cg_mean *)) {
    char why[400];
    const size_t bytes = cg_mean_memory(config, sizes, TENSORS, net, why, sizeof why);
    void *mem = malloc(bytes + 1);
    cg_mean *mean = NULL;
    cg_status s;
    if (!bytes || !mem) {
        fprintf(stderr, "%s\n", bytes ? "no memory" : why);
        free(mem);
        return 1;
    }
    s = cg_mean_open(&mean, config, sizes, TENSORS, net, mem, bytes);
    begin(net->rank);
    if (s == CG_OK) s = train(mean);
    if (s != CG_OK) fprintf(stderr, "rank %d: %s\n", net->rank, cg_mean_why(mean));
    else if (net->rank == 0)
        printf("%-6s %-34s loss %.4f, %7.0f bytes sent in a step\n", loop, *config ? config : "\"\", the default",
            (double)mean_loss, (double)bytes_out);
    free(mem);
    return s != CG_OK;
}
static int work(int rank, const char *addresses, int listener) {
    cg_tcp_desc desc = CG_ZERO;
    cg_tcp net;
    char text[300];
    int code;
    desc.rank = rank;
    desc.addresses = addresses;
    desc.job = 18;
    desc.listener = listener;
    code = cg_tcp_open(&net, &desc);
    if (code) {
        fprintf(stderr, "rank %d: %s\n", rank, cg_tcp_error(code, text, sizeof text));
        return 1;
    }
    if (rank == 0)
        printf("%d processes train a network, by SGD and by AdamW, each with three kinds of gradients.\n",
            net.transport.size);
    code = run(&net.transport, "SGD", "dense", train_sgd) ||
        run(&net.transport, "SGD", "topk:0.01 optimizer=sgd", train_sgd) ||
        run(&net.transport, "SGD", "efsign small=1000", train_sgd) ||
        run(&net.transport, "AdamW", "dense", train_adamw) || run(&net.transport, "AdamW", "", train_adamw) ||
        run(&net.transport, "AdamW", "absmax:8:512 small=1000", train_adamw);
    cg_tcp_close(&net);
    return code;
}
int main(int argc, char **argv) {
    char addresses[LOCAL * 32] = "";
    int listener[LOCAL], port, status, failed = 0;
    if (argc == 3) return work(atoi(argv[1]), argv[2], 0);
    for (int r = 0; r < LOCAL; r++) { /* ports that are free, and stay ours */
        if (cg_tcp_listen("127.0.0.1:0", &listener[r], &port)) return 1;
        snprintf(addresses + strlen(addresses), 32, "%s127.0.0.1:%d", r ? "," : "", port);
    }
    for (int r = 0; r < LOCAL; r++) {
        if (fork()) continue;
        for (int other = 0; other < LOCAL; other++)
            if (other != r) close(listener[other]);
        return work(r, addresses, listener[r]);
    }
    for (int r = 0; r < LOCAL; r++) close(listener[r]);
    while (wait(&status) > 0) failed |= !WIFEXITED(status) || WEXITSTATUS(status);
    return failed;
}
