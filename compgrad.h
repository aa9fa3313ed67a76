/* compgrad.h - gradient compression in one header.                    version 0.1.0, MIT licence

   One vector, one moment: turn n floats into a small packet and back.

       #define COMPGRAD_IMPLEMENTATION                  // in exactly one .c or .cpp file
       #include "compgrad.h"

       cg_op  op  = cg_then(cg_topk(0.01f), cg_f16());  // the 1 % largest, each as a half float
       cg_tag tag = { 42, step, layer, rank };          // seed, step, tensor, rank
       size_t cap = cg_bound(&op, n), len;
       void  *packet = malloc(cap), *scratch = malloc(cg_scratch(&op, n));

       cg_status s = cg_compress(&op, &tag, grad, n, packet, cap, &len, scratch, cg_scratch(&op, n));
       if (s != CG_OK) { puts(cg_status_str(s)); return 1; }
       // ... send len bytes, receive somebody's packet, add a quarter of what is in it:
       s = cg_decompress_add(packet, len, 0.25f, sum, n);

   THE IDEA. An operator is a row of stages; every named method is a choice in each slot.

       x --> sample --> transform --> select --> quantize --> code --> packet

   cg_then(a, b) fills from b the slots that a left empty, so any sample, any selection and any
   quantizer combine. The same thing as text: cg_op_parse(&op, "randk:0.1|topk:0.01|absmax:4:512").

   OPERATORS          text                  bits per element      biased   needs error feedback
     cg_dense         dense                 32                    exact    no
     cg_f16           f16                   16                    nearest  no
     cg_bf16          bf16                  16                    nearest  no
     cg_absmax(b,B)   absmax:b:B            b + 32/B              no       no at 8 bits, helps below 4
     cg_minmax(b,B)   minmax:b:B            b + 64/B              no       no at 8 bits, helps below 4
       cg_nearest(op) ...:nearest           the same              yes      yes below 8 bits
     cg_terngrad      terngrad              2                     no       helps
     cg_sign          sign                  1                     yes      (majority vote) yes
     cg_efsign        efsign                1                     yes      yes
     cg_topk(r)       topk:r                r (32 + 2 + log2 1/r) yes      yes
     cg_threshold(v)  threshold:v           as top-k              yes      yes
     cg_randk(r)      randk:r               32 r                  no       no (much variance)
       cg_unscaled(op) ...:unscaled         the same              yes      yes
   b = 1..8 bits, B = values that share a scale, r = fraction kept, 0 < r <= 1. Every packet has a
   header of CG_HEADER_BYTES. Biased operators lose what they do not send unless you remember it.

   MEMORY. The caller owns every buffer; nothing here allocates, and there are no globals but one
   word that caches which SIMD instructions the CPU has. cg_bound(op, n) bytes always suffice for
   a packet and cg_scratch(op, n) bytes for scratch (0 without a selection or a codec of yours). Any
   alignment and any n is fine, 0 included. Nothing beyond a stated capacity is ever touched.
   At most 40 KiB of stack, if the compiler optimises.

   ERRORS. Every function that can fail returns a cg_status; 0 is success, and cg_status_str says
   what to do. NaN or Inf in x is refused (CG_E_NONFINITE) before anything can remember it; a
   sampling operator looks only at the values it would send. A packet may be any bytes at all:
   decoding returns an error or a result, never reads or writes out of range, and leaves y as it
   was unless it returns CG_OK (or CG_DECODE_DIRECT allowed otherwise). The checksum finds accidents; it is not what makes decoding safe.

   THREADS. Every function is re-entrant. With COMPGRAD_OPENMP (and -fopenmp) large vectors are
   split by blocks over threads; that changes no bit of any result.

   DETERMINISM. Same input, operator and tag give the same packet and the same floats on every
   CPU, compiler, thread count and byte order. The rounding mode, flush-to-zero and -ffast-math
   of the caller do not matter, and are restored. Random numbers are a function of (tag, index).

   CONFIGURATION, before the include:
     COMPGRAD_IMPLEMENTATION   compile the code here (one file of the program)
     COMPGRAD_STATIC           ... as static functions, private to that file
     COMPGRAD_NO_SIMD          plain C only
     COMPGRAD_OPENMP           use OpenMP, where the compiler has it on
     COMPGRAD_ASSERT(c)        checks inside the library; default: none
   Needs memcpy, memset and memmove from outside (tcc also its own runtime); works with -ffreestanding.

   THE PACKET, little-endian, no padding but zeros, every section a multiple of 4 bytes:

     byte 0        4  5  6    8                              80       88      96      104
         +---------+--+--+----+------------------------------+--------+--------+--------+
         | "cgpk"  |v |ix| 0  | six stages of 12 bytes each  | n      | drawn  | k      |
         +---------+--+--+----+------------------------------+--------+--------+--------+
        104       112      120    124    128         136         144         148  152        168
         +--------+--------+------+------+-----------+-----------+-----------+----+----------+
         | seed   | step   |tensor| rank | v. bytes  | ix. bytes | threshold | 0  | checksum |
         +--------+--------+------+------+-----------+-----------+-----------+----+----------+
        168
         +----------------+---------------------+----------------------------+
         | scales (f32)   | codes, bit-packed   | indices                    |
         +----------------+---------------------+----------------------------+
          <------------- value bytes ----------> <------ index bytes ------->

     v          1, the version of the format
     ix         how indices are written: 0 none, 1 Elias-Fano, 2 bitmap
     stage      id u8, flags u8, arg u16, size u32, value f32: sample, transform, select, quantize,
                code, and one that must be zero
     n          values in x; drawn: what the sample left of them; k: how many were coded
     threshold  smallest magnitude that top-k kept, else 0
     codes      value j at bits [j*b, j*b+b), least significant bit first
     Elias-Fano with l = floor(log2(drawn/k)): the k low parts of l bits each, filled to 4 bytes;
                then a bit string with bit (index>>l)+i set for the i-th index, filled to 4 bytes
     bitmap     bit i set if value i is coded
     checksum   two 64-bit sums over the packet as u32 words w[0..M), the checksum itself as zeros:
                A = sum w[i], B = sum (M-i)*w[i], modulo 2^64. A change within any two words less
                than 16 GiB apart shows (d1+d2 = 0 and (i-j)*d1 = 0 mod 2^64 force d1 = 0), so
                every one- and two-bit error and every burst of up to 33 bits does. */

#ifndef COMPGRAD_H
#define COMPGRAD_H

#include <stddef.h>
#include <stdint.h>

#define CG_VERSION_MAJOR 0
#define CG_VERSION_MINOR 1
#define CG_VERSION_PATCH 0
#define CG_VERSION_STRING "0.1.0"
#define CG_HEADER_BYTES 168

#ifdef COMPGRAD_STATIC
#  if defined(__GNUC__)
#    define CG_API_ static __attribute__((unused))
#  else
#    define CG_API_ static
#  endif
#elif defined(__cplusplus)
#  define CG_API_ extern "C"
#else
#  define CG_API_ extern
#endif
#if defined(__GNUC__)
#  define CG_CHECKED_ __attribute__((warn_unused_result))
#else
#  define CG_CHECKED_
#endif
#ifdef __cplusplus
#  define CG_ZERO {}                    /* cg_side side = CG_ZERO; silent in C and in C++ */
#else
#  define CG_ZERO {0}
#endif

/* ---- status --------------------------------------------------------------------------------- */

#define CG_STATUS_LIST_(X)                                                                          \
    X(CG_OK,             0, "ok")                                                                   \
    X(CG_E_ARG,         10, "bad argument: a null pointer, or an operator parameter out of range "  \
                            "(0 < ratio <= 1, 1 <= bits <= 8, bucket >= 1, a slot filled twice)")   \
    X(CG_E_CAPACITY,    11, "buffer too small: give cg_bound() bytes for the packet and "           \
                            "cg_scratch() bytes of scratch")                                        \
    X(CG_E_CORRUPT,     20, "not an intact compgrad packet: send it again")                         \
    X(CG_E_VERSION,     21, "packet uses a format version, stage or codec that this build does "    \
                            "not know: update compgrad, or pass the codec in cg_side.codecs")       \
    X(CG_E_MISMATCH,    22, "packet is intact but for another vector: compare n, tensor, step "     \
                            "and seed on both sides")                                               \
    X(CG_E_NONFINITE,   30, "NaN or Inf in the gradient: skip this step, or lower the loss scale")  \
    X(CG_E_TRANSPORT,   40, "a transport callback failed: see its code in the report")              \
    X(CG_E_PEER,        41, "another rank failed in this step: see its rank in the report")         \
    X(CG_E_MEMORY,      50, "not enough memory given")                                              \
    X(CG_E_STATE,       51, "call out of order")                                                    \
    X(CG_E_UNSUPPORTED, 60, "this combination is not supported")

typedef enum cg_status {
#define CG_STATUS_ENUM_(name, number, text) name = number,
    CG_STATUS_LIST_(CG_STATUS_ENUM_)
#undef CG_STATUS_ENUM_
    CG_STATUS_FORCE_INT_ = 0x7fffffff
} cg_status;

CG_API_ const char *cg_status_str(cg_status status);
CG_API_ const char *cg_version(void);

/* ---- operators: plain data, all zero = dense f32 ------------------------------------------- */

typedef struct cg_stage {    /* what fills one slot */
    uint8_t  id;             /* 0: the slot is empty */
    uint8_t  flags;          /* CG_FLAG_* */
    uint16_t arg;            /* bits */
    uint32_t size;           /* bucket: values that share a scale */
    float    value;          /* ratio kept, or threshold */
} cg_stage;

typedef struct cg_op {
    cg_stage sample, transform, select, quantize, code, spare;
    uint64_t k;              /* 0: from the ratio; else how many values top-k keeps, or random-k without one (at most all) */
    uint64_t reserved;       /* 0 */
} cg_op;

enum { CG_SAMPLE_RANDK = 1 };
enum { CG_SELECT_TOPK = 1, CG_SELECT_THRESHOLD = 2 };
enum { CG_QUANTIZE_F16 = 1, CG_QUANTIZE_BF16, CG_QUANTIZE_SIGN, CG_QUANTIZE_EFSIGN, CG_QUANTIZE_ABSMAX,
       CG_QUANTIZE_MINMAX, CG_QUANTIZE_TERNARY, CG_QUANTIZE_USER = 128 /* to 255: cg_codec.id */ };
enum { CG_FLAG_NEAREST = 1 /* quantize */, CG_FLAG_UNSCALED = 1 /* sample */ };
typedef enum cg_coding { CG_CODE_AUTO = 0, CG_CODE_ELIAS_FANO = 1, CG_CODE_BITMAP = 2 } cg_coding;

CG_API_ cg_op cg_dense(void);
CG_API_ cg_op cg_f16(void);
CG_API_ cg_op cg_bf16(void);
CG_API_ cg_op cg_absmax(int bits, uint32_t bucket);   /* levels of the bucket's largest magnitude */
CG_API_ cg_op cg_minmax(int bits, uint32_t bucket);   /* levels from the bucket's minimum to its maximum */
CG_API_ cg_op cg_sign(void);                          /* +1 or -1; the sign of zero is + */
CG_API_ cg_op cg_efsign(void);                        /* sign times the mean magnitude */
CG_API_ cg_op cg_terngrad(void);                      /* -s, 0 or s with s the largest magnitude */
CG_API_ cg_op cg_topk(float ratio);                   /* largest magnitudes; of equals, the lowest index */
CG_API_ cg_op cg_threshold(float magnitude);          /* all with |x| > magnitude */
CG_API_ cg_op cg_randk(float ratio);                  /* one of every n/k, drawn from the tag, times n/k */
CG_API_ cg_op cg_user(int id, int arg, uint32_t size, float value);  /* a cg_codec of yours, as quantizer */
CG_API_ cg_op cg_nearest(cg_op op);                   /* rounds to nearest, not at random */
CG_API_ cg_op cg_unscaled(cg_op op);                  /* random-k without the n/k */
CG_API_ cg_op cg_coded(cg_op op, cg_coding coding);   /* same values, another code */
CG_API_ cg_op cg_then(cg_op first, cg_op second);
CG_API_ CG_CHECKED_ cg_status cg_op_parse(cg_op *op, const char *text);
CG_API_ CG_CHECKED_ cg_status cg_op_print(const cg_op *op, char *text, size_t cap);   /* 128 bytes suffice */

/* ---- compress and decode -------------------------------------------------------------------- */

typedef struct cg_tag {      /* travels in the packet; NULL = zeros */
    uint64_t seed, step;     /* shared randomness is a function of (seed, step, tensor), */
    uint32_t tensor, rank;   /* private randomness (rounding) of that and rank */
} cg_tag;

/* Your own quantizer: const data, id 128..255, used through cg_side.codecs. It sees the values that
   sample and selection left, as a dense vector. decode is asked for values [first, first + count),
   first a multiple of 2048 and count at most 2048, in any order, more than once, and with OpenMP by
   several threads; it must accept any bytes: return CG_OK with finite values, or CG_E_CORRUPT. Its
   len is what compress wrote, filled with zeros to a multiple of 4. x and in may lie at any address;
   bound must not shrink as n grows. */
typedef struct cg_codec {
    uint8_t id;
    size_t    (*bound)(const struct cg_codec *self, const cg_stage *stage, size_t n);    /* 0: bad parameters */
    cg_status (*compress)(const struct cg_codec *self, const cg_stage *stage, const cg_tag *tag,
                          const float *x, size_t n, void *out, size_t cap, size_t *len);
    cg_status (*decode)(const struct cg_codec *self, const cg_stage *stage, const void *in, size_t len,
                        size_t n, size_t first, size_t count, float *out);
    const void *user;
} cg_codec;

enum { CG_DECODE_DIRECT = 1 };   /* dense packets in one pass; if one turns out corrupt, y is unspecified */

typedef struct cg_side {     /* what encoding or decoding may know beside; NULL = nothing */
    const float *aux;        /* the first four serve operators to come: until then zero, or CG_E_UNSUPPORTED */
    const float *scale;
    const void *support;
    size_t support_len;
    const cg_codec *const *codecs;
    size_t codec_count;
    uint32_t flags;          /* CG_DECODE_* */
} cg_side;

typedef struct cg_info {
    cg_op op;
    cg_tag tag;
    uint64_t n, drawn, k;                            /* as in the packet's header */
    uint32_t index_code;
    float threshold;
    size_t value_bytes, index_bytes, packet_bytes;
} cg_info;

/* A packet of (op, n) is never larger; 0: bad operator, or the size overflows. */
CG_API_ size_t cg_bound(const cg_op *op, size_t n);
CG_API_ size_t cg_bound_with(const cg_op *op, const cg_side *side, size_t n);
/* Bytes of scratch that cg_compress needs; 0 = none (or a bad operator, which cg_bound tells). */
CG_API_ size_t cg_scratch(const cg_op *op, size_t n);

/* x[0..n) to packet[0..*len). Succeeds if cap >= cg_bound() and x is finite. On error *len is 0. */
CG_API_ CG_CHECKED_ cg_status cg_compress(const cg_op *op, const cg_tag *tag, const float *x, size_t n,
    void *packet, size_t cap, size_t *len, void *scratch, size_t scratch_bytes);
CG_API_ CG_CHECKED_ cg_status cg_compress_with(const cg_op *op, const cg_tag *tag, const cg_side *side, const float *x,
    size_t n, void *packet, size_t cap, size_t *len, void *scratch, size_t scratch_bytes);

/* y = beta*y + alpha*D(packet), alpha and beta finite; y is not read if beta is 0. The other two are this one. */
CG_API_ CG_CHECKED_ cg_status cg_decode(const cg_side *side, const void *packet, size_t len, float alpha, float beta,
    float *y, size_t n);
CG_API_ CG_CHECKED_ cg_status cg_decompress(const void *packet, size_t len, float *y, size_t n);
CG_API_ CG_CHECKED_ cg_status cg_decompress_add(const void *packet, size_t len, float weight, float *y, size_t n);
/* y[i] = 0 for every i that the packet has a value for. */
CG_API_ CG_CHECKED_ cg_status cg_clear(const void *packet, size_t len, float *y, size_t n);
/* Reads and checks the header alone: the first CG_HEADER_BYTES are enough to learn packet_bytes. */
CG_API_ CG_CHECKED_ cg_status cg_inspect(const void *packet, size_t len, cg_info *info);

/* ---- 16-bit gradients: nearest even; what is too large becomes the largest finite value, Inf and
        NaN stay what they are --------------------------------------------------------------- */

CG_API_ void cg_f16_from_f32(const float *x, size_t n, uint16_t *half);
CG_API_ void cg_f16_to_f32(const uint16_t *half, size_t n, float *x);
CG_API_ void cg_bf16_from_f32(const float *x, size_t n, uint16_t *half);
CG_API_ void cg_bf16_to_f32(const uint16_t *half, size_t n, float *x);

/* ---- SIMD: found at run time; all give the same bits, so this is for tests and curiosity ----- */

typedef enum cg_isa { CG_ISA_AUTO = 0, CG_ISA_SCALAR = 1, CG_ISA_AVX2 = 2, CG_ISA_NEON = 3 } cg_isa;
CG_API_ int cg_isa_found(cg_isa isa);                 /* 1 if this build and CPU have it */
CG_API_ cg_isa cg_isa_used(void);
CG_API_ CG_CHECKED_ cg_status cg_isa_force(cg_isa isa);   /* AUTO undoes it; CG_E_UNSUPPORTED if not found */
CG_API_ const char *cg_isa_name(cg_isa isa);

#endif /* COMPGRAD_H */

/* ============================================================================================== */
#ifdef COMPGRAD_IMPLEMENTATION
#ifndef COMPGRAD_IMPLEMENTED_          /* so that a second include with the macro still set does no harm */
#define COMPGRAD_IMPLEMENTED_

/* ---- >>platform ------------------------------------------------------------------------------ */

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

#if !defined(COMPGRAD_NO_SIMD) && defined(__GNUC__) && (defined(__x86_64__) || defined(__i386__))
#  define CG_AVX2_ 1
#  define CG_NEON_ 0
#elif !defined(COMPGRAD_NO_SIMD) && defined(__GNUC__) && defined(__aarch64__) && defined(__ARM_NEON) && !CG_BIG_ENDIAN_
#  define CG_AVX2_ 0
#  define CG_NEON_ 1
#else
#  define CG_AVX2_ 0
#  define CG_NEON_ 0
#endif

#if defined(__GNUC__) || defined(__clang__)
#  define CG_INLINE_ static inline __attribute__((always_inline, unused))
#  define CG_LIKELY_(c) __builtin_expect(!!(c), 1)
#  define CG_PREFETCH_(p) __builtin_prefetch(p)
#else
#  define CG_INLINE_ static inline
#  define CG_LIKELY_(c) (c)
#  define CG_PREFETCH_(p) ((void)(p))
#endif

/* Bits must not depend on the includer's flags: no contraction, no reassociation, no fast math, between
   here and the end of this file, and nothing of it leaks into the includer's own code. */
#if defined(__clang__)
#  if defined(__x86_64__) || defined(__i386__)
#    pragma float_control(push)
#    pragma float_control(precise, on)
#  endif
#  pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#  pragma GCC push_options
#  pragma GCC optimize("no-fast-math", "fp-contract=off")
#endif

#if CG_AVX2_
#  include <immintrin.h>
#endif
#if CG_NEON_
#  include <arm_neon.h>
#endif

/* clang's back end fuses a product with a sum under -ffp-contract=fast, whatever the pragmas say: hide the product. */
#if defined(__clang__) && defined(__FMA__)
#  define CG_FENCE_(product) __asm__("" : "+x"(product))
#elif defined(__clang__) && defined(__aarch64__)
#  define CG_FENCE_(product) __asm__("" : "+w"(product))
#else
#  define CG_FENCE_(product) ((void)0)
#endif

#define CG_CHUNK_ 2048u            /* values handled while they stay in L1 */
#define CG_BLOCK_ 65536u           /* values per unit of randomness, summation and threads */
#define CG_WAVE_ 64u               /* blocks whose partial results are held at once */
#define CG_NONFINITE_ 0x7f800000u  /* magnitude bits of Inf; NaN is above */
#define CG_MAGNITUDE_ 0x7fffffffu
#define CG_FLT_MAX_ 3.402823466e+38f

/* ---- >>bytes: the wire is little-endian, and floats may lie at any address -------------------- */

CG_INLINE_ uint16_t cg_get16_(const uint8_t *p) { return (uint16_t)(p[0] | (unsigned)p[1] << 8); }
CG_INLINE_ uint32_t cg_get32_(const uint8_t *p) {
#if CG_BIG_ENDIAN_
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
#else
    uint32_t v;
    memcpy(&v, p, 4);
    return v;
#endif
}
CG_INLINE_ uint64_t cg_get64_(const uint8_t *p) { return cg_get32_(p) | (uint64_t)cg_get32_(p + 4) << 32; }
CG_INLINE_ void cg_put16_(uint8_t *p, uint32_t v) { p[0] = (uint8_t)v; p[1] = (uint8_t)(v >> 8); }
CG_INLINE_ void cg_put32_(uint8_t *p, uint32_t v) {
#if CG_BIG_ENDIAN_
    p[0] = (uint8_t)v; p[1] = (uint8_t)(v >> 8); p[2] = (uint8_t)(v >> 16); p[3] = (uint8_t)(v >> 24);
#else
    memcpy(p, &v, 4);
#endif
}
CG_INLINE_ void cg_put64_(uint8_t *p, uint64_t v) { cg_put32_(p, (uint32_t)v); cg_put32_(p + 4, (uint32_t)(v >> 32)); }

CG_INLINE_ uint32_t cg_bits_(float f) { uint32_t u; memcpy(&u, &f, 4); return u; }
CG_INLINE_ float cg_float_(uint32_t u) { float f; memcpy(&f, &u, 4); return f; }
CG_INLINE_ float cg_saturate_(float v) {             /* Inf to the largest finite, by bits: fast math knows no Inf */
    uint32_t u = cg_bits_(v);
    return cg_float_(u - ((u & CG_MAGNITUDE_) == CG_NONFINITE_));
}
CG_INLINE_ float cg_load_(const float *v, size_t i) { float f; memcpy(&f, (const uint8_t *)v + 4 * i, 4); return f; }
CG_INLINE_ uint32_t cg_load_bits_(const float *v, size_t i) { uint32_t u; memcpy(&u, (const uint8_t *)v + 4 * i, 4); return u; }
CG_INLINE_ void cg_store_(float *v, size_t i, float f) { memcpy((uint8_t *)v + 4 * i, &f, 4); }
CG_INLINE_ const float *cg_at_(const float *v, size_t i) { return (const float *)(const void *)((const uint8_t *)v + 4 * i); }
CG_INLINE_ float *cg_at_mut_(float *v, size_t i) { return (float *)(void *)((uint8_t *)v + 4 * i); }

CG_INLINE_ size_t cg_min_(size_t a, size_t b) { return a < b ? a : b; }
CG_INLINE_ uint32_t cg_max32_(uint32_t a, uint32_t b) { return a > b ? a : b; }

