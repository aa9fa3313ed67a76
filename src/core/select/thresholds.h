/* ---- >>selections: each fills the list, ascending by index ---- */

typedef struct cg_selector_ {
    const cg_kernels_ *kernels;
    const cg_extra *side;
    const float *x;         /* NULL: top-k of what a lazy fill makes */
    cg_producer_ *producer; /* top-k: what makes x, or NULL */
    size_t n;
    uint64_t shared_key, rank_key; /* keys */
    cg_list_ *list;
    cg_info *info; /* k and threshold are filled in */
} cg_selector_;

/* before any value from i on, a multiple of CG_CHUNK_ */
CG_INLINE_ void cg_list_begin_segment_(cg_list_ *list, size_t i) {
    if (((uint64_t)i & 0xffffffffu) == 0) list->segment_start[(uint64_t)i >> 32] = list->count;
}
CG_INLINE_ void cg_list_add_(cg_list_ *list, size_t i, float value) {
    list->index_low[list->count] = (uint32_t)i;
    list->value[list->count++] = value;
}
static void cg_list_close_(cg_list_ *list) { list->segment_start[list->segment_count] = list->count; }

/* Cuts the list, all of which reaches `bound`, down to the k largest magnitudes; returns the k-th. */
static uint32_t cg_list_keep_topk_(const cg_selector_ *p, size_t k, uint32_t bound) {
    cg_list_ *list = p->list;
    size_t left = k;
    uint32_t key = cg_kth_(
        list->value, list->count, &left, bound, p->kernels->absmax_bits(list->value, list->count), cg_both_signs_);
    list->count = 0;
    for (uint64_t s = 0, from = 0, to; s < list->segment_count; s++, from = to) {
        to = list->segment_start[s + 1];
        list->segment_start[s] = list->count;
        cg_list_compact_(list, (size_t)from, (size_t)to, &list->count, key, &left);
    }
    cg_list_close_(list);
    COMPGRAD_ASSERT(list->count == k);
    return key;
}
static cg_status cg_select_topk_(const cg_selector_ *p, size_t k) {
    uint32_t bound;
    cg_status s;
    if (!k) {
        p->list->count = 0;
        return CG_OK;
    }
    s = cg_topk_candidates_(p->kernels, p->x, p->n, k, p->list, p->producer, &bound);
    if (s == CG_OK) p->info->threshold = cg_as_float_(cg_list_keep_topk_(p, k, bound));
    return s;
}

