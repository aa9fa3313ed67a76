/* layers: many exchanges that share one opening, and small layers that travel as one vector

   Offers   cg_exchange_layers, cg_exchange_layers_memory, cg_used_decode
   Needs    exchange, packed, joined, memory (cg_arena_), opening
   Touches  the layers' x, into, model, status and report; the caller's mem
   All exchanges are started, then a first round compares one record for all of them, a second moves the opening records
   of all, a verdict follows if the messages of any exchange depend on records, and the routes follow one after the
   other; those of low-rank layers share their sums (joined). Exchanges with CG_CONFIRM are closed together, in one
   round, before any of them writes. */

typedef struct cg_batch_ {
    const cg_layer *layers;
    size_t count;               /* of layers */
    size_t small_below;         /* layers of fewer values travel together */
    size_t first_small;         /* index of the first of them; count: none */
    size_t flat_n;              /* values of all small layers */
    size_t exchange_count;      /* long layers, and one for all the small ones */
    cg_exchange_desc flat_desc; /* of the small ones */
    cg_packed_ packed;          /* the small ones, if they keep their operators */
    uint32_t route;             /* of all exchanges; CG_ROUTE_AUTO if they differ */
    cg_joined_ joined;          /* exchanges of low-rank layers */
    /* in mem: */
    cg_ex_ *opening;       /* the first round, for all */
    cg_ex_ *exchanges;     /* exchange_count states */
    uint8_t *own_records;  /* opening records of this rank, one for every exchange */
    uint8_t *records;      /* of all ranks */
    uint8_t *exchange_mem; /* for the first round, then for every exchange */
    uint8_t *contrib;      /* packets of the small layers: what report.used points to */
    float *flat_grad;      /* the small layers, one after the other */
} cg_batch_;
/* Does layer i travel with the small ones? Those have the fold and weight of the first of them. */
static int cg_batch_is_small_(const cg_batch_ *p, size_t i) {
    const cg_exchange_desc *d = &p->layers[i].desc,
                           *first = p->first_small < p->count ? &p->layers[p->first_small].desc : d;
    return p->layers[i].n < p->small_below && cg_fold_row_of_(d->fold)->traits & CG_FOLD_IS_LINEAR_ &&
        d->fold == first->fold && cg_as_bits_(d->weight) == cg_as_bits_(first->weight) &&
        (!((d->flags | first->flags) & CG_ONE_PACKET) || cg_packed_fits_(d, p->layers[i].n, first));
}
/* Exchanges go by the index of their layer; count stands for that of the small ones. */
static const cg_exchange_desc *cg_batch_desc_(const cg_batch_ *p, size_t i) {
    return i < p->count ? &p->layers[i].desc : &p->flat_desc;
}
static size_t cg_batch_n_(const cg_batch_ *p, size_t i) { return i < p->count ? p->layers[i].n : p->flat_n; }
/* The exchange after i: a layer, count, or count + 1 at the end. i = (size_t)-1 gives the first. */
static size_t cg_batch_next_(const cg_batch_ *p, size_t i) {
    for (i++; i < p->count; i++)
        if (!cg_batch_is_small_(p, i)) return i;
    return i == p->count && p->first_small < p->count ? i : p->count + 1;
}
/* joined: NULL, or counts the exchange if it is one of them. */
static uint64_t cg_batch_room_(const cg_transport *t, const cg_exchange_desc *desc, size_t n, cg_joined_ *joined) {
    const cg_fenv_ env = cg_fenv_enter_();
    cg_exchange_state ex;
    cg_resolved_ resolved;
    const uint64_t bytes = cg_size_or_zero_(cg_exchange_resolve_(&ex, desc, t, n, &resolved, 0));
    if (joined) cg_joined_add_(joined, &ex);
    cg_fenv_leave_(env);
    return cg_add_sat_(bytes, 63) & ~(uint64_t)63;
}
static uint64_t cg_batch_room_of_(const cg_batch_ *p, const cg_transport *t, size_t i, cg_joined_ *joined) {
    if (i == p->count && p->packed.count) return cg_packed_room_(&p->packed, t, &p->flat_desc, p->flat_n);
    return cg_batch_room_(t, cg_batch_desc_(p, i), cg_batch_n_(p, i), joined);
}
/* Bytes of mem, which is aligned to 64; base NULL: only these. Otherwise p has the places in it, too. */
static uint64_t cg_batch_mem_plan_(
    cg_batch_ *p, const cg_layer *layers, size_t count, size_t small, const cg_transport *t, uint8_t *base) {
    const size_t before_first = (size_t)0 - 1;
    const cg_exchange_desc default_desc = CG_ZERO;
    cg_arena_ arena;
    uint64_t used = 0;
    memset(p, 0, sizeof *p);
    p->layers = layers;
    p->count = p->first_small = count;
    p->small_below = small;
    for (size_t i = 0; i < count && p->first_small == count; i++)
        if (cg_batch_is_small_(p, i)) p->first_small = i;
    for (size_t i = 0; i < count; i++)
        if (p->first_small < count && cg_batch_is_small_(p, i)) {
            p->flat_n = (size_t)cg_add_sat_(p->flat_n, layers[i].n);
            p->flat_desc.common = cg_mix64_(p->flat_desc.common ^ layers[i].desc.common);
            p->flat_desc.flags |= layers[i].desc.flags & (CG_CONFIRM | CG_TOGETHER | CG_CORRELATED | CG_FEEDS_BACK);
            if (layers[i].desc.flags & CG_ONE_PACKET) cg_packed_add_(&p->packed, &layers[i].desc, layers[i].n);
            else used = cg_add_sat_(used, cg_dense_bound_(layers[i].n));
        }
    if (p->packed.count) {
        used = p->packed.used_bytes;
        p->flat_desc.route = CG_ROUTE_ALLGATHER;
    } else p->flat_desc.flags &= ~(uint32_t)(CG_CORRELATED | CG_FEEDS_BACK);
    if (p->first_small < count) {
        p->flat_desc.fold = layers[p->first_small].desc.fold;
        p->flat_desc.weight = layers[p->first_small].desc.weight;
        p->flat_desc.tag = layers[p->first_small].desc.tag;
    }
    for (size_t i = cg_batch_next_(p, before_first); i <= count; i = cg_batch_next_(p, i)) p->exchange_count++;
    arena.base = base;
    arena.bytes = 0;
    p->opening = (cg_ex_ *)(void *)cg_arena_take_(&arena, sizeof(cg_ex_));
    p->exchanges = (cg_ex_ *)(void *)cg_arena_take_(&arena, cg_mul_sat_(p->exchange_count, sizeof(cg_ex_)));
    p->own_records = cg_arena_take_(&arena, cg_mul_sat_(p->exchange_count, CG_RECORD_BYTES_));
    p->records = cg_arena_take_(
        &arena, cg_mul_sat_((uint64_t)t->size, cg_mul_sat_(p->exchange_count, CG_RECORD_BYTES_)));
    p->flat_grad = (float *)(void *)cg_arena_take_(&arena, cg_mul_sat_(4, p->flat_n));
    p->contrib = cg_arena_take_(&arena, used);
    cg_packed_plan_(&p->packed, &arena);
    p->exchange_mem = cg_arena_take_(&arena, 0);
    arena.bytes = cg_add_sat_(arena.bytes, cg_batch_room_(t, &default_desc, 0, NULL)); /* for the opening */
    for (size_t i = cg_batch_next_(p, before_first); i <= count; i = cg_batch_next_(p, i))
        arena.bytes = cg_add_sat_(arena.bytes, cg_batch_room_of_(p, t, i, &p->joined));
    cg_joined_plan_(&p->joined, t, &arena);
    return arena.bytes;
}
CG_API_ size_t cg_exchange_layers_memory(
    const cg_layer *layers, size_t count, size_t small, const cg_transport *transport) {
    cg_batch_ p;
    if ((!layers && count) || !transport || cg_transport_error_(transport)) return 0;
    return cg_size_or_zero_(cg_add_sat_(cg_batch_mem_plan_(&p, layers, count, small, transport, NULL), 64));
}
/* Copies the small layers to flat_grad, and unless they keep their operators each as a dense packet to contrib, as they
   are then sent without loss. NULL: one of them has values but no x. */
