/* owner: the routes server and scatter, on which an owner adds packets and sends the sum back to everybody

   Offers   cg_route_server_, cg_route_scatter_, cg_plan_owner_, cg_accepts_server_, what they write (cg_write_*_),
            cg_reduced_tag_, cg_accept_stripes_, cg_write_stripes_, cg_write_reduced_, tables of numbers
            (cg_own_table_, cg_allgather_tables_begin_, cg_lengths_read_)
   Needs    memory, coroutine, notes, accumulate, allgather (cg_sum_check_saturated_), core's reduce
   Touches  ex->inputs, ex->reduced, ex->contrib, ex->mem.inbox, stripes and sum, desc.carry, ex->result
   The first leg takes packets to the owner: the leader (server), or of every stripe the rank of its number (scatter).
   The second takes the reduced packet back. It is exact (cg_reduce), a vote, or encoded by plan.back; what that loses
   stays in carry, or is taken out of what the owner says it has contributed. */

static void cg_plan_owner_(cg_ex_ *ex, cg_arena_ *arena, uint64_t *scratch) {
    const uint64_t reduced_room = cg_reduced_room_(ex), size = (uint64_t)ex->transport.size;
    const int striped = cg_route_has_(ex, CG_ROUTE_STRIPES_);
    const int is_owner = striped || ex->plan.root == ex->transport.rank || !ex->transport.sendrecv ||
        ex->desc.leader == CG_LEADER_BY_SCORE;
    ex->mem.inbox = cg_arena_take_(arena, is_owner ? cg_mul_sat_(size, ex->plan.packet_room) : 0);
    ex->reduced.packet = cg_arena_take_(arena, reduced_room);
    ex->mem.stripes = cg_arena_take_(arena, striped ? cg_mul_sat_(size, reduced_room) : 0);
    ex->reduced.cap = (size_t)reduced_room;
    if (!is_owner || cg_fold_has_(ex, CG_FOLD_NEEDS_SIGNS_)) return;
    if (ex->plan.exact) {
        cg_sum_scratch_max_(ex, scratch);
        return;
    }
    ex->mem.sum = (float *)(void *)cg_arena_take_(arena, cg_mul_sat_(4, cg_stripe_max_n_(ex)));
    cg_robust_plan_(ex, arena);
    if (ex->desc.carry || cg_fold_has_(ex, CG_FOLD_IS_ROBUST_) ||
        (ex->plan.back_traits & CG_IS_F32_ && !ex->plan.back.select.id && !ex->plan.back.sample.id &&
            !ex->plan.back.transform.id))
        return;
    ex->contrib.packets = cg_arena_take_(arena,
        cg_add_sat_(
            cg_mul_sat_((uint64_t)ex->plan.stripes, ex->plan.packet_room), cg_dense_bound_(cg_stripe_max_n_(ex))));
}
/* contrib.packets = own.packets, but for this stripe, which is D(own packet) less the error of the second leg (mem.sum,
   which is overwritten) in terms of this rank's weight: as if this rank had sent so much less. */
