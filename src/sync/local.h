/* local: models that are trained apart, and averaged now and then (local SGD, DiLoCo and their kin)

   Offers   the public cg_local_* but for saving
   Needs    base, ef's and exchange's public calls
   Touches  the state, x, the caller's memory, the report
   A fragment f of F is [f n / F, (f + 1) n / F), with an anchor, a delta and error feedback of its own. In a step it
   starts: delta = anchor - x, which an exchange makes the mean over ranks; and it lands, at once or delay steps later:
   the outer step changes the anchor, and x is mixed with it. */

enum {
    CG_LOCAL_FRAGMENTS_ = 4096 /* at most */
};
static size_t cg_local_first_(const cg_local_desc *d, size_t f) { /* of fragment f; f = fragments: n */
    const size_t count = d->fragments ? d->fragments : 1, n = d->ef.n;
    return n / count * f + cg_min_(f, n % count);
}
static size_t cg_local_count_(const cg_local_desc *d) { return d->fragments ? d->fragments : 1; }
static cg_ef_desc cg_local_ef_desc_(const cg_local_desc *d, size_t f) {
    cg_ef_desc e = d->ef;
    e.n = cg_local_first_(d, f + 1) - cg_local_first_(d, f);
    return e;
}
/* NULL, or what is wrong with a description but for its ef. */
static const char *cg_local_wrong_(const cg_local_desc *d) {
    if (!d->ef.n) return "ef.n is 0";
    if (d->fragments > CG_LOCAL_FRAGMENTS_ || d->fragments > d->ef.n) return "more fragments than values, or than 4096";
    if (!(d->outer_rate >= 0.0f && d->outer_rate <= 1e6f)) return "outer_rate must be 0 to 1e6";
    if (!(d->outer_momentum >= 0.0f && d->outer_momentum < 1.0f))
        return "outer_momentum must be at least 0 and below 1";
    if (!(d->mix >= 0.0f && d->mix < 1.0f)) return "mix must be at least 0 and below 1";
    if (d->flags & ~(uint32_t)CG_LOCAL_MODELS) return "flags has a bit that means nothing";
    if ((d->flags & CG_LOCAL_MODELS) && (d->outer_rate != 0.0f || d->outer_momentum != 0.0f || d->nesterov))
        return "the mean of models is the model: outer_rate, outer_momentum and nesterov are for deltas";
    if (d->nesterov && d->outer_momentum == 0.0f) return "nesterov needs an outer_momentum";
    if (d->table_count && !d->table) return "table is NULL";
    for (size_t k = 0; k < d->table_count; k++)
        if (!d->table[k].period || (k && d->table[k].from <= d->table[k - 1].from))
            return "table must ascend by from, and its periods begin at 1";
    return NULL;
}
/* The period at that step, and the step where its counting begins. */
static uint64_t cg_local_period_(const cg_local_desc *d, uint64_t step, uint64_t *from) {
    uint64_t period = d->period ? d->period : 1;
    *from = 0;
    if (step < d->switch_step) return 1;
    *from = d->switch_step;
    for (size_t k = 0; k < d->table_count && d->table[k].from <= step; k++) {
        period = d->table[k].period;
        if (d->table[k].from > *from) *from = d->table[k].from;
    }
    return period;
}
/* Whether fragment f starts after that step. Starts are spread over the period, in the order of fragments. */
static int cg_local_starts_(const cg_local_desc *d, size_t f, uint64_t step) {
    const uint64_t count = cg_local_count_(d);
    uint64_t from, period = cg_local_period_(d, step, &from);
    const uint64_t share = period / count * (f + 1) + period % count * (f + 1) / count;
    return (step - from + 1) % period == share % period;
}
CG_API_ int cg_local_due(const cg_local *local, uint64_t step) {
    if (!local || !local->anchor) return 0;
    for (size_t f = 0; f < cg_local_count_(&local->desc); f++)
        if (cg_local_starts_(&local->desc, f, step)) return 1;
    return 0;
}

