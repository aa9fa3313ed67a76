/* What bad input gets: an error that says which, nothing written where it must not be, y untouched. */
#define COMPGRAD_IMPLEMENTATION
#include "compgrad.h"
#include "ref.h"
#include "ops.h"
#include "greatest.h"
#include "tier.h"

static const cg_tag TAG = { 11, 22, 33, 44 };
static char note[256];
/* of the bits that are flipped; not CG_TEST=long: every 5th, so that all places in a byte have their turn */
static size_t stride = 1;

#define EXPECT(what, cond)                                                                  \
  do {                                                                                      \
    if (!(cond)) {                                                                          \
      snprintf(note, sizeof note, "%s: %s, at %lu", what, ops_text(op), (unsigned long)at); \
      FAILm(note);                                                                          \
    }                                                                                       \
  } while (0)

/* The families: every sample, selection, code and kind of quantizer, though not every number of bits. */
static const int FAMILY[] = { 0, 1, 2, 3, 4, 5, 7, 9, 14, 15, 18, 22 };
enum { QUANTIZERS = sizeof FAMILY / sizeof *FAMILY, FAMILIES = OPS_SAMPLES * (1 + 2 * 2) * QUANTIZERS };

static cg_op family(int i) {
    int q = i % QUANTIZERS, t = i / QUANTIZERS % 5, s = i / QUANTIZERS / 5;
    return ops_compose(s, t == 0 ? 0 : 1 + (t - 1) / 2, t == 0 ? 0 : 1 + (t - 1) % 2, FAMILY[q], 6);
}

/* ---- decoding into guarded memory ---- */

enum { MAX_N = 512, GUARD = 64 };
static float guarded[MAX_N + 2 * GUARD], before[MAX_N + 2 * GUARD];
static float *const y = guarded + GUARD;

static void prepare(void) {
    size_t i;
    for (i = 0; i < MAX_N + 2 * GUARD; i++) guarded[i] = before[i] = (float)i * 0.5f - 17.0f;
}

static int guards_hold(size_t n) {
    return memcmp(guarded, before, GUARD * 4) == 0 && memcmp(y + n, before + GUARD + n, (MAX_N + GUARD - n) * 4) == 0;
}

static int untouched(void) { return memcmp(guarded, before, sizeof guarded) == 0; }

/* Every way of decoding gives the same verdict; y is touched only by CG_OK, DIRECT excepted, and only in
   [0,n). The packet is copied to memory of exactly its length, so that a sanitizer sees reads beyond it. */
TEST decode_safely(const cg_op *op, const unsigned char *packet, size_t len, size_t n, size_t at, cg_status *verdict) {
    unsigned char *p = (unsigned char *)malloc(len ? len : 1);
    cg_extra direct = CG_ZERO;
    cg_info info;
    cg_status s;
    size_t i;
    direct.flags = CG_DECODE_DIRECT;
    memcpy(p, packet, len);
    prepare();
    *verdict = cg_decompress(p, len, y, n);
    EXPECT("y outside [0,n) written", guards_hold(n));
    if (*verdict != CG_OK) EXPECT("y written in spite of an error", untouched());
    else
        for (i = 0; i < n; i++) EXPECT("y not finite", ref_finite(y[i]));
    prepare();
    s = cg_decode(NULL, p, len, 0.5f, 0.5f, y, n);
    EXPECT("cg_decode judges otherwise", s == *verdict && guards_hold(n) && (s == CG_OK || untouched()));
    prepare();
    s = cg_decode(&direct, p, len, 1.0f, 1.0f, y, n);
    EXPECT("CG_DECODE_DIRECT judges otherwise", s == *verdict && guards_hold(n));
    prepare();
    s = cg_clear(p, len, y, n);
    EXPECT("cg_clear", guards_hold(n) && (s == CG_OK || untouched()) && (*verdict != CG_OK || s == CG_OK));
    s = cg_inspect(p, len, &info);
    EXPECT("cg_inspect refuses what decodes", *verdict != CG_OK || s == CG_OK);
    free(p);
    PASS();
}

static int is_damage(cg_status s) { return s == CG_E_CORRUPT || s == CG_E_VERSION || s == CG_E_MISMATCH; }

