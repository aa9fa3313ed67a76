/* schedule: the operator of a step, from rules, policy, dense steps and warm-up

   Offers   cg_ef_op_, cg_ef_warmup_op_, cg_op_ratio_stage_, cg_op_set_ratio_; the table of warm-ups
   Needs    kinds; math of core/base
   Touches  nothing but its arguments; calls the user's policy
   The operator depends on the description, the tag and n alone, so that all ranks arrive at the same one. */

/* e^x for x <= 0, the same bits everywhere: x is halved until a series of 18 terms is exact enough, and the sum is
   squared as often. */
static double cg_exp_(double x) {
    double sum = 1.0, term = 1.0;
    int halvings = 0;
    if (x < -700.0) return 0.0;
    for (; x < -0.5; x *= 0.5) halvings++;
    for (int i = 1; i <= 18; i++) {
        term *= x / (double)i;
        CG_NO_FMA_(term);
        sum += term;
    }
    for (; halvings > 0; halvings--) sum *= sum;
    return sum;
}
static float cg_warmup_power_(const cg_warmup *w, float ratio, uint64_t stage) {
    return (float)cg_exp_((double)(stage + 1) / ((double)w->stages + 1.0) * cg_ln_((double)ratio));
}
static float cg_warmup_quarters_(const cg_warmup *w, float ratio, uint64_t stage) {
    double quarter = 1.0;
    (void)w;
    for (uint64_t i = 0; i <= stage && quarter > (double)ratio; i++) quarter *= 0.25;
    return quarter > (double)ratio ? (float)quarter : ratio;
}
static float cg_warmup_linear_(const cg_warmup *w, float ratio, uint64_t stage) {
    return (float)(1.0 - cg_times64_((double)(stage + 1) / ((double)w->stages + 1.0), 1.0 - (double)ratio));
}
static float cg_warmup_table_(const cg_warmup *w, float ratio, uint64_t stage) {
    (void)ratio;
    return w->table[stage];
}
/* A kind of warm-up: its name in text, and the ratio of a stage below w->stages. Rows stand at their ids. */
typedef struct cg_warmup_row_ {
    uint32_t id;
    const char *name;
    int has_table; /* the ratios are given one by one */
    float (*ratio)(const cg_warmup *w, float ratio, uint64_t stage);
} cg_warmup_row_;
static const cg_warmup_row_ cg_warmup_rows_[] = { { CG_WARMUP_NONE, "none", 0, NULL },
    { CG_WARMUP_POWER, "power", 0, cg_warmup_power_ }, { CG_WARMUP_QUARTERS, "quarters", 0, cg_warmup_quarters_ },
    { CG_WARMUP_LINEAR, "linear", 0, cg_warmup_linear_ }, { CG_WARMUP_TABLE, "table", 1, cg_warmup_table_ } };
enum { CG_WARMUP_COUNT_ = sizeof cg_warmup_rows_ / sizeof cg_warmup_rows_[0] };
CG_API_ const char *cg_warmup_name(uint32_t kind) {
    return kind < CG_WARMUP_COUNT_ ? cg_warmup_rows_[kind].name : NULL;
}
CG_API_ cg_status cg_warmup_parse(uint32_t *kind, const char *text) {
    return cg_name_parse_(kind, text, cg_warmup_name);
}
/* The ratio of a step, counted from the start of the warm-up. A CG_WARMUP_TABLE must have its table. */
static float cg_warmup_ratio_(const cg_warmup *w, float ratio, uint64_t step) {
    const uint64_t stage = step / (w->period ? w->period : 1);
    if (!w->kind || w->kind >= CG_WARMUP_COUNT_ || stage >= w->stages || !(ratio > 0.0f)) return ratio;
    return cg_warmup_rows_[w->kind].ratio(w, ratio, stage);
}
CG_API_ float cg_warmup_ratio(const cg_warmup *warmup, float ratio, uint64_t step) {
    const cg_fenv_ env = cg_fenv_enter_();
    const float r =
        !warmup || (warmup->kind == CG_WARMUP_TABLE && !warmup->table) ? ratio : cg_warmup_ratio_(warmup, ratio, step);
    cg_fenv_leave_(env);
    return r;
}
/* The stage whose value is the ratio of values kept, or NULL if the operator has none. */
static cg_stage *cg_op_ratio_stage_(cg_op *op) {
    const uint32_t traits = cg_op_traits_(op);
    return traits & CG_HAS_RATIO_ ? &op->select : traits & CG_SAMPLES_RATIO_ ? &op->sample : NULL;
}
/* Sets the ratio, in place of a count in op->k; nothing happens to an operator without a ratio. */
static void cg_op_set_ratio_(cg_op *op, float ratio) {
    cg_stage *s = cg_op_ratio_stage_(op);
    if (!s) return;
    s->value = ratio;
    op->k = 0;
}
/* The ratio kept of n values, be it given as a ratio or as op->k; 1 for an operator without a ratio. */
static float cg_op_effective_ratio_(const cg_op *op, size_t n) {
    cg_op copy = *op;
    const cg_stage *s = cg_op_ratio_stage_(&copy);
    return !s ? 1.0f : op->k && n ? (float)((double)(op->k < n ? op->k : n) / (double)n) : s->value;
}
/* op with the warm-up's ratio at this step, counted from the first that is not dense. */
static cg_op cg_ef_warmup_op_(const cg_ef_desc *d, cg_op op, uint64_t step) {
    const float before = cg_op_effective_ratio_(&op, d->n), after = cg_warmup_ratio_(&d->warmup, before, step);
    if (after != before) cg_op_set_ratio_(&op, after);
    return op;
}
/* op with samples and rotations of each rank's own, if it has any. */
static cg_op cg_ef_drawn_by_rank_(cg_op op) {
    const cg_op own = cg_private(op);
    return cg_op_check_(&own) == CG_OK ? own : op;
}
/* op as all ranks draw it, for routes that sum packets in their domain. */
static cg_op cg_ef_drawn_in_common_(cg_op op) {
    if (!(cg_op_traits_(&op) & CG_IS_PRIVATE_)) return op;
    op.sample.flags &= (uint8_t)~CG_FLAG_PRIVATE;
    op.transform.flags &= (uint8_t)~CG_FLAG_PRIVATE;
    return op;
}
/* The operator of the step in tag (NULL: zeros). It may be illegal, if the policy gave it. A random sample is used
   unscaled, as its n/k would make the residual grow; only kinds without a residual take it scaled. Of kinds that keep
   nothing every rank draws for itself. */
static cg_op cg_ef_op_(const cg_ef *ef, const cg_tag *tag) {
    const cg_ef_desc *d = &ef->desc;
    const cg_tag none = CG_ZERO;
    cg_op op = d->op;
    if (!tag) tag = &none;
    if (cg_ef_begins_(ef) || d->n < d->small || tag->step < d->dense_steps) return cg_dense();
    for (size_t i = 0; i < d->rule_count; i++)
        if (tag->tensor >= d->rules[i].first && tag->tensor <= d->rules[i].last && d->n >= d->rules[i].n_from) {
            op = d->rules[i].op;
            break;
        }
    if (d->policy) op = d->policy(d->policy_user, tag, d->n, op);
    op = cg_ef_warmup_op_(d, op, tag->step - d->dense_steps);
    if (op.sample.id && !cg_ef_has_trait_(d, CG_EF_TAKES_OP_AS_IS_)) op = cg_unscaled(op);
    return cg_ef_has_trait_(d, CG_EF_UNBIASED_ONLY_) ? cg_ef_drawn_by_rank_(op) : op;
}
