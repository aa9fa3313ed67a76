/* Codes of values: the same values as packed, never longer than packed and an entry per piece, and readable by a
   plain decoder written from the definitions; the sizes that the papers promise; packets made to hurt. */
#define COMPGRAD_IMPLEMENTATION
#include "compgrad.h"
#include "ref.h"
#include "ops.h"
#include "greatest.h"
#define TIER_SPARED
#include "tier.h"

static const cg_tag TAG = { UINT64_C(0xC0DE0123456789), 6, 7, 8 };
static char note[256];

#define EXPECT(what, cond)                                                                  \
  do {                                                                                      \
    if (!(cond)) {                                                                          \
      snprintf(note, sizeof note, "%s: %s, at %lu", what, ops_text(op), (unsigned long)at); \
      FAILm(note);                                                                          \
    }                                                                                       \
  } while (0)

enum { GAMMA, DELTA, OMEGA, HUFFMAN, QUARTIC, CODES };
static const cg_coding CODING[CODES] = { CG_CODE_GAMMA, CG_CODE_DELTA, CG_CODE_OMEGA, CG_CODE_HUFFMAN,
    CG_CODE_QUARTIC };
enum { PIECE = 8192, FLOAT_PIECE = 2048 };

/* The symbols of a quantizer: 0..top in so many bits; zero: the one that means 0, or 0 where there are no signs. */
typedef struct alphabet {
    const char *text;
    int bits, top, zero;
} alphabet;
static const alphabet ALPHABETS[] = { { "absmax:1:64", 1, 1, 0 }, { "absmax:2:64", 2, 2, 1 },
    { "absmax:3:100", 3, 6, 3 }, { "absmax:4:512", 4, 14, 7 }, { "absmax:4:3000:nearest", 4, 14, 7 },
    { "absmax:5:7", 5, 30, 15 }, { "absmax:8:512", 8, 254, 127 }, { "minmax:1:64", 1, 1, 0 },
    { "minmax:3:64", 3, 7, 0 }, { "minmax:4:512:norm", 4, 15, 0 }, { "minmax:8:512", 8, 255, 0 },
    { "terngrad", 2, 2, 1 }, { "terngrad:clip", 2, 2, 1 }, { "levels:1", 2, 2, 1 }, { "levels:3:512:max", 3, 6, 3 },
    { "levels:7", 4, 14, 7 }, { "levels:50:nearest", 7, 100, 50 }, { "levels:127", 8, 254, 127 },
    { "flexpoint:2:64", 2, 2, 1 }, { "flexpoint:6:64", 6, 62, 31 }, { "trits:1", 2, 2, 1 }, { "trits:1.75", 2, 2, 1 },
    { "strom:0.0625", 2, 2, 1 }, { "onebit", 1, 1, 0 }, { "onebit:100", 1, 1, 0 }, { "dither:2:512", 2, 3, 0 },
    { "dither:4", 4, 15, 0 }, { "dither:8:512:max", 8, 255, 0 }, { "dynamic8", 8, 255, 0 }, { "e4m3", 8, 255, 0 },
    { "e5m2:100", 8, 255, 0 }, { "mxfp4", 4, 15, 0 }, { "mxe4m3", 8, 255, 0 }, { "mxe5m2", 8, 255, 0 },
    { "nf4", 4, 15, 0 }, { "nf4:1000", 4, 15, 0 } };
enum { ALPHABET_COUNT = sizeof ALPHABETS / sizeof *ALPHABETS };

static int met[CODES][4]; /* pieces of each form, by code */

static cg_op parsed(const char *text) {
    cg_op op;
    if (cg_op_parse(&op, text) != CG_OK) {
        fprintf(stderr, "does not parse: %s\n", text);
        exit(2);
    }
    return op;
}

static int carries(const alphabet *a, int code) { return code != QUARTIC || a->top == 2; }

/* ---- plain readers, from the definitions ---- */

typedef struct bits {
    const unsigned char *p;
    size_t bits, at;
} bits; /* 0 after the end */

static uint32_t take(bits *b, unsigned many) {
    uint32_t v = 0;
    unsigned i;
    for (i = 0; i < many; i++, b->at++)
        if (b->at < b->bits) v |= (uint32_t)(b->p[b->at / 8] >> b->at % 8 & 1) << i;
    return v;
}

static uint32_t take_gamma(bits *b, unsigned most) /* at most so many zeros */
{
    unsigned zeros = 0;
    while (zeros < most && take(b, 1) == 0) zeros++;
    if (zeros == most) b->at++; /* the 1, whatever stands there */
    return (1u << zeros) + take(b, zeros);
}

static uint32_t take_elias(bits *b, int code) {
    uint32_t v = 1, l;
    if (code == GAMMA) return take_gamma(b, 16);
    if (code == DELTA) {
        l = take_gamma(b, 4) - 1;
        if (l > 16) l = 16;
        return (1u << l) + take(b, l);
    }
    while (take(b, 1) && v <= 16) v = (1u << v) + take(b, v);
    return v;
}

static int level(const alphabet *a, int negative, uint32_t magnitude) {
    uint32_t most = (uint32_t)(negative ? a->zero : a->top - a->zero);
    if (magnitude > most) magnitude = most;
    return negative ? a->zero - (int)magnitude : a->zero + (int)magnitude;
}

static void read_dense(int code, const alphabet *a, bits b, size_t n, int *out) {
    size_t i;
    for (i = 0; i < n; i++) {
        int negative;
        if (b.at >= b.bits) {
            out[i] = a->zero;
            continue;
        }
        negative = a->zero ? (int)take(&b, 1) : 0;
        out[i] = level(a, negative, take_elias(&b, code) - 1);
    }
}

static void read_sparse(int code, const alphabet *a, bits b, size_t n, int *out) {
    size_t i, next = 0; /* the first place that the gap counts */
    for (i = 0; i < n; i++) out[i] = a->zero;
    while (b.at < b.bits) {
        int negative;
        next += take_elias(&b, code);
        if (next > n) return;
        negative = a->zero ? (int)take(&b, 1) : 0;
        out[next - 1] = level(a, negative, take_elias(&b, code));
    }
}

static int read_quartic(const unsigned char *p, size_t bytes, size_t n, int *out) /* 0: not as many as n */
{
    size_t groups = 0, i;
    int j, t;
    for (i = 0; i < bytes; i++) {
        int many = p[i] < 243 ? 1 : p[i] - 241, q = p[i] < 243 ? p[i] : 121;
        for (j = 0; j < many; j++, groups++)
            for (t = 0; t < 5; t++) {
                static const int powers[5] = { 1, 3, 9, 27, 81 };
                if (groups * 5 + (size_t)t < n) out[groups * 5 + (size_t)t] = q / powers[t] % 3;
            }
    }
    return groups == (n + 4) / 5;
}

typedef struct huffman {
    int lo, hi, length[256];
    size_t start[5];
} huffman;

static size_t quarter(size_t n, size_t s) {
    size_t q = (n + 3) / 4;
    return n <= q * s ? 0 : n - q * s < q ? n - q * s : q;
}

