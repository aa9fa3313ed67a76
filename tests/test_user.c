/* An operator of the user's own: alone, composed, missing, and misbehaving. */
#define COMPGRAD_IMPLEMENTATION
#include "compgrad.h"
#include "ref.h"
#include "ops.h"
#include "greatest.h"

/* int8 fixed point: one byte per value, in units of stage->value. One byte makes lengths of every residue. */
typedef enum mode {
    GOOD,
    FAILS_TO_COMPRESS,
    TOO_LONG,
    TOO_LONG_BY_FAR,
    FAILS_TO_DECODE,
    LAST_IS_NAN,
    LAST_IS_INF
} mode;
typedef struct fixed8 {
    mode how;
    int broken_calls;
} fixed8;

static const fixed8 *state_of(const cg_codec *self) { return (const fixed8 *)self->user; }

static size_t fixed8_bound(const cg_codec *self, const cg_stage *stage, size_t n) {
    (void)self;
    return stage->value > 0.0f && stage->value <= FLT_MAX ? n + 1 : 0;
}

static cg_status fixed8_compress(const cg_codec *self, const cg_stage *stage, const cg_tag *tag, const float *x,
    size_t n, void *out, size_t cap, size_t *len) {
    unsigned char *p = (unsigned char *)out;
    size_t i;
    if (state_of(self)->how == FAILS_TO_COMPRESS) return CG_E_UNSUPPORTED;
    if (cap < n + 1 || !tag) return CG_E_CAPACITY;
    p[0] = 0x5C;
    for (i = 0; i < n; i++) {
        float v, q;
        memcpy(&v, (const char *)x + 4 * i, 4);
        q = nearbyintf(ref_div(v, stage->value));
        p[1 + i] = (unsigned char)((int)(q > 127 ? 127 : q < -127 ? -127 : q) + 128);
    }
    *len = n + 1;
    if (state_of(self)->how == TOO_LONG) *len = cap + 1;
    if (state_of(self)->how == TOO_LONG_BY_FAR) *len = (size_t)-1;
    return CG_OK;
}

static float fixed8_value(const cg_stage *stage, unsigned char c) {
    return ref_mul((float)((int)c - 128), stage->value);
}

static cg_status fixed8_decode(const cg_codec *self, const cg_stage *stage, const void *in, size_t len, size_t n,
    size_t first, size_t count, float *out) {
    const unsigned char *p = (const unsigned char *)in;
    fixed8 *state = (fixed8 *)(uintptr_t)self->user;
    size_t i;
    if (first % 2048 || count > 2048 || first > n || count > n - first) state->broken_calls++;
    if (len < n + 1 || p[0] != 0x5C || !(stage->value > 0.0f && stage->value < 1e30f)) return CG_E_CORRUPT;
    if (state->how == FAILS_TO_DECODE && first + count == n) return CG_E_CORRUPT;
    for (i = 0; i < count; i++) {
        float v = fixed8_value(stage, p[1 + first + i]);
        if (first + i == n - 1 && state->how == LAST_IS_NAN) v = ref_float(0x7fc00000u);
        if (first + i == n - 1 && state->how == LAST_IS_INF) v = ref_float(0xff800000u);
        memcpy((char *)out + 4 * i, &v, 4);
    }
    return CG_OK;
}

static fixed8 state;
static const cg_codec FIXED8 = { 131, fixed8_bound, fixed8_compress, fixed8_decode, &state };
static const cg_codec OTHER = { 255, fixed8_bound, fixed8_compress, fixed8_decode, &state };
static const cg_codec *const BOTH[] = { &OTHER, &FIXED8 };
static const float UNIT = 0.02f;
static const cg_tag TAG = { 3, 4, 5, 6 };

static cg_extra side_of(const cg_codec *const *codecs, size_t count) {
    cg_extra side = CG_ZERO;
    side.codecs = codecs;
    side.codec_count = count;
    return side;
}

static cg_op composed(int sample, int select, int code) {
    cg_op op = cg_then(cg_then(ops_sample(sample), ops_select(select)), cg_user(131, 0, 0, UNIT));
    return code ? cg_coded(op, (cg_coding)code) : op;
}

static ops_packet pack(const cg_op *op, const cg_extra *side, const float *x, size_t n) {
    return ops_pack_cap(op, &TAG, side, x, n, cg_bound_with(op, side, n));
}

