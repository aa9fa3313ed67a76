/* Every selection and sample that came after top-k, threshold and random-k, and the compositions that have a name:
   which indices come out, with which values, how many, in how many bytes, against plain definitions.

   The index set is what cg_clear sets to zero. All keys are fixed, so what passes once passes always; estimates are
   judged by the declared variance, in projections (see test_random.c). */
#define COMPGRAD_IMPLEMENTATION
#include "compgrad.h"
#include "ref.h"
#include "ops.h"
#include "greatest.h"
#define TIER_SPARED
#include "tier.h"

static const cg_tag TAG = { UINT64_C(0x0123456789ABCDEF), 77, 5, 2 };
/* around the sizes where methods change: a chunk, DGC's strides, a block, DGC's one in a hundred */
static const size_t SMALL[] = { 0, 1, 2, 3, 5, 7, 8, 9, 31, 32, 33, 63, 64, 65, 100, 255, 257, 1000, 2047, 2048, 2049,
    4095, 4096, 4097 };
static const size_t LARGE[] = { 8191, 8192, 65535, 65536, 65537, 131089, 409599, 409600, 409601 };
enum {
    SMALL_COUNT = sizeof SMALL / sizeof *SMALL,
    LARGE_COUNT = sizeof LARGE / sizeof *LARGE,
    MOST = 409601,
    GUARD = 16
};
static const float RATIOS[] = { 0.001f, 0.01f, 0.05f, 0.1f, 0.25f, 0.4f, 0.7f, 1.0f };
enum { RATIO_COUNT = sizeof RATIOS / sizeof *RATIOS };
static const double SIGMAS = 4.5;

static float *x, *aux; /* MOST of each */
static char note[320];

#define EXPECT(why_)                                                                                         \
  do {                                                                                                       \
    const char *why = (why_);                                                                                \
    if (why) {                                                                                               \
      snprintf(note, sizeof note, "%s: %s, n = %lu, vector %d", why, ops_text(&op), (unsigned long)n, kind); \
      FAILm(note);                                                                                           \
    }                                                                                                        \
  } while (0)
#define CLAIM(cond)            \
  do {                         \
    if (!(cond)) return #cond; \
  } while (0)

/* ---- a packet, and what is in it ---- */

typedef struct look {
    ops_packet pk;
    cg_info info;
    float *y;
    unsigned char *in;
    uint64_t *at;
    size_t k;
} look;

static void forget(look *l) {
    free(l->pk.p);
    free(l->y);
    free(l->in);
    free(l->at);
    memset(l, 0, sizeof *l);
}

static int selection_has_threshold(const cg_op *op) {
    return op->select.id == CG_SELECT_TOPK || op->select.id == CG_SELECT_MSTOPK || op->select.id == CG_SELECT_DGC ||
        op->select.id == CG_SELECT_SIDCO;
}

/* Golomb (Sattler): b = 1 + floor(log2(ln(phi - 1) / ln(1 - p))), at least 0; gap - 1 = g as g >> b zeros, a one,
   b low bits. */
static int golomb_b(uint64_t universe, uint64_t k) {
    double p = (double)k / (double)universe;
    int b;
    if (k >= universe) return 0;
    b = 1 + (int)floor(log2(log((sqrt(5.0) + 1) / 2 - 1) / log1p(-p)));
    return b < 0 ? 0 : b;
}

/* bits; out may be NULL */
static uint64_t golomb_put(unsigned char *out, const uint64_t *index, uint64_t k, uint64_t universe) {
    uint64_t at = 0, next = 0, i;
    int b = golomb_b(universe, k);
    for (i = 0; i < k; i++) {
        uint64_t g = index[i] - next;
        next = index[i] + 1;
        at += g >> b;
        if (out) {
            ref_put_bits(out, at, 1, 1);
            ref_put_bits(out, at + 1, g, b);
        }
        at += 1 + (uint64_t)b;
    }
    return at;
}

/* 1 if bytes are exactly k ascending indices below universe and zeros to the end of the last word */
static int golomb_valid(const unsigned char *in, uint64_t bytes, uint64_t k, uint64_t universe) {
    uint64_t at = 0, next = 0, i, bits = bytes * 8;
    int b = golomb_b(universe, k);
    for (i = 0; i < k; i++) {
        uint64_t q = 0;
        while (at < bits && !ref_get_bits(in, at, 1)) {
            q++;
            at++;
        }
        if (at + 1 + (uint64_t)b > bits) return 0;
        next += (q << b) + ref_get_bits(in, at + 1, b);
        if (next++ >= universe) return 0;
        at += 1 + (uint64_t)b;
    }
    if (ref_pad4(at) != bytes) return 0;
    for (; at < bits; at++)
        if (ref_get_bits(in, at, 1)) return 0;
    return 1;
}

/* The index section that `units` (ascending) must have become. */
static const char *index_section(const look *l, const cg_op *op, const uint64_t *units, uint64_t k, uint64_t universe) {
    uint64_t ef = ref_ef_bytes(universe, k), map = ref_pad4(universe), bytes, i;
    int ix = !k ? CG_CODE_ELIAS_FANO : op->code.id ? op->code.id : map < ef ? CG_CODE_BITMAP : CG_CODE_ELIAS_FANO;
    unsigned char *want;
    const unsigned char *got = l->pk.p + CG_HEADER_BYTES + l->info.value_bytes;
    ref_item *v;
    CLAIM(l->info.index_code == (uint32_t)ix);
    if (!k) return l->info.index_bytes ? "no values, yet index bytes" : NULL;
    bytes = ix == CG_CODE_BITMAP ? map : ix == CG_CODE_GOLOMB ? ref_pad4(golomb_put(NULL, units, k, universe)) : ef;
    CLAIM(l->info.index_bytes == bytes);
    want = (unsigned char *)ref_alloc((size_t)bytes);
    v = (ref_item *)ref_alloc((size_t)k * sizeof *v);
    for (i = 0; i < k; i++) v[i].index = units[i];
    if (ix == CG_CODE_GOLOMB) golomb_put(want, units, k, universe);
    else ref_put_indices(want, ix, v, k, universe);
    i = (uint64_t)(memcmp(want, got, (size_t)bytes) != 0);
    free(want);
    free(v);
    CLAIM(!i);
    return NULL;
}

/* Compresses, reads the header, the index set and the values; checks all that holds for any selection. */
static const char *look_at(
    look *l, const cg_op *op, const cg_tag *tag, const cg_extra *side, const float *v, size_t n) {
    size_t i;
    float *marks;
    int given = op->select.id == CG_SELECT_GIVEN;
    memset(l, 0, sizeof *l);
    l->pk = ops_pack_cap(op, tag, side, v, n, cg_bound(op, n));
    if (l->pk.status != CG_OK) return ops_status((int)l->pk.status);
    CLAIM(!l->pk.touched && l->pk.len <= l->pk.cap);
    CLAIM(cg_inspect(l->pk.p, l->pk.len, &l->info) == CG_OK);
    CLAIM(l->info.n == n && l->info.packet_bytes == l->pk.len && l->info.op.select.id == op->select.id);
    CLAIM(selection_has_threshold(op) || ref_bits(l->info.threshold) == 0);
    l->y = (float *)ref_alloc((n + GUARD) * 4);
    l->in = (unsigned char *)ref_alloc(n);
    l->at = (uint64_t *)ref_alloc(n * 8);
    marks = (float *)ref_alloc((n + GUARD) * 4);
    for (i = 0; i < n + GUARD; i++) marks[i] = l->y[i] = 3.25f;
    CLAIM((given ? cg_clear(side->support, side->support_len, marks, n) : cg_clear(l->pk.p, l->pk.len, marks, n)) ==
        CG_OK);
    CLAIM(cg_decode(given ? side : NULL, l->pk.p, l->pk.len, 1.0f, 0.0f, l->y, n) == CG_OK);
    for (i = 0; i < n; i++) {
        l->in[i] = marks[i] == 0.0f;
        if (l->in[i]) l->at[l->k++] = i;
        else CLAIM(ref_bits(l->y[i]) == 0 && marks[i] == 3.25f);
    }
    for (; i < n + GUARD; i++) CLAIM(marks[i] == 3.25f && l->y[i] == 3.25f);
    free(marks);
    /* every position once: nothing is drawn or sent twice */
    if (!op->transform.id) CLAIM(l->info.k == l->k);
    if (!op->quantize.id && !op->code.arg) CLAIM(l->info.value_bytes == 4 * l->info.k);
    CLAIM(l->pk.len == CG_HEADER_BYTES + l->info.value_bytes + l->info.index_bytes);
    if (op->select.id && !given && !op->sample.id && !op->transform.id) {
        uint64_t unit = op->select.id == CG_SELECT_BLOCKS ? op->select.size : 1, universe = (n + unit - 1) / unit,
                 many = 0;
        uint64_t *units = (uint64_t *)ref_alloc(l->k * 8);
        const char *why;
        for (i = 0; i < l->k; i++)
            if (!many || units[many - 1] != l->at[i] / unit) units[many++] = l->at[i] / unit;
        why = index_section(l, op, units, many, universe);
        free(units);
        if (why) return why;
    }
    return NULL;
}

/* The same packet from plain C code, and the same set and values in every code of indices. */
static const char *same_elsewhere(
    const look *l, const cg_op *op, const cg_tag *tag, const cg_extra *side, const float *v, size_t n) {
    ops_packet p;
    int c;
    CLAIM(cg_isa_force(CG_ISA_SCALAR) == CG_OK);
    p = ops_pack_cap(op, tag, side, v, n, cg_bound(op, n));
    CLAIM(cg_isa_force(CG_ISA_AUTO) == CG_OK);
    CLAIM(p.status == CG_OK && p.len == l->pk.len && memcmp(p.p, l->pk.p, p.len) == 0);
    free(p.p);
    if (op->select.id == CG_SELECT_GIVEN || op->code.id) return NULL;
    for (c = CG_CODE_ELIAS_FANO; c <= CG_CODE_GOLOMB; c++) {
        cg_op coded = cg_coded(*op, (cg_coding)c);
        look m;
        const char *why = look_at(&m, &coded, tag, side, v, n);
        if (why) return why;
        CLAIM(m.k == l->k && memcmp(m.in, l->in, n) == 0 && memcmp(m.y, l->y, 4 * n) == 0 && m.info.k == l->info.k);
        forget(&m);
    }
    return NULL;
}

static const char *values_are(const look *l, const float *v) {
    size_t i;
    for (i = 0; i < l->k; i++) CLAIM(ref_bits(l->y[l->at[i]]) == ref_bits(v[l->at[i]]));
    return NULL;
}

/* The set within [from, to) is the `want` largest magnitudes, of equals the lowest indices; sign 1 or -1: of that
   side of zero only, and none of the others. */
static const char *top_of(const look *l, const float *v, size_t from, size_t to, uint64_t want, int sign) {
    uint32_t least = UINT32_MAX;
    uint64_t count = 0;
    size_t i, last = 0;
    for (i = from; i < to; i++) {
        if (!l->in[i] || (sign && (v[i] > 0) - (v[i] < 0) != sign)) continue;
        count++;
        if (ref_mag(v[i]) <= least) {
            least = ref_mag(v[i]);
            last = i;
        } /* the last of the least */
    }
    CLAIM(count == want);
    if (!want) return NULL;
    for (i = from; i < to; i++) {
        if (l->in[i] || (sign && (v[i] > 0) - (v[i] < 0) != sign)) continue;
        CLAIM(ref_mag(v[i]) <= least);
        CLAIM(ref_mag(v[i]) < least || i > last);
    }
    return NULL;
}

/* ---- plain definitions ---- */

/* DGC, SIDCo: 0.8 to 1.3 of what was asked for, none larger than what was left out, the threshold between the two. */
static const char *near_the_ratio(const look *l, const cg_op *op, const float *v, size_t n) {
    uint64_t want = ref_count(op->select.value, 0, n);
    uint32_t t = ref_bits(l->info.threshold);
    const char *why = top_of(l, v, 0, n, l->k, 0);
    size_t i;
    if (why) return why;
    CLAIM(10 * (uint64_t)l->k >= 8 * want);
    CLAIM(10 * (uint64_t)l->k <= 13 * want);
    for (i = 0; i < n; i++) CLAIM(l->in[i] ? ref_mag(v[i]) >= t : ref_mag(v[i]) <= t);
    return values_are(l, v);
}

/* SIDCo: the threshold where exponentials, fitted above the one before, leave a quarter each and the last what is
   asked for. */
