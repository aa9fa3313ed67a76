/* ---- >>schedule: the operator of a step ---- */

/* e^x, x <= 0: halved until the series is short, then squared back. */
static double cg_exp_(double x) {
    double sum = 1.0, term = 1.0;
    int halves = 0;
    if (x < -700.0) return 0.0;
    for (; x < -0.5; x *= 0.5) halves++;
    for (int i = 1; i <= 18; i++) {
        term *= x / (double)i;
        CG_NO_FMA_(term);
        sum += term;
    }
    for (; halves > 0; halves--) sum *= sum;
    return sum;
}
static float cg_warmup_ratio_(const cg_warmup *w, float ratio, uint64_t step) {
    const uint64_t stage = step / (w->period ? w->period : 1);
    double part, quarter = 1.0;
    if (w->kind == CG_WARMUP_NONE || stage >= w->stages || !(ratio > 0.0f)) return ratio;
    part = (double)(stage + 1) / ((double)w->stages + 1.0);
    switch (w->kind) {
    case CG_WARMUP_POWER: return (float)cg_exp_(part * cg_ln_((double)ratio));
    case CG_WARMUP_QUARTERS:
        for (uint64_t i = 0; i <= stage && quarter > (double)ratio; i++) quarter *= 0.25;
        return quarter > (double)ratio ? (float)quarter : ratio;
    case CG_WARMUP_LINEAR: return (float)(1.0 - cg_times64_(part, 1.0 - (double)ratio));
    default: return w->table[stage];
    }
}
CG_API_ float cg_warmup_ratio(const cg_warmup *warmup, float ratio, uint64_t step) {
    const cg_fenv_ env = cg_fenv_enter_();
    const float r =
        !warmup || (warmup->kind == CG_WARMUP_TABLE && !warmup->table) ? ratio : cg_warmup_ratio_(warmup, ratio, step);
    cg_fenv_leave_(env);
    return r;
}
/* The stage whose value is the ratio kept, or NULL. */
static cg_stage *cg_op_ratio_stage_(cg_op *op) {
    switch (op->select.id) {
    case CG_SELECT_TOPK:
    case CG_SELECT_DGC:
    case CG_SELECT_MSTOPK:
    case CG_SELECT_SIDCO:
    case CG_SELECT_WANGNI:
    case CG_SELECT_SIDES:
    case CG_SELECT_SIDE:
    case CG_SELECT_CHUNKED: return &op->select;
    default: return op->sample.id == CG_SAMPLE_RANDK ? &op->sample : NULL;
    }
}
static void cg_op_set_ratio_(cg_op *op, float ratio) {
    cg_stage *s = cg_op_ratio_stage_(op);
    if (!s) return;
    s->value = ratio;
    op->k = 0;
}
static float cg_op_effective_ratio_(const cg_op *op, size_t n) {
    cg_op copy = *op;
    const cg_stage *s = cg_op_ratio_stage_(&copy);
    return !s ? 1.0f : op->k && n ? (float)((double)(op->k < n ? op->k : n) / (double)n) : s->value;
}
static cg_op cg_ef_warmup_op_(const cg_ef_desc *d, cg_op op, uint64_t step) {
    const float before = cg_op_effective_ratio_(&op, d->n), after = cg_warmup_ratio_(&d->warmup, before, step);
    if (after != before) cg_op_set_ratio_(&op, after);
    return op;
}
static cg_op cg_ef_op_(const cg_ef_desc *d, const cg_tag *tag) {
    const cg_tag none = CG_ZERO;
    cg_op op = d->op;
    if (!tag) tag = &none;
    if (d->n < d->small || tag->step < d->dense_steps) return cg_dense();
    for (size_t i = 0; i < d->rule_count; i++)
        if (tag->tensor >= d->rules[i].first && tag->tensor <= d->rules[i].last && d->n >= d->rules[i].n_from) {
            op = d->rules[i].op;
            break;
        }
    if (d->policy) op = d->policy(d->policy_user, tag, d->n, op);
    op = cg_ef_warmup_op_(d, op, tag->step - d->dense_steps);
    if (op.sample.id && d->kind != CG_EF_DIANA && d->kind != CG_EF_SIGNUM) op = cg_unscaled(op);
    return op;
}
