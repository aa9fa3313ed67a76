/* rollback: how a step ends, and how it ends when its packet was not used

   Offers   cg_ef_step_end_, cg_ef_rollback_now_
   Needs    step
   Touches  the residual, the velocity, the counters and the stats of the state
   When a step has begun the gradient is in the residual already, so a rollback has little to do. */

/* Counts a step, committed or rolled back; every desc.reset steps the residual is forgotten. */
static void cg_ef_step_end_(cg_ef *ef) {
    ef->pending = 0;
    ef->steps++;
    cg_ef_delay_residual_(ef);
    if (ef->desc.reset && ef->steps % ef->desc.reset == 0) cg_ef_scale_vector_(ef, 0, 0.0f);
}
/* Pass: e = e + factor M, saturated; user is a cg_ef_factor_ctx_. */
static double cg_ef_subtract_mean_(const void *user, size_t first, size_t many, float *e) {
    const cg_ef_factor_ctx_ *b = (const cg_ef_factor_ctx_ *)user;
    cg_axpy_faded_energy_y_(b->kernels, cg_at_(b->ef->vector[2], first), many, b->factor, e);
    for (size_t i = 0; i < many; i++) cg_store_(e, i, cg_saturate_(cg_load_(e, i)));
    return 0.0;
}
/* Ends a step with D = 0. The residual keeps p; only what the kind would add a second time in the next step is taken
   back: the momentum M of ONEBIT_ADAM. The variance decays as in a step. */
static void cg_ef_rollback_now_(cg_ef *ef) {
    if (cg_ef_has_trait_(&ef->desc, CG_EF_TAKES_VARIANCE_)) cg_ef_scale_vector_(ef, 1, cg_ef_decay_(&ef->desc));
    if (cg_ef_has_trait_(&ef->desc, CG_EF_ADDS_RECEIVED_)) {
        cg_ef_factor_ctx_ b;
        b.kernels = cg_kernels_now_();
        b.ef = ef;
        b.factor = -cg_times_(ef->scale, ef->desc.momentum);
        cg_ef_pass_(cg_ef_subtract_mean_, &b, ef->vector[0], ef->desc.n);
    }
    ef->stats.sent = 0.0;
    ef->stats.gain = 0.0f;
    cg_ef_step_end_(ef);
    if (cg_ef_has_trait_(&ef->desc, CG_EF_KEEPS_NOTHING_)) ef->stats.kept = 0;
    ef->may_withdraw = 1;
}
