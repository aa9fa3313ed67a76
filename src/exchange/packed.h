/* packed: small layers that keep their operators, as the segments of one packet

   Offers   cg_packed_, cg_packed_fits_, cg_packed_plan_, cg_packed_room_, cg_packed_fill_
   Needs    exchange, memory (cg_arena_), core's segments
   Touches  its arrays in the caller's mem; report.used of the layers
   Layers with CG_ONE_PACKET that are small enough travel by allgather, each with its own operator, scales, selection
   and tensor. What was used of each is its segment of this rank's packet, as a packet of its own. */

typedef struct cg_packed_ {
    size_t count;      /* of segments; 0: none, and then nothing below matters */
    uint64_t bound;    /* of the packet */
    uint64_t scratch;  /* to compress any of them */
    uint32_t traits;   /* of any */
    size_t used_bytes; /* of all segments as packets of their own */
    cg_segments segments;
    cg_extra side;
    /* in mem: */
    size_t *n;
    uint32_t *op, *tensor;
    cg_op *ops;
} cg_packed_;
/* Can layer d travel so? first: the first that does. */
static int cg_packed_fits_(const cg_exchange_desc *d, size_t n, const cg_exchange_desc *first) {
    const uint32_t alike = CG_CORRELATED | CG_ONE_PACKET, never = CG_AGREE_SCALES | CG_ABSTAIN | CG_MAY_ABSTAIN;
    const cg_extra *side = d->side;
    cg_resolved_ r;
    if ((d->flags ^ first->flags) & alike || d->flags & never) return 0;
    if (d->route != CG_ROUTE_ALLGATHER && d->route != CG_ROUTE_AUTO) return 0;
    if (d->tag.seed != first->tag.seed || d->tag.step != first->tag.step) return 0;
    if (side && (side->aux || side->scale || side->support || side->codec_count || side->segments)) return 0;
    if (cg_resolve_(&d->op, NULL, n, &r) != CG_OK || !r.bound)
        return 0; /* alone, it is refused with its own sentence */
    if (r.plan.traits & (CG_NEEDS_SUPPORT_ | CG_NEEDS_AUX_)) return 0;
    return !(r.plan.traits & CG_IS_LINEAR_MATRIX_) || d->route == CG_ROUTE_ALLGATHER;
}
/* Counts a layer in; all of them before cg_packed_plan_. An entry of the table takes less than 140 bytes, the operator
   included. */
static void cg_packed_add_(cg_packed_ *p, const cg_exchange_desc *d, size_t n) {
    cg_resolved_ r;
    if (cg_resolve_(&d->op, NULL, n, &r) != CG_OK) return; /* it was resolved before */
    if (!p->count++) p->bound = CG_HEADER_BYTES + 16;
    p->bound = cg_add_sat_(p->bound, cg_add_sat_(r.bound - CG_HEADER_BYTES, 140));
    cg_max_update_(&p->scratch, r.scratch_bytes);
    p->traits |= r.plan.traits;
    p->used_bytes = (size_t)cg_add_sat_(p->used_bytes, r.bound);
}
static void cg_packed_plan_(cg_packed_ *p, cg_arena_ *arena) {
    p->n = (size_t *)(void *)cg_arena_take_(arena, cg_mul_sat_(sizeof(size_t), p->count));
    p->op = (uint32_t *)(void *)cg_arena_take_(arena, cg_mul_sat_(4, p->count));
    p->tensor = (uint32_t *)(void *)cg_arena_take_(arena, cg_mul_sat_(4, p->count));
    p->ops = (cg_op *)(void *)cg_arena_take_(arena, cg_mul_sat_(sizeof(cg_op), p->count));
}
/* Bytes of mem for their exchange, before there are arrays. */
static uint64_t cg_packed_room_(const cg_packed_ *p, const cg_transport *t, const cg_exchange_desc *desc, size_t n) {
    const cg_fenv_ env = cg_fenv_enter_();
    cg_exchange_desc d = *desc;
    cg_exchange_state ex;
    cg_resolved_ r;
    uint64_t bytes;
    memset(&r, 0, sizeof r);
    d.side = NULL;
    r.bound = cg_size_or_zero_(p->bound);
    r.scratch_bytes = p->scratch;
    r.plan.traits = p->traits;
    r.plan.n = r.plan.sampled_n = r.plan.transformed_n = r.plan.max_selected = n;
    r.plan.values_per_index = r.segments_hash = 1;
    bytes = cg_exchange_resolve_(&ex, &d, t, n, &r, 1);
    cg_fenv_leave_(env);
    return cg_add_sat_(bytes, 63) & ~(uint64_t)63;
}
/* Number of an operator among those of the table. */
static uint32_t cg_packed_number_(cg_packed_ *p, const cg_op *op, const cg_op *common) {
    const cg_op dense = cg_dense();
    size_t j = 0;
    if (cg_same_op_(op, common) && op->k == common->k) return CG_SEGMENT_OP;
    if (cg_same_op_(op, &dense)) return CG_SEGMENT_EXACT;
    while (j < p->segments.op_count && !(cg_same_op_(op, &p->ops[j]) && op->k == p->ops[j].k)) j++;
    if (j == p->segments.op_count) p->ops[p->segments.op_count++] = *op;
    return CG_SEGMENT_OPS + (uint32_t)j;
}
/* Layer number i of them, in order; desc: of their exchange. */
static void cg_packed_fill_(cg_packed_ *p, size_t i, const cg_exchange_desc *d, size_t n, cg_exchange_desc *desc) {
    if (i == 0) {
        desc->op = d->op;
        p->segments.n = p->n;
        p->segments.op = p->op;
        p->segments.ops = p->ops;
        p->segments.tensor = p->tensor;
        p->segments.count = p->count;
        p->segments.op_count = 0;
        p->side.segments = &p->segments;
        desc->side = &p->side;
    }
    p->n[i] = n;
    p->tensor[i] = d->tag.tensor;
    p->op[i] = cg_packed_number_(p, &d->op, &desc->op);
}
