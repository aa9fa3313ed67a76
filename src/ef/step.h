/* step: from the gradient to p, the compensated gradient that is compressed

   Offers   cg_ef_step_ and its life: cg_ef_step_check_, cg_ef_step_begin_, then p by cg_ef_producer_ or by the passes
            cg_ef_compensate_ and cg_ef_residual_accumulate_, then cg_ef_record_energy_; cg_ef_step_why_ for a step
            that is refused; cg_ef_forget_last_, cg_ef_scale_vector_
   Needs    plan, omega, residual8; producers, passes, kernels of core
   Touches  the vectors of the state, and its scale, hint and stats; cg_ef_step_check_ only the stats
   g is the gradient, e the residual (vector[0]; of kinds with p = g - h the shift h, of kinds that keep
   nothing what was received, vector[2]), u the velocity (vector[1]). In
   kinds that work in place p is stored over e. The others make p chunk by chunk, as often as it is asked for, and
   e changes afterwards, by a pass of its own. */

typedef struct cg_ef_step_ {
    const cg_kernels_ *kernels;
    const cg_ef *ef;
    cg_op op;                 /* of this step */
    cg_resolved_ resolved;    /* what it resolves to */
    cg_extra side;            /* what the operator may know beside p */
    const float *g;           /* the gradient; of EF21 with momentum its running mean */
    const float *variance;    /* VARIANCE: n variances of this step's gradient, or NULL */
    float grad_scale;         /* g is multiplied by it: rate, norm clipping, 1 / (1 + w) */
    float clip_limit;         /* before that values of g are cut off at +-clip_limit; 0: they are not */
    float p_from_g, p_from_e; /* p = p_from_g g + p_from_e e */
    float e_from_g, e_from_e; /* then e = e_from_g g + e_from_e e, unless p takes its place */
    int may_overflow;         /* a sum may leave the float range: it is then set to the largest float */
    int whole_vector;         /* p must be materialized in ef->whole before it is compressed */
    float laq_range[2];       /* LAQ: its quantizer's range, -max|p| and max|p| */
} cg_ef_step_;

