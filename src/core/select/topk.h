/* ---- >>select: (index, value) lists in scratch ---- */

typedef struct cg_list_ {
    uint32_t *index_low; /* index modulo 2^32, ascending */
    float *value;
    uint64_t *segment_start; /* segment[s]: how many entries have an index below s*2^32 */
    uint64_t segment_count;
    size_t count, capacity;
    int has_all_ties;   /* 0: of the last to be taken some equals were left out */
    int sum_magnitudes; /* 1: filtering sums the magnitudes of everything into total, part after part */
    double magnitude_sum, block_sum;
    float *materialized; /* the sample, where a selection follows it */
} cg_list_;

static size_t cg_list_capacity_(const cg_op *op, uint64_t turned) {
    uint64_t room = turned;
    if (cg_has_fixed_k_(op) || op->select.id == CG_SELECT_DGC || op->select.id == CG_SELECT_SIDCO)
        room = cg_add_sat_(cg_mul_sat_(cg_max_selected_(op, turned), 2), CG_BLOCK_);
    /* a chunk's candidates beside what has been taken */
    if (op->select.id == CG_SELECT_CHUNKED) room = cg_add_sat_(cg_max_selected_(op, turned), op->select.size);
    return (size_t)(room < turned ? room : turned);
}
/* a chunk may overshoot the room before it is seen */
static uint64_t cg_list_allocated_n_(uint64_t room, uint64_t turned) {
    return cg_add_sat_(room, room < turned ? CG_CHUNK_ + CG_SLACK_ : CG_SLACK_);
}
static int cg_needs_materialized_(const cg_op *op) { /* must a selection or a codec see them all at once, beside x? */
    return !cg_is_matrix_op_(op) && (op->sample.id || op->transform.id) &&
        (op->select.id || cg_is_user_codec_(&op->quantize));
}
static uint64_t cg_scratch_bytes_(const cg_op *op, uint64_t n) {
    uint64_t drawn = cg_sampled_n_(op, n, NULL), turned = cg_transformed_n_(op, drawn), bytes = 0;
    if (op->select.id) {
        bytes = cg_mul_sat_(8, cg_list_allocated_n_(cg_list_capacity_(op, turned), turned));
        bytes = cg_add_sat_(bytes, 8 * ((turned >> 32) + 2));
    }
    if (cg_needs_materialized_(op)) bytes = cg_add_sat_(bytes, cg_mul_sat_(4, turned));
    if (cg_is_matrix_op_(op)) bytes = cg_add_sat_(cg_mul_sat_(4, cg_add_sat_(turned, 2)), cg_matrix_work_bytes_(op));
    return bytes ? cg_add_sat_(bytes, 64) : 0;
}
static void cg_list_in_scratch_(cg_list_ *list, const cg_op *op, uint64_t turned, void *scratch) {
    uint8_t *p;
    memset(list, 0, sizeof *list);
    if (!scratch) return;
    p = (uint8_t *)scratch + (64 - ((uintptr_t)scratch & 63)) % 64;
    if (op->select.id) {
        size_t slots;
        list->capacity = cg_list_capacity_(op, turned);
        list->segment_count = turned ? ((turned - 1) >> 32) + 1 : 1;
        slots = (size_t)cg_list_allocated_n_(list->capacity, turned);
        list->segment_start = (uint64_t *)(void *)p;
        p += 8 * (size_t)(list->segment_count + 1);
        list->index_low = (uint32_t *)(void *)p;
        p += 4 * slots;
        list->value = (float *)(void *)p;
        p += 4 * slots;
    }
    list->materialized = (float *)(void *)p;
}

/* Whose magnitudes: of all values, or only of those above or below zero (the others come out too large for any
   bound). */
typedef struct cg_sign_filter_ {
    uint32_t sign_flip, keep_mask;
} cg_sign_filter_;
static const cg_sign_filter_ cg_both_signs_ = { 0, CG_ABS_MASK_ };
CG_INLINE_ uint32_t cg_magnitude_key_(float v, cg_sign_filter_ of) {
    return (cg_as_bits_(v) ^ of.sign_flip) & of.keep_mask;
}

/* The rank-th largest magnitude (rank from 1) among those in [lo, hi]: 2048 bins at a time, until few are left to
   sort. rank becomes its rank among its equals. */