/* ---- memory ---- */

typedef struct cg_local_plan_ {
    float *anchor, *velocity, *delta;
    cg_local_fragment *fragment;
    uint64_t ef, bytes; /* where the memory of error feedback begins */
} cg_local_plan_;
static void *cg_sync_take_(uint8_t *mem, uint64_t *used, uint64_t bytes) {
    void *p = mem ? mem + *used : NULL;
    *used = cg_add_sat_(*used, bytes);
    *used = cg_add_sat_(*used, (64 - *used % 64) % 64);
    return p;
}
static void cg_local_plan_make_(const cg_local_desc *d, uint8_t *mem, cg_local_plan_ *p) {
    const uint64_t vector = cg_mul_sat_(4, d->ef.n), count = cg_local_count_(d);
    uint64_t used = 0;
    memset(p, 0, sizeof *p);
    p->fragment = (cg_local_fragment *)cg_sync_take_(mem, &used, cg_mul_sat_(count, sizeof *p->fragment));
    p->anchor = (float *)cg_sync_take_(mem, &used, vector);
    p->delta = (float *)cg_sync_take_(mem, &used, vector);
    if (d->outer_momentum != 0.0f) p->velocity = (float *)cg_sync_take_(mem, &used, vector);
    p->ef = used;
    for (size_t f = 0; f < count; f++) {
        const cg_ef_desc e = cg_local_ef_desc_(d, f);
        const size_t bytes = cg_ef_memory(&e);
        used = bytes ? used : CG_TOO_LARGE_;
        cg_sync_take_(NULL, &used, bytes);
    }
    p->bytes = cg_add_sat_(used, 64);
}
CG_API_ size_t cg_local_memory(const cg_local_desc *desc) {
    cg_local_plan_ p;
    if (!desc || cg_local_wrong_(desc)) return 0;
    cg_local_plan_make_(desc, NULL, &p);
    return cg_size_or_zero_(p.bytes);
}
static cg_status cg_local_fail_(cg_local *l, cg_status s, const char *why, uint64_t need, uint64_t at) {
    cg_report_set_(&l->report, s, why, need, at);
    return s;
}
CG_API_ cg_status cg_local_init(cg_local *local, const cg_local_desc *desc, const float *x0, void *mem, size_t bytes) {
    cg_local_plan_ p;
    uint8_t *base, *at;
    if (!local) return CG_E_ARG;
    memset(local, 0, sizeof *local);
    if (!desc || !x0) return cg_local_fail_(local, CG_E_ARG, "desc or x0 is NULL", 0, CG_NO_INDEX);
    if (cg_local_wrong_(desc)) return cg_local_fail_(local, CG_E_ARG, cg_local_wrong_(desc), 0, CG_NO_INDEX);
    if (cg_first_nonfinite_(x0, desc->ef.n) != CG_NO_INDEX)
        return cg_local_fail_(local, CG_E_NONFINITE, "x0 has NaN or Inf", 0, cg_first_nonfinite_(x0, desc->ef.n));
    if (cg_local_memory(desc) && (!mem || bytes < cg_local_memory(desc)))
        return cg_local_fail_(local, CG_E_MEMORY, "mem is too small: cg_local_memory gives its bytes",
            cg_local_memory(desc), CG_NO_INDEX);
    if (!cg_local_memory(desc)) { /* the first fragment that error feedback refuses says why */
        for (size_t f = 0; f < cg_local_count_(desc); f++) {
            const cg_ef_desc e = cg_local_ef_desc_(desc, f);
            cg_ef ef;
            const cg_status s = cg_ef_init(&ef, &e, NULL, 0);
            cg_ef_report(&ef, &local->report);
            if (s != CG_E_MEMORY) return s;
        }
        return cg_local_fail_(local, CG_E_ARG, "sizes overflow", 0, CG_NO_INDEX);
    }
    base = (uint8_t *)mem + (64 - ((uintptr_t)mem & 63)) % 64;
    cg_local_plan_make_(desc, base, &p);
    at = base + p.ef;
    for (size_t f = 0; f < cg_local_count_(desc); f++) {
        const cg_ef_desc e = cg_local_ef_desc_(desc, f);
        const size_t room = cg_ef_memory(&e);
        cg_status s;
        memset(&p.fragment[f], 0, sizeof p.fragment[f]);
        s = cg_ef_init(&p.fragment[f].ef, &e, at, room);
        if (s != CG_OK) {
            cg_ef_report(&p.fragment[f].ef, &local->report);
            return s;
        }
        at += (room + 63) / 64 * 64;
    }
    memmove(p.anchor, x0, 4 * desc->ef.n);
    memset(p.delta, 0, 4 * desc->ef.n);
    if (p.velocity) memset(p.velocity, 0, 4 * desc->ef.n);
    local->desc = *desc;
    local->anchor = p.anchor;
    local->delta = p.delta;
    local->velocity = p.velocity;
    local->fragment = p.fragment;
    return cg_local_fail_(local, CG_OK, cg_status_str(CG_OK), 0, CG_NO_INDEX);
}
CG_API_ const float *cg_local_anchor(const cg_local *local) { return local ? local->anchor : NULL; }
CG_API_ void cg_local_report(const cg_local *local, cg_report *report) {
    if (local && report) *report = local->report;
}

