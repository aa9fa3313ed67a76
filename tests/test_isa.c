/* Every ISA gives the bytes that plain C gives, at every length and alignment, whatever the floating-point
   environment of the caller, and leaves that environment as it was. */
#undef COMPGRAD_LINKED /* private names: a copy of its own */
#define COMPGRAD_STATIC
#define COMPGRAD_IMPLEMENTATION
#include "compgrad.h"
#include "ref.h"
#include "ops.h"
#include "golden.h"
#include "greatest.h"
#define TIER_SPARED
#include "tier.h"

#include <fenv.h>
#if defined(__GNUC__) && !defined(__TINYC__) && (defined(__x86_64__) || (defined(__i386__) && defined(__SSE__)))
#  include <xmmintrin.h>
#  define HAVE_MXCSR 1
#else
#  define HAVE_MXCSR 0
#endif

enum { MOST = (1 << 20) + 5, ALIGN = 16 };
static const cg_tag TAG = { 5, 6, 7, 3 };
static cg_extra beside; /* of the operator at hand; mostly nothing */
static char note[256];

/* Room for the largest case, and an edge to be left alone. */
static unsigned char xs[MOST * 4 + 64], packets[MOST * 5 + 4096], ys[MOST * 4 + 64], scratch[16u << 20];

#define EXPECT(what, cond)                                                                                  \
  do {                                                                                                      \
    if (!(cond)) {                                                                                          \
      snprintf(note, sizeof note, "%s on %s: %s, n = %lu, alignment %lu", what, cg_isa_name(cg_isa_used()), \
          ops_text(op), (unsigned long)n, (unsigned long)a);                                                \
      FAILm(note);                                                                                          \
    }                                                                                                       \
  } while (0)

static const uint32_t BUCKETS[] = { 1, 7, 16, 64, 100, 2048, 5000 };

/* All quantizers, then selections and samples over a few of them. */
enum { OPS = OPS_QUANTIZERS + 4 * 4 };

static cg_op op_at(int i, uint32_t bucket) {
    static const int q[] = { 0, 1, 10, 3 };
    int rest = i - OPS_QUANTIZERS;
    if (i < OPS_QUANTIZERS) return ops_quantizer(i, bucket);
    switch (rest / 4) {
    case 0: return ops_compose(0, 1, rest % 3, q[rest % 4], bucket);
    case 1: return ops_compose(0, 2, rest % 3, q[rest % 4], bucket);
    case 2: return ops_compose(1, 0, 0, q[rest % 4], bucket);
    default: return ops_compose(2, 1, 0, q[rest % 4], bucket);
    }
}

typedef struct answer {
    unsigned char *packet;
    size_t len;
    float *y, *sum;
    int bad;
} answer;

/* Plain C, aligned: what everybody has to say. */
static answer try_answer(const cg_op *op, const float *x, size_t n) {
    answer r;
    ops_packet pk;
    size_t i;
    int bad = cg_isa_force(CG_ISA_SCALAR) != CG_OK;
    pk = ops_pack_cap(op, &TAG, &beside, x, n, cg_bound(op, n));
    r.packet = pk.p;
    r.len = pk.len;
    r.y = (float *)ref_alloc(n * 4);
    r.sum = (float *)ref_alloc(n * 4);
    for (i = 0; i < n; i++) r.sum[i] = (float)i;
    bad |= pk.status != CG_OK || cg_decode(&beside, r.packet, r.len, 1, 0, r.y, n) != CG_OK ||
        cg_decode(&beside, r.packet, r.len, 0.3f, 0.9f, r.sum, n) != CG_OK;
    r.bad = bad;
    return r;
}

static answer scalar_answer(const cg_op *op, const float *x, size_t n) {
    answer r;
    memset(&beside, 0, sizeof beside); /* a test that failed may have left something */
    r = try_answer(op, x, n);
    if (r.bad) {
        fprintf(stderr, "scalar: %s\n", ops_text(op));
        exit(2);
    }
    return r;
}

static void forget(answer *r) {
    free(r->packet);
    free(r->y);
    free(r->sum);
}

TEST same_bytes(const cg_op *op, const answer *want, const float *x, size_t n, size_t a) {
    /* three different alignments, each taking all 16 values as a does */
    unsigned char *xp = xs + a, *pp = packets + (a * 5 + 3) % ALIGN, *yp = ys + (a * 11 + 7) % ALIGN;
    size_t bound = cg_bound(op, n), need = cg_scratch(op, n), len = 0, i;
    cg_extra direct = beside;
    EXPECT("test buffers too small", bound + 64 < sizeof packets && need + ALIGN < sizeof scratch);
    direct.flags = CG_DECODE_DIRECT;
    memcpy(xp, x, n * 4);
    memset(pp + bound, 0x77, 32);
    EXPECT("compress",
        cg_compress_with(op, &TAG, &beside, (const float *)(const void *)xp, n, pp, bound, &len, scratch + a, need) ==
            CG_OK);
    EXPECT("packet", len == want->len && memcmp(pp, want->packet, len) == 0);
    for (i = 0; i < 32; i++) EXPECT("wrote beyond the packet", pp[bound + i] == 0x77);
    memset(yp, 0xff, n * 4);
    memset(yp + n * 4, 0x77, 32);
    EXPECT("decompress",
        cg_decode(&beside, pp, len, 1, 0, (float *)(void *)yp, n) == CG_OK && memcmp(yp, want->y, n * 4) == 0);
    for (i = 0; i < n; i++) {
        float v = (float)i;
        memcpy(yp + 4 * i, &v, 4);
    }
    EXPECT("decode", cg_decode(a & 1 ? &direct : &beside, pp, len, 0.3f, 0.9f, (float *)(void *)yp, n) == CG_OK);
    EXPECT("sum", memcmp(yp, want->sum, n * 4) == 0);
    for (i = 0; i < 32; i++) EXPECT("wrote beyond y", yp[n * 4 + i] == 0x77);
    PASS();
}