static double sidco_threshold(const float *v, size_t n, uint64_t k) {
    double left = (double)k / (double)n, t = 0.0;
    while (left < 1.0) {
        double c = left < 0.25 ? 0.25 : left, excess = 0.0;
        size_t i, above = 0;
        for (i = 0; i < n; i++)
            if ((double)fabsf(v[i]) > t) {
                excess += (double)fabsf(v[i]) - t;
                above++;
            }
        if (!above) break;
        t += excess / (double)above * log(1.0 / c);
        left /= c;
        if (left > 0.9999999) break;
    }
    return t;
}

static const char *sidco_is(const look *l, const cg_op *op, const float *v, size_t n) {
    uint64_t want = ref_count(op->select.value, 0, n), count = 0;
    double t = sidco_threshold(v, n, want);
    const char *why = near_the_ratio(l, op, v, n);
    size_t i;
    if (why || n > 8192) return why; /* of more a sample is fitted */
    for (i = 0; i < n; i++) {
        if (fabs((double)fabsf(v[i]) - t) <= 1e-6 * t) return NULL; /* too near to tell */
        count += (double)fabsf(v[i]) > t;
    }
    if (10 * count < 8 * want || 10 * count > 13 * want) return NULL; /* corrected, by whatever rule */
    CLAIM(l->k == count);
    CLAIM(fabs((double)l->info.threshold - t) <= 1e-6 * t);
    return NULL;
}

/* MSTop-k by its definition: 30 bisections, each counting. x must lie on a grid (grid() below), so that its mean
   is the same in any order. */
static const char *mstopk_is(const look *l, const cg_op *op, const float *v, size_t n) {
    uint64_t k = ref_count(op->select.value, op->k, n), sure = 0, taken = 0, first = 0, last = 0, ordinal = 0;
    double sum = 0.0, top = 0.0, lo = 0.0, hi = 1.0, mean;
    float thr1 = INFINITY, thr2 = 0.0f; /* at most k reach the first, more than k the second */
    size_t i;
    int step;
    CLAIM(l->k == k);
    if (k == n) return values_are(l, v);
    for (i = 0; i < n; i++) {
        sum += (double)fabsf(v[i]);
        if ((double)fabsf(v[i]) > top) top = (double)fabsf(v[i]);
    }
    mean = sum / (double)n;
    for (step = 0; step < 30; step++) {
        double r = (lo + hi) * 0.5;
        volatile double up = r * (top - mean);
        volatile float thr = (float)(mean + up);
        float t = thr;
        uint64_t count = 0;
        for (i = 0; i < n; i++) count += fabsf(v[i]) >= t;
        if (count <= k) {
            hi = r;
            thr1 = t;
        } else {
            lo = r;
            thr2 = t;
        }
    }
    CLAIM(ref_bits(l->info.threshold) == ref_bits(thr2));
    for (i = 0; i < n; i++) {
        if (fabsf(v[i]) >= thr1) {
            sure++;
            CLAIM(l->in[i]);
            continue;
        }
        if (fabsf(v[i]) < thr2) {
            CLAIM(!l->in[i]);
            continue;
        }
        if (l->in[i]) {
            if (!taken++) first = ordinal;
            last = ordinal;
        }
        ordinal++;
    }
    CLAIM(sure + taken == k);
    CLAIM(!taken || last - first + 1 == taken); /* neighbours */
    return values_are(l, v);
}

/* Every |x| a multiple of 2^-30 of the largest: sums of 2^20 of them are exact. */
static void grid(float *v, size_t n) {
    double top = 0.0, step;
    size_t i;
    for (i = 0; i < n; i++) top = fmax(top, fabs((double)v[i]));
    if (top == 0.0) return;
    step = ldexp(1.0, ilogb(top) - 30);
    for (i = 0; i < n; i++) v[i] = (float)(rint((double)v[i] / step) * step);
}

static const char *sides_are(const look *l, const cg_op *op, const float *v, size_t n) /* AdaQ */
{
    uint64_t have[2] = { 0, 0 };
    const char *why;
    size_t i;
    for (i = 0; i < n; i++) {
        have[0] += v[i] > 0;
        have[1] += v[i] < 0;
        CLAIM(v[i] != 0 || !l->in[i]);
    }
    why = top_of(l, v, 0, n, ref_count(op->select.value, 0, have[0]), 1);
    return why ? why : top_of(l, v, 0, n, ref_count(op->select.value, 0, have[1]), -1);
}

static int by_size(const void *pa, const void *pb) {
    double a = *(const double *)pa, b = *(const double *)pb;
    return a > b ? -1 : a < b;
}

/* SBC: as many of each side (or all there are), and only the side with the larger mean. Returns its sign; a tie
   goes to +. */
static int side_of(const float *v, size_t n, uint64_t k, uint64_t *kept, double *mean) {
    double *m[2], sum[2] = { 0.0, 0.0 };
    uint64_t have[2] = { 0, 0 }, i;
    int s;
    m[0] = (double *)ref_alloc(n * sizeof **m);
    m[1] = (double *)ref_alloc(n * sizeof **m);
    for (i = 0; i < n; i++)
        if (v[i] != 0) m[v[i] < 0][have[v[i] < 0]++] = fabs((double)v[i]);
    for (s = 0; s < 2; s++) {
        qsort(m[s], (size_t)have[s], sizeof **m, by_size);
        if (have[s] > k) have[s] = k;
        for (i = 0; i < have[s]; i++) sum[s] += m[s][i];
        if (have[s]) sum[s] /= (double)have[s];
        free(m[s]);
    }
    s = sum[1] > sum[0];
    *kept = have[s];
    *mean = sum[s];
    return s ? -1 : 1;
}

static const char *side_is(const look *l, const cg_op *op, const float *v, size_t n) {
    uint64_t kept;
    double mean;
    int sign = side_of(v, n, ref_count(op->select.value, 0, n), &kept, &mean);
    CLAIM(l->k == kept);
    return top_of(l, v, 0, n, kept, sign);
}

static const char *chunks_are(const look *l, const cg_op *op, const float *v, size_t n) {
    size_t i, end;
    for (i = 0; i < n; i = end) {
        const char *why;
        end = n - i > op->select.size ? i + op->select.size : n;
        why = top_of(l, v, i, end, ref_count(op->select.value, 0, end - i), 0);
        if (why) return why;
    }
    return values_are(l, v);
}

static const char *blocks_are(const look *l, const cg_op *op, const float *v, size_t n) {
    size_t i, j, end;
    for (i = 0; i < n; i = end) {
        int any = 0;
        end = n - i > op->select.size ? i + op->select.size : n;
        for (j = i; j < end; j++) any |= v[j] != 0;
        for (j = i; j < end; j++) CLAIM(l->in[j] == any);
    }
    return values_are(l, v);
}

static const char *variance_is(const look *l, const cg_op *op, const float *v, const float *var, size_t n) {
    size_t i; /* both products are exact in f64 */
    for (i = 0; i < n; i++)
        CLAIM(l->in[i] == ((double)v[i] * (double)v[i] > (double)op->select.value * (double)var[i]));
    return values_are(l, v);
}

/* AdaComp: |G + g| reaches the largest |G| of its bin; the sign of G times the mean over all bins of those. Zero
   bins send nothing. */
static const char *bins_are(const look *l, const cg_op *op, const float *v, const float *g, size_t n) {
    double sum = 0.0, scale;
    size_t i, j, end, bins = 0;
    for (i = 0; i < n; i = end, bins++) {
        float top = 0.0f;
        end = n - i > op->select.size ? i + op->select.size : n;
        for (j = i; j < end; j++)
            if (fabsf(v[j]) > top) top = fabsf(v[j]);
        for (j = i; j < end; j++) {
            volatile float h = v[j] + g[j];
            CLAIM(l->in[j] == (top > 0.0f && fabsf(h) >= top));
        }
        sum += (double)top;
    }
    scale = bins ? sum / (double)bins : 0.0;
    for (i = 0; i < l->k; i++) {
        double y = (double)l->y[l->at[i]];
        CLAIM(y == 0.0 || (y < 0.0) == (v[l->at[i]] < 0.0f));
        CLAIM(fabs(fabs(y) - scale) <= scale * 0x1p-23 + 0x1p-149); /* rounded once */
        CLAIM(ref_bits(fabsf(l->y[l->at[i]])) == ref_bits(fabsf(l->y[l->at[0]])));
    }
    return NULL;
}

/* ---- all of them on all vectors and sizes ---- */

static float ratio_in_turn(void) {
    static unsigned turn;
    return RATIOS[turn++ * 5 % RATIO_COUNT];
}

typedef const char *judge(const look *, const cg_op *, const float *, size_t);

TEST judged(cg_op op, judge *is, int kind, size_t n) {
    look l;
    EXPECT(look_at(&l, &op, &TAG, NULL, x, n));
    EXPECT(is(&l, &op, x, n));
    if (n <= 4097) EXPECT(same_elsewhere(&l, &op, &TAG, NULL, x, n));
    forget(&l);
    PASS();
}

TEST plain_values(cg_op op, judge *is, int kind, size_t n) {
    look l;
    EXPECT(look_at(&l, &op, &TAG, NULL, x, n));
    EXPECT(is(&l, &op, x, n));
    EXPECT(values_are(&l, x));
    if (n <= 4097) EXPECT(same_elsewhere(&l, &op, &TAG, NULL, x, n));
    forget(&l);
    PASS();
}

static cg_op sides_of(float ratio) {
    cg_op op = cg_adaq(ratio);
    memset(&op.quantize, 0, sizeof op.quantize);
    return op;
}

static cg_op side_alone(float ratio) {
    cg_op op = cg_sbc(ratio);
    memset(&op.quantize, 0, sizeof op.quantize);
    memset(&op.code, 0, sizeof op.code);
    return op;
}

static void fill_aux(int how, int kind, size_t n) {
    uint64_t state = n + 31 * (uint64_t)kind;
    size_t i;
    for (i = 0; i < n; i++) {
        double u = ref_uniform(&state), s = ref_rand(&state) & 1 ? 1.0 : -1.0;
        /* a gradient that is part of x */
        if (how == 0) aux[i] = (float)((u * 1.5 - 0.5) * (double)x[i]);
        else if (how == 1) aux[i] = (float)(s * u * 1e-2);                        /* one that is not */
        else aux[i] = (float)(u * fmin((double)x[i] * (double)x[i], 1e30) * 2.0); /* a variance */
    }
}

TEST with_aux(cg_op op, int how, int kind, size_t n) {
    cg_extra side = CG_ZERO;
    look l;
    side.aux = aux;
    fill_aux(how, kind, n);
    EXPECT(look_at(&l, &op, &TAG, &side, x, n));
    EXPECT(how == 2 ? variance_is(&l, &op, x, aux, n) : bins_are(&l, &op, x, aux, n));
    if (n <= 4097) EXPECT(same_elsewhere(&l, &op, &TAG, &side, x, n));
    forget(&l);
    PASS();
}

static cg_op bins_of(uint32_t bin) {
    cg_op op = cg_adacomp(bin);
    memset(&op.quantize, 0, sizeof op.quantize);
    return op;
}

/* Zeros from the middle on, in whole bins and blocks and in parts of them. */
static void zero_some(size_t n) {
    size_t i;
    for (i = 0; i < n; i++)
        if (i / 150 % 3 == 1 || i > n - n / 5) x[i] = 0.0f;
}

TEST every_selection(int kind, size_t n) {
    static const uint32_t chunk[] = { 1, 64, 4096, 7, 1000000, 50, 500, 2048, 100000 };
    static unsigned turn;
    uint32_t c = chunk[turn++ % 9];
    ref_fill((ref_kind)kind, n + (size_t)kind, x, n);
    CHECK_CALL(judged(cg_dgc(ratio_in_turn()), near_the_ratio, kind, n));
    CHECK_CALL(judged(cg_sidco(ratio_in_turn()), sidco_is, kind, n));
    CHECK_CALL(plain_values(sides_of(ratio_in_turn()), sides_are, kind, n));
    CHECK_CALL(judged(cg_chunked(ratio_in_turn(), c), chunks_are, kind, n));
    CHECK_CALL(judged(cg_blocks(c), blocks_are, kind, n));
    CHECK_CALL(with_aux(cg_variance(turn % 5 ? 1.0f : 0.0f), 2, kind, n));
    CHECK_CALL(with_aux(bins_of(c), (int)(turn & 1), kind, n));
    CHECK_CALL(with_aux(cg_adacomp(c), (int)(turn & 1), kind, n));
    grid(x, n);
    CHECK_CALL(judged(cg_mstopk(ratio_in_turn()), mstopk_is, kind, n));
    CHECK_CALL(plain_values(side_alone(ratio_in_turn()), side_is, kind, n));
    zero_some(n);
    CHECK_CALL(judged(cg_blocks(c), blocks_are, kind, n));
    CHECK_CALL(with_aux(bins_of(c), (int)(turn & 1), kind, n));
    CHECK_CALL(judged(cg_mstopk(ratio_in_turn()), mstopk_is, kind, n));
    PASS();
}

