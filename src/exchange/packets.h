/* packets: this rank's gradient as packets, and whether packets of others are what they should be

   Offers   cg_stripes_compress_, cg_own_packet_, cg_accept_, cg_failure_put_, cg_ex_decode_, cg_ex_compress_, agreed
            scales
   Needs    ranks, opening, notes, memory, core's compress, decode and sparse
   Touches  ex->own, ex->scales, ex->mem.scratch; ex->status where a packet is refused
   Other headers may use: cg_empty_packet_put_, cg_same_op_
   A failed rank sends a failure packet ("cgno", status, rank to blame) in place of a packet whose length follows from
   n, so that nobody waits for it. */

/* desc.side as far as decoding needs it. */
static cg_extra cg_decode_extra_(const cg_ex_ *ex) {
    cg_extra side = CG_ZERO;
    if (!ex->desc.side) return side;
    side.support = ex->desc.side->support;
    side.support_len = ex->desc.side->support_len;
    side.codecs = ex->desc.side->codecs;
    side.codec_count = ex->desc.side->codec_count;
    return side;
}
/* Reads a header, without another check and plan if the packet is of desc.op for the whole vector. */
static cg_status cg_ex_header_(const cg_ex_ *ex, cg_decoder_ *d, const void *packet, size_t len) {
    return cg_packet_header_(d, packet, len, &ex->desc.op, ex->resolved ? &ex->resolved->plan : NULL);
}
/* Opens a packet of n values, which must be this rank's own or have been through cg_accept_. */
static cg_status cg_ex_open_(
    const cg_ex_ *ex, cg_decoder_ *d, const cg_extra *side, const void *packet, size_t len, size_t n) {
    const cg_status s = cg_ex_header_(ex, d, packet, len);
    if (s != CG_OK) return s;
    return d->info.n == n ? cg_packet_open_(d, side, packet, len, 0) : CG_E_MISMATCH;
}
/* y = alpha D(packet) + beta y of such a packet. */
static cg_status cg_ex_decode_(
    const cg_ex_ *ex, const void *packet, size_t len, float alpha, float beta, float *y, size_t n) {
    const cg_extra side = cg_decode_extra_(ex);
    cg_decoder_ d;
    const cg_status s = cg_ex_open_(ex, &d, &side, packet, len, n);
    return s == CG_OK ? cg_packet_decode_(&d, &side, alpha, beta, y, NULL, 1) : s;
}
/* The result, which is such a packet of all n values: to where it is wanted, or as the step of a model, which touches
   only values that the packet has. */
static cg_status cg_ex_write_packet_(cg_ex_ *ex, const void *packet, size_t len) {
    float *model = ex->desc.model;
    if (!model) return cg_ex_decode_(ex, packet, len, 1.0f, 0.0f, ex->result, ex->n);
    ex->desc.model = NULL; /* the step is taken here */
    return cg_ex_decode_(ex, packet, len, -ex->desc.rate, 1.0f, model, ex->n);
}
/* A reader of the pairs of such a packet; *info becomes its header. */
static cg_status cg_reader_open_(const cg_ex_ *ex, cg_sparse_reader_ *r, const cg_extra *side, const void *packet,
    size_t len, size_t n, cg_info *info) {
    cg_decoder_ d;
    const cg_status s = cg_ex_open_(ex, &d, side, packet, len, n);
    if (s != CG_OK) return s;
    cg_sparse_reader_open_(r, &d);
    *info = d.info;
    return CG_OK;
}
static int cg_same_stage_bits_(const cg_stage *a, const cg_stage *b) {
    return cg_stage_bits_(a) == cg_stage_bits_(b) && cg_as_bits_(a->value) == cg_as_bits_(b->value);
}
/* Whether headers of packets of a and b state the same operator. Not compared is k, which every packet states. */
static int cg_same_op_(const cg_op *a, const cg_op *b) {
    return cg_same_stage_bits_(&a->sample, &b->sample) && cg_same_stage_bits_(&a->transform, &b->transform) &&
        cg_same_stage_bits_(&a->select, &b->select) && cg_same_stage_bits_(&a->quantize, &b->quantize) &&
        cg_same_stage_bits_(&a->code, &b->code) && cg_same_stage_bits_(&a->clip, &b->clip);
}
/* Whether a packet is of op, which is desc.op but perhaps for its quantizer. Which indices were given is left to the
   decoder. */
