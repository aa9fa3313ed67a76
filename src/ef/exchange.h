/* ---- >>exchange ---- */

/* desc as ef has it, for that step. */
static cg_exchange_desc cg_ef_step_desc_(const cg_ef *ef, const cg_exchange_desc *desc) {
    const cg_op dense = cg_dense(); /* of dense steps, which some routes do not take */
    cg_exchange_desc x = *desc;
    x.op = cg_ef_op_(&ef->desc, &desc->tag);
    x.into = NULL;
    x.warm = x.op.transform.id == CG_TRANSFORM_LOWRANK ? ef->warm : NULL;
    x.carry = ef->carry;
    /* a dense step of VARIANCE */
    if (x.side && x.side->aux && x.op.select.id != CG_SELECT_BINS && x.op.select.id != CG_SELECT_VARIANCE)
        x.side = NULL;
    if (ef->desc.kind == CG_EF_LAQ && x.route == CG_ROUTE_AUTO) x.route = CG_ROUTE_ALLGATHER;
    if (cg_same_op_(&x.op, &dense) &&
        (x.route == CG_ROUTE_MERGE || x.route == CG_ROUTE_SHARED || x.route == CG_ROUTE_REGION))
        x.route = CG_ROUTE_AUTO;
    return x;
}
typedef struct cg_ef_buffer_bytes_ {
    uint64_t vector_bytes, packet_bytes, exchange_bytes;
} cg_ef_buffer_bytes_;
static uint64_t cg_ef_buffer_bytes_of_(
    const cg_ef *ef, const cg_exchange_desc *desc, const cg_transport *transport, cg_ef_buffer_bytes_ *r) {
    const cg_exchange_desc x = cg_ef_step_desc_(ef, desc);
    const uint64_t up = 63;
    memset(r, 0, sizeof *r);
    r->exchange_bytes = cg_exchange_memory(&x, transport, ef->desc.n);
    if (!r->exchange_bytes) return 0;
    if (!cg_ef_in_place_(&ef->desc)) r->vector_bytes = cg_add_sat_(cg_mul_sat_(4, ef->desc.n), up) & ~up;
    if (ef->desc.kind == CG_EF_LAQ)
        r->packet_bytes = cg_add_sat_(cg_add_sat_(cg_bound_(&x.op, NULL, ef->desc.n), CG_HEADER_BYTES), up) & ~up;
    return cg_add_sat_(cg_add_sat_(cg_add_sat_(r->vector_bytes, r->packet_bytes), r->exchange_bytes), 64);
}
CG_API_ size_t cg_ef_exchange_memory(const cg_ef *ef, const cg_exchange_desc *desc, const cg_transport *transport) {
    cg_fenv_ env;
    cg_ef_buffer_bytes_ r;
    size_t bytes;
    if (!ef || !desc || !transport) return 0;
    env = cg_fenv_enter_();
    bytes = cg_size_or_zero_(cg_ef_buffer_bytes_of_(ef, desc, transport, &r));
    cg_fenv_leave_(env);
    return bytes;
}
/* LAQ: would it be sent? */
static cg_status cg_ef_laq_decide_(cg_ef *ef, cg_ef_step_ *st, const cg_tag *tag, uint8_t *packet, size_t cap) {
    cg_producer_ fill = cg_ef_producer_(ef, st);
    size_t len;
    const cg_status s = cg_ef_pack_(ef, st, &fill, tag, packet, cap, &len);
    cg_ef_record_energy_(ef, fill.energy);
    if (s == CG_OK) ef->stats.silent = !cg_ef_laq_should_send_(ef, st, fill.energy, packet, len);
    return s;
}
typedef struct cg_ef_exchange_ctx_ {
    cg_ef_step_ step;
    cg_exchange_desc desc, caller_desc;
    cg_ef_buffer_bytes_ buffers;
    cg_producer_ fill;
    float *p, *grad;
    double grad_energy;
} cg_ef_exchange_ctx_;

