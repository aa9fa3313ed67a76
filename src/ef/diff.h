/* diff: differences of models for callers with a wire of their own, and received vectors that are set

   Offers   the public cg_diff functions and cg_ef_set_received
   Needs    plan, mark, compress, commit, rollback, save
   Touches  vector[2] and the mark
   A cg_diff is a cg_ef of the kind DIFFERENCE whose base is known from the start. */

CG_API_ cg_status cg_ef_set_received(cg_ef *ef, const float *v, size_t n) {
    cg_fenv_ env;
    cg_status s = CG_OK;
    if (!ef) return CG_E_ARG;
    if (cg_ef_is_unready_(ef)) return cg_ef_fail_(ef, CG_E_STATE, cg_ef_unready_why_(ef), 0, CG_NO_INDEX);
    if (!cg_ef_has_trait_(&ef->desc, CG_EF_COPIES_RECEIVED_))
        return cg_ef_fail_(ef, CG_E_UNSUPPORTED, "only DIFFERENCE and FILTERED have a received vector that may be set",
            0, CG_NO_INDEX);
    if (!v) return cg_ef_fail_(ef, CG_E_ARG, "v is NULL", 0, CG_NO_INDEX);
    if (n != ef->desc.n)
        return cg_ef_fail_(ef, CG_E_MISMATCH, "n is not desc.n, the length of this state", 0, CG_NO_INDEX);
    env = cg_fenv_enter_();
    if (cg_first_nonfinite_(v, n) != CG_NO_INDEX)
        s = cg_ef_fail_(ef, CG_E_NONFINITE, "NaN or Inf in v", 0, cg_first_nonfinite_(v, n));
    else {
        memcpy(ef->vector[2], v, 4 * n);
        cg_ef_agreed_(ef);
        ef->may_withdraw = 0;
        s = cg_ef_done_(ef);
    }
    cg_fenv_leave_(env);
    return s;
}
static cg_ef_desc cg_diff_desc_(const cg_op *op, size_t n, float lambda, int workers) {
    cg_ef_desc d = CG_ZERO;
    if (op) d.op = *op;
    d.n = n;
    d.kind = CG_EF_DIFFERENCE;
    d.lambda = lambda;
    d.workers = workers;
    return d;
}
CG_API_ size_t cg_diff_memory(const cg_op *op, size_t n) {
    const cg_ef_desc d = cg_diff_desc_(op, n, 0.0f, 0);
    return op ? cg_ef_memory(&d) : 0;
}
CG_API_ cg_status cg_diff_init(
    cg_diff *diff, const cg_op *op, size_t n, float lambda, int workers, const float *base, void *mem, size_t bytes) {
    const cg_ef_desc d = cg_diff_desc_(op, n, lambda, workers);
    cg_status s;
    if (!diff || !op) return CG_E_ARG;
    s = cg_ef_init(&diff->ef, &d, mem, bytes);
    if (s == CG_OK) s = cg_ef_set_received(&diff->ef, base, n);
    if (s != CG_OK) diff->ef.desc.n = 0; /* without a base there is no difference */
    return s;
}
CG_API_ cg_status cg_diff_compress(
    cg_diff *diff, const cg_tag *tag, const float *model, void *packet, size_t cap, size_t *len) {
    if (!diff && len) *len = 0;
    return diff ? cg_ef_compress(&diff->ef, tag, model, packet, cap, len) : CG_E_ARG;
}
CG_API_ cg_status cg_diff_apply(cg_diff *diff, float *mean, size_t n) {
    cg_fenv_ env;
    cg_status s;
    if (!diff || !mean) return CG_E_ARG;
    if (!diff->ef.desc.n) return CG_E_STATE;
    if (n != diff->ef.desc.n) return CG_E_MISMATCH;
    env = cg_fenv_enter_();
    diff->ef.received_by = cg_ef_shift_rate_(&diff->ef.desc, NULL); /* of a rank that has compressed nothing, too */
    s = cg_ef_commit_now_(&diff->ef, NULL, NULL, 0, NULL, mean, 0);
    if (s == CG_OK) cg_ef_done_(&diff->ef);
    else cg_ef_commit_why_(&diff->ef, s, NULL, mean);
    cg_fenv_leave_(env);
    return s;
}
CG_API_ void cg_diff_cancel(cg_diff *diff) {
    if (diff && diff->ef.pending) cg_ef_rollback_now_(&diff->ef);
}
CG_API_ const float *cg_diff_base(const cg_diff *diff) { return diff ? diff->ef.vector[2] : NULL; }
CG_API_ uint64_t cg_diff_mark(const cg_diff *diff) { return diff ? diff->ef.mark : 0; }
CG_API_ size_t cg_diff_save_bytes(const cg_diff *diff) { return diff ? cg_ef_save_bytes(&diff->ef) : 0; }
CG_API_ cg_status cg_diff_save(const cg_diff *diff, void *buf, size_t cap, size_t *len) {
    return diff ? cg_ef_save(&diff->ef, buf, cap, len) : CG_E_ARG;
}
CG_API_ cg_status cg_diff_load(cg_diff *diff, const void *buf, size_t len) {
    return diff ? cg_ef_load(&diff->ef, buf, len) : CG_E_ARG;
}
