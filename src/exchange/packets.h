/* ---- >>packets ---- */

static cg_extra cg_decode_extra_(const cg_ex_ *x) { /* what decoding needs of the caller's */
    cg_extra side = CG_ZERO;
    if (!x->desc.side) return side;
    side.support = x->desc.side->support;
    side.support_len = x->desc.side->support_len;
    side.codecs = x->desc.side->codecs;
    side.codec_count = x->desc.side->codec_count;
    return side;
}
/* Everything that cg_decode would find wrong, without decoding. */
CG_NOINLINE_ cg_status cg_packet_check_(const cg_extra *side, const void *packet, size_t len, size_t n) {
    cg_decoder_ d;
    float none = 0.0f;
    cg_status s = cg_decoder_open_(&d, side, packet, len, &none, n, 1);
    return s == CG_OK ? cg_verify_(&d) : s;
}
static cg_status cg_ex_decode_(
    const cg_ex_ *x, const void *packet, size_t len, float alpha, float beta, float *y, size_t n) {
    const cg_extra side = cg_decode_extra_(x);
    return cg_decode_(&side, packet, len, alpha, beta, y, n, 1);
}
static int cg_same_op_(const cg_op *a, const cg_op *b) {
    for (unsigned slot = 0; slot < CG_SLOT_COUNT_; slot++) {
        cg_stage s = *cg_op_stage_const_(a, slot), t = *cg_op_stage_const_(b, slot);
        /* its mark: the decoder looks at that */
        if (slot == CG_SLOT_SELECT_ && s.id == CG_SELECT_GIVEN) s.size = t.size;
        if (!cg_same_stage_(&s, &t)) return 0;
    }
    return 1;
}
/* Agreed scales are the same in every packet, whoever made it, and in their sums. */
CG_NOINLINE_ cg_status cg_same_scales_(const cg_ex_ *x, const uint8_t *p, size_t len, int part) {
    cg_decoder_ d, own;
    float none = 0.0f;
    unsigned bits;
    cg_status s = cg_decoder_open_(&d, NULL, p, len, &none, cg_stripe_n_(x, part), 1);
    if (s == CG_OK)
        s = cg_decoder_open_(&own, NULL, x->own + (size_t)x->part_at[part],
            (size_t)(x->part_at[part + 1] - x->part_at[part]), &none, cg_stripe_n_(x, part), 1);
    /* a sum too large for levels is of floats */
    if (s != CG_OK || !cg_grid_zero_symbol_(&d.info.op.quantize, &bits)) return s;
    if (d.lay.bucket_count != own.lay.bucket_count) return CG_E_MISMATCH;
    for (size_t b = 0; b < (size_t)d.lay.bucket_count; b++)
        if (cg_grid_step_(&d, b) != cg_grid_step_(&own, b)) return CG_E_MISMATCH;
    return CG_OK;
}
/* The packet of a rank that abstains: a selection of nothing. */
static cg_op cg_empty_op_(void) { return cg_threshold(CG_FLT_MAX_); }
static size_t cg_empty_packet_put_(const cg_tag *tag, size_t n, uint8_t *packet) {
    const cg_checksum_ none = { 0, 0, 0 };
    cg_info info = CG_ZERO;
    info.op = cg_empty_op_();
    info.tag = *tag;
    info.n = info.drawn = n;
    info.index_code = cg_index_code_(&info.op, n, 0);
    return cg_packet_finalize_(cg_kernels_now_(), &info, packet, none);
}
static int cg_is_empty_packet_(const cg_ex_ *x, const cg_info *info) {
    const cg_op nothing = cg_empty_op_();
    return x->route == CG_ROUTE_ALLGATHER && info->k == 0 && cg_same_op_(&info->op, &nothing);
}
/* Is this an intact packet of n values of this step, from that rank? part: of x, or -1; op NULL: of whatever
   operator; rank < 0: made by anybody. */
