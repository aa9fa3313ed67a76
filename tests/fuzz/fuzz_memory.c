/* clang -g -I. -Itests -pthread -fsanitize=fuzzer,address,undefined tests/fuzz/fuzz_memory.c -o fuzz && ./fuzz CORPUS
   cc -g -O1 -I. -Itests -DFUZZ_MAIN -pthread tests/fuzz/fuzz_memory.c -o fuzz && ./fuzz 10000

   States of error feedback of every kind, and rows of calls on them in any order, with arguments of every kind. Beside
   each state stands its book: the vectors that the manual's formulas give in double precision, for the gradients that
   were given and the contributions that were used, with a bound of the rounding. After a call that failed the state is
   as it was, and its report fits the status. Saved states come back as they were, and damaged ones with a right
   checksum are refused or leave a state that works. Ranks make whole steps, of one vector or of layers, with messages
   changed on their way; undisturbed ones end alike, and what they have used adds up to the result. */

#define COMPGRAD_IMPLEMENTATION
#include "ranks.h"
#include "compgrad_ef.h"

enum { STATES = 2, MOST_CALLS = 16 };
typedef struct options { /* what a description refers to */
    cg_ef_desc desc;
    cg_ef_rule rule[2];
    float table[4];
    cg_op other; /* of the policy */
} options;
typedef struct state {
    cg_ef ef;
    const options *opt;
    unsigned char *mem;
    size_t n;
    int known;                /* whether the book is right */
    int broken;               /* the caller has broken a promise: values may be anything */
    double *e, *u, *received; /* the book: as the manual names them, but for h, which is e, and for v of EF21, u */
    double *e_slack, *u_slack, *received_slack;
    double *e_before, *u_before; /* before the last step */
    float *grad, *aux, *sent;    /* of the last step; sent: its contribution */
    unsigned char *packet;
    size_t len;
    cg_extra side;
    double clip; /* the factor of clipping by norm */
    float rate;
} state;
static state states[STATES];
static options plans[STATES];
static ranks world;

static void *get_bytes(size_t bytes) { /* exactly, for the sanitizer */
    void *p = malloc(bytes + !bytes);
    MUST(p);
    return p;
}
static double size_of(double v) { return v < 0 ? -v : v; }
static double root(double v) { /* Newton's, from above */
    double r = v > 1.0 ? v : 1.0, next = 0.5 * (r + v / r);
    while (next < r) r = next, next = 0.5 * (r + v / r);
    return r;
}
static int all_finite(const float *v, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!fuzz_is_finite(v[i])) return 0;
    return 1;
}
static int is_difference(const cg_ef_desc *d) {
    return d->kind == CG_EF_EF21 || d->kind == CG_EF_DIANA || d->kind == CG_EF_LAQ;
}
static int keeps_received(const cg_ef_desc *d) { return is_difference(d) || d->kind == CG_EF_ONEBIT_ADAM; }
static void check_report(const cg_report *r, cg_status s, size_t n) {
    char text[400];
    MUST(r->status == (uint32_t)s && r->why && r->why[0]);
    MUST(cg_report_print(r, text, sizeof text) == CG_OK && text[0]);
    MUST((s == CG_OK) == !strncmp(r->why, "ok", 2));
    if (s != CG_E_ARG && s != CG_E_CAPACITY && s != CG_E_MEMORY) MUST(r->need == 0);
    MUST(r->at == CG_NO_INDEX || (s == CG_E_NONFINITE && r->at < n));
}
static void check_own_report(const state *t, cg_status s) {
    cg_report r;
    cg_ef_report(&t->ef, &r);
    check_report(&r, s, t->n);
    if (s == CG_E_CAPACITY || s == CG_E_MEMORY) MUST(r.need);
}

/* ---- what a state is, to see whether a call has changed it ---- */

static size_t put(unsigned char *to, size_t at, const void *from, size_t bytes) {
    if (to && bytes) memcpy(to + at, from, bytes);
    return at + bytes;
}
static size_t picture_at(const cg_ef *f, unsigned char *to) {
    const size_t n = f->desc.n;
    size_t at = 0;
    at = put(to, at, &f->pending, sizeof f->pending);
    at = put(to, at, &f->steps, sizeof f->steps);
    at = put(to, at, &f->silent, sizeof f->silent);
    at = put(to, at, &f->moves, sizeof f->moves);
    at = put(to, at, f->moved, sizeof f->moved);
    at = put(to, at, &f->scale, sizeof f->scale);
    at = put(to, at, &f->hint, sizeof f->hint);
    at = put(to, at, &f->threshold, sizeof f->threshold);
    at = put(to, at, &f->reach, sizeof f->reach);
    at = put(to, at, &f->size, sizeof f->size);
    at = put(to, at, &f->error, sizeof f->error);
    at = put(to, at, &f->error_sent, sizeof f->error_sent);
    at = put(to, at, &f->score, sizeof f->score);
    at = put(to, at, &f->mark, sizeof f->mark);
    at = put(to, at, &f->carry_first, sizeof f->carry_first);
    at = put(to, at, &f->desc.rate, sizeof f->desc.rate);
    at = put(to, at, &f->desc.op, sizeof f->desc.op);
    for (int i = 0; i < 3; i++)
        if (f->vector[i]) at = put(to, at, f->vector[i], 4 * n);
    if (f->bytes) at = put(to, at, f->bytes, n + 2 * ((n + 63) / 64));
    if (f->warm) at = put(to, at, f->warm, 4 * f->warm_count);
    if (f->carry) at = put(to, at, f->carry, 4 * f->desc.carry);
    return at;
}
static unsigned char *picture(const cg_ef *f) {
    unsigned char *p = (unsigned char *)get_bytes(picture_at(f, NULL));
    picture_at(f, p);
    return p;
}
static int is_as_in(const cg_ef *f, unsigned char *before) { /* which is freed */
    unsigned char *now = picture(f);
    const int same = !memcmp(now, before, picture_at(f, NULL));
    free(now);
    free(before);
    return same;
}

/* ---- descriptions ---- */

