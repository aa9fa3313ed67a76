/* indices: index sets as Elias-Fano, bitmap or Golomb-Rice codes, written from a list and read in batches

   Offers   cg_index_put_, cg_index_reader_ with cg_index_open_, cg_index_get_ and cg_index_get_per_value_; what
            the rows of the codes in core/rows.h name; cg_padding_zero_
   Needs    base, kernels/dispatch, codes/golomb, plan, packet (cg_index_bytes_), select/list
   Touches  the index section that is written; the reader
   Reading is safe on any bytes: a reader never leaves the section, and returns fewer indices where the bits run out.
   Whether indices ascend and are in range is cg_index_check_'s business. */

/* Are the bits from number `bits` to the end of its u32 word zero? */
static int cg_padding_zero_(const uint8_t *p, uint64_t bits) {
    return bits % 32 == 0 || cg_get32_(p + (size_t)(bits / 32 * 4)) >> bits % 32 == 0;
}
/* Appends bits, the lowest first, as u32 words. */
typedef struct cg_bit_writer_ {
    uint8_t *next;   /* byte after the last word written */
    uint64_t word;   /* bits that wait for a whole word */
    unsigned filled; /* how many, below 32 */
} cg_bit_writer_;

/* bits <= 32, v < 2^bits */
static void cg_bit_writer_put_(cg_bit_writer_ *w, uint64_t v, unsigned bits) {
    w->word |= v << w->filled;
    w->filled += bits;
    if (w->filled >= 32) {
        cg_put32_(w->next, (uint32_t)w->word);
        w->next += 4;
        w->word >>= 32;
        w->filled -= 32;
    }
}
/* The last word, filled with zeros. */
static void cg_bit_writer_flush_(cg_bit_writer_ *w) {
    if (w->filled) cg_put32_(w->next, (uint32_t)w->word);
}
/* Sets single bits of zeroed words in ascending order. Every call stores the word, without a branch on whether it is a
   new one, which no CPU could predict. */
typedef struct cg_bit_setter_ {
    uint8_t *out;
    uint64_t word_index; /* of the current word */
    uint32_t word;       /* its bits so far */
} cg_bit_setter_;

static void cg_bit_setter_set_(cg_bit_setter_ *w, uint64_t bit) {
    const uint64_t at = bit >> 5;
    w->word = (w->word & ((uint32_t)(at != w->word_index) - 1u)) | 1u << (bit & 31);
    w->word_index = at;
    cg_put32_(w->out + 4 * (size_t)at, w->word);
}
/* Lengths. Elias-Fano stores the low bits of each index, then a bit string of k ones and as many zeros as there are
   different high parts. */
static unsigned cg_elias_fano_low_bits_(uint64_t universe, uint64_t k) { /* of universe/k, without the division */
    unsigned bits;
    if (!k || universe < k) return 0;
    bits = cg_log2_(universe) - cg_log2_(k);
    return bits - (k << bits > universe);
}
static uint64_t cg_elias_fano_low_bytes_(uint64_t universe, uint64_t k) {
    return cg_word_bytes_(cg_mul_sat_(k, cg_elias_fano_low_bits_(universe, k)));
}
static uint64_t cg_elias_fano_high_bits_(uint64_t universe, uint64_t k) {
    return k ? cg_add_sat_(k, ((universe - 1) >> cg_elias_fano_low_bits_(universe, k)) + 1) : 0;
}
static uint64_t cg_index_bytes_elias_fano_(uint64_t universe, uint64_t k) {
    return cg_add_sat_(cg_elias_fano_low_bytes_(universe, k), cg_word_bytes_(cg_elias_fano_high_bits_(universe, k)));
}
static uint64_t cg_index_bound_elias_fano_(uint64_t universe, uint64_t k) {
    return cg_add_sat_(k ? cg_index_bytes_elias_fano_(universe, k) : 0, 8);
}
static uint64_t cg_index_bytes_bitmap_(uint64_t universe, uint64_t k) {
    (void)k;
    return cg_word_bytes_(universe);
}
static uint64_t cg_index_bound_bitmap_(uint64_t universe, uint64_t k) { return cg_index_bytes_bitmap_(universe, k); }
static uint64_t cg_index_bytes_golomb_(uint64_t universe, uint64_t k) { return cg_rice_bound_(universe, k); }
/* At worst 1.08 bits for each of the universe; fewer than k indices take no more than k, but for the steps of the Rice
   parameter, which the eighth covers. */
