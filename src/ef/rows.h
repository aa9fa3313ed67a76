/* rows: the kinds of error feedback: what each computes, and the table of them

   Offers   cg_ef_row_at_; the public names of kinds
   Needs    kinds (what a row holds), step, withdraw (cg_ef_solve_)
   Touches  chunks of the vectors of a state, in the functions that rows name
   A row stands at the place of its id. A new kind is a row here with its functions, beside its id. */

/* What is taken out of the residual for a contribution. */
static float cg_ef_sent_all_(float decay) {
    (void)decay;
    return 1.0f;
}
static float cg_ef_sent_none_(float decay) {
    (void)decay;
    return 0.0f;
}
static float cg_ef_sent_decay_(float decay) { return decay; }
static float cg_ef_sent_rest_(float decay) { return 1.0f - decay; }

static void cg_ef_coefficients_classic_(cg_ef_step_ *st, float decay) { st->p_from_e = st->e_from_e = decay; }
static void cg_ef_coefficients_ecq_(cg_ef_step_ *st, float decay) {
    const float alpha = st->ef->desc.alpha;
    st->p_from_e = alpha != 0.0f ? alpha : 0.2f;
    st->e_from_e = decay;
}
static void cg_ef_coefficients_momentum_(cg_ef_step_ *st, float decay) {
    (void)decay;
    st->e_from_g = st->ef->desc.nesterov ? st->grad_scale : 0.0f;
}
static void cg_ef_coefficients_onebit_adam_(cg_ef_step_ *st, float decay) {
    (void)decay;
    st->e_from_g = cg_times_(st->grad_scale, 1.0f - st->ef->desc.momentum);
}
static void cg_ef_coefficients_signum_(cg_ef_step_ *st, float decay) {
    cg_ef_coefficients_onebit_adam_(st, decay);
    st->e_from_e = st->ef->desc.momentum;
}
static void cg_ef_coefficients_none_(cg_ef_step_ *st, float decay) {
    (void)decay;
    st->p_from_e = 0.0f;
}
static void cg_ef_coefficients_filtered_(cg_ef_step_ *st, float decay) {
    (void)decay;
    st->e_from_g = st->grad_scale;
    st->e_from_e = st->ef->desc.momentum;
}
/* What was received takes the place of e. */
static void cg_ef_coefficients_models_(cg_ef_step_ *st, float decay) {
    (void)decay;
    st->p_from_e = cg_ef_begins_(st->ef) ? 0.0f : -1.0f;
}

/* The result is H + mean, and H becomes H + received_by mean. */
static void cg_ef_receive_difference_(const cg_ef *ef, size_t many, float *received, float *mean) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    float buf[CG_CHUNK_];
    if (ef->received_by == 1.0f) {
        CG_KERNEL_(kernels, axpby(received, many, 1.0f, 1.0f, mean, 0));
        memcpy(received, mean, 4 * many);
        return;
    }
    memcpy(buf, mean, 4 * many);
    CG_KERNEL_(kernels, axpby(received, many, 1.0f, 1.0f, mean, 0));
    CG_KERNEL_(kernels, axpby(buf, many, ef->received_by, 1.0f, received, 0));
}
static void cg_ef_receive_mean_(const cg_ef *ef, size_t many, float *received, float *mean) {
    (void)ef;
    memcpy(received, mean, 4 * many);
}
/* The mean is U', and the result U' - momentum U: what makes U' of U in the optimizer. */
static void cg_ef_receive_filtered_(const cg_ef *ef, size_t many, float *received, float *mean) {
    float buf[CG_CHUNK_];
    memcpy(buf, mean, 4 * many);
    CG_KERNEL_(cg_kernels_now_(), axpby(received, many, -ef->desc.momentum, 1.0f, mean, 0));
    memcpy(received, buf, 4 * many);
}
/* base = base + lambda mean, which is the result. */
static void cg_ef_receive_models_(const cg_ef *ef, size_t many, float *received, float *mean) {
    if (!cg_ef_begins_(ef)) CG_KERNEL_(cg_kernels_now_(), axpby(received, many, 1.0f, ef->received_by, mean, 0));
    memcpy(received, mean, 4 * many);
}

