/* What compgrad_ef.h is for, seen on small problems: the method that works beside the one that fails, with the
   step size of each from the same fixed grid or from its theorem. Then what surrounds it (warm-up, clipping,
   rules, gain, compositions) against plain loops. Everything is seeded; thresholds come from a bound that stands
   beside them. */
#include "examples/transport_threads.h"
#include <math.h>
#include <stdio.h>
#include "greatest.h"
#include "tier.h"
#define COMPGRAD_IMPLEMENTATION
#include "compgrad_ef.h"

enum { MOST = 8, LONG = 1024 };
#define ULP 0x1p-24 /* one rounding of a float, relative */
#define WARMUP_BITS UINT64_C(0xc19ed187340dc412)
static int quick; /* not CG_TEST=long */
static uint64_t state;

static double uniform(void) { /* in (-1, 1) */
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return ((double)(state >> 32) + 0.5) * 0x1p-31 - 1.0;
}
static double squared(const double *a, const double *b, size_t n) {
    double s = 0;
    for (size_t i = 0; i < n; i++) s += (a[i] - b[i]) * (a[i] - b[i]);
    return s;
}
static cg_tag tag_of(uint64_t step, int rank) {
    cg_tag t = CG_ZERO;
    t.seed = 7;
    t.step = step;
    t.rank = (uint32_t)rank;
    return t;
}
static cg_ef_desc desc_of(uint32_t kind, cg_op op, size_t n) {
    cg_ef_desc d = CG_ZERO;
    d.kind = kind;
    d.op = op;
    d.n = n;
    return d;
}
static cg_op parsed(const char *text) {
    cg_op op;
    if (cg_op_parse(&op, text) != CG_OK) {
        printf("%s?\n", text);
        abort();
    }
    return op;
}

/* ---- N workers in one thread, and a mean ---- */

typedef struct team {
    int size, receives; /* receives: commit wants the mean */
    size_t n, cap, len[MOST];
    cg_ef ef[MOST];
    void *memory[MOST];
    unsigned char *packet[MOST];
    float grad[MOST][LONG], mean[LONG], result[MOST][LONG];
} team;
static team *crew;

static void team_close(team *t) {
    for (int r = 0; r < t->size; r++) {
        free(t->memory[r]);
        free(t->packet[r]);
    }
    t->size = 0;
}
static cg_status team_open(team *t, const cg_ef_desc *d, int size) {
    team_close(t); /* of a test that failed */
    memset(t, 0, sizeof *t);
    t->size = size;
    t->n = d->n;
    t->cap = cg_ef_bound(d);
    t->receives = d->kind >= CG_EF_EF21;
    for (int r = 0; r < size; r++) {
        const size_t bytes = cg_ef_memory(d);
        cg_status s;
        t->memory[r] = malloc(bytes + 1);
        t->packet[r] = (unsigned char *)malloc(t->cap + 1);
        s = cg_ef_init(&t->ef[r], d, t->memory[r], bytes);
        if (s != CG_OK) return s;
    }
    return CG_OK;
}
/* All compress, all decode all, all commit: t->mean is what an optimizer would use. A silent worker's packet is
   empty. */
static cg_status team_step(team *t, uint64_t step) {
    cg_status s = CG_OK;
    memset(t->mean, 0, sizeof t->mean);
    for (int r = 0; r < t->size && s == CG_OK; r++) {
        const cg_tag tag = tag_of(step, r);
        s = cg_ef_compress(&t->ef[r], &tag, t->grad[r], t->packet[r], t->cap, &t->len[r]);
        if (s == CG_OK && t->len[r])
            s = cg_decompress_add(t->packet[r], t->len[r], 1.0f / (float)t->size, t->mean, t->n);
    }
    for (int r = 0; r < t->size && s == CG_OK; r++) {
        memcpy(t->result[r], t->mean, sizeof t->mean);
        s = cg_ef_commit(&t->ef[r], t->packet[r], t->len[r], t->receives ? t->result[r] : NULL);
        if (s == CG_OK && memcmp(t->result[r], t->result[0], sizeof t->mean)) s = CG_E_MISMATCH;
    }
    memcpy(t->mean, t->result[0], sizeof t->mean);
    return s;
}
/* The same without memory: the mean of what the operator makes of each gradient. */
static cg_status plain_step(team *t, const cg_op *op, uint64_t step) {
    static unsigned char packet[1 << 16], scratch[1 << 16];
    cg_status s = CG_OK;
    memset(t->mean, 0, sizeof t->mean);
    for (int r = 0; r < t->size && s == CG_OK; r++) {
        const cg_tag tag = tag_of(step, r);
        size_t len;
        s = cg_compress(op, &tag, t->grad[r], t->n, packet, sizeof packet, &len, scratch, sizeof scratch);
        if (s == CG_OK) s = cg_decompress_add(packet, len, 1.0f / (float)t->size, t->mean, t->n);
    }
    return s;
}

/* ---- quadratics: worker r has 1/2 sum of a (x - b[r])^2; their mean is least at the mean of b ---- */

static struct {
    int size;
    size_t n;
    double a[LONG], b[MOST][LONG], best[LONG];
} quad;

static void quad_best(void) {
    for (size_t i = 0; i < quad.n; i++) {
        quad.best[i] = 0;
        for (int r = 0; r < quad.size; r++) quad.best[i] += quad.b[r][i] / quad.size;
    }
}
static double quad_gap(const double *x) { /* of the mean of all, above its least */
    double s = 0;
    for (size_t i = 0; i < quad.n; i++) s += 0.5 * quad.a[i] * (x[i] - quad.best[i]) * (x[i] - quad.best[i]);
    return s;
}
static void quad_gradients(team *t, const double *x) {
    for (int r = 0; r < quad.size; r++)
        for (size_t i = 0; i < quad.n; i++) t->grad[r][i] = (float)(quad.a[i] * (x[i] - quad.b[r][i]));
}
static void walk(double *x, const team *t, double step) {
    for (size_t i = 0; i < t->n; i++) x[i] -= step * (double)t->mean[i];
}

/* ---- 1: top-k of 1 %, with memory and without ---- */

/* Ten coordinates on which the workers pull by 64 in opposite directions; on all others they disagree by less than
   4. Top-k alone only ever sends the ten, whose mean is 0: x does not move at all, with any step size. */
static void quarrel(void) {
    state = 11;
    quad.size = 4;
    quad.n = 1000;
    for (size_t i = 0; i < quad.n; i++) {
        const double to = 2 * uniform(), apart = uniform();
        const int loud = i % 100 == 37;
        quad.a[i] = loud ? 1 : 0.75 + 0.25 * uniform();
        for (int r = 0; r < 4; r++)
            quad.b[r][i] = loud ? (r & 1 ? 64 : -64) : to + (r & 1 ? apart : -apart) * (r & 2 ? 1 : 0.5);
    }
    quad_best();
}
/* The learning rate is inside (desc.rate): x moves by the mean of what was sent. */
static double run_topk(double rate, int steps, int memory) {
    static double x[LONG];
    cg_ef_desc d = desc_of(CG_EF_CLASSIC, cg_topk(0.01f), quad.n);
    memset(x, 0, sizeof x);
    d.rate = (float)rate;
    if (team_open(crew, &d, quad.size) != CG_OK) return INFINITY;
    for (int s = 0; s < steps; s++) {
        quad_gradients(crew, x);
        if ((memory ? team_step(crew, (uint64_t)s) : plain_step(crew, &d.op, (uint64_t)s)) != CG_OK) {
            x[0] = INFINITY;
            break;
        }
        walk(x, crew, memory ? 1 : rate);
    }
    team_close(crew);
    return quad_gap(x);
}
TEST topk_needs_memory(void) {
    static const double rates[] = { 0x1p-4, 0x1p-6, 0x1p-8, 0x1p-10 };
    static const double zero[LONG];
    double first, best = INFINITY;
    quarrel();
    first = quad_gap(zero);
    for (int i = 0; i < 4; i++) {
        const double gap = run_topk(rates[i], 3000, 1);
        if (gap < best) best = gap;
        ASSERT_EQ(first, run_topk(rates[i], quick ? 20 : 300, 0));
    }
    printf("    top-k 1 %%: gap %.4g; alone it stays at %.4g\n", best, first);
    ASSERT(best < first / 100);
    PASS();
}

/* ---- 2: signSGD and the counterexamples of Karimireddy 2019 ---- */

/* x/4 on [-1, 1], its gradient 4 with probability 1/4, else -1. The sign drifts upwards by 1/2 a step. In one
   dimension efsign is exact, so EF-signSGD is SGD: it settles at -1 with an exponential tail of rate * variance /
   (2 drift) = 9.4 rate. */
