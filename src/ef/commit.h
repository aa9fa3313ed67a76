/* commit: takes what was used of a step out of the residual

   Offers   cg_ef_commit_now_; the public cg_ef_commit, cg_ef_commit_with and cg_ef_rollback
   Needs    step, mark, laq, rollback; decoding into a sink of core
   Touches  all vectors of the state, its counters and stats, and the caller's mean
   The contribution D of a rank is what its packet, or the packet that was used in its place, decodes to. Nothing
   changes before the packet has been verified. */

typedef struct cg_ef_commit_ctx_ {
    const cg_kernels_ *kernels;
    const cg_ef *ef;
    size_t packet_start;   /* coordinate where the packet being decoded begins */
    float subtract_factor; /* e = e - subtract_factor D */
    int may_overflow;      /* sums may leave the float range: they are set to the largest float */
} cg_ef_commit_ctx_;
/* Sinks: subtract decoded values from e, and return the sum of their squares. Where values were sent the variance
   starts anew; the velocity of MOMENTUM does so only where a selection was sent (momentum factor masking of DGC). */
static double cg_ef_subtract_dense_(const void *user, size_t first, size_t many, const float *v) {
    const cg_ef_commit_ctx_ *c = (const cg_ef_commit_ctx_ *)user;
    const size_t start = c->packet_start + first;
    if (cg_ef_has_trait_(&c->ef->desc, CG_EF_TAKES_VARIANCE_)) memset(cg_at_mut_(c->ef->vector[1], start), 0, 4 * many);
    if (c->ef->bytes) cg_residual8_axpby_(c->ef, start, many, -c->subtract_factor, v, 1.0f);
    else {
        float *e = cg_at_mut_(c->ef->vector[0], start);
        const double energy = cg_axpby_fading_energy_x_(c->kernels, v, many, -c->subtract_factor, 1.0f, e);
        for (size_t i = 0; c->may_overflow && i < many; i++) cg_store_(e, i, cg_saturate_(cg_load_(e, i)));
        return energy;
    }
    return cg_energy_(c->kernels, v, many);
}
static double cg_ef_subtract_sparse_(const void *user, const uint64_t *index, size_t many, const float *v) {
    const cg_ef_commit_ctx_ *c = (const cg_ef_commit_ctx_ *)user;
    const int clears_velocity = cg_ef_has_trait_(&c->ef->desc, CG_EF_MASKS_VELOCITY_);
    float *e = c->ef->vector[0], *velocity = clears_velocity ? c->ef->vector[1] : NULL;
    for (size_t i = 0; e && i < many; i++) CG_PREFETCH_(cg_at_(e, c->packet_start + (size_t)index[i]));
    for (size_t i = 0; velocity && i < many; i++) CG_PREFETCH_(cg_at_(velocity, c->packet_start + (size_t)index[i]));
    if (c->ef->bytes) cg_residual8_add_sparse_(c->ef, c->packet_start, index, many, -c->subtract_factor, v);
    for (size_t i = 0; e && i < many; i++) {
        const size_t j = c->packet_start + (size_t)index[i];
        cg_store_(e, j, cg_saturate_(cg_plus_(cg_load_(e, j), cg_times_(-c->subtract_factor, v[i]))));
        if (velocity) cg_store_(velocity, j, 0.0f);
    }
    return cg_energy_(c->kernels, v, many);
}
/* Goes over used[0, len): one packet of n values, or several, one after the other, that cover the vector in order (as
   stripes do). With a sink each is decoded into it, and must have been verified; without, each is verified. c says to
   sinks where a packet begins. CG_E_MISMATCH: the packets do not cover exactly n values. */