static ops_packet sample_packet(const cg_op *op, size_t n) {
    float x[MAX_N];
    ref_fill(REF_LAPLACE, n, x, n);
    return ops_pack(op, &TAG, x, n);
}

/* ---- arguments ---- */

/* What no operator uses yet must not be ignored in silence. */
TEST side_that_nobody_uses(void) {
    float x[4] = { 1, 2, 3, 4 }, out[4] = { 0 };
    unsigned char packet[512];
    size_t len;
    cg_op op = cg_f16();
    cg_extra aux = CG_ZERO, scale = CG_ZERO, support = CG_ZERO, flags = CG_ZERO;
    const cg_extra *sides[4];
    int i;
    aux.aux = x;
    scale.scale = x;
    support.support = x;
    flags.flags = 1u << 31;
    sides[0] = &aux;
    sides[1] = &scale;
    sides[2] = &support;
    sides[3] = &flags;
    for (i = 0; i < 4; i++) {
        cg_status want = i < 3 ? CG_E_UNSUPPORTED : CG_E_ARG;
        ASSERT_ENUM_EQ(
            want, cg_compress_with(&op, NULL, sides[i], x, 4, packet, sizeof packet, &len, NULL, 0), ops_status);
        ASSERT_ENUM_EQ(CG_OK, cg_compress(&op, NULL, x, 4, packet, sizeof packet, &len, NULL, 0), ops_status);
        if (i == 3) ASSERT_ENUM_EQ(want, cg_decode(sides[i], packet, len, 1, 0, out, 4), ops_status);
        ASSERT(out[0] == 0 && out[3] == 0);
        /* of no use, and no harm */
        if (i < 3) ASSERT_ENUM_EQ(CG_OK, cg_decode(sides[i], packet, len, 0, 0, out, 4), ops_status);
    }
    PASS();
}

TEST null_arguments(void) {
    static unsigned char packet[1024], scratch[2u << 20];
    float x[16] = { 1 };
    size_t len = 7, need;
    cg_op op = cg_topk(0.5f);
    cg_info info;
#define COMPRESS(op_, x_, n_, p_, len_, s_) cg_compress(op_, NULL, x_, n_, p_, sizeof packet, len_, s_, sizeof scratch)
    ASSERT_ENUM_EQ(CG_E_ARG, COMPRESS(NULL, x, 16, packet, &len, scratch), ops_status);
    ASSERT_EQ_FMT(0u, (unsigned)len, "%u");
    ASSERT_ENUM_EQ(CG_E_ARG, COMPRESS(&op, NULL, 16, packet, &len, scratch), ops_status);
    ASSERT_ENUM_EQ(CG_E_ARG, COMPRESS(&op, x, 16, NULL, &len, scratch), ops_status);
    ASSERT_ENUM_EQ(CG_E_ARG, COMPRESS(&op, x, 16, packet, NULL, scratch), ops_status);
    ASSERT(COMPRESS(&op, x, 16, packet, &len, NULL) != CG_OK);
    ASSERT_ENUM_EQ(CG_OK, COMPRESS(&op, x, 16, packet, &len, scratch), ops_status);
    need = cg_scratch(&op, 16);
    ASSERT(need > 0 && need <= sizeof scratch);
    ASSERT_ENUM_EQ(
        CG_E_CAPACITY, cg_compress(&op, NULL, x, 16, packet, sizeof packet, &len, scratch, need - 1), ops_status);
    ASSERT_EQ_FMT(0u, (unsigned)len, "%u");
    ASSERT_ENUM_EQ(
        CG_OK, cg_compress(&op, NULL, x, 16, packet, sizeof packet, &len, scratch, sizeof scratch), ops_status);
    ASSERT_ENUM_EQ(CG_E_ARG, cg_decompress(NULL, len, x, 16), ops_status);
    ASSERT_ENUM_EQ(CG_E_ARG, cg_decompress(packet, len, NULL, 16), ops_status);
    ASSERT_ENUM_EQ(CG_E_ARG, cg_decompress_add(packet, len, 1, NULL, 16), ops_status);
    ASSERT_ENUM_EQ(CG_E_ARG, cg_decode(NULL, NULL, len, 1, 1, x, 16), ops_status);
    ASSERT_ENUM_EQ(CG_E_ARG, cg_clear(NULL, len, x, 16), ops_status);
    ASSERT_ENUM_EQ(CG_E_ARG, cg_clear(packet, len, NULL, 16), ops_status);
    ASSERT_ENUM_EQ(CG_E_ARG, cg_inspect(NULL, len, &info), ops_status);
    ASSERT_ENUM_EQ(CG_E_ARG, cg_inspect(packet, len, NULL), ops_status);
    PASS();
}

