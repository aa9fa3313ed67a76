/* with_aux: selections that need a second vector, cg_extra.aux: AdaComp and variance

   Offers   cg_select_adacomp_, cg_select_variance_
   Needs    base, kernels, select/thresholds
   Touches  the list
   aux has n floats of any alignment; without it both return CG_E_ARG. */

/* AdaComp. x: the residual, with the latest gradient in it; aux: that gradient. A value is selected if one more such
   gradient would bring it up to the largest magnitude of its bin. All are sent as +- the mean of these largest
   magnitudes. */
static cg_status cg_select_adacomp_(const cg_selector_ *p) {
    const size_t bin = p->info->op.select.size;
    const float *aux = p->side ? p->side->aux : NULL;
    cg_list_ *list = p->list;
    double absmax_sum = 0.0;
    uint64_t bins = 0;
    float scale;
    if (!aux) return CG_E_ARG;
    if (p->n &&
        (CG_KERNEL_(p->kernels, absmax_bits(p->x, p->n)) >= CG_INF_BITS_ ||
            CG_KERNEL_(p->kernels, absmax_bits(aux, p->n)) >= CG_INF_BITS_))
        return CG_E_NONFINITE;
    for (size_t i = 0; i < p->n; i += cg_min_(bin, p->n - i), bins++)
        absmax_sum += (double)cg_as_float_(
            CG_KERNEL_(p->kernels, absmax_bits(cg_at_(p->x, i), cg_min_(bin, p->n - i))));
    scale = bins ? cg_saturate64_(absmax_sum / (double)bins) : 0.0f;
    list->count = 0;
    for (size_t i = 0, many; i < p->n; i += many) {
        uint32_t absmax_bits;
        many = cg_min_(bin, p->n - i);
        absmax_bits = CG_KERNEL_(p->kernels, absmax_bits(cg_at_(p->x, i), many));
        for (size_t j = i; j < i + many; j++) {
            float f = cg_load_(p->x, j);
            uint32_t m = cg_as_bits_(cg_plus_(f, cg_load_(aux, j))) & CG_ABS_MASK_;
            cg_list_begin_segment_(list, j);
            if (absmax_bits && m >= absmax_bits) cg_list_add_(list, j, f < 0.0f ? -scale : scale);
        }
    }
    cg_list_close_(list);
    return CG_OK;
}
/* Tsuzuku: values whose square exceeds alpha times their variance, aux. */
static cg_status cg_select_variance_(const cg_selector_ *p) {
    const double alpha = (double)p->info->op.select.value;
    const float *aux = p->side ? p->side->aux : NULL;
    cg_list_ *list = p->list;
    if (!aux) return CG_E_ARG;
    list->count = 0;
    for (size_t i = 0; i < p->n; i++) {
        float f = cg_load_(p->x, i), v = cg_load_(aux, i);
        if (!cg_is_finite_(f) || !cg_is_finite_(v)) return CG_E_NONFINITE;
        cg_list_begin_segment_(list, i);
        if ((double)f * (double)f > alpha * (double)v) cg_list_add_(list, i, f);
    }
    cg_list_close_(list);
    return CG_OK;
}
