/* The largest above zero and the largest below, each by its own count. AdaQ: a share of either side; SBC: as many
   of both, of which the side with the larger mean stays. */
static cg_status cg_select_sides_(const cg_selector_ *p) {
    static const cg_sign_filter_ sides[2] = { { 0, 0xffffffffu }, { 0x80000000u, 0xffffffffu } };
    const cg_stage *stage = &p->info->op.select;
    cg_list_ *list = p->list;
    uint32_t key[2] = { 0, 0 }, bound = 1;
    size_t have[2] = { 0, 0 }, want[2], left[2] = { 0, 0 }, k, n = p->n;
    double mean[2] = { 0.0, 0.0 };
    have[0] = have[1] = n;
    if (stage->id == CG_SELECT_SIDES) {
        have[0] = have[1] = 0;
        for (size_t i = 0; i < n; i += CG_CHUNK_) {
            const size_t many = cg_min_(CG_CHUNK_, n - i);
            uint8_t signs[CG_CHUNK_ / 8];
            size_t some = 0, below = 0;
            p->kernels->sign_encode(cg_at_(p->x, i), many, signs, NULL);
            p->kernels->count_above(cg_at_(p->x, i), many, 0, &some);
            for (size_t j = 0; j < (many + 7) / 8; j++) below += cg_popcount_(signs[j]);
            have[0] += some - below;
            have[1] += below;
        }
    }
    k = (size_t)cg_k_from_ratio_(stage->value, 0, n);
    for (int side = 0; side < 2; side++)
        want[side] = stage->id == CG_SELECT_SIDE ? cg_min_(k, have[side])
                                                 : (size_t)cg_k_from_ratio_(stage->value, 0, have[side]);
    if (n > CG_CHUNK_) { /* what enough of both sides should reach */
        uint32_t above = want[0]
            ? cg_threshold_estimate_(p->x, NULL, n, want[0], 0, 1, CG_INF_BITS_, 0, list->value, sides[0])
            : CG_INF_BITS_;
        uint32_t below = want[1]
            ? cg_threshold_estimate_(p->x, NULL, n, want[1], 0, 1, CG_INF_BITS_, 1, list->value, sides[1])
            : CG_INF_BITS_;
        bound = cg_max32_(1, above < below ? above : below);
    }
    for (;; bound = 1) {
        have[0] = have[1] = 0;
        cg_filter_vector_(p->kernels, p->x, n, bound, list);
        if (p->kernels->absmax_bits(list->value, list->count) >= CG_INF_BITS_) return CG_E_NONFINITE;
        for (size_t i = 0; i < list->count; i++) have[list->value[i] < 0.0f]++;
        if (bound == 1 || (have[0] >= want[0] && have[1] >= want[1])) break;
    }
    for (int side = 0; side < 2; side++) want[side] = cg_min_(want[side], have[side]);
    for (int side = 0; side < 2; side++) {
        left[side] = want[side];
        if (want[side])
            key[side] = cg_kth_(list->value, list->count, &left[side], bound, CG_INF_BITS_ - 1, sides[side]);
    }
    if (stage->id == CG_SELECT_SIDE) {
        size_t ties[2];
        ties[0] = left[0];
        ties[1] = left[1];
        for (size_t i = 0; i < list->count; i++) {
            int side = list->value[i] < 0.0f;
            uint32_t m = cg_as_bits_(list->value[i]) & CG_ABS_MASK_;
            int equal = m == key[side] && ties[side] > 0;
            if (want[side] && (m > key[side] || equal)) mean[side] += (double)cg_as_float_(m);
            ties[side] -= (size_t)equal;
        }
        for (int side = 0; side < 2; side++) mean[side] = want[side] ? mean[side] / (double)want[side] : 0.0;
        want[mean[0] >= mean[1]] = 0;
    }
    list->count = 0;
    for (uint64_t g = 0, from = 0, to; g < list->segment_count; g++, from = to) {
        to = list->segment_start[g + 1];
        list->segment_start[g] = list->count;
        for (uint64_t i = from; i < to; i++) {
            int side = list->value[i] < 0.0f;
            uint32_t m = cg_as_bits_(list->value[i]) & CG_ABS_MASK_;
            int equal = m == key[side] && left[side] > 0, take = want[side] && (m > key[side] || equal);
            list->index_low[list->count] = list->index_low[i];
            list->value[list->count] = list->value[i];
            if (take && m == key[side]) left[side]--;
            list->count += (size_t)take;
        }
    }
    cg_list_close_(list);
    return CG_OK;
}