CG_INLINE_ unsigned cg_log2_(uint64_t v) {          /* floor; v > 0 */
#if defined(__GNUC__)
    return 63u - (unsigned)__builtin_clzll(v);
#else
    unsigned l = 0;
    while (v >>= 1) l++;
    return l;
#endif
}
CG_INLINE_ unsigned cg_ctz_(uint64_t v) {           /* v > 0 */
#if defined(__GNUC__)
    return (unsigned)__builtin_ctzll(v);
#else
    unsigned c = 0;
    while (!(v & 1)) { v >>= 1; c++; }
    return c;
#endif
}
CG_INLINE_ unsigned cg_popcount_(uint64_t v) {
    v = v - (v >> 1 & 0x5555555555555555u);
    v = (v & 0x3333333333333333u) + (v >> 2 & 0x3333333333333333u);
    v = (v + (v >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    return (unsigned)(v * 0x0101010101010101u >> 56);
}

/* One rounding each, also where the compiler evaluates float expressions in double (FLT_EVAL_METHOD 1). */
CG_INLINE_ float cg_plus_(float a, float b) { return (float)(a + b); }
CG_INLINE_ float cg_minus_(float a, float b) { return (float)(a - b); }
CG_INLINE_ float cg_times_(float a, float b) { float p = a * b; CG_FENCE_(p); return p; }

/* Sizes: sums and products that stick at the top, so that an overflow is seen once, at the end. */
#define CG_TOO_LARGE_ UINT64_MAX
CG_INLINE_ uint64_t cg_add_(uint64_t a, uint64_t b) { return a > CG_TOO_LARGE_ - b ? CG_TOO_LARGE_ : a + b; }
CG_INLINE_ uint64_t cg_mul_(uint64_t a, uint64_t b) { return b && a > CG_TOO_LARGE_ / b ? CG_TOO_LARGE_ : a * b; }
CG_INLINE_ uint64_t cg_words_(uint64_t bits) {      /* bytes of whole u32 words that hold so many bits */
    return bits == CG_TOO_LARGE_ ? bits : (bits / 32 + (bits % 32 != 0)) * 4;
}
CG_INLINE_ size_t cg_size_(uint64_t bytes) { return bytes > SIZE_MAX / 2 ? 0 : (size_t)bytes; }

/* ---- >>environment: the caller's rounding mode, flush-to-zero and traps change no bit --------- */

typedef struct cg_env_ { uint64_t saved; } cg_env_;

CG_INLINE_ cg_env_ cg_env_enter_(void) {
    cg_env_ env = { 0 };
#if (defined(__x86_64__) || defined(__SSE2_MATH__)) && (defined(__GNUC__) || defined(__TINYC__))
    uint32_t now = 0, clean = 0x1f80;                   /* nearest, no FTZ or DAZ, all traps masked */
    __asm__ __volatile__(".byte 0x0f, 0xae, 0x18" : : "a"(&now) : "memory");       /* stmxcsr (%rax): tcc has no name for it */
    env.saved = now;
    __asm__ __volatile__(".byte 0x0f, 0xae, 0x10" : : "a"(&clean) : "memory");     /* ldmxcsr (%rax) */
#elif defined(__aarch64__) && defined(__GNUC__)
    uint64_t now, clean = 0;
    __asm__ __volatile__("mrs %0, fpcr" : "=r"(now) : : "memory");
    env.saved = now;
    if (now) __asm__ __volatile__("msr fpcr, %0" : : "r"(clean) : "memory");
#elif defined(__s390x__) && defined(__GNUC__)
    uint32_t now, clean = 0;
    __asm__ __volatile__("efpc %0" : "=r"(now) : : "memory");
    env.saved = now;
    __asm__ __volatile__("sfpc %0" : : "r"(clean) : "memory");
#elif defined(__riscv_flen) && defined(__GNUC__)
    unsigned long now, clean = 0;
    __asm__ __volatile__("fsrm %0, %1" : "=r"(now) : "r"(clean) : "memory");
    env.saved = now;
#endif
    return env;
}
CG_INLINE_ void cg_env_leave_(cg_env_ env) {
#if (defined(__x86_64__) || defined(__SSE2_MATH__)) && (defined(__GNUC__) || defined(__TINYC__))
    uint32_t was = (uint32_t)env.saved;
    __asm__ __volatile__(".byte 0x0f, 0xae, 0x10" : : "a"(&was) : "memory");
#elif defined(__aarch64__) && defined(__GNUC__)
    if (env.saved) __asm__ __volatile__("msr fpcr, %0" : : "r"(env.saved) : "memory");
#elif defined(__s390x__) && defined(__GNUC__)
    uint32_t was = (uint32_t)env.saved;
    __asm__ __volatile__("sfpc %0" : : "r"(was) : "memory");
#elif defined(__riscv_flen) && defined(__GNUC__)
    unsigned long was = (unsigned long)env.saved, unused;
    __asm__ __volatile__("fsrm %0, %1" : "=r"(unused) : "r"(was) : "memory");
    (void)unused;
#else
    (void)env;
#endif
}

/* ---- >>random: a pure function of (tag, position); part of the wire format -------------------- */

#define CG_GOLDEN_ 0x9E3779B97F4A7C15u

CG_INLINE_ uint64_t cg_mix64_(uint64_t z) {
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}
static uint64_t cg_shared_key_(const cg_tag *tag) {
    uint64_t z = cg_mix64_(tag->seed + CG_GOLDEN_);
    z = cg_mix64_(z ^ (tag->step + 2 * CG_GOLDEN_));
    return cg_mix64_(z ^ (tag->tensor + 3 * CG_GOLDEN_));
}
static uint64_t cg_private_key_(const cg_tag *tag) { return cg_mix64_(cg_shared_key_(tag) ^ (tag->rank + 4 * CG_GOLDEN_)); }

/* Two words per block of 65536 positions: with one, the counters of two blocks would overlap too often. */
typedef struct cg_key_ { uint32_t a, b; } cg_key_;
CG_INLINE_ cg_key_ cg_block_key_(uint64_t key, uint64_t block) {
    uint64_t s = cg_mix64_(key + (block + 1) * CG_GOLDEN_);
    cg_key_ k;
    k.a = (uint32_t)s;
    k.b = (uint32_t)(s >> 32);
    return k;
}
CG_INLINE_ uint32_t cg_hash32_(cg_key_ key, uint32_t counter) {
    uint32_t h = counter ^ key.a;
    h = (h ^ h >> 16) * 0x7FEB352Du;
    h = ((h ^ h >> 15) + key.b) * 0x846CA68Bu;
    return h ^ h >> 16;
}
/* Rounding noise in [-0.5, 0.5]. One hash serves two values: each sees all 32 bits, in two orders. */
CG_INLINE_ float cg_noise_(cg_key_ key, uint32_t position) {
    uint32_t h = cg_hash32_(key, (position >> 4) << 3 | (position & 7));
    if (position & 8) h = h << 16 | h >> 16;
    return (float)(int32_t)h * 2.3283064365386963e-10f;
}

/* ---- >>kernels -------------------------------------------------------------------------------
   The scalar kernel is the specification; its SIMD versions stand below it and return the same bits. */

typedef struct cg_sum_ { uint64_t a, b, words; } cg_sum_;      /* the checksum of some run of words */

typedef struct cg_levels_ {        /* a bucket's grid; see cg_levels_make_ */
    float prescale, sub, inv;      /* encode: nearest or noisy integer of (v*prescale - sub)*inv, */
    int32_t bias, top;             /* plus bias, within [0, top] */
    float base, step, post;        /* decode: (base + (code - bias)*step)*post, kept finite */
    float span;                    /* what inv is taken of; see cg_encode_levels_ */
    int stochastic;
} cg_levels_;

typedef struct cg_kernels_ {
    cg_isa isa;
    /* encode; the finite check: each returns the largest magnitude as bits, or where sums show it 0 or Inf's */
    uint32_t (*top)(const float *v, size_t n);
    uint32_t (*range)(const float *v, size_t n, float *lo, float *hi);
    uint32_t (*copy)(const float *v, size_t n, uint8_t *out);
    uint32_t (*half)(const float *v, size_t n, uint8_t *out);
    uint32_t (*brain)(const float *v, size_t n, uint8_t *out);
    uint32_t (*sign)(const float *v, size_t n, uint8_t *out, double *lanes /* NULL, or adds |v| to 16 */);
    void (*levels)(const cg_levels_ *q, cg_key_ key, uint32_t position, const float *v, size_t n, uint8_t *symbols);
    void (*pack)(const uint8_t *symbols, size_t n, unsigned bits, uint8_t *out);
    size_t (*filter)(const float *v, size_t n, uint32_t bound, uint32_t first, uint32_t *index, float *value);
    uint32_t (*tally)(const float *v, size_t n, uint32_t pivot, size_t *above);
    /* decode; stream: out is larger than the caches and aligned to 16 bytes, so go around them */
    void (*unpack)(const uint8_t *in, size_t n, unsigned bits, uint8_t *symbols);
    void (*unlevels)(const cg_levels_ *q, const uint8_t *symbols, size_t n, float *out, int stream);
    void (*unsign)(const uint8_t *in, size_t n, float scale, float *out, int stream);
    void (*unhalf)(const uint8_t *in, size_t n, float *out, int stream);
    void (*unbrain)(const uint8_t *in, size_t n, float *out, int stream);
    uint32_t (*top16)(const uint8_t *in, size_t n);
    void (*emit)(const float *d, size_t n, float alpha, float beta, float *y, int stream);
    void (*drain)(void);                                       /* after the last that streamed */
    void (*sum)(cg_sum_ *sum, const uint8_t *words, size_t count);
} cg_kernels_;

#if CG_AVX2_
/* Kernels that end in a call for the rest say _mm256_zeroupper() themselves: gcc leaves it out before a tail call. */
#define CG_TARGET_AVX2_ __attribute__((target("avx2,f16c,popcnt,bmi")))
#define CG_AVX2_INLINE_ static inline __attribute__((always_inline, unused, target("avx2,f16c,popcnt,bmi")))
CG_AVX2_INLINE_ __m256i cg_load8_avx2_(const float *v, size_t i) {
    return _mm256_loadu_si256((const __m256i *)(const void *)((const uint8_t *)v + 4 * i));
}
CG_AVX2_INLINE_ __m256i cg_bytes_avx2_(const uint8_t *p) { return _mm256_loadu_si256((const __m256i *)(const void *)p); }
CG_AVX2_INLINE_ void cg_store_avx2_(void *p, __m256i v) { _mm256_storeu_si256((__m256i *)p, v); }
CG_AVX2_INLINE_ __m256i cg_abs_avx2_(__m256i v) { return _mm256_and_si256(v, _mm256_set1_epi32(0x7fffffff)); }
CG_AVX2_INLINE_ uint32_t cg_fold_top_avx2_(__m256i t) {
    __m128i m = _mm_max_epu32(_mm256_castsi256_si128(t), _mm256_extracti128_si256(t, 1));
    m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0x4e));
    m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0xb1));
    return (uint32_t)_mm_cvtsi128_si32(m);
}
CG_AVX2_INLINE_ void cg_out_avx2_(float *y, size_t i, __m256i v, int stream) {      /* by 16 bytes: what malloc aligns to */
    if (stream) {
        _mm_stream_si128((__m128i *)(void *)(y + i), _mm256_castsi256_si128(v));
        _mm_stream_si128((__m128i *)(void *)(y + i + 4), _mm256_extracti128_si256(v, 1));
    } else {
        cg_store_avx2_(cg_at_mut_(y, i), v);
    }
}
CG_AVX2_INLINE_ __m256 cg_mul8_avx2_(__m256 a, __m256 b) { __m256 p = _mm256_mul_ps(a, b); CG_FENCE_(p); return p; }
/* Memory should not rest while a chunk is packed and summed: ask for what comes after it, two lines for 32 values. */
CG_AVX2_INLINE_ void cg_ahead_avx2_(const float *v, size_t i) {
    CG_PREFETCH_(cg_at_(v, i + 1536));
    CG_PREFETCH_(cg_at_(v, i + 1552));
}
#endif
#if CG_NEON_
/* Every access is of bytes, as floats may lie at any address. Float arithmetic is written with operators, as vmulq_f32 and the like
   would keep the flags under which the includer may already have read arm_neon.h. */
CG_INLINE_ uint32x4_t cg_load4_neon_(const float *v, size_t i) { return vreinterpretq_u32_u8(vld1q_u8((const uint8_t *)v + 4 * i)); }
CG_INLINE_ void cg_store4_neon_(float *v, size_t i, float32x4_t f) { vst1q_u8((uint8_t *)v + 4 * i, vreinterpretq_u8_f32(f)); }
CG_INLINE_ float32x4_t cg_floats_neon_(uint32x4_t v) { return vreinterpretq_f32_u32(v); }
CG_INLINE_ float32x4_t cg_times_neon_(float32x4_t a, float32x4_t b) {       /* a product that is going to be added to something */
    float32x4_t p = a * b;
    CG_FENCE_(p);
    return p;
}
CG_INLINE_ uint32x4_t cg_abs_neon_(uint32x4_t v) { return vandq_u32(v, vdupq_n_u32(CG_MAGNITUDE_)); }
CG_INLINE_ uint8x16_t cg_narrow_neon_(uint32x4_t a, uint32x4_t b, uint32x4_t c, uint32x4_t d) {      /* masks, to a byte each */
    uint16x8_t ab = vuzp1q_u16(vreinterpretq_u16_u32(a), vreinterpretq_u16_u32(b));
    uint16x8_t cd = vuzp1q_u16(vreinterpretq_u16_u32(c), vreinterpretq_u16_u32(d));
    return vuzp1q_u8(vreinterpretq_u8_u16(ab), vreinterpretq_u8_u16(cd));
}
CG_INLINE_ uint64_t cg_mask_neon_(uint8x16_t a, uint8x16_t b, uint8x16_t c, uint8x16_t d) {          /* 64 such bytes, to a bit each */
    const uint8x16_t bit = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201u));
    a = vpaddq_u8(vandq_u8(a, bit), vandq_u8(b, bit));
    c = vpaddq_u8(vandq_u8(c, bit), vandq_u8(d, bit));
    a = vpaddq_u8(a, c);
    return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(a, a)), 0);
}
#endif
/* largest magnitude */
static uint32_t cg_top_scalar_(const float *v, size_t n) {
    uint32_t top = 0;
    for (size_t i = 0; i < n; i++) top = cg_max32_(top, cg_load_bits_(v, i) & CG_MAGNITUDE_);
    return top;
}
#if CG_AVX2_
CG_TARGET_AVX2_ static uint32_t cg_top_avx2_(const float *v, size_t n) {
    __m256i t0 = _mm256_setzero_si256(), t1 = t0, t2 = t0, t3 = t0;
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        t0 = _mm256_max_epu32(t0, cg_abs_avx2_(cg_load8_avx2_(v, i)));
        t1 = _mm256_max_epu32(t1, cg_abs_avx2_(cg_load8_avx2_(v, i + 8)));
        t2 = _mm256_max_epu32(t2, cg_abs_avx2_(cg_load8_avx2_(v, i + 16)));
        t3 = _mm256_max_epu32(t3, cg_abs_avx2_(cg_load8_avx2_(v, i + 24)));
    }
    t0 = _mm256_max_epu32(_mm256_max_epu32(t0, t1), _mm256_max_epu32(t2, t3));
    return cg_max32_(cg_fold_top_avx2_(t0), cg_top_scalar_(cg_at_(v, i), n - i));
}
#endif
#if CG_NEON_
static uint32_t cg_top_neon_(const float *v, size_t n) {
    uint32x4_t t0 = vdupq_n_u32(0), t1 = t0, t2 = t0, t3 = t0;
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        t0 = vmaxq_u32(t0, cg_abs_neon_(cg_load4_neon_(v, i)));
        t1 = vmaxq_u32(t1, cg_abs_neon_(cg_load4_neon_(v, i + 4)));
        t2 = vmaxq_u32(t2, cg_abs_neon_(cg_load4_neon_(v, i + 8)));
        t3 = vmaxq_u32(t3, cg_abs_neon_(cg_load4_neon_(v, i + 12)));
    }
    t0 = vmaxq_u32(vmaxq_u32(t0, t1), vmaxq_u32(t2, t3));
    return cg_max32_(vmaxvq_u32(t0), cg_top_scalar_(cg_at_(v, i), n - i));
}
#endif

/* smallest and largest value: lo and hi are updated */
static uint32_t cg_range_scalar_(const float *v, size_t n, float *lo, float *hi) {
    uint32_t top = 0;
    for (size_t i = 0; i < n; i++) {
        float f = cg_load_(v, i);
        top = cg_max32_(top, cg_bits_(f) & CG_MAGNITUDE_);
        *lo = f < *lo ? f : *lo;
        *hi = f > *hi ? f : *hi;
    }
    return top;
}
#if CG_AVX2_
CG_TARGET_AVX2_ static uint32_t cg_range_avx2_(const float *v, size_t n, float *lo, float *hi) {
    __m256i t0 = _mm256_setzero_si256(), t1 = t0;
    __m256 l0 = _mm256_set1_ps(*lo), l1 = l0, h0 = _mm256_set1_ps(*hi), h1 = h0;
    float lows[8], highs[8];
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m256i a = cg_load8_avx2_(v, i), b = cg_load8_avx2_(v, i + 8);
        t0 = _mm256_max_epu32(t0, cg_abs_avx2_(a));
        t1 = _mm256_max_epu32(t1, cg_abs_avx2_(b));
        l0 = _mm256_min_ps(l0, _mm256_castsi256_ps(a));
        l1 = _mm256_min_ps(l1, _mm256_castsi256_ps(b));
        h0 = _mm256_max_ps(h0, _mm256_castsi256_ps(a));
        h1 = _mm256_max_ps(h1, _mm256_castsi256_ps(b));
    }
    _mm256_storeu_ps(lows, _mm256_min_ps(l0, l1));
    _mm256_storeu_ps(highs, _mm256_max_ps(h0, h1));
    for (int j = 0; j < 8; j++) {
        *lo = lows[j] < *lo ? lows[j] : *lo;
        *hi = highs[j] > *hi ? highs[j] : *hi;
    }
    return cg_max32_(cg_fold_top_avx2_(_mm256_max_epu32(t0, t1)), cg_range_scalar_(cg_at_(v, i), n - i, lo, hi));
}
#endif
#if CG_NEON_
static uint32_t cg_range_neon_(const float *v, size_t n, float *lo, float *hi) {
    uint32x4_t t0 = vdupq_n_u32(0), t1 = t0;
    float32x4_t l0 = vdupq_n_f32(*lo), l1 = l0, h0 = vdupq_n_f32(*hi), h1 = h0;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint32x4_t a = cg_load4_neon_(v, i), b = cg_load4_neon_(v, i + 4);
        t0 = vmaxq_u32(t0, cg_abs_neon_(a));
        t1 = vmaxq_u32(t1, cg_abs_neon_(b));
        l0 = vminq_f32(l0, cg_floats_neon_(a));
        l1 = vminq_f32(l1, cg_floats_neon_(b));
        h0 = vmaxq_f32(h0, cg_floats_neon_(a));
        h1 = vmaxq_f32(h1, cg_floats_neon_(b));
    }
    *lo = vminvq_f32(vminq_f32(l0, l1));
    *hi = vmaxvq_f32(vmaxq_f32(h0, h1));
    return cg_max32_(vmaxvq_u32(vmaxq_u32(t0, t1)), cg_range_scalar_(cg_at_(v, i), n - i, lo, hi));
}
#endif

/* f32 as it is */
static uint32_t cg_copy_scalar_(const float *v, size_t n, uint8_t *out) {
    uint32_t top = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t u = cg_load_bits_(v, i);
        top = cg_max32_(top, u & CG_MAGNITUDE_);
        cg_put32_(out + 4 * i, u);
    }
    return top;
}
#if CG_AVX2_
CG_TARGET_AVX2_ static uint32_t cg_copy_avx2_(const float *v, size_t n, uint8_t *out) {
    __m256i t0 = _mm256_setzero_si256(), t1 = t0;
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m256i a = cg_load8_avx2_(v, i), b = cg_load8_avx2_(v, i + 8);
        cg_store_avx2_(out + 4 * i, a);
        cg_store_avx2_(out + 4 * i + 32, b);
        t0 = _mm256_max_epu32(t0, cg_abs_avx2_(a));
        t1 = _mm256_max_epu32(t1, cg_abs_avx2_(b));
    }
    return cg_max32_(cg_fold_top_avx2_(_mm256_max_epu32(t0, t1)), cg_copy_scalar_(cg_at_(v, i), n - i, out + 4 * i));
}
#endif
#if CG_NEON_
static uint32_t cg_copy_neon_(const float *v, size_t n, uint8_t *out) {
    uint32x4_t t0 = vdupq_n_u32(0), t1 = t0;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint32x4_t a = cg_load4_neon_(v, i), b = cg_load4_neon_(v, i + 4);
        vst1q_u8(out + 4 * i, vreinterpretq_u8_u32(a));
        vst1q_u8(out + 4 * i + 16, vreinterpretq_u8_u32(b));
        t0 = vmaxq_u32(t0, cg_abs_neon_(a));
        t1 = vmaxq_u32(t1, cg_abs_neon_(b));
    }
    return cg_max32_(vmaxvq_u32(vmaxq_u32(t0, t1)), cg_copy_scalar_(cg_at_(v, i), n - i, out + 4 * i));
}
#endif

/* f16: to nearest even; what is too large becomes 65504 */
#define CG_HALF_LIMIT_ 0x477fefffu    /* magnitude bits of the largest value that rounds to 65504 */
CG_INLINE_ uint32_t cg_half_(uint32_t u) {
    uint32_t sign = u >> 16 & 0x8000u, m = u & CG_MAGNITUDE_, shift, rest, h;
    if (m > CG_HALF_LIMIT_) {
        if (m < CG_NONFINITE_) return sign | 0x7bffu;
        return sign | (m == CG_NONFINITE_ ? 0x7c00u : 0x7e00u);
    }
    if (m < 0x33000000u) return sign;               /* below half of the smallest denormal */
    if (m < 0x38800000u) {                          /* becomes denormal */
        shift = 126u - (m >> 23);
        m = (m & 0x7fffffu) | 0x800000u;
    } else {
        shift = 13;
        m -= 0x38000000u;
    }
    h = m >> shift;
    rest = m & ((1u << shift) - 1u);
    h += rest > 1u << (shift - 1) || (rest == 1u << (shift - 1) && (h & 1u));
    return sign | h;
}
static uint32_t cg_half_scalar_(const float *v, size_t n, uint8_t *out) {
    uint32_t top = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t u = cg_load_bits_(v, i);
        top = cg_max32_(top, u & CG_MAGNITUDE_);
        cg_put16_(out + 2 * i, cg_half_(u));
    }
    return top;
}
#if CG_AVX2_
CG_TARGET_AVX2_ static uint32_t cg_half_avx2_(const float *v, size_t n, uint8_t *out) {
    __m256i t0 = _mm256_setzero_si256(), t1 = t0;
    uint32_t top;
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m256i a = cg_load8_avx2_(v, i), b = cg_load8_avx2_(v, i + 8);
        __m128i x = _mm256_cvtps_ph(_mm256_castsi256_ps(a), 0), y = _mm256_cvtps_ph(_mm256_castsi256_ps(b), 0);
        CG_PREFETCH_(cg_at_(v, i + 1536));
        cg_store_avx2_(out + 2 * i, _mm256_inserti128_si256(_mm256_castsi128_si256(x), y, 1));
        t0 = _mm256_max_epu32(t0, cg_abs_avx2_(a));
        t1 = _mm256_max_epu32(t1, cg_abs_avx2_(b));
    }
    top = cg_max32_(cg_fold_top_avx2_(_mm256_max_epu32(t0, t1)), cg_half_scalar_(cg_at_(v, i), n - i, out + 2 * i));
    if (top > CG_HALF_LIMIT_) cg_half_scalar_(v, i, out);    /* rare: saturate */
    return top;
}
#endif
#if CG_NEON_
static uint32_t cg_half_neon_(const float *v, size_t n, uint8_t *out) {
    uint32x4_t t0 = vdupq_n_u32(0), t1 = t0;
    uint32_t top;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint32x4_t a = cg_load4_neon_(v, i), b = cg_load4_neon_(v, i + 4);
        vst1q_u8(out + 2 * i, vreinterpretq_u8_f16(vcvt_high_f16_f32(vcvt_f16_f32(cg_floats_neon_(a)), cg_floats_neon_(b))));
        t0 = vmaxq_u32(t0, cg_abs_neon_(a));
        t1 = vmaxq_u32(t1, cg_abs_neon_(b));
    }
    top = cg_max32_(vmaxvq_u32(vmaxq_u32(t0, t1)), cg_half_scalar_(cg_at_(v, i), n - i, out + 2 * i));
    if (top > CG_HALF_LIMIT_) cg_half_scalar_(v, i, out);    /* rare: saturate */
    return top;
}
#endif

/* bf16: the same; the largest is 0x7f7f */
#define CG_BRAIN_LIMIT_ 0x7f7f7fffu
CG_INLINE_ uint32_t cg_brain_(uint32_t u) {
    uint32_t m = u & CG_MAGNITUDE_;
    if (m > CG_BRAIN_LIMIT_) {
        if (m < CG_NONFINITE_) return (u >> 16 & 0x8000u) | 0x7f7fu;
        return u >> 16 | (m > CG_NONFINITE_ ? 0x40u : 0u);
    }
    return (u + 0x7fffu + (u >> 16 & 1u)) >> 16;
}
static uint32_t cg_brain_scalar_(const float *v, size_t n, uint8_t *out) {
    uint32_t top = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t u = cg_load_bits_(v, i);
        top = cg_max32_(top, u & CG_MAGNITUDE_);
        cg_put16_(out + 2 * i, cg_brain_(u));
    }
    return top;
}
#if CG_AVX2_
CG_AVX2_INLINE_ __m256i cg_brain8_avx2_(__m256i u) {
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
    return _mm256_srli_epi32(_mm256_add_epi32(_mm256_add_epi32(u, _mm256_set1_epi32(0x7fff)), odd), 16);
}
CG_TARGET_AVX2_ static uint32_t cg_brain_avx2_(const float *v, size_t n, uint8_t *out) {
    __m256i t0 = _mm256_setzero_si256(), t1 = t0;
    uint32_t top;
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m256i a = cg_load8_avx2_(v, i), b = cg_load8_avx2_(v, i + 8);
        __m256i h = _mm256_packus_epi32(cg_brain8_avx2_(a), cg_brain8_avx2_(b));
        CG_PREFETCH_(cg_at_(v, i + 1536));
        cg_store_avx2_(out + 2 * i, _mm256_permute4x64_epi64(h, 0xd8));
        t0 = _mm256_max_epu32(t0, cg_abs_avx2_(a));
        t1 = _mm256_max_epu32(t1, cg_abs_avx2_(b));
    }
    top = cg_max32_(cg_fold_top_avx2_(_mm256_max_epu32(t0, t1)), cg_brain_scalar_(cg_at_(v, i), n - i, out + 2 * i));
    if (top > CG_BRAIN_LIMIT_) cg_brain_scalar_(v, i, out);
    return top;
}
#endif
#if CG_NEON_
CG_INLINE_ uint32x4_t cg_round_neon_(uint32x4_t u) {         /* what to add for the upper half to be to nearest even */
    return vaddq_u32(vandq_u32(vshrq_n_u32(u, 16), vdupq_n_u32(1)), vdupq_n_u32(0x7fff));
}
static uint32_t cg_brain_neon_(const float *v, size_t n, uint8_t *out) {
    uint32x4_t t0 = vdupq_n_u32(0), t1 = t0;
    uint32_t top;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint32x4_t a = cg_load4_neon_(v, i), b = cg_load4_neon_(v, i + 4);
        uint16x8_t h = vaddhn_high_u32(vaddhn_u32(a, cg_round_neon_(a)), b, cg_round_neon_(b));
        vst1q_u8(out + 2 * i, vreinterpretq_u8_u16(h));
        t0 = vmaxq_u32(t0, cg_abs_neon_(a));
        t1 = vmaxq_u32(t1, cg_abs_neon_(b));
    }
    top = cg_max32_(vmaxvq_u32(vmaxq_u32(t0, t1)), cg_brain_scalar_(cg_at_(v, i), n - i, out + 2 * i));
    if (top > CG_BRAIN_LIMIT_) cg_brain_scalar_(v, i, out);
    return top;
}
#endif

