/* ---- >>opening: what everybody knows of everybody before data moves ---- */

#define CG_RECORD_MAGIC_ 0x31786763u  /* "cgx1" */
#define CG_FAILURE_MAGIC_ 0x6f6e6763u /* "cgno" */

static uint64_t cg_hash_stage_(uint64_t h, const cg_stage *s) {
    h = cg_mix64_(h ^ ((uint64_t)s->id | (uint64_t)s->flags << 8 | (uint64_t)s->arg << 16 | (uint64_t)s->size << 32));
    return cg_mix64_(h + cg_as_bits_(s->value) + CG_GOLDEN_);
}
static uint64_t cg_hash_op_(uint64_t h, const cg_op *op) {
    for (unsigned slot = 0; slot < CG_SLOT_COUNT_; slot++) h = cg_hash_stage_(h, cg_op_stage_const_(op, slot));
    return cg_mix64_(h ^ op->k);
}
static uint64_t cg_hash_desc_(const cg_ex_ *x) {
    const cg_exchange_desc *d = &x->desc;
    uint64_t h = cg_hash_op_((uint64_t)x->transport.size, &d->op);
    h = cg_hash_op_(h, cg_has_back_(x) ? d->back : &d->op);
    h = cg_mix64_(h ^
        ((uint64_t)x->route | (uint64_t)d->fold << 8 | (uint64_t)(d->flags & CG_AGREE_SCALES) << 16 |
            (uint64_t)(d->weight != 0.0f) << 24 | (uint64_t)(uint32_t)d->leader << 32));
    return cg_mix64_(h ^ ((uint64_t)cg_has_back_(x) | (uint64_t)x->exact << 1));
}
static uint64_t cg_hash_bytes_(const uint8_t *p, size_t bytes) { /* whole words of 8 */
    uint64_t h = bytes;
    for (size_t i = 0; i < bytes; i += 8) h = cg_mix64_(h + cg_get64_(p + i) + CG_GOLDEN_);
    return h;
}
static void cg_record_put_(cg_ex_ *x, size_t bytes, float scale) {
    uint8_t *r = x->record;
    cg_tag tag = x->desc.tag;
    memset(r, 0, CG_RECORD_BYTES_);
    cg_put32_(r, CG_RECORD_MAGIC_);
    cg_put32_(r + 4, (uint32_t)x->status);
    cg_put64_(r + 8, x->n);
    cg_put64_(r + 16, cg_hash_desc_(x));
    cg_put64_(r + 24, cg_shared_key_(&tag));
    cg_put64_(r + 32, bytes);
    cg_put32_(r + 40, cg_as_bits_(x->desc.weight != 0.0f && x->status == CG_OK ? x->desc.weight : 1.0f));
    cg_put32_(r + 44, cg_as_bits_(x->status == CG_OK ? x->desc.score : 0.0f));
    cg_put32_(r + 48, cg_as_bits_(scale));
    cg_put64_(r + 56, cg_hash_bytes_(r, 56));
}
static void cg_record_check_(cg_ex_ *x, const uint8_t *r, int rank, uint64_t longest) {
    const uint8_t *mine = x->record;
    const uint32_t status = cg_get32_(r + 4);
    if (cg_get32_(r) != CG_RECORD_MAGIC_ || cg_get64_(r + 56) != cg_hash_bytes_(r, 56))
        cg_ex_fail_(x, CG_E_CORRUPT, rank, "its opening record did not arrive intact");
    else if (status != CG_OK) cg_ex_fail_(x, CG_E_PEER, rank, cg_status_str((cg_status)status));
    else if (cg_get64_(r + 8) != cg_get64_(mine + 8)) cg_ex_fail_(x, CG_E_MISMATCH, rank, "it has another n");
    else if (cg_get64_(r + 24) != cg_get64_(mine + 24))
        cg_ex_fail_(x, CG_E_MISMATCH, rank, "it has another seed, step or tensor");
    else if (cg_get64_(r + 16) != cg_get64_(mine + 16))
        cg_ex_fail_(x, CG_E_MISMATCH, rank,
            "it has another operator, route, fold, leader, flag or number of ranks, or only one of you has weights");
    else if (cg_get64_(r + 32) > longest || !(cg_as_float_(cg_get32_(r + 40)) > 0.0f) ||
        !cg_is_finite_(cg_as_float_(cg_get32_(r + 40))) || !cg_is_finite_(cg_as_float_(cg_get32_(r + 44))) ||
        !cg_is_finite_(cg_as_float_(cg_get32_(r + 48))))
        cg_ex_fail_(x, CG_E_CORRUPT, rank, "its opening record says what cannot be");
}
/* Every rank comes to the same verdict: none, or all, go on. */
static void cg_records_check_(cg_ex_ *x) {
    const size_t size = cg_ranks_(x);
    uint64_t longest;
    float best = 0.0f;
    if (x->status != CG_OK) return;
    longest = cg_mul_sat_((uint64_t)x->parts, cg_packet_room_(x));
    x->weights = 0.0;
    for (size_t q = 0; q < size; q++) {
        const uint8_t *r = x->records + q * CG_RECORD_BYTES_;
        float score;
        cg_record_check_(x, r, (int)q, longest);
        if (x->status != CG_OK) return;
        x->sizes[q] = cg_get64_(r + 32);
        x->weights += (double)cg_as_float_(cg_get32_(r + 40));
        score = cg_as_float_(cg_get32_(r + 44));
        if (x->desc.leader == CG_LEADER_BY_SCORE && (q == 0 || score > best)) {
            best = score;
            x->root = (int)q;
        }
    }
    x->over = x->exact && x->desc.fold != CG_FOLD_SUM ? (float)(1.0 / (double)size) : 1.0f;
    if (cg_hops_reencode_(x)) x->over = x->desc.fold == CG_FOLD_SUM ? 1.0f : (float)(1.0 / x->weights);
    if (x->desc.fold == CG_FOLD_VOTE) x->over = 1.0f;
}
