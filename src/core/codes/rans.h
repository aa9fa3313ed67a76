/* rans: pieces of up to 65536 levels in asymmetric numeral systems: what a piece is, and how it is read

   Offers   tokens, cg_rans_table_, cg_rans_reader_, cg_rans_open_, cg_rans_next_, cg_rans_skip_, cg_rans_check_
   Needs    base, bits
   Touches  nothing but its arguments
   A piece is whole u32 words; one without words is all zeros. Two streams run towards each other: a string of bits
   upwards from its first byte (LSB first), and u16 words (little-endian) downwards from its end:

     bits 0-1    form: 0 Rice, 1 sparse, 2 dense, 3 plain
     Rice        4 bits: k; 1 bit: magnitudes are 0: unary, 1: gamma; 13 bits: how many levels are not zero; then of
                 each the zeros before it: q = zeros >> k in unary (q times 0, then 1; 16 times 0: zeros follow in 16
                 bits), the low k bits; its sign; its magnitude - 1 in unary, from 15 zeros on gamma of what is left
     sparse      2 bits: lanes (0: 1, 1: 4, 2: 16); 1 bit: a word of padding is at the end; 2 bits: signs (0: a bit
                 each, 1: no level is negative, 2: all are); 1 bit each: zeros, magnitudes have three contexts; 12
                 bits: levels that are not zero, less 1; 7 bits twice, if there are contexts: their limits; 1 or 3
                 tables of zeros, 1 or 3 of magnitudes less 1; then of each level the extra bits of its zeros, its
                 sign, the extra bits of its magnitude less 1
     dense       2 bits: lanes; 1 bit: padding; 2 bits: signs; 3 bits: tables less 1 (up to 5), which are classes; the
                 tables; with several 1 bit: the class of a block depends on that of the block before it (0 before
                 the first), and 1 table of classes or one for each class; then of each block of 64 levels the signs
                 of those that are not zero, then their extra bits
     plain       zeros up to bit 32, then each level as it is packed (16 bits: two's complement)

   A table is 6 bits: symbols less 1; 1 bit: the last one is an escape; of all but the last its frequency: 4 bits: its
   length, its bits below the highest one; the last has what is left of 1024. A table of classes has no such head.
   A number is a token and extra bits: numbers below 2^direct are tokens, above them there are two tokens an octave.
   direct is 4 for magnitudes, 2 for zeros. An escape says that the token is not in the table: the gamma code of the
   number, less the least one that is not, plus 1, is among the extra bits.
   Words: one of padding if there is; the class state if there are several tables; one state for each lane, the high
   half first; then what the states take. A state x holds symbol s with first[s] <= x % 1024 < first[s] + freq[s], goes
   on as freq[s]*(x / 1024) + x % 1024 - first[s], and where that is below 2^16 takes a word as its low half. An encoder
   begins with 2^16, where the decoder ends. The class of a block is read before its levels. Symbol j of a sparse piece
   (zeros, magnitude, zeros ...) is in lane j mod lanes, and so is level j of a block of 64. The context of a sparse
   piece is the number of its limits that are at most a; a begins at 0 and becomes a - a/4 + symbol of each number of
   zeros. That of zeros is the one before them, that of a magnitude the one after its zeros.
   Any bytes are read without harm: bits and words that are missing are 0, and levels beyond the piece are dropped. */

#define CG_RANS_PIECE_ 65536u /* levels of a piece, at most */
#define CG_RANS_TOTAL_ 1024u  /* of the frequencies of a table */
#define CG_RANS_TOKENS_ 40u   /* symbols of a table, at most */
#define CG_RANS_TABLES_ 6u
#define CG_RANS_LANES_ 16u
#define CG_RANS_LIST_ 4096u /* levels of a sparse or Rice piece that are not zero, at most */
#define CG_RANS_LOW_ 65536u /* states are at least this */
enum { CG_RANS_RICE_, CG_RANS_SPARSE_, CG_RANS_DENSE_, CG_RANS_PLAIN_ };
enum { CG_RANS_MAGNITUDES_ = 4, CG_RANS_ZEROS_ = 2 }; /* direct */
enum { CG_RANS_BLOCK_ = 64 };

