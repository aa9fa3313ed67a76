/* local_save: the state of local SGD as bytes, the same on every machine, and back

   Offers   the public cg_local_save_bytes, cg_local_save and cg_local_load
   Needs    local; seals of core
   Touches  the caller's buffer; loading all of the state but its description
   A blob is little-endian. Nothing is loaded before all of it has been checked.

   byte 0 "cglo"  4 version  8 fragments  12 parts (bit 0 velocity)  16 n  24 mark  32 steps  40 zeros  48 checksum of
   everything else (16 bytes)  64 of each fragment: under way (u32), zeros (u32), lands (u64), bytes of its error
   feedback (u64); then anchor, delta and velocity as floats, then the states of error feedback. delta is zeros where
   nothing is under way. */

enum { CG_LOCAL_HEADER_ = 64, CG_LOCAL_ENTRY_ = 24, CG_LOCAL_SEAL_ = 48 };
#define CG_LOCAL_MAGIC_ 0x6f6c6763u /* "cglo" */

static uint64_t cg_local_blob_bytes_(const cg_local *l) {
    const size_t count = cg_local_count_(&l->desc);
    uint64_t bytes = cg_add_sat_(CG_LOCAL_HEADER_, cg_mul_sat_(CG_LOCAL_ENTRY_, count));
    bytes = cg_add_sat_(bytes, cg_mul_sat_(l->velocity ? 12 : 8, l->desc.ef.n));
    for (size_t f = 0; f < count; f++) bytes = cg_add_sat_(bytes, cg_ef_save_bytes(&l->fragment[f].ef));
    return bytes;
}
CG_API_ size_t cg_local_save_bytes(const cg_local *local) {
    return local && local->anchor ? cg_size_or_zero_(cg_local_blob_bytes_(local)) : 0;
}
static uint8_t *cg_sync_put_floats_(uint8_t *p, const float *v, size_t n) {
    for (size_t i = 0; i < n; i++, p += 4) cg_put32_(p, v ? cg_as_bits_(v[i]) : 0u);
    return p;
}
static const uint8_t *cg_sync_get_floats_(const uint8_t *p, float *v, size_t n) {
    for (size_t i = 0; i < n; i++, p += 4) v[i] = cg_as_float_(cg_get32_(p));
    return p;
}
static int cg_sync_finite_(const uint8_t *p, size_t n) {
    for (size_t i = 0; i < n; i++, p += 4)
        if (!cg_is_finite_(cg_as_float_(cg_get32_(p)))) return 0;
    return 1;
}
CG_API_ cg_status cg_local_save(const cg_local *local, void *buf, size_t cap, size_t *len) {
    uint8_t *const start = (uint8_t *)buf;
    uint8_t *p;
    size_t count, bytes;
    if (len) *len = 0;
    if (!local || !buf || !len) return CG_E_ARG;
    if (!local->anchor) return CG_E_STATE;
    bytes = cg_local_save_bytes(local);
    count = cg_local_count_(&local->desc);
    if (!bytes || cap < bytes) return CG_E_CAPACITY;
    memset(start, 0, CG_LOCAL_HEADER_ + CG_LOCAL_ENTRY_ * count);
    cg_put32_(start, CG_LOCAL_MAGIC_);
    cg_put32_(start + 4, 1);
    cg_put32_(start + 8, (uint32_t)count);
    cg_put32_(start + 12, local->velocity ? 1u : 0u);
    cg_put64_(start + 16, local->desc.ef.n);
    cg_put64_(start + 24, local->mark);
    cg_put64_(start + 32, local->steps);
    p = start + CG_LOCAL_HEADER_ + CG_LOCAL_ENTRY_ * count;
    p = cg_sync_put_floats_(p, local->anchor, local->desc.ef.n);
    for (size_t f = 0; f < count; f++) {
        const size_t first = cg_local_first_(&local->desc, f), end = cg_local_first_(&local->desc, f + 1);
        p = cg_sync_put_floats_(p, local->fragment[f].under_way ? local->delta + first : NULL, end - first);
    }
    if (local->velocity) p = cg_sync_put_floats_(p, local->velocity, local->desc.ef.n);
    for (size_t f = 0; f < count; f++) {
        uint8_t *entry = start + CG_LOCAL_HEADER_ + CG_LOCAL_ENTRY_ * f;
        size_t one;
        const cg_status s = cg_ef_save(&local->fragment[f].ef, p, (size_t)(start + bytes - p), &one);
        if (s != CG_OK) return s;
        cg_put32_(entry, (uint32_t)local->fragment[f].under_way);
        cg_put64_(entry + 8, local->fragment[f].lands);
        cg_put64_(entry + 16, one);
        p += one;
    }
    cg_seal_put_(start, bytes, CG_LOCAL_SEAL_);
    *len = bytes;
    return CG_OK;
}
/* Everything that can be wrong but in the states of error feedback. */
static cg_status cg_local_blob_check_(const cg_local *l, const uint8_t *p, size_t len) {
    const size_t count = cg_local_count_(&l->desc), n = l->desc.ef.n;
    const uint8_t *deltas = p + CG_LOCAL_HEADER_ + CG_LOCAL_ENTRY_ * count + 4 * n;
    uint64_t steps;
    if (len < CG_LOCAL_HEADER_ || len % 4 || cg_get32_(p) != CG_LOCAL_MAGIC_) return CG_E_CORRUPT;
    if (!cg_seal_is_intact_(p, len, CG_LOCAL_SEAL_)) return CG_E_CORRUPT;
    if (cg_get32_(p + 4) != 1) return CG_E_VERSION;
    if (cg_get32_(p + 8) != count || cg_get32_(p + 12) != (l->velocity ? 1u : 0u) || cg_get64_(p + 16) != n)
        return CG_E_MISMATCH;
    if (len != cg_local_save_bytes(l) || cg_get64_(p + 40)) return CG_E_CORRUPT;
    steps = cg_get64_(p + 32);
    for (size_t f = 0; f < count; f++) {
        const uint8_t *entry = p + CG_LOCAL_HEADER_ + CG_LOCAL_ENTRY_ * f;
        const uint32_t under_way = cg_get32_(entry);
        const uint64_t lands = cg_get64_(entry + 8);
        if (under_way > 1 || cg_get32_(entry + 4) || cg_get64_(entry + 16) != cg_ef_save_bytes(&l->fragment[f].ef))
            return CG_E_CORRUPT;
        /* what is under way has started at one of the steps so far, and lands after the last of them */
        if (under_way ? !steps || lands < steps || lands - (steps - 1) > l->desc.delay : lands != 0)
            return CG_E_CORRUPT;
        for (size_t i = cg_local_first_(&l->desc, f); !under_way && i < cg_local_first_(&l->desc, f + 1); i++)
            if (cg_get32_(deltas + 4 * i)) return CG_E_CORRUPT;
    }
    return cg_sync_finite_(deltas - 4 * n, (l->velocity ? 3 : 2) * n) ? CG_OK : CG_E_CORRUPT;
}
CG_API_ cg_status cg_local_load(cg_local *local, const void *buf, size_t len) {
    const uint8_t *const start = (const uint8_t *)buf;
    const uint8_t *p;
    cg_status s;
    size_t count;
    if (!local || !buf) return CG_E_ARG;
    if (!local->anchor) return CG_E_STATE;
    count = cg_local_count_(&local->desc);
    s = cg_local_blob_check_(local, start, len);
    if (s != CG_OK) return s;
    p = start + CG_LOCAL_HEADER_ + CG_LOCAL_ENTRY_ * count + (local->velocity ? 12 : 8) * local->desc.ef.n;
    for (size_t f = 0; f < count; f++) {
        s = cg_ef_blob_check_(&local->fragment[f].ef, p, cg_ef_save_bytes(&local->fragment[f].ef), 1);
        if (s != CG_OK) return s;
        p += cg_ef_save_bytes(&local->fragment[f].ef);
    }
    p = start + CG_LOCAL_HEADER_ + CG_LOCAL_ENTRY_ * count;
    p = cg_sync_get_floats_(p, local->anchor, local->desc.ef.n);
    p = cg_sync_get_floats_(p, local->delta, local->desc.ef.n);
    if (local->velocity) p = cg_sync_get_floats_(p, local->velocity, local->desc.ef.n);
    for (size_t f = 0; f < count; f++) {
        const uint8_t *entry = start + CG_LOCAL_HEADER_ + CG_LOCAL_ENTRY_ * f;
        local->fragment[f].under_way = (int)cg_get32_(entry);
        local->fragment[f].lands = cg_get64_(entry + 8);
        s = cg_ef_load(&local->fragment[f].ef, p, cg_ef_save_bytes(&local->fragment[f].ef));
        if (s != CG_OK) return s; /* does not happen: it has been checked */
        p += cg_ef_save_bytes(&local->fragment[f].ef);
    }
    local->mark = cg_get64_(start + 24);
    local->steps = cg_get64_(start + 32);
    return CG_OK;
}
