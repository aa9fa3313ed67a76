/* bench/net.h: gradients against textbook loops in double, those against finite differences; the same bits with
   every SIMD width, whatever was in the memory before; what it starts from; and that it learns. */
#include "bench/net.h"
#include "greatest.h"

#include <stdlib.h>

enum { MOST_BATCH = 17, MOST_PIXELS = 30 * 30, MOST_PARAMS = 300000, GUARD = 16 };

static net n;
static uint8_t pixels[MOST_BATCH * MOST_PIXELS], labels[MOST_BATCH];
static const uint8_t *images[MOST_BATCH];
static float params[MOST_PARAMS], grad[MOST_PARAMS + GUARD], other[MOST_PARAMS + GUARD];
static double exact[MOST_PARAMS], exact_params[MOST_PARAMS];
static char note[200];

static uint32_t lcg(void) {
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33);
}

/* Half of each picture is black, as in those of clothes: there all outputs of a convolution are equal, and the
   pool has to choose. */
static void make_images(int batch) {
    int b, i;
    const int size = n.height * n.width;
    for (b = 0; b < batch; b++) {
        images[b] = pixels + b * MOST_PIXELS;
        labels[b] = (uint8_t)(lcg() % (uint32_t)n.classes);
        for (i = 0; i < size; i++) pixels[b * MOST_PIXELS + i] = (uint8_t)(i < size / 2 ? 0 : lcg() >> 5);
    }
}

/* Parameters as after some training: biases are not 0. */
static int make(const char *kind, int height, int width, int classes, int batch) {
    size_t i;
    int t;
    if (net_init(&n, kind, height, width, classes) || n.n > MOST_PARAMS) return 1;
    net_start(&n, 7, params);
    for (t = 1; t < n.tensors; t += 2)
        for (i = 0; i < n.tensor[t].n; i++) params[n.tensor[t].first + i] = (float)(lcg() % 1000) * 2e-4f - 0.1f;
    make_images(batch);
    return 0;
}

static float *dirty(size_t floats) /* all NaN, and so is an edge */
{
    float *p = (float *)malloc((floats + GUARD) * sizeof *p);
    if (!p) abort();
    memset(p, 0xff, (floats + GUARD) * sizeof *p);
    return p;
}

static int edge_is_left_alone(const float *p, size_t floats) {
    static const unsigned char ones[4] = { 0xff, 0xff, 0xff, 0xff };
    size_t i;
    for (i = 0; i < GUARD; i++)
        if (memcmp(p + floats + i, ones, 4)) return 0;
    return 1;
}

/* The gradient in memory that is dirty, and no larger than it has to be; NaN as the loss if it was used beyond its
   end. */
static double gradient_into(float *g, int batch) {
    const size_t room = net_memory(&n, batch);
    float *mem = dirty(room);
    double loss;
    memset(g, 0xff, (n.n + GUARD) * sizeof *g);
    loss = net_gradient(&n, params, images, labels, batch, g, mem);
    if (!edge_is_left_alone(mem, room) || !edge_is_left_alone(g, n.n)) loss = NAN;
    free(mem);
    return loss;
}

/* ---- the textbook, in double ---- */

enum { CONV, RELU, POOL, DENSE };
typedef struct step {
    int what, outputs;
    const char *name;
} step;
static const step LENET[] = { { CONV, 16, "conv1" }, { RELU, 0, "" }, { POOL, 0, "" }, { CONV, 32, "conv2" },
    { RELU, 0, "" }, { POOL, 0, "" }, { DENSE, 512, "fc1" }, { RELU, 0, "" }, { DENSE, 0, "fc2" } };
static const step MLP[] = { { DENSE, 256, "fc1" }, { RELU, 0, "" }, { DENSE, 128, "fc2" }, { RELU, 0, "" },
    { DENSE, 0, "fc3" } };
static const step SMALL[] = { { DENSE, 64, "fc1" }, { RELU, 0, "" }, { DENSE, 32, "fc2" }, { RELU, 0, "" },
    { DENSE, 0, "fc3" } };
static const struct {
    const char *kind;
    const step *steps;
    int count;
} KINDS[] = { { "lenet", LENET, 9 }, { "mlp", MLP, 5 }, { "small", SMALL, 5 } };

