/* server_next: what a server has to tell its workers, one message after the other

   Offers   the public cg_server_next, cg_server_message_bytes
   Needs    server, wire
   Touches  seats, out, work and touched
   Nothing is queued: what a worker has to hear follows from its seat. In this order: a welcome, a verdict, and if it
   may make its next step, updates until it has the model, and a go. Of updates, whichever is the fewest bytes: packets
   of the ring, one by one; the values that they have touched, as they are now; or the model, piece by piece. */

static cg_msg_ cg_server_message_(uint32_t kind, const cg_server_seat *seat) {
    cg_msg_ m;
    memset(&m, 0, sizeof m);
    m.kind = kind;
    m.clock = seat->clock;
    return m;
}
static void cg_server_envelope_(cg_server *s, int to, const cg_msg_ *m, cg_envelope *e) {
    e->to = to;
    e->bytes = s->out;
    e->len = cg_msg_put_(s->out, s->job, m);
}
/* touched = the values that packets since seat->version may have changed; returns how many. */
static uint64_t cg_server_touch_(cg_server *s, const cg_server_seat *seat) {
    const size_t n = s->desc.n;
    uint64_t count = 0;
    for (size_t i = 0; i < n; i++) s->work[i] = 1.0f;
    for (uint64_t v = seat->version; v < s->version; v++) {
        const cg_server_entry *e =
            &s->entry[(s->entry_first + s->entry_count - (size_t)(s->version - v)) % s->entry_cap];
        if (cg_clear(s->ring + e->offset, e->len, s->work, n) != CG_OK) return n;
    }
    memset(s->touched, 0, n / 8 + 8);
    for (size_t i = 0; i < n; i++)
        if (s->work[i] == 0.0f) {
            s->touched[i / 32] |= 1u << i % 32;
            count++;
        }
    return count;
}
/* The next of the touched values, from seat->piece on. */
static void cg_server_touched_put_(cg_server *s, int to, cg_server_seat *seat, cg_envelope *e) {
    cg_msg_ m = cg_server_message_(CG_MSG_TOUCHED_, seat);
    uint8_t *out = s->out + CG_MSG_BYTES_ + 8;
    size_t count = 0, i = (size_t)seat->piece;
    cg_put64_(s->out + CG_MSG_BYTES_, seat->mark);
    for (; i < s->desc.n && count < CG_TOUCHED_PIECE_; i++)
        if (s->touched[i / 32] >> i % 32 & 1) cg_put32_(out + 4 * count++, (uint32_t)i);
    for (size_t j = 0; j < count; j++) cg_put32_(out + 4 * (count + j), cg_as_bits_(s->model[cg_get32_(out + 4 * j)]));
    m.version = s->version;
    m.mark = s->mark;
    m.number = count;
    m.status = i < s->desc.n;
    m.payload_len = 8 + 8 * count;
    seat->piece = i;
    cg_server_envelope_(s, to, &m, e);
    if (i < s->desc.n) return;
    seat->version = s->version;
    seat->mark = s->mark;
    seat->piece = 0;
}
/* The next piece of the model. */
static void cg_server_dense_put_(cg_server *s, int to, cg_server_seat *seat, cg_envelope *e) {
    cg_msg_ m = cg_server_message_(CG_MSG_DENSE_, seat);
    const cg_op dense = cg_dense();
    const size_t first = (size_t)seat->piece, many = cg_min_(CG_DENSE_PIECE_, s->desc.n - first);
    size_t len = 0;
    cg_status status = cg_compress(
        &dense, NULL, s->model + first, many, s->out + CG_MSG_BYTES_, s->out_cap - CG_MSG_BYTES_, &len, NULL, 0);
    (void)status; /* the model is finite, and out has room */
    m.version = s->version;
    m.mark = s->mark;
    m.number = first;
    m.payload_len = len;
    seat->version = CG_NO_VERSION_;
    seat->piece = first + many;
    cg_server_envelope_(s, to, &m, e);
    if (seat->piece < s->desc.n) return;
    seat->version = s->version;
    seat->mark = s->mark;
    seat->piece = 0;
}
static void cg_server_update_put_(cg_server *s, int to, cg_server_seat *seat, cg_envelope *e) {
    const cg_server_entry *next = seat->version == CG_NO_VERSION_ ? NULL : cg_ring_find_(s, seat->version, seat->mark);
    uint64_t bytes = 0, dense = cg_mul_sat_(4, s->desc.n);
    cg_msg_ m = cg_server_message_(CG_MSG_UPDATE_, seat);
    if (seat->piece && seat->version != CG_NO_VERSION_) { /* in the middle of touched values */
        cg_server_touched_put_(s, to, seat, e);
        return;
    }
    for (uint64_t v = seat->version; next && v < s->version; v++)
        bytes += s->entry[(s->entry_first + s->entry_count - (size_t)(s->version - v)) % s->entry_cap].len +
            CG_MSG_BYTES_;
    if (next && s->touched && s->version - seat->version >= 4 &&
        8 * cg_server_touch_(s, seat) + CG_MSG_BYTES_ < bytes) {
        cg_server_touched_put_(s, to, seat, e);
        return;
    }
    if (!next || (bytes > dense && s->version - seat->version > 1)) {
        cg_server_dense_put_(s, to, seat, e);
        return;
    }
    m.version = next->version;
    m.mark = next->after;
    m.number = next->before;
    m.payload_len = next->len;
    memcpy(s->out + CG_MSG_BYTES_, s->ring + next->offset, next->len);
    seat->version = next->version;
    seat->mark = next->after;
    cg_server_envelope_(s, to, &m, e);
}
CG_API_ int cg_server_next(cg_server *s, cg_envelope *envelope) {
    if (!s || !s->model || !envelope) return 0;
    memset(envelope, 0, sizeof *envelope);
    for (; s->cursor < s->desc.workers; s->cursor++) {
        cg_server_seat *seat = &s->seat[s->cursor];
        cg_msg_ m = cg_server_message_(CG_MSG_WELCOME_, seat);
        if (seat->flags & CG_SEAT_ASK_) {
            seat->flags &= ~(uint32_t)CG_SEAT_ASK_;
            m.kind = CG_MSG_ASK_;
        } else if (seat->state != CG_SEAT_HERE_) continue;
        else if (seat->flags & CG_SEAT_WELCOME_) {
            seat->flags &= ~(uint32_t)CG_SEAT_WELCOME_;
            m.version = s->version;
            m.mark = s->mark;
        } else if (seat->flags & CG_SEAT_VERDICT_) {
            const int refused = (seat->flags & CG_SEAT_REFUSED_) != 0;
            seat->flags &= ~(uint32_t)(CG_SEAT_VERDICT_ | CG_SEAT_REFUSED_);
            m = cg_server_message_(CG_MSG_VERDICT_, seat);
            m.clock = refused ? seat->clock : seat->last_clock;
            m.number = seat->clock;
            m.status = refused ? CG_VERDICT_REFUSED | seat->refusal << 8 : seat->last_kind | seat->last_status << 8;
        } else if (seat->flags & CG_SEAT_WAITING_ && cg_server_may_start_(s, seat)) {
            if (seat->version != s->version || seat->mark != s->mark) {
                cg_server_update_put_(s, s->cursor, seat, envelope);
                return 1;
            }
            seat->flags &= ~(uint32_t)CG_SEAT_WAITING_;
            m = cg_server_message_(CG_MSG_GO_, seat);
            m.version = s->version;
            m.mark = s->mark;
        } else continue;
        cg_server_envelope_(s, s->cursor, &m, envelope);
        return 1;
    }
    return 0;
}
CG_API_ size_t cg_server_message_bytes(const cg_server *s) {
    size_t up;
    if (!s || !s->model) return 0;
    up = cg_bound(&s->desc.up, s->desc.n);
    return cg_min_(s->out_cap, SIZE_MAX) > up + CG_MSG_BYTES_ ? s->out_cap : up + CG_MSG_BYTES_;
}
