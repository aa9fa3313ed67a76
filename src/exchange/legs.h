/* legs: the two legs of scatter as routes of their own: every rank gets the fold of its stripe, or gives its stripe to
   all

   Offers   cg_plan_reduce_scatter_, cg_write_reduce_scatter_, cg_refuse_half_; cg_compress_mine_, cg_plan_all_gather_,
            cg_route_all_gather_, cg_write_all_gather_
   Needs    owner (whose coroutine is the first leg, too), coroutine, accumulate
   Touches  ex->inputs, ex->reduced, ex->mem.inbox, stripes and sum, desc.carry, ex->result or desc.mine, desc.model */

/* This rank's stripe: apart from x, or in it. */
static float *cg_mine_(const cg_ex_ *ex, float *x) {
    if (ex->desc.mine) return ex->desc.mine;
    return cg_stripe_n_(ex, ex->transport.rank) ? cg_at_mut_(x, cg_stripe_start_(ex, ex->transport.rank)) : x;
}
static void cg_plan_reduce_scatter_(cg_ex_ *ex, cg_arena_ *arena, uint64_t *scratch) {
    (void)scratch;
    ex->mem.inbox = cg_arena_take_(arena, cg_mul_sat_((uint64_t)ex->transport.size, ex->plan.packet_room));
    ex->reduced.cap = cg_fold_row_of_(ex->desc.fold)->reduce ? ex->plan.packet_room : 0;
    ex->reduced.packet = cg_arena_take_(arena, ex->reduced.cap);
}
static cg_status cg_write_reduce_scatter_(cg_ex_ *ex) {
    const int me = ex->transport.rank;
    const size_t n = cg_stripe_n_(ex, me);
    float *mine = cg_mine_(ex, ex->result);
    cg_accum_ sum;
    cg_status s;
    if (cg_fold_row_of_(ex->desc.fold)->reduce) {
        s = cg_ex_decode_(ex, ex->reduced.packet, ex->reduced.len, 1.0f, 0.0f, mine, n);
    } else {
        cg_accum_ranks_(ex, mine, n, &sum);
        s = cg_accum_all_(&sum);
    }
    if (s == CG_OK && ex->desc.model && n)
        cg_axpby_(mine, n, -ex->desc.rate, 1.0f, cg_at_mut_(ex->desc.model, cg_stripe_start_(ex, me)));
    ex->desc.model = NULL; /* its step is taken */
    return s;
}

/* reduced.packet = this rank's stripe, with carry added; mem.sum = what that has lost, if there is a carry. */
static void cg_compress_mine_(cg_ex_ *ex) {
    const int me = ex->transport.rank;
    const size_t n = cg_stripe_n_(ex, me);
    const cg_tag tag = cg_stripe_tag_(ex, me, 1);
    const float *v = cg_mine_(ex, ex->grad);
    cg_extra side = CG_ZERO;
    cg_report report;
    cg_status s;
    for (int p = 0; p <= ex->plan.stripes; p++) ex->own.offset[p] = 0; /* no packets but that one */
    if (ex->desc.side) side = *ex->desc.side;
    side.report = &report;
    if (ex->desc.carry && n) {
        memcpy(ex->mem.sum, v, 4 * n);
        cg_axpby_(ex->desc.carry, n, 1.0f, 1.0f, ex->mem.sum);
        v = ex->mem.sum;
    }
    s = cg_ex_compress_(ex, &ex->desc.op, &tag, &side, v, n, ex->reduced.packet, ex->reduced.cap, &ex->reduced.len);
    if (s != CG_OK) {
        cg_ex_fail_here_(ex, s, report.why, report.need,
            report.at == CG_NO_INDEX ? CG_NO_INDEX : cg_stripe_start_(ex, me) + report.at);
        return;
    }
    ex->report.used = ex->reduced.packet;
    ex->contrib.len = ex->reduced.len;
    if (ex->desc.carry) s = cg_ex_decode_(ex, ex->reduced.packet, ex->reduced.len, -1.0f, 1.0f, ex->mem.sum, n);
    if (s != CG_OK) cg_ex_fail_(ex, s, me, cg_status_str(s));
}
static void cg_plan_all_gather_(cg_ex_ *ex, cg_arena_ *arena, uint64_t *scratch) {
    const uint64_t room = cg_reduced_room_(ex), n = cg_stripe_n_(ex, ex->transport.rank);
    (void)scratch;
    ex->reduced.cap = (size_t)room;
    ex->reduced.packet = cg_arena_take_(arena, room);
    ex->mem.stripes = cg_arena_take_(arena, cg_mul_sat_((uint64_t)ex->transport.size, room));
    ex->mem.sum = (float *)(void *)cg_arena_take_(arena, ex->desc.carry ? cg_mul_sat_(4, n) : 0);
}
static cg_status cg_route_all_gather_(cg_ex_ *ex) {
    CG_CO_BEGIN_(ex)
    CG_CO_ALLGATHER_(ex, 1, ex->plan.reduced_len_fixed, ex->mem.stripes);
    cg_inputs_from_gather_(ex);
    cg_accept_stripes_(ex);
    return CG_OK;
    CG_CO_END_
}
static cg_status cg_write_all_gather_(cg_ex_ *ex) {
    const size_t n = cg_stripe_n_(ex, ex->transport.rank);
    if (ex->desc.carry && n) memcpy(ex->desc.carry, ex->mem.sum, 4 * n);
    return cg_write_stripes_(ex);
}
