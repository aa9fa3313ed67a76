/* thresholds: top-k and selections that estimate its threshold: DGC, SIDCo, MSTop-k

   Offers   cg_selector_, cg_list_keep_topk_, cg_select_topk_, cg_below_sums_of_ and a selection each
   Needs    base, random, kernels, plan, sample (cg_mulhi64_), select/list, select/filter, select/topk
   Touches  the list; k and threshold in info; x, if a producer makes it
   Other headers may use: cg_list_keep_topk_, cg_select_topk_, cg_selector_
   Each selection fills the list, ascending by index, and refuses values that are not finite. */

/* What a selection works on. */
struct cg_selector_;
/* A row of the table of selections, in core/rows.h. */
typedef struct cg_selection_ {
    cg_stage_row_ stage;
    uint64_t (*max_selected)(const cg_op *op, uint64_t n); /* see core/plan.h */
    /* Fills list, ascending by index, and info->threshold; info->k becomes the length of the list, unless the stage
       keeps blocks or takes the indices of a support, where the function sets it. The list is undefined on an error. */
    cg_status (*pick)(const struct cg_selector_ *p);
} cg_selection_;
static const cg_selection_ *cg_selection_of_(const cg_op *op); /* in core/rows.h */

typedef struct cg_selector_ {
    const cg_kernels_ *kernels;
    const cg_extra *side;   /* of the caller: aux and support; may be NULL */
    const float *x;         /* n values of any alignment; NULL: those of a lazy producer, top-k only */
    cg_producer_ *producer; /* top-k: makes x, or is lazy; NULL: x has been made */
    size_t n;
    size_t max_selected;           /* values to keep, at most */
    uint64_t shared_key, rank_key; /* for random numbers that are equal on all ranks, and different */
    cg_list_ *list;                /* result */
    cg_info *info;                 /* op and tag; k and threshold are results */
} cg_selector_;

/* Cuts the list, whose at least k entries all reach threshold_bits, down to the k largest magnitudes, of equal ones
   those with the lowest indices; returns the k-th magnitude as bits. */
static uint32_t cg_list_keep_topk_(const cg_selector_ *p, size_t k, uint32_t threshold_bits) {
    cg_list_ *list = p->list;
    size_t ties_left = k;
    uint32_t kth_bits = cg_kth_(list->value, list->count, &ties_left, threshold_bits,
        CG_KERNEL_(p->kernels, absmax_bits(list->value, list->count)), cg_both_signs_);
    list->count = 0;
    for (uint64_t s = 0, from = 0, to; s < list->segment_count; s++, from = to) {
        to = list->segment_start[s + 1];
        list->segment_start[s] = list->count;
        cg_list_compact_(list, (size_t)from, (size_t)to, &list->count, kth_bits, &ties_left);
    }
    cg_list_close_(list);
    COMPGRAD_ASSERT(list->count == k);
    return kth_bits;
}
/* The k largest of n magnitudes, k <= n; of p it needs neither side nor keys, and of info only threshold. */
static cg_status cg_select_topk_(const cg_selector_ *p, size_t k) {
    uint32_t threshold_bits;
    cg_status s;
    if (!k) {
        p->list->count = 0;
        return CG_OK;
    }
    s = cg_topk_candidates_(p->kernels, p->x, p->n, k, p->list, p->producer, &threshold_bits);
    if (s == CG_OK) p->info->threshold = cg_as_float_(cg_list_keep_topk_(p, k, threshold_bits));
    return s;
}

static cg_status cg_select_topk_by_ratio_(const cg_selector_ *p) { return cg_select_topk_(p, p->max_selected); }
/* All magnitudes above a fixed one. */
static cg_status cg_select_threshold_(const cg_selector_ *p) {
    const uint32_t least = (cg_as_bits_(p->info->op.select.value) & CG_ABS_MASK_) + 1;
    cg_filter_vector_(p->kernels, p->x, p->n, least, p->list);
    return CG_KERNEL_(p->kernels, absmax_bits(p->list->value, p->list->count)) >= CG_INF_BITS_ ? CG_E_NONFINITE : CG_OK;
}

/* sample_n magnitudes, one of every `stride` values, at random places that are the same on all ranks.
   sample_n * stride <= n. */
static void cg_strided_sample_(const cg_selector_ *p, size_t stride, size_t sample_n, float *sample) {
    const cg_key_ key = cg_block_key_(p->shared_key, 0x73616D70u);
    const uint64_t range = stride < 0xffffffffu ? stride : 0xffffffffu;
    size_t index[64];
    for (size_t i = 0; i < sample_n; i += 64) { /* prefetch 64 cache lines before the first is used */
        const size_t many = cg_min_(64, sample_n - i);
        for (size_t j = 0; j < many; j++) {
            index[j] = (i + j) * stride + (size_t)(cg_hash32_(key, (uint32_t)(i + j)) * range >> 32);
            CG_PREFETCH_(cg_at_(p->x, index[j]));
        }
        for (size_t j = 0; j < many; j++) sample[i + j] = cg_as_float_(cg_load_bits_(p->x, index[j]) & CG_ABS_MASK_);
    }
}
/* Selects by an estimated threshold. Too many values (above max_selected) are cut to the k largest, fewer than 80 %
   of k lower the threshold and filter again, up to ten times; then, or if the list overflows, exact top-k decides. */
