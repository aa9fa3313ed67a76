/* list: lists of selected (index, value) pairs in scratch, and their k-th largest magnitude

   Offers   cg_list_ with its operations and its place in scratch, cg_scratch_bytes_, cg_sign_filter_, cg_kth_
   Needs    base, kernels (CG_SLACK_), stages, plan, transform (bytes of work)
   Touches  the caller's scratch
   Other headers may use: cg_list_, cg_list_add_, cg_list_open_
   Magnitudes are compared as bits: those of a float without its sign, as an integer. Every finite float is below
   CG_INF_BITS_, and NaN is above, so that whatever selects the largest finds what is not finite. */

typedef struct cg_list_ {
    uint32_t *index_low; /* indices modulo 2^32, ascending */
    float *value;
    uint64_t *segment_start; /* [s]: how many entries have an index below s*2^32; segment_count + 1 of them */
    uint64_t segment_count;
    size_t count, capacity; /* entries; arrays are longer than capacity, see cg_list_allocated_n_ */
    int has_all_ties;       /* 0: entries with the smallest magnitude in the list have equals that are not in it */
    int sum_magnitudes;     /* 1: cg_filter_vector_ sums the magnitudes of all values, selected or not */
    double magnitude_sum;   /* that sum, in f64 by chunks and blocks */
    double block_sum;       /* the part of the current block */
    void *work;             /* before the list: of the quantizer, if cg_rans_scratch_ says that it needs some */
    float *materialized;    /* behind the list: the whole transformed vector, if cg_needs_materialized_; factors */
} cg_list_;

/* Entries that a list needs while op selects. Exact top-k and its relatives look for k among
   up to twice as many candidates and a block, and fall back to counting passes where those do not fit. */
static size_t cg_list_capacity_(const cg_op *op, const cg_plan_ *plan) {
    uint64_t capacity = plan->transformed_n;
    if (plan->traits & CG_KEEPS_LARGEST_) capacity = cg_add_sat_(cg_mul_sat_(plan->max_selected, 2), CG_BLOCK_);
    /* by chunks: the candidates of one beside what the chunks before have kept */
    else if (plan->traits & CG_KEEPS_EXACTLY_) capacity = cg_add_sat_(plan->max_selected, op->select.size);
    return (size_t)(capacity < plan->transformed_n ? capacity : plan->transformed_n);
}
/* Entries to allocate: filters check the capacity after each chunk, and write CG_SLACK_ entries beyond their result.
   Never fewer for a longer vector: PermK leaves some ranks a value less than others, with the same scratch. */
