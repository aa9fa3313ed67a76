/* pair: AD-PSGD, in which two nodes average their models when one of them asks

   Offers   the public cg_pair_*
   Needs    gossip (cg_gossip_hash_), local_save; base, seals of core
   Touches  the state, the caller's buffer
   i asks with its model; j answers with C(d), d = x_i - x_j, and adds D/2; i subtracts D/2 when the answer comes. Only
   differences change models, so that gradients and other averages may come between question and answer, and the sum of
   all models changes by gradients alone, whatever the operator loses. Nobody waits for anybody: there is no
   deadlock. An answer is kept until the next question of that node, so that a question that comes twice is answered
   twice the same.

   A message: byte 0 "cgap"  4 version  8 what (1 question, 2 answer)  12 from  16 to  20 zeros  24 serial  32 setup
   40 length of the packet  48 checksum of these 64 bytes  64 the packet: the model dense, or C(d)
   A saved state: byte 0 "cgps"  4 version  8 rank  12 zeros  16 n  24 setup  32 serial  40 zeros  48 checksum  64 x */

enum { CG_PAIR_HEADER_ = 64, CG_PAIR_SEAL_ = 48, CG_PAIR_QUESTION_ = 1, CG_PAIR_ANSWER_ = 2 };
#define CG_PAIR_MAGIC_ 0x70616763u /* "cgap" */
#define CG_PAIR_SAVED_ 0x73706763u /* "cgps" */