static double line(int memory) {
    const double rate = 0x1p-8;
    const cg_op sign = cg_sign();
    cg_ef_desc d = desc_of(CG_EF_CLASSIC, cg_efsign(), 1);
    double x = 0, mean = 0;
    const int steps = 8192;
    state = 3;
    if (team_open(crew, &d, 1) != CG_OK) return NAN;
    for (int s = 0; s < steps; s++) {
        crew->grad[0][0] = uniform() < -0.5 ? 4.0f : -1.0f;
        if ((memory ? team_step(crew, (uint64_t)s) : plain_step(crew, &sign, (uint64_t)s)) != CG_OK) {
            mean = NAN;
            break;
        }
        x -= rate * (double)crew->mean[0];
        x = x > 1 ? 1 : x < -1 ? -1 : x;
        if (s >= steps / 2) mean += x / (steps / 2);
    }
    team_close(crew);
    return mean;
}
TEST sign_on_a_line(void) {
    const double with = line(1), without = line(0);
    printf("    sign: x = %.3f with memory, %.3f without (best: -1)\n", with, without);
    ASSERT(with < -0.8);   /* theory: -0.96 */
    ASSERT(without > 0.8); /* theory: 1 - 0.75 rate */
    PASS();
}
/* Least squares of two samples, a = +-(1, -1) + 1/2 (1, 1), drawn at random: f = 1/2 <a, x>^2. Every gradient has
   signs (+, -) or (-, +), so that signSGD leaves x1 + x2 = 2 as it was, and f at 1/2 or more. Both samples are
   content at 0: EF-SGD gets there. */
static double plane(double rate, int memory, double *sum) {
    const cg_op sign = cg_sign();
    cg_ef_desc d = desc_of(CG_EF_CLASSIC, cg_efsign(), 2);
    double x[2] = { 1, 1 };
    state = 5;
    d.rate = (float)rate;
    if (team_open(crew, &d, 1) != CG_OK) return NAN;
    for (int s = 0; s < 2000; s++) {
        const double way = uniform() < 0 ? 1 : -1, a[2] = { way + 0.5, -way + 0.5 }, in = a[0] * x[0] + a[1] * x[1];
        crew->grad[0][0] = (float)(a[0] * in);
        crew->grad[0][1] = (float)(a[1] * in);
        if ((memory ? team_step(crew, (uint64_t)s) : plain_step(crew, &sign, (uint64_t)s)) != CG_OK) {
            x[0] = NAN;
            break;
        }
        walk(x, crew, memory ? 1 : rate);
    }
    team_close(crew);
    *sum = x[0] + x[1];
    return 0.5 * ((x[0] - x[1]) * (x[0] - x[1]) + 0.25 * (x[0] + x[1]) * (x[0] + x[1]));
}
TEST sign_in_a_plane(void) {
    /* x1 - x2, a multiple of twice that, never is 1: no gradient is 0 */
    static const double rates[] = { 3 * 0x1p-5, 3 * 0x1p-7, 3 * 0x1p-9 };
    double best = INFINITY, sum;
    for (int i = 0; i < 3; i++) {
        const double with = plane(rates[i], 1, &sum);
        double without;
        if (with < best) best = with;
        without = plane(rates[i], 0, &sum);
        ASSERT_EQ(2.0, sum);
        ASSERT(without >= 0.5);
    }
    printf("    sign, least squares: %.2g with memory, 0.5 or more without\n", best);
    /* rate 3/32, curvature 1/2 and more: exp(-2000/11) if all went well, less than 1e-6 if memory makes it eight
       times slower */
    ASSERT(best < 1e-6);
    PASS();
}

/* ---- 3: EF21 gets there with a constant step, classic EF circles ---- */

/* Three workers, three coordinates, top-1; at the optimum worker r still has the gradient 3 e_r - (1, 1, 1).
   Curvature 1/2 to 1. */
static void triangle(void) {
    quad.size = 3;
    quad.n = 3;
    for (size_t i = 0; i < 3; i++) {
        quad.a[i] = 1 - 0.25 * (double)i;
        for (size_t r = 0; r < 3; r++) quad.b[r][i] = (r == i ? -2 : 1) / quad.a[i] + 4;
    }
    quad_best();
}
static cg_op top1(void) {
    cg_op op = cg_topk(0.5f);
    op.k = 1;
    return op;
}
/* The last distance, and the root mean square of the last quarter's. */
static cg_status circle(uint32_t kind, double step, int steps, double *last, double *level) {
    cg_ef_desc d = desc_of(kind, top1(), 3);
    double x[3] = { 0, 0, 0 };
    cg_status s = team_open(crew, &d, 3);
    *level = 0;
    for (int i = 0; i < steps && s == CG_OK; i++) {
        quad_gradients(crew, x);
        s = team_step(crew, (uint64_t)i);
        walk(x, crew, step);
        *last = sqrt(squared(x, quad.best, 3));
        if (i >= steps - steps / 4) *level += *last * *last / (steps / 4);
    }
    *level = sqrt(*level);
    team_close(crew);
    return s;
}
/* Theorem 2 of Richtarik 21: with t = 1 - sqrt(1 - 1/3), b = (1 - 1/3)/t, L = 1, m = 1/2 a step below 1/(1 +
   sqrt(2 b/t)) = 0.137 (and t/(2m)) makes gap + step/t * mean |g - h|^2 shrink by 1 - step*m. Classic EF moves x
   by step/3 of single entries of at least 2 in almost every step, since three of them cancel only on one
   coordinate, and rarely there: its level is about step, in proportion. */
TEST ef21_on_a_triangle(void) {
    const int steps = 800;
    const double step = 0.125, t = 1 - sqrt(2.0 / 3);
    double start, bound, floats, last, level, half, ef21[2];
    triangle();
    ASSERT_EQ(CG_OK, circle(CG_EF_EF21, step, steps, &ef21[0], &ef21[1]));
    ASSERT_EQ(CG_OK, circle(CG_EF_CLASSIC, step, steps, &last, &level));
    ASSERT_EQ(CG_OK, circle(CG_EF_CLASSIC, step / 2, 2 * steps, &last, &half));
    start = 0; /* at first: gap, and h = 0 */
    for (size_t i = 0; i < 3; i++) {
        start += 0.5 * quad.a[i] * quad.best[i] * quad.best[i];
        for (int r = 0; r < 3; r++) start += step / t * quad.a[i] * quad.a[i] * quad.b[r][i] * quad.b[r][i] / 3;
    }
    bound = sqrt(2 / 0.5 * start * pow(1 - step * 0.5, steps - 1));
    /* H and every h are rounded in every step, to 2^-24 of at most 8: H may be wrong by so much in the end, x by
       twice that in each of 3 */
    floats = sqrt(3.0) * 2 * 2 * steps * 8 * ULP;
    printf("    EF21 %.2g (bound %.2g + %.2g); classic EF circles at %.3g, with half the step at %.3g\n", ef21[1],
        bound, floats, level, half);
    ASSERT(ef21[0] <= bound + floats);
    ASSERT(ef21[1] <= bound * 1e3 + floats); /* 200 steps earlier the bound is 640 times as large */
    ASSERT(level > step / 3 && level < 10 * step);
    ASSERT(half > level / 4 && half < level); /* theory: one half */
    ASSERT(level > 30 * ef21[1]);
    PASS();
}

/* ---- 4: DIANA's variance goes away, QSGD's stays ---- */

enum { DIANA_N = 64, DIANA_LEVELS = 1 }; /* few: h = h + D, with no alpha, would grow */
static void scattered(void) {
    state = 17;
    quad.size = 4;
    quad.n = DIANA_N;
    for (size_t i = 0; i < quad.n; i++) {
        quad.a[i] = 0.75 + 0.25 * uniform();
        for (int r = 0; r < 4; r++) quad.b[r][i] = 4 * uniform();
    }
    quad_best();
}
/* Levels of |g|/s, between two of which v falls with a fraction f: the variance is (|g|/s)^2 f (1 - f). Of the
   mean: over N^2. */
static double qsgd_variance(const team *t) {
    double all = 0;
    for (int r = 0; r < t->size; r++) {
        double norm = 0;
        for (size_t i = 0; i < t->n; i++) norm += (double)t->grad[r][i] * (double)t->grad[r][i];
        norm = sqrt(norm);
        for (size_t i = 0; i < t->n; i++) {
            const double v = fabs((double)t->grad[r][i]) / norm * DIANA_LEVELS, f = v - floor(v);
            all += norm * norm / (DIANA_LEVELS * DIANA_LEVELS) * f * (1 - f) / (t->size * t->size);
        }
    }
    return all;
}
/* What all have received is the mean of what each has sent: by so much it is not, over the largest of it all. */
static double diana_drift(const team *t) {
    static float h[MOST][DIANA_N], all[DIANA_N];
    double most = 0, off = 0;
    for (int r = 0; r < t->size; r++)
        if (cg_ef_read(&t->ef[r], CG_EF_ERROR, h[r], DIANA_N) != CG_OK) return INFINITY;
    if (cg_ef_read(&t->ef[0], CG_EF_RECEIVED, all, DIANA_N) != CG_OK) return INFINITY;
    for (size_t i = 0; i < DIANA_N; i++) {
        double mean = 0;
        for (int r = 0; r < t->size; r++) {
            mean += (double)h[r][i] / t->size;
            most = fmax(most, fabs((double)h[r][i]));
        }
        off = fmax(off, fabs(mean - (double)all[i]));
    }
    return off / most;
}
/* Runs, then measures: mean |estimate - mean gradient|^2 (noise) and |x - best|^2 (away) over the last steps. */
static cg_status quantized(
    uint32_t kind, double step, int steps, int last, double *noise, double *away, double *drift) {
    cg_ef_desc d = desc_of(kind, cg_qsgd(DIANA_LEVELS), DIANA_N);
    double x[DIANA_N] = { 0 };
    cg_status s = team_open(crew, &d, 4);
    *noise = *away = *drift = 0;
    for (int i = 0; i < steps && s == CG_OK; i++) {
        quad_gradients(crew, x);
        s = kind == CG_EF_DIANA ? team_step(crew, (uint64_t)i) : plain_step(crew, &d.op, (uint64_t)i);
        if (kind == CG_EF_DIANA) *drift = fmax(*drift, diana_drift(crew));
        for (size_t j = 0; j < DIANA_N && i >= steps - last; j++) {
            const double g = quad.a[j] * (x[j] - quad.best[j]), e = (double)crew->mean[j] - g;
            *noise += e * e / last;
            *away += (x[j] - quad.best[j]) * (x[j] - quad.best[j]) / last;
        }
        walk(x, crew, step);
    }
    team_close(crew);
    return s;
}
/* w = sqrt(64)/1 = 8, alpha = 1/9, N = 4, L = 1, m = 1/2: a step below 1/(L (1 + 6 w/N)) = 1/13 contracts |x -
   best|^2 + .. |g - h|^2 by max(1 - step m, 1 - alpha/2) = 31/32 in expectation. Of 4e3 at first nothing is left
   after 1500 steps but float's roundings. */
