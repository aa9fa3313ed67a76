/* cc -O2 -I. bench/bench.c -o bench.out -lm && ./bench.out --csv results.csv        (or: make bench)

   How fast every operator is. Absolute speeds say more about the machine than about the code, so each figure
   is a fraction of what the memory allows, and a multiple of the plain C that a user would write instead.
   The limits are measured again around every operator: a busy machine slows both by the same factor. */

#define _POSIX_C_SOURCE 200809L
#define COMPGRAD_IMPLEMENTATION
#include "compgrad.h"
#include "machine.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#if defined(_OPENMP) && defined(COMPGRAD_OPENMP)
#  include <omp.h>
enum { THREADED = 1 };
#else
enum { THREADED = 0 };
#endif

/* ---- data: integers make it, so that every machine measures the same vector ---- */

static uint64_t lcg_state = 1;

static uint32_t lcg(void) {
    lcg_state = lcg_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(lcg_state >> 32);
}

static double exponential(void) { return -log(((double)lcg() + 0.5) * 0x1p-32); }

/* What top-k meets in real life and in bad luck. Value i of n. */
static float laplace(size_t i, size_t n) {
    float m = (float)exponential();
    (void)i;
    (void)n;
    return lcg() >> 31 ? -m : m;
}
static float equal(size_t i, size_t n) {
    (void)i;
    (void)n;
    return 1.0f;
}
static float ascending(size_t i, size_t n) { return (float)-log(1.0 - ((double)i + 0.5) / (double)n); }
static float descending(size_t i, size_t n) { return ascending(n - 1 - i, n); }
static float two_values(size_t i, size_t n) {
    (void)i;
    (void)n;
    return lcg() >> 31 ? 1.0f : 2.0f;
}
static float one_magnitude(size_t i, size_t n) {
    (void)i;
    (void)n;
    return lcg() >> 31 ? 1.0f : -1.0f;
}
static float zero(size_t i, size_t n) {
    (void)i;
    (void)n;
    return 0.0f;
}
static float outlier(size_t i, size_t n) { return i == n / 2 ? 1e30f : laplace(i, n); }
static float outlier_only(size_t i, size_t n) { return i == n / 2 ? 1e30f : 1.0f; }
static float denormal(size_t i, size_t n) {
    (void)i;
    (void)n;
    return (float)(lcg() >> 9) * 0x1p-149f;
}
static float geometric(size_t i, size_t n) { return (float)exp2(120.0 - 240.0 * (double)i / (double)n); }
static float gaussian(size_t i, size_t n) {
    const double r = sqrt(2 * exponential());
    (void)i;
    (void)n;
    return (float)(r * cos(0x1p-32 * lcg() * 2 * acos(-1.0)));
}

typedef struct shape {
    const char *name;
    float (*at)(size_t i, size_t n);
} shape;
static const shape shapes[] = { /* the first is what the others are compared with */
    { "Laplace", laplace }, { "all equal", equal }, { "sorted ascending", ascending },
    { "sorted descending", descending }, { "two distinct values", two_values },
    { "one magnitude, signs", one_magnitude }, { "all zero", zero }, { "Laplace + one outlier", outlier },
    { "equal + one outlier", outlier_only }, { "denormals", denormal }, { "geometric sequence", geometric }
};
static const shape normal_shape = { "normal", gaussian }; /* real gradients are compared with this one */

static void fill(float *x, size_t n, const shape *s) {
    size_t i;
    lcg_state = 1;
    for (i = 0; i < n; i++) x[i] = s->at(i, n);
}

/* ---- what a user would write instead: plain arrays, no packet, no checksum, no check of anything ---- */

typedef struct plain {
    uint8_t *codes;  /* 4n bytes: packed levels, 16-bit floats, or the copy that quickselect works on */
    uint8_t *stream; /* 4n bytes: a variable-length code */
    float *values;   /* the values kept, or a factor */
    float *scales;
    float *work; /* n: what is transformed before it is coded */
    uint32_t *index;
    size_t k;
} plain;

typedef void (*plain_encode)(const cg_op *op, const float *restrict x, size_t n, plain *p);
typedef void (*plain_decode)(const cg_op *op, const plain *p, float *restrict y, size_t n);

static uint32_t rand_state;
static uint32_t rand24(void) { return (rand_state = rand_state * 1664525u + 1013904223u) >> 8; }
static float uniform(void) { return (float)rand24() * 0x1p-24f; }

static uint32_t to_bits(float f) {
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}
static float from_bits(uint32_t u) {
    float f;
    memcpy(&f, &u, 4);
    return f;
}

/* The values that share a scale: from b to the end of its bucket; size 0 is one bucket for all. */
static size_t bucket_of(const cg_stage *q, size_t n) { return q->size && q->size < n ? q->size : n ? n : 1; }
static size_t end_of(size_t b, size_t size, size_t n) { return b + size < n ? b + size : n; }

static float largest(const float *x, size_t n) {
    float m = 0;
    size_t i;
    for (i = 0; i < n; i++)
        if (fabsf(x[i]) > m) m = fabsf(x[i]);
    return m;
}

