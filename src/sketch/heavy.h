/* heavy: the heaviest coordinates of a sketch

   Offers   the public cg_sketch_heavy, cg_sketch_heavy_above, cg_sketch_heavymix and their scratch
   Needs    sketch, estimate; lists and top-k selection of core
   Touches  the caller's index, value and scratch
   Estimates are values that a lazy producer makes, so top-k of core searches them as it would a vector, in one or a few
   passes over all coordinates. With groups a search from the top level down comes first: it opens only groups with
   enough energy. It is reliable for magnitudes above 4 |x| / sqrt(min(cols, groups)), and gives up where it would cost
   more than a full pass. */

/* One search. It refers to itself, so it must not be moved. */
typedef struct cg_heavy_search_ {
    cg_op op;            /* top-k, for the sizes of the list */
    cg_info info;        /* where the selection leaves its threshold */
    cg_list_ list;       /* what was found, in the caller's scratch; ascending by index */
    cg_producer_ fill;   /* makes estimates */
    cg_selector_ picker; /* top-k of them */
    const cg_sketch *sketch;
    uint32_t threshold_bits; /* of a search by groups: the smallest magnitude looked for, as float bits rounded up */
    double threshold;        /* the same, not rounded */
    uint64_t visits_left;    /* groups that may still be looked at */
} cg_heavy_search_;

/* CG_E_NONFINITE if a value is NaN or Inf, else CG_OK. */
static cg_status cg_check_finite_(const float *x, size_t n) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    for (size_t i = 0; i < n; i += CG_BLOCK_)
        if (CG_KERNEL_(kernels, absmax_bits(cg_at_(x, i), cg_min_(CG_BLOCK_, n - i))) >= CG_INF_BITS_)
            return CG_E_NONFINITE;
    return CG_OK;
}
/* Top-k as an operator: cg_scratch and cg_list_open_ read k and the kind of list from it. */
static cg_op cg_heavy_search_op_(size_t k) {
    cg_op op = cg_topk(1.0f);
    op.k = k ? k : 1;
    return op;
}
CG_API_ size_t cg_sketch_heavy_scratch(const cg_sketch *sketch, size_t k) {
    const cg_op op = cg_heavy_search_op_(k);
    return sketch ? cg_scratch(&op, sketch->desc.n) : 0;
}
/* Prepares a search for up to k coordinates, k from 1. CG_E_CAPACITY: scratch is too small. CG_E_NONFINITE: a sum has
   become too large for a float, in any cell: a median of rows might not show it, and no threshold would be finite. */
static cg_status cg_heavy_search_open_(cg_heavy_search_ *h, const cg_sketch *s, size_t k, void *scratch, size_t bytes) {
    size_t need;
    memset(h, 0, sizeof *h);
    h->sketch = s;
    h->op = cg_heavy_search_op_(k);
    need = cg_scratch(&h->op, s->desc.n);
    if (!need || need > bytes) return CG_E_CAPACITY;
    if (!scratch && s->desc.n) return CG_E_ARG;
    cg_list_open_(&h->list, &h->op, s->desc.n, scratch);
    h->fill.make = cg_sketch_estimate_range_;
    h->fill.user = s;
    h->fill.n = s->desc.n;
    h->fill.step = CG_CHUNK_;
    h->fill.lazy = 1;
    h->picker.kernels = cg_kernels_now_();
    h->picker.producer = &h->fill;
    h->picker.n = s->desc.n;
    h->picker.list = &h->list;
    h->picker.info = &h->info;
    return cg_check_finite_(s->cells, s->count);
}
/* Whether a group may hold a value of that magnitude: the mean energy of its cells over rows is at least 1/16 of the
   value's. That a group is missed is rare; one too many only costs time. */
static int cg_group_may_be_heavy_(const cg_sketch *s, int level, uint64_t group, double threshold) {
    double sum = 0.0;
    uint32_t sign;
    for (int r = 0; r < s->desc.rows; r++) {
        const double c = (double)*cg_group_cell_(s, r, level, group, &sign);
        sum += c * c;
    }
    return sum * 16.0 >= cg_times64_(threshold, threshold) * (double)s->desc.rows;
}
/* Adds all coordinates of a group whose estimates reach the threshold to the list, ascending. 0: the list is full, or
   the visits are used up. list.block_sum is the segment of 2^32 indices that has begun. */
