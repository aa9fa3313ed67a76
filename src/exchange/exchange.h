/* ---- >>exchange ---- */

static cg_status cg_opening_(cg_ex_ *x) {
    CG_CO_BEGIN_(x)
    if (!x->opened) {
        CG_CO_AWAIT_(x, 1, cg_allgather_equal_begin_(x, x->record, CG_RECORD_BYTES_, x->gathered));
        for (size_t q = 0; q < cg_ranks_(x); q++)
            memcpy(x->records + q * CG_RECORD_BYTES_, cg_gathered_(x, q), CG_RECORD_BYTES_);
    }
    cg_records_check_(x);
    if (x->status != CG_OK || !(x->desc.flags & CG_AGREE_SCALES)) return x->status;
    if (x->scales > 1) {
        cg_scales_collect_(x, x->lists);
        CG_CO_AWAIT_(x, 2, cg_allgather_equal_begin_(x, x->lists, 4 * x->scales, x->lists + 4 * (size_t)x->scales));
    }
    cg_scales_agree_(x);
    for (size_t q = 0; q < cg_ranks_(x); q++) x->sizes[q] = cg_get64_(x->records + q * CG_RECORD_BYTES_ + 32);
    return CG_OK; /* a failure from here on travels as a packet */
    CG_CO_END_
}
static cg_status cg_ex_resume_(cg_ex_ *x) {
    if (x->stage == 1) {
        cg_status s = cg_opening_(x);
        if (s != CG_OK) return s;
        x->bounce = x->later;
        x->bounce_bytes = x->later_bytes;
        x->stage = 2;
        x->line = 0;
    }
    switch (x->route) {
    case CG_ROUTE_RING: return cg_route_ring_(x);
    case CG_ROUTE_TREE: return cg_route_tree_(x);
    case CG_ROUTE_SCATTER: return cg_route_scatter_(x);
    case CG_ROUTE_SERVER: return cg_route_server_(x);
    case CG_ROUTE_MERGE: return cg_route_merge_(x);
    case CG_ROUTE_REGION: return cg_route_region_(x);
    case CG_ROUTE_SHARED: return cg_route_shared_(x);
    case CG_ROUTE_LINEAR: return cg_route_linear_(x);
    default: return cg_route_allgather_(x);
    }
}
static void cg_count_io_(cg_ex_ *x) {
    const cg_io *io = &x->io;
    const uint64_t others = (uint64_t)x->transport.size - 1;
    uint64_t out = 0, in = 0;
    x->report.rounds++;
    switch (io->kind) {
    case CG_IO_ALLREDUCE: out = in = 2 * others * io->in_bytes / (others + 1); break;
    case CG_IO_ALLGATHER: out = in = others * io->out_bytes; break;
    case CG_IO_BROADCAST:
        if (io->from == x->transport.rank) out = others * io->in_bytes;
        else in = io->in_bytes;
        break;
    default:
        out = io->out_bytes;
        in = io->in_bytes;
        break;
    }
    x->report.bytes_out += out;
    x->report.bytes_in += in;
}
static cg_status cg_ex_finish_(cg_ex_ *x, cg_status s) {
    x->stage = 3;
    if (s != CG_OK) cg_ex_fail_(x, s, x->transport.rank, cg_status_str(s));
    x->report.route = x->route;
    if (x->status != CG_OK) {
        x->report.used = NULL;
        x->report.used_len = 0;
        return x->status;
    }
    cg_model_step_(&x->desc, x->y, x->n);
    x->report.rank = -1;
    x->report.why = cg_status_str(CG_OK);
    if (!x->report.used) x->report.used = x->own;
    x->report.used_len = x->used_len ? x->used_len : (size_t)x->part_at[x->parts];
    return CG_OK;
}
static cg_status cg_ex_next_(cg_ex_ *x, int last_code, cg_io *io) {
    cg_status s;
    if (x->moving) {
        const int peer = x->io.kind != CG_IO_SENDRECV && x->io.kind != CG_IO_BROADCAST ? -1
            : x->io.from >= 0                                                          ? x->io.from
                                                                                       : x->io.to;
        x->moving = 0;
        if (last_code) {
            x->status = CG_OK; /* whatever went before, this is what ended it */
            x->report.code = last_code;
            cg_ex_fail_(x, CG_E_TRANSPORT, peer == x->transport.rank ? -1 : peer, cg_status_str(CG_E_TRANSPORT));
            return cg_ex_finish_(x, CG_E_TRANSPORT);
        }
        cg_count_io_(x);
    }
    do {
        if (x->c.ask && cg_collective_next_(x, &x->io)) {
            x->moving = 1;
            *io = x->io;
            return CG_AGAIN;
        }
        x->c.ask = CG_COLL_NONE_;
        s = cg_ex_resume_(x);
    } while (s == CG_AGAIN);
    return cg_ex_finish_(x, s);
}
static void cg_ex_init_(cg_ex_ *x, const cg_exchange_desc *desc, const cg_transport *transport, float *v, size_t n) {
    memset(x, 0, sizeof *x);
    x->desc = *desc;
    x->transport = *transport;
    x->desc.tag.rank = (uint32_t)transport->rank;
    x->x = v ? v : &x->none;
    x->y = desc->into ? desc->into : x->x;
    x->n = n;
    x->report.rank = -1;
    x->report.why = cg_status_str(CG_OK);
}
/* NULL, or why nothing can be said to anybody. */
static const char *cg_transport_error_(const cg_transport *t) {
    if (t->size < 1 || t->rank < 0 || t->rank >= t->size) return "rank must be from 0 to size - 1";
    if (t->size > 1 && !t->sendrecv && !t->allgather && !t->broadcast && !t->allreduce)
        return "no callback: give sendrecv, or at least one of allgather, broadcast and allreduce";
    return NULL;
}
static cg_status cg_ex_start_(cg_ex_ *x, float *v, void *mem, size_t bytes) {
    const size_t skip = mem ? (64 - ((uintptr_t)mem & 63)) % 64 : 0;
    uint64_t need;
    float scale = 0.0f;
    if (cg_transport_error_(&x->transport)) {
        x->status = CG_E_ARG;
        x->report.why = cg_transport_error_(&x->transport);
        return CG_E_ARG;
    }
    if (!v && x->n) cg_ex_fail_(x, CG_E_ARG, x->transport.rank, "x is NULL");
    else cg_ex_resolve_(x);
    need = cg_mem_plan_(x, NULL);
    if (need > SIZE_MAX / 2) cg_ex_fail_(x, CG_E_ARG, x->transport.rank, "sizes overflow");
    else if (!mem || bytes < skip || bytes - skip < need)
        cg_ex_fail_(x, CG_E_MEMORY, x->transport.rank, "mem is smaller than cg_exchange_memory");
    if (x->status == CG_OK || (mem && bytes >= skip && bytes - skip >= cg_mem_plan_(x, NULL))) {
        cg_mem_plan_(x, (uint8_t *)mem + skip);
    } else {
        if (x->transport.size > CG_FALLBACK_RANKS_) return x->status;
        x->records = x->spare;
        x->gathered = x->spare + CG_FALLBACK_RANKS_ * CG_RECORD_BYTES_;
        x->sizes = x->spare_sizes;
    }
    if (x->status == CG_OK && x->fill && (x->parts > 1 || !cg_is_compressed_first_(x))) {
        cg_source_ src = CG_ZERO;
        src.producer = x->fill;
        src.x = x->x;
        cg_producer_make_all_(&src);
        x->fill = NULL;
    }
    if (x->status == CG_OK && cg_is_compressed_first_(x)) cg_stripes_compress_(x);
    else if (x->status == CG_OK) cg_grad_check_finite_(x);
    if (x->status == CG_OK && x->scales == 1) scale = cg_as_float_(cg_get32_(x->own + CG_HEADER_BYTES));
    cg_record_put_(x, x->status == CG_OK && cg_is_compressed_first_(x) ? (size_t)x->part_at[x->parts] : 0, scale);
    x->later = x->bounce;
    x->later_bytes = x->bounce_bytes;
    x->bounce = (uint8_t *)x->tiny;
    x->bounce_bytes = sizeof x->tiny;
    x->stage = 1;
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
    if (state->stage < 1 || state->stage > 2) return CG_E_STATE;
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
CG_API_ size_t cg_exchange_memory(const cg_exchange_desc *desc, const cg_transport *transport, size_t n) {
    cg_exchange_state x;
    cg_fenv_ env;
    uint64_t bytes = 0;
    if (!desc || !transport || cg_transport_error_(transport)) return 0;
    env = cg_fenv_enter_();
    cg_ex_init_(&x, desc, transport, NULL, n);
    cg_ex_resolve_(&x);
    if (x.status == CG_OK || transport->size > CG_FALLBACK_RANKS_)
        bytes = cg_add_sat_(cg_mem_plan_(&x, NULL), 64 + CG_STATE_ROOM_);
    cg_fenv_leave_(env);
    return cg_size_or_zero_(bytes);
}
CG_API_ size_t cg_exchange_carry(const cg_exchange_desc *desc, const cg_transport *transport, size_t n) {
    cg_exchange_state x;
    cg_fenv_ env;
    size_t floats = 0;
    if (!desc || !transport || cg_transport_error_(transport)) return 0;
    env = cg_fenv_enter_();
    cg_ex_init_(&x, desc, transport, NULL, n);
    x.desc.carry = &x.none; /* as if there were one */
    cg_ex_resolve_(&x);
    if (x.status == CG_OK) floats = cg_carry_floats_(&x);
    cg_fenv_leave_(env);
    return floats;
}
/* fill: x is still to be made; failed: this rank has nothing to exchange but its status. */
static cg_status cg_exchange_in_state_(cg_ex_ *x, const cg_exchange_desc *desc, const cg_transport *t, float *v,
    struct cg_producer_ *fill, size_t n, void *mem, size_t bytes, cg_status failed, cg_report *report) {
    cg_io io;
    int code = 0;
    cg_status s;
    const cg_fenv_ env = cg_fenv_enter_();
    cg_ex_init_(x, desc, t, v, n);
    if (failed != CG_OK) cg_ex_fail_(x, failed, t->rank, cg_status_str(failed));
    else x->fill = fill;
    s = cg_ex_start_(x, v, mem, bytes);
    cg_fenv_leave_(env);
    if (s == CG_OK)
        while ((s = cg_exchange_next(x, code, &io)) == CG_AGAIN) code = cg_io_run(t, &io);
    cg_exchange_report(x, report);
    return s;
}
CG_NOINLINE_ cg_status cg_exchange_no_memory_(const cg_exchange_desc *desc, const cg_transport *transport, float *x,
    size_t n, cg_status failed, cg_report *report) {
    cg_exchange_state state; /* too little memory for anything but to say so */
    return cg_exchange_in_state_(&state, desc, transport, x, NULL, n, NULL, 0, failed, report);
}
/* failed: CG_OK, or why this rank can only tell the others. */
static cg_status cg_exchange_or_fail_(const cg_exchange_desc *desc, const cg_transport *transport, float *x, size_t n,
    void *mem, size_t bytes, cg_status failed, cg_report *report) {
    const size_t skip = mem ? (64 - ((uintptr_t)mem & 63)) % 64 : 0;
    uint8_t *p = (uint8_t *)mem;
    if (report) memset(report, 0, sizeof *report);
    if (!desc || !transport) return CG_E_ARG;
    if (!mem || bytes < skip + CG_STATE_ROOM_) return cg_exchange_no_memory_(desc, transport, x, n, failed, report);
    return cg_exchange_in_state_((cg_ex_ *)(void *)(p + skip), desc, transport, x, NULL, n, p + skip + CG_STATE_ROOM_,
        bytes - skip - CG_STATE_ROOM_, failed, report);
}
CG_API_ cg_status cg_exchange(const cg_exchange_desc *desc, const cg_transport *transport, float *x, size_t n,
    void *mem, size_t bytes, cg_report *report) {
    return cg_exchange_or_fail_(desc, transport, x, n, mem, bytes, CG_OK, report);
}
