/* ---- >>sample: which coordinates random-k draws, one from each of k strata ---- */

static uint64_t cg_stratum_start_(uint64_t n, uint64_t k, uint64_t j) { /* floor(j*n/k), j <= k */
    uint64_t r, q, rest = 0;
    if ((n | j) >> 32 == 0) return j * n / k;
    q = n / k;
    r = n % k;
    for (uint64_t bit = (uint64_t)1 << 63, part = 0; bit; bit >>= 1) { /* j*r/k bit by bit; part < k throughout */
        rest <<= 1;
        if (part >= k - part) {
            part -= k - part;
            rest++;
        } else part += part;
        if (j & bit) {
            if (part >= k - r) {
                part -= k - r;
                rest++;
            } else part += r;
        }
    }
    return j * q + rest;
}
static uint64_t cg_mulhi64_(uint64_t a, uint64_t b) { /* upper half of a*b */
    uint64_t al = a & 0xffffffffu, ah = a >> 32, bl = b & 0xffffffffu, bh = b >> 32;
    uint64_t mid = ah * bl + (al * bl >> 32), mid2 = al * bh + (mid & 0xffffffffu);
    return ah * bh + (mid >> 32) + (mid2 >> 32);
}
/* Stratum after stratum: [start, start + length) is the j-th, rest = j*n mod k. */
typedef struct cg_strata_ {
    uint64_t n, k, base_length, longer_n; /* n = each*k + extra */
    uint64_t stratum, start, remainder, length;
    uint64_t key;
    cg_key_ block_key;
    uint32_t permk_workers, rank; /* PermK: strata are groups of so many neighbours; 0: random-k */
} cg_strata_;

static void cg_strata_seek_(cg_strata_ *s, uint64_t j) {
    s->stratum = j;
    if (s->permk_workers) {
        s->start = j * s->permk_workers;
        return;
    }
    s->start = cg_stratum_start_(s->n, s->k, j);
    s->remainder = j * s->n - s->start * s->k; /* less than k, so wrapping does no harm */
    s->length = s->base_length + (s->longer_n >= s->k - s->remainder);
    s->block_key = cg_block_key_(s->key, j >> 16);
}
static void cg_strata_open_(cg_strata_ *s, const cg_info *info, uint64_t j) {
    s->n = info->n;
    s->k = info->drawn;
    s->key = cg_shared_key_(&info->tag);
    s->rank = info->tag.rank;
    s->permk_workers = info->op.sample.id == CG_SAMPLE_PERMK ? info->op.sample.size : 0;
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
/* Which coordinate of the stratum is drawn. */
CG_INLINE_ uint64_t cg_strata_sample_(const cg_strata_ *s) {
    uint32_t c = (uint32_t)(s->stratum & 0xffff), h = cg_hash32_(s->block_key, c);
    cg_key_ swapped;
    if (s->permk_workers) return s->start + cg_permk_index_(s->key, s->stratum, s->permk_workers, s->rank);
    if (CG_LIKELY_(s->length >> 32 == 0)) return s->start + ((uint64_t)h * s->length >> 32);
    swapped.a = s->block_key.b;
    swapped.b = s->block_key.a;
    return s->start + cg_mulhi64_((uint64_t)h << 32 | cg_hash32_(swapped, c), s->length);
}
