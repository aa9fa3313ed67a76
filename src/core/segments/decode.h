/* decode: packets with segments opened, verified and decoded, each segment as a packet without them

   Offers   cg_decoder_open_segments_, cg_verify_segments_, cg_decode_segments_, cg_clear_segments_, supports with
            segments, cg_segment_decoder_open_; the public cg_segment_inspect, cg_segment_copy and
            cg_segments_split
   Needs    base, packet, segments/table, decoder, verify, decode_into, decode
   Touches  the caller's y, or what the sink writes
   All segments are checked before y is written. */

/* The next segment, opened into *d up to the first look at its values; it has no y. Its packet_bytes are 0, as its
   checksum is that of the whole packet. */
static cg_status cg_segment_decoder_open_(
    cg_segment_cursor_ *c, const cg_extra *extra, int need_codec, cg_decoder_ *d) {
    cg_status s = cg_segment_next_(c, &d->info, &d->plan);
    if (s != CG_OK) return s;
    d->packet = NULL;
    d->info.packet_bytes = 0;
    return cg_decoder_open_body_(d, extra, c->body, NULL, need_codec);
}
/* A cursor before the first segment of a packet that cg_decoder_open_segments_ has accepted. */
static void cg_segment_cursor_of_(const cg_decoder_ *d, cg_segment_cursor_ *c) {
    const cg_status s = cg_segments_open_(c, &d->info, cg_op_traits_(&d->info.op), d->packet);
    (void)s; /* it was CG_OK before */
}
/* The whole table, once d->info, d->plan, d->packet and d->y are set. plan.traits are then those of all segments. */
static cg_status cg_decoder_open_segments_(cg_decoder_ *d) {
    cg_segment_cursor_ c;
    cg_info info;
    cg_plan_ plan;
    cg_status s = cg_segments_open_(&c, &d->info, d->plan.traits, d->packet);
    memset(&d->lay, 0, sizeof d->lay);
    d->kernels = cg_kernels_now_();
    d->support = NULL;
    d->sink = NULL;
    d->walk = NULL;
    d->coordinates = 0;
    d->scales = d->piece_table = d->codes = d->index = NULL;
    while (s == CG_OK && c.left) {
        s = cg_segment_next_(&c, &info, &plan);
        if (s != CG_OK) return s;
        d->plan.traits |= plan.traits;
        d->coordinates += cg_is_transformed_(&info.op) ? info.drawn : info.k;
    }
    d->segments_hash = c.hash ? c.hash : 1;
    return s != CG_OK ? s : cg_segments_end_(&c) ? CG_OK : CG_E_CORRUPT;
}
static cg_status cg_support_open_segment_(cg_decoder_ *support, const cg_segment_cursor_ *at, size_t n) {
    cg_segment_cursor_ c = *at;
    const cg_status s = c.left ? cg_segment_decoder_open_(&c, NULL, 0, support) : CG_E_MISMATCH;
    support->y = NULL;
    return s == CG_OK && support->info.n != n ? CG_E_MISMATCH : s;
}
/* What extra is to a segment: its support, if it needs one, is the same segment of extra->support. */
typedef struct cg_segment_extra_ {
    cg_extra extra;
    cg_decoder_ support;
    cg_segment_cursor_ at;
} cg_segment_extra_;
/* needs: traits of all segments. CG_OK: out->extra is that of the first segment; out must stay where it is. */
static cg_status cg_segment_extra_open_(cg_segment_extra_ *out, const cg_extra *extra, uint32_t needs, size_t n) {
    const cg_extra none = CG_ZERO;
    cg_status s;
    out->extra = extra ? *extra : none;
    out->extra.report = NULL;
    out->extra.segments = NULL;
    if (!(needs & CG_NEEDS_SUPPORT_)) return CG_OK;
    s = cg_support_open_(&out->support, extra, n);
    if (s != CG_OK) return s;
    if (!cg_has_segments_(&out->support.info)) return CG_E_MISMATCH;
    cg_segment_cursor_of_(&out->support, &out->at);
    out->extra.support = &out->at;
    out->extra.support_len = sizeof out->at;
    out->extra.flags |= CG_SUPPORT_IS_SEGMENT_;
    return CG_OK;
}
/* On to the next segment. */
static cg_status cg_segment_extra_next_(cg_segment_extra_ *e) {
    cg_info info;
    cg_plan_ plan;
    if (!(e->extra.flags & CG_SUPPORT_IS_SEGMENT_)) return CG_OK;
    return e->at.left ? cg_segment_next_(&e->at, &info, &plan) : CG_E_MISMATCH;
}
static cg_status cg_verify_segments_(const cg_decoder_ *d, const cg_extra *extra) {
    cg_segment_extra_ sub;
    cg_segment_cursor_ c;
    cg_decoder_ segment;
    cg_status s = cg_checksum_whole_ok_(d) ? CG_OK : CG_E_CORRUPT;
    if (s == CG_OK) s = cg_segment_extra_open_(&sub, extra, d->plan.traits, (size_t)d->info.n);
    cg_segment_cursor_of_(d, &c);
    while (s == CG_OK && c.left) {
        s = cg_segment_decoder_open_(&c, &sub.extra, d->need_codec, &segment);
        if (s == CG_OK && d->plan.traits & segment.plan.traits & CG_NEEDS_SUPPORT_)
            s = cg_given_check_(&segment, &sub.extra);
        if (s == CG_OK) s = cg_verify_(&segment, &sub.extra);
        if (s == CG_OK) s = cg_segment_extra_next_(&sub);
    }
    return s;
}
/* A sink for the values of a segment that hands them on with their places in the whole vector. */
typedef struct cg_segment_sink_ {
    cg_sink_ sink;
    const cg_sink_ *outer;
    uint64_t first;
} cg_segment_sink_;
static double cg_segment_take_dense_(const void *user, size_t first, size_t many, const float *v) {
    const cg_segment_sink_ *s = (const cg_segment_sink_ *)user;
    return s->outer->take_dense(s->outer->user, (size_t)s->first + first, many, v);
}
static double cg_segment_take_sparse_(const void *user, const uint64_t *at, size_t many, const float *v) {
    const cg_segment_sink_ *s = (const cg_segment_sink_ *)user;
    uint64_t index[CG_SPARSE_BATCH_];
    double energy = 0.0;
    for (size_t i = 0, batch; i < many; i += batch) {
        batch = cg_min_(CG_SPARSE_BATCH_, many - i);
        for (size_t j = 0; j < batch; j++) index[j] = s->first + at[i + j];
        energy += s->outer->take_sparse(s->outer->user, index, batch, cg_at_(v, i));
    }
    return energy;
}
/* Of a verified packet; as cg_packet_decode_. */
CG_NOINLINE_ cg_status cg_decode_segments_(
    const cg_decoder_ *d, const cg_extra *extra, float alpha, float beta, float *y, cg_sink_ *sink) {
    cg_segment_extra_ sub;
    cg_segment_sink_ part;
    cg_segment_cursor_ c;
    cg_decoder_ segment;
    cg_status s = cg_segment_extra_open_(&sub, extra, d->plan.traits, (size_t)d->info.n);
    part.sink.take_dense = cg_segment_take_dense_;
    part.sink.take_sparse = cg_segment_take_sparse_;
    part.sink.user = &part;
    part.outer = sink;
    cg_segment_cursor_of_(d, &c);
    while (s == CG_OK && c.left) {
        s = cg_segment_decoder_open_(&c, &sub.extra, 1, &segment);
        part.first = c.first;
        part.sink.energy = 0.0;
        if (s == CG_OK)
            s = cg_packet_decode_(&segment, &sub.extra, alpha, beta, y ? cg_at_mut_(y, (size_t)c.first) : NULL,
                sink ? &part.sink : NULL, 1);
        if (sink) sink->energy += part.sink.energy;
        if (s == CG_OK) s = cg_segment_extra_next_(&sub);
    }
    return s;
}
static cg_status cg_clear_segments_(cg_decoder_ *d) {
    cg_segment_cursor_ c;
    cg_decoder_ segment;
    cg_status s = CG_OK;
    cg_segment_cursor_of_(d, &c);
    while (s == CG_OK && c.left) {
        s = cg_segment_decoder_open_(&c, NULL, 0, &segment);
        if (s != CG_OK) break;
        segment.y = cg_at_mut_(d->y, (size_t)c.first);
        cg_clear_opened_(&segment);
    }
    return s;
}
/* A hash, never 0, of where a support with segments has values. */
static uint32_t cg_support_fingerprint_segments_(const cg_decoder_ *support) {
    cg_segment_cursor_ c;
    cg_decoder_ segment;
    uint64_t h = cg_mix64_(support->info.segments + CG_GOLDEN_);
    cg_segment_cursor_of_(support, &c);
    while (c.left && cg_segment_decoder_open_(&c, NULL, 0, &segment) == CG_OK)
        h = cg_mix64_(cg_mix64_(h ^ segment.info.n) ^ cg_support_fingerprint_(&segment));
    return (uint32_t)h | 1u;
}
static void cg_segment_walk_get_(const cg_decoder_ *support, int start, size_t many, uint64_t *index) {
    cg_segment_walk_ *w = support->walk;
    if (start) {
        cg_segment_cursor_of_(support, &w->cursor);
        w->next = w->count = 0;
    }
    for (size_t i = 0, take; i < many; i += take) {
        while (w->next == w->count) {
            if (!w->cursor.left || cg_segment_decoder_open_(&w->cursor, NULL, 0, &w->segment) != CG_OK) {
                memset(index + i, 0, 8 * (many - i)); /* cannot be: the support was verified */
                return;
            }
            w->reader = cg_index_open_(w->segment.kernels, &w->segment.info, &w->segment.plan, w->segment.index);
            w->base = w->cursor.first;
            w->next = 0;
            w->count = cg_coordinate_count_(&w->segment);
        }
        take = cg_min_(many - i, w->count - w->next);
        cg_coordinates_get_(&w->segment, &w->reader, w->next, take, index + i);
        for (size_t j = 0; j < take; j++) index[i + j] += w->base;
        w->next += take;
    }
}

