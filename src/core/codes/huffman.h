/* huffman: canonical Huffman codes of at most 11 bits, for pieces of up to CG_PIECE_SYMBOLS_ symbols

   Offers   cg_huffman_plan_, cg_huffman_put_ (in this order); cg_huffman_header_get_, cg_huffman_get_ (in this order)
   Needs    base, bits
   Touches  nothing but its arguments
   A piece is
     min, max           u8 each, the least and the greatest symbol in use; where they are equal, nothing follows
     lengths            4 bits for each of min..max, the even ones low; 0: not in use; filled up to a byte
     size[3]            u16: bytes of the first three strings
     4 strings          codewords of (n+3)/4 symbols each, the last has what is left; filled up to a byte
   A string that is too short reads on into what follows it, and 0 after the piece: every input decodes to something. */

#define CG_HUFFMAN_MAX_BITS_ 11u
#define CG_HUFFMAN_TABLE_SIZE_ 2048u /* 1 << CG_HUFFMAN_MAX_BITS_ */

typedef struct cg_huffman_ {
    unsigned min_symbol, max_symbol; /* in use */
    uint8_t length[256];             /* bits of the codeword of each symbol min..max; 0: not in use */
    size_t stream_start[5];          /* bytes from the start of the piece to the four strings, and to its end */
} cg_huffman_;

/* length[symbol] of `used` >= 2 symbols, given as key = count << 8 | symbol, which are sorted on the way; counts add
   up to less than 2^16. Moffat and Katajainen's method in place, then the tree is cut at 11: a leaf that is too deep
   becomes the brother of a leaf that goes one down, which frees one place of the last row each time. */
static void cg_huffman_lengths_(uint32_t *key, unsigned used, uint8_t *length) {
    static const uint8_t gaps[5] = { 57, 23, 10, 4, 1 };
    uint16_t a[256];
    uint32_t num[CG_HUFFMAN_MAX_BITS_ + 1] = { 0 }, kraft = 0;
    unsigned root = 0, leaf = 2, depth = 0, open = 1, at = 0;
    for (unsigned g = 0; g < 5; g++)
        for (unsigned i = gaps[g]; i < used; i++) {
            uint32_t k = key[i];
            unsigned j = i;
            for (; j >= gaps[g] && key[j - gaps[g]] > k; j -= gaps[g]) key[j] = key[j - gaps[g]];
            key[j] = k;
        }
    for (unsigned i = 0; i < used; i++) a[i] = (uint16_t)(key[i] >> 8);
    a[0] = (uint16_t)(a[0] + a[1]);
    for (unsigned next = 1; next + 1 < used; next++) {
        uint32_t sum = 0;
        for (unsigned twice = 0; twice < 2; twice++) {
            if (root < next && (leaf >= used || a[root] < a[leaf])) {
                sum += a[root];
                a[root++] = (uint16_t)next;
            } else sum += a[leaf++];
        }
        a[next] = (uint16_t)sum;
    }
    a[used - 2] = 0;
    for (unsigned i = used - 2; i-- > 0;) a[i] = (uint16_t)(a[a[i]] + 1); /* depth of the inner nodes */
    for (root = used - 1; open; depth++) {
        unsigned inner = 0;
        while (root && a[root - 1] == depth) {
            inner++;
            root--;
        }
        num[depth < CG_HUFFMAN_MAX_BITS_ ? depth : CG_HUFFMAN_MAX_BITS_] += open - inner;
        open = 2 * inner;
    }
    for (unsigned l = 1; l <= CG_HUFFMAN_MAX_BITS_; l++) kraft += num[l] << (CG_HUFFMAN_MAX_BITS_ - l);
    for (; kraft > CG_HUFFMAN_TABLE_SIZE_; kraft--) {
        unsigned l = CG_HUFFMAN_MAX_BITS_ - 1;
        while (!num[l]) l--;
        num[l]--;
        num[l + 1] += 2;
        num[CG_HUFFMAN_MAX_BITS_]--;
    }
    for (unsigned l = CG_HUFFMAN_MAX_BITS_; l; l--)
        for (; num[l]; num[l]--) length[key[at++] & 255] = (uint8_t)l;
}
/* The codeword of l bits that follows in canonical order. The first bit of a codeword is its lowest: so this is an
   addition of 1 whose carry goes down. */