TEST every_size(int kind) {
    static unsigned turn;
    size_t i;
    int again;
    for (i = 0; i < SMALL_COUNT; i++)
        for (again = 0; again < (!long_test() ? 1 : SMALL[i] < 300 ? 9 : 3); again++)
            CHECK_CALL(every_selection(kind, SMALL[i]));
    for (i = (size_t)kind % 2; i < LARGE_COUNT; i += 2)
        if (!spared(&turn, 7)) CHECK_CALL(every_selection(kind, LARGE[i]));
    PASS();
}

/* At the size where DGC's stride stops growing and beyond a block, all ratios. */
TEST estimates_at_every_ratio(int kind, size_t n) {
    static unsigned turn;
    size_t r;
    ref_fill((ref_kind)kind, 3, x, n);
    for (r = 0; r < RATIO_COUNT; r++) {
        if (spared(&turn, 5)) continue;
        CHECK_CALL(judged(cg_dgc(RATIOS[r]), near_the_ratio, kind, n));
        CHECK_CALL(judged(cg_sidco(RATIOS[r]), sidco_is, kind, n));
    }
    PASS();
}

/* All of it where a strided sample does not look, or only where it does. */
TEST estimates_of_stripes(size_t n) {
    static const size_t period[] = { 2, 15, 16, 99, 100, 101, 200 };
    size_t p, i;
    int kind;
    for (p = 0; p < sizeof period / sizeof *period; p++)
        for (kind = 0; kind < 2; kind++) {
            for (i = 0; i < n; i++)
                x[i] = (i % period[p] == 0) == kind ? 1.0f + (float)(i % 1009) : 1e-6f * (float)(i % 1013);
            CHECK_CALL(judged(cg_dgc(0.01f), near_the_ratio, kind, n));
            CHECK_CALL(judged(cg_sidco(0.01f), sidco_is, kind, n));
        }
    PASS();
}

/* On a vector of real exponentials nothing has to be corrected: SIDCo comes out near k, not at it. */
TEST sidco_fits_exponentials(void) {
    cg_op op = cg_sidco(0.01f);
    size_t n = 8192;
    int kind = REF_LAPLACE;
    look l;
    double t;
    ref_fill(REF_LAPLACE, 8, x, n);
    EXPECT(look_at(&l, &op, &TAG, NULL, x, n));
    t = sidco_threshold(x, n, 82);
    ASSERT_IN_RANGE(t, (double)l.info.threshold, 1e-6 * t);
    /* the fits have a relative error of 1/sqrt(count) each */
    ASSERT_IN_RANGE(1e-3 * log(100.0), t, 1e-3 * 5 * sqrt(3.0 / 655.0));
    forget(&l);
    PASS();
}

TEST mstopk_counts(void) {
    static const uint64_t ks[] = { 1, 2, 9, 99, 100, 101, UINT64_MAX };
    size_t i, n = 100;
    int kind = REF_TIES;
    for (i = 0; i < sizeof ks / sizeof *ks; i++) {
        cg_op op = cg_mstopk(0.5f);
        op.k = ks[i];
        ref_fill((ref_kind)kind, i, x, n);
        CHECK_CALL(judged(op, mstopk_is, kind, n));
    }
    PASS();
}

/* Of equals MSTop-k takes a run from a random place, the last possible included, and never one too few. */
TEST mstopk_starts_anywhere(void) {
    enum { N = 10, K = 3, KEYS = 4000 };
    cg_op op = cg_mstopk(0.3f);
    int first[N] = { 0 }, kind = REF_CONSTANT, t;
    size_t i, n = N;
    for (i = 0; i < n; i++) x[i] = i & 1 ? -2.5f : 2.5f;
    for (t = 0; t < KEYS; t++) {
        cg_tag tag = { 1, 2, 3, 0 };
        look l;
        tag.rank = (uint32_t)t;
        EXPECT(look_at(&l, &op, &tag, NULL, x, n));
        EXPECT(mstopk_is(&l, &op, x, n));
        first[l.at[0]]++;
        forget(&l);
    }
    for (i = 0; i < N; i++) {
        double p = i <= N - K ? 1.0 / (N - K + 1) : 0.0;
        ASSERT_IN_RANGE(p * KEYS, (double)first[i], SIGMAS * sqrt(p * (1 - p) * KEYS));
    }
    PASS();
}

TEST chunks_of(uint32_t chunk) {
    size_t n, r;
    int kind = REF_TIES;
    for (n = 4090; n < 4100; n++)
        for (r = 0; r < RATIO_COUNT; r += 2) {
            ref_fill((ref_kind)kind, n, x, n);
            CHECK_CALL(judged(cg_chunked(RATIOS[r], chunk), chunks_are, kind, n));
        }
    PASS();
}

SUITE(selections) {
    static const uint32_t chunk[] = { 1, 2, 64, 2048, 4095, 4096, 4097, 100000, UINT32_MAX };
    static const size_t at[] = { 2049, 65537, 409599, 409600 };
    int kind;
    size_t i;
    for (kind = 0; kind < REF_KINDS; kind++) RUN_TEST1(every_size, kind);
    for (i = 0; i < 4; i++)
        for (kind = 0; kind < REF_KINDS; kind += i < 2 ? 1 : 3) RUN_TESTp(estimates_at_every_ratio, kind, at[i]);
    RUN_TEST1(estimates_of_stripes, (size_t)70000);
    RUN_TEST1(estimates_of_stripes, (size_t)409600);
    RUN_TEST(sidco_fits_exponentials);
    RUN_TEST(mstopk_counts);
    RUN_TEST(mstopk_starts_anywhere);
    for (i = 0; i < sizeof chunk / sizeof *chunk; i++) RUN_TEST1(chunks_of, chunk[i]);
}

/* ---- Wangni: probabilities ---- */

/* 1/lambda, the magnitude of what is not certain, as it is sent: a float. What reaches it is certain. */
static double magnitude(double lambda) {
    return lambda > 0.0 ? (double)(float)fmin(1.0 / lambda, (double)FLT_MAX) : 0.0;
}
static double chance(float v, double unit) { return (double)fabsf(v) >= unit ? v != 0.0f : fabs((double)v) / unit; }

/* How far a sum of independent terms, none larger than `most`, strays from its mean once in 10^5 (Bernstein): true
   for few as for many. */
static double stray(double variance, double most) {
    double l = log(2e5);
    return l / 3 * most + sqrt(l / 3 * most * l / 3 * most + 2 * l * variance);
}

/* p by the greedy algorithm; returns the magnitude. */
static double greedy(const float *v, size_t n, double density, double *p) {
    double sum = 0.0, want = density * (double)n, lambda;
    size_t i;
    int turn;
    for (i = 0; i < n; i++) sum += (double)fabsf(v[i]);
    lambda = sum > 0.0 ? want / sum : 0.0;
    for (turn = 0; turn < 2; turn++) { /* what the certain ones leave over goes to the others */
        double inside = 0.0;
        size_t count = 0;
        for (i = 0; i < n; i++)
            if ((double)fabsf(v[i]) < magnitude(lambda)) {
                count++;
                inside += lambda * (double)fabsf(v[i]);
            }
        if (inside > 0.0) lambda *= (want - (double)n + (double)count) / inside;
    }
    for (i = 0; i < n; i++) p[i] = chance(v[i], magnitude(lambda));
    return magnitude(lambda);
}

/* p of least sum for a variance of epsilon |v|^2, in closed form. */
static double closed_form(const float *v, size_t n, double epsilon, double *p) {
    double *a = (double *)ref_alloc(n * sizeof *a), sum = 0.0, squares = 0.0, all, lambda;
    size_t i, m;
    for (i = 0; i < n; i++) {
        a[i] = fabs((double)v[i]);
        sum += a[i];
        squares += a[i] * a[i];
    }
    qsort(a, n, sizeof *a, by_size);
    all = squares;
    for (m = 0; m < n && !(a[m] * sum <= epsilon * all + squares); m++) /* the m largest are certain */
        for (sum = squares = 0.0, i = m + 1; i < n; i++) {
            sum += a[i];
            squares += a[i] * a[i];
        }
    lambda = sum > 0.0 ? sum / (epsilon * all + squares) : 0.0;
    for (i = 0; i < n; i++) p[i] = chance(v[i], magnitude(lambda));
    free(a);
    return magnitude(lambda);
}

/* Certain ones as they are, the others as +-unit, nothing of probability 0; unit is 1/lambda as a float. Returns
   that float, 0 if none shows. */
static const char *coins_are(const look *l, const float *v, const double *p, double unit, float *seen) {
    double tol = unit * 0x1p-22 + 0x1p-149; /* f64 sums in another order, then one rounding */
    size_t i;
    *seen = 0.0f;
    for (i = 0; i < l->info.n; i++) {
        double m = fabs((double)v[i]);
        if (p[i] >= 1.0 && fabs(m - unit) > tol) CLAIM(l->in[i] && ref_bits(l->y[i]) == ref_bits(v[i]));
        if (!l->in[i]) continue;
        CLAIM(v[i] != 0 && (l->y[i] < 0) == (v[i] < 0));
        if (p[i] >= 1.0 || fabs(m - unit) <= tol) continue;
        CLAIM(fabs(fabs((double)l->y[i]) - unit) <= tol);
        CLAIM(*seen == 0.0f || *seen == fabsf(l->y[i]));
        *seen = fabsf(l->y[i]);
    }
    return NULL;
}

enum { COINS = 160, KEYS = 3000, PROJECTIONS = 8 };

static void coin_vector(int kind, float *v) {
    uint64_t state = 17;
    int i;
    for (i = 0; i < COINS; i++) {
        double g = ref_normal(&state), s = ref_rand(&state) & 1 ? 1.0 : -1.0;
        v[i] = (float)(kind == 0 ? g
                : kind == 1      ? -log(ref_uniform(&state)) * s
                : kind == 2      ? (i == 40 ? 80.0 : 0.4 * g)
                : kind == 3      ? 0.7
                : kind == 4      ? (s > 0 ? 1.0 : -2.0)
                : i % 10         ? 0.0
                                 : s * exp(4 * g));
    }
}

/* Over many keys: each value as often as p says, the density, and projections of the mean that are right within
   the declared variance. */
TEST coins_fall_as_declared(const char *text, int kind) {
    static float v[COINS];
    static double p[COINS];
    double sum[PROJECTIONS] = { 0 }, truth[PROJECTIONS] = { 0 }, var = 0.0, expected = 0.0, spread = 0.0, kept = 0.0,
           unit;
    int often[COINS] = { 0 }, t, j;
    size_t i, n = COINS;
    cg_op op;
    ASSERT_ENUM_EQ(CG_OK, cg_op_parse(&op, text), ops_status);
    coin_vector(kind, v);
    unit = op.select.id == CG_SELECT_WANGNI ? greedy(v, n, (double)op.select.value, p)
                                            : closed_form(v, n, (double)op.select.value, p);
    for (i = 0; i < n; i++) {
        expected += p[i];
        spread += p[i] * (1 - p[i]);
        if (p[i] > 0) var += (double)v[i] * (double)v[i] * (1 / p[i] - 1);
    }
    for (t = 0; t < KEYS; t++) {
        cg_tag tag = { 7, 8, 9, 10 };
        float seen;
        look l;
        if (t & 1) tag.rank = (uint32_t)t;
        else tag.step = (uint64_t)t;
        EXPECT(look_at(&l, &op, &tag, NULL, v, n));
        EXPECT(coins_are(&l, v, p, unit, &seen));
        kept += (double)l.k;
        for (i = 0; i < n; i++) {
            uint64_t signs = ref_mix64(i + 1000);
            often[i] += l.in[i];
            for (j = 0; j < PROJECTIONS; j++) {
                double s = signs >> j & 1 ? 1.0 : -1.0;
                sum[j] += s * (double)l.y[i];
                if (!t) truth[j] += s * (double)v[i];
            }
        }
        forget(&l);
    }
    for (i = 0; i < n; i++) /* a p within rounding of 0 or 1 is exactly that */
        ASSERT_IN_RANGEm(text, p[i] * KEYS, (double)often[i],
            p[i] < 1e-9 || p[i] > 1 - 1e-9 ? 1e-3 : stray(p[i] * (1 - p[i]) * KEYS, 1.0));
    ASSERT_IN_RANGEm(text, expected * KEYS, kept, stray(spread * KEYS, 1.0));
    for (j = 0; j < PROJECTIONS; j++) ASSERT_IN_RANGEm(text, truth[j] * KEYS, sum[j], stray(var * KEYS, unit));
    PASS();
}

