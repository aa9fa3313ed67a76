/* compgrad_sketch.h: made of the files in src/ by "make headers"; change those, not this one. */

/* src/sketch/manual.h */
/* compgrad_sketch.h - a linear count sketch, heavy hitters, Sketched-SGD and FetchSGD.   part of compgrad, MIT licence

       #define COMPGRAD_IMPLEMENTATION                  // in exactly one .c or .cpp file
       #include "compgrad_sketch.h"                     // includes compgrad_exchange.h and compgrad.h

       cg_sketch_desc d = CG_ZERO;
       d.rows = 5; d.cols = n / 50; d.n = n; d.seed = 42;       // 10 times smaller than the gradient
       cg_sketch s;
       void *mem = malloc(cg_sketch_memory(&d));
       cg_status status = cg_sketch_init(&s, &d, mem, cg_sketch_memory(&d));

       status = cg_sketch_add(&s, grad, n, 1.0f);       // each worker sketches its own gradient;
       status = cg_sketch_merge(&s, &other);            // the sum of two sketches is the sketch of the sum
       status = cg_sketch_heavy(&s, k, index, value, scratch, cg_sketch_heavy_scratch(&s, k));  // its k largest values

   A whole training step of many ranks is one call; sgd and fetch live in memory that you give to their init functions:

       status = cg_sketched_exchange(&sgd, &x, &transport, grad, mem, bytes, &report);     // Sketched-SGD, ARC-Top-k
       status = cg_fetched_exchange(&fetch, &x, &transport, grad, mem, bytes, &report);    // FetchSGD

   WORDS
     coordinate     an element of the vector x, 0 to n-1
     cell           a float of the sketch; there are rows * cols of them, and more with groups
     line           256 consecutive coordinates, which are hashed together
     slot           256 consecutive cells of a row; a line is added to one slot in every row
     heavy hitter   a coordinate whose estimate is large compared with |x|
     group          256, 65536, ... consecutive coordinates, for a search that need not estimate every coordinate

   ESTIMATES. In each row r, coordinate i is added to the cell h_r(i) with the sign s_r(i). Its estimate is the median
   over the rows of s_r(i) times that cell; with an even number of rows, the mean of the two in the middle. With
   cols >= 3/eps^2 and rows >= 8 ln(1/delta) + 1, an estimate is wrong by more than eps |x| with probability at most
   delta (pairwise independence, Charikar 02).

   HASHING. Whole lines move, so that adding a line to a row is one addition of two short vectors. For each row and line
   a 64-bit hash of the seed gives the slot, eight bits that are XORed with the position in the line, and 256 signs.
   Hence in one row
     two coordinates of one line never collide;
     two coordinates of different lines collide with probability 1/cols, whatever their positions: their lines share one
     of cols/256 slots, and in it the two share one of 256 cells;
     each sign is + or - with equal probability, independent of the other signs and of the cells as far as the hash is
     random; cg_sketch_norm relies on this for any four signs.
   cols is rounded up to a multiple of 256; cg_sketch.desc has the rounded value. Since 256 coordinates collide
   together, estimates of a vector whose large values are adjacent are as good on average as with one hash per
   coordinate, but vary more from seed to seed.

   GROUPS. With desc.groups > 0 the heavy hitters of a vector of billions of coordinates are found without estimating
   each of them. For every group of 256, 65536, ... coordinates a sum with random signs and random weights is sketched,
   in `groups` further cells per row and level. A random sum reflects the energy of its group, where a plain sum could
   cancel. The search looks only into groups with enough energy. cg_sketch_heavy searches this way if that is
   cheaper; when fewer than k coordinates are heavy enough it estimates all of them. For a vector that is too long for
   that, call cg_sketch_heavy_above. Both searches find the same coordinates and values as long as the values are above
   about 4 |x| / sqrt(min(cols, groups)).

   MEMORY. You own every buffer, with any alignment; nothing allocates. A sketch needs 4 bytes per cell.

   ERRORS. Arguments are checked before a cell changes: NaN and Inf in x (CG_E_NONFINITE), an index beyond n (CG_E_ARG),
   a sketch or packet of another description (CG_E_MISMATCH). A sum in a cell may become too large for a float: then
   packing the cells returns CG_E_NONFINITE, and so does a search for heavy hitters that meets an estimate or a norm
   that is not finite.

   RESULTS AND THREADS. Cells are f32 sums, added line by line in the given order. A fixed order gives the same bits on
   every machine and at any number of threads; another order of merging may change the last bits, except for small
   integers, whose sums are exact. Every function is re-entrant; use one sketch from one thread at a time. With
   COMPGRAD_OPENMP, adding and estimating use all threads.

   SAVING. cg_sketch_save and cg_sketch_load keep a sketch as an exact packet. cg_sketched and cg_fetched have no
   functions of their own for this: save the arrays error and velocity of a cg_sketched (n floats each), and the
   sketches momentum and error of a cg_fetched.

   FORMAT. A sketch travels as an ordinary packet (compgrad.h) whose vector is its cells: rows * cols cells, row by row,
   then for each level rows * groups cells. The seed in the tag of the packet is a hash of seed, rows, cols, n and
   groups. */

/* src/sketch/api.h */
/* api: the public declarations of sketches and of the protocols with them

   Offers   cg_sketch, cg_sketched, cg_fetched, and the calls on them
   Needs    compgrad_exchange.h
   Touches  nothing */
#include "compgrad_exchange.h" /* outside the guard: its implementation has to come before the one below */

#ifndef COMPGRAD_SKETCH_H
#  define COMPGRAD_SKETCH_H

/* ---- one sketch ---- */

typedef struct cg_sketch_desc { /* equal on all ranks; only sketches of equal descriptions can be added */
    int rows;                   /* 1 to 15 */
    size_t cols;                /* cells in a row, at least 1; rounded up to a multiple of 256 */
    size_t n;                   /* coordinates, up to 2^40 */
    uint64_t seed;              /* of the hash */
    size_t groups;              /* cells per row and level for groups of coordinates; 0: no groups */
    uint64_t reserved[2];       /* must be 0 */
} cg_sketch_desc;

typedef struct cg_sketch { /* you allocate it */
    cg_sketch_desc desc;   /* with cols rounded up */
    float *cells;          /* rows * cols, then levels * rows * groups; inside mem, and you may add and scale them */
    size_t count;          /* number of all cells */
    int levels;            /* of groups; 0: no groups */
} cg_sketch;

/* Bytes that cg_sketch_init needs; 0: the description is refused, or they overflow. */
CG_API_ size_t cg_sketch_memory(const cg_sketch_desc *desc);
/* Makes an empty sketch in mem, which is yours, may have any alignment and must stay in place. After an error *sketch
   is as it was. */
CG_API_ CG_CHECKED_ cg_status cg_sketch_init(cg_sketch *sketch, const cg_sketch_desc *desc, void *mem, size_t bytes);
CG_API_ void cg_sketch_clear(cg_sketch *sketch); /* all cells := 0 */
/* Adds weight * x. n must be desc.n (CG_E_MISMATCH). After an error no cell has changed. */
CG_API_ CG_CHECKED_ cg_status cg_sketch_add(cg_sketch *sketch, const float *x, size_t n, float weight);
/* Adds weight * value[j] to coordinate index[j], for j below count; indices in any order, and repeated if you like.
   After an error no cell has changed. */
CG_API_ CG_CHECKED_ cg_status cg_sketch_add_list(
    cg_sketch *sketch, const uint64_t *index, const float *value, size_t count, float weight);
/* to += from. CG_E_MISMATCH: they differ in n, rows, cols, groups or seed. CG_E_ARG: they are one sketch. */
CG_API_ CG_CHECKED_ cg_status cg_sketch_merge(cg_sketch *to, const cg_sketch *from);
/* Multiplies all cells by a finite number. */
CG_API_ CG_CHECKED_ cg_status cg_sketch_scale(cg_sketch *sketch, float by);
/* Sets the cells that these coordinates use to 0, in every row (FetchSGD). CG_E_UNSUPPORTED: the sketch has groups. */
CG_API_ CG_CHECKED_ cg_status cg_sketch_zero(cg_sketch *sketch, const uint64_t *index, size_t count);

