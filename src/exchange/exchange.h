/* exchange: one exchange from start to report, blocking or in pieces  Offers   the public calls but those of layers;
   cg_ex_init_, cg_ex_start_, cg_ex_next_, cg_count_io_ Needs    all rooms before it Touches  the state, the caller's
   mem, x or desc.into, desc.model, desc.carry, desc.warm Other headers may use: cg_exchange_begin_in_state_,
   cg_exchange_in_state_, cg_exchange_or_fail_, cg_exchange_resolve_, cg_transport_error_, cg_used_decoder_ A rank that
   fails still takes part in every message that others expect of it, so that all ranks return, with a reason, in the
   same exchange. The result, model, carry and warm change only after the last message, when all packets have been
   checked. */

/* Coroutine of the opening, which returns as a route does: records of all ranks, checked; scales, if they are to be
   agreed on; a verdict, if messages depend on records. */
static cg_status cg_opening_(cg_ex_ *ex) {
    CG_CO_BEGIN_(ex)
    if (!ex->opening.in_batch) {
        CG_CO_AWAIT_(ex, 1, cg_allgather_equal_begin_(ex, ex->opening.record, CG_RECORD_BYTES_, ex->opening.gathered));
        for (size_t q = 0; q < cg_ranks_(ex); q++)
            memcpy(ex->opening.records + q * CG_RECORD_BYTES_, cg_gathered_(ex, q), CG_RECORD_BYTES_);
    }
    if (cg_records_check_(ex)) return ex->status;
    if (ex->scales.count > 1) {
        cg_scales_collect_(ex);
        CG_CO_AWAIT_(ex, 2,
            cg_allgather_equal_begin_(ex, ex->scales.all, cg_scale_table_bytes_(ex) + CG_NOTE_BYTES_,
                ex->scales.all + cg_scale_table_bytes_(ex) + CG_NOTE_BYTES_));
    }
    if (ex->desc.flags & CG_AGREE_SCALES) cg_scales_agree_(ex);
    if (!ex->opening.in_batch && cg_records_need_verdict_(ex)) CG_CO_VERDICT_(ex, 3, CG_ROUND_OPENING_);
    cg_record_sizes_(ex);
    return CG_OK;
    CG_CO_END_
}
static cg_status cg_closing_(cg_ex_ *ex) {
    CG_CO_BEGIN_(ex)
    CG_CO_VERDICT_(ex, 1, CG_ROUND_CLOSING_);
    return CG_OK;
    CG_CO_END_
}
static void cg_phase_begin_(cg_ex_ *ex, int phase) {
    ex->co.phase = phase;
    ex->co.line = 0;
}
/* Goes on with the opening, the route or the closing: CG_AGAIN if it waits for a collective again, otherwise the
   outcome. */