static uint32_t cg_kth_(const float *v, size_t n, size_t *rank, uint32_t lo, uint32_t hi, cg_sign_filter_ of) {
    enum { FEW = 64 };
    size_t bins[2048];
    uint32_t few[FEW];
    for (;;) {
        uint32_t width = hi - lo, shift = width >> 11 ? cg_log2_(width) - 10 : 0, bin = width >> shift;
        size_t count = 0;
        memset(bins, 0, sizeof bins[0] * (bin + 1));
        for (size_t i = 0; i < n; i++) {
            uint32_t m = cg_magnitude_key_(v[i], of) - lo;
            if (m <= width) bins[m >> shift]++;
        }
        for (; bin > 0 && bins[bin] < *rank; bin--) *rank -= bins[bin];
        lo += bin << shift;
        if (hi - lo >= 1u << shift) hi = lo + ((1u << shift) - 1u);
        if (lo == hi) return lo;
        if (bins[bin] > FEW) continue;
        for (size_t i = 0; i < n; i++) { /* insertion sort, largest first */
            uint32_t m = cg_magnitude_key_(v[i], of);
            if (m - lo <= hi - lo) {
                size_t j = count++;
                for (; j > 0 && few[j - 1] < m; j--) few[j] = few[j - 1];
                few[j] = m;
            }
        }
        lo = few[*rank - 1];
        for (count = 0; few[count] != lo; count++) {}
        *rank -= count; /* those above it */
        return lo;
    }
}
/* Moves entries [from, to) down to *kept on: those above the key, and of its equals as many as are left to take. */
static void cg_list_compact_(cg_list_ *list, size_t from, size_t to, size_t *kept, uint32_t key, size_t *left) {
    size_t k = *kept, l = *left, i = from;
    for (; i < to && l; i++) { /* equals are taken: */
        uint32_t m = cg_as_bits_(list->value[i]) & CG_ABS_MASK_;
        list->index_low[k] = list->index_low[i];
        list->value[k] = list->value[i];
        k += m >= key;
        l -= m == key;
    }
    for (; i < to; i++) { /* and no more of them */
        uint32_t m = cg_as_bits_(list->value[i]) & CG_ABS_MASK_;
        list->index_low[k] = list->index_low[i];
        list->value[k] = list->value[i];
        k += m > key;
    }
    *kept = k;
    *left = l;
}

/* All whose magnitude reaches `bound`. 0: did not fit. fill: makes the values first. */
static int cg_filter_producing_(
    const cg_kernels_ *kernels, const float *x, size_t n, uint32_t bound, cg_list_ *list, cg_producer_ *fill) {
    double energy = 0.0;
    int fits = 1;
    fill->started = 1;
    list->count = 0;
    for (size_t i = 0; i < n; i += CG_CHUNK_) {
        if (i % CG_BLOCK_ == 0) {
            fill->energy += energy;
            energy = 0.0;
        }
        energy += cg_producer_make_(fill, i, CG_CHUNK_, (float *)(uintptr_t)x);
        if (((uint64_t)i & 0xffffffffu) == 0) list->segment_start[(uint64_t)i >> 32] = list->count;
        if (fits)
            list->count += kernels->filter(cg_at_(x, i), cg_min_(CG_CHUNK_, n - i), bound, (uint32_t)i,
                list->index_low + list->count, list->value + list->count);
        fits = list->count <= list->capacity;
    }
    fill->energy += energy;
    fill->reached_hint = list->count;
    list->segment_start[list->segment_count] = list->count;
    return fits;
}
static int cg_filter_vector_(const cg_kernels_ *kernels, const float *x, size_t n, uint32_t bound, cg_list_ *list) {
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
        list->count += kernels->filter(cg_at_(x, i), cg_min_(CG_CHUNK_, n - i), bound, (uint32_t)i,
            list->index_low + list->count, list->value + list->count);
        if (list->count > list->capacity) return 0;
    }
    list->segment_start[list->segment_count] = list->count;
    list->magnitude_sum += list->block_sum;
    return 1;
}
#if defined(COMPGRAD_OPENMP) && defined(_OPENMP)
#  include <omp.h>
static int cg_thread_count_(void) {
    const int many = omp_get_max_threads();
    return many < 1 ? 1 : many > 64 ? 64 : many;
}
#  define CG_PARALLEL_ _Pragma("omp parallel for schedule(static, 1) if (many > 1)")
#  define CG_CODED_WAVE_ CG_WAVE_
#else
CG_INLINE_ int cg_thread_count_(void) { return 1; } /* threads, at most 64 */
#  define CG_PARALLEL_
#  define CG_CODED_WAVE_ 1u /* one block after the other stands where it stays */
#endif