/* Symbol after symbol a walk over all codes in canonical order: by length, then by symbol, each the one before
   plus 1. */
static int read_huffman(const unsigned char *p, size_t bytes, size_t n, int *out, huffman *h) {
    size_t i, s, many;
    uint32_t kraft = 0;
    if (bytes < 2) return 0;
    h->lo = p[0];
    h->hi = p[1];
    if (h->lo > h->hi) return 0;
    if (h->lo == h->hi) {
        for (i = 0; i < n; i++) out[i] = h->lo;
        return bytes == 2;
    }
    many = (size_t)(h->hi - h->lo + 1);
    h->start[0] = 2 + (many + 1) / 2 + 6;
    if (bytes < h->start[0]) return 0;
    for (i = 0; i < many; i++) {
        h->length[h->lo + (int)i] = p[2 + i / 2] >> i % 2 * 4 & 15;
        if (h->length[h->lo + (int)i] > 11) return 0;
        if (h->length[h->lo + (int)i]) kraft += 2048u >> h->length[h->lo + (int)i];
    }
    if (kraft != 2048) return 0;
    for (s = 0; s < 3; s++) h->start[s + 1] = h->start[s] + (size_t)ref_get(p + h->start[0] - 6 + 2 * s, 2);
    h->start[4] = bytes;
    if (h->start[3] > bytes) return 0;
    for (s = 0; s < 4; s++) {
        bits b;
        b.p = p;
        b.bits = 8 * bytes;
        b.at = 8 * h->start[s];
        for (i = 0; i < quarter(n, s); i++) {
            uint32_t read = 0, first = 0;
            int l, found = -1, sym;
            for (l = 1; l <= 11 && found < 0; l++) { /* first: the lowest code of this length */
                read = read << 1 | take(&b, 1);
                first <<= 1;
                for (sym = h->lo; sym <= h->hi && found < 0; sym++)
                    if (h->length[sym] == l) {
                        if (first == read) found = sym;
                        else first++;
                    }
            }
            out[(n + 3) / 4 * s + i] = found;
        }
    }
    return 1;
}

/* ---- plain lengths ---- */

static unsigned log2_of(uint32_t v) {
    unsigned l = 0;
    while (v >>= 1) l++;
    return l;
}

static unsigned elias_bits(int code, uint32_t v) {
    unsigned l = log2_of(v), sum = 1;
    if (code == GAMMA) return 2 * l + 1;
    if (code == DELTA) return 2 * log2_of(l + 1) + 1 + l;
    for (; v > 1; v = log2_of(v)) sum += log2_of(v) + 1;
    return sum;
}

static uint32_t magnitude(const alphabet *a, int s) { return (uint32_t)(s < a->zero ? a->zero - s : s - a->zero); }

static size_t dense_bits(int code, const alphabet *a, const int *v, size_t n) {
    size_t sum = 0, i;
    for (i = 0; i < n; i++) sum += elias_bits(code, magnitude(a, v[i]) + 1) + (a->zero > 0);
    return sum;
}

static size_t sparse_bits(int code, const alphabet *a, const int *v, size_t n) {
    size_t sum = 0, next = 0, i;
    for (i = 0; i < n; i++)
        if (v[i] != a->zero) {
            sum += elias_bits(code, (uint32_t)(i + 1 - next)) + (a->zero > 0) + elias_bits(code, magnitude(a, v[i]));
            next = i + 1;
        }
    return sum;
}

static size_t quartic_bytes(const int *v, size_t n) {
    size_t bytes = 0, i, run = 0;
    for (i = 0; i <= n; i += 5) {
        int zeros = i < n, t;
        for (t = 0; t < 5; t++)
            if (i + (size_t)t < n && v[i + (size_t)t] != 1) zeros = 0;
        if (zeros) {
            run++;
            continue;
        }
        bytes += run / 14 + (run % 14 > 0) + (i < n);
        run = 0;
        if (i >= n) return bytes;
    }
    return bytes + run / 14 + (run % 14 > 0);
}

/* Bits of a best code for these counts, and its depth: join the two rarest, again and again; of equals, the
   shallower. */
static size_t huffman_bits(const size_t *count, int many, int *depth) {
    size_t weight[256], cost = 0;
    int deep[256], nodes = 0, i, j;
    for (i = 0; i < many; i++)
        if (count[i]) {
            weight[nodes] = count[i];
            deep[nodes++] = 0;
        }
    *depth = 0;
    while (nodes > 1) {
        for (i = 0; i < 2; i++)
            for (j = i + 1; j < nodes; j++)
                if (weight[j] < weight[i] || (weight[j] == weight[i] && deep[j] < deep[i])) {
                    size_t w = weight[i];
                    int d = deep[i];
                    weight[i] = weight[j];
                    deep[i] = deep[j];
                    weight[j] = w;
                    deep[j] = d;
                }
        weight[0] += weight[1];
        deep[0] = (deep[0] > deep[1] ? deep[0] : deep[1]) + 1;
        cost += weight[0];
        nodes--;
        weight[1] = weight[nodes];
        deep[1] = deep[nodes];
    }
    if (nodes) *depth = deep[0];
    return cost;
}

static double entropy(const size_t *count, int many, size_t n) /* bits of all n */
{
    double sum = 0;
    int i;
    for (i = 0; i < many; i++)
        if (count[i]) sum += (double)count[i] * log2((double)n / (double)count[i]);
    return sum;
}

/* ---- the packet taken apart ---- */

typedef struct parts {
    size_t k, scales, table, codes, end, pieces;
} parts; /* where each begins */

static parts parts_of(const ops_packet *coded, size_t packed_values, size_t packed_codes, size_t piece) {
    parts r;
    r.k = (size_t)ref_get(coded->p + 96, 8);
    r.pieces = (r.k + piece - 1) / piece;
    r.scales = CG_HEADER_BYTES;
    r.table = r.scales + packed_values - packed_codes;
    r.codes = r.table + 4 * r.pieces;
    r.end = CG_HEADER_BYTES + (size_t)ref_get(coded->p + 128, 8);
    return r;
}

/* What a piece of symbols must look like to be legal, and its symbols. */
static int read_piece(int code, const alphabet *a, uint32_t entry, const unsigned char *p, size_t n, int *v) {
    size_t length = entry & 0x3fffffffu, packed = n * (size_t)a->bits, i, bytes = (length + 31) / 32 * 4;
    unsigned form = entry >> 30;
    huffman h;
    bits b;
    b.p = p;
    b.bits = length;
    b.at = 0;
    if (form == 0 ? length != packed : length >= packed) return 0;
    for (i = length; i < 8 * bytes; i++)
        if (p[i / 8] >> i % 8 & 1) return 0;
    if (form == 0) {
        for (i = 0; i < n; i++) {
            v[i] = (int)take(&b, (unsigned)a->bits);
            if (v[i] > a->top) v[i] = a->top;
        }
        return 1;
    }
    if (code <= OMEGA) {
        if (form > 2 || (form == 1 && length < n * (a->zero ? 2u : 1u))) return 0;
        if (form == 1) read_dense(code, a, b, n, v);
        else read_sparse(code, a, b, n, v);
        return 1;
    }
    if (form > 1 || length % 8) return 0;
    if (code == QUARTIC) return read_quartic(p, length / 8, n, v);
    if (!read_huffman(p, length / 8, n, v, &h)) return 0;
    return h.hi <= a->top;
}

