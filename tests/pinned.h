/* The pinned problem of gossip: logistic regression on a ring of 8, d = 256, 64 samples a node, features
   sqrt(10/d) N(0,1) with an offset .3 N(0,1)/sqrt(d) of the node, labels sign(a w + .5 N(0,1)), lambda .02. */
#ifndef PINNED_H
#define PINNED_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

enum { PIN_D = 256, PIN_SAMPLES = 64, PIN_NODES = 8 };
static float pin_a[PIN_NODES * PIN_SAMPLES][PIN_D], pin_y[PIN_NODES * PIN_SAMPLES];
static double pin_best; /* f* */
static const float pin_lambda = 0.02f;

static uint64_t pin_mix(uint64_t z) {
    z += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 32) * 0xD6E8FEB86659FD93u;
    z = (z ^ z >> 32) * 0xD6E8FEB86659FD93u;
    return z ^ z >> 32;
}
static double pin_normal(uint64_t i) {
    const double u = ((double)(pin_mix(2 * i) >> 11) + 0.5) / 9007199254740992.0;
    const double v = ((double)(pin_mix(2 * i + 1) >> 11) + 0.5) / 9007199254740992.0;
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}
static float pin_dot(const float *a, const float *b) {
    float s = 0, t = 0, u = 0, v = 0;
    for (int i = 0; i < PIN_D; i += 4)
        s += a[i] * b[i], t += a[i + 1] * b[i + 1], u += a[i + 2] * b[i + 2], v += a[i + 3] * b[i + 3];
    return (s + u) + (t + v);
}
/* grad := of the samples [first, first + many) */
static void pin_gradient(int first, int many, const float *x, float *grad) {
    for (int i = 0; i < PIN_D; i++) grad[i] = pin_lambda * x[i];
    for (int k = first; k < first + many; k++) {
        const float margin = pin_y[k] * pin_dot(pin_a[k], x);
        const float f = -pin_y[k] / (1 + expf(margin)) / (float)many;
        for (int i = 0; i < PIN_D; i += 4) {
            const float *a = &pin_a[k][i];
            float *g = grad + i;
            g[0] += f * a[0], g[1] += f * a[1], g[2] += f * a[2], g[3] += f * a[3];
        }
    }
}
static double pin_loss(const float *x) {
    double sum = 0, norm = 0;
    for (int k = 0; k < PIN_NODES * PIN_SAMPLES; k++) sum += log1p(exp(-(double)(pin_y[k] * pin_dot(pin_a[k], x))));
    for (int i = 0; i < PIN_D; i++) norm += (double)x[i] * (double)x[i];
    return sum / (PIN_NODES * PIN_SAMPLES) + (double)pin_lambda / 2 * norm;
}
static void pin_make(uint64_t seed) {
    static float w[PIN_D], x[PIN_D], before[PIN_D], at[PIN_D], grad[PIN_D];
    uint64_t i = seed << 32;
    for (int j = 0; j < PIN_D; j++) w[j] = (float)pin_normal(i++);
    for (int n = 0; n < PIN_NODES; n++) {
        float offset[PIN_D];
        for (int j = 0; j < PIN_D; j++) offset[j] = (float)(0.3 * pin_normal(i++) / sqrt(PIN_D));
        for (int k = n * PIN_SAMPLES; k < (n + 1) * PIN_SAMPLES; k++) {
            for (int j = 0; j < PIN_D; j++) pin_a[k][j] = (float)(sqrt(10.0 / PIN_D) * pin_normal(i++)) + offset[j];
            pin_y[k] = (double)pin_dot(pin_a[k], w) + 0.5 * pin_normal(i++) < 0 ? -1.0f : 1.0f;
        }
    }
    for (int j = 0; j < PIN_D; j++) x[j] = before[j] = 0;
    for (int t = 0; t < 1000; t++) { /* Nesterov's method for strongly convex functions, to the precision of floats */
        for (int j = 0; j < PIN_D; j++) at[j] = x[j] + 0.83f * (x[j] - before[j]);
        pin_gradient(0, PIN_NODES * PIN_SAMPLES, at, grad);
        for (int j = 0; j < PIN_D; j++) before[j] = x[j], x[j] = at[j] - 2.0f * grad[j];
    }
    pin_best = pin_loss(x);
}
static float pin_rate(int t) { return 0.2f / (1 + (float)t / 300); }
/* (f(x) - f*) / (f(0) - f*) of the mean model, and the mean of the models' own */
static double pin_score(const float *const *x, double *own) {
    static const float zero[PIN_D];
    static float mean[PIN_D];
    const double worst = pin_loss(zero) - pin_best;
    *own = 0;
    for (int j = 0; j < PIN_D; j++) {
        double sum = 0;
        for (int n = 0; n < PIN_NODES; n++) sum += (double)x[n][j];
        mean[j] = (float)(sum / PIN_NODES);
    }
    for (int n = 0; n < PIN_NODES; n++) *own += (pin_loss(x[n]) - pin_best) / worst / PIN_NODES;
    return (pin_loss(mean) - pin_best) / worst;
}

#endif