TEST empty_vector(int i) {
    cg_op fam = family(i), *op = &fam;
    size_t at = 0, cap = cg_bound(op, 0), len = 1, need = cg_scratch(op, 0);
    unsigned char *packet = (unsigned char *)ref_alloc(cap), *scratch = (unsigned char *)ref_alloc(need);
    float one = 5.0f;
    EXPECT("bound", cap >= CG_HEADER_BYTES);
    EXPECT("compress", cg_compress(op, &TAG, NULL, 0, packet, cap, &len, need ? scratch : NULL, need) == CG_OK);
    EXPECT("decompress", cg_decompress(packet, len, NULL, 0) == CG_OK);
    EXPECT("add", cg_decompress_add(packet, len, 2, &one, 0) == CG_OK && one == 5.0f);
    EXPECT("clear", cg_clear(packet, len, NULL, 0) == CG_OK);
    EXPECT("another n", cg_decompress(packet, len, &one, 1) == CG_E_MISMATCH && one == 5.0f);
    free(packet);
    free(scratch);
    PASS();
}

TEST small_capacity(int i) {
    cg_op fam = family(i), *op = &fam;
    float x[37];
    size_t at = 0, bound = cg_bound(op, 37);
    ops_packet full;
    ref_fill(REF_LAPLACE, 37, x, 37);
    full = ops_pack(op, &TAG, x, 37);
    EXPECT("compress", full.status == CG_OK);
    for (at = 0; at < bound; at++) {
        ops_packet pk = ops_pack_cap(op, &TAG, NULL, x, 37, at);
        EXPECT("wrote beyond cap", !pk.touched);
        if (at < full.len) EXPECT("capacity", pk.status == CG_E_CAPACITY && pk.len == 0);
        else
            EXPECT(
                "capacity", (pk.status == CG_E_CAPACITY && pk.len == 0) || (pk.status == CG_OK && pk.len == full.len));
        free(pk.p);
    }
    free(full.p);
    PASS();
}

TEST nonfinite(int i) {
    static const uint32_t worst[] = { 0x7fc00000u, 0xff800000u, 0x7f800001u, 0x7f800000u };
    static const size_t sizes[] = { 1, 9, 35 };
    cg_op fam = family(i), *op = &fam;
    size_t s, at;
    for (s = 0; s < 3; s++)
        for (at = 0; at < sizes[s]; at++) {
            float x[64];
            size_t len = 0;
            ops_packet pk;
            unsigned char *want;
            ref_fill(REF_LAPLACE, 3, x, sizes[s]);
            memcpy(&x[at], &worst[at % 4], 4);
            want = ref_compress(op, &TAG, x, sizes[s], &len); /* NULL if the value would be sent */
            EXPECT("reference", op->sample.id || !want);
            pk = ops_pack(op, &TAG, x, sizes[s]);
            EXPECT("status", pk.status == (want ? CG_OK : CG_E_NONFINITE));
            EXPECT("len", pk.len == len && !pk.touched);
            if (want) EXPECT("packet", memcmp(want, pk.p, len) == 0);
            free(want);
            free(pk.p);
        }
    PASS();
}

/* In long vectors too: kernels check whole chunks, and the tail apart. */
TEST nonfinite_long(int q) {
    static float x[5000];
    cg_op quantizer = ops_quantizer(q, 64), *op = &quantizer;
    size_t at;
    ref_fill(REF_GAUSSIAN, 3, x, 5000);
    for (at = 0; at < 5000; at += at < 4950 && at > 40 ? 61 : 1) {
        float old = x[at];
        ops_packet pk;
        x[at] = ref_float(at & 1 ? 0x7f800000u : 0xffc00001u);
        pk = ops_pack(op, &TAG, x, 5000);
        EXPECT("status", pk.status == CG_E_NONFINITE && pk.len == 0 && !pk.touched);
        free(pk.p);
        x[at] = old;
    }
    PASS();
}