/* ---- coded against packed ---- */

TEST same_symbols(const cg_op *op, const alphabet *a, int code, const ops_packet *packed, const ops_packet *coded) {
    size_t packed_values = (size_t)ref_get(packed->p + 128, 8), k = (size_t)ref_get(packed->p + 96, 8), at = 0, i, j;
    size_t packed_codes = (size_t)ref_pad4(k * (uint64_t)a->bits), scale_bytes = packed_values - packed_codes;
    parts r = parts_of(coded, packed_values, packed_codes, PIECE);
    size_t place = r.codes;
    static int v[PIECE], w[PIECE];
    EXPECT("k", r.k == k);
    EXPECT("scales", memcmp(packed->p + CG_HEADER_BYTES, coded->p + r.scales, scale_bytes) == 0);
    EXPECT("indices",
        packed->len - CG_HEADER_BYTES - packed_values == coded->len - r.end &&
            memcmp(packed->p + CG_HEADER_BYTES + packed_values, coded->p + r.end, coded->len - r.end) == 0);
    for (at = 0; at < r.pieces; at++) {
        size_t n = k - at * PIECE < PIECE ? k - at * PIECE : PIECE, plain = n * (size_t)a->bits, count[256] = { 0 };
        uint32_t entry = (uint32_t)ref_get(coded->p + r.table + 4 * at, 4), form = entry >> 30;
        size_t length = entry & 0x3fffffffu;
        for (i = 0; i < n; i++) {
            v[i] = (int)ref_get_bits(
                packed->p + CG_HEADER_BYTES + scale_bytes, (at * PIECE + i) * (size_t)a->bits, a->bits);
            EXPECT("a symbol beyond the alphabet", v[i] <= a->top);
            count[v[i]]++;
        }
        EXPECT("a piece beyond the section", place + (length + 31) / 32 * 4 <= r.end);
        EXPECT("an illegal piece", read_piece(code, a, entry, coded->p + place, n, w));
        EXPECT("symbols", memcmp(v, w, n * sizeof *v) == 0);
        if (code <= OMEGA) { /* the shortest form; of equals, the lower */
            size_t best = plain, dense = dense_bits(code, a, v, n), sparse = sparse_bits(code, a, v, n);
            uint32_t want = 0;
            if (dense < best) {
                best = dense;
                want = 1;
            }
            if (sparse < best) {
                best = sparse;
                want = 2;
            }
            EXPECT("Elias: form or length", form == want && length == best);
        } else if (code == QUARTIC) {
            size_t bytes = quartic_bytes(v, n);
            EXPECT("quartic: form or length", 8 * bytes < plain ? form == 1 && length == 8 * bytes : form == 0);
        } else {
            int depth, lo = 0, hi = a->top, s;
            size_t cost = huffman_bits(count, a->top + 1, &depth), head, cost_here = 0;
            huffman h;
            while (!count[lo]) lo++;
            while (!count[hi]) hi--;
            head = lo == hi ? 2 : 2 + (size_t)(hi - lo + 2) / 2 + 6;
            if (form == 1) {
                EXPECT("huffman: reads", read_huffman(coded->p + place, length / 8, n, w, &h));
                EXPECT("huffman: range", h.lo == lo && h.hi == hi);
                for (s = lo; s <= hi && lo != hi; s++) {
                    cost_here += count[s] * (size_t)h.length[s];
                    EXPECT("huffman: a length for what is not in use", (h.length[s] == 0) == (count[s] == 0));
                }
                /* each string is as long as its codes, to a byte */
                for (i = 0, j = head; i < 4 && lo != hi; i++) {
                    size_t sum = 0, q;
                    for (q = 0; q < quarter(n, i); q++) sum += (size_t)h.length[v[(n + 3) / 4 * i + q]];
                    EXPECT("huffman: strings", h.start[i] == j);
                    j += (sum + 7) / 8;
                }
                EXPECT("huffman: length", length == 8 * (lo == hi ? 2 : j) && length < plain);
                EXPECT("huffman: not a best code", depth > 11 ? cost_here >= cost : cost_here == cost);
            } else if (depth <= 11) { /* at most 7 bits more in each string */
                EXPECT("huffman: packed though coded is shorter", 8 * head + cost + 4 * 7 >= plain);
            }
        }
        met[code][form]++;
        place += (length + 31) / 32 * 4;
    }
    at = 0;
    EXPECT("bytes left over", place == r.end);
    PASS();
}

TEST agrees(const cg_op *op, const cg_op *plain, const alphabet *a, int code, ref_kind kind, size_t n) {
    float *x = (float *)ref_alloc(n * 4), *y = (float *)ref_alloc(n * 4), *z = (float *)ref_alloc(n * 4);
    ops_packet packed, coded;
    size_t at = n, k;
    ref_fill(kind, n + 3, x, n);
    packed = ops_pack(plain, &TAG, x, n);
    coded = ops_pack(op, &TAG, x, n);
    EXPECT("packed", packed.status == CG_OK);
    EXPECT(ops_status((int)coded.status), coded.status == CG_OK);
    EXPECT("wrote beyond cg_bound", !coded.touched && coded.len <= coded.cap);
    k = (size_t)ref_get(packed.p + 96, 8);
    EXPECT("longer than packed", coded.len <= packed.len + 4 * ((k + PIECE - 1) / PIECE));
    EXPECT("decode packed", cg_decompress(packed.p, packed.len, y, n) == CG_OK);
    memset(z, 0xff, n * 4);
    EXPECT("decode coded", cg_decompress(coded.p, coded.len, z, n) == CG_OK);
    EXPECT("values", memcmp(y, z, n * 4) == 0);
    EXPECT("add packed", cg_decode(NULL, packed.p, packed.len, -0.7f, 0.5f, y, n) == CG_OK);
    EXPECT("add coded", cg_decode(NULL, coded.p, coded.len, -0.7f, 0.5f, z, n) == CG_OK);
    EXPECT("added values", memcmp(y, z, n * 4) == 0);
    EXPECT("clear",
        cg_clear(packed.p, packed.len, y, n) == CG_OK && cg_clear(coded.p, coded.len, z, n) == CG_OK &&
            memcmp(y, z, n * 4) == 0);
    CHECK_CALL(same_symbols(op, a, code, &packed, &coded));
    free(x);
    free(y);
    free(z);
    free(packed.p);
    free(coded.p);
    PASS();
}

static const size_t SMALL[] = { 0, 1, 2, 4, 5, 6, 9, 31, 64, 65, 100, 333, 1000, 1023, 1025 };
static const size_t LARGE[] = { 2049, 8191, 8192, 8193, 20000 };

