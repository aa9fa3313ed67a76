/* ---- pieces of symbols */

static int cg_code_fits_alphabet_(uint32_t code, const cg_alphabet_ *a) {
    if (code > CG_VALUE_CODE_QUARTIC_ || a->bits < 1 || a->bits > 8 || a->max_symbol >> (a->bits - 1) > 1 ||
        a->zero_symbol > a->max_symbol)
        return 0;
    return code != CG_VALUE_CODE_QUARTIC_ || a->max_symbol == 2;
}
/* symbols <= top, n <= CG_PIECE_SYMBOLS_, cap >= the packed words; up to cap may be scribbled on. Ties go to the
   lower form. */
CG_NOINLINE_ uint32_t cg_piece_put_(const cg_kernels_ *kernels, uint32_t code, const cg_alphabet_ *a,
    const uint8_t *symbols, size_t n, uint8_t *out, size_t cap) {
    const size_t packed = n * a->bits;
    if (n && code == CG_VALUE_CODE_HUFFMAN_) {
        cg_huffman_ h;
        size_t bytes = cg_huffman_plan_(&h, symbols, n);
        if (8 * bytes < packed) {
            cg_huffman_put_(&h, symbols, n, out, out + cap);
            return cg_piece_close_(1, 8 * bytes, out);
        }
    } else if (n && code == CG_VALUE_CODE_QUARTIC_) {
        size_t limit = (packed - 1) / 8, bytes = cg_quartic_put_(a, symbols, n, out, limit);
        if (bytes <= limit) return cg_piece_close_(1, 8 * bytes, out);
    } else if (n && code) {
        uint32_t count[1024];
        uint32_t table[256];
        size_t dense = 0, least = 0, best, sparse;
        cg_histogram4_(symbols, n, count);
        cg_elias_dense_table_(code, a, table);
        for (unsigned s = 0; s <= a->max_symbol; s++) {
            size_t c = (size_t)count[s] + count[256 + s] + count[512 + s] + count[768 + s];
            unsigned bits;
            dense += c * (table[s] & 255);
            if (c && s != a->zero_symbol) {
                (void)cg_elias_codeword_(code, cg_symbol_magnitude_(a, s), &bits);
                least += c * (bits + 1 + (a->zero_symbol > 0));
            }
        }
        best = cg_min_(packed, dense);
        if (least < best) { /* if all gaps were 1 */
            sparse = cg_elias_sparse_put_(code, a, symbols, n, out, out + cap, best);
            if (sparse < best) return cg_piece_close_(2, sparse, out);
        }
        if (dense < packed) {
            cg_bitstream_ w = cg_bitstream_open_(out, out + cap);
            cg_bitstream_put_symbols_(&w, table, symbols, n, 3);
            return cg_piece_close_(1, dense, out);
        }
    }
    if (a->bits < 8) kernels->pack(symbols, n, a->bits, out);
    else if (n) memcpy(out, symbols, n);
    return cg_piece_close_(0, packed, out);
}
static int cg_piece_check_(const cg_kernels_ *kernels, uint32_t code, const cg_alphabet_ *a, uint32_t entry,
    const uint8_t *in, size_t bytes, size_t n) {
    const unsigned form = entry >> 30;
    const size_t bits = cg_piece_entry_bits_(entry);
    (void)kernels;
    if (n > CG_PIECE_SYMBOLS_ || !cg_code_fits_alphabet_(code, a) ||
        !cg_piece_entry_check_(entry, n * a->bits, in, bytes))
        return 0;
    if (form == 0) return 1;
    if (code == CG_VALUE_CODE_PACKED_ || form > (code <= CG_VALUE_CODE_OMEGA_ ? 2u : 1u)) return 0;
    if (code <= CG_VALUE_CODE_OMEGA_) return form == 2 || bits >= n * (a->zero_symbol ? 2u : 1u);
    if (bits % 8) return 0;
    if (code == CG_VALUE_CODE_HUFFMAN_) {
        cg_huffman_ h;
        return cg_huffman_header_get_(&h, a->max_symbol, in, bits / 8, n);
    }
    return cg_quartic_check_(in, bits / 8, n);
}
CG_NOINLINE_ void cg_piece_get_(const cg_kernels_ *kernels, uint32_t code, const cg_alphabet_ *a, uint32_t entry,
    const uint8_t *in, size_t bytes, size_t n, uint8_t *symbols) {
    const unsigned form = entry >> 30;
    const size_t bits = cg_min_(cg_piece_entry_bits_(entry), 8 * bytes);
    if (!n) return;
    if (form == 0 && bits >= n * a->bits) {
        if (a->bits < 8) kernels->unpack(in, n, a->bits, symbols);
        else memcpy(symbols, in, n);
        if (a->max_symbol < (1u << a->bits) - 1)
            for (size_t i = 0; i < n; i++) symbols[i] = symbols[i] < a->max_symbol ? symbols[i] : a->max_symbol;
    } else if (form == 1 && code == CG_VALUE_CODE_HUFFMAN_) {
        cg_huffman_ h;
        if (cg_huffman_header_get_(&h, a->max_symbol, in, bits / 8, n)) cg_huffman_get_(&h, in, n, symbols);
        else memset(symbols, a->zero_symbol, n);
    } else if (form == 1 && code == CG_VALUE_CODE_QUARTIC_) {
        cg_quartic_get_(in, bits / 8, n, symbols);
    } else if (form == 1 && code && code <= CG_VALUE_CODE_OMEGA_) {
        cg_elias_dense_get_(code, a, in, bits, n, symbols);
    } else if (form == 2 && code && code <= CG_VALUE_CODE_OMEGA_) {
        cg_elias_sparse_get_(code, a, in, bits, n, symbols);
    } else {
        memset(symbols, a->zero_symbol, n);
    }
}
