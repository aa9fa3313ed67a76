/* lists: sparse packets read and written pair by pair, and cut by magnitude

   Offers   cg_sparse_next_, cg_ex_list_, cg_threshold_split_, cg_reduce_two_, cg_contribution_less_dropped_;
            cg_plan_lists_, cg_plan_cuts_, cg_accepts_pairs_, cg_accepts_largest_
   Needs    memory, core's sparse and reduce
   Touches  ex->mem.lists, ex->mem.scratch; cg_contribution_less_dropped_ also ex->contrib and report.used
   For the routes merge, region and shared, and for the fold over contributors. */

/* Merge and region add fan_in packets at once and split the sum into two lists, shared writes one list (fan_in 1).
   inboxes: packets that are kept until then; merges: sums that this rank may cut, each of which drops something. */
static void cg_plan_lists_(cg_ex_ *ex, cg_arena_ *arena, uint64_t fan_in, uint64_t inboxes, uint64_t merges) {
    const uint64_t n = ex->n, max_selected = ex->plan.max_selected;
    const uint64_t max_sum_n = cg_mul_sat_(fan_in, max_selected), max_dropped = cg_mul_sat_(max_sum_n, merges),
                   contrib_bytes = cg_sparse_packet_bound_(n, cg_add_sat_(max_dropped, max_selected));
    uint64_t room = cg_sparse_packet_bound_(n, max_selected);
    cg_max_update_(&room, ex->plan.packet_room);
    ex->mem.list_cap = (size_t)(max_sum_n > n ? n : max_sum_n);
    ex->mem.lists = cg_arena_take_(arena, cg_mul_sat_(2, cg_list_in_mem_(NULL, NULL, n, ex->mem.list_cap)));
    ex->contrib.packets = cg_arena_take_(arena, contrib_bytes);
    ex->contrib.cap = (size_t)contrib_bytes;
    ex->reduced.cap = (size_t)cg_add_sat_(room, 1024);
    ex->reduced.packet = cg_arena_take_(arena, ex->reduced.cap);
    ex->mem.inbox = cg_arena_take_(arena, cg_mul_sat_(inboxes, cg_add_sat_(room, 1024)));
}
/* Behind them what merge and region need to cut a sum; buffers: of the sum, and of what was dropped. */
static void cg_plan_cuts_(
    cg_ex_ *ex, cg_arena_ *arena, uint64_t *scratch, uint64_t fan_in, uint64_t merges, int buffers) {
    const uint64_t n = ex->n, max_dropped = cg_mul_sat_(cg_mul_sat_(fan_in, ex->plan.max_selected), merges),
                   sum_bytes = cg_sparse_packet_bound_(n, ex->mem.list_cap);
    ex->dropped.cap = (size_t)cg_add_sat_(
        cg_sparse_packet_bound_(n, max_dropped), cg_mul_sat_((uint64_t)ex->transport.size, CG_HEADER_BYTES + 96));
    for (int i = 0; i < 2; i++) {
        ex->partial.buf[i] = cg_arena_take_(arena, i < buffers ? sum_bytes : 0);
        ex->dropped.buf[i] = cg_arena_take_(arena, i < buffers ? ex->dropped.cap : 0);
    }
    cg_max_update_(scratch,
        cg_add_sat_(
            cg_mul_sat_(2, cg_list_in_mem_(NULL, NULL, n, cg_add_sat_(max_dropped, ex->plan.max_selected))), 64));
}
/* Pairs of a selection that leaves about as many as it was asked for; the k largest of the whole vector. */
static int cg_accepts_pairs_(const cg_ex_ *ex) {
    return cg_is_sparse_f32_(&ex->desc.op, ex->plan.traits) && ex->plan.traits & CG_KEEPS_ABOUT_;
}
static int cg_accepts_largest_(const cg_ex_ *ex) {
    return cg_accepts_pairs_(ex) && ex->plan.traits & CG_KEEPS_LARGEST_;
}