typedef struct volume {
    int h, w, c;
    double *v;
} volume; /* (row, column, channel) */
static double *at(volume x, int y, int col, int c) {
    return x.v + ((size_t)y * (size_t)x.w + (size_t)col) * (size_t)x.c + (size_t)c;
}
static size_t size_of(volume x) { return (size_t)x.h * (size_t)x.w * (size_t)x.c; }

static volume fresh(int h, int w, int c) {
    volume x;
    x.h = h;
    x.w = w;
    x.c = c;
    x.v = (double *)calloc(size_of(x), sizeof *x.v);
    if (!x.v) abort();
    return x;
}

static size_t first_of(const char *name, const char *what) {
    char full[32];
    int t;
    snprintf(full, sizeof full, "%s.%s", name, what);
    for (t = 0; t < n.tensors; t++)
        if (!strcmp(n.tensor[t].name, full)) break;
    if (t == n.tensors) abort();
    return n.tensor[t].first;
}

/* One step forward if dy.v is NULL; else backward, from dy to dx and, added, to exact[]. */
static void convolve(volume x, volume y, volume dx, volume dy, size_t weight, size_t bias) {
    int r, s, o, i, j, c;
    for (r = 0; r < y.h; r++)
        for (s = 0; s < y.w; s++)
            for (o = 0; o < y.c; o++) {
                double sum = exact_params[bias + (size_t)o];
                const double d = dy.v ? *at(dy, r, s, o) : 0;
                if (dy.v) exact[bias + (size_t)o] += d;
                for (i = 0; i < 5; i++)
                    for (j = 0; j < 5; j++)
                        for (c = 0; c < x.c; c++) {
                            const size_t w = weight + ((size_t)((i * 5 + j) * x.c + c)) * (size_t)y.c + (size_t)o;
                            if (dy.v) {
                                exact[w] += d * *at(x, r + i, s + j, c);
                                *at(dx, r + i, s + j, c) += d * exact_params[w];
                            } else {
                                sum += exact_params[w] * *at(x, r + i, s + j, c);
                            }
                        }
                if (!dy.v) *at(y, r, s, o) = sum;
            }
}

static void dense(volume x, volume y, volume dx, volume dy, size_t weight, size_t bias) {
    const size_t in = size_of(x), out = size_of(y);
    size_t o, i;
    for (o = 0; o < out; o++) {
        if (dy.v) exact[bias + o] += dy.v[o];
        else y.v[o] = exact_params[bias + o];
        for (i = 0; i < in; i++) {
            if (!dy.v) y.v[o] += exact_params[weight + i * out + o] * x.v[i];
            else
                exact[weight + i * out + o] += dy.v[o] * x.v[i],
                    dx.v[i] += dy.v[o] * exact_params[weight + i * out + o];
        }
    }
}

static void pool(volume x, volume y, volume dx, volume dy) {
    int r, s, c, q;
    for (r = 0; r < y.h; r++)
        for (s = 0; s < y.w; s++)
            for (c = 0; c < y.c; c++) {
                int best = 0;
                for (q = 1; q < 4; q++)
                    if (*at(x, 2 * r + q / 2, 2 * s + q % 2, c) > *at(x, 2 * r + best / 2, 2 * s + best % 2, c))
                        best = q;
                if (!dy.v) *at(y, r, s, c) = *at(x, 2 * r + best / 2, 2 * s + best % 2, c);
                else *at(dx, 2 * r + best / 2, 2 * s + best % 2, c) += *at(dy, r, s, c);
            }
}

static void one_step(const step *t, volume x, volume y, volume dx, volume dy) {
    size_t i;
    if (t->what == CONV) convolve(x, y, dx, dy, first_of(t->name, "w"), first_of(t->name, "b"));
    else if (t->what == DENSE) dense(x, y, dx, dy, first_of(t->name, "w"), first_of(t->name, "b"));
    else if (t->what == POOL) pool(x, y, dx, dy);
    else
        for (i = 0; i < size_of(x); i++) {
            if (!dy.v) y.v[i] = x.v[i] > 0 ? x.v[i] : 0;
            else dx.v[i] = x.v[i] > 0 ? dy.v[i] : 0;
        }
}

/* The loss of one image; adds the gradient to exact[] if asked to. *right: whether the label's output is the
   largest. */