static cg_status cg_select_by_estimate_(const cg_selector_ *p, size_t k, float threshold) {
    cg_list_ *list = p->list;
    for (int tries = 0; tries < 10; tries++, threshold = cg_times_(threshold, 0.8f)) {
        const uint32_t threshold_bits = cg_as_bits_(threshold) & CG_ABS_MASK_;
        if (!cg_filter_vector_(p->kernels, p->x, p->n, threshold_bits, list)) break;
        if (CG_KERNEL_(p->kernels, absmax_bits(list->value, list->count)) >= CG_INF_BITS_) return CG_E_NONFINITE;
        p->info->threshold = threshold;
        if (list->count > p->max_selected) p->info->threshold = cg_as_float_(cg_list_keep_topk_(p, k, threshold_bits));
        if (list->count >= k - k / 5) return CG_OK;
    }
    return cg_select_topk_(p, k);
}
/* DGC: the threshold is that of a sample of 0.5 % of the values, more of short vectors. */
static cg_status cg_select_dgc_(const cg_selector_ *p) {
    const float ratio = p->info->op.select.value;
    const size_t stride = p->n / 4096 < 1 ? 1 : cg_min_(200, p->n / 4096),
                 sample_n = cg_min_(p->n / stride, p->list->capacity);
    size_t kth = (size_t)cg_k_from_ratio_(ratio, 0, sample_n);
    cg_strided_sample_(p, stride, sample_n, p->list->value);
    return cg_select_by_estimate_(p, (size_t)cg_k_from_ratio_(ratio, 0, p->n),
        cg_as_float_(cg_kth_(p->list->value, sample_n, &kth, 0, CG_ABS_MASK_, cg_both_signs_)));
}
/* SIDCo: fits an exponential distribution to the magnitudes of a sample, in stages: each fits what is above the
   threshold of the stage before, and keeps a quarter of it, the last what is left of the ratio. */
static cg_status cg_select_sidco_(const cg_selector_ *p) {
    const size_t k = (size_t)cg_k_from_ratio_(p->info->op.select.value, 0, p->n);
    const size_t target = p->n / 256 < 8192 ? 8192 : cg_min_(p->n / 256, 65536),
                 stride = p->n / target < 1 ? 1 : p->n / target;
    size_t sample_n = cg_min_(p->n / stride, p->list->capacity);
    double ratio = (double)k / (double)p->n, threshold = 0.0;
    float *sample = p->list->value;
    cg_strided_sample_(p, stride, sample_n, sample);
    if (CG_KERNEL_(p->kernels, absmax_bits(sample, sample_n)) >= CG_INF_BITS_) return CG_E_NONFINITE;
    while (ratio < 1.0) {
        double sum = 0.0, step = -cg_ln_(ratio < 0.25 ? 0.25 : ratio);
        size_t above = 0;
        for (size_t i = 0; i < sample_n; i++) { /* keep those above for the next stage */
            double d = (double)sample[i] - threshold;
            sample[above] = sample[i];
            above += d > 0.0;
            sum += d > 0.0 ? d : 0.0;
        }
        sample_n = above;
        if (!above) break;
        step *= sum / (double)above;
        CG_NO_FMA_(step);
        threshold += step;
        ratio = ratio < 0.25 ? ratio * 4.0 : 1.0;
    }
    return cg_select_by_estimate_(p, k, cg_saturate64_(threshold));
}

/* Sums over the magnitudes below a limit. */
typedef struct cg_below_sums_ {
    double sum, squares;
    uint64_t count;
    uint32_t absmax_bits; /* of all values, below the limit or not */
} cg_below_sums_;
/* limit: as bits. Of each chunk, the sums over all values less those over values that reach the limit; where these are
   so large that rounding would eat the difference, the others are added one by one. The list's entries are overwritten
   unless no value reaches the limit. */