/* List 0 or 1 of mem.lists, emptied, for up to mem.list_cap pairs with indices below n <= ex->n. */
static void cg_ex_list_(const cg_ex_ *ex, int which, size_t n, cg_list_ *list) {
    const size_t bytes = (size_t)cg_list_in_mem_(NULL, NULL, ex->n, ex->mem.list_cap);
    cg_list_in_mem_(list, ex->mem.lists + (size_t)which * bytes, n, ex->mem.list_cap);
}
/* The next index, or pair, of a packet; 0 at its end. The two are not to be mixed for one reader. */
static int cg_sparse_next_index_(cg_sparse_reader_ *r, uint64_t *index) {
    if (r->window_next == r->window_n && !cg_sparse_reader_fill_(r)) return 0;
    *index = r->window[r->window_next++];
    return 1;
}
static int cg_sparse_next_(cg_sparse_reader_ *r, uint64_t *index, float *value) { /* f32 packets only */
    if (!cg_sparse_next_index_(r, index)) return 0;
    *value = cg_as_float_(cg_get32_(r->values));
    r->values += 4;
    return 1;
}
/* Splits a sparse f32 packet of n values by magnitude: those above the threshold, and the first `ties` that equal it,
   go to `kept` (reduced.cap bytes, with kept_tag), the others, negated, to `dropped` (dropped_cap bytes), a packet of
   ex->n values where index 0 of the split one is index_base. CG_E_CORRUPT: more than mem.list_cap values, which no
   honest rank sends. */
CG_NOINLINE_ cg_status cg_threshold_split_(cg_ex_ *ex, const uint8_t *packet, size_t len, size_t n,
    uint32_t threshold_bits, uint64_t ties, cg_tag kept_tag, uint8_t *kept, size_t *kept_len, uint8_t *dropped,
    size_t dropped_cap, size_t index_base, size_t *dropped_len) {
    cg_sparse_reader_ r;
    cg_list_ keep, drop;
    cg_info info;
    uint64_t index;
    float value;
    cg_status s = cg_reader_open_(ex, &r, NULL, packet, len, n, &info);
    if (s != CG_OK) return s;
    if (info.k > ex->mem.list_cap) return CG_E_CORRUPT;
    cg_ex_list_(ex, 0, n, &keep);
    cg_ex_list_(ex, 1, ex->n, &drop);
    while (cg_sparse_next_(&r, &index, &value)) {
        const uint32_t magnitude_bits = cg_as_bits_(value) & CG_ABS_MASK_;
        const int equal = magnitude_bits == threshold_bits && ties;
        ties -= (uint64_t)equal;
        if (magnitude_bits > threshold_bits || equal) cg_list_append_(&keep, index, value);
        else cg_list_append_(&drop, index + index_base, -value);
    }
    s = cg_sparse_packet_put_(0.0f, &kept_tag, n, &keep, kept, ex->reduced.cap, kept_len);
    if (s == CG_OK) s = cg_sparse_packet_put_(0.0f, &ex->desc.tag, ex->n, &drop, dropped, dropped_cap, dropped_len);
    return s;
}
/* The sum of two sparse packets; out is apart from both. */
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
/* report.used: what was sent less what this rank has dropped of sums. Does nothing if ex has failed. */
static void cg_contribution_less_dropped_(cg_ex_ *ex) {
    cg_status s;
    if (!ex->dropped.any || ex->status != CG_OK) return;
    s = cg_reduce_two_(ex, ex->own.packets, (size_t)ex->own.offset[1], ex->dropped.buf[ex->dropped.flip],
        ex->dropped.len, ex->contrib.packets, ex->contrib.cap, &ex->contrib.len);
    ex->report.used = ex->contrib.packets;
    if (s != CG_OK) cg_ex_fail_(ex, s, ex->transport.rank, cg_status_str(s));
}