static int cg_is_of_op_(const cg_ex_ *ex, const cg_info *info, const cg_op *op) {
    cg_op expected = *op;
    if (ex->plan.traits & CG_NEEDS_SUPPORT_) expected.select.size = info->op.select.size;
    return cg_same_op_(&info->op, &expected);
}
/* Agreed scales are the same in every packet of a stripe, whoever made it, and in their sums. */
static cg_status cg_same_scales_(const cg_ex_ *ex, const uint8_t *p, size_t len, int stripe) {
    const uint64_t *offset = ex->own.offset;
    return cg_same_grid_(p, len, ex->own.packets + (size_t)offset[stripe],
        (size_t)(offset[stripe + 1] - offset[stripe]), cg_stripe_n_(ex, stripe));
}
/* A rank that abstains sends a selection of nothing. */
static cg_op cg_empty_op_(void) { return cg_threshold(CG_FLT_MAX_); }
/* Returns the length, CG_HEADER_BYTES, for which there must be room. */
static size_t cg_empty_packet_put_(const cg_tag *tag, size_t n, uint8_t *packet) {
    size_t len = 0;
    const cg_status s = cg_sparse_packet_put_(CG_FLT_MAX_, tag, n, NULL, packet, CG_HEADER_BYTES, &len);
    (void)s; /* cannot fail: the packet is a header alone */
    return len;
}
/* On the route allgather a rank may abstain. */
static int cg_is_empty_packet_(const cg_ex_ *ex, const cg_info *info) {
    const cg_op nothing = cg_empty_op_();
    return cg_route_has_(ex, CG_ROUTE_MEETS_EVERYWHERE_) && info->k == 0 && cg_same_op_(&info->op, &nothing);
}
/* Fails ex, and blames sent_by, unless cg_ex_header_ has returned s = CG_OK for d and p, and p is an intact packet of
   n values with this tag. stripe: whose agreed scales it must have, or -1; op: its operator, or NULL for any; made_by:
   the rank in its tag, < 0 for any. A failure packet fails ex with the status and rank that it names. Otherwise the
   packet is open afterwards. */
