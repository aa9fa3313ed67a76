/* platform: what the implementation asks of the compiler, the C library and the CPU family

   Offers   memcpy, memset and memmove, also freestanding; COMPGRAD_ASSERT; CG_BIG_ENDIAN_; which SIMD code is compiled
            (CG_AVX2_ and with it CG_AVX512_, CG_NEON_, CG_WASM_; CG_VECTOR_: any); attributes of functions; hints for
            branches, loops and prefetching
   Needs    nothing
   Touches  nothing
   Every header may use all of it, as all of base. It refuses to compile where bits would differ: x87 arithmetic, and
   fast math that clang cannot undo. */

#if defined(__STDC_HOSTED__) && __STDC_HOSTED__ == 0
#  ifdef __cplusplus
extern "C" {
#  endif
void *memcpy(void *to, const void *from, size_t bytes);
void *memset(void *to, int byte, size_t bytes);
void *memmove(void *to, const void *from, size_t bytes);
#  ifdef __cplusplus
}
#  endif
#else
#  include <string.h>
#endif

#ifndef COMPGRAD_ASSERT
#  define COMPGRAD_ASSERT(condition) ((void)0)
#endif

#if defined(__FLT_EVAL_METHOD__) && __FLT_EVAL_METHOD__ == 2
#  error "compgrad: x87 arithmetic rounds differently; compile with -msse2 -mfpmath=sse"
#endif
#if defined(__clang__) && defined(__FAST_MATH__) && !defined(__x86_64__) && !defined(__i386__)
#  error "compgrad: here clang's -ffast-math cannot be undone; compile this file without it"
#endif
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#  define CG_BIG_ENDIAN_ 1
#else
#  define CG_BIG_ENDIAN_ 0
#endif

/* A build has one family of vector code at most. */
#define CG_AVX2_ 0
#define CG_AVX512_ 0
#define CG_NEON_ 0
#define CG_WASM_ 0
#if defined(COMPGRAD_NO_SIMD) || !defined(__GNUC__)
#elif defined(__x86_64__) || defined(__i386__)
#  undef CG_AVX2_
#  define CG_AVX2_ 1
#  if !defined(COMPGRAD_NO_AVX512) && (defined(__clang__) ? defined(__SSE2__) : __GNUC__ >= 7)
#    undef CG_AVX512_
#    define CG_AVX512_ 1
#  endif
#elif defined(__aarch64__) && defined(__ARM_NEON) && !CG_BIG_ENDIAN_
#  undef CG_NEON_
#  define CG_NEON_ 1
#elif defined(__wasm_simd128__)
#  undef CG_WASM_
#  define CG_WASM_ 1
#endif
#define CG_VECTOR_ (CG_AVX2_ || CG_NEON_ || CG_WASM_)

#if defined(__GNUC__) || defined(__clang__)
#  define CG_INLINE_ static inline __attribute__((always_inline, unused))
#  define CG_NOINLINE_ static __attribute__((noinline)) /* keeps the function's large arrays off its callers' stack */
#  define CG_OFFERED_ static __attribute__((unused))    /* for other headers: a build without them never calls it */
#  define CG_LIKELY_(c) __builtin_expect(!!(c), 1)
#  define CG_PREFETCH_(p) __builtin_prefetch(p)
#  define CG_PREFETCH_L2_(p) __builtin_prefetch(p, 0, 2)
#  define CG_PREFETCH_WRITE_(p) __builtin_prefetch(p, 1)
#else
#  define CG_INLINE_ static inline
#  define CG_NOINLINE_ static
#  define CG_OFFERED_ static
#  define CG_LIKELY_(c) (c)
#  define CG_PREFETCH_(p) ((void)(p))
#  define CG_PREFETCH_L2_(p) ((void)(p))
#  define CG_PREFETCH_WRITE_(p) ((void)(p))
#endif

/* Before a loop of at most eight steps: gcc -O2 would keep the loop, and arrays of vectors in memory. */
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 8
#  define CG_UNROLL_ _Pragma("GCC unroll 8")
#elif defined(__clang__)
#  define CG_UNROLL_ _Pragma("clang loop unroll(full)")
#else
#  define CG_UNROLL_
#endif
