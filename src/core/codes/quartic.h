/* quartic: ternary symbols, five to a byte, with runs of zeros shortened (3LC)

   Offers   cg_quartic_put_, cg_quartic_check_, cg_quartic_get_
   Needs    base, bits
   Touches  nothing but its arguments
   A byte is the sum of t_i*3^i over five symbols 0..2; the last group is filled up with zero_symbol. Five symbols 1,
   which is the zero of ternary alphabets, are the byte 121. A run of 2..14 such bytes becomes the one byte 241 + its
   length. */

/* Writes n symbols; returns the bytes written, at most limit, or limit + 1 if they do not fit. */
static size_t cg_quartic_put_(const cg_alphabet_ *a, const uint8_t *symbols, size_t n, uint8_t *out, size_t limit) {
    const uint64_t times = (uint64_t)1 << 32 | 3u << 24 | 9u << 16 | 27u << 8 | 81u,
                   zeros = a->zero_symbol * (uint64_t)0x0101010101u;
    size_t bytes = 0;
    unsigned run_length = 0;
    for (size_t i = 0; i < n; i += 5) {
        uint64_t x = zeros;
        uint8_t q;
        if (n - i >= 8) x = cg_get64_(symbols + i) & 0xffffffffffu;
        else
            for (size_t j = 0; j < 5 && j < n - i; j++)
                x = (x & ~((uint64_t)255 << 8 * j)) | (uint64_t)symbols[i + j] << 8 * j;
        q = (uint8_t)(x * times >> 32);
        run_length = q == 121 && run_length < 14 ? run_length + 1 : q == 121;
        if (run_length < 2) {
            if (bytes == limit) return limit + 1;
            out[bytes++] = q;
        } else {
            out[bytes - 1] = (uint8_t)(241 + run_length);
        }
    }
    return bytes;
}
/* Whether these bytes hold just n symbols. */
static int cg_quartic_check_(const uint8_t *in, size_t bytes, size_t n) {
    size_t groups = 0;
    for (size_t i = 0; i < bytes; i++) groups += in[i] < 243 ? 1u : in[i] - 241u;
    return groups == (n + 4) / 5;
}
/* n symbols 0..2, whatever the bytes are; zeros where they end early. */
static void cg_quartic_get_(const uint8_t *in, size_t bytes, size_t n, uint8_t *symbols) {
    uint64_t table[243]; /* the five symbols of a byte, a byte each */
    size_t i = 0, j = 0;
    unsigned repeat = 0;
    table[0] = 0;
    for (unsigned t = 0, many = 1; t < 5; t++, many *= 3)
        for (unsigned q = 0; q < 2 * many; q++) table[many + q] = table[q] + ((uint64_t)1 << 8 * t);
    for (; i < n; i += 5) {
        unsigned q = 121;
        if (repeat) repeat--;
        else if (j < bytes) {
            q = in[j++];
            if (q >= 243) {
                repeat = q - 242;
                q = 121;
            }
        }
        if (n - i >= 8) cg_put64_(symbols + i, table[q]);
        else
            for (size_t t = 0; t < 5 && t < n - i; t++) symbols[i + t] = (uint8_t)(table[q] >> 8 * t);
    }
}