static cg_status cg_contribution_less_error_(cg_ex_ *ex, int stripe) {
    const size_t n = cg_stripe_n_(ex, stripe), bytes_before = (size_t)ex->own.offset[stripe],
                 bytes_after = (size_t)(ex->own.offset[ex->plan.stripes] - ex->own.offset[stripe + 1]);
    const float sum_weight = (float)cg_divisor_(ex);
    const cg_tag tag = cg_stripe_tag_(ex, stripe, 0);
    const cg_op dense = cg_dense();
    size_t len;
    cg_status s;
    cg_axpby_(ex->mem.sum, n, -sum_weight / cg_weight_of_(ex, (size_t)ex->transport.rank), 0.0f, ex->mem.sum);
    s = cg_ex_decode_(ex, cg_own_packet_(ex, stripe), cg_own_packet_len_(ex, stripe), 1.0f, 1.0f, ex->mem.sum, n);
    memcpy(ex->contrib.packets, ex->own.packets, bytes_before);
    if (s == CG_OK)
        s = cg_ex_compress_(
            ex, &dense, &tag, NULL, ex->mem.sum, n, ex->contrib.packets + bytes_before, CG_HEADER_BYTES + 4 * n, &len);
    if (s != CG_OK) return s;
    memcpy(ex->contrib.packets + bytes_before + len, ex->own.packets + (size_t)ex->own.offset[stripe + 1], bytes_after);
    ex->report.used = ex->contrib.packets;
    ex->contrib.len = bytes_before + len + bytes_after;
    return CG_OK;
}
/* The tag that a reduced packet must have: exact sums and votes keep that of the packets they are made of, ... */
static cg_tag cg_reduced_tag_(const cg_ex_ *ex, int stripe) {
    return cg_stripe_tag_(
        ex, stripe, !ex->plan.exact && !cg_fold_has_(ex, CG_FOLD_NEEDS_SIGNS_) && !cg_hops_reencode_(ex));
}
/* ... so that server and scatter mark them by another rank: N plus that of their maker. */
static int cg_reduced_rank_(const cg_ex_ *ex, int maker) {
    const int keeps_tag = ex->plan.exact || cg_fold_has_(ex, CG_FOLD_NEEDS_SIGNS_);
    return maker + (keeps_tag && cg_route_has_(ex, CG_ROUTE_HAS_OWNER_) ? ex->transport.size : 0);
}
/* ex->reduced.packet = the fold of ex->inputs for this stripe, with desc.carry added where it is encoded again.
   mem.sum is then what encoding has lost, if carry or contrib.packets asks for it. Does nothing if ex has failed. */
