/* The unbiased operators that go without a memory, at equal bytes, on gradients and differences of models as they come
   from a training: how far the mean of 2, 4 and 8 ranks is from the mean of what they had. Where every rank draws for
   itself the error falls as 1/W; where all draw the same it falls no further than their vectors differ. The table is
   printed by -v. */
#include "bench/data.h"
#include "greatest.h"
#include "bench/net.h"
#include "compgrad_ef.h"
#include "tier.h"

enum { RANKS = 8, BATCH = 8, STEPS = 12, MOST = 200000 };
static data_set data;
static net model;
static float *vectors[2][RANKS]; /* gradients; differences of models that AdamW has moved */
static const char *const names[2] = { "gradients", "differences" };

/* Every rank steps its own model by its own AdamW; after every step but the last the mean is common. */
static int make_vectors(void) {
    const size_t n = model.n;
    static float m[RANKS][MOST], v[RANKS][MOST], base[MOST];
    float *mem = (float *)malloc(net_memory(&model, BATCH) * sizeof *mem);
    uint64_t state = 5;
    if (n > MOST || !mem) return 1;
    net_start(&model, 3, base);
    for (int r = 0; r < RANKS; r++)
        for (int k = 0; k < 2; k++)
            if (!(vectors[k][r] = (float *)malloc(n * sizeof(float)))) return 1;
    for (uint64_t step = 0; step < STEPS; step++) {
        for (int r = 0; r < RANKS; r++) {
            const uint8_t *images[BATCH];
            uint8_t labels[BATCH];
            for (int b = 0; b < BATCH; b++) {
                size_t i;
                state = state * 6364136223846793005u + 1442695040888963407u;
                i = (size_t)(state >> 33) % data.train.count;
                images[b] = data.train.images + i * (size_t)(data.height * data.width);
                labels[b] = data.train.labels[i];
            }
            memcpy(vectors[1][r], base, 4 * n);
            net_gradient(&model, base, images, labels, BATCH, vectors[0][r], mem);
            net_adamw(&model, vectors[1][r], m[r], v[r], vectors[0][r], step, .003f);
            for (size_t i = 0; i < n; i++) vectors[1][r][i] -= base[i];
        }
        for (int r = 0; r < RANKS && step + 1 < STEPS; r++)
            for (size_t i = 0; i < n; i++) base[i] += vectors[1][r][i] / RANKS;
    }
    free(mem);
    return 0;
}

/* An operator by its text, with what there is to choose as a number; 0: this build does not know it. */
static int operator_of(const char *pattern, double x, cg_op *op) {
    char text[200];
    snprintf(text, sizeof text, pattern, x);
    return cg_op_parse(op, text) == CG_OK && cg_bound(op, model.n);
}
/* The mean over `draws` draws of |mean of D over W ranks - mean of their vectors|^2, over the mean of |vector|^2;
   *bytes: of a packet. */
static double error_of(const cg_op *op, float *const *x, int ranks, int draws, double *bytes) {
    const size_t n = model.n, cap = cg_bound(op, n), need = cg_scratch(op, n);
    unsigned char *packet = (unsigned char *)malloc(cap), *scratch = (unsigned char *)malloc(need + 1);
    float *mean = (float *)malloc(n * sizeof *mean);
    double error = 0, size = 0;
    *bytes = 0;
    for (int d = 0; d < draws; d++) {
        memset(mean, 0, n * sizeof *mean);
        for (int r = 0; r < ranks; r++) {
            const cg_tag tag = { 9, (uint64_t)d, 0, (uint32_t)r };
            size_t len;
            if (cg_compress(op, &tag, x[r], n, packet, cap, &len, scratch, need) != CG_OK ||
                cg_decompress_add(packet, len, 1.0f / (float)ranks, mean, n) != CG_OK)
                exit(2);
            *bytes += (double)len / draws / ranks;
        }
        for (size_t i = 0; i < n; i++) {
            double exact = 0, squares = 0;
            for (int r = 0; r < ranks; r++) {
                exact += (double)x[r][i] / ranks;
                squares += (double)x[r][i] * (double)x[r][i] / ranks;
            }
            error += ((double)mean[i] - exact) * ((double)mean[i] - exact);
            size += squares;
        }
    }
    free(packet);
    free(scratch);
    free(mean);
    return error / size;
}
typedef struct way {
    const char *pattern;
    double low, high; /* of the number; low == high: it is not to be chosen */
    int is_private;
} way;
static const way ways[] = { { "absmax:%.0f:1000000000|gamma", 3, 3, 1 }, { "wangni:%.6f|efsign|golomb", 1e-5, 1, 1 },
    { "wangni:%.6f|golomb", 1e-5, 1, 1 }, { "randk:%.6f:private|eden:1", 1e-5, 1, 1 },
    { "randk:%.6f|eden:1", 1e-5, 1, 0 }, { "randk:%.6f:private", 1e-5, 1, 1 }, { "rate:%.6f:unbiased", 1e-4, 8, 1 } };