/* Magnitudes, one of every `stride`, at places that the tag gives. */
static void cg_strided_sample_(const cg_selector_ *p, size_t stride, size_t draws, float *sample) {
    const cg_key_ key = cg_block_key_(p->shared_key, 0x73616D70u);
    const uint64_t within = stride < 0xffffffffu ? stride : 0xffffffffu;
    size_t at[64];
    for (size_t i = 0; i < draws; i += 64) { /* ask for 64 cache lines before waiting for the first */
        const size_t many = cg_min_(64, draws - i);
        for (size_t j = 0; j < many; j++) {
            at[j] = (i + j) * stride + (size_t)(cg_hash32_(key, (uint32_t)(i + j)) * within >> 32);
            CG_PREFETCH_(cg_at_(p->x, at[j]));
        }
        for (size_t j = 0; j < many; j++) sample[i + j] = cg_as_float_(cg_load_bits_(p->x, at[j]) & CG_ABS_MASK_);
    }
}
/* A threshold that was estimated, made good: too many are cut to the k largest, too few lower it (DGC). */
static cg_status cg_select_by_estimate_(const cg_selector_ *p, size_t k, float threshold) {
    cg_list_ *list = p->list;
    for (int tries = 0; tries < 10; tries++, threshold = cg_times_(threshold, 0.8f)) {
        const uint32_t bound = cg_as_bits_(threshold) & CG_ABS_MASK_;
        if (!cg_filter_vector_(p->kernels, p->x, p->n, bound, list)) break;
        if (p->kernels->absmax_bits(list->value, list->count) >= CG_INF_BITS_) return CG_E_NONFINITE;
        p->info->threshold = threshold;
        if (list->count > cg_max_selected_(&p->info->op, p->n))
            p->info->threshold = cg_as_float_(cg_list_keep_topk_(p, k, bound));
        if (list->count >= k - k / 5) return CG_OK;
    }
    return cg_select_topk_(p, k);
}
/* from 0.5 % of the values, more of short vectors */
static cg_status cg_select_dgc_(const cg_selector_ *p) {
    const float ratio = p->info->op.select.value;
    const size_t stride = p->n / 4096 < 1 ? 1 : cg_min_(200, p->n / 4096),
                 draws = cg_min_(p->n / stride, p->list->capacity);
    size_t rank = (size_t)cg_k_from_ratio_(ratio, 0, draws);
    cg_strided_sample_(p, stride, draws, p->list->value);
    return cg_select_by_estimate_(p, (size_t)cg_k_from_ratio_(ratio, 0, p->n),
        cg_as_float_(cg_kth_(p->list->value, draws, &rank, 0, CG_ABS_MASK_, cg_both_signs_)));
}
/* SIDCo: magnitudes taken as exponentials; each stage looks at what is above the stage before, a quarter of it. */
static cg_status cg_select_sidco_(const cg_selector_ *p) {
    const size_t k = (size_t)cg_k_from_ratio_(p->info->op.select.value, 0, p->n);
    const size_t target = p->n / 256 < 8192 ? 8192 : cg_min_(p->n / 256, 65536),
                 stride = p->n / target < 1 ? 1 : p->n / target;
    size_t draws = cg_min_(p->n / stride, p->list->capacity);
    double ratio = (double)k / (double)p->n, threshold = 0.0;
    float *sample = p->list->value;
    cg_strided_sample_(p, stride, draws, sample);
    if (p->kernels->absmax_bits(sample, draws) >= CG_INF_BITS_) return CG_E_NONFINITE;
    while (ratio < 1.0) {
        double sum = 0.0, step = -cg_ln_(ratio < 0.25 ? 0.25 : ratio);
        size_t above = 0;
        for (size_t i = 0; i < draws; i++) { /* the next stage looks at these alone */
            double d = (double)sample[i] - threshold;
            sample[above] = sample[i];
            above += d > 0.0;
            sum += d > 0.0 ? d : 0.0;
        }
        draws = above;
        if (!above) break;
        step *= sum / (double)above;
        CG_NO_FMA_(step);
        threshold += step;
        ratio = ratio < 0.25 ? ratio * 4.0 : 1.0;
    }
    return cg_select_by_estimate_(p, k, cg_saturate64_(threshold));
}

/* Sums over the magnitudes below a limit, as bits: of a chunk all, less those that reach it; where these are so
   large that nothing of the others would be left in the difference, one after the other. The list must not be in
   use. */
typedef struct cg_below_sums_ {
    double sum, squares;
    uint64_t count;
    uint32_t absmax_bits;
} cg_below_sums_;
static cg_below_sums_ cg_below_sums_of_(const cg_selector_ *p, uint32_t limit) {
    cg_below_sums_ t = { 0.0, 0.0, 0, 0 };
    for (size_t i = 0; i < p->n; i += CG_CHUNK_) {
        const size_t many = cg_min_(CG_CHUNK_, p->n - i);
        const float *v = cg_at_(p->x, i);
        const uint32_t top = p->kernels->absmax_bits(v, many);
        double sum = 0.0, squares = 0.0;
        t.absmax_bits = cg_max32_(t.absmax_bits, top);
        if (top < limit || top - limit < 10u << 23) { /* 2^10 times the limit */
            const size_t above =
                top < limit ? 0 : p->kernels->filter(v, many, limit, 0, p->list->index_low, p->list->value);
            sum = cg_lane_sum_of_(p->kernels, v, many, CG_SUM_ABS_);
            squares = cg_lane_sum_of_(p->kernels, v, many, CG_SUM_SQUARES_);
            if (above) {
                sum -= cg_lane_sum_of_(p->kernels, p->list->value, above, CG_SUM_ABS_);
                squares -= cg_lane_sum_of_(p->kernels, p->list->value, above, CG_SUM_SQUARES_);
            }
            t.count += many - above;
        } else {
            for (size_t j = 0; j < many; j++) {
                uint32_t m = cg_load_bits_(v, j) & CG_ABS_MASK_;
                double d = m < limit ? (double)cg_as_float_(m) : 0.0, square = d * d;
                CG_NO_FMA_(square);
                t.count += m < limit;
                sum += d;
                squares += square;
            }
        }
        t.sum += sum > 0.0 ? sum : 0.0;
        t.squares += squares > 0.0 ? squares : 0.0;
    }
    return t;
}
#define CG_BERNOULLI_KEY_ 0xBB67AE8584CAA73Bu /* coins of a selection are not the noise of a quantizer */

