/* Top-k is exact for every input, k and size; ties go to the lowest index. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS, MAP_NORESERVE */
#define COMPGRAD_IMPLEMENTATION
#include "compgrad.h"
#include "ref.h"
#include "ops.h"
#include "greatest.h"
#include "tier.h"

#if defined(__linux__) && SIZE_MAX > 0xffffffffu
#  include <sys/mman.h>
#  define HAVE_GIANTS 1
#else
#  define HAVE_GIANTS 0
#endif

enum { BIG = (1 << 20) + 3 };
static float *x; /* BIG of them */
static char note[128];

#define EXPECT(what, cond)                                                                                            \
  do {                                                                                                                \
    if (!(cond)) {                                                                                                    \
      snprintf(note, sizeof note, "%s: vector %d, n = %lu, k = %lu", what, kind, (unsigned long)n, (unsigned long)k); \
      FAILm(note);                                                                                                    \
    }                                                                                                                 \
  } while (0)

/* x[0..n) is sorted by the plain reference once; that order answers for every k. */
static ref_item *sorted(size_t n) {
    ref_item *v = (ref_item *)ref_alloc(n * sizeof *v);
    size_t i;
    for (i = 0; i < n; i++) {
        v[i].mag = ref_mag(x[i]);
        v[i].index = i;
        v[i].v = x[i];
    }
    qsort(v, n, sizeof *v, ref_by_magnitude);
    return v;
}

TEST exact(int kind, const ref_item *order, size_t n, size_t k) {
    cg_op op = cg_topk(0.5f);
    ops_packet pk;
    float *y = (float *)ref_alloc(n * 4);
    cg_info info;
    double kept = 0, all = 0, left = 0;
    size_t i, right = 0, others = 0;
    op.k = k;
    pk = ops_pack(&op, NULL, x, n);
    EXPECT(ops_status((int)pk.status), pk.status == CG_OK);
    EXPECT("wrote beyond cap", !pk.touched);
    EXPECT("inspect", cg_inspect(pk.p, pk.len, &info) == CG_OK && info.k == k);
    EXPECT("threshold", ref_bits(info.threshold) == order[k - 1].mag);
    for (i = 0; i < n; i++) y[i] = 3.25f; /* what clear sets to zero is the index set */
    EXPECT("clear", cg_clear(pk.p, pk.len, y, n) == CG_OK);
    for (i = 0; i < k; i++) right += y[order[i].index] == 0.0f;
    for (; i < n; i++) others += y[order[i].index] != 3.25f;
    EXPECT("index set", right == k && others == 0);
    EXPECT("decompress", cg_decompress(pk.p, pk.len, y, n) == CG_OK);
    for (i = 0; i < n; i++) {
        double v = x[i], e = (double)x[i] - (double)y[i];
        all += v * v;
        left += e * e;
    }
    for (i = 0; i < k; i++) kept += ref_bits(y[order[i].index]) == ref_bits(order[i].v);
    EXPECT("values", kept == (double)k);
    EXPECT("contraction", left * (double)n <= (double)(n - k) * all * (1 + 1e-9));
    free(y);
    free(pk.p);
    PASS();
}

TEST every_k(int kind) {
    static const size_t sizes[] = { 1, 2, 3, 7, 8, 9, 31, 33, 64, 130 };
    size_t i, k;
    for (i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        ref_item *order;
        ref_fill((ref_kind)kind, i, x, sizes[i]);
        order = sorted(sizes[i]);
        for (k = 1; k <= sizes[i]; k++) CHECK_CALL(exact(kind, order, sizes[i], k));
        free(order);
    }
    PASS();
}

TEST some_k(int kind, size_t n) {
    size_t ks[9], i;
    ref_item *order;
    ref_fill((ref_kind)kind, 99, x, n);
    order = sorted(n);
    ks[0] = 1;
    ks[1] = 2;
    ks[2] = n / 1000 + 1;
    ks[3] = n / 100 + 1;
    ks[4] = n / 10;
    ks[5] = n / 2;
    ks[6] = n - n / 100;
    ks[7] = n - 1;
    ks[8] = n;
    for (i = 0; i < 9; i++) CHECK_CALL(exact(kind, order, n, ks[i]));
    free(order);
    PASS();
}

