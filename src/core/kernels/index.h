/* index: kernels that read and check index sets as Elias-Fano codes and bitmaps

   Offers   index_get, index_check
   Needs    base, table
   Touches  the reader
   There is no vector in them: what an ISA adds are instructions that count and find bits. */

/* index_get: up to `count` more indices; returns how many, fewer only where the bits run out. */
CG_INLINE_ size_t cg_index_get_any_(cg_index_bits_ *r, uint64_t *index, size_t count) {
    uint64_t word = r->word, base = r->bit_base, i = r->read_count, at = r->read_count * r->low_bits;
    const uint64_t mask = ((uint64_t)1 << r->low_bits) - 1;
    const uint8_t *next = r->next_high;
    size_t done = 0;
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
                } else { /* among the last 8 bytes of at least 8: high bits are words that follow those of low parts */
                    const unsigned beyond = (unsigned)(8 - (r->end - p)) * 8;
                    low = beyond < 64 && r->end - r->low_part >= 8 ? cg_get64_(r->end - 8) >> beyond >> shift : 0;
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
static size_t cg_index_get_scalar_(cg_index_bits_ *r, uint64_t *index, size_t count) {
    return cg_index_get_any_(r, index, count);
}
#if CG_VECTOR_
CG_VECTOR_FN_ size_t cg_index_get_simd_(cg_index_bits_ *r, uint64_t *index, size_t count) {
    return cg_index_get_any_(r, index, count);
}
#endif

/* index_check: whether a reader that has not read yet holds k ascending indices below universe, and no more. *next: the
   last plus 1, 0 if k is 0; unspecified if they are not. */
static int cg_index_check_scalar_(cg_index_bits_ *r, uint64_t k, uint64_t universe, uint64_t *next) {
    uint64_t index[512], seen = 0, extra;
    for (*next = 0; seen < k;) {
        size_t want = (size_t)(k - seen < 512 ? k - seen : 512);
        int bad = 0;
        if (cg_index_get_any_(r, index, want) < want) return 0;
        for (size_t i = 0; i < want; i++) {
            bad |= index[i] < *next;
            *next = index[i] + 1;
        }
        if (bad || *next > universe || *next == 0) return 0;
        seen += want;
    }
    return cg_index_get_any_(r, &extra, 1) == 0;
}
#if CG_VECTOR_
/* Elias-Fano without building the indices: where a high bit directly follows another, the high parts are equal, and the
   low parts must ascend. Requires k > 0; low_bits <= 28, so that two low parts are within one load; and at least 8
   bytes of high bits, so that no load ends beyond them. */
CG_VECTOR_FN_ int cg_index_check_simd_(cg_index_bits_ *r, uint64_t k, uint64_t universe, uint64_t *next) {
    const uint64_t mask = ((uint64_t)1 << r->low_bits) - 1;
    uint64_t i = 0, carry = 0, high = 0, at, low_parts;
    int bad = 0;
    if (!k || r->bitmap || r->low_bits > 28 || r->end - r->next_high < 8)
        return cg_index_check_scalar_(r, k, universe, next);
    for (size_t byte = 0, bytes = (size_t)(r->end - r->next_high); byte < bytes; byte += 8) {
        const uint64_t word = bytes - byte >= 8 ? cg_get64_(r->next_high + byte) : cg_get32_(r->next_high + byte),
                       many = (uint64_t)__builtin_popcountll(word);
        if (many > k - i) return 0;
        for (uint64_t adjacent = word & (word << 1 | carry); adjacent; adjacent &= adjacent - 1) {
            at = (i + (uint64_t)__builtin_popcountll(word & ~adjacent & (adjacent - 1)) - 1) * r->low_bits;
            low_parts = cg_get64_(r->low_part + (size_t)(at >> 3)) >> (at & 7);
            bad |= (low_parts & mask) >= (low_parts >> r->low_bits & mask);
        }
        if (word) high = 8 * (uint64_t)byte + cg_log2_(word);
        carry = word >> 63;
        i += many;
    }
    if (bad || i < k || high - (k - 1) > universe >> r->low_bits) return 0;
    at = (k - 1) * r->low_bits;
    low_parts = 0;
    for (unsigned b = 0; b < 5; b++) low_parts |= (uint64_t)r->low_part[(size_t)(at >> 3) + b] << 8 * b;
    *next = ((high - (k - 1)) << r->low_bits | (low_parts >> (at & 7) & mask)) + 1;
    return *next <= universe;
}
#endif