/* Two rounds give the density itself where the saturated ones are few, and never more than it. */
TEST density_is_reached(int kind) {
    static double p[65536];
    static const float ratio[] = { 0.01f, 0.1f, 0.3f };
    size_t i, r, n = 65536;
    ref_fill((ref_kind)kind, 4, x, n);
    for (r = 0; r < 3; r++) {
        cg_op op = cg_wangni(ratio[r]);
        double unit = greedy(x, n, (double)ratio[r], p), sum = 0.0, spread = 0.0;
        float seen;
        look l;
        for (i = 0; i < n; i++) {
            sum += p[i];
            spread += p[i] * (1 - p[i]);
        }
        EXPECT(look_at(&l, &op, &TAG, NULL, x, n));
        EXPECT(coins_are(&l, x, p, unit, &seen));
        ASSERT_IN_RANGE(sum, (double)l.k, stray(spread, 1.0));
        /* the magnitude is a float, perhaps a denormal of 2^20 */
        ASSERT(sum <= (double)ratio[r] * (double)n * (1 + 0x1p-20));
        if (kind == REF_LAPLACE || kind == REF_GAUSSIAN)
            ASSERT_IN_RANGE(1.0, sum / ((double)ratio[r] * (double)n), 0.01);
        forget(&l);
    }
    PASS();
}

TEST coins_at_size(int kind, size_t n) {
    static double p[4097];
    static const float epsilon[] = { 1e-6f, 0.01f, 0.5f, 3.0f, 1e6f };
    double unit, spread, sum;
    float seen;
    size_t i, e;
    look l;
    cg_op op = cg_wangni(ratio_in_turn());
    ref_fill((ref_kind)kind, n, x, n);
    if (kind == REF_HUGE)
        for (i = 0; i < n; i++) x[i] *= 0x1p-10f; /* 1/lambda stays a float */
    unit = greedy(x, n, (double)op.select.value, p);
    EXPECT(look_at(&l, &op, &TAG, NULL, x, n));
    EXPECT(coins_are(&l, x, p, unit, &seen));
    EXPECT(same_elsewhere(&l, &op, &TAG, NULL, x, n));
    forget(&l);
    for (e = 0; e < 5; e++) {
        double all = 0.0, noise = 0.0;
        op = cg_wangnivar(epsilon[e]);
        unit = closed_form(x, n, (double)epsilon[e], p);
        EXPECT(look_at(&l, &op, &TAG, NULL, x, n));
        EXPECT(coins_are(&l, x, p, unit, &seen));
        for (i = 0, sum = spread = 0.0; i < n; i++) {
            /* as it is, not as it should be */
            double m = fabs((double)x[i]), q = seen > 0 ? fmin(1.0, m / (double)seen) : p[i];
            sum += p[i];
            spread += p[i] * (1 - p[i]);
            all += m * m;
            if (m > 0) noise += m * m / q;
        }
        EXPECT(fabs((double)l.k - sum) <= stray(spread, 1.0) ? NULL : "count");
        EXPECT(noise <= (1 + (double)epsilon[e]) * all * (1 + 1e-6) ? NULL : "variance");
        if (n < 300) EXPECT(same_elsewhere(&l, &op, &TAG, NULL, x, n));
        forget(&l);
    }
    PASS();
}

TEST coins_at_every_size(int kind) {
    size_t i;
    for (i = 0; i < SMALL_COUNT; i++)
        if (SMALL[i] < 2000 || SMALL[i] == 2049) CHECK_CALL(coins_at_size(kind, SMALL[i]));
    PASS();
}

/* The magnitude is rounded so that the variance stays below what was asked for, among the smallest numbers too. */
TEST variance_of_denormals(void) {
    static const float epsilon[] = { 0.1f, 0.4f, 0.7f, 1.2f, 1.7f };
    size_t i, e, n = 1000;
    int kind = REF_DENORMALS;
    for (e = 0; e < 5; e++) {
        cg_op op = cg_wangnivar(epsilon[e]);
        look l;
        for (i = 0; i < n; i++) x[i] = i & 1 ? -0x1p-149f : 0x1p-149f;
        EXPECT(look_at(&l, &op, &TAG, NULL, x, n));
        /* of all the same: sum x^2/p = n x^2 * |unit/x|, which may be 1 + epsilon */
        EXPECT(l.k && fabs((double)l.y[l.at[0]]) <= (1 + (double)epsilon[e]) * 0x1p-149 ? NULL : "variance");
        forget(&l);
    }
    PASS();
}

/* Rounding of what was kept must know nothing of the coin that kept it. The variance is measured, as it has no
   closed form. */
TEST unbiased_behind_coins(const char *text, size_t n) {
    enum { MANY = 20000 };
    static const float v[] = { 1.0f, 0.5f, -0.4f, 0.3f, 0.45f, -0.5f, 0.35f, 0.25f, 0.4f, -0.2f, 0.3f, 0.45f };
    double sum[12] = { 0 }, sq[12] = { 0 };
    size_t i;
    int t, kind = 0;
    cg_op op;
    ASSERT_ENUM_EQ(CG_OK, cg_op_parse(&op, text), ops_status);
    for (t = 0; t < MANY; t++) {
        cg_tag tag = { 5, 0, 0, 1 };
        look l;
        tag.step = (uint64_t)t;
        EXPECT(look_at(&l, &op, &tag, NULL, v, n));
        for (i = 0; i < n; i++) {
            sum[i] += (double)l.y[i];
            sq[i] += (double)l.y[i] * (double)l.y[i];
        }
        forget(&l);
    }
    for (i = 0; i < n; i++) {
        double mean = sum[i] / MANY, var = sq[i] / MANY - mean * mean;
        snprintf(note, sizeof note, "%s: value %lu of %lu is biased", text, (unsigned long)i, (unsigned long)n);
        ASSERT_IN_RANGEm(note, (double)v[i], mean, SIGMAS * sqrt(var / MANY) + 1e-6);
    }
    PASS();
}

SUITE(wangni) {
    static const char *const texts[] = { "wangni:0.1", "wangni:0.3", "wangni:0.9", "wangnivar:0.1", "wangnivar:1",
        "wangnivar:20" };
    int kind, t;
    for (kind = 0; kind < 6; kind++)
        for (t = 0; t < 6; t++) RUN_TESTp(coins_fall_as_declared, texts[t], kind);
    for (kind = 0; kind < REF_KINDS; kind++) {
        if (kind != REF_HUGE && kind != REF_GEOMETRIC) RUN_TEST1(density_is_reached, kind);
        RUN_TEST1(coins_at_every_size, kind);
    }
    RUN_TEST(variance_of_denormals);
    RUN_TESTp(unbiased_behind_coins, "wangni:0.6", (size_t)12);
    RUN_TESTp(unbiased_behind_coins, "randk:0.5|wangni:0.6", (size_t)12);
    RUN_TESTp(unbiased_behind_coins, "wangni:0.6|absmax:2:64", (size_t)12);
    RUN_TESTp(unbiased_behind_coins, "wangni:0.6|terngrad", (size_t)8);
    RUN_TESTp(unbiased_behind_coins, "wangnivar:0.5|levels:1", (size_t)8);
    RUN_TESTp(unbiased_behind_coins, "wangni:0.6|natural", (size_t)8);
}

/* ---- PermK, and selections of a sample ---- */

static uint64_t perm_place(const cg_tag *tag, uint64_t group, uint32_t workers, uint32_t rank) {
    uint64_t h = ref_hash(ref_shared(tag), group >> 16, (uint32_t)(group & 65535));
    return ((h * workers >> 32) + rank) % workers;
}

/* Ranks 0..N-1 together have every value once, each where the hash says, and their mean is x. */
TEST permk_covers(uint32_t workers, size_t n, int kind) {
    float *mean = (float *)ref_alloc(n * 4);
    unsigned char *seen = (unsigned char *)ref_alloc(n);
    uint32_t rank;
    int scaled;
    size_t i;
    cg_op op;
    ref_fill((ref_kind)kind, n, x, n);
    /* what would saturate is not the mean */
    for (i = 0; i < n; i++) x[i] *= kind == REF_HUGE ? 0x1p-20f : 1.0f;
    for (scaled = 0; scaled < 2; scaled++) {
        op = scaled ? cg_permk(workers) : cg_unscaled(cg_permk(workers));
        memset(seen, 0, n);
        memset(mean, 0, n * 4);
        for (rank = 0; rank < workers; rank++) {
            cg_tag tag = TAG;
            look l;
            tag.rank = rank;
            EXPECT(look_at(&l, &op, &tag, NULL, x, n));
            EXPECT(l.info.drawn == l.k && l.info.index_bytes == 0 && l.pk.len == CG_HEADER_BYTES + 4 * l.k ? NULL
                                                                                                           : "size");
            for (i = 0; i < n; i++) {
                int mine = perm_place(&tag, i / workers, workers, rank) == i % workers;
                if (l.in[i] != mine) EXPECT("place");
                if (mine && ref_bits(l.y[i]) != ref_bits(scaled ? ref_clamp(ref_mul(x[i], (float)workers)) : x[i]))
                    EXPECT("value");
                seen[i] = (unsigned char)(seen[i] + l.in[i]);
            }
            EXPECT(cg_decompress_add(l.pk.p, l.pk.len, scaled ? 1.0f / (float)workers : 1.0f, mean, n) == CG_OK
                    ? NULL
                    : "add");
            forget(&l);
        }
        for (i = 0; i < n; i++)
            if (seen[i] != 1) EXPECT("not once");
        if (!scaled || (workers & (workers - 1)) == 0)
            for (i = 0; i < n; i++)
                if (mean[i] != x[i]) EXPECT("mean");
    }
    free(mean);
    free(seen);
    PASS();
}

TEST permk_sizes(uint32_t workers) {
    static const size_t sizes[] = { 0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 63, 64, 65, 100, 999, 2047, 2048, 2049,
        4097 };
    size_t i;
    for (i = 0; i < sizeof sizes / sizeof *sizes; i++)
        CHECK_CALL(permk_covers(workers, sizes[i], (int)((i + workers) % REF_KINDS)));
    PASS();
}

/* Over the keys every place of a group is drawn evenly, and groups differ. */
TEST permk_is_even(void) {
    enum { N = 5, GROUPS = 4000 };
    int often[N] = { 0 }, kind = 0, pairs = 0;
    size_t i, n = N * GROUPS, last = 0;
    cg_op op = cg_permk(N);
    look l;
    ref_fill(REF_CONSTANT, 0, x, n);
    EXPECT(look_at(&l, &op, &TAG, NULL, x, n));
    for (i = 0; i < l.k; i++) {
        often[l.at[i] % N]++;
        pairs += i && l.at[i] % N == last;
        last = l.at[i] % N;
    }
    for (i = 0; i < N; i++) ASSERT_IN_RANGE(GROUPS / N, often[i], SIGMAS * sqrt(GROUPS * 0.2 * 0.8));
    ASSERT_IN_RANGE(GROUPS / N, pairs, SIGMAS * sqrt(GROUPS * 0.2 * 0.8));
    forget(&l);
    PASS();
}

/* PermK leaves one rank a value less; that one selects 999 of 67535 values and the other 1000 of 67536, in the same
   scratch, which neither writes beyond. */
TEST permk_scratch_of_every_rank(const char *text) {
    enum { SAMPLED = 67536, BEYOND = 1 << 16 };
    const size_t n = 2 * SAMPLED - 1;
    cg_op op;
    ASSERT_EQ(CG_OK, cg_op_parse(&op, text));
    op.select.value = 999.5f / (float)SAMPLED;
    ref_fill(REF_LAPLACE, 3, x, n);
    for (uint32_t rank = 0; rank < 2; rank++) {
        const size_t bound = cg_bound(&op, n), bytes = cg_scratch(&op, n);
        unsigned char *packet = (unsigned char *)ref_alloc(bound),
                      *scratch = (unsigned char *)ref_alloc(bytes + BEYOND);
        cg_tag tag = TAG;
        size_t len;
        tag.rank = rank;
        memset(scratch + bytes, 0xa5, BEYOND);
        ASSERT_EQ(CG_OK, cg_compress(&op, &tag, x, n, packet, bound, &len, scratch, bytes));
        for (size_t i = 0; i < BEYOND; i++) ASSERT_EQ(0xa5, scratch[bytes + i]);
        free(scratch);
        free(packet);
    }
    PASS();
}

