/* ---- >>memory: one plan, for the sum of it and for the places ---- */

typedef struct cg_sparse_cursor_ {
    cg_index_reader_ reader;
    const uint8_t *values;
    size_t left, next, have;
    uint64_t at[CG_SPARSE_BATCH_];
} cg_sparse_cursor_;
typedef struct cg_arena_ {
    uint8_t *base;
    uint64_t bytes;
} cg_arena_;
static uint8_t *cg_arena_take_(cg_arena_ *c, uint64_t bytes) {
    uint8_t *p = c->base ? c->base + (size_t)c->bytes : NULL;
    c->bytes = cg_add_sat_(c->bytes, cg_add_sat_(bytes, 63) & ~(uint64_t)63);
    return p;
}
/* An f32 packet of at most so many of n. */
static uint64_t cg_sparse_bound_(uint64_t n, uint64_t most) {
    const cg_op any = cg_threshold(0.0f);
    if (most > n) most = n;
    return cg_add_sat_(CG_HEADER_BYTES, cg_add_sat_(cg_mul_sat_(4, most), cg_index_bound_(&any, n, most)));
}
/* What a sum of `count` packets of n values may take, where it is exact. */
static uint64_t cg_sum_bound_(const cg_ex_ *x, uint64_t n, uint64_t count) {
    const cg_op *op = &x->desc.op;
    const uint64_t turned = cg_transformed_n_(op, cg_sampled_n_(op, n, NULL));
    if (op->select.id) return cg_sparse_bound_(turned, cg_mul_sat_(count, cg_max_selected_(op, turned)));
    return cg_add_sat_(cg_bound_(op, NULL, (size_t)n), cg_add_sat_(CG_HEADER_BYTES, cg_mul_sat_(4, turned)));
}
static uint64_t cg_sum_scratch_(const cg_op *op, uint64_t n, uint64_t count) {
    const uint64_t turned = cg_transformed_n_(op, cg_sampled_n_(op, n, NULL));
    uint64_t most = op->select.id ? cg_mul_sat_(count, cg_max_selected_(op, turned)) : 0;
    if (most > turned) most = turned;
    return op->select.id
        ? cg_add_sat_(
              cg_mul_sat_(2, cg_add_sat_(cg_mul_sat_(8, cg_add_sat_(most, CG_SLACK_)), 8 * ((turned >> 32) + 2))), 64)
        : 0;
}
static uint64_t cg_dense_bound_(uint64_t n) { return cg_add_sat_(CG_HEADER_BYTES, cg_mul_sat_(4, n)); }
static void cg_max_update_(uint64_t *a, uint64_t b) {
    if (*a < b) *a = b;
}
static uint64_t cg_tree_depth_(const cg_ex_ *x) {
    return x->transport.size > 1 ? cg_log2_((uint64_t)x->transport.size - 1) + 1 : 0;
}
/* What a sum needs to be encoded again: the caller's codecs, nothing that belongs to x. */
static cg_extra cg_back_extra_(const cg_ex_ *x) {
    cg_extra side = CG_ZERO;
    if (!x->desc.side || !cg_is_user_codec_(&x->back.quantize)) return side;
    side.codecs = x->desc.side->codecs;
    side.codec_count = x->desc.side->codec_count;
    return side;
}
/* Of any part: the most. */
static uint64_t cg_packet_room_(const cg_ex_ *x) {
    uint64_t room = 0;
    for (int p = 0; p < x->parts; p++) cg_max_update_(&room, cg_bound_(&x->desc.op, x->desc.side, cg_stripe_n_(x, p)));
    return room;
}
static uint64_t cg_reduced_room_(const cg_ex_ *x) {
    const cg_extra side = cg_back_extra_(x);
    uint64_t room = 0;
    if (x->desc.fold == CG_FOLD_VOTE) return cg_packet_room_(x);
    for (int p = 0; p < x->parts; p++)
        cg_max_update_(&room,
            x->exact ? cg_sum_bound_(x, cg_stripe_n_(x, p), (uint64_t)x->transport.size)
                     : cg_bound_(&x->back, &side, cg_stripe_n_(x, p)));
    return room;
}
static uint64_t cg_stripe_max_n_(const cg_ex_ *x) {
    uint64_t n = 0;
    for (int p = 0; p < x->parts; p++) cg_max_update_(&n, cg_stripe_n_(x, p));
    return n;
}
static void cg_sum_scratch_max_(const cg_ex_ *x, uint64_t *scratch) {
    for (int p = 0; p < x->parts; p++)
        cg_max_update_(scratch, cg_sum_scratch_(&x->desc.op, cg_stripe_n_(x, p), (uint64_t)x->transport.size));
}

