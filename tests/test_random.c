/* Randomness: what is called unbiased is, with the variance it should have; noise is private, samples are
   shared. All keys are fixed, so a test that passes once passes always. Each test also runs on something that
   must fail it (nearest rounding, one key for ever), so that it is known to be able to fail.

   Estimates are judged by the declared variance and through fixed +-1 projections: the sample variance of a
   single value is 0 where it was never drawn. */
#define COMPGRAD_IMPLEMENTATION
#include "compgrad.h"
#include "ref.h"
#include "ops.h"
#include "greatest.h"

enum { N = 160, KEYS = 3000, PROJECTIONS = 8, BUCKET = 32 };
static const double SIGMAS = 4.5; /* 7e-6 per comparison, a few thousand comparisons */
static char note[200];

typedef enum vary { BY_STEP, BY_SEED, BY_TENSOR, BY_RANK, BY_NOTHING } vary;

static cg_tag key(vary how, int t) {
    cg_tag tag = { 7, 8, 9, 10 };
    if (how == BY_STEP) tag.step = (uint64_t)t;
    if (how == BY_SEED) tag.seed = (uint64_t)t;
    if (how == BY_TENSOR) tag.tensor = (uint32_t)t;
    if (how == BY_RANK) tag.rank = (uint32_t)t;
    return tag;
}

/* Vectors whose every part matters to the estimate; the library's own kinds have values too small to be drawn. */
static void vector(int kind, float *x) {
    uint64_t state = 17;
    int i;
    for (i = 0; i < N; i++) {
        double g = ref_normal(&state), s = ref_rand(&state) & 1 ? 1.0 : -1.0;
        x[i] = (float)(kind == 0 ? g
                : kind == 1      ? -log(ref_uniform(&state)) * s
                : kind == 2      ? (i == 40 ? 8.0 : 0.4 * g)
                                 : 0.7);
    }
}

static void round_trip(const cg_op *op, const cg_tag *tag, const float *x, size_t n, float *y) {
    ops_packet pk = ops_pack(op, tag, x, n);
    if (pk.status != CG_OK || cg_decompress(pk.p, pk.len, y, n) != CG_OK) {
        fprintf(stderr, "%s: %s\n", ops_text(op), ops_status((int)pk.status));
        exit(2);
    }
    free(pk.p);
}

/* sum of the variances of the decoded values, from the definition; -1: not known in closed form */
static double declared(const cg_op *op, const float *x) {
    double sum = 0.0;
    int i, j, bucket = op->quantize.id == CG_QUANTIZE_TERNGRAD ? N : (int)op->quantize.size;
    int bits = op->quantize.id == CG_QUANTIZE_TERNGRAD ? 2 : op->quantize.arg;
    if (op->sample.id && (op->quantize.id || op->select.id)) return -1.0;
    if (op->sample.id) {
        uint64_t k = ref_count(op->sample.value, 0, N), s, start, len;
        for (s = 0; s < k; s++)
            for (ref_stratum(N, k, s, &start, &len), j = (int)start; j < (int)(start + len); j++)
                sum += (double)x[j] * (double)x[j] * ((double)len - 1.0);
        return sum;
    }
    for (i = 0; i < N; i += bucket) {
        double lo = (double)x[i], hi = lo, step;
        int end = i + bucket < N ? i + bucket : N;
        for (j = i; j < end; j++) {
            if ((double)x[j] < lo) lo = (double)x[j];
            if ((double)x[j] > hi) hi = (double)x[j];
        }
        if (op->quantize.id != CG_QUANTIZE_MINMAX) {
            hi = fmax(-lo, hi);
            lo = -hi;
        }
        step = op->quantize.id != CG_QUANTIZE_MINMAX && bits > 1 ? hi / ((1 << (bits - 1)) - 1)
                                                                 : (hi - lo) / ((1 << bits) - 1);
        if (hi == lo) continue;
        for (j = i; j < end; j++) {
            double t = op->quantize.id != CG_QUANTIZE_MINMAX && bits > 1 ? (double)x[j] / step
                                                                         : ((double)x[j] - lo) / step;
            double p = t - floor(t);
            sum += p * (1.0 - p) * step * step;
        }
    }
    return sum;
}

