/* compgrad_sketch.h: made of the files in src/ by "make headers"; change those, not this one. */

/* src/sketch/manual.h */
/* compgrad_sketch.h - a linear count sketch, heavy hitters, Sketched-SGD and FetchSGD.    part of compgrad, MIT licence

       #define COMPGRAD_IMPLEMENTATION                  // in exactly one .c or .cpp file
       #include "compgrad_sketch.h"                     // brings compgrad_exchange.h and compgrad.h with it

       cg_sketch_desc d = CG_ZERO;
       d.rows = 5; d.cols = n / 50; d.n = n; d.seed = 42;       // 10 times smaller than the gradient
       cg_sketch s;
       void *mem = malloc(cg_sketch_memory(&d));
       cg_status status = cg_sketch_init(&s, &d, mem, cg_sketch_memory(&d));

       status = cg_sketch_add(&s, grad, n, 1.0f);       // sketches of one description add: workers sketch, sums of sketches are
       status = cg_sketch_merge(&s, &other);            // sketches of sums
       status = cg_sketch_heavy(&s, k, index, value, scratch, cg_sketch_heavy_scratch(&s, k));      // its k largest coordinates

   One call for a training step of many ranks, each with all its memory in what you give it:

       status = cg_sketched_exchange(&sgd, &x, &transport, grad, mem, bytes, &report);     // Sketched-SGD, or agreed indices (ARC-Top-k)
       status = cg_fetched_exchange(&fetch, &x, &transport, grad, mem, bytes, &report);    // FetchSGD

   WHAT IT DOES. Every row r has cols cells. Coordinate i is added to cell h_r(i) with sign s_r(i); its estimate is the median over
   rows of s_r(i) times that cell (of an even number of rows, the mean of the two in the middle).

   HASHING. Neighbours move together, in lines of 256, so that a row costs no more than an addition: row and line give (by a 64-bit
   hash of the seed) a line of cells, eight bits that are XORed to the place in the line, and 256 signs. So in a row
     two coordinates of one line never collide;
     two of different lines do with probability 1/cols (cols/256 lines, 256 places), wherever they stand in theirs;
     signs are + or - with equal probability, and independent of each other and of the cells, as far as the hash is random; the
     norm below needs that of four at a time.
   cols is rounded up to a multiple of 256 (see cg_sketch.desc). Collisions come 256 at a time: on vectors whose large values stand together
   estimates are as good in the mean as with a hash per coordinate, but vary more from seed to seed.
   With cols >= 3/e^2 and rows >= 8 ln(1/d) + 1 an estimate is off by more than e |x| with probability d at most (two-wise; Charikar 02).

   GROUPS. desc.groups cells per row and level (0: none) find heavy hitters without looking at every coordinate, for vectors of
   billions: a sum of every 256, 65536, ... coordinates, with random signs and sizes, is sketched too, in a cell of its own (a plain sum
   could cancel, a random one has the group's energy), and only groups with enough energy are looked into. cg_sketch_heavy does so
   by itself where that is cheaper (if fewer than k are that heavy it looks at all: of vectors that are too long for it ask
   cg_sketch_heavy_above). What it finds are the same coordinates and values, as long as those are above about
   4 |x| / sqrt(min(cols, groups)).

   NUMBERS. Sums are f32, line after line in the order given: small integers add exactly, in any order of merging; otherwise the order
   decides the last bits, and a fixed order gives the same bits on every machine and at any number of threads. NaN and Inf are
   refused; if a cell's sum becomes too large for a float, heavy and pack return CG_E_NONFINITE. With COMPGRAD_OPENMP adding and estimating use all threads. MEMORY is the caller's, any alignment; nothing allocates. */

/* src/sketch/api.h */
#include "compgrad_exchange.h" /* outside the guard: its implementation has to come before the one below */

#ifndef COMPGRAD_SKETCH_H
#  define COMPGRAD_SKETCH_H

typedef struct cg_sketch_desc {
    int rows;    /* 1 to 15 */
    size_t cols; /* cells of a row; a multiple of 256, or is made one */
    size_t n;    /* coordinates, up to 2^40 */
    uint64_t seed;
    size_t groups; /* 0, or cells of a row for groups of coordinates, at every level */
} cg_sketch_desc;

typedef struct cg_sketch { /* yours */
    cg_sketch_desc desc;   /* cols as they are */
    float *cells;          /* rows * cols, and levels * rows * groups; add and scale them as you like */
    size_t count;          /* of all cells */
    int levels;
} cg_sketch;

CG_API_ size_t cg_sketch_memory(const cg_sketch_desc *desc); /* 0: refused, or it overflows */
CG_API_ CG_CHECKED_ cg_status cg_sketch_init(cg_sketch *sketch, const cg_sketch_desc *desc, void *mem, size_t bytes);
CG_API_ void cg_sketch_clear(cg_sketch *sketch);
/* + weight * x. n is desc.n; of a list any number, in any order. */
CG_API_ CG_CHECKED_ cg_status cg_sketch_add(cg_sketch *sketch, const float *x, size_t n, float weight);
CG_API_ CG_CHECKED_ cg_status cg_sketch_add_list(
    cg_sketch *sketch, const uint64_t *index, const float *value, size_t count, float weight);
/* += ; CG_E_MISMATCH if they differ in n, rows, cols, groups or seed */
CG_API_ CG_CHECKED_ cg_status cg_sketch_merge(cg_sketch *to, const cg_sketch *from);
CG_API_ CG_CHECKED_ cg_status cg_sketch_scale(cg_sketch *sketch, float by);
/* Cells that these coordinates touch become 0, in every row (FetchSGD); not with groups. */
CG_API_ CG_CHECKED_ cg_status cg_sketch_zero(cg_sketch *sketch, const uint64_t *index, size_t count);

CG_API_ float cg_sketch_estimate(const cg_sketch *sketch, uint64_t i); /* 0 beyond n */
CG_API_ CG_CHECKED_ cg_status cg_sketch_estimate_all(const cg_sketch *sketch, float *y, size_t n);
/* of x: the root of the median over rows of |cells|^2 */
CG_API_ double cg_sketch_norm(const cg_sketch *sketch);

/* The k largest estimates (of equals the lowest index), ascending by index; min(k, n) of them. */
CG_API_ size_t cg_sketch_heavy_scratch(const cg_sketch *sketch, size_t k);
CG_API_ CG_CHECKED_ cg_status cg_sketch_heavy(
    const cg_sketch *sketch, size_t k, uint64_t *index, float *value, void *scratch, size_t scratch_bytes);
/* All with |estimate| >= tau * norm, 0 < tau, but at most the k largest of them; ascending. None, if the norm is 0. */
CG_API_ CG_CHECKED_ cg_status cg_sketch_heavy_above(const cg_sketch *sketch, double tau, size_t k, uint64_t *index,
    float *value, size_t *count, void *scratch, size_t scratch_bytes);
/* HEAVYMIX: those above norm / sqrt(k), filled up to min(k, n) with random others, by the shared key of tag;
   ascending. */
CG_API_ CG_CHECKED_ cg_status cg_sketch_heavymix(const cg_sketch *sketch, size_t k, const cg_tag *tag, uint64_t *index,
    float *value, void *scratch, size_t scratch_bytes);

/* As a packet: the cells through any operator for `count` values (dense: exact). The tag's seed is replaced by a
   hash of the description, so that a sketch of another n, rows, cols, groups or seed is CG_E_MISMATCH. cells =
   beta*cells + alpha*D. */
CG_API_ size_t cg_sketch_bound(const cg_sketch *sketch, const cg_op *op);
CG_API_ size_t cg_sketch_scratch(const cg_sketch *sketch, const cg_op *op);
CG_API_ CG_CHECKED_ cg_status cg_sketch_pack(const cg_sketch *sketch, const cg_op *op, const cg_tag *tag, void *packet,
    size_t cap, size_t *len, void *scratch, size_t scratch_bytes);
CG_API_ CG_CHECKED_ cg_status cg_sketch_unpack(
    cg_sketch *sketch, const void *packet, size_t len, float alpha, float beta);
/* cap: cg_sketch_bound(sketch, dense) */
CG_API_ CG_CHECKED_ cg_status cg_sketch_save(const cg_sketch *sketch, void *buf, size_t cap, size_t *len);
CG_API_ CG_CHECKED_ cg_status cg_sketch_load(cg_sketch *sketch, const void *buf, size_t len);
/* The mean (or sum: desc.fold) over ranks, by desc.route; desc.op: what cells are sent through; desc.model is not
   used. */
CG_API_ size_t cg_sketch_exchange_memory(
    const cg_sketch *sketch, const cg_exchange_desc *desc, const cg_transport *transport);
CG_API_ CG_CHECKED_ cg_status cg_sketch_exchange(cg_sketch *sketch, const cg_exchange_desc *desc,
    const cg_transport *transport, void *mem, size_t bytes, cg_report *report);

/* ---- Sketched-SGD (Ivkin 19), and indices agreed on by a sketch (ARC-Top-k) u = momentum u + g, a = a + u; the
   mean of S(a) over ranks; its `candidates` * k heaviest coordinates, the same on all ranks; of those the mean of
   a, exactly; of that the k largest are the result, and a (and u) become 0 there. candidates 1: what the sketch
   says is taken. mix: HEAVYMIX. The hash is another one in every step (by tag.step), so that nobody is hidden
   behind the same neighbour for ever. Nothing is lost: a + what was taken of it = sum of u. Errors: grad as it
   was, and the gradient in a unless it was refused here (NaN, memory, route). Values of a and u beyond 2^96 are
   cut off there; momentum u counts as 0 below 2^-100. */
typedef struct cg_sketched_desc {
    cg_sketch_desc sketch;
    size_t k;
    int candidates /* 0 = 4 */;
    float momentum;
    int mix;
} cg_sketched_desc;
typedef struct cg_sketched {
    cg_sketched_desc desc;
    cg_sketch sketch;
    float *error, *velocity;
} cg_sketched;
CG_API_ size_t cg_sketched_memory(const cg_sketched_desc *desc);
CG_API_ CG_CHECKED_ cg_status cg_sketched_init(cg_sketched *sgd, const cg_sketched_desc *desc, void *mem, size_t bytes);
CG_API_ size_t cg_sketched_exchange_memory(
    const cg_sketched *sgd, const cg_exchange_desc *desc, const cg_transport *transport);