static float *cg_batch_flatten_(cg_batch_ *p, cg_layer *layers) {
    const cg_op dense = cg_dense();
    size_t at = 0, used = 0, packed = 0, len;
    int none_missing = 1;
    for (size_t i = p->first_small; i < p->count; i++) {
        if (!cg_batch_is_small_(p, i)) continue;
        if (layers[i].x) memcpy(p->flat_grad + at, layers[i].x, 4 * layers[i].n);
        else none_missing &= !layers[i].n;
        if (p->packed.count) {
            cg_packed_fill_(&p->packed, packed++, &layers[i].desc, layers[i].n, &p->flat_desc);
            at += layers[i].n;
            continue;
        }
        layers[i].report.used = p->contrib + used;
        if (cg_compress_checked_(&dense, NULL, &layers[i].desc.tag, NULL, layers[i].x, NULL, layers[i].n,
                p->contrib + used, (size_t)cg_dense_bound_(layers[i].n), &len, NULL, 0) != CG_OK)
            len = 0;
        layers[i].report.used_len = len;
        at += layers[i].n;
        used += (size_t)cg_dense_bound_(layers[i].n);
    }
    return none_missing ? p->flat_grad : NULL;
}
/* Result, status and report of the exchange of the small layers to each of them. */
static void cg_batch_unflatten_(const cg_batch_ *p, cg_layer *layers, const cg_ex_ *ex) {
    const cg_fenv_ env = cg_fenv_enter_(); /* for the step of a model */
    size_t at = 0, split = 0, split_len = 0;
    cg_info info;
    /* cannot fail: it is this rank's own packet, and there is room */
    if (p->packed.count && ex->status == CG_OK &&
        cg_segments_split(NULL, ex->report.used, ex->report.used_len, p->contrib, p->packed.used_bytes, &split_len) !=
            CG_OK)
        split_len = 0;
    for (size_t i = p->first_small; i < p->count; i++) {
        const void *used = layers[i].report.used;
        size_t len = layers[i].report.used_len;
        if (!cg_batch_is_small_(p, i)) continue;
        if (p->packed.count && split < split_len && cg_inspect(p->contrib + split, split_len - split, &info) == CG_OK) {
            used = p->contrib + split;
            len = info.packet_bytes;
            split += len;
        }
        layers[i].status = ex->status;
        layers[i].report = ex->report;
        layers[i].report.used = ex->status == CG_OK ? used : NULL;
        layers[i].report.used_len = ex->status == CG_OK ? len : 0;
        if (ex->status == CG_OK && layers[i].n) {
            const cg_exchange_desc *d = &layers[i].desc;
            cg_model_step_(d, p->flat_grad + at, layers[i].n);
            if (!d->model) memcpy(d->into ? d->into : layers[i].x, p->flat_grad + at, 4 * layers[i].n);
        }
        at += layers[i].n;
    }
    cg_fenv_leave_(env);
}
static int cg_batch_rates_ok_(const cg_batch_ *p, const cg_layer *layers) {
    int ok = 1;
    for (size_t i = p->first_small; i < p->count; i++) ok &= !cg_batch_is_small_(p, i) || cg_rate_ok_(&layers[i].desc);
    return ok;
}
/* Copies how the exchange of layer i went to its report, or of the small ones (i = count) to all of theirs. Returns
   report.at as the index in the layer where it is. */