/* ---- a step ---- */

/* The caller's description for fragment f at that step. */
static cg_exchange_desc cg_local_exchange_desc_(
    const cg_local *l, const cg_exchange_desc *desc, size_t f, uint64_t step) {
    cg_exchange_desc d = *desc;
    d.tag.step = step;
    d.tag.tensor += (uint32_t)f;
    d.model = NULL;
    d.into = NULL;
    d.common ^= l->mark;
    d.flags |= CG_CONFIRM; /* all ranks move their anchors, or none does */
    return d;
}
CG_API_ size_t cg_local_step_memory(
    const cg_local *local, const cg_exchange_desc *desc, const cg_transport *transport, uint64_t step) {
    size_t most = 0;
    if (!local || !local->anchor || !desc || !transport) return 0;
    for (size_t f = 0; f < cg_local_count_(&local->desc); f++) {
        const cg_exchange_desc d = cg_local_exchange_desc_(local, desc, f, step);
        const size_t bytes = cg_ef_exchange_memory(&local->fragment[f].ef, &d, transport);
        if (!bytes) return 0;
        if (bytes > most) most = bytes;
    }
    return most;
}
/* delta holds the mean: the anchor takes its outer step, and x comes to it. */
static void cg_local_land_(cg_local *l, size_t f, float *x) {
    const cg_local_desc *d = &l->desc;
    const size_t first = cg_local_first_(d, f), end = cg_local_first_(d, f + 1);
    const float rate = d->outer_rate == 0.0f ? 1.0f : d->outer_rate, momentum = d->outer_momentum, rest = 1.0f - d->mix;
    const cg_fenv_ env = cg_fenv_enter_();
    for (size_t i = first; i < end; i++) {
        float update = l->delta[i];
        if (d->flags & CG_LOCAL_MODELS) {
            l->anchor[i] = update;
        } else {
            if (l->velocity) {
                const float u = cg_saturate_(cg_plus_(cg_times_(momentum, l->velocity[i]), update));
                l->velocity[i] = cg_faded_(u);
                update = d->nesterov ? cg_plus_(update, cg_times_(momentum, u)) : u;
            }
            l->anchor[i] = cg_saturate_(cg_minus_(l->anchor[i], cg_times_(rate, update)));
        }
        cg_store_(x, i,
            d->mix == 0.0f ? l->anchor[i]
                           : cg_saturate_(cg_plus_(cg_times_(d->mix, cg_load_(x, i)), cg_times_(rest, l->anchor[i]))));
    }
    l->fragment[f].under_way = 0;
    l->fragment[f].lands = 0;
    cg_fenv_leave_(env);
}
/* Starts fragment f: what the ranks make of their deltas is in delta afterwards. After an error nothing has changed,
   but for rounding in error feedback (cg_ef_withdraw). */
