/* net.h - a small image classifier and its gradient in plain C, for bench/train.c.

     net n;
     if (net_init(&n, "lenet", 28, 28, 10)) die("one of %s", net_kinds());
     float *params = malloc(n.n * sizeof(float)), *grad = malloc(n.n * sizeof(float));
     float *mem = malloc(net_memory(&n, 16) * sizeof(float));
     net_start(&n, seed, params);
     double loss = net_gradient(&n, params, images, labels, 16, grad, mem);     // images: 16 pointers to 28 * 28 bytes
     // ... params -= rate * grad; n.tensor[i] says where each matrix is, e.g. for a low-rank method

   lenet   conv 5x5 to 16, ReLU, max-pool 2, conv 5x5 to 32, ReLU, max-pool 2, dense 512, ReLU, dense
           (281k parameters at 28x28)
   mlp     dense 256, ReLU, dense 128, ReLU, dense
   small   dense 64, ReLU, dense 32, ReLU, dense

   A weight is a matrix of inputs x outputs; the inputs of a convolution are (row of the window, column, channel).
   Images and what the convolutions make of them lie as (row, column, channel). A pool leaves out the last row or
   column of an odd number.

   Nothing is allocated, and there are no globals: threads may share a net and the parameters; each needs a mem of
   its own.

   The same bits come out on every machine, compiler and SIMD width, as long as they are finite and the processor
   rounds as it does by default: every sum has one order, each product is rounded before it is added, and vectors
   go across sums, never along one. Only the loss that is returned uses libm (log). One core of 2023 makes 13000
   gradients of lenet a second with AVX-512, 9000 with AVX2. */

#ifndef NET_H
#define NET_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { NET_TENSORS = 16, NET_LAYERS_ = 4, NET_WINDOW_ = 5, NET_ROWS_ = 8 };

/* parameters first..first+n; a bias has cols 1 */
typedef struct net_tensor {
    char name[16];
    size_t first, n, rows, cols;
} net_tensor;

typedef struct net_layer_ {
    int conv;    /* convolution, ReLU and pool; else dense, with a ReLU unless it is the last */
    int h, w, c; /* input; dense: 1, 1, inputs */
    /* output before the pool: rows and columns that the pool uses, channels; dense: 1, 1, outputs */
    int oh, ow, o;
    size_t in, out;      /* floats per image */
    size_t weight, bias; /* where in the parameters */
} net_layer_;

typedef struct net {
    size_t n; /* parameters */
    int tensors;
    net_tensor tensor[NET_TENSORS];
    int height, width, classes;
    int layers_, simd_; /* simd_: bytes of a vector; a test may lower it */
    net_layer_ layer_[NET_LAYERS_];
    float pixel_[256];
} net;

/* Bits must not depend on the includer's flags: no contraction and no fast math between here and the end of this
   file. O3 for its vectors. */
#if defined(__clang__)
#  if defined(__x86_64__) || defined(__i386__)
#    pragma float_control(push)
#    pragma float_control(precise, on)
#  endif
#  pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__) && !defined(__TINYC__)
#  pragma GCC push_options
#  pragma GCC optimize("O3", "no-fast-math", "fp-contract=off")
#endif

#if defined(__GNUC__) && !defined(__TINYC__)
#  define NET_FUNCTION_ static __attribute__((unused))
#  define NET_RESTRICT_ __restrict
#else
#  define NET_FUNCTION_ static
#  define NET_RESTRICT_
#endif

/* Where floats are computed as double (some S/390, x87), every result and constant goes to a variable, which
   rounds it; no vectors. */
#if defined(__GNUC__) && !defined(__TINYC__) && __FLT_EVAL_METHOD__ != 1 && __FLT_EVAL_METHOD__ != 2
#  define NET_SIMD_ 1
#else
#  define NET_SIMD_ 0
#endif
#define NET_VECTOR_(bytes) typedef float net_v_ __attribute__((vector_size(bytes), aligned(4), may_alias))
#define NET_FLOAT_(bytes) typedef float net_v_

/* clang's back end fuses a product with a sum under -ffp-contract=fast, whatever the pragmas say: hide the product. */
#if defined(__clang__) && defined(__x86_64__)
#  define NET_FENCE_(product) __asm__("" : "+v"(product))
#elif defined(__clang__) && defined(__aarch64__)
#  define NET_FENCE_(product) __asm__("" : "+w"(product))
#else
#  define NET_FENCE_(product) ((void)0)
#endif

/* ---- products of matrices: all the work is here ---- */

/* c[i][j] = start[i][j] + the sum over k2, then k1, of a[i, k1, k2] * b[k1, k2][j]. A number behind the name of a
   matrix is a stride. */
typedef struct net_product_ {
    ptrdiff_t m, n, k1, k2;
    const float *a;
    ptrdiff_t ai, ak1, ak2;
    const float *b;
    ptrdiff_t bk1, bk2;
    float *c;
    ptrdiff_t ci;
    const float *start;
    ptrdiff_t si; /* NULL: zeros */
} net_product_;

