/* hmac_sha256.h - SHA-256 (FIPS 180-4) and HMAC-SHA-256 (RFC 2104), for the shared secret of transport_tcp.h.

   unsigned char mac[32];
   cg_hmac_sha256(key, key_bytes, data, data_bytes, mac);
   if (cg_hmac_differs(mac, theirs, 32)) ...                  // takes the same time wherever they differ

   C99 and C++11, no allocation. It is written to be read, for a few hundred bytes at a time. */

#ifndef CG_HMAC_SHA256_H
#define CG_HMAC_SHA256_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct cg_sha256 {
    uint32_t state[8];
    uint64_t bytes; /* so far; those of an unfinished block are in `block` */
    unsigned char block[64];
} cg_sha256;

static inline uint32_t cg_sha256_rotate_(uint32_t x, int by) { return x >> by | x << (32 - by); }

static inline void cg_sha256_block_(uint32_t state[8], const unsigned char *p) {
    /* the first 32 bits of the fractional parts of the cube roots of the first 64 primes */
    static const uint32_t round[64] = { 0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
        0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7,
        0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
        0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
        0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
        0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c,
        0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
        0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2 };
    uint32_t w[64], s[8];
    int t;
    for (t = 0; t < 16; t++, p += 4)
        w[t] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | (uint32_t)p[3];
    for (t = 16; t < 64; t++) {
        const uint32_t a = w[t - 15], b = w[t - 2];
        w[t] = w[t - 16] + w[t - 7] + (cg_sha256_rotate_(a, 7) ^ cg_sha256_rotate_(a, 18) ^ a >> 3) +
            (cg_sha256_rotate_(b, 17) ^ cg_sha256_rotate_(b, 19) ^ b >> 10);
    }
    memcpy(s, state, sizeof s);
    for (t = 0; t < 64; t++) { /* s: the standard's a to h */
        const uint32_t big1 = cg_sha256_rotate_(s[4], 6) ^ cg_sha256_rotate_(s[4], 11) ^ cg_sha256_rotate_(s[4], 25);
        const uint32_t big0 = cg_sha256_rotate_(s[0], 2) ^ cg_sha256_rotate_(s[0], 13) ^ cg_sha256_rotate_(s[0], 22);
        const uint32_t one = s[7] + big1 + ((s[4] & s[5]) ^ (~s[4] & s[6])) + round[t] + w[t];
        const uint32_t two = big0 + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
        memmove(s + 1, s, 7 * sizeof *s);
        s[4] += one;
        s[0] = one + two;
    }
    for (t = 0; t < 8; t++) state[t] += s[t];
}

static inline void cg_sha256_init(cg_sha256 *h) {
    /* the first 32 bits of the fractional parts of the square roots of the first eight primes */
    static const uint32_t start[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c,
        0x1f83d9ab, 0x5be0cd19 };
    memset(h, 0, sizeof *h);
    memcpy(h->state, start, sizeof start);
}

static inline void cg_sha256_add(cg_sha256 *h, const void *data, size_t bytes) {
    const unsigned char *p = (const unsigned char *)data;
    while (bytes) {
        const size_t at = (size_t)(h->bytes % 64), n = bytes < 64 - at ? bytes : 64 - at;
        memcpy(h->block + at, p, n);
        h->bytes += n;
        p += n;
        bytes -= n;
        if (at + n == 64) cg_sha256_block_(h->state, h->block);
    }
}

static inline void cg_sha256_end(cg_sha256 *h, unsigned char out[32]) {
    static const unsigned char pad[64] = { 0x80 };
    const uint64_t bits = h->bytes * 8;
    unsigned char length[8];
    int i;
    for (i = 0; i < 8; i++) length[i] = (unsigned char)(bits >> (56 - 8 * i) & 255);
    cg_sha256_add(h, pad, 1 + (119 - (size_t)(h->bytes % 64)) % 64); /* 8 bytes remain of the block */
    cg_sha256_add(h, length, 8);
    for (i = 0; i < 32; i++) out[i] = (unsigned char)(h->state[i / 4] >> (24 - 8 * (i % 4)) & 255);
}

static inline void cg_hmac_sha256(
    const void *key, size_t key_bytes, const void *data, size_t bytes, unsigned char mac[32]) {
    unsigned char pad[64] = { 0 };
    cg_sha256 h;
    int i;
    cg_sha256_init(&h);
    if (key_bytes > 64) cg_sha256_add(&h, key, key_bytes), cg_sha256_end(&h, pad), cg_sha256_init(&h);
    else if (key_bytes) memcpy(pad, key, key_bytes);
    for (i = 0; i < 64; i++) pad[i] ^= 0x36;
    cg_sha256_add(&h, pad, 64);
    cg_sha256_add(&h, data, bytes);
    cg_sha256_end(&h, mac);
    for (i = 0; i < 64; i++) pad[i] ^= 0x36 ^ 0x5c;
    cg_sha256_init(&h);
    cg_sha256_add(&h, pad, 64);
    cg_sha256_add(&h, mac, 32);
    cg_sha256_end(&h, mac);
}

/* 0 if equal. No branch depends on the bytes, so that the time tells nothing about where they differ. */
static inline int cg_hmac_differs(const unsigned char *a, const unsigned char *b, size_t bytes) {
    volatile unsigned char all = 0;
    size_t i;
    for (i = 0; i < bytes; i++) all = (unsigned char)(all | (a[i] ^ b[i]));
    return all != 0;
}

#endif