/* The estimate of coordinate i; 0 if i is not below n. */
CG_API_ float cg_sketch_estimate(const cg_sketch *sketch, uint64_t i);
/* y[0..n) := the estimates of all coordinates; n must be desc.n (CG_E_MISMATCH). */
CG_API_ CG_CHECKED_ cg_status cg_sketch_estimate_all(const cg_sketch *sketch, float *y, size_t n);
/* An estimate of |x|: the square root of the median over rows of the sum of squared cells. */
CG_API_ double cg_sketch_norm(const cg_sketch *sketch);

/* ---- heavy hitters: index and value are yours, with room for min(k, n) each; results ascend by index ---- */

/* Bytes of scratch for the three functions below. */
CG_API_ size_t cg_sketch_heavy_scratch(const cg_sketch *sketch, size_t k);
/* The min(k, n) coordinates with the largest estimates in magnitude; of equal ones those with the lowest index. */
CG_API_ CG_CHECKED_ cg_status cg_sketch_heavy(
    const cg_sketch *sketch, size_t k, uint64_t *index, float *value, void *scratch, size_t scratch_bytes);
/* All coordinates with |estimate| >= tau * cg_sketch_norm, tau > 0, but at most the k largest of them; *count tells how
   many. None if the norm is 0. */
CG_API_ CG_CHECKED_ cg_status cg_sketch_heavy_above(const cg_sketch *sketch, double tau, size_t k, uint64_t *index,
    float *value, size_t *count, void *scratch, size_t scratch_bytes);
/* HEAVYMIX: the coordinates with |estimate| >= norm / sqrt(k), and random other coordinates until there are min(k, n).
   The random ones depend only on the shared key of tag (seed, step, tensor); NULL: a tag of zeros. */
CG_API_ CG_CHECKED_ cg_status cg_sketch_heavymix(const cg_sketch *sketch, size_t k, const cg_tag *tag, uint64_t *index,
    float *value, void *scratch, size_t scratch_bytes);

/* ---- sketches as packets ---- */

/* cg_bound and cg_scratch of the operator for all `count` cells. */
CG_API_ size_t cg_sketch_bound(const cg_sketch *sketch, const cg_op *op);
CG_API_ size_t cg_sketch_scratch(const cg_sketch *sketch, const cg_op *op);
/* Compresses the cells with any operator (dense is exact), as cg_compress. The seed of the tag is replaced by a hash of
   the description, by which cg_sketch_unpack recognises the sketch. */
CG_API_ CG_CHECKED_ cg_status cg_sketch_pack(const cg_sketch *sketch, const cg_op *op, const cg_tag *tag, void *packet,
    size_t cap, size_t *len, void *scratch, size_t scratch_bytes);
/* cells = beta*cells + alpha*D(packet). The packet may be any bytes; after an error the cells are as they were.
   CG_E_MISMATCH: it is of a sketch with another n, rows, cols, groups or seed. */
CG_API_ CG_CHECKED_ cg_status cg_sketch_unpack(
    cg_sketch *sketch, const void *packet, size_t len, float alpha, float beta);
/* The same exactly and without scratch: an f32 packet. cap must be at least cg_sketch_bound() of cg_dense(). */
CG_API_ CG_CHECKED_ cg_status cg_sketch_save(const cg_sketch *sketch, void *buf, size_t cap, size_t *len);
CG_API_ CG_CHECKED_ cg_status cg_sketch_load(cg_sketch *sketch, const void *buf, size_t len);
/* Replaces the cells by their mean over ranks (or another desc->fold), as cg_exchange with the cells as x: desc->op
   compresses them, desc->route moves them, and desc->model is ignored (desc->into, if given, receives the result).
   Different sketches on two ranks are CG_E_MISMATCH. After an error the cells are as they were. */
CG_API_ size_t cg_sketch_exchange_memory(
    const cg_sketch *sketch, const cg_exchange_desc *desc, const cg_transport *transport);
CG_API_ CG_CHECKED_ cg_status cg_sketch_exchange(cg_sketch *sketch, const cg_exchange_desc *desc,
    const cg_transport *transport, void *mem, size_t bytes, cg_report *report);

/* ---- Sketched-SGD (Ivkin 19), and indices agreed on by a sketch (ARC-Top-k) ----

   g is the gradient of this rank, u its momentum, e its residual. In every step
     u := momentum u + g; e := e + u;
     the ranks exchange the mean of the sketches of e, and all find the same candidates * k heaviest coordinates in it;
     they exchange the exact mean of e at these coordinates, and the k largest values are the result;
     there e and u become 0.
   Nothing is lost: e + the values taken from it = the sum of all u. The hash changes in every step (by tag.step), so
   that no coordinate stays hidden by the same collision. Values of e and u are limited to 2^96 in magnitude, and
   momentum u becomes 0 below 2^-100. */
typedef struct cg_sketched_desc {
    cg_sketch_desc sketch;
    size_t k;       /* coordinates in a result; at least 1 */
    int candidates; /* coordinates whose exact means are compared, divided by k; 0 = 4; 1: the sketch alone decides */
    float momentum; /* 0 <= momentum < 1 */
    int mix;        /* not 0: the candidates are chosen by HEAVYMIX */
    uint64_t reserved[4]; /* must be 0 */
} cg_sketched_desc;
typedef struct cg_sketched { /* you allocate it; its arrays are inside mem */
    cg_sketched_desc desc;
    cg_sketch sketch;
    float *error, *velocity; /* e and u, n floats each; velocity is NULL without momentum */
} cg_sketched;
/* Bytes that cg_sketched_init needs; 0: the description is refused, or they overflow. */
CG_API_ size_t cg_sketched_memory(const cg_sketched_desc *desc);
/* Makes *sgd with e and u zero. mem is yours, may have any alignment and must stay in place. */
CG_API_ CG_CHECKED_ cg_status cg_sketched_init(cg_sketched *sgd, const cg_sketched_desc *desc, void *mem, size_t bytes);
/* Bytes of mem for a step; 0: the route is refused, or they overflow. */
CG_API_ size_t cg_sketched_exchange_memory(
    const cg_sketched *sgd, const cg_exchange_desc *desc, const cg_transport *transport);
/* One step: grad[0..n) := the result, which is 0 except at k coordinates; with desc->model, model -= desc->rate *
   result instead. Of desc it reads tag, route, leader, model and rate; the route must take dense vectors, such as auto,
   linear or server. After an error grad and model are as they were. If this rank refused the gradient (NaN, memory,
   route) u and e are as they were; otherwise they contain it: do not give it again. */
CG_API_ CG_CHECKED_ cg_status cg_sketched_exchange(cg_sketched *sgd, const cg_exchange_desc *desc,
    const cg_transport *transport, float *grad, void *mem, size_t bytes, cg_report *report);

/* ---- FetchSGD (Rothchild 20): momentum and residual are sketches, equal on all ranks ----

   U and E are the sketches of momentum and residual, S(g) that of the gradient. In every step
     U := momentum U + mean of S(g) over ranks; E := E + rate U;
     the result is the k heaviest coordinates of E with their estimates;
     the cells that these coordinates use become 0 in E and U.
   The paper subtracts the sketch of the result instead, which diverges if the sketch is small. momentum U becomes 0
   below 2^-100. */
typedef struct cg_fetched_desc {
    cg_sketch_desc sketch; /* without groups */
    size_t k;              /* coordinates in a result; at least 1 */
    float momentum, rate;  /* rate: 0 = 1; with desc->model the step is scaled by both rates */
    uint64_t reserved[4];  /* must be 0 */
} cg_fetched_desc;
typedef struct cg_fetched { /* you allocate it; its cells are inside mem */
    cg_fetched_desc desc;
    cg_sketch momentum, error, fresh; /* U, E, and room for the sketch of a gradient */
} cg_fetched;
/* Bytes that cg_fetched_init needs; 0: the description is refused, or they overflow. */
CG_API_ size_t cg_fetched_memory(const cg_fetched_desc *desc);
/* Makes *sgd with U and E zero. mem is yours, may have any alignment and must stay in place. */
CG_API_ CG_CHECKED_ cg_status cg_fetched_init(cg_fetched *sgd, const cg_fetched_desc *desc, void *mem, size_t bytes);
/* Bytes of mem for a step; 0: the route is refused, or they overflow. */
CG_API_ size_t cg_fetched_exchange_memory(
    const cg_fetched *sgd, const cg_exchange_desc *desc, const cg_transport *transport);