/* ---- damaged packets ---- */

TEST truncated_and_extended(int i) {
    cg_op fam = family(i), *op = &fam;
    ops_packet pk = sample_packet(op, 33);
    unsigned char *longer = (unsigned char *)ref_alloc(pk.len + 9);
    cg_info info;
    cg_status s;
    size_t at;
    for (at = 0; at < pk.len; at++) {
        CHECK_CALL(decode_safely(op, pk.p, at, 33, at, &s));
        EXPECT("truncated", s == CG_E_CORRUPT);
        if (at < CG_HEADER_BYTES) EXPECT("inspect", cg_inspect(pk.p, at, &info) == CG_E_CORRUPT);
    }
    memcpy(longer, pk.p, pk.len);
    for (at = pk.len + 1; at <= pk.len + 9; at++) {
        CHECK_CALL(decode_safely(op, longer, at, 33, at, &s));
        EXPECT("trailing bytes", s == CG_E_CORRUPT);
        ref_seal(longer, at);
        CHECK_CALL(decode_safely(op, longer, at, 33, at, &s));
        EXPECT("trailing bytes, sealed", s == CG_E_CORRUPT);
        ref_seal(longer, pk.len);
    }
    for (at = 0; at < 70; at++)
        if (at != 33) {
            CHECK_CALL(decode_safely(op, pk.p, pk.len, at, at, &s));
            EXPECT("another n", s == CG_E_MISMATCH);
        }
    free(pk.p);
    free(longer);
    PASS();
}

TEST every_bit_flipped(int i) {
    cg_op fam = family(i), *op = &fam;
    ops_packet pk = sample_packet(op, 33);
    cg_status s;
    size_t at;
    for (at = 0; at < pk.len * 8; at += stride) {
        pk.p[at / 8] = (unsigned char)(pk.p[at / 8] ^ 1u << at % 8);
        CHECK_CALL(decode_safely(op, pk.p, pk.len, 33, at, &s));
        EXPECT("accepted", is_damage(s));
        pk.p[at / 8] = (unsigned char)(pk.p[at / 8] ^ 1u << at % 8);
    }
    free(pk.p);
    PASS();
}

/* The checksum is not the defence: the same flips with the checksum made good. In the body the reference
   knows which are legal and what they decode to; in the header only safety is asked for. */
TEST every_bit_flipped_sealed(int i) {
    cg_op fam = family(i), *op = &fam;
    ops_packet pk = sample_packet(op, 33);
    cg_status s;
    size_t at;
    for (at = 0; at < pk.len * 8; at += stride) {
        if (at / 8 >= 152 && at / 8 < CG_HEADER_BYTES) continue;
        pk.p[at / 8] = (unsigned char)(pk.p[at / 8] ^ 1u << at % 8);
        ref_seal(pk.p, pk.len);
        CHECK_CALL(decode_safely(op, pk.p, pk.len, 33, at, &s));
        EXPECT("status", s == CG_OK || is_damage(s));
        if (at / 8 >= CG_HEADER_BYTES) {
            float d[33];
            unsigned char has[33];
            int valid = ref_valid(pk.p);
            EXPECT(valid ? "legal body refused" : "bad body accepted", s == (valid ? CG_OK : CG_E_CORRUPT));
            if (valid) {
                ref_decode(pk.p, d, has);
                EXPECT("decompress", cg_decompress(pk.p, pk.len, y, 33) == CG_OK);
                EXPECT("values", memcmp(d, y, sizeof d) == 0);
            }
        }
        pk.p[at / 8] = (unsigned char)(pk.p[at / 8] ^ 1u << at % 8);
    }
    free(pk.p);
    PASS();
}

/* Indices over many words: every bit flipped, alone and with the next (bits that change places leave their number
   right). */
