/* memory: one plan of the caller's mem, for its size and for the places in it

   Offers   cg_mem_plan_, cg_arena_, lengths (cg_dense_bound_, cg_sum_bound_), cg_back_extra_
   Needs    ranks, routes, core's resolve and sparse; the plans of routes, by their rows
   Touches  ex->mem and all fields marked [mem] in cg_exchange_state, and the capacities beside them
   Other headers may use: cg_arena_, cg_arena_take_
   All sizes saturate: a sum that does not fit is larger than SIZE_MAX / 2, and refused. */

/* Memory handed out from its start, in multiples of 64 bytes. */
typedef struct cg_arena_ {
    uint8_t *base;  /* NULL: only the bytes are counted */
    uint64_t bytes; /* handed out so far */
} cg_arena_;
/* NULL if base is. The caller has compared the bytes with what there is. */
static uint8_t *cg_arena_take_(cg_arena_ *arena, uint64_t bytes) {
    uint8_t *p = arena->base ? arena->base + (size_t)arena->bytes : NULL;
    arena->bytes = cg_add_sat_(arena->bytes, cg_add_sat_(bytes, 63) & ~(uint64_t)63);
    return p;
}
static uint64_t cg_dense_bound_(uint64_t n) { return cg_add_sat_(CG_HEADER_BYTES, cg_mul_sat_(4, n)); }
/* Bytes of an exact sum of `count` packets of n values, at most. */
static uint64_t cg_sum_bound_(const cg_ex_ *ex, size_t n, uint64_t count) {
    cg_resolved_ r;
    if (cg_resolve_(&ex->desc.op, NULL, n, &r) != CG_OK) return CG_TOO_LARGE_; /* it is, for the whole vector */
    if (ex->desc.op.select.id)
        return cg_sparse_packet_bound_(r.plan.transformed_n, cg_mul_sat_(count, r.plan.max_selected));
    return cg_add_sat_(r.bound, cg_dense_bound_(r.plan.transformed_n));
}
/* Scratch of cg_reduce for them: two lists, if they are sparse. */
static uint64_t cg_sum_scratch_(const cg_op *op, size_t n, uint64_t count) {
    cg_resolved_ r;
    uint64_t max_selected;
    if (!op->select.id) return 0;
    if (cg_resolve_(op, NULL, n, &r) != CG_OK) return CG_TOO_LARGE_;
    max_selected = cg_mul_sat_(count, r.plan.max_selected);
    if (max_selected > r.plan.transformed_n) max_selected = r.plan.transformed_n;
    return cg_add_sat_(cg_mul_sat_(2, cg_list_in_mem_(NULL, NULL, r.plan.transformed_n, max_selected)), 64);
}
/* Hops from the furthest rank to the root of a binomial tree. */
static uint64_t cg_tree_depth_(const cg_ex_ *ex) {
    return ex->transport.size > 1 ? cg_log2_((uint64_t)ex->transport.size - 1) + 1 : 0;
}
/* desc.side as far as it applies to a sum that is encoded again: the caller's codecs, nothing that belongs to grad. */
static cg_extra cg_back_extra_(const cg_ex_ *ex) {
    cg_extra side = CG_ZERO;
    if (!ex->desc.side || !(ex->plan.back_traits & CG_IS_USER_CODEC_)) return side;
    side.codecs = ex->desc.side->codecs;
    side.codec_count = ex->desc.side->codec_count;
    return side;
}
/* Bytes of the reduced packet of any stripe, at most. */
static uint64_t cg_reduced_room_(const cg_ex_ *ex) {
    const cg_extra side = cg_back_extra_(ex);
    uint64_t room = 0;
    if (cg_fold_has_(ex, CG_FOLD_NEEDS_SIGNS_)) return ex->plan.packet_room;
    for (int p = 0; p < ex->plan.stripes; p++)
        cg_max_update_(&room,
            ex->plan.exact ? cg_sum_bound_(ex, cg_stripe_n_(ex, p), (uint64_t)ex->transport.size)
                           : cg_bound_with(&ex->plan.back, &side, cg_stripe_n_(ex, p)));
    return room;
}
static uint64_t cg_stripe_max_n_(const cg_ex_ *ex) {
    uint64_t n = 0;
    for (int p = 0; p < ex->plan.stripes; p++) cg_max_update_(&n, cg_stripe_n_(ex, p));
    return n;
}
static void cg_sum_scratch_max_(const cg_ex_ *ex, uint64_t *scratch) {
    for (int p = 0; p < ex->plan.stripes; p++)
        cg_max_update_(scratch, cg_sum_scratch_(&ex->desc.op, cg_stripe_n_(ex, p), (uint64_t)ex->transport.size));
}

/* Scales of a stripe, if ranks are to agree on them. */
static uint64_t cg_stripe_scale_count_(const cg_ex_ *ex, int stripe) {
    cg_resolved_ r;
    if (!(ex->desc.flags & CG_AGREE_SCALES)) return 0;
    return cg_resolve_(&ex->desc.op, NULL, cg_stripe_n_(ex, stripe), &r) == CG_OK ? r.scale_count : 0;
}
static uint64_t cg_sum_bounce_of_(const cg_ex_ *ex, uint64_t floats) {
    const uint32_t sum = cg_sum_kind_(ex, (size_t)floats);
    return sum == CG_SUM_CALLBACK ? 0 : cg_sum_bounce_(sum, ex->transport.size, floats);
}
/* Bytes of the bounce buffer: by sendrecv an allreduce needs room for what one round adds; without sendrecv every
   collective that has no callback of its own needs a fragment from every rank. */
