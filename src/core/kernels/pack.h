/* pack: kernels that pack symbols of 1..7 bits, and unpack them

   Offers   pack, unpack
   Needs    base, table, the vector layer
   Touches  nothing but its arguments */

/* pack: symbols below 2^bits, bits = 1..7, as one string of bits, LSB first: eight of them fill `bits` bytes. Writes
   (n*bits + 7)/8 bytes; bits after the last symbol are 0. */
static void cg_pack_scalar_(const uint8_t *symbols, size_t n, unsigned bits, uint8_t *out) {
    for (size_t i = 0; i < n; i += 8) {
        uint64_t w = 0;
        unsigned many = (unsigned)cg_min_(8, n - i);
        for (unsigned j = 0; j < many; j++) w |= (uint64_t)symbols[i + j] << j * bits;
        for (unsigned j = 0; j < (many * bits + 7) / 8; j++) *out++ = (uint8_t)(w >> 8 * j);
    }
}
#if CG_VECTOR_
CG_VECTOR_FN_ void cg_pack_simd_(const uint8_t *symbols, size_t n, unsigned bits, uint8_t *out) {
    size_t i = 0;
    if (bits == 1)
        for (; i + 32 <= n; i += 32)
            cg_put32_(out + i / 8, cg_vb_mask_in_order_(cg_vu_shl_(cg_vu_load_(symbols + i), 7)));
    else i = cg_pack_most_(symbols, n, bits, out);
    if (i < n) cg_pack_scalar_(symbols + i, n - i, bits, out + i / 8 * bits);
}
#endif

/* unpack: the reverse of pack. Reads (n*bits + 7)/8 bytes, writes n symbols below 2^bits. */
static void cg_unpack_scalar_(const uint8_t *in, size_t n, unsigned bits, uint8_t *symbols) {
    for (size_t i = 0; i < n; i += 8) {
        uint64_t w = 0;
        unsigned many = (unsigned)cg_min_(8, n - i);
        for (unsigned j = 0; j < (many * bits + 7) / 8; j++) w |= (uint64_t)*in++ << 8 * j;
        for (unsigned j = 0; j < many; j++) symbols[i + j] = (uint8_t)(w >> j * bits & ((1u << bits) - 1u));
    }
}
#if CG_VECTOR_
CG_VECTOR_FN_ void cg_unpack_simd_(const uint8_t *in, size_t n, unsigned bits, uint8_t *symbols) {
    const size_t i = cg_unpack_most_(in, n, bits, symbols);
    if (i < n) cg_unpack_scalar_(in + i / 8 * bits, n - i, bits, symbols + i);
}
#endif
