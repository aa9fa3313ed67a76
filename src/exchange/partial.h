/* partial: the routes ring and tree, on which a partial sum goes from rank to rank

   Offers   cg_route_ring_, cg_route_tree_, what they need of mem (cg_plan_*_) and what they write (cg_write_*_)
   Needs    memory, coroutine, accumulate, owner (stripes), allgather (cg_sum_check_saturated_), core's reduce
   Touches  ex->partial, ex->reduced, ex->inputs, ex->own, ex->mem.inbox, stripes and sum, desc.carry, ex->result
   An exact partial sum is a packet all the time, and cg_reduce adds to it. Otherwise a rank collects the packets that
   come, then decodes them, adds its own gradient and encodes the sum by desc.op, once per rank and stripe. Either way
   the tag of a partial sum has the rank that sends it, because cg_reduce keeps the tag of its first packet. */

/* hops: packets that a rank keeps until it encodes the sum again. */
static void cg_plan_partial_(cg_ex_ *ex, cg_arena_ *arena, uint64_t *scratch, uint64_t hops, uint64_t stripes) {
    const uint64_t reduced_room = cg_reduced_room_(ex);
    ex->mem.inbox = cg_arena_take_(arena, cg_mul_sat_(hops, reduced_room));
    ex->partial.buf[0] = cg_arena_take_(arena, reduced_room);
    ex->partial.buf[1] = cg_arena_take_(arena, reduced_room);
    ex->mem.stripes = cg_arena_take_(arena, cg_mul_sat_(stripes, reduced_room));
    if (ex->plan.exact) cg_sum_scratch_max_(ex, scratch);
    else ex->mem.sum = (float *)(void *)cg_arena_take_(arena, cg_mul_sat_(4, ex->n));
    ex->reduced.cap = (size_t)reduced_room;
}
static void cg_plan_ring_(cg_ex_ *ex, cg_arena_ *arena, uint64_t *scratch) {
    cg_plan_partial_(ex, arena, scratch, 1, (uint64_t)ex->transport.size);
}
/* a rank of a tree that encodes again keeps the packets of all its children until then */
static void cg_plan_tree_(cg_ex_ *ex, cg_arena_ *arena, uint64_t *scratch) {
    cg_plan_partial_(ex, arena, scratch, ex->plan.exact ? 1 : cg_add_sat_(cg_tree_depth_(ex), 1), 0);
}
/* A new partial sum of a stripe: this rank's packet, if exact. */
static void cg_partial_begin_(cg_ex_ *ex, int stripe) {
    ex->partial.received = 0;
    if (!ex->plan.exact || ex->status != CG_OK) return;
    ex->partial.packet = cg_own_packet_(ex, stripe);
    ex->partial.len = cg_own_packet_len_(ex, stripe);
}
/* partial.packet += in, or with in NULL only widens levels to hold the sum of all ranks; the result is in the other
   partial.buf. */
