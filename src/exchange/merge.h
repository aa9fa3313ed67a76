/* merge: gTop-k, a tree on which the k largest values of every sum of two packets survive

   Offers   cg_route_merge_, cg_plan_merge_; cg_write_reduced_ writes its result
   Needs    coroutine, lists, allgather (cg_sum_check_saturated_)
   Touches  ex->partial, ex->reduced, ex->dropped, ex->contrib, ex->mem.inbox and lists, ex->result
   What a rank cuts off a sum it takes out of its own contribution, so that error feedback keeps it. */

/* partial.packet = the plan.k largest values of it plus the packet in mem.inbox, in reduced.packet; the rest is added
   to ex->dropped. The first of equal magnitudes survive. */
CG_NOINLINE_ cg_status cg_merge_topk_(cg_ex_ *ex) {
    const size_t sum_cap = (size_t)cg_sparse_packet_bound_(ex->n, ex->mem.list_cap);
    cg_sparse_reader_ r;
    cg_info info;
    cg_list_ values;
    size_t kth = ex->plan.k, len, dropped_len, k;
    uint64_t index;
    uint32_t threshold_bits;
    float value;
    cg_status s = cg_reduce_two_(
        ex, ex->partial.packet, ex->partial.len, ex->mem.inbox, ex->hop.in_len, ex->partial.buf[0], sum_cap, &len);
    if (s == CG_OK) s = cg_sum_check_saturated_(ex->partial.buf[0], len);
    if (s == CG_OK) s = cg_reader_open_(ex, &r, NULL, ex->partial.buf[0], len, ex->n, &info);
    if (s != CG_OK) return s;
    k = (size_t)info.k;
    if (k > ex->mem.list_cap) return CG_E_CORRUPT;
    if (k <= ex->plan.k) {
        memcpy(ex->reduced.packet, ex->partial.buf[0], len);
        ex->partial.packet = ex->reduced.packet;
        ex->partial.len = len;
        return CG_OK;
    }
    cg_ex_list_(ex, 0, ex->n, &values);
    while (cg_sparse_next_(&r, &index, &value)) cg_list_append_(&values, index, value);
    threshold_bits = cg_list_kth_(&values, &kth);
    s = cg_threshold_split_(ex, ex->partial.buf[0], len, ex->n, threshold_bits, kth, cg_stripe_tag_(ex, 0, 0),
        ex->reduced.packet, &ex->partial.len, ex->dropped.any ? ex->partial.buf[1] : ex->dropped.buf[0], sum_cap, 0,
        &dropped_len);
    ex->partial.packet = ex->reduced.packet;
    if (s != CG_OK) return s;
    if (ex->dropped.any)
        s = cg_reduce_two_(ex, ex->dropped.buf[ex->dropped.flip], ex->dropped.len, ex->partial.buf[1], dropped_len,
            ex->dropped.buf[ex->dropped.flip ^ 1], ex->dropped.cap, &ex->dropped.len);
    else ex->dropped.len = dropped_len;
    ex->dropped.flip = ex->dropped.any ? ex->dropped.flip ^ 1 : 0;
    ex->dropped.any = 1;
    return s;
}
static void cg_plan_merge_(cg_ex_ *ex, cg_arena_ *arena, uint64_t *scratch) {
    cg_plan_lists_(ex, arena, 2, 1, cg_tree_depth_(ex));
    cg_plan_cuts_(ex, arena, scratch, 2, cg_tree_depth_(ex), 2);
}
static cg_status cg_route_merge_(cg_ex_ *ex) {
    const int me = ex->transport.rank, size = ex->transport.size;
    cg_status s;
    CG_CO_BEGIN_(ex)
    ex->partial.packet = ex->own.packets;
    ex->partial.len = (size_t)ex->own.offset[1];
    for (ex->co.i = 1; ex->co.i < size && !(me & ex->co.i); ex->co.i <<= 1) {
        if (me + ex->co.i >= size) continue;
        CG_CO_HOP_(ex, 1, 0, NULL, 0, -1, ex->mem.inbox, 0, ex->reduced.cap, me + ex->co.i);
        cg_accept_(
            ex, ex->mem.inbox, ex->hop.in_len, ex->n, cg_stripe_tag_(ex, 0, 0), 0, NULL, ex->hop.from, ex->hop.from);
        if (ex->status == CG_OK) {
            s = cg_merge_topk_(ex);
            if (s != CG_OK) cg_ex_fail_(ex, s, me, cg_status_str(s));
        }
    }
    if (me) CG_CO_HOP_(ex, 2, 0, ex->partial.packet, ex->partial.len, me - ex->co.i, NULL, 0, 0, -1);
    if (!me && ex->partial.packet == ex->own.packets) memcpy(ex->reduced.packet, ex->own.packets, ex->partial.len);
    ex->reduced.len = ex->partial.len;
    CG_CO_BROADCAST_(ex, 3, 0, 0);
    if (me) cg_accept_(ex, ex->reduced.packet, ex->reduced.len, ex->n, cg_stripe_tag_(ex, 0, 0), 0, NULL, 0, 0);
    cg_contribution_less_dropped_(ex);
    return CG_OK;
    CG_CO_END_
}