static cg_op choose_policy(void *user, const cg_tag *tag, size_t n, cg_op planned) {
    const options *o = (const options *)user;
    (void)n;
    return tag->step % 3 == 1 ? o->other : planned;
}
static float choose_fraction(fuzz_input *in) {
    static const float some[] = { 0.0f, 0.0f, 0.9f, 0.5f, 0.1f, 0.999f, 1.0f, 0.25f };
    return some[fuzz_byte(in) % 8];
}
static void choose_schedule(fuzz_input *in, options *o) {
    const uint32_t how = fuzz_byte(in);
    cg_ef_desc *d = &o->desc;
    if (how & 1) d->dense_steps = fuzz_byte(in) % 3;
    if (how & 2) d->small = fuzz_byte(in);
    if (how & 4) {
        d->warmup.kind = fuzz_byte(in) % 5;
        d->warmup.stages = fuzz_byte(in) % 5;
        d->warmup.period = fuzz_byte(in) % 3;
        d->warmup.table = o->table;
        for (int i = 0; i < 4; i++) o->table[i] = (float)(1 + fuzz_byte(in)) / 256.0f;
    }
    if (how & 8) {
        d->rules = o->rule;
        d->rule_count = fuzz_byte(in) % 3;
        for (size_t i = 0; i < d->rule_count; i++) {
            o->rule[i].first = fuzz_byte(in) % 3;
            o->rule[i].last = o->rule[i].first + fuzz_byte(in) % 3;
            o->rule[i].n_from = fuzz_byte(in);
            o->rule[i].op = fuzz_op(in, d->n);
        }
    }
    if (how % 16 == 15) {
        o->other = fuzz_op(in, d->n);
        d->policy = choose_policy;
        d->policy_user = o;
    }
}
static void choose_options(fuzz_input *in, options *o) {
    const uint32_t how = fuzz_byte(in), more = fuzz_byte(in);
    cg_ef_desc *d = &o->desc;
    char text[64];
    memset(o, 0, sizeof *o);
    d->kind = fuzz_byte(in) % 11;
    d->n = 1 + (how & 1 ? fuzz_below(in, 256) : how & 2 ? fuzz_below(in, 3000) : fuzz_below(in, 20));
    if (how >= 254) d->n += 65530;
    d->op = fuzz_op(in, d->n);
    if (d->kind == CG_EF_VARIANCE) {
        snprintf(text, sizeof text, "variance:%u%s", 1 + fuzz_byte(in) % 3, how & 4 ? "|absmax:4:64" : "");
        MUST(cg_op_parse(&d->op, text) == CG_OK);
    }
    if (d->kind == CG_EF_LAQ) {
        d->laq_step = 0.125f * (float)(1 + fuzz_byte(in));
        d->laq_patience = fuzz_byte(in) % 4;
        d->laq_weight = choose_fraction(in);
        if (how & 8) d->op = cg_nearest(cg_minmax(1 + (int)(more & 7), (uint32_t)d->n));
    }
    if (d->kind == CG_EF_MOMENTUM || d->kind == CG_EF_SIGNUM || d->kind == CG_EF_EF21 || d->kind == CG_EF_ONEBIT_ADAM)
        d->momentum = choose_fraction(in);
    if (d->momentum == 1.0f) d->momentum = 0.99f;
    d->nesterov = d->kind == CG_EF_MOMENTUM && (how & 16);
    if (how & 32) d->decay = choose_fraction(in);
    if (more & 8) d->alpha = choose_fraction(in);
    if (more & 16) d->clip = 0.01f * (float)fuzz_byte(in);
    d->clip_by = more >> 5 & 1;
    d->workers = (int)(more & 3);
    if (more & 64) d->rate = fuzz_byte(in) % 8 ? (float)fuzz_byte(in) / 64.0f - 1.0f : 1e30f;
    d->bytes = d->kind <= CG_EF_ECQ && (how & 64);
    if (more >= 200 && !is_difference(d) && d->kind != CG_EF_SIGNUM) d->reset = fuzz_byte(in) % 4;
    d->finite = how % 16 == 5;
    if (more % 16 == 3) d->carry = fuzz_below(in, 256) % 2 ? d->n : fuzz_byte(in) % (d->n + 1);
    choose_schedule(in, o);
}
/* Some field becomes any value. */
static void spoil(cg_ef_desc *d, uint64_t *dice) {
    float *const f[] = { &d->momentum, &d->clip, &d->decay, &d->rate, &d->alpha, &d->laq_step, &d->laq_weight };
    const uint32_t any = (uint32_t)fuzz_interesting(1, dice);
    switch (fuzz_roll(dice, 14)) {
    case 0: d->kind = any; break;
    case 1: d->workers = (int)any; break;
    case 2: d->clip_by = any; break;
    case 3: d->warmup.kind = any; break;
    case 4: d->warmup.stages = any; break;
    case 5: d->n = (size_t)fuzz_interesting(d->n, dice); break;
    case 6: d->carry = (size_t)fuzz_interesting(d->n, dice); break;
    case 7: d->bytes = 1; break;
    case 8: d->reset = any; break;
    case 9: d->warmup.period = fuzz_interesting(1, dice); break;
    default: *f[fuzz_roll(dice, 7)] = fuzz_from_bits(any);
    }
    if (d->n > 1 << 17 && d->rule_count) d->rule_count = 0;
}

/* ---- a state and its book ---- */