/* A pass over x by chunks; see cg_vector_pass_. Functions for passes have the signature of a producer's make. */
static double cg_ef_pass_(double (*make)(const void *, size_t, size_t, float *), const void *user, float *x, size_t n) {
    return cg_vector_pass_(make, user, x, n, CG_CHUNK_);
}
static double cg_ef_pass_energy_(const void *user, size_t first, size_t many, float *x) {
    (void)first;
    return cg_energy_(((const cg_ef_step_ *)user)->kernels, x, many);
}
/* Of a block: 1 if a magnitude reaches CG_EF_HUGE_, 1e100 if a value is not finite, else 0. */
static double cg_ef_pass_count_huge_(const void *user, size_t first, size_t many, float *x) {
    const uint32_t absmax_bits = CG_KERNEL_(((const cg_ef_step_ *)user)->kernels, absmax_bits(x, many));
    (void)first;
    return absmax_bits >= CG_INF_BITS_ ? 1e100 : absmax_bits >= cg_as_bits_(CG_EF_HUGE_) ? 1.0 : 0.0;
}
static void cg_ef_saturate_(const cg_ef_step_ *st, float *v, size_t many) {
    if (st->may_overflow)
        for (size_t i = 0; i < many; i++) cg_store_(v, i, cg_saturate_(cg_load_(v, i)));
}
/* The gradient's values cut off at +-clip_limit, in buf, which has room for `many`. */
static const float *cg_ef_clip_values_(const cg_ef_step_ *st, const float *g, size_t many, float *buf) {
    for (size_t i = 0; i < many; i++) {
        const float f = cg_load_(g, i);
        buf[i] = f > st->clip_limit ? st->clip_limit : f < -st->clip_limit ? -st->clip_limit : f;
    }
    return buf;
}
/* y = beta y + alpha x, saturated where sums may overflow; returns |y|^2. */
static double cg_ef_axpby_fading_(
    const cg_ef_step_ *st, const float *x, size_t many, float alpha, float beta, float *y) {
    if (!st->may_overflow) return cg_axpby_fading_energy_y_(st->kernels, x, many, alpha, beta, y);
    cg_axpby_fading_(st->kernels, x, many, alpha, beta, y);
    cg_ef_saturate_(st, y, many);
    return cg_energy_(st->kernels, y, many);
}
/* A function of its own, so that its buffer is on the stack only where values are clipped. */
CG_NOINLINE_ double cg_ef_compensate_chunk_clipped_(
    const cg_ef_step_ *st, size_t first, size_t many, const float *g, float *e) {
    float buf[CG_CHUNK_];
    return cg_ef_row_of_(&st->ef->desc)->compensate(st, first, many, cg_ef_clip_values_(st, g, many, buf), e);
}
/* make of kinds that work in place: out must be e itself from `first` on, and becomes p. Once per value and step. */
static double cg_ef_compensate_in_place_(const void *user, size_t first, size_t many, float *out) {
    const cg_ef_step_ *st = (const cg_ef_step_ *)user;
    const cg_ef_row_ *row = cg_ef_row_of_(&st->ef->desc);
    double energy = 0.0;
    for (size_t i = 0, some; i < many; i += some) {
        const float *g = cg_at_(st->g, first + i);
        some = cg_min_(CG_CHUNK_, many - i);
        energy += st->clip_limit != 0.0f ? cg_ef_compensate_chunk_clipped_(st, first + i, some, g, cg_at_mut_(out, i))
                                         : row->compensate(st, first + i, some, g, cg_at_mut_(out, i));
    }
    return energy;
}
/* make of the other kinds: out = p, and the state stays as it is, so that any stretch may be asked for at any time. */
CG_NOINLINE_ double cg_ef_compensate_(const void *user, size_t first, size_t many, float *out) {
    const cg_ef_step_ *st = (const cg_ef_step_ *)user;
    const cg_ef *ef = st->ef;
    const float *kept = ef->vector[0] ? ef->vector[0] : ef->vector[2];
    float buf[CG_CHUNK_];
    double energy = 0.0;
    for (size_t i = 0, some; i < many; i += some) {
        const float *g = cg_at_(st->g, first + i);
        float *p = cg_at_mut_(out, i);
        some = cg_min_(CG_CHUNK_, many - i);
        if (ef->bytes) cg_residual8_read_(ef, first + i, some, p);
        else if (kept && st->p_from_e != 0.0f) memcpy(p, cg_at_(kept, first + i), 4 * some);
        else memset(p, 0, 4 * some);
        if (st->clip_limit != 0.0f) g = cg_ef_clip_values_(st, g, some, buf);
        /* a shift does not fade, nor does what was received */
        if (cg_ef_has_trait_(&ef->desc, CG_EF_HAS_SHIFT_ | CG_EF_KEEPS_NOTHING_))
            CG_KERNEL_(st->kernels, axpby(g, some, st->p_from_g, st->p_from_e, p, 0));
        else cg_axpby_fading_(st->kernels, g, some, st->p_from_g, st->p_from_e, p);
        cg_ef_saturate_(st, p, some);
        energy += cg_energy_(st->kernels, p, some);
    }
    return energy;
}
/* The same for |p|^2 alone: p is made and thrown away. The pass needs some pointer, which is not looked at. */
CG_NOINLINE_ double cg_ef_compensated_energy_(const void *user, size_t first, size_t many, float *unused) {
    float p[CG_CHUNK_];
    double energy = 0.0;
    (void)unused;
    for (size_t i = 0, some; i < many; i += some) {
        some = cg_min_(CG_CHUNK_, many - i);
        energy += cg_ef_compensate_(user, first + i, some, p);
    }
    return energy;
}
/* max|p| */
static float cg_ef_compensated_absmax_(const cg_ef_step_ *st, size_t n) {
    float p[CG_CHUNK_];
    uint32_t absmax_bits = 0;
    for (size_t i = 0; i < n; i += CG_CHUNK_) {
        cg_ef_compensate_(st, i, cg_min_(CG_CHUNK_, n - i), p);
        absmax_bits = cg_max32_(absmax_bits, CG_KERNEL_(st->kernels, absmax_bits(p, cg_min_(CG_CHUNK_, n - i))));
    }
    return cg_as_float_(absmax_bits);
}
/* Pass of kinds that do not work in place, once a step, when p is not needed any more: e = e_from_g g + e_from_e e. An
   8-bit residual is written in ef->bytes, and the argument e not looked at. */
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
/* Pass of EF21 with momentum: v = momentum v + (1 - momentum) g, a running mean of gradients that begins with the
   first one. */
