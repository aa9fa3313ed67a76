/* The program that draws error over bits, held to theory: on normal vectors no operator, and not the ideal quantizer,
   beats Shannon's curve; the ideal quantizer is as far from it as is known. */
#define main curves_main
#include "../bench/curves.c"
#undef main
#include "greatest.h"

static char note[300];
#define SAY(...) (snprintf(note, sizeof note, __VA_ARGS__), note)

/* An empirical share of |x|^2 for n values strays by sqrt(2/n), and an entropy by far less: 3 % is six times that. */
TEST nobody_beats_shannon(void) {
    FILE *csv = fopen("/dev/null", "w");
    vector *v = &vectors[0];
    ASSERT(csv);
    for (int f = 0; f < FAMILIES; f++) {
        measure(v, f, csv);
        for (int i = 0; i < v->of[f].n; i++) {
            const point *p = &v->of[f].at[i];
            SAY("%s: error %g at %g bits, Shannon %g", families[f].text, p->error, p->bits, exp2(-2 * p->bits));
            if (p->bits < 20) ASSERTm(note, p->error >= 0.97 * exp2(-2 * p->bits)); /* floats are few beyond */
            ASSERTm(note, p->bits < 34 && (i == 0 || p->bits >= v->of[f].at[i - 1].bits));
        }
    }
    fclose(csv);
    PASS();
}
/* 1.53 dB, or .2546 bits, where bits are many (Gish and Pierce); less below, and nothing in the limit of no bits. */
TEST ideal_is_known(void) {
    vector *v = &vectors[0];
    int many = 0;
    ideal(v);
    for (int i = 0; i < v->ideal_n; i++) {
        const point *p = &v->ideal[i];
        const double excess = p->bits - 0.5 * log2(1 / p->error);
        SAY("%g bits, error %g: %g bits more than Shannon", p->bits, p->error, excess);
        ASSERTm(note, excess > -0.02 && excess < 0.2546 + 0.02);
        if (p->bits > 3.5 && p->bits < 6) { /* with more, 16384 values have too small an entropy */
            ASSERTm(note, fabs(excess - 0.2546) < 0.02);
            many++;
        }
        if (i) ASSERTm(note, p->bits > v->ideal[i - 1].bits && p->error < v->ideal[i - 1].error);
    }
    ASSERT(many >= 4 && v->ideal_n > 20);
    PASS();
}
TEST points_between(void) {
    const point p[3] = { { 1, 1e-1 }, { 2, 1e-2 }, { 8, 1e-4 } };
    ASSERT_IN_RANGE(2.0, bits_at(p, 3, 1e-2), 1e-9);
    ASSERT_IN_RANGE(sqrt(2.0), bits_at(p, 3, pow(10, -1.5)), 1e-9);
    ASSERT_IN_RANGE(4.0, bits_at(p, 3, 1e-3), 1e-9);
    ASSERT(bits_at(p, 3, 0.2) < 0 && bits_at(p, 3, 1e-5) < 0);
    PASS();
}
static int number(const char *text) {
    for (int f = 0; f < FAMILIES; f++)
        if (!strcmp(families[f].text, text)) return f;
    fprintf(stderr, "no %s\n", text);
    exit(2);
}
/* Top-k with 4 bits sends less than with 32, and is not much worse; f16 has the least error but for dense; rotations
   are for free, so that an unbiased operator needs unbiased company to be judged. */
TEST verdicts(void) {
    const verdict k = judge(number("permk:%"), 0, 1), half = judge(number("f16"), 0, 1),
                  e = judge(number("e5m2:512:stochastic"), 0, 1);
    const curve *plain = &vectors[0].of[number("absmax:%:512")];
    const point worse = { plain->at[2].bits * 1.5, plain->at[2].error * 1.5 };
    ASSERT(k.by != NULL);
    ASSERT(!half.by);
    ASSERT(e.by_unbiased && e.most >= e.least && e.least > 1);
    ASSERT(better(&vectors[0], number("topk:%"), &worse, 1) != NULL);
    ASSERT(plain->unbiased && !vectors[0].of[number("topk:%")].unbiased);
    PASS();
}
TEST tables_and_pictures(void) {
    char text[200];
    FILE *f = tmpfile();
    int rows = 0;
    ASSERT(f);
    table(f);
    rewind(f);
    while (fgets(text, sizeof text, f)) rows += text[0] == '|';
    fclose(f);
    ASSERT_EQ(FAMILIES + 2, rows);
    PASS();
}
SUITE(curves) {
    RUN_TEST(nobody_beats_shannon);
    RUN_TEST(ideal_is_known);
    RUN_TEST(points_between);
    RUN_TEST(verdicts);
    RUN_TEST(tables_and_pictures);
}
GREATEST_MAIN_DEFS();
int main(int argc, char **argv) {
    GREATEST_MAIN_BEGIN();
    made("normal", 1 << 14, 0);
    for (size_t i = 0; i < vectors[0].n; i++) vectors[0].energy += (double)vectors[0].x[i] * (double)vectors[0].x[i];
    RUN_SUITE(curves);
    GREATEST_MAIN_END();
}