static cg_status cg_ef_for_each_packet_(
    const cg_ef *ef, const cg_extra *side, const uint8_t *used, size_t len, cg_ef_commit_ctx_ *c, cg_sink_ *sink) {
    size_t offset = 0, values_done = 0;
    cg_status s = used ? CG_OK : CG_E_ARG;
    cg_decoder_ d;
    while (offset < len && s == CG_OK) {
        s = cg_ef_packet_open_(&d, side, used + offset, len - offset, ef->desc.n - values_done, !sink);
        c->packet_start = values_done;
        if (s == CG_OK && sink) s = cg_packet_decode_(&d, side, 1.0f, 1.0f, NULL, sink, 1);
        if (s != CG_OK) return s;
        offset += d.info.packet_bytes;
        values_done += (size_t)d.info.n;
    }
    return s == CG_OK && (values_done != ef->desc.n || len == 0) ? CG_E_MISMATCH : s;
}
typedef struct cg_ef_apply_mean_ctx_ {
    const cg_ef *ef;
    float *mean; /* n floats: in, the mean of contributions; out, the result */
    int may_overflow;
} cg_ef_apply_mean_ctx_;
/* Pass over received, which becomes what it is after the step, and mean, which becomes the result. Returns the hash of
   what is now received. */
static double cg_ef_apply_mean_(const void *user, size_t first, size_t many, float *received) {
    const cg_ef_apply_mean_ctx_ *r = (const cg_ef_apply_mean_ctx_ *)user;
    cg_ef_row_of_(&r->ef->desc)->receive(r->ef, many, received, cg_at_mut_(r->mean, first));
    for (size_t i = 0; r->may_overflow && i < many; i++) {
        cg_store_(r->mean, first + i, cg_saturate_(cg_load_(r->mean, first + i)));
        cg_store_(received, i, cg_saturate_(cg_load_(received, i)));
    }
    return cg_ef_received_hash_(NULL, first, many, received);
}
/* Commits the step with used[0, len) as its contribution. opened: that packet, if it is one and open, or NULL. mean:
   what kinds that keep what they received need, n floats, and for some becomes the result; other kinds do not look at
   it. verified: the packets have been. On an error from the mean or from verification nothing has changed, and the
   step is still open. */
