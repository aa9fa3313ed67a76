/* vote: the kernel of the majority vote over strings of bits

   Offers   vote
   Needs    base, table, the vector layer
   Touches  nothing but its arguments
   Counters are bit planes: bit j of plane p is bit p of the counter of bit j. Eight strings are added at a time by full
   adders. Counters start from 2^P - 1 - count/2 instead of 0: then plane P says whether more than half have a 1. */

#define CG_VOTE_PLANES_ 16u /* enough for 65535 strings */
/* P: at least 3, as eight strings add to three planes before they carry */
CG_INLINE_ unsigned cg_vote_result_plane_(size_t count) { return count < 16 ? 3 : cg_log2_(count / 2) + 1; }
CG_INLINE_ uint32_t cg_vote_start_(size_t count) {
    return (1u << cg_vote_result_plane_(count)) - 1u - (uint32_t)(count / 2);
}
CG_INLINE_ uint64_t cg_full_adder_(
    uint64_t *s, uint64_t a, uint64_t b) { /* *s becomes the sum of three bits; returns the carry */
    uint64_t x = *s ^ a, carry = (*s & a) | (x & b);
    *s = x ^ b;
    return carry;
}
/* vote: each bit of out is 1 where more than half of the strings in[0..count) have a 1; a tie is 0. count <= 65535.
   Here from byte `from` to `bytes`. out may not overlap the strings. */
