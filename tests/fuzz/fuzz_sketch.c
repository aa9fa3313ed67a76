/* clang -g -I. -Itests -pthread -fsanitize=fuzzer,address,undefined tests/fuzz/fuzz_sketch.c -o fuzz && ./fuzz CORPUS
   cc -g -O1 -I. -Itests -DFUZZ_MAIN -pthread tests/fuzz/fuzz_sketch.c -o fuzz && ./fuzz 10000

   A few sketches and some calls on them, with arguments of every kind. Beside each sketch stands the vector that it is
   of, as long as its values are small multiples of 1/16, whose sums are exact: then its cells are those of a fresh
   sketch of that vector, from another ISA. After an error cells are as they were. Heavy hitters are those that a look
   at all estimates finds. Packets come back damaged, with a right checksum; so do messages between ranks, in exchanges
   of sketches, Sketched-SGD and FetchSGD, in which undisturbed ranks end alike and nothing is lost. */

#define COMPGRAD_IMPLEMENTATION
#include "ranks.h"
#include "compgrad_sketch.h"

enum { TABLES = 3, MOST_CALLS = 12 };
typedef struct table {
    cg_sketch s;
    void *mem;
    double *model;      /* the vector that the cells are of */
    int exact;          /* ... and whether they still must be */
    double reach, unit; /* no sum is larger, and all are multiples of unit */
} table;
static table tables[TABLES];
static ranks world;

static void *get_bytes(size_t bytes) { /* exactly, for the sanitizer */
    void *p = malloc(bytes + !bytes);
    MUST(p);
    return p;
}
static float *copy_of(const float *v, size_t n) {
    float *c = (float *)get_bytes(4 * n);
    memcpy(c, v, 4 * n);
    return c;
}
static int same_bits(const float *a, const float *b, size_t n) { return !n || !memcmp(a, b, 4 * n); }
static int all_finite(const float *v, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!fuzz_is_finite(v[i])) return 0;
    return 1;
}
static double magnitude(float v) { return v < 0 ? -(double)v : (double)v; }

/* ---- one table ---- */

