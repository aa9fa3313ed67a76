/* sample: which coordinates random-k and PermK take, one from each stratum, and the block that is cyclic's turn

   Offers   cg_strata_ with open, seek, next, sample and factor; cg_mulhi64_
   Needs    base, random, stages
   Touches  nothing but its arguments
   Random-k cuts n coordinates into k strata [floor(jn/k), floor((j+1)n/k)) and takes one of each at random; PermK's
   strata are groups of as many neighbours as there are workers. Cyclic takes all values of one block, which are
   its strata. Coordinates ascend; any stratum can be had alone. */

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
/* How a sample's coordinates go on: one of each stratum at random, one of each group of equal length, or neighbours. */
enum { CG_WALK_STRATA_, CG_WALK_GROUPS_, CG_WALK_BLOCK_ };
static int cg_sample_walk_(const cg_op *op); /* in core/rows.h */

/* Cyclic, n values in B blocks of k = ceil(n/B): where the block whose turn it is begins. Blocks begin at equal
   distances, and the last one ends at n, so that neighbours share a value at most. More blocks than values: blocks of
   one value each, over and over. */
static uint64_t cg_cyclic_start_(uint64_t n, uint64_t k, uint64_t blocks, uint64_t turn) {
    if (blocks >= n) return turn % n;
    if (blocks == 1) return 0;
    return cg_stratum_start_(n - k, blocks - 1, turn);
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
    uint32_t permk_workers, rank; /* PermK: the length of every stratum, and whose coordinate */
    uint32_t stride;              /* from each start to the next, if they are all alike; 0: random-k */
    uint64_t first;               /* and the first of them */
    uint64_t blocks, turn;        /* cyclic: how many there are, and which; 0: another sample */
} cg_strata_;

/* Goes to stratum j < k. */
static void cg_strata_seek_(cg_strata_ *s, uint64_t j) {
    s->stratum = j;
    if (s->stride) {
        s->start = s->first + j * s->stride;
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
    s->permk_workers = 0;
    s->stride = 0;
    s->first = s->blocks = s->turn = 0;
    s->base_length = s->n / s->k;
    s->longer_n = s->n % s->k;
    s->length = 0;
    switch (cg_sample_walk_(&info->op)) {
    case CG_WALK_GROUPS_: s->length = s->stride = s->permk_workers = info->op.sample.size; break;
    case CG_WALK_BLOCK_:
        s->stride = 1;
        s->blocks = info->op.sample.size;
        s->turn = info->tag.step % s->blocks;
        s->first = cg_cyclic_start_(s->n, s->k, s->blocks, s->turn);
        break;
    default: break;
    }
    cg_strata_seek_(s, j);
}
CG_INLINE_ void cg_strata_next_(cg_strata_ *s) {
    if (s->stride) {
        s->stratum++;
        s->start += s->stride;
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
    uint32_t c = (uint32_t)(s->stratum & 0xffff), h;
    cg_key_ swapped;
    if (s->permk_workers) return s->start + cg_permk_index_(s->key, s->stratum, s->permk_workers, s->rank);
    if (s->stride) return s->start;
    h = cg_hash32_(s->block_key, c);
    if (CG_LIKELY_(s->length >> 32 == 0)) return s->start + ((uint64_t)h * s->length >> 32);
    swapped.a = s->block_key.b;
    swapped.b = s->block_key.a;
    return s->start + cg_mulhi64_((uint64_t)h << 32 | cg_hash32_(swapped, c), s->length);
}
/* One over the share of steps in which the coordinate's turn comes; cyclic only. */
CG_NOINLINE_ float cg_cyclic_factor_(const cg_strata_ *s) {
    uint64_t turns = 1;
    if (s->blocks >= s->n) turns = s->blocks / s->n + (s->start < s->blocks % s->n);
    else if (s->k > 1) {
        const uint64_t block = s->turn;
        turns += s->stratum == 0 && block > 0 &&
            cg_stratum_start_(s->n - s->k, s->blocks - 1, block - 1) + s->k > s->start;
        turns += s->stratum == s->k - 1 && block + 1 < s->blocks &&
            cg_stratum_start_(s->n - s->k, s->blocks - 1, block + 1) <= s->start;
    }
    return (float)((double)s->blocks / (double)turns);
}
/* What makes the sample unbiased. */
CG_INLINE_ float cg_strata_factor_(const cg_strata_ *s) { return s->blocks ? cg_cyclic_factor_(s) : (float)s->length; }