TEST indices_changed(const char *text) {
    enum { N = 509 }; /* the last low parts can exceed it */
    cg_op parsed, *op = &parsed;
    ops_packet pk;
    cg_info info;
    cg_status s;
    size_t at, two;
    ASSERT_EQ(CG_OK, cg_op_parse(&parsed, text));
    pk = sample_packet(op, N);
    ASSERT_EQ(CG_OK, cg_inspect(pk.p, pk.len, &info));
    for (at = 8 * (pk.len - info.index_bytes); at < 8 * pk.len - 1; at++)
        for (two = 0; two < 2; two++) {
            pk.p[at / 8] = (unsigned char)(pk.p[at / 8] ^ 1u << at % 8);
            if (two) pk.p[(at + 1) / 8] = (unsigned char)(pk.p[(at + 1) / 8] ^ 1u << (at + 1) % 8);
            ref_seal(pk.p, pk.len);
            CHECK_CALL(decode_safely(op, pk.p, pk.len, N, at, &s));
            EXPECT("verdict on indices", s == (ref_valid(pk.p) ? CG_OK : CG_E_CORRUPT));
            pk.p[at / 8] = (unsigned char)(pk.p[at / 8] ^ 1u << at % 8);
            if (two) pk.p[(at + 1) / 8] = (unsigned char)(pk.p[(at + 1) / 8] ^ 1u << (at + 1) % 8);
        }
    free(pk.p);
    PASS();
}

/* Header fields set to chosen values, sealed: the status that the format asks for. */
static const struct {
    const char *what;
    size_t at;
    int bytes;
    uint64_t value;
    cg_status status;
} FIELDS[] = { { "magic", 0, 4, 0x12345678, CG_E_CORRUPT }, { "version 0", 4, 1, 0, CG_E_VERSION },
    { "version 3", 4, 1, 3, CG_E_VERSION }, { "version 255", 4, 1, 255, CG_E_VERSION },
    { "sample id", 8, 1, 99, CG_E_VERSION }, { "sample flags", 9, 1, 4, CG_E_VERSION },
    { "transform id", 20, 1, 99, CG_E_VERSION }, { "select id", 32, 1, 99, CG_E_VERSION },
    { "select flags", 33, 1, 128, CG_E_VERSION }, { "quantize id", 44, 1, 100, CG_E_VERSION },
    { "user id", 44, 1, 200, CG_E_VERSION }, { "quantize flags", 45, 1, 4, CG_E_VERSION },
    { "code id", 56, 1, 99, CG_E_VERSION }, { "value code", 58, 2, 99, CG_E_VERSION },
    { "spare id", 68, 1, 99, CG_E_VERSION }, { "bits 0", 46, 2, 0, CG_E_CORRUPT }, { "bits 9", 46, 2, 9, CG_E_CORRUPT },
    { "bucket 0", 48, 4, 0, CG_E_CORRUPT }, { "randk ratio NaN", 16, 4, 0x7fc00000u, CG_E_CORRUPT },
    { "topk ratio 2", 40, 4, 0x40000000u, CG_E_CORRUPT }, { "n + 1", 80, 8, 34, CG_E_MISMATCH },
    { "n either", 80, 8, UINT64_MAX, CG_E_MISMATCH }, { "drawn 0", 88, 8, 0, CG_E_CORRUPT },
    { "drawn > n", 88, 8, 34, CG_E_CORRUPT }, { "drawn huge", 88, 8, UINT64_MAX, CG_E_CORRUPT },
    { "k 0", 96, 8, 0, CG_E_CORRUPT }, { "k > drawn", 96, 8, 34, CG_E_CORRUPT },
    { "k huge", 96, 8, UINT64_MAX, CG_E_CORRUPT }, { "k 2^63", 96, 8, UINT64_C(1) << 63, CG_E_CORRUPT },
    { "k 2^61", 96, 8, UINT64_C(1) << 61, CG_E_CORRUPT }, { "value bytes 0", 128, 8, 0, CG_E_CORRUPT },
    { "value bytes huge", 128, 8, UINT64_MAX - 3, CG_E_CORRUPT }, { "index bytes 0", 136, 8, 0, CG_E_CORRUPT },
    { "index bytes huge", 136, 8, UINT64_MAX - 3, CG_E_CORRUPT },
    { "threshold NaN", 144, 4, 0x7fc00000u, CG_E_CORRUPT }, { "threshold < 0", 144, 4, 0xbf800000u, CG_E_CORRUPT },
    { "index code 0", 5, 1, 0, CG_E_CORRUPT }, { "index code 3, either", 5, 1, 3, CG_E_CORRUPT },
    { "zeros at 6, either", 6, 2, 1, CG_E_CORRUPT }, { "zeros at 148, either", 148, 4, 1, CG_E_CORRUPT } };