CG_API_ CG_CHECKED_ cg_status cg_sketched_exchange(cg_sketched *sgd, const cg_exchange_desc *desc,
    const cg_transport *transport, float *grad, void *mem, size_t bytes,
    cg_report *report); /* desc: tag, route (auto, linear, server), model and rate */

/* ---- FetchSGD (Rothchild 20): momentum and error live in the sketch, the same on all ranks S_u = momentum S_u +
   mean of S(g); S_e = S_e + rate S_u; the result is the k heaviest of S_e; cells that they touch become 0 in S_e
   and S_u (subtracting their sketch, as the paper has it, diverges where the sketch is small). momentum S_u counts
   as 0 below 2^-100. On any error the state is as it was. */
typedef struct cg_fetched_desc {
    cg_sketch_desc sketch;
    size_t k;
    float momentum, rate /* 0 = 1; with a desc.model the step is by both rates */;
} cg_fetched_desc;
typedef struct cg_fetched {
    cg_fetched_desc desc;
    cg_sketch momentum, error, fresh;
} cg_fetched;
CG_API_ size_t cg_fetched_memory(const cg_fetched_desc *desc);
CG_API_ CG_CHECKED_ cg_status cg_fetched_init(cg_fetched *sgd, const cg_fetched_desc *desc, void *mem, size_t bytes);
CG_API_ size_t cg_fetched_exchange_memory(
    const cg_fetched *sgd, const cg_exchange_desc *desc, const cg_transport *transport);
CG_API_ CG_CHECKED_ cg_status cg_fetched_exchange(cg_fetched *sgd, const cg_exchange_desc *desc,
    const cg_transport *transport, float *grad, void *mem, size_t bytes, cg_report *report);

#endif /* COMPGRAD_SKETCH_H */

/* src/sketch/begin.h */
/* ============================================================================================== */
#if defined(COMPGRAD_IMPLEMENTATION) && !defined(COMPGRAD_SKETCH_IMPLEMENTED_) && !defined(COMPGRAD_LINKED)
#  define COMPGRAD_SKETCH_IMPLEMENTED_

/* src/core/base/fp_begin.h */
/* fp_begin: strict floating point from here to fp_end, whatever flags the includer compiles with

   Offers   pragmas: no contraction, no reassociation, no fast math
   Needs    nothing
   Touches  the compiler's floating-point state, which fp_end gives back; every header has both once
   All code whose results are part of a packet stands between the two. */
#if defined(__clang__)
#  if defined(__x86_64__) || defined(__i386__)
#    pragma float_control(push)
#    pragma float_control(precise, on)
#  endif
#  pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#  pragma GCC push_options
#  pragma GCC optimize("no-fast-math", "fp-contract=off")
#endif

/* src/sketch/hash.h */
/* ---- >>hash: where a line goes, and with which signs ---- */

enum { CG_SKETCH_MAX_ROWS_ = 15 };
#define CG_SKETCH_LINE_ 256u /* neighbours that move together */

/* of a line in a row; ahead: cells that will be needed next */
typedef struct cg_line_target_ {
    float *cells;
    uint32_t xor_mask;
    cg_key_ sign_key;
    const float *prefetch;
} cg_line_target_;

static uint64_t cg_row_key_(const cg_sketch *s, int row) {
    return cg_mix64_(s->desc.seed + (uint64_t)(row + 1) * CG_GOLDEN_);
}
static size_t cg_row_slots_(const cg_sketch *s) { return s->desc.cols / CG_SKETCH_LINE_; }
static uint64_t cg_line_hash_(uint64_t row_key, uint64_t line) { return cg_mix64_(row_key + (line + 1) * CG_GOLDEN_); }
static size_t cg_line_slot_(const cg_sketch *s, uint64_t hash) {
    return (size_t)((hash >> 32) * (uint64_t)cg_row_slots_(s) >> 32);
}
static cg_line_target_ cg_line_target_of_(const cg_sketch *s, int row, uint64_t hash) {
    cg_line_target_ p;
    p.cells = s->cells + (size_t)row * s->desc.cols + cg_line_slot_(s, hash) * CG_SKETCH_LINE_;
    p.xor_mask = (uint32_t)(hash & 255u);
    p.sign_key = cg_block_key_(hash, 0);
    p.prefetch = p.cells;
    return p;
}
/* Lane e of a line is bit e / 8 (from the top) of word e % 8: eight lanes have their signs in eight words. One
   round more than for rounding, where products of four bits do not matter. */
CG_INLINE_ uint32_t cg_sign_word_(cg_key_ key, unsigned i) {
    const uint32_t h = cg_hash32_(key, i) * 0x31848BABu;
    return h ^ h >> 15;
}
CG_INLINE_ uint32_t cg_line_bit_(cg_key_ key, unsigned e, unsigned set) {
    return cg_sign_word_(key, 8 * set + (e & 7u)) << (e >> 3) & 0x80000000u;
}
CG_INLINE_ uint32_t cg_sign_bit_(cg_key_ key, unsigned e) { return cg_line_bit_(key, e, 0); }
/* In sums of groups a value counts 1/2, 1, 3/2 or 2 times: with signs alone, two equal ones would cancel in all
   rows once in 2^rows. */
CG_INLINE_ float cg_group_weight_(cg_key_ key, unsigned e) {
    return (cg_line_bit_(key, e, 1) ? 1.0f : 0.5f) + (cg_line_bit_(key, e, 2) ? 1.0f : 0.0f);
}
CG_INLINE_ float cg_xor_sign_(float v, uint32_t sign) { return cg_as_float_(cg_as_bits_(v) ^ sign); }

/* Groups: level 1 are lines, level 2 lines of lines, ... */
static size_t cg_group_count_(const cg_sketch *s, int level) {
    size_t many = s->desc.n;
    for (int l = 0; l < level; l++) many = many / CG_SKETCH_LINE_ + (many % CG_SKETCH_LINE_ != 0);
    return many;
}
static float *cg_group_cell_(const cg_sketch *s, int row, int level, uint64_t group, uint32_t *sign) {
    const uint64_t h = cg_line_hash_(cg_mix64_(cg_row_key_(s, row) + (uint64_t)level), group);
    *sign = (uint32_t)h & 0x80000000u;
    return s->cells + (size_t)s->desc.rows * s->desc.cols +
        ((size_t)(level - 1) * (size_t)s->desc.rows + (size_t)row) * s->desc.groups +
        (size_t)((h >> 32) * (uint64_t)s->desc.groups >> 32);
}

/* src/sketch/kernels.h */
/* ---- >>kernels of a line: the scalar ones are what they mean ---- */

static void cg_line_add_scalar_(const cg_line_target_ *p, const float *x, size_t many, float weight) {
    for (unsigned e = 0; e < many; e++) {
        float *cell = p->cells + (e ^ p->xor_mask);
        *cell = cg_plus_(*cell, cg_xor_sign_(cg_times_(cg_load_(x, e), weight), cg_sign_bit_(p->sign_key, e)));
    }
}
/* The signed sum: eight lanes, then lanes 4 apart, 2 apart, and neighbours. */
static float cg_line_project_scalar_(const cg_line_target_ *p, const float *x, size_t many, float weight) {
    float lane[8] = { 0.0f };
    for (unsigned e = 0; e < many; e++)
        lane[e & 7] = cg_plus_(lane[e & 7],
            cg_times_(cg_xor_sign_(cg_times_(cg_load_(x, e), weight), cg_sign_bit_(p->sign_key, e)),
                cg_group_weight_(p->sign_key, e)));
    for (unsigned step = 4; step; step /= 2)
        for (unsigned e = 0; e < step; e++) lane[e] = cg_plus_(lane[e], lane[e + step]);
    return lane[0];
}
CG_INLINE_ float cg_min_f32_(float a, float b) { return a < b ? a : b; }
CG_INLINE_ float cg_max_f32_(float a, float b) { return a > b ? a : b; }
CG_INLINE_ float cg_median3_(float a, float b, float c) {
    return cg_max_f32_(cg_min_f32_(a, b), cg_min_f32_(cg_max_f32_(a, b), c));
}
static float cg_median_(float *v, int rows) {
    if (rows == 3) return cg_median3_(v[0], v[1], v[2]);
    if (rows == 5)
        return cg_median3_(cg_max_f32_(cg_min_f32_(v[0], v[1]), cg_min_f32_(v[2], v[3])),
            cg_min_f32_(cg_max_f32_(v[0], v[1]), cg_max_f32_(v[2], v[3])), v[4]);
    for (int i = 0; i < rows; i++)
        for (int j = i & 1; j + 1 < rows; j += 2) {
            const float a = v[j], b = v[j + 1];
            v[j] = cg_min_f32_(a, b);
            v[j + 1] = cg_max_f32_(a, b);
        }
    return rows & 1 ? v[rows / 2] : cg_times_(cg_plus_(v[rows / 2 - 1], v[rows / 2]), 0.5f);
}
static float cg_coordinate_estimate_(const cg_line_target_ *p, int rows, unsigned e) {
    float v[CG_SKETCH_MAX_ROWS_];
    for (int r = 0; r < rows; r++) v[r] = cg_xor_sign_(p[r].cells[e ^ p[r].xor_mask], cg_sign_bit_(p[r].sign_key, e));
    return cg_median_(v, rows);
}
static void cg_line_estimate_scalar_(const cg_line_target_ *p, int rows, size_t many, float *out) {
    for (unsigned e = 0; e < many; e++) cg_store_(out, e, cg_coordinate_estimate_(p, rows, e));
}
#if defined(__GNUC__) && !defined(__clang__) && \
    __GNUC__ >= 8 /* or -O2 keeps a loop over rows, and their vectors in memory */
