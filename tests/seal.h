/* The checksum of a saved state or a message, 16 bytes at `at`, made right again after a change. */
#ifndef SEAL_H
#define SEAL_H

#include <stdint.h>
#include <string.h>

static void seal_at(unsigned char *p, size_t len, size_t at) {
    uint64_t a = 0, b = 0;
    memset(p + at, 0, 16);
    for (size_t i = 0; i < len; i += 4) {
        a += (uint32_t)p[i] | (uint32_t)p[i + 1] << 8 | (uint32_t)p[i + 2] << 16 | (uint32_t)p[i + 3] << 24;
        b += a;
    }
    for (size_t i = 0; i < 8; i++) {
        p[at + i] = (unsigned char)(a >> 8 * i);
        p[at + 8 + i] = (unsigned char)(b >> 8 * i);
    }
}

#endif