TEST diana_forgets_noise(void) {
    const int steps = 1800, last = 300;
    const double step = 0x1p-4;
    double noise[2], away[2], drift[2], exact, widest = 0;
    scattered();
    ASSERT_EQ(CG_OK, quantized(CG_EF_DIANA, step, steps, last, &noise[0], &away[0], &drift[0]));
    ASSERT_EQ(CG_OK, quantized(CG_EF_CLASSIC, step, steps, last, &noise[1], &away[1], &drift[1]));
    crew->size = 4;
    crew->n = DIANA_N;
    quad_gradients(crew, quad.best);
    exact = qsgd_variance(crew);
    crew->size = 0;
    for (size_t i = 0; i < quad.n; i++)
        for (int r = 0; r < 4; r++) widest = fmax(widest, fabs(quad.b[r][i]));
    printf("    DIANA: noise %.2g, |x - best|^2 %.2g; QSGD: %.3g, %.3g (its variance at the optimum: %.3g)\n", noise[0],
        away[0], noise[1], away[1], exact);
    printf("    DIANA: H is the mean of h to %.2g\n", drift[0]);
    /* at the optimum h and H are each off by no more than a rounding in every step, of values up to 2 widest */
    ASSERT(noise[0] < DIANA_N * pow(4 * steps * widest * ULP, 2));
    /* x follows the estimate divided by a >= 1/2 */
    ASSERT(away[0] < 4 * DIANA_N * pow(4 * steps * widest * ULP, 2));
    /* h, the mean of D (4), H: six roundings a step, of values that were ten times as large in the first steps */
    ASSERT(drift[0] < 6 * steps * 10 * ULP);
    /* QSGD walks around the optimum, where its gradients (and with them its variance) are a little larger: never
       much less than exact. 300 correlated samples of 64 coordinates: 10 % is many standard deviations. */
    ASSERT(noise[1] > 0.9 * exact && noise[1] < 2 * exact);
    /* stationary: step V/(a (2 - step a)) in each coordinate, a <= 1 */
    ASSERT(away[1] > 0.5 * step * exact / (2 - step / 2));
    PASS();
}

/* ---- 5: LAQ is silent most of the time ---- */

enum { LOGIT_N = 16, LOGIT_ROWS = 24, LOGIT_SIZE = 8 };
static struct { double z[LOGIT_SIZE][LOGIT_ROWS][LOGIT_N], y[LOGIT_SIZE][LOGIT_ROWS], smooth; } logit;
#define RIDGE 0.16

/* Worker r's features are 1.3^r as long as the first's, and its labels come from a plane of its own. */
static void logistic(void) {
    double plane_of[LOGIT_N];
    state = 23;
    logit.smooth = RIDGE;
    for (int r = 0; r < LOGIT_SIZE; r++) {
        const double scale = pow(1.3, r - LOGIT_SIZE + 1);
        for (size_t i = 0; i < LOGIT_N; i++) plane_of[i] = uniform() + (i % 3 ? 0.5 : -0.5);
        for (size_t k = 0; k < LOGIT_ROWS; k++) {
            double in = 0, norm = 0;
            for (size_t i = 0; i < LOGIT_N; i++) {
                const double z = 4 * scale * uniform(); /* so that the step is far from 1 */
                logit.z[r][k][i] = z;
                in += z * plane_of[i];
                norm += z * z;
            }
            logit.y[r][k] = in + 1.2 * scale * uniform() < 0 ? -1 : 1;
            logit.smooth += norm / 4 / LOGIT_ROWS / LOGIT_SIZE; /* the trace: L or more */
        }
    }
}
static double logit_loss(const double *x) {
    double f = 0;
    for (int r = 0; r < LOGIT_SIZE; r++)
        for (size_t k = 0; k < LOGIT_ROWS; k++) {
            double in = 0;
            for (size_t i = 0; i < LOGIT_N; i++) in += logit.z[r][k][i] * x[i];
            f += log1p(exp(-logit.y[r][k] * in)) / LOGIT_ROWS / LOGIT_SIZE;
        }
    for (size_t i = 0; i < LOGIT_N; i++) f += 0.5 * RIDGE * x[i] * x[i];
    return f;
}
static void logit_gradient(int r, const double *x, double *g) {
    for (size_t i = 0; i < LOGIT_N; i++) g[i] = RIDGE * x[i];
    for (size_t k = 0; k < LOGIT_ROWS; k++) {
        double in = 0;
        for (size_t i = 0; i < LOGIT_N; i++) in += logit.z[r][k][i] * x[i];
        in = -logit.y[r][k] / (1 + exp(logit.y[r][k] * in)) / LOGIT_ROWS;
        for (size_t i = 0; i < LOGIT_N; i++) g[i] += in * logit.z[r][k][i];
    }
}
static void logit_dense(double *x, double step, int steps) {
    for (int s = 0; s < steps; s++) {
        double g[LOGIT_N], all[LOGIT_N] = { 0 };
        for (int r = 0; r < LOGIT_SIZE; r++) {
            logit_gradient(r, x, g);
            for (size_t i = 0; i < LOGIT_N; i++) all[i] += g[i] / LOGIT_SIZE;
        }
        for (size_t i = 0; i < LOGIT_N; i++) x[i] -= step * all[i];
    }
}
/* Until the loss is below `enough`, or `most` steps are done. */
static cg_status logit_laq(double *x, double step, double enough, int most, int told, int *steps, long *uploads) {
    cg_ef_desc d = desc_of(CG_EF_LAQ, cg_nearest(cg_minmax(8, LOGIT_N)), LOGIT_N);
    cg_status s;
    int k;
    d.laq_step = (float)step;
    s = team_open(crew, &d, LOGIT_SIZE);
    *uploads = 0;
    for (k = 0; k < most && s == CG_OK && logit_loss(x) > enough; k++) {
        double before[LOGIT_N], g[LOGIT_N];
        memcpy(before, x, sizeof before);
        for (int r = 0; r < LOGIT_SIZE; r++) {
            logit_gradient(r, x, g);
            for (size_t i = 0; i < LOGIT_N; i++) crew->grad[r][i] = (float)g[i];
        }
        s = team_step(crew, (uint64_t)k);
        for (int r = 0; r < LOGIT_SIZE && s == CG_OK; r++) {
            cg_info info;
            s = cg_inspect(crew->packet[r], crew->len[r], &info);
            *uploads += info.value_bytes != 0;
            if (s == CG_OK && cg_ef_stats_of(&crew->ef[r]).silent != !info.value_bytes) s = CG_E_STATE;
        }
        walk(x, crew, step);
        for (int r = 0; r < LOGIT_SIZE && s == CG_OK && told; r++)
            s = cg_ef_moved(&crew->ef[r], squared(x, before, LOGIT_N));
    }
    *steps = k;
    team_close(crew);
    return s;
}
/* Both with the step 1/L, L <= the trace, until only 1e-6 of the way is left; LAQ (which follows the same path,
   but later) to within 1 % of that. One that is never told how far the model moved has nothing to weigh its
   gradients against, and sends almost all of them. */
TEST laq_is_mostly_silent(void) {
    double best[LOGIT_N] = { 0 }, dense[LOGIT_N] = { 0 }, lazy[LOGIT_N] = { 0 }, first, least, gap, gap_lazy;
    double eager[LOGIT_N] = { 0 };
    int steps = 0, lazy_steps, eager_steps;
    long uploads, eager_uploads;
    logistic();
    first = logit_loss(dense);
    logit_dense(best, 1 / logit.smooth, quick ? 3000 : 10000);
    least = logit_loss(best);
    while (logit_loss(dense) - least > 1e-6 * (first - least)) {
        logit_dense(dense, 1 / logit.smooth, 1);
        steps++;
    }
    gap = logit_loss(dense) - least;
    ASSERT_EQ(CG_OK, logit_laq(lazy, 1 / logit.smooth, least + 1.01 * gap, 2 * steps, 1, &lazy_steps, &uploads));
    ASSERT_EQ(
        CG_OK, logit_laq(eager, 1 / logit.smooth, least + 1.01 * gap, 2 * steps, 0, &eager_steps, &eager_uploads));
    gap_lazy = logit_loss(lazy) - least;
    printf("    LAQ: %ld packets in %d steps, gap %.4g; dense: %d in %d, gap %.4g (at first %.4g)\n", uploads,
        lazy_steps, gap_lazy, steps * LOGIT_SIZE, steps, gap, first - least);
    printf("    LAQ that is told nothing: %ld packets in %d steps\n", eager_uploads, eager_steps);
    ASSERT(gap_lazy <= 1.01 * gap);
    ASSERT(uploads < (long)steps * LOGIT_SIZE / 2);
    ASSERT(uploads < (long)lazy_steps * LOGIT_SIZE / 2);
    ASSERT(lazy_steps < 2 * steps);
    ASSERT(eager_uploads > (long)eager_steps * LOGIT_SIZE * 9 / 10);
    PASS();
}