static double cg_ef_compensate_classic_(const cg_ef_step_ *st, size_t first, size_t many, const float *g, float *e) {
    (void)first;
    return cg_ef_axpby_fading_(st, g, many, st->grad_scale, cg_ef_decay_(&st->ef->desc), e);
}
static double cg_ef_compensate_momentum_(const cg_ef_step_ *st, size_t first, size_t many, const float *g, float *e) {
    const cg_ef_desc *d = &st->ef->desc;
    const float m = d->momentum, a = st->grad_scale;
    float *u = cg_at_mut_(st->ef->vector[1], first);
    double energy;
    cg_axpby_fading_(st->kernels, g, many, d->nesterov ? cg_times_(m, a) : a, m, u);
    if (d->nesterov) cg_axpby_fading_(st->kernels, u, many, 1.0f, 1.0f, e);
    energy = d->nesterov ? cg_ef_axpby_fading_(st, g, many, a, 1.0f, e)
                         : cg_ef_axpby_fading_(st, u, many, 1.0f, 1.0f, e);
    cg_ef_saturate_(st, u, many);
    return energy;
}
static double cg_ef_compensate_signum_(const cg_ef_step_ *st, size_t first, size_t many, const float *g, float *e) {
    const float m = st->ef->desc.momentum;
    (void)first;
    return cg_ef_axpby_fading_(st, g, many, cg_times_(st->grad_scale, 1.0f - m), m, e);
}
static double cg_ef_compensate_filtered_(const cg_ef_step_ *st, size_t first, size_t many, const float *g, float *e) {
    (void)first;
    return cg_ef_axpby_fading_(st, g, many, st->grad_scale, st->ef->desc.momentum, e);
}
static double cg_ef_compensate_variance_(const cg_ef_step_ *st, size_t first, size_t many, const float *g, float *e) {
    const float a = st->grad_scale;
    float *v = cg_at_mut_(st->ef->vector[1], first);
    if (st->variance) cg_axpby_fading_(st->kernels, cg_at_(st->variance, first), many, cg_times_(a, a), 1.0f, v);
    cg_ef_saturate_(st, v, many);
    return cg_ef_axpby_fading_(st, g, many, a, 1.0f, e);
}
static double cg_ef_compensate_onebit_adam_(
    const cg_ef_step_ *st, size_t first, size_t many, const float *g, float *e) {
    const cg_ef *ef = st->ef;
    const float m = ef->desc.momentum;
    double energy;
    cg_axpby_fading_(st->kernels, g, many, cg_times_(st->grad_scale, 1.0f - m), 1.0f, e);
    energy = cg_axpy_faded_energy_y_(st->kernels, cg_at_(ef->vector[2], first), many, cg_times_(ef->scale, m), e);
    cg_ef_saturate_(st, e, many);
    return st->may_overflow ? cg_energy_(st->kernels, e, many) : energy;
}

static void cg_ef_withdraw_momentum_(cg_ef *ef, cg_ef_step_ *st) {
    const float m = ef->desc.momentum, a = st->grad_scale;
    cg_ef_solve_(ef, st, 1, ef->desc.nesterov ? cg_times_(m, a) : a, m);
}
/* A running mean that began with this gradient begins with the next one. */
static void cg_ef_withdraw_running_mean_(cg_ef *ef, cg_ef_step_ *st) {
    const float m = ef->desc.momentum;
    cg_ef_solve_(ef, st, 1, cg_times_(st->grad_scale, 1.0f - m), ef->steps == 1 ? 0.0f : m);
}
static void cg_ef_withdraw_variance_(cg_ef *ef, cg_ef_step_ *st) {
    const float a = st->grad_scale, decay = cg_ef_decay_(&ef->desc);
    st->g = st->variance;
    st->clip_limit = 0.0f;
    cg_ef_solve_(ef, st, 1, cg_times_(decay, cg_times_(a, a)), decay);
    for (size_t i = 0; i < ef->desc.n; i++) /* by rounding */
        if (ef->vector[1][i] < 0.0f) ef->vector[1][i] = 0.0f;
}

/* kind, name, parameters, traits, decay, velocity_power, sent, coefficients, compensate, withdraw_velocity,
   receive */
