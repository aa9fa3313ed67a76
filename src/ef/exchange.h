/* exchange: one call from the gradient to the result, for one vector or for many layers

   Offers   the public cg_ef_exchange, cg_ef_exchange_layers and their memory
   Needs    compress, commit; the state, stripes, rules and layers of exchange
   Touches  the state, grad, the caller's memory, the report
   prepare finds what can be refused before the state changes, begin puts the gradient into the state, the exchange
   runs, finish commits or rolls back. A rank that refuses still takes part in the exchange, with its status, so that
   the others hear of it. */

/* The caller's description as changed for this step: operator (op), warm and carry are ef's, common has its mark, into
   is left to cg_ef_exchange_begin_, and the route is one that takes the operator. Kinds that keep what all ranks
   received are confirmed: otherwise a message that is damaged on one rank would let their states differ. */
static cg_exchange_desc cg_ef_step_desc_(const cg_ef *ef, const cg_exchange_desc *desc, const cg_op *op) {
    const cg_op dense = cg_dense();
    cg_exchange_desc step_desc = *desc;
    step_desc.op = *op;
    step_desc.into = NULL;
    step_desc.warm = cg_op_traits_(&step_desc.op) & CG_IS_LINEAR_MATRIX_ ? ef->warm : NULL;
    step_desc.carry = ef->carry;
    step_desc.common ^= ef->mark; /* ranks that have received something else are told so */
    /* a dense step of VARIANCE has no use for aux */
    if (step_desc.side && step_desc.side->aux && !(cg_op_traits_(&step_desc.op) & CG_NEEDS_AUX_)) step_desc.side = NULL;
    if (!step_desc.side && cg_ef_segments_(&ef->desc, op, NULL)) step_desc.side = &ef->segments;
    if (cg_ef_has_trait_(&ef->desc, CG_EF_KEEPS_RECEIVED_)) step_desc.flags |= CG_CONFIRM;
    /* a rank that has not moved has the model that it began with, which is part of the first mean */
    if (cg_ef_begins_(ef)) step_desc.flags &= ~(uint32_t)CG_ABSTAIN;
    if (cg_ef_has_trait_(&ef->desc, CG_EF_MAY_BE_SILENT_)) {
        step_desc.flags |= CG_MAY_ABSTAIN;
        if (!step_desc.route) step_desc.route = CG_ROUTE_ALLGATHER;
    }
    /* a second leg would add the noise of one rank's operator to the mean of all ranks' */
    if (cg_ef_has_trait_(&ef->desc, CG_EF_UNBIASED_ONLY_) && !step_desc.route && !cg_same_op_(&step_desc.op, &dense))
        step_desc.route = CG_ROUTE_ALLGATHER;
    if (cg_route_row_of_(step_desc.route)->traits & CG_ROUTE_ALLREDUCES_ &&
        cg_ef_has_trait_(&ef->desc, CG_EF_UNBIASED_ONLY_) && !(cg_op_traits_(&ef->desc.op) & CG_IS_PRIVATE_))
        step_desc.op = cg_ef_drawn_in_common_(step_desc.op);
    /* routes that need indices refuse a dense step */
    if (cg_same_op_(&step_desc.op, &dense) && cg_route_row_of_(step_desc.route)->traits & CG_ROUTE_NEEDS_INDICES_)
        step_desc.route = CG_ROUTE_AUTO;
    return step_desc;
}
/* Parts of the caller's memory, in bytes; each but the last a multiple of 64. */
typedef struct cg_ef_buffer_bytes_ {
    uint64_t vector_bytes;   /* p, of kinds that do not work in place */
    uint64_t packet_bytes;   /* LAQ's trial packet */
    uint64_t exchange_bytes; /* what cg_exchange_memory says; 0: the exchange is refused */
} cg_ef_buffer_bytes_;
/* Fills *b in for an exchange that takes so many bytes, by an operator with this bound; returns their sum with room to
   align it, or 0 if the exchange is refused. */
