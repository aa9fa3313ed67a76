/* ---- >>answers: server and scatter; an owner adds packets, and encodes the sum ---- */

/* What the second leg lost counts as not sent, by the rank that lost it. */
static cg_status cg_contribution_less_error_(cg_ex_ *x, int part) {
    const size_t n = cg_stripe_n_(x, part), before = (size_t)x->part_at[part],
                 after = (size_t)(x->part_at[x->parts] - x->part_at[part + 1]);
    const float share = x->desc.fold == CG_FOLD_SUM ? 1.0f : (float)x->weights;
    const cg_tag tag = cg_stripe_tag_(x, part, 0);
    const cg_op dense = cg_dense();
    size_t len;
    cg_status s;
    cg_kernels_now_()->axpby(x->sum, n, -share / cg_weight_of_(x, (size_t)x->transport.rank), 0.0f, x->sum, 0);
    s = cg_ex_decode_(x, cg_own_packet_(x, part), cg_own_packet_len_(x, part), 1.0f, 1.0f, x->sum, n);
    memcpy(x->used, x->own, before);
    if (s == CG_OK)
        s = cg_ex_compress_(x, &dense, &tag, NULL, x->sum, n, x->used + before, CG_HEADER_BYTES + 4 * n, &len);
    if (s != CG_OK) return s;
    memcpy(x->used + before + len, x->own + (size_t)x->part_at[part + 1], after);
    x->report.used = x->used;
    x->used_len = before + len + after;
    return CG_OK;
}
/* x->packet[] become x->result; what that loses stays in x->sum. */
static void cg_owner_reduce_(cg_ex_ *x, int part) {
    const size_t n = cg_stripe_n_(x, part);
    cg_tag tag = cg_stripe_tag_(x, part, 1);
    const cg_extra side = cg_back_extra_(x);
    cg_status s;
    if (x->status != CG_OK) return;
    if (x->desc.fold == CG_FOLD_VOTE)
        s = cg_vote_(x->packet, x->len, cg_ranks_(x), x->result, x->result_cap, &x->result_len);
    else if (x->exact)
        s = cg_reduce_(x->packet, x->len, cg_ranks_(x), x->reach, x->result, x->result_cap, &x->result_len, x->scratch,
            x->scratch_bytes);
    else {
        cg_accum_ b;
        cg_accum_ranks_(x, x->sum, n, &b);
        b.carry = x->desc.carry;
        b.carry_by = 1.0f;
        s = cg_accum_compress_(&b, &x->back, &tag, &side, x->result, x->result_cap, &x->result_len);
        if (s == CG_OK && (x->desc.carry || x->used))
            s = cg_ex_decode_(x, x->result, x->result_len, -1.0f, 1.0f, x->sum, n);
        /* before the others are told: it may be too large for a float */
        if (s == CG_OK && x->used) s = cg_contribution_less_error_(x, part);
    }
    if (s == CG_OK && x->exact) s = cg_sum_check_saturated_(x->result, x->result_len);
    if (s != CG_OK) cg_ex_fail_(x, s, x->transport.rank, cg_status_str(s));
}
/* The tag of a result: exact sums keep that of what they are made of. */
static cg_tag cg_reduced_tag_(const cg_ex_ *x, int part) {
    return cg_stripe_tag_(x, part, !x->exact && x->desc.fold != CG_FOLD_VOTE && !cg_hops_reencode_(x));
}
/* What the second leg lost goes to carry. */
static void cg_owner_carry_update_(cg_ex_ *x, int part) {
    if (!x->exact && x->desc.fold != CG_FOLD_VOTE && x->desc.carry)
        memcpy(x->desc.carry, x->sum, 4 * cg_stripe_n_(x, part));
}
static cg_status cg_route_server_(cg_ex_ *x) {
    const int me = x->transport.rank, root = x->root;
    const size_t slot = (size_t)cg_packet_room_(x);
    CG_CO_BEGIN_(x)
    if (!x->transport.sendrecv) {
        CG_CO_AWAIT_(x, 1, cg_allgather_begin_(x, x->own, x->sizes, x->inbox));
        cg_inputs_from_gather_(x);
    } else if (me != root) {
        CG_CO_AWAIT_(x, 2, cg_sendrecv_begin_(x, x->own, (size_t)x->sizes[me], root, NULL, 0, -1));
    } else {
        for (x->t = 0; x->t < x->transport.size; x->t++) {
            x->packet[x->t] = x->t == root ? x->own : x->inbox + (size_t)x->t * slot;
            x->len[x->t] = (size_t)x->sizes[x->t];
            if (x->t != root)
                CG_CO_AWAIT_(x, 3,
                    cg_sendrecv_begin_(x, NULL, 0, -1, x->inbox + (size_t)x->t * slot, (size_t)x->sizes[x->t], x->t));
        }
    }
    if (me == root) {
        for (int q = 0; q < x->transport.size; q++)
            if (q != me)
                cg_accept_(
                    x, (const uint8_t *)x->packet[q], x->len[q], x->n, cg_stripe_tag_(x, 0, 0), 0, &x->desc.op, q, q);
        cg_owner_reduce_(x, 0);
    }
    CG_CO_BROADCAST_(x, 4, cg_reduced_fixed_len_(x, x->n), root);
    if (me != root)
        cg_accept_(x, x->result, x->result_len, x->n, cg_reduced_tag_(x, 0), x->exact ? 0 : -1, NULL, -1, root);
    if (x->status != CG_OK) return x->status;
    if (me == root) cg_owner_carry_update_(x, 0);
    return cg_ex_decode_(x, x->result, x->result_len, x->over, 0.0f, x->y, x->n);
    CG_CO_END_
}
/* Stripes, one from every rank, into x. */
static void cg_accept_stripes_(cg_ex_ *x) {
    for (int q = 0; q < x->transport.size; q++) {
        const int part = cg_stripe_of_rank_(x, q);
        if (q != x->transport.rank)
            cg_accept_(x, (const uint8_t *)x->packet[q], x->len[q], cg_stripe_n_(x, part), cg_reduced_tag_(x, part),
                x->exact ? part : -1, NULL, -1, q);
    }
}
static cg_status cg_write_stripes_(cg_ex_ *x) {
    cg_status s = CG_OK;
    for (int q = 0; q < x->transport.size && s == CG_OK; q++) {
        const int part = cg_stripe_of_rank_(x, q);
        const size_t n = cg_stripe_n_(x, part);
        if (n)
            s = cg_ex_decode_(
                x, x->packet[q], x->len[q], x->over, 0.0f, cg_at_mut_(x->y, cg_stripe_start_(x, part)), n);
    }
    return s;
}
/* Lengths of this rank's parts, for everybody, where they are not known. */
static void cg_allgather_lengths_begin_(cg_ex_ *x) {
    uint8_t *mine = x->notes + (size_t)x->transport.size * 8 * cg_ranks_(x);
    for (int p = 0; p < x->parts; p++) cg_put64_(mine + 8 * p, cg_own_packet_len_(x, p));
    cg_allgather_equal_begin_(x, mine, 8 * (uint64_t)x->parts, x->notes);
}
static void cg_lengths_read_(cg_ex_ *x) { /* of the parts that will come to me */
    const int me = x->transport.rank;
    const uint64_t room = cg_packet_room_(x), known = cg_bound_(&x->desc.op, x->desc.side, cg_stripe_n_(x, me));
    for (size_t q = 0; q < cg_ranks_(x); q++) {
        const uint8_t *row = x->fixed ? NULL : cg_gathered_(x, q);
        x->len[q] = (size_t)(row ? cg_get64_(row + 8 * me) : known);
        for (int p = 0; row && p < x->parts; p++)
            if (cg_get64_(row + 8 * p) > room)
                cg_ex_fail_(x, CG_E_CORRUPT, (int)q, "it announces a packet that is too long");
    }
}
static cg_status cg_route_scatter_(cg_ex_ *x) {
    const int me = x->transport.rank, size = x->transport.size;
    const size_t slot = (size_t)cg_packet_room_(x);
    int to, from;
    CG_CO_BEGIN_(x)
    if (!x->fixed) CG_CO_AWAIT_(x, 1, cg_allgather_lengths_begin_(x));
    cg_lengths_read_(x);
    if (!x->fixed && x->status != CG_OK) return x->status; /* everybody has seen the same lengths */
    x->packet[me] = cg_own_packet_(x, me);
    x->len[me] = cg_own_packet_len_(x, me);
    for (x->t = 1; x->t < size; x->t++) {
        to = cg_wrap_(x, me + x->t);
        from = cg_wrap_(x, me - x->t);
        x->packet[from] = x->inbox + (size_t)from * slot;
        CG_CO_AWAIT_(x, 2,
            cg_sendrecv_begin_(x, cg_own_packet_(x, to), cg_own_packet_len_(x, to), to, x->inbox + (size_t)from * slot,
                x->len[from], from));
    }
    for (int q = 0; q < size; q++)
        if (q != me)
            cg_accept_(x, (const uint8_t *)x->packet[q], x->len[q], cg_stripe_n_(x, me), cg_stripe_tag_(x, me, 0), me,
                &x->desc.op, q, q);
    cg_owner_reduce_(x, me);
    CG_CO_ALLGATHER_(x, 3, x->closed_fixed, x->in);
    cg_inputs_from_gather_(x);
    cg_accept_stripes_(x);
    if (x->status != CG_OK) return x->status;
    cg_owner_carry_update_(x, me);
    return cg_write_stripes_(x);
    CG_CO_END_
}
