/* floats: pieces of f32 or bf16 values with their exponents entropy coded

   Offers   cg_floats_put_, cg_floats_check_, cg_floats_get_
   Needs    base, kernels, bits, huffman
   Touches  nothing but its arguments
   A coded piece is the exponents as a Huffman piece, then the rest of each value, the sign on top: 3 bytes, or 1
   (bf16). width: bytes of a value, 4 (f32) or 2 (bf16), as they are on the wire. n is at most CG_CHUNK_. */

/* Writes n <= CG_CHUNK_ values and returns the entry. cap: bytes at out, at least n*width in whole words; all of them
   may be scribbled on. */
CG_NOINLINE_ uint32_t cg_floats_put_(
    const cg_kernels_ *kernels, unsigned width, const uint8_t *in, size_t n, uint8_t *out, size_t cap) {
    if (n) {
        uint8_t exponents[CG_CHUNK_];
        cg_huffman_ h;
        size_t coded;
        CG_KERNEL_(kernels, exponents(width, in, n, exponents));
        coded = cg_huffman_plan_(&h, exponents, n);
        if (coded < n) {
            cg_huffman_put_(&h, exponents, n, out, out + cap);
            CG_KERNEL_(kernels, sign_mantissas(width, in, n, out + coded));
            return cg_piece_close_(CG_PIECE_CODED_, 8 * (coded + n * (width - 1)), out);
        }
        memcpy(out, in, n * width);
    }
    return cg_piece_close_(CG_PIECE_PACKED_, 8 * n * width, out);
}
/* Whether an encoder can have written this piece. Coded values are finite then; raw ones are not looked at. */
CG_NOINLINE_ int cg_floats_check_(
    const cg_kernels_ *kernels, unsigned width, uint32_t entry, const uint8_t *in, size_t bytes, size_t n) {
    cg_huffman_ h;
    const size_t size = cg_piece_entry_bits_(entry) / 8;
    (void)kernels;
    if (n > CG_CHUNK_ || cg_piece_entry_bits_(entry) % 8 || !cg_piece_entry_check_(entry, 8 * n * width, in, bytes))
        return 0;
    if (entry >> 30 == CG_PIECE_PACKED_) return 1;
    /* an exponent of 255 would be Inf or NaN */
    return entry >> 30 == CG_PIECE_CODED_ && size >= n * (width - 1) &&
        cg_huffman_header_get_(&h, 254, in, size - n * (width - 1), n);
}
/* n values, whatever the entry and the `bytes` bytes at in are; what cannot be decoded is zeros. */
CG_NOINLINE_ void cg_floats_get_(const cg_kernels_ *kernels, unsigned width, uint32_t entry, const uint8_t *in,
    size_t bytes, size_t n, uint8_t *out) {
    uint8_t exponents[CG_CHUNK_];
    cg_huffman_ h;
    const size_t size = cg_min_(cg_piece_entry_bits_(entry) / 8, bytes), sign_mantissas = n * (width - 1);
    if (!n) return;
    if (entry >> 30 == CG_PIECE_PACKED_ && size >= n * width) {
        memcpy(out, in, n * width);
    } else if (entry >> 30 == CG_PIECE_CODED_ && n <= CG_CHUNK_ && size >= sign_mantissas &&
        cg_huffman_header_get_(&h, 255, in, size - sign_mantissas, n)) {
        cg_huffman_get_(&h, in, n, exponents);
        CG_KERNEL_(kernels, floats_join(width, exponents, in + (size - sign_mantissas), n, out));
    } else {
        memset(out, 0, n * width);
    }
}
