/* ---- >>memory: one plan, for the sum of it and for the places ---- */

typedef struct cg_lane_ {
    cg_index_reader_ reader;
    const uint8_t *values;
    size_t left, next, have;
    uint64_t at[CG_STRETCH_];
} cg_lane_;
typedef struct cg_carve_ {
    uint8_t *base;
    uint64_t bytes;
} cg_carve_;
static uint8_t *cg_carve_take_(cg_carve_ *c, uint64_t bytes) {
    uint8_t *p = c->base ? c->base + (size_t)c->bytes : NULL;
    c->bytes = cg_add_(c->bytes, cg_add_(bytes, 63) & ~(uint64_t)63);
    return p;
}
/* An f32 packet of at most so many of n. */
static uint64_t cg_sparse_bound_(uint64_t n, uint64_t most) {
    const cg_op any = cg_threshold(0.0f);
    if (most > n) most = n;
    return cg_add_(CG_HEADER_BYTES, cg_add_(cg_mul_(4, most), cg_index_bound_(&any, n, most)));
}
/* What a sum of `count` packets of n values may take, where it is exact. */
static uint64_t cg_sum_bound_(const cg_x_ *x, uint64_t n, uint64_t count) {
    const cg_op *op = &x->desc.op;
    const uint64_t turned = cg_turned_(op, cg_drawn_(op, n, NULL));
    if (op->select.id) return cg_sparse_bound_(turned, cg_mul_(count, cg_most_(op, turned)));
    return cg_add_(cg_bound_(op, NULL, (size_t)n), cg_add_(CG_HEADER_BYTES, cg_mul_(4, turned)));
}
static uint64_t cg_sum_scratch_(const cg_op *op, uint64_t n, uint64_t count) {
    const uint64_t turned = cg_turned_(op, cg_drawn_(op, n, NULL));
    uint64_t most = op->select.id ? cg_mul_(count, cg_most_(op, turned)) : 0;
    if (most > turned) most = turned;
    return op->select.id
        ? cg_add_(cg_mul_(2, cg_add_(cg_mul_(8, cg_add_(most, CG_SLACK_)), 8 * ((turned >> 32) + 2))), 64)
        : 0;
}
static uint64_t cg_dense_bound_(uint64_t n) { return cg_add_(CG_HEADER_BYTES, cg_mul_(4, n)); }
static void cg_more_(uint64_t *a, uint64_t b) {
    if (*a < b) *a = b;
}
static uint64_t cg_levels_up_(const cg_x_ *x) {
    return x->transport.size > 1 ? cg_log2_((uint64_t)x->transport.size - 1) + 1 : 0;
}
/* What a sum needs to be encoded again: the caller's codecs, nothing that belongs to x. */
static cg_side cg_back_side_(const cg_x_ *x) {
    cg_side side = CG_ZERO;
    if (!x->desc.side || !cg_is_user_(&x->back.quantize)) return side;
    side.codecs = x->desc.side->codecs;
    side.codec_count = x->desc.side->codec_count;
    return side;
}
/* Of any part: the most. */
static uint64_t cg_packet_room_(const cg_x_ *x) {
    uint64_t room = 0;
    for (int p = 0; p < x->parts; p++) cg_more_(&room, cg_bound_(&x->desc.op, x->desc.side, cg_part_n_(x, p)));
    return room;
}
static uint64_t cg_result_room_(const cg_x_ *x) {
    const cg_side side = cg_back_side_(x);
    uint64_t room = 0;
    if (x->desc.fold == CG_FOLD_VOTE) return cg_packet_room_(x);
    for (int p = 0; p < x->parts; p++)
        cg_more_(&room,
            x->exact ? cg_sum_bound_(x, cg_part_n_(x, p), (uint64_t)x->transport.size)
                     : cg_bound_(&x->back, &side, cg_part_n_(x, p)));
    return room;
}
static uint64_t cg_longest_part_(const cg_x_ *x) {
    uint64_t n = 0;
    for (int p = 0; p < x->parts; p++) cg_more_(&n, cg_part_n_(x, p));
    return n;
}
static void cg_more_sum_scratch_(const cg_x_ *x, uint64_t *scratch) {
    for (int p = 0; p < x->parts; p++)
        cg_more_(scratch, cg_sum_scratch_(&x->desc.op, cg_part_n_(x, p), (uint64_t)x->transport.size));
}