/* ---- ranks as threads, with cg_ef_exchange ---- */

enum { ROAD_STEPS = 50 };
typedef struct road {
    cg_ef_desc ef;
    cg_exchange_desc exchange;
    int size, steps, cold; /* cold: everything is forgotten before every step */
    float grad[ROAD_STEPS][MOST][LONG], result[ROAD_STEPS][LONG], error[MOST][LONG];
    int differs; /* a rank had another result than rank 0's, which comes last */
    float other[ROAD_STEPS][MOST][LONG];
} road;
static road *way;

static int traveller(cg_threads_world *world, int rank, void *user) {
    road *w = (road *)user;
    const cg_transport t = cg_threads_transport(world, rank, CG_THREADS_ALL);
    const size_t bytes = cg_ef_memory(&w->ef);
    void *memory = malloc(bytes + 1), *mem;
    size_t room;
    cg_exchange_desc x = w->exchange;
    cg_report report;
    cg_ef ef;
    cg_status s = cg_ef_init(&ef, &w->ef, memory, bytes);
    if (s != CG_OK) {
        free(memory);
        return (int)s;
    }
    room = cg_ef_exchange_memory(&ef, &x, &t);
    mem = malloc(room + 1);
    for (int i = 0; i < w->steps && s == CG_OK; i++) {
        memcpy(w->other[i][rank], w->grad[i][rank], sizeof w->grad[i][rank]);
        if (w->cold) cg_ef_reset(&ef);
        x.tag = tag_of((uint64_t)i, 0);
        s = cg_ef_exchange(&ef, &x, &t, w->other[i][rank], mem, room, &report);
        if (s != CG_OK) printf("rank %d, step %d: %s (%s)\n", rank, i, report.why ? report.why : "-", cg_status_str(s));
    }
    if (s == CG_OK) s = cg_ef_read(&ef, CG_EF_ERROR, w->error[rank], w->ef.n);
    free(mem);
    free(memory);
    return (int)s;
}
static int travel(road *w) { /* 0, or a status */
    const int code = cg_threads_run(w->size, traveller, w);
    for (int i = 0; i < w->steps; i++) {
        memcpy(w->result[i], w->other[i][0], sizeof w->result[i]);
        for (int r = 1; r < w->size; r++)
            if (memcmp(w->other[i][r], w->result[i], 4 * w->ef.n)) return code ? code : -1;
    }
    return code;
}

/* ---- 6: PowerSGD's warm start, and 1-bit Adam ---- */

enum { SIDE = 32, POWER_STEPS = 16 };
static const double singular[6] = { 8, 6, 3, 2, 1, 0.5 };

static int odd(size_t bits) {
    int o = 0;
    for (; bits; bits >>= 1) o ^= (int)(bits & 1);
    return o;
}
/* The mean of three ranks has these singular values (rows of Hadamard's matrix are its vectors); alone each has
   something more, that the others take away again. The same in every step. */
static void matrices(road *w) {
    state = 29;
    for (size_t i = 0; i < SIDE; i++)
        for (size_t j = 0; j < SIDE; j++) {
            double m = 0, one = uniform(), two = uniform();
            for (size_t k = 0; k < 6; k++) {
                m += singular[k] / SIDE * (odd((k + 1) & i) == odd((3 * k + 2) & j) ? 1 : -1);
            }
            w->grad[0][0][i * SIDE + j] = (float)(m + one);
            w->grad[0][1][i * SIDE + j] = (float)(m + two);
            w->grad[0][2][i * SIDE + j] = (float)(m - one - two);
        }
    for (int s = 1; s < POWER_STEPS; s++) memcpy(w->grad[s], w->grad[0], sizeof w->grad[0]);
}
static void power_errors(const road *w, double *error) {
    for (int s = 0; s < POWER_STEPS; s++) {
        error[s] = 0;
        for (size_t i = 0; i < SIDE * SIDE; i++) {
            double m = 0;
            for (int r = 0; r < 3; r++) m += (double)w->grad[0][r][i] / 3;
            error[s] += ((double)w->result[s][i] - m) * ((double)w->result[s][i] - m);
        }
    }
}
/* A decay of almost nothing leaves of PowerSGD what it starts from: one step of subspace iteration after the
   other. The error of rank 2 never grows, and its excess over 3^2 + 2^2 + 1 + 1/4 shrinks by (3/6)^4 a step. Each
   entry is off by some 32 roundings of 8, so that the error is by 2 sqrt(14.25) * 32 * 8 * 2^-24 = 1.2e-4. */
TEST power_iteration_goes_on(void) {
    const double least = 9 + 4 + 1 + 0.25, slack = 2 * sqrt(14.25) * 32 * 8 * ULP;
    double warm[POWER_STEPS], cold[POWER_STEPS], early = 0, late = 0;
    memset(way, 0, sizeof *way);
    way->ef = desc_of(CG_EF_CLASSIC, cg_lowrank(SIDE, SIDE, 2), SIDE * SIDE);
    way->ef.decay = 1e-30f;
    way->size = 3;
    way->steps = POWER_STEPS;
    matrices(way);
    ASSERT_EQ(0, travel(way));
    power_errors(way, warm);
    way->cold = 1;
    ASSERT_EQ(0, travel(way));
    power_errors(way, cold);
    printf("    PowerSGD: error %.4f at first, %.6f warm, %.4f cold (least %.4f)\n", warm[0], warm[POWER_STEPS - 1],
        cold[POWER_STEPS - 1], least);
    ASSERT(warm[0] > least + 0.1);
    for (int s = 1; s < POWER_STEPS; s++) ASSERT(warm[s] <= warm[s - 1] + slack);
    ASSERT(warm[POWER_STEPS - 1] <= least + slack);
    for (int s = 0; s < POWER_STEPS / 2; s++) {
        early += cold[s] - least;
        late += cold[POWER_STEPS / 2 + s] - least;
    }
    for (int s = 0; s < POWER_STEPS; s++) ASSERT(cold[s] > least + 10 * slack);
    ASSERT(late > early / 4); /* draws of one distribution */
    PASS();
}

enum { ADAM_N = 64, ADAM_STEPS = 2000 };
static void adam_problem(void) {
    state = 31;
    quad.size = 4;
    quad.n = ADAM_N;
    for (size_t i = 0; i < quad.n; i++) {
        quad.a[i] = i % 20 == 7 ? 0 : exp(uniform()); /* of three coordinates no gradient ever comes */
        for (int r = 0; r < 4; r++) quad.b[r][i] = 2 + uniform();
    }
    quad_best();
}
/* M = momentum M + (1 - momentum) g + e before - e, in the mean. Less the dense m, with w = M - m: w + e =
   momentum (w + e) + (1 - momentum) e of a step before, so |w| <= 2 max |e|, coordinate by coordinate. */
static cg_status one_bit(double step, double *gap, double *beyond, double *reach, double *still, double *pushed) {
    static float variance[ADAM_N], update[ADAM_N], e[ADAM_N];
    double x[ADAM_N] = { 0 }, m[ADAM_N] = { 0 }, most[ADAM_N] = { 0 };
    cg_ef_desc d = desc_of(CG_EF_ONEBIT_ADAM, cg_efsign(), ADAM_N);
    cg_status s;
    d.momentum = 0.9f;
    s = team_open(crew, &d, 4);
    *beyond = *reach = *still = *pushed = 0;
    for (size_t i = 0; i < ADAM_N; i++) variance[i] = (float)(quad.a[i] * quad.a[i]);
    for (int k = 0; k < ADAM_STEPS && s == CG_OK; k++) {
        double all[ADAM_N] = { 0 };
        quad_gradients(crew, x);
        s = team_step(crew, (uint64_t)k);
        for (int r = 0; r < 4 && s == CG_OK; r++) {
            s = cg_ef_read(&crew->ef[r], CG_EF_ERROR, e, ADAM_N);
            for (size_t i = 0; i < ADAM_N; i++) all[i] += (double)e[i] / (double)cg_ef_scale(&crew->ef[r]) / 4;
        }
        for (size_t i = 0; i < ADAM_N; i++) {
            double g = 0;
            for (int r = 0; r < 4; r++) g += (double)crew->grad[r][i] / 4;
            m[i] = 0.9 * m[i] + 0.1 * g;
            most[i] = fmax(most[i], fabs(all[i]));
            *beyond = fmax(*beyond, fabs((double)crew->mean[i] - m[i]) - 2 * most[i]);
            *reach = fmax(*reach, most[i] + fabs(m[i]));
        }
        (void)cg_ef_precondition(crew->mean, variance, 1e-8f, update, ADAM_N);
        for (size_t i = 0; i < ADAM_N; i++) {
            x[i] -= step * (double)update[i];
            if (quad.a[i] == 0) {
                *still = fmax(*still, fabs(x[i]));
                *pushed = fmax(*pushed, fabs((double)crew->mean[i]));
            }
        }
    }
    *gap = quad_gap(x);
    team_close(crew);
    return s;
}
TEST one_bit_adam(void) {
    static const double steps[] = { 0x1p-3, 0x1p-5, 0x1p-7 };
    const double zero[ADAM_N] = { 0 };
    double best = INFINITY, first, gap, beyond, reach, still, pushed;
    adam_problem();
    first = quad_gap(zero);
    for (int i = 0; i < 3; i++) {
        ASSERT_EQ(CG_OK, one_bit(steps[i], &gap, &beyond, &reach, &still, &pushed));
        if (gap < best) best = gap;
        /* a step rounds p, e, D and M, of at most 4 reach; roundings of M fade by 0.9, so that ten steps' count;
           momentum itself is a float */
        ASSERT(beyond <= 10 * 8 * 4 * reach * ULP);
        ASSERT_EQ(0.0, still);
        ASSERT(pushed > 0); /* one bit cannot say that there is nothing */
    }
    printf("    1-bit Adam: gap %.3g of %.3g\n", best, first);
    ASSERT(best < first / 100);
    PASS();
}