TEST header_field(size_t f) {
    cg_op full = ops_compose(1, 1, 1, 10, 6), *op = &full; /* randk | topk | absmax:4, all slots filled */
    ops_packet pk = sample_packet(op, 33);
    cg_status s;
    size_t at = FIELDS[f].at;
    ref_put(pk.p + at, FIELDS[f].value, FIELDS[f].bytes);
    ref_seal(pk.p, pk.len);
    CHECK_CALL(decode_safely(op, pk.p, pk.len, 33, at, &s));
    if (strstr(FIELDS[f].what, "either")) EXPECT(FIELDS[f].what, is_damage(s)); /* either error would be right */
    else ASSERT_ENUM_EQm(FIELDS[f].what, FIELDS[f].status, s, ops_status);
    free(pk.p);
    PASS();
}

/* Lengths that still add up to the packet's, moved from one section to the other. */
TEST sections_moved(void) {
    cg_op full = ops_compose(0, 1, 1, 0, 6), *op = &full;
    ops_packet pk = sample_packet(op, 33);
    uint64_t v = ref_get(pk.p + 128, 8), ix = ref_get(pk.p + 136, 8);
    static const int64_t shift[] = { 4, -4, 1, 8, INT64_MIN, INT64_MAX, -1 };
    cg_status s;
    size_t i, at = 128;
    for (i = 0; i < sizeof shift / sizeof *shift; i++) {
        ref_put(pk.p + 128, v + (uint64_t)shift[i], 8);
        ref_put(pk.p + 136, ix - (uint64_t)shift[i], 8);
        ref_seal(pk.p, pk.len);
        CHECK_CALL(decode_safely(op, pk.p, pk.len, 33, at, &s));
        EXPECT("accepted", s == CG_E_CORRUPT);
    }
    free(pk.p);
    PASS();
}

/* Random bytes over the header, the body or both, and sealed. */
TEST garbage(int rounds) {
    uint64_t state = 2024;
    unsigned char p[2048];
    int i, accepted = 0, j;
    for (i = 0; i < rounds; i++) {
        cg_op fam = family((int)(ref_rand(&state) % FAMILIES)), *op = &fam;
        size_t n = ref_rand(&state) % 100, at = (size_t)i, len;
        ops_packet pk = sample_packet(op, n);
        int kind = i % 4, edits = 1 + (int)(ref_rand(&state) % 6);
        cg_status s;
        memcpy(p, pk.p, pk.len);
        len = pk.len;
        for (j = 0; j < edits; j++) {
            size_t body = len - CG_HEADER_BYTES;
            if (kind == 0 && body) p[CG_HEADER_BYTES + ref_rand(&state) % body] = (unsigned char)ref_rand(&state);
            if (kind == 1) p[ref_rand(&state) % 152] = (unsigned char)ref_rand(&state);
            if (kind == 2) p[ref_rand(&state) % len] = (unsigned char)(ref_rand(&state) & ref_rand(&state));
        }
        if (kind == 3) { /* another body, and perhaps another length, under the header */
            for (at = CG_HEADER_BYTES; at < len; at++)
                p[at] = (unsigned char)(ref_rand(&state) & (edits & 1 ? 0x11u : 0xffu));
            if (edits > 4) len = CG_HEADER_BYTES + ref_rand(&state) % (len - CG_HEADER_BYTES + 1) / 4 * 4;
        }
        ref_seal(p, len);
        CHECK_CALL(decode_safely(op, p, len, n, (size_t)i, &s));
        EXPECT("status", s == CG_OK || is_damage(s));
        if (kind == 0 || (kind == 3 && len == pk.len)) EXPECT("verdict", s == (ref_valid(p) ? CG_OK : CG_E_CORRUPT));
        accepted += s == CG_OK;
        free(pk.p);
    }
    ASSERTm("nothing was accepted: the test tests nothing", accepted > rounds / 50 && accepted < rounds);
    PASS();
}