static double *zeros(size_t n) {
    double *v = (double *)calloc(n + 1, sizeof *v);
    MUST(v);
    return v;
}
static void state_close(state *t) {
    double *const books[] = { t->e, t->u, t->received, t->e_slack, t->u_slack, t->received_slack, t->e_before,
        t->u_before };
    for (size_t i = 0; i < sizeof books / sizeof *books; i++) free(books[i]);
    free(t->mem);
    free(t->grad);
    free(t->aux);
    free(t->sent);
    free(t->packet);
    free((void *)(uintptr_t)t->side.support);
    memset(t, 0, sizeof *t);
}
/* Whether the description is accepted; then *t is open. A refused state answers every call. */
static int state_open(state *t, const options *o, size_t off) {
    const size_t bytes = cg_ef_memory(&o->desc), bound = cg_ef_bound(&o->desc);
    cg_status s;
    memset(t, 0, sizeof *t);
    memset(&t->ef, 0x5a, sizeof t->ef);
    t->opt = o;
    t->n = o->desc.n;
    MUST(!bytes == !bound || o->desc.op.quantize.id >= CG_QUANTIZE_USER);
    if (!bytes || bytes > 1 << 22) {
        s = cg_ef_init(&t->ef, &o->desc, &s, 1);
        MUST(bytes ? s == CG_E_MEMORY : s == CG_E_ARG || s == CG_E_UNSUPPORTED);
        check_own_report(t, s);
        MUST(cg_ef_rollback(&t->ef, NULL, 0) == CG_E_STATE && cg_ef_set_rate(&t->ef, 2.0f) == CG_E_STATE);
        return 0;
    }
    t->mem = (unsigned char *)get_bytes(bytes + off);
    memset(t->mem, 0xa5, bytes + off);
    s = cg_ef_init(&t->ef, &o->desc, t->mem + off, bytes - 65);
    MUST(s == CG_E_MEMORY);
    check_own_report(t, s);
    s = cg_ef_init(&t->ef, &o->desc, t->mem + off, bytes);
    MUST(s == CG_OK);
    check_own_report(t, s);
    t->e = zeros(t->n), t->u = zeros(t->n), t->received = zeros(t->n);
    t->e_slack = zeros(t->n), t->u_slack = zeros(t->n), t->received_slack = zeros(t->n);
    t->e_before = zeros(t->n), t->u_before = zeros(t->n);
    t->grad = (float *)get_bytes(4 * t->n);
    t->aux = (float *)get_bytes(4 * t->n);
    t->sent = (float *)get_bytes(4 * t->n);
    t->packet = (unsigned char *)get_bytes(bound + 4);
    t->known = 1;
    t->rate = o->desc.rate != 0.0f ? o->desc.rate : 1.0f;
    return 1;
}
/* Compares vector `which` with its book. factor: what it is stored by. */
static void book_compare(const state *t, int which, const double *book, const double *slack, double factor) {
    float *now = (float *)get_bytes(4 * t->n);
    const cg_status s = cg_ef_read(&t->ef, which, now, t->n);
    MUST(s == CG_OK || s == CG_E_UNSUPPORTED);
    for (size_t i = 0; s == CG_OK && i < t->n; i++) {
        MUST(fuzz_is_finite(now[i]));
        if (t->known) MUST(size_of((double)now[i] / factor - book[i]) <= slack[i]);
    }
    free(now);
}
static double stored_by(const state *t) { return is_difference(&t->opt->desc) ? 1.0 : (double)cg_ef_scale(&t->ef); }
static void book_check(const state *t) {
    const cg_ef_desc *d = &t->opt->desc;
    MUST(cg_ef_scale(&t->ef) > 0.0f && cg_ef_scale(&t->ef) <= 1.0f);
    if (t->ef.pending || t->broken) return;
    book_compare(t, CG_EF_ERROR, t->e, t->e_slack, stored_by(t));
    if (d->kind != CG_EF_VARIANCE) book_compare(t, CG_EF_VELOCITY, t->u, t->u_slack, stored_by(t));
    book_compare(t, CG_EF_RECEIVED, t->received, t->received_slack, 1.0);
    if (t->ef.carry) MUST(all_finite(t->ef.carry, d->carry));
}
/* The book becomes what the state has. */
static void book_take(state *t) {
    float *now = (float *)get_bytes(4 * t->n);
    double *const books[] = { t->e, t->u, t->received },
                  *const slacks[] = { t->e_slack, t->u_slack, t->received_slack };
    t->known = stored_by(t) > 1e-6 && t->ef.steps < UINT64_MAX / 2; /* else damaged bytes said so */
    for (int which = 0; which < 3; which++) {
        const double by = which == CG_EF_RECEIVED ? 1.0 : stored_by(t);
        if (cg_ef_read(&t->ef, which, now, t->n) != CG_OK) memset(now, 0, 4 * t->n);
        for (size_t i = 0; i < t->n; i++) {
            books[which][i] = (double)now[i] / by;
            slacks[which][i] = 1e-7 * size_of(books[which][i]);
            if (size_of(books[which][i]) > 1e30) t->known = 0;
        }
    }
    free(now);
}
/* y = a y + b x, and what that may be off by. */
static void book_add(const state *t, double *y, double *slack, size_t i, double a, double b, double x) {
    const double lost = 1.6e-30 / stored_by(t); /* products below 2^-100 */
    slack[i] = size_of(a) * slack[i] + 1e-6 * (size_of(a * y[i]) + size_of(b * x)) + lost;
    y[i] = a * y[i] + b * x;
}
static double clipped(const state *t, float g) {
    const cg_ef_desc *d = &t->opt->desc;
    const double limit = (double)d->clip / root(d->workers > 1 ? d->workers : 1);
    double v = (double)g;
    if (d->clip != 0.0f && d->clip_by == CG_CLIP_VALUE) v = v > limit ? limit : v < -limit ? -limit : v;
    return v * t->clip * (double)t->rate;
}
/* An 8-bit residual is rounded three times in a step, by the largest of 64 neighbours. */
static void book_eight_bits(state *t, const double *largest) {
    for (size_t i = 0; i < t->n; i += 64) {
        double most = 0.0;
        for (size_t j = i; j < t->n && j < i + 64; j++) most = largest[j] > most ? largest[j] : most;
        for (size_t j = i; j < t->n && j < i + 64; j++) t->e_slack[j] += 0.03 * most;
    }
}
/* A step with gradient t->grad and contribution t->sent; cleared: where a sparse one has values, or NULL. mean: of the
   contributions; NULL: rolled back. steps: the counter after the step. */
static void book_step(state *t, const float *mean, const float *cleared, uint64_t steps) {
    const cg_ef_desc *d = &t->opt->desc;
    static const double decays[] = { 1, (double)0.8f, (double)0.1f, (double)0.9f, 1, 1, 1, 1, 1, 1, 1 };
    const double decay = d->decay != 0.0f ? (double)d->decay : decays[d->kind], m = (double)d->momentum,
                 alpha = d->kind == CG_EF_DIANA ? (double)d->alpha : 1.0;
    double *largest = zeros(t->n);
    if (d->kind == CG_EF_DIANA && d->alpha == 0.0f) t->known = 0; /* 1/(1 + w) */
    memcpy(t->e_before, t->e, t->n * sizeof *t->e);
    memcpy(t->u_before, t->u, t->n * sizeof *t->u);
    for (size_t i = 0; i < t->n; i++) {
        const double g = clipped(t, t->grad[i]), sent = mean ? (double)t->sent[i] : 0.0;
        double in = 1.0, keep = 1.0, out = 1.0; /* e = keep e + in g - out sent */
        largest[i] = t->e_slack[i] + size_of(t->e[i]) + size_of(g) + size_of(sent);
        if (d->kind == CG_EF_CLASSIC || d->kind == CG_EF_ECQ) keep = decay;
        if (d->kind == CG_EF_LOCO) in = out = 1.0 - decay;
        if (d->kind == CG_EF_SCALECOM) in = out = decay;
        if (d->kind == CG_EF_SIGNUM) keep = m, in = 1.0 - m, out = 0.0;
        if (d->kind == CG_EF_ONEBIT_ADAM) in = 1.0 - m;
        if (is_difference(d)) in = 0.0, out = -alpha;
        if (d->kind == CG_EF_MOMENTUM) {
            if (d->nesterov) book_add(t, t->u, t->u_slack, i, 1.0, 1.0, g);
            book_add(t, t->u, t->u_slack, i, m, d->nesterov ? 0.0 : 1.0, g);
            in = d->nesterov ? 1.0 : 0.0;
            t->e_slack[i] += t->u_slack[i];
            book_add(t, t->e, t->e_slack, i, 1.0, 1.0, t->u[i]);
            if (mean && cleared && cleared[i] == 0.0f) t->u[i] = 0.0, t->u_slack[i] = 0.0;
        }
        if (d->kind == CG_EF_EF21 && d->momentum != 0.0f)
            book_add(t, t->u, t->u_slack, i, steps == 1 ? 0.0 : m, steps == 1 ? 1.0 : 1.0 - m, g);
        if (d->kind == CG_EF_ONEBIT_ADAM && (mean || m > 0.0)) {
            const double before = t->e[i];
            book_add(t, t->e, t->e_slack, i, 1.0, m, t->received[i]);
            if (!mean) t->e[i] = before; /* it is taken back */
            t->e_slack[i] += t->received_slack[i];
        }
        book_add(t, t->e, t->e_slack, i, keep, in, g);
        book_add(t, t->e, t->e_slack, i, 1.0, -out, sent);
        if (mean && keeps_received(d))
            book_add(
                t, t->received, t->received_slack, i, d->kind == CG_EF_ONEBIT_ADAM ? 0.0 : 1.0, alpha, (double)mean[i]);
        if (size_of(t->e[i]) > 1e30 || size_of(t->u[i]) > 1e30 || size_of(t->received[i]) > 1e30 || largest[i] > 1e30)
            t->known = 0; /* it may have been cut off */
    }
    if (d->bytes) book_eight_bits(t, largest);
    for (size_t i = 0; d->reset && steps % d->reset == 0 && i < t->n; i++) t->e[i] = t->e_slack[i] = 0.0;
    free(largest);
}
/* After cg_ef_withdraw: each value is off by rounding, divided by the factor of what was there. */
static void book_withdraw(state *t, uint64_t steps) {
    const cg_ef_desc *d = &t->opt->desc;
    const double decay = d->decay != 0.0f ? (double)d->decay
        : d->kind == CG_EF_ECQ            ? 0.9
                                          : 1.0,
                 m = (double)d->momentum;
    const double e_by = d->kind == CG_EF_CLASSIC || d->kind == CG_EF_ECQ ? decay : d->kind == CG_EF_SIGNUM ? m : 1.0;
    double *largest = zeros(t->n);
    const int forgotten = d->reset && (steps + 1) % d->reset == 0, starts = d->kind == CG_EF_EF21 && steps == 0;
    for (size_t i = 0; i < t->n; i++) {
        const double sizes = size_of(t->e_before[i]) + size_of(t->u_before[i]) + size_of(clipped(t, t->grad[i]));
        largest[i] = (sizes + t->e_slack[i]) / (e_by > 0.0 ? e_by : 1.0);
        if (!forgotten && !is_difference(d)) {
            t->e[i] = e_by > 0.0 ? t->e_before[i] : 0.0;
            t->e_slack[i] = e_by > 0.0 ? (t->e_slack[i] + t->u_slack[i] + 1e-6 * sizes) / e_by : 0.0;
        }
        t->u[i] = m > 0.0 && !starts ? t->u_before[i] : 0.0;
        t->u_slack[i] = m > 0.0 && !starts ? (t->u_slack[i] + 1e-6 * sizes) / m : 0.0;
        if (d->kind == CG_EF_EF21 && m <= 0.0) t->u[i] = 0.0;
    }
    if (d->bytes) book_eight_bits(t, largest);
    free(largest);
}