/* One step, as cg_sketched_exchange. After an error grad, model, U and E are as they were. */
CG_API_ CG_CHECKED_ cg_status cg_fetched_exchange(cg_fetched *sgd, const cg_exchange_desc *desc,
    const cg_transport *transport, float *grad, void *mem, size_t bytes, cg_report *report);

#endif /* COMPGRAD_SKETCH_H */

/* src/sketch/begin.h */
/* begin: opens the implementation of sketches, for the one file that defines COMPGRAD_IMPLEMENTATION

   Offers   nothing
   Needs    compgrad_exchange.h, whose implementation comes first
   Touches  nothing */
#if defined(COMPGRAD_IMPLEMENTATION) && !defined(COMPGRAD_SKETCH_IMPLEMENTED_) && !defined(COMPGRAD_LINKED)
#  define COMPGRAD_SKETCH_IMPLEMENTED_

/* src/core/base/fp_begin.h */
/* fp_begin: strict floating point from here to fp_end, whatever flags the includer compiles with

   Offers   pragmas: no contraction, no reassociation, no fast math
   Needs    nothing
   Touches  the compiler's floating-point state, which fp_end gives back; every header has both once
   All code whose results are part of a packet stands between the two. */
#if defined(COMPGRAD_ONLY) && defined(__GNUC__) /* functions that only rows name which were left out */
#  pragma GCC diagnostic push
#  pragma GCC diagnostic ignored "-Wunused-function"
#endif
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
/* hash: which cells a line of coordinates goes to, and with which signs

   Offers   cg_line_target_of_, cg_row_key_, cg_line_hash_; cg_group_count_ and cg_group_cell_
   Needs    random and kernels of core
   Touches  nothing
   A line is 256 neighbouring coordinates, which a row moves together to one slot of 256 cells: coordinate i of the line
   to cell i ^ xor_mask of the slot, with a sign of its own. All of it is a function of seed, row and line. */

static uint64_t cg_row_key_(const cg_sketch *s, int row) {
    return cg_mix64_(s->desc.seed + (uint64_t)(row + 1) * CG_GOLDEN_);
}
static size_t cg_row_slots_(const cg_sketch *s) { return s->desc.cols / CG_SKETCH_LINE_; }
static uint64_t cg_line_hash_(uint64_t row_key, uint64_t line) { return cg_mix64_(row_key + (line + 1) * CG_GOLDEN_); }
/* Upper half of the hash: the slot; lowest 8 bits: xor_mask. */
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
/* Groups of a level: 256^level coordinates each. Those of level 1 are the lines, of level 2 lines of lines, ... */
static size_t cg_group_count_(const cg_sketch *s, int level) {
    size_t many = s->desc.n;
    for (int l = 0; l < level; l++) many = many / CG_SKETCH_LINE_ + (many % CG_SKETCH_LINE_ != 0);
    return many;
}
/* The cell of a group in a row, level from 1; *sign becomes the group's sign bit. */
static float *cg_group_cell_(const cg_sketch *s, int row, int level, uint64_t group, uint32_t *sign) {
    const uint64_t h = cg_line_hash_(cg_mix64_(cg_row_key_(s, row) + (uint64_t)level), group);
    *sign = (uint32_t)h & 0x80000000u;
    return s->cells + (size_t)s->desc.rows * s->desc.cols +
        ((size_t)(level - 1) * (size_t)s->desc.rows + (size_t)row) * s->desc.groups +
        (size_t)((h >> 32) * (uint64_t)s->desc.groups >> 32);
}

/* src/sketch/sketch.h */
/* sketch: the table of cells: its shape, and what is added to it

   Offers   cg_line_len_; the public calls that make, clear, fill, add, scale and zero a sketch
   Needs    hash, kernels; threads and kernels of core
   Touches  the cells of the sketch
   Every cell gets its additions in the order of lines, at any number of threads, so that bits do not depend on it. */

/* Fills *s in from a description, which may be NULL, but for the cells: cols rounded up to whole slots, levels and
   count. */
static cg_status cg_sketch_shape_(const cg_sketch_desc *d, cg_sketch *s) {
    uint64_t cells;
    memset(s, 0, sizeof *s);
    if (!d || d->rows < 1 || d->rows > CG_SKETCH_MAX_ROWS_ || d->cols < 1 || (uint64_t)d->n > (uint64_t)1 << 40)
        return CG_E_ARG;
    if (d->cols > SIZE_MAX / 2 || d->cols / CG_SKETCH_LINE_ >= 0xffffffffu || (uint64_t)d->groups > 0xffffffffu ||
        !CG_RESERVE_IS_ZERO_(d->reserved))
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
    const size_t align_pad = mem ? (64 - ((uintptr_t)mem & 63)) % 64 : 0;
    cg_sketch s;
    cg_status status = sketch ? cg_sketch_shape_(desc, &s) : CG_E_ARG;
    if (status != CG_OK) return status;
    if (!mem || bytes < align_pad || bytes - align_pad < 4 * s.count) return CG_E_MEMORY;
    s.cells = (float *)(void *)((uint8_t *)mem + align_pad);
    *sketch = s;
    cg_sketch_clear(sketch);
    return CG_OK;
}
static size_t cg_sketch_lines_(const cg_sketch *s) {
    return s->desc.n / CG_SKETCH_LINE_ + (s->desc.n % CG_SKETCH_LINE_ != 0);
}
/* Coordinates of a line: 256, of the last line what there is. */
static size_t cg_line_len_(const cg_sketch *s, uint64_t line) {
    return cg_min_(CG_SKETCH_LINE_, s->desc.n - (size_t)line * CG_SKETCH_LINE_);
}

/* One thread's share of an addition: it goes over all lines, and adds to an equal share of the slots: some rows, and
   parts of one or two more. */