TEST composes(int sample, int select, int code, size_t n) {
    cg_op op = composed(sample, select, code), plain = cg_then(ops_sample(sample), ops_select(select));
    cg_extra side = side_of(BOTH, 2);
    float *x = (float *)ref_alloc(n * 4), *y = (float *)ref_alloc(n * 4), *d = (float *)ref_alloc(n * 4),
          *want = (float *)ref_alloc(n * 4);
    unsigned char *has = (unsigned char *)ref_alloc(n), *dense;
    ops_packet pk;
    cg_info info;
    size_t i, len, bound = cg_bound_with(&op, &side, n);
    float w = 0.25f;
    state.how = GOOD;
    state.broken_calls = 0;
    ref_fill(REF_GAUSSIAN, n, x, n);
    dense = ref_compress(&plain, &TAG, x, n, &len); /* the same values, unquantized */
    ref_decode(dense, d, has);
    for (i = 0; i < n; i++)
        if (has[i]) {
            float q = nearbyintf(ref_div(d[i], UNIT));
            d[i] = ref_mul((float)(int)(q > 127 ? 127 : q < -127 ? -127 : q), UNIT); /* no -0 */
        }
    ASSERT(bound >= (size_t)CG_HEADER_BYTES);
    pk = pack(&op, &side, x, n);
    ASSERT_ENUM_EQ(CG_OK, pk.status, ops_status);
    ASSERT(!pk.touched && pk.len <= bound && pk.len % 4 == 0);
    ASSERT_ENUM_EQ(CG_OK, cg_inspect(pk.p, pk.len, &info), ops_status);
    ASSERT(info.op.quantize.id == 131 && info.n == n && info.packet_bytes == pk.len);
    ASSERT_ENUM_EQ(CG_OK, cg_decode(&side, pk.p, pk.len, 1, 0, y, n), ops_status);
    ASSERT_MEM_EQ(d, y, n * 4);
    for (i = 0; i < n; i++) y[i] = want[i] = (float)i;
    ref_apply(d, has, w, 1.0f, want, n);
    ASSERT_ENUM_EQ(CG_OK, cg_decode(&side, pk.p, pk.len, w, 1, y, n), ops_status);
    ASSERT_MEM_EQ(want, y, n * 4);
    for (i = 0; i < n; i++) y[i] = want[i] = 1.0f;
    side.flags = CG_DECODE_DIRECT;
    ref_apply(d, has, -1.0f, 0.5f, want, n);
    ASSERT_ENUM_EQ(CG_OK, cg_decode(&side, pk.p, pk.len, -1, 0.5f, y, n), ops_status);
    ASSERT_MEM_EQ(want, y, n * 4);
    ASSERT_EQ_FMT(0, state.broken_calls, "%d");
    /* clear needs no values, so it may do without the codec; if it succeeds it must be right */
    for (i = 0; i < n; i++) {
        y[i] = 3.0f;
        want[i] = has[i] ? 0.0f : 3.0f;
    }
    if (cg_clear(pk.p, pk.len, y, n) == CG_OK) ASSERT_MEM_EQ(want, y, n * 4);
    free(x);
    free(y);
    free(d);
    free(want);
    free(has);
    free(dense);
    free(pk.p);
    PASS();
}

TEST missing_codec(void) {
    cg_op op = composed(0, 1, 0);
    cg_extra good = side_of(BOTH, 2), wrong = side_of(BOTH, 1), none = CG_ZERO;
    float x[50], y[50], before[50];
    ops_packet pk, bad;
    size_t i;
    state.how = GOOD;
    ref_fill(REF_GAUSSIAN, 1, x, 50);
    for (i = 0; i < 50; i++) y[i] = before[i] = (float)i;
    pk = pack(&op, &good, x, 50);
    ASSERT_ENUM_EQ(CG_OK, pk.status, ops_status);
    ASSERT_EQ(0u, cg_bound(&op, 50));
    ASSERT_EQ(0u, cg_bound_with(&op, &wrong, 50));
    ASSERT_EQ(0u, cg_bound_with(&op, NULL, 50));
    bad = ops_pack_cap(&op, &TAG, &wrong, x, 50, pk.cap);
    ASSERT(bad.status == CG_E_ARG || bad.status == CG_E_UNSUPPORTED);
    ASSERT(bad.len == 0 && !bad.touched);
    free(bad.p);
    bad = ops_pack_cap(&op, &TAG, NULL, x, 50, pk.cap);
    ASSERT((bad.status == CG_E_ARG || bad.status == CG_E_UNSUPPORTED) && bad.len == 0);
    free(bad.p);
    ASSERT_ENUM_EQ(CG_E_VERSION, cg_decompress(pk.p, pk.len, y, 50), ops_status);
    ASSERT_ENUM_EQ(CG_E_VERSION, cg_decode(&wrong, pk.p, pk.len, 1, 0, y, 50), ops_status);
    ASSERT_ENUM_EQ(CG_E_VERSION, cg_decode(&none, pk.p, pk.len, 1, 0, y, 50), ops_status);
    ASSERT_MEM_EQ(before, y, sizeof y);
    free(pk.p);
    PASS();
}

TEST bad_parameters(void) {
    static const float bad[] = { 0.0f, -1.0f };
    cg_extra side = side_of(BOTH, 2);
    float x[4] = { 1, 2, 3, 4 };
    size_t i;
    state.how = GOOD;
    for (i = 0; i < 2; i++) {
        cg_op op = cg_user(131, 0, 0, bad[i]);
        ops_packet pk;
        ASSERT_EQ(0u, cg_bound_with(&op, &side, 4));
        pk = ops_pack_cap(&op, &TAG, &side, x, 4, 1000);
        ASSERT_ENUM_EQ(CG_E_ARG, pk.status, ops_status);
        ASSERT(pk.len == 0 && !pk.touched);
        free(pk.p);
    }
    PASS();
}

