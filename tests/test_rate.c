/* rate, step and their entropy code, against a decoder written from the description at the door of codes/rans.h: one
   bit and one word at a time. Sizes, errors, bias, and vectors that have few values or scales of every size. */
#define COMPGRAD_IMPLEMENTATION
#include "compgrad.h"
#include "ref.h"
#include "ops.h"
#include "tier.h"
#include "greatest.h"

/* ---- the reference ---- */

typedef struct rd {
    const unsigned char *p;
    size_t bytes, bit; /* the string of bits, upwards */
    size_t words;      /* bytes below which the next word is */
} rd;

static unsigned one_bit(rd *r) {
    unsigned v = r->bit / 8 < r->bytes ? r->p[r->bit / 8] >> (r->bit % 8) & 1u : 0;
    r->bit++;
    return v;
}
static uint32_t get_bits(rd *r, int n) {
    uint32_t v = 0;
    int i;
    for (i = 0; i < n; i++) v |= one_bit(r) << i;
    return v;
}
static uint32_t gamma_code(rd *r) {
    int zeros = 0;
    while (!one_bit(r)) zeros++;
    return 1u << zeros | get_bits(r, zeros);
}
static uint32_t get_word(rd *r) {
    r->words -= 2;
    return (uint32_t)ref_get(r->p + r->words, 2);
}
static uint32_t get_state(rd *r) {
    uint32_t high = get_word(r);
    return high << 16 | get_word(r);
}
typedef struct table {
    uint32_t freq[64];
    int symbols, escape;
} table;
static uint32_t get_freq(rd *r) {
    int length = (int)get_bits(r, 4);
    return length ? 1u << (length - 1) | get_bits(r, length - 1) : 0;
}
static table get_table(rd *r) {
    table t;
    uint32_t left = 1024;
    int i;
    t.symbols = (int)get_bits(r, 6) + 1;
    t.escape = (int)get_bits(r, 1);
    for (i = 0; i + 1 < t.symbols; i++) left -= t.freq[i] = get_freq(r);
    t.freq[i] = left;
    return t;
}
static int get_symbol(rd *r, uint32_t *x, const uint32_t *freq) {
    uint32_t low = *x % 1024, first = 0;
    int s = 0;
    while (low >= first + freq[s]) first += freq[s++];
    *x = freq[s] * (*x / 1024) + low - first;
    if (*x < 65536) *x = *x * 65536 + get_word(r);
    return s;
}
/* The least number of a token, and its extra bits: the numbers are listed until the token comes. */
static uint32_t number_of(int token, int direct, int *extra) {
    uint32_t base = 0;
    int t, octave = direct;
    *extra = 0;
    for (t = 0; t < token; t++) {
        base += 1u << *extra;
        if (t + 1 >= 1 << direct) { /* two tokens an octave */
            octave = direct + (t + 1 - (1 << direct)) / 2;
            *extra = octave - 1;
        }
    }
    return base;
}
static uint32_t get_extra(rd *r, const table *t, int s, int direct) {
    int extra;
    uint32_t base = number_of(s, direct, &extra);
    if (t->escape && s + 1 == t->symbols) return base + gamma_code(r) - 1;
    return base + get_bits(r, extra);
}
/* n levels; 0: something is left over, or the states do not end where an encoder begins. */
static int ref_piece(const unsigned char *p, size_t bytes, size_t n, int32_t *level) {
    rd r;
    size_t i, j, at = 0, count;
    uint32_t x[16], lanes, signs, pad, form;
    table t[8];
    for (i = 0; i < n; i++) level[i] = 0;
    if (!bytes) return 1;
    r.p = p;
    r.bytes = r.words = bytes;
    r.bit = 0;
    form = get_bits(&r, 2);
    if (form == 3) {
        r.bit = 32;
        for (i = 0; i < n; i++) level[i] = (int16_t)get_bits(&r, 16);
        return 1;
    }
    if (form == 0) {
        int k = (int)get_bits(&r, 4), gamma = (int)get_bits(&r, 1);
        count = get_bits(&r, 13);
        for (i = 0; i < count; i++, at++) {
            uint32_t q = 0, m = 1, negative;
            while (q < 16 && !one_bit(&r)) q++;
            at += q < 16 ? (q << k) + get_bits(&r, k) : get_bits(&r, 16);
            negative = one_bit(&r);
            if (gamma) m = gamma_code(&r);
            else {
                while (m < 16 && !one_bit(&r)) m++;
                if (m == 16) m = 15 + gamma_code(&r);
            }
            level[at] = negative ? -(int32_t)m : (int32_t)m;
        }
        return at <= n && (r.bit + 31) / 32 * 4 == bytes;
    }
    lanes = get_bits(&r, 2);
    lanes = lanes == 0 ? 1 : lanes == 1 ? 4 : 16;
    pad = get_bits(&r, 1);
    signs = get_bits(&r, 2);
    if (pad) get_word(&r);
    if (form == 1) {
        int zc = get_bits(&r, 1) ? 3 : 1, mc = get_bits(&r, 1) ? 3 : 1, lane = 0;
        uint32_t limit[2] = { 0, 0 }, a = 0;
        count = get_bits(&r, 12) + 1;
        if (zc + mc > 2) {
            limit[0] = get_bits(&r, 7);
            limit[1] = get_bits(&r, 7);
        }
        for (i = 0; i < (size_t)(zc + mc); i++) t[i] = get_table(&r);
        for (i = 0; i < lanes; i++) x[i] = get_state(&r);
        for (i = 0; i < count; i++, at++) {
            int c = zc < 2 ? 0 : (a >= limit[0]) + (a >= limit[1]), s = get_symbol(&r, &x[lane], t[c].freq), negative;
            uint32_t m;
            at += get_extra(&r, &t[c], s, 2);
            a = a - a / 4 + (uint32_t)s;
            lane = (lane + 1) % (int)lanes;
            c = zc + (mc < 2 ? 0 : (a >= limit[0]) + (a >= limit[1]));
            negative = signs ? signs == 2 : (int)one_bit(&r);
            s = get_symbol(&r, &x[lane], t[c].freq);
            m = 1 + get_extra(&r, &t[c], s, 4);
            lane = (lane + 1) % (int)lanes;
            level[at] = negative ? -(int32_t)m : (int32_t)m;
        }
        if (at > n) return 0;
    } else {
        int tables = (int)get_bits(&r, 3) + 1, chained = 0, c = 0;
        uint32_t classes[8][8], state = 0;
        for (i = 0; i < (size_t)tables; i++) t[i] = get_table(&r);
        if (tables > 1) {
            chained = (int)get_bits(&r, 1);
            for (i = 0; i < (size_t)(chained ? tables : 1); i++) {
                classes[i][tables - 1] = 1024;
                for (j = 0; j + 1 < (size_t)tables; j++) classes[i][tables - 1] -= classes[i][j] = get_freq(&r);
            }
            state = get_state(&r);
        }
        for (i = 0; i < lanes; i++) x[i] = get_state(&r);
        for (i = 0; i < n; i += 64) {
            size_t many = n - i < 64 ? n - i : 64;
            unsigned char negative[64];
            if (tables > 1) c = get_symbol(&r, &state, classes[chained ? c : 0]);
            for (j = 0; j < many; j++) level[i + j] = get_symbol(&r, &x[j % lanes], t[c].freq);
            for (j = 0; j < many; j++)
                negative[j] = (unsigned char)(level[i + j] && (signs ? signs == 2 : one_bit(&r)));
            for (j = 0; j < many; j++) {
                if (level[i + j]) level[i + j] = (int32_t)get_extra(&r, &t[c], level[i + j], 4);
                if (negative[j]) level[i + j] = -level[i + j];
            }
        }
        if (tables > 1 && state != 65536) return 0;
    }
    for (i = 0; i < lanes; i++)
        if (x[i] != 65536) return 0;
    return (r.bit + 15) / 16 * 2 == r.words;
}
/* The levels and values of a packet whose quantizer sees n values, all of them; 0: it is not as it should be. */
static int ref_rate(const unsigned char *packet, size_t n, int32_t *level, float *y) {
    const unsigned char *p = packet + CG_HEADER_BYTES, *piece;
    float step = ref_float((uint32_t)ref_get(p, 4)), pair = ref_float((uint32_t)ref_get(p + 4, 4)), one, offset;
    size_t pieces = (n + 65535) / 65536, i, j, end = (size_t)ref_get(packet + 128, 8);
    float drop = step < 0 ? 0x1p-100f : pair < 0 ? 0x1p100f : 1.0f;
    step = fabsf(step);
    one = ref_mul(step, (float)((int)fabsf(pair) / 4096) / 2048);
    offset = ref_mul(step, (float)((int)fabsf(pair) % 4096 - 2048) / 4096);
    piece = p + 8 + (2 * pieces + 3) / 4 * 4;
    for (i = 0; i < pieces; i++) {
        size_t bytes = 4 * (size_t)ref_get(p + 8 + 2 * i, 2), many = n - 65536 * i < 65536 ? n - 65536 * i : 65536;
        if (!ref_piece(piece, bytes, many, level + 65536 * i)) return 0;
        piece += bytes;
        for (j = 65536 * i; j < 65536 * i + many; j++) {
            int m = abs(level[j]);
            double v = m == 0 ? 0 : m == 1 ? (double)one : (double)(float)(ref_mul(step, (float)m) + offset);
            v = v > (double)FLT_MAX ? (double)FLT_MAX : v;
            v *= (double)drop;
            v = v > (double)FLT_MAX ? (double)FLT_MAX : v;
            y[j] = level[j] < 0 ? -(float)v : (float)v;
        }
    }
    return piece == p + end;
}