static cg_status cg_ex_resume_(cg_ex_ *ex) {
    cg_status s;
    if (ex->co.phase == CG_PHASE_OPENING_) {
        s = cg_opening_(ex);
        if (s != CG_OK) return s;
        ex->mem.bounce = ex->mem.route_bounce;
        ex->mem.bounce_bytes = ex->mem.route_bounce_bytes;
        cg_phase_begin_(ex, CG_PHASE_ROUTE_);
    }
    if (ex->co.phase == CG_PHASE_ROUTE_) {
        s = cg_route_row_of_(ex->plan.route)->move(ex);
        if (s != CG_OK) return s;
        cg_phase_begin_(ex, CG_PHASE_CLOSING_);
    }
    return (ex->desc.flags & CG_CONFIRM) && !ex->opening.in_batch ? cg_closing_(ex) : ex->status;
}
/* Adds the message that has just been moved to the report. */
static void cg_count_io_(cg_ex_ *ex) {
    const cg_io *io = &ex->co.io;
    const uint64_t others = (uint64_t)ex->transport.size - 1;
    uint64_t out = 0, in = 0;
    ex->report.rounds++;
    switch (io->kind) {
    case CG_IO_ALLREDUCE: out = in = 2 * others * io->in_bytes / (others + 1); break;
    case CG_IO_ALLGATHER: out = in = others * io->out_bytes; break;
    case CG_IO_BROADCAST:
        if (io->from == ex->transport.rank) out = others * io->in_bytes;
        else in = io->in_bytes;
        break;
    default:
        out = io->out_bytes;
        in = io->in_bytes;
        break;
    }
    ex->report.bytes_out += out;
    ex->report.bytes_in += in;
}
/* Ends the exchange: writes what it has, takes the step of the model and completes the report. */
static cg_status cg_ex_finish_(cg_ex_ *ex, cg_status s) {
    ex->co.phase = CG_PHASE_DONE_;
    if (s == CG_OK && ex->status == CG_OK) s = cg_route_row_of_(ex->plan.route)->write(ex);
    if (s != CG_OK) cg_ex_fail_(ex, s, ex->transport.rank, cg_status_str(s));
    ex->report.route = ex->plan.route;
    if (ex->status != CG_OK) {
        cg_direct_restore_(ex);
        ex->report.used = NULL;
        ex->report.used_len = 0;
        return ex->status;
    }
    cg_model_step_(&ex->desc, ex->result, ex->n);
    ex->report.rank = -1;
    ex->report.why = ex->plan.warning ? ex->plan.warning : cg_status_str(CG_OK);
    if (cg_direct_used_(ex)) return CG_OK;
    if (!ex->report.used) ex->report.used = ex->own.packets;
    ex->report.used_len = ex->contrib.len ? ex->contrib.len : (size_t)ex->own.offset[ex->plan.stripes];
    return CG_OK;
}
/* The packet in report.used, if it is one that is open; otherwise NULL. */
CG_OFFERED_ cg_decoder_ *cg_used_decoder_(const cg_ex_ *ex) {
    return ex->inputs.opened && ex->report.used == ex->own.packets ? &ex->inputs.decoder[ex->transport.rank] : NULL;
}
/* cg_exchange_next, within the floating-point environment. In a batch an exchange with CG_CONFIRM is not finished
   here, but returns its status in the phase CG_PHASE_CLOSING_. */
static cg_status cg_ex_next_(cg_ex_ *ex, int last_code, cg_io *io) {
    cg_status s;
    if (ex->co.io_pending) {
        const int peer = ex->co.io.kind != CG_IO_SENDRECV && ex->co.io.kind != CG_IO_BROADCAST ? -1
            : ex->co.io.from >= 0                                                              ? ex->co.io.from
                                                                                               : ex->co.io.to;
        ex->co.io_pending = 0;
        if (last_code) {
            ex->status = CG_OK; /* an earlier failure gives way to the one that ends the exchange */
            ex->report.code = last_code;
            cg_ex_fail_(ex, CG_E_TRANSPORT, peer == ex->transport.rank ? -1 : peer, cg_status_str(CG_E_TRANSPORT));
            return cg_ex_finish_(ex, CG_E_TRANSPORT);
        }
        cg_count_io_(ex);
    }
    do {
        if (ex->collective.kind && cg_collective_next_(ex, &ex->co.io)) {
            ex->co.io_pending = 1;
            *io = ex->co.io;
            return CG_AGAIN;
        }
        ex->collective.kind = CG_COLL_NONE_;
        s = cg_ex_resume_(ex);
    } while (s == CG_AGAIN);
    if (ex->opening.in_batch && (ex->desc.flags & CG_CONFIRM) && ex->co.phase == CG_PHASE_CLOSING_) return s;
    return cg_ex_finish_(ex, s);
}
/* Copies the arguments. */
static void cg_ex_set_call_(
    cg_ex_ *ex, const cg_exchange_desc *desc, const cg_transport *transport, float *grad, size_t n) {
    ex->desc = *desc;
    ex->transport = *transport;
    ex->desc.tag.rank = (uint32_t)transport->rank;
    ex->grad = grad ? grad : &ex->no_grad;
    ex->result = desc->into ? desc->into : ex->grad;
    ex->n = n;
    cg_report_set_(&ex->report, CG_OK, cg_status_str(CG_OK), 0, CG_NO_INDEX);
}
/* Zeroes the state and copies the arguments. */
static void cg_ex_init_(
    cg_ex_ *ex, const cg_exchange_desc *desc, const cg_transport *transport, float *grad, size_t n) {
    memset(ex, 0, sizeof *ex);
    cg_ex_set_call_(ex, desc, transport, grad, n);
}
/* NULL, or why no message can be sent at all. */
static const char *cg_transport_error_(const cg_transport *t) {
    if (t->size < 1 || t->rank < 0 || t->rank >= t->size) return "rank must be from 0 to size - 1";
    if (!CG_RESERVE_IS_ZERO_(t->reserved)) return "reserved of the transport must be 0: start from CG_ZERO";
    if (t->size > 1 && !t->sendrecv && !t->allgather && !t->broadcast && !t->allreduce)
        return "no callback: give sendrecv, or at least one of allgather, broadcast and allreduce";
    return NULL;
}
/* Resolves the plan, unless ex->resolved says that it is, lays out mem, compresses what can be compressed at once and
   writes the opening record. Whatever is wrong goes into ex->status, and the opening will tell it. Returns another
   status than CG_OK only if that is impossible: an unusable transport, or no memory for the records of more than
   CG_FALLBACK_RANKS_ ranks. */