/* A selection behind a sample does what it does to the sampled vector alone. */
TEST behind_a_sample(const char *sample, const char *select, int kind) {
    static const size_t sizes[] = { 0, 1, 2, 3, 9, 64, 1000, 5000, 140000 };
    char text[80];
    size_t s, j;
    for (s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        size_t n = sizes[s], drawn = 0;
        float *v = (float *)ref_alloc(n * 4);
        uint64_t *at = (uint64_t *)ref_alloc(n * 8), len = 1;
        cg_op op, alone;
        look a, b;
        snprintf(text, sizeof text, "%s|%s", sample, select);
        ASSERT_ENUM_EQ(CG_OK, cg_op_parse(&op, text), ops_status);
        ASSERT_ENUM_EQ(CG_OK, cg_op_parse(&alone, select), ops_status);
        ref_fill((ref_kind)kind, n, x, n);
        if (op.sample.id == CG_SAMPLE_PERMK) {
            uint64_t g, w = op.sample.size;
            for (g = 0; g * w < n; g++) {
                uint64_t i = g * w + perm_place(&TAG, g, op.sample.size, TAG.rank);
                if (i < n) {
                    v[drawn] = ref_clamp(ref_mul(x[i], (float)w));
                    at[drawn++] = i;
                }
            }
        } else {
            for (drawn = (size_t)ref_count(op.sample.value, 0, n), j = 0; j < drawn; j++) {
                at[j] = ref_draw(ref_shared(&TAG), n, drawn, j, &len);
                v[j] = ref_clamp(ref_mul(x[at[j]], op.sample.flags & CG_FLAG_UNSCALED ? 1.0f : (float)len));
            }
        }
        EXPECT(look_at(&a, &op, &TAG, NULL, x, n));
        EXPECT(look_at(&b, &alone, &TAG, NULL, v, drawn));
        EXPECT(a.info.drawn == drawn && a.k == b.k && ref_bits(a.info.threshold) == ref_bits(b.info.threshold)
                ? NULL
                : "count");
        EXPECT(a.info.index_bytes == b.info.index_bytes && a.pk.len == b.pk.len ? NULL : "size");
        for (j = 0; j < drawn; j++)
            if (a.in[at[j]] != b.in[j] || ref_bits(a.y[at[j]]) != ref_bits(b.y[j])) EXPECT("set");
        if (n <= 5000) EXPECT(same_elsewhere(&a, &op, &TAG, NULL, x, n));
        forget(&a);
        forget(&b);
        free(v);
        free(at);
    }
    PASS();
}

/* Without replacement: as many positions as values, for every n and k; each in its stratum. */
TEST randk_draws_once(void) {
    size_t n, k;
    int kind = REF_CONSTANT;
    for (n = 1; n < 120; n += 7)
        for (k = 1; k <= n; k += 1 + n / 9) {
            cg_op op = cg_randk(0.5f);
            look l;
            op.k = k;
            ref_fill(REF_CONSTANT, 0, x, n);
            EXPECT(look_at(&l, &op, &TAG, NULL, x, n));
            ASSERT_EQ_FMT((unsigned)k, (unsigned)l.k, "%u");
            forget(&l);
        }
    PASS();
}

/* Cyclic, by counting: blocks of ceil(n/B) values at equal distances, the last of which ends at n; each value is
   divided by the share of steps in which it is sent, so that B steps have the mean x. */
TEST cyclic_takes_its_turn(size_t n, uint32_t blocks, const char *behind) {
    const int kind = REF_LAPLACE;
    const size_t k = (n + blocks - 1) / blocks;
    unsigned short *turns = (unsigned short *)ref_alloc(2 * n);
    double *sum = (double *)ref_alloc(8 * n);
    float *v = (float *)ref_alloc(4 * k);
    char text[2][64];
    uint64_t turn, first;
    size_t i, j;
    cg_op op, alone;
    snprintf(text[0], sizeof text[0], "cyclic:%u%s%s", (unsigned)blocks, *behind ? "|" : "", behind);
    snprintf(text[1], sizeof text[1], "%s", *behind ? behind : "dense");
    ASSERT_ENUM_EQ(CG_OK, cg_op_parse(&op, text[0]), ops_status);
    ASSERT_ENUM_EQ(CG_OK, cg_op_parse(&alone, text[1]), ops_status);
    ref_fill((ref_kind)kind, n, x, n);
    for (i = 0; i < n; i++) turns[i] = 0, sum[i] = 0;
    for (turn = 0; turn < blocks; turn++)
        for (first = blocks >= n ? turn % n : turn * (n - k) / (blocks > 1 ? blocks - 1 : 1), i = 0; i < k; i++)
            turns[first + i]++;
    for (turn = 0; turn < blocks; turn++) {
        int scaled;
        cg_tag tag = TAG;
        tag.step = 5 * (uint64_t)blocks + turn;
        first = blocks >= n ? turn % n : turn * (n - k) / (blocks > 1 ? blocks - 1 : 1);
        ASSERT(first + k <= n);
        for (scaled = 0; scaled < 2; scaled++) {
            const cg_op cyclic = scaled ? op : cg_unscaled(op);
            look a, b;
            for (i = 0; i < k; i++)
                v[i] = scaled ? ref_clamp(ref_mul(x[first + i], (float)((double)blocks / turns[first + i])))
                              : x[first + i];
            EXPECT(look_at(&a, &cyclic, &tag, NULL, x, n));
            EXPECT(look_at(&b, &alone, &tag, NULL, v, k));
            EXPECT(a.info.drawn == k && a.k == b.k && a.pk.len == b.pk.len ? NULL : "count");
            for (i = 0, j = 0; i < n; i++) {
                const int here = i >= first && i < first + k;
                EXPECT(
                    a.in[i] == (here && b.in[j]) && ref_bits(a.y[i]) == (here ? ref_bits(b.y[j]) : 0) ? NULL : "set");
                if (scaled) sum[i] += (double)a.y[i] / blocks;
                j += (size_t)here;
            }
            if (scaled && turn < 3 && op.select.id) EXPECT(same_elsewhere(&a, &cyclic, &tag, NULL, x, n));
            forget(&a);
            forget(&b);
        }
    }
    for (i = 0; i < n; i++)
        EXPECT(turns[i] && (*behind || fabs(sum[i] - (double)x[i]) <= 1e-6 * fabs((double)x[i])) ? NULL : "mean");
    free(turns);
    free(sum);
    free(v);
    PASS();
}

SUITE(samples) {
    static const size_t cyclic_n[] = { 1, 2, 7, 64, 100, 1001 };
    static const uint32_t cyclic_blocks[] = { 1, 2, 3, 7, 16, 100, 999 };
    static const uint32_t workers[] = { 1, 2, 3, 4, 5, 7, 8, 16, 100 };
    static const char *const sample[] = { "randk:0.4", "randk:0.4:unscaled", "permk:3", "permk:8" };
    static const char *const select[] = { "dgc:0.1", "mstopk:0.1", "sidco:0.1", "wangni:0.2", "wangnivar:0.5",
        "sides:0.1", "side:0.1", "chunked:64:0.1", "blocks:8", "topk:0.1", "threshold:0.001" };
    size_t i, j;
    for (i = 0; i < sizeof workers / sizeof *workers; i++) RUN_TEST1(permk_sizes, workers[i]);
    /* more groups than a block */
    RUN_TESTp(permk_covers, (uint32_t)2, (size_t)(2 * 65536 + 999), (int)REF_LAPLACE);
    RUN_TESTp(permk_covers, (uint32_t)3, (size_t)(3 * 65536 + 998), (int)REF_TIES);
    RUN_TEST(permk_is_even);
    RUN_TEST1(permk_scratch_of_every_rank, "permk:2|topk:0.1");
    RUN_TEST1(permk_scratch_of_every_rank, "permk:2|mstopk:0.1");
    RUN_TEST1(permk_scratch_of_every_rank, "permk:2|dgc:0.1");
    RUN_TEST1(permk_scratch_of_every_rank, "permk:2|sidco:0.1");
    for (i = 0; i < sizeof sample / sizeof *sample; i++)
        for (j = 0; j < sizeof select / sizeof *select; j++)
            RUN_TESTp(behind_a_sample, sample[i], select[j], (int)((i + j) % 2 ? REF_LAPLACE : REF_TIES));
    RUN_TEST(randk_draws_once);
    for (i = 0; i < sizeof cyclic_n / sizeof *cyclic_n; i++)
        for (j = 0; j < sizeof cyclic_blocks / sizeof *cyclic_blocks; j++) {
            RUN_TESTp(cyclic_takes_its_turn, cyclic_n[i], cyclic_blocks[j], "");
            if (j < 4) RUN_TESTp(cyclic_takes_its_turn, cyclic_n[i], cyclic_blocks[j], "topk:0.3|absmax:4:16:nearest");
        }
    RUN_TESTp(cyclic_takes_its_turn, (size_t)140003, (uint32_t)2, "");
    RUN_TESTp(cyclic_takes_its_turn, (size_t)70001, (uint32_t)5, "rotate:1|absmax:8:64:nearest");
}

/* ---- given: the index set of another packet ---- */

static const char *const SUPPORTS[] = { "topk:0.1", "topk:0.3|bitmap", "topk:0.1|golomb", "topk:0.2|efsign",
    "randk:0.2", "randk:0.5|topk:0.1", "dense", "f16", "threshold:3e38", "threshold:0.001|eliasfano", "chunked:64:0.1",
    "blocks:5", "permk:3", "cyclic:5", "cyclic:3|topk:0.2", "permk:3|sides:0.2|onebit", "stc:0.05", "sbc:0.05", "dct",
    "demo:0.1" };
enum { SUPPORT_COUNT = sizeof SUPPORTS / sizeof *SUPPORTS };

static ops_packet support_of(const char *text, const float *v, size_t n) {
    cg_op op;
    if (cg_op_parse(&op, text) != CG_OK) {
        fprintf(stderr, "%s does not parse\n", text);
        exit(2);
    }
    return ops_pack(&op, &TAG, v, n);
}

/* AR-Top-k: one rank's indices, everybody's values. */
TEST given_takes(const char *text, size_t n) {
    cg_op op = cg_given(), coarse = cg_then(cg_given(), cg_nearest(cg_absmax(8, 64)));
    cg_extra side = CG_ZERO;
    float *leader = (float *)ref_alloc(n * 4);
    int kind = REF_LAPLACE;
    size_t i;
    look l, q;
    ops_packet sup, again;
    ref_fill(REF_LAPLACE, 5, leader, n);
    ref_fill(REF_GAUSSIAN, 6, x, n);
    sup = support_of(text, leader, n);
    ASSERT_ENUM_EQ(CG_OK, sup.status, ops_status);
    side.support = sup.p;
    side.support_len = sup.len;
    EXPECT(look_at(&l, &op, &TAG, &side, x, n));
    EXPECT(values_are(&l, x));
    EXPECT(l.info.index_bytes == 0 && l.info.index_code == 0 && l.pk.len == CG_HEADER_BYTES + 4 * l.k
            ? NULL
            : "carries indices");
    if (n <= 4097) EXPECT(same_elsewhere(&l, &op, &TAG, &side, x, n));
    EXPECT(look_at(&q, &coarse, &TAG, &side, x, n));
    EXPECT(memcmp(q.in, l.in, n) == 0 ? NULL : "another set");
    /* |x| < 0.6, half a step of /127, twice that */
    for (i = 0; i < n; i++)
        if (fabsf(q.y[i] - l.y[i]) > 0.6f / 127) EXPECT("quantized values");
    again = ops_pack_cap(&op, &TAG, &side, l.y, n, cg_bound(&op, n));
    EXPECT(again.status == CG_OK && again.len == l.pk.len && memcmp(again.p, l.pk.p, l.pk.len) == 0
            ? NULL
            : "not a projection");
    free(again.p);
    free(sup.p);
    free(leader);
    forget(&l);
    forget(&q);
    PASS();
}