static double textbook(int kind, const uint8_t *image, int label, int want_gradient, int *right) {
    const step *steps = KINDS[kind].steps;
    const volume none = { 0, 0, 0, NULL };
    const int count = KINDS[kind].count;
    volume x[10], d[10];
    double sum = 0, loss;
    size_t i;
    int k;
    x[0] = fresh(n.height, n.width, 1);
    for (i = 0; i < size_of(x[0]); i++) x[0].v[i] = (image[i] / 255.0 - 0.2860) / 0.3530;
    for (k = 0; k < count; k++) {
        if (steps[k].what == CONV) x[k + 1] = fresh(x[k].h - 4, x[k].w - 4, steps[k].outputs);
        else if (steps[k].what == RELU) x[k + 1] = fresh(x[k].h, x[k].w, x[k].c);
        else if (steps[k].what == POOL) x[k + 1] = fresh(x[k].h / 2, x[k].w / 2, x[k].c);
        else x[k + 1] = fresh(1, 1, steps[k].outputs ? steps[k].outputs : n.classes);
        one_step(&steps[k], x[k], x[k + 1], none, none);
    }
    for (*right = 1, i = 0; i < size_of(x[count]); i++) {
        sum += exp(x[count].v[i]);
        if (x[count].v[i] > x[count].v[label]) *right = 0;
    }
    loss = log(sum) - x[count].v[label];
    d[count] = fresh(1, 1, n.classes);
    for (i = 0; i < size_of(x[count]); i++) d[count].v[i] = exp(x[count].v[i]) / sum - (i == (size_t)label);
    for (k = count - 1; k >= 0; k--) {
        d[k] = fresh(x[k].h, x[k].w, x[k].c);
        if (want_gradient) one_step(&steps[k], x[k], x[k + 1], d[k], d[k + 1]);
    }
    for (k = 0; k <= count; k++) free(x[k].v), free(d[k].v);
    return loss;
}

/* The mean over the batch, gradient in exact[] if asked to. */
static double textbook_mean(int kind, int batch, int want_gradient, int *right) {
    double loss = 0;
    size_t i;
    int b, r;
    *right = 0;
    if (want_gradient) memset(exact, 0, sizeof exact);
    for (b = 0; b < batch; b++) {
        loss += textbook(kind, images[b], labels[b], want_gradient, &r);
        *right += r;
    }
    for (i = 0; want_gradient && i < n.n; i++) exact[i] /= batch;
    return loss / batch;
}

static void widen(void) {
    size_t i;
    for (i = 0; i < n.n; i++) exact_params[i] = (double)params[i];
}

/* ---- tests ---- */

typedef struct shape {
    int kind, height, width, classes, batch;
} shape;
static const shape SHAPES[] = { { 0, 28, 28, 10, 1 }, { 0, 28, 28, 10, 16 }, { 0, 16, 16, 10, 17 }, { 0, 17, 16, 3, 3 },
    { 0, 19, 22, 11, 3 }, { 0, 23, 30, 2, 1 }, { 0, 21, 21, 33, 16 }, { 1, 28, 28, 10, 16 }, { 1, 28, 28, 10, 17 },
    { 1, 9, 7, 3, 3 }, { 1, 1, 1, 1, 1 }, { 2, 16, 16, 10, 1 }, { 2, 16, 16, 10, 3 }, { 2, 16, 16, 10, 16 },
    { 2, 16, 16, 10, 17 }, { 2, 5, 13, 7, 16 }, { 2, 1, 3, 256, 3 } };
enum { SHAPE_COUNT = sizeof SHAPES / sizeof SHAPES[0] };
static int make_shape(const shape *s) { return make(KINDS[s->kind].kind, s->height, s->width, s->classes, s->batch); }

#define EXPECT(cond, s, what)                                                                                  \
  do {                                                                                                         \
    if (!(cond)) {                                                                                             \
      snprintf(note, sizeof note, "%s: %s, %dx%d, %d classes, batch %d, SIMD %d", what, KINDS[(s)->kind].kind, \
          (s)->height, (s)->width, (s)->classes, (s)->batch, n.simd_);                                         \
      FAILm(note);                                                                                             \
    }                                                                                                          \
  } while (0)

/* The name of a tensor whose gradient is not that of the textbook, to a millionth of its largest value or three;
   or NULL. */