typedef void net_tile_(const net_product_ *p, const float *a, const float *b, const float *start, float *c);

/* A tile: some rows by one or two vectors of columns, in registers from the first product to the last. */
/* clang-format off */
#define NET_START1_(r) net_v_ s##r = *(const net_v_ *)(const void *)(start + r * si);
#define NET_STEP1_(r)  { net_v_ x_ = b0 * u[r * ai]; NET_FENCE_(x_); s##r += x_; }
#define NET_STORE1_(r) *(net_v_ *)(void *)(c + r * ci) = s##r;
#define NET_START2_(r) NET_START1_(r) net_v_ t##r = *(const net_v_ *)(const void *)(start + r * si + lanes);
#define NET_STEP2_(r)                                                  \
    {                                                                  \
        const float f_ = u[r * ai];                                    \
        net_v_ x_ = b0 * f_, y_ = b1 * f_;                             \
        NET_FENCE_(x_);                                                \
        NET_FENCE_(y_);                                                \
        s##r += x_;                                                    \
        t##r += y_;                                                    \
    }
#define NET_STORE2_(r) NET_STORE1_(r) *(net_v_ *)(void *)(c + r * ci + lanes) = t##r;
#define NET_LOAD1_ const net_v_ b0 = *(const net_v_ *)(const void *)v;
#define NET_LOAD2_ NET_LOAD1_ const net_v_ b1 = *(const net_v_ *)(const void *)(v + lanes);

#define NET_TILE_(name, target, vector, bytes, vectors, rows)                                                       \
    target static void name##vectors##x##rows##_(                                                                   \
        const net_product_ *p, const float *a, const float *b, const float *start, float *c)                        \
    {                                                                                                               \
        vector(bytes);                                                                                              \
        const ptrdiff_t lanes = (ptrdiff_t)(sizeof(net_v_) / sizeof(float));                                        \
        const ptrdiff_t ai = p->ai, ak1 = p->ak1, ak2 = p->ak2, bk1 = p->bk1, bk2 = p->bk2;                         \
        const ptrdiff_t ci = p->ci, si = p->si, k1 = p->k1;                                                         \
        ptrdiff_t i, k;                                                                                             \
        NET_ROWS##rows##_(NET_START##vectors##_)                                                                    \
        for (k = p->k2; k; k--, a += ak2, b += bk2) {                                                               \
            const float *u = a, *v = b;                                                                             \
            for (i = k1; i; i--, u += ak1, v += bk1) {                                                              \
                NET_LOAD##vectors##_                                                                                \
                NET_ROWS##rows##_(NET_STEP##vectors##_)                                                             \
            }                                                                                                       \
        }                                                                                                           \
        NET_ROWS##rows##_(NET_STORE##vectors##_)                                                                    \
        (void)lanes;                                                                                                \
    }
#define NET_ROWS1_(x) x(0)
#define NET_ROWS2_(x) NET_ROWS1_(x) x(1)
#define NET_ROWS3_(x) NET_ROWS2_(x) x(2)
#define NET_ROWS4_(x) NET_ROWS3_(x) x(3)
#define NET_ROWS5_(x) NET_ROWS4_(x) x(4)
#define NET_ROWS6_(x) NET_ROWS5_(x) x(5)
#define NET_ROWS7_(x) NET_ROWS6_(x) x(6)
#define NET_ROWS8_(x) NET_ROWS7_(x) x(7)
#define NET_TILES6_(name, target, vector, bytes, vectors)                                                           \
    NET_TILE_(name, target, vector, bytes, vectors, 1) NET_TILE_(name, target, vector, bytes, vectors, 2)           \
    NET_TILE_(name, target, vector, bytes, vectors, 3) NET_TILE_(name, target, vector, bytes, vectors, 4)           \
    NET_TILE_(name, target, vector, bytes, vectors, 5) NET_TILE_(name, target, vector, bytes, vectors, 6)
#define NET_TILES8_(name, target, vector, bytes, vectors)                                                           \
    NET_TILES6_(name, target, vector, bytes, vectors)                                                               \
    NET_TILE_(name, target, vector, bytes, vectors, 7) NET_TILE_(name, target, vector, bytes, vectors, 8)
/* clang-format on */

/* ---- loops over channels ---- */

/* pool:    two rows of a convolution's output to one row of maxima, and where each was: 0..3, or -1 if it was not
   positive (ReLU). unpool:  the gradient goes there, zeros elsewhere.   relu: in place.   total: sum = the sum of
   the rows of v, plus sum if add. */