TEST every_code(int i) {
    static unsigned turn, most;
    const alphabet *a = &ALPHABETS[i];
    cg_op plain = parsed(a->text), op;
    int code, kind;
    size_t s;
    for (code = 0; code < CODES; code++) {
        op = cg_coded(plain, CODING[code]);
        if (!carries(a, code)) {
            ASSERT_EQm(a->text, 0u, cg_bound(&op, 100));
            continue;
        }
        for (kind = 0; kind < REF_KINDS; kind++)
            for (s = 0; s < sizeof SMALL / sizeof *SMALL; s++)
                if ((s + (size_t)kind + (size_t)code) % (long_test() ? 3 : 11) == 0)
                    CHECK_CALL(agrees(&op, &plain, a, code, (ref_kind)kind, SMALL[s]));
        for (s = 0; s < sizeof LARGE / sizeof *LARGE; s++)
            if (!spared(&turn, 4))
                CHECK_CALL(
                    agrees(&op, &plain, a, code, (ref_kind)((s + (size_t)i + (size_t)code) % REF_KINDS), LARGE[s]));
        if (!spared(&most, 7)) CHECK_CALL(agrees(&op, &plain, a, code, REF_GAUSSIAN, 65536 + 8192 + 77));
    }
    PASS();
}

/* Behind every other stage. */
TEST composed(const char *before) {
    static unsigned turn;
    static const int some[] = { 1, 3, 8, 11, 13, 15, 17, 20, 24, 26, 28, 31, 34 };
    int code;
    size_t i;
    for (i = 0; i < sizeof some / sizeof *some; i++)
        for (code = 0; code < CODES; code++) {
            const alphabet *a = &ALPHABETS[some[i]];
            cg_op plain = cg_then(parsed(before), parsed(a->text)), op = cg_coded(plain, CODING[code]);
            if (!carries(a, code)) continue;
            CHECK_CALL(agrees(&op, &plain, a, code, REF_LAPLACE, 3001));
            if (!spared(&turn, 3)) CHECK_CALL(agrees(&op, &plain, a, code, REF_OUTLIER, 30000));
        }
    PASS();
}

/* Levels of which each form is the shortest: the vectors above must not have missed one. */
TEST every_form_met(void) {
    int code;
    for (code = 0; code < CODES; code++) {
        snprintf(note, sizeof note, "code %d: %d packed, %d in form 1, %d in form 2", code, met[code][0], met[code][1],
            met[code][2]);
        ASSERTm(
            note, met[code][0] > 10 && met[code][1] > 10 && (code > OMEGA || met[code][2] > 10) && met[code][3] == 0);
    }
    PASS();
}

TEST refused(void) {
    static const char *const none[] = { "f16", "sign", "efsign", "natural", "side:0.5|mean", "rotate:2|lloyd:2",
        "dense", "bf16" };
    static const char *const texts[] = { "absmax:4:64|quartic", "dense|gamma", "dense|quartic", "bf16|omega",
        "minmax:1:64|quartic", "minmax:2:64|quartic", "dither:2|quartic", "sign|huffman", "levels:2|quartic",
        "terngrad|gamma|delta", "huffman|huffman" };
    cg_op op, user;
    float x[4] = { 1, 2, 3, 4 };
    unsigned char packet[512];
    size_t i, len = 9;
    int code;
    for (i = 0; i < sizeof none / sizeof *none; i++)
        for (code = 0; code < CODES; code++) {
            if (i >= 6 && code == HUFFMAN) continue;
            op = cg_coded(parsed(none[i]), CODING[code]);
            ASSERT_EQm(none[i], 0u, cg_bound(&op, 4));
            ASSERT_ENUM_EQm(
                none[i], CG_E_ARG, cg_compress(&op, &TAG, x, 4, packet, sizeof packet, &len, NULL, 0), ops_status);
            ASSERT_EQ(0u, len);
        }
    for (i = 0; i < sizeof texts / sizeof *texts; i++)
        ASSERTm(texts[i], cg_op_parse(&op, texts[i]) != CG_OK || cg_bound(&op, 4) == 0);
    user = cg_coded(cg_user(200, 0, 0, 0), CG_CODE_GAMMA);
    ASSERT_EQ(0u, cg_bound(&user, 4));
    op = cg_coded(cg_terngrad(), (cg_coding)(CG_CODE_QUARTIC + 1));
    ASSERT_EQ(0u, cg_bound(&op, 4));
    op = cg_coded(cg_coded(cg_terngrad(), CG_CODE_QUARTIC), CG_CODE_PACKED); /* undone */
    user = cg_terngrad();
    ASSERT_EQ(cg_bound(&user, 100), cg_bound(&op, 100));
    PASS();
}

/* ---- floats: lossless ---- */

static void floats(int kind, size_t n, float *x) {
    uint64_t state = 5;
    size_t i;
    if (kind < REF_KINDS) {
        ref_fill((ref_kind)kind, n, x, n);
        return;
    }
    for (i = 0; i < n; i++) {
        uint32_t u = ref_rand(&state);
        if (kind == REF_KINDS) u = (u >> 23 & 255) == 255 ? u & 0x807fffffu : u; /* any bits that are finite */
        /* zeros, denormals, ones */
        else u = i % 3 ? (u & 0x80000000u) : i % 2 ? u & 0x80000007u : (u & 0x8000ffffu) | 0x3f800000u;
        x[i] = ref_float(u);
    }
}

TEST lossless(const char *text, int kind, size_t n) {
    cg_op plain = parsed(text), coded_op = cg_coded(plain, CG_CODE_HUFFMAN), *op = &coded_op;
    size_t at = n, i, width = plain.quantize.id == CG_QUANTIZE_BF16 ? 2 : 4, place, k;
    float *x = (float *)ref_alloc(n * 4), *y = (float *)ref_alloc(n * 4), *z = (float *)ref_alloc(n * 4);
    static int exponents[FLOAT_PIECE];
    ops_packet packed, coded;
    parts r;
    floats(kind, n, x);
    packed = ops_pack(&plain, &TAG, x, n);
    coded = ops_pack(op, &TAG, x, n);
    EXPECT("packed", packed.status == CG_OK);
    EXPECT("coded", coded.status == CG_OK && !coded.touched);
    k = (size_t)ref_get(packed.p + 96, 8);
    EXPECT("longer than packed", coded.len <= packed.len + 4 * ((k + FLOAT_PIECE - 1) / FLOAT_PIECE));
    EXPECT("decode packed", cg_decompress(packed.p, packed.len, y, n) == CG_OK);
    EXPECT("decode coded", cg_decompress(coded.p, coded.len, z, n) == CG_OK);
    EXPECT("values", memcmp(y, z, n * 4) == 0);
    if (!plain.sample.id && !plain.transform.id && !plain.select.id)
        for (i = 0; i < n; i++)
            EXPECT("bits",
                width == 4 ? ref_bits(z[i]) == ref_bits(x[i])
                           : ref_bits(z[i]) == ref_bits(ref_from_bf16(ref_to_bf16(x[i]))));
    r = parts_of(&coded, (size_t)ref_get(packed.p + 128, 8), (size_t)ref_pad4(k * width * 8), FLOAT_PIECE);
    for (at = 0, place = r.codes; at < r.pieces; at++) { /* and by a plain reader */
        const unsigned char *p = coded.p + place, *was = packed.p + CG_HEADER_BYTES + at * FLOAT_PIECE * width;
        uint32_t entry = (uint32_t)ref_get(coded.p + r.table + 4 * at, 4);
        size_t many = k - at * FLOAT_PIECE < FLOAT_PIECE ? k - at * FLOAT_PIECE : FLOAT_PIECE,
               bytes = (entry & 0x3fffffffu) / 8, head;
        EXPECT("entry", entry % 8 == 0 && entry >> 30 <= 1 && place + bytes <= r.end);
        if (entry >> 30 == 0) {
            EXPECT("raw", bytes == many * width && memcmp(p, was, bytes) == 0);
        } else {
            huffman h;
            head = bytes - many * (width - 1);
            EXPECT("shorter", bytes < many * width && bytes >= many * (width - 1));
            EXPECT("exponents", read_huffman(p, head, many, exponents, &h));
            for (i = 0; i < many; i++) {
                uint32_t mantissa = width == 4 ? 23 : 7,
                         rest = (uint32_t)ref_get(p + head + i * (width - 1), (int)width - 1);
                uint32_t value = (rest & ((1u << mantissa) - 1)) | (uint32_t)exponents[i] << mantissa |
                    (rest >> mantissa) << (mantissa + 8);
                EXPECT("a float", value == (uint32_t)ref_get(was + i * width, (int)width));
            }
        }
        place += (bytes + 3) / 4 * 4;
    }
    EXPECT("bytes left over", place == r.end);
    free(x);
    free(y);
    free(z);
    free(packed.p);
    free(coded.p);
    PASS();
}