static double cg_ef_grad_running_mean_(const void *user, size_t first, size_t many, float *v) {
    const cg_ef_step_ *st = (const cg_ef_step_ *)user;
    const float m = st->ef->steps ? st->ef->desc.momentum : 0.0f;
    float buf[64];
    for (size_t i = 0, some; i < many; i += some) {
        const float *g = cg_at_(st->g, first + i);
        some = cg_min_(64, many - i);
        if (st->clip_limit != 0.0f) g = cg_ef_clip_values_(st, g, some, buf);
        cg_axpby_fading_(st->kernels, g, some, cg_times_(st->grad_scale, 1.0f - m), m, cg_at_mut_(v, i));
        cg_ef_saturate_(st, cg_at_mut_(v, i), some);
    }
    return 0.0;
}
/* What passes over the residual get as their vector: its floats, or of an 8-bit residual a pointer that they must not
   look at. */
static float *cg_ef_pass_vector_(const cg_ef *ef) { return ef->vector[0] ? ef->vector[0] : (float *)(void *)ef->bytes; }
typedef struct cg_ef_factor_ctx_ {
    const cg_kernels_ *kernels;
    const cg_ef *ef; /* in cg_ef_scale_chunk_ NULL, unless the vector is the residual */
    float factor;
} cg_ef_factor_ctx_;
/* Pass: e = factor e, which fades below 2^-100 unless factor is 1. */
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
/* Multiplies vector[which], if there is one, by factor; which 0: the residual, as floats or in 8 bits. */
static void cg_ef_scale_vector_(cg_ef *ef, int which, float factor) {
    cg_ef_factor_ctx_ b;
    b.kernels = cg_kernels_now_();
    b.ef = which ? NULL : ef;
    b.factor = factor;
    if (which ? ef->vector[which] != NULL : 1)
        cg_ef_pass_(cg_ef_scale_chunk_, &b, which ? ef->vector[which] : cg_ef_pass_vector_(ef), ef->desc.n);
}
/* The factor by which a contribution D enters the shift h and the received H, or a mean of them the base. */
static float cg_ef_shift_rate_(const cg_ef_desc *d, const cg_ef_step_ *st) {
    if (cg_ef_has_trait_(d, CG_EF_TAKES_MODELS_) && d->lambda == CG_LAMBDA_SQRT)
        return (float)cg_sqrt_(d->workers > 1 ? (double)d->workers : 1.0);
    if (cg_ef_has_trait_(d, CG_EF_TAKES_MODELS_)) return d->lambda != 0.0f ? d->lambda : 1.0f;
    if (!cg_ef_has_trait_(d, CG_EF_SHIFTS_BY_ALPHA_)) return 1.0f;
    return d->alpha != 0.0f ? d->alpha : (float)(1.0 / (1.0 + cg_omega_(&st->op, &st->resolved)));
}
/* p_from_g and the other three; scale: the operator's 1 / (1 + w). */
static void cg_ef_set_coefficients_(cg_ef_step_ *st, float scale) {
    const cg_ef_desc *d = &st->ef->desc;
    const cg_ef_row_ *row = cg_ef_row_of_(d);
    const float decay = cg_ef_decay_(d);
    st->p_from_g = st->grad_scale;
    st->p_from_e = 1.0f;
    st->e_from_g = cg_times_(row->sent(decay), st->grad_scale);
    st->e_from_e = 1.0f;
    if (row->coefficients) row->coefficients(st, decay);
    /* h itself is not divided by 1 + w, the difference is */
    if (row->traits & CG_EF_HAS_SHIFT_) {
        st->p_from_g = cg_times_(st->grad_scale, scale);
        st->p_from_e = -scale;
        st->e_from_g = 0.0f;
    }
}
/* The factor by which a contribution D is subtracted from e at commit; negative where it is added to a shift. */
static float cg_ef_subtract_factor_(const cg_ef *ef) {
    const cg_ef_row_ *row = cg_ef_row_of_(&ef->desc);
    return row->traits & CG_EF_HAS_SHIFT_ ? -ef->received_by : cg_times_(row->sent(cg_ef_decay_(&ef->desc)), ef->scale);
}
/* 1 / (1 + w) in what the velocity is stored with. */
static double cg_ef_velocity_scale_(const cg_ef_desc *d, double scale) {
    const int power = cg_ef_row_of_(d)->velocity_power;
    return power == 2 ? scale * scale : power == 1 ? scale : 1.0;
}
/* The norm or the magnitude at which gradients are clipped; 0: they are not. */
static double cg_ef_clip_at_(const cg_ef_desc *d) {
    return (double)d->clip / cg_sqrt_(d->workers > 1 ? (double)d->workers : 1.0);
}
/* A step is tried: what is told of the last one would mislead about this one, should it be refused. While a step is
   pending, that is the last one. */