#  define CG_UNROLL_ROWS_ _Pragma("GCC unroll 7")
#else
#  define CG_UNROLL_ROWS_
#endif
#if CG_AVX2_
CG_AVX2_INLINE_ __m256i cg_xor_permutation_avx2_(uint32_t flip) { /* lane i to lane i ^ flip, of eight */
    return _mm256_xor_si256(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32((int)(flip & 7u)));
}
/* with the signs of its eight lanes, the top bits of words */
CG_AVX2_INLINE_ __m256 cg_xor_sign8_avx2_(__m256 v, __m256i words) {
    return _mm256_xor_ps(v, _mm256_and_ps(_mm256_castsi256_ps(words), _mm256_set1_ps(-0.0f)));
}
CG_AVX2_INLINE_ __m256i cg_sign_words8_avx2_(cg_key_ key, unsigned set) {
    const __m256i h = _mm256_mullo_epi32(cg_hash8_avx2_(key, 8 * set), _mm256_set1_epi32(0x31848BAB));
    return _mm256_xor_si256(h, _mm256_srli_epi32(h, 15));
}
CG_AVX2_INLINE_ __m256 cg_value_if_msb8_avx2_(__m256i words, float value) { /* value where the top bit is set, or 0 */
    return _mm256_and_ps(_mm256_castsi256_ps(_mm256_srai_epi32(words, 31)), _mm256_set1_ps(value));
}
CG_AVX2_INLINE_ void cg_line_add8_avx2_(const cg_line_target_ *p, int rows, const float *x, float weight) {
    __m256i words[5], cross[5];
    float *cells[5];
    const float *ahead[5];
    unsigned high[5];
    CG_UNROLL_ROWS_
    for (int r = 0; r < rows; r++) {
        words[r] = cg_sign_words8_avx2_(p[r].sign_key, 0);
        cross[r] = cg_xor_permutation_avx2_(p[r].xor_mask);
        cells[r] = p[r].cells;
        ahead[r] = p[r].prefetch;
        high[r] = p[r].xor_mask >> 3;
    }
    for (unsigned vec = 0; vec < 32; vec++) {
        const __m256 v = cg_mul8_avx2_(_mm256_castsi256_ps(cg_load8_avx2_(x, 8 * (size_t)vec)), _mm256_set1_ps(weight));
        if (!(vec & 1)) CG_PREFETCH_(cg_at_(x, 8 * (size_t)vec + 512));
        CG_UNROLL_ROWS_
        for (int r = 0; r < rows; r++) {
            float *to = cells[r] + 8 * (vec ^ high[r]);
            _mm256_storeu_ps(to,
                _mm256_add_ps(
                    _mm256_loadu_ps(to), _mm256_permutevar8x32_ps(cg_xor_sign8_avx2_(v, words[r]), cross[r])));
            words[r] = _mm256_add_epi32(words[r], words[r]);
            if (!(vec & 1)) CG_PREFETCH_WRITE_(ahead[r] + 8 * vec);
        }
    }
}
CG_TARGET_AVX2_ static void cg_line_add_avx2_(const cg_line_target_ *p, int rows, const float *x, float weight) {
    for (; rows > 0; rows -= 5, p += 5) switch (rows) { /* known numbers unroll */
        case 1: cg_line_add8_avx2_(p, 1, x, weight); break;
        case 2: cg_line_add8_avx2_(p, 2, x, weight); break;
        case 3: cg_line_add8_avx2_(p, 3, x, weight); break;
        case 4: cg_line_add8_avx2_(p, 4, x, weight); break;
        default: cg_line_add8_avx2_(p, 5, x, weight); break; /* all that fits into registers */
        }
}
CG_TARGET_AVX2_ static float cg_line_project_avx2_(const cg_line_target_ *p, const float *x, float weight) {
    __m256i words = cg_sign_words8_avx2_(p->sign_key, 0), half = cg_sign_words8_avx2_(p->sign_key, 1),
            full = cg_sign_words8_avx2_(p->sign_key, 2);
    const __m256 w = _mm256_set1_ps(weight);
    __m256 sum = _mm256_setzero_ps();
    float lane[8];
    for (int vec = 0; vec < 32; vec++) {
        const __m256 share = _mm256_add_ps(_mm256_add_ps(_mm256_set1_ps(0.5f), cg_value_if_msb8_avx2_(half, 0.5f)),
            cg_value_if_msb8_avx2_(full, 1.0f));
        sum = _mm256_add_ps(sum,
            cg_mul8_avx2_(
                cg_xor_sign8_avx2_(cg_mul8_avx2_(_mm256_castsi256_ps(cg_load8_avx2_(x, 8 * (size_t)vec)), w), words),
                share));
        words = _mm256_add_epi32(words, words);
        half = _mm256_add_epi32(half, half);
        full = _mm256_add_epi32(full, full);
    }
    _mm256_storeu_ps(lane, sum);
    for (unsigned step = 4; step; step /= 2)
        for (unsigned e = 0; e < step; e++) lane[e] = cg_plus_(lane[e], lane[e + step]);
    return lane[0];
}
#  define CG_MIN8_(a, b) _mm256_min_ps(a, b) /* a < b ? a : b, as above */
#  define CG_MAX8_(a, b) _mm256_max_ps(a, b)
CG_AVX2_INLINE_ __m256 cg_median3x8_avx2_(__m256 a, __m256 b, __m256 c) {
    return CG_MAX8_(CG_MIN8_(a, b), CG_MIN8_(CG_MAX8_(a, b), c));
}
CG_AVX2_INLINE_ __m256 cg_median8_avx2_(__m256 *v, int rows) {
    if (rows == 3) return cg_median3x8_avx2_(v[0], v[1], v[2]);
    if (rows == 5)
        return cg_median3x8_avx2_(CG_MAX8_(CG_MIN8_(v[0], v[1]), CG_MIN8_(v[2], v[3])),
            CG_MIN8_(CG_MAX8_(v[0], v[1]), CG_MAX8_(v[2], v[3])), v[4]);
    for (int i = 0; i < rows; i++)
        for (int j = i & 1; j + 1 < rows; j += 2) {
            const __m256 a = v[j], b = v[j + 1];
            v[j] = CG_MIN8_(a, b);
            v[j + 1] = CG_MAX8_(a, b);
        }
    return rows & 1 ? v[rows / 2] : _mm256_mul_ps(_mm256_add_ps(v[rows / 2 - 1], v[rows / 2]), _mm256_set1_ps(0.5f));
}
CG_AVX2_INLINE_ void cg_line_estimate8_avx2_(const cg_line_target_ *p, int rows, float *out) {
    __m256i words[CG_SKETCH_MAX_ROWS_], cross[CG_SKETCH_MAX_ROWS_];
    CG_UNROLL_ROWS_
    for (int r = 0; r < rows; r++) {
        words[r] = cg_sign_words8_avx2_(p[r].sign_key, 0);
        cross[r] = cg_xor_permutation_avx2_(p[r].xor_mask);
    }
    for (int vec = 0; vec < 32; vec++) {
        __m256 v[CG_SKETCH_MAX_ROWS_];
        CG_UNROLL_ROWS_
        for (int r = 0; r < rows; r++) {
            v[r] = cg_xor_sign8_avx2_(
                _mm256_permutevar8x32_ps(_mm256_loadu_ps(p[r].cells + 8 * (vec ^ (int)(p[r].xor_mask >> 3))), cross[r]),
                words[r]);
            words[r] = _mm256_add_epi32(words[r], words[r]);
            if (!(vec & 1)) CG_PREFETCH_(p[r].prefetch + 8 * vec);
        }
        cg_store_avx2_(cg_at_mut_(out, 8 * (size_t)vec), _mm256_castps_si256(cg_median8_avx2_(v, rows)));
    }
}
CG_TARGET_AVX2_ static void cg_line_estimate_avx2_(const cg_line_target_ *p, int rows, float *out) {
    switch (rows) { /* known numbers unroll */
    case 1: cg_line_estimate8_avx2_(p, 1, out); break;
    case 3: cg_line_estimate8_avx2_(p, 3, out); break;
    case 5: cg_line_estimate8_avx2_(p, 5, out); break;
    case 7: cg_line_estimate8_avx2_(p, 7, out); break;
    default: cg_line_estimate8_avx2_(p, rows, out); break;
    }
}
#endif
static int cg_sketch_use_avx2_(void) {
#if CG_AVX2_
    return cg_kernels_now_()->isa == CG_ISA_AVX2;
#else
    return 0;
#endif
}
static void cg_line_add_(const cg_line_target_ *p, int rows, const float *x, size_t many, float weight, int avx2) {
#if CG_AVX2_
    if (avx2 && many == CG_SKETCH_LINE_) {
        cg_line_add_avx2_(p, rows, x, weight);
        return;
    }
#endif
    (void)avx2;
    for (int r = 0; r < rows; r++) cg_line_add_scalar_(p + r, x, many, weight);
}
static float cg_line_project_(const cg_line_target_ *p, const float *x, size_t many, float weight, int avx2) {
#if CG_AVX2_
    if (avx2 && many == CG_SKETCH_LINE_) return cg_line_project_avx2_(p, x, weight);
#endif
    (void)avx2;
    return cg_line_project_scalar_(p, x, many, weight);
}
static void cg_line_estimate_(const cg_line_target_ *p, int rows, size_t many, float *out, int avx2) {
#if CG_AVX2_
    if (avx2 && many == CG_SKETCH_LINE_) {
        cg_line_estimate_avx2_(p, rows, out);
        return;
    }
#endif
    (void)avx2;
    cg_line_estimate_scalar_(p, rows, many, out);
}

/* src/sketch/sketch.h */
/* ---- >>sketch ---- */