#define NET_LOOPS_(name, target)                                                                                       \
  target static void name##pool_(const float *NET_RESTRICT_ z, ptrdiff_t pairs, ptrdiff_t o, float *NET_RESTRICT_ out, \
      float *NET_RESTRICT_ where) {                                                                                    \
    ptrdiff_t x, c;                                                                                                    \
    for (x = 0; x < pairs; x++, z += 2 * o, out += o, where += o) {                                                    \
      const float *NET_RESTRICT_ below = z + 2 * pairs * o;                                                            \
      for (c = 0; c < o; c++) {                                                                                        \
        const float z1 = z[c + o], z2 = below[c], z3 = below[c + o];                                                   \
        float most = z[c], at = 0;                                                                                     \
        at = z1 > most ? 1.0f : at;                                                                                    \
        most = z1 > most ? z1 : most;                                                                                  \
        at = z2 > most ? 2.0f : at;                                                                                    \
        most = z2 > most ? z2 : most;                                                                                  \
        at = z3 > most ? 3.0f : at;                                                                                    \
        most = z3 > most ? z3 : most;                                                                                  \
        where[c] = most > 0 ? at : -1.0f;                                                                              \
        out[c] = most <= 0 ? 0 : most; /* NaN stays: it must show */                                                   \
      }                                                                                                                \
    }                                                                                                                  \
  }                                                                                                                    \
  target static void name##unpool_(const float *NET_RESTRICT_ g, const float *NET_RESTRICT_ where, ptrdiff_t pairs,    \
      ptrdiff_t o, float *NET_RESTRICT_ z) {                                                                           \
    ptrdiff_t x, c;                                                                                                    \
    for (x = 0; x < pairs; x++, z += 2 * o, g += o, where += o) {                                                      \
      float *NET_RESTRICT_ below = z + 2 * pairs * o;                                                                  \
      for (c = 0; c < o; c++) {                                                                                        \
        const float at = where[c], d = g[c];                                                                           \
        z[c] = at == 0 ? d : 0;                                                                                        \
        z[c + o] = at == 1.0f ? d : 0;                                                                                 \
        below[c] = at == 2.0f ? d : 0;                                                                                 \
        below[c + o] = at == 3.0f ? d : 0;                                                                             \
      }                                                                                                                \
    }                                                                                                                  \
  }                                                                                                                    \
  target static void name##relu_(float *v, size_t n) {                                                                 \
    size_t i;                                                                                                          \
    for (i = 0; i < n; i++) v[i] = v[i] <= 0 ? 0 : v[i];                                                               \
  }                                                                                                                    \
  target static void name##total_(                                                                                     \
      const float *NET_RESTRICT_ v, ptrdiff_t rows, ptrdiff_t n, int add, float *NET_RESTRICT_ sum) {                  \
    ptrdiff_t i;                                                                                                       \
    if (!add) memset(sum, 0, (size_t)n * sizeof *sum);                                                                 \
    for (; rows; rows--, v += n)                                                                                       \
      for (i = 0; i < n; i++) sum[i] += v[i];                                                                          \
  }

typedef struct net_loops_ {
    void (*pool)(const float *z, ptrdiff_t pairs, ptrdiff_t o, float *out, float *where);
    void (*unpool)(const float *g, const float *where, ptrdiff_t pairs, ptrdiff_t o, float *z);
    void (*relu)(float *v, size_t n);
    void (*total)(const float *v, ptrdiff_t rows, ptrdiff_t n, int add, float *sum);
} net_loops_;
/* the widest first */
typedef struct net_tiles_ {
    int bytes;
    ptrdiff_t cols, rows;
    net_tile_ *tile[NET_ROWS_];
} net_tiles_;

#define NET_NAMES_(name, v) name##v##x1_, name##v##x2_, name##v##x3_, name##v##x4_, name##v##x5_, name##v##x6_
#define NET_TILES_AT6_(name, bytes, cols, v)            \
  {                                                     \
    bytes, cols, 6, { NET_NAMES_(name, v), NULL, NULL } \
  }
