/* indices: index sets as Elias-Fano, bitmap or Golomb-Rice codes, written from a list and read in batches

   Offers   cg_index_put_, cg_index_reader_ with cg_index_open_, cg_index_get_ and cg_index_get_per_value_
   Needs    base, kernels/dispatch, codes/golomb, plan, packet (sizes), select/list
   Touches  the index section that is written; the reader
   Reading is safe on any bytes: a reader never leaves the section, and returns fewer indices where the bits run out.
   Whether indices ascend and are in range is cg_index_check_'s business. */

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
/* Writes the index section of a list of indices below universe; out has room for cg_index_bytes_. Returns its bytes. */
static size_t cg_index_put_(uint32_t code, uint64_t universe, const cg_list_ *list, uint8_t *out) {
    unsigned low_bits = cg_elias_fano_low_bits_(universe, list->count);
    cg_bit_writer_ low = { NULL, 0, 0 };
    cg_bit_setter_ set = { NULL, 0, 0 };
    cg_rice_writer_ rice;
    uint8_t *end = out + (size_t)cg_index_bytes_(code, universe, list->count);
    int bitmap = code == CG_CODE_BITMAP;
    if (out == end) return 0;
    if (code == CG_CODE_GOLOMB) {
        cg_rice_writer_open_(&rice, out, cg_rice_parameter_(universe, list->count));
        for (uint64_t s = 0; s < list->segment_count; s++)
            for (uint64_t i = list->segment_start[s]; i < list->segment_start[s + 1]; i++)
                cg_rice_writer_put_(&rice, s << 32 | list->index_low[i]);
        return cg_rice_writer_close_(&rice);
    }
    low.next = out;
    set.out = bitmap ? out : out + (size_t)cg_elias_fano_low_bytes_(universe, list->count);
    memset(set.out, 0, (size_t)(end - set.out));
    for (uint64_t s = 0; s < list->segment_count; s++) {
        for (uint64_t i = list->segment_start[s]; i < list->segment_start[s + 1]; i++) {
            uint64_t index = s << 32 | list->index_low[i];
            if (bitmap) {
                cg_bit_setter_set_(&set, index);
                continue;
            }
            if (low_bits > 32) {
                cg_bit_writer_put_(&low, index & 0xffffffffu, 32);
                cg_bit_writer_put_(&low, index >> 32 & ((1u << (low_bits - 32)) - 1u), low_bits - 32);
            } else {
                cg_bit_writer_put_(&low, index & (((uint64_t)1 << low_bits) - 1), low_bits);
            }
            cg_bit_setter_set_(&set, (index >> low_bits) + i);
        }
    }
    if (!bitmap) cg_bit_writer_flush_(&low);
    return (size_t)(end - out);
}

typedef struct cg_index_reader_ {
    const cg_kernels_ *kernels;
    cg_index_bits_ bits; /* Elias-Fano or bitmap */
    int golomb;          /* 1: rice takes the place of bits */
    cg_rice_reader_ rice;
    uint64_t universe, values_per_index, transformed_n;
    uint64_t block, block_pos; /* cg_index_get_per_value_: the current block, and how many of its values were read */
} cg_index_reader_;

/* At the first index of a packet whose header is info and whose index section is at p. */
static cg_index_reader_ cg_index_open_(const cg_info *info, const cg_plan_ *plan, const uint8_t *p) {
    cg_index_reader_ r;
    const uint64_t k = cg_index_count_(plan, info->k);
    r.transformed_n = plan->transformed_n;
    r.values_per_index = plan->values_per_index;
    r.universe = plan->universe;
    r.kernels = cg_kernels_now_();
    r.bits.bitmap = info->index_code == CG_CODE_BITMAP;
    r.golomb = info->index_code == CG_CODE_GOLOMB;
    r.bits.low_bits = r.bits.bitmap || r.golomb ? 0 : cg_elias_fano_low_bits_(r.universe, k);
    r.bits.low_part = p;
    r.bits.next_high = r.bits.bitmap || r.golomb ? p : p + (size_t)cg_elias_fano_low_bytes_(r.universe, k);
    r.bits.end = p + info->index_bytes;
    r.bits.word = 0;
    r.bits.bit_base = (uint64_t)0 - 64;
    r.bits.read_count = 0;
    r.block = r.block_pos = 0;
    if (r.golomb) cg_rice_reader_open_(&r.rice, p, info->index_bytes, cg_rice_parameter_(r.universe, k));
    return r;
}
/* Up to `count` more indices, which count blocks if values_per_index is above 1; returns how many, fewer only where the
   bits run out. */
static size_t cg_index_get_(cg_index_reader_ *r, uint64_t *index, size_t count) {
    return r->golomb ? cg_rice_reader_get_(&r->rice, index, count) : r->kernels->index_get(&r->bits, index, count);
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