/* sign bits, straight to the wire; v is the start of a chunk, or 16*i values into one */
static uint32_t cg_sign_scalar_(const float *v, size_t n, uint8_t *out, double *lanes) {
    uint32_t top = 0;
    for (size_t i = 0; i < n; i++) {
        float f = cg_load_(v, i);
        uint32_t m = cg_bits_(f) & CG_MAGNITUDE_;
        top = cg_max32_(top, m);
        if (lanes) lanes[i % 16] += (double)cg_float_(m);
        if (i % 8 == 0) out[i / 8] = 0;
        out[i / 8] = (uint8_t)(out[i / 8] | (unsigned)(f < 0.0f) << i % 8);
    }
    return top;
}
#if CG_AVX2_
CG_AVX2_INLINE_ __m256i cg_below_avx2_(__m256i v) { return _mm256_castps_si256(_mm256_cmp_ps(_mm256_castsi256_ps(v), _mm256_setzero_ps(), _CMP_LT_OQ)); }
CG_AVX2_INLINE_ void cg_add_abs_avx2_(__m256d *s, __m256 m) {
    s[0] = _mm256_add_pd(s[0], _mm256_cvtps_pd(_mm256_castps256_ps128(m)));
    s[1] = _mm256_add_pd(s[1], _mm256_cvtps_pd(_mm256_extractf128_ps(m, 1)));
}
/* In a sum of magnitudes a NaN or Inf shows, so that one needs no maximum beside it. */
CG_AVX2_INLINE_ size_t cg_sign32_avx2_(const float *v, size_t n, uint8_t *out, __m256i *top, __m256d *s, int sums) {
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    __m256i t0 = _mm256_setzero_si256(), t1 = t0;
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        __m256i a = cg_load8_avx2_(v, i), b = cg_load8_avx2_(v, i + 8), c = cg_load8_avx2_(v, i + 16), d = cg_load8_avx2_(v, i + 24);
        __m256i ab = _mm256_packs_epi32(cg_below_avx2_(a), cg_below_avx2_(b)), cd = _mm256_packs_epi32(cg_below_avx2_(c), cg_below_avx2_(d));
        __m256i bits = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(ab, cd), order);
        cg_ahead_avx2_(v, i);
        cg_put32_(out + i / 8, (uint32_t)_mm256_movemask_epi8(bits));
        a = cg_abs_avx2_(a);
        b = cg_abs_avx2_(b);
        c = cg_abs_avx2_(c);
        d = cg_abs_avx2_(d);
        if (sums) {
            cg_add_abs_avx2_(s, _mm256_castsi256_ps(a));
            cg_add_abs_avx2_(s + 2, _mm256_castsi256_ps(b));
            cg_add_abs_avx2_(s, _mm256_castsi256_ps(c));
            cg_add_abs_avx2_(s + 2, _mm256_castsi256_ps(d));
        } else {
            t0 = _mm256_max_epu32(t0, _mm256_max_epu32(a, b));
            t1 = _mm256_max_epu32(t1, _mm256_max_epu32(c, d));
        }
    }
    *top = _mm256_max_epu32(t0, t1);
    return i;
}
CG_TARGET_AVX2_ static uint32_t cg_sign_avx2_(const float *v, size_t n, uint8_t *out, double *lanes) {
    __m256i top;
    __m256d s[4];
    uint32_t most;
    size_t i;
    if (lanes) {
        double any = 0.0;
        for (int j = 0; j < 4; j++) s[j] = _mm256_loadu_pd(lanes + 4 * j);
        i = cg_sign32_avx2_(v, n, out, &top, s, 1);
        for (int j = 0; j < 4; j++) _mm256_storeu_pd(lanes + 4 * j, s[j]);
        for (int j = 0; j < 16; j++) any += lanes[j];
        most = any < 1.7e308 ? 0 : CG_NONFINITE_;    /* false for NaN as well */
    } else {
        i = cg_sign32_avx2_(v, n, out, &top, s, 0);
        most = cg_fold_top_avx2_(top);
    }
    return i < n ? cg_max32_(most, cg_sign_scalar_(cg_at_(v, i), n - i, out + i / 8, lanes)) : most;
}
#endif
#if CG_NEON_
CG_INLINE_ void cg_lanes_neon_(float64x2_t *s, uint32x4_t m) {
    s[0] = s[0] + vcvt_f64_f32(vget_low_f32(cg_floats_neon_(m)));
    s[1] = s[1] + vcvt_high_f64_f32(cg_floats_neon_(m));
}
/* 16 values: their signs as byte masks; top and, if asked for, the 16 lanes are updated */
CG_INLINE_ uint8x16_t cg_sign16_neon_(const float *v, size_t i, uint32x4_t *top, float64x2x4_t *s, int summed) {
    uint32x4_t a = cg_load4_neon_(v, i), b = cg_load4_neon_(v, i + 4), c = cg_load4_neon_(v, i + 8), d = cg_load4_neon_(v, i + 12);
    uint8x16_t mask = cg_narrow_neon_(vcltzq_f32(cg_floats_neon_(a)), vcltzq_f32(cg_floats_neon_(b)),
                                      vcltzq_f32(cg_floats_neon_(c)), vcltzq_f32(cg_floats_neon_(d)));
    a = cg_abs_neon_(a);
    b = cg_abs_neon_(b);
    c = cg_abs_neon_(c);
    d = cg_abs_neon_(d);
    *top = vmaxq_u32(*top, vmaxq_u32(vmaxq_u32(a, b), vmaxq_u32(c, d)));
    if (summed) {
        cg_lanes_neon_(&s[0].val[0], a);
        cg_lanes_neon_(&s[0].val[2], b);
        cg_lanes_neon_(&s[1].val[0], c);
        cg_lanes_neon_(&s[1].val[2], d);
    }
    return mask;
}
CG_INLINE_ size_t cg_signs_neon_(const float *v, size_t n, uint8_t *out, uint32x4_t *top, float64x2x4_t *s, int summed) {
    size_t i = 0;
    for (; i + 64 <= n; i += 64) {
        uint8x16_t a = cg_sign16_neon_(v, i, top, s, summed), b = cg_sign16_neon_(v, i + 16, top, s, summed);
        uint8x16_t c = cg_sign16_neon_(v, i + 32, top, s, summed), d = cg_sign16_neon_(v, i + 48, top, s, summed);
        cg_put64_(out + i / 8, cg_mask_neon_(a, b, c, d));
    }
    return i;
}
static uint32_t cg_sign_neon_(const float *v, size_t n, uint8_t *out, double *lanes) {
    uint32x4_t top = vdupq_n_u32(0);
    float64x2x4_t s[2];
    size_t i;
    if (lanes) {
        s[0] = vld1q_f64_x4(lanes);
        s[1] = vld1q_f64_x4(lanes + 8);
        i = cg_signs_neon_(v, n, out, &top, s, 1);
        vst1q_f64_x4(lanes, s[0]);
        vst1q_f64_x4(lanes + 8, s[1]);
    } else {
        i = cg_signs_neon_(v, n, out, &top, NULL, 0);
    }
    return cg_max32_(vmaxvq_u32(top), cg_sign_scalar_(cg_at_(v, i), n - i, out + i / 8, lanes));
}
#endif

/* levels: values of one bucket to symbols, a byte each. v within the grid keeps |t| below 2^9, so that
   adding 1.5*2^23 rounds to nearest even; a wild v only meets the clamp. */
CG_INLINE_ uint8_t cg_level_(const cg_levels_ *q, float v, float noise) {
    float t = cg_times_(cg_minus_(cg_times_(v, q->prescale), q->sub), q->inv);
    int32_t level;
    if (q->stochastic) t = cg_plus_(t, noise);
    t = t < -1024.0f ? -1024.0f : t > 1024.0f ? 1024.0f : t;
    level = (int32_t)(cg_bits_(cg_plus_(t, 12582912.0f)) - 0x4b400000u) + q->bias;
    return (uint8_t)(level < 0 ? 0 : level > q->top ? q->top : level);
}
static void cg_levels_scalar_(const cg_levels_ *q, cg_key_ key, uint32_t position, const float *v, size_t n, uint8_t *symbols) {
    for (size_t i = 0; i < n; i++)
        symbols[i] = cg_level_(q, cg_load_(v, i), q->stochastic ? cg_noise_(key, position + (uint32_t)i) : 0.0f);
}
#if CG_AVX2_
CG_AVX2_INLINE_ __m256i cg_hash8_avx2_(cg_key_ key, uint32_t counter) {      /* of eight counters on */
    __m256i h = _mm256_add_epi32(_mm256_set1_epi32((int)counter), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    h = _mm256_xor_si256(h, _mm256_set1_epi32((int)key.a));
    h = _mm256_mullo_epi32(_mm256_xor_si256(h, _mm256_srli_epi32(h, 16)), _mm256_set1_epi32(0x7FEB352D));
    h = _mm256_add_epi32(_mm256_xor_si256(h, _mm256_srli_epi32(h, 15)), _mm256_set1_epi32((int)key.b));
    h = _mm256_mullo_epi32(h, _mm256_set1_epi32((int)0x846CA68Bu));
    return _mm256_xor_si256(h, _mm256_srli_epi32(h, 16));
}
CG_AVX2_INLINE_ __m256i cg_level8_avx2_(__m256i v, __m256i h, const cg_levels_ *q, int stochastic, int rescale, int shift) {
    __m256 t = _mm256_castsi256_ps(v);
    if (rescale) t = cg_mul8_avx2_(t, _mm256_set1_ps(q->prescale));
    if (shift) t = _mm256_sub_ps(t, _mm256_set1_ps(q->sub));
    t = cg_mul8_avx2_(t, _mm256_set1_ps(q->inv));
    if (stochastic) t = _mm256_add_ps(t, cg_mul8_avx2_(_mm256_cvtepi32_ps(h), _mm256_set1_ps(2.3283064365386963e-10f)));
    return _mm256_cvtps_epi32(t);
}
CG_AVX2_INLINE_ size_t cg_levels32_avx2_(const cg_levels_ *q, cg_key_ key, uint32_t position, const float *v, size_t n, uint8_t *symbols,
                                         int stochastic, int rescale, int shift) {
    const __m256i bias = _mm256_set1_epi16((short)q->bias), most = _mm256_set1_epi8((char)q->top);
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    const __m256i swap = _mm256_setr_epi8(2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        __m256i h = _mm256_setzero_si256(), g = h, a, b, c, d;
        CG_PREFETCH_(cg_at_(v, i + CG_CHUNK_));      /* this chunk has been read already: the next one */
        CG_PREFETCH_(cg_at_(v, i + CG_CHUNK_ + 16));
        if (stochastic) {
            uint32_t p = position + (uint32_t)i;
            h = cg_hash8_avx2_(key, p >> 1);
            g = cg_hash8_avx2_(key, (p >> 1) + 8);
        }
        a = cg_level8_avx2_(cg_load8_avx2_(v, i), h, q, stochastic, rescale, shift);
        b = cg_level8_avx2_(cg_load8_avx2_(v, i + 8), _mm256_shuffle_epi8(h, swap), q, stochastic, rescale, shift);
        c = cg_level8_avx2_(cg_load8_avx2_(v, i + 16), g, q, stochastic, rescale, shift);
        d = cg_level8_avx2_(cg_load8_avx2_(v, i + 24), _mm256_shuffle_epi8(g, swap), q, stochastic, rescale, shift);
        a = _mm256_add_epi16(_mm256_packs_epi32(a, b), bias);
        c = _mm256_add_epi16(_mm256_packs_epi32(c, d), bias);
        a = _mm256_permutevar8x32_epi32(_mm256_packus_epi16(a, c), order);
        cg_store_avx2_(symbols + i, _mm256_min_epu8(a, most));
    }
    return i;
}
CG_TARGET_AVX2_ static void cg_levels_avx2_(const cg_levels_ *q, cg_key_ key, uint32_t position, const float *v, size_t n, uint8_t *symbols) {
    const int mode = (q->stochastic ? 3 : 0) + (q->prescale != 1.0f ? 2 : q->sub != 0.0f ? 1 : 0);
    size_t head = q->stochastic ? cg_min_(n, (16 - (position & 15)) & 15) : 0, i = 0;
    if (head) cg_levels_scalar_(q, key, position, v, head, symbols);
    v = cg_at_(v, head);
    position += (uint32_t)head;
    symbols += head;
    n -= head;
    switch (mode) {
        case 0: i = cg_levels32_avx2_(q, key, position, v, n, symbols, 0, 0, 0); break;
        case 1: i = cg_levels32_avx2_(q, key, position, v, n, symbols, 0, 0, 1); break;
        case 2: i = cg_levels32_avx2_(q, key, position, v, n, symbols, 0, 1, 1); break;
        case 3: i = cg_levels32_avx2_(q, key, position, v, n, symbols, 1, 0, 0); break;
        case 4: i = cg_levels32_avx2_(q, key, position, v, n, symbols, 1, 0, 1); break;
        default: i = cg_levels32_avx2_(q, key, position, v, n, symbols, 1, 1, 1);
    }
    _mm256_zeroupper();
    if (i < n) cg_levels_scalar_(q, key, position + (uint32_t)i, cg_at_(v, i), n - i, symbols + i);
}
#endif
#if CG_NEON_
CG_INLINE_ uint32x4_t cg_hash4_neon_(cg_key_ key, uint32_t counter) {        /* of four counters on */
    const uint32x4_t lane = { 0, 1, 2, 3 };
    uint32x4_t h = veorq_u32(vaddq_u32(vdupq_n_u32(counter), lane), vdupq_n_u32(key.a));
    h = vmulq_u32(veorq_u32(h, vshrq_n_u32(h, 16)), vdupq_n_u32(0x7FEB352Du));
    h = vmulq_u32(vaddq_u32(veorq_u32(h, vshrq_n_u32(h, 15)), vdupq_n_u32(key.b)), vdupq_n_u32(0x846CA68Bu));
    return veorq_u32(h, vshrq_n_u32(h, 16));
}
CG_INLINE_ uint32x4_t cg_swap_neon_(uint32x4_t h) { return vreinterpretq_u32_u16(vrev32q_u16(vreinterpretq_u16_u32(h))); }
CG_INLINE_ int16x4_t cg_level4_neon_(uint32x4_t v, uint32x4_t h, const cg_levels_ *q, int stochastic, int plain) {
    float32x4_t t = cg_floats_neon_(v);
    if (!plain) t = cg_times_neon_(t, vdupq_n_f32(q->prescale)) - vdupq_n_f32(q->sub);
    t = cg_times_neon_(t, vdupq_n_f32(q->inv));
    if (stochastic) t = t + cg_times_neon_(vcvtq_f32_s32(vreinterpretq_s32_u32(h)), vdupq_n_f32(2.3283064365386963e-10f));
    return vqmovn_s32(vcvtnq_s32_f32(t));                    /* both saturate, and so does adding the bias: the clamp of a wild v */
}
CG_INLINE_ size_t cg_levels16_neon_(const cg_levels_ *q, cg_key_ key, uint32_t position, const float *v, size_t n, uint8_t *symbols,
                                    int stochastic, int plain) {
    const int16x8_t bias = vdupq_n_s16((int16_t)q->bias);
    const uint8x16_t most = vdupq_n_u8((uint8_t)q->top);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        uint32x4_t h = vdupq_n_u32(0), g = h;
        int16x4_t a, b, c, d;
        if (stochastic) {
            h = cg_hash4_neon_(key, (position + (uint32_t)i) >> 1);
            g = cg_hash4_neon_(key, ((position + (uint32_t)i) >> 1) + 4);
        }
        a = cg_level4_neon_(cg_load4_neon_(v, i), h, q, stochastic, plain);
        b = cg_level4_neon_(cg_load4_neon_(v, i + 4), g, q, stochastic, plain);
        c = cg_level4_neon_(cg_load4_neon_(v, i + 8), cg_swap_neon_(h), q, stochastic, plain);
        d = cg_level4_neon_(cg_load4_neon_(v, i + 12), cg_swap_neon_(g), q, stochastic, plain);
        vst1q_u8(symbols + i, vminq_u8(vcombine_u8(vqmovun_s16(vqaddq_s16(vcombine_s16(a, b), bias)),
                                                   vqmovun_s16(vqaddq_s16(vcombine_s16(c, d), bias))), most));
    }
    return i;
}
static void cg_levels_neon_(const cg_levels_ *q, cg_key_ key, uint32_t position, const float *v, size_t n, uint8_t *symbols) {
    const int plain = q->prescale == 1.0f && q->sub == 0.0f;
    size_t head = q->stochastic ? cg_min_(n, (16 - (position & 15)) & 15) : 0, done;
    cg_levels_scalar_(q, key, position, v, head, symbols);
    v = cg_at_(v, head);
    position += (uint32_t)head;
    symbols += head;
    n -= head;
    if (q->stochastic && plain) done = cg_levels16_neon_(q, key, position, v, n, symbols, 1, 1);
    else if (q->stochastic) done = cg_levels16_neon_(q, key, position, v, n, symbols, 1, 0);
    else if (plain) done = cg_levels16_neon_(q, key, position, v, n, symbols, 0, 1);
    else done = cg_levels16_neon_(q, key, position, v, n, symbols, 0, 0);
    cg_levels_scalar_(q, key, position + (uint32_t)done, cg_at_(v, done), n - done, symbols + done);
}
#endif

/* pack: symbols of 1..7 bits, eight of them into so many bytes */
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
    for (; i + 32 <= n; i += 32) cg_put32_(out + i / 8, (uint32_t)_mm256_movemask_epi8(_mm256_slli_epi16(cg_bytes_avx2_(symbols + i), 7)));
    return i;
}
CG_TARGET_AVX2_ static void cg_pack_avx2_(const uint8_t *symbols, size_t n, unsigned bits, uint8_t *out) {
    size_t i = 0;
    if (bits == 1) {
        i = cg_pack_bits_avx2_(symbols, n, out);
    } else if (bits == 4) {
        for (; i + 64 <= n; i += 64) {
            const __m256i times = _mm256_set1_epi16(0x1001);
            __m256i a = _mm256_maddubs_epi16(cg_bytes_avx2_(symbols + i), times), b = _mm256_maddubs_epi16(cg_bytes_avx2_(symbols + i + 32), times);
            cg_store_avx2_(out + i / 2, _mm256_permute4x64_epi64(_mm256_packus_epi16(a, b), 0xd8));
        }
    } else {    /* 2 symbols to 16 bits, 4 to 32, 8 to 64, then the bytes that count side by side */
        const __m256i pair = _mm256_set1_epi16((short)(1 | 1 << (8 + bits))), quad = _mm256_set1_epi32(1 | 1 << (16 + 2 * bits));
        const __m128i up = _mm_cvtsi32_si128((int)(32 - 4 * bits));
        uint8_t move[16];
        __m256i squeeze;
        for (unsigned j = 0; j < 16; j++) move[j] = (uint8_t)(j < bits ? j : j < 2 * bits ? 8 + j - bits : 0x80);
        squeeze = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)move));
        for (; i + 32 <= n && i / 8 * bits + 2 * bits + 16 <= n / 8 * bits; i += 32) {
            uint8_t *to = out + i / 8 * bits;
            __m256i w = _mm256_madd_epi16(_mm256_maddubs_epi16(pair, cg_bytes_avx2_(symbols + i)), quad);
            w = _mm256_or_si256(_mm256_and_si256(w, _mm256_set1_epi64x(0xffffffff)),
                                _mm256_srl_epi64(_mm256_andnot_si256(_mm256_set1_epi64x(0xffffffff), w), up));
            w = _mm256_shuffle_epi8(w, squeeze);
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
            uint8x16_t a = vld1q_u8(symbols + i), b = vld1q_u8(symbols + i + 16), c = vld1q_u8(symbols + i + 32), d = vld1q_u8(symbols + i + 48);
            cg_put64_(out + i / 8, cg_mask_neon_(vtstq_u8(a, a), vtstq_u8(b, b), vtstq_u8(c, c), vtstq_u8(d, d)));
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
    } else {    /* 2 symbols to 16 bits, 4 to 32, 8 to 64: the upper of two moves down to the lower, of which the low bits are kept */
        const int b = (int)bits;
        const int16x8_t down2 = vdupq_n_s16((int16_t)(b - 8));
        const int32x4_t down4 = vdupq_n_s32(2 * b - 16);
        const int64x2_t down8 = vdupq_n_s64(4 * b - 32);
        const uint16x8_t low2 = vdupq_n_u16((uint16_t)((1u << bits) - 1u));
        const uint32x4_t low4 = vdupq_n_u32((1u << 2 * bits) - 1u);
        const uint64x2_t low8 = vdupq_n_u64(((uint64_t)1 << 4 * bits) - 1);
        /* the second store, or the next one, writes over what the first leaves beyond its bits */
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
    const __m128i by4 = _mm_cvtsi32_si128((int)(4 * bits)), by2 = _mm_cvtsi32_si128((int)(2 * bits)), by1 = _mm_cvtsi32_si128((int)bits);
    const __m256i low4 = _mm256_set1_epi64x((long long)(((uint64_t)1 << 4 * bits) - 1)), low2 = _mm256_set1_epi32((int)((1u << 2 * bits) - 1u));
    const __m256i low1 = _mm256_set1_epi16((short)((1u << bits) - 1u));
    uint8_t move[16];
    __m256i spread;
    size_t i = 0;
    if (bits == 4) {
        for (; i + 32 <= n; i += 32) {
            __m256i w = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(const void *)(in + i / 2)));
            cg_store_avx2_(symbols + i, _mm256_and_si256(_mm256_or_si256(w, _mm256_slli_epi16(w, 4)), _mm256_set1_epi8(15)));
        }
    }
    for (unsigned j = 0; j < 16; j++) move[j] = (uint8_t)(j % 8 < bits ? j / 8 * bits + j % 8 : 0x80);
    spread = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)move));
    for (; i + 32 <= n && i / 8 * bits + 2 * bits + 16 <= n / 8 * bits; i += 32) {
        const uint8_t *p = in + i / 8 * bits;
        __m256i w = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)p)),
                                            _mm_loadu_si128((const __m128i *)(const void *)(p + 2 * bits)), 1);
        w = _mm256_shuffle_epi8(w, spread);
        w = _mm256_or_si256(_mm256_and_si256(w, low4), _mm256_slli_epi64(_mm256_and_si256(_mm256_srl_epi64(w, by4), low4), 32));
        w = _mm256_or_si256(_mm256_and_si256(w, low2), _mm256_slli_epi32(_mm256_and_si256(_mm256_srl_epi32(w, by2), low2), 16));
        w = _mm256_or_si256(_mm256_and_si256(w, low1), _mm256_slli_epi16(_mm256_and_si256(_mm256_srl_epi16(w, by1), low1), 8));
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
    } else {    /* the reverse of packing; what else is in a byte goes at the end */
        const int b = (int)bits;
        const int64x2_t up8 = vdupq_n_s64(32 - 4 * b);
        const int32x4_t up4 = vdupq_n_s32(16 - 2 * b);
        const int16x8_t up2 = vdupq_n_s16((int16_t)(8 - b));
        for (; i + 16 <= n && i / 8 * bits + bits + 8 <= n / 8 * bits; i += 16) {
            const uint8_t *p = in + i / 8 * bits;
            uint64x2_t w8 = vreinterpretq_u64_u8(vcombine_u8(vld1_u8(p), vld1_u8(p + bits)));
            uint32x4_t w4 = vreinterpretq_u32_u64(vbslq_u64(vdupq_n_u64(0xffffffffu), w8, vshlq_u64(w8, up8)));
            uint16x8_t w2 = vreinterpretq_u16_u32(vbslq_u32(vdupq_n_u32(0xffff), w4, vshlq_u32(w4, up4)));
            vst1q_u8(symbols + i, vandq_u8(vreinterpretq_u8_u16(vbslq_u16(vdupq_n_u16(0xff), w2, vshlq_u16(w2, up2))), low));
        }
    }
    cg_unpack_scalar_(in + i / 8 * bits, n - i, bits, symbols + i);
}
#endif

/* filter: index (from `first` on) and value of what reaches the bound as magnitude bits; NaN always does.
   Room for n values, and CG_SLACK_ more that may be scribbled on. n <= CG_CHUNK_ */