static cg_sketch_desc choose_desc(fuzz_input *in) {
    cg_sketch_desc d = CG_ZERO;
    const uint32_t how = fuzz_byte(in);
    d.rows = 1 + (int)fuzz_below(in, 15);
    d.cols = 1 + fuzz_below(in, how & 1 ? 3000 : 300);
    d.n = fuzz_below(in, how & 2 ? 3000 : 300);
    if (how >= 250) d.n = 66000 + d.n;
    d.seed = fuzz_byte(in);
    if (how & 4) d.groups = 1 + fuzz_below(in, 200);
    return d;
}
static void table_open(table *t, const cg_sketch_desc *d) {
    const size_t bytes = cg_sketch_memory(d);
    MUST(bytes);
    t->mem = get_bytes(bytes);
    MUST(cg_sketch_init(&t->s, d, t->mem, bytes) == CG_OK);
    t->model = (double *)calloc(d->n + 1, sizeof *t->model);
    MUST(t->model);
    t->exact = 1;
    t->reach = 0.0;
    t->unit = 1.0 / 32; /* groups halve some values */
}
static void table_close(table *t) {
    free(t->mem);
    free(t->model);
}
static void table_is_exact_if(table *t, int yes) {
    if (!yes || t->reach > 16777216.0 * t->unit) t->exact = 0;
}
/* A sketch of the vector, made at once and by the other kernels, has the same cells, but for the sign of zeros. */
static void table_check(const table *t) {
    const cg_isa used = cg_isa_used();
    float *x, *cells;
    void *mem;
    cg_sketch s;
    if (!t->exact) return;
    x = (float *)get_bytes(4 * t->s.desc.n);
    for (size_t i = 0; i < t->s.desc.n; i++) x[i] = (float)t->model[i];
    mem = get_bytes(cg_sketch_memory(&t->s.desc));
    MUST(cg_sketch_init(&s, &t->s.desc, mem, cg_sketch_memory(&t->s.desc)) == CG_OK && s.count == t->s.count);
    MUST(cg_isa_force(used == CG_ISA_SCALAR ? CG_ISA_AUTO : CG_ISA_SCALAR) == CG_OK);
    MUST(cg_sketch_add(&s, x, t->s.desc.n, 1.0f) == CG_OK);
    MUST(cg_isa_force(used) == CG_OK);
    cells = s.cells;
    for (size_t i = 0; i < s.count; i++) MUST(!(cells[i] < t->s.cells[i]) && !(cells[i] > t->s.cells[i]));
    free(mem);
    free(x);
}
static float choose_weight(fuzz_input *in, int *halves) {
    static const float some[] = { 1.0f, -1.0f, 2.0f, 0.5f, 0.0f, 3e38f, 1e-40f };
    const uint32_t how = fuzz_byte(in);
    *halves = how % 8 == 3;
    if (how % 8 < 5) return some[how % 8];
    *halves = -1; /* the sums are no longer exact */
    return how % 8 < 7 ? some[how % 8] : fuzz_wrong(how);
}
static void call_add(fuzz_input *in, table *t) {
    const size_t n = t->s.desc.n;
    const uint32_t how = fuzz_byte(in), style = how % 3 ? FUZZ_GRID : fuzz_below(in, FUZZ_STYLES);
    float *x = (float *)get_bytes(4 * n), *before = copy_of(t->s.cells, t->s.count);
    int halves, ok = 1;
    const float weight = choose_weight(in, &halves);
    size_t given = n;
    cg_status s;
    fuzz_fill(x, n, style, how);
    if (how >= 240 && n) x[n / 2] = fuzz_wrong(how), ok = 0;
    if (how % 32 == 7) given = n + 1; /* not read */
    s = cg_sketch_add(&t->s, x, given, weight);
    if (!fuzz_is_finite(weight)) MUST(s == CG_E_ARG);
    else if (given != n) MUST(s == CG_E_MISMATCH);
    else MUST(s == (ok ? CG_OK : CG_E_NONFINITE));
    if (s != CG_OK) MUST(same_bits(before, t->s.cells, t->s.count));
    else if (t->exact) {
        if (halves == 1) t->unit *= 0.5;
        for (size_t i = 0; i < n && halves >= 0; i++) {
            t->model[i] += (double)weight * (double)x[i];
            t->reach += 2.0 * magnitude(weight) * magnitude(x[i]);
        }
        table_is_exact_if(t, halves >= 0 && (style == FUZZ_GRID || style == FUZZ_SPARSE));
    }
    free(before);
    free(x);
}
static void call_add_list(fuzz_input *in, table *t) {
    const size_t count = fuzz_below(in, 20);
    uint64_t *index = (uint64_t *)get_bytes(8 * count);
    float *value = (float *)get_bytes(4 * count), *before = copy_of(t->s.cells, t->s.count);
    int halves, inside = 1, finite = 1;
    const float weight = choose_weight(in, &halves);
    cg_status s;
    for (size_t i = 0; i < count; i++) {
        const uint32_t r = fuzz_word(in, 3);
        index[i] = t->s.desc.n && r % 64 ? r % t->s.desc.n : r % 64 ? 0 : UINT64_MAX - r;
        value[i] = r % 61 ? fuzz_value(FUZZ_GRID, r << 8) : fuzz_wrong(r);
        inside &= index[i] < t->s.desc.n;
        finite &= fuzz_is_finite(value[i]);
    }
    s = cg_sketch_add_list(&t->s, index, value, count, weight);
    MUST(s == (!inside || !fuzz_is_finite(weight) ? CG_E_ARG : finite ? CG_OK : CG_E_NONFINITE));
    if (s != CG_OK) MUST(same_bits(before, t->s.cells, t->s.count));
    else if (t->exact) {
        if (halves == 1) t->unit *= 0.5;
        for (size_t i = 0; i < count && halves >= 0; i++) {
            t->model[index[i]] += (double)weight * (double)value[i];
            t->reach += 2.0 * magnitude(weight) * magnitude(value[i]);
        }
        table_is_exact_if(t, halves >= 0);
    }
    free(before);
    free(value);
    free(index);
}
static void call_merge(table *to, const table *from) {
    const cg_sketch_desc *a = &to->s.desc, *b = &from->s.desc;
    const int same = a->rows == b->rows && a->cols == b->cols && a->n == b->n && a->seed == b->seed &&
        a->groups == b->groups;
    float *before = copy_of(to->s.cells, to->s.count);
    const cg_status s = cg_sketch_merge(&to->s, &from->s);
    MUST(s == (to == from ? CG_E_ARG : same ? CG_OK : CG_E_MISMATCH));
    if (s != CG_OK) MUST(same_bits(before, to->s.cells, to->s.count));
    else {
        for (size_t i = 0; i < a->n; i++) to->model[i] += from->model[i];
        to->reach += from->reach;
        to->unit = from->unit < to->unit ? from->unit : to->unit;
        table_is_exact_if(to, to->exact && from->exact);
    }
    free(before);
}
static void call_scale(fuzz_input *in, table *t) {
    int halves;
    const float by = choose_weight(in, &halves);
    float *before = copy_of(t->s.cells, t->s.count);
    const cg_status s = cg_sketch_scale(&t->s, by);
    MUST(s == (fuzz_is_finite(by) ? CG_OK : CG_E_ARG));
    if (s != CG_OK) MUST(same_bits(before, t->s.cells, t->s.count));
    for (size_t i = 0; s == CG_OK && halves >= 0 && i < t->s.desc.n; i++) t->model[i] *= (double)by;
    if (s == CG_OK) {
        t->reach *= magnitude(by);
        t->unit *= halves == 1 ? 0.5 : 1.0;
        table_is_exact_if(t, halves >= 0);
    }
    free(before);
}
static void call_zero(fuzz_input *in, table *t) {
    const size_t count = fuzz_below(in, 8);
    uint64_t *index = (uint64_t *)get_bytes(8 * count);
    float *before = copy_of(t->s.cells, t->s.count);
    int inside = 1;
    cg_status s;
    for (size_t i = 0; i < count; i++) {
        index[i] = fuzz_word(in, 2) % (t->s.desc.n + 1);
        inside &= index[i] < t->s.desc.n;
    }
    s = cg_sketch_zero(&t->s, index, count);
    MUST(s == (!inside ? CG_E_ARG : t->s.levels ? CG_E_UNSUPPORTED : CG_OK));
    if (s != CG_OK) MUST(same_bits(before, t->s.cells, t->s.count));
    for (size_t i = 0; s == CG_OK && i < count; i++) MUST(cg_sketch_estimate(&t->s, index[i]) == 0.0f);
    if (s == CG_OK && count) t->exact = 0;
    free(before);
    free(index);
}