static cg_status cg_sketch_shape_(const cg_sketch_desc *d, cg_sketch *s) {
    uint64_t cells;
    memset(s, 0, sizeof *s);
    if (!d || d->rows < 1 || d->rows > CG_SKETCH_MAX_ROWS_ || d->cols < 1 || (uint64_t)d->n > (uint64_t)1 << 40)
        return CG_E_ARG;
    if (d->cols > SIZE_MAX / 2 || d->cols / CG_SKETCH_LINE_ >= 0xffffffffu || (uint64_t)d->groups > 0xffffffffu)
        return CG_E_ARG;
    s->desc = *d;
    s->desc.cols = (d->cols + CG_SKETCH_LINE_ - 1) / CG_SKETCH_LINE_ * CG_SKETCH_LINE_;
    if (d->groups)
        for (s->levels = 1; cg_group_count_(s, s->levels) > CG_SKETCH_LINE_; s->levels++) {}
    cells = cg_mul_sat_((uint64_t)d->rows, cg_add_sat_(s->desc.cols, cg_mul_sat_((uint64_t)s->levels, d->groups)));
    if (cells > SIZE_MAX / 8) return CG_E_ARG;
    s->count = (size_t)cells;
    return CG_OK;
}
CG_API_ size_t cg_sketch_memory(const cg_sketch_desc *desc) {
    cg_sketch s;
    return cg_sketch_shape_(desc, &s) == CG_OK ? 4 * s.count + 64 : 0;
}
CG_API_ void cg_sketch_clear(cg_sketch *sketch) { memset(sketch->cells, 0, 4 * sketch->count); }
CG_API_ cg_status cg_sketch_init(cg_sketch *sketch, const cg_sketch_desc *desc, void *mem, size_t bytes) {
    const size_t skip = mem ? (64 - ((uintptr_t)mem & 63)) % 64 : 0;
    cg_sketch s;
    cg_status status = sketch ? cg_sketch_shape_(desc, &s) : CG_E_ARG;
    if (status != CG_OK) return status;
    if (!mem || bytes < skip || bytes - skip < 4 * s.count) return CG_E_MEMORY;
    s.cells = (float *)(void *)((uint8_t *)mem + skip);
    *sketch = s;
    cg_sketch_clear(sketch);
    return CG_OK;
}
static size_t cg_sketch_lines_(const cg_sketch *s) {
    return s->desc.n / CG_SKETCH_LINE_ + (s->desc.n % CG_SKETCH_LINE_ != 0);
}
static size_t cg_line_len_(const cg_sketch *s, uint64_t line) {
    return cg_min_(CG_SKETCH_LINE_, s->desc.n - (size_t)line * CG_SKETCH_LINE_);
}

/* Every thread goes over all lines, and has an equal share of the cells: some rows, and a part of one or two more.
   So cells are added to in the order of lines, however many threads there are. */
CG_NOINLINE_ void cg_sketch_add_slice_(cg_sketch *s, const float *x, float weight, int part, int parts) {
    const size_t lines = cg_sketch_lines_(s), wide = cg_row_slots_(s), all = wide * (size_t)s->desc.rows;
    const size_t from = all / (size_t)parts * (size_t)part,
                 to = part + 1 < parts ? all / (size_t)parts * (size_t)(part + 1) : all;
    const int first = (int)(from / wide), end = (int)((to + wide - 1) / wide), avx2 = cg_sketch_use_avx2_();
    uint64_t key[CG_SKETCH_MAX_ROWS_];
    cg_line_target_ next[CG_SKETCH_MAX_ROWS_], p[CG_SKETCH_MAX_ROWS_];
    cg_fenv_ env = cg_fenv_enter_();
    for (int r = first; r < end; r++) {
        key[r] = cg_row_key_(s, r);
        next[r] = cg_line_target_of_(s, r, cg_line_hash_(key[r], 0));
    }
    for (size_t line = 0; line < lines; line++) {
        int mine = 0;
        for (int r = first; r < end; r++) { /* without a branch: nobody could foresee it */
            const int here = next[r].cells >= s->cells + from * CG_SKETCH_LINE_ &&
                next[r].cells < s->cells + to * CG_SKETCH_LINE_;
            p[mine] = next[r];
            next[r] = cg_line_target_of_(s, r, cg_line_hash_(key[r], line + 1));
            if (next[r].cells >= s->cells + from * CG_SKETCH_LINE_ && next[r].cells < s->cells + to * CG_SKETCH_LINE_)
                p[mine].prefetch = next[r].cells;
            mine += here;
        }
        cg_line_add_(p, mine, cg_at_(x, line * CG_SKETCH_LINE_), cg_line_len_(s, line), weight, avx2);
    }
    cg_fenv_leave_(env);
}
static void cg_group_add_(cg_sketch *s, int row, uint64_t line, float sum) {
    for (int level = 1; level <= s->levels; level++, line /= CG_SKETCH_LINE_) {
        uint32_t sign;
        float *cell = cg_group_cell_(s, row, level, line, &sign);
        sum = cg_xor_sign_(sum, sign); /* of this level, on top of those below */
        *cell = cg_plus_(*cell, sum);
    }
}
/* a part of the rows */
CG_NOINLINE_ void cg_sketch_add_groups_(cg_sketch *s, const float *x, float weight, int part, int parts) {
    const size_t lines = cg_sketch_lines_(s);
    const int from = s->desc.rows * part / parts, to = s->desc.rows * (part + 1) / parts, avx2 = cg_sketch_use_avx2_();
    cg_fenv_ env = cg_fenv_enter_();
    for (size_t line = 0; line < lines && from < to; line++)
        for (int r = from; r < to; r++) {
            const cg_line_target_ p = cg_line_target_of_(s, r, cg_line_hash_(cg_row_key_(s, r), line));
            cg_group_add_(s, r, line,
                cg_line_project_(&p, cg_at_(x, line * CG_SKETCH_LINE_), cg_line_len_(s, line), weight, avx2));
        }
    cg_fenv_leave_(env);
}
/* All of a part finite? */
static int cg_slice_finite_(const float *x, size_t n, int part, int parts) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    const size_t to = n / (size_t)parts * (size_t)part +
        (part + 1 == parts ? n - n / (size_t)parts * (size_t)part : n / (size_t)parts);
    for (size_t i = n / (size_t)parts * (size_t)part; i < to; i += CG_BLOCK_)
        if (kernels->absmax_bits(cg_at_(x, i), cg_min_(CG_BLOCK_, to - i)) >= CG_INF_BITS_) return 0;
    return 1;
}
static cg_status cg_sketch_add_(cg_sketch *s, const float *x, size_t n, float weight) {
    const int many = cg_thread_count_();
    int finite[64];
    if (!s || (!x && n) || !cg_is_finite_(weight)) return CG_E_ARG;
    if (n != s->desc.n) return CG_E_MISMATCH;
    CG_PARALLEL_
    for (int i = 0; i < many; i++) finite[i] = cg_slice_finite_(x, n, i, many);
    for (int i = 0; i < many; i++)
        if (!finite[i]) return CG_E_NONFINITE; /* before a cell changes */
    CG_PARALLEL_
    for (int i = 0; i < many; i++) cg_sketch_add_slice_(s, x, weight, i, many);
    if (!s->levels) return CG_OK;
    CG_PARALLEL_
    for (int i = 0; i < many; i++) cg_sketch_add_groups_(s, x, weight, i, many);
    return CG_OK;
}
CG_API_ cg_status cg_sketch_add(cg_sketch *sketch, const float *x, size_t n, float weight) {
    const cg_fenv_ env = cg_fenv_enter_();
    const cg_status s = cg_sketch_add_(sketch, x, n, weight);
    cg_fenv_leave_(env);
    return s;
}
static cg_status cg_sketch_list_check_(const cg_sketch *s, const uint64_t *index, size_t count) {
    if (!s || (!index && count)) return CG_E_ARG;
    for (size_t i = 0; i < count; i++)
        if (index[i] >= s->desc.n) return CG_E_ARG;
    return CG_OK;
}
CG_API_ cg_status cg_sketch_add_list(
    cg_sketch *sketch, const uint64_t *index, const float *value, size_t count, float weight) {
    const cg_fenv_ env = cg_fenv_enter_();
    cg_status s = cg_sketch_list_check_(sketch, index, count);
    if (s == CG_OK && ((!value && count) || !cg_is_finite_(weight))) s = CG_E_ARG;
    for (size_t i = 0; i < count && s == CG_OK; i++)
        if (!cg_is_finite_(cg_load_(value, i))) s = CG_E_NONFINITE;
    for (size_t i = 0; i < count && s == CG_OK; i++)
        for (int r = 0; r < sketch->desc.rows; r++) {
            const uint64_t line = index[i] / CG_SKETCH_LINE_;
            const unsigned e = (unsigned)(index[i] % CG_SKETCH_LINE_);
            const cg_line_target_ p = cg_line_target_of_(sketch, r, cg_line_hash_(cg_row_key_(sketch, r), line));
            const float v = cg_xor_sign_(cg_times_(cg_load_(value, i), weight), cg_sign_bit_(p.sign_key, e));
            p.cells[e ^ p.xor_mask] = cg_plus_(p.cells[e ^ p.xor_mask], v);
            if (sketch->levels) cg_group_add_(sketch, r, line, cg_times_(v, cg_group_weight_(p.sign_key, e)));
        }
    cg_fenv_leave_(env);
    return s;
}
CG_API_ cg_status cg_sketch_zero(cg_sketch *sketch, const uint64_t *index, size_t count) {
    cg_status s = cg_sketch_list_check_(sketch, index, count);
    if (s == CG_OK && sketch->levels) s = CG_E_UNSUPPORTED; /* groups would still have what is gone */
    for (size_t i = 0; i < count && s == CG_OK; i++)
        for (int r = 0; r < sketch->desc.rows; r++) {
            const cg_line_target_ p = cg_line_target_of_(
                sketch, r, cg_line_hash_(cg_row_key_(sketch, r), index[i] / CG_SKETCH_LINE_));
            p.cells[(unsigned)(index[i] % CG_SKETCH_LINE_) ^ p.xor_mask] = 0.0f;
        }
    return s;
}
static int cg_sketch_same_(const cg_sketch *a, const cg_sketch *b) {
    return a->desc.rows == b->desc.rows && a->desc.cols == b->desc.cols && a->desc.n == b->desc.n &&
        a->desc.seed == b->desc.seed && a->desc.groups == b->desc.groups;
}
CG_API_ cg_status cg_sketch_merge(cg_sketch *to, const cg_sketch *from) {
    cg_fenv_ env;
    if (!to || !from || to == from) return CG_E_ARG;
    if (!cg_sketch_same_(to, from)) return CG_E_MISMATCH;
    env = cg_fenv_enter_();
    cg_kernels_now_()->axpby(from->cells, to->count, 1.0f, 1.0f, to->cells, 0);
    cg_fenv_leave_(env);
    return CG_OK;
}
CG_API_ cg_status cg_sketch_scale(cg_sketch *sketch, float by) {
    cg_fenv_ env;
    if (!sketch || !cg_is_finite_(by)) return CG_E_ARG;
    env = cg_fenv_enter_();
    cg_kernels_now_()->axpby(sketch->cells, sketch->count, by, 0.0f, sketch->cells, 0);
    cg_fenv_leave_(env);
    return CG_OK;
}