enum { WAYS = sizeof ways / sizeof *ways };
/* The number that takes about so many bytes. */
static int fit(const way *w, float *const *x, double target, cg_op *op) {
    double low = w->low, high = w->high, bytes;
    if (!operator_of(w->pattern, high, op)) return 0;
    for (int i = 0; i < 18 && low < high; i++) {
        const double middle = sqrt(low * high);
        if (!operator_of(w->pattern, middle, op)) return 0;
        error_of(op, x, 1, 1, &bytes);
        if (bytes > target) high = middle;
        else low = middle;
        if (bytes > .98 * target && bytes < 1.02 * target) break;
    }
    return 1;
}
TEST errors_of_means_at_equal_bytes(int which, double bits) {
    static const int sizes[] = { 2, 4, 8 };
    float *const *x = vectors[which];
    const int draws = long_test() ? 20 : 3;
    const double target = bits * (double)model.n / 8 + CG_HEADER_BYTES;
    for (int i = 0; i < WAYS; i++) {
        double error[3], bytes = 0;
        char text[200];
        cg_op op;
        if (!fit(&ways[i], x, target, &op)) continue;
        for (int k = 0; k < 3; k++) error[k] = error_of(&op, x, sizes[k], draws, &bytes);
        ASSERT_EQ(CG_OK, cg_op_print(&op, text, sizeof text));
        if (greatest_info.verbosity)
            printf("%-12s %5.2f bits: %-46s %7.0f bytes  %8.4f %8.4f %8.4f\n", names[which], bits, text, bytes,
                error[0], error[1], error[2]);
        if (ways[i].low < ways[i].high) ASSERT_IN_RANGE(target, bytes, .12 * target); /* EDEN fills blocks of 1024 */
        /* squares of W draws: what is said to be independent is */
        if (ways[i].is_private) {
            ASSERT_IN_RANGE(2.0, error[0] / error[1], .5);
            ASSERT_IN_RANGE(4.0, error[0] / error[2], 1.2);
        }
    }
    PASS();
}
/* Of vectors that are alike, common draws make one error of all. */
TEST common_draws_do_not_average(void) {
    float *same[RANKS];
    cg_op own, common;
    double bytes;
    for (int r = 0; r < RANKS; r++) same[r] = vectors[1][0];
    ASSERT(operator_of("randk:%.6f:private|eden:1", .1, &own) && operator_of("randk:%.6f|eden:1", .1, &common));
    ASSERT_IN_RANGE(8.0, error_of(&own, same, 1, 4, &bytes) / error_of(&own, same, 8, 4, &bytes), 1.0);
    ASSERT_IN_RANGE(1.0, error_of(&common, same, 1, 4, &bytes) / error_of(&common, same, 8, 4, &bytes), .01);
    PASS();
}

GREATEST_MAIN_DEFS();
int main(int argc, char **argv) {
    char why[200];
    GREATEST_MAIN_BEGIN();
    if (data_glyphs(&data, 1, 2000, 10, why, sizeof why) ||
        net_init(&model, "mlp", data.height, data.width, data.classes) || make_vectors())
        return 2;
    for (int k = 0; k < 2; k++) {
        RUN_TESTp(errors_of_means_at_equal_bytes, k, 0.1);
        RUN_TESTp(errors_of_means_at_equal_bytes, k, 0.8);
    }
    RUN_TEST(common_draws_do_not_average);
    for (int r = 0; r < 2 * RANKS; r++) free(vectors[r / RANKS][r % RANKS]);
    data_free(&data);
    GREATEST_MAIN_END();
}