#define CG_SLACK_ 16u
static size_t cg_filter_scalar_(const float *v, size_t n, uint32_t bound, uint32_t first, uint32_t *index, float *value) {
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t u = cg_load_bits_(v, i);
        index[count] = first + (uint32_t)i;
        value[count] = cg_float_(u);
        count += (u & CG_MAGNITUDE_) >= bound;
    }
    return count;
}
#if CG_AVX2_
CG_AVX2_INLINE_ __m256i cg_reach_avx2_(const float *v, size_t i, __m256i below) {
    return _mm256_cmpgt_epi32(cg_abs_avx2_(cg_load8_avx2_(v, i)), below);
}
CG_AVX2_INLINE_ uint64_t cg_reach32_avx2_(const float *v, size_t i, __m256i below) {       /* a bit each */
    __m256i a = _mm256_packs_epi32(cg_reach_avx2_(v, i, below), cg_reach_avx2_(v, i + 8, below));
    __m256i b = _mm256_packs_epi32(cg_reach_avx2_(v, i + 16, below), cg_reach_avx2_(v, i + 24, below));
    a = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(a, b), _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    return (uint32_t)_mm256_movemask_epi8(a);
}
CG_TARGET_AVX2_ static size_t cg_filter_avx2_(const float *v, size_t n, uint32_t bound, uint32_t first, uint32_t *index, float *value) {
    const __m256i below = _mm256_set1_epi32((int)(bound - 1u));
    const uint64_t last = (uint64_t)1 << 63;
    size_t count = 0, i = 0;
    for (; i + 64 <= n; i += 64) {
        uint64_t m = cg_reach32_avx2_(v, i, below) | cg_reach32_avx2_(v, i + 32, below) << 32;
        size_t many = (size_t)__builtin_popcountll(m), j;
        /* two without asking: which of 0, 1, 2 it is cannot be predicted */
        j = i + (size_t)__builtin_ctzll(m | last);
        index[count] = first + (uint32_t)j;
        value[count] = cg_load_(v, j);
        m &= m - 1;
        j = i + (size_t)__builtin_ctzll(m | last);
        index[count + 1] = first + (uint32_t)j;
        value[count + 1] = cg_load_(v, j);
        if (many > 2) {
            for (size_t c = 2; c < many; c++) {
                m &= m - 1;
                j = i + (size_t)__builtin_ctzll(m);
                index[count + c] = first + (uint32_t)j;
                value[count + c] = cg_load_(v, j);
            }
        }
        count += many;
    }
    return count + cg_filter_scalar_(cg_at_(v, i), n - i, bound, first + (uint32_t)i, index + count, value + count);
}
#endif
#if CG_NEON_
CG_INLINE_ uint8x16_t cg_reach_neon_(const float *v, size_t i, uint32x4_t bound) {           /* 16 values */
    return cg_narrow_neon_(vcgeq_u32(cg_abs_neon_(cg_load4_neon_(v, i)), bound), vcgeq_u32(cg_abs_neon_(cg_load4_neon_(v, i + 4)), bound),
                           vcgeq_u32(cg_abs_neon_(cg_load4_neon_(v, i + 8)), bound), vcgeq_u32(cg_abs_neon_(cg_load4_neon_(v, i + 12)), bound));
}
static size_t cg_filter_neon_(const float *v, size_t n, uint32_t bound, uint32_t first, uint32_t *index, float *value) {
    const uint32x4_t least = vdupq_n_u32(bound);
    const uint64_t last = (uint64_t)1 << 63;
    size_t count = 0, i = 0;
    for (; i + 64 <= n; i += 64) {
        uint64_t m = cg_mask_neon_(cg_reach_neon_(v, i, least), cg_reach_neon_(v, i + 16, least),
                                   cg_reach_neon_(v, i + 32, least), cg_reach_neon_(v, i + 48, least));
        size_t many = cg_popcount_(m), j;
        /* two without asking: which of 0, 1, 2 it is cannot be predicted */
        j = i + cg_ctz_(m | last);
        index[count] = first + (uint32_t)j;
        value[count] = cg_load_(v, j);
        m &= m - 1;
        j = i + cg_ctz_(m | last);
        index[count + 1] = first + (uint32_t)j;
        value[count + 1] = cg_load_(v, j);
        for (size_t c = 2; c < many; c++) {
            m &= m - 1;
            j = i + cg_ctz_(m);
            index[count + c] = first + (uint32_t)j;
            value[count + c] = cg_load_(v, j);
        }
        count += many;
    }
    return count + cg_filter_scalar_(cg_at_(v, i), n - i, bound, first + (uint32_t)i, index + count, value + count);
}
#endif

/* tally: how many magnitudes are above the pivot */
static uint32_t cg_tally_scalar_(const float *v, size_t n, uint32_t pivot, size_t *above) {
    uint32_t top = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t m = cg_load_bits_(v, i) & CG_MAGNITUDE_;
        top = cg_max32_(top, m);
        *above += m > pivot;
    }
    return top;
}
#if CG_AVX2_
CG_TARGET_AVX2_ static uint32_t cg_tally_avx2_(const float *v, size_t n, uint32_t pivot, size_t *above) {
    const __m256i p = _mm256_set1_epi32((int)pivot);
    __m256i top = _mm256_setzero_si256(), gt = top;
    uint32_t g[8];
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256i m = cg_abs_avx2_(cg_load8_avx2_(v, i));
        top = _mm256_max_epu32(top, m);
        gt = _mm256_sub_epi32(gt, _mm256_cmpgt_epi32(m, p));
    }
    cg_store_avx2_(g, gt);
    for (int j = 0; j < 8; j++) *above += g[j];
    return cg_max32_(cg_fold_top_avx2_(top), cg_tally_scalar_(cg_at_(v, i), n - i, pivot, above));
}
#endif
#if CG_NEON_
static uint32_t cg_tally_neon_(const float *v, size_t n, uint32_t pivot, size_t *above) {
    const uint32x4_t p = vdupq_n_u32(pivot);
    uint32x4_t top = vdupq_n_u32(0), gt = top;
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        uint32x4_t m = cg_abs_neon_(cg_load4_neon_(v, i));
        top = vmaxq_u32(top, m);
        gt = vsubq_u32(gt, vcgtq_u32(m, p));
    }
    *above += (size_t)vaddlvq_u32(gt);
    return cg_max32_(vmaxvq_u32(top), cg_tally_scalar_(cg_at_(v, i), n - i, pivot, above));
}
#endif

/* unlevels: any symbol is a legal level */
static void cg_unlevels_scalar_(const cg_levels_ *q, const uint8_t *symbols, size_t n, float *out, int stream) {
    (void)stream;
    for (size_t i = 0; i < n; i++) {
        int32_t level = symbols[i] < q->top ? symbols[i] : q->top;
        cg_store_(out, i, cg_saturate_(cg_times_(cg_plus_(q->base, cg_times_((float)(level - q->bias), q->step)), q->post)));
    }
}
#if CG_AVX2_
/* The usual bucket needs no rescaling and cannot overflow; a symmetric one starts from 0. */
CG_AVX2_INLINE_ size_t cg_unlevels16_avx2_(const cg_levels_ *q, const uint8_t *symbols, size_t n, float *out, int stream, int usual, int symmetric) {
    const __m256 base = _mm256_set1_ps(q->base), step = _mm256_set1_ps(q->step), post = _mm256_set1_ps(q->post);
    const __m256 most = _mm256_set1_ps(CG_FLT_MAX_), least = _mm256_set1_ps(-CG_FLT_MAX_);
    const __m128i top = _mm_set1_epi8((char)q->top), bias = _mm_set1_epi8((char)q->bias);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m128i s = _mm_min_epu8(_mm_loadu_si128((const __m128i *)(const void *)(symbols + i)), top);
        if (symmetric) s = _mm_sub_epi8(s, bias);    /* within -127 and 127 */
        for (int j = 0; j < 2; j++, s = _mm_srli_si128(s, 8)) {
            __m256 f = cg_mul8_avx2_(_mm256_cvtepi32_ps(symmetric ? _mm256_cvtepi8_epi32(s) : _mm256_cvtepu8_epi32(s)), step);
            if (!usual || !symmetric) f = _mm256_add_ps(base, f);
            if (!usual) f = _mm256_max_ps(_mm256_min_ps(cg_mul8_avx2_(f, post), most), least);
            cg_out_avx2_(out, i + 8 * (size_t)j, _mm256_castps_si256(f), stream);
        }
    }
    return i;
}
CG_TARGET_AVX2_ static void cg_unlevels_avx2_(const cg_levels_ *q, const uint8_t *symbols, size_t n, float *out, int stream) {
    size_t i = q->bias ? q->post == 1.0f ? cg_unlevels16_avx2_(q, symbols, n, out, stream, 1, 1) : cg_unlevels16_avx2_(q, symbols, n, out, stream, 0, 1)
                       : q->post == 1.0f ? cg_unlevels16_avx2_(q, symbols, n, out, stream, 1, 0) : cg_unlevels16_avx2_(q, symbols, n, out, stream, 0, 0);
    _mm256_zeroupper();
    if (i < n) cg_unlevels_scalar_(q, symbols + i, n - i, cg_at_mut_(out, i), 0);
}
#endif
#if CG_NEON_
CG_INLINE_ void cg_unlevel4_neon_(const cg_levels_ *q, int16x4_t level, float *out, size_t i) {
    float32x4_t f = vcvtq_f32_s32(vmovl_s16(level));
    f = (vdupq_n_f32(q->base) + cg_times_neon_(f, vdupq_n_f32(q->step))) * vdupq_n_f32(q->post);
    cg_store4_neon_(out, i, vmaxq_f32(vminq_f32(f, vdupq_n_f32(CG_FLT_MAX_)), vdupq_n_f32(-CG_FLT_MAX_)));
}
static void cg_unlevels_neon_(const cg_levels_ *q, const uint8_t *symbols, size_t n, float *out, int stream) {
    const cg_levels_ g = *q;           /* a copy: out cannot alias it */
    const uint8x16_t most = vdupq_n_u8((uint8_t)g.top);
    const int16x8_t bias = vdupq_n_s16((int16_t)g.bias);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        uint8x16_t s = vminq_u8(vld1q_u8(symbols + i), most);
        int16x8_t a = vsubq_s16(vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(s))), bias);
        int16x8_t b = vsubq_s16(vreinterpretq_s16_u16(vmovl_u8(vget_high_u8(s))), bias);
        cg_unlevel4_neon_(&g, vget_low_s16(a), out, i);
        cg_unlevel4_neon_(&g, vget_high_s16(a), out, i + 4);
        cg_unlevel4_neon_(&g, vget_low_s16(b), out, i + 8);
        cg_unlevel4_neon_(&g, vget_high_s16(b), out, i + 12);
    }
    cg_unlevels_scalar_(q, symbols + i, n - i, cg_at_mut_(out, i), stream);
}
#endif

static void cg_unsign_scalar_(const uint8_t *in, size_t n, float scale, float *out, int stream) {
    (void)stream;
    for (size_t i = 0; i < n; i++) cg_store_(out, i, in[i / 8] >> i % 8 & 1 ? -scale : scale);
}
#if CG_AVX2_
CG_TARGET_AVX2_ static void cg_unsign_avx2_(const uint8_t *in, size_t n, float scale, float *out, int stream) {
    const __m256i minus = _mm256_set1_epi32((int)0x80000000u), plus = _mm256_set1_epi32((int)cg_bits_(scale));
    const __m256i s0 = _mm256_setr_epi32(31, 30, 29, 28, 27, 26, 25, 24), s1 = _mm256_sub_epi32(s0, _mm256_set1_epi32(8));
    const __m256i s2 = _mm256_sub_epi32(s1, _mm256_set1_epi32(8)), s3 = _mm256_sub_epi32(s2, _mm256_set1_epi32(8));
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {                   /* bring each bit to where the sign is */
        __m256i w = _mm256_set1_epi32((int)cg_get32_(in + i / 8));
        cg_out_avx2_(out, i, _mm256_xor_si256(_mm256_and_si256(_mm256_sllv_epi32(w, s0), minus), plus), stream);
        cg_out_avx2_(out, i + 8, _mm256_xor_si256(_mm256_and_si256(_mm256_sllv_epi32(w, s1), minus), plus), stream);
        cg_out_avx2_(out, i + 16, _mm256_xor_si256(_mm256_and_si256(_mm256_sllv_epi32(w, s2), minus), plus), stream);
        cg_out_avx2_(out, i + 24, _mm256_xor_si256(_mm256_and_si256(_mm256_sllv_epi32(w, s3), minus), plus), stream);
    }
    _mm256_zeroupper();
    if (i < n) cg_unsign_scalar_(in + i / 8, n - i, scale, cg_at_mut_(out, i), 0);
}
#endif
#if CG_NEON_
static void cg_unsign_neon_(const uint8_t *in, size_t n, float scale, float *out, int stream) {
    const uint32x4_t minus = vdupq_n_u32(0x80000000u), plus = vdupq_n_u32(cg_bits_(scale));
    const int32x4_t low = { 31, 30, 29, 28 }, high = { 27, 26, 25, 24 };
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const uint32x4_t w = vdupq_n_u32(in[i / 8]);
        cg_store4_neon_(out, i, cg_floats_neon_(veorq_u32(vandq_u32(vshlq_u32(w, low), minus), plus)));
        cg_store4_neon_(out, i + 4, cg_floats_neon_(veorq_u32(vandq_u32(vshlq_u32(w, high), minus), plus)));
    }
    cg_unsign_scalar_(in + i / 8, n - i, scale, cg_at_mut_(out, i), stream);
}
#endif

CG_INLINE_ float cg_unhalf_(uint32_t h) {
    uint32_t sign = (h & 0x8000u) << 16, m = h & 0x7fffu;
    if (m >= 0x7c00u) return cg_float_(sign | (m << 13) | 0x7f800000u | (m > 0x7c00u ? 0x400000u : 0u));
    if (m < 0x400u) return cg_float_(sign | cg_bits_((float)m * 5.9604644775390625e-8f));
    return cg_float_(sign | ((m << 13) + 0x38000000u));
}
static void cg_unhalf_scalar_(const uint8_t *in, size_t n, float *out, int stream) {
    (void)stream;
    for (size_t i = 0; i < n; i++) cg_store_(out, i, cg_unhalf_(cg_get16_(in + 2 * i)));
}
#if CG_AVX2_
CG_TARGET_AVX2_ static void cg_unhalf_avx2_(const uint8_t *in, size_t n, float *out, int stream) {
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        cg_out_avx2_(out, i, _mm256_castps_si256(_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(in + 2 * i)))), stream);
    _mm256_zeroupper();
    if (i < n) cg_unhalf_scalar_(in + 2 * i, n - i, cg_at_mut_(out, i), 0);
}
#endif
#if CG_NEON_
static void cg_unhalf_neon_(const uint8_t *in, size_t n, float *out, int stream) {
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        float16x8_t h = vreinterpretq_f16_u8(vld1q_u8(in + 2 * i));
        cg_store4_neon_(out, i, vcvt_f32_f16(vget_low_f16(h)));
        cg_store4_neon_(out, i + 4, vcvt_high_f32_f16(h));
    }
    cg_unhalf_scalar_(in + 2 * i, n - i, cg_at_mut_(out, i), stream);
}
#endif

static void cg_unbrain_scalar_(const uint8_t *in, size_t n, float *out, int stream) {
    (void)stream;
    for (size_t i = 0; i < n; i++) cg_store_(out, i, cg_float_((uint32_t)cg_get16_(in + 2 * i) << 16));
}
#if CG_AVX2_
CG_TARGET_AVX2_ static void cg_unbrain_avx2_(const uint8_t *in, size_t n, float *out, int stream) {
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        cg_out_avx2_(out, i, _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)(in + 2 * i))), 16), stream);
    _mm256_zeroupper();
    if (i < n) cg_unbrain_scalar_(in + 2 * i, n - i, cg_at_mut_(out, i), 0);
}
#endif
#if CG_NEON_
static void cg_unbrain_neon_(const uint8_t *in, size_t n, float *out, int stream) {
    const uint16x8_t zero = vdupq_n_u16(0);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint16x8_t h = vreinterpretq_u16_u8(vld1q_u8(in + 2 * i));
        cg_store4_neon_(out, i, vreinterpretq_f32_u16(vzip1q_u16(zero, h)));
        cg_store4_neon_(out, i + 4, vreinterpretq_f32_u16(vzip2q_u16(zero, h)));
    }
    cg_unbrain_scalar_(in + 2 * i, n - i, cg_at_mut_(out, i), stream);
}
#endif

/* top16: largest magnitude among 16-bit floats, as bits: the finite check of a packet */
static uint32_t cg_top16_scalar_(const uint8_t *in, size_t n) {
    uint32_t top = 0;
    for (size_t i = 0; i < n; i++) top = cg_max32_(top, cg_get16_(in + 2 * i) & 0x7fffu);
    return top;
}
#if CG_AVX2_
CG_TARGET_AVX2_ static uint32_t cg_top16_avx2_(const uint8_t *in, size_t n) {
    const __m256i low = _mm256_set1_epi16(0x7fff);
    __m256i t0 = _mm256_setzero_si256(), t1 = t0;
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        t0 = _mm256_max_epu16(t0, _mm256_and_si256(cg_bytes_avx2_(in + 2 * i), low));
        t1 = _mm256_max_epu16(t1, _mm256_and_si256(cg_bytes_avx2_(in + 2 * i + 32), low));
    }
    t0 = _mm256_max_epu16(t0, t1);
    t0 = _mm256_max_epu32(_mm256_srli_epi32(t0, 16), _mm256_and_si256(t0, _mm256_set1_epi32(0xffff)));
    return cg_max32_(cg_fold_top_avx2_(t0), cg_top16_scalar_(in + 2 * i, n - i));
}
#endif
#if CG_NEON_
static uint32_t cg_top16_neon_(const uint8_t *in, size_t n) {
    const uint16x8_t low = vdupq_n_u16(0x7fff);
    uint16x8_t t0 = vdupq_n_u16(0), t1 = t0;
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        t0 = vmaxq_u16(t0, vandq_u16(vreinterpretq_u16_u8(vld1q_u8(in + 2 * i)), low));
        t1 = vmaxq_u16(t1, vandq_u16(vreinterpretq_u16_u8(vld1q_u8(in + 2 * i + 16)), low));
    }
    return cg_max32_(vmaxvq_u16(vmaxq_u16(t0, t1)), cg_top16_scalar_(in + 2 * i, n - i));
}
#endif

/* emit: y = beta*y + alpha*d; y is not read if beta is 0 */
static void cg_emit_scalar_(const float *d, size_t n, float alpha, float beta, float *y, int stream) {
    (void)stream;
    if (beta == 0.0f && alpha == 1.0f) memcpy(y, d, 4 * n);
    else if (beta == 0.0f) for (size_t i = 0; i < n; i++) cg_store_(y, i, cg_times_(alpha, cg_load_(d, i)));
    else if (beta == 1.0f) for (size_t i = 0; i < n; i++) cg_store_(y, i, cg_plus_(cg_load_(y, i), cg_times_(alpha, cg_load_(d, i))));
    else for (size_t i = 0; i < n; i++) cg_store_(y, i, cg_plus_(cg_times_(beta, cg_load_(y, i)), cg_times_(alpha, cg_load_(d, i))));
}
#if CG_AVX2_
CG_TARGET_AVX2_ static void cg_emit_avx2_(const float *d, size_t n, float alpha, float beta, float *y, int stream) {
    const __m256 a = _mm256_set1_ps(alpha), b = _mm256_set1_ps(beta);
    size_t i = 0;
    if (stream && beta == 0.0f) {
        for (; i + 8 <= n; i += 8) cg_out_avx2_(y, i, _mm256_castps_si256(cg_mul8_avx2_(a, _mm256_castsi256_ps(cg_load8_avx2_(d, i)))), 1);
    } else if (beta == 1.0f) {
        for (; i + 8 <= n; i += 8) {
            __m256 f = _mm256_castsi256_ps(cg_load8_avx2_(y, i));
            cg_store_avx2_(cg_at_mut_(y, i), _mm256_castps_si256(_mm256_add_ps(f, cg_mul8_avx2_(a, _mm256_castsi256_ps(cg_load8_avx2_(d, i))))));
        }
    } else if (beta != 0.0f) {
        for (; i + 8 <= n; i += 8) {
            __m256 f = cg_mul8_avx2_(b, _mm256_castsi256_ps(cg_load8_avx2_(y, i)));
            cg_store_avx2_(cg_at_mut_(y, i), _mm256_castps_si256(_mm256_add_ps(f, cg_mul8_avx2_(a, _mm256_castsi256_ps(cg_load8_avx2_(d, i))))));
        }
    } else if (alpha != 1.0f) {
        for (; i + 8 <= n; i += 8) cg_store_avx2_(cg_at_mut_(y, i), _mm256_castps_si256(cg_mul8_avx2_(a, _mm256_castsi256_ps(cg_load8_avx2_(d, i)))));
    }
    _mm256_zeroupper();
    if (i < n) cg_emit_scalar_(cg_at_(d, i), n - i, alpha, beta, cg_at_mut_(y, i), 0);
}
#endif
#if CG_NEON_
static void cg_emit_neon_(const float *d, size_t n, float alpha, float beta, float *y, int stream) {
    const float32x4_t a = vdupq_n_f32(alpha), b = vdupq_n_f32(beta);
    size_t i = 0;
    if (beta == 0.0f && alpha == 1.0f) {
        /* a copy, below */
    } else if (beta == 0.0f) {
        for (; i + 4 <= n; i += 4) cg_store4_neon_(y, i, a * cg_floats_neon_(cg_load4_neon_(d, i)));
    } else {
        const int keep = beta == 1.0f;
        for (; i + 4 <= n; i += 4) {
            float32x4_t f = cg_floats_neon_(cg_load4_neon_(y, i)), g = cg_times_neon_(a, cg_floats_neon_(cg_load4_neon_(d, i)));
            cg_store4_neon_(y, i, (keep ? f : cg_times_neon_(b, f)) + g);
        }
    }
    cg_emit_scalar_(cg_at_(d, i), n - i, alpha, beta, cg_at_mut_(y, i), stream);
}
#endif

static void cg_drain_scalar_(void) {}
#if CG_AVX2_
CG_TARGET_AVX2_ static void cg_drain_avx2_(void) { _mm_sfence(); }
#endif
#if CG_NEON_
static void cg_drain_neon_(void) {}
#endif

/* sum: absorbs whole words */
static void cg_sum_scalar_(cg_sum_ *sum, const uint8_t *words, size_t count) {
    uint64_t a = sum->a, b = sum->b;
    for (size_t i = 0; i < count; i++) {
        a += cg_get32_(words + 4 * i);
        b += a;
    }
    sum->a = a;
    sum->b = b;
    sum->words += count;
}
#if CG_AVX2_
CG_TARGET_AVX2_ static void cg_sum_avx2_(cg_sum_ *sum, const uint8_t *words, size_t count) {
    const __m256i low = _mm256_set1_epi64x(0xffffffff);
    __m256i ae = _mm256_setzero_si256(), ao = ae, be = ae, bo = ae;
    uint64_t a[8], b[8], sa = 0, sb = 0;
    const size_t rows = count / 8;
    for (size_t i = 0; i < rows; i++) {
        __m256i w = cg_bytes_avx2_(words + 32 * i);
        ae = _mm256_add_epi64(ae, _mm256_and_si256(w, low));
        ao = _mm256_add_epi64(ao, _mm256_srli_epi64(w, 32));
        be = _mm256_add_epi64(be, ae);
        bo = _mm256_add_epi64(bo, ao);
    }
    cg_store_avx2_(a, ae);
    cg_store_avx2_(a + 4, ao);
    cg_store_avx2_(b, be);
    cg_store_avx2_(b + 4, bo);
    for (unsigned j = 0; j < 8; j++) {               /* lane j holds words 2j, or 2(j-4)+1, of each row of eight */
        sa += a[j];
        sb += 8 * b[j] - (j < 4 ? 2 * j : 2 * (j - 4) + 1) * a[j];
    }
    sum->b += 8 * (uint64_t)rows * sum->a + sb;
    sum->a += sa;
    sum->words += 8 * (uint64_t)rows;
    cg_sum_scalar_(sum, words + 32 * rows, count - 8 * rows);
}
#endif
#if CG_NEON_
static void cg_sum_neon_(cg_sum_ *sum, const uint8_t *words, size_t count) {
    uint64x2_t a0 = vdupq_n_u64(0), a1 = a0, a2 = a0, a3 = a0, b0 = a0, b1 = a0, b2 = a0, b3 = a0;
    uint64_t a[8], b[8], sa = 0, sb = 0;
    const size_t rows = count / 8;
    for (size_t i = 0; i < rows; i++) {
        uint32x4_t v = vreinterpretq_u32_u8(vld1q_u8(words + 32 * i)), w = vreinterpretq_u32_u8(vld1q_u8(words + 32 * i + 16));
        a0 = vaddw_u32(a0, vget_low_u32(v));
        a1 = vaddw_high_u32(a1, v);
        a2 = vaddw_u32(a2, vget_low_u32(w));
        a3 = vaddw_high_u32(a3, w);
        b0 = vaddq_u64(b0, a0);
        b1 = vaddq_u64(b1, a1);
        b2 = vaddq_u64(b2, a2);
        b3 = vaddq_u64(b3, a3);
    }
    vst1q_u64(a, a0);
    vst1q_u64(a + 2, a1);
    vst1q_u64(a + 4, a2);
    vst1q_u64(a + 6, a3);
    vst1q_u64(b, b0);
    vst1q_u64(b + 2, b1);
    vst1q_u64(b + 4, b2);
    vst1q_u64(b + 6, b3);
    for (unsigned j = 0; j < 8; j++) {                       /* lane j holds word j of each row of eight */
        sa += a[j];
        sb += 8 * b[j] - j * a[j];
    }
    sum->b += 8 * (uint64_t)rows * sum->a + sb;
    sum->a += sa;
    sum->words += 8 * (uint64_t)rows;
    cg_sum_scalar_(sum, words + 32 * rows, count - 8 * rows);
}
#endif