static cg_status cg_local_start_(cg_local *l, const cg_exchange_desc *desc, const cg_transport *t, float *x, size_t f,
    uint64_t step, void *mem, size_t bytes, cg_report *report) {
    const size_t first = cg_local_first_(&l->desc, f), end = cg_local_first_(&l->desc, f + 1);
    const cg_exchange_desc d = cg_local_exchange_desc_(l, desc, f, step);
    cg_ef *ef = &l->fragment[f].ef;
    cg_fenv_ env = cg_fenv_enter_();
    uint64_t from, period = cg_local_period_(&l->desc, step, &from);
    cg_status s;
    for (size_t i = first; i < end; i++)
        l->delta[i] = l->desc.flags & CG_LOCAL_MODELS ? cg_load_(x, i) : cg_minus_(l->anchor[i], cg_load_(x, i));
    cg_fenv_leave_(env);
    s = cg_ef_exchange(ef, &d, t, l->delta + first, mem, bytes, report);
    if (report->at != CG_NO_INDEX && report->rank == t->rank) report->at += first;
    if (s != CG_OK) {
        if (cg_ef_stats_of(ef).kept && cg_ef_withdraw(ef, l->delta + first) != CG_OK)
            for (size_t i = first; i < end; i++) cg_store_(x, i, l->anchor[i]); /* the state has what x had done */
        return s;
    }
    l->mark = cg_mix64_(l->mark ^ (step * CG_GOLDEN_ + f + 1));
    l->fragment[f].under_way = 1;
    l->fragment[f].lands = step + (l->desc.delay < period ? l->desc.delay : period);
    return CG_OK;
}
static void cg_local_count_report_(cg_report *sum, const cg_report *one) {
    sum->bytes_out += one->bytes_out;
    sum->bytes_in += one->bytes_in;
    sum->rounds += one->rounds;
    sum->route = one->route;
}
CG_API_ cg_status cg_local_step(cg_local *local, const cg_exchange_desc *desc, const cg_transport *transport, float *x,
    uint64_t step, void *mem, size_t bytes, cg_report *report) {
    cg_report own;
    cg_status s = CG_OK;
    if (!report) report = &own;
    cg_report_set_(report, CG_E_ARG, "local, desc, transport or x is NULL", 0, CG_NO_INDEX);
    if (!local || !desc || !transport || !x) return CG_E_ARG;
    if (!local->anchor) {
        cg_report_set_(report, CG_E_STATE, "cg_local_init has not made this state", 0, CG_NO_INDEX);
        return CG_E_STATE;
    }
    cg_report_set_(report, CG_OK, cg_status_str(CG_OK), 0, CG_NO_INDEX);
    for (size_t f = 0; f < cg_local_count_(&local->desc); f++)
        if (local->fragment[f].under_way && local->fragment[f].lands <= step) cg_local_land_(local, f, x);
    for (size_t f = 0; f < cg_local_count_(&local->desc) && s == CG_OK; f++) {
        cg_report one;
        if (!cg_local_starts_(&local->desc, f, step)) continue;
        if (local->fragment[f].under_way) cg_local_land_(local, f, x); /* the period has become shorter */
        s = cg_local_start_(local, desc, transport, x, f, step, mem, bytes, &one);
        cg_local_count_report_(report, &one);
        if (s != CG_OK || one.why != cg_status_str(CG_OK)) cg_report_copy_outcome_(report, &one);
        if (s == CG_OK && local->fragment[f].lands <= step) cg_local_land_(local, f, x);
    }
    if (step + 1 > local->steps) local->steps = step + 1;
    local->report = *report;
    return s;
}
CG_API_ cg_status cg_local_average(cg_local *local, const cg_exchange_desc *desc, const cg_transport *transport,
    float *v, uint64_t step, void *mem, size_t bytes, cg_report *report) {
    cg_exchange_desc d;
    if (report) cg_report_set_(report, CG_E_ARG, "local, desc, transport or v is NULL", 0, CG_NO_INDEX);
    if (!local || !desc || !transport || !v) return CG_E_ARG;
    if (!local->anchor) return CG_E_STATE;
    if (report) cg_report_set_(report, CG_OK, cg_status_str(CG_OK), 0, CG_NO_INDEX);
    if (!cg_local_starts_(&local->desc, 0, step)) return CG_OK;
    d = *desc;
    d.tag.step = step;
    d.tag.tensor += (uint32_t)cg_local_count_(&local->desc);
    d.flags |= CG_CONFIRM;
    return cg_exchange(&d, transport, v, local->desc.ef.n, mem, bytes, report);
}