static void cg_vote_from_(const uint8_t *const *in, size_t count, size_t from, size_t bytes, uint8_t *out) {
    const unsigned result_plane = cg_vote_result_plane_(count);
    const uint32_t start_count = cg_vote_start_(count);
    for (; from < bytes; from += 64) { /* a cache line of each string at a time */
        const size_t many = cg_min_(64, bytes - from);
        uint64_t planes[8][CG_VOTE_PLANES_];
        for (unsigned j = 0; j < 8; j++)
            for (unsigned p = 0; p <= result_plane; p++) planes[j][p] = start_count >> p & 1 ? ~(uint64_t)0 : 0;
        for (size_t i = 0; i < count; i += 8) {
            for (size_t j = 0; 8 * j < many; j++) {
                uint64_t w[8], *s = planes[j], a, b, c, d;
                const size_t left = cg_min_(8, many - 8 * j);
                for (size_t k = 0; k < 8; k++) {
                    w[k] = 0;
                    if (i + k >= count) continue;
                    if (left == 8) memcpy(&w[k], in[i + k] + from + 8 * j, 8);
                    else memcpy(&w[k], in[i + k] + from + 8 * j, left);
                }
                a = cg_full_adder_(&s[0], w[0], w[1]);
                b = cg_full_adder_(&s[0], w[2], w[3]);
                c = cg_full_adder_(&s[1], a, b);
                a = cg_full_adder_(&s[0], w[4], w[5]);
                b = cg_full_adder_(&s[0], w[6], w[7]);
                d = cg_full_adder_(&s[1], a, b);
                c = cg_full_adder_(&s[2], c, d);
                for (unsigned p = 3; p <= result_plane; p++) {
                    d = s[p] & c;
                    s[p] ^= c;
                    c = d;
                }
            }
        }
        for (size_t j = 0; 8 * j < many; j++)
            memcpy(out + from + 8 * j, &planes[j][result_plane], cg_min_(8, many - 8 * j));
    }
}
static void cg_vote_scalar_(const uint8_t *const *in, size_t count, size_t bytes, uint8_t *out) {
    cg_vote_from_(in, count, 0, bytes, out);
}
#if CG_VECTOR_
/* Adds 32 bytes of up to eight strings to the planes s[0..2]; returns the carry to plane 3. */
CG_VECTOR_FN_ cg_vu_ cg_vote8_(const uint8_t *const *in, size_t many, size_t at, cg_vu_ *s) {
    cg_vu_ w[8], a, b, c, d;
    CG_UNROLL_
    for (size_t k = 0; k < 8; k++) w[k] = k < many ? cg_vu_load_(in[k] + at) : cg_vu_set_(0);
    a = cg_vu_full_adder_(&s[0], w[0], w[1]);
    b = cg_vu_full_adder_(&s[0], w[2], w[3]);
    c = cg_vu_full_adder_(&s[1], a, b);
    a = cg_vu_full_adder_(&s[0], w[4], w[5]);
    b = cg_vu_full_adder_(&s[0], w[6], w[7]);
    d = cg_vu_full_adder_(&s[1], a, b);
    return cg_vu_full_adder_(&s[2], c, d);
}
CG_VECTOR_FN_ cg_vu_ cg_broadcast_bit_(uint32_t start_count, unsigned p) {
    return cg_vu_set_(start_count >> p & 1 ? ~0u : 0u);
}
/* Up to eight strings: the carry to plane 3 is the result. Returns the number of bytes done. */
CG_VECTOR_FN_ size_t cg_vote_few_(const uint8_t *const *in, size_t count, size_t bytes, uint8_t *out) {
    const uint32_t start_count = cg_vote_start_(count);
    const cg_vu_ s0 = cg_broadcast_bit_(start_count, 0), s1 = cg_broadcast_bit_(start_count, 1),
                 s2 = cg_broadcast_bit_(start_count, 2);
    const uint8_t *from[8]; /* copies: out cannot alias them */
    size_t at = 0;
    for (size_t k = 0; k < 8; k++) from[k] = in[k < count ? k : 0];
    for (; at + 32 <= bytes; at += 32) {
        cg_vu_ s[3];
        s[0] = s0;
        s[1] = s1;
        s[2] = s2;
        cg_vu_store_(out + at, cg_vote8_(from, count, at, s));
    }
    return at;
}
/* More strings, 512 bytes of each at a time: long enough runs for memory, and the planes stay in L1. */
CG_VECTOR_FN_ size_t cg_vote_many_(const uint8_t *const *in, size_t count, size_t bytes, uint8_t *out) {
    const unsigned result_plane = cg_vote_result_plane_(count);
    const uint32_t start_count = cg_vote_start_(count);
    cg_vu_ planes[16][CG_VOTE_PLANES_];
    size_t at = 0;
    for (; at + 32 <= bytes;) {
        const size_t rows = cg_min_(16, (bytes - at) / 32);
        for (size_t j = 0; j < rows; j++)
            for (unsigned p = 0; p <= result_plane; p++) planes[j][p] = cg_broadcast_bit_(start_count, p);
        for (size_t i = 0; i < count; i += 8) {
            const size_t many = cg_min_(8, count - i);
            /* prefetches the next run of each string: two rows are a cache line, so half of the strings at each */
            for (size_t j = 0; j < rows; j++) {
                cg_vu_ *s = planes[j], c, d;
                for (size_t k = j % 2 * 4; k < cg_min_(many, j % 2 * 4 + 4); k++)
                    CG_PREFETCH_(in[i + k] + at + 512 + 32 * j);
                c = many == 8 ? cg_vote8_(in + i, 8, at + 32 * j, s) : cg_vote8_(in + i, many, at + 32 * j, s);
                for (unsigned p = 3; p <= result_plane; p++) {
                    d = cg_vu_and_(s[p], c);
                    s[p] = cg_vu_xor_(s[p], c);
                    c = d;
                }
            }
        }
        for (size_t j = 0; j < rows; j++, at += 32) cg_vu_store_(out + at, planes[j][result_plane]);
    }
    return at;
}
CG_VECTOR_FN_ void cg_vote_simd_(const uint8_t *const *in, size_t count, size_t bytes, uint8_t *out) {
    size_t at;
    switch (count) {
    case 0: at = 0; break;
    case 1: at = cg_vote_few_(in, 1, bytes, out); break;
    case 2: at = cg_vote_few_(in, 2, bytes, out); break;
    case 3: at = cg_vote_few_(in, 3, bytes, out); break;
    case 4: at = cg_vote_few_(in, 4, bytes, out); break;
    case 5: at = cg_vote_few_(in, 5, bytes, out); break;
    case 6: at = cg_vote_few_(in, 6, bytes, out); break;
    case 7: at = cg_vote_few_(in, 7, bytes, out); break;
    case 8: at = cg_vote_few_(in, 8, bytes, out); break;
    default: at = cg_vote_many_(in, count, bytes, out);
    }
    if (at < bytes) cg_vote_from_(in, count, at, bytes, out);
}
#endif