/* NaN, errors and lies of a codec end in an error, with nothing written. */
TEST misbehaves(mode how, int select, size_t n) {
    cg_op op = composed(0, select, 0);
    cg_extra side = side_of(BOTH, 2);
    float *x = (float *)ref_alloc(n * 4), *y = (float *)ref_alloc(n * 4), *before = (float *)ref_alloc(n * 4);
    ops_packet pk;
    size_t i;
    ref_fill(REF_GAUSSIAN, n, x, n);
    for (i = 0; i < n; i++) y[i] = before[i] = (float)i;
    state.how = how;
    pk = pack(&op, &side, x, n);
    if (how == FAILS_TO_COMPRESS || how == TOO_LONG || how == TOO_LONG_BY_FAR) {
        ASSERT(pk.status != CG_OK);
        ASSERT_EQ(0u, pk.len);
    } else {
        ASSERT_ENUM_EQ(CG_OK, pk.status, ops_status);
        ASSERT_ENUM_EQ(CG_E_CORRUPT, cg_decode(&side, pk.p, pk.len, 1, 1, y, n), ops_status);
        ASSERT_ENUM_EQ(CG_E_CORRUPT, cg_decode(&side, pk.p, pk.len, 1, 0, y, n), ops_status);
        ASSERT_MEM_EQ(before, y, n * 4);
    }
    ASSERT(!pk.touched);
    free(x);
    free(y);
    free(before);
    free(pk.p);
    PASS();
}

TEST nonfinite_is_refused_before_the_codec(void) {
    cg_op op = composed(0, 0, 0);
    cg_extra side = side_of(BOTH, 2);
    float x[9] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 };
    ops_packet pk;
    state.how = GOOD;
    x[8] = ref_float(0x7f800000u);
    pk = pack(&op, &side, x, 9);
    ASSERT_ENUM_EQ(CG_E_NONFINITE, pk.status, ops_status);
    ASSERT_EQ(0u, pk.len);
    free(pk.p);
    PASS();
}

TEST damaged_packets(int select) {
    cg_op op = composed(1, select, 0);
    cg_extra side = side_of(BOTH, 2);
    float x[33], y[33], before[33];
    ops_packet pk;
    size_t at, i;
    int sealed;
    state.how = GOOD;
    ref_fill(REF_GAUSSIAN, 1, x, 33);
    for (i = 0; i < 33; i++) y[i] = before[i] = (float)i;
    pk = pack(&op, &side, x, 33);
    ASSERT_ENUM_EQ(CG_OK, pk.status, ops_status);
    for (sealed = 0; sealed < 2; sealed++)
        for (at = 0; at < pk.len * 8; at++) {
            unsigned char *copy = (unsigned char *)malloc(pk.len);
            cg_status s;
            memcpy(copy, pk.p, pk.len);
            copy[at / 8] = (unsigned char)(copy[at / 8] ^ 1u << at % 8);
            if (sealed) ref_seal(copy, pk.len);
            s = cg_decode(&side, copy, pk.len, 1, 0, y, 33);
            ASSERT(sealed || s != CG_OK);
            if (s != CG_OK) ASSERT_MEM_EQ(before, y, sizeof y);
            else
                for (i = 0; i < 33; i++) ASSERT(ref_finite(y[i]));
            memcpy(y, before, sizeof y);
            free(copy);
        }
    for (at = 0; at < pk.len; at++) ASSERT_EQ(CG_E_CORRUPT, cg_decode(&side, pk.p, at, 1, 0, y, 33));
    ASSERT_MEM_EQ(before, y, sizeof y);
    free(pk.p);
    PASS();
}

SUITE(user) {
    static const size_t sizes[] = { 0, 1, 2, 3, 9, 100, 2047, 2048, 2049, 5000, 70001 };
    int s, t, c;
    size_t i;
    for (s = 0; s < OPS_SAMPLES; s++)
        for (t = 0; t < OPS_SELECTS; t++)
            for (c = 0; c < (t ? OPS_CODES : 1); c++)
                for (i = 0; i < sizeof sizes / sizeof *sizes; i++) RUN_TESTp(composes, s, t, c, sizes[i]);
    RUN_TEST(missing_codec);
    RUN_TEST(bad_parameters);
    RUN_TEST(nonfinite_is_refused_before_the_codec);
    for (t = 0; t < 2; t++) {
        for (s = FAILS_TO_COMPRESS; s <= LAST_IS_INF; s++) {
            RUN_TESTp(misbehaves, (mode)s, t, (size_t)10);
            RUN_TESTp(misbehaves, (mode)s, t, (size_t)20001);
        }
        RUN_TEST1(damaged_packets, t);
    }
}

GREATEST_MAIN_DEFS();

int main(int argc, char **argv) {
    GREATEST_MAIN_BEGIN();
    RUN_SUITE(user);
    GREATEST_MAIN_END();
}