static cg_status cg_ex_start_(cg_ex_ *ex, float *grad, void *mem, size_t bytes) {
    const size_t align_skip = mem ? (64 - ((uintptr_t)mem & 63)) % 64 : 0;
    uint64_t need_bytes;
    float scale = 0.0f;
    cg_resolved_ resolved;
    if (cg_transport_error_(&ex->transport)) {
        cg_ex_fail_(ex, CG_E_ARG, -1, cg_transport_error_(&ex->transport));
        return CG_E_ARG;
    }
    if (!grad && ex->n) cg_ex_fail_(ex, CG_E_ARG, ex->transport.rank, "x is NULL");
    else if (!ex->resolved) cg_ex_resolve_(ex, &resolved, 0);
    ex->report.route = ex->plan.route;
    ex->report.choice = ex->plan.choice;
    ex->report.instead = ex->plan.instead ? cg_route_name(ex->plan.instead) : NULL;
    ex->report.seconds = ex->plan.seconds;
    ex->report.instead_seconds = ex->plan.instead_seconds;
    need_bytes = cg_mem_plan_(ex, NULL);
    if (need_bytes > SIZE_MAX / 2) cg_ex_fail_(ex, CG_E_ARG, ex->transport.rank, "sizes overflow");
    else if (!mem || bytes < align_skip || bytes - align_skip < need_bytes)
        cg_ex_fail_here_(ex, CG_E_MEMORY, "mem is too small: cg_exchange_memory gives its bytes",
            cg_add_sat_(need_bytes, 64 + CG_STATE_ROOM_), CG_NO_INDEX);
    if (ex->status == CG_OK || (mem && bytes >= align_skip && bytes - align_skip >= cg_mem_plan_(ex, NULL))) {
        cg_mem_plan_(ex, (uint8_t *)mem + align_skip);
    } else {
        if (ex->transport.size > CG_FALLBACK_RANKS_) return ex->status;
        ex->opening.records = ex->opening.fallback;
        ex->opening.gathered = ex->opening.fallback + CG_FALLBACK_RANKS_ * CG_RECORD_BYTES_;
        ex->mem.sizes = ex->opening.fallback_sizes;
    }
    if (ex->status == CG_OK && ex->producer && !(ex->plan.direct && cg_makes_packet_(ex)) &&
        (ex->plan.stripes > 1 || !cg_is_compressed_first_(ex))) {
        cg_producer_run_(ex->producer, ex->grad);
        ex->producer = NULL;
    }
    if (ex->status == CG_OK && ex->plan.direct) cg_direct_start_(ex);
    else if (ex->status == CG_OK && cg_is_compressed_first_(ex)) {
        if (cg_route_row_of_(ex->plan.route)->compress) cg_route_row_of_(ex->plan.route)->compress(ex);
        else cg_stripes_compress_(ex);
    } else if (ex->status == CG_OK) cg_grad_check_finite_(ex);
    if (ex->status == CG_OK && ex->scales.count == 1)
        scale = cg_as_float_(cg_get32_(ex->own.packets + CG_HEADER_BYTES));
    cg_record_put_(
        ex, ex->status == CG_OK && cg_is_compressed_first_(ex) ? (size_t)ex->own.offset[ex->plan.stripes] : 0, scale);
    ex->mem.route_bounce = ex->mem.bounce;
    ex->mem.route_bounce_bytes = ex->mem.bounce_bytes;
    ex->mem.bounce = (uint8_t *)ex->opening.bounce;
    ex->mem.bounce_bytes = sizeof ex->opening.bounce;
    ex->co.phase = CG_PHASE_OPENING_;
    if (ex->status != CG_OK) ex->resolved = NULL; /* it may not be in mem */
    return CG_OK;
}
CG_API_ cg_status cg_exchange_start(cg_exchange_state *state, const cg_exchange_desc *desc,
    const cg_transport *transport, float *x, size_t n, void *mem, size_t bytes) {
    cg_fenv_ env;
    cg_status s;
    if (!state || !desc || !transport) return CG_E_ARG;
    env = cg_fenv_enter_();
    cg_ex_init_(state, desc, transport, x, n);
    s = cg_ex_start_(state, x, mem, bytes);
    cg_fenv_leave_(env);
    return s;
}
CG_API_ cg_status cg_exchange_next(cg_exchange_state *state, int last_code, cg_io *io) {
    cg_fenv_ env;
    cg_status s;
    if (!state || !io) return CG_E_ARG;
    memset(io, 0, sizeof *io);
    if (state->co.phase == CG_PHASE_IDLE_ || state->co.phase == CG_PHASE_DONE_) return CG_E_STATE;
    env = cg_fenv_enter_();
    s = cg_ex_next_(state, last_code, io);
    cg_fenv_leave_(env);
    return s;
}
CG_API_ void cg_exchange_report(const cg_exchange_state *state, cg_report *report) {
    if (state && report) *report = state->report;
}