#define NET_TILES_AT8_(name, bytes, cols, v)                            \
  {                                                                     \
    bytes, cols, 8, { NET_NAMES_(name, v), name##v##x7_, name##v##x8_ } \
  }
#define NET_LOOPS_AT_(name) \
  { name##pool_, name##unpool_, name##relu_, name##total_ }
#define NET_HERE_

#if NET_SIMD_
#  if defined(__x86_64__)
#    define NET_512_ __attribute__((target("avx512f")))
#    define NET_256_ __attribute__((target("avx2")))
NET_TILES8_(net_512_, NET_512_, NET_VECTOR_, 64, 1)
NET_TILES8_(net_512_, NET_512_, NET_VECTOR_, 64, 2)
NET_LOOPS_(net_512_, NET_512_)
NET_TILES6_(net_256_, NET_256_, NET_VECTOR_, 32, 1)
NET_TILES6_(net_256_, NET_256_, NET_VECTOR_, 32, 2)
NET_LOOPS_(net_256_, NET_256_)
#  endif
NET_TILES6_(net_128_, NET_HERE_, NET_VECTOR_, 16, 1)
NET_TILES6_(net_128_, NET_HERE_, NET_VECTOR_, 16, 2)
#endif
NET_TILES6_(net_plain_, NET_HERE_, NET_FLOAT_, 4, 1)
NET_TILES6_(net_plain_, NET_HERE_, NET_FLOAT_, 4, 2)
NET_LOOPS_(net_plain_, NET_HERE_)

static const net_tiles_ net_tiles_at_[] = {
#if NET_SIMD_
#  if defined(__x86_64__)
    NET_TILES_AT8_(net_512_, 64, 32, 2), NET_TILES_AT8_(net_512_, 64, 16, 1), NET_TILES_AT6_(net_256_, 32, 16, 2),
    NET_TILES_AT6_(net_256_, 32, 8, 1),
#  endif
    NET_TILES_AT6_(net_128_, 16, 8, 2), NET_TILES_AT6_(net_128_, 16, 4, 1),
#endif
    NET_TILES_AT6_(net_plain_, 4, 2, 2), NET_TILES_AT6_(net_plain_, 4, 1, 1)
};

static int net_best_simd_(void) {
#if NET_SIMD_
#  if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) return 64;
    if (__builtin_cpu_supports("avx2")) return 32;
#  endif
    return 16;
#else
    return 4;
#endif
}

static const net_loops_ *net_loops_of_(const net *n) {
    static const net_loops_ plain = NET_LOOPS_AT_(net_plain_);
#if NET_SIMD_ && defined(__x86_64__)
    static const net_loops_ of_512 = NET_LOOPS_AT_(net_512_), of_256 = NET_LOOPS_AT_(net_256_);
    if (n->simd_ >= 64) return &of_512;
    if (n->simd_ >= 32) return &of_256;
#endif
    (void)n;
    return &plain;
}

/* Rows in tiles of nearly the same height, as a low one does not keep the processor busy; what is left of the
   columns to narrower vectors. */
static void net_multiply_(const net *n, const net_product_ *given) {
    static const float zeros[32] = { 0 };
    net_product_ p = *given;
    const net_tiles_ *t = net_tiles_at_;
    ptrdiff_t j = 0, i, tiles, rows;
    if (!p.start) p.si = 0;
    while (t->bytes > n->simd_) t++;
    for (; j < p.n; t++)
        for (; p.n - j >= t->cols; j += t->cols)
            for (i = 0, tiles = (p.m + t->rows - 1) / t->rows; tiles; tiles--, i += rows) {
                rows = (p.m - i + tiles - 1) / tiles;
                t->tile[rows - 1](
                    &p, p.a + i * p.ai, p.b + j, p.start ? p.start + i * p.si + j : zeros, p.c + i * p.ci + j);
            }
}

/* ---- what a net consists of ---- */

static void net_add_tensor_(net *n, const char *kind, int number, const char *what, size_t rows, size_t cols) {
    net_tensor *t = &n->tensor[n->tensors++];
    snprintf(t->name, sizeof t->name, "%s%d.%s", kind, number, what);
    t->first = n->n;
    t->n = rows * cols;
    t->rows = rows;
    t->cols = cols;
    n->n += t->n;
}

/* The layer that follows, with o outputs or channels; 0 = ok. */
static int net_add_(net *n, int conv, int o) {
    const net_layer_ *before = n->layers_ ? &n->layer_[n->layers_ - 1] : NULL;
    net_layer_ *l = &n->layer_[n->layers_];
    /* lenet's dense layers come after two convolutions */
    const int number = n->layers_ + 1 - (!conv && n->layer_[0].conv ? 2 : 0);
    l->conv = conv;
    l->h = before ? before->oh / 2 : n->height;
    l->w = before ? before->ow / 2 : n->width;
    l->c = before ? before->o : 1;
    l->in = before ? before->out : (size_t)n->height * (size_t)n->width;
    l->oh = (l->h - NET_WINDOW_ + 1) / 2 * 2;
    l->ow = (l->w - NET_WINDOW_ + 1) / 2 * 2;
    if (!conv) l->h = l->w = l->oh = l->ow = 1, l->c = (int)l->in;
    if (l->oh < 1 || l->ow < 1) return 1;
    l->o = o;
    l->out = (size_t)o * (conv ? (size_t)(l->oh / 2) * (size_t)(l->ow / 2) : 1);
    l->weight = n->n;
    net_add_tensor_(
        n, conv ? "conv" : "fc", number, "w", (size_t)l->c * (conv ? NET_WINDOW_ * NET_WINDOW_ : 1), (size_t)o);
    l->bias = n->n;
    net_add_tensor_(n, conv ? "conv" : "fc", number, "b", (size_t)o, 1);
    n->layers_++;
    return 0;
}

NET_FUNCTION_ const char *net_kinds(void) { return "lenet, mlp, small"; }

/* 0 = ok; else an unknown kind, or a size that is none or too small or large for it. */
NET_FUNCTION_ int net_init(net *n, const char *kind, int height, int width, int classes) {
    const float mean = 0.2860f, deviation = 0.3530f; /* as Fashion-MNIST's */
    int p;
    memset(n, 0, sizeof *n);
    /* a label is a byte */
    if (height < 1 || width < 1 || classes < 1 || height > 1024 || width > 1024 || classes > 256) return 1;
    n->height = height;
    n->width = width;
    n->classes = classes;
    n->simd_ = net_best_simd_();
    for (p = 0; p < 256; p++) {
        float x = (float)p / 255.0f;
        x -= mean;
        x /= deviation;
        n->pixel_[p] = x;
    }
    if (!strcmp(kind, "lenet"))
        return net_add_(n, 1, 16) || net_add_(n, 1, 32) || net_add_(n, 0, 512) || net_add_(n, 0, classes);
    if (!strcmp(kind, "mlp")) return net_add_(n, 0, 256) || net_add_(n, 0, 128) || net_add_(n, 0, classes);
    if (!strcmp(kind, "small")) return net_add_(n, 0, 64) || net_add_(n, 0, 32) || net_add_(n, 0, classes);
    return 1;
}

static uint64_t net_mix_(uint64_t z) {
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

/* He initialisation, uniform: variance 2 / inputs. Biases are 0. Parameter i is a function of (seed, i). */
NET_FUNCTION_ void net_start(const net *n, uint64_t seed, float *params) {
    const uint64_t key = net_mix_(seed + 0x9E3779B97F4A7C15u);
    size_t i;
    int t, k;
    memset(params, 0, n->n * sizeof *params);
    for (t = 0; t < n->tensors; t += 2) { /* a weight and its bias */
        const net_tensor *w = &n->tensor[t];
        const double bound2 = 6.0 / (double)w->rows;
        double bound = 1;
        /* a square root with the same bits everywhere */
        for (k = 0; k < 40; k++) bound = 0.5 * (bound + bound2 / bound);
        for (i = w->first; i < w->first + w->n; i++) {
            /* of 25 bits */
            const int32_t odd = 2 * (int32_t)(net_mix_(key + (i + 1) * 0x9E3779B97F4A7C15u) >> 40) + 1;
            params[i] = (float)(bound * ((double)odd / 16777216.0 - 1.0));
        }
    }
}

/* Where in mem is what. */
typedef struct net_room_ {
    size_t act[NET_LAYERS_ + 1]; /* what goes into each layer, and what comes out of the last */
    size_t where[NET_LAYERS_];   /* for unpool */
    size_t z;                    /* one image's convolution before the pool, or the gradient of it */
    /* weights of a convolution, (window, output, channel); or a dense layer's gradients, (value, image) */
    size_t turned;
    size_t d[2]; /* gradients of what goes into a layer and of what comes out */
    size_t total;
} net_room_;

static size_t net_most_(size_t a, size_t b) { return a > b ? a : b; }
static size_t net_take_(size_t *total, size_t floats) {
    const size_t first = *total;
    *total += (floats + 15) / 16 * 16;
    return first;
}
/* images side by side: no narrow vectors */
static size_t net_columns_(size_t batch) { return (batch + 7) / 8 * 8; }

static net_room_ net_room_of_(const net *n, size_t batch) {
    net_room_ r;
    size_t z = 0, turned = 0, d = 0;
    int i;
    memset(&r, 0, sizeof r);
    for (i = 0; i < n->layers_; i++) {
        const net_layer_ *l = &n->layer_[i];
        r.act[i] = net_take_(&r.total, batch * l->in);
        if (l->conv) r.where[i] = net_take_(&r.total, batch * l->out);
        if (l->conv) z = net_most_(z, 4 * l->out);
        turned = net_most_(turned, l->conv ? n->tensor[2 * i].n : net_columns_(batch) * (l->in + l->out));
        d = net_most_(d, batch * l->out);
    }
    r.act[i] = net_take_(&r.total, batch * n->layer_[i - 1].out);
    r.z = net_take_(&r.total, z);
    r.turned = net_take_(&r.total, turned);
    r.d[0] = net_take_(&r.total, d);
    r.d[1] = net_take_(&r.total, d);
    return r;
}

/* Floats of work space for batches of that size or less. */
NET_FUNCTION_ size_t net_memory(const net *n, int batch) { return net_room_of_(n, (size_t)batch).total + 15; }

static float *net_aligned_(float *mem) { return mem + (64 - (uintptr_t)mem % 64) % 64 / sizeof *mem; }

/* ---- forward ---- */

static net_product_ net_convolution_(const net_layer_ *l, const float *params) {
    net_product_ p;
    p.m = l->ow;
    p.n = l->o;
    p.k1 = NET_WINDOW_ * l->c;
    p.k2 = NET_WINDOW_; /* a row of the window is contiguous */
    p.a = NULL;
    p.ai = l->c;
    p.ak1 = 1;
    p.ak2 = (ptrdiff_t)l->w * l->c;
    p.b = params + l->weight;
    p.bk1 = l->o;
    p.bk2 = p.k1 * l->o;
    p.c = NULL;
    p.ci = l->o;
    p.start = params + l->bias;
    p.si = 0;
    return p;
}

static void net_conv_forward_(
    const net *n, const net_layer_ *l, const float *params, const float *in, float *out, float *where, float *z) {
    const ptrdiff_t pooled = (ptrdiff_t)(l->ow / 2) * l->o;
    net_product_ p = net_convolution_(l, params);
    int y, i;
    for (y = 0; y < l->oh; y += 2) {
        for (i = 0; i < 2; i++) {
            p.a = in + (y + i) * p.ak2;
            p.c = z + i * 2 * pooled;
            net_multiply_(n, &p);
        }
        net_loops_of_(n)->pool(z, l->ow / 2, l->o, out + y / 2 * pooled, where + y / 2 * pooled);
    }
}

static void net_dense_forward_(
    const net *n, const net_layer_ *l, const float *params, const float *in, int batch, float *out) {
    net_product_ p;
    p.m = batch;
    p.n = l->o;
    p.k1 = l->c;
    p.k2 = 1;
    p.a = in;
    p.ai = l->c;
    p.ak1 = 1;
    p.ak2 = 0;
    p.b = params + l->weight;
    p.bk1 = l->o;
    p.bk2 = 0;
    p.c = out;
    p.ci = l->o;
    p.start = params + l->bias;
    p.si = 0;
    net_multiply_(n, &p);
}

/* Leaves the outputs of the last layer in mem + r->act[layers]. */
static void net_forward_(
    const net *n, const net_room_ *r, const float *params, const uint8_t *const *images, int batch, float *mem) {
    const size_t pixels = (size_t)n->height * (size_t)n->width;
    size_t b, i;
    int k;
    for (b = 0; b < (size_t)batch; b++)
        for (i = 0; i < pixels; i++) mem[r->act[0] + b * pixels + i] = n->pixel_[images[b][i]];
    for (k = 0; k < n->layers_; k++) {
        const net_layer_ *l = &n->layer_[k];
        const float *in = mem + r->act[k];
        float *out = mem + r->act[k + 1];
        if (l->conv)
            for (b = 0; b < (size_t)batch; b++)
                net_conv_forward_(
                    n, l, params, in + b * l->in, out + b * l->out, mem + r->where[k] + b * l->out, mem + r->z);
        else net_dense_forward_(n, l, params, in, batch, out);
        if (!l->conv && k + 1 < n->layers_) net_loops_of_(n)->relu(out, (size_t)batch * l->out);
    }
}

/* e^x for x <= 0, to 3e-7. Below -64 it is 0, so that hardly a gradient gets so small that processors become slow. */
static float net_exp_(float x) {
    static const float taylor[] = { 1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f };
    /* k * ln2 is exact: 9 bits */
    const float log2_e = 1.44269504f, ln2 = 0.693359375f, ln2_rest = -2.12194440e-4f;
    float twos, p, r, e = taylor[0];
    uint32_t bits;
    int k;
    if (!(x >= -64.0f)) return x != x ? x : 0;
    p = x * log2_e;
    NET_FENCE_(p);
    p -= 0.5f;
    k = (int)p;
    p = (float)k * ln2;
    NET_FENCE_(p);
    r = x - p;
    p = (float)k * ln2_rest;
    NET_FENCE_(p);
    r -= p;
    for (bits = 1; bits < 7; bits++) {
        p = e * r;
        NET_FENCE_(p);
        e = p + taylor[bits];
    }
    bits = (uint32_t)(k + 127) << 23;
    memcpy(&twos, &bits, sizeof twos);
    e *= twos;
    return e;
}

/* Softmax of z. Returns the cross-entropy; *best is the class of the largest output, or -1 if there is a NaN. */
static double net_softmax_(const float *z, int classes, int label, float *e, int *best) {
    float top, sum = 0;
    int i;
    *best = 0;
    for (i = 1; i < classes; i++)
        if (z[i] > z[*best]) *best = i;
    top = z[*best];
    for (i = 0; i < classes; i++) {
        e[i] = net_exp_(z[i] - top);
        sum += e[i];
    }
    for (i = 0; i < classes; i++) e[i] /= sum;
    if (sum != sum) *best = -1;
    return log((double)sum) + (double)top - (double)z[label];
}

/* ---- backward ---- */

/* One image: from z, the gradient of a convolution's output, to that of its weights and bias. */
static void net_conv_weights_(
    const net *n, const net_layer_ *l, const float *in, const float *z, int add, float *grad) {
    const ptrdiff_t row = (ptrdiff_t)l->ow * l->o, in_row = (ptrdiff_t)l->w * l->c;
    net_product_ p;
    int ky;
    net_loops_of_(n)->total(z, (ptrdiff_t)l->oh * l->ow, l->o, add, grad + l->bias);
    p.m = NET_WINDOW_ * l->c;
    p.n = l->o;
    p.k1 = l->ow;
    p.k2 = l->oh;
    p.ai = 1;
    p.ak1 = l->c;
    p.ak2 = in_row;
    p.b = z;
    p.bk1 = l->o;
    p.bk2 = row;
    p.ci = p.si = l->o;
    for (ky = 0; ky < NET_WINDOW_; ky++) {
        p.a = in + ky * in_row;
        p.c = grad + l->weight + ky * p.m * l->o;
        p.start = add ? p.c : NULL;
        net_multiply_(n, &p);
    }
}

/* ... and to d, that of its input. turned: the weights as (window, output, channel). */
static void net_conv_inputs_(const net *n, const net_layer_ *l, const float *z, const float *turned, float *d) {
    const ptrdiff_t row = (ptrdiff_t)l->ow * l->o, in_row = (ptrdiff_t)l->w * l->c,
                    window = (ptrdiff_t)NET_WINDOW_ * l->c * l->o;
    net_product_ p;
    int kx, y, first, last;
    memset(d, 0, l->in * sizeof *d);
    p.m = l->ow;
    p.n = l->c;
    p.k1 = l->o;
    /* the next row of the window belongs to the row before */
    p.ai = l->o;
    p.ak1 = 1;
    p.ak2 = -row;
    p.bk1 = l->c;
    p.bk2 = window;
    p.ci = p.si = l->c;
    for (y = 0; y < l->oh + NET_WINDOW_ - 1; y++) {
        first = y < l->oh ? 0 : y - l->oh + 1;
        last = y < NET_WINDOW_ ? y : NET_WINDOW_ - 1;
        p.k2 = last - first + 1;
        p.a = z + (y - first) * row;
        for (kx = 0; kx < NET_WINDOW_; kx++) {
            p.b = turned + first * window + kx * (ptrdiff_t)l->c * l->o;
            p.c = d + y * in_row + kx * (ptrdiff_t)l->c;
            p.start = p.c;
            net_multiply_(n, &p);
        }
    }
}

/* Layer k, all images: from g, the gradient of its output, to those of its parameters and, unless d is NULL, of
   its input. */
static void net_conv_backward_(const net *n, int k, const net_room_ *r, const float *params, size_t batch,
    const float *g, float *grad, float *d, float *mem) {
    const net_layer_ *l = &n->layer_[k];
    const net_loops_ *loops = net_loops_of_(n);
    const size_t c = (size_t)l->c, o = (size_t)l->o, pooled = (size_t)(l->ow / 2) * o;
    float *turned = mem + r->turned, *z = mem + r->z;
    size_t w, i, j, b;
    for (w = 0; d && w < NET_WINDOW_ * NET_WINDOW_; w++)
        for (i = 0; i < o; i++)
            for (j = 0; j < c; j++) turned[(w * o + i) * c + j] = params[l->weight + (w * c + j) * o + i];
    for (b = 0; b < batch; b++) {
        for (i = 0; i < l->out; i += pooled)
            loops->unpool(g + b * l->out + i, mem + r->where[k] + b * l->out + i, l->ow / 2, l->o, z + 4 * i);
        net_conv_weights_(n, l, mem + r->act[k] + b * l->in, z, b > 0, grad);
        if (d) net_conv_inputs_(n, l, z, turned, d + b * l->in);
    }
}

static void net_dense_backward_(const net *n, int k, const net_room_ *r, const float *params, size_t batch,
    const float *g, float *grad, float *d, float *mem) {
    const net_layer_ *l = &n->layer_[k];
    const size_t columns = net_columns_(batch);
    const float *in = mem + r->act[k];
    float *turned = mem + r->turned, *across = turned + columns * l->out;
    net_product_ p;
    size_t i, b;
    net_loops_of_(n)->total(g, (ptrdiff_t)batch, l->o, 0, grad + l->bias);
    p.m = l->c;
    p.n = l->o;
    p.k1 = (ptrdiff_t)batch;
    p.k2 = 1;
    p.a = in;
    p.ai = 1;
    p.ak1 = l->c;
    p.ak2 = 0;
    p.b = g;
    p.bk1 = l->o;
    p.bk2 = 0;
    p.c = grad + l->weight;
    p.ci = l->o;
    p.start = NULL;
    p.si = 0;
    net_multiply_(n, &p);
    if (!d) return;
    /* small beside the weights, which can stay as they are */
    for (i = 0; i < l->out; i++)
        for (b = 0; b < columns; b++) turned[i * columns + b] = b < batch ? g[b * l->out + i] : 0;
    p.n = (ptrdiff_t)columns;
    p.k1 = l->o;
    p.a = params + l->weight;
    p.ai = l->o;
    p.ak1 = 1;
    p.b = turned;
    p.bk1 = p.n;
    p.c = across;
    p.ci = p.n;
    net_multiply_(n, &p);
    for (b = 0; b < batch; b++) /* in: after a ReLU */
        for (i = 0; i < l->in; i++) d[b * l->in + i] = in[b * l->in + i] <= 0 ? 0 : across[i * columns + b];
}

/* grad := the gradient of the mean cross-entropy over the batch; returns that mean. images: batch >= 1 pointers to
   height * width bytes; labels: below classes; mem: net_memory(n, batch) floats. */
NET_FUNCTION_ double net_gradient(const net *n, const float *params, const uint8_t *const *images,
    const uint8_t *labels, int batch, float *grad, float *mem) {
    const net_room_ r = net_room_of_(n, (size_t)batch);
    const float share = 1.0f / (float)batch;
    double loss = 0;
    float *g, *d;
    int b, i, k, best;
    mem = net_aligned_(mem);
    net_forward_(n, &r, params, images, batch, mem);
    g = mem + r.d[0];
    for (b = 0; b < batch; b++) {
        float *e = g + b * n->classes;
        loss += net_softmax_(mem + r.act[n->layers_] + b * n->classes, n->classes, labels[b], e, &best);
        e[labels[b]] -= 1.0f;
        for (i = 0; i < n->classes; i++) e[i] *= share;
    }
    for (k = n->layers_ - 1; k >= 0; k--) {
        g = mem + r.d[(n->layers_ - 1 - k) % 2];
        d = k ? mem + r.d[(n->layers_ - k) % 2] : NULL;
        if (n->layer_[k].conv) net_conv_backward_(n, k, &r, params, (size_t)batch, g, grad, d, mem);
        else net_dense_backward_(n, k, &r, params, (size_t)batch, g, grad, d, mem);
    }
    return loss / batch;
}

/* How many of the batch are classified correctly; *loss += the sum of all their losses. */
NET_FUNCTION_ int net_score(const net *n, const float *params, const uint8_t *const *images, const uint8_t *labels,
    int batch, float *mem, double *loss) {
    const net_room_ r = net_room_of_(n, (size_t)batch);
    int b, best, correct = 0;
    mem = net_aligned_(mem);
    net_forward_(n, &r, params, images, batch, mem);
    for (b = 0; b < batch; b++) {
        *loss += net_softmax_(mem + r.act[n->layers_] + b * n->classes, n->classes, labels[b], mem + r.d[0], &best);
        correct += best == labels[b];
    }
    return correct;
}

/* A step of SGD: velocity = momentum velocity + grad, params -= rate velocity. A velocity that is not fed any more
   fades to exactly 0: in denormals, where it would stay for ever, arithmetic is a hundred times slower. */
NET_FUNCTION_ void net_step(const net *n, float *NET_RESTRICT_ params, float *NET_RESTRICT_ velocity,
    const float *NET_RESTRICT_ grad, float momentum, float rate) {
    const size_t count = n->n;
    size_t i;
    for (i = 0; i < count; i++) {
        float v = momentum * velocity[i], move;
        v = v < 1e-30f && v > -1e-30f ? 0.0f : v;
        v += grad[i];
        velocity[i] = v;
        move = rate * v;
        params[i] -= move;
    }
}
/* One step of AdamW (betas .9 and .999, epsilon 1e-8, no decay of weights): m and v are the running means of gradients
   and of their squares. step: from 0 on. */
NET_FUNCTION_ void net_adamw(const net *n, float *NET_RESTRICT_ params, float *NET_RESTRICT_ m, float *NET_RESTRICT_ v,
    const float *NET_RESTRICT_ grad, uint64_t step, float rate) {
    const size_t count = n->n;
    double left[2] = { 1, 1 }, power[2] = { .9, .999 };
    uint64_t e;
    float first, second;
    size_t i;
    for (e = step + 1; e; e >>= 1) {
        if (e & 1) left[0] *= power[0], left[1] *= power[1];
        power[0] *= power[0], power[1] *= power[1];
    }
    first = (float)((double)rate / (1 - left[0]));
    second = (float)(1 / (1 - left[1]));
    for (i = 0; i < count; i++) {
        float a = .9f * m[i], b = .999f * v[i], g = .1f * grad[i], s = grad[i] * grad[i], move;
        s = .001f * s;
        m[i] = a += g;
        v[i] = b += s;
        s = second * b;
        move = first * a;
        params[i] -= move / (sqrtf(s) + 1e-8f);
    }
}

#if defined(__clang__)
#  pragma STDC FP_CONTRACT DEFAULT
#  if defined(__x86_64__) || defined(__i386__)
#    pragma float_control(pop)
#  endif
#elif defined(__GNUC__) && !defined(__TINYC__)
#  pragma GCC pop_options
#endif

#endif
