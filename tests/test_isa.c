/* Every ISA gives the bytes that plain C gives, at every length and alignment, whatever the floating-point
   environment of the caller, and leaves that environment as it was. */
#define COMPGRAD_IMPLEMENTATION
#include "compgrad.h"
#include "ref.h"
#include "ops.h"
#include "greatest.h"

#include <fenv.h>
#if defined(__GNUC__) && !defined(__TINYC__) && (defined(__x86_64__) || (defined(__i386__) && defined(__SSE__)))
#  include <xmmintrin.h>
#  define HAVE_MXCSR 1
#else
#  define HAVE_MXCSR 0
#endif

enum { MOST = (1 << 20) + 5, ALIGN = 16 };
static const cg_tag TAG = { 5, 6, 7, 8 };
static char note[256];

/* Room for the largest case, and an edge to be left alone. */
static unsigned char xs[MOST * 4 + 64], packets[MOST * 5 + 4096], ys[MOST * 4 + 64], scratch[16u << 20];

#define EXPECT(what, cond)                                                                          \
    do {                                                                                            \
        if (!(cond)) {                                                                              \
            snprintf(note, sizeof note, "%s on %s: %s, n = %lu, alignment %lu", what, cg_isa_name(cg_isa_used()), \
                     ops_text(op), (unsigned long)n, (unsigned long)a);                             \
            FAILm(note);                                                                            \
        }                                                                                           \
    } while (0)

static const uint32_t BUCKETS[] = { 1, 7, 16, 64, 100, 2048, 5000 };

/* All quantizers, then selections and samples over a few of them. */
enum { OPS = OPS_QUANTIZERS + 4 * 4 };

static cg_op op_at(int i, uint32_t bucket)
{
    static const int q[] = { 0, 1, 10, 3 };
    int rest = i - OPS_QUANTIZERS;
    if (i < OPS_QUANTIZERS) return ops_quantizer(i, bucket);
    switch (rest / 4) {
    case 0:  return ops_compose(0, 1, rest % 3, q[rest % 4], bucket);
    case 1:  return ops_compose(0, 2, rest % 3, q[rest % 4], bucket);
    case 2:  return ops_compose(1, 0, 0, q[rest % 4], bucket);
    default: return ops_compose(2, 1, 0, q[rest % 4], bucket);
    }
}

typedef struct answer { unsigned char *packet; size_t len; float *y, *sum; } answer;

/* Plain C, aligned: what everybody has to say. */
static answer scalar_answer(const cg_op *op, const float *x, size_t n)
{
    answer r;
    ops_packet pk;
    size_t i;
    int bad = cg_isa_force(CG_ISA_SCALAR) != CG_OK;
    pk = ops_pack(op, &TAG, x, n);
    r.packet = pk.p;
    r.len = pk.len;
    r.y = (float *)ref_alloc(n * 4);
    r.sum = (float *)ref_alloc(n * 4);
    for (i = 0; i < n; i++) r.sum[i] = (float)i;
    bad |= pk.status != CG_OK || cg_decompress(r.packet, r.len, r.y, n) != CG_OK || cg_decode(NULL, r.packet, r.len, 0.3f, 0.9f, r.sum, n) != CG_OK;
    if (bad) { fprintf(stderr, "scalar: %s: %s\n", ops_text(op), ops_status((int)pk.status)); exit(2); }
    return r;
}

static void forget(answer *r) { free(r->packet); free(r->y); free(r->sum); }