TEST all_lengths(int i, cg_isa isa) {
    static float x[MOST];
    static const size_t larger[] = { 511, 513, 1024, 2047, 2048, 2049, 4095, 4096, 6150, 65533, 65536, 65539 };
    static unsigned turn, lengths;
    size_t n, a, j;
    for (n = 0; n <= 257; n++) {
        cg_op op = op_at(i, BUCKETS[n % 5]);
        answer want;
        ref_fill((ref_kind)(n % REF_KINDS), n, x, n);
        want = scalar_answer(&op, x, n);
        ASSERT_ENUM_EQ(CG_OK, cg_isa_force(isa), ops_status);
        for (a = 0; a < ALIGN; a++)
            if (!spared(&turn, 5)) CHECK_CALL(same_bytes(&op, &want, x, n, a));
        forget(&want);
    }
    for (j = 0; j < sizeof larger / sizeof *larger; j++) {
        cg_op op = op_at(i, BUCKETS[(j + (size_t)i) % 7]);
        answer want;
        if (spared(&lengths, 5)) continue;
        ref_fill((ref_kind)((j + (size_t)i) % REF_KINDS), j, x, larger[j]);
        want = scalar_answer(&op, x, larger[j]);
        ASSERT_ENUM_EQ(CG_OK, cg_isa_force(isa), ops_status);
        for (a = 0; a < (larger[j] < 5000 ? 4u : 1u); a++)
            CHECK_CALL(same_bytes(&op, &want, x, larger[j], (a * 7 + j) % ALIGN));
        forget(&want);
    }
    PASS();
}

/* An operator of golden.h for n values: matrices take another shape. */
static cg_op golden_op(int i, size_t n) {
    cg_op op;
    if (cg_op_parse(&op, golden_cases[i].op) != CG_OK) {
        fprintf(stderr, "%s: does not parse\n", golden_cases[i].op);
        exit(2);
    }
    if (cg_has_(&op, CG_IS_MATRIX_)) {
        size_t rows = 1, d;
        for (d = 1; d * d <= n; d++)
            if (n % d == 0) rows = d;
        op.transform.size = (uint32_t)rows, op.transform.value = (float)(n / rows);
    }
    return op;
}

/* What golden.h has beyond those above, at fewer lengths; scales: as all ranks have agreed on them, and some
   values are far beyond. */
TEST golden_lengths(int i, cg_isa isa, int scales) {
    static const size_t larger[] = { 127, 255, 1023, 1024, 1025, 2047, 2048, 2049, 4099 };
    static float x[4099], agreed[2 * 4099 + 2];
    const int quick = !long_test();
    size_t j, a;
    for (j = 0; j < sizeof agreed / sizeof *agreed; j++)
        agreed[j] = 1e-3f * (float)((j / 2 + 1) % 4) * (scales == 2 && j % 2 == 0 ? -1.0f : 1.0f);
    for (j = 0; j < 71 + sizeof larger / sizeof *larger; j += quick ? 9 : 1) {
        const size_t n = j < 71 ? j : larger[j - 71];
        cg_op op = golden_op(i, n);
        answer want;
        if (n == 0 && cg_has_(&op, CG_IS_MATRIX_)) continue;
        ref_fill((ref_kind)((j + (size_t)i) % REF_KINDS), j, x, n);
        ASSERT(golden_side(&op, &TAG, x, n, &beside) == 0);
        if (scales) beside.scale = agreed;
        want = try_answer(&op, x, n);
        if (want.bad) FAILm(golden_cases[i].op);
        ASSERT_ENUM_EQ(CG_OK, cg_isa_force(isa), ops_status);
        for (a = j % 5; a < ALIGN; a += quick ? 7 : 5) CHECK_CALL(same_bytes(&op, &want, x, n, a));
        forget(&want);
        if (scales) beside.scale = NULL;
        golden_side_done(&beside);
    }
    PASS();
}

