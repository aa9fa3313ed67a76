/* floats: pieces of f32 or bf16 values with their exponents entropy coded

   Offers   cg_floats_put_, cg_floats_check_, cg_floats_get_; for tests the kernels cg_exponents_, cg_sign_mantissas_,
            cg_floats_join_
   Needs    base, kernels, bits, huffman
   Touches  nothing but its arguments
   A coded piece is the exponents as a Huffman piece, then the rest of each value, the sign on top: 3 bytes, or 1
   (bf16). width: bytes of a value, 4 (f32) or 2 (bf16), as they are on the wire. n is at most CG_CHUNK_. */

/* Values taken apart to exponents[n] and sign_mantissas[n*(width - 1)], and put together again. */
static void cg_exponents_scalar_(unsigned width, const uint8_t *in, size_t n, uint8_t *exponents) {
    if (width == 4)
        for (size_t i = 0; i < n; i++) exponents[i] = (uint8_t)(cg_get32_(in + 4 * i) >> 23);
    else
        for (size_t i = 0; i < n; i++) exponents[i] = (uint8_t)(cg_get16_(in + 2 * i) >> 7);
}
static void cg_sign_mantissas_scalar_(unsigned width, const uint8_t *in, size_t n, uint8_t *sign_mantissas) {
    if (width == 4) {
        for (size_t i = 0; i < n; i++) {
            uint32_t u = cg_get32_(in + 4 * i);
            cg_put16_(sign_mantissas + 3 * i, u);
            sign_mantissas[3 * i + 2] = (uint8_t)((u >> 16 & 0x7f) | (u >> 24 & 0x80));
        }
    } else {
        for (size_t i = 0; i < n; i++) sign_mantissas[i] = (uint8_t)((in[2 * i] & 0x7f) | (in[2 * i + 1] & 0x80));
    }
}
static void cg_floats_join_scalar_(
    unsigned width, const uint8_t *exponents, const uint8_t *sign_mantissas, size_t n, uint8_t *out) {
    if (width == 4) {
        for (size_t i = 0; i < n; i++) {
            uint32_t r = cg_get16_(sign_mantissas + 3 * i) | (uint32_t)sign_mantissas[3 * i + 2] << 16;
            cg_put32_(out + 4 * i, (r & 0x7fffff) | (r & 0x800000) << 8 | (uint32_t)exponents[i] << 23);
        }
    } else {
        for (size_t i = 0; i < n; i++)
            cg_put16_(out + 2 * i,
                (sign_mantissas[i] & 0x7fu) | (sign_mantissas[i] & 0x80u) << 8 | (uint32_t)exponents[i] << 7);
    }
}
#if CG_AVX2_
/* exponents of eight f32 */
CG_AVX2_INLINE_ __m256i cg_exponent8_avx2_(const uint8_t *in) {
    return _mm256_srli_epi32(_mm256_slli_epi32(cg_load_bytes_avx2_(in), 1), 24);
}
CG_TARGET_AVX2_ static void cg_exponents_avx2_(unsigned width, const uint8_t *in, size_t n, uint8_t *exponents) {
    size_t i = 0;
    if (width == 4) {
        for (; i + 32 <= n; i += 32) {
            const uint8_t *p = in + 4 * i;
            __m256i a = _mm256_packus_epi32(cg_exponent8_avx2_(p), cg_exponent8_avx2_(p + 32));
            __m256i b = _mm256_packus_epi32(cg_exponent8_avx2_(p + 64), cg_exponent8_avx2_(p + 96));
            cg_store_avx2_(exponents + i, cg_pack_order_avx2_(_mm256_packus_epi16(a, b)));
        }
    } else {
        for (; i + 32 <= n; i += 32) {
            __m256i a = _mm256_srli_epi16(_mm256_slli_epi16(cg_load_bytes_avx2_(in + 2 * i), 1), 8);
            __m256i b = _mm256_srli_epi16(_mm256_slli_epi16(cg_load_bytes_avx2_(in + 2 * i + 32), 1), 8);
            cg_store_avx2_(exponents + i, _mm256_permute4x64_epi64(_mm256_packus_epi16(a, b), 0xd8));
        }
    }
    _mm256_zeroupper();
    cg_exponents_scalar_(width, in + width * i, n - i, exponents + i);
}
CG_TARGET_AVX2_ static void cg_sign_mantissas_avx2_(
    unsigned width, const uint8_t *in, size_t n, uint8_t *sign_mantissas) {
    size_t i = 0;
    if (width == 4) {
        const __m256i low = _mm256_set1_epi32(0x7fffff), sign = _mm256_set1_epi32(0x800000);
        const __m256i squeeze_shuffle = _mm256_broadcastsi128_si256(
            _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1));
        for (; i + 10 <= n; i += 8) { /* the upper store writes 4 bytes more than its values */
            __m256i v = cg_load_bytes_avx2_(in + 4 * i);
            v = _mm256_or_si256(_mm256_and_si256(v, low), _mm256_and_si256(_mm256_srli_epi32(v, 8), sign));
            v = _mm256_shuffle_epi8(v, squeeze_shuffle);
            _mm_storeu_si128((__m128i *)(void *)(sign_mantissas + 3 * i), _mm256_castsi256_si128(v));
            _mm_storeu_si128((__m128i *)(void *)(sign_mantissas + 3 * i + 12), _mm256_extracti128_si256(v, 1));
        }
    } else {
        const __m256i low = _mm256_set1_epi16(0x7f), sign = _mm256_set1_epi16(0x80);
        for (; i + 32 <= n; i += 32) {
            __m256i a = cg_load_bytes_avx2_(in + 2 * i), b = cg_load_bytes_avx2_(in + 2 * i + 32);
            a = _mm256_or_si256(_mm256_and_si256(a, low), _mm256_and_si256(_mm256_srli_epi16(a, 8), sign));
            b = _mm256_or_si256(_mm256_and_si256(b, low), _mm256_and_si256(_mm256_srli_epi16(b, 8), sign));
            cg_store_avx2_(sign_mantissas + i, _mm256_permute4x64_epi64(_mm256_packus_epi16(a, b), 0xd8));
        }
    }
    _mm256_zeroupper();
    cg_sign_mantissas_scalar_(width, in + width * i, n - i, sign_mantissas + (width - 1) * i);
}
CG_TARGET_AVX2_ static void cg_floats_join_avx2_(
    unsigned width, const uint8_t *exponents, const uint8_t *sign_mantissas, size_t n, uint8_t *out) {
    size_t i = 0;
    if (width == 4) {
        const __m256i low = _mm256_set1_epi32(0x7fffff), sign = _mm256_set1_epi32(0x800000);
        const __m256i spread_shuffle = _mm256_broadcastsi128_si256(
            _mm_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1));
        for (; i + 10 <= n; i += 8) {
            __m256i e = _mm256_slli_epi32(
                _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)(exponents + i))), 23);
            __m256i r = _mm256_inserti128_si256(
                _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)(sign_mantissas + 3 * i))),
                _mm_loadu_si128((const __m128i *)(const void *)(sign_mantissas + 3 * i + 12)), 1);
            r = _mm256_shuffle_epi8(r, spread_shuffle);
            r = _mm256_or_si256(_mm256_and_si256(r, low), _mm256_slli_epi32(_mm256_and_si256(r, sign), 8));
            cg_store_avx2_(out + 4 * i, _mm256_or_si256(r, e));
        }
    } else {
        const __m256i low = _mm256_set1_epi16(0x7f), sign = _mm256_set1_epi16(0x80);
        for (; i + 16 <= n; i += 16) {
            __m256i e = _mm256_slli_epi16(
                _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(const void *)(exponents + i))), 7);
            __m256i r = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(const void *)(sign_mantissas + i)));
            r = _mm256_or_si256(_mm256_and_si256(r, low), _mm256_slli_epi16(_mm256_and_si256(r, sign), 8));
            cg_store_avx2_(out + 2 * i, _mm256_or_si256(r, e));
        }
    }
    _mm256_zeroupper();
    cg_floats_join_scalar_(width, exponents + i, sign_mantissas + (width - 1) * i, n - i, out + width * i);
}
#endif
/* The same, by the ISA in use. They are no members of the table as only AVX2 has its own. */
static void cg_exponents_(const cg_kernels_ *kernels, unsigned width, const uint8_t *in, size_t n, uint8_t *exponents) {
#if CG_AVX2_
    if (kernels->isa == CG_ISA_AVX2) {
        cg_exponents_avx2_(width, in, n, exponents);
        return;
    }
#endif
    (void)kernels;
    cg_exponents_scalar_(width, in, n, exponents);
}
static void cg_sign_mantissas_(
    const cg_kernels_ *kernels, unsigned width, const uint8_t *in, size_t n, uint8_t *sign_mantissas) {
#if CG_AVX2_
    if (kernels->isa == CG_ISA_AVX2) {
        cg_sign_mantissas_avx2_(width, in, n, sign_mantissas);
        return;
    }
#endif
    (void)kernels;
    cg_sign_mantissas_scalar_(width, in, n, sign_mantissas);
}
static void cg_floats_join_(const cg_kernels_ *kernels, unsigned width, const uint8_t *exponents,
    const uint8_t *sign_mantissas, size_t n, uint8_t *out) {
#if CG_AVX2_
    if (kernels->isa == CG_ISA_AVX2) {
        cg_floats_join_avx2_(width, exponents, sign_mantissas, n, out);
        return;
    }
#endif
    (void)kernels;
    cg_floats_join_scalar_(width, exponents, sign_mantissas, n, out);
}

/* Writes n <= CG_CHUNK_ values and returns the entry. cap: bytes at out, at least n*width in whole words; all of them
   may be scribbled on. */
CG_NOINLINE_ uint32_t cg_floats_put_(
    const cg_kernels_ *kernels, unsigned width, const uint8_t *in, size_t n, uint8_t *out, size_t cap) {
    if (n) {
        uint8_t exponents[CG_CHUNK_];
        cg_huffman_ h;
        size_t coded;
        cg_exponents_(kernels, width, in, n, exponents);
        coded = cg_huffman_plan_(&h, exponents, n);
        if (coded < n) {
            cg_huffman_put_(&h, exponents, n, out, out + cap);
            cg_sign_mantissas_(kernels, width, in, n, out + coded);
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
        cg_floats_join_(kernels, width, exponents, in + (size - sign_mantissas), n, out);
    } else {
        memset(out, 0, n * width);
    }
}