/* The same of values that are made on the way. With threads each has a part of the vector and of the list. */
CG_NOINLINE_ size_t cg_filter_slice_(const cg_kernels_ *kernels, const cg_producer_ *lazy, size_t first, size_t end,
    uint32_t bound, const cg_list_ *list, size_t at, size_t room) {
    float buf[CG_CHUNK_];
    size_t count = 0;
    cg_fenv_ env = cg_fenv_enter_();
    for (size_t i = first; i < end && count + CG_CHUNK_ + CG_SLACK_ <= room; i += CG_CHUNK_) {
        const size_t many = cg_min_(CG_CHUNK_, end - i);
        count += kernels->filter(cg_values_view_(NULL, lazy, i, many, buf), many, bound, (uint32_t)i,
            list->index_low + at + count, list->value + at + count);
    }
    cg_fenv_leave_(env);
    return count + CG_CHUNK_ + CG_SLACK_ <= room ? count : SIZE_MAX;
}
/* 0: did not fit, or one thread */
static int cg_filter_threaded_(
    const cg_kernels_ *kernels, const cg_producer_ *lazy, size_t n, uint32_t bound, cg_list_ *list) {
    const int many = cg_thread_count_();
    const size_t room = list->capacity / (size_t)many, each = (n / (size_t)many / CG_CHUNK_ + 1) * CG_CHUNK_;
    size_t count[64];
    if (many < 2 || n < CG_BLOCK_ * (size_t)many || list->segment_count > 1) return 0;
    CG_PARALLEL_
    for (int i = 0; i < many; i++)
        count[i] = cg_filter_slice_(kernels, lazy, cg_min_(n, each * (size_t)i), cg_min_(n, each * (size_t)(i + 1)),
            bound, list, room * (size_t)i, room);
    for (int i = 0; i < many; i++)
        if (count[i] == SIZE_MAX) return 0;
    list->count = 0;
    for (int i = 0; i < many; i++) {
        memmove(list->index_low + list->count, list->index_low + room * (size_t)i, 4 * count[i]);
        memmove(list->value + list->count, list->value + room * (size_t)i, 4 * count[i]);
        list->count += count[i];
    }
    list->segment_start[0] = 0;
    list->segment_start[1] = list->count;
    return 1;
}
CG_NOINLINE_ int cg_filter_serial_(
    const cg_kernels_ *kernels, const cg_producer_ *lazy, size_t n, uint32_t bound, cg_list_ *list) {
    float buf[CG_CHUNK_];
    list->count = 0;
    for (size_t i = 0; i < n; i += CG_CHUNK_) {
        const size_t many = cg_min_(CG_CHUNK_, n - i);
        if (((uint64_t)i & 0xffffffffu) == 0) list->segment_start[(uint64_t)i >> 32] = list->count;
        list->count += kernels->filter(cg_values_view_(NULL, lazy, i, many, buf), many, bound, (uint32_t)i,
            list->index_low + list->count, list->value + list->count);
        if (list->count > list->capacity) return 0;
    }
    list->segment_start[list->segment_count] = list->count;
    return 1;
}
static int cg_filter_lazy_(
    const cg_kernels_ *kernels, const cg_producer_ *lazy, size_t n, uint32_t bound, cg_list_ *list) {
    return cg_filter_threaded_(kernels, lazy, n, bound, list) || cg_filter_serial_(kernels, lazy, n, bound, list);
}
/* The k-th largest magnitude is `key`, and `above` are larger: take those, and the first that equal it. */
CG_NOINLINE_ void cg_filter_with_ties_(const cg_kernels_ *kernels, const float *x, const cg_producer_ *lazy, size_t n,
    uint32_t key, size_t above, size_t k, cg_list_ *list) {
    size_t left = k - above, from, found;
    float buf[CG_CHUNK_];
    list->count = 0;
    for (size_t i = 0; i < n; i += CG_CHUNK_) {
        const size_t many = cg_min_(CG_CHUNK_, n - i);
        if (((uint64_t)i & 0xffffffffu) == 0) list->segment_start[(uint64_t)i >> 32] = list->count;
        if (list->count == k && (uint64_t)(n - 1) >> 32 == 0) break;
        from = list->count;
        found = kernels->filter(cg_values_view_(x, lazy, i, many, buf), many, left ? key : key + 1, (uint32_t)i,
            list->index_low + from, list->value + from);
        cg_list_compact_(list, from, from + found, &list->count, key, &left);
    }
    list->segment_start[list->segment_count] = list->count;
}
/* How many are above the bound; returns the largest. */
CG_NOINLINE_ uint32_t cg_count_above_all_(
    const cg_kernels_ *kernels, const float *x, const cg_producer_ *lazy, size_t n, uint32_t bound, size_t *above) {
    float buf[CG_CHUNK_];
    uint32_t top = 0;
    *above = 0;
    for (size_t i = 0; i < n; i += CG_CHUNK_) {
        const size_t many = cg_min_(CG_CHUNK_, n - i);
        top = cg_max32_(top, kernels->count_above(cg_values_view_(x, lazy, i, many, buf), many, bound, above));
    }
    return top;
}

/* A magnitude that about `want` of n values reach, from a sample of those in [lo, hi); `inside` of n are there, 0:
   who knows. */