static uint64_t cg_list_allocated_n_(uint64_t capacity, uint64_t transformed_n) {
    const uint64_t filled = cg_add_sat_(capacity, CG_CHUNK_);
    return cg_add_sat_(filled < transformed_n ? filled : transformed_n, CG_SLACK_);
}
/* Must the sampled or transformed vector be stored as a whole, for a selection or a user codec? */
static int cg_needs_materialized_(const cg_op *op, const cg_plan_ *plan) {
    if (cg_is_clipped_(op) && plan->traits & CG_IS_USER_CODEC_ && !(plan->traits & CG_IS_SELECTION_)) return 1;
    return !(plan->traits & CG_IS_MATRIX_) && (op->sample.id || op->transform.id) &&
        plan->traits & (CG_IS_SELECTION_ | CG_IS_USER_CODEC_);
}
/* Bytes of scratch at any alignment that compressing takes; 0: none; CG_TOO_LARGE_ on overflow. */
static uint64_t cg_scratch_bytes_(const cg_op *op, const cg_plan_ *plan) {
    const uint64_t transformed_n = plan->transformed_n;
    uint64_t bytes = cg_rans_scratch_(&op->quantize, plan->max_selected);
    if (plan->traits & CG_IS_SELECTION_) {
        bytes = cg_add_sat_(bytes, cg_mul_sat_(8, cg_list_allocated_n_(cg_list_capacity_(op, plan), transformed_n)));
        bytes = cg_add_sat_(bytes, 8 * ((transformed_n >> 32) + 2));
    }
    if (cg_needs_materialized_(op, plan)) bytes = cg_add_sat_(bytes, cg_mul_sat_(4, transformed_n));
    if (plan->traits & CG_IS_MATRIX_)
        bytes = cg_add_sat_(cg_mul_sat_(4, cg_add_sat_(transformed_n, 2)), cg_transformer_of_(op)->work_bytes(op));
    return bytes ? cg_add_sat_(bytes, 64) : 0;
}
/* An empty list in scratch, which has cg_scratch_bytes_ or is NULL if that is 0. The entries are not initialised. */
static void cg_list_in_scratch_(cg_list_ *list, const cg_op *op, const cg_plan_ *plan, void *scratch) {
    const uint64_t transformed_n = plan->transformed_n;
    uint8_t *p;
    memset(list, 0, sizeof *list);
    if (!scratch) return;
    p = (uint8_t *)scratch + (64 - ((uintptr_t)scratch & 63)) % 64;
    list->work = p;
    p += (size_t)cg_rans_scratch_(&op->quantize, plan->max_selected);
    if (plan->traits & CG_IS_SELECTION_) {
        size_t allocated_n;
        list->capacity = cg_list_capacity_(op, plan);
        list->segment_count = transformed_n ? ((transformed_n - 1) >> 32) + 1 : 1;
        allocated_n = (size_t)cg_list_allocated_n_(list->capacity, transformed_n);
        list->segment_start = (uint64_t *)(void *)p;
        p += 8 * (size_t)(list->segment_count + 1);
        list->index_low = (uint32_t *)(void *)p;
        p += 4 * allocated_n;
        list->value = (float *)(void *)p;
        p += 4 * allocated_n;
    }
    list->materialized = (float *)(void *)p;
}
/* The same for n values, for other headers. */
CG_OFFERED_ void cg_list_open_(cg_list_ *list, const cg_op *op, uint64_t n, void *scratch) {
    const cg_plan_ plan = cg_plan_of_(op, n);
    cg_list_in_scratch_(list, op, &plan, scratch);
}

/* To be called before values from index i on are listed, at least for every multiple of CG_CHUNK_. */
CG_INLINE_ void cg_list_begin_segment_(cg_list_ *list, size_t i) {
    if (((uint64_t)i & 0xffffffffu) == 0) list->segment_start[(uint64_t)i >> 32] = list->count;
}
/* Appends an entry; the caller has checked the capacity, and marks segments itself. */
CG_INLINE_ void cg_list_add_(cg_list_ *list, size_t i, float value) {
    list->index_low[list->count] = (uint32_t)i;
    list->value[list->count++] = value;
}
/* After the last entry. */
static void cg_list_close_(cg_list_ *list) { list->segment_start[list->segment_count] = list->count; }

/* Whose magnitudes count: those of all values, or only of the positive or of the negative ones. The key of a value is
   (bits ^ sign_flip) & keep_mask: its magnitude, or with the wrong sign at least 2^31, which is above every bound. */
typedef struct cg_sign_filter_ {
    uint32_t sign_flip, keep_mask;
} cg_sign_filter_;
static const cg_sign_filter_ cg_both_signs_ = { 0, CG_ABS_MASK_ };
CG_INLINE_ uint32_t cg_magnitude_key_(float v, cg_sign_filter_ filter) {
    return (cg_as_bits_(v) ^ filter.sign_flip) & filter.keep_mask;
}