typedef struct outcome {
    double z, error, error_declared, spread;
} outcome;

/* z: the farthest projection of the mean from the truth in standard errors; error: mean |D - x|^2;
   spread: the largest of |sample / declared variance - 1| over projections. */
static outcome measure(const cg_op *op, const float *x, vary how) {
    static float y[N];
    double sum[PROJECTIONS] = { 0 }, sq[PROJECTIONS] = { 0 }, truth[PROJECTIONS] = { 0 }, norm1 = 0;
    signed char r[PROJECTIONS][N];
    uint64_t state = 99;
    outcome o = { 0, 0, 0, 0 };
    int t, p, i;
    for (p = 0; p < PROJECTIONS; p++)
        for (i = 0; i < N; i++) {
            r[p][i] = ref_rand(&state) & 1 ? 1 : -1;
            truth[p] += r[p][i] * (double)x[i];
        }
    for (i = 0; i < N; i++) norm1 += fabs((double)x[i]);
    for (t = 0; t < KEYS; t++) {
        cg_tag tag = key(how, t);
        round_trip(op, &tag, x, N, y);
        for (i = 0; i < N; i++) o.error += ((double)y[i] - (double)x[i]) * ((double)y[i] - (double)x[i]) / KEYS;
        for (p = 0; p < PROJECTIONS; p++) {
            double z = -truth[p];
            for (i = 0; i < N; i++) z += r[p][i] * (double)y[i];
            sum[p] += z / KEYS;
            sq[p] += z * z / KEYS;
        }
    }
    o.error_declared = declared(op, x);
    for (p = 0; p < PROJECTIONS; p++) {
        double var = o.error_declared >= 0.0 ? o.error_declared : sq[p] - sum[p] * sum[p];
        double z = fabs(sum[p]) / (sqrt(var / KEYS) + 1e-6 * norm1),
               s = var > 0 ? fabs((sq[p] - sum[p] * sum[p]) / var - 1.0) : 0;
        if (z > o.z) o.z = z;
        if (s > o.spread) o.spread = s;
    }
    return o;
}

#define SAY(o)                                                                                                       \
  (snprintf(note, sizeof note, "%s, vector %d: z %.2f, error %.4g (declared %.4g), spread %.3f", ops_text(op), kind, \
       (o).z, (o).error, (o).error_declared, (o).spread),                                                            \
      note)

TEST unbiased(const cg_op *op, int kind, vary how) {
    float x[N];
    outcome o;
    vector(kind, x);
    o = measure(op, x, how);
    ASSERTm(SAY(o), o.z < SIGMAS);
    if (o.error_declared >= 1e-9) {
        ASSERTm(SAY(o), fabs(o.error - o.error_declared) <= 0.15 * o.error_declared);
        ASSERTm(SAY(o), o.spread < 0.25);
    } else if (o.error_declared >= 0.0) { /* a level exactly, yet one draw in a million falls on the tie */
        ASSERTm(SAY(o), o.error < 1e-3);
    }
    PASS();
}

/* The control: what is known to be biased must be seen to be. */
TEST seen_to_be_biased(const cg_op *op, int kind, vary how) {
    float x[N];
    outcome o;
    vector(kind, x);
    o = measure(op, x, how);
    ASSERTm(SAY(o), o.z > 2 * SIGMAS);
    PASS();
}