/* Everything that can be refused, with memory as it is. */
static cg_status cg_ef_exchange_prepare_(
    cg_ef *ef, const cg_exchange_desc *desc, const cg_transport *transport, const float *grad, cg_ef_exchange_ctx_ *r) {
    const int scored = desc->leader == CG_LEADER_BY_SCORE && desc->score == 0.0f;
    cg_status s;
    memset(r, 0, sizeof *r);
    r->caller_desc = *desc;
    r->desc = cg_ef_step_desc_(ef, desc);
    cg_ef_buffer_bytes_of_(ef, desc, transport, &r->buffers);
    s = cg_ef_step_check_(ef, &desc->tag, desc->side, grad, scored, &r->step, &r->grad_energy);
    r->desc.side = &r->step.side;
    if (s == CG_OK && ef->carry && cg_exchange_carry(&r->desc, transport, ef->desc.n) > ef->desc.carry) s = CG_E_MEMORY;
    if (s == CG_OK && !cg_rate_ok_(desc)) s = CG_E_ARG;
    if (s == CG_OK && r->step.op.sample.id == CG_SAMPLE_PERMK && (uint32_t)transport->rank >= r->step.op.sample.size)
        s = CG_E_ARG;
    return s;
}
/* p is made, or will be by r->fill; room: for p and for a packet of LAQ's. */
static cg_status cg_ef_exchange_begin_(cg_ef *ef, const cg_exchange_desc *desc, const cg_transport *transport,
    float *grad, uint8_t *room, cg_ef_exchange_ctx_ *r) {
    const size_t n = ef->desc.n;
    cg_status s = CG_OK;
    cg_ef_step_begin_(ef, &r->step);
    r->desc.into = grad;
    if (cg_ef_has_trait_(&ef->desc, CG_EF_KEEPS_RECEIVED_)) r->desc.model = NULL; /* their result is made of the mean */
    r->p = n ? ef->vector[0] : grad;
    if (desc->leader == CG_LEADER_BY_SCORE && desc->score == 0.0f) {
        const double norm = cg_sqrt_(r->grad_energy);
        ef->score = ef->score > 0.0 ? cg_times64_(0.9, ef->score) + cg_times64_(0.1, norm) : norm;
        r->desc.score = cg_saturate64_(ef->score);
    }
    if (cg_ef_in_place_(&ef->desc)) {
        r->fill = cg_ef_producer_(ef, &r->step);
        return CG_OK;
    }
    r->p = n ? (float *)(void *)room : grad;
    if (ef->desc.kind == CG_EF_LAQ) {
        cg_tag tag = desc->tag;
        tag.rank = (uint32_t)transport->rank;
        s = cg_ef_laq_decide_(
            ef, &r->step, &tag, room + (size_t)r->buffers.vector_bytes, (size_t)r->buffers.packet_bytes);
        if (ef->stats.silent) r->desc.flags |= CG_ABSTAIN;
    }
    cg_ef_record_energy_(ef, cg_ef_pass_(cg_ef_compensate_, &r->step, r->p, n));
    if (!cg_ef_has_trait_(&ef->desc, CG_EF_DIFFERENCE_))
        cg_ef_pass_(cg_ef_residual_accumulate_, &r->step, cg_ef_pass_vector_(ef), n);
    return s;
}
static cg_status cg_ef_exchange_finish_(
    cg_ef *ef, const cg_ef_exchange_ctx_ *r, cg_status s, cg_report *report, float *grad) {
    if (s == CG_OK) {
        s = cg_ef_commit_now_(ef, &r->step.side, report->used, report->used_len, grad, 1);
        if (s == CG_OK) {
            if (!r->desc.model) cg_model_step_(&r->caller_desc, grad, ef->desc.n);
            return CG_OK;
        }
        /* all that can be wrong with it */
        report->why = "the result is not finite: the sum over ranks is too large";
        report->used = NULL;
        report->used_len = 0;
    }
    if (ef->stats.kept) cg_ef_rollback_now_(ef);
    return s;
}
static cg_status cg_ef_exchange_(cg_ef *ef, const cg_exchange_desc *desc, const cg_transport *transport, float *grad,
    void *mem, size_t bytes, cg_report *report) {
    const size_t n = ef->desc.n, skip = mem ? (64 - ((uintptr_t)mem & 63)) % 64 : 0;
    uint8_t *at = mem ? (uint8_t *)mem + skip : NULL;
    cg_exchange_state *x;
    cg_ef_exchange_ctx_ r;
    cg_status s = cg_ef_exchange_prepare_(ef, desc, transport, grad, &r);
    const uint64_t need = cg_add_sat_(
        cg_add_sat_(r.buffers.vector_bytes, r.buffers.packet_bytes), r.buffers.exchange_bytes);
    if (s == CG_OK && r.buffers.exchange_bytes && (!mem || bytes < skip || bytes - skip < need)) s = CG_E_MEMORY;
    /* the others must hear of it */
    if (s != CG_OK || !r.buffers.exchange_bytes)
        return cg_exchange_or_fail_(&r.desc, transport, grad, n, mem, bytes, s, report);
    s = cg_ef_exchange_begin_(ef, desc, transport, grad, at, &r);
    at += (size_t)(r.buffers.vector_bytes + r.buffers.packet_bytes);
    x = (cg_exchange_state *)(void *)at;
    s = cg_exchange_in_state_(x, &r.desc, transport, r.p, r.fill.make ? &r.fill : NULL, n, at + CG_STATE_ROOM_,
        (size_t)(r.buffers.exchange_bytes - CG_STATE_ROOM_), s, report);
    if (r.fill.started) cg_ef_record_energy_(ef, r.fill.energy);
    if (x->plan.route == CG_ROUTE_SCATTER) ef->carry_first = cg_stripe_start_(x, transport->rank);
    if (s == CG_OK && r.fill.started && x->plan.stripes == 1 && cg_is_compressed_first_(x))
        cg_ef_update_hint_(ef, &r.step.op, &r.fill, cg_packet_threshold_(x->own.packets));
    return cg_ef_exchange_finish_(ef, &r, s, report, grad);
}
CG_API_ cg_status cg_ef_exchange(cg_ef *ef, const cg_exchange_desc *desc, const cg_transport *transport, float *grad,
    void *mem, size_t bytes, cg_report *report) {
    cg_report own;
    cg_fenv_ env;
    cg_status s;
    if (!report) report = &own;
    memset(report, 0, sizeof *report);
    report->rank = -1;
    report->why = cg_status_str(CG_E_ARG);
    if (!ef || !desc || !transport) return CG_E_ARG;
    env = cg_fenv_enter_();
    s = cg_ef_exchange_(ef, desc, transport, grad, mem, bytes, report);
    cg_fenv_leave_(env);
    return s;
}