CG_INLINE_ unsigned cg_huffman_next_code_(unsigned code, unsigned l) {
    unsigned bit = 1u << (l - 1);
    while (code & bit) bit >>= 1;
    return bit ? (code & (bit - 1)) | bit : 0;
}
/* num[l]: codewords of l bits, l = 0..11; order: the symbols in use by length, then by symbol. */
static void cg_huffman_canonical_order_(const cg_huffman_ *h, unsigned *num, uint8_t *order) {
    unsigned at[CG_HUFFMAN_MAX_BITS_ + 1];
    for (unsigned l = 0; l <= CG_HUFFMAN_MAX_BITS_; l++) num[l] = 0;
    for (unsigned s = h->min_symbol; s <= h->max_symbol; s++) num[h->length[s]]++;
    at[0] = 0;
    at[1] = 0;
    for (unsigned l = 2; l <= CG_HUFFMAN_MAX_BITS_; l++) at[l] = at[l - 1] + num[l - 1];
    for (unsigned s = h->min_symbol; s <= h->max_symbol; s++)
        if (h->length[s]) order[at[h->length[s]]++] = (uint8_t)s;
}
/* Chooses the code of n > 0 symbols; returns the bytes that cg_huffman_put_ will write. */
CG_NOINLINE_ size_t cg_huffman_plan_(cg_huffman_ *h, const uint8_t *symbols, size_t n) {
    uint32_t count[1024];
    uint32_t key[256];
    unsigned used = 0;
    cg_histogram4_(symbols, n, count);
    h->min_symbol = 256;
    h->max_symbol = 0;
    memset(h->length, 0, sizeof h->length);
    for (unsigned s = 0; s < 256; s++) {
        uint32_t c = count[s] + count[256 + s] + count[512 + s] + count[768 + s];
        if (!c) continue;
        if (h->min_symbol > s) h->min_symbol = s;
        h->max_symbol = s;
        key[used++] = c << 8 | s;
    }
    if (used < 2) return 2;
    cg_huffman_lengths_(key, used, h->length);
    h->stream_start[0] = 2 + (h->max_symbol - h->min_symbol + 2) / 2 + 6;
    for (unsigned q = 0; q < 4; q++) {
        size_t bits = 0;
        for (unsigned s = h->min_symbol; s <= h->max_symbol; s++) bits += (size_t)count[256 * q + s] * h->length[s];
        h->stream_start[q + 1] = h->stream_start[q] + (bits + 7) / 8;
    }
    return h->stream_start[4];
}
/* Writes the piece that h was planned for; bytes between its end and `end` may be scribbled on. */
static void cg_huffman_put_(const cg_huffman_ *h, const uint8_t *symbols, size_t n, uint8_t *out, uint8_t *end) {
    uint32_t table[256];
    uint8_t order[256];
    unsigned num[CG_HUFFMAN_MAX_BITS_ + 1], code = 0, at = 0;
    out[0] = (uint8_t)h->min_symbol;
    out[1] = (uint8_t)h->max_symbol;
    if (h->min_symbol == h->max_symbol) return;
    cg_huffman_canonical_order_(h, num, order);
    for (unsigned l = 1; l <= CG_HUFFMAN_MAX_BITS_; l++)
        for (unsigned j = 0; j < num[l]; j++, code = cg_huffman_next_code_(code, l)) table[order[at++]] = code << 8 | l;
    for (unsigned s = h->min_symbol; s <= h->max_symbol; s += 2)
        out[2 + (s - h->min_symbol) / 2] =
            (uint8_t)(h->length[s] | (s < h->max_symbol ? (unsigned)h->length[s + 1] << 4 : 0u));
    for (unsigned q = 0; q < 3; q++)
        cg_put16_(out + h->stream_start[0] - 6 + 2 * q, (uint32_t)(h->stream_start[q + 1] - h->stream_start[q]));
    for (unsigned q = 0; q < 4; q++) {
        cg_bitstream_ w = cg_bitstream_open_(out + h->stream_start[q], end);
        cg_bitstream_put_symbols_(&w, table, symbols, cg_quarter_size_(n, q), 5);
        symbols += cg_quarter_size_(n, q);
    }
}
/* Reads and checks the header of a piece of `bytes` bytes with n symbols, all of them at most max_symbol. Returns 0
   if no encoder writes such: the code must be complete, and each string have a possible length. */
