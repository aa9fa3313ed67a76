/* symbols: pieces of symbols, written by the value code or packed, whichever is shorter

   Offers   cg_code_fits_alphabet_, cg_piece_put_, cg_piece_check_, cg_piece_get_
   Needs    base, kernels, bits, huffman, elias, quartic
   Touches  nothing but its arguments */

/* Whether the alphabet is a possible one, and this code can write it. */

static int cg_code_fits_alphabet_(uint32_t value_code, const cg_alphabet_ *a) {
    if (value_code > CG_VALUE_CODE_QUARTIC_ || a->bits < 1 || a->bits > 8 || a->max_symbol >> (a->bits - 1) > 1 ||
        a->zero_symbol > a->max_symbol)
        return 0;
    return value_code != CG_VALUE_CODE_QUARTIC_ || a->max_symbol == 2;
}
/* Writes n <= CG_PIECE_SYMBOLS_ symbols, all at most max_symbol, and returns the entry. cap: bytes at out, at least
   those of the packed words; all of them may be scribbled on. Of two modes with equal lengths, the lower is taken. */
CG_NOINLINE_ uint32_t cg_piece_put_(const cg_kernels_ *kernels, uint32_t value_code, const cg_alphabet_ *a,
    const uint8_t *symbols, size_t n, uint8_t *out, size_t cap) {
    const size_t packed = n * a->bits;
    if (n && value_code == CG_VALUE_CODE_HUFFMAN_) {
        cg_huffman_ h;
        size_t bytes = cg_huffman_plan_(&h, symbols, n);
        if (8 * bytes < packed) {
            cg_huffman_put_(&h, symbols, n, out, out + cap);
            return cg_piece_close_(CG_PIECE_CODED_, 8 * bytes, out);
        }
    } else if (n && value_code == CG_VALUE_CODE_QUARTIC_) {
        size_t limit = (packed - 1) / 8, bytes = cg_quartic_put_(a, symbols, n, out, limit);
        if (bytes <= limit) return cg_piece_close_(CG_PIECE_CODED_, 8 * bytes, out);
    } else if (n && value_code) {
        uint32_t count[1024];
        uint32_t table[256];
        size_t dense = 0, min_sparse = 0, best, sparse;
        cg_histogram4_(symbols, n, count);
        cg_elias_dense_table_(value_code, a, table);
        for (unsigned s = 0; s <= a->max_symbol; s++) {
            size_t c = (size_t)count[s] + count[256 + s] + count[512 + s] + count[768 + s];
            unsigned bits;
            dense += c * (table[s] & 255);
            if (c && s != a->zero_symbol) {
                (void)cg_elias_codeword_(value_code, cg_symbol_magnitude_(a, s), &bits);
                min_sparse += c * (bits + 1 + (a->zero_symbol > 0));
            }
        }
        best = cg_min_(packed, dense);
        if (min_sparse < best) { /* the length if all gaps were 1 */
            sparse = cg_elias_sparse_put_(value_code, a, symbols, n, out, out + cap, best);
            if (sparse < best) return cg_piece_close_(CG_PIECE_SPARSE_, sparse, out);
        }
        if (dense < packed) {
            cg_bitstream_ w = cg_bitstream_open_(out, out + cap);
            cg_bitstream_put_symbols_(&w, table, symbols, n, 3);
            return cg_piece_close_(CG_PIECE_CODED_, dense, out);
        }
    }
    if (a->bits < 8) CG_KERNEL_(kernels, pack(symbols, n, a->bits, out));
    else if (n) memcpy(out, symbols, n);
    return cg_piece_close_(CG_PIECE_PACKED_, packed, out);
}
/* Whether an encoder can have written this piece, as far as its frame and header show: cg_piece_get_ of it is
   defined. */
static int cg_piece_check_(const cg_kernels_ *kernels, uint32_t value_code, const cg_alphabet_ *a, uint32_t entry,
    const uint8_t *in, size_t bytes, size_t n) {
    const unsigned mode = entry >> 30;
    const size_t bits = cg_piece_entry_bits_(entry);
    (void)kernels;
    if (n > CG_PIECE_SYMBOLS_ || !cg_code_fits_alphabet_(value_code, a) ||
        !cg_piece_entry_check_(entry, n * a->bits, in, bytes))
        return 0;
    if (mode == CG_PIECE_PACKED_) return 1;
    if (value_code == CG_VALUE_CODE_PACKED_ ||
        mode > (value_code <= CG_VALUE_CODE_OMEGA_ ? (unsigned)CG_PIECE_SPARSE_ : (unsigned)CG_PIECE_CODED_))
        return 0;
    if (value_code <= CG_VALUE_CODE_OMEGA_) return mode == CG_PIECE_SPARSE_ || bits >= n * (a->zero_symbol ? 2u : 1u);
    if (bits % 8) return 0;
    if (value_code == CG_VALUE_CODE_HUFFMAN_) {
        cg_huffman_ h;
        return cg_huffman_header_get_(&h, a->max_symbol, in, bits / 8, n);
    }
    return cg_quartic_check_(in, bits / 8, n);
}
/* n symbols at most max_symbol, whatever the entry and the `bytes` bytes at in are; what cannot be decoded is zeros.
   symbols has room for n. */
CG_NOINLINE_ void cg_piece_get_(const cg_kernels_ *kernels, uint32_t value_code, const cg_alphabet_ *a, uint32_t entry,
    const uint8_t *in, size_t bytes, size_t n, uint8_t *symbols) {
    const unsigned mode = entry >> 30;
    const size_t bits = cg_min_(cg_piece_entry_bits_(entry), 8 * bytes);
    if (!n) return;
    if (mode == CG_PIECE_PACKED_ && bits >= n * a->bits) {
        if (a->bits < 8) CG_KERNEL_(kernels, unpack(in, n, a->bits, symbols));
        else memcpy(symbols, in, n);
        if (a->max_symbol < (1u << a->bits) - 1)
            for (size_t i = 0; i < n; i++) symbols[i] = symbols[i] < a->max_symbol ? symbols[i] : a->max_symbol;
    } else if (mode == CG_PIECE_CODED_ && value_code == CG_VALUE_CODE_HUFFMAN_) {
        cg_huffman_ h;
        if (cg_huffman_header_get_(&h, a->max_symbol, in, bits / 8, n)) cg_huffman_get_(&h, in, n, symbols);
        else memset(symbols, a->zero_symbol, n);
    } else if (mode == CG_PIECE_CODED_ && value_code == CG_VALUE_CODE_QUARTIC_) {
        cg_quartic_get_(in, bits / 8, n, symbols);
    } else if (mode == CG_PIECE_CODED_ && value_code && value_code <= CG_VALUE_CODE_OMEGA_) {
        cg_elias_dense_get_(value_code, a, in, bits, n, symbols);
    } else if (mode == CG_PIECE_SPARSE_ && value_code && value_code <= CG_VALUE_CODE_OMEGA_) {
        cg_elias_sparse_get_(value_code, a, in, bits, n, symbols);
    } else {
        memset(symbols, a->zero_symbol, n);
    }
}
