/* topk: candidates for the k largest magnitudes

   Offers   cg_topk_candidates_, cg_threshold_estimate_
   Needs    base, random, source, select/list, select/filter
   Touches  the list; x, if a producer makes it
   Other headers may use: cg_kth_magnitude_
   A threshold from a random sample, a little too low, is followed by one filter pass; the exact selection among what
   passed is left to cg_list_keep_topk_. Where the candidates do not fit (ties, or an unlucky sample), passes that
   count narrow the interval of the k-th magnitude. */

/* A key in [lo, hi) that a few more than target_n of n values are expected to reach, from a random sample of the keys
   in [lo, hi). inside_n: how many of n keys are in [lo, hi), 0: not known. salt: another one gives another sample.
   sample: room for min(n, 16384) floats; n >= 1024. */
static uint32_t cg_threshold_estimate_(const float *x, const cg_producer_ *lazy, size_t n, uint64_t target_n,
    uint64_t inside_n, uint32_t lo, uint32_t hi, uint32_t salt, float *sample, cg_sign_filter_ filter) {
    size_t sample_n = n / 64 < 1024 ? 1024 : n / 64 > 16384 ? 16384 : n / 64, count = 0, kth;
    size_t stride = n / sample_n, index[64], many;
    cg_key_ key = cg_block_key_(salt, n);
    double expected, spread = 1.0;
    for (size_t i = 0; i < sample_n; i += many) { /* prefetch 64 cache lines before the first is used */
        many = cg_min_(64, sample_n - i);
        for (size_t j = 0; j < many; j++) {
            index[j] = (i + j) * stride +
                (size_t)((uint64_t)cg_hash32_(key, (uint32_t)(i + j)) * (stride < 0xffffffffu ? stride : 0xffffffffu) >>
                    32);
            if (x) CG_PREFETCH_(cg_at_(x, index[j]));
        }
        for (size_t j = 0; j < many; j++) {
            float one;
            float f = cg_load_(cg_values_view_(x, lazy, index[j], 1, &one), 0);
            uint32_t m = cg_magnitude_key_(f, filter);
            sample[count] = f;
            count += (m >= lo) & (m < hi);
        }
    }
    if (!count) return lo + (hi - lo) / 2;
    expected = (inside_n ? (double)count / (double)inside_n : (double)sample_n / (double)n) * (double)target_n;
    while (spread * spread < expected) spread += 1.0; /* a square root, roughly */
    expected += 3.0 * spread + 4.0;
    if (expected >= (double)count) return lo;
    kth = (size_t)expected;
    return cg_kth_(sample, count, &kth, lo, hi - 1, filter);
}

/* Lists all values that reach *threshold_bits, at least k; or, with has_all_ties 0, exactly the k largest, where
   *threshold_bits is the k-th magnitude itself. 1 <= k <= n. producer: NULL; or it makes x, and its hint replaces the
   first estimate; or it is lazy, and x is NULL. CG_E_NONFINITE: Inf or NaN among the values. */
static cg_status cg_topk_candidates_(const cg_kernels_ *kernels, const float *x, size_t n, size_t k, cg_list_ *list,
    cg_producer_ *producer, uint32_t *threshold_bits) {
    uint32_t lo = 0, hi = 0x80000000u; /* the k-th key is in [lo, hi) */
    size_t at_least_lo = n, at_least_hi = 0;
    const cg_producer_ *lazy = producer && producer->lazy ? producer : NULL;
    if (x && !producer && n <= CG_FEW_AMONG_ && k <= CG_FEW_) { /* a look at each value costs less than a list of all */
        const uint32_t largest = CG_KERNEL_(kernels, absmax_bits(x, n));
        size_t ties = k;
        if (largest >= CG_INF_BITS_) return CG_E_NONFINITE;
        *threshold_bits = k == 1 ? largest : cg_kth_of_few_(x, n, &ties, 0, largest, cg_both_signs_);
        cg_filter_with_ties_(kernels, x, NULL, n, *threshold_bits, k - ties, k, list);
        list->has_all_ties = 0;
        return CG_OK;
    }
    if (lazy) producer = NULL;
    list->has_all_ties = 1;
    for (uint32_t tries = 0;; tries++) {
        *threshold_bits = lo;
        if (producer) *threshold_bits = producer->threshold_hint;
        else if (n > CG_CHUNK_) {
            if (tries < 8)
                *threshold_bits = cg_threshold_estimate_(
                    x, lazy, n, k - at_least_hi, at_least_lo - at_least_hi, lo, hi, tries, list->value, cg_both_signs_);
            else *threshold_bits = lo + (hi - lo) / 2;
            if (*threshold_bits == 0 && hi > 1) *threshold_bits = 1; /* zeros may be many, and need no sorting */
        }
        if (producer   ? cg_filter_producing_(kernels, x, n, *threshold_bits, list, producer)
                : lazy ? cg_filter_lazy_(kernels, lazy, n, *threshold_bits, list)
                       : cg_filter_vector_(kernels, x, n, *threshold_bits, list)) {
            producer = NULL;
            if (list->count >= k) break;
            hi = *threshold_bits;
            at_least_hi = list->count;
            if (hi == 1) { /* all that are not zero are in the list, so the k-th is zero */
                if (CG_KERNEL_(kernels, absmax_bits(list->value, list->count)) >= CG_INF_BITS_) return CG_E_NONFINITE;
                cg_filter_with_ties_(kernels, x, lazy, n, 0, list->count, k, list);
                list->has_all_ties = 0;
                *threshold_bits = 0;
                return CG_OK;
            }
        } else {
            size_t above;
            producer = NULL;
            if (cg_count_above_all_(kernels, x, lazy, n, *threshold_bits, &above) >= CG_INF_BITS_)
                return CG_E_NONFINITE;
            if (above < k) { /* at least k reach it, and fewer are above: it is the k-th itself */
                cg_filter_with_ties_(kernels, x, lazy, n, *threshold_bits, above, k, list);
                list->has_all_ties = 0;
                COMPGRAD_ASSERT(list->count == k);
                return CG_OK;
            }
            lo = *threshold_bits + 1;
            at_least_lo = above;
        }
    }
    return CG_KERNEL_(kernels, absmax_bits(list->value, list->count)) >= CG_INF_BITS_ ? CG_E_NONFINITE : CG_OK;
}
/* The rank-th largest magnitude of n values (rank from 1 to n), as bits. *rank becomes its place among its equals:
   so many of them belong to the *rank largest. */
CG_OFFERED_ uint32_t cg_kth_magnitude_(const float *v, size_t n, size_t *rank) {
    return cg_kth_(v, n, rank, 0, CG_ABS_MASK_, cg_both_signs_);
}