static uint64_t cg_batch_copy_outcome_(const cg_batch_ *p, cg_layer *layers, size_t i, const cg_report *report) {
    size_t start = 0; /* of layer j among the small ones */
    uint64_t found = report->at;
    for (size_t j = 0; j < p->count; j++) {
        cg_report *r = &layers[j].report;
        if (i < p->count ? j != i : !cg_batch_is_small_(p, j)) continue;
        cg_report_copy_outcome_(r, report);
        r->route = report->route;
        if (i == p->count && report->at != CG_NO_INDEX) {
            r->at = report->at >= start && report->at - start < layers[j].n ? report->at - start : CG_NO_INDEX;
            if (r->at != CG_NO_INDEX) found = r->at;
        }
        start += layers[j].n;
    }
    return found;
}
/* Records and notes that did not arrive whole are forgotten. */
static cg_status cg_batch_well_(cg_ex_ *opening) {
    cg_report ok;
    cg_report_set_(&ok, CG_OK, cg_status_str(CG_OK), 0, CG_NO_INDEX);
    cg_report_copy_outcome_(&opening->report, &ok);
    return opening->status = CG_OK;
}
/* Starts all exchanges, and moves the first round: a record that says whether that went well, with a hash of all
   layers in place of the seed. */
static cg_status cg_batch_open_(cg_batch_ *p, cg_layer *layers, const cg_transport *t) {
    const size_t before_first = (size_t)0 - 1;
    const cg_exchange_desc default_desc = CG_ZERO;
    cg_ex_ *opening = p->opening;
    uint64_t hash = p->exchange_count;
    const size_t opening_bytes = (size_t)cg_batch_room_(t, &default_desc, 0, NULL);
    cg_status s, first_failure = CG_OK;
    const cg_report *first_report = NULL;
    uint64_t at, first_at = CG_NO_INDEX;
    uint8_t *mem = p->exchange_mem + opening_bytes;
    cg_fenv_ env = cg_fenv_enter_();
    size_t exchange = 0;
    float *flat = p->first_small < p->count ? cg_batch_flatten_(p, layers) : NULL;
    for (size_t i = cg_batch_next_(p, before_first); i <= p->count; i = cg_batch_next_(p, i), exchange++) {
        cg_ex_ *ex = &p->exchanges[exchange];
        const size_t room = (size_t)cg_batch_room_of_(p, t, i, NULL);
        float *grad = i < p->count ? layers[i].x : flat;
        cg_ex_init_(ex, cg_batch_desc_(p, i), t, grad, cg_batch_n_(p, i));
        ex->desc.flags |= CG_SECOND_ROUND_;
        if (i == p->count && !cg_batch_rates_ok_(p, layers)) cg_ex_fail_(ex, CG_E_ARG, t->rank, "rate must be finite");
        s = cg_ex_start_(ex, grad, mem, room);
        at = cg_batch_copy_outcome_(p, layers, i, &ex->report);
        if ((s != CG_OK || ex->status != CG_OK) && first_failure == CG_OK) {
            first_failure = s != CG_OK ? s : ex->status;
            first_report = &ex->report;
            first_at = at;
        }
        p->route = exchange == 0 || p->route == ex->plan.route ? ex->plan.route : (uint32_t)CG_ROUTE_AUTO;
        memcpy(p->own_records + exchange * CG_RECORD_BYTES_, ex->opening.record, CG_RECORD_BYTES_);
        hash = cg_mix64_(hash ^ cg_hash_bytes_(ex->opening.record + 8, 24));
        mem += room;
    }
    cg_ex_init_(opening, &default_desc, t, NULL, 0);
    s = cg_ex_start_(opening, NULL, p->exchange_mem, opening_bytes);
    cg_fenv_leave_(env);
    if (s != CG_OK) return s;
    opening->desc.tag.seed = hash;
    if (first_report) cg_ex_fail_here_(opening, first_failure, first_report->why, first_report->need, first_at);
    cg_record_put_(opening, 0, 0.0f);
    cg_allgather_equal_begin_(opening, opening->opening.record, CG_RECORD_BYTES_, opening->opening.gathered);
    s = cg_collective_wait_(opening);
    if (s == CG_E_TRANSPORT) return s;
    for (size_t q = 0; q < cg_ranks_(opening); q++)
        memcpy(opening->opening.records + q * CG_RECORD_BYTES_, cg_gathered_(opening, q), CG_RECORD_BYTES_);
    if (!cg_records_check_(opening)) return cg_batch_well_(opening); /* the next round says all of it again */
    if (opening->status == CG_E_MISMATCH)
        opening->report.why = "its layers differ: in number, length, operator, route, tag or common state";
    return opening->status;
}
/* The second round: opening records of all exchanges, and a verdict if messages of any exchange depend on them.
   Otherwise an exchange with a record that is not whole fails by itself. */