/* ---- 7: operators that expand ---- */

static void crowd(void) {
    state = 37;
    quad.size = 4;
    quad.n = 1000;
    for (size_t i = 0; i < quad.n; i++) {
        const double to = 2 * uniform();
        quad.a[i] = 0.75 + 0.25 * uniform();
        for (int r = 0; r < 4; r++) quad.b[r][i] = to + uniform();
    }
    quad_best();
}
/* e = p - C(p) with the operator as it is: the largest |e|^2 over that of the gradient which always comes. */
static double swollen(const cg_op *op, int steps) {
    static unsigned char packet[1 << 16];
    static double e[LONG];
    static float p[LONG], out[LONG];
    double most = 0, first = 0;
    memset(e, 0, sizeof e);
    for (size_t i = 0; i < quad.n; i++) first += quad.a[i] * quad.a[i] * quad.b[0][i] * quad.b[0][i];
    for (int s = 0; s < steps && most < 1e12; s++) {
        const cg_tag tag = tag_of((uint64_t)s, 0);
        double sum = 0;
        size_t len;
        for (size_t i = 0; i < quad.n; i++) p[i] = (float)(e[i] - quad.a[i] * quad.b[0][i]);
        if (cg_compress(op, &tag, p, quad.n, packet, sizeof packet, &len, NULL, 0) != CG_OK) return -1;
        if (cg_decompress(packet, len, out, quad.n) != CG_OK) return -1;
        for (size_t i = 0; i < quad.n; i++) {
            e[i] = (double)p[i] - (double)out[i];
            sum += e[i] * e[i];
        }
        most = fmax(most, sum / first);
    }
    return most;
}
/* The gap in the end, and the largest |e|/|g| of any worker and step. */
static cg_status tamed(const cg_op *op, double rate, int steps, double *gap, double *error, double *scale) {
    static double x[LONG];
    double largest = 0;
    cg_ef_desc d = desc_of(CG_EF_CLASSIC, *op, quad.n);
    cg_status s;
    memset(x, 0, sizeof x);
    d.rate = (float)rate;
    s = team_open(crew, &d, quad.size);
    *error = 0;
    for (int k = 0; k < steps && s == CG_OK; k++) {
        quad_gradients(crew, x);
        s = team_step(crew, (uint64_t)k);
        walk(x, crew, 1);
        *scale = (double)cg_ef_scale(&crew->ef[0]);
        for (int r = 0; r < quad.size; r++) {
            const float *e = cg_ef_residual(&crew->ef[r]);
            double g2 = 0, e2 = 0;
            for (size_t i = 0; i < quad.n; i++) {
                g2 += (double)crew->grad[r][i] * (double)crew->grad[r][i];
                e2 += (double)e[i] / *scale * (double)e[i] / *scale;
            }
            largest = fmax(largest, g2 * rate * rate);
            *error = fmax(*error, e2);
        }
    }
    *error = sqrt(*error / largest);
    *gap = quad_gap(x);
    team_close(crew);
    return s;
}
/* w of the operator, and with it d = 1/(1+w) of what memory makes of it: |e| <= 2 sqrt(1 - d)/d max |g|
   (Karimireddy 19, lemma 3). */
TEST expanding_operators(const char *text, double w, int grows, double divided) {
    static const double rates[] = { 0x1p-4, 0x1p-6, 0x1p-8 };
    const double zero[LONG] = { 0 }, d = 1 / (1 + w);
    const cg_op op = parsed(text);
    double best = INFINITY, first, swells, gap, error, most = 0, scale = 0;
    crowd();
    first = quad_gap(zero);
    swells = swollen(&op, 300);
    for (int i = 0; i < 3; i++) {
        ASSERT_EQ(CG_OK, tamed(&op, rates[i], 1500, &gap, &error, &scale));
        if (gap < best) best = gap;
        if (error > most) most = error;
    }
    printf("    %s: |e|^2/|g|^2 %.2g as it is; with a scale of %.4g |e|/|g| < %.3g (bound %.3g), gap %.3g of %.4g\n",
        text, swells, scale, most, 2 * sqrt(1 - d) / d, best, first);
    ASSERT(!grows || swells > 1e6);
    ASSERT_IN_RANGE(1 / divided, scale, ULP);
    ASSERT(most <= 2 * sqrt(1 - d) / d);
    ASSERT(best < first / 100);
    PASS();
}

/* ---- warm-up ---- */

static cg_warmup warmup_of(uint32_t kind, uint32_t stages, uint64_t period) {
    cg_warmup w = CG_ZERO;
    w.kind = kind;
    w.stages = stages;
    w.period = period;
    return w;
}
static const float ratios[] = { 1.0f, 0.75f, 0.3f, 0.1f, 0.01f, 0.001f, 1e-4f, 3.7e-7f, 1e-20f, 1e-37f };
TEST warmup_power(void) {
    static const uint32_t stages[] = { 1, 2, 4, 5, 10, 100, 1000 };
    for (size_t r = 0; r < sizeof ratios / sizeof *ratios; r++)
        for (size_t k = 0; k < sizeof stages / sizeof *stages; k++) {
            const cg_warmup w = warmup_of(CG_WARMUP_POWER, stages[k], 3);
            for (uint32_t s = 0; s < stages[k]; s += 1 + stages[k] / 50) {
                const double want = pow((double)ratios[r], (double)(s + 1) / (double)(stages[k] + 1));
                for (uint64_t step = 3 * s; step < 3 * (uint64_t)s + 3; step++) {
                    const float got = cg_warmup_ratio(&w, ratios[r], step);
                    ASSERT_IN_RANGE(want, (double)got, 1e-6 * want);
                    ASSERT(got >= ratios[r] && got <= 1.0f);
                }
            }
            ASSERT_EQ(ratios[r], cg_warmup_ratio(&w, ratios[r], 3 * (uint64_t)stages[k]));
            ASSERT_EQ(ratios[r], cg_warmup_ratio(&w, ratios[r], UINT64_MAX));
        }
    PASS();
}
TEST warmup_quarters(void) {
    cg_warmup w = warmup_of(CG_WARMUP_QUARTERS, 5, 0);
    float plain = 1;
    for (uint64_t s = 0; s < 5; s++) {
        plain /= 4;
        ASSERT_EQ(plain, cg_warmup_ratio(&w, 1e-4f, s));
        ASSERT_EQ(plain > 0.01f ? plain : 0.01f, cg_warmup_ratio(&w, 0.01f, s));
        ASSERT_EQ(0.5f, cg_warmup_ratio(&w, 0.5f, s));
    }
    ASSERT_EQ(1e-4f, cg_warmup_ratio(&w, 1e-4f, 5));
    w.stages = 1000000; /* 1/4^s is long below everything */
    ASSERT_EQ(1e-30f, cg_warmup_ratio(&w, 1e-30f, 999999));
    ASSERT_EQ(1e-30f, cg_warmup_ratio(&w, 1e-30f, 70));
    PASS();
}
TEST warmup_linear_and_table(void) {
    static const float table[3] = { 0.5f, 0.02f, 0.3f };
    cg_warmup w = warmup_of(CG_WARMUP_LINEAR, 8, 2);
    float last = 2;
    for (uint64_t s = 0; s < 16; s++) {
        const double want = 1 - (1 - (double)0.01f) * (double)(s / 2 + 1) / 9;
        const float got = cg_warmup_ratio(&w, 0.01f, s);
        ASSERT_IN_RANGE(want, (double)got, 4 * ULP);
        ASSERT(s % 2 ? got == last : got < last);
        last = got;
    }
    ASSERT_EQ(0.01f, cg_warmup_ratio(&w, 0.01f, 16));
    w = warmup_of(CG_WARMUP_TABLE, 3, 10);
    w.table = table;
    for (uint64_t s = 0; s < 30; s++) ASSERT_EQ(table[s / 10], cg_warmup_ratio(&w, 0.1f, s));
    ASSERT_EQ(0.1f, cg_warmup_ratio(&w, 0.1f, 30));
    w = warmup_of(CG_WARMUP_NONE, 9, 9);
    ASSERT_EQ(0.1f, cg_warmup_ratio(&w, 0.1f, 0));
    PASS();
}
/* Every machine and compiler: ranks must keep equally many. Written down from a run, after warmup_power had agreed
   with pow(). */