#define CG_KERNELS_(isa, x)                                                                                                   \
    { isa, cg_top_##x##_, cg_range_##x##_, cg_copy_##x##_, cg_half_##x##_, cg_brain_##x##_, cg_sign_##x##_, cg_levels_##x##_, \
      cg_pack_##x##_, cg_filter_##x##_, cg_tally_##x##_, cg_unpack_##x##_, cg_unlevels_##x##_, cg_unsign_##x##_,              \
      cg_unhalf_##x##_, cg_unbrain_##x##_, cg_top16_##x##_, cg_emit_##x##_, cg_drain_##x##_, cg_sum_##x##_ }
static const cg_kernels_ cg_kernels_scalar_ = CG_KERNELS_(CG_ISA_SCALAR, scalar);
#if CG_AVX2_
static const cg_kernels_ cg_kernels_avx2_ = CG_KERNELS_(CG_ISA_AVX2, avx2);
#endif
#if CG_NEON_
static const cg_kernels_ cg_kernels_neon_ = CG_KERNELS_(CG_ISA_NEON, neon);
#endif

/* ---- >>dispatch: one word, 0 until the CPU has been asked -------------------------------------- */

static int cg_isa_word_;               /* a cg_isa; every thread that writes it writes the same, or was told to */

#if defined(__GNUC__)
CG_INLINE_ int cg_isa_load_(void) { return __atomic_load_n(&cg_isa_word_, __ATOMIC_RELAXED); }
CG_INLINE_ void cg_isa_save_(int isa) { __atomic_store_n(&cg_isa_word_, isa, __ATOMIC_RELAXED); }
#else
CG_INLINE_ int cg_isa_load_(void) { return cg_isa_word_; }
CG_INLINE_ void cg_isa_save_(int isa) { cg_isa_word_ = isa; }
#endif

#if CG_AVX2_
static void cg_cpuid_(uint32_t leaf, uint32_t *out) {
    uint32_t a = leaf, b, c = 0, d;
#if defined(__i386__)                  /* ebx may hold the GOT pointer */
    __asm__ __volatile__("xchgl %%ebx, %1\n\tcpuid\n\txchgl %%ebx, %1" : "+a"(a), "=&r"(b), "+c"(c), "=d"(d));
#else
    __asm__ __volatile__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
#endif
    out[0] = a; out[1] = b; out[2] = c; out[3] = d;
}
static int cg_has_avx2_(void) {
    uint32_t r[4], lo, hi;
    cg_cpuid_(0, r);
    if (r[0] < 7) return 0;
    cg_cpuid_(1, r);                   /* popcnt, xsave, avx, f16c */
    if ((r[2] & 0x38800000u) != 0x38800000u) return 0;
    __asm__ __volatile__(".byte 0x0f, 0x01, 0xd0" : "=a"(lo), "=d"(hi) : "c"(0));    /* xgetbv: does the OS save ymm? */
    if ((lo & 6) != 6) return 0;
    cg_cpuid_(7, r);                   /* bmi1, avx2, bmi2 */
    return (r[1] & 0x128u) == 0x128u;
}
#endif
CG_API_ int cg_isa_found(cg_isa isa) {
    switch (isa) {
        case CG_ISA_AUTO: case CG_ISA_SCALAR: return 1;
#if CG_AVX2_
        case CG_ISA_AVX2: return cg_has_avx2_();
#endif
#if CG_NEON_
        case CG_ISA_NEON: return 1;
#endif
        default: return 0;
    }
}
CG_API_ cg_isa cg_isa_used(void) {
    int isa = cg_isa_load_();
    if (isa == CG_ISA_AUTO) {
        isa = cg_isa_found(CG_ISA_AVX2) ? CG_ISA_AVX2 : cg_isa_found(CG_ISA_NEON) ? CG_ISA_NEON : CG_ISA_SCALAR;
        cg_isa_save_(isa);
    }
    return (cg_isa)isa;
}
CG_API_ cg_status cg_isa_force(cg_isa isa) {
    if (!cg_isa_found(isa)) return CG_E_UNSUPPORTED;
    cg_isa_save_((int)isa);
    return CG_OK;
}
CG_API_ const char *cg_isa_name(cg_isa isa) {
    return isa == CG_ISA_AUTO ? "auto" : isa == CG_ISA_SCALAR ? "scalar" : isa == CG_ISA_AVX2 ? "avx2" : isa == CG_ISA_NEON ? "neon" : "?";
}
static const cg_kernels_ *cg_kernels_now_(void) {
    switch (cg_isa_used()) {
#if CG_AVX2_
        case CG_ISA_AVX2: return &cg_kernels_avx2_;
#endif
#if CG_NEON_
        case CG_ISA_NEON: return &cg_kernels_neon_;
#endif
        default: return &cg_kernels_scalar_;
    }
}

/* ---- >>stages: one row names a stage, its parameters and their ranges; parse, print and every check read it */

enum { CG_SLOT_SAMPLE_, CG_SLOT_TRANSFORM_, CG_SLOT_SELECT_, CG_SLOT_QUANTIZE_, CG_SLOT_CODE_, CG_SLOT_SPARE_, CG_SLOTS_ };
enum { CG_HAS_RATIO_ = 1, CG_HAS_VALUE_ = 2, CG_HAS_BITS_ = 4, CG_HAS_BUCKET_ = 8 };

typedef struct cg_stage_row_ {
    uint8_t slot, id;
    uint8_t has, flags;         /* CG_HAS_*_; which CG_FLAG_* may be set */
    const char *name, *flag;    /* as text */
} cg_stage_row_;

static const cg_stage_row_ cg_stage_rows_[] = {
    { CG_SLOT_SAMPLE_,   CG_SAMPLE_RANDK,     CG_HAS_RATIO_, CG_FLAG_UNSCALED,                 "randk",     "unscaled" },
    { CG_SLOT_SELECT_,   CG_SELECT_TOPK,      CG_HAS_RATIO_, 0,                                "topk",      "" },
    { CG_SLOT_SELECT_,   CG_SELECT_THRESHOLD, CG_HAS_VALUE_, 0,                                "threshold", "" },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_F16,     0, 0,                                            "f16",       "" },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_BF16,    0, 0,                                            "bf16",      "" },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_SIGN,    0, 0,                                            "sign",      "" },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_EFSIGN,  0, 0,                                            "efsign",    "" },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_ABSMAX,  CG_HAS_BITS_ | CG_HAS_BUCKET_, CG_FLAG_NEAREST,  "absmax",    "nearest" },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_MINMAX,  CG_HAS_BITS_ | CG_HAS_BUCKET_, CG_FLAG_NEAREST,  "minmax",    "nearest" },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_TERNARY, 0, CG_FLAG_NEAREST,                              "terngrad",  "nearest" },
    { CG_SLOT_CODE_,     CG_CODE_ELIAS_FANO,  0, 0,                                            "eliasfano", "" },
    { CG_SLOT_CODE_,     CG_CODE_BITMAP,      0, 0,                                            "bitmap",    "" },
};
#define CG_STAGE_ROWS_ (sizeof cg_stage_rows_ / sizeof cg_stage_rows_[0])

static const cg_stage *cg_slot_const_(const cg_op *op, unsigned slot) {
    const cg_stage *const slots[CG_SLOTS_] = { &op->sample, &op->transform, &op->select, &op->quantize, &op->code, &op->spare };
    return slots[slot];
}
static cg_stage *cg_slot_(cg_op *op, unsigned slot) { return (cg_stage *)(uintptr_t)cg_slot_const_(op, slot); }
static const cg_stage_row_ *cg_stage_row_of_(unsigned slot, unsigned id) {
    for (size_t i = 0; i < CG_STAGE_ROWS_; i++)
        if (cg_stage_rows_[i].slot == slot && cg_stage_rows_[i].id == id) return &cg_stage_rows_[i];
    return NULL;
}
static int cg_is_user_(const cg_stage *s) { return s->id >= CG_QUANTIZE_USER; }
static int cg_is_finite_(float f) { return (cg_bits_(f) & CG_MAGNITUDE_) < CG_NONFINITE_; }

/* CG_E_VERSION: a stage that this build does not know. CG_E_ARG: known, but parameters out of range. */
static cg_status cg_stage_check_(unsigned slot, const cg_stage *s) {
    const cg_stage_row_ *row;
    if (s->id == 0) return s->flags || s->arg || s->size || cg_bits_(s->value) ? CG_E_ARG : CG_OK;
    if (slot == CG_SLOT_QUANTIZE_ && cg_is_user_(s)) return s->flags || !cg_is_finite_(s->value) ? CG_E_ARG : CG_OK;
    row = cg_stage_row_of_(slot, s->id);
    if (!row || (s->flags & ~row->flags)) return CG_E_VERSION;
    if (row->has & CG_HAS_BITS_ ? s->arg < 1 || s->arg > 8 : s->arg != 0) return CG_E_ARG;
    if (row->has & CG_HAS_BUCKET_ ? s->size == 0 : s->size != 0) return CG_E_ARG;
    if (row->has & CG_HAS_RATIO_) return s->value > 0.0f && s->value <= 1.0f ? CG_OK : CG_E_ARG;
    if (row->has & CG_HAS_VALUE_) return cg_is_finite_(s->value) && s->value >= 0.0f ? CG_OK : CG_E_ARG;
    return cg_bits_(s->value) ? CG_E_ARG : CG_OK;
}
static cg_status cg_op_check_(const cg_op *op) {
    for (unsigned slot = 0; slot < CG_SLOTS_; slot++) {
        cg_status s = cg_stage_check_(slot, cg_slot_const_(op, slot));
        if (s != CG_OK) return s;
    }
    if (op->reserved) return CG_E_ARG;
    if (op->k && op->select.id != CG_SELECT_TOPK && op->sample.id != CG_SAMPLE_RANDK) return CG_E_ARG;
    return op->code.id && !op->select.id ? CG_E_ARG : CG_OK;      /* a code for indices where there are none */
}

/* ---- >>presets ------------------------------------------------------------------------------- */

static cg_op cg_op_of_(unsigned slot, int id, int arg, uint32_t size, float value) {
    cg_op op = CG_ZERO;
    cg_stage *s = cg_slot_(&op, slot);
    s->id = (uint8_t)id;
    s->arg = (uint16_t)(arg < 0 || arg > 65535 ? 65535 : arg);
    s->size = size;
    s->value = value;
    return op;
}
CG_API_ cg_op cg_dense(void)                           { return cg_op_of_(CG_SLOT_QUANTIZE_, 0, 0, 0, 0.0f); }
CG_API_ cg_op cg_f16(void)                             { return cg_op_of_(CG_SLOT_QUANTIZE_, CG_QUANTIZE_F16, 0, 0, 0.0f); }
CG_API_ cg_op cg_bf16(void)                            { return cg_op_of_(CG_SLOT_QUANTIZE_, CG_QUANTIZE_BF16, 0, 0, 0.0f); }
CG_API_ cg_op cg_absmax(int bits, uint32_t bucket)     { return cg_op_of_(CG_SLOT_QUANTIZE_, CG_QUANTIZE_ABSMAX, bits, bucket, 0.0f); }
CG_API_ cg_op cg_minmax(int bits, uint32_t bucket)     { return cg_op_of_(CG_SLOT_QUANTIZE_, CG_QUANTIZE_MINMAX, bits, bucket, 0.0f); }
CG_API_ cg_op cg_sign(void)                            { return cg_op_of_(CG_SLOT_QUANTIZE_, CG_QUANTIZE_SIGN, 0, 0, 0.0f); }
CG_API_ cg_op cg_efsign(void)                          { return cg_op_of_(CG_SLOT_QUANTIZE_, CG_QUANTIZE_EFSIGN, 0, 0, 0.0f); }
CG_API_ cg_op cg_terngrad(void)                        { return cg_op_of_(CG_SLOT_QUANTIZE_, CG_QUANTIZE_TERNARY, 0, 0, 0.0f); }
CG_API_ cg_op cg_topk(float ratio)                     { return cg_op_of_(CG_SLOT_SELECT_, CG_SELECT_TOPK, 0, 0, ratio); }
CG_API_ cg_op cg_threshold(float magnitude)            { return cg_op_of_(CG_SLOT_SELECT_, CG_SELECT_THRESHOLD, 0, 0, magnitude); }
CG_API_ cg_op cg_randk(float ratio)                    { return cg_op_of_(CG_SLOT_SAMPLE_, CG_SAMPLE_RANDK, 0, 0, ratio); }

static cg_op cg_op_invalid_(void) {                    /* the spare slot must be empty */
    cg_op op = CG_ZERO;
    op.spare.id = 255;
    return op;
}
CG_API_ cg_op cg_user(int id, int arg, uint32_t size, float value) {
    return id < CG_QUANTIZE_USER || id > 255 || arg < 0 || arg > 65535 ? cg_op_invalid_() : cg_op_of_(CG_SLOT_QUANTIZE_, id, arg, size, value);
}
CG_API_ cg_op cg_nearest(cg_op op)  { op.quantize.flags |= CG_FLAG_NEAREST; return op; }
CG_API_ cg_op cg_unscaled(cg_op op) { op.sample.flags |= CG_FLAG_UNSCALED; return op; }
CG_API_ cg_op cg_coded(cg_op op, cg_coding coding) { op.code.id = (uint8_t)((unsigned)coding > 255 ? 255 : coding); return op; }

CG_API_ cg_op cg_then(cg_op first, cg_op second) {
    for (unsigned slot = 0; slot < CG_SLOTS_; slot++) {
        cg_stage *a = cg_slot_(&first, slot);
        const cg_stage *b = cg_slot_const_(&second, slot);
        if ((a->id || a->flags) && b->id) return cg_op_invalid_();       /* twice, or cg_nearest() before there was what rounds */
        if (b->id) *a = *b;
    }
    if (first.k && second.k) return cg_op_invalid_();
    first.k |= second.k;
    first.reserved |= second.reserved;
    return first;
}

/* ---- >>text ---------------------------------------------------------------------------------- */

typedef struct cg_text_ { char *at, *end; } cg_text_;          /* at == end: full */

static void cg_text_char_(cg_text_ *t, char c) { if (t->at < t->end) *t->at++ = c; }
static void cg_text_str_(cg_text_ *t, const char *s) { while (*s) cg_text_char_(t, *s++); }
static void cg_text_uint_(cg_text_ *t, uint64_t v) {
    char digits[20];
    int count = 0;
    do { digits[count++] = (char)('0' + v % 10); v /= 10; } while (v);
    while (count) cg_text_char_(t, digits[--count]);
}
static double cg_power10_(int e) {
    double p = 1.0;
    while (e-- > 0) p *= 10.0;
    return p;
}
/* digits * 10^exponent as the nearest float, nearly always; print relies on no more than that it is fixed */
static float cg_decimal_(uint64_t digits, int exponent) {
    double d = (double)digits;
    if (!digits || exponent < -80) return 0.0f;
    if (exponent > 60) return CG_FLT_MAX_;
    d = exponent < 0 ? d / cg_power10_(-exponent) : d * cg_power10_(exponent);
    return d >= (double)CG_FLT_MAX_ ? CG_FLT_MAX_ : (float)d;
}
/* The shortest decimal that reads back as the same float. f >= 0 and finite. */
static void cg_text_float_(cg_text_ *t, float f) {
    uint64_t digits = 0;
    int exponent = 0, point;
    double d = (double)f;
    if (f > 0.0f) {
        while (d >= 1.0) { d /= 10.0; exponent++; }
        while (d < 0.1) { d *= 10.0; exponent--; }             /* d in [0.1, 1), f = d*10^exponent */
        for (int many = 1; many <= 17; many++) {
            digits = (uint64_t)(d * cg_power10_(many) + 0.5);
            if (cg_decimal_(digits, exponent - many) == f || many == 17) { exponent -= many; break; }
        }
    }
    for (; digits && digits % 10 == 0; digits /= 10) exponent++;
    for (point = 0; point < 9 && digits >= (uint64_t)cg_power10_(point + 1); point++) {}   /* digits before the last */
    if (exponent >= 0 && exponent + point <= 8) {
        cg_text_uint_(t, digits * (uint64_t)cg_power10_(exponent));
    } else if (exponent < 0 && exponent >= -9) {
        uint64_t unit = (uint64_t)cg_power10_(-exponent);
        cg_text_uint_(t, digits / unit);
        cg_text_char_(t, '.');
        for (digits %= unit, unit /= 10; unit; digits %= unit, unit /= 10) cg_text_char_(t, (char)('0' + digits / unit));
    } else {
        cg_text_uint_(t, digits);
        cg_text_char_(t, 'e');
        if (exponent < 0) cg_text_char_(t, '-');
        cg_text_uint_(t, (uint64_t)(exponent < 0 ? -exponent : exponent));
    }
}

static void cg_text_stage_(cg_text_ *t, const cg_op *op, unsigned slot) {
    const cg_stage *s = cg_slot_const_(op, slot);
    const cg_stage_row_ *row = cg_stage_row_of_(slot, s->id);
    int counted = op->k && slot == (op->select.id == CG_SELECT_TOPK ? CG_SLOT_SELECT_ : CG_SLOT_SAMPLE_);
    if (!row) {
        cg_text_str_(t, "user:");
        cg_text_uint_(t, s->id);
        cg_text_char_(t, ':');
        cg_text_uint_(t, s->arg);
        cg_text_char_(t, ':');
        cg_text_uint_(t, s->size);
        cg_text_char_(t, ':');
        if (s->value < 0.0f) cg_text_char_(t, '-');
        cg_text_float_(t, s->value < 0.0f ? -s->value : s->value);
        return;
    }
    cg_text_str_(t, row->name);
    if (row->has & CG_HAS_BITS_) { cg_text_char_(t, ':'); cg_text_uint_(t, s->arg); }
    if (row->has & CG_HAS_BUCKET_) { cg_text_char_(t, ':'); cg_text_uint_(t, s->size); }
    if (row->has & CG_HAS_RATIO_ && counted) { cg_text_str_(t, ":k="); cg_text_uint_(t, op->k); }
    else if (row->has & (CG_HAS_RATIO_ | CG_HAS_VALUE_)) { cg_text_char_(t, ':'); cg_text_float_(t, s->value); }
    if (s->flags) { cg_text_char_(t, ':'); cg_text_str_(t, row->flag); }
}
static cg_status cg_op_print_(const cg_op *op, char *text, size_t cap) {
    cg_text_ t;
    int first = 1;
    if (!op || !text) return CG_E_ARG;
    if (cap) text[0] = 0;
    if (cg_op_check_(op) != CG_OK) return CG_E_ARG;
    t.at = text;
    t.end = text + cap;
    for (unsigned slot = 0; slot < CG_SLOTS_; slot++) {
        if (!cg_slot_const_(op, slot)->id) continue;
        if (!first) cg_text_char_(&t, '|');
        first = 0;
        cg_text_stage_(&t, op, slot);
    }
    if (first) cg_text_str_(&t, "dense");
    if (t.at == t.end) { if (cap) text[0] = 0; return CG_E_CAPACITY; }
    *t.at = 0;
    return CG_OK;
}

CG_API_ cg_status cg_op_print(const cg_op *op, char *text, size_t cap) {
    cg_env_ env = cg_env_enter_();
    cg_status s = cg_op_print_(op, text, cap);
    cg_env_leave_(env);
    return s;
}

/* Parsing: each takes what it wants from *text and says whether it was there. */
static int cg_take_(const char **text, const char *word) {
    const char *p = *text;
    while (*word) if (*p++ != *word++) return 0;
    *text = p;
    return 1;
}
static int cg_take_name_(const char **text, const char *name) {
    const char *p = *text;
    if (!cg_take_(&p, name) || (*p && *p != ':' && *p != '|')) return 0;
    *text = p;
    return 1;
}
static int cg_take_uint_(const char **text, uint64_t limit, uint64_t *v) {
    const char *p = *text;
    uint64_t r = 0;
    for (; *p >= '0' && *p <= '9'; p++) {
        uint64_t digit = (uint64_t)(*p - '0');
        if (r > (limit - digit) / 10) return 0;
        r = r * 10 + digit;
    }
    if (p == *text) return 0;
    *text = p;
    *v = r;
    return 1;
}
static int cg_take_float_(const char **text, float *f) {
    const char *p = *text;
    uint64_t digits = 0, e = 0;
    int exponent = 0, any = 0, point = 0, minus = 0;
    for (;; p++) {
        if (*p == '.' && !point) { point = 1; continue; }
        if (*p < '0' || *p > '9') break;
        any = 1;
        if (digits < 100000000000000000u) { digits = digits * 10 + (uint64_t)(*p - '0'); exponent -= point; }
        else exponent += !point;
        if (exponent > 100000) exponent = 100000;
    }
    if (!any) return 0;
    if (*p == 'e' || *p == 'E') {
        p++;
        minus = *p == '-';
        if (*p == '-' || *p == '+') p++;
        if (!cg_take_uint_(&p, 100000, &e)) return 0;
        exponent += minus ? -(int)e : (int)e;
    }
    *text = p;
    *f = cg_decimal_(digits, exponent);
    return *f < CG_FLT_MAX_ || cg_decimal_(digits, exponent - 1) < CG_FLT_MAX_ / 9.9f;    /* not beyond the range */
}
static int cg_take_user_(const char **text, cg_op *op) {
    uint64_t id, arg, size;
    float value, sign;
    if (!cg_take_uint_(text, 255, &id) || !cg_take_(text, ":") || !cg_take_uint_(text, 65535, &arg) || !cg_take_(text, ":") ||
        !cg_take_uint_(text, 0xffffffffu, &size) || !cg_take_(text, ":")) return 0;
    sign = cg_take_(text, "-") ? -1.0f : 1.0f;
    if (!cg_take_float_(text, &value)) return 0;
    *op = cg_user((int)id, (int)arg, (uint32_t)size, sign * value);
    return 1;
}
static int cg_take_stage_(const char **text, cg_op *op) {
    const cg_stage_row_ *row = NULL;
    cg_stage s = CG_ZERO;
    uint64_t v;
    *op = cg_dense();
    if (cg_take_name_(text, "dense")) return 1;
    if (cg_take_(text, "user:")) return cg_take_user_(text, op);
    for (size_t i = 0; i < CG_STAGE_ROWS_ && !row; i++)
        if (cg_take_name_(text, cg_stage_rows_[i].name)) row = &cg_stage_rows_[i];
    if (!row) return 0;
    s.id = row->id;
    if (row->has & CG_HAS_BITS_) { if (!cg_take_(text, ":") || !cg_take_uint_(text, 65535, &v)) return 0; s.arg = (uint16_t)v; }
    if (row->has & CG_HAS_BUCKET_) { if (!cg_take_(text, ":") || !cg_take_uint_(text, 0xffffffffu, &v)) return 0; s.size = (uint32_t)v; }
    if (row->has & CG_HAS_RATIO_ && cg_take_(text, ":k=")) {
        if (!cg_take_uint_(text, CG_TOO_LARGE_, &op->k) || !op->k) return 0;
        s.value = 1.0f;                                        /* any legal ratio; k decides */
    } else if (row->has & (CG_HAS_RATIO_ | CG_HAS_VALUE_)) {
        if (!cg_take_(text, ":") || !cg_take_float_(text, &s.value)) return 0;
    }
    if (row->flags && cg_take_(text, ":")) { if (!cg_take_(text, row->flag)) return 0; s.flags = row->flags; }
    *cg_slot_(op, row->slot) = s;
    return 1;
}
static cg_status cg_op_parse_(cg_op *op, const char *text) {
    cg_op all = CG_ZERO, one;
    int more;
    if (!op) return CG_E_ARG;
    *op = all;
    if (!text) return CG_E_ARG;
    do {
        if (!cg_take_stage_(&text, &one)) return CG_E_ARG;
        all = cg_then(all, one);
        more = cg_take_(&text, "|");
    } while (more);
    if (*text || cg_op_check_(&all) != CG_OK) return CG_E_ARG;
    *op = all;
    return CG_OK;
}
CG_API_ cg_status cg_op_parse(cg_op *op, const char *text) {
    cg_env_ env = cg_env_enter_();
    cg_status s = cg_op_parse_(op, text);
    cg_env_leave_(env);
    return s;
}

/* ---- >>packet: header and checksum ----------------------------------------------------------- */

static cg_sum_ cg_sum_join_(cg_sum_ s, cg_sum_ t) {            /* of s followed by t */
    s.b += t.words * s.a + t.b;
    s.a += t.a;
    s.words += t.words;
    return s;
}
static cg_sum_ cg_sum_of_(const cg_kernels_ *kernels, const uint8_t *p, size_t bytes) {
    cg_sum_ s = { 0, 0, 0 };
    kernels->sum(&s, p, bytes / 4);
    return s;
}

#define CG_CHECKSUM_AT_ (CG_HEADER_BYTES - 16)
static const uint8_t cg_magic_[5] = { 'c', 'g', 'p', 'k', 1 };