/* ---- vectors ---- */

static uint32_t seed;
static double uniform(void) {
    seed = seed * 1664525u + 1013904223u;
    return ((seed >> 8) + 0.5) / 16777216.0;
}
enum {
    LAPLACE,
    RAMP,
    SINE,
    STRIPES,
    SPIKE,
    CONSTANT,
    TWO_SIGNS,
    SPARSE,
    DENORMAL,
    HUGE_ONES,
    LEVELS,
    TWO_SCALES,
    ZEROS,
    VECTORS
};
static const char *const vector_name[] = { "laplace", "ramp", "sine", "stripes", "spike", "constant", "two signs",
    "sparse", "denormal", "huge", "few levels", "two scales", "zeros" };
static void make(int kind, size_t n, float *x) {
    size_t i;
    seed = 12345u + (uint32_t)n;
    for (i = 0; i < n; i++) {
        double l = -log(uniform()) * (uniform() < 0.5 ? -1 : 1), v = l;
        switch (kind) {
        case RAMP: v = l * (double)(i + 1); break;
        case SINE: v = sin((double)i * 0.01); break;
        case STRIPES: v = l * exp(8 * sin((double)i / 3000.0)); break;
        case SPIKE: v = i == n / 2 ? -3 : 0; break;
        case CONSTANT: v = -0.7; break;
        case TWO_SIGNS: v = l < 0 ? -0.7 : 0.7; break;
        case SPARSE: v = uniform() < 0.01 ? l : 0; break;
        case DENORMAL: v = l * 4e-44; break;
        case HUGE_ONES: v = l * 2e37; break;
        case LEVELS: v = (double)(int)(l * 1.5); break;
        case TWO_SCALES: v = l * (i / 1000 % 9 ? 1 : 1e6); break;
        case ZEROS: v = 0; break;
        default: break;
        }
        x[i] = (float)(v > 3e38 ? 3e38 : v < -3e38 ? -3e38 : v);
    }
}
/* Do these values have as many bits as anybody may ask for? */
static int is_rich(int kind) { return kind == LAPLACE || kind == RAMP || kind == STRIPES || kind == HUGE_ONES; }