/* AdaComp: what one more gradient would bring to the largest residual of its bin. x: residual with the gradient in
   it; aux: the gradient. */
static cg_status cg_select_adacomp_(const cg_selector_ *p) {
    const size_t bin = p->info->op.select.size;
    const float *aux = p->side ? p->side->aux : NULL;
    cg_list_ *list = p->list;
    double total = 0.0;
    uint64_t bins = 0;
    float scale;
    if (!aux) return CG_E_ARG;
    if (p->n &&
        (p->kernels->absmax_bits(p->x, p->n) >= CG_INF_BITS_ || p->kernels->absmax_bits(aux, p->n) >= CG_INF_BITS_))
        return CG_E_NONFINITE;
    for (size_t i = 0; i < p->n; i += cg_min_(bin, p->n - i), bins++)
        total += (double)cg_as_float_(p->kernels->absmax_bits(cg_at_(p->x, i), cg_min_(bin, p->n - i)));
    scale = bins ? cg_saturate64_(total / (double)bins) : 0.0f;
    list->count = 0;
    for (size_t i = 0, many; i < p->n; i += many) {
        uint32_t top;
        many = cg_min_(bin, p->n - i);
        top = p->kernels->absmax_bits(cg_at_(p->x, i), many);
        for (size_t j = i; j < i + many; j++) {
            float f = cg_load_(p->x, j);
            uint32_t m = cg_as_bits_(cg_plus_(f, cg_load_(aux, j))) & CG_ABS_MASK_;
            cg_list_begin_segment_(list, j);
            if (top && m >= top) cg_list_add_(list, j, f < 0.0f ? -scale : scale);
        }
    }
    cg_list_close_(list);
    return CG_OK;
}
/* Tsuzuku: where the square of x exceeds alpha times its variance, aux. */
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
/* The k-th largest of n magnitudes, all below Inf, by bisection: counting is what SIMD is good at. above: how many
   are larger. */
static uint32_t cg_kth_bisect_(
    const cg_kernels_ *kernels, const float *v, size_t n, size_t k, uint32_t lo, uint32_t hi, size_t *above) {
    size_t larger = 0, next = 0; /* than hi */
    while (lo < hi) {            /* the smallest that fewer than k are above */
        uint32_t pivot = lo + (hi - lo) / 2;
        size_t count = 0;
        if (n <= 128) { /* of a few, one of them: that takes fewer steps */
            while (next < n && (cg_as_bits_(v[next]) & CG_ABS_MASK_) - lo >= hi - lo) next++;
            if (next == n) {
                lo = hi;
                break;
            }
            pivot = cg_as_bits_(v[next]) & CG_ABS_MASK_;
        }
        kernels->count_above(v, n, pivot, &count);
        if (count < k) {
            hi = pivot;
            larger = count;
        } else lo = pivot + 1;
    }
    *above = larger;
    return lo;
}
/* The largest of every chunk. Neighbours are alike: what reached a little less than the last chunk's key is looked
   at first. */