static void cg_plan_hops_(cg_x_ *x, cg_carve_ *c, uint64_t *scratch) {
    const uint64_t result = cg_result_room_(x), size = (uint64_t)x->transport.size;
    /* a tree's packets come one by one */
    x->in = cg_carve_take_(
        c, cg_mul_(x->route == CG_ROUTE_TREE && !x->exact ? cg_add_(cg_levels_up_(x), 1) : 1, result));
    x->buf[0] = cg_carve_take_(c, result);
    x->buf[1] = cg_carve_take_(c, result);
    x->inbox = cg_carve_take_(c, x->route == CG_ROUTE_RING ? cg_mul_(size, result) : 0);
    if (x->exact) cg_more_sum_scratch_(x, scratch);
    else x->sum = (float *)(void *)cg_carve_take_(c, cg_mul_(4, x->n));
    x->result_cap = (size_t)result;
}
static void cg_plan_answers_(cg_x_ *x, cg_carve_ *c, uint64_t *scratch) { /* server, scatter */
    const uint64_t result = cg_result_room_(x), size = (uint64_t)x->transport.size;
    const int mine = x->route == CG_ROUTE_SCATTER || x->root == x->transport.rank || !x->transport.sendrecv ||
        x->desc.leader == CG_LEADER_BY_SCORE;
    x->inbox = cg_carve_take_(c, mine ? cg_mul_(size, cg_packet_room_(x)) : 0);
    x->result = cg_carve_take_(c, result);
    x->in = cg_carve_take_(c, x->route == CG_ROUTE_SCATTER ? cg_mul_(size, result) : 0);
    x->result_cap = (size_t)result;
    if (!mine || x->desc.fold == CG_FOLD_VOTE) return;
    if (x->exact) {
        cg_more_sum_scratch_(x, scratch);
        return;
    }
    x->sum = (float *)(void *)cg_carve_take_(c, cg_mul_(4, cg_longest_part_(x)));
    if (x->desc.carry || (cg_is_f32_(&x->back) && !x->back.select.id && !x->back.sample.id && !x->back.transform.id))
        return;
    x->used = cg_carve_take_(
        c, cg_add_(cg_mul_((uint64_t)x->parts, cg_packet_room_(x)), cg_dense_bound_(cg_longest_part_(x))));
}
/* Lists of (index, value): merge and region cut sums of packets, shared writes one. */
static void cg_plan_lists_(cg_x_ *x, cg_carve_ *c, uint64_t *scratch) {
    const uint64_t size = (uint64_t)x->transport.size, n = x->n;
    const uint64_t ways = x->route == CG_ROUTE_REGION ? size
        : x->route == CG_ROUTE_MERGE                  ? 2
                                                      : 1,
                   ups = x->route == CG_ROUTE_MERGE ? cg_levels_up_(x) : 1;
    uint64_t most = cg_mul_(ways, x->most), lost = cg_mul_(cg_mul_(ways, x->most), ups),
             room = cg_sparse_bound_(n, x->most);
    cg_more_(&room, cg_packet_room_(x));
    most = most > n ? n : most;
    x->list_room = (size_t)most;
    x->lists = cg_carve_take_(c, cg_mul_(2, cg_add_(cg_mul_(8, cg_add_(most, CG_SLACK_)), 8 * ((n >> 32) + 2))));
    x->used = cg_carve_take_(c, cg_sparse_bound_(n, cg_add_(lost, x->most)));
    x->used_cap = (size_t)cg_sparse_bound_(n, cg_add_(lost, x->most));
    x->result_cap = (size_t)cg_add_(room, 1024);
    x->result = cg_carve_take_(c, x->result_cap);
    x->in = cg_carve_take_(c, cg_mul_(x->route == CG_ROUTE_REGION ? size : 1, cg_add_(room, 1024)));
    if (x->route == CG_ROUTE_SHARED) return;
    x->buf[0] = cg_carve_take_(c, cg_sparse_bound_(n, most));
    x->buf[1] = cg_carve_take_(c, x->route == CG_ROUTE_MERGE ? cg_sparse_bound_(n, most) : 0);
    x->lose_cap = (size_t)cg_add_(cg_sparse_bound_(n, lost), cg_mul_(size, CG_HEADER_BYTES + 96));
    x->lose[0] = cg_carve_take_(c, x->lose_cap);
    x->lose[1] = cg_carve_take_(c, x->route == CG_ROUTE_MERGE ? x->lose_cap : 0);
    cg_more_(scratch,
        cg_add_(cg_mul_(2, cg_add_(cg_mul_(8, cg_add_(cg_add_(lost, x->most), CG_SLACK_)), 8 * ((n >> 32) + 2))), 64));
    if (x->route != CG_ROUTE_REGION) return;
    x->bounds = (uint64_t *)(void *)cg_carve_take_(c, 8 * (size + 1));
    x->counts = (uint64_t *)(void *)cg_carve_take_(c, 8 * size);
    x->inbox = cg_carve_take_(c, cg_mul_(size, 1024)); /* counts */
}
static void cg_plan_linear_(cg_x_ *x, cg_carve_ *c) {
    const cg_op *op = &x->desc.op;
    x->result = cg_carve_take_(c, cg_packet_room_(x));
    x->result_cap = (size_t)cg_packet_room_(x);
    if (cg_is_matrix_(op))
        x->work = (double *)(void *)cg_carve_take_(c, cg_lowrank_work_(cg_rows_(op), cg_cols_(op), op->transform.arg));
}
/* Scales of all parts, one after the other, if they are to be agreed on. */
static uint64_t cg_scales_of_(const cg_x_ *x, int part) {
    cg_layout_ lay;
    if (!(x->desc.flags & CG_AGREE_SCALES)) return 0;
    return cg_layout_make_(&x->desc.op, NULL,
               cg_turned_(&x->desc.op, cg_drawn_(&x->desc.op, cg_part_n_(x, part), NULL)), &lay) == CG_OK
        ? lay.buckets
        : 0;
}
static uint64_t cg_bounce_room_(const cg_x_ *x) {
    const uint64_t size = (uint64_t)x->transport.size, least = 4096,
                   piece = 1048576 / size < least ? least
        : 1048576 / size > 65536                  ? 65536
                                                  : 1048576 / size;
    const cg_op *op = &x->desc.op;
    uint64_t sum = 0;
    if (size == 1) return 0;
    if (x->route == CG_ROUTE_LINEAR) sum = cg_turned_(op, cg_drawn_(op, x->n, NULL));
    if (x->route == CG_ROUTE_SHARED) sum = x->most;
    if (x->transport.sendrecv) return sum ? cg_mul_(4, sum / size + 128) : 0; /* a stripe of a ring */
    return cg_mul_(size, piece);
}
static uint64_t cg_plan_(cg_x_ *x, uint8_t *base) {
    const cg_op *op = &x->desc.op;
    const uint64_t size = (uint64_t)x->transport.size;
    /* from every rank a number for every other */
    const int tables = x->route == CG_ROUTE_REGION || (x->route == CG_ROUTE_SCATTER && !x->fixed);
    cg_carve_ c;
    uint64_t scratch = 0, bounce, room;
    c.base = base;
    c.bytes = 0;
    x->records = cg_carve_take_(&c, size * CG_RECORD_);
    x->gathered = cg_carve_take_(&c, size * CG_RECORD_);
    x->sizes = (uint64_t *)(void *)cg_carve_take_(&c, 8 * size);
    if (x->status != CG_OK) return c.bytes; /* enough to say so */
    bounce = cg_bounce_room_(x);
    x->bounce = cg_carve_take_(&c, bounce);
    x->bounce_bytes = (size_t)bounce;
    x->notes = cg_carve_take_(&c, cg_mul_(size, CG_NOTE_ + (tables ? 8 * size : 0)));
    x->part_at = (uint64_t *)(void *)cg_carve_take_(&c, 8 * (size + 1));
    x->packet = (const void **)(void *)cg_carve_take_(&c, size * sizeof(void *));
    x->len = (size_t *)(void *)cg_carve_take_(&c, size * sizeof(size_t));
    x->decoder = (cg_decoder_ *)(void *)cg_carve_take_(&c, cg_mul_(size, sizeof(cg_decoder_)));
    room = cg_packs_first_(x) ? cg_mul_((uint64_t)x->parts, cg_packet_room_(x)) : 0;
    if (cg_hops_lossy_(x)) room = cg_add_(cg_mul_(4, x->n), (uint64_t)x->parts * CG_HEADER_BYTES);
    x->own = cg_carve_take_(&c, room);
    for (int p = 0; p < x->parts; p++) {
        cg_more_(&scratch, cg_scratch_bytes_(op, cg_part_n_(x, p)));
        cg_more_(&scratch, cg_scratch_bytes_(&x->back, cg_part_n_(x, p)));
    }
    if (x->desc.flags & CG_AGREE_SCALES) {
        x->scales = 0;
        for (int p = 0; p < x->parts; p++) x->scales = cg_add_(x->scales, cg_scales_of_(x, p));
        x->agreed = (float *)(void *)cg_carve_take_(&c, cg_mul_(4, x->scales));
        x->lists = cg_carve_take_(&c, cg_mul_(4 * (size + 1), x->scales)); /* mine and everybody's */
    }
    switch (x->route) {
    case CG_ROUTE_RING:
    case CG_ROUTE_TREE: cg_plan_hops_(x, &c, &scratch); break;
    case CG_ROUTE_SCATTER:
    case CG_ROUTE_SERVER: cg_plan_answers_(x, &c, &scratch); break;
    case CG_ROUTE_MERGE:
    case CG_ROUTE_REGION:
    case CG_ROUTE_SHARED: cg_plan_lists_(x, &c, &scratch); break;
    case CG_ROUTE_LINEAR: cg_plan_linear_(x, &c); break;
    default:
        x->inbox = cg_carve_take_(&c, cg_mul_(size, cg_packet_room_(x)));
        if (cg_is_plain_(op) && !op->code.arg && cg_unit_(op) == 1)
            x->lanes = (cg_lane_ *)(void *)cg_carve_take_(&c, cg_mul_(size, sizeof(cg_lane_)));
        x->result_cap = 0;
        if (x->desc.fold == CG_FOLD_VOTE) x->result_cap = (size_t)cg_packet_room_(x);
        if (x->desc.fold == CG_FOLD_CONTRIBUTORS && op->select.id) {
            x->result_cap = (size_t)cg_sum_bound_(x, x->n, size);
            cg_more_(&scratch, cg_sum_scratch_(op, x->n, size));
            /* how many sent each */
            x->lists = cg_carve_take_(
                &c, cg_mul_(4, cg_mul_(size, cg_most_(op, cg_turned_(op, cg_drawn_(op, x->n, NULL))))));
        }
        x->result = cg_carve_take_(&c, x->result_cap);
    }
    x->scratch = cg_carve_take_(&c, scratch);
    x->scratch_bytes = (size_t)scratch;
    return c.bytes;
}