TEST same_bytes(const cg_op *op, const answer *want, const float *x, size_t n, size_t a)
{
    /* three different alignments, each taking all 16 values as a does */
    unsigned char *xp = xs + a, *pp = packets + (a * 5 + 3) % ALIGN, *yp = ys + (a * 11 + 7) % ALIGN;
    size_t bound = cg_bound(op, n), need = cg_scratch(op, n), len = 0, i;
    cg_side direct = CG_ZERO;
    EXPECT("test buffers too small", bound + 64 < sizeof packets && need + ALIGN < sizeof scratch);
    direct.flags = CG_DECODE_DIRECT;
    memcpy(xp, x, n * 4);
    memset(pp + bound, 0x77, 32);
    EXPECT("compress", cg_compress(op, &TAG, (const float *)(const void *)xp, n, pp, bound, &len, scratch + a, need) == CG_OK);
    EXPECT("packet", len == want->len && memcmp(pp, want->packet, len) == 0);
    for (i = 0; i < 32; i++) EXPECT("wrote beyond the packet", pp[bound + i] == 0x77);
    memset(yp, 0xff, n * 4);
    memset(yp + n * 4, 0x77, 32);
    EXPECT("decompress", cg_decompress(pp, len, (float *)(void *)yp, n) == CG_OK && memcmp(yp, want->y, n * 4) == 0);
    for (i = 0; i < n; i++) { float v = (float)i; memcpy(yp + 4 * i, &v, 4); }
    EXPECT("decode", cg_decode(a & 1 ? &direct : NULL, pp, len, 0.3f, 0.9f, (float *)(void *)yp, n) == CG_OK);
    EXPECT("sum", memcmp(yp, want->sum, n * 4) == 0);
    for (i = 0; i < 32; i++) EXPECT("wrote beyond y", yp[n * 4 + i] == 0x77);
    PASS();
}

TEST all_lengths(int i, cg_isa isa)
{
    static float x[MOST];
    static const size_t larger[] = { 511, 513, 1024, 2047, 2048, 2049, 4095, 4096, 6150, 65533, 65536, 65539 };
    size_t n, a, j;
    for (n = 0; n <= 257; n++) {
        cg_op op = op_at(i, BUCKETS[n % 5]);
        answer want;
        ref_fill((ref_kind)(n % REF_KINDS), n, x, n);
        want = scalar_answer(&op, x, n);
        ASSERT_ENUM_EQ(CG_OK, cg_isa_force(isa), ops_status);
        for (a = 0; a < ALIGN; a++) CHECK_CALL(same_bytes(&op, &want, x, n, a));
        forget(&want);
    }
    for (j = 0; j < sizeof larger / sizeof *larger; j++) {
        cg_op op = op_at(i, BUCKETS[(j + (size_t)i) % 7]);
        answer want;
        ref_fill((ref_kind)((j + (size_t)i) % REF_KINDS), j, x, larger[j]);
        want = scalar_answer(&op, x, larger[j]);
        ASSERT_ENUM_EQ(CG_OK, cg_isa_force(isa), ops_status);
        for (a = 0; a < (larger[j] < 5000 ? 4u : 1u); a++) CHECK_CALL(same_bytes(&op, &want, x, larger[j], (a * 7 + j) % ALIGN));
        forget(&want);
    }
    PASS();
}

/* Vectors larger than the cache, where a kernel may choose other stores: y at several alignments. */
TEST large(int i, cg_isa isa)
{
    static const size_t as[] = { 11, 7, 15, 1 };    /* y at 0, 4, 12 and 2 beyond a multiple of 16 */
    static float x[MOST];
    cg_op held = op_at(i, 512), *op = &held;
    size_t j, at, n = MOST, a;
    answer want;
    ref_fill(REF_LAPLACE, 1, x, n);
    want = scalar_answer(op, x, n);
    ASSERT_ENUM_EQ(CG_OK, cg_isa_force(isa), ops_status);
    for (j = 0; j < 4; j++) {
        unsigned char *yp = ys + (as[j] * 11 + 7) % ALIGN;
        size_t wrong = 0;
        a = as[j];
        CHECK_CALL(same_bytes(op, &want, x, n, a));
        EXPECT("decode", cg_decode(NULL, want.packet, want.len, -0.7f, 0.0f, (float *)(void *)yp, n) == CG_OK);
        for (at = 0; at < n; at++) {
            float v, w = ref_mul(-0.7f, want.y[at]);
            memcpy(&v, yp + 4 * at, 4);
            wrong += v != w;
        }
        EXPECT("scaled", wrong == 0);
    }
    forget(&want);
    PASS();
}

