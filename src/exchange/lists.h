/* ---- >>lists: selections that shrink on their way ---- */

/* List 0 or 1 of mem.lists, empty, for indices below n <= ex->n. */
static void cg_list_in_mem_(const cg_ex_ *ex, int which, size_t n, cg_list_ *list) {
    const size_t bytes = (size_t)cg_list_bytes_(ex->n, ex->mem.list_cap);
    cg_list_init_(list, ex->mem.lists + (size_t)which * bytes, n, ex->mem.list_cap);
}
static int cg_sparse_next_index_(cg_sparse_reader_ *r, uint64_t *index) {
    if (r->window_next == r->window_n && !cg_sparse_reader_fill_(r)) return 0;
    *index = r->window[r->window_next++];
    return 1;
}
static int cg_sparse_next_(cg_sparse_reader_ *r, uint64_t *index, float *value) { /* of an f32 packet */
    if (!cg_sparse_next_index_(r, index)) return 0;
    *value = cg_as_float_(cg_get32_(r->values));
    r->values += 4;
    return 1;
}
/* Of a packet's values those above the key, and `ties` that equal it, go to `kept`; the others, negated, to
   `lost`, from index `base` of n on. */
CG_NOINLINE_ cg_status cg_threshold_split_(cg_ex_ *ex, const uint8_t *packet, size_t len, size_t n,
    uint32_t threshold_bits, uint64_t ties, uint8_t *kept, size_t *kept_len, uint8_t *dropped, size_t dropped_cap,
    size_t index_base, size_t *dropped_len) {
    cg_sparse_reader_ r;
    cg_list_ keep, drop;
    cg_info info;
    uint64_t index;
    float value;
    cg_status s = cg_sparse_reader_open_(&r, NULL, packet, len, n, &info);
    if (s != CG_OK) return s;
    if (info.k > ex->mem.list_cap) return CG_E_CORRUPT; /* somebody sent more than there can be */
    cg_list_in_mem_(ex, 0, n, &keep);
    cg_list_in_mem_(ex, 1, ex->n, &drop);
    while (cg_sparse_next_(&r, &index, &value)) {
        const uint32_t magnitude_bits = cg_as_bits_(value) & CG_ABS_MASK_;
        const int equal = magnitude_bits == threshold_bits && ties;
        ties -= (uint64_t)equal;
        if (magnitude_bits > threshold_bits || equal) cg_list_append_(&keep, index, value);
        else cg_list_append_(&drop, index + index_base, -value);
    }
    s = cg_sparse_packet_put_(0.0f, &info.tag, n, &keep, kept, ex->reduced.cap, kept_len);
    if (s == CG_OK) s = cg_sparse_packet_put_(0.0f, &ex->desc.tag, ex->n, &drop, dropped, dropped_cap, dropped_len);
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