enum { CG_FEW_ = 16, CG_FEW_AMONG_ = 1024 };
/* cg_kth_ for a kth of at most CG_FEW_: keeps the largest in order. v may have any alignment. */
static uint32_t cg_kth_of_few_(
    const float *v, size_t n, size_t *kth, uint32_t lo, uint32_t hi, cg_sign_filter_ filter) {
    uint32_t largest[CG_FEW_], least = lo; /* keys below `least` are not among them */
    size_t count = 0, above = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t m = cg_magnitude_key_(cg_load_(v, i), filter);
        if (m >= least && m <= hi) {
            size_t j = count < *kth ? count++ : count - 1;
            for (; j > 0 && largest[j - 1] < m; j--) largest[j] = largest[j - 1];
            largest[j] = m;
            if (count == *kth) least = largest[count - 1] + 1;
        }
    }
    while (largest[above] != largest[*kth - 1]) above++;
    lo = largest[*kth - 1];
    *kth -= above;
    return lo;
}
/* The kth largest key (kth from 1) among those in [lo, hi], of which there are at least *kth. Histograms of 2048 bins
   narrow the range until a few are left to sort. *kth becomes the position among its equals: so many of them, in the
   order of their indices, are needed beside all larger ones. v is aligned. */
static uint32_t cg_kth_(const float *v, size_t n, size_t *kth, uint32_t lo, uint32_t hi, cg_sign_filter_ filter) {
    enum { FEW = 64 };
    const unsigned bin_bits = n < 2048 ? 8 : 11; /* clearing the bins should not take longer than filling them */
    size_t bins[2048];
    uint32_t few[FEW];
    if (*kth <= CG_FEW_ && n <= CG_FEW_AMONG_) return cg_kth_of_few_(v, n, kth, lo, hi, filter);
    for (;;) {
        uint32_t width = hi - lo, shift = width >> bin_bits ? cg_log2_(width) - (bin_bits - 1) : 0,
                 bin = width >> shift;
        size_t count = 0;
        memset(bins, 0, sizeof bins[0] * (bin + 1));
        for (size_t i = 0; i < n; i++) {
            uint32_t m = cg_magnitude_key_(v[i], filter) - lo;
            if (m <= width) bins[m >> shift]++;
        }
        for (; bin > 0 && bins[bin] < *kth; bin--) *kth -= bins[bin];
        lo += bin << shift;
        if (hi - lo >= 1u << shift) hi = lo + ((1u << shift) - 1u);
        if (lo == hi) return lo;
        if (bins[bin] > FEW) continue;
        for (size_t i = 0; i < n; i++) { /* insertion sort, largest first */
            uint32_t m = cg_magnitude_key_(v[i], filter);
            if (m - lo <= hi - lo) {
                size_t j = count++;
                for (; j > 0 && few[j - 1] < m; j--) few[j] = few[j - 1];
                few[j] = m;
            }
        }
        lo = few[*kth - 1];
        for (count = 0; few[count] != lo; count++) {}
        *kth -= count; /* those above it */
        return lo;
    }
}
/* Moves entries [from, to) whose magnitude is above kth_bits, and the first *ties_left that equal it, to *kept on.
   *kept <= from; both counts are updated. */
static void cg_list_compact_(
    cg_list_ *list, size_t from, size_t to, size_t *kept, uint32_t kth_bits, size_t *ties_left) {
    size_t kept_n = *kept, ties = *ties_left, i = from;
    for (; i < to && ties; i++) { /* while equals are taken */
        uint32_t m = cg_as_bits_(list->value[i]) & CG_ABS_MASK_;
        list->index_low[kept_n] = list->index_low[i];
        list->value[kept_n] = list->value[i];
        kept_n += m >= kth_bits;
        ties -= m == kth_bits;
    }
    for (; i < to; i++) { /* all have been taken */
        uint32_t m = cg_as_bits_(list->value[i]) & CG_ABS_MASK_;
        list->index_low[kept_n] = list->index_low[i];
        list->value[kept_n] = list->value[i];
        kept_n += m > kth_bits;
    }
    *kept = kept_n;
    *ties_left = ties;
}