CG_INLINE_ unsigned cg_rans_token_(uint32_t v, unsigned direct) {
    unsigned e;
    if (v < 1u << direct) return v;
    e = cg_log2_(v);
    return (1u << direct) + 2 * (e - direct) + (v >> (e - 1) & 1u);
}
/* How many extra bits a token has. */
CG_INLINE_ unsigned cg_rans_extra_(unsigned token, unsigned direct) {
    return token < 1u << direct ? 0 : direct + (token - (1u << direct)) / 2 - 1;
}
/* The least number with that token. */
CG_INLINE_ uint32_t cg_rans_base_(unsigned token, unsigned direct) {
    return token < 1u << direct ? token : (2u + (token & 1u)) << cg_rans_extra_(token, direct);
}

typedef struct cg_rans_table_ {
    uint8_t slot[CG_RANS_TOTAL_]; /* whose symbol each number below the total is */
    uint16_t freq[CG_RANS_TOKENS_], first[CG_RANS_TOKENS_];
    unsigned symbols;
    int escapes; /* the last symbol is an escape */
} cg_rans_table_;

/* A piece that is being read. */
typedef struct cg_rans_reader_ {
    const uint8_t *in;     /* the piece */
    const uint8_t *word;   /* the next word is below this */
    size_t bits, at;       /* of the string of bits: its end, the next bit */
    size_t position, n;    /* the next level, and how many there are */
    size_t nonzero, found; /* Rice and sparse: how many are not zero, where the next of them is (n: nowhere) */
    int32_t found_level;
    unsigned form, width, signs;                /* width: of plain levels, in bits */
    unsigned lanes, lane, context, limit[2];    /* sparse: context is a of above */
    unsigned zero_contexts, magnitude_contexts; /* sparse: 1 or 3 */
    unsigned tables, classes, k;                /* dense: classes is 1 or tables; Rice: k, and gamma in classes */
    uint32_t state[CG_RANS_LANES_], class_state, last_class;
    uint16_t class_freq[CG_RANS_TABLES_][CG_RANS_TABLES_];
    cg_rans_table_ table[CG_RANS_TABLES_];
} cg_rans_reader_;