/* Segment i of a packet whose header has been read into *whole: *info becomes its header, c->body its values. */
static cg_status cg_segment_find_(
    const uint8_t *packet, size_t len, size_t i, cg_info *whole, cg_info *info, cg_segment_cursor_ *c) {
    cg_plan_ plan;
    cg_status s = cg_header_get_(packet, len, whole, &plan);
    if (s != CG_OK) return s;
    if (whole->packet_bytes != len) return CG_E_CORRUPT;
    if (i >= whole->segments) return CG_E_ARG;
    s = cg_segments_open_(c, whole, plan.traits, packet);
    for (size_t j = 0; s == CG_OK && j <= i; j++) s = cg_segment_next_(c, info, &plan);
    return s;
}
CG_API_ cg_status cg_segment_inspect(const void *packet, size_t len, size_t i, cg_info *info, uint64_t *first) {
    const cg_fenv_ env = cg_fenv_enter_();
    const cg_info zero = CG_ZERO;
    cg_segment_cursor_ c;
    cg_info whole;
    cg_status s = CG_E_ARG;
    if (info) *info = zero;
    if (first) *first = 0;
    if (packet && info && !cg_builds_segments_()) s = CG_E_VERSION;
    else if (packet && info) {
        s = cg_segment_find_((const uint8_t *)packet, len, i, &whole, info, &c);
        if (s != CG_OK) *info = zero;
        else if (first) *first = c.first;
    }
    cg_fenv_leave_(env);
    return s;
}
/* Segment info, whose body is where c stands, as a packet. */
static cg_status cg_segment_put_alone_(
    cg_info *info, const cg_segment_cursor_ *c, uint8_t *out, size_t cap, size_t *out_len) {
    if (info->packet_bytes > cap) return CG_E_CAPACITY;
    if (c->whole->segment_flags & CG_SEGMENTS_GLOBAL && c->number == CG_SEGMENT_OP) { /* any index set fits these */
        const cg_stage any_magnitude = cg_threshold(0.0f).select;
        if (cg_op_traits_(&info->op) & CG_KEEPS_ONE_SIDE_) info->op.select.value = 1.0f;
        else info->op.select = any_magnitude;
    }
    memcpy(out + CG_HEADER_BYTES, c->body, info->packet_bytes - CG_HEADER_BYTES);
    *out_len = cg_packet_seal_(info, out);
    return CG_OK;
}
static cg_status cg_segment_copy_(
    const cg_extra *extra, const uint8_t *packet, size_t len, size_t i, uint8_t *out, size_t cap, size_t *out_len) {
    cg_segment_cursor_ c;
    cg_info whole, info;
    cg_status s = cg_segment_find_(packet, len, i, &whole, &info, &c);
    if (s == CG_OK && whole.n > SIZE_MAX / 4) s = CG_E_UNSUPPORTED;
    if (s == CG_OK) s = cg_packet_check_(extra, packet, len, (size_t)whole.n);
    if (s != CG_OK) return s;
    return cg_segment_put_alone_(&info, &c, out, cap, out_len);
}
CG_API_ cg_status cg_segment_copy(
    const cg_extra *extra, const void *packet, size_t len, size_t i, void *out, size_t cap, size_t *out_len) {
    const cg_fenv_ env = cg_fenv_enter_();
    cg_status s = CG_E_ARG;
    if (out_len) *out_len = 0;
    if (packet && out && out_len)
        s = cg_segment_copy_(extra, (const uint8_t *)packet, len, i, (uint8_t *)out, cap, out_len);
    cg_fenv_leave_(env);
    return s;
}
static cg_status cg_segments_split_(
    const cg_extra *extra, const uint8_t *packet, size_t len, uint8_t *out, size_t cap, size_t *out_len) {
    cg_segment_cursor_ c;
    cg_info whole, info;
    cg_plan_ plan;
    size_t done = 0, one;
    cg_status s = cg_header_get_(packet, len, &whole, &plan);
    if (s == CG_OK && (!cg_has_segments_(&whole) || whole.n > SIZE_MAX / 4)) s = CG_E_UNSUPPORTED;
    if (s == CG_OK) s = cg_packet_check_(extra, packet, len, (size_t)whole.n);
    if (s == CG_OK) s = cg_segments_open_(&c, &whole, plan.traits, packet);
    while (s == CG_OK && c.left) {
        s = cg_segment_next_(&c, &info, &plan);
        if (s == CG_OK) s = cg_segment_put_alone_(&info, &c, out + done, cap - done, &one);
        if (s == CG_OK) done += one;
    }
    if (s == CG_OK) *out_len = done;
    return s;
}
CG_API_ cg_status cg_segments_split(
    const cg_extra *extra, const void *packet, size_t len, void *out, size_t cap, size_t *out_len) {
    const cg_fenv_ env = cg_fenv_enter_();
    cg_status s = CG_E_ARG;
    if (out_len) *out_len = 0;
    if (packet && out && out_len)
        s = cg_segments_split_(extra, (const uint8_t *)packet, len, (uint8_t *)out, cap, out_len);
    cg_fenv_leave_(env);
    return s;
}
