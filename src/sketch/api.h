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
