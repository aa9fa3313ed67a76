/* Wangni: magnitudes from `unit` on are certain; a smaller one becomes +-unit with probability |x|/unit. */
static cg_status cg_select_bernoulli_(const cg_selector_ *p, float unit) {
    cg_list_ *list = p->list;
    cg_bernoulli_ c;
    c.threshold = unit;
    c.prescale = cg_is_tiny_(unit) ? CG_POW2_100_ : 1.0f;
    c.inv_threshold = 1.0f / cg_times_(unit, c.prescale);
    list->count = 0;
    for (size_t i = 0; i < p->n; i += CG_CHUNK_) {
        cg_list_begin_segment_(list, i);
        c.key = cg_block_key_(p->rank_key ^ CG_BERNOULLI_KEY_, (uint64_t)i >> 16);
        list->count += p->kernels->bernoulli(&c, cg_at_(p->x, i), cg_min_(CG_CHUNK_, p->n - i), (uint32_t)i,
            list->index_low + list->count, list->value + list->count);
    }
    cg_list_close_(list);
    return CG_OK;
}
/* a density; twice what the certain ones leave over goes to the others */
static cg_status cg_select_wangni_(const cg_selector_ *p) {
    const double want = (double)p->info->op.select.value * (double)p->n;
    cg_below_sums_ t = cg_below_sums_of_(p, CG_INF_BITS_);
    double lambda;
    float unit;
    if (t.absmax_bits >= CG_INF_BITS_) return CG_E_NONFINITE;
    if (t.sum == 0.0) return cg_select_bernoulli_(p, CG_FLT_MAX_);
    lambda = want / t.sum;
    unit = cg_saturate64_(1.0 / lambda);
    for (int i = 0; i < 2; i++) {
        double left, kappa;
        t = cg_below_sums_of_(p, cg_as_bits_(unit));
        left = want - (double)(p->n - t.count);
        kappa = lambda * t.sum > 0.0 ? left / (lambda * t.sum) : 0.0;
        if (!(kappa > 1.0)) break;
        lambda *= kappa;
        unit = cg_saturate64_(1.0 / lambda);
    }
    return cg_select_bernoulli_(p, unit);
}
/* the fewest with sum x^2/p <= (1 + epsilon) sum x^2 */
static cg_status cg_select_wangni_variance_(const cg_selector_ *p) {
    cg_below_sums_ t = cg_below_sums_of_(p, CG_INF_BITS_);
    const double extra = (double)p->info->op.select.value * t.squares;
    float unit = CG_FLT_MAX_;
    if (t.absmax_bits >= CG_INF_BITS_) return CG_E_NONFINITE;
    for (int i = 0; i < 100 && t.sum > 0.0; i++) {
        const double exact = (extra + t.squares) / t.sum;
        float next = cg_saturate64_(exact);
        /* down: a larger unit has more variance */
        if ((double)next > exact) next = cg_as_float_(cg_as_bits_(next) - 1u);
        if (next >= unit || !(next > 0.0f)) break;
        unit = next;
        t = cg_below_sums_of_(p, cg_as_bits_(unit));
    }
    return cg_select_bernoulli_(p, unit);
}