/* ---- a step in two halves ---- */

static void fill_grad(fuzz_input *in, state *t, uint32_t how) {
    const uint32_t style = how & 1 || t->opt->desc.finite ? how >> 1 & 3 : how >> 1 & 7;
    const uint64_t dice = fuzz_word(in, 2);
    double sum = 0.0;
    fuzz_fill(t->grad, t->n, style, dice);
    fuzz_fill(t->aux, t->n, FUZZ_MODERATE, dice + 1);
    for (size_t i = 0; i < t->n; i++) {
        if (t->aux[i] < 0.0f) t->aux[i] = -t->aux[i];
        sum += (double)t->grad[i] * (double)t->grad[i];
    }
    t->clip = 1.0;
    if (t->opt->desc.clip != 0.0f && t->opt->desc.clip_by == CG_CLIP_NORM) {
        const double limit = (double)t->opt->desc.clip / root(t->opt->desc.workers > 1 ? t->opt->desc.workers : 1);
        if (root(sum) > limit) t->clip = limit / root(sum);
        if (t->clip < 1e-30) t->known = 0; /* a factor that a float has not all digits of */
    }
}
/* What op needs beside the gradient; side->support is new. */
static void fill_side(state *t, const cg_op *op) {
    cg_tag none = CG_ZERO;
    free((void *)(uintptr_t)t->side.support);
    memset(&t->side, 0, sizeof t->side);
    if (op->select.id == CG_SELECT_GIVEN && t->n != GOLDEN_AGREED)
        MUST(golden_side(op, &none, t->aux, t->n, &t->side) == 0);
    if (op->select.id == CG_SELECT_BINS || t->opt->desc.kind == CG_EF_VARIANCE) t->side.aux = t->aux;
}
static void call_compress(fuzz_input *in, state *t) {
    const uint32_t how = fuzz_byte(in), odd = fuzz_byte(in);
    const cg_ef_desc *d = &t->opt->desc;
    const size_t bound = cg_ef_bound(&t->ef.desc);
    unsigned char *packet = (unsigned char *)get_bytes(bound + 4), *before = picture(&t->ef);
    const int was_pending = t->ef.pending;
    float *const grad = t->grad, *mine = (float *)get_bytes(4 * t->n), *aux = (float *)get_bytes(4 * t->n);
    const double clip = t->clip;
    cg_extra side = t->side;
    cg_tag tag = CG_ZERO;
    cg_op op;
    size_t cap = bound, len = 4711, wrong = t->n;
    cg_status s;
    tag.step = fuzz_byte(in) % 8;
    tag.tensor = fuzz_byte(in) % 4;
    tag.rank = fuzz_byte(in) % 8 ? 0 : 3;
    op = cg_ef_op(&t->ef, &tag);
    memcpy(mine, t->grad, 4 * t->n), memcpy(aux, t->aux, 4 * t->n);
    if (!was_pending) {
        fill_grad(in, t, how);
        fill_side(t, &op);
        side = t->side;
        if (odd % 32 == 1) t->grad[wrong = odd * 7 % t->n] = fuzz_wrong(odd);
        if (wrong < t->n && d->finite) t->broken = 1; /* it was promised */
    }
    if (odd % 32 == 2) side.aux = NULL;
    if (odd % 32 == 3) side.support = NULL;
    if (odd % 32 == 4) side.aux = t->aux;
    if (odd % 32 == 5) cap = bound / 2;
    if (odd % 32 == 6) cap = 0;
    s = cg_ef_compress_with(&t->ef, odd % 8 == 7 && !tag.step && !tag.tensor && !tag.rank ? NULL : &tag,
        odd % 32 == 8 ? NULL : &side, odd % 32 == 9 ? NULL : grad, odd % 32 == 10 ? NULL : packet, cap,
        odd % 32 == 11 ? NULL : &len);
    check_own_report(t, s);
    if (was_pending) MUST(s == CG_E_STATE && len == 4711);
    else if (s != CG_OK && odd % 32 != 11) MUST(len == 0);
    if (wrong < t->n && !t->broken) MUST(s != CG_OK);
    if (s != CG_OK) {
        MUST(is_as_in(&t->ef, before) || t->broken);
        if (was_pending) memcpy(t->grad, mine, 4 * t->n), memcpy(t->aux, aux, 4 * t->n), t->clip = clip;
        else MUST(!cg_ef_stats_of(&t->ef).kept || t->broken);
        MUST(t->broken || odd % 32 || was_pending || tag.rank || d->policy ||
            t->n == GOLDEN_AGREED); /* else nothing is wrong */
        free(packet);
    } else {
        free(before);
        MUST(len <= cap && t->ef.pending && cg_ef_stats_of(&t->ef).kept);
        if (!t->broken) MUST(cg_decode(&t->side, packet, len, 1.0f, 0.0f, t->sent, t->n) == CG_OK);
        free(t->packet);
        t->packet = packet;
        t->len = len;
    }
    free(mine);
    free(aux);
}
/* Where the packets of used have values, 0, elsewhere 1; returns 0 if the contribution is dense. */
static int find_cleared(const state *t, const unsigned char *used, float *cleared) {
    cg_info info;
    for (size_t i = 0; i < t->n; i++) cleared[i] = 1.0f;
    if (cg_inspect(used, t->len, &info) != CG_OK || info.n != t->n) return 0;
    if (info.op.transform.id && !info.op.sample.id) return 0; /* all values come back from a transform */
    if (info.op.select.id == CG_SELECT_GIVEN)
        return t->side.support && cg_clear(t->side.support, t->side.support_len, cleared, t->n) == CG_OK;
    return (info.op.sample.id || info.op.select.id) && cg_clear(used, t->len, cleared, t->n) == CG_OK;
}
static void call_commit(fuzz_input *in, state *t) {
    const uint32_t how = fuzz_byte(in), odd = fuzz_byte(in);
    const int was_pending = t->ef.pending, received = keeps_received(&t->opt->desc);
    const cg_extra *side = t->side.support ? &t->side : NULL;
    unsigned char *used = t->packet, *changed = NULL, *before = picture(&t->ef);
    float *mean = (float *)get_bytes(4 * t->n), *given, *cleared = (float *)get_bytes(4 * t->n);
    uint64_t dice = fuzz_word(in, 2);
    size_t len = was_pending ? t->len : 0;
    int fine, sparse;
    cg_status s, decodes;
    if (was_pending && how % 4 == 1) { /* another packet, which may be as good */
        changed = (unsigned char *)get_bytes(len + 16);
        memcpy(changed, used, len);
        for (uint32_t times = 1 + fuzz_roll(&dice, 2); times; times--)
            len = fuzz_packet_mutate(changed, len, len + 4, &dice);
        if (how & 4) fuzz_seal(changed, len);
        used = (unsigned char *)get_bytes(len);
        memcpy(used, changed, len);
        free(changed);
        changed = used;
    }
    fuzz_fill(mean, t->n, how & 8 && !(how & 128) ? FUZZ_HUGE : FUZZ_MODERATE, dice);
    if (odd % 16 == 1) mean[t->n / 2] = fuzz_wrong(odd);
    given = odd % 16 == 2 ? NULL : mean;
    if (odd % 16 == 3) used = NULL;
    decodes = cg_used_decode(side, used, len, 1.0f, 0.0f, t->sent, t->n);
    fine = !received || (given && odd % 16 != 1);
    s = odd & 16 ? cg_ef_commit_with(&t->ef, side, used, len, given)
        : side   ? cg_ef_commit_with(&t->ef, &t->side, used, len, given)
                 : cg_ef_commit(&t->ef, used, len, given);
    check_own_report(t, s);
    if (!was_pending) MUST(s == CG_E_STATE);
    else if (!fine) MUST(s == (given ? CG_E_NONFINITE : CG_E_ARG));
    else MUST(s == decodes);
    if (s != CG_OK) MUST(is_as_in(&t->ef, before));
    else {
        free(before);
        t->len = len;
        sparse = find_cleared(t, used, cleared);
        if (!all_finite(t->sent, t->n)) t->known = 0;
        if (t->opt->desc.bytes && changed) t->known = 0;
        if (received) { /* which has been overwritten by the result */
            float *again = (float *)get_bytes(4 * t->n);
            fuzz_fill(again, t->n, how & 8 && !(how & 128) ? FUZZ_HUGE : FUZZ_MODERATE, dice);
            for (size_t i = 0; t->known && is_difference(&t->opt->desc) && i < t->n; i++)
                MUST(size_of((double)mean[i] - (double)again[i] - t->received[i]) <=
                        t->received_slack[i] + 1e-6 * (size_of(t->received[i]) + size_of((double)again[i])) ||
                    size_of((double)again[i]) > 1e30);
            MUST(all_finite(mean, t->n) || t->broken);
            book_step(t, again, sparse ? cleared : NULL, t->ef.steps);
            free(again);
        } else book_step(t, t->sent, sparse ? cleared : NULL, t->ef.steps);
    }
    free(changed);
    free(mean);
    free(cleared);
}
static void call_rollback(state *t) {
    const int was_pending = t->ef.pending;
    unsigned char *before = picture(&t->ef);
    const cg_status s = cg_ef_rollback(&t->ef, NULL, 99);
    MUST(s == (was_pending ? CG_OK : CG_E_STATE));
    check_own_report(t, s);
    if (s != CG_OK) MUST(is_as_in(&t->ef, before));
    else {
        free(before);
        book_step(t, NULL, NULL, t->ef.steps);
    }
}
static void call_withdraw(fuzz_input *in, state *t) {
    const uint32_t odd = fuzz_byte(in);
    const int may = t->ef.may_withdraw && !t->ef.pending, variance = t->opt->desc.kind == CG_EF_VARIANCE;
    unsigned char *before = picture(&t->ef);
    float *grad = (float *)get_bytes(4 * t->n);
    cg_extra side = CG_ZERO;
    cg_status s;
    memcpy(grad, t->grad, 4 * t->n);
    if (odd % 16 == 1) grad[odd % t->n] = fuzz_wrong(odd);
    side.aux = t->aux;
    s = cg_ef_withdraw_with(&t->ef, variance && odd % 16 != 3 ? &side : NULL, odd % 16 == 2 ? NULL : grad);
    if (!may) MUST(s == CG_E_STATE);
    else if (odd % 16 == 2 || (odd % 16 == 3 && variance)) MUST(s == CG_E_ARG);
    else if (odd % 16 == 1) MUST(s == CG_E_NONFINITE);
    else if (!t->broken) MUST(s == CG_OK);
    if (s != CG_OK) MUST(is_as_in(&t->ef, before));
    else {
        free(before);
        book_withdraw(t, t->ef.steps);
        MUST(!cg_ef_stats_of(&t->ef).kept && cg_ef_withdraw_with(&t->ef, &side, grad) == CG_E_STATE);
    }
    free(grad);
}