/* ---- the environment ------------------------------------------------------------------------ */

typedef struct environment { int rounding; unsigned control; } environment;

static environment environment_now(void)
{
    environment e;
    e.rounding = fegetround();
    e.control = 0;
#if HAVE_MXCSR
    e.control = _mm_getcsr() & 0xffc0u;             /* masks, rounding, FTZ and DAZ, but not the sticky flags */
#elif defined(__aarch64__) && defined(__GNUC__)
    { unsigned long v; __asm__ volatile("mrs %0, fpcr" : "=r"(v)); e.control = (unsigned)v; }
#endif
    return e;
}

/* 0 if there is no such setting here. Bit 2 of which: flush denormals; the low bits: the rounding mode. */
static int environment_set(int which)
{
    static const int mode[] = {
        FE_TONEAREST,
#ifdef FE_UPWARD
        FE_UPWARD,
#else
        -1,
#endif
#ifdef FE_DOWNWARD
        FE_DOWNWARD,
#else
        -1,
#endif
#ifdef FE_TOWARDZERO
        FE_TOWARDZERO
#else
        -1
#endif
    };
    if (mode[which & 3] == -1 || fesetround(mode[which & 3]) != 0) return 0;
    if (which & 4) {
#if HAVE_MXCSR
        _mm_setcsr(_mm_getcsr() | 0x8040u);
#elif defined(__aarch64__) && defined(__GNUC__)
        unsigned long v;
        __asm__ volatile("mrs %0, fpcr" : "=r"(v));
        __asm__ volatile("msr fpcr, %0" : : "r"(v | 1ul << 24));
#else
        return 0;
#endif
    }
    return 1;
}

static void environment_reset(void)
{
    fesetround(FE_TONEAREST);
#if HAVE_MXCSR
    _mm_setcsr(0x1f80u);
#elif defined(__aarch64__) && defined(__GNUC__)
    __asm__ volatile("msr fpcr, %0" : : "r"(0ul));
#endif
}

TEST same_bytes_in(int which, cg_isa isa)
{
    static const ref_kind kinds[] = { REF_DENORMALS, REF_GAUSSIAN, REF_HUGE };
    static float x[2100], y[2100], sum[2100];
    static uint16_t half[2100], want_half[2100];
    size_t n = 2100, a = (size_t)which, i;
    int o, kd;
    for (o = 0; o < OPS; o++)
        for (kd = 0; kd < 3; kd++) {
            cg_op held = op_at(o, 64), *op = &held;
            cg_status s1, s2, s3;
            environment before, after;
            answer want;
            ops_packet pk;
            ref_fill(kinds[kd], 3, x, n);
            want = scalar_answer(op, x, n);
            cg_f16_from_f32(x, n, want_half);
            ASSERT_ENUM_EQ(CG_OK, cg_isa_force(isa), ops_status);
            for (i = 0; i < n; i++) sum[i] = (float)i;
            if (!environment_set(which)) { environment_reset(); forget(&want); SKIPm("no such floating-point setting"); }
            before = environment_now();
            pk = ops_pack(op, &TAG, x, n);
            s1 = pk.status;
            s2 = cg_decompress(want.packet, want.len, y, n);
            s3 = cg_decode(NULL, want.packet, want.len, 0.3f, 0.9f, sum, n);
            cg_f16_from_f32(x, n, half);
            after = environment_now();
            environment_reset();
            EXPECT("status", s1 == CG_OK && s2 == CG_OK && s3 == CG_OK);
            EXPECT("environment not restored", before.rounding == after.rounding && before.control == after.control);
            EXPECT("packet", pk.len == want.len && memcmp(pk.p, want.packet, pk.len) == 0);
            EXPECT("decompress", memcmp(y, want.y, sizeof y) == 0);
            EXPECT("decode", memcmp(sum, want.sum, sizeof sum) == 0);
            EXPECT("f16", memcmp(half, want_half, sizeof half) == 0);
            free(pk.p);
            forget(&want);
        }
    PASS();
}

