/* adjust: what may be changed between two steps, and the update of 1-bit Adam

   Offers   the public cg_ef_rescale, cg_ef_set_rate, cg_ef_set_ratio and cg_ef_precondition
   Needs    plan, schedule, step
   Touches  the residual and the carry (cg_ef_rescale), the description in the state, the caller's out */

CG_API_ cg_status cg_ef_rescale(cg_ef *ef, float factor) {
    cg_fenv_ env;
    if (!ef || !cg_is_finite_(factor)) return CG_E_ARG;
    if (cg_ef_is_unready_(ef)) return CG_E_STATE;
    if (cg_ef_has_trait_(&ef->desc, CG_EF_HAS_NO_RESIDUAL_)) return CG_E_UNSUPPORTED;
    env = cg_fenv_enter_();
    cg_ef_scale_vector_(ef, 0, factor);
    for (size_t i = 0; ef->carry && i < ef->desc.carry; i++) {
        const float v = cg_times_(ef->carry[i], factor);
        ef->carry[i] = cg_saturate_(factor == 1.0f ? v : cg_faded_(v));
    }
    ef->reach *= factor < 0.0f ? -(double)factor : (double)factor;
    ef->hint = ef->threshold = 0.0f; /* magnitudes of p will be others */
    ef->may_withdraw = 0;
    cg_fenv_leave_(env);
    return CG_OK;
}
CG_API_ cg_status cg_ef_set_rate(cg_ef *ef, float rate) {
    if (!ef || !cg_is_finite_(rate) || rate == 0.0f) return CG_E_ARG;
    if (cg_ef_is_unready_(ef)) return CG_E_STATE;
    ef->desc.rate = rate;
    return CG_OK;
}
CG_API_ cg_status cg_ef_set_ratio(cg_ef *ef, float ratio) {
    const cg_fenv_ env = cg_fenv_enter_();
    cg_status s = CG_OK;
    cg_ef_needs_ needs;
    cg_ef_desc d;
    if (!ef) s = CG_E_ARG;
    else if (cg_ef_is_unready_(ef)) s = CG_E_STATE;
    else {
        d = ef->desc;
        cg_op_set_ratio_(&d.op, ratio);
        if (!cg_op_ratio_stage_(&d.op)) s = CG_E_UNSUPPORTED;
        else s = cg_ef_check_(&d, &needs);
        if (s == CG_OK && needs.scratch_bytes > ef->scratch_bytes) s = CG_E_MEMORY;
        if (s == CG_OK) ef->desc.op = d.op;
    }
    if (ef)
        cg_ef_fail_(ef, s,
            s == CG_E_STATE             ? cg_ef_unready_why_(ef)
                : s == CG_E_UNSUPPORTED ? "the operator has no ratio"
                : s == CG_E_MEMORY ? "the mem of cg_ef_init is too small for this ratio: cg_ef_memory gives its bytes"
                : s == CG_E_ARG    ? "ratio must be above 0 and at most 1"
                                   : cg_status_str(s),
            s == CG_E_MEMORY ? cg_ef_memory(&d) : 0, CG_NO_INDEX);
    cg_fenv_leave_(env);
    return s;
}
CG_API_ double cg_ef_precondition(const float *momentum, const float *variance, float epsilon, float *out, size_t n) {
    const cg_fenv_ env = cg_fenv_enter_();
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) {
        const double v = (double)cg_load_(variance, i),
                     inv_root = v > 0.0 ? 1.0 / (cg_sqrt_(v) + (double)epsilon) : 0.0;
        const float u = cg_saturate_((float)((double)cg_load_(momentum, i) * inv_root));
        cg_store_(out, i, u);
        sum += cg_times64_((double)u, (double)u);
    }
    sum = cg_sqrt_(sum);
    cg_fenv_leave_(env);
    return sum;
}