/* ---- between steps ---- */

static void call_adjust(fuzz_input *in, state *t) {
    static const float factors[] = { 0.5f, 1.0f, -1.0f, 0.0f, 3.0f, 1e-30f, 3e38f };
    const uint32_t how = fuzz_byte(in), odd = fuzz_byte(in);
    const cg_ef_desc *d = &t->opt->desc;
    const int pending = t->ef.pending;
    const float by = odd % 8 < 7 ? factors[odd % 8] : fuzz_wrong(odd);
    unsigned char *before = picture(&t->ef);
    cg_status s = CG_OK;
    switch (how % 5) {
    case 0:
        s = cg_ef_rescale(&t->ef, by);
        if (!fuzz_is_finite(by)) MUST(s == CG_E_ARG);
        else if (pending) MUST(s == CG_E_STATE);
        else MUST(s == (is_difference(d) || d->kind == CG_EF_SIGNUM ? CG_E_UNSUPPORTED : CG_OK));
        for (size_t i = 0; s == CG_OK && i < t->n; i++) {
            book_add(t, t->e, t->e_slack, i, (double)by, 0.0, 0.0);
            if (size_of(t->e[i]) > 1e30) t->known = 0;
        }
        if (s == CG_OK && d->bytes) t->known &= by == 1.0f;
        break;
    case 1:
        s = cg_ef_set_rate(&t->ef, by);
        MUST(s == (!fuzz_is_finite(by) || by == 0.0f ? CG_E_ARG : pending ? CG_E_STATE : CG_OK));
        if (s == CG_OK) t->rate = by;
        break;
    case 2:
        s = cg_ef_set_ratio(&t->ef, (float)odd / 250.0f);
        if (pending) MUST(s == CG_E_STATE);
        check_own_report(t, s);
        break;
    case 3:
        s = cg_ef_moved(&t->ef, (double)by);
        MUST(s == (fuzz_is_finite(by) && by >= 0.0f ? CG_OK : CG_E_ARG));
        break;
    default:
        if (odd % 4) break;
        cg_ef_reset(&t->ef);
        t->broken = 0;
        book_take(t);
    }
    if (s != CG_OK) MUST(is_as_in(&t->ef, before));
    else free(before);
}
/* Calls without their arguments. */
static void call_nothing(state *t) {
    unsigned char *before = picture(&t->ef);
    float *v = (float *)get_bytes(4 * t->n + 4);
    cg_report report;
    size_t len = 5;
    MUST(cg_ef_init(NULL, &t->opt->desc, NULL, 0) == CG_E_ARG && !cg_ef_memory(NULL) && !cg_ef_bound(NULL));
    MUST(cg_ef_compress(NULL, NULL, v, v, 4, &len) == CG_E_ARG && len == 0);
    MUST(cg_ef_commit(NULL, v, 4, v) == CG_E_ARG && cg_ef_rollback(NULL, NULL, 0) == CG_E_ARG);
    MUST(cg_ef_withdraw(NULL, v) == CG_E_ARG && cg_ef_rescale(NULL, 1.0f) == CG_E_ARG);
    MUST(cg_ef_set_rate(NULL, 1.0f) == CG_E_ARG && cg_ef_set_ratio(NULL, 1.0f) == CG_E_ARG);
    MUST(cg_ef_moved(NULL, 1.0) == CG_E_ARG && cg_ef_save(NULL, v, 4, &len) == CG_E_ARG && !cg_ef_save_bytes(NULL));
    MUST(cg_ef_save(&t->ef, NULL, 1 << 20, &len) == CG_E_ARG && cg_ef_save(&t->ef, v, 0, NULL) == CG_E_ARG);
    MUST(cg_ef_load(NULL, v, 4) == CG_E_ARG && cg_ef_load_mean(&t->ef, NULL, NULL, 0) == CG_E_ARG);
    MUST(cg_ef_read(&t->ef, 3, v, t->n) != CG_OK && cg_ef_read(&t->ef, -1, v, t->n) != CG_OK);
    MUST(cg_ef_read(&t->ef, 0, v, t->n + 1) != CG_OK && cg_ef_read(&t->ef, 0, NULL, t->n) == CG_E_ARG);
    MUST(cg_ef_agree(&t->ef, NULL, NULL, NULL, 0, &report) == CG_E_ARG);
    check_report(&report, CG_E_ARG, t->n);
    MUST(cg_ef_exchange_layers(NULL, NULL, 1, 0, NULL, NULL, 0, &report) == CG_E_ARG);
    check_report(&report, CG_E_ARG, t->n);
    MUST(cg_ef_exchange(&t->ef, NULL, NULL, v, NULL, 0, &report) == CG_E_ARG);
    check_report(&report, CG_E_ARG, t->n);
    MUST(is_as_in(&t->ef, before));
    free(v);
}

