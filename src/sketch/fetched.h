/* fetched: FetchSGD, with momentum and error in sketches that are the same on all ranks

   Offers   the public cg_fetched_ calls
   Needs    heavy, exchange, sketched; cg_exchange_or_fail_ of exchange
   Touches  the state (three sketches), grad, the caller's memory and report
   One round: the mean of sketches of gradients. What follows is computed by every rank alike. `fresh` holds this step's
   sketch and then the new momentum, until it is known that everything stays finite. */

static cg_status cg_fetched_check_(const cg_fetched_desc *d) {
    if (!d || !(d->momentum >= 0.0f && d->momentum < 1.0f) || !cg_is_finite_(d->rate) || !d->k ||
        !CG_RESERVE_IS_ZERO_(d->reserved))
        return CG_E_ARG;
    if (d->sketch.groups) return CG_E_UNSUPPORTED; /* see cg_sketch_zero */
    return cg_sketch_memory(&d->sketch) && cg_sketch_memory(&d->sketch) < SIZE_MAX / 4 ? CG_OK : CG_E_ARG;
}
CG_API_ size_t cg_fetched_memory(const cg_fetched_desc *desc) {
    return cg_fetched_check_(desc) == CG_OK ? 3 * cg_sketch_memory(&desc->sketch) : 0;
}
CG_API_ cg_status cg_fetched_init(cg_fetched *sgd, const cg_fetched_desc *desc, void *mem, size_t bytes) {
    uint8_t *p = (uint8_t *)mem;
    size_t each;
    cg_status s = sgd ? cg_fetched_check_(desc) : CG_E_ARG;
    if (s != CG_OK) return s;
    each = cg_sketch_memory(&desc->sketch);
    if (!mem || bytes < 3 * each) return CG_E_MEMORY;
    sgd->desc = *desc;
    s = cg_sketch_init(&sgd->momentum, &desc->sketch, p, each);
    if (s == CG_OK) s = cg_sketch_init(&sgd->error, &desc->sketch, p + each, each);
    if (s == CG_OK) s = cg_sketch_init(&sgd->fresh, &desc->sketch, p + 2 * each, each);
    return s;
}
CG_API_ size_t cg_fetched_exchange_memory(
    const cg_fetched *sgd, const cg_exchange_desc *desc, const cg_transport *transport) {
    cg_sketched_buffers_ r;
    uint64_t need;
    if (!sgd || !desc || !transport) return 0;
    need = cg_sketched_buffers_plan_(
        &sgd->fresh, cg_min_(sgd->desc.k, sgd->desc.sketch.n), desc, transport, 0, NULL, &r);
    return need ? cg_size_or_zero_(cg_add_sat_(need, 64)) : 0;
}
/* On any error the state is as it was, but for fresh, which holds nothing between steps. */
static cg_status cg_fetched_exchange_(cg_fetched *sgd, const cg_exchange_desc *desc, const cg_transport *t, float *grad,
    void *mem, size_t bytes, cg_report *report) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    const cg_fetched_desc *d = &sgd->desc;
    const size_t n = d->sketch.n, k = cg_min_(d->k, n), align_pad = mem ? (64 - ((uintptr_t)mem & 63)) % 64 : 0,
                 cell_count = sgd->fresh.count;
    const float rate = d->rate != 0.0f ? d->rate : 1.0f;
    float chunk[CG_CHUNK_];
    cg_exchange_desc step_desc = cg_f32_mean_step_desc_(desc);
    cg_sketched_buffers_ r;
    cg_report round_report;
    const uint64_t need = cg_sketched_buffers_plan_(&sgd->fresh, k, desc, t, 0, NULL, &r);
    const cg_report refusal = cg_sgd_check_(
        desc, t, grad, n, mem, bytes, need, "mem is too small: cg_fetched_exchange_memory gives its bytes");
    cg_status s = (cg_status)refusal.status;
    step_desc = cg_sketch_step_desc_(
        &sgd->fresh, &step_desc, cg_mix64_(d->k) ^ cg_as_bits_(d->momentum) ^ (uint64_t)cg_as_bits_(rate) << 32);
    step_desc.flags |= CG_CONFIRM; /* momentum and error are the same on all ranks, and must stay so */
    if (s != CG_OK || !need) {
        s = cg_exchange_or_fail_(&step_desc, t, sgd->fresh.cells, cell_count, mem, bytes, s, report);
        if (refusal.status != CG_OK && (uint32_t)s == refusal.status) cg_report_copy_outcome_(report, &refusal);
        return s;
    }
    cg_sketched_buffers_plan_(&sgd->fresh, k, desc, t, 0, (uint8_t *)mem + align_pad, &r);
    cg_sketch_clear(&sgd->fresh);
    s = cg_sketch_add(&sgd->fresh, grad, n, 1.0f);
    s = cg_exchange_or_fail_(
        &step_desc, t, sgd->fresh.cells, cell_count, r.exchange, r.exchange_bytes, s, &round_report);
    cg_report_add_(report, &round_report);
    if (s != CG_OK) return s;
    /* the new momentum, in fresh: momentum stays as it is until all is known to be finite */
    cg_axpy_faded_energy_y_(kernels, sgd->momentum.cells, cell_count, d->momentum, sgd->fresh.cells);
    for (size_t i = 0; i < cell_count && s == CG_OK; i += CG_CHUNK_) { /* is the new error finite, too? */
        const size_t many = cg_min_(CG_CHUNK_, cell_count - i);
        memcpy(chunk, sgd->error.cells + i, 4 * many);
        CG_KERNEL_(kernels, axpby(sgd->fresh.cells + i, many, rate, 1.0f, chunk, 0));
        if (CG_KERNEL_(kernels, absmax_bits(chunk, many)) >= CG_INF_BITS_) s = CG_E_NONFINITE;
    }
    if (s != CG_OK) {
        report->rank = t->rank;
        report->status = (uint32_t)s;
        report->why = "the sums of sketches have become too large for floats";
        return s;
    }
    memcpy(sgd->momentum.cells, sgd->fresh.cells, 4 * cell_count);
    CG_KERNEL_(kernels, axpby(sgd->momentum.cells, cell_count, rate, 1.0f, sgd->error.cells, 0));
    s = cg_sketch_heavy(&sgd->error, k, r.index, r.value, r.scratch, r.scratch_bytes);
    if (s == CG_OK) s = cg_sketch_zero(&sgd->error, r.index, k);
    if (s == CG_OK) s = cg_sketch_zero(&sgd->momentum, r.index, k);
    if (s == CG_OK) cg_sparse_apply_(desc, r.index, r.value, k, grad, n);
    report->status = (uint32_t)s;
    if (s != CG_OK) report->why = cg_status_str(s);
    return s;
}
CG_API_ cg_status cg_fetched_exchange(cg_fetched *sgd, const cg_exchange_desc *desc, const cg_transport *transport,
    float *grad, void *mem, size_t bytes, cg_report *report) {
    cg_report own;
    cg_fenv_ env;
    cg_status s;
    if (!report) report = &own;
    cg_report_set_(report, CG_E_ARG, "sgd, desc or transport is NULL", 0, CG_NO_INDEX);
    if (!sgd || !desc || !transport) return CG_E_ARG;
    env = cg_fenv_enter_();
    s = cg_fetched_exchange_(sgd, desc, transport, grad, mem, bytes, report);
    cg_fenv_leave_(env);
    return s;
}