static void cg_partial_reduce_(cg_ex_ *ex, const uint8_t *in, size_t in_len) {
    const void *both[2];
    size_t lens[2];
    uint8_t *out = ex->partial.buf[ex->partial.flip ^= 1];
    cg_status s;
    both[0] = ex->partial.packet;
    both[1] = in;
    lens[0] = ex->partial.len;
    lens[1] = in_len;
    s = cg_reduce_(both, lens, in ? 2 : 1, ex->plan.max_level_sum, out, ex->reduced.cap, &ex->partial.len,
        ex->mem.scratch, ex->mem.scratch_bytes);
    ex->partial.packet = out;
    if (s == CG_OK) s = cg_sum_check_saturated_(out, ex->partial.len);
    if (s != CG_OK) cg_ex_fail_(ex, s, ex->transport.rank, cg_status_str(s));
}
/* Where the next packet is to arrive, reduced.cap bytes. */
static uint8_t *cg_partial_inbox_(const cg_ex_ *ex) {
    return ex->mem.inbox + (ex->plan.exact ? 0 : (size_t)ex->partial.received * ex->reduced.cap);
}
/* Adds the packet that has just come to cg_partial_inbox_, or if not exact keeps it for cg_partial_encode_. */
static void cg_partial_add_(cg_ex_ *ex) {
    if (ex->status != CG_OK) return;
    if (ex->plan.exact) {
        cg_partial_reduce_(ex, ex->mem.inbox, ex->hop.in_len);
        return;
    }
    ex->inputs.packet[ex->partial.received] = cg_partial_inbox_(ex);
    ex->inputs.len[ex->partial.received++] = ex->hop.in_len;
}
/* partial.packet becomes the packet to send on. Not exact: the stripe of mem.sum becomes the error of encoding it. */
static void cg_partial_encode_(cg_ex_ *ex, int stripe) {
    const size_t start = cg_stripe_start_(ex, stripe), n = cg_stripe_n_(ex, stripe);
    const cg_tag tag = cg_stripe_tag_(ex, stripe, 0);
    cg_extra side = CG_ZERO;
    cg_accum_ b;
    uint8_t *out;
    cg_status s;
    if (ex->status != CG_OK) return;
    if (ex->plan.exact) {
        /* the first rank of a stripe sends levels that are wide enough for the whole sum */
        if (ex->plan.max_level_sum && ex->partial.packet == cg_own_packet_(ex, stripe)) cg_partial_reduce_(ex, NULL, 0);
        return;
    }
    cg_accum_open_(&b, ex, ex->mem.sum + start, n);
    b.grad = cg_at_(ex->grad, start);
    b.grad_weight = cg_weight_of_(ex, (size_t)ex->transport.rank);
    b.carry = ex->desc.carry ? cg_at_(ex->desc.carry, start) : NULL;
    b.carry_weight = (float)cg_divisor_(ex);
    for (int i = 0; i < ex->partial.received; i++)
        cg_accum_packet_(&b, (const uint8_t *)ex->inputs.packet[i], ex->inputs.len[i], 1.0f);
    if (ex->desc.side) side = *ex->desc.side;
    if (side.aux) side.aux = cg_at_(side.aux, start);
    out = ex->partial.buf[ex->partial.flip ^= 1];
    s = cg_accum_compress_(&b, &ex->desc.op, &tag, &side, out, ex->reduced.cap, &ex->partial.len);
    if (s == CG_OK) s = cg_ex_decode_(ex, out, ex->partial.len, -1.0f, 1.0f, ex->mem.sum + start, n);
    ex->partial.packet = out;
    if (s != CG_OK) cg_ex_fail_(ex, s, ex->transport.rank, cg_status_str(s));
}
/* Inf to the largest float: dividing by weights may overflow, and after the last message no failure can be told. */
static void cg_clamp_(float *v, size_t n) {
    if (cg_absmax_bits_(v, n) < CG_INF_BITS_) return;
    for (size_t i = 0; i < n; i++) cg_store_(v, i, cg_saturate_(cg_load_(v, i)));
}
/* Not exact: own.packets = the gradient, stripe by stripe, less the error of encoding (mem.sum, which is
   overwritten); with a carry, that takes the error, and own.packets is the gradient. */