static void cg_mem_plan_ring_tree_(cg_ex_ *x, cg_arena_ *c, uint64_t *scratch) {
    const uint64_t result = cg_reduced_room_(x), size = (uint64_t)x->transport.size;
    /* a tree's packets come one by one */
    x->in = cg_arena_take_(
        c, cg_mul_sat_(x->route == CG_ROUTE_TREE && !x->exact ? cg_add_sat_(cg_tree_depth_(x), 1) : 1, result));
    x->buf[0] = cg_arena_take_(c, result);
    x->buf[1] = cg_arena_take_(c, result);
    x->inbox = cg_arena_take_(c, x->route == CG_ROUTE_RING ? cg_mul_sat_(size, result) : 0);
    if (x->exact) cg_sum_scratch_max_(x, scratch);
    else x->sum = (float *)(void *)cg_arena_take_(c, cg_mul_sat_(4, x->n));
    x->result_cap = (size_t)result;
}
static void cg_mem_plan_owner_(cg_ex_ *x, cg_arena_ *c, uint64_t *scratch) { /* server, scatter */
    const uint64_t result = cg_reduced_room_(x), size = (uint64_t)x->transport.size;
    const int mine = x->route == CG_ROUTE_SCATTER || x->root == x->transport.rank || !x->transport.sendrecv ||
        x->desc.leader == CG_LEADER_BY_SCORE;
    x->inbox = cg_arena_take_(c, mine ? cg_mul_sat_(size, cg_packet_room_(x)) : 0);
    x->result = cg_arena_take_(c, result);
    x->in = cg_arena_take_(c, x->route == CG_ROUTE_SCATTER ? cg_mul_sat_(size, result) : 0);
    x->result_cap = (size_t)result;
    if (!mine || x->desc.fold == CG_FOLD_VOTE) return;
    if (x->exact) {
        cg_sum_scratch_max_(x, scratch);
        return;
    }
    x->sum = (float *)(void *)cg_arena_take_(c, cg_mul_sat_(4, cg_stripe_max_n_(x)));
    if (x->desc.carry || (cg_is_f32_(&x->back) && !x->back.select.id && !x->back.sample.id && !x->back.transform.id))
        return;
    x->used = cg_arena_take_(
        c, cg_add_sat_(cg_mul_sat_((uint64_t)x->parts, cg_packet_room_(x)), cg_dense_bound_(cg_stripe_max_n_(x))));
}
/* Lists of (index, value): merge and region cut sums of packets, shared writes one. */
static void cg_mem_plan_lists_(cg_ex_ *x, cg_arena_ *c, uint64_t *scratch) {
    const uint64_t size = (uint64_t)x->transport.size, n = x->n;
    const uint64_t ways = x->route == CG_ROUTE_REGION ? size
        : x->route == CG_ROUTE_MERGE                  ? 2
                                                      : 1,
                   ups = x->route == CG_ROUTE_MERGE ? cg_tree_depth_(x) : 1;
    uint64_t most = cg_mul_sat_(ways, x->most), lost = cg_mul_sat_(cg_mul_sat_(ways, x->most), ups),
             room = cg_sparse_bound_(n, x->most);
    cg_max_update_(&room, cg_packet_room_(x));
    most = most > n ? n : most;
    x->list_room = (size_t)most;
    x->lists = cg_arena_take_(
        c, cg_mul_sat_(2, cg_add_sat_(cg_mul_sat_(8, cg_add_sat_(most, CG_SLACK_)), 8 * ((n >> 32) + 2))));
    x->used = cg_arena_take_(c, cg_sparse_bound_(n, cg_add_sat_(lost, x->most)));
    x->used_cap = (size_t)cg_sparse_bound_(n, cg_add_sat_(lost, x->most));
    x->result_cap = (size_t)cg_add_sat_(room, 1024);
    x->result = cg_arena_take_(c, x->result_cap);
    x->in = cg_arena_take_(c, cg_mul_sat_(x->route == CG_ROUTE_REGION ? size : 1, cg_add_sat_(room, 1024)));
    if (x->route == CG_ROUTE_SHARED) return;
    x->buf[0] = cg_arena_take_(c, cg_sparse_bound_(n, most));
    x->buf[1] = cg_arena_take_(c, x->route == CG_ROUTE_MERGE ? cg_sparse_bound_(n, most) : 0);
    x->lose_cap = (size_t)cg_add_sat_(cg_sparse_bound_(n, lost), cg_mul_sat_(size, CG_HEADER_BYTES + 96));
    x->lose[0] = cg_arena_take_(c, x->lose_cap);
    x->lose[1] = cg_arena_take_(c, x->route == CG_ROUTE_MERGE ? x->lose_cap : 0);
    cg_max_update_(scratch,
        cg_add_sat_(
            cg_mul_sat_(2,
                cg_add_sat_(cg_mul_sat_(8, cg_add_sat_(cg_add_sat_(lost, x->most), CG_SLACK_)), 8 * ((n >> 32) + 2))),
            64));
    if (x->route != CG_ROUTE_REGION) return;
    x->bounds = (uint64_t *)(void *)cg_arena_take_(c, 8 * (size + 1));
    x->counts = (uint64_t *)(void *)cg_arena_take_(c, 8 * size);
    x->inbox = cg_arena_take_(c, cg_mul_sat_(size, 1024)); /* counts */
}
static void cg_mem_plan_linear_(cg_ex_ *x, cg_arena_ *c) {
    const cg_op *op = &x->desc.op;
    x->result = cg_arena_take_(c, cg_packet_room_(x));
    x->result_cap = (size_t)cg_packet_room_(x);
    if (cg_is_matrix_op_(op))
        x->work = (double *)(void *)cg_arena_take_(
            c, cg_lowrank_work_bytes_(cg_matrix_rows_(op), cg_matrix_cols_(op), op->transform.arg));
}
/* Scales of all parts, one after the other, if they are to be agreed on. */
static uint64_t cg_stripe_scale_count_(const cg_ex_ *x, int part) {
    cg_layout_ lay;
    if (!(x->desc.flags & CG_AGREE_SCALES)) return 0;
    return cg_layout_make_(&x->desc.op, NULL,
               cg_transformed_n_(&x->desc.op, cg_sampled_n_(&x->desc.op, cg_stripe_n_(x, part), NULL)), &lay) == CG_OK
        ? lay.bucket_count
        : 0;
}
static uint64_t cg_bounce_room_(const cg_ex_ *x) {
    const uint64_t size = (uint64_t)x->transport.size, least = 4096,
                   piece = 1048576 / size < least ? least
        : 1048576 / size > 65536                  ? 65536
                                                  : 1048576 / size;
    const cg_op *op = &x->desc.op;
    uint64_t sum = 0;
    if (size == 1) return 0;
    if (x->route == CG_ROUTE_LINEAR) sum = cg_transformed_n_(op, cg_sampled_n_(op, x->n, NULL));
    if (x->route == CG_ROUTE_SHARED) sum = x->most;
    if (x->transport.sendrecv) return sum ? cg_mul_sat_(4, sum / size + 128) : 0; /* a stripe of a ring */
    return cg_mul_sat_(size, piece);
}
static uint64_t cg_mem_plan_(cg_ex_ *x, uint8_t *base) {
    const cg_op *op = &x->desc.op;
    const uint64_t size = (uint64_t)x->transport.size;
    /* from every rank a number for every other */
    const int tables = x->route == CG_ROUTE_REGION || (x->route == CG_ROUTE_SCATTER && !x->fixed);
    cg_arena_ c;
    uint64_t scratch = 0, bounce, room;
    c.base = base;
    c.bytes = 0;
    x->records = cg_arena_take_(&c, size * CG_RECORD_BYTES_);
    x->gathered = cg_arena_take_(&c, size * CG_RECORD_BYTES_);
    x->sizes = (uint64_t *)(void *)cg_arena_take_(&c, 8 * size);
    if (x->status != CG_OK) return c.bytes; /* enough to say so */
    bounce = cg_bounce_room_(x);
    x->bounce = cg_arena_take_(&c, bounce);
    x->bounce_bytes = (size_t)bounce;
    x->notes = cg_arena_take_(&c, cg_mul_sat_(size, CG_PREAMBLE_BYTES_ + (tables ? 8 * size : 0)));
    x->part_at = (uint64_t *)(void *)cg_arena_take_(&c, 8 * (size + 1));
    x->packet = (const void **)(void *)cg_arena_take_(&c, size * sizeof(void *));
    x->len = (size_t *)(void *)cg_arena_take_(&c, size * sizeof(size_t));
    x->decoder = (cg_decoder_ *)(void *)cg_arena_take_(&c, cg_mul_sat_(size, sizeof(cg_decoder_)));
    room = cg_is_compressed_first_(x) ? cg_mul_sat_((uint64_t)x->parts, cg_packet_room_(x)) : 0;
    if (cg_hops_reencode_(x)) room = cg_add_sat_(cg_mul_sat_(4, x->n), (uint64_t)x->parts * CG_HEADER_BYTES);
    x->own = cg_arena_take_(&c, room);
    for (int p = 0; p < x->parts; p++) {
        cg_max_update_(&scratch, cg_scratch_bytes_(op, cg_stripe_n_(x, p)));
        cg_max_update_(&scratch, cg_scratch_bytes_(&x->back, cg_stripe_n_(x, p)));
    }
    if (x->desc.flags & CG_AGREE_SCALES) {
        x->scales = 0;
        for (int p = 0; p < x->parts; p++) x->scales = cg_add_sat_(x->scales, cg_stripe_scale_count_(x, p));
        x->agreed = (float *)(void *)cg_arena_take_(&c, cg_mul_sat_(4, x->scales));
        x->lists = cg_arena_take_(&c, cg_mul_sat_(4 * (size + 1), x->scales)); /* mine and everybody's */
    }
    switch (x->route) {
    case CG_ROUTE_RING:
    case CG_ROUTE_TREE: cg_mem_plan_ring_tree_(x, &c, &scratch); break;
    case CG_ROUTE_SCATTER:
    case CG_ROUTE_SERVER: cg_mem_plan_owner_(x, &c, &scratch); break;
    case CG_ROUTE_MERGE:
    case CG_ROUTE_REGION:
    case CG_ROUTE_SHARED: cg_mem_plan_lists_(x, &c, &scratch); break;
    case CG_ROUTE_LINEAR: cg_mem_plan_linear_(x, &c); break;
    default:
        x->inbox = cg_arena_take_(&c, cg_mul_sat_(size, cg_packet_room_(x)));
        if (cg_is_sparse_f32_(op) && !op->code.arg && cg_values_per_index_(op) == 1)
            x->lanes = (cg_sparse_cursor_ *)(void *)cg_arena_take_(&c, cg_mul_sat_(size, sizeof(cg_sparse_cursor_)));
        x->result_cap = 0;
        if (x->desc.fold == CG_FOLD_VOTE) x->result_cap = (size_t)cg_packet_room_(x);
        if (x->desc.fold == CG_FOLD_CONTRIBUTORS && op->select.id) {
            x->result_cap = (size_t)cg_sum_bound_(x, x->n, size);
            cg_max_update_(&scratch, cg_sum_scratch_(op, x->n, size));
            /* how many sent each */
            x->lists = cg_arena_take_(&c,
                cg_mul_sat_(
                    4, cg_mul_sat_(size, cg_max_selected_(op, cg_transformed_n_(op, cg_sampled_n_(op, x->n, NULL))))));
        }
        x->result = cg_arena_take_(&c, x->result_cap);
    }
    x->scratch = cg_arena_take_(&c, scratch);
    x->scratch_bytes = (size_t)scratch;
    return c.bytes;
}
