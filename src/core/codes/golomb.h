/* golomb: ascending indices as Golomb-Rice codes of their gaps

   Offers   cg_rice_parameter_, cg_rice_bound_, cg_rice_writer_, cg_rice_reader_
   Needs    base, bits
   Touches  nothing but its arguments
   An index is the number g of those skipped before it: g >> b zeros, a 1, the b low bits of g. The parameter b follows
   from (universe, k), and is not stored. */

/* The b that is best where each of `universe` is an index with probability k/universe; at most
   CG_RICE_MAX_PARAMETER_. */
static unsigned cg_rice_parameter_(uint64_t universe, uint64_t k) {
    double miss = universe ? 1.0 - (double)k / (double)universe : 0.0;
    unsigned b = 0;
    while (!(miss < 0.6180339887498949) && b < CG_RICE_MAX_PARAMETER_) {
        miss *= miss;
        b++;
    }
    return b;
}
static uint64_t cg_rice_bound_(uint64_t universe, uint64_t k) { /* bytes that suffice for any k <= universe indices */
    unsigned b = cg_rice_parameter_(universe, k);
    return k ? cg_word_bytes_(cg_add_sat_(cg_mul_sat_(k, b + 1), (universe - k) >> b)) : 0;
}

typedef struct cg_rice_writer_ {
    uint8_t *start, *next_byte;
    uint64_t word;       /* bits that are not yet written */
    uint64_t next_index; /* the least that may come */
    unsigned filled;     /* bits of word: 0..31 between calls */
    unsigned parameter;  /* b */
} cg_rice_writer_;

/* out has room for cg_rice_bound_ bytes: only whole words of 4 are written, and none beyond it. */

static void cg_rice_writer_open_(cg_rice_writer_ *w, uint8_t *out, unsigned b) {
    w->start = w->next_byte = out;
    w->word = w->next_index = 0;
    w->filled = 0;
    w->parameter = b;
}
CG_INLINE_ void cg_rice_writer_flush_(cg_rice_writer_ *w) {
    if (w->filled >= 32) {
        cg_put32_(w->next_byte, (uint32_t)w->word);
        w->next_byte += 4;
        w->word >>= 32;
        w->filled -= 32;
    }
}
/* index is larger than all before. */
CG_INLINE_ void cg_rice_writer_put_(cg_rice_writer_ *w, uint64_t index) {
    const uint64_t skipped = index - w->next_index, low = skipped & (((uint64_t)1 << w->parameter) - 1);
    uint64_t q = skipped >> w->parameter;
    w->next_index = index + 1;
    for (; q >= 32; q -= 32) {
        w->filled += 32;
        cg_rice_writer_flush_(w);
    }
    w->filled += (unsigned)q;
    cg_rice_writer_flush_(w);
    if (CG_LIKELY_(w->parameter < 32)) {
        w->word |= (low << 1 | 1) << w->filled;
        w->filled += w->parameter + 1;
    } else {
        w->word |= ((low & 0x7fffffffu) << 1 | 1) << w->filled;
        w->filled += 32;
        cg_rice_writer_flush_(w);
        w->word |= low >> 31 << w->filled;
        w->filled += w->parameter - 31;
    }
    cg_rice_writer_flush_(w);
}
/* Writes the last word, filled up with zeros; returns the bytes written in all. */
static size_t cg_rice_writer_close_(cg_rice_writer_ *w) {
    if (w->filled) {
        cg_put32_(w->next_byte, (uint32_t)w->word);
        w->next_byte += 4;
    }
    return (size_t)(w->next_byte - w->start);
}

typedef struct cg_rice_reader_ {
    const uint8_t *bytes;
    size_t total_bits, bit_pos;
    uint64_t next_index; /* the least that may come; UINT64_MAX once there is none */
    unsigned parameter;  /* b */
} cg_rice_reader_;

static void cg_rice_reader_open_(cg_rice_reader_ *r, const uint8_t *in, size_t bytes, unsigned b) {
    r->bytes = in;
    r->total_bits = bytes > SIZE_MAX / 8 ? SIZE_MAX / 8 * 8 : 8 * bytes;
    r->bit_pos = 0;
    r->next_index = 0;
    r->parameter = b < CG_RICE_MAX_PARAMETER_ ? b : CG_RICE_MAX_PARAMETER_;
}
/* Reads up to `count` more indices, fewer only where the bits end, and returns how many. An index beyond 2^64 - 2 reads
   as UINT64_MAX, as do all after it. */
static size_t cg_rice_reader_get_(cg_rice_reader_ *r, uint64_t *index, size_t count) {
    const unsigned b = r->parameter;
    const uint64_t mask = ((uint64_t)1 << b) - 1;
    uint64_t next = r->next_index;
    size_t at = r->bit_pos, done = 0;
    while (done < count && at < r->total_bits) {
        uint64_t w = cg_bits_peek_(r->bytes, r->total_bits, at), q = 0;
        unsigned left = (unsigned)cg_min_(57, r->total_bits - at), z;
        const size_t before = done;
        while (done < count && w) {
            unsigned need = (z = cg_ctz_(w)) + 1 + b;
            if (need > left) break;
            next = cg_add_sat_(next, (uint64_t)z << b | (w >> 1 >> z & mask));
            index[done++] = next;
            next += next != UINT64_MAX;
            w = w >> 1 >> (need - 1);
            left -= need;
            at += need;
        }
        if (done > before) continue;
        while (!(w & (((uint64_t)1 << 57) - 1))) { /* a gap longer than the bits in w */
            if (r->total_bits - at <= 57) goto out;
            q += 57;
            at += 57;
            w = cg_bits_peek_(r->bytes, r->total_bits, at);
        }
        z = cg_ctz_(w);
        q += z;
        if (r->total_bits - at < (size_t)z + 1 + b) goto out;
        at += z + 1;
        next = cg_add_sat_(
            next, cg_add_sat_(cg_mul_sat_(q, mask + 1), cg_bits_peek_(r->bytes, r->total_bits, at) & mask));
        index[done++] = next;
        next += next != UINT64_MAX;
        at += b;
    }
out:
    r->next_index = next;
    r->bit_pos = at;
    return done;
}

/* Whether nothing but the zeros of the last word is left. */
static int cg_rice_reader_at_end_(const cg_rice_reader_ *r) {
    if (r->bit_pos > r->total_bits || r->total_bits - r->bit_pos >= 32) return 0;
    for (size_t i = r->bit_pos; i < r->total_bits; i++)
        if (r->bytes[i / 8] >> i % 8 & 1) return 0;
    return 1;
}
