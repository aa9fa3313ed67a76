/* elias: Elias gamma, delta and omega codes of levels, dense or as gaps between levels that are not zero

   Offers   cg_elias_codeword_, cg_symbol_magnitude_; dense: cg_elias_dense_table_, cg_elias_dense_get_; sparse:
            cg_elias_sparse_put_, cg_elias_sparse_get_
   Needs    base, bits
   Touches  nothing but its arguments
   Codewords of v >= 1 with L = floor(log2 v), first bits first:
     gamma   L zeros, a 1, the L low bits of v
     delta   gamma(L + 1), the L low bits of v
     omega   the groups of v, L, floor(log2 L), ... down to 2 or 3, the last one first, then a 0; a group of a number is
             a 1 and its bits below the leading one
   A decoder meets numbers that no encoder wrote: L counts as at most 16, the gamma within delta has at most 4 zeros,
   and an omega ends once it is above 16. So no codeword takes more than 33 bits. */

/* The codeword of 0 < v < 2^16, its first bit lowest, and its length. */
static uint64_t cg_elias_codeword_(uint32_t value_code, uint32_t v, unsigned *bits) {
    unsigned l = cg_log2_(v);
    uint64_t low = v - (1u << l), w;
    unsigned length;
    if (value_code == CG_VALUE_CODE_GAMMA_) {
        *bits = 2 * l + 1;
        return (low << 1 | 1) << l;
    }
    if (value_code == CG_VALUE_CODE_DELTA_) {
        w = cg_elias_codeword_(CG_VALUE_CODE_GAMMA_, l + 1, &length);
        *bits = length + l;
        return w | low << length;
    }
    for (w = 0, length = 1; v > 1; v = l) {
        l = cg_log2_(v);
        w = w << (l + 1) | (uint64_t)(v - (1u << l)) << 1 | 1;
        length += l + 1;
    }
    *bits = length;
    return w;
}
/* Reads one codeword from w, at least 34 bits of the string (0 after its end), and adds its length to *at. */
CG_INLINE_ uint32_t cg_elias_get_(uint32_t value_code, uint64_t w, size_t *at) {
    if (value_code == CG_VALUE_CODE_OMEGA_) {
        uint32_t v = 1;
        while (w & 1) {
            if (v > 16) break;
            *at += v + 1;
            w >>= 1;
            {
                uint32_t next = (1u << v) + ((uint32_t)w & ((1u << v) - 1));
                w >>= v;
                v = next;
            }
        }
        *at += 1;
        return v;
    } else {
        unsigned l = cg_ctz_(w | (uint64_t)1 << (value_code == CG_VALUE_CODE_GAMMA_ ? 16 : 4));
        uint32_t v;
        w >>= l + 1;
        v = (1u << l) + ((uint32_t)w & ((1u << l) - 1));
        *at += 2 * l + 1;
        if (value_code == CG_VALUE_CODE_GAMMA_) return v;
        w >>= l;
        l = v - 1 < 16 ? v - 1 : 16;
        *at += l;
        return (1u << l) + ((uint32_t)w & ((1u << l) - 1));
    }
}
/* The symbol of a level, which is clamped to the alphabet. */
CG_INLINE_ uint8_t cg_symbol_from_level_(const cg_alphabet_ *a, unsigned negative, uint32_t level) {
    unsigned max_level = negative ? a->zero_symbol : (unsigned)a->max_symbol - a->zero_symbol;
    if (level > max_level) level = max_level;
    return (uint8_t)(negative ? a->zero_symbol - level : a->zero_symbol + level);
}
/* |level| of a symbol */
CG_INLINE_ uint32_t cg_symbol_magnitude_(const cg_alphabet_ *a, unsigned s) {
    return s < a->zero_symbol ? a->zero_symbol - s : s - a->zero_symbol;
}

/* Dense: for each symbol a sign bit if there are signs (1: negative), then the codeword of |level| + 1. table[symbol]
   is as cg_bitstream_put_symbols_ takes it; three entries have at most 56 bits. */
static void cg_elias_dense_table_(uint32_t value_code, const cg_alphabet_ *a, uint32_t *table) {
    for (unsigned s = 0; s <= a->max_symbol; s++) {
        unsigned bits;
        uint32_t w = (uint32_t)cg_elias_codeword_(value_code, cg_symbol_magnitude_(a, s) + 1, &bits);
        table[s] = a->zero_symbol ? (w << 1 | (s < a->zero_symbol)) << 8 | (bits + 1) : w << 8 | bits;
    }
}
/* Sparse: for each symbol that is not zero the codeword of its distance from the last such one (the first: from -1),
   the sign bit if there are signs, the codeword of |level|. Entries of both tables are bits << 8 | length:
   value[symbol] of sign and level, gaps[1..63] of distances. */