TEST given_refuses(size_t n) {
    cg_op op = cg_given();
    cg_extra side = CG_ZERO, other = CG_ZERO, bad = CG_ZERO;
    float *y = (float *)ref_alloc(n * 4), *leader = (float *)ref_alloc(n * 4);
    ops_packet sup[SUPPORT_COUNT], pk, none;
    size_t i, j, at;
    ref_fill(REF_GAUSSIAN, 6, x, n);
    ref_fill(REF_LAPLACE, 5, leader, n);
    for (i = 0; i < SUPPORT_COUNT; i++) sup[i] = support_of(SUPPORTS[i], leader, n);
    none = ops_pack(&op, &TAG, x, n);
    ASSERT_ENUM_EQ(CG_E_ARG, none.status, ops_status);
    free(none.p);
    for (i = 0; i < SUPPORT_COUNT; i++) {
        side.support = sup[i].p;
        side.support_len = sup[i].len;
        pk = ops_pack_cap(&op, &TAG, &side, x, n, cg_bound(&op, n));
        ASSERT_ENUM_EQ(CG_OK, pk.status, ops_status);
        for (j = 0; j < n; j++) y[j] = 7.0f;
        ASSERT_ENUM_EQ(CG_E_ARG, cg_decompress(pk.p, pk.len, y, n), ops_status);
        for (j = 0; j < SUPPORT_COUNT; j++) {
            float *a = (float *)ref_alloc(n * 4), *b = (float *)ref_alloc(n * 4);
            int same;
            for (at = 0; at < n; at++) a[at] = b[at] = 1.0f;
            same = cg_clear(sup[i].p, sup[i].len, a, n) == CG_OK && cg_clear(sup[j].p, sup[j].len, b, n) == CG_OK &&
                memcmp(a, b, n * 4) == 0;
            other.support = sup[j].p;
            other.support_len = sup[j].len;
            snprintf(note, sizeof note, "made with %s, read with %s", SUPPORTS[i], SUPPORTS[j]);
            if (!same) ASSERT_ENUM_EQm(note, CG_E_MISMATCH, cg_decode(&other, pk.p, pk.len, 1, 0, y, n), ops_status);
            free(a);
            free(b);
        }
        for (j = 0; j < n; j++) ASSERT(y[j] == 7.0f);
        bad = side; /* a support that is not intact, or for another n */
        bad.support_len--;
        ASSERT_ENUM_EQ(CG_E_CORRUPT, cg_decode(&bad, pk.p, pk.len, 1, 0, y, n), ops_status);
        sup[i].p[sup[i].len - 1] ^= 1;
        ASSERT_ENUM_EQ(CG_E_CORRUPT, cg_decode(&side, pk.p, pk.len, 1, 0, y, n), ops_status);
        none = ops_pack_cap(&op, &TAG, &side, x, n, cg_bound(&op, n));
        ASSERT_ENUM_EQ(CG_E_CORRUPT, none.status, ops_status);
        free(none.p);
        sup[i].p[sup[i].len - 1] ^= 1;
        none = ops_pack_cap(&op, &TAG, &side, x, n - 1, cg_bound(&op, n - 1));
        ASSERT_ENUM_EQ(CG_E_MISMATCH, none.status, ops_status);
        ASSERT_EQ_FMT(0u, (unsigned)none.len, "%u");
        free(none.p);
        free(pk.p);
    }
    for (i = 0; i < SUPPORT_COUNT; i++) free(sup[i].p);
    free(y);
    free(leader);
    PASS();
}

/* Equal index bytes and counts that mean different positions: in another code, in blocks of another size, of
   another sample. */
TEST given_tells_apart(const char *mine, const char *others, size_t n, size_t a, size_t b, size_t c) {
    float y[64] = { 0 }, u[64], v[64], at_u[64], at_v[64];
    cg_extra sa = CG_ZERO, sb = CG_ZERO;
    cg_op op = cg_given();
    ops_packet pu, pv, pk;
    cg_tag tag = TAG;
    cg_op ou, ov;
    cg_info iu, iv;
    size_t i;
    tag.rank = 1;
    for (i = 0; i < 64; i++) {
        u[i] = i == a || i == c ? 1.0f : 0.0f;
        v[i] = i == b || i == c ? 1.0f : 0.0f;
        at_u[i] = at_v[i] = 2.0f;
    }
    ASSERT_ENUM_EQ(CG_OK, cg_op_parse(&ou, mine), ops_status);
    ASSERT_ENUM_EQ(CG_OK, cg_op_parse(&ov, others), ops_status);
    pu = ops_pack(&ou, &tag, u, n);
    pv = ops_pack(&ov, &tag, v, n);
    sa.support = pu.p;
    sa.support_len = pu.len;
    sb.support = pv.p;
    sb.support_len = pv.len;
    ASSERT_ENUM_EQ(CG_OK, cg_clear(pu.p, pu.len, at_u, n), ops_status);
    ASSERT_ENUM_EQ(CG_OK, cg_clear(pv.p, pv.len, at_v, n), ops_status);
    ASSERT_ENUM_EQ(CG_OK, cg_inspect(pu.p, pu.len, &iu), ops_status);
    ASSERT_ENUM_EQ(CG_OK, cg_inspect(pv.p, pv.len, &iv), ops_status);
    snprintf(note, sizeof note, "made with %s, read with %s", mine, others);
    ASSERTm(note, memcmp(at_u, at_v, 4 * n) != 0);                   /* two sets, */
    ASSERTm(note, iu.k == iv.k && iu.index_bytes == iv.index_bytes); /* equal to look at */
    ASSERT_MEM_EQm(
        note, pu.p + CG_HEADER_BYTES + iu.value_bytes, pv.p + CG_HEADER_BYTES + iv.value_bytes, iu.index_bytes);
    pk = ops_pack_cap(&op, &tag, &sa, u, n, cg_bound(&op, n));
    ASSERT_ENUM_EQm(note, CG_OK, pk.status, ops_status);
    ASSERT_ENUM_EQm(note, CG_OK, cg_decode(&sa, pk.p, pk.len, 1, 0, y, n), ops_status);
    ASSERT_ENUM_EQm(note, CG_E_MISMATCH, cg_decode(&sb, pk.p, pk.len, 1, 0, y, n), ops_status);
    free(pu.p);
    free(pv.p);
    free(pk.p);
    PASS();
}

SUITE(given) {
    static const size_t sizes[] = { 1, 2, 9, 64, 1000, 4097, 70001 };
    size_t i, s;
    for (i = 0; i < SUPPORT_COUNT; i++)
        for (s = 0; s < sizeof sizes / sizeof *sizes; s++) RUN_TESTp(given_takes, SUPPORTS[i], sizes[s]);
    RUN_TESTp(given_takes, "topk:0.1", (size_t)0);
    RUN_TEST1(given_refuses, (size_t)1000);
    RUN_TESTp(
        given_tells_apart, "topk:k=1|eliasfano", "topk:k=1|bitmap", (size_t)64, (size_t)0, (size_t)32, (size_t)64);
    RUN_TESTp(given_tells_apart, "topk:k=1|bitmap", "blocks:4|bitmap", (size_t)5, (size_t)1, (size_t)4, (size_t)64);
    RUN_TESTp(given_tells_apart, "blocks:4|bitmap", "blocks:3|bitmap", (size_t)10, (size_t)0, (size_t)0, (size_t)8);
    RUN_TESTp(given_tells_apart, "permk:2", "randk:0.5", (size_t)64, (size_t)0, (size_t)0, (size_t)0);
    RUN_TESTp(given_tells_apart, "cyclic:2", "randk:0.5", (size_t)64, (size_t)0, (size_t)0, (size_t)0);
    RUN_TESTp(given_tells_apart, "cyclic:40", "cyclic:60", (size_t)64, (size_t)0, (size_t)0, (size_t)0);
    RUN_TESTp(given_tells_apart, "randk:0.5|topk:k=1|bitmap", "randk:0.25|topk:k=1|bitmap", (size_t)64, (size_t)64,
        (size_t)64, (size_t)64);
}

/* ---- compositions that have a name ---- */

/* Positions at random, magnitudes so that these are the k largest. */
static size_t scatter(size_t n, double p, uint64_t seed) {
    size_t i, k = 0;
    for (i = 0; i < n; i++) {
        int hit = ref_uniform(&seed) < p;
        x[i] = (ref_rand(&seed) & 1 ? 1.0f : -1.0f) * (hit ? 1.0f + (float)ref_uniform(&seed) : 0.001f);
        k += (size_t)hit;
    }
    return k;
}

/* Sattler's figures: 4.76, 8.11 and 11.49 bits for a position. */
TEST golomb_bits(double p, double bits) {
    static const char *const texts[] = { "topk:1|golomb", "topk:1|efsign|golomb", "threshold:0.5|golomb" };
    size_t n = MOST - 1, k = scatter(n, p, 3), t;
    for (t = 0; t < 3; t++) {
        int kind = (int)t;
        look l;
        cg_op op;
        ASSERT_ENUM_EQ(CG_OK, cg_op_parse(&op, texts[t]), ops_status);
        if (op.select.id == CG_SELECT_TOPK) op.k = k;
        EXPECT(look_at(&l, &op, &TAG, NULL, x, n));
        ASSERT_EQ_FMT((unsigned)k, (unsigned)l.k, "%u");
        ASSERT_IN_RANGE(bits, 8.0 * (double)l.info.index_bytes / (double)k, 0.03 * bits);
        forget(&l);
    }
    PASS();
}

/* STC: the k largest as signs of their mean magnitude. Size: 32 bits, one bit each, and the positions. */
TEST stc_is(int kind, size_t n, float ratio) {
    cg_op op = cg_stc(ratio);
    uint64_t k = ref_count(ratio, 0, n), i;
    ref_item *v = (ref_item *)ref_alloc((size_t)k * sizeof *v);
    uint32_t least;
    float mean;
    look l;
    ref_fill((ref_kind)kind, n, x, n);
    EXPECT(look_at(&l, &op, &TAG, NULL, x, n));
    EXPECT(top_of(&l, x, 0, n, k, 0));
    for (i = 0; i < k; i++) v[i].v = x[l.at[i]];
    mean = k ? ref_mean_magnitude(v, k) : 0.0f;
    for (i = 0; i < k; i++)
        if (l.y[l.at[i]] != (v[i].v < 0 ? -mean : mean)) EXPECT("value");
    EXPECT(l.info.value_bytes == (k ? 4 + ref_pad4(k) : 0) ? NULL : "value bytes");
    EXPECT(l.info.index_bytes == (k ? ref_pad4(golomb_put(NULL, l.at, k, n)) : 0) ? NULL : "index bytes");
    for (least = k ? UINT32_MAX : 0, i = 0; i < k; i++)
        if (ref_mag(v[i].v) < least) least = ref_mag(v[i].v);
    EXPECT(ref_bits(l.info.threshold) == least ? NULL : "threshold");
    if (n <= 4097) EXPECT(same_elsewhere(&l, &op, &TAG, NULL, x, n));
    forget(&l);
    free(v);
    PASS();
}

/* SBC: one side as its mean: 32 bits and the positions. AdaQ: two means, one bit each. */
TEST sbc_and_adaq_are(int kind, size_t n, float ratio) {
    cg_op op = cg_sbc(ratio);
    uint64_t kept = 0, many[2] = { 0, 0 }, i;
    double mean = 0.0, means[2] = { 0.0, 0.0 };
    int sign;
    look l;
    ref_fill((ref_kind)kind, n, x, n);
    grid(x, n);
    EXPECT(look_at(&l, &op, &TAG, NULL, x, n));
    EXPECT(side_is(&l, &op, x, n));
    sign = side_of(x, n, ref_count(ratio, 0, n), &kept, &mean);
    for (i = 0; i < l.k; i++) {
        double y = (double)l.y[l.at[i]] * sign;
        if (fabs(y - mean) > mean * 0x1p-23 + 0x1p-149) EXPECT("mean of the side");
    }
    EXPECT(l.info.value_bytes == (kept ? 4u : 0u) ? NULL : "value bytes");
    EXPECT(l.info.index_bytes == (kept ? ref_pad4(golomb_put(NULL, l.at, kept, n)) : 0) ? NULL : "index bytes");
    if (n <= 4097) EXPECT(same_elsewhere(&l, &op, &TAG, NULL, x, n));
    forget(&l);
    op = cg_adaq(ratio);
    EXPECT(look_at(&l, &op, &TAG, NULL, x, n));
    EXPECT(sides_are(&l, &op, x, n));
    for (i = 0; i < l.k; i++) {
        sign = x[l.at[i]] < 0;
        means[sign] += fabs((double)x[l.at[i]]);
        many[sign]++;
    }
    for (i = 0; i < l.k; i++) {
        sign = x[l.at[i]] < 0;
        mean = means[sign] / (double)many[sign];
        if (fabs((double)l.y[l.at[i]] * (sign ? -1 : 1) - mean) > mean * 0x1p-23 + 0x1p-149) EXPECT("one of two means");
    }
    EXPECT(l.info.value_bytes == (l.k ? 8 + ref_pad4(l.k) : 0) ? NULL : "value bytes");
    if (n <= 4097) EXPECT(same_elsewhere(&l, &op, &TAG, NULL, x, n));
    forget(&l);
    PASS();
}

