/* shared_linear: the routes shared and linear, on which an allreduce sums f32 values that all ranks have in one place

   Offers   cg_route_shared_, cg_route_linear_, what they need of mem (cg_plan_*_) and what they write (cg_write_*_)
   Needs    coroutine, direct, lists, core's sparse, matrix (PowerSGD) and packet (cg_packet_seal_)
   Touches  ex->reduced, ex->contrib, ex->mem.inbox, lists and matrix_work, desc.warm, ex->result
   Shared: the leader selects, everybody takes its indices. Linear: dense, random-k and rotated vectors as they are;
   low-rank by PowerSGD, one allreduce for each factor. A failed rank contributes NaN, so that all see it in the sum. */

static void cg_plan_shared_(cg_ex_ *ex, cg_arena_ *arena, uint64_t *scratch) {
    (void)scratch;
    cg_plan_lists_(ex, arena, 1, 1, 1);
}
static void cg_plan_linear_(cg_ex_ *ex, cg_arena_ *arena, uint64_t *scratch) {
    (void)scratch;
    if (ex->plan.direct) return;
    ex->reduced.packet = cg_arena_take_(arena, ex->plan.packet_room);
    ex->reduced.cap = (size_t)ex->plan.packet_room;
    if (ex->plan.traits & CG_IS_MATRIX_)
        ex->mem.matrix_work = (double *)(void *)cg_arena_take_(arena, cg_mul_sat_(8, ex->plan.transformed_n));
}
static int cg_accepts_linear_(const cg_ex_ *ex) {
    const uint32_t traits = ex->plan.traits;
    return cg_is_dense_f32_(&ex->desc.op, traits) && !(traits & (CG_IS_PER_RANK_ | CG_IS_PRIVATE_)) &&
        !(traits & CG_IS_MATRIX_ && !(traits & CG_IS_LINEAR_MATRIX_));
}
/* The values of reduced.packet; floats in host order while they are being summed. */
static float *cg_payload_(const cg_ex_ *ex) {
    return ex->reduced.packet ? (float *)(void *)(ex->reduced.packet + CG_HEADER_BYTES) : NULL;
}
/* payload = alpha times the k f32 values of a packet, then zeros up to `total`; NaN all over if this rank has failed.
   */
