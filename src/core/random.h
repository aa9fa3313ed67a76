/* random: random numbers as a pure function of (tag, position), which is part of the wire format

   Offers   shared and per-rank keys of a tag, keys of blocks, 32 hash bits per counter, rounding noise, PermK's draw
   Needs    base
   Touches  nothing but its arguments
   Other headers may use: cg_block_key_, cg_shared_key_
   There is no generator state: any thread and any ISA can make the number of any position by itself. */

/* The key of a tag that all ranks agree on (rank is left out): samples, rotations, permutations. */
static uint64_t cg_shared_key_(const cg_tag *tag) {
    uint64_t z = cg_mix64_(tag->seed + CG_GOLDEN_);
    z = cg_mix64_(z ^ (tag->step + 2 * CG_GOLDEN_));
    return cg_mix64_(z ^ (tag->tensor + 3 * CG_GOLDEN_));
}
/* The key that differs by rank: rounding and selection by chance. */
static uint64_t cg_rank_key_(const cg_tag *tag) {
    return cg_mix64_(cg_shared_key_(tag) ^ (tag->rank + 4 * CG_GOLDEN_));
}

/* For ranks that round together: what keeps their noise apart from samples and rotations. */
#define CG_TOGETHER_KEY_ 0x746F676574686572u

/* The key of one block of 65536 positions. With one word instead of two, the hashes of two blocks would overlap too
   often. */
typedef struct cg_key_ {
    uint32_t a, b;  /* a: xor with the counter; b: added between the two multiplications */
    uint32_t shift; /* added to rounding noise: ranks that round together share a and b, and differ here */
} cg_key_;
/* key: of cg_shared_key_ or cg_rank_key_, perhaps xor a constant of the purpose; block: any number. */
CG_INLINE_ cg_key_ cg_block_key_(uint64_t key, uint64_t block) {
    uint64_t s = cg_mix64_(key + (block + 1) * CG_GOLDEN_);
    cg_key_ k;
    k.a = (uint32_t)s;
    k.b = (uint32_t)(s >> 32);
    k.shift = 0;
    return k;
}
/* 32 uniform bits; for one key a bijection of the counter. cg_vu_hash_ makes eight at once. */
CG_INLINE_ uint32_t cg_hash32_(cg_key_ key, uint32_t counter) {
    uint32_t h = counter ^ key.a;
    h = (h ^ h >> 16) * 0x7FEB352Du;
    h = ((h ^ h >> 15) + key.b) * 0x846CA68Bu;
    return h ^ h >> 16;
}
/* The bits that the value at a position within its block rounds with. Positions p and p + 8 of 16 share one hash: the
   second sees its halves swapped, so that the high bits of the two are independent. */
CG_INLINE_ uint32_t cg_noise_bits_(cg_key_ key, uint32_t position) {
    const uint32_t h = cg_hash32_(key, (position >> 4) << 3 | (position & 7));
    return (position & 8 ? h << 16 | h >> 16 : h) + key.shift;
}
/* The same as a fraction in [-0.5, 0.5]. */
CG_INLINE_ float cg_noise_(cg_key_ key, uint32_t position) {
    return (float)(int32_t)cg_noise_bits_(key, position) * 2.3283064365386963e-10f;
}
/* The shift of one of `ranks` ranks that round together: their noise is spread evenly over all of its range. */
static uint32_t cg_noise_shift_(uint32_t rank, uint32_t ranks) {
    return (uint32_t)(((uint64_t)(rank % ranks) << 32) / ranks);
}
/* PermK: which of the group_size neighbours of a group this rank takes. rank < group_size; over all ranks the result
   is a cyclic shift of 0..group_size-1, chosen by (key, group), so no two ranks take the same. */
CG_INLINE_ uint64_t cg_permk_index_(uint64_t key, uint64_t group, uint32_t group_size, uint32_t rank) {
    uint64_t shift = (uint64_t)cg_hash32_(cg_block_key_(key, group >> 16), (uint32_t)(group & 0xffff)) * group_size >>
        32;
    return shift + rank < group_size ? shift + rank : shift + rank - group_size;
}
