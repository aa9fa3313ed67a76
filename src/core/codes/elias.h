/* ---- Elias codes of v >= 1 with L = floor(log2 v) gamma   L zeros, a 1, the L low bits of v delta   gamma(L +
   1), the L low bits of v omega   the groups of v, L, floor(log2 L) ... down to 2 or 3, the last one first; then a
   0. A group is a 1 and the low bits. A decoder meets numbers that no encoder wrote: L counts as at most 16, the
   gamma in delta has at most 4 zeros, and an omega ends once it is above 16. So it never takes more than 33 bits. */

static uint64_t cg_elias_codeword_(uint32_t code, uint32_t v, unsigned *bits) { /* 0 < v < 2^16 */
    unsigned l = cg_log2_(v);
    uint64_t low = v - (1u << l), w;
    unsigned have;
    if (code == CG_VALUE_CODE_GAMMA_) {
        *bits = 2 * l + 1;
        return (low << 1 | 1) << l;
    }
    if (code == CG_VALUE_CODE_DELTA_) {
        w = cg_elias_codeword_(CG_VALUE_CODE_GAMMA_, l + 1, &have);
        *bits = have + l;
        return w | low << have;
    }
    for (w = 0, have = 1; v > 1; v = l) {
        l = cg_log2_(v);
        w = w << (l + 1) | (uint64_t)(v - (1u << l)) << 1 | 1;
        have += l + 1;
    }
    *bits = have;
    return w;
}
CG_INLINE_ uint32_t cg_elias_get_(uint32_t code, uint64_t w, size_t *at) { /* w: at least 34 bits */
    if (code == CG_VALUE_CODE_OMEGA_) {
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
        unsigned l = cg_ctz_(w | (uint64_t)1 << (code == CG_VALUE_CODE_GAMMA_ ? 16 : 4));
        uint32_t v;
        w >>= l + 1;
        v = (1u << l) + ((uint32_t)w & ((1u << l) - 1));
        *at += 2 * l + 1;
        if (code == CG_VALUE_CODE_GAMMA_) return v;
        w >>= l;
        l = v - 1 < 16 ? v - 1 : 16;
        *at += l;
        return (1u << l) + ((uint32_t)w & ((1u << l) - 1));
    }
}
CG_INLINE_ uint8_t cg_symbol_from_level_(const cg_alphabet_ *a, unsigned negative, uint32_t level) {
    unsigned most = negative ? a->zero_symbol : (unsigned)a->max_symbol - a->zero_symbol;
    if (level > most) level = most;
    return (uint8_t)(negative ? a->zero_symbol - level : a->zero_symbol + level);
}
CG_INLINE_ uint32_t cg_symbol_magnitude_(const cg_alphabet_ *a, unsigned s) {
    return s < a->zero_symbol ? a->zero_symbol - s : s - a->zero_symbol;
}

/* Dense: for each symbol a sign bit if there are signs (1 = negative) and |level| + 1. */
static void cg_elias_dense_table_(uint32_t code, const cg_alphabet_ *a, uint32_t *table) {
    for (unsigned s = 0; s <= a->max_symbol; s++) {
        unsigned bits;
        uint32_t w = (uint32_t)cg_elias_codeword_(code, cg_symbol_magnitude_(a, s) + 1, &bits);
        table[s] = a->zero_symbol ? (w << 1 | (s < a->zero_symbol)) << 8 | (bits + 1) : w << 8 | bits;
    }
}
/* Sparse: for each symbol that is not zero its distance from the last such (from -1 at first), the sign bit,
   |level|. */