CG_NOINLINE_ void cg_sketch_add_slice_(cg_sketch *s, const float *x, float weight, int thread, int threads) {
    const size_t lines = cg_sketch_lines_(s), row_slots = cg_row_slots_(s), slots = row_slots * (size_t)s->desc.rows;
    const size_t from = slots / (size_t)threads * (size_t)thread,
                 to = thread + 1 < threads ? slots / (size_t)threads * (size_t)(thread + 1) : slots;
    const int first = (int)(from / row_slots), end = (int)((to + row_slots - 1) / row_slots);
    const cg_kernels_ *kernels = cg_kernels_now_();
    uint64_t key[CG_SKETCH_MAX_ROWS_];
    cg_line_target_ next[CG_SKETCH_MAX_ROWS_], p[CG_SKETCH_MAX_ROWS_];
    cg_fenv_ env = cg_fenv_enter_();
    for (int r = first; r < end; r++) {
        key[r] = cg_row_key_(s, r);
        next[r] = cg_line_target_of_(s, r, cg_line_hash_(key[r], 0));
    }
    for (size_t line = 0; line < lines; line++) {
        int hits = 0;
        for (int r = first; r < end; r++) { /* without a branch, which could not be predicted */
            const int in_slice = next[r].cells >= s->cells + from * CG_SKETCH_LINE_ &&
                next[r].cells < s->cells + to * CG_SKETCH_LINE_;
            p[hits] = next[r];
            next[r] = cg_line_target_of_(s, r, cg_line_hash_(key[r], line + 1));
            if (next[r].cells >= s->cells + from * CG_SKETCH_LINE_ && next[r].cells < s->cells + to * CG_SKETCH_LINE_)
                p[hits].prefetch = next[r].cells;
            hits += in_slice;
        }
        CG_KERNEL_(kernels, line_add(p, hits, cg_at_(x, line * CG_SKETCH_LINE_), cg_line_len_(s, line), weight));
    }
    cg_fenv_leave_(env);
}
/* Adds what a line amounts to in this row to its group at every level. */
static void cg_group_add_(cg_sketch *s, int row, uint64_t line, float sum) {
    for (int level = 1; level <= s->levels; level++, line /= CG_SKETCH_LINE_) {
        uint32_t sign;
        float *cell = cg_group_cell_(s, row, level, line, &sign);
        sum = cg_xor_sign_(sum, sign); /* this level's sign, on top of those of the levels below */
        *cell = cg_plus_(*cell, sum);
    }
}
/* One thread's share of an addition to groups: some of the rows. */
CG_NOINLINE_ void cg_sketch_add_groups_(cg_sketch *s, const float *x, float weight, int thread, int threads) {
    const size_t lines = cg_sketch_lines_(s);
    const int from = s->desc.rows * thread / threads, to = s->desc.rows * (thread + 1) / threads;
    const cg_kernels_ *kernels = cg_kernels_now_();
    cg_fenv_ env = cg_fenv_enter_();
    for (size_t line = 0; line < lines && from < to; line++)
        for (int r = from; r < to; r++) {
            const cg_line_target_ p = cg_line_target_of_(s, r, cg_line_hash_(cg_row_key_(s, r), line));
            cg_group_add_(s, r, line,
                CG_KERNEL_(
                    kernels, line_project(&p, cg_at_(x, line * CG_SKETCH_LINE_), cg_line_len_(s, line), weight)));
        }
    cg_fenv_leave_(env);
}
/* Whether all values of a thread's share of x are finite. */
static int cg_slice_finite_(const float *x, size_t n, int thread, int threads) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    const size_t to = n / (size_t)threads * (size_t)thread +
        (thread + 1 == threads ? n - n / (size_t)threads * (size_t)thread : n / (size_t)threads);
    for (size_t i = n / (size_t)threads * (size_t)thread; i < to; i += CG_BLOCK_)
        if (CG_KERNEL_(kernels, absmax_bits(cg_at_(x, i), cg_min_(CG_BLOCK_, to - i))) >= CG_INF_BITS_) return 0;
    return 1;
}
/* Nothing is added unless all values are finite. `many` is the number of threads: CG_PARALLEL_ looks at a variable of
   that name. */
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
/* CG_E_ARG unless all indices are below n. */
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
            const unsigned offset = (unsigned)(index[i] % CG_SKETCH_LINE_);
            const cg_line_target_ p = cg_line_target_of_(sketch, r, cg_line_hash_(cg_row_key_(sketch, r), line));
            const float v = cg_xor_sign_(cg_times_(cg_load_(value, i), weight), cg_sign_bit_(p.sign_key, offset));
            p.cells[offset ^ p.xor_mask] = cg_plus_(p.cells[offset ^ p.xor_mask], v);
            if (sketch->levels) cg_group_add_(sketch, r, line, cg_times_(v, cg_group_weight_(p.sign_key, offset)));
        }
    cg_fenv_leave_(env);
    return s;
}
CG_API_ cg_status cg_sketch_zero(cg_sketch *sketch, const uint64_t *index, size_t count) {
    cg_status s = cg_sketch_list_check_(sketch, index, count);
    if (s == CG_OK && sketch->levels)
        s = CG_E_UNSUPPORTED; /* groups hold sums of many coordinates: one cannot be taken out */
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
    CG_KERNEL_(cg_kernels_now_(), axpby(from->cells, to->count, 1.0f, 1.0f, to->cells, 0));
    cg_fenv_leave_(env);
    return CG_OK;
}
CG_API_ cg_status cg_sketch_scale(cg_sketch *sketch, float by) {
    cg_fenv_ env;
    if (!sketch || !cg_is_finite_(by)) return CG_E_ARG;
    env = cg_fenv_enter_();
    CG_KERNEL_(cg_kernels_now_(), axpby(sketch->cells, sketch->count, by, 0.0f, sketch->cells, 0));
    cg_fenv_leave_(env);
    return CG_OK;
}

/* src/sketch/estimate.h */
/* estimate: coordinates and norm of the sketched vector, from the cells

   Offers   cg_sketch_estimate_, cg_sketch_estimate_range_, cg_sketch_norm_; the public calls of the same names
   Needs    hash, kernels, sketch; passes and energies of core
   Touches  nothing but its out */

/* The targets of a line in all rows; keys: of all rows. A line beyond the last one is fine: it has cells, too. */
static void cg_line_targets_(const cg_sketch *s, const uint64_t *keys, uint64_t line, cg_line_target_ *p) {
    for (int r = 0; r < s->desc.rows; r++) p[r] = cg_line_target_of_(s, r, cg_line_hash_(keys[r], line));
}
static void cg_row_keys_(const cg_sketch *s, uint64_t *keys) {
    for (int r = 0; r < s->desc.rows; r++) keys[r] = cg_row_key_(s, r);
}
/* The estimate of coordinate i. */
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
/* make of a lazy producer, and of a pass; user is the sketch. Estimates of coordinates [first, first + many) in out, by
   lines if first begins one, and one after the other if it does not; returns 0. */
static double cg_sketch_estimate_range_(const void *user, size_t first, size_t many, float *out) {
    const cg_sketch *s = (const cg_sketch *)user;
    const cg_kernels_ *kernels = cg_kernels_now_();
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
        CG_KERNEL_(kernels, line_estimate(now, s->desc.rows, cg_min_(CG_SKETCH_LINE_, many - i), cg_at_mut_(out, i)));
    }
    return 0.0;
}
CG_API_ cg_status cg_sketch_estimate_all(const cg_sketch *sketch, float *y, size_t n) {
    cg_fenv_ env;
    if (!sketch || (!y && n)) return CG_E_ARG;
    if (n != sketch->desc.n) return CG_E_MISMATCH;
    env = cg_fenv_enter_();
    cg_vector_pass_(cg_sketch_estimate_range_, sketch, y, n, CG_BLOCK_);
    cg_fenv_leave_(env);
    return CG_OK;
}
/* The root of the median over rows of the energy of the row's cells; not finite if cells overflowed. */
static double cg_sketch_norm_(const cg_sketch *s) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    const int rows = s->desc.rows;
    double v[CG_SKETCH_MAX_ROWS_], middle; /* v: sorted */
    for (int r = 0; r < rows; r++) {
        int j = r;
        double sum = 0.0;
        for (size_t i = 0; i < s->desc.cols; i += CG_BLOCK_)
            sum += cg_energy_(kernels, s->cells + (size_t)r * s->desc.cols + i, cg_min_(CG_BLOCK_, s->desc.cols - i));
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
/* heavy: the heaviest coordinates of a sketch

   Offers   the public cg_sketch_heavy, cg_sketch_heavy_above, cg_sketch_heavymix and their scratch
   Needs    sketch, estimate; lists and top-k selection of core
   Touches  the caller's index, value and scratch
   Estimates are values that a lazy producer makes, so top-k of core searches them as it would a vector, in one or a few
   passes over all coordinates. With groups a search from the top level down comes first: it opens only groups with
   enough energy. It is reliable for magnitudes above 4 |x| / sqrt(min(cols, groups)), and gives up where it would cost
   more than a full pass. */

/* One search. It refers to itself, so it must not be moved. */
typedef struct cg_heavy_search_ {
    cg_op op;            /* top-k, for the sizes of the list */
    cg_info info;        /* where the selection leaves its threshold */
    cg_list_ list;       /* what was found, in the caller's scratch; ascending by index */
    cg_producer_ fill;   /* makes estimates */
    cg_selector_ picker; /* top-k of them */
    const cg_sketch *sketch;
    uint32_t threshold_bits; /* of a search by groups: the smallest magnitude looked for, as float bits rounded up */
    double threshold;        /* the same, not rounded */
    uint64_t visits_left;    /* groups that may still be looked at */
} cg_heavy_search_;

/* CG_E_NONFINITE if a value is NaN or Inf, else CG_OK. */
static cg_status cg_check_finite_(const float *x, size_t n) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    for (size_t i = 0; i < n; i += CG_BLOCK_)
        if (CG_KERNEL_(kernels, absmax_bits(cg_at_(x, i), cg_min_(CG_BLOCK_, n - i))) >= CG_INF_BITS_)
            return CG_E_NONFINITE;
    return CG_OK;
}
/* Top-k as an operator: cg_scratch and cg_list_open_ read k and the kind of list from it. */
static cg_op cg_heavy_search_op_(size_t k) {
    cg_op op = cg_topk(1.0f);
    op.k = k ? k : 1;
    return op;
}
CG_API_ size_t cg_sketch_heavy_scratch(const cg_sketch *sketch, size_t k) {
    const cg_op op = cg_heavy_search_op_(k);
    return sketch ? cg_scratch(&op, sketch->desc.n) : 0;
}
/* Prepares a search for up to k coordinates, k from 1. CG_E_CAPACITY: scratch is too small. CG_E_NONFINITE: a sum has
   become too large for a float, in any cell: a median of rows might not show it, and no threshold would be finite. */