static void cg_header_put_(uint8_t *p, const cg_info *info) {
    memset(p, 0, CG_HEADER_BYTES);
    memcpy(p, cg_magic_, 5);
    p[5] = (uint8_t)info->index_code;
    for (unsigned slot = 0; slot < CG_SLOTS_; slot++) {
        const cg_stage *s = cg_slot_const_(&info->op, slot);
        uint8_t *q = p + 8 + 12 * slot;
        q[0] = s->id;
        q[1] = s->flags;
        cg_put16_(q + 2, s->arg);
        cg_put32_(q + 4, s->size);
        cg_put32_(q + 8, cg_bits_(s->value));
    }
    cg_put64_(p + 80, info->n);
    cg_put64_(p + 88, info->drawn);
    cg_put64_(p + 96, info->k);
    cg_put64_(p + 104, info->tag.seed);
    cg_put64_(p + 112, info->tag.step);
    cg_put32_(p + 120, info->tag.tensor);
    cg_put32_(p + 124, info->tag.rank);
    cg_put64_(p + 128, info->value_bytes);
    cg_put64_(p + 136, info->index_bytes);
    cg_put32_(p + 144, cg_bits_(info->threshold));
}

/* k = clamp(floor(ratio*n + 0.5), 1, n), or the count asked for */
static uint64_t cg_count_(float ratio, uint64_t asked, uint64_t n) {
    double want = (double)ratio * (double)n;
    uint64_t k;
    CG_FENCE_(want);
    want += 0.5;
    k = asked ? asked : want >= (double)n ? n : (uint64_t)want;
    return n == 0 ? 0 : k < 1 ? 1 : k > n ? n : k;
}
static uint64_t cg_drawn_(const cg_op *op, uint64_t n) {       /* what the sample leaves */
    if (!op->sample.id) return n;
    return cg_count_(op->sample.value, op->select.id == CG_SELECT_TOPK ? 0 : op->k, n);
}

/* Indices: Elias-Fano with l low bits each, or a bitmap. */
static unsigned cg_low_bits_(uint64_t drawn, uint64_t k) { return k && drawn / k ? cg_log2_(drawn / k) : 0; }
static uint64_t cg_low_bytes_(uint64_t drawn, uint64_t k) { return cg_words_(cg_mul_(k, cg_low_bits_(drawn, k))); }
static uint64_t cg_high_bits_(uint64_t drawn, uint64_t k) { return k ? cg_add_(k, ((drawn - 1) >> cg_low_bits_(drawn, k)) + 1) : 0; }
static uint64_t cg_index_bytes_(uint32_t code, uint64_t drawn, uint64_t k) {
    if (code == CG_CODE_AUTO || k == 0) return 0;
    if (code == CG_CODE_BITMAP) return cg_words_(drawn);
    return cg_add_(cg_low_bytes_(drawn, k), cg_words_(cg_high_bits_(drawn, k)));
}
static uint32_t cg_index_code_(const cg_op *op, uint64_t drawn, uint64_t k) {
    if (!op->select.id) return CG_CODE_AUTO;                   /* none */
    if (k == 0) return CG_CODE_ELIAS_FANO;
    if (op->code.id) return op->code.id;
    return cg_index_bytes_(CG_CODE_BITMAP, drawn, k) < cg_index_bytes_(CG_CODE_ELIAS_FANO, drawn, k) ? CG_CODE_BITMAP : CG_CODE_ELIAS_FANO;
}

static cg_status cg_header_get_(const uint8_t *p, size_t len, cg_info *info) {
    cg_status s;
    uint64_t value_bytes, index_bytes;
    cg_info zero = CG_ZERO;
    *info = zero;
    if (len < CG_HEADER_BYTES) return CG_E_CORRUPT;
    for (int i = 0; i < 4; i++) if (p[i] != cg_magic_[i]) return CG_E_CORRUPT;
    if (p[4] != cg_magic_[4]) return CG_E_VERSION;
    info->index_code = p[5];
    for (unsigned slot = 0; slot < CG_SLOTS_; slot++) {
        cg_stage *stage = cg_slot_(&info->op, slot);
        const uint8_t *q = p + 8 + 12 * slot;
        stage->id = q[0];
        stage->flags = q[1];
        stage->arg = cg_get16_(q + 2);
        stage->size = cg_get32_(q + 4);
        stage->value = cg_float_(cg_get32_(q + 8));
    }
    s = cg_op_check_(&info->op);
    if (s != CG_OK) return s == CG_E_ARG ? CG_E_CORRUPT : s;
    info->n = cg_get64_(p + 80);
    info->drawn = cg_get64_(p + 88);
    info->k = cg_get64_(p + 96);
    info->tag.seed = cg_get64_(p + 104);
    info->tag.step = cg_get64_(p + 112);
    info->tag.tensor = cg_get32_(p + 120);
    info->tag.rank = cg_get32_(p + 124);
    value_bytes = cg_get64_(p + 128);
    index_bytes = cg_get64_(p + 136);
    info->threshold = cg_float_(cg_get32_(p + 144));
    if (cg_get16_(p + 6) || cg_get32_(p + 148)) return CG_E_CORRUPT;
    if (!cg_is_finite_(info->threshold) || cg_bits_(info->threshold) >> 31) return CG_E_CORRUPT;
    if (info->op.select.id != CG_SELECT_TOPK && cg_bits_(info->threshold)) return CG_E_CORRUPT;
    /* n, drawn and k must be what the stages can leave; the counts may have been asked for (op.k) */
    if (info->op.sample.id ? info->drawn > info->n || (info->n && !info->drawn) : info->drawn != info->n) return CG_E_CORRUPT;
    if (info->op.select.id ? info->k > info->drawn || (info->op.select.id == CG_SELECT_TOPK && info->drawn && !info->k)
                           : info->k != info->drawn) return CG_E_CORRUPT;
    if (info->op.select.id == CG_SELECT_TOPK) {
        if (info->drawn != cg_drawn_(&info->op, info->n)) return CG_E_CORRUPT;
        if (info->k != cg_count_(info->op.select.value, 0, info->drawn)) info->op.k = info->k;
    } else if (info->op.sample.id && info->drawn != cg_count_(info->op.sample.value, 0, info->n)) {
        info->op.k = info->drawn;
    }
    if (info->index_code != cg_index_code_(&info->op, info->drawn, info->k)) return CG_E_CORRUPT;
    if (index_bytes != cg_index_bytes_(info->index_code, info->drawn, info->k)) return CG_E_CORRUPT;
    if (value_bytes % 4 || cg_add_(cg_add_(value_bytes, index_bytes), CG_HEADER_BYTES) > SIZE_MAX / 2) return CG_E_CORRUPT;
    info->value_bytes = (size_t)value_bytes;
    info->index_bytes = (size_t)index_bytes;
    info->packet_bytes = CG_HEADER_BYTES + info->value_bytes + info->index_bytes;
    return CG_OK;
}

/* ---- >>quantizers: a row each -------------------------------------------------------------------
   know: what must be known of a bucket before its values can be coded. The loop (cg_encode_block_) does
   the rest: blocks, chunks, buckets, the finite check, packing and the checksum. */

enum { CG_KNOW_NOTHING_, CG_KNOW_BUCKET_, CG_KNOW_LATE_ };

typedef struct cg_stat_ { uint32_t top; float lo, hi; } cg_stat_;

typedef struct cg_quantizer_ {
    uint8_t id, know;
    uint8_t scales;                    /* floats stored per bucket */
    uint8_t bits;                      /* per value; 0: the stage's arg */
    uint8_t bytewise;                  /* 1: encode leaves a byte per value, for packing; 0: wire-ready bits */
    void (*measure)(const cg_kernels_ *kernels, const float *v, size_t n, cg_stat_ *stat);
    void (*settle)(const cg_stat_ *stat, float *scales);
    int (*legal)(const float *scales);           /* are these scales that an encoder can have stored? */
    uint32_t (*encode)(const cg_kernels_ *kernels, const cg_stage *stage, const float *scales, cg_key_ key, uint32_t position,
                       const float *v, size_t n, uint8_t *out, double *lanes);
    void (*decode)(const cg_kernels_ *kernels, const cg_stage *stage, const float *scales, const uint8_t *in, size_t n,
                   float *out, int stream);
    uint32_t (*top)(const cg_kernels_ *kernels, const uint8_t *in, size_t n);   /* stored values: Inf or NaN if >= limit */
    uint32_t limit;
} cg_quantizer_;

/* Grids. Tiny magnitudes are scaled up so that neither the step nor its inverse leaves the normal range, huge ones
   down so that a range cannot overflow; both by powers of two, which lose nothing that counts. */
static cg_levels_ cg_levels_make_(const cg_stage *stage, const float *scales) {
    cg_levels_ q;
    int ternary = stage->id == CG_QUANTIZE_TERNARY, bits = ternary ? 2 : stage->arg;
    int symmetric = stage->id != CG_QUANTIZE_MINMAX;
    float lo = symmetric ? -scales[0] : scales[0], hi = symmetric ? scales[0] : scales[1];
    uint32_t top = cg_max32_(cg_bits_(lo) & CG_MAGNITUDE_, cg_bits_(hi) & CG_MAGNITUDE_);
    q.prescale = top >= 0x7e800000u ? 0.5f : top < 0x17800000u ? 1.2676506002282294e30f : 1.0f;    /* 2^126, 2^-80, 2^100 */
    q.post = top >= 0x7e800000u ? 2.0f : top < 0x17800000u ? 7.888609052210118e-31f : 1.0f;
    q.stochastic = !(stage->flags & CG_FLAG_NEAREST);
    q.inv = 0.0f;
    lo *= q.prescale;
    hi *= q.prescale;
    if (symmetric && bits > 1) {
        q.bias = (1 << (bits - 1)) - 1;
        q.top = 2 * q.bias;
        q.sub = q.base = 0.0f;
        q.span = hi;
        q.step = hi / (float)q.bias;
    } else {
        float range = hi - lo;
        q.bias = 0;
        q.top = (1 << bits) - 1;
        q.sub = q.base = lo;
        q.span = range;
        q.step = range / (float)q.top;
    }
    return q;
}
static void cg_measure_top_(const cg_kernels_ *kernels, const float *v, size_t n, cg_stat_ *stat) {
    stat->top = cg_max32_(stat->top, kernels->top(v, n));
}
static void cg_measure_range_(const cg_kernels_ *kernels, const float *v, size_t n, cg_stat_ *stat) {
    stat->top = cg_max32_(stat->top, kernels->range(v, n, &stat->lo, &stat->hi));
}
static void cg_settle_top_(const cg_stat_ *stat, float *scales) { scales[0] = cg_float_(stat->top); }
static float cg_plus_zero_(float v) { return cg_float_(cg_bits_(v) & CG_MAGNITUDE_ ? cg_bits_(v) : 0u); }     /* for -0 */
static void cg_settle_range_(const cg_stat_ *stat, float *scales) {      /* which zero came first must not matter */
    scales[0] = cg_plus_zero_(stat->lo);
    scales[1] = cg_plus_zero_(stat->hi);
}
static int cg_legal_magnitude_(const float *scales) { return cg_bits_(scales[0]) < CG_NONFINITE_; }
static int cg_legal_range_(const float *scales) {
    return cg_is_finite_(scales[0]) && cg_is_finite_(scales[1]) && scales[0] <= scales[1];
}
static uint32_t cg_encode_levels_(const cg_kernels_ *kernels, const cg_stage *stage, const float *scales, cg_key_ key, uint32_t position,
                                  const float *v, size_t n, uint8_t *out, double *lanes) {
    cg_levels_ q = cg_levels_make_(stage, scales);
    (void)lanes;
    if (q.span > 0.0f) q.inv = (float)(q.bias ? q.bias : q.top) / q.span;
    kernels->levels(&q, key, position, v, n, out);
    return 0;                                        /* measured before */
}
static void cg_decode_levels_(const cg_kernels_ *kernels, const cg_stage *stage, const float *scales, const uint8_t *in, size_t n, float *out,
                              int stream) {
    cg_levels_ q = cg_levels_make_(stage, scales);
    kernels->unlevels(&q, in, n, out, stream);
}

#define CG_PLAIN_(name, kernel)                                                                                                 \
    static uint32_t name(const cg_kernels_ *kernels, const cg_stage *stage, const float *scales, cg_key_ key, uint32_t position, \
                         const float *v, size_t n, uint8_t *out, double *lanes) {                                               \
        (void)stage; (void)scales; (void)key; (void)position; (void)lanes;                                                      \
        return kernels->kernel;                                                                                                 \
    }
CG_PLAIN_(cg_encode_f32_, copy(v, n, out))
CG_PLAIN_(cg_encode_f16_, half(v, n, out))
CG_PLAIN_(cg_encode_bf16_, brain(v, n, out))
CG_PLAIN_(cg_encode_sign_, sign(v, n, out, NULL))
CG_PLAIN_(cg_encode_efsign_, sign(v, n, out, lanes))
#undef CG_PLAIN_

#define CG_PLAIN_(name, statement)                                                                                              \
    static void name(const cg_kernels_ *kernels, const cg_stage *stage, const float *scales, const uint8_t *in, size_t n, float *out, \
                     int stream) {                                                                                              \
        (void)kernels; (void)stage; (void)scales; (void)stream;                                                                               \
        statement;                                                                                                              \
    }
CG_PLAIN_(cg_decode_f32_, for (size_t i = 0; i < n; i++) cg_store_(out, i, cg_float_(cg_get32_(in + 4 * i))))
CG_PLAIN_(cg_decode_f16_, kernels->unhalf(in, n, out, stream))
CG_PLAIN_(cg_decode_bf16_, kernels->unbrain(in, n, out, stream))
CG_PLAIN_(cg_decode_sign_, kernels->unsign(in, n, 1.0f, out, stream))
CG_PLAIN_(cg_decode_efsign_, kernels->unsign(in, n, scales[0], out, stream))
#undef CG_PLAIN_

static uint32_t cg_top_f32_(const cg_kernels_ *kernels, const uint8_t *in, size_t n) {
#if CG_BIG_ENDIAN_
    uint32_t top = 0;
    (void)kernels;
    for (size_t i = 0; i < n; i++) top = cg_max32_(top, cg_get32_(in + 4 * i) & CG_MAGNITUDE_);
    return top;
#else
    return kernels->top((const float *)(const void *)in, n);
#endif
}
static uint32_t cg_top_16_(const cg_kernels_ *kernels, const uint8_t *in, size_t n) { return kernels->top16(in, n); }

static const cg_quantizer_ cg_quantizers_[] = {
    { 0, CG_KNOW_NOTHING_, 0, 32, 0, NULL, NULL, NULL, cg_encode_f32_, cg_decode_f32_, cg_top_f32_, CG_NONFINITE_ },
    { CG_QUANTIZE_F16, CG_KNOW_NOTHING_, 0, 16, 0, NULL, NULL, NULL, cg_encode_f16_, cg_decode_f16_, cg_top_16_, 0x7c00 },
    { CG_QUANTIZE_BF16, CG_KNOW_NOTHING_, 0, 16, 0, NULL, NULL, NULL, cg_encode_bf16_, cg_decode_bf16_, cg_top_16_, 0x7f80 },
    { CG_QUANTIZE_SIGN, CG_KNOW_NOTHING_, 0, 1, 0, NULL, NULL, NULL, cg_encode_sign_, cg_decode_sign_, NULL, 0 },
    { CG_QUANTIZE_EFSIGN, CG_KNOW_LATE_, 1, 1, 0, NULL, NULL, cg_legal_magnitude_, cg_encode_efsign_, cg_decode_efsign_, NULL, 0 },
    { CG_QUANTIZE_ABSMAX, CG_KNOW_BUCKET_, 1, 0, 1, cg_measure_top_, cg_settle_top_, cg_legal_magnitude_, cg_encode_levels_, cg_decode_levels_, NULL, 0 },
    { CG_QUANTIZE_TERNARY, CG_KNOW_BUCKET_, 1, 2, 1, cg_measure_top_, cg_settle_top_, cg_legal_magnitude_, cg_encode_levels_, cg_decode_levels_, NULL, 0 },
    { CG_QUANTIZE_MINMAX, CG_KNOW_BUCKET_, 2, 0, 1, cg_measure_range_, cg_settle_range_, cg_legal_range_, cg_encode_levels_, cg_decode_levels_, NULL, 0 },
};

/* What a quantizer writes for k values. */
typedef struct cg_layout_ {
    const cg_quantizer_ *row;          /* NULL: a codec of the user's */
    const cg_codec *codec;
    unsigned bits;
    uint64_t k, bucket, scale_bytes, code_bytes;
} cg_layout_;

static cg_status cg_side_check_(const cg_side *side) {
    if (side && (side->aux || side->scale || side->support || side->support_len)) return CG_E_UNSUPPORTED;
    return side && (side->flags & ~(uint32_t)CG_DECODE_DIRECT) ? CG_E_ARG : CG_OK;
}
static cg_status cg_layout_make_(const cg_op *op, const cg_side *side, uint64_t k, cg_layout_ *lay) {
    const cg_stage *q = &op->quantize;
    memset(lay, 0, sizeof *lay);
    lay->k = k;
    if (cg_is_user_(q)) {
        for (size_t i = 0; side && side->codecs && i < side->codec_count; i++)
            if (side->codecs[i] && side->codecs[i]->id == q->id) lay->codec = side->codecs[i];
        return lay->codec ? CG_OK : CG_E_VERSION;
    }
    for (size_t i = 0; i < sizeof cg_quantizers_ / sizeof cg_quantizers_[0]; i++)
        if (cg_quantizers_[i].id == q->id) lay->row = &cg_quantizers_[i];
    if (!lay->row) return CG_E_VERSION;
    lay->bits = lay->row->bits ? lay->row->bits : q->arg;
    lay->bucket = q->size && q->size < k ? q->size : k ? k : 1;      /* no size: one bucket */
    lay->scale_bytes = cg_mul_(k / lay->bucket + (k % lay->bucket != 0), 4u * lay->row->scales);
    lay->code_bytes = cg_words_(cg_mul_(k, lay->bits));
    return CG_OK;
}

/* ---- >>sample: which coordinates random-k draws, one from each of k strata --------------------- */

static uint64_t cg_stratum_(uint64_t n, uint64_t k, uint64_t j) {    /* floor(j*n/k), j <= k */
    uint64_t r, q, rest = 0;
    if ((n | j) >> 32 == 0) return j * n / k;
    q = n / k;
    r = n % k;
    for (uint64_t bit = (uint64_t)1 << 63, part = 0; bit; bit >>= 1) {       /* j*r/k bit by bit; part < k throughout */
        rest <<= 1;
        if (part >= k - part) { part -= k - part; rest++; } else part += part;
        if (j & bit) { if (part >= k - r) { part -= k - r; rest++; } else part += r; }
    }
    return j * q + rest;
}
static uint64_t cg_high_product_(uint64_t a, uint64_t b) {           /* upper half of a*b */
    uint64_t al = a & 0xffffffffu, ah = a >> 32, bl = b & 0xffffffffu, bh = b >> 32;
    uint64_t mid = ah * bl + (al * bl >> 32), mid2 = al * bh + (mid & 0xffffffffu);
    return ah * bh + (mid >> 32) + (mid2 >> 32);
}
/* Stratum after stratum: [start, start + length) is the j-th, rest = j*n mod k. */
typedef struct cg_strata_ {
    uint64_t n, k, each, extra;        /* n = each*k + extra */
    uint64_t j, start, rest, length;
    uint64_t key;
    cg_key_ block;
} cg_strata_;

static void cg_strata_seek_(cg_strata_ *s, uint64_t j) {
    s->j = j;
    s->start = cg_stratum_(s->n, s->k, j);
    s->rest = j * s->n - s->start * s->k;            /* less than k, so wrapping does no harm */
    s->length = s->each + (s->extra >= s->k - s->rest);
    s->block = cg_block_key_(s->key, j >> 16);
}
static void cg_strata_open_(cg_strata_ *s, uint64_t n, uint64_t k, uint64_t key, uint64_t j) {
    s->n = n;
    s->k = k;
    s->each = n / k;
    s->extra = n % k;
    s->key = key;
    cg_strata_seek_(s, j);
}
CG_INLINE_ void cg_strata_next_(cg_strata_ *s) {
    s->start += s->length;
    s->rest = s->extra >= s->k - s->rest ? s->rest - (s->k - s->extra) : s->rest + s->extra;
    s->length = s->each + (s->extra >= s->k - s->rest);
    if ((++s->j & 0xffff) == 0) s->block = cg_block_key_(s->key, s->j >> 16);
}
/* Which coordinate of the stratum is drawn. */
CG_INLINE_ uint64_t cg_draw_(const cg_strata_ *s) {
    uint32_t c = (uint32_t)(s->j & 0xffff), h = cg_hash32_(s->block, c);
    cg_key_ swapped;
    if (CG_LIKELY_(s->length >> 32 == 0)) return s->start + ((uint64_t)h * s->length >> 32);
    swapped.a = s->block.b;
    swapped.b = s->block.a;
    return s->start + cg_high_product_((uint64_t)h << 32 | cg_hash32_(swapped, c), s->length);
}

/* ---- >>source: the values that a stage sees, as a dense vector, piece by piece ------------------ */

typedef struct cg_source_ {
    const float *x;              /* the values themselves; or, drawn, where to draw them from */
    uint64_t n, count;           /* count values, drawn from n if drawn is set */
    uint64_t key;
    int drawn, scaled;
} cg_source_;

/* At most CG_CHUNK_ values from `first` on: in place, or gathered into buf. */
static const float *cg_fetch_(const cg_source_ *src, size_t first, size_t count, float *buf) {
    size_t at[64];
    cg_strata_ strata;
    if (!src->drawn) return cg_at_(src->x, first);
    cg_strata_open_(&strata, src->n, src->count, src->key, first);
    for (size_t i = 0; i < count; i += 64) {         /* ask for 64 cache lines before waiting for the first */
        size_t many = cg_min_(64, count - i);
        for (size_t j = 0; j < many; j++, cg_strata_next_(&strata)) {
            at[j] = (size_t)cg_draw_(&strata);
            CG_PREFETCH_(cg_at_(src->x, at[j]));
            buf[i + j] = src->scaled ? (float)strata.length : 1.0f;
        }
        for (size_t j = 0; j < many; j++) {
            float f = cg_load_(src->x, at[j]);
            buf[i + j] = cg_is_finite_(f) ? cg_saturate_(cg_times_(f, buf[i + j])) : f;
        }
    }
    return buf;
}

/* ---- >>select: (index, value) lists in scratch -------------------------------------------------- */

typedef struct cg_list_ {
    uint32_t *low;               /* index modulo 2^32, ascending */
    float *value;
    uint64_t *segment;           /* segment[s]: how many entries have an index below s*2^32 */
    uint64_t segments;
    size_t count, room;
    float *gathered;             /* the sample, where a selection follows it */
} cg_list_;

static size_t cg_list_room_(const cg_op *op, uint64_t drawn) {
    uint64_t k = cg_count_(op->select.value, op->k, drawn), room = drawn;
    if (op->select.id == CG_SELECT_TOPK) room = cg_add_(cg_mul_(k, 2), CG_BLOCK_);
    return (size_t)(room < drawn ? room : drawn);
}
static uint64_t cg_list_slots_(uint64_t room, uint64_t drawn) {     /* a chunk may overshoot the room before it is seen */
    return cg_add_(room, room < drawn ? CG_CHUNK_ + CG_SLACK_ : CG_SLACK_);
}
static uint64_t cg_scratch_bytes_(const cg_op *op, uint64_t n) {
    uint64_t drawn = cg_drawn_(op, n), bytes = 0;
    if (op->select.id) {
        bytes = cg_mul_(8, cg_list_slots_(cg_list_room_(op, drawn), drawn));
        bytes = cg_add_(bytes, 8 * ((drawn >> 32) + 2));
    }
    if (op->sample.id && (op->select.id || cg_is_user_(&op->quantize))) bytes = cg_add_(bytes, cg_mul_(4, drawn));
    return bytes ? cg_add_(bytes, 64) : 0;
}
static void cg_list_place_(cg_list_ *list, const cg_op *op, uint64_t drawn, void *scratch) {
    uint8_t *p;
    memset(list, 0, sizeof *list);
    if (!scratch) return;
    p = (uint8_t *)scratch + (64 - ((uintptr_t)scratch & 63)) % 64;
    if (op->select.id) {
        size_t slots;
        list->room = cg_list_room_(op, drawn);
        list->segments = drawn ? ((drawn - 1) >> 32) + 1 : 1;
        slots = (size_t)cg_list_slots_(list->room, drawn);
        list->segment = (uint64_t *)(void *)p;
        p += 8 * (size_t)(list->segments + 1);
        list->low = (uint32_t *)(void *)p;
        p += 4 * slots;
        list->value = (float *)(void *)p;
        p += 4 * slots;
    }
    list->gathered = (float *)(void *)p;
}

/* The rank-th largest magnitude (rank from 1) among those in [lo, hi]: 2048 bins at a time, until few are left to
   sort. rank becomes its rank among its equals. */
