/* pack: kernels that pack symbols of 1..7 bits, and unpack them

   Offers   pack, unpack
   Needs    base, table
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
#if CG_AVX2_
CG_AVX2_INLINE_ size_t cg_pack_bits_avx2_(const uint8_t *symbols, size_t n, uint8_t *out) {
    size_t i = 0;
    for (; i + 32 <= n; i += 32)
        cg_put32_(out + i / 8, (uint32_t)_mm256_movemask_epi8(_mm256_slli_epi16(cg_load_bytes_avx2_(symbols + i), 7)));
    return i;
}
CG_TARGET_AVX2_ static void cg_pack_avx2_(const uint8_t *symbols, size_t n, unsigned bits, uint8_t *out) {
    size_t i = 0;
    if (bits == 1) {
        i = cg_pack_bits_avx2_(symbols, n, out);
    } else if (bits == 4) {
        for (; i + 64 <= n; i += 64) {
            const __m256i times = _mm256_set1_epi16(0x1001);
            __m256i a = _mm256_maddubs_epi16(cg_load_bytes_avx2_(symbols + i), times),
                    b = _mm256_maddubs_epi16(cg_load_bytes_avx2_(symbols + i + 32), times);
            cg_store_avx2_(out + i / 2, _mm256_permute4x64_epi64(_mm256_packus_epi16(a, b), 0xd8));
        }
    } else { /* join 2 symbols in 16 bits, 4 in 32, 8 in 64, then move the bytes in use side by side */
        const __m256i pair = _mm256_set1_epi16((short)(1 | 1 << (8 + bits))),
                      quad = _mm256_set1_epi32(1 | 1 << (16 + 2 * bits));
        const __m128i up = _mm_cvtsi32_si128((int)(32 - 4 * bits));
        uint8_t shuffle_bytes[16];
        __m256i squeeze_shuffle;
        for (unsigned j = 0; j < 16; j++)
            shuffle_bytes[j] = (uint8_t)(j < bits ? j : j < 2 * bits ? 8 + j - bits : 0x80);
        squeeze_shuffle = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)shuffle_bytes));
        /* stores are of 16 bytes, of which 2*bits count: they stay within the bytes of whole groups of eight */
        for (; i + 32 <= n && i / 8 * bits + 2 * bits + 16 <= n / 8 * bits; i += 32) {
            uint8_t *to = out + i / 8 * bits;
            __m256i w = _mm256_madd_epi16(_mm256_maddubs_epi16(pair, cg_load_bytes_avx2_(symbols + i)), quad);
            w = _mm256_or_si256(_mm256_and_si256(w, _mm256_set1_epi64x(0xffffffff)),
                _mm256_srl_epi64(_mm256_andnot_si256(_mm256_set1_epi64x(0xffffffff), w), up));
            w = _mm256_shuffle_epi8(w, squeeze_shuffle);
            _mm_storeu_si128((__m128i *)(void *)to, _mm256_castsi256_si128(w));
            _mm_storeu_si128((__m128i *)(void *)(to + 2 * bits), _mm256_extracti128_si256(w, 1));
        }
    }
    _mm256_zeroupper();
    if (i < n) cg_pack_scalar_(symbols + i, n - i, bits, out + i / 8 * bits);
}
#endif
#if CG_NEON_
static void cg_pack_neon_(const uint8_t *symbols, size_t n, unsigned bits, uint8_t *out) {
    size_t i = 0;
    if (bits == 1) {
        for (; i + 64 <= n; i += 64) {
            uint8x16_t a = vld1q_u8(symbols + i), b = vld1q_u8(symbols + i + 16), c = vld1q_u8(symbols + i + 32),
                       d = vld1q_u8(symbols + i + 48);
            cg_put64_(out + i / 8, cg_movemask_neon_(vtstq_u8(a, a), vtstq_u8(b, b), vtstq_u8(c, c), vtstq_u8(d, d)));
        }
    } else if (bits == 2) {
        for (; i + 64 <= n; i += 64) {
            uint8x16x4_t s = vld4q_u8(symbols + i);
            vst1q_u8(out + i / 4, vsliq_n_u8(vsliq_n_u8(s.val[0], s.val[1], 2), vsliq_n_u8(s.val[2], s.val[3], 2), 4));
        }
    } else if (bits == 4) {
        for (; i + 32 <= n; i += 32) {
            uint8x16x2_t s = vld2q_u8(symbols + i);
            vst1q_u8(out + i / 2, vsliq_n_u8(s.val[0], s.val[1], 4));
        }
    } else {
        /* join 2 symbols in 16 bits, 4 in 32, 8 in 64: the upper of two moves down to the lower one's end */
        const int b = (int)bits;
        const int16x8_t down2 = vdupq_n_s16((int16_t)(b - 8));
        const int32x4_t down4 = vdupq_n_s32(2 * b - 16);
        const int64x2_t down8 = vdupq_n_s64(4 * b - 32);
        const uint16x8_t low2 = vdupq_n_u16((uint16_t)((1u << bits) - 1u));
        const uint32x4_t low4 = vdupq_n_u32((1u << 2 * bits) - 1u);
        const uint64x2_t low8 = vdupq_n_u64(((uint64_t)1 << 4 * bits) - 1);
        /* stores are of 8 bytes, of which `bits` count: the one after it overwrites the others */
        for (; i + 16 <= n && i / 8 * bits + bits + 8 <= n / 8 * bits; i += 16) {
            uint16x8_t w2 = vreinterpretq_u16_u8(vld1q_u8(symbols + i));
            uint32x4_t w4 = vreinterpretq_u32_u16(vbslq_u16(low2, w2, vshlq_u16(w2, down2)));
            uint64x2_t w8 = vreinterpretq_u64_u32(vbslq_u32(low4, w4, vshlq_u32(w4, down4)));
            uint8x16_t w = vreinterpretq_u8_u64(vbslq_u64(low8, w8, vshlq_u64(w8, down8)));
            vst1_u8(out + i / 8 * bits, vget_low_u8(w));
            vst1_u8(out + i / 8 * bits + bits, vget_high_u8(w));
        }
    }
    cg_pack_scalar_(symbols + i, n - i, bits, out + i / 8 * bits);
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
#if CG_AVX2_
CG_TARGET_AVX2_ static void cg_unpack_avx2_(const uint8_t *in, size_t n, unsigned bits, uint8_t *symbols) {
    const __m128i by4 = _mm_cvtsi32_si128((int)(4 * bits)), by2 = _mm_cvtsi32_si128((int)(2 * bits)),
                  by1 = _mm_cvtsi32_si128((int)bits);
    const __m256i low4 = _mm256_set1_epi64x((long long)(((uint64_t)1 << 4 * bits) - 1)),
                  low2 = _mm256_set1_epi32((int)((1u << 2 * bits) - 1u));
    const __m256i low1 = _mm256_set1_epi16((short)((1u << bits) - 1u));
    uint8_t shuffle_bytes[16];
    __m256i spread_shuffle;
    size_t i = 0;
    if (bits == 4) {
        for (; i + 32 <= n; i += 32) {
            __m256i w = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(const void *)(in + i / 2)));
            cg_store_avx2_(
                symbols + i, _mm256_and_si256(_mm256_or_si256(w, _mm256_slli_epi16(w, 4)), _mm256_set1_epi8(15)));
        }
    }
    for (unsigned j = 0; j < 16; j++) shuffle_bytes[j] = (uint8_t)(j % 8 < bits ? j / 8 * bits + j % 8 : 0x80);
    spread_shuffle = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)shuffle_bytes));
    for (; i + 32 <= n && i / 8 * bits + 2 * bits + 16 <= n / 8 * bits; i += 32) {
        const uint8_t *p = in + i / 8 * bits;
        __m256i w = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)p)),
            _mm_loadu_si128((const __m128i *)(const void *)(p + 2 * bits)), 1);
        w = _mm256_shuffle_epi8(w, spread_shuffle);
        w = _mm256_or_si256(
            _mm256_and_si256(w, low4), _mm256_slli_epi64(_mm256_and_si256(_mm256_srl_epi64(w, by4), low4), 32));
        w = _mm256_or_si256(
            _mm256_and_si256(w, low2), _mm256_slli_epi32(_mm256_and_si256(_mm256_srl_epi32(w, by2), low2), 16));
        w = _mm256_or_si256(
            _mm256_and_si256(w, low1), _mm256_slli_epi16(_mm256_and_si256(_mm256_srl_epi16(w, by1), low1), 8));
        cg_store_avx2_(symbols + i, w);
    }
    _mm256_zeroupper();
    if (i < n) cg_unpack_scalar_(in + i / 8 * bits, n - i, bits, symbols + i);
}
#endif
#if CG_NEON_
static void cg_unpack_neon_(const uint8_t *in, size_t n, unsigned bits, uint8_t *symbols) {
    const uint8x16_t low = vdupq_n_u8((uint8_t)((1u << bits) - 1u));
    size_t i = 0;
    if (bits == 2) {
        for (; i + 64 <= n; i += 64) {
            uint8x16_t w = vld1q_u8(in + i / 4);
            uint8x16x4_t s;
            s.val[0] = vandq_u8(w, low);
            s.val[1] = vandq_u8(vshrq_n_u8(w, 2), low);
            s.val[2] = vandq_u8(vshrq_n_u8(w, 4), low);
            s.val[3] = vshrq_n_u8(w, 6);
            vst4q_u8(symbols + i, s);
        }
    } else if (bits == 4) {
        for (; i + 32 <= n; i += 32) {
            uint8x16_t w = vld1q_u8(in + i / 2);
            uint8x16x2_t s;
            s.val[0] = vandq_u8(w, low);
            s.val[1] = vshrq_n_u8(w, 4);
            vst2q_u8(symbols + i, s);
        }
    } else { /* the steps of packing in reverse order; the last `and` clears what else is in a byte */
        const int b = (int)bits;
        const int64x2_t up8 = vdupq_n_s64(32 - 4 * b);
        const int32x4_t up4 = vdupq_n_s32(16 - 2 * b);
        const int16x8_t up2 = vdupq_n_s16((int16_t)(8 - b));
        for (; i + 16 <= n && i / 8 * bits + bits + 8 <= n / 8 * bits; i += 16) {
            const uint8_t *p = in + i / 8 * bits;
            uint64x2_t w8 = vreinterpretq_u64_u8(vcombine_u8(vld1_u8(p), vld1_u8(p + bits)));
            uint32x4_t w4 = vreinterpretq_u32_u64(vbslq_u64(vdupq_n_u64(0xffffffffu), w8, vshlq_u64(w8, up8)));
            uint16x8_t w2 = vreinterpretq_u16_u32(vbslq_u32(vdupq_n_u32(0xffff), w4, vshlq_u32(w4, up4)));
            vst1q_u8(
                symbols + i, vandq_u8(vreinterpretq_u8_u16(vbslq_u16(vdupq_n_u16(0xff), w2, vshlq_u16(w2, up2))), low));
        }
    }
    cg_unpack_scalar_(in + i / 8 * bits, n - i, bits, symbols + i);
}
#endif
