/* plan: checks a description, and lays out the memory of its state

   Offers   cg_ef_check_, cg_ef_needs_of_op_, cg_ef_needs_; the public init, reset, sizes and simple queries
   Needs    kinds, schedule; resolve of core; the arena of exchange
   Touches  the state and the memory it is given
   The caller's memory holds, each from a multiple of 64 bytes on: residual (floats, or codes and scales), velocity,
   received, warm, carry, whole, scratch. */

/* Must a stage see all of p at once, where the operator has no scratch to hold it? */
static int cg_ef_needs_whole_vector_(const cg_op *op, uint32_t traits) {
    if (traits & CG_IS_MATRIX_) return 1;
    return !op->sample.id && !op->transform.id &&
        (op->select.id ? !(traits & CG_TAKES_PRODUCER_) : traits & CG_IS_USER_CODEC_);
}
/* Why a kind without a memory refuses an operator that resolves to r, or NULL. */
static const char *cg_ef_biased_why_(const cg_ef_desc *d, const cg_resolved_ *r) {
    if (!cg_ef_has_trait_(d, CG_EF_UNBIASED_ONLY_) || d->biased || r->is_unbiased || r->is_nearly_unbiased) return NULL;
    return "this kind keeps no residual, so that what a biased operator drops or rounds away is lost for good: take an "
           "unbiased one, as rate:0.1:unbiased, wangni:0.01|efsign|golomb, randk:0.03:private|eden:1 or absmax:4:512";
}
/* What else of a description does not go with its kind, as a sentence, or NULL. */
static const char *cg_ef_kind_why_(const cg_ef_desc *d) {
    if (cg_ef_has_trait_(d, CG_EF_NEEDS_MOMENTUM_) && d->momentum == 0.0f)
        return "this kind needs desc.momentum, the momentum of your optimizer: without one take CG_EF_NONE";
    if (cg_ef_has_trait_(d, CG_EF_NEEDS_MOMENTUM_) && d->nesterov)
        return "Nesterov momentum amplifies the noise of this kind: leave desc.nesterov 0 and give your optimizer "
               "plain "
               "momentum";
    if (cg_ef_has_trait_(d, CG_EF_TAKES_MODELS_) && (d->clip != 0.0f || (d->rate != 0.0f && d->rate != 1.0f)))
        return "this kind takes models, which are not clipped or scaled: do that to the gradient, before the optimizer";
    if (d->lambda != 0.0f && !cg_ef_has_trait_(d, CG_EF_TAKES_MODELS_)) return "desc.lambda is for CG_EF_DIFFERENCE";
    if (d->biased && (!cg_ef_has_trait_(d, CG_EF_UNBIASED_ONLY_) || cg_ef_has_trait_(d, CG_EF_KEEPS_RECEIVED_)))
        return "desc.biased is for CG_EF_NONE";
    if (d->carry && cg_ef_has_trait_(d, CG_EF_UNBIASED_ONLY_))
        return "this kind keeps nothing back, and has no carry: take an unbiased operator for the second leg";
    return NULL;
}
/* The segments of a step by op: none if it is dense, unless desc.op is. */
static const cg_segments *cg_ef_segments_(const cg_ef_desc *d, const cg_op *op, const cg_extra *side) {
    const cg_op dense = cg_dense();
    if (side && side->segments) return side->segments;
    return cg_same_op_(op, &dense) && !cg_same_op_(&d->op, &dense) ? NULL : d->segments;
}
/* The most that any operator of a description needs. */
typedef struct cg_ef_needs_ {
    uint64_t scratch_bytes, packet_bytes; /* packet_bytes: 1 for a codec of the user's, whose bound is not known here */
    size_t warm_count;                    /* floats of a low-rank operator's right factor */
    int whole_vector;                     /* p is stored nowhere, and must be in ef->whole to be compressed */
} cg_ef_needs_;
/* Raises *needs to what op needs. CG_E_ARG: op is illegal or too large. CG_E_VERSION: this build was made without it.
   CG_E_UNSUPPORTED: it does not go with the kind, the clipping or the rate. *needs is changed only on success. *r
   becomes what op resolves to, with the codecs of side. */