/* A result larger than the cache is streamed, if it is aligned: the same floats as into one that is not. */
TEST streamed(const char *text, cg_isa isa)
{
    const size_t n = ((size_t)1 << 22) + 13;
    float *v = (float *)ref_alloc(4 * n), *y = (float *)ref_alloc(4 * n + 64), *z = (float *)ref_alloc(4 * n + 64), *aligned = y, *off = z + 1;
    ops_packet pk;
    cg_op op;
    int same;
    while ((uintptr_t)aligned % 16) aligned++;
    while ((uintptr_t)off % 16 != 4) off++;
    ref_fill(REF_LAPLACE, 9, v, n);
    ASSERT_ENUM_EQ(CG_OK, cg_op_parse(&op, text), ops_status);
    ASSERT_ENUM_EQ(CG_OK, cg_isa_force(isa), ops_status);
    pk = ops_pack(&op, &TAG, v, n);
    ASSERT_ENUM_EQ(CG_OK, pk.status, ops_status);
    memset(y, 0xee, 4 * n + 64);
    ASSERT_ENUM_EQ(CG_OK, cg_decompress(pk.p, pk.len, aligned, n), ops_status);
    ASSERT_ENUM_EQ(CG_OK, cg_decompress(pk.p, pk.len, off, n), ops_status);
    same = memcmp(aligned, off, 4 * n) == 0 && *((unsigned char *)(aligned + n)) == 0xee;
    ASSERT_ENUM_EQ(CG_OK, cg_decode(NULL, pk.p, pk.len, -0.7f, 0, aligned, n), ops_status);
    ASSERT_ENUM_EQ(CG_OK, cg_decode(NULL, pk.p, pk.len, -0.7f, 0, off, n), ops_status);
    same = same && memcmp(aligned, off, 4 * n) == 0;
    free(pk.p);
    free(z);
    free(y);
    free(v);
    ASSERTm(text, same);
    PASS();
}

/* Sizes and texts are computed in the library's own environment, too: ranks must agree on k. */
TEST sizes_and_texts_in(int which)
{
    cg_op want, got, tiny = cg_topk(1e-40f), ratio = cg_topk(0.3f);
    char text[2][128];
    size_t bound[2], room[2];
    cg_op level = cg_threshold(1e-40f);
    ASSERT_ENUM_EQ(CG_OK, cg_op_parse(&want, "topk:0.01|absmax:4:512"), ops_status);
    ASSERT_ENUM_EQ(CG_OK, cg_op_print(&level, text[0], sizeof text[0]), ops_status);
    bound[0] = cg_bound(&tiny, 1000) + cg_bound(&ratio, (size_t)1 << 25);
    room[0] = cg_scratch(&ratio, ((size_t)1 << 25) + 1);
    if (!environment_set(which)) { environment_reset(); SKIPm("no such floating-point setting"); }
    if (cg_op_parse(&got, "topk:0.01|absmax:4:512") != CG_OK) got = cg_dense();
    if (cg_op_print(&level, text[1], sizeof text[1]) != CG_OK) text[1][0] = 0;
    bound[1] = cg_bound(&tiny, 1000) + cg_bound(&ratio, (size_t)1 << 25);
    room[1] = cg_scratch(&ratio, ((size_t)1 << 25) + 1);
    environment_reset();
    ASSERT_EQ_FMT(ref_bits(want.select.value), ref_bits(got.select.value), "%08x");
    ASSERT_STR_EQ(text[0], text[1]);
    ASSERT(bound[0] == bound[1] && room[0] == room[1]);
    PASS();
}