/* ---- heavy hitters ---- */

static void check_heavy(const table *t, const float *all, const uint64_t *index, const float *value, size_t count) {
    for (size_t i = 0; i < count; i++) {
        MUST(index[i] < t->s.desc.n && (!i || index[i] > index[i - 1]));
        MUST(fuzz_bits(value[i]) == fuzz_bits(all[index[i]]));
        MUST(fuzz_bits(value[i]) == fuzz_bits(cg_sketch_estimate(&t->s, index[i])));
    }
}
static void call_heavy(fuzz_input *in, const table *t) {
    static const double taus[] = { 0.001, 0.03, 0.1, 0.5, 1.5, 1e300 };
    const size_t n = t->s.desc.n, asked = fuzz_byte(in) % 64 == 63 ? SIZE_MAX / 2 : fuzz_below(in, 400),
                 k = asked < n ? asked : n, bytes = cg_sketch_heavy_scratch(&t->s, asked);
    const uint32_t which = fuzz_below(in, 3);
    const double tau = taus[fuzz_below(in, 6)], norm = cg_sketch_norm(&t->s),
                 least = which == 1 ? tau * norm : norm; /* of heavymix: norm / sqrt(k), compared as squares */
    const int finite = all_finite(t->s.cells, t->s.count);
    uint64_t *index = (uint64_t *)get_bytes(8 * k);
    float *value = (float *)get_bytes(4 * k), *all = (float *)get_bytes(4 * n), smallest = 0.0f;
    unsigned char *chosen = (unsigned char *)calloc(n + 1, 1);
    void *scratch = get_bytes(bytes);
    size_t count = k;
    cg_status s;
    MUST(chosen && cg_sketch_estimate_all(&t->s, all, n) == CG_OK);
    if (which == 0) s = cg_sketch_heavy(&t->s, asked, index, value, scratch, bytes);
    else if (which == 1) s = cg_sketch_heavy_above(&t->s, tau, asked, index, value, &count, scratch, bytes);
    else s = cg_sketch_heavymix(&t->s, asked, NULL, index, value, scratch, bytes);
    MUST(s == (k && !finite ? CG_E_NONFINITE : CG_OK));
    if (s == CG_OK) {
        MUST(count <= k);
        check_heavy(t, all, index, value, count);
        for (size_t i = 0; i < count; i++) {
            chosen[index[i]] = 1;
            if (!i || magnitude(value[i]) < (double)smallest) smallest = (float)magnitude(value[i]);
            if (which == 1) MUST(magnitude(value[i]) >= least);
        }
        for (size_t i = 0; i < n && k && !t->s.levels; i++) {
            const double m = magnitude(all[i]);
            if (chosen[i] || (which == 1 && count < k && norm == 0.0)) continue;
            if (which == 0 || (which == 1 && count == k)) MUST(m <= (double)smallest);
            else if (which == 1) MUST(m < least);
            else if (m * m * (double)k > least * least * 1.000001) MUST(m <= (double)smallest);
        }
    }
    free(scratch);
    free(chosen);
    free(all);
    free(value);
    free(index);
}