static uint64_t cg_ef_buffer_bytes_set_(
    const cg_ef *ef, uint64_t exchange_bytes, uint64_t bound, cg_ef_buffer_bytes_ *b) {
    const uint64_t align = 63;
    memset(b, 0, sizeof *b);
    b->exchange_bytes = cg_size_or_zero_(exchange_bytes);
    if (!cg_ef_in_place_(&ef->desc)) b->vector_bytes = cg_add_sat_(cg_mul_sat_(4, ef->desc.n), align) & ~align;
    if (cg_ef_has_trait_(&ef->desc, CG_EF_MAY_BE_SILENT_))
        b->packet_bytes = cg_add_sat_(cg_add_sat_(bound, CG_HEADER_BYTES), align) & ~align;
    if (!b->exchange_bytes) return 0; /* a small layer needs the other two all the same */
    return cg_add_sat_(cg_add_sat_(cg_add_sat_(b->vector_bytes, b->packet_bytes), b->exchange_bytes), 64);
}
/* The same ahead of a step. */
static uint64_t cg_ef_buffer_bytes_of_(
    const cg_ef *ef, const cg_exchange_desc *desc, const cg_transport *transport, cg_ef_buffer_bytes_ *b) {
    const cg_op op = cg_ef_op_(ef, &desc->tag);
    cg_exchange_desc step_desc = cg_ef_step_desc_(ef, desc, &op);
    cg_extra side = CG_ZERO;
    if (step_desc.side) side = *step_desc.side;
    side.segments = cg_ef_segments_(&ef->desc, &op, step_desc.side);
    if (step_desc.side) step_desc.side = &side;
    return cg_ef_buffer_bytes_set_(
        ef, cg_exchange_memory(&step_desc, transport, ef->desc.n), cg_bound_with(&op, &side, ef->desc.n), b);
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
/* LAQ: compresses p on trial into packet; ef->stats.silent says whether the real one is to be withheld. */
static cg_status cg_ef_laq_decide_(cg_ef *ef, cg_ef_step_ *st, const cg_tag *tag, uint8_t *packet, size_t cap) {
    cg_producer_ fill = cg_ef_producer_(ef, st);
    size_t len;
    const cg_status s = cg_ef_pack_(ef, st, &fill, tag, packet, cap, &len);
    cg_ef_record_energy_(ef, fill.energy);
    if (s == CG_OK) ef->stats.silent = !cg_ef_laq_should_send_(ef, st, fill.energy, packet, len);
    return s;
}
/* One exchange under way. It refers to itself (desc.side), so it must not be moved. */
typedef struct cg_ef_exchange_ctx_ {
    cg_ef_step_ step;
    cg_exchange_desc desc;        /* as changed for this step */
    cg_exchange_desc caller_desc; /* as the caller gave it */
    cg_ef_buffer_bytes_ buffers;
    cg_producer_ fill;  /* makes p in place during the exchange; fill.make NULL: p has been made */
    float *p, *grad;    /* grad: of layers, the caller's */
    double grad_energy; /* |grad|^2, where the score asks for it */
} cg_ef_exchange_ctx_;

/* Resolves the exchange, in *x: ctx->buffers; returns the floats that it needs as a carry. */
static size_t cg_ef_exchange_resolve_(
    const cg_ef *ef, const cg_transport *transport, cg_ef_exchange_ctx_ *ctx, cg_exchange_state *x) {
    cg_resolved_ *resolved = &ctx->step.resolved;
    cg_ef_buffer_bytes_set_(
        ef, cg_exchange_resolve_(x, &ctx->desc, transport, ef->desc.n, resolved, 1), resolved->bound, &ctx->buffers);
    return ctx->buffers.exchange_bytes && x->status == CG_OK ? cg_carry_floats_(x) : 0;
}
/* The same in a state that is not kept. */
CG_NOINLINE_ size_t cg_ef_exchange_resolve_apart_(
    const cg_ef *ef, const cg_transport *transport, cg_ef_exchange_ctx_ *ctx) {
    cg_exchange_state x;
    return cg_ef_exchange_resolve_(ef, transport, ctx, &x);
}
/* What of an exchange's description does not go with the kind, as a sentence, or NULL. */
static const char *cg_ef_desc_why_(const cg_ef *ef, const cg_exchange_desc *desc) {
    cg_resolved_ back;
    if (cg_ef_has_trait_(&ef->desc, CG_EF_COPIES_RECEIVED_) &&
        cg_fold_row_of_(desc->fold)->traits != (CG_FOLD_IS_LINEAR_ | CG_FOLD_DIVIDES_))
        return "this kind keeps the mean over ranks: take CG_FOLD_MEAN";
    if (cg_route_row_of_(desc->route)->traits & CG_ROUTE_BEGINS_AT_OWNER_)
        return "all_gather sends parameters, which are not summed: call cg_all_gather, whose carry is their residual";
    if (cg_route_row_of_(desc->route)->traits & CG_ROUTE_ENDS_AT_OWNER_ &&
        cg_ef_has_trait_(
            &ef->desc, CG_EF_KEEPS_RECEIVED_ | CG_EF_COPIES_RECEIVED_ | CG_EF_TAKES_MODELS_ | CG_EF_MAY_BE_SILENT_))
        return "this kind needs the mean of all values, and reduce_scatter gives that of a stripe: take scatter";
    if (cg_ef_has_trait_(&ef->desc, CG_EF_TAKES_MODELS_) && desc->model)
        return "this kind takes a model and makes it common: there is no other model to be stepped";
    if (cg_ef_has_trait_(&ef->desc, CG_EF_UNBIASED_ONLY_) && desc->back && !ef->desc.biased &&
        cg_resolve_(desc->back, NULL, ef->desc.n, &back) == CG_OK && !back.is_unbiased)
        return "this kind keeps no residual: the operator of the second leg, back, must be unbiased, too";
    return NULL;
}
/* Finds everything that can be refused on this rank, and prepares *ctx, whose desc is valid even on an error. Of the
   state only stats and report change. x: where the exchange is resolved, or NULL. */
static cg_status cg_ef_exchange_prepare_(cg_ef *ef, const cg_exchange_desc *desc, const cg_transport *transport,
    const float *grad, cg_ef_exchange_ctx_ *ctx, cg_exchange_state *x) {
    const int scored = desc->leader == CG_LEADER_BY_SCORE && desc->score == 0.0f;
    uint64_t carry;
    cg_status s;
    memset(ctx, 0, sizeof *ctx);
    ctx->caller_desc = *desc;
    s = cg_ef_step_check_(ef, &desc->tag, desc->side, grad, scored, &ctx->step, &ctx->grad_energy);
    ctx->desc = cg_ef_step_desc_(ef, desc, &ctx->step.op);
    ctx->step.side.report = NULL;
    ctx->desc.side = &ctx->step.side;
    ctx->desc.flags |= CG_MAKES_PACKET_;
    if (!ef->desc.biased) ctx->desc.flags |= CG_FEEDS_BACK; /* or the report says what a biased operator does */
    if (s != CG_OK) return cg_ef_step_why_(ef, s, desc->side, grad, &ctx->step.op);
    if (!cg_same_op_(&ctx->desc.op, &ctx->step.op)) { /* drawn in common, for this route */
        ctx->step.op = ctx->desc.op;
        s = cg_resolve_(&ctx->step.op, &ctx->step.side, ef->desc.n, &ctx->step.resolved);
        if (s != CG_OK) return cg_ef_step_why_(ef, s, desc->side, grad, &ctx->step.op);
    }
    carry = x ? cg_ef_exchange_resolve_(ef, transport, ctx, x) : cg_ef_exchange_resolve_apart_(ef, transport, ctx);
    if (ef->carry && carry > ef->desc.carry)
        return cg_ef_fail_(ef, CG_E_MEMORY, "cg_ef_desc.carry is too small: cg_exchange_carry gives its floats",
            cg_mul_sat_(4, carry), CG_NO_INDEX);
    if (cg_ef_desc_why_(ef, desc)) return cg_ef_fail_(ef, CG_E_UNSUPPORTED, cg_ef_desc_why_(ef, desc), 0, CG_NO_INDEX);
    if (!cg_rate_ok_(desc)) return cg_ef_fail_(ef, CG_E_ARG, "rate must be finite", 0, CG_NO_INDEX);
    if (ctx->step.resolved.plan.traits & CG_IS_PER_RANK_ && (uint32_t)transport->rank >= ctx->step.op.sample.size)
        return cg_ef_fail_(ef, CG_E_ARG, "there are more ranks than workers of permk", 0, CG_NO_INDEX);
    return cg_ef_done_(ef);
}
/* Begins the step: from here on the state changes. p is made in ctx->p, or will be by ctx->fill. buffer has
   vector_bytes and packet_bytes of ctx->buffers. An error (of LAQ's trial) is for the exchange to tell the others. */
static cg_status cg_ef_exchange_begin_(cg_ef *ef, const cg_exchange_desc *desc, const cg_transport *transport,
    float *grad, uint8_t *buffer, cg_ef_exchange_ctx_ *ctx) {
    const size_t n = ef->desc.n;
    cg_status s = CG_OK;
    cg_ef_step_begin_(ef, &ctx->step);
    ctx->desc.into = grad;
    if (cg_ef_has_trait_(&ef->desc, CG_EF_KEEPS_RECEIVED_))
        ctx->desc.model = NULL; /* finish makes their result of the mean */
    ctx->p = n ? ef->vector[0] : grad;
    if (desc->leader == CG_LEADER_BY_SCORE && desc->score == 0.0f) {
        const double norm = cg_sqrt_(ctx->grad_energy);
        ef->score = ef->score > 0.0 ? cg_times64_(0.9, ef->score) + cg_times64_(0.1, norm) : norm;
        ctx->desc.score = cg_saturate64_(ef->score);
    }
    if (cg_ef_in_place_(&ef->desc)) {
        ctx->fill = cg_ef_producer_(ef, &ctx->step);
        return CG_OK;
    }
    ctx->p = n ? (float *)(void *)buffer : grad;
    if (cg_ef_has_trait_(&ef->desc, CG_EF_MAY_BE_SILENT_)) {
        cg_tag tag = desc->tag;
        tag.rank = (uint32_t)transport->rank;
        s = cg_ef_laq_decide_(
            ef, &ctx->step, &tag, buffer + (size_t)ctx->buffers.vector_bytes, (size_t)ctx->buffers.packet_bytes);
        if (ef->stats.silent) ctx->desc.flags |= CG_ABSTAIN;
    }
    cg_ef_record_energy_(ef, cg_ef_pass_(cg_ef_compensate_, &ctx->step, ctx->p, n));
    if (!cg_ef_has_trait_(&ef->desc, CG_EF_HAS_SHIFT_ | CG_EF_KEEPS_NOTHING_))
        cg_ef_pass_(cg_ef_residual_accumulate_, &ctx->step, cg_ef_pass_vector_(ef), n);
    return s;
}
/* Commits if the exchange succeeded, and rolls back otherwise. opened: as in cg_ef_commit_now_. grad holds the mean,
   for the kinds that need it, and becomes the result. */
static cg_status cg_ef_exchange_finish_(
    cg_ef *ef, const cg_ef_exchange_ctx_ *ctx, cg_status s, cg_report *report, cg_decoder_ *opened, float *grad) {
    if (s == CG_OK) {
        s = cg_ef_commit_now_(ef, &ctx->step.side, report->used, report->used_len, opened, grad, 1);
        if (s == CG_OK) {
            if (!ctx->desc.model) cg_model_step_(&ctx->caller_desc, grad, ef->desc.n);
            return CG_OK;
        }
        /* packets are verified and the mean is there: that is all that can be wrong */
        report->why = "the result is not finite: the sum over ranks is too large";
        report->status = (uint32_t)s;
        report->used = NULL;
        report->used_len = 0;
    }
    if (ef->stats.kept) cg_ef_rollback_now_(ef);
    return s;
}
/* What this rank has found wrong, in place of what the exchange knows of it. */
static void cg_ef_copy_refusal_(const cg_ef *ef, cg_report *report) {
    report->status = ef->report.status;
    report->why = ef->report.why;
    report->need = ef->report.need;
    report->at = ef->report.at;
}
/* The exchange's report is also what cg_ef_report gives. */
static void cg_ef_keep_report_(cg_ef *ef, const cg_report *report) {
    ef->report = *report;
    ef->report.used = NULL; /* in memory that is not the state's */
    ef->report.used_len = 0;
}
/* Ends a step whose exchange in *x has ended with s. */
static cg_status cg_ef_exchange_moved_(
    cg_ef *ef, cg_ef_exchange_ctx_ *r, cg_exchange_state *x, cg_status s, cg_report *report, float *grad) {
    if (r->fill.started) cg_ef_record_energy_(ef, r->fill.energy);
    if (s == CG_OK) cg_carry_first_(x->plan.route, &x->transport, ef->desc.n, &ef->carry_first);
    if (s == CG_OK && r->fill.started && x->plan.stripes == 1 && cg_is_compressed_first_(x))
        cg_ef_update_hint_(ef, &r->step, &r->fill, cg_packet_threshold_(x->own.packets));
    return cg_ef_exchange_finish_(ef, r, s, report, s == CG_OK ? cg_used_decoder_(x) : NULL, grad);
}
static cg_status cg_ef_exchange_(cg_ef *ef, const cg_exchange_desc *desc, const cg_transport *transport, float *grad,
    void *mem, size_t bytes, cg_report *report) {
    const size_t n = ef->desc.n, align_pad = mem ? (64 - ((uintptr_t)mem & 63)) % 64 : 0;
    uint8_t *at = mem ? (uint8_t *)mem + align_pad : NULL;
    cg_exchange_state *x = mem && bytes >= align_pad + CG_STATE_ROOM_ ? (cg_exchange_state *)(void *)at : NULL;
    cg_ef_exchange_ctx_ r;
    cg_status s = cg_ef_exchange_prepare_(ef, desc, transport, grad, &r, x);
    const uint64_t need = cg_add_sat_(
        cg_add_sat_(r.buffers.vector_bytes, r.buffers.packet_bytes), r.buffers.exchange_bytes);
    if (s == CG_OK && r.buffers.exchange_bytes && (!mem || bytes < align_pad || bytes - align_pad < need))
        s = cg_ef_fail_(ef, CG_E_MEMORY, "mem is too small: cg_ef_exchange_memory gives its bytes",
            cg_add_sat_(need, 64), CG_NO_INDEX);
    /* refused: the others must hear of it */
    if (s != CG_OK || !r.buffers.exchange_bytes) {
        const cg_status refused = s;
        s = cg_exchange_or_fail_(&r.desc, transport, grad, n, mem, bytes, refused, report);
        if (refused != CG_OK && s == refused) cg_ef_copy_refusal_(ef, report);
        return s;
    }
    at += CG_STATE_ROOM_; /* behind x, which need covers */
    s = cg_ef_exchange_begin_(ef, desc, transport, grad, at, &r);
    at += (size_t)(r.buffers.vector_bytes + r.buffers.packet_bytes);
    s = cg_exchange_in_state_(x, &r.desc, transport, r.p, r.fill.make ? &r.fill : NULL, n, at,
        (size_t)(r.buffers.exchange_bytes - CG_STATE_ROOM_), x->status == CG_OK, s, report);
    return cg_ef_exchange_moved_(ef, &r, x, s, report, grad);
}
CG_API_ cg_status cg_ef_exchange(cg_ef *ef, const cg_exchange_desc *desc, const cg_transport *transport, float *grad,
    void *mem, size_t bytes, cg_report *report) {
    cg_report own;
    cg_fenv_ env;
    cg_status s;
    if (!report) report = &own;
    cg_report_set_(report, CG_E_ARG, "ef, desc or transport is NULL", 0, CG_NO_INDEX);
    if (ef) cg_ef_forget_last_(ef);
    if (ef) cg_ef_keep_report_(ef, report);
    if (!ef || !desc || !transport) return CG_E_ARG;
    env = cg_fenv_enter_();
    s = cg_ef_exchange_(ef, desc, transport, grad, mem, bytes, report);
    cg_ef_keep_report_(ef, report);
    cg_fenv_leave_(env);
    return s;
}

/* Layers: as one by one, but that all exchanges are opened together. */

/* layer->desc becomes that of this step, for as long as its memory is computed. Meanwhile layer->report, which every
   exchange writes anew, holds what the caller has set and must find again: route, flags, side and common. */
static void cg_ef_layer_step_desc_(const cg_ef *ef, cg_layer *layer) {
    const cg_op op = cg_ef_op_(ef, &layer->desc.tag);
    layer->report.route = layer->desc.route;
    layer->report.rounds = layer->desc.flags;
    layer->report.used = layer->desc.side;
    layer->report.bytes_out = layer->desc.common;
    layer->desc = cg_ef_step_desc_(ef, &layer->desc, &op);
    layer->n = ef->desc.n;
}
static void cg_ef_layer_caller_desc_(cg_layer *layer) {
    layer->desc.route = layer->report.route;
    layer->desc.flags = layer->report.rounds;
    layer->desc.side = (const cg_extra *)layer->report.used;
    layer->desc.common = layer->report.bytes_out;
    memset(&layer->report, 0, sizeof layer->report);
}
/* Bytes of a layer beside its exchange. */
static uint64_t cg_ef_layer_buffer_bytes_(const cg_ef *ef, const cg_layer *layer, const cg_transport *t) {
    cg_ef_buffer_bytes_ buffers;
    cg_ef_buffer_bytes_of_(ef, &layer->desc, t, &buffers);
    return cg_add_sat_(buffers.vector_bytes, buffers.packet_bytes);
}
/* Bytes of all layers beside their exchanges: an array of contexts, then each layer's buffers. */
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
    for (size_t i = 0; i < count; i++) cg_ef_layer_caller_desc_(&layers[i]);
    cg_fenv_leave_(env);
    return bytes;
}
/* mem has what cg_ef_layers_memory asks for. If a layer is refused here, no gradient enters a state: the exchange of
   layers only tells the others, and all layers have that status. */