/* src/sketch/estimate.h */
/* ---- >>estimates ---- */

static void cg_line_targets_(const cg_sketch *s, const uint64_t *keys, uint64_t line, cg_line_target_ *p) {
    for (int r = 0; r < s->desc.rows; r++) p[r] = cg_line_target_of_(s, r, cg_line_hash_(keys[r], line));
}
static void cg_row_keys_(const cg_sketch *s, uint64_t *keys) {
    for (int r = 0; r < s->desc.rows; r++) keys[r] = cg_row_key_(s, r);
}
static float cg_sketch_estimate_(const cg_sketch *s, uint64_t i) {
    uint64_t keys[CG_SKETCH_MAX_ROWS_];
    cg_line_target_ p[CG_SKETCH_MAX_ROWS_];
    cg_row_keys_(s, keys);
    cg_line_targets_(s, keys, i / CG_SKETCH_LINE_, p);
    return cg_coordinate_estimate_(p, s->desc.rows, (unsigned)(i % CG_SKETCH_LINE_));
}
CG_API_ float cg_sketch_estimate(const cg_sketch *sketch, uint64_t i) {
    const cg_fenv_ env = cg_fenv_enter_();
    const float v = i < sketch->desc.n ? cg_sketch_estimate_(sketch, i) : 0.0f;
    cg_fenv_leave_(env);
    return v;
}
/* Estimates of [first, first + many), whole lines but for the end, or a single one: what cg_producer_ asks for. */
static double cg_sketch_estimate_range_(const void *user, size_t first, size_t many, float *out) {
    const cg_sketch *s = (const cg_sketch *)user;
    const int avx2 = cg_sketch_use_avx2_();
    uint64_t keys[CG_SKETCH_MAX_ROWS_];
    cg_line_target_ p[2][CG_SKETCH_MAX_ROWS_];
    if (first % CG_SKETCH_LINE_) {
        for (size_t i = 0; i < many; i++) cg_store_(out, i, cg_sketch_estimate_(s, first + i));
        return 0.0;
    }
    cg_row_keys_(s, keys);
    cg_line_targets_(s, keys, first / CG_SKETCH_LINE_, p[first / CG_SKETCH_LINE_ & 1]);
    for (size_t i = 0, line = first / CG_SKETCH_LINE_; i < many; i += CG_SKETCH_LINE_, line++) {
        cg_line_target_ *now = p[line & 1];
        cg_line_target_ *next = p[~line & 1];
        cg_line_targets_(s, keys, line + 1, next);
        for (int r = 0; r < s->desc.rows; r++) now[r].prefetch = next[r].cells;
        cg_line_estimate_(now, s->desc.rows, cg_min_(CG_SKETCH_LINE_, many - i), cg_at_mut_(out, i), avx2);
    }
    return 0.0;
}
CG_API_ cg_status cg_sketch_estimate_all(const cg_sketch *sketch, float *y, size_t n) {
    cg_producer_ fill = CG_ZERO;
    cg_source_ src = CG_ZERO;
    cg_fenv_ env;
    if (!sketch || (!y && n)) return CG_E_ARG;
    if (n != sketch->desc.n) return CG_E_MISMATCH;
    env = cg_fenv_enter_();
    fill.make = cg_sketch_estimate_range_;
    fill.user = sketch;
    fill.n = n;
    fill.step = CG_BLOCK_;
    src.producer = &fill;
    src.x = y;
    if (n) cg_producer_make_all_(&src);
    cg_fenv_leave_(env);
    return CG_OK;
}
static double cg_sketch_norm_(const cg_sketch *s) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    const int rows = s->desc.rows;
    double v[CG_SKETCH_MAX_ROWS_], middle;
    for (int r = 0; r < rows; r++) {
        int j = r;
        double sum = 0.0;
        for (size_t i = 0; i < s->desc.cols; i += CG_BLOCK_)
            sum += cg_lane_sum_of_(kernels, s->cells + (size_t)r * s->desc.cols + i,
                cg_min_(CG_BLOCK_, s->desc.cols - i), CG_SUM_SQUARES_);
        for (; j > 0 && v[j - 1] > sum; j--) v[j] = v[j - 1];
        v[j] = sum;
    }
    middle = rows & 1 ? v[rows / 2] : (v[rows / 2 - 1] + v[rows / 2]) * 0.5;
    return cg_is_finite64_(middle) ? cg_sqrt_(middle) : middle;
}
CG_API_ double cg_sketch_norm(const cg_sketch *sketch) {
    const cg_fenv_ env = cg_fenv_enter_();
    const double norm = cg_sketch_norm_(sketch);
    cg_fenv_leave_(env);
    return norm;
}

/* src/sketch/heavy.h */
/* ---- >>heavy ---- */

typedef struct cg_heavy_search_ {
    cg_op op;
    cg_info info;
    cg_list_ list;
    cg_producer_ fill;
    cg_selector_ picker;
    const cg_sketch *sketch;
    uint32_t threshold_bits;
    double threshold;
    uint64_t visits_left;
} cg_heavy_search_;