/* Every value of a scaled random-k has its own mean: the draw is even within each stratum. */
TEST each_value_is_drawn_evenly(float ratio) {
    cg_op scaled = cg_randk(ratio), *op = &scaled;
    double sum[N] = { 0 };
    float x[N], y[N];
    uint64_t k = ref_count(ratio, 0, N), s, start, len, i;
    int t;
    for (i = 0; i < N; i++) x[i] = 1.0f;
    for (t = 0; t < KEYS; t++) {
        cg_tag tag = key(BY_STEP, t);
        round_trip(op, &tag, x, N, y);
        for (i = 0; i < N; i++) sum[i] += (double)y[i] / KEYS;
    }
    for (s = 0; s < k; s++)
        for (ref_stratum(N, k, s, &start, &len), i = start; i < start + len; i++) {
            double z = fabs(sum[i] - 1.0) / (sqrt(((double)len - 1.0) / KEYS) + 1e-9);
            snprintf(note, sizeof note, "randk:%g value %d: z %.2f", (double)ratio, (int)i, z);
            ASSERTm(note, z < SIGMAS);
        }
    PASS();
}

/* E|x - C(x)|^2 = (1 - k/n)|x|^2 for the unscaled sample with equal strata; the scaled one expands. */
TEST unscaled_contracts(int kind) {
    cg_op scaled = cg_randk(0.125f), plain = cg_unscaled(scaled);
    float x[N];
    double norm = 0.0;
    int i;
    vector(kind, x);
    for (i = 0; i < N; i++) norm += (double)x[i] * (double)x[i];
    ASSERT_IN_RANGE(0.875, measure(&plain, x, BY_STEP).error / norm, 0.03);
    ASSERT(measure(&scaled, x, BY_STEP).error / norm > 3.0);
    PASS();
}

/* ---- who shares what ---- */

enum { LONG = 131072 + 1000 };
static float ones[LONG];

/* Correlation of the rounding errors of two tags, the second shifted by lag. */
static double correlation(const cg_tag *a, const cg_tag *b, size_t lag) {
    static float ya[LONG], yb[LONG];
    cg_op op = cg_absmax(2, LONG);
    double sab = 0, saa = 0, sbb = 0;
    size_t i;
    round_trip(&op, a, ones, LONG, ya);
    round_trip(&op, b, ones, LONG, yb);
    for (i = 1; i + lag < LONG; i++) {
        double ea = (double)ya[i] - (double)ones[i], eb = (double)yb[i + lag] - (double)ones[i + lag];
        sab += ea * eb;
        saa += ea * ea;
        sbb += eb * eb;
    }
    return sab / sqrt(saa * sbb);
}

TEST noise_is_private(void) {
    static const size_t lags[] = { 1, 2, 4, 7, 8, 9, 16, 24, 32, 64, 256, 2048, 32768, 65536, 65544 };
    cg_tag a = key(BY_NOTHING, 0), b;
    double limit = SIGMAS / sqrt((double)LONG / 2);
    size_t i;
    int how, d;
    ones[0] = 1.0f; /* the scale; the others round to 0 or 1 */
    for (i = 1; i < LONG; i++) ones[i] = 0.25f;
    for (how = BY_STEP; how <= BY_RANK; how++)
        for (d = 0; d < 4; d++) {
            b = key((vary)how, 11 + d);
            ASSERT_IN_RANGE(0.0, correlation(&a, &b, 0), limit);
        }
    for (i = 0; i < sizeof lags / sizeof *lags; i++) ASSERT_IN_RANGE(0.0, correlation(&a, &a, lags[i]), limit);
    ASSERT_IN_RANGE(1.0, correlation(&a, &a, 0), 1e-9); /* the control */
    PASS();
}

