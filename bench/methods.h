/* methods.h - the methods that bench/train.c compares, each a row of a table, and the training step that they have
   in common.

     method_state s;
     if (method_open(&s, find_method("topk"), &model, 0, 0, 0, steps, seed, &transport, why, sizeof why)) puts(why);
     status = method_step(&s, &transport, step, grad, &report);      // grad := the mean, the same on all ranks
     net_step(&model, weights, s.velocity, grad, s.m->after, rate * s.m->rate);
     method_close(&s);

   A row says what crosses the wire (an operator as text, the route, the fold) and what a worker keeps (the kind of
   error feedback, momentum before the compression or after the mean). Error feedback delays gradients, and momentum
   multiplies delayed ones: with error feedback there is less momentum, or none, and a higher rate in its place. To try
   another method add a row, or give its operator as text: a name that is not in the table is taken as an operator with
   classic error feedback. */

#ifndef METHODS_H
#define METHODS_H

#include "compgrad_ef.h"
#include "compgrad_sketch.h"
#include "net.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* in place of a cg_ef_kind: no error feedback; Sketched-SGD, which keeps a residual of its own */
enum { ALONE = -1, SKETCHED = -2 };
/* flags: sums are encoded again, and the error of that is added to the next sum */
enum {
    CARRY = 1,
    AGREE = 2,  /* scales are agreed on, so that levels add */
    WARM = 4,   /* DGC's warm-up */
    LAYERS = 8, /* every tensor for itself, unless --whole */
    FAILS = 16
}; /* is here to show what happens to a biased operator without error feedback */
typedef struct method {
    char name[48];
    /* %g is the ratio; a low-rank operator is completed by the size of each matrix */
    char op[64];
    /* kept of the gradient, unless --ratio says otherwise; 0: it has none */
    float ratio;
    int kind, flags;
    uint32_t route, fold;
    float before, after; /* momentum: of each worker, before it compresses (DIFFERENCE: lambda); of the mean */
    float rate;          /* times the learning rate */
    const char *about;
} method;

static const method methods[] = {
    { "dense", "dense", 0, ALONE, 0, CG_ROUTE_AUTO, CG_FOLD_MEAN, 0, .9f, 1, "no compression: the reference" },
    { "topk", "topk:%g|f16", .00055f, CG_EF_CLASSIC, 0, CG_ROUTE_ALLGATHER, CG_FOLD_MEAN, 0, 0, 8,
        "slow networks, few workers: the largest, the rest later" },
    { "dgc", "dgc:%g|f16", .0004f, CG_EF_MOMENTUM, WARM, CG_ROUTE_ALLGATHER, CG_FOLD_MEAN, .5f, 0, 5,
        "the same where momentum matters, with a cheaper search" },
    { "stc", "stc:%g", .001f, CG_EF_CLASSIC, 0, CG_ROUTE_ALLGATHER, CG_FOLD_MEAN, 0, 0, 6,
        "the slowest networks: signs of the largest, one size" },
    { "artopk", "topk:%g", .01f, CG_EF_CLASSIC, 0, CG_ROUTE_SHARED, CG_FOLD_MEAN, 0, 0, 4,
        "top-k for many workers: one's indices, values by allreduce" },
    { "sketched", "dense", .015f, SKETCHED, 0, CG_ROUTE_AUTO, CG_FOLD_MEAN, 0, 0, 4,
        "very many workers: traffic does not grow with them" },
    { "powersgd", "lowrank:2", 0, CG_EF_CLASSIC, LAYERS, CG_ROUTE_AUTO, CG_FOLD_MEAN, 0, .5f, 4,
        "large matrices and a good allreduce" },
    { "rate", "rate:0.4", 0, CG_EF_CLASSIC, 0, CG_ROUTE_ALLGATHER, CG_FOLD_MEAN, 0, .9f, 1,
        "the least error for its bits: momentum and rate stay as they are" },
    { "efsign", "efsign", 0, CG_EF_CLASSIC, CARRY, CG_ROUTE_SCATTER, CG_FOLD_MEAN, 0, 0, 6,
        "one bit both ways, little work: the safe choice" },
    { "onebit", "onebit:512", 0, CG_EF_CLASSIC, CARRY, CG_ROUTE_SCATTER, CG_FOLD_MEAN, 0, 0, 6,
        "the same where the sizes of values vary" },
    { "eden", "eden:1", 0, ALONE, 0, CG_ROUTE_SCATTER, CG_FOLD_MEAN, 0, .9f, .5f,
        "one bit, no residual: workers may come and go" },
    { "terngrad", "terngrad:clip", 0, ALONE, AGREE | LAYERS, CG_ROUTE_SCATTER, CG_FOLD_MEAN, 0, .9f, .3f,
        "no residual, and sums of small integers on the way" },
    { "qsgd", "levels:7:512:max", 0, ALONE, 0, CG_ROUTE_SCATTER, CG_FOLD_MEAN, 0, .9f, .5f,
        "no residual and little noise: 4 bits, unbiased" },
    { "vote", "sign", 0, CG_EF_SIGNUM, 0, CG_ROUTE_AUTO, CG_FOLD_VOTE, .9f, 0, .006f,
        "workers that cannot be trusted: each has one vote" },
    { "topk-alone", "topk:%g|f16", .00055f, ALONE, FAILS, CG_ROUTE_ALLGATHER, CG_FOLD_MEAN, 0, 0, 8,
        "never: top-k without error feedback" },
    { "sign-alone", "efsign", 0, ALONE, FAILS, CG_ROUTE_ALLGATHER, CG_FOLD_MEAN, 0, 0, 6,
        "never: one bit without error feedback" },
};
enum { METHODS = sizeof methods / sizeof methods[0] };