/* ---- saved states ---- */

static unsigned char *save(const cg_ef *f, size_t *len) {
    const size_t bytes = cg_ef_save_bytes(f);
    unsigned char *p = (unsigned char *)get_bytes(bytes);
    MUST(cg_ef_save(f, p, bytes - 1, len) == CG_E_CAPACITY && *len == 0);
    MUST(cg_ef_save(f, p, bytes, len) == CG_OK && *len == bytes);
    return p;
}
/* Fields of the header, words of the sections, or the length. */
static size_t damage(unsigned char *p, size_t len, uint64_t *dice) {
    static const unsigned char longs[] = { 16, 24, 32, 40, 48, 56, 64, 72, 80, 144, 152, 160, 168, 176, 184, 208, 216 },
                               words[] = { 0, 4, 8, 12, 192, 196, 200, 204 };
    static const uint64_t doubles[] = { 0x7fefffffffffffff, 0x7ff0000000000000, 0x7ff8000000000000, 1,
        0xbff0000000000000, 0x3ff0000000000000, 0x47efffffe0000000 };
    const uint32_t how = fuzz_roll(dice, 8);
    size_t at;
    if (how < 3) {
        at = longs[fuzz_roll(dice, sizeof longs)];
        fuzz_store(
            p + at, 8, fuzz_roll(dice, 2) ? doubles[fuzz_roll(dice, 7)] : fuzz_interesting(fuzz_load(p + at, 8), dice));
    } else if (how < 5 || len <= 256) {
        at = words[fuzz_roll(dice, sizeof words)];
        fuzz_store(p + at, 4, fuzz_interesting(fuzz_load(p + at, 4), dice));
    } else if (how < 7) {
        at = 256 + 4 * (size_t)fuzz_roll(dice, (uint32_t)((len - 256) / 4));
        fuzz_store(p + at, 4, fuzz_interesting(fuzz_load(p + at, 4), dice));
    } else len -= 4 * (size_t)fuzz_roll(dice, 3);
    return len;
}
/* p[0, len) is refused, or *t becomes what it says. */
static void load_any(state *t, const unsigned char *p, size_t len) {
    unsigned char *blob = (unsigned char *)get_bytes(len), *before = picture(&t->ef);
    size_t other;
    cg_status s;
    memcpy(blob, p, len);
    s = cg_ef_load(&t->ef, blob, len);
    if (s != CG_OK) MUST(is_as_in(&t->ef, before));
    else {
        free(before);
        book_take(t);
        before = save(&t->ef, &other);
        MUST(other == len);
        /* the mark is new if there was none; bytes that fill a word are not read */
        if (!t->opt->desc.bytes && (fuzz_load(blob + 4, 4) == 2 || !keeps_received(&t->opt->desc)))
            MUST(!memcmp(before, blob, len));
        free(before);
    }
    free(blob);
}
/* The mean of a state and itself. */
static void load_mean(state *t, const unsigned char *p, size_t len) {
    const int known = t->known;
    const void *bufs[2];
    size_t lens[2];
    bufs[0] = bufs[1] = p;
    lens[0] = lens[1] = len;
    MUST(cg_ef_load_mean(&t->ef, bufs, lens, 2) == CG_OK);
    for (size_t i = 0; i < t->n; i++) {
        t->e_slack[i] += 1e-6 * size_of(t->e[i]);
        t->u_slack[i] += 1e-6 * size_of(t->u[i]);
    }
    t->known &= !is_difference(&t->opt->desc) && !t->opt->desc.carry && !t->opt->desc.bytes;
    book_check(t);
    book_take(t);
    t->known &= known;
}
static void call_save(fuzz_input *in, state *t) {
    const uint32_t how = fuzz_byte(in);
    uint64_t dice = fuzz_word(in, 3);
    unsigned char *first, *again, *before = picture(&t->ef);
    size_t len, other = 7;
    state twin;
    if (t->ef.pending) {
        MUST(cg_ef_save(&t->ef, &dice, 8, &other) == CG_E_STATE && other == 0);
        MUST(cg_ef_load(&t->ef, &dice, 8) == CG_E_STATE && is_as_in(&t->ef, before));
        return;
    }
    free(before);
    if (t->broken) return;
    first = save(&t->ef, &len);
    MUST(state_open(&twin, t->opt, how & 63));
    MUST(cg_ef_load(&twin.ef, first, len) == CG_OK);
    again = save(&twin.ef, &other);
    MUST(other == len && !memcmp(first, again, len) && cg_ef_mark(&twin.ef) == cg_ef_mark(&t->ef));
    free(again);
    state_close(&twin);
    if (how & 64) {
        for (uint32_t times = 1 + fuzz_roll(&dice, 2); times; times--) len = damage(first, len, &dice);
        if (fuzz_roll(&dice, 16)) fuzz_seal_at(first, len, 240);
        load_any(t, first, len);
    } else if (how & 128) load_mean(t, first, len);
    free(first);
}