/* ---- sizes ---- */

static size_t piece_bits(const cg_op *op, uint64_t step, const float *x, size_t n) /* of the only piece */
{
    cg_tag tag = TAG;
    ops_packet pk;
    size_t length, scales = 4;
    tag.step = step;
    pk = ops_pack(op, &tag, x, n);
    if (pk.status != CG_OK) {
        fprintf(stderr, "%s\n", ops_text(op));
        exit(2);
    }
    length = (size_t)ref_get(pk.p + CG_HEADER_BYTES + scales, 4) & 0x3fffffffu;
    free(pk.p);
    return length;
}

/* QSGD's bound on the mean of the sparse code, with 0 for its o(1). */
TEST qsgd_sparse(int s) {
    enum { D = 8192, KEYS = 100 };
    static float x[D];
    cg_op op = cg_qsgd(s);
    double nonzero = s * (s + sqrt((double)D)), bound, mean;
    int kind, t;
    bound = (3.0 + 1.5 * log2(2.0 * ((double)s * s + D) / nonzero)) * nonzero + 32.0;
    for (kind = REF_LAPLACE; kind <= REF_GAUSSIAN; kind++) {
        ref_fill((ref_kind)kind, 77, x, D);
        for (t = 0, mean = 32; t < KEYS; t++) mean += (double)piece_bits(&op, (uint64_t)t, x, D) / KEYS;
        snprintf(note, sizeof note, "s = %d, vector %d: %.0f bits, bound %.0f", s, kind, mean, bound);
        ASSERTm(note, mean <= bound);
        ASSERTm(note, mean > 0.5 * bound); /* it is not for nothing that it is below */
    }
    PASS();
}

/* All ones and s = 1: each value is sent with probability 1/sqrt(d), so the mean is known exactly. */
TEST qsgd_mean_length(int code) {
    enum { D = 4096, KEYS = 400 };
    static float x[D];
    cg_op op = cg_coded(parsed("levels:1"), CODING[code]);
    double p = 1.0 / 64, want = 0, before = 0, miss = 1, sum = 0, squares = 0, error;
    int i, t;
    /* before: mean bits of the gap that ends here, if a value was before */
    for (i = 0; i < D; i++) {
        x[i] = 1.0f;
        want += p * (before + miss * elias_bits(code, (uint32_t)i + 1) + 1 + 1);
        before += p * miss * elias_bits(code, (uint32_t)i + 1);
        miss *= 1 - p;
    }
    for (t = 0; t < KEYS; t++) {
        double b = (double)piece_bits(&op, (uint64_t)t, x, D);
        sum += b / KEYS;
        squares += b * b / KEYS;
    }
    error = sqrt((squares - sum * sum) / KEYS);
    snprintf(note, sizeof note, "%s: mean %.2f bits, want %.2f +- %.2f", ops_text(&op), sum, want, error);
    ASSERTm(note, fabs(sum - want) < 4.5 * error);
    PASS();
}

/* s = sqrt(d): s |v| / |v|_2 is the magnitude of a normal variable, so mean lengths are integrals. The dense code
   takes 3.3 bits; counting the gaps between the values that are not 0 takes less even here, and the shorter one
   travels. */
TEST qsgd_dense(void) {
    enum { S = 127, D = S * S, N = 8 * D };
    static const alphabet a = { "levels:127:16129", 8, 254, 127 };
    cg_op plain = parsed(a.text), op = cg_coded(plain, CG_CODE_OMEGA);
    float *x = (float *)ref_alloc(N * 4);
    double want_dense = 0, want_sparse = 0, zero = 0, z, h = 1e-3, got, got_dense, run,
           scales_table = 32.0 / D + 32.0 / PIECE + 16.0 / PIECE;
    ops_packet packed, coded;
    int *v = (int *)ref_alloc(N * sizeof *v), g;
    size_t i;
    ref_fill(REF_GAUSSIAN, 1, x, N);
    for (z = h / 2; z < 9; z += h) {
        double l = floor(z), up = z - l, density = 2 * h * exp(-z * z / 2) / sqrt(2 * 3.14159265358979);
        want_dense += density *
            (1 + (1 - up) * elias_bits(OMEGA, (uint32_t)l + 1) + up * elias_bits(OMEGA, (uint32_t)l + 2));
        want_sparse += density *
            (1 - (l == 0) * (1 - up) + (l == 0 ? 0 : (1 - up) * elias_bits(OMEGA, (uint32_t)l)) +
                up * elias_bits(OMEGA, (uint32_t)l + 1));
        if (l == 0) zero += density * (1 - up);
    }
    for (g = 1, run = (1 - zero) * (1 - zero); g < 200; g++, run *= zero)
        want_sparse += run * elias_bits(OMEGA, (uint32_t)g);
    packed = ops_pack(&plain, &TAG, x, N);
    coded = ops_pack(&op, &TAG, x, N);
    ASSERT(packed.status == CG_OK && coded.status == CG_OK);
    for (i = 0; i < N; i++) v[i] = packed.p[CG_HEADER_BYTES + 4 * 8 + i];
    got_dense = (double)dense_bits(OMEGA, &a, v, N) / N;
    got = 8.0 * (double)(coded.len - CG_HEADER_BYTES) / N;
    snprintf(note, sizeof note, "dense %.4f bits, want %.4f; sent %.4f, want %.4f", got_dense, want_dense, got,
        want_sparse + scales_table);
    ASSERTm(note, fabs(got_dense - 3.3) < 0.03 * 3.3);
    /* standard error 0.002 each, and that of 8 norms */
    ASSERTm(note, fabs(got_dense - want_dense) < 0.01 * want_dense);
    ASSERTm(note, fabs(got - want_sparse - scales_table) < 0.01 * want_sparse);
    ASSERTm(note, got < got_dense + scales_table);
    free(packed.p);
    free(coded.p);
    free(v);
    free(x);
    PASS();
}

