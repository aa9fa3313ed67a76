/* ---- >>step: from the gradient to p ---- */

typedef struct cg_ef_step_ {
    const cg_kernels_ *kernels;
    const cg_ef *ef;
    cg_op op;
    cg_extra side;
    const float *g, *variance;
    /* g is multiplied by a; before that cut at +-limit, if that is not 0 */
    float grad_scale, clip_limit;
    /* p = pa g + pb e; then e = qa g + qb e, unless p takes its place */
    float p_from_g, p_from_e, e_from_g, e_from_e;
    int may_overflow;   /* a sum may be too large */
    int whole_vector;   /* p must be materialized in ef->whole before it is compressed */
    float laq_range[2]; /* LAQ */
} cg_ef_step_;

static double cg_ef_pass_(double (*run)(const void *, size_t, size_t, float *), const void *user, float *x, size_t n) {
    return cg_vector_pass_(run, user, x, n, CG_CHUNK_);
}
static double cg_ef_pass_energy_(const void *user, size_t first, size_t many, float *x) {
    (void)first;
    return cg_energy_(((const cg_ef_step_ *)user)->kernels, x, many);
}
/* 1 for a block with something huge, much more if it is not finite */
static double cg_ef_pass_count_huge_(const void *user, size_t first, size_t many, float *x) {
    const uint32_t top = ((const cg_ef_step_ *)user)->kernels->absmax_bits(x, many);
    (void)first;
    return top >= CG_INF_BITS_ ? 1e100 : top >= cg_as_bits_(CG_EF_HUGE_) ? 1.0 : 0.0;
}
static void cg_ef_saturate_(const cg_ef_step_ *st, float *v, size_t many) {
    if (st->may_overflow)
        for (size_t i = 0; i < many; i++) cg_store_(v, i, cg_saturate_(cg_load_(v, i)));
}
static const float *cg_ef_clip_values_(const cg_ef_step_ *st, const float *g, size_t many, float *buf) {
    for (size_t i = 0; i < many; i++) {
        const float f = cg_load_(g, i);
        buf[i] = f > st->clip_limit ? st->clip_limit : f < -st->clip_limit ? -st->clip_limit : f;
    }
    return buf;
}
/* Kinds whose p takes the place of the error: one chunk of it. */
static double cg_ef_axpby_fading_(
    const cg_ef_step_ *st, const float *d, size_t many, float alpha, float beta, float *y) {
    if (!st->may_overflow) return cg_axpby_fading_energy_y_(st->kernels, d, many, alpha, beta, y);
    cg_axpby_fading_(st->kernels, d, many, alpha, beta, y);
    cg_ef_saturate_(st, y, many);
    return cg_energy_(st->kernels, y, many);
}
static double cg_ef_compensate_chunk_(const cg_ef_step_ *st, size_t first, size_t many, const float *g, float *e) {
    const cg_ef *ef = st->ef;
    const cg_ef_desc *d = &ef->desc;
    const cg_kernels_ *k = st->kernels;
    const float m = d->momentum, a = st->grad_scale;
    float *u = ef->vector[1] ? cg_at_mut_(ef->vector[1], first) : NULL;
    double energy;
    switch (d->kind) {
    case CG_EF_MOMENTUM:
        cg_axpby_fading_(k, g, many, d->nesterov ? cg_times_(m, a) : a, m, u);
        if (d->nesterov) cg_axpby_fading_(k, u, many, 1.0f, 1.0f, e);
        energy = d->nesterov ? cg_ef_axpby_fading_(st, g, many, a, 1.0f, e)
                             : cg_ef_axpby_fading_(st, u, many, 1.0f, 1.0f, e);
        cg_ef_saturate_(st, u, many);
        return energy;
    case CG_EF_SIGNUM: return cg_ef_axpby_fading_(st, g, many, cg_times_(a, 1.0f - m), m, e);
    case CG_EF_VARIANCE:
        if (st->variance) cg_axpby_fading_(k, cg_at_(st->variance, first), many, cg_times_(a, a), 1.0f, u);
        cg_ef_saturate_(st, u, many);
        return cg_ef_axpby_fading_(st, g, many, a, 1.0f, e);
    case CG_EF_ONEBIT_ADAM:
        cg_axpby_fading_(k, g, many, cg_times_(a, 1.0f - m), 1.0f, e);
        energy = cg_axpy_faded_energy_y_(k, cg_at_(ef->vector[2], first), many, cg_times_(ef->scale, m), e);
        cg_ef_saturate_(st, e, many);
        return st->may_overflow ? cg_energy_(k, e, many) : energy;
    default: return cg_ef_axpby_fading_(st, g, many, a, cg_ef_decay_(d), e);
    }
}
CG_NOINLINE_ double cg_ef_compensate_chunk_clipped_(
    const cg_ef_step_ *st, size_t first, size_t many, const float *g, float *e) {
    float buf[CG_CHUNK_];
    return cg_ef_compensate_chunk_(st, first, many, cg_ef_clip_values_(st, g, many, buf), e);
}
static double cg_ef_compensate_in_place_(const void *user, size_t first, size_t many, float *out) {
    const cg_ef_step_ *st = (const cg_ef_step_ *)user;
    double energy = 0.0;
    for (size_t i = 0, some; i < many; i += some) {
        const float *g = cg_at_(st->g, first + i);
        some = cg_min_(CG_CHUNK_, many - i);
        energy += st->clip_limit != 0.0f ? cg_ef_compensate_chunk_clipped_(st, first + i, some, g, cg_at_mut_(out, i))
                                         : cg_ef_compensate_chunk_(st, first + i, some, g, cg_at_mut_(out, i));
    }
    return energy;
}
/* The others: out = p, memory as it is. */
CG_NOINLINE_ double cg_ef_compensate_(const void *user, size_t first, size_t many, float *out) {
    const cg_ef_step_ *st = (const cg_ef_step_ *)user;
    const cg_ef *ef = st->ef;
    float buf[CG_CHUNK_];
    double energy = 0.0;
    for (size_t i = 0, some; i < many; i += some) {
        const float *g = cg_at_(st->g, first + i);
        float *p = cg_at_mut_(out, i);
        some = cg_min_(CG_CHUNK_, many - i);
        if (ef->bytes) cg_residual8_read_(ef, first + i, some, p);
        else memcpy(p, cg_at_(ef->vector[0], first + i), 4 * some);
        if (st->clip_limit != 0.0f) g = cg_ef_clip_values_(st, g, some, buf);
        /* h does not fade */
        if (cg_ef_has_trait_(&ef->desc, CG_EF_DIFFERENCE_))
            st->kernels->axpby(g, some, st->p_from_g, st->p_from_e, p, 0);
        else cg_axpby_fading_(st->kernels, g, some, st->p_from_g, st->p_from_e, p);
        cg_ef_saturate_(st, p, some);
        energy += cg_energy_(st->kernels, p, some);
    }
    return energy;
}
/* |p|^2, before it is asked for. */
CG_NOINLINE_ double cg_ef_compensated_energy_(const void *user, size_t first, size_t many, float *none) {
    float p[CG_CHUNK_];
    double energy = 0.0;
    (void)none;
    for (size_t i = 0, some; i < many; i += some) {
        some = cg_min_(CG_CHUNK_, many - i);
        energy += cg_ef_compensate_(user, first + i, some, p);
    }
    return energy;
}
static float cg_ef_compensated_absmax_(const cg_ef_step_ *st, size_t n) {
    float p[CG_CHUNK_];
    uint32_t top = 0;
    for (size_t i = 0; i < n; i += CG_CHUNK_) {
        cg_ef_compensate_(st, i, cg_min_(CG_CHUNK_, n - i), p);
        top = cg_max32_(top, st->kernels->absmax_bits(p, cg_min_(CG_CHUNK_, n - i)));
    }
    return cg_as_float_(top);
}
/* ... and what stays of it: e = qa g + qb e. */
CG_NOINLINE_ double cg_ef_residual_accumulate_(const void *user, size_t first, size_t many, float *e) {
    const cg_ef_step_ *st = (const cg_ef_step_ *)user;
    float buf[CG_CHUNK_];
    for (size_t i = 0, some; i < many; i += some) {
        const float *g = cg_at_(st->g, first + i);
        some = cg_min_(CG_CHUNK_, many - i);
        if (st->clip_limit != 0.0f) g = cg_ef_clip_values_(st, g, some, buf);
        if (st->ef->bytes) cg_residual8_axpby_(st->ef, first + i, some, st->e_from_g, g, st->e_from_e);
        else {
            cg_axpby_fading_(st->kernels, g, some, st->e_from_g, st->e_from_e, cg_at_mut_(e, i));
            cg_ef_saturate_(st, cg_at_mut_(e, i), some);
        }
    }
    return 0.0;
}
/* EF21 with momentum: a running mean of g. */
static double cg_ef_grad_running_mean_(const void *user, size_t first, size_t many, float *v) {
    const cg_ef_step_ *st = (const cg_ef_step_ *)user;
    float buf[64];
    for (size_t i = 0, some; i < many; i += some) {
        const float *g = cg_at_(st->g, first + i);
        some = cg_min_(64, many - i);
        if (st->clip_limit != 0.0f) g = cg_ef_clip_values_(st, g, some, buf);
        cg_axpby_fading_(st->kernels, g, some, cg_times_(st->grad_scale, 1.0f - st->ef->desc.momentum),
            st->ef->desc.momentum, cg_at_mut_(v, i));
        cg_ef_saturate_(st, cg_at_mut_(v, i), some);
    }
    return 0.0;
}
/* for passes: the error, or if it is in bytes something that is not looked at */
static float *cg_ef_pass_vector_(const cg_ef *ef) { return ef->vector[0] ? ef->vector[0] : (float *)(void *)ef->bytes; }
typedef struct cg_ef_factor_ctx_ {
    const cg_kernels_ *kernels;
    const cg_ef *ef;
    float factor;
} cg_ef_factor_ctx_;
static double cg_ef_scale_chunk_(const void *user, size_t first, size_t many, float *e) {
    const cg_ef_factor_ctx_ *b = (const cg_ef_factor_ctx_ *)user;
    static const float zero[CG_EF_BUCKET_] = { 0.0f };
    if (!b->ef || !b->ef->bytes) cg_axpby_fading_(b->kernels, e, many, 0.0f, b->factor, e);
    else
        for (size_t i = 0; i < many; i += CG_EF_BUCKET_)
            cg_residual8_axpby_(b->ef, first + i, cg_min_(CG_EF_BUCKET_, many - i), 1.0f, zero, b->factor);
    for (size_t i = 0; (!b->ef || !b->ef->bytes) && i < many; i++) cg_store_(e, i, cg_saturate_(cg_load_(e, i)));
    return 0.0;
}
/* A vector times `by`; which 0: the error, in whatever form. */
static void cg_ef_scale_vector_(cg_ef *ef, int which, float by) {
    cg_ef_factor_ctx_ b;
    b.kernels = cg_kernels_now_();
    b.ef = which ? NULL : ef;
    b.factor = by;
    if (which ? ef->vector[which] != NULL : 1)
        cg_ef_pass_(cg_ef_scale_chunk_, &b, which ? ef->vector[which] : cg_ef_pass_vector_(ef), ef->desc.n);
}
static float cg_ef_shift_rate_(const cg_ef_desc *d, const cg_op *op) { /* by which D goes into h and H */
    if (d->kind != CG_EF_DIANA) return 1.0f;
    return d->alpha != 0.0f ? d->alpha : (float)(1.0 / (1.0 + cg_omega_(op, d->n)));
}
static void cg_ef_set_coefficients_(cg_ef_step_ *st, float scale) {
    const cg_ef_desc *d = &st->ef->desc;
    const float decay = cg_ef_decay_(d), a = st->grad_scale;
    const float by = d->kind == CG_EF_LOCO ? 1.0f - decay : decay;
    st->p_from_g = a;
    st->p_from_e = 1.0f;
    st->e_from_g = cg_times_(by, a);
    st->e_from_e = 1.0f;
    if (d->kind == CG_EF_CLASSIC) {
        st->p_from_e = st->e_from_e = decay;
        st->e_from_g = a;
    }
    if (d->kind == CG_EF_ECQ) {
        st->p_from_e = d->alpha != 0.0f ? d->alpha : 0.2f;
        st->e_from_g = a;
        st->e_from_e = decay;
    }
    /* h is not divided */
    if (cg_ef_has_trait_(d, CG_EF_DIFFERENCE_)) {
        st->p_from_g = cg_times_(a, scale);
        st->p_from_e = -scale;
        st->e_from_g = 0.0f;
    }
}
/* By which D is taken from the error. */
static float cg_ef_subtract_factor_(const cg_ef *ef) {
    const cg_ef_desc *d = &ef->desc;
    if (d->kind == CG_EF_SIGNUM) return 0.0f;
    if (cg_ef_has_trait_(d, CG_EF_DIFFERENCE_)) return -ef->received_by;
    if (d->kind == CG_EF_LOCO) return cg_times_(1.0f - cg_ef_decay_(d), ef->scale);
    return d->kind == CG_EF_SCALECOM ? cg_times_(cg_ef_decay_(d), ef->scale) : ef->scale;
}
/* Everything that can be wrong, before memory changes; and the gradient's norm, if somebody asks. */
static cg_status cg_ef_step_check_(
    cg_ef *ef, const cg_tag *tag, const cg_extra *side, const float *grad, int norm, cg_ef_step_ *st, double *squares) {
    const cg_ef_desc *d = &ef->desc;
    const double workers = d->workers > 1 ? (double)d->workers : 1.0;
    double seen = 0.0;
    float clip = 1.0f;
    cg_ef_needs_ needs;
    cg_status s;
    memset(st, 0, sizeof *st);
    memset(&needs, 0, sizeof needs);
    *squares = 0.0;
    if (ef->pending) return CG_E_STATE;
    memset(&ef->stats, 0, sizeof ef->stats);
    ef->stats.clipped = 1.0f;
    if (!grad && d->n) return CG_E_ARG;
    st->kernels = cg_kernels_now_();
    st->ef = ef;
    st->op = cg_ef_op_(d, tag);
    if (side) st->side = *side;
    st->g = grad;
    s = cg_ef_needs_of_op_(d, st->op, &needs);
    if (s != CG_OK) return s;
    if (needs.scratch_bytes > ef->scratch_bytes || (needs.whole_vector && !ef->whole) ||
        needs.warm_count > ef->warm_count)
        return CG_E_MEMORY;
    st->whole_vector = needs.whole_vector;
    if (d->kind == CG_EF_VARIANCE) {
        if (!st->side.aux && d->n) return CG_E_ARG;
        st->variance = st->side.aux;
        st->side.aux = st->op.select.id == CG_SELECT_VARIANCE ? ef->vector[1] : NULL;
        if (d->n &&
            cg_vector_pass_(cg_ef_pass_count_huge_, st, (float *)(uintptr_t)st->variance, d->n, CG_BLOCK_) > 0.0)
            return CG_E_NONFINITE;
    } else if (st->op.select.id == CG_SELECT_BINS && !st->side.aux) st->side.aux = grad;
    s = cg_extra_check_(&st->op, &st->side);
    if (s != CG_OK) return s;
    /* one pass for both: squares of floats do not overflow a double */
    if (norm || (d->clip != 0.0f && d->clip_by == CG_CLIP_NORM)) {
        *squares = cg_ef_pass_(cg_ef_pass_energy_, st, (float *)(uintptr_t)grad, d->n);
        seen = !cg_is_finite64_(*squares) ? 1e100 : cg_sqrt_(*squares) >= (double)CG_EF_HUGE_ ? 1.0 : 0.0;
    } else if (!d->finite) {
        seen = cg_vector_pass_(cg_ef_pass_count_huge_, st, (float *)(uintptr_t)grad, d->n, CG_BLOCK_);
    }
    if (seen >= 1e100) return CG_E_NONFINITE;
    if (d->clip != 0.0f) {
        const double most = (double)d->clip / cg_sqrt_(workers), have = cg_sqrt_(*squares);
        if (d->clip_by == CG_CLIP_VALUE) st->clip_limit = (float)most;
        else if (have > most) clip = (float)(most / have);
    }
    ef->stats.clipped = clip;
    st->grad_scale = cg_times_(d->rate != 0.0f ? d->rate : 1.0f, clip);
    st->may_overflow = seen > 0.0 || ef->reach >= (double)CG_EF_HUGE_ ||
        (cg_as_bits_(st->grad_scale) & CG_ABS_MASK_) > cg_as_bits_(4.0f);
    return CG_OK;
}
/* From here on memory changes: to this step's scale, and for EF21 the mean of gradients. */
static void cg_ef_step_begin_(cg_ef *ef, cg_ef_step_ *st) {
    const cg_ef_desc *d = &ef->desc;
    const float scale = cg_ef_scale_(d, &st->op);
    if (!cg_ef_has_trait_(d, CG_EF_DIFFERENCE_) && scale != ef->scale) {
        cg_ef_scale_vector_(ef, 0, (float)((double)scale / (double)ef->scale));
        if (d->kind == CG_EF_MOMENTUM) cg_ef_scale_vector_(ef, 1, (float)((double)scale / (double)ef->scale));
        if (d->kind == CG_EF_VARIANCE)
            cg_ef_scale_vector_(
                ef, 1, (float)((double)scale * (double)scale / ((double)ef->scale * (double)ef->scale)));
    }
    ef->scale = scale;
    ef->received_by = cg_ef_shift_rate_(d, &st->op);
    if (!cg_ef_has_trait_(d, CG_EF_DIFFERENCE_)) st->grad_scale = cg_times_(st->grad_scale, scale);
    if (d->kind == CG_EF_EF21 && d->momentum != 0.0f) {
        cg_ef_pass_(cg_ef_grad_running_mean_, st, ef->vector[1], d->n);
        st->g = ef->vector[1];
        st->grad_scale = 1.0f;
        st->clip_limit = 0.0f;
    }
    cg_ef_set_coefficients_(st, scale);
}
static void cg_ef_record_energy_(cg_ef *ef, double energy) { /* p is there */
    const double size = cg_sqrt_(energy);
    /* the velocity is the difference of two */
    ef->reach = (cg_ef_in_place_(&ef->desc) ? ef->size : ef->reach) + size;
    ef->size = size;
    ef->stats.put = energy / ((double)ef->scale * (double)ef->scale);
    ef->stats.kept = 1;
}
/* Where the k-th largest will be in the next step, and a little below: a quarter more than k are to pass. */
static void cg_ef_update_hint_(cg_ef *ef, const cg_op *op, const cg_producer_ *fill, float threshold) {
    const size_t k = (size_t)cg_shape_of_(op, ef->desc.n).max_selected;
    const float last = cg_as_float_(fill->threshold_hint);
    float next = cg_times_(threshold, 0.97f);
    if (op->select.id != CG_SELECT_TOPK || op->sample.id || op->transform.id) return;
    if (fill->threshold_hint && fill->reached_hint > k &&
        last < threshold) /* they lie evenly below the threshold, about */
        next = cg_plus_(threshold,
            -cg_times_(cg_plus_(threshold, -last), (float)(0.25 * (double)k / (double)(fill->reached_hint - k))));
    if (next < cg_times_(threshold, 0.8f)) next = cg_times_(threshold, 0.8f);
    if (ef->threshold > 0.0f) { /* it moves on as it moved */
        float drift = threshold / ef->threshold;
        if (drift > 0.9f && drift < 1.0f) next = cg_times_(next, drift);
    }
    ef->hint = next;
    ef->threshold = threshold;
}
static cg_producer_ cg_ef_producer_(const cg_ef *ef, const cg_ef_step_ *st) {
    cg_producer_ fill = CG_ZERO;
    fill.user = st;
    fill.n = ef->desc.n;
    fill.step = CG_CHUNK_;
    fill.make = cg_ef_in_place_(&ef->desc) ? cg_ef_compensate_in_place_ : cg_ef_compensate_;
    fill.lazy = !cg_ef_in_place_(&ef->desc);
    if (ef->hint > 0.0f) fill.threshold_hint = cg_as_bits_(ef->hint);
    return fill;
}