CG_INLINE_ uint64_t cg_rans_peek_(const cg_rans_reader_ *r) { return cg_bits_peek_(r->in, r->bits, r->at); }
CG_INLINE_ uint32_t cg_rans_get_(cg_rans_reader_ *r, unsigned bits) { /* at most 32 */
    const uint32_t v = (uint32_t)(cg_rans_peek_(r) & (((uint64_t)1 << bits) - 1));
    r->at += bits;
    return v;
}
/* A number from 1 on: the zeros before its bits are one fewer than they. More than 16 count as 16. */
static uint32_t cg_rans_gamma_get_(cg_rans_reader_ *r) {
    const uint64_t w = cg_rans_peek_(r);
    const unsigned zeros = cg_ctz_(w | (uint64_t)1 << 16);
    const uint32_t low = (uint32_t)(w >> (zeros + 1)) & ((1u << zeros) - 1);
    r->at += 2 * zeros + 1;
    return 1u << zeros | low;
}
CG_INLINE_ uint32_t cg_rans_word_(cg_rans_reader_ *r) {
    if (CG_LIKELY_(r->word - r->in >= 2)) {
        r->word -= 2;
        return cg_get16_(r->word);
    }
    return 0;
}
CG_INLINE_ uint32_t cg_rans_renew_(cg_rans_reader_ *r, uint32_t state) {
    return state < CG_RANS_LOW_ ? state << 16 | cg_rans_word_(r) : state;
}
/* The symbol that a state holds; the state goes on. */
CG_INLINE_ unsigned cg_rans_symbol_(cg_rans_reader_ *r, uint32_t *state, const cg_rans_table_ *t) {
    const uint32_t x = *state, low = x & (CG_RANS_TOTAL_ - 1);
    const unsigned s = t->slot[low];
    *state = cg_rans_renew_(r, t->freq[s] * (x >> 10) + low - t->first[s]);
    return s;
}
/* The frequency of one symbol of a table. */
static uint32_t cg_rans_freq_get_(cg_rans_reader_ *r) {
    const unsigned length = cg_rans_get_(r, 4);
    return length ? 1u << (length - 1) | cg_rans_get_(r, length - 1) : 0;
}
/* 0: no table that an encoder writes; tokens: how many there are. */
static int cg_rans_table_get_(cg_rans_reader_ *r, unsigned tokens, cg_rans_table_ *t) {
    uint32_t left = CG_RANS_TOTAL_;
    unsigned at = 0;
    t->symbols = cg_rans_get_(r, 6) + 1;
    t->escapes = (int)cg_rans_get_(r, 1);
    if (t->symbols > tokens || (t->escapes && t->symbols < 2)) return 0;
    for (unsigned s = 0; s < t->symbols; s++) {
        const uint32_t f = s + 1 < t->symbols ? cg_rans_freq_get_(r) : left;
        if (f > left || (s + 1 == t->symbols && !f)) return 0;
        t->freq[s] = (uint16_t)f;
        t->first[s] = (uint16_t)at;
        memset(t->slot + at, (int)s, f);
        at += f;
        left -= f;
    }
    return 1;
}
/* The frequencies of as many classes as there are tables. */
static int cg_rans_classes_get_(cg_rans_reader_ *r, uint16_t *freq) {
    uint32_t left = CG_RANS_TOTAL_;
    for (unsigned s = 0; s < r->tables; s++) {
        const uint32_t f = s + 1 < r->tables ? cg_rans_freq_get_(r) : left;
        if (f > left) return 0;
        freq[s] = (uint16_t)f;
        left -= f;
    }
    return 1;
}
static uint32_t cg_rans_state_get_(cg_rans_reader_ *r) {
    const uint32_t high = cg_rans_word_(r);
    return high << 16 | cg_rans_word_(r);
}
/* The number of a token that has been read; escaped: the token of the first number that is not in the table. */
CG_INLINE_ uint32_t cg_rans_number_(cg_rans_reader_ *r, const cg_rans_table_ *t, unsigned symbol, unsigned direct) {
    const uint32_t base = cg_rans_base_(symbol, direct);
    if (t->escapes && symbol + 1 == t->symbols) return base + cg_rans_gamma_get_(r) - 1;
    return base + cg_rans_get_(r, cg_rans_extra_(symbol, direct));
}
static unsigned cg_rans_context_(const cg_rans_reader_ *r, unsigned contexts) {
    return contexts < 2 ? 0 : (unsigned)(r->context >= r->limit[0]) + (unsigned)(r->context >= r->limit[1]);
}
/* Finds the next level that is not zero; found becomes n if there is none. */
static void cg_rans_find_(cg_rans_reader_ *r) {
    size_t at = r->found;
    uint32_t zeros, magnitude, negative;
    r->found = r->n;
    if (!r->nonzero) return;
    r->nonzero--;
    if (r->form == CG_RANS_SPARSE_) {
        const cg_rans_table_ *t = &r->table[cg_rans_context_(r, r->zero_contexts)];
        unsigned symbol = cg_rans_symbol_(r, &r->state[r->lane], t);
        zeros = cg_rans_number_(r, t, symbol, CG_RANS_ZEROS_);
        r->lane = (r->lane + 1) & (r->lanes - 1);
        r->context += symbol - r->context / 4;
        t = &r->table[r->zero_contexts + cg_rans_context_(r, r->magnitude_contexts)];
        negative = r->signs ? r->signs - 1 : cg_rans_get_(r, 1);
        symbol = cg_rans_symbol_(r, &r->state[r->lane], t);
        magnitude = 1 + cg_rans_number_(r, t, symbol, CG_RANS_MAGNITUDES_);
        r->lane = (r->lane + 1) & (r->lanes - 1);
    } else {
        unsigned q = cg_ctz_(cg_rans_peek_(r) | 1u << 16);
        r->at += q < 16 ? q + 1 : 16;
        zeros = q < 16 ? q << r->k | cg_rans_get_(r, r->k) : cg_rans_get_(r, 16);
        negative = cg_rans_get_(r, 1);
        if (r->classes) magnitude = cg_rans_gamma_get_(r);
        else {
            q = cg_ctz_(cg_rans_peek_(r) | 1u << 15);
            r->at += q < 15 ? q + 1 : 15;
            magnitude = q < 15 ? q + 1 : 15 + cg_rans_gamma_get_(r);
        }
    }
    if (magnitude > 32767) magnitude = 32767;
    r->found_level = negative ? -(int32_t)magnitude : (int32_t)magnitude;
    if (zeros < r->n - at) r->found = at + zeros;
    else r->nonzero = 0;
}
/* Begins to read a piece of n levels in `bytes` bytes, a multiple of 4. width: of plain levels. Returns 0 if no encoder
   writes such; its levels are then zeros. */