static void cg_ef_forget_last_(cg_ef *ef) {
    if (cg_ef_is_unready_(ef)) return;
    memset(&ef->stats, 0, sizeof ef->stats);
    ef->stats.clipped = 1.0f;
    ef->may_withdraw = 0;
}
/* Finds everything that can be wrong with a step before a vector changes, and prepares *st. want_norm: *grad_energy
   becomes |grad|^2, which is 0 otherwise unless clipping needs it. cg_ef_forget_last_ must have been
   called; the stats get the clipping. */
static cg_status cg_ef_step_check_(cg_ef *ef, const cg_tag *tag, const cg_extra *side, const float *grad, int want_norm,
    cg_ef_step_ *st, double *grad_energy) {
    const cg_ef_desc *d = &ef->desc;
    double huge = 0.0; /* how many blocks have huge values; 1e100 or more: some value is not finite */
    float clip = 1.0f;
    cg_ef_needs_ needs;
    cg_status s;
    memset(st, 0, sizeof *st);
    memset(&needs, 0, sizeof needs);
    *grad_energy = 0.0;
    st->op = cg_ef_op_(ef, tag);
    if (cg_ef_is_unready_(ef)) return CG_E_STATE;
    if (!grad && d->n) return CG_E_ARG;
    st->kernels = cg_kernels_now_();
    st->ef = ef;
    if (side) st->side = *side;
    st->side.segments = cg_ef_segments_(d, &st->op, side);
    st->g = grad;
    s = cg_ef_needs_of_op_(d, st->op, &st->side, &needs, &st->resolved);
    if (s != CG_OK) return s;
    if (needs.scratch_bytes > ef->scratch_bytes || (needs.whole_vector && !ef->whole) ||
        needs.warm_count > ef->warm_count)
        return CG_E_MEMORY; /* an operator of the policy's that init did not see */
    st->whole_vector = needs.whole_vector;
    if (cg_ef_has_trait_(d, CG_EF_TAKES_VARIANCE_)) {
        if (!st->side.aux && d->n) return CG_E_ARG;
        st->variance = st->side.aux;
        /* the caller gives the variance of this gradient, the operator sees that of p */
        st->side.aux = st->resolved.plan.traits & CG_AUX_IS_VARIANCE_ ? ef->vector[1] : NULL;
        if (d->n &&
            cg_vector_pass_(cg_ef_pass_count_huge_, st, (float *)(uintptr_t)st->variance, d->n, CG_BLOCK_) > 0.0)
            return CG_E_NONFINITE;
    } else if (st->resolved.plan.traits & CG_NEEDS_AUX_ && !st->side.aux) st->side.aux = grad;
    s = cg_extra_check_(&st->op, &st->side);
    if (s != CG_OK) return s;
    st->resolved.extra_status = CG_OK; /* aux may have been given since */
    /* one pass for norm and finite check: squares of floats do not overflow a double */
    if (want_norm || (d->clip != 0.0f && d->clip_by == CG_CLIP_NORM)) {
        *grad_energy = cg_ef_pass_(cg_ef_pass_energy_, st, (float *)(uintptr_t)grad, d->n);
        huge = !cg_is_finite64_(*grad_energy) ? 1e100 : cg_sqrt_(*grad_energy) >= (double)CG_EF_HUGE_ ? 1.0 : 0.0;
    } else if (!d->finite) {
        huge = cg_vector_pass_(cg_ef_pass_count_huge_, st, (float *)(uintptr_t)grad, d->n, CG_BLOCK_);
    }
    if (huge >= 1e100) return CG_E_NONFINITE;
    if (d->clip != 0.0f) {
        const double limit = cg_ef_clip_at_(d), grad_norm = cg_sqrt_(*grad_energy);
        if (d->clip_by == CG_CLIP_VALUE) st->clip_limit = (float)limit;
        else if (grad_norm > limit) clip = (float)(limit / grad_norm);
    }
    ef->stats.clipped = clip;
    st->grad_scale = cg_times_(d->rate != 0.0f ? d->rate : 1.0f, clip);
    st->may_overflow = huge > 0.0 || ef->reach >= (double)CG_EF_HUGE_ ||
        (cg_as_bits_(st->grad_scale) & CG_ABS_MASK_) > cg_as_bits_(4.0f);
    return CG_OK;
}
/* Begins a step that cg_ef_step_check_ found good: vectors are brought to this operator's scale, EF21 with momentum
   takes the gradient into its running mean, and *st gets its coefficients. From here on the step must end in a commit
   or a rollback, unless nothing was put into the state yet. */