static const method *find_method(const char *name) {
    size_t i;
    for (i = 0; i < METHODS; i++)
        if (!strcmp(methods[i].name, name)) return &methods[i];
    return NULL;
}

static int by_matrices(const method *m) { return !strncmp(m->op, "lowrank:", 8); }

typedef struct method_state {
    const method *m;
    size_t n, parts, small; /* parts: tensors, or the whole model as one */
    char op[96];            /* of the longest part, as text */
    cg_op ops[NET_TENSORS];
    cg_layer layer[NET_TENSORS];
    cg_ef ef[NET_TENSORS], *efs[NET_TENSORS];
    void *memory[NET_TENSORS];
    cg_sketched sketched;
    float *velocity; /* momentum of the mean, or of a worker's own optimizer */
    float *squares;  /* the same of squares; NULL: the optimizer is not AdamW */
    void *mem;
    size_t bytes;
} method_state;

static void method_close(method_state *s) {
    size_t i;
    for (i = 0; i < s->parts; i++) free(s->memory[i]);
    free(s->velocity);
    free(s->squares);
    free(s->mem);
    memset(s, 0, sizeof *s);
}

/* The operator of a tensor; a bias is no matrix, and too short for anything but itself. */
static int method_op_(const method *m, float ratio, const net_tensor *t, cg_op *op, char *text, size_t cap) {
    char pattern[96];
    const char *kept = strstr(m->op, "%g");
    if (by_matrices(m)) {
        if (t->cols > 1) snprintf(text, cap, "%s:%lu:%lu", m->op, (unsigned long)t->rows, (unsigned long)t->cols);
        else snprintf(text, cap, "dense");
    } else if (kept) {
        snprintf(pattern, sizeof pattern, "%.*s%g%s", (int)(kept - m->op), m->op, (double)ratio, kept + 2);
        snprintf(text, cap, "%s", pattern);
    } else snprintf(text, cap, "%s", m->op);
    return cg_op_parse(op, text) != CG_OK;
}