CG_API_ int cg_io_run(const cg_transport *t, const cg_io *io) {
    switch (io->kind) {
    case CG_IO_ALLREDUCE: return t->allreduce(t->user, (float *)io->in, io->in_bytes / 4);
    case CG_IO_ALLGATHER: return t->allgather(t->user, io->out, io->in, io->out_bytes);
    case CG_IO_BROADCAST: return t->broadcast(t->user, io->in, io->in_bytes, io->from);
    case CG_IO_SENDRECV: return t->sendrecv(t->user, io->out, io->out_bytes, io->to, io->in, io->in_bytes, io->from);
    default: return 0;
    }
}
/* Resolves an exchange ahead of its start, in *ex; *resolved as in cg_ex_resolve_. Returns what cg_exchange_memory
   does. */
static uint64_t cg_exchange_resolve_(cg_ex_ *ex, const cg_exchange_desc *desc, const cg_transport *transport, size_t n,
    cg_resolved_ *resolved, int known) {
    if (cg_transport_error_(transport)) return 0;
    cg_ex_init_(ex, desc, transport, NULL, n);
    cg_ex_resolve_(ex, resolved, known);
    if (ex->status != CG_OK && transport->size <= CG_FALLBACK_RANKS_) return 0;
    return cg_add_sat_(cg_mem_plan_(ex, NULL), 64 + CG_STATE_ROOM_);
}
CG_API_ size_t cg_exchange_memory(const cg_exchange_desc *desc, const cg_transport *transport, size_t n) {
    cg_exchange_state ex;
    cg_resolved_ resolved;
    cg_fenv_ env;
    uint64_t bytes;
    if (!desc || !transport) return 0;
    env = cg_fenv_enter_();
    bytes = cg_exchange_resolve_(&ex, desc, transport, n, &resolved, 0);
    cg_fenv_leave_(env);
    return cg_size_or_zero_(bytes);
}
CG_API_ size_t cg_exchange_carry(const cg_exchange_desc *desc, const cg_transport *transport, size_t n) {
    cg_exchange_state ex;
    cg_resolved_ resolved;
    cg_fenv_ env;
    size_t floats = 0;
    if (!desc || !transport || cg_transport_error_(transport)) return 0;
    env = cg_fenv_enter_();
    cg_ex_init_(&ex, desc, transport, NULL, n);
    ex.desc.carry = &ex.no_grad; /* as if there were one: without it the description may be refused */
    cg_ex_resolve_(&ex, &resolved, 0);
    if (ex.status == CG_OK) floats = cg_carry_floats_(&ex);
    cg_fenv_leave_(env);
    return floats;
}
/* Begins an exchange in the caller's state; mem is beside the state. resolved: cg_exchange_resolve_ has been called for
   this state, and desc is as it was then but for into, model, score and CG_ABSTAIN. producer: makes grad, or NULL if
   it is there. earlier_status: if not CG_OK, this rank has nothing to exchange but that. */