static double distance(const float *x, const float *y, size_t n) {
    double e = 0, q = 0;
    size_t i;
    for (i = 0; i < n; i++) {
        e += ((double)x[i] - (double)y[i]) * ((double)x[i] - (double)y[i]);
        q += (double)x[i] * (double)x[i];
    }
    return q > 0 ? e / q : e;
}

/* ---- tests ---- */

enum { MOST = 200001 };
static float x[MOST], y[MOST], z[MOST];
static int32_t level[MOST];
static char where[160];

/* One vector there and back: the bytes that were promised, the values that the reference finds, none further from x
   than a step. */
TEST there_and_back(const char *text, float bits, int kind, size_t n) {
    cg_op op;
    ops_packet p;
    size_t i, asked = (size_t)((double)n * (double)bits / 8.0), most;
    double step;
    snprintf(where, sizeof where, "%s of %s, n = %lu", text, vector_name[kind], (unsigned long)n);
    ASSERT_EQm(where, CG_OK, cg_op_parse(&op, text));
    make(kind, n, x);
    p = ops_pack(&op, NULL, x, n);
    ASSERT_EQm(where, CG_OK, p.status);
    ASSERTm(where, !p.touched && p.len <= p.cap);
    if (bits > 0) {
        most = asked / 4 * 4 < 24 ? 24 : asked / 4 * 4;
        ASSERT_EQm(where, CG_HEADER_BYTES + most, p.cap);
        if (is_rich(kind) && asked > 400 && (kind != STRIPES || bits < 8)) /* 32767 levels do not reach as far */
            ASSERTm(where, (double)(p.len - CG_HEADER_BYTES) >= 0.95 * (double)asked - 0.006 * (double)n / 8);
    }
    ASSERT_EQm(where, CG_OK, cg_decompress(p.p, p.len, y, n));
    ASSERTm(where, ref_rate(p.p, n, level, z));
    ASSERTm(where, !memcmp(y, z, 4 * n));
    step = fabs((double)ref_float((uint32_t)ref_get(p.p + CG_HEADER_BYTES, 4)));
    if (ref_get(p.p + CG_HEADER_BYTES + 3, 1) >> 7) step *= 0x1p-100;
    if (ref_get(p.p + CG_HEADER_BYTES + 7, 1) >> 7) step *= 0x1p100;
    for (i = 0; i < n; i++)
        ASSERTm(where,
            fabs((double)x[i] - (double)y[i]) <= step * 1.0001 + 1e-44 ||
                (!level[i] && fabs((double)x[i]) <= 2 * step)); /* some ones are left out */
    if (bits > 0 && (kind == CONSTANT || kind == SPIKE)) ASSERTm(where, distance(x, y, n) < 1e-6);
    free(p.p);
    PASS();
}
static const size_t lengths[] = { 1, 2, 3, 63, 64, 65, 130, 1000, 2047, 2048, 2049, 4097, 8191, 8192, 8193, 9001, 10239,
    10240, 16385, 65535, 65536, 65537, 70001, 131073 };