static cg_status cg_ef_needs_of_op_(
    const cg_ef_desc *d, cg_op op, const cg_extra *side, cg_ef_needs_ *needs, cg_resolved_ *r) {
    const cg_op dense = cg_dense();
    cg_extra with = CG_ZERO;
    uint32_t traits;
    uint64_t packet_bytes;
    int takes_variance;
    cg_status s;
    if (side) with = *side;
    with.segments = cg_ef_segments_(d, &op, side);
    s = cg_resolve_(&op, &with, d->n, r);
    if (s != CG_OK) return CG_MAY_LEAVE_OUT_ && s == CG_E_VERSION ? s : CG_E_ARG; /* left out of this build */
    traits = r->plan.traits;
    takes_variance = (traits & CG_AUX_IS_VARIANCE_) != 0;
    packet_bytes = traits & CG_IS_USER_CODEC_ ? 1 : r->bound;
    if (!packet_bytes) return CG_E_ARG;
    /* aux is the gradient, and p must be a sum of such */
    if (traits & CG_NEEDS_AUX_ && !takes_variance && (d->clip != 0.0f || (d->rate != 0.0f && d->rate != 1.0f)))
        return CG_E_UNSUPPORTED;
    if (takes_variance != cg_ef_has_trait_(d, CG_EF_TAKES_VARIANCE_) && !cg_same_op_(&op, &dense))
        return CG_E_UNSUPPORTED;
    if (cg_ef_biased_why_(d, r)) return CG_E_UNSUPPORTED;
    if (r->scratch_bytes > needs->scratch_bytes) needs->scratch_bytes = r->scratch_bytes;
    if (packet_bytes > needs->packet_bytes) needs->packet_bytes = packet_bytes;
    if ((r->segments_hash || cg_ef_needs_whole_vector_(&op, traits)) && !cg_ef_in_place_(d)) needs->whole_vector = 1;
    if (traits & CG_IS_LINEAR_MATRIX_ && r->cols * r->r > needs->warm_count) needs->warm_count = r->cols * r->r;
    return CG_OK;
}
/* The same for an operator at all ratios that the warm-up gives it. */
static cg_status cg_ef_needs_of_schedule_(const cg_ef_desc *d, const cg_op *op, cg_ef_needs_ *needs) {
    cg_resolved_ r;
    cg_status s = cg_ef_needs_of_op_(d, *op, NULL, needs, &r);
    for (uint32_t i = 0; i < d->warmup.stages && s == CG_OK && d->warmup.kind; i++)
        s = cg_ef_needs_of_op_(
            d, cg_ef_warmup_op_(d, *op, i * (d->warmup.period ? d->warmup.period : 1)), NULL, needs, &r);
    return s;
}
static int cg_ef_is_fraction_(float f) { return f >= 0.0f && f <= 1.0f; }
/* Checks everything in a description, which may be NULL, but what only a policy can tell; fills *needs in. */
static cg_status cg_ef_check_(const cg_ef_desc *d, cg_ef_needs_ *needs) {
    cg_resolved_ r;
    cg_status s;
    memset(needs, 0, sizeof *needs);
    if (!d || !d->n || !cg_ef_row_at_(d->kind) || d->workers < 0 || d->clip_by > CG_CLIP_VALUE ||
        d->warmup.kind > CG_WARMUP_TABLE || !CG_RESERVE_IS_ZERO_(d->reserved))
        return CG_E_ARG;
    if (!cg_ef_is_fraction_(d->momentum) || d->momentum == 1.0f || !cg_ef_is_fraction_(d->decay) ||
        !cg_ef_is_fraction_(d->alpha))
        return CG_E_ARG;
    if (!(d->clip >= 0.0f && d->clip <= CG_FLT_MAX_) || !cg_is_finite_(d->rate) ||
        !(d->laq_step >= 0.0f && d->laq_step <= CG_FLT_MAX_))
        return CG_E_ARG;
    if (!(d->laq_weight >= 0.0f && d->laq_weight <= CG_FLT_MAX_)) return CG_E_ARG;
    if ((d->rule_count && !d->rules) || d->warmup.stages > CG_EF_MAX_STAGES_) return CG_E_ARG;
    if (d->warmup.kind == CG_WARMUP_TABLE && d->warmup.stages && !d->warmup.table) return CG_E_ARG;
    if (d->momentum != 0.0f && !cg_ef_has_trait_(d, CG_EF_TAKES_MOMENTUM_)) return CG_E_UNSUPPORTED;
    if (!(d->lambda >= 0.0f && d->lambda <= CG_FLT_MAX_) && d->lambda != CG_LAMBDA_SQRT) return CG_E_ARG;
    if (cg_ef_kind_why_(d)) return CG_E_UNSUPPORTED;
    if ((d->nesterov && !cg_ef_has_trait_(d, CG_EF_TAKES_NESTEROV_)) ||
        (d->bytes && !cg_ef_has_trait_(d, CG_EF_ALLOWS_8BIT_)))
        return CG_E_UNSUPPORTED;
    /* a shift or a momentum is no residual that could be forgotten */
    if (d->reset && cg_ef_has_trait_(d, CG_EF_HAS_NO_RESIDUAL_)) return CG_E_UNSUPPORTED;
    if (cg_ef_has_trait_(d, CG_EF_MAY_BE_SILENT_) && d->laq_step == 0.0f) return CG_E_ARG;
    s = cg_ef_needs_of_schedule_(d, &d->op, needs);
    for (size_t i = 0; i < d->rule_count && s == CG_OK; i++) s = cg_ef_needs_of_schedule_(d, &d->rules[i].op, needs);
    if (s == CG_OK && (d->dense_steps || d->n < d->small || cg_ef_has_trait_(d, CG_EF_TAKES_MODELS_)))
        s = cg_ef_needs_of_op_(d, cg_dense(), NULL, needs, &r);
    return s;
}
/* Sets the pointers of ef into the memory from base on (a multiple of 64, or NULL to measure). Returns the bytes
   needed; the number saturates and does not wrap around. */