static cg_op cg_heavy_search_op_(size_t k) {
    cg_op op = cg_topk(1.0f);
    op.k = k ? k : 1;
    return op;
}
CG_API_ size_t cg_sketch_heavy_scratch(const cg_sketch *sketch, size_t k) {
    const cg_op op = cg_heavy_search_op_(k);
    return sketch ? cg_size_or_zero_(cg_scratch_bytes_(&op, sketch->desc.n)) : 0;
}
static cg_status cg_heavy_search_open_(cg_heavy_search_ *h, const cg_sketch *s, size_t k, void *scratch, size_t bytes) {
    memset(h, 0, sizeof *h);
    h->sketch = s;
    h->op = cg_heavy_search_op_(k);
    if (cg_scratch_bytes_(&h->op, s->desc.n) > bytes) return CG_E_CAPACITY;
    if (!scratch && s->desc.n) return CG_E_ARG;
    cg_list_in_scratch_(&h->list, &h->op, s->desc.n, scratch);
    h->fill.make = cg_sketch_estimate_range_;
    h->fill.user = s;
    h->fill.n = s->desc.n;
    h->fill.step = CG_CHUNK_;
    h->fill.lazy = 1;
    h->picker.kernels = cg_kernels_now_();
    h->picker.producer = &h->fill;
    h->picker.n = s->desc.n;
    h->picker.list = &h->list;
    h->picker.info = &h->info;
    return CG_OK;
}
/* Has a group the energy of a value of `least`? Its cells in all rows; too few is rare, too many only costs time. */
static int cg_group_may_be_heavy_(const cg_sketch *s, int level, uint64_t group, double least) {
    double sum = 0.0;
    uint32_t sign;
    for (int r = 0; r < s->desc.rows; r++) {
        const double c = (double)*cg_group_cell_(s, r, level, group, &sign);
        sum += c * c;
    }
    return sum * 16.0 >= cg_times64_(least, least) * (double)s->desc.rows;
}
/* All of a group that reach the bound, ascending; 0: they do not fit, or it takes too long. */
static int cg_heavy_search_group_(cg_heavy_search_ *h, int level, uint64_t group) {
    const cg_sketch *s = h->sketch;
    float line[CG_SKETCH_LINE_];
    if (h->visits_left-- == 0) return 0;
    if (!cg_group_may_be_heavy_(s, level, group, h->threshold)) return 1;
    if (level == 1) {
        const size_t many = cg_line_len_(s, group), first = (size_t)group * CG_SKETCH_LINE_;
        cg_sketch_estimate_range_(s, first, many, line);
        for (size_t e = 0; e < many; e++)
            if ((cg_as_bits_(line[e]) & CG_ABS_MASK_) >= h->threshold_bits) {
                while (h->list.block_sum < (double)((uint64_t)(first + e) >> 32))
                    h->list.segment_start[(size_t)(h->list.block_sum += 1.0)] = h->list.count;
                cg_list_add_(&h->list, first + e, line[e]);
            }
        return h->list.count <= h->list.capacity;
    }
    for (uint64_t c = group * CG_SKETCH_LINE_; c < (group + 1) * CG_SKETCH_LINE_ && c < cg_group_count_(s, level - 1);
         c++)
        if (!cg_heavy_search_group_(h, level - 1, c)) return 0;
    return 1;
}
/* By groups: is that possible, and has it been done? Costs at most about what looking at every coordinate does. */
static int cg_heavy_search_groups_(cg_heavy_search_ *h, double least) {
    const cg_sketch *s = h->sketch;
    if (!s->levels || least <= 0.0) return 0;
    h->threshold = least;
    h->threshold_bits = cg_as_bits_(cg_saturate64_(least)) & CG_ABS_MASK_;
    h->threshold_bits += (double)cg_as_float_(h->threshold_bits) < least;
    h->visits_left = s->desc.n / 64;
    h->list.count = 0;
    h->list.block_sum = 0.0; /* the segment of 2^32 that has begun */
    h->list.segment_start[0] = 0;
    for (uint64_t g = 0; g < cg_group_count_(s, s->levels); g++)
        if (!cg_heavy_search_group_(h, s->levels, g)) return 0;
    for (uint64_t seg = (uint64_t)h->list.block_sum + 1; seg <= h->list.segment_count; seg++)
        h->list.segment_start[seg] = h->list.count;
    return 1;
}
static void cg_heavy_search_output_(const cg_heavy_search_ *h, uint64_t *index, float *value) {
    for (uint64_t seg = 0; seg < h->list.segment_count; seg++)
        for (size_t i = (size_t)h->list.segment_start[seg]; i < (size_t)h->list.segment_start[seg + 1]; i++) {
            index[i] = seg << 32 | h->list.index_low[i];
            cg_store_(value, i, h->list.value[i]);
        }
}
static cg_status cg_heavy_search_topk_(cg_heavy_search_ *h, size_t k) {
    const cg_sketch *s = h->sketch;
    const double norm = s->levels ? cg_sketch_norm_(s) : 0.0,
                 sure = 4.0 * norm / cg_sqrt_((double)cg_min_(s->desc.cols, s->desc.groups ? s->desc.groups : 1));
    for (double least = norm / cg_sqrt_((double)k); s->levels && least >= sure; least *= 0.5)
        if (!cg_heavy_search_groups_(h, least)) break;
        else if (h->list.count >= k) {
            cg_list_keep_topk_(&h->picker, k, h->threshold_bits);
            return CG_OK;
        }
    return cg_select_topk_(&h->picker, k);
}
CG_API_ cg_status cg_sketch_heavy(
    const cg_sketch *sketch, size_t k, uint64_t *index, float *value, void *scratch, size_t scratch_bytes) {
    cg_heavy_search_ h;
    cg_fenv_ env;
    cg_status s;
    if (!sketch || (k && sketch->desc.n && (!index || !value))) return CG_E_ARG;
    k = cg_min_(k, sketch->desc.n);
    if (!k) return CG_OK;
    env = cg_fenv_enter_();
    s = cg_heavy_search_open_(&h, sketch, k, scratch, scratch_bytes);
    if (s == CG_OK) s = cg_heavy_search_topk_(&h, k);
    if (s == CG_OK) cg_heavy_search_output_(&h, index, value);
    cg_fenv_leave_(env);
    return s;
}
/* All of at least `least`, but no more than the k largest. */
static cg_status cg_heavy_search_above_(cg_heavy_search_ *h, double least, size_t k) {
    const double sure = h->sketch->levels
        ? 4.0 * cg_sketch_norm_(h->sketch) / cg_sqrt_((double)cg_min_(h->sketch->desc.cols, h->sketch->desc.groups))
        : 0.0;
    const uint32_t about = cg_as_bits_(cg_saturate64_(least)) & CG_ABS_MASK_,
                   bound = about + ((double)cg_as_float_(about) < least);
    if (!(h->sketch->levels && least >= sure && cg_heavy_search_groups_(h, least)) &&
        !cg_filter_lazy_(h->picker.kernels, &h->fill, h->sketch->desc.n, bound, &h->list))
        return cg_select_topk_(&h->picker, k); /* too many: all of the largest are above it */
    if (h->picker.kernels->absmax_bits(h->list.value, h->list.count) >= CG_INF_BITS_) return CG_E_NONFINITE;
    if (h->list.count > k) cg_list_keep_topk_(&h->picker, k, bound);
    return CG_OK;
}
static cg_status cg_sketch_heavy_above_(const cg_sketch *s, double tau, size_t k, uint64_t *index, float *value,
    size_t *count, void *scratch, size_t scratch_bytes) {
    const double norm = cg_sketch_norm_(s);
    cg_heavy_search_ h;
    cg_status status;
    *count = 0;
    k = cg_min_(k, s->desc.n);
    if (!k || norm == 0.0) return CG_OK;
    if (!cg_is_finite64_(norm)) return CG_E_NONFINITE;
    status = cg_heavy_search_open_(&h, s, k, scratch, scratch_bytes);
    if (status == CG_OK) status = cg_heavy_search_above_(&h, cg_times64_(tau, norm), k);
    if (status != CG_OK) return status;
    cg_heavy_search_output_(&h, index, value);
    *count = h.list.count;
    return CG_OK;
}
CG_API_ cg_status cg_sketch_heavy_above(const cg_sketch *sketch, double tau, size_t k, uint64_t *index, float *value,
    size_t *count, void *scratch, size_t scratch_bytes) {
    cg_fenv_ env;
    cg_status s;
    if (count) *count = 0;
    if (!sketch || !count || !(tau > 0.0 && tau <= 1e300) || (k && sketch->desc.n && (!index || !value)))
        return CG_E_ARG;
    env = cg_fenv_enter_();
    s = cg_sketch_heavy_above_(sketch, tau, k, index, value, count, scratch, scratch_bytes);
    cg_fenv_leave_(env);
    return s;
}
/* The rest of k: of the coordinates that are not in the list, numbered in their order as a circle, one of every
   stretch of about equal length. The circle begins anywhere, so all have the same chance, though stretches differ
   by one. */
static uint64_t cg_heavymix_sample_(uint64_t key, uint64_t j, uint64_t others, uint64_t more) {
    const uint64_t begin = j * (others / more) + j * (others % more) / more,
                   end = (j + 1) * (others / more) + (j + 1) * (others % more) / more;
    return cg_mix64_(key) % others + begin + cg_mix64_(key + (j + 1) * CG_GOLDEN_) % (end - begin);
}
static void cg_heavymix_fill_(const cg_sketch *s, size_t heavy, size_t k, uint64_t key, uint64_t *index, float *value) {
    const uint64_t others = s->desc.n - heavy, more = k - heavy;
    uint64_t inside = 0; /* stretches whose choice is not beyond the end */
    size_t h = heavy, at = k;
    while (inside < more && cg_heavymix_sample_(key, inside, others, more) < others) inside++;
    for (uint64_t i = 0; i < more; i++) { /* from behind, into the same arrays */
        const uint64_t which =
            cg_heavymix_sample_(key, i < inside ? inside - 1 - i : more - 1 - (i - inside), others, more) % others;
        /* h heavy ones at most are below it, if the last of them is above */
        while (h && index[h - 1] >= which + h) {
            h--;
            at--;
            index[at] = index[h];
            value[at] = value[h];
        }
        at--;
        index[at] = which + h;
        value[at] = cg_sketch_estimate_(s, which + h);
    }
}
CG_API_ cg_status cg_sketch_heavymix(const cg_sketch *sketch, size_t k, const cg_tag *tag, uint64_t *index,
    float *value, void *scratch, size_t scratch_bytes) {
    const cg_tag none = CG_ZERO;
    size_t count = 0;
    cg_fenv_ env;
    cg_status s;
    if (!sketch || (k && sketch->desc.n && (!index || !value))) return CG_E_ARG;
    k = cg_min_(k, sketch->desc.n);
    if (!k) return CG_OK;
    env = cg_fenv_enter_();
    s = cg_sketch_heavy_above_(sketch, 1.0 / cg_sqrt_((double)k), k, index, value, &count, scratch, scratch_bytes);
    if (s == CG_OK && count < k) cg_heavymix_fill_(sketch, count, k, cg_shared_key_(tag ? tag : &none), index, value);
    cg_fenv_leave_(env);
    return s;
}

/* src/sketch/packets.h */
/* ---- >>packets ---- */

static uint64_t cg_sketch_fingerprint_(const cg_sketch *s) {
    uint64_t h = cg_mix64_(s->desc.seed + CG_GOLDEN_);
    h = cg_mix64_(h ^ (uint64_t)s->desc.rows);
    h = cg_mix64_(h ^ (uint64_t)s->desc.cols);
    h = cg_mix64_(h ^ (uint64_t)s->desc.n);
    return cg_mix64_(h ^ (uint64_t)s->desc.groups);
}
CG_API_ size_t cg_sketch_bound(const cg_sketch *sketch, const cg_op *op) {
    return sketch && op ? cg_bound(op, sketch->count) : 0;
}
CG_API_ size_t cg_sketch_scratch(const cg_sketch *sketch, const cg_op *op) {
    return sketch && op ? cg_scratch(op, sketch->count) : 0;
}
CG_API_ cg_status cg_sketch_pack(const cg_sketch *sketch, const cg_op *op, const cg_tag *tag, void *packet, size_t cap,
    size_t *len, void *scratch, size_t scratch_bytes) {
    cg_tag own = CG_ZERO;
    if (len) *len = 0;
    if (!sketch) return CG_E_ARG;
    if (tag) own = *tag;
    own.seed = cg_sketch_fingerprint_(sketch);
    return cg_compress(op, &own, sketch->cells, sketch->count, packet, cap, len, scratch, scratch_bytes);
}
CG_API_ cg_status cg_sketch_unpack(cg_sketch *sketch, const void *packet, size_t len, float alpha, float beta) {
    cg_info info;
    cg_status s;
    if (!sketch) return CG_E_ARG;
    s = cg_inspect(packet, len, &info);
    if (s == CG_OK && (info.n != sketch->count || info.tag.seed != cg_sketch_fingerprint_(sketch))) {
        s = cg_packet_check_(NULL, packet, len, (size_t)info.n); /* of another sketch, if it is intact */
        return s == CG_OK ? CG_E_MISMATCH : s;
    }
    return s == CG_OK ? cg_decode(NULL, packet, len, alpha, beta, sketch->cells, sketch->count) : s;
}
CG_API_ cg_status cg_sketch_save(const cg_sketch *sketch, void *buf, size_t cap, size_t *len) {
    const cg_op dense = cg_dense();
    return cg_sketch_pack(sketch, &dense, NULL, buf, cap, len, NULL, 0);
}
CG_API_ cg_status cg_sketch_load(cg_sketch *sketch, const void *buf, size_t len) {
    return cg_sketch_unpack(sketch, buf, len, 1.0f, 0.0f);
}

/* src/sketch/protocols.h */
/* ---- >>exchange ---- */

