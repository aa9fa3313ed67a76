/* levels: a mean over ranks of ranks: inside a node by one transport and operator, between nodes by another

   Offers   cg_exchange_levels, cg_exchange_levels_memory
   Needs    exchange (both legs of scatter), memory (cg_arena_)
   Touches  x, residual and carry of both descriptions, the caller's mem
   Every rank takes part in all four exchanges, also after one has failed, so that nobody waits: the fold of its stripe
   inside the node; the exchange of that stripe with the ranks of its number in other nodes; the stripes of the node
   back to all; and, with CG_CONFIRM, a vector of no values that tells other nodes how it went. What the caller owns is
   written after the last of them. */

typedef struct cg_nodes_ {
    cg_exchange_desc first, across, last, closing;
    size_t begin, mine_n;   /* this rank's stripe */
    size_t across_carry;    /* floats of outer->carry */
    uint64_t exchange_room; /* bytes of mem.exchange */
    cg_report refusal;      /* what is wrong with the descriptions; its status is CG_OK if nothing is */
    /* in mem: */
    float *input;                   /* x + residual; x itself without a residual */
    float *mine, *compensated;      /* the stripe: its fold; with outer->residual added */
    float *result;                  /* n floats, until all is well */
    float *across_kept, *last_kept; /* carries as they were */
    uint8_t *exchange;
} cg_nodes_;

static const char *cg_nodes_refused_(const cg_exchange_desc *inner, const cg_exchange_desc *outer) {
    if (inner->weight != 0.0f || outer->weight != 0.0f || inner->fold || outer->fold)
        return "levels take the mean over ranks of equal weight: fold and weight must be 0 in both descriptions";
    if (inner->model || outer->model || inner->into || outer->into || inner->warm || outer->warm)
        return "levels write to x: into, model and warm must be NULL in both descriptions";
    if (inner->route) return "inside a node levels use both legs of scatter: route must be 0 in the inner description";
    return NULL;
}
/* What each of the four exchanges is. Ranks of one number in different nodes round by different seeds, since their
   errors meet in one mean; the way back has the same one, so that all nodes end with the same bits. */