static cg_status cg_batch_records_(cg_batch_ *p) {
    cg_ex_ *opening = p->opening;
    int need_verdict = 0;
    cg_allgather_equal_begin_(opening, p->own_records, (uint64_t)p->exchange_count * CG_RECORD_BYTES_, p->records);
    if (cg_collective_wait_(opening) != CG_OK) return opening->status;
    for (size_t e = 0; e < p->exchange_count; e++) {
        cg_ex_ *ex = &p->exchanges[e];
        for (size_t q = 0; q < cg_ranks_(ex); q++) {
            const uint8_t *r = cg_gathered_(opening, q) + e * CG_RECORD_BYTES_;
            memcpy(ex->opening.records + q * CG_RECORD_BYTES_, r, CG_RECORD_BYTES_);
            if (!cg_record_is_whole_(ex, r, (int)q))
                cg_ex_fail_(opening, CG_E_CORRUPT, (int)q, "its opening record did not arrive intact");
        }
        ex->opening.in_batch = 1;
        need_verdict |= cg_records_need_verdict_(ex);
    }
    if (!need_verdict) return cg_batch_well_(opening);
    cg_verdict_begin_(opening, CG_ROUND_OPENING_);
    if (cg_collective_wait_(opening) == CG_E_TRANSPORT) return opening->status;
    return cg_verdict_read_(opening, CG_ROUND_OPENING_);
}
/* The closing of all exchanges with CG_CONFIRM that have come so far: a note for each. */
static cg_status cg_batch_close_(cg_batch_ *p) {
    cg_ex_ *opening = p->opening;
    int confirm = 0;
    for (size_t e = 0; e < p->exchange_count; e++) {
        const cg_ex_ *ex = &p->exchanges[e];
        confirm |= (ex->desc.flags & CG_CONFIRM) != 0;
        cg_note_put_(ex, p->own_records + e * CG_NOTE_BYTES_, 0, 0, CG_ROUND_CLOSING_ | CG_ROUND_VERDICT_);
    }
    if (!confirm) return CG_OK;
    cg_allgather_equal_begin_(opening, p->own_records, (uint64_t)p->exchange_count * CG_NOTE_BYTES_, p->records);
    if (cg_collective_wait_(opening) != CG_OK) return opening->status;
    for (size_t e = 0; e < p->exchange_count; e++)
        for (int q = 0; q < opening->transport.size; q++)
            if (p->exchanges[e].co.phase == CG_PHASE_CLOSING_)
                cg_verdict_hear_(
                    &p->exchanges[e], cg_gathered_(opening, (size_t)q) + e * CG_NOTE_BYTES_, CG_ROUND_CLOSING_, q);
    return CG_OK;
}
/* With CG_TOGETHER, an exchange that has failed is the failure of all that wait to be written; all ranks know of it. */
static void cg_batch_fail_together_(cg_batch_ *p) {
    const cg_ex_ *failed = NULL;
    int together = 0;
    for (size_t e = 0; e < p->exchange_count; e++) {
        together |= (p->exchanges[e].desc.flags & CG_TOGETHER) != 0;
        if (!failed && p->exchanges[e].status != CG_OK) failed = &p->exchanges[e];
    }
    for (size_t e = 0; together && failed && e < p->exchange_count; e++)
        if (p->exchanges[e].co.phase == CG_PHASE_CLOSING_ && p->exchanges[e].status == CG_OK)
            cg_ex_fail_(&p->exchanges[e], failed->status, failed->report.rank, failed->report.why);
}
/* Ends the exchange of layer i, or of the small ones, and reports it. */
static void cg_batch_finish_(cg_batch_ *p, cg_layer *layers, size_t i, cg_ex_ *ex) {
    cg_report *all = &p->opening->report;
    if (ex->co.phase == CG_PHASE_CLOSING_) {
        const cg_fenv_ env = cg_fenv_enter_();
        cg_ex_finish_(ex, ex->status);
        cg_fenv_leave_(env);
    }
    if (i == p->count) cg_batch_unflatten_(p, layers, ex);
    else {
        layers[i].status = ex->status;
        layers[i].report = ex->report;
    }
    all->bytes_out += ex->report.bytes_out;
    all->bytes_in += ex->report.bytes_in;
    all->rounds += ex->report.rounds;
}
/* The second round, then all exchanges; the first failure is returned, and only a failed callback ends the rest. */
static cg_status cg_batch_exchange_(cg_batch_ *p, cg_layer *layers) {
    const size_t before_first = (size_t)0 - 1;
    cg_ex_ *opening = p->opening, *failed_callback = NULL;
    size_t moved = 0, exchange = 0;
    int has_warning = 0;
    cg_io io;
    cg_status s = cg_batch_records_(p), verdict = CG_OK;
    if (s == CG_OK) s = cg_joined_run_(&p->joined, opening, p->exchanges, p->exchange_count);
    if (s != CG_OK) return s;
    for (; moved < p->exchange_count && !failed_callback; moved++) {
        cg_ex_ *ex = &p->exchanges[moved];
        int code = 0;
        if (ex->opening.joined) continue;
        while ((s = cg_exchange_next(ex, code, &io)) == CG_AGAIN) code = cg_io_run(&ex->transport, &io);
        if (s == CG_E_TRANSPORT) failed_callback = ex;
    }
    if (!failed_callback && cg_batch_close_(p) == CG_E_TRANSPORT) failed_callback = opening;
    if (!failed_callback) cg_batch_fail_together_(p);
    for (size_t i = cg_batch_next_(p, before_first); i <= p->count; i = cg_batch_next_(p, i), exchange++) {
        cg_ex_ *ex = &p->exchanges[exchange];
        if (ex->co.phase < CG_PHASE_CLOSING_) continue;             /* behind the one whose callback has failed */
        if (failed_callback && ex->co.phase == CG_PHASE_CLOSING_) { /* it cannot be confirmed */
            cg_ex_fail_(ex, CG_E_TRANSPORT, failed_callback->report.rank, cg_status_str(CG_E_TRANSPORT));
            ex->report.code = failed_callback->report.code;
        }
        cg_batch_finish_(p, layers, i, ex);
        if (verdict != CG_OK || (ex->status == CG_OK && (!ex->plan.warning || has_warning))) continue;
        has_warning = ex->status == CG_OK;
        verdict = ex->status;
        cg_report_copy_outcome_(&opening->report, &ex->report);
    }
    return verdict;
}
/* cg_exchange_layers; layers that keep the status CG_E_STATE have not been exchanged. */
static cg_status cg_exchange_layers_(cg_layer *layers, size_t count, size_t small, const cg_transport *transport,
    void *mem, size_t bytes, cg_report *report) {
    const size_t align_skip = mem ? (64 - ((uintptr_t)mem & 63)) % 64 : 0;
    const cg_exchange_desc default_desc = CG_ZERO;
    uint64_t need;
    cg_batch_ p;
    cg_status s;
    if (cg_transport_error_(transport)) {
        report->why = cg_transport_error_(transport);
        return CG_E_ARG;
    }
    need = cg_batch_mem_plan_(&p, layers, count, small, transport, NULL);
    if (!mem || bytes < align_skip || bytes - align_skip < need) {
        s = cg_exchange_no_memory_(&default_desc, transport, NULL, 0, CG_OK, report);
        if (report->status != CG_E_MEMORY) return s; /* a callback's failure is told instead */
        report->why = "mem is too small: cg_exchange_layers_memory gives its bytes";
        report->need = cg_add_sat_(need, 64);
        return s;
    }
    cg_batch_mem_plan_(&p, layers, count, small, transport, (uint8_t *)mem + align_skip);
    s = cg_batch_open_(&p, layers, transport);
    if (s == CG_OK) s = cg_batch_exchange_(&p, layers);
    *report = p.opening->report;
    report->route = p.route;
    return s;
}
CG_API_ cg_status cg_exchange_layers(cg_layer *layers, size_t count, size_t small, const cg_transport *transport,
    void *mem, size_t bytes, cg_report *report) {
    cg_report own;
    cg_status s;
    if (!report) report = &own;
    cg_report_set_(report, CG_E_ARG, "layers or transport is NULL", 0, CG_NO_INDEX);
    if (!layers && count) return CG_E_ARG;
    for (size_t i = 0; i < count; i++) {
        cg_report_set_(&layers[i].report, CG_OK, NULL, 0, CG_NO_INDEX);
        layers[i].status = CG_E_STATE;
    }
    s = transport ? cg_exchange_layers_(layers, count, small, transport, mem, bytes, report) : CG_E_ARG;
    for (size_t i = 0; i < count; i++) {
        if (layers[i].status != CG_E_STATE) continue;
        layers[i].status = s;
        layers[i].report.used = NULL;
        layers[i].report.used_len = 0;
        if (layers[i].report.status != CG_OK) continue;
        cg_report_copy_outcome_(&layers[i].report, report); /* the trouble is with another layer, or with all */
        if (s != CG_E_MEMORY) layers[i].report.need = 0;    /* mem is that of all */
        layers[i].report.at = CG_NO_INDEX;
    }
    return s;
}
CG_API_ cg_status cg_used_decode(
    const cg_extra *side, const void *used, size_t len, float alpha, float beta, float *y, size_t n) {
    const uint8_t *p = (const uint8_t *)used;
    size_t at = 0, done = 0;
    cg_decoder_ d;
    cg_info info;
    const float *values = used ? cg_reference_get_(p, len, n) : NULL;
    cg_status s = used || !len ? CG_OK : CG_E_ARG;
    if (values && n) {
        const cg_fenv_ env = cg_fenv_enter_();
        cg_axpby_(values, n, alpha, beta, y);
        cg_fenv_leave_(env);
    }
    if (values) return CG_OK;
    /* checks all packets before y changes */
    for (; at < len && s == CG_OK; at += info.packet_bytes, done += (size_t)info.n) {
        s = cg_packet_header_(&d, p + at, len - at, NULL, NULL);
        info = d.info;
        if (s == CG_OK && info.n > n - done) s = CG_E_MISMATCH;
        if (s == CG_OK && info.packet_bytes > len - at) s = CG_E_CORRUPT;
        if (s == CG_OK) s = cg_packet_open_(&d, side, p + at, info.packet_bytes, 1);
    }
    if (s == CG_OK && done != n) s = CG_E_MISMATCH;
    for (at = done = 0; at < len && s == CG_OK; at += info.packet_bytes, done += (size_t)info.n) {
        s = cg_inspect(p + at, len - at, &info);
        if (s == CG_OK) s = cg_decode(side, p + at, info.packet_bytes, alpha, beta, n ? y + done : y, (size_t)info.n);
    }
    return s;
}
