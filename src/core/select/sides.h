/* sides: the largest positive and the largest negative values, each side by its own count (AdaQ, SBC)

   Offers   cg_select_sides_
   Needs    base, kernels, plan, select/list, select/filter, select/topk, select/thresholds
   Touches  the list */

/* Side 0 is positive, side 1 negative. sides: the ratio of each side; side: k of each, of which only
   the side with the larger mean magnitude stays. The list has room for all n. */
static cg_status cg_select_sides_(const cg_selector_ *p) {
    static const cg_sign_filter_ filters[2] = { { 0, 0xffffffffu }, { 0x80000000u, 0xffffffffu } };
    const cg_stage *stage = &p->info->op.select;
    const int one_side = cg_has_(&p->info->op, CG_KEEPS_ONE_SIDE_);
    cg_list_ *list = p->list;
    uint32_t kth_bits[2] = { 0, 0 }, threshold_bits = 1;
    size_t available[2] = { 0, 0 }, quota[2], ties_left[2] = { 0, 0 }, k, n = p->n;
    double mean[2] = { 0.0, 0.0 };
    available[0] = available[1] = n;
    if (!one_side) {
        available[0] = available[1] = 0;
        for (size_t i = 0; i < n; i += CG_CHUNK_) {
            const size_t many = cg_min_(CG_CHUNK_, n - i);
            uint8_t signs[CG_CHUNK_ / 8];
            size_t nonzero = 0, negative = 0;
            CG_KERNEL_(p->kernels, sign_encode(cg_at_(p->x, i), many, signs, NULL));
            CG_KERNEL_(p->kernels, count_above(cg_at_(p->x, i), many, 0, &nonzero));
            for (size_t j = 0; j < (many + 7) / 8; j++) negative += cg_popcount_(signs[j]);
            available[0] += nonzero - negative;
            available[1] += negative;
        }
    }
    k = (size_t)cg_k_from_ratio_(stage->value, 0, n);
    for (int side = 0; side < 2; side++)
        quota[side] = one_side ? cg_min_(k, available[side])
                               : (size_t)cg_k_from_ratio_(stage->value, 0, available[side]);
    if (n > CG_CHUNK_) { /* a threshold that enough values of both sides should reach */
        uint32_t positive_bits = quota[0]
            ? cg_threshold_estimate_(p->x, NULL, n, quota[0], 0, 1, CG_INF_BITS_, 0, list->value, filters[0])
            : CG_INF_BITS_;
        uint32_t negative_bits = quota[1]
            ? cg_threshold_estimate_(p->x, NULL, n, quota[1], 0, 1, CG_INF_BITS_, 1, list->value, filters[1])
            : CG_INF_BITS_;
        threshold_bits = cg_max32_(1, positive_bits < negative_bits ? positive_bits : negative_bits);
    }
    for (;; threshold_bits = 1) { /* a second time only after an estimate that was too high */
        available[0] = available[1] = 0;
        cg_filter_vector_(p->kernels, p->x, n, threshold_bits, list);
        if (CG_KERNEL_(p->kernels, absmax_bits(list->value, list->count)) >= CG_INF_BITS_) return CG_E_NONFINITE;
        for (size_t i = 0; i < list->count; i++) available[list->value[i] < 0.0f]++;
        if (threshold_bits == 1 || (available[0] >= quota[0] && available[1] >= quota[1])) break;
    }
    for (int side = 0; side < 2; side++) quota[side] = cg_min_(quota[side], available[side]);
    for (int side = 0; side < 2; side++) {
        ties_left[side] = quota[side];
        if (quota[side])
            kth_bits[side] = cg_kth_(
                list->value, list->count, &ties_left[side], threshold_bits, CG_INF_BITS_ - 1, filters[side]);
    }
    if (one_side) {
        size_t ties[2];
        ties[0] = ties_left[0];
        ties[1] = ties_left[1];
        for (size_t i = 0; i < list->count; i++) {
            int side = list->value[i] < 0.0f;
            uint32_t m = cg_as_bits_(list->value[i]) & CG_ABS_MASK_;
            int equal = m == kth_bits[side] && ties[side] > 0;
            if (quota[side] && (m > kth_bits[side] || equal)) mean[side] += (double)cg_as_float_(m);
            ties[side] -= (size_t)equal;
        }
        for (int side = 0; side < 2; side++) mean[side] = quota[side] ? mean[side] / (double)quota[side] : 0.0;
        quota[mean[0] >= mean[1]] = 0;
    }
    list->count = 0;
    for (uint64_t g = 0, from = 0, to; g < list->segment_count; g++, from = to) {
        to = list->segment_start[g + 1];
        list->segment_start[g] = list->count;
        for (uint64_t i = from; i < to; i++) {
            int side = list->value[i] < 0.0f;
            uint32_t m = cg_as_bits_(list->value[i]) & CG_ABS_MASK_;
            int equal = m == kth_bits[side] && ties_left[side] > 0, take = quota[side] && (m > kth_bits[side] || equal);
            list->index_low[list->count] = list->index_low[i];
            list->value[list->count] = list->value[i];
            if (take && m == kth_bits[side]) ties_left[side]--;
            list->count += (size_t)take;
        }
    }
    cg_list_close_(list);
    return CG_OK;
}
