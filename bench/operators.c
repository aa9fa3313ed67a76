/* cc -O2 -I. bench/operators.c -o operators -lm && ./operators        (or: make operators)

   Compresses a gradient as training makes them, with every operator and a few compositions. */

#define _POSIX_C_SOURCE 199309L
#define COMPGRAD_IMPLEMENTATION
#include "compgrad.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { N = 1 << 22, REPEATS = 5, MATRIX = 4096 * 256 /* after the embedding */ };

/* One without a note is a heading. What needs a cg_extra (adacomp, given, variance) is not here. Low rank works
   matrix by matrix: here on the first of the attention. */
static const struct {
    const char *text, *note;
    size_t first, n;
} operators[] = { { "Quantizers", NULL, 0, 0 }, { "dense", "exact", 0, N }, { "f16", "", 0, N }, { "bf16", "", 0, N },
    { "natural", "unbiased", 0, N }, { "e4m3", "", 0, N }, { "e5m2", "", 0, N }, { "mxe4m3", "", 0, N },
    { "mxe5m2", "", 0, N }, { "dynamic8", "", 0, N }, { "absmax:8:512", "unbiased", 0, N },
    { "absmax:8:512:nearest", "", 0, N }, { "minmax:8:512", "unbiased", 0, N }, { "flexpoint:8:512", "", 0, N },
    { "absmax:4:512", "unbiased", 0, N }, { "absmax:4:512:nearest", "", 0, N }, { "minmax:4:512", "unbiased", 0, N },
    { "levels:7:512:max", "unbiased", 0, N }, { "levels:7:512", "unbiased: QSGD", 0, N },
    { "dither:4:512:max", "unbiased", 0, N }, { "mxfp4", "", 0, N }, { "nvfp4", "", 0, N }, { "nf4", "", 0, N },
    { "terngrad", "unbiased; layer by layer", 0, N }, { "strom:0.001", "", 0, N }, { "onebit:512", "", 0, N },
    { "efsign", "layer by layer", 0, N }, { "sign", "for a majority vote", 0, N },

    { "Rotated: what is left is nearly normal, whatever x is", NULL, 0, 0 }, { "srq:4", "unbiased", 0, N },
    { "eden:4", "unbiased", 0, N }, { "eden:2", "unbiased", 0, N }, { "eden:1", "unbiased", 0, N },
    { "eden:0.5", "unbiased", 0, N },

    { "One step for all values, entropy coded", NULL, 0, 0 }, { "rate:4", "", 0, N }, { "rate:1", "", 0, N },
    { "rate:0.4", "", 0, N }, { "rate:0.1", "", 0, N }, { "rate:0.4:unbiased", "unbiased", 0, N },
    { "step:0.5", "", 0, N },

    { "Sparse", NULL, 0, 0 }, { "topk:0.01", "", 0, N }, { "topk:0.001", "", 0, N }, { "chunked:4096:0.01", "", 0, N },
    { "dgc:0.01", "", 0, N }, { "mstopk:0.01", "", 0, N }, { "sidco:0.01", "", 0, N }, { "threshold:0.01", "", 0, N },
    { "blocks:256", "exact: rows not all zero", 0, N }, { "wangni:0.01", "unbiased", 0, N },
    { "wangnivar:1", "unbiased", 0, N }, { "randk:0.01", "unbiased", 0, N }, { "randk:0.01:unscaled", "", 0, N },
    { "permk:8", "unbiased", 0, N },

    { "Hybrids", NULL, 0, 0 }, { "topk:0.01|f16", "", 0, N }, { "topk:0.01|absmax:4:512", "", 0, N },
    { "topk:0.01|rate:4", "", 0, N }, { "topk:0.01|geometric:2", "", 0, N }, { "qsparse:0.01:4", "", 0, N },
    { "stc:0.01", "", 0, N }, { "sbc:0.01", "", 0, N }, { "adaq:0.01", "", 0, N },
    { "randk:0.1|absmax:8:512", "unbiased", 0, N }, { "cocktail:0.1:0.1:4", "", 0, N }, { "demo_dct:0.1", "", 0, N },

    { "Low rank: one matrix of 256 x 768", NULL, 0, 0 }, { "lowrank:4:256:768", "", MATRIX, 256 * 768 },
    { "lowrank:16:256:768", "", MATRIX, 256 * 768 }, { "atomo:4:256:768", "unbiased", MATRIX, 256 * 768 },

    { "Codes", NULL, 0, 0 }, { "huffman", "exact", 0, N }, { "bf16|huffman", "", 0, N },
    { "absmax:4:512|huffman", "unbiased", 0, N }, { "klevel:4:512", "unbiased", 0, N },
    { "levels:7:512|omega", "unbiased", 0, N }, { "qsgd:16", "unbiased; layer by layer", 0, N },
    { "threelc:1", "layer by layer", 0, N }, { "topk:0.01|golomb", "", 0, N } };

/* A small transformer, seen from its gradient: what each kind of layer weighs, and how many of its rows
   this batch touched. Repeated until the vector is full. */