static void cg_nodes_describe_(cg_nodes_ *v, const cg_exchange_desc *inner, const cg_transport *node,
    const cg_exchange_desc *outer, const cg_transport *across, size_t n) {
    const cg_exchange_desc none = CG_ZERO;
    const uint32_t confirm = (inner->flags | outer->flags) & CG_CONFIRM;
    const uint64_t shape = (uint64_t)(uint32_t)node->size << 32 | (uint32_t)node->rank;
    cg_report_set_(&v->refusal, CG_OK, cg_nodes_refused_(inner, outer), 0, CG_NO_INDEX);
    if (v->refusal.why) v->refusal.status = CG_E_UNSUPPORTED;
    v->begin = cg_stripe_begin(n, node->size, node->rank);
    v->mine_n = cg_stripe_begin(n, node->size, node->rank + 1) - v->begin;
    v->first = *inner;
    v->first.route = CG_ROUTE_REDUCE_SCATTER;
    v->first.tag.seed = cg_mix64_(inner->tag.seed ^ cg_mix64_((uint64_t)(uint32_t)across->rank + CG_GOLDEN_));
    v->first.back = NULL;
    v->first.carry = v->first.residual = NULL;
    v->first.flags |= confirm | (inner->residual ? (uint32_t)CG_FEEDS_BACK : 0u);
    v->across = *outer;
    v->across.residual = NULL;
    v->across.tag.seed = cg_mix64_(outer->tag.seed ^ cg_mix64_(shape + CG_GOLDEN_));
    v->across.common ^= cg_mix64_(shape);
    v->across.flags |= confirm | (outer->residual ? (uint32_t)CG_FEEDS_BACK : 0u);
    v->last = none;
    v->last.op = inner->back ? *inner->back : cg_dense();
    v->last.route = CG_ROUTE_ALL_GATHER;
    v->last.tag = inner->tag;
    v->last.carry = inner->carry;
    v->last.flags = confirm;
    v->closing = none;
    v->closing.route = CG_ROUTE_ALLGATHER;
    v->closing.tag = outer->tag;
    v->closing.tag.seed = cg_mix64_(outer->tag.seed + CG_GOLDEN_);
    v->closing.flags = confirm;
}
/* Bytes of mem for one of the exchanges; 0: it is refused, and v->refusal says why. */
CG_NOINLINE_ uint64_t cg_nodes_room_(cg_nodes_ *v, const cg_exchange_desc *desc, const cg_transport *t, size_t n) {
    cg_exchange_state ex;
    cg_resolved_ resolved;
    const uint64_t room = cg_exchange_resolve_(&ex, desc, t, n, &resolved, 0);
    if (ex.status == CG_OK) return room;
    v->refusal = ex.report;
    return 0;
}
/* Bytes of mem, which is aligned to 64. base: where it begins, or NULL. 0: some exchange is refused. */
static uint64_t cg_nodes_plan_(cg_nodes_ *v, const cg_exchange_desc *inner, const cg_transport *node,
    const cg_exchange_desc *outer, const cg_transport *across, size_t n, uint8_t *base) {
    const uint64_t room[4] = { cg_nodes_room_(v, &v->first, node, n), cg_nodes_room_(v, &v->across, across, v->mine_n),
        cg_nodes_room_(v, &v->last, node, n), cg_nodes_room_(v, &v->closing, across, 0) };
    cg_arena_ arena;
    v->exchange_room = 0;
    for (int i = 0; i < 4; i++) {
        if (!room[i]) return 0;
        cg_max_update_(&v->exchange_room, room[i]);
    }
    v->across_carry = outer->carry ? cg_exchange_carry(&v->across, across, v->mine_n) : 0;
    arena.base = base;
    arena.bytes = 0;
    v->input = (float *)(void *)cg_arena_take_(&arena, inner->residual ? cg_mul_sat_(4, n) : 0);
    v->mine = (float *)(void *)cg_arena_take_(&arena, cg_mul_sat_(4, v->mine_n) + 4);
    v->compensated = (float *)(void *)cg_arena_take_(&arena, outer->residual ? cg_mul_sat_(4, v->mine_n) + 4 : 0);
    v->result = (float *)(void *)cg_arena_take_(&arena, cg_mul_sat_(4, n) + 4);
    v->across_kept = (float *)(void *)cg_arena_take_(&arena, cg_mul_sat_(4, v->across_carry));
    v->last_kept = (float *)(void *)cg_arena_take_(&arena, inner->carry ? cg_mul_sat_(4, v->mine_n) : 0);
    v->exchange = cg_arena_take_(&arena, v->exchange_room);
    return arena.bytes;
}
/* One of the exchanges, with what went wrong before, if anything; *report adds it up, and has the first failure. */
static cg_status cg_nodes_run_(const cg_nodes_ *v, const cg_exchange_desc *desc, const cg_transport *t, float *x,
    size_t n, cg_status status, cg_report *report, cg_report *one) {
    const cg_status s = cg_exchange_or_fail_(
        desc, t, x, n, v->exchange, v->exchange ? (size_t)v->exchange_room : 0, status, one);
    const uint64_t bytes_out = report->bytes_out + one->bytes_out, bytes_in = report->bytes_in + one->bytes_in;
    const uint32_t rounds = report->rounds + one->rounds;
    if (status == CG_OK && (s != CG_OK || desc == &v->across)) *report = *one;
    report->bytes_out = bytes_out;
    report->bytes_in = bytes_in;
    report->rounds = rounds;
    report->used = NULL;
    report->used_len = 0;
    return status != CG_OK ? status : s;
}
static void cg_nodes_copy_(float *to, const float *from, size_t n) {
    if (n) memcpy(to, from, 4 * n);
}
/* v = x + residual, or a copy of x. */
static void cg_nodes_add_(float *v, const float *x, const float *residual, size_t n) {
    cg_fenv_ env;
    if (!n) return;
    env = cg_fenv_enter_();
    memcpy(v, x, 4 * n);
    cg_axpby_(residual, n, 1.0f, 1.0f, v);
    cg_fenv_leave_(env);
}
/* All four. Residuals and carries of the caller may have changed afterwards if they are kept in v. */
static cg_status cg_nodes_exchange_(cg_nodes_ *v, const cg_exchange_desc *inner, const cg_transport *node,
    const cg_exchange_desc *outer, const cg_transport *across, const float *x, size_t n, cg_status s,
    cg_report *report) {
    cg_report one;
    float *input = (float *)(uintptr_t)x; /* only read: the fold goes to mine */
    if (s == CG_OK && inner->residual) cg_nodes_add_(input = v->input, x, inner->residual, n);
    v->first.mine = v->mine;
    s = cg_nodes_run_(v, &v->first, node, input, n, s, report, &one);
    if (s == CG_OK && inner->residual)
        s = cg_used_decode(inner->side, one.used, one.used_len, -1.0f, 1.0f, v->input, n);
    if (s == CG_OK && outer->residual) {
        cg_nodes_add_(v->compensated, v->mine, outer->residual, v->mine_n);
        v->across.into = v->mine;
    }
    s = cg_nodes_run_(v, &v->across, across, outer->residual ? v->compensated : v->mine, v->mine_n, s, report, &one);
    if (s == CG_OK && outer->residual)
        s = cg_used_decode(outer->side, one.used, one.used_len, -1.0f, 1.0f, v->compensated, v->mine_n);
    v->last.mine = v->mine;
    s = cg_nodes_run_(v, &v->last, node, v->result, n, s, report, &one);
    if (v->closing.flags) s = cg_nodes_run_(v, &v->closing, across, NULL, 0, s, report, &one);
    return s;
}
CG_API_ size_t cg_exchange_levels_memory(const cg_exchange_desc *inner, const cg_transport *node,
    const cg_exchange_desc *outer, const cg_transport *across, size_t n) {
    cg_nodes_ v;
    cg_fenv_ env;
    uint64_t bytes;
    if (!inner || !node || !outer || !across || cg_transport_error_(node) || cg_transport_error_(across)) return 0;
    env = cg_fenv_enter_();
    cg_nodes_describe_(&v, inner, node, outer, across, n);
    bytes = v.refusal.status ? 0 : cg_nodes_plan_(&v, inner, node, outer, across, n, NULL);
    cg_fenv_leave_(env);
    return bytes ? cg_size_or_zero_(cg_add_sat_(bytes, 64)) : 0;
}
CG_API_ cg_status cg_exchange_levels(const cg_exchange_desc *inner, const cg_transport *node,
    const cg_exchange_desc *outer, const cg_transport *across, float *x, size_t n, void *mem, size_t bytes,
    cg_report *report) {
    const size_t skip = mem ? (64 - ((uintptr_t)mem & 63)) % 64 : 0;
    cg_nodes_ v;
    cg_report ours;
    uint64_t need;
    cg_status s = CG_OK;
    if (!report) report = &ours;
    cg_report_set_(report, CG_E_ARG, "a description or a transport is NULL", 0, CG_NO_INDEX);
    if (!inner || !node || !outer || !across) return CG_E_ARG;
    if (cg_transport_error_(node) || cg_transport_error_(across)) {
        report->why = cg_transport_error_(node) ? cg_transport_error_(node) : cg_transport_error_(across);
        return CG_E_ARG;
    }
    cg_nodes_describe_(&v, inner, node, outer, across, n);
    need = v.refusal.status ? 0 : cg_nodes_plan_(&v, inner, node, outer, across, n, NULL);
    v.exchange = NULL;
    cg_report_set_(report, CG_OK, cg_status_str(CG_OK), 0, CG_NO_INDEX);
    if (v.refusal.status) *report = v.refusal;
    else if (!x && n) cg_report_set_(report, CG_E_ARG, "x is NULL", 0, CG_NO_INDEX);
    else if ((!mem || bytes < skip || bytes - skip < need))
        cg_report_set_(
            report, CG_E_MEMORY, "mem is too small: cg_exchange_levels_memory gives its bytes", need + 64, CG_NO_INDEX);
    s = (cg_status)report->status;
    if (s != CG_OK) report->rank = node->rank;
    else cg_nodes_plan_(&v, inner, node, outer, across, n, (uint8_t *)mem + skip);
    if (s == CG_OK) {
        cg_nodes_copy_(v.across_kept, outer->carry, v.across_carry);
        if (inner->carry) cg_nodes_copy_(v.last_kept, inner->carry, v.mine_n);
    }
    s = cg_nodes_exchange_(&v, inner, node, outer, across, x, n, s, report);
    if (!v.exchange) return s;
    if (s == CG_OK) {
        if (inner->residual) cg_nodes_copy_(inner->residual, v.input, n);
        if (outer->residual) cg_nodes_copy_(outer->residual, v.compensated, v.mine_n);
        cg_nodes_copy_(x, v.result, n);
    } else {
        cg_nodes_copy_(outer->carry, v.across_kept, v.across_carry);
        if (inner->carry) cg_nodes_copy_(inner->carry, v.last_kept, v.mine_n);
    }
    return s;
}