TEST sample_is_shared(void) {
    enum { M = 1000 };
    cg_op op = cg_then(cg_randk(0.1f), cg_f16());
    float x[M], y[6][M];
    cg_tag tags[6];
    int i, t, same[6] = { 0 };
    for (i = 0; i < M; i++) x[i] = 1.0f;
    for (t = 0; t < 6; t++) tags[t] = key(BY_NOTHING, 0);
    tags[1].rank = 11;
    tags[2].rank = UINT32_MAX;
    tags[3].step++;
    tags[4].tensor++;
    tags[5].seed++;
    for (t = 0; t < 6; t++) {
        round_trip(&op, &tags[t], x, M, y[t]);
        for (i = 0; i < M; i++) same[t] += y[0][i] != 0.0f && y[t][i] != 0.0f;
    }
    ASSERT_EQ_FMT(100, same[1], "%d");
    ASSERT_EQ_FMT(100, same[2], "%d");
    for (t = 3; t < 6; t++) ASSERT_IN_RANGE(10.0, (double)same[t], 13.5); /* 10 by chance, sd 3 */
    PASS();
}

SUITE(estimates) {
    int kind, bits;
    cg_op op;
    for (kind = 0; kind < 4; kind++) {
        for (bits = 1; bits <= 8; bits++) {
            op = cg_absmax(bits, BUCKET);
            RUN_TESTp(unbiased, &op, kind, BY_STEP);
            op = cg_minmax(bits, BUCKET);
            RUN_TESTp(unbiased, &op, kind, BY_STEP);
        }
        op = cg_terngrad();
        RUN_TESTp(unbiased, &op, kind, BY_RANK);
        op = cg_randk(0.1f);
        RUN_TESTp(unbiased, &op, kind, BY_SEED);
        op = cg_randk(0.33f);
        RUN_TESTp(unbiased, &op, kind, BY_TENSOR);
        op = cg_then(cg_randk(0.2f), cg_absmax(2, 8));
        RUN_TESTp(unbiased, &op, kind, BY_STEP);
        op = cg_then(cg_randk(0.5f), cg_absmax(4, 16));
        RUN_TESTp(unbiased, &op, kind, BY_SEED);
        op = cg_then(cg_randk(0.5f), cg_minmax(3, 7));
        RUN_TESTp(unbiased, &op, kind, BY_STEP);
        op = cg_then(cg_randk(0.5f), cg_terngrad());
        RUN_TESTp(unbiased, &op, kind, BY_STEP);
        RUN_TEST1(unscaled_contracts, kind);
    }
    op = cg_absmax(3, BUCKET);
    for (kind = BY_STEP; kind <= BY_RANK; kind++) RUN_TESTp(unbiased, &op, 0, (vary)kind);
    RUN_TEST1(each_value_is_drawn_evenly, 0.125f);
    RUN_TEST1(each_value_is_drawn_evenly, 0.3f);
}

SUITE(controls) {
    int bits;
    cg_op op;
    for (bits = 1; bits <= 8; bits++) {
        op = cg_nearest(cg_absmax(bits, BUCKET));
        RUN_TESTp(seen_to_be_biased, &op, 0, BY_STEP);
        op = cg_nearest(cg_minmax(bits, BUCKET));
        RUN_TESTp(seen_to_be_biased, &op, 1, BY_STEP);
        op = cg_absmax(bits, BUCKET);
        RUN_TESTp(seen_to_be_biased, &op, 0, BY_NOTHING);
    }
    op = cg_nearest(cg_terngrad());
    RUN_TESTp(seen_to_be_biased, &op, 0, BY_STEP);
    op = cg_unscaled(cg_randk(0.33f));
    RUN_TESTp(seen_to_be_biased, &op, 3, BY_STEP);
    op = cg_randk(0.1f);
    RUN_TESTp(seen_to_be_biased, &op, 3, BY_RANK); /* shared: the rank must not matter */
}

SUITE(sharing) {
    RUN_TEST(noise_is_private);
    RUN_TEST(sample_is_shared);
}

GREATEST_MAIN_DEFS();

int main(int argc, char **argv) {
    GREATEST_MAIN_BEGIN();
    RUN_SUITE(estimates);
    RUN_SUITE(controls);
    RUN_SUITE(sharing);
    GREATEST_MAIN_END();
}