static uint64_t cg_pair_plan_(cg_pair *p, const cg_pair_desc *d, uint8_t *mem) {
    const cg_op dense = cg_dense();
    const size_t whole = cg_bound(&dense, d->n), bound = cg_bound_with(&d->op, d->side, d->n);
    const uint64_t vector = cg_mul_sat_(4, d->n);
    uint64_t used = 0;
    if (d->nodes < 1 || d->nodes > CG_GRAPH_MOST_ || d->rank < 0 || d->rank >= d->nodes || !whole || !bound)
        return CG_TOO_LARGE_;
    p->answer_cap = bound + CG_PAIR_HEADER_;
    p->scratch_bytes = cg_scratch(&d->op, d->n);
    p->x = (float *)cg_sync_take_(mem, &used, vector);
    p->work = (float *)cg_sync_take_(mem, &used, vector);
    p->answer = (cg_pair_answer *)cg_sync_take_(mem, &used, cg_mul_sat_((uint64_t)d->nodes, sizeof *p->answer));
    p->question = (uint8_t *)cg_sync_take_(mem, &used, cg_add_sat_(whole, CG_PAIR_HEADER_));
    p->scratch = (uint8_t *)cg_sync_take_(mem, &used, p->scratch_bytes);
    for (int k = 0; k < d->nodes; k++) {
        uint8_t *room = k == d->rank ? NULL : (uint8_t *)cg_sync_take_(mem, &used, p->answer_cap);
        if (mem) p->answer[k].bytes = room;
    }
    return cg_add_sat_(used, 64);
}
CG_API_ size_t cg_pair_memory(const cg_pair_desc *desc) {
    cg_pair p;
    memset(&p, 0, sizeof p);
    return desc ? cg_size_or_zero_(cg_pair_plan_(&p, desc, NULL)) : 0;
}
static cg_tag cg_pair_tag_(const cg_pair *p, int rank, uint64_t serial) {
    cg_tag tag = { 0, 0, 0, 0 };
    tag.seed = cg_mix64_(p->desc.seed + CG_GOLDEN_ * ((uint64_t)rank + 1));
    tag.step = serial;
    tag.rank = (uint32_t)rank;
    return tag;
}
CG_API_ cg_status cg_pair_init(cg_pair *pair, const cg_pair_desc *desc, const float *x0, void *mem, size_t bytes) {
    char text[160];
    uint8_t *base;
    size_t len = 0;
    uint64_t need;
    cg_tag tag;
    cg_fenv_ env;
    cg_status s;
    if (!pair) return CG_E_ARG;
    memset(pair, 0, sizeof *pair);
    if (!desc || (!x0 && desc->n) || !cg_pair_memory(desc)) return CG_E_ARG;
    need = cg_pair_memory(desc);
    if (!mem || bytes < need) return CG_E_MEMORY;
    if (desc->n && cg_absmax_bits_(x0, desc->n) >= CG_INF_BITS_) return CG_E_NONFINITE;
    base = (uint8_t *)mem + (64 - ((uintptr_t)mem & 63)) % 64;
    memset(base, 0, (size_t)need - 64);
    cg_pair_plan_(pair, desc, base);
    memcpy(pair->x, x0 ? x0 : pair->work, 4 * desc->n);
    pair->desc = *desc;
    if (desc->nodes > 1) { /* what every answer would refuse */
        tag = cg_pair_tag_(pair, desc->rank, 0);
        env = cg_fenv_enter_();
        s = cg_compress_with(&desc->op, &tag, desc->side, pair->x, desc->n, pair->answer[desc->rank ? 0 : 1].bytes,
            pair->answer_cap, &len, pair->scratch, pair->scratch_bytes);
        cg_fenv_leave_(env);
        if (s != CG_OK) {
            memset(pair, 0, sizeof *pair);
            return s;
        }
    }
    pair->asking = -1;
    len = 0;
    if (cg_op_print(&desc->op, text, sizeof text) == CG_OK) len = cg_text_len_(text);
    pair->setup = cg_gossip_hash_(cg_mix64_(desc->n ^ desc->seed * CG_GOLDEN_) + (uint64_t)desc->nodes, text, len);
    return CG_OK;
}
CG_API_ const float *cg_pair_model(const cg_pair *pair) { return pair ? pair->x : NULL; }
CG_API_ cg_status cg_pair_gradient(cg_pair *pair, const float *grad, float rate) {
    cg_fenv_ env;
    cg_status s = CG_OK;
    if (!pair || (!grad && pair->desc.n) || !cg_is_finite_(rate)) return CG_E_ARG;
    if (!pair->setup) return CG_E_STATE;
    env = cg_fenv_enter_();
    memcpy(pair->work, pair->x, 4 * pair->desc.n);
    if (pair->desc.n) cg_axpby_(grad, pair->desc.n, -rate, 1.0f, pair->work);
    if (pair->desc.n && cg_absmax_bits_(pair->work, pair->desc.n) >= CG_INF_BITS_) s = CG_E_NONFINITE;
    else memcpy(pair->x, pair->work, 4 * pair->desc.n);
    cg_fenv_leave_(env);
    return s;
}
static void cg_pair_header_put_(const cg_pair *p, uint8_t *b, uint32_t what, int to, uint64_t serial, size_t len) {
    memset(b, 0, CG_PAIR_HEADER_);
    cg_put32_(b, CG_PAIR_MAGIC_);
    cg_put32_(b + 4, 1);
    cg_put32_(b + 8, what);
    cg_put32_(b + 12, (uint32_t)p->desc.rank);
    cg_put32_(b + 16, (uint32_t)to);
    cg_put64_(b + 24, serial);
    cg_put64_(b + 32, p->setup);
    cg_put64_(b + 40, len);
    cg_seal_put_(b, CG_PAIR_HEADER_, CG_PAIR_SEAL_);
}
CG_API_ cg_status cg_pair_ask(cg_pair *pair, uint64_t now, int to) {
    const cg_op dense = cg_dense();
    cg_tag tag;
    cg_status s;
    size_t len;
    if (!pair || !pair->setup) return pair ? CG_E_STATE : CG_E_ARG;
    if (to < 0 || to >= pair->desc.nodes || to == pair->desc.rank) return CG_E_ARG;
    if (pair->asking >= 0) return CG_E_STATE;
    tag = cg_pair_tag_(pair, pair->desc.rank, pair->serial + 1);
    s = cg_compress(&dense, &tag, pair->x, pair->desc.n, pair->question + CG_PAIR_HEADER_,
        cg_bound(&dense, pair->desc.n), &len, NULL, 0);
    if (s != CG_OK) return s;
    pair->serial++;
    cg_pair_header_put_(pair, pair->question, CG_PAIR_QUESTION_, to, pair->serial, len);
    pair->question_len = CG_PAIR_HEADER_ + len;
    pair->asking = to;
    pair->asked = now;
    pair->question_due = 1;
    return CG_OK;
}
CG_API_ void cg_pair_forget(cg_pair *pair) {
    if (pair) pair->asking = -1, pair->question_due = 0;
}
/* x := x + alpha D. Nothing has changed if that is not finite, or the packet not right. */
static cg_status cg_pair_move_(cg_pair *p, const uint8_t *packet, size_t len, float alpha) {
    const size_t n = p->desc.n;
    cg_status s;
    memcpy(p->work, p->x, 4 * n);
    s = cg_decode(p->desc.side, packet, len, alpha, 1.0f, p->work, n);
    if (s == CG_OK && n && cg_absmax_bits_(p->work, n) >= CG_INF_BITS_) s = CG_E_NONFINITE;
    if (s == CG_OK) memcpy(p->x, p->work, 4 * n);
    return s;
}
static cg_status cg_pair_answer_(cg_pair *p, int from, uint64_t serial, const uint8_t *packet, size_t len) {
    cg_pair_answer *a = &p->answer[from];
    const cg_tag tag = cg_pair_tag_(p, p->desc.rank, cg_mix64_(serial) + (uint64_t)from);
    const size_t n = p->desc.n;
    size_t made;
    cg_status s;
    if (serial == a->serial && a->len) { /* it has not come: the same again */
        a->due = 1;
        return CG_E_STATE;
    }
    if (serial <= a->serial) return CG_E_STATE;
    s = cg_decode(NULL, packet, len, 1.0f, 0.0f, p->work, n);
    if (s != CG_OK) return s;
    if (n) cg_axpby_(p->x, n, -1.0f, 1.0f, p->work);
    a->len = 0; /* the answer before is not asked for any more */
    a->due = 0;
    s = cg_compress_with(&p->desc.op, &tag, p->desc.side, p->work, n, a->bytes + CG_PAIR_HEADER_,
        p->answer_cap - CG_PAIR_HEADER_, &made, p->scratch, p->scratch_bytes);
    if (s == CG_OK) s = cg_pair_move_(p, a->bytes + CG_PAIR_HEADER_, made, 0.5f);
    if (s != CG_OK) return s;
    cg_pair_header_put_(p, a->bytes, CG_PAIR_ANSWER_, from, serial, made);
    a->serial = serial;
    a->len = CG_PAIR_HEADER_ + made;
    a->due = 1;
    return CG_OK;
}
static cg_status cg_pair_feed_(cg_pair *p, int from, const uint8_t *b, size_t len) {
    const uint8_t *packet = b + CG_PAIR_HEADER_;
    uint64_t serial;
    cg_info info;
    cg_tag tag;
    cg_status s;
    if (len < CG_PAIR_HEADER_ || cg_get32_(b) != CG_PAIR_MAGIC_ ||
        !cg_seal_is_intact_(b, CG_PAIR_HEADER_, CG_PAIR_SEAL_))
        return CG_E_CORRUPT;
    if (cg_get32_(b + 4) != 1) return CG_E_VERSION;
    if (cg_get64_(b + 32) != p->setup || cg_get32_(b + 12) != (uint32_t)from ||
        cg_get32_(b + 16) != (uint32_t)p->desc.rank)
        return CG_E_MISMATCH;
    if (cg_get32_(b + 20) || cg_get64_(b + 40) != len - CG_PAIR_HEADER_) return CG_E_CORRUPT;
    serial = cg_get64_(b + 24);
    len -= CG_PAIR_HEADER_;
    s = cg_inspect(packet, len, &info);
    if (s != CG_OK) return s;
    switch (cg_get32_(b + 8)) {
    case CG_PAIR_QUESTION_:
        tag = cg_pair_tag_(p, from, serial);
        if (info.tag.seed != tag.seed || info.tag.step != tag.step || info.n != p->desc.n) return CG_E_MISMATCH;
        return cg_pair_answer_(p, from, serial, packet, len);
    case CG_PAIR_ANSWER_:
        if (p->asking != from || serial != p->serial) return CG_E_STATE;
        tag = cg_pair_tag_(p, from, cg_mix64_(serial) + (uint64_t)p->desc.rank);
        if (info.tag.seed != tag.seed || info.tag.step != tag.step || info.n != p->desc.n) return CG_E_MISMATCH;
        s = cg_pair_move_(p, packet, len, -0.5f);
        if (s != CG_OK) return s;
        cg_pair_forget(p);
        p->met++;
        return CG_OK;
    default: return CG_E_CORRUPT;
    }
}
CG_API_ cg_status cg_pair_feed(cg_pair *pair, uint64_t now, int from, const void *bytes, size_t len) {
    cg_fenv_ env;
    cg_status s;
    (void)now;
    if (!pair || !bytes) return CG_E_ARG;
    if (!pair->setup) return CG_E_STATE;
    if (from < 0 || from >= pair->desc.nodes || from == pair->desc.rank) return CG_E_ARG;
    env = cg_fenv_enter_();
    s = cg_pair_feed_(pair, from, (const uint8_t *)bytes, len);
    cg_fenv_leave_(env);
    pair->refused += s != CG_OK;
    return s;
}
CG_API_ int cg_pair_next(cg_pair *pair, uint64_t now, cg_envelope *envelope) {
    if (!pair || !envelope || !pair->setup) return 0;
    if (pair->asking >= 0 && pair->desc.patience && now - pair->asked >= pair->desc.patience) {
        pair->asked = now;
        pair->question_due = 1;
    }
    if (pair->question_due) {
        pair->question_due = 0;
        envelope->to = pair->asking;
        envelope->bytes = pair->question;
        envelope->len = pair->question_len;
        return 1;
    }
    for (int k = 0; k < pair->desc.nodes; k++)
        if (pair->answer[k].due) {
            pair->answer[k].due = 0;
            envelope->to = k;
            envelope->bytes = pair->answer[k].bytes;
            envelope->len = pair->answer[k].len;
            return 1;
        }
    return 0;
}