static cg_status method_ef_(method_state *s, size_t i, uint64_t steps, const cg_transport *t) {
    cg_ef_desc d = CG_ZERO;
    cg_exchange_desc road = s->layer[i].desc;
    d.op = s->ops[i];
    d.n = s->layer[i].n;
    d.kind = (uint32_t)s->m->kind;
    d.workers = t->size;
    if (d.kind == CG_EF_DIFFERENCE) d.lambda = s->m->before;
    else d.momentum = s->m->before;
    /* 1/4, 1/16, ... of the gradient in the first steps, few enough not to count */
    if (s->m->flags & WARM) {
        d.warmup.kind = CG_WARMUP_QUARTERS;
        d.warmup.stages = 4;
        d.warmup.period = steps / 1024;
        if (!d.warmup.period) d.warmup.kind = CG_WARMUP_NONE;
    }
    road.op = d.op;
    if (s->m->flags & CARRY) {
        static float some; /* that there is one; it lies in the memory of ef */
        road.carry = &some;
        d.carry = cg_exchange_carry(&road, t, d.n);
    }
    s->memory[i] = malloc(cg_ef_memory(&d) + 1);
    s->efs[i] = &s->ef[i];
    return s->memory[i] ? cg_ef_init(&s->ef[i], &d, s->memory[i], cg_ef_memory(&d)) : CG_E_MEMORY;
}

static cg_status method_sketched_(method_state *s, float ratio) {
    cg_sketched_desc d = CG_ZERO;
    const size_t k = (size_t)((double)ratio * (double)s->n + .5);
    size_t bytes;
    d.k = k ? k : 1;
    d.candidates = 1; /* every value that was asked for is used: they cost more than cells */
    d.sketch.n = s->n;
    d.sketch.rows = 5;
    d.sketch.cols = (d.k * 3 / 25 + 128) / 256 * 256; /* 0.6 cells to each of the k, in whole lines */
    if (!d.sketch.cols) d.sketch.cols = 256;
    d.momentum = s->m->before;
    bytes = cg_sketched_memory(&d);
    s->memory[0] = malloc(bytes + 1);
    if (!s->memory[0]) return CG_E_MEMORY;
    snprintf(s->op, sizeof s->op, "sketch 5x%lu k %lu", (unsigned long)d.sketch.cols, (unsigned long)d.k);
    return cg_sketched_init(&s->sketched, &d, s->memory[0], bytes);
}

/* steps: of the whole run. 0, or why says what is wrong. */
static int method_open(method_state *s, const method *m, const net *model, int layerwise, float ratio, int adamw,
    uint64_t steps, uint64_t seed, const cg_transport *t, char *why, size_t why_bytes) {
    const int matrices = by_matrices(m);
    net_tensor whole = { "model", 0, model->n, 1, model->n };
    cg_status status = CG_OK;
    size_t i, longest = 0;
    char text[96];
    memset(s, 0, sizeof *s);
    s->m = m;
    s->n = model->n;
    s->parts = layerwise || matrices ? (size_t)model->tensors : 1;
    s->small = matrices ? 2048 : 0; /* biases travel together */
    for (i = 0; i < s->parts; i++) {
        const net_tensor *part = s->parts > 1 ? &model->tensor[i] : &whole;
        cg_layer *l = &s->layer[i];
        l->n = part->n;
        if (method_op_(m, ratio > 0 ? ratio : m->ratio, part, &s->ops[i], text, sizeof text)) {
            snprintf(why, why_bytes,
                "%s: \"%s\" is not an operator; --help lists the methods, and the manual in compgrad.h the operators",
                m->name, text);
            return 1;
        }
        if (part->n > longest) longest = part->n, strcpy(s->op, text);
        l->desc.op = s->ops[i];
        l->desc.route = m->route;
        l->desc.fold = m->fold;
        /* confirmed: one damaged message ends the training on all workers, and before any of them has stepped */
        l->desc.flags = CG_CONFIRM | (m->flags & AGREE ? (uint32_t)CG_AGREE_SCALES : 0);
        l->desc.tag.seed = seed;
        l->desc.tag.tensor = (uint32_t)i;
        if (status == CG_OK && m->kind >= 0) status = method_ef_(s, i, steps, t);
    }
    if (status == CG_OK && m->kind == SKETCHED) {
        status = method_sketched_(s, ratio > 0 ? ratio : m->ratio);
        s->bytes = cg_sketched_exchange_memory(&s->sketched, &s->layer[0].desc, t);
    } else if (status == CG_OK && m->kind >= 0) s->bytes = cg_ef_layers_memory(s->efs, s->layer, s->parts, s->small, t);
    else if (status == CG_OK) s->bytes = cg_exchange_layers_memory(s->layer, s->parts, s->small, t);
    s->mem = malloc(s->bytes + 1);
    s->velocity = (float *)calloc(s->n, sizeof(float));
    if (adamw) s->squares = (float *)calloc(s->n, sizeof(float));
    if (status == CG_OK && (!s->mem || !s->velocity || (adamw && !s->squares))) status = CG_E_MEMORY;
    if (status != CG_OK) snprintf(why, why_bytes, "%s (%s): %s", m->name, s->op, cg_status_str(status));
    return status != CG_OK;
}