static uint64_t cg_bounce_room_of_(const cg_ex_ *ex, uint64_t sum_floats) {
    const uint64_t size = (uint64_t)ex->transport.size, min_fragment = 4096,
                   fragment = 1048576 / size < min_fragment ? min_fragment
        : 1048576 / size > 65536                            ? 65536
                                                            : 1048576 / size;
    if (size == 1) return 0;
    return ex->transport.sendrecv ? cg_mul_sat_(4, sum_floats) : cg_mul_sat_(size, fragment);
}
static uint64_t cg_bounce_room_(const cg_ex_ *ex) {
    uint64_t floats = 0;
    if (cg_route_has_(ex, CG_ROUTE_ALLREDUCES_)) {
        if (ex->plan.traits & CG_IS_SELECTION_) floats = cg_sum_bounce_of_(ex, ex->plan.max_selected);
        else if (ex->plan.traits & CG_IS_MATRIX_) {
            floats = cg_sum_bounce_of_(ex, ex->plan.left_floats);
            cg_max_update_(&floats, cg_sum_bounce_of_(ex, ex->plan.transformed_n - ex->plan.left_floats));
        } else floats = cg_sum_bounce_of_(ex, ex->plan.transformed_n);
    }
    return cg_bounce_room_of_(ex, floats);
}
/* Bytes of mem beside the state. A route's row takes what the route needs beside what all need, and raises scratch to
   what cg_reduce needs there. base: where it begins, aligned to 64 bytes, to set the places in ex too; NULL: they
   are set to NULL. If ex->status is not CG_OK, only what the opening needs. */
static uint64_t cg_mem_plan_(cg_ex_ *ex, uint8_t *base) {
    const uint64_t size = (uint64_t)ex->transport.size;
    /* tables with a number from every rank for every other */
    const int has_tables = cg_route_has_(ex, CG_ROUTE_TELLS_COUNTS_) ||
        (cg_route_has_(ex, CG_ROUTE_TELLS_LENGTHS_) && !ex->plan.op_len_fixed);
    cg_arena_ arena;
    cg_resolved_ *resolved;
    uint64_t scratch = ex->plan.scratch_bytes, bounce, room;
    arena.base = base;
    arena.bytes = 0;
    ex->opening.records = cg_arena_take_(&arena, size * CG_RECORD_BYTES_);
    ex->opening.gathered = cg_arena_take_(&arena, size * CG_RECORD_BYTES_);
    ex->mem.sizes = (uint64_t *)(void *)cg_arena_take_(&arena, 8 * size);
    if (ex->status != CG_OK) return arena.bytes; /* enough to tell the others */
    bounce = cg_bounce_room_(ex);
    ex->mem.bounce = cg_arena_take_(&arena, bounce);
    ex->mem.bounce_bytes = (size_t)bounce;
    ex->note.all = cg_arena_take_(&arena, cg_mul_sat_(size + 1, CG_NOTE_BYTES_ + (has_tables ? 8 * size : 0)));
    ex->own.offset = (uint64_t *)(void *)cg_arena_take_(&arena, 8 * (size + 1));
    ex->inputs.packet = (const void **)(void *)cg_arena_take_(&arena, size * sizeof(void *));
    ex->inputs.len = (size_t *)(void *)cg_arena_take_(&arena, size * sizeof(size_t));
    ex->inputs.decoder = (cg_decoder_ *)(void *)cg_arena_take_(&arena, cg_mul_sat_(size, sizeof(cg_decoder_)));
    resolved = (cg_resolved_ *)(void *)cg_arena_take_(&arena, sizeof *resolved);
    if (resolved) {
        *resolved = *ex->resolved;
        ex->resolved = resolved;
    }
    room = cg_is_compressed_first_(ex) && !cg_route_has_(ex, CG_ROUTE_BEGINS_AT_OWNER_)
        ? cg_mul_sat_((uint64_t)ex->plan.stripes, ex->plan.packet_room)
        : 0;
    if (ex->plan.direct) room = ex->plan.packet_room;
    if (cg_hops_reencode_(ex)) room = cg_add_sat_(cg_mul_sat_(4, ex->n), (uint64_t)ex->plan.stripes * CG_HEADER_BYTES);
    ex->own.packets = cg_arena_take_(&arena, room);
    if (ex->desc.flags & CG_AGREE_SCALES) {
        ex->scales.count = 0;
        for (int p = 0; p < ex->plan.stripes; p++)
            ex->scales.count = cg_add_sat_(ex->scales.count, cg_stripe_scale_count_(ex, p));
        ex->scales.max = (float *)(void *)cg_arena_take_(&arena, cg_mul_sat_(4, ex->scales.count));
        ex->scales.all = cg_arena_take_(
            &arena, cg_mul_sat_(size + 1, cg_add_sat_(cg_mul_sat_(4, ex->scales.count), 4 + CG_NOTE_BYTES_)));
    }
    cg_route_row_of_(ex->plan.route)->plan(ex, &arena, &scratch);
    ex->mem.scratch = cg_arena_take_(&arena, scratch);
    ex->mem.scratch_bytes = (size_t)scratch;
    return arena.bytes;
}