static const char *wrong_tensor(void) {
    size_t i;
    int t;
    for (t = 0; t < n.tensors; t++) {
        const size_t first = n.tensor[t].first, end = first + n.tensor[t].n;
        double most = 0;
        for (i = first; i < end; i++)
            if (fabs(exact[i]) > most) most = fabs(exact[i]);
        for (i = first; i < end; i++)
            if (!(fabs((double)grad[i] - exact[i]) <= 3e-6 * most + 1e-9)) return n.tensor[t].name;
    }
    return NULL;
}

TEST equals_the_textbook(void) {
    int k, right;
    for (k = 0; k < SHAPE_COUNT; k++) {
        const shape *s = &SHAPES[k];
        double loss, want, scored = 100;
        size_t room;
        float *mem;
        EXPECT(!make_shape(s), s, "net_init");
        widen();
        want = textbook_mean(s->kind, s->batch, 1, &right);
        loss = gradient_into(grad, s->batch);
        EXPECT(fabs(loss - want) <= 1e-5 * (1 + want), s, "loss");
        EXPECT(!wrong_tensor(), s, wrong_tensor());
        room = net_memory(&n, s->batch);
        mem = dirty(room);
        EXPECT(net_score(&n, params, images, labels, s->batch, mem, &scored) == right, s, "net_score");
        EXPECT(fabs(scored - 100 - loss * s->batch) <= 1e-9 * scored, s, "the loss of net_score");
        EXPECT(edge_is_left_alone(mem, room), s, "memory beyond its end");
        free(mem);
    }
    PASS();
}

/* The textbook itself: the loss must change as its gradient says. Where a ReLU or a pool switches between, a
   smaller step must agree. */
TEST textbook_equals_differences(void) {
    static const shape few[] = { { 0, 16, 17, 4, 2 }, { 1, 4, 5, 3, 2 }, { 2, 6, 6, 10, 3 } };
    int k, t, i, h, right;
    for (k = 0; k < 3; k++) {
        EXPECT(!make_shape(&few[k]), &few[k], "net_init");
        widen();
        textbook_mean(few[k].kind, few[k].batch, 1, &right);
        for (t = 0; t < n.tensors; t++)
            for (i = 0; i < 24; i++) {
                const size_t at_ = n.tensor[t].first + lcg() % n.tensor[t].n;
                const double was = exact_params[at_];
                double step_ = 1e-5, up, down, wrong = 1;
                for (h = 0; h < 3 && wrong > 1e-7; h++, step_ /= 10) {
                    exact_params[at_] = was + step_;
                    up = textbook_mean(few[k].kind, few[k].batch, 0, &right);
                    exact_params[at_] = was - step_;
                    down = textbook_mean(few[k].kind, few[k].batch, 0, &right);
                    exact_params[at_] = was;
                    wrong = fabs((up - down) / (2 * step_) - exact[at_]);
                }
                EXPECT(wrong <= 1e-7, &few[k], n.tensor[t].name);
            }
    }
    PASS();
}

TEST every_simd_has_the_same_bits(void) {
    int k, simd, best;
    for (k = 0; k < SHAPE_COUNT; k++) {
        const shape *s = &SHAPES[k];
        double loss;
        EXPECT(!make_shape(s), s, "net_init");
        best = n.simd_;
        n.simd_ = 4;
        loss = gradient_into(grad, s->batch);
        for (simd = 4; simd <= best; simd *= 2) {
            n.simd_ = simd;
            EXPECT(gradient_into(other, s->batch) == loss, s, "loss");
            EXPECT(!memcmp(grad, other, n.n * sizeof *grad), s, "gradient");
        }
    }
    PASS();
}

/* What this build must share with all others. */
TEST every_machine_has_the_same_bits(void) {
    static const uint32_t want[] = { 0x1caec684u, 0xab5c2b67u, 0x9751d79cu };
    int k;
    size_t i;
    for (k = 0; k < 3; k++) {
        uint32_t hash = 2166136261u, bits;
        ASSERT_EQ(0, net_init(&n, KINDS[k].kind, 20, 18, 10));
        net_start(&n, 3, params);
        for (i = 0; i < MOST_BATCH * MOST_PIXELS; i++) pixels[i] = (uint8_t)((uint32_t)(i * i) * 2654435761u >> 11);
        for (i = 0; i < MOST_BATCH; i++) images[i] = pixels + i * MOST_PIXELS, labels[i] = (uint8_t)(i % 10);
        gradient_into(grad, MOST_BATCH);
        for (i = 0; i < n.n; i++) {
            memcpy(&bits, &grad[i], sizeof bits);
            hash = (hash ^ bits) * 16777619u;
        }
        ASSERT_EQ_FMT(want[k], hash, "%08x");
    }
    PASS();
}

