/* opening: the first round, in which ranks find out whether they are about to do the same

   Offers   cg_record_put_, cg_record_is_whole_, cg_records_check_, hashes of operators and descriptions
   Needs    ranks, routes
   Touches  ex->opening, ex->mem.sizes, ex->plan.root; ex->status where a rank differs
   Every rank sends a record of 64 bytes: magic, status, n, hash of the description, hash of the tag, bytes of its
   packets, weight, score, scale, sender and a hash of all that. Little-endian, at offsets 0, 4, 8, 16, 24, 32, 40, 44,
   48, 52 and 56. */

#define CG_RECORD_MAGIC_ 0x32786763u    /* "cgx2" */
#define CG_RECORD_MAGIC_01_ 0x31786763u /* "cgx1", of compgrad 0.1: as cgx2, but for a zero in place of the rank */
#define CG_FAILURE_MAGIC_ 0x6f6e6763u   /* "cgno" */
#define CG_REFERENCE_MAGIC_ 0x66726763u /* "cgrf" */

/* All fields of a stage but its value. */
static uint64_t cg_stage_bits_(const cg_stage *s) {
    return (uint64_t)s->id | (uint64_t)s->flags << 8 | (uint64_t)s->arg << 16 | (uint64_t)s->size << 32;
}
static uint64_t cg_hash_stage_(uint64_t h, const cg_stage *s) {
    h = cg_mix64_(h ^ cg_stage_bits_(s));
    return cg_mix64_(h + cg_as_bits_(s->value) + CG_GOLDEN_);
}
static uint64_t cg_hash_op_(uint64_t h, const cg_op *op) {
    h = cg_hash_stage_(h, &op->sample);
    h = cg_hash_stage_(h, &op->transform);
    h = cg_hash_stage_(h, &op->select);
    h = cg_hash_stage_(h, &op->quantize);
    h = cg_hash_stage_(h, &op->code);
    h = cg_hash_stage_(h, &op->clip);
    return cg_mix64_(h ^ op->k);
}
static uint64_t cg_hash_seconds_(double seconds) {
    uint64_t bits;
    memcpy(&bits, &seconds, sizeof bits);
    return cg_mix64_(bits);
}
/* Whatever of the description must be the same on all ranks, beside n and the tag. */
static uint64_t cg_hash_desc_(const cg_ex_ *ex) {
    const cg_exchange_desc *d = &ex->desc;
    const uint32_t flags_in_common = CG_AGREE_SCALES | CG_CONFIRM | CG_MAY_ABSTAIN | CG_CORRELATED | CG_TOGETHER;
    uint64_t h = cg_hash_op_((uint64_t)ex->transport.size, &d->op);
    h = cg_hash_op_(h, cg_has_back_(ex) ? d->back : &d->op);
    h = cg_mix64_(h ^
        ((uint64_t)ex->plan.route | (uint64_t)d->fold << 8 | (uint64_t)(d->flags & flags_in_common) << 16 |
            (uint64_t)(d->weight != 0.0f) << 24 | (uint64_t)(uint32_t)d->leader << 32));
    /* how floats are summed: all ranks must exchange the same messages */
    if (cg_route_has_(ex, CG_ROUTE_ALLREDUCES_) && ex->transport.size > 1)
        h = cg_mix64_(h ^ cg_sum_kind_(ex, (size_t)ex->plan.transformed_n) ^ cg_mix64_(d->sum) ^
            cg_hash_seconds_(d->alpha) ^ cg_mix64_(cg_hash_seconds_(d->beta)));
    if (ex->plan.segments_hash) h = cg_mix64_(h ^ ex->plan.segments_hash);
    if (d->common) h = cg_mix64_(h ^ d->common);
    for (size_t r = 0; d->bounds && r <= cg_ranks_(ex); r++) h = cg_mix64_(h ^ d->bounds[r]);
    if (d->fold_limit != 0.0f) h = cg_mix64_(h + cg_as_bits_(d->fold_limit));
    return cg_mix64_(h ^ ((uint64_t)cg_has_back_(ex) | (uint64_t)ex->plan.exact << 1));
}
/* What of the tag must be the same on all ranks. */
static uint64_t cg_hash_tag_(const cg_tag *tag) {
    uint64_t h = cg_mix64_(tag->seed + CG_GOLDEN_);
    h = cg_mix64_(h ^ (tag->step + 2 * CG_GOLDEN_));
    return cg_mix64_(h ^ (tag->tensor + 3 * CG_GOLDEN_));
}
/* bytes: a multiple of 8. */
static uint64_t cg_hash_bytes_(const uint8_t *p, size_t bytes) {
    uint64_t h = bytes;
    for (size_t i = 0; i < bytes; i += 8) h = cg_mix64_(h + cg_get64_(p + i) + CG_GOLDEN_);
    return h;
}
/* Who sends a record, and in which round of a call: the rank, and 2^31 in a second one. */
static uint32_t cg_record_sender_(const cg_ex_ *ex, int rank) {
    return (uint32_t)rank | (ex->desc.flags & CG_SECOND_ROUND_ ? 0x80000000u : 0);
}
/* Writes ex->opening.record. bytes: of own.packets; scale: the only one to be agreed on, or 0. */
static void cg_record_put_(cg_ex_ *ex, size_t bytes, float scale) {
    uint8_t *r = ex->opening.record;
    memset(r, 0, CG_RECORD_BYTES_);
    cg_put32_(r, CG_RECORD_MAGIC_);
    cg_put32_(r + 4, (uint32_t)ex->status);
    cg_put64_(r + 8, ex->n);
    cg_put64_(r + 16, cg_hash_desc_(ex));
    cg_put64_(r + 24, cg_hash_tag_(&ex->desc.tag));
    cg_put64_(r + 32, bytes);
    cg_put32_(r + 40, cg_as_bits_(ex->desc.weight != 0.0f && ex->status == CG_OK ? ex->desc.weight : 1.0f));
    cg_put32_(r + 44, cg_as_bits_(ex->status == CG_OK ? ex->desc.score : 0.0f));
    cg_put32_(r + 48, cg_as_bits_(scale));
    cg_put32_(r + 52, cg_record_sender_(ex, ex->transport.rank));
    cg_put64_(r + 56, cg_hash_bytes_(r, 56));
}
/* Has it arrived as that rank sent it in this round? Records of other versions have no rank. */
static int cg_record_is_whole_(const cg_ex_ *ex, const uint8_t *r, int rank) {
    return cg_get64_(r + 56) == cg_hash_bytes_(r, 56) &&
        (cg_get32_(r) != CG_RECORD_MAGIC_ || cg_get32_(r + 52) == cg_record_sender_(ex, rank));
}
/* Compares a record that is whole with this rank's. max_bytes: the most that packets can have. */
static void cg_record_check_(cg_ex_ *ex, const uint8_t *r, int rank, uint64_t max_bytes) {
    const uint8_t *mine = ex->opening.record;
    const uint32_t status = cg_get32_(r + 4);
    if (cg_get32_(r) == CG_RECORD_MAGIC_01_)
        cg_ex_fail_(ex, CG_E_VERSION, rank,
            "it speaks cgx1, the exchange of compgrad 0.1, and this rank cgx2: give all ranks the same version");
    else if (cg_get32_(r) != CG_RECORD_MAGIC_)
        cg_ex_fail_(ex, CG_E_VERSION, rank,
            "it speaks another version of the exchange, and this rank cgx2: give all ranks the same version");
    else if (status != CG_OK) cg_ex_fail_(ex, CG_E_PEER, rank, cg_status_str((cg_status)status));
    else if (cg_get64_(r + 8) != cg_get64_(mine + 8)) cg_ex_fail_(ex, CG_E_MISMATCH, rank, "it has another n");
    else if (cg_get64_(r + 24) != cg_get64_(mine + 24))
        cg_ex_fail_(ex, CG_E_MISMATCH, rank, "it has another seed, step or tensor");
    else if (cg_get64_(r + 16) != cg_get64_(mine + 16))
        cg_ex_fail_(ex, CG_E_MISMATCH, rank,
            "it has another operator, route, fold, leader, flag, common state or number of ranks, or only one of you "
            "has weights");
    else if (cg_get64_(r + 32) > max_bytes || (ex->plan.op_len_fixed && cg_get64_(r + 32) != cg_get64_(mine + 32)) ||
        !(cg_as_float_(cg_get32_(r + 40)) > 0.0f) || !cg_is_finite_(cg_as_float_(cg_get32_(r + 40))) ||
        !cg_is_finite_(cg_as_float_(cg_get32_(r + 44))) || !cg_is_finite_(cg_as_float_(cg_get32_(r + 48))))
        cg_ex_fail_(ex, CG_E_CORRUPT, rank, "its opening record says what cannot be");
}
/* Checks opening.records, in rank order; which of two that differ is blamed depends on the rank. Returns 1 if this rank
   has failed before, or a record that is whole says that the exchange is impossible: all ranks see that, and stop.
   Returns 0 to go on, also where a record did not arrive whole: the others may not know that. ex has failed then, and
   the record is replaced by this rank's own, so that lengths which follow from n, weights and scales are as good as
   any. Sets weight_sum, result_factor and, by score, the leader. */