static int cg_rans_open_(cg_rans_reader_ *r, const uint8_t *in, size_t bytes, size_t n, unsigned width) {
    unsigned padded;
    r->in = in;
    r->word = in + bytes;
    r->bits = 8 * bytes;
    r->at = 2;
    r->position = r->nonzero = r->found = 0;
    r->n = n;
    r->width = width;
    r->form = CG_RANS_RICE_;
    r->found = n;
    if (!bytes) return 1;
    r->form = in[0] & 3u;
    if (r->form == CG_RANS_PLAIN_) {
        r->at = 32;
        if (cg_get32_(in) == CG_RANS_PLAIN_ && bytes == 4 + (size_t)cg_word_bytes_((uint64_t)n * width)) return 1;
    } else if (r->form == CG_RANS_RICE_) {
        r->k = cg_rans_get_(r, 4);
        r->classes = cg_rans_get_(r, 1);
        r->nonzero = cg_rans_get_(r, 13);
        r->found = 0;
        if (r->nonzero <= n) {
            cg_rans_find_(r);
            return 1;
        }
    } else {
        int ok = 1;
        r->lanes = 1u << 2 * cg_rans_get_(r, 2);
        padded = cg_rans_get_(r, 1);
        r->signs = cg_rans_get_(r, 2);
        ok = r->lanes <= CG_RANS_LANES_ && r->signs < 3;
        if (r->form == CG_RANS_SPARSE_) {
            r->zero_contexts = cg_rans_get_(r, 1) ? 3 : 1;
            r->magnitude_contexts = cg_rans_get_(r, 1) ? 3 : 1;
            r->nonzero = cg_rans_get_(r, 12) + 1;
            ok &= r->nonzero <= n;
            r->limit[0] = r->limit[1] = 0;
            if (r->zero_contexts + r->magnitude_contexts > 2) {
                r->limit[0] = cg_rans_get_(r, 7);
                r->limit[1] = cg_rans_get_(r, 7);
            }
            for (unsigned i = 0; ok && i < r->zero_contexts + r->magnitude_contexts; i++)
                ok = cg_rans_table_get_(r, i < r->zero_contexts ? 32 : 39, &r->table[i]);
        } else {
            r->tables = cg_rans_get_(r, 3) + 1;
            ok &= r->tables <= CG_RANS_TABLES_;
            for (unsigned i = 0; ok && i < r->tables; i++) ok = cg_rans_table_get_(r, 39, &r->table[i]);
            r->classes = 1;
            if (ok && r->tables > 1) {
                if (cg_rans_get_(r, 1)) r->classes = r->tables;
                for (unsigned i = 0; ok && i < r->classes; i++) ok = cg_rans_classes_get_(r, r->class_freq[i]);
            }
        }
        if (padded) ok &= !cg_rans_word_(r);
        if (ok) {
            r->class_state = r->form == CG_RANS_DENSE_ && r->tables > 1 ? cg_rans_state_get_(r) : 0;
            for (unsigned i = 0; i < r->lanes; i++) r->state[i] = cg_rans_state_get_(r);
            r->last_class = r->lane = r->context = 0;
            r->found = 0;
            if (r->form == CG_RANS_SPARSE_) cg_rans_find_(r);
            if (r->at <= r->bits) return 1;
        }
    }
    r->form = CG_RANS_RICE_;
    r->nonzero = 0;
    r->found = n;
    return 0;
}
/* Whether an encoder may have written this piece, as far as its head shows. */
CG_NOINLINE_ int cg_rans_check_(const uint8_t *in, size_t bytes, size_t n, unsigned width) {
    cg_rans_reader_ r;
    return cg_rans_open_(&r, in, bytes, n, width);
}
/* The class of the next block of a dense piece. */
static unsigned cg_rans_class_(cg_rans_reader_ *r) {
    const uint16_t *freq = r->class_freq[r->classes > 1 ? r->last_class : 0];
    const uint32_t low = r->class_state & (CG_RANS_TOTAL_ - 1);
    uint32_t first = 0;
    unsigned s = 0;
    for (; s + 1 < r->tables && low >= first + freq[s]; s++) first += freq[s];
    r->class_state = cg_rans_renew_(r, freq[s] * (r->class_state >> 10) + low - first);
    return r->last_class = s;
}
/* The symbols of a block, where all words that they can take are there; *most is the largest, *nonzero counts. */
CG_INLINE_ void cg_rans_block_get_(cg_rans_reader_ *r, const cg_rans_table_ *t, size_t many, unsigned lane_mask,
    int16_t *out, unsigned *most, unsigned *nonzero) {
    const uint8_t *word = r->word;
    unsigned largest = 0, some = 0;
    for (size_t i = 0; i < many; i++) {
        const uint32_t x = r->state[i & lane_mask], low = x & (CG_RANS_TOTAL_ - 1);
        const unsigned s = t->slot[low];
        const uint32_t next = t->freq[s] * (x >> 10) + low - t->first[s], empty = next < CG_RANS_LOW_;
        r->state[i & lane_mask] = empty ? next << 16 | cg_get16_(word - 2) : next;
        word -= 2 * empty;
        out[i] = (int16_t)s;
        largest = s > largest ? s : largest;
        some += s != 0;
    }
    r->word = word;
    *most = largest;
    *nonzero = some;
}
/* A block of a dense piece, of at most 64 levels. */
static void cg_rans_block_(cg_rans_reader_ *r, size_t many, uint8_t *to) {
    const cg_rans_table_ *t = &r->table[r->tables > 1 ? cg_rans_class_(r) : 0];
    const unsigned lane_mask = r->lanes - 1;
    unsigned most = 0, nonzero = 0;
    uint64_t signs = r->signs == 2 ? UINT64_MAX : 0;
    int16_t out[CG_RANS_BLOCK_];
    if (t->symbols == 1) { /* all are zero */
        memset(to, 0, 2 * many);
        return;
    }
    if (r->word - r->in < 2 * CG_RANS_BLOCK_)
        for (size_t i = 0; i < many; i++) {
            const unsigned s = cg_rans_symbol_(r, &r->state[i & lane_mask], t);
            out[i] = (int16_t)s;
            most = s > most ? s : most;
            nonzero += s != 0;
        }
    else if (lane_mask == 15) cg_rans_block_get_(r, t, many, 15, out, &most, &nonzero);
    else cg_rans_block_get_(r, t, many, lane_mask, out, &most, &nonzero);
    if (!r->signs) { /* two reads for up to 64 of them */
        signs = cg_rans_get_(r, nonzero < 32 ? nonzero : 32);
        if (nonzero > 32) signs |= (uint64_t)cg_rans_get_(r, nonzero - 32) << 32;
    }
    if (most < 1u << CG_RANS_MAGNITUDES_ && !(t->escapes && most + 1 == t->symbols)) {
        for (size_t i = 0; i < many; i++) {
            const int32_t v = out[i], sign = -(int32_t)(signs & (uint64_t)(v != 0));
            out[i] = (int16_t)((v ^ sign) - sign);
            signs >>= v != 0;
        }
    } else
        for (size_t i = 0; i < many; i++) {
            uint32_t v;
            if (!out[i]) continue;
            v = cg_rans_number_(r, t, (unsigned)out[i], CG_RANS_MAGNITUDES_);
            if (v > 32767) v = 32767;
            out[i] = (int16_t)(signs & 1 ? -(int32_t)v : (int32_t)v);
            signs >>= 1;
        }
    memcpy(to, out, 2 * many);
}
static void cg_rans_level_put_(uint8_t *out, int32_t level) {
    const int16_t v = (int16_t)level;
    memcpy(out, &v, 2);
}
/* The next `many` levels as integers of 16 bits of this machine, at any address; many is a multiple of 64, or all that
   are left. */
