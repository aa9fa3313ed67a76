/* bits: strings of bits, LSB first, and the frame of a coded piece

   Offers   CG_VALUE_CODE_*, cg_alphabet_, entries of pieces, cg_bitstream_ (writer), cg_bits_peek_ (reader),
            cg_histogram4_ and cg_quarter_size_
   Needs    base
   Touches  nothing but its arguments
   A piece is up to CG_PIECE_SYMBOLS_ symbols, or CG_CHUNK_ floats, that are coded by themselves. It fills whole u32
   words; its u32 entry in the piece table holds the mode in bits 30..31 and the exact length in bits below. A piece
   is coded only where that is shorter than packed or raw; the bits of its last word beyond its length are 0. */

#define CG_PIECE_SYMBOLS_ 8192u /* symbols of a piece, at most */
#define CG_RICE_MAX_PARAMETER_ 40u
/* How a piece is written. */
enum {
    CG_PIECE_PACKED_ = 0, /* packed symbols, or raw floats */
    CG_PIECE_CODED_ = 1,  /* by the value code; Elias codes: a codeword per symbol (dense) */
    CG_PIECE_SPARSE_ = 2  /* Elias codes: gaps and levels of what is not zero */
};
/* The entropy code of values; part of the wire format. */
enum {
    CG_VALUE_CODE_PACKED_ = 0,
    CG_VALUE_CODE_GAMMA_ = 1,
    CG_VALUE_CODE_DELTA_ = 2,
    CG_VALUE_CODE_OMEGA_ = 3,
    CG_VALUE_CODE_HUFFMAN_ = 4,
    CG_VALUE_CODE_QUARTIC_ = 5,
    CG_VALUE_CODE_RANS_ = 6
};

typedef struct cg_alphabet_ {
    unsigned bits;       /* of a packed symbol, 1..8 */
    uint8_t max_symbol;  /* symbols are 0..max_symbol */
    uint8_t zero_symbol; /* the symbol of level 0; 0: there are no negative levels */
} cg_alphabet_;

CG_INLINE_ uint32_t cg_piece_entry_(unsigned mode, size_t bits) { return (uint32_t)mode << 30 | (uint32_t)bits; }
CG_INLINE_ size_t cg_piece_entry_bits_(uint32_t entry) { return entry & 0x3fffffffu; }
/* Clears the bytes of the last word that the piece of `bits` bits at out does not touch, and returns the entry. */
static uint32_t cg_piece_close_(unsigned mode, size_t bits, uint8_t *out) {
    for (size_t i = (bits + 7) / 8; i % 4; i++) out[i] = 0;
    return cg_piece_entry_(mode, bits);
}
/* Whether an entry can belong to the `bytes` bytes at in: packed has exactly `packed` bits, coded fewer; the words
   are as many as the bits need, and what follows the bits is 0. */
static int cg_piece_entry_check_(uint32_t entry, size_t packed, const uint8_t *in, size_t bytes) {
    size_t bits = cg_piece_entry_bits_(entry);
    if (entry >> 30 ? bits >= packed : bits != packed) return 0;
    return bytes == (size_t)cg_word_bytes_(bits) && (bits % 32 == 0 || cg_get32_(in + bytes - 4) >> bits % 32 == 0);
}

/* At least 57 bits from bit `at` on, of a string of `bits` bits; what follows its end reads as 0, and is not
   accessed. */
static uint64_t cg_bits_peek_tail_(const uint8_t *in, size_t bits, size_t at) {
    uint64_t w = 0;
    size_t from = at >> 3, left;
    if (at >= bits) return 0;
    left = bits - at;
    for (unsigned j = 0; j < 8 && from + j < (bits + 7) / 8; j++) w |= (uint64_t)in[from + j] << 8 * j;
    w >>= at & 7;
    return left < 64 ? w & (((uint64_t)1 << left) - 1) : w;
}
CG_INLINE_ uint64_t cg_bits_peek_(const uint8_t *in, size_t bits, size_t at) {
    if (CG_LIKELY_(at + 64 <= bits)) return cg_get64_(in + (at >> 3)) >> (at & 7);
    return cg_bits_peek_tail_(in, bits, at);
}