/* Inputs chosen against sampling, pivots and radix digits. */
static void adversary(int which, size_t n) {
    uint64_t state = 5;
    size_t i;
    for (i = 0; i < n; i++) {
        uint32_t r = ref_rand(&state);
        switch (which) {
        case 0: x[i] = ref_float(0x3f800000u + (r & 1)); break; /* neighbours */
        case 1:
            x[i] = ref_float(0x3f800000u + (r & 0xff));
            break; /* differ in the last byte */
        /* period 64 */
        case 2: x[i] = ref_float((r & 1) << 31 | (uint32_t)(i % 64 == 0 ? 0x40000000u : 0x3f800000u)); break;
        case 3: x[i] = ref_float((r & 1) << 31 | (uint32_t)(i % 997 == 5 ? 0x41000000u + (r >> 16) : r >> 9)); break;
        case 4: x[i] = i < n - n / 50 ? 0.0f : 1.0f + (float)(n - i); break; /* all of it at the end */
        case 5: x[i] = i < n / 50 ? 1.0f + (float)i : 0.0f; break;           /* ... at the start, rising */
        case 6: x[i] = ref_float(r & 0x80000000u); break;                    /* +0 and -0 */
        case 7: x[i] = (i & 1) ? -1.0f : 1.0f; break;
        case 8: x[i] = i % 2048 < 2 ? 100.0f : 1e-3f * (float)(i % 2048); break;
        default: x[i] = ref_float(r % 0x7f800000u); break; /* every exponent */
        }
    }
}

TEST adversaries(int kind, size_t n) {
    size_t ks[8], i, ties = 1;
    ref_item *order;
    adversary(kind, n);
    order = sorted(n);
    while (ties < n && order[ties].mag == order[0].mag) ties++;
    ks[0] = 1;
    ks[1] = n / 1000 + 1;
    ks[2] = n / 100;
    ks[3] = n / 64;
    ks[4] = n / 2 + 1;
    ks[5] = n - 1;
    ks[6] = ties; /* all of the largest, and one of the next */
    ks[7] = ties < n ? ties + 1 : n;
    for (i = 0; i < 8; i++) CHECK_CALL(exact(kind, order, n, ks[i]));
    free(order);
    PASS();
}

/* One NaN or Inf among 2^20 must be found wherever it hides, in front of and behind any threshold. */
TEST finds_nonfinite(int kind) {
    static const uint32_t worst[] = { 0x7fc00000u, 0xffc00000u, 0x7f800000u, 0xff800000u, 0x7f800001u, 0xffffffffu };
    static const float ratio[] = { 0.001f, 0.3f, 1.0f };
    size_t i, r, n = BIG, k = 0;
    ref_fill((ref_kind)kind, 7, x, n);
    for (i = 0; i < 12; i++) {
        size_t at = i < 4 ? i * 21 : i < 8 ? n - 1 - (i - 4) * 9 : (i * 97003u) % n;
        float old = x[at];
        uint32_t bits = worst[i % 6];
        memcpy(&x[at], &bits, 4);
        for (r = 0; r < 3; r++) {
            cg_op op = cg_topk(ratio[r]), th = cg_threshold(0.5f);
            ops_packet a = ops_pack(&op, NULL, x, n), b = ops_pack(&th, NULL, x, n);
            EXPECT("top-k missed it", a.status == CG_E_NONFINITE && a.len == 0 && !a.touched);
            EXPECT("threshold missed it", b.status == CG_E_NONFINITE && b.len == 0 && !b.touched);
            free(a.p);
            free(b.p);
        }
        x[at] = old;
    }
    PASS();
}

TEST threshold_selects(void) {
    static const float at[] = { 0.0f, 1e-45f, 1.0f, 1.5f, 2.0f, 1e30f, FLT_MAX };
    float v[] = { 0.0f, -0.0f, 1e-45f, -1e-45f, 1.0f, -1.0f, 1.0000001f, 2.0f, -3.0f, FLT_MAX, -FLT_MAX };
    size_t t, i, n = sizeof v / sizeof *v;
    for (t = 0; t < sizeof at / sizeof *at; t++) {
        cg_op op = cg_threshold(at[t]);
        ops_packet pk = ops_pack(&op, NULL, v, n);
        float y[11];
        ASSERT_ENUM_EQ(CG_OK, pk.status, ops_status);
        ASSERT_ENUM_EQ(CG_OK, cg_decompress(pk.p, pk.len, y, n), ops_status);
        for (i = 0; i < n; i++) ASSERT_EQ_FMT(fabsf(v[i]) > at[t] ? ref_bits(v[i]) : 0u, ref_bits(y[i]), "%08x");
        free(pk.p);
    }
    PASS();
}