TEST alignment_does_not_matter(void) {
    static float unaligned_params[MOST_PARAMS + 8], unaligned[MOST_PARAMS + 8];
    const shape *s = &SHAPES[3];
    float *mem;
    size_t a, room;
    EXPECT(!make_shape(s), s, "net_init");
    gradient_into(grad, s->batch);
    room = net_memory(&n, s->batch);
    for (a = 1; a < 8; a++) {
        mem = dirty(room + a);
        memcpy(unaligned_params + a, params, n.n * sizeof *params);
        net_gradient(&n, unaligned_params + a, images, labels, s->batch, unaligned + a, mem + a);
        EXPECT(!memcmp(grad, unaligned + a, n.n * sizeof *grad), s, "gradient");
        EXPECT(edge_is_left_alone(mem + a, room), s, "memory beyond its end");
        free(mem);
    }
    PASS();
}

/* Memory for a batch does for a smaller one. */
TEST memory_grows_with_the_batch(void) {
    int k, b;
    for (k = 0; k < 3; k++) {
        ASSERT_EQ(0, net_init(&n, KINDS[k].kind, 28, 28, 10));
        for (b = 1; b < 100; b++) ASSERT(net_memory(&n, b) <= net_memory(&n, b + 1));
    }
    PASS();
}

/* The darkest and the brightest picture, the first and the last label. */
TEST extreme_images_and_labels(void) {
    int k, b, right;
    for (k = 0; k < 3; k++) {
        const shape s = { k, 20, 17, 256, 4 };
        double want;
        EXPECT(!make_shape(&s), &s, "net_init");
        for (b = 0; b < 4; b++) {
            memset(pixels + b * MOST_PIXELS, b % 2 ? 255 : 0, MOST_PIXELS);
            labels[b] = (uint8_t)(b / 2 ? 255 : 0);
        }
        widen();
        want = textbook_mean(k, 4, 1, &right);
        EXPECT(fabs(gradient_into(grad, 4) - want) <= 1e-5 * want, &s, "loss");
        EXPECT(!wrong_tensor(), &s, wrong_tensor());
    }
    PASS();
}

/* Convolutions that only copy a pixel: the pool sees equal values with unequal neighbours. The first of them gets
   the gradient. */
TEST ties_go_to_the_first(void) {
    const shape s = { 0, 20, 20, 10, 3 };
    size_t i;
    int right;
    EXPECT(!make_shape(&s), &s, "net_init");
    for (i = 0; i < 16 * 25; i++) params[first_of("conv1", "w") + i] = i / 16 == 12 ? 0.5f : 0;
    for (i = 0; i < 32 * 400; i++) params[first_of("conv2", "w") + i] = i / 32 == 12 * 16 ? 0.5f : 0;
    for (i = 0; i < 16; i++) params[first_of("conv1", "b") + i] = 1;
    for (i = 0; i < 32; i++) params[first_of("conv2", "b") + i] = 1;
    for (i = 0; i < 3 * MOST_PIXELS; i++) pixels[i] = (uint8_t)(lcg() % 8 ? 0 : 255);
    widen();
    textbook_mean(0, 3, 1, &right);
    gradient_into(grad, 3);
    EXPECT(!wrong_tensor(), &s, wrong_tensor());
    PASS();
}

/* Huge outputs: the gradient is finite, and one of nothing but a wrong label. A NaN shows in the loss, and is no
   right answer. */
