/* ---- >>random: a pure function of (tag, position); part of the wire format ---- */

static uint64_t cg_shared_key_(const cg_tag *tag) {
    uint64_t z = cg_mix64_(tag->seed + CG_GOLDEN_);
    z = cg_mix64_(z ^ (tag->step + 2 * CG_GOLDEN_));
    return cg_mix64_(z ^ (tag->tensor + 3 * CG_GOLDEN_));
}
static uint64_t cg_rank_key_(const cg_tag *tag) {
    return cg_mix64_(cg_shared_key_(tag) ^ (tag->rank + 4 * CG_GOLDEN_));
}

/* Two words per block of 65536 positions: with one, the counters of two blocks would overlap too often. */
typedef struct cg_key_ {
    uint32_t a, b;
} cg_key_;
CG_INLINE_ cg_key_ cg_block_key_(uint64_t key, uint64_t block) {
    uint64_t s = cg_mix64_(key + (block + 1) * CG_GOLDEN_);
    cg_key_ k;
    k.a = (uint32_t)s;
    k.b = (uint32_t)(s >> 32);
    return k;
}
CG_INLINE_ uint32_t cg_hash32_(cg_key_ key, uint32_t counter) {
    uint32_t h = counter ^ key.a;
    h = (h ^ h >> 16) * 0x7FEB352Du;
    h = ((h ^ h >> 15) + key.b) * 0x846CA68Bu;
    return h ^ h >> 16;
}
/* Rounding noise in [-0.5, 0.5]. One hash serves two values: each sees all 32 bits, in two orders. */
CG_INLINE_ float cg_noise_(cg_key_ key, uint32_t position) {
    uint32_t h = cg_hash32_(key, (position >> 4) << 3 | (position & 7));
    if (position & 8) h = h << 16 | h >> 16;
    return (float)(int32_t)h * 2.3283064365386963e-10f;
}
/* Which of a group of `size` neighbours a rank takes: every rank another one. */
CG_INLINE_ uint64_t cg_permk_index_(uint64_t key, uint64_t group, uint32_t size, uint32_t rank) {
    uint64_t start = (uint64_t)cg_hash32_(cg_block_key_(key, group >> 16), (uint32_t)(group & 0xffff)) * size >> 32;
    return start + rank < size ? start + rank : start + rank - size;
}