/* ---- packets ---- */

static void call_packet(fuzz_input *in, const table *from, table *to) {
    const uint32_t how = fuzz_byte(in);
    const cg_op dense = cg_dense(), op = how & 1 ? fuzz_op(in, from->s.count) : dense;
    const size_t bound = cg_sketch_bound(&from->s, &op), bytes = cg_sketch_scratch(&from->s, &op);
    const int finite = all_finite(from->s.cells, from->s.count), own = to == from;
    uint8_t *packet = (uint8_t *)get_bytes(bound + 4);
    void *scratch = get_bytes(bytes);
    float *before = copy_of(to->s.cells, to->s.count), *sent = copy_of(from->s.cells, from->s.count);
    int halves;
    const float alpha = how & 2 ? choose_weight(in, &halves) : 1.0f, beta = how & 4 ? choose_weight(in, &halves) : 0.0f;
    uint64_t dice = fuzz_word(in, 2);
    size_t len;
    cg_tag tag = CG_ZERO;
    cg_status s;
    MUST(bound);
    tag.rank = how >> 6;
    s = cg_sketch_pack(&from->s, &op, &tag, packet, bound, &len, scratch, bytes);
    if (!(how & 1)) MUST(s == (finite ? CG_OK : CG_E_NONFINITE));
    if (s == CG_OK && how & 8) {
        for (uint32_t times = 1 + fuzz_roll(&dice, 3); times; times--)
            len = fuzz_packet_mutate(packet, len, bound + 4, &dice);
        if (how & 16) fuzz_seal(packet, len);
        if (how & 32) fuzz_store(packet + 80, 8, to->s.count), fuzz_seal(packet, len);
    }
    if (s == CG_OK) {
        uint8_t *exact = (uint8_t *)get_bytes(len);
        memcpy(exact, packet, len);
        s = cg_sketch_unpack(&to->s, exact, len, alpha, beta);
        if (s != CG_OK) MUST(same_bits(before, to->s.cells, to->s.count));
        if (!fuzz_is_finite(alpha) || !fuzz_is_finite(beta)) MUST(s != CG_OK);
        else if (own && !(how & 8) && !op.select.id) MUST(s == CG_OK);
        if (s == CG_OK && !(how & 15)) MUST(same_bits(sent, to->s.cells, to->s.count));
        if (s == CG_OK && (how & 15 || !own)) to->exact = 0;
        free(exact);
    }
    free(sent);
    free(before);
    free(scratch);
    free(packet);
}

/* ---- ranks ---- */

