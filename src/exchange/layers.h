/* ---- >>layers ---- */

typedef struct cg_batch_ {
    const cg_layer *layers;
    size_t count, small, first, flat_n; /* first: of the small ones; count: none */
    size_t exchanges;                   /* long layers, and one for all the small ones */
    cg_exchange_desc flat_desc;
    cg_ex_ *all, *state; /* the opening of all; every exchange */
    uint8_t *mine, *records, *room, *used;
    float *flat;
} cg_batch_;
static int cg_batch_is_small_(const cg_batch_ *p, size_t i) {
    const cg_exchange_desc *d = &p->layers[i].desc, *first = p->first < p->count ? &p->layers[p->first].desc : d;
    return p->layers[i].n < p->small && (d->fold == CG_FOLD_MEAN || d->fold == CG_FOLD_SUM) && d->fold == first->fold &&
        cg_as_bits_(d->weight) == cg_as_bits_(first->weight);
}
static const cg_exchange_desc *cg_batch_desc_(const cg_batch_ *p, size_t i) {
    return i < p->count ? &p->layers[i].desc : &p->flat_desc;
}
static size_t cg_batch_n_(const cg_batch_ *p, size_t i) { return i < p->count ? p->layers[i].n : p->flat_n; }
/* The layer whose exchange comes after layer i's, count: the small ones together, or count + 1: the end. */
static size_t cg_batch_next_(const cg_batch_ *p, size_t i) {
    for (i++; i < p->count; i++)
        if (!cg_batch_is_small_(p, i)) return i;
    return i == p->count && p->first < p->count ? i : p->count + 1;
}
static uint64_t cg_batch_room_(const cg_transport *t, const cg_exchange_desc *desc, size_t n) {
    return cg_add_sat_(cg_exchange_memory(desc, t, n), 63) & ~(uint64_t)63;
}
static uint64_t cg_batch_mem_plan_(
    cg_batch_ *p, const cg_layer *layers, size_t count, size_t small, const cg_transport *t, uint8_t *base) {
    const size_t before = (size_t)0 - 1;
    const cg_exchange_desc none = CG_ZERO;
    cg_arena_ c;
    uint64_t used = 0;
    memset(p, 0, sizeof *p);
    p->layers = layers;
    p->count = p->first = count;
    p->small = small;
    for (size_t i = 0; i < count && p->first == count; i++)
        if (cg_batch_is_small_(p, i)) p->first = i;
    for (size_t i = 0; i < count; i++)
        if (p->first < count && cg_batch_is_small_(p, i)) {
            p->flat_n = (size_t)cg_add_sat_(p->flat_n, layers[i].n);
            used = cg_add_sat_(used, cg_dense_bound_(layers[i].n));
        }
    if (p->first < count) {
        p->flat_desc.fold = layers[p->first].desc.fold;
        p->flat_desc.weight = layers[p->first].desc.weight;
        p->flat_desc.tag = layers[p->first].desc.tag;
    }
    for (size_t i = cg_batch_next_(p, before); i <= count; i = cg_batch_next_(p, i)) p->exchanges++;
    c.base = base;
    c.bytes = 0;
    p->all = (cg_ex_ *)(void *)cg_arena_take_(&c, sizeof(cg_ex_));
    p->state = (cg_ex_ *)(void *)cg_arena_take_(&c, cg_mul_sat_(p->exchanges, sizeof(cg_ex_)));
    p->mine = cg_arena_take_(&c, cg_mul_sat_(p->exchanges, CG_RECORD_BYTES_));
    p->records = cg_arena_take_(&c, cg_mul_sat_((uint64_t)t->size, cg_mul_sat_(p->exchanges, CG_RECORD_BYTES_)));
    p->flat = (float *)(void *)cg_arena_take_(&c, cg_mul_sat_(4, p->flat_n));
    p->used = cg_arena_take_(&c, used);
    p->room = cg_arena_take_(&c, 0);
    c.bytes = cg_add_sat_(c.bytes, cg_batch_room_(t, &none, 0)); /* for the opening */
    for (size_t i = cg_batch_next_(p, before); i <= count; i = cg_batch_next_(p, i))
        c.bytes = cg_add_sat_(c.bytes, cg_batch_room_(t, cg_batch_desc_(p, i), cg_batch_n_(p, i)));
    return c.bytes;
}
CG_API_ size_t cg_exchange_layers_memory(
    const cg_layer *layers, size_t count, size_t small, const cg_transport *transport) {
    cg_batch_ p;
    if ((!layers && count) || !transport || cg_transport_error_(transport)) return 0;
    return cg_size_or_zero_(cg_add_sat_(cg_batch_mem_plan_(&p, layers, count, small, transport, NULL), 64));
}
/* By the callbacks, until what was asked for is done. */
static cg_status cg_collective_wait_(cg_ex_ *x) {
    while (x->c.ask && cg_collective_next_(x, &x->io)) {
        const int code = cg_io_run(&x->transport, &x->io);
        if (code) {
            x->moving = 1;
            return cg_ex_next_(x, code, &x->io);
        }
        cg_count_io_(x);
    }
    x->c.ask = CG_COLL_NONE_;
    return x->status;
}
/* The small ones, one after the other, and a packet each to say that all of them counted. NULL: one of them is NULL. */
static float *cg_batch_flatten_(cg_batch_ *p, cg_layer *layers) {
    const cg_op dense = cg_dense();
    size_t at = 0, used = 0, len;
    int whole = 1;
    for (size_t i = p->first; i < p->count; i++) {
        if (!cg_batch_is_small_(p, i)) continue;
        if (layers[i].x) memcpy(p->flat + at, layers[i].x, 4 * layers[i].n);
        else whole &= !layers[i].n;
        layers[i].report.used = p->used + used;
        if (cg_compress_checked_(&dense, &layers[i].desc.tag, NULL, layers[i].x, NULL, layers[i].n, p->used + used,
                (size_t)cg_dense_bound_(layers[i].n), &len, NULL, 0) != CG_OK)
            len = 0;
        layers[i].report.used_len = len;
        at += layers[i].n;
        used += (size_t)cg_dense_bound_(layers[i].n);
    }
    return whole ? p->flat : NULL;
}
static void cg_batch_unflatten_(const cg_batch_ *p, cg_layer *layers, const cg_ex_ *x) {
    const cg_fenv_ env = cg_fenv_enter_(); /* for steps of a model */
    size_t at = 0;
    for (size_t i = p->first; i < p->count; i++) {
        const void *used = layers[i].report.used;
        const size_t len = layers[i].report.used_len;
        if (!cg_batch_is_small_(p, i)) continue;
        layers[i].status = x->status;
        layers[i].report = x->report;
        layers[i].report.used = x->status == CG_OK ? used : NULL;
        layers[i].report.used_len = x->status == CG_OK ? len : 0;
        if (x->status == CG_OK && layers[i].n) {
            const cg_exchange_desc *d = &layers[i].desc;
            cg_model_step_(d, p->flat + at, layers[i].n);
            if (!d->model) memcpy(d->into ? d->into : layers[i].x, p->flat + at, 4 * layers[i].n);
        }
        at += layers[i].n;
    }
    cg_fenv_leave_(env);
}
static int cg_batch_rates_ok_(const cg_batch_ *p, const cg_layer *layers) {
    int ok = 1;
    for (size_t i = p->first; i < p->count; i++) ok &= !cg_batch_is_small_(p, i) || cg_rate_ok_(&layers[i].desc);
    return ok;
}
/* Starts all, and tells everybody in one record whether that went well and whether the layers are the same. */
static cg_status cg_batch_open_(cg_batch_ *p, cg_layer *layers, const cg_transport *t) {
    const size_t before = (size_t)0 - 1;
    const cg_exchange_desc none = CG_ZERO;
    cg_ex_ *all = p->all;
    uint64_t hash = p->exchanges;
    const size_t own = (size_t)cg_batch_room_(t, &none, 0);
    cg_status s, first = CG_OK;
    const char *why = NULL;
    uint8_t *mem = p->room + own;
    cg_fenv_ env = cg_fenv_enter_();
    size_t e = 0;
    float *flat = p->first < p->count ? cg_batch_flatten_(p, layers) : NULL;
    for (size_t i = cg_batch_next_(p, before); i <= p->count; i = cg_batch_next_(p, i), e++) {
        cg_ex_ *x = &p->state[e];
        const size_t room = (size_t)cg_batch_room_(t, cg_batch_desc_(p, i), cg_batch_n_(p, i));
        float *v = i < p->count ? layers[i].x : flat;
        cg_ex_init_(x, cg_batch_desc_(p, i), t, v, cg_batch_n_(p, i));
        if (i == p->count && !cg_batch_rates_ok_(p, layers)) cg_ex_fail_(x, CG_E_ARG, t->rank, "rate must be finite");
        s = cg_ex_start_(x, v, mem, room);
        if ((s != CG_OK || x->status != CG_OK) && first == CG_OK) {
            first = s != CG_OK ? s : x->status;
            why = x->report.why;
        }
        memcpy(p->mine + e * CG_RECORD_BYTES_, x->record, CG_RECORD_BYTES_);
        hash = cg_mix64_(hash ^ cg_hash_bytes_(x->record + 8, 24));
        mem += room;
    }
    cg_ex_init_(all, &none, t, NULL, 0);
    s = cg_ex_start_(all, NULL, p->room, own);
    cg_fenv_leave_(env);
    if (s != CG_OK) return s;
    all->desc.tag.seed = hash;
    if (first != CG_OK) cg_ex_fail_(all, first, t->rank, why);
    cg_record_put_(all, 0, 0.0f);
    cg_allgather_equal_begin_(all, all->record, CG_RECORD_BYTES_, all->gathered);
    s = cg_collective_wait_(all);
    if (s == CG_E_TRANSPORT) return s;
    for (size_t q = 0; q < cg_ranks_(all); q++)
        memcpy(all->records + q * CG_RECORD_BYTES_, cg_gathered_(all, q), CG_RECORD_BYTES_);
    cg_records_check_(all);
    if (all->status == CG_E_MISMATCH) all->report.why = "its layers differ: in number, length, operator, route or tag";
    return all->status;
}
static cg_status cg_batch_exchange_(cg_batch_ *p, cg_layer *layers) {
    const size_t before = (size_t)0 - 1;
    cg_ex_ *all = p->all;
    size_t e = 0;
    cg_io io;
    cg_status s, verdict = CG_OK;
    cg_allgather_equal_begin_(all, p->mine, (uint64_t)p->exchanges * CG_RECORD_BYTES_, p->records);
    s = cg_collective_wait_(all);
    for (size_t i = cg_batch_next_(p, before); i <= p->count && s != CG_E_TRANSPORT; i = cg_batch_next_(p, i), e++) {
        cg_ex_ *x = &p->state[e];
        int code = 0;
        for (size_t q = 0; q < cg_ranks_(x); q++)
            memcpy(x->records + q * CG_RECORD_BYTES_, cg_gathered_(all, q) + e * CG_RECORD_BYTES_, CG_RECORD_BYTES_);
        x->opened = 1;
        while ((s = cg_exchange_next(x, code, &io)) == CG_AGAIN) code = cg_io_run(&x->transport, &io);
        if (i == p->count) cg_batch_unflatten_(p, layers, x);
        else {
            layers[i].status = s;
            layers[i].report = x->report;
        }
        all->report.bytes_out += x->report.bytes_out;
        all->report.bytes_in += x->report.bytes_in;
        all->report.rounds += x->report.rounds;
        if (s == CG_OK || verdict != CG_OK) continue;
        verdict = s;
        all->report.rank = x->report.rank;
        all->report.code = x->report.code;
        all->report.why = x->report.why;
    }
    return verdict != CG_OK ? verdict : s;
}
CG_API_ cg_status cg_exchange_layers(cg_layer *layers, size_t count, size_t small, const cg_transport *transport,
    void *mem, size_t bytes, cg_report *report) {
    const size_t skip = mem ? (64 - ((uintptr_t)mem & 63)) % 64 : 0;
    const cg_exchange_desc none = CG_ZERO;
    cg_batch_ p;
    cg_status s;
    if (report) memset(report, 0, sizeof *report);
    if ((!layers && count) || !transport || cg_transport_error_(transport)) return CG_E_ARG;
    if (!mem || bytes < skip || bytes - skip < cg_batch_mem_plan_(&p, layers, count, small, transport, NULL))
        return cg_exchange_no_memory_(&none, transport, NULL, 0, CG_OK, report);
    cg_batch_mem_plan_(&p, layers, count, small, transport, (uint8_t *)mem + skip);
    for (size_t i = 0; i < count; i++) {
        memset(&layers[i].report, 0, sizeof layers[i].report);
        layers[i].status = CG_E_STATE;
    }
    s = cg_batch_open_(&p, layers, transport);
    if (s == CG_OK) s = cg_batch_exchange_(&p, layers);
    if (report) *report = p.all->report;
    for (size_t i = 0; i < count; i++)
        if (layers[i].status == CG_E_STATE) layers[i].status = s;
    return s;
}
CG_API_ cg_status cg_used_decode(
    const cg_extra *side, const void *used, size_t len, float alpha, float beta, float *y, size_t n) {
    const uint8_t *p = (const uint8_t *)used;
    size_t at = 0, done = 0;
    cg_info info;
    cg_status s = used || !len ? CG_OK : CG_E_ARG;
    /* all of them, before y changes */
    for (; at < len && s == CG_OK; at += info.packet_bytes, done += (size_t)info.n) {
        s = cg_inspect(p + at, len - at, &info);
        if (s == CG_OK && info.n > n - done) s = CG_E_MISMATCH;
        if (s == CG_OK && info.packet_bytes > len - at) s = CG_E_CORRUPT;
        if (s == CG_OK) s = cg_packet_check_(side, p + at, info.packet_bytes, (size_t)info.n);
    }
    if (s == CG_OK && done != n) s = CG_E_MISMATCH;
    for (at = done = 0; at < len && s == CG_OK; at += info.packet_bytes, done += (size_t)info.n) {
        s = cg_inspect(p + at, len - at, &info);
        if (s == CG_OK) s = cg_decode(side, p + at, info.packet_bytes, alpha, beta, n ? y + done : y, (size_t)info.n);
    }
    return s;
}
