/* wangni: values kept at random, with probabilities by magnitude (Wangni)

   Offers   cg_select_wangni_, cg_select_wangni_variance_
   Needs    base, random, kernels (bernoulli), quantize/scales (tiny scales), select/thresholds
   Touches  the list
   Magnitudes from a threshold on are certain; a smaller x becomes +-threshold with probability |x|/threshold, which
   is unbiased. The two selections differ in how they find the threshold. */

/* threshold > 0; all values are finite. */
static cg_status cg_select_bernoulli_(const cg_selector_ *p, float threshold) {
    cg_list_ *list = p->list;
    cg_bernoulli_ bernoulli;
    bernoulli.threshold = threshold;
    bernoulli.prescale = cg_is_tiny_(threshold) ? CG_POW2_100_ : 1.0f;
    bernoulli.inv_threshold = 1.0f / cg_times_(threshold, bernoulli.prescale);
    list->count = 0;
    for (size_t i = 0; i < p->n; i += CG_CHUNK_) {
        cg_list_begin_segment_(list, i);
        bernoulli.key = cg_block_key_(p->rank_key ^ CG_BERNOULLI_KEY_, (uint64_t)i >> 16);
        list->count += CG_KERNEL_(p->kernels,
            bernoulli(&bernoulli, cg_at_(p->x, i), cg_min_(CG_CHUNK_, p->n - i), (uint32_t)i,
                list->index_low + list->count, list->value + list->count));
    }
    cg_list_close_(list);
    return CG_OK;
}
/* As many values as the ratio says, in expectation, with probabilities lambda*|x|; two rounds give what values with
   probability 1 leave over to the others. */
static cg_status cg_select_wangni_(const cg_selector_ *p) {
    const double target = (double)p->info->op.select.value * (double)p->n;
    cg_below_sums_ below = cg_below_sums_of_(p, CG_INF_BITS_);
    double lambda;
    float threshold;
    if (below.absmax_bits >= CG_INF_BITS_) return CG_E_NONFINITE;
    if (below.sum == 0.0) return cg_select_bernoulli_(p, CG_FLT_MAX_);
    lambda = target / below.sum;
    threshold = cg_saturate64_(1.0 / lambda);
    for (int i = 0; i < 2; i++) {
        double remaining, kappa;
        below = cg_below_sums_of_(p, cg_as_bits_(threshold));
        remaining = target - (double)(p->n - below.count);
        kappa = lambda * below.sum > 0.0 ? remaining / (lambda * below.sum) : 0.0;
        if (!(kappa > 1.0)) break;
        lambda *= kappa;
        threshold = cg_saturate64_(1.0 / lambda);
    }
    return cg_select_bernoulli_(p, threshold);
}
/* The fewest values in expectation with sum x^2/p <= (1 + epsilon) sum x^2. */
static cg_status cg_select_wangni_variance_(const cg_selector_ *p) {
    cg_below_sums_ below = cg_below_sums_of_(p, CG_INF_BITS_);
    const double extra_variance = (double)p->info->op.select.value * below.squares;
    float threshold = CG_FLT_MAX_;
    if (below.absmax_bits >= CG_INF_BITS_) return CG_E_NONFINITE;
    for (int i = 0; i < 100 && below.sum > 0.0; i++) {
        const double exact = (extra_variance + below.squares) / below.sum;
        float next = cg_saturate64_(exact);
        /* rounded down, as a larger threshold has more variance */
        if ((double)next > exact) next = cg_as_float_(cg_as_bits_(next) - 1u);
        if (next >= threshold || !(next > 0.0f)) break;
        threshold = next;
        below = cg_below_sums_of_(p, cg_as_bits_(threshold));
    }
    return cg_select_bernoulli_(p, threshold);
}