/* ---- ranks whose anchors differ ---- */

CG_API_ size_t cg_local_agree_memory(
    const cg_local *local, const cg_exchange_desc *desc, const cg_transport *transport) {
    cg_exchange_desc d;
    size_t most;
    if (!local || !local->anchor || !desc || !transport) return 0;
    d = *desc;
    d.op = cg_dense();
    d.route = CG_ROUTE_AUTO;
    d.flags |= CG_CONFIRM;
    d.carry = d.warm = NULL;
    most = cg_exchange_memory(&d, transport, local->desc.ef.n);
    for (size_t f = 0; most && f < cg_local_count_(&local->desc); f++) {
        const size_t bytes = cg_ef_agree_memory(&local->fragment[f].ef, &d, transport);
        if (bytes > most) most = bytes;
    }
    return most;
}
CG_API_ cg_status cg_local_agree(cg_local *local, const cg_exchange_desc *desc, const cg_transport *transport, float *x,
    void *mem, size_t bytes, cg_report *report) {
    cg_exchange_desc d = CG_ZERO;
    cg_report own;
    cg_status s;
    if (!report) report = &own;
    cg_report_set_(report, CG_E_ARG, "local, desc, transport or x is NULL", 0, CG_NO_INDEX);
    if (!local || !desc || !transport || !x) return CG_E_ARG;
    if (!local->anchor) return CG_E_STATE;
    for (size_t f = 0; f < cg_local_count_(&local->desc); f++)
        if (local->fragment[f].under_way) cg_local_land_(local, f, x);
    d.tag = desc->tag;
    d.common = desc->common;
    d.weight = desc->weight;
    d.flags = CG_CONFIRM;
    d.into = local->delta; /* the anchor changes if all goes well */
    s = cg_exchange(&d, transport, local->anchor, local->desc.ef.n, mem, bytes, report);
    for (size_t f = 0; s == CG_OK && f < cg_local_count_(&local->desc); f++) {
        cg_exchange_desc one = d;
        one.into = NULL;
        one.tag.tensor += (uint32_t)f + 2;
        s = cg_ef_agree(&local->fragment[f].ef, &one, transport, mem, bytes, report);
    }
    if (s == CG_OK && local->velocity) {
        d.tag.tensor++;
        d.into = NULL;
        s = cg_exchange(&d, transport, local->velocity, local->desc.ef.n, mem, bytes, report);
    }
    local->report = *report;
    if (s != CG_OK) return s;
    memcpy(local->anchor, local->delta, 4 * local->desc.ef.n);
    for (size_t i = 0; i < local->desc.ef.n; i++) cg_store_(x, i, local->anchor[i]);
    local->mark = cg_mix64_(desc->tag.step + CG_GOLDEN_);
    return CG_OK;
}