static void cg_load_payload_(cg_ex_ *ex, const uint8_t *packet, size_t k, size_t total, float alpha) {
    const float *in = (const float *)(const void *)(packet + CG_HEADER_BYTES);
    float *v = cg_payload_(ex);
    if (ex->status != CG_OK) k = 0;
    memset(v + k, ex->status == CG_OK ? 0 : 0xff, 4 * (total - k));
    if (CG_BIG_ENDIAN_) {
        memcpy(v, in, 4 * k);
        cg_floats_swap_le_(v, k);
        in = v;
    }
    cg_axpby_(in, k, alpha, 0.0f, v);
}
/* Fails if a sum has NaN or Inf. */
static void cg_payload_check_(cg_ex_ *ex, const float *v, size_t n) { cg_sum_check_(ex, cg_absmax_bits_(v, n)); }
/* Makes reduced.packet a packet again: payload in wire order, under the header of info. */
static void cg_seal_payload_(cg_ex_ *ex, const cg_info *info) {
    cg_floats_swap_le_(cg_payload_(ex), info->value_bytes / 4);
    ex->reduced.len = cg_packet_seal_(info, ex->reduced.packet);
}
/* contrib.packets = this rank's values at the indices of the packet in mem.inbox (reduced.len bytes); *k of them. */
CG_NOINLINE_ cg_status cg_shared_values_(cg_ex_ *ex, size_t *k) {
    cg_list_ list;
    cg_sparse_reader_ r;
    cg_info info;
    uint64_t index;
    cg_status s = cg_reader_open_(ex, &r, NULL, ex->mem.inbox, ex->reduced.len, ex->n, &info);
    if (s != CG_OK) return s;
    if (info.k > ex->plan.max_selected) return CG_E_CORRUPT;
    cg_ex_list_(ex, 0, ex->n, &list);
    while (cg_sparse_next_index_(&r, &index)) cg_list_append_(&list, index, cg_load_(ex->grad, (size_t)index));
    *k = list.count;
    return cg_sparse_packet_put_(
        0.0f, &ex->desc.tag, ex->n, &list, ex->contrib.packets, ex->contrib.cap, &ex->contrib.len);
}
/* Operator of the packet of indices: desc.op with values that take no bits. */
static cg_op cg_shared_op_(const cg_ex_ *ex) {
    cg_op op = ex->desc.op;
    op.quantize.id = CG_QUANTIZE_MEAN;
    return op;
}
/* Bytes of that packet, if they follow from n, otherwise 0: one value, the mean, in place of all f32 values. */
static size_t cg_shared_fixed_len_(const cg_ex_ *ex) {
    const size_t k = ex->plan.max_selected;
    return ex->plan.op_len_fixed ? cg_bound_with(&ex->desc.op, ex->desc.side, ex->n) - 4 * k + (k ? 4 : 0) : 0;
}
/* reduced.packet = the indices that this rank, the leader, selects. */
static void cg_shared_indices_(cg_ex_ *ex) {
    const cg_op op = cg_shared_op_(ex);
    cg_extra side = CG_ZERO;
    cg_status s;
    if (ex->desc.side) side = *ex->desc.side;
    s = cg_ex_compress_(
        ex, &op, &ex->desc.tag, &side, ex->grad, ex->n, ex->reduced.packet, ex->reduced.cap, &ex->reduced.len);
    if (s != CG_OK) cg_ex_fail_(ex, s, ex->transport.rank, cg_status_str(s));
}
/* reduced.packet = the summed values of payload, under the header and with the indices of contrib.packets. */
static cg_status cg_shared_sum_(cg_ex_ *ex) {
    cg_info info;
    const cg_status s = cg_inspect(ex->contrib.packets, ex->contrib.len, &info);
    if (s != CG_OK) return s;
    cg_floats_swap_le_(cg_payload_(ex), (size_t)info.k);
    memcpy(ex->reduced.packet + CG_HEADER_BYTES + info.value_bytes,
        ex->contrib.packets + CG_HEADER_BYTES + info.value_bytes, info.index_bytes);
    ex->reduced.len = cg_packet_seal_(&info, ex->reduced.packet);
    ex->report.used = ex->contrib.packets;
    return CG_OK;
}
static cg_status cg_route_shared_(cg_ex_ *ex) {
    const float alpha = cg_alpha_(ex, (size_t)ex->transport.rank);
    const cg_op indices = cg_shared_op_(ex);
    size_t k = 0;
    cg_status s = CG_OK;
    CG_CO_BEGIN_(ex)
    if (ex->transport.rank == ex->plan.root) cg_shared_indices_(ex);
    CG_CO_BROADCAST_(ex, 1, cg_shared_fixed_len_(ex), ex->plan.root);
    if (ex->transport.rank != ex->plan.root)
        cg_accept_(ex, ex->reduced.packet, ex->reduced.len, ex->n, cg_stripe_tag_(ex, 0, 0), -1, &indices,
            ex->plan.root, ex->plan.root);
    if (ex->status == CG_OK) {
        memcpy(ex->mem.inbox, ex->reduced.packet, ex->reduced.len);
        s = cg_shared_values_(ex, &k);
        if (s != CG_OK) cg_ex_fail_(ex, s, ex->transport.rank, cg_status_str(s));
    }
    cg_load_payload_(ex, ex->contrib.packets, k, ex->plan.max_selected, alpha);
    CG_CO_AWAIT_(ex, 2, cg_allreduce_begin_(ex, cg_payload_(ex), ex->plan.max_selected));
    cg_payload_check_(ex, cg_payload_(ex), ex->plan.max_selected);
    if (ex->status == CG_OK) s = cg_shared_sum_(ex);
    if (s != CG_OK) cg_ex_fail_(ex, s, ex->transport.rank, cg_status_str(s));
    return CG_OK;
    CG_CO_END_
}
static cg_status cg_write_shared_(cg_ex_ *ex) { return cg_ex_write_packet_(ex, ex->reduced.packet, ex->reduced.len); }
/* After both factors are summed: Q to desc.warm, P Q to ex->result; report.used is the same packet, but of a sum with Q
   scaled to this rank's share. */