/* MSTop-k: bisects between the mean and the largest magnitude for a threshold that at most k reach; all of those
   are taken, and what is missing is a run of neighbours, from a random place, among those down to the last
   threshold that was too low. */
static cg_status cg_select_mstopk_(const cg_selector_ *p, size_t k) {
    cg_list_ *list = p->list;
    uint32_t bound, next, top, low = 0, high = CG_INF_BITS_;
    double mean, lo = 0.0, hi = 1.0;
    size_t rank = k + 1, sure = 0, between = 0, start, ordinal = 0;
    cg_status s;
    if (k >= p->n) return cg_select_topk_(p, k);
    list->sum_magnitudes = 1;
    s = cg_topk_candidates_(p->kernels, p->x, p->n, k + 1, list, NULL, &bound);
    list->sum_magnitudes = 0;
    if (s != CG_OK) return s;
    top = p->kernels->absmax_bits(list->value, list->count);
    /* more than k reach a threshold if and only if the next magnitude after the k-th does: nothing has to be
       counted again */
    next = cg_kth_(list->value, list->count, &rank, bound, top, cg_both_signs_);
    /* none reaches it: the list stays */
    mean = (list->has_all_ties ? list->magnitude_sum : cg_below_sums_of_(p, CG_INF_BITS_).sum) / (double)p->n;
    for (int i = 0; i < 30; i++) {
        double r = (lo + hi) * 0.5, t = r * ((double)cg_as_float_(top) - mean);
        uint32_t key;
        CG_NO_FMA_(t);
        key = cg_as_bits_(cg_saturate64_(mean + t));
        if (key > next) {
            high = key;
            hi = r;
        } else {
            low = key;
            lo = r;
        }
    }
    if (!list->has_all_ties) bound = CG_INF_BITS_;
    if (low < bound) { /* the candidates do not reach down so far: a pass more */
        size_t above = 0;
        for (size_t i = 0; low && i < p->n; i += CG_CHUNK_)
            p->kernels->count_above(cg_at_(p->x, i), cg_min_(CG_CHUNK_, p->n - i), low - 1, &above);
        between = low ? above : p->n;
    }
    for (size_t i = 0; i < list->count; i++) {
        uint32_t m = cg_as_bits_(list->value[i]) & CG_ABS_MASK_;
        sure += m >= high;
        if (low >= bound) between += m >= low;
    }
    between -= sure;
    start = (size_t)cg_mulhi64_(cg_mix64_(p->rank_key ^ CG_BERNOULLI_KEY_), (uint64_t)(between - (k - sure)) + 1);
    p->info->threshold = cg_as_float_(low);
    list->count = 0;
    if (low >= bound) {
        for (uint64_t g = 0, from = 0, to; g < list->segment_count; g++, from = to) {
            to = list->segment_start[g + 1];
            list->segment_start[g] = list->count;
            for (uint64_t i = from; i < to; i++) {
                uint32_t m = cg_as_bits_(list->value[i]) & CG_ABS_MASK_;
                int take = m >= high;
                if (!take && m >= low) {
                    take = ordinal >= start && ordinal < start + (k - sure);
                    ordinal++;
                }
                list->index_low[list->count] = list->index_low[i];
                list->value[list->count] = list->value[i];
                list->count += (size_t)take;
            }
        }
    } else {
        for (size_t i = 0; i < p->n; i++) {
            float f = cg_load_(p->x, i);
            uint32_t m = cg_as_bits_(f) & CG_ABS_MASK_;
            int take = m >= high;
            cg_list_begin_segment_(list, i);
            if (!take && m >= low) {
                take = ordinal >= start && ordinal < start + (k - sure);
                ordinal++;
            }
            if (take) cg_list_add_(list, i, f);
        }
    }
    cg_list_close_(list);
    COMPGRAD_ASSERT(list->count == k);
    return CG_OK;
}