static void cg_owner_reduce_(cg_ex_ *ex, int stripe) {
    const size_t n = cg_stripe_n_(ex, stripe);
    cg_tag tag = cg_stripe_tag_(ex, stripe, 1);
    const cg_extra side = cg_back_extra_(ex);
    cg_status s;
    if (ex->status != CG_OK) return;
    if (cg_fold_row_of_(ex->desc.fold)->reduce) s = cg_fold_row_of_(ex->desc.fold)->reduce(ex);
    else if (ex->plan.exact)
        s = cg_reduce_(ex->inputs.packet, ex->inputs.len, cg_ranks_(ex), ex->plan.max_level_sum, ex->reduced.packet,
            ex->reduced.cap, &ex->reduced.len, ex->mem.scratch, ex->mem.scratch_bytes);
    else {
        cg_accum_ b;
        cg_accum_ranks_(ex, ex->mem.sum, n, &b);
        b.carry = ex->desc.carry;
        b.carry_weight = 1.0f;
        s = cg_accum_compress_(&b, &ex->plan.back, &tag, &side, ex->reduced.packet, ex->reduced.cap, &ex->reduced.len);
        if (s == CG_OK && (ex->desc.carry || ex->contrib.packets))
            s = cg_ex_decode_(ex, ex->reduced.packet, ex->reduced.len, -1.0f, 1.0f, ex->mem.sum, n);
        /* now, while a failure can still be told to the others: the difference may be too large for a float */
        if (s == CG_OK && ex->contrib.packets) s = cg_contribution_less_error_(ex, stripe);
    }
    if (s == CG_OK && ex->plan.exact) s = cg_sum_check_saturated_(ex->reduced.packet, ex->reduced.len);
    if (s == CG_OK)
        cg_packet_rank_put_(ex->reduced.packet, ex->reduced.len, (uint32_t)cg_reduced_rank_(ex, ex->transport.rank));
    if (s != CG_OK) cg_ex_fail_(ex, s, ex->transport.rank, cg_status_str(s));
}
/* Only once the exchange cannot fail any more. */
static void cg_owner_carry_update_(cg_ex_ *ex, int stripe) {
    if (!ex->plan.exact && !cg_fold_has_(ex, CG_FOLD_NEEDS_SIGNS_) && ex->desc.carry)
        memcpy(ex->desc.carry, ex->mem.sum, 4 * cg_stripe_n_(ex, stripe));
}
static int cg_accepts_server_(const cg_ex_ *ex) { return !(ex->plan.traits & CG_NEEDS_SUPPORT_); }
static cg_status cg_route_server_(cg_ex_ *ex) {
    const int me = ex->transport.rank, root = ex->plan.root;
    const size_t inbox_stride = ex->plan.packet_room;
    CG_CO_BEGIN_(ex)
    cg_own_failure_put_(ex);
    if (!ex->transport.sendrecv) {
        CG_CO_AWAIT_(ex, 1, cg_allgather_begin_(ex, ex->own.packets, ex->mem.sizes, ex->mem.inbox));
        cg_inputs_from_gather_(ex);
    } else if (me != root) {
        CG_CO_AWAIT_(ex, 2, cg_sendrecv_begin_(ex, ex->own.packets, (size_t)ex->mem.sizes[me], root, NULL, 0, -1));
    } else {
        for (ex->co.i = 0; ex->co.i < ex->transport.size; ex->co.i++) {
            ex->inputs.packet[ex->co.i] = ex->co.i == root ? ex->own.packets
                                                           : ex->mem.inbox + (size_t)ex->co.i * inbox_stride;
            ex->inputs.len[ex->co.i] = (size_t)ex->mem.sizes[ex->co.i];
            if (ex->co.i != root)
                CG_CO_AWAIT_(ex, 3,
                    cg_sendrecv_begin_(ex, NULL, 0, -1, ex->mem.inbox + (size_t)ex->co.i * inbox_stride,
                        (size_t)ex->mem.sizes[ex->co.i], ex->co.i));
        }
    }
    if (me == root) {
        for (int q = 0; q < ex->transport.size; q++)
            if (q != me)
                cg_accept_(ex, (const uint8_t *)ex->inputs.packet[q], ex->inputs.len[q], ex->n,
                    cg_stripe_tag_(ex, 0, 0), 0, &ex->desc.op, q, q);
        cg_owner_reduce_(ex, 0);
    }
    CG_CO_BROADCAST_(ex, 4, cg_reduced_fixed_len_(ex, ex->n), root);
    if (me != root)
        cg_accept_(ex, ex->reduced.packet, ex->reduced.len, ex->n, cg_reduced_tag_(ex, 0), ex->plan.exact ? 0 : -1,
            NULL, cg_reduced_rank_(ex, root), root);
    return CG_OK;
    CG_CO_END_
}
/* The reduced packet into ex->result. */
static cg_status cg_write_reduced_(cg_ex_ *ex) {
    return cg_ex_decode_(ex, ex->reduced.packet, ex->reduced.len, ex->opening.result_factor, 0.0f, ex->result, ex->n);
}
static cg_status cg_write_server_(cg_ex_ *ex) {
    if (ex->transport.rank == ex->plan.root) cg_owner_carry_update_(ex, 0);
    return cg_write_reduced_(ex);
}
/* ex->inputs are reduced packets, one stripe from every rank: checks those of others; then decodes all into
   ex->result. */
static void cg_accept_stripes_(cg_ex_ *ex) {
    for (int q = 0; q < ex->transport.size; q++) {
        const int stripe = cg_stripe_of_rank_(ex, q);
        if (q != ex->transport.rank)
            cg_accept_(ex, (const uint8_t *)ex->inputs.packet[q], ex->inputs.len[q], cg_stripe_n_(ex, stripe),
                cg_reduced_tag_(ex, stripe), ex->plan.exact ? stripe : -1, NULL, cg_reduced_rank_(ex, q), q);
    }
}
static cg_status cg_write_stripes_(cg_ex_ *ex) {
    cg_status s = CG_OK;
    for (int q = 0; q < ex->transport.size && s == CG_OK; q++) {
        const int stripe = cg_stripe_of_rank_(ex, q);
        const size_t n = cg_stripe_n_(ex, stripe);
        if (n)
            s = cg_ex_decode_(ex, ex->inputs.packet[q], ex->inputs.len[q], ex->opening.result_factor, 0.0f,
                cg_at_mut_(ex->result, cg_stripe_start_(ex, stripe)), n);
    }
    return s;
}
/* This rank's table of N u64, with room for a note behind it; it stands behind those of all ranks in note.all. */
static uint8_t *cg_own_table_(const cg_ex_ *ex) {
    return ex->note.all + cg_ranks_(ex) * (8 * cg_ranks_(ex) + CG_NOTE_BYTES_);
}
static void cg_allgather_tables_begin_(cg_ex_ *ex, uint32_t round) {
    uint8_t *mine = cg_own_table_(ex);
    cg_note_put_(ex, mine, 8 * cg_ranks_(ex), 0, round);
    cg_allgather_equal_begin_(ex, mine, 8 * cg_ranks_(ex) + CG_NOTE_BYTES_, ex->note.all);
}
/* Tables of the lengths of the packets that every rank sends to every other have been gathered: ex->inputs.len = those
   of the packets that come to this rank. */