TEST warmup_bits(void) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (uint32_t kind = CG_WARMUP_POWER; kind <= CG_WARMUP_LINEAR; kind++)
        for (uint32_t stages = 1; stages < 40; stages += 3) {
            const cg_warmup w = warmup_of(kind, stages, 1);
            for (size_t r = 0; r < sizeof ratios / sizeof *ratios; r++)
                for (uint64_t s = 0; s <= stages; s++) {
                    const float got = cg_warmup_ratio(&w, ratios[r], s);
                    uint32_t u;
                    memcpy(&u, &got, 4);
                    hash = (hash ^ u) * UINT64_C(0x100000001b3);
                }
        }
    ASSERT_EQ_FMT((unsigned long long)WARMUP_BITS, (unsigned long long)hash, "%llx");
    PASS();
}

/* ---- clipping, operators of a step, gain ---- */

static void fill(float *x, size_t n, double scale) {
    for (size_t i = 0; i < n; i++) x[i] = (float)(scale * uniform());
}
static double norm_of(const float *x, size_t n) {
    double s = 0;
    for (size_t i = 0; i < n; i++) s += (double)x[i] * (double)x[i];
    return sqrt(s);
}
/* A dense operator sends g as clipping left it; the rate comes after. */
TEST clips(uint32_t by, int workers, float clip, float rate) {
    const double at = (double)clip / sqrt(workers ? (double)workers : 1.0);
    cg_ef_desc d = desc_of(CG_EF_CLASSIC, cg_dense(), 777);
    state = 41;
    d.clip = clip;
    d.clip_by = by;
    d.workers = workers;
    d.rate = rate;
    ASSERT_EQ(CG_OK, team_open(crew, &d, 1));
    for (int s = 0; s < 20; s++) {
        const double scale = ldexp(1, s < 10 ? s - 8 : 6 * s - 70);
        double norm, factor;
        fill(crew->grad[0], d.n, scale);
        norm = norm_of(crew->grad[0], d.n);
        factor = norm > at ? at / norm : 1;
        ASSERT_EQ(CG_OK, team_step(crew, (uint64_t)s));
        for (size_t i = 0; i < d.n; i++) {
            const double g = (double)crew->grad[0][i];
            const double want = (double)rate * (by == CG_CLIP_VALUE ? (g > at ? at : g < -at ? -at : g) : factor * g);
            /* the root, two quotients and two products, each rounded once */
            ASSERT_IN_RANGE(want, (double)crew->mean[i], 5 * ULP * fabs(want));
        }
        if (by == CG_CLIP_NORM) {
            ASSERT_IN_RANGE(factor, (double)cg_ef_stats_of(&crew->ef[0]).clipped, 3 * ULP * factor);
            ASSERT((norm > at) == (cg_ef_stats_of(&crew->ef[0]).clipped < 1));
        } else {
            ASSERT_EQ(1.0f, cg_ef_stats_of(&crew->ef[0]).clipped);
        }
    }
    team_close(crew);
    PASS();
}

static int same_op(cg_op a, cg_op b) {
    char s[200], t[200];
    return cg_op_print(&a, s, sizeof s) == CG_OK && cg_op_print(&b, t, sizeof t) == CG_OK && !strcmp(s, t);
}
static cg_op sent_op(int r) {
    cg_info info;
    if (cg_inspect(crew->packet[r], crew->len[r], &info) != CG_OK) abort();
    return info.op;
}
TEST dense_then_warm(void) {
    cg_ef_desc d = desc_of(CG_EF_CLASSIC, cg_topk(0.01f), 1000);
    state = 43;
    d.dense_steps = 4;
    d.warmup = warmup_of(CG_WARMUP_QUARTERS, 3, 2);
    ASSERT_EQ(CG_OK, team_open(crew, &d, 1));
    for (uint64_t s = 0; s < 14; s++) {
        static const uint64_t want[] = { 250, 250, 63, 63, 16, 16, 10, 10, 10, 10 }; /* n/4^k to nearest, and 1 % */
        const cg_tag tag = tag_of(s, 0);
        const cg_op planned = cg_ef_op(&crew->ef[0], &tag);
        cg_info info;
        fill(crew->grad[0], d.n, 1);
        ASSERT_EQ(CG_OK, team_step(crew, s));
        ASSERT(same_op(planned, sent_op(0)));
        ASSERT_EQ(CG_OK, cg_inspect(crew->packet[0], crew->len[0], &info));
        if (s < 4) {
            ASSERT(same_op(cg_dense(), info.op));
            for (size_t i = 0; i < d.n; i++) ASSERT_EQ(crew->grad[0][i], crew->mean[i]);
        } else {
            ASSERT_EQ_FMT((unsigned long long)want[s - 4], (unsigned long long)info.k, "%llu");
        }
    }
    team_close(crew);
    PASS();
}
TEST small_ones_go_dense(void) {
    for (size_t n = 98; n < 102; n++) {
        cg_ef_desc d = desc_of(CG_EF_CLASSIC, cg_topk(0.1f), n);
        d.small = 100;
        ASSERT_EQ(CG_OK, team_open(crew, &d, 1));
        fill(crew->grad[0], n, 1);
        ASSERT_EQ(CG_OK, team_step(crew, 0));
        ASSERT(same_op(n < 100 ? cg_dense() : cg_topk(0.1f), sent_op(0)));
        team_close(crew);
    }
    PASS();
}
static cg_status op_of(const cg_ef_desc *d, uint32_t tensor, uint64_t step, cg_op *op) {
    cg_tag tag = tag_of(step, 0);
    cg_status s = team_open(crew, d, 1);
    tag.tensor = tensor;
    fill(crew->grad[0], d->n, 1);
    if (s == CG_OK) s = cg_ef_compress(&crew->ef[0], &tag, crew->grad[0], crew->packet[0], crew->cap, &crew->len[0]);
    if (s == CG_OK) *op = sent_op(0);
    if (s == CG_OK) s = cg_ef_commit(&crew->ef[0], crew->packet[0], crew->len[0], NULL);
    team_close(crew);
    return s;
}
TEST rules_in_turn(void) {
    static const char *const texts[4] = { "topk:0.1", "absmax:4:512", "efsign", "topk:0.3" };
    cg_ef_rule rule[4];
    memset(rule, 0, sizeof rule);
    for (int i = 0; i < 4; i++) rule[i].op = parsed(texts[i]);
    rule[0].first = 2;
    rule[0].last = 4;
    rule[0].n_from = 100;
    rule[1].first = 3;
    rule[1].last = 9;
    rule[2].first = 5;
    rule[2].last = 5; /* never: the second covers it */
    rule[3].first = 0;
    rule[3].last = UINT32_MAX;
    rule[3].n_from = 500;
    for (uint32_t tensor = 0; tensor < 12; tensor++)
        for (size_t n = 50; n < 600; n += 25) {
            cg_ef_desc d = desc_of(CG_EF_CLASSIC, cg_topk(0.2f), n);
            cg_op want = d.op, got;
            d.rules = rule;
            d.rule_count = 4;
            for (int i = 0; i < 4; i++)
                if (tensor >= rule[i].first && tensor <= rule[i].last && n >= rule[i].n_from) {
                    want = rule[i].op;
                    break;
                }
            ASSERT_EQ(CG_OK, op_of(&d, tensor, 0, &got));
            ASSERT(same_op(want, got));
        }
    PASS();
}
static struct {
    int calls;
    uint32_t tensor;
    uint64_t step;
    size_t n;
    cg_op planned, answer;
} asked;
static cg_op ask(void *user, const cg_tag *tag, size_t n, cg_op planned) {
    *(int *)user += 1;
    asked.calls++;
    asked.tensor = tag->tensor;
    asked.step = tag->step;
    asked.n = n;
    asked.planned = planned;
    return asked.answer;
}
TEST policy_has_the_last_word(void) {
    cg_ef_rule rule;
    cg_ef_desc d = desc_of(CG_EF_CLASSIC, cg_topk(0.2f), 300);
    cg_op got;
    int user = 0;
    memset(&rule, 0, sizeof rule);
    rule.first = rule.last = 6;
    rule.op = cg_topk(0.05f);
    d.rules = &rule;
    d.rule_count = 1;
    d.policy = ask;
    d.policy_user = &user;
    asked.calls = 0;
    asked.answer = cg_topk(0.07f);
    ASSERT_EQ(CG_OK, op_of(&d, 5, 3, &got));
    ASSERT(asked.calls > 0 && user == asked.calls && asked.tensor == 5 && asked.step == 3 && asked.n == 300);
    ASSERT(same_op(cg_topk(0.2f), asked.planned));
    ASSERT(same_op(asked.answer, got));
    asked.answer = cg_efsign();
    ASSERT_EQ(CG_OK, op_of(&d, 6, 3, &got));
    ASSERT(same_op(rule.op, asked.planned));
    ASSERT(same_op(asked.answer, got));
    d.warmup = warmup_of(CG_WARMUP_QUARTERS, 1, 10); /* the ratio is not its word */
    asked.answer = cg_topk(0.07f);
    ASSERT_EQ(CG_OK, op_of(&d, 6, 3, &got));
    ASSERT(same_op(cg_topk(0.25f), got));
    ASSERT_EQ(CG_OK, op_of(&d, 6, 10, &got));
    ASSERT(same_op(asked.answer, got));
    asked.calls = 0;
    d.small = 301; /* always dense, and nobody is asked */
    ASSERT_EQ(CG_OK, op_of(&d, 6, 3, &got));
    ASSERT(same_op(cg_dense(), got) && !asked.calls);
    PASS();
}
/* Another operator in every step, some of them divided: what is kept changes its scale with them, and nothing is
   lost. */
