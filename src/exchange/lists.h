/* ---- >>lists: selections that shrink on their way ---- */

static void cg_list_wrap_(const cg_ex_ *x, int which, size_t n, cg_list_ *list) {
    const size_t bytes = 8 * (x->list_room + CG_SLACK_) + 8 * (((uint64_t)x->n >> 32) + 2);
    uint8_t *p = x->lists + (size_t)which * bytes;
    memset(list, 0, sizeof *list);
    list->segment_count = n ? (((uint64_t)n - 1) >> 32) + 1 : 1;
    list->segment_start = (uint64_t *)(void *)p;
    memset(list->segment_start, 0, 8 * (size_t)(list->segment_count + 1));
    list->index_low = (uint32_t *)(void *)(p + 8 * (((uint64_t)x->n >> 32) + 2));
    list->value = (float *)(void *)(list->index_low + x->list_room + CG_SLACK_);
}
/* Indices must ascend. */
static void cg_list_append_(cg_list_ *list, uint64_t index, float value) {
    for (uint64_t s = (index >> 32) + 1; s <= list->segment_count; s++) list->segment_start[s] = list->count + 1;
    cg_list_add_(list, (size_t)index, value);
}
static cg_info cg_sparse_info_(cg_tag tag, size_t n) {
    cg_info info = CG_ZERO;
    info.op = cg_threshold(0.0f);
    info.tag = tag;
    info.n = info.drawn = n;
    return info;
}
typedef struct cg_packet_reader_ {
    cg_decoder_ d;
    cg_index_reader_ index;
    uint64_t at[CG_SPARSE_BATCH_];
    size_t next;
} cg_packet_reader_;
static cg_status cg_packet_reader_open_(cg_packet_reader_ *r, const uint8_t *packet, size_t len, size_t n) {
    float none = 0.0f;
    const cg_status s = cg_decoder_open_(&r->d, NULL, packet, len, &none, n, 1);
    if (s == CG_OK) r->index = cg_index_open_(&r->d.info, r->d.index);
    r->next = 0;
    return s;
}
static int cg_packet_reader_next_(cg_packet_reader_ *r, uint64_t *index, float *value) { /* of an f32 packet */
    const size_t k = (size_t)r->d.info.k;
    if (r->next == k) return 0;
    if (r->next % CG_SPARSE_BATCH_ == 0)
        cg_index_get_per_value_(&r->index, r->at, cg_min_(CG_SPARSE_BATCH_, k - r->next));
    *index = r->at[r->next % CG_SPARSE_BATCH_];
    *value = cg_as_float_(cg_get32_(r->d.codes + 4 * r->next));
    r->next++;
    return 1;
}
/* Of a packet's values those above the key, and `ties` that equal it, go to `kept`; the others, negated, to
   `lost`, from index `base` of n on. */
CG_NOINLINE_ cg_status cg_threshold_split_(cg_ex_ *x, const uint8_t *packet, size_t len, size_t n, uint32_t key,
    uint64_t ties, uint8_t *kept, size_t *kept_len, uint8_t *lost, size_t lost_cap, size_t base, size_t *lost_len) {
    cg_packet_reader_ r;
    cg_list_ keep, drop;
    cg_info info;
    uint64_t index;
    float value;
    cg_status s = cg_packet_reader_open_(&r, packet, len, n);
    if (s != CG_OK) return s;
    if (r.d.info.k > x->list_room) return CG_E_CORRUPT; /* somebody sent more than there can be */
    cg_list_wrap_(x, 0, n, &keep);
    cg_list_wrap_(x, 1, x->n, &drop);
    while (cg_packet_reader_next_(&r, &index, &value)) {
        const uint32_t m = cg_as_bits_(value) & CG_ABS_MASK_;
        const int equal = m == key && ties;
        ties -= (uint64_t)equal;
        if (m > key || equal) cg_list_append_(&keep, index, value);
        else cg_list_append_(&drop, index + base, -value);
    }
    info = cg_sparse_info_(r.d.info.tag, n);
    s = cg_packet_from_list_(&info, n, &keep, kept, x->result_cap, kept_len);
    info = cg_sparse_info_(x->desc.tag, x->n);
    if (s == CG_OK) s = cg_packet_from_list_(&info, x->n, &drop, lost, lost_cap, lost_len);
    return s;
}
static cg_status cg_reduce_two_(
    cg_ex_ *x, const uint8_t *a, size_t a_len, const uint8_t *b, size_t b_len, uint8_t *out, size_t cap, size_t *len) {
    const void *both[2];
    size_t lens[2];
    both[0] = a;
    both[1] = b;
    lens[0] = a_len;
    lens[1] = b_len;
    return cg_reduce_(both, lens, 2, 0, out, cap, len, x->scratch, x->scratch_bytes);
}
/* D(used) = what was sent less what was dropped here. */
static cg_status cg_contribution_less_dropped_(cg_ex_ *x) {
    cg_status s;
    if (!x->lost) return CG_OK;
    s = cg_reduce_two_(
        x, x->own, (size_t)x->part_at[1], x->lose[x->flip], x->lost_len, x->used, x->used_cap, &x->used_len);
    x->report.used = x->used;
    return s;
}
