/* cc -O2 -I. bench/bench.c -o bench.out -lm && ./bench.out --csv results.csv        (or: make bench)

   How fast every operator is. Absolute speeds say more about the machine than about the code, so each figure
   is a fraction of what the memory allows, and a multiple of the plain C that a user would write instead.
   The limits are measured again around every operator: a busy machine slows both by the same factor. */

#define _POSIX_C_SOURCE 200112L
#define COMPGRAD_IMPLEMENTATION
#include "compgrad.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#ifdef _OPENMP
#  include <omp.h>
#endif

/* ---- data: integers make it, so that every machine measures the same vector -------------------- */

static uint64_t lcg_state = 1;

static uint32_t lcg(void)
{
    lcg_state = lcg_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(lcg_state >> 32);
}

static double exponential(void) { return -log(((double)lcg() + 0.5) * 0x1p-32); }

/* What top-k meets in real life and in bad luck. Value i of n. */
static float laplace(size_t i, size_t n)    { float m = (float)exponential(); (void)i; (void)n; return lcg() >> 31 ? -m : m; }
static float equal(size_t i, size_t n)      { (void)i; (void)n; return 1.0f; }
static float ascending(size_t i, size_t n)  { return (float)-log(1.0 - ((double)i + 0.5) / (double)n); }
static float descending(size_t i, size_t n) { return ascending(n - 1 - i, n); }
static float two_values(size_t i, size_t n) { (void)i; (void)n; return lcg() >> 31 ? 1.0f : 2.0f; }
static float zero(size_t i, size_t n)       { (void)i; (void)n; return 0.0f; }
static float outlier(size_t i, size_t n)    { return i == n / 2 ? 1e30f : laplace(i, n); }
static float outlier_only(size_t i, size_t n) { return i == n / 2 ? 1e30f : 1.0f; }
static float denormal(size_t i, size_t n)   { (void)i; (void)n; return (float)(lcg() >> 9) * 0x1p-149f; }
static float geometric(size_t i, size_t n)  { return (float)exp2(120.0 - 240.0 * (double)i / (double)n); }

typedef struct shape { const char *name; float (*at)(size_t i, size_t n); } shape;
static const shape shapes[] = {           /* the first is what the others are compared with */
    {"Laplace", laplace}, {"all equal", equal}, {"sorted ascending", ascending}, {"sorted descending", descending},
    {"two distinct values", two_values}, {"all zero", zero}, {"Laplace + one outlier", outlier},
    {"equal + one outlier", outlier_only}, {"denormals", denormal}, {"geometric sequence", geometric}
};

static void fill(float *x, size_t n, const shape *s)
{
    size_t i;
    lcg_state = 1;
    for (i = 0; i < n; i++) x[i] = s->at(i, n);
}

/* ---- the limits: reading x once, filling y once -------------------------------------------------- */

static volatile float sink;

static void read_plain(const float *x, size_t n)
{
    float sum[16] = {0};
    size_t i, j;
    for (i = 0; i + 16 <= n; i += 16) for (j = 0; j < 16; j++) sum[j] += x[i + j];
    for (j = 1; j < 16; j++) sum[0] += sum[j];
    sink = sum[0];
}

static void write_plain(float *y, size_t n)
{
    size_t i;
    for (i = 0; i < n; i++) y[i] = 1.0f;
}

static void (*read_limit)(const float *, size_t) = read_plain;
static void (*write_limit)(float *, size_t) = write_plain;

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

__attribute__((target("avx2"))) static void read_avx2(const float *x, size_t n)
{
    __m256 a = _mm256_setzero_ps(), b = a, c = a, d = a;
    float out[8];
    size_t i;
    for (i = 0; i + 32 <= n; i += 32) {
        a = _mm256_add_ps(a, _mm256_loadu_ps(x + i));
        b = _mm256_add_ps(b, _mm256_loadu_ps(x + i + 8));
        c = _mm256_add_ps(c, _mm256_loadu_ps(x + i + 16));
        d = _mm256_add_ps(d, _mm256_loadu_ps(x + i + 24));
    }
    _mm256_storeu_ps(out, _mm256_add_ps(_mm256_add_ps(a, b), _mm256_add_ps(c, d)));
    sink = out[0] + out[1] + out[2] + out[3] + out[4] + out[5] + out[6] + out[7];
}