static cg_status cg_ef_exchange_layers_(cg_ef *const *efs, cg_layer *layers, size_t count, size_t small,
    const cg_transport *t, void *mem, size_t bytes, cg_report *report) {
    const size_t align_pad = mem ? (64 - ((uintptr_t)mem & 63)) % 64 : 0;
    cg_ef_exchange_ctx_ *ctxs = (cg_ef_exchange_ctx_ *)(void *)((uint8_t *)mem + align_pad);
    uint8_t *buffer = (uint8_t *)mem + align_pad + ((count * sizeof(cg_ef_exchange_ctx_) + 63) & ~(size_t)63);
    cg_status failed = CG_OK, s;
    size_t refused_layer = count, bytes_left;
    int own;
    for (size_t i = 0; i < count; i++) { /* all of them, before any state changes */
        s = cg_ef_exchange_prepare_(efs[i], &layers[i].desc, t, layers[i].x, &ctxs[i], NULL);
        for (size_t j = 0; j < i && s == CG_OK; j++)
            if (efs[j] == efs[i]) s = cg_ef_fail_(efs[i], CG_E_ARG, "a cg_ef stands twice in the list", 0, CG_NO_INDEX);
        if (s != CG_OK && failed == CG_OK) {
            failed = s;
            refused_layer = i;
        }
    }
    for (size_t i = 0; i < count; i++) {
        cg_ef_exchange_ctx_ *ctx = &ctxs[i];
        ctx->grad = layers[i].x;
        layers[i].desc = ctx->desc;
        /* small layers travel as f32, even those whose operator is refused here */
        if (failed != CG_OK || (!ctx->buffers.exchange_bytes && layers[i].n >= small)) {
            layers[i].x = i == refused_layer ? NULL : layers[i].x;
            continue;
        }
        s = cg_ef_exchange_begin_(efs[i], &ctx->caller_desc, t, ctx->grad, buffer, ctx);
        if (ctx->fill.make)
            cg_ef_record_energy_(efs[i], cg_ef_pass_(cg_ef_compensate_in_place_, &ctx->step, ctx->p, efs[i]->desc.n));
        layers[i].desc = ctx->desc;
        layers[i].x = s == CG_OK ? ctx->p : NULL;
        buffer += (size_t)(ctx->buffers.vector_bytes + ctx->buffers.packet_bytes);
    }
    bytes_left = bytes - (size_t)(buffer - (uint8_t *)mem);
    s = cg_exchange_layers(layers, count, small, t, buffer, bytes_left, report);
    for (size_t i = 0; i < count; i++) {
        if (efs[i]->carry && layers[i].status == CG_OK)
            cg_carry_first_(layers[i].report.route, t, layers[i].n, &efs[i]->carry_first);
        layers[i].x = ctxs[i].grad;
        layers[i].desc = ctxs[i].caller_desc;
        if (failed == CG_OK && efs[i]->stats.kept)
            layers[i].status = cg_ef_exchange_finish_(
                efs[i], &ctxs[i], layers[i].status, &layers[i].report, NULL, ctxs[i].grad);
        if (failed == CG_OK) cg_ef_keep_report_(efs[i], &layers[i].report);
        if (layers[i].status == CG_OK || s != CG_OK) continue;
        s = layers[i].status;
        cg_report_copy_outcome_(report, &layers[i].report);
    }
    if (failed == CG_OK) return s;
    /* what all ranks have heard of is the missing x of the refused layer, unless something else was told first */
    own = s == CG_E_ARG && report->rank == t->rank;
    if (own) s = failed;
    if (own) cg_ef_copy_refusal_(efs[refused_layer], report);
    for (size_t i = 0; i < count; i++) {
        layers[i].status = s;
        if (own) cg_report_copy_outcome_(&layers[i].report, report);
        if (efs[i]->report.status != CG_OK) cg_ef_copy_refusal_(efs[i], &layers[i].report);
        else {
            layers[i].report.need = 0;
            layers[i].report.at = CG_NO_INDEX;
            cg_ef_keep_report_(efs[i], &layers[i].report);
        }
    }
    return s;
}
static void cg_ef_layers_memory_why_(cg_report *report, size_t need) {
    report->why = "mem is too small: cg_ef_layers_memory gives its bytes";
    report->need = need;
}
CG_API_ cg_status cg_ef_exchange_layers(cg_ef *const *efs, cg_layer *layers, size_t count, size_t small,
    const cg_transport *transport, void *mem, size_t bytes, cg_report *report) {
    const size_t need = cg_ef_layers_memory(efs, layers, count, small, transport);
    cg_report own;
    cg_fenv_ env;
    cg_status s;
    if (!report) report = &own;
    cg_report_set_(report, CG_E_ARG, "efs, layers or transport is NULL", 0, CG_NO_INDEX);
    if ((count && (!efs || !layers)) || !transport) return CG_E_ARG;
    for (size_t i = 0; i < count; i++) cg_ef_forget_last_(efs[i]);
    if (!need || !mem || bytes < need) {
        /* with no memory the exchange of layers refuses, and tells the others */
        s = cg_exchange_layers(layers, count, small, transport, NULL, 0, report);
        if (need && s == CG_E_MEMORY) cg_ef_layers_memory_why_(report, need);
        for (size_t i = 0; i < count; i++) {
            if (need && s == CG_E_MEMORY) cg_ef_layers_memory_why_(&layers[i].report, need);
            cg_ef_keep_report_(efs[i], &layers[i].report);
        }
        return s;
    }
    env = cg_fenv_enter_();
    s = cg_ef_exchange_layers_(efs, layers, count, small, transport, mem, bytes, report);
    cg_fenv_leave_(env);
    return s;
}
