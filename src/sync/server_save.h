/* server_save: the state of a server as bytes, the same on every machine, and back

   Offers   the public cg_server_save_bytes, cg_server_save, cg_server_load
   Needs    server
   Touches  the state in a load, once all has been checked
   Little-endian: 128 bytes of header ("cgsv", version 1, n, workers, mode, fold, seed, version, mark, round, accepted,
   late, refused, weight of the round, pushes in it, hash of all behind the header, hash of the header), model, delta,
   the sum or the rows of the round, 40 bytes for each seat. */

#define CG_SERVER_MAGIC_ 0x76736763u /* "cgsv" */
enum { CG_SERVER_HEAD_ = 128, CG_SERVER_SEAT_BYTES_ = 40 };

/* Floats of the round under way. */
static uint64_t cg_server_round_floats_(const cg_server *s, uint64_t arrived) {
    return s->rows ? cg_mul_sat_(arrived, s->desc.n) : s->sum ? s->desc.n : 0;
}
static uint64_t cg_server_bytes_(const cg_server *s, uint64_t arrived) {
    const uint64_t floats = cg_add_sat_(cg_mul_sat_(2, s->desc.n), cg_server_round_floats_(s, arrived));
    return cg_add_sat_(
        CG_SERVER_HEAD_ + (uint64_t)CG_SERVER_SEAT_BYTES_ * (uint64_t)s->desc.workers, cg_mul_sat_(4, floats));
}
CG_API_ size_t cg_server_save_bytes(const cg_server *s) {
    return s && s->model ? cg_size_or_zero_(cg_server_bytes_(s, (uint64_t)s->arrived)) : 0;
}
static uint8_t *cg_server_floats_put_(uint8_t *p, const float *v, uint64_t n) {
    for (uint64_t i = 0; i < n; i++, p += 4) cg_put32_(p, cg_as_bits_(v[i]));
    return p;
}
static const uint8_t *cg_server_floats_get_(const uint8_t *p, float *v, uint64_t n) {
    for (uint64_t i = 0; i < n; i++, p += 4) v[i] = cg_as_float_(cg_get32_(p));
    return p;
}
CG_API_ cg_status cg_server_save(const cg_server *s, void *buf, size_t cap, size_t *len) {
    const size_t bytes = cg_server_save_bytes(s);
    uint8_t *h = (uint8_t *)buf, *p;
    if (!s || !s->model || !buf || !len) return CG_E_ARG;
    *len = 0;
    if (!bytes || cap < bytes) return CG_E_CAPACITY;
    memset(h, 0, CG_SERVER_HEAD_);
    cg_put32_(h, CG_SERVER_MAGIC_);
    cg_put32_(h + 4, 1);
    cg_put64_(h + 8, s->desc.n);
    cg_put32_(h + 16, (uint32_t)s->desc.workers);
    cg_put32_(h + 20, s->desc.mode);
    cg_put64_(h + 24, s->desc.seed);
    cg_put64_(h + 32, s->version);
    cg_put64_(h + 40, s->mark);
    cg_put64_(h + 48, s->round);
    cg_put64_(h + 56, s->accepted);
    cg_put64_(h + 64, s->late);
    cg_put64_(h + 72, s->refused);
    cg_put64_(h + 80, cg_as_bits64_(s->round_weight));
    cg_put32_(h + 88, (uint32_t)s->arrived);
    cg_put32_(h + 92, s->desc.fold);
    p = cg_server_floats_put_(h + CG_SERVER_HEAD_, s->model, s->desc.n);
    p = cg_server_floats_put_(p, s->delta, s->desc.n);
    p = cg_server_floats_put_(p, s->rows ? s->rows : s->sum, cg_server_round_floats_(s, (uint64_t)s->arrived));
    for (int w = 0; w < s->desc.workers; w++, p += CG_SERVER_SEAT_BYTES_) {
        const cg_server_seat *seat = &s->seat[w];
        cg_put32_(p, seat->flags & (CG_SEAT_IN_ROUND_ | CG_SEAT_HAS_LAST_ | CG_SEAT_DRAWN_));
        cg_put32_(p + 4, seat->state);
        cg_put64_(p + 8, seat->clock);
        cg_put64_(p + 16, seat->last_clock);
        cg_put32_(p + 24, seat->last_kind);
        cg_put32_(p + 28, seat->last_status);
        cg_put64_(p + 32, 0);
    }
    cg_put64_(h + 112, cg_chain_bytes_(CG_GOLDEN_, h + CG_SERVER_HEAD_, bytes - CG_SERVER_HEAD_));
    cg_put64_(h + 120, cg_chain_bytes_(CG_GOLDEN_, h, 120));
    *len = bytes;
    return CG_OK;
}
/* Are the seats at p such as a server could have saved, and `arrived` of them in the round? */
static int cg_server_seats_ok_(const cg_server *s, const uint8_t *p, uint64_t round, uint64_t arrived) {
    uint64_t in_round = 0;
    for (int w = 0; w < s->desc.workers; w++, p += CG_SERVER_SEAT_BYTES_) {
        const uint32_t flags = cg_get32_(p);
        if (flags & ~(uint32_t)(CG_SEAT_IN_ROUND_ | CG_SEAT_HAS_LAST_ | CG_SEAT_DRAWN_)) return 0;
        if (cg_get32_(p + 4) > CG_SEAT_GONE_ || cg_get64_(p + 32)) return 0;
        if (cg_server_has_(&s->desc, CG_SERVER_ROUNDS_) && cg_get64_(p + 8) > cg_add_sat_(round, 1)) return 0;
        if (flags & CG_SEAT_HAS_LAST_ && cg_get64_(p + 16) >= cg_get64_(p + 8)) return 0;
        if (cg_get32_(p + 24) > CG_VERDICT_REFUSED) return 0;
        in_round += (flags & CG_SEAT_IN_ROUND_) != 0;
    }
    return in_round == arrived;
}
CG_API_ cg_status cg_server_load(cg_server *s, const void *buf, size_t len) {
    const uint8_t *h = (const uint8_t *)buf, *p;
    uint64_t arrived, floats;
    double weight;
    if (!s || !s->model || !buf) return CG_E_ARG;
    if (len < CG_SERVER_HEAD_ || cg_get32_(h) != CG_SERVER_MAGIC_) return CG_E_CORRUPT;
    if (cg_get64_(h + 120) != cg_chain_bytes_(CG_GOLDEN_, h, 120)) return CG_E_CORRUPT;
    if (cg_get32_(h + 4) != 1) return CG_E_VERSION;
    if (cg_get64_(h + 8) != s->desc.n || cg_get32_(h + 16) != (uint32_t)s->desc.workers ||
        cg_get32_(h + 20) != s->desc.mode || cg_get64_(h + 24) != s->desc.seed || cg_get32_(h + 92) != s->desc.fold)
        return CG_E_MISMATCH;
    arrived = cg_get32_(h + 88);
    weight = cg_as_double_(cg_get64_(h + 80));
    if (arrived > (uint64_t)s->desc.workers || (arrived && !cg_server_has_(&s->desc, CG_SERVER_ROUNDS_)))
        return CG_E_CORRUPT;
    if (!cg_is_finite64_(weight) || weight < 0.0 || (s->sum && (weight > 0.0) != (arrived > 0))) return CG_E_CORRUPT;
    if (len != cg_server_bytes_(s, arrived) || cg_get64_(h + 96) || cg_get64_(h + 104)) return CG_E_CORRUPT;
    if (cg_get64_(h + 112) != cg_chain_bytes_(CG_GOLDEN_, h + CG_SERVER_HEAD_, len - CG_SERVER_HEAD_))
        return CG_E_CORRUPT;
    floats = 2 * (uint64_t)s->desc.n + cg_server_round_floats_(s, arrived);
    for (uint64_t i = 0; i < floats; i++)
        if (!cg_is_finite_(cg_as_float_(cg_get32_(h + CG_SERVER_HEAD_ + 4 * i)))) return CG_E_CORRUPT;
    p = h + CG_SERVER_HEAD_ + 4 * floats;
    if (!cg_server_seats_ok_(s, p, cg_get64_(h + 48), arrived)) return CG_E_CORRUPT;
    for (int w = 0; w < s->desc.workers; w++, p += CG_SERVER_SEAT_BYTES_) {
        cg_server_seat *seat = &s->seat[w];
        memset(seat, 0, sizeof *seat);
        seat->flags = cg_get32_(p);
        seat->state = cg_get32_(p + 4) == CG_SEAT_GONE_ ? CG_SEAT_GONE_ : CG_SEAT_AWAITED_;
        seat->clock = cg_get64_(p + 8);
        seat->last_clock = cg_get64_(p + 16);
        seat->last_kind = cg_get32_(p + 24);
        seat->last_status = cg_get32_(p + 28);
        seat->version = CG_NO_VERSION_;
    }
    p = cg_server_floats_get_(h + CG_SERVER_HEAD_, s->model, s->desc.n);
    p = cg_server_floats_get_(p, s->delta, s->desc.n);
    cg_server_floats_get_(p, s->rows ? s->rows : s->sum, cg_server_round_floats_(s, arrived));
    s->version = cg_get64_(h + 32);
    s->mark = cg_get64_(h + 40);
    s->round = cg_get64_(h + 48);
    s->accepted = cg_get64_(h + 56);
    s->late = cg_get64_(h + 64);
    s->refused = cg_get64_(h + 72);
    s->round_weight = weight;
    s->arrived = (int)arrived;
    s->entry_count = s->entry_first = s->ring_head = 0;
    s->now = s->started = 0; /* the clock begins with the next feed */
    return CG_OK;
}