/* A string of bits that is being written. */
typedef struct cg_bitstream_ {
    uint8_t *next;   /* the byte that the next bit goes to */
    uint8_t *end;    /* bytes from here on are not written */
    uint64_t word;   /* bits of *next that are there already */
    unsigned filled; /* how many: 0..7 between calls */
} cg_bitstream_;

/* Appends the low `bits` <= 56 bits of v, which has no others. Writes up to 8 bytes from next on: what follows the
   string is scribbled on, up to end. Bits beyond end are lost. */
CG_INLINE_ void cg_bitstream_put_(cg_bitstream_ *w, uint64_t v, unsigned bits) {
    w->word |= v << w->filled;
    w->filled += bits;
    if (CG_LIKELY_(w->end - w->next >= 8)) cg_put64_(w->next, w->word);
    else
        for (unsigned j = 0; j < 8 && w->next + j < w->end; j++) w->next[j] = (uint8_t)(w->word >> 8 * j);
    w->next += w->filled >> 3;
    w->word >>= w->filled & 56;
    w->filled &= 7;
}
/* Appends the codewords of n symbols. table[symbol] is codeword << 8 | length; `group` (3 or 5) codewords have at
   most 56 bits together. */
CG_INLINE_ void cg_bitstream_put_symbols_(
    cg_bitstream_ *out, const uint32_t *table, const uint8_t *symbols, size_t n, size_t group) {
    cg_bitstream_ w = *out;
    size_t i = 0;
    for (; i + group <= n; i += group) {
        uint32_t e = table[symbols[i]], total = e; /* only its low byte counts: the sum of lengths */
        uint64_t v = e >> 8;
#define CG_JOIN_(j)                        \
  e = table[symbols[i + j]];               \
  v |= (uint64_t)(e >> 8) << (total & 63); \
  total += e;
        CG_JOIN_(1)
        CG_JOIN_(2)
        if (group == 5) { CG_JOIN_(3) CG_JOIN_(4) }
#undef CG_JOIN_
        cg_bitstream_put_(&w, v, total & 63);
    }
    for (; i < n; i++) cg_bitstream_put_(&w, table[symbols[i]] >> 8, table[symbols[i]] & 63);
    *out = w;
}
CG_INLINE_ cg_bitstream_ cg_bitstream_open_(uint8_t *at, uint8_t *end) {
    cg_bitstream_ w;
    w.next = at;
    w.end = end;
    w.word = 0;
    w.filled = 0;
    return w;
}

/* Symbols in quarter s (0..3) of n: (n + 3)/4 each, the last ones have what is left. */
CG_INLINE_ size_t cg_quarter_size_(size_t n, unsigned s) {
    size_t q = (n + 3) / 4;
    return n <= q * s ? 0 : cg_min_(q, n - q * s);
}

/* count[256*s + symbol]: how often a symbol occurs in quarter s. With one table for all, equal neighbours would wait
   for each other. */
static void cg_histogram4_(const uint8_t *symbols, size_t n, uint32_t *count /* 4 of 256 */) {
    const size_t q = (n + 3) / 4, all = cg_quarter_size_(n, 3);
    memset(count, 0, 1024 * sizeof *count);
    for (size_t i = 0; i < all; i++) {
        count[symbols[i]]++;
        count[256 + symbols[q + i]]++;
        count[512 + symbols[2 * q + i]]++;
        count[768 + symbols[3 * q + i]]++;
    }
    for (unsigned s = 0; s < 3; s++)
        for (size_t i = all; i < cg_quarter_size_(n, s); i++) count[256 * s + symbols[q * s + i]]++;
}