static void cg_elias_sparse_table_(
    uint32_t code, const cg_alphabet_ *a, uint32_t *value, uint32_t *gaps /* of 1..63 */) {
    unsigned bits;
    for (unsigned g = 1; g < 64; g++) {
        gaps[g] = (uint32_t)cg_elias_codeword_(code, g, &bits) << 8;
        gaps[g] |= bits;
    }
    for (unsigned s = 0; s <= a->max_symbol; s++) {
        uint32_t v;
        if (s == a->zero_symbol) {
            value[s] = 0;
            continue;
        }
        v = (uint32_t)cg_elias_codeword_(code, cg_symbol_magnitude_(a, s), &bits);
        value[s] = a->zero_symbol ? (v << 1 | (s < a->zero_symbol)) << 8 | (bits + 1) : v << 8 | bits;
    }
}
/* The bits it took, or `limit` if that is not enough. */
static size_t cg_elias_sparse_put_(
    uint32_t code, const cg_alphabet_ *a, const uint8_t *symbols, size_t n, uint8_t *out, uint8_t *end, size_t limit) {
    uint32_t value[256], gaps[64];
    uint16_t place[1024];
    const uint64_t zeros = a->zero_symbol * (uint64_t)0x0101010101010101u;
    cg_bitstream_ w = cg_bitstream_open_(out, end);
    size_t next = 0, total = 0;
    cg_elias_sparse_table_(code, a, value, gaps);
    for (size_t from = 0; from < n; from += 1024) {
        const size_t to = cg_min_(from + 1024, n);
        size_t i = from, many = 0;
        for (; i + 8 <= to; i += 8) {
            if (cg_get64_(symbols + i) == zeros) continue;
            for (size_t j = i; j < i + 8; j++) {
                place[many] = (uint16_t)j;
                many += symbols[j] != a->zero_symbol;
            }
        }
        for (; i < to; i++)
            if (symbols[i] != a->zero_symbol) place[many++] = (uint16_t)i;
        for (i = 0; i < many; i++) {
            const size_t gap = place[i] + 1u - next;
            const uint32_t v = value[symbols[place[i]]];
            uint64_t g;
            unsigned bits;
            if (CG_LIKELY_(gap < 64)) {
                g = gaps[gap] >> 8;
                bits = gaps[gap] & 63;
            } else g = cg_elias_codeword_(code, (uint32_t)gap, &bits);
            g |= (uint64_t)(v >> 8) << bits;
            bits += v & 63;
            total += bits;
            if (total >= limit) return limit;
            cg_bitstream_put_(&w, g, bits);
            next = place[i] + 1u;
        }
    }
    return total;
}
#define CG_ELIAS_SPARSE_TABLE_BITS_ 10u
#define CG_ELIAS_SPARSE_TABLE_SIZE_ 1024u
CG_NOINLINE_ void cg_elias_sparse_get_(
    uint32_t code, const cg_alphabet_ *a, const uint8_t *in, size_t bits, size_t n, uint8_t *symbols) {
    /* symbol, gap, bits of both from bit 24 on; 0: too long for here */
    uint32_t value[256], gaps[64], table[CG_ELIAS_SPARSE_TABLE_SIZE_];
    const int quick = bits >= 4096; /* pays for the table */
    size_t at = 0, place = (size_t)0 - 1;
    memset(symbols, a->zero_symbol, n);
    if (quick) {
        memset(table, 0, sizeof table);
        cg_elias_sparse_table_(code, a, value, gaps);
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
        while (quick && at + 64 <= bits) {
            uint32_t e = 0;
            w = cg_get64_(in + (at >> 3)) >> (at & 7);
            for (unsigned j = 0; j < 5; j++) {
                e = table[w & (CG_ELIAS_SPARSE_TABLE_SIZE_ - 1)];
                if (!e) break;
                place += e >> 8 & 255;
                if (place >= n) return;
                symbols[place] = (uint8_t)e;
                w >>= e >> 24;
                at += e >> 24;
            }
            if (!e) break;
        }
        place += cg_elias_get_(code, cg_bits_peek_(in, bits, at), &at);
        if (place >= n) return;
        w = cg_bits_peek_(in, bits, at);
        if (a->zero_symbol) {
            negative = w & 1;
            w >>= 1;
            at++;
        }
        symbols[place] = cg_symbol_from_level_(a, negative, cg_elias_get_(code, w, &at));
    }
}
CG_INLINE_ uint8_t cg_elias_dense_get_one_(uint32_t code, const cg_alphabet_ *a, uint64_t w, size_t *at) {
    unsigned negative = 0;
    if (a->zero_symbol) {
        negative = w & 1;
        w >>= 1;
        ++*at;
    }
    return cg_symbol_from_level_(a, negative, cg_elias_get_(code, w, at) - 1);
}
#define CG_ELIAS_DENSE_TABLE_BITS_ 10u
#define CG_ELIAS_DENSE_TABLE_SIZE_ 1024u
CG_NOINLINE_ void cg_elias_dense_get_(
    uint32_t code, const cg_alphabet_ *a, const uint8_t *in, size_t bits, size_t n, uint8_t *symbols) {
    /* one or two symbols in the low bytes, how many, their length; 0: too long for here */
    uint32_t one[256], table[CG_ELIAS_DENSE_TABLE_SIZE_];
    size_t at = 0, i = 0;
    if (n >= 1024) {
        memset(table, 0, sizeof table);
        cg_elias_dense_table_(code, a, one);
        for (unsigned s = 0; s <= a->max_symbol; s++)
            if ((one[s] & 255) <= CG_ELIAS_DENSE_TABLE_BITS_)
                for (uint32_t w = one[s] >> 8; w < CG_ELIAS_DENSE_TABLE_SIZE_; w += 1u << (one[s] & 255))
                    table[w] = s | 1u << 16 | (one[s] & 255) << 24;
        /* downwards, as what follows lies lower and must still be single */
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
                    symbols[i++] = cg_elias_dense_get_one_(code, a, cg_bits_peek_(in, bits, at), &at);
                    break;
                }
                cg_put16_(symbols + i, e & 0xffff);
                i += e >> 16 & 255;
                w >>= e >> 24;
                at += e >> 24;
            }
        }
    }
    for (; i < n && at < bits; i++) symbols[i] = cg_elias_dense_get_one_(code, a, cg_bits_peek_(in, bits, at), &at);
    memset(symbols + i, a->zero_symbol, n - i);
}