static cg_status cg_powersgd_finish_(cg_ex_ *ex) {
    const cg_op *op = &ex->desc.op;
    const size_t p_floats = ex->plan.left_floats, q_floats = (size_t)ex->plan.transformed_n - p_floats;
    const float *q = cg_payload_(ex) + p_floats;
    const float own_share = (float)(cg_divisor_(ex) / ex->opening.weight_sum);
    cg_info info = CG_ZERO;
    cg_status s;
    for (size_t i = 0; ex->desc.warm && i < q_floats; i++) cg_store_(ex->desc.warm, i, q[i]);
    info.op = *op;
    info.tag = ex->desc.tag;
    info.n = info.drawn = ex->n;
    info.k = ex->plan.transformed_n;
    info.value_bytes = 4 * (size_t)info.k;
    cg_seal_payload_(ex, &info);
    s = cg_ex_write_packet_(ex, ex->reduced.packet, ex->reduced.len);
    if (own_share != 1.0f) { /* the result is decoded: the packet can become the share */
        cg_floats_swap_le_(cg_payload_(ex), (size_t)info.k);
        for (size_t i = 0; i < q_floats; i++) cg_payload_(ex)[p_floats + i] = cg_times_(own_share, q[i]);
        cg_seal_payload_(ex, &info);
    }
    ex->report.used = ex->reduced.packet;
    ex->contrib.len = ex->reduced.len;
    return s;
}
static cg_status cg_route_linear_(cg_ex_ *ex) {
    const cg_op *op = &ex->desc.op;
    const float alpha = cg_alpha_(ex, (size_t)ex->transport.rank);
    const size_t p_floats = ex->plan.left_floats, all_floats = (size_t)ex->plan.transformed_n;
    float *p = cg_payload_(ex), *q = p ? p + p_floats : NULL;
    cg_status s;
    CG_CO_BEGIN_(ex)
    if (ex->plan.direct) {
        cg_direct_begin_(ex);
        CG_CO_AWAIT_(ex, 4, cg_allreduce_begin_(ex, ex->direct.sum, ex->n));
        cg_direct_end_(ex);
        return CG_OK;
    }
    if (ex->plan.traits & CG_IS_MATRIX_) {
        cg_lowrank_left_(op, &ex->desc.tag, ex->desc.warm, ex->grad, alpha, p, ex->mem.matrix_work);
        /* a failed rank sends NaN, so that nobody waits for it */
        if (ex->status != CG_OK) memset(p, 0xff, 4 * p_floats);
        CG_CO_AWAIT_(ex, 1, cg_allreduce_begin_(ex, p, p_floats));
        cg_payload_check_(ex, p, p_floats);
        if (ex->status == CG_OK) {
            s = cg_lowrank_right_(op, ex->grad, alpha, p, q, ex->mem.matrix_work);
            if (s != CG_OK) cg_ex_fail_(ex, s, -1, cg_status_str(s));
        }
        if (ex->status != CG_OK) memset(q, 0xff, 4 * (all_floats - p_floats));
        CG_CO_AWAIT_(ex, 2, cg_allreduce_begin_(ex, q, all_floats - p_floats));
        cg_payload_check_(ex, q, all_floats - p_floats);
        return CG_OK;
    }
    cg_load_payload_(ex, ex->own.packets, all_floats, all_floats, alpha);
    CG_CO_AWAIT_(ex, 3, cg_allreduce_begin_(ex, cg_payload_(ex), all_floats));
    cg_payload_check_(ex, cg_payload_(ex), all_floats);
    return CG_OK;
    CG_CO_END_
}
static cg_status cg_write_linear_(cg_ex_ *ex) {
    if (ex->plan.direct) return cg_direct_write_(ex);
    if (ex->plan.traits & CG_IS_MATRIX_) return cg_powersgd_finish_(ex);
    /* the header of a packet of equal length; its checksum is not looked at again */
    memcpy(ex->reduced.packet, ex->own.packets, CG_HEADER_BYTES);
    cg_floats_swap_le_(cg_payload_(ex), (size_t)ex->plan.transformed_n);
    return cg_ex_write_packet_(ex, ex->reduced.packet, (size_t)ex->own.offset[1]);
}