static int cg_records_check_(cg_ex_ *ex) {
    const size_t size = cg_ranks_(ex);
    uint64_t max_bytes;
    float best_score = 0.0f;
    if (ex->status != CG_OK) return 1;
    max_bytes = cg_mul_sat_((uint64_t)ex->plan.stripes, ex->plan.packet_room);
    for (size_t q = 0; q < size; q++) {
        const uint8_t *r = ex->opening.records + q * CG_RECORD_BYTES_;
        if (cg_record_is_whole_(ex, r, (int)q)) cg_record_check_(ex, r, (int)q, max_bytes);
        if (ex->status != CG_OK) return 1;
    }
    ex->opening.weight_sum = 0.0;
    for (size_t q = 0; q < size; q++) {
        uint8_t *r = ex->opening.records + q * CG_RECORD_BYTES_;
        float score;
        if (!cg_record_is_whole_(ex, r, (int)q)) {
            cg_ex_fail_(ex, CG_E_CORRUPT, (int)q, "its opening record did not arrive intact");
            memcpy(r, ex->opening.record, CG_RECORD_BYTES_);
        }
        ex->opening.weight_sum += (double)cg_as_float_(cg_get32_(r + 40));
        score = cg_as_float_(cg_get32_(r + 44));
        if (ex->desc.leader == CG_LEADER_BY_SCORE && (q == 0 || score > best_score)) {
            best_score = score;
            ex->plan.root = (int)q;
        }
    }
    ex->opening.result_factor = ex->plan.exact && cg_fold_has_(ex, CG_FOLD_DIVIDES_) ? (float)(1.0 / (double)size)
                                                                                     : 1.0f;
    if (cg_hops_reencode_(ex)) ex->opening.result_factor = (float)(1.0 / cg_divisor_(ex));
    return 0;
}
/* mem.sizes = bytes of every rank's packets, from the records. */
static void cg_record_sizes_(cg_ex_ *ex) {
    for (size_t q = 0; q < cg_ranks_(ex); q++)
        ex->mem.sizes[q] = cg_get64_(ex->opening.records + q * CG_RECORD_BYTES_ + 32);
}
