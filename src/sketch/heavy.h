/* ---- >>heavy ---- */

typedef struct cg_heavy_search_ {
    cg_op op;
    cg_info info;
    cg_list_ list;
    cg_producer_ fill;
    cg_selector_ picker;
    const cg_sketch *sketch;
    uint32_t threshold_bits;
    double threshold;
    uint64_t visits_left;
} cg_heavy_search_;

static cg_op cg_heavy_search_op_(size_t k) {
    cg_op op = cg_topk(1.0f);
    op.k = k ? k : 1;
    return op;
}
CG_API_ size_t cg_sketch_heavy_scratch(const cg_sketch *sketch, size_t k) {
    const cg_op op = cg_heavy_search_op_(k);
    return sketch ? cg_scratch(&op, sketch->desc.n) : 0;
}
static cg_status cg_heavy_search_open_(cg_heavy_search_ *h, const cg_sketch *s, size_t k, void *scratch, size_t bytes) {
    size_t need;
    memset(h, 0, sizeof *h);
    h->sketch = s;
    h->op = cg_heavy_search_op_(k);
    need = cg_scratch(&h->op, s->desc.n);
    if (!need || need > bytes) return CG_E_CAPACITY;
    if (!scratch && s->desc.n) return CG_E_ARG;
    cg_list_in_scratch_(&h->list, &h->op, s->desc.n, scratch);
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
    return CG_OK;
}
/* Has a group the energy of a value of `least`? Its cells in all rows; too few is rare, too many only costs time. */
static int cg_group_may_be_heavy_(const cg_sketch *s, int level, uint64_t group, double least) {
    double sum = 0.0;
    uint32_t sign;
    for (int r = 0; r < s->desc.rows; r++) {
        const double c = (double)*cg_group_cell_(s, r, level, group, &sign);
        sum += c * c;
    }
    return sum * 16.0 >= cg_times64_(least, least) * (double)s->desc.rows;
}
/* All of a group that reach the bound, ascending; 0: they do not fit, or it takes too long. */
static int cg_heavy_search_group_(cg_heavy_search_ *h, int level, uint64_t group) {
    const cg_sketch *s = h->sketch;
    float line[CG_SKETCH_LINE_];
    if (h->visits_left-- == 0) return 0;
    if (!cg_group_may_be_heavy_(s, level, group, h->threshold)) return 1;
    if (level == 1) {
        const size_t many = cg_line_len_(s, group), first = (size_t)group * CG_SKETCH_LINE_;
        cg_sketch_estimate_range_(s, first, many, line);
        for (size_t e = 0; e < many; e++)
            if ((cg_as_bits_(line[e]) & CG_ABS_MASK_) >= h->threshold_bits) {
                while (h->list.block_sum < (double)((uint64_t)(first + e) >> 32))
                    h->list.segment_start[(size_t)(h->list.block_sum += 1.0)] = h->list.count;
                cg_list_add_(&h->list, first + e, line[e]);
            }
        return h->list.count <= h->list.capacity;
    }
    for (uint64_t c = group * CG_SKETCH_LINE_; c < (group + 1) * CG_SKETCH_LINE_ && c < cg_group_count_(s, level - 1);
         c++)
        if (!cg_heavy_search_group_(h, level - 1, c)) return 0;
    return 1;
}
/* By groups: is that possible, and has it been done? Costs at most about what looking at every coordinate does. */
static int cg_heavy_search_groups_(cg_heavy_search_ *h, double least) {
    const cg_sketch *s = h->sketch;
    if (!s->levels || least <= 0.0) return 0;
    h->threshold = least;
    h->threshold_bits = cg_as_bits_(cg_saturate64_(least)) & CG_ABS_MASK_;
    h->threshold_bits += (double)cg_as_float_(h->threshold_bits) < least;
    h->visits_left = s->desc.n / 64;
    h->list.count = 0;
    h->list.block_sum = 0.0; /* the segment of 2^32 that has begun */
    h->list.segment_start[0] = 0;
    for (uint64_t g = 0; g < cg_group_count_(s, s->levels); g++)
        if (!cg_heavy_search_group_(h, s->levels, g)) return 0;
    for (uint64_t seg = (uint64_t)h->list.block_sum + 1; seg <= h->list.segment_count; seg++)
        h->list.segment_start[seg] = h->list.count;
    return 1;
}
static void cg_heavy_search_output_(const cg_heavy_search_ *h, uint64_t *index, float *value) {
    for (uint64_t seg = 0; seg < h->list.segment_count; seg++)
        for (size_t i = (size_t)h->list.segment_start[seg]; i < (size_t)h->list.segment_start[seg + 1]; i++) {
            index[i] = seg << 32 | h->list.index_low[i];
            cg_store_(value, i, h->list.value[i]);
        }
}
static cg_status cg_heavy_search_topk_(cg_heavy_search_ *h, size_t k) {
    const cg_sketch *s = h->sketch;
    const double norm = s->levels ? cg_sketch_norm_(s) : 0.0,
                 sure = 4.0 * norm / cg_sqrt_((double)cg_min_(s->desc.cols, s->desc.groups ? s->desc.groups : 1));
    for (double least = norm / cg_sqrt_((double)k); s->levels && least >= sure; least *= 0.5)
        if (!cg_heavy_search_groups_(h, least)) break;
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
/* All of at least `least`, but no more than the k largest. */
static cg_status cg_heavy_search_above_(cg_heavy_search_ *h, double least, size_t k) {
    const double sure = h->sketch->levels
        ? 4.0 * cg_sketch_norm_(h->sketch) / cg_sqrt_((double)cg_min_(h->sketch->desc.cols, h->sketch->desc.groups))
        : 0.0;
    const uint32_t about = cg_as_bits_(cg_saturate64_(least)) & CG_ABS_MASK_,
                   bound = about + ((double)cg_as_float_(about) < least);
    if (!(h->sketch->levels && least >= sure && cg_heavy_search_groups_(h, least)) &&
        !cg_filter_lazy_(h->picker.kernels, &h->fill, h->sketch->desc.n, bound, &h->list))
        return cg_select_topk_(&h->picker, k); /* too many: all of the largest are above it */
    if (h->picker.kernels->absmax_bits(h->list.value, h->list.count) >= CG_INF_BITS_) return CG_E_NONFINITE;
    if (h->list.count > k) cg_list_keep_topk_(&h->picker, k, bound);
    return CG_OK;
}
static cg_status cg_sketch_heavy_above_(const cg_sketch *s, double tau, size_t k, uint64_t *index, float *value,
    size_t *count, void *scratch, size_t scratch_bytes) {
    const double norm = cg_sketch_norm_(s);
    cg_heavy_search_ h;
    cg_status status;
    *count = 0;
    k = cg_min_(k, s->desc.n);
    if (!k || norm == 0.0) return CG_OK;
    if (!cg_is_finite64_(norm)) return CG_E_NONFINITE;
    status = cg_heavy_search_open_(&h, s, k, scratch, scratch_bytes);
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
/* The rest of k: of the coordinates that are not in the list, numbered in their order as a circle, one of every
   stretch of about equal length. The circle begins anywhere, so all have the same chance, though stretches differ
   by one. */
static uint64_t cg_heavymix_sample_(uint64_t key, uint64_t j, uint64_t others, uint64_t more) {
    const uint64_t begin = j * (others / more) + j * (others % more) / more,
                   end = (j + 1) * (others / more) + (j + 1) * (others % more) / more;
    return cg_mix64_(key) % others + begin + cg_mix64_(key + (j + 1) * CG_GOLDEN_) % (end - begin);
}
static void cg_heavymix_fill_(const cg_sketch *s, size_t heavy, size_t k, uint64_t key, uint64_t *index, float *value) {
    const uint64_t others = s->desc.n - heavy, more = k - heavy;
    uint64_t inside = 0; /* stretches whose choice is not beyond the end */
    size_t h = heavy, at = k;
    while (inside < more && cg_heavymix_sample_(key, inside, others, more) < others) inside++;
    for (uint64_t i = 0; i < more; i++) { /* from behind, into the same arrays */
        const uint64_t which =
            cg_heavymix_sample_(key, i < inside ? inside - 1 - i : more - 1 - (i - inside), others, more) % others;
        /* h heavy ones at most are below it, if the last of them is above */
        while (h && index[h - 1] >= which + h) {
            h--;
            at--;
            index[at] = index[h];
            value[at] = value[h];
        }
        at--;
        index[at] = which + h;
        value[at] = cg_sketch_estimate_(s, which + h);
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