SUITE(topk) {
    int k;
    for (k = 0; k < REF_KINDS; k++) {
        RUN_TEST1(every_k, k);
        RUN_TESTp(some_k, k, (size_t)4096);
        RUN_TESTp(some_k, k, (size_t)70001);
    }
    for (k = 0; k < 10; k++) {
        RUN_TESTp(adversaries, k, (size_t)5000);
        RUN_TESTp(adversaries, k, (size_t)200003);
    }
    RUN_TEST(threshold_selects);
}

/* More values than 32 bits can count: pages of zeros that take no memory, and a few others. */
TEST giant(size_t beyond, const char *text) {
#if HAVE_GIANTS
    const size_t n = ((size_t)1 << 32) + beyond, at[] = { 5, n / 2, ((size_t)1 << 32) - 1, n - 1 };
    float *v = (float *)mmap(NULL, 4 * n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    float *y = (float *)mmap(NULL, 4 * n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ops_packet pk;
    cg_status added, cleared;
    cg_info info;
    cg_op op;
    int i, right = 1;
    if (v == MAP_FAILED || y == MAP_FAILED) SKIPm("not enough address space");
    ASSERT_ENUM_EQ(CG_OK, cg_op_parse(&op, text), ops_status);
    for (i = 0; i < 4; i++) v[at[i]] = (float)(i + 1);
    y[7] = 1;
    pk = ops_pack(&op, NULL, v, n);
    ASSERT_ENUM_EQ(CG_OK, pk.status, ops_status);
    ASSERT_ENUM_EQ(CG_OK, cg_inspect(pk.p, pk.len, &info), ops_status);
    added = cg_decompress_add(pk.p, pk.len, 1, y, n);
    for (i = 0; i < 4; i++) right &= y[at[i]] == v[at[i]];
    cleared = cg_clear(pk.p, pk.len, y, n);
    for (i = 0; i < 4; i++) right &= y[at[i]] == 0;
    right &= y[7] == 1 && info.n == n;
    free(pk.p);
    munmap(v, 4 * n);
    munmap(y, 4 * n);
    ASSERT_ENUM_EQ(CG_OK, added, ops_status);
    ASSERT_ENUM_EQ(CG_OK, cleared, ops_status);
    ASSERTm(text, right);
    PASS();
#else
    (void)beyond;
    (void)text;
    SKIPm("needs 64-bit Linux");
#endif
}

SUITE(topk_giant) {
    RUN_TESTp(giant, (size_t)0, "topk:k=4|eliasfano"); /* a multiple of 2^32 exactly */
    /* some zeros come along: the first ones */
    if (long_test()) RUN_TESTp(giant, (size_t)3, "topk:k=9|f16");
}

SUITE(topk_large) {
    int k;
    RUN_TEST1(finds_nonfinite, REF_LAPLACE);
    if (!long_test()) return;
    for (k = 0; k < REF_KINDS; k++) RUN_TESTp(some_k, k, (size_t)BIG);
    for (k = 0; k < 10; k++) RUN_TESTp(adversaries, k, (size_t)BIG);
    RUN_TEST1(finds_nonfinite, REF_ZEROS);
    RUN_TEST1(finds_nonfinite, REF_HUGE);
    RUN_TEST1(finds_nonfinite, REF_CONSTANT);
}

GREATEST_MAIN_DEFS();

int main(int argc, char **argv) {
    GREATEST_MAIN_BEGIN();
    x = (float *)ref_alloc(BIG * sizeof *x);
    RUN_SUITE(topk);
    RUN_SUITE(topk_large);
    RUN_SUITE(topk_giant);
    free(x);
    GREATEST_MAIN_END();
}