static void cg_accept_(
    cg_ex_ *x, const uint8_t *p, size_t len, size_t n, cg_tag tag, int part, const cg_op *op, int rank, int from) {
    const cg_extra side = cg_decode_extra_(x);
    cg_info info;
    cg_status s;
    if (x->status != CG_OK) return;
    if (len >= 12 && cg_get32_(p) == CG_FAILURE_MAGIC_) {
        const uint32_t who = cg_get32_(p + 8);
        cg_ex_fail_(x, CG_E_PEER, who < (uint32_t)x->transport.size ? (int)who : from,
            cg_status_str((cg_status)cg_get32_(p + 4)));
        return;
    }
    s = cg_header_get_(p, len, &info);
    if (s == CG_OK &&
        (info.n != n || info.tag.seed != tag.seed || info.tag.step != tag.step || info.tag.tensor != tag.tensor ||
            (rank >= 0 && info.tag.rank != (uint32_t)rank) ||
            (op && !cg_same_op_(&info.op, op) && !cg_is_empty_packet_(x, &info))))
        s = CG_E_MISMATCH;
    if (s == CG_OK) s = cg_packet_check_(&side, p, len, n);
    if (s == CG_OK && part >= 0 && (x->desc.flags & CG_AGREE_SCALES)) s = cg_same_scales_(x, p, len, part);
    if (s == CG_OK) return;
    cg_ex_fail_(x, s, from,
        s == CG_E_MISMATCH
            ? "its packet is of another vector: n, seed, step, tensor, rank, operator or agreed scales differ"
            : cg_status_str(s));
}
/* A failure takes the place of a packet, so that the others need not wait for one. */
static void cg_failure_put_(const cg_ex_ *x, uint8_t *p, size_t len) {
    if (x->status == CG_OK || len < 12) return;
    memset(p, 0, len);
    cg_put32_(p, CG_FAILURE_MAGIC_);
    cg_put32_(p + 4, (uint32_t)x->status);
    cg_put32_(p + 8, (uint32_t)(x->report.rank < 0 ? x->transport.rank : x->report.rank));
}
static void cg_preamble_put_(const cg_ex_ *x, uint8_t *note, size_t len) {
    cg_put64_(note, x->status == CG_OK ? len : 0);
    cg_put32_(note + 8, (uint32_t)x->status);
    cg_put32_(
        note + 12, x->status == CG_OK ? x->check : (uint32_t)(x->report.rank < 0 ? x->transport.rank : x->report.rank));
}
static size_t cg_preamble_get_(cg_ex_ *x, const uint8_t *note, size_t cap, int from) {
    const uint64_t len = cg_get64_(note);
    const uint32_t who = cg_get32_(note + 12);
    if (cg_get32_(note + 8))
        cg_ex_fail_(x, CG_E_PEER, who < (uint32_t)x->transport.size ? (int)who : from,
            cg_status_str((cg_status)cg_get32_(note + 8)));
    else if (len > cap) cg_ex_fail_(x, CG_E_CORRUPT, from, "it announces a packet that is too long");
    else if (who != x->check) cg_ex_fail_(x, CG_E_CORRUPT, from, "it counted otherwise: a count did not arrive intact");
    return cg_get32_(note + 8) || len > cap ? 0 : (size_t)len;
}
static cg_status cg_ex_compress_(const cg_ex_ *x, const cg_op *op, const cg_tag *tag, const cg_extra *side,
    const float *v, size_t n, uint8_t *out, size_t cap, size_t *len) {
    return cg_compress_checked_(op, tag, side, v, NULL, n, out, cap, len, x->scratch, x->scratch_bytes);
}
/* x as packets, part after part. */
static void cg_stripes_compress_(cg_ex_ *x) {
    const size_t room = (size_t)cg_packet_room_(x);
    cg_producer_ *fill = x->fill;
    cg_extra side = CG_ZERO;
    uint64_t at = 0, scale = 0;
    x->fill = NULL;
    if (x->desc.side) side = *x->desc.side;
    if (x->desc.flags & CG_ABSTAIN) {
        const cg_tag tag = cg_stripe_tag_(x, 0, 0);
        x->part_at[1] = cg_empty_packet_put_(&tag, x->n, x->own);
        return;
    }
    for (int p = 0; p < x->parts && x->status == CG_OK; p++) {
        const size_t start = cg_stripe_start_(x, p), n = cg_stripe_n_(x, p);
        const cg_tag tag = cg_stripe_tag_(x, p, 0);
        size_t len;
        cg_status s;
        if (x->desc.side && x->desc.side->aux) side.aux = cg_at_(x->desc.side->aux, start);
        if (x->desc.flags & CG_AGREE_SCALES) side.scale = x->settled ? x->agreed + scale : NULL;
        scale += cg_stripe_scale_count_(x, p);
        s = cg_compress_checked_(&x->desc.op, &tag, &side, n ? cg_at_(x->x, start) : NULL, fill, n, x->own + (size_t)at,
            room, &len, x->scratch, x->scratch_bytes);
        if (s != CG_OK) cg_ex_fail_(x, s, x->transport.rank, cg_status_str(s));
        x->part_at[p] = at;
        at += len;
    }
    x->part_at[x->parts] = at;
}
static const uint8_t *cg_own_packet_(const cg_ex_ *x, int p) { return x->own + (size_t)x->part_at[p]; }
static size_t cg_own_packet_len_(const cg_ex_ *x, int p) { return (size_t)(x->part_at[p + 1] - x->part_at[p]); }
static void cg_grad_check_finite_(cg_ex_ *x) { /* where x is not compressed before the others are told */
    const cg_kernels_ *kernels = cg_kernels_now_();
    for (size_t i = 0; i < x->n; i += CG_BLOCK_)
        if (kernels->absmax_bits(cg_at_(x->x, i), cg_min_(CG_BLOCK_, x->n - i)) >= CG_INF_BITS_) {
            cg_ex_fail_(x, CG_E_NONFINITE, x->transport.rank, cg_status_str(CG_E_NONFINITE));
            return;
        }
}
/* Scales stand first in a packet, as floats. */
static void cg_scales_collect_(const cg_ex_ *x, uint8_t *out) {
    for (int p = 0; p < x->parts; p++) {
        const size_t bytes = 4 * (size_t)cg_stripe_scale_count_(x, p);
        memcpy(out, cg_own_packet_(x, p) + CG_HEADER_BYTES, bytes);
        out += bytes;
    }
}
static void cg_scales_agree_(cg_ex_ *x) {
    for (size_t i = 0; i < (size_t)x->scales; i++) {
        float most = 0.0f;
        for (size_t q = 0; q < cg_ranks_(x); q++) {
            const float s = x->scales == 1 ? cg_as_float_(cg_get32_(x->records + q * CG_RECORD_BYTES_ + 48))
                                           : cg_as_float_(cg_get32_(cg_gathered_(x, q) + 4 * i));
            if (!cg_is_finite_(s) || s < 0.0f) cg_ex_fail_(x, CG_E_CORRUPT, (int)q, "it sent a scale that cannot be");
            else if (s > most) most = s;
        }
        x->agreed[i] = most;
    }
    x->settled = 1;
    cg_stripes_compress_(x);
    if (x->status == CG_OK) return;
    x->part_at[0] = 0; /* the others wait for packets */
    for (int p = 0; p < x->parts; p++) {
        const size_t len = cg_bound_(&x->desc.op, NULL, cg_stripe_n_(x, p));
        cg_failure_put_(x, x->own + (size_t)x->part_at[p], len);
        x->part_at[p + 1] = x->part_at[p] + len;
    }
}