static void cg_elias_sparse_table_(uint32_t value_code, const cg_alphabet_ *a, uint32_t *value, uint32_t *gaps) {
    unsigned bits;
    for (unsigned g = 1; g < 64; g++) {
        gaps[g] = (uint32_t)cg_elias_codeword_(value_code, g, &bits) << 8;
        gaps[g] |= bits;
    }
    for (unsigned s = 0; s <= a->max_symbol; s++) {
        uint32_t v;
        if (s == a->zero_symbol) {
            value[s] = 0;
            continue;
        }
        v = (uint32_t)cg_elias_codeword_(value_code, cg_symbol_magnitude_(a, s), &bits);
        value[s] = a->zero_symbol ? (v << 1 | (s < a->zero_symbol)) << 8 | (bits + 1) : v << 8 | bits;
    }
}
/* Writes n <= CG_PIECE_SYMBOLS_ symbols; returns the bits written, or `limit` if they would be as many or more. Bytes
   up to end may be scribbled on. */
static size_t cg_elias_sparse_put_(uint32_t value_code, const cg_alphabet_ *a, const uint8_t *symbols, size_t n,
    uint8_t *out, uint8_t *end, size_t limit) {
    uint32_t value[256], gaps[64];
    uint16_t position[1024];
    const uint64_t zeros = a->zero_symbol * (uint64_t)0x0101010101010101u;
    cg_bitstream_ w = cg_bitstream_open_(out, end);
    size_t next = 0, total = 0;
    cg_elias_sparse_table_(value_code, a, value, gaps);
    for (size_t from = 0; from < n; from += 1024) {
        const size_t to = cg_min_(from + 1024, n);
        size_t i = from, many = 0;
        for (; i + 8 <= to; i += 8) {
            if (cg_get64_(symbols + i) == zeros) continue;
            for (size_t j = i; j < i + 8; j++) {
                position[many] = (uint16_t)j;
                many += symbols[j] != a->zero_symbol;
            }
        }
        for (; i < to; i++)
            if (symbols[i] != a->zero_symbol) position[many++] = (uint16_t)i;
        for (i = 0; i < many; i++) {
            const size_t gap = position[i] + 1u - next;
            const uint32_t v = value[symbols[position[i]]];
            uint64_t g;
            unsigned bits;
            if (CG_LIKELY_(gap < 64)) {
                g = gaps[gap] >> 8;
                bits = gaps[gap] & 63;
            } else g = cg_elias_codeword_(value_code, (uint32_t)gap, &bits);
            g |= (uint64_t)(v >> 8) << bits;
            bits += v & 63;
            total += bits;
            if (total >= limit) return limit;
            cg_bitstream_put_(&w, g, bits);
            next = position[i] + 1u;
        }
    }
    return total;
}
#define CG_ELIAS_SPARSE_TABLE_BITS_ 10u
#define CG_ELIAS_SPARSE_TABLE_SIZE_ 1024u
/* n symbols from `bits` bits; whatever they hold, symbols are those of the alphabet. What the bits do not reach is
   zero. */