static cg_status cg_select_chunked_(const cg_selector_ *p) {
    const cg_stage *stage = &p->info->op.select;
    cg_list_ *list = p->list;
    uint32_t guess = 0;
    list->count = 0;
    for (size_t i = 0, many; i < p->n; i += many) {
        const size_t from = list->count, last = (size_t)((uint64_t)i | 0xffffffffu);
        size_t k, found = 0, above, left;
        uint32_t key;
        many = cg_min_(stage->size, p->n - i);
        k = (size_t)cg_k_from_ratio_(stage->value, 0, many);
        for (;; guess = 0) { /* a second time only after a guess that was too high */
            list->count = from;
            for (size_t j = i, some; j < i + many; j += some) { /* to the next mark */
                some = cg_min_(i + many - j, CG_CHUNK_ - j % CG_CHUNK_);
                cg_list_begin_segment_(list, j);
                list->count += p->kernels->filter(cg_at_(p->x, j), some, guess, (uint32_t)j,
                    list->index_low + list->count, list->value + list->count);
            }
            found = list->count - from;
            if (found >= k || !guess) break;
        }
        key = p->kernels->absmax_bits(list->value + from, found);
        if (key >= CG_INF_BITS_) return CG_E_NONFINITE;
        key = cg_kth_bisect_(p->kernels, list->value + from, found, k, guess, key, &above);
        left = k - above;
        list->count = from;
        if (i + many - 1 <= last) {
            cg_list_compact_(list, from, from + found, &list->count, key, &left);
            /* a mark lies in this chunk and moves with what is cut before it */
        } else {
            const size_t mark = (size_t)list->segment_start[(uint64_t)(i + many - 1) >> 32];
            cg_list_compact_(list, from, mark, &list->count, key, &left);
            list->segment_start[(uint64_t)(i + many - 1) >> 32] = list->count;
            cg_list_compact_(list, mark, from + found, &list->count, key, &left);
        }
        guess = key < 0x400000u ? 0 : key - 0x400000u; /* a half or so of it */
    }
    cg_list_close_(list);
    return CG_OK;
}
/* Blocks that are not all zero, one index each. */
static cg_status cg_select_blocks_(const cg_selector_ *p) {
    const size_t size = p->info->op.select.size;
    cg_list_ *list = p->list;
    list->count = 0;
    p->info->k = 0;
    for (size_t i = 0, unit = 0, many; i < p->n; i += many, unit++) {
        uint32_t top;
        many = cg_min_(size, p->n - i);
        top = p->kernels->absmax_bits(cg_at_(p->x, i), many);
        if (top >= CG_INF_BITS_) return CG_E_NONFINITE;
        cg_list_begin_segment_(list, unit);
        if (!top) continue;
        list->index_low[list->count++] = (uint32_t)unit;
        memcpy(list->value + p->info->k, cg_at_(p->x, i), 4 * many);
        p->info->k += many;
    }
    list->segment_count = p->n ? ((uint64_t)(p->n - 1) / size >> 32) + 1 : 1;
    cg_list_close_(list);
    return CG_OK;
}
static cg_status cg_select_given_(const cg_selector_ *p);

static cg_status cg_selector_run_(const cg_selector_ *p) {
    const cg_stage *stage = &p->info->op.select;
    cg_status s = CG_OK;
    if (!p->n && stage->id != CG_SELECT_GIVEN) {
        p->list->count = 0;
        p->info->k = 0;
        return CG_OK;
    }
    switch (stage->id) {
    case CG_SELECT_TOPK: s = cg_select_topk_(p, (size_t)cg_max_selected_(&p->info->op, p->n)); break;
    case CG_SELECT_MSTOPK: s = cg_select_mstopk_(p, (size_t)cg_max_selected_(&p->info->op, p->n)); break;
    case CG_SELECT_DGC: s = cg_select_dgc_(p); break;
    case CG_SELECT_SIDCO: s = cg_select_sidco_(p); break;
    case CG_SELECT_WANGNI: s = cg_select_wangni_(p); break;
    case CG_SELECT_WANGNIVAR: s = cg_select_wangni_variance_(p); break;
    case CG_SELECT_SIDES:
    case CG_SELECT_SIDE: s = cg_select_sides_(p); break;
    case CG_SELECT_BINS: s = cg_select_adacomp_(p); break;
    case CG_SELECT_VARIANCE: s = cg_select_variance_(p); break;
    case CG_SELECT_CHUNKED: s = cg_select_chunked_(p); break;
    case CG_SELECT_BLOCKS: return cg_select_blocks_(p); /* k is not the number of indices */
    case CG_SELECT_GIVEN: return cg_select_given_(p);
    default:
        cg_filter_vector_(p->kernels, p->x, p->n, (cg_as_bits_(stage->value) & CG_ABS_MASK_) + 1, p->list);
        if (p->kernels->absmax_bits(p->list->value, p->list->count) >= CG_INF_BITS_) s = CG_E_NONFINITE;
    }
    p->info->k = p->list->count;
    return s;
}