static cg_status cg_exchange_begin_in_state_(cg_ex_ *ex, const cg_exchange_desc *desc, const cg_transport *t,
    float *grad, struct cg_producer_ *producer, size_t n, void *mem, size_t bytes, int resolved,
    cg_status earlier_status) {
    const char *why;
    cg_status s;
    const cg_fenv_ env = cg_fenv_enter_();
    if (resolved) cg_ex_set_call_(ex, desc, t, grad, n);
    else cg_ex_init_(ex, desc, t, grad, n);
    why = resolved ? cg_refused_abstention_(ex) : NULL;
    if (why) cg_ex_fail_(ex, CG_E_UNSUPPORTED, t->rank, why);
    if (earlier_status != CG_OK) cg_ex_fail_(ex, earlier_status, t->rank, cg_status_str(earlier_status));
    else ex->producer = producer;
    s = cg_ex_start_(ex, grad, mem, bytes);
    cg_fenv_leave_(env);
    return s;
}
/* A whole exchange, as above. */
static cg_status cg_exchange_in_state_(cg_ex_ *ex, const cg_exchange_desc *desc, const cg_transport *t, float *grad,
    struct cg_producer_ *producer, size_t n, void *mem, size_t bytes, int resolved, cg_status earlier_status,
    cg_report *report) {
    cg_io io;
    int code = 0;
    cg_status s = cg_exchange_begin_in_state_(ex, desc, t, grad, producer, n, mem, bytes, resolved, earlier_status);
    if (s == CG_OK)
        while ((s = cg_exchange_next(ex, code, &io)) == CG_AGAIN) code = cg_io_run(t, &io);
    cg_exchange_report(ex, report);
    return s;
}
/* For mem that is too small even for the state: only tells the others. */
CG_NOINLINE_ cg_status cg_exchange_no_memory_(const cg_exchange_desc *desc, const cg_transport *transport, float *x,
    size_t n, cg_status earlier_status, cg_report *report) {
    cg_exchange_state state;
    return cg_exchange_in_state_(&state, desc, transport, x, NULL, n, NULL, 0, 0, earlier_status, report);
}
/* cg_exchange; earlier_status: CG_OK, or a failure that this rank only tells the others. */
static cg_status cg_exchange_or_fail_(const cg_exchange_desc *desc, const cg_transport *transport, float *x, size_t n,
    void *mem, size_t bytes, cg_status earlier_status, cg_report *report) {
    const size_t align_skip = mem ? (64 - ((uintptr_t)mem & 63)) % 64 : 0;
    uint8_t *p = (uint8_t *)mem;
    if (report) cg_report_set_(report, CG_E_ARG, "desc or transport is NULL", 0, CG_NO_INDEX);
    if (!desc || !transport) return CG_E_ARG;
    if (!mem || bytes < align_skip + CG_STATE_ROOM_)
        return cg_exchange_no_memory_(desc, transport, x, n, earlier_status, report);
    return cg_exchange_in_state_((cg_ex_ *)(void *)(p + align_skip), desc, transport, x, NULL, n,
        p + align_skip + CG_STATE_ROOM_, bytes - align_skip - CG_STATE_ROOM_, 0, earlier_status, report);
}
CG_API_ cg_status cg_exchange(const cg_exchange_desc *desc, const cg_transport *transport, float *x, size_t n,
    void *mem, size_t bytes, cg_report *report) {
    return cg_exchange_or_fail_(desc, transport, x, n, mem, bytes, CG_OK, report);
}