/* The tag says which sketch it is: other descriptions on other ranks are a mismatch in the first round. */
static cg_exchange_desc cg_sketch_step_desc_(const cg_sketch *s, const cg_exchange_desc *desc, uint64_t more) {
    cg_exchange_desc d = *desc;
    d.tag.seed = cg_mix64_(d.tag.seed ^ cg_mix64_(cg_sketch_fingerprint_(s) ^ more));
    d.model = NULL; /* cells are no gradient */
    return d;
}
CG_API_ size_t cg_sketch_exchange_memory(
    const cg_sketch *sketch, const cg_exchange_desc *desc, const cg_transport *transport) {
    cg_exchange_desc d;
    if (!sketch || !desc) return 0;
    d = cg_sketch_step_desc_(sketch, desc, 0);
    return cg_exchange_memory(&d, transport, sketch->count);
}
CG_API_ cg_status cg_sketch_exchange(cg_sketch *sketch, const cg_exchange_desc *desc, const cg_transport *transport,
    void *mem, size_t bytes, cg_report *report) {
    cg_exchange_desc d;
    if (!sketch || !desc) return CG_E_ARG;
    d = cg_sketch_step_desc_(sketch, desc, 0);
    return cg_exchange(&d, transport, sketch->cells, sketch->count, mem, bytes, report);
}

static void cg_report_add_(cg_report *all, const cg_report *one) {
    const uint64_t out = all->bytes_out, in = all->bytes_in;
    const uint32_t rounds = all->rounds;
    *all = *one;
    all->bytes_out += out;
    all->bytes_in += in;
    all->rounds += rounds;
    all->used = NULL; /* of cells: of no use to anybody */
    all->used_len = 0;
}
static cg_status cg_check_finite_(const float *x, size_t n) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    for (size_t i = 0; i < n; i += CG_BLOCK_)
        if (kernels->absmax_bits(cg_at_(x, i), cg_min_(CG_BLOCK_, n - i)) >= CG_INF_BITS_) return CG_E_NONFINITE;
    return CG_OK;
}
#define CG_CLAMP_LIMIT_ 7.922816251426434e28f /* 2^96: sums of 2^30 of them are still floats */
/* what has grown beyond that is cut off, or no later sum would be finite */
static void cg_clamp_all_(float *x, size_t n) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    uint32_t top = 0;
    for (size_t i = 0; i < n; i += CG_BLOCK_)
        top = cg_max32_(top, kernels->absmax_bits(x + i, cg_min_(CG_BLOCK_, n - i)));
    for (size_t i = 0; top > cg_as_bits_(CG_CLAMP_LIMIT_) && i < n; i++)
        x[i] = x[i] > CG_CLAMP_LIMIT_ ? CG_CLAMP_LIMIT_ : x[i] < -CG_CLAMP_LIMIT_ ? -CG_CLAMP_LIMIT_ : x[i];
}
/* A sparse vector in place of y, or to the model. */
static void cg_sparse_apply_(
    const cg_exchange_desc *d, const uint64_t *index, const float *value, size_t count, float *y, size_t n) {
    if (n && !d->model) memset(y, 0, 4 * n);
    for (size_t i = 0; i < count; i++) {
        const size_t at = (size_t)index[i];
        if (d->model) cg_model_step_at_(d, at, value[i]);
        else cg_store_(y, at, value[i]);
    }
}
static cg_exchange_desc cg_f32_mean_step_desc_(const cg_exchange_desc *desc) { /* f32, as a mean */
    cg_exchange_desc d = CG_ZERO;
    d.route = desc->route;
    d.tag = desc->tag;
    d.leader = desc->leader;
    return d;
}

static size_t cg_sketched_candidates_(const cg_sketched_desc *d) { /* candidates */
    const uint64_t many = cg_mul_sat_(d->k, (uint64_t)(d->candidates ? d->candidates : 4));
    return many < d->sketch.n ? (size_t)many : d->sketch.n;
}
static cg_status cg_sketched_check_(const cg_sketched_desc *d) {
    if (!d || d->candidates < 0 || !(d->momentum >= 0.0f && d->momentum < 1.0f) || !d->k || d->sketch.n > SIZE_MAX / 64)
        return CG_E_ARG;
    return cg_sketch_memory(&d->sketch) ? CG_OK : CG_E_ARG;
}
static uint64_t cg_sketched_plan_(cg_sketched *sgd, const cg_sketched_desc *d, uint8_t *base, uint8_t **cells) {
    const uint64_t vector = cg_mul_sat_(4, d->sketch.n);
    cg_arena_ c;
    c.base = base;
    c.bytes = 0;
    sgd->error = (float *)(void *)cg_arena_take_(&c, vector);
    sgd->velocity = d->momentum != 0.0f ? (float *)(void *)cg_arena_take_(&c, vector) : NULL;
    *cells = cg_arena_take_(&c, cg_sketch_memory(&d->sketch));
    return c.bytes;
}
CG_API_ size_t cg_sketched_memory(const cg_sketched_desc *desc) {
    cg_sketched sgd;
    uint8_t *cells;
    return cg_sketched_check_(desc) == CG_OK
        ? cg_size_or_zero_(cg_add_sat_(cg_sketched_plan_(&sgd, desc, NULL, &cells), 64))
        : 0;
}
CG_API_ cg_status cg_sketched_init(cg_sketched *sgd, const cg_sketched_desc *desc, void *mem, size_t bytes) {
    const size_t skip = mem ? (64 - ((uintptr_t)mem & 63)) % 64 : 0;
    uint8_t *cells;
    cg_status s = sgd ? cg_sketched_check_(desc) : CG_E_ARG;
    if (s != CG_OK) return s;
    memset(sgd, 0, sizeof *sgd);
    if (!mem || bytes < skip || bytes - skip < cg_sketched_plan_(sgd, desc, NULL, &cells)) return CG_E_MEMORY;
    cg_sketched_plan_(sgd, desc, (uint8_t *)mem + skip, &cells);
    sgd->desc = *desc;
    if (desc->sketch.n) memset(sgd->error, 0, 4 * desc->sketch.n);
    if (sgd->velocity) memset(sgd->velocity, 0, 4 * desc->sketch.n);
    return cg_sketch_init(&sgd->sketch, &desc->sketch, cells, cg_sketch_memory(&desc->sketch));
}
typedef struct cg_sketched_buffers_ {
    uint64_t *index;
    float *value;
    uint8_t *scratch, *exchange;
    size_t scratch_bytes, exchange_bytes;
} cg_sketched_buffers_;
static uint64_t cg_sketched_buffers_plan_(const cg_sketch *s, size_t most, const cg_exchange_desc *desc,
    const cg_transport *t, int twice, uint8_t *base, cg_sketched_buffers_ *r) {
    const cg_exchange_desc road = cg_f32_mean_step_desc_(desc);
    const uint64_t first = cg_exchange_memory(&road, t, s->count),
                   second = twice ? cg_exchange_memory(&road, t, most) : 0;
    cg_arena_ c;
    c.base = base;
    c.bytes = 0;
    if (!first || (twice && !second)) return 0;
    r->index = (uint64_t *)(void *)cg_arena_take_(&c, cg_mul_sat_(8, most));
    r->value = (float *)(void *)cg_arena_take_(&c, cg_mul_sat_(4, most));
    r->scratch_bytes = cg_sketch_heavy_scratch(s, most);
    r->scratch = cg_arena_take_(&c, r->scratch_bytes);
    r->exchange_bytes = cg_size_or_zero_(first > second ? first : second);
    r->exchange = cg_arena_take_(&c, r->exchange_bytes);
    return c.bytes;
}
CG_API_ size_t cg_sketched_exchange_memory(
    const cg_sketched *sgd, const cg_exchange_desc *desc, const cg_transport *transport) {
    cg_sketched_buffers_ r;
    uint64_t need;
    if (!sgd || !desc || !transport) return 0;
    need = cg_sketched_buffers_plan_(&sgd->sketch, cg_sketched_candidates_(&sgd->desc), desc, transport, 1, NULL, &r);
    return need ? cg_size_or_zero_(cg_add_sat_(need, 64)) : 0;
}
/* Of `count` the k with the largest values (of equals the first), in their order. */
static size_t cg_sketched_topk_(uint64_t *index, float *value, size_t count, size_t k, float *work) {
    size_t left = k, kept = 0;
    uint32_t key;
    if (count <= k) return count;
    memcpy(work, value, 4 * count);
    key = cg_kth_(work, count, &left, 0, CG_ABS_MASK_, cg_both_signs_);
    for (size_t i = 0; i < count; i++) {
        const uint32_t m = cg_as_bits_(value[i]) & CG_ABS_MASK_;
        if (m < key || (m == key && !left)) continue;
        if (m == key) left--;
        index[kept] = index[i];
        value[kept++] = value[i];
    }
    return kept;
}
static cg_status cg_sketched_exchange_(cg_sketched *sgd, const cg_exchange_desc *desc, const cg_transport *t,
    float *grad, void *mem, size_t bytes, cg_report *report) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    const cg_sketched_desc *d = &sgd->desc;
    const size_t n = d->sketch.n, most = cg_sketched_candidates_(d), skip = mem ? (64 - ((uintptr_t)mem & 63)) % 64 : 0;
    const uint64_t more = cg_mix64_(d->k) ^ cg_mix64_((uint64_t)most + 1) ^ (uint64_t)(d->mix != 0) ^
        cg_mix64_(d->sketch.seed);
    cg_exchange_desc road = cg_f32_mean_step_desc_(desc);
    cg_sketched_buffers_ r;
    cg_report one;
    size_t kept;
    uint64_t need = cg_sketched_buffers_plan_(&sgd->sketch, most, desc, t, 1, NULL, &r);
    cg_status s = (!grad && n) || !cg_rate_ok_(desc) ? CG_E_ARG : cg_check_finite_(grad, n);
    sgd->sketch.desc.seed = d->sketch.seed;
    road = cg_sketch_step_desc_(&sgd->sketch, &road, more);
    if (s == CG_OK && need && (!mem || bytes < skip || bytes - skip < need)) s = CG_E_MEMORY;
    if (s != CG_OK || !need)
        return cg_exchange_or_fail_(&road, t, sgd->sketch.cells, sgd->sketch.count, mem, bytes, s, report);
    cg_sketched_buffers_plan_(&sgd->sketch, most, desc, t, 1, (uint8_t *)mem + skip, &r);
    if (n && sgd->velocity)
        kernels->axpby_fading(grad, n, 1.0f, d->momentum, sgd->velocity, CG_AXPBY_NO_SQUARES_, NULL);
    if (n && sgd->velocity) cg_clamp_all_(sgd->velocity, n);
    if (n) kernels->axpby(sgd->velocity ? sgd->velocity : grad, n, 1.0f, 1.0f, sgd->error, 0);
    if (n) cg_clamp_all_(sgd->error, n);
    /* who collides with whom changes with every step */
    sgd->sketch.desc.seed = cg_mix64_(d->sketch.seed ^ cg_mix64_(desc->tag.step + 1));
    cg_sketch_clear(&sgd->sketch);
    s = cg_sketch_add(&sgd->sketch, sgd->error, n, 1.0f);
    s = cg_exchange_or_fail_(&road, t, sgd->sketch.cells, sgd->sketch.count, r.exchange, r.exchange_bytes, s, &one);
    cg_report_add_(report, &one);
    if (s != CG_OK) return s;
    s = d->mix ? cg_sketch_heavymix(&sgd->sketch, most, &desc->tag, r.index, r.value, r.scratch, r.scratch_bytes)
               : cg_sketch_heavy(&sgd->sketch, most, r.index, r.value, r.scratch, r.scratch_bytes);
    for (size_t i = 0; i < most && s == CG_OK; i++) r.value[i] = cg_load_(sgd->error, (size_t)r.index[i]);
    road.tag.seed = cg_mix64_(road.tag.seed); /* the second round */
    s = cg_exchange_or_fail_(&road, t, r.value, most, r.exchange, r.exchange_bytes, s, &one);
    cg_report_add_(report, &one);
    if (s != CG_OK) return s;
    kept = cg_sketched_topk_(r.index, r.value, most, d->k, (float *)(void *)r.scratch);
    cg_sparse_apply_(desc, r.index, r.value, kept, grad, n);
    for (size_t i = 0; i < kept; i++) {
        cg_store_(sgd->error, (size_t)r.index[i], 0.0f);
        if (sgd->velocity) cg_store_(sgd->velocity, (size_t)r.index[i], 0.0f);
    }
    return CG_OK;
}
CG_API_ cg_status cg_sketched_exchange(cg_sketched *sgd, const cg_exchange_desc *desc, const cg_transport *transport,
    float *grad, void *mem, size_t bytes, cg_report *report) {
    cg_report own;
    cg_fenv_ env;
    cg_status s;
    if (!report) report = &own;
    memset(report, 0, sizeof *report);
    if (!sgd || !desc || !transport) return CG_E_ARG;
    env = cg_fenv_enter_();
    s = cg_sketched_exchange_(sgd, desc, transport, grad, mem, bytes, report);
    cg_fenv_leave_(env);
    return s;
}

