/* ---- >>hops: ring and tree; a packet is decoded, added to and encoded again ---- */

/* An exact sum is a packet all the time. Another is decoded and added to when it is encoded: from x and the
   packets that came. */
static void cg_partial_begin_(cg_ex_ *x, int part) {
    x->hops = 0;
    if (!x->exact || x->status != CG_OK) return;
    x->current = cg_own_packet_(x, part);
    x->current_len = cg_own_packet_len_(x, part);
}
static void cg_partial_reduce_(cg_ex_ *x, const uint8_t *in, size_t in_len) {
    const void *both[2];
    size_t lens[2];
    uint8_t *out = x->buf[x->flip ^= 1];
    cg_status s;
    both[0] = x->current;
    both[1] = in;
    lens[0] = x->current_len;
    lens[1] = in_len;
    s = cg_reduce_(both, lens, in ? 2 : 1, x->reach, out, x->result_cap, &x->current_len, x->scratch, x->scratch_bytes);
    x->current = out;
    if (s == CG_OK) s = cg_sum_check_saturated_(out, x->current_len);
    if (s != CG_OK) cg_ex_fail_(x, s, x->transport.rank, cg_status_str(s));
}
/* where the next is to arrive */
static uint8_t *cg_partial_inbox_(const cg_ex_ *x) { return x->in + (x->exact ? 0 : (size_t)x->hops * x->result_cap); }
static void cg_partial_add_(cg_ex_ *x) {
    if (x->status != CG_OK) return;
    if (x->exact) {
        cg_partial_reduce_(x, x->in, x->move.in_len);
        return;
    }
    x->packet[x->hops] = cg_partial_inbox_(x);
    x->len[x->hops++] = x->move.in_len;
}
/* x->current becomes what goes on. Not exact: x->sum becomes what that loses. */
static void cg_partial_encode_(cg_ex_ *x, int part) {
    const size_t start = cg_stripe_start_(x, part), n = cg_stripe_n_(x, part);
    const cg_tag tag = cg_stripe_tag_(x, part, 0);
    cg_extra side = CG_ZERO;
    cg_accum_ b;
    uint8_t *out;
    cg_status s;
    if (x->status != CG_OK) return;
    if (x->exact) {
        /* room for the sum from the start */
        if (x->reach && x->current == cg_own_packet_(x, part)) cg_partial_reduce_(x, NULL, 0);
        return;
    }
    cg_accum_open_(&b, x, x->sum + start, n);
    b.own = cg_at_(x->x, start);
    b.own_by = cg_weight_of_(x, (size_t)x->transport.rank);
    b.carry = x->desc.carry ? cg_at_(x->desc.carry, start) : NULL;
    b.carry_by = x->desc.fold == CG_FOLD_SUM ? 1.0f : (float)x->weights;
    for (int i = 0; i < x->hops; i++) cg_accum_packet_(&b, (const uint8_t *)x->packet[i], x->len[i], 1.0f);
    if (x->desc.side) side = *x->desc.side;
    if (side.aux) side.aux = cg_at_(side.aux, start);
    out = x->buf[x->flip ^= 1];
    s = cg_accum_compress_(&b, &x->desc.op, &tag, &side, out, x->result_cap, &x->current_len);
    if (s == CG_OK) s = cg_ex_decode_(x, out, x->current_len, -1.0f, 1.0f, x->sum + start, n);
    x->current = out;
    if (s != CG_OK) cg_ex_fail_(x, s, x->transport.rank, cg_status_str(s));
}
static void cg_clamp_(float *v, size_t n) { /* dividing by weights may overflow, after the last message */
    if (cg_kernels_now_()->absmax_bits(v, n) < CG_INF_BITS_) return;
    for (size_t i = 0; i < n; i++) cg_store_(v, i, cg_saturate_(cg_load_(v, i)));
}
/* What counted: x less what was lost here, unless carry has that. */
static cg_status cg_contribution_less_hop_error_(cg_ex_ *x) {
    const float w = cg_weight_of_(x, (size_t)x->transport.rank);
    const cg_op dense = cg_dense();
    uint64_t at = 0;
    cg_status s = CG_OK;
    for (int p = 0; p < x->parts && !x->exact && s == CG_OK; p++) {
        const size_t start = cg_stripe_start_(x, p), n = cg_stripe_n_(x, p);
        const cg_tag tag = cg_stripe_tag_(x, p, 0);
        float *lost = x->sum + start;
        size_t len;
        if (x->desc.carry) {
            cg_kernels_now_()->axpby(lost, n, x->desc.fold == CG_FOLD_SUM ? 1.0f : (float)(1.0 / x->weights), 0.0f,
                cg_at_mut_(x->desc.carry, start), 0);
            cg_clamp_(cg_at_mut_(x->desc.carry, start), n);
            cg_kernels_now_()->axpby(cg_at_(x->x, start), n, 1.0f, 0.0f, lost, 0);
        } else {
            cg_kernels_now_()->axpby(cg_at_(x->x, start), n, 1.0f, (float)(-1.0 / (double)w), lost, 0);
            cg_clamp_(lost, n);
        }
        s = cg_ex_compress_(x, &dense, &tag, NULL, lost, n, x->own + (size_t)at, CG_HEADER_BYTES + 4 * n, &len);
        at += len;
        x->used_len = (size_t)at;
    }
    return s;
}
static cg_status cg_route_ring_(cg_ex_ *x) {
    const int me = x->transport.rank, size = x->transport.size, last = cg_wrap_(x, me + 1);
    int part;
    cg_status s;
    CG_CO_BEGIN_(x)
    cg_partial_begin_(x, me);
    cg_partial_encode_(x, me);
    for (x->t = 1; x->t < size; x->t++) {
        CG_CO_HOP_(x, 1, x->closed_fixed, x->current,
            x->closed_fixed ? cg_reduced_fixed_len_(x, cg_stripe_n_(x, cg_wrap_(x, me - x->t + 1))) : x->current_len,
            last, x->in, cg_reduced_fixed_len_(x, cg_stripe_n_(x, cg_wrap_(x, me - x->t))), x->result_cap,
            cg_wrap_(x, me - 1));
        part = cg_wrap_(x, me - x->t);
        cg_accept_(
            x, x->in, x->move.in_len, cg_stripe_n_(x, part), cg_stripe_tag_(x, part, 0), part, NULL, -1, x->move.from);
        cg_partial_begin_(x, part);
        cg_partial_add_(x);
        cg_partial_encode_(x, part);
    }
    x->result = x->status == CG_OK ? (uint8_t *)(uintptr_t)x->current : x->buf[0];
    x->result_len = x->current_len;
    CG_CO_ALLGATHER_(x, 2, x->closed_fixed, x->inbox);
    cg_inputs_from_gather_(x);
    cg_accept_stripes_(x);
    if (x->status != CG_OK) return x->status;
    s = cg_contribution_less_hop_error_(x);
    return s == CG_OK ? cg_write_stripes_(x) : s;
    CG_CO_END_
}
static cg_status cg_route_tree_(cg_ex_ *x) {
    const int me = x->transport.rank, size = x->transport.size;
    cg_status s;
    CG_CO_BEGIN_(x)
    cg_partial_begin_(x, 0);
    for (x->t = 1; x->t < size && !(me & x->t); x->t <<= 1) {
        if (me + x->t >= size) continue;
        CG_CO_HOP_(x, 1, x->closed_fixed, NULL, 0, -1, cg_partial_inbox_(x), cg_reduced_fixed_len_(x, x->n),
            x->result_cap, me + x->t);
        cg_accept_(x, cg_partial_inbox_(x), x->move.in_len, x->n, cg_stripe_tag_(x, 0, 0), 0, NULL, -1, x->move.from);
        cg_partial_add_(x);
    }
    cg_partial_encode_(x, 0);
    if (me)
        CG_CO_HOP_(x, 2, x->closed_fixed, x->current, x->closed_fixed ? cg_reduced_fixed_len_(x, x->n) : x->current_len,
            me - x->t, NULL, 0, 0, -1);
    x->result = me ? x->in : x->status == CG_OK ? (uint8_t *)(uintptr_t)x->current : x->buf[0];
    x->result_len = x->current_len;
    CG_CO_BROADCAST_(x, 3, cg_reduced_fixed_len_(x, x->n), 0);
    if (me) cg_accept_(x, x->result, x->result_len, x->n, cg_stripe_tag_(x, 0, 0), 0, NULL, -1, 0);
    if (x->status != CG_OK) return x->status;
    s = cg_contribution_less_hop_error_(x);
    return s == CG_OK ? cg_ex_decode_(x, x->result, x->result_len, x->over, 0.0f, x->y, x->n) : s;
    CG_CO_END_
}