typedef struct group {
    int size, which, steps; /* which: 0 a sketch, 1 Sketched-SGD, 2 FetchSGD */
    cg_sketch_desc sketch;
    cg_sketched_desc sketched;
    cg_fetched_desc fetched;
    cg_exchange_desc desc;
    uint32_t style, wrong;
    cg_status status[RANKS_MOST][4];
    float *result[RANKS_MOST], *own[RANKS_MOST]; /* the last result, and what the state is: cells, or U and E */
    size_t result_len, own_len;
} group;

static void rank_sketch(group *g, int rank, const cg_transport *t) {
    table mine;
    float *x = (float *)get_bytes(4 * g->sketch.n), *before;
    void *mem;
    size_t bytes;
    cg_report report;
    table_open(&mine, &g->sketch);
    fuzz_fill(x, g->sketch.n, g->style, (uint64_t)rank);
    MUST(cg_sketch_add(&mine.s, x, g->sketch.n, 1.0f) == CG_OK);
    before = copy_of(mine.s.cells, mine.s.count);
    bytes = cg_sketch_exchange_memory(&mine.s, &g->desc, t);
    mem = get_bytes(bytes);
    g->status[rank][0] = cg_sketch_exchange(&mine.s, &g->desc, t, mem, bytes, &report);
    MUST(report.why && report.rank >= -1 && report.rank < g->size);
    if (g->status[rank][0] != CG_OK) MUST(same_bits(before, mine.s.cells, mine.s.count));
    g->result[rank] = copy_of(mine.s.cells, mine.s.count);
    g->result_len = mine.s.count;
    free(before);
    free(mem);
    free(x);
    table_close(&mine);
}
static float plus(float a, float b) { /* one rounding, and cut off as Sketched-SGD does */
    volatile float sum = a + b;
    const float most = 7.922816251426434e28f;
    return sum > most ? most : sum < -most ? -most : sum;
}
static void rank_sketched(group *g, int rank, const cg_transport *t) {
    const size_t n = g->sketch.n, bytes = cg_sketched_memory(&g->sketched);
    void *state = get_bytes(bytes), *mem;
    float *grad = (float *)get_bytes(4 * n);
    cg_sketched sgd;
    cg_report report;
    MUST(bytes && cg_sketched_init(&sgd, &g->sketched, state, bytes) == CG_OK);
    g->desc.tag.step = 0;
    for (int step = 0; step < g->steps; step++) {
        cg_exchange_desc d = g->desc;
        float *put, *before = copy_of(sgd.error, n);
        size_t room, taken = 0;
        cg_status s;
        d.tag.step = (uint64_t)step;
        fuzz_fill(grad, n, g->style, (uint64_t)rank + 7 * (uint64_t)step);
        if (g->wrong == (uint32_t)(rank + 4 * step) && n) grad[n - 1] = fuzz_wrong(g->wrong);
        put = copy_of(grad, n);
        room = cg_sketched_exchange_memory(&sgd, &d, t);
        mem = get_bytes(room);
        s = cg_sketched_exchange(&sgd, &d, t, grad, mem, room, &report);
        g->status[rank][step] = s;
        MUST(all_finite(sgd.error, n) && report.why && report.rank >= -1 && report.rank < g->size);
        if (s != CG_OK) MUST(same_bits(put, grad, n));
        else MUST(all_finite(grad, n));
        for (size_t i = 0; i < n && g->sketched.momentum == 0.0f; i++) {
            const float sum = plus(before[i], put[i]);
            if (s == CG_OK) {
                MUST(sgd.error[i] == sum || sgd.error[i] == 0.0f);
                if (grad[i] != 0.0f) MUST(sgd.error[i] == 0.0f);
                taken += grad[i] != 0.0f;
            } else MUST(sgd.error[i] == sum || fuzz_bits(sgd.error[i]) == fuzz_bits(before[i]));
        }
        MUST(taken <= g->sketched.k);
        free(before);
        free(put);
        free(mem);
        g->steps = s == CG_OK ? g->steps : step + 1; /* the others have been told */
    }
    g->result[rank] = copy_of(grad, n);
    g->result_len = n;
    free(grad);
    free(state);
}
static void rank_fetched(group *g, int rank, const cg_transport *t) {
    const size_t n = g->sketch.n, bytes = cg_fetched_memory(&g->fetched);
    void *state = get_bytes(bytes), *mem;
    float *grad = (float *)get_bytes(4 * n);
    cg_fetched sgd;
    cg_report report;
    if (!bytes) { /* it has groups */
        MUST(g->sketch.groups && cg_fetched_init(&sgd, &g->fetched, state, bytes) == CG_E_UNSUPPORTED);
        g->steps = 0;
    } else MUST(cg_fetched_init(&sgd, &g->fetched, state, bytes) == CG_OK);
    for (int step = 0; step < g->steps; step++) {
        cg_exchange_desc d = g->desc;
        const size_t count = sgd.error.count;
        float *put, *error = copy_of(sgd.error.cells, count), *momentum = copy_of(sgd.momentum.cells, count);
        size_t room;
        cg_status s;
        d.tag.step = (uint64_t)step;
        fuzz_fill(grad, n, g->style, (uint64_t)rank + 7 * (uint64_t)step);
        if (g->wrong == (uint32_t)(rank + 4 * step) && n) grad[n - 1] = fuzz_wrong(g->wrong);
        put = copy_of(grad, n);
        room = cg_fetched_exchange_memory(&sgd, &d, t);
        mem = get_bytes(room);
        s = cg_fetched_exchange(&sgd, &d, t, grad, mem, room, &report);
        g->status[rank][step] = s;
        MUST(report.why && report.rank >= -1 && report.rank < g->size);
        if (s != CG_OK)
            MUST(same_bits(put, grad, n) && same_bits(error, sgd.error.cells, count) &&
                same_bits(momentum, sgd.momentum.cells, count));
        else MUST(all_finite(grad, n) && all_finite(sgd.error.cells, count) && all_finite(sgd.momentum.cells, count));
        if (step == g->steps - 1 || s != CG_OK) {
            free(g->own[rank]);
            g->own[rank] = copy_of(sgd.error.cells, count);
            g->own_len = count;
        }
        free(put);
        free(error);
        free(momentum);
        free(mem);
        g->steps = s == CG_OK ? g->steps : step + 1;
    }
    g->result[rank] = copy_of(grad, n);
    g->result_len = n;
    free(grad);
    free(state);
}
static void rank_job(int rank, const cg_transport *t, void *user) {
    group *g = (group *)user;
    if (g->which == 0) rank_sketch(g, rank, t);
    else if (g->which == 1) rank_sketched(g, rank, t);
    else rank_fetched(g, rank, t);
}
static void call_ranks(fuzz_input *in, const cg_sketch_desc *desc) {
    static const int masks[] = { SIM_SENDRECV, SIM_ALL, SIM_ALLGATHER, SIM_ALLREDUCE };
    static const float momenta[] = { 0.0f, 0.9f, 0.0f, 0.5f };
    group g;
    fuzz_input hits = { in->at, 0 };
    uint32_t how = fuzz_byte(in), mask, many;
    memset(&g, 0, sizeof g);
    g.size = 1 + (int)(how & 3);
    g.which = (int)(how >> 2) % 3;
    g.steps = g.which ? 1 + (int)(how >> 5 & 1) : 1;
    mask = fuzz_byte(in);
    g.sketch = *desc;
    g.sketched.sketch = g.fetched.sketch = *desc;
    g.sketched.k = g.fetched.k = 1 + fuzz_below(in, 60);
    g.sketched.candidates = (int)(mask >> 2 & 3);
    g.sketched.momentum = g.fetched.momentum = momenta[mask >> 4 & 3];
    g.sketched.mix = (int)(mask >> 6 & 1);
    g.desc.route = fuzz_below(in, 12) % 10;
    if (g.which == 0 && how & 64) g.desc.op = fuzz_op(in, 0);
    g.style = fuzz_byte(in);
    g.style = g.style & 1 ? FUZZ_GRID : g.style / 2 % FUZZ_STYLES;
    g.wrong = fuzz_byte(in);
    many = fuzz_byte(in) % 4;
    hits.at = in->at;
    hits.left = in->left < many * RANKS_HIT_BYTES ? in->left : many * RANKS_HIT_BYTES;
    in->at += hits.left;
    in->left -= hits.left;
    ranks_read_hits(&world, &hits, g.size, 16);
    ranks_run_calls(&world, g.size, masks[mask & 3], (int)(mask >> 7), rank_job, &g);
    for (int r = 1; r < g.size && !world.changed; r++) {
        for (int step = 0; step < g.steps; step++) MUST((g.status[r][step] == CG_OK) == (g.status[0][step] == CG_OK));
        if (g.steps && g.status[0][g.steps - 1] == CG_OK) {
            MUST(same_bits(g.result[r], g.result[0], g.result_len));
            if (g.own[0]) MUST(same_bits(g.own[r], g.own[0], g.own_len));
        }
    }
    for (int r = 0; r < g.size; r++) {
        free(g.result[r]);
        free(g.own[r]);
    }
}