static void cg_lengths_read_(cg_ex_ *ex, uint64_t room) {
    const size_t ranks = cg_ranks_(ex);
    for (size_t q = 0; q < ranks; q++) {
        const uint8_t *row = cg_gathered_(ex, q);
        ex->inputs.len[q] = 0;
        if (!cg_note_get_(ex, row, 8 * ranks, CG_ROUND_LENGTHS_, (int)q)) continue;
        if (cg_get64_(row + 8 * ex->transport.rank) > room)
            cg_ex_fail_(ex, CG_E_CORRUPT, (int)q, "it announces a packet that is too long");
        else ex->inputs.len[q] = (size_t)cg_get64_(row + 8 * ex->transport.rank);
    }
}
static cg_status cg_route_scatter_(cg_ex_ *ex) {
    const int me = ex->transport.rank, size = ex->transport.size;
    const size_t inbox_stride = ex->plan.packet_room;
    int to, from;
    CG_CO_BEGIN_(ex)
    if (ex->plan.op_len_fixed) {
        cg_own_failure_put_(ex);
        for (int q = 0; q < size; q++)
            ex->inputs.len[q] = cg_bound_with(&ex->desc.op, ex->desc.side, cg_stripe_n_(ex, me));
    } else {
        for (int p = 0; p < size; p++) cg_put64_(cg_own_table_(ex) + 8 * p, cg_own_packet_len_(ex, p));
        CG_CO_AWAIT_(ex, 1, cg_allgather_tables_begin_(ex, CG_ROUND_LENGTHS_));
        cg_lengths_read_(ex, ex->plan.packet_room);
        CG_CO_VERDICT_(ex, 2, CG_ROUND_LENGTHS_);
    }
    ex->inputs.packet[me] = cg_own_packet_(ex, me);
    ex->inputs.len[me] = cg_own_packet_len_(ex, me);
    for (ex->co.i = 1; ex->co.i < size; ex->co.i++) {
        to = cg_wrap_(ex, me + ex->co.i);
        from = cg_wrap_(ex, me - ex->co.i);
        ex->inputs.packet[from] = ex->mem.inbox + (size_t)from * inbox_stride;
        CG_CO_AWAIT_(ex, 3,
            cg_sendrecv_begin_(ex, cg_own_packet_(ex, to), cg_own_packet_len_(ex, to), to,
                ex->mem.inbox + (size_t)from * inbox_stride, ex->inputs.len[from], from));
    }
    for (int q = 0; q < size; q++)
        if (q != me)
            cg_accept_(ex, (const uint8_t *)ex->inputs.packet[q], ex->inputs.len[q], cg_stripe_n_(ex, me),
                cg_stripe_tag_(ex, me, 0), me, &ex->desc.op, q, q);
    if (!cg_route_has_(ex, CG_ROUTE_ENDS_AT_OWNER_) || cg_fold_row_of_(ex->desc.fold)->reduce) cg_owner_reduce_(ex, me);
    if (cg_route_has_(ex, CG_ROUTE_ENDS_AT_OWNER_)) return CG_OK;
    CG_CO_ALLGATHER_(ex, 4, ex->plan.reduced_len_fixed, ex->mem.stripes);
    cg_inputs_from_gather_(ex);
    cg_accept_stripes_(ex);
    return CG_OK;
    CG_CO_END_
}
static cg_status cg_write_scatter_(cg_ex_ *ex) {
    cg_owner_carry_update_(ex, ex->transport.rank);
    return cg_write_stripes_(ex);
}
