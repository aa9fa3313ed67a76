/* machine.h - what this machine's memory allows: reading a vector, and filling one, with ordinary stores and with
   streaming ones. Measured in the run whose figures are compared with it, since a ratio says little without it.

   find_limits();                                    // once; picks AVX2 where the CPU has it
   read_limit(x, n); write_limit(y, n); stream_limit(y, n);
   print_machine(clock, y, n);                       // the CPU's name, and the three rates

   An ordinary store first reads the line of the cache that it writes to. A streaming (non-temporal) store does not, and
   is the limit of whatever writes a vector larger than the cache. Where there is none, stream_limit is write_limit. */

#ifndef BENCH_MACHINE_H
#define BENCH_MACHINE_H

#include <stdio.h>
#include <string.h>

static volatile float sink;

static void read_plain(const float *x, size_t n) {
    float sum[16] = { 0 };
    size_t i, j;
    for (i = 0; i + 16 <= n; i += 16)
        for (j = 0; j < 16; j++) sum[j] += x[i + j];
    for (j = 1; j < 16; j++) sum[0] += sum[j];
    sink = sum[0];
}

static void write_plain(float *y, size_t n) {
    size_t i;
    for (i = 0; i < n; i++) y[i] = 1.0f;
}

static void (*read_limit)(const float *, size_t) = read_plain;
static void (*write_limit)(float *, size_t) = write_plain;
static void (*stream_limit)(float *, size_t) = write_plain; /* y: aligned to 32 bytes */

#if defined(__x86_64__) && defined(__GNUC__)
#  include <immintrin.h>

__attribute__((target("avx2"))) static void read_avx2(const float *x, size_t n) {
    __m256 a = _mm256_setzero_ps(), b = a, c = a, d = a;
    float out[8];
    size_t i;
    for (i = 0; i + 32 <= n; i += 32) {
        a = _mm256_add_ps(a, _mm256_loadu_ps(x + i));
        b = _mm256_add_ps(b, _mm256_loadu_ps(x + i + 8));
        c = _mm256_add_ps(c, _mm256_loadu_ps(x + i + 16));
        d = _mm256_add_ps(d, _mm256_loadu_ps(x + i + 24));
    }
    _mm256_storeu_ps(out, _mm256_add_ps(_mm256_add_ps(a, b), _mm256_add_ps(c, d)));
    sink = out[0] + out[1] + out[2] + out[3] + out[4] + out[5] + out[6] + out[7];
}

__attribute__((target("avx2"))) static void write_avx2(float *y, size_t n) {
    const __m256 one = _mm256_set1_ps(1.0f);
    size_t i;
    for (i = 0; i + 16 <= n; i += 16) {
        _mm256_storeu_ps(y + i, one);
        _mm256_storeu_ps(y + i + 8, one);
    }
    for (; i < n; i++) y[i] = 1.0f;
}

__attribute__((target("avx2"))) static void stream_avx2(float *y, size_t n) {
    const __m256 one = _mm256_set1_ps(1.0f);
    size_t i;
    for (i = 0; i + 16 <= n; i += 16) {
        _mm256_stream_ps(y + i, one);
        _mm256_stream_ps(y + i + 8, one);
    }
    for (; i < n; i++) y[i] = 1.0f;
    _mm_sfence();
}

static void find_limits(void) {
    if (__builtin_cpu_supports("avx2")) read_limit = read_avx2, write_limit = write_avx2, stream_limit = stream_avx2;
}
#else
static void find_limits(void) {}
#endif

static void cpu_name(char *name, size_t cap) {
    char line[256];
    FILE *f = fopen("/proc/cpuinfo", "r");
    snprintf(name, cap, "a CPU without a name");
    while (f && fgets(line, sizeof line, f)) {
        const char *at = strchr(line, ':');
        if (strncmp(line, "model name", 10) || !at) continue;
        snprintf(name, cap, "%.*s", (int)strcspn(at + 2, "\n"), at + 2);
        break;
    }
    if (f) fclose(f);
}

/* One thread; the best of seven. y, which is overwritten: n floats, aligned to 32 bytes. */
static inline void print_machine(double (*seconds)(void), float *y, size_t n) {
    static const char *const how[3] = { "reads", "fills", "fills by streaming stores" };
    double best[3] = { 1e9, 1e9, 1e9 };
    char name[128];
    int rep, i;
    for (rep = 0; rep < 7; rep++)
        for (i = 0; i < 3; i++) {
            double t = seconds();
            if (i == 0) read_limit(y, n);
            else (i == 1 ? write_limit : stream_limit)(y, n);
            t = seconds() - t;
            if (t < best[i]) best[i] = t;
        }
    cpu_name(name, sizeof name);
    printf("%s. One thread, %lu floats:", name, (unsigned long)n);
    for (i = 0; i < 3; i++)
        printf("%s %s %.1f GB/s", i ? "," : "", how[i], best[i] > 0 ? 4e-9 * (double)n / best[i] : 0);
    puts(stream_limit == write_limit ? " (there are none here).\n" : ".\n");
}

#endif
