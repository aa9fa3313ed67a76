/* memory: one plan of the caller's mem, for its size and for the places in it

   Offers   cg_mem_plan_, cg_arena_, lengths (cg_dense_bound_, cg_sum_bound_), cg_back_extra_
   Needs    ranks, routes, traits, sparse
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
static uint64_t cg_sum_bound_(const cg_ex_ *ex, uint64_t n, uint64_t count) {
    const cg_traits_ traits = cg_traits_of_(&ex->desc.op, n);
    const uint64_t transformed_n = traits.shape.transformed_n;
    if (ex->desc.op.select.id)
        return cg_sparse_packet_bound_(transformed_n, cg_mul_sat_(count, traits.shape.max_selected));
    return cg_add_sat_(cg_bound(&ex->desc.op, (size_t)n), cg_dense_bound_(transformed_n));
}
/* Scratch of cg_reduce for them: two lists, if they are sparse. */
static uint64_t cg_sum_scratch_(const cg_op *op, uint64_t n, uint64_t count) {
    cg_traits_ traits;
    uint64_t max_selected;
    if (!op->select.id) return 0;
    traits = cg_traits_of_(op, n);
    max_selected = cg_mul_sat_(count, traits.shape.max_selected);
    if (max_selected > traits.shape.transformed_n) max_selected = traits.shape.transformed_n;
    return cg_add_sat_(cg_mul_sat_(2, cg_list_bytes_(traits.shape.transformed_n, max_selected)), 64);
}
/* Hops from the furthest rank to the root of a binomial tree. */
static uint64_t cg_tree_depth_(const cg_ex_ *ex) {
    return ex->transport.size > 1 ? cg_log2_((uint64_t)ex->transport.size - 1) + 1 : 0;
}
/* desc.side as far as it applies to a sum that is encoded again: the caller's codecs, nothing that belongs to grad. */
static cg_extra cg_back_extra_(const cg_ex_ *ex) {
    cg_extra side = CG_ZERO;
    if (!ex->desc.side || !cg_traits_of_(&ex->plan.back, ex->n).has_user_codec) return side;
    side.codecs = ex->desc.side->codecs;
    side.codec_count = ex->desc.side->codec_count;
    return side;
}
/* Bytes of the reduced packet of any stripe, at most. */
static uint64_t cg_reduced_room_(const cg_ex_ *ex) {
    const cg_extra side = cg_back_extra_(ex);
    uint64_t room = 0;
    if (ex->desc.fold == CG_FOLD_VOTE) return ex->plan.packet_room;
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

/* The cg_mem_plan_ functions of routes take what the route needs beside what all need; *scratch becomes at least what
   cg_reduce needs there. */
static void cg_mem_plan_ring_tree_(cg_ex_ *ex, cg_arena_ *arena, uint64_t *scratch) {
    const uint64_t reduced_room = cg_reduced_room_(ex), size = (uint64_t)ex->transport.size;
    /* a rank of a tree that encodes again keeps the packets of all its children until then */
    ex->mem.inbox = cg_arena_take_(arena,
        cg_mul_sat_(
            ex->plan.route == CG_ROUTE_TREE && !ex->plan.exact ? cg_add_sat_(cg_tree_depth_(ex), 1) : 1, reduced_room));
    ex->partial.buf[0] = cg_arena_take_(arena, reduced_room);
    ex->partial.buf[1] = cg_arena_take_(arena, reduced_room);
    ex->mem.stripes = cg_arena_take_(arena, ex->plan.route == CG_ROUTE_RING ? cg_mul_sat_(size, reduced_room) : 0);
    if (ex->plan.exact) cg_sum_scratch_max_(ex, scratch);
    else ex->mem.sum = (float *)(void *)cg_arena_take_(arena, cg_mul_sat_(4, ex->n));
    ex->reduced.cap = (size_t)reduced_room;
}
static void cg_mem_plan_owner_(cg_ex_ *ex, cg_arena_ *arena, uint64_t *scratch) { /* server, scatter */
    const uint64_t reduced_room = cg_reduced_room_(ex), size = (uint64_t)ex->transport.size;
    const int is_owner = ex->plan.route == CG_ROUTE_SCATTER || ex->plan.root == ex->transport.rank ||
        !ex->transport.sendrecv || ex->desc.leader == CG_LEADER_BY_SCORE;
    ex->mem.inbox = cg_arena_take_(arena, is_owner ? cg_mul_sat_(size, ex->plan.packet_room) : 0);
    ex->reduced.packet = cg_arena_take_(arena, reduced_room);
    ex->mem.stripes = cg_arena_take_(arena, ex->plan.route == CG_ROUTE_SCATTER ? cg_mul_sat_(size, reduced_room) : 0);
    ex->reduced.cap = (size_t)reduced_room;
    if (!is_owner || ex->desc.fold == CG_FOLD_VOTE) return;
    if (ex->plan.exact) {
        cg_sum_scratch_max_(ex, scratch);
        return;
    }
    ex->mem.sum = (float *)(void *)cg_arena_take_(arena, cg_mul_sat_(4, cg_stripe_max_n_(ex)));
    if (ex->desc.carry ||
        (cg_is_f32_(&ex->plan.back) && !ex->plan.back.select.id && !ex->plan.back.sample.id &&
            !ex->plan.back.transform.id))
        return;
    ex->contrib.packets = cg_arena_take_(arena,
        cg_add_sat_(
            cg_mul_sat_((uint64_t)ex->plan.stripes, ex->plan.packet_room), cg_dense_bound_(cg_stripe_max_n_(ex))));
}
/* Merge and region split a sum of packets into two lists, shared writes one list. fan_in: packets added at once;
   merges: sums that this rank may cut, each of which drops something. */
static void cg_mem_plan_lists_(cg_ex_ *ex, cg_arena_ *arena, uint64_t *scratch) {
    const uint64_t size = (uint64_t)ex->transport.size, n = ex->n;
    const uint64_t fan_in = ex->plan.route == CG_ROUTE_REGION ? size
        : ex->plan.route == CG_ROUTE_MERGE                    ? 2
                                                              : 1,
                   merges = ex->plan.route == CG_ROUTE_MERGE ? cg_tree_depth_(ex) : 1;
    uint64_t max_sum_n = cg_mul_sat_(fan_in, ex->plan.max_selected),
             max_dropped = cg_mul_sat_(cg_mul_sat_(fan_in, ex->plan.max_selected), merges),
             room = cg_sparse_packet_bound_(n, ex->plan.max_selected);
    cg_max_update_(&room, ex->plan.packet_room);
    max_sum_n = max_sum_n > n ? n : max_sum_n;
    ex->mem.list_cap = (size_t)max_sum_n;
    ex->mem.lists = cg_arena_take_(arena, cg_mul_sat_(2, cg_list_bytes_(n, max_sum_n)));
    ex->contrib.packets = cg_arena_take_(
        arena, cg_sparse_packet_bound_(n, cg_add_sat_(max_dropped, ex->plan.max_selected)));
    ex->contrib.cap = (size_t)cg_sparse_packet_bound_(n, cg_add_sat_(max_dropped, ex->plan.max_selected));
    ex->reduced.cap = (size_t)cg_add_sat_(room, 1024);
    ex->reduced.packet = cg_arena_take_(arena, ex->reduced.cap);
    ex->mem.inbox = cg_arena_take_(
        arena, cg_mul_sat_(ex->plan.route == CG_ROUTE_REGION ? size : 1, cg_add_sat_(room, 1024)));
    if (ex->plan.route == CG_ROUTE_SHARED) return;
    ex->partial.buf[0] = cg_arena_take_(arena, cg_sparse_packet_bound_(n, max_sum_n));
    ex->partial.buf[1] = cg_arena_take_(
        arena, ex->plan.route == CG_ROUTE_MERGE ? cg_sparse_packet_bound_(n, max_sum_n) : 0);
    ex->dropped.cap = (size_t)cg_add_sat_(
        cg_sparse_packet_bound_(n, max_dropped), cg_mul_sat_(size, CG_HEADER_BYTES + 96));
    ex->dropped.buf[0] = cg_arena_take_(arena, ex->dropped.cap);
    ex->dropped.buf[1] = cg_arena_take_(arena, ex->plan.route == CG_ROUTE_MERGE ? ex->dropped.cap : 0);
    cg_max_update_(
        scratch, cg_add_sat_(cg_mul_sat_(2, cg_list_bytes_(n, cg_add_sat_(max_dropped, ex->plan.max_selected))), 64));
    if (ex->plan.route != CG_ROUTE_REGION) return;
    ex->region.bounds = (uint64_t *)(void *)cg_arena_take_(arena, 8 * (size + 1));
    ex->region.send_offset = (uint64_t *)(void *)cg_arena_take_(arena, 8 * size);
    ex->region.ties = (uint64_t *)(void *)cg_arena_take_(arena, 8 * size);
    /* 256 counts of 4 bytes and a note from every rank */
    ex->region.histograms = cg_arena_take_(arena, cg_mul_sat_(size, CG_COUNT_BYTES_ + CG_NOTE_BYTES_));
}
static void cg_mem_plan_linear_(cg_ex_ *ex, cg_arena_ *arena) {
    ex->reduced.packet = cg_arena_take_(arena, ex->plan.packet_room);
    ex->reduced.cap = (size_t)ex->plan.packet_room;
    if (ex->plan.is_matrix)
        ex->mem.matrix_work = (double *)(void *)cg_arena_take_(arena, cg_mul_sat_(8, ex->plan.transformed_n));
}
/* Scales of a stripe, if ranks are to agree on them. */
static uint64_t cg_stripe_scale_count_(const cg_ex_ *ex, int stripe) {
    return ex->desc.flags & CG_AGREE_SCALES ? cg_traits_of_(&ex->desc.op, cg_stripe_n_(ex, stripe)).scale_count : 0;
}
/* Bytes of the bounce buffer: by sendrecv an allreduce needs room for one of its stripes; without sendrecv every
   collective that has no callback of its own needs a fragment from every rank. */
static uint64_t cg_bounce_room_(const cg_ex_ *ex) {
    const uint64_t size = (uint64_t)ex->transport.size, min_fragment = 4096,
                   fragment = 1048576 / size < min_fragment ? min_fragment
        : 1048576 / size > 65536                            ? 65536
                                                            : 1048576 / size;
    uint64_t allreduce_floats = 0;
    if (size == 1) return 0;
    if (ex->plan.route == CG_ROUTE_LINEAR) allreduce_floats = ex->plan.transformed_n;
    if (ex->plan.route == CG_ROUTE_SHARED) allreduce_floats = ex->plan.max_selected;
    if (ex->transport.sendrecv) return allreduce_floats ? cg_mul_sat_(4, allreduce_floats / size + 128) : 0;
    return cg_mul_sat_(size, fragment);
}
/* Bytes of mem beside the state. base: where it begins, aligned to 64 bytes, to set the places in ex too; NULL: they
   are set to NULL. If ex->status is not CG_OK, only what the opening needs. */
static uint64_t cg_mem_plan_(cg_ex_ *ex, uint8_t *base) {
    const cg_op *op = &ex->desc.op;
    const uint64_t size = (uint64_t)ex->transport.size;
    /* tables with a number from every rank for every other */
    const int has_tables = ex->plan.route == CG_ROUTE_REGION ||
        (ex->plan.route == CG_ROUTE_SCATTER && !ex->plan.op_len_fixed);
    cg_arena_ arena;
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
    room = cg_is_compressed_first_(ex) ? cg_mul_sat_((uint64_t)ex->plan.stripes, ex->plan.packet_room) : 0;
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
    switch (ex->plan.route) {
    case CG_ROUTE_RING:
    case CG_ROUTE_TREE: cg_mem_plan_ring_tree_(ex, &arena, &scratch); break;
    case CG_ROUTE_SCATTER:
    case CG_ROUTE_SERVER: cg_mem_plan_owner_(ex, &arena, &scratch); break;
    case CG_ROUTE_MERGE:
    case CG_ROUTE_REGION:
    case CG_ROUTE_SHARED: cg_mem_plan_lists_(ex, &arena, &scratch); break;
    case CG_ROUTE_LINEAR: cg_mem_plan_linear_(ex, &arena); break;
    default:
        ex->mem.inbox = cg_arena_take_(&arena, cg_mul_sat_(size, ex->plan.packet_room));
        if (ex->plan.has_pairs)
            ex->inputs.reader = (cg_sparse_reader_ *)(void *)cg_arena_take_(
                &arena, cg_mul_sat_(size, sizeof(cg_sparse_reader_)));
        ex->reduced.cap = 0;
        if (ex->desc.fold == CG_FOLD_VOTE) ex->reduced.cap = (size_t)ex->plan.packet_room;
        if (ex->desc.fold == CG_FOLD_CONTRIBUTORS && op->select.id) {
            ex->reduced.cap = (size_t)cg_sum_bound_(ex, ex->n, size);
            cg_max_update_(&scratch, cg_sum_scratch_(op, ex->n, size));
            ex->mem.contributors = (uint32_t *)(void *)cg_arena_take_(
                &arena, cg_mul_sat_(4, cg_mul_sat_(size, cg_traits_of_(op, ex->n).shape.max_selected)));
        }
        ex->reduced.packet = cg_arena_take_(&arena, ex->reduced.cap);
    }
    ex->mem.scratch = cg_arena_take_(&arena, scratch);
    ex->mem.scratch_bytes = (size_t)scratch;
    return arena.bytes;
}