CG_NOINLINE_ void cg_rans_next_(cg_rans_reader_ *r, size_t many, uint8_t *out) {
    const size_t begin = r->position, end = begin + many;
    r->position = end;
    if (r->form == CG_RANS_DENSE_) {
        for (size_t i = 0; i < many; i += CG_RANS_BLOCK_)
            cg_rans_block_(r, cg_min_(CG_RANS_BLOCK_, many - i), out + 2 * i);
    } else if (r->form == CG_RANS_PLAIN_) {
        for (size_t i = 0; i < many; i++) {
            const int32_t v = (int32_t)cg_rans_get_(r, r->width);
            cg_rans_level_put_(out + 2 * i, r->width < 16 || v < 32768 ? v : v == 32768 ? -32767 : v - 65536);
        }
    } else {
        memset(out, 0, 2 * many);
        while (r->found < end) {
            cg_rans_level_put_(out + 2 * (r->found - begin), r->found_level);
            r->found++;
            cg_rans_find_(r);
        }
    }
}
/* Leaves a chunk out, or what is left if that is less. */
CG_NOINLINE_ void cg_rans_skip_(cg_rans_reader_ *r) {
    uint8_t unused[2 * CG_CHUNK_];
    cg_rans_next_(r, cg_min_(CG_CHUNK_, r->n - r->position), unused);
}