static float l2_norm(const float *x, size_t n) {
    double sum = 0;
    size_t i;
    for (i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
    return (float)sqrt(sum);
}

static void copy_encode(const cg_op *op, const float *restrict x, size_t n, plain *p) {
    (void)op;
    memcpy(p->codes, x, n * sizeof *x);
}

static void copy_decode(const cg_op *op, const plain *p, float *restrict y, size_t n) {
    (void)op;
    memcpy(y, p->codes, n * sizeof *y);
}

/* A float of m mantissa bits, nearest even, no Inf; sign not included. Inlined, the parameters are constants. */
static inline uint32_t small_float(float x, int m, int bias, float top) {
    const float magic = from_bits((uint32_t)(127 + 24 - bias - m) << 23); /* adding it rounds what is denormal */
    const uint32_t u = to_bits(x) & 0x7fffffffu, cut = (uint32_t)(23 - m);
    if (u >= to_bits(top)) return (to_bits(top) - ((uint32_t)(127 - bias) << 23)) >> cut;
    if (u < (uint32_t)(128 - bias) << 23) return to_bits(fabsf(x) + magic) - to_bits(magic);
    return (u - ((uint32_t)(127 - bias) << 23) + (1u << (cut - 1)) - 1 + (u >> cut & 1)) >> cut;
}

static inline float small_value(uint32_t u, int m, int bias) {
    return from_bits(u << (23 - m)) * from_bits((uint32_t)(254 - bias) << 23);
}

static void f16_encode(const cg_op *op, const float *restrict x, size_t n, plain *p) {
    uint16_t *h = (uint16_t *)(void *)p->codes;
    size_t i;
    (void)op;
    for (i = 0; i < n; i++) h[i] = (uint16_t)(small_float(x[i], 10, 15, 65504.0f) | (to_bits(x[i]) >> 16 & 0x8000u));
}

static void f16_decode(const cg_op *op, const plain *p, float *restrict y, size_t n) {
    const uint16_t *h = (const uint16_t *)(const void *)p->codes;
    size_t i;
    (void)op;
    for (i = 0; i < n; i++) y[i] = from_bits(to_bits(small_value(h[i] & 0x7fffu, 10, 15)) | (h[i] & 0x8000u) << 16);
}

static void e4m3_encode(const cg_op *op, const float *restrict x, size_t n, plain *p) {
    const size_t size = bucket_of(&op->quantize, n);
    size_t b, i;
    for (b = 0; b < n; b += size) {
        const size_t end = end_of(b, size, n);
        const float m = largest(x + b, end - b), inverse = m > 0 ? 448.0f / m : 0;
        p->scales[b / size] = m / 448.0f;
        for (i = b; i < end; i++)
            p->codes[i] = (uint8_t)(small_float(x[i] * inverse, 3, 7, 448.0f) | (to_bits(x[i]) >> 24 & 0x80u));
    }
}

static void e4m3_decode(const cg_op *op, const plain *p, float *restrict y, size_t n) {
    const size_t size = bucket_of(&op->quantize, n);
    size_t b, i;
    for (b = 0; b < n; b += size)
        for (i = b; i < end_of(b, size, n); i++) {
            const float v = p->scales[b / size] * small_value(p->codes[i] & 0x7fu, 3, 7);
            y[i] = from_bits(to_bits(v) | (p->codes[i] & 0x80u) << 24);
        }
}

static void mxfp4_encode(const cg_op *op, const float *restrict x, size_t n, plain *p) {
    size_t b, i;
    (void)op;
    for (b = 0; b < n; b += 32) {
        const size_t end = end_of(b, 32, n);
        const float m = largest(x + b, end - b);
        float inverse;
        int e = 0;
        if (m > 0) frexpf(m, &e);
        p->scales[b / 32] = ldexpf(1.0f, e - 3); /* the largest comes to 4 <= v < 8 */
        inverse = ldexpf(1.0f, 3 - e);
        for (i = b; i < end; i++) {
            uint32_t c = small_float(x[i] * inverse, 1, 1, 6.0f) | (x[i] < 0 ? 8u : 0u);
            p->codes[i / 2] = (uint8_t)(i % 2 ? p->codes[i / 2] | c << 4 : c);
        }
    }
}

static void mxfp4_decode(const cg_op *op, const plain *p, float *restrict y, size_t n) {
    static const float value[16] = { 0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6 };
    size_t i;
    (void)op;
    for (i = 0; i < n; i++) y[i] = p->scales[i / 32] * value[p->codes[i / 2] >> i % 2 * 4 & 15];
}

static void bf16_encode(const cg_op *op, const float *restrict x, size_t n, plain *p) {
    uint16_t *h = (uint16_t *)(void *)p->codes;
    size_t i;
    (void)op;
    for (i = 0; i < n; i++) {
        uint32_t u;
        memcpy(&u, &x[i], 4);
        h[i] = (uint16_t)((u + 0x7fffu + (u >> 16 & 1)) >> 16);
    }
}

static void bf16_decode(const cg_op *op, const plain *p, float *restrict y, size_t n) {
    const uint16_t *h = (const uint16_t *)(const void *)p->codes;
    size_t i;
    (void)op;
    for (i = 0; i < n; i++) {
        uint32_t u = (uint32_t)h[i] << 16;
        memcpy(&y[i], &u, 4);
    }
}

static void sign_encode(const cg_op *op, const float *restrict x, size_t n, plain *p) {
    double sum = 0;
    size_t i;
    memset(p->codes, 0, (n + 7) / 8);
    for (i = 0; i < n; i++) p->codes[i / 8] |= (uint8_t)((x[i] < 0) << i % 8);
    if (op->quantize.id == CG_QUANTIZE_EFSIGN)
        for (i = 0; i < n; i++) sum += fabsf(x[i]);
    p->scales[0] = op->quantize.id == CG_QUANTIZE_EFSIGN ? (float)(sum / (double)n) : 1.0f;
}

static void sign_decode(const cg_op *op, const plain *p, float *restrict y, size_t n) {
    const float level[2] = { p->scales[0], -p->scales[0] };
    size_t i;
    (void)op;
    for (i = 0; i < n; i++) y[i] = level[p->codes[i / 8] >> i % 8 & 1];
}

/* TernGrad, 3LC before its code, and Strom's threshold: when is a value not zero */
static void ternary_encode(const cg_op *op, const float *restrict x, size_t n, plain *p) {
    const cg_stage *q = &op->quantize;
    const float s = q->id == CG_QUANTIZE_STROM ? q->value : largest(x, n);
    const float limit = q->id == CG_QUANTIZE_STROM ? s : s / 2;
    size_t i;
    memset(p->codes, 0, (n + 3) / 4);
    for (i = 0; i < n; i++)
        if ((q->id == CG_QUANTIZE_TERNGRAD ? uniform() * s : limit) < fabsf(x[i]))
            p->codes[i / 4] |= (uint8_t)((x[i] < 0 ? 2 : 1) << i % 4 * 2);
    p->scales[0] = s;
}

static void ternary_decode(const cg_op *op, const plain *p, float *restrict y, size_t n) {
    const float level[4] = { 0, p->scales[0], -p->scales[0], 0 };
    size_t i;
    (void)op;
    for (i = 0; i < n; i++) y[i] = level[p->codes[i / 4] >> i % 4 * 2 & 3];
}

/* absmax and min-max, 8 or 4 bits: a scale and an offset for every bucket */
static void levels_encode(const cg_op *op, const float *restrict x, size_t n, plain *p) {
    const cg_stage *q = &op->quantize;
    const float top = (float)((1 << q->arg) - (q->id == CG_QUANTIZE_ABSMAX ? 2 : 1));
    size_t b, i;
    for (b = 0; b < n; b += q->size) {
        const size_t end = b + q->size < n ? b + q->size : n;
        float lo = x[b], hi = x[b], inverse;
        if (q->id == CG_QUANTIZE_ABSMAX) {
            for (hi = 0, i = b; i < end; i++)
                if (fabsf(x[i]) > hi) hi = fabsf(x[i]);
            lo = -hi;
        } else {
            for (i = b; i < end; i++) {
                if (x[i] < lo) lo = x[i];
                if (x[i] > hi) hi = x[i];
            }
        }
        inverse = hi > lo ? top / (hi - lo) : 0;
        p->scales[b / q->size * 2] = lo;
        p->scales[b / q->size * 2 + 1] = (hi - lo) / top;
        for (i = b; i < end; i++) {
            float random = q->flags & CG_FLAG_NEAREST ? 0.5f : uniform();
            int level = (int)((x[i] - lo) * inverse + random);
            if (q->arg == 8) p->codes[i] = (uint8_t)level;
            else p->codes[i / 2] = (uint8_t)(i % 2 ? p->codes[i / 2] | level << 4 : level);
        }
    }
}

static void levels_decode(const cg_op *op, const plain *p, float *restrict y, size_t n) {
    const cg_stage *q = &op->quantize;
    size_t b, i;
    for (b = 0; b < n; b += q->size) {
        const size_t end = b + q->size < n ? b + q->size : n;
        const float lo = p->scales[b / q->size * 2], step = p->scales[b / q->size * 2 + 1];
        if (q->arg == 8)
            for (i = b; i < end; i++) y[i] = lo + step * (float)p->codes[i];
        else
            for (i = b; i < end; i++) y[i] = lo + step * (float)(p->codes[i / 2] >> i % 2 * 4 & 15);
    }
}

static void keep_above(float t, const float *restrict x, size_t n, plain *p) {
    size_t i, k = 0;
    for (i = 0; i < n; i++)
        if (fabsf(x[i]) > t) p->index[k] = (uint32_t)i, p->values[k++] = x[i];
    p->k = k;
}

static void threshold_encode(const cg_op *op, const float *restrict x, size_t n, plain *p) {
    keep_above(op->select.value, x, n, p);
}

static void sparse_decode(const cg_op *op, const plain *p, float *restrict y, size_t n) {
    size_t j;
    (void)op;
    memset(y, 0, n * sizeof *y);
    for (j = 0; j < p->k; j++) y[p->index[j]] = p->values[j];
}

static float kth_largest(float *a, size_t n, size_t k) /* Hoare's; k from 0 */
{
    size_t lo = 0, hi = n - 1;
    while (lo < hi) {
        const float pivot = a[lo + (hi - lo) / 2];
        size_t i = lo - 1, j = hi + 1;
        for (;;) {
            float swap;
            do i++;
            while (a[i] > pivot);
            do j--;
            while (a[j] < pivot);
            if (i >= j) break;
            swap = a[i], a[i] = a[j], a[j] = swap;
        }
        if (k <= j) hi = j;
        else lo = j + 1;
    }
    return a[k];
}

static size_t count_of(float ratio, size_t n) {
    size_t k = (size_t)((double)ratio * (double)n + 0.5);
    return k < 1 ? 1 : k;
}

/* top-k, of all or of every chunk */
static void topk_encode(const cg_op *op, const float *restrict x, size_t n, plain *p) {
    const size_t size = bucket_of(&op->select, n);
    float *copy = (float *)(void *)p->codes, t;
    size_t b, i, k = 0;
    for (b = 0; b < n; b += size) {
        const size_t end = end_of(b, size, n), want = count_of(op->select.value, end - b);
        size_t ties = want;
        for (i = b; i < end; i++) copy[i - b] = fabsf(x[i]);
        t = kth_largest(copy, end - b, want - 1);
        for (i = 0; i < want; i++) ties -= copy[i] > t;
        for (i = b; i < end; i++) {
            if (fabsf(x[i]) < t || (fabsf(x[i]) == t && !ties)) continue;
            if (fabsf(x[i]) == t) ties--;
            p->index[k] = (uint32_t)i, p->values[k++] = x[i];
        }
    }
    p->k = k;
}

static void topk_levels_encode(const cg_op *op, const float *restrict x, size_t n, plain *p) {
    topk_encode(op, x, n, p);
    levels_encode(op, p->values, p->k, p);
}

static void topk_levels_decode(const cg_op *op, const plain *p, float *restrict y, size_t n) {
    levels_decode(op, p, p->values, p->k);
    sparse_decode(op, p, y, n);
}

static void randk_encode(const cg_op *op, const float *restrict x, size_t n, plain *p) {
    size_t j;
    p->k = count_of(op->sample.value, n);
    for (rand_state = 1, j = 0; j < p->k; j++)
        p->values[j] = x[(size_t)((double)uniform() * (double)n)] * (float)(n / p->k);
}

static void randk_decode(const cg_op *op, const plain *p, float *restrict y, size_t n) {
    size_t j;
    (void)op;
    memset(y, 0, n * sizeof *y);
    for (rand_state = 1, j = 0; j < p->k; j++) y[(size_t)((double)uniform() * (double)n)] = p->values[j];
}

/* The published ways to a threshold that keeps about a ratio of the values */
static void dgc_encode(const cg_op *op, const float *restrict x, size_t n, plain *p) /* top-k of every 100th */
{
    const size_t step = n > 100000 ? 100 : 1;
    float *copy = (float *)(void *)p->codes;
    size_t i, m = 0;
    for (i = 0; i < n; i += step) copy[m++] = fabsf(x[i]);
    keep_above(kth_largest(copy, m, count_of(op->select.value, m) - 1), x, n, p);
}

/* 25 bisections, each one pass */
static void mstopk_encode(const cg_op *op, const float *restrict x, size_t n, plain *p) {
    const size_t want = count_of(op->select.value, n);
    float lo = 0, hi = largest(x, n);
    size_t i, k = 0, certain = 0;
    int step;
    for (step = 0; step < 25; step++) {
        const float t = lo + (hi - lo) / 2;
        size_t count = 0;
        for (i = 0; i < n; i++) count += fabsf(x[i]) > t;
        if (count <= want) hi = t, certain = count;
        else lo = t;
    }
    for (i = 0; i < n; i++) { /* what is above hi, and of the rest the first */
        if (!(fabsf(x[i]) > lo) || (!(fabsf(x[i]) > hi) && certain++ >= want)) continue;
        p->index[k] = (uint32_t)i, p->values[k++] = x[i];
    }
    p->k = k;
}

/* exponentials, a quarter at a time */
static void sidco_encode(const cg_op *op, const float *restrict x, size_t n, plain *p) {
    double left = (double)op->select.value, t = 0;
    while (left < 1) {
        const double part = left < 0.25 ? 0.25 : left;
        double sum = 0;
        size_t i, m = 0;
        for (i = 0; i < n; i++)
            if ((double)fabsf(x[i]) > t) sum += (double)fabsf(x[i]) - t, m++;
        if (!m) break;
        t -= sum / (double)m * log(part);
        left /= part;
    }
    keep_above((float)t, x, n, p);
}

/* the paper's greedy algorithm */
static void wangni_encode(const cg_op *op, const float *restrict x, size_t n, plain *p) {
    const double want = (double)op->select.value * (double)n;
    double sum = 0, scale;
    size_t i, k = 0;
    int round;
    for (i = 0; i < n; i++) sum += (double)fabsf(x[i]);
    scale = sum > 0 ? want / sum : 0;
    for (round = 0; round < 2; round++) {
        double certain = 0;
        for (i = 0, sum = 0; i < n; i++) {
            const double q = scale * (double)fabsf(x[i]);
            if (q < 1) sum += q;
            else certain++;
        }
        if (sum > 0 && want > certain) scale *= (want - certain) / sum;
    }
    for (i = 0; i < n; i++) {
        const float q = (float)scale * fabsf(x[i]);
        if (q < uniform()) continue;
        p->index[k] = (uint32_t)i, p->values[k++] = q < 1 ? x[i] / q : x[i];
    }
    p->k = k;
}

/* AdaQ keeps the largest above zero and below, as their means; SBC only the side with the larger one. */
static void sides_encode(const cg_op *op, const float *restrict x, size_t n, plain *p) {
    float *copy = (float *)(void *)p->codes, t[2], mean[2];
    size_t i, k = 0;
    int side;
    for (side = 0; side < 2; side++) {
        size_t m = 0, want;
        double sum = 0;
        for (i = 0; i < n; i++)
            if (side ? x[i] < 0 : x[i] > 0) copy[m++] = fabsf(x[i]);
        t[side] = HUGE_VALF, mean[side] = 0;
        if (!m) continue;
        want = count_of(op->select.value, op->select.id == CG_SELECT_SIDE ? n : m);
        want = want < m ? want : m;
        t[side] = kth_largest(copy, m, want - 1);
        for (i = 0; i < want; i++) sum += (double)copy[i];
        mean[side] = (float)(sum / (double)want);
    }
    if (op->select.id == CG_SELECT_SIDE) t[mean[0] >= mean[1]] = HUGE_VALF;
    for (i = 0; i < n; i++)
        if (x[i] >= t[0] || x[i] <= -t[1]) p->index[k] = (uint32_t)i, p->values[k++] = x[i] < 0 ? -mean[1] : mean[0];
    p->k = k;
}

/* One step for all values, and levels of 16 bits, without an entropy code. */
static void steps_encode(const cg_op *op, const float *restrict x, size_t n, plain *p) {
    int16_t *codes = (int16_t *)(void *)p->codes;
    double squares = 0;
    float inverse;
    size_t i;
    (void)op;
    for (i = 0; i < n; i++) squares += (double)x[i] * (double)x[i];
    p->scales[0] = (float)sqrt(squares / (double)n);
    inverse = p->scales[0] > 0 ? 1.0f / p->scales[0] : 0;
    for (i = 0; i < n; i++) {
        float t = x[i] * inverse;
        codes[i] = (int16_t)(t < 0 ? t - 0.3f : t + 0.3f);
    }
}
static void steps_decode(const cg_op *op, const plain *p, float *restrict y, size_t n) {
    const int16_t *codes = (const int16_t *)(const void *)p->codes;
    size_t i;
    (void)op;
    for (i = 0; i < n; i++) y[i] = (float)codes[i] * p->scales[0];
}
static void natural_encode(const cg_op *op, const float *restrict x, size_t n, plain *p) {
    uint16_t *h = (uint16_t *)(void *)p->codes;
    size_t i;
    (void)op;
    for (i = 0; i < n; i++) h[i] = (uint16_t)((to_bits(x[i]) + rand24() / 2) >> 23);
}

static void natural_decode(const cg_op *op, const plain *p, float *restrict y, size_t n) {
    const uint16_t *h = (const uint16_t *)(const void *)p->codes;
    size_t i;
    (void)op;
    for (i = 0; i < n; i++) y[i] = from_bits((uint32_t)h[i] << 23);
}

/* QSGD and natural dithering: a sign and a level, a byte for each */
static void qsgd_encode(const cg_op *op, const float *restrict x, size_t n, plain *p) {
    const cg_stage *q = &op->quantize;
    const size_t size = bucket_of(q, n);
    const int top = q->id == CG_QUANTIZE_DITHER ? (1 << (q->arg - 1)) - 1 : q->arg;
    size_t b, i;
    for (b = 0; b < n; b += size) {
        const size_t end = end_of(b, size, n);
        const float norm = q->flags & CG_FLAG_MAX ? largest(x + b, end - b) : l2_norm(x + b, end - b),
                    inverse = norm > 0 ? 1 / norm : 0;
        const float lowest = ldexpf(1.0f, 1 - top);
        p->scales[b / size] = norm;
        for (i = b; i < end; i++) {
            const float v = fabsf(x[i]) * inverse;
            int level;
            if (q->id != CG_QUANTIZE_DITHER) level = (int)(v * (float)top + uniform());
            else if (v < lowest) level = uniform() * lowest < v;
            else level = top - 127 + (int)((to_bits(v) + rand24() / 2) >> 23);
            p->codes[i] = (uint8_t)(level | (x[i] < 0 ? 128 : 0));
        }
    }
}

static void qsgd_decode(const cg_op *op, const plain *p, float *restrict y, size_t n) {
    const cg_stage *q = &op->quantize;
    const size_t size = bucket_of(q, n);
    const int top = q->id == CG_QUANTIZE_DITHER ? (1 << (q->arg - 1)) - 1 : q->arg;
    float value[256];
    size_t b, i;
    int l;
    for (l = 0; l < 128; l++) {
        value[l] = q->id != CG_QUANTIZE_DITHER ? (float)l / (float)top : l ? ldexpf(1.0f, l - top) : 0;
        value[128 + l] = -value[l];
    }
    for (b = 0; b < n; b += size)
        for (i = b; i < end_of(b, size, n); i++) y[i] = p->scales[b / size] * value[p->codes[i]];
}

static void onebit_encode(const cg_op *op, const float *restrict x, size_t n, plain *p) {
    const size_t size = bucket_of(&op->quantize, n);
    size_t b, i;
    memset(p->codes, 0, (n + 7) / 8);
    for (b = 0; b < n; b += size) {
        const size_t end = end_of(b, size, n);
        float sum[2] = { 0, 0 };
        size_t count[2] = { 0, 0 };
        for (i = b; i < end; i++) {
            const int bit = x[i] < 0;
            sum[bit] += x[i], count[bit]++;
            p->codes[i / 8] |= (uint8_t)(bit << i % 8);
        }
        for (i = 0; i < 2; i++) p->scales[b / size * 2 + i] = count[i] ? sum[i] / (float)count[i] : 0;
    }
}

static void onebit_decode(const cg_op *op, const plain *p, float *restrict y, size_t n) {
    const size_t size = bucket_of(&op->quantize, n);
    size_t b, i;
    for (b = 0; b < n; b += size)
        for (i = b; i < end_of(b, size, n); i++) y[i] = p->scales[b / size * 2 + (p->codes[i / 8] >> i % 8 & 1)];
}

/* NF4, Dettmers' 8 bits, and EDEN's centroids: the nearest of a sorted table */
static int table_of(const cg_op *op, float *t) /* its bits */
{
    static const float normal[16] = { -1, -0.6962f, -0.5251f, -0.3949f, -0.2844f, -0.1848f, -0.0911f, 0, 0.0796f,
        0.1609f, 0.2461f, 0.3379f, 0.4407f, 0.5626f, 0.7230f, 1 };
    static const float lloyd[4][8] = { { 0.7979f }, { 0.4528f, 1.510f }, { 0.2451f, 0.7560f, 1.344f, 2.152f },
        { 0.1284f, 0.3881f, 0.6568f, 0.9424f, 1.256f, 1.618f, 2.069f, 2.733f } };
    int i, j, m = 0,
              bits = op->quantize.id == CG_QUANTIZE_LLOYD ? (int)op->quantize.value
        : op->quantize.id == CG_QUANTIZE_NF4              ? 4
                                                          : 8;
    if (op->quantize.id == CG_QUANTIZE_NF4) {
        memcpy(t, normal, sizeof normal);
    } else if (op->quantize.id == CG_QUANTIZE_LLOYD) {
        for (m = 1 << (bits - 1), i = 0; i < m; i++) t[m + i] = lloyd[bits - 1][i], t[m - 1 - i] = -lloyd[bits - 1][i];
    } else {
        /* 2^i means of neighbours from 0.1 to 1, at each power of ten */
        for (t[m++] = 0, i = 0; i < 7; i++)
            for (j = 0; j < 1 << i; j++) t[m++] = (float)(pow(10, i - 6) * (0.1 + 0.9 * (j + 0.5) / (1 << i)));
        for (t[m] = 1, i = m; i >= 0; i--) t[127 + i] = t[i];
        for (i = 1; i < m; i++) t[127 - i] = -t[127 + i];
    }
    return bits;
}

static void table_encode(const cg_op *op, const float *restrict x, size_t n, plain *p) {
    const int lloyd = op->quantize.id == CG_QUANTIZE_LLOYD;
    const size_t size = lloyd ? 1024 : bucket_of(&op->quantize, n);
    float t[256], middle[256];
    const int bits = table_of(op, t), half = 1 << (bits - 1);
    size_t b, i;
    int c;
    for (c = 0; c < 2 * half - 1; c++) middle[c] = (t[c] + t[c + 1]) / 2;
    memset(p->codes, 0, n * (size_t)bits / 8 + 1);
    for (b = 0; b < n; b += size) {
        const size_t end = end_of(b, size, n);
        const float scale = lloyd ? l2_norm(x + b, end - b) / sqrtf((float)(end - b)) : largest(x + b, end - b),
                    inverse = scale > 0 ? 1 / scale : 0;
        double energy = 0, product = 0;
        for (i = b; i < end; i++) {
            const float v = x[i] * inverse;
            int code = 0, step;
            for (step = half; step; step /= 2)
                if (v > middle[code + step - 1]) code += step;
            p->codes[i * (size_t)bits / 8] |= (uint8_t)(code << i * (size_t)bits % 8);
            if (lloyd) energy += (double)(x[i] * x[i]), product += (double)(x[i] * t[code]);
        }
        p->scales[b / size] = lloyd ? (float)(product > 0 ? energy / product : 0) : scale;
    }
}

static void table_decode(const cg_op *op, const plain *p, float *restrict y, size_t n) {
    const size_t size = op->quantize.id == CG_QUANTIZE_LLOYD ? 1024 : bucket_of(&op->quantize, n);
    float t[256];
    const size_t bits = (size_t)table_of(op, t);
    size_t b, i;
    for (b = 0; b < n; b += size)
        for (i = b; i < end_of(b, size, n); i++)
            y[i] = p->scales[b / size] * t[p->codes[i * bits / 8] >> i * bits % 8 & ((1u << bits) - 1)];
}

/* Random signs and the butterfly as every text has it, over 1024 values; what is left at the end stays. */
static void hadamard(float *a) {
    size_t h, i, j;
    for (h = 1; h < 1024; h *= 2)
        for (i = 0; i < 1024; i += 2 * h)
            for (j = i; j < i + h; j++) {
                const float u = a[j], v = a[j + h];
                a[j] = u + v, a[j + h] = u - v;
            }
}

static void rotate(float *a, size_t n, int rounds, int inverse) {
    size_t b, i;
    int round;
    for (b = 0; b + 1024 <= n; b += 1024)
        for (round = 0; round < rounds; round++) {
            rand_state = (uint32_t)b + (uint32_t)(inverse ? rounds - 1 - round : round);
            if (inverse) hadamard(a + b);
            for (i = b; i < b + 1024; i++) a[i] *= rand24() >> 23 ? -0.03125f : 0.03125f;
            if (!inverse) hadamard(a + b);
        }
}

static void rotated_encode(const cg_op *op, const float *restrict x, size_t n, plain *p) {
    memcpy(p->work, x, n * sizeof *x);
    rotate(p->work, n, op->transform.arg, 0);
    (op->quantize.id == CG_QUANTIZE_LLOYD ? table_encode : sign_encode)(op, p->work, n, p);
}

static void rotated_decode(const cg_op *op, const plain *p, float *restrict y, size_t n) {
    (op->quantize.id == CG_QUANTIZE_LLOYD ? table_decode : sign_decode)(op, p, y, n);
    rotate(y, n, op->transform.arg, 1);
}

static void dct(const float *x, size_t n, int inverse, float *y) /* 64 at a time, with a table */
{
    static float table[64][64];
    size_t b, i, j;
    if (table[0][0] == 0)
        for (i = 0; i < 64; i++)
            for (j = 0; j < 64; j++)
                table[i][j] = (float)(sqrt((i ? 2 : 1) / 64.0) * cos(acos(-1.0) / 64 * ((double)j + 0.5) * (double)i));
    memcpy(y + n / 64 * 64, x + n / 64 * 64, n % 64 * sizeof *x);
    for (b = 0; b + 64 <= n; b += 64)
        for (i = 0; i < 64; i++) {
            float sum = 0;
            for (j = 0; j < 64; j++) sum += x[b + j] * (inverse ? table[j][i] : table[i][j]);
            y[b + i] = sum;
        }
}

static void demo_encode(const cg_op *op, const float *restrict x, size_t n, plain *p) {
    dct(x, n, 0, p->work);
    topk_encode(op, p->work, n, p);
}

static void demo_decode(const cg_op *op, const plain *p, float *restrict y, size_t n) {
    sparse_decode(op, p, p->work, n);
    dct(p->work, n, 1, y);
}

/* One power iteration: P = M Q, orthonormal; Q = M^T P. The factors lie in work (rows) and values (columns). */
static void lowrank_encode(const cg_op *op, const float *restrict x, size_t n, plain *p) {
    const size_t rank = op->transform.arg, rows = op->transform.size, cols = n / rows;
    float *restrict a = p->work, *restrict b = p->values;
    size_t i, c, j, l;
    for (i = 0; i < cols * rank; i++) b[i] = uniform() - 0.5f;
    memset(a, 0, rows * rank * sizeof *a);
    for (i = 0; i < rows; i++)
        for (c = 0; c < cols; c++)
            for (j = 0; j < rank; j++) a[i * rank + j] += x[i * cols + c] * b[c * rank + j];
    for (j = 0; j < rank; j++)
        for (l = 0; l <= j; l++) { /* Gram-Schmidt; l == j: to length 1 */
            double dot = 0;
            for (i = 0; i < rows; i++) dot += (double)a[i * rank + j] * (double)a[i * rank + l];
            for (i = 0; i < rows; i++)
                a[i * rank + j] = l < j ? a[i * rank + j] - (float)dot * a[i * rank + l]
                                        : a[i * rank + j] / (float)(sqrt(dot) + 1e-20);
        }
    memset(b, 0, cols * rank * sizeof *b);
    for (i = 0; i < rows; i++)
        for (c = 0; c < cols; c++)
            for (j = 0; j < rank; j++) b[c * rank + j] += x[i * cols + c] * a[i * rank + j];
}

static void lowrank_decode(const cg_op *op, const plain *p, float *restrict y, size_t n) {
    const size_t rank = op->transform.arg, rows = op->transform.size, cols = n / rows;
    size_t i, c, j;
    for (i = 0; i < rows; i++)
        for (c = 0; c < cols; c++) {
            float sum = 0;
            for (j = 0; j < rank; j++) sum += p->work[i * rank + j] * p->values[c * rank + j];
            y[i * cols + c] = sum;
        }
}

/* ---- ... and its variable-length codes, first bit on top ---- */

typedef struct bit_io {
    uint8_t *at;
    uint64_t word;
    int count;
} bit_io;

static void put_bits(bit_io *b, uint64_t v, int count) /* at most 56 */
{
    b->word = b->word << count | v;
    for (b->count += count; b->count >= 8;) *b->at++ = (uint8_t)(b->word >> (b->count -= 8));
}

static uint32_t get_bit(bit_io *b) {
    if (!b->count) b->word = *b->at++, b->count = 8;
    return (uint32_t)(b->word >> --b->count & 1);
}

static uint32_t get_bits(bit_io *b, uint32_t v, int count) /* v: the bits before */
{
    while (count--) v = v << 1 | get_bit(b);
    return v;
}

static void start_bits(bit_io *b, const plain *p) { b->at = p->stream, b->word = 0, b->count = 0; }

static void put_omega(bit_io *b, uint32_t v) /* v > 1, after its length, after that one's ... */
{
    int top = 31;
    while (!(v >> top)) top--;
    if (top > 1) put_omega(b, (uint32_t)top);
    put_bits(b, v, top + 1);
}

static void omega_encode(const cg_op *op, const float *restrict x, size_t n, plain *p) {
    bit_io b;
    size_t i;
    start_bits(&b, p);
    qsgd_encode(op, x, n, p);
    for (i = 0; i < n; i++) {
        if (p->codes[i] & 127) put_omega(&b, (p->codes[i] & 127u) + 1);
        put_bits(&b, 0, 1);
        if (p->codes[i] & 127) put_bits(&b, p->codes[i] >> 7, 1);
    }
    put_bits(&b, 0, 7);
}

static void omega_decode(const cg_op *op, const plain *p, float *restrict y, size_t n) {
    bit_io b;
    size_t i;
    start_bits(&b, p);
    for (i = 0; i < n; i++) {
        uint32_t v = 1;
        while (get_bit(&b)) v = get_bits(&b, 1, (int)v);
        p->codes[i] = (uint8_t)(v > 1 ? (v - 1) | get_bit(&b) << 7 : 0);
    }
    qsgd_decode(op, p, y, n);
}

/* STC (with a sign) and SBC: gaps in Golomb's code, one magnitude */
static int golomb_low(const cg_op *op) {
    return (int)floor(1 + log(log(0.6180339887) / log(1 - (double)op->select.value)) / log(2));
}

static void golomb_encode(const cg_op *op, const float *restrict x, size_t n, plain *p) {
    const int low = golomb_low(op), signs = op->select.id == CG_SELECT_TOPK;
    double sum = 0;
    uint32_t next = 0;
    bit_io b;
    size_t j;
    (signs ? topk_encode : sides_encode)(op, x, n, p);
    start_bits(&b, p);
    for (j = 0; j < p->k; next = p->index[j++] + 1) {
        uint32_t gap = p->index[j] - next, q;
        for (q = gap >> low; q; q--) put_bits(&b, 1, 1);
        put_bits(&b, 0, 1);
        put_bits(&b, gap & ((1u << low) - 1), low);
        if (signs) put_bits(&b, p->values[j] < 0, 1);
        sum += (double)(signs ? fabsf(p->values[j]) : p->values[j]);
    }
    put_bits(&b, 0, 7);
    p->scales[0] = (float)(sum / (double)(p->k ? p->k : 1));
}

static void golomb_decode(const cg_op *op, const plain *p, float *restrict y, size_t n) {
    const int low = golomb_low(op), signs = op->select.id == CG_SELECT_TOPK;
    uint32_t next = 0;
    bit_io b;
    size_t j;
    memset(y, 0, n * sizeof *y);
    start_bits(&b, p);
    for (j = 0; j < p->k; j++) {
        uint32_t q = 0;
        while (get_bit(&b)) q++;
        next += get_bits(&b, q, low);
        y[next++] = signs && get_bit(&b) ? -p->scales[0] : p->scales[0];
    }
}

/* 3LC: five trits to a byte, then runs of the byte 121 (all zero) */
static void threelc_encode(const cg_op *op, const float *restrict x, size_t n, plain *p) {
    const float m = op->quantize.value * largest(x, n), limit = m / 2;
    size_t i, j, run = 0;
    uint8_t *out = p->stream;
    for (i = 0; i < n; i += 5) {
        int byte = 0;
        for (j = 5; j--;) byte = byte * 3 + 1 + (i + j < n ? (x[i + j] > limit) - (x[i + j] < -limit) : 0);
        run = byte == 121 ? run + 1 : 0;
        if (run == 15) run = 1;
        if (run > 1) out[-1] = (uint8_t)(243 + run - 2);
        else *out++ = (uint8_t)byte;
    }
    p->k = (size_t)(out - p->stream), p->scales[0] = m;
}

static void threelc_decode(const cg_op *op, const plain *p, float *restrict y, size_t n) {
    const float level[3] = { -p->scales[0], 0, p->scales[0] };
    size_t i = 0, j, k;
    (void)op;
    for (k = 0; k < p->k; k++) {
        int byte = p->stream[k], times = byte >= 243 ? byte - 241 : 1;
        while (times--) {
            int trits = byte >= 243 ? 121 : byte;
            for (j = 0; j < 5 && i < n; j++, trits /= 3) y[i++] = level[trits % 3];
        }
    }
}

/* Huffman over bytes: of the floats, or of two 4-bit levels each */
static struct { int child[511][2], root; } tree;

static size_t huffman_bytes(const cg_op *op, size_t n) { return op->quantize.id ? (n + 1) / 2 : 4 * n; }

static void huffman_encode(const cg_op *op, const float *restrict x, size_t n, plain *p) {
    const size_t bytes = huffman_bytes(op, n);
    size_t count[511] = { 0 }, i;
    uint64_t code[511];
    int length[511], node, next = 256, k, l;
    bit_io b;
    (op->quantize.id ? levels_encode : copy_encode)(op, x, n, p);
    for (i = 0; i < bytes; i++) count[p->codes[i]]++;
    for (tree.root = p->codes[0];; tree.root = next++) { /* join the two rarest until one is left */
        int rare[2] = { -1, -1 };
        for (node = 0; node < next; node++) {
            if (!count[node]) continue;
            if (rare[0] < 0 || count[node] < count[rare[0]]) rare[1] = rare[0], rare[0] = node;
            else if (rare[1] < 0 || count[node] < count[rare[1]]) rare[1] = node;
        }
        if (rare[1] < 0) break;
        count[next] = count[rare[0]] + count[rare[1]];
        for (k = 0; k < 2; k++) count[rare[k]] = 0, tree.child[next][k] = rare[k];
    }
    for (code[tree.root] = 0, length[tree.root] = 0, node = tree.root; node >= 256; node--)
        for (k = 0; k < 2; k++)
            l = tree.child[node][k], code[l] = code[node] << 1 | (unsigned)k, length[l] = length[node] + 1;
    start_bits(&b, p);
    for (i = 0; i < bytes; i++) put_bits(&b, code[p->codes[i]], length[p->codes[i]]);
    put_bits(&b, 0, 7);
}

static void huffman_decode(const cg_op *op, const plain *p, float *restrict y, size_t n) {
    const size_t bytes = huffman_bytes(op, n);
    size_t i;
    bit_io b;
    start_bits(&b, p);
    for (i = 0; i < bytes; i++) {
        int node = tree.root;
        while (node >= 256) node = tree.child[node][get_bit(&b)];
        p->codes[i] = (uint8_t)node;
    }
    (op->quantize.id ? levels_decode : copy_decode)(op, p, y, n);
}

static void add_decode(const cg_op *op, const plain *p, float *restrict y, size_t n) {
    const float *x = (const float *)(const void *)p->codes;
    size_t i;
    (void)op;
    for (i = 0; i < n; i++) y[i] += x[i];
}

/* ---- what is measured, and what it should reach ---- */

enum { BOTH, DIRECT, ADD }; /* DIRECT and ADD measure another way to decode; encode has its row above */
static const char *const how_name[] = { "", "direct", "add" };

typedef struct row {
    const char *text; /* as cg_op_parse reads it */
    int how;
    float encode_goal, decode_goal, times_goal; /* of the read limit, the write limit, the alternative; 0: none */
    const char *alternative;
    plain_encode encode;
    plain_decode decode;
} row;

static const row rows[] = { { "dense", BOTH, 0, 0.45f, 0, "memcpy", copy_encode, copy_decode },
    { "dense", DIRECT, 0, 0.60f, 0, "memcpy", copy_encode, copy_decode },
    { "f16", BOTH, 0.58f, 0.72f, 0, "loop", f16_encode, f16_decode },
    { "f16", DIRECT, 0, 0.85f, 0, "loop", f16_encode, f16_decode },
    { "bf16", BOTH, 0.62f, 0.72f, 0, "loop", bf16_encode, bf16_decode },
    { "bf16", DIRECT, 0, 0.85f, 0, "loop", bf16_encode, bf16_decode },
    { "sign", BOTH, 0.85f, 0.85f, 0, "loop", sign_encode, sign_decode },
    { "efsign", BOTH, 0.75f, 0.85f, 0, "loop", sign_encode, sign_decode },
    { "absmax:8:512:nearest", BOTH, 0.60f, 0.85f, 0, "loop", levels_encode, levels_decode },
    { "absmax:8:512", BOTH, 0.37f, 0.85f, 0, "loop", levels_encode, levels_decode },
    { "absmax:4:512:nearest", BOTH, 0.58f, 0.85f, 0, "loop", levels_encode, levels_decode },
    { "absmax:4:512", BOTH, 0.33f, 0.85f, 0, "loop", levels_encode, levels_decode },
    { "minmax:8:512", BOTH, 0.37f, 0.85f, 0, "loop", levels_encode, levels_decode },
    { "minmax:4:512", BOTH, 0.33f, 0.85f, 0, "loop", levels_encode, levels_decode },
    { "terngrad", BOTH, 0.33f, 0.85f, 0, "loop", ternary_encode, ternary_decode },
    /* e^-4.605: 1 % */
    { "threshold:4.605", BOTH, 0.60f, 0.80f, 0, "loop", threshold_encode, sparse_decode },
    { "topk:0.001", BOTH, 0.60f, 0.80f, 0, "quickselect", topk_encode, sparse_decode },
    { "topk:0.01", BOTH, 0.45f, 0.80f, 0, "quickselect", topk_encode, sparse_decode },
    { "randk:0.01", BOTH, 1.30f, 0.80f, 0, "loop", randk_encode, randk_decode },
    { "topk:0.01|absmax:4:512", BOTH, 0, 0.80f, 0, "quickselect", topk_levels_encode, topk_levels_decode },
    { "topk:0.001", ADD, 0, 0, 15, "y += x", copy_encode, add_decode },

    { "levels:16:512:max", BOTH, 0.25f, 0, 0, "loop", qsgd_encode, qsgd_decode },
    { "levels:16", BOTH, 0.25f, 0, 0, "loop", qsgd_encode, qsgd_decode },
    { "dither:4:512:max", BOTH, 0, 0, 0, "loop", qsgd_encode, qsgd_decode },
    { "natural", BOTH, 0.35f, 0, 0, "loop", natural_encode, natural_decode },
    { "e4m3", BOTH, 0.25f, 0, 0, "loop", e4m3_encode, e4m3_decode },
    { "mxfp4", BOTH, 0, 0, 0, "loop", mxfp4_encode, mxfp4_decode },
    { "nf4", BOTH, 0.25f, 0, 0, "search", table_encode, table_decode },
    { "dynamic8", BOTH, 0, 0, 0, "search", table_encode, table_decode },
    { "onebit:512", BOTH, 0, 0, 0, "loop", onebit_encode, onebit_decode },
    { "strom:1", BOTH, 0, 0, 0, "loop", ternary_encode, ternary_decode },
    { "threelc:1", BOTH, 0, 0, 0, "loop", threelc_encode, threelc_decode },

    { "rate:0.1", BOTH, 0.40f, 0.50f, 0, "loop", steps_encode, steps_decode },
    { "rate:0.5", BOTH, 0.13f, 0.15f, 0, "loop", steps_encode, steps_decode },
    { "rate:2", BOTH, 0.10f, 0.11f, 0, "loop", steps_encode, steps_decode },
    { "rate:4", BOTH, 0.10f, 0.11f, 0, "loop", steps_encode, steps_decode },

    { "rotate:1|sign", BOTH, 0.35f, 0, 0, "butterfly", rotated_encode, rotated_decode },
    { "rotate:2|sign", BOTH, 0.20f, 0, 0, "butterfly", rotated_encode, rotated_decode },
    { "eden:1", BOTH, 0.13f, 0.13f, 0, "butterfly", rotated_encode, rotated_decode },
    { "eden:2", BOTH, 0, 0, 0, "butterfly", rotated_encode, rotated_decode },
    { "eden:4", BOTH, 0, 0, 0, "butterfly", rotated_encode, rotated_decode },
    { "lowrank:4:4096:4096", BOTH, 0.30f, 0.40f, 0, "triple loop", lowrank_encode, lowrank_decode },

    { "dgc:0.01", BOTH, 0.40f, 0, 0, "sample", dgc_encode, sparse_decode },
    { "dgc:0.001", BOTH, 0.40f, 0, 0, "sample", dgc_encode, sparse_decode },
    { "mstopk:0.01", BOTH, 0.40f, 0, 0, "bisection", mstopk_encode, sparse_decode },
    { "mstopk:0.001", BOTH, 0.40f, 0, 0, "bisection", mstopk_encode, sparse_decode },
    { "sidco:0.01", BOTH, 0.40f, 0, 0, "loop", sidco_encode, sparse_decode },
    { "sidco:0.001", BOTH, 0.40f, 0, 0, "loop", sidco_encode, sparse_decode },
    { "wangni:0.01", BOTH, 0, 0, 0, "loop", wangni_encode, sparse_decode },
    { "chunked:4096:0.01", BOTH, 0, 0, 0, "quickselect", topk_encode, sparse_decode },
    { "demo_dct:0.1", BOTH, 0, 0, 0, "DCT by table", demo_encode, demo_decode },

    { "stc:0.01", BOTH, 0.40f, 0, 0, "quickselect", golomb_encode, golomb_decode },
    { "sbc:0.01", BOTH, 0, 0, 0, "quickselect", golomb_encode, golomb_decode },
    { "adaq:0.01", BOTH, 0, 0, 0, "quickselect", sides_encode, sparse_decode },
    { "qsgd:16", BOTH, 0, 0, 0, "bit by bit", omega_encode, omega_decode },
    { "absmax:4:512|huffman", BOTH, 0.10f, 0.10f, 0, "bit by bit", huffman_encode, huffman_decode },
    { "huffman", BOTH, 0.10f, 0.10f, 0, "bit by bit", huffman_encode, huffman_decode } };
static const row mid_row = { "topk:0.01", BOTH, 0.15f, 0, 0, "quickselect", topk_encode, sparse_decode };

enum { ROWS = sizeof rows / sizeof rows[0], SHAPES = sizeof shapes / sizeof shapes[0] };
enum { GOAL_N = 1 << 24, MID_N = 1 << 20, LARGE_N = 1 << 16, SMALL_N = 1 << 12 };
static const char *const fixed_ops[] = { "dense", "f16", "sign", "absmax:8:512", "topk:0.01" };
static const char *const real_ops[] = { "topk:0.01", "topk:0.001", "dgc:0.01", "sidco:0.01", "sidco:0.001",
    "mstopk:0.01", "stc:0.01", "f16", "absmax:8:512", "absmax:4:512", "absmax:4:512|huffman", "levels:7:512", "qsgd:16",
    "terngrad", "sign", "efsign", "onebit:512", "eden:1" };
/* ns per call; times the Laplace vector; of the read limit */
static const float fixed_goal = 300, cliff_goal = 4, vote_goal = 0.5f;
enum { VOTERS = 8, REAL_OPS = sizeof real_ops / sizeof real_ops[0] };

/* ---- measuring ---- */

typedef struct figures {
    double read, write, encode, decode, plain_encode, plain_decode;
    size_t bytes;
    double stream; /* the limit of decoding; write is the fill of a plain loop */
} figures;

static struct {
    float *x, *y;
    void *packet, *scratch;
    size_t cap, scratch_bytes;
    plain p;
} mem;

static void die(const char *what, const char *why) {
    fprintf(stderr, "bench: %s: %s\n", what, why);
    exit(1);
}

static void progress(const char *what) {
    if (isatty(2)) fprintf(stderr, "\r%-60s%s", what, *what ? "" : "\r");
}

static void *pages(size_t bytes) /* aligned, and touched so that no page fault is timed */
{
    void *p;
    if (posix_memalign(&p, 4096, bytes + 64)) die("memory", "not enough; try --n with a smaller number");
    memset(p, 0, bytes + 64);
    return p;
}

/* of this thread, as others may use the machine, too; of threads together only a clock can tell */
static double seconds(void) {
    struct timespec t;
    clock_gettime(THREADED ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Seconds per call of a statement; the smallest seen stays in best. */
#define TIME(best, calls, statement)                         \
  do {                                                       \
    size_t call_;                                            \
    double time_ = seconds();                                \
    for (call_ = 0; call_ < (calls); call_++) { statement; } \
    time_ = (seconds() - time_) / (double)(calls);           \
    if (time_ < (best)) (best) = time_;                      \
  } while (0)

static cg_op parse(const char *text) {
    cg_op op;
    cg_status s = cg_op_parse(&op, text);
    if (s != CG_OK) die(text, cg_status_str(s));
    return op;
}

static cg_status decode(int how, size_t len, size_t n) {
    cg_extra side = CG_ZERO;
    side.flags = CG_DECODE_DIRECT;
    if (how == ADD) return cg_decompress_add(mem.packet, len, 1.0f, mem.y, n);
    if (how == DIRECT) return cg_decode(&side, mem.packet, len, 1.0f, 0.0f, mem.y, n);
    return cg_decompress(mem.packet, len, mem.y, n);
}

static int fits(const row *r, size_t n) /* a matrix has its own n */
{
    const cg_op op = parse(r->text);
    return cg_bound(&op, n) > 0;
}

static figures measure(const row *r, size_t n, int reps) {
    const cg_tag tag = { 42, 1, 2, 3 };
    const cg_op op = parse(r->text);
    const size_t calls = n < MID_N / 4 ? (MID_N / 4) / (n + 64) : 1; /* small n: many calls, for the clock */
    const double start = seconds();
    figures f = { 1e9, 1e9, 1e9, 1e9, 1e9, 1e9, 0, 1e9 };
    cg_status s = CG_OK;
    double slow = 0;
    int rep;

    for (rep = -1; rep < reps && (rep < 2 || seconds() - start < 2); rep++) {
        TIME(f.read, calls, read_limit(mem.x, n));
        TIME(f.read, calls, read_limit(mem.x, n)); /* twice: the caches as warm as encode finds them */
        if (r->how == BOTH || rep < 0)
            TIME(f.encode, calls,
                s |= cg_compress(&op, &tag, mem.x, n, mem.packet, mem.cap, &f.bytes, mem.scratch, mem.scratch_bytes));
        TIME(f.stream, calls, stream_limit(mem.y, n));
        TIME(f.write, calls, write_limit(mem.y, n));
        TIME(f.write, calls, write_limit(mem.y, n));
        TIME(f.decode, calls, s |= decode(r->how, f.bytes, n));
        if (s != CG_OK) die(r->text, cg_status_str(s));
        if (n && rep < 3 && slow < 0.5) { /* the slow ones need fewer repetitions */
            slow -= seconds();
            TIME(f.plain_encode, calls, r->encode(&op, mem.x, n, &mem.p));
            if (r->how == ADD) write_limit(mem.y, n);
            TIME(f.plain_decode, calls, r->decode(&op, &mem.p, mem.y, n));
            slow += seconds();
        }
        if (rep < 0) f.read = f.write = f.stream = f.encode = f.decode = 1e9; /* warm-up */
        if (rep < 0 && slow < 0.5) f.plain_encode = f.plain_decode = 1e9;
        /* not shown */
        if (rep < 0 && r->how != BOTH) f.encode = f.plain_encode = 0;
    }
    return f;
}

/* ---- output ---- */

static FILE *csv;

static double rate(double seconds_per_call, size_t n) {
    return seconds_per_call > 0 ? 4e-9 * (double)n / seconds_per_call : 0;
}
static double ratio(double a, double b) { return a > 0 && b > 0 ? a / b : 0; }

static void put_csv(double v) {
    if (v > 0) fprintf(csv, ",%.4g", v);
    else fputc(',', csv);
}

static void write_csv(const char *text, const char *extra, const char *alternative, const figures *f, size_t n) {
    const char *params = strchr(text, ':');
    const double bits = n ? 8.0 * (double)f->bytes / (double)n : 0;
    int threads = 1;
#if defined(_OPENMP) && defined(COMPGRAD_OPENMP)
    threads = omp_get_max_threads();
#endif
    fprintf(csv, "%.*s,%s%s%s,%lu,%d,%s", (int)(params ? (size_t)(params - text) : strlen(text)), text,
        params ? params + 1 : "", params && *extra ? " " : "", extra, (unsigned long)n, threads,
        cg_isa_name(cg_isa_used()));
    put_csv(rate(f->encode, n));
    put_csv(rate(f->decode, n));
    put_csv(ratio(f->read, f->encode));
    put_csv(ratio(f->write, f->decode));
    put_csv(bits);
    fprintf(csv, ",%s", alternative);
    put_csv(ratio(f->plain_encode, f->encode));
    put_csv(ratio(f->plain_decode, f->decode));
    put_csv(ratio(f->stream, f->decode));
    fputc('\n', csv);
}

static int missed;

static void put(double v, int digits) {
    if (v > 0) printf(" %7.*f", digits, v);
    else printf(" %7s", "-");
}

static void put_goal(double v, int digits, double goal, int miss) {
    miss = miss && goal > 0 && v > 0;
    missed += miss;
    put(v, digits);
    fputs(miss ? "!" : " ", stdout);
    if (goal > 0) printf("%5.*f", digits, goal);
    else printf("%5s", "");
}
static void at_least(double v, int digits, double goal) { put_goal(v, digits, goal, v < goal); }
static void at_most(double v, int digits, double goal) { put_goal(v, digits, goal, v > goal); }

static void print_name(const row *r) { printf("%s %-*s", r->text, (int)(22 - strlen(r->text)), how_name[r->how]); }

static void print_row(const row *r, const figures *f, size_t n, int judge) {
    print_name(r);
    put(8.0 * (double)f->bytes / (double)n, 2);
    at_least(ratio(f->read, f->encode), 2, judge ? r->encode_goal : 0);
    put(rate(f->encode, n), 1);
    put(ratio(f->plain_encode, f->encode), 1);
    put(ratio(f->stream, f->decode), 2);
    at_least(ratio(f->write, f->decode), 2, judge ? r->decode_goal : 0);
    put(rate(f->decode, n), 1);
    at_least(ratio(f->plain_decode, f->decode), 1, judge ? r->times_goal : 0);
    printf("  %s\n", r->alternative);
    write_csv(r->text, how_name[r->how], r->alternative, f, n);
}

static void table_of_operators(size_t n, int reps) {
    static figures f[ROWS], mid;
    double read = 1e9, write = 1e9, stream = 1e9;
    int i;
    for (i = 0; i < ROWS; i++) {
        if (!fits(&rows[i], n)) continue;
        progress(rows[i].text);
        f[i] = measure(&rows[i], n, reps);
        if (f[i].read < read) read = f[i].read;
        if (f[i].write < write) write = f[i].write;
        if (f[i].stream < stream) stream = f[i].stream;
    }
    mid = measure(&mid_row, n < MID_N ? n : MID_N, reps * 3);
    progress("");
    printf(
        "n = %lu, Laplace. Reads %.1f GB/s, fills by streaming stores %.1f GB/s, by ordinary ones %.1f GB/s: the best "
        "seen; a row has its own.\n"
        "encode: fraction of the read limit. decode: of the streaming fill, its limit; fill: of the ordinary one. x: "
        "times as fast as plain C.\n\n",
        (unsigned long)n, rate(read, n), rate(stream, n), rate(write, n));
    printf("%-23s %7s %7s %5s %7s %7s %7s %7s %5s %7s %7s %5s  plain C\n", "operator", "bits", "encode", "goal", "GB/s",
        "x", "decode", "fill", "goal", "GB/s", "x", "goal");
    for (i = 0; i < ROWS; i++) { /* the limit of a row: the best of itself and its neighbours */
        figures g = f[i];
        int j;
        for (j = i - 1; j <= i + 1; j++) {
            if (j < 0 || j >= ROWS || !f[j].bytes) continue;
            if (f[j].read < g.read) g.read = f[j].read;
            if (f[j].write < g.write) g.write = f[j].write;
            if (f[j].stream < g.stream) g.stream = f[j].stream;
        }
        if (g.bytes) print_row(&rows[i], &g, n, n >= GOAL_N);
    }
    if (n > MID_N) {
        printf("\nn = %d, against the limits of that size: %.1f, %.1f and %.1f GB/s\n", (int)MID_N,
            rate(mid.read, MID_N), rate(mid.stream, MID_N), rate(mid.write, MID_N));
        print_row(&mid_row, &mid, MID_N, 1);
    }
}

static void vote_plain(const uint8_t *const *packets, size_t bytes, uint8_t *out) /* a counter for every bit */
{
    size_t i, p;
    int bit;
    for (i = 0; i < bytes; i++) {
        int votes[8] = { 0 }, byte = 0;
        for (p = 0; p < VOTERS; p++)
            for (bit = 0; bit < 8; bit++) votes[bit] += packets[p][i] >> bit & 1;
        for (bit = 0; bit < 8; bit++) byte |= (votes[bit] > VOTERS / 2) << bit;
        out[i] = (uint8_t)byte;
    }
}

static void measure_vote(size_t n, int reps) {
    const cg_op op = cg_sign();
    const size_t room = (cg_bound(&op, n) + 63) / 64 * 64, shift = n / VOTERS;
    uint8_t *all = (uint8_t *)pages(room * (VOTERS + 1)), *out = all + VOTERS * room;
    const uint8_t *bodies[VOTERS];
    const void *packets[VOTERS];
    size_t lens[VOTERS], total = 0, i;
    figures f = { 1e9, 0, 1e9, 0, 1e9, 0, 0, 0 };
    double scale;
    int rep, s = CG_OK;
    progress("vote");
    memcpy(mem.y, mem.x, n * sizeof *mem.y);
    for (i = 0; i < VOTERS; i++) {
        cg_tag tag = { 42, 1, 2, 0 };
        tag.rank = (uint32_t)i;
        s |= (int)cg_compress(&op, &tag, mem.y, n, all + i * room, room, &lens[i], mem.scratch, mem.scratch_bytes);
        packets[i] = all + i * room, bodies[i] = all + i * room + CG_HEADER_BYTES, total += lens[i];
        /* another vector for the next */
        memcpy(mem.y, mem.x + n - (i + 1) * shift, (i + 1) * shift * sizeof *mem.y);
    }
    for (rep = -1; rep < 2 * reps && s == CG_OK; rep++) {
        write_limit(mem.y, n); /* the packets would fit a cache; they come from a network */
        TIME(f.read, 1, read_limit(mem.x, total / 4));
        write_limit(mem.y, n);
        TIME(f.encode, 1, s |= (int)cg_vote(packets, lens, VOTERS, out, room, &f.bytes));
        if (rep < 3) TIME(f.plain_encode, 1, vote_plain(bodies, (n + 7) / 8, out));
    }
    if (s != CG_OK) die("vote", cg_status_str((cg_status)s));
    progress("");
    scale = 4 * (double)n / (double)total; /* times as for 4n bytes: that is what the other rows read */
    f.read *= scale, f.encode *= scale, f.plain_encode *= scale;
    printf("\ncg_vote over %d sign packets, against reading as many bytes as they have (%.1f GB/s)\n", (int)VOTERS,
        rate(f.read, n));
    printf("%-23s", "vote");
    put(8.0 * (double)f.bytes / (double)n, 2);
    at_least(ratio(f.read, f.encode), 2, n >= GOAL_N ? vote_goal : 0);
    put(rate(f.encode, n), 1);
    put(ratio(f.plain_encode, f.encode), 1);
    printf("  counters\n");
    write_csv("vote:8", "", "counters", &f, n);
    free(all);
}

static void table_of_small(int reps) {
    static const size_t sizes[] = { SMALL_N, LARGE_N };
    size_t i, j;
    printf("\nSmall layers: ns per call\n%-23s%20s%-10d%14s%d\n", "", "n = ", (int)SMALL_N, "n = ", (int)LARGE_N);
    printf("%-23s %11s %11s %11s %11s\n", "operator", "encode", "decode", "encode", "decode");
    for (i = 0; i < ROWS; i++) {
        print_name(&rows[i]);
        for (j = 0; j < 2; j++) {
            figures f;
            if (!fits(&rows[i], sizes[j])) {
                printf("%12s%12s", "-", "-");
                continue;
            }
            f = measure(&rows[i], sizes[j], reps);
            printf("    "), put(f.encode * 1e9, 0);
            printf("    "), put(f.decode * 1e9, 0);
            write_csv(rows[i].text, how_name[rows[i].how], rows[i].alternative, &f, sizes[j]);
        }
        printf("\n");
    }
}

static void table_of_fixed_cost(int reps) {
    static const size_t sizes[] = { 0, 16, SMALL_N };
    size_t i, j;
    printf("\nThe fixed cost of a call: ns to encode n values\n%-23s %7s %5s %7s %5s %7s\n", "operator", "n = 0",
        "goal", "16", "", "4096");
    for (i = 0; i < sizeof fixed_ops / sizeof fixed_ops[0]; i++) {
        row r = { fixed_ops[i], BOTH, 0, 0, 0, "", copy_encode, copy_decode };
        printf("%-23s", fixed_ops[i]);
        for (j = 0; j < 3; j++) at_most(measure(&r, sizes[j], reps).encode * 1e9, 0, sizes[j] == 0 ? fixed_goal : 0);
        printf("\n");
    }
}

/* Only top-k promises not to be slow (cliff_goal); what the others take is for the user to know. */
static void table_of_cliffs(size_t n, int reps) {
    static const char *const ops[] = { "topk:0.001", "topk:0.01", "dgc:0.01", "sidco:0.01", "mstopk:0.01",
        "chunked:4096:0.01", "wangni:0.01", "sbc:0.01", "adaq:0.01" };
    enum { OPS = sizeof ops / sizeof ops[0], JUDGED = 2 };
    double base[OPS], worst[OPS] = { 0 };
    int i, j;
    printf("\nSelections on difficult vectors, n = %lu: ms of encoding a Laplace vector, and multiples of that. Goal "
           "of topk: "
           "%.0f\n%-23s",
        (unsigned long)n, (double)cliff_goal, "vector");
    for (j = 0; j < OPS; j++) printf(" %12.12s", ops[j]);
    printf("\n");
    for (i = 0; i < SHAPES; i++) {
        progress(shapes[i].name);
        fill(mem.x, n, &shapes[i]);
        progress("");
        printf("%-23s", i ? shapes[i].name : "Laplace: ms");
        for (j = 0; j < OPS; j++) {
            const cg_op op = parse(ops[j]);
            const double start = seconds();
            figures f = { 1e9, 0, 1e9, 0, 0, 0, 0, 0 };
            int rep, s = CG_OK, miss;
            /* a slow Laplace vector would hide a cliff */
            for (rep = 0; rep < (i ? reps : 3 * reps) && (rep < 3 || seconds() - start < 1); rep++) {
                TIME(f.read, 1, read_limit(mem.x, n));
                TIME(f.encode, 1,
                    s |= (int)cg_compress(
                        &op, NULL, mem.x, n, mem.packet, mem.cap, &f.bytes, mem.scratch, mem.scratch_bytes));
            }
            if (s != CG_OK) die(shapes[i].name, cg_status_str((cg_status)s));
            if (!i) base[j] = f.encode;
            else if (f.encode / base[j] > worst[j]) worst[j] = f.encode / base[j];
            miss = j < JUDGED && i && f.encode / base[j] > (double)cliff_goal;
            missed += miss;
            printf(" %11.2f%s", i ? f.encode / base[j] : f.encode * 1e3, miss ? "!" : " ");
            if (i) write_csv(ops[j], shapes[i].name, "Laplace", &f, n);
        }
        printf("\n");
        fflush(stdout);
    }
    printf("%-23s", "the worst");
    for (j = 0; j < OPS; j++) printf(" %11.2f ", worst[j]);
    printf("\n");
}

/* ---- real gradients: raw floats, as train --dump-gradients writes them ---- */
typedef struct gradient {
    char name[256];
    float *x;
    size_t n;
} gradient;
static gradient *gradients;
static size_t gradient_count;
static int is_f32(const struct dirent *d) {
    const char *dot = strrchr(d->d_name, '.');
    return dot && dot > d->d_name && !strcmp(dot, ".f32");
}

static const char *load(const char *path, gradient *g) /* what is wrong, or NULL */
{
    struct stat st;
    FILE *f;
    size_t i;
    if (stat(path, &st)) return strerror(errno);
    if (!S_ISREG(st.st_mode)) return "not a regular file; take it away or rename it";
    if (!st.st_size) return "empty; dump it again";
    if (st.st_size % 4) return "its size is no multiple of 4, so it was cut off or holds no floats; dump it again";
    if ((uint64_t)st.st_size / 4 > UINT32_MAX) return "more than 2^32 - 1 values; cut it";
    g->n = (size_t)st.st_size / 4;
    g->x = (float *)malloc(g->n * 4);
    if (!g->x) return "not enough memory for it; give a folder with fewer or smaller files";
    f = fopen(path, "rb");
    if (!f) return strerror(errno);
    i = fread(g->x, 4, g->n, f);
    fclose(f);
    if (i != g->n) return "cannot be read to its end; dump it again";
    for (i = 0; i < g->n; i++)
        if ((to_bits(g->x[i]) & 0x7f800000u) == 0x7f800000u)
            return "NaN or Inf in it; dump one of a run that did not diverge";
    return NULL;
}

static void load_all(const char *folder) /* before anything is measured; a bad file is left out */
{
    struct dirent **d = NULL;
    char path[4096], *c;
    const int many = scandir(folder, &d, is_f32, alphasort);
    int i;
    if (many < 0)
        fprintf(stderr, "bench: --gradients %s: %s; give a folder that train --dump-gradients wrote\n", folder,
            strerror(errno)),
            exit(2);
    gradients = (gradient *)calloc((size_t)many + 1, sizeof *gradients);
    for (i = 0; gradients && i < many; i++) {
        gradient *g = &gradients[gradient_count];
        const char *why;
        snprintf(path, sizeof path, "%s/%s", folder, d[i]->d_name);
        why = load(path, g);
        if (why) fprintf(stderr, "bench: %s: %s. Skipped.\n", path, why), free(g->x), g->x = NULL;
        else gradient_count++;
        snprintf(g->name, sizeof g->name, "%.*s", (int)strlen(d[i]->d_name) - 4, d[i]->d_name);
        for (c = g->name; *c; c++)
            if (*c == ',' || *c == '"' || (unsigned char)*c < ' ') *c = '_'; /* for the CSV */
    }
    if (!gradient_count)
        fprintf(stderr, "bench: --gradients %s: no %s*.f32 in it; train --dump-gradients writes them\n", folder,
            many ? "usable " : ""),
            exit(2);
}

typedef struct outcome {
    figures f;
    double kept, error;
} outcome;
static outcome measure_on(const float *x, size_t n, const row *r, int reps) {
    outcome o;
    cg_info info;
    double power = 0, error = 0, d;
    size_t i;
    memcpy(mem.x, x, n * sizeof *x);
    o.f = measure(r, n, reps);
    o.f.plain_encode = o.f.plain_decode = 0; /* here the alternative is another vector */
    if (decode(BOTH, o.f.bytes, n) != CG_OK || cg_inspect(mem.packet, o.f.bytes, &info) != CG_OK)
        die(r->text, "its own packet cannot be decoded");
    for (i = 0; i < n; i++) d = (double)x[i] - (double)mem.y[i], error += d * d, power += (double)x[i] * (double)x[i];
    o.error = ratio(error, power);
    o.kept = info.k < n ? 100 * (double)info.k / (double)n : 0;
    return o;
}

static void table_of_gradient(const gradient *g, int reps) {
    size_t i, v;
    fill(mem.p.work, g->n, &normal_shape);
    printf("\n%s, n = %lu\n%-23s %15s %15s %15s %15s %15s %19s\n", g->name, (unsigned long)g->n, "operator", "kept %",
        "bits", "encode", "GB/s", "decode GB/s", "error");
    for (i = 0; i < REAL_OPS; i++) {
        const row r = { real_ops[i], BOTH, 0, 0, 0, "normal", copy_encode, copy_decode };
        outcome o[2];
        for (v = 0; v < 2; v++) o[v] = measure_on(v ? mem.p.work : g->x, g->n, &r, reps);
        for (v = 0; v < 2; v++)
            if (o[!v].f.read < o[v].f.read) o[v].f.read = o[!v].f.read; /* one n, one limit */
        print_name(&r);
        for (v = 0; v < 2; v++) put(o[v].kept, 3);
        for (v = 0; v < 2; v++) put(8.0 * (double)o[v].f.bytes / (double)g->n, 2);
        for (v = 0; v < 2; v++) put(ratio(o[v].f.read, o[v].f.encode), 2);
        for (v = 0; v < 2; v++) put(rate(o[v].f.encode, g->n), 2);
        for (v = 0; v < 2; v++) put(rate(o[v].f.decode, g->n), 2);
        printf(" %9.3g %9.3g\n", o[0].error, o[1].error);
        o[0].f.plain_encode = o[1].f.encode, o[0].f.plain_decode = o[1].f.decode;
        write_csv(r.text, g->name, "normal", &o[0].f, g->n);
        if (g == gradients || g->n != g[-1].n) write_csv(r.text, "normal", "", &o[1].f, g->n);
    }
}

static void need(const char *text, size_t n) {
    const cg_op op = parse(text);
    if (cg_bound(&op, n) > mem.cap) mem.cap = cg_bound(&op, n);
    if (cg_scratch(&op, n) > mem.scratch_bytes) mem.scratch_bytes = cg_scratch(&op, n);
}

int main(int argc, char **argv) {
    static const char usage[] =
        "bench [--quick] [--worst] [--n N] [--reps R] [--csv PATH] [--gradients DIR]\n"
        "  --worst     only the selections on difficult vectors\n"
        "  --quick     n = 2^20 and few repetitions: only shows that it runs\n"
        "  --n N       values in the vector (default 2^24; goals are judged only from that on)\n"
        "  --reps R    repetitions; the best time is reported (default 9)\n"
        "  --csv PATH  file for the figures (default bench/out/results.csv)\n"
        "  --gradients DIR  also measures every *.f32 file in DIR; train --dump-gradients DIR writes them\n";
    const char *path = "bench/out/results.csv", *folder = NULL;
    size_t n = GOAL_N, room, i;
    int reps = 9, worst = 0, a;

    for (a = 1; a < argc; a++) {
        const char *value = a + 1 < argc ? argv[a + 1] : "";
        if (!strcmp(argv[a], "--help")) return fputs(usage, stdout), 0;
        if (!strcmp(argv[a], "--worst")) {
            worst = 1;
            continue;
        }
        if (!strcmp(argv[a], "--quick")) {
            n = MID_N;
            reps = 3;
            continue;
        }
        if (!strcmp(argv[a], "--n")) n = (size_t)strtoul(value, NULL, 0);
        else if (!strcmp(argv[a], "--reps")) reps = atoi(value);
        else if (!strcmp(argv[a], "--csv")) path = value;
        else if (!strcmp(argv[a], "--gradients")) folder = value;
        else return fputs(usage, stderr), 2;
        a++;
    }
    if (!n || n > UINT32_MAX || reps < 1 || !*path || (folder && !*folder)) return fputs(usage, stderr), 2;
    if (folder) load_all(folder);
    csv = fopen(path, "w");
    if (!csv) die(path, "cannot be written");
    fputs("op,params,n,threads,isa,encode_gbps,decode_gbps,encode_vs_read,decode_vs_write,bits_per_element,"
          "alternative,encode_times_alternative,decode_times_alternative,decode_vs_stream\n",
        csv);

    find_limits();
    room = n < LARGE_N ? LARGE_N : n;
    for (i = 0; i < gradient_count; i++)
        if (gradients[i].n > room) room = gradients[i].n;
    mem.x = (float *)pages(room * 4);
    mem.y = (float *)pages(room * 4);
    mem.p.codes = (uint8_t *)pages(room * 4);
    mem.p.values = (float *)pages(room * 4);
    mem.p.scales = (float *)pages(room / 8);
    mem.p.stream = (uint8_t *)pages(room * 4);
    mem.p.work = (float *)pages(room * 4);
    mem.p.index = (uint32_t *)pages(room * 4);
    for (i = 0; i < ROWS; i++) need(rows[i].text, n), need(rows[i].text, room);
    for (i = 0; i < REAL_OPS; i++) need(real_ops[i], room);
    mem.packet = pages(mem.cap);
    mem.scratch = pages(mem.scratch_bytes);
    progress("making the data");
    fill(mem.x, room, &shapes[0]);

    printf("compgrad %s, %s. ! marks a missed goal%s.\n", cg_version(), cg_isa_name(cg_isa_used()),
        n >= GOAL_N ? "" : "; the operators' goals are for n = 2^24 and not judged here");
    print_machine(seconds, mem.y, n);
    if (!worst) {
        table_of_operators(n, reps);
        measure_vote(n, reps);
        table_of_small(reps);
        table_of_fixed_cost(reps);
    }
    table_of_cliffs(n, reps);
    if (gradient_count)
        printf("\nReal gradients. Of two figures the second is that of a normal random vector of the same n. encode: "
               "fraction of the read limit of\n"
               "that n. kept: what is sent of the values. error: |x - y|^2 / |x|^2; sign sends no scale, so its error "
               "says nothing.\n");
    for (i = 0; i < gradient_count; i++) table_of_gradient(&gradients[i], 3 * reps);
    printf("\n%d goal%s missed; all figures are in %s\n", missed, missed == 1 ? "" : "s", path);
    if (fclose(csv)) die(path, "cannot be written");
    return 0;
}