static cg_below_sums_ cg_below_sums_of_(const cg_selector_ *p, uint32_t limit) {
    cg_below_sums_ below = { 0.0, 0.0, 0, 0 };
    for (size_t i = 0; i < p->n; i += CG_CHUNK_) {
        const size_t many = cg_min_(CG_CHUNK_, p->n - i);
        const float *v = cg_at_(p->x, i);
        const uint32_t absmax_bits = CG_KERNEL_(p->kernels, absmax_bits(v, many));
        double sum = 0.0, squares = 0.0;
        below.absmax_bits = cg_max32_(below.absmax_bits, absmax_bits);
        if (absmax_bits < limit || absmax_bits - limit < 10u << 23) { /* 2^10 times the limit */
            const size_t above = absmax_bits < limit
                ? 0
                : CG_KERNEL_(p->kernels, filter(v, many, limit, 0, p->list->index_low, p->list->value));
            sum = cg_lane_sum_of_(p->kernels, v, many, CG_SUM_ABS_);
            squares = cg_lane_sum_of_(p->kernels, v, many, CG_SUM_SQUARES_);
            if (above) {
                sum -= cg_lane_sum_of_(p->kernels, p->list->value, above, CG_SUM_ABS_);
                squares -= cg_lane_sum_of_(p->kernels, p->list->value, above, CG_SUM_SQUARES_);
            }
            below.count += many - above;
        } else {
            for (size_t j = 0; j < many; j++) {
                uint32_t m = cg_load_bits_(v, j) & CG_ABS_MASK_;
                double d = m < limit ? (double)cg_as_float_(m) : 0.0, square = d * d;
                CG_NO_FMA_(square);
                below.count += m < limit;
                sum += d;
                squares += square;
            }
        }
        below.sum += sum > 0.0 ? sum : 0.0;
        below.squares += squares > 0.0 ? squares : 0.0;
    }
    return below;
}
#define CG_BERNOULLI_KEY_ 0xBB67AE8584CAA73Bu /* so that the random numbers of a selection differ from a quantizer's */

/* MSTop-k: 30 bisections between the mean and the largest magnitude find high_bits, which at most k values reach, and
   low_bits, which more than k reach. All of the former are taken, and what is missing is taken from the values between
   the two: consecutive ones, from a random place on. */
static cg_status cg_select_mstopk_(const cg_selector_ *p) {
    cg_list_ *list = p->list;
    const size_t k = p->max_selected;
    uint32_t threshold_bits, next_bits, absmax_bits, low_bits = 0, high_bits = CG_INF_BITS_;
    double mean, lo = 0.0, hi = 1.0;
    size_t kth = k + 1, certain_n = 0, between_n = 0, start, seen = 0;
    cg_status s;
    if (k >= p->n) return cg_select_topk_(p, k);
    list->sum_magnitudes = 1;
    s = cg_topk_candidates_(p->kernels, p->x, p->n, k + 1, list, NULL, &threshold_bits);
    list->sum_magnitudes = 0;
    if (s != CG_OK) return s;
    absmax_bits = CG_KERNEL_(p->kernels, absmax_bits(list->value, list->count));
    /* more than k values reach a threshold if and only if the (k+1)-th magnitude does: bisecting needs no counting */
    next_bits = cg_kth_(list->value, list->count, &kth, threshold_bits, absmax_bits, cg_both_signs_);
    /* no value reaches Inf, so cg_below_sums_of_ does not touch the list */
    mean = (list->has_all_ties ? list->magnitude_sum : cg_below_sums_of_(p, CG_INF_BITS_).sum) / (double)p->n;
    for (int i = 0; i < 30; i++) {
        double r = (lo + hi) * 0.5, t = r * ((double)cg_as_float_(absmax_bits) - mean);
        uint32_t bits;
        CG_NO_FMA_(t);
        bits = cg_as_bits_(cg_saturate64_(mean + t));
        if (bits > next_bits) {
            high_bits = bits;
            hi = r;
        } else {
            low_bits = bits;
            lo = r;
        }
    }
    if (!list->has_all_ties) threshold_bits = CG_INF_BITS_;
    if (low_bits < threshold_bits) { /* the candidates do not reach down to low_bits: count in another pass */
        size_t above = 0;
        for (size_t i = 0; low_bits && i < p->n; i += CG_CHUNK_)
            CG_KERNEL_(p->kernels, count_above(cg_at_(p->x, i), cg_min_(CG_CHUNK_, p->n - i), low_bits - 1, &above));
        between_n = low_bits ? above : p->n;
    }
    for (size_t i = 0; i < list->count; i++) {
        uint32_t m = cg_as_bits_(list->value[i]) & CG_ABS_MASK_;
        certain_n += m >= high_bits;
        if (low_bits >= threshold_bits) between_n += m >= low_bits;
    }
    between_n -= certain_n;
    start = (size_t)cg_mulhi64_(
        cg_mix64_(p->rank_key ^ CG_BERNOULLI_KEY_), (uint64_t)(between_n - (k - certain_n)) + 1);
    p->info->threshold = cg_as_float_(low_bits);
    list->count = 0;
    if (low_bits >= threshold_bits) {
        for (uint64_t g = 0, from = 0, to; g < list->segment_count; g++, from = to) {
            to = list->segment_start[g + 1];
            list->segment_start[g] = list->count;
            for (uint64_t i = from; i < to; i++) {
                uint32_t m = cg_as_bits_(list->value[i]) & CG_ABS_MASK_;
                int take = m >= high_bits;
                if (!take && m >= low_bits) {
                    take = seen >= start && seen < start + (k - certain_n);
                    seen++;
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
            int take = m >= high_bits;
            cg_list_begin_segment_(list, i);
            if (!take && m >= low_bits) {
                take = seen >= start && seen < start + (k - certain_n);
                seen++;
            }
            if (take) cg_list_add_(list, i, f);
        }
    }
    cg_list_close_(list);
    COMPGRAD_ASSERT(list->count == k);
    return CG_OK;
}