static cg_status cg_heavy_search_open_(cg_heavy_search_ *h, const cg_sketch *s, size_t k, void *scratch, size_t bytes) {
    size_t need;
    memset(h, 0, sizeof *h);
    h->sketch = s;
    h->op = cg_heavy_search_op_(k);
    need = cg_scratch(&h->op, s->desc.n);
    if (!need || need > bytes) return CG_E_CAPACITY;
    if (!scratch && s->desc.n) return CG_E_ARG;
    cg_list_open_(&h->list, &h->op, s->desc.n, scratch);
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
    return cg_check_finite_(s->cells, s->count);
}
/* Whether a group may hold a value of that magnitude: the mean energy of its cells over rows is at least 1/16 of the
   value's. That a group is missed is rare; one too many only costs time. */
static int cg_group_may_be_heavy_(const cg_sketch *s, int level, uint64_t group, double threshold) {
    double sum = 0.0;
    uint32_t sign;
    for (int r = 0; r < s->desc.rows; r++) {
        const double c = (double)*cg_group_cell_(s, r, level, group, &sign);
        sum += c * c;
    }
    return sum * 16.0 >= cg_times64_(threshold, threshold) * (double)s->desc.rows;
}
/* Adds all coordinates of a group whose estimates reach the threshold to the list, ascending. 0: the list is full, or
   the visits are used up. list.block_sum is the segment of 2^32 indices that has begun. */
static int cg_heavy_search_group_(cg_heavy_search_ *h, int level, uint64_t group) {
    const cg_sketch *s = h->sketch;
    float line[CG_SKETCH_LINE_];
    if (h->visits_left-- == 0) return 0;
    if (!cg_group_may_be_heavy_(s, level, group, h->threshold)) return 1;
    if (level == 1) {
        const size_t many = cg_line_len_(s, group), first = (size_t)group * CG_SKETCH_LINE_;
        cg_sketch_estimate_range_(s, first, many, line);
        for (size_t offset = 0; offset < many; offset++)
            if ((cg_as_bits_(line[offset]) & CG_ABS_MASK_) >= h->threshold_bits) {
                while (h->list.block_sum < (double)((uint64_t)(first + offset) >> 32))
                    h->list.segment_start[(size_t)(h->list.block_sum += 1.0)] = h->list.count;
                cg_list_add_(&h->list, first + offset, line[offset]);
            }
        return h->list.count <= h->list.capacity;
    }
    for (uint64_t child = group * CG_SKETCH_LINE_;
         child < (group + 1) * CG_SKETCH_LINE_ && child < cg_group_count_(s, level - 1); child++)
        if (!cg_heavy_search_group_(h, level - 1, child)) return 0;
    return 1;
}
/* The list becomes all coordinates of at least that magnitude, found by groups. 0: there are no groups, the list is too
   short, or it would cost more than to look at every coordinate; the list is then unspecified. */
static int cg_heavy_search_groups_(cg_heavy_search_ *h, double threshold) {
    const cg_sketch *s = h->sketch;
    if (!s->levels || threshold <= 0.0) return 0;
    h->threshold = threshold;
    h->threshold_bits = cg_as_bits_(cg_saturate64_(threshold)) & CG_ABS_MASK_;
    h->threshold_bits += (double)cg_as_float_(h->threshold_bits) < threshold;
    h->visits_left = s->desc.n / 64;
    h->list.count = 0;
    h->list.block_sum = 0.0; /* the segment that has begun */
    h->list.segment_start[0] = 0;
    for (uint64_t group = 0; group < cg_group_count_(s, s->levels); group++)
        if (!cg_heavy_search_group_(h, s->levels, group)) return 0;
    for (uint64_t seg = (uint64_t)h->list.block_sum + 1; seg <= h->list.segment_count; seg++)
        h->list.segment_start[seg] = h->list.count;
    return 1;
}
/* Writes the list to the caller's arrays, which have room for list.count. */
static void cg_heavy_search_output_(const cg_heavy_search_ *h, uint64_t *index, float *value) {
    for (uint64_t seg = 0; seg < h->list.segment_count; seg++)
        for (size_t i = (size_t)h->list.segment_start[seg]; i < (size_t)h->list.segment_start[seg + 1]; i++) {
            index[i] = seg << 32 | h->list.index_low[i];
            cg_store_(value, i, h->list.value[i]);
        }
}
/* The list becomes the k heaviest, k from 1 to n: by groups, with a threshold that is halved while it finds too few and
   is reliable, or else by a full search. */
