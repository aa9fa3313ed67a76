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
    const uint8_t *low_part;  /* Elias-Fano: where the low parts begin; they end where the high bits begin */
    const uint8_t *next_high; /* next unread word of the high bits, or of the bitmap */
    const uint8_t *end;       /* of the section */
    uint64_t word;            /* unread bits of the current 64-bit word */
    uint64_t bit_base;        /* the number of its first bit; 2^64 - 64 before the first word */
    uint64_t read_count;      /* indices read */
    unsigned low_bits;        /* Elias-Fano: bits of a low part */
    int bitmap, golomb;       /* the code, Elias-Fano if neither */
    int avx2;                 /* 1: use instructions of that set */
    cg_rice_reader_ rice;     /* golomb: takes the place of all above */
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
    r.bitmap = info->index_code == CG_CODE_BITMAP;
    r.golomb = info->index_code == CG_CODE_GOLOMB;
    r.avx2 = cg_isa_used() == CG_ISA_AVX2;
    r.low_bits = r.bitmap || r.golomb ? 0 : cg_elias_fano_low_bits_(r.universe, k);
    r.low_part = p;
    r.next_high = r.bitmap || r.golomb ? p : p + (size_t)cg_elias_fano_low_bytes_(r.universe, k);
    r.end = p + info->index_bytes;
    r.word = 0;
    r.bit_base = (uint64_t)0 - 64;
    r.read_count = 0;
    r.block = r.block_pos = 0;
    if (r.golomb) cg_rice_reader_open_(&r.rice, p, info->index_bytes, cg_rice_parameter_(r.universe, k));
    return r;
}
/* Up to `count` more indices, which count blocks if values_per_index is above 1; returns how many, fewer only where the
   bits run out. Compiled twice, see below. */
CG_INLINE_ size_t cg_index_get_body_(cg_index_reader_ *r, uint64_t *index, size_t count) {
    uint64_t word = r->word, base = r->bit_base, i = r->read_count, at = r->read_count * r->low_bits;
    const uint64_t mask = ((uint64_t)1 << r->low_bits) - 1;
    const uint8_t *next = r->next_high;
    size_t done = 0;
    if (r->golomb) return cg_rice_reader_get_(&r->rice, index, count);
    /* Elias-Fano, while a low part can be loaded as 8 bytes and high bits as whole words */
    while (!r->bitmap && r->low_bits <= 56 && done < count &&
        (uint64_t)(r->end - r->low_part) > (at + 64 * r->low_bits) / 8 + 8) {
        if (!word) {
            if (r->end - next < 8) break;
            word = cg_get64_(next);
            next += 8;
            base += 64;
        }
        for (; word && done < count; word &= word - 1, at += r->low_bits, i++)
            index[done++] = (base + cg_ctz_(word) - i) << r->low_bits |
                (cg_get64_(r->low_part + (size_t)(at >> 3)) >> (at & 7) & mask);
    }
    while (done < count) {
        while (!word) {
            if (next >= r->end) goto out;
            if (r->end - next >= 8) word = cg_get64_(next);
            else word = cg_get32_(next); /* sections are whole u32 words */
            next += r->end - next >= 8 ? 8 : 4;
            base += 64;
        }
        {
            uint64_t h = base + cg_ctz_(word);
            word &= word - 1;
            if (!r->bitmap) h -= i;
            if (r->low_bits) {
                const uint8_t *p = r->low_part + (size_t)(at >> 3);
                unsigned shift = (unsigned)(at & 7);
                uint64_t low;
                if (CG_LIKELY_(r->end - p > 8)) {
                    low = cg_get64_(p) >> shift;
                    if (r->low_bits + shift > 64) low |= (uint64_t)p[8] << (64 - shift);
                } else { /* among the last 8 bytes; low_bits + shift <= 64, as high bits follow the low parts */
                    low = 0;
                    for (unsigned b = 0; b < 8 && p + b < r->end; b++) low |= (uint64_t)p[b] << 8 * b;
                    low >>= shift;
                }
                h = h << r->low_bits | (low & mask);
                at += r->low_bits;
            }
            index[done++] = h;
            i++;
        }
    }
out:
    r->word = word;
    r->bit_base = base;
    r->read_count = i;
    r->next_high = next;
    return done;
}
#if CG_AVX2_
CG_TARGET_AVX2_ static size_t cg_index_get_avx2_(cg_index_reader_ *r, uint64_t *index, size_t count) {
    return cg_index_get_body_(r, index, count);
}
#endif
static size_t cg_index_get_(cg_index_reader_ *r, uint64_t *index, size_t count) {
#if CG_AVX2_
    if (r->avx2) return cg_index_get_avx2_(r, index, count); /* bmi: fewer instructions for the same result */
#endif
    return cg_index_get_body_(r, index, count);
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