static void cg_ef_step_begin_(cg_ef *ef, cg_ef_step_ *st) {
    const cg_ef_desc *d = &ef->desc;
    const float scale = cg_ef_scale_(d, &st->op, &st->resolved);
    if (!cg_ef_has_trait_(d, CG_EF_HAS_SHIFT_) && scale != ef->scale) {
        /* a state that was loaded may say anything above 0 */
        cg_ef_scale_vector_(ef, 0, cg_saturate64_((double)scale / (double)ef->scale));
        if (cg_ef_row_of_(d)->velocity_power)
            cg_ef_scale_vector_(ef, 1,
                cg_saturate64_(cg_ef_velocity_scale_(d, (double)scale) / cg_ef_velocity_scale_(d, (double)ef->scale)));
    }
    ef->scale = scale;
    ef->received_by = cg_ef_shift_rate_(d, st);
    if (!cg_ef_has_trait_(d, CG_EF_HAS_SHIFT_)) st->grad_scale = cg_times_(st->grad_scale, scale);
    ef->given_by = st->grad_scale;
    if (cg_ef_has_trait_(d, CG_EF_AVERAGES_GRADIENTS_) && ef->vector[1]) {
        cg_ef_pass_(cg_ef_grad_running_mean_, st, ef->vector[1], d->n);
        st->g = ef->vector[1];
        st->grad_scale = 1.0f;
        st->clip_limit = 0.0f;
    }
    cg_ef_delay_gradient_(ef, st->g, st->grad_scale);
    cg_ef_set_coefficients_(st, scale);
}
/* p has been made, with |p|^2 = energy: the gradient is in the state, or will be. */
static void cg_ef_record_energy_(cg_ef *ef, double energy) {
    const double norm = cg_sqrt_(energy);
    /* in place, e is p, and u the difference of p and what was left of the last p */
    ef->reach = (cg_ef_in_place_(&ef->desc) ? ef->size : ef->reach) + norm;
    ef->size = norm;
    ef->stats.put = energy / ((double)ef->scale * (double)ef->scale);
    ef->stats.kept = 1;
}
/* After a top-k of p whose k-th magnitude was `threshold`: ef->hint becomes a magnitude that about 5/4 k values should
   reach in the next step, so that one filter pass finds them all. Other operators leave the hint as it is. */