static int cg_huffman_header_get_(cg_huffman_ *h, unsigned max_symbol, const uint8_t *in, size_t bytes, size_t n) {
    unsigned many, kraft = 0;
    if (bytes < 2) return 0;
    h->min_symbol = in[0];
    h->max_symbol = in[1];
    if (h->min_symbol > h->max_symbol || h->max_symbol > max_symbol) return 0;
    if (h->min_symbol == h->max_symbol) return bytes == 2;
    many = h->max_symbol - h->min_symbol + 1;
    h->stream_start[0] = 2 + (many + 1) / 2 + 6;
    if (bytes < h->stream_start[0]) return 0;
    for (unsigned i = 0; i < many; i++) {
        unsigned l = (unsigned)in[2 + i / 2] >> i % 2 * 4 & 15;
        if (l > CG_HUFFMAN_MAX_BITS_) return 0;
        if (l) kraft += CG_HUFFMAN_TABLE_SIZE_ >> l;
        h->length[h->min_symbol + i] = (uint8_t)l;
    }
    if (kraft != CG_HUFFMAN_TABLE_SIZE_ || !h->length[h->min_symbol] || !h->length[h->max_symbol] ||
        (many % 2 && in[1 + (many + 1) / 2] >> 4))
        return 0;
    for (unsigned q = 0; q < 3; q++)
        h->stream_start[q + 1] = h->stream_start[q] + cg_get16_(in + h->stream_start[0] - 6 + 2 * q);
    h->stream_start[4] = bytes;
    for (unsigned q = 0; q < 4; q++) {
        size_t symbols = cg_quarter_size_(n, q), size = h->stream_start[q + 1] - h->stream_start[q];
        if (h->stream_start[q] > h->stream_start[q + 1] || 8 * size < symbols ||
            size > (CG_HUFFMAN_MAX_BITS_ * symbols + 7) / 8)
            return 0;
    }
    return 1;
}
/* n symbols of a piece whose header was checked for the same n. Whatever the strings hold, the symbols are in use. */
CG_NOINLINE_ void cg_huffman_get_(const cg_huffman_ *h, const uint8_t *in, size_t n, uint8_t *symbols) {
    /* symbol << 8 | length of the code that the next 11 bits begin with */
    uint16_t table[CG_HUFFMAN_TABLE_SIZE_];
    uint8_t order[256];
    unsigned num[CG_HUFFMAN_MAX_BITS_ + 1], code = 0, at = 0;
    const size_t q = (n + 3) / 4, all = cg_quarter_size_(n, 3);
    size_t i = 0, p[4], bits;
    if (h->min_symbol == h->max_symbol) {
        memset(symbols, (int)h->min_symbol, n);
        return;
    }
    cg_huffman_canonical_order_(h, num, order);
    table[0] = 0;
    /* doubled for each length; the code is complete, so that every entry is set */
    for (unsigned l = 1; l <= CG_HUFFMAN_MAX_BITS_; l++) {
        memcpy(table + (1u << (l - 1)), table, sizeof *table << (l - 1));
        for (unsigned j = 0; j < num[l]; j++, code = cg_huffman_next_code_(code, l))
            table[code] = (uint16_t)((unsigned)order[at++] << 8 | l);
    }
    for (unsigned s = 0; s < 4; s++) p[s] = 8 * h->stream_start[s];
    bits = 8 * h->stream_start[4];
    {
        size_t p0 = p[0], p1 = p[1], p2 = p[2], p3 = p[3];
        uint8_t *o0 = symbols, *o1 = symbols + q, *o2 = symbols + 2 * q, *o3 = symbols + 3 * q;
        for (; i + 5 <= all && p0 + 64 <= bits && p1 + 64 <= bits && p2 + 64 <= bits && p3 + 64 <= bits; i += 5) {
            uint64_t w0 = cg_get64_(in + (p0 >> 3)) >> (p0 & 7), w1 = cg_get64_(in + (p1 >> 3)) >> (p1 & 7);
            uint64_t w2 = cg_get64_(in + (p2 >> 3)) >> (p2 & 7), w3 = cg_get64_(in + (p3 >> 3)) >> (p3 & 7);
            uint32_t t0 = 0, t1 = 0, t2 = 0, t3 = 0, e; /* their low bytes are sums of lengths */
#define CG_HUFFMAN_STEP_(s, j)                    \
  e = table[w##s & (CG_HUFFMAN_TABLE_SIZE_ - 1)]; \
  w##s >>= e & 63;                                \
  t##s += e;                                      \
  o##s[i + j] = (uint8_t)(e >> 8);
#define CG_HUFFMAN_STEP4_(j) CG_HUFFMAN_STEP_(0, j) CG_HUFFMAN_STEP_(1, j) CG_HUFFMAN_STEP_(2, j) CG_HUFFMAN_STEP_(3, j)
            CG_HUFFMAN_STEP4_(0)
            CG_HUFFMAN_STEP4_(1)
            CG_HUFFMAN_STEP4_(2)
            CG_HUFFMAN_STEP4_(3)
            CG_HUFFMAN_STEP4_(4)
#undef CG_HUFFMAN_STEP4_
#undef CG_HUFFMAN_STEP_
            p0 += t0 & 255;
            p1 += t1 & 255;
            p2 += t2 & 255;
            p3 += t3 & 255;
        }
        p[0] = p0;
        p[1] = p1;
        p[2] = p2;
        p[3] = p3;
    }
    for (unsigned s = 0; s < 4; s++)
        for (size_t j = i; j < cg_quarter_size_(n, s); j++) {
            unsigned e = table[cg_bits_peek_(in, bits, p[s]) & (CG_HUFFMAN_TABLE_SIZE_ - 1)];
            p[s] += e & 255;
            symbols[q * s + j] = (uint8_t)(e >> 8);
        }
}