/* 4-bit levels of a Gaussian: the empirical entropy, the table, and little else. */
TEST huffman_near_entropy(const char *text, int bits_each, double most) {
    enum { N = 8 * PIECE };
    cg_op plain = parsed(text), op = cg_coded(plain, CG_CODE_HUFFMAN);
    float *x = (float *)ref_alloc(N * 4);
    ops_packet packed, coded;
    double want = 0, got;
    size_t piece, i, scales;
    ref_fill(REF_GAUSSIAN, 2, x, N);
    packed = ops_pack(&plain, &TAG, x, N);
    coded = ops_pack(&op, &TAG, x, N);
    ASSERT_ENUM_EQ(CG_OK, coded.status, ops_status);
    scales = packed.len - CG_HEADER_BYTES - N * (size_t)bits_each / 8;
    for (piece = 0; piece < N / PIECE; piece++) {
        size_t count[256] = { 0 }, span = 0;
        for (i = 0; i < PIECE; i++)
            count[ref_get_bits(
                packed.p + CG_HEADER_BYTES + scales, (piece * PIECE + i) * (size_t)bits_each, bits_each)]++;
        for (i = 0; i < 256; i++) span += count[i] > 0;
        want += entropy(count, 256, PIECE) + 8.0 * (4 + 2 + 6 + (double)span / 2);
    }
    got = 8.0 * (double)(coded.len - CG_HEADER_BYTES - scales);
    snprintf(note, sizeof note, "%s: %.4f bits per value, entropy and tables %.4f", text, got / N, want / N);
    ASSERTm(note, got >= want && got <= most * want);
    ASSERTm(note, got < (double)N * bits_each);
    free(x);
    free(packed.p);
    free(coded.p);
    PASS();
}

/* f32: the exponent of a normal variable has 2.6 bits of entropy; the rest travels as it is. */
TEST floats_near_entropy(void) {
    enum { N = 16 * FLOAT_PIECE };
    cg_op op = parsed("huffman");
    float *x = (float *)ref_alloc(N * 4);
    size_t count[256] = { 0 }, i;
    ops_packet pk;
    double want, got;
    ref_fill(REF_GAUSSIAN, 3, x, N);
    for (i = 0; i < N; i++) count[ref_bits(x[i]) >> 23 & 255]++;
    want = 24 + entropy(count, 256, N) / N;
    pk = ops_pack(&op, &TAG, x, N);
    got = 8.0 * (double)(pk.len - CG_HEADER_BYTES) / N;
    snprintf(note, sizeof note, "%.3f bits per value, entropy %.3f", got, want);
    /* a table for every piece sees a little less entropy */
    ASSERTm(note, got >= want - 0.05 && got <= 1.01 * want);
    free(x);
    free(pk.p);
    PASS();
}

TEST threelc_sizes(void) {
    enum { N = 70 * 14 * 16 }; /* 15680: two pieces */
    cg_op op = cg_threelc(1.0f), same = parsed("trits:1|quartic");
    static float x[N];
    ops_packet pk;
    size_t i, bytes, scales = 4, table = 8;
    ASSERT_MEM_EQ(&same, &op, sizeof op);
    for (i = 0; i < N; i++) x[i] = i % 2 ? 1.0f : -1.0f; /* no zeros: 5 trits to a byte, 1.6 bits */
    pk = ops_pack(&op, &TAG, x, N);
    /* 8192 values: 1639 bytes, the other 7488: 1498; each in whole words */
    bytes = 1640 + 1500;
    ASSERT_EQ_FMT((unsigned)(scales + table + bytes), (unsigned)(pk.len - CG_HEADER_BYTES), "%u");
    free(pk.p);
    memset(x, 0, sizeof x); /* zeros: 14 bytes, or 70 values, to a byte */
    pk = ops_pack(&op, &TAG, x, N);
    bytes = 120 + 108; /* 1639 = 117 * 14 + 1 and 1498 = 107 * 14 */
    ASSERT_EQ_FMT((unsigned)(scales + table + bytes), (unsigned)(pk.len - CG_HEADER_BYTES), "%u");
    free(pk.p);
    /* 12 values, each a byte; 139 bytes between them: 9 runs of 14, one of 13 */
    for (i = 0; i < PIECE; i++) x[i] = i % 700 ? 0.0f : -3.0f;
    pk = ops_pack(&op, &TAG, x, PIECE);
    bytes = 132; /* 11 * (1 + 10), then 1 + ceil(98 / 14): 129 */
    ASSERT_EQ_FMT((unsigned)(scales + 4 + bytes), (unsigned)(pk.len - CG_HEADER_BYTES), "%u");
    free(pk.p);
    PASS();
}

/* ---- hostile packets ---- */

enum { MAX_N = 8192 + 64, GUARD = 64 };
static float guarded[MAX_N + 2 * GUARD], before[MAX_N + 2 * GUARD];
static float *const y = guarded + GUARD;

static void prepare(size_t n) {
    size_t i;
    for (i = 0; i < n + 2 * GUARD; i++) guarded[i] = before[i] = (float)i * 0.5f - 17.0f;
}
static int guards_hold(size_t n) {
    return memcmp(guarded, before, GUARD * 4) == 0 && memcmp(y + n, before + GUARD + n, GUARD * 4) == 0;
}
static int untouched(size_t n) { return memcmp(guarded, before, (n + 2 * GUARD) * 4) == 0; }
static int is_damage(cg_status s) { return s == CG_E_CORRUPT || s == CG_E_VERSION || s == CG_E_MISMATCH; }

/* Every way of decoding gives one verdict; y changes only with CG_OK. Memory of the exact length, for sanitizers. */
TEST decode_safely(
    const cg_op *op, const unsigned char *packet, size_t len, size_t n, size_t at, cg_status *verdict, float *values) {
    unsigned char *p = (unsigned char *)ref_alloc(len);
    cg_extra direct = CG_ZERO;
    cg_status s;
    size_t i;
    direct.flags = CG_DECODE_DIRECT;
    memcpy(p, packet, len);
    prepare(n);
    s = cg_decode(&direct, p, len, 0.5f, 1.0f, y, n);
    EXPECT("guards", guards_hold(n));
    prepare(n);
    *verdict = cg_clear(p, len, y, n);
    EXPECT("cg_clear", guards_hold(n) && (*verdict == CG_OK || untouched(n)) && (s != CG_OK || *verdict == CG_OK));
    prepare(n);
    *verdict = cg_decompress(p, len, y, n);
    EXPECT("y outside [0,n) written", guards_hold(n));
    EXPECT("two verdicts", s == *verdict);
    EXPECT("status", s == CG_OK || is_damage(s));
    if (s != CG_OK) EXPECT("y written in spite of an error", untouched(n));
    else
        for (i = 0; i < n; i++) EXPECT("y not finite", ref_finite(y[i]));
    if (values) memcpy(values, y, n * 4);
    free(p);
    PASS();
}

