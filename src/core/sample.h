/* sample: which coordinates random-k and PermK take, one from each stratum

   Offers   cg_strata_ with open, seek, next and sample; cg_mulhi64_
   Needs    base, random, stages
   Touches  nothing but its arguments
   Random-k cuts n coordinates into k strata [floor(jn/k), floor((j+1)n/k)) and takes one of each at random; PermK's
   strata are groups of as many neighbours as there are workers. Coordinates ascend; any stratum can be had alone. */

/* floor(j*n/k) without overflow; j <= k <= n. */
static uint64_t cg_stratum_start_(uint64_t n, uint64_t k, uint64_t j) {
    uint64_t r, q, quotient = 0;
    if ((n | j) >> 32 == 0) return j * n / k;
    q = n / k;
    r = n % k;
    /* j*r/k bit by bit; remainder < k throughout */
    for (uint64_t bit = (uint64_t)1 << 63, remainder = 0; bit; bit >>= 1) {
        quotient <<= 1;
        if (remainder >= k - remainder) {
            remainder -= k - remainder;
            quotient++;
        } else remainder += remainder;
        if (j & bit) {
            if (remainder >= k - r) {
                remainder -= k - r;
                quotient++;
            } else remainder += r;
        }
    }
    return j * q + quotient;
}
/* The upper half of a*b. */
static uint64_t cg_mulhi64_(uint64_t a, uint64_t b) {
    uint64_t al = a & 0xffffffffu, ah = a >> 32, bl = b & 0xffffffffu, bh = b >> 32;
    uint64_t mid = ah * bl + (al * bl >> 32), mid2 = al * bh + (mid & 0xffffffffu);
    return ah * bh + (mid >> 32) + (mid2 >> 32);
}
/* The current stratum. */
typedef struct cg_strata_ {
    uint64_t n, k;                  /* coordinates, strata */
    uint64_t base_length, longer_n; /* n = base_length*k + longer_n: so many strata are longer by one */
    uint64_t stratum;               /* its number */
    uint64_t start;                 /* its coordinates are [start, start + length) */
    uint64_t remainder;             /* stratum*n mod k */
    uint64_t length;
    uint64_t key;                 /* shared by all ranks */
    cg_key_ block_key;            /* of the 65536 strata around the current one */
    uint32_t permk_workers, rank; /* PermK: the length of every stratum, and whose coordinate; 0: random-k */
} cg_strata_;

/* Goes to stratum j < k. */
static void cg_strata_seek_(cg_strata_ *s, uint64_t j) {
    s->stratum = j;
    if (s->permk_workers) {
        s->start = j * s->permk_workers;
        return;
    }
    s->start = cg_stratum_start_(s->n, s->k, j);
    s->remainder = j * s->n - s->start * s->k; /* less than k, so wrapping products cancel */
    s->length = s->base_length + (s->longer_n >= s->k - s->remainder);
    s->block_key = cg_block_key_(s->key, j >> 16);
}
/* At stratum j of the packet's sample; info has n, drawn > 0, op.sample and tag. */
static void cg_strata_open_(cg_strata_ *s, const cg_info *info, uint64_t j) {
    s->n = info->n;
    s->k = info->drawn;
    s->key = cg_stage_key_(&info->op.sample, &info->tag);
    s->rank = info->tag.rank;
    s->permk_workers = cg_has_(&info->op, CG_IS_PER_RANK_) ? info->op.sample.size : 0;
    s->base_length = s->n / s->k;
    s->longer_n = s->n % s->k;
    s->length = s->permk_workers;
    cg_strata_seek_(s, j);
}
CG_INLINE_ void cg_strata_next_(cg_strata_ *s) {
    if (s->permk_workers) {
        s->stratum++;
        s->start += s->permk_workers;
        return;
    }
    s->start += s->length;
    s->remainder = s->longer_n >= s->k - s->remainder ? s->remainder - (s->k - s->longer_n)
                                                      : s->remainder + s->longer_n;
    s->length = s->base_length + (s->longer_n >= s->k - s->remainder);
    if ((++s->stratum & 0xffff) == 0) s->block_key = cg_block_key_(s->key, s->stratum >> 16);
}
/* The coordinate that is taken from the current stratum. */
CG_INLINE_ uint64_t cg_strata_sample_(const cg_strata_ *s) {
    uint32_t c = (uint32_t)(s->stratum & 0xffff), h = cg_hash32_(s->block_key, c);
    cg_key_ swapped;
    if (s->permk_workers) return s->start + cg_permk_index_(s->key, s->stratum, s->permk_workers, s->rank);
    if (CG_LIKELY_(s->length >> 32 == 0)) return s->start + ((uint64_t)h * s->length >> 32);
    swapped.a = s->block_key.b;
    swapped.b = s->block_key.a;
    return s->start + cg_mulhi64_((uint64_t)h << 32 | cg_hash32_(swapped, c), s->length);
}
