/* ---- >>lists: selections that shrink on their way ---- */

static void cg_list_wrap_(const cg_ex_ *ex, int which, size_t n, cg_list_ *list) {
    const size_t bytes = 8 * (ex->mem.list_cap + CG_SLACK_) + 8 * (((uint64_t)ex->n >> 32) + 2);
    uint8_t *p = ex->mem.lists + (size_t)which * bytes;
    memset(list, 0, sizeof *list);
    list->segment_count = n ? (((uint64_t)n - 1) >> 32) + 1 : 1;
    list->segment_start = (uint64_t *)(void *)p;
    memset(list->segment_start, 0, 8 * (size_t)(list->segment_count + 1));
    list->index_low = (uint32_t *)(void *)(p + 8 * (((uint64_t)ex->n >> 32) + 2));
    list->value = (float *)(void *)(list->index_low + ex->mem.list_cap + CG_SLACK_);
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
    float no_output = 0.0f;
    const cg_status s = cg_decoder_open_(&r->d, NULL, packet, len, &no_output, n, 1);
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
CG_NOINLINE_ cg_status cg_threshold_split_(cg_ex_ *ex, const uint8_t *packet, size_t len, size_t n,
    uint32_t threshold_bits, uint64_t ties, uint8_t *kept, size_t *kept_len, uint8_t *dropped, size_t dropped_cap,
    size_t index_base, size_t *dropped_len) {
    cg_packet_reader_ r;
    cg_list_ keep, drop;
    cg_info info;
    uint64_t index;
    float value;
    cg_status s = cg_packet_reader_open_(&r, packet, len, n);
    if (s != CG_OK) return s;
    if (r.d.info.k > ex->mem.list_cap) return CG_E_CORRUPT; /* somebody sent more than there can be */
    cg_list_wrap_(ex, 0, n, &keep);
    cg_list_wrap_(ex, 1, ex->n, &drop);
    while (cg_packet_reader_next_(&r, &index, &value)) {
        const uint32_t magnitude_bits = cg_as_bits_(value) & CG_ABS_MASK_;
        const int equal = magnitude_bits == threshold_bits && ties;
        ties -= (uint64_t)equal;
        if (magnitude_bits > threshold_bits || equal) cg_list_append_(&keep, index, value);
        else cg_list_append_(&drop, index + index_base, -value);
    }
    info = cg_sparse_info_(r.d.info.tag, n);
    s = cg_packet_from_list_(&info, n, &keep, kept, ex->reduced.cap, kept_len);
    info = cg_sparse_info_(ex->desc.tag, ex->n);
    if (s == CG_OK) s = cg_packet_from_list_(&info, ex->n, &drop, dropped, dropped_cap, dropped_len);
    return s;
}
static cg_status cg_reduce_two_(
    cg_ex_ *ex, const uint8_t *a, size_t a_len, const uint8_t *b, size_t b_len, uint8_t *out, size_t cap, size_t *len) {
    const void *both[2];
    size_t lens[2];
    both[0] = a;
    both[1] = b;
    lens[0] = a_len;
    lens[1] = b_len;
    return cg_reduce_(both, lens, 2, 0, out, cap, len, ex->mem.scratch, ex->mem.scratch_bytes);
}
/* D(used) = what was sent less what was dropped here. */
static cg_status cg_contribution_less_dropped_(cg_ex_ *ex) {
    cg_status s;
    if (!ex->dropped.any) return CG_OK;
    s = cg_reduce_two_(ex, ex->own.packets, (size_t)ex->own.offset[1], ex->dropped.buf[ex->dropped.flip],
        ex->dropped.len, ex->contrib.packets, ex->contrib.cap, &ex->contrib.len);
    ex->report.used = ex->contrib.packets;
    return s;
}
