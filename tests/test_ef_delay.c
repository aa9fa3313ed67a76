/* cg_ef_stats.delay against sums over all coordinates in double: a sampled estimate has to be near them, whatever the
   kind keeps its residual in; and it tells operators that Adam bears from those that it does not. */
#include "greatest.h"
#include "compgrad_ef.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 262144, STEPS = 24 };
static float g[N], e[N];
static double v[N];
static char note[200];
static uint64_t state;
static double uniform(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return ((double)(state >> 11) + .5) / 9007199254740992.0;
}
/* Gradients whose scale changes from row to row by two orders, as those of networks do. */
static void gradient(uint64_t step, size_t n) {
    state = step * 977 + 5;
    double scale = 0;
    for (size_t i = 0; i < n; i++) {
        if (i % 500 == 0) scale = pow(10, sin((double)(i / 500)));
        g[i] = (float)((uniform() + uniform() + uniform() - 1.5) * scale);
    }
}
typedef struct row {
    const char *op;
    uint32_t kind;
    float momentum;
    int bytes;
    size_t n;
    double least, most; /* what the exact number is between: for this gradient */
} row;
static const row rows[] = { { "dense", CG_EF_CLASSIC, 0, 0, N, 0, .1 },
    { "absmax:8:512", CG_EF_CLASSIC, 0, 0, N, 0, .1 }, { "topk:0.01", CG_EF_CLASSIC, 0, 0, N, 2, 4 },
    { "topk:0.3", CG_EF_CLASSIC, 0, 0, N, 1, 2 }, { "topk:0.01", CG_EF_CLASSIC, 0, 1, N, 2, 4 },
    { "efsign", CG_EF_LOCO, 0, 0, N, 1, 3 }, { "topk:0.05", CG_EF_MOMENTUM, .9f, 0, N, 5, 20 },
    { "randk:0.1", CG_EF_CLASSIC, 0, 0, N, 1, 3 }, { "topk:0.1", CG_EF_CLASSIC, 0, 0, 10, .5, 3 },
    { "absmax:4:32", CG_EF_NONE, 0, 0, N, 0, 0 } };
TEST is_near_the_exact_number(int which) {
    const row *w = &rows[which];
    cg_ef_desc d = CG_ZERO;
    cg_ef ef;
    void *mem, *packet;
    size_t cap, len;
    double given = 0, delayed = 0, weight = 0;
    ASSERT_EQ(CG_OK, cg_op_parse(&d.op, w->op));
    d.n = w->n;
    d.kind = w->kind;
    d.momentum = w->momentum;
    d.bytes = w->bytes;
    mem = malloc(cg_ef_memory(&d));
    packet = malloc(cap = cg_ef_bound(&d));
    ASSERT_EQ(CG_OK, cg_ef_init(&ef, &d, mem, cg_ef_memory(&d)));
    memset(v, 0, sizeof v);
    for (uint64_t t = 0; t < STEPS; t++) {
        const cg_tag tag = { 3, t, 0, 0 };
        double sum = 0, left = 0;
        gradient(t, d.n);
        for (size_t i = 0; i < d.n; i++) {
            v[i] = .999 * v[i] + .001 * (double)g[i] * (double)g[i];
            sum += v[i] > 0 ? fabs((double)g[i]) / sqrt(v[i]) : 0;
        }
        weight = .999 * weight + .001;
        given = .98 * given + sum * sqrt(weight);
        ASSERT_EQ(CG_OK, cg_ef_compress(&ef, &tag, g, packet, cap, &len));
        if (t == 7) ASSERT_EQ(CG_OK, cg_ef_rollback(&ef, packet, len));
        else ASSERT_EQ(CG_OK, cg_ef_commit(&ef, packet, len, NULL));
        if (d.kind != CG_EF_NONE) ASSERT_EQ(CG_OK, cg_ef_read(&ef, CG_EF_ERROR, e, d.n));
        for (size_t i = 0; i < d.n; i++)
            left += v[i] > 0 ? fabs((double)e[i] / (double)cg_ef_scale(&ef)) / sqrt(v[i]) : 0;
        delayed = .98 * delayed + (d.kind == CG_EF_NONE ? 0 : left * sqrt(weight));
    }
    snprintf(note, sizeof note, "%s kind %d: delay %g, exactly %g", w->op, (int)w->kind,
        (double)cg_ef_stats_of(&ef).delay, delayed / given);
    /* 128 lines of a vector whose rows differ this much: their standard error is a tenth */
    ASSERTm(note, fabs((double)cg_ef_stats_of(&ef).delay - delayed / given) <= .2 * delayed / given);
    ASSERTm(note, delayed / given >= w->least && delayed / given <= w->most);
    free(mem);
    free(packet);
    PASS();
}
/* It begins anew after a load, and is 0 in a step that was refused. */
TEST is_of_the_last_step(void) {
    cg_ef_desc d = CG_ZERO;
    cg_ef ef;
    unsigned char *mem, *saved, packet[4096];
    const cg_tag tag = { 1, 2, 3, 0 };
    size_t len;
    float first;
    d.op = cg_topk(0.1f);
    d.n = 100;
    mem = (unsigned char *)malloc(cg_ef_memory(&d));
    ASSERT_EQ(CG_OK, cg_ef_init(&ef, &d, mem, cg_ef_memory(&d)));
    gradient(1, d.n);
    ASSERT_EQ(CG_OK, cg_ef_compress(&ef, &tag, g, packet, sizeof packet, &len));
    ASSERT_EQ(CG_OK, cg_ef_commit(&ef, packet, len, NULL));
    first = cg_ef_stats_of(&ef).delay;
    ASSERT(first > 0);
    ASSERT_EQ(CG_E_ARG, cg_ef_compress(&ef, &tag, NULL, packet, sizeof packet, &len));
    ASSERT_EQ(0.0f, cg_ef_stats_of(&ef).delay);
    saved = (unsigned char *)malloc(cg_ef_save_bytes(&ef));
    ASSERT_EQ(CG_OK, cg_ef_save(&ef, saved, cg_ef_save_bytes(&ef), &len));
    ASSERT_EQ(CG_OK, cg_ef_load(&ef, saved, len));
    g[5] = 1e30f; /* its square is no float */
    ASSERT_EQ(CG_OK, cg_ef_compress(&ef, &tag, g, packet, sizeof packet, &len));
    ASSERT_EQ(CG_OK, cg_ef_commit(&ef, packet, len, NULL));
    ASSERT(cg_ef_stats_of(&ef).delay > 0 && cg_ef_stats_of(&ef).delay < 1e6f);
    free(mem);
    free(saved);
    PASS();
}
GREATEST_MAIN_DEFS();
int main(int argc, char **argv) {
    GREATEST_MAIN_BEGIN();
    for (int i = 0; i < (int)(sizeof rows / sizeof *rows); i++) RUN_TEST1(is_near_the_exact_number, i);
    RUN_TEST(is_of_the_last_step);
    GREATEST_MAIN_END();
}
