/* client: a worker of a server that is fed

   Offers   the public cg_client_*
   Needs    wire, local (cg_sync_take_), ef's public calls
   Touches  the state
   The model is changed by what the server sends, in its order, and by nothing else: so it has the server's bits. A push
   stays pending until its verdict comes, and its gradient with it, in error feedback. */

enum {
    CG_CLIENT_LOST_ = 1,       /* something is missing: only a welcome helps */
    CG_CLIENT_PARTIAL_ = 2,    /* the model is half of one version, half of another */
    CG_CLIENT_PENDING_ = 4,    /* a push waits for its verdict */
    CG_CLIENT_READY_ = 8,      /* a step may be made */
    CG_CLIENT_HAS_MODEL_ = 16, /* version and mark say which */
    CG_CLIENT_ASKED_ = 32      /* hello has been said, and not answered yet */
};
static const char *cg_client_wrong_(const cg_client_desc *d) {
    if (!d->ef.n) return "ef.n is 0";
    if (d->seat < 0 || d->seat > 65535) return "seat must be 0 to 65535";
    if (!CG_RESERVE_IS_ZERO_(d->reserved)) return "reserved must be 0: start from CG_ZERO";
    return NULL;
}
static uint64_t cg_client_plan_(cg_client *c, uint8_t *base, void **ef_mem, size_t *ef_bytes) {
    const size_t bound = cg_ef_bound(&c->desc.ef);
    uint64_t used = 0;
    *ef_bytes = cg_ef_memory(&c->desc.ef);
    c->packet_cap = bound;
    c->model = (float *)cg_sync_take_(base, &used, cg_mul_sat_(4, c->desc.ef.n));
    c->packet = (uint8_t *)cg_sync_take_(base, &used, bound ? cg_add_sat_(bound, CG_MSG_BYTES_) : CG_TOO_LARGE_);
    *ef_mem = cg_sync_take_(base, &used, *ef_bytes ? *ef_bytes : CG_TOO_LARGE_);
    return cg_add_sat_(used, 64);
}
CG_API_ size_t cg_client_memory(const cg_client_desc *desc) {
    cg_client c;
    void *ef_mem;
    size_t ef_bytes;
    if (!desc || cg_client_wrong_(desc)) return 0;
    memset(&c, 0, sizeof c);
    c.desc = *desc;
    return cg_size_or_zero_(cg_client_plan_(&c, NULL, &ef_mem, &ef_bytes));
}
CG_API_ cg_status cg_client_init(cg_client *c, const cg_client_desc *desc, void *mem, size_t bytes) {
    void *ef_mem;
    size_t ef_bytes;
    cg_status s;
    if (!c) return CG_E_ARG;
    memset(c, 0, sizeof *c);
    if (!desc || cg_client_wrong_(desc)) return CG_E_ARG;
    /* what they received would be the mean over ranks, of which a worker hears nothing */
    if (cg_ef_row_at_(desc->ef.kind) &&
        cg_ef_row_at_(desc->ef.kind)->traits & (CG_EF_KEEPS_RECEIVED_ | CG_EF_TAKES_MODELS_ | CG_EF_MAY_BE_SILENT_))
        return CG_E_UNSUPPORTED;
    c->desc = *desc;
    if (!cg_client_memory(desc)) { /* error feedback says why */
        s = cg_ef_init(&c->ef, &desc->ef, NULL, 0);
        return s == CG_E_MEMORY ? CG_E_ARG : s;
    }
    if (!mem || bytes < cg_client_memory(desc)) return CG_E_MEMORY;
    cg_client_plan_(c, (uint8_t *)mem + (64 - ((uintptr_t)mem & 63)) % 64, &ef_mem, &ef_bytes);
    s = cg_ef_init(&c->ef, &desc->ef, ef_mem, ef_bytes);
    if (s != CG_OK) {
        c->model = NULL;
        return s;
    }
    memset(c->model, 0, 4 * desc->ef.n);
    c->job = cg_sync_job_(desc->seed, desc->ef.n);
    c->flags = CG_CLIENT_LOST_;
    return CG_OK;
}
CG_API_ const float *cg_client_model(const cg_client *c) { return c ? c->model : NULL; }
CG_API_ int cg_client_ready(const cg_client *c) { return c && c->model && (c->flags & CG_CLIENT_READY_) != 0; }
static cg_status cg_client_say_(const cg_client *c, uint32_t kind, void *buf, size_t cap, size_t *len) {
    cg_msg_ m;
    if (!c || !c->model || !buf || !len) return CG_E_ARG;
    *len = 0;
    if (cap < CG_MSG_BYTES_) return CG_E_CAPACITY;
    memset(&m, 0, sizeof m);
    m.kind = kind;
    m.clock = c->clock;
    m.version = c->version;
    m.mark = c->mark;
    m.number = !(c->flags & CG_CLIENT_HAS_MODEL_) || c->flags & CG_CLIENT_PARTIAL_;
    m.status = (c->flags & CG_CLIENT_PENDING_) != 0;
    *len = cg_msg_put_((uint8_t *)buf, c->job, &m);
    return CG_OK;
}
CG_API_ cg_status cg_client_hello(cg_client *c, void *buf, size_t cap, size_t *len) {
    const cg_status s = cg_client_say_(c, CG_MSG_HELLO_, buf, cap, len);
    if (s == CG_OK) c->flags = (c->flags & ~(uint32_t)(CG_CLIENT_LOST_ | CG_CLIENT_READY_)) | CG_CLIENT_ASKED_;
    return s;
}
CG_API_ cg_status cg_client_leave(const cg_client *c, void *buf, size_t cap, size_t *len) {
    return cg_client_say_(c, CG_MSG_LEAVE_, buf, cap, len);
}
CG_API_ cg_status cg_client_push(cg_client *c, const float *grad, float weight, const void **bytes, size_t *len) {
    cg_tag tag = CG_ZERO;
    cg_msg_ m;
    cg_status s;
    if (!c || !c->model || !bytes || !len || !(weight > 0.0f) || !cg_is_finite_(weight)) return CG_E_ARG;
    *bytes = NULL;
    *len = 0;
    if (!cg_client_ready(c)) return CG_E_STATE;
    tag.seed = c->desc.seed;
    tag.step = c->clock;
    tag.rank = (uint32_t)c->desc.seat;
    memset(&m, 0, sizeof m);
    s = cg_ef_compress(&c->ef, &tag, grad, c->packet + CG_MSG_BYTES_, c->packet_cap, &m.payload_len);
    if (s != CG_OK) return s;
    m.kind = CG_MSG_PUSH_;
    m.clock = c->clock;
    m.version = c->version;
    m.mark = c->mark;
    m.weight = weight;
    c->packet_len = cg_msg_put_(c->packet, c->job, &m);
    c->flags = (c->flags & ~(uint32_t)CG_CLIENT_READY_) | CG_CLIENT_PENDING_;
    *bytes = c->packet;
    *len = c->packet_len;
    return CG_OK;
}
CG_API_ void cg_client_pending(const cg_client *c, const void **bytes, size_t *len) {
    const int pending = c && c->model && c->flags & CG_CLIENT_PENDING_;
    if (bytes) *bytes = pending ? c->packet : NULL;
    if (len) *len = pending ? c->packet_len : 0;
}
/* The pending push has ended: its packet counts, or its gradient stays in the memory. */
static cg_status cg_client_end_(cg_client *c, int counts, uint64_t next) {
    const cg_status s = counts ? cg_ef_commit(&c->ef, c->packet + CG_MSG_BYTES_, c->packet_len - CG_MSG_BYTES_, NULL)
                               : cg_ef_rollback(&c->ef, NULL, 0);
    c->flags &= ~(uint32_t)CG_CLIENT_PENDING_;
    c->packet_len = 0;
    c->clock = next;
    return s;
}
static cg_status cg_client_verdict_(cg_client *c, const cg_msg_ *m) {
    const uint32_t kind = m->status & 255;
    if (!(c->flags & CG_CLIENT_PENDING_) || m->clock != c->clock) return CG_OK; /* known already */
    c->last_kind = kind;
    c->last_status = m->status >> 8;
    c->accepted += kind == CG_VERDICT_ACCEPTED;
    c->late += kind == CG_VERDICT_LATE;
    c->rolled_back += kind == CG_VERDICT_ROLLBACK;
    c->refused += kind == CG_VERDICT_REFUSED;
    return cg_client_end_(c, kind == CG_VERDICT_ACCEPTED || kind == CG_VERDICT_LATE, m->number);
}
/* The model is at m's version now. */
static cg_status cg_client_arrive_(cg_client *c, const cg_msg_ *m) {
    c->version = m->version;
    c->mark = m->mark;
    c->piece = 0;
    c->flags = (c->flags & ~(uint32_t)CG_CLIENT_PARTIAL_) | CG_CLIENT_HAS_MODEL_;
    return CG_OK;
}
static cg_status cg_client_update_(cg_client *c, const cg_msg_ *m) {
    cg_status s;
    if (!(c->flags & CG_CLIENT_HAS_MODEL_) || c->flags & CG_CLIENT_PARTIAL_ || m->version != c->version + 1 ||
        m->number != c->mark)
        return CG_E_MISMATCH;
    s = cg_decode(NULL, m->payload, m->payload_len, -1.0f, 1.0f, c->model, c->desc.ef.n);
    return s == CG_OK ? cg_client_arrive_(c, m) : s;
}
static cg_status cg_client_touched_(cg_client *c, const cg_msg_ *m) {
    const size_t n = c->desc.ef.n, count = (size_t)m->number;
    const uint8_t *index = m->payload + 8, *value;
    if (m->number > CG_TOUCHED_PIECE_ || m->payload_len != 8 + 8 * count) return CG_E_CORRUPT;
    if (!(c->flags & CG_CLIENT_HAS_MODEL_) || cg_get64_(m->payload) != c->mark) return CG_E_MISMATCH;
    value = index + 4 * count;
    for (size_t i = 0; i < count; i++)
        if (cg_get32_(index + 4 * i) >= n || (i && cg_get32_(index + 4 * i) <= cg_get32_(index + 4 * i - 4)) ||
            !cg_is_finite_(cg_as_float_(cg_get32_(value + 4 * i))))
            return CG_E_CORRUPT;
    for (size_t i = 0; i < count; i++) c->model[cg_get32_(index + 4 * i)] = cg_as_float_(cg_get32_(value + 4 * i));
    if (!m->status) return cg_client_arrive_(c, m);
    c->flags |= CG_CLIENT_PARTIAL_; /* the same message from its beginning mends it, and so does a dense model */
    return CG_OK;
}
static cg_status cg_client_dense_(cg_client *c, const cg_msg_ *m) {
    const size_t n = c->desc.ef.n, first = (size_t)m->number;
    cg_status s;
    cg_info info;
    if (m->number >= n ||
        (m->number && (m->number != c->piece || m->version != c->target || m->mark != c->target_mark)))
        return CG_E_MISMATCH;
    s = cg_inspect(m->payload, m->payload_len, &info);
    if (s != CG_OK) return s;
    if (info.n != cg_min_(CG_DENSE_PIECE_, n - first)) return CG_E_MISMATCH;
    c->flags |= CG_CLIENT_PARTIAL_;
    s = cg_decode(NULL, m->payload, m->payload_len, 1.0f, 0.0f, c->model + first, (size_t)info.n);
    if (s != CG_OK) return s;
    c->piece = m->number + info.n;
    c->target = m->version;
    c->target_mark = m->mark;
    return c->piece == n ? cg_client_arrive_(c, m) : CG_OK;
}
static cg_status cg_client_welcome_(cg_client *c, const cg_msg_ *m, uint32_t *event) {
    cg_status s = CG_OK;
    c->flags &= ~(uint32_t)(CG_CLIENT_LOST_ | CG_CLIENT_ASKED_ | CG_CLIENT_READY_);
    c->piece = 0;
    if (!(c->flags & CG_CLIENT_PENDING_)) c->clock = m->clock;
    else if (m->clock == c->clock) *event = CG_CLIENT_RESEND;
    else if (m->clock < c->clock) { /* the server has come back from a save: the push is of a future that is gone */
        s = cg_client_end_(c, 0, m->clock);
        c->rolled_back++;
    }
    return s;
}
static cg_status cg_client_go_(cg_client *c, const cg_msg_ *m, uint32_t *event) {
    cg_status s = CG_OK;
    if (!(c->flags & CG_CLIENT_HAS_MODEL_) || c->flags & CG_CLIENT_PARTIAL_ || m->version != c->version ||
        m->mark != c->mark || m->clock < c->clock)
        return CG_E_MISMATCH;
    if (c->flags & CG_CLIENT_PENDING_) { /* nobody knows of it any more */
        if (m->clock == c->clock) return CG_E_MISMATCH;
        s = cg_client_end_(c, 0, m->clock);
        c->rolled_back++;
    }
    c->clock = m->clock;
    c->flags |= CG_CLIENT_READY_;
    *event = CG_CLIENT_START;
    return s;
}
CG_API_ cg_status cg_client_feed(cg_client *c, const void *bytes, size_t len, uint32_t *event) {
    uint32_t none;
    cg_status s;
    cg_msg_ m;
    if (!event) event = &none;
    *event = CG_CLIENT_NOTHING;
    if (!c || !c->model) return CG_E_ARG;
    if (!cg_msg_get_(bytes, len, c->job, &m, &s)) {
        if (m.kind == CG_MSG_WELCOME_) s = cg_client_welcome_(c, &m, event);
        else if (c->flags & CG_CLIENT_ASKED_) s = CG_OK; /* it is older than the hello */
        else if (c->flags & CG_CLIENT_LOST_ || m.kind == CG_MSG_ASK_) {
            c->flags = (c->flags & ~(uint32_t)CG_CLIENT_READY_) | CG_CLIENT_LOST_;
            *event = CG_CLIENT_HELLO;
        } else if (m.kind == CG_MSG_VERDICT_) s = cg_client_verdict_(c, &m);
        else if (m.kind == CG_MSG_UPDATE_) s = cg_client_update_(c, &m);
        else if (m.kind == CG_MSG_TOUCHED_) s = cg_client_touched_(c, &m);
        else if (m.kind == CG_MSG_DENSE_) s = cg_client_dense_(c, &m);
        else if (m.kind == CG_MSG_GO_) s = cg_client_go_(c, &m, event);
        else s = CG_E_CORRUPT;
    }
    if (s != CG_OK && !(c->flags & (CG_CLIENT_READY_ | CG_CLIENT_ASKED_))) {
        c->flags |= CG_CLIENT_LOST_;
        *event = CG_CLIENT_HELLO;
    }
    return s;
}