/* Vectors whose packets are coded, dense or sparse. */
static void small_vector(int kind, float *x, size_t n) {
    uint64_t state = 3;
    size_t i;
    for (i = 0; i < n; i++) {
        double g = ref_normal(&state);
        x[i] = (float)(kind == 0 ? g * 0.05
                : kind == 1      ? (i % 23 == 5 ? g : 1e-6 * g)
                : kind == 2      ? (i == n / 2 ? -1.0 : 0.01 * g)
                                 : 0.25);
    }
}

/* The symbols that the plain reader finds, put into a packed packet: what the coded one must decode to. */
static int reread(int code, const alphabet *a, const ops_packet *packed, const unsigned char *coded, const parts *r,
    unsigned char *out) {
    size_t piece, place = r->codes, i;
    static int v[PIECE];
    memcpy(out, packed->p, packed->len);
    memcpy(out + CG_HEADER_BYTES, coded + r->scales, r->table - r->scales);
    memset(out + CG_HEADER_BYTES + (r->table - r->scales), 0, (size_t)ref_pad4(r->k * (uint64_t)a->bits));
    for (piece = 0; piece < r->pieces; piece++) {
        uint32_t entry = (uint32_t)ref_get(coded + r->table + 4 * piece, 4);
        size_t n = r->k - piece * PIECE < PIECE ? r->k - piece * PIECE : PIECE,
               bytes = ((entry & 0x3fffffffu) + (size_t)31) / 32 * 4;
        if (bytes > r->end - place) return 0;
        if (!read_piece(code, a, entry, coded + place, n, v)) return 0;
        for (i = 0; i < n; i++)
            ref_put_bits(out + CG_HEADER_BYTES + (r->table - r->scales), (piece * PIECE + i) * (size_t)a->bits,
                (uint64_t)v[i], a->bits);
        place += bytes;
    }
    ref_seal(out, packed->len);
    return place == r->end;
}

/* Which alphabets, one of a kind. */
static const int SOME[] = { 0, 3, 6, 8, 11, 13, 15, 19, 20, 22, 25, 31 };
enum { SOME_COUNT = sizeof SOME / sizeof *SOME };

TEST every_bit_flipped_sealed(int which, const char *first) {
    const alphabet *a = &ALPHABETS[SOME[which]];
    int code, kind;
    for (code = 0; code < CODES; code++)
        for (kind = 0; kind < 3; kind++) {
            const size_t n = 90 + 3 * (size_t)kind;
            cg_op plain = first ? cg_then(parsed(first), parsed(a->text)) : parsed(a->text),
                  coded_op = cg_coded(plain, CODING[code]), *op = &coded_op;
            float x[128], got[128], want[128];
            ops_packet packed, coded;
            unsigned char *other;
            cg_status s;
            parts r;
            size_t at, accepted = 0;
            if (!carries(a, code)) continue;
            small_vector(kind, x, n);
            packed = ops_pack(&plain, &TAG, x, n);
            coded = ops_pack(op, &TAG, x, n);
            at = 0;
            EXPECT("compress", packed.status == CG_OK && coded.status == CG_OK);
            other = (unsigned char *)ref_alloc(packed.len);
            r = parts_of(&coded, (size_t)ref_get(packed.p + 128, 8),
                (size_t)ref_pad4(ref_get(packed.p + 96, 8) * (uint64_t)a->bits), PIECE);
            for (at = 0; at < coded.len * 8; at += long_test() ? 1 : 5) {
                if (at / 8 >= 152 && at / 8 < CG_HEADER_BYTES) continue;
                coded.p[at / 8] = (unsigned char)(coded.p[at / 8] ^ 1u << at % 8);
                ref_seal(coded.p, coded.len);
                CHECK_CALL(decode_safely(op, coded.p, coded.len, n, at, &s, got));
                if (at / 8 >= r.table && at / 8 < r.end) {
                    int valid = reread(code, a, &packed, coded.p, &r, other);
                    /* sizes of strings are judged, too */
                    if (code == HUFFMAN) EXPECT("bad body accepted", valid || s != CG_OK);
                    else EXPECT(valid ? "legal body refused" : "bad body accepted", (s == CG_OK) == valid);
                    if (s == CG_OK) {
                        EXPECT("packed", cg_decompress(other, packed.len, want, n) == CG_OK);
                        EXPECT("values", memcmp(got, want, n * 4) == 0);
                        accepted++;
                    }
                }
                coded.p[at / 8] = (unsigned char)(coded.p[at / 8] ^ 1u << at % 8);
            }
            free(packed.p);
            free(coded.p);
            free(other);
        }
    PASS();
}

/* Floats, indices and what has several sections: an error or a result. */
TEST every_bit_flipped_plain(const char *text) {
    cg_op coded_op = parsed(text), *op = &coded_op;
    int kind;
    for (kind = 0; kind < 3; kind++) {
        const size_t n = 100;
        float x[128];
        ops_packet pk;
        cg_status s;
        size_t at = 0;
        small_vector(kind, x, n);
        pk = ops_pack(op, &TAG, x, n);
        EXPECT("compress", pk.status == CG_OK);
        for (at = 0; at < pk.len * 8; at++) {
            if (at / 8 >= 152 && at / 8 < CG_HEADER_BYTES) continue;
            pk.p[at / 8] = (unsigned char)(pk.p[at / 8] ^ 1u << at % 8);
            ref_seal(pk.p, pk.len);
            CHECK_CALL(decode_safely(op, pk.p, pk.len, n, at, &s, NULL));
            pk.p[at / 8] = (unsigned char)(pk.p[at / 8] ^ 1u << at % 8);
        }
        free(pk.p);
    }
    PASS();
}

TEST truncated(const char *text) {
    cg_op coded_op = parsed(text), *op = &coded_op;
    const size_t n = 100;
    float x[128];
    ops_packet pk;
    unsigned char *copy;
    cg_status s;
    size_t at = 0, values;
    small_vector(1, x, n);
    pk = ops_pack(op, &TAG, x, n);
    EXPECT("compress", pk.status == CG_OK);
    copy = (unsigned char *)ref_alloc(pk.len + 8);
    values = (size_t)ref_get(pk.p + 128, 8);
    for (at = 0; at < pk.len; at++) {
        CHECK_CALL(decode_safely(op, pk.p, at, n, at, &s, NULL));
        EXPECT("truncated", s == CG_E_CORRUPT);
    }
    for (at = CG_HEADER_BYTES; at < pk.len + 8; at += 4) { /* a header that believes in the new length */
        uint64_t less = (uint64_t)pk.len - at;
        if (at == pk.len || less > values) continue;
        memcpy(copy, pk.p, at < pk.len ? at : pk.len);
        ref_put(copy + 128, values - less, 8);
        ref_seal(copy, at);
        CHECK_CALL(decode_safely(op, copy, at, n, at, &s, NULL));
    }
    for (at = 0; at < 300; at++)
        if (at != n) {
            CHECK_CALL(decode_safely(op, pk.p, pk.len, at, at, &s, NULL));
            EXPECT("another n", s == CG_E_MISMATCH);
        }
    free(pk.p);
    free(copy);
    PASS();
}