/* ---- ranks ---- */

enum { MOST_STEPS = 3, LAYERS = 2 };
typedef struct group {
    int size, steps, layers; /* layers 0: cg_ef_exchange */
    const options *opt[LAYERS];
    cg_exchange_desc desc;
    size_t small;
    uint32_t how, wrong, odd;
    int ended[RANKS_MOST]; /* steps made */
    cg_status status[RANKS_MOST][MOST_STEPS][LAYERS], agreed[RANKS_MOST];
    float *result[RANKS_MOST][LAYERS]; /* of the last step */
    double *sum[MOST_STEPS][LAYERS];   /* of what ranks have used */
    double most[MOST_STEPS][LAYERS];   /* the largest of that of any rank */
    uint32_t route[LAYERS];            /* of the last step */
} group;
static state seats[RANKS_MOST][LAYERS];

/* What a step of a rank has come to. before: the picture of its state. */
static void rank_stepped(group *g, state *t, cg_status s, const cg_report *report, const float *grad,
    const unsigned char *before, double *sum, double *most) {
    const int kept = cg_ef_stats_of(&t->ef).kept, tame = !(g->how & 8), received = keeps_received(&t->opt->desc);
    unsigned char *now = picture(&t->ef);
    MUST(report->rank >= -1 && report->rank < g->size && !t->ef.pending);
    if (s == CG_OK) {
        MUST(kept && report->used && (t->broken || !tame || all_finite(grad, t->n)));
        MUST(cg_used_decode(t->side.support ? &t->side : NULL, report->used, report->used_len, 1.0f, 0.0f, t->sent,
                 t->n) == CG_OK);
        for (size_t i = 0; i < t->n; i++) {
            sum[i] += (double)t->sent[i];
            if (size_of((double)t->sent[i]) > *most) *most = size_of((double)t->sent[i]);
        }
        /* which indices there were is not looked for, nor how often 8 bits were rounded */
        t->known &= t->opt->desc.kind != CG_EF_MOMENTUM && !t->opt->desc.bytes && !received;
        book_step(t, t->sent, NULL, t->ef.steps);
        if (received && !t->broken) book_take(t); /* the mean has been overwritten */
    } else {
        MUST(!memcmp(grad, t->grad, 4 * t->n) || (!tame && received));
        if (kept) book_step(t, NULL, NULL, t->ef.steps);
        else MUST(!memcmp(now, before, picture_at(&t->ef, NULL)));
    }
    book_check(t);
    if (s != CG_OK && kept && g->how & 16 && !t->broken) {
        cg_extra side = CG_ZERO;
        side.aux = t->aux;
        MUST(cg_ef_withdraw_with(&t->ef, &side, t->grad) == CG_OK);
        book_withdraw(t, t->ef.steps);
        book_check(t);
    }
    free(now);
}
static void rank_prepare(const group *g, int rank, int step, int i, cg_layer *layer) {
    const cg_tag tag = { g->desc.tag.seed, (uint64_t)step, (uint32_t)i, 0 };
    const uint8_t bytes[] = { (uint8_t)rank, (uint8_t)(step * 8 + i) };
    fuzz_input in = { bytes, 2 };
    state *t = &seats[rank][i];
    const cg_op op = cg_ef_op(&t->ef, &tag);
    fill_grad(&in, t, g->how & 8 ? 2 * FUZZ_HUGE : 2 * FUZZ_MODERATE);
    fill_side(t, &op);
    if (g->wrong == (uint32_t)(rank + 4 * step + 16 * i)) {
        t->grad[t->n - 1] = fuzz_wrong(g->wrong);
        if (t->opt->desc.finite) t->broken = 1;
    }
    memset(layer, 0, sizeof *layer);
    layer->desc = g->desc;
    layer->desc.tag = tag;
    layer->desc.side = &t->side;
    layer->x = (float *)get_bytes(4 * t->n);
    layer->n = t->n;
    memcpy(layer->x, t->grad, 4 * t->n);
}
/* One step; whether it succeeded. */
static int rank_step(group *g, int rank, int step, const cg_transport *transport) {
    const int many = g->layers ? g->layers : 1;
    cg_layer layers[LAYERS];
    cg_ef *efs[LAYERS];
    unsigned char *before[LAYERS];
    cg_report report;
    cg_status s;
    size_t bytes;
    void *mem;
    int ok = 1;
    for (int i = 0; i < many; i++) {
        rank_prepare(g, rank, step, i, &layers[i]);
        efs[i] = &seats[rank][i].ef;
        before[i] = picture(efs[i]);
    }
    if (g->layers) bytes = cg_ef_layers_memory(efs, layers, (size_t)many, g->small, transport);
    else bytes = cg_ef_exchange_memory(efs[0], &layers[0].desc, transport);
    if (bytes && g->odd == (uint32_t)(rank + 4 * step)) bytes /= 2;
    mem = get_bytes(bytes);
    if (g->layers) s = cg_ef_exchange_layers(efs, layers, (size_t)many, g->small, transport, mem, bytes, &report);
    else s = cg_ef_exchange(efs[0], &layers[0].desc, transport, layers[0].x, mem, bytes, &report);
    check_report(&report, s, SIZE_MAX);
    for (int i = 0; i < many; i++) {
        state *t = &seats[rank][i];
        if (!g->layers) layers[i].status = s, layers[i].report = report;
        /* a layer that this rank refuses says so, although the call may have failed before that was told */
        if (s == CG_OK || !g->layers) MUST(layers[i].report.status == (uint32_t)layers[i].status);
        check_report(&layers[i].report, (cg_status)layers[i].report.status, t->n);
        cg_ef_report(efs[i], &report);
        check_report(&report, (cg_status)layers[i].report.status, t->n);
        MUST((layers[i].report.status == CG_OK) == (layers[i].status == CG_OK));
        rank_stepped(
            g, t, layers[i].status, &layers[i].report, layers[i].x, before[i], g->sum[step][i], &g->most[step][i]);
        ok &= layers[i].status == CG_OK;
        g->status[rank][step][i] = layers[i].status;
        g->route[i] = layers[i].report.route;
        free(g->result[rank][i]);
        g->result[rank][i] = layers[i].x;
        free(before[i]);
    }
    MUST(ok == (s == CG_OK));
    free(mem);
    return ok;
}
static void rank_agree(group *g, int rank, const cg_transport *transport) {
    state *t = &seats[rank][0];
    const size_t bytes = cg_ef_agree_memory(&t->ef, &g->desc, transport);
    unsigned char *before = picture(&t->ef);
    void *mem = get_bytes(bytes);
    cg_report report;
    g->agreed[rank] = cg_ef_agree(&t->ef, &g->desc, transport, mem, bytes, &report);
    check_report(&report, g->agreed[rank], t->n);
    if (g->agreed[rank] != CG_OK) MUST(is_as_in(&t->ef, before));
    else free(before);
    free(mem);
}
static void rank_job(int rank, const cg_transport *transport, void *user) {
    group *g = (group *)user;
    int ok = 1;
    for (int step = 0; step < g->steps && ok; step++) {
        ok = rank_step(g, rank, step, transport);
        g->ended[rank] = step + 1;
    }
    if (g->how & 32) rank_agree(g, rank, transport);
}
/* Undisturbed ranks have come to the same end, with the same results, to which their contributions add up. */
static void check_ranks(const group *g, int mean) {
    const int last = g->ended[0] - 1, many = g->layers ? g->layers : 1;
    for (int i = 0; i < many; i++) {
        const state *first = &seats[0][i];
        const double *sum = g->sum[last][i];
        /* on other routes a sum is encoded again, which may cost something */
        const int adds_up = mean && !keeps_received(&first->opt->desc) &&
            (g->route[i] == CG_ROUTE_ALLGATHER || g->route[i] >= CG_ROUTE_MERGE);
        const int ok = g->status[0][last][i] == CG_OK;
        for (int r = 0; r < g->size; r++) {
            const state *t = &seats[r][i];
            MUST(g->ended[r] == g->ended[0] && (g->status[r][last][i] == CG_OK) == ok);
            if (ok) MUST(!memcmp(g->result[r][i], g->result[0][i], 4 * t->n));
            MUST(cg_ef_mark(&t->ef) == cg_ef_mark(&first->ef));
            if (t->ef.vector[2]) MUST(!memcmp(t->ef.vector[2], first->ef.vector[2], 4 * t->n));
        }
        for (size_t j = 0; ok && adds_up && j < first->n; j++)
            MUST(size_of((double)g->result[0][i][j] * g->size - sum[j]) <= 1e-5 * g->most[last][i] + 1e-30);
    }
}
static void call_ranks(fuzz_input *in, int which) {
    static const int masks[] = { SIM_SENDRECV, SIM_ALL, SIM_ALLGATHER, SIM_ALLREDUCE };
    group g;
    fuzz_input hits;
    uint32_t mask, many;
    int mean, broken = 0;
    memset(&g, 0, sizeof g);
    g.how = fuzz_byte(in);
    mask = fuzz_byte(in);
    g.size = 1 + (int)(mask & 3);
    g.steps = 1 + (int)(g.how % 3);
    g.layers = (int)(mask >> 2 & 3) % 3;
    g.small = mask & 16 ? 100 : 0;
    g.desc.route = fuzz_byte(in) % 12 % 10;
    g.desc.fold = fuzz_byte(in) % 8 ? CG_FOLD_MEAN : fuzz_byte(in) % 4;
    g.desc.leader = (int)(fuzz_byte(in) % 4) - 1;
    if (mask & 32) g.desc.flags = CG_CONFIRM;
    g.desc.tag.seed = mask;
    g.wrong = fuzz_byte(in);
    g.odd = fuzz_byte(in);
    many = fuzz_byte(in) % 4;
    hits.at = in->at;
    hits.left = in->left < many * RANKS_HIT_BYTES ? in->left : many * RANKS_HIT_BYTES;
    in->at += hits.left;
    in->left -= hits.left;
    ranks_read_hits(&world, &hits, g.size, 24);
    for (int i = 0; i < LAYERS; i++) {
        g.opt[i] = &plans[(which + i) % STATES];
        for (int r = 0; r < g.size; r++) MUST(state_open(&seats[r][i], g.opt[i], (size_t)r));
        for (int step = 0; step < MOST_STEPS; step++) g.sum[step][i] = zeros(g.opt[i]->desc.n);
    }
    ranks_run_calls(&world, g.size, masks[mask >> 6], (int)(mask & 1), rank_job, &g);
    for (int r = 0; r < g.size; r++) broken |= seats[r][0].broken | seats[r][1].broken;
    mean = g.desc.fold == CG_FOLD_MEAN && !(g.how & 8) && !g.opt[0]->desc.carry && !g.opt[1]->desc.carry;
    if (!world.changed && !broken) check_ranks(&g, mean);
    for (int i = 0; i < LAYERS; i++) {
        for (int r = 0; r < g.size; r++) {
            state_close(&seats[r][i]);
            free(g.result[r][i]);
        }
        for (int step = 0; step < MOST_STEPS; step++) free(g.sum[step][i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input in = { data, size };
    const uint32_t first = fuzz_byte(&in);
    uint64_t dice = first;
    MUST(cg_isa_force(first & 1 ? CG_ISA_SCALAR : CG_ISA_AUTO) == CG_OK);
    for (int i = 0; i < STATES; i++) {
        choose_options(&in, &plans[i]);
        if (first % 16 == 2) spoil(&plans[i].desc, &dice);
        if (state_open(&states[i], &plans[i], first >> 2)) continue;
        memset(&plans[i], 0, sizeof plans[i]); /* refused: an ordinary one in its place */
        plans[i].desc.op = cg_topk(0.1f);
        plans[i].desc.n = 1 + fuzz_byte(&in);
        MUST(state_open(&states[i], &plans[i], 0));
    }
    for (int calls = 0; calls < MOST_CALLS && in.left; calls++) {
        const uint32_t what = fuzz_byte(&in);
        state *t = &states[what >> 7];
        switch (what & 31) {
        case 0: call_nothing(t); break;
        case 1:
        case 2:
        case 3: call_adjust(&in, t); break;
        case 4:
        case 5:
        case 6:
        case 7: call_save(&in, t); break;
        case 8:
        case 9:
        case 10: call_withdraw(&in, t); break;
        case 11:
        case 12:
        case 13: call_rollback(t); break;
        case 14:
        case 15: call_ranks(&in, (int)(what >> 7)); break;
        default:
            if (what & 8) call_commit(&in, t);
            else call_compress(&in, t);
        }
        book_check(t);
    }
    for (int i = 0; i < STATES; i++) state_close(&states[i]);
    MUST(cg_isa_force(CG_ISA_AUTO) == CG_OK);
    return 0;
}

FUZZ_FN size_t fuzz_fresh(uint32_t which, uint64_t *dice, uint8_t *out, size_t cap) {
    const size_t size = 192;
    MUST(cap >= size);
    fuzz_bytes(dice, out, size);
    if (which % 64) out[1] %= 254; /* few of them long */
    return size;
}