static const cg_ef_row_ cg_ef_rows_[] = {
    { CG_EF_CLASSIC, "classic", "decay:8bit:reset", CG_EF_IN_PLACE_ | CG_EF_ALLOWS_8BIT_, 1.0f, 0, cg_ef_sent_all_,
        cg_ef_coefficients_classic_, cg_ef_compensate_classic_, NULL, NULL },
    { CG_EF_LOCO, "loco", "decay:8bit:reset", CG_EF_ALLOWS_8BIT_, 0.8f, 0, cg_ef_sent_rest_, NULL, NULL, NULL, NULL },
    { CG_EF_SCALECOM, "scalecom", "decay:8bit:reset", CG_EF_ALLOWS_8BIT_, 0.1f, 0, cg_ef_sent_decay_, NULL, NULL, NULL,
        NULL },
    { CG_EF_ECQ, "ecq", "alpha:decay:8bit:reset", CG_EF_ALLOWS_8BIT_, 0.9f, 0, cg_ef_sent_all_, cg_ef_coefficients_ecq_,
        NULL, NULL, NULL },
    { CG_EF_MOMENTUM, "momentum", "momentum!:nesterov:reset",
        CG_EF_IN_PLACE_ | CG_EF_HAS_VELOCITY_ | CG_EF_TAKES_MOMENTUM_ | CG_EF_TAKES_NESTEROV_ | CG_EF_ADDS_VELOCITY_ |
            CG_EF_MASKS_VELOCITY_,
        1.0f, 1, cg_ef_sent_all_, cg_ef_coefficients_momentum_, cg_ef_compensate_momentum_, cg_ef_withdraw_momentum_,
        NULL },
    { CG_EF_SIGNUM, "signum", "momentum!",
        CG_EF_IN_PLACE_ | CG_EF_TAKES_MOMENTUM_ | CG_EF_HAS_NO_RESIDUAL_ | CG_EF_TAKES_OP_AS_IS_, 1.0f, 0,
        cg_ef_sent_none_, cg_ef_coefficients_signum_, cg_ef_compensate_signum_, NULL, NULL },
    { CG_EF_VARIANCE, "variance", "decay:reset",
        CG_EF_IN_PLACE_ | CG_EF_HAS_VELOCITY_ | CG_EF_MASKS_VELOCITY_ | CG_EF_TAKES_VARIANCE_, 0.999f, 2,
        cg_ef_sent_all_, NULL, cg_ef_compensate_variance_, cg_ef_withdraw_variance_, NULL },
    { CG_EF_EF21, "ef21", "momentum",
        CG_EF_HAS_SHIFT_ | CG_EF_HAS_NO_RESIDUAL_ | CG_EF_KEEPS_RECEIVED_ | CG_EF_TAKES_MOMENTUM_ |
            CG_EF_AVERAGES_GRADIENTS_,
        1.0f, 0, cg_ef_sent_all_, NULL, NULL, cg_ef_withdraw_running_mean_, cg_ef_receive_difference_ },
    { CG_EF_DIANA, "diana", "alpha",
        CG_EF_HAS_SHIFT_ | CG_EF_HAS_NO_RESIDUAL_ | CG_EF_KEEPS_RECEIVED_ | CG_EF_TAKES_OP_AS_IS_ |
            CG_EF_SHIFTS_BY_ALPHA_,
        1.0f, 0, cg_ef_sent_all_, NULL, NULL, NULL, cg_ef_receive_difference_ },
    { CG_EF_LAQ, "laq", "step!:weight:patience",
        CG_EF_HAS_SHIFT_ | CG_EF_HAS_NO_RESIDUAL_ | CG_EF_KEEPS_RECEIVED_ | CG_EF_MAY_BE_SILENT_, 1.0f, 0,
        cg_ef_sent_all_, NULL, NULL, NULL, cg_ef_receive_difference_ },
    { CG_EF_ONEBIT_ADAM, "onebit_adam", "momentum!:reset",
        CG_EF_IN_PLACE_ | CG_EF_KEEPS_RECEIVED_ | CG_EF_TAKES_MOMENTUM_ | CG_EF_ADDS_RECEIVED_, 1.0f, 0,
        cg_ef_sent_all_, cg_ef_coefficients_onebit_adam_, cg_ef_compensate_onebit_adam_, NULL, cg_ef_receive_mean_ },
    { CG_EF_NONE, "none", "biased",
        CG_EF_KEEPS_NOTHING_ | CG_EF_HAS_NO_RESIDUAL_ | CG_EF_TAKES_OP_AS_IS_ | CG_EF_UNBIASED_ONLY_, 1.0f, 0,
        cg_ef_sent_none_, cg_ef_coefficients_none_, NULL, NULL, NULL },
    { CG_EF_FILTERED, "filtered", "momentum!",
        CG_EF_IN_PLACE_ | CG_EF_HAS_NO_RESIDUAL_ | CG_EF_TAKES_OP_AS_IS_ | CG_EF_UNBIASED_ONLY_ |
            CG_EF_KEEPS_RECEIVED_ | CG_EF_COPIES_RECEIVED_ | CG_EF_TAKES_MOMENTUM_ | CG_EF_NEEDS_MOMENTUM_,
        1.0f, 0, cg_ef_sent_none_, cg_ef_coefficients_filtered_, cg_ef_compensate_filtered_, NULL,
        cg_ef_receive_filtered_ },
    { CG_EF_DIFFERENCE, "difference", "lambda",
        CG_EF_KEEPS_NOTHING_ | CG_EF_HAS_NO_RESIDUAL_ | CG_EF_TAKES_OP_AS_IS_ | CG_EF_UNBIASED_ONLY_ |
            CG_EF_KEEPS_RECEIVED_ | CG_EF_COPIES_RECEIVED_ | CG_EF_TAKES_MODELS_,
        1.0f, 0, cg_ef_sent_none_, cg_ef_coefficients_models_, NULL, NULL, cg_ef_receive_models_ },
};
static const cg_ef_row_ *cg_ef_row_at_(uint32_t kind) {
    return kind < sizeof cg_ef_rows_ / sizeof cg_ef_rows_[0] ? &cg_ef_rows_[kind] : NULL;
}
CG_API_ const char *cg_ef_kind_name(uint32_t kind) { return cg_ef_row_at_(kind) ? cg_ef_row_at_(kind)->name : NULL; }
CG_API_ cg_status cg_ef_kind_parse(uint32_t *kind, const char *text) {
    return cg_name_parse_(kind, text, cg_ef_kind_name);
}