CG_API_ size_t cg_stripe_begin(size_t n, int ranks, int r) {
    if (ranks < 1 || r < 0 || r > ranks) return 0;
    return cg_stripe_offset_(n, (size_t)ranks, (size_t)r);
}
/* desc for one leg of scatter. */
static cg_exchange_desc cg_leg_desc_(const cg_exchange_desc *desc, uint32_t route, const size_t *bounds, float *mine) {
    cg_exchange_desc d = *desc;
    d.route = route;
    d.bounds = bounds;
    d.mine = mine;
    return d;
}
static cg_status cg_leg_run_(const cg_exchange_desc *desc, const cg_transport *transport, uint32_t route, float *x,
    size_t n, const size_t *bounds, float *mine, void *mem, size_t bytes, cg_report *report) {
    cg_exchange_desc d;
    if (!desc || !transport) return cg_exchange_or_fail_(NULL, NULL, x, n, mem, bytes, CG_OK, report);
    d = cg_leg_desc_(desc, route, bounds, mine);
    d.flags |= CG_NEEDS_MINE_;
    return cg_exchange_or_fail_(&d, transport, x, n, mem, bytes, CG_OK, report);
}
CG_API_ cg_status cg_reduce_scatter(const cg_exchange_desc *desc, const cg_transport *transport, const float *x,
    size_t n, const size_t *bounds, float *mine, void *mem, size_t bytes, cg_report *report) {
    /* with mine the route does not write to x */
    return cg_leg_run_(
        desc, transport, CG_ROUTE_REDUCE_SCATTER, (float *)(uintptr_t)x, n, bounds, mine, mem, bytes, report);
}
CG_API_ cg_status cg_all_gather(const cg_exchange_desc *desc, const cg_transport *transport, const float *mine,
    const size_t *bounds, float *x, size_t n, void *mem, size_t bytes, cg_report *report) {
    return cg_leg_run_(
        desc, transport, CG_ROUTE_ALL_GATHER, x, n, bounds, (float *)(uintptr_t)mine, mem, bytes, report);
}
static size_t cg_leg_memory_(
    const cg_exchange_desc *desc, const cg_transport *transport, uint32_t route, size_t n, const size_t *bounds) {
    cg_exchange_desc d;
    if (!desc) return 0;
    d = cg_leg_desc_(desc, route, bounds, NULL);
    return cg_exchange_memory(&d, transport, n);
}
CG_API_ size_t cg_reduce_scatter_memory(
    const cg_exchange_desc *desc, const cg_transport *transport, size_t n, const size_t *bounds) {
    return cg_leg_memory_(desc, transport, CG_ROUTE_REDUCE_SCATTER, n, bounds);
}
CG_API_ size_t cg_all_gather_memory(
    const cg_exchange_desc *desc, const cg_transport *transport, size_t n, const size_t *bounds) {
    return cg_leg_memory_(desc, transport, CG_ROUTE_ALL_GATHER, n, bounds);
}