static uint32_t cg_kth_(const float *v, size_t n, size_t *rank, uint32_t lo, uint32_t hi) {
    enum { FEW = 64 };
    size_t bins[2048];
    uint32_t few[FEW];
    for (;;) {
        uint32_t width = hi - lo, shift = width >> 11 ? cg_log2_(width) - 10 : 0, bin = width >> shift;
        size_t count = 0;
        memset(bins, 0, sizeof bins[0] * (bin + 1));
        for (size_t i = 0; i < n; i++) {
            uint32_t m = (cg_bits_(v[i]) & CG_MAGNITUDE_) - lo;
            if (m <= width) bins[m >> shift]++;
        }
        for (; bin > 0 && bins[bin] < *rank; bin--) *rank -= bins[bin];
        lo += bin << shift;
        if (hi - lo >= 1u << shift) hi = lo + ((1u << shift) - 1u);
        if (lo == hi) return lo;
        if (bins[bin] > FEW) continue;
        for (size_t i = 0; i < n; i++) {             /* insertion sort, largest first */
            uint32_t m = cg_bits_(v[i]) & CG_MAGNITUDE_;
            if (m - lo <= hi - lo) {
                size_t j = count++;
                for (; j > 0 && few[j - 1] < m; j--) few[j] = few[j - 1];
                few[j] = m;
            }
        }
        lo = few[*rank - 1];
        for (count = 0; few[count] != lo; count++) {}
        *rank -= count;                              /* those above it */
        return lo;
    }
}
/* Moves entries [from, to) down to *kept on: those above the key, and of its equals as many as are left to take. */
static void cg_list_cut_(cg_list_ *list, size_t from, size_t to, size_t *kept, uint32_t key, size_t *left) {
    size_t k = *kept, l = *left;
    for (size_t i = from; i < to; i++) {
        uint32_t m = cg_bits_(list->value[i]) & CG_MAGNITUDE_;
        size_t equal = m == key, take = (m > key) | (equal & (l > 0));
        list->low[k] = list->low[i];
        list->value[k] = list->value[i];
        l -= equal & take;
        k += take;
    }
    *kept = k;
    *left = l;
}

/* All whose magnitude reaches `bound`. 0: did not fit. */
static int cg_filter_all_(const cg_kernels_ *kernels, const float *x, size_t n, uint32_t bound, cg_list_ *list) {
    list->count = 0;
    for (size_t i = 0; i < n; i += CG_CHUNK_) {
        if (((uint64_t)i & 0xffffffffu) == 0) list->segment[(uint64_t)i >> 32] = list->count;
        list->count += kernels->filter(cg_at_(x, i), cg_min_(CG_CHUNK_, n - i), bound, (uint32_t)i,
                                       list->low + list->count, list->value + list->count);
        if (list->count > list->room) return 0;
    }
    list->segment[list->segments] = list->count;
    return 1;
}
/* The k-th largest magnitude is `key`, and `above` are larger: take those, and the first that equal it. */
static void cg_filter_ties_(const cg_kernels_ *kernels, const float *x, size_t n, uint32_t key, size_t above, size_t k, cg_list_ *list) {
    size_t left = k - above, from, found;
    list->count = 0;
    for (size_t i = 0; i < n; i += CG_CHUNK_) {
        if (((uint64_t)i & 0xffffffffu) == 0) list->segment[(uint64_t)i >> 32] = list->count;
        if (list->count == k && (uint64_t)(n - 1) >> 32 == 0) break;
        from = list->count;
        found = kernels->filter(cg_at_(x, i), cg_min_(CG_CHUNK_, n - i), left ? key : key + 1, (uint32_t)i,
                                list->low + from, list->value + from);
        cg_list_cut_(list, from, from + found, &list->count, key, &left);
    }
    list->segment[list->segments] = list->count;
}

/* A magnitude that about `want` of n values reach, from a sample of those in [lo, hi); `inside` of n are there. */
static uint32_t cg_guess_(const float *x, size_t n, uint64_t want, uint64_t inside, uint32_t lo, uint32_t hi, uint32_t salt, float *sample) {
    size_t draws = n / 64 < 1024 ? 1024 : n / 64 > 16384 ? 16384 : n / 64, count = 0, rank;
    size_t stride = n / draws;
    cg_key_ key = cg_block_key_(salt, n);
    double expect, spread = 1.0;
    for (size_t i = 0; i < draws; i++) {
        float f = cg_load_(x, i * stride + (size_t)((uint64_t)cg_hash32_(key, (uint32_t)i) * (stride < 0xffffffffu ? stride : 0xffffffffu) >> 32));
        uint32_t m = cg_bits_(f) & CG_MAGNITUDE_;
        sample[count] = f;
        count += m >= lo && m < hi;
    }
    if (!count) return lo + (hi - lo) / 2;
    expect = (double)count * (double)want / (double)inside;
    while (spread * spread < expect) spread += 1.0;              /* a square root, roughly */
    expect += 3.0 * spread + 4.0;
    if (expect >= (double)count) return lo;
    rank = (size_t)expect;
    return cg_kth_(sample, count, &rank, lo, hi - 1);
}

/* Top-k: a guess from a sample that is a little too low, one filter pass, exact selection among what passed.
   When that does not fit (ties, or an unlucky sample) passes that count narrow the interval of the k-th key. */
static cg_status cg_topk_(const cg_kernels_ *kernels, const float *x, size_t n, size_t k, cg_list_ *list, uint32_t *key) {
    uint32_t lo = 0, hi = 0x80000000u;                           /* the k-th key is in [lo, hi) */
    uint32_t bound;
    size_t at_least_lo = n, at_least_hi = 0, left;
    for (uint32_t tries = 0;; tries++) {
        bound = lo;
        if (n > CG_CHUNK_) {
            if (tries < 8) bound = cg_guess_(x, n, k - at_least_hi, at_least_lo - at_least_hi, lo, hi, tries, list->value);
            else bound = lo + (hi - lo) / 2;
        }
        if (cg_filter_all_(kernels, x, n, bound, list)) {
            if (list->count >= k) break;
            hi = bound;
            at_least_hi = list->count;
        } else {
            size_t above = 0;
            uint32_t top = 0;
            for (size_t i = 0; i < n; i += CG_CHUNK_)
                top = cg_max32_(top, kernels->tally(cg_at_(x, i), cg_min_(CG_CHUNK_, n - i), bound, &above));
            if (top >= CG_NONFINITE_) return CG_E_NONFINITE;
            if (above < k) {                                     /* more than k reach it, so it is the k-th itself */
                *key = bound;
                cg_filter_ties_(kernels, x, n, bound, above, k, list);
                COMPGRAD_ASSERT(list->count == k);
                return CG_OK;
            }
            lo = bound + 1;
            at_least_lo = above;
        }
    }
    lo = kernels->top(list->value, list->count);
    if (lo >= CG_NONFINITE_) return CG_E_NONFINITE;
    left = k;
    *key = cg_kth_(list->value, list->count, &left, bound, lo);
    list->count = 0;
    for (uint64_t s = 0, from = 0, to; s < list->segments; s++, from = to) {
        to = list->segment[s + 1];
        list->segment[s] = list->count;
        cg_list_cut_(list, (size_t)from, (size_t)to, &list->count, *key, &left);
    }
    list->segment[list->segments] = list->count;
    COMPGRAD_ASSERT(list->count == k);
    return CG_OK;
}

/* ---- >>indices --------------------------------------------------------------------------------- */

typedef struct cg_bit_writer_ { uint8_t *at; uint64_t word; unsigned filled; } cg_bit_writer_;

static void cg_bits_put_(cg_bit_writer_ *w, uint64_t v, unsigned bits) {     /* bits <= 32 */
    w->word |= v << w->filled;
    w->filled += bits;
    if (w->filled >= 32) {
        cg_put32_(w->at, (uint32_t)w->word);
        w->at += 4;
        w->word >>= 32;
        w->filled -= 32;
    }
}
static void cg_bits_flush_(cg_bit_writer_ *w) {                              /* to a whole u32 */
    if (w->filled) cg_put32_(w->at, (uint32_t)w->word);
}
/* Sets single bits in ascending order; bits between are 0. */
typedef struct cg_bit_setter_ { uint8_t *at; uint64_t base; uint32_t word; } cg_bit_setter_;

static void cg_bit_set_(cg_bit_setter_ *w, uint64_t bit) {
    while (bit - w->base >= 32) {
        cg_put32_(w->at, w->word);
        w->at += 4;
        w->base += 32;
        w->word = 0;
    }
    w->word |= 1u << (bit - w->base);
}
static void cg_bit_set_end_(cg_bit_setter_ *w, uint8_t *end) {
    for (; w->at < end; w->at += 4, w->word = 0) cg_put32_(w->at, w->word);
}
static void cg_index_put_(uint32_t code, uint64_t drawn, const cg_list_ *list, uint8_t *out) {
    unsigned l = cg_low_bits_(drawn, list->count);
    cg_bit_writer_ low = { NULL, 0, 0 };
    cg_bit_setter_ set = { NULL, 0, 0 };
    uint8_t *end = out + (size_t)cg_index_bytes_(code, drawn, list->count);
    int bitmap = code == CG_CODE_BITMAP;
    if (out == end) return;
    low.at = out;
    set.at = bitmap ? out : out + (size_t)cg_low_bytes_(drawn, list->count);
    for (uint64_t s = 0; s < list->segments; s++) {
        for (uint64_t i = list->segment[s]; i < list->segment[s + 1]; i++) {
            uint64_t index = s << 32 | list->low[i];
            if (bitmap) { cg_bit_set_(&set, index); continue; }
            if (l > 32) {
                cg_bits_put_(&low, index & 0xffffffffu, 32);
                cg_bits_put_(&low, index >> 32 & ((1u << (l - 32)) - 1u), l - 32);
            } else {
                cg_bits_put_(&low, index & (((uint64_t)1 << l) - 1), l);
            }
            cg_bit_set_(&set, (index >> l) + i);
        }
    }
    if (!bitmap) cg_bits_flush_(&low);
    cg_bit_set_end_(&set, end);
}

typedef struct cg_index_reader_ {
    const uint8_t *low, *high, *end;   /* low parts end where high begins */
    uint64_t word, base, i;            /* unread bits of the current word; its bit number less 64; indices read */
    unsigned l;
    int bitmap;
} cg_index_reader_;

static cg_index_reader_ cg_index_open_(const cg_info *info, const uint8_t *p) {
    cg_index_reader_ r;
    r.bitmap = info->index_code == CG_CODE_BITMAP;
    r.l = r.bitmap ? 0 : cg_low_bits_(info->drawn, info->k);
    r.low = p;
    r.high = r.bitmap ? p : p + (size_t)cg_low_bytes_(info->drawn, info->k);
    r.end = p + info->index_bytes;
    r.word = 0;
    r.base = (uint64_t)0 - 64;
    r.i = 0;
    return r;
}
/* Up to `count` more indices; fewer only where the bits run out. */
static size_t cg_index_get_(cg_index_reader_ *r, uint64_t *index, size_t count) {
    uint64_t word = r->word, base = r->base, i = r->i, at = r->i * r->l;
    const uint64_t mask = ((uint64_t)1 << r->l) - 1;
    const uint8_t *next = r->high;
    size_t done = 0;
    while (done < count) {
        while (!word) {
            if (next >= r->end) goto out;
            if (r->end - next >= 8) word = cg_get64_(next);
            else word = cg_get32_(next);                       /* sections are whole u32 words */
            next += r->end - next >= 8 ? 8 : 4;
            base += 64;
        }
        {
            uint64_t h = base + cg_ctz_(word);
            word &= word - 1;
            if (!r->bitmap) h -= i;
            if (r->l) {
                const uint8_t *p = r->low + (size_t)(at >> 3);
                unsigned shift = (unsigned)(at & 7);
                uint64_t low;
                if (CG_LIKELY_(r->end - p > 8)) {
                    low = cg_get64_(p) >> shift;
                    if (r->l + shift > 64) low |= (uint64_t)p[8] << (64 - shift);
                } else {                                       /* within the last 8 bytes, and l + shift <= 64: high bits follow */
                    low = 0;
                    for (unsigned b = 0; b < 8 && p + b < r->end; b++) low |= (uint64_t)p[b] << 8 * b;
                    low >>= shift;
                }
                h = h << r->l | (low & mask);
                at += r->l;
            }
            index[done++] = h;
            i++;
        }
    }
out:
    r->word = word;
    r->base = base;
    r->i = i;
    r->high = next;
    return done;
}

/* ---- >>compress -------------------------------------------------------------------------------- */

#if defined(COMPGRAD_OPENMP) && defined(_OPENMP)
#  define CG_PARALLEL_ _Pragma("omp parallel for schedule(static, 1) if (many > 1)")
#else
#  define CG_PARALLEL_
#endif

typedef struct cg_encoder_ {
    const cg_kernels_ *kernels;
    const cg_stage *stage;
    const cg_layout_ *lay;
    const cg_source_ *src;
    uint64_t key;
    uint8_t *scales, *codes;
} cg_encoder_;

typedef struct cg_part_ { cg_sum_ sum; cg_stat_ stat; double total; } cg_part_;   /* what a block tells */

static const cg_stat_ cg_stat_none_ = { 0, CG_FLT_MAX_, -CG_FLT_MAX_ };

static void cg_stat_join_(cg_stat_ *s, const cg_stat_ *t) {
    s->top = cg_max32_(s->top, t->top);
    s->lo = t->lo < s->lo ? t->lo : s->lo;
    s->hi = t->hi > s->hi ? t->hi : s->hi;
}
static size_t cg_bucket_end_(const cg_layout_ *lay, size_t b) {
    size_t k = (size_t)lay->k, bucket = (size_t)lay->bucket, start = b * bucket;
    return bucket > k - start ? k : start + bucket;
}
/* Statistic of values [first, last). v holds [have, have_end) of them already. */
static cg_stat_ cg_measure_(const cg_encoder_ *e, size_t first, size_t last, const float *v, size_t have, size_t have_end) {
    cg_stat_ stat = cg_stat_none_;
    float buf[CG_CHUNK_];
    for (size_t i = first, many; i < last; i += many) {
        if (i >= have && i < have_end) {
            many = cg_min_(last, have_end) - i;
            e->lay->row->measure(e->kernels, cg_at_(v, i - have), many, &stat);
        } else {
            many = cg_min_(CG_CHUNK_, last - i);
            e->lay->row->measure(e->kernels, cg_fetch_(e->src, i, many, buf), many, &stat);
        }
    }
    return stat;
}
static void cg_scales_put_(const cg_encoder_ *e, size_t bucket, const float *scales) {
    unsigned per = e->lay->row->scales;
    for (unsigned i = 0; i < per; i++) cg_put32_(e->scales + 4 * (bucket * per + i), cg_bits_(scales[i]));
}
static void cg_scales_get_(const uint8_t *p, unsigned per, size_t bucket, float *scales) {
    for (unsigned i = 0; i < per; i++) scales[i] = cg_float_(cg_get32_(p + 4 * (bucket * per + i)));
}

/* The loop: a block in chunks, a chunk in buckets. A bucket's statistic is taken when its first value comes up; it
   belongs to the block it starts in. Buckets longer than a block have been measured before (cg_encode_values_). */
static void cg_encode_block_(const cg_encoder_ *e, size_t block, cg_part_ *part) {
    const cg_layout_ *lay = e->lay;
    const cg_quantizer_ *row = lay->row;
    const size_t k = (size_t)lay->k, bucket = (size_t)lay->bucket, begin = block * CG_BLOCK_, end = cg_min_(k, begin + CG_BLOCK_);
    const cg_key_ key = cg_block_key_(e->key, block);
    size_t current = SIZE_MAX;
    float scales[2] = { 0.0f, 0.0f };
    double lanes[16] = { 0.0 };
    float buf[CG_CHUNK_];
    uint8_t symbols[CG_CHUNK_];
    cg_env_ env = cg_env_enter_();                   /* threads have their own */
    part->sum.a = part->sum.b = part->sum.words = 0;
    part->stat = cg_stat_none_;
    for (size_t first = begin, many; first < end && part->stat.top < CG_NONFINITE_; first += many) {
        uint8_t *out = e->codes + first / 8 * lay->bits, *to = row->bytewise && lay->bits < 8 ? symbols : out;
        const float *v;
        size_t bytes;
        many = cg_min_(CG_CHUNK_, end - first);
        bytes = (many * lay->bits + 7) / 8;
        v = cg_fetch_(e->src, first, many, buf);
        if (row->know == CG_KNOW_BUCKET_) {
            for (size_t i = first, stop; i < first + many; i = stop) {
                size_t b = i / bucket;
                stop = cg_min_(first + many, cg_bucket_end_(lay, b));
                if (b != current && bucket > CG_BLOCK_) {
                    cg_scales_get_(e->scales, row->scales, b, scales);
                } else if (b != current) {
                    cg_stat_ stat = cg_measure_(e, b * bucket, cg_bucket_end_(lay, b), v, first, first + many);
                    cg_stat_join_(&part->stat, &stat);
                    if (stat.top >= CG_NONFINITE_) break;
                    row->settle(&stat, scales);
                    if (b * bucket >= begin) cg_scales_put_(e, b, scales);
                }
                current = b;
                row->encode(e->kernels, e->stage, scales, key, (uint32_t)(i - begin), cg_at_(v, i - first), stop - i, to + (i - first), NULL);
            }
            if (part->stat.top >= CG_NONFINITE_) break;
        } else {
            part->stat.top = cg_max32_(part->stat.top, row->encode(e->kernels, e->stage, NULL, key, (uint32_t)(first - begin), v, many, to, lanes));
        }
        if (to == symbols) e->kernels->pack(symbols, many, lay->bits, out);
        while (bytes % 4) out[bytes++] = 0;          /* the end of the section */
        e->kernels->sum(&part->sum, out, bytes / 4);
    }
    for (unsigned w = 8; w; w /= 2) for (unsigned i = 0; i < w; i++) lanes[i] += lanes[i + w];
    part->total = lanes[0];
    cg_env_leave_(env);
}
static void cg_measure_block_(const cg_encoder_ *e, size_t first, size_t last, cg_part_ *part) {
    cg_env_ env = cg_env_enter_();
    part->stat = cg_measure_(e, first, last, NULL, 0, 0);
    cg_env_leave_(env);
}
static int cg_wave_(size_t items) { return (int)cg_min_(CG_WAVE_, items); }

/* Pass 0, for buckets longer than a block. */
static cg_status cg_measure_long_(const cg_encoder_ *e) {
    const size_t k = (size_t)e->lay->k, bucket = (size_t)e->lay->bucket;
    cg_part_ part[CG_WAVE_];
    for (size_t b = 0; b * bucket < k; b++) {
        const size_t last = cg_bucket_end_(e->lay, b);
        cg_stat_ stat = cg_stat_none_;
        float scales[2];
        for (size_t first = b * bucket; first < last;) {
            int many = cg_wave_((last - first - 1) / CG_BLOCK_ + 1);
            CG_PARALLEL_
            for (int i = 0; i < many; i++) {
                size_t from = first + (size_t)i * CG_BLOCK_;
                cg_measure_block_(e, from, cg_min_(CG_BLOCK_, last - from) + from, &part[i]);
            }
            for (int i = 0; i < many; i++) cg_stat_join_(&stat, &part[i].stat);
            if (stat.top >= CG_NONFINITE_) return CG_E_NONFINITE;
            first += cg_min_((size_t)many * CG_BLOCK_, last - first);
        }
        e->lay->row->settle(&stat, scales);
        cg_scales_put_(e, b, scales);
    }
    return CG_OK;
}
/* Scales and codes; sum absorbs both. */
static cg_status cg_encode_values_(const cg_encoder_ *e, cg_sum_ *sum) {
    const cg_layout_ *lay = e->lay;
    const size_t k = (size_t)lay->k, blocks = k / CG_BLOCK_ + (k % CG_BLOCK_ != 0);
    cg_part_ part[CG_WAVE_];
    cg_sum_ codes = { 0, 0, 0 };
    double total = 0.0;
    if (lay->row->know == CG_KNOW_BUCKET_ && lay->bucket > CG_BLOCK_ && cg_measure_long_(e) != CG_OK) return CG_E_NONFINITE;
    for (size_t block = 0; block < blocks; block += CG_WAVE_) {
        int many = cg_wave_(blocks - block);
        CG_PARALLEL_
        for (int i = 0; i < many; i++) cg_encode_block_(e, block + (size_t)i, &part[i]);
        for (int i = 0; i < many; i++) {
            if (part[i].stat.top >= CG_NONFINITE_) return CG_E_NONFINITE;
            codes = cg_sum_join_(codes, part[i].sum);
            total += part[i].total;
        }
    }
    if (lay->row->know == CG_KNOW_LATE_ && k) {
        float mean = (float)(total / (double)k);
        cg_scales_put_(e, 0, &mean);
    }
    *sum = cg_sum_join_(*sum, cg_sum_of_(e->kernels, e->scales, (size_t)lay->scale_bytes));
    *sum = cg_sum_join_(*sum, codes);
    return CG_OK;
}

/* Sizes of a packet whose selection left k values (or will leave at most k). */
static cg_status cg_sizes_(const cg_op *op, const cg_side *side, uint64_t k, cg_layout_ *lay, uint64_t *value_bytes) {
    cg_status s = cg_layout_make_(op, side, k, lay);
    if (s != CG_OK) return s;
    *value_bytes = cg_add_(lay->scale_bytes, lay->code_bytes);
    if (lay->codec) {
        size_t most = lay->codec->bound(lay->codec, &op->quantize, (size_t)k);
        if (!most && k) return CG_E_ARG;
        *value_bytes = cg_add_(most, 3) & ~(uint64_t)3;
    }
    return CG_OK;
}
static size_t cg_bound_(const cg_op *op, const cg_side *side, size_t n) {
    cg_layout_ lay;
    uint64_t drawn, k, values, indices = 0;
    if (!op || cg_op_check_(op) != CG_OK) return 0;
    k = drawn = cg_drawn_(op, n);
    if (op->select.id == CG_SELECT_TOPK) k = cg_count_(op->select.value, op->k, drawn);
    if (cg_sizes_(op, side, k, &lay, &values) != CG_OK) return 0;
    if (op->select.id) indices = cg_index_bytes_(cg_index_code_(op, drawn, k), drawn, k);
    if (op->select.id == CG_SELECT_THRESHOLD) {      /* any k: a bitmap at worst, or Elias-Fano's two bits each and padding */
        indices = cg_words_(drawn);
        if (op->code.id == CG_CODE_ELIAS_FANO) indices = cg_add_(cg_mul_(indices, 2), 8);
    }
    return cg_size_(cg_add_(cg_add_(values, indices), CG_HEADER_BYTES));
}
CG_API_ size_t cg_bound_with(const cg_op *op, const cg_side *side, size_t n) {
    cg_env_ env = cg_env_enter_();
    size_t bytes = cg_bound_(op, side, n);
    cg_env_leave_(env);
    return bytes;
}
CG_API_ size_t cg_bound(const cg_op *op, size_t n) { return cg_bound_with(op, NULL, n); }

CG_API_ size_t cg_scratch(const cg_op *op, size_t n) {
    cg_env_ env = cg_env_enter_();
    size_t bytes = !op || cg_op_check_(op) != CG_OK ? 0 : cg_size_(cg_scratch_bytes_(op, n));
    cg_env_leave_(env);
    return bytes;
}

/* Sample and selection: what the quantizer will see. */
static cg_status cg_pick_(const cg_kernels_ *kernels, cg_info *info, cg_source_ *src, cg_list_ *list) {
    const cg_op *op = &info->op;
    uint32_t key = 0;
    if (src->drawn && info->drawn && (op->select.id || cg_is_user_(&op->quantize))) {
        size_t drawn = (size_t)info->drawn;
        for (size_t i = 0; i < drawn; i += CG_CHUNK_) cg_fetch_(src, i, cg_min_(CG_CHUNK_, drawn - i), list->gathered + i);
        if (kernels->top(list->gathered, drawn) >= CG_NONFINITE_) return CG_E_NONFINITE;
        src->x = list->gathered;
        src->drawn = 0;
    }
    info->k = info->drawn;
    if (!op->select.id) return CG_OK;
    if (op->select.id == CG_SELECT_TOPK) {
        cg_status s = CG_OK;
        info->k = cg_count_(op->select.value, op->k, info->drawn);
        if (info->k) s = cg_topk_(kernels, src->x, (size_t)info->drawn, (size_t)info->k, list, &key);
        if (s != CG_OK) return s;
        info->threshold = cg_float_(key);
    } else {
        cg_filter_all_(kernels, src->x, (size_t)info->drawn, (cg_bits_(op->select.value) & CG_MAGNITUDE_) + 1, list);
        if (kernels->top(list->value, list->count) >= CG_NONFINITE_) return CG_E_NONFINITE;
        info->k = list->count;
    }
    src->x = list->value;
    src->count = info->k;
    return CG_OK;
}
static cg_status cg_encode_user_(const cg_layout_ *lay, const cg_info *info, const cg_source_ *src, const cg_kernels_ *kernels,
                                 uint8_t *out, size_t cap, size_t *bytes, cg_sum_ *sum) {
    cg_status s;
    for (size_t i = 0; i < lay->k; i += CG_CHUNK_)
        if (kernels->top(cg_at_(src->x, i), cg_min_(CG_CHUNK_, (size_t)lay->k - i)) >= CG_NONFINITE_) return CG_E_NONFINITE;
    *bytes = 0;
    s = lay->codec->compress(lay->codec, &info->op.quantize, &info->tag, src->x, (size_t)lay->k, out, cap, bytes);
    if (s != CG_OK) return s;
    if (*bytes > cap) return CG_E_CAPACITY;
    if (cap - *bytes < (4 - *bytes % 4) % 4) return CG_E_CAPACITY;
    while (*bytes % 4) out[(*bytes)++] = 0;
    *sum = cg_sum_join_(*sum, cg_sum_of_(kernels, out, *bytes));
    return CG_OK;
}