static cg_ef_rule turns[5];
static cg_op in_turn(void *user, const cg_tag *tag, size_t n, cg_op planned) {
    (void)user;
    (void)n;
    (void)planned;
    return turns[tag->step * 3 % 5].op;
}
TEST operators_in_turn(void) {
    static const char *const texts[5] = { "topk:0.1", "qsgd:1", "efsign", "terngrad", "randk:0.2" };
    static double sum[LONG];
    static float e[LONG], out[LONG];
    cg_ef_desc d = desc_of(CG_EF_CLASSIC, cg_topk(0.1f), 500);
    double reach = 0;
    state = 67;
    memset(turns, 0, sizeof turns);
    memset(sum, 0, sizeof sum);
    /* never apply, but room is made */
    for (int i = 0; i < 5; i++) {
        turns[i].op = parsed(texts[i]);
        turns[i].first = turns[i].last = 99;
    }
    d.rules = turns;
    d.rule_count = 5;
    d.policy = in_turn;
    ASSERT_EQ(CG_OK, team_open(crew, &d, 1));
    for (uint64_t s = 0; s < 200; s++) {
        fill(crew->grad[0], d.n, 1);
        ASSERT_EQ(CG_OK, team_step(crew, s));
        ASSERT_EQ(CG_OK, cg_decompress(crew->packet[0], crew->len[0], out, d.n));
        ASSERT_EQ(CG_OK, cg_ef_read(&crew->ef[0], CG_EF_ERROR, e, d.n));
        for (size_t i = 0; i < d.n; i++) {
            const double scale = (double)cg_ef_scale(&crew->ef[0]);
            sum[i] += (double)crew->grad[0][i] - (double)out[i];
            reach = fmax(reach, fmax(fabs((double)e[i] / scale), fabs((double)out[i])) + 1);
            /* in a step the scale (as a float, and its product), g times scale, the sum, D times scale and the
               difference: six roundings */
            ASSERT_IN_RANGE(sum[i], (double)e[i] / scale, 6 * (double)(s + 1) * reach * ULP);
        }
    }
    team_close(crew);
    PASS();
}
/* |p|^2 and |D|^2 by plain sums of doubles in another order. p = g + e to the last bit, unless the operator is
   divided: then four roundings of values up to ten times the usual are possible, 2 * 4 * 10 * 2^-24. */
TEST gain_is(const char *text, double slack) {
    static float e[LONG], p[LONG], out[LONG];
    cg_ef_desc d = desc_of(CG_EF_CLASSIC, parsed(text), 1000);
    state = 47;
    ASSERT_EQ(CG_OK, team_open(crew, &d, 1));
    memset(e, 0, sizeof e);
    for (uint64_t s = 0; s < 30; s++) {
        double put = 0, sent = 0;
        cg_ef_stats stats;
        for (size_t i = 0; i < d.n; i++) crew->grad[0][i] = (float)floor(uniform() * 512) / 64;
        if (s == 17) memset(crew->grad[0], 0, sizeof crew->grad[0]);
        for (size_t i = 0; i < d.n; i++) p[i] = crew->grad[0][i] + e[i] / cg_ef_scale(&crew->ef[0]);
        ASSERT_EQ(CG_OK, team_step(crew, s));
        ASSERT_EQ(CG_OK, cg_decompress(crew->packet[0], crew->len[0], out, d.n));
        for (size_t i = 0; i < d.n; i++) {
            put += (double)p[i] * (double)p[i];
            sent += (double)out[i] * (double)out[i];
        }
        stats = cg_ef_stats_of(&crew->ef[0]);
        ASSERT_IN_RANGE(put, stats.put, slack * put);
        ASSERT_IN_RANGE(sent, stats.sent, slack * sent);
        ASSERT_IN_RANGE(sent / put, (double)stats.gain, (2 * slack + ULP) * sent / put);
        ASSERT_EQ(CG_OK, cg_ef_read(&crew->ef[0], CG_EF_ERROR, e, d.n));
    }
    team_close(crew);
    PASS();
}
TEST gain_of_nothing(void) {
    cg_ef_desc d = desc_of(CG_EF_CLASSIC, cg_topk(0.1f), 100);
    ASSERT_EQ(CG_OK, team_open(crew, &d, 1));
    ASSERT_EQ(CG_OK, team_step(crew, 0));
    ASSERT_EQ(0.0f, cg_ef_stats_of(&crew->ef[0]).gain);
    ASSERT_EQ(0.0, cg_ef_stats_of(&crew->ef[0]).put);
    team_close(crew);
    PASS();
}

/* ---- compositions, 50 steps against plain loops ---- */

enum { CHUNK = 64 };
static void largest_of_chunk(const double *v, size_t k, int *kept) {
    for (size_t i = 0; i < CHUNK; i++) kept[i] = 0;
    while (k--) {
        size_t at = CHUNK;
        for (size_t i = 0; i < CHUNK; i++)
            if (!kept[i] && (at == CHUNK || fabs(v[i]) > fabs(v[at]))) at = i;
        kept[at] = 1;
    }
}
static void dct(const double *x, double *f, int back) {
    const double pi = 3.14159265358979323846;
    for (int a = 0; a < CHUNK; a++) {
        f[a] = 0;
        for (int b = 0; b < CHUNK; b++) {
            const int k = back ? b : a, i = back ? a : b;
            f[a] += x[b] * cos(pi * (i + 0.5) * k / CHUNK) * sqrt((k ? 2.0 : 1.0) / CHUNK);
        }
    }
}
/* DeMo (Peng 24): m = .999 m + g; of each 64 frequencies of m the largest go, and leave m; each frequency's mean
   over who sent it. */
static void plain_demo(const road *w, size_t k, double (*m)[LONG], double (*result)[LONG]) {
    for (int s = 0; s < w->steps; s++) {
        for (int r = 0; r < w->size; r++)
            for (size_t i = 0; i < w->ef.n; i++) m[r][i] = 0.999 * m[r][i] + (double)w->grad[s][r][i];
        for (size_t c = 0; c < w->ef.n; c += CHUNK) {
            double f[CHUNK], sum[CHUNK] = { 0 }, out[CHUNK];
            int kept[CHUNK], many[CHUNK] = { 0 };
            for (int r = 0; r < w->size; r++) {
                dct(m[r] + c, f, 0);
                largest_of_chunk(f, k, kept);
                for (size_t i = 0; i < CHUNK; i++) {
                    if (!kept[i]) f[i] = 0;
                    sum[i] += f[i];
                    many[i] += kept[i];
                }
                dct(f, out, 1);
                for (size_t i = 0; i < CHUNK; i++) m[r][c + i] -= out[i];
            }
            for (size_t i = 0; i < CHUNK; i++)
                if (many[i]) sum[i] /= many[i];
            dct(sum, result[s] + c, 1);
        }
    }
}
/* SparseLoCo: e = .95 e + D; the largest of every 64 go as -1, 0 or 1 times the largest of them (two bits,
   nearest), the mean is taken. */