static cg_status cg_contribution_less_hop_error_(cg_ex_ *ex) {
    const float weight = cg_weight_of_(ex, (size_t)ex->transport.rank);
    const cg_op dense = cg_dense();
    uint64_t packet_offset = 0;
    cg_status s = CG_OK;
    for (int p = 0; p < ex->plan.stripes && !ex->plan.exact && s == CG_OK; p++) {
        const size_t start = cg_stripe_start_(ex, p), n = cg_stripe_n_(ex, p);
        const cg_tag tag = cg_stripe_tag_(ex, p, 0);
        float *error = ex->mem.sum + start;
        size_t len;
        if (ex->desc.carry) {
            cg_axpby_(error, n, (float)(1.0 / cg_divisor_(ex)), 0.0f, cg_at_mut_(ex->desc.carry, start));
            cg_clamp_(cg_at_mut_(ex->desc.carry, start), n);
            cg_axpby_(cg_at_(ex->grad, start), n, 1.0f, 0.0f, error);
        } else {
            cg_axpby_(cg_at_(ex->grad, start), n, 1.0f, (float)(-1.0 / (double)weight), error);
            cg_clamp_(error, n);
        }
        s = cg_ex_compress_(
            ex, &dense, &tag, NULL, error, n, ex->own.packets + (size_t)packet_offset, CG_HEADER_BYTES + 4 * n, &len);
        packet_offset += len;
        ex->contrib.len = (size_t)packet_offset;
    }
    return s;
}
static cg_status cg_route_ring_(cg_ex_ *ex) {
    const int me = ex->transport.rank, size = ex->transport.size, last = cg_wrap_(ex, me + 1);
    int stripe;
    CG_CO_BEGIN_(ex)
    cg_partial_begin_(ex, me);
    cg_partial_encode_(ex, me);
    for (ex->co.i = 1; ex->co.i < size; ex->co.i++) {
        CG_CO_HOP_(ex, 1, ex->plan.reduced_len_fixed, ex->partial.packet,
            ex->plan.reduced_len_fixed ? cg_reduced_fixed_len_(ex, cg_stripe_n_(ex, cg_wrap_(ex, me - ex->co.i + 1)))
                                       : ex->partial.len,
            last, ex->mem.inbox, cg_reduced_fixed_len_(ex, cg_stripe_n_(ex, cg_wrap_(ex, me - ex->co.i))),
            ex->reduced.cap, cg_wrap_(ex, me - 1));
        stripe = cg_wrap_(ex, me - ex->co.i);
        cg_accept_(ex, ex->mem.inbox, ex->hop.in_len, cg_stripe_n_(ex, stripe), cg_stripe_tag_(ex, stripe, 0), stripe,
            NULL, ex->hop.from, ex->hop.from);
        cg_partial_begin_(ex, stripe);
        cg_partial_add_(ex);
        cg_partial_encode_(ex, stripe);
    }
    ex->reduced.packet = ex->status == CG_OK ? (uint8_t *)(uintptr_t)ex->partial.packet : ex->partial.buf[0];
    ex->reduced.len = ex->partial.len;
    CG_CO_ALLGATHER_(ex, 2, ex->plan.reduced_len_fixed, ex->mem.stripes);
    cg_inputs_from_gather_(ex);
    cg_accept_stripes_(ex);
    return CG_OK;
    CG_CO_END_
}
static cg_status cg_write_ring_(cg_ex_ *ex) {
    const cg_status s = cg_contribution_less_hop_error_(ex);
    return s == CG_OK ? cg_write_stripes_(ex) : s;
}
static cg_status cg_route_tree_(cg_ex_ *ex) {
    const int me = ex->transport.rank, size = ex->transport.size;
    CG_CO_BEGIN_(ex)
    cg_partial_begin_(ex, 0);
    for (ex->co.i = 1; ex->co.i < size && !(me & ex->co.i); ex->co.i <<= 1) {
        if (me + ex->co.i >= size) continue;
        CG_CO_HOP_(ex, 1, ex->plan.reduced_len_fixed, NULL, 0, -1, cg_partial_inbox_(ex),
            cg_reduced_fixed_len_(ex, ex->n), ex->reduced.cap, me + ex->co.i);
        cg_accept_(ex, cg_partial_inbox_(ex), ex->hop.in_len, ex->n, cg_stripe_tag_(ex, 0, 0), 0, NULL, ex->hop.from,
            ex->hop.from);
        cg_partial_add_(ex);
    }
    cg_partial_encode_(ex, 0);
    if (me)
        CG_CO_HOP_(ex, 2, ex->plan.reduced_len_fixed, ex->partial.packet,
            ex->plan.reduced_len_fixed ? cg_reduced_fixed_len_(ex, ex->n) : ex->partial.len, me - ex->co.i, NULL, 0, 0,
            -1);
    ex->reduced.packet = me   ? ex->mem.inbox
        : ex->status == CG_OK ? (uint8_t *)(uintptr_t)ex->partial.packet
                              : ex->partial.buf[0];
    ex->reduced.len = ex->partial.len;
    CG_CO_BROADCAST_(ex, 3, cg_reduced_fixed_len_(ex, ex->n), 0);
    if (me) cg_accept_(ex, ex->reduced.packet, ex->reduced.len, ex->n, cg_stripe_tag_(ex, 0, 0), 0, NULL, 0, 0);
    return CG_OK;
    CG_CO_END_
}
static cg_status cg_write_tree_(cg_ex_ *ex) {
    const cg_status s = cg_contribution_less_hop_error_(ex);
    return s == CG_OK ? cg_write_reduced_(ex) : s;
}