static uint64_t cg_ef_plan_(cg_ef *ef, const cg_ef_desc *d, const cg_ef_needs_ *needs, uint8_t *base) {
    const uint64_t vector = cg_mul_sat_(4, d->n);
    cg_arena_ arena;
    arena.base = base;
    arena.bytes = 0;
    ef->vector[0] =
        d->bytes || cg_ef_has_trait_(d, CG_EF_KEEPS_NOTHING_) ? NULL : (float *)(void *)cg_arena_take_(&arena, vector);
    ef->bytes = d->bytes ? cg_arena_take_(&arena,
                               cg_add_sat_(d->n, cg_mul_sat_(2, cg_add_sat_(d->n, CG_EF_BUCKET_ - 1) / CG_EF_BUCKET_)))
                         : NULL;
    ef->vector[1] = cg_ef_has_velocity_(d) ? (float *)(void *)cg_arena_take_(&arena, vector) : NULL;
    ef->vector[2] = cg_ef_has_trait_(d, CG_EF_KEEPS_RECEIVED_) ? (float *)(void *)cg_arena_take_(&arena, vector) : NULL;
    ef->warm = needs->warm_count ? (float *)(void *)cg_arena_take_(&arena, cg_mul_sat_(4, needs->warm_count)) : NULL;
    ef->carry = d->carry ? (float *)(void *)cg_arena_take_(&arena, cg_mul_sat_(4, d->carry)) : NULL;
    ef->second = cg_ef_delay_count_(d) ? (float *)(void *)cg_arena_take_(&arena, cg_mul_sat_(4, cg_ef_delay_count_(d)))
                                       : NULL;
    ef->whole = needs->whole_vector ? (float *)(void *)cg_arena_take_(&arena, vector) : NULL;
    ef->scratch = needs->scratch_bytes ? cg_arena_take_(&arena, needs->scratch_bytes) : NULL;
    ef->warm_count = needs->warm_count;
    ef->scratch_bytes = cg_size_or_zero_(needs->scratch_bytes);
    return arena.bytes;
}
CG_API_ size_t cg_ef_memory(const cg_ef_desc *desc) {
    const cg_fenv_ env = cg_fenv_enter_();
    cg_ef_needs_ needs;
    cg_ef ef;
    size_t bytes = 0;
    if (cg_ef_check_(desc, &needs) == CG_OK)
        bytes = cg_size_or_zero_(cg_add_sat_(cg_ef_plan_(&ef, desc, &needs, NULL), 64));
    cg_fenv_leave_(env);
    return bytes;
}
CG_API_ size_t cg_ef_bound(const cg_ef_desc *desc) {
    const cg_fenv_ env = cg_fenv_enter_();
    cg_ef_needs_ needs;
    const size_t bytes = cg_ef_check_(desc, &needs) == CG_OK ? cg_size_or_zero_(needs.packet_bytes) : 0;
    cg_fenv_leave_(env);
    return bytes;
}
CG_API_ void cg_ef_reset(cg_ef *ef) {
    const size_t n = ef->desc.n;
    for (int i = 0; i < 3; i++)
        if (ef->vector[i]) memset(ef->vector[i], 0, 4 * n);
    if (ef->bytes) memset(ef->bytes, 0, n + 2 * ((n + CG_EF_BUCKET_ - 1) / CG_EF_BUCKET_));
    if (ef->warm) memset(ef->warm, 0, 4 * ef->warm_count);
    if (ef->carry) memset(ef->carry, 0, 4 * ef->desc.carry);
    cg_ef_delay_forget_(ef);
    memset(&ef->stats, 0, sizeof ef->stats);
    memset(ef->moved, 0, sizeof ef->moved);
    ef->steps = ef->silent = ef->moves = 0;
    ef->pending = 0;
    ef->scale = 1.0f;
    ef->hint = ef->threshold = 0.0f;
    ef->reach = ef->size = ef->error = ef->error_sent = ef->score = 0.0;
    ef->carry_first = 0;
    ef->mark = 0;
    ef->may_withdraw = 0;
}
/* Why the kind refuses the operator, or that of a rule; NULL: it does not. */
static const char *cg_ef_refuses_op_(const cg_ef_desc *d) {
    cg_resolved_ r;
    const char *why = cg_resolve_(&d->op, NULL, d->n, &r) == CG_OK ? cg_ef_biased_why_(d, &r) : NULL;
    for (size_t i = 0; !why && i < d->rule_count; i++)
        if (cg_resolve_(&d->rules[i].op, NULL, d->n, &r) == CG_OK) why = cg_ef_biased_why_(d, &r);
    return why;
}
/* *ef becomes zero but for its report. need: the bytes of the state, if s is CG_E_MEMORY. */
static void cg_ef_init_refused_(cg_ef *ef, const cg_ef_desc *d, cg_status s, uint64_t need) {
    memset(ef, 0, sizeof *ef);
    cg_ef_fail_(ef, s, "a field of desc is out of range: see cg_ef_desc", 0, CG_NO_INDEX);
    if (s == CG_E_MEMORY)
        cg_ef_fail_(ef, s, "mem is too small: cg_ef_memory gives its bytes", cg_add_sat_(need, 64), CG_NO_INDEX);
    if (s == CG_E_UNSUPPORTED && (cg_ef_kind_why_(d) || cg_ef_refuses_op_(d))) {
        cg_ef_fail_(ef, s, cg_ef_kind_why_(d) ? cg_ef_kind_why_(d) : cg_ef_refuses_op_(d), 0, CG_NO_INDEX);
        return;
    }
    if (s == CG_E_UNSUPPORTED)
        cg_ef_fail_(ef, s, "desc has a field or an operator that this kind cannot use: see cg_ef_desc", 0, CG_NO_INDEX);
    if (s != CG_E_ARG && s != CG_E_VERSION) return;
    if (!d) ef->report.why = "desc is NULL";
    else if (!CG_RESERVE_IS_ZERO_(d->reserved)) ef->report.why = "desc.reserved must be 0: start from CG_ZERO";
    else if (!d->n) ef->report.why = "desc.n is 0: it is the number of values in every gradient";
    else if (!cg_ef_op_why_(ef, &d->op, d->n))
        for (size_t i = 0; d->rules && i < d->rule_count; i++)
            if (cg_ef_op_why_(ef, &d->rules[i].op, d->n)) return;
}
CG_API_ cg_status cg_ef_init(cg_ef *ef, const cg_ef_desc *desc, void *mem, size_t bytes) {
    const cg_fenv_ env = cg_fenv_enter_();
    const size_t align_pad = mem ? (64 - ((uintptr_t)mem & 63)) % 64 : 0;
    cg_ef_needs_ needs;
    uint64_t need = 0;
    cg_status s = !ef ? CG_E_ARG : cg_ef_check_(desc, &needs);
    if (s == CG_OK) {
        memset(ef, 0, sizeof *ef);
        need = cg_ef_plan_(ef, desc, &needs, NULL);
        if (need > SIZE_MAX / 2) s = CG_E_ARG;
        else if (need && (!mem || bytes < align_pad || bytes - align_pad < need)) s = CG_E_MEMORY;
    }
    if (ef && s != CG_OK) cg_ef_init_refused_(ef, desc, s, need);
    if (s == CG_OK) {
        ef->desc = *desc;
        ef->segments.segments = desc->segments;
        /* vectors of no values need a pointer that is not NULL: it is never followed */
        cg_ef_plan_(ef, desc, &needs, need ? (uint8_t *)mem + align_pad : (uint8_t *)ef->moved);
        cg_ef_reset(ef);
        s = cg_ef_done_(ef);
    }
    cg_fenv_leave_(env);
    return s;
}
CG_API_ float cg_ef_scale(const cg_ef *ef) { return ef->scale; }
CG_API_ cg_ef_stats cg_ef_stats_of(const cg_ef *ef) { return ef->stats; }
CG_API_ cg_ef_stats cg_ef_last(const cg_ef *ef) { return cg_ef_stats_of(ef); }
CG_API_ const float *cg_ef_residual(const cg_ef *ef) { return ef->vector[0]; }
CG_API_ cg_op cg_ef_op(const cg_ef *ef, const cg_tag *tag) {
    const cg_fenv_ env = cg_fenv_enter_();
    const cg_op op = cg_ef_op_(ef, tag);
    cg_fenv_leave_(env);
    return op;
}