__attribute__((target("avx2"))) static void write_avx2(float *y, size_t n)
{
    const __m256 one = _mm256_set1_ps(1.0f);
    size_t i;
    for (i = 0; i + 16 <= n; i += 16) {
        _mm256_storeu_ps(y + i, one);
        _mm256_storeu_ps(y + i + 8, one);
    }
    for (; i < n; i++) y[i] = 1.0f;
}

static void find_limits(void)
{
    if (__builtin_cpu_supports("avx2")) read_limit = read_avx2, write_limit = write_avx2;
}
#else
static void find_limits(void) {}
#endif

/* ---- what a user would write instead: plain arrays, no packet, no checksum, no check of anything -- */

typedef struct plain {
    uint8_t  *codes;     /* 4n bytes: packed levels, 16-bit floats, or the copy that quickselect works on */
    float    *values;    /* the values kept, or the scales */
    float    *scales;
    uint32_t *index;
    size_t    k;
} plain;

typedef void (*plain_encode)(const cg_op *op, const float *restrict x, size_t n, plain *p);
typedef void (*plain_decode)(const cg_op *op, const plain *p, float *restrict y, size_t n);

static uint32_t rand_state;
static float uniform(void) { return (float)((rand_state = rand_state * 1664525u + 1013904223u) >> 8) * 0x1p-24f; }

static void copy_encode(const cg_op *op, const float *restrict x, size_t n, plain *p)
{
    (void)op;
    memcpy(p->codes, x, n * sizeof *x);
}

static void copy_decode(const cg_op *op, const plain *p, float *restrict y, size_t n)
{
    (void)op;
    memcpy(y, p->codes, n * sizeof *y);
}

static void f16_encode(const cg_op *op, const float *restrict x, size_t n, plain *p)
{
    uint16_t *h = (uint16_t *)(void *)p->codes;
    size_t i;
    (void)op;
    for (i = 0; i < n; i++) {
        uint32_t u, sign;
        float f = fabsf(x[i]) + 0.5f;                  /* adding a half rounds what f16 holds as denormal */
        memcpy(&u, &x[i], 4);
        sign = u >> 16 & 0x8000u;
        u &= 0x7fffffffu;
        if (u >= 0x477ff000u)     u = 0x7bffu;
        else if (u < 0x38800000u) memcpy(&u, &f, 4), u -= 0x3f000000u;
        else                      u = (u - 0x37fff001u + (u >> 13 & 1)) >> 13;
        h[i] = (uint16_t)(u | sign);
    }
}

static void f16_decode(const cg_op *op, const plain *p, float *restrict y, size_t n)
{
    const uint16_t *h = (const uint16_t *)(const void *)p->codes;
    size_t i;
    (void)op;
    for (i = 0; i < n; i++) {
        uint32_t u = (h[i] & 0x7fffu) << 13;
        float f;
        memcpy(&f, &u, 4);
        f *= 0x1p112f;
        memcpy(&u, &f, 4);
        u |= (h[i] & 0x8000u) << 16;
        memcpy(&y[i], &u, 4);
    }
}

static void bf16_encode(const cg_op *op, const float *restrict x, size_t n, plain *p)
{
    uint16_t *h = (uint16_t *)(void *)p->codes;
    size_t i;
    (void)op;
    for (i = 0; i < n; i++) {
        uint32_t u;
        memcpy(&u, &x[i], 4);
        h[i] = (uint16_t)((u + 0x7fffu + (u >> 16 & 1)) >> 16);
    }
}

static void bf16_decode(const cg_op *op, const plain *p, float *restrict y, size_t n)
{
    const uint16_t *h = (const uint16_t *)(const void *)p->codes;
    size_t i;
    (void)op;
    for (i = 0; i < n; i++) {
        uint32_t u = (uint32_t)h[i] << 16;
        memcpy(&y[i], &u, 4);
    }
}

