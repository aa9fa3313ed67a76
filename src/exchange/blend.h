/* ---- >>blends: y = own + packets + carry, a block at a time, so that y is written to memory once ---- */

typedef struct cg_accum_ {
    const cg_ex_ *x;
    float *y;
    size_t n, count;          /* of packets */
    const float *own, *carry; /* or NULL */
    float own_by, carry_by;
    int whole; /* some packet cannot be decoded by blocks */
} cg_accum_;

static void cg_accum_open_(cg_accum_ *b, cg_ex_ *x, float *y, size_t n) {
    memset(b, 0, sizeof *b);
    b->x = x;
    b->y = y;
    b->n = n;
}
/* The next packet, verified, times alpha. */
static void cg_accum_packet_(cg_accum_ *b, const uint8_t *packet, size_t len, float alpha) {
    const cg_extra side = cg_decode_extra_(b->x);
    cg_decoder_ *d = &b->x->decoder[b->count];
    if (cg_decoder_open_(d, &side, packet, len, b->y, b->n, 1) != CG_OK) b->whole = 1;
    else if (d->info.op.select.id || d->info.op.sample.id || d->lay.value_code || d->lay.codec ||
        cg_is_matrix_op_(&d->info.op))
        b->whole = 1;
    d->packet = packet;
    d->info.packet_bytes = len;
    d->alpha = alpha;
    d->beta = b->count || b->own ? 1.0f : 0.0f;
    d->non_temporal = 0;
    b->count++;
}
static void cg_accum_ranks_(cg_ex_ *x, float *y, size_t n, cg_accum_ *b) {
    cg_accum_open_(b, x, y, n);
    for (size_t q = 0; q < cg_ranks_(x); q++)
        cg_accum_packet_(b, (const uint8_t *)x->packet[q], x->len[q], cg_alpha_(x, q));
}
static void cg_accum_dense_term_(const cg_accum_ *b, size_t first, size_t many, const float *v, float by, float beta) {
    if (v) cg_kernels_now_()->axpby(cg_at_(v, first), many, by, beta, cg_at_mut_(b->y, first), 0);
}
static double cg_accum_block_(const void *user, size_t first, size_t many, float *out) {
    const cg_accum_ *b = (const cg_accum_ *)user;
    cg_checksum_ sum;
    double energy;
    (void)out; /* b->y + first */
    cg_accum_dense_term_(b, first, many, b->own, b->own_by, 0.0f);
    if (b->own) cg_accum_dense_term_(b, first, many, b->carry, b->carry_by, 1.0f);
    for (size_t i = 0; i < b->count; i++)
        cg_decode_block_(&b->x->decoder[i], NULL, NULL, first / CG_BLOCK_, 0, &sum, &energy);
    if (!b->own) cg_accum_dense_term_(b, first, many, b->carry, b->carry_by, 1.0f);
    return 0.0;
}
static cg_producer_ cg_accum_producer_(const cg_accum_ *b) {
    cg_producer_ fill = CG_ZERO;
    fill.make = cg_accum_block_;
    fill.user = b;
    fill.n = b->n;
    fill.step = CG_BLOCK_;
    return fill;
}
/* The same, packet by packet. */
static cg_status cg_accum_whole_(const cg_accum_ *b) {
    cg_status s = CG_OK;
    cg_accum_dense_term_(b, 0, b->n, b->own, b->own_by, 0.0f);
    if (b->own) cg_accum_dense_term_(b, 0, b->n, b->carry, b->carry_by, 1.0f);
    for (size_t i = 0; i < b->count && s == CG_OK; i++) {
        const cg_decoder_ *d = &b->x->decoder[i];
        s = cg_ex_decode_(b->x, d->packet, d->info.packet_bytes, d->alpha, d->beta, b->y, b->n);
    }
    if (!b->own) cg_accum_dense_term_(b, 0, b->n, b->carry, b->carry_by, 1.0f);
    return s;
}
static cg_status cg_accum_all_(const cg_accum_ *b) {
    cg_producer_ fill = cg_accum_producer_(b);
    cg_source_ src = CG_ZERO;
    if (b->whole) return cg_accum_whole_(b);
    src.producer = &fill;
    src.x = b->y;
    cg_producer_make_all_(&src);
    return CG_OK;
}
/* Decoded, added and encoded again, block by block. */
static cg_status cg_accum_compress_(const cg_accum_ *b, const cg_op *op, const cg_tag *tag, const cg_extra *side,
    uint8_t *out, size_t cap, size_t *len) {
    const cg_ex_ *x = b->x;
    cg_producer_ fill = cg_accum_producer_(b);
    cg_status s = b->whole ? cg_accum_whole_(b) : CG_OK;
    return s == CG_OK ? cg_compress_checked_(op, tag, side, b->y, b->whole ? NULL : &fill, b->n, out, cap, len,
                            x->scratch, x->scratch_bytes)
                      : s;
}