static int takes_models(const method *m) { return m->kind == CG_EF_DIFFERENCE; }
/* The model that all workers begin with. */
static cg_status method_begin(method_state *s, const float *weights) {
    cg_status status = CG_OK;
    size_t i, at = 0;
    for (i = 0; i < s->parts && takes_models(s->m) && status == CG_OK; at += s->layer[i].n, i++)
        status = cg_ef_set_received(&s->ef[i], weights + at, s->layer[i].n);
    return status;
}
/* grad := the mean, as far as it came through; of what takes models: the worker's model, which becomes that of all. */
static cg_status method_step(method_state *s, const cg_transport *t, uint64_t step, float *grad, cg_report *report) {
    cg_status status;
    size_t i, at = 0;
    for (i = 0; i < s->parts; at += s->layer[i].n, i++) {
        s->layer[i].x = grad + at;
        s->layer[i].desc.tag.step = step;
    }
    if (s->m->kind == SKETCHED)
        status = cg_sketched_exchange(&s->sketched, &s->layer[0].desc, t, grad, s->mem, s->bytes, report);
    else if (s->m->kind >= 0)
        status = cg_ef_exchange_layers(s->efs, s->layer, s->parts, s->small, t, s->mem, s->bytes, report);
    else status = cg_exchange_layers(s->layer, s->parts, s->small, t, s->mem, s->bytes, report);
    return status;
}
/* Everything that the next step depends on: the same bytes go in and out. */
static size_t method_saved_bytes(const method_state *s) {
    size_t i, sum = (s->squares ? 8 : 4) * s->n;
    if (s->m->kind == SKETCHED) sum += s->sketched.velocity ? 8 * s->n : 4 * s->n;
    else if (s->m->kind >= 0)
        for (i = 0; i < s->parts; i++) sum += cg_ef_save_bytes(&s->ef[i]);
    return sum;
}
static cg_status method_save(const method_state *s, char *to) {
    cg_status status = CG_OK;
    size_t i, len;
    memcpy(to, s->velocity, 4 * s->n);
    to += 4 * s->n;
    if (s->squares) memcpy(to, s->squares, 4 * s->n), to += 4 * s->n;
    if (s->m->kind == SKETCHED) {
        memcpy(to, s->sketched.error, 4 * s->n);
        if (s->sketched.velocity) memcpy(to + 4 * s->n, s->sketched.velocity, 4 * s->n);
    } else if (s->m->kind >= 0) {
        for (i = 0; i < s->parts && status == CG_OK; i++, to += len)
            status = cg_ef_save(&s->ef[i], to, cg_ef_save_bytes(&s->ef[i]), &len);
    }
    return status;
}
static cg_status method_load(method_state *s, const char *from) {
    cg_status status = CG_OK;
    size_t i, len;
    memcpy(s->velocity, from, 4 * s->n);
    from += 4 * s->n;
    if (s->squares) memcpy(s->squares, from, 4 * s->n), from += 4 * s->n;
    if (s->m->kind == SKETCHED) {
        memcpy(s->sketched.error, from, 4 * s->n);
        if (s->sketched.velocity) memcpy(s->sketched.velocity, from + 4 * s->n, 4 * s->n);
    } else if (s->m->kind >= 0) {
        for (i = 0; i < s->parts && status == CG_OK; i++, from += len) {
            len = cg_ef_save_bytes(&s->ef[i]);
            status = cg_ef_load(&s->ef[i], from, len);
        }
    }
    return status;
}

#endif