static void plain_sparseloco(const road *w, size_t k, double (*e)[LONG], double (*result)[LONG]) {
    for (int s = 0; s < w->steps; s++) {
        for (size_t i = 0; i < w->ef.n; i++) result[s][i] = 0;
        for (int r = 0; r < w->size; r++) {
            for (size_t i = 0; i < w->ef.n; i++) e[r][i] = 0.95 * e[r][i] + (double)w->grad[s][r][i];
            for (size_t c = 0; c < w->ef.n; c += CHUNK) {
                int kept[CHUNK];
                double top = 0;
                largest_of_chunk(e[r] + c, k, kept);
                for (size_t i = 0; i < CHUNK; i++) top = fmax(top, fabs(e[r][c + i]));
                for (size_t i = 0; i < CHUNK; i++) {
                    const double v = e[r][c + i], q = !kept[i] || fabs(v) < top / 2 ? 0 : v > 0 ? top : -top;
                    e[r][c + i] -= q;
                    result[s][c + i] += q / w->size;
                }
            }
        }
    }
}
static double plain_error[MOST][LONG], plain_result[ROAD_STEPS][LONG];
static void compose(cg_op op, float decay, uint32_t fold, size_t n) {
    memset(way, 0, sizeof *way);
    memset(plain_error, 0, sizeof plain_error);
    state = 53;
    way->ef = desc_of(CG_EF_CLASSIC, op, n);
    way->ef.decay = decay;
    way->exchange.fold = fold;
    way->size = 3;
    way->steps = ROAD_STEPS;
    for (int s = 0; s < ROAD_STEPS; s++)
        for (int r = 0; r < way->size; r++) fill(way->grad[s][r], n, 1);
}
static double farthest(void) {
    double most = 0;
    for (size_t i = 0; i < way->ef.n; i++) {
        for (int s = 0; s < way->steps; s++) most = fmax(most, fabs((double)way->result[s][i] - plain_result[s][i]));
        for (int r = 0; r < way->size; r++) most = fmax(most, fabs((double)way->error[r][i] - plain_error[r][i]));
    }
    return most;
}
static double reach_of(const double (*v)[LONG], int rows, size_t n) {
    double most = 0;
    for (int r = 0; r < rows; r++)
        for (size_t i = 0; i < n; i++) most = fmax(most, fabs(v[r][i]));
    return most;
}
TEST demo_in_full(void) {
    double reach;
    compose(cg_demo_dct(0.125f), 0.999f, CG_FOLD_CONTRIBUTORS, 3 * CHUNK);
    ASSERT_EQ(0, travel(way));
    plain_demo(way, 8, plain_error, plain_result);
    reach = fmax(reach_of((const double(*)[LONG])plain_error, 3, way->ef.n),
        reach_of((const double(*)[LONG])plain_result, ROAD_STEPS, way->ef.n));
    printf("    DeMo: %.2g away after 50 steps (values to %.3g)\n", farthest(), reach);
    /* a step rounds the sum, what is sent and what is left (3), and 2 transforms of 12 roundings of values up to 8
       times as large; they stay */
    ASSERT(farthest() <= 50 * (3 + 2 * 12 * 8) * reach * ULP);
    PASS();
}
TEST sparseloco_in_full(void) {
    double reach;
    compose(cg_then(cg_chunked(0.125f, CHUNK), cg_nearest(cg_absmax(2, 8))), 0.95f, CG_FOLD_MEAN, 5 * CHUNK);
    ASSERT_EQ(0, travel(way));
    plain_sparseloco(way, 8, plain_error, plain_result);
    reach = fmax(reach_of((const double(*)[LONG])plain_error, 3, way->ef.n),
        reach_of((const double(*)[LONG])plain_result, ROAD_STEPS, way->ef.n));
    printf("    SparseLoCo: %.2g away after 50 steps (values to %.3g)\n", farthest(), reach);
    /* a product, two sums and the scale in each step (4), which fade by .95: 20 steps' worth; the mean adds three
       of them */
    ASSERT(farthest() <= 20 * 4 * 3 * reach * ULP);
    PASS();
}

static double largest(const double *v, size_t n) {
    double most = 0;
    for (size_t i = 0; i < n; i++) most = fmax(most, fabs(v[i]));
    return most;
}
/* The same with rounding at random, as published: which is sent cannot be foretold, but what it may be, and what
   then stays. With 8 values to a scale (w = .91) it is sent as it is; with all 40 (w = 2.7) divided by 1 + w, and
   so is what is kept. */
TEST sparseloco_at_random(uint32_t bucket, double w) {
    static double e[LONG];
    static float out[LONG], left[LONG];
    const double scale = w < 1 ? 1 : 1 / (1 + w);
    cg_ef_desc d = desc_of(CG_EF_CLASSIC, cg_then(cg_chunked(0.125f, CHUNK), cg_absmax(2, bucket)), 5 * CHUNK);
    double most = 0;
    state = 61;
    d.decay = 0.95f;
    memset(e, 0, sizeof e);
    ASSERT_EQ(CG_OK, team_open(crew, &d, 1));
    for (uint64_t s = 0; s < 50; s++) {
        double top, floats;
        fill(crew->grad[0], d.n, 1);
        for (size_t i = 0; i < d.n; i++) e[i] = 0.95 * e[i] + (double)crew->grad[0][i];
        top = largest(e, d.n);
        most = fmax(most, top);
        /* a product, two sums, the scale and what is sent in every step; they fade */
        floats = 20 * 5 * most * ULP;
        ASSERT_EQ(CG_OK, team_step(crew, s));
        ASSERT_EQ(CG_OK, cg_decompress(crew->packet[0], crew->len[0], out, d.n));
        ASSERT_EQ(CG_OK, cg_ef_read(&crew->ef[0], CG_EF_ERROR, left, d.n));
        ASSERT_IN_RANGE(scale, (double)cg_ef_scale(&crew->ef[0]), ULP);
        for (size_t c = 0; c < d.n; c += CHUNK) {
            int kept[CHUNK];
            largest_of_chunk(e + c, 8, kept);
            if (bucket == 8) top = largest(e + c, CHUNK); /* of this chunk; else of all */
            for (size_t i = 0; i < CHUNK; i++) {
                const double q = (double)out[c + i];
                ASSERT(kept[i] || q == 0);
                ASSERT(q == 0 || (q > 0) == (e[c + i] > 0));
                if (q != 0) ASSERT_IN_RANGE(scale * top, fabs(q), floats);
                e[c + i] -= q;
                ASSERT_IN_RANGE(e[c + i], (double)left[c + i] / scale, floats / scale);
            }
        }
    }
    team_close(crew);
    PASS();
}

TEST preconditions(void) {
    static float m[LONG], v[LONG], out[LONG], in_place[LONG];
    for (size_t n = 0; n <= 1003; n = n < 40 ? n + 1 : n + 107) {
        double sum = 0, got;
        state = 59 + n;
        fill(m, n, 3);
        for (size_t i = 0; i < n; i++) v[i] = i % 5 == 2 ? 0.0f : (float)exp(20 * uniform());
        if (n > 3) v[3] = -0.0f;
        got = cg_ef_precondition(m, v, 1e-3f, out, n);
        for (size_t i = 0; i < n; i++) {
            const double want = v[i] == 0.0f ? 0 : (double)m[i] / (sqrt((double)v[i]) + (double)1e-3f);
            /* a root, a sum, a quotient, each rounded */
            ASSERT_IN_RANGE(want, (double)out[i], 4 * ULP * fabs(want));
            if (v[i] == 0.0f) ASSERT_EQ(0.0f, out[i]);
            sum += (double)out[i] * (double)out[i];
        }
        ASSERT_IN_RANGE(sqrt(sum), got, 1e-12 * sqrt(sum));
        memcpy(in_place, m, sizeof m);
        ASSERT_EQ(got, cg_ef_precondition(in_place, v, 1e-3f, in_place, n));
        ASSERT_EQ(0, memcmp(out, in_place, 4 * n));
    }
    v[0] = 0;
    m[0] = 1;
    ASSERT_EQ(0.0, cg_ef_precondition(m, v, 0, out, 1)); /* not 1/0, whatever epsilon is */
    ASSERT_EQ(0.0f, out[0]);
    PASS();
}

SUITE(theory) {
    RUN_TEST(topk_needs_memory);
    RUN_TEST(sign_on_a_line);
    RUN_TEST(sign_in_a_plane);
    RUN_TEST(ef21_on_a_triangle);
    RUN_TEST(diana_forgets_noise);
    RUN_TEST(laq_is_mostly_silent);
    RUN_TEST(power_iteration_goes_on);
    RUN_TEST(one_bit_adam);
    RUN_TESTp(expanding_operators, "randk:0.01", 99.0, 1, 1.0);
    RUN_TESTp(expanding_operators, "qsgd:1", sqrt(1000.0), 1, 1 + sqrt(1000.0));
    RUN_TESTp(expanding_operators, "terngrad", (sqrt(1000.0) - 1) / 2, 0, (sqrt(1000.0) + 1) / 2);
    RUN_TESTp(expanding_operators, "permk:4", 3.0, 1, 1.0);
}
SUITE(around) {
    RUN_TEST(warmup_power);
    RUN_TEST(warmup_quarters);
    RUN_TEST(warmup_linear_and_table);
    RUN_TEST(warmup_bits);
    for (int by = CG_CLIP_NORM; by <= CG_CLIP_VALUE; by++) {
        RUN_TESTp(clips, (uint32_t)by, 0, 1.0f, 1.0f);
        RUN_TESTp(clips, (uint32_t)by, 7, 3.5f, 0.3f);
        RUN_TESTp(clips, (uint32_t)by, 64, 0.25f, 2.0f);
    }
    RUN_TEST(dense_then_warm);
    RUN_TEST(small_ones_go_dense);
    RUN_TEST(rules_in_turn);
    RUN_TEST(policy_has_the_last_word);
    RUN_TEST(operators_in_turn);
    RUN_TESTp(gain_is, "topk:0.05", 1e-12);
    RUN_TESTp(gain_is, "absmax:4:512", 1e-12);
    RUN_TESTp(gain_is, "efsign", 1e-12);
    RUN_TESTp(gain_is, "qsgd:1", 5e-6);
    RUN_TESTp(gain_is, "terngrad", 5e-6);
    RUN_TESTp(gain_is, "randk:0.1", 1e-12);
    RUN_TEST(gain_of_nothing);
    RUN_TEST(demo_in_full);
    RUN_TEST(sparseloco_in_full);
    RUN_TESTp(sparseloco_at_random, 8, (sqrt(8.0) - 1) / 2);
    RUN_TESTp(sparseloco_at_random, 256, (sqrt(40.0) - 1) / 2);
    RUN_TEST(preconditions);
}

GREATEST_MAIN_DEFS();
int main(int argc, char **argv) {
    GREATEST_MAIN_BEGIN();
    quick = !long_test();
    crew = (team *)calloc(1, sizeof *crew);
    way = (road *)calloc(1, sizeof *way);
    if (!crew || !way) return 1;
    RUN_SUITE(theory);
    RUN_SUITE(around);
    team_close(crew);
    free(crew);
    free(way);
    GREATEST_MAIN_END();
}