static const struct {
    size_t rows, columns;
    double scale, touched;
} layers[] = {
    { 4096, 256, 2e-3, 0.15 }, /* token embedding: only the tokens of the batch */
    { 256, 768, 4e-4, 1 }, { 256, 256, 9e-4, 1 }, { 1, 512, 2e-2, 1 },  /* attention, its norm */
    { 256, 1024, 3e-4, 1 }, { 1024, 256, 5e-4, 1 }, { 1, 512, 1e-2, 1 } /* MLP, its norm */
};

static uint64_t lcg_state = 1;
static double uniform(void) {
    lcg_state = lcg_state * 6364136223846793005u + 1442695040888963407u;
    return ((double)(lcg_state >> 32) + 0.5) * 0x1p-32;
}

static double bell(void) { return uniform() + uniform() + uniform() + uniform() - 2; }
static double heavy_tailed(void) { return bell() / sqrt(sqrt(uniform())); } /* as stochastic gradients are */

static void make_gradient(float *x, size_t n) {
    const size_t count = sizeof layers / sizeof layers[0];
    size_t i = 0, layer = 0, row, column;
    while (i < n) {
        for (row = 0; row < layers[layer].rows; row++) {
            double touched = uniform() < layers[layer].touched ? 1 : 0;
            double scale = layers[layer].scale * touched * exp(bell()); /* neurons differ */
            for (column = 0; column < layers[layer].columns && i < n; column++)
                x[i++] = (float)(scale * heavy_tailed());
        }
        layer = layer + 1 < count ? layer + 1 : 1; /* one embedding, then block after block */
    }
}

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double relative_error(const float *x, const float *y, size_t n) {
    double error = 0, norm = 0;
    size_t i;
    for (i = 0; i < n; i++) {
        double d = (double)x[i] - (double)y[i];
        error += d * d;
        norm += (double)x[i] * (double)x[i];
    }
    return error / norm;
}

static void *get(size_t bytes) {
    void *p = malloc(bytes ? bytes : 1);
    if (!p) {
        fputs("operators: not enough memory\n", stderr);
        exit(1);
    }
    return p;
}

static cg_status show(const char *text, const char *note, const float *x, float *y, size_t n) {
    const cg_tag tag = { 42, 1, 0, 0 };
    cg_op op;
    cg_status s = cg_op_parse(&op, text);
    size_t cap = s == CG_OK ? cg_bound(&op, n) : 0, room = s == CG_OK ? cg_scratch(&op, n) : 0, len = 0;
    void *packet = get(cap), *scratch = get(room);
    double encode = 1e9, decode = 1e9, start = seconds(), bytes = 4 * (double)n;
    int repeat;

    /* the best of a few, but no more than a fraction of a second for each */
    for (repeat = 0; s == CG_OK && (repeat < 2 || (repeat < REPEATS && seconds() - start < 0.2)); repeat++) {
        double t0 = seconds(), t1, t2;
        s = cg_compress(&op, &tag, x, n, packet, cap, &len, scratch, room);
        t1 = seconds();
        if (s == CG_OK) s = cg_decompress(packet, len, y, n);
        t2 = seconds();
        if (t1 - t0 < encode) encode = t1 - t0;
        if (t2 - t1 < decode) decode = t2 - t1;
    }
    if (s == CG_OK)
        printf("  %-24s %7.3f %7.1f %9.2g %8.2f %8.2f  %s\n", text, 8 * (double)len / (double)n, bytes / (double)len,
            relative_error(x, y, n), 1e-9 * bytes / encode, 1e-9 * bytes / decode, note);
    free(packet);
    free(scratch);
    return s;
}

int main(void) {
    float *x = (float *)get(N * sizeof *x), *y = (float *)get(N * sizeof *y);
    size_t i;

    make_gradient(x, N);
    printf("A gradient of %d floats (%d MiB) from layers of very different scale, compgrad %s, %s\n\n"
           "Look at bits (what the network carries) against error (the share of the energy lost, 1 = all\n"
           "of it); the error of an unbiased operator is noise, which averages out over workers and steps.\n\n",
        (int)N, (int)(N * sizeof *x >> 20), cg_version(), cg_isa_name(cg_isa_used()));
    printf("%-26s %7s %7s %9s %17s\n", "", "", "", "", "encode   decode");
    printf("%-26s %7s %7s %9s %8s %8s\n", "operator", "bits", "factor", "error", "GB/s", "GB/s");

    for (i = 0; i < sizeof operators / sizeof operators[0]; i++) {
        cg_status s = CG_OK;
        if (!operators[i].note) printf("\n%s\n", operators[i].text);
        else s = show(operators[i].text, operators[i].note, x + operators[i].first, y, operators[i].n);
        if (s != CG_OK) {
            fprintf(stderr, "operators: %s: %s\n", operators[i].text, cg_status_str(s));
            return 1;
        }
    }
    free(x);
    free(y);
    return 0;
}