static cg_status cg_compress_packet_(cg_info *info, const cg_side *side, const float *x, uint8_t *packet, size_t cap, size_t *len, void *scratch) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    cg_layout_ lay;
    cg_list_ list;
    cg_source_ src;
    cg_sum_ body = { 0, 0, 0 }, head;
    uint64_t value_bytes, index_bytes, need;
    cg_status s;
    info->drawn = cg_drawn_(&info->op, info->n);
    src.x = x;
    src.n = info->n;
    src.count = info->drawn;
    src.key = cg_shared_key_(&info->tag);
    src.drawn = info->op.sample.id != 0;
    src.scaled = !(info->op.sample.flags & CG_FLAG_UNSCALED);
    cg_list_place_(&list, &info->op, info->drawn, scratch);
    s = cg_pick_(kernels, info, &src, &list);
    if (s != CG_OK) return s;
    s = cg_sizes_(&info->op, side, info->k, &lay, &value_bytes);
    if (s != CG_OK) return s;
    info->index_code = cg_index_code_(&info->op, info->drawn, info->k);
    index_bytes = cg_index_bytes_(info->index_code, info->drawn, info->k);
    need = cg_add_(cg_add_(lay.codec ? 0 : value_bytes, index_bytes), CG_HEADER_BYTES);
    if (need > cap) return CG_E_CAPACITY;
    info->index_bytes = (size_t)index_bytes;
    if (lay.codec) {
        s = cg_encode_user_(&lay, info, &src, kernels, packet + CG_HEADER_BYTES, cap - (size_t)need, &info->value_bytes, &body);
    } else {
        cg_encoder_ e;
        e.kernels = kernels;
        e.stage = &info->op.quantize;
        e.lay = &lay;
        e.src = &src;
        e.key = cg_private_key_(&info->tag);
        e.scales = packet + CG_HEADER_BYTES;
        e.codes = e.scales + (size_t)lay.scale_bytes;
        info->value_bytes = (size_t)value_bytes;
        s = cg_encode_values_(&e, &body);
    }
    if (s != CG_OK) return s;
    if (info->index_bytes) {
        uint8_t *out = packet + CG_HEADER_BYTES + info->value_bytes;
        cg_index_put_(info->index_code, info->drawn, &list, out);
        body = cg_sum_join_(body, cg_sum_of_(kernels, out, info->index_bytes));
    }
    cg_header_put_(packet, info);
    head = cg_sum_join_(cg_sum_of_(kernels, packet, CG_HEADER_BYTES), body);
    cg_put64_(packet + CG_CHECKSUM_AT_, head.a);
    cg_put64_(packet + CG_CHECKSUM_AT_ + 8, head.b);
    *len = CG_HEADER_BYTES + info->value_bytes + info->index_bytes;
    return CG_OK;
}
static cg_status cg_compress_checked_(const cg_op *op, const cg_tag *tag, const cg_side *side, const float *x,
    size_t n, void *packet, size_t cap, size_t *len, void *scratch, size_t scratch_bytes) {
    cg_info info = CG_ZERO;
    const float none = 0.0f;                         /* x, where there are no values: NULL + 0 is undefined */
    if (len) *len = 0;
    if (!op || !len || !packet || (!x && n) || cg_bound_(op, side, n) == 0) return CG_E_ARG;
    if (cg_side_check_(side) != CG_OK) return cg_side_check_(side);
    if (cg_scratch_bytes_(op, n) > scratch_bytes) return CG_E_CAPACITY;
    if (scratch_bytes && !scratch) return CG_E_ARG;
    info.op = *op;
    info.n = n;
    if (tag) info.tag = *tag;
    return cg_compress_packet_(&info, side, x ? x : &none, (uint8_t *)packet, cap, len, scratch);
}
CG_API_ cg_status cg_compress_with(const cg_op *op, const cg_tag *tag, const cg_side *side, const float *x,
    size_t n, void *packet, size_t cap, size_t *len, void *scratch, size_t scratch_bytes) {
    cg_env_ env = cg_env_enter_();
    cg_status s = cg_compress_checked_(op, tag, side, x, n, packet, cap, len, scratch, scratch_bytes);
    cg_env_leave_(env);
    return s;
}
CG_API_ cg_status cg_compress(const cg_op *op, const cg_tag *tag, const float *x, size_t n,
    void *packet, size_t cap, size_t *len, void *scratch, size_t scratch_bytes) {
    return cg_compress_with(op, tag, NULL, x, n, packet, cap, len, scratch, scratch_bytes);
}

/* ---- >>decode ---------------------------------------------------------------------------------- */

typedef struct cg_decoder_ {
    const cg_kernels_ *kernels;
    const uint8_t *packet, *scales, *codes, *index;
    cg_info info;
    cg_layout_ lay;
    float alpha, beta;
    float *y;
    float none;                        /* y, where there are no values: NULL + 0 is undefined */
    int stream;                        /* y is larger than the caches, and aligned */
} cg_decoder_;

/* Values [first, first + many) as floats, in out or where they lie; NULL: the user's codec refused. first is a
   multiple of CG_CHUNK_, many at most that. */
static const float *cg_decode_chunk_(const cg_decoder_ *d, size_t first, size_t many, float *out, int stream) {
    const cg_layout_ *lay = &d->lay;
    const cg_quantizer_ *row = lay->row;
    const uint8_t *in;
    uint8_t symbols[CG_CHUNK_];
    float scales[2];
    if (lay->codec) {
        cg_status s = lay->codec->decode(lay->codec, &d->info.op.quantize, d->codes, d->info.value_bytes, (size_t)lay->k, first, many, out);
        return s == CG_OK && d->kernels->top(out, many) < CG_NONFINITE_ ? out : NULL;
    }
    in = d->codes + first / 8 * lay->bits;
#if !CG_BIG_ENDIAN_
    if (lay->bits == 32) return (const float *)(const void *)(d->codes + 4 * first);      /* f32 as it lies */
#endif
    if (row->bytewise && lay->bits < 8) {
        d->kernels->unpack(in, many, lay->bits, symbols);
        in = symbols;
    }
    if (row->know != CG_KNOW_BUCKET_) {
        if (row->scales) cg_scales_get_(d->scales, row->scales, 0, scales);
        row->decode(d->kernels, &d->info.op.quantize, scales, in, many, out, stream);
        return out;
    }
    for (size_t i = first, stop; i < first + many; i = stop) {
        size_t b = i / (size_t)lay->bucket;
        stop = cg_min_(first + many, cg_bucket_end_(lay, b));
        cg_scales_get_(d->scales, row->scales, b, scales);
        row->decode(d->kernels, &d->info.op.quantize, scales, in + (i - first), stop - i, cg_at_mut_(out, i - first),
                    stream && (i - first) % 4 == 0);
    }
    return out;
}
static int cg_scales_legal_(const cg_decoder_ *d) {
    const unsigned per = d->lay.row ? d->lay.row->scales : 0;
    float scales[2];
    if (!per) return 1;
    for (size_t b = 0; b < (size_t)d->lay.scale_bytes / 4 / per; b++) {
        cg_scales_get_(d->scales, per, b, scales);
        if (!d->lay.row->legal(scales)) return 0;
    }
    return 1;
}
static int cg_padding_zero_(const uint8_t *p, uint64_t bits) {       /* from bit `bits` to the end of its u32 */
    for (uint64_t i = bits; i % 32; i++) if (p[i / 8] >> i % 8 & 1) return 0;
    return 1;
}
/* Asks for the first half of the next chunk's codes, which sets the hardware going; all of it is slower. */
static void cg_codes_ahead_(const cg_decoder_ *d, size_t first) {
    const size_t bytes = CG_CHUNK_ / 8 * d->lay.bits;
    const uint8_t *next = d->codes + first / 8 * d->lay.bits + bytes;
    for (size_t i = 0; i < bytes / 2; i += 64) CG_PREFETCH_(next + i);
}
/* A stretch of codes (whole u32 words but for the end): its checksum, and whether its values are finite. */
static int cg_codes_check_(const cg_decoder_ *d, size_t first, size_t many, cg_sum_ *sum) {
    const uint8_t *in = d->codes + first / 8 * d->lay.bits;
    const cg_quantizer_ *row = d->lay.row;
    d->kernels->sum(sum, in, (size_t)cg_words_((uint64_t)many * d->lay.bits) / 4);
    return !row->top || row->top(d->kernels, in, many) < row->limit;
}
static int cg_index_check_(const cg_decoder_ *d) {
    const cg_info *info = &d->info;
    cg_index_reader_ r = cg_index_open_(info, d->index);
    uint64_t index[512], next = 0, seen = 0, extra;
    if (!info->index_bytes) return 1;
    if (!cg_padding_zero_(r.high, r.bitmap ? info->drawn : cg_high_bits_(info->drawn, info->k))) return 0;
    if (!r.bitmap && !cg_padding_zero_(r.low, info->k * r.l)) return 0;
    while (seen < info->k) {
        size_t want = (size_t)(info->k - seen < 512 ? info->k - seen : 512);
        int bad = 0;
        if (cg_index_get_(&r, index, want) < want) return 0;
        for (size_t i = 0; i < want; i++) {
            bad |= index[i] < next;
            next = index[i] + 1;
        }
        if (bad || next > info->drawn || next == 0) return 0;
        seen += want;
    }
    return cg_index_get_(&r, &extra, 1) == 0;
}
/* The checksum of everything but the codes, and then the packet's verdict. */
static int cg_checksum_ok_(const cg_decoder_ *d, cg_sum_ codes) {
    static const uint8_t zeros[16] = { 0 };
    cg_sum_ s = cg_sum_of_(d->kernels, d->packet, CG_CHECKSUM_AT_);
    s = cg_sum_join_(s, cg_sum_of_(d->kernels, zeros, 16));
    s = cg_sum_join_(s, cg_sum_of_(d->kernels, d->scales, (size_t)(d->codes - d->scales)));
    s = cg_sum_join_(s, codes);
    s = cg_sum_join_(s, cg_sum_of_(d->kernels, d->index, d->info.index_bytes));
    return s.a == cg_get64_(d->packet + CG_CHECKSUM_AT_) && s.b == cg_get64_(d->packet + CG_CHECKSUM_AT_ + 8);
}
/* Everything that can be wrong with values and indices. */
static cg_status cg_verify_(const cg_decoder_ *d) {
    const size_t k = (size_t)d->lay.k;
    cg_sum_ sum = { 0, 0, 0 };
    float out[CG_CHUNK_];
    int finite = 1;
    if (!d->lay.row) sum = cg_sum_of_(d->kernels, d->codes, d->info.value_bytes);
    else for (size_t i = 0; i < k; i += CG_CHUNK_) {
        cg_codes_ahead_(d, i);
        finite &= cg_codes_check_(d, i, cg_min_(CG_CHUNK_, k - i), &sum);
    }
    if (!cg_checksum_ok_(d, sum) || !finite || !cg_index_check_(d)) return CG_E_CORRUPT;
    for (size_t i = 0; d->lay.codec && i < k; i += CG_CHUNK_)
        if (!cg_decode_chunk_(d, i, cg_min_(CG_CHUNK_, k - i), out, 0)) return CG_E_CORRUPT;
    return CG_OK;
}

/* Dense: every value of y, by blocks. direct: the codes are checked on the way. */
static int cg_decode_block_(const cg_decoder_ *d, size_t block, int direct, cg_sum_ *sum) {
    const size_t n = (size_t)d->lay.k, end = cg_min_(n, (block + 1) * CG_BLOCK_);
    const int in_place = d->alpha == 1.0f && d->beta == 0.0f && !d->lay.codec;
    float out[CG_CHUNK_];
    int ok = 1;
    cg_env_ env = cg_env_enter_();
    sum->a = sum->b = sum->words = 0;
    for (size_t first = block * CG_BLOCK_, many; first < end && ok; first += many) {
        many = cg_min_(CG_CHUNK_, end - first);
        if (direct && !d->lay.codec) ok = cg_codes_check_(d, first, many, sum);
        if (ok) {
            float *y = cg_at_mut_(d->y, first);
            const float *v;
            cg_codes_ahead_(d, first);
            v = cg_decode_chunk_(d, first, many, in_place ? y : out, in_place && d->stream);
            if (v && v != y) d->kernels->emit(v, many, d->alpha, d->beta, y, d->stream);
            ok = v != NULL;
        }
    }
    if (d->stream) d->kernels->drain();
    cg_env_leave_(env);
    return ok;
}
static cg_status cg_decode_dense_(const cg_decoder_ *d, int direct) {
    const size_t n = (size_t)d->lay.k, blocks = n / CG_BLOCK_ + (n % CG_BLOCK_ != 0);
    cg_sum_ part[CG_WAVE_], sum = { 0, 0, 0 };
    int ok[CG_WAVE_];
    for (size_t block = 0; block < blocks; block += CG_WAVE_) {
        int many = cg_wave_(blocks - block);
        CG_PARALLEL_
        for (int i = 0; i < many; i++) ok[i] = cg_decode_block_(d, block + (size_t)i, direct, &part[i]);
        for (int i = 0; i < many; i++) {
            if (!ok[i]) return CG_E_CORRUPT;
            sum = cg_sum_join_(sum, part[i]);
        }
    }
    if (direct && d->lay.codec) sum = cg_sum_of_(d->kernels, d->codes, d->info.value_bytes);
    return !direct || cg_checksum_ok_(d, sum) ? CG_OK : CG_E_CORRUPT;
}

/* Where the packet has values, in ascending order: `many` more from value `first` on. */
static void cg_positions_(const cg_decoder_ *d, cg_index_reader_ *r, uint64_t key, size_t first, size_t many, uint64_t *at) {
    cg_strata_ strata;
    if (d->info.op.select.id) cg_index_get_(r, at, many);
    if (!d->info.op.sample.id) return;
    cg_strata_open_(&strata, d->info.n, d->info.drawn, key, first);
    for (size_t i = 0; i < many; i++, cg_strata_next_(&strata)) {
        if (d->info.op.select.id) cg_strata_seek_(&strata, at[i]);
        at[i] = cg_draw_(&strata);
    }
}
static void cg_scale_run_(float *y, size_t n, float beta) {          /* where the packet has no value */
    if (beta == 0.0f) memset(y, 0, 4 * n);
    else if (beta != 1.0f) for (size_t i = 0; i < n; i++) cg_store_(y, i, cg_times_(beta, cg_load_(y, i)));
}
/* The values of a sparse packet, a stretch at a time. */
enum { CG_STRETCH_ = 256 };
typedef struct cg_sparse_ {
    cg_index_reader_ reader;
    uint64_t key, at[CG_STRETCH_];     /* positions, ascending */
    const float *chunk;
    float out[CG_CHUNK_], value[CG_STRETCH_];    /* times alpha */
} cg_sparse_;

static void cg_sparse_open_(cg_sparse_ *s, const cg_decoder_ *d) {
    s->reader = cg_index_open_(&d->info, d->index);
    s->key = cg_shared_key_(&d->info.tag);
    s->chunk = NULL;
}
/* How many there are from value `first` on, a multiple of CG_STRETCH_. */
static size_t cg_sparse_next_(cg_sparse_ *s, const cg_decoder_ *d, size_t first) {
    const size_t k = (size_t)d->lay.k, many = cg_min_(CG_STRETCH_, k - first);
    if (first % CG_CHUNK_ == 0) s->chunk = cg_decode_chunk_(d, first, cg_min_(CG_CHUNK_, k - first), s->out, 0);
    if (!s->chunk) return 0;                         /* a codec that changed its mind after cg_verify_ */
    cg_positions_(d, &s->reader, s->key, first, many, s->at);
    if (d->alpha == 1.0f) memcpy(s->value, cg_at_(s->chunk, first % CG_CHUNK_), 4 * many);
    else for (size_t i = 0; i < many; i++) s->value[i] = cg_times_(d->alpha, cg_load_(s->chunk, first % CG_CHUNK_ + i));
    return many;
}
/* Into a y that is in the cache, or is added to: fill a stretch, then scatter into it. */
static cg_status cg_scatter_(const cg_decoder_ *d) {
    const size_t k = (size_t)d->lay.k, n = (size_t)d->info.n;
    size_t filled = 0;
    cg_sparse_ s;
    cg_sparse_open_(&s, d);
    for (size_t first = 0, many; first < k; first += many) {
        many = cg_sparse_next_(&s, d, first);
        if (!many) return CG_E_CORRUPT;
        cg_scale_run_(cg_at_mut_(d->y, filled), (size_t)s.at[many - 1] + 1 - filled, d->beta);
        filled = (size_t)s.at[many - 1] + 1;
        if (d->beta == 0.0f) for (size_t i = 0; i < many; i++) cg_store_(d->y, (size_t)s.at[i], s.value[i]);
        else for (size_t i = 0; i < many; i++) cg_store_(d->y, (size_t)s.at[i], cg_plus_(cg_load_(d->y, (size_t)s.at[i]), s.value[i]));
    }
    cg_scale_run_(cg_at_mut_(d->y, filled), n - filled, d->beta);
    return CG_OK;
}
/* Into a y larger than the cache: chunks are put together in L1, mostly zeros, and streamed out. */
static cg_status cg_scatter_stream_(const cg_decoder_ *d) {
    const size_t k = (size_t)d->lay.k, n = (size_t)d->info.n;
    float chunk[CG_CHUNK_];
    uint16_t touched[CG_CHUNK_];
    size_t base = 0, marks = 0;
    cg_sparse_ s;
    cg_sparse_open_(&s, d);
    memset(chunk, 0, sizeof chunk);
    for (size_t first = 0, many; first < k; first += many) {
        many = cg_sparse_next_(&s, d, first);
        if (!many) return CG_E_CORRUPT;
        for (size_t i = 0; i < many; i++) {
            while ((size_t)s.at[i] - base >= CG_CHUNK_) {
                d->kernels->emit(chunk, CG_CHUNK_, 1.0f, 0.0f, cg_at_mut_(d->y, base), 1);
                while (marks) chunk[touched[--marks]] = 0.0f;
                base += CG_CHUNK_;
            }
            touched[marks] = (uint16_t)((size_t)s.at[i] - base);
            chunk[touched[marks++]] = s.value[i];
        }
    }
    for (; base < n; base += CG_CHUNK_) {
        d->kernels->emit(chunk, cg_min_(CG_CHUNK_, n - base), 1.0f, 0.0f, cg_at_mut_(d->y, base), 1);
        while (marks) chunk[touched[--marks]] = 0.0f;
    }
    d->kernels->drain();
    return CG_OK;
}

/* Everything up to the first look at the values: the header agrees with itself, with len and with n.
   values: a user's codec must be at hand. */
static cg_status cg_open_(cg_decoder_ *d, const cg_side *side, const void *packet, size_t len, float *y, size_t n, int values) {
    uint64_t value_bytes;
    cg_status s;
    if (!packet || (!y && n)) return CG_E_ARG;
    s = cg_side_check_(side);
    if (s == CG_OK) s = cg_header_get_((const uint8_t *)packet, len, &d->info);
    if (s != CG_OK) return s;
    if (d->info.n != n) return CG_E_MISMATCH;
    if (d->info.packet_bytes != len) return CG_E_CORRUPT;
    s = cg_layout_make_(&d->info.op, side, d->info.k, &d->lay);
    if (s != CG_OK && (values || !cg_is_user_(&d->info.op.quantize))) return s;
    value_bytes = cg_add_(d->lay.scale_bytes, d->lay.code_bytes);
    if (d->lay.row && value_bytes != d->info.value_bytes) return CG_E_CORRUPT;
    d->kernels = cg_kernels_now_();
    d->packet = (const uint8_t *)packet;
    d->scales = d->packet + CG_HEADER_BYTES;
    d->codes = d->scales + (size_t)d->lay.scale_bytes;
    d->index = d->scales + d->info.value_bytes;
    d->y = y ? y : &d->none;
    if (d->lay.row && !cg_padding_zero_(d->codes, (uint64_t)d->lay.k * d->lay.bits)) return CG_E_CORRUPT;
    return cg_scales_legal_(d) ? CG_OK : CG_E_CORRUPT;
}
CG_API_ cg_status cg_decode(const cg_side *side, const void *packet, size_t len, float alpha, float beta, float *y, size_t n) {
    cg_decoder_ d;
    cg_env_ env = cg_env_enter_();
    cg_status s = cg_is_finite_(alpha) && cg_is_finite_(beta) ? cg_open_(&d, side, packet, len, y, n, 1) : CG_E_ARG;
    if (s == CG_OK) {
        int dense = !d.info.op.sample.id && !d.info.op.select.id;
        int direct = dense && side && (side->flags & CG_DECODE_DIRECT);
        d.alpha = alpha;
        d.beta = beta;
        d.stream = beta == 0.0f && n >= (size_t)1 << 22 && (uintptr_t)y % 16 == 0;
        if (!direct) s = cg_verify_(&d);
        if (s == CG_OK && dense) s = cg_decode_dense_(&d, direct);
        else if (s == CG_OK) s = d.stream ? cg_scatter_stream_(&d) : cg_scatter_(&d);
    }
    cg_env_leave_(env);
    return s;
}
CG_API_ cg_status cg_decompress(const void *packet, size_t len, float *y, size_t n) {
    return cg_decode(NULL, packet, len, 1.0f, 0.0f, y, n);
}
CG_API_ cg_status cg_decompress_add(const void *packet, size_t len, float weight, float *y, size_t n) {
    return cg_decode(NULL, packet, len, weight, 1.0f, y, n);
}
static cg_status cg_clear_(const void *packet, size_t len, float *y, size_t n) {
    cg_decoder_ d;
    cg_status s = cg_open_(&d, NULL, packet, len, y, n, 0);
    if (s == CG_OK) s = cg_verify_(&d);
    if (s != CG_OK) return s;
    if (!d.info.op.sample.id && !d.info.op.select.id) {
        memset(d.y, 0, 4 * n);
    } else {
        const uint64_t key = cg_shared_key_(&d.info.tag);
        cg_index_reader_ r = cg_index_open_(&d.info, d.index);
        uint64_t at[256];
        for (size_t first = 0, many; first < (size_t)d.lay.k; first += many) {
            many = cg_min_(256, (size_t)d.lay.k - first);
            cg_positions_(&d, &r, key, first, many, at);
            for (size_t i = 0; i < many; i++) cg_store_(d.y, (size_t)at[i], 0.0f);
        }
    }
    return CG_OK;
}
CG_API_ cg_status cg_clear(const void *packet, size_t len, float *y, size_t n) {
    cg_env_ env = cg_env_enter_();
    cg_status s = cg_clear_(packet, len, y, n);
    cg_env_leave_(env);
    return s;
}
CG_API_ cg_status cg_inspect(const void *packet, size_t len, cg_info *info) {
    cg_env_ env = cg_env_enter_();
    cg_status s = !packet || !info ? CG_E_ARG : cg_header_get_((const uint8_t *)packet, len, info);
    cg_env_leave_(env);
    return s;
}

/* ---- >>halves ---------------------------------------------------------------------------------- */

static void cg_swap16_(uint16_t *half, size_t n) {   /* between the wire's order and the machine's */
    for (size_t i = 0; CG_BIG_ENDIAN_ && i < n; i++) {
        uint16_t h = cg_get16_((const uint8_t *)half + 2 * i);
        memcpy((uint8_t *)half + 2 * i, &h, 2);
    }
}
CG_API_ void cg_f16_from_f32(const float *x, size_t n, uint16_t *half) {
    cg_env_ env = cg_env_enter_();
    if (n) cg_kernels_now_()->half(x, n, (uint8_t *)half);
    cg_swap16_(half, n);
    cg_env_leave_(env);
}
CG_API_ void cg_bf16_from_f32(const float *x, size_t n, uint16_t *half) {
    if (n) cg_kernels_now_()->brain(x, n, (uint8_t *)half);
    cg_swap16_(half, n);
}
/* Chunks, because a big-endian machine has to bring them into the wire's order first. */
static void cg_widen_(void (*widen)(const uint8_t *in, size_t n, float *out, int stream), const uint16_t *half, size_t n, float *x) {
    uint16_t wire[CG_CHUNK_];
    cg_env_ env = cg_env_enter_();
    for (size_t i = 0, many; i < n; i += many) {
        const uint8_t *in = (const uint8_t *)half + 2 * i;
        many = cg_min_(CG_CHUNK_, n - i);
        if (CG_BIG_ENDIAN_) {
            memcpy(wire, in, 2 * many);
            cg_swap16_(wire, many);
            in = (const uint8_t *)wire;
        }
        widen(in, many, cg_at_mut_(x, i), 0);
    }
    cg_env_leave_(env);
}
CG_API_ void cg_f16_to_f32(const uint16_t *half, size_t n, float *x) { cg_widen_(cg_kernels_now_()->unhalf, half, n, x); }
CG_API_ void cg_bf16_to_f32(const uint16_t *half, size_t n, float *x) { cg_widen_(cg_kernels_now_()->unbrain, half, n, x); }

/* ---- >>status ---------------------------------------------------------------------------------- */

CG_API_ const char *cg_status_str(cg_status status) {
    switch (status) {
#define CG_STATUS_CASE_(name, number, text) case name: return text;
        CG_STATUS_LIST_(CG_STATUS_CASE_)
#undef CG_STATUS_CASE_
        case CG_STATUS_FORCE_INT_: break;
    }
    return "not a cg_status: is it uninitialised?";
}
CG_API_ const char *cg_version(void) { return CG_VERSION_STRING; }

#if defined(__clang__)
#  pragma STDC FP_CONTRACT DEFAULT
#  if defined(__x86_64__) || defined(__i386__)
#    pragma float_control(pop)
#  endif
#elif defined(__GNUC__)
#  pragma GCC pop_options
#endif

#endif /* COMPGRAD_IMPLEMENTED_ */
#endif /* COMPGRAD_IMPLEMENTATION */