/* ---- saving: the model and the serial; answers that are still to be asked for again are lost ---- */

CG_API_ size_t cg_pair_save_bytes(const cg_pair *pair) {
    return pair && pair->setup ? cg_size_or_zero_(cg_add_sat_(CG_PAIR_HEADER_, cg_mul_sat_(4, pair->desc.n))) : 0;
}
CG_API_ cg_status cg_pair_save(const cg_pair *pair, void *buf, size_t cap, size_t *len) {
    uint8_t *const b = (uint8_t *)buf;
    const size_t bytes = cg_pair_save_bytes(pair);
    if (len) *len = 0;
    if (!pair || !buf || !len) return CG_E_ARG;
    if (!pair->setup) return CG_E_STATE;
    if (!bytes || cap < bytes) return CG_E_CAPACITY;
    memset(b, 0, CG_PAIR_HEADER_);
    cg_put32_(b, CG_PAIR_SAVED_);
    cg_put32_(b + 4, 1);
    cg_put32_(b + 8, (uint32_t)pair->desc.rank);
    cg_put64_(b + 16, pair->desc.n);
    cg_put64_(b + 24, pair->setup);
    cg_put64_(b + 32, pair->serial);
    cg_sync_put_floats_(b + CG_PAIR_HEADER_, pair->x, pair->desc.n);
    cg_seal_put_(b, bytes, CG_PAIR_SEAL_);
    *len = bytes;
    return CG_OK;
}
CG_API_ cg_status cg_pair_load(cg_pair *pair, const void *buf, size_t len) {
    const uint8_t *b = (const uint8_t *)buf;
    if (!pair || !buf) return CG_E_ARG;
    if (!pair->setup) return CG_E_STATE;
    if (len < CG_PAIR_HEADER_ || len % 4 || cg_get32_(b) != CG_PAIR_SAVED_ ||
        !cg_seal_is_intact_(b, len, CG_PAIR_SEAL_))
        return CG_E_CORRUPT;
    if (cg_get32_(b + 4) != 1) return CG_E_VERSION;
    if (cg_get32_(b + 8) != (uint32_t)pair->desc.rank || cg_get64_(b + 16) != pair->desc.n ||
        cg_get64_(b + 24) != pair->setup)
        return CG_E_MISMATCH;
    if (len != cg_pair_save_bytes(pair) || cg_get32_(b + 12) || cg_get64_(b + 40)) return CG_E_CORRUPT;
    if (!cg_sync_finite_(b + CG_PAIR_HEADER_, pair->desc.n) || cg_get64_(b + 32) >> 63) return CG_E_CORRUPT;
    cg_sync_get_floats_(b + CG_PAIR_HEADER_, pair->x, pair->desc.n);
    cg_pair_forget(pair);
    /* the saved state may be older than what others have heard: leave room for 2^32 questions since */
    if (pair->serial < cg_get64_(b + 32)) pair->serial = cg_get64_(b + 32);
    pair->serial = (pair->serial | 0xffffffffu) + 1;
    return CG_OK;
}