static void sign_encode(const cg_op *op, const float *restrict x, size_t n, plain *p)
{
    double sum = 0;
    size_t i;
    memset(p->codes, 0, (n + 7) / 8);
    for (i = 0; i < n; i++) p->codes[i / 8] |= (uint8_t)((x[i] < 0) << i % 8);
    if (op->quantize.id == CG_QUANTIZE_EFSIGN) for (i = 0; i < n; i++) sum += fabsf(x[i]);
    p->scales[0] = op->quantize.id == CG_QUANTIZE_EFSIGN ? (float)(sum / (double)n) : 1.0f;
}

static void sign_decode(const cg_op *op, const plain *p, float *restrict y, size_t n)
{
    const float level[2] = {p->scales[0], -p->scales[0]};
    size_t i;
    (void)op;
    for (i = 0; i < n; i++) y[i] = level[p->codes[i / 8] >> i % 8 & 1];
}

static void ternary_encode(const cg_op *op, const float *restrict x, size_t n, plain *p)
{
    float s = 0;
    size_t i;
    (void)op;
    for (i = 0; i < n; i++) if (fabsf(x[i]) > s) s = fabsf(x[i]);
    memset(p->codes, 0, (n + 3) / 4);
    for (i = 0; i < n; i++)
        if (uniform() * s < fabsf(x[i])) p->codes[i / 4] |= (uint8_t)((x[i] < 0 ? 2 : 1) << i % 4 * 2);
    p->scales[0] = s;
}

static void ternary_decode(const cg_op *op, const plain *p, float *restrict y, size_t n)
{
    const float level[4] = {0, p->scales[0], -p->scales[0], 0};
    size_t i;
    (void)op;
    for (i = 0; i < n; i++) y[i] = level[p->codes[i / 4] >> i % 4 * 2 & 3];
}