/* Random bytes over pieces of full size, where the fast paths of decoders run; now and then over the table, too. */
TEST garbage(int rounds) {
    static float x[MAX_N], got[MAX_N], want[MAX_N];
    uint64_t state = 2025;
    int i, accepted = 0, elias = 0;
    for (i = 0; i < rounds; i++) {
        const alphabet *a = &ALPHABETS[ref_rand(&state) % ALPHABET_COUNT];
        int code = (int)(ref_rand(&state) % CODES), edits = 1 + (int)(ref_rand(&state) % 40), j,
            kind = (int)(ref_rand(&state) % 3);
        size_t n = ref_rand(&state) % 3 ? 1500 + ref_rand(&state) % 3000 : PIECE + 50, at = (size_t)i;
        cg_op plain = parsed(a->text), coded_op, *op = &coded_op;
        ops_packet packed, coded;
        unsigned char *other;
        cg_status s;
        parts r;
        int valid;
        if (!carries(a, code)) continue;
        coded_op = cg_coded(plain, CODING[code]);
        ref_fill(ref_rand(&state) % 2 ? REF_GAUSSIAN : REF_LAPLACE, (uint64_t)i, x, n);
        if (kind == 1)
            for (at = 0; at < n; at++) x[at] *= at % 50 ? 1e-4f : 1.0f;
        at = (size_t)i;
        packed = ops_pack(&plain, &TAG, x, n);
        coded = ops_pack(op, &TAG, x, n);
        EXPECT("compress", packed.status == CG_OK && coded.status == CG_OK);
        r = parts_of(&coded, (size_t)ref_get(packed.p + 128, 8), (size_t)ref_pad4(n * (uint64_t)a->bits), PIECE);
        for (j = 0; j < edits; j++) {
            size_t from = j == 0 && i % 8 == 0 ? r.table : r.codes;
            if (r.end > from)
                coded.p[from + ref_rand(&state) % (r.end - from)] =
                    (unsigned char)(ref_rand(&state) & (kind == 2 ? 255 : ref_rand(&state) & 255));
        }
        ref_seal(coded.p, coded.len);
        other = (unsigned char *)ref_alloc(packed.len);
        CHECK_CALL(decode_safely(op, coded.p, coded.len, n, at, &s, got));
        valid = reread(code, a, &packed, coded.p, &r, other);
        EXPECT("verdict", code == HUFFMAN ? valid || s != CG_OK : (s == CG_OK) == valid);
        if (s == CG_OK) {
            EXPECT("packed", cg_decompress(other, packed.len, want, n) == CG_OK);
            EXPECT("values", memcmp(got, want, n * 4) == 0);
            accepted++;
            elias += code <= OMEGA;
        }
        free(packed.p);
        free(coded.p);
        free(other);
    }
    snprintf(note, sizeof note, "%d of %d accepted, %d of them Elias", accepted, rounds, elias);
    ASSERTm(note, accepted > rounds / 20 && accepted < rounds && elias > rounds / 50);
    PASS();
}

static const char *const FLAT[] = { "huffman", "bf16|huffman", "topk:0.3|huffman", "topk:0.2|golomb",
    "topk:0.4|absmax:4:16|huffman|golomb", "randk:0.5|terngrad|quartic", "rotate:2|absmax:2:64|omega",
    "dct|topk:0.3|levels:3|gamma|bitmap", "blocks:8|absmax:4:8|delta", "stc:0.1", "sbc:0.1", "klevel:4:64" };

SUITE(values) {
    static const char *const befores[] = { "topk:0.2", "threshold:0.001|golomb", "randk:0.4|topk:0.5", "rotate:1",
        "dct|chunked:64:0.25", "blocks:16", "permk:9" };
    size_t i;
    int a;
    for (a = 0; a < ALPHABET_COUNT; a++) RUN_TEST1(every_code, a);
    for (i = 0; i < sizeof befores / sizeof *befores; i++) RUN_TEST1(composed, befores[i]);
    RUN_TEST(every_form_met);
    RUN_TEST(refused);
}

SUITE(exact) {
    static const char *const texts[] = { "dense", "bf16", "topk:0.3", "randk:0.5|bf16", "rotate:2" };
    static const size_t sizes[] = { 0, 1, 7, 33, 500, 2047, 2048, 2049, 5000, 65536 + 3000 };
    size_t t, s;
    int kind;
    for (t = 0; t < sizeof texts / sizeof *texts; t++)
        for (s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (kind = 0; kind < REF_KINDS + 2; kind++) {
                if (t == 4 && kind == REF_KINDS) continue; /* sums of any numbers are not finite */
                if (sizes[s] < 60000 || kind % 4 == 1) RUN_TESTp(lossless, texts[t], kind, sizes[s]);
            }
}

SUITE(sizes) {
    RUN_TEST1(qsgd_sparse, 1);
    RUN_TEST1(qsgd_sparse, 2);
    RUN_TEST1(qsgd_sparse, 4);
    RUN_TEST1(qsgd_mean_length, GAMMA);
    RUN_TEST1(qsgd_mean_length, DELTA);
    RUN_TEST1(qsgd_mean_length, OMEGA);
    RUN_TEST(qsgd_dense);
    RUN_TESTp(huffman_near_entropy, "absmax:4:8192", 4, 1.03);
    RUN_TESTp(huffman_near_entropy, "absmax:4:512:nearest", 4, 1.03);
    RUN_TESTp(huffman_near_entropy, "minmax:8:512", 8, 1.02);
    RUN_TEST(floats_near_entropy);
    RUN_TEST(threelc_sizes);
}

SUITE(hostile) {
    size_t i;
    int a;
    for (a = 0; a < SOME_COUNT; a++) {
        RUN_TESTp(every_bit_flipped_sealed, a, NULL);
        if (a % 3 == 1) RUN_TESTp(every_bit_flipped_sealed, a, "topk:0.7");
    }
    for (i = 0; i < sizeof FLAT / sizeof *FLAT; i++) {
        RUN_TEST1(every_bit_flipped_plain, FLAT[i]);
        RUN_TEST1(truncated, FLAT[i]);
    }
    for (a = 0; a < ALPHABET_COUNT; a++) {
        static char text[64];
        snprintf(text, sizeof text, "%s|%s", ALPHABETS[a].text,
            a % 4 == 0       ? "gamma"
                : a % 4 == 1 ? "delta"
                : a % 4 == 2 ? "omega"
                             : "huffman");
        RUN_TEST1(truncated, text);
    }
    RUN_TEST1(garbage, long_test() ? 3000 : 1000);
}

GREATEST_MAIN_DEFS();

int main(int argc, char **argv) {
    GREATEST_MAIN_BEGIN();
    RUN_SUITE(values);
    RUN_SUITE(exact);
    RUN_SUITE(sizes);
    RUN_SUITE(hostile);
    GREATEST_MAIN_END();
}