TEST huge_and_broken_parameters(void) {
    const shape s = { 2, 8, 8, 10, 16 };
    const size_t bias = 64 * 64 + 64 + 64 * 32 + 32 + 32 * 10;
    static float mem[1 << 15];
    double loss = 0;
    size_t i;
    EXPECT(!make_shape(&s), &s, "net_init");
    EXPECT(net_memory(&n, 16) <= sizeof mem / sizeof *mem, &s, "memory");
    for (i = 0; i < n.n; i++) params[i] = 0;
    params[bias + 3] = 1e30f;
    for (i = 0; i < 16; i++) labels[i] = (uint8_t)(i < 4 ? 3 : 5);
    loss = gradient_into(grad, 16);
    EXPECT(fabs(loss - 0.75e30) < 1e24, &s, "loss");
    for (i = 0; i < n.n; i++) EXPECT(grad[i] == (i == bias + 3 ? 0.75f : i == bias + 5 ? -0.75f : 0), &s, "gradient");
    EXPECT(net_score(&n, params, images, labels, 16, mem, &loss) == 4, &s, "net_score");
    for (i = 0; i < 10; i++) {
        memset(params, 0, sizeof params);
        params[bias + i] = NAN;
        loss = gradient_into(grad, 16);
        EXPECT(loss != loss, &s, "the loss of a NaN");
        loss = 0;
        labels[0] = 0;
        EXPECT(net_score(&n, params, images, labels, 16, mem, &loss) == 0 && loss != loss, &s, "the score of a NaN");
    }
    PASS();
}

TEST exponential(void) {
    int i;
    for (i = 0; i <= 640000; i++) {
        const float x = (float)i * -1e-4f;
        const double want = exp((double)x);
        ASSERT(fabs((double)net_exp_(x) - want) <= 3e-7 * want);
    }
    ASSERT(net_exp_(0.0f) == 1.0f);
    ASSERT(net_exp_(-64.01f) == 0 && net_exp_(-3e38f) == 0 && net_exp_(-INFINITY) == 0);
    ASSERT(net_exp_(NAN) != net_exp_(NAN));
    PASS();
}

TEST tensors(void) {
    static const size_t rows[] = { 25, 16, 400, 32, 512, 512, 512, 10 }, cols[] = { 16, 1, 32, 1, 512, 1, 10, 1 };
    static const char *const names[] = { "conv1.w", "conv1.b", "conv2.w", "conv2.b", "fc1.w", "fc1.b", "fc2.w",
        "fc2.b" };
    size_t first = 0;
    int t;
    ASSERT_EQ(0, net_init(&n, "lenet", 28, 28, 10));
    ASSERT_EQ_FMT(281034ul, (unsigned long)n.n, "%lu");
    ASSERT_EQ_FMT(8, n.tensors, "%d");
    for (t = 0; t < 8; t++) {
        ASSERT_STR_EQ(names[t], n.tensor[t].name);
        ASSERT(n.tensor[t].rows == rows[t] && n.tensor[t].cols == cols[t] && n.tensor[t].n == rows[t] * cols[t] &&
            n.tensor[t].first == first);
        first += n.tensor[t].n;
    }
    ASSERT(first == n.n);
    ASSERT_EQ(0, net_init(&n, "mlp", 28, 28, 10));
    ASSERT_EQ_FMT(784ul * 256 + 256 + 256 * 128 + 128 + 128 * 10 + 10, (unsigned long)n.n, "%lu");
    ASSERT_EQ(0, net_init(&n, "small", 16, 16, 10));
    ASSERT_EQ_FMT(256ul * 64 + 64 + 64 * 32 + 32 + 32 * 10 + 10, (unsigned long)n.n, "%lu");
    ASSERT_STR_EQ("fc3.b", n.tensor[5].name);
    ASSERT(n.height == 16 && n.width == 16 && n.classes == 10);
    PASS();
}

TEST what_does_not_fit(void) {
    ASSERT_STR_EQ("lenet, mlp, small", net_kinds());
    ASSERT(net_init(&n, "resnet", 28, 28, 10));
    ASSERT(net_init(&n, "", 28, 28, 10));
    ASSERT(net_init(&n, "lenet", 15, 28, 10));
    ASSERT(net_init(&n, "lenet", 28, 15, 10));
    ASSERT(net_init(&n, "lenet", 3, 3, 10));
    ASSERT(net_init(&n, "mlp", 0, 28, 10));
    ASSERT(net_init(&n, "mlp", 28, -1, 10));
    ASSERT(net_init(&n, "mlp", 28, 28, 0));
    ASSERT(net_init(&n, "mlp", 28, 28, 257));
    ASSERT_EQ(0, net_init(&n, "lenet", 16, 16, 256));
    PASS();
}