/* Qsparse: top-k as levels of its L2 norm, the one below or the one above. */
TEST qsparse_is(int kind, size_t n, int levels) {
    cg_op op = cg_qsparse(0.1f, levels);
    uint64_t k = ref_count(0.1f, 0, n), i;
    double norm = 0.0;
    look l;
    ref_fill((ref_kind)kind, n, x, n);
    EXPECT(look_at(&l, &op, &TAG, NULL, x, n));
    EXPECT(top_of(&l, x, 0, n, k, 0));
    for (i = 0; i < k; i++) norm += (double)x[l.at[i]] * (double)x[l.at[i]];
    norm = sqrt(norm);
    for (i = 0; i < k; i++) {
        double y = (double)l.y[l.at[i]], v = (double)x[l.at[i]], t = norm > 0 ? fabs(v) / norm * levels : 0.0,
               m = norm > 0 ? fabs(y) / norm * levels : 0.0;
        /* f32 norm, product, division */
        double tol = levels * 0x1p-22 + (norm > 0 ? levels * 0x1p-149 / norm : 0.0);
        if (fabs(m - rint(m)) > tol) EXPECT("not a level");
        if (m < floor(t - tol) - tol || m > ceil(t + tol) + tol) EXPECT("not a neighbouring level");
        if (y != 0 && (y < 0) != (v < 0)) EXPECT("sign");
    }
    forget(&l);
    PASS();
}

/* CocktailSGD, byte for byte: the older stages' reference knows all of its stages. */
TEST cocktail_is(int kind, size_t n, int bits) {
    cg_op op = cg_cocktail(0.3f, 0.1f, bits);
    size_t len = 0;
    unsigned char *want;
    ops_packet pk;
    ref_fill((ref_kind)kind, n, x, n);
    want = ref_compress(&op, &TAG, x, n, &len);
    pk = ops_pack(&op, &TAG, x, n);
    EXPECT(pk.status == CG_OK && !pk.touched && pk.len == len && memcmp(pk.p, want, len) == 0 ? NULL : "packet");
    free(want);
    free(pk.p);
    PASS();
}

/* DeMo: of every 64 the largest frequencies of an orthonormal DCT-II. A block whose k-th and next are closer than the
   arithmetic can tell is left out. */
TEST demo_is(int kind, size_t n, float ratio) {
    enum { B = 64 };
    cg_op op = cg_demo_dct(ratio);
    size_t keep = (size_t)ref_count(ratio, 0, B), blocks = (n + B - 1) / B, b, i, j, told = 0;
    const double pi = 3.14159265358979323846;
    look l;
    ref_fill((ref_kind)kind, n, x, n);
    EXPECT(look_at(&l, &op, &TAG, NULL, x, n));
    EXPECT(l.info.k == keep * blocks && l.info.value_bytes == 4 * l.info.k ? NULL : "count");
    for (b = 0; b < blocks; b++) {
        double c[B], m[B], norm = 0.0, tol;
        for (i = 0; i < B; i++) {
            double s = 0.0;
            for (j = 0; j < B && b * B + j < n; j++)
                s += (double)x[b * B + j] * cos(pi / B * ((double)j + 0.5) * (double)i);
            c[i] = s * sqrt((i ? 2.0 : 1.0) / B);
            m[i] = fabs(c[i]);
            norm += c[i] * c[i];
        }
        norm = sqrt(norm);
        tol = 1e-5 * norm + 0x1p-140; /* 6 stages of f32: far more than they lose */
        qsort(m, B, sizeof *m, by_size);
        if (keep < B && m[keep - 1] - m[keep] <= 2 * tol) continue;
        told++;
        for (j = 0; j < B && b * B + j < n; j++) {
            double s = 0.0;
            for (i = 0; i < B; i++)
                if (fabs(c[i]) >= m[keep - 1])
                    s += c[i] * sqrt((i ? 2.0 : 1.0) / B) * cos(pi / B * ((double)j + 0.5) * (double)i);
            if (fabs(s - (double)l.y[b * B + j]) > 4 * tol) EXPECT("value");
        }
    }
    if (kind == REF_LAPLACE || kind == REF_GAUSSIAN)
        EXPECT(told * 10 >= blocks * 9 ? NULL : "too few blocks could be told");
    forget(&l);
    PASS();
}

/* Presets are their text. */
TEST names(void) {
    static const char *const texts[] = { "stc:0.01", "sbc:0.02", "adaq:0.03", "adacomp:50", "demo:0.1",
        "qsparse:0.01:4", "cocktail:0.1:0.2:4", "dgc:0.1", "mstopk:0.1", "sidco:0.1", "wangni:0.1", "wangnivar:0.5",
        "chunked:64:0.1", "blocks:8", "given", "variance:2", "permk:4", "permk:4:unscaled" };
    cg_op made[18];
    size_t i;
    made[0] = cg_stc(0.01f);
    made[1] = cg_sbc(0.02f);
    made[2] = cg_adaq(0.03f);
    made[3] = cg_adacomp(50);
    made[4] = cg_demo_dct(0.1f);
    made[5] = cg_qsparse(0.01f, 4);
    made[6] = cg_cocktail(0.1f, 0.2f, 4);
    made[7] = cg_dgc(0.1f);
    made[8] = cg_mstopk(0.1f);
    made[9] = cg_sidco(0.1f);
    made[10] = cg_wangni(0.1f);
    made[11] = cg_wangnivar(0.5f);
    made[12] = cg_chunked(0.1f, 64);
    made[13] = cg_blocks(8);
    made[14] = cg_given();
    made[15] = cg_variance(2.0f);
    made[16] = cg_permk(4);
    made[17] = cg_unscaled(cg_permk(4));
    for (i = 0; i < 18; i++) {
        cg_op op, again;
        ASSERT_ENUM_EQm(texts[i], CG_OK, cg_op_parse(&op, texts[i]), ops_status);
        ASSERT_MEM_EQm(texts[i], &made[i], &op, sizeof op);
        ASSERT_ENUM_EQm(texts[i], CG_OK, cg_op_parse(&again, ops_text(&op)), ops_status);
        ASSERT_MEM_EQm(texts[i], &op, &again, sizeof op);
    }
    PASS();
}

/* ... and the stages they are made of. */
TEST recipes(void) {
    static const char *const same[][2] = { { "stc:0.01", "topk:0.01|efsign|golomb" },
        { "sbc:0.02", "side:0.02|mean|golomb" }, { "adaq:0.03", "sides:0.03|onebit" },
        { "adacomp:50", "bins:50|efsign" }, { "demo:0.1", "dct|chunked:64:0.1" },
        { "qsparse:0.01:4", "topk:0.01|levels:4" },
        { "cocktail:0.1:0.2:4", "randk:0.1:unscaled|topk:0.2|absmax:4:512:nearest" } };
    size_t i;
    for (i = 0; i < sizeof same / sizeof *same; i++) {
        cg_op a, b;
        ASSERT_ENUM_EQm(same[i][0], CG_OK, cg_op_parse(&a, same[i][0]), ops_status);
        ASSERT_ENUM_EQm(same[i][1], CG_OK, cg_op_parse(&b, same[i][1]), ops_status);
        ASSERT_MEM_EQm(same[i][0], &b, &a, sizeof a);
    }
    PASS();
}

SUITE(compositions) {
    static const size_t sizes[] = { 0, 1, 2, 9, 64, 100, 1000, 2049, 65537, 131089 };
    static const float ratios[] = { 0.001f, 0.01f, 0.1f, 0.5f, 1.0f };
    size_t s;
    int kind;
    RUN_TESTp(golomb_bits, 0.1, 4.76);
    RUN_TESTp(golomb_bits, 0.01, 8.11);
    RUN_TESTp(golomb_bits, 0.001, 11.49);
    for (kind = 0; kind < REF_KINDS; kind++)
        for (s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            float ratio = ratios[((size_t)kind + s) % 5];
            if (s == 9 && kind % 4) continue;
            RUN_TESTp(stc_is, kind, sizes[s], ratio);
            RUN_TESTp(sbc_and_adaq_are, kind, sizes[s], ratio);
            if (kind != REF_HUGE && kind != REF_GEOMETRIC) { /* their norms have tests of their own */
                RUN_TESTp(qsparse_is, kind, sizes[s], kind % 2 ? 4 : 15);
                if (sizes[s] < 3000) RUN_TESTp(demo_is, kind, sizes[s], ratio);
            }
            RUN_TESTp(cocktail_is, kind, sizes[s], kind % 2 ? 4 : 8);
        }
    RUN_TEST(names);
    RUN_TEST(recipes);
}

/* ---- what is refused ---- */

static const char *const LOOKERS[] = { "dgc:0.1", "mstopk:0.1", "sidco:0.1", "wangni:0.1", "wangnivar:0.5", "bins:50",
    "adacomp:500", "sides:0.1", "adaq:0.1", "side:0.1", "sbc:0.1", "stc:0.1", "chunked:64:0.1", "blocks:16",
    "variance:1", "demo:0.1", "qsparse:0.1:4", "mstopk:1", "dgc:1", "wangni:1", "variance:0" };
enum { LOOKER_COUNT = sizeof LOOKERS / sizeof *LOOKERS };

static int needs_aux(const cg_op *op) { return op->select.id == CG_SELECT_BINS || op->select.id == CG_SELECT_VARIANCE; }

/* One NaN or Inf is found wherever it is, in x and in aux. */
TEST finds_nonfinite(const char *text, size_t n) {
    static const uint32_t worst[] = { 0x7fc00000u, 0xffc00000u, 0x7f800000u, 0xff800000u, 0x7f800001u, 0xffffffffu };
    cg_extra side = CG_ZERO;
    cg_op op;
    int i, of, kind;
    ASSERT_ENUM_EQ(CG_OK, cg_op_parse(&op, text), ops_status);
    side.aux = needs_aux(&op) ? aux : NULL;
    for (kind = 0; kind < REF_KINDS; kind += 2) {
        ref_fill((ref_kind)kind, 7, x, n);
        fill_aux(2, kind, n);
        for (i = 0; i < 6; i++)
            for (of = 0; of < (side.aux ? 2 : 1); of++) {
                float *v = of ? aux : x, old;
                size_t at = i == 0 ? 0 : i == 1 ? n - 1 : (size_t)ref_mix64((uint64_t)i + n) % n;
                ops_packet pk;
                old = v[at];
                memcpy(&v[at], &worst[i], 4);
                pk = ops_pack_cap(&op, &TAG, &side, x, n, cg_bound(&op, n));
                EXPECT(pk.status == CG_E_NONFINITE && pk.len == 0 && !pk.touched ? NULL : "missed it");
                free(pk.p);
                v[at] = old;
            }
    }
    PASS();
}

/* A sample looks only at what it sends. */
TEST samples_look_at_their_own(void) {
    float v[100];
    cg_op perm = cg_permk(4), given = cg_given();
    cg_extra side = CG_ZERO;
    ops_packet pk, sup;
    size_t i;
    ref_fill(REF_LAPLACE, 1, v, 100);
    sup = support_of("topk:0.2", v, 100);
    side.support = sup.p;
    side.support_len = sup.len;
    for (i = 0; i < 100; i++) {
        float keep = v[i], marks[100];
        size_t j;
        for (j = 0; j < 100; j++) marks[j] = 1.0f;
        ASSERT_ENUM_EQ(CG_OK, cg_clear(sup.p, sup.len, marks, 100), ops_status);
        v[i] = NAN;
        pk = ops_pack(&perm, &TAG, v, 100);
        ASSERT_ENUM_EQ(perm_place(&TAG, i / 4, 4, TAG.rank) == i % 4 ? CG_E_NONFINITE : CG_OK, pk.status, ops_status);
        free(pk.p);
        pk = ops_pack_cap(&given, &TAG, &side, v, 100, cg_bound(&given, 100));
        ASSERT_ENUM_EQ(marks[i] == 0.0f ? CG_E_NONFINITE : CG_OK, pk.status, ops_status);
        free(pk.p);
        v[i] = keep;
    }
    free(sup.p);
    PASS();
}