static const float rates[] = { 0.005f, 0.02f, 0.1f, 0.3f, 0.5f, 1, 2, 4, 8 };
SUITE(there_and_back_suite) {
    size_t i, turn = 0;
    int kind, b, unbiased;
    for (i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (kind = 0; kind < VECTORS; kind++)
            for (b = 0; b < 9; b++)
                for (unbiased = 0; unbiased < 2; unbiased++) {
                    char text[40];
                    if (!long_test() && turn++ % (lengths[i] > 60000 ? 61 : lengths[i] > 8000 ? 17 : 3)) continue;
                    snprintf(text, sizeof text, "rate:%g%s", (double)rates[b], unbiased ? ":unbiased" : "");
                    RUN_TESTp(there_and_back, text, rates[b], kind, lengths[i]);
                }
    for (kind = 0; kind < VECTORS; kind++) {
        RUN_TESTp(there_and_back, "step:0.5", 0, kind, 9001);
        RUN_TESTp(there_and_back, "step:4:unbiased", 0, kind, 70001);
        RUN_TESTp(there_and_back, "step:0.001", 0, kind, 8193);
    }
}

/* Bits per value of a vector's levels if each were coded by itself. */
static double entropy(const int32_t *l, size_t n) {
    static uint32_t count[65536];
    double h = 0;
    size_t i;
    memset(count, 0, sizeof count);
    for (i = 0; i < n; i++) count[l[i] + 32768]++;
    for (i = 0; i < 65536; i++)
        if (count[i]) h -= (double)count[i] * log2((double)count[i] / (double)n);
    return h / (double)n;
}
/* Tables counted, not more than 1.03 of the zero-order entropy and .005 bits; where scales change, not more than it. */
TEST near_entropy(int kind, float bits, double factor, double more) {
    cg_op op = cg_rate(bits);
    ops_packet p;
    double h, got;
    make(kind, 1 << 17, x);
    p = ops_pack(&op, NULL, x, 1 << 17);
    ASSERT_EQ(CG_OK, p.status);
    ASSERT(ref_rate(p.p, 1 << 17, level, z));
    h = entropy(level, 1 << 17);
    got = 8.0 * (double)(p.len - CG_HEADER_BYTES) / (1 << 17);
    snprintf(where, sizeof where, "%s at %g bits: %.4f, entropy %.4f", vector_name[kind], (double)bits, got, h);
    free(p.p);
    ASSERTm(where, got <= factor * h + more);
    PASS();
}
SUITE(entropy_suite) {
    static const float asked[] = { 0.02f, 0.05f, 0.1f, 0.2f, 0.4f, 0.7f, 1, 2, 3, 4, 6, 8 };
    int b;
    for (b = 0; b < 12; b++) {
        RUN_TESTp(near_entropy, LAPLACE, asked[b], 1.03, 0.005);
        RUN_TESTp(near_entropy, STRIPES, asked[b], 1.0, 0.0);
    }
}

/* The mean of many draws is x: each value within 5 standard deviations of its mean, which no draw leaves unknown. */
TEST keeps_the_mean(const char *text) {
    enum { N = 3001, DRAWS = 400 };
    static double sum[N], squares[N];
    cg_op op;
    int draw, far_off = 0;
    size_t i;
    double total = 0, want = 0;
    ASSERT_EQ(CG_OK, cg_op_parse(&op, text));
    make(STRIPES, N, x);
    memset(sum, 0, sizeof sum);
    memset(squares, 0, sizeof squares);
    for (draw = 0; draw < DRAWS; draw++) {
        cg_tag tag = { 7, 0, 0, 3 };
        ops_packet p;
        tag.step = (uint64_t)draw;
        p = ops_pack(&op, &tag, x, N);
        ASSERT_EQ(CG_OK, p.status);
        ASSERT_EQ(CG_OK, cg_decompress(p.p, p.len, y, N));
        free(p.p);
        for (i = 0; i < N; i++) {
            sum[i] += (double)y[i];
            squares[i] += (double)y[i] * (double)y[i];
        }
    }
    for (i = 0; i < N; i++) {
        double mean = sum[i] / DRAWS, variance = squares[i] / DRAWS - mean * mean;
        if (fabs(mean - (double)x[i]) > 5 * sqrt(variance / DRAWS) + 1e-6 * fabs((double)x[i]) && squares[i] > 0)
            far_off++;
        total += mean * (double)x[i];
        want += (double)x[i] * (double)x[i];
    }
    ASSERTm(text, far_off < 30); /* values that are hardly ever drawn have no normal distribution */
    ASSERT_IN_RANGEm(text, 1.0, total / want, 0.02);
    PASS();
}

/* At the error of absmax:b:n:nearest|gamma, at most .95 of its bits: on a vector whose scale changes. */
TEST beats_absmax(int kind, int bits) {
    enum { N = 100000 };
    cg_op grid = cg_coded(cg_nearest(cg_absmax(bits, N)), CG_CODE_GAMMA), op;
    ops_packet p;
    double error;
    make(kind, N, x);
    p = ops_pack(&grid, NULL, x, N);
    ASSERT_EQ(CG_OK, p.status);
    ASSERT_EQ(CG_OK, cg_decompress(p.p, p.len, y, N));
    free(p.p);
    error = distance(x, y, N);
    op = cg_rate((float)(0.95 * 8.0 * (double)(p.len - CG_HEADER_BYTES) / N));
    p = ops_pack(&op, NULL, x, N);
    snprintf(where, sizeof where, "%s at %d bits", vector_name[kind], bits);
    ASSERT_EQm(where, CG_OK, p.status);
    ASSERT_EQ(CG_OK, cg_decompress(p.p, p.len, y, N));
    free(p.p);
    ASSERTm(where, distance(x, y, N) <= error);
    PASS();
}
TEST beats_absmax_at_all_bits(void) {
    int b;
    for (b = 2; b <= 8; b++) {
        CHECK_CALL(beats_absmax(LAPLACE, b));
        CHECK_CALL(beats_absmax(STRIPES, b));
    }
    PASS();
}
/* After a sample, a transform and selections, and not with another code. */
TEST behind_other_stages(void) {
    static const char *const texts[] = { "topk:0.01|rate:4", "randk:0.1|rate:1:unbiased", "rotate:3|rate:2",
        "dct|rate:0.5", "randk:0.5|topk:0.1|rate:3", "threshold:1|step:0.1", "permk:4|rate:2",
        "rotate:3|topk:0.1|rate:4", "topk:0.1|rate:2|golomb" };
    size_t i, t;
    for (t = 0; t < sizeof texts / sizeof *texts; t++) {
        cg_op op;
        ops_packet p;
        ASSERT_EQm(texts[t], CG_OK, cg_op_parse(&op, texts[t]));
        make(STRIPES, 70001, x);
        p = ops_pack(&op, NULL, x, 70001);
        ASSERT_EQm(texts[t], CG_OK, p.status);
        ASSERTm(texts[t], !p.touched && p.len <= p.cap);
        ASSERT_EQm(texts[t], CG_OK, cg_decompress(p.p, p.len, y, 70001));
        ASSERTm(texts[t], distance(x, y, 70001) < 20);
        for (i = 0; i < 70001; i++) z[i] = 1.0f;
        ASSERT_EQ(CG_OK, cg_decompress_add(p.p, p.len, 2.0f, z, 70001));
        for (i = 0; i < 70001; i++) ASSERTm(texts[t], ref_bits(z[i]) == ref_bits(1.0f + ref_mul(2.0f, y[i])));
        free(p.p);
    }
    {
        cg_op op;
        char why[256];
        ASSERT_EQ(CG_E_ARG, cg_op_parse_why(&op, "rate:1|gamma", why, sizeof why));
        ASSERT_EQ(CG_E_ARG, cg_op_parse_why(&op, "rate:9", why, sizeof why));
        ASSERT_EQ(CG_E_ARG, cg_op_parse_why(&op, "rate:0.001", why, sizeof why));
        ASSERT_EQ(CG_E_ARG, cg_op_parse_why(&op, "rate:1|absmax:4:512", why, sizeof why));
    }
    PASS();
}
/* NaN and Inf are refused; so are packets with any bit changed, even under a right checksum unless they decode. */
TEST hostile(const char *text, int kind, size_t n) {
    cg_op op;
    ops_packet p;
    int turn;
    ASSERT_EQ(CG_OK, cg_op_parse(&op, text));
    make(kind, n, x);
    x[n / 3] = ref_float(0x7fc00000u);
    p = ops_pack(&op, NULL, x, n);
    ASSERT_EQ(CG_E_NONFINITE, p.status);
    free(p.p);
    make(kind, n, x);
    p = ops_pack(&op, NULL, x, n);
    ASSERT_EQ(CG_OK, p.status);
    seed = 77;
    for (turn = 0; turn < (long_test() ? 20000 : 300); turn++) {
        unsigned char *q = (unsigned char *)ref_alloc(p.len);
        int many = 1 + (int)(uniform() * 6);
        cg_status s;
        size_t i;
        memcpy(q, p.p, p.len);
        while (many--) {
            size_t body = p.len - CG_HEADER_BYTES;
            size_t at = CG_HEADER_BYTES + (size_t)(uniform() * (double)(turn % 3 && body > 40 ? 40 : body));
            q[at] = (unsigned char)(uniform() * 256);
        }
        ref_seal(q, p.len);
        s = cg_decompress(q, p.len, y, n);
        ASSERT(s == CG_OK || s == CG_E_CORRUPT);
        for (i = 0; s == CG_OK && i < n; i++) ASSERT(ref_finite(y[i]));
        free(q);
    }
    free(p.p);
    PASS();
}

GREATEST_MAIN_DEFS();
int main(int argc, char **argv) {
    GREATEST_MAIN_BEGIN();
    RUN_SUITE(there_and_back_suite);
    RUN_SUITE(entropy_suite);
    RUN_TEST1(keeps_the_mean, "rate:1:unbiased");
    RUN_TEST1(keeps_the_mean, "rate:3:unbiased");
    RUN_TEST1(keeps_the_mean, "step:1:unbiased");
    RUN_TEST(beats_absmax_at_all_bits);
    RUN_TEST(behind_other_stages);
    RUN_TESTp(hostile, "rate:0.02", LAPLACE, 9001);
    RUN_TESTp(hostile, "rate:0.2", LAPLACE, 9001);
    RUN_TESTp(hostile, "rate:2", STRIPES, 9001);
    RUN_TESTp(hostile, "rate:8", STRIPES, 3001);
    GREATEST_MAIN_END();
}
