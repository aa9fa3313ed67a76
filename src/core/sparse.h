/* sparse: sparse f32 packets as rows of (index, value) pairs, written and read pair by pair

   Offers   a list of pairs in the caller's memory, the packet made of it, and a reader of packets
   Needs    select (cg_list_), indices, packet, decode
   Touches  nothing but its arguments
   Other headers may use: cg_list_append_, cg_list_in_mem_, cg_list_kth_, cg_sparse_packet_bound_,
   cg_sparse_packet_put_, cg_sparse_reader_, cg_sparse_reader_fill_, cg_sparse_reader_open_
   Core has no use for these itself: its selections fill lists by the vector, and its decoders read by the chunk. */

/* Returns the bytes of a list of `capacity` pairs with indices below n, which saturate. mem: an empty list in so many
   bytes (or as many as for a larger n), aligned to 8; NULL: only counts. */
CG_OFFERED_ uint64_t cg_list_in_mem_(cg_list_ *list, void *mem, uint64_t n, uint64_t capacity) {
    const uint64_t bytes = cg_add_sat_(cg_mul_sat_(8, cg_add_sat_(capacity, CG_SLACK_)), 8 * ((n >> 32) + 2));
    if (!mem) return bytes;
    memset(list, 0, sizeof *list);
    list->capacity = (size_t)capacity;
    list->segment_count = n ? ((n - 1) >> 32) + 1 : 1;
    list->segment_start = (uint64_t *)mem;
    memset(list->segment_start, 0, 8 * (size_t)(list->segment_count + 1));
    list->index_low = (uint32_t *)(void *)(list->segment_start + list->segment_count + 1);
    list->value = (float *)(void *)(list->index_low + (size_t)capacity + CG_SLACK_);
    return bytes;
}
/* Indices must ascend; the caller sees to the capacity. */
CG_OFFERED_ void cg_list_append_(cg_list_ *list, uint64_t index, float value) {
    for (uint64_t s = (index >> 32) + 1; s <= list->segment_count; s++) list->segment_start[s] = list->count + 1;
    cg_list_add_(list, (size_t)index, value);
}
/* Magnitude bits of the kth largest value, kth from 1 to list->count; *kth becomes its rank among its equals, the
   number of them that belong to the kth largest. */
CG_OFFERED_ uint32_t cg_list_kth_(const cg_list_ *list, size_t *kth) {
    return cg_kth_(list->value, list->count, kth, 0, CG_INF_BITS_ - 1, cg_both_signs_);
}

/* Bytes of a packet of at most `most` of n values; saturates. */
CG_OFFERED_ uint64_t cg_sparse_packet_bound_(uint64_t n, uint64_t most) {
    const cg_op any = cg_threshold(0.0f);
    if (most > n) most = n;
    return cg_add_sat_(CG_HEADER_BYTES, cg_add_sat_(cg_mul_sat_(4, most), cg_index_bound_(&any, n, most)));
}
/* The list (NULL: nothing) as a packet of cg_threshold(threshold) over n values. CG_E_CAPACITY: cap is too small. */
CG_OFFERED_ cg_status cg_sparse_packet_put_(
    float threshold, const cg_tag *tag, size_t n, const cg_list_ *list, uint8_t *out, size_t cap, size_t *len) {
    cg_info info = CG_ZERO;
    cg_list_ empty = CG_ZERO;
    float no_value = 0.0f;
    empty.value = &no_value;
    info.op = cg_threshold(threshold);
    info.tag = *tag;
    info.n = info.drawn = n;
    return cg_packet_from_list_(&info, list ? list : &empty, out, cap, len);
}

/* Where a reader stands in a packet whose selection has indices of its own. */
typedef struct cg_sparse_reader_ {
    cg_index_reader_ indices;
    const uint8_t *values;        /* f32 packets without a code: little-endian, of the next pair; moved by the caller */
    size_t unread;                /* indices that have not been in the window */
    size_t window_next, window_n; /* the caller's place in the window, and its length */
    uint64_t window[CG_SPARSE_BATCH_]; /* the next indices, one for every value */
} cg_sparse_reader_;

/* At the first pair of an opened packet that has been verified; d->info.k is the number of pairs. */
CG_OFFERED_ void cg_sparse_reader_open_(cg_sparse_reader_ *r, const cg_decoder_ *d) {
    r->indices = cg_index_open_(d->kernels, &d->info, &d->plan, d->index);
    r->values = d->codes;
    r->unread = (size_t)d->info.k;
    r->window_next = r->window_n = 0;
}
/* The next indices into the window; returns how many, 0 at the end. */
CG_OFFERED_ size_t cg_sparse_reader_fill_(cg_sparse_reader_ *r) {
    r->window_next = 0;
    r->window_n = cg_min_(CG_SPARSE_BATCH_, r->unread);
    r->unread -= r->window_n;
    if (r->window_n) cg_index_get_per_value_(&r->indices, r->window, r->window_n);
    return r->window_n;
}
