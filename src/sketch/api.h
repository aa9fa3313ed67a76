/* api: the public declarations of sketches and of the protocols with them

   Offers   cg_sketch, cg_sketched, cg_fetched, and the calls on them
   Needs    compgrad_exchange.h
   Touches  nothing */
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