static cg_status cg_heavy_search_topk_(cg_heavy_search_ *h, size_t k) {
    const cg_sketch *s = h->sketch;
    const double norm = s->levels ? cg_sketch_norm_(s) : 0.0,
                 reliable = 4.0 * norm / cg_sqrt_((double)cg_min_(s->desc.cols, s->desc.groups ? s->desc.groups : 1));
    for (double threshold = norm / cg_sqrt_((double)k); s->levels && threshold >= reliable; threshold *= 0.5)
        if (!cg_heavy_search_groups_(h, threshold)) break;
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
/* The list becomes all coordinates of at least that magnitude, but no more than the k largest. */
static cg_status cg_heavy_search_above_(cg_heavy_search_ *h, double threshold, size_t k) {
    const double reliable = h->sketch->levels
        ? 4.0 * cg_sketch_norm_(h->sketch) / cg_sqrt_((double)cg_min_(h->sketch->desc.cols, h->sketch->desc.groups))
        : 0.0;
    const uint32_t rounded = cg_as_bits_(cg_saturate64_(threshold)) & CG_ABS_MASK_,
                   threshold_bits = rounded + ((double)cg_as_float_(rounded) < threshold);
    if (!(h->sketch->levels && threshold >= reliable && cg_heavy_search_groups_(h, threshold)) &&
        !cg_filter_lazy_(h->picker.kernels, &h->fill, h->sketch->desc.n, threshold_bits, &h->list))
        return cg_select_topk_(&h->picker, k); /* more than fit reach the threshold, so the k largest do */
    if (CG_KERNEL_(h->picker.kernels, absmax_bits(h->list.value, h->list.count)) >= CG_INF_BITS_) return CG_E_NONFINITE;
    if (h->list.count > k) cg_list_keep_topk_(&h->picker, k, threshold_bits);
    return CG_OK;
}
/* As the public call, with arguments that have been checked. */
static cg_status cg_sketch_heavy_above_(const cg_sketch *s, double tau, size_t k, uint64_t *index, float *value,
    size_t *count, void *scratch, size_t scratch_bytes) {
    const double norm = cg_sketch_norm_(s);
    cg_heavy_search_ h;
    cg_status status;
    *count = 0;
    k = cg_min_(k, s->desc.n);
    if (!k) return CG_OK;
    status = cg_heavy_search_open_(&h, s, k, scratch, scratch_bytes);
    if (status == CG_OK && norm == 0.0) return CG_OK;
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
/* HEAVYMIX fills up with random ones of the coordinates that are not heavy. These `others` are numbered in their order,
   as a circle that begins at a random one, and cut into fill_count stretches of about equal length; each stretch gives
   one. So all have the same chance, though lengths differ by one. Returns what stretch j gives, in [0, 2 others):
   modulo `others` it is a number on the circle. */
static uint64_t cg_heavymix_sample_(uint64_t key, uint64_t j, uint64_t others, uint64_t fill_count) {
    const uint64_t begin = j * (others / fill_count) + j * (others % fill_count) / fill_count,
                   end = (j + 1) * (others / fill_count) + (j + 1) * (others % fill_count) / fill_count;
    return cg_mix64_(key) % others + begin + cg_mix64_(key + (j + 1) * CG_GOLDEN_) % (end - begin);
}
/* index and value hold `heavy` coordinates, ascending, and are filled up to k, still ascending. heavy < k <= n. */
static void cg_heavymix_fill_(const cg_sketch *s, size_t heavy, size_t k, uint64_t key, uint64_t *index, float *value) {
    const uint64_t others = s->desc.n - heavy, fill_count = k - heavy;
    uint64_t unwrapped = 0; /* the first stretches, whose numbers are below `others` */
    size_t h = heavy, at = k;
    while (unwrapped < fill_count && cg_heavymix_sample_(key, unwrapped, others, fill_count) < others) unwrapped++;
    for (uint64_t i = 0; i < fill_count; i++) { /* from the largest down, into the same arrays from their ends */
        const uint64_t other = cg_heavymix_sample_(key,
                                   i < unwrapped ? unwrapped - 1 - i : fill_count - 1 - (i - unwrapped), others,
                                   fill_count) %
            others;
        /* its coordinate is other + the number of heavy ones below it: those above it move to the end first */
        while (h && index[h - 1] >= other + h) {
            h--;
            at--;
            index[at] = index[h];
            value[at] = value[h];
        }
        at--;
        index[at] = other + h;
        value[at] = cg_sketch_estimate_(s, other + h);
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
/* packets: a sketch as a packet of its cells

   Offers   cg_sketch_fingerprint_; the public calls that pack, unpack, save and load
   Needs    sketch; cg_packet_check_ of exchange
   Touches  the caller's packet, or the cells */

/* A hash of the description, for the seed of a packet's tag: cells of another description must not be added. */
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
        s = cg_packet_check_(NULL, packet, len, (size_t)info.n); /* a packet that is intact is of another sketch */
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

/* src/sketch/exchange.h */
/* exchange: the mean of a sketch over ranks, and what both protocols with sketches need

   Offers   cg_sketch_step_desc_, cg_f32_mean_step_desc_, cg_sgd_check_, cg_report_add_, cg_clamp_all_,
            cg_sparse_apply_; the public cg_sketch_exchange and its memory
   Needs    packets, heavy (cg_check_finite_); kernels of core; the step of a model of exchange
   Touches  the cells, the caller's memory and report */

/* The caller's description for cells of this sketch. The tag's seed says which sketch it is, and salt what else must
   agree: ranks with others are told of a mismatch in the first round. */
static cg_exchange_desc cg_sketch_step_desc_(const cg_sketch *s, const cg_exchange_desc *desc, uint64_t salt) {
    cg_exchange_desc d = *desc;
    d.tag.seed = cg_mix64_(d.tag.seed ^ cg_mix64_(cg_sketch_fingerprint_(s) ^ salt));
    d.model = NULL; /* a model does not take a step by cells */
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
    cg_status s;
    if (report) cg_report_set_(report, CG_E_ARG, "sketch or desc is NULL", 0, CG_NO_INDEX);
    if (!sketch || !desc) return CG_E_ARG;
    d = cg_sketch_step_desc_(sketch, desc, 0);
    s = cg_exchange(&d, transport, sketch->cells, sketch->count, mem, bytes, report);
    if (report && s == CG_E_MEMORY) report->why = "mem is too small: cg_sketch_exchange_memory gives its bytes";
    return s;
}

/* What can be wrong on this rank with a step by sketches, before its state changes; status CG_OK: nothing. need: bytes
   of mem, or 0 if the exchange is refused anyway; why names what gives them. */
static cg_report cg_sgd_check_(const cg_exchange_desc *desc, const cg_transport *t, const float *grad, size_t n,
    const void *mem, size_t bytes, uint64_t need, const char *why) {
    const size_t align_pad = mem ? (64 - ((uintptr_t)mem & 63)) % 64 : 0;
    cg_report r;
    cg_report_set_(&r, CG_OK, cg_status_str(CG_OK), 0, CG_NO_INDEX);
    if (!grad && n) cg_report_set_(&r, CG_E_ARG, "grad is NULL", 0, CG_NO_INDEX);
    else if (!cg_rate_ok_(desc)) cg_report_set_(&r, CG_E_ARG, "rate must be finite", 0, CG_NO_INDEX);
    else if (cg_check_finite_(grad, n) != CG_OK)
        cg_report_set_(&r, CG_E_NONFINITE, cg_status_str(CG_E_NONFINITE), 0, cg_first_nonfinite_(grad, n));
    else if (need && (!mem || bytes < align_pad || bytes - align_pad < need))
        cg_report_set_(&r, CG_E_MEMORY, why, cg_add_sat_(need, 64), CG_NO_INDEX);
    r.rank = t->rank;
    return r;
}
/* *all becomes the report of the last round, with bytes and rounds of all. */
static void cg_report_add_(cg_report *all, const cg_report *one) {
    const uint64_t out = all->bytes_out, in = all->bytes_in;
    const uint32_t rounds = all->rounds;
    *all = *one;
    all->bytes_out += out;
    all->bytes_in += in;
    all->rounds += rounds;
    all->used = NULL; /* a packet of cells, which nobody can commit */
    all->used_len = 0;
}
#define CG_CLAMP_LIMIT_ 7.922816251426434e28f /* 2^96: sums of 2^30 of them are still floats */
/* Cuts off what has grown beyond that: otherwise no later sum would be finite. */
static void cg_clamp_all_(float *x, size_t n) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    uint32_t absmax_bits = 0;
    for (size_t i = 0; i < n; i += CG_BLOCK_)
        absmax_bits = cg_max32_(absmax_bits, CG_KERNEL_(kernels, absmax_bits(x + i, cg_min_(CG_BLOCK_, n - i))));
    for (size_t i = 0; absmax_bits > cg_as_bits_(CG_CLAMP_LIMIT_) && i < n; i++)
        x[i] = x[i] > CG_CLAMP_LIMIT_ ? CG_CLAMP_LIMIT_ : x[i] < -CG_CLAMP_LIMIT_ ? -CG_CLAMP_LIMIT_ : x[i];
}
/* Writes a sparse vector over y[0, n), or takes a step of the model by it and leaves y. */
static void cg_sparse_apply_(
    const cg_exchange_desc *d, const uint64_t *index, const float *value, size_t count, float *y, size_t n) {
    if (n && !d->model) memset(y, 0, 4 * n);
    for (size_t i = 0; i < count; i++) {
        const size_t at = (size_t)index[i];
        if (d->model) cg_model_step_at_(d, at, value[i]);
        else cg_store_(y, at, value[i]);
    }
}
/* A plain mean of f32 by the caller's route, tag, leader and common, confirmed if the caller says so. */
static cg_exchange_desc cg_f32_mean_step_desc_(const cg_exchange_desc *desc) {
    cg_exchange_desc d = CG_ZERO;
    d.route = desc->route;
    d.tag = desc->tag;
    d.leader = desc->leader;
    d.flags = desc->flags & CG_CONFIRM;
    d.common = desc->common;
    return d;
}

/* src/sketch/sketched.h */
/* sketched: Sketched-SGD, and indices that ranks agree on by a sketch

   Offers   cg_sketched_buffers_plan_, which fetched uses too; the public cg_sketched_ calls
   Needs    heavy, exchange; the arena and cg_exchange_or_fail_ of exchange
   Touches  the state (error, velocity, sketch), grad, the caller's memory and report
   A step has two rounds: the mean of sketches, whose heaviest coordinates are the candidates, the same on all ranks;
   then the mean of the candidates' values. */

/* How many coordinates the second round exchanges: candidates * k, at most n. */
static size_t cg_sketched_candidates_(const cg_sketched_desc *d) {
    const uint64_t many = cg_mul_sat_(d->k, (uint64_t)(d->candidates ? d->candidates : 4));
    return many < d->sketch.n ? (size_t)many : d->sketch.n;
}
static cg_status cg_sketched_check_(const cg_sketched_desc *d) {
    if (!d || d->candidates < 0 || !(d->momentum >= 0.0f && d->momentum < 1.0f) || !d->k ||
        d->sketch.n > SIZE_MAX / 64 || !CG_RESERVE_IS_ZERO_(d->reserved))
        return CG_E_ARG;
    return cg_sketch_memory(&d->sketch) ? CG_OK : CG_E_ARG;
}
/* Sets error and velocity into the memory from base on (a multiple of 64, or NULL to measure), and *cells_mem to the
   sketch's part of it; returns the bytes needed, which saturate. */
static uint64_t cg_sketched_plan_(cg_sketched *sgd, const cg_sketched_desc *d, uint8_t *base, uint8_t **cells_mem) {
    const uint64_t vector = cg_mul_sat_(4, d->sketch.n);
    cg_arena_ arena;
    arena.base = base;
    arena.bytes = 0;
    sgd->error = (float *)(void *)cg_arena_take_(&arena, vector);
    sgd->velocity = d->momentum != 0.0f ? (float *)(void *)cg_arena_take_(&arena, vector) : NULL;
    *cells_mem = cg_arena_take_(&arena, cg_sketch_memory(&d->sketch));
    return arena.bytes;
}
CG_API_ size_t cg_sketched_memory(const cg_sketched_desc *desc) {
    cg_sketched sgd;
    uint8_t *cells_mem;
    return cg_sketched_check_(desc) == CG_OK
        ? cg_size_or_zero_(cg_add_sat_(cg_sketched_plan_(&sgd, desc, NULL, &cells_mem), 64))
        : 0;
}
CG_API_ cg_status cg_sketched_init(cg_sketched *sgd, const cg_sketched_desc *desc, void *mem, size_t bytes) {
    const size_t align_pad = mem ? (64 - ((uintptr_t)mem & 63)) % 64 : 0;
    uint8_t *cells_mem;
    cg_status s = sgd ? cg_sketched_check_(desc) : CG_E_ARG;
    if (s != CG_OK) return s;
    memset(sgd, 0, sizeof *sgd);
    if (!mem || bytes < align_pad || bytes - align_pad < cg_sketched_plan_(sgd, desc, NULL, &cells_mem))
        return CG_E_MEMORY;
    cg_sketched_plan_(sgd, desc, (uint8_t *)mem + align_pad, &cells_mem);
    sgd->desc = *desc;
    if (desc->sketch.n) memset(sgd->error, 0, 4 * desc->sketch.n);
    if (sgd->velocity) memset(sgd->velocity, 0, 4 * desc->sketch.n);
    return cg_sketch_init(&sgd->sketch, &desc->sketch, cells_mem, cg_sketch_memory(&desc->sketch));
}
/* Parts of the caller's memory for one exchange. */
typedef struct cg_sketched_buffers_ {
    uint64_t *index; /* of the heaviest coordinates */
    float *value;    /* and their estimates, then their values */
    uint8_t *scratch, *exchange;
    size_t scratch_bytes, exchange_bytes; /* exchange_bytes: enough for either round */
} cg_sketched_buffers_;
/* Lays out *r for max_count coordinates from base on (a multiple of 64, or NULL to measure); returns the bytes needed,
   or 0 if the exchange is refused. two_rounds: values of the coordinates are exchanged, too (not in FetchSGD). */
static uint64_t cg_sketched_buffers_plan_(const cg_sketch *s, size_t max_count, const cg_exchange_desc *desc,
    const cg_transport *t, int two_rounds, uint8_t *base, cg_sketched_buffers_ *r) {
    const cg_exchange_desc step_desc = cg_f32_mean_step_desc_(desc);
    const uint64_t first = cg_exchange_memory(&step_desc, t, s->count),
                   second = two_rounds ? cg_exchange_memory(&step_desc, t, max_count) : 0;
    cg_arena_ arena;
    arena.base = base;
    arena.bytes = 0;
    if (!first || (two_rounds && !second)) return 0;
    r->index = (uint64_t *)(void *)cg_arena_take_(&arena, cg_mul_sat_(8, max_count));
    r->value = (float *)(void *)cg_arena_take_(&arena, cg_mul_sat_(4, max_count));
    r->scratch_bytes = cg_sketch_heavy_scratch(s, max_count);
    r->scratch = cg_arena_take_(&arena, r->scratch_bytes);
    r->exchange_bytes = cg_size_or_zero_(first > second ? first : second);
    r->exchange = cg_arena_take_(&arena, r->exchange_bytes);
    return arena.bytes;
}
CG_API_ size_t cg_sketched_exchange_memory(
    const cg_sketched *sgd, const cg_exchange_desc *desc, const cg_transport *transport) {
    cg_sketched_buffers_ r;
    uint64_t need;
    if (!sgd || !desc || !transport) return 0;
    need = cg_sketched_buffers_plan_(&sgd->sketch, cg_sketched_candidates_(&sgd->desc), desc, transport, 1, NULL, &r);
    return need ? cg_size_or_zero_(cg_add_sat_(need, 64)) : 0;
}
/* Keeps of `count` coordinates the k with the largest magnitudes (of equals the first), in their order; returns how
   many are left. */
static size_t cg_sketched_topk_(uint64_t *index, float *value, size_t count, size_t k) {
    size_t ties_left = k, kept = 0;
    uint32_t kth_bits;
    if (count <= k) return count;
    kth_bits = cg_kth_magnitude_(value, count, &ties_left);
    for (size_t i = 0; i < count; i++) {
        const uint32_t m = cg_as_bits_(value[i]) & CG_ABS_MASK_;
        if (m < kth_bits || (m == kth_bits && !ties_left)) continue;
        if (m == kth_bits) ties_left--;
        index[kept] = index[i];
        value[kept++] = value[i];
    }
    return kept;
}
/* The gradient into velocity and error, and the error into the sketch. */
static cg_status cg_sketched_accumulate_(cg_sketched *sgd, const cg_exchange_desc *desc, const float *grad) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    const cg_sketched_desc *d = &sgd->desc;
    const size_t n = d->sketch.n;
    if (n && sgd->velocity) cg_axpby_fading_(kernels, grad, n, 1.0f, d->momentum, sgd->velocity);
    if (n && sgd->velocity) cg_clamp_all_(sgd->velocity, n);
    if (n) CG_KERNEL_(kernels, axpby(sgd->velocity ? sgd->velocity : grad, n, 1.0f, 1.0f, sgd->error, 0));
    if (n) cg_clamp_all_(sgd->error, n);
    /* another hash in every step, so that coordinates that collide do not collide for ever */
    sgd->sketch.desc.seed = cg_mix64_(d->sketch.seed ^ cg_mix64_(desc->tag.step + 1));
    cg_sketch_clear(&sgd->sketch);
    return cg_sketch_add(&sgd->sketch, sgd->error, n, 1.0f);
}
/* The candidates of the summed sketch, and this rank's values there. */
static cg_status cg_sketched_pick_(
    cg_sketched *sgd, const cg_exchange_desc *desc, size_t candidates, const cg_sketched_buffers_ *r) {
    const cg_status s = sgd->desc.mix
        ? cg_sketch_heavymix(&sgd->sketch, candidates, &desc->tag, r->index, r->value, r->scratch, r->scratch_bytes)
        : cg_sketch_heavy(&sgd->sketch, candidates, r->index, r->value, r->scratch, r->scratch_bytes);
    for (size_t i = 0; i < candidates && s == CG_OK; i++) r->value[i] = cg_load_(sgd->error, (size_t)r->index[i]);
    return s;
}
/* A rank that fails, in the first round or before it, takes part in the second with that status, so that no other rank
   waits for it there. Once the gradient is in error and velocity it stays there. */
static cg_status cg_sketched_exchange_(cg_sketched *sgd, const cg_exchange_desc *desc, const cg_transport *t,
    float *grad, void *mem, size_t bytes, cg_report *report) {
    const cg_sketched_desc *d = &sgd->desc;
    const size_t n = d->sketch.n, candidates = cg_sketched_candidates_(d),
                 align_pad = mem ? (64 - ((uintptr_t)mem & 63)) % 64 : 0;
    const uint64_t salt = cg_mix64_(d->k) ^ cg_mix64_((uint64_t)candidates + 1) ^ (uint64_t)(d->mix != 0) ^
        cg_mix64_(d->sketch.seed);
    cg_exchange_desc step_desc = cg_f32_mean_step_desc_(desc);
    cg_sketched_buffers_ r = CG_ZERO;
    cg_report round_report;
    size_t kept;
    const uint64_t need = cg_sketched_buffers_plan_(&sgd->sketch, candidates, desc, t, 1, NULL, &r);
    const cg_report refusal = cg_sgd_check_(
        desc, t, grad, n, mem, bytes, need, "mem is too small: cg_sketched_exchange_memory gives its bytes");
    cg_status first, s = (cg_status)refusal.status;
    sgd->sketch.desc.seed = d->sketch.seed;
    step_desc = cg_sketch_step_desc_(&sgd->sketch, &step_desc, salt);
    if (s == CG_OK && need) {
        cg_sketched_buffers_plan_(&sgd->sketch, candidates, desc, t, 1, (uint8_t *)mem + align_pad, &r);
        s = cg_sketched_accumulate_(sgd, desc, grad);
    } else { /* there is nothing to exchange but a refusal */
        r.exchange = (uint8_t *)mem;
        r.exchange_bytes = bytes;
    }
    step_desc.flags = 0; /* the second round confirms the first */
    first = cg_exchange_or_fail_(
        &step_desc, t, sgd->sketch.cells, sgd->sketch.count, r.exchange, r.exchange_bytes, s, &round_report);
    cg_report_add_(report, &round_report);
    if (refusal.status != CG_OK && first == s) cg_report_copy_outcome_(report, &refusal);
    if (first == CG_E_TRANSPORT) return first;
    s = first == CG_OK ? cg_sketched_pick_(sgd, desc, candidates, &r) : first;
    step_desc.flags = (desc->flags & CG_CONFIRM) | CG_SECOND_ROUND_;
    step_desc.tag.seed = cg_mix64_(step_desc.tag.seed); /* the second round */
    s = cg_exchange_or_fail_(&step_desc, t, r.value, candidates, r.exchange, r.exchange_bytes, s, &round_report);
    if (first != CG_OK) { /* the report stays that of the first round */
        report->bytes_out += round_report.bytes_out;
        report->bytes_in += round_report.bytes_in;
        report->rounds += round_report.rounds;
        return first;
    }
    cg_report_add_(report, &round_report);
    if (s != CG_OK) return s;
    kept = cg_sketched_topk_(r.index, r.value, candidates, d->k);
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
    cg_report_set_(report, CG_E_ARG, "sgd, desc or transport is NULL", 0, CG_NO_INDEX);
    if (!sgd || !desc || !transport) return CG_E_ARG;
    env = cg_fenv_enter_();
    s = cg_sketched_exchange_(sgd, desc, transport, grad, mem, bytes, report);
    cg_fenv_leave_(env);
    return s;
}

/* src/sketch/fetched.h */
/* fetched: FetchSGD, with momentum and error in sketches that are the same on all ranks

   Offers   the public cg_fetched_ calls
   Needs    heavy, exchange, sketched; cg_exchange_or_fail_ of exchange
   Touches  the state (three sketches), grad, the caller's memory and report
   One round: the mean of sketches of gradients. What follows is computed by every rank alike. `fresh` holds this step's
   sketch and then the new momentum, until it is known that everything stays finite. */

static cg_status cg_fetched_check_(const cg_fetched_desc *d) {
    if (!d || !(d->momentum >= 0.0f && d->momentum < 1.0f) || !cg_is_finite_(d->rate) || !d->k ||
        !CG_RESERVE_IS_ZERO_(d->reserved))
        return CG_E_ARG;
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
/* On any error the state is as it was, but for fresh, which holds nothing between steps. */
static cg_status cg_fetched_exchange_(cg_fetched *sgd, const cg_exchange_desc *desc, const cg_transport *t, float *grad,
    void *mem, size_t bytes, cg_report *report) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    const cg_fetched_desc *d = &sgd->desc;
    const size_t n = d->sketch.n, k = cg_min_(d->k, n), align_pad = mem ? (64 - ((uintptr_t)mem & 63)) % 64 : 0,
                 cell_count = sgd->fresh.count;
    const float rate = d->rate != 0.0f ? d->rate : 1.0f;
    float chunk[CG_CHUNK_];
    cg_exchange_desc step_desc = cg_f32_mean_step_desc_(desc);
    cg_sketched_buffers_ r;
    cg_report round_report;
    const uint64_t need = cg_sketched_buffers_plan_(&sgd->fresh, k, desc, t, 0, NULL, &r);
    const cg_report refusal = cg_sgd_check_(
        desc, t, grad, n, mem, bytes, need, "mem is too small: cg_fetched_exchange_memory gives its bytes");
    cg_status s = (cg_status)refusal.status;
    step_desc = cg_sketch_step_desc_(
        &sgd->fresh, &step_desc, cg_mix64_(d->k) ^ cg_as_bits_(d->momentum) ^ (uint64_t)cg_as_bits_(rate) << 32);
    step_desc.flags |= CG_CONFIRM; /* momentum and error are the same on all ranks, and must stay so */
    if (s != CG_OK || !need) {
        s = cg_exchange_or_fail_(&step_desc, t, sgd->fresh.cells, cell_count, mem, bytes, s, report);
        if (refusal.status != CG_OK && (uint32_t)s == refusal.status) cg_report_copy_outcome_(report, &refusal);
        return s;
    }
    cg_sketched_buffers_plan_(&sgd->fresh, k, desc, t, 0, (uint8_t *)mem + align_pad, &r);
    cg_sketch_clear(&sgd->fresh);
    s = cg_sketch_add(&sgd->fresh, grad, n, 1.0f);
    s = cg_exchange_or_fail_(
        &step_desc, t, sgd->fresh.cells, cell_count, r.exchange, r.exchange_bytes, s, &round_report);
    cg_report_add_(report, &round_report);
    if (s != CG_OK) return s;
    /* the new momentum, in fresh: momentum stays as it is until all is known to be finite */
    cg_axpy_faded_energy_y_(kernels, sgd->momentum.cells, cell_count, d->momentum, sgd->fresh.cells);
    for (size_t i = 0; i < cell_count && s == CG_OK; i += CG_CHUNK_) { /* is the new error finite, too? */
        const size_t many = cg_min_(CG_CHUNK_, cell_count - i);
        memcpy(chunk, sgd->error.cells + i, 4 * many);
        CG_KERNEL_(kernels, axpby(sgd->fresh.cells + i, many, rate, 1.0f, chunk, 0));
        if (CG_KERNEL_(kernels, absmax_bits(chunk, many)) >= CG_INF_BITS_) s = CG_E_NONFINITE;
    }
    if (s != CG_OK) {
        report->rank = t->rank;
        report->status = (uint32_t)s;
        report->why = "the sums of sketches have become too large for floats";
        return s;
    }
    memcpy(sgd->momentum.cells, sgd->fresh.cells, 4 * cell_count);
    CG_KERNEL_(kernels, axpby(sgd->momentum.cells, cell_count, rate, 1.0f, sgd->error.cells, 0));
    s = cg_sketch_heavy(&sgd->error, k, r.index, r.value, r.scratch, r.scratch_bytes);
    if (s == CG_OK) s = cg_sketch_zero(&sgd->error, r.index, k);
    if (s == CG_OK) s = cg_sketch_zero(&sgd->momentum, r.index, k);
    if (s == CG_OK) cg_sparse_apply_(desc, r.index, r.value, k, grad, n);
    report->status = (uint32_t)s;
    if (s != CG_OK) report->why = cg_status_str(s);
    return s;
}
CG_API_ cg_status cg_fetched_exchange(cg_fetched *sgd, const cg_exchange_desc *desc, const cg_transport *transport,
    float *grad, void *mem, size_t bytes, cg_report *report) {
    cg_report own;
    cg_fenv_ env;
    cg_status s;
    if (!report) report = &own;
    cg_report_set_(report, CG_E_ARG, "sgd, desc or transport is NULL", 0, CG_NO_INDEX);
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
#if defined(COMPGRAD_ONLY) && defined(__GNUC__)
#  pragma GCC diagnostic pop
#endif

/* src/core/base/end.h */
/* end: closes the implementation that begin.h of the same header opened

   Offers   the #endif
   Needs    begin
   Touches  nothing */
#endif /* COMPGRAD_IMPLEMENTATION */