/* Layers: as one by one, but that all exchanges are opened together. */
static void cg_ef_layer_step_desc_(const cg_ef *ef, cg_layer *layer) {
    layer->desc = cg_ef_step_desc_(ef, &layer->desc);
    layer->n = ef->desc.n;
}
static uint64_t cg_ef_layer_buffer_bytes_(const cg_ef *ef, const cg_layer *layer, const cg_transport *t) {
    cg_ef_buffer_bytes_ rooms;
    cg_ef_buffer_bytes_of_(ef, &layer->desc, t, &rooms);
    return cg_add_sat_(rooms.vector_bytes, rooms.packet_bytes);
}
static uint64_t cg_ef_layers_buffer_bytes_(
    cg_ef *const *efs, const cg_layer *layers, size_t count, const cg_transport *t) {
    uint64_t bytes = (cg_mul_sat_(count, sizeof(cg_ef_exchange_ctx_)) + 63) & ~(uint64_t)63;
    for (size_t i = 0; i < count; i++) bytes = cg_add_sat_(bytes, cg_ef_layer_buffer_bytes_(efs[i], &layers[i], t));
    return bytes;
}
CG_API_ size_t cg_ef_layers_memory(
    cg_ef *const *efs, cg_layer *layers, size_t count, size_t small, const cg_transport *transport) {
    cg_fenv_ env;
    size_t bytes;
    if ((count && (!efs || !layers)) || !transport) return 0;
    env = cg_fenv_enter_();
    for (size_t i = 0; i < count; i++) cg_ef_layer_step_desc_(efs[i], &layers[i]);
    bytes = cg_exchange_layers_memory(layers, count, small, transport);
    if (bytes)
        bytes = cg_size_or_zero_(
            cg_add_sat_(cg_add_sat_(cg_ef_layers_buffer_bytes_(efs, layers, count, transport), bytes), 64));
    cg_fenv_leave_(env);
    return bytes;
}
static cg_status cg_ef_exchange_layers_(cg_ef *const *efs, cg_layer *layers, size_t count, size_t small,
    const cg_transport *t, void *mem, size_t bytes, cg_report *report) {
    const size_t skip = mem ? (64 - ((uintptr_t)mem & 63)) % 64 : 0;
    cg_ef_exchange_ctx_ *runs = (cg_ef_exchange_ctx_ *)(void *)((uint8_t *)mem + skip);
    uint8_t *at = (uint8_t *)mem + skip + ((count * sizeof(cg_ef_exchange_ctx_) + 63) & ~(size_t)63);
    cg_status failed = CG_OK, s;
    size_t who = count, room;
    for (size_t i = 0; i < count; i++) { /* all of them, before any memory changes */
        s = cg_ef_exchange_prepare_(efs[i], &layers[i].desc, t, layers[i].x, &runs[i]);
        for (size_t j = 0; j < i && s == CG_OK; j++)
            if (efs[j] == efs[i]) s = CG_E_ARG;
        if (s != CG_OK && failed == CG_OK) {
            failed = s;
            who = i;
        }
    }
    for (size_t i = 0; i < count; i++) {
        cg_ef_exchange_ctx_ *r = &runs[i];
        r->grad = layers[i].x;
        layers[i].desc = r->desc;
        if (failed != CG_OK || !r->buffers.exchange_bytes) {
            layers[i].x = i == who ? NULL : layers[i].x;
            continue;
        }
        s = cg_ef_exchange_begin_(efs[i], &r->caller_desc, t, r->grad, at, r);
        if (r->fill.make)
            cg_ef_record_energy_(efs[i], cg_ef_pass_(cg_ef_compensate_in_place_, &r->step, r->p, efs[i]->desc.n));
        layers[i].desc = r->desc;
        layers[i].x = s == CG_OK ? r->p : NULL;
        at += (size_t)(r->buffers.vector_bytes + r->buffers.packet_bytes);
    }
    room = bytes - (size_t)(at - (uint8_t *)mem);
    s = cg_exchange_layers(layers, count, small, t, at, room, report);
    for (size_t i = 0; i < count; i++) {
        if (efs[i]->carry && layers[i].report.route == CG_ROUTE_SCATTER)
            efs[i]->carry_first = cg_stripe_offset_(layers[i].n, (size_t)t->size, (size_t)t->rank);
        layers[i].x = runs[i].grad;
        layers[i].desc = runs[i].caller_desc;
        if (failed == CG_OK && efs[i]->stats.kept)
            layers[i].status = cg_ef_exchange_finish_(
                efs[i], &runs[i], layers[i].status, &layers[i].report, runs[i].grad);
        if (layers[i].status != CG_OK && s == CG_OK) s = layers[i].status;
    }
    if (failed == CG_OK) return s;
    if (report && s == CG_E_ARG) report->why = cg_status_str(failed);
    for (size_t i = 0; i < count; i++) layers[i].status = failed;
    return failed;
}
CG_API_ cg_status cg_ef_exchange_layers(cg_ef *const *efs, cg_layer *layers, size_t count, size_t small,
    const cg_transport *transport, void *mem, size_t bytes, cg_report *report) {
    const size_t need = cg_ef_layers_memory(efs, layers, count, small, transport);
    cg_fenv_ env;
    cg_status s;
    if (report) memset(report, 0, sizeof *report);
    if ((count && (!efs || !layers)) || !transport) return CG_E_ARG;
    /* tells the others */
    if (!need || !mem || bytes < need) return cg_exchange_layers(layers, count, small, transport, NULL, 0, report);
    env = cg_fenv_enter_();
    s = cg_ef_exchange_layers_(efs, layers, count, small, transport, mem, bytes, report);
    cg_fenv_leave_(env);
    return s;
}