static void cg_accept_opened_(cg_ex_ *ex, cg_decoder_ *d, cg_status s, const uint8_t *p, size_t len, size_t n,
    cg_tag tag, int stripe, const cg_op *op, int made_by, int sent_by) {
    const cg_extra side = cg_decode_extra_(ex);
    const cg_info *info = &d->info;
    if (ex->status != CG_OK) return;
    if (len >= 12 && cg_get32_(p) == CG_FAILURE_MAGIC_) {
        const uint32_t who = cg_get32_(p + 8);
        cg_ex_fail_(ex, CG_E_PEER, who < (uint32_t)ex->transport.size ? (int)who : sent_by,
            cg_status_str((cg_status)cg_get32_(p + 4)));
        return;
    }
    if (s == CG_OK &&
        (info->n != n || info->tag.seed != tag.seed || info->tag.step != tag.step || info->tag.tensor != tag.tensor ||
            (made_by >= 0 && info->tag.rank != (uint32_t)made_by) ||
            (op && !cg_is_of_op_(ex, info, op) && !cg_is_empty_packet_(ex, info))))
        s = CG_E_MISMATCH;
    if (s == CG_OK) s = cg_packet_open_(d, &side, p, len, 1);
    if (s == CG_OK && op && d->segments_hash != ex->plan.segments_hash && !cg_is_empty_packet_(ex, info))
        s = CG_E_MISMATCH;
    if (s == CG_OK && stripe >= 0 && (ex->desc.flags & CG_AGREE_SCALES)) s = cg_same_scales_(ex, p, len, stripe);
    if (s == CG_OK) return;
    cg_ex_fail_(ex, s, sent_by,
        s == CG_E_MISMATCH
            ? "its packet is of another vector: n, seed, step, tensor, rank, operator, segments or agreed scales differ"
            : cg_status_str(s));
}
static void cg_accept_(cg_ex_ *ex, const uint8_t *p, size_t len, size_t n, cg_tag tag, int stripe, const cg_op *op,
    int made_by, int sent_by) {
    cg_decoder_ d;
    if (ex->status != CG_OK) return;
    cg_accept_opened_(ex, &d, cg_ex_header_(ex, &d, p, len), p, len, n, tag, stripe, op, made_by, sent_by);
}
/* If this rank has failed: a failure packet of len bytes at p. Packets of less than 12 bytes stay as they are. */
static void cg_failure_put_(const cg_ex_ *ex, uint8_t *p, size_t len) {
    if (ex->status == CG_OK || len < 12) return;
    memset(p, 0, len);
    cg_put32_(p, CG_FAILURE_MAGIC_);
    cg_put32_(p + 4, (uint32_t)ex->status);
    cg_put32_(p + 8, (uint32_t)(ex->report.rank < 0 ? ex->transport.rank : ex->report.rank));
}
/* If this rank has failed: failures in place of its packets, whose lengths follow from n. */
static void cg_own_failure_put_(cg_ex_ *ex) {
    if (ex->status == CG_OK) return;
    ex->own.offset[0] = 0;
    for (int p = 0; p < ex->plan.stripes; p++) {
        const size_t len = cg_bound_with(&ex->desc.op, ex->desc.side, cg_stripe_n_(ex, p));
        cg_failure_put_(ex, ex->own.packets + (size_t)ex->own.offset[p], len);
        ex->own.offset[p + 1] = ex->own.offset[p] + len;
    }
}
/* As cg_compress_with, in the exchange's scratch. */
static cg_status cg_ex_compress_(const cg_ex_ *ex, const cg_op *op, const cg_tag *tag, const cg_extra *side,
    const float *v, size_t n, uint8_t *out, size_t cap, size_t *len) {
    return cg_compress_checked_(op, NULL, tag, side, v, NULL, n, out, cap, len, ex->mem.scratch, ex->mem.scratch_bytes);
}
/* Compresses grad, or what ex->producer makes of it, into own.packets, stripe after stripe. Called a second time once
   scales are agreed on. */