static uint32_t cg_threshold_estimate_(const float *x, const cg_producer_ *lazy, size_t n, uint64_t want,
    uint64_t inside, uint32_t lo, uint32_t hi, uint32_t salt, float *sample, cg_sign_filter_ of) {
    size_t draws = n / 64 < 1024 ? 1024 : n / 64 > 16384 ? 16384 : n / 64, count = 0, rank;
    size_t stride = n / draws, at[64], many;
    cg_key_ key = cg_block_key_(salt, n);
    double expect, spread = 1.0;
    for (size_t i = 0; i < draws; i += many) { /* ask for 64 cache lines before waiting for the first */
        many = cg_min_(64, draws - i);
        for (size_t j = 0; j < many; j++) {
            at[j] = (i + j) * stride +
                (size_t)((uint64_t)cg_hash32_(key, (uint32_t)(i + j)) * (stride < 0xffffffffu ? stride : 0xffffffffu) >>
                    32);
            if (x) CG_PREFETCH_(cg_at_(x, at[j]));
        }
        for (size_t j = 0; j < many; j++) {
            float one;
            float f = cg_load_(cg_values_view_(x, lazy, at[j], 1, &one), 0);
            uint32_t m = cg_magnitude_key_(f, of);
            sample[count] = f;
            count += (m >= lo) & (m < hi);
        }
    }
    if (!count) return lo + (hi - lo) / 2;
    expect = (inside ? (double)count / (double)inside : (double)draws / (double)n) * (double)want;
    while (spread * spread < expect) spread += 1.0; /* a square root, roughly */
    expect += 3.0 * spread + 4.0;
    if (expect >= (double)count) return lo;
    rank = (size_t)expect;
    return cg_kth_(sample, count, &rank, lo, hi - 1, of);
}

/* Top-k: a guess from a sample that is a little too low, one filter pass, exact selection among what passed. When
   that does not fit (ties, or an unlucky sample) passes that count narrow the interval of the k-th key. Leaves in
   the list all that reach *bound, at least k; or, where *bound is the k-th key itself, k of them. fill: values
   that are still to be made, with a hint in place of the first guess; or lazy, and x is NULL. */
static cg_status cg_topk_candidates_(const cg_kernels_ *kernels, const float *x, size_t n, size_t k, cg_list_ *list,
    cg_producer_ *fill, uint32_t *bound) {
    uint32_t lo = 0, hi = 0x80000000u; /* the k-th key is in [lo, hi) */
    size_t at_least_lo = n, at_least_hi = 0;
    const cg_producer_ *lazy = fill && fill->lazy ? fill : NULL;
    if (lazy) fill = NULL;
    list->has_all_ties = 1;
    for (uint32_t tries = 0;; tries++) {
        *bound = lo;
        if (fill) *bound = fill->threshold_hint;
        else if (n > CG_CHUNK_) {
            if (tries < 8)
                *bound = cg_threshold_estimate_(
                    x, lazy, n, k - at_least_hi, at_least_lo - at_least_hi, lo, hi, tries, list->value, cg_both_signs_);
            else *bound = lo + (hi - lo) / 2;
            if (*bound == 0 && hi > 1) *bound = 1; /* zeros may be most of them, and need no sorting */
        }
        if (fill       ? cg_filter_producing_(kernels, x, n, *bound, list, fill)
                : lazy ? cg_filter_lazy_(kernels, lazy, n, *bound, list)
                       : cg_filter_vector_(kernels, x, n, *bound, list)) {
            fill = NULL;
            if (list->count >= k) break;
            hi = *bound;
            at_least_hi = list->count;
            /* all that are not zero are in the list, and the k-th is */
            if (hi == 1) {
                if (kernels->absmax_bits(list->value, list->count) >= CG_INF_BITS_) return CG_E_NONFINITE;
                cg_filter_with_ties_(kernels, x, lazy, n, 0, list->count, k, list);
                list->has_all_ties = 0;
                *bound = 0;
                return CG_OK;
            }
        } else {
            size_t above;
            fill = NULL;
            if (cg_count_above_all_(kernels, x, lazy, n, *bound, &above) >= CG_INF_BITS_) return CG_E_NONFINITE;
            if (above < k) { /* more than k reach it, so it is the k-th itself */
                cg_filter_with_ties_(kernels, x, lazy, n, *bound, above, k, list);
                list->has_all_ties = 0;
                COMPGRAD_ASSERT(list->count == k);
                return CG_OK;
            }
            lo = *bound + 1;
            at_least_lo = above;
        }
    }
    return kernels->absmax_bits(list->value, list->count) >= CG_INF_BITS_ ? CG_E_NONFINITE : CG_OK;
}
/* The rank-th largest magnitude of n values (rank from 1 to n), as bits. *rank becomes its place among its equals:
   so many of them belong to the *rank largest. */
CG_OFFERED_ uint32_t cg_kth_magnitude_(const float *v, size_t n, size_t *rank) {
    return cg_kth_(v, n, rank, 0, CG_ABS_MASK_, cg_both_signs_);
}
