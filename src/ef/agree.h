/* agree: ranks that have received different vectors come to the same one again

   Offers   the public cg_ef_agree and cg_ef_agree_memory
   Needs    mark, exchange; cg_exchange_or_fail_ of exchange
   Touches  vector[2], the mark, the report, and the carry where it is part of what was agreed on
   Of what a rank keeps only H and M must be equal everywhere. H is the mean of all h, which every rank has its own of
   and keeps; M is made of nothing else, so that the mean of what ranks have in its place is taken. */

static int cg_ef_has_to_agree_(const cg_ef *ef) { return ef->vector[2] != NULL; }
/* The exchange of the vector whose mean is received: uncompressed, with the caller's tag and weights. Not even a dense
   step has the same common, so that no rank takes one for the other. */
static cg_exchange_desc cg_ef_agree_desc_(const cg_ef *ef, const cg_exchange_desc *desc) {
    cg_exchange_desc d = CG_ZERO;
    d.tag = desc->tag;
    d.weight = desc->weight;
    /* an H that is a sum of h stays one; a mean of M is taken in any case */
    if (cg_ef_has_trait_(&ef->desc, CG_EF_DIFFERENCE_) &&
        (cg_fold_row_of_(desc->fold)->traits & (CG_FOLD_IS_LINEAR_ | CG_FOLD_DIVIDES_)) == CG_FOLD_IS_LINEAR_)
        d.fold = CG_FOLD_SUM;
    d.common = desc->common ^ CG_EF_MAGIC_;
    d.into = ef->vector[2];
    d.flags = CG_CONFIRM;
    return d;
}
CG_API_ size_t cg_ef_agree_memory(const cg_ef *ef, const cg_exchange_desc *desc, const cg_transport *transport) {
    cg_exchange_desc d;
    if (!ef || !desc || !transport || !cg_ef_has_to_agree_(ef)) return 0;
    d = cg_ef_agree_desc_(ef, desc);
    return cg_exchange_memory(&d, transport, ef->desc.n);
}
static void cg_ef_agreed_(cg_ef *ef) {
    cg_ef_step_ st;
    double norm;
    memset(&st, 0, sizeof st);
    st.kernels = cg_kernels_now_();
    norm = cg_sqrt_(cg_ef_pass_(cg_ef_pass_energy_, &st, ef->vector[2], ef->desc.n));
    if (norm > ef->reach) ef->reach = norm; /* another rank may have had larger values */
    /* H has what carries held back */
    if (ef->carry && cg_ef_has_trait_(&ef->desc, CG_EF_DIFFERENCE_)) memset(ef->carry, 0, 4 * ef->desc.carry);
    cg_ef_mark_restart_(ef);
}
CG_API_ cg_status cg_ef_agree(cg_ef *ef, const cg_exchange_desc *desc, const cg_transport *transport, void *mem,
    size_t bytes, cg_report *report) {
    cg_exchange_desc d;
    cg_report own;
    cg_fenv_ env;
    cg_status s;
    const char *unready;
    if (!report) report = &own;
    cg_report_set_(report, CG_E_ARG, "ef, desc or transport is NULL", 0, CG_NO_INDEX);
    if (!ef || !desc || !transport) return CG_E_ARG;
    unready = cg_ef_is_unready_(ef) ? cg_ef_unready_why_(ef) : NULL;
    cg_report_set_(report, CG_OK, cg_status_str(CG_OK), 0, CG_NO_INDEX);
    if (ef->desc.n && !cg_ef_has_to_agree_(ef)) return cg_ef_done_(ef);
    env = cg_fenv_enter_();
    d = cg_ef_agree_desc_(ef, desc);
    s = cg_exchange_or_fail_(&d, transport, ef->vector[cg_ef_has_trait_(&ef->desc, CG_EF_DIFFERENCE_) ? 0 : 2],
        ef->desc.n, mem, bytes, unready ? CG_E_STATE : CG_OK, report);
    if (s == CG_OK) cg_ef_agreed_(ef);
    if (unready && s == CG_E_STATE) report->why = unready;
    if (s == CG_E_MEMORY) report->why = "mem is too small: cg_ef_agree_memory gives its bytes";
    cg_ef_keep_report_(ef, report);
    report->used = NULL;
    report->used_len = 0;
    cg_fenv_leave_(env);
    return s;
}