static cg_status cg_ef_commit_now_(
    cg_ef *ef, const cg_extra *side, const void *used, size_t len, cg_decoder_ *opened, float *mean, int verified) {
    const cg_ef_desc *d = &ef->desc;
    cg_ef_step_ st;
    cg_ef_commit_ctx_ c;
    cg_sink_ sink;
    /* nothing is subtracted from a residual that is not there, so that the packet may be missing */
    const int measured = used || opened || !cg_ef_has_trait_(d, CG_EF_KEEPS_NOTHING_);
    double huge_blocks = 0.0; /* of the mean; see cg_ef_pass_count_huge_ */
    cg_status s = CG_OK;
    memset(&st, 0, sizeof st);
    st.kernels = c.kernels = cg_kernels_now_();
    c.ef = ef;
    c.subtract_factor = cg_ef_subtract_factor_(ef);
    c.may_overflow = ef->reach >= (double)CG_EF_HUGE_;
    sink.take_dense = cg_ef_subtract_dense_;
    sink.take_sparse = cg_ef_subtract_sparse_;
    sink.user = &c;
    sink.energy = 0.0;
    if (cg_ef_has_trait_(d, CG_EF_KEEPS_RECEIVED_) && d->n) {
        if (!mean) return CG_E_ARG;
        huge_blocks = cg_vector_pass_(cg_ef_pass_count_huge_, &st, mean, d->n, CG_BLOCK_);
        if (huge_blocks >= 1e100) return CG_E_NONFINITE;
    }
    if (!verified && measured) s = cg_ef_for_each_packet_(ef, side, (const uint8_t *)used, len, &c, NULL);
    if (s != CG_OK) return s;
    if (cg_ef_has_trait_(d, CG_EF_TAKES_VARIANCE_)) cg_ef_scale_vector_(ef, 1, cg_ef_decay_(d));
    if (c.subtract_factor == 0.0f) { /* nothing to subtract, only |D|^2 to measure */
        sink.take_dense = cg_ef_energy_dense_;
        sink.take_sparse = cg_ef_energy_sparse_;
        sink.user = &st;
    }
    c.packet_start = 0;
    if (opened) s = cg_packet_decode_(opened, side, 1.0f, 1.0f, NULL, &sink, 1);
    else if (measured) s = cg_ef_for_each_packet_(ef, side, (const uint8_t *)used, len, &c, &sink);
    if (s == CG_OK && cg_ef_has_trait_(d, CG_EF_KEEPS_RECEIVED_)) {
        cg_ef_apply_mean_ctx_ r;
        r.ef = ef;
        r.mean = mean;
        r.may_overflow = c.may_overflow || huge_blocks > 0.0;
        cg_ef_mark_next_(ef, cg_ef_pass_(cg_ef_apply_mean_, &r, ef->vector[2], d->n));
    }
    ef->stats.sent = sink.energy;
    ef->stats.gain = ef->stats.put > 0.0 ? (float)(sink.energy / ef->stats.put) : 0.0f;
    ef->reach += cg_sqrt_(sink.energy);
    if (cg_ef_has_trait_(d, CG_EF_MAY_BE_SILENT_)) {
        ef->silent = ef->stats.silent ? ef->silent + 1 : 0;
        if (!ef->stats.silent) ef->error_sent = ef->error;
    }
    cg_ef_step_end_(ef);
    return s;
}
static cg_status cg_ef_not_pending_(cg_ef *ef) {
    return cg_ef_fail_(ef, CG_E_STATE,
        ef->desc.n ? "no step is pending: cg_ef_compress begins one" : cg_ef_unready_why_(ef), 0, CG_NO_INDEX);
}
/* Says in the report why a commit has returned s. */
static void cg_ef_commit_why_(cg_ef *ef, cg_status s, const void *used, const float *mean) {
    const char *why = cg_status_str(s);
    uint64_t at = CG_NO_INDEX;
    if (s == CG_E_NONFINITE) {
        why = "NaN or Inf in mean";
        at = cg_first_nonfinite_(mean, ef->desc.n);
    } else if (!mean && cg_ef_has_trait_(&ef->desc, CG_EF_KEEPS_RECEIVED_))
        why = "mean is NULL, and this kind needs the mean over ranks";
    else if (!used && !cg_ef_has_trait_(&ef->desc, CG_EF_KEEPS_NOTHING_))
        why = "used is NULL: give the packet of cg_ef_compress, or what of it was used";
    else if (s == CG_E_MISMATCH) why = "used does not cover the n values of this state, or has another support";
    else if (s == CG_E_CORRUPT) why = "used has a packet that is not intact";
    cg_ef_fail_(ef, s, why, 0, at);
}
CG_API_ cg_status cg_ef_commit_with(cg_ef *ef, const cg_extra *side, const void *used, size_t used_len, float *mean) {
    cg_fenv_ env;
    cg_status s;
    if (!ef) return CG_E_ARG;
    if (!ef->pending) return cg_ef_not_pending_(ef);
    env = cg_fenv_enter_();
    s = cg_ef_commit_now_(ef, side, used, used_len, NULL, mean, 0);
    if (s == CG_OK) cg_ef_done_(ef);
    else cg_ef_commit_why_(ef, s, used, mean);
    cg_fenv_leave_(env);
    return s;
}
CG_API_ cg_status cg_ef_commit(cg_ef *ef, const void *used, size_t used_len, float *mean) {
    return cg_ef_commit_with(ef, NULL, used, used_len, mean);
}

CG_API_ cg_status cg_ef_rollback(cg_ef *ef, const void *packet, size_t len) {
    cg_fenv_ env;
    (void)packet;
    (void)len;
    if (!ef) return CG_E_ARG;
    if (!ef->pending) return cg_ef_not_pending_(ef);
    env = cg_fenv_enter_();
    cg_ef_rollback_now_(ef);
    cg_fenv_leave_(env);
    return cg_ef_done_(ef);
}