/* ---- descriptions that cannot be ---- */

static void call_refused(fuzz_input *in) {
    uint64_t dice = fuzz_word(in, 4);
    cg_sketch_desc d = choose_desc(in);
    cg_sketch s, before;
    size_t bytes;
    d.rows = (int)(uint32_t)fuzz_interesting((uint64_t)d.rows, &dice);
    if (fuzz_roll(&dice, 2)) d.cols = (size_t)fuzz_interesting(d.cols, &dice);
    if (fuzz_roll(&dice, 2)) d.n = (size_t)fuzz_interesting(d.n, &dice);
    if (fuzz_roll(&dice, 2)) d.groups = (size_t)fuzz_interesting(d.groups, &dice);
    memset(&s, 0x5a, sizeof s);
    before = s;
    bytes = cg_sketch_memory(&d);
    if (bytes && bytes < 1 << 20) return; /* it can be, then */
    MUST(cg_sketch_init(&s, &d, &dice, sizeof dice) == (bytes ? CG_E_MEMORY : CG_E_ARG));
    MUST(!memcmp(&s, &before, sizeof s));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input in = { data, size };
    const cg_sketch_desc a = choose_desc(&in);
    cg_sketch_desc b = a;
    const uint32_t other = fuzz_byte(&in);
    MUST(cg_isa_force(other & 1 ? CG_ISA_SCALAR : CG_ISA_AUTO) == CG_OK);
    if (other & 2) b.seed++;
    if (other & 4) b.groups += 3;
    if (other & 8) b.n++;
    table_open(&tables[0], &a);
    table_open(&tables[1], &a);
    table_open(&tables[2], &b);
    for (int calls = 0; calls < MOST_CALLS && in.left; calls++) {
        const uint32_t what = fuzz_byte(&in);
        table *t = &tables[what >> 4 & 3 ? what >> 4 & 1 : 2], *from = &tables[what >> 6 & 3 ? what >> 6 & 1 : 2];
        switch (what & 15) {
        case 0:
        case 1:
        case 2: call_add(&in, t); break;
        case 3: call_add_list(&in, t); break;
        case 4: call_merge(t, from); break;
        case 5: call_scale(&in, t); break;
        case 6: call_zero(&in, t); break;
        case 7:
        case 8:
        case 9: call_heavy(&in, t); break;
        case 10:
        case 11: call_packet(&in, from, t); break;
        case 12:
        case 13: call_ranks(&in, &t->s.desc); break;
        case 14: call_refused(&in); break;
        default: cg_sketch_clear(&t->s), memset(t->model, 0, t->s.desc.n * sizeof *t->model), t->exact = 1;
        }
        table_check(t);
    }
    for (int i = 0; i < TABLES; i++) table_close(&tables[i]);
    MUST(cg_isa_force(CG_ISA_AUTO) == CG_OK);
    return 0;
}

FUZZ_FN size_t fuzz_fresh(uint32_t which, uint64_t *dice, uint8_t *out, size_t cap) {
    MUST(cap >= 128);
    fuzz_bytes(dice, out, 128);
    if (which % 64) out[0] = (uint8_t)(out[0] % 250); /* few of them long */
    return 128;
}
