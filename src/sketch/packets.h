/* packets: a sketch as a packet of its cells

   Offers   cg_sketch_fingerprint_; the public calls that pack, unpack, save and load
   Needs    sketch; cg_packet_check_ of exchange
   Touches  the caller's packet, or the cells */

/* A hash of the description, for the seed of a packet's tag: cells of another description must not be added. */
static uint64_t cg_sketch_fingerprint_(const cg_sketch *s) {
    uint64_t h = cg_mix64_(s->desc.seed + CG_GOLDEN_);
    h = cg_mix64_(h ^ (uint64_t)s->desc.rows);
    h = cg_mix64_(h ^ (uint64_t)s->desc.cols);
    h = cg_mix64_(h ^ (uint64_t)s->desc.n);
    return cg_mix64_(h ^ (uint64_t)s->desc.groups);
}
CG_API_ size_t cg_sketch_bound(const cg_sketch *sketch, const cg_op *op) {
    return sketch && op ? cg_bound(op, sketch->count) : 0;
}
CG_API_ size_t cg_sketch_scratch(const cg_sketch *sketch, const cg_op *op) {
    return sketch && op ? cg_scratch(op, sketch->count) : 0;
}
CG_API_ cg_status cg_sketch_pack(const cg_sketch *sketch, const cg_op *op, const cg_tag *tag, void *packet, size_t cap,
    size_t *len, void *scratch, size_t scratch_bytes) {
    cg_tag own = CG_ZERO;
    if (len) *len = 0;
    if (!sketch) return CG_E_ARG;
    if (tag) own = *tag;
    own.seed = cg_sketch_fingerprint_(sketch);
    return cg_compress(op, &own, sketch->cells, sketch->count, packet, cap, len, scratch, scratch_bytes);
}
CG_API_ cg_status cg_sketch_unpack(cg_sketch *sketch, const void *packet, size_t len, float alpha, float beta) {
    cg_info info;
    cg_status s;
    if (!sketch) return CG_E_ARG;
    s = cg_inspect(packet, len, &info);
    if (s == CG_OK && (info.n != sketch->count || info.tag.seed != cg_sketch_fingerprint_(sketch))) {
        s = cg_packet_check_(NULL, packet, len, (size_t)info.n); /* a packet that is intact is of another sketch */
        return s == CG_OK ? CG_E_MISMATCH : s;
    }
    return s == CG_OK ? cg_decode(NULL, packet, len, alpha, beta, sketch->cells, sketch->count) : s;
}
CG_API_ cg_status cg_sketch_save(const cg_sketch *sketch, void *buf, size_t cap, size_t *len) {
    const cg_op dense = cg_dense();
    return cg_sketch_pack(sketch, &dense, NULL, buf, cap, len, NULL, 0);
}
CG_API_ cg_status cg_sketch_load(cg_sketch *sketch, const void *buf, size_t len) {
    return cg_sketch_unpack(sketch, buf, len, 1.0f, 0.0f);
}