/* Variance 2 / inputs, mean 0, both within four deviations; nothing beyond sqrt(6 / inputs); another seed, other
   parameters. */
TEST start(void) {
    int k, t;
    size_t i, equal = 0;
    for (k = 0; k < 3; k++) {
        ASSERT_EQ(0, net_init(&n, KINDS[k].kind, 28, 28, 10));
        net_start(&n, 1, params);
        for (t = 0; t < n.tensors; t++) {
            const net_tensor *w = &n.tensor[t];
            const double variance = t % 2 ? 0 : 2.0 / (double)w->rows, count = (double)w->n;
            double sum = 0, squares = 0, most = 0;
            for (i = w->first; i < w->first + w->n; i++) {
                const double x = (double)params[i];
                sum += x;
                squares += x * x;
                if (fabs(x) > most) most = fabs(x);
            }
            ASSERT(fabs(sum / count) <= 4 * sqrt(variance / count));
            ASSERT(fabs(squares / count - variance) <= 4 * variance * sqrt(0.8 / count));
            ASSERT(most <= sqrt(3 * variance) && (t % 2 || most > 0.95 * sqrt(3 * variance)));
        }
        net_start(&n, 1, other);
        ASSERT(!memcmp(params, other, n.n * sizeof *params));
        net_start(&n, 2, other);
        for (i = 0; i < n.n; i++) equal += params[i] == other[i] && params[i] != 0;
    }
    ASSERT(equal < 10);
    PASS();
}

/* Ten classes, each a bright square somewhere else in noise: plain gradient descent finds them. */
static void squares(int batch) {
    int b, y, x;
    make_images(batch);
    for (b = 0; b < batch; b++) {
        const int top = labels[b] / 4 * 5, left = labels[b] % 4 * 4;
        for (y = 0; y < 256; y++) pixels[b * MOST_PIXELS + y] = (uint8_t)(lcg() % 128);
        for (y = top; y < top + 5; y++)
            for (x = left; x < left + 4; x++) pixels[b * MOST_PIXELS + y * 16 + x] = (uint8_t)(96 + lcg() % 160);
    }
}

TEST learns(void) {
    static const float rate[] = { 0.02f, 0.02f, 0.05f };
    int k, i, correct;
    for (k = 0; k < 3; k++) {
        float *mem;
        double begin = 0, end = 0, loss;
        size_t j;
        ASSERT_EQ(0, net_init(&n, KINDS[k].kind, 16, 16, 10));
        net_start(&n, 1, params);
        mem = dirty(net_memory(&n, MOST_BATCH));
        for (i = 0; i < 300; i++) {
            squares(16);
            loss = net_gradient(&n, params, images, labels, 16, grad, mem);
            for (j = 0; j < n.n; j++) params[j] -= rate[k] * grad[j];
            if (i < 20) begin += loss / 20;
            if (i >= 280) end += loss / 20;
        }
        squares(MOST_BATCH);
        loss = 0;
        correct = net_score(&n, params, images, labels, MOST_BATCH, mem, &loss);
        free(mem);
        snprintf(
            note, sizeof note, "%s: loss %.3f, then %.3f; %d of %d", KINDS[k].kind, begin, end, correct, MOST_BATCH);
        ASSERTm(note, begin > 1 && end < 0.1 && correct >= MOST_BATCH - 1 && loss < 0.2 * MOST_BATCH);
    }
    PASS();
}

SUITE(network) {
    RUN_TEST(tensors);
    RUN_TEST(what_does_not_fit);
    RUN_TEST(start);
    RUN_TEST(exponential);
    RUN_TEST(textbook_equals_differences);
    RUN_TEST(equals_the_textbook);
    RUN_TEST(every_simd_has_the_same_bits);
    RUN_TEST(every_machine_has_the_same_bits);
    RUN_TEST(alignment_does_not_matter);
    RUN_TEST(memory_grows_with_the_batch);
    RUN_TEST(extreme_images_and_labels);
    RUN_TEST(ties_go_to_the_first);
    RUN_TEST(huge_and_broken_parameters);
    RUN_TEST(learns);
}

GREATEST_MAIN_DEFS();

int main(int argc, char **argv) {
    GREATEST_MAIN_BEGIN();
    RUN_SUITE(network);
    GREATEST_MAIN_END();
}