static uint64_t cg_index_bound_golomb_(uint64_t universe, uint64_t k) {
    const uint64_t most = cg_rice_bound_(universe, k),
                   sparse = cg_add_sat_(most, cg_add_sat_(most / 8, 16)) & ~(uint64_t)3,
                   dense = cg_add_sat_(cg_word_bytes_(cg_add_sat_(universe, universe / 8)), 8);
    return sparse < dense ? sparse : dense;
}
/* The shorter of Elias-Fano and bitmap. */
static uint64_t cg_index_bound_auto_(uint64_t universe, uint64_t k) {
    const uint64_t sparse = cg_index_bound_elias_fano_(universe, k), bitmap = cg_index_bytes_bitmap_(universe, k);
    return sparse < bitmap ? sparse : bitmap;
}

static size_t cg_index_put_golomb_(uint64_t universe, const cg_list_ *list, uint8_t *out, size_t bytes) {
    cg_rice_writer_ rice;
    (void)bytes;
    cg_rice_writer_open_(&rice, out, cg_rice_parameter_(universe, list->count));
    for (uint64_t s = 0; s < list->segment_count; s++)
        for (uint64_t i = list->segment_start[s]; i < list->segment_start[s + 1]; i++)
            cg_rice_writer_put_(&rice, s << 32 | list->index_low[i]);
    return cg_rice_writer_close_(&rice);
}
static size_t cg_index_put_bitmap_(uint64_t universe, const cg_list_ *list, uint8_t *out, size_t bytes) {
    cg_bit_setter_ set = { NULL, 0, 0 };
    (void)universe;
    set.out = out;
    memset(out, 0, bytes);
    for (uint64_t s = 0; s < list->segment_count; s++)
        for (uint64_t i = list->segment_start[s]; i < list->segment_start[s + 1]; i++)
            cg_bit_setter_set_(&set, s << 32 | list->index_low[i]);
    return bytes;
}
static size_t cg_index_put_elias_fano_(uint64_t universe, const cg_list_ *list, uint8_t *out, size_t bytes) {
    const unsigned low_bits = cg_elias_fano_low_bits_(universe, list->count);
    const size_t low_bytes = (size_t)cg_elias_fano_low_bytes_(universe, list->count);
    cg_bit_writer_ low = { NULL, 0, 0 };
    cg_bit_setter_ set = { NULL, 0, 0 };
    low.next = out;
    set.out = out + low_bytes;
    memset(set.out, 0, bytes - low_bytes);
    for (uint64_t s = 0; s < list->segment_count; s++) {
        for (uint64_t i = list->segment_start[s]; i < list->segment_start[s + 1]; i++) {
            const uint64_t index = s << 32 | list->index_low[i];
            if (low_bits > 32) {
                cg_bit_writer_put_(&low, index & 0xffffffffu, 32);
                cg_bit_writer_put_(&low, index >> 32 & ((1u << (low_bits - 32)) - 1u), low_bits - 32);
            } else {
                cg_bit_writer_put_(&low, index & (((uint64_t)1 << low_bits) - 1), low_bits);
            }
            cg_bit_setter_set_(&set, (index >> low_bits) + i);
        }
    }
    cg_bit_writer_flush_(&low);
    return bytes;
}
/* Writes the index section of a list of indices below universe; out has room for cg_index_bytes_. Returns its bytes. */
static size_t cg_index_put_(uint32_t code, uint64_t universe, const cg_list_ *list, uint8_t *out) {
    const size_t bytes = (size_t)cg_index_bytes_(code, universe, list->count);
    return bytes ? cg_index_coder_at_(code)->put(universe, list, out, bytes) : 0;
}

typedef struct cg_index_reader_ {
    const cg_kernels_ *kernels;
    const cg_index_coder_ *coder;
    cg_index_bits_ bits;  /* Elias-Fano or bitmap */
    cg_rice_reader_ rice; /* golomb: takes the place of bits */
    uint64_t universe, values_per_index, transformed_n;
    uint64_t block, block_pos; /* cg_index_get_per_value_: the current block, and how many of its values were read */
} cg_index_reader_;

