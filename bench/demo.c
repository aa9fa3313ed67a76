/* cc -O2 -I. bench/demo.c -o demo -lm && ./demo        (or: make demo)

   Compresses a gradient as training makes them, with every operator and a few compositions. */

#define _POSIX_C_SOURCE 199309L
#define COMPGRAD_IMPLEMENTATION
#include "compgrad.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { N = 1 << 22, REPEATS = 5 };

static const struct { const char *text, *note; } operators[] = {
    {"dense",                             "exact"},
    {"f16",                               ""},
    {"bf16",                              ""},
    {"absmax:8:512",                      "unbiased"},
    {"absmax:8:512:nearest",              ""},
    {"absmax:4:512",                      "unbiased"},
    {"absmax:4:512:nearest",              ""},
    {"minmax:8:512",                      "unbiased"},
    {"minmax:4:512",                      "unbiased"},
    {"terngrad",                          "unbiased; best layer by layer"},
    {"sign",                              "no magnitude: for a majority vote"},
    {"efsign",                            "best layer by layer"},
    {"topk:0.01",                         ""},
    {"topk:0.001",                        ""},
    {"threshold:0.01",                    ""},
    {"randk:0.01",                        "unbiased"},
    {"randk:0.01:unscaled",               ""},
    {"topk:0.01|f16",                     ""},
    {"topk:0.01|absmax:4:512",            "unbiased on what it keeps"},
    {"topk:0.01|efsign",                  "as in sparse ternary compression"},
    {"randk:0.1|absmax:8:512",            "unbiased"},
    {"randk:0.1:unscaled|topk:0.1|absmax:4:512", "as in CocktailSGD"}
};

/* A small transformer, seen from its gradient: what each kind of layer weighs, and how many of its rows
   this batch touched. Repeated until the vector is full. */
static const struct { size_t rows, columns; double scale, touched; } layers[] = {
    {4096, 256, 2e-3, 0.15},              /* token embedding: only the tokens of the batch */
    {256, 768, 4e-4, 1}, {256, 256, 9e-4, 1}, {1, 512, 2e-2, 1},                 /* attention, its norm */
    {256, 1024, 3e-4, 1}, {1024, 256, 5e-4, 1}, {1, 512, 1e-2, 1}                /* MLP, its norm */
};

static uint64_t lcg_state = 1;
static double uniform(void)
{
    lcg_state = lcg_state * 6364136223846793005u + 1442695040888963407u;
    return ((double)(lcg_state >> 32) + 0.5) * 0x1p-32;
}

static double bell(void) { return uniform() + uniform() + uniform() + uniform() - 2; }
static double heavy_tailed(void) { return bell() / sqrt(sqrt(uniform())); }     /* as stochastic gradients are */

static void make_gradient(float *x, size_t n)
{
    const size_t count = sizeof layers / sizeof layers[0];
    size_t i = 0, layer = 0, row, column;
    while (i < n) {
        for (row = 0; row < layers[layer].rows; row++) {
            double touched = uniform() < layers[layer].touched ? 1 : 0;
            double scale = layers[layer].scale * touched * exp(bell());      /* neurons differ */
            for (column = 0; column < layers[layer].columns && i < n; column++) x[i++] = (float)(scale * heavy_tailed());
        }
        layer = layer + 1 < count ? layer + 1 : 1;           /* one embedding, then block after block */
    }
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double relative_error(const float *x, const float *y, size_t n)
{
    double error = 0, norm = 0;
    size_t i;
    for (i = 0; i < n; i++) {
        double d = (double)x[i] - (double)y[i];
        error += d * d;
        norm += (double)x[i] * (double)x[i];
    }
    return error / norm;
}

static void *get(size_t bytes)
{
    void *p = malloc(bytes ? bytes : 1);
    if (!p) {
        fputs("demo: not enough memory\n", stderr);
        exit(1);
    }
    return p;
}

int main(void)
{
    const cg_tag tag = {42, 1, 0, 0};
    float *x = (float *)get(N * sizeof *x), *y = (float *)get(N * sizeof *y);
    size_t i;

    make_gradient(x, N);
    printf("A gradient of %d floats (%d MiB) from layers of very different scale, compgrad %s, %s\n\n"
           "Look at bits (what the network carries) against error (the share of the energy lost, 1 = all of it);\n"
           "the error of an unbiased operator is noise, which averages out over workers and steps.\n\n",
           (int)N, (int)(N * sizeof *x >> 20), cg_version(), cg_isa_name(cg_isa_used()));
    printf("%-42s %8s %8s %9s  %12s %12s\n", "operator", "bits", "factor", "error", "encode GB/s", "decode GB/s");

    for (i = 0; i < sizeof operators / sizeof operators[0]; i++) {
        cg_op op;
        cg_status s = cg_op_parse(&op, operators[i].text);
        size_t cap = s == CG_OK ? cg_bound(&op, N) : 0, room = s == CG_OK ? cg_scratch(&op, N) : 0, len = 0;
        void *packet = get(cap), *scratch = get(room);
        double encode = 1e9, decode = 1e9, start = seconds();
        char name[128];
        int repeat;

        /* the best of a few, but no more than a fraction of a second for each */
        for (repeat = 0; s == CG_OK && (repeat < 2 || (repeat < REPEATS && seconds() - start < 0.3)); repeat++) {
            double t0 = seconds(), t1, t2;
            s = cg_compress(&op, &tag, x, N, packet, cap, &len, scratch, room);
            t1 = seconds();
            if (s == CG_OK) s = cg_decompress(packet, len, y, N);
            t2 = seconds();
            if (t1 - t0 < encode) encode = t1 - t0;
            if (t2 - t1 < decode) decode = t2 - t1;
        }
        if (s == CG_OK) s = cg_op_print(&op, name, sizeof name);
        if (s != CG_OK) {
            fprintf(stderr, "demo: %s: %s\n", operators[i].text, cg_status_str(s));
            return 1;
        }
        printf("%-42s %8.3f %8.1f %9.2g  %12.2f %12.2f  %s\n", name, 8.0 * (double)len / N, 4.0 * N / (double)len,
               relative_error(x, y, N), 4e-9 * N / encode, 4e-9 * N / decode, operators[i].note);
        free(packet);
        free(scratch);
    }
    free(x);
    free(y);
    return 0;
}
