/* withdraw: takes the gradient of a step that failed out of the state again

   Offers   cg_ef_solve_; the public cg_ef_withdraw and cg_ef_withdraw_with
   Needs    step, rollback, report
   Touches  residual and velocity, the counter of steps, the stats, the report
   After a rollback e and u are sums of the gradient and of what was there before, with the coefficients of the step.
   These are solved for what was there before. */

/* vector[which] had become v_from_g g + v_from_v v, where g is st->g: makes it v again. First g is taken out, so that
   no product is too large for a float that the sum was not. v_from_v 0: nothing of v had stayed, and nothing would in
   the next step, so that it becomes 0. */
static void cg_ef_solve_(cg_ef *ef, cg_ef_step_ *st, int which, float v_from_g, float v_from_v) {
    const float inverse = v_from_v > 0.0f ? 1.0f / v_from_v : 0.0f;
    st->e_from_g = -v_from_g;
    st->e_from_e = 1.0f;
    cg_ef_pass_(cg_ef_residual_accumulate_, st, which ? ef->vector[which] : cg_ef_pass_vector_(ef), ef->desc.n);
    if (inverse != 1.0f) cg_ef_scale_vector_(ef, which, cg_is_finite_(inverse) ? inverse : 0.0f);
}
/* Pass: e = e - u, saturated; user is a cg_ef_step_. */
static double cg_ef_subtract_velocity_(const void *user, size_t first, size_t many, float *e) {
    const cg_ef_step_ *st = (const cg_ef_step_ *)user;
    CG_KERNEL_(st->kernels, axpby(cg_at_(st->ef->vector[1], first), many, -1.0f, 1.0f, e, 0));
    cg_ef_saturate_(st, e, many);
    return 0.0;
}
/* The bound of all magnitudes: reach is that of the step, and u may have been larger before it. */
static void cg_ef_rebound_(cg_ef *ef, const cg_ef_step_ *st) {
    double bound = 0.0;
    for (int i = 0; i < 2; i++)
        if (ef->vector[i]) bound += cg_sqrt_(cg_ef_pass_(cg_ef_pass_energy_, st, ef->vector[i], ef->desc.n));
    if (bound > ef->reach) ef->reach = bound;
    ef->size = ef->reach;
}
/* Can the last step be withdrawn, and by this? *st becomes what later functions need of it. */
static cg_status cg_ef_withdraw_check_(cg_ef *ef, const cg_extra *side, const float *grad, cg_ef_step_ *st) {
    const int needs_aux = cg_ef_has_trait_(&ef->desc, CG_EF_TAKES_VARIANCE_);
    if (cg_ef_is_unready_(ef)) return cg_ef_fail_(ef, CG_E_STATE, cg_ef_unready_why_(ef), 0, CG_NO_INDEX);
    if (!ef->may_withdraw)
        return cg_ef_fail_(ef, CG_E_STATE,
            "nothing to withdraw: the last step was committed or withdrawn, or its gradient refused (stats.kept is 0), "
            "or the state was rescaled, loaded or reset since",
            0, CG_NO_INDEX);
    if (!grad) return cg_ef_fail_(ef, CG_E_ARG, "grad is NULL", 0, CG_NO_INDEX);
    if (needs_aux && !(side && side->aux))
        return cg_ef_fail_(ef, CG_E_ARG,
            "VARIANCE needs the variances of that step in side->aux: call cg_ef_withdraw_with", 0, CG_NO_INDEX);
    memset(st, 0, sizeof *st);
    st->kernels = cg_kernels_now_();
    st->ef = ef;
    st->g = grad;
    st->variance = needs_aux ? side->aux : NULL;
    if (cg_vector_pass_(cg_ef_pass_count_huge_, st, (float *)(uintptr_t)grad, ef->desc.n, CG_BLOCK_) >= 1e100)
        return cg_ef_fail_(ef, CG_E_NONFINITE, "grad is not what the step was given: it has NaN or Inf", 0,
            cg_first_nonfinite_(grad, ef->desc.n));
    if (needs_aux &&
        cg_vector_pass_(cg_ef_pass_count_huge_, st, (float *)(uintptr_t)side->aux, ef->desc.n, CG_BLOCK_) > 0.0)
        return cg_ef_fail_(ef, CG_E_NONFINITE,
            "side->aux is not what the step was given: it has NaN, Inf or a value above 1e37", 0,
            cg_first_nonfinite_(side->aux, ef->desc.n));
    return CG_OK;
}
static cg_status cg_ef_withdraw_(cg_ef *ef, const cg_extra *side, const float *grad) {
    const cg_ef_desc *d = &ef->desc;
    cg_ef_step_ st;
    const cg_status s = cg_ef_withdraw_check_(ef, side, grad, &st);
    if (s != CG_OK) return s;
    st.grad_scale = ef->given_by;
    if (d->clip_by == CG_CLIP_VALUE) st.clip_limit = (float)cg_ef_clip_at_(d);
    st.may_overflow = 1;
    cg_ef_set_coefficients_(&st, ef->scale);
    /* a residual that the end of the step has forgotten has nothing of the gradient, nor has h ever */
    if (!(d->reset && ef->steps % d->reset == 0) && !cg_ef_has_trait_(d, CG_EF_HAS_SHIFT_ | CG_EF_KEEPS_NOTHING_)) {
        if (cg_ef_has_trait_(d, CG_EF_ADDS_VELOCITY_)) cg_ef_pass_(cg_ef_subtract_velocity_, &st, ef->vector[0], d->n);
        cg_ef_solve_(ef, &st, 0, st.e_from_g, st.e_from_e);
    }
    if (ef->vector[1]) cg_ef_row_of_(d)->withdraw_velocity(ef, &st);
    ef->steps--;
    cg_ef_rebound_(ef, &st);
    ef->stats.kept = 0;
    ef->may_withdraw = 0;
    return cg_ef_done_(ef);
}
CG_API_ cg_status cg_ef_withdraw_with(cg_ef *ef, const cg_extra *side, const float *grad) {
    cg_fenv_ env;
    cg_status s;
    if (!ef) return CG_E_ARG;
    env = cg_fenv_enter_();
    s = cg_ef_withdraw_(ef, side, grad);
    cg_fenv_leave_(env);
    return s;
}
CG_API_ cg_status cg_ef_withdraw(cg_ef *ef, const float *grad) { return cg_ef_withdraw_with(ef, NULL, grad); }
