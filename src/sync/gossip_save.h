/* gossip_save: the state of gossip as bytes, the same on every machine, and back

   Offers   the public cg_gossip_save_bytes, cg_gossip_save and cg_gossip_load
   Needs    gossip, local_save; seals of core
   Touches  the caller's buffer; loading all of the state but its description
   A blob is little-endian. Nothing is loaded before all of it has been checked.

   byte 0 "cgos"  4 version  8 peers  12 zeros  16 n  24 setup  32 mine  40 weight (double)  48 checksum of everything
   else (16 bytes)  64 steps  72 rank  76 zeros  80 of each peer: from (u32), replicated (u32), have (u64); then own,
   sum and replicas as floats */

enum { CG_GOSSIP_HEADER_ = 80, CG_GOSSIP_ENTRY_ = 16, CG_GOSSIP_SEAL_ = 48 };
#define CG_GOSSIP_SAVED_ 0x736f6763u /* "cgos" */

static uint64_t cg_gossip_vectors_(const cg_gossip *g) {
    return (g->own ? 1u : 0u) + (g->sum ? 1u : 0u) + (cg_gossip_keeps_replicas_(g) ? g->peers : 0u);
}
CG_API_ size_t cg_gossip_save_bytes(const cg_gossip *gossip) {
    if (!gossip || !gossip->desc.graph) return 0;
    return cg_size_or_zero_(cg_add_sat_(CG_GOSSIP_HEADER_ + cg_mul_sat_(CG_GOSSIP_ENTRY_, gossip->peers),
        cg_mul_sat_(cg_gossip_vectors_(gossip), cg_mul_sat_(4, gossip->desc.n))));
}
/* A peer of the step alone is not part of the state. */
static uint32_t cg_gossip_saved_peer_(const cg_gossip *g, size_t k) {
    return cg_gossip_meets_one_(&g->desc) ? 0u : (uint32_t)g->peer[k].from;
}
CG_API_ cg_status cg_gossip_save(const cg_gossip *gossip, void *buf, size_t cap, size_t *len) {
    uint8_t *const start = (uint8_t *)buf;
    uint8_t *p = start + CG_GOSSIP_HEADER_;
    const size_t bytes = cg_gossip_save_bytes(gossip);
    if (len) *len = 0;
    if (!gossip || !buf || !len) return CG_E_ARG;
    if (!gossip->desc.graph || gossip->phase != CG_GOSSIP_IDLE_) return CG_E_STATE;
    if (!bytes || cap < bytes) return CG_E_CAPACITY;
    memset(start, 0, CG_GOSSIP_HEADER_);
    cg_put32_(start, CG_GOSSIP_SAVED_);
    cg_put32_(start + 4, 1);
    cg_put32_(start + 8, (uint32_t)gossip->peers);
    cg_put64_(start + 16, gossip->desc.n);
    cg_put64_(start + 24, gossip->setup);
    cg_put64_(start + 32, gossip->mine);
    cg_put64_(start + 40, cg_as_bits64_(gossip->weight));
    cg_put64_(start + 64, gossip->steps);
    cg_put32_(start + 72, (uint32_t)gossip->desc.rank);
    for (size_t k = 0; k < gossip->peers; k++, p += CG_GOSSIP_ENTRY_) {
        cg_put32_(p, cg_gossip_saved_peer_(gossip, k));
        cg_put32_(p + 4, (uint32_t)gossip->peer[k].replicated);
        cg_put64_(p + 8, gossip->peer[k].have);
    }
    if (gossip->own) p = cg_sync_put_floats_(p, gossip->own, gossip->desc.n);
    if (gossip->sum) p = cg_sync_put_floats_(p, gossip->sum, gossip->desc.n);
    for (size_t k = 0; k < gossip->peers && gossip->peer[k].replica; k++)
        p = cg_sync_put_floats_(p, gossip->peer[k].replica, gossip->desc.n);
    cg_seal_put_(start, bytes, CG_GOSSIP_SEAL_);
    *len = bytes;
    return CG_OK;
}
static cg_status cg_gossip_blob_check_(const cg_gossip *g, const uint8_t *p, size_t len) {
    const size_t floats = CG_GOSSIP_HEADER_ + CG_GOSSIP_ENTRY_ * g->peers;
    double weight;
    if (len < CG_GOSSIP_HEADER_ || len % 4 || cg_get32_(p) != CG_GOSSIP_SAVED_) return CG_E_CORRUPT;
    if (!cg_seal_is_intact_(p, len, CG_GOSSIP_SEAL_)) return CG_E_CORRUPT;
    if (cg_get32_(p + 4) != 1) return CG_E_VERSION;
    if (cg_get32_(p + 8) != g->peers || cg_get64_(p + 16) != g->desc.n || cg_get64_(p + 24) != g->setup ||
        cg_get32_(p + 72) != (uint32_t)g->desc.rank)
        return CG_E_MISMATCH;
    weight = cg_as_double_(cg_get64_(p + 40));
    if (len != cg_gossip_save_bytes(g) || cg_get32_(p + 12) || cg_get32_(p + 76)) return CG_E_CORRUPT;
    if (!(weight > 0.0 && weight <= (double)g->desc.graph->desc.nodes)) return CG_E_CORRUPT;
    for (size_t k = 0; k < g->peers; k++) {
        const uint8_t *entry = p + CG_GOSSIP_HEADER_ + CG_GOSSIP_ENTRY_ * k;
        if (cg_get32_(entry) != cg_gossip_saved_peer_(g, k) || cg_get32_(entry + 4) > 1) return CG_E_CORRUPT;
    }
    return cg_sync_finite_(p + floats, (len - floats) / 4) ? CG_OK : CG_E_CORRUPT;
}
CG_API_ cg_status cg_gossip_load(cg_gossip *gossip, const void *buf, size_t len) {
    const uint8_t *p = (const uint8_t *)buf;
    cg_status s;
    if (!gossip || !buf) return CG_E_ARG;
    if (!gossip->desc.graph || gossip->phase != CG_GOSSIP_IDLE_) return CG_E_STATE;
    s = cg_gossip_blob_check_(gossip, p, len);
    if (s != CG_OK) return s;
    gossip->mine = cg_get64_(p + 32);
    gossip->weight = cg_as_double_(cg_get64_(p + 40));
    gossip->steps = cg_get64_(p + 64);
    p += CG_GOSSIP_HEADER_;
    for (size_t k = 0; k < gossip->peers; k++, p += CG_GOSSIP_ENTRY_) {
        gossip->peer[k].replicated = (int)cg_get32_(p + 4);
        gossip->peer[k].have = cg_get64_(p + 8);
    }
    if (gossip->own) p = cg_sync_get_floats_(p, gossip->own, gossip->desc.n);
    if (gossip->sum) p = cg_sync_get_floats_(p, gossip->sum, gossip->desc.n);
    for (size_t k = 0; k < gossip->peers && gossip->peer[k].replica; k++)
        p = cg_sync_get_floats_(p, gossip->peer[k].replica, gossip->desc.n);
    return CG_OK;
}