static void cg_stripes_compress_(cg_ex_ *ex) {
    cg_producer_ *producer = ex->producer;
    cg_extra side = CG_ZERO;
    cg_report report;
    uint64_t packet_offset = 0, scale_offset = 0;
    ex->producer = NULL;
    if (ex->desc.side) side = *ex->desc.side;
    side.report = &report;
    if (ex->desc.flags & CG_CORRELATED) side.correlated = (uint32_t)ex->transport.size;
    if (ex->desc.flags & CG_ABSTAIN) {
        const cg_tag tag = cg_stripe_tag_(ex, 0, 0);
        ex->contrib.len = cg_empty_packet_put_(&tag, ex->n, ex->own.packets);
        ex->own.offset[1] = ex->contrib.len;
        if (!ex->plan.op_len_fixed) return;
        ex->own.offset[1] = ex->plan.packet_room; /* zeros up to the length that the others expect */
        memset(ex->own.packets + ex->contrib.len, 0, ex->plan.packet_room - ex->contrib.len);
        return;
    }
    for (int p = 0; p < ex->plan.stripes && ex->status == CG_OK; p++) {
        const size_t start = cg_stripe_start_(ex, p), n = cg_stripe_n_(ex, p);
        const cg_tag tag = cg_stripe_tag_(ex, p, 0);
        size_t len;
        cg_status s;
        if (ex->desc.side && ex->desc.side->aux) side.aux = cg_at_(ex->desc.side->aux, start);
        if (ex->desc.flags & CG_AGREE_SCALES) side.scale = ex->scales.agreed ? ex->scales.max + scale_offset : NULL;
        scale_offset += cg_stripe_scale_count_(ex, p);
        s = cg_compress_checked_(&ex->desc.op, ex->resolved && n == ex->n ? &ex->resolved->plan : NULL, &tag, &side,
            n ? cg_at_(ex->grad, start) : NULL, producer, n, ex->own.packets + (size_t)packet_offset,
            ex->plan.packet_room, &len, ex->mem.scratch, ex->mem.scratch_bytes);
        if (s != CG_OK)
            cg_ex_fail_here_(
                ex, s, report.why, report.need, report.at == CG_NO_INDEX ? CG_NO_INDEX : start + report.at);
        ex->own.offset[p] = packet_offset;
        packet_offset += len;
    }
    ex->own.offset[ex->plan.stripes] = packet_offset;
}
static const uint8_t *cg_own_packet_(const cg_ex_ *ex, int p) { return ex->own.packets + (size_t)ex->own.offset[p]; }
static size_t cg_own_packet_len_(const cg_ex_ *ex, int p) {
    return (size_t)(ex->own.offset[p + 1] - ex->own.offset[p]);
}
/* Compressing refuses Inf and NaN; this is for routes that compress only after the opening. */
static void cg_grad_check_finite_(cg_ex_ *ex) {
    for (size_t i = 0; i < ex->n; i += CG_BLOCK_)
        if (cg_absmax_bits_(cg_at_(ex->grad, i), cg_min_(CG_BLOCK_, ex->n - i)) >= CG_INF_BITS_) {
            cg_ex_fail_here_(
                ex, CG_E_NONFINITE, cg_status_str(CG_E_NONFINITE), 0, cg_first_nonfinite_(ex->grad, ex->n));
            return;
        }
}
/* Bytes of the table of scales: with the note behind it, what every rank sends. */
static size_t cg_scale_table_bytes_(const cg_ex_ *ex) { return (4 * (size_t)ex->scales.count + 7) & ~(size_t)7; }
/* Scales of all stripes to scales.all, with a note; they stand first in a packet, as f32. */
static void cg_scales_collect_(cg_ex_ *ex) {
    uint8_t *out = ex->scales.all;
    memset(out, 0, cg_scale_table_bytes_(ex));
    for (int p = 0; p < ex->plan.stripes; p++) {
        const size_t bytes = 4 * (size_t)cg_stripe_scale_count_(ex, p);
        memcpy(out, cg_own_packet_(ex, p) + CG_HEADER_BYTES, bytes);
        out += bytes;
    }
    cg_note_put_(ex, ex->scales.all, cg_scale_table_bytes_(ex), ex->scales.count, CG_ROUND_SCALES_);
}
/* Takes the maximum over ranks of every scale, from the records if there is one and otherwise from the last
   allgather, and compresses again with it. */
static void cg_scales_agree_(cg_ex_ *ex) {
    for (int q = 0; ex->scales.count > 1 && q < ex->transport.size; q++)
        cg_note_get_(ex, cg_gathered_(ex, (size_t)q), cg_scale_table_bytes_(ex), CG_ROUND_SCALES_, q);
    if (ex->status != CG_OK) return;
    for (size_t i = 0; i < (size_t)ex->scales.count; i++) {
        float max_scale = 0.0f;
        for (size_t q = 0; q < cg_ranks_(ex); q++) {
            const float scale = ex->scales.count == 1
                ? cg_as_float_(cg_get32_(ex->opening.records + q * CG_RECORD_BYTES_ + 48))
                : cg_as_float_(cg_get32_(cg_gathered_(ex, q) + 4 * i));
            if (!cg_is_finite_(scale) || scale < 0.0f)
                cg_ex_fail_(ex, CG_E_CORRUPT, (int)q, "it sent a scale that cannot be");
            else if (scale > max_scale) max_scale = scale;
        }
        ex->scales.max[i] = max_scale;
    }
    ex->scales.agreed = 1;
    if (ex->status == CG_OK) cg_stripes_compress_(ex);
}