static int cg_heavy_search_group_(cg_heavy_search_ *h, int level, uint64_t group) {
    const cg_sketch *s = h->sketch;
    float line[CG_SKETCH_LINE_];
    if (h->visits_left-- == 0) return 0;
    if (!cg_group_may_be_heavy_(s, level, group, h->threshold)) return 1;
    if (level == 1) {
        const size_t many = cg_line_len_(s, group), first = (size_t)group * CG_SKETCH_LINE_;
        cg_sketch_estimate_range_(s, first, many, line);
        for (size_t offset = 0; offset < many; offset++)
            if ((cg_as_bits_(line[offset]) & CG_ABS_MASK_) >= h->threshold_bits) {
                while (h->list.block_sum < (double)((uint64_t)(first + offset) >> 32))
                    h->list.segment_start[(size_t)(h->list.block_sum += 1.0)] = h->list.count;
                cg_list_add_(&h->list, first + offset, line[offset]);
            }
        return h->list.count <= h->list.capacity;
    }
    for (uint64_t child = group * CG_SKETCH_LINE_;
         child < (group + 1) * CG_SKETCH_LINE_ && child < cg_group_count_(s, level - 1); child++)
        if (!cg_heavy_search_group_(h, level - 1, child)) return 0;
    return 1;
}
/* The list becomes all coordinates of at least that magnitude, found by groups. 0: there are no groups, the list is too
   short, or it would cost more than to look at every coordinate; the list is then unspecified. */
static int cg_heavy_search_groups_(cg_heavy_search_ *h, double threshold) {
    const cg_sketch *s = h->sketch;
    if (!s->levels || threshold <= 0.0) return 0;
    h->threshold = threshold;
    h->threshold_bits = cg_as_bits_(cg_saturate64_(threshold)) & CG_ABS_MASK_;
    h->threshold_bits += (double)cg_as_float_(h->threshold_bits) < threshold;
    h->visits_left = s->desc.n / 64;
    h->list.count = 0;
    h->list.block_sum = 0.0; /* the segment that has begun */
    h->list.segment_start[0] = 0;
    for (uint64_t group = 0; group < cg_group_count_(s, s->levels); group++)
        if (!cg_heavy_search_group_(h, s->levels, group)) return 0;
    for (uint64_t seg = (uint64_t)h->list.block_sum + 1; seg <= h->list.segment_count; seg++)
        h->list.segment_start[seg] = h->list.count;
    return 1;
}
/* Writes the list to the caller's arrays, which have room for list.count. */
static void cg_heavy_search_output_(const cg_heavy_search_ *h, uint64_t *index, float *value) {
    for (uint64_t seg = 0; seg < h->list.segment_count; seg++)
        for (size_t i = (size_t)h->list.segment_start[seg]; i < (size_t)h->list.segment_start[seg + 1]; i++) {
            index[i] = seg << 32 | h->list.index_low[i];
            cg_store_(value, i, h->list.value[i]);
        }
}
/* The list becomes the k heaviest, k from 1 to n: by groups, with a threshold that is halved while it finds too few and
   is reliable, or else by a full search. */
static cg_status cg_heavy_search_topk_(cg_heavy_search_ *h, size_t k) {
    const cg_sketch *s = h->sketch;
    const double norm = s->levels ? cg_sketch_norm_(s) : 0.0,
                 reliable = 4.0 * norm / cg_sqrt_((double)cg_min_(s->desc.cols, s->desc.groups ? s->desc.groups : 1));
    for (double threshold = norm / cg_sqrt_((double)k); s->levels && threshold >= reliable; threshold *= 0.5)
        if (!cg_heavy_search_groups_(h, threshold)) break;
        else if (h->list.count >= k) {
            cg_list_keep_topk_(&h->picker, k, h->threshold_bits);
            return CG_OK;
        }
    return cg_select_topk_(&h->picker, k);
}
CG_API_ cg_status cg_sketch_heavy(
    const cg_sketch *sketch, size_t k, uint64_t *index, float *value, void *scratch, size_t scratch_bytes) {
    cg_heavy_search_ h;
    cg_fenv_ env;
    cg_status s;
    if (!sketch || (k && sketch->desc.n && (!index || !value))) return CG_E_ARG;
    k = cg_min_(k, sketch->desc.n);
    if (!k) return CG_OK;
    env = cg_fenv_enter_();
    s = cg_heavy_search_open_(&h, sketch, k, scratch, scratch_bytes);
    if (s == CG_OK) s = cg_heavy_search_topk_(&h, k);
    if (s == CG_OK) cg_heavy_search_output_(&h, index, value);
    cg_fenv_leave_(env);
    return s;
}
/* The list becomes all coordinates of at least that magnitude, but no more than the k largest. */
static cg_status cg_heavy_search_above_(cg_heavy_search_ *h, double threshold, size_t k) {
    const double reliable = h->sketch->levels
        ? 4.0 * cg_sketch_norm_(h->sketch) / cg_sqrt_((double)cg_min_(h->sketch->desc.cols, h->sketch->desc.groups))
        : 0.0;
    const uint32_t rounded = cg_as_bits_(cg_saturate64_(threshold)) & CG_ABS_MASK_,
                   threshold_bits = rounded + ((double)cg_as_float_(rounded) < threshold);
    if (!(h->sketch->levels && threshold >= reliable && cg_heavy_search_groups_(h, threshold)) &&
        !cg_filter_lazy_(h->picker.kernels, &h->fill, h->sketch->desc.n, threshold_bits, &h->list))
        return cg_select_topk_(&h->picker, k); /* more than fit reach the threshold, so the k largest do */
    if (CG_KERNEL_(h->picker.kernels, absmax_bits(h->list.value, h->list.count)) >= CG_INF_BITS_) return CG_E_NONFINITE;
    if (h->list.count > k) cg_list_keep_topk_(&h->picker, k, threshold_bits);
    return CG_OK;
}
/* As the public call, with arguments that have been checked. */
static cg_status cg_sketch_heavy_above_(const cg_sketch *s, double tau, size_t k, uint64_t *index, float *value,
    size_t *count, void *scratch, size_t scratch_bytes) {
    const double norm = cg_sketch_norm_(s);
    cg_heavy_search_ h;
    cg_status status;
    *count = 0;
    k = cg_min_(k, s->desc.n);
    if (!k) return CG_OK;
    status = cg_heavy_search_open_(&h, s, k, scratch, scratch_bytes);
    if (status == CG_OK && norm == 0.0) return CG_OK;
    if (status == CG_OK) status = cg_heavy_search_above_(&h, cg_times64_(tau, norm), k);
    if (status != CG_OK) return status;
    cg_heavy_search_output_(&h, index, value);
    *count = h.list.count;
    return CG_OK;
}
CG_API_ cg_status cg_sketch_heavy_above(const cg_sketch *sketch, double tau, size_t k, uint64_t *index, float *value,
    size_t *count, void *scratch, size_t scratch_bytes) {
    cg_fenv_ env;
    cg_status s;
    if (count) *count = 0;
    if (!sketch || !count || !(tau > 0.0 && tau <= 1e300) || (k && sketch->desc.n && (!index || !value)))
        return CG_E_ARG;
    env = cg_fenv_enter_();
    s = cg_sketch_heavy_above_(sketch, tau, k, index, value, count, scratch, scratch_bytes);
    cg_fenv_leave_(env);
    return s;
}
/* HEAVYMIX fills up with random ones of the coordinates that are not heavy. These `others` are numbered in their order,
   as a circle that begins at a random one, and cut into fill_count stretches of about equal length; each stretch gives
   one. So all have the same chance, though lengths differ by one. Returns what stretch j gives, in [0, 2 others):
   modulo `others` it is a number on the circle. */
