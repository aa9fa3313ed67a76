/* chunked: the largest values of every chunk, and blocks that are not zero

   Offers   cg_select_chunked_, cg_select_blocks_
   Needs    base, kernels, shape, select/list, select/thresholds
   Touches  the list; k in info, for blocks */

/* The k-th largest of n magnitudes, as bits, which are all in [lo, hi]; hi is below Inf. Bisection, as SIMD counts
   fast. *above: how many are larger. 1 <= k <= n; v is aligned. */
static uint32_t cg_kth_bisect_(
    const cg_kernels_ *kernels, const float *v, size_t n, size_t k, uint32_t lo, uint32_t hi, size_t *above) {
    size_t larger = 0, next = 0; /* larger: how many are above hi */
    while (lo < hi) {            /* look for the smallest that fewer than k are above */
        uint32_t pivot = lo + (hi - lo) / 2;
        size_t count = 0;
        if (n <= 128) { /* of a few, a pivot that is one of them takes fewer steps */
            while (next < n && (cg_as_bits_(v[next]) & CG_ABS_MASK_) - lo >= hi - lo) next++;
            if (next == n) {
                lo = hi;
                break;
            }
            pivot = cg_as_bits_(v[next]) & CG_ABS_MASK_;
        }
        CG_KERNEL_(kernels, count_above(v, n, pivot, &count));
        if (count < k) {
            hi = pivot;
            larger = count;
        } else lo = pivot + 1;
    }
    *above = larger;
    return lo;
}
/* The largest of every chunk of stage->size values. Neighbouring chunks are alike: candidates are first those that
   reach a little less than the k-th magnitude of the chunk before. */
static cg_status cg_select_chunked_(const cg_selector_ *p) {
    const cg_stage *stage = &p->info->op.select;
    cg_list_ *list = p->list;
    uint32_t guess_bits = 0;
    list->count = 0;
    for (size_t i = 0, many; i < p->n; i += many) {
        const size_t from = list->count, segment_last = (size_t)((uint64_t)i | 0xffffffffu);
        size_t k, found = 0, above, ties_left;
        uint32_t kth_bits;
        many = cg_min_(stage->size, p->n - i);
        k = (size_t)cg_k_from_ratio_(stage->value, 0, many);
        for (;; guess_bits = 0) { /* a second time only after a guess that was too high */
            list->count = from;
            for (size_t j = i, sub_n; j < i + many; j += sub_n) { /* in steps that end where a segment may begin */
                sub_n = cg_min_(i + many - j, CG_CHUNK_ - j % CG_CHUNK_);
                cg_list_begin_segment_(list, j);
                list->count += CG_KERNEL_(p->kernels,
                    filter(cg_at_(p->x, j), sub_n, guess_bits, (uint32_t)j, list->index_low + list->count,
                        list->value + list->count));
            }
            found = list->count - from;
            if (found >= k || !guess_bits) break;
        }
        kth_bits = CG_KERNEL_(p->kernels, absmax_bits(list->value + from, found));
        if (kth_bits >= CG_INF_BITS_) return CG_E_NONFINITE;
        kth_bits = cg_kth_bisect_(p->kernels, list->value + from, found, k, guess_bits, kth_bits, &above);
        ties_left = k - above;
        list->count = from;
        if (i + many - 1 <= segment_last) {
            cg_list_compact_(list, from, from + found, &list->count, kth_bits, &ties_left);
        } else { /* a segment begins in this chunk: its start moves with what is cut before it */
            const size_t boundary = (size_t)list->segment_start[(uint64_t)(i + many - 1) >> 32];
            cg_list_compact_(list, from, boundary, &list->count, kth_bits, &ties_left);
            list->segment_start[(uint64_t)(i + many - 1) >> 32] = list->count;
            cg_list_compact_(list, boundary, from + found, &list->count, kth_bits, &ties_left);
        }
        guess_bits = kth_bits < 0x400000u ? 0 : kth_bits - 0x400000u; /* about half the magnitude */
    }
    cg_list_close_(list);
    return CG_OK;
}
/* Blocks that are not all zero: one index in the list for each, and all their values; info->k counts values. */
static cg_status cg_select_blocks_(const cg_selector_ *p) {
    const size_t size = p->info->op.select.size;
    cg_list_ *list = p->list;
    list->count = 0;
    p->info->k = 0;
    for (size_t i = 0, block = 0, many; i < p->n; i += many, block++) {
        uint32_t absmax_bits;
        many = cg_min_(size, p->n - i);
        absmax_bits = CG_KERNEL_(p->kernels, absmax_bits(cg_at_(p->x, i), many));
        if (absmax_bits >= CG_INF_BITS_) return CG_E_NONFINITE;
        cg_list_begin_segment_(list, block);
        if (!absmax_bits) continue;
        list->index_low[list->count++] = (uint32_t)block;
        memcpy(list->value + p->info->k, cg_at_(p->x, i), 4 * many);
        p->info->k += many;
    }
    list->segment_count = p->n ? ((uint64_t)(p->n - 1) / size >> 32) + 1 : 1;
    cg_list_close_(list);
    return CG_OK;
}