TEST missing_aux(void) {
    static const char *const texts[] = { "bins:50", "adacomp:50", "variance:1" };
    cg_extra side = CG_ZERO;
    size_t i;
    ref_fill(REF_LAPLACE, 1, x, 100);
    for (i = 0; i < 3; i++) {
        cg_op op;
        ops_packet a, b;
        ASSERT_ENUM_EQ(CG_OK, cg_op_parse(&op, texts[i]), ops_status);
        a = ops_pack(&op, &TAG, x, 100);
        b = ops_pack_cap(&op, &TAG, &side, x, 100, cg_bound(&op, 100));
        ASSERT_ENUM_EQ(CG_E_ARG, a.status, ops_status);
        ASSERT_ENUM_EQ(CG_E_ARG, b.status, ops_status);
        ASSERT(a.len == 0 && b.len == 0);
        free(a.p);
        free(b.p);
    }
    PASS();
}

TEST bad_parameters(void) {
    cg_op bad[32];
    unsigned char packet[4096];
    double scratch[4096];
    size_t i, many = 0, len;
    bad[many++] = cg_dgc(0.0f);
    bad[many++] = cg_dgc(1.5f);
    bad[many++] = cg_dgc(NAN);
    bad[many++] = cg_mstopk(-0.1f);
    bad[many++] = cg_sidco(0.0f);
    bad[many++] = cg_wangni(0.0f);
    bad[many++] = cg_wangni(1.01f);
    bad[many++] = cg_wangnivar(0.0f);
    bad[many++] = cg_wangnivar(-1.0f);
    bad[many++] = cg_wangnivar(INFINITY);
    bad[many++] = cg_chunked(0.1f, 0);
    bad[many++] = cg_chunked(0.0f, 64);
    bad[many++] = cg_blocks(0);
    bad[many++] = cg_variance(-1.0f);
    bad[many++] = cg_variance(NAN);
    bad[many++] = cg_permk(0);
    bad[many++] = cg_adacomp(0);
    bad[many++] = cg_adaq(0.0f);
    bad[many++] = cg_sbc(2.0f);
    bad[many++] = cg_stc(0.0f);
    bad[many++] = cg_demo_dct(0.0f);
    bad[many++] = cg_qsparse(0.1f, 0);
    bad[many++] = cg_cocktail(0.1f, 0.1f, 9);
    bad[many++] = cg_then(cg_dgc(0.1f), cg_topk(0.1f));
    bad[many++] = cg_then(cg_permk(2), cg_randk(0.1f));
    bad[many++] = cg_then(cg_given(), cg_blocks(2));
    bad[many] = cg_dgc(0.1f);
    bad[many++].k = 5; /* a count where only the ratio is kept to */
    ref_fill(REF_LAPLACE, 1, x, 10);
    for (i = 0; i < many; i++) {
        snprintf(note, sizeof note, "bad operator %d", (int)i);
        ASSERT_EQm(note, (size_t)0, cg_bound(&bad[i], 10));
        ASSERT_ENUM_EQm(note, CG_E_ARG,
            cg_compress(&bad[i], &TAG, x, 10, packet, sizeof packet, &len, scratch, sizeof scratch), ops_status);
    }
    bad[0] = cg_permk(2); /* TAG.rank is 2 */
    ASSERT_ENUM_EQ(
        CG_E_ARG, cg_compress(&bad[0], &TAG, x, 10, packet, sizeof packet, &len, scratch, sizeof scratch), ops_status);
    PASS();
}

/* Decodes a forged packet, sealed again, next to guards. */
static cg_status forged(unsigned char *p, size_t len, size_t n, int *touched) {
    float *y = (float *)ref_alloc((n + 2 * GUARD) * 4);
    cg_status s, c;
    size_t i;
    ref_seal(p, len);
    for (i = 0; i < n + 2 * GUARD; i++) y[i] = 5.5f;
    s = cg_decompress(p, len, y + GUARD, n);
    c = cg_clear(p, len, y + GUARD, n);
    *touched = s != c;
    for (i = 0; i < n + 2 * GUARD; i++)
        if (s != CG_OK || i < GUARD || i >= n + GUARD) *touched |= y[i] != 5.5f;
    free(y);
    return s;
}

/* Every one- and two-bit change of the index section: decoded if and only if it is still k ascending indices below
   n. */
TEST forged_indices(const char *text, size_t n) {
    cg_op op;
    ops_packet pk;
    cg_info info;
    size_t base, a, b, bits, refused = 0, taken = 0;
    ref_packet r;
    ref_fill(REF_LAPLACE, 2, x, n);
    ASSERT_ENUM_EQ(CG_OK, cg_op_parse(&op, text), ops_status);
    pk = ops_pack(&op, &TAG, x, n);
    ASSERT_ENUM_EQ(CG_OK, pk.status, ops_status);
    ASSERT_ENUM_EQ(CG_OK, cg_inspect(pk.p, pk.len, &info), ops_status);
    r = ref_open(pk.p);
    r.indices = pk.p + CG_HEADER_BYTES + info.value_bytes;
    base = 8 * (CG_HEADER_BYTES + info.value_bytes);
    bits = 8 * info.index_bytes;
    for (a = 0; a < bits; a++)
        for (b = a; b < bits; b++) {
            uint64_t *index = (uint64_t *)ref_alloc((size_t)info.k * 8);
            int touched, valid;
            cg_status s;
            pk.p[(base + a) / 8] ^= (unsigned char)(1u << a % 8);
            if (b != a) pk.p[(base + b) / 8] ^= (unsigned char)(1u << b % 8);
            valid = info.index_code == CG_CODE_GOLOMB ? golomb_valid(r.indices, info.index_bytes, info.k, info.drawn)
                                                      : ref_get_indices(&r, index);
            s = forged(pk.p, pk.len, n, &touched);
            snprintf(note, sizeof note, "%s, bits %d and %d", text, (int)a, (int)b);
            ASSERT_ENUM_EQm(note, valid ? CG_OK : CG_E_CORRUPT, s, ops_status);
            ASSERTm(note, !touched);
            refused += (size_t)!valid;
            taken += (size_t)valid;
            pk.p[(base + a) / 8] ^= (unsigned char)(1u << a % 8);
            if (b != a) pk.p[(base + b) / 8] ^= (unsigned char)(1u << b % 8);
            free(index);
        }
    ASSERT(refused > 10 && taken > 10); /* both happened */
    free(pk.p);
    PASS();
}

/* Blocks: a header that counts the short last block, with indices that do not have it, and the other way round. */
TEST forged_blocks(const char *code) {
    enum { N = 41, B = 4 }; /* the last block is one value */
    char text[40];
    float v[N];
    ops_packet with, without;
    cg_info a, b;
    int touched, i;
    snprintf(text, sizeof text, "blocks:4%s", code);
    for (i = 0; i < N; i++) v[i] = i < 4 || i == 40 ? 1.0f : 0.0f;
    with = support_of(text, v, N);
    for (i = 0; i < N; i++) v[i] = i < 4 || (i >= 8 && i < 12) ? 1.0f : 0.0f;
    without = support_of(text, v, N);
    ASSERT_ENUM_EQ(CG_OK, cg_inspect(with.p, with.len, &a), ops_status);
    ASSERT_ENUM_EQ(CG_OK, cg_inspect(without.p, without.len, &b), ops_status);
    ASSERT_EQ_FMT(5u, (unsigned)a.k, "%u");
    ASSERT_EQ_FMT(8u, (unsigned)b.k, "%u");
    ASSERT(a.index_bytes == b.index_bytes);
    for (i = 0; i < (int)a.index_bytes; i++) { /* swap the index sections */
        unsigned char *p = with.p + CG_HEADER_BYTES + a.value_bytes + i,
                      *q = without.p + CG_HEADER_BYTES + b.value_bytes + i, t = *p;
        *p = *q;
        *q = t;
    }
    ASSERT_ENUM_EQ(CG_E_CORRUPT, forged(with.p, with.len, N, &touched), ops_status);
    ASSERT(!touched);
    ASSERT_ENUM_EQ(CG_E_CORRUPT, forged(without.p, without.len, N, &touched), ops_status);
    ASSERT(!touched);
    free(with.p);
    free(without.p);
    PASS();
}

/* Counts in the header that the selection cannot have made. */
TEST forged_counts(void) {
    static const char *const texts[] = { "dgc:0.1", "mstopk:0.1", "sidco:0.1", "sides:0.1", "sbc:0.1", "stc:0.1",
        "chunked:8:0.25", "blocks:4", "wangni:0.2", "permk:3" };
    size_t t, n = 100, d;
    for (t = 0; t < sizeof texts / sizeof *texts; t++) {
        static const uint64_t off[] = { 1, 50, 1000, UINT64_C(1) << 32, UINT64_C(1) << 62, (uint64_t)-1, (uint64_t)-4 };
        ops_packet pk;
        ref_fill(REF_LAPLACE, 2, x, n);
        pk = support_of(texts[t], x, n);
        ASSERT_ENUM_EQ(CG_OK, pk.status, ops_status);
        for (d = 0; d < sizeof off / sizeof *off; d++) {
            uint64_t k = ref_get(pk.p + 96, 8), drawn = ref_get(pk.p + 88, 8);
            int touched;
            snprintf(note, sizeof note, "%s, %d", texts[t], (int)d);
            ref_put(pk.p + 96, k + off[d], 8);
            ASSERT_ENUM_EQm(note, CG_E_CORRUPT, forged(pk.p, pk.len, n, &touched), ops_status);
            ASSERTm(note, !touched);
            ref_put(pk.p + 96, k, 8);
            ref_put(pk.p + 88, drawn + off[d], 8);
            ASSERT_ENUM_EQm(note, CG_E_CORRUPT, forged(pk.p, pk.len, n, &touched), ops_status);
            ref_put(pk.p + 88, drawn, 8);
            ASSERT_ENUM_EQm(note, CG_OK, forged(pk.p, pk.len, n, &touched), ops_status);
        }
        free(pk.p);
    }
    PASS();
}

/* AdaComp's sign: what is sent points the way of the residual, so the rest is never larger than residual and step. */
TEST adacomp_residual(void) {
    cg_op op = cg_adacomp(50);
    cg_extra side = CG_ZERO;
    size_t i, n = 5000, negative = 0;
    int kind = REF_LAPLACE;
    look l;
    ref_fill(REF_LAPLACE, 1, x, n);
    fill_aux(0, kind, n);
    side.aux = aux;
    EXPECT(look_at(&l, &op, &TAG, &side, x, n));
    for (i = 0; i < l.k; i++) {
        double v = (double)x[l.at[i]], y = (double)l.y[l.at[i]];
        negative += y < 0;
        ASSERT(v * y >= 0);
        ASSERT(fabs(v - y) <= fmax(fabs(v), fabs(y)));
    }
    ASSERT(negative * 3 > l.k && negative * 3 < 2 * l.k);
    /* one scale and one bit each */
    ASSERT_EQ_FMT((unsigned)(4 + ref_pad4(l.k)), (unsigned)l.info.value_bytes, "%u");
    forget(&l);
    PASS();
}

SUITE(refusals) {
    static const char *const forge[] = { "topk:0.1|golomb", "topk:0.1|eliasfano", "topk:0.1|bitmap", "side:0.1|golomb",
        "mstopk:0.3|golomb", "dgc:0.02|golomb", "chunked:8:0.25|golomb", "topk:0.9|golomb", "sides:0.1|eliasfano",
        "wangni:0.1|bitmap" };
    size_t i;
    for (i = 0; i < LOOKER_COUNT; i++) {
        RUN_TESTp(finds_nonfinite, LOOKERS[i], (size_t)1);
        RUN_TESTp(finds_nonfinite, LOOKERS[i], (size_t)777);
        RUN_TESTp(finds_nonfinite, LOOKERS[i], (size_t)2500);
        RUN_TESTp(finds_nonfinite, LOOKERS[i], (size_t)70001);
    }
    RUN_TEST(samples_look_at_their_own);
    RUN_TEST(missing_aux);
    RUN_TEST(bad_parameters);
    for (i = 0; i < sizeof forge / sizeof *forge; i++) RUN_TESTp(forged_indices, forge[i], (size_t)77);
    RUN_TEST1(forged_blocks, "|bitmap");
    RUN_TEST1(forged_blocks, "|eliasfano");
    RUN_TEST1(forged_blocks, "|golomb");
    RUN_TEST(forged_counts);
    RUN_TEST(adacomp_residual);
}

GREATEST_MAIN_DEFS();

int main(int argc, char **argv) {
    GREATEST_MAIN_BEGIN();
    x = (float *)ref_alloc(MOST * sizeof *x);
    aux = (float *)ref_alloc(MOST * sizeof *aux);
    RUN_SUITE(selections);
    RUN_SUITE(wangni);
    RUN_SUITE(samples);
    RUN_SUITE(given);
    RUN_SUITE(compositions);
    RUN_SUITE(refusals);
    free(x);
    free(aux);
    GREATEST_MAIN_END();
}