TEST environment_survives_errors(cg_isa isa)
{
    float x[4] = { 1, 2, 3, 4 }, y[4];
    cg_op held = cg_absmax(4, 2), *op = &held, bad = cg_absmax(0, 2);
    size_t n = 4, a = 0, len;
    unsigned char packet[256];
    environment before, after;
    ASSERT_ENUM_EQ(CG_OK, cg_isa_force(isa), ops_status);
    x[3] = ref_float(0x7f800000u);
    memset(packet, 1, sizeof packet);
    if (!environment_set(5)) { environment_reset(); SKIPm("no such floating-point setting"); }
    before = environment_now();
    if (cg_compress(op, NULL, x, 4, packet, 256, &len, NULL, 0) == CG_OK) x[0] = 99;
    if (cg_compress(op, NULL, x, 4, packet, 5, &len, NULL, 0) == CG_OK) x[0] = 99;
    if (cg_compress(&bad, NULL, x, 4, packet, 256, &len, NULL, 0) == CG_OK) x[0] = 99;
    if (cg_decompress(packet, 200, y, 4) == CG_OK) x[0] = 99;
    after = environment_now();
    environment_reset();
    EXPECT("an error was not one", x[0] == 1);
    EXPECT("environment not restored", before.rounding == after.rounding && before.control == after.control);
    PASS();
}

TEST force_and_name(void)
{
    int isa;
    ASSERT(cg_isa_found(CG_ISA_SCALAR));
    for (isa = CG_ISA_SCALAR; isa <= CG_ISA_NEON; isa++) {
        cg_status s = cg_isa_force((cg_isa)isa);
        ASSERT_ENUM_EQ(cg_isa_found((cg_isa)isa) ? CG_OK : CG_E_UNSUPPORTED, s, ops_status);
        if (s == CG_OK) ASSERT_EQ_FMT(isa, (int)cg_isa_used(), "%d");
        ASSERT(cg_isa_name((cg_isa)isa) && *cg_isa_name((cg_isa)isa));
    }
    ASSERT(cg_isa_force((cg_isa)77) != CG_OK);
    ASSERT_ENUM_EQ(CG_OK, cg_isa_force(CG_ISA_AUTO), ops_status);
    ASSERT(cg_isa_found(cg_isa_used()));
    PASS();
}

SUITE(isa)
{
    int which, i;
    RUN_TEST(force_and_name);
    for (which = CG_ISA_SCALAR; which <= CG_ISA_NEON; which++) {
        if (!cg_isa_found((cg_isa)which)) continue;
        for (i = 0; i < OPS; i++) RUN_TESTp(all_lengths, i, (cg_isa)which);
        for (i = 0; i < OPS; i += i < 5 ? 1 : 5) RUN_TESTp(large, i, (cg_isa)which);
    }
}

SUITE(large_results)
{
    static const char *const texts[] = { "dense", "f16", "bf16", "sign", "efsign", "terngrad", "absmax:8:512", "absmax:4:101", "minmax:3:64",
                                         "topk:0.01", "topk:0.3|f16", "threshold:2", "randk:0.1", "randk:0.5|topk:0.1|absmax:4:64" };
    size_t i;
    int which;
    for (which = CG_ISA_SCALAR; which <= CG_ISA_NEON; which++)
        for (i = 0; cg_isa_found((cg_isa)which) && i < sizeof texts / sizeof *texts; i++) RUN_TESTp(streamed, texts[i], (cg_isa)which);
}

SUITE(fp_environment)
{
    int which, setting;
    for (setting = 0; setting < 8; setting++) RUN_TEST1(sizes_and_texts_in, setting);
    for (which = CG_ISA_SCALAR; which <= CG_ISA_NEON; which++) {
        if (!cg_isa_found((cg_isa)which)) continue;
        for (setting = 0; setting < 8; setting++) RUN_TESTp(same_bytes_in, setting, (cg_isa)which);
        RUN_TEST1(environment_survives_errors, (cg_isa)which);
    }
}

GREATEST_MAIN_DEFS();

int main(int argc, char **argv)
{
    GREATEST_MAIN_BEGIN();
    RUN_SUITE(isa);
    if (!getenv("CG_TEST_QUICK")) RUN_SUITE(large_results);
    RUN_SUITE(fp_environment);
    GREATEST_MAIN_END();
}
