/* filter: one pass over the values that lists those whose magnitude reaches a threshold

   Offers   filters of a vector, of values that a producer makes, of ties; cg_count_above_all_; threads
   Needs    base, kernels (filter, count_above), source, select/list
   Touches  the list; x, if a producer makes it
   Other headers may use: CG_PARALLEL_, cg_filter_lazy_, cg_thread_count_
   Every filter empties the list first, and leaves it ascending, with its segments. NaN reaches every threshold. */

/* Makes x, chunk by chunk, and filters it on the way. All of x is made in any case; 0: the list did not hold all. */
static int cg_filter_producing_(const cg_kernels_ *kernels, const float *x, size_t n, uint32_t threshold_bits,
    cg_list_ *list, cg_producer_ *producer) {
    double energy = 0.0;
    int fits = 1;
    producer->started = 1;
    list->count = 0;
    for (size_t i = 0; i < n; i += CG_CHUNK_) {
        if (i % CG_BLOCK_ == 0) {
            producer->energy += energy;
            energy = 0.0;
        }
        energy += cg_producer_make_(producer, i, CG_CHUNK_, (float *)(uintptr_t)x);
        if (((uint64_t)i & 0xffffffffu) == 0) list->segment_start[(uint64_t)i >> 32] = list->count;
        if (fits)
            list->count += CG_KERNEL_(kernels,
                filter(cg_at_(x, i), cg_min_(CG_CHUNK_, n - i), threshold_bits, (uint32_t)i,
                    list->index_low + list->count, list->value + list->count));
        fits = list->count <= list->capacity;
    }
    producer->energy += energy;
    producer->reached_hint = list->count;
    list->segment_start[list->segment_count] = list->count;
    return fits;
}
/* Filters a vector in memory, of any alignment. 0: the list did not hold all, and sums and segments are incomplete. */
static int cg_filter_vector_(
    const cg_kernels_ *kernels, const float *x, size_t n, uint32_t threshold_bits, cg_list_ *list) {
    list->count = 0;
    list->magnitude_sum = list->block_sum = 0.0;
    for (size_t i = 0; i < n; i += CG_CHUNK_) {
        if (((uint64_t)i & 0xffffffffu) == 0) list->segment_start[(uint64_t)i >> 32] = list->count;
        if (list->sum_magnitudes) {
            if (i % CG_BLOCK_ == 0) {
                list->magnitude_sum += list->block_sum;
                list->block_sum = 0.0;
            }
            list->block_sum += cg_lane_sum_of_(kernels, cg_at_(x, i), cg_min_(CG_CHUNK_, n - i), CG_SUM_ABS_);
        }
        list->count += CG_KERNEL_(kernels,
            filter(cg_at_(x, i), cg_min_(CG_CHUNK_, n - i), threshold_bits, (uint32_t)i, list->index_low + list->count,
                list->value + list->count));
        if (list->count > list->capacity) return 0;
    }
    list->segment_start[list->segment_count] = list->count;
    list->magnitude_sum += list->block_sum;
    return 1;
}
/* Threads, at most 64. CG_PARALLEL_ stands before a for loop over i < many, whose rounds are independent: `many` is a
   part of its text. CG_CODED_WAVE_: blocks that are entropy coded at once; without threads each block is written where
   it stays. */
#if defined(COMPGRAD_OPENMP) && defined(_OPENMP)
#  include <omp.h>
static int cg_thread_count_(void) {
    const int many = omp_get_max_threads();
    return many < 1 ? 1 : many > 64 ? 64 : many;
}
#  define CG_PARALLEL_ _Pragma("omp parallel for schedule(static, 1) if (many > 1)")
#  define CG_CODED_WAVE_ CG_WAVE_
#else
CG_INLINE_ int cg_thread_count_(void) { return 1; }
#  define CG_PARALLEL_
#  define CG_CODED_WAVE_ 1u
#endif

/* Filters values [first, end) of a lazy producer into entries [offset, offset + capacity) of the list, with indices
   modulo 2^32; returns how many, or SIZE_MAX if they did not fit. One thread's slice of the vector and of the list. */
CG_NOINLINE_ size_t cg_filter_slice_(const cg_kernels_ *kernels, const cg_producer_ *lazy, size_t first, size_t end,
    uint32_t threshold_bits, const cg_list_ *list, size_t offset, size_t capacity) {
    float buf[CG_CHUNK_];
    size_t count = 0;
    cg_fenv_ env = cg_fenv_enter_();
    for (size_t i = first; i < end && count + CG_CHUNK_ + CG_SLACK_ <= capacity; i += CG_CHUNK_) {
        const size_t many = cg_min_(CG_CHUNK_, end - i);
        count += CG_KERNEL_(kernels,
            filter(cg_values_view_(NULL, lazy, i, many, buf), many, threshold_bits, (uint32_t)i,
                list->index_low + offset + count, list->value + offset + count));
    }
    cg_fenv_leave_(env);
    return count + CG_CHUNK_ + CG_SLACK_ <= capacity ? count : SIZE_MAX;
}
/* Slices of a lazy producer's values by threads, put together in order. 0: a slice did not fit, there is one thread, or
   the vector is too short or has several segments; then the list is unusable, and cg_filter_serial_ has to do it. */
