/* mean_next: a step of a mean, message by message

   Offers   the public cg_mean_start and cg_mean_next
   Needs    mean_step, exchange; cg_exchange_begin_in_state_ of exchange
   Touches  the mean, the gradients
   One state after the other has its exchange, in the order of the list. Results wait until the last of them is in, and
   states that have been committed are put back if a later one fails. */

/* The tensor whose state is the one of that turn. */
static size_t cg_mean_turn_tensor_(const cg_mean *m) {
    size_t i = 0;
    while (m->tensor[i].ef != m->efs[m->turn]) i++;
    return i;
}
/* Where the gradient of this turn has been copied to, and its result waits; NULL: it is missing. */
static float *cg_mean_turn_grad_(cg_mean *m, size_t tensor) {
    const cg_mean_tensor_ *t = &m->tensor[tensor];
    if (m->config.packing) return cg_mean_pack_(m, m->grads);
    if (!m->grads || !m->grads[tensor]) return NULL;
    memcpy(t->result, m->grads[tensor], 4 * t->n);
    return t->result;
}
/* Begins the exchange of this turn. What this rank refuses is told to the others by it. */
static cg_status cg_mean_turn_begin_(cg_mean *m) {
    const size_t i = cg_mean_turn_tensor_(m);
    const cg_exchange_desc desc = cg_mean_exchange_desc_(m, m->steps, i);
    cg_ef *ef = m->efs[m->turn];
    float *grad = cg_mean_turn_grad_(m, i);
    uint8_t *at = (uint8_t *)m->mem + CG_STATE_ROOM_;
    cg_exchange_state *x = (cg_exchange_state *)m->mem;
    cg_ef_exchange_ctx_ *r = m->ctx;
    cg_status s;
    cg_ef_forget_last_(ef);
    s = cg_ef_exchange_prepare_(ef, &desc, &m->transport, grad, r, x);
    m->exchange = x;
    if (s != CG_OK || !r->buffers.exchange_bytes)
        return cg_exchange_begin_in_state_(
            x, &r->desc, &m->transport, grad, NULL, ef->desc.n, at, m->mem_bytes - CG_STATE_ROOM_, 0, s);
    s = cg_ef_exchange_begin_(ef, &desc, &m->transport, grad, at, r);
    at += (size_t)(r->buffers.vector_bytes + r->buffers.packet_bytes);
    return cg_exchange_begin_in_state_(x, &r->desc, &m->transport, r->p, r->fill.make ? &r->fill : NULL, ef->desc.n, at,
        (size_t)(r->buffers.exchange_bytes - CG_STATE_ROOM_), x->status == CG_OK, s);
}
/* Ends the exchange of this turn, which has ended with s. */
static cg_status cg_mean_turn_end_(cg_mean *m, cg_status s) {
    const size_t i = cg_mean_turn_tensor_(m);
    const cg_report before = m->report;
    cg_ef *ef = m->efs[m->turn];
    const int refused = ef->report.status != CG_OK;
    cg_exchange_report(m->exchange, &m->report);
    if (refused) {
        if (s == (cg_status)ef->report.status) cg_ef_copy_refusal_(ef, &m->report);
    } else
        s = cg_ef_exchange_moved_(
            ef, m->ctx, m->exchange, s, &m->report, m->config.packing ? m->packed : m->tensor[i].result);
    cg_ef_keep_report_(ef, &m->report);
    m->report.bytes_out += before.bytes_out;
    m->report.bytes_in += before.bytes_in;
    m->report.rounds += before.rounds;
    if (m->turn && m->report.route != before.route) m->report.route = 0;
    m->exchange = NULL;
    m->turn++;
    return s;
}
static cg_status cg_mean_next_(cg_mean *m, int code, cg_io *io) {
    cg_status s = CG_OK;
    size_t blamed = m->tensors;
    while (s == CG_OK && m->turn < m->active) {
        if (!m->exchange) {
            s = cg_mean_turn_begin_(m);
            code = 0;
        }
        if (s == CG_OK) s = cg_exchange_next(m->exchange, code, io);
        if (s == CG_AGAIN) return s;
        blamed = cg_mean_turn_tensor_(m);
        s = cg_mean_turn_end_(m, s);
    }
    m->pending = 0;
    m->report.used = NULL;
    m->report.used_len = 0;
    if (s != CG_OK) {
        if (m->config.packing) blamed = cg_mean_unpack_at_(m);
        cg_mean_restore_(m);
        cg_mean_step_why_(m, blamed);
        return s;
    }
    for (size_t i = 0; i < m->tensors; i++)
        if (m->tensor[i].ef && m->tensor[i].result) memcpy(m->grads[i], m->tensor[i].result, 4 * m->tensor[i].n);
    if (m->config.packing) cg_mean_unpack_(m, m->grads);
    m->steps++;
    memcpy(m->why, "ok", 3);
    return CG_OK;
}
CG_API_ cg_status cg_mean_start(cg_mean *mean, float *const *grads) {
    if (!mean) return CG_E_ARG;
    if (mean->magic != CG_MEAN_MAGIC_ || mean->pending) return CG_E_STATE;
    if (!mean->config.overlap)
        return cg_mean_say_(
            mean, CG_E_STATE, "this mean has no room for results that wait: open it with overlap=yes, on all ranks");
    if (cg_ef_has_trait_(&mean->config.ef, CG_EF_TAKES_VARIANCE_))
        return cg_mean_say_(mean, CG_E_UNSUPPORTED, "memory=variance takes cg_mean_step_with");
    cg_mean_backup_(mean);
    cg_report_set_(&mean->report, CG_OK, cg_status_str(CG_OK), 0, CG_NO_INDEX);
    mean->grads = grads;
    mean->turn = 0;
    mean->exchange = NULL;
    mean->pending = 1;
    return CG_OK;
}
CG_API_ cg_status cg_mean_next(cg_mean *mean, int last_code, cg_io *io) {
    cg_fenv_ env;
    cg_status s;
    if (!mean || !io) return CG_E_ARG;
    if (mean->magic != CG_MEAN_MAGIC_ || !mean->pending) return CG_E_STATE;
    env = cg_fenv_enter_();
    s = cg_mean_next_(mean, last_code, io);
    cg_fenv_leave_(env);
    return s;
}
