/* accumulate: sum = weight * grad + packets + weight * carry, by blocks, so that sum is written to memory once

   Offers   cg_accum_ranks_, cg_accum_open_ and cg_accum_packet_, then cg_accum_all_ or cg_accum_compress_
   Needs    ranks, packets, core's decode (by blocks) and producer
   Touches  ex->inputs.decoder, the sum, ex->mem.scratch and the packet written
   As a producer the sum is made block by block while it is compressed. Packets that cannot be decoded by blocks are
   added one after the other, in the same order. */

typedef struct cg_accum_ {
    const cg_ex_ *ex;
    float *sum; /* n floats */
    size_t n, packet_count;
    const float *grad, *carry; /* n floats each, or NULL */
    float grad_weight, carry_weight;
    int not_by_blocks; /* some packet cannot be decoded by blocks */
    cg_status status;  /* of opening the packets */
} cg_accum_;

/* No terms yet; grad and carry are set by the caller, grad before the first packet. */
static void cg_accum_open_(cg_accum_ *b, cg_ex_ *ex, float *sum, size_t n) {
    memset(b, 0, sizeof *b);
    b->ex = ex;
    b->sum = sum;
    b->n = n;
}
/* The next packet, times alpha. It has been verified and stays where it is; at most N packets. */
static void cg_accum_packet_(cg_accum_ *b, const uint8_t *packet, size_t len, float alpha) {
    const cg_extra side = cg_decode_extra_(b->ex);
    cg_decoder_ *d = &b->ex->inputs.decoder[b->packet_count];
    if (!b->ex->inputs.opened && b->status == CG_OK) b->status = cg_ex_open_(b->ex, d, &side, packet, len, b->n);
    if (b->status != CG_OK) return;
    if (!cg_decoder_by_blocks_(d, alpha, b->packet_count || b->grad ? 1.0f : 0.0f, b->sum)) b->not_by_blocks = 1;
    b->packet_count++;
}
/* ex->inputs of all ranks, each with its weight in the result; or what a robust fold makes of them, as one term. */
static void cg_accum_ranks_(cg_ex_ *ex, float *sum, size_t n, cg_accum_ *b) {
    cg_accum_open_(b, ex, sum, n);
    if (cg_fold_row_of_(ex->desc.fold)->combine) {
        b->status = cg_robust_fold_(ex, n);
        b->grad = ex->mem.rows;
        b->grad_weight = 1.0f;
        return;
    }
    for (size_t q = 0; q < cg_ranks_(ex); q++)
        cg_accum_packet_(b, (const uint8_t *)ex->inputs.packet[q], ex->inputs.len[q], cg_alpha_(ex, q));
}
static void cg_accum_dense_term_(const cg_accum_ *b, size_t first, size_t many, const float *v, float by, float beta) {
    if (v) cg_axpby_(cg_at_(v, first), many, by, beta, cg_at_mut_(b->sum, first));
}
/* A cg_producer_ function: values [first, first + many), one block. */
static double cg_accum_block_(const void *user, size_t first, size_t many, float *out) {
    const cg_accum_ *b = (const cg_accum_ *)user;
    (void)out; /* b->sum + first */
    cg_accum_dense_term_(b, first, many, b->grad, b->grad_weight, 0.0f);
    if (b->grad) cg_accum_dense_term_(b, first, many, b->carry, b->carry_weight, 1.0f);
    for (size_t i = 0; i < b->packet_count; i++) cg_decoder_add_block_(&b->ex->inputs.decoder[i], first / CG_BLOCK_);
    if (!b->grad) cg_accum_dense_term_(b, first, many, b->carry, b->carry_weight, 1.0f);
    return 0.0;
}
static cg_producer_ cg_accum_producer_(const cg_accum_ *b) {
    cg_producer_ producer = CG_ZERO;
    producer.make = cg_accum_block_;
    producer.user = b;
    producer.n = b->n;
    producer.step = CG_BLOCK_;
    return producer;
}
/* The whole sum, term by term. */
static cg_status cg_accum_whole_(const cg_accum_ *b) {
    const cg_extra side = cg_decode_extra_(b->ex);
    cg_status s = CG_OK;
    cg_accum_dense_term_(b, 0, b->n, b->grad, b->grad_weight, 0.0f);
    if (b->grad) cg_accum_dense_term_(b, 0, b->n, b->carry, b->carry_weight, 1.0f);
    for (size_t i = 0; i < b->packet_count && s == CG_OK; i++) {
        cg_decoder_ *d = &b->ex->inputs.decoder[i];
        s = cg_packet_decode_(d, &side, d->alpha, d->beta, b->sum, NULL, 1);
    }
    if (!b->grad) cg_accum_dense_term_(b, 0, b->n, b->carry, b->carry_weight, 1.0f);
    return s;
}
static cg_status cg_accum_all_(const cg_accum_ *b) {
    cg_producer_ producer = cg_accum_producer_(b);
    if (b->status != CG_OK) return b->status;
    if (b->not_by_blocks) return cg_accum_whole_(b);
    cg_producer_run_(&producer, b->sum);
    return CG_OK;
}
/* The sum as a packet; the sum itself is there afterwards, too. */
static cg_status cg_accum_compress_(const cg_accum_ *b, const cg_op *op, const cg_tag *tag, const cg_extra *side,
    uint8_t *out, size_t cap, size_t *len) {
    const cg_ex_ *ex = b->ex;
    cg_producer_ producer = cg_accum_producer_(b);
    cg_status s = b->status == CG_OK && b->not_by_blocks ? cg_accum_whole_(b) : b->status;
    return s == CG_OK ? cg_compress_checked_(op, NULL, tag, side, b->sum, b->not_by_blocks ? NULL : &producer, b->n,
                            out, cap, len, ex->mem.scratch, ex->mem.scratch_bytes)
                      : s;
}