/* Vectors larger than the cache, where a kernel may choose other stores: y at several alignments. */
TEST large(int i, cg_isa isa) {
    static const size_t as[] = { 11, 7, 15, 1 }; /* y at 0, 4, 12 and 2 beyond a multiple of 16 */
    static unsigned turn;
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
        if (spared(&turn, 5)) continue;
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

/* ---- kernels: each against plain C, bit for bit, whatever the bits, at every alignment ---- */

/* the longest run; the most that a kernel writes, and what must stay as it was behind it */
enum { LONG = 2056, ROOM = 64 * 1024, EDGE = 32 };

typedef struct trial {
    const unsigned char *in; /* n values and more, as floats or as bytes; at any address */
    size_t n;
    uint32_t r[8]; /* what else there is to choose, the same for all */
    float scale;   /* > 0 */
    int finite;    /* no Inf or NaN among the floats */
} trial;

/* A NaN is a NaN: which, the machine decides. Returns the end of what it looked at. */
static unsigned char *calm_floats(unsigned char *p, size_t n) {
    for (; n; n--, p += 4) {
        uint32_t u;
        memcpy(&u, p, 4);
        if ((u & 0x7fffffffu) > 0x7f800000u) memset(p, 0xff, 4);
    }
    return p;
}

static unsigned char *calm_doubles(unsigned char *p, const double *d, size_t n) {
    memcpy(p, d, 8 * n);
    for (; n; n--, p += 8) {
        uint64_t u;
        memcpy(&u, p, 8);
        if ((u & UINT64_C(0x7fffffffffffffff)) > UINT64_C(0x7ff0000000000000)) memset(p, 0xff, 8);
    }
    return p;
}

static unsigned char *keep(unsigned char *p, const void *what, size_t bytes) {
    memcpy(p, what, bytes);
    return p + bytes;
}

static int rising(const void *pa, const void *pb) {
    float a, b;
    memcpy(&a, pa, 4);
    memcpy(&b, pb, 4);
    return (a > b) - (a < b);
}

/* `many` limits in order: spread evenly, or the data's own, so that values meet them. */
static void limits_of(const trial *t, float *limit, size_t many, int magnitudes) {
    size_t i;
    for (i = 0; i < many; i++) {
        limit[i] = ((float)i - (magnitudes ? -1.0f : (float)many / 2)) * t->scale;
        if (t->r[0] & 1 && t->n) memcpy(limit + i, t->in + 4 * (i * 7 % t->n), 4);
        if (magnitudes) limit[i] = fabsf(limit[i]);
        if (!ref_finite(limit[i])) limit[i] = 1.0f;
    }
    qsort(limit, many, sizeof *limit, rising);
}

static cg_key_ key_of(const trial *t) {
    cg_key_ key;
    key.a = t->r[6];
    key.b = t->r[7];
    key.shift = t->r[5] & 2 ? t->r[4] : 0;
    return key;
}
static const float *floats_of(const trial *t) { return (const float *)(const void *)t->in; }
static int streams(const trial *t, const unsigned char *out) { return t->r[5] & 1 && (uintptr_t)out % 16 == 0; }
static float *floats_at(unsigned char *out) { return (float *)(void *)out; }
static void lanes_of(const trial *t, double *lanes) {
    int i;
    for (i = 0; i < 16; i++) lanes[i] = i % 3 ? (double)(int32_t)t->r[i % 8] : i % 2 ? -0.0 : 0.0;
}

/* Each runs kernel(s) of k over the trial into out, and returns the end of what it says. */
typedef unsigned char *kernel_run(const cg_kernels_ *k, const trial *t, unsigned char *out);
#define KERNEL(name) static unsigned char *run_##name(const cg_kernels_ *k, const trial *t, unsigned char *out)
#define V floats_of(t), t->n

KERNEL(absmax_bits) {
    uint32_t top = k->absmax_bits(V);
    return keep(out, &top, 4);
}
KERNEL(absmax16_bits) {
    uint32_t top = k->absmax16_bits(t->in, t->n);
    return keep(out, &top, 4);
}
KERNEL(count_above) {
    size_t above = 5;
    uint32_t top = k->count_above(V, t->r[1] & 1 ? t->r[0] & 0x7fffffffu : ref_mag(t->scale), &above);
    return keep(keep(out, &above, sizeof above), &top, 4);
}
KERNEL(stream_fence) {
    k->stream_fence(); /* only that it can be called: what it orders no single thread can see */
    return keep(out, &t->n, sizeof t->n);
}
KERNEL(range) {
    float lo_hi[2] = { 1.0f, -1.0f };
    uint32_t top = k->range(V, lo_hi, lo_hi + 1);
    lo_hi[0] = ref_add(lo_hi[0], 0.0f), lo_hi[1] = ref_add(lo_hi[1], 0.0f); /* of a zero the sign does not count */
    if (!t->finite) lo_hi[0] = lo_hi[1] = 0;                                /* nor do they, if top shows a NaN */
    return keep(keep(out, &top, 4), lo_hi, 8);
}
KERNEL(copy) {
    uint32_t top = k->copy(V, out);
    return keep(out + 4 * t->n, &top, 4);
}
KERNEL(f16_encode) {
    uint32_t top = k->f16_encode(V, out);
    return keep(out + 2 * t->n, &top, 4);
}
KERNEL(bf16_encode) {
    uint32_t top = k->bf16_encode(V, out);
    return keep(out + 2 * t->n, &top, 4);
}
KERNEL(sign_encode) {
    double lanes[16];
    int finite;
    lanes_of(t, lanes);
    finite = k->sign_encode(V, out, t->r[0] & 1 ? lanes : NULL) < 0x7f800000u;
    return calm_doubles(keep(out + (t->n + 7) / 8, &finite, sizeof finite), lanes, 16);
}
static cg_levels_ grid_of(const trial *t) {
    float scales[2];
    cg_op op = t->r[0] % 4 == 0 ? cg_minmax((int)(t->r[1] % 8) + 1, 1)
        : t->r[0] % 4 == 1      ? cg_absmax((int)(t->r[1] % 8) + 1, 1)
        : t->r[0] % 4 == 2      ? cg_terngrad()
                                : cg_qsgd((int)(t->r[1] % 127) + 1);
    cg_levels_ q;
    scales[0] = t->r[0] % 4 == 0 ? -t->scale / 3 : t->scale, scales[1] = t->scale;
    if (t->r[2] & 1) op = cg_nearest(op);
    q = cg_levels_make_(&op.quantize, scales);
    if (q.range > 0) q.inv_step = (float)(q.zero_symbol ? q.zero_symbol : q.max_symbol) / q.range;
    return q;
}
KERNEL(levels_encode) {
    cg_levels_ q = grid_of(t);
    k->levels_encode(&q, key_of(t), t->r[3] & 0xffff, V, out);
    return out + t->n;
}
KERNEL(levels_decode) {
    cg_levels_ q = grid_of(t);
    k->levels_decode(&q, t->in, t->n, floats_at(out), streams(t, out));
    k->stream_fence();
    return calm_floats(out, t->n);
}
KERNEL(pack) {
    unsigned bits = t->r[0] % 7 + 1;
    unsigned char symbols[LONG];
    size_t i;
    for (i = 0; i < t->n; i++) symbols[i] = (unsigned char)(t->in[i] & ((1u << bits) - 1));
    k->pack(symbols, t->n, bits, out);
    return out + (t->n * bits + 7) / 8;
}
KERNEL(unpack) {
    k->unpack(t->in, t->n, t->r[0] % 7 + 1, out);
    return out + t->n;
}
KERNEL(filter) {
    static uint32_t index[2048 + CG_SLACK_];
    static float value[2048 + CG_SLACK_];
    size_t n = t->n < 2048 ? t->n : 2048,
           count = k->filter(floats_of(t), n, t->r[0] & 1 ? ref_mag(t->scale) : t->r[1] & 0x7fffffffu,
               t->r[2] & 0xffffffu, index, value);
    return keep(keep(keep(out, &count, sizeof count), index, 4 * count), value, 4 * count);
}
KERNEL(bernoulli) {
    static uint32_t index[2048 + CG_SLACK_];
    static float value[2048 + CG_SLACK_];
    size_t n = t->n < 2048 ? t->n : 2048, count;
    cg_bernoulli_ c;
    c.key = key_of(t), c.threshold = t->scale, c.prescale = t->scale < 1e-30f ? 0x1p+64f : 1,
    c.inv_threshold = 1 / (t->scale * c.prescale);
    count = k->bernoulli(&c, floats_of(t), n, t->r[1] & 0xffff & (t->r[0] & 1 ? ~7u : ~0u), index, value);
    return calm_floats(
        keep(keep(keep(out, &count, sizeof count), index, 4 * count), value, 4 * count) - 4 * count, count);
}
KERNEL(sign_decode) {
    k->sign_decode(t->in, t->n, t->scale, floats_at(out), streams(t, out));
    k->stream_fence();
    return out + 4 * t->n;
}
KERNEL(f16_decode) {
    k->f16_decode(t->in, t->n, floats_at(out), streams(t, out));
    k->stream_fence();
    return calm_floats(out, t->n);
}
KERNEL(bf16_decode) {
    k->bf16_decode(t->in, t->n, floats_at(out), streams(t, out));
    k->stream_fence();
    return calm_floats(out, t->n);
}
KERNEL(move_zero) {
    memcpy(out + 4 * t->n + 64, t->in, 4 * t->n);
    memset(out + 4 * t->n, 0, 64);
    k->move_zero(floats_at(out + 4 * t->n + 64), t->n, floats_at(out), streams(t, out));
    k->stream_fence();
    return out + 8 * t->n + 64;
}
KERNEL(axpby) {
    static const float alpha[] = { 1, 0.3f, -2 }, beta[] = { 0, 1, 0.7f };
    size_t i;
    for (i = 0; i < t->n; i++) {
        float f = (float)i - 40;
        memcpy(out + 4 * i, &f, 4);
    }
    k->axpby(V, alpha[t->r[0] % 3], beta[t->r[1] % 3], floats_at(out), streams(t, out));
    k->stream_fence();
    return calm_floats(out, t->n);
}
KERNEL(axpby_fading) {
    static const float alpha[] = { 1, 0.3f, -2 }, beta[] = { 0, 1, 0.7f, 0.5f };
    double lanes[16];
    size_t i;
    lanes_of(t, lanes);
    /* or around 2^-100 */
    for (i = 0; i < t->n; i++) {
        float f = ((float)i - 40) * (t->r[3] & 1 ? 0x1p-104f : 1.0f);
        memcpy(out + 4 * i, &f, 4);
    }
    k->axpby_fading(V, alpha[t->r[0] % 3], beta[t->r[1] % 4], floats_at(out), (int)(t->r[2] % 4), lanes);
    return calm_doubles(calm_floats(out, t->n), lanes, 16);
}
KERNEL(checksum) {
    cg_checksum_ sum;
    sum.a = t->r[0], sum.b = (uint64_t)t->r[1] << 32, sum.words = 7;
    k->checksum(&sum, t->in, t->n);
    return keep(keep(keep(out, &sum.a, 8), &sum.b, 8), &sum.words, 8);
}
KERNEL(rotate_from) /* always of 1024 values; in place, too */
{
    uint32_t flips[96];
    size_t i;
    for (i = 0; i < 96; i++) flips[i] = t->r[i % 8] * (uint32_t)(2 * i + 1);
    if (t->r[1] & 1) memcpy(out, t->in, 4096);
    k->rotate_from(
        t->r[1] & 1 ? floats_at(out) : floats_of(t), floats_at(out), flips, (int)(t->r[2] % 3) + 1, (int)(t->r[3] & 1));
    return calm_floats(out, 1024);
}
KERNEL(dct) {
    memcpy(out, t->in, 256);
    k->dct(floats_at(out), (int)(t->r[0] & 1));
    return calm_floats(out, 64);
}
KERNEL(lane_sum) {
    double lanes[16];
    lanes_of(t, lanes);
    k->lane_sum(V, (int)(t->r[0] % 5), lanes);
    return calm_doubles(out, lanes, 16);
}
KERNEL(bucketize) {
    cg_bucketizer_ g;
    float centre[8];
    double lanes[16];
    int j;
    lanes_of(t, lanes);
    g.inv_scale = t->r[1] % 3 ? 1.0f : t->scale;
    g.limit_count = (int32_t)(t->r[2] % 8);
    g.sign_bit = (uint8_t)(t->r[3] % 9 ? 1u << (t->r[3] % 9 - 1) : 0);
    limits_of(t, g.limit, (size_t)g.limit_count, 1);
    for (j = g.limit_count; j < 7; j++) g.limit[j] = -1; /* not to be looked at */
    for (j = 0; j < 8; j++) centre[j] = (float)j * 0.3f - 1;
    k->bucketize(&g, V, out, centre, t->r[4] & 1 ? lanes : NULL);
    return calm_doubles(out + t->n, lanes, 16);
}
KERNEL(nf4_search) {
    float limit[15];
    limits_of(t, limit, 15, 0);
    k->nf4_search(limit, t->r[1] % 3 ? 1.0f : t->scale, V, out);
    return out + t->n;
}
KERNEL(table_decode) {
    float table[16];
    memcpy(table, t->in + 5, sizeof table);
    k->table_decode(table, t->in, t->n, floats_at(out), streams(t, out));
    k->stream_fence();
    return calm_floats(out, t->n);
}
KERNEL(fp8_encode) {
    k->fp8_encode(V, t->scale, (int)(t->r[0] & 1), out);
    return out + t->n;
}
KERNEL(fp8_decode) {
    k->fp8_decode(t->in, t->n, t->scale, (int)(t->r[0] & 1), floats_at(out), streams(t, out));
    k->stream_fence();
    return out + 4 * t->n;
}
KERNEL(half_stochastic) {
    uint32_t top = k->half_stochastic(V, key_of(t), t->r[3] & 0xffff, (int)(t->r[0] & 1), out);
    return keep(out + 2 * t->n, &top, 4);
}
KERNEL(fp8_stochastic) {
    k->fp8_stochastic(V, t->scale, (int)(CG_SMALL_E4M3_ + t->r[0] % 3), key_of(t), t->r[3] & 0xffff, out);
    return out + t->n;
}
KERNEL(nf4_stochastic) {
    float value[16];
    limits_of(t, value, 16, 0);
    k->nf4_stochastic(value, t->r[1] % 3 ? 1.0f : t->scale, key_of(t), t->r[3] & 0xffff, V, out);
    return out + t->n;
}
KERNEL(rate_encode) {
    cg_rate_grid_ g;
    g.lift = t->r[0] % 3 == 0 ? 1.0f : t->r[0] % 3 == 1 ? 0x1p100f : 0x1p-100f;
    g.step = t->scale, g.inv = 1.0f / t->scale, g.dead = 0.3f, g.stochastic = (int)(t->r[1] & 1);
    g.keep = t->r[2] % 3 ? UINT32_MAX : t->r[2];
    k->rate_encode(&g, key_of(t), t->r[3] & 0xffff, V, out);
    return out + 2 * t->n;
}
KERNEL(rate_decode) {
    float value[4];
    value[0] = t->scale, value[1] = 1.1f * t->scale, value[2] = -0.3f * t->scale;
    value[3] = t->r[0] % 3 == 0 ? 1.0f : t->r[0] % 3 == 1 ? 0x1p100f : 0x1p-100f;
    if (t->r[1] & 1) {
        memcpy(out + 2 * t->n, t->in, 2 * t->n);
        k->rate_decode(value, out + 2 * t->n, t->n, floats_at(out));
    } else k->rate_decode(value, t->in, t->n, floats_at(out));
    return out + 4 * t->n;
}
KERNEL(cut) {
    const uint32_t limit = t->r[0] % 3 == 0 ? ref_bits(t->scale) & 0x7fffffffu
        : t->r[0] % 3 == 1                  ? t->r[1] & 0x7fffffffu
                                            : 0x7f800000u;
    if (t->r[2] & 1) {
        memcpy(out, t->in, 4 * t->n);
        k->cut(floats_at(out), t->n, limit, floats_at(out));
    } else k->cut(V, limit, floats_at(out));
    return out + 4 * t->n;
}
KERNEL(natural_encode) {
    uint32_t top = k->natural_encode(V, key_of(t), t->r[3] & 0xffff, (int)(t->r[0] & 1), out);
    return keep(out + t->n + (t->n + 7) / 8, &top, 4);
}
KERNEL(natural_decode) {
    k->natural_decode(t->in, t->n, floats_at(out), streams(t, out));
    k->stream_fence();
    return out + 4 * t->n;
}
KERNEL(dither_encode) {
    cg_dither_ q;
    q.inv_scale = t->scale, q.bits = t->r[0] % 7 + 2, q.stochastic = (int)(t->r[1] & 1);
    k->dither_encode(&q, key_of(t), t->r[3] & 0xffff, V, out);
    return out + t->n;
}
KERNEL(dither_decode) {
    k->dither_decode(t->r[0] % 7 + 2, t->scale, t->in, t->n, floats_at(out), streams(t, out));
    k->stream_fence();
    return out + 4 * t->n;
}
KERNEL(dynamic8_encode) /* also right at the limits */
{
    float at[LONG];
    size_t i;
    for (i = 0; i < t->n; i++)
        at[i] = ref_float(ref_bits(cg_dynamic8_limits_[t->in[4 * i] % 127]) + t->in[4 * i + 1] % 3 - 1);
    if (t->r[0] & 1) k->dynamic8_encode(at, t->n, 1, out);
    else k->dynamic8_encode(V, t->scale, out);
    return out + t->n;
}
KERNEL(dynamic8_decode) {
    k->dynamic8_decode(t->in, t->n, t->scale, floats_at(out), streams(t, out));
    k->stream_fence();
    return out + 4 * t->n;
}
KERNEL(strom_encode) {
    k->strom_encode(V, t->r[0] & 1 ? 0.0f : t->scale, out);
    return out + t->n;
}
KERNEL(vote) /* strings that overlap, each at another address */
{
    const uint8_t *strings[300];
    size_t count = t->r[0] % 4 ? t->r[1] % 20 + 1 : t->r[1] % 300 + 1, bytes = t->n < 1000 ? t->n : t->n - 1000, i;
    for (i = 0; i < count; i++) strings[i] = t->in + t->r[i % 8] % 1000 + i;
    k->vote(strings, count, bytes, out);
    return out + bytes;
}
/* a few rows of n columns, as many as project takes; both factors from the same floats */
typedef struct shape {
    size_t rows, cols, stride, q_stride;
    unsigned rank;
} shape;
static shape shape_of(const trial *t) {
    shape s;
    s.cols = t->n < 512 ? t->n : t->n % 512 + 1;
    s.rank = t->r[0] % 3 ? t->r[1] % 6 + 1 : t->r[1] % 12 + 1;
    s.rows = t->r[2] % 11;
    s.stride = s.cols ? t->r[3] % 3 ? (LONG - s.cols) / 12 + 1 : s.cols : 1;
    if (s.stride < s.cols) s.stride = s.cols;
    while (s.rows > 1 && (s.rows - 1) * s.stride + s.cols > LONG) s.rows--;
    s.q_stride = s.cols + t->r[4] % 4;
    return s;
}
KERNEL(project) {
    static double q[12 * 515 + 4], p[12 * 12];
    const shape s = shape_of(t);
    size_t i;
    for (i = 0; i < s.rank * s.q_stride; i++) q[i] = (double)cg_load_(floats_of(t), i * 5 % LONG);
    for (i = 0; i < 12 * 12; i++) p[i] = i % 3 ? 0.0 : (double)i;
    k->project(floats_of(t), s.stride, s.rows, s.cols, q, s.q_stride, s.rank, p, 12, t->r[5] & 1 ? floats_of(t) : NULL);
    return calm_doubles(out, p, 12 * 12);
}
KERNEL(project_t) {
    static double q[12 * 515 + 4];
    const shape s = shape_of(t);
    const size_t p_stride = s.rank + (t->r[6] & 1), all = s.rank * s.q_stride;
    size_t i;
    for (i = 0; i < all + 4; i++) q[i] = i % 3 ? 0.0 : (double)i;
    k->project_t(floats_of(t), s.stride, s.rows, s.cols, cg_at_(floats_of(t), 77), p_stride, s.rank, q, s.q_stride,
        t->r[5] & 1 ? floats_of(t) : NULL);
    return calm_doubles(out, q, all + 4);
}
KERNEL(lowrank_tile) {
    const shape s = shape_of(t);
    const int stream = streams(t, out);
    const size_t out_stride = stream ? (s.cols + 3) / 4 * 4 : s.cols + t->r[6] % 3, q_stride = (LONG - s.cols) / s.rank;
    size_t rows = s.rank * s.rows < 1900 ? s.rows : 2;
    if (s.rank * q_stride + s.cols > LONG || !s.cols) return out;
    while (rows * out_stride > ROOM / 4 - 64) rows--;
    k->lowrank_tile(
        cg_at_(floats_of(t), 99), floats_of(t), q_stride, s.rank, rows, s.cols, floats_at(out), out_stride, stream);
    k->stream_fence();
    return out + (rows ? 4 * ((rows - 1) * out_stride + s.cols) : 0);
}
/* what Huffman codes of floats take apart and put together */
KERNEL(exponents) {
    k->exponents(t->r[0] & 1 ? 4 : 2, t->in, t->n, out);
    return out + t->n;
}
KERNEL(sign_mantissas) {
    const unsigned width = t->r[0] & 1 ? 4 : 2;
    k->sign_mantissas(width, t->in, t->n, out);
    return out + (width - 1) * t->n;
}
KERNEL(floats_join) {
    const unsigned width = t->r[0] & 1 ? 4 : 2;
    k->floats_join(width, t->in + 3, t->in + t->n + 5, t->n, out);
    return out + width * t->n;
}
/* An Elias-Fano section or a bitmap of n indices, right or with some bits wrong; at the end of its own memory, so that
   a sanitizer sees what is read beyond it. */
typedef struct section {
    uint8_t *bytes;
    cg_index_bits_ bits;
    uint64_t universe;
} section;
static section section_of(const trial *t) {
    section s;
    const unsigned low_bits = t->r[0] % 5 ? t->r[1] % 31 : t->r[1] % 57;
    const uint64_t k = t->n, gap = t->r[2] % 4 + 1;
    uint64_t at = 0, high = 0, i;
    size_t low_bytes = 0, high_bytes;
    unsigned b;
    memset(&s, 0, sizeof s);
    s.bits.bitmap = t->r[3] % 4 == 0;
    s.bits.low_bits = s.bits.bitmap ? 0 : low_bits;
    s.universe = s.bits.bitmap ? gap * k + 1 : (gap * k + 1) << low_bits;
    if (!s.bits.bitmap) low_bytes = (size_t)cg_word_bytes_(k * low_bits);
    high_bytes = (size_t)cg_word_bytes_(s.bits.bitmap ? s.universe : k + (s.universe >> low_bits) + 1);
    s.bytes = (uint8_t *)ref_alloc(low_bytes + high_bytes);
    memset(s.bytes, 0, low_bytes + high_bytes);
    for (i = 0; i < k; i++) {
        const uint32_t r = ref_bits(cg_load_(floats_of(t), i % LONG));
        const uint64_t mask = ((uint64_t)1 << low_bits) - 1, /* ascending, mostly */
            low = (t->r[4] & 4 ? i : (uint64_t)r << 29 ^ i * 40503u) & mask;
        const uint64_t next = high + (r % 3 == 0 && !s.bits.bitmap ? 0 : 1 + (r >> 8) % gap);
        if (next < (s.bits.bitmap ? s.universe : (s.universe >> low_bits) + 1)) high = next;
        if (s.bits.bitmap) s.bytes[high / 8] |= (uint8_t)(1u << high % 8);
        else s.bytes[low_bytes + (size_t)((high + i) / 8)] |= (uint8_t)(1u << (high + i) % 8);
        for (b = 0; !s.bits.bitmap && b < low_bits; b++, at++)
            s.bytes[at / 8] = (uint8_t)(s.bytes[at / 8] | (low >> b & 1) << at % 8);
    }
    if (t->r[4] % 3 == 0 && low_bytes + high_bytes)
        s.bytes[t->r[5] % (low_bytes + high_bytes)] ^= (uint8_t)(1u << t->r[6] % 8);
    s.bits.low_part = s.bytes;
    s.bits.next_high = s.bytes + low_bytes;
    s.bits.end = s.bytes + low_bytes + high_bytes;
    s.bits.bit_base = (uint64_t)0 - 64;
    return s;
}
KERNEL(index_get) {
    section s = section_of(t);
    uint64_t index[LONG];
    size_t many, most = 0;
    while (most < LONG && (many = k->index_get(&s.bits, index + most, 1 + (t->r[7] + most) % 100 % (LONG - most))) != 0)
        most += many;
    free(s.bytes);
    return keep(out, index, 8 * most);
}
KERNEL(index_check) {
    section s = section_of(t);
    uint64_t next = 0;
    int ok = k->index_check(&s.bits, t->n + (t->r[7] % 9 == 0), s.universe, &next);
    free(s.bytes);
    if (!ok) next = 0;
    return keep(keep(out, &ok, sizeof ok), &next, 8);
}
/* Rows of a sketch over the same cells, which are kept at the start of out. */
static int lines_of(const trial *t, float *cells, cg_line_target_ *p) {
    const int rows = (int)(t->r[0] % CG_SKETCH_MAX_ROWS_) + 1;
    int r;
    for (r = 0; r < CG_SKETCH_MAX_ROWS_ * 256; r++) cells[r] = ref_float(t->r[r % 8] >> 2) * (r & 1 ? -1.0f : 1.0f);
    for (r = 0; r < rows; r++) {
        p[r].cells = cells + 256 * r;
        p[r].xor_mask = (t->r[1] >> r) & 255u;
        p[r].sign_key.a = t->r[r % 8] * 3u;
        p[r].sign_key.b = t->r[(r + 1) % 8];
        p[r].sign_key.shift = 0;
        p[r].prefetch = p[r].cells;
    }
    return rows;
}
static size_t line_length(const trial *t) { return t->n < 256 && t->r[2] & 1 ? t->n : 256; }
KERNEL(line_add) {
    static float cells[CG_SKETCH_MAX_ROWS_ * 256];
    cg_line_target_ p[CG_SKETCH_MAX_ROWS_];
    const int rows = lines_of(t, cells, p);
    k->line_add(p, rows, floats_of(t), line_length(t), t->scale);
    memcpy(out, cells, sizeof cells);
    return calm_floats(out, CG_SKETCH_MAX_ROWS_ * 256);
}
KERNEL(line_project) {
    static float cells[CG_SKETCH_MAX_ROWS_ * 256];
    cg_line_target_ p[CG_SKETCH_MAX_ROWS_];
    float sum;
    lines_of(t, cells, p);
    sum = k->line_project(p, floats_of(t), line_length(t), t->scale);
    return calm_floats(keep(out, &sum, 4) - 4, 1);
}
KERNEL(line_estimate) {
    static float cells[CG_SKETCH_MAX_ROWS_ * 256];
    cg_line_target_ p[CG_SKETCH_MAX_ROWS_];
    const int rows = lines_of(t, cells, p);
    const unsigned from = t->r[3] % (unsigned)rows,
                   to = t->r[4] & 1 ? from + 1 : (unsigned)rows; /* these rows or one */
    unsigned i;
    for (i = 256 * from; i < 256 * to; i++) cells[i] = cg_load_(floats_of(t), i % LONG);
    k->line_estimate(p, rows, line_length(t), floats_at(out));
    return calm_floats(out, line_length(t));
}

/* Every kernel of the table: one without a run_ above does not compile. */
static const struct {
    const char *name;
    kernel_run *run;
} kernels[] = {
#define ROW(result, name, parameters, arguments) { #name, run_##name },
    CG_KERNEL_LIST_(ROW)
};
/* The fewest values of those that take a whole block, and whether Inf and NaN are out of their contract. */
static size_t least_of(kernel_run *run) { return run == run_rotate_from ? 1024 : run == run_dct ? 64 : 0; }
static int finite_only(kernel_run *run) {
    return run == run_levels_encode || run == run_project || run == run_project_t || run == run_lowrank_tile;
}
enum { KERNELS = (int)(sizeof kernels / sizeof kernels[0]), KERNEL_KINDS = 6 };

/* Ordinary values; what lies at the edges; any finite; small whole numbers (ties); around 1; any bits at all. */
static uint32_t nasty_bits(int kind, uint64_t *state) {
    static const uint32_t edges[] = { 0, 0x80000000u, 1, 0x80000001u, 0x7fffff, 0x807fffffu, 0x800000, 0x80800000u,
        0x7f7fffff, 0xff7fffffu, 0x3f800000, 0xbf800000u, 0x3f000000, 0x3f7fffff, 0x3f800001, 0x400000, 0x80400000u,
        0x34000000, 0x4b000000, 0x7e800000, 0x477fe000, 0x43e80000, 0xc3e7ffffu };
    uint32_t r = ref_rand(state);
    switch (kind) {
    case 0: return ref_bits((float)(ref_normal(state) * 0.1));
    case 1: return edges[r % (sizeof edges / sizeof *edges)];
    case 2: return (r & 0x7f800000u) == 0x7f800000u ? r ^ 0x40000000u : r;
    case 3: return ref_bits((float)((int)(r % 17) - 8));
    /* half of them short: ties */
    case 4:
        return ((r & 0x80ffffffu) + 0x3b000000u + ((r >> 24 & 7) << 23)) &
            (r & 0x40000000u ? 0xfff80000u : 0xffffffffu);
    default: return r % 9 ? r : 0x7f800000u | (r & 0x80000000u) | (r >> 20 & 1) << 22;
    }
}

TEST kernel(int which, const cg_kernels_ *simd) {
    static const float scales[] = { 1, 0.37f, 3.1e38f, 1e-38f, 1e-44f, 7e35f, 448, 1e-30f, 0.125f, 3 };
    static unsigned char in[ALIGN + 4 * LONG + 8 * ALIGN], outs[2][ROOM + 2 * ALIGN + EDGE];
    const int quick = !long_test();
    uint64_t state = (uint64_t)which + 1;
    const cg_fenv_ env = cg_fenv_enter_(); /* as everywhere inside the library */
    int round;
    for (round = 0; round < 258 + 17; round++) {
        size_t n = round < 258 ? (size_t)round : (size_t)(2040 + round - 258), a;
        for (a = quick ? n % 5 : 0; a < ALIGN; a += quick ? 5 : 1) {
            const size_t to = (a * 5 + 3 * n + 3) % ALIGN;
            const int kind = (int)((n + a + (n >> 4)) % KERNEL_KINDS);
            unsigned char *out[2];
            trial t;
            size_t bytes[2], i;
            int side, same;
            t.finite = kind != 5;
            if (!t.finite && finite_only(kernels[which].run)) continue;
            for (i = 0; i < 2 * ALIGN; i++) in[i] = in[sizeof in - 1 - i] = (unsigned char)ref_rand(&state);
            for (i = 0; i < LONG; i++) {
                uint32_t u = nasty_bits(kind, &state);
                memcpy(in + a + 4 * i, &u, 4);
            }
            for (i = 0; i < 8; i++) t.r[i] = ref_rand(&state);
            t.in = in + a;
            t.n = n < least_of(kernels[which].run) ? least_of(kernels[which].run) : n;
            t.scale = scales[ref_rand(&state) % 10];
            for (side = 0; side < 2; side++) {
                out[side] = outs[side] + (ALIGN - (uintptr_t)outs[side] % ALIGN) + to;
                memset(outs[side], 0x77, sizeof outs[side]);
                bytes[side] =
                    (size_t)(kernels[which].run(side ? simd : &cg_kernels_scalar_, &t, out[side]) - out[side]);
            }
            same = bytes[0] == bytes[1] && memcmp(out[0] - to, out[1] - to, to + bytes[0] + EDGE) == 0;
            for (i = 0; i < EDGE; i++) same = same && out[1][bytes[1] + i] == 0x77;
            for (i = 0; i < to; i++) same = same && *(out[1] - to + i) == 0x77;
            if (!same) {
                cg_fenv_leave_(env);
                snprintf(note, sizeof note, "%s on %s: n = %lu, from %lu, to %lu, values of kind %d",
                    kernels[which].name, cg_isa_name(simd->isa), (unsigned long)n, (unsigned long)a, (unsigned long)to,
                    kind);
                FAILm(note);
            }
        }
    }
    cg_fenv_leave_(env);
    PASS();
}

/* ---- the environment ---- */

typedef struct environment {
    int rounding;
    unsigned control;
} environment;

static environment environment_now(void) {
    environment e;
    e.rounding = fegetround();
    e.control = 0;
#if HAVE_MXCSR
    e.control = _mm_getcsr() & 0xffc0u; /* masks, rounding, FTZ and DAZ, but not the sticky flags */
#elif defined(__aarch64__) && defined(__GNUC__)
    {
        unsigned long v;
        __asm__ volatile("mrs %0, fpcr" : "=r"(v));
        e.control = (unsigned)v;
    }
#endif
    return e;
}

/* 0 if there is no such setting here. Bit 2 of which: flush denormals; the low bits: the rounding mode. */
static int environment_set(int which) {
    static const int mode[] = { FE_TONEAREST,
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

static void environment_reset(void) {
    fesetround(FE_TONEAREST);
#if HAVE_MXCSR
    _mm_setcsr(0x1f80u);
#elif defined(__aarch64__) && defined(__GNUC__)
    __asm__ volatile("msr fpcr, %0" : : "r"(0ul));
#endif
}

TEST same_bytes_in(int which, cg_isa isa) {
    static const ref_kind kinds[] = { REF_DENORMALS, REF_GAUSSIAN, REF_HUGE };
    static float x[2100], y[2100], sum[2100];
    static uint16_t half[2100], want_half[2100];
    static unsigned turn;
    size_t n = 2100, a = (size_t)which, i;
    int o, kd;
    for (o = 0; o < OPS + GOLDEN_CASES; o++)
        for (kd = 0; kd < 3; kd++) {
            cg_op held = o < OPS ? op_at(o, 64) : golden_op(o - OPS, n), *op = &held;
            cg_status s1, s2, s3;
            environment before, after;
            answer want;
            ops_packet pk;
            if ((o >= OPS && golden_cases[o - OPS].n != GOLDEN_N) || spared(&turn, 5)) continue;
            ref_fill(kinds[kd], 3, x, n);
            ASSERT(golden_side(op, &TAG, x, n, &beside) == 0);
            want = try_answer(op, x, n);
            if (want.bad) FAILm(ops_text(op));
            cg_f16_from_f32(x, n, want_half);
            ASSERT_ENUM_EQ(CG_OK, cg_isa_force(isa), ops_status);
            for (i = 0; i < n; i++) sum[i] = (float)i;
            if (!environment_set(which)) {
                environment_reset();
                forget(&want);
                SKIPm("no such floating-point setting");
            }
            before = environment_now();
            pk = ops_pack_cap(op, &TAG, &beside, x, n, cg_bound(op, n));
            s1 = pk.status;
            s2 = cg_decode(&beside, want.packet, want.len, 1, 0, y, n);
            s3 = cg_decode(&beside, want.packet, want.len, 0.3f, 0.9f, sum, n);
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
            golden_side_done(&beside);
        }
    PASS();
}

/* A result larger than the cache is streamed, if it is aligned: the same floats as into one that is not. */
TEST streamed(const char *text, cg_isa isa) {
    const size_t n = ((size_t)1 << 22) + 13;
    float *v = (float *)ref_alloc(4 * n), *y = (float *)ref_alloc(4 * n + 64), *z = (float *)ref_alloc(4 * n + 64),
          *aligned = y, *off = z + 1;
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
TEST sizes_and_texts_in(int which) {
    cg_op want, got, tiny = cg_topk(1e-40f), ratio = cg_topk(0.3f);
    char text[2][128];
    size_t bound[2], room[2];
    cg_op level = cg_threshold(1e-40f);
    ASSERT_ENUM_EQ(CG_OK, cg_op_parse(&want, "topk:0.01|absmax:4:512"), ops_status);
    ASSERT_ENUM_EQ(CG_OK, cg_op_print(&level, text[0], sizeof text[0]), ops_status);
    bound[0] = cg_bound(&tiny, 1000) + cg_bound(&ratio, (size_t)1 << 25);
    room[0] = cg_scratch(&ratio, ((size_t)1 << 25) + 1);
    if (!environment_set(which)) {
        environment_reset();
        SKIPm("no such floating-point setting");
    }
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

TEST environment_survives_errors(cg_isa isa) {
    float x[4] = { 1, 2, 3, 4 }, y[4];
    cg_op held = cg_absmax(4, 2), *op = &held, bad = cg_absmax(0, 2);
    size_t n = 4, a = 0, len;
    unsigned char packet[256];
    environment before, after;
    ASSERT_ENUM_EQ(CG_OK, cg_isa_force(isa), ops_status);
    x[3] = ref_float(0x7f800000u);
    memset(packet, 1, sizeof packet);
    if (!environment_set(5)) {
        environment_reset();
        SKIPm("no such floating-point setting");
    }
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

TEST force_and_name(void) {
    int isa;
    ASSERT(cg_isa_found(CG_ISA_SCALAR));
    for (isa = CG_ISA_SCALAR; isa <= CG_ISA_WASM; isa++) {
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

SUITE(isa) {
    int which, i;
    RUN_TEST(force_and_name);
    for (which = CG_ISA_SCALAR; which <= CG_ISA_WASM; which++)
        for (i = 0; cg_isa_found((cg_isa)which) && i < GOLDEN_CASES; i++) {
            cg_op op = golden_op(i, 1);
            if (golden_cases[i].n != GOLDEN_N) continue;
            RUN_TESTp(golden_lengths, i, (cg_isa)which, 0);
            if (cg_quantizer_of_(&op.quantize)->scale_count && !(cg_op_traits_(&op) & CG_OWNS_SCALES_))
                RUN_TESTp(golden_lengths, i, (cg_isa)which, cg_quantizer_of_(&op.quantize)->scale_count);
        }
    for (which = CG_ISA_SCALAR; which <= CG_ISA_WASM; which++) {
        if (!cg_isa_found((cg_isa)which)) continue;
        for (i = 0; i < OPS; i++) RUN_TESTp(all_lengths, i, (cg_isa)which);
        for (i = 0; i < OPS; i += i < 5 ? 1 : 5) RUN_TESTp(large, i, (cg_isa)which);
    }
}

SUITE(large_results) {
    static const char *const texts[] = { "dense", "f16", "bf16", "sign", "efsign", "terngrad", "absmax:8:512",
        "absmax:4:101", "minmax:3:64", "topk:0.01", "topk:0.3|f16", "threshold:2", "randk:0.1",
        "randk:0.5|topk:0.1|absmax:4:64" };
    size_t i;
    int which;
    for (which = CG_ISA_SCALAR; which <= CG_ISA_WASM; which++)
        for (i = 0; cg_isa_found((cg_isa)which) && i < sizeof texts / sizeof *texts; i += long_test() ? 1 : 6)
            RUN_TESTp(streamed, texts[i], (cg_isa)which);
}

SUITE(fp_environment) {
    int which, setting;
    for (setting = 0; setting < 8; setting++) RUN_TEST1(sizes_and_texts_in, setting);
    for (which = CG_ISA_SCALAR; which <= CG_ISA_WASM; which++) {
        if (!cg_isa_found((cg_isa)which)) continue;
        for (setting = 0; setting < 8; setting++) RUN_TESTp(same_bytes_in, setting, (cg_isa)which);
        RUN_TEST1(environment_survives_errors, (cg_isa)which);
    }
}

/* Code that was compiled, for a CPU that this is not. */
TEST not_here(cg_isa isa) {
    snprintf(note, sizeof note, "this CPU has no %s: its kernels are not tested", cg_isa_name(isa));
    SKIPm(note);
}

SUITE(every_kernel) {
    int which, i;
    for (which = CG_ISA_AVX2; which <= CG_ISA_WASM; which++) {
        if (cg_kernels_of_((cg_isa)which) && !cg_isa_found((cg_isa)which)) RUN_TEST1(not_here, (cg_isa)which);
        if (cg_isa_force((cg_isa)which) != CG_OK) continue;
        for (i = 0; i < KERNELS; i++) RUN_TESTp(kernel, i, cg_kernels_now_());
    }
}

GREATEST_MAIN_DEFS();

int main(int argc, char **argv) {
    GREATEST_MAIN_BEGIN();
    RUN_SUITE(every_kernel);
    RUN_SUITE(isa);
    RUN_SUITE(large_results);
    RUN_SUITE(fp_environment);
    GREATEST_MAIN_END();
}