CG_NOINLINE_ void cg_elias_sparse_get_(
    uint32_t value_code, const cg_alphabet_ *a, const uint8_t *in, size_t bits, size_t n, uint8_t *symbols) {
    /* table[next 10 bits]: symbol, gap << 8, length of both << 24; 0: longer than 10 bits */
    uint32_t value[256], gaps[64], table[CG_ELIAS_SPARSE_TABLE_SIZE_];
    const int use_table = bits >= 4096; /* else the table costs more than it saves */
    size_t at = 0, position = (size_t)0 - 1;
    memset(symbols, a->zero_symbol, n);
    if (use_table) {
        memset(table, 0, sizeof table);
        cg_elias_sparse_table_(value_code, a, value, gaps);
        for (unsigned g = 1; g < 64; g++)
            for (unsigned s = 0, l; s <= a->max_symbol; s++) {
                if (s == a->zero_symbol || (l = (gaps[g] & 63) + (value[s] & 63)) > CG_ELIAS_SPARSE_TABLE_BITS_)
                    continue;
                for (uint32_t w = gaps[g] >> 8 | value[s] >> 8 << (gaps[g] & 63); w < CG_ELIAS_SPARSE_TABLE_SIZE_;
                     w += 1u << l)
                    table[w] = s | g << 8 | l << 24;
            }
    }
    while (at < bits) {
        unsigned negative = 0;
        uint64_t w;
        while (use_table && at + 64 <= bits) {
            uint32_t e = 0;
            w = cg_get64_(in + (at >> 3)) >> (at & 7);
            for (unsigned j = 0; j < 5; j++) {
                e = table[w & (CG_ELIAS_SPARSE_TABLE_SIZE_ - 1)];
                if (!e) break;
                position += e >> 8 & 255;
                if (position >= n) return;
                symbols[position] = (uint8_t)e;
                w >>= e >> 24;
                at += e >> 24;
            }
            if (!e) break;
        }
        position += cg_elias_get_(value_code, cg_bits_peek_(in, bits, at), &at);
        if (position >= n) return;
        w = cg_bits_peek_(in, bits, at);
        if (a->zero_symbol) {
            negative = w & 1;
            w >>= 1;
            at++;
        }
        symbols[position] = cg_symbol_from_level_(a, negative, cg_elias_get_(value_code, w, &at));
    }
}
/* One symbol from w, as cg_elias_get_. */
CG_INLINE_ uint8_t cg_elias_dense_get_one_(uint32_t value_code, const cg_alphabet_ *a, uint64_t w, size_t *at) {
    unsigned negative = 0;
    if (a->zero_symbol) {
        negative = w & 1;
        w >>= 1;
        ++*at;
    }
    return cg_symbol_from_level_(a, negative, cg_elias_get_(value_code, w, at) - 1);
}
#define CG_ELIAS_DENSE_TABLE_BITS_ 10u
#define CG_ELIAS_DENSE_TABLE_SIZE_ 1024u
/* n symbols from `bits` bits; whatever they hold, symbols are those of the alphabet. What the bits do not reach is
   zero. */
CG_NOINLINE_ void cg_elias_dense_get_(
    uint32_t value_code, const cg_alphabet_ *a, const uint8_t *in, size_t bits, size_t n, uint8_t *symbols) {
    /* table[next 10 bits]: one or two symbols in the low bytes, how many << 16, their length << 24; 0: longer than 10
       */
    uint32_t one[256], table[CG_ELIAS_DENSE_TABLE_SIZE_];
    size_t at = 0, i = 0;
    if (n >= 1024) {
        memset(table, 0, sizeof table);
        cg_elias_dense_table_(value_code, a, one);
        for (unsigned s = 0; s <= a->max_symbol; s++)
            if ((one[s] & 255) <= CG_ELIAS_DENSE_TABLE_BITS_)
                for (uint32_t w = one[s] >> 8; w < CG_ELIAS_DENSE_TABLE_SIZE_; w += 1u << (one[s] & 255))
                    table[w] = s | 1u << 16 | (one[s] & 255) << 24;
        /* downwards, as the entry of the second symbol lies lower, and must still be of a single one */
        for (uint32_t w = CG_ELIAS_DENSE_TABLE_SIZE_; w-- > 0;) {
            uint32_t e = table[w], f = table[w >> (e >> 24)];
            if (e && f && (e >> 24) + (f >> 24) <= CG_ELIAS_DENSE_TABLE_BITS_)
                table[w] = e + ((f & 255) << 8) + (1u << 16) + (f & 0xff000000u);
        }
        while (n - i >= 10 && at + 64 <= bits) {
            uint64_t w = cg_get64_(in + (at >> 3)) >> (at & 7);
            for (unsigned j = 0; j < 5; j++) {
                uint32_t e = table[w & (CG_ELIAS_DENSE_TABLE_SIZE_ - 1)];
                if (!e) {
                    symbols[i++] = cg_elias_dense_get_one_(value_code, a, cg_bits_peek_(in, bits, at), &at);
                    break;
                }
                cg_put16_(symbols + i, e & 0xffff);
                i += e >> 16 & 255;
                w >>= e >> 24;
                at += e >> 24;
            }
        }
    }
    for (; i < n && at < bits; i++)
        symbols[i] = cg_elias_dense_get_one_(value_code, a, cg_bits_peek_(in, bits, at), &at);
    memset(symbols + i, a->zero_symbol, n - i);
}
