/* compress: a step's packet, for callers who send packets themselves

   Offers   cg_ef_pack_, cg_packet_threshold_; the public cg_ef_compress and cg_ef_compress_with
   Needs    step, laq, rollback; cg_compress_checked_ of core
   Touches  the state, the packet, and ef->scratch and ef->whole */

/* Compresses p into packet. *fill is what makes p; fill->energy becomes |p|^2. Kinds that work in place have p in the
   residual afterwards (fill->started says whether some of it is there, if this fails); the others leave e as it is. */
static cg_status cg_ef_pack_(
    cg_ef *ef, cg_ef_step_ *st, cg_producer_ *fill, const cg_tag *tag, void *packet, size_t cap, size_t *len) {
    const cg_ef_desc *d = &ef->desc;
    const float *x = cg_ef_in_place_(d) ? ef->vector[0] : st->g;
    cg_producer_ *source = fill;
    const int whole = fill->lazy && st->whole_vector;
    if (fill->lazy && !whole)
        fill->energy = cg_ef_pass_(cg_ef_compensated_energy_, st, (float *)(uintptr_t)st->g, d->n);
    /* LAQ's grid is symmetric: its one bucket gets the scales +-max|p| */
    if (cg_ef_has_trait_(d, CG_EF_MAY_BE_SILENT_) && st->resolved.plan.traits & CG_SCALES_ARE_ENDS_ &&
        !st->op.select.id && !st->op.sample.id && !st->op.transform.id && st->op.quantize.size >= d->n) {
        st->laq_range[1] = cg_ef_compensated_absmax_(st, d->n);
        st->laq_range[0] = -st->laq_range[1];
        st->side.scale = st->laq_range;
    }
    if (whole) {
        fill->energy = cg_ef_pass_(cg_ef_compensate_, st, ef->whole, d->n);
        x = ef->whole;
        source = NULL;
    }
    return cg_compress_checked_(
        &st->op, &st->resolved.plan, tag, &st->side, x, source, d->n, packet, cap, len, ef->scratch, ef->scratch_bytes);
}
/* The field of a packet's header that holds the k-th magnitude of its top-k. */
static float cg_packet_threshold_(const void *packet) { return cg_as_float_(cg_get32_((const uint8_t *)packet + 144)); }
/* On an error the state means what it did before, unless a codec of the user's failed after p had been made: then the
   step is rolled back, and the gradient stays in the residual. */
static cg_status cg_ef_compress_(
    cg_ef *ef, const cg_tag *tag, const cg_extra *side, const float *grad, void *packet, size_t cap, size_t *len) {
    const cg_tag none = CG_ZERO;
    cg_ef_step_ st;
    cg_producer_ fill;
    cg_report packet_report;
    double grad_energy;
    size_t bound;
    cg_status s;
    if (cg_ef_is_unready_(ef)) return cg_ef_fail_(ef, CG_E_STATE, cg_ef_unready_why_(ef), 0, CG_NO_INDEX);
    if (len) *len = 0;
    cg_ef_forget_last_(ef);
    if (!tag) tag = &none;
    s = cg_ef_step_check_(ef, tag, side, grad, 0, &st, &grad_energy);
    if (s != CG_OK) return cg_ef_step_why_(ef, s, side, grad, &st.op);
    if (!len || !packet) return cg_ef_fail_(ef, CG_E_ARG, len ? "packet is NULL" : "len is NULL", 0, CG_NO_INDEX);
    bound = st.resolved.bound;
    if (!bound) {
        packet_report = cg_op_refusal_(&st.op, &st.side, ef->desc.n);
        return cg_ef_fail_(ef, CG_E_ARG, packet_report.why, packet_report.need, CG_NO_INDEX);
    }
    if (cap < bound || cap < CG_HEADER_BYTES) {
        const size_t enough = cg_ef_bound(&ef->desc);
        return cg_ef_fail_(ef, CG_E_CAPACITY, "packet is too small: cg_ef_bound gives its bytes",
            enough > bound ? enough : bound, CG_NO_INDEX);
    }
    if (st.resolved.plan.traits & CG_IS_PER_RANK_ && tag->rank >= st.op.sample.size)
        return cg_ef_fail_(ef, CG_E_ARG, "tag.rank is not below the workers of permk", 0, CG_NO_INDEX);
    if (st.resolved.plan.traits & CG_NEEDS_SUPPORT_) s = cg_support_check_(&st.side, ef->desc.n);
    if (s != CG_OK)
        return cg_ef_fail_(
            ef, s, "side->support is missing, damaged, of another n, or has no indices of its own", 0, CG_NO_INDEX);
    st.side.report = &packet_report;
    cg_ef_step_begin_(ef, &st);
    fill = cg_ef_producer_(ef, &st);
    s = cg_ef_pack_(ef, &st, &fill, tag, packet, cap, len);
    if (s == CG_OK && !fill.lazy) cg_ef_update_hint_(ef, &st, &fill, cg_packet_threshold_(packet));
    if (s == CG_OK) cg_ef_record_energy_(ef, fill.energy);
    if (s == CG_OK && cg_ef_has_trait_(&ef->desc, CG_EF_MAY_BE_SILENT_) &&
        !cg_ef_laq_should_send_(ef, &st, fill.energy, packet, *len)) {
        ef->stats.silent = 1;
        *len = cg_empty_packet_put_(tag, ef->desc.n, (uint8_t *)packet);
    }
    if (s == CG_OK && fill.lazy && !cg_ef_has_trait_(&ef->desc, CG_EF_HAS_SHIFT_ | CG_EF_KEEPS_NOTHING_))
        cg_ef_pass_(cg_ef_residual_accumulate_, &st, cg_ef_pass_vector_(ef), ef->desc.n);
    ef->pending = s == CG_OK;
    cg_ef_fail_(ef, s, packet_report.why, packet_report.need, packet_report.at);
    /* a codec of the user's failed, with p in the residual or the gradient in EF21's running mean */
    if (s != CG_OK && (fill.started || st.g != grad)) {
        cg_ef_record_energy_(ef, fill.energy);
        cg_ef_rollback_now_(ef);
    }
    return s;
}
CG_API_ cg_status cg_ef_compress_with(
    cg_ef *ef, const cg_tag *tag, const cg_extra *side, const float *grad, void *packet, size_t cap, size_t *len) {
    cg_fenv_ env;
    cg_status s;
    if (!ef && len) *len = 0;
    if (!ef) return CG_E_ARG;
    env = cg_fenv_enter_();
    s = cg_ef_compress_(ef, tag, side, grad, packet, cap, len);
    if (side && side->report) *side->report = ef->report;
    cg_fenv_leave_(env);
    return s;
}
CG_API_ cg_status cg_ef_compress(
    cg_ef *ef, const cg_tag *tag, const float *grad, void *packet, size_t cap, size_t *len) {
    return cg_ef_compress_with(ef, tag, NULL, grad, packet, cap, len);
}