static void cg_ef_update_hint_(cg_ef *ef, const cg_ef_step_ *st, const cg_producer_ *fill, float threshold) {
    const size_t k = (size_t)st->resolved.plan.max_selected;
    const float last_hint = cg_as_float_(fill->threshold_hint);
    float next_hint = cg_times_(threshold, 0.97f);
    if (!(st->resolved.plan.traits & CG_TAKES_PRODUCER_) || st->op.sample.id || st->op.transform.id) return;
    /* magnitudes between hint and threshold are taken to lie evenly */
    if (fill->threshold_hint && fill->reached_hint > k && last_hint < threshold)
        next_hint = cg_plus_(threshold,
            -cg_times_(cg_plus_(threshold, -last_hint), (float)(0.25 * (double)k / (double)(fill->reached_hint - k))));
    if (next_hint < cg_times_(threshold, 0.8f)) next_hint = cg_times_(threshold, 0.8f);
    if (ef->threshold > 0.0f) { /* a threshold that falls is expected to fall as much again */
        float drift = threshold / ef->threshold;
        if (drift > 0.9f && drift < 1.0f) next_hint = cg_times_(next_hint, drift);
    }
    ef->hint = next_hint;
    ef->threshold = threshold;
}
/* What makes p for a compressor. It refers to *st, which must live as long. */
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
/* Bytes of a state that could take op, too. */
static uint64_t cg_ef_memory_with_op_(const cg_ef_desc *d, const cg_op *op) {
    cg_ef_needs_ needs;
    cg_resolved_ r;
    cg_ef measured;
    if (cg_ef_check_(d, &needs) != CG_OK || cg_ef_needs_of_op_(d, *op, NULL, &needs, &r) != CG_OK) return 0;
    return cg_add_sat_(cg_ef_plan_(&measured, d, &needs, NULL), 64);
}
/* Says in the report why cg_ef_step_check_ has returned s, and returns it. op: of the step. */
static cg_status cg_ef_step_why_(cg_ef *ef, cg_status s, const cg_extra *side, const float *grad, const cg_op *op) {
    const cg_ef_desc *d = &ef->desc;
    const float *aux = side ? side->aux : NULL;
    cg_resolved_ r;
    uint64_t at;
    if (cg_ef_is_unready_(ef)) return cg_ef_fail_(ef, s, cg_ef_unready_why_(ef), 0, CG_NO_INDEX);
    if (!grad) return cg_ef_fail_(ef, s, "grad is NULL", 0, CG_NO_INDEX);
    if (s == CG_E_MEMORY)
        return cg_ef_fail_(ef, s,
            "the mem of cg_ef_init is too small for the operator that desc.policy chose: name it in a rule, too",
            cg_ef_memory_with_op_(d, op), CG_NO_INDEX);
    if (s == CG_E_NONFINITE) {
        at = cg_first_nonfinite_(grad, d->n);
        if (at != CG_NO_INDEX || !aux) return cg_ef_fail_(ef, s, cg_status_str(s), 0, at);
        return cg_ef_fail_(
            ef, s, "a variance in side->aux is NaN, Inf or above 1e37", 0, cg_first_nonfinite_(aux, d->n));
    }
    if (s == CG_E_ARG && cg_ef_has_trait_(d, CG_EF_TAKES_VARIANCE_) && !aux)
        return cg_ef_fail_(ef, s, "VARIANCE needs the variances of this step in side->aux", 0, CG_NO_INDEX);
    if ((s == CG_E_ARG || s == CG_E_VERSION) && cg_ef_op_why_(ef, op, d->n)) return s;
    if (s == CG_E_UNSUPPORTED && cg_resolve_(op, side, d->n, &r) == CG_OK && cg_ef_biased_why_(d, &r))
        return cg_ef_fail_(ef, s, cg_ef_biased_why_(d, &r), 0, CG_NO_INDEX);
    if (s == CG_E_UNSUPPORTED)
        return cg_ef_fail_(ef, s,
            "side has an aux, a support or scales that the operator of this step has no use for, or the operator does "
            "not go with the kind",
            0, CG_NO_INDEX);
    return cg_ef_fail_(ef, s, cg_status_str(s), 0, CG_NO_INDEX);
}