SUITE(arguments) {
    int i;
    RUN_TEST(null_arguments);
    RUN_TEST(side_that_nobody_uses);
    for (i = 0; i < FAMILIES; i++) {
        RUN_TEST1(empty_vector, i);
        RUN_TEST1(nonfinite, i);
        RUN_TEST1(small_capacity, i);
    }
    for (i = 0; i < OPS_QUANTIZERS; i++) RUN_TEST1(nonfinite_long, i);
}

/* Up to 128 values have a way of their own through the decoder, which must take and refuse what the common one does:
   that of cg_clear. Of sections with changed bits and a good checksum, at n around the limit and below. */
static const char *const FEW[] = { "topk:0.1|f16", "topk:0.4|bitmap", "topk:0.05|absmax:4:64|eliasfano", "dgc:0.1",
    "mstopk:k=127", "topk:k=128|bf16", "topk:k=129" };
TEST few_values_are_checked_as_many_are(const char *text) {
    static const size_t lengths[] = { 1, 2, 5, 31, 64, 129, 255, 256 };
    cg_op op;
    uint32_t dice = 1;
    int taken = 0, refused = 0;
    ASSERT_EQ(CG_OK, cg_op_parse(&op, text));
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        const size_t n = lengths[l];
        ops_packet pk = sample_packet(&op, n);
        cg_info info;
        ASSERT_EQ(CG_OK, cg_inspect(pk.p, pk.len, &info));
        for (int round = 0; round < 400; round++) {
            const size_t first = round % 2 ? CG_HEADER_BYTES + info.value_bytes : CG_HEADER_BYTES;
            float out[256], z[256];
            unsigned char *damaged = (unsigned char *)malloc(pk.len);
            cg_status decoded, cleared;
            memcpy(damaged, pk.p, pk.len);
            for (int flips = round / 2 % 4; flips && first < pk.len; flips--) {
                dice = dice * 1664525u + 1013904223u;
                damaged[first + (dice >> 8) % (pk.len - first)] ^= (unsigned char)(1u << (dice >> 4) % 8);
            }
            ref_seal(damaged, pk.len);
            for (size_t j = 0; j < n; j++) out[j] = z[j] = 7.0f;
            decoded = cg_decompress(damaged, pk.len, out, n);
            cleared = cg_clear(damaged, pk.len, z, n);
            ASSERT_ENUM_EQm(text, cleared, decoded, ops_status);
            for (size_t j = 0; j < n; j++) {
                if (decoded != CG_OK) ASSERT_EQ(7.0f, out[j]);         /* refused: not touched */
                else if (z[j] != 0.0f) ASSERT_EQm(text, 0.0f, out[j]); /* no value there */
            }
            taken += decoded == CG_OK;
            refused += decoded != CG_OK;
            free(damaged);
        }
        free(pk.p);
    }
    ASSERTm(text, taken);
    ASSERTm(text, refused);
    PASS();
}

SUITE(damage) {
    static const char *const INDEXED[] = { "topk:0.1", "topk:0.3|eliasfano", "topk:0.9|eliasfano", "topk:0.3|bitmap",
        "blocks:3|eliasfano" };
    int i;
    size_t f;
    for (i = 0; i < FAMILIES; i++) {
        RUN_TEST1(truncated_and_extended, i);
        RUN_TEST1(every_bit_flipped, i);
        RUN_TEST1(every_bit_flipped_sealed, i);
    }
    for (i = 0; i < 5; i++) RUN_TEST1(indices_changed, INDEXED[i]);
    for (f = 0; f < sizeof FIELDS / sizeof *FIELDS; f++) RUN_TEST1(header_field, f);
    RUN_TEST(sections_moved);
    for (i = 0; i < (int)(sizeof FEW / sizeof *FEW); i++) RUN_TEST1(few_values_are_checked_as_many_are, FEW[i]);
    RUN_TEST1(garbage, 200000 / (int)stride);
}

GREATEST_MAIN_DEFS();

int main(int argc, char **argv) {
    GREATEST_MAIN_BEGIN();
    if (!long_test()) stride = 5;
    RUN_SUITE(arguments);
    RUN_SUITE(damage);
    GREATEST_MAIN_END();
}