static cg_status cg_fetched_check_(const cg_fetched_desc *d) {
    if (!d || !(d->momentum >= 0.0f && d->momentum < 1.0f) || !cg_is_finite_(d->rate) || !d->k) return CG_E_ARG;
    if (d->sketch.groups) return CG_E_UNSUPPORTED; /* see cg_sketch_zero */
    return cg_sketch_memory(&d->sketch) && cg_sketch_memory(&d->sketch) < SIZE_MAX / 4 ? CG_OK : CG_E_ARG;
}
CG_API_ size_t cg_fetched_memory(const cg_fetched_desc *desc) {
    return cg_fetched_check_(desc) == CG_OK ? 3 * cg_sketch_memory(&desc->sketch) : 0;
}
CG_API_ cg_status cg_fetched_init(cg_fetched *sgd, const cg_fetched_desc *desc, void *mem, size_t bytes) {
    uint8_t *p = (uint8_t *)mem;
    size_t each;
    cg_status s = sgd ? cg_fetched_check_(desc) : CG_E_ARG;
    if (s != CG_OK) return s;
    each = cg_sketch_memory(&desc->sketch);
    if (!mem || bytes < 3 * each) return CG_E_MEMORY;
    sgd->desc = *desc;
    s = cg_sketch_init(&sgd->momentum, &desc->sketch, p, each);
    if (s == CG_OK) s = cg_sketch_init(&sgd->error, &desc->sketch, p + each, each);
    if (s == CG_OK) s = cg_sketch_init(&sgd->fresh, &desc->sketch, p + 2 * each, each);
    return s;
}
CG_API_ size_t cg_fetched_exchange_memory(
    const cg_fetched *sgd, const cg_exchange_desc *desc, const cg_transport *transport) {
    cg_sketched_buffers_ r;
    uint64_t need;
    if (!sgd || !desc || !transport) return 0;
    need = cg_sketched_buffers_plan_(
        &sgd->fresh, cg_min_(sgd->desc.k, sgd->desc.sketch.n), desc, transport, 0, NULL, &r);
    return need ? cg_size_or_zero_(cg_add_sat_(need, 64)) : 0;
}
static cg_status cg_fetched_exchange_(cg_fetched *sgd, const cg_exchange_desc *desc, const cg_transport *t, float *grad,
    void *mem, size_t bytes, cg_report *report) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    const cg_fetched_desc *d = &sgd->desc;
    const size_t n = d->sketch.n, k = cg_min_(d->k, n), skip = mem ? (64 - ((uintptr_t)mem & 63)) % 64 : 0,
                 cells = sgd->fresh.count;
    const float rate = d->rate != 0.0f ? d->rate : 1.0f;
    float chunk[CG_CHUNK_];
    double lanes[16] = { 0.0 }; /* not asked for */
    cg_exchange_desc road = cg_f32_mean_step_desc_(desc);
    cg_sketched_buffers_ r;
    cg_report one;
    uint64_t need = cg_sketched_buffers_plan_(&sgd->fresh, k, desc, t, 0, NULL, &r);
    cg_status s = (!grad && n) || !cg_rate_ok_(desc) ? CG_E_ARG : cg_check_finite_(grad, n);
    road = cg_sketch_step_desc_(
        &sgd->fresh, &road, cg_mix64_(d->k) ^ cg_as_bits_(d->momentum) ^ (uint64_t)cg_as_bits_(rate) << 32);
    if (s == CG_OK && need && (!mem || bytes < skip || bytes - skip < need)) s = CG_E_MEMORY;
    if (s != CG_OK || !need) return cg_exchange_or_fail_(&road, t, sgd->fresh.cells, cells, mem, bytes, s, report);
    cg_sketched_buffers_plan_(&sgd->fresh, k, desc, t, 0, (uint8_t *)mem + skip, &r);
    cg_sketch_clear(&sgd->fresh);
    s = cg_sketch_add(&sgd->fresh, grad, n, 1.0f);
    s = cg_exchange_or_fail_(&road, t, sgd->fresh.cells, cells, r.exchange, r.exchange_bytes, s, &one);
    cg_report_add_(report, &one);
    if (s != CG_OK) return s;
    /* the new momentum, not yet in its place */
    kernels->axpby_fading(sgd->momentum.cells, cells, d->momentum, 1.0f, sgd->fresh.cells, CG_AXPBY_FADE_X_, lanes);
    for (size_t i = 0; i < cells && s == CG_OK; i += CG_CHUNK_) { /* and the new error is finite, too */
        const size_t many = cg_min_(CG_CHUNK_, cells - i);
        memcpy(chunk, sgd->error.cells + i, 4 * many);
        kernels->axpby(sgd->fresh.cells + i, many, rate, 1.0f, chunk, 0);
        if (kernels->absmax_bits(chunk, many) >= CG_INF_BITS_) s = CG_E_NONFINITE;
    }
    if (s != CG_OK) {
        report->rank = t->rank;
        report->why = "the sums of sketches have become too large for floats";
        return s;
    }
    memcpy(sgd->momentum.cells, sgd->fresh.cells, 4 * cells);
    kernels->axpby(sgd->momentum.cells, cells, rate, 1.0f, sgd->error.cells, 0);
    s = cg_sketch_heavy(&sgd->error, k, r.index, r.value, r.scratch, r.scratch_bytes);
    if (s == CG_OK) s = cg_sketch_zero(&sgd->error, r.index, k);
    if (s == CG_OK) s = cg_sketch_zero(&sgd->momentum, r.index, k);
    if (s == CG_OK) cg_sparse_apply_(desc, r.index, r.value, k, grad, n);
    return s;
}
CG_API_ cg_status cg_fetched_exchange(cg_fetched *sgd, const cg_exchange_desc *desc, const cg_transport *transport,
    float *grad, void *mem, size_t bytes, cg_report *report) {
    cg_report own;
    cg_fenv_ env;
    cg_status s;
    if (!report) report = &own;
    memset(report, 0, sizeof *report);
    if (!sgd || !desc || !transport) return CG_E_ARG;
    env = cg_fenv_enter_();
    s = cg_fetched_exchange_(sgd, desc, transport, grad, mem, bytes, report);
    cg_fenv_leave_(env);
    return s;
}

/* src/core/base/fp_end.h */
/* fp_end: gives the floating-point flags back to the includer

   Offers   the end of what fp_begin began
   Needs    fp_begin
   Touches  the compiler's floating-point state */
#if defined(__clang__)
#  pragma STDC FP_CONTRACT DEFAULT
#  if defined(__x86_64__) || defined(__i386__)
#    pragma float_control(pop)
#  endif
#elif defined(__GNUC__)
#  pragma GCC pop_options
#endif

/* src/core/base/end.h */
/* end: closes the implementation that begin.h of the same header opened

   Offers   the #endif
   Needs    begin
   Touches  nothing */
#endif /* COMPGRAD_IMPLEMENTATION */