/* At the first index of a packet whose header is info and whose index section is at p. */
static cg_index_reader_ cg_index_open_(
    const cg_kernels_ *kernels, const cg_info *info, const cg_plan_ *plan, const uint8_t *p) {
    cg_index_reader_ r;
    const uint64_t k = cg_index_count_(plan, info->k);
    r.transformed_n = plan->transformed_n;
    r.values_per_index = plan->values_per_index;
    r.universe = plan->universe;
    r.kernels = kernels;
    r.coder = cg_index_coder_at_(info->index_code);
    r.bits.bitmap = 0;
    r.bits.low_bits = 0;
    r.bits.low_part = r.bits.next_high = p;
    r.bits.end = p + info->index_bytes;
    r.bits.word = 0;
    r.bits.bit_base = (uint64_t)0 - 64;
    r.bits.read_count = 0;
    r.block = r.block_pos = 0;
    if (r.coder->open) r.coder->open(&r, k);
    return r;
}
static size_t cg_index_get_bits_(cg_index_reader_ *r, uint64_t *index, size_t count) {
    return CG_KERNEL_(r->kernels, index_get(&r->bits, index, count));
}
static size_t cg_index_get_golomb_(cg_index_reader_ *r, uint64_t *index, size_t count) {
    return cg_rice_reader_get_(&r->rice, index, count);
}
/* Up to `count` more indices, which count blocks if values_per_index is above 1; returns how many, fewer only where the
   bits run out. */
static size_t cg_index_get_(cg_index_reader_ *r, uint64_t *index, size_t count) {
    return r->coder->get(r, index, count);
}
/* What differs between codes when a section is opened, ... */
static void cg_index_open_elias_fano_(cg_index_reader_ *r, uint64_t k) {
    r->bits.low_bits = cg_elias_fano_low_bits_(r->universe, k);
    r->bits.next_high += (size_t)cg_elias_fano_low_bytes_(r->universe, k);
}
static void cg_index_open_bitmap_(cg_index_reader_ *r, uint64_t k) {
    (void)k;
    r->bits.bitmap = 1;
}
static void cg_index_open_golomb_(cg_index_reader_ *r, uint64_t k) {
    cg_rice_reader_open_(
        &r->rice, r->bits.low_part, (size_t)(r->bits.end - r->bits.low_part), cg_rice_parameter_(r->universe, k));
}
/* ... whether the bits that fill its words are zero, ... */
static int cg_index_padding_elias_fano_(const cg_index_reader_ *r, uint64_t k) {
    return cg_padding_zero_(r->bits.next_high, cg_elias_fano_high_bits_(r->universe, k)) &&
        cg_padding_zero_(r->bits.low_part, k * r->bits.low_bits);
}
static int cg_index_padding_bitmap_(const cg_index_reader_ *r, uint64_t k) {
    (void)k;
    return cg_padding_zero_(r->bits.next_high, r->universe);
}
static int cg_index_padding_golomb_(const cg_index_reader_ *r, uint64_t k) { /* cg_rice_reader_at_end_ looks at it */
    (void)r;
    (void)k;
    return 1;
}
/* ... and whether it holds k ascending indices below the universe, and no more. *next: the last + 1, 0 if k is 0. */
static int cg_index_check_bits_(cg_index_reader_ *r, uint64_t k, uint64_t *next) {
    return CG_KERNEL_(r->kernels, index_check(&r->bits, k, r->universe, next));
}
static int cg_index_check_golomb_(cg_index_reader_ *r, uint64_t k, uint64_t *next) {
    uint64_t index[512], seen = 0;
    for (*next = 0; seen < k;) {
        size_t want = (size_t)(k - seen < 512 ? k - seen : 512);
        int bad = 0;
        if (cg_index_get_(r, index, want) < want) return 0;
        for (size_t i = 0; i < want; i++) {
            bad |= index[i] < *next;
            *next = index[i] + 1;
        }
        if (bad || *next > r->universe || *next == 0) return 0;
        seen += want;
    }
    return cg_rice_reader_at_end_(&r->rice);
}
/* As cg_index_get_, but indices of values: each of a block's values has its own. */
static size_t cg_index_get_per_value_(cg_index_reader_ *r, uint64_t *index, size_t count) {
    if (r->values_per_index == 1) return cg_index_get_(r, index, count);
    for (size_t i = 0; i < count; i++) {
        if (!r->block_pos && cg_index_get_(r, &r->block, 1) == 0) return i;
        index[i] = r->block * r->values_per_index + r->block_pos;
        if (++r->block_pos == r->values_per_index || index[i] + 1 == r->transformed_n) r->block_pos = 0;
    }
    return count;
}
