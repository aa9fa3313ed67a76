/* exchange: the mean of a sketch over ranks, and what both protocols with sketches need

   Offers   cg_sketch_step_desc_, cg_f32_mean_step_desc_, cg_sgd_check_, cg_report_add_, cg_clamp_all_,
            cg_sparse_apply_; the public cg_sketch_exchange and its memory
   Needs    packets, heavy (cg_check_finite_); kernels of core; the step of a model of exchange
   Touches  the cells, the caller's memory and report */

/* The caller's description for cells of this sketch. The tag's seed says which sketch it is, and salt what else must
   agree: ranks with others are told of a mismatch in the first round. */
static cg_exchange_desc cg_sketch_step_desc_(const cg_sketch *s, const cg_exchange_desc *desc, uint64_t salt) {
    cg_exchange_desc d = *desc;
    d.tag.seed = cg_mix64_(d.tag.seed ^ cg_mix64_(cg_sketch_fingerprint_(s) ^ salt));
    d.model = NULL; /* a model does not take a step by cells */
    return d;
}
CG_API_ size_t cg_sketch_exchange_memory(
    const cg_sketch *sketch, const cg_exchange_desc *desc, const cg_transport *transport) {
    cg_exchange_desc d;
    if (!sketch || !desc) return 0;
    d = cg_sketch_step_desc_(sketch, desc, 0);
    return cg_exchange_memory(&d, transport, sketch->count);
}
CG_API_ cg_status cg_sketch_exchange(cg_sketch *sketch, const cg_exchange_desc *desc, const cg_transport *transport,
    void *mem, size_t bytes, cg_report *report) {
    cg_exchange_desc d;
    cg_status s;
    if (report) cg_report_set_(report, CG_E_ARG, "sketch or desc is NULL", 0, CG_NO_INDEX);
    if (!sketch || !desc) return CG_E_ARG;
    d = cg_sketch_step_desc_(sketch, desc, 0);
    s = cg_exchange(&d, transport, sketch->cells, sketch->count, mem, bytes, report);
    if (report && s == CG_E_MEMORY) report->why = "mem is too small: cg_sketch_exchange_memory gives its bytes";
    return s;
}

/* What can be wrong on this rank with a step by sketches, before its state changes; status CG_OK: nothing. need: bytes
   of mem, or 0 if the exchange is refused anyway; why names what gives them. */
static cg_report cg_sgd_check_(const cg_exchange_desc *desc, const cg_transport *t, const float *grad, size_t n,
    const void *mem, size_t bytes, uint64_t need, const char *why) {
    const size_t align_pad = mem ? (64 - ((uintptr_t)mem & 63)) % 64 : 0;
    cg_report r;
    cg_report_set_(&r, CG_OK, cg_status_str(CG_OK), 0, CG_NO_INDEX);
    if (!grad && n) cg_report_set_(&r, CG_E_ARG, "grad is NULL", 0, CG_NO_INDEX);
    else if (!cg_rate_ok_(desc)) cg_report_set_(&r, CG_E_ARG, "rate must be finite", 0, CG_NO_INDEX);
    else if (cg_check_finite_(grad, n) != CG_OK)
        cg_report_set_(&r, CG_E_NONFINITE, cg_status_str(CG_E_NONFINITE), 0, cg_first_nonfinite_(grad, n));
    else if (need && (!mem || bytes < align_pad || bytes - align_pad < need))
        cg_report_set_(&r, CG_E_MEMORY, why, cg_add_sat_(need, 64), CG_NO_INDEX);
    r.rank = t->rank;
    return r;
}
/* *all becomes the report of the last round, with bytes and rounds of all. */
static void cg_report_add_(cg_report *all, const cg_report *one) {
    const uint64_t out = all->bytes_out, in = all->bytes_in;
    const uint32_t rounds = all->rounds;
    *all = *one;
    all->bytes_out += out;
    all->bytes_in += in;
    all->rounds += rounds;
    all->used = NULL; /* a packet of cells, which nobody can commit */
    all->used_len = 0;
}
#define CG_CLAMP_LIMIT_ 7.922816251426434e28f /* 2^96: sums of 2^30 of them are still floats */
/* Cuts off what has grown beyond that: otherwise no later sum would be finite. */
static void cg_clamp_all_(float *x, size_t n) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    uint32_t absmax_bits = 0;
    for (size_t i = 0; i < n; i += CG_BLOCK_)
        absmax_bits = cg_max32_(absmax_bits, CG_KERNEL_(kernels, absmax_bits(x + i, cg_min_(CG_BLOCK_, n - i))));
    for (size_t i = 0; absmax_bits > cg_as_bits_(CG_CLAMP_LIMIT_) && i < n; i++)
        x[i] = x[i] > CG_CLAMP_LIMIT_ ? CG_CLAMP_LIMIT_ : x[i] < -CG_CLAMP_LIMIT_ ? -CG_CLAMP_LIMIT_ : x[i];
}
/* Writes a sparse vector over y[0, n), or takes a step of the model by it and leaves y. */
static void cg_sparse_apply_(
    const cg_exchange_desc *d, const uint64_t *index, const float *value, size_t count, float *y, size_t n) {
    if (n && !d->model) memset(y, 0, 4 * n);
    for (size_t i = 0; i < count; i++) {
        const size_t at = (size_t)index[i];
        if (d->model) cg_model_step_at_(d, at, value[i]);
        else cg_store_(y, at, value[i]);
    }
}
/* A plain mean of f32 by the caller's route, tag, leader and common, confirmed if the caller says so. */
static cg_exchange_desc cg_f32_mean_step_desc_(const cg_exchange_desc *desc) {
    cg_exchange_desc d = CG_ZERO;
    d.route = desc->route;
    d.tag = desc->tag;
    d.leader = desc->leader;
    d.flags = desc->flags & CG_CONFIRM;
    d.common = desc->common;
    return d;
}