/* absmax and min-max, 8 or 4 bits: a scale and an offset for every bucket */
static void levels_encode(const cg_op *op, const float *restrict x, size_t n, plain *p)
{
    const cg_stage *q = &op->quantize;
    const float top = (float)((1 << q->arg) - (q->id == CG_QUANTIZE_ABSMAX ? 2 : 1));
    size_t b, i;
    for (b = 0; b < n; b += q->size) {
        const size_t end = b + q->size < n ? b + q->size : n;
        float lo = x[b], hi = x[b], inverse;
        if (q->id == CG_QUANTIZE_ABSMAX) {
            for (hi = 0, i = b; i < end; i++) if (fabsf(x[i]) > hi) hi = fabsf(x[i]);
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

static void levels_decode(const cg_op *op, const plain *p, float *restrict y, size_t n)
{
    const cg_stage *q = &op->quantize;
    size_t b, i;
    for (b = 0; b < n; b += q->size) {
        const size_t end = b + q->size < n ? b + q->size : n;
        const float lo = p->scales[b / q->size * 2], step = p->scales[b / q->size * 2 + 1];
        if (q->arg == 8) for (i = b; i < end; i++) y[i] = lo + step * (float)p->codes[i];
        else for (i = b; i < end; i++) y[i] = lo + step * (float)(p->codes[i / 2] >> i % 2 * 4 & 15);
    }
}

static void threshold_encode(const cg_op *op, const float *restrict x, size_t n, plain *p)
{
    const float t = op->select.value;
    size_t i, k = 0;
    for (i = 0; i < n; i++)
        if (fabsf(x[i]) > t) p->index[k] = (uint32_t)i, p->values[k++] = x[i];
    p->k = k;
}

static void sparse_decode(const cg_op *op, const plain *p, float *restrict y, size_t n)
{
    size_t j;
    (void)op;
    memset(y, 0, n * sizeof *y);
    for (j = 0; j < p->k; j++) y[p->index[j]] = p->values[j];
}

static float kth_largest(float *a, size_t n, size_t k)        /* Hoare's; k from 0 */
{
    size_t lo = 0, hi = n - 1;
    while (lo < hi) {
        const float pivot = a[lo + (hi - lo) / 2];
        size_t i = lo - 1, j = hi + 1;
        for (;;) {
            float swap;
            do i++; while (a[i] > pivot);
            do j--; while (a[j] < pivot);
            if (i >= j) break;
            swap = a[i], a[i] = a[j], a[j] = swap;
        }
        if (k <= j) hi = j;
        else lo = j + 1;
    }
    return a[k];
}

static size_t count_of(float ratio, size_t n)
{
    size_t k = (size_t)((double)ratio * (double)n + 0.5);
    return k < 1 ? 1 : k;
}

static void topk_encode(const cg_op *op, const float *restrict x, size_t n, plain *p)
{
    const size_t want = count_of(op->select.value, n);
    float *copy = (float *)(void *)p->codes, t;
    size_t i, k = 0, ties = want;
    for (i = 0; i < n; i++) copy[i] = fabsf(x[i]);
    t = kth_largest(copy, n, want - 1);
    for (i = 0; i < want; i++) ties -= copy[i] > t;
    for (i = 0; i < n; i++) {
        if (fabsf(x[i]) < t || (fabsf(x[i]) == t && !ties)) continue;
        if (fabsf(x[i]) == t) ties--;
        p->index[k] = (uint32_t)i, p->values[k++] = x[i];
    }
    p->k = k;
}

static void topk_levels_encode(const cg_op *op, const float *restrict x, size_t n, plain *p)
{
    topk_encode(op, x, n, p);
    levels_encode(op, p->values, p->k, p);
}

static void topk_levels_decode(const cg_op *op, const plain *p, float *restrict y, size_t n)
{
    levels_decode(op, p, p->values, p->k);
    sparse_decode(op, p, y, n);
}

static void randk_encode(const cg_op *op, const float *restrict x, size_t n, plain *p)
{
    size_t j;
    p->k = count_of(op->sample.value, n);
    for (rand_state = 1, j = 0; j < p->k; j++) p->values[j] = x[(size_t)((double)uniform() * (double)n)] * (float)(n / p->k);
}

static void randk_decode(const cg_op *op, const plain *p, float *restrict y, size_t n)
{
    size_t j;
    (void)op;
    memset(y, 0, n * sizeof *y);
    for (rand_state = 1, j = 0; j < p->k; j++) y[(size_t)((double)uniform() * (double)n)] = p->values[j];
}

static void add_decode(const cg_op *op, const plain *p, float *restrict y, size_t n)
{
    const float *x = (const float *)(const void *)p->codes;
    size_t i;
    (void)op;
    for (i = 0; i < n; i++) y[i] += x[i];
}

/* ---- what is measured, and what it should reach --------------------------------------------------- */

enum { BOTH, DIRECT, ADD };     /* DIRECT and ADD measure another way to decode; encode has its row above */
static const char *const how_name[] = {"", "direct", "add"};

typedef struct row {
    const char *text;                         /* as cg_op_parse reads it */
    int how;
    float encode_goal, decode_goal, times_goal;   /* of the read limit, the write limit, the alternative; 0: none */
    const char *alternative;
    plain_encode encode;
    plain_decode decode;
} row;

static const row rows[] = {
    {"dense",                    BOTH,      0, 0.45f,  0, "memcpy",      copy_encode,      copy_decode},
    {"dense",                    DIRECT,    0, 0.60f,  0, "memcpy",      copy_encode,      copy_decode},
    {"f16",                      BOTH,  0.58f, 0.72f,  0, "loop",        f16_encode,       f16_decode},
    {"f16",                      DIRECT,    0, 0.85f,  0, "loop",        f16_encode,       f16_decode},
    {"bf16",                     BOTH,  0.62f, 0.72f,  0, "loop",        bf16_encode,      bf16_decode},
    {"bf16",                     DIRECT,    0, 0.85f,  0, "loop",        bf16_encode,      bf16_decode},
    {"sign",                     BOTH,  0.85f, 0.85f,  0, "loop",        sign_encode,      sign_decode},
    {"efsign",                   BOTH,  0.75f, 0.85f,  0, "loop",        sign_encode,      sign_decode},
    {"absmax:8:512:nearest",     BOTH,  0.60f, 0.85f,  0, "loop",        levels_encode,    levels_decode},
    {"absmax:8:512",             BOTH,  0.37f, 0.85f,  0, "loop",        levels_encode,    levels_decode},
    {"absmax:4:512:nearest",     BOTH,  0.58f, 0.85f,  0, "loop",        levels_encode,    levels_decode},
    {"absmax:4:512",             BOTH,  0.33f, 0.85f,  0, "loop",        levels_encode,    levels_decode},
    {"minmax:8:512",             BOTH,  0.37f, 0.85f,  0, "loop",        levels_encode,    levels_decode},
    {"minmax:4:512",             BOTH,  0.33f, 0.85f,  0, "loop",        levels_encode,    levels_decode},
    {"terngrad",                 BOTH,  0.33f, 0.85f,  0, "loop",        ternary_encode,   ternary_decode},
    {"threshold:4.605",          BOTH,  0.60f, 0.80f,  0, "loop",        threshold_encode, sparse_decode},  /* e^-4.605: 1 % */
    {"topk:0.001",               BOTH,  0.60f, 0.80f,  0, "quickselect", topk_encode,      sparse_decode},
    {"topk:0.01",                BOTH,  0.45f, 0.80f,  0, "quickselect", topk_encode,      sparse_decode},
    {"randk:0.01",               BOTH,  1.30f, 0.80f,  0, "loop",        randk_encode,     randk_decode},
    {"topk:0.01|absmax:4:512",   BOTH,      0, 0.80f,  0, "quickselect", topk_levels_encode, topk_levels_decode},
    {"topk:0.001",               ADD,       0, 0,    15,  "y += x",      copy_encode,      add_decode}
};
static const row mid_row = {"topk:0.01", BOTH, 0.15f, 0, 0, "quickselect", topk_encode, sparse_decode};

enum { ROWS = sizeof rows / sizeof rows[0], SHAPES = sizeof shapes / sizeof shapes[0] };
enum { GOAL_N = 1 << 24, MID_N = 1 << 20, LARGE_N = 1 << 16, SMALL_N = 1 << 12 };
static const char *const fixed_ops[] = {"dense", "f16", "sign", "absmax:8:512", "topk:0.01"};
static const float fixed_goal = 300, cliff_goal = 4;      /* ns per call; times the Laplace vector */

/* ---- measuring ------------------------------------------------------------------------------------- */

typedef struct figures { double read, write, encode, decode, plain_encode, plain_decode; size_t bytes; } figures;

static struct { float *x, *y; void *packet, *scratch; size_t cap, scratch_bytes; plain p; } mem;

static void die(const char *what, const char *why)
{
    fprintf(stderr, "bench: %s: %s\n", what, why);
    exit(1);
}

static void progress(const char *what)
{
    if (isatty(2)) fprintf(stderr, "\r%-60s%s", what, *what ? "" : "\r");
}

static void *pages(size_t bytes)        /* aligned, and touched so that no page fault is timed */
{
    void *p;
    if (posix_memalign(&p, 4096, bytes + 64)) die("memory", "not enough; try --n with a smaller number");
    memset(p, 0, bytes + 64);
    return p;
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Seconds per call of a statement; the smallest seen stays in best. */
#define TIME(best, calls, statement) do {                                          \
        size_t call_;                                                              \
        double time_ = seconds();                                                  \
        for (call_ = 0; call_ < (calls); call_++) { statement; }                   \
        time_ = (seconds() - time_) / (double)(calls);                             \
        if (time_ < (best)) (best) = time_;                                        \
    } while (0)

static cg_op parse(const char *text)
{
    cg_op op;
    cg_status s = cg_op_parse(&op, text);
    if (s != CG_OK) die(text, cg_status_str(s));
    return op;
}

static cg_status decode(int how, size_t len, size_t n)
{
    cg_side side = CG_ZERO;
    side.flags = CG_DECODE_DIRECT;
    if (how == ADD) return cg_decompress_add(mem.packet, len, 1.0f, mem.y, n);
    if (how == DIRECT) return cg_decode(&side, mem.packet, len, 1.0f, 0.0f, mem.y, n);
    return cg_decompress(mem.packet, len, mem.y, n);
}

static figures measure(const row *r, size_t n, int reps)
{
    const cg_tag tag = {42, 1, 2, 3};
    const cg_op op = parse(r->text);
    const size_t calls = n < MID_N / 4 ? (MID_N / 4) / (n + 64) : 1;    /* small n: many calls, for the clock */
    figures f = {1e9, 1e9, 1e9, 1e9, 1e9, 1e9, 0};
    cg_status s = CG_OK;
    int rep;

    for (rep = -1; rep < reps; rep++) {
        TIME(f.read, calls, read_limit(mem.x, n));
        TIME(f.read, calls, read_limit(mem.x, n));        /* twice: the caches as warm as encode finds them */
        if (r->how == BOTH || rep < 0)
            TIME(f.encode, calls, s |= cg_compress(&op, &tag, mem.x, n, mem.packet, mem.cap, &f.bytes, mem.scratch, mem.scratch_bytes));
        TIME(f.write, calls, write_limit(mem.y, n));
        TIME(f.write, calls, write_limit(mem.y, n));
        TIME(f.decode, calls, s |= decode(r->how, f.bytes, n));
        if (s != CG_OK) die(r->text, cg_status_str(s));
        if (n && rep < 3) {                               /* the slow ones need fewer repetitions */
            TIME(f.plain_encode, calls, r->encode(&op, mem.x, n, &mem.p));
            if (r->how == ADD) write_limit(mem.y, n);
            TIME(f.plain_decode, calls, r->decode(&op, &mem.p, mem.y, n));
        }
        if (rep < 0) f.read = f.write = f.encode = f.decode = f.plain_encode = f.plain_decode = 1e9;     /* warm-up */
        if (rep < 0 && r->how != BOTH) f.encode = f.plain_encode = 0;                                     /* not shown */
    }
    return f;
}

/* ---- output ------------------------------------------------------------------------------------------ */

static FILE *csv;

static double rate(double seconds_per_call, size_t n) { return seconds_per_call > 0 ? 4e-9 * (double)n / seconds_per_call : 0; }
static double ratio(double a, double b) { return a > 0 && b > 0 ? a / b : 0; }

static void put_csv(double v) { if (v > 0) fprintf(csv, ",%.4g", v); else fputc(',', csv); }

static void write_csv(const char *text, const char *extra, const char *alternative, const figures *f, size_t n)
{
    const char *params = strchr(text, ':');
    const double bits = n ? 8.0 * (double)f->bytes / (double)n : 0;
    int threads = 1;
#if defined(_OPENMP) && defined(COMPGRAD_OPENMP)
    threads = omp_get_max_threads();
#endif
    fprintf(csv, "%.*s,%s%s%s,%lu,%d,%s", (int)(params ? (size_t)(params - text) : strlen(text)), text,
            params ? params + 1 : "", params && *extra ? " " : "", extra, (unsigned long)n, threads, cg_isa_name(cg_isa_used()));
    put_csv(rate(f->encode, n));
    put_csv(rate(f->decode, n));
    put_csv(ratio(f->read, f->encode));
    put_csv(ratio(f->write, f->decode));
    put_csv(bits);
    fprintf(csv, ",%s", alternative);
    put_csv(ratio(f->plain_encode, f->encode));
    put_csv(ratio(f->plain_decode, f->decode));
    fputc('\n', csv);
}

static int missed;

static void put(double v, int digits)
{
    if (v > 0) printf(" %7.*f", digits, v);
    else printf(" %7s", "-");
}

static void put_goal(double v, int digits, double goal, int miss)
{
    miss = miss && goal > 0 && v > 0;
    missed += miss;
    put(v, digits);
    fputs(miss ? "!" : " ", stdout);
    if (goal > 0) printf("%5.*f", digits, goal);
    else printf("%5s", "");
}
static void at_least(double v, int digits, double goal) { put_goal(v, digits, goal, v < goal); }
static void at_most(double v, int digits, double goal)  { put_goal(v, digits, goal, v > goal); }

static void print_name(const row *r) { printf("%s %-*s", r->text, (int)(22 - strlen(r->text)), how_name[r->how]); }

static void print_row(const row *r, const figures *f, size_t n, int judge)
{
    print_name(r);
    put(8.0 * (double)f->bytes / (double)n, 2);
    at_least(ratio(f->read, f->encode), 2, judge ? r->encode_goal : 0);
    put(rate(f->encode, n), 1);
    put(ratio(f->plain_encode, f->encode), 1);
    at_least(ratio(f->write, f->decode), 2, judge ? r->decode_goal : 0);
    put(rate(f->decode, n), 1);
    at_least(ratio(f->plain_decode, f->decode), 1, judge ? r->times_goal : 0);
    printf("  %s\n", r->alternative);
    write_csv(r->text, how_name[r->how], r->alternative, f, n);
}

static void table_of_operators(size_t n, int reps)
{
    static figures f[ROWS], mid;
    double read = 1e9, write = 1e9;
    int i;
    for (i = 0; i < ROWS; i++) {
        progress(rows[i].text);
        f[i] = measure(&rows[i], n, reps);
        if (f[i].read < read) read = f[i].read;
        if (f[i].write < write) write = f[i].write;
    }
    mid = measure(&mid_row, n < MID_N ? n : MID_N, reps * 3);
    progress("");
    printf("n = %lu, Laplace. Read limit %.1f GB/s, write limit %.1f GB/s: the best seen; a row has its own.\n"
           "encode: fraction of the read limit. decode: of the write limit. x: times as fast as plain C.\n\n",
           (unsigned long)n, rate(read, n), rate(write, n));
    printf("%-23s %7s %7s %5s %7s %7s %7s %5s %7s %7s %5s  plain C\n", "operator", "bits", "encode", "goal", "GB/s", "x",
           "decode", "goal", "GB/s", "x", "goal");
    for (i = 0; i < ROWS; i++) {       /* the limit of a row: the best of itself and its neighbours */
        figures g = f[i];
        int j;
        for (j = i - 1; j <= i + 1; j++) {
            if (j < 0 || j >= ROWS) continue;
            if (f[j].read < g.read) g.read = f[j].read;
            if (f[j].write < g.write) g.write = f[j].write;
        }
        print_row(&rows[i], &g, n, n >= GOAL_N);
    }
    if (n > MID_N) {
        printf("\nn = %d, against the limits of that size: %.1f and %.1f GB/s\n", (int)MID_N, rate(mid.read, MID_N), rate(mid.write, MID_N));
        print_row(&mid_row, &mid, MID_N, 1);
    }
}

static void table_of_small(int reps)
{
    static const size_t sizes[] = {SMALL_N, LARGE_N};
    size_t i, j;
    printf("\nSmall layers: ns per call\n%-23s%20s%-10d%14s%d\n", "", "n = ", (int)SMALL_N, "n = ", (int)LARGE_N);
    printf("%-23s %11s %11s %11s %11s\n", "operator", "encode", "decode", "encode", "decode");
    for (i = 0; i < ROWS; i++) {
        print_name(&rows[i]);
        for (j = 0; j < 2; j++) {
            figures f = measure(&rows[i], sizes[j], reps);
            printf("    "), put(f.encode * 1e9, 0);
            printf("    "), put(f.decode * 1e9, 0);
            write_csv(rows[i].text, how_name[rows[i].how], rows[i].alternative, &f, sizes[j]);
        }
        printf("\n");
    }
}

static void table_of_fixed_cost(int reps)
{
    static const size_t sizes[] = {0, 16, SMALL_N};
    size_t i, j;
    printf("\nThe fixed cost of a call: ns to encode n values\n%-23s %7s %5s %7s %5s %7s\n",
           "operator", "n = 0", "goal", "16", "", "4096");
    for (i = 0; i < sizeof fixed_ops / sizeof fixed_ops[0]; i++) {
        row r = {fixed_ops[i], BOTH, 0, 0, 0, "", copy_encode, copy_decode};
        printf("%-23s", fixed_ops[i]);
        for (j = 0; j < 3; j++) at_most(measure(&r, sizes[j], reps).encode * 1e9, 0, sizes[j] == 0 ? fixed_goal : 0);
        printf("\n");
    }
}

static void table_of_cliffs(size_t n, int reps)
{
    static const char *const ops[] = {"topk:0.001", "topk:0.01"};
    double base[2] = {0, 0};
    int i, j;
    printf("\nTop-k on difficult vectors, n = %lu: ms, and as a multiple of the Laplace vector\n%-23s", (unsigned long)n, "vector");
    for (j = 0; j < 2; j++) printf(" %10s %7s %5s", ops[j], "times", "goal");
    printf("\n");
    for (i = 0; i < SHAPES; i++) {
        progress(shapes[i].name);
        fill(mem.x, n, &shapes[i]);
        progress("");
        printf("%-23s", shapes[i].name);
        for (j = 0; j < 2; j++) {
            const cg_op op = parse(ops[j]);
            figures f = {1e9, 0, 1e9, 0, 0, 0, 0};
            int rep, s = CG_OK;
            for (rep = 0; rep < (i ? reps : 2 * reps); rep++) {      /* a slow Laplace vector would hide a cliff */
                TIME(f.read, 1, read_limit(mem.x, n));
                TIME(f.encode, 1, s |= (int)cg_compress(&op, NULL, mem.x, n, mem.packet, mem.cap, &f.bytes, mem.scratch, mem.scratch_bytes));
            }
            if (s != CG_OK) die(shapes[i].name, cg_status_str((cg_status)s));
            if (!i) base[j] = f.encode;
            printf(" %10.2f", f.encode * 1e3);
            at_most(f.encode / base[j], 2, i ? cliff_goal : 0);
            if (i) write_csv(ops[j], shapes[i].name, "Laplace", &f, n);
        }
        printf("\n");
    }
}

int main(int argc, char **argv)
{
    static const char usage[] =
        "bench [--quick] [--n N] [--reps R] [--csv PATH]\n"
        "  --quick     n = 2^20 and few repetitions: does it run at all\n"
        "  --n N       values in the vector (2^24; goals are judged from there on)\n"
        "  --reps R    repetitions, of which the best counts (9)\n"
        "  --csv PATH  where the figures go (bench/out/results.csv)\n";
    const char *path = "bench/out/results.csv";
    size_t n = GOAL_N, room, i;
    int reps = 9, a;

    for (a = 1; a < argc; a++) {
        const char *value = a + 1 < argc ? argv[a + 1] : "";
        if (!strcmp(argv[a], "--help")) return fputs(usage, stdout), 0;
        if (!strcmp(argv[a], "--quick")) { n = MID_N; reps = 3; continue; }
        if (!strcmp(argv[a], "--n")) n = (size_t)strtoul(value, NULL, 0);
        else if (!strcmp(argv[a], "--reps")) reps = atoi(value);
        else if (!strcmp(argv[a], "--csv")) path = value;
        else return fputs(usage, stderr), 2;
        a++;
    }
    if (!n || n > UINT32_MAX || reps < 1 || !*path) return fputs(usage, stderr), 2;
    csv = fopen(path, "w");
    if (!csv) die(path, "cannot be written");
    fputs("op,params,n,threads,isa,encode_gbps,decode_gbps,encode_vs_read,decode_vs_write,bits_per_element,"
          "alternative,encode_times_alternative,decode_times_alternative\n", csv);

    find_limits();
    room = n < LARGE_N ? LARGE_N : n;
    mem.x = (float *)pages(room * 4);
    mem.y = (float *)pages(room * 4);
    mem.p.codes = (uint8_t *)pages(room * 4);
    mem.p.values = (float *)pages(room * 4);
    mem.p.scales = (float *)pages(room / 64);
    mem.p.index = (uint32_t *)pages(room * 4);
    for (i = 0; i < ROWS; i++) {
        cg_op op = parse(rows[i].text);
        if (cg_bound(&op, room) > mem.cap) mem.cap = cg_bound(&op, room);
        if (cg_scratch(&op, room) > mem.scratch_bytes) mem.scratch_bytes = cg_scratch(&op, room);
    }
    mem.packet = pages(mem.cap);
    mem.scratch = pages(mem.scratch_bytes);
    progress("making the data");
    fill(mem.x, room, &shapes[0]);

    printf("compgrad %s, %s. ! marks a missed goal%s.\n", cg_version(), cg_isa_name(cg_isa_used()),
           n >= GOAL_N ? "" : "; the operators' goals are for n = 2^24 and not judged here");
    table_of_operators(n, reps);
    table_of_small(reps);
    table_of_fixed_cost(reps);
    table_of_cliffs(n, reps);
    printf("\n%d goal%s missed; all figures are in %s\n", missed, missed == 1 ? "" : "s", path);
    if (fclose(csv)) die(path, "cannot be written");
    return 0;
}