static int cg_filter_threaded_(
    const cg_kernels_ *kernels, const cg_producer_ *lazy, size_t n, uint32_t threshold_bits, cg_list_ *list) {
    const int many = cg_thread_count_();
    const size_t capacity = list->capacity / (size_t)many, slice_n = (n / (size_t)many / CG_CHUNK_ + 1) * CG_CHUNK_;
    size_t count[64];
    if (many < 2 || n < CG_BLOCK_ * (size_t)many || list->segment_count > 1) return 0;
    CG_PARALLEL_
    for (int i = 0; i < many; i++)
        count[i] = cg_filter_slice_(kernels, lazy, cg_min_(n, slice_n * (size_t)i),
            cg_min_(n, slice_n * (size_t)(i + 1)), threshold_bits, list, capacity * (size_t)i, capacity);
    for (int i = 0; i < many; i++)
        if (count[i] == SIZE_MAX) return 0;
    list->count = 0;
    for (int i = 0; i < many; i++) {
        memmove(list->index_low + list->count, list->index_low + capacity * (size_t)i, 4 * count[i]);
        memmove(list->value + list->count, list->value + capacity * (size_t)i, 4 * count[i]);
        list->count += count[i];
    }
    list->segment_start[0] = 0;
    list->segment_start[1] = list->count;
    return 1;
}
CG_NOINLINE_ int cg_filter_serial_(
    const cg_kernels_ *kernels, const cg_producer_ *lazy, size_t n, uint32_t threshold_bits, cg_list_ *list) {
    float buf[CG_CHUNK_];
    list->count = 0;
    for (size_t i = 0; i < n; i += CG_CHUNK_) {
        const size_t many = cg_min_(CG_CHUNK_, n - i);
        if (((uint64_t)i & 0xffffffffu) == 0) list->segment_start[(uint64_t)i >> 32] = list->count;
        list->count += CG_KERNEL_(kernels,
            filter(cg_values_view_(NULL, lazy, i, many, buf), many, threshold_bits, (uint32_t)i,
                list->index_low + list->count, list->value + list->count));
        if (list->count > list->capacity) return 0;
    }
    list->segment_start[list->segment_count] = list->count;
    return 1;
}
/* Filters the n values of a lazy producer. 0: the list did not hold all. */
static int cg_filter_lazy_(
    const cg_kernels_ *kernels, const cg_producer_ *lazy, size_t n, uint32_t threshold_bits, cg_list_ *list) {
    return cg_filter_threaded_(kernels, lazy, n, threshold_bits, list) ||
        cg_filter_serial_(kernels, lazy, n, threshold_bits, list);
}
/* Lists the k largest, of which kth_bits is the smallest magnitude and `above` are larger: those, and the first that
   equal kth_bits. x, or with x NULL the lazy producer, has no NaN. k <= capacity. */
CG_NOINLINE_ void cg_filter_with_ties_(const cg_kernels_ *kernels, const float *x, const cg_producer_ *lazy, size_t n,
    uint32_t kth_bits, size_t above, size_t k, cg_list_ *list) {
    size_t ties_left = k - above, from, found;
    float buf[CG_CHUNK_];
    list->count = 0;
    for (size_t i = 0; i < n; i += CG_CHUNK_) {
        const size_t many = cg_min_(CG_CHUNK_, n - i);
        if (((uint64_t)i & 0xffffffffu) == 0) list->segment_start[(uint64_t)i >> 32] = list->count;
        if (list->count == k && (uint64_t)(n - 1) >> 32 == 0) break;
        from = list->count;
        found = CG_KERNEL_(kernels,
            filter(cg_values_view_(x, lazy, i, many, buf), many, ties_left ? kth_bits : kth_bits + 1, (uint32_t)i,
                list->index_low + from, list->value + from));
        cg_list_compact_(list, from, from + found, &list->count, kth_bits, &ties_left);
    }
    list->segment_start[list->segment_count] = list->count;
}
/* *above: how many magnitudes are above threshold_bits. Returns the largest magnitude as bits. */
CG_NOINLINE_ uint32_t cg_count_above_all_(const cg_kernels_ *kernels, const float *x, const cg_producer_ *lazy,
    size_t n, uint32_t threshold_bits, size_t *above) {
    float buf[CG_CHUNK_];
    uint32_t absmax_bits = 0;
    *above = 0;
    for (size_t i = 0; i < n; i += CG_CHUNK_) {
        const size_t many = cg_min_(CG_CHUNK_, n - i);
        absmax_bits = cg_max32_(absmax_bits,
            CG_KERNEL_(kernels, count_above(cg_values_view_(x, lazy, i, many, buf), many, threshold_bits, above)));
    }
    return absmax_bits;
}
