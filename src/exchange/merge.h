/* ---- >>merge: gTop-k ---- */

/* The k largest of current + in; the rest joins what this rank keeps. */
CG_NOINLINE_ cg_status cg_merge_topk_(cg_ex_ *x) {
    const size_t half = (size_t)cg_sparse_bound_(x->n, x->list_room);
    cg_packet_reader_ r;
    cg_list_ values;
    size_t rank = x->keep, len, dropped_len, k;
    uint64_t index;
    uint32_t key;
    float value;
    cg_status s = cg_reduce_two_(x, x->current, x->current_len, x->in, x->move.in_len, x->buf[0], half, &len);
    if (s == CG_OK) s = cg_sum_check_saturated_(x->buf[0], len);
    if (s == CG_OK) s = cg_packet_reader_open_(&r, x->buf[0], len, x->n);
    if (s != CG_OK) return s;
    k = (size_t)r.d.info.k;
    if (k > x->list_room) return CG_E_CORRUPT;
    if (k <= x->keep) {
        memcpy(x->result, x->buf[0], len);
        x->current = x->result;
        x->current_len = len;
        return CG_OK;
    }
    cg_list_wrap_(x, 0, x->n, &values);
    while (cg_packet_reader_next_(&r, &index, &value)) cg_list_add_(&values, 0, value);
    key = cg_kth_(values.value, k, &rank, 0, CG_INF_BITS_ - 1, cg_both_signs_);
    s = cg_threshold_split_(x, x->buf[0], len, x->n, key, rank, x->result, &x->current_len,
        x->lost ? x->buf[1] : x->lose[0], half, 0, &dropped_len);
    x->current = x->result;
    if (s != CG_OK) return s;
    if (x->lost)
        s = cg_reduce_two_(
            x, x->lose[x->flip], x->lost_len, x->buf[1], dropped_len, x->lose[x->flip ^ 1], x->lose_cap, &x->lost_len);
    else x->lost_len = dropped_len;
    x->flip = x->lost ? x->flip ^ 1 : 0;
    x->lost = 1;
    return s;
}
static cg_status cg_route_merge_(cg_ex_ *x) {
    const int me = x->transport.rank, size = x->transport.size;
    cg_status s;
    CG_CO_BEGIN_(x)
    x->current = x->own;
    x->current_len = (size_t)x->part_at[1];
    for (x->t = 1; x->t < size && !(me & x->t); x->t <<= 1) {
        if (me + x->t >= size) continue;
        CG_CO_HOP_(x, 1, 0, NULL, 0, -1, x->in, 0, x->result_cap, me + x->t);
        cg_accept_(x, x->in, x->move.in_len, x->n, cg_stripe_tag_(x, 0, 0), 0, NULL, -1, x->move.from);
        if (x->status == CG_OK) {
            s = cg_merge_topk_(x);
            if (s != CG_OK) cg_ex_fail_(x, s, me, cg_status_str(s));
        }
    }
    if (me) CG_CO_HOP_(x, 2, 0, x->current, x->current_len, me - x->t, NULL, 0, 0, -1);
    if (!me && x->current == x->own) memcpy(x->result, x->own, x->current_len);
    x->result_len = x->current_len;
    CG_CO_BROADCAST_(x, 3, 0, 0);
    if (me) cg_accept_(x, x->result, x->result_len, x->n, cg_stripe_tag_(x, 0, 0), 0, NULL, -1, 0);
    if (x->status != CG_OK) return x->status;
    s = cg_contribution_less_dropped_(x);
    return s == CG_OK ? cg_ex_decode_(x, x->result, x->result_len, x->over, 0.0f, x->y, x->n) : s;
    CG_CO_END_
}