static uint64_t cg_heavymix_sample_(uint64_t key, uint64_t j, uint64_t others, uint64_t fill_count) {
    const uint64_t begin = j * (others / fill_count) + j * (others % fill_count) / fill_count,
                   end = (j + 1) * (others / fill_count) + (j + 1) * (others % fill_count) / fill_count;
    return cg_mix64_(key) % others + begin + cg_mix64_(key + (j + 1) * CG_GOLDEN_) % (end - begin);
}
/* index and value hold `heavy` coordinates, ascending, and are filled up to k, still ascending. heavy < k <= n. */
static void cg_heavymix_fill_(const cg_sketch *s, size_t heavy, size_t k, uint64_t key, uint64_t *index, float *value) {
    const uint64_t others = s->desc.n - heavy, fill_count = k - heavy;
    uint64_t unwrapped = 0; /* the first stretches, whose numbers are below `others` */
    size_t h = heavy, at = k;
    while (unwrapped < fill_count && cg_heavymix_sample_(key, unwrapped, others, fill_count) < others) unwrapped++;
    for (uint64_t i = 0; i < fill_count; i++) { /* from the largest down, into the same arrays from their ends */
        const uint64_t other = cg_heavymix_sample_(key,
                                   i < unwrapped ? unwrapped - 1 - i : fill_count - 1 - (i - unwrapped), others,
                                   fill_count) %
            others;
        /* its coordinate is other + the number of heavy ones below it: those above it move to the end first */
        while (h && index[h - 1] >= other + h) {
            h--;
            at--;
            index[at] = index[h];
            value[at] = value[h];
        }
        at--;
        index[at] = other + h;
        value[at] = cg_sketch_estimate_(s, other + h);
    }
}
CG_API_ cg_status cg_sketch_heavymix(const cg_sketch *sketch, size_t k, const cg_tag *tag, uint64_t *index,
    float *value, void *scratch, size_t scratch_bytes) {
    const cg_tag none = CG_ZERO;
    size_t count = 0;
    cg_fenv_ env;
    cg_status s;
    if (!sketch || (k && sketch->desc.n && (!index || !value))) return CG_E_ARG;
    k = cg_min_(k, sketch->desc.n);
    if (!k) return CG_OK;
    env = cg_fenv_enter_();
    s = cg_sketch_heavy_above_(sketch, 1.0 / cg_sqrt_((double)k), k, index, value, &count, scratch, scratch_bytes);
    if (s == CG_OK && count < k) cg_heavymix_fill_(sketch, count, k, cg_shared_key_(tag ? tag : &none), index, value);
    cg_fenv_leave_(env);
    return s;
}
