/* compgrad.h: made of the files in src/ by "make headers"; change those, not this one. */

/* src/core/manual.h */
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

   cg_then(a, b) fills from b the slots that a left empty, so any sample, any transform, any selection, any
   quantizer and any code combine. The same thing as text: cg_op_parse(&op, "randk:0.1|topk:0.01|absmax:4:512|huffman").

   OPERATORS, as text; as C the same with cg_ in front, e.g. cg_topk(0.01f). In each line: bits per element; U unbiased with
   variance w|x|^2, or B biased with error (1-d)|x|^2 (w, d as known: * for a normal vector, else for any); paper; when to use it.
   B = values to a scale, r = fraction kept, s = levels, n = elements. Add 8*CG_HEADER_BYTES/n bits for the header.

   quantizers
     dense                32             exact                          the default; |huffman: 26 to 28, exact all the same
     f16  bf16            16             B d > 1-2^-22, 1-2^-18         no convergence risk; bf16 if the range matters more
     absmax:b:B           b + 32/B       U w <= B/(4L^2), L = 2^(b-1)-1 (b = 1: w <= B) the workhorse: 8 bits need no memory, 4 bits little
     minmax:b:B           b + 64/B       U w <= B/(2(2^b-1)^2)          values far from symmetric (Suresh 17)
     klevel:b:B           ~2             U w <= B/(2(2^b-1)^2)          the same over sqrt(2)|x|, Huffman coded (Suresh 17)
     flexpoint:b:B flex16 b + 32/B       B d > .9998* at 8 bits         integers that hardware or sums like (Koester 17)
     levels:s[:B] qsgd:s  log2(2s+1)+32/B U w <= min(B/s^2, sqrt(B)/s)  QSGD (Alistarh 17); qsgd: whole vector, Elias omega;
                                                                        :max for max-norm buckets (QSGDinf, CGX)
     terngrad[:clip]      2; |quartic .. U w <= (sqrt(n)-1)/2; clip: B  layer by layer, with cg_extra.scale shared (Wen 17)
     trits:s  threelc:s   <= 1.6         B d = .05* at s = 1            3LC (Lim 19), quartic and zero-run code; with memory
     strom:tau            2              B d by tau, .65* at sigma      fixed threshold (Strom 15, MXNet 2-bit); with memory
     sign                 1              B no magnitude                 majority vote, cg_vote (Bernstein 18)
     efsign               1              B d = |x|_1^2/(n |x|_2^2)      with memory: the best of one bit (Karimireddy 19)
     onebit[:B]           1 + 64/B       B d >= efsign's, .63*          1-bit SGD, two means per column (Seide 14); with memory
     natural              9              U w = 1/8                      no scale, no pass before: exponents (Horvath 19)
     dither:b[:B][:max]   b + 32/B       U w = 1/8 + below the least    natural dithering: fine near zero (Horvath 19)
     dynamic8[:B]         8 + 32/B       B d > .999*                    7 decades in a byte (Dettmers 16)
     e4m3[:B] e5m2[:B]    8 + 32/B       B d > 0.998*, 0.99*            fp8 with a scale; cg_fp8()
     mxe4m3 mxe5m2 mxfp4  8.25, 4.25     B d > .998* .995* .98*         OCP microscaling, as other tools read it
     nf4[:B]              4 + 32/B       B d > 0.99*                    normal quantiles (QLoRA)
     mean                 0              B d = mean^2/mean square       what sbc sends
   rotated: a random rotation makes any vector look normal, so few bits serve all of them
     rotate:1 or 2        (transform)    orthonormal                    before any quantizer; 2 rounds where U is promised
     srq:b                b + 64/1024    U w <= (2 ln 1024 + 2)/(2^b-1)^2 stochastic rotated (Suresh 17)
     drive  eden:b        b + 32/1024    nearly U, w = .571 .133 .0358 .0096* best error per bit, no memory needed (Vargaftik 21, 22);
                                         for b = 1 2 3 4                b in steps of 1/32; b < 1 of a random sample
     dct                  (transform)    orthonormal                    64 neighbours to frequencies, before chunked
   selections: all but wangni are B and need memory; d = share of |x|^2 kept: >= r for topk, mstopk, chunked, >= 0.8 r for dgc, sidco
     topk:r               r(34 - log2 r) B                              the standard (Aji 17, Stich 18); exact, ties to the lowest
     threshold:v          as top-k       B                              you know the scale
     dgc:r  sidco:r       as top-k       B; 0.8 r to 1.3 r are kept     threshold from a sample / from a fit (Lin 18, Abdelmoniem 21)
     mstopk:r             as top-k       B                              30 bisections (Shi 21)
     chunked:C:r          as top-k       B                              the largest of every C (SparseLoCo, DeMo)
     sides:r  side:r      as top-k       B                              above and below zero apart; what adaq and sbc select
     wangni:r wangnivar:e as top-k       U, U w = e                     probabilities by magnitude (Wangni 18)
     bins:B               ..             B; cg_extra.aux: gradient       what adacomp selects (Chen 18)
     variance:a           ..             B; cg_extra.aux: variance       where x^2 > a v (Tsuzuku 18)
     blocks:B             ..             exact                          B values at once, if not all zero (OmniReduce 21)
     given                32 k/n         B; cg_extra.support             somebody else's indices (AR-Top-k, Tyagi 23)
   samples: no indices travel, packets of one key add
     randk:r              32 r           U w = n/k - 1                  (Konecny 16); :unscaled is B with d = r, for memory
     permk:N              32/N           U w = N - 1                    N ranks cover the vector (Szlendak 21)
   compositions that have a name
     stc:r                r(9.1 at 1 %)  B  top-k, one magnitude, Golomb (Sattler 19)
     sbc:r                r(8.1 at 1 %)  B  one side, one mean, Golomb (Sattler 18)
     adaq:r               r(9.6 at 1 %)  B  two sides, two means (Dryden 16)
     adacomp:B            ..             B  bins, one magnitude (Chen 18)
     qsparse:r:s          ..             B  top-k, then QSGD levels (Basu 19)
     cocktail:p:r:b       ..             B  random sample, top-k, levels (Wang 23)
     demo:r               ..             B  frequencies of 64, the largest of them (Peng 24)
   matrices, row-major
     lowrank:k:rows:cols  32k(1/rows+1/cols)  B  one power iteration (PowerSGD, Vogels 19); with memory
     atomo:k:rows:cols    the same            U  k singular triples, drawn by size (Wang 18); takes m^3 steps, m the smaller
                                                 side: 0.3 s for 512, 3 s for 1024
   codes: eliasfano bitmap golomb for indices (default: the shorter of the first two); gamma delta omega huffman quartic for values
   flags: nearest (not at random: B), unscaled, max, clip, norm as above.
   Memory means error feedback: what was not sent is added to the next gradient. A biased operator loses it otherwise. An
   unbiased one with w > 1 expands, and must not be used with memory as it is: take unscaled, or divide by 1 + w.

   MEMORY. The caller owns every buffer; nothing here allocates, and there are no globals but one
   word that caches which SIMD instructions the CPU has. cg_bound(op, n) bytes always suffice for
   a packet and cg_scratch(op, n) bytes for scratch (0 without a selection, a matrix or a codec of yours). Any
   alignment and any n is fine, 0 included. Nothing beyond a stated capacity is ever touched.
   At most 40 KiB of stack, if the compiler optimises.

   ERRORS. Every function that can fail returns a cg_status; 0 is success, and cg_status_str says
   what to do. NaN or Inf in x is refused (CG_E_NONFINITE) before anything can remember it; a
   sampling operator, or `given`, looks only at the values it would send. A packet may be any bytes at all:
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
     COMPGRAD_LINKED           the implementation is in another object of the program: COMPGRAD_IMPLEMENTATION has no effect
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
         | scales         | codes               | indices                    |
         +----------------+---------------------+----------------------------+
          <------------- value bytes ----------> <------ index bytes ------->

     v          1, the version of the format
     ix         how indices are written: 0 none, 1 Elias-Fano, 2 bitmap, 3 Golomb-Rice
     stage      id u8, flags u8, arg u16, size u32, value f32: sample, transform, select, quantize,
                code (id: of indices, arg: of values), and one that must be zero
     n          values in x; drawn: what the sample left of them; k: how many were coded. A transform makes `turned` of
                drawn: whole blocks of 1024 or 64, or the factors of a matrix (rows of rank values, then rank rows)
     threshold  smallest magnitude that top-k and its kin kept, else 0
     scales     per bucket f32, or for MX a byte; filled to 4 bytes
     codes      packed: value j at bits [j*b, j*b+b), least significant bit first. natural: per 2048 values the exponents,
                a byte each, then the signs, a bit each. lloyd: per 1024 values first those with the bit more
                with a code: a u32 for every piece of 8192 values (of f32 and bf16: 2048), its form in bits 30..31 (0 packed
                as above, 1 dense, 2 sparse) and its exact length in bits, then the pieces, each in whole u32 words; what
                the forms look like stands at >>codes
     Elias-Fano of k indices below `turned` (or its blocks), l = floor(log2(turned/k)): the k low parts of l bits each, filled
                to 4 bytes; then a bit string with bit (index>>l)+i set for the i-th index, filled to 4 bytes
     bitmap     bit i set if value i is coded
     Golomb     each index as the number of those skipped before it, g: g>>b zeros, a one, the b low bits of g; filled to 4
                bytes; b the least with (1 - k/turned)^(2^b) < (sqrt(5)-1)/2
     checksum   two 64-bit sums over the packet as u32 words w[0..M), the checksum itself as zeros:
                A = sum w[i], B = sum (M-i)*w[i], modulo 2^64. A change within any two words less
                than 16 GiB apart shows (d1+d2 = 0 and (i-j)*d1 = 0 mod 2^64 force d1 = 0), so
                every one- and two-bit error and every burst of up to 33 bits does. */

/* src/core/api.h */
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
#  define CG_ZERO \
    {} /* cg_extra side = CG_ZERO; silent in C and in C++ */
#else
#  define CG_ZERO \
    { 0 }
#endif

/* ---- status ---- */

#define CG_STATUS_LIST_(X)                                                                     \
  X(CG_OK, 0, "ok")                                                                            \
  X(CG_AGAIN, 1, "no error: move the message in cg_io, then call cg_exchange_next again")      \
  X(CG_E_ARG, 10,                                                                              \
      "bad argument: a null pointer, or an operator parameter out of range "                   \
      "(0 < ratio <= 1, 1 <= bits <= 8, bucket >= 1, a slot filled twice, "                    \
      "a code that cannot carry the values), or an aux or support missing")                    \
  X(CG_E_CAPACITY, 11,                                                                         \
      "buffer too small: give cg_bound() bytes for the packet and "                            \
      "cg_scratch() bytes of scratch")                                                         \
  X(CG_E_CORRUPT, 20, "not an intact compgrad packet: send it again")                          \
  X(CG_E_VERSION, 21,                                                                          \
      "packet uses a format version, stage or codec that this build does "                     \
      "not know: update compgrad, or pass the codec in cg_extra.codecs")                       \
  X(CG_E_MISMATCH, 22,                                                                         \
      "packet is intact but for another vector: compare n, tensor, step "                      \
      "and seed on both sides")                                                                \
  X(CG_E_NONFINITE, 30, "NaN or Inf in the gradient: skip this step, or lower the loss scale") \
  X(CG_E_TRANSPORT, 40, "a transport callback failed: see its code in the report")             \
  X(CG_E_PEER, 41, "another rank failed in this step: see its rank in the report")             \
  X(CG_E_MEMORY, 50, "not enough memory given")                                                \
  X(CG_E_STATE, 51, "call out of order")                                                       \
  X(CG_E_UNSUPPORTED, 60, "this combination is not supported")

typedef enum cg_status {
#define CG_STATUS_ENUM_(name, number, text) name = number,
    CG_STATUS_LIST_(CG_STATUS_ENUM_)
#undef CG_STATUS_ENUM_
        CG_STATUS_FORCE_INT_ = 0x7fffffff
} cg_status;

CG_API_ const char *cg_status_str(cg_status status);
CG_API_ const char *cg_version(void);

/* ---- operators: plain data, all zero = dense f32 ---- */

typedef struct cg_stage { /* what fills one slot */
    uint8_t id;           /* 0: the slot is empty */
    uint8_t flags;        /* CG_FLAG_* */
    uint16_t arg;         /* bits */
    uint32_t size;        /* bucket: values that share a scale */
    float value;          /* ratio kept, or threshold */
} cg_stage;

typedef struct cg_op {
    cg_stage sample, transform, select, quantize, code, spare;
    /* 0: from the ratio; else how many values top-k keeps, or random-k without one (at most all) */
    uint64_t k;
    uint64_t reserved; /* 0 */
} cg_op;

enum { CG_SAMPLE_RANDK = 1, CG_SAMPLE_PERMK = 2 };
enum { CG_TRANSFORM_ROTATE = 1, CG_TRANSFORM_DCT, CG_TRANSFORM_LOWRANK, CG_TRANSFORM_ATOMO };
enum {
    CG_SELECT_TOPK = 1,
    CG_SELECT_THRESHOLD = 2,
    CG_SELECT_DGC,
    CG_SELECT_MSTOPK,
    CG_SELECT_SIDCO,
    CG_SELECT_WANGNI,
    CG_SELECT_WANGNIVAR,
    CG_SELECT_BINS,
    CG_SELECT_SIDES,
    CG_SELECT_SIDE,
    CG_SELECT_CHUNKED,
    CG_SELECT_BLOCKS,
    CG_SELECT_GIVEN,
    CG_SELECT_VARIANCE
};
enum {
    CG_QUANTIZE_F16 = 1,
    CG_QUANTIZE_BF16,
    CG_QUANTIZE_SIGN,
    CG_QUANTIZE_EFSIGN,
    CG_QUANTIZE_ABSMAX,
    CG_QUANTIZE_MINMAX,
    CG_QUANTIZE_TERNGRAD,
    CG_QUANTIZE_LEVELS,
    CG_QUANTIZE_FLEXPOINT,
    CG_QUANTIZE_TRITS,
    CG_QUANTIZE_STROM,
    CG_QUANTIZE_ONEBIT,
    CG_QUANTIZE_MEAN,
    CG_QUANTIZE_NATURAL,
    CG_QUANTIZE_DITHER,
    CG_QUANTIZE_DYNAMIC8,
    CG_QUANTIZE_E4M3,
    CG_QUANTIZE_E5M2,
    CG_QUANTIZE_MXFP4,
    CG_QUANTIZE_MXE4M3,
    CG_QUANTIZE_MXE5M2,
    CG_QUANTIZE_NF4,
    CG_QUANTIZE_LLOYD,
    CG_QUANTIZE_FLEX16,
    CG_QUANTIZE_USER = 128 /* to 255: cg_codec.id */
};
enum { /* as 0.1 called them */
    CG_SELECT_WANGNI_VARIANCE = CG_SELECT_WANGNIVAR,
    CG_SELECT_ADACOMP = CG_SELECT_BINS,
    CG_QUANTIZE_TERNARY = CG_QUANTIZE_TERNGRAD,
    CG_QUANTIZE_QSGD = CG_QUANTIZE_LEVELS,
    CG_QUANTIZE_STEPS = CG_QUANTIZE_FLEXPOINT,
    CG_QUANTIZE_STEPS16 = CG_QUANTIZE_FLEX16,
    CG_QUANTIZE_THREELC = CG_QUANTIZE_TRITS
};
enum {
    CG_FLAG_UNSCALED = 1 /* sample */,
    CG_FLAG_NEAREST = 1 /* quantize */,
    CG_FLAG_MAX = 2 /* of qsgd and dither: the largest magnitude, not the L2 norm */,
    CG_FLAG_CLIP = 2 /* of terngrad: at 2.5 sigma */,
    CG_FLAG_NORM = 2 /* of minmax: the range is sqrt(2) times the L2 norm */
};
typedef enum cg_coding {
    /* of indices; auto: the shorter of the first two */
    CG_CODE_AUTO = 0,
    CG_CODE_ELIAS_FANO = 1,
    CG_CODE_BITMAP = 2,
    CG_CODE_GOLOMB = 3,
    /* of values */
    CG_CODE_PACKED = 16,
    CG_CODE_GAMMA,
    CG_CODE_DELTA,
    CG_CODE_OMEGA,
    CG_CODE_HUFFMAN,
    CG_CODE_QUARTIC
} cg_coding;

/* quantizers */
CG_API_ cg_op cg_dense(void);
CG_API_ cg_op cg_f16(void);
CG_API_ cg_op cg_bf16(void);
CG_API_ cg_op cg_absmax(int bits, uint32_t bucket); /* levels of the bucket's largest magnitude */
CG_API_ cg_op cg_minmax(int bits, uint32_t bucket); /* levels from the bucket's minimum to its maximum */
/* the same over sqrt(2) times the L2 norm, Huffman coded (Suresh) */
CG_API_ cg_op cg_klevel(int bits, uint32_t bucket);
CG_API_ cg_op cg_flexpoint(
    int bits, uint32_t bucket);           /* integers of 2..8 or 16 bits times a power of two, to nearest */
CG_API_ cg_op cg_flex16(uint32_t bucket); /* the same with 16 bits */
/* 0..levels of a bucket's L2 norm, either sign; bucket 0: the whole vector */
CG_API_ cg_op cg_levels(int levels, uint32_t bucket);
CG_API_ cg_op cg_qsgd(int levels);                  /* cg_levels of the whole vector, Elias omega */
CG_API_ cg_op cg_sign(void);                        /* +1 or -1; the sign of zero is + */
CG_API_ cg_op cg_efsign(void);                      /* sign times the mean magnitude */
CG_API_ cg_op cg_onebit(uint32_t column);           /* by sign one of two means; 0: one column */
CG_API_ cg_op cg_terngrad(void);                    /* -s, 0 or s with s the largest magnitude */
CG_API_ cg_op cg_trits(float s);                    /* to nearest of -m, 0, m with m = s * largest, 1 <= s < 2 */
CG_API_ cg_op cg_threelc(float s);                  /* cg_trits in quartic code */
CG_API_ cg_op cg_strom(float tau);                  /* +-tau where |x| > tau, else 0; 2 bits */
CG_API_ cg_op cg_natural(void);                     /* powers of two, 9 bits */
CG_API_ cg_op cg_dither(int bits, uint32_t bucket); /* the L2 norm times powers of two; 0: one bucket */
CG_API_ cg_op cg_dynamic8(void);                    /* Dettmers' 8-bit numbers, largest = 1 */
CG_API_ cg_op cg_e4m3(uint32_t bucket);             /* fp8 with a scale per bucket */
CG_API_ cg_op cg_e5m2(uint32_t bucket);
CG_API_ cg_op cg_fp8(void);      /* cg_e4m3(512) */
CG_API_ cg_op cg_fp8_e5m2(void); /* cg_e5m2(512) */
CG_API_ cg_op cg_mxfp4(void);    /* OCP microscaling: 32 to a power of two */
CG_API_ cg_op cg_mxe4m3(void);
CG_API_ cg_op cg_mxe5m2(void);
CG_API_ cg_op cg_nf4(void); /* 16 normal quantiles, 64 to a scale */
/* 2 to 16 normal quantiles, 1 to 4 bits in steps of 1/32; after cg_rotate */
CG_API_ cg_op cg_lloyd(float bits);
CG_API_ cg_op cg_user(int id, int arg, uint32_t size, float value); /* a cg_codec of yours */
/* selections; a ratio is the fraction kept */
CG_API_ cg_op cg_topk(float ratio);          /* largest magnitudes; of equals, the lowest index */
CG_API_ cg_op cg_threshold(float magnitude); /* all with |x| > magnitude */
CG_API_ cg_op cg_dgc(float ratio);           /* a threshold from a sample; 0.8 to 1.3 of the ratio */
CG_API_ cg_op cg_mstopk(float ratio);        /* a threshold by bisection */
/* a threshold from fitted exponentials; 0.8 to 1.3 of the ratio */
CG_API_ cg_op cg_sidco(float ratio);
CG_API_ cg_op cg_wangni(float ratio);      /* each with a probability by its magnitude; so many on average */
CG_API_ cg_op cg_wangnivar(float epsilon); /* the fewest for a variance of epsilon |x|^2 */
CG_API_ cg_op cg_bins(uint32_t bin);       /* what adacomp selects */
CG_API_ cg_op cg_sides(float ratio);       /* the largest above and below zero */
CG_API_ cg_op cg_chunked(float ratio, uint32_t chunk); /* the largest of every chunk */
CG_API_ cg_op cg_blocks(uint32_t block);               /* blocks that are not all zero */
/* where the packet cg_extra.support has values; carries no indices */
CG_API_ cg_op cg_given(void);
CG_API_ cg_op cg_variance(float alpha); /* where x^2 > alpha * cg_extra.aux */
/* samples, from the tag: no indices travel */
CG_API_ cg_op cg_randk(float ratio); /* one of every n/k, times n/k */
/* every rank another one of `workers` neighbours, times workers */
CG_API_ cg_op cg_permk(uint32_t workers);
/* transforms */
CG_API_ cg_op cg_rotate(int rounds); /* 1 or 2 of random signs and Hadamard, in blocks of 1024 */
CG_API_ cg_op cg_dct(void);          /* DCT-II in blocks of 64 */
/* two factors of a row-major matrix: one power iteration */
CG_API_ cg_op cg_lowrank(uint32_t rows, uint32_t cols, int rank);
/* so many of its singular triples, drawn so that the mean is right */
CG_API_ cg_op cg_atomo(uint32_t rows, uint32_t cols, int budget);
/* compositions that have a name */
CG_API_ cg_op cg_srq(int bits); /* rotated, then minmax */
CG_API_ cg_op cg_drive(void);   /* rotated, then signs, scaled to be unbiased */
/* the same with 1 to 4 bits, in steps of 1/32; below 1 of a random sample */
CG_API_ cg_op cg_eden(float bits);
CG_API_ cg_op cg_demo_dct(float ratio);            /* the largest of 64 frequencies */
CG_API_ cg_op cg_stc(float ratio);                 /* top-k as signs of one magnitude, Golomb */
CG_API_ cg_op cg_sbc(float ratio);                 /* the largest above or below zero, as their mean, Golomb */
CG_API_ cg_op cg_adaq(float ratio);                /* the largest above and below zero, as their two means */
CG_API_ cg_op cg_adacomp(uint32_t bin);            /* by bins; cg_extra.aux: the latest gradient, part of x */
CG_API_ cg_op cg_qsparse(float ratio, int levels); /* top-k, then levels of its L2 norm */
CG_API_ cg_op cg_cocktail(float sampled, float ratio, int bits); /* random sample, top-k of it, levels */
/* as 0.1 called them */
CG_API_ cg_op cg_mxfp8(void);                    /* cg_mxe4m3 */
CG_API_ cg_op cg_mxfp8_e5m2(void);               /* cg_mxe5m2 */
CG_API_ cg_op cg_wangni_variance(float epsilon); /* cg_wangnivar */
CG_API_ cg_op cg_demo(float ratio);              /* cg_demo_dct */
/* changes */
CG_API_ cg_op cg_nearest(cg_op op);                  /* rounds to nearest, not at random */
CG_API_ cg_op cg_maxnorm(cg_op op, uint32_t bucket); /* qsgd, dither: of the largest magnitude of every bucket */
CG_API_ cg_op cg_clipped(cg_op op);                  /* terngrad: what is beyond 2.5 standard deviations is cut off */
CG_API_ cg_op cg_unscaled(cg_op op);                 /* random-k without the n/k */
CG_API_ cg_op cg_coded(cg_op op, cg_coding coding);  /* same values, another code */
CG_API_ cg_op cg_then(cg_op first, cg_op second);    /* the slots of both; no slot twice */
CG_API_ CG_CHECKED_ cg_status cg_op_parse(cg_op *op, const char *text);
CG_API_ CG_CHECKED_ cg_status cg_op_print(const cg_op *op, char *text, size_t cap); /* 160 bytes suffice */

/* ---- compress and decode ---- */

typedef struct cg_tag {    /* travels in the packet; NULL = zeros */
    uint64_t seed, step;   /* shared randomness is a function of (seed, step, tensor), */
    uint32_t tensor, rank; /* private randomness (rounding) of that and rank */
} cg_tag;

/* Your own quantizer: const data, id 128..255, used through cg_extra.codecs. It sees the values that
   sample and selection left, as a dense vector. decode is asked for values [first, first + count),
   first a multiple of 2048 and count at most 2048, in any order, more than once, and with OpenMP by
   several threads; it must accept any bytes: return CG_OK with finite values, or CG_E_CORRUPT. Its
   len is what compress wrote, filled with zeros to a multiple of 4. x and in may lie at any address;
   bound must not shrink as n grows. */
typedef struct cg_codec {
    uint8_t id;
    size_t (*bound)(const struct cg_codec *self, const cg_stage *stage, size_t n); /* 0: bad parameters */
    cg_status (*compress)(const struct cg_codec *self, const cg_stage *stage, const cg_tag *tag, const float *x,
        size_t n, void *out, size_t cap, size_t *len);
    cg_status (*decode)(const struct cg_codec *self, const cg_stage *stage, const void *in, size_t len, size_t n,
        size_t first, size_t count, float *out);
    const void *user;
} cg_codec;

enum { CG_DECODE_DIRECT = 1 }; /* dense packets in one pass; if one turns out corrupt, y is unspecified */

typedef struct cg_extra { /* what encoding or decoding may know beside; NULL = nothing */
    const float *aux;     /* n floats: the gradient in x (cg_adacomp), or its variance (cg_variance) */
    const float *scale;   /* scales that all ranks agreed on, in the packet's order, instead of the vector's own */
    const void *support;  /* a packet whose index set is the selection (cg_given), to compress and to decode */
    size_t support_len;
    const cg_codec *const *codecs;
    size_t codec_count;
    uint32_t flags; /* CG_DECODE_* */
} cg_extra;
typedef cg_extra cg_side; /* as 0.1 called it */

typedef struct cg_info {
    cg_op op;
    cg_tag tag;
    uint64_t n, drawn, k; /* as in the packet's header */
    uint32_t index_code;
    float threshold;
    size_t value_bytes, index_bytes, packet_bytes;
} cg_info;

/* A packet of (op, n) is never larger; 0: bad operator, or the size overflows. */
CG_API_ size_t cg_bound(const cg_op *op, size_t n);
CG_API_ size_t cg_bound_with(const cg_op *op, const cg_extra *side, size_t n);
/* Bytes of scratch that cg_compress needs; 0 = none (or a bad operator, which cg_bound tells). */
CG_API_ size_t cg_scratch(const cg_op *op, size_t n);

/* x[0..n) to packet[0..*len). Succeeds if cap >= cg_bound() and x is finite. On error *len is 0. */
CG_API_ CG_CHECKED_ cg_status cg_compress(const cg_op *op, const cg_tag *tag, const float *x, size_t n, void *packet,
    size_t cap, size_t *len, void *scratch, size_t scratch_bytes);
CG_API_ CG_CHECKED_ cg_status cg_compress_with(const cg_op *op, const cg_tag *tag, const cg_extra *side, const float *x,
    size_t n, void *packet, size_t cap, size_t *len, void *scratch, size_t scratch_bytes);

/* y = beta*y + alpha*D(packet), alpha and beta finite; y is not read if beta is 0. The other two are this one. */
CG_API_ CG_CHECKED_ cg_status cg_decode(
    const cg_extra *side, const void *packet, size_t len, float alpha, float beta, float *y, size_t n);
CG_API_ CG_CHECKED_ cg_status cg_decompress(const void *packet, size_t len, float *y, size_t n);
CG_API_ CG_CHECKED_ cg_status cg_decompress_add(const void *packet, size_t len, float weight, float *y, size_t n);
/* y[i] = 0 for every i that the packet has a value for. */
CG_API_ CG_CHECKED_ cg_status cg_clear(const void *packet, size_t len, float *y, size_t n);
/* Reads and checks the header alone: the first CG_HEADER_BYTES are enough to learn packet_bytes. */
CG_API_ CG_CHECKED_ cg_status cg_inspect(const void *packet, size_t len, cg_info *info);

/* ---- packets added without leaving their domain: one vector (n, seed, step, tensor), one sample, one transform
   The result is a packet like any other. Sparse packets merge by index; packed packets of one grid (equal scales:
   cg_extra.scale) add as integers, if 16 bits hold the sum; all others as f32, in their order: y = y + d, then one
   inverse transform when the result is decoded. cg_vote: of up to 1024 cg_sign packets the majority's sign, + for
   a tie. CG_E_UNSUPPORTED: PermK, matrices. */
CG_API_ CG_CHECKED_ cg_status cg_reduce_plan(
    const void *const *packets, const size_t *lens, size_t count, size_t *bound, size_t *scratch);
CG_API_ CG_CHECKED_ cg_status cg_reduce(const void *const *packets, const size_t *lens, size_t count, void *out,
    size_t cap, size_t *len, void *scratch, size_t scratch_bytes);
CG_API_ CG_CHECKED_ cg_status cg_vote(
    const void *const *packets, const size_t *lens, size_t count, void *out, size_t cap, size_t *len);

/* ---- 16-bit gradients: nearest even; what is too large becomes the largest finite value, Inf and
        NaN stay what they are --------------------------------------------------------------- */

CG_API_ void cg_f16_from_f32(const float *x, size_t n, uint16_t *half);
CG_API_ void cg_f16_to_f32(const uint16_t *half, size_t n, float *x);
CG_API_ void cg_bf16_from_f32(const float *x, size_t n, uint16_t *half);
CG_API_ void cg_bf16_to_f32(const uint16_t *half, size_t n, float *x);

/* ---- SIMD: found at run time; all give the same bits, so this is for tests and curiosity ---- */

typedef enum cg_isa { CG_ISA_AUTO = 0, CG_ISA_SCALAR = 1, CG_ISA_AVX2 = 2, CG_ISA_NEON = 3 } cg_isa;
CG_API_ int cg_isa_found(cg_isa isa); /* 1 if this build and CPU have it */
CG_API_ cg_isa cg_isa_used(void);
CG_API_ CG_CHECKED_ cg_status cg_isa_force(cg_isa isa); /* AUTO undoes it; CG_E_UNSUPPORTED if not found */
CG_API_ const char *cg_isa_name(cg_isa isa);

#endif /* COMPGRAD_H */

/* src/core/begin.h */
/* ============================================================================================== */
#if defined(COMPGRAD_IMPLEMENTATION) && !defined(COMPGRAD_IMPLEMENTED_) && !defined(COMPGRAD_LINKED)
#  define COMPGRAD_IMPLEMENTED_ /* a second include with COMPGRAD_IMPLEMENTATION still defined does no harm */

/* src/core/base/platform.h */
/* ---- >>platform ---- */

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
#  define CG_NOINLINE_ static __attribute__((noinline)) /* so that its stack is not there all the time */
#  define CG_OFFERED_ static __attribute__((unused))    /* for other headers: this one alone may not call it */
#  define CG_LIKELY_(c) __builtin_expect(!!(c), 1)
#  define CG_PREFETCH_(p) __builtin_prefetch(p)
#  define CG_PREFETCH_WRITE_(p) __builtin_prefetch(p, 1)
#else
#  define CG_INLINE_ static inline
#  define CG_NOINLINE_ static
#  define CG_OFFERED_ static
#  define CG_LIKELY_(c) (c)
#  define CG_PREFETCH_(p) ((void)(p))
#  define CG_PREFETCH_WRITE_(p) ((void)(p))
#endif

/* src/core/base/fp_begin.h */
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

/* src/core/base/bits.h */
#if CG_AVX2_
#  include <immintrin.h>
#endif
#if CG_NEON_
#  include <arm_neon.h>
#endif

/* clang's back end fuses a product with a sum under -ffp-contract=fast, whatever the pragmas say: hide the product. */
#if defined(__clang__) && defined(__FMA__)
#  define CG_NO_FMA_(product) __asm__("" : "+x"(product))
#elif defined(__clang__) && defined(__aarch64__)
#  define CG_NO_FMA_(product) __asm__("" : "+w"(product))
#else
#  define CG_NO_FMA_(product) ((void)0)
#endif

#define CG_CHUNK_ 2048u        /* values handled while they stay in L1 */
#define CG_BLOCK_ 65536u       /* values per unit of randomness, summation and threads */
#define CG_ROTATE_BLOCK_ 1024u /* values that are rotated together */
#define CG_DCT_BLOCK_ 64u
#define CG_WAVE_ 64u             /* blocks whose partial results are held at once */
#define CG_INF_BITS_ 0x7f800000u /* magnitude bits of Inf; NaN is above */
#define CG_ABS_MASK_ 0x7fffffffu
#define CG_FLT_MAX_ 3.402823466e+38f

/* ---- >>bytes: the wire is little-endian, and floats may lie at any address ---- */

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
CG_INLINE_ void cg_put16_(uint8_t *p, uint32_t v) {
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}
CG_INLINE_ void cg_put32_(uint8_t *p, uint32_t v) {
#if CG_BIG_ENDIAN_
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
    p[2] = (uint8_t)(v >> 16);
    p[3] = (uint8_t)(v >> 24);
#else
    memcpy(p, &v, 4);
#endif
}
CG_INLINE_ void cg_put64_(uint8_t *p, uint64_t v) {
    cg_put32_(p, (uint32_t)v);
    cg_put32_(p + 4, (uint32_t)(v >> 32));
}

CG_INLINE_ uint32_t cg_as_bits_(float f) {
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}
CG_INLINE_ float cg_as_float_(uint32_t u) {
    float f;
    memcpy(&f, &u, 4);
    return f;
}
CG_INLINE_ float cg_saturate_(float v) { /* Inf to the largest finite, by bits: fast math knows no Inf */
    uint32_t u = cg_as_bits_(v);
    return cg_as_float_(u - ((u & CG_ABS_MASK_) == CG_INF_BITS_));
}
CG_INLINE_ float cg_load_(const float *v, size_t i) {
    float f;
    memcpy(&f, (const uint8_t *)v + 4 * i, 4);
    return f;
}
CG_INLINE_ uint32_t cg_load_bits_(const float *v, size_t i) {
    uint32_t u;
    memcpy(&u, (const uint8_t *)v + 4 * i, 4);
    return u;
}
CG_INLINE_ void cg_store_(float *v, size_t i, float f) { memcpy((uint8_t *)v + 4 * i, &f, 4); }
CG_INLINE_ const float *cg_at_(const float *v, size_t i) {
    return (const float *)(const void *)((const uint8_t *)v + 4 * i);
}
CG_INLINE_ float *cg_at_mut_(float *v, size_t i) { return (float *)(void *)((uint8_t *)v + 4 * i); }

CG_INLINE_ size_t cg_min_(size_t a, size_t b) { return a < b ? a : b; }
CG_INLINE_ uint32_t cg_max32_(uint32_t a, uint32_t b) { return a > b ? a : b; }

CG_INLINE_ unsigned cg_log2_(uint64_t v) { /* floor; v > 0 */
#if defined(__GNUC__)
    return 63u - (unsigned)__builtin_clzll(v);
#else
    unsigned l = 0;
    while (v >>= 1) l++;
    return l;
#endif
}
CG_INLINE_ unsigned cg_ctz_(uint64_t v) { /* v > 0 */
#if defined(__GNUC__)
    return (unsigned)__builtin_ctzll(v);
#else
    unsigned c = 0;
    while (!(v & 1)) {
        v >>= 1;
        c++;
    }
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
CG_INLINE_ float cg_times_(float a, float b) {
    float p = a * b;
    CG_NO_FMA_(p);
    return p;
}

/* Sizes: sums and products that stick at the top, so that an overflow is seen once, at the end. */
#define CG_TOO_LARGE_ UINT64_MAX
CG_INLINE_ uint64_t cg_add_sat_(uint64_t a, uint64_t b) { return a > CG_TOO_LARGE_ - b ? CG_TOO_LARGE_ : a + b; }
CG_INLINE_ uint64_t cg_mul_sat_(uint64_t a, uint64_t b) { return b && a > CG_TOO_LARGE_ / b ? CG_TOO_LARGE_ : a * b; }
CG_INLINE_ uint64_t cg_word_bytes_(uint64_t bits) { /* bytes of whole u32 words that hold so many bits */
    return bits == CG_TOO_LARGE_ ? bits : (bits / 32 + (bits % 32 != 0)) * 4;
}
CG_INLINE_ size_t cg_size_or_zero_(uint64_t bytes) { return bytes > SIZE_MAX / 2 ? 0 : (size_t)bytes; }

/* src/core/base/math.h */
/* ---- >>math: correctly rounded, the same bits everywhere; no libm ---- */

CG_INLINE_ int cg_is_finite_(float f) { return (cg_as_bits_(f) & CG_ABS_MASK_) < CG_INF_BITS_; }
CG_INLINE_ float cg_saturate64_(double d) { /* to f32, never Inf */
    return d > (double)CG_FLT_MAX_ ? CG_FLT_MAX_ : d < -(double)CG_FLT_MAX_ ? -CG_FLT_MAX_ : (float)d;
}
#define CG_FADE_BITS_ 0x0d800000u /* the bits of 2^-100 */
CG_INLINE_ float cg_faded_(float v) { return (cg_as_bits_(v) & CG_ABS_MASK_) < CG_FADE_BITS_ ? 0.0f : v; }

CG_INLINE_ double cg_times64_(double a, double b) {
    double p = a * b;
    CG_NO_FMA_(p);
    return p;
}
CG_INLINE_ uint64_t cg_as_bits64_(double d) {
    uint64_t u;
    memcpy(&u, &d, 8);
    return u;
}
CG_INLINE_ double cg_as_double_(uint64_t u) {
    double d;
    memcpy(&d, &u, 8);
    return d;
}
CG_INLINE_ int cg_is_finite64_(double d) { return (cg_as_bits64_(d) >> 52 & 0x7ff) != 0x7ff; }

#if CG_AVX2_ && defined(__SSE2__)
CG_INLINE_ double cg_sqrt_(double x) { return _mm_cvtsd_f64(_mm_sqrt_sd(_mm_setzero_pd(), _mm_set_sd(x))); }
#elif CG_NEON_
CG_INLINE_ double cg_sqrt_(double x) {
    double r;
    __asm__("fsqrt %d0, %d1" : "=w"(r) : "w"(x));
    return r;
}
#else
/* Square root to nearest, of what is not negative and finite; a bit of the root at a time. */
static double cg_sqrt_(double x) {
    uint64_t u = cg_as_bits64_(x), rest = u & (((uint64_t)1 << 52) - 1), root = 0, sum = 0;
    int exponent = (int)(u >> 52);
    if (u == 0 || u >> 63) return 0.0;
    if (exponent) {
        rest |= (uint64_t)1 << 52;
    } else {
        int up = 52 - (int)cg_log2_(rest);
        rest <<= up;
        exponent = 1 - up;
    }
    exponent -= 1023;
    rest <<= 1 + (exponent & 1); /* an even exponent is left, and room for the bit that rounds */
    exponent -= exponent & 1;
    for (uint64_t bit = (uint64_t)1 << 53; bit; bit >>= 1, rest <<= 1) {
        uint64_t t = sum + bit;
        if (t <= rest) {
            sum = t + bit;
            rest -= t;
            root += bit;
        }
    }
    root = (root + (root & 1)) >> 1; /* a tie would need a square of 107 bits */
    return cg_as_double_(root + ((uint64_t)(exponent / 2 + 1022) << 52));
}
#endif

/* Natural logarithm: x = m*2^e, then the series of artanh; good to 1e-15. */
static double cg_ln_(double x) {
    double s, s2, t = 0.0, e = 0.0;
    while (x < 0.7071067811865476) {
        x *= 2.0;
        e -= 0.6931471805599453;
    }
    while (x > 1.4142135623730951) {
        x *= 0.5;
        e += 0.6931471805599453;
    }
    s = (x - 1.0) / (x + 1.0);
    s2 = s * s;
    for (int i = 25; i >= 1; i -= 2) {
        t *= s2;
        CG_NO_FMA_(t);
        t += 1.0 / (double)i;
    }
    t *= 2.0 * s;
    CG_NO_FMA_(t);
    return t + e;
}

/* The mixing step of every hash and random number. */
#define CG_GOLDEN_ 0x9E3779B97F4A7C15u

CG_INLINE_ uint64_t cg_mix64_(uint64_t z) {
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

/* src/core/base/environment.h */
/* ---- >>environment: the caller's rounding mode, flush-to-zero and traps change no bit ---- */

typedef struct cg_fenv_ {
    uint64_t saved;
} cg_fenv_;

CG_INLINE_ cg_fenv_ cg_fenv_enter_(void) {
    cg_fenv_ env = { 0 };
#if (defined(__x86_64__) || defined(__SSE2_MATH__)) && (defined(__GNUC__) || defined(__TINYC__))
    uint32_t now = 0, clean = 0x1f80; /* nearest, no FTZ or DAZ, all traps masked */
    /* stmxcsr (%rax): tcc has no name for it */
    __asm__ __volatile__(".byte 0x0f, 0xae, 0x18" : : "a"(&now) : "memory");
    env.saved = now;
    __asm__ __volatile__(".byte 0x0f, 0xae, 0x10" : : "a"(&clean) : "memory"); /* ldmxcsr (%rax) */
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
CG_INLINE_ void cg_fenv_leave_(cg_fenv_ env) {
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

/* src/core/random.h */
/* ---- >>random: a pure function of (tag, position); part of the wire format ---- */

static uint64_t cg_shared_key_(const cg_tag *tag) {
    uint64_t z = cg_mix64_(tag->seed + CG_GOLDEN_);
    z = cg_mix64_(z ^ (tag->step + 2 * CG_GOLDEN_));
    return cg_mix64_(z ^ (tag->tensor + 3 * CG_GOLDEN_));
}
static uint64_t cg_rank_key_(const cg_tag *tag) {
    return cg_mix64_(cg_shared_key_(tag) ^ (tag->rank + 4 * CG_GOLDEN_));
}

/* Two words per block of 65536 positions: with one, the counters of two blocks would overlap too often. */
typedef struct cg_key_ {
    uint32_t a, b;
} cg_key_;
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
/* Which of a group of `size` neighbours a rank takes: every rank another one. */
CG_INLINE_ uint64_t cg_permk_index_(uint64_t key, uint64_t group, uint32_t size, uint32_t rank) {
    uint64_t start = (uint64_t)cg_hash32_(cg_block_key_(key, group >> 16), (uint32_t)(group & 0xffff)) * size >> 32;
    return start + rank < size ? start + rank : start + rank - size;
}

/* src/core/kernels/table.h */
/* ---- >>kernels
   The scalar kernel is the specification; its SIMD versions stand below it and return the same bits. */

typedef struct cg_checksum_ {
    uint64_t a, b, words;
} cg_checksum_; /* the checksum of some run of words */

typedef struct cg_levels_ {                  /* a bucket's grid; see cg_levels_make_ */
    float prescale, encode_offset, inv_step; /* encode: nearest or noisy integer of (v*prescale - sub)*inv, */
    int32_t zero_symbol, max_symbol;         /* plus bias, within [0, top] */
    float decode_offset, step, postscale;    /* decode: (base + (code - bias)*step)*post, kept finite */
    float range;                             /* what inv is taken of; see cg_encode_levels_ */
    int stochastic;
} cg_levels_;

typedef struct cg_bucketizer_ {
    float inv_scale;
    int32_t limit_count;
    float limit[7];
    uint8_t sign_bit;
} cg_bucketizer_;
typedef struct cg_dither_ {
    float inv_scale;
    unsigned bits;
    int stochastic;
} cg_dither_;

typedef struct cg_bernoulli_ {
    cg_key_ key;
    float threshold, prescale, inv_threshold;
} cg_bernoulli_; /* a value's chance is (|v|*pre)*inv */

typedef struct cg_kernels_ {
    cg_isa isa;
    /* encode; the finite check: each returns the largest magnitude as bits, or where sums show it 0 or Inf's */
    uint32_t (*absmax_bits)(const float *v, size_t n);
    uint32_t (*range)(const float *v, size_t n, float *lo, float *hi);
    uint32_t (*copy)(const float *v, size_t n, uint8_t *out);
    uint32_t (*f16_encode)(const float *v, size_t n, uint8_t *out);
    uint32_t (*bf16_encode)(const float *v, size_t n, uint8_t *out);
    uint32_t (*sign_encode)(const float *v, size_t n, uint8_t *out, double *lanes /* NULL, or adds |v| to 16 */);
    void (*levels_encode)(
        const cg_levels_ *q, cg_key_ key, uint32_t position, const float *v, size_t n, uint8_t *symbols);
    void (*pack)(const uint8_t *symbols, size_t n, unsigned bits, uint8_t *out);
    size_t (*filter)(const float *v, size_t n, uint32_t bound, uint32_t first, uint32_t *index, float *value);
    size_t (*bernoulli)(
        const cg_bernoulli_ *c, const float *v, size_t n, uint32_t first, uint32_t *index, float *value);
    uint32_t (*count_above)(const float *v, size_t n, uint32_t pivot, size_t *above);
    /* decode; stream: out is larger than the caches and aligned to 16 bytes, so go around them */
    void (*unpack)(const uint8_t *in, size_t n, unsigned bits, uint8_t *symbols);
    void (*levels_decode)(const cg_levels_ *q, const uint8_t *symbols, size_t n, float *out, int stream);
    void (*sign_decode)(const uint8_t *in, size_t n, float scale, float *out, int stream);
    void (*f16_decode)(const uint8_t *in, size_t n, float *out, int stream);
    void (*bf16_decode)(const uint8_t *in, size_t n, float *out, int stream);
    uint32_t (*absmax16_bits)(const uint8_t *in, size_t n);
    void (*axpby)(const float *d, size_t n, float alpha, float beta, float *y, int stream);
    void (*move_zero)(float *d, size_t n, float *y, int stream); /* y = d, d = 0 */
    void (*stream_fence)(void);                                  /* after the last that streamed */
    void (*checksum)(cg_checksum_ *sum, const uint8_t *words, size_t count);
    /* transforms and sums */
    void (*rotate_from)(const float *from, float *v, const uint32_t *flips, int rounds, int inverse);
    void (*dct)(float *v, int inverse);
    void (*lane_sum)(const float *v, size_t n, int what, double *lanes);
    void (*axpby_fading)(const float *d, size_t n, float alpha, float beta, float *y, int squares, double *lanes);
    /* more formats */
    void (*bucketize)(
        const cg_bucketizer_ *g, const float *v, size_t n, uint8_t *symbols, const float *centre, double *lanes);
    void (*nf4_search)(const float *limit, float inv, const float *v, size_t n, uint8_t *symbols);
    void (*table_decode)(const float *table, const uint8_t *symbols, size_t n, float *out, int stream);
    void (*fp8_encode)(const float *v, size_t n, float inv, int kind, uint8_t *out);
    void (*fp8_decode)(const uint8_t *in, size_t n, float scale, int kind, float *out, int stream);
    uint32_t (*natural_encode)(const float *v, size_t n, cg_key_ key, uint32_t position, int stochastic, uint8_t *out);
    void (*natural_decode)(const uint8_t *in, size_t n, float *out, int stream);
    void (*dither_encode)(
        const cg_dither_ *q, cg_key_ key, uint32_t position, const float *v, size_t n, uint8_t *symbols);
    void (*dither_decode)(unsigned bits, float scale, const uint8_t *symbols, size_t n, float *out, int stream);
    void (*dynamic8_encode)(const float *v, size_t n, float inv, uint8_t *symbols);
    void (*dynamic8_decode)(const uint8_t *symbols, size_t n, float scale, float *out, int stream);
    void (*strom_encode)(const float *v, size_t n, float tau, uint8_t *symbols);
    void (*vote)(const uint8_t *const *in, size_t count, size_t bytes, uint8_t *out);
    /* matrices */
    void (*project)(const float *m, size_t stride, size_t rows, size_t cols, const double *q, size_t q_stride,
        unsigned rank, double *p, size_t p_stride, const float *ahead);
    void (*project_t)(const float *m, size_t stride, size_t rows, size_t cols, const float *p, size_t p_stride,
        unsigned rank, double *q, size_t q_stride, const float *ahead);
    void (*lowrank_tile)(const float *p, const float *q, size_t q_stride, unsigned rank, size_t rows, size_t count,
        float *out, size_t out_stride, int stream);
} cg_kernels_;

#define CG_PREFETCH_DISTANCE_ 512u /* values between what is used and what memory is asked for: 2 KB */
#if CG_AVX2_
/* Kernels that end in a call for the rest say _mm256_zeroupper() themselves: gcc leaves it out before a tail call. */
#  define CG_TARGET_AVX2_ __attribute__((target("avx2,f16c,popcnt,bmi,bmi2")))
#  define CG_AVX2_INLINE_ static inline __attribute__((always_inline, unused, target("avx2,f16c,popcnt,bmi,bmi2")))
CG_AVX2_INLINE_ __m256i cg_load8_avx2_(const float *v, size_t i) {
    return _mm256_loadu_si256((const __m256i *)(const void *)((const uint8_t *)v + 4 * i));
}
CG_AVX2_INLINE_ __m256i cg_load_bytes_avx2_(const uint8_t *p) {
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}
CG_AVX2_INLINE_ void cg_store_avx2_(void *p, __m256i v) { _mm256_storeu_si256((__m256i *)p, v); }
CG_AVX2_INLINE_ __m256i cg_abs_avx2_(__m256i v) { return _mm256_and_si256(v, _mm256_set1_epi32(0x7fffffff)); }
CG_AVX2_INLINE_ uint32_t cg_hmax_u32_avx2_(__m256i t) {
    __m128i m = _mm_max_epu32(_mm256_castsi256_si128(t), _mm256_extracti128_si256(t, 1));
    m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0x4e));
    m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0xb1));
    return (uint32_t)_mm_cvtsi128_si32(m);
}
/* by 16 bytes: what malloc aligns to */
CG_AVX2_INLINE_ void cg_store_stream_avx2_(float *y, size_t i, __m256i v, int stream) {
    if (stream) {
        _mm_stream_si128((__m128i *)(void *)(y + i), _mm256_castsi256_si128(v));
        _mm_stream_si128((__m128i *)(void *)(y + i + 4), _mm256_extracti128_si256(v, 1));
    } else {
        cg_store_avx2_(cg_at_mut_(y, i), v);
    }
}
CG_AVX2_INLINE_ __m256 cg_mul8_avx2_(__m256 a, __m256 b) {
    __m256 p = _mm256_mul_ps(a, b);
    CG_NO_FMA_(p);
    return p;
}
/* Memory should not rest while a chunk is packed and summed: ask for what comes after it, two lines for 32 values. */
CG_AVX2_INLINE_ void cg_prefetch_ahead_avx2_(const float *v, size_t i) {
    CG_PREFETCH_(cg_at_(v, i + 1536));
    CG_PREFETCH_(cg_at_(v, i + 1552));
}
#endif
#if CG_NEON_
/* Every access is of bytes, as floats may lie at any address. Float arithmetic is written with operators, as
   vmulq_f32 and the like would keep the flags under which the includer may already have read arm_neon.h. */
CG_INLINE_ uint32x4_t cg_load4_neon_(const float *v, size_t i) {
    return vreinterpretq_u32_u8(vld1q_u8((const uint8_t *)v + 4 * i));
}
CG_INLINE_ void cg_store4_neon_(float *v, size_t i, float32x4_t f) {
    vst1q_u8((uint8_t *)v + 4 * i, vreinterpretq_u8_f32(f));
}
CG_INLINE_ float32x4_t cg_as_float_neon_(uint32x4_t v) { return vreinterpretq_f32_u32(v); }
/* a product that is going to be added to something */
CG_INLINE_ float32x4_t cg_times_neon_(float32x4_t a, float32x4_t b) {
    float32x4_t p = a * b;
    CG_NO_FMA_(p);
    return p;
}
CG_INLINE_ uint32x4_t cg_abs_neon_(uint32x4_t v) { return vandq_u32(v, vdupq_n_u32(CG_ABS_MASK_)); }
/* masks, to a byte each */
CG_INLINE_ uint8x16_t cg_narrow_neon_(uint32x4_t a, uint32x4_t b, uint32x4_t c, uint32x4_t d) {
    uint16x8_t ab = vuzp1q_u16(vreinterpretq_u16_u32(a), vreinterpretq_u16_u32(b));
    uint16x8_t cd = vuzp1q_u16(vreinterpretq_u16_u32(c), vreinterpretq_u16_u32(d));
    return vuzp1q_u8(vreinterpretq_u8_u16(ab), vreinterpretq_u8_u16(cd));
}
/* 64 such bytes, to a bit each */
CG_INLINE_ uint64_t cg_movemask_neon_(uint8x16_t a, uint8x16_t b, uint8x16_t c, uint8x16_t d) {
    const uint8x16_t bit = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201u));
    a = vpaddq_u8(vandq_u8(a, bit), vandq_u8(b, bit));
    c = vpaddq_u8(vandq_u8(c, bit), vandq_u8(d, bit));
    a = vpaddq_u8(a, c);
    return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(a, a)), 0);
}
#endif

/* src/core/kernels/formats.h */
/* largest magnitude */
static uint32_t cg_absmax_bits_scalar_(const float *v, size_t n) {
    uint32_t top = 0;
    for (size_t i = 0; i < n; i++) top = cg_max32_(top, cg_load_bits_(v, i) & CG_ABS_MASK_);
    return top;
}
#if CG_AVX2_
CG_AVX2_INLINE_ __m256i cg_absmax_step_avx2_(__m256i top, const float *v, size_t i) {
    CG_PREFETCH_(cg_at_(v, i + CG_PREFETCH_DISTANCE_));
    top = _mm256_max_epu32(top, cg_abs_avx2_(cg_load8_avx2_(v, i)));
    return _mm256_max_epu32(top, cg_abs_avx2_(cg_load8_avx2_(v, i + 8)));
}
CG_TARGET_AVX2_ static uint32_t cg_absmax_bits_avx2_(const float *v, size_t n) {
    __m256i t0 = _mm256_setzero_si256(), t1 = t0, t2 = t0, t3 = t0;
    size_t i = 0;
    /* a long one at four places at once: one stream of reads does not keep memory busy */
    if (n >= 16384) {
        const size_t part = n / 64 * 16;
        for (; i < part; i += 16) {
            t0 = cg_absmax_step_avx2_(t0, v, i);
            t1 = cg_absmax_step_avx2_(t1, v, i + part);
            t2 = cg_absmax_step_avx2_(t2, v, i + 2 * part);
            t3 = cg_absmax_step_avx2_(t3, v, i + 3 * part);
        }
        i = 4 * part;
    }
    for (; i + 32 <= n; i += 32) {
        CG_PREFETCH_(cg_at_(v, i + CG_PREFETCH_DISTANCE_));
        CG_PREFETCH_(cg_at_(v, i + CG_PREFETCH_DISTANCE_ + 16));
        t0 = _mm256_max_epu32(t0, cg_abs_avx2_(cg_load8_avx2_(v, i)));
        t1 = _mm256_max_epu32(t1, cg_abs_avx2_(cg_load8_avx2_(v, i + 8)));
        t2 = _mm256_max_epu32(t2, cg_abs_avx2_(cg_load8_avx2_(v, i + 16)));
        t3 = _mm256_max_epu32(t3, cg_abs_avx2_(cg_load8_avx2_(v, i + 24)));
    }
    t0 = _mm256_max_epu32(_mm256_max_epu32(t0, t1), _mm256_max_epu32(t2, t3));
    return cg_max32_(cg_hmax_u32_avx2_(t0), cg_absmax_bits_scalar_(cg_at_(v, i), n - i));
}
#endif
#if CG_NEON_
static uint32_t cg_absmax_bits_neon_(const float *v, size_t n) {
    uint32x4_t t0 = vdupq_n_u32(0), t1 = t0, t2 = t0, t3 = t0;
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        t0 = vmaxq_u32(t0, cg_abs_neon_(cg_load4_neon_(v, i)));
        t1 = vmaxq_u32(t1, cg_abs_neon_(cg_load4_neon_(v, i + 4)));
        t2 = vmaxq_u32(t2, cg_abs_neon_(cg_load4_neon_(v, i + 8)));
        t3 = vmaxq_u32(t3, cg_abs_neon_(cg_load4_neon_(v, i + 12)));
    }
    t0 = vmaxq_u32(vmaxq_u32(t0, t1), vmaxq_u32(t2, t3));
    return cg_max32_(vmaxvq_u32(t0), cg_absmax_bits_scalar_(cg_at_(v, i), n - i));
}
#endif

/* smallest and largest value: lo and hi are updated */
static uint32_t cg_range_scalar_(const float *v, size_t n, float *lo, float *hi) {
    uint32_t top = 0;
    for (size_t i = 0; i < n; i++) {
        float f = cg_load_(v, i);
        top = cg_max32_(top, cg_as_bits_(f) & CG_ABS_MASK_);
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
    return cg_max32_(cg_hmax_u32_avx2_(_mm256_max_epu32(t0, t1)), cg_range_scalar_(cg_at_(v, i), n - i, lo, hi));
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
        l0 = vminq_f32(l0, cg_as_float_neon_(a));
        l1 = vminq_f32(l1, cg_as_float_neon_(b));
        h0 = vmaxq_f32(h0, cg_as_float_neon_(a));
        h1 = vmaxq_f32(h1, cg_as_float_neon_(b));
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
        top = cg_max32_(top, u & CG_ABS_MASK_);
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
    return cg_max32_(cg_hmax_u32_avx2_(_mm256_max_epu32(t0, t1)), cg_copy_scalar_(cg_at_(v, i), n - i, out + 4 * i));
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
#define CG_F16_LIMIT_ 0x477fefffu /* magnitude bits of the largest value that rounds to 65504 */
CG_INLINE_ uint32_t cg_f16_encode_(uint32_t u) {
    uint32_t sign = u >> 16 & 0x8000u, m = u & CG_ABS_MASK_, shift, rest, h;
    if (m > CG_F16_LIMIT_) {
        if (m < CG_INF_BITS_) return sign | 0x7bffu;
        return sign | (m == CG_INF_BITS_ ? 0x7c00u : 0x7e00u);
    }
    if (m < 0x33000000u) return sign; /* below half of the smallest denormal */
    if (m < 0x38800000u) {            /* becomes denormal */
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
static uint32_t cg_f16_encode_scalar_(const float *v, size_t n, uint8_t *out) {
    uint32_t top = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t u = cg_load_bits_(v, i);
        top = cg_max32_(top, u & CG_ABS_MASK_);
        cg_put16_(out + 2 * i, cg_f16_encode_(u));
    }
    return top;
}
#if CG_AVX2_
CG_TARGET_AVX2_ static uint32_t cg_f16_encode_avx2_(const float *v, size_t n, uint8_t *out) {
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
    top = cg_max32_(
        cg_hmax_u32_avx2_(_mm256_max_epu32(t0, t1)), cg_f16_encode_scalar_(cg_at_(v, i), n - i, out + 2 * i));
    if (top > CG_F16_LIMIT_) cg_f16_encode_scalar_(v, i, out); /* rare: saturate */
    return top;
}
#endif
#if CG_NEON_
static uint32_t cg_f16_encode_neon_(const float *v, size_t n, uint8_t *out) {
    uint32x4_t t0 = vdupq_n_u32(0), t1 = t0;
    uint32_t top;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint32x4_t a = cg_load4_neon_(v, i), b = cg_load4_neon_(v, i + 4);
        vst1q_u8(out + 2 * i,
            vreinterpretq_u8_f16(vcvt_high_f16_f32(vcvt_f16_f32(cg_as_float_neon_(a)), cg_as_float_neon_(b))));
        t0 = vmaxq_u32(t0, cg_abs_neon_(a));
        t1 = vmaxq_u32(t1, cg_abs_neon_(b));
    }
    top = cg_max32_(vmaxvq_u32(vmaxq_u32(t0, t1)), cg_f16_encode_scalar_(cg_at_(v, i), n - i, out + 2 * i));
    if (top > CG_F16_LIMIT_) cg_f16_encode_scalar_(v, i, out); /* rare: saturate */
    return top;
}
#endif

/* bf16: the same; the largest is 0x7f7f */
#define CG_BF16_LIMIT_ 0x7f7f7fffu
CG_INLINE_ uint32_t cg_bf16_encode_(uint32_t u) {
    uint32_t m = u & CG_ABS_MASK_;
    if (m > CG_BF16_LIMIT_) {
        if (m < CG_INF_BITS_) return (u >> 16 & 0x8000u) | 0x7f7fu;
        return u >> 16 | (m > CG_INF_BITS_ ? 0x40u : 0u);
    }
    return (u + 0x7fffu + (u >> 16 & 1u)) >> 16;
}
static uint32_t cg_bf16_encode_scalar_(const float *v, size_t n, uint8_t *out) {
    uint32_t top = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t u = cg_load_bits_(v, i);
        top = cg_max32_(top, u & CG_ABS_MASK_);
        cg_put16_(out + 2 * i, cg_bf16_encode_(u));
    }
    return top;
}
#if CG_AVX2_
CG_AVX2_INLINE_ __m256i cg_bf16_encode8_avx2_(__m256i u) {
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
    return _mm256_srli_epi32(_mm256_add_epi32(_mm256_add_epi32(u, _mm256_set1_epi32(0x7fff)), odd), 16);
}
CG_TARGET_AVX2_ static uint32_t cg_bf16_encode_avx2_(const float *v, size_t n, uint8_t *out) {
    __m256i t0 = _mm256_setzero_si256(), t1 = t0;
    uint32_t top;
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m256i a = cg_load8_avx2_(v, i), b = cg_load8_avx2_(v, i + 8);
        __m256i h = _mm256_packus_epi32(cg_bf16_encode8_avx2_(a), cg_bf16_encode8_avx2_(b));
        CG_PREFETCH_(cg_at_(v, i + 1536));
        cg_store_avx2_(out + 2 * i, _mm256_permute4x64_epi64(h, 0xd8));
        t0 = _mm256_max_epu32(t0, cg_abs_avx2_(a));
        t1 = _mm256_max_epu32(t1, cg_abs_avx2_(b));
    }
    top = cg_max32_(
        cg_hmax_u32_avx2_(_mm256_max_epu32(t0, t1)), cg_bf16_encode_scalar_(cg_at_(v, i), n - i, out + 2 * i));
    if (top > CG_BF16_LIMIT_) cg_bf16_encode_scalar_(v, i, out);
    return top;
}
#endif
#if CG_NEON_
CG_INLINE_ uint32x4_t cg_bf16_round_neon_(uint32x4_t u) { /* what to add for the upper half to be to nearest even */
    return vaddq_u32(vandq_u32(vshrq_n_u32(u, 16), vdupq_n_u32(1)), vdupq_n_u32(0x7fff));
}
static uint32_t cg_bf16_encode_neon_(const float *v, size_t n, uint8_t *out) {
    uint32x4_t t0 = vdupq_n_u32(0), t1 = t0;
    uint32_t top;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint32x4_t a = cg_load4_neon_(v, i), b = cg_load4_neon_(v, i + 4);
        uint16x8_t h = vaddhn_high_u32(vaddhn_u32(a, cg_bf16_round_neon_(a)), b, cg_bf16_round_neon_(b));
        vst1q_u8(out + 2 * i, vreinterpretq_u8_u16(h));
        t0 = vmaxq_u32(t0, cg_abs_neon_(a));
        t1 = vmaxq_u32(t1, cg_abs_neon_(b));
    }
    top = cg_max32_(vmaxvq_u32(vmaxq_u32(t0, t1)), cg_bf16_encode_scalar_(cg_at_(v, i), n - i, out + 2 * i));
    if (top > CG_BF16_LIMIT_) cg_bf16_encode_scalar_(v, i, out);
    return top;
}
#endif

/* src/core/kernels/levels.h */
/* sign bits, straight to the wire; v is the start of a chunk, or 16*i values into one */
static uint32_t cg_sign_encode_scalar_(const float *v, size_t n, uint8_t *out, double *lanes) {
    uint32_t top = 0;
    for (size_t i = 0; i < n; i++) {
        float f = cg_load_(v, i);
        uint32_t m = cg_as_bits_(f) & CG_ABS_MASK_;
        top = cg_max32_(top, m);
        if (lanes) lanes[i % 16] += (double)cg_as_float_(m);
        if (i % 8 == 0) out[i / 8] = 0;
        out[i / 8] = (uint8_t)(out[i / 8] | (unsigned)(f < 0.0f) << i % 8);
    }
    return top;
}
#if CG_AVX2_
CG_AVX2_INLINE_ __m256i cg_negative_avx2_(__m256i v) {
    return _mm256_castps_si256(_mm256_cmp_ps(_mm256_castsi256_ps(v), _mm256_setzero_ps(), _CMP_LT_OQ));
}
CG_AVX2_INLINE_ void cg_lanes_add_avx2_(__m256d *s, __m256 m) {
    s[0] = _mm256_add_pd(s[0], _mm256_cvtps_pd(_mm256_castps256_ps128(m)));
    s[1] = _mm256_add_pd(s[1], _mm256_cvtps_pd(_mm256_extractf128_ps(m, 1)));
}
/* In a sum of magnitudes a NaN or Inf shows, so that one needs no maximum beside it. */
CG_AVX2_INLINE_ size_t cg_sign_encode32_avx2_(
    const float *v, size_t n, uint8_t *out, __m256i *top, __m256d *s, int sums) {
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    __m256i t0 = _mm256_setzero_si256(), t1 = t0;
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        __m256i a = cg_load8_avx2_(v, i), b = cg_load8_avx2_(v, i + 8), c = cg_load8_avx2_(v, i + 16),
                d = cg_load8_avx2_(v, i + 24);
        __m256i ab = _mm256_packs_epi32(cg_negative_avx2_(a), cg_negative_avx2_(b)),
                cd = _mm256_packs_epi32(cg_negative_avx2_(c), cg_negative_avx2_(d));
        __m256i bits = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(ab, cd), order);
        cg_prefetch_ahead_avx2_(v, i);
        cg_put32_(out + i / 8, (uint32_t)_mm256_movemask_epi8(bits));
        a = cg_abs_avx2_(a);
        b = cg_abs_avx2_(b);
        c = cg_abs_avx2_(c);
        d = cg_abs_avx2_(d);
        if (sums) {
            cg_lanes_add_avx2_(s, _mm256_castsi256_ps(a));
            cg_lanes_add_avx2_(s + 2, _mm256_castsi256_ps(b));
            cg_lanes_add_avx2_(s, _mm256_castsi256_ps(c));
            cg_lanes_add_avx2_(s + 2, _mm256_castsi256_ps(d));
        } else {
            t0 = _mm256_max_epu32(t0, _mm256_max_epu32(a, b));
            t1 = _mm256_max_epu32(t1, _mm256_max_epu32(c, d));
        }
    }
    *top = _mm256_max_epu32(t0, t1);
    return i;
}
CG_TARGET_AVX2_ static uint32_t cg_sign_encode_avx2_(const float *v, size_t n, uint8_t *out, double *lanes) {
    __m256i top;
    __m256d s[4];
    uint32_t most;
    size_t i;
    if (lanes) {
        double any = 0.0;
        for (int j = 0; j < 4; j++) s[j] = _mm256_loadu_pd(lanes + 4 * j);
        i = cg_sign_encode32_avx2_(v, n, out, &top, s, 1);
        for (int j = 0; j < 4; j++) _mm256_storeu_pd(lanes + 4 * j, s[j]);
        for (int j = 0; j < 16; j++) any += lanes[j];
        most = any < 1.7e308 ? 0 : CG_INF_BITS_; /* false for NaN as well */
    } else {
        i = cg_sign_encode32_avx2_(v, n, out, &top, s, 0);
        most = cg_hmax_u32_avx2_(top);
    }
    return i < n ? cg_max32_(most, cg_sign_encode_scalar_(cg_at_(v, i), n - i, out + i / 8, lanes)) : most;
}
#endif
#if CG_NEON_
CG_INLINE_ void cg_lanes_add_neon_(float64x2_t *s, uint32x4_t m) {
    s[0] = s[0] + vcvt_f64_f32(vget_low_f32(cg_as_float_neon_(m)));
    s[1] = s[1] + vcvt_high_f64_f32(cg_as_float_neon_(m));
}
/* 16 values: their signs as byte masks; top and, if asked for, the 16 lanes are updated */
CG_INLINE_ uint8x16_t cg_sign_encode16_neon_(const float *v, size_t i, uint32x4_t *top, float64x2x4_t *s, int summed) {
    uint32x4_t a = cg_load4_neon_(v, i), b = cg_load4_neon_(v, i + 4), c = cg_load4_neon_(v, i + 8),
               d = cg_load4_neon_(v, i + 12);
    uint8x16_t mask = cg_narrow_neon_(vcltzq_f32(cg_as_float_neon_(a)), vcltzq_f32(cg_as_float_neon_(b)),
        vcltzq_f32(cg_as_float_neon_(c)), vcltzq_f32(cg_as_float_neon_(d)));
    a = cg_abs_neon_(a);
    b = cg_abs_neon_(b);
    c = cg_abs_neon_(c);
    d = cg_abs_neon_(d);
    *top = vmaxq_u32(*top, vmaxq_u32(vmaxq_u32(a, b), vmaxq_u32(c, d)));
    if (summed) {
        cg_lanes_add_neon_(&s[0].val[0], a);
        cg_lanes_add_neon_(&s[0].val[2], b);
        cg_lanes_add_neon_(&s[1].val[0], c);
        cg_lanes_add_neon_(&s[1].val[2], d);
    }
    return mask;
}
CG_INLINE_ size_t cg_sign_encode64_neon_(
    const float *v, size_t n, uint8_t *out, uint32x4_t *top, float64x2x4_t *s, int summed) {
    size_t i = 0;
    for (; i + 64 <= n; i += 64) {
        uint8x16_t a = cg_sign_encode16_neon_(v, i, top, s, summed),
                   b = cg_sign_encode16_neon_(v, i + 16, top, s, summed);
        uint8x16_t c = cg_sign_encode16_neon_(v, i + 32, top, s, summed),
                   d = cg_sign_encode16_neon_(v, i + 48, top, s, summed);
        cg_put64_(out + i / 8, cg_movemask_neon_(a, b, c, d));
    }
    return i;
}
static uint32_t cg_sign_encode_neon_(const float *v, size_t n, uint8_t *out, double *lanes) {
    uint32x4_t top = vdupq_n_u32(0);
    float64x2x4_t s[2];
    size_t i;
    if (lanes) {
        s[0] = vld1q_f64_x4(lanes);
        s[1] = vld1q_f64_x4(lanes + 8);
        i = cg_sign_encode64_neon_(v, n, out, &top, s, 1);
        vst1q_f64_x4(lanes, s[0]);
        vst1q_f64_x4(lanes + 8, s[1]);
    } else {
        i = cg_sign_encode64_neon_(v, n, out, &top, NULL, 0);
    }
    return cg_max32_(vmaxvq_u32(top), cg_sign_encode_scalar_(cg_at_(v, i), n - i, out + i / 8, lanes));
}
#endif

/* levels: values of one bucket to symbols, a byte each. v within the grid keeps |t| below 2^9, so that
   adding 1.5*2^23 rounds to nearest even; a wild v only meets the clamp. */
CG_INLINE_ uint8_t cg_level_encode_(const cg_levels_ *q, float v, float noise) {
    float t = cg_times_(cg_minus_(cg_times_(v, q->prescale), q->encode_offset), q->inv_step);
    int32_t level;
    if (q->stochastic) t = cg_plus_(t, noise);
    t = t < -1024.0f ? -1024.0f : t > 1024.0f ? 1024.0f : t;
    level = (int32_t)(cg_as_bits_(cg_plus_(t, 12582912.0f)) - 0x4b400000u) + q->zero_symbol;
    return (uint8_t)(level < 0 ? 0 : level > q->max_symbol ? q->max_symbol : level);
}
static void cg_levels_encode_scalar_(
    const cg_levels_ *q, cg_key_ key, uint32_t position, const float *v, size_t n, uint8_t *symbols) {
    for (size_t i = 0; i < n; i++)
        symbols[i] = cg_level_encode_(q, cg_load_(v, i), q->stochastic ? cg_noise_(key, position + (uint32_t)i) : 0.0f);
}
#if CG_AVX2_
CG_AVX2_INLINE_ __m256i cg_hash8_avx2_(cg_key_ key, uint32_t counter) { /* of eight counters on */
    __m256i h = _mm256_add_epi32(_mm256_set1_epi32((int)counter), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    h = _mm256_xor_si256(h, _mm256_set1_epi32((int)key.a));
    h = _mm256_mullo_epi32(_mm256_xor_si256(h, _mm256_srli_epi32(h, 16)), _mm256_set1_epi32(0x7FEB352D));
    h = _mm256_add_epi32(_mm256_xor_si256(h, _mm256_srli_epi32(h, 15)), _mm256_set1_epi32((int)key.b));
    h = _mm256_mullo_epi32(h, _mm256_set1_epi32((int)0x846CA68Bu));
    return _mm256_xor_si256(h, _mm256_srli_epi32(h, 16));
}
CG_AVX2_INLINE_ __m256i cg_levels_encode8_avx2_(
    __m256i v, __m256i h, const cg_levels_ *q, int stochastic, int rescale, int shift) {
    __m256 t = _mm256_castsi256_ps(v);
    if (rescale) t = cg_mul8_avx2_(t, _mm256_set1_ps(q->prescale));
    if (shift) t = _mm256_sub_ps(t, _mm256_set1_ps(q->encode_offset));
    t = cg_mul8_avx2_(t, _mm256_set1_ps(q->inv_step));
    if (stochastic) t = _mm256_add_ps(t, cg_mul8_avx2_(_mm256_cvtepi32_ps(h), _mm256_set1_ps(2.3283064365386963e-10f)));
    /* what is too large becomes the smallest integer */
    return _mm256_cvtps_epi32(_mm256_min_ps(t, _mm256_set1_ps(1024.0f)));
}
CG_AVX2_INLINE_ size_t cg_levels_encode32_avx2_(const cg_levels_ *q, cg_key_ key, uint32_t position, const float *v,
    size_t n, uint8_t *symbols, int stochastic, int rescale, int shift) {
    const __m256i bias = _mm256_set1_epi16((short)q->zero_symbol), most = _mm256_set1_epi8((char)q->max_symbol);
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    const __m256i swap = _mm256_setr_epi8(
        2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        __m256i h = _mm256_setzero_si256(), g = h, a, b, c, d;
        CG_PREFETCH_(cg_at_(v, i + CG_CHUNK_)); /* this chunk has been read already: the next one */
        CG_PREFETCH_(cg_at_(v, i + CG_CHUNK_ + 16));
        if (stochastic) {
            uint32_t p = position + (uint32_t)i;
            h = cg_hash8_avx2_(key, p >> 1);
            g = cg_hash8_avx2_(key, (p >> 1) + 8);
        }
        a = cg_levels_encode8_avx2_(cg_load8_avx2_(v, i), h, q, stochastic, rescale, shift);
        b = cg_levels_encode8_avx2_(
            cg_load8_avx2_(v, i + 8), _mm256_shuffle_epi8(h, swap), q, stochastic, rescale, shift);
        c = cg_levels_encode8_avx2_(cg_load8_avx2_(v, i + 16), g, q, stochastic, rescale, shift);
        d = cg_levels_encode8_avx2_(
            cg_load8_avx2_(v, i + 24), _mm256_shuffle_epi8(g, swap), q, stochastic, rescale, shift);
        a = _mm256_add_epi16(_mm256_packs_epi32(a, b), bias);
        c = _mm256_add_epi16(_mm256_packs_epi32(c, d), bias);
        a = _mm256_permutevar8x32_epi32(_mm256_packus_epi16(a, c), order);
        cg_store_avx2_(symbols + i, _mm256_min_epu8(a, most));
    }
    return i;
}
CG_TARGET_AVX2_ static void cg_levels_encode_avx2_(
    const cg_levels_ *q, cg_key_ key, uint32_t position, const float *v, size_t n, uint8_t *symbols) {
    const int mode = (q->stochastic ? 3 : 0) + (q->prescale != 1.0f ? 2 : q->encode_offset != 0.0f ? 1 : 0);
    size_t head = q->stochastic ? cg_min_(n, (16 - (position & 15)) & 15) : 0, i = 0;
    if (head) cg_levels_encode_scalar_(q, key, position, v, head, symbols);
    v = cg_at_(v, head);
    position += (uint32_t)head;
    symbols += head;
    n -= head;
    switch (mode) {
    case 0: i = cg_levels_encode32_avx2_(q, key, position, v, n, symbols, 0, 0, 0); break;
    case 1: i = cg_levels_encode32_avx2_(q, key, position, v, n, symbols, 0, 0, 1); break;
    case 2: i = cg_levels_encode32_avx2_(q, key, position, v, n, symbols, 0, 1, 1); break;
    case 3: i = cg_levels_encode32_avx2_(q, key, position, v, n, symbols, 1, 0, 0); break;
    case 4: i = cg_levels_encode32_avx2_(q, key, position, v, n, symbols, 1, 0, 1); break;
    default: i = cg_levels_encode32_avx2_(q, key, position, v, n, symbols, 1, 1, 1);
    }
    _mm256_zeroupper();
    if (i < n) cg_levels_encode_scalar_(q, key, position + (uint32_t)i, cg_at_(v, i), n - i, symbols + i);
}
#endif
#if CG_NEON_
CG_INLINE_ uint32x4_t cg_hash4_neon_(cg_key_ key, uint32_t counter) { /* of four counters on */
    const uint32x4_t lane = { 0, 1, 2, 3 };
    uint32x4_t h = veorq_u32(vaddq_u32(vdupq_n_u32(counter), lane), vdupq_n_u32(key.a));
    h = vmulq_u32(veorq_u32(h, vshrq_n_u32(h, 16)), vdupq_n_u32(0x7FEB352Du));
    h = vmulq_u32(vaddq_u32(veorq_u32(h, vshrq_n_u32(h, 15)), vdupq_n_u32(key.b)), vdupq_n_u32(0x846CA68Bu));
    return veorq_u32(h, vshrq_n_u32(h, 16));
}
CG_INLINE_ uint32x4_t cg_swap_halves_neon_(uint32x4_t h) {
    return vreinterpretq_u32_u16(vrev32q_u16(vreinterpretq_u16_u32(h)));
}
CG_INLINE_ int16x4_t cg_levels_encode4_neon_(
    uint32x4_t v, uint32x4_t h, const cg_levels_ *q, int stochastic, int plain) {
    float32x4_t t = cg_as_float_neon_(v);
    if (!plain) t = cg_times_neon_(t, vdupq_n_f32(q->prescale)) - vdupq_n_f32(q->encode_offset);
    t = cg_times_neon_(t, vdupq_n_f32(q->inv_step));
    if (stochastic)
        t = t + cg_times_neon_(vcvtq_f32_s32(vreinterpretq_s32_u32(h)), vdupq_n_f32(2.3283064365386963e-10f));
    /* both saturate, and so does adding the bias: the clamp of a wild v */
    return vqmovn_s32(vcvtnq_s32_f32(t));
}
CG_INLINE_ size_t cg_levels_encode16_neon_(const cg_levels_ *q, cg_key_ key, uint32_t position, const float *v,
    size_t n, uint8_t *symbols, int stochastic, int plain) {
    const int16x8_t bias = vdupq_n_s16((int16_t)q->zero_symbol);
    const uint8x16_t most = vdupq_n_u8((uint8_t)q->max_symbol);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        uint32x4_t h = vdupq_n_u32(0), g = h;
        int16x4_t a, b, c, d;
        if (stochastic) {
            h = cg_hash4_neon_(key, (position + (uint32_t)i) >> 1);
            g = cg_hash4_neon_(key, ((position + (uint32_t)i) >> 1) + 4);
        }
        a = cg_levels_encode4_neon_(cg_load4_neon_(v, i), h, q, stochastic, plain);
        b = cg_levels_encode4_neon_(cg_load4_neon_(v, i + 4), g, q, stochastic, plain);
        c = cg_levels_encode4_neon_(cg_load4_neon_(v, i + 8), cg_swap_halves_neon_(h), q, stochastic, plain);
        d = cg_levels_encode4_neon_(cg_load4_neon_(v, i + 12), cg_swap_halves_neon_(g), q, stochastic, plain);
        vst1q_u8(symbols + i,
            vminq_u8(vcombine_u8(vqmovun_s16(vqaddq_s16(vcombine_s16(a, b), bias)),
                         vqmovun_s16(vqaddq_s16(vcombine_s16(c, d), bias))),
                most));
    }
    return i;
}
static void cg_levels_encode_neon_(
    const cg_levels_ *q, cg_key_ key, uint32_t position, const float *v, size_t n, uint8_t *symbols) {
    const int plain = q->prescale == 1.0f && q->encode_offset == 0.0f;
    size_t head = q->stochastic ? cg_min_(n, (16 - (position & 15)) & 15) : 0, done;
    cg_levels_encode_scalar_(q, key, position, v, head, symbols);
    v = cg_at_(v, head);
    position += (uint32_t)head;
    symbols += head;
    n -= head;
    if (q->stochastic && plain) done = cg_levels_encode16_neon_(q, key, position, v, n, symbols, 1, 1);
    else if (q->stochastic) done = cg_levels_encode16_neon_(q, key, position, v, n, symbols, 1, 0);
    else if (plain) done = cg_levels_encode16_neon_(q, key, position, v, n, symbols, 0, 1);
    else done = cg_levels_encode16_neon_(q, key, position, v, n, symbols, 0, 0);
    cg_levels_encode_scalar_(q, key, position + (uint32_t)done, cg_at_(v, done), n - done, symbols + done);
}
#endif

/* src/core/kernels/pack.h */
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
    } else { /* 2 symbols to 16 bits, 4 to 32, 8 to 64, then the bytes that count side by side */
        const __m256i pair = _mm256_set1_epi16((short)(1 | 1 << (8 + bits))),
                      quad = _mm256_set1_epi32(1 | 1 << (16 + 2 * bits));
        const __m128i up = _mm_cvtsi32_si128((int)(32 - 4 * bits));
        uint8_t move[16];
        __m256i squeeze;
        for (unsigned j = 0; j < 16; j++) move[j] = (uint8_t)(j < bits ? j : j < 2 * bits ? 8 + j - bits : 0x80);
        squeeze = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)move));
        for (; i + 32 <= n && i / 8 * bits + 2 * bits + 16 <= n / 8 * bits; i += 32) {
            uint8_t *to = out + i / 8 * bits;
            __m256i w = _mm256_madd_epi16(_mm256_maddubs_epi16(pair, cg_load_bytes_avx2_(symbols + i)), quad);
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
        /* 2 symbols to 16 bits, 4 to 32, 8 to 64: the upper of two moves down to the lower, of which the low bits are
       kept */
    } else {
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
    const __m128i by4 = _mm_cvtsi32_si128((int)(4 * bits)), by2 = _mm_cvtsi32_si128((int)(2 * bits)),
                  by1 = _mm_cvtsi32_si128((int)bits);
    const __m256i low4 = _mm256_set1_epi64x((long long)(((uint64_t)1 << 4 * bits) - 1)),
                  low2 = _mm256_set1_epi32((int)((1u << 2 * bits) - 1u));
    const __m256i low1 = _mm256_set1_epi16((short)((1u << bits) - 1u));
    uint8_t move[16];
    __m256i spread;
    size_t i = 0;
    if (bits == 4) {
        for (; i + 32 <= n; i += 32) {
            __m256i w = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(const void *)(in + i / 2)));
            cg_store_avx2_(
                symbols + i, _mm256_and_si256(_mm256_or_si256(w, _mm256_slli_epi16(w, 4)), _mm256_set1_epi8(15)));
        }
    }
    for (unsigned j = 0; j < 16; j++) move[j] = (uint8_t)(j % 8 < bits ? j / 8 * bits + j % 8 : 0x80);
    spread = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)move));
    for (; i + 32 <= n && i / 8 * bits + 2 * bits + 16 <= n / 8 * bits; i += 32) {
        const uint8_t *p = in + i / 8 * bits;
        __m256i w = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)p)),
            _mm_loadu_si128((const __m128i *)(const void *)(p + 2 * bits)), 1);
        w = _mm256_shuffle_epi8(w, spread);
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
    } else { /* the reverse of packing; what else is in a byte goes at the end */
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

/* src/core/kernels/filter.h */
/* filter: index (from `first` on) and value of what reaches the bound as magnitude bits; NaN always does.
   Room for n values, and CG_SLACK_ more that may be scribbled on. n <= CG_CHUNK_ */
#define CG_SLACK_ 16u
static size_t cg_filter_scalar_(
    const float *v, size_t n, uint32_t bound, uint32_t first, uint32_t *index, float *value) {
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t u = cg_load_bits_(v, i);
        index[count] = first + (uint32_t)i;
        value[count] = cg_as_float_(u);
        count += (u & CG_ABS_MASK_) >= bound;
    }
    return count;
}
#if CG_AVX2_
CG_AVX2_INLINE_ __m256i cg_filter_mask_avx2_(const float *v, size_t i, __m256i below) {
    return _mm256_cmpgt_epi32(cg_abs_avx2_(cg_load8_avx2_(v, i)), below);
}
CG_AVX2_INLINE_ uint64_t cg_filter_mask32_avx2_(const float *v, size_t i, __m256i below) { /* a bit each */
    __m256i a = _mm256_packs_epi32(cg_filter_mask_avx2_(v, i, below), cg_filter_mask_avx2_(v, i + 8, below));
    __m256i b = _mm256_packs_epi32(cg_filter_mask_avx2_(v, i + 16, below), cg_filter_mask_avx2_(v, i + 24, below));
    a = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(a, b), _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    return (uint32_t)_mm256_movemask_epi8(a);
}
CG_TARGET_AVX2_ static size_t cg_filter_avx2_(
    const float *v, size_t n, uint32_t bound, uint32_t first, uint32_t *index, float *value) {
    const __m256i below = _mm256_set1_epi32((int)(bound - 1u));
    const uint64_t last = (uint64_t)1 << 63;
    size_t count = 0, i = 0;
    for (; i + 64 <= n; i += 64) {
        const uintptr_t ahead = (uintptr_t)v + 4 * i + 8192; /* the hardware stops at every page */
        uint64_t m;
        size_t many, j;
        for (unsigned line = 0; line < 256; line += 64) __builtin_prefetch((const void *)(ahead + line), 0, 2);
        m = cg_filter_mask32_avx2_(v, i, below) | cg_filter_mask32_avx2_(v, i + 32, below) << 32;
        many = (size_t)__builtin_popcountll(m);
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
CG_INLINE_ uint8x16_t cg_filter_mask_neon_(const float *v, size_t i, uint32x4_t bound) { /* 16 values */
    return cg_narrow_neon_(vcgeq_u32(cg_abs_neon_(cg_load4_neon_(v, i)), bound),
        vcgeq_u32(cg_abs_neon_(cg_load4_neon_(v, i + 4)), bound),
        vcgeq_u32(cg_abs_neon_(cg_load4_neon_(v, i + 8)), bound),
        vcgeq_u32(cg_abs_neon_(cg_load4_neon_(v, i + 12)), bound));
}
static size_t cg_filter_neon_(const float *v, size_t n, uint32_t bound, uint32_t first, uint32_t *index, float *value) {
    const uint32x4_t least = vdupq_n_u32(bound);
    const uint64_t last = (uint64_t)1 << 63;
    size_t count = 0, i = 0;
    for (; i + 64 <= n; i += 64) {
        uint64_t m = cg_movemask_neon_(cg_filter_mask_neon_(v, i, least), cg_filter_mask_neon_(v, i + 16, least),
            cg_filter_mask_neon_(v, i + 32, least), cg_filter_mask_neon_(v, i + 48, least));
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

/* coins: what is taken with a chance by its magnitude, a random number for each position modulo 2^16: as it is
   from `unit` on, below as +-unit. Room as for filter. */
CG_INLINE_ size_t cg_bernoulli_one_(
    const cg_bernoulli_ *c, const float *v, size_t i, uint32_t first, uint32_t *index, float *value, size_t count) {
    const float f = cg_load_(v, i), m = cg_as_float_(cg_as_bits_(f) & CG_ABS_MASK_);
    /* 24 bits, below 1 */
    const float coin = (float)(cg_hash32_(c->key, (first + (uint32_t)i) & 0xffffu) >> 8) * 5.9604644775390625e-8f;
    index[count] = first + (uint32_t)i;
    value[count] = m >= c->threshold ? f : cg_as_float_(cg_as_bits_(c->threshold) | (cg_as_bits_(f) & 0x80000000u));
    return count + (coin < cg_times_(cg_times_(m, c->prescale), c->inv_threshold));
}
static size_t cg_bernoulli_scalar_(
    const cg_bernoulli_ *c, const float *v, size_t n, uint32_t first, uint32_t *index, float *value) {
    size_t count = 0;
    for (size_t i = 0; i < n; i++) count = cg_bernoulli_one_(c, v, i, first, index, value, count);
    return count;
}
#if CG_AVX2_
CG_AVX2_INLINE_ uint32_t cg_bernoulli8_avx2_(const cg_bernoulli_ *c, const float *v, size_t i, uint32_t first) {
    const __m256i h = cg_hash8_avx2_(c->key, (first + (uint32_t)i) & 0xffffu);
    const __m256 coin = cg_mul8_avx2_(
        _mm256_cvtepi32_ps(_mm256_srli_epi32(h, 8)), _mm256_set1_ps(5.9604644775390625e-8f));
    const __m256 m = _mm256_castsi256_ps(cg_abs_avx2_(cg_load8_avx2_(v, i)));
    return (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(coin,
        cg_mul8_avx2_(cg_mul8_avx2_(m, _mm256_set1_ps(c->prescale)), _mm256_set1_ps(c->inv_threshold)), _CMP_LT_OQ));
}
CG_TARGET_AVX2_ static size_t cg_bernoulli_avx2_(
    const cg_bernoulli_ *c, const float *v, size_t n, uint32_t first, uint32_t *index, float *value) {
    size_t count = 0, i = 0;
    for (; i + 32 <= n && first % 8 == 0; i += 32) { /* so that eight positions lie in one block */
        uint32_t m = cg_bernoulli8_avx2_(c, v, i, first) | cg_bernoulli8_avx2_(c, v, i + 8, first) << 8 |
            cg_bernoulli8_avx2_(c, v, i + 16, first) << 16 | cg_bernoulli8_avx2_(c, v, i + 24, first) << 24;
        for (; m; m &= m - 1) {
            const size_t j = i + (size_t)__builtin_ctz(m);
            const float f = cg_load_(v, j), size = cg_as_float_(cg_as_bits_(f) & CG_ABS_MASK_);
            index[count] = first + (uint32_t)j;
            value[count++] =
                size >= c->threshold ? f : cg_as_float_(cg_as_bits_(c->threshold) | (cg_as_bits_(f) & 0x80000000u));
        }
    }
    for (; i < n; i++) count = cg_bernoulli_one_(c, v, i, first, index, value, count);
    return count;
}
#endif
#if CG_NEON_
CG_INLINE_ uint32x4_t cg_bernoulli4_neon_(const cg_bernoulli_ *c, const float *v, size_t i, uint32_t first) {
    const uint32x4_t h = cg_hash4_neon_(c->key, (first + (uint32_t)i) & 0xffffu);
    const float32x4_t coin = cg_times_neon_(vcvtq_f32_u32(vshrq_n_u32(h, 8)), vdupq_n_f32(5.9604644775390625e-8f));
    const float32x4_t m = cg_as_float_neon_(cg_abs_neon_(cg_load4_neon_(v, i)));
    return vcltq_f32(coin, cg_times_neon_(cg_times_neon_(m, vdupq_n_f32(c->prescale)), vdupq_n_f32(c->inv_threshold)));
}
static size_t cg_bernoulli_neon_(
    const cg_bernoulli_ *c, const float *v, size_t n, uint32_t first, uint32_t *index, float *value) {
    size_t count = 0, i = 0;
    for (; i + 4 <= n && first % 4 == 0; i += 4) {
        uint32_t take[4];
        if (!vmaxvq_u32(cg_bernoulli4_neon_(c, v, i, first))) continue;
        vst1q_u32(take, cg_bernoulli4_neon_(c, v, i, first));
        for (size_t j = i; j < i + 4; j++)
            if (take[j - i]) count = cg_bernoulli_one_(c, v, j, first, index, value, count);
    }
    for (; i < n; i++) count = cg_bernoulli_one_(c, v, i, first, index, value, count);
    return count;
}
#endif

/* tally: how many magnitudes are above the pivot */
static uint32_t cg_count_above_scalar_(const float *v, size_t n, uint32_t pivot, size_t *above) {
    uint32_t top = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t m = cg_load_bits_(v, i) & CG_ABS_MASK_;
        top = cg_max32_(top, m);
        *above += m > pivot;
    }
    return top;
}
#if CG_AVX2_
CG_TARGET_AVX2_ static uint32_t cg_count_above_avx2_(const float *v, size_t n, uint32_t pivot, size_t *above) {
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
    return cg_max32_(cg_hmax_u32_avx2_(top), cg_count_above_scalar_(cg_at_(v, i), n - i, pivot, above));
}
#endif
#if CG_NEON_
static uint32_t cg_count_above_neon_(const float *v, size_t n, uint32_t pivot, size_t *above) {
    const uint32x4_t p = vdupq_n_u32(pivot);
    uint32x4_t top = vdupq_n_u32(0), gt = top;
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        uint32x4_t m = cg_abs_neon_(cg_load4_neon_(v, i));
        top = vmaxq_u32(top, m);
        gt = vsubq_u32(gt, vcgtq_u32(m, p));
    }
    *above += (size_t)vaddlvq_u32(gt);
    return cg_max32_(vmaxvq_u32(top), cg_count_above_scalar_(cg_at_(v, i), n - i, pivot, above));
}
#endif

/* src/core/kernels/decode.h */
/* unlevels: any symbol is a legal level */
static void cg_levels_decode_scalar_(const cg_levels_ *q, const uint8_t *symbols, size_t n, float *out, int stream) {
    (void)stream;
    for (size_t i = 0; i < n; i++) {
        int32_t level = symbols[i] < q->max_symbol ? symbols[i] : q->max_symbol;
        cg_store_(out, i,
            cg_saturate_(cg_times_(
                cg_plus_(q->decode_offset, cg_times_((float)(level - q->zero_symbol), q->step)), q->postscale)));
    }
}
#if CG_AVX2_
/* The usual bucket needs no rescaling and cannot overflow; a symmetric one starts from 0. */
CG_AVX2_INLINE_ size_t cg_levels_decode16_avx2_(
    const cg_levels_ *q, const uint8_t *symbols, size_t n, float *out, int stream, int usual, int symmetric) {
    const __m256 base = _mm256_set1_ps(q->decode_offset), step = _mm256_set1_ps(q->step),
                 post = _mm256_set1_ps(q->postscale);
    const __m256 most = _mm256_set1_ps(CG_FLT_MAX_), least = _mm256_set1_ps(-CG_FLT_MAX_);
    const __m128i top = _mm_set1_epi8((char)q->max_symbol), bias = _mm_set1_epi8((char)q->zero_symbol);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m128i s = _mm_min_epu8(_mm_loadu_si128((const __m128i *)(const void *)(symbols + i)), top);
        if (symmetric) s = _mm_sub_epi8(s, bias); /* within -127 and 127 */
        for (int j = 0; j < 2; j++, s = _mm_srli_si128(s, 8)) {
            __m256 f = cg_mul8_avx2_(
                _mm256_cvtepi32_ps(symmetric ? _mm256_cvtepi8_epi32(s) : _mm256_cvtepu8_epi32(s)), step);
            if (!usual || !symmetric) f = _mm256_add_ps(base, f);
            if (!usual) f = _mm256_max_ps(_mm256_min_ps(cg_mul8_avx2_(f, post), most), least);
            cg_store_stream_avx2_(out, i + 8 * (size_t)j, _mm256_castps_si256(f), stream);
        }
    }
    return i;
}
CG_TARGET_AVX2_ static void cg_levels_decode_avx2_(
    const cg_levels_ *q, const uint8_t *symbols, size_t n, float *out, int stream) {
    size_t i = q->zero_symbol  ? q->postscale == 1.0f ? cg_levels_decode16_avx2_(q, symbols, n, out, stream, 1, 1)
                                                      : cg_levels_decode16_avx2_(q, symbols, n, out, stream, 0, 1)
         : q->postscale == 1.0f ? cg_levels_decode16_avx2_(q, symbols, n, out, stream, 1, 0)
                               : cg_levels_decode16_avx2_(q, symbols, n, out, stream, 0, 0);
    _mm256_zeroupper();
    if (i < n) cg_levels_decode_scalar_(q, symbols + i, n - i, cg_at_mut_(out, i), 0);
}
#endif
#if CG_NEON_
CG_INLINE_ void cg_levels_decode4_neon_(const cg_levels_ *q, int16x4_t level, float *out, size_t i) {
    float32x4_t f = vcvtq_f32_s32(vmovl_s16(level));
    f = (vdupq_n_f32(q->decode_offset) + cg_times_neon_(f, vdupq_n_f32(q->step))) * vdupq_n_f32(q->postscale);
    cg_store4_neon_(out, i, vmaxq_f32(vminq_f32(f, vdupq_n_f32(CG_FLT_MAX_)), vdupq_n_f32(-CG_FLT_MAX_)));
}
static void cg_levels_decode_neon_(const cg_levels_ *q, const uint8_t *symbols, size_t n, float *out, int stream) {
    const cg_levels_ g = *q; /* a copy: out cannot alias it */
    const uint8x16_t most = vdupq_n_u8((uint8_t)g.max_symbol);
    const int16x8_t bias = vdupq_n_s16((int16_t)g.zero_symbol);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        uint8x16_t s = vminq_u8(vld1q_u8(symbols + i), most);
        int16x8_t a = vsubq_s16(vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(s))), bias);
        int16x8_t b = vsubq_s16(vreinterpretq_s16_u16(vmovl_u8(vget_high_u8(s))), bias);
        cg_levels_decode4_neon_(&g, vget_low_s16(a), out, i);
        cg_levels_decode4_neon_(&g, vget_high_s16(a), out, i + 4);
        cg_levels_decode4_neon_(&g, vget_low_s16(b), out, i + 8);
        cg_levels_decode4_neon_(&g, vget_high_s16(b), out, i + 12);
    }
    cg_levels_decode_scalar_(q, symbols + i, n - i, cg_at_mut_(out, i), stream);
}
#endif

static void cg_sign_decode_scalar_(const uint8_t *in, size_t n, float scale, float *out, int stream) {
    (void)stream;
    for (size_t i = 0; i < n; i++) cg_store_(out, i, in[i / 8] >> i % 8 & 1 ? -scale : scale);
}
#if CG_AVX2_
CG_TARGET_AVX2_ static void cg_sign_decode_avx2_(const uint8_t *in, size_t n, float scale, float *out, int stream) {
    const __m256i minus = _mm256_set1_epi32((int)0x80000000u), plus = _mm256_set1_epi32((int)cg_as_bits_(scale));
    const __m256i s0 = _mm256_setr_epi32(31, 30, 29, 28, 27, 26, 25, 24),
                  s1 = _mm256_sub_epi32(s0, _mm256_set1_epi32(8));
    const __m256i s2 = _mm256_sub_epi32(s1, _mm256_set1_epi32(8)), s3 = _mm256_sub_epi32(s2, _mm256_set1_epi32(8));
    size_t i = 0;
    for (; i + 32 <= n; i += 32) { /* bring each bit to where the sign is */
        __m256i w = _mm256_set1_epi32((int)cg_get32_(in + i / 8));
        cg_store_stream_avx2_(
            out, i, _mm256_xor_si256(_mm256_and_si256(_mm256_sllv_epi32(w, s0), minus), plus), stream);
        cg_store_stream_avx2_(
            out, i + 8, _mm256_xor_si256(_mm256_and_si256(_mm256_sllv_epi32(w, s1), minus), plus), stream);
        cg_store_stream_avx2_(
            out, i + 16, _mm256_xor_si256(_mm256_and_si256(_mm256_sllv_epi32(w, s2), minus), plus), stream);
        cg_store_stream_avx2_(
            out, i + 24, _mm256_xor_si256(_mm256_and_si256(_mm256_sllv_epi32(w, s3), minus), plus), stream);
    }
    _mm256_zeroupper();
    if (i < n) cg_sign_decode_scalar_(in + i / 8, n - i, scale, cg_at_mut_(out, i), 0);
}
#endif
#if CG_NEON_
static void cg_sign_decode_neon_(const uint8_t *in, size_t n, float scale, float *out, int stream) {
    const uint32x4_t minus = vdupq_n_u32(0x80000000u), plus = vdupq_n_u32(cg_as_bits_(scale));
    const int32x4_t low = { 31, 30, 29, 28 }, high = { 27, 26, 25, 24 };
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const uint32x4_t w = vdupq_n_u32(in[i / 8]);
        cg_store4_neon_(out, i, cg_as_float_neon_(veorq_u32(vandq_u32(vshlq_u32(w, low), minus), plus)));
        cg_store4_neon_(out, i + 4, cg_as_float_neon_(veorq_u32(vandq_u32(vshlq_u32(w, high), minus), plus)));
    }
    cg_sign_decode_scalar_(in + i / 8, n - i, scale, cg_at_mut_(out, i), stream);
}
#endif

CG_INLINE_ float cg_f16_decode_(uint32_t h) {
    uint32_t sign = (h & 0x8000u) << 16, m = h & 0x7fffu;
    if (m >= 0x7c00u) return cg_as_float_(sign | (m << 13) | 0x7f800000u | (m > 0x7c00u ? 0x400000u : 0u));
    if (m < 0x400u) return cg_as_float_(sign | cg_as_bits_((float)m * 5.9604644775390625e-8f));
    return cg_as_float_(sign | ((m << 13) + 0x38000000u));
}
static void cg_f16_decode_scalar_(const uint8_t *in, size_t n, float *out, int stream) {
    (void)stream;
    for (size_t i = 0; i < n; i++) cg_store_(out, i, cg_f16_decode_(cg_get16_(in + 2 * i)));
}
#if CG_AVX2_
CG_TARGET_AVX2_ static void cg_f16_decode_avx2_(const uint8_t *in, size_t n, float *out, int stream) {
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        cg_store_stream_avx2_(out, i,
            _mm256_castps_si256(_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(in + 2 * i)))), stream);
    _mm256_zeroupper();
    if (i < n) cg_f16_decode_scalar_(in + 2 * i, n - i, cg_at_mut_(out, i), 0);
}
#endif
#if CG_NEON_
static void cg_f16_decode_neon_(const uint8_t *in, size_t n, float *out, int stream) {
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        float16x8_t h = vreinterpretq_f16_u8(vld1q_u8(in + 2 * i));
        cg_store4_neon_(out, i, vcvt_f32_f16(vget_low_f16(h)));
        cg_store4_neon_(out, i + 4, vcvt_high_f32_f16(h));
    }
    cg_f16_decode_scalar_(in + 2 * i, n - i, cg_at_mut_(out, i), stream);
}
#endif

static void cg_bf16_decode_scalar_(const uint8_t *in, size_t n, float *out, int stream) {
    (void)stream;
    for (size_t i = 0; i < n; i++) cg_store_(out, i, cg_as_float_((uint32_t)cg_get16_(in + 2 * i) << 16));
}
#if CG_AVX2_
CG_TARGET_AVX2_ static void cg_bf16_decode_avx2_(const uint8_t *in, size_t n, float *out, int stream) {
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        cg_store_stream_avx2_(out, i,
            _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)(in + 2 * i))), 16),
            stream);
    _mm256_zeroupper();
    if (i < n) cg_bf16_decode_scalar_(in + 2 * i, n - i, cg_at_mut_(out, i), 0);
}
#endif
#if CG_NEON_
static void cg_bf16_decode_neon_(const uint8_t *in, size_t n, float *out, int stream) {
    const uint16x8_t zero = vdupq_n_u16(0);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint16x8_t h = vreinterpretq_u16_u8(vld1q_u8(in + 2 * i));
        cg_store4_neon_(out, i, vreinterpretq_f32_u16(vzip1q_u16(zero, h)));
        cg_store4_neon_(out, i + 4, vreinterpretq_f32_u16(vzip2q_u16(zero, h)));
    }
    cg_bf16_decode_scalar_(in + 2 * i, n - i, cg_at_mut_(out, i), stream);
}
#endif

/* top16: largest magnitude among 16-bit floats, as bits: the finite check of a packet */
static uint32_t cg_absmax_bits16_scalar_(const uint8_t *in, size_t n) {
    uint32_t top = 0;
    for (size_t i = 0; i < n; i++) top = cg_max32_(top, cg_get16_(in + 2 * i) & 0x7fffu);
    return top;
}
#if CG_AVX2_
CG_TARGET_AVX2_ static uint32_t cg_absmax_bits16_avx2_(const uint8_t *in, size_t n) {
    const __m256i low = _mm256_set1_epi16(0x7fff);
    __m256i t0 = _mm256_setzero_si256(), t1 = t0;
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        t0 = _mm256_max_epu16(t0, _mm256_and_si256(cg_load_bytes_avx2_(in + 2 * i), low));
        t1 = _mm256_max_epu16(t1, _mm256_and_si256(cg_load_bytes_avx2_(in + 2 * i + 32), low));
    }
    t0 = _mm256_max_epu16(t0, t1);
    t0 = _mm256_max_epu32(_mm256_srli_epi32(t0, 16), _mm256_and_si256(t0, _mm256_set1_epi32(0xffff)));
    return cg_max32_(cg_hmax_u32_avx2_(t0), cg_absmax_bits16_scalar_(in + 2 * i, n - i));
}
#endif
#if CG_NEON_
static uint32_t cg_absmax_bits16_neon_(const uint8_t *in, size_t n) {
    const uint16x8_t low = vdupq_n_u16(0x7fff);
    uint16x8_t t0 = vdupq_n_u16(0), t1 = t0;
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        t0 = vmaxq_u16(t0, vandq_u16(vreinterpretq_u16_u8(vld1q_u8(in + 2 * i)), low));
        t1 = vmaxq_u16(t1, vandq_u16(vreinterpretq_u16_u8(vld1q_u8(in + 2 * i + 16)), low));
    }
    return cg_max32_(vmaxvq_u16(vmaxq_u16(t0, t1)), cg_absmax_bits16_scalar_(in + 2 * i, n - i));
}
#endif

/* src/core/kernels/axpby.h */
/* emit: y = beta*y + alpha*d; y is not read if beta is 0 */
static void cg_axpby_scalar_(const float *d, size_t n, float alpha, float beta, float *y, int stream) {
    (void)stream;
    if (beta == 0.0f && alpha == 1.0f) memcpy(y, d, 4 * n);
    else if (beta == 0.0f)
        for (size_t i = 0; i < n; i++) cg_store_(y, i, cg_times_(alpha, cg_load_(d, i)));
    else if (beta == 1.0f)
        for (size_t i = 0; i < n; i++) cg_store_(y, i, cg_plus_(cg_load_(y, i), cg_times_(alpha, cg_load_(d, i))));
    else
        for (size_t i = 0; i < n; i++)
            cg_store_(y, i, cg_plus_(cg_times_(beta, cg_load_(y, i)), cg_times_(alpha, cg_load_(d, i))));
}
#if CG_AVX2_
CG_TARGET_AVX2_ static void cg_axpby_avx2_(const float *d, size_t n, float alpha, float beta, float *y, int stream) {
    const __m256 a = _mm256_set1_ps(alpha), b = _mm256_set1_ps(beta);
    size_t i = 0;
    if (stream && beta == 0.0f) {
        for (; i + 8 <= n; i += 8)
            cg_store_stream_avx2_(
                y, i, _mm256_castps_si256(cg_mul8_avx2_(a, _mm256_castsi256_ps(cg_load8_avx2_(d, i)))), 1);
    } else if (beta == 1.0f) {
        for (; i + 8 <= n; i += 8) {
            __m256 f = _mm256_castsi256_ps(cg_load8_avx2_(y, i));
            cg_store_avx2_(cg_at_mut_(y, i),
                _mm256_castps_si256(_mm256_add_ps(f, cg_mul8_avx2_(a, _mm256_castsi256_ps(cg_load8_avx2_(d, i))))));
        }
    } else if (beta != 0.0f) {
        for (; i + 8 <= n; i += 8) {
            __m256 f = cg_mul8_avx2_(b, _mm256_castsi256_ps(cg_load8_avx2_(y, i)));
            cg_store_avx2_(cg_at_mut_(y, i),
                _mm256_castps_si256(_mm256_add_ps(f, cg_mul8_avx2_(a, _mm256_castsi256_ps(cg_load8_avx2_(d, i))))));
        }
    } else if (alpha != 1.0f) {
        for (; i + 8 <= n; i += 8)
            cg_store_avx2_(
                cg_at_mut_(y, i), _mm256_castps_si256(cg_mul8_avx2_(a, _mm256_castsi256_ps(cg_load8_avx2_(d, i)))));
    }
    _mm256_zeroupper();
    if (i < n) cg_axpby_scalar_(cg_at_(d, i), n - i, alpha, beta, cg_at_mut_(y, i), 0);
}
#endif
#if CG_NEON_
static void cg_axpby_neon_(const float *d, size_t n, float alpha, float beta, float *y, int stream) {
    const float32x4_t a = vdupq_n_f32(alpha), b = vdupq_n_f32(beta);
    size_t i = 0;
    if (beta == 0.0f && alpha == 1.0f) {
        /* a copy, below */
    } else if (beta == 0.0f) {
        for (; i + 4 <= n; i += 4) cg_store4_neon_(y, i, a * cg_as_float_neon_(cg_load4_neon_(d, i)));
    } else {
        const int keep = beta == 1.0f;
        for (; i + 4 <= n; i += 4) {
            float32x4_t f = cg_as_float_neon_(cg_load4_neon_(y, i)),
                        g = cg_times_neon_(a, cg_as_float_neon_(cg_load4_neon_(d, i)));
            cg_store4_neon_(y, i, (keep ? f : cg_times_neon_(b, f)) + g);
        }
    }
    cg_axpby_scalar_(cg_at_(d, i), n - i, alpha, beta, cg_at_mut_(y, i), stream);
}
#endif

/* flush: y = d, d = 0. Zeros go where streaming stores keep the core waiting; a memset after them would cost its
   own time. */
static void cg_move_zero_scalar_(float *d, size_t n, float *y, int stream) {
    (void)stream;
    memcpy(y, d, 4 * n);
    memset(d, 0, 4 * n);
}
#if CG_AVX2_
CG_TARGET_AVX2_ static void cg_move_zero_avx2_(float *d, size_t n, float *y, int stream) {
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m256i v = cg_load8_avx2_(d, i);
        cg_store_avx2_(cg_at_mut_(d, i), _mm256_setzero_si256());
        if (stream) cg_store_stream_avx2_(y, i, v, 1);
        else cg_store_avx2_(cg_at_mut_(y, i), v);
    }
    _mm256_zeroupper();
    cg_move_zero_scalar_(cg_at_mut_(d, i), n - i, cg_at_mut_(y, i), 0);
}
#endif
#if CG_NEON_
static void cg_move_zero_neon_(float *d, size_t n, float *y, int stream) { cg_move_zero_scalar_(d, n, y, stream); }
#endif

static void cg_stream_fence_scalar_(void) {}
#if CG_AVX2_
CG_TARGET_AVX2_ static void cg_stream_fence_avx2_(void) { _mm_sfence(); }
#endif
#if CG_NEON_
static void cg_stream_fence_neon_(void) {}
#endif

/* sum: absorbs whole words */
static void cg_checksum_scalar_(cg_checksum_ *sum, const uint8_t *words, size_t count) {
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
CG_TARGET_AVX2_ static void cg_checksum_avx2_(cg_checksum_ *sum, const uint8_t *words, size_t count) {
    const __m256i low = _mm256_set1_epi64x(0xffffffff);
    __m256i ae = _mm256_setzero_si256(), ao = ae, be = ae, bo = ae;
    uint64_t a[8], b[8], sa = 0, sb = 0;
    const size_t rows = count / 8;
    for (size_t i = 0; i < rows; i++) {
        __m256i w = cg_load_bytes_avx2_(words + 32 * i);
        ae = _mm256_add_epi64(ae, _mm256_and_si256(w, low));
        ao = _mm256_add_epi64(ao, _mm256_srli_epi64(w, 32));
        be = _mm256_add_epi64(be, ae);
        bo = _mm256_add_epi64(bo, ao);
    }
    cg_store_avx2_(a, ae);
    cg_store_avx2_(a + 4, ao);
    cg_store_avx2_(b, be);
    cg_store_avx2_(b + 4, bo);
    for (unsigned j = 0; j < 8; j++) { /* lane j holds words 2j, or 2(j-4)+1, of each row of eight */
        sa += a[j];
        sb += 8 * b[j] - (j < 4 ? 2 * j : 2 * (j - 4) + 1) * a[j];
    }
    sum->b += 8 * (uint64_t)rows * sum->a + sb;
    sum->a += sa;
    sum->words += 8 * (uint64_t)rows;
    cg_checksum_scalar_(sum, words + 32 * rows, count - 8 * rows);
}
#endif
#if CG_NEON_
static void cg_checksum_neon_(cg_checksum_ *sum, const uint8_t *words, size_t count) {
    uint64x2_t a0 = vdupq_n_u64(0), a1 = a0, a2 = a0, a3 = a0, b0 = a0, b1 = a0, b2 = a0, b3 = a0;
    uint64_t a[8], b[8], sa = 0, sb = 0;
    const size_t rows = count / 8;
    for (size_t i = 0; i < rows; i++) {
        uint32x4_t v = vreinterpretq_u32_u8(vld1q_u8(words + 32 * i)),
                   w = vreinterpretq_u32_u8(vld1q_u8(words + 32 * i + 16));
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
    for (unsigned j = 0; j < 8; j++) { /* lane j holds word j of each row of eight */
        sa += a[j];
        sb += 8 * b[j] - j * a[j];
    }
    sum->b += 8 * (uint64_t)rows * sum->a + sb;
    sum->a += sa;
    sum->words += 8 * (uint64_t)rows;
    cg_checksum_scalar_(sum, words + 32 * rows, count - 8 * rows);
}
#endif

/* src/core/kernels/rotate.h */
/* what of total() */
enum { CG_SUM_ABS_, CG_SUM_SQUARES_, CG_SUM_NEGATIVE_, CG_SUM_NONNEGATIVE_, CG_SUM_VALUES_ };

/* rotate: rounds of sign flips and the Hadamard butterfly over 1024 values; the inverse runs them backwards. Bit i
   % 32 of flips[32*r + i/32] negates v[i] in round r. One scaling at the end, by a power of two. The order of the
   strides is part of the wire format, and is what suits vectors of eight and of four: 4, 1, 2, 8, 16, ..., 512.
   What overflows on the way may end as a NaN, whose sign and payload are the machine's. */
#define CG_SIGN_BIT_ 0x80000000u
CG_INLINE_ float cg_rotate_scale_(int rounds) { return rounds == 1 ? 0.03125f : 0.0009765625f; }
static void cg_flip_scalar_(float *v, const uint32_t *flips) {
    for (size_t i = 0; i < CG_ROTATE_BLOCK_; i++)
        cg_store_(v, i, cg_as_float_(cg_load_bits_(v, i) ^ (flips[i / 32] >> i % 32 & 1u) << 31));
}
CG_INLINE_ void cg_butterfly4_(float *v, size_t i, size_t s) { /* strides s and 2s */
    float a = cg_load_(v, i), b = cg_load_(v, i + s), c = cg_load_(v, i + 2 * s), d = cg_load_(v, i + 3 * s);
    float ab = cg_plus_(a, b), ba = cg_minus_(a, b), cd = cg_plus_(c, d), dc = cg_minus_(c, d);
    cg_store_(v, i, cg_plus_(ab, cd));
    cg_store_(v, i + s, cg_plus_(ba, dc));
    cg_store_(v, i + 2 * s, cg_minus_(ab, cd));
    cg_store_(v, i + 3 * s, cg_minus_(ba, dc));
}
static void cg_hadamard_scalar_(float *v) {
    for (size_t i = 0; i < CG_ROTATE_BLOCK_; i += 8) {
        for (size_t j = i; j < i + 4; j++) {
            float a = cg_load_(v, j), b = cg_load_(v, j + 4);
            cg_store_(v, j, cg_plus_(a, b));
            cg_store_(v, j + 4, cg_minus_(a, b));
        }
        cg_butterfly4_(v, i, 1);
        cg_butterfly4_(v, i + 4, 1);
    }
    for (size_t s = 8; s < 512; s *= 4)
        for (size_t i = 0; i < CG_ROTATE_BLOCK_; i += 4 * s)
            for (size_t j = i; j < i + s; j++) cg_butterfly4_(v, j, s);
    for (size_t i = 0; i < 512; i++) {
        float a = cg_load_(v, i), b = cg_load_(v, i + 512);
        cg_store_(v, i, cg_plus_(a, b));
        cg_store_(v, i + 512, cg_minus_(a, b));
    }
}
static void cg_rotate_from_scalar_(const float *from, float *v, const uint32_t *flips, int rounds, int inverse) {
    const float scale = cg_rotate_scale_(rounds);
    if (from != v) memcpy(v, from, 4 * CG_ROTATE_BLOCK_);
    for (int r = 0; r < rounds; r++) {
        if (!inverse) cg_flip_scalar_(v, flips + 32 * r);
        cg_hadamard_scalar_(v);
        if (inverse) cg_flip_scalar_(v, flips + 32 * (rounds - 1 - r));
    }
    for (size_t i = 0; i < CG_ROTATE_BLOCK_; i++) cg_store_(v, i, cg_times_(cg_load_(v, i), scale));
}
#if CG_AVX2_
CG_AVX2_INLINE_ __m256 cg_load8_ps_avx2_(const float *v, size_t i) { return _mm256_castsi256_ps(cg_load8_avx2_(v, i)); }
CG_AVX2_INLINE_ void cg_store8_avx2_(float *v, size_t i, __m256 f) {
    cg_store_avx2_(cg_at_mut_(v, i), _mm256_castps_si256(f));
}
CG_AVX2_INLINE_ __m256 cg_sign_mask_avx2_(int a, int b, int c, int d, int e, int f, int g, int h) { /* -0 where 1 */
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_setr_epi32(a, b, c, d, e, f, g, h), 31));
}
/* Row b holds the signs that the four bits of b ask for, twice, and then their opposites: a vector from 0 on, or
   from 4 on. From memory they cost one xor; bits shifted to their places would cost the pipes that shuffle and add
   three. */
#  define CG_FLIP_ROW_(a, b, c, d) \
    { a, b, c, d, a, b, c, d, a ^ CG_SIGN_BIT_, b ^ CG_SIGN_BIT_, c ^ CG_SIGN_BIT_, d ^ CG_SIGN_BIT_, 0, 0, 0, 0 }
#  define CG_FLIP_ROWS_(c, d)                                                                               \
    CG_FLIP_ROW_(0u, 0u, c, d), CG_FLIP_ROW_(CG_SIGN_BIT_, 0u, c, d), CG_FLIP_ROW_(0u, CG_SIGN_BIT_, c, d), \
        CG_FLIP_ROW_(CG_SIGN_BIT_, CG_SIGN_BIT_, c, d)
static const uint32_t cg_flip_rows_[16][16] = { CG_FLIP_ROWS_(0u, 0u), CG_FLIP_ROWS_(CG_SIGN_BIT_, 0u),
    CG_FLIP_ROWS_(0u, CG_SIGN_BIT_), CG_FLIP_ROWS_(CG_SIGN_BIT_, CG_SIGN_BIT_) };
CG_AVX2_INLINE_ __m128i cg_load4_avx2_(const void *p) { return _mm_loadu_si128((const __m128i *)p); }
CG_AVX2_INLINE_ __m256 cg_flip8_avx2_(__m256 x, uint32_t byte) {
    const __m128i low = cg_load4_avx2_(cg_flip_rows_[byte & 15u]), high = cg_load4_avx2_(cg_flip_rows_[byte >> 4]);
    return _mm256_xor_ps(x, _mm256_castsi256_ps(_mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1)));
}
CG_AVX2_INLINE_ void cg_butterfly_avx2_(__m256 *a, __m256 *b) {
    __m256 d = _mm256_sub_ps(*a, *b);
    *a = _mm256_add_ps(*a, *b);
    *b = d;
}
CG_AVX2_INLINE_ void cg_butterfly8_avx2_(__m256 *x) { /* three strides between eight vectors */
    cg_butterfly_avx2_(x, x + 1);
    cg_butterfly_avx2_(x + 2, x + 3);
    cg_butterfly_avx2_(x + 4, x + 5);
    cg_butterfly_avx2_(x + 6, x + 7);
    cg_butterfly_avx2_(x, x + 2);
    cg_butterfly_avx2_(x + 1, x + 3);
    cg_butterfly_avx2_(x + 4, x + 6);
    cg_butterfly_avx2_(x + 5, x + 7);
    cg_butterfly_avx2_(x, x + 4);
    cg_butterfly_avx2_(x + 1, x + 5);
    cg_butterfly_avx2_(x + 2, x + 6);
    cg_butterfly_avx2_(x + 3, x + 7);
}
/* Strides 4, 1, 2 within a vector: the pair's other value, plus this one or minus it. Loads can repeat a half
   without a shuffle. */
CG_AVX2_INLINE_ __m256 cg_hadamard8_avx2_(const float *v, size_t i, const uint32_t *flips, int flip) {
    __m256 x = _mm256_castsi256_ps(_mm256_broadcastsi128_si256(cg_load4_avx2_(cg_at_(v, i))));
    __m256 y = _mm256_castsi256_ps(_mm256_broadcastsi128_si256(cg_load4_avx2_(cg_at_(v, i + 4))));
    if (flip) {
        const uint32_t byte = ((const uint8_t *)flips)[i / 8];
        x = _mm256_xor_ps(x, _mm256_castsi256_ps(cg_load_bytes_avx2_((const uint8_t *)cg_flip_rows_[byte & 15u])));
        y = _mm256_xor_ps(y, _mm256_castsi256_ps(cg_load_bytes_avx2_((const uint8_t *)(cg_flip_rows_[byte >> 4] + 4))));
    } else {
        y = _mm256_xor_ps(y, cg_sign_mask_avx2_(0, 0, 0, 0, 1, 1, 1, 1));
    }
    x = _mm256_add_ps(x, y);
    x = _mm256_add_ps(_mm256_permute_ps(x, 0xb1), _mm256_xor_ps(x, cg_sign_mask_avx2_(0, 1, 0, 1, 0, 1, 0, 1)));
    return _mm256_add_ps(_mm256_permute_ps(x, 0x4e), _mm256_xor_ps(x, cg_sign_mask_avx2_(0, 0, 1, 1, 0, 0, 1, 1)));
}
/* strides up to 32 */
CG_AVX2_INLINE_ void cg_hadamard_short64_avx2_(
    const float *from, float *v, const uint32_t *flips, const float *ahead, int flip) {
    for (size_t i = 0; i < CG_ROTATE_BLOCK_; i += 64) {
        __m256 x[8];
        CG_PREFETCH_(cg_at_(ahead, i / 2));
        CG_PREFETCH_(cg_at_(ahead, i / 2 + 16));
        x[0] = cg_hadamard8_avx2_(from, i, flips, flip);
        x[1] = cg_hadamard8_avx2_(from, i + 8, flips, flip);
        x[2] = cg_hadamard8_avx2_(from, i + 16, flips, flip);
        x[3] = cg_hadamard8_avx2_(from, i + 24, flips, flip);
        x[4] = cg_hadamard8_avx2_(from, i + 32, flips, flip);
        x[5] = cg_hadamard8_avx2_(from, i + 40, flips, flip);
        x[6] = cg_hadamard8_avx2_(from, i + 48, flips, flip);
        x[7] = cg_hadamard8_avx2_(from, i + 56, flips, flip);
        cg_butterfly8_avx2_(x);
        cg_store8_avx2_(v, i, x[0]);
        cg_store8_avx2_(v, i + 8, x[1]);
        cg_store8_avx2_(v, i + 16, x[2]);
        cg_store8_avx2_(v, i + 24, x[3]);
        cg_store8_avx2_(v, i + 32, x[4]);
        cg_store8_avx2_(v, i + 40, x[5]);
        cg_store8_avx2_(v, i + 48, x[6]);
        cg_store8_avx2_(v, i + 56, x[7]);
    }
}
/* strides 64, 128, 256 of eight rows of 64 */
CG_AVX2_INLINE_ void cg_hadamard_rows_avx2_(const float *v, size_t i, __m256 *x) {
    x[0] = cg_load8_ps_avx2_(v, i);
    x[1] = cg_load8_ps_avx2_(v, i + 64);
    x[2] = cg_load8_ps_avx2_(v, i + 128);
    x[3] = cg_load8_ps_avx2_(v, i + 192);
    x[4] = cg_load8_ps_avx2_(v, i + 256);
    x[5] = cg_load8_ps_avx2_(v, i + 320);
    x[6] = cg_load8_ps_avx2_(v, i + 384);
    x[7] = cg_load8_ps_avx2_(v, i + 448);
    cg_butterfly8_avx2_(x);
}
CG_AVX2_INLINE_ void cg_hadamard_last_avx2_(
    float *v, size_t i, __m256 b, const uint32_t *flips, __m256 scale, int flip, int last) {
    __m256 a = cg_load8_ps_avx2_(v, i);
    cg_butterfly_avx2_(&a, &b);
    if (flip) {
        a = cg_flip8_avx2_(a, ((const uint8_t *)flips)[i / 8]);
        b = cg_flip8_avx2_(b, ((const uint8_t *)flips)[i / 8 + 64]);
    }
    cg_store8_avx2_(v, i, last ? _mm256_mul_ps(a, scale) : a);
    cg_store8_avx2_(v, i + 512, last ? _mm256_mul_ps(b, scale) : b);
}
/* Strides 64 to 512. Sixteen vectors and a spare one do not fit the registers: half of them waits in its place. */
CG_AVX2_INLINE_ void cg_hadamard_long64_avx2_(
    float *v, const uint32_t *flips, float times, const float *ahead, int flip, int last) {
    const __m256 scale = _mm256_set1_ps(times);
    for (size_t i = 0; i < 64; i += 8) {
        __m256 x[8];
        CG_PREFETCH_(cg_at_(ahead, 8 * i));
        CG_PREFETCH_(cg_at_(ahead, 8 * i + 16));
        CG_PREFETCH_(cg_at_(ahead, 8 * i + 32));
        CG_PREFETCH_(cg_at_(ahead, 8 * i + 48));
        cg_hadamard_rows_avx2_(v, i, x);
        cg_store8_avx2_(v, i, x[0]);
        cg_store8_avx2_(v, i + 64, x[1]);
        cg_store8_avx2_(v, i + 128, x[2]);
        cg_store8_avx2_(v, i + 192, x[3]);
        cg_store8_avx2_(v, i + 256, x[4]);
        cg_store8_avx2_(v, i + 320, x[5]);
        cg_store8_avx2_(v, i + 384, x[6]);
        cg_store8_avx2_(v, i + 448, x[7]);
        cg_hadamard_rows_avx2_(v, i + 512, x);
        cg_hadamard_last_avx2_(v, i, x[0], flips, scale, flip, last);
        cg_hadamard_last_avx2_(v, i + 64, x[1], flips, scale, flip, last);
        cg_hadamard_last_avx2_(v, i + 128, x[2], flips, scale, flip, last);
        cg_hadamard_last_avx2_(v, i + 192, x[3], flips, scale, flip, last);
        cg_hadamard_last_avx2_(v, i + 256, x[4], flips, scale, flip, last);
        cg_hadamard_last_avx2_(v, i + 320, x[5], flips, scale, flip, last);
        cg_hadamard_last_avx2_(v, i + 384, x[6], flips, scale, flip, last);
        cg_hadamard_last_avx2_(v, i + 448, x[7], flips, scale, flip, last);
    }
}
CG_TARGET_AVX2_ static void cg_hadamard_short_avx2_(const float *from, float *v, const float *ahead) {
    cg_hadamard_short64_avx2_(from, v, NULL, ahead, 0);
}
CG_TARGET_AVX2_ static void cg_hadamard_short_flip_avx2_(
    const float *from, float *v, const uint32_t *flips, const float *ahead) {
    cg_hadamard_short64_avx2_(from, v, flips, ahead, 1);
}
CG_TARGET_AVX2_ static void cg_hadamard_long_avx2_(float *v, const float *ahead) {
    cg_hadamard_long64_avx2_(v, NULL, 1.0f, ahead, 0, 0);
}
CG_TARGET_AVX2_ static void cg_hadamard_long_scale_avx2_(float *v, float scale, const float *ahead) {
    cg_hadamard_long64_avx2_(v, NULL, scale, ahead, 0, 1);
}
CG_TARGET_AVX2_ static void cg_hadamard_long_flip_avx2_(
    float *v, const uint32_t *flips, float scale, const float *ahead) {
    cg_hadamard_long64_avx2_(v, flips, scale, ahead, 1, 1);
}
/* Memory should not rest while the block is turned: meanwhile the next one is asked for, half of it in each pass
   of the first round. */
CG_TARGET_AVX2_ static void cg_rotate_from_avx2_(
    const float *from, float *v, const uint32_t *flips, int rounds, int inverse) {
    const float scale = cg_rotate_scale_(rounds), *ahead = from == v ? v : cg_at_(from, CG_ROTATE_BLOCK_);
    if (inverse) cg_hadamard_short_avx2_(from, v, ahead);
    else cg_hadamard_short_flip_avx2_(from, v, flips, ahead);
    ahead = cg_at_(ahead, 512);
    if (rounds == 2) {
        cg_hadamard_long_avx2_(v, ahead);
        cg_hadamard_short_flip_avx2_(v, v, flips + 32, v);
        ahead = v;
    }
    if (inverse) cg_hadamard_long_flip_avx2_(v, flips, scale, ahead);
    else cg_hadamard_long_scale_avx2_(v, scale, ahead);
}
#endif
#if CG_NEON_
CG_INLINE_ float32x4_t cg_flip4_neon_(float32x4_t x, uint32_t word) { /* the four low bits */
    const int32x4_t up = { 31, 30, 29, 28 };
    return cg_as_float_neon_(
        veorq_u32(vreinterpretq_u32_f32(x), vandq_u32(vshlq_u32(vdupq_n_u32(word), up), vdupq_n_u32(CG_SIGN_BIT_))));
}
CG_INLINE_ void cg_butterfly_neon_(float32x4_t *a, float32x4_t *b) {
    float32x4_t d = *a - *b;
    *a = *a + *b;
    *b = d;
}
CG_INLINE_ void cg_butterfly_x4_neon_(float32x4_t *x, size_t s) { /* four pairs, each s apart */
    cg_butterfly_neon_(x, x + s);
    cg_butterfly_neon_(x + (s == 1 ? 2 : 1), x + s + (s == 1 ? 2 : 1));
    cg_butterfly_neon_(x + (s == 4 ? 2 : 4), x + s + (s == 4 ? 2 : 4));
    cg_butterfly_neon_(x + (s == 4 ? 3 : s == 2 ? 5 : 6), x + s + (s == 4 ? 3 : s == 2 ? 5 : 6));
}
/* strides 1, 2: the pair's other value, plus this one or minus it */
CG_INLINE_ float32x4_t cg_hadamard4_neon_(float32x4_t x) {
    const uint32x4_t odd = { 0, CG_SIGN_BIT_, 0, CG_SIGN_BIT_ }, high = { 0, 0, CG_SIGN_BIT_, CG_SIGN_BIT_ };
    x = vrev64q_f32(x) + cg_as_float_neon_(veorq_u32(vreinterpretq_u32_f32(x), odd));
    return vextq_f32(x, x, 2) + cg_as_float_neon_(veorq_u32(vreinterpretq_u32_f32(x), high));
}
/* strides up to 16 */
CG_INLINE_ void cg_hadamard_short32_neon_(const float *v, size_t i, const uint32_t *flips, float32x4_t *x, int flip) {
    x[0] = cg_as_float_neon_(cg_load4_neon_(v, i));
    x[1] = cg_as_float_neon_(cg_load4_neon_(v, i + 4));
    x[2] = cg_as_float_neon_(cg_load4_neon_(v, i + 8));
    x[3] = cg_as_float_neon_(cg_load4_neon_(v, i + 12));
    x[4] = cg_as_float_neon_(cg_load4_neon_(v, i + 16));
    x[5] = cg_as_float_neon_(cg_load4_neon_(v, i + 20));
    x[6] = cg_as_float_neon_(cg_load4_neon_(v, i + 24));
    x[7] = cg_as_float_neon_(cg_load4_neon_(v, i + 28));
    if (flip) {
        const uint32_t w = flips[i / 32];
        x[0] = cg_flip4_neon_(x[0], w);
        x[1] = cg_flip4_neon_(x[1], w >> 4);
        x[2] = cg_flip4_neon_(x[2], w >> 8);
        x[3] = cg_flip4_neon_(x[3], w >> 12);
        x[4] = cg_flip4_neon_(x[4], w >> 16);
        x[5] = cg_flip4_neon_(x[5], w >> 20);
        x[6] = cg_flip4_neon_(x[6], w >> 24);
        x[7] = cg_flip4_neon_(x[7], w >> 28);
    }
    cg_butterfly_x4_neon_(x, 1);
    x[0] = cg_hadamard4_neon_(x[0]);
    x[1] = cg_hadamard4_neon_(x[1]);
    x[2] = cg_hadamard4_neon_(x[2]);
    x[3] = cg_hadamard4_neon_(x[3]);
    x[4] = cg_hadamard4_neon_(x[4]);
    x[5] = cg_hadamard4_neon_(x[5]);
    x[6] = cg_hadamard4_neon_(x[6]);
    x[7] = cg_hadamard4_neon_(x[7]);
    cg_butterfly_x4_neon_(x, 2);
    cg_butterfly_x4_neon_(x, 4);
}
CG_INLINE_ void cg_hadamard_short64_neon_(float *v, const uint32_t *flips, int flip) {
    for (size_t i = 0; i < CG_ROTATE_BLOCK_; i += 64) {
        float32x4_t x[8], y[8];
        cg_hadamard_short32_neon_(v, i, flips, x, flip);
        cg_hadamard_short32_neon_(v, i + 32, flips, y, flip);
        for (size_t j = 0; j < 8; j++) {
            cg_store4_neon_(v, i + 4 * j, x[j] + y[j]);
            cg_store4_neon_(v, i + 4 * j + 32, x[j] - y[j]);
        }
    }
}
CG_INLINE_ void cg_hadamard_rows_neon_(const float *v, size_t i, float32x4_t *x) {
    x[0] = cg_as_float_neon_(cg_load4_neon_(v, i));
    x[1] = cg_as_float_neon_(cg_load4_neon_(v, i + 64));
    x[2] = cg_as_float_neon_(cg_load4_neon_(v, i + 128));
    x[3] = cg_as_float_neon_(cg_load4_neon_(v, i + 192));
    x[4] = cg_as_float_neon_(cg_load4_neon_(v, i + 256));
    x[5] = cg_as_float_neon_(cg_load4_neon_(v, i + 320));
    x[6] = cg_as_float_neon_(cg_load4_neon_(v, i + 384));
    x[7] = cg_as_float_neon_(cg_load4_neon_(v, i + 448));
    cg_butterfly_x4_neon_(x, 1);
    cg_butterfly_x4_neon_(x, 2);
    cg_butterfly_x4_neon_(x, 4);
}
CG_INLINE_ void cg_hadamard_long64_neon_(float *v, const uint32_t *flips, float times, int flip) {
    const float32x4_t scale = vdupq_n_f32(times);
    for (size_t i = 0; i < 64; i += 4) {
        float32x4_t x[8], y[8];
        cg_hadamard_rows_neon_(v, i, x);
        cg_hadamard_rows_neon_(v, i + 512, y);
        for (size_t j = 0; j < 8; j++) {
            float32x4_t a = x[j] + y[j], b = x[j] - y[j];
            const size_t at = i + 64 * j;
            if (flip) {
                a = cg_flip4_neon_(a, flips[at / 32] >> at % 32);
                b = cg_flip4_neon_(b, flips[at / 32 + 16] >> at % 32);
            }
            cg_store4_neon_(v, at, a * scale);
            cg_store4_neon_(v, at + 512, b * scale);
        }
    }
}
static void cg_rotate_from_neon_(const float *from, float *v, const uint32_t *flips, int rounds, int inverse) {
    const float scale = cg_rotate_scale_(rounds);
    if (from != v) memcpy(v, from, 4 * CG_ROTATE_BLOCK_);
    if (inverse) cg_hadamard_short64_neon_(v, NULL, 0);
    else cg_hadamard_short64_neon_(v, flips, 1);
    if (rounds == 2) {
        cg_hadamard_long64_neon_(v, NULL, 1.0f, 0);
        cg_hadamard_short64_neon_(v, flips + 32, 1);
    }
    if (inverse) cg_hadamard_long64_neon_(v, flips, scale, 1);
    else cg_hadamard_long64_neon_(v, NULL, scale, 0);
}
#endif

/* src/core/kernels/sums.h */
/* total: adds to 16 lanes, by position, magnitudes (0), squares (1), what is below 0 (2), what is not (3), or the
   values (4) */
CG_INLINE_ double cg_lanes_reduce_(double *lanes) {
    for (int w = 8; w; w /= 2)
        for (int i = 0; i < w; i++) lanes[i] += lanes[i + w];
    return lanes[0];
}
static void cg_lane_sum_scalar_(const float *v, size_t n, int what, double *lanes) {
    for (size_t i = 0; i < n; i++) {
        const uint32_t u = cg_load_bits_(v, i);
        const double d = (double)cg_as_float_(u);
        double *lane = lanes + i % 16;
        switch (what) {
        case 0: *lane += (double)cg_as_float_(u & CG_ABS_MASK_); break;
        case 1:
            *lane += d * d;
            break; /* exact: fused or not, the sum is the same */
        /* f < 0, f >= 0, by bits: of floats clang makes a minimum (AArch64), which thinks otherwise of -0 and
               NaN */
        case 2: *lane += (double)cg_as_float_(u - 0x80000001u < CG_INF_BITS_ ? u : 0u); break;
        case 3: *lane += (double)cg_as_float_(u <= CG_INF_BITS_ || u == CG_SIGN_BIT_ ? u : 0u); break;
        default: *lane += d;
        }
    }
}
#if CG_AVX2_
CG_AVX2_INLINE_ __m256d cg_lane_sum_term_avx2_(const float *v, size_t i, int what) {
    const __m256d d = _mm256_cvtps_pd(_mm_castsi128_ps(cg_load4_avx2_(cg_at_(v, i))));
    switch (what) {
    case 0: return _mm256_andnot_pd(_mm256_set1_pd(-0.0), d);
    case 1: return _mm256_mul_pd(d, d);
    case 2: return _mm256_and_pd(d, _mm256_cmp_pd(d, _mm256_setzero_pd(), _CMP_LT_OQ));
    case 3: return _mm256_and_pd(d, _mm256_cmp_pd(d, _mm256_setzero_pd(), _CMP_GE_OQ));
    default: return d;
    }
}
CG_AVX2_INLINE_ size_t cg_lane_sum16_avx2_(const float *v, size_t n, double *lanes, int what) {
    __m256d s0 = _mm256_loadu_pd(lanes), s1 = _mm256_loadu_pd(lanes + 4), s2 = _mm256_loadu_pd(lanes + 8),
            s3 = _mm256_loadu_pd(lanes + 12);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        CG_PREFETCH_(cg_at_(v, i + 1536));
        s0 = _mm256_add_pd(s0, cg_lane_sum_term_avx2_(v, i, what));
        s1 = _mm256_add_pd(s1, cg_lane_sum_term_avx2_(v, i + 4, what));
        s2 = _mm256_add_pd(s2, cg_lane_sum_term_avx2_(v, i + 8, what));
        s3 = _mm256_add_pd(s3, cg_lane_sum_term_avx2_(v, i + 12, what));
    }
    _mm256_storeu_pd(lanes, s0);
    _mm256_storeu_pd(lanes + 4, s1);
    _mm256_storeu_pd(lanes + 8, s2);
    _mm256_storeu_pd(lanes + 12, s3);
    return i;
}
CG_TARGET_AVX2_ static void cg_lane_sum_avx2_(const float *v, size_t n, int what, double *lanes) {
    size_t i;
    switch (what) {
    case 0: i = cg_lane_sum16_avx2_(v, n, lanes, 0); break;
    case 1: i = cg_lane_sum16_avx2_(v, n, lanes, 1); break;
    case 2: i = cg_lane_sum16_avx2_(v, n, lanes, 2); break;
    case 3: i = cg_lane_sum16_avx2_(v, n, lanes, 3); break;
    default: i = cg_lane_sum16_avx2_(v, n, lanes, 4);
    }
    _mm256_zeroupper();
    if (i < n) cg_lane_sum_scalar_(cg_at_(v, i), n - i, what, lanes);
}
#endif
#if CG_NEON_
CG_INLINE_ void cg_lane_sum4_neon_(float64x2_t *s, const float *v, size_t i, int what) {
    uint32x4_t u = cg_load4_neon_(v, i);
    float64x2_t low, high;
    if (what == 0) u = cg_abs_neon_(u);
    if (what == 2) u = vandq_u32(u, vcltq_u32(vsubq_u32(u, vdupq_n_u32(0x80000001u)), vdupq_n_u32(CG_INF_BITS_)));
    if (what == 3)
        u = vandq_u32(u, vorrq_u32(vcleq_u32(u, vdupq_n_u32(CG_INF_BITS_)), vceqq_u32(u, vdupq_n_u32(CG_SIGN_BIT_))));
    low = vcvt_f64_f32(vget_low_f32(cg_as_float_neon_(u)));
    high = vcvt_high_f64_f32(cg_as_float_neon_(u));
    s[0] = s[0] + (what == 1 ? low * low : low);
    s[1] = s[1] + (what == 1 ? high * high : high);
}
CG_INLINE_ size_t cg_lane_sum16_neon_(const float *v, size_t n, double *lanes, int what) {
    float64x2_t s[8];
    size_t i = 0;
    for (int j = 0; j < 8; j++) s[j] = vld1q_f64(lanes + 2 * j);
    for (; i + 16 <= n; i += 16) {
        cg_lane_sum4_neon_(s, v, i, what);
        cg_lane_sum4_neon_(s + 2, v, i + 4, what);
        cg_lane_sum4_neon_(s + 4, v, i + 8, what);
        cg_lane_sum4_neon_(s + 6, v, i + 12, what);
    }
    for (int j = 0; j < 8; j++) vst1q_f64(lanes + 2 * j, s[j]);
    return i;
}
static void cg_lane_sum_neon_(const float *v, size_t n, int what, double *lanes) {
    size_t i;
    switch (what) {
    case 0: i = cg_lane_sum16_neon_(v, n, lanes, 0); break;
    case 1: i = cg_lane_sum16_neon_(v, n, lanes, 1); break;
    case 2: i = cg_lane_sum16_neon_(v, n, lanes, 2); break;
    case 3: i = cg_lane_sum16_neon_(v, n, lanes, 3); break;
    default: i = cg_lane_sum16_neon_(v, n, lanes, 4);
    }
    cg_lane_sum_scalar_(cg_at_(v, i), n - i, what, lanes);
}
#endif

/* accrue: y = beta*y + alpha*d, and adds the squares of y to 16 lanes, or those of d, or none. beta*y counts as 0
   below 2^-100 unless beta is 1: rounding would keep it in denormals, which are slow, for ever. RECALL: as Y, but
   it is alpha*d that fades so, and beta is 1. All of it waits for memory, so that is asked ahead; d is not where
   its squares are asked for: then it has just been made. */
enum { CG_AXPBY_NO_SQUARES_, CG_AXPBY_SQUARES_Y_, CG_AXPBY_SQUARES_X_, CG_AXPBY_FADE_X_ };
static void cg_axpby_fading_scalar_(
    const float *d, size_t n, float alpha, float beta, float *y, int squares, double *lanes) {
    if (squares == CG_AXPBY_FADE_X_)
        for (size_t i = 0; i < n; i++)
            cg_store_(y, i, cg_plus_(cg_load_(y, i), cg_faded_(cg_times_(alpha, cg_load_(d, i)))));
    else if (beta == 0.0f || beta == 1.0f) cg_axpby_scalar_(d, n, alpha, beta, y, 0);
    else
        for (size_t i = 0; i < n; i++)
            cg_store_(y, i, cg_plus_(cg_faded_(cg_times_(beta, cg_load_(y, i))), cg_times_(alpha, cg_load_(d, i))));
    if (squares) cg_lane_sum_scalar_(squares == CG_AXPBY_SQUARES_X_ ? d : y, n, CG_SUM_SQUARES_, lanes);
}
#if CG_AVX2_
CG_AVX2_INLINE_ __m256 cg_fade8_avx2_(__m256 v, int fades) {
    const __m256i u = _mm256_castps_si256(v);
    return fades ? _mm256_castsi256_ps(_mm256_and_si256(
                       u, _mm256_cmpgt_epi32(cg_abs_avx2_(u), _mm256_set1_epi32((int)CG_FADE_BITS_ - 1))))
                 : v;
}
CG_AVX2_INLINE_ __m256 cg_axpby_fading8_avx2_(
    __m256 d, __m256 a, __m256 b, const float *y, size_t i, int squares, int one) {
    const __m256 v = _mm256_castsi256_ps(cg_load8_avx2_(y, i));
    return _mm256_add_ps(one ? v : cg_fade8_avx2_(cg_mul8_avx2_(b, v), 1),
        cg_fade8_avx2_(cg_mul8_avx2_(a, d), squares == CG_AXPBY_FADE_X_));
}
CG_AVX2_INLINE_ size_t cg_axpby_fading16_avx2_(
    const float *d, size_t n, float alpha, float beta, float *y, double *lanes, int squares, int one) {
    const __m256 a = _mm256_set1_ps(alpha), b = _mm256_set1_ps(beta);
    __m256d s0, s1, s2, s3;
    size_t i = 0;
    s0 = s1 = s2 = s3 = _mm256_setzero_pd();
    if (squares) {
        s0 = _mm256_loadu_pd(lanes), s1 = _mm256_loadu_pd(lanes + 4), s2 = _mm256_loadu_pd(lanes + 8),
        s3 = _mm256_loadu_pd(lanes + 12);
    }
    for (; i + 16 <= n; i += 16) {
        const __m256 d0 = _mm256_castsi256_ps(cg_load8_avx2_(d, i)), d1 = _mm256_castsi256_ps(cg_load8_avx2_(d, i + 8));
        __m256 y0, y1;
        if (squares != CG_AXPBY_SQUARES_X_) CG_PREFETCH_(cg_at_(d, i + CG_PREFETCH_DISTANCE_));
        CG_PREFETCH_WRITE_(cg_at_(y, i + CG_PREFETCH_DISTANCE_));
        y0 = cg_axpby_fading8_avx2_(d0, a, b, y, i, squares, one);
        y1 = cg_axpby_fading8_avx2_(d1, a, b, y, i + 8, squares, one);
        cg_store_avx2_(cg_at_mut_(y, i), _mm256_castps_si256(y0));
        cg_store_avx2_(cg_at_mut_(y, i + 8), _mm256_castps_si256(y1));
        if (squares) {
            const float *v = squares == CG_AXPBY_SQUARES_X_ ? d : y;
            s0 = _mm256_add_pd(s0, cg_lane_sum_term_avx2_(v, i, 1));
            s1 = _mm256_add_pd(s1, cg_lane_sum_term_avx2_(v, i + 4, 1));
            s2 = _mm256_add_pd(s2, cg_lane_sum_term_avx2_(v, i + 8, 1));
            s3 = _mm256_add_pd(s3, cg_lane_sum_term_avx2_(v, i + 12, 1));
        }
    }
    if (squares) {
        _mm256_storeu_pd(lanes, s0);
        _mm256_storeu_pd(lanes + 4, s1);
        _mm256_storeu_pd(lanes + 8, s2);
        _mm256_storeu_pd(lanes + 12, s3);
    }
    return i;
}
CG_TARGET_AVX2_ static void cg_axpby_fading_avx2_(
    const float *d, size_t n, float alpha, float beta, float *y, int squares, double *lanes) {
    size_t i = 0;
    if (squares == CG_AXPBY_FADE_X_) {
        i = cg_axpby_fading16_avx2_(d, n, alpha, beta, y, lanes, CG_AXPBY_FADE_X_, 1);
    } else if (beta == 0.0f) { /* y is not read: 0*y + -0 would be +0 */
        cg_axpby_avx2_(d, n, alpha, beta, y, 0);
        if (squares) cg_lane_sum_avx2_(squares == CG_AXPBY_SQUARES_X_ ? d : y, n, CG_SUM_SQUARES_, lanes);
        return;
    } else {
        switch (squares * 2 + (beta == 1.0f)) {
        case CG_AXPBY_NO_SQUARES_ * 2:
            i = cg_axpby_fading16_avx2_(d, n, alpha, beta, y, lanes, CG_AXPBY_NO_SQUARES_, 0);
            break;
        case CG_AXPBY_NO_SQUARES_ * 2 + 1:
            i = cg_axpby_fading16_avx2_(d, n, alpha, beta, y, lanes, CG_AXPBY_NO_SQUARES_, 1);
            break;
        case CG_AXPBY_SQUARES_Y_ * 2:
            i = cg_axpby_fading16_avx2_(d, n, alpha, beta, y, lanes, CG_AXPBY_SQUARES_Y_, 0);
            break;
        case CG_AXPBY_SQUARES_Y_ * 2 + 1:
            i = cg_axpby_fading16_avx2_(d, n, alpha, beta, y, lanes, CG_AXPBY_SQUARES_Y_, 1);
            break;
        case CG_AXPBY_SQUARES_X_ * 2:
            i = cg_axpby_fading16_avx2_(d, n, alpha, beta, y, lanes, CG_AXPBY_SQUARES_X_, 0);
            break;
        default: i = cg_axpby_fading16_avx2_(d, n, alpha, beta, y, lanes, CG_AXPBY_SQUARES_X_, 1);
        }
    }
    _mm256_zeroupper();
    if (i < n) cg_axpby_fading_scalar_(cg_at_(d, i), n - i, alpha, beta, cg_at_mut_(y, i), squares, lanes);
}
#endif
#if CG_NEON_
CG_INLINE_ float32x4_t cg_fade4_neon_(float32x4_t v) {
    const uint32x4_t u = vreinterpretq_u32_f32(v);
    return cg_as_float_neon_(vandq_u32(u, vcgeq_u32(cg_abs_neon_(u), vdupq_n_u32(CG_FADE_BITS_))));
}
static void cg_axpby_fading_neon_(
    const float *d, size_t n, float alpha, float beta, float *y, int squares, double *lanes) {
    const float32x4_t a = vdupq_n_f32(alpha), b = vdupq_n_f32(beta);
    const int recall = squares == CG_AXPBY_FADE_X_;
    size_t i = 0;
    if (!recall && (beta == 0.0f || beta == 1.0f)) {
        cg_axpby_neon_(d, n, alpha, beta, y, 0);
        i = n;
    }
    for (; i + 4 <= n; i += 4) {
        const float32x4_t f = cg_as_float_neon_(cg_load4_neon_(y, i)),
                          g = cg_times_neon_(a, cg_as_float_neon_(cg_load4_neon_(d, i)));
        cg_store4_neon_(y, i, recall ? f + cg_fade4_neon_(g) : cg_fade4_neon_(cg_times_neon_(b, f)) + g);
    }
    for (; i < n; i++) {
        const float f = cg_load_(y, i), g = cg_times_(alpha, cg_load_(d, i));
        cg_store_(y, i, recall ? cg_plus_(f, cg_faded_(g)) : cg_plus_(cg_faded_(cg_times_(beta, f)), g));
    }
    if (squares) cg_lane_sum_neon_(squares == CG_AXPBY_SQUARES_X_ ? d : y, n, CG_SUM_SQUARES_, lanes);
}
#endif

/* src/core/kernels/lookup.h */
/* grade: how many of `count` ascending limits |v|*inv is above, and the sign. With lanes, centre[grade]*|v| is
   added to them. */
static void cg_bucketize_scalar_(
    const cg_bucketizer_ *g, const float *v, size_t n, uint8_t *symbols, const float *centre, double *lanes) {
    const cg_bucketizer_ q = *g; /* a copy: symbols cannot alias it */
    for (size_t i = 0; i < n; i++) {
        const float f = cg_load_(v, i), size = cg_as_float_(cg_as_bits_(f) & CG_ABS_MASK_),
                    t = cg_times_(size, q.inv_scale);
        unsigned m = 0;
        for (int32_t j = 0; j < q.limit_count; j++) m += t > q.limit[j];
        symbols[i] = (uint8_t)(m | (f < 0.0f ? q.sign_bit : 0u));
        if (lanes) lanes[i % 16] += (double)centre[m] * (double)size; /* exact, as above */
    }
}
/* of a tree with so many nodes */
CG_INLINE_ int cg_search_tree_depth_(int32_t count) { return count < 1 ? 0 : count < 2 ? 1 : count < 4 ? 2 : 3; }
CG_INLINE_ void cg_limits_pad_(const cg_bucketizer_ *g, float *limit) { /* seven: nothing is above Inf */
    const int32_t all = (1 << cg_search_tree_depth_(g->limit_count)) - 1;
    for (int32_t j = 0; j < 7; j++) limit[j] = j < g->limit_count && j < all ? g->limit[j] : cg_as_float_(CG_INF_BITS_);
}
#if CG_AVX2_
/* A tree search: the answers so far, as a number that is minus the rank, choose the next limit from a vector of
   them. A shuffle looks only at the low 2 bits of a number, or 3: so rank r stands at (4 - r) % 4, or (8 - r) % 8. */
CG_AVX2_INLINE_ __m256 cg_permute_table_avx2_(
    const float *value, size_t first, size_t stride, size_t many, size_t size) {
    float at[8] = { 0 };
    for (size_t r = 0; r < many; r++) at[(size - r) % size] = value[first + r * stride];
    if (size == 4) memcpy(at + 4, at, 16);
    return _mm256_loadu_ps(at);
}
typedef struct cg_search_tree_avx2_ {
    __m256 limits[4];
} cg_search_tree_avx2_;
/* of 2^depth - 1 limits */
CG_AVX2_INLINE_ cg_search_tree_avx2_ cg_search_tree_make_avx2_(const float *limit, int depth) {
    cg_search_tree_avx2_ t;
    t.limits[0] = t.limits[1] = t.limits[2] = t.limits[3] = _mm256_setzero_ps();
    if (depth > 0) t.limits[0] = _mm256_set1_ps(limit[((size_t)1 << (depth - 1)) - 1]);
    if (depth > 1)
        t.limits[1] = cg_permute_table_avx2_(limit, ((size_t)1 << (depth - 2)) - 1, (size_t)1 << (depth - 1), 2, 4);
    if (depth > 2)
        t.limits[2] = cg_permute_table_avx2_(limit, ((size_t)1 << (depth - 3)) - 1, (size_t)1 << (depth - 2), 4, 4);
    if (depth > 3) t.limits[3] = cg_permute_table_avx2_(limit, 0, 2, 8, 8);
    return t;
}
CG_AVX2_INLINE_ __m256i cg_exceeds_avx2_(__m256 t, __m256 limit) {
    return _mm256_castps_si256(_mm256_cmp_ps(t, limit, _CMP_GT_OQ));
}
CG_AVX2_INLINE_ __m256i cg_search_avx2_(__m256 t, const cg_search_tree_avx2_ *tree, int depth) { /* minus the rank */
    __m256i r = _mm256_setzero_si256();
    if (depth > 0) r = cg_exceeds_avx2_(t, tree->limits[0]);
    if (depth > 1)
        r = _mm256_add_epi32(_mm256_add_epi32(r, r), cg_exceeds_avx2_(t, _mm256_permutevar_ps(tree->limits[1], r)));
    if (depth > 2)
        r = _mm256_add_epi32(_mm256_add_epi32(r, r), cg_exceeds_avx2_(t, _mm256_permutevar_ps(tree->limits[2], r)));
    if (depth > 3)
        r = _mm256_add_epi32(_mm256_add_epi32(r, r), cg_exceeds_avx2_(t, _mm256_permutevar8x32_ps(tree->limits[3], r)));
    return r;
}
/* out of order: see cg_pack_order_avx2_ */
CG_AVX2_INLINE_ __m256i cg_narrow_signed_avx2_(__m256i a, __m256i b, __m256i c, __m256i d) {
    return _mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
}
CG_AVX2_INLINE_ __m256i cg_pack_order_avx2_(__m256i bytes) {
    return _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}
CG_AVX2_INLINE_ __m256d cg_centroid_term_avx2_(__m128 centre, const float *v, size_t i) {
    return _mm256_mul_pd(_mm256_cvtps_pd(centre), cg_lane_sum_term_avx2_(v, i, 0));
}
CG_AVX2_INLINE_ __m256i cg_bucketize8_avx2_(const float *v, size_t i, __m256 inv, const cg_search_tree_avx2_ *tree,
    __m256 centre, __m256d *s, int depth, int sums) {
    const __m256 t = cg_mul8_avx2_(_mm256_castsi256_ps(cg_abs_avx2_(cg_load8_avx2_(v, i))), inv);
    const __m256i r = cg_search_avx2_(t, tree, depth);
    if (sums) {
        const __m256 c = depth == 0 ? centre
            : depth < 3             ? _mm256_permutevar_ps(centre, r)
                                    : _mm256_permutevar8x32_ps(centre, r);
        s[0] = _mm256_add_pd(s[0], cg_centroid_term_avx2_(_mm256_castps256_ps128(c), v, i));
        s[1] = _mm256_add_pd(s[1], cg_centroid_term_avx2_(_mm256_extractf128_ps(c, 1), v, i + 4));
    }
    return r;
}
CG_AVX2_INLINE_ size_t cg_bucketize32_avx2_(const cg_bucketizer_ *g, const float *v, size_t n, uint8_t *symbols,
    const float *centre, double *lanes, int depth, int sums) {
    const __m256 inv = _mm256_set1_ps(g->inv_scale);
    const __m256i sign = _mm256_set1_epi8((char)g->sign_bit);
    __m256 weight = _mm256_setzero_ps();
    __m256d s[4];
    cg_search_tree_avx2_ tree;
    float limit[7];
    size_t i = 0;
    cg_limits_pad_(g, limit);
    tree = cg_search_tree_make_avx2_(limit, depth);
    if (sums) {
        weight = depth == 0 ? _mm256_set1_ps(centre[0])
                            : cg_permute_table_avx2_(centre, 0, 1, (size_t)g->limit_count + 1, depth < 3 ? 4 : 8);
        s[0] = _mm256_loadu_pd(lanes);
        s[1] = _mm256_loadu_pd(lanes + 4);
        s[2] = _mm256_loadu_pd(lanes + 8);
        s[3] = _mm256_loadu_pd(lanes + 12);
    }
    for (; i + 32 <= n; i += 32) {
        __m256i a = cg_bucketize8_avx2_(v, i, inv, &tree, weight, s, depth, sums),
                b = cg_bucketize8_avx2_(v, i + 8, inv, &tree, weight, s + 2, depth, sums);
        __m256i c = cg_bucketize8_avx2_(v, i + 16, inv, &tree, weight, s, depth, sums),
                d = cg_bucketize8_avx2_(v, i + 24, inv, &tree, weight, s + 2, depth, sums);
        const __m256i below = cg_narrow_signed_avx2_(cg_negative_avx2_(cg_load8_avx2_(v, i)),
            cg_negative_avx2_(cg_load8_avx2_(v, i + 8)), cg_negative_avx2_(cg_load8_avx2_(v, i + 16)),
            cg_negative_avx2_(cg_load8_avx2_(v, i + 24)));
        a = _mm256_sub_epi8(_mm256_setzero_si256(), cg_narrow_signed_avx2_(a, b, c, d));
        cg_store_avx2_(symbols + i, cg_pack_order_avx2_(_mm256_or_si256(a, _mm256_and_si256(below, sign))));
    }
    if (sums) {
        _mm256_storeu_pd(lanes, s[0]);
        _mm256_storeu_pd(lanes + 4, s[1]);
        _mm256_storeu_pd(lanes + 8, s[2]);
        _mm256_storeu_pd(lanes + 12, s[3]);
    }
    return i;
}
CG_TARGET_AVX2_ static void cg_bucketize_avx2_(
    const cg_bucketizer_ *g, const float *v, size_t n, uint8_t *symbols, const float *centre, double *lanes) {
    size_t i;
    switch (cg_search_tree_depth_(g->limit_count) + (lanes ? 4 : 0)) {
    case 0: i = cg_bucketize32_avx2_(g, v, n, symbols, centre, lanes, 0, 0); break;
    case 1: i = cg_bucketize32_avx2_(g, v, n, symbols, centre, lanes, 1, 0); break;
    case 2: i = cg_bucketize32_avx2_(g, v, n, symbols, centre, lanes, 2, 0); break;
    case 3: i = cg_bucketize32_avx2_(g, v, n, symbols, centre, lanes, 3, 0); break;
    case 4: i = cg_bucketize32_avx2_(g, v, n, symbols, centre, lanes, 0, 1); break;
    case 5: i = cg_bucketize32_avx2_(g, v, n, symbols, centre, lanes, 1, 1); break;
    case 6: i = cg_bucketize32_avx2_(g, v, n, symbols, centre, lanes, 2, 1); break;
    default: i = cg_bucketize32_avx2_(g, v, n, symbols, centre, lanes, 3, 1);
    }
    _mm256_zeroupper();
    if (i < n) cg_bucketize_scalar_(g, cg_at_(v, i), n - i, symbols + i, centre, lanes);
}
#endif
#if CG_NEON_
/* A tree search: the answers so far choose the next limit from a table of up to eight floats. */
CG_INLINE_ float32x4_t cg_permute_lookup_neon_(uint8x16x2_t table, uint32x4_t r) {
    const uint32x4_t at = r * vdupq_n_u32(0x04040404u) + vdupq_n_u32(0x03020100u);
    return vreinterpretq_f32_u8(vqtbl2q_u8(table, vreinterpretq_u8_u32(at)));
}
CG_INLINE_ uint8x16x2_t cg_permute_table_neon_(const float *value, size_t first, size_t stride, size_t many) {
    float at[8] = { 0 };
    uint8x16x2_t t;
    for (size_t r = 0; r < many; r++) at[r] = value[first + r * stride];
    t.val[0] = vreinterpretq_u8_f32(vld1q_f32(at));
    t.val[1] = vreinterpretq_u8_f32(vld1q_f32(at + 4));
    return t;
}
typedef struct cg_search_tree_neon_ {
    float32x4_t root;
    uint8x16x2_t limits[3];
} cg_search_tree_neon_;
/* of 2^depth - 1 limits, depth > 0 */
CG_INLINE_ cg_search_tree_neon_ cg_search_tree_make_neon_(const float *limit, int depth) {
    cg_search_tree_neon_ t;
    t.root = vdupq_n_f32(limit[((size_t)1 << (depth - 1)) - 1]);
    for (int j = 0; j < 3; j++) {
        const size_t at = depth > j + 1 ? ((size_t)1 << (depth - 2 - j)) - 1 : 0,
                     stride = depth > j + 1 ? (size_t)1 << (depth - 1 - j) : 0;
        t.limits[j] = cg_permute_table_neon_(limit, at, stride, depth > j + 1 ? (size_t)2 << j : 1);
    }
    return t;
}
CG_INLINE_ uint32x4_t cg_search_neon_(float32x4_t t, const cg_search_tree_neon_ *tree, int depth) {
    uint32x4_t r = vdupq_n_u32(0);
    if (depth > 0) r = vshrq_n_u32(vcgtq_f32(t, tree->root), 31);
    if (depth > 1) r = vsubq_u32(vaddq_u32(r, r), vcgtq_f32(t, cg_permute_lookup_neon_(tree->limits[0], r)));
    if (depth > 2) r = vsubq_u32(vaddq_u32(r, r), vcgtq_f32(t, cg_permute_lookup_neon_(tree->limits[1], r)));
    if (depth > 3) r = vsubq_u32(vaddq_u32(r, r), vcgtq_f32(t, cg_permute_lookup_neon_(tree->limits[2], r)));
    return r;
}
CG_INLINE_ uint32x4_t cg_bucketize4_neon_(uint32x4_t v, float32x4_t inv, const cg_search_tree_neon_ *tree,
    uint8x16x2_t centre, float64x2_t *s, int depth, int sums) {
    const float32x4_t size = cg_as_float_neon_(cg_abs_neon_(v));
    const uint32x4_t r = cg_search_neon_(cg_times_neon_(size, inv), tree, depth);
    if (sums) {
        const float32x4_t c = cg_permute_lookup_neon_(centre, r);
        s[0] = s[0] + vcvt_f64_f32(vget_low_f32(c)) * vcvt_f64_f32(vget_low_f32(size));
        s[1] = s[1] + vcvt_high_f64_f32(c) * vcvt_high_f64_f32(size);
    }
    return r;
}
CG_INLINE_ size_t cg_bucketize16_neon_(const cg_bucketizer_ *g, const float *v, size_t n, uint8_t *symbols,
    const float *centre, double *lanes, int depth, int sums) {
    const float32x4_t inv = vdupq_n_f32(g->inv_scale);
    const uint8x16_t sign = vdupq_n_u8(g->sign_bit);
    uint8x16x2_t weight = { { vdupq_n_u8(0), vdupq_n_u8(0) } };
    cg_search_tree_neon_ tree;
    float64x2_t s[8];
    float limit[7];
    size_t i = 0;
    cg_limits_pad_(g, limit);
    tree = cg_search_tree_make_neon_(limit, depth ? depth : 1);
    if (sums) {
        weight = cg_permute_table_neon_(centre, 0, 1, (size_t)g->limit_count + 1);
        for (int j = 0; j < 8; j++) s[j] = vld1q_f64(lanes + 2 * j);
    }
    for (; i + 16 <= n; i += 16) {
        uint32x4_t a = cg_load4_neon_(v, i), b = cg_load4_neon_(v, i + 4), c = cg_load4_neon_(v, i + 8),
                   d = cg_load4_neon_(v, i + 12);
        const uint8x16_t below = cg_narrow_neon_(vcltzq_f32(cg_as_float_neon_(a)), vcltzq_f32(cg_as_float_neon_(b)),
            vcltzq_f32(cg_as_float_neon_(c)), vcltzq_f32(cg_as_float_neon_(d)));
        a = cg_bucketize4_neon_(a, inv, &tree, weight, s, depth, sums);
        b = cg_bucketize4_neon_(b, inv, &tree, weight, s + 2, depth, sums);
        c = cg_bucketize4_neon_(c, inv, &tree, weight, s + 4, depth, sums);
        d = cg_bucketize4_neon_(d, inv, &tree, weight, s + 6, depth, sums);
        vst1q_u8(symbols + i, vorrq_u8(cg_narrow_neon_(a, b, c, d), vandq_u8(below, sign)));
    }
    if (sums)
        for (int j = 0; j < 8; j++) vst1q_f64(lanes + 2 * j, s[j]);
    return i;
}
static void cg_bucketize_neon_(
    const cg_bucketizer_ *g, const float *v, size_t n, uint8_t *symbols, const float *centre, double *lanes) {
    size_t i;
    switch (cg_search_tree_depth_(g->limit_count) + (lanes ? 4 : 0)) {
    case 0: i = cg_bucketize16_neon_(g, v, n, symbols, centre, lanes, 0, 0); break;
    case 1: i = cg_bucketize16_neon_(g, v, n, symbols, centre, lanes, 1, 0); break;
    case 2: i = cg_bucketize16_neon_(g, v, n, symbols, centre, lanes, 2, 0); break;
    case 3: i = cg_bucketize16_neon_(g, v, n, symbols, centre, lanes, 3, 0); break;
    case 4: i = cg_bucketize16_neon_(g, v, n, symbols, centre, lanes, 0, 1); break;
    case 5: i = cg_bucketize16_neon_(g, v, n, symbols, centre, lanes, 1, 1); break;
    case 6: i = cg_bucketize16_neon_(g, v, n, symbols, centre, lanes, 2, 1); break;
    default: i = cg_bucketize16_neon_(g, v, n, symbols, centre, lanes, 3, 1);
    }
    cg_bucketize_scalar_(g, cg_at_(v, i), n - i, symbols + i, centre, lanes);
}
#endif

/* untable: 16 values, already scaled */
static void cg_table_decode_scalar_(const float *table, const uint8_t *symbols, size_t n, float *out, int stream) {
    (void)stream;
    for (size_t i = 0; i < n; i++) cg_store_(out, i, cg_load_(table, symbols[i] & 15u));
}
#if CG_AVX2_
CG_AVX2_INLINE_ size_t cg_table_decode16_avx2_(
    const float *table, const uint8_t *symbols, size_t n, float *out, int stream) {
    const __m256 low = cg_load8_ps_avx2_(table, 0), high = cg_load8_ps_avx2_(table, 8);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const __m128i s = cg_load4_avx2_(symbols + i);
        const __m256i a = _mm256_cvtepu8_epi32(s), b = _mm256_cvtepu8_epi32(_mm_srli_si128(s, 8));
        const __m256 x = _mm256_blendv_ps(_mm256_permutevar8x32_ps(low, a), _mm256_permutevar8x32_ps(high, a),
            _mm256_castsi256_ps(_mm256_slli_epi32(a, 28)));
        const __m256 y = _mm256_blendv_ps(_mm256_permutevar8x32_ps(low, b), _mm256_permutevar8x32_ps(high, b),
            _mm256_castsi256_ps(_mm256_slli_epi32(b, 28)));
        cg_store_stream_avx2_(out, i, _mm256_castps_si256(x), stream);
        cg_store_stream_avx2_(out, i + 8, _mm256_castps_si256(y), stream);
    }
    return i;
}
CG_TARGET_AVX2_ static void cg_table_decode_avx2_(
    const float *table, const uint8_t *symbols, size_t n, float *out, int stream) {
    size_t i = stream ? cg_table_decode16_avx2_(table, symbols, n, out, 1)
                      : cg_table_decode16_avx2_(table, symbols, n, out, 0);
    _mm256_zeroupper();
    if (i < n) cg_table_decode_scalar_(table, symbols + i, n - i, cg_at_mut_(out, i), 0);
}
#endif
#if CG_NEON_
static void cg_table_decode_neon_(const float *table, const uint8_t *symbols, size_t n, float *out, int stream) {
    const uint8_t *p = (const uint8_t *)table;
    uint8x16x4_t t;
    size_t i = 0;
    t.val[0] = vld1q_u8(p);
    t.val[1] = vld1q_u8(p + 16);
    t.val[2] = vld1q_u8(p + 32);
    t.val[3] = vld1q_u8(p + 48);
    for (; i + 8 <= n; i += 8) {
        const uint16x8_t s = vmovl_u8(vand_u8(vld1_u8(symbols + i), vdup_n_u8(15)));
        const uint32x4_t times = vdupq_n_u32(0x04040404u), plus = vdupq_n_u32(0x03020100u);
        const uint32x4_t a = vmovl_u16(vget_low_u16(s)) * times + plus, b = vmovl_u16(vget_high_u16(s)) * times + plus;
        cg_store4_neon_(out, i, vreinterpretq_f32_u8(vqtbl4q_u8(t, vreinterpretq_u8_u32(a))));
        cg_store4_neon_(out, i + 4, vreinterpretq_f32_u8(vqtbl4q_u8(t, vreinterpretq_u8_u32(b))));
    }
    cg_table_decode_scalar_(table, symbols + i, n - i, cg_at_mut_(out, i), stream);
}
#endif

/* rank: how many of 15 ascending limits v*inv is above */
static void cg_nf4_search_scalar_(const float *limit, float inv, const float *v, size_t n, uint8_t *symbols) {
    float l[15]; /* a copy: symbols cannot alias it */
    memcpy(l, limit, sizeof l);
    for (size_t i = 0; i < n; i++) {
        const float t = cg_times_(cg_load_(v, i), inv);
        unsigned r = t > l[7] ? 8u : 0u;
        r += t > l[r + 3] ? 4u : 0u;
        r += t > l[r + 1] ? 2u : 0u;
        r += t > l[r] ? 1u : 0u;
        symbols[i] = (uint8_t)r;
    }
}
#if CG_AVX2_
CG_AVX2_INLINE_ __m256i cg_nf4_search8_avx2_(const float *v, size_t i, __m256 inv, const cg_search_tree_avx2_ *tree) {
    return cg_search_avx2_(cg_mul8_avx2_(cg_load8_ps_avx2_(v, i), inv), tree, 4);
}
CG_TARGET_AVX2_ static void cg_nf4_search_avx2_(
    const float *limit, float inv, const float *v, size_t n, uint8_t *symbols) {
    const __m256 by = _mm256_set1_ps(inv);
    cg_search_tree_avx2_ tree;
    float l[15];
    size_t i = 0;
    memcpy(l, limit, sizeof l);
    tree = cg_search_tree_make_avx2_(l, 4);
    for (; i + 32 <= n; i += 32) {
        const __m256i a = cg_nf4_search8_avx2_(v, i, by, &tree), b = cg_nf4_search8_avx2_(v, i + 8, by, &tree);
        const __m256i c = cg_nf4_search8_avx2_(v, i + 16, by, &tree), d = cg_nf4_search8_avx2_(v, i + 24, by, &tree);
        cg_prefetch_ahead_avx2_(v, i);
        cg_store_avx2_(symbols + i,
            cg_pack_order_avx2_(_mm256_sub_epi8(_mm256_setzero_si256(), cg_narrow_signed_avx2_(a, b, c, d))));
    }
    _mm256_zeroupper();
    if (i < n) cg_nf4_search_scalar_(limit, inv, cg_at_(v, i), n - i, symbols + i);
}
#endif
#if CG_NEON_
static void cg_nf4_search_neon_(const float *limit, float inv, const float *v, size_t n, uint8_t *symbols) {
    const float32x4_t by = vdupq_n_f32(inv);
    cg_search_tree_neon_ tree;
    float l[15];
    size_t i = 0;
    memcpy(l, limit, sizeof l);
    tree = cg_search_tree_make_neon_(l, 4);
    for (; i + 16 <= n; i += 16) {
        const uint32x4_t a = cg_search_neon_(cg_times_neon_(cg_as_float_neon_(cg_load4_neon_(v, i)), by), &tree, 4);
        const uint32x4_t b = cg_search_neon_(cg_times_neon_(cg_as_float_neon_(cg_load4_neon_(v, i + 4)), by), &tree, 4);
        const uint32x4_t c = cg_search_neon_(cg_times_neon_(cg_as_float_neon_(cg_load4_neon_(v, i + 8)), by), &tree, 4);
        const uint32x4_t d = cg_search_neon_(
            cg_times_neon_(cg_as_float_neon_(cg_load4_neon_(v, i + 12)), by), &tree, 4);
        vst1q_u8(symbols + i, cg_narrow_neon_(a, b, c, d));
    }
    cg_nf4_search_scalar_(limit, inv, cg_at_(v, i), n - i, symbols + i);
}
#endif

/* src/core/kernels/dct.h */
/* dct: orthonormal DCT-II of 64 values, or its inverse. Folding turns a DCT-II into a DCT-II and a DCT-IV of half
   the size; turning pairs by (2n+1)pi/(4N) turns a DCT-IV of N into two DCT-II. What is left are eight products
   with matrices of 8*8, which hold the scaling too: every way takes three halvings, each of which leaves out a
   factor of sqrt(1/2). */
static const float cg_dct2_matrix_[64] = {
    /* DCT-II of 8 over sqrt(8): a row per input */
    0.125f,
    0.173379987f,
    0.163320377f,
    0.146984443f,
    0.125f,
    0.0982118696f,
    0.0676495135f,
    0.0344874226f,
    0.125f,
    0.146984443f,
    0.0676495135f,
    -0.0344874226f,
    -0.125f,
    -0.173379987f,
    -0.163320377f,
    -0.0982118696f,
    0.125f,
    0.0982118696f,
    -0.0676495135f,
    -0.173379987f,
    -0.125f,
    0.0344874226f,
    0.163320377f,
    0.146984443f,
    0.125f,
    0.0344874226f,
    -0.163320377f,
    -0.0982118696f,
    0.125f,
    0.146984443f,
    -0.0676495135f,
    -0.173379987f,
    0.125f,
    -0.0344874226f,
    -0.163320377f,
    0.0982118696f,
    0.125f,
    -0.146984443f,
    -0.0676495135f,
    0.173379987f,
    0.125f,
    -0.0982118696f,
    -0.0676495135f,
    0.173379987f,
    -0.125f,
    -0.0344874226f,
    0.163320377f,
    -0.146984443f,
    0.125f,
    -0.146984443f,
    0.0676495135f,
    0.0344874226f,
    -0.125f,
    0.173379987f,
    -0.163320377f,
    0.0982118696f,
    0.125f,
    -0.173379987f,
    0.163320377f,
    -0.146984443f,
    0.125f,
    -0.0982118696f,
    0.0676495135f,
    -0.0344874226f,
};
static const float cg_dct3_matrix_[64] = {
    /* DCT-III */
    0.125f,
    0.125f,
    0.125f,
    0.125f,
    0.125f,
    0.125f,
    0.125f,
    0.125f,
    0.173379987f,
    0.146984443f,
    0.0982118696f,
    0.0344874226f,
    -0.0344874226f,
    -0.0982118696f,
    -0.146984443f,
    -0.173379987f,
    0.163320377f,
    0.0676495135f,
    -0.0676495135f,
    -0.163320377f,
    -0.163320377f,
    -0.0676495135f,
    0.0676495135f,
    0.163320377f,
    0.146984443f,
    -0.0344874226f,
    -0.173379987f,
    -0.0982118696f,
    0.0982118696f,
    0.173379987f,
    0.0344874226f,
    -0.146984443f,
    0.125f,
    -0.125f,
    -0.125f,
    0.125f,
    0.125f,
    -0.125f,
    -0.125f,
    0.125f,
    0.0982118696f,
    -0.173379987f,
    0.0344874226f,
    0.146984443f,
    -0.146984443f,
    -0.0344874226f,
    0.173379987f,
    -0.0982118696f,
    0.0676495135f,
    -0.163320377f,
    0.163320377f,
    -0.0676495135f,
    -0.0676495135f,
    0.163320377f,
    -0.163320377f,
    0.0676495135f,
    0.0344874226f,
    -0.0982118696f,
    0.146984443f,
    -0.173379987f,
    0.173379987f,
    -0.146984443f,
    0.0982118696f,
    -0.0344874226f,
};
static const float cg_dct4_matrix_[64] = {
    /* DCT-IV, its own inverse */
    0.175925463f,
    0.169164747f,
    0.155903131f,
    0.136650234f,
    0.112145945f,
    0.0833319575f,
    0.0513155647f,
    0.0173271466f,
    0.169164747f,
    0.112145945f,
    0.0173271466f,
    -0.0833319575f,
    -0.155903131f,
    -0.175925463f,
    -0.136650234f,
    -0.0513155647f,
    0.155903131f,
    0.0173271466f,
    -0.136650234f,
    -0.169164747f,
    -0.0513155647f,
    0.112145945f,
    0.175925463f,
    0.0833319575f,
    0.136650234f,
    -0.0833319575f,
    -0.169164747f,
    0.0173271466f,
    0.175925463f,
    0.0513155647f,
    -0.155903131f,
    -0.112145945f,
    0.112145945f,
    -0.155903131f,
    -0.0513155647f,
    0.175925463f,
    -0.0173271466f,
    -0.169164747f,
    0.0833319575f,
    0.136650234f,
    0.0833319575f,
    -0.175925463f,
    0.112145945f,
    0.0513155647f,
    -0.169164747f,
    0.136650234f,
    0.0173271466f,
    -0.155903131f,
    0.0513155647f,
    -0.136650234f,
    0.175925463f,
    -0.155903131f,
    0.0833319575f,
    0.0173271466f,
    -0.112145945f,
    0.169164747f,
    0.0173271466f,
    -0.0513155647f,
    0.0833319575f,
    -0.112145945f,
    0.136650234f,
    -0.155903131f,
    0.169164747f,
    -0.175925463f,
};
static const float cg_dct_cos_[24] = {
    /* of (2n+1)pi/128, n < 16, then of (2n+1)pi/64, n < 8 */
    0.999698818f,
    0.997290432f,
    0.992479563f,
    0.985277653f,
    0.975702107f,
    0.963776052f,
    0.949528158f,
    0.932992816f,
    0.914209783f,
    0.893224299f,
    0.870086968f,
    0.84485358f,
    0.817584813f,
    0.78834641f,
    0.757208824f,
    0.724247098f,
    0.99879545f,
    0.989176512f,
    0.970031261f,
    0.941544056f,
    0.903989315f,
    0.857728601f,
    0.803207517f,
    0.740951121f,
};
static const float cg_dct_sin_[24] = {
    0.024541229f,
    0.0735645667f,
    0.122410677f,
    0.170961887f,
    0.219101235f,
    0.266712755f,
    0.313681751f,
    0.359895051f,
    0.405241311f,
    0.449611336f,
    0.492898196f,
    0.534997642f,
    0.575808167f,
    0.615231574f,
    0.653172851f,
    0.689540565f,
    0.0490676761f,
    0.146730468f,
    0.242980182f,
    0.336889863f,
    0.427555084f,
    0.514102757f,
    0.59569931f,
    0.671558976f,
};
CG_INLINE_ void cg_dct_fold_(const float *x, size_t n, float *even, float *odd) {
    for (size_t i = 0; i < n; i++) {
        const float a = x[i], b = x[2 * n - 1 - i];
        even[i] = cg_plus_(a, b);
        odd[i] = cg_minus_(a, b);
    }
}
CG_INLINE_ void cg_dct_unfold_(const float *even, const float *odd, size_t n, float *x) {
    for (size_t i = 0; i < n; i++) {
        const float a = even[i], b = odd[i];
        x[i] = cg_plus_(a, b);
        x[2 * n - 1 - i] = cg_minus_(a, b);
    }
}
CG_INLINE_ float cg_negate_odd_(float f, size_t i) { return cg_as_float_(cg_as_bits_(f) ^ (uint32_t)(i & 1) << 31); }
CG_INLINE_ void cg_dct_givens_(const float *x, size_t n, float *p, float *q) { /* n is 16 or 8 */
    const float *c = cg_dct_cos_ + (n == 8 ? 16 : 0), *s = cg_dct_sin_ + (n == 8 ? 16 : 0);
    for (size_t i = 0; i < n; i++) {
        const float a = x[i], b = x[2 * n - 1 - i];
        p[i] = cg_plus_(cg_times_(a, c[i]), cg_times_(b, s[i]));
        q[i] = cg_negate_odd_(cg_minus_(cg_times_(b, c[i]), cg_times_(a, s[i])), i);
    }
}
CG_INLINE_ void cg_dct_givens_inv_(const float *p, const float *q, size_t n, float *x) {
    const float *c = cg_dct_cos_ + (n == 8 ? 16 : 0), *s = cg_dct_sin_ + (n == 8 ? 16 : 0);
    for (size_t i = 0; i < n; i++) {
        const float a = p[i], b = cg_negate_odd_(q[i], i);
        x[i] = cg_minus_(cg_times_(a, c[i]), cg_times_(b, s[i]));
        x[2 * n - 1 - i] = cg_plus_(cg_times_(a, s[i]), cg_times_(b, c[i]));
    }
}
/* out of the two DCT-II p and q, both as if followed by a 0, the even and the odd outputs of the DCT-IV */
CG_INLINE_ void cg_dct4_from_dct2_(const float *p, const float *q, size_t n, float *even, float *odd, size_t stride) {
    const float root = 1.41421354f;
    for (size_t i = 0; i < n; i++) {
        const float a = i ? p[i] : cg_times_(p[0], root), b = i + 1 < n ? q[n - 1 - i] : cg_times_(q[0], root);
        even[i * stride] = cg_plus_(a, i ? q[n - i] : 0.0f);
        odd[i * stride] = cg_minus_(i + 1 < n ? p[i + 1] : 0.0f, b);
    }
}
CG_INLINE_ void cg_dct4_to_dct2_(const float *even, const float *odd, size_t stride, size_t n, float *p, float *q) {
    const float root = 1.41421354f;
    for (size_t i = 0; i < n; i++) {
        p[i] = cg_plus_(even[i * stride], i ? odd[(i - 1) * stride] : 0.0f);
        q[n - 1 - i] = cg_minus_(i + 1 < n ? even[(i + 1) * stride] : 0.0f, odd[i * stride]);
    }
    p[0] = cg_times_(p[0], root);
    q[0] = cg_times_(q[0], root);
}
CG_INLINE_ void cg_interleave_(const float *a, const float *b, size_t n, float *x) {
    for (size_t i = 0; i < n; i++) {
        x[2 * i] = a[i];
        x[2 * i + 1] = b[i];
    }
}
CG_INLINE_ void cg_deinterleave_(const float *x, size_t n, float *a, float *b) {
    for (size_t i = 0; i < n; i++) {
        a[i] = x[2 * i];
        b[i] = x[2 * i + 1];
    }
}
/* t: eight inputs of a DCT-II, a DCT-IV, two DCT-II, then a DCT-II and a DCT-IV twice */
static void cg_dct_split_(const float *v, float *t) {
    float u[64], w[32];
    cg_dct_fold_(v, 32, u, u + 32);
    cg_dct_fold_(u, 16, w, w + 16);
    cg_dct_fold_(w, 8, t, t + 8);
    cg_dct_givens_(w + 16, 8, t + 16, t + 24);
    cg_dct_givens_(u + 32, 16, w, w + 16);
    cg_dct_fold_(w, 8, t + 32, t + 40);
    cg_dct_fold_(w + 16, 8, t + 48, t + 56);
}
static void cg_dct_merge_(const float *t, float *v) {
    float p[16], q[16];
    for (size_t i = 0; i < 8; i++) {
        v[8 * i] = t[i];
        v[8 * i + 4] = t[8 + i];
    }
    cg_dct4_from_dct2_(t + 16, t + 24, 8, v + 2, v + 6, 8);
    cg_interleave_(t + 32, t + 40, 8, p);
    cg_interleave_(t + 48, t + 56, 8, q);
    cg_dct4_from_dct2_(p, q, 16, v + 1, v + 3, 4);
}
static void cg_idct_split_(const float *v, float *t) {
    float p[16], q[16];
    for (size_t i = 0; i < 8; i++) {
        t[i] = v[8 * i];
        t[8 + i] = v[8 * i + 4];
    }
    cg_dct4_to_dct2_(v + 2, v + 6, 8, 8, t + 16, t + 24);
    cg_dct4_to_dct2_(v + 1, v + 3, 4, 16, p, q);
    cg_deinterleave_(p, 8, t + 32, t + 40);
    cg_deinterleave_(q, 8, t + 48, t + 56);
}
static void cg_idct_merge_(const float *t, float *v) {
    float u[64], w[32];
    cg_dct_unfold_(t + 32, t + 40, 8, w);
    cg_dct_unfold_(t + 48, t + 56, 8, w + 16);
    cg_dct_givens_inv_(w, w + 16, 16, u + 32);
    cg_dct_givens_inv_(t + 16, t + 24, 8, w + 16);
    cg_dct_unfold_(t, t + 8, 8, w);
    cg_dct_unfold_(w, w + 16, 16, u);
    cg_dct_unfold_(u, u + 32, 32, v);
}
CG_INLINE_ const float *cg_dct_matrix_of_(size_t group, int inverse) {
    return group == 1 || group == 5 || group == 7 ? cg_dct4_matrix_ : inverse ? cg_dct3_matrix_ : cg_dct2_matrix_;
}
static void cg_dct_scalar_(float *v, int inverse) {
    float x[64], t[64], y[64];
    memcpy(x, v, sizeof x);
    if (inverse) cg_idct_split_(x, t);
    else cg_dct_split_(x, t);
    for (size_t g = 0; g < 8; g++) {
        const float *m = cg_dct_matrix_of_(g, inverse);
        for (size_t j = 0; j < 8; j++) {
            float s = cg_times_(m[j], t[8 * g]);
            for (size_t i = 1; i < 8; i++) s = cg_plus_(s, cg_times_(m[8 * i + j], t[8 * g + i]));
            y[8 * g + j] = s;
        }
    }
    if (inverse) cg_idct_merge_(y, x);
    else cg_dct_merge_(y, x);
    memcpy(v, x, sizeof x);
}
#if CG_AVX2_
CG_AVX2_INLINE_ __m256 cg_reverse_avx2_(__m256 x) {
    return _mm256_permutevar8x32_ps(x, _mm256_setr_epi32(7, 6, 5, 4, 3, 2, 1, 0));
}
/* from the second on, and the first of the next */
CG_AVX2_INLINE_ __m256 cg_next_lane_avx2_(__m256 x, __m256 next) {
    return _mm256_permutevar8x32_ps(_mm256_blend_ps(x, next, 1), _mm256_setr_epi32(1, 2, 3, 4, 5, 6, 7, 0));
}
/* the last of the one before, and all but the last */
CG_AVX2_INLINE_ __m256 cg_prev_lane_avx2_(__m256 x, __m256 last) {
    return _mm256_permutevar8x32_ps(_mm256_blend_ps(x, last, 128), _mm256_setr_epi32(7, 0, 1, 2, 3, 4, 5, 6));
}
/* b lies the other way round */
CG_AVX2_INLINE_ void cg_dct_fold8_avx2_(__m256 a, __m256 b, __m256 *even, __m256 *odd) {
    b = cg_reverse_avx2_(b);
    *even = _mm256_add_ps(a, b);
    *odd = _mm256_sub_ps(a, b);
}
CG_AVX2_INLINE_ void cg_dct_unfold8_avx2_(__m256 even, __m256 odd, __m256 *a, __m256 *b) {
    *a = _mm256_add_ps(even, odd);
    *b = cg_reverse_avx2_(_mm256_sub_ps(even, odd));
}
CG_AVX2_INLINE_ void cg_dct_givens8_avx2_(__m256 a, __m256 b, size_t at, __m256 *p, __m256 *q) {
    const __m256 c = _mm256_loadu_ps(cg_dct_cos_ + at), s = _mm256_loadu_ps(cg_dct_sin_ + at);
    b = cg_reverse_avx2_(b);
    *p = _mm256_add_ps(cg_mul8_avx2_(a, c), cg_mul8_avx2_(b, s));
    *q = _mm256_xor_ps(
        _mm256_sub_ps(cg_mul8_avx2_(b, c), cg_mul8_avx2_(a, s)), cg_sign_mask_avx2_(0, 1, 0, 1, 0, 1, 0, 1));
}
CG_AVX2_INLINE_ void cg_dct_givens_inv8_avx2_(__m256 p, __m256 q, size_t at, __m256 *a, __m256 *b) {
    const __m256 c = _mm256_loadu_ps(cg_dct_cos_ + at), s = _mm256_loadu_ps(cg_dct_sin_ + at);
    q = _mm256_xor_ps(q, cg_sign_mask_avx2_(0, 1, 0, 1, 0, 1, 0, 1));
    *a = _mm256_sub_ps(cg_mul8_avx2_(p, c), cg_mul8_avx2_(q, s));
    *b = cg_reverse_avx2_(_mm256_add_ps(cg_mul8_avx2_(p, s), cg_mul8_avx2_(q, c)));
}
CG_AVX2_INLINE_ __m256 cg_sqrt2_first_avx2_(__m256 x) {
    return cg_mul8_avx2_(x, _mm256_setr_ps(1.41421354f, 1, 1, 1, 1, 1, 1, 1));
}
CG_AVX2_INLINE_ void cg_interleave8_avx2_(__m256 a, __m256 b, __m256 *x, __m256 *y) {
    const __m256 low = _mm256_unpacklo_ps(a, b), high = _mm256_unpackhi_ps(a, b);
    *x = _mm256_permute2f128_ps(low, high, 0x20);
    *y = _mm256_permute2f128_ps(low, high, 0x31);
}
CG_AVX2_INLINE_ __m256 cg_swap_middle64_avx2_(__m256 x) {
    return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(x), 0xd8));
}
CG_AVX2_INLINE_ void cg_deinterleave8_avx2_(__m256 x, __m256 y, __m256 *a, __m256 *b) {
    *a = cg_swap_middle64_avx2_(_mm256_shuffle_ps(x, y, 0x88));
    *b = cg_swap_middle64_avx2_(_mm256_shuffle_ps(x, y, 0xdd));
}
CG_AVX2_INLINE_ __m256 cg_dct_matvec8_avx2_(const float *m, const float *t) {
    __m256 s = cg_mul8_avx2_(_mm256_loadu_ps(m), _mm256_broadcast_ss(t));
    s = _mm256_add_ps(s, cg_mul8_avx2_(_mm256_loadu_ps(m + 8), _mm256_broadcast_ss(t + 1)));
    s = _mm256_add_ps(s, cg_mul8_avx2_(_mm256_loadu_ps(m + 16), _mm256_broadcast_ss(t + 2)));
    s = _mm256_add_ps(s, cg_mul8_avx2_(_mm256_loadu_ps(m + 24), _mm256_broadcast_ss(t + 3)));
    s = _mm256_add_ps(s, cg_mul8_avx2_(_mm256_loadu_ps(m + 32), _mm256_broadcast_ss(t + 4)));
    s = _mm256_add_ps(s, cg_mul8_avx2_(_mm256_loadu_ps(m + 40), _mm256_broadcast_ss(t + 5)));
    s = _mm256_add_ps(s, cg_mul8_avx2_(_mm256_loadu_ps(m + 48), _mm256_broadcast_ss(t + 6)));
    return _mm256_add_ps(s, cg_mul8_avx2_(_mm256_loadu_ps(m + 56), _mm256_broadcast_ss(t + 7)));
}
/* through memory: it gives single values away for nothing */
CG_AVX2_INLINE_ void cg_dct_matvecs_avx2_(__m256 *x, int inverse) {
    const float *two = inverse ? cg_dct3_matrix_ : cg_dct2_matrix_;
    float t[64];
    _mm256_storeu_ps(t, x[0]);
    _mm256_storeu_ps(t + 8, x[1]);
    _mm256_storeu_ps(t + 16, x[2]);
    _mm256_storeu_ps(t + 24, x[3]);
    _mm256_storeu_ps(t + 32, x[4]);
    _mm256_storeu_ps(t + 40, x[5]);
    _mm256_storeu_ps(t + 48, x[6]);
    _mm256_storeu_ps(t + 56, x[7]);
    x[0] = cg_dct_matvec8_avx2_(two, t);
    x[1] = cg_dct_matvec8_avx2_(cg_dct4_matrix_, t + 8);
    x[2] = cg_dct_matvec8_avx2_(two, t + 16);
    x[3] = cg_dct_matvec8_avx2_(two, t + 24);
    x[4] = cg_dct_matvec8_avx2_(two, t + 32);
    x[5] = cg_dct_matvec8_avx2_(cg_dct4_matrix_, t + 40);
    x[6] = cg_dct_matvec8_avx2_(two, t + 48);
    x[7] = cg_dct_matvec8_avx2_(cg_dct4_matrix_, t + 56);
}
CG_TARGET_AVX2_ static void cg_dct_forward_avx2_(float *v) {
    const __m256 none = _mm256_setzero_ps();
    __m256 x[8], u0, u1, u2, u3, w0, w1, w2, w3, e0, e1, o0, o1, p0, p1, q0, q1;
    cg_dct_fold8_avx2_(cg_load8_ps_avx2_(v, 0), cg_load8_ps_avx2_(v, 56), &u0, &w0);
    cg_dct_fold8_avx2_(cg_load8_ps_avx2_(v, 8), cg_load8_ps_avx2_(v, 48), &u1, &w1);
    cg_dct_fold8_avx2_(cg_load8_ps_avx2_(v, 16), cg_load8_ps_avx2_(v, 40), &u2, &w2);
    cg_dct_fold8_avx2_(cg_load8_ps_avx2_(v, 24), cg_load8_ps_avx2_(v, 32), &u3, &w3);
    cg_dct_fold8_avx2_(u0, u3, &e0, &o0);
    cg_dct_fold8_avx2_(u1, u2, &e1, &o1);
    cg_dct_fold8_avx2_(e0, e1, x, x + 1);
    cg_dct_givens8_avx2_(o0, o1, 16, x + 2, x + 3);
    cg_dct_givens8_avx2_(w0, w3, 0, &p0, &q0);
    cg_dct_givens8_avx2_(w1, w2, 8, &p1, &q1);
    cg_dct_fold8_avx2_(p0, p1, x + 4, x + 5);
    cg_dct_fold8_avx2_(q0, q1, x + 6, x + 7);
    cg_dct_matvecs_avx2_(x, 0);
    p0 = cg_sqrt2_first_avx2_(x[2]);
    q0 = cg_sqrt2_first_avx2_(x[3]);
    e0 = _mm256_add_ps(p0, cg_reverse_avx2_(cg_next_lane_avx2_(q0, none)));
    o0 = _mm256_sub_ps(cg_next_lane_avx2_(p0, none), cg_reverse_avx2_(q0));
    cg_interleave8_avx2_(e0, o0, &e0, &e1);     /* 2, 6, 10, ... */
    cg_interleave8_avx2_(x[0], x[1], &o0, &o1); /* 0, 4, 8, ... */
    cg_interleave8_avx2_(o0, e0, &u0, &u1);
    cg_interleave8_avx2_(o1, e1, &u2, &u3);
    cg_interleave8_avx2_(x[4], x[5], &p0, &p1);
    cg_interleave8_avx2_(x[6], x[7], &q0, &q1);
    p0 = cg_sqrt2_first_avx2_(p0);
    q0 = cg_sqrt2_first_avx2_(q0);
    e0 = _mm256_add_ps(p0, cg_reverse_avx2_(cg_next_lane_avx2_(q1, none)));
    e1 = _mm256_add_ps(p1, cg_reverse_avx2_(cg_next_lane_avx2_(q0, q1)));
    o0 = _mm256_sub_ps(cg_next_lane_avx2_(p0, p1), cg_reverse_avx2_(q1));
    o1 = _mm256_sub_ps(cg_next_lane_avx2_(p1, none), cg_reverse_avx2_(q0));
    cg_interleave8_avx2_(e0, o0, &w0, &w1);
    cg_interleave8_avx2_(e1, o1, &w2, &w3);
    cg_interleave8_avx2_(u0, w0, x, x + 1);
    cg_interleave8_avx2_(u1, w1, x + 2, x + 3);
    cg_interleave8_avx2_(u2, w2, x + 4, x + 5);
    cg_interleave8_avx2_(u3, w3, x + 6, x + 7);
    for (size_t i = 0; i < 8; i++) cg_store8_avx2_(v, 8 * i, x[i]);
}
CG_TARGET_AVX2_ static void cg_dct_inverse_avx2_(float *v) {
    const __m256 none = _mm256_setzero_ps();
    __m256 x[8], u0, u1, u2, u3, w0, w1, w2, w3, e0, e1, o0, o1, p0, p1, q0, q1;
    cg_deinterleave8_avx2_(cg_load8_ps_avx2_(v, 0), cg_load8_ps_avx2_(v, 8), &u0, &w0);
    cg_deinterleave8_avx2_(cg_load8_ps_avx2_(v, 16), cg_load8_ps_avx2_(v, 24), &u1, &w1);
    cg_deinterleave8_avx2_(cg_load8_ps_avx2_(v, 32), cg_load8_ps_avx2_(v, 40), &u2, &w2);
    cg_deinterleave8_avx2_(cg_load8_ps_avx2_(v, 48), cg_load8_ps_avx2_(v, 56), &u3, &w3);
    cg_deinterleave8_avx2_(w0, w1, &e0, &o0);
    cg_deinterleave8_avx2_(w2, w3, &e1, &o1);
    p0 = cg_sqrt2_first_avx2_(_mm256_add_ps(e0, cg_prev_lane_avx2_(o0, none)));
    p1 = _mm256_add_ps(e1, cg_prev_lane_avx2_(o1, o0));
    q1 = cg_reverse_avx2_(_mm256_sub_ps(cg_next_lane_avx2_(e0, e1), o0));
    q0 = cg_sqrt2_first_avx2_(cg_reverse_avx2_(_mm256_sub_ps(cg_next_lane_avx2_(e1, none), o1)));
    cg_deinterleave8_avx2_(p0, p1, x + 4, x + 5);
    cg_deinterleave8_avx2_(q0, q1, x + 6, x + 7);
    cg_deinterleave8_avx2_(u0, u1, &p0, &q0);
    cg_deinterleave8_avx2_(u2, u3, &p1, &q1);
    cg_deinterleave8_avx2_(p0, p1, x, x + 1);
    cg_deinterleave8_avx2_(q0, q1, &e0, &o0);
    x[2] = cg_sqrt2_first_avx2_(_mm256_add_ps(e0, cg_prev_lane_avx2_(o0, none)));
    x[3] = cg_sqrt2_first_avx2_(cg_reverse_avx2_(_mm256_sub_ps(cg_next_lane_avx2_(e0, none), o0)));
    cg_dct_matvecs_avx2_(x, 1);
    cg_dct_unfold8_avx2_(x[4], x[5], &p0, &p1);
    cg_dct_unfold8_avx2_(x[6], x[7], &q0, &q1);
    cg_dct_givens_inv8_avx2_(p0, q0, 0, &w0, &w3);
    cg_dct_givens_inv8_avx2_(p1, q1, 8, &w1, &w2);
    cg_dct_unfold8_avx2_(x[0], x[1], &e0, &e1);
    cg_dct_givens_inv8_avx2_(x[2], x[3], 16, &o0, &o1);
    cg_dct_unfold8_avx2_(e0, o0, &u0, &u3);
    cg_dct_unfold8_avx2_(e1, o1, &u1, &u2);
    cg_dct_unfold8_avx2_(u0, w0, x, x + 7);
    cg_dct_unfold8_avx2_(u1, w1, x + 1, x + 6);
    cg_dct_unfold8_avx2_(u2, w2, x + 2, x + 5);
    cg_dct_unfold8_avx2_(u3, w3, x + 3, x + 4);
    for (size_t i = 0; i < 8; i++) cg_store8_avx2_(v, 8 * i, x[i]);
}
CG_TARGET_AVX2_ static void cg_dct_avx2_(float *v, int inverse) {
    if (inverse) cg_dct_inverse_avx2_(v);
    else cg_dct_forward_avx2_(v);
}
#endif
#if CG_NEON_
static void cg_dct_neon_(float *v, int inverse) { /* the products; the rest is small beside them */
    float x[64], t[64], y[64];
    memcpy(x, v, sizeof x);
    if (inverse) cg_idct_split_(x, t);
    else cg_dct_split_(x, t);
    for (size_t g = 0; g < 8; g++) {
        const float *m = cg_dct_matrix_of_(g, inverse);
        float32x4_t a = cg_times_neon_(vld1q_f32(m), vdupq_n_f32(t[8 * g])),
                    b = cg_times_neon_(vld1q_f32(m + 4), vdupq_n_f32(t[8 * g]));
        for (size_t i = 1; i < 8; i++) {
            a = a + cg_times_neon_(vld1q_f32(m + 8 * i), vdupq_n_f32(t[8 * g + i]));
            b = b + cg_times_neon_(vld1q_f32(m + 8 * i + 4), vdupq_n_f32(t[8 * g + i]));
        }
        vst1q_f32(y + 8 * g, a);
        vst1q_f32(y + 8 * g + 4, b);
    }
    if (inverse) cg_idct_merge_(y, x);
    else cg_dct_merge_(y, x);
    memcpy(v, x, sizeof x);
}
#endif

/* src/core/kernels/fp8.h */
/* ---- float formats and power-of-two quantizers ---- */

#if CG_AVX2_
/* four vectors packed to bytes stand in pairs of lanes: in order again */
CG_AVX2_INLINE_ __m256i cg_order_avx2_(__m256i packed) {
    return _mm256_permutevar8x32_epi32(packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}
/* packing with signed saturation keeps the sign, so that the top bit of each byte is that of the float */
CG_AVX2_INLINE_ __m256i cg_sign_bytes_avx2_(__m256i a, __m256i b, __m256i c, __m256i d) {
    return _mm256_and_si256(
        _mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d)), _mm256_set1_epi8(-128));
}
CG_AVX2_INLINE_ __m256i cg_narrow_avx2_(__m256i a, __m256i b, __m256i c, __m256i d) { /* 0..255 */
    return _mm256_packus_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
}
CG_AVX2_INLINE_ __m256i cg_swap_halves_avx2_(__m256i h) {
    return _mm256_shuffle_epi8(h,
        _mm256_setr_epi8(2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14,
            15, 12, 13));
}
#endif
#if CG_NEON_
/* the top bit of each float, as that of a byte */
CG_INLINE_ uint8x16_t cg_sign_bytes_neon_(uint32x4_t a, uint32x4_t b, uint32x4_t c, uint32x4_t d) {
    uint16x8_t ab = vuzp2q_u16(vreinterpretq_u16_u32(a), vreinterpretq_u16_u32(b));
    uint16x8_t cd = vuzp2q_u16(vreinterpretq_u16_u32(c), vreinterpretq_u16_u32(d));
    return vandq_u8(vuzp2q_u8(vreinterpretq_u8_u16(ab), vreinterpretq_u8_u16(cd)), vdupq_n_u8(0x80));
}
#endif
/* The hash that a value rounds with: the bits of cg_noise_ */
CG_INLINE_ uint32_t cg_noise_bits_(cg_key_ key, uint32_t position) {
    uint32_t h = cg_hash32_(key, (position >> 4) << 3 | (position & 7));
    return position & 8 ? h << 16 | h >> 16 : h;
}

/* fp8 of v*inv, kind 0: E4M3, 1: E5M2, to nearest even; what is too large becomes 448 or 57344; zeros keep their sign.
   Adding a power of two so much larger that the sum's last bit is the code's last bit does the rounding. */
/* bits dropped; smallest normal and largest as f32 bits; least >> drop */
typedef struct cg_fp8_format_ {
    uint32_t dropped_bits, min_normal_bits, max_bits, code_bias;
} cg_fp8_format_;
CG_INLINE_ cg_fp8_format_ cg_fp8_format_of_(int kind) {
    const cg_fp8_format_ e4m3 = { 20, 0x3c800000u, 0x43e00000u, 0x3c8 }, e5m2 = { 21, 0x38800000u, 0x47600000u, 0x1c4 };
    return kind ? e5m2 : e4m3;
}
static void cg_fp8_encode_scalar_(const float *v, size_t n, float inv, int kind, uint8_t *out) {
    const cg_fp8_format_ q = cg_fp8_format_of_(kind);
    for (size_t i = 0; i < n; i++) {
        float f = cg_load_(v, i);
        uint32_t m = cg_as_bits_(cg_times_(f, inv)) & CG_ABS_MASK_, e, large, sum;
        m = m < q.max_bits ? m : q.max_bits;
        e = cg_max32_(m & 0x7f800000u, q.min_normal_bits);
        large = e + (q.dropped_bits << 23);
        sum = cg_as_bits_(cg_plus_(cg_as_float_(m), cg_as_float_(large)));
        out[i] = (uint8_t)((cg_as_bits_(f) >> 24 & 0x80u) | (sum - large + (e >> q.dropped_bits) - q.code_bias));
    }
}
#if CG_AVX2_
/* the magnitude, and q.bias more */
CG_AVX2_INLINE_ __m256i cg_fp8_encode8_avx2_(__m256i v, __m256 inv, cg_fp8_format_ q) {
    __m256i m = cg_abs_avx2_(_mm256_castps_si256(cg_mul8_avx2_(_mm256_castsi256_ps(v), inv))), e, large, sum;
    m = _mm256_min_epu32(m, _mm256_set1_epi32((int)q.max_bits));
    e = _mm256_max_epu32(_mm256_and_si256(m, _mm256_set1_epi32(0x7f800000)), _mm256_set1_epi32((int)q.min_normal_bits));
    large = _mm256_add_epi32(e, _mm256_set1_epi32((int)(q.dropped_bits << 23)));
    sum = _mm256_castps_si256(_mm256_add_ps(_mm256_castsi256_ps(m), _mm256_castsi256_ps(large)));
    return _mm256_add_epi32(_mm256_sub_epi32(sum, large), _mm256_srl_epi32(e, _mm_cvtsi32_si128((int)q.dropped_bits)));
}
CG_AVX2_INLINE_ size_t cg_fp8_encode32_avx2_(const float *v, size_t n, float inv, cg_fp8_format_ q, uint8_t *out) {
    const __m256 by = _mm256_set1_ps(inv);
    const __m256i bias = _mm256_set1_epi16((short)q.code_bias);
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        __m256i a = cg_load8_avx2_(v, i), b = cg_load8_avx2_(v, i + 8), c = cg_load8_avx2_(v, i + 16),
                d = cg_load8_avx2_(v, i + 24);
        __m256i ab = _mm256_sub_epi16(
            _mm256_packs_epi32(cg_fp8_encode8_avx2_(a, by, q), cg_fp8_encode8_avx2_(b, by, q)), bias);
        __m256i cd = _mm256_sub_epi16(
            _mm256_packs_epi32(cg_fp8_encode8_avx2_(c, by, q), cg_fp8_encode8_avx2_(d, by, q)), bias);
        CG_PREFETCH_(cg_at_(v, i + CG_CHUNK_));
        CG_PREFETCH_(cg_at_(v, i + CG_CHUNK_ + 16));
        cg_store_avx2_(
            out + i, cg_order_avx2_(_mm256_or_si256(_mm256_packus_epi16(ab, cd), cg_sign_bytes_avx2_(a, b, c, d))));
    }
    return i;
}
CG_TARGET_AVX2_ static void cg_fp8_encode_avx2_(const float *v, size_t n, float inv, int kind, uint8_t *out) {
    size_t i = kind ? cg_fp8_encode32_avx2_(v, n, inv, cg_fp8_format_of_(1), out)
                    : cg_fp8_encode32_avx2_(v, n, inv, cg_fp8_format_of_(0), out);
    _mm256_zeroupper();
    if (i < n) cg_fp8_encode_scalar_(cg_at_(v, i), n - i, inv, kind, out + i);
}
#endif
#if CG_NEON_
CG_INLINE_ uint32x4_t cg_fp8_encode4_neon_(uint32x4_t v, float32x4_t inv, cg_fp8_format_ q) {
    uint32x4_t m = vminq_u32(
        cg_abs_neon_(vreinterpretq_u32_f32(cg_times_neon_(cg_as_float_neon_(v), inv))), vdupq_n_u32(q.max_bits));
    uint32x4_t e = vmaxq_u32(vandq_u32(m, vdupq_n_u32(0x7f800000u)), vdupq_n_u32(q.min_normal_bits));
    uint32x4_t large = vaddq_u32(e, vdupq_n_u32(q.dropped_bits << 23));
    uint32x4_t sum = vreinterpretq_u32_f32(cg_as_float_neon_(m) + cg_as_float_neon_(large));
    return vsubq_u32(vaddq_u32(vsubq_u32(sum, large), vshlq_u32(e, vdupq_n_s32(-(int32_t)q.dropped_bits))),
        vdupq_n_u32(q.code_bias));
}
static void cg_fp8_encode_neon_(const float *v, size_t n, float inv, int kind, uint8_t *out) {
    const cg_fp8_format_ q = cg_fp8_format_of_(kind);
    const float32x4_t by = vdupq_n_f32(inv);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        uint32x4_t a = cg_load4_neon_(v, i), b = cg_load4_neon_(v, i + 4), c = cg_load4_neon_(v, i + 8),
                   d = cg_load4_neon_(v, i + 12);
        uint8x16_t m = cg_narrow_neon_(cg_fp8_encode4_neon_(a, by, q), cg_fp8_encode4_neon_(b, by, q),
            cg_fp8_encode4_neon_(c, by, q), cg_fp8_encode4_neon_(d, by, q));
        vst1q_u8(out + i, vorrq_u8(m, cg_sign_bytes_neon_(a, b, c, d)));
    }
    cg_fp8_encode_scalar_(cg_at_(v, i), n - i, inv, kind, out + i);
}
#endif

/* Both formats are halves that lack mantissa bits, E4M3 one that lacks an exponent bit too: its values are 2^-8 there.
   NaN and Inf codes decode as the largest value, so that any byte is legal. */
static void cg_fp8_decode_scalar_(const uint8_t *in, size_t n, float scale, int kind, float *out, int stream) {
    (void)stream;
    for (size_t i = 0; i < n; i++) {
        uint32_t m = in[i] & 0x7fu, most = kind ? 0x7bu : 0x7eu;
        float f = cg_f16_decode_((in[i] & 0x80u) << 8 | (m < most ? m : most) << (kind ? 8 : 7));
        cg_store_(out, i, cg_saturate_(cg_times_(cg_times_(f, kind ? 1.0f : 256.0f), scale)));
    }
}
#if CG_AVX2_
CG_AVX2_INLINE_ size_t cg_fp8_decode16_avx2_(
    const uint8_t *in, size_t n, float scale, int kind, float *out, int stream) {
    const __m256 by = _mm256_set1_ps(scale), most = _mm256_set1_ps(CG_FLT_MAX_), least = _mm256_set1_ps(-CG_FLT_MAX_);
    const __m128i top = _mm_set1_epi8(kind ? 0x7b : 0x7e), low = _mm_set1_epi8(0x7f), zero = _mm_setzero_si128();
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m128i b = _mm_loadu_si128((const __m128i *)(const void *)(in + i)), s = _mm_andnot_si128(low, b), h[2];
        __m128i m = _mm_min_epu8(_mm_and_si128(b, low), top);
        h[0] = _mm_unpacklo_epi8(zero, m);
        h[1] = _mm_unpackhi_epi8(zero, m);
        if (!kind) {
            h[0] = _mm_srli_epi16(h[0], 1);
            h[1] = _mm_srli_epi16(h[1], 1);
        }
        h[0] = _mm_or_si128(h[0], _mm_unpacklo_epi8(zero, s));
        h[1] = _mm_or_si128(h[1], _mm_unpackhi_epi8(zero, s));
        for (int j = 0; j < 2; j++) {
            __m256 f = _mm256_cvtph_ps(h[j]);
            if (!kind) f = cg_mul8_avx2_(f, _mm256_set1_ps(256.0f));
            f = _mm256_max_ps(_mm256_min_ps(cg_mul8_avx2_(f, by), most), least);
            cg_store_stream_avx2_(out, i + 8 * (size_t)j, _mm256_castps_si256(f), stream);
        }
    }
    return i;
}
CG_TARGET_AVX2_ static void cg_fp8_decode_avx2_(
    const uint8_t *in, size_t n, float scale, int kind, float *out, int stream) {
    size_t i = kind
        ? stream ? cg_fp8_decode16_avx2_(in, n, scale, 1, out, 1) : cg_fp8_decode16_avx2_(in, n, scale, 1, out, 0)
        : stream ? cg_fp8_decode16_avx2_(in, n, scale, 0, out, 1)
                 : cg_fp8_decode16_avx2_(in, n, scale, 0, out, 0);
    _mm256_zeroupper();
    if (i < n) cg_fp8_decode_scalar_(in + i, n - i, scale, kind, cg_at_mut_(out, i), 0);
}
#endif
#if CG_NEON_
static void cg_fp8_decode_neon_(const uint8_t *in, size_t n, float scale, int kind, float *out, int stream) {
    const float32x4_t by = vdupq_n_f32(scale), lift = vdupq_n_f32(kind ? 1.0f : 256.0f);
    const float32x4_t most = vdupq_n_f32(CG_FLT_MAX_), least = vdupq_n_f32(-CG_FLT_MAX_);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint8x8_t b = vld1_u8(in + i), m = vmin_u8(vand_u8(b, vdup_n_u8(0x7f)), vdup_n_u8(kind ? 0x7b : 0x7e));
        uint16x8_t w = vshlq_u16(vmovl_u8(m), vdupq_n_s16(kind ? 8 : 7));
        float16x8_t h = vreinterpretq_f16_u16(vorrq_u16(w, vshll_n_u8(vand_u8(b, vdup_n_u8(0x80)), 8)));
        cg_store4_neon_(out, i, vmaxq_f32(vminq_f32(vcvt_f32_f16(vget_low_f16(h)) * lift * by, most), least));
        cg_store4_neon_(out, i + 4, vmaxq_f32(vminq_f32(vcvt_high_f32_f16(h) * lift * by, most), least));
    }
    cg_fp8_decode_scalar_(in + i, n - i, scale, kind, cg_at_mut_(out, i), stream);
}
#endif

/* E2M1: code i+1 or more where t > limits[i]. To nearest, ties to the even code: a tie that goes up has the float
   below it as its limit. */
static const float cg_e2m1_values_[8] = { 0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f };
static const float cg_e2m1_limits_[7] = { 0.25f, 0.749999940f, 1.25f, 1.74999988f, 2.5f, 3.49999976f, 5.0f };

/* E8M0: the byte b stands for 2^(b-127). top/2^emax's power of two, rounded down; 0 gives the smallest. 255, which
   is NaN, counts as 254. */
static unsigned cg_e8m0_encode_(uint32_t top_bits, int emax) {
    int e;
    if (!top_bits) return 0;
    e = (top_bits >> 23 ? (int)(top_bits >> 23) : (int)cg_log2_(top_bits) - 22) - emax;
    return (unsigned)(e < 0 ? 0 : e > 254 ? 254 : e);
}
static float cg_e8m0_decode_(unsigned byte) {
    return cg_as_float_(!byte ? 0x00400000u : byte < 254 ? (uint32_t)byte << 23 : 254u << 23);
}

/* src/core/kernels/natural.h */
/* natural compression: a power of two is sent as its exponent byte (0: zero), n of them, then n sign bits (of a
   zero: 0). Adding 23 random bits below the exponent carries into it as often as the rounding must go up; nearest
   adds a half: ties go away from zero. Denormals round to 0 or 2^-126 likewise. Beyond 2^127 there is nothing to
   round to. */
CG_INLINE_ uint32_t cg_natural_encode_split_(
    const float *v, size_t n, cg_key_ key, uint32_t position, int stochastic, uint8_t *exponents, uint8_t *signs) {
    uint32_t top = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t u = cg_load_bits_(v, i), m = u & CG_ABS_MASK_;
        uint32_t e = (m + (stochastic ? cg_noise_bits_(key, position + (uint32_t)i) >> 9 : 0x400000u)) >> 23;
        top = cg_max32_(top, m);
        exponents[i] = (uint8_t)(e < 254 ? e : 254);
        if (i % 8 == 0) signs[i / 8] = 0;
        signs[i / 8] = (uint8_t)(signs[i / 8] | (e ? u >> 31 : 0) << i % 8);
    }
    return top;
}
static uint32_t cg_natural_encode_scalar_(
    const float *v, size_t n, cg_key_ key, uint32_t position, int stochastic, uint8_t *out) {
    return cg_natural_encode_split_(v, n, key, position, stochastic, out, out + n);
}
#if CG_AVX2_
CG_AVX2_INLINE_ size_t cg_natural_encode32_avx2_(
    const float *v, size_t n, cg_key_ key, uint32_t position, int stochastic, uint8_t *out, __m256i *top) {
    __m256i t0 = _mm256_setzero_si256(), t1 = t0;
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        __m256i a = cg_load8_avx2_(v, i), b = cg_load8_avx2_(v, i + 8), c = cg_load8_avx2_(v, i + 16),
                d = cg_load8_avx2_(v, i + 24);
        __m256i s = cg_sign_bytes_avx2_(a, b, c, d), p, q, r, t, e;
        cg_prefetch_ahead_avx2_(v, i);
        a = cg_abs_avx2_(a);
        b = cg_abs_avx2_(b);
        c = cg_abs_avx2_(c);
        d = cg_abs_avx2_(d);
        t0 = _mm256_max_epu32(t0, _mm256_max_epu32(a, b));
        t1 = _mm256_max_epu32(t1, _mm256_max_epu32(c, d));
        if (stochastic) {
            p = cg_hash8_avx2_(key, (position + (uint32_t)i) >> 1);
            r = cg_hash8_avx2_(key, ((position + (uint32_t)i) >> 1) + 8);
            q = _mm256_srli_epi32(cg_swap_halves_avx2_(p), 9);
            t = _mm256_srli_epi32(cg_swap_halves_avx2_(r), 9);
            p = _mm256_srli_epi32(p, 9);
            r = _mm256_srli_epi32(r, 9);
        } else {
            p = q = r = t = _mm256_set1_epi32(0x400000);
        }
        a = _mm256_srli_epi32(_mm256_add_epi32(a, p), 23);
        b = _mm256_srli_epi32(_mm256_add_epi32(b, q), 23);
        c = _mm256_srli_epi32(_mm256_add_epi32(c, r), 23);
        d = _mm256_srli_epi32(_mm256_add_epi32(d, t), 23);
        e = _mm256_min_epu8(cg_narrow_avx2_(a, b, c, d), _mm256_set1_epi8((char)-2));
        s = _mm256_andnot_si256(_mm256_cmpeq_epi8(e, _mm256_setzero_si256()), s);
        cg_store_avx2_(out + i, cg_order_avx2_(e));
        cg_put32_(out + n + i / 8, (uint32_t)_mm256_movemask_epi8(cg_order_avx2_(s)));
    }
    *top = _mm256_max_epu32(t0, t1);
    return i;
}
CG_TARGET_AVX2_ static uint32_t cg_natural_encode_avx2_(
    const float *v, size_t n, cg_key_ key, uint32_t position, int stochastic, uint8_t *out) {
    __m256i top;
    uint32_t most;
    size_t i;
    if (stochastic && (position & 15)) return cg_natural_encode_scalar_(v, n, key, position, stochastic, out);
    i = stochastic ? cg_natural_encode32_avx2_(v, n, key, position, 1, out, &top)
                   : cg_natural_encode32_avx2_(v, n, key, position, 0, out, &top);
    most = cg_hmax_u32_avx2_(top);
    return i < n ? cg_max32_(most,
                       cg_natural_encode_split_(
                           cg_at_(v, i), n - i, key, position + (uint32_t)i, stochastic, out + i, out + n + i / 8))
                 : most;
}
#endif
#if CG_NEON_
CG_INLINE_ uint32x4_t cg_natural_encode4_neon_(uint32x4_t m, uint32x4_t h, int stochastic) {
    m = stochastic ? vaddq_u32(m, vshrq_n_u32(h, 9)) : vaddq_u32(m, vdupq_n_u32(0x400000u));
    return vminq_u32(vshrq_n_u32(m, 23), vdupq_n_u32(254));
}
/* 16 values: their exponents go out, their signs come back as byte masks */
CG_INLINE_ uint8x16_t cg_natural_encode16_neon_(
    const float *v, size_t i, cg_key_ key, uint32_t position, int stochastic, uint8_t *out, uint32x4_t *top) {
    uint32x4_t a = cg_load4_neon_(v, i), b = cg_load4_neon_(v, i + 4), c = cg_load4_neon_(v, i + 8),
               d = cg_load4_neon_(v, i + 12), h = a, g = a;
    uint8x16_t s = cg_sign_bytes_neon_(a, b, c, d), e;
    a = cg_abs_neon_(a);
    b = cg_abs_neon_(b);
    c = cg_abs_neon_(c);
    d = cg_abs_neon_(d);
    *top = vmaxq_u32(*top, vmaxq_u32(vmaxq_u32(a, b), vmaxq_u32(c, d)));
    if (stochastic) {
        h = cg_hash4_neon_(key, (position + (uint32_t)i) >> 1);
        g = cg_hash4_neon_(key, ((position + (uint32_t)i) >> 1) + 4);
    }
    e = cg_narrow_neon_(cg_natural_encode4_neon_(a, h, stochastic), cg_natural_encode4_neon_(b, g, stochastic),
        cg_natural_encode4_neon_(c, cg_swap_halves_neon_(h), stochastic),
        cg_natural_encode4_neon_(d, cg_swap_halves_neon_(g), stochastic));
    vst1q_u8(out + i, e);
    return vandq_u8(vtstq_u8(s, s), vtstq_u8(e, e));
}
static uint32_t cg_natural_encode_neon_(
    const float *v, size_t n, cg_key_ key, uint32_t position, int stochastic, uint8_t *out) {
    uint32x4_t top = vdupq_n_u32(0);
    size_t i = 0;
    if (stochastic && (position & 15)) return cg_natural_encode_scalar_(v, n, key, position, stochastic, out);
    for (; i + 64 <= n; i += 64) {
        uint8x16_t s[4];
        for (size_t j = 0; j < 4; j++)
            s[j] = cg_natural_encode16_neon_(v, i + 16 * j, key, position, stochastic, out, &top);
        cg_put64_(out + n + i / 8, cg_movemask_neon_(s[0], s[1], s[2], s[3]));
    }
    return cg_max32_(vmaxvq_u32(top),
        cg_natural_encode_split_(
            cg_at_(v, i), n - i, key, position + (uint32_t)i, stochastic, out + i, out + n + i / 8));
}
#endif

CG_INLINE_ void cg_natural_decode_split_(const uint8_t *exponents, const uint8_t *signs, size_t n, float *out) {
    for (size_t i = 0; i < n; i++) {
        uint32_t e = exponents[i] < 254 ? exponents[i] : 254u;
        cg_store_(out, i, cg_as_float_(e << 23 | (e ? (uint32_t)(signs[i / 8] >> i % 8 & 1) << 31 : 0u)));
    }
}
static void cg_natural_decode_scalar_(const uint8_t *in, size_t n, float *out, int stream) {
    (void)stream;
    cg_natural_decode_split_(in, in + n, n, out);
}
#if CG_AVX2_
CG_TARGET_AVX2_ static void cg_natural_decode_avx2_(const uint8_t *in, size_t n, float *out, int stream) {
    const __m256i minus = _mm256_set1_epi32((int)0x80000000u), s0 = _mm256_setr_epi32(31, 30, 29, 28, 27, 26, 25, 24);
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        __m256i e = _mm256_min_epu8(cg_load_bytes_avx2_(in + i), _mm256_set1_epi8((char)-2)), w;
        uint32_t zeros = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(e, _mm256_setzero_si256()));
        __m128i part[4];
        part[0] = _mm256_castsi256_si128(e);
        part[2] = _mm256_extracti128_si256(e, 1);
        part[1] = _mm_srli_si128(part[0], 8);
        part[3] = _mm_srli_si128(part[2], 8);
        w = _mm256_set1_epi32((int)(cg_get32_(in + n + i / 8) & ~zeros));
        for (int j = 0; j < 4; j++) { /* bring each bit to where the sign is */
            __m256i s = _mm256_and_si256(_mm256_sllv_epi32(w, _mm256_sub_epi32(s0, _mm256_set1_epi32(8 * j))), minus);
            cg_store_stream_avx2_(out, i + 8 * (size_t)j,
                _mm256_or_si256(s, _mm256_slli_epi32(_mm256_cvtepu8_epi32(part[j]), 23)), stream);
        }
    }
    _mm256_zeroupper();
    if (i < n) cg_natural_decode_split_(in + i, in + n + i / 8, n - i, cg_at_mut_(out, i));
}
#endif
#if CG_NEON_
static void cg_natural_decode_neon_(const uint8_t *in, size_t n, float *out, int stream) {
    const uint32x4_t minus = vdupq_n_u32(0x80000000u);
    const int32x4_t low = { 31, 30, 29, 28 }, high = { 27, 26, 25, 24 };
    size_t i = 0;
    (void)stream;
    for (; i + 8 <= n; i += 8) {
        const uint32x4_t w = vdupq_n_u32(in[n + i / 8]);
        uint16x8_t e = vmovl_u8(vmin_u8(vld1_u8(in + i), vdup_n_u8(254)));
        /* a widening shift goes no further */
        uint32x4_t a = vshll_n_u16(vget_low_u16(e), 16), b = vshll_high_n_u16(e, 16);
        a = vorrq_u32(vshlq_n_u32(a, 7), vandq_u32(vandq_u32(vshlq_u32(w, low), minus), vtstq_u32(a, a)));
        b = vorrq_u32(vshlq_n_u32(b, 7), vandq_u32(vandq_u32(vshlq_u32(w, high), minus), vtstq_u32(b, b)));
        cg_store4_neon_(out, i, cg_as_float_neon_(a));
        cg_store4_neon_(out, i + 4, cg_as_float_neon_(b));
    }
    cg_natural_decode_split_(in + i, in + n + i / 8, n - i, cg_at_mut_(out, i));
}
#endif

/* natural dithering: magnitude level 0, or m = 1..s for 2^(m-s), s = 2^(bits-1)-1, of t = |v|*inv <= 1; the bit
   above is the sign (of level 0: 0). From the lowest power on, as natural compression rounds. Below it, 1 with
   probability t/2^(1-s); nearest: if more than half of that. */
CG_INLINE_ unsigned cg_dither_levels_(unsigned bits) { return (1u << (bits - 1)) - 1u; }
static void cg_dither_encode_scalar_(
    const cg_dither_ *q, cg_key_ key, uint32_t position, const float *v, size_t n, uint8_t *symbols) {
    const unsigned s = cg_dither_levels_(q->bits);
    const uint32_t least = (uint32_t)(128 - s) << 23;
    const float lift = cg_as_float_((uint32_t)(126 + s) << 23); /* 2^(s-1) */
    for (size_t i = 0; i < n; i++) {
        float f = cg_load_(v, i), limit = 0.5f;
        uint32_t t = cg_as_bits_(cg_times_(f, q->inv_scale)) & CG_ABS_MASK_, add = 0x400000u, m = 0;
        if (q->stochastic) {
            uint32_t h = cg_noise_bits_(key, position + (uint32_t)i);
            add = h >> 9;
            limit = cg_times_((float)(int32_t)(h >> 8), 5.9604644775390625e-8f);
        }
        t = t < 0x3f800000u ? t : 0x3f800000u;
        /* surely, if t >= 2^(1-s) */
        if (limit < cg_times_(cg_as_float_(t), lift)) m = ((cg_max32_(t, least) + add) >> 23) - (127 - s);
        symbols[i] = (uint8_t)(m | (m ? cg_as_bits_(f) >> 31 : 0) << (q->bits - 1));
    }
}
#if CG_AVX2_
CG_AVX2_INLINE_ __m256i cg_dither_encode8_avx2_(
    __m256i v, __m256i h, __m256 inv, __m256i least, __m256 lift, int stochastic) {
    __m256i t = cg_abs_avx2_(_mm256_castps_si256(cg_mul8_avx2_(_mm256_castsi256_ps(v), inv))),
            add = _mm256_set1_epi32(0x400000);
    __m256 limit = _mm256_set1_ps(0.5f);
    if (stochastic) {
        add = _mm256_srli_epi32(h, 9);
        limit = cg_mul8_avx2_(_mm256_cvtepi32_ps(_mm256_srli_epi32(h, 8)), _mm256_set1_ps(5.9604644775390625e-8f));
    }
    t = _mm256_min_epu32(t, _mm256_set1_epi32(0x3f800000));
    limit = _mm256_cmp_ps(limit, cg_mul8_avx2_(_mm256_castsi256_ps(t), lift), _CMP_LT_OQ);
    return _mm256_and_si256(
        _mm256_srli_epi32(_mm256_add_epi32(_mm256_max_epu32(t, least), add), 23), _mm256_castps_si256(limit));
}
CG_AVX2_INLINE_ size_t cg_dither_encode32_avx2_(
    const cg_dither_ *q, cg_key_ key, uint32_t position, const float *v, size_t n, uint8_t *symbols, int stochastic) {
    const unsigned s = cg_dither_levels_(q->bits);
    const __m256 inv = _mm256_set1_ps(q->inv_scale),
                 lift = _mm256_castsi256_ps(_mm256_set1_epi32((int)((126 + s) << 23)));
    const __m256i least = _mm256_set1_epi32((int)((128 - s) << 23)), bias = _mm256_set1_epi8((char)(127 - s));
    const __m128i down = _mm_cvtsi32_si128((int)(8 - q->bits));
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        __m256i a = cg_load8_avx2_(v, i), b = cg_load8_avx2_(v, i + 8), c = cg_load8_avx2_(v, i + 16),
                d = cg_load8_avx2_(v, i + 24);
        __m256i sign = _mm256_srl_epi16(cg_sign_bytes_avx2_(a, b, c, d), down), h = a, g = a, m;
        CG_PREFETCH_(cg_at_(v, i + CG_CHUNK_));
        CG_PREFETCH_(cg_at_(v, i + CG_CHUNK_ + 16));
        if (stochastic) {
            h = cg_hash8_avx2_(key, (position + (uint32_t)i) >> 1);
            g = cg_hash8_avx2_(key, ((position + (uint32_t)i) >> 1) + 8);
        }
        a = cg_dither_encode8_avx2_(a, h, inv, least, lift, stochastic);
        b = cg_dither_encode8_avx2_(b, cg_swap_halves_avx2_(h), inv, least, lift, stochastic);
        c = cg_dither_encode8_avx2_(c, g, inv, least, lift, stochastic);
        d = cg_dither_encode8_avx2_(d, cg_swap_halves_avx2_(g), inv, least, lift, stochastic);
        m = _mm256_subs_epu8(cg_narrow_avx2_(a, b, c, d), bias);
        sign = _mm256_andnot_si256(_mm256_cmpeq_epi8(m, _mm256_setzero_si256()), sign);
        cg_store_avx2_(symbols + i, cg_order_avx2_(_mm256_or_si256(m, sign)));
    }
    return i;
}
CG_TARGET_AVX2_ static void cg_dither_encode_avx2_(
    const cg_dither_ *q, cg_key_ key, uint32_t position, const float *v, size_t n, uint8_t *symbols) {
    size_t head = q->stochastic ? cg_min_(n, (16 - (position & 15)) & 15) : 0, i;
    if (head) cg_dither_encode_scalar_(q, key, position, v, head, symbols);
    v = cg_at_(v, head);
    position += (uint32_t)head;
    symbols += head;
    n -= head;
    i = q->stochastic ? cg_dither_encode32_avx2_(q, key, position, v, n, symbols, 1)
                      : cg_dither_encode32_avx2_(q, key, position, v, n, symbols, 0);
    _mm256_zeroupper();
    if (i < n) cg_dither_encode_scalar_(q, key, position + (uint32_t)i, cg_at_(v, i), n - i, symbols + i);
}
#endif
#if CG_NEON_
CG_INLINE_ uint32x4_t cg_dither_encode4_neon_(
    uint32x4_t v, uint32x4_t h, float32x4_t inv, uint32x4_t least, float32x4_t lift, int stochastic) {
    uint32x4_t t = vminq_u32(
        cg_abs_neon_(vreinterpretq_u32_f32(cg_times_neon_(cg_as_float_neon_(v), inv))), vdupq_n_u32(0x3f800000u));
    uint32x4_t add = stochastic ? vshrq_n_u32(h, 9) : vdupq_n_u32(0x400000u);
    float32x4_t limit = stochastic
        ? cg_times_neon_(vcvtq_f32_u32(vshrq_n_u32(h, 8)), vdupq_n_f32(5.9604644775390625e-8f))
        : vdupq_n_f32(0.5f);
    uint32x4_t some = vcltq_f32(limit, cg_times_neon_(cg_as_float_neon_(t), lift));
    return vandq_u32(vshrq_n_u32(vaddq_u32(vmaxq_u32(t, least), add), 23), some);
}
static void cg_dither_encode_neon_(
    const cg_dither_ *q, cg_key_ key, uint32_t position, const float *v, size_t n, uint8_t *symbols) {
    const unsigned s = cg_dither_levels_(q->bits);
    const int random = q->stochastic, down = (int)q->bits - 8;
    const float32x4_t inv = vdupq_n_f32(q->inv_scale), lift = cg_as_float_neon_(vdupq_n_u32((uint32_t)(126 + s) << 23));
    const uint32x4_t least = vdupq_n_u32((uint32_t)(128 - s) << 23);
    const size_t head = random ? cg_min_(n, (16 - (position & 15)) & 15) : 0;
    size_t i = head;
    cg_dither_encode_scalar_(q, key, position, v, head, symbols);
    for (; i + 16 <= n; i += 16) {
        uint32x4_t a = cg_load4_neon_(v, i), b = cg_load4_neon_(v, i + 4), c = cg_load4_neon_(v, i + 8),
                   d = cg_load4_neon_(v, i + 12), h = a, g = a;
        uint8x16_t sign = vshlq_u8(cg_sign_bytes_neon_(a, b, c, d), vdupq_n_s8((int8_t)down)), m;
        if (random) {
            h = cg_hash4_neon_(key, (position + (uint32_t)i) >> 1);
            g = cg_hash4_neon_(key, ((position + (uint32_t)i) >> 1) + 4);
        }
        m = cg_narrow_neon_(cg_dither_encode4_neon_(a, h, inv, least, lift, random),
            cg_dither_encode4_neon_(b, g, inv, least, lift, random),
            cg_dither_encode4_neon_(c, cg_swap_halves_neon_(h), inv, least, lift, random),
            cg_dither_encode4_neon_(d, cg_swap_halves_neon_(g), inv, least, lift, random));
        m = vqsubq_u8(m, vdupq_n_u8((uint8_t)(127 - s)));
        vst1q_u8(symbols + i, vorrq_u8(m, vandq_u8(sign, vtstq_u8(m, m))));
    }
    cg_dither_encode_scalar_(q, key, position + (uint32_t)i, cg_at_(v, i), n - i, symbols + i);
}
#endif

/* undither: only the low `bits` of a symbol count */
static void cg_dither_decode_scalar_(
    unsigned bits, float scale, const uint8_t *symbols, size_t n, float *out, int stream) {
    const unsigned s = cg_dither_levels_(bits);
    (void)stream;
    for (size_t i = 0; i < n; i++) {
        uint32_t m = symbols[i] & s, sign = (uint32_t)(symbols[i] >> (bits - 1) & 1) << 31;
        cg_store_(out, i, cg_times_(cg_as_float_(m ? sign | (m + 127 - s) << 23 : 0u), scale));
    }
}
#if CG_AVX2_
CG_TARGET_AVX2_ static void cg_dither_decode_avx2_(
    unsigned bits, float scale, const uint8_t *symbols, size_t n, float *out, int stream) {
    const unsigned s = cg_dither_levels_(bits);
    const __m256 by = _mm256_set1_ps(scale);
    const __m128i levels = _mm_set1_epi8((char)s), bias = _mm_set1_epi8((char)(127 - s)),
                  up = _mm_cvtsi32_si128((int)(8 - bits));
    const __m128i high = _mm_set1_epi8((char)(1u << (bits - 1)));
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m128i b = _mm_loadu_si128((const __m128i *)(const void *)(symbols + i)), m = _mm_and_si128(b, levels);
        __m128i none = _mm_cmpeq_epi8(m, _mm_setzero_si128()),
                sign = _mm_sll_epi16(_mm_andnot_si128(none, _mm_and_si128(b, high)), up);
        m = _mm_andnot_si128(none, _mm_add_epi8(m, bias));
        for (int j = 0; j < 2; j++, m = _mm_srli_si128(m, 8), sign = _mm_srli_si128(sign, 8)) {
            __m256i f = _mm256_or_si256(
                _mm256_slli_epi32(_mm256_cvtepu8_epi32(m), 23), _mm256_slli_epi32(_mm256_cvtepu8_epi32(sign), 24));
            cg_store_stream_avx2_(
                out, i + 8 * (size_t)j, _mm256_castps_si256(cg_mul8_avx2_(_mm256_castsi256_ps(f), by)), stream);
        }
    }
    _mm256_zeroupper();
    if (i < n) cg_dither_decode_scalar_(bits, scale, symbols + i, n - i, cg_at_mut_(out, i), 0);
}
#endif
#if CG_NEON_
CG_INLINE_ void cg_dither_decode4_neon_(uint16x4_t m, uint16x4_t sign, float32x4_t scale, float *out, size_t i) {
    uint32x4_t f = vorrq_u32(vshlq_n_u32(vmovl_u16(m), 23), vshlq_n_u32(vmovl_u16(sign), 24));
    cg_store4_neon_(out, i, cg_as_float_neon_(f) * scale);
}
static void cg_dither_decode_neon_(
    unsigned bits, float scale, const uint8_t *symbols, size_t n, float *out, int stream) {
    const unsigned s = cg_dither_levels_(bits);
    const float32x4_t by = vdupq_n_f32(scale);
    const int up = 8 - (int)bits;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint8x8_t b = vld1_u8(symbols + i), m = vand_u8(b, vdup_n_u8((uint8_t)s)), some = vtst_u8(m, m);
        uint8x8_t sign = vand_u8(vand_u8(vshl_u8(b, vdup_n_s8((int8_t)up)), vdup_n_u8(0x80)), some);
        uint16x8_t w = vmovl_u8(vand_u8(vadd_u8(m, vdup_n_u8((uint8_t)(127 - s))), some)), g = vmovl_u8(sign);
        cg_dither_decode4_neon_(vget_low_u16(w), vget_low_u16(g), by, out, i);
        cg_dither_decode4_neon_(vget_high_u16(w), vget_high_u16(g), by, out, i + 4);
    }
    cg_dither_decode_scalar_(bits, scale, symbols + i, n - i, cg_at_mut_(out, i), stream);
}
#endif

/* src/core/kernels/dynamic8.h */
/* dynamic8, Dettmers' tree: sign, then 7 bits that are z zeros, a 1, and 6-z bits f: 10^-z*(0.1 + 0.9*(f +
   0.5)/2^(6-z)); no 1 at all: 0. So far it is the positive half of bitsandbytes' map, which has 1.0 in addition,
   on that side alone; here the code 127 is 1.0 (not 0.99297), so that the largest magnitude is exact on both. As a
   number the 7 bits are the rank of the magnitude; level 0 has no sign. Encoding is to the nearest of these
   floats, ties to the lower: rank i+1 or more where t > limits[i], the midpoint rounded down. */
static const float cg_dynamic8_values_[128] = { .0f, 5.49999982e-7f, 3.24999996e-6f, 7.7499999e-6f, 2.12499999e-5f,
    4.37499984e-5f, 6.62500024e-5f, 8.87499991e-5f, .000156249997f, .000268750009f, .000381249993f, .000493749976f,
    .000606250018f, .000718750001f, .000831249985f, .000943750027f, .00128125004f, .00184375001f, .00240624999f,
    .00296874996f, .00353124994f, .00409374991f, .00465625012f, .00521874987f, .00578125007f, .00634374982f,
    .00690625003f, .00746874977f, .00803124998f, .00859375019f, .00915625039f, .00971874967f, .0114062503f,
    .0142187504f, .0170312505f, .0198437497f, .0226562507f, .0254687499f, .0282812491f, .0310937501f, .0339062512f,
    .0367187485f, .0395312496f, .0423437506f, .0451562516f, .047968749f, .05078125f, .053593751f, .0564062484f,
    .0592187494f, .0620312504f, .0648437515f, .0676562488f, .0704687536f, .0732812509f, .0760937482f, .078906253f,
    .0817187503f, .0845312476f, .0873437524f, .0901562497f, .092968747f, .0957812518f, .0985937491f, .107031249f,
    .12109375f, .135156244f, .149218753f, .163281247f, .177343756f, .19140625f, .205468744f, .219531253f, .233593747f,
    .247656256f, .26171875f, .275781244f, .289843738f, .303906262f, .317968756f, .33203125f, .346093744f, .360156238f,
    .374218762f, .388281256f, .40234375f, .416406244f, .430468738f, .444531262f, .458593756f, .47265625f, .486718744f,
    .500781238f, .514843762f, .528906226f, .54296875f, .557031274f, .571093738f, .585156262f, .599218726f, .61328125f,
    .627343774f, .641406238f, .655468762f, .669531226f, .68359375f, .697656274f, .711718738f, .725781262f, .739843726f,
    .75390625f, .767968774f, .782031238f, .796093762f, .810156226f, .82421875f, .838281274f, .852343738f, .866406262f,
    .880468726f, .89453125f, .908593774f, .922656238f, .936718762f, .950781226f, .96484375f, .978906274f, 1.0f };
static const float cg_dynamic8_limits_[128] = { 2.74999991e-7f, 1.89999992e-6f, 5.49999959e-6f, 1.44999995e-5f,
    3.24999965e-5f, 5.50000004e-5f, 7.75000008e-5f, .000122499987f, .000212500003f, .000325000001f, .000437499984f,
    .000549999997f, .000662499981f, .000774999964f, .000887500006f, .00111249997f, .00156250002f, .00212499988f,
    .00268749986f, .00324999983f, .00381249981f, .00437500002f, .00493749976f, .00549999997f, .00606249971f,
    .00662499992f, .00718749966f, .00774999987f, .00831250008f, .00887500029f, .00943749957f, .0105625f, .0128124999f,
    .015625f, .0184374992f, .0212500002f, .0240624994f, .0268749986f, .0296874996f, .0324999988f, .0353124999f,
    .0381249972f, .0409374982f, .0437499993f, .0465625003f, .0493749976f, .0521874987f, .0549999997f, .057812497f,
    .0606249981f, .0634374991f, .0662499964f, .0690625012f, .0718749985f, .0746874958f, .0775000006f, .0803124979f,
    .0831249952f, .0859375f, .0887499973f, .0915624946f, .0943749994f, .0971874967f, .102812499f, .114062496f,
    .128124997f, .142187491f, .15625f, .170312494f, .184375003f, .198437497f, .212499991f, .2265625f, .240624994f,
    .254687488f, .268749982f, .282812476f, .296875f, .310937494f, .324999988f, .339062482f, .353124976f, .3671875f,
    .381249994f, .395312488f, .409374982f, .423437476f, .4375f, .451562494f, .465624988f, .479687482f, .493749976f,
    .5078125f, .521874964f, .535937488f, .550000012f, .564062476f, .578125f, .592187464f, .606249988f, .620312512f,
    .634374976f, .6484375f, .662499964f, .676562488f, .690625012f, .704687476f, .71875f, .732812464f, .746874988f,
    .760937512f, .774999976f, .7890625f, .803124964f, .817187488f, .831250012f, .845312476f, .859375f, .873437464f,
    .887499988f, .901562512f, .915624976f, .9296875f, .943749964f, .957812488f, .971875012f, .989453137f, CG_FLT_MAX_ };
static void cg_dynamic8_encode_scalar_(const float *v, size_t n, float inv, uint8_t *symbols) {
    for (size_t i = 0; i < n; i++) {
        float f = cg_load_(v, i);
        uint32_t u = cg_as_bits_(cg_times_(f, inv)) & CG_ABS_MASK_, rank = 0;
        float t = cg_as_float_(u < 0x3f800000u ? u : 0x3f800000u);
        for (uint32_t step = 64; step; step /= 2) rank += t > cg_dynamic8_limits_[rank + step - 1] ? step : 0;
        symbols[i] = (uint8_t)(rank | (rank ? cg_as_bits_(f) >> 24 & 0x80u : 0u));
    }
}
/* Over t the rank climbs along seven lines, one per decade, each the lowest of them where it counts. Drawn 0.6 too
   low they give, rounded down, the rank or one less (with 0.2 to spare, so that rounding does no harm): one limit
   decides. */
#if CG_AVX2_ || CG_NEON_
static const float cg_dynamic8_slope_[8] = { 1111111.11f, 222222.222f, 44444.4444f, 8888.88889f, 1777.77778f,
    355.555556f, 71.1111111f, 0.0f };
static const float cg_dynamic8_intercept_[8] = { .288888889f, 1.17777778f, 2.95555556f, 6.51111111f, 13.6222222f,
    27.8444444f, 56.2888889f, 0.0f };
#endif
#if CG_AVX2_
/* no slower than a gather, and where those are patched, faster */
CG_AVX2_INLINE_ __m256 cg_lookup8_avx2_(const float *table, const uint32_t *at) {
    return _mm256_setr_ps(
        table[at[0]], table[at[1]], table[at[2]], table[at[3]], table[at[4]], table[at[5]], table[at[6]], table[at[7]]);
}
CG_AVX2_INLINE_ __m256i cg_above_avx2_(__m256i u, float limit) {
    return _mm256_cmpgt_epi32(u, _mm256_castps_si256(_mm256_set1_ps(limit)));
}
CG_AVX2_INLINE_ __m256i cg_dynamic8_encode8_avx2_(__m256i v, __m256 inv, __m256 slope, __m256 start) {
    __m256i u = _mm256_min_epu32(
        cg_abs_avx2_(_mm256_castps_si256(cg_mul8_avx2_(_mm256_castsi256_ps(v), inv))), _mm256_set1_epi32(0x3f800000));
    __m256i a = _mm256_add_epi32(cg_above_avx2_(u, 1e-1f), cg_above_avx2_(u, 1e-2f));
    __m256i b = _mm256_add_epi32(cg_above_avx2_(u, 1e-3f), cg_above_avx2_(u, 1e-4f));
    __m256i decade = _mm256_abs_epi32(
        _mm256_add_epi32(_mm256_add_epi32(a, b), _mm256_add_epi32(cg_above_avx2_(u, 1e-5f), cg_above_avx2_(u, 1e-6f))));
    __m256 t = _mm256_castsi256_ps(u), x = cg_mul8_avx2_(t, _mm256_permutevar8x32_ps(slope, decade));
    __m256i rank = _mm256_cvttps_epi32(_mm256_add_ps(x, _mm256_permutevar8x32_ps(start, decade)));
    uint32_t at[8];
    cg_store_avx2_(at, rank);
    return _mm256_sub_epi32(
        rank, _mm256_castps_si256(_mm256_cmp_ps(t, cg_lookup8_avx2_(cg_dynamic8_limits_, at), _CMP_GT_OQ)));
}
CG_TARGET_AVX2_ static void cg_dynamic8_encode_avx2_(const float *v, size_t n, float inv, uint8_t *symbols) {
    const __m256 by = _mm256_set1_ps(inv), slope = _mm256_loadu_ps(cg_dynamic8_slope_),
                 start = _mm256_loadu_ps(cg_dynamic8_intercept_);
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        __m256i a = cg_load8_avx2_(v, i), b = cg_load8_avx2_(v, i + 8), c = cg_load8_avx2_(v, i + 16),
                d = cg_load8_avx2_(v, i + 24);
        __m256i rank = cg_narrow_avx2_(cg_dynamic8_encode8_avx2_(a, by, slope, start),
            cg_dynamic8_encode8_avx2_(b, by, slope, start), cg_dynamic8_encode8_avx2_(c, by, slope, start),
            cg_dynamic8_encode8_avx2_(d, by, slope, start));
        __m256i sign = _mm256_andnot_si256(
            _mm256_cmpeq_epi8(rank, _mm256_setzero_si256()), cg_sign_bytes_avx2_(a, b, c, d));
        CG_PREFETCH_(cg_at_(v, i + CG_CHUNK_));
        CG_PREFETCH_(cg_at_(v, i + CG_CHUNK_ + 16));
        cg_store_avx2_(symbols + i, cg_order_avx2_(_mm256_or_si256(rank, sign)));
    }
    _mm256_zeroupper();
    if (i < n) cg_dynamic8_encode_scalar_(cg_at_(v, i), n - i, inv, symbols + i);
}
#endif
#if CG_NEON_
CG_INLINE_ uint32x4_t cg_dynamic8_encode4_neon_(uint32x4_t v, float32x4_t inv) {
    uint32x4_t u = vminq_u32(cg_abs_neon_(vreinterpretq_u32_f32(cg_times_neon_(cg_as_float_neon_(v), inv))),
                   vdupq_n_u32(0x3f800000u)),
               rank;
    float32x4_t t = cg_as_float_neon_(u),
                x = cg_times_neon_(t, vdupq_n_f32(cg_dynamic8_slope_[6])) + vdupq_n_f32(cg_dynamic8_intercept_[6]),
                limit = x;
    for (int j = 0; j < 6; j++)
        x = vminq_f32(
            x, cg_times_neon_(t, vdupq_n_f32(cg_dynamic8_slope_[j])) + vdupq_n_f32(cg_dynamic8_intercept_[j]));
    rank = vcvtq_u32_f32(x);
    limit = vsetq_lane_f32(cg_dynamic8_limits_[vgetq_lane_u32(rank, 0)], limit, 0);
    limit = vsetq_lane_f32(cg_dynamic8_limits_[vgetq_lane_u32(rank, 1)], limit, 1);
    limit = vsetq_lane_f32(cg_dynamic8_limits_[vgetq_lane_u32(rank, 2)], limit, 2);
    limit = vsetq_lane_f32(cg_dynamic8_limits_[vgetq_lane_u32(rank, 3)], limit, 3);
    return vsubq_u32(rank, vcgtq_f32(t, limit));
}
static void cg_dynamic8_encode_neon_(const float *v, size_t n, float inv, uint8_t *symbols) {
    const float32x4_t by = vdupq_n_f32(inv);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        uint32x4_t a = cg_load4_neon_(v, i), b = cg_load4_neon_(v, i + 4), c = cg_load4_neon_(v, i + 8),
                   d = cg_load4_neon_(v, i + 12);
        uint8x16_t rank = cg_narrow_neon_(cg_dynamic8_encode4_neon_(a, by), cg_dynamic8_encode4_neon_(b, by),
            cg_dynamic8_encode4_neon_(c, by), cg_dynamic8_encode4_neon_(d, by));
        vst1q_u8(symbols + i, vorrq_u8(rank, vandq_u8(cg_sign_bytes_neon_(a, b, c, d), vtstq_u8(rank, rank))));
    }
    cg_dynamic8_encode_scalar_(cg_at_(v, i), n - i, inv, symbols + i);
}
#endif

static void cg_dynamic8_decode_scalar_(const uint8_t *symbols, size_t n, float scale, float *out, int stream) {
    (void)stream;
    for (size_t i = 0; i < n; i++) {
        float f = cg_dynamic8_values_[symbols[i] & 0x7f];
        cg_store_(out, i, cg_times_(symbols[i] > 0x80 ? -f : f, scale));
    }
}
#if CG_AVX2_
CG_TARGET_AVX2_ static void cg_dynamic8_decode_avx2_(
    const uint8_t *symbols, size_t n, float scale, float *out, int stream) {
    const float *value = cg_dynamic8_values_;
    const __m256 by = _mm256_set1_ps(scale);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m128i b = _mm_loadl_epi64((const __m128i *)(const void *)(symbols + i)),
                s = _mm_cmpeq_epi8(b, _mm_set1_epi8(-128));
        __m256i w = _mm256_cvtepi8_epi32(_mm_andnot_si128(s, b)); /* -0 becomes 0 */
        const uint8_t *p = symbols + i;
        __m256 f = _mm256_setr_ps(value[p[0] & 0x7f], value[p[1] & 0x7f], value[p[2] & 0x7f], value[p[3] & 0x7f],
            value[p[4] & 0x7f], value[p[5] & 0x7f], value[p[6] & 0x7f], value[p[7] & 0x7f]);
        f = _mm256_or_ps(f, _mm256_castsi256_ps(_mm256_and_si256(w, _mm256_set1_epi32((int)0x80000000u))));
        cg_store_stream_avx2_(out, i, _mm256_castps_si256(cg_mul8_avx2_(f, by)), stream);
    }
    _mm256_zeroupper();
    if (i < n) cg_dynamic8_decode_scalar_(symbols + i, n - i, scale, cg_at_mut_(out, i), 0);
}
#endif
#if CG_NEON_
static void cg_dynamic8_decode_neon_(const uint8_t *symbols, size_t n, float scale, float *out, int stream) {
    const float32x4_t by = vdupq_n_f32(scale);
    size_t i = 0;
    (void)stream;
    for (; i + 4 <= n; i += 4) {
        float f[4];
        for (size_t j = 0; j < 4; j++) {
            const float value = cg_dynamic8_values_[symbols[i + j] & 0x7f];
            f[j] = symbols[i + j] > 0x80 ? -value : value;
        }
        cg_store4_neon_(out, i, cg_as_float_neon_(cg_load4_neon_(f, 0)) * by);
    }
    cg_dynamic8_decode_scalar_(symbols + i, n - i, scale, cg_at_mut_(out, i), 0);
}
#endif

/* fixed threshold: 2 above tau, 0 below -tau, 1 between; tau >= 0 */
static void cg_strom_encode_scalar_(const float *v, size_t n, float tau, uint8_t *symbols) {
    for (size_t i = 0; i < n; i++) {
        float f = cg_load_(v, i);
        symbols[i] = (uint8_t)(1 + (f > tau) - (f < -tau));
    }
}
#if CG_AVX2_
CG_AVX2_INLINE_ __m256i cg_strom_encode8_avx2_(const float *v, size_t i, __m256 tau, __m256 minus) {
    __m256 f = _mm256_castsi256_ps(cg_load8_avx2_(v, i));
    return _mm256_sub_epi32(_mm256_castps_si256(_mm256_cmp_ps(f, minus, _CMP_LT_OQ)),
        _mm256_castps_si256(_mm256_cmp_ps(f, tau, _CMP_GT_OQ)));
}
CG_TARGET_AVX2_ static void cg_strom_encode_avx2_(const float *v, size_t n, float tau, uint8_t *symbols) {
    const __m256 t = _mm256_set1_ps(tau), m = _mm256_set1_ps(-tau);
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        __m256i ab = _mm256_packs_epi32(cg_strom_encode8_avx2_(v, i, t, m), cg_strom_encode8_avx2_(v, i + 8, t, m));
        __m256i cd = _mm256_packs_epi32(
            cg_strom_encode8_avx2_(v, i + 16, t, m), cg_strom_encode8_avx2_(v, i + 24, t, m));
        cg_prefetch_ahead_avx2_(v, i);
        cg_store_avx2_(symbols + i, cg_order_avx2_(_mm256_add_epi8(_mm256_packs_epi16(ab, cd), _mm256_set1_epi8(1))));
    }
    _mm256_zeroupper();
    if (i < n) cg_strom_encode_scalar_(cg_at_(v, i), n - i, tau, symbols + i);
}
#endif
#if CG_NEON_
CG_INLINE_ uint32x4_t cg_strom_encode4_neon_(const float *v, size_t i, float32x4_t tau, float32x4_t minus) {
    float32x4_t f = cg_as_float_neon_(cg_load4_neon_(v, i));
    return vsubq_u32(vcltq_f32(f, minus), vcgtq_f32(f, tau));
}
static void cg_strom_encode_neon_(const float *v, size_t n, float tau, uint8_t *symbols) {
    const float32x4_t t = vdupq_n_f32(tau), m = vdupq_n_f32(-tau);
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        vst1q_u8(symbols + i,
            vaddq_u8(cg_narrow_neon_(cg_strom_encode4_neon_(v, i, t, m), cg_strom_encode4_neon_(v, i + 4, t, m),
                         cg_strom_encode4_neon_(v, i + 8, t, m), cg_strom_encode4_neon_(v, i + 12, t, m)),
                vdupq_n_u8(1)));
    cg_strom_encode_scalar_(cg_at_(v, i), n - i, tau, symbols + i);
}
#endif

/* src/core/kernels/vote.h */
/* vote: of 1..65535 bit strings, a bit each that is 1 where more than half of them have 1. Numbers as bit planes,
   eight strings added at a time. They start from 2^top - 1 - half instead of 0: then plane `top` is the answer. */
#define CG_VOTE_PLANES_ 16u
CG_INLINE_ unsigned cg_vote_result_plane_(size_t count) { return count < 16 ? 3 : cg_log2_(count / 2) + 1; }
CG_INLINE_ uint32_t cg_vote_start_(size_t count) {
    return (1u << cg_vote_result_plane_(count)) - 1u - (uint32_t)(count / 2);
}
CG_INLINE_ uint64_t cg_full_adder_(uint64_t *s, uint64_t a, uint64_t b) { /* s += a + b; the carry */
    uint64_t x = *s ^ a, carry = (*s & a) | (x & b);
    *s = x ^ b;
    return carry;
}
static void cg_vote_from_(const uint8_t *const *in, size_t count, size_t from, size_t bytes, uint8_t *out) {
    const unsigned top = cg_vote_result_plane_(count);
    const uint32_t start = cg_vote_start_(count);
    for (; from < bytes; from += 64) { /* a cache line of each at a time */
        const size_t many = cg_min_(64, bytes - from);
        uint64_t planes[8][CG_VOTE_PLANES_];
        for (unsigned j = 0; j < 8; j++)
            for (unsigned p = 0; p <= top; p++) planes[j][p] = start >> p & 1 ? ~(uint64_t)0 : 0;
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
                for (unsigned p = 3; p <= top; p++) {
                    d = s[p] & c;
                    s[p] ^= c;
                    c = d;
                }
            }
        }
        for (size_t j = 0; 8 * j < many; j++) memcpy(out + from + 8 * j, &planes[j][top], cg_min_(8, many - 8 * j));
    }
}
static void cg_vote_scalar_(const uint8_t *const *in, size_t count, size_t bytes, uint8_t *out) {
    cg_vote_from_(in, count, 0, bytes, out);
}
#if CG_AVX2_
CG_AVX2_INLINE_ __m256i cg_full_adder_avx2_(__m256i *s, __m256i a, __m256i b) {
    __m256i x = _mm256_xor_si256(*s, a), carry = _mm256_or_si256(_mm256_and_si256(*s, a), _mm256_and_si256(x, b));
    *s = _mm256_xor_si256(x, b);
    return carry;
}
/* carry out of three planes */
CG_AVX2_INLINE_ __m256i cg_vote8_avx2_(const uint8_t *const *in, size_t many, size_t at, __m256i *s) {
    __m256i w[8], a, b, c, d;
    for (size_t k = 0; k < 8; k++) w[k] = k < many ? cg_load_bytes_avx2_(in[k] + at) : _mm256_setzero_si256();
    a = cg_full_adder_avx2_(&s[0], w[0], w[1]);
    b = cg_full_adder_avx2_(&s[0], w[2], w[3]);
    c = cg_full_adder_avx2_(&s[1], a, b);
    a = cg_full_adder_avx2_(&s[0], w[4], w[5]);
    b = cg_full_adder_avx2_(&s[0], w[6], w[7]);
    d = cg_full_adder_avx2_(&s[1], a, b);
    return cg_full_adder_avx2_(&s[2], c, d);
}
CG_AVX2_INLINE_ __m256i cg_broadcast_bit_avx2_(uint32_t start, unsigned p) {
    return _mm256_set1_epi32(start >> p & 1 ? -1 : 0);
}
CG_AVX2_INLINE_ size_t cg_vote_few_avx2_(const uint8_t *const *in, size_t count, size_t bytes, uint8_t *out) {
    const uint32_t start = cg_vote_start_(count);
    const __m256i s0 = cg_broadcast_bit_avx2_(start, 0), s1 = cg_broadcast_bit_avx2_(start, 1),
                  s2 = cg_broadcast_bit_avx2_(start, 2);
    const uint8_t *from[8]; /* copies: out cannot alias them */
    size_t at = 0;
    for (size_t k = 0; k < 8; k++) from[k] = in[k < count ? k : 0];
    for (; at + 32 <= bytes; at += 32) {
        __m256i s[3];
        s[0] = s0;
        s[1] = s1;
        s[2] = s2;
        cg_store_avx2_(out + at, cg_vote8_avx2_(from, count, at, s));
    }
    return at;
}
/* 512 bytes of each at a time: memory likes runs, and the planes stay in L1 */
CG_AVX2_INLINE_ size_t cg_vote_many_avx2_(const uint8_t *const *in, size_t count, size_t bytes, uint8_t *out) {
    const unsigned top = cg_vote_result_plane_(count);
    const uint32_t start = cg_vote_start_(count);
    __m256i planes[16][CG_VOTE_PLANES_];
    size_t at = 0;
    for (; at + 32 <= bytes;) {
        const size_t rows = cg_min_(16, (bytes - at) / 32);
        for (size_t j = 0; j < rows; j++)
            for (unsigned p = 0; p <= top; p++) planes[j][p] = cg_broadcast_bit_avx2_(start, p);
        for (size_t i = 0; i < count; i += 8) {
            const size_t many = cg_min_(8, count - i);
            /* and ask for the next run of each: two rows are a cache line, half of the strings at each */
            for (size_t j = 0; j < rows; j++) {
                __m256i *s = planes[j], c, d;
                for (size_t k = j % 2 * 4; k < cg_min_(many, j % 2 * 4 + 4); k++)
                    CG_PREFETCH_(in[i + k] + at + 512 + 32 * j);
                c = many == 8 ? cg_vote8_avx2_(in + i, 8, at + 32 * j, s)
                              : cg_vote8_avx2_(in + i, many, at + 32 * j, s);
                for (unsigned p = 3; p <= top; p++) {
                    d = _mm256_and_si256(s[p], c);
                    s[p] = _mm256_xor_si256(s[p], c);
                    c = d;
                }
            }
        }
        for (size_t j = 0; j < rows; j++, at += 32) cg_store_avx2_(out + at, planes[j][top]);
    }
    return at;
}
CG_TARGET_AVX2_ static void cg_vote_avx2_(const uint8_t *const *in, size_t count, size_t bytes, uint8_t *out) {
    size_t at;
    switch (count) {
    case 0: at = 0; break;
    case 1: at = cg_vote_few_avx2_(in, 1, bytes, out); break;
    case 2: at = cg_vote_few_avx2_(in, 2, bytes, out); break;
    case 3: at = cg_vote_few_avx2_(in, 3, bytes, out); break;
    case 4: at = cg_vote_few_avx2_(in, 4, bytes, out); break;
    case 5: at = cg_vote_few_avx2_(in, 5, bytes, out); break;
    case 6: at = cg_vote_few_avx2_(in, 6, bytes, out); break;
    case 7: at = cg_vote_few_avx2_(in, 7, bytes, out); break;
    case 8: at = cg_vote_few_avx2_(in, 8, bytes, out); break;
    default: at = cg_vote_many_avx2_(in, count, bytes, out);
    }
    _mm256_zeroupper();
    if (at < bytes) cg_vote_from_(in, count, at, bytes, out);
}
#endif
#if CG_NEON_
CG_INLINE_ uint8x16_t cg_full_adder_neon_(uint8x16_t *s, uint8x16_t a, uint8x16_t b) {
    uint8x16_t x = veorq_u8(*s, a), carry = vbslq_u8(x, b, a);
    *s = veorq_u8(x, b);
    return carry;
}
CG_INLINE_ uint8x16_t cg_vote8_neon_(const uint8_t *const *in, size_t many, size_t at, uint8x16_t *s) {
    uint8x16_t w[8], a, b, c, d;
    for (size_t k = 0; k < 8; k++) w[k] = k < many ? vld1q_u8(in[k] + at) : vdupq_n_u8(0);
    a = cg_full_adder_neon_(&s[0], w[0], w[1]);
    b = cg_full_adder_neon_(&s[0], w[2], w[3]);
    c = cg_full_adder_neon_(&s[1], a, b);
    a = cg_full_adder_neon_(&s[0], w[4], w[5]);
    b = cg_full_adder_neon_(&s[0], w[6], w[7]);
    d = cg_full_adder_neon_(&s[1], a, b);
    return cg_full_adder_neon_(&s[2], c, d);
}
static void cg_vote_neon_(const uint8_t *const *in, size_t count, size_t bytes, uint8_t *out) {
    const unsigned top = cg_vote_result_plane_(count);
    const uint32_t start = cg_vote_start_(count);
    uint8x16_t planes[16][CG_VOTE_PLANES_];
    size_t at = 0;
    while (at + 16 <= bytes) { /* 256 bytes of each at a time */
        const size_t rows = cg_min_(16, (bytes - at) / 16);
        for (size_t j = 0; j < rows; j++)
            for (unsigned p = 0; p <= top; p++) planes[j][p] = vdupq_n_u8(start >> p & 1 ? 0xff : 0);
        for (size_t i = 0; i < count; i += 8) {
            const size_t many = cg_min_(8, count - i);
            for (size_t j = 0; j < rows; j++) {
                uint8x16_t *s = planes[j],
                           c = many == 8 ? cg_vote8_neon_(in + i, 8, at + 16 * j, s)
                                         : cg_vote8_neon_(in + i, many, at + 16 * j, s),
                           d;
                for (unsigned p = 3; p <= top; p++) {
                    d = vandq_u8(s[p], c);
                    s[p] = veorq_u8(s[p], c);
                    c = d;
                }
            }
        }
        for (size_t j = 0; j < rows; j++, at += 16) vst1q_u8(out + at, planes[j][top]);
    }
    cg_vote_from_(in, count, at, bytes, out);
}
#endif

/* src/core/kernels/matrix.h */
/* Matrices: what is said of M is as exact as f64 allows: project multiplies two f32 values in f64, 48 bits, so no
   product rounds, overflows or loses a denormal, and fusing it with an addition changes nothing. collect and
   lowrank_tile multiply in f32, for speed. */

#define CG_TILE_COLS_ 512u                 /* columns that project sums before it folds its lanes */
#define CG_POW2_64_ 18446744073709551616.0 /* 2^64: moves what f32 cannot hold to where it can */
#define CG_TILE_ROWS_ 8u                   /* rows that collect sums before it leaves f32, and the height of a block */
#define CG_PANEL_ 32u                      /* vectors that are multiplied with a matrix at once */

/* project: p[a][i] += sum over j of m[i][j]*q[a][j], cols <= CG_TILE_COLS_; rows of m are stride apart. The values of q
   are f32's. */
static void cg_project_scalar_(const float *m, size_t stride, size_t rows, size_t cols, const double *q,
    size_t q_stride, unsigned rank, double *p, size_t p_stride, const float *ahead) {
    (void)ahead;
    for (size_t i = 0; i < rows; i++) {
        const float *v = cg_at_(m, i * stride);
        for (unsigned a = 0; a < rank; a++) {
            const double *w = q + a * q_stride;
            double s[4] = { 0.0, 0.0, 0.0, 0.0 };
            size_t j = 0;
            for (; j + 4 <= cols; j += 4)
                for (size_t l = 0; l < 4; l++) s[l] += (double)cg_load_(v, j + l) * w[j + l];
            for (; j < cols; j++) s[j & 3] += (double)cg_load_(v, j) * w[j];
            p[a * p_stride + i] += (s[0] + s[2]) + (s[1] + s[3]);
        }
    }
}
#if CG_AVX2_ || CG_NEON_
/* What is left of a run goes to the lanes one by one. */
CG_INLINE_ void cg_project_rest_(double *s, const float *v, const double *w, size_t j, size_t cols, double *p) {
    for (; j < cols; j++) s[j & 3] += (double)cg_load_(v, j) * w[j];
    *p += (s[0] + s[2]) + (s[1] + s[3]);
}
#endif
#if CG_AVX2_
CG_AVX2_INLINE_ __m256d cg_load4_pd_avx2_(const float *v, size_t j) {
    return _mm256_cvtps_pd(_mm_castsi128_ps(_mm_loadu_si128((const __m128i *)(const void *)cg_at_(v, j))));
}
/* What comes after this block, into L2: rows of a matrix are pages apart, and hardware does not look so far. */
CG_AVX2_INLINE_ void cg_prefetch_l2_avx2_(const float *v, size_t i) {
    _mm_prefetch((const char *)(const void *)cg_at_(v, i), _MM_HINT_T1);
}
/* s += v*w */
#  define CG_MADD_AVX2_(s, v, w) s = _mm256_add_pd(s, _mm256_mul_pd(v, w))
/* four values of two rows, times one to four vectors */
#  define CG_PROJECT_AVX2_(j)                                                 \
    {                                                                         \
      const __m256d x = cg_load4_pd_avx2_(v, j), y = cg_load4_pd_avx2_(u, j); \
      __m256d w_ = _mm256_loadu_pd(q + (j));                                  \
      CG_MADD_AVX2_(s0, x, w_);                                               \
      CG_MADD_AVX2_(t0, y, w_);                                               \
      if (ranks > 1) {                                                        \
        w_ = _mm256_loadu_pd(q + q_stride + (j));                             \
        CG_MADD_AVX2_(s1, x, w_);                                             \
        CG_MADD_AVX2_(t1, y, w_);                                             \
      }                                                                       \
      if (ranks > 2) {                                                        \
        w_ = _mm256_loadu_pd(q + 2 * q_stride + (j));                         \
        CG_MADD_AVX2_(s2, x, w_);                                             \
        CG_MADD_AVX2_(t2, y, w_);                                             \
      }                                                                       \
      if (ranks > 3) {                                                        \
        w_ = _mm256_loadu_pd(q + 3 * q_stride + (j));                         \
        CG_MADD_AVX2_(s3, x, w_);                                             \
        CG_MADD_AVX2_(t3, y, w_);                                             \
      }                                                                       \
    }
CG_AVX2_INLINE_ void cg_project2_avx2_(const float *v, const float *u, size_t cols, const double *q, size_t q_stride,
    int ranks,
    /* two rows */
    double *p, size_t p_stride, size_t next, const float *ahead) {
    __m256d s0 = _mm256_setzero_pd(), s1 = s0, s2 = s0, s3 = s0, t0 = s0, t1 = s0, t2 = s0, t3 = s0;
    double s[8][4];
    size_t j = 0;
    for (; j + 16 <= cols; j += 16) {
        if (ahead) {
            cg_prefetch_l2_avx2_(ahead, 2 * j);
            cg_prefetch_l2_avx2_(ahead, 2 * j + 16);
        }
        CG_PROJECT_AVX2_(j)
        CG_PROJECT_AVX2_(j + 4)
        CG_PROJECT_AVX2_(j + 8)
        CG_PROJECT_AVX2_(j + 12)
    }
    for (; j + 4 <= cols; j += 4) CG_PROJECT_AVX2_(j)
    _mm256_storeu_pd(s[0], s0);
    _mm256_storeu_pd(s[1], s1);
    _mm256_storeu_pd(s[2], s2);
    _mm256_storeu_pd(s[3], s3);
    _mm256_storeu_pd(s[4], t0);
    _mm256_storeu_pd(s[5], t1);
    _mm256_storeu_pd(s[6], t2);
    _mm256_storeu_pd(s[7], t3);
    for (int a = 0; a < ranks; a++, q += q_stride, p += p_stride) {
        cg_project_rest_(s[a], v, q, j, cols, p);
        if (next) cg_project_rest_(s[a + 4], u, q, j, cols, p + 1);
    }
}
CG_TARGET_AVX2_ static void cg_project_avx2_(const float *m, size_t stride, size_t rows, size_t cols, const double *q,
    size_t q_stride, unsigned rank, double *p, size_t p_stride, const float *ahead) {
    for (size_t i = 0; i < rows; i += 2) {
        const size_t next = i + 1 < rows;
        const float *v = cg_at_(m, i * stride), *u = cg_at_(v, next * stride),
                    *later = ahead ? cg_at_(ahead, i * cols) : NULL;
        const double *w = q;
        double *t = p + i;
        unsigned left = rank;
        for (; left >= 4; left -= 4, w += 4 * q_stride, t += 4 * p_stride, later = NULL)
            cg_project2_avx2_(v, u, cols, w, q_stride, 4, t, p_stride, next, later);
        if (left == 3) cg_project2_avx2_(v, u, cols, w, q_stride, 3, t, p_stride, next, later);
        if (left == 2) cg_project2_avx2_(v, u, cols, w, q_stride, 2, t, p_stride, next, later);
        if (left == 1) cg_project2_avx2_(v, u, cols, w, q_stride, 1, t, p_stride, next, later);
    }
}
#endif
#if CG_NEON_
CG_INLINE_ void cg_project1_neon_(
    const float *v, size_t cols, const double *q, size_t q_stride, int ranks, double *p, size_t p_stride) {
    const double *q1 = q + q_stride, *q2 = q1 + q_stride, *q3 = q2 + q_stride;
    float64x2_t s0 = vdupq_n_f64(0.0), s1 = s0, s2 = s0, s3 = s0, t0 = s0, t1 = s0, t2 = s0, t3 = s0;
    double s[4][4];
    size_t j = 0;
    for (; j + 4 <= cols; j += 4) {
        float32x4_t f = cg_as_float_neon_(cg_load4_neon_(v, j));
        float64x2_t x = vcvt_f64_f32(vget_low_f32(f)), y = vcvt_high_f64_f32(f);
        s0 = s0 + x * vld1q_f64(q + j);
        t0 = t0 + y * vld1q_f64(q + j + 2);
        if (ranks > 1) {
            s1 = s1 + x * vld1q_f64(q1 + j);
            t1 = t1 + y * vld1q_f64(q1 + j + 2);
        }
        if (ranks > 2) {
            s2 = s2 + x * vld1q_f64(q2 + j);
            t2 = t2 + y * vld1q_f64(q2 + j + 2);
        }
        if (ranks > 3) {
            s3 = s3 + x * vld1q_f64(q3 + j);
            t3 = t3 + y * vld1q_f64(q3 + j + 2);
        }
    }
    vst1q_f64(s[0], s0);
    vst1q_f64(s[1], s1);
    vst1q_f64(s[2], s2);
    vst1q_f64(s[3], s3);
    vst1q_f64(s[0] + 2, t0);
    vst1q_f64(s[1] + 2, t1);
    vst1q_f64(s[2] + 2, t2);
    vst1q_f64(s[3] + 2, t3);
    for (int a = 0; a < ranks; a++, q += q_stride, p += p_stride) cg_project_rest_(s[a], v, q, j, cols, p);
}
static void cg_project_neon_(const float *m, size_t stride, size_t rows, size_t cols, const double *q, size_t q_stride,
    unsigned rank, double *p, size_t p_stride, const float *ahead) {
    (void)ahead;
    for (size_t i = 0; i < rows; i++) {
        const float *v = cg_at_(m, i * stride);
        const double *w = q;
        double *t = p + i;
        unsigned left = rank;
        for (; left >= 4; left -= 4, w += 4 * q_stride, t += 4 * p_stride)
            cg_project1_neon_(v, cols, w, q_stride, 4, t, p_stride);
        if (left == 3) cg_project1_neon_(v, cols, w, q_stride, 3, t, p_stride);
        if (left == 2) cg_project1_neon_(v, cols, w, q_stride, 2, t, p_stride);
        if (left == 1) cg_project1_neon_(v, cols, w, q_stride, 1, t, p_stride);
    }
}
#endif

/* collect: q[a][j] += sum over i of p[i][a]*m[i][j], summed in f32 over CG_TILE_ROWS_ rows at a time */
static void cg_project_t_scalar_(const float *m, size_t stride, size_t rows, size_t cols, const float *p,
    size_t p_stride, unsigned rank, double *q, size_t q_stride, const float *ahead) {
    (void)ahead;
    for (size_t i = 0; i < rows; i += CG_TILE_ROWS_)
        for (unsigned a = 0; a < rank; a++)
            for (size_t j = 0; j < cols; j++) {
                float s = 0.0f;
                for (size_t l = i; l < rows && l < i + CG_TILE_ROWS_; l++)
                    s = cg_plus_(s, cg_times_(cg_load_(p, l * p_stride + a), cg_load_(m, l * stride + j)));
                q[a * q_stride + j] += (double)s;
            }
}
#if CG_AVX2_
/* s += w*x and t += w*y with w = p[at] */
#  define CG_PROJECT_T_AVX2_(s, t, at)                  \
    {                                                   \
      const __m256 w = _mm256_set1_ps(cg_load_(p, at)); \
      s = _mm256_add_ps(s, cg_mul8_avx2_(w, x));        \
      t = _mm256_add_ps(t, cg_mul8_avx2_(w, y));        \
    }
CG_AVX2_INLINE_ void cg_add8_avx2_(double *q, __m256 s) {
    _mm256_storeu_pd(q, _mm256_add_pd(_mm256_loadu_pd(q), _mm256_cvtps_pd(_mm256_castps256_ps128(s))));
    _mm256_storeu_pd(q + 4, _mm256_add_pd(_mm256_loadu_pd(q + 4), _mm256_cvtps_pd(_mm256_extractf128_ps(s, 1))));
}
CG_AVX2_INLINE_ void cg_project_t8_avx2_(const float *m, size_t stride, size_t rows, size_t cols, const float *p,
    size_t p_stride, int ranks,
    /* a run of rows, one to four vectors */
    double *q, size_t q_stride, const float *ahead) {
    for (size_t j = 0; j + 16 <= cols; j += 16) {
        __m256 s0 = _mm256_setzero_ps(), s1 = s0, s2 = s0, s3 = s0, t0 = s0, t1 = s0, t2 = s0, t3 = s0;
        const float *v = cg_at_(m, j);
        for (size_t i = 0; i < rows; i++, v = cg_at_(v, stride)) {
            const __m256 x = _mm256_castsi256_ps(cg_load8_avx2_(v, 0)), y = _mm256_castsi256_ps(cg_load8_avx2_(v, 8));
            if (ahead) cg_prefetch_l2_avx2_(ahead, rows * j + 16 * i);
            CG_PROJECT_T_AVX2_(s0, t0, i * p_stride)
            if (ranks > 1) CG_PROJECT_T_AVX2_(s1, t1, i * p_stride + 1)
            if (ranks > 2) CG_PROJECT_T_AVX2_(s2, t2, i * p_stride + 2)
            if (ranks > 3) CG_PROJECT_T_AVX2_(s3, t3, i * p_stride + 3)
        }
        cg_add8_avx2_(q + j, s0);
        cg_add8_avx2_(q + j + 8, t0);
        if (ranks > 1) {
            cg_add8_avx2_(q + q_stride + j, s1);
            cg_add8_avx2_(q + q_stride + j + 8, t1);
        }
        if (ranks > 2) {
            cg_add8_avx2_(q + 2 * q_stride + j, s2);
            cg_add8_avx2_(q + 2 * q_stride + j + 8, t2);
        }
        if (ranks > 3) {
            cg_add8_avx2_(q + 3 * q_stride + j, s3);
            cg_add8_avx2_(q + 3 * q_stride + j + 8, t3);
        }
    }
}
CG_TARGET_AVX2_ static void cg_project_t_avx2_(const float *m, size_t stride, size_t rows, size_t cols, const float *p,
    size_t p_stride, unsigned rank, double *q, size_t q_stride, const float *ahead) {
    const size_t whole = cols & ~(size_t)15;
    for (size_t i = 0; i < rows && whole; i += CG_TILE_ROWS_) {
        const size_t many = cg_min_(CG_TILE_ROWS_, rows - i);
        const float *v = cg_at_(m, i * stride), *w = cg_at_(p, i * p_stride),
                    *later = ahead ? cg_at_(ahead, i * cols) : NULL;
        double *t = q;
        unsigned left = rank;
        for (; left >= 4; left -= 4, w = cg_at_(w, 4), t += 4 * q_stride, later = NULL)
            cg_project_t8_avx2_(v, stride, many, whole, w, p_stride, 4, t, q_stride, later);
        if (left == 3) cg_project_t8_avx2_(v, stride, many, whole, w, p_stride, 3, t, q_stride, later);
        if (left == 2) cg_project_t8_avx2_(v, stride, many, whole, w, p_stride, 2, t, q_stride, later);
        if (left == 1) cg_project_t8_avx2_(v, stride, many, whole, w, p_stride, 1, t, q_stride, later);
    }
    _mm256_zeroupper();
    if (whole < cols)
        cg_project_t_scalar_(
            cg_at_(m, whole), stride, rows, cols - whole, p, p_stride, rank, q + whole, q_stride, NULL);
}
#endif
#if CG_NEON_
/* s += w*x and t += w*y with w = p[at] */
#  define CG_PROJECT_T_NEON_(s, t, at)                    \
    {                                                     \
      const float32x4_t w = vdupq_n_f32(cg_load_(p, at)); \
      s = s + cg_times_neon_(w, x);                       \
      t = t + cg_times_neon_(w, y);                       \
    }
CG_INLINE_ void cg_add4_neon_(double *q, float32x4_t s) {
    vst1q_f64(q, vld1q_f64(q) + vcvt_f64_f32(vget_low_f32(s)));
    vst1q_f64(q + 2, vld1q_f64(q + 2) + vcvt_high_f64_f32(s));
}
CG_INLINE_ void cg_project_t8_neon_(const float *m, size_t stride, size_t rows, size_t cols, const float *p,
    size_t p_stride, int ranks, double *q, size_t q_stride) {
    for (size_t j = 0; j + 8 <= cols; j += 8) {
        float32x4_t s0 = vdupq_n_f32(0.0f), s1 = s0, s2 = s0, s3 = s0, t0 = s0, t1 = s0, t2 = s0, t3 = s0;
        const float *v = cg_at_(m, j);
        for (size_t i = 0; i < rows; i++, v = cg_at_(v, stride)) {
            const float32x4_t x = cg_as_float_neon_(cg_load4_neon_(v, 0)), y = cg_as_float_neon_(cg_load4_neon_(v, 4));
            CG_PROJECT_T_NEON_(s0, t0, i * p_stride)
            if (ranks > 1) CG_PROJECT_T_NEON_(s1, t1, i * p_stride + 1)
            if (ranks > 2) CG_PROJECT_T_NEON_(s2, t2, i * p_stride + 2)
            if (ranks > 3) CG_PROJECT_T_NEON_(s3, t3, i * p_stride + 3)
        }
        cg_add4_neon_(q + j, s0);
        cg_add4_neon_(q + j + 4, t0);
        if (ranks > 1) {
            cg_add4_neon_(q + q_stride + j, s1);
            cg_add4_neon_(q + q_stride + j + 4, t1);
        }
        if (ranks > 2) {
            cg_add4_neon_(q + 2 * q_stride + j, s2);
            cg_add4_neon_(q + 2 * q_stride + j + 4, t2);
        }
        if (ranks > 3) {
            cg_add4_neon_(q + 3 * q_stride + j, s3);
            cg_add4_neon_(q + 3 * q_stride + j + 4, t3);
        }
    }
}
static void cg_project_t_neon_(const float *m, size_t stride, size_t rows, size_t cols, const float *p, size_t p_stride,
    unsigned rank, double *q, size_t q_stride, const float *ahead) {
    const size_t whole = cols & ~(size_t)7;
    (void)ahead;
    for (size_t i = 0; i < rows && whole; i += CG_TILE_ROWS_) {
        const size_t many = cg_min_(CG_TILE_ROWS_, rows - i);
        const float *v = cg_at_(m, i * stride), *w = cg_at_(p, i * p_stride);
        double *t = q;
        unsigned left = rank;
        for (; left >= 4; left -= 4, w = cg_at_(w, 4), t += 4 * q_stride)
            cg_project_t8_neon_(v, stride, many, whole, w, p_stride, 4, t, q_stride);
        if (left == 3) cg_project_t8_neon_(v, stride, many, whole, w, p_stride, 3, t, q_stride);
        if (left == 2) cg_project_t8_neon_(v, stride, many, whole, w, p_stride, 2, t, q_stride);
        if (left == 1) cg_project_t8_neon_(v, stride, many, whole, w, p_stride, 1, t, q_stride);
    }
    if (whole < cols)
        cg_project_t_scalar_(
            cg_at_(m, whole), stride, rows, cols - whole, p, p_stride, rank, q + whole, q_stride, NULL);
}
#endif

/* lowrank_tile: out[i][j] = p[i][0]*q[0][j] + p[i][1]*q[1][j] + ... in f32; where that overflows, in f64 and kept
   finite. rank values of p per row, rows of out are out_stride apart; stream: each begins at a multiple of 16
   bytes */
CG_INLINE_ float cg_lowrank_one_(const float *p, const float *q, size_t q_stride, unsigned rank, size_t j) {
    float s = 0.0f;
    for (unsigned a = 0; a < rank; a++) {
        float t = cg_times_(cg_load_(p, a), cg_load_(q, a * q_stride + j));
        s = a ? cg_plus_(s, t) : t;
    }
    if ((cg_as_bits_(s) & CG_ABS_MASK_) >= CG_INF_BITS_) {
        double d = 0.0;
        for (unsigned a = 0; a < rank; a++) d += (double)cg_load_(p, a) * (double)cg_load_(q, a * q_stride + j);
        s = d > (double)CG_FLT_MAX_ ? CG_FLT_MAX_ : d < -(double)CG_FLT_MAX_ ? -CG_FLT_MAX_ : (float)d;
    }
    return s;
}
static void cg_lowrank_tile_scalar_(const float *p, const float *q, size_t q_stride, unsigned rank, size_t rows,
    size_t count, float *out, size_t out_stride, int stream) {
    (void)stream;
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < count; j++)
            cg_store_(out, i * out_stride + j, cg_lowrank_one_(cg_at_(p, i * rank), q, q_stride, rank, j));
}
#if CG_AVX2_
CG_AVX2_INLINE_ int cg_overflow_avx2_(__m256 s, __m256 t) {
    const __m256i top = _mm256_max_epu32(cg_abs_avx2_(_mm256_castps_si256(s)), cg_abs_avx2_(_mm256_castps_si256(t)));
    return _mm256_movemask_epi8(_mm256_cmpgt_epi32(top, _mm256_set1_epi32((int)CG_INF_BITS_ - 1)));
}
CG_AVX2_INLINE_ void cg_lowrank_out_avx2_(float *out, size_t j, __m256 s, __m256 t, int stream) {
    cg_store_stream_avx2_(out, j, _mm256_castps_si256(s), stream);
    cg_store_stream_avx2_(out, j + 8, _mm256_castps_si256(t), stream);
}
/* s = w*x and t = w*y, or added to, with w = p[at] */
#  define CG_OUTER_AVX2_(s, t, at)                                                                        \
    {                                                                                                     \
      const __m256 w = _mm256_set1_ps(cg_load_(p, at)), c = cg_mul8_avx2_(w, x), d = cg_mul8_avx2_(w, y); \
      s = a ? _mm256_add_ps(s, c) : c;                                                                    \
      t = a ? _mm256_add_ps(t, d) : d;                                                                    \
    }
CG_AVX2_INLINE_ void cg_lowrank16_avx2_(const float *p, const float *q, size_t q_stride, unsigned rank, size_t count,
    /* one row or four */
    float *out, size_t out_stride, int rows, int stream) {
    for (size_t j = 0; j + 16 <= count; j += 16) {
        __m256 s0 = _mm256_setzero_ps(), s1 = s0, s2 = s0, s3 = s0, t0 = s0, t1 = s0, t2 = s0, t3 = s0;
        const float *v = cg_at_(q, j);
        int over;
        for (size_t a = 0; a < rank; a++, v = cg_at_(v, q_stride)) {
            const __m256 x = _mm256_castsi256_ps(cg_load8_avx2_(v, 0)), y = _mm256_castsi256_ps(cg_load8_avx2_(v, 8));
            CG_OUTER_AVX2_(s0, t0, a)
            if (rows > 1) {
                CG_OUTER_AVX2_(s1, t1, a + rank)
                CG_OUTER_AVX2_(s2, t2, a + 2 * (size_t)rank) CG_OUTER_AVX2_(s3, t3, a + 3 * (size_t)rank)
            }
        }
        over = cg_overflow_avx2_(s0, t0);
        if (rows > 1) over |= cg_overflow_avx2_(s1, t1) | cg_overflow_avx2_(s2, t2) | cg_overflow_avx2_(s3, t3);
        if (CG_LIKELY_(!over)) {
            cg_lowrank_out_avx2_(out, j, s0, t0, stream);
            if (rows > 1) {
                cg_lowrank_out_avx2_(out, j + out_stride, s1, t1, stream);
                cg_lowrank_out_avx2_(out, j + 2 * out_stride, s2, t2, stream);
                cg_lowrank_out_avx2_(out, j + 3 * out_stride, s3, t3, stream);
            }
        } else {
            cg_lowrank_tile_scalar_(
                p, cg_at_(q, j), q_stride, rank, (size_t)rows, 16, cg_at_mut_(out, j), out_stride, 0);
        }
    }
}
CG_TARGET_AVX2_ static void cg_lowrank_tile_avx2_(const float *p, const float *q, size_t q_stride, unsigned rank,
    size_t rows, size_t count, float *out, size_t out_stride, int stream) {
    const size_t whole = count & ~(size_t)15;
    size_t i = 0;
    for (; rank > 6 && i + 4 <= rows; i += 4) { /* a smaller q is read faster than four rows are written at once */
        if (stream)
            cg_lowrank16_avx2_(
                cg_at_(p, i * rank), q, q_stride, rank, whole, cg_at_mut_(out, i * out_stride), out_stride, 4, 1);
        else
            cg_lowrank16_avx2_(
                cg_at_(p, i * rank), q, q_stride, rank, whole, cg_at_mut_(out, i * out_stride), out_stride, 4, 0);
    }
    for (; i < rows; i++) {
        if (stream)
            cg_lowrank16_avx2_(
                cg_at_(p, i * rank), q, q_stride, rank, whole, cg_at_mut_(out, i * out_stride), out_stride, 1, 1);
        else
            cg_lowrank16_avx2_(
                cg_at_(p, i * rank), q, q_stride, rank, whole, cg_at_mut_(out, i * out_stride), out_stride, 1, 0);
    }
    _mm256_zeroupper();
    if (whole < count)
        cg_lowrank_tile_scalar_(
            p, cg_at_(q, whole), q_stride, rank, rows, count - whole, cg_at_mut_(out, whole), out_stride, 0);
}
#endif
#if CG_NEON_
static void cg_lowrank_tile_neon_(const float *p, const float *q, size_t q_stride, unsigned rank, size_t rows,
    size_t count, float *out, size_t out_stride, int stream) {
    const size_t whole = rank ? count & ~(size_t)7 : 0;
    for (size_t i = 0; i < rows; i++, p = cg_at_(p, rank), out = cg_at_mut_(out, out_stride)) {
        for (size_t j = 0; j < whole; j += 8) {
            const float *v = cg_at_(q, j);
            float32x4_t w = vdupq_n_f32(cg_load_(p, 0)), s = cg_times_neon_(w, cg_as_float_neon_(cg_load4_neon_(v, 0)));
            float32x4_t t = cg_times_neon_(w, cg_as_float_neon_(cg_load4_neon_(v, 4)));
            for (unsigned a = 1; a < rank; a++) {
                v = cg_at_(v, q_stride);
                w = vdupq_n_f32(cg_load_(p, a));
                s = s + cg_times_neon_(w, cg_as_float_neon_(cg_load4_neon_(v, 0)));
                t = t + cg_times_neon_(w, cg_as_float_neon_(cg_load4_neon_(v, 4)));
            }
            if (vmaxvq_u32(vmaxq_u32(cg_abs_neon_(vreinterpretq_u32_f32(s)), cg_abs_neon_(vreinterpretq_u32_f32(t)))) <
                CG_INF_BITS_) {
                cg_store4_neon_(out, j, s);
                cg_store4_neon_(out, j + 4, t);
            } else {
                cg_lowrank_tile_scalar_(p, cg_at_(q, j), q_stride, rank, 1, 8, cg_at_mut_(out, j), 0, stream);
            }
        }
        if (whole < count)
            cg_lowrank_tile_scalar_(
                p, cg_at_(q, whole), q_stride, rank, 1, count - whole, cg_at_mut_(out, whole), 0, stream);
    }
}
#endif

/* src/core/kernels/dispatch.h */
#define CG_KERNELS_(isa, x)                                                                                            \
  {                                                                                                                    \
    isa, cg_absmax_bits_##x##_, cg_range_##x##_, cg_copy_##x##_, cg_f16_encode_##x##_, cg_bf16_encode_##x##_,          \
        cg_sign_encode_##x##_, cg_levels_encode_##x##_, cg_pack_##x##_, cg_filter_##x##_, cg_bernoulli_##x##_,         \
        cg_count_above_##x##_, cg_unpack_##x##_, cg_levels_decode_##x##_, cg_sign_decode_##x##_, cg_f16_decode_##x##_, \
        cg_bf16_decode_##x##_, cg_absmax_bits16_##x##_, cg_axpby_##x##_, cg_move_zero_##x##_, cg_stream_fence_##x##_,  \
        cg_checksum_##x##_, cg_rotate_from_##x##_, cg_dct_##x##_, cg_lane_sum_##x##_, cg_axpby_fading_##x##_,          \
        cg_bucketize_##x##_, cg_nf4_search_##x##_, cg_table_decode_##x##_, cg_fp8_encode_##x##_, cg_fp8_decode_##x##_, \
        cg_natural_encode_##x##_, cg_natural_decode_##x##_, cg_dither_encode_##x##_, cg_dither_decode_##x##_,          \
        cg_dynamic8_encode_##x##_, cg_dynamic8_decode_##x##_, cg_strom_encode_##x##_, cg_vote_##x##_,                  \
        cg_project_##x##_, cg_project_t_##x##_, cg_lowrank_tile_##x##_                                                 \
  }
static const cg_kernels_ cg_kernels_scalar_ = CG_KERNELS_(CG_ISA_SCALAR, scalar);
#if CG_AVX2_
static const cg_kernels_ cg_kernels_avx2_ = CG_KERNELS_(CG_ISA_AVX2, avx2);
#endif
#if CG_NEON_
static const cg_kernels_ cg_kernels_neon_ = CG_KERNELS_(CG_ISA_NEON, neon);
#endif

/* ---- >>dispatch: one word, 0 until the CPU has been asked ---- */

static int cg_isa_cached_; /* a cg_isa; every thread that writes it writes the same, or was told to */

#if defined(__GNUC__)
CG_INLINE_ int cg_isa_load_(void) { return __atomic_load_n(&cg_isa_cached_, __ATOMIC_RELAXED); }
CG_INLINE_ void cg_isa_save_(int isa) { __atomic_store_n(&cg_isa_cached_, isa, __ATOMIC_RELAXED); }
#else
CG_INLINE_ int cg_isa_load_(void) { return cg_isa_cached_; }
CG_INLINE_ void cg_isa_save_(int isa) { cg_isa_cached_ = isa; }
#endif

#if CG_AVX2_
static void cg_cpuid_(uint32_t leaf, uint32_t *out) {
    uint32_t a = leaf, b, c = 0, d;
#  if defined(__i386__) /* ebx may hold the GOT pointer */
    __asm__ __volatile__("xchgl %%ebx, %1\n\tcpuid\n\txchgl %%ebx, %1" : "+a"(a), "=&r"(b), "+c"(c), "=d"(d));
#  else
    __asm__ __volatile__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
#  endif
    out[0] = a;
    out[1] = b;
    out[2] = c;
    out[3] = d;
}
static int cg_has_avx2_(void) {
    uint32_t r[4], lo, hi;
    cg_cpuid_(0, r);
    if (r[0] < 7) return 0;
    cg_cpuid_(1, r); /* popcnt, xsave, avx, f16c */
    if ((r[2] & 0x38800000u) != 0x38800000u) return 0;
    __asm__ __volatile__(".byte 0x0f, 0x01, 0xd0" : "=a"(lo), "=d"(hi) : "c"(0)); /* xgetbv: does the OS save ymm? */
    if ((lo & 6) != 6) return 0;
    cg_cpuid_(7, r); /* bmi1, avx2, bmi2 */
    return (r[1] & 0x128u) == 0x128u;
}
#endif
CG_API_ int cg_isa_found(cg_isa isa) {
    switch (isa) {
    case CG_ISA_AUTO:
    case CG_ISA_SCALAR: return 1;
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
    return isa == CG_ISA_AUTO  ? "auto"
        : isa == CG_ISA_SCALAR ? "scalar"
        : isa == CG_ISA_AVX2   ? "avx2"
        : isa == CG_ISA_NEON   ? "neon"
                               : "?";
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

/* For other headers, which do not see the kernel table. y may be at any address; v and y are one vector or apart. */
CG_OFFERED_ void cg_axpby_(const float *v, size_t n, float alpha, float beta, float *y) { /* y = alpha v + beta y */
    cg_kernels_now_()->axpby(v, n, alpha, beta, y, 0);
}
/* The largest magnitude as bits; CG_INF_BITS_ or more if some value is not finite. */
CG_OFFERED_ uint32_t cg_absmax_bits_(const float *v, size_t n) { return cg_kernels_now_()->absmax_bits(v, n); }
/* y = v, v = 0. stream: past the caches, y at a multiple of 16 bytes; last: no other call follows, so that the stores
   are made visible. */
CG_OFFERED_ void cg_move_zero_(float *v, size_t n, float *y, int stream, int last) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    kernels->move_zero(v, n, y, stream);
    if (stream && last) kernels->stream_fence();
}

/* src/core/codes/bits.h */
/* ---- >>codes: pieces of symbols and floats in fewer bits, positions as Golomb-Rice gaps Bit strings are LSB
   first. A piece stands in whole u32 words; its entry holds the form in bits 30..31 (0: packed or raw) and the
   exact length in bits below. A piece is coded only where that is shorter; the bits after its length are 0. */

#define CG_PIECE_SYMBOLS_ 8192u /* symbols, at most */
#define CG_RICE_MAX_PARAMETER_ 40u
enum {
    CG_VALUE_CODE_PACKED_ = 0,
    CG_VALUE_CODE_GAMMA_ = 1,
    CG_VALUE_CODE_DELTA_ = 2,
    CG_VALUE_CODE_OMEGA_ = 3,
    CG_VALUE_CODE_HUFFMAN_ = 4,
    CG_VALUE_CODE_QUARTIC_ = 5
};

typedef struct cg_alphabet_ {
    unsigned bits; /* packed size, 1..8 */
    /* symbols are 0..top; zero: the one that means 0, or 0 where there are no signs */
    uint8_t max_symbol, zero_symbol;
} cg_alphabet_;

CG_INLINE_ uint32_t cg_piece_entry_(unsigned form, size_t bits) { return (uint32_t)form << 30 | (uint32_t)bits; }
CG_INLINE_ size_t cg_piece_entry_bits_(uint32_t entry) { return entry & 0x3fffffffu; }
static uint32_t cg_piece_close_(unsigned form, size_t bits, uint8_t *out) { /* fills the last word */
    for (size_t i = (bits + 7) / 8; i % 4; i++) out[i] = 0;
    return cg_piece_entry_(form, bits);
}
static int cg_piece_entry_check_(uint32_t entry, size_t packed, const uint8_t *in, size_t bytes) {
    size_t bits = cg_piece_entry_bits_(entry);
    if (entry >> 30 ? bits >= packed : bits != packed) return 0;
    return bytes == (size_t)cg_word_bytes_(bits) && (bits % 32 == 0 || cg_get32_(in + bytes - 4) >> bits % 32 == 0);
}

/* At least 57 bits from `at` on, of a string of `bits`; 0 after its end. */
static uint64_t cg_bits_peek_tail_(const uint8_t *in, size_t bits, size_t at) {
    uint64_t w = 0;
    size_t from = at >> 3, left;
    if (at >= bits) return 0;
    left = bits - at;
    for (unsigned j = 0; j < 8 && from + j < (bits + 7) / 8; j++) w |= (uint64_t)in[from + j] << 8 * j;
    w >>= at & 7;
    return left < 64 ? w & (((uint64_t)1 << left) - 1) : w;
}
CG_INLINE_ uint64_t cg_bits_peek_(const uint8_t *in, size_t bits, size_t at) {
    if (CG_LIKELY_(at + 64 <= bits)) return cg_get64_(in + (at >> 3)) >> (at & 7);
    return cg_bits_peek_tail_(in, bits, at);
}

/* being written; have < 8 */
typedef struct cg_bitstream_ {
    uint8_t *next, *end;
    uint64_t word;
    unsigned filled;
} cg_bitstream_;

CG_INLINE_ void cg_bitstream_put_(cg_bitstream_ *w, uint64_t v, unsigned bits) { /* bits <= 56 */
    w->word |= v << w->filled;
    w->filled += bits;
    if (CG_LIKELY_(w->end - w->next >= 8)) cg_put64_(w->next, w->word);
    else
        for (unsigned j = 0; j < 8 && w->next + j < w->end; j++) w->next[j] = (uint8_t)(w->word >> 8 * j);
    w->next += w->filled >> 3;
    w->word >>= w->filled & 56;
    w->filled &= 7;
}
/* A table of codes holds bits << 8 | length for each symbol. `group` (3 or 5) codes have at most 56 bits together. */
CG_INLINE_ void cg_bitstream_put_symbols_(
    cg_bitstream_ *out, const uint32_t *table, const uint8_t *symbols, size_t n, size_t group) {
    cg_bitstream_ w = *out;
    size_t i = 0;
    for (; i + group <= n; i += group) {
        uint32_t e = table[symbols[i]], total = e; /* only its low byte is meant */
        uint64_t v = e >> 8;
#define CG_JOIN_(j)                        \
  e = table[symbols[i + j]];               \
  v |= (uint64_t)(e >> 8) << (total & 63); \
  total += e;
        CG_JOIN_(1)
        CG_JOIN_(2)
        if (group == 5) { CG_JOIN_(3) CG_JOIN_(4) }
#undef CG_JOIN_
        cg_bitstream_put_(&w, v, total & 63);
    }
    for (; i < n; i++) cg_bitstream_put_(&w, table[symbols[i]] >> 8, table[symbols[i]] & 63);
    *out = w;
}
CG_INLINE_ cg_bitstream_ cg_bitstream_open_(uint8_t *at, uint8_t *end) {
    cg_bitstream_ w;
    w.next = at;
    w.end = end;
    w.word = 0;
    w.filled = 0;
    return w;
}

CG_INLINE_ size_t cg_quarter_size_(size_t n, unsigned s) {
    size_t q = (n + 3) / 4;
    return n <= q * s ? 0 : cg_min_(q, n - q * s);
}

/* How often each symbol is in each quarter: four tables, as equal neighbours would wait for each other in one. */
static void cg_histogram4_(const uint8_t *symbols, size_t n, uint32_t *count /* 4 of 256 */) {
    const size_t q = (n + 3) / 4, all = cg_quarter_size_(n, 3);
    memset(count, 0, 1024 * sizeof *count);
    for (size_t i = 0; i < all; i++) {
        count[symbols[i]]++;
        count[256 + symbols[q + i]]++;
        count[512 + symbols[2 * q + i]]++;
        count[768 + symbols[3 * q + i]]++;
    }
    for (unsigned s = 0; s < 3; s++)
        for (size_t i = all; i < cg_quarter_size_(n, s); i++) count[256 * s + symbols[q * s + i]]++;
}

/* src/core/codes/huffman.h */
/* ---- Huffman. Canonical codes of at most 11 bits; a piece is
     lo, hi             u8 each, the least and the greatest symbol in use; where they are one, nothing follows
     lengths            4 bits for each of lo..hi, the even ones low; 0 = not in use; filled to a byte
     size[3]            u16: bytes of the first three strings
     4 strings          each (n+3)/4 symbols, the last what is left; filled to a byte
   A string that should end early reads on into what follows it, and 0 after the piece. */

#define CG_HUFFMAN_MAX_BITS_ 11u
#define CG_HUFFMAN_TABLE_SIZE_ 2048u /* 1 << CG_HUFFMAN_MAX_BITS_ */

typedef struct cg_huffman_ {
    unsigned min_symbol, max_symbol;
    uint8_t length[256];    /* for lo..hi */
    size_t stream_start[5]; /* of the strings, and the end, in bytes */
} cg_huffman_;

/* Lengths of the codes of `used` symbols, given as count << 8 | symbol. Moffat and Katajainen's method in place,
   then the tree cut at 11: a leaf too deep becomes the brother of a leaf that goes one down, which frees one place
   of the last row each time. */
static void cg_huffman_lengths_(uint32_t *key, unsigned used, uint8_t *length) {
    static const uint8_t gaps[5] = { 57, 23, 10, 4, 1 };
    uint16_t a[256];
    uint32_t num[CG_HUFFMAN_MAX_BITS_ + 1] = { 0 }, kraft = 0;
    unsigned root = 0, leaf = 2, depth = 0, open = 1, at = 0;
    for (unsigned g = 0; g < 5; g++)
        for (unsigned i = gaps[g]; i < used; i++) {
            uint32_t k = key[i];
            unsigned j = i;
            for (; j >= gaps[g] && key[j - gaps[g]] > k; j -= gaps[g]) key[j] = key[j - gaps[g]];
            key[j] = k;
        }
    for (unsigned i = 0; i < used; i++) a[i] = (uint16_t)(key[i] >> 8);
    a[0] = (uint16_t)(a[0] + a[1]);
    for (unsigned next = 1; next + 1 < used; next++) {
        uint32_t sum = 0;
        for (unsigned twice = 0; twice < 2; twice++) {
            if (root < next && (leaf >= used || a[root] < a[leaf])) {
                sum += a[root];
                a[root++] = (uint16_t)next;
            } else sum += a[leaf++];
        }
        a[next] = (uint16_t)sum;
    }
    a[used - 2] = 0;
    for (unsigned i = used - 2; i-- > 0;) a[i] = (uint16_t)(a[a[i]] + 1); /* depth of the inner nodes */
    for (root = used - 1; open; depth++) {
        unsigned inner = 0;
        while (root && a[root - 1] == depth) {
            inner++;
            root--;
        }
        num[depth < CG_HUFFMAN_MAX_BITS_ ? depth : CG_HUFFMAN_MAX_BITS_] += open - inner;
        open = 2 * inner;
    }
    for (unsigned l = 1; l <= CG_HUFFMAN_MAX_BITS_; l++) kraft += num[l] << (CG_HUFFMAN_MAX_BITS_ - l);
    for (; kraft > CG_HUFFMAN_TABLE_SIZE_; kraft--) {
        unsigned l = CG_HUFFMAN_MAX_BITS_ - 1;
        while (!num[l]) l--;
        num[l]--;
        num[l + 1] += 2;
        num[CG_HUFFMAN_MAX_BITS_]--;
    }
    for (unsigned l = CG_HUFFMAN_MAX_BITS_; l; l--)
        for (; num[l]; num[l]--) length[key[at++] & 255] = (uint8_t)l;
}
/* The codes in canonical order, first bit lowest: the next one is an addition with the carry going down. */
CG_INLINE_ unsigned cg_huffman_next_code_(unsigned code, unsigned l) {
    unsigned bit = 1u << (l - 1);
    while (code & bit) bit >>= 1;
    return bit ? (code & (bit - 1)) | bit : 0;
}
static void cg_huffman_canonical_order_(
    const cg_huffman_ *h, unsigned *num /* 12 */, uint8_t *order) { /* by length, then symbol */
    unsigned at[CG_HUFFMAN_MAX_BITS_ + 1];
    for (unsigned l = 0; l <= CG_HUFFMAN_MAX_BITS_; l++) num[l] = 0;
    for (unsigned s = h->min_symbol; s <= h->max_symbol; s++) num[h->length[s]]++;
    at[0] = 0;
    at[1] = 0;
    for (unsigned l = 2; l <= CG_HUFFMAN_MAX_BITS_; l++) at[l] = at[l - 1] + num[l - 1];
    for (unsigned s = h->min_symbol; s <= h->max_symbol; s++)
        if (h->length[s]) order[at[h->length[s]]++] = (uint8_t)s;
}
/* n > 0; bytes it will take */
CG_NOINLINE_ size_t cg_huffman_plan_(cg_huffman_ *h, const uint8_t *symbols, size_t n) {
    uint32_t count[1024];
    uint32_t key[256];
    unsigned used = 0;
    cg_histogram4_(symbols, n, count);
    h->min_symbol = 256;
    h->max_symbol = 0;
    memset(h->length, 0, sizeof h->length);
    for (unsigned s = 0; s < 256; s++) {
        uint32_t c = count[s] + count[256 + s] + count[512 + s] + count[768 + s];
        if (!c) continue;
        if (h->min_symbol > s) h->min_symbol = s;
        h->max_symbol = s;
        key[used++] = c << 8 | s;
    }
    if (used < 2) return 2;
    cg_huffman_lengths_(key, used, h->length);
    h->stream_start[0] = 2 + (h->max_symbol - h->min_symbol + 2) / 2 + 6;
    for (unsigned q = 0; q < 4; q++) {
        size_t bits = 0;
        for (unsigned s = h->min_symbol; s <= h->max_symbol; s++) bits += (size_t)count[256 * q + s] * h->length[s];
        h->stream_start[q + 1] = h->stream_start[q] + (bits + 7) / 8;
    }
    return h->stream_start[4];
}
static void cg_huffman_put_(const cg_huffman_ *h, const uint8_t *symbols, size_t n, uint8_t *out, uint8_t *end) {
    uint32_t table[256];
    uint8_t order[256];
    unsigned num[CG_HUFFMAN_MAX_BITS_ + 1], code = 0, at = 0;
    out[0] = (uint8_t)h->min_symbol;
    out[1] = (uint8_t)h->max_symbol;
    if (h->min_symbol == h->max_symbol) return;
    cg_huffman_canonical_order_(h, num, order);
    for (unsigned l = 1; l <= CG_HUFFMAN_MAX_BITS_; l++)
        for (unsigned j = 0; j < num[l]; j++, code = cg_huffman_next_code_(code, l)) table[order[at++]] = code << 8 | l;
    for (unsigned s = h->min_symbol; s <= h->max_symbol; s += 2)
        out[2 + (s - h->min_symbol) / 2] =
            (uint8_t)(h->length[s] | (s < h->max_symbol ? (unsigned)h->length[s + 1] << 4 : 0u));
    for (unsigned q = 0; q < 3; q++)
        cg_put16_(out + h->stream_start[0] - 6 + 2 * q, (uint32_t)(h->stream_start[q + 1] - h->stream_start[q]));
    for (unsigned q = 0; q < 4; q++) {
        cg_bitstream_ w = cg_bitstream_open_(out + h->stream_start[q], end);
        cg_bitstream_put_symbols_(&w, table, symbols, cg_quarter_size_(n, q), 5);
        symbols += cg_quarter_size_(n, q);
    }
}
static int cg_huffman_header_get_(cg_huffman_ *h, unsigned top, const uint8_t *in, size_t bytes, size_t n) {
    unsigned many, kraft = 0;
    if (bytes < 2) return 0;
    h->min_symbol = in[0];
    h->max_symbol = in[1];
    if (h->min_symbol > h->max_symbol || h->max_symbol > top) return 0;
    if (h->min_symbol == h->max_symbol) return bytes == 2;
    many = h->max_symbol - h->min_symbol + 1;
    h->stream_start[0] = 2 + (many + 1) / 2 + 6;
    if (bytes < h->stream_start[0]) return 0;
    for (unsigned i = 0; i < many; i++) {
        unsigned l = (unsigned)in[2 + i / 2] >> i % 2 * 4 & 15;
        if (l > CG_HUFFMAN_MAX_BITS_) return 0;
        if (l) kraft += CG_HUFFMAN_TABLE_SIZE_ >> l;
        h->length[h->min_symbol + i] = (uint8_t)l;
    }
    if (kraft != CG_HUFFMAN_TABLE_SIZE_ || !h->length[h->min_symbol] || !h->length[h->max_symbol] ||
        (many % 2 && in[1 + (many + 1) / 2] >> 4))
        return 0;
    for (unsigned q = 0; q < 3; q++)
        h->stream_start[q + 1] = h->stream_start[q] + cg_get16_(in + h->stream_start[0] - 6 + 2 * q);
    h->stream_start[4] = bytes;
    for (unsigned q = 0; q < 4; q++) {
        size_t symbols = cg_quarter_size_(n, q), size = h->stream_start[q + 1] - h->stream_start[q];
        if (h->stream_start[q] > h->stream_start[q + 1] || 8 * size < symbols ||
            size > (CG_HUFFMAN_MAX_BITS_ * symbols + 7) / 8)
            return 0;
    }
    return 1;
}
CG_NOINLINE_ void cg_huffman_get_(const cg_huffman_ *h, const uint8_t *in, size_t n, uint8_t *symbols) {
    /* symbol << 8 | length of the code that the next 11 bits begin with */
    uint16_t table[CG_HUFFMAN_TABLE_SIZE_];
    uint8_t order[256];
    unsigned num[CG_HUFFMAN_MAX_BITS_ + 1], code = 0, at = 0;
    const size_t q = (n + 3) / 4, all = cg_quarter_size_(n, 3);
    size_t i = 0, p[4], bits;
    if (h->min_symbol == h->max_symbol) {
        memset(symbols, (int)h->min_symbol, n);
        return;
    }
    cg_huffman_canonical_order_(h, num, order);
    table[0] = 0;
    /* twice as long for each length; complete, so all of it gets filled */
    for (unsigned l = 1; l <= CG_HUFFMAN_MAX_BITS_; l++) {
        memcpy(table + (1u << (l - 1)), table, sizeof *table << (l - 1));
        for (unsigned j = 0; j < num[l]; j++, code = cg_huffman_next_code_(code, l))
            table[code] = (uint16_t)((unsigned)order[at++] << 8 | l);
    }
    for (unsigned s = 0; s < 4; s++) p[s] = 8 * h->stream_start[s];
    bits = 8 * h->stream_start[4];
    {
        size_t p0 = p[0], p1 = p[1], p2 = p[2], p3 = p[3];
        uint8_t *o0 = symbols, *o1 = symbols + q, *o2 = symbols + 2 * q, *o3 = symbols + 3 * q;
        for (; i + 5 <= all && p0 + 64 <= bits && p1 + 64 <= bits && p2 + 64 <= bits && p3 + 64 <= bits; i += 5) {
            uint64_t w0 = cg_get64_(in + (p0 >> 3)) >> (p0 & 7), w1 = cg_get64_(in + (p1 >> 3)) >> (p1 & 7);
            uint64_t w2 = cg_get64_(in + (p2 >> 3)) >> (p2 & 7), w3 = cg_get64_(in + (p3 >> 3)) >> (p3 & 7);
            uint32_t t0 = 0, t1 = 0, t2 = 0, t3 = 0, e; /* sums of lengths in their low bytes */
#define CG_HUFFMAN_STEP_(s, j)                    \
  e = table[w##s & (CG_HUFFMAN_TABLE_SIZE_ - 1)]; \
  w##s >>= e & 63;                                \
  t##s += e;                                      \
  o##s[i + j] = (uint8_t)(e >> 8);
#define CG_HUFFMAN_STEP4_(j) CG_HUFFMAN_STEP_(0, j) CG_HUFFMAN_STEP_(1, j) CG_HUFFMAN_STEP_(2, j) CG_HUFFMAN_STEP_(3, j)
            CG_HUFFMAN_STEP4_(0)
            CG_HUFFMAN_STEP4_(1)
            CG_HUFFMAN_STEP4_(2)
            CG_HUFFMAN_STEP4_(3)
            CG_HUFFMAN_STEP4_(4)
#undef CG_HUFFMAN_STEP4_
#undef CG_HUFFMAN_STEP_
            p0 += t0 & 255;
            p1 += t1 & 255;
            p2 += t2 & 255;
            p3 += t3 & 255;
        }
        p[0] = p0;
        p[1] = p1;
        p[2] = p2;
        p[3] = p3;
    }
    for (unsigned s = 0; s < 4; s++)
        for (size_t j = i; j < cg_quarter_size_(n, s); j++) {
            unsigned e = table[cg_bits_peek_(in, bits, p[s]) & (CG_HUFFMAN_TABLE_SIZE_ - 1)];
            p[s] += e & 255;
            symbols[q * s + j] = (uint8_t)(e >> 8);
        }
}

/* src/core/codes/elias.h */
/* ---- Elias codes of v >= 1 with L = floor(log2 v) gamma   L zeros, a 1, the L low bits of v delta   gamma(L +
   1), the L low bits of v omega   the groups of v, L, floor(log2 L) ... down to 2 or 3, the last one first; then a
   0. A group is a 1 and the low bits. A decoder meets numbers that no encoder wrote: L counts as at most 16, the
   gamma in delta has at most 4 zeros, and an omega ends once it is above 16. So it never takes more than 33 bits. */

static uint64_t cg_elias_codeword_(uint32_t code, uint32_t v, unsigned *bits) { /* 0 < v < 2^16 */
    unsigned l = cg_log2_(v);
    uint64_t low = v - (1u << l), w;
    unsigned have;
    if (code == CG_VALUE_CODE_GAMMA_) {
        *bits = 2 * l + 1;
        return (low << 1 | 1) << l;
    }
    if (code == CG_VALUE_CODE_DELTA_) {
        w = cg_elias_codeword_(CG_VALUE_CODE_GAMMA_, l + 1, &have);
        *bits = have + l;
        return w | low << have;
    }
    for (w = 0, have = 1; v > 1; v = l) {
        l = cg_log2_(v);
        w = w << (l + 1) | (uint64_t)(v - (1u << l)) << 1 | 1;
        have += l + 1;
    }
    *bits = have;
    return w;
}
CG_INLINE_ uint32_t cg_elias_get_(uint32_t code, uint64_t w, size_t *at) { /* w: at least 34 bits */
    if (code == CG_VALUE_CODE_OMEGA_) {
        uint32_t v = 1;
        while (w & 1) {
            if (v > 16) break;
            *at += v + 1;
            w >>= 1;
            {
                uint32_t next = (1u << v) + ((uint32_t)w & ((1u << v) - 1));
                w >>= v;
                v = next;
            }
        }
        *at += 1;
        return v;
    } else {
        unsigned l = cg_ctz_(w | (uint64_t)1 << (code == CG_VALUE_CODE_GAMMA_ ? 16 : 4));
        uint32_t v;
        w >>= l + 1;
        v = (1u << l) + ((uint32_t)w & ((1u << l) - 1));
        *at += 2 * l + 1;
        if (code == CG_VALUE_CODE_GAMMA_) return v;
        w >>= l;
        l = v - 1 < 16 ? v - 1 : 16;
        *at += l;
        return (1u << l) + ((uint32_t)w & ((1u << l) - 1));
    }
}
CG_INLINE_ uint8_t cg_symbol_from_level_(const cg_alphabet_ *a, unsigned negative, uint32_t level) {
    unsigned most = negative ? a->zero_symbol : (unsigned)a->max_symbol - a->zero_symbol;
    if (level > most) level = most;
    return (uint8_t)(negative ? a->zero_symbol - level : a->zero_symbol + level);
}
CG_INLINE_ uint32_t cg_symbol_magnitude_(const cg_alphabet_ *a, unsigned s) {
    return s < a->zero_symbol ? a->zero_symbol - s : s - a->zero_symbol;
}

/* Dense: for each symbol a sign bit if there are signs (1 = negative) and |level| + 1. */
static void cg_elias_dense_table_(uint32_t code, const cg_alphabet_ *a, uint32_t *table) {
    for (unsigned s = 0; s <= a->max_symbol; s++) {
        unsigned bits;
        uint32_t w = (uint32_t)cg_elias_codeword_(code, cg_symbol_magnitude_(a, s) + 1, &bits);
        table[s] = a->zero_symbol ? (w << 1 | (s < a->zero_symbol)) << 8 | (bits + 1) : w << 8 | bits;
    }
}
/* Sparse: for each symbol that is not zero its distance from the last such (from -1 at first), the sign bit,
   |level|. */
static void cg_elias_sparse_table_(
    uint32_t code, const cg_alphabet_ *a, uint32_t *value, uint32_t *gaps /* of 1..63 */) {
    unsigned bits;
    for (unsigned g = 1; g < 64; g++) {
        gaps[g] = (uint32_t)cg_elias_codeword_(code, g, &bits) << 8;
        gaps[g] |= bits;
    }
    for (unsigned s = 0; s <= a->max_symbol; s++) {
        uint32_t v;
        if (s == a->zero_symbol) {
            value[s] = 0;
            continue;
        }
        v = (uint32_t)cg_elias_codeword_(code, cg_symbol_magnitude_(a, s), &bits);
        value[s] = a->zero_symbol ? (v << 1 | (s < a->zero_symbol)) << 8 | (bits + 1) : v << 8 | bits;
    }
}
/* The bits it took, or `limit` if that is not enough. */
static size_t cg_elias_sparse_put_(
    uint32_t code, const cg_alphabet_ *a, const uint8_t *symbols, size_t n, uint8_t *out, uint8_t *end, size_t limit) {
    uint32_t value[256], gaps[64];
    uint16_t place[1024];
    const uint64_t zeros = a->zero_symbol * (uint64_t)0x0101010101010101u;
    cg_bitstream_ w = cg_bitstream_open_(out, end);
    size_t next = 0, total = 0;
    cg_elias_sparse_table_(code, a, value, gaps);
    for (size_t from = 0; from < n; from += 1024) {
        const size_t to = cg_min_(from + 1024, n);
        size_t i = from, many = 0;
        for (; i + 8 <= to; i += 8) {
            if (cg_get64_(symbols + i) == zeros) continue;
            for (size_t j = i; j < i + 8; j++) {
                place[many] = (uint16_t)j;
                many += symbols[j] != a->zero_symbol;
            }
        }
        for (; i < to; i++)
            if (symbols[i] != a->zero_symbol) place[many++] = (uint16_t)i;
        for (i = 0; i < many; i++) {
            const size_t gap = place[i] + 1u - next;
            const uint32_t v = value[symbols[place[i]]];
            uint64_t g;
            unsigned bits;
            if (CG_LIKELY_(gap < 64)) {
                g = gaps[gap] >> 8;
                bits = gaps[gap] & 63;
            } else g = cg_elias_codeword_(code, (uint32_t)gap, &bits);
            g |= (uint64_t)(v >> 8) << bits;
            bits += v & 63;
            total += bits;
            if (total >= limit) return limit;
            cg_bitstream_put_(&w, g, bits);
            next = place[i] + 1u;
        }
    }
    return total;
}
#define CG_ELIAS_SPARSE_TABLE_BITS_ 10u
#define CG_ELIAS_SPARSE_TABLE_SIZE_ 1024u
CG_NOINLINE_ void cg_elias_sparse_get_(
    uint32_t code, const cg_alphabet_ *a, const uint8_t *in, size_t bits, size_t n, uint8_t *symbols) {
    /* symbol, gap, bits of both from bit 24 on; 0: too long for here */
    uint32_t value[256], gaps[64], table[CG_ELIAS_SPARSE_TABLE_SIZE_];
    const int quick = bits >= 4096; /* pays for the table */
    size_t at = 0, place = (size_t)0 - 1;
    memset(symbols, a->zero_symbol, n);
    if (quick) {
        memset(table, 0, sizeof table);
        cg_elias_sparse_table_(code, a, value, gaps);
        for (unsigned g = 1; g < 64; g++)
            for (unsigned s = 0, l; s <= a->max_symbol; s++) {
                if (s == a->zero_symbol || (l = (gaps[g] & 63) + (value[s] & 63)) > CG_ELIAS_SPARSE_TABLE_BITS_)
                    continue;
                for (uint32_t w = gaps[g] >> 8 | value[s] >> 8 << (gaps[g] & 63); w < CG_ELIAS_SPARSE_TABLE_SIZE_;
                     w += 1u << l)
                    table[w] = s | g << 8 | l << 24;
            }
    }
    while (at < bits) {
        unsigned negative = 0;
        uint64_t w;
        while (quick && at + 64 <= bits) {
            uint32_t e = 0;
            w = cg_get64_(in + (at >> 3)) >> (at & 7);
            for (unsigned j = 0; j < 5; j++) {
                e = table[w & (CG_ELIAS_SPARSE_TABLE_SIZE_ - 1)];
                if (!e) break;
                place += e >> 8 & 255;
                if (place >= n) return;
                symbols[place] = (uint8_t)e;
                w >>= e >> 24;
                at += e >> 24;
            }
            if (!e) break;
        }
        place += cg_elias_get_(code, cg_bits_peek_(in, bits, at), &at);
        if (place >= n) return;
        w = cg_bits_peek_(in, bits, at);
        if (a->zero_symbol) {
            negative = w & 1;
            w >>= 1;
            at++;
        }
        symbols[place] = cg_symbol_from_level_(a, negative, cg_elias_get_(code, w, &at));
    }
}
CG_INLINE_ uint8_t cg_elias_dense_get_one_(uint32_t code, const cg_alphabet_ *a, uint64_t w, size_t *at) {
    unsigned negative = 0;
    if (a->zero_symbol) {
        negative = w & 1;
        w >>= 1;
        ++*at;
    }
    return cg_symbol_from_level_(a, negative, cg_elias_get_(code, w, at) - 1);
}
#define CG_ELIAS_DENSE_TABLE_BITS_ 10u
#define CG_ELIAS_DENSE_TABLE_SIZE_ 1024u
CG_NOINLINE_ void cg_elias_dense_get_(
    uint32_t code, const cg_alphabet_ *a, const uint8_t *in, size_t bits, size_t n, uint8_t *symbols) {
    /* one or two symbols in the low bytes, how many, their length; 0: too long for here */
    uint32_t one[256], table[CG_ELIAS_DENSE_TABLE_SIZE_];
    size_t at = 0, i = 0;
    if (n >= 1024) {
        memset(table, 0, sizeof table);
        cg_elias_dense_table_(code, a, one);
        for (unsigned s = 0; s <= a->max_symbol; s++)
            if ((one[s] & 255) <= CG_ELIAS_DENSE_TABLE_BITS_)
                for (uint32_t w = one[s] >> 8; w < CG_ELIAS_DENSE_TABLE_SIZE_; w += 1u << (one[s] & 255))
                    table[w] = s | 1u << 16 | (one[s] & 255) << 24;
        /* downwards, as what follows lies lower and must still be single */
        for (uint32_t w = CG_ELIAS_DENSE_TABLE_SIZE_; w-- > 0;) {
            uint32_t e = table[w], f = table[w >> (e >> 24)];
            if (e && f && (e >> 24) + (f >> 24) <= CG_ELIAS_DENSE_TABLE_BITS_)
                table[w] = e + ((f & 255) << 8) + (1u << 16) + (f & 0xff000000u);
        }
        while (n - i >= 10 && at + 64 <= bits) {
            uint64_t w = cg_get64_(in + (at >> 3)) >> (at & 7);
            for (unsigned j = 0; j < 5; j++) {
                uint32_t e = table[w & (CG_ELIAS_DENSE_TABLE_SIZE_ - 1)];
                if (!e) {
                    symbols[i++] = cg_elias_dense_get_one_(code, a, cg_bits_peek_(in, bits, at), &at);
                    break;
                }
                cg_put16_(symbols + i, e & 0xffff);
                i += e >> 16 & 255;
                w >>= e >> 24;
                at += e >> 24;
            }
        }
    }
    for (; i < n && at < bits; i++) symbols[i] = cg_elias_dense_get_one_(code, a, cg_bits_peek_(in, bits, at), &at);
    memset(symbols + i, a->zero_symbol, n - i);
}

/* src/core/codes/quartic.h */
/* ---- quartic: five trits in a byte, sum t_i 3^i, filled up with `zero`; r = 2..14 bytes of 121 in a row become
   the byte 241 + r. */

static size_t cg_quartic_put_(const cg_alphabet_ *a, const uint8_t *symbols, size_t n, uint8_t *out, size_t limit) {
    const uint64_t times = (uint64_t)1 << 32 | 3u << 24 | 9u << 16 | 27u << 8 | 81u,
                   zeros = a->zero_symbol * (uint64_t)0x0101010101u;
    size_t bytes = 0;
    unsigned run = 0;
    for (size_t i = 0; i < n; i += 5) {
        uint64_t x = zeros;
        uint8_t q;
        if (n - i >= 8) x = cg_get64_(symbols + i) & 0xffffffffffu;
        else
            for (size_t j = 0; j < 5 && j < n - i; j++)
                x = (x & ~((uint64_t)255 << 8 * j)) | (uint64_t)symbols[i + j] << 8 * j;
        q = (uint8_t)(x * times >> 32);
        run = q == 121 && run < 14 ? run + 1 : q == 121;
        if (run < 2) {
            if (bytes == limit) return limit + 1;
            out[bytes++] = q;
        } else {
            out[bytes - 1] = (uint8_t)(241 + run);
        }
    }
    return bytes;
}
static int cg_quartic_check_(const uint8_t *in, size_t bytes, size_t n) {
    size_t have = 0;
    for (size_t i = 0; i < bytes; i++) have += in[i] < 243 ? 1u : in[i] - 241u;
    return have == (n + 4) / 5;
}
static void cg_quartic_get_(const uint8_t *in, size_t bytes, size_t n, uint8_t *symbols) {
    uint64_t table[243]; /* the trits in five bytes */
    size_t i = 0, j = 0;
    unsigned again = 0;
    table[0] = 0;
    for (unsigned t = 0, many = 1; t < 5; t++, many *= 3)
        for (unsigned q = 0; q < 2 * many; q++) table[many + q] = table[q] + ((uint64_t)1 << 8 * t);
    for (; i < n; i += 5) {
        unsigned q = 121;
        if (again) again--;
        else if (j < bytes) {
            q = in[j++];
            if (q >= 243) {
                again = q - 242;
                q = 121;
            }
        }
        if (n - i >= 8) cg_put64_(symbols + i, table[q]);
        else
            for (size_t t = 0; t < 5 && t < n - i; t++) symbols[i + t] = (uint8_t)(table[q] >> 8 * t);
    }
}

/* src/core/codes/symbols.h */
/* ---- pieces of symbols */

static int cg_code_fits_alphabet_(uint32_t code, const cg_alphabet_ *a) {
    if (code > CG_VALUE_CODE_QUARTIC_ || a->bits < 1 || a->bits > 8 || a->max_symbol >> (a->bits - 1) > 1 ||
        a->zero_symbol > a->max_symbol)
        return 0;
    return code != CG_VALUE_CODE_QUARTIC_ || a->max_symbol == 2;
}
/* symbols <= top, n <= CG_PIECE_SYMBOLS_, cap >= the packed words; up to cap may be scribbled on. Ties go to the
   lower form. */
CG_NOINLINE_ uint32_t cg_piece_put_(const cg_kernels_ *kernels, uint32_t code, const cg_alphabet_ *a,
    const uint8_t *symbols, size_t n, uint8_t *out, size_t cap) {
    const size_t packed = n * a->bits;
    if (n && code == CG_VALUE_CODE_HUFFMAN_) {
        cg_huffman_ h;
        size_t bytes = cg_huffman_plan_(&h, symbols, n);
        if (8 * bytes < packed) {
            cg_huffman_put_(&h, symbols, n, out, out + cap);
            return cg_piece_close_(1, 8 * bytes, out);
        }
    } else if (n && code == CG_VALUE_CODE_QUARTIC_) {
        size_t limit = (packed - 1) / 8, bytes = cg_quartic_put_(a, symbols, n, out, limit);
        if (bytes <= limit) return cg_piece_close_(1, 8 * bytes, out);
    } else if (n && code) {
        uint32_t count[1024];
        uint32_t table[256];
        size_t dense = 0, least = 0, best, sparse;
        cg_histogram4_(symbols, n, count);
        cg_elias_dense_table_(code, a, table);
        for (unsigned s = 0; s <= a->max_symbol; s++) {
            size_t c = (size_t)count[s] + count[256 + s] + count[512 + s] + count[768 + s];
            unsigned bits;
            dense += c * (table[s] & 255);
            if (c && s != a->zero_symbol) {
                (void)cg_elias_codeword_(code, cg_symbol_magnitude_(a, s), &bits);
                least += c * (bits + 1 + (a->zero_symbol > 0));
            }
        }
        best = cg_min_(packed, dense);
        if (least < best) { /* if all gaps were 1 */
            sparse = cg_elias_sparse_put_(code, a, symbols, n, out, out + cap, best);
            if (sparse < best) return cg_piece_close_(2, sparse, out);
        }
        if (dense < packed) {
            cg_bitstream_ w = cg_bitstream_open_(out, out + cap);
            cg_bitstream_put_symbols_(&w, table, symbols, n, 3);
            return cg_piece_close_(1, dense, out);
        }
    }
    if (a->bits < 8) kernels->pack(symbols, n, a->bits, out);
    else if (n) memcpy(out, symbols, n);
    return cg_piece_close_(0, packed, out);
}
static int cg_piece_check_(const cg_kernels_ *kernels, uint32_t code, const cg_alphabet_ *a, uint32_t entry,
    const uint8_t *in, size_t bytes, size_t n) {
    const unsigned form = entry >> 30;
    const size_t bits = cg_piece_entry_bits_(entry);
    (void)kernels;
    if (n > CG_PIECE_SYMBOLS_ || !cg_code_fits_alphabet_(code, a) ||
        !cg_piece_entry_check_(entry, n * a->bits, in, bytes))
        return 0;
    if (form == 0) return 1;
    if (code == CG_VALUE_CODE_PACKED_ || form > (code <= CG_VALUE_CODE_OMEGA_ ? 2u : 1u)) return 0;
    if (code <= CG_VALUE_CODE_OMEGA_) return form == 2 || bits >= n * (a->zero_symbol ? 2u : 1u);
    if (bits % 8) return 0;
    if (code == CG_VALUE_CODE_HUFFMAN_) {
        cg_huffman_ h;
        return cg_huffman_header_get_(&h, a->max_symbol, in, bits / 8, n);
    }
    return cg_quartic_check_(in, bits / 8, n);
}
CG_NOINLINE_ void cg_piece_get_(const cg_kernels_ *kernels, uint32_t code, const cg_alphabet_ *a, uint32_t entry,
    const uint8_t *in, size_t bytes, size_t n, uint8_t *symbols) {
    const unsigned form = entry >> 30;
    const size_t bits = cg_min_(cg_piece_entry_bits_(entry), 8 * bytes);
    if (!n) return;
    if (form == 0 && bits >= n * a->bits) {
        if (a->bits < 8) kernels->unpack(in, n, a->bits, symbols);
        else memcpy(symbols, in, n);
        if (a->max_symbol < (1u << a->bits) - 1)
            for (size_t i = 0; i < n; i++) symbols[i] = symbols[i] < a->max_symbol ? symbols[i] : a->max_symbol;
    } else if (form == 1 && code == CG_VALUE_CODE_HUFFMAN_) {
        cg_huffman_ h;
        if (cg_huffman_header_get_(&h, a->max_symbol, in, bits / 8, n)) cg_huffman_get_(&h, in, n, symbols);
        else memset(symbols, a->zero_symbol, n);
    } else if (form == 1 && code == CG_VALUE_CODE_QUARTIC_) {
        cg_quartic_get_(in, bits / 8, n, symbols);
    } else if (form == 1 && code && code <= CG_VALUE_CODE_OMEGA_) {
        cg_elias_dense_get_(code, a, in, bits, n, symbols);
    } else if (form == 2 && code && code <= CG_VALUE_CODE_OMEGA_) {
        cg_elias_sparse_get_(code, a, in, bits, n, symbols);
    } else {
        memset(symbols, a->zero_symbol, n);
    }
}

/* src/core/codes/floats.h */
/* ---- pieces of floats: the exponents as a Huffman piece, then what is left of each value, the sign on top, 3
   bytes or (bf16) 1 */

static void cg_exponents_scalar_(unsigned width, const uint8_t *in, size_t n, uint8_t *exponents) {
    if (width == 4)
        for (size_t i = 0; i < n; i++) exponents[i] = (uint8_t)(cg_get32_(in + 4 * i) >> 23);
    else
        for (size_t i = 0; i < n; i++) exponents[i] = (uint8_t)(cg_get16_(in + 2 * i) >> 7);
}
static void cg_sign_mantissas_scalar_(unsigned width, const uint8_t *in, size_t n, uint8_t *rests) {
    if (width == 4) {
        for (size_t i = 0; i < n; i++) {
            uint32_t u = cg_get32_(in + 4 * i);
            cg_put16_(rests + 3 * i, u);
            rests[3 * i + 2] = (uint8_t)((u >> 16 & 0x7f) | (u >> 24 & 0x80));
        }
    } else {
        for (size_t i = 0; i < n; i++) rests[i] = (uint8_t)((in[2 * i] & 0x7f) | (in[2 * i + 1] & 0x80));
    }
}
static void cg_floats_join_scalar_(
    unsigned width, const uint8_t *exponents, const uint8_t *rests, size_t n, uint8_t *out) {
    if (width == 4) {
        for (size_t i = 0; i < n; i++) {
            uint32_t r = cg_get16_(rests + 3 * i) | (uint32_t)rests[3 * i + 2] << 16;
            cg_put32_(out + 4 * i, (r & 0x7fffff) | (r & 0x800000) << 8 | (uint32_t)exponents[i] << 23);
        }
    } else {
        for (size_t i = 0; i < n; i++)
            cg_put16_(out + 2 * i, (rests[i] & 0x7fu) | (rests[i] & 0x80u) << 8 | (uint32_t)exponents[i] << 7);
    }
}
#if CG_AVX2_
CG_AVX2_INLINE_ __m256i cg_exponent8_avx2_(const uint8_t *in) {
    return _mm256_srli_epi32(_mm256_slli_epi32(cg_load_bytes_avx2_(in), 1), 24);
}
CG_TARGET_AVX2_ static void cg_exponents_avx2_(unsigned width, const uint8_t *in, size_t n, uint8_t *exponents) {
    size_t i = 0;
    if (width == 4) {
        const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
        for (; i + 32 <= n; i += 32) {
            const uint8_t *p = in + 4 * i;
            __m256i a = _mm256_packus_epi32(cg_exponent8_avx2_(p), cg_exponent8_avx2_(p + 32));
            __m256i b = _mm256_packus_epi32(cg_exponent8_avx2_(p + 64), cg_exponent8_avx2_(p + 96));
            cg_store_avx2_(exponents + i, _mm256_permutevar8x32_epi32(_mm256_packus_epi16(a, b), order));
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
CG_TARGET_AVX2_ static void cg_sign_mantissas_avx2_(unsigned width, const uint8_t *in, size_t n, uint8_t *rests) {
    size_t i = 0;
    if (width == 4) {
        const __m256i low = _mm256_set1_epi32(0x7fffff), sign = _mm256_set1_epi32(0x800000);
        const __m256i squeeze = _mm256_broadcastsi128_si256(
            _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1));
        for (; i + 10 <= n; i += 8) { /* the upper store goes 4 bytes beyond */
            __m256i v = cg_load_bytes_avx2_(in + 4 * i);
            v = _mm256_or_si256(_mm256_and_si256(v, low), _mm256_and_si256(_mm256_srli_epi32(v, 8), sign));
            v = _mm256_shuffle_epi8(v, squeeze);
            _mm_storeu_si128((__m128i *)(void *)(rests + 3 * i), _mm256_castsi256_si128(v));
            _mm_storeu_si128((__m128i *)(void *)(rests + 3 * i + 12), _mm256_extracti128_si256(v, 1));
        }
    } else {
        const __m256i low = _mm256_set1_epi16(0x7f), sign = _mm256_set1_epi16(0x80);
        for (; i + 32 <= n; i += 32) {
            __m256i a = cg_load_bytes_avx2_(in + 2 * i), b = cg_load_bytes_avx2_(in + 2 * i + 32);
            a = _mm256_or_si256(_mm256_and_si256(a, low), _mm256_and_si256(_mm256_srli_epi16(a, 8), sign));
            b = _mm256_or_si256(_mm256_and_si256(b, low), _mm256_and_si256(_mm256_srli_epi16(b, 8), sign));
            cg_store_avx2_(rests + i, _mm256_permute4x64_epi64(_mm256_packus_epi16(a, b), 0xd8));
        }
    }
    _mm256_zeroupper();
    cg_sign_mantissas_scalar_(width, in + width * i, n - i, rests + (width - 1) * i);
}
CG_TARGET_AVX2_ static void cg_floats_join_avx2_(
    unsigned width, const uint8_t *exponents, const uint8_t *rests, size_t n, uint8_t *out) {
    size_t i = 0;
    if (width == 4) {
        const __m256i low = _mm256_set1_epi32(0x7fffff), sign = _mm256_set1_epi32(0x800000);
        const __m256i spread = _mm256_broadcastsi128_si256(
            _mm_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1));
        for (; i + 10 <= n; i += 8) {
            __m256i e = _mm256_slli_epi32(
                _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)(exponents + i))), 23);
            __m256i r = _mm256_inserti128_si256(
                _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)(rests + 3 * i))),
                _mm_loadu_si128((const __m128i *)(const void *)(rests + 3 * i + 12)), 1);
            r = _mm256_shuffle_epi8(r, spread);
            r = _mm256_or_si256(_mm256_and_si256(r, low), _mm256_slli_epi32(_mm256_and_si256(r, sign), 8));
            cg_store_avx2_(out + 4 * i, _mm256_or_si256(r, e));
        }
    } else {
        const __m256i low = _mm256_set1_epi16(0x7f), sign = _mm256_set1_epi16(0x80);
        for (; i + 16 <= n; i += 16) {
            __m256i e = _mm256_slli_epi16(
                _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(const void *)(exponents + i))), 7);
            __m256i r = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(const void *)(rests + i)));
            r = _mm256_or_si256(_mm256_and_si256(r, low), _mm256_slli_epi16(_mm256_and_si256(r, sign), 8));
            cg_store_avx2_(out + 2 * i, _mm256_or_si256(r, e));
        }
    }
    _mm256_zeroupper();
    cg_floats_join_scalar_(width, exponents + i, rests + (width - 1) * i, n - i, out + width * i);
}
#endif
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
    const cg_kernels_ *kernels, unsigned width, const uint8_t *in, size_t n, uint8_t *rests) {
#if CG_AVX2_
    if (kernels->isa == CG_ISA_AVX2) {
        cg_sign_mantissas_avx2_(width, in, n, rests);
        return;
    }
#endif
    (void)kernels;
    cg_sign_mantissas_scalar_(width, in, n, rests);
}
static void cg_floats_join_(const cg_kernels_ *kernels, unsigned width, const uint8_t *exponents, const uint8_t *rests,
    size_t n, uint8_t *out) {
#if CG_AVX2_
    if (kernels->isa == CG_ISA_AVX2) {
        cg_floats_join_avx2_(width, exponents, rests, n, out);
        return;
    }
#endif
    (void)kernels;
    cg_floats_join_scalar_(width, exponents, rests, n, out);
}

/* width: bytes of a value, 2 (bf16) or 4 (f32); n <= CG_PIECE_SYMBOLS_; cap: at least n*width in whole words */
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
            return cg_piece_close_(1, 8 * (coded + n * (width - 1)), out);
        }
        memcpy(out, in, n * width);
    }
    return cg_piece_close_(0, 8 * n * width, out);
}
CG_NOINLINE_ int cg_floats_check_(
    const cg_kernels_ *kernels, unsigned width, uint32_t entry, const uint8_t *in, size_t bytes, size_t n) {
    cg_huffman_ h;
    const size_t size = cg_piece_entry_bits_(entry) / 8;
    (void)kernels;
    if (n > CG_CHUNK_ || cg_piece_entry_bits_(entry) % 8 || !cg_piece_entry_check_(entry, 8 * n * width, in, bytes))
        return 0;
    if (entry >> 30 == 0) return 1;
    /* 255 would be Inf or NaN */
    return entry >> 30 == 1 && size >= n * (width - 1) &&
        cg_huffman_header_get_(&h, 254, in, size - n * (width - 1), n);
}
CG_NOINLINE_ void cg_floats_get_(const cg_kernels_ *kernels, unsigned width, uint32_t entry, const uint8_t *in,
    size_t bytes, size_t n, uint8_t *out) {
    uint8_t exponents[CG_CHUNK_];
    cg_huffman_ h;
    const size_t size = cg_min_(cg_piece_entry_bits_(entry) / 8, bytes), rests = n * (width - 1);
    if (!n) return;
    if (entry >> 30 == 0 && size >= n * width) {
        memcpy(out, in, n * width);
    } else if (entry >> 30 == 1 && n <= CG_CHUNK_ && size >= rests &&
        cg_huffman_header_get_(&h, 255, in, size - rests, n)) {
        cg_huffman_get_(&h, in, n, exponents);
        cg_floats_join_(kernels, width, exponents, in + (size - rests), n, out);
    } else {
        memset(out, 0, n * width);
    }
}

/* src/core/codes/golomb.h */
/* ---- Golomb-Rice: an index as the number g of those skipped before it: g >> b zeros, a 1, the b low bits of g */

static unsigned cg_rice_parameter_(uint64_t universe, uint64_t k) {
    double miss = universe ? 1.0 - (double)k / (double)universe : 0.0;
    unsigned b = 0;
    while (!(miss < 0.6180339887498949) && b < CG_RICE_MAX_PARAMETER_) {
        miss *= miss;
        b++;
    }
    return b;
}
static uint64_t cg_rice_bound_(uint64_t universe, uint64_t k) { /* bytes that suffice for any k of so many */
    unsigned b = cg_rice_parameter_(universe, k);
    return k ? cg_word_bytes_(cg_add_sat_(cg_mul_sat_(k, b + 1), (universe - k) >> b)) : 0;
}

typedef struct cg_rice_writer_ {
    uint8_t *start, *next_byte;
    uint64_t word, next_index;
    unsigned filled, parameter;
} cg_rice_writer_;

static void cg_rice_writer_open_(cg_rice_writer_ *w, uint8_t *out, unsigned b) {
    w->start = w->next_byte = out;
    w->word = w->next_index = 0;
    w->filled = 0;
    w->parameter = b;
}
CG_INLINE_ void cg_rice_writer_flush_(cg_rice_writer_ *w) {
    if (w->filled >= 32) {
        cg_put32_(w->next_byte, (uint32_t)w->word);
        w->next_byte += 4;
        w->word >>= 32;
        w->filled -= 32;
    }
}
CG_INLINE_ void cg_rice_writer_put_(cg_rice_writer_ *w, uint64_t index) { /* ascending */
    const uint64_t skipped = index - w->next_index, low = skipped & (((uint64_t)1 << w->parameter) - 1);
    uint64_t q = skipped >> w->parameter;
    w->next_index = index + 1;
    for (; q >= 32; q -= 32) {
        w->filled += 32;
        cg_rice_writer_flush_(w);
    }
    w->filled += (unsigned)q;
    cg_rice_writer_flush_(w);
    if (CG_LIKELY_(w->parameter < 32)) {
        w->word |= (low << 1 | 1) << w->filled;
        w->filled += w->parameter + 1;
    } else {
        w->word |= ((low & 0x7fffffffu) << 1 | 1) << w->filled;
        w->filled += 32;
        cg_rice_writer_flush_(w);
        w->word |= low >> 31 << w->filled;
        w->filled += w->parameter - 31;
    }
    cg_rice_writer_flush_(w);
}
static size_t cg_rice_writer_close_(cg_rice_writer_ *w) { /* bytes */
    if (w->filled) {
        cg_put32_(w->next_byte, (uint32_t)w->word);
        w->next_byte += 4;
    }
    return (size_t)(w->next_byte - w->start);
}

typedef struct cg_rice_reader_ {
    const uint8_t *bytes;
    size_t total_bits, bit_pos;
    uint64_t next_index;
    unsigned parameter;
} cg_rice_reader_;

static void cg_rice_reader_open_(cg_rice_reader_ *r, const uint8_t *in, size_t bytes, unsigned b) {
    r->bytes = in;
    r->total_bits = bytes > SIZE_MAX / 8 ? SIZE_MAX / 8 * 8 : 8 * bytes;
    r->bit_pos = 0;
    r->next_index = 0;
    r->parameter = b < CG_RICE_MAX_PARAMETER_ ? b : CG_RICE_MAX_PARAMETER_;
}
/* Up to `count` more indices, fewer only where the bits run out. What cannot be an index comes out as UINT64_MAX. */
static size_t cg_rice_reader_get_(cg_rice_reader_ *r, uint64_t *index, size_t count) {
    const unsigned b = r->parameter;
    const uint64_t mask = ((uint64_t)1 << b) - 1;
    uint64_t next = r->next_index;
    size_t at = r->bit_pos, done = 0;
    while (done < count && at < r->total_bits) {
        uint64_t w = cg_bits_peek_(r->bytes, r->total_bits, at), q = 0;
        unsigned left = (unsigned)cg_min_(57, r->total_bits - at), z;
        const size_t before = done;
        while (done < count && w) {
            unsigned need = (z = cg_ctz_(w)) + 1 + b;
            if (need > left) break;
            next = cg_add_sat_(next, (uint64_t)z << b | (w >> 1 >> z & mask));
            index[done++] = next;
            next += next != UINT64_MAX;
            w = w >> 1 >> (need - 1);
            left -= need;
            at += need;
        }
        if (done > before) continue;
        while (!(w & (((uint64_t)1 << 57) - 1))) { /* a gap that no window holds */
            if (r->total_bits - at <= 57) goto out;
            q += 57;
            at += 57;
            w = cg_bits_peek_(r->bytes, r->total_bits, at);
        }
        z = cg_ctz_(w);
        q += z;
        if (r->total_bits - at < (size_t)z + 1 + b) goto out;
        at += z + 1;
        next = cg_add_sat_(
            next, cg_add_sat_(cg_mul_sat_(q, mask + 1), cg_bits_peek_(r->bytes, r->total_bits, at) & mask));
        index[done++] = next;
        next += next != UINT64_MAX;
        at += b;
    }
out:
    r->next_index = next;
    r->bit_pos = at;
    return done;
}

/* Has the last index been the last, and is nothing but zeros after it? */
static int cg_rice_reader_at_end_(const cg_rice_reader_ *r) {
    if (r->bit_pos > r->total_bits || r->total_bits - r->bit_pos >= 32) return 0;
    for (size_t i = r->bit_pos; i < r->total_bits; i++)
        if (r->bytes[i / 8] >> i % 8 & 1) return 0;
    return 1;
}

/* src/core/lowrank.h */
/* ---- >>linear: factors of a matrix ---- */

/* ---- vectors of f64 ---- */

static double cg_dot_(const double *x, const double *y, size_t n) {
    double s[4] = { 0.0, 0.0, 0.0, 0.0 };
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (size_t l = 0; l < 4; l++) s[l] += cg_times64_(x[i + l], y[i + l]);
    for (; i < n; i++) s[i & 3] += cg_times64_(x[i], y[i]);
    return (s[0] + s[2]) + (s[1] + s[3]);
}
static void cg_axpy_(double a, const double *x, double *y, size_t n) {
    for (size_t i = 0; i < n; i++) y[i] += cg_times64_(a, x[i]);
}
static void cg_zero64_(double *x, size_t n) {
    for (size_t i = 0; i < n; i++) x[i] = 0.0;
}

/* A matrix is walked in strips of up to CG_STRIP_COLS_ columns, those in blocks of CG_TILE_ROWS_ rows, those in runs of
   columns. While one block is worked on the next is fetched, a share with each run: ahead, as many values as the
   run has, one after the other. */
#define CG_STRIP_COLS_ (CG_TILE_ROWS_ * CG_TILE_COLS_)
static const float *cg_matrix_prefetch_addr_(
    const float *m, size_t rows, size_t cols, size_t strip, size_t i, size_t j) {
    const size_t width = cg_min_(CG_STRIP_COLS_, cols - strip);
    if (i + 2 * CG_TILE_ROWS_ > rows || (width < cols && width < CG_STRIP_COLS_)) return NULL;
    return width == cols ? cg_at_(m, (i + CG_TILE_ROWS_) * cols + CG_TILE_ROWS_ * j)
                         : cg_at_(m, (i + CG_TILE_ROWS_ + (j - strip) / CG_TILE_COLS_) * cols + strip);
}
/* p[rank][rows] = M*q[rank][cols], transposed */
static void cg_matrix_times_(
    const cg_kernels_ *k, const float *m, size_t rows, size_t cols, const double *q, unsigned rank, double *p) {
    cg_zero64_(p, rank * rows);
    for (size_t strip = 0; strip < cols; strip += CG_STRIP_COLS_)
        for (size_t i = 0; i < rows; i += CG_TILE_ROWS_)
            for (size_t j = strip; j < cols && j < strip + CG_STRIP_COLS_; j += CG_TILE_COLS_)
                k->project(cg_at_(m, i * cols + j), cols, cg_min_(CG_TILE_ROWS_, rows - i),
                    cg_min_(CG_TILE_COLS_, cols - j), q + j, cols, rank, p + i, rows,
                    cg_matrix_prefetch_addr_(m, rows, cols, strip, i, j));
}

/* ---- lowrank: one step of the power method from a random start ---- */

/* Columns to an orthonormal set, each made orthogonal twice; one that depends on those before it becomes 0. 0: not
   finite. */
static int cg_gram_schmidt_(double *p, size_t rows, unsigned rank, double *norm) {
    for (unsigned a = 0; a < rank; a++) {
        double *x = p + a * rows, before = cg_dot_(x, x, rows), after;
        if (!cg_is_finite64_(before)) return 0;
        *norm = before > *norm ? before : *norm;
        for (int twice = 0; twice < 2; twice++)
            for (unsigned b = 0; b < a; b++) cg_axpy_(-cg_dot_(p + b * rows, x, rows), p + b * rows, x, rows);
        after = cg_dot_(x, x, rows);
        after = after > cg_times64_(before, 1e-18) ? 1.0 / cg_sqrt_(after) : 0.0;
        for (size_t i = 0; i < rows; i++) x[i] *= after;
    }
    return 1;
}
static unsigned cg_matrix_r_clamp_(size_t rows, size_t cols, unsigned rank) {
    return (unsigned)cg_min_(rank, cg_min_(rows, cols));
}
static uint64_t cg_lowrank_work_bytes_(size_t rows, size_t cols, unsigned rank) {
    return cg_mul_sat_(cg_mul_sat_(8, cg_matrix_r_clamp_(rows, cols, rank)), cg_add_sat_(rows, cols));
}
/* The start is uniform over odd multiples of 2^-16: of signs alone, two columns are often the same where cols is
   small. */
static void cg_lowrank_init_q_(uint64_t key, size_t cols, unsigned rank, double *q) {
    cg_key_ now = { 0, 0 };
    for (unsigned a = 0; a < rank; a += 2)
        for (size_t j = 0; j < cols; j++) {
            uint64_t at = (uint64_t)(a / 2) * cols + j;
            uint32_t h;
            if (j == 0 || at % CG_BLOCK_ == 0) now = cg_block_key_(key, at / CG_BLOCK_);
            h = cg_hash32_(now, (uint32_t)(at % CG_BLOCK_));
            q[a * cols + j] = ((double)(h & 0xffff) - 32767.5) * (1.0 / 32768);
            if (a + 1 < rank) q[(a + 1) * cols + j] = ((double)(h >> 16) - 32767.5) * (1.0 / 32768);
        }
}
/* p[rows][rank] from w[r][rows], times a power of two; what is beyond r is 0. */
static void cg_lowrank_store_p_(const double *w, size_t rows, unsigned r, double by, float *p, unsigned rank) {
    for (size_t i = 0; i < rows; i++)
        for (unsigned a = 0; a < rank; a++)
            cg_store_(p, i * rank + a, a < r ? (float)((double)(float)w[a * rows + i] * by) : 0.0f);
}
/* q = w^T M with p*by for w; returns the largest magnitude, Inf or NaN if some sum overflowed. */
static double cg_lowrank_compute_q_(const cg_kernels_ *k, const float *m, size_t rows, size_t cols, const float *p,
    unsigned rank, unsigned r, double *q) {
    double top = 0.0;
    cg_zero64_(q, r * cols);
    for (size_t strip = 0; strip < cols; strip += CG_STRIP_COLS_)
        for (size_t i = 0; i < rows; i += CG_TILE_ROWS_)
            for (size_t j = strip; j < cols && j < strip + CG_STRIP_COLS_; j += CG_TILE_COLS_)
                k->project_t(cg_at_(m, i * cols + j), cols, cg_min_(CG_TILE_ROWS_, rows - i),
                    cg_min_(CG_TILE_COLS_, cols - j), cg_at_(p, i * rank), rank, r, q + j, cols,
                    cg_matrix_prefetch_addr_(m, rows, cols, strip, i, j));
    for (size_t i = 0; i < r * cols; i++) {
        double v = cg_as_double_(cg_as_bits64_(q[i]) & (CG_TOO_LARGE_ >> 1));
        if (!cg_is_finite64_(v)) return v;
        top = v > top ? v : top;
    }
    return top;
}
static cg_status cg_lowrank_encode_(const cg_kernels_ *kernels, uint64_t key, const float *m, size_t rows, size_t cols,
    unsigned rank, float *p, float *q, void *work) {
    const cg_kernels_ *k = kernels;
    const unsigned r = cg_matrix_r_clamp_(rows, cols, rank);
    double *pw = (double *)work, *qw = pw + r * rows, norm = 0.0, by = 1.0, up = 1.0, top;
    cg_lowrank_init_q_(key, cols, r, qw);
    cg_matrix_times_(k, m, rows, cols, qw, r, pw);
    if (!cg_gram_schmidt_(pw, rows, r, &norm)) return CG_E_NONFINITE;
    if (norm < 1e-24) by = CG_POW2_64_; /* products of p and tiny values would be denormal */
    cg_lowrank_store_p_(pw, rows, r, by, p, rank);
    top = cg_lowrank_compute_q_(k, m, rows, cols, p, rank, r, qw);
    if (!cg_is_finite64_(top)) {
        by = 1.0 / CG_POW2_64_;
        cg_lowrank_store_p_(pw, rows, r, by, p, rank);
        top = cg_lowrank_compute_q_(k, m, rows, cols, p, rank, r, qw);
    }
    by = 1.0 / by;
    /* q may be larger than all that it is made of */
    if (top * by > (double)CG_FLT_MAX_) {
        up = CG_POW2_64_;
        by *= 1.0 / CG_POW2_64_;
    }
    cg_lowrank_store_p_(pw, rows, r, up, p, rank);
    for (size_t i = 0; i < r * cols; i++) cg_store_(q, i, (float)(qw[i] * by));
    for (size_t i = r * cols; i < rank * cols; i++) cg_store_(q, i, 0.0f);
    return CG_OK;
}

/* src/core/atomo.h */
/* ---- atomo: singular vectors, drawn with probabilities that keep the mean ---- */

/* a rotation by it keeps lengths, also where squares would underflow */
static double cg_hypot_(double a, double b) {
    a = a < 0.0 ? -a : a;
    b = b < 0.0 ? -b : b;
    if (a < b) {
        double c = a;
        a = b;
        b = c;
    }
    if (b == 0.0) return a;
    b /= a;
    return a * cg_sqrt_(1.0 + cg_times64_(b, b));
}
/* g = Q*T*Q^T by reflections: the diagonals of T to d and e, Q^T to z. g is overwritten, y is room for k values. */
static void cg_tridiagonal_(double *g, size_t k, double *z, double *d, double *e, double *y) {
    for (size_t t = 0; t < k; t++) {
        double *v = g + t * k + t + 1, rest, length, dot;
        const size_t n = k - t - 1;
        d[t] = g[t * k + t];
        e[t] = n ? v[0] : 0.0;
        rest = n > 1 ? cg_dot_(v + 1, v + 1, n - 1) : 0.0;
        if (rest < 1e-200) {
            cg_zero64_(v, n);
            continue;
        } /* g is about 1 */
        length = cg_sqrt_(cg_times64_(v[0], v[0]) + rest);
        e[t] = v[0] > 0.0 ? -length : length;
        v[0] -= e[t];
        length = 1.0 / cg_sqrt_(cg_times64_(v[0], v[0]) + rest);
        for (size_t i = 0; i < n; i++) v[i] *= length;
        cg_zero64_(y, n);
        for (size_t i = 0; i < n; i++) cg_axpy_(2.0 * v[i], v + (i + 1) * k, y, n);
        dot = cg_dot_(v, y, n);
        cg_axpy_(-dot, v, y, n);
        for (size_t i = 0; i < n; i++) {
            cg_axpy_(-v[i], y, v + (i + 1) * k, n);
            cg_axpy_(-y[i], v, v + (i + 1) * k, n);
        }
    }
    cg_zero64_(z, k * k);
    for (size_t i = 0; i < k; i++) z[i * k + i] = 1.0;
    for (size_t t = k; t-- > 0;) {
        const double *v = g + t * k + t + 1;
        double *x = z + (t + 1) * k + t + 1;
        const size_t n = k - t - 1;
        cg_zero64_(y, n);
        for (size_t i = 0; i < n; i++) cg_axpy_(2.0 * v[i], x + i * k, y, n);
        for (size_t i = 0; i < n; i++) cg_axpy_(-v[i], y, x + i * k, n);
    }
    for (size_t i = 0; i < k; i++)
        for (size_t j = 0; j < i; j++) {
            double c = z[i * k + j];
            z[i * k + j] = z[j * k + i];
            z[j * k + i] = c;
        }
}
/* Implicit QL on (d, e); the rows of z become eigenvectors. Whatever it reaches, they stay orthonormal. */
static void cg_tridiagonal_ql_(double *d, double *e, size_t k, double *z) {
    for (size_t l = 0; l < k; l++)
        for (int tries = 0; tries < 64; tries++) {
            size_t m = l, i;
            double shift, s = 1.0, c = 1.0, p = 0.0, r;
            for (; m + 1 < k; m++) {
                double scale = (d[m] < 0.0 ? -d[m] : d[m]) + (d[m + 1] < 0.0 ? -d[m + 1] : d[m + 1]),
                       off = e[m] < 0.0 ? -e[m] : e[m];
                if (off <= scale * 1.1102230246251565e-16 || off < 1e-60) break;
            }
            if (m == l) break;
            shift = (d[l + 1] - d[l]) / (2.0 * e[l]);
            r = cg_hypot_(shift, 1.0);
            shift = d[m] - d[l] + e[l] / (shift + (shift < 0.0 ? -r : r));
            for (i = m; i-- > l;) {
                double f = s * e[i], b = c * e[i], *x = z + i * k, *y = x + k;
                r = cg_hypot_(f, shift);
                e[i + 1] = r;
                if (r == 0.0) {
                    d[i + 1] -= p;
                    e[m] = 0.0;
                    break;
                }
                s = f / r;
                c = shift / r;
                shift = d[i + 1] - p;
                r = cg_times64_(d[i] - shift, s) + 2.0 * cg_times64_(c, b);
                p = cg_times64_(s, r);
                d[i + 1] = shift + p;
                shift = cg_times64_(c, r) - b;
                for (size_t j = 0; j < k; j++) {
                    double u = x[j], v = y[j];
                    y[j] = cg_times64_(s, u) + cg_times64_(c, v);
                    x[j] = cg_times64_(c, u) - cg_times64_(s, v);
                }
            }
            if (i + 1 > l) continue; /* stopped at r == 0 */
            d[l] -= p;
            e[l] = shift;
            e[m] = 0.0;
        }
}

static unsigned cg_atomo_r_(size_t rows, size_t cols, unsigned budget) {
    return cg_matrix_r_clamp_(rows, cols, budget);
}
static uint64_t cg_atomo_work_bytes_(size_t rows, size_t cols) {
    const uint64_t k = cg_min_(rows, cols), n = rows < cols ? cols : rows;
    uint64_t doubles = cg_add_sat_(cg_mul_sat_(2, cg_mul_sat_(k, k)), cg_mul_sat_(5, k));
    doubles = cg_add_sat_(doubles, cg_mul_sat_(CG_PANEL_, cg_add_sat_(n, k < CG_TILE_COLS_ ? CG_TILE_COLS_ : k)));
    return cg_add_sat_(cg_mul_sat_(8, doubles), cg_mul_sat_(4, cg_add_sat_(k, cg_mul_sat_(rows, cols))));
}
/* w[many][n] = b[n][k] times rows order[0..many) of z, rounded to f32 in the panel */
static void cg_atomo_panel_(const cg_kernels_ *kernels, const float *b, size_t n, size_t k, const double *z,
    const uint32_t *order, unsigned many, double *panel, double *w) {
    for (unsigned a = 0; a < many; a++)
        for (size_t j = 0; j < k; j++) panel[a * k + j] = (double)(float)z[order[a] * k + j];
    cg_matrix_times_(kernels, b, n, k, panel, many, w);
}
static cg_status cg_atomo_encode_(const cg_kernels_ *kernels, uint64_t key, const float *m, size_t rows, size_t cols,
    unsigned budget, float *p, float *q, unsigned *atoms, void *work) {
    const cg_kernels_ *ks = kernels;
    const int tall = cols <= rows;
    const size_t k = cg_min_(rows, cols), n = tall ? rows : cols;
    const unsigned rank = cg_atomo_r_(rows, cols, budget);
    double *g = (double *)work, *z = g + k * k, *d = z + k * k, *e = d + k, *sigma = e + k, *tail = sigma + k,
           *chance = tail + k;
    double *panel = chance + k, *w = panel + CG_PANEL_ * (k < CG_TILE_COLS_ ? (size_t)CG_TILE_COLS_ : k), top = 0.0, u,
           total = 0.0, run = 0.0, left, up = 1.0;
    uint32_t *order = (uint32_t *)(void *)(w + CG_PANEL_ * n);
    float *turned = (float *)(void *)(order + k);
    const float *a = tall ? turned : m, *b = tall ? m : turned; /* k x n, and its transpose */
    size_t count = 0, sure = 0;
    unsigned taken = 0;
    *atoms = 0;
    for (size_t i = 0; i < rank * rows; i++) cg_store_(p, i, 0.0f);
    for (size_t i = 0; i < rank * cols; i++) cg_store_(q, i, 0.0f);
    if (!k) return CG_OK;
    for (size_t i = 0; i < rows; i += 16) /* by squares, for the caches */
        for (size_t j = 0; j < cols; j += 16)
            for (size_t x = i; x < rows && x < i + 16; x++)
                for (size_t y = j; y < cols && y < j + 16; y++) turned[y * rows + x] = cg_load_(m, x * cols + y);
    /* the Gram matrix; its diagonal tells what is not finite */
    cg_zero64_(g, k * k);
    for (size_t i = 0; i < k; i += CG_PANEL_) {
        const unsigned many = (unsigned)cg_min_(CG_PANEL_, k - i);
        for (size_t j = 0; j < n; j += CG_TILE_COLS_) {
            const size_t run_length = cg_min_(CG_TILE_COLS_, n - j);
            for (unsigned x = 0; x < many; x++)
                for (size_t y = 0; y < run_length; y++)
                    panel[x * CG_TILE_COLS_ + y] = (double)cg_load_(a, (i + x) * n + j + y);
            ks->project(cg_at_(a, i * n + j), n, k - i, run_length, panel, CG_TILE_COLS_, many, g + i * k + i, k, NULL);
        }
    }
    for (size_t i = 0; i < k; i++) {
        if (!cg_is_finite64_(g[i * k + i])) return CG_E_NONFINITE;
        top = g[i * k + i] > top ? g[i * k + i] : top;
        for (size_t j = 0; j < i; j++) g[i * k + j] = g[j * k + i];
    }
    if (top == 0.0) return CG_OK;
    top = cg_as_double_((2046 - (cg_as_bits64_(top) >> 52)) << 52); /* brings the largest near 1 */
    for (size_t i = 0; i < k * k; i++) g[i] *= top;
    cg_tridiagonal_(g, k, z, d, e, tail);
    cg_tridiagonal_ql_(d, e, k, z);
    /* the singular values from the vectors as they will be sent, then sorted */
    for (size_t i = 0; i < k; i++) order[i] = (uint32_t)i;
    for (size_t i = 0; i < k; i += CG_PANEL_) {
        const unsigned many = (unsigned)cg_min_(CG_PANEL_, k - i);
        cg_atomo_panel_(ks, b, n, k, z, order + i, many, panel, w);
        for (unsigned x = 0; x < many; x++) sigma[i + x] = cg_sqrt_(cg_dot_(w + x * n, w + x * n, n));
    }
    for (size_t i = 1; i < k; i++) {
        const double s = sigma[i];
        const uint32_t o = order[i];
        size_t j = i;
        for (; j > 0 && sigma[j - 1] < s; j--) {
            sigma[j] = sigma[j - 1];
            order[j] = order[j - 1];
        }
        sigma[j] = s;
        order[j] = o;
    }
    /* less is what rounding makes of 0 */
    while (count < k && sigma[count] > sigma[0] * 1.1920928955078125e-7) count++;
    for (size_t i = count; i-- > 0;) tail[i] = sigma[i] + (i + 1 < count ? tail[i + 1] : 0.0);
    /* those that are sent for sure, then one uniform number for the others: each unit of summed probability sends
       one */
    left = (double)rank;
    for (;
         sure < count && left > 0.0 && (left >= (double)(count - sure) || cg_times64_(left, sigma[sure]) >= tail[sure]);
         left -= 1.0)
        chance[sure++] = 1.0;
    taken = (unsigned)sure;
    for (size_t i = sure; i < count; i++) total += sigma[i];
    u = (double)(cg_mix64_(key + CG_GOLDEN_) >> 24) * (1.0 / 1099511627776.0);
    for (size_t i = sure; i < count && taken < rank; i++) {
        const double before = u + cg_times64_(left, run / total);
        run += sigma[i];
        if ((uint64_t)(u + cg_times64_(left, run / total)) > (uint64_t)before) {
            const double c = left * (sigma[i] / total);
            sigma[taken] = sigma[i];
            order[taken] = order[i];
            chance[taken++] = c < 1.0 ? c : 1.0;
        }
    }
    for (unsigned i = 0; i < taken; i++)
        if (sigma[i] / chance[i] > (double)CG_FLT_MAX_) up = CG_POW2_64_;
    for (unsigned i = 0; i < taken; i += CG_PANEL_) {
        const unsigned many = (unsigned)cg_min_(CG_PANEL_, taken - i);
        cg_atomo_panel_(ks, b, n, k, z, order + i, many, panel, w);
        for (unsigned x = 0; x < many; x++) {
            const double *v = tall ? w + x * n : panel + x * k, *h = tall ? panel + x * k : w + x * n;
            const double by = 1.0 / up;
            for (size_t y = 0; y < rows; y++)
                cg_store_(p, y * rank + i + x, (float)(tall ? v[y] / chance[i + x] * by : v[y] * up));
            for (size_t y = 0; y < cols; y++)
                cg_store_(q, (i + x) * cols + y, (float)(tall ? h[y] * up : h[y] / chance[i + x] * by));
        }
    }
    *atoms = taken;
    return CG_OK;
}

static uint64_t cg_matrix_work_bytes_(const cg_op *op) {
    const size_t rows = op->transform.size, cols = (size_t)op->transform.value;
    return op->transform.id == CG_TRANSFORM_LOWRANK ? cg_lowrank_work_bytes_(rows, cols, op->transform.arg)
                                                    : cg_atomo_work_bytes_(rows, cols);
}

/* src/core/stages.h */
/* ---- >>stages: one row names a stage, its parameters and their ranges; parse, print and every check read it */

enum {
    CG_SLOT_SAMPLE_,
    CG_SLOT_TRANSFORM_,
    CG_SLOT_SELECT_,
    CG_SLOT_QUANTIZE_,
    CG_SLOT_CODE_,
    CG_SLOT_SPARE_,
    CG_SLOT_COUNT_
};

typedef struct cg_stage_row_ {
    uint8_t slot, id;
    uint16_t arg_lo, arg_hi;                 /* each range: none if its end is 0 */
    uint32_t size_lo, size_hi, size_default; /* may be left out if the default is legal */
    float value_lo, value_hi;
    uint8_t value_lo_exclusive;       /* 1: value_lo itself is too small */
    uint8_t allowed_flags;            /* which CG_FLAG_* may be set */
    const char *name, *flag_names[2]; /* as text: name:arg:size:value:flag */
} cg_stage_row_;

#define CG_ANY_SIZE_ 0xffffffffu
#define CG_RANGE_RATIO_ 0.0f, 1.0f, 1
#define CG_RANGE_NONNEGATIVE_ 0.0f, CG_FLT_MAX_, 0
#define CG_RANGE_POSITIVE_ 0.0f, CG_FLT_MAX_, 1
#define CG_RANGE_NONE_ 0.0f, 0.0f, 0
static const cg_stage_row_ cg_stage_rows_[] = {
    { CG_SLOT_SAMPLE_, CG_SAMPLE_RANDK, 0, 0, 0, 0, 0, CG_RANGE_RATIO_, CG_FLAG_UNSCALED, "randk", { "unscaled", "" } },
    { CG_SLOT_SAMPLE_, CG_SAMPLE_PERMK, 0, 0, 1, CG_ANY_SIZE_, 0, CG_RANGE_NONE_, CG_FLAG_UNSCALED, "permk",
        { "unscaled", "" } },
    { CG_SLOT_TRANSFORM_, CG_TRANSFORM_ROTATE, 1, 2, 0, 0, 0, CG_RANGE_NONE_, 0, "rotate", { "", "" } },
    { CG_SLOT_TRANSFORM_, CG_TRANSFORM_DCT, 0, 0, 0, 0, 0, CG_RANGE_NONE_, 0, "dct", { "", "" } },
    { CG_SLOT_TRANSFORM_, CG_TRANSFORM_LOWRANK, 1, 64, 1, CG_ANY_SIZE_, 0, 1.0f, 16777216.0f, 0, 0, "lowrank",
        { "", "" } },
    { CG_SLOT_TRANSFORM_, CG_TRANSFORM_ATOMO, 1, 64, 1, CG_ANY_SIZE_, 0, 1.0f, 16777216.0f, 0, 0, "atomo", { "", "" } },
    { CG_SLOT_SELECT_, CG_SELECT_TOPK, 0, 0, 0, 0, 0, CG_RANGE_RATIO_, 0, "topk", { "", "" } },
    { CG_SLOT_SELECT_, CG_SELECT_THRESHOLD, 0, 0, 0, 0, 0, CG_RANGE_NONNEGATIVE_, 0, "threshold", { "", "" } },
    { CG_SLOT_SELECT_, CG_SELECT_DGC, 0, 0, 0, 0, 0, CG_RANGE_RATIO_, 0, "dgc", { "", "" } },
    { CG_SLOT_SELECT_, CG_SELECT_MSTOPK, 0, 0, 0, 0, 0, CG_RANGE_RATIO_, 0, "mstopk", { "", "" } },
    { CG_SLOT_SELECT_, CG_SELECT_SIDCO, 0, 0, 0, 0, 0, CG_RANGE_RATIO_, 0, "sidco", { "", "" } },
    { CG_SLOT_SELECT_, CG_SELECT_WANGNI, 0, 0, 0, 0, 0, CG_RANGE_RATIO_, 0, "wangni", { "", "" } },
    { CG_SLOT_SELECT_, CG_SELECT_WANGNIVAR, 0, 0, 0, 0, 0, CG_RANGE_POSITIVE_, 0, "wangnivar", { "", "" } },
    { CG_SLOT_SELECT_, CG_SELECT_BINS, 0, 0, 1, CG_ANY_SIZE_, 0, CG_RANGE_NONE_, 0, "bins", { "", "" } },
    { CG_SLOT_SELECT_, CG_SELECT_SIDES, 0, 0, 0, 0, 0, CG_RANGE_RATIO_, 0, "sides", { "", "" } },
    { CG_SLOT_SELECT_, CG_SELECT_SIDE, 0, 0, 0, 0, 0, CG_RANGE_RATIO_, 0, "side", { "", "" } },
    { CG_SLOT_SELECT_, CG_SELECT_CHUNKED, 0, 0, 1, CG_ANY_SIZE_, 0, CG_RANGE_RATIO_, 0, "chunked", { "", "" } },
    { CG_SLOT_SELECT_, CG_SELECT_BLOCKS, 0, 0, 1, CG_ANY_SIZE_, 0, CG_RANGE_NONE_, 0, "blocks", { "", "" } },
    { CG_SLOT_SELECT_, CG_SELECT_GIVEN, 0, 0, 0, CG_ANY_SIZE_, 0, CG_RANGE_NONE_, 0, "given", { "", "" } },
    { CG_SLOT_SELECT_, CG_SELECT_VARIANCE, 0, 0, 0, 0, 0, CG_RANGE_NONNEGATIVE_, 0, "variance", { "", "" } },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_F16, 0, 0, 0, 0, 0, CG_RANGE_NONE_, 0, "f16", { "", "" } },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_BF16, 0, 0, 0, 0, 0, CG_RANGE_NONE_, 0, "bf16", { "", "" } },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_SIGN, 0, 0, 0, 0, 0, CG_RANGE_NONE_, 0, "sign", { "", "" } },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_EFSIGN, 0, 0, 0, 0, 0, CG_RANGE_NONE_, 0, "efsign", { "", "" } },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_ABSMAX, 1, 8, 1, CG_ANY_SIZE_, 0, CG_RANGE_NONE_, CG_FLAG_NEAREST, "absmax",
        { "nearest", "" } },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_MINMAX, 1, 8, 1, CG_ANY_SIZE_, 0, CG_RANGE_NONE_, CG_FLAG_NEAREST | CG_FLAG_NORM,
        "minmax", { "nearest", "norm" } },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_TERNGRAD, 0, 0, 0, 0, 0, CG_RANGE_NONE_, CG_FLAG_NEAREST | CG_FLAG_CLIP,
        "terngrad", { "nearest", "clip" } },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_LEVELS, 1, 127, 0, CG_ANY_SIZE_, 0, CG_RANGE_NONE_, CG_FLAG_NEAREST | CG_FLAG_MAX,
        "levels", { "nearest", "max" } },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_FLEXPOINT, 2, 8, 1, CG_ANY_SIZE_, 0, CG_RANGE_NONE_, 0, "flexpoint", { "", "" } },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_FLEX16, 0, 0, 1, CG_ANY_SIZE_, 0, CG_RANGE_NONE_, 0, "flex16", { "", "" } },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_TRITS, 0, 0, 0, 0, 0, 1.0f, 1.99999988f, 0, 0, "trits", { "", "" } },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_STROM, 0, 0, 0, 0, 0, CG_RANGE_POSITIVE_, 0, "strom", { "", "" } },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_ONEBIT, 0, 0, 0, CG_ANY_SIZE_, 0, CG_RANGE_NONE_, 0, "onebit", { "", "" } },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_MEAN, 0, 0, 0, 0, 0, CG_RANGE_NONE_, 0, "mean", { "", "" } },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_NATURAL, 0, 0, 0, 0, 0, CG_RANGE_NONE_, CG_FLAG_NEAREST, "natural",
        { "nearest", "" } },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_DITHER, 2, 8, 0, CG_ANY_SIZE_, 0, CG_RANGE_NONE_, CG_FLAG_NEAREST | CG_FLAG_MAX,
        "dither", { "nearest", "max" } },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_DYNAMIC8, 0, 0, 0, CG_ANY_SIZE_, 0, CG_RANGE_NONE_, 0, "dynamic8", { "", "" } },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_E4M3, 0, 0, 1, CG_ANY_SIZE_, 512, CG_RANGE_NONE_, 0, "e4m3", { "", "" } },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_E5M2, 0, 0, 1, CG_ANY_SIZE_, 512, CG_RANGE_NONE_, 0, "e5m2", { "", "" } },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_MXFP4, 0, 0, 0, 0, 0, CG_RANGE_NONE_, 0, "mxfp4", { "", "" } },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_MXE4M3, 0, 0, 0, 0, 0, CG_RANGE_NONE_, 0, "mxe4m3", { "", "" } },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_MXE5M2, 0, 0, 0, 0, 0, CG_RANGE_NONE_, 0, "mxe5m2", { "", "" } },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_NF4, 0, 0, 1, CG_ANY_SIZE_, 64, CG_RANGE_NONE_, 0, "nf4", { "", "" } },
    { CG_SLOT_QUANTIZE_, CG_QUANTIZE_LLOYD, 0, 0, 0, 0, 0, 1.0f, 4.0f, 0, 0, "lloyd", { "", "" } },
};
#define CG_STAGE_ROWS_ (sizeof cg_stage_rows_ / sizeof cg_stage_rows_[0])

/* The code slot holds two codes: its id that of the indices, its arg that of the values. */
static const char *const cg_index_code_names_[] = { "", "eliasfano", "bitmap", "golomb" };
static const char *const cg_value_code_names_[] = { "", "gamma", "delta", "omega", "huffman", "quartic" };
enum {
    CG_INDEX_CODE_COUNT_ = sizeof cg_index_code_names_ / sizeof cg_index_code_names_[0],
    CG_VALUE_CODE_COUNT_ = sizeof cg_value_code_names_ / sizeof cg_value_code_names_[0]
};

static const cg_stage *cg_op_stage_const_(const cg_op *op, unsigned slot) {
    const cg_stage *const slots[CG_SLOT_COUNT_] = { &op->sample, &op->transform, &op->select, &op->quantize, &op->code,
        &op->spare };
    return slots[slot];
}
static cg_stage *cg_op_stage_(cg_op *op, unsigned slot) { return (cg_stage *)(uintptr_t)cg_op_stage_const_(op, slot); }
static const cg_stage_row_ *cg_stage_row_of_(unsigned slot, unsigned id) {
    for (size_t i = 0; i < CG_STAGE_ROWS_; i++)
        if (cg_stage_rows_[i].slot == slot && cg_stage_rows_[i].id == id) return &cg_stage_rows_[i];
    return NULL;
}
static int cg_is_user_codec_(const cg_stage *s) { return s->id >= CG_QUANTIZE_USER; }
static int cg_stage_is_empty_(const cg_stage *s) {
    return !s->id && !s->flags && !s->arg && !s->size && !cg_as_bits_(s->value);
}
static int cg_is_matrix_op_(const cg_op *op) {
    return op->transform.id == CG_TRANSFORM_LOWRANK || op->transform.id == CG_TRANSFORM_ATOMO;
}

/* Selections whose number of values is known beforehand: from the ratio, or cg_op.k. */
static int cg_has_fixed_k_(const cg_op *op) {
    return op->select.id == CG_SELECT_TOPK || op->select.id == CG_SELECT_MSTOPK;
}
static int cg_value_code_fits_(const cg_op *op);

/* CG_E_VERSION: a stage that this build does not know. CG_E_ARG: known, but parameters out of range. */
static cg_status cg_stage_check_(unsigned slot, const cg_stage *s) {
    const cg_stage_row_ *row;
    if (cg_stage_is_empty_(s)) return CG_OK;
    if (slot == CG_SLOT_CODE_) {
        if (s->id >= CG_INDEX_CODE_COUNT_ || s->arg >= CG_VALUE_CODE_COUNT_) return CG_E_VERSION;
        return s->flags || s->size || cg_as_bits_(s->value) ? CG_E_ARG : CG_OK;
    }
    if (s->id == 0) return CG_E_ARG;
    if (slot == CG_SLOT_QUANTIZE_ && cg_is_user_codec_(s))
        return s->flags || !cg_is_finite_(s->value) ? CG_E_ARG : CG_OK;
    row = cg_stage_row_of_(slot, s->id);
    if (!row || (s->flags & ~row->allowed_flags)) return CG_E_VERSION;
    if (row->arg_hi ? s->arg < row->arg_lo || s->arg > row->arg_hi : s->arg != 0) return CG_E_ARG;
    if (row->size_hi ? s->size < row->size_lo : s->size != 0) return CG_E_ARG;
    if (row->value_hi == 0.0f) return cg_as_bits_(s->value) ? CG_E_ARG : CG_OK;
    if (!(s->value >= row->value_lo && s->value <= row->value_hi) ||
        (row->value_lo_exclusive && s->value == row->value_lo))
        return CG_E_ARG;
    return CG_OK;
}
/* Which stages go together. */
static cg_status cg_op_check_(const cg_op *op) {
    for (unsigned slot = 0; slot < CG_SLOT_COUNT_; slot++) {
        cg_status s = cg_stage_check_(slot, cg_op_stage_const_(op, slot));
        if (s != CG_OK) return s;
    }
    if (op->reserved) return CG_E_ARG;
    if (op->k && !cg_has_fixed_k_(op) && op->sample.id != CG_SAMPLE_RANDK) return CG_E_ARG;
    /* a code for indices where there are none */
    if (op->code.id && (!op->select.id || op->select.id == CG_SELECT_GIVEN)) return CG_E_ARG;
    if (op->code.arg && !cg_value_code_fits_(op)) return CG_E_ARG;
    if (cg_is_matrix_op_(op)) {
        float cols = op->transform.value;
        if (op->sample.id || op->select.id || op->quantize.id || op->code.arg || cols != (float)(uint32_t)cols)
            return CG_E_ARG;
    }
    if (op->select.id == CG_SELECT_GIVEN && (op->sample.id || op->transform.id)) return CG_E_ARG;
    if ((op->select.id == CG_SELECT_BINS || op->select.id == CG_SELECT_VARIANCE) && (op->sample.id || op->transform.id))
        return CG_E_ARG;
    if (op->quantize.id == CG_QUANTIZE_LLOYD) { /* buckets are the rotation's blocks */
        float steps = op->quantize.value * 32.0f;
        if (op->transform.id != CG_TRANSFORM_ROTATE || op->select.id || steps != (float)(int)steps) return CG_E_ARG;
    }
    return CG_OK;
}

/* src/core/shape.h */
/* ---- >>shape: how many values every slot of an operator leaves ---- */

/* Of an operator on matrices. */
static unsigned cg_matrix_r_(const cg_op *op) {
    return cg_matrix_r_clamp_(op->transform.size, (size_t)op->transform.value, op->transform.arg);
}
static size_t cg_matrix_rows_(const cg_op *op) { return op->transform.size; }
static size_t cg_matrix_cols_(const cg_op *op) { return (size_t)op->transform.value; }

/* k = clamp(floor(ratio*n + 0.5), 1, n), or the count asked for */
static uint64_t cg_k_from_ratio_(float ratio, uint64_t asked, uint64_t n) {
    double want = (double)ratio * (double)n;
    uint64_t k;
    CG_NO_FMA_(want);
    want += 0.5;
    k = asked ? asked : want >= (double)n ? n : (uint64_t)want;
    return n == 0 ? 0 : k < 1 ? 1 : k > n ? n : k;
}
/* What the sample leaves; tag NULL: at most. */
static uint64_t cg_sampled_n_(const cg_op *op, uint64_t n, const cg_tag *tag) {
    if (op->sample.id == CG_SAMPLE_PERMK) { /* whole groups of `size`, and perhaps a place in the last */
        uint64_t groups = n / op->sample.size, rest = n % op->sample.size;
        return groups +
            (rest && (!tag || cg_permk_index_(cg_shared_key_(tag), groups, op->sample.size, tag->rank) < rest));
    }
    if (!op->sample.id) return n;
    return cg_k_from_ratio_(op->sample.value, cg_has_fixed_k_(op) ? 0 : op->k, n);
}
static uint64_t cg_round_up_(uint64_t v, uint64_t to) { return cg_mul_sat_(v / to + (v % to != 0), to); }
/* What the transform makes of them. */
static uint64_t cg_transformed_n_(const cg_op *op, uint64_t drawn) {
    switch (op->transform.id) {
    case CG_TRANSFORM_ROTATE: return cg_round_up_(drawn, CG_ROTATE_BLOCK_);
    case CG_TRANSFORM_DCT: return cg_round_up_(drawn, CG_DCT_BLOCK_);
    case CG_TRANSFORM_LOWRANK:
    case CG_TRANSFORM_ATOMO:
        return cg_mul_sat_((uint64_t)op->transform.size + (uint64_t)op->transform.value, cg_matrix_r_(op));
    default: return drawn;
    }
}
static int cg_matrix_shape_fits_(const cg_op *op, uint64_t n) {
    return !cg_is_matrix_op_(op) || (uint64_t)op->transform.size * (uint64_t)op->transform.value == n;
}
/* At most so many are selected of `turned`. */
static uint64_t cg_max_selected_(const cg_op *op, uint64_t turned) {
    uint64_t chunk = op->select.size, k;
    switch (op->select.id) {
    case CG_SELECT_TOPK:
    case CG_SELECT_MSTOPK: return cg_k_from_ratio_(op->select.value, op->k, turned);
    case CG_SELECT_SIDE: return cg_k_from_ratio_(op->select.value, 0, turned);
    case CG_SELECT_DGC:
    case CG_SELECT_SIDCO:
        k = cg_k_from_ratio_(op->select.value, 0, turned);
        return k + k / 10 * 3 + k % 10 * 3 / 10 < turned ? k + k / 10 * 3 + k % 10 * 3 / 10 : turned;
    case CG_SELECT_CHUNKED:
        return turned / chunk * cg_k_from_ratio_(op->select.value, 0, chunk) +
            cg_k_from_ratio_(op->select.value, 0, turned % chunk);
    default: return turned;
    }
}
/* Whole blocks are selected by one index each. */
static uint64_t cg_values_per_index_(const cg_op *op) {
    return op->select.id == CG_SELECT_BLOCKS ? op->select.size : 1;
}
static uint64_t cg_index_count_(const cg_op *op, uint64_t values) {
    uint64_t u = cg_values_per_index_(op);
    return values / u + (values % u != 0);
}

/* All of it at once, at most: what any rank's sample may leave. Fields of a matrix are 0 for other operators. */
typedef struct cg_shape_ {
    uint64_t sampled_n, transformed_n, max_selected, values_per_index;
    int is_matrix;
    size_t rows, cols;
    unsigned r; /* columns of the left factor */
} cg_shape_;

CG_OFFERED_ cg_shape_ cg_shape_of_(const cg_op *op, uint64_t n) {
    cg_shape_ s;
    memset(&s, 0, sizeof s);
    s.sampled_n = cg_sampled_n_(op, n, NULL);
    s.transformed_n = cg_transformed_n_(op, s.sampled_n);
    s.max_selected = cg_max_selected_(op, s.transformed_n);
    s.values_per_index = cg_values_per_index_(op);
    s.is_matrix = cg_is_matrix_op_(op);
    if (s.is_matrix) {
        s.rows = cg_matrix_rows_(op);
        s.cols = cg_matrix_cols_(op);
        s.r = cg_matrix_r_(op);
    }
    return s;
}

/* src/core/presets.h */
/* ---- >>presets ---- */

static cg_op cg_op_one_stage_(unsigned slot, int id, int arg, uint32_t size, float value) {
    cg_op op = CG_ZERO;
    cg_stage *s = cg_op_stage_(&op, slot);
    s->id = (uint8_t)id;
    s->arg = (uint16_t)(arg < 0 || arg > 65535 ? 65535 : arg);
    s->size = size;
    s->value = value;
    return op;
}
static cg_op cg_op_invalid_(void) { /* the spare slot must be empty */
    cg_op op = CG_ZERO;
    op.spare.id = 255;
    return op;
}
static cg_op cg_op_quantize_(int id, int arg, uint32_t size, float value) {
    return cg_op_one_stage_(CG_SLOT_QUANTIZE_, id, arg, size, value);
}
static cg_op cg_op_select_(int id, uint32_t size, float value) {
    return cg_op_one_stage_(CG_SLOT_SELECT_, id, 0, size, value);
}

CG_API_ cg_op cg_dense(void) { return cg_op_quantize_(0, 0, 0, 0.0f); }
CG_API_ cg_op cg_f16(void) { return cg_op_quantize_(CG_QUANTIZE_F16, 0, 0, 0.0f); }
CG_API_ cg_op cg_bf16(void) { return cg_op_quantize_(CG_QUANTIZE_BF16, 0, 0, 0.0f); }
CG_API_ cg_op cg_absmax(int bits, uint32_t bucket) { return cg_op_quantize_(CG_QUANTIZE_ABSMAX, bits, bucket, 0.0f); }
CG_API_ cg_op cg_minmax(int bits, uint32_t bucket) { return cg_op_quantize_(CG_QUANTIZE_MINMAX, bits, bucket, 0.0f); }
CG_API_ cg_op cg_sign(void) { return cg_op_quantize_(CG_QUANTIZE_SIGN, 0, 0, 0.0f); }
CG_API_ cg_op cg_efsign(void) { return cg_op_quantize_(CG_QUANTIZE_EFSIGN, 0, 0, 0.0f); }
CG_API_ cg_op cg_onebit(uint32_t column) { return cg_op_quantize_(CG_QUANTIZE_ONEBIT, 0, column, 0.0f); }
CG_API_ cg_op cg_terngrad(void) { return cg_op_quantize_(CG_QUANTIZE_TERNGRAD, 0, 0, 0.0f); }
CG_API_ cg_op cg_levels(int levels, uint32_t bucket) {
    return cg_op_quantize_(CG_QUANTIZE_LEVELS, levels, bucket, 0.0f);
}
CG_API_ cg_op cg_qsgd(int levels) { return cg_coded(cg_levels(levels, 0), CG_CODE_OMEGA); }
CG_API_ cg_op cg_trits(float s) { return cg_op_quantize_(CG_QUANTIZE_TRITS, 0, 0, s); }
CG_API_ cg_op cg_threelc(float s) { return cg_coded(cg_trits(s), CG_CODE_QUARTIC); }
CG_API_ cg_op cg_strom(float tau) { return cg_op_quantize_(CG_QUANTIZE_STROM, 0, 0, tau); }
CG_API_ cg_op cg_flex16(uint32_t bucket) { return cg_op_quantize_(CG_QUANTIZE_FLEX16, 0, bucket, 0.0f); }
CG_API_ cg_op cg_flexpoint(int bits, uint32_t bucket) {
    return bits == 16 ? cg_flex16(bucket) : cg_op_quantize_(CG_QUANTIZE_FLEXPOINT, bits, bucket, 0.0f);
}
CG_API_ cg_op cg_natural(void) { return cg_op_quantize_(CG_QUANTIZE_NATURAL, 0, 0, 0.0f); }
CG_API_ cg_op cg_dither(int bits, uint32_t bucket) { return cg_op_quantize_(CG_QUANTIZE_DITHER, bits, bucket, 0.0f); }
CG_API_ cg_op cg_dynamic8(void) { return cg_op_quantize_(CG_QUANTIZE_DYNAMIC8, 0, 0, 0.0f); }
CG_API_ cg_op cg_e4m3(uint32_t bucket) { return cg_op_quantize_(CG_QUANTIZE_E4M3, 0, bucket, 0.0f); }
CG_API_ cg_op cg_e5m2(uint32_t bucket) { return cg_op_quantize_(CG_QUANTIZE_E5M2, 0, bucket, 0.0f); }
CG_API_ cg_op cg_fp8(void) { return cg_e4m3(512); }
CG_API_ cg_op cg_fp8_e5m2(void) { return cg_e5m2(512); }
CG_API_ cg_op cg_mxfp4(void) { return cg_op_quantize_(CG_QUANTIZE_MXFP4, 0, 0, 0.0f); }
CG_API_ cg_op cg_mxe4m3(void) { return cg_op_quantize_(CG_QUANTIZE_MXE4M3, 0, 0, 0.0f); }
CG_API_ cg_op cg_mxe5m2(void) { return cg_op_quantize_(CG_QUANTIZE_MXE5M2, 0, 0, 0.0f); }
CG_API_ cg_op cg_nf4(void) { return cg_op_quantize_(CG_QUANTIZE_NF4, 0, 64, 0.0f); }
CG_API_ cg_op cg_klevel(int bits, uint32_t bucket) {
    cg_op op = cg_coded(cg_minmax(bits, bucket), CG_CODE_HUFFMAN);
    op.quantize.flags = CG_FLAG_NORM;
    return op;
}

CG_API_ cg_op cg_topk(float ratio) { return cg_op_select_(CG_SELECT_TOPK, 0, ratio); }
CG_API_ cg_op cg_threshold(float magnitude) { return cg_op_select_(CG_SELECT_THRESHOLD, 0, magnitude); }
CG_API_ cg_op cg_dgc(float ratio) { return cg_op_select_(CG_SELECT_DGC, 0, ratio); }
CG_API_ cg_op cg_mstopk(float ratio) { return cg_op_select_(CG_SELECT_MSTOPK, 0, ratio); }
CG_API_ cg_op cg_sidco(float ratio) { return cg_op_select_(CG_SELECT_SIDCO, 0, ratio); }
CG_API_ cg_op cg_wangni(float ratio) { return cg_op_select_(CG_SELECT_WANGNI, 0, ratio); }
CG_API_ cg_op cg_wangnivar(float epsilon) { return cg_op_select_(CG_SELECT_WANGNIVAR, 0, epsilon); }
CG_API_ cg_op cg_chunked(float ratio, uint32_t chunk) { return cg_op_select_(CG_SELECT_CHUNKED, chunk, ratio); }
CG_API_ cg_op cg_blocks(uint32_t block) { return cg_op_select_(CG_SELECT_BLOCKS, block, 0.0f); }
CG_API_ cg_op cg_given(void) { return cg_op_select_(CG_SELECT_GIVEN, 0, 0.0f); }
CG_API_ cg_op cg_variance(float alpha) { return cg_op_select_(CG_SELECT_VARIANCE, 0, alpha); }
CG_API_ cg_op cg_bins(uint32_t bin) { return cg_op_select_(CG_SELECT_BINS, bin, 0.0f); }
CG_API_ cg_op cg_sides(float ratio) { return cg_op_select_(CG_SELECT_SIDES, 0, ratio); }
CG_API_ cg_op cg_adacomp(uint32_t bin) { return cg_then(cg_bins(bin), cg_efsign()); }
CG_API_ cg_op cg_adaq(float ratio) { return cg_then(cg_sides(ratio), cg_onebit(0)); }
CG_API_ cg_op cg_sbc(float ratio) {
    return cg_coded(cg_then(cg_op_select_(CG_SELECT_SIDE, 0, ratio), cg_op_quantize_(CG_QUANTIZE_MEAN, 0, 0, 0.0f)),
        CG_CODE_GOLOMB);
}
CG_API_ cg_op cg_stc(float ratio) { return cg_coded(cg_then(cg_topk(ratio), cg_efsign()), CG_CODE_GOLOMB); }
CG_API_ cg_op cg_qsparse(float ratio, int levels) { return cg_then(cg_topk(ratio), cg_levels(levels, 0)); }
CG_API_ cg_op cg_cocktail(float sampled, float ratio, int bits) {
    return cg_then(cg_then(cg_unscaled(cg_randk(sampled)), cg_topk(ratio)), cg_nearest(cg_absmax(bits, 512)));
}

CG_API_ cg_op cg_randk(float ratio) { return cg_op_one_stage_(CG_SLOT_SAMPLE_, CG_SAMPLE_RANDK, 0, 0, ratio); }
CG_API_ cg_op cg_permk(uint32_t workers) {
    return cg_op_one_stage_(CG_SLOT_SAMPLE_, CG_SAMPLE_PERMK, 0, workers, 0.0f);
}
CG_API_ cg_op cg_rotate(int rounds) {
    return cg_op_one_stage_(CG_SLOT_TRANSFORM_, CG_TRANSFORM_ROTATE, rounds, 0, 0.0f);
}
CG_API_ cg_op cg_dct(void) { return cg_op_one_stage_(CG_SLOT_TRANSFORM_, CG_TRANSFORM_DCT, 0, 0, 0.0f); }
CG_API_ cg_op cg_srq(int bits) { return cg_then(cg_rotate(1), cg_minmax(bits, CG_ROTATE_BLOCK_)); }
CG_API_ cg_op cg_lloyd(float bits) { return cg_op_quantize_(CG_QUANTIZE_LLOYD, 0, 0, bits); }
CG_API_ cg_op cg_eden(float bits) { /* to 1/32 bit; below one bit a random sample first */
    float steps = (float)(int)(bits > 0.0f && bits <= 4.0f ? bits * 32.0f + 0.5f : 0.0f) / 32.0f;
    cg_op op = cg_then(cg_rotate(2), cg_lloyd(bits < 1.0f ? 1.0f : steps));
    if (!(bits > 0.0f && bits <= 4.0f)) return cg_op_invalid_();
    return bits < 1.0f ? cg_then(cg_randk(bits), op) : op;
}
CG_API_ cg_op cg_drive(void) { return cg_eden(1.0f); }
CG_API_ cg_op cg_demo_dct(float ratio) { return cg_then(cg_dct(), cg_chunked(ratio, 64)); }
static cg_op cg_op_matrix_(int id, uint32_t rows, uint32_t cols, int rank) {
    return cols > 16777216u ? cg_op_invalid_() : cg_op_one_stage_(CG_SLOT_TRANSFORM_, id, rank, rows, (float)cols);
}
CG_API_ cg_op cg_lowrank(uint32_t rows, uint32_t cols, int rank) {
    return cg_op_matrix_(CG_TRANSFORM_LOWRANK, rows, cols, rank);
}
CG_API_ cg_op cg_atomo(uint32_t rows, uint32_t cols, int budget) {
    return cg_op_matrix_(CG_TRANSFORM_ATOMO, rows, cols, budget);
}

CG_API_ cg_op cg_mxfp8(void) { return cg_mxe4m3(); }
CG_API_ cg_op cg_mxfp8_e5m2(void) { return cg_mxe5m2(); }
CG_API_ cg_op cg_wangni_variance(float epsilon) { return cg_wangnivar(epsilon); }
CG_API_ cg_op cg_demo(float ratio) { return cg_demo_dct(ratio); }

CG_API_ cg_op cg_user(int id, int arg, uint32_t size, float value) {
    return id < CG_QUANTIZE_USER || id > 255 || arg < 0 || arg > 65535 ? cg_op_invalid_()
                                                                       : cg_op_quantize_(id, arg, size, value);
}
CG_API_ cg_op cg_nearest(cg_op op) {
    op.quantize.flags |= CG_FLAG_NEAREST;
    return op;
}
CG_API_ cg_op cg_clipped(cg_op op) {
    op.quantize.flags |= CG_FLAG_CLIP;
    return op;
}
CG_API_ cg_op cg_maxnorm(cg_op op, uint32_t bucket) {
    op.quantize.flags |= CG_FLAG_MAX;
    op.quantize.size = bucket;
    return op;
}
CG_API_ cg_op cg_unscaled(cg_op op) {
    op.sample.flags |= CG_FLAG_UNSCALED;
    return op;
}
CG_API_ cg_op cg_coded(cg_op op, cg_coding coding) {
    unsigned c = (unsigned)coding;
    if (c < CG_CODE_PACKED) op.code.id = (uint8_t)c;
    else op.code.arg = (uint16_t)(c > 255 ? 255 : c - CG_CODE_PACKED);
    return op;
}

CG_API_ cg_op cg_then(cg_op first, cg_op second) {
    const uint64_t k = first.k | second.k;
    const int counted = first.k ? cg_has_fixed_k_(&first) : cg_has_fixed_k_(&second);
    for (unsigned slot = 0; slot < CG_SLOT_COUNT_; slot++) {
        cg_stage *a = cg_op_stage_(&first, slot);
        const cg_stage *b = cg_op_stage_const_(&second, slot);
        if (slot == CG_SLOT_CODE_) { /* two codes in one slot */
            if ((a->id && b->id) || (a->arg && b->arg)) return cg_op_invalid_();
            a->id = (uint8_t)(a->id | b->id);
            a->arg = (uint16_t)(a->arg | b->arg);
            continue;
        }
        /* twice, or cg_nearest() of what does not round */
        if (b->id ? a->id || a->flags : b->flags) return cg_op_invalid_();
        if (b->id) *a = *b;
    }
    /* a count that would change its owner */
    if ((first.k && second.k) || (k && counted != cg_has_fixed_k_(&first))) return cg_op_invalid_();
    first.k = k;
    first.reserved |= second.reserved;
    return first;
}

/* src/core/text.h */
/* ---- >>text ---- */

typedef struct cg_text_ {
    char *at, *end;
} cg_text_; /* at == end: full */

static void cg_text_char_(cg_text_ *t, char c) {
    if (t->at < t->end) *t->at++ = c;
}
static void cg_text_str_(cg_text_ *t, const char *s) {
    while (*s) cg_text_char_(t, *s++);
}
static void cg_text_uint_(cg_text_ *t, uint64_t v) {
    char digits[20];
    int count = 0;
    do {
        digits[count++] = (char)('0' + v % 10);
        v /= 10;
    } while (v);
    while (count) cg_text_char_(t, digits[--count]);
}
static double cg_power10_(int e) {
    double p = 1.0;
    while (e-- > 0) p *= 10.0;
    return p;
}
/* digits * 10^exponent as the nearest float, nearly always; print relies on no more than that it is fixed */
static float cg_float_from_decimal_(uint64_t digits, int exponent) {
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
        while (d >= 1.0) {
            d /= 10.0;
            exponent++;
        }
        while (d < 0.1) {
            d *= 10.0;
            exponent--;
        } /* d in [0.1, 1), f = d*10^exponent */
        for (int many = 1; many <= 17; many++) {
            digits = (uint64_t)(d * cg_power10_(many) + 0.5);
            if (cg_float_from_decimal_(digits, exponent - many) == f || many == 17) {
                exponent -= many;
                break;
            }
        }
    }
    for (; digits && digits % 10 == 0; digits /= 10) exponent++;
    for (point = 0; point < 9 && digits >= (uint64_t)cg_power10_(point + 1); point++) {} /* digits before the last */
    if (exponent >= 0 && exponent + point <= 8) {
        cg_text_uint_(t, digits * (uint64_t)cg_power10_(exponent));
    } else if (exponent < 0 && exponent >= -9) {
        uint64_t unit = (uint64_t)cg_power10_(-exponent);
        cg_text_uint_(t, digits / unit);
        cg_text_char_(t, '.');
        for (digits %= unit, unit /= 10; unit; digits %= unit, unit /= 10)
            cg_text_char_(t, (char)('0' + digits / unit));
    } else {
        cg_text_uint_(t, digits);
        cg_text_char_(t, 'e');
        if (exponent < 0) cg_text_char_(t, '-');
        cg_text_uint_(t, (uint64_t)(exponent < 0 ? -exponent : exponent));
    }
}

static void cg_text_stage_(cg_text_ *t, const cg_op *op, unsigned slot) {
    const cg_stage *s = cg_op_stage_const_(op, slot);
    const cg_stage_row_ *row = cg_stage_row_of_(slot, s->id);
    int counted = op->k && slot == (cg_has_fixed_k_(op) ? CG_SLOT_SELECT_ : CG_SLOT_SAMPLE_);
    if (slot == CG_SLOT_CODE_) {
        cg_text_str_(t, cg_index_code_names_[s->id]);
        if (s->id && s->arg) cg_text_char_(t, '|');
        cg_text_str_(t, cg_value_code_names_[s->arg]);
        return;
    }
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
    if (row->arg_hi) {
        cg_text_char_(t, ':');
        cg_text_uint_(t, s->arg);
    }
    if (row->size_hi && (s->size != row->size_default || row->size_default < row->size_lo)) {
        cg_text_char_(t, ':');
        cg_text_uint_(t, s->size);
    }
    if (counted) {
        cg_text_str_(t, ":k=");
        cg_text_uint_(t, op->k);
    } else if (row->value_hi > 0.0f) {
        cg_text_char_(t, ':');
        cg_text_float_(t, s->value);
    }
    for (unsigned f = 0; f < 2; f++)
        if (s->flags >> f & 1) {
            cg_text_char_(t, ':');
            cg_text_str_(t, row->flag_names[f]);
        }
}
static cg_status cg_op_print_(const cg_op *op, char *text, size_t cap) {
    cg_text_ t;
    int first = 1;
    if (!op || !text) return CG_E_ARG;
    if (cap) text[0] = 0;
    if (cg_op_check_(op) != CG_OK) return CG_E_ARG;
    t.at = text;
    t.end = text + cap;
    for (unsigned slot = 0; slot < CG_SLOT_COUNT_; slot++) {
        if (cg_stage_is_empty_(cg_op_stage_const_(op, slot))) continue;
        if (!first) cg_text_char_(&t, '|');
        first = 0;
        cg_text_stage_(&t, op, slot);
    }
    if (first) cg_text_str_(&t, "dense");
    if (t.at == t.end) {
        if (cap) text[0] = 0;
        return CG_E_CAPACITY;
    }
    *t.at = 0;
    return CG_OK;
}

CG_API_ cg_status cg_op_print(const cg_op *op, char *text, size_t cap) {
    cg_fenv_ env = cg_fenv_enter_();
    cg_status s = cg_op_print_(op, text, cap);
    cg_fenv_leave_(env);
    return s;
}

/* Parsing: each takes what it wants from *text and says whether it was there. */
static int cg_parse_literal_(const char **text, const char *word) {
    const char *p = *text;
    while (*word)
        if (*p++ != *word++) return 0;
    *text = p;
    return 1;
}
static int cg_parse_name_(const char **text, const char *name) {
    const char *p = *text;
    if (!cg_parse_literal_(&p, name) || (*p && *p != ':' && *p != '|')) return 0;
    *text = p;
    return 1;
}
static int cg_parse_uint_(const char **text, uint64_t limit, uint64_t *v) {
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
static int cg_parse_float_(const char **text, float *f) {
    const char *p = *text;
    uint64_t digits = 0, e = 0;
    int exponent = 0, any = 0, point = 0, minus = 0;
    for (;; p++) {
        if (*p == '.' && !point) {
            point = 1;
            continue;
        }
        if (*p < '0' || *p > '9') break;
        any = 1;
        if (digits < 100000000000000000u) {
            digits = digits * 10 + (uint64_t)(*p - '0');
            exponent -= point;
        } else exponent += !point;
        if (exponent > 100000) exponent = 100000;
    }
    if (!any) return 0;
    if (*p == 'e' || *p == 'E') {
        p++;
        minus = *p == '-';
        if (*p == '-' || *p == '+') p++;
        if (!cg_parse_uint_(&p, 100000, &e)) return 0;
        exponent += minus ? -(int)e : (int)e;
    }
    *text = p;
    *f = cg_float_from_decimal_(digits, exponent);
    /* not beyond the range */
    return *f < CG_FLT_MAX_ || cg_float_from_decimal_(digits, exponent - 1) < CG_FLT_MAX_ / 9.9f;
}
static int cg_parse_user_(const char **text, cg_op *op) {
    uint64_t id, arg, size;
    float value, sign;
    if (!cg_parse_uint_(text, 255, &id) || !cg_parse_literal_(text, ":") || !cg_parse_uint_(text, 65535, &arg) ||
        !cg_parse_literal_(text, ":") || !cg_parse_uint_(text, 0xffffffffu, &size) || !cg_parse_literal_(text, ":"))
        return 0;
    sign = cg_parse_literal_(text, "-") ? -1.0f : 1.0f;
    if (!cg_parse_float_(text, &value)) return 0;
    *op = cg_user((int)id, (int)arg, (uint32_t)size, sign * value);
    return 1;
}
/* Presets by name: what is more than one stage, and other names of a single one. */
#define CG_PRESET_LIST_(X)                             \
  X("qsgd", 1, cg_qsgd((int)a[0]))                     \
  X("threelc", 1, cg_threelc(a[0]))                    \
  X("adacomp", 1, cg_adacomp((uint32_t)a[0]))          \
  X("adaq", 1, cg_adaq(a[0]))                          \
  X("sbc", 1, cg_sbc(a[0]))                            \
  X("stc", 1, cg_stc(a[0]))                            \
  X("eden", 1, cg_eden(a[0]))                          \
  X("drive", 0, cg_drive())                            \
  X("srq", 1, cg_srq((int)a[0]))                       \
  X("demo_dct", 1, cg_demo_dct(a[0]))                  \
  X("demo", 1, cg_demo_dct(a[0]))                      \
  X("qsparse", 2, cg_qsparse(a[0], (int)a[1]))         \
  X("cocktail", 3, cg_cocktail(a[0], a[1], (int)a[2])) \
  X("klevel", 2, cg_klevel((int)a[0], (uint32_t)a[1])) \
  X("fp8", 0, cg_fp8())                                \
  X("fp8_e5m2", 0, cg_fp8_e5m2())                      \
  X("mxfp8", 0, cg_mxe4m3())                           \
  X("mxfp8_e5m2", 0, cg_mxe5m2())                      \
  X("wangni_variance", 1, cg_wangnivar(a[0]))

static int cg_parse_params_(const char **text, float *params, int count) {
    for (int p = 0; p < count; p++)
        if (!cg_parse_literal_(text, ":") || !cg_parse_float_(text, &params[p]) || params[p] > 1e9f) return 0;
    return 1;
}
static int cg_parse_preset_(const char **text, cg_op *op) {
    float a[3] = { 0.0f, 0.0f, 0.0f };
#define CG_PRESET_(name, count, preset)              \
  if (cg_parse_name_(text, name)) {                  \
    if (!cg_parse_params_(text, a, count)) return 0; \
    *op = preset;                                    \
    return 1;                                        \
  }
    CG_PRESET_LIST_(CG_PRESET_)
#undef CG_PRESET_
    return 0;
}
static int cg_parse_size_(const char **text, const cg_stage_row_ *row, cg_stage *s) {
    const char *p = *text;
    uint64_t v;
    s->size = row->size_default;
    if (cg_parse_literal_(&p, ":") && *p >= '0' && *p <= '9') {
        if (!cg_parse_uint_(&p, 0xffffffffu, &v)) return 0;
        s->size = (uint32_t)v;
        *text = p;
        return 1;
    }
    return row->size_default >= row->size_lo; /* left out */
}
static int cg_parse_stage_(const char **text, cg_op *op) {
    const cg_stage_row_ *row = NULL;
    cg_stage s = CG_ZERO;
    uint64_t v;
    *op = cg_dense();
    if (cg_parse_name_(text, "dense")) return 1;
    if (cg_parse_literal_(text, "user:")) return cg_parse_user_(text, op);
    for (unsigned i = 1; i < CG_INDEX_CODE_COUNT_; i++)
        if (cg_parse_name_(text, cg_index_code_names_[i])) {
            op->code.id = (uint8_t)i;
            return 1;
        }
    for (unsigned i = 1; i < CG_VALUE_CODE_COUNT_; i++)
        if (cg_parse_name_(text, cg_value_code_names_[i])) {
            op->code.arg = (uint16_t)i;
            return 1;
        }
    for (size_t i = 0; i < CG_STAGE_ROWS_ && !row; i++)
        if (cg_parse_name_(text, cg_stage_rows_[i].name)) row = &cg_stage_rows_[i];
    if (!row) return cg_parse_preset_(text, op);
    s.id = row->id;
    if (row->arg_hi) {
        if (!cg_parse_literal_(text, ":") || !cg_parse_uint_(text, 65535, &v)) return 0;
        s.arg = (uint16_t)v;
    }
    if (row->size_hi && !cg_parse_size_(text, row, &s)) return 0;
    if (row->value_hi == 1.0f && cg_parse_literal_(text, ":k=")) { /* any legal ratio; k decides */
        if (!cg_parse_uint_(text, CG_TOO_LARGE_, &op->k) || !op->k) return 0;
        s.value = 1.0f;
    } else if (row->value_hi > 0.0f) {
        if (!cg_parse_literal_(text, ":") || !cg_parse_float_(text, &s.value)) return 0;
    }
    for (unsigned f = 0; f < 2; f++) {
        const char *p = *text;
        if (row->allowed_flags >> f & 1 && cg_parse_literal_(&p, ":") && cg_parse_name_(&p, row->flag_names[f])) {
            s.flags = (uint8_t)(s.flags | 1u << f);
            *text = p;
        }
    }
    *cg_op_stage_(op, row->slot) = s;
    return 1;
}
static cg_status cg_op_parse_(cg_op *op, const char *text) {
    cg_op all = CG_ZERO, one;
    int more;
    if (!op) return CG_E_ARG;
    *op = all;
    if (!text) return CG_E_ARG;
    do {
        if (!cg_parse_stage_(&text, &one)) return CG_E_ARG;
        all = cg_then(all, one);
        more = cg_parse_literal_(&text, "|");
    } while (more);
    if (*text || cg_op_check_(&all) != CG_OK) return CG_E_ARG;
    *op = all;
    return CG_OK;
}
CG_API_ cg_status cg_op_parse(cg_op *op, const char *text) {
    cg_fenv_ env = cg_fenv_enter_();
    cg_status s = cg_op_parse_(op, text);
    cg_fenv_leave_(env);
    return s;
}

/* src/core/packet.h */
/* ---- >>packet: header and checksum ---- */

static cg_checksum_ cg_checksum_concat_(cg_checksum_ s, cg_checksum_ t) { /* of s followed by t */
    s.b += t.words * s.a + t.b;
    s.a += t.a;
    s.words += t.words;
    return s;
}
static cg_checksum_ cg_checksum_of_(const cg_kernels_ *kernels, const uint8_t *p, size_t bytes) {
    cg_checksum_ s = { 0, 0, 0 };
    kernels->checksum(&s, p, bytes / 4);
    return s;
}

#define CG_CHECKSUM_OFFSET_ (CG_HEADER_BYTES - 16)
static const uint8_t cg_magic_[5] = { 'c', 'g', 'p', 'k', 1 };

static void cg_header_put_(uint8_t *p, const cg_info *info) {
    memset(p, 0, CG_HEADER_BYTES);
    memcpy(p, cg_magic_, 5);
    p[5] = (uint8_t)info->index_code;
    for (unsigned slot = 0; slot < CG_SLOT_COUNT_; slot++) {
        const cg_stage *s = cg_op_stage_const_(&info->op, slot);
        uint8_t *q = p + 8 + 12 * slot;
        q[0] = s->id;
        q[1] = s->flags;
        cg_put16_(q + 2, s->arg);
        cg_put32_(q + 4, s->size);
        cg_put32_(q + 8, cg_as_bits_(s->value));
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
    cg_put32_(p + 144, cg_as_bits_(info->threshold));
}

/* Indices: Elias-Fano with l low bits each, or a bitmap. */
static unsigned cg_elias_fano_low_bits_(uint64_t drawn, uint64_t k) { return k && drawn / k ? cg_log2_(drawn / k) : 0; }
static uint64_t cg_elias_fano_low_bytes_(uint64_t drawn, uint64_t k) {
    return cg_word_bytes_(cg_mul_sat_(k, cg_elias_fano_low_bits_(drawn, k)));
}
static uint64_t cg_elias_fano_high_bits_(uint64_t drawn, uint64_t k) {
    return k ? cg_add_sat_(k, ((drawn - 1) >> cg_elias_fano_low_bits_(drawn, k)) + 1) : 0;
}
/* Bytes of k indices below `universe`; for Golomb the most they can take. */
static uint64_t cg_index_bytes_(uint32_t code, uint64_t universe, uint64_t k) {
    if (code == CG_CODE_AUTO || k == 0) return 0;
    if (code == CG_CODE_BITMAP) return cg_word_bytes_(universe);
    if (code == CG_CODE_GOLOMB) return cg_rice_bound_(universe, k);
    return cg_add_sat_(cg_elias_fano_low_bytes_(universe, k), cg_word_bytes_(cg_elias_fano_high_bits_(universe, k)));
}
static uint32_t cg_index_code_(const cg_op *op, uint64_t universe, uint64_t k) {
    if (!op->select.id || op->select.id == CG_SELECT_GIVEN) return CG_CODE_AUTO; /* none */
    if (k == 0) return CG_CODE_ELIAS_FANO;
    if (op->code.id) return op->code.id;
    return cg_index_bytes_(CG_CODE_BITMAP, universe, k) < cg_index_bytes_(CG_CODE_ELIAS_FANO, universe, k)
        ? CG_CODE_BITMAP
        : CG_CODE_ELIAS_FANO;
}
/* The same for any number of indices up to k. */
static uint64_t cg_index_bound_(const cg_op *op, uint64_t universe, uint64_t k) {
    uint64_t bitmap = cg_word_bytes_(universe),
             sparse = cg_add_sat_(cg_index_bytes_(CG_CODE_ELIAS_FANO, universe, k), 8);
    switch (op->code.id) {
    case CG_CODE_BITMAP: return bitmap;
    case CG_CODE_ELIAS_FANO: return sparse;
    /* at worst 1.08 bits for each that may be; and fewer than k take no more than k, but for steps of b */
    case CG_CODE_GOLOMB:
        sparse = cg_add_sat_(cg_rice_bound_(universe, k), cg_add_sat_(cg_rice_bound_(universe, k) / 8, 16)) &
            ~(uint64_t)3;
        bitmap = cg_add_sat_(cg_word_bytes_(cg_add_sat_(universe, universe / 8)), 8);
        return sparse < bitmap ? sparse : bitmap;
    default: return sparse < bitmap ? sparse : bitmap;
    }
}

static cg_status cg_header_get_(const uint8_t *p, size_t len, cg_info *info) {
    cg_status s;
    uint64_t value_bytes, index_bytes, turned, universe, indices;
    cg_info zero = CG_ZERO;
    *info = zero;
    if (len < CG_HEADER_BYTES) return CG_E_CORRUPT;
    for (int i = 0; i < 4; i++)
        if (p[i] != cg_magic_[i]) return CG_E_CORRUPT;
    if (p[4] != cg_magic_[4]) return CG_E_VERSION;
    info->index_code = p[5];
    for (unsigned slot = 0; slot < CG_SLOT_COUNT_; slot++) {
        cg_stage *stage = cg_op_stage_(&info->op, slot);
        const uint8_t *q = p + 8 + 12 * slot;
        stage->id = q[0];
        stage->flags = q[1];
        stage->arg = cg_get16_(q + 2);
        stage->size = cg_get32_(q + 4);
        stage->value = cg_as_float_(cg_get32_(q + 8));
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
    info->threshold = cg_as_float_(cg_get32_(p + 144));
    if (cg_get16_(p + 6) || cg_get32_(p + 148)) return CG_E_CORRUPT;
    if (!cg_is_finite_(info->threshold) || cg_as_bits_(info->threshold) >> 31) return CG_E_CORRUPT;
    if (!cg_has_fixed_k_(&info->op) && info->op.select.id != CG_SELECT_DGC && info->op.select.id != CG_SELECT_SIDCO &&
        cg_as_bits_(info->threshold))
        return CG_E_CORRUPT;
    /* n, drawn and k must be what the stages can leave; the counts may have been asked for (op.k) */
    if (info->op.sample.id == CG_SAMPLE_PERMK && info->tag.rank >= info->op.sample.size) return CG_E_CORRUPT;
    if (info->op.sample.id != CG_SAMPLE_RANDK ? info->drawn != cg_sampled_n_(&info->op, info->n, &info->tag)
                                              : info->drawn > info->n || (info->n && !info->drawn))
        return CG_E_CORRUPT;
    if (!cg_matrix_shape_fits_(&info->op, info->n)) return CG_E_CORRUPT;
    turned = cg_transformed_n_(&info->op, info->drawn);
    if (!info->op.select.id && info->k != turned) return CG_E_CORRUPT;
    if (info->k > (cg_has_fixed_k_(&info->op) ? turned : cg_max_selected_(&info->op, turned)) ||
        (cg_has_fixed_k_(&info->op) && turned && !info->k))
        return CG_E_CORRUPT;
    if (info->op.select.id == CG_SELECT_CHUNKED && info->k != cg_max_selected_(&info->op, turned)) return CG_E_CORRUPT;
    if (cg_has_fixed_k_(&info->op)) {
        if (info->drawn != cg_sampled_n_(&info->op, info->n, &info->tag)) return CG_E_CORRUPT;
        if (info->k != cg_k_from_ratio_(info->op.select.value, 0, turned)) info->op.k = info->k;
    } else if (info->op.sample.id == CG_SAMPLE_RANDK &&
        info->drawn != cg_k_from_ratio_(info->op.sample.value, 0, info->n)) {
        info->op.k = info->drawn;
    }
    universe = cg_index_count_(&info->op, turned);
    indices = cg_index_count_(&info->op, info->k);
    if (info->index_code != cg_index_code_(&info->op, universe, indices)) return CG_E_CORRUPT;
    if (info->index_code == CG_CODE_GOLOMB
            ? index_bytes % 4 || index_bytes > cg_index_bytes_(CG_CODE_GOLOMB, universe, indices)
            : index_bytes != cg_index_bytes_(info->index_code, universe, indices))
        return CG_E_CORRUPT;
    if (value_bytes % 4 || cg_add_sat_(cg_add_sat_(value_bytes, index_bytes), CG_HEADER_BYTES) > SIZE_MAX / 2)
        return CG_E_CORRUPT;
    info->value_bytes = (size_t)value_bytes;
    info->index_bytes = (size_t)index_bytes;
    info->packet_bytes = CG_HEADER_BYTES + info->value_bytes + info->index_bytes;
    return CG_OK;
}
/* Header and checksum of a packet whose body has been written; returns its length. */
static size_t cg_packet_finalize_(const cg_kernels_ *kernels, const cg_info *info, uint8_t *packet, cg_checksum_ body) {
    cg_checksum_ head;
    cg_header_put_(packet, info);
    head = cg_checksum_concat_(cg_checksum_of_(kernels, packet, CG_HEADER_BYTES), body);
    cg_put64_(packet + CG_CHECKSUM_OFFSET_, head.a);
    cg_put64_(packet + CG_CHECKSUM_OFFSET_ + 8, head.b);
    return CG_HEADER_BYTES + info->value_bytes + info->index_bytes;
}
/* The same where the whole body (info->value_bytes and info->index_bytes) stands in the packet already, with a checksum
   that is still to be made. */
CG_OFFERED_ size_t cg_packet_seal_(const cg_info *info, uint8_t *packet) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    return cg_packet_finalize_(kernels, info, packet,
        cg_checksum_of_(kernels, packet + CG_HEADER_BYTES, info->value_bytes + info->index_bytes));
}

/* src/core/quantize/scales.h */
/* ---- >>quantizers: a row each
   know: what must be known of a bucket before its values can be coded. The loop (cg_encode_block_) does
   the rest: blocks, chunks, buckets, the finite check, packing and the checksum. */

enum { CG_NEEDS_NOTHING_, CG_NEEDS_BUCKET_STATS_, CG_NEEDS_SUM_AFTERWARDS_ };
/* what encode leaves: wire-ready bits, or a byte per value for packing or a code */
enum { CG_OUTPUT_PACKED_, CG_OUTPUT_SYMBOLS_ };

/* What is known of a bucket. Sums over it: f64, 16 lanes over each run between multiples of 2048, folded by
   halves, runs added in order within blocks of 65536, blocks in order. */
typedef struct cg_bucket_stats_ {
    uint32_t absmax_bits;
    float lo, hi;
    double sums[2];
    uint64_t negatives, count;
} cg_bucket_stats_;

typedef struct cg_quantizer_ {
    uint8_t id, needs;
    uint8_t scale_count, scale_width; /* stored per bucket: how many, of so many bytes */
    uint8_t bits;                     /* per value; 0: see cg_bits_x32_of_ */
    uint8_t output;
    uint32_t fixed_bucket; /* 0: the stage's size */
    void (*measure)(
        const cg_kernels_ *kernels, const cg_stage *stage, const float *v, size_t n, cg_bucket_stats_ *stat);
    void (*set_scales)(const cg_stage *stage, const cg_bucket_stats_ *stat, float *scales);
    int (*legal)(const float *scales); /* are these scales that an encoder can have stored? */
    /* NULL, or what a value that equals the scale becomes before encode sees it */
    float (*full_scale)(const cg_stage *stage);
    uint32_t (*encode)(const cg_kernels_ *kernels, const cg_stage *stage, const float *scales, cg_key_ key,
        uint32_t position, const float *v, size_t n, uint8_t *out, double *lanes);
    /* NULL, or scales that need the codes first */
    void (*rescale)(const cg_bucket_stats_ *stat, double total, float *scales);
    void (*decode)(const cg_kernels_ *kernels, const cg_stage *stage, const float *scales, const uint8_t *in, size_t n,
        float *out, int stream);
    /* stored values: Inf or NaN if >= limit */
    uint32_t (*stored_absmax_bits)(const cg_kernels_ *kernels, const uint8_t *in, size_t n);
    uint32_t stored_limit;
} cg_quantizer_;

/* Magnitudes below 2^-80 are brought up by 2^100 before anything is divided by them. */
CG_INLINE_ int cg_is_tiny_(float scale) { return (cg_as_bits_(scale) & CG_ABS_MASK_) < 0x17800000u; }
#define CG_POW2_100_ 1.2676506002282294e30f       /* 2^100 */
#define CG_POW2_MINUS_100_ 7.888609052210118e-31f /* 2^-100 */

/* Grids. Tiny magnitudes are scaled up so that neither the step nor its inverse leaves the normal range, huge ones
   down so that a range cannot overflow; both by powers of two, which lose nothing that counts. */
static cg_levels_ cg_levels_make_(const cg_stage *stage, const float *scales) {
    cg_levels_ q;
    int range = stage->id == CG_QUANTIZE_MINMAX || (stage->id == CG_QUANTIZE_ABSMAX && stage->arg == 1);
    int bias = stage->id == CG_QUANTIZE_TERNGRAD || stage->id == CG_QUANTIZE_TRITS ? 1
        : stage->id == CG_QUANTIZE_LEVELS                                          ? stage->arg
                                                                                   : (1 << (stage->arg - 1)) - 1;
    float hi = stage->id == CG_QUANTIZE_MINMAX ? scales[1]
        : stage->id == CG_QUANTIZE_FLEXPOINT   ? cg_saturate_(cg_times_(scales[0], (float)bias))
                                               : scales[0];
    float lo = stage->id == CG_QUANTIZE_MINMAX ? scales[0] : -hi;
    uint32_t top = cg_max32_(cg_as_bits_(lo) & CG_ABS_MASK_, cg_as_bits_(hi) & CG_ABS_MASK_);
    q.prescale = top >= 0x7e800000u ? 0.5f : top < 0x17800000u ? CG_POW2_100_ : 1.0f; /* 2^126, 2^-80 */
    q.postscale = top >= 0x7e800000u ? 2.0f : top < 0x17800000u ? CG_POW2_MINUS_100_ : 1.0f;
    q.stochastic = !(stage->flags & CG_FLAG_NEAREST) && stage->id != CG_QUANTIZE_TRITS &&
        stage->id != CG_QUANTIZE_FLEXPOINT;
    q.inv_step = 0.0f;
    lo *= q.prescale;
    hi *= q.prescale;
    if (!range) {
        q.zero_symbol = bias;
        q.max_symbol = 2 * bias;
        q.encode_offset = q.decode_offset = 0.0f;
        q.range = hi;
        q.step = hi / (float)bias;
        if (stage->id == CG_QUANTIZE_FLEXPOINT) {
            q.step = cg_times_(scales[0], q.prescale);
            q.range = cg_times_(q.step, (float)bias);
        }
    } else {
        float width = hi - lo;
        q.zero_symbol = 0;
        q.max_symbol = (1 << stage->arg) - 1;
        q.encode_offset = q.decode_offset = lo;
        q.range = width;
        q.step = width / (float)q.max_symbol;
    }
    return q;
}
static double cg_lane_sum_of_(const cg_kernels_ *kernels, const float *v, size_t n, int what) {
    double lanes[16] = { 0.0 };
    kernels->lane_sum(v, n, what, lanes);
    return cg_lanes_reduce_(lanes);
}
/* measure: every one takes top, the finite check, too */
static void cg_measure_absmax_(
    const cg_kernels_ *kernels, const cg_stage *stage, const float *v, size_t n, cg_bucket_stats_ *stat) {
    (void)stage;
    stat->absmax_bits = cg_max32_(stat->absmax_bits, kernels->absmax_bits(v, n));
}
static void cg_measure_norm_(
    const cg_kernels_ *kernels, const cg_stage *stage, const float *v, size_t n, cg_bucket_stats_ *stat) {
    if (stage->flags & CG_FLAG_MAX) {
        stat->absmax_bits = cg_max32_(stat->absmax_bits, kernels->absmax_bits(v, n));
        /* squares of floats do not overflow a double: an Inf or NaN is one of theirs */
    } else {
        double squares = cg_lane_sum_of_(kernels, v, n, CG_SUM_SQUARES_);
        stat->sums[0] += squares;
        if (!cg_is_finite64_(squares)) stat->absmax_bits = CG_INF_BITS_;
    }
}
static void cg_measure_ternary_(
    const cg_kernels_ *kernels, const cg_stage *stage, const float *v, size_t n, cg_bucket_stats_ *stat) {
    stat->absmax_bits = cg_max32_(stat->absmax_bits, kernels->absmax_bits(v, n));
    if (!(stage->flags & CG_FLAG_CLIP)) return;
    stat->sums[0] += cg_lane_sum_of_(kernels, v, n, CG_SUM_SQUARES_);
    stat->sums[1] += cg_lane_sum_of_(kernels, v, n, CG_SUM_VALUES_);
}
static void cg_measure_range_(
    const cg_kernels_ *kernels, const cg_stage *stage, const float *v, size_t n, cg_bucket_stats_ *stat) {
    stat->absmax_bits = cg_max32_(stat->absmax_bits, kernels->range(v, n, &stat->lo, &stat->hi));
    if (stage->flags & CG_FLAG_NORM) stat->sums[0] += cg_lane_sum_of_(kernels, v, n, CG_SUM_SQUARES_);
}
static void cg_measure_signed_sums_(
    const cg_kernels_ *kernels, const cg_stage *stage, const float *v, size_t n, cg_bucket_stats_ *stat) {
    uint8_t signs[CG_CHUNK_ / 8]; /* n <= CG_CHUNK_ */
    (void)stage;
    stat->absmax_bits = cg_max32_(stat->absmax_bits, kernels->sign_encode(v, n, signs, NULL));
    stat->sums[0] += cg_lane_sum_of_(kernels, v, n, CG_SUM_NEGATIVE_);
    stat->sums[1] += cg_lane_sum_of_(kernels, v, n, CG_SUM_NONNEGATIVE_);
    for (size_t i = 0; i < (n + 7) / 8; i++) stat->negatives += cg_popcount_(signs[i]);
}

/* for -0 */
static float cg_canonical_zero_(float v) { return cg_as_float_(cg_as_bits_(v) & CG_ABS_MASK_ ? cg_as_bits_(v) : 0u); }
static void cg_set_scales_absmax_(const cg_stage *stage, const cg_bucket_stats_ *stat, float *scales) {
    (void)stage;
    scales[0] = cg_as_float_(stat->absmax_bits);
}
static void cg_set_scales_norm_(const cg_stage *stage, const cg_bucket_stats_ *stat, float *scales) {
    scales[0] = stage->flags & CG_FLAG_MAX ? cg_as_float_(stat->absmax_bits) : cg_saturate64_(cg_sqrt_(stat->sums[0]));
}
static void cg_set_scales_ternary_(const cg_stage *stage, const cg_bucket_stats_ *stat, float *scales) {
    scales[0] = cg_as_float_(stat->absmax_bits);
    if (stage->flags & CG_FLAG_CLIP && stat->count) {
        double mean = stat->sums[1] / (double)stat->count, square = mean * mean, spread;
        CG_NO_FMA_(square);
        spread = stat->sums[0] / (double)stat->count - square;
        spread = 2.5 * cg_sqrt_(spread > 0.0 ? spread : 0.0);
        if (spread < (double)scales[0]) scales[0] = (float)spread;
    }
}
/* which zero came first must not matter */
static void cg_set_scales_range_(const cg_stage *stage, const cg_bucket_stats_ *stat, float *scales) {
    scales[0] = cg_canonical_zero_(stat->lo);
    scales[1] = cg_canonical_zero_(stat->hi);
    if (stage->flags & CG_FLAG_NORM) { /* Suresh: the range is sqrt(2)*norm, which is never too short */
        double width = 1.4142135623730951 * cg_sqrt_(stat->sums[0]), hi;
        CG_NO_FMA_(width);
        hi = (double)scales[0] + width;
        if (hi > (double)scales[1]) scales[1] = cg_saturate64_(hi);
    }
}
static void cg_set_scales_threelc_(const cg_stage *stage, const cg_bucket_stats_ *stat, float *scales) {
    scales[0] = cg_saturate_(cg_times_(cg_as_float_(stat->absmax_bits), stage->value));
}
/* the least 2^e of which `bias` steps reach the top */
static void cg_set_scales_pow2_(const cg_stage *stage, const cg_bucket_stats_ *stat, float *scales) {
    const unsigned bits = stage->id == CG_QUANTIZE_FLEX16 ? 16 : stage->arg;
    /* 2^-149 */
    const double bias = (double)((1 << (bits - 1)) - 1), top = (double)cg_as_float_(stat->absmax_bits),
                 least = 1.401298464324817e-45;
    double step = cg_as_double_(cg_as_bits64_(top) >> 52 << 52); /* what bits top begins with */
    scales[0] = 0.0f;
    if (!stat->absmax_bits) return;
    for (unsigned i = 0; i < bits && step > least; i++) step *= 0.5;
    while (step * bias < top && step < 1.7014118346046923e38) step *= 2.0; /* 2^127 */
    scales[0] = (float)step;
}
static void cg_set_scales_signed_means_(const cg_stage *stage, const cg_bucket_stats_ *stat, float *scales) {
    uint64_t above = stat->count - stat->negatives;
    (void)stage;
    scales[0] = stat->negatives ? cg_saturate64_(stat->sums[0] / (double)stat->negatives) : 0.0f;
    scales[1] = above ? cg_saturate64_(stat->sums[1] / (double)above) : 0.0f;
}
static void cg_set_scales_mean_(const cg_stage *stage, const cg_bucket_stats_ *stat, float *scales) {
    (void)stage;
    scales[0] = stat->count ? cg_canonical_zero_(cg_saturate64_((stat->sums[0] + stat->sums[1]) / (double)stat->count))
                            : 0.0f;
}
static void cg_set_scales_mx_(const cg_stage *stage, const cg_bucket_stats_ *stat, float *scales) {
    int most = stage->id == CG_QUANTIZE_MXFP4 ? 2 : stage->id == CG_QUANTIZE_MXE4M3 ? 8 : 15;
    scales[0] = cg_e8m0_decode_(cg_e8m0_encode_(stat->absmax_bits, most));
}
static int cg_legal_magnitude_(const float *scales) { return cg_as_bits_(scales[0]) < CG_INF_BITS_; }
static int cg_legal_finite_(const float *scales) { return cg_is_finite_(scales[0]); }
static int cg_legal_range_(const float *scales) {
    return cg_is_finite_(scales[0]) && cg_is_finite_(scales[1]) && scales[0] <= scales[1];
}
static int cg_legal_finite2_(const float *scales) { return cg_is_finite_(scales[0]) && cg_is_finite_(scales[1]); }

/* src/core/quantize/formats.h */
#define CG_ENCODE_FN_(name)                                                                                 \
  static uint32_t name(const cg_kernels_ *kernels, const cg_stage *stage, const float *scales, cg_key_ key, \
      uint32_t position, const float *v, size_t n, uint8_t *out, double *lanes)
#define CG_DECODE_FN_(name)                                                                                   \
  static void name(const cg_kernels_ *kernels, const cg_stage *stage, const float *scales, const uint8_t *in, \
      size_t n, float *out, int stream)
#define CG_UNUSED_(a) (void)(a)

CG_ENCODE_FN_(cg_encode_levels_) {
    cg_levels_ q = cg_levels_make_(stage, scales);
    CG_UNUSED_(lanes);
    if (q.range > 0.0f) q.inv_step = (float)(q.zero_symbol ? q.zero_symbol : q.max_symbol) / q.range;
    /* a scale of 0 may have been given to any values: all are level 0 */
    else {
        q.prescale = 1.0f;
        q.encode_offset = 0.0f;
    }
    kernels->levels_encode(&q, key, position, v, n, out);
    return 0; /* measured before */
}
CG_DECODE_FN_(cg_decode_levels_) {
    cg_levels_ q = cg_levels_make_(stage, scales);
    kernels->levels_decode(&q, in, n, out, stream);
}

/* Integers of 16 bits, times the scale: what sums of levels need. */
CG_ENCODE_FN_(cg_encode_steps16_) {
    const int tiny = cg_is_tiny_(scales[0]) && scales[0] > 0.0f;
    /* 2^128 has a denormal inverse */
    const float lift = tiny ? CG_POW2_100_ : 1.0f, inv = scales[0] > 0.0f ? 1.0f / cg_times_(scales[0], lift) : 0.0f;
    CG_UNUSED_(kernels);
    CG_UNUSED_(stage);
    CG_UNUSED_(key);
    CG_UNUSED_(position);
    CG_UNUSED_(lanes);
    for (size_t i = 0; i < n; i++) {
        float t = cg_times_(cg_times_(cg_load_(v, i), lift), inv);
        t = t < -32767.0f ? -32767.0f : t > 32767.0f ? 32767.0f : t;
        cg_put16_(out + 2 * i, cg_as_bits_(cg_plus_(t, 12582912.0f)) - 0x4b400000u + 32767u);
    }
    return 0;
}
CG_DECODE_FN_(cg_decode_steps16_) {
    CG_UNUSED_(kernels);
    CG_UNUSED_(stage);
    CG_UNUSED_(stream);
    for (size_t i = 0; i < n; i++)
        cg_store_(out, i, cg_saturate_(cg_times_((float)((int32_t)cg_get16_(in + 2 * i) - 32767), scales[0])));
}

/* The next ones have a `unit`: scales[0] is what brings a value there; short buckets have
   been brought there already, a chunk of them at once. */
static float cg_full_scale_one_(const cg_stage *stage) {
    (void)stage;
    return 1.0f;
}
static float cg_full_scale_fp8_(const cg_stage *stage) { return stage->id == CG_QUANTIZE_E5M2 ? 57344.0f : 448.0f; }
CG_INLINE_ float cg_ratio_or_zero_(float of, float scale) { return scale > 0.0f ? of / scale : 0.0f; }

CG_ENCODE_FN_(cg_encode_fp8_) {
    CG_UNUSED_(key);
    CG_UNUSED_(position);
    CG_UNUSED_(lanes);
    kernels->fp8_encode(v, n, scales[0], stage->id == CG_QUANTIZE_E5M2 || stage->id == CG_QUANTIZE_MXE5M2, out);
    return 0;
}
CG_DECODE_FN_(cg_decode_fp8_) {
    const int kind = stage->id == CG_QUANTIZE_E5M2, tiny = cg_is_tiny_(scales[0]);
    const float scale = tiny ? cg_times_(scales[0], CG_POW2_100_) : scales[0];
    kernels->fp8_decode(in, n, scale / (kind ? 57344.0f : 448.0f), kind, out, stream && !tiny);
    for (size_t i = 0; tiny && i < n; i++) cg_store_(out, i, cg_times_(cg_load_(out, i), CG_POW2_MINUS_100_));
}
CG_DECODE_FN_(cg_decode_mx8_) { kernels->fp8_decode(in, n, scales[0], stage->id == CG_QUANTIZE_MXE5M2, out, stream); }
CG_ENCODE_FN_(cg_encode_mx4_) {
    cg_bucketizer_ g;
    CG_UNUSED_(stage);
    CG_UNUSED_(key);
    CG_UNUSED_(position);
    CG_UNUSED_(lanes);
    g.inv_scale = scales[0];
    g.limit_count = 7;
    g.sign_bit = 8;
    memcpy(g.limit, cg_e2m1_limits_, sizeof g.limit);
    kernels->bucketize(&g, v, n, out, NULL, NULL);
    return 0;
}
CG_DECODE_FN_(cg_decode_mx4_) {
    float table[16];
    CG_UNUSED_(stage);
    for (int i = 0; i < 8; i++) {
        table[i] = cg_saturate_(cg_times_(cg_e2m1_values_[i], scales[0]));
        table[i + 8] = -table[i];
    }
    kernels->table_decode(table, in, n, out, stream);
}
/* NF4: quantiles of a normal distribution (QLoRA), and the middles between them. */
static const float cg_nf4_values_[16] = { -1.0f, -0.6961928009986877f, -0.5250730514526367f, -0.39491748809814453f,
    -0.28444138169288635f, -0.18477343022823334f, -0.09105003625154495f, 0.0f, 0.07958029955625534f,
    0.16093020141124725f, 0.24611230194568634f, 0.33791524171829224f, 0.44070982933044434f, 0.5626170039176941f,
    0.7229568362236023f, 1.0f };
static const float cg_nf4_limits_[15] = { -0.848096371f, -0.610632896f, -0.45999527f, -0.33967942f, -0.234607399f,
    -0.137911737f, -0.0455250181f, 0.0397901498f, 0.120255247f, 0.203521252f, 0.292013764f, 0.389312536f, 0.501663446f,
    0.64278692f, 0.861478448f };
CG_ENCODE_FN_(cg_encode_nf4_) {
    CG_UNUSED_(stage);
    CG_UNUSED_(key);
    CG_UNUSED_(position);
    CG_UNUSED_(lanes);
    kernels->nf4_search(cg_nf4_limits_, scales[0], v, n, out);
    return 0;
}
CG_DECODE_FN_(cg_decode_nf4_) {
    float table[16];
    CG_UNUSED_(stage);
    for (int i = 0; i < 16; i++) table[i] = cg_times_(cg_nf4_values_[i], scales[0]);
    kernels->table_decode(table, in, n, out, stream);
}
CG_ENCODE_FN_(cg_encode_dynamic_) {
    CG_UNUSED_(stage);
    CG_UNUSED_(key);
    CG_UNUSED_(position);
    CG_UNUSED_(lanes);
    kernels->dynamic8_encode(v, n, scales[0], out);
    return 0;
}
CG_DECODE_FN_(cg_decode_dynamic_) {
    CG_UNUSED_(stage);
    kernels->dynamic8_decode(in, n, scales[0], out, stream);
}
CG_ENCODE_FN_(cg_encode_dither_) {
    cg_dither_ q;
    CG_UNUSED_(lanes);
    q.inv_scale = scales[0];
    q.bits = stage->arg;
    q.stochastic = !(stage->flags & CG_FLAG_NEAREST);
    kernels->dither_encode(&q, key, position, v, n, out);
    return 0;
}
CG_DECODE_FN_(cg_decode_dither_) { kernels->dither_decode(stage->arg, scales[0], in, n, out, stream); }
CG_ENCODE_FN_(cg_encode_strom_) {
    CG_UNUSED_(scales);
    CG_UNUSED_(key);
    CG_UNUSED_(position);
    CG_UNUSED_(lanes);
    kernels->strom_encode(v, n, stage->value, out);
    return kernels->absmax_bits(v, n);
}
CG_DECODE_FN_(cg_decode_strom_) {
    float table[16] = { 0.0f };
    CG_UNUSED_(scales);
    table[0] = -stage->value;
    table[2] = stage->value;
    kernels->table_decode(table, in, n, out, stream);
}
CG_ENCODE_FN_(cg_encode_natural_) {
    CG_UNUSED_(scales);
    CG_UNUSED_(lanes);
    return kernels->natural_encode(v, n, key, position, !(stage->flags & CG_FLAG_NEAREST), out);
}
CG_DECODE_FN_(cg_decode_natural_) {
    CG_UNUSED_(stage);
    CG_UNUSED_(scales);
    kernels->natural_decode(in, n, out, stream);
}
CG_ENCODE_FN_(cg_encode_none_) {
    CG_UNUSED_(kernels);
    CG_UNUSED_(stage);
    CG_UNUSED_(scales);
    CG_UNUSED_(key);
    CG_UNUSED_(position);
    CG_UNUSED_(v);
    CG_UNUSED_(n);
    CG_UNUSED_(out);
    CG_UNUSED_(lanes);
    return 0;
}
CG_DECODE_FN_(cg_decode_mean_) {
    CG_UNUSED_(kernels);
    CG_UNUSED_(stage);
    CG_UNUSED_(in);
    CG_UNUSED_(stream);
    for (size_t i = 0; i < n; i++) cg_store_(out, i, scales[0]);
}
CG_ENCODE_FN_(cg_encode_onebit_) { /* a bucket may start anywhere: a byte each, to be packed */
    static const cg_bucketizer_ signs = { 0.0f, 0, { 0.0f }, 1 };
    CG_UNUSED_(stage);
    CG_UNUSED_(scales);
    CG_UNUSED_(key);
    CG_UNUSED_(position);
    CG_UNUSED_(lanes);
    kernels->bucketize(&signs, v, n, out, NULL, NULL);
    return 0;
}
CG_DECODE_FN_(cg_decode_onebit_) {
    float table[16] = { 0.0f };
    CG_UNUSED_(stage);
    table[0] = scales[1];
    table[1] = scales[0];
    kernels->table_decode(table, in, n, out, stream);
}

/* src/core/quantize/lloyd.h */
/* Lloyd-Max for a normal distribution: centres and the middles between them, by magnitude. */
static const float cg_lloyd_centroids_[4][8] = {
    { 0.797884561f },
    { 0.452780035f, 1.51041762f },
    { 0.245094183f, 0.756005281f, 1.34390925f, 2.15194571f },
    { 0.128394938f, 0.388048258f, 0.656759118f, 0.942340345f, 1.25623121f, 1.61804638f, 2.06901694f, 2.73258957f },
};
static cg_bucketizer_ cg_lloyd_thresholds_(unsigned bits) {
    cg_bucketizer_ g;
    g.inv_scale = 0.0f;
    g.limit_count = (1 << (bits - 1)) - 1;
    g.sign_bit = (uint8_t)(1u << (bits - 1));
    for (int i = 0; i < g.limit_count; i++)
        g.limit[i] =
            (float)(((double)cg_lloyd_centroids_[bits - 1][i] + (double)cg_lloyd_centroids_[bits - 1][i + 1]) * 0.5);
    return g;
}
/* Of a block of 1024 so many values have a bit more than the others: any of them, as they have been mixed. */
static size_t cg_lloyd_extra_bit_n_(const cg_stage *stage) { return (size_t)((int)(stage->value * 32.0f) % 32) * 32; }

CG_ENCODE_FN_(cg_encode_lloyd_) { /* one bucket of CG_ROTATE_BLOCK_ values; scales[0]: their norm */
    const size_t finer = cg_lloyd_extra_bit_n_(stage), split[3] = { 0, finer, n };
    const unsigned low = (unsigned)stage->value;
    uint8_t symbols[CG_ROTATE_BLOCK_];
    CG_UNUSED_(key);
    CG_UNUSED_(position);
    if (low == 1 && !finer) { /* centres are of one size: the sum of magnitudes does */
        kernels->sign_encode(v, n, out, lanes);
        for (int i = 0; i < 16; i++)
            lanes[i] *= (double)cg_lloyd_centroids_[0][0] * (cg_is_tiny_(scales[0]) ? (double)CG_POW2_100_ : 1.0);
        return 0;
    }
    for (int part = 0; part < 2; part++) {
        const unsigned bits = part == 0 ? low + 1 : low;
        const size_t from = split[part], many = split[part + 1] - from;
        cg_bucketizer_ g;
        if (!many) continue;
        g = cg_lloyd_thresholds_(bits);
        {
            const float *w = cg_at_(v, from);
            const float norm = scales[0];
            float lifted[256];
            for (size_t at = 0, some; at < many; at += some) {
                const float *u = cg_at_(w, at);
                float scale = norm;
                some = many - at;
                if (cg_is_tiny_(norm)) {
                    some = cg_min_(some, 256);
                    scale = cg_times_(norm, CG_POW2_100_);
                    for (size_t i = 0; i < some; i++) lifted[i] = cg_times_(cg_load_(u, i), CG_POW2_100_);
                    u = lifted;
                }
                g.inv_scale = cg_ratio_or_zero_(32.0f, scale);
                kernels->bucketize(&g, u, some, symbols + from + at, cg_lloyd_centroids_[bits - 1], lanes);
            }
        }
        kernels->pack(symbols + from, many, bits, out);
        out += many / 8 * bits;
    }
    return 0;
}
static void cg_set_scales_l2norm_(const cg_stage *stage, const cg_bucket_stats_ *stat, float *scales) {
    (void)stage;
    scales[0] = cg_saturate64_(cg_sqrt_(stat->sums[0]));
}
/* Unbiased: |z|^2 / <centres, z>. A lifted block's product is 2^100 too large. */
static void cg_rescale_lloyd_(const cg_bucket_stats_ *stat, double total, float *scales) {
    if (cg_is_tiny_(scales[0])) total *= (double)CG_POW2_MINUS_100_;
    scales[0] = total > 0.0 ? cg_saturate64_(stat->sums[0] / total) : 0.0f;
}
CG_DECODE_FN_(cg_decode_lloyd_) {
    const size_t finer = cg_lloyd_extra_bit_n_(stage), split[3] = { 0, finer, n };
    const unsigned low = (unsigned)stage->value;
    uint8_t symbols[CG_ROTATE_BLOCK_];
    if (low == 1 && !finer) {
        kernels->sign_decode(in, n, cg_saturate_(cg_times_(scales[0], cg_lloyd_centroids_[0][0])), out, stream);
        return;
    }
    for (int part = 0; part < 2; part++) {
        const unsigned bits = part == 0 ? low + 1 : low, half = 1u << (bits - 1);
        const size_t from = split[part], many = split[part + 1] - from;
        float table[16] = { 0.0f };
        if (!many) continue;
        for (unsigned i = 0; i < half; i++) {
            table[i] = cg_saturate_(cg_times_(scales[0], cg_lloyd_centroids_[bits - 1][i]));
            table[i + half] = -table[i];
        }
        kernels->unpack(in, many, bits, symbols);
        kernels->table_decode(table, symbols, many, cg_at_mut_(out, from), stream);
        in += many / 8 * bits;
    }
}

/* src/core/quantize/rows.h */
#define CG_ENCODE_PLAIN_(name, kernel)                                                                      \
  static uint32_t name(const cg_kernels_ *kernels, const cg_stage *stage, const float *scales, cg_key_ key, \
      uint32_t position, const float *v, size_t n, uint8_t *out, double *lanes) {                           \
    (void)stage;                                                                                            \
    (void)scales;                                                                                           \
    (void)key;                                                                                              \
    (void)position;                                                                                         \
    (void)lanes;                                                                                            \
    return kernels->kernel;                                                                                 \
  }
CG_ENCODE_PLAIN_(cg_encode_f32_, copy(v, n, out))
CG_ENCODE_PLAIN_(cg_encode_f16_, f16_encode(v, n, out))
CG_ENCODE_PLAIN_(cg_encode_bf16_, bf16_encode(v, n, out))
CG_ENCODE_PLAIN_(cg_encode_sign_, sign_encode(v, n, out, NULL))
CG_ENCODE_PLAIN_(cg_encode_efsign_, sign_encode(v, n, out, lanes))
#undef CG_ENCODE_PLAIN_

#define CG_DECODE_PLAIN_(name, statement)                                                                     \
  static void name(const cg_kernels_ *kernels, const cg_stage *stage, const float *scales, const uint8_t *in, \
      size_t n, float *out, int stream) {                                                                     \
    (void)kernels;                                                                                            \
    (void)stage;                                                                                              \
    (void)scales;                                                                                             \
    (void)stream;                                                                                             \
    statement;                                                                                                \
  }
CG_DECODE_PLAIN_(cg_decode_f32_, for (size_t i = 0; i < n; i++) cg_store_(out, i, cg_as_float_(cg_get32_(in + 4 * i))))
CG_DECODE_PLAIN_(cg_decode_f16_, kernels->f16_decode(in, n, out, stream))
CG_DECODE_PLAIN_(cg_decode_bf16_, kernels->bf16_decode(in, n, out, stream))
CG_DECODE_PLAIN_(cg_decode_sign_, kernels->sign_decode(in, n, 1.0f, out, stream))
CG_DECODE_PLAIN_(cg_decode_efsign_, kernels->sign_decode(in, n, scales[0], out, stream))
#undef CG_DECODE_PLAIN_

static uint32_t cg_stored_absmax_bits_f32_(const cg_kernels_ *kernels, const uint8_t *in, size_t n) {
#if CG_BIG_ENDIAN_
    uint32_t top = 0;
    (void)kernels;
    for (size_t i = 0; i < n; i++) top = cg_max32_(top, cg_get32_(in + 4 * i) & CG_ABS_MASK_);
    return top;
#else
    return kernels->absmax_bits((const float *)(const void *)in, n);
#endif
}
static uint32_t cg_stored_absmax_bits_16_(const cg_kernels_ *kernels, const uint8_t *in, size_t n) {
    return kernels->absmax16_bits(in, n);
}

#define CG_SCALE_F32_ 4
#define CG_SCALE_E8M0_ 1
static const cg_quantizer_ cg_quantizers_[] = {
    { 0, CG_NEEDS_NOTHING_, 0, CG_SCALE_F32_, 32, CG_OUTPUT_PACKED_, 0, NULL, NULL, NULL, NULL, cg_encode_f32_, NULL,
        cg_decode_f32_, cg_stored_absmax_bits_f32_, CG_INF_BITS_ },
    { CG_QUANTIZE_F16, CG_NEEDS_NOTHING_, 0, CG_SCALE_F32_, 16, CG_OUTPUT_PACKED_, 0, NULL, NULL, NULL, NULL,
        cg_encode_f16_, NULL, cg_decode_f16_, cg_stored_absmax_bits_16_, 0x7c00 },
    { CG_QUANTIZE_BF16, CG_NEEDS_NOTHING_, 0, CG_SCALE_F32_, 16, CG_OUTPUT_PACKED_, 0, NULL, NULL, NULL, NULL,
        cg_encode_bf16_, NULL, cg_decode_bf16_, cg_stored_absmax_bits_16_, 0x7f80 },
    { CG_QUANTIZE_NATURAL, CG_NEEDS_NOTHING_, 0, CG_SCALE_F32_, 9, CG_OUTPUT_PACKED_, 0, NULL, NULL, NULL, NULL,
        cg_encode_natural_, NULL, cg_decode_natural_, NULL, 0 },
    { CG_QUANTIZE_STROM, CG_NEEDS_NOTHING_, 0, CG_SCALE_F32_, 2, CG_OUTPUT_SYMBOLS_, 0, NULL, NULL, NULL, NULL,
        cg_encode_strom_, NULL, cg_decode_strom_, NULL, 0 },
    { CG_QUANTIZE_SIGN, CG_NEEDS_NOTHING_, 0, CG_SCALE_F32_, 1, CG_OUTPUT_PACKED_, 0, NULL, NULL, NULL, NULL,
        cg_encode_sign_, NULL, cg_decode_sign_, NULL, 0 },
    { CG_QUANTIZE_EFSIGN, CG_NEEDS_SUM_AFTERWARDS_, 1, CG_SCALE_F32_, 1, CG_OUTPUT_PACKED_, 0, NULL, NULL,
        cg_legal_magnitude_, NULL, cg_encode_efsign_, NULL, cg_decode_efsign_, NULL, 0 },
#define CG_ROW_(id, scales, width, bits, output, bucket, measure, set, legal, full_scale, encode, rescale, decode)    \
  {                                                                                                                   \
    id, CG_NEEDS_BUCKET_STATS_, scales, width, bits, output, bucket, cg_measure_##measure##_, cg_set_scales_##set##_, \
        cg_legal_##legal##_, full_scale, cg_encode_##encode##_, rescale, cg_decode_##decode##_, NULL, 0               \
  }
    CG_ROW_(CG_QUANTIZE_ABSMAX, 1, CG_SCALE_F32_, 0, CG_OUTPUT_SYMBOLS_, 0, absmax, absmax, magnitude, NULL, levels,
        NULL, levels),
    CG_ROW_(CG_QUANTIZE_TERNGRAD, 1, CG_SCALE_F32_, 2, CG_OUTPUT_SYMBOLS_, 0, ternary, ternary, magnitude, NULL, levels,
        NULL, levels),
    CG_ROW_(CG_QUANTIZE_MINMAX, 2, CG_SCALE_F32_, 0, CG_OUTPUT_SYMBOLS_, 0, range, range, range, NULL, levels, NULL,
        levels),
    CG_ROW_(CG_QUANTIZE_LEVELS, 1, CG_SCALE_F32_, 0, CG_OUTPUT_SYMBOLS_, 0, norm, norm, magnitude, NULL, levels, NULL,
        levels),
    CG_ROW_(CG_QUANTIZE_FLEXPOINT, 1, CG_SCALE_F32_, 0, CG_OUTPUT_SYMBOLS_, 0, absmax, pow2, magnitude, NULL, levels,
        NULL, levels),
    CG_ROW_(CG_QUANTIZE_FLEX16, 1, CG_SCALE_F32_, 16, CG_OUTPUT_PACKED_, 0, absmax, pow2, magnitude, NULL, steps16,
        NULL, steps16),
    CG_ROW_(CG_QUANTIZE_TRITS, 1, CG_SCALE_F32_, 2, CG_OUTPUT_SYMBOLS_, 0, absmax, threelc, magnitude, NULL, levels,
        NULL, levels),
    CG_ROW_(CG_QUANTIZE_ONEBIT, 2, CG_SCALE_F32_, 1, CG_OUTPUT_SYMBOLS_, 0, signed_sums, signed_means, finite2, NULL,
        onebit, NULL, onebit),
    CG_ROW_(
        CG_QUANTIZE_MEAN, 1, CG_SCALE_F32_, 0, CG_OUTPUT_PACKED_, 0, signed_sums, mean, finite, NULL, none, NULL, mean),
    CG_ROW_(CG_QUANTIZE_DITHER, 1, CG_SCALE_F32_, 0, CG_OUTPUT_SYMBOLS_, 0, norm, norm, magnitude, cg_full_scale_one_,
        dither, NULL, dither),
    CG_ROW_(CG_QUANTIZE_DYNAMIC8, 1, CG_SCALE_F32_, 8, CG_OUTPUT_SYMBOLS_, 0, absmax, absmax, magnitude,
        cg_full_scale_one_, dynamic, NULL, dynamic),
    CG_ROW_(CG_QUANTIZE_E4M3, 1, CG_SCALE_F32_, 8, CG_OUTPUT_SYMBOLS_, 0, absmax, absmax, magnitude, cg_full_scale_fp8_,
        fp8, NULL, fp8),
    CG_ROW_(CG_QUANTIZE_E5M2, 1, CG_SCALE_F32_, 8, CG_OUTPUT_SYMBOLS_, 0, absmax, absmax, magnitude, cg_full_scale_fp8_,
        fp8, NULL, fp8),
    CG_ROW_(CG_QUANTIZE_MXFP4, 1, CG_SCALE_E8M0_, 4, CG_OUTPUT_SYMBOLS_, 32, absmax, mx, magnitude, cg_full_scale_one_,
        mx4, NULL, mx4),
    CG_ROW_(CG_QUANTIZE_MXE4M3, 1, CG_SCALE_E8M0_, 8, CG_OUTPUT_SYMBOLS_, 32, absmax, mx, magnitude, cg_full_scale_one_,
        fp8, NULL, mx8),
    CG_ROW_(CG_QUANTIZE_MXE5M2, 1, CG_SCALE_E8M0_, 8, CG_OUTPUT_SYMBOLS_, 32, absmax, mx, magnitude, cg_full_scale_one_,
        fp8, NULL, mx8),
    CG_ROW_(CG_QUANTIZE_NF4, 1, CG_SCALE_F32_, 4, CG_OUTPUT_SYMBOLS_, 0, absmax, absmax, magnitude, cg_full_scale_one_,
        nf4, NULL, nf4),
    CG_ROW_(CG_QUANTIZE_LLOYD, 1, CG_SCALE_F32_, 0, CG_OUTPUT_PACKED_, CG_ROTATE_BLOCK_, norm, l2norm, magnitude, NULL,
        lloyd, cg_rescale_lloyd_, lloyd),
#undef CG_ROW_
};
static const cg_quantizer_ *cg_quantizer_of_(const cg_stage *q) {
    for (size_t i = 0; i < sizeof cg_quantizers_ / sizeof cg_quantizers_[0]; i++)
        if (cg_quantizers_[i].id == q->id) return &cg_quantizers_[i];
    return NULL;
}
/* Bits per value, in 32nds. */
static unsigned cg_bits_x32_of_(const cg_quantizer_ *row, const cg_stage *q) {
    unsigned bits = 0;
    if (row->id == CG_QUANTIZE_LLOYD) return (unsigned)(q->value * 32.0f);
    if (row->id == CG_QUANTIZE_MEAN) return 0;
    if (row->id == CG_QUANTIZE_LEVELS) {
        while (1u << bits < 2u * q->arg + 1u) bits++;
        return 32 * bits;
    }
    return 32u * (row->bits ? row->bits : q->arg);
}
/* The symbols of a quantizer that a code could carry; 0: it has none. */
static int cg_alphabet_of_(const cg_stage *q, cg_alphabet_ *a) {
    const cg_quantizer_ *row = cg_is_user_codec_(q) ? NULL : cg_quantizer_of_(q);
    if (!row || row->output != CG_OUTPUT_SYMBOLS_) return 0;
    a->bits = cg_bits_x32_of_(row, q) / 32;
    a->max_symbol = (uint8_t)((1u << a->bits) - 1u);
    a->zero_symbol = 0;
    if (row->encode == cg_encode_levels_) {
        float scales[2] = { 1.0f, 1.0f };
        cg_levels_ grid = cg_levels_make_(q, scales);
        a->max_symbol = (uint8_t)grid.max_symbol;
        a->zero_symbol = (uint8_t)grid.zero_symbol;
    } else if (q->id == CG_QUANTIZE_STROM) {
        a->max_symbol = 2;
        a->zero_symbol = 1;
    }
    return 1;
}
/* whose exponents can be coded */
static unsigned cg_float_width_(const cg_stage *q) { return q->id == 0 ? 4 : q->id == CG_QUANTIZE_BF16 ? 2 : 0; }
static int cg_value_code_fits_(const cg_op *op) {
    cg_alphabet_ a;
    if (op->code.arg == CG_CODE_HUFFMAN - CG_CODE_PACKED && cg_float_width_(&op->quantize)) return 1;
    return cg_alphabet_of_(&op->quantize, &a) && cg_code_fits_alphabet_(op->code.arg, &a);
}

/* src/core/layout.h */
/* What a quantizer writes for k values. */
typedef struct cg_layout_ {
    const cg_quantizer_ *quantizer; /* NULL: a codec of the user's */
    const cg_codec *codec;
    unsigned bits_x32;   /* bits per value, times 32 */
    unsigned value_code; /* 0: packed; else pieces of variable size */
    cg_alphabet_ alphabet;
    size_t piece_values; /* values in one */
    uint64_t k, bucket_size, bucket_count, scale_bytes;
    uint64_t piece_table_bytes, codes_bytes; /* of all pieces; with a code code_bytes is the most */
} cg_layout_;

/* first is a multiple of 1024 */
CG_INLINE_ size_t cg_codes_offset_(const cg_layout_ *lay, size_t first) { return first / 256 * lay->bits_x32; }
CG_INLINE_ size_t cg_codes_words_(const cg_layout_ *lay, size_t many) {
    return (size_t)cg_word_bytes_((uint64_t)many * lay->bits_x32 / 32) / 4;
}

static cg_status cg_extra_check_(const cg_op *op, const cg_extra *side) {
    if (!side) return CG_OK;
    if (side->flags & ~(uint32_t)CG_DECODE_DIRECT) return CG_E_ARG;
    if (side->support_len && !side->support) return CG_E_ARG;
    if (side->aux && op && op->select.id != CG_SELECT_BINS && op->select.id != CG_SELECT_VARIANCE)
        return CG_E_UNSUPPORTED;
    if (side->support && op && op->select.id != CG_SELECT_GIVEN) return CG_E_UNSUPPORTED;
    if (side->scale && op &&
        (cg_is_user_codec_(&op->quantize) || !cg_quantizer_of_(&op->quantize)->scale_count ||
            op->quantize.id == CG_QUANTIZE_LLOYD))
        return CG_E_UNSUPPORTED;
    return CG_OK;
}
static cg_status cg_layout_make_(const cg_op *op, const cg_extra *side, uint64_t k, cg_layout_ *lay) {
    const cg_stage *q = &op->quantize;
    memset(lay, 0, sizeof *lay);
    lay->k = k;
    if (cg_is_user_codec_(q)) {
        for (size_t i = 0; side && side->codecs && i < side->codec_count; i++)
            if (side->codecs[i] && side->codecs[i]->id == q->id) lay->codec = side->codecs[i];
        return lay->codec ? CG_OK : CG_E_VERSION;
    }
    lay->quantizer = cg_quantizer_of_(q);
    if (!lay->quantizer) return CG_E_VERSION;
    lay->bits_x32 = cg_bits_x32_of_(lay->quantizer, q);
    /* no size: one bucket */
    lay->bucket_size = lay->quantizer->fixed_bucket ? lay->quantizer->fixed_bucket
        : q->size && q->size < k                    ? q->size
        : k                                         ? k
                                                    : 1;
    lay->bucket_count = lay->quantizer->needs == CG_NEEDS_NOTHING_ ? 0
                                                                   : k / lay->bucket_size + (k % lay->bucket_size != 0);
    lay->scale_bytes = cg_mul_sat_(
        lay->bucket_count, (uint64_t)lay->quantizer->scale_count * lay->quantizer->scale_width);
    lay->scale_bytes = cg_add_sat_(lay->scale_bytes, 3) & ~(uint64_t)3;
    lay->codes_bytes = cg_word_bytes_(cg_add_sat_(cg_mul_sat_(k / 32, lay->bits_x32), k % 32 * lay->bits_x32 / 32));
    lay->value_code = op->code.arg;
    if (lay->value_code) {
        lay->piece_values = cg_float_width_(q) ? CG_CHUNK_ : CG_PIECE_SYMBOLS_;
        if (!cg_float_width_(q)) cg_alphabet_of_(q, &lay->alphabet);
        lay->piece_table_bytes = 4 * (k / lay->piece_values + (k % lay->piece_values != 0));
    }
    return CG_OK;
}

/* src/core/sample.h */
/* ---- >>sample: which coordinates random-k draws, one from each of k strata ---- */

static uint64_t cg_stratum_start_(uint64_t n, uint64_t k, uint64_t j) { /* floor(j*n/k), j <= k */
    uint64_t r, q, rest = 0;
    if ((n | j) >> 32 == 0) return j * n / k;
    q = n / k;
    r = n % k;
    for (uint64_t bit = (uint64_t)1 << 63, part = 0; bit; bit >>= 1) { /* j*r/k bit by bit; part < k throughout */
        rest <<= 1;
        if (part >= k - part) {
            part -= k - part;
            rest++;
        } else part += part;
        if (j & bit) {
            if (part >= k - r) {
                part -= k - r;
                rest++;
            } else part += r;
        }
    }
    return j * q + rest;
}
static uint64_t cg_mulhi64_(uint64_t a, uint64_t b) { /* upper half of a*b */
    uint64_t al = a & 0xffffffffu, ah = a >> 32, bl = b & 0xffffffffu, bh = b >> 32;
    uint64_t mid = ah * bl + (al * bl >> 32), mid2 = al * bh + (mid & 0xffffffffu);
    return ah * bh + (mid >> 32) + (mid2 >> 32);
}
/* Stratum after stratum: [start, start + length) is the j-th, rest = j*n mod k. */
typedef struct cg_strata_ {
    uint64_t n, k, base_length, longer_n; /* n = each*k + extra */
    uint64_t stratum, start, remainder, length;
    uint64_t key;
    cg_key_ block_key;
    uint32_t permk_workers, rank; /* PermK: strata are groups of so many neighbours; 0: random-k */
} cg_strata_;

static void cg_strata_seek_(cg_strata_ *s, uint64_t j) {
    s->stratum = j;
    if (s->permk_workers) {
        s->start = j * s->permk_workers;
        return;
    }
    s->start = cg_stratum_start_(s->n, s->k, j);
    s->remainder = j * s->n - s->start * s->k; /* less than k, so wrapping does no harm */
    s->length = s->base_length + (s->longer_n >= s->k - s->remainder);
    s->block_key = cg_block_key_(s->key, j >> 16);
}
static void cg_strata_open_(cg_strata_ *s, const cg_info *info, uint64_t j) {
    s->n = info->n;
    s->k = info->drawn;
    s->key = cg_shared_key_(&info->tag);
    s->rank = info->tag.rank;
    s->permk_workers = info->op.sample.id == CG_SAMPLE_PERMK ? info->op.sample.size : 0;
    s->base_length = s->n / s->k;
    s->longer_n = s->n % s->k;
    s->length = s->permk_workers;
    cg_strata_seek_(s, j);
}
CG_INLINE_ void cg_strata_next_(cg_strata_ *s) {
    if (s->permk_workers) {
        s->stratum++;
        s->start += s->permk_workers;
        return;
    }
    s->start += s->length;
    s->remainder = s->longer_n >= s->k - s->remainder ? s->remainder - (s->k - s->longer_n)
                                                      : s->remainder + s->longer_n;
    s->length = s->base_length + (s->longer_n >= s->k - s->remainder);
    if ((++s->stratum & 0xffff) == 0) s->block_key = cg_block_key_(s->key, s->stratum >> 16);
}
/* Which coordinate of the stratum is drawn. */
CG_INLINE_ uint64_t cg_strata_sample_(const cg_strata_ *s) {
    uint32_t c = (uint32_t)(s->stratum & 0xffff), h = cg_hash32_(s->block_key, c);
    cg_key_ swapped;
    if (s->permk_workers) return s->start + cg_permk_index_(s->key, s->stratum, s->permk_workers, s->rank);
    if (CG_LIKELY_(s->length >> 32 == 0)) return s->start + ((uint64_t)h * s->length >> 32);
    swapped.a = s->block_key.b;
    swapped.b = s->block_key.a;
    return s->start + cg_mulhi64_((uint64_t)h << 32 | cg_hash32_(swapped, c), s->length);
}

/* src/core/transform.h */
/* ---- >>transform: blocks of 1024 rotated, or of 64 to frequencies, and back ---- */

#define CG_ROTATE_SIGN_KEY_ 0x6A09E667F3BCC909u /* signs of a rotation are not the draws of a sample */

/* One block, from where it lies. Sums of 2^10 values, twice, must not overflow. */
static void cg_transform_block_(const cg_kernels_ *kernels, const cg_stage *stage, uint64_t key, uint64_t block,
    const float *from, float *v, int inverse) {
    const int rotate = stage->id == CG_TRANSFORM_ROTATE;
    const size_t unit = rotate ? CG_ROTATE_BLOCK_ : CG_DCT_BLOCK_;
    const uint32_t top = kernels->absmax_bits(from, unit);
    const int huge = top >= 0x75000000u && top < CG_INF_BITS_; /* 2^107 */
    /* 2^-20 */
    if (huge)
        for (size_t i = 0; i < unit; i++) v[i] = cg_times_(cg_load_(from, i), 9.5367431640625e-07f);
    if (rotate) {
        uint32_t flips[64];
        const cg_key_ k = cg_block_key_(key ^ CG_ROTATE_SIGN_KEY_, block);
        for (uint32_t i = 0; i < 32u * stage->arg; i++) flips[i] = cg_hash32_(k, i);
        kernels->rotate_from(huge ? v : from, v, flips, stage->arg, inverse);
    } else {
        if (!huge && v != from) memcpy(v, from, 4 * unit);
        kernels->dct(v, inverse);
    }
    if (huge)
        for (size_t i = 0; i < unit; i++) v[i] = cg_saturate_(cg_times_(v[i], 1048576.0f));
}

/* src/core/source.h */
/* ---- >>source: the values that a stage sees, as a dense vector, piece by piece ---- */

/* Values that are still to be made, so that they are in the cache when they are read. run makes [first, first +
   many), which lie in one unit, in out, and returns the sum of their squares. */
typedef struct cg_producer_ {
    double (*make)(const void *user, size_t first, size_t many, float *out);
    const void *user;
    /* so many, asked for a unit at a time (a chunk or a block), each once: out is where they belong */
    size_t n, step;
    /* they belong nowhere: any stretch of a chunk is asked for, at any time, into a buffer */
    int lazy;
    uint32_t threshold_hint; /* top-k: a magnitude that more than k are expected to reach, or 0 */
    int started;             /* comes back, unless lazy: some or all have been made, */
    double energy;           /* and the sum of their squares */
    size_t reached_hint;     /* comes back: how many reached the hint */
} cg_producer_;

typedef struct cg_source_ {
    cg_producer_ *producer; /* NULL: they are there */
    const cg_kernels_ *kernels;
    const cg_info *info;
    const float *x;              /* the values themselves; or, drawn, where to draw them from */
    uint64_t count;              /* before a transform */
    int to_sample, to_transform; /* still to be drawn, still to be transformed */
} cg_source_;

static int cg_source_is_lazy_(const cg_source_ *src) { return src->producer && src->producer->lazy; }
/* Values [first, first + many) of x, or where that is NULL of what `lazy` makes, in buf. */
static const float *cg_values_view_(const float *x, const cg_producer_ *lazy, size_t first, size_t many, float *buf) {
    if (x) return cg_at_(x, first);
    lazy->make(lazy->user, first, many, buf);
    return buf;
}
static double cg_producer_make_(const cg_producer_ *fill, size_t first, size_t unit, float *x) {
    return first < fill->n ? fill->make(fill->user, first, cg_min_(unit, fill->n - first), cg_at_mut_(x, first)) : 0.0;
}

/* At most CG_CHUNK_ values from `first` on: in place, or gathered into buf. */
static const float *cg_source_gather_(const cg_source_ *src, size_t first, size_t count, float *buf) {
    size_t at[64];
    cg_strata_ strata;
    const int scaled = !(src->info->op.sample.flags & CG_FLAG_UNSCALED);
    if (cg_source_is_lazy_(src) && !src->to_sample) src->producer->make(src->producer->user, first, count, buf);
    if (!src->to_sample) return cg_source_is_lazy_(src) ? buf : cg_at_(src->x, first);
    cg_strata_open_(&strata, src->info, first);
    for (size_t i = 0; i < count; i += 64) { /* ask for 64 cache lines before waiting for the first */
        size_t many = cg_min_(64, count - i);
        for (size_t j = 0; j < many; j++, cg_strata_next_(&strata)) {
            at[j] = (size_t)cg_strata_sample_(&strata);
            if (!cg_source_is_lazy_(src)) CG_PREFETCH_(cg_at_(src->x, at[j]));
            buf[i + j] = scaled ? (float)strata.length : 1.0f;
        }
        for (size_t j = 0; j < many; j++) {
            float f;
            if (cg_source_is_lazy_(src)) src->producer->make(src->producer->user, at[j], 1, &f);
            else f = cg_load_(src->x, at[j]);
            buf[i + j] = cg_is_finite_(f) ? cg_saturate_(cg_times_(f, buf[i + j])) : f;
        }
    }
    return buf;
}
/* The same behind the transform; the values must lie in one chunk. buf has room for CG_CHUNK_. */
static const float *cg_source_fetch_(const cg_source_ *src, size_t first, size_t count, float *buf) {
    const cg_stage *stage = &src->info->op.transform;
    const uint64_t key = cg_shared_key_(&src->info->tag);
    const int made = src->to_sample || cg_source_is_lazy_(src);
    size_t unit, base, end, have;
    if (!src->to_transform) return cg_source_gather_(src, first, count, buf);
    unit = stage->id == CG_TRANSFORM_ROTATE ? CG_ROTATE_BLOCK_ : CG_DCT_BLOCK_;
    base = first / unit * unit;
    end = (first + count + unit - 1) / unit * unit;
    have = cg_min_(end, (size_t)src->count) - base;
    if (made) cg_source_gather_(src, base, have, buf);
    for (size_t b = base; b < end; b += unit) {
        float *v = buf + (b - base);
        const float *from = made ? v : cg_at_(src->x, b);
        if (b - base + unit > have) { /* the last block is filled with zeros */
            size_t some = have - (b - base);
            if (!made) memcpy(v, from, 4 * some);
            memset(v + some, 0, 4 * (unit - some));
            from = v;
        }
        cg_transform_block_(src->kernels, stage, key, b / unit, from, v, 0);
    }
    return buf + (first - base);
}

/* src/core/select/topk.h */
/* ---- >>select: (index, value) lists in scratch ---- */

typedef struct cg_list_ {
    uint32_t *index_low; /* index modulo 2^32, ascending */
    float *value;
    uint64_t *segment_start; /* segment[s]: how many entries have an index below s*2^32 */
    uint64_t segment_count;
    size_t count, capacity;
    int has_all_ties;   /* 0: of the last to be taken some equals were left out */
    int sum_magnitudes; /* 1: filtering sums the magnitudes of everything into total, part after part */
    double magnitude_sum, block_sum;
    float *materialized; /* the sample, where a selection follows it */
} cg_list_;

static size_t cg_list_capacity_(const cg_op *op, uint64_t turned) {
    uint64_t room = turned;
    if (cg_has_fixed_k_(op) || op->select.id == CG_SELECT_DGC || op->select.id == CG_SELECT_SIDCO)
        room = cg_add_sat_(cg_mul_sat_(cg_max_selected_(op, turned), 2), CG_BLOCK_);
    /* a chunk's candidates beside what has been taken */
    if (op->select.id == CG_SELECT_CHUNKED) room = cg_add_sat_(cg_max_selected_(op, turned), op->select.size);
    return (size_t)(room < turned ? room : turned);
}
/* a chunk may overshoot the room before it is seen */
static uint64_t cg_list_allocated_n_(uint64_t room, uint64_t turned) {
    return cg_add_sat_(room, room < turned ? CG_CHUNK_ + CG_SLACK_ : CG_SLACK_);
}
static int cg_needs_materialized_(const cg_op *op) { /* must a selection or a codec see them all at once, beside x? */
    return !cg_is_matrix_op_(op) && (op->sample.id || op->transform.id) &&
        (op->select.id || cg_is_user_codec_(&op->quantize));
}
static uint64_t cg_scratch_bytes_(const cg_op *op, uint64_t n) {
    uint64_t drawn = cg_sampled_n_(op, n, NULL), turned = cg_transformed_n_(op, drawn), bytes = 0;
    if (op->select.id) {
        bytes = cg_mul_sat_(8, cg_list_allocated_n_(cg_list_capacity_(op, turned), turned));
        bytes = cg_add_sat_(bytes, 8 * ((turned >> 32) + 2));
    }
    if (cg_needs_materialized_(op)) bytes = cg_add_sat_(bytes, cg_mul_sat_(4, turned));
    if (cg_is_matrix_op_(op)) bytes = cg_add_sat_(cg_mul_sat_(4, cg_add_sat_(turned, 2)), cg_matrix_work_bytes_(op));
    return bytes ? cg_add_sat_(bytes, 64) : 0;
}
static void cg_list_in_scratch_(cg_list_ *list, const cg_op *op, uint64_t turned, void *scratch) {
    uint8_t *p;
    memset(list, 0, sizeof *list);
    if (!scratch) return;
    p = (uint8_t *)scratch + (64 - ((uintptr_t)scratch & 63)) % 64;
    if (op->select.id) {
        size_t slots;
        list->capacity = cg_list_capacity_(op, turned);
        list->segment_count = turned ? ((turned - 1) >> 32) + 1 : 1;
        slots = (size_t)cg_list_allocated_n_(list->capacity, turned);
        list->segment_start = (uint64_t *)(void *)p;
        p += 8 * (size_t)(list->segment_count + 1);
        list->index_low = (uint32_t *)(void *)p;
        p += 4 * slots;
        list->value = (float *)(void *)p;
        p += 4 * slots;
    }
    list->materialized = (float *)(void *)p;
}

/* Whose magnitudes: of all values, or only of those above or below zero (the others come out too large for any
   bound). */
typedef struct cg_sign_filter_ {
    uint32_t sign_flip, keep_mask;
} cg_sign_filter_;
static const cg_sign_filter_ cg_both_signs_ = { 0, CG_ABS_MASK_ };
CG_INLINE_ uint32_t cg_magnitude_key_(float v, cg_sign_filter_ of) {
    return (cg_as_bits_(v) ^ of.sign_flip) & of.keep_mask;
}

/* The rank-th largest magnitude (rank from 1) among those in [lo, hi]: 2048 bins at a time, until few are left to
   sort. rank becomes its rank among its equals. */
static uint32_t cg_kth_(const float *v, size_t n, size_t *rank, uint32_t lo, uint32_t hi, cg_sign_filter_ of) {
    enum { FEW = 64 };
    size_t bins[2048];
    uint32_t few[FEW];
    for (;;) {
        uint32_t width = hi - lo, shift = width >> 11 ? cg_log2_(width) - 10 : 0, bin = width >> shift;
        size_t count = 0;
        memset(bins, 0, sizeof bins[0] * (bin + 1));
        for (size_t i = 0; i < n; i++) {
            uint32_t m = cg_magnitude_key_(v[i], of) - lo;
            if (m <= width) bins[m >> shift]++;
        }
        for (; bin > 0 && bins[bin] < *rank; bin--) *rank -= bins[bin];
        lo += bin << shift;
        if (hi - lo >= 1u << shift) hi = lo + ((1u << shift) - 1u);
        if (lo == hi) return lo;
        if (bins[bin] > FEW) continue;
        for (size_t i = 0; i < n; i++) { /* insertion sort, largest first */
            uint32_t m = cg_magnitude_key_(v[i], of);
            if (m - lo <= hi - lo) {
                size_t j = count++;
                for (; j > 0 && few[j - 1] < m; j--) few[j] = few[j - 1];
                few[j] = m;
            }
        }
        lo = few[*rank - 1];
        for (count = 0; few[count] != lo; count++) {}
        *rank -= count; /* those above it */
        return lo;
    }
}
/* Moves entries [from, to) down to *kept on: those above the key, and of its equals as many as are left to take. */
static void cg_list_compact_(cg_list_ *list, size_t from, size_t to, size_t *kept, uint32_t key, size_t *left) {
    size_t k = *kept, l = *left, i = from;
    for (; i < to && l; i++) { /* equals are taken: */
        uint32_t m = cg_as_bits_(list->value[i]) & CG_ABS_MASK_;
        list->index_low[k] = list->index_low[i];
        list->value[k] = list->value[i];
        k += m >= key;
        l -= m == key;
    }
    for (; i < to; i++) { /* and no more of them */
        uint32_t m = cg_as_bits_(list->value[i]) & CG_ABS_MASK_;
        list->index_low[k] = list->index_low[i];
        list->value[k] = list->value[i];
        k += m > key;
    }
    *kept = k;
    *left = l;
}

/* All whose magnitude reaches `bound`. 0: did not fit. fill: makes the values first. */
static int cg_filter_producing_(
    const cg_kernels_ *kernels, const float *x, size_t n, uint32_t bound, cg_list_ *list, cg_producer_ *fill) {
    double energy = 0.0;
    int fits = 1;
    fill->started = 1;
    list->count = 0;
    for (size_t i = 0; i < n; i += CG_CHUNK_) {
        if (i % CG_BLOCK_ == 0) {
            fill->energy += energy;
            energy = 0.0;
        }
        energy += cg_producer_make_(fill, i, CG_CHUNK_, (float *)(uintptr_t)x);
        if (((uint64_t)i & 0xffffffffu) == 0) list->segment_start[(uint64_t)i >> 32] = list->count;
        if (fits)
            list->count += kernels->filter(cg_at_(x, i), cg_min_(CG_CHUNK_, n - i), bound, (uint32_t)i,
                list->index_low + list->count, list->value + list->count);
        fits = list->count <= list->capacity;
    }
    fill->energy += energy;
    fill->reached_hint = list->count;
    list->segment_start[list->segment_count] = list->count;
    return fits;
}
static int cg_filter_vector_(const cg_kernels_ *kernels, const float *x, size_t n, uint32_t bound, cg_list_ *list) {
    list->count = 0;
    list->magnitude_sum = list->block_sum = 0.0;
    for (size_t i = 0; i < n; i += CG_CHUNK_) {
        if (((uint64_t)i & 0xffffffffu) == 0) list->segment_start[(uint64_t)i >> 32] = list->count;
        if (list->sum_magnitudes) {
            if (i % CG_BLOCK_ == 0) {
                list->magnitude_sum += list->block_sum;
                list->block_sum = 0.0;
            }
            list->block_sum += cg_lane_sum_of_(kernels, cg_at_(x, i), cg_min_(CG_CHUNK_, n - i), CG_SUM_ABS_);
        }
        list->count += kernels->filter(cg_at_(x, i), cg_min_(CG_CHUNK_, n - i), bound, (uint32_t)i,
            list->index_low + list->count, list->value + list->count);
        if (list->count > list->capacity) return 0;
    }
    list->segment_start[list->segment_count] = list->count;
    list->magnitude_sum += list->block_sum;
    return 1;
}
#if defined(COMPGRAD_OPENMP) && defined(_OPENMP)
#  include <omp.h>
static int cg_thread_count_(void) {
    const int many = omp_get_max_threads();
    return many < 1 ? 1 : many > 64 ? 64 : many;
}
#  define CG_PARALLEL_ _Pragma("omp parallel for schedule(static, 1) if (many > 1)")
#  define CG_CODED_WAVE_ CG_WAVE_
#else
CG_INLINE_ int cg_thread_count_(void) { return 1; } /* threads, at most 64 */
#  define CG_PARALLEL_
#  define CG_CODED_WAVE_ 1u /* one block after the other stands where it stays */
#endif

/* The same of values that are made on the way. With threads each has a part of the vector and of the list. */
CG_NOINLINE_ size_t cg_filter_slice_(const cg_kernels_ *kernels, const cg_producer_ *lazy, size_t first, size_t end,
    uint32_t bound, const cg_list_ *list, size_t at, size_t room) {
    float buf[CG_CHUNK_];
    size_t count = 0;
    cg_fenv_ env = cg_fenv_enter_();
    for (size_t i = first; i < end && count + CG_CHUNK_ + CG_SLACK_ <= room; i += CG_CHUNK_) {
        const size_t many = cg_min_(CG_CHUNK_, end - i);
        count += kernels->filter(cg_values_view_(NULL, lazy, i, many, buf), many, bound, (uint32_t)i,
            list->index_low + at + count, list->value + at + count);
    }
    cg_fenv_leave_(env);
    return count + CG_CHUNK_ + CG_SLACK_ <= room ? count : SIZE_MAX;
}
/* 0: did not fit, or one thread */
static int cg_filter_threaded_(
    const cg_kernels_ *kernels, const cg_producer_ *lazy, size_t n, uint32_t bound, cg_list_ *list) {
    const int many = cg_thread_count_();
    const size_t room = list->capacity / (size_t)many, each = (n / (size_t)many / CG_CHUNK_ + 1) * CG_CHUNK_;
    size_t count[64];
    if (many < 2 || n < CG_BLOCK_ * (size_t)many || list->segment_count > 1) return 0;
    CG_PARALLEL_
    for (int i = 0; i < many; i++)
        count[i] = cg_filter_slice_(kernels, lazy, cg_min_(n, each * (size_t)i), cg_min_(n, each * (size_t)(i + 1)),
            bound, list, room * (size_t)i, room);
    for (int i = 0; i < many; i++)
        if (count[i] == SIZE_MAX) return 0;
    list->count = 0;
    for (int i = 0; i < many; i++) {
        memmove(list->index_low + list->count, list->index_low + room * (size_t)i, 4 * count[i]);
        memmove(list->value + list->count, list->value + room * (size_t)i, 4 * count[i]);
        list->count += count[i];
    }
    list->segment_start[0] = 0;
    list->segment_start[1] = list->count;
    return 1;
}
CG_NOINLINE_ int cg_filter_serial_(
    const cg_kernels_ *kernels, const cg_producer_ *lazy, size_t n, uint32_t bound, cg_list_ *list) {
    float buf[CG_CHUNK_];
    list->count = 0;
    for (size_t i = 0; i < n; i += CG_CHUNK_) {
        const size_t many = cg_min_(CG_CHUNK_, n - i);
        if (((uint64_t)i & 0xffffffffu) == 0) list->segment_start[(uint64_t)i >> 32] = list->count;
        list->count += kernels->filter(cg_values_view_(NULL, lazy, i, many, buf), many, bound, (uint32_t)i,
            list->index_low + list->count, list->value + list->count);
        if (list->count > list->capacity) return 0;
    }
    list->segment_start[list->segment_count] = list->count;
    return 1;
}
static int cg_filter_lazy_(
    const cg_kernels_ *kernels, const cg_producer_ *lazy, size_t n, uint32_t bound, cg_list_ *list) {
    return cg_filter_threaded_(kernels, lazy, n, bound, list) || cg_filter_serial_(kernels, lazy, n, bound, list);
}
/* The k-th largest magnitude is `key`, and `above` are larger: take those, and the first that equal it. */
CG_NOINLINE_ void cg_filter_with_ties_(const cg_kernels_ *kernels, const float *x, const cg_producer_ *lazy, size_t n,
    uint32_t key, size_t above, size_t k, cg_list_ *list) {
    size_t left = k - above, from, found;
    float buf[CG_CHUNK_];
    list->count = 0;
    for (size_t i = 0; i < n; i += CG_CHUNK_) {
        const size_t many = cg_min_(CG_CHUNK_, n - i);
        if (((uint64_t)i & 0xffffffffu) == 0) list->segment_start[(uint64_t)i >> 32] = list->count;
        if (list->count == k && (uint64_t)(n - 1) >> 32 == 0) break;
        from = list->count;
        found = kernels->filter(cg_values_view_(x, lazy, i, many, buf), many, left ? key : key + 1, (uint32_t)i,
            list->index_low + from, list->value + from);
        cg_list_compact_(list, from, from + found, &list->count, key, &left);
    }
    list->segment_start[list->segment_count] = list->count;
}
/* How many are above the bound; returns the largest. */
CG_NOINLINE_ uint32_t cg_count_above_all_(
    const cg_kernels_ *kernels, const float *x, const cg_producer_ *lazy, size_t n, uint32_t bound, size_t *above) {
    float buf[CG_CHUNK_];
    uint32_t top = 0;
    *above = 0;
    for (size_t i = 0; i < n; i += CG_CHUNK_) {
        const size_t many = cg_min_(CG_CHUNK_, n - i);
        top = cg_max32_(top, kernels->count_above(cg_values_view_(x, lazy, i, many, buf), many, bound, above));
    }
    return top;
}

/* A magnitude that about `want` of n values reach, from a sample of those in [lo, hi); `inside` of n are there, 0:
   who knows. */
static uint32_t cg_threshold_estimate_(const float *x, const cg_producer_ *lazy, size_t n, uint64_t want,
    uint64_t inside, uint32_t lo, uint32_t hi, uint32_t salt, float *sample, cg_sign_filter_ of) {
    size_t draws = n / 64 < 1024 ? 1024 : n / 64 > 16384 ? 16384 : n / 64, count = 0, rank;
    size_t stride = n / draws, at[64], many;
    cg_key_ key = cg_block_key_(salt, n);
    double expect, spread = 1.0;
    for (size_t i = 0; i < draws; i += many) { /* ask for 64 cache lines before waiting for the first */
        many = cg_min_(64, draws - i);
        for (size_t j = 0; j < many; j++) {
            at[j] = (i + j) * stride +
                (size_t)((uint64_t)cg_hash32_(key, (uint32_t)(i + j)) * (stride < 0xffffffffu ? stride : 0xffffffffu) >>
                    32);
            if (x) CG_PREFETCH_(cg_at_(x, at[j]));
        }
        for (size_t j = 0; j < many; j++) {
            float one;
            float f = cg_load_(cg_values_view_(x, lazy, at[j], 1, &one), 0);
            uint32_t m = cg_magnitude_key_(f, of);
            sample[count] = f;
            count += (m >= lo) & (m < hi);
        }
    }
    if (!count) return lo + (hi - lo) / 2;
    expect = (inside ? (double)count / (double)inside : (double)draws / (double)n) * (double)want;
    while (spread * spread < expect) spread += 1.0; /* a square root, roughly */
    expect += 3.0 * spread + 4.0;
    if (expect >= (double)count) return lo;
    rank = (size_t)expect;
    return cg_kth_(sample, count, &rank, lo, hi - 1, of);
}

/* Top-k: a guess from a sample that is a little too low, one filter pass, exact selection among what passed. When
   that does not fit (ties, or an unlucky sample) passes that count narrow the interval of the k-th key. Leaves in
   the list all that reach *bound, at least k; or, where *bound is the k-th key itself, k of them. fill: values
   that are still to be made, with a hint in place of the first guess; or lazy, and x is NULL. */
static cg_status cg_topk_candidates_(const cg_kernels_ *kernels, const float *x, size_t n, size_t k, cg_list_ *list,
    cg_producer_ *fill, uint32_t *bound) {
    uint32_t lo = 0, hi = 0x80000000u; /* the k-th key is in [lo, hi) */
    size_t at_least_lo = n, at_least_hi = 0;
    const cg_producer_ *lazy = fill && fill->lazy ? fill : NULL;
    if (lazy) fill = NULL;
    list->has_all_ties = 1;
    for (uint32_t tries = 0;; tries++) {
        *bound = lo;
        if (fill) *bound = fill->threshold_hint;
        else if (n > CG_CHUNK_) {
            if (tries < 8)
                *bound = cg_threshold_estimate_(
                    x, lazy, n, k - at_least_hi, at_least_lo - at_least_hi, lo, hi, tries, list->value, cg_both_signs_);
            else *bound = lo + (hi - lo) / 2;
            if (*bound == 0 && hi > 1) *bound = 1; /* zeros may be most of them, and need no sorting */
        }
        if (fill       ? cg_filter_producing_(kernels, x, n, *bound, list, fill)
                : lazy ? cg_filter_lazy_(kernels, lazy, n, *bound, list)
                       : cg_filter_vector_(kernels, x, n, *bound, list)) {
            fill = NULL;
            if (list->count >= k) break;
            hi = *bound;
            at_least_hi = list->count;
            /* all that are not zero are in the list, and the k-th is */
            if (hi == 1) {
                if (kernels->absmax_bits(list->value, list->count) >= CG_INF_BITS_) return CG_E_NONFINITE;
                cg_filter_with_ties_(kernels, x, lazy, n, 0, list->count, k, list);
                list->has_all_ties = 0;
                *bound = 0;
                return CG_OK;
            }
        } else {
            size_t above;
            fill = NULL;
            if (cg_count_above_all_(kernels, x, lazy, n, *bound, &above) >= CG_INF_BITS_) return CG_E_NONFINITE;
            if (above < k) { /* more than k reach it, so it is the k-th itself */
                cg_filter_with_ties_(kernels, x, lazy, n, *bound, above, k, list);
                list->has_all_ties = 0;
                COMPGRAD_ASSERT(list->count == k);
                return CG_OK;
            }
            lo = *bound + 1;
            at_least_lo = above;
        }
    }
    return kernels->absmax_bits(list->value, list->count) >= CG_INF_BITS_ ? CG_E_NONFINITE : CG_OK;
}

/* src/core/select/thresholds.h */
/* ---- >>selections: each fills the list, ascending by index ---- */

typedef struct cg_selector_ {
    const cg_kernels_ *kernels;
    const cg_extra *side;
    const float *x;         /* NULL: top-k of what a lazy fill makes */
    cg_producer_ *producer; /* top-k: what makes x, or NULL */
    size_t n;
    uint64_t shared_key, rank_key; /* keys */
    cg_list_ *list;
    cg_info *info; /* k and threshold are filled in */
} cg_selector_;

/* before any value from i on, a multiple of CG_CHUNK_ */
CG_INLINE_ void cg_list_begin_segment_(cg_list_ *list, size_t i) {
    if (((uint64_t)i & 0xffffffffu) == 0) list->segment_start[(uint64_t)i >> 32] = list->count;
}
CG_INLINE_ void cg_list_add_(cg_list_ *list, size_t i, float value) {
    list->index_low[list->count] = (uint32_t)i;
    list->value[list->count++] = value;
}
static void cg_list_close_(cg_list_ *list) { list->segment_start[list->segment_count] = list->count; }

/* Cuts the list, all of which reaches `bound`, down to the k largest magnitudes; returns the k-th. */
static uint32_t cg_list_keep_topk_(const cg_selector_ *p, size_t k, uint32_t bound) {
    cg_list_ *list = p->list;
    size_t left = k;
    uint32_t key = cg_kth_(
        list->value, list->count, &left, bound, p->kernels->absmax_bits(list->value, list->count), cg_both_signs_);
    list->count = 0;
    for (uint64_t s = 0, from = 0, to; s < list->segment_count; s++, from = to) {
        to = list->segment_start[s + 1];
        list->segment_start[s] = list->count;
        cg_list_compact_(list, (size_t)from, (size_t)to, &list->count, key, &left);
    }
    cg_list_close_(list);
    COMPGRAD_ASSERT(list->count == k);
    return key;
}
static cg_status cg_select_topk_(const cg_selector_ *p, size_t k) {
    uint32_t bound;
    cg_status s;
    if (!k) {
        p->list->count = 0;
        return CG_OK;
    }
    s = cg_topk_candidates_(p->kernels, p->x, p->n, k, p->list, p->producer, &bound);
    if (s == CG_OK) p->info->threshold = cg_as_float_(cg_list_keep_topk_(p, k, bound));
    return s;
}

/* Magnitudes, one of every `stride`, at places that the tag gives. */
static void cg_strided_sample_(const cg_selector_ *p, size_t stride, size_t draws, float *sample) {
    const cg_key_ key = cg_block_key_(p->shared_key, 0x73616D70u);
    const uint64_t within = stride < 0xffffffffu ? stride : 0xffffffffu;
    size_t at[64];
    for (size_t i = 0; i < draws; i += 64) { /* ask for 64 cache lines before waiting for the first */
        const size_t many = cg_min_(64, draws - i);
        for (size_t j = 0; j < many; j++) {
            at[j] = (i + j) * stride + (size_t)(cg_hash32_(key, (uint32_t)(i + j)) * within >> 32);
            CG_PREFETCH_(cg_at_(p->x, at[j]));
        }
        for (size_t j = 0; j < many; j++) sample[i + j] = cg_as_float_(cg_load_bits_(p->x, at[j]) & CG_ABS_MASK_);
    }
}
/* A threshold that was estimated, made good: too many are cut to the k largest, too few lower it (DGC). */
static cg_status cg_select_by_estimate_(const cg_selector_ *p, size_t k, float threshold) {
    cg_list_ *list = p->list;
    for (int tries = 0; tries < 10; tries++, threshold = cg_times_(threshold, 0.8f)) {
        const uint32_t bound = cg_as_bits_(threshold) & CG_ABS_MASK_;
        if (!cg_filter_vector_(p->kernels, p->x, p->n, bound, list)) break;
        if (p->kernels->absmax_bits(list->value, list->count) >= CG_INF_BITS_) return CG_E_NONFINITE;
        p->info->threshold = threshold;
        if (list->count > cg_max_selected_(&p->info->op, p->n))
            p->info->threshold = cg_as_float_(cg_list_keep_topk_(p, k, bound));
        if (list->count >= k - k / 5) return CG_OK;
    }
    return cg_select_topk_(p, k);
}
/* from 0.5 % of the values, more of short vectors */
static cg_status cg_select_dgc_(const cg_selector_ *p) {
    const float ratio = p->info->op.select.value;
    const size_t stride = p->n / 4096 < 1 ? 1 : cg_min_(200, p->n / 4096),
                 draws = cg_min_(p->n / stride, p->list->capacity);
    size_t rank = (size_t)cg_k_from_ratio_(ratio, 0, draws);
    cg_strided_sample_(p, stride, draws, p->list->value);
    return cg_select_by_estimate_(p, (size_t)cg_k_from_ratio_(ratio, 0, p->n),
        cg_as_float_(cg_kth_(p->list->value, draws, &rank, 0, CG_ABS_MASK_, cg_both_signs_)));
}
/* SIDCo: magnitudes taken as exponentials; each stage looks at what is above the stage before, a quarter of it. */
static cg_status cg_select_sidco_(const cg_selector_ *p) {
    const size_t k = (size_t)cg_k_from_ratio_(p->info->op.select.value, 0, p->n);
    const size_t target = p->n / 256 < 8192 ? 8192 : cg_min_(p->n / 256, 65536),
                 stride = p->n / target < 1 ? 1 : p->n / target;
    size_t draws = cg_min_(p->n / stride, p->list->capacity);
    double ratio = (double)k / (double)p->n, threshold = 0.0;
    float *sample = p->list->value;
    cg_strided_sample_(p, stride, draws, sample);
    if (p->kernels->absmax_bits(sample, draws) >= CG_INF_BITS_) return CG_E_NONFINITE;
    while (ratio < 1.0) {
        double sum = 0.0, step = -cg_ln_(ratio < 0.25 ? 0.25 : ratio);
        size_t above = 0;
        for (size_t i = 0; i < draws; i++) { /* the next stage looks at these alone */
            double d = (double)sample[i] - threshold;
            sample[above] = sample[i];
            above += d > 0.0;
            sum += d > 0.0 ? d : 0.0;
        }
        draws = above;
        if (!above) break;
        step *= sum / (double)above;
        CG_NO_FMA_(step);
        threshold += step;
        ratio = ratio < 0.25 ? ratio * 4.0 : 1.0;
    }
    return cg_select_by_estimate_(p, k, cg_saturate64_(threshold));
}

/* Sums over the magnitudes below a limit, as bits: of a chunk all, less those that reach it; where these are so
   large that nothing of the others would be left in the difference, one after the other. The list must not be in
   use. */
typedef struct cg_below_sums_ {
    double sum, squares;
    uint64_t count;
    uint32_t absmax_bits;
} cg_below_sums_;
static cg_below_sums_ cg_below_sums_of_(const cg_selector_ *p, uint32_t limit) {
    cg_below_sums_ t = { 0.0, 0.0, 0, 0 };
    for (size_t i = 0; i < p->n; i += CG_CHUNK_) {
        const size_t many = cg_min_(CG_CHUNK_, p->n - i);
        const float *v = cg_at_(p->x, i);
        const uint32_t top = p->kernels->absmax_bits(v, many);
        double sum = 0.0, squares = 0.0;
        t.absmax_bits = cg_max32_(t.absmax_bits, top);
        if (top < limit || top - limit < 10u << 23) { /* 2^10 times the limit */
            const size_t above =
                top < limit ? 0 : p->kernels->filter(v, many, limit, 0, p->list->index_low, p->list->value);
            sum = cg_lane_sum_of_(p->kernels, v, many, CG_SUM_ABS_);
            squares = cg_lane_sum_of_(p->kernels, v, many, CG_SUM_SQUARES_);
            if (above) {
                sum -= cg_lane_sum_of_(p->kernels, p->list->value, above, CG_SUM_ABS_);
                squares -= cg_lane_sum_of_(p->kernels, p->list->value, above, CG_SUM_SQUARES_);
            }
            t.count += many - above;
        } else {
            for (size_t j = 0; j < many; j++) {
                uint32_t m = cg_load_bits_(v, j) & CG_ABS_MASK_;
                double d = m < limit ? (double)cg_as_float_(m) : 0.0, square = d * d;
                CG_NO_FMA_(square);
                t.count += m < limit;
                sum += d;
                squares += square;
            }
        }
        t.sum += sum > 0.0 ? sum : 0.0;
        t.squares += squares > 0.0 ? squares : 0.0;
    }
    return t;
}
#define CG_BERNOULLI_KEY_ 0xBB67AE8584CAA73Bu /* coins of a selection are not the noise of a quantizer */

/* MSTop-k: bisects between the mean and the largest magnitude for a threshold that at most k reach; all of those
   are taken, and what is missing is a run of neighbours, from a random place, among those down to the last
   threshold that was too low. */
static cg_status cg_select_mstopk_(const cg_selector_ *p, size_t k) {
    cg_list_ *list = p->list;
    uint32_t bound, next, top, low = 0, high = CG_INF_BITS_;
    double mean, lo = 0.0, hi = 1.0;
    size_t rank = k + 1, sure = 0, between = 0, start, ordinal = 0;
    cg_status s;
    if (k >= p->n) return cg_select_topk_(p, k);
    list->sum_magnitudes = 1;
    s = cg_topk_candidates_(p->kernels, p->x, p->n, k + 1, list, NULL, &bound);
    list->sum_magnitudes = 0;
    if (s != CG_OK) return s;
    top = p->kernels->absmax_bits(list->value, list->count);
    /* more than k reach a threshold if and only if the next magnitude after the k-th does: nothing has to be
       counted again */
    next = cg_kth_(list->value, list->count, &rank, bound, top, cg_both_signs_);
    /* none reaches it: the list stays */
    mean = (list->has_all_ties ? list->magnitude_sum : cg_below_sums_of_(p, CG_INF_BITS_).sum) / (double)p->n;
    for (int i = 0; i < 30; i++) {
        double r = (lo + hi) * 0.5, t = r * ((double)cg_as_float_(top) - mean);
        uint32_t key;
        CG_NO_FMA_(t);
        key = cg_as_bits_(cg_saturate64_(mean + t));
        if (key > next) {
            high = key;
            hi = r;
        } else {
            low = key;
            lo = r;
        }
    }
    if (!list->has_all_ties) bound = CG_INF_BITS_;
    if (low < bound) { /* the candidates do not reach down so far: a pass more */
        size_t above = 0;
        for (size_t i = 0; low && i < p->n; i += CG_CHUNK_)
            p->kernels->count_above(cg_at_(p->x, i), cg_min_(CG_CHUNK_, p->n - i), low - 1, &above);
        between = low ? above : p->n;
    }
    for (size_t i = 0; i < list->count; i++) {
        uint32_t m = cg_as_bits_(list->value[i]) & CG_ABS_MASK_;
        sure += m >= high;
        if (low >= bound) between += m >= low;
    }
    between -= sure;
    start = (size_t)cg_mulhi64_(cg_mix64_(p->rank_key ^ CG_BERNOULLI_KEY_), (uint64_t)(between - (k - sure)) + 1);
    p->info->threshold = cg_as_float_(low);
    list->count = 0;
    if (low >= bound) {
        for (uint64_t g = 0, from = 0, to; g < list->segment_count; g++, from = to) {
            to = list->segment_start[g + 1];
            list->segment_start[g] = list->count;
            for (uint64_t i = from; i < to; i++) {
                uint32_t m = cg_as_bits_(list->value[i]) & CG_ABS_MASK_;
                int take = m >= high;
                if (!take && m >= low) {
                    take = ordinal >= start && ordinal < start + (k - sure);
                    ordinal++;
                }
                list->index_low[list->count] = list->index_low[i];
                list->value[list->count] = list->value[i];
                list->count += (size_t)take;
            }
        }
    } else {
        for (size_t i = 0; i < p->n; i++) {
            float f = cg_load_(p->x, i);
            uint32_t m = cg_as_bits_(f) & CG_ABS_MASK_;
            int take = m >= high;
            cg_list_begin_segment_(list, i);
            if (!take && m >= low) {
                take = ordinal >= start && ordinal < start + (k - sure);
                ordinal++;
            }
            if (take) cg_list_add_(list, i, f);
        }
    }
    cg_list_close_(list);
    COMPGRAD_ASSERT(list->count == k);
    return CG_OK;
}

/* src/core/select/wangni.h */
/* Wangni: magnitudes from `unit` on are certain; a smaller one becomes +-unit with probability |x|/unit. */
static cg_status cg_select_bernoulli_(const cg_selector_ *p, float unit) {
    cg_list_ *list = p->list;
    cg_bernoulli_ c;
    c.threshold = unit;
    c.prescale = cg_is_tiny_(unit) ? CG_POW2_100_ : 1.0f;
    c.inv_threshold = 1.0f / cg_times_(unit, c.prescale);
    list->count = 0;
    for (size_t i = 0; i < p->n; i += CG_CHUNK_) {
        cg_list_begin_segment_(list, i);
        c.key = cg_block_key_(p->rank_key ^ CG_BERNOULLI_KEY_, (uint64_t)i >> 16);
        list->count += p->kernels->bernoulli(&c, cg_at_(p->x, i), cg_min_(CG_CHUNK_, p->n - i), (uint32_t)i,
            list->index_low + list->count, list->value + list->count);
    }
    cg_list_close_(list);
    return CG_OK;
}
/* a density; twice what the certain ones leave over goes to the others */
static cg_status cg_select_wangni_(const cg_selector_ *p) {
    const double want = (double)p->info->op.select.value * (double)p->n;
    cg_below_sums_ t = cg_below_sums_of_(p, CG_INF_BITS_);
    double lambda;
    float unit;
    if (t.absmax_bits >= CG_INF_BITS_) return CG_E_NONFINITE;
    if (t.sum == 0.0) return cg_select_bernoulli_(p, CG_FLT_MAX_);
    lambda = want / t.sum;
    unit = cg_saturate64_(1.0 / lambda);
    for (int i = 0; i < 2; i++) {
        double left, kappa;
        t = cg_below_sums_of_(p, cg_as_bits_(unit));
        left = want - (double)(p->n - t.count);
        kappa = lambda * t.sum > 0.0 ? left / (lambda * t.sum) : 0.0;
        if (!(kappa > 1.0)) break;
        lambda *= kappa;
        unit = cg_saturate64_(1.0 / lambda);
    }
    return cg_select_bernoulli_(p, unit);
}
/* the fewest with sum x^2/p <= (1 + epsilon) sum x^2 */
static cg_status cg_select_wangni_variance_(const cg_selector_ *p) {
    cg_below_sums_ t = cg_below_sums_of_(p, CG_INF_BITS_);
    const double extra = (double)p->info->op.select.value * t.squares;
    float unit = CG_FLT_MAX_;
    if (t.absmax_bits >= CG_INF_BITS_) return CG_E_NONFINITE;
    for (int i = 0; i < 100 && t.sum > 0.0; i++) {
        const double exact = (extra + t.squares) / t.sum;
        float next = cg_saturate64_(exact);
        /* down: a larger unit has more variance */
        if ((double)next > exact) next = cg_as_float_(cg_as_bits_(next) - 1u);
        if (next >= unit || !(next > 0.0f)) break;
        unit = next;
        t = cg_below_sums_of_(p, cg_as_bits_(unit));
    }
    return cg_select_bernoulli_(p, unit);
}

/* src/core/select/others.h */
/* The largest above zero and the largest below, each by its own count. AdaQ: a share of either side; SBC: as many
   of both, of which the side with the larger mean stays. */
static cg_status cg_select_sides_(const cg_selector_ *p) {
    static const cg_sign_filter_ sides[2] = { { 0, 0xffffffffu }, { 0x80000000u, 0xffffffffu } };
    const cg_stage *stage = &p->info->op.select;
    cg_list_ *list = p->list;
    uint32_t key[2] = { 0, 0 }, bound = 1;
    size_t have[2] = { 0, 0 }, want[2], left[2] = { 0, 0 }, k, n = p->n;
    double mean[2] = { 0.0, 0.0 };
    have[0] = have[1] = n;
    if (stage->id == CG_SELECT_SIDES) {
        have[0] = have[1] = 0;
        for (size_t i = 0; i < n; i += CG_CHUNK_) {
            const size_t many = cg_min_(CG_CHUNK_, n - i);
            uint8_t signs[CG_CHUNK_ / 8];
            size_t some = 0, below = 0;
            p->kernels->sign_encode(cg_at_(p->x, i), many, signs, NULL);
            p->kernels->count_above(cg_at_(p->x, i), many, 0, &some);
            for (size_t j = 0; j < (many + 7) / 8; j++) below += cg_popcount_(signs[j]);
            have[0] += some - below;
            have[1] += below;
        }
    }
    k = (size_t)cg_k_from_ratio_(stage->value, 0, n);
    for (int side = 0; side < 2; side++)
        want[side] = stage->id == CG_SELECT_SIDE ? cg_min_(k, have[side])
                                                 : (size_t)cg_k_from_ratio_(stage->value, 0, have[side]);
    if (n > CG_CHUNK_) { /* what enough of both sides should reach */
        uint32_t above = want[0]
            ? cg_threshold_estimate_(p->x, NULL, n, want[0], 0, 1, CG_INF_BITS_, 0, list->value, sides[0])
            : CG_INF_BITS_;
        uint32_t below = want[1]
            ? cg_threshold_estimate_(p->x, NULL, n, want[1], 0, 1, CG_INF_BITS_, 1, list->value, sides[1])
            : CG_INF_BITS_;
        bound = cg_max32_(1, above < below ? above : below);
    }
    for (;; bound = 1) {
        have[0] = have[1] = 0;
        cg_filter_vector_(p->kernels, p->x, n, bound, list);
        if (p->kernels->absmax_bits(list->value, list->count) >= CG_INF_BITS_) return CG_E_NONFINITE;
        for (size_t i = 0; i < list->count; i++) have[list->value[i] < 0.0f]++;
        if (bound == 1 || (have[0] >= want[0] && have[1] >= want[1])) break;
    }
    for (int side = 0; side < 2; side++) want[side] = cg_min_(want[side], have[side]);
    for (int side = 0; side < 2; side++) {
        left[side] = want[side];
        if (want[side])
            key[side] = cg_kth_(list->value, list->count, &left[side], bound, CG_INF_BITS_ - 1, sides[side]);
    }
    if (stage->id == CG_SELECT_SIDE) {
        size_t ties[2];
        ties[0] = left[0];
        ties[1] = left[1];
        for (size_t i = 0; i < list->count; i++) {
            int side = list->value[i] < 0.0f;
            uint32_t m = cg_as_bits_(list->value[i]) & CG_ABS_MASK_;
            int equal = m == key[side] && ties[side] > 0;
            if (want[side] && (m > key[side] || equal)) mean[side] += (double)cg_as_float_(m);
            ties[side] -= (size_t)equal;
        }
        for (int side = 0; side < 2; side++) mean[side] = want[side] ? mean[side] / (double)want[side] : 0.0;
        want[mean[0] >= mean[1]] = 0;
    }
    list->count = 0;
    for (uint64_t g = 0, from = 0, to; g < list->segment_count; g++, from = to) {
        to = list->segment_start[g + 1];
        list->segment_start[g] = list->count;
        for (uint64_t i = from; i < to; i++) {
            int side = list->value[i] < 0.0f;
            uint32_t m = cg_as_bits_(list->value[i]) & CG_ABS_MASK_;
            int equal = m == key[side] && left[side] > 0, take = want[side] && (m > key[side] || equal);
            list->index_low[list->count] = list->index_low[i];
            list->value[list->count] = list->value[i];
            if (take && m == key[side]) left[side]--;
            list->count += (size_t)take;
        }
    }
    cg_list_close_(list);
    return CG_OK;
}

/* AdaComp: what one more gradient would bring to the largest residual of its bin. x: residual with the gradient in
   it; aux: the gradient. */
static cg_status cg_select_adacomp_(const cg_selector_ *p) {
    const size_t bin = p->info->op.select.size;
    const float *aux = p->side ? p->side->aux : NULL;
    cg_list_ *list = p->list;
    double total = 0.0;
    uint64_t bins = 0;
    float scale;
    if (!aux) return CG_E_ARG;
    if (p->n &&
        (p->kernels->absmax_bits(p->x, p->n) >= CG_INF_BITS_ || p->kernels->absmax_bits(aux, p->n) >= CG_INF_BITS_))
        return CG_E_NONFINITE;
    for (size_t i = 0; i < p->n; i += cg_min_(bin, p->n - i), bins++)
        total += (double)cg_as_float_(p->kernels->absmax_bits(cg_at_(p->x, i), cg_min_(bin, p->n - i)));
    scale = bins ? cg_saturate64_(total / (double)bins) : 0.0f;
    list->count = 0;
    for (size_t i = 0, many; i < p->n; i += many) {
        uint32_t top;
        many = cg_min_(bin, p->n - i);
        top = p->kernels->absmax_bits(cg_at_(p->x, i), many);
        for (size_t j = i; j < i + many; j++) {
            float f = cg_load_(p->x, j);
            uint32_t m = cg_as_bits_(cg_plus_(f, cg_load_(aux, j))) & CG_ABS_MASK_;
            cg_list_begin_segment_(list, j);
            if (top && m >= top) cg_list_add_(list, j, f < 0.0f ? -scale : scale);
        }
    }
    cg_list_close_(list);
    return CG_OK;
}
/* Tsuzuku: where the square of x exceeds alpha times its variance, aux. */
static cg_status cg_select_variance_(const cg_selector_ *p) {
    const double alpha = (double)p->info->op.select.value;
    const float *aux = p->side ? p->side->aux : NULL;
    cg_list_ *list = p->list;
    if (!aux) return CG_E_ARG;
    list->count = 0;
    for (size_t i = 0; i < p->n; i++) {
        float f = cg_load_(p->x, i), v = cg_load_(aux, i);
        if (!cg_is_finite_(f) || !cg_is_finite_(v)) return CG_E_NONFINITE;
        cg_list_begin_segment_(list, i);
        if ((double)f * (double)f > alpha * (double)v) cg_list_add_(list, i, f);
    }
    cg_list_close_(list);
    return CG_OK;
}
/* The k-th largest of n magnitudes, all below Inf, by bisection: counting is what SIMD is good at. above: how many
   are larger. */
static uint32_t cg_kth_bisect_(
    const cg_kernels_ *kernels, const float *v, size_t n, size_t k, uint32_t lo, uint32_t hi, size_t *above) {
    size_t larger = 0, next = 0; /* than hi */
    while (lo < hi) {            /* the smallest that fewer than k are above */
        uint32_t pivot = lo + (hi - lo) / 2;
        size_t count = 0;
        if (n <= 128) { /* of a few, one of them: that takes fewer steps */
            while (next < n && (cg_as_bits_(v[next]) & CG_ABS_MASK_) - lo >= hi - lo) next++;
            if (next == n) {
                lo = hi;
                break;
            }
            pivot = cg_as_bits_(v[next]) & CG_ABS_MASK_;
        }
        kernels->count_above(v, n, pivot, &count);
        if (count < k) {
            hi = pivot;
            larger = count;
        } else lo = pivot + 1;
    }
    *above = larger;
    return lo;
}
/* The largest of every chunk. Neighbours are alike: what reached a little less than the last chunk's key is looked
   at first. */
static cg_status cg_select_chunked_(const cg_selector_ *p) {
    const cg_stage *stage = &p->info->op.select;
    cg_list_ *list = p->list;
    uint32_t guess = 0;
    list->count = 0;
    for (size_t i = 0, many; i < p->n; i += many) {
        const size_t from = list->count, last = (size_t)((uint64_t)i | 0xffffffffu);
        size_t k, found = 0, above, left;
        uint32_t key;
        many = cg_min_(stage->size, p->n - i);
        k = (size_t)cg_k_from_ratio_(stage->value, 0, many);
        for (;; guess = 0) { /* a second time only after a guess that was too high */
            list->count = from;
            for (size_t j = i, some; j < i + many; j += some) { /* to the next mark */
                some = cg_min_(i + many - j, CG_CHUNK_ - j % CG_CHUNK_);
                cg_list_begin_segment_(list, j);
                list->count += p->kernels->filter(cg_at_(p->x, j), some, guess, (uint32_t)j,
                    list->index_low + list->count, list->value + list->count);
            }
            found = list->count - from;
            if (found >= k || !guess) break;
        }
        key = p->kernels->absmax_bits(list->value + from, found);
        if (key >= CG_INF_BITS_) return CG_E_NONFINITE;
        key = cg_kth_bisect_(p->kernels, list->value + from, found, k, guess, key, &above);
        left = k - above;
        list->count = from;
        if (i + many - 1 <= last) {
            cg_list_compact_(list, from, from + found, &list->count, key, &left);
            /* a mark lies in this chunk and moves with what is cut before it */
        } else {
            const size_t mark = (size_t)list->segment_start[(uint64_t)(i + many - 1) >> 32];
            cg_list_compact_(list, from, mark, &list->count, key, &left);
            list->segment_start[(uint64_t)(i + many - 1) >> 32] = list->count;
            cg_list_compact_(list, mark, from + found, &list->count, key, &left);
        }
        guess = key < 0x400000u ? 0 : key - 0x400000u; /* a half or so of it */
    }
    cg_list_close_(list);
    return CG_OK;
}
/* Blocks that are not all zero, one index each. */
static cg_status cg_select_blocks_(const cg_selector_ *p) {
    const size_t size = p->info->op.select.size;
    cg_list_ *list = p->list;
    list->count = 0;
    p->info->k = 0;
    for (size_t i = 0, unit = 0, many; i < p->n; i += many, unit++) {
        uint32_t top;
        many = cg_min_(size, p->n - i);
        top = p->kernels->absmax_bits(cg_at_(p->x, i), many);
        if (top >= CG_INF_BITS_) return CG_E_NONFINITE;
        cg_list_begin_segment_(list, unit);
        if (!top) continue;
        list->index_low[list->count++] = (uint32_t)unit;
        memcpy(list->value + p->info->k, cg_at_(p->x, i), 4 * many);
        p->info->k += many;
    }
    list->segment_count = p->n ? ((uint64_t)(p->n - 1) / size >> 32) + 1 : 1;
    cg_list_close_(list);
    return CG_OK;
}
static cg_status cg_select_given_(const cg_selector_ *p);

static cg_status cg_selector_run_(const cg_selector_ *p) {
    const cg_stage *stage = &p->info->op.select;
    cg_status s = CG_OK;
    if (!p->n && stage->id != CG_SELECT_GIVEN) {
        p->list->count = 0;
        p->info->k = 0;
        return CG_OK;
    }
    switch (stage->id) {
    case CG_SELECT_TOPK: s = cg_select_topk_(p, (size_t)cg_max_selected_(&p->info->op, p->n)); break;
    case CG_SELECT_MSTOPK: s = cg_select_mstopk_(p, (size_t)cg_max_selected_(&p->info->op, p->n)); break;
    case CG_SELECT_DGC: s = cg_select_dgc_(p); break;
    case CG_SELECT_SIDCO: s = cg_select_sidco_(p); break;
    case CG_SELECT_WANGNI: s = cg_select_wangni_(p); break;
    case CG_SELECT_WANGNIVAR: s = cg_select_wangni_variance_(p); break;
    case CG_SELECT_SIDES:
    case CG_SELECT_SIDE: s = cg_select_sides_(p); break;
    case CG_SELECT_BINS: s = cg_select_adacomp_(p); break;
    case CG_SELECT_VARIANCE: s = cg_select_variance_(p); break;
    case CG_SELECT_CHUNKED: s = cg_select_chunked_(p); break;
    case CG_SELECT_BLOCKS: return cg_select_blocks_(p); /* k is not the number of indices */
    case CG_SELECT_GIVEN: return cg_select_given_(p);
    default:
        cg_filter_vector_(p->kernels, p->x, p->n, (cg_as_bits_(stage->value) & CG_ABS_MASK_) + 1, p->list);
        if (p->kernels->absmax_bits(p->list->value, p->list->count) >= CG_INF_BITS_) s = CG_E_NONFINITE;
    }
    p->info->k = p->list->count;
    return s;
}

/* src/core/indices.h */
/* ---- >>indices ---- */

typedef struct cg_bit_writer_ {
    uint8_t *next;
    uint64_t word;
    unsigned filled;
} cg_bit_writer_;

static void cg_bit_writer_put_(cg_bit_writer_ *w, uint64_t v, unsigned bits) { /* bits <= 32 */
    w->word |= v << w->filled;
    w->filled += bits;
    if (w->filled >= 32) {
        cg_put32_(w->next, (uint32_t)w->word);
        w->next += 4;
        w->word >>= 32;
        w->filled -= 32;
    }
}
static void cg_bit_writer_flush_(cg_bit_writer_ *w) { /* to a whole u32 */
    if (w->filled) cg_put32_(w->next, (uint32_t)w->word);
}
/* Sets single bits of zeroed words in ascending order, without asking whether the word is new: that cannot be
   predicted. */
typedef struct cg_bit_setter_ {
    uint8_t *out;
    uint64_t word_index;
    uint32_t word;
} cg_bit_setter_;

static void cg_bit_setter_set_(cg_bit_setter_ *w, uint64_t bit) {
    const uint64_t at = bit >> 5;
    w->word = (w->word & ((uint32_t)(at != w->word_index) - 1u)) | 1u << (bit & 31);
    w->word_index = at;
    cg_put32_(w->out + 4 * (size_t)at, w->word);
}
/* Returns the bytes. */
static size_t cg_index_put_(uint32_t code, uint64_t universe, const cg_list_ *list, uint8_t *out) {
    unsigned l = cg_elias_fano_low_bits_(universe, list->count);
    cg_bit_writer_ low = { NULL, 0, 0 };
    cg_bit_setter_ set = { NULL, 0, 0 };
    cg_rice_writer_ rice;
    uint8_t *end = out + (size_t)cg_index_bytes_(code, universe, list->count);
    int bitmap = code == CG_CODE_BITMAP;
    if (out == end) return 0;
    if (code == CG_CODE_GOLOMB) {
        cg_rice_writer_open_(&rice, out, cg_rice_parameter_(universe, list->count));
        for (uint64_t s = 0; s < list->segment_count; s++)
            for (uint64_t i = list->segment_start[s]; i < list->segment_start[s + 1]; i++)
                cg_rice_writer_put_(&rice, s << 32 | list->index_low[i]);
        return cg_rice_writer_close_(&rice);
    }
    low.next = out;
    set.out = bitmap ? out : out + (size_t)cg_elias_fano_low_bytes_(universe, list->count);
    memset(set.out, 0, (size_t)(end - set.out));
    for (uint64_t s = 0; s < list->segment_count; s++) {
        for (uint64_t i = list->segment_start[s]; i < list->segment_start[s + 1]; i++) {
            uint64_t index = s << 32 | list->index_low[i];
            if (bitmap) {
                cg_bit_setter_set_(&set, index);
                continue;
            }
            if (l > 32) {
                cg_bit_writer_put_(&low, index & 0xffffffffu, 32);
                cg_bit_writer_put_(&low, index >> 32 & ((1u << (l - 32)) - 1u), l - 32);
            } else {
                cg_bit_writer_put_(&low, index & (((uint64_t)1 << l) - 1), l);
            }
            cg_bit_setter_set_(&set, (index >> l) + i);
        }
    }
    if (!bitmap) cg_bit_writer_flush_(&low);
    return (size_t)(end - out);
}

typedef struct cg_index_reader_ {
    const uint8_t *low_part, *next_high, *end; /* low parts end where high begins */
    uint64_t word, bit_base, read_count; /* unread bits of the current word; its bit number less 64; indices read */
    unsigned low_bits;
    int bitmap, golomb, avx2;
    cg_rice_reader_ rice;
    uint64_t universe, values_per_index, transformed_n; /* blocks of `unit` values: */
    uint64_t block, block_pos;                          /* the current one, and the values of it that have been read */
} cg_index_reader_;

static cg_index_reader_ cg_index_open_(const cg_info *info, const uint8_t *p) {
    cg_index_reader_ r;
    uint64_t k;
    r.transformed_n = cg_transformed_n_(&info->op, info->drawn);
    r.values_per_index = cg_values_per_index_(&info->op);
    r.universe = cg_index_count_(&info->op, r.transformed_n);
    k = cg_index_count_(&info->op, info->k);
    r.bitmap = info->index_code == CG_CODE_BITMAP;
    r.golomb = info->index_code == CG_CODE_GOLOMB;
    r.avx2 = cg_isa_used() == CG_ISA_AVX2;
    r.low_bits = r.bitmap || r.golomb ? 0 : cg_elias_fano_low_bits_(r.universe, k);
    r.low_part = p;
    r.next_high = r.bitmap || r.golomb ? p : p + (size_t)cg_elias_fano_low_bytes_(r.universe, k);
    r.end = p + info->index_bytes;
    r.word = 0;
    r.bit_base = (uint64_t)0 - 64;
    r.read_count = 0;
    r.block = r.block_pos = 0;
    if (r.golomb) cg_rice_reader_open_(&r.rice, p, info->index_bytes, cg_rice_parameter_(r.universe, k));
    return r;
}
/* Up to `count` more indices; fewer only where the bits run out. */
CG_INLINE_ size_t cg_index_get_body_(cg_index_reader_ *r, uint64_t *index, size_t count) {
    uint64_t word = r->word, base = r->bit_base, i = r->read_count, at = r->read_count * r->low_bits;
    const uint64_t mask = ((uint64_t)1 << r->low_bits) - 1;
    const uint8_t *next = r->next_high;
    size_t done = 0;
    if (r->golomb) return cg_rice_reader_get_(&r->rice, index, count);
    /* whole words, far from the end */
    while (!r->bitmap && r->low_bits <= 56 && done < count &&
        (uint64_t)(r->end - r->low_part) > (at + 64 * r->low_bits) / 8 + 8) {
        if (!word) {
            if (r->end - next < 8) break;
            word = cg_get64_(next);
            next += 8;
            base += 64;
        }
        for (; word && done < count; word &= word - 1, at += r->low_bits, i++)
            index[done++] = (base + cg_ctz_(word) - i) << r->low_bits |
                (cg_get64_(r->low_part + (size_t)(at >> 3)) >> (at & 7) & mask);
    }
    while (done < count) {
        while (!word) {
            if (next >= r->end) goto out;
            if (r->end - next >= 8) word = cg_get64_(next);
            else word = cg_get32_(next); /* sections are whole u32 words */
            next += r->end - next >= 8 ? 8 : 4;
            base += 64;
        }
        {
            uint64_t h = base + cg_ctz_(word);
            word &= word - 1;
            if (!r->bitmap) h -= i;
            if (r->low_bits) {
                const uint8_t *p = r->low_part + (size_t)(at >> 3);
                unsigned shift = (unsigned)(at & 7);
                uint64_t low;
                if (CG_LIKELY_(r->end - p > 8)) {
                    low = cg_get64_(p) >> shift;
                    if (r->low_bits + shift > 64) low |= (uint64_t)p[8] << (64 - shift);
                    /* within the last 8 bytes, and l + shift <= 64: high bits follow */
                } else {
                    low = 0;
                    for (unsigned b = 0; b < 8 && p + b < r->end; b++) low |= (uint64_t)p[b] << 8 * b;
                    low >>= shift;
                }
                h = h << r->low_bits | (low & mask);
                at += r->low_bits;
            }
            index[done++] = h;
            i++;
        }
    }
out:
    r->word = word;
    r->bit_base = base;
    r->read_count = i;
    r->next_high = next;
    return done;
}
#if CG_AVX2_
CG_TARGET_AVX2_ static size_t cg_index_get_avx2_(cg_index_reader_ *r, uint64_t *index, size_t count) {
    return cg_index_get_body_(r, index, count);
}
#endif
static size_t cg_index_get_(cg_index_reader_ *r, uint64_t *index, size_t count) {
#if CG_AVX2_
    if (r->avx2) return cg_index_get_avx2_(r, index, count); /* fewer instructions for the same bits */
#endif
    return cg_index_get_body_(r, index, count);
}
/* The same for values: every value of a block has an index of its own. */
static size_t cg_index_get_per_value_(cg_index_reader_ *r, uint64_t *index, size_t count) {
    if (r->values_per_index == 1) return cg_index_get_(r, index, count);
    for (size_t i = 0; i < count; i++) {
        if (!r->block_pos && cg_index_get_(r, &r->block, 1) == 0) return i;
        index[i] = r->block * r->values_per_index + r->block_pos;
        if (++r->block_pos == r->values_per_index || index[i] + 1 == r->transformed_n) r->block_pos = 0;
    }
    return count;
}

/* src/core/matrix.h */
/* ---- >>matrix: what stands between the pipeline and the factors ---- */

/* Factors p (rows of rank values), then q (rank rows of cols), at the start of room. */
static cg_status cg_matrix_encode_(const cg_kernels_ *kernels, const cg_info *info, const float *x, float *room) {
    const size_t rows = cg_matrix_rows_(&info->op), cols = cg_matrix_cols_(&info->op);
    const unsigned rank = cg_matrix_r_(&info->op);
    float *q = room + rows * rank;
    uint8_t *work = (uint8_t *)(q + rank * cols);
    unsigned atoms;
    work += (8 - ((uintptr_t)work & 7)) % 8;
    if (info->op.transform.id == CG_TRANSFORM_LOWRANK)
        return cg_lowrank_encode_(kernels, cg_shared_key_(&info->tag), x, rows, cols, rank, room, q, work);
    return cg_atomo_encode_(
        kernels, cg_rank_key_(&info->tag), x, rows, cols, info->op.transform.arg, room, q, &atoms, work);
}

/* A step of PowerSGD in two halves, so that factors of several ranks can be summed in between. op is low-rank, m its
   matrix, work has room for r (rows + cols) doubles and keeps nothing between the halves. */

/* Left factor p[rows][r] = alpha M Q. Q is warm[r][cols], or where that is NULL or all zero the random start of tag. */
CG_OFFERED_ void cg_lowrank_left_(
    const cg_op *op, const cg_tag *tag, const float *warm, const float *m, float alpha, float *p, double *work) {
    const size_t rows = cg_matrix_rows_(op), cols = cg_matrix_cols_(op);
    const unsigned r = cg_matrix_r_(op);
    double *p64 = work, *q64 = p64 + r * rows;
    int is_warm = 0;
    for (size_t i = 0; warm && i < r * cols; i++) {
        q64[i] = (double)cg_load_(warm, i);
        is_warm |= (cg_load_bits_(warm, i) & CG_ABS_MASK_) != 0;
    }
    if (!is_warm) cg_lowrank_init_q_(cg_shared_key_(tag), cols, r, q64);
    cg_matrix_times_(cg_kernels_now_(), m, rows, cols, q64, r, p64);
    for (size_t i = 0; i < rows * r; i++) p[i] = (float)(p64[i % r * rows + i / r] * (double)alpha);
}
/* Makes the columns of p orthonormal, in place, and the right factor q[r][cols] = alpha P^T M of them.
   CG_E_NONFINITE: p is too large; q is not written. */
CG_OFFERED_ cg_status cg_lowrank_right_(
    const cg_op *op, const float *m, float alpha, float *p, float *q, double *work) {
    const size_t rows = cg_matrix_rows_(op), cols = cg_matrix_cols_(op);
    const unsigned r = cg_matrix_r_(op);
    double *p64 = work, *q64 = p64 + r * rows, norm = 0.0;
    for (size_t i = 0; i < rows * r; i++) p64[i % r * rows + i / r] = (double)p[i];
    if (!cg_gram_schmidt_(p64, rows, r, &norm)) return CG_E_NONFINITE;
    cg_lowrank_store_p_(p64, rows, r, 1.0, p, r);
    cg_lowrank_compute_q_(cg_kernels_now_(), m, rows, cols, p, r, r, q64);
    for (size_t i = 0; i < cols * r; i++) q[i] = (float)(q64[i] * (double)alpha);
    return CG_OK;
}

/* src/core/encode.h */
/* ---- >>compress ---- */

typedef struct cg_encoder_ {
    const cg_kernels_ *kernels;
    const cg_stage *stage;
    const cg_layout_ *lay;
    const cg_source_ *src;
    const float *given_scales; /* scales from outside, or NULL */
    uint64_t key;
    uint8_t *scales, *table, *codes;
    size_t producer_step; /* values to be filled at a time */
} cg_encoder_;

/* what a block tells */
typedef struct cg_block_result_ {
    cg_checksum_ checksum;
    cg_bucket_stats_ stats;
    double lane_total, energy;
    size_t bytes;
} cg_block_result_;

static const cg_bucket_stats_ cg_bucket_stats_none_ = { 0, CG_FLT_MAX_, -CG_FLT_MAX_, { 0.0, 0.0 }, 0, 0 };

static void cg_bucket_stats_merge_(cg_bucket_stats_ *s, const cg_bucket_stats_ *t) {
    s->absmax_bits = cg_max32_(s->absmax_bits, t->absmax_bits);
    s->lo = t->lo < s->lo ? t->lo : s->lo;
    s->hi = t->hi > s->hi ? t->hi : s->hi;
    s->sums[0] += t->sums[0];
    s->sums[1] += t->sums[1];
    s->negatives += t->negatives;
    s->count += t->count;
}
static size_t cg_bucket_end_(const cg_layout_ *lay, size_t b) {
    size_t k = (size_t)lay->k, bucket = (size_t)lay->bucket_size, start = b * bucket;
    return bucket > k - start ? k : start + bucket;
}
/* Statistic of values [first, last), by runs between multiples of 2048 and blocks. v holds [have, have_end) of
   them already. */
static cg_bucket_stats_ cg_measure_(
    const cg_encoder_ *e, size_t first, size_t last, const float *v, size_t have, size_t have_end) {
    cg_bucket_stats_ stat = cg_bucket_stats_none_, part = cg_bucket_stats_none_;
    float buf[CG_CHUNK_];
    for (size_t i = first, many; i < last; i += many) {
        many = cg_min_(last - i, CG_CHUNK_ - i % CG_CHUNK_);
        part.count += many;
        e->lay->quantizer->measure(e->kernels, e->stage,
            i >= have && i < have_end ? cg_at_(v, i - have) : cg_source_fetch_(e->src, i, many, buf), many, &part);
        if ((i + many) % CG_BLOCK_ == 0 || i + many == last) {
            cg_bucket_stats_merge_(&stat, &part);
            part = cg_bucket_stats_none_;
        }
    }
    return stat;
}
static void cg_scales_put_(const cg_encoder_ *e, size_t bucket, const float *scales) {
    unsigned per = e->lay->quantizer->scale_count;
    if (e->lay->quantizer->scale_width == 1) { /* a power of two; see cg_e8m0_decode_ */
        e->scales[bucket] = (uint8_t)(cg_as_bits_(scales[0]) >> 23);
        return;
    }
    for (unsigned i = 0; i < per; i++) cg_put32_(e->scales + 4 * (bucket * per + i), cg_as_bits_(scales[i]));
}
static void cg_scales_get_(const cg_layout_ *lay, const uint8_t *p, size_t bucket, float *scales) {
    unsigned per = lay->quantizer->scale_count;
    if (lay->quantizer->scale_width == 1) {
        scales[0] = cg_e8m0_decode_(p[bucket]);
        return;
    }
    for (unsigned i = 0; i < per; i++) scales[i] = cg_as_float_(cg_get32_(p + 4 * (bucket * per + i)));
}

/* One chunk after the other of a block, each in buckets. A bucket's statistic is taken when its first value comes
   up; it belongs to the block it starts in. Buckets longer than a block have been measured before
   (cg_measure_long_buckets_). */
typedef struct cg_block_encoder_ {
    size_t block_begin, bucket_index; /* the block; the bucket whose scales these are */
    cg_key_ key;
    float scales[2];
    double lanes[16];
    uint32_t absmax_bits; /* the finite check */
    cg_bucket_stats_ bucket_stats;
} cg_block_encoder_;

static void cg_block_encoder_open_(cg_block_encoder_ *r, const cg_encoder_ *e, size_t block) {
    memset(r, 0, sizeof *r);
    r->block_begin = block * CG_BLOCK_;
    r->bucket_index = SIZE_MAX;
    r->key = cg_block_key_(e->key, block);
}
/* The scales of the bucket at value i, which begins there or before; 0: a value of it is not finite. */
static int cg_block_encoder_bucket_(
    const cg_encoder_ *e, cg_block_encoder_ *r, size_t b, const float *v, size_t first, size_t end) {
    const cg_layout_ *lay = e->lay;
    const cg_quantizer_ *row = lay->quantizer;
    const size_t start = b * (size_t)lay->bucket_size, stop = cg_bucket_end_(lay, b);
    r->bucket_index = b;
    if (lay->bucket_size > CG_BLOCK_ || e->given_scales) {
        cg_scales_get_(lay, e->scales, b, r->scales);
        return 1;
    }
    if (start >= first && stop <= end) { /* all of it is here */
        r->bucket_stats = cg_bucket_stats_none_;
        r->bucket_stats.count = stop - start;
        row->measure(e->kernels, e->stage, cg_at_(v, start - first), stop - start, &r->bucket_stats);
    } else {
        r->bucket_stats = cg_measure_(e, start, stop, v, first, end);
    }
    r->absmax_bits = cg_max32_(r->absmax_bits, r->bucket_stats.absmax_bits);
    if (r->bucket_stats.absmax_bits >= CG_INF_BITS_) return 0;
    row->set_scales(e->stage, &r->bucket_stats, r->scales);
    if (start >= r->block_begin && !row->rescale) cg_scales_put_(e, b, r->scales);
    return 1;
}
/* v by its scale. Tiny scales have no inverse: both are brought up first. */
static void cg_bucket_normalize_(
    const cg_kernels_ *kernels, float unit, float scale, const float *v, size_t n, float *out) {
    if (!cg_is_tiny_(scale) || scale == 0.0f) {
        for (size_t i = 0; i < n; i += 16) CG_PREFETCH_(cg_at_(v, i + CG_CHUNK_));
        kernels->axpby(v, n, cg_ratio_or_zero_(unit, scale), 0.0f, out, 0);
        return;
    }
    scale = cg_times_(scale, CG_POW2_100_); /* 2^100 */
    for (size_t i = 0; i < n; i++)
        cg_store_(out, i, cg_times_(cg_times_(cg_load_(v, i), CG_POW2_100_), cg_ratio_or_zero_(unit, scale)));
}
/* Values [first, first + many) to wire bits or bytes; 0: one was not finite. */
static int cg_encode_chunk_(
    const cg_encoder_ *e, cg_block_encoder_ *r, size_t first, size_t many, float *buf, uint8_t *to) {
    const cg_layout_ *lay = e->lay;
    const cg_quantizer_ *row = lay->quantizer;
    const size_t bucket = (size_t)lay->bucket_size, end = first + many;
    const float *v = cg_source_fetch_(e->src, first, many, buf), one = 1.0f;
    const int shorts = row->full_scale && bucket < 256; /* many calls would cost more than a pass over L1 */
    if (row->needs != CG_NEEDS_BUCKET_STATS_) {
        r->absmax_bits = cg_max32_(r->absmax_bits,
            row->encode(e->kernels, e->stage, NULL, r->key, (uint32_t)(first - r->block_begin), v, many, to, r->lanes));
        return r->absmax_bits < CG_INF_BITS_;
    }
    if (e->given_scales) { /* nobody has looked at these values */
        r->absmax_bits = cg_max32_(r->absmax_bits, e->kernels->absmax_bits(v, many));
        if (r->absmax_bits >= CG_INF_BITS_) return 0;
    }
    for (size_t i = first, b = first / bucket, stop; i < end; i = stop, b++) {
        stop = cg_min_(end, cg_bucket_end_(lay, b));
        if (b != r->bucket_index && !cg_block_encoder_bucket_(e, r, b, v, first, end)) return 0;
        if (row->full_scale) {
            float by = cg_ratio_or_zero_(row->full_scale(e->stage), r->scales[0]);
            const float *w = cg_at_(v, i - first);
            if (shorts || cg_is_tiny_(r->scales[0])) {
                cg_bucket_normalize_(
                    e->kernels, row->full_scale(e->stage), r->scales[0], w, stop - i, buf + (i - first));
                w = buf + (i - first);
                by = 1.0f;
            }
            if (!shorts)
                row->encode(e->kernels, e->stage, &by, r->key, (uint32_t)(i - r->block_begin), w, stop - i,
                    to + (i - first), NULL);
            continue;
        }
        if (row->rescale) memset(r->lanes, 0, sizeof r->lanes);
        row->encode(e->kernels, e->stage, r->scales, r->key, (uint32_t)(i - r->block_begin), cg_at_(v, i - first),
            stop - i, to + (row->output == CG_OUTPUT_SYMBOLS_ ? i - first : (i - first) * lay->bits_x32 / 256),
            r->lanes);
        if (row->rescale) { /* such a bucket never crosses a chunk */
            row->rescale(&r->bucket_stats, cg_lanes_reduce_(r->lanes), r->scales);
            cg_scales_put_(e, b, r->scales);
        }
    }
    if (shorts)
        row->encode(e->kernels, e->stage, &one, r->key, (uint32_t)(first - r->block_begin), buf, many, to, NULL);
    return 1;
}
/* Fixed rate: every chunk has its place. */
CG_NOINLINE_ void cg_encode_block_(const cg_encoder_ *e, size_t block, cg_block_result_ *part) {
    const cg_layout_ *lay = e->lay;
    const size_t begin = block * CG_BLOCK_, end = cg_min_((size_t)lay->k, begin + CG_BLOCK_);
    const int pack = lay->quantizer->output == CG_OUTPUT_SYMBOLS_ && lay->bits_x32 < 8 * 32;
    float buf[CG_CHUNK_];
    uint8_t symbols[CG_CHUNK_];
    cg_block_encoder_ run;
    cg_fenv_ env = cg_fenv_enter_(); /* threads have their own */
    const cg_producer_ *fill = cg_source_is_lazy_(e->src) ? NULL : e->src->producer;
    cg_block_encoder_open_(&run, e, block);
    part->checksum.a = part->checksum.b = part->checksum.words = 0;
    part->energy = 0.0;
    for (size_t first = begin, many; first < end; first += many) {
        uint8_t *out = e->codes + cg_codes_offset_(lay, first);
        size_t bytes;
        many = cg_min_(CG_CHUNK_, end - first);
        if (fill && first % e->producer_step == 0)
            part->energy += cg_producer_make_(fill, first, e->producer_step, (float *)(uintptr_t)e->src->x);
        if (!cg_encode_chunk_(e, &run, first, many, buf, pack ? symbols : out)) break;
        if (pack) e->kernels->pack(symbols, many, lay->bits_x32 / 32, out);
        bytes = (size_t)(((uint64_t)many * lay->bits_x32 / 32 + 7) / 8);
        while (bytes % 4) out[bytes++] = 0; /* the end of the section */
        e->kernels->checksum(&part->checksum, out, bytes / 4);
    }
    part->stats.absmax_bits = run.absmax_bits;
    part->lane_total = cg_lanes_reduce_(run.lanes);
    cg_fenv_leave_(env);
}
/* With a code pieces have any size, but none is larger than if it were packed. */
CG_NOINLINE_ void cg_encode_block_coded_(const cg_encoder_ *e, size_t block, uint8_t *out, cg_block_result_ *part) {
    const cg_layout_ *lay = e->lay;
    const size_t begin = block * CG_BLOCK_, end = cg_min_((size_t)lay->k, begin + CG_BLOCK_);
    const unsigned width = cg_float_width_(e->stage);
    uint8_t *at = out;
    float buf[CG_CHUNK_];
    uint8_t symbols[CG_PIECE_SYMBOLS_];
    cg_block_encoder_ run;
    int ok = 1;
    cg_fenv_ env = cg_fenv_enter_();
    cg_block_encoder_open_(&run, e, block);
    for (size_t piece = begin, many; piece < end && ok; piece += many) {
        const uint8_t *in = symbols;
        size_t cap;
        uint32_t entry;
        many = cg_min_(lay->piece_values, end - piece);
        if (width == 4 && !CG_BIG_ENDIAN_) { /* floats as they lie */
            in = (const uint8_t *)cg_source_fetch_(e->src, piece, many, buf);
            run.absmax_bits = cg_max32_(
                run.absmax_bits, e->kernels->absmax_bits((const float *)(const void *)in, many));
            ok = run.absmax_bits < CG_INF_BITS_;
        } else
            for (size_t first = piece, some; first < piece + many && ok; first += some) {
                some = cg_min_(CG_CHUNK_, piece + many - first);
                ok = cg_encode_chunk_(e, &run, first, some, buf, symbols + (first - piece));
            }
        if (!ok) break;
        cap = 4 * cg_codes_words_(lay, many);
        entry = width ? cg_floats_put_(e->kernels, width, in, many, at, cap)
                      : cg_piece_put_(e->kernels, lay->value_code, &lay->alphabet, symbols, many, at, cap);
        cg_put32_(e->table + piece / lay->piece_values * 4, entry);
        at += (size_t)cg_word_bytes_(entry & 0x3fffffffu);
    }
    part->bytes = (size_t)(at - out);
    part->stats.absmax_bits = run.absmax_bits;
    part->lane_total = cg_lanes_reduce_(run.lanes);
    cg_fenv_leave_(env);
}
CG_NOINLINE_ void cg_measure_block_(const cg_encoder_ *e, size_t first, size_t last, cg_block_result_ *part) {
    cg_fenv_ env = cg_fenv_enter_();
    part->stats = cg_measure_(e, first, last, NULL, 0, 0);
    cg_fenv_leave_(env);
}
static int cg_wave_size_(size_t items) { return (int)cg_min_(CG_WAVE_, items); }

static double cg_producer_make_block_(const cg_producer_ *fill, size_t block, float *x) {
    const size_t begin = block * CG_BLOCK_;
    double energy = 0.0;
    cg_fenv_ env = cg_fenv_enter_();
    for (size_t i = 0; i < CG_BLOCK_; i += fill->step) energy += cg_producer_make_(fill, begin + i, fill->step, x);
    cg_fenv_leave_(env);
    return energy;
}
/* All of them now. */
CG_NOINLINE_ void cg_producer_make_all_(cg_source_ *src) {
    cg_producer_ *fill = src->producer;
    const size_t n = fill && !fill->lazy ? fill->n : 0, blocks = n / CG_BLOCK_ + (n % CG_BLOCK_ != 0);
    double energy[CG_WAVE_];
    if (fill && !fill->lazy) fill->started = 1;
    for (size_t block = 0; block < blocks; block += CG_WAVE_) {
        int many = cg_wave_size_(blocks - block);
        CG_PARALLEL_
        for (int i = 0; i < many; i++)
            energy[i] = cg_producer_make_block_(fill, block + (size_t)i, (float *)(uintptr_t)src->x);
        for (int i = 0; i < many; i++) fill->energy += energy[i];
    }
    if (n) src->producer = NULL;
}

/* Pass 0, for buckets longer than a block. */
CG_NOINLINE_ cg_status cg_measure_long_buckets_(const cg_encoder_ *e) {
    const size_t k = (size_t)e->lay->k, bucket = (size_t)e->lay->bucket_size;
    cg_block_result_ part[CG_WAVE_];
    for (size_t b = 0; b * bucket < k; b++) {
        const size_t last = cg_bucket_end_(e->lay, b), start = b * bucket;
        cg_bucket_stats_ stat = cg_bucket_stats_none_;
        float scales[2];
        for (size_t block = start / CG_BLOCK_; block * CG_BLOCK_ < last; block += CG_WAVE_) {
            int many = cg_wave_size_((last - 1) / CG_BLOCK_ - block + 1);
            CG_PARALLEL_
            for (int i = 0; i < many; i++) {
                size_t from = (block + (size_t)i) * CG_BLOCK_, to = cg_min_(CG_BLOCK_, last - from) + from;
                cg_measure_block_(e, from < start ? start : from, to, &part[i]);
            }
            for (int i = 0; i < many; i++) cg_bucket_stats_merge_(&stat, &part[i].stats);
            if (stat.absmax_bits >= CG_INF_BITS_) return CG_E_NONFINITE;
        }
        e->lay->quantizer->set_scales(e->stage, &stat, scales);
        cg_scales_put_(e, b, scales);
    }
    return CG_OK;
}
/* Scales that somebody has agreed on. */
static cg_status cg_scales_put_given_(const cg_encoder_ *e) {
    const unsigned per = e->lay->quantizer->scale_count;
    for (size_t b = 0; b < (size_t)e->lay->bucket_count; b++) {
        float scales[2] = { 0.0f, 0.0f };
        for (unsigned i = 0; i < per; i++) scales[i] = cg_load_(e->given_scales, b * per + i);
        if (!e->lay->quantizer->legal(scales)) return CG_E_ARG;
        cg_scales_put_(e, b, scales);
    }
    return CG_OK;
}
/* Scales and codes; sum absorbs both. */
static cg_status cg_encode_values_(const cg_encoder_ *e, cg_checksum_ *sum, size_t *bytes) {
    const cg_layout_ *lay = e->lay;
    const size_t k = (size_t)lay->k, blocks = k / CG_BLOCK_ + (k % CG_BLOCK_ != 0);
    uint8_t *end = e->codes;
    cg_block_result_ part[CG_WAVE_];
    cg_checksum_ codes = { 0, 0, 0 };
    double total = 0.0;
    if (e->src->producer) e->src->producer->started = 1;
    /* what fills the scales to a word */
    if (lay->scale_bytes) memset(e->codes - (size_t)lay->piece_table_bytes - 4, 0, 4);
    if (e->given_scales) {
        cg_status s = cg_scales_put_given_(e);
        if (s != CG_OK) return s;
    } else if (lay->quantizer->needs == CG_NEEDS_BUCKET_STATS_ && lay->bucket_size > CG_BLOCK_ &&
        cg_measure_long_buckets_(e) != CG_OK) {
        return CG_E_NONFINITE;
    }
    for (size_t block = 0, wave; block < blocks; block += wave) {
        uint8_t *start = end;
        int many = cg_wave_size_(lay->value_code ? cg_min_(CG_CODED_WAVE_, blocks - block) : blocks - block);
        wave = (size_t)many;
        CG_PARALLEL_
        for (int i = 0; i < many; i++) {
            if (lay->value_code)
                cg_encode_block_coded_(
                    e, block + (size_t)i, start + cg_codes_offset_(lay, (size_t)i * CG_BLOCK_), &part[i]);
            else cg_encode_block_(e, block + (size_t)i, &part[i]);
        }
        for (int i = 0; i < many; i++) {
            if (part[i].stats.absmax_bits >= CG_INF_BITS_) return CG_E_NONFINITE;
            total += part[i].lane_total;
            if (e->src->producer && !lay->value_code) e->src->producer->energy += part[i].energy;
            if (!lay->value_code) {
                codes = cg_checksum_concat_(codes, part[i].checksum);
                continue;
            }
            if (i) memmove(end, start + cg_codes_offset_(lay, (size_t)i * CG_BLOCK_), part[i].bytes);
            codes = cg_checksum_concat_(codes, cg_checksum_of_(e->kernels, end, part[i].bytes));
            end += part[i].bytes;
        }
    }
    if (lay->quantizer->needs == CG_NEEDS_SUM_AFTERWARDS_ && k && !e->given_scales) {
        float mean = (float)(total / (double)k);
        cg_scales_put_(e, 0, &mean);
    }
    *bytes = (size_t)(lay->scale_bytes + lay->piece_table_bytes) +
        (lay->value_code ? (size_t)(end - e->codes) : (size_t)lay->codes_bytes);
    *sum = cg_checksum_concat_(
        *sum, cg_checksum_of_(e->kernels, e->scales, (size_t)(lay->scale_bytes + lay->piece_table_bytes)));
    *sum = cg_checksum_concat_(*sum, codes);
    return CG_OK;
}
/* Makes all values of a producer that is not lazy, where they belong: x. */
CG_OFFERED_ void cg_producer_run_(cg_producer_ *producer, float *x) {
    cg_source_ src = CG_ZERO;
    src.producer = producer;
    src.x = x;
    cg_producer_make_all_(&src);
}

/* src/core/compress.h */
/* Sizes of a packet whose selection left k values (or will leave at most k). */
static cg_status cg_layout_sizes_(
    const cg_op *op, const cg_extra *side, uint64_t k, cg_layout_ *lay, uint64_t *value_bytes) {
    cg_status s = cg_layout_make_(op, side, k, lay);
    if (s != CG_OK) return s;
    *value_bytes = cg_add_sat_(cg_add_sat_(lay->scale_bytes, lay->piece_table_bytes), lay->codes_bytes);
    if (lay->codec) {
        size_t most = lay->codec->bound(lay->codec, &op->quantize, (size_t)k);
        if (!most && k) return CG_E_ARG;
        *value_bytes = cg_add_sat_(most, 3) & ~(uint64_t)3;
    }
    return CG_OK;
}
static size_t cg_bound_(const cg_op *op, const cg_extra *side, size_t n) {
    cg_layout_ lay;
    uint64_t turned, k, universe, values, indices = 0;
    if (!op || cg_op_check_(op) != CG_OK || !cg_matrix_shape_fits_(op, n)) return 0;
    turned = cg_transformed_n_(op, cg_sampled_n_(op, n, NULL));
    if (turned == CG_TOO_LARGE_) return 0;
    k = cg_max_selected_(op, turned);
    if (cg_layout_sizes_(op, side, k, &lay, &values) != CG_OK) return 0;
    universe = cg_index_count_(op, turned);
    if (cg_has_fixed_k_(op) || op->select.id == CG_SELECT_CHUNKED)
        indices = cg_index_bytes_(cg_index_code_(op, universe, k), universe, k);
    else if (op->select.id && op->select.id != CG_SELECT_GIVEN)
        indices = cg_index_bound_(op, universe, cg_index_count_(op, k));
    return cg_size_or_zero_(cg_add_sat_(cg_add_sat_(values, indices), CG_HEADER_BYTES));
}
CG_API_ size_t cg_bound_with(const cg_op *op, const cg_extra *side, size_t n) {
    cg_fenv_ env = cg_fenv_enter_();
    size_t bytes = cg_bound_(op, side, n);
    cg_fenv_leave_(env);
    return bytes;
}
CG_API_ size_t cg_bound(const cg_op *op, size_t n) { return cg_bound_with(op, NULL, n); }

CG_API_ size_t cg_scratch(const cg_op *op, size_t n) {
    cg_fenv_ env = cg_fenv_enter_();
    size_t bytes = !op || cg_op_check_(op) != CG_OK ? 0 : cg_size_or_zero_(cg_scratch_bytes_(op, n));
    cg_fenv_leave_(env);
    return bytes;
}

/* Sample, transform and selection: what the quantizer will see. */
CG_NOINLINE_ cg_status cg_source_prepare_(
    const cg_kernels_ *kernels, cg_info *info, const cg_extra *side, cg_source_ *src, cg_list_ *list) {
    const cg_op *op = &info->op;
    const size_t turned = (size_t)cg_transformed_n_(op, info->drawn);
    cg_status s = CG_OK;
    info->k = turned;
    if (cg_is_matrix_op_(op)) {
        s = cg_matrix_encode_(kernels, info, src->x, list->materialized);
        src->x = list->materialized;
        src->to_transform = 0;
        src->count = turned;
        return s;
    }
    if (cg_needs_materialized_(op) && turned) {
        for (size_t i = 0, many; i < turned; i += many) {
            const float *v;
            many = cg_min_(CG_CHUNK_, turned - i);
            v = cg_source_fetch_(src, i, many, list->materialized + i); /* blocks end within the room */
            if (v != list->materialized + i) memcpy(list->materialized + i, v, 4 * many);
        }
        if (kernels->absmax_bits(list->materialized, turned) >= CG_INF_BITS_) return CG_E_NONFINITE;
        src->x = list->materialized;
        src->to_sample = src->to_transform = 0;
        src->count = turned;
        src->producer = NULL;
    }
    if (op->select.id) {
        cg_selector_ p;
        p.kernels = kernels;
        p.side = side;
        p.x = cg_source_is_lazy_(src) ? NULL : src->x;
        p.producer = src->producer;
        p.n = turned;
        p.shared_key = cg_shared_key_(&info->tag);
        p.rank_key = cg_rank_key_(&info->tag);
        p.list = list;
        p.info = info;
        s = cg_selector_run_(&p);
        src->producer = NULL;
        src->x = list->value;
        src->count = info->k;
    }
    return s;
}
static cg_status cg_encode_user_(const cg_layout_ *lay, const cg_info *info, const cg_source_ *src,
    const cg_kernels_ *kernels, uint8_t *out, size_t cap, size_t *bytes, cg_checksum_ *sum) {
    cg_status s;
    for (size_t i = 0; i < lay->k; i += CG_CHUNK_)
        if (kernels->absmax_bits(cg_at_(src->x, i), cg_min_(CG_CHUNK_, (size_t)lay->k - i)) >= CG_INF_BITS_)
            return CG_E_NONFINITE;
    *bytes = 0;
    s = lay->codec->compress(lay->codec, &info->op.quantize, &info->tag, src->x, (size_t)lay->k, out, cap, bytes);
    if (s != CG_OK) return s;
    if (*bytes > cap) return CG_E_CAPACITY;
    if (cap - *bytes < (4 - *bytes % 4) % 4) return CG_E_CAPACITY;
    while (*bytes % 4) out[(*bytes)++] = 0;
    *sum = cg_checksum_concat_(*sum, cg_checksum_of_(kernels, out, *bytes));
    return CG_OK;
}

/* Does a later stage make the values, where it needs them? Others need all of them at once. */
static int cg_producer_is_fused_(const cg_op *op, const cg_producer_ *fill) {
    if (op->sample.id || op->code.arg || cg_is_matrix_op_(op) || cg_is_user_codec_(&op->quantize)) return 0;
    return !op->select.id || (op->select.id == CG_SELECT_TOPK && !op->transform.id && fill->threshold_hint);
}
static cg_status cg_compress_packet_(cg_info *info, const cg_extra *side, cg_producer_ *fill, const float *x,
    uint8_t *packet, size_t cap, size_t *len, void *scratch) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    cg_layout_ lay;
    cg_list_ list;
    cg_source_ src;
    cg_checksum_ body = { 0, 0, 0 };
    uint64_t value_bytes, index_bytes, universe, need;
    cg_status s;
    if (info->op.sample.id == CG_SAMPLE_PERMK && info->tag.rank >= info->op.sample.size) return CG_E_ARG;
    info->drawn = cg_sampled_n_(&info->op, info->n, &info->tag);
    src.kernels = kernels;
    src.info = info;
    src.x = x;
    src.count = info->drawn;
    src.to_sample = info->op.sample.id != 0;
    src.to_transform = info->op.transform.id != 0;
    src.producer = fill;
    if (fill && !cg_producer_is_fused_(&info->op, fill)) cg_producer_make_all_(&src);
    cg_list_in_scratch_(&list, &info->op, cg_transformed_n_(&info->op, info->drawn), scratch);
    s = cg_source_prepare_(kernels, info, side, &src, &list);
    if (s != CG_OK) return s;
    s = cg_layout_sizes_(&info->op, side, info->k, &lay, &value_bytes);
    if (s != CG_OK) return s;
    /* buckets across blocks */
    if (lay.quantizer && lay.quantizer->needs == CG_NEEDS_BUCKET_STATS_ && CG_BLOCK_ % lay.bucket_size &&
        lay.k > CG_BLOCK_)
        cg_producer_make_all_(&src);
    universe = cg_index_count_(&info->op, cg_transformed_n_(&info->op, info->drawn));
    info->index_code = cg_index_code_(&info->op, universe, cg_index_count_(&info->op, info->k));
    index_bytes = cg_index_bytes_(info->index_code, universe, cg_index_count_(&info->op, info->k));
    need = cg_add_sat_(cg_add_sat_(lay.codec ? 0 : value_bytes, index_bytes), CG_HEADER_BYTES);
    if (need > cap) return CG_E_CAPACITY;
    if (lay.codec) {
        s = cg_encode_user_(
            &lay, info, &src, kernels, packet + CG_HEADER_BYTES, cap - (size_t)need, &info->value_bytes, &body);
    } else {
        cg_encoder_ e;
        e.kernels = kernels;
        e.stage = &info->op.quantize;
        e.lay = &lay;
        e.src = &src;
        e.given_scales = side ? side->scale : NULL;
        e.key = cg_rank_key_(&info->tag);
        e.scales = packet + CG_HEADER_BYTES;
        e.table = e.scales + (size_t)lay.scale_bytes;
        e.codes = e.table + (size_t)lay.piece_table_bytes;
        e.producer_step = fill && fill->step == CG_CHUNK_ &&
                (lay.quantizer->needs != CG_NEEDS_BUCKET_STATS_ || CG_CHUNK_ % lay.bucket_size == 0)
            ? CG_CHUNK_
            : CG_BLOCK_;
        s = cg_encode_values_(&e, &body, &info->value_bytes);
    }
    if (s != CG_OK) return s;
    if (index_bytes) {
        uint8_t *out = packet + CG_HEADER_BYTES + info->value_bytes;
        info->index_bytes = cg_index_put_(info->index_code, universe, &list, out);
        body = cg_checksum_concat_(body, cg_checksum_of_(kernels, out, info->index_bytes));
    }
    *len = cg_packet_finalize_(kernels, info, packet, body);
    return CG_OK;
}
static cg_status cg_compress_checked_(const cg_op *op, const cg_tag *tag, const cg_extra *side, const float *x,
    cg_producer_ *fill, size_t n, void *packet, size_t cap, size_t *len, void *scratch, size_t scratch_bytes) {
    cg_info info = CG_ZERO;
    const float none = 0.0f; /* x, where there are no values: NULL + 0 is undefined */
    if (len) *len = 0;
    if (!op || !len || !packet || (!x && n) || cg_bound_(op, side, n) == 0) return CG_E_ARG;
    if (cg_extra_check_(op, side) != CG_OK) return cg_extra_check_(op, side);
    if (cg_scratch_bytes_(op, n) > scratch_bytes) return CG_E_CAPACITY;
    if (scratch_bytes && !scratch) return CG_E_ARG;
    info.op = *op;
    info.n = n;
    if (tag) info.tag = *tag;
    return cg_compress_packet_(&info, side, fill, x ? x : &none, (uint8_t *)packet, cap, len, scratch);
}
CG_API_ cg_status cg_compress_with(const cg_op *op, const cg_tag *tag, const cg_extra *side, const float *x, size_t n,
    void *packet, size_t cap, size_t *len, void *scratch, size_t scratch_bytes) {
    cg_fenv_ env = cg_fenv_enter_();
    cg_status s = cg_compress_checked_(op, tag, side, x, NULL, n, packet, cap, len, scratch, scratch_bytes);
    cg_fenv_leave_(env);
    return s;
}
CG_API_ cg_status cg_compress(const cg_op *op, const cg_tag *tag, const float *x, size_t n, void *packet, size_t cap,
    size_t *len, void *scratch, size_t scratch_bytes) {
    return cg_compress_with(op, tag, NULL, x, n, packet, cap, len, scratch, scratch_bytes);
}

/* src/core/decode_values.h */
/* ---- >>decode ---- */

/* Who takes decoded values, in place of y: stretches of them, or single ones. Both return the sum of their squares. */
typedef struct cg_sink_ {
    double (*take_dense)(const void *user, size_t first, size_t many, const float *v);
    double (*take_sparse)(const void *user, const uint64_t *at, size_t many, const float *v);
    const void *user;
    double energy; /* comes back: of all of them */
} cg_sink_;

typedef struct cg_decoder_ {
    const cg_kernels_ *kernels;
    const uint8_t *packet, *scales, *piece_table, *codes, *index;
    const struct cg_decoder_ *support; /* whose indices these values have, or NULL */
    cg_info info;
    cg_layout_ lay;
    size_t transformed_n;
    float alpha, beta;
    float *y;
    float empty_y;    /* y, where there are no values: NULL + 0 is undefined */
    cg_sink_ *sink;   /* in place of y, or NULL */
    int non_temporal; /* y is larger than the caches, and aligned */
} cg_decoder_;

/* Where a reader of pieces stands, and the piece it has decoded. Not needed without a code. */
typedef struct cg_piece_cursor_ {
    size_t piece, offset;
    int decoded;
    uint8_t symbols[CG_PIECE_SYMBOLS_];
} cg_piece_cursor_;

static size_t cg_piece_bytes_(const cg_decoder_ *d, size_t piece) {
    return (size_t)cg_word_bytes_(cg_get32_(d->piece_table + 4 * piece) & 0x3fffffffu);
}
static void cg_piece_cursor_open_(cg_piece_cursor_ *c, size_t piece, size_t at) {
    c->piece = piece;
    c->offset = at;
    c->decoded = 0;
}
/* Symbols or wire floats from value `first` on, which goes up. */
CG_NOINLINE_ const uint8_t *cg_piece_cursor_get_(cg_piece_cursor_ *c, const cg_decoder_ *d, size_t first) {
    const cg_layout_ *lay = &d->lay;
    const size_t piece = first / lay->piece_values,
                 many = cg_min_(lay->piece_values, (size_t)lay->k - piece * lay->piece_values);
    const unsigned width = cg_float_width_(&d->info.op.quantize);
    for (; c->piece < piece; c->piece++, c->decoded = 0) c->offset += cg_piece_bytes_(d, c->piece);
    if (!c->decoded) {
        const uint32_t entry = cg_get32_(d->piece_table + 4 * piece);
        const size_t bytes = cg_piece_bytes_(d, piece);
        if (width) cg_floats_get_(d->kernels, width, entry, d->codes + c->offset, bytes, many, c->symbols);
        else
            cg_piece_get_(
                d->kernels, lay->value_code, &lay->alphabet, entry, d->codes + c->offset, bytes, many, c->symbols);
        c->decoded = 1;
    }
    return c->symbols + (first - piece * lay->piece_values) * (width ? width : 1);
}
/* Bits or bytes of values [first, first + many) to floats, bucket by bucket. */
static void cg_decode_buckets_(
    const cg_decoder_ *d, const uint8_t *in, size_t first, size_t many, float *out, int stream) {
    const cg_layout_ *lay = &d->lay;
    const cg_quantizer_ *row = lay->quantizer;
    float scales[2];
    if (row->needs != CG_NEEDS_BUCKET_STATS_) {
        if (row->scale_count) cg_scales_get_(lay, d->scales, 0, scales);
        row->decode(d->kernels, &d->info.op.quantize, scales, in, many, out, stream);
        return;
    }
    for (size_t i = first, b = first / (size_t)lay->bucket_size, stop; i < first + many; i = stop, b++) {
        stop = cg_min_(first + many, cg_bucket_end_(lay, b));
        cg_scales_get_(lay, d->scales, b, scales);
        row->decode(d->kernels, &d->info.op.quantize, scales,
            in + (row->output == CG_OUTPUT_SYMBOLS_ ? i - first : (i - first) * lay->bits_x32 / 256), stop - i,
            cg_at_mut_(out, i - first), stream && (i - first) % 4 == 0);
    }
}
CG_NOINLINE_ void cg_decode_packed_(
    const cg_decoder_ *d, const uint8_t *in, size_t first, size_t many, float *out, int stream) {
    uint8_t symbols[CG_CHUNK_];
    d->kernels->unpack(in, many, d->lay.bits_x32 / 32, symbols);
    cg_decode_buckets_(d, symbols, first, many, out, stream);
}
/* Values [first, first + many) as floats, in out or where they lie; NULL: the user's codec refused. first is a
   multiple of CG_CHUNK_, many at most that. */
static const float *cg_decode_chunk_(
    const cg_decoder_ *d, cg_piece_cursor_ *cursor, size_t first, size_t many, float *out, int stream) {
    const cg_layout_ *lay = &d->lay;
    const uint8_t *in;
    if (lay->codec) {
        cg_status s = lay->codec->decode(
            lay->codec, &d->info.op.quantize, d->codes, d->info.value_bytes, (size_t)lay->k, first, many, out);
        return s == CG_OK && d->kernels->absmax_bits(out, many) < CG_INF_BITS_ ? out : NULL;
    }
    in = lay->value_code ? cg_piece_cursor_get_(cursor, d, first) : d->codes + cg_codes_offset_(lay, first);
#if !CG_BIG_ENDIAN_
    if (lay->bits_x32 == 32 * 32) return (const float *)(const void *)in; /* f32 as it lies */
#endif
    if (lay->quantizer->output == CG_OUTPUT_SYMBOLS_ && lay->bits_x32 < 8 * 32 && !lay->value_code)
        cg_decode_packed_(d, in, first, many, out, stream);
    else cg_decode_buckets_(d, in, first, many, out, stream);
    return out;
}

/* src/core/verify.h */
static int cg_padding_zero_(const uint8_t *p, uint64_t bits) { /* from bit `bits` to the end of its u32 */
    for (uint64_t i = bits; i % 32; i++)
        if (p[i / 8] >> i % 8 & 1) return 0;
    return 1;
}
static int cg_scales_legal_(const cg_decoder_ *d) {
    const cg_quantizer_ *row = d->lay.quantizer;
    float scales[2];
    if (!row || !row->scale_count) return 1;
    for (size_t b = 0; b < (size_t)d->lay.bucket_count; b++) {
        if (row->scale_width == 1) {
            if (d->scales[b] == 255) return 0;
            continue;
        }
        cg_scales_get_(&d->lay, d->scales, b, scales);
        if (!row->legal(scales)) return 0;
    }
    return cg_padding_zero_(d->scales, d->lay.bucket_count * row->scale_count * row->scale_width * 8);
}
/* Asks for the first half of the next chunk's codes, which sets the hardware going; all of it is slower. */
static void cg_codes_prefetch_(const cg_decoder_ *d, size_t first) {
    const size_t bytes = cg_codes_offset_(&d->lay, CG_CHUNK_);
    const uint8_t *next = d->codes + cg_codes_offset_(&d->lay, first) + bytes;
    if (!d->lay.value_code)
        for (size_t i = 0; i < bytes / 2; i += 64) CG_PREFETCH_(next + i);
}
/* A stretch of codes (whole u32 words but for the end): its checksum, and whether its values are finite. */
static int cg_codes_check_(const cg_decoder_ *d, size_t first, size_t many, cg_checksum_ *sum) {
    const uint8_t *in = d->codes + cg_codes_offset_(&d->lay, first);
    const cg_quantizer_ *row = d->lay.quantizer;
    d->kernels->checksum(sum, in, cg_codes_words_(&d->lay, many));
    return !row->stored_absmax_bits || row->stored_absmax_bits(d->kernels, in, many) < row->stored_limit;
}
/* Pieces: entries that add up to the section, each piece one that can be decoded; floats finite. */
CG_NOINLINE_ int cg_pieces_check_(const cg_decoder_ *d) {
    const cg_layout_ *lay = &d->lay;
    const size_t k = (size_t)lay->k, pieces = (size_t)lay->piece_table_bytes / 4;
    const size_t all = d->info.value_bytes - (size_t)(lay->scale_bytes + lay->piece_table_bytes);
    const unsigned width = cg_float_width_(&d->info.op.quantize);
    size_t at = 0;
    for (size_t i = 0; i < pieces; i++) {
        const size_t bytes = cg_piece_bytes_(d, i), many = cg_min_(lay->piece_values, k - i * lay->piece_values);
        const uint32_t entry = cg_get32_(d->piece_table + 4 * i);
        if (bytes > all - at) return 0;
        if (!width && !cg_piece_check_(d->kernels, lay->value_code, &lay->alphabet, entry, d->codes + at, bytes, many))
            return 0;
        if (width) {
            if (!cg_floats_check_(d->kernels, width, entry, d->codes + at, bytes, many)) return 0;
            if (entry >> 30 == 0 &&
                lay->quantizer->stored_absmax_bits(d->kernels, d->codes + at, many) >= lay->quantizer->stored_limit)
                return 0;
        }
        at += bytes;
    }
    return at == all;
}
/* Are these k ascending indices, and no more bits? *next: one more than the last. */
static int cg_index_validate_(cg_index_reader_ *r, uint64_t k, uint64_t *next) {
    uint64_t index[512], seen = 0, extra;
    for (*next = 0; seen < k;) {
        size_t want = (size_t)(k - seen < 512 ? k - seen : 512);
        int bad = 0;
        if (cg_index_get_(r, index, want) < want) return 0;
        for (size_t i = 0; i < want; i++) {
            bad |= index[i] < *next;
            *next = index[i] + 1;
        }
        if (bad || *next > r->universe || *next == 0) return 0;
        seen += want;
    }
    if (r->golomb) return cg_rice_reader_at_end_(&r->rice);
    return cg_index_get_(r, &extra, 1) == 0;
}
#if CG_AVX2_
/* The same of Elias-Fano without building them: where a high bit follows another at once, the high parts are
   equal, and the low parts must ascend. l <= 28: two low parts are within one load; at least 8 bytes of high bits:
   no load ends beyond them. */
CG_TARGET_AVX2_ static int cg_index_validate_avx2_(const cg_index_reader_ *r, uint64_t k, uint64_t *next) {
    const uint64_t mask = ((uint64_t)1 << r->low_bits) - 1;
    uint64_t i = 0, carry = 0, high = 0, at, two;
    int bad = 0;
    for (size_t byte = 0, bytes = (size_t)(r->end - r->next_high); byte < bytes; byte += 8) {
        const uint64_t word = bytes - byte >= 8 ? cg_get64_(r->next_high + byte) : cg_get32_(r->next_high + byte),
                       many = (uint64_t)__builtin_popcountll(word);
        if (many > k - i) return 0;
        for (uint64_t both = word & (word << 1 | carry); both; both &= both - 1) {
            at = (i + (uint64_t)__builtin_popcountll(word & ~both & (both - 1)) - 1) * r->low_bits;
            two = cg_get64_(r->low_part + (size_t)(at >> 3)) >> (at & 7);
            bad |= (two & mask) >= (two >> r->low_bits & mask);
        }
        if (word) high = 8 * (uint64_t)byte + cg_log2_(word);
        carry = word >> 63;
        i += many;
    }
    if (bad || i < k || high - (k - 1) > r->universe >> r->low_bits) return 0;
    at = (k - 1) * r->low_bits;
    two = 0;
    for (unsigned b = 0; b < 5; b++) two |= (uint64_t)r->low_part[(size_t)(at >> 3) + b] << 8 * b;
    *next = ((high - (k - 1)) << r->low_bits | (two >> (at & 7) & mask)) + 1;
    return *next <= r->universe;
}
#endif
CG_NOINLINE_ int cg_index_check_(const cg_decoder_ *d) {
    const cg_info *info = &d->info;
    const uint64_t k = cg_index_count_(&info->op, info->k);
    cg_index_reader_ r = cg_index_open_(info, d->index);
    uint64_t next;
    int ok;
    if (!info->index_bytes) return k == 0 || !info->op.select.id || info->op.select.id == CG_SELECT_GIVEN;
    if (!r.golomb && !cg_padding_zero_(r.next_high, r.bitmap ? r.universe : cg_elias_fano_high_bits_(r.universe, k)))
        return 0;
    if (!r.golomb && !r.bitmap && !cg_padding_zero_(r.low_part, k * r.low_bits)) return 0;
#if CG_AVX2_
    if (d->kernels->isa == CG_ISA_AVX2 && k && !r.golomb && !r.bitmap && r.low_bits <= 28 && r.end - r.next_high >= 8)
        ok = cg_index_validate_avx2_(&r, k, &next);
    else
#endif
        ok = cg_index_validate_(&r, k, &next);
    if (!ok) return 0;
    /* only the last block of all may be short, and then it is */
    return r.values_per_index == 1 ||
        (info->k % r.values_per_index
                ? next == r.universe && info->k % r.values_per_index == r.transformed_n % r.values_per_index
                : next != r.universe || !(r.transformed_n % r.values_per_index));
}
/* The checksum of everything but the codes, and then the packet's verdict. */
static int cg_checksum_ok_(const cg_decoder_ *d, cg_checksum_ codes) {
    static const uint8_t zeros[16] = { 0 };
    cg_checksum_ s = cg_checksum_of_(d->kernels, d->packet, CG_CHECKSUM_OFFSET_);
    s = cg_checksum_concat_(s, cg_checksum_of_(d->kernels, zeros, 16));
    s = cg_checksum_concat_(s, cg_checksum_of_(d->kernels, d->scales, (size_t)(d->codes - d->scales)));
    s = cg_checksum_concat_(s, codes);
    s = cg_checksum_concat_(s, cg_checksum_of_(d->kernels, d->index, d->info.index_bytes));
    return s.a == cg_get64_(d->packet + CG_CHECKSUM_OFFSET_) && s.b == cg_get64_(d->packet + CG_CHECKSUM_OFFSET_ + 8);
}
/* Everything that can be wrong with values and indices. */
CG_NOINLINE_ cg_status cg_verify_(const cg_decoder_ *d) {
    const size_t k = (size_t)d->lay.k;
    cg_checksum_ sum = { 0, 0, 0 };
    float out[CG_CHUNK_];
    int finite = 1;
    if (!d->lay.quantizer || d->lay.value_code)
        sum = cg_checksum_of_(d->kernels, d->codes, (size_t)(d->index - d->codes));
    else
        for (size_t i = 0; i < k; i += CG_CHUNK_) {
            cg_codes_prefetch_(d, i);
            finite &= cg_codes_check_(d, i, cg_min_(CG_CHUNK_, k - i), &sum);
        }
    if (!cg_checksum_ok_(d, sum) || !finite || !cg_index_check_(d)) return CG_E_CORRUPT;
    if (d->lay.value_code && !cg_pieces_check_(d)) return CG_E_CORRUPT;
    for (size_t i = 0; d->lay.codec && i < k; i += CG_CHUNK_)
        if (!cg_decode_chunk_(d, NULL, i, cg_min_(CG_CHUNK_, k - i), out, 0)) return CG_E_CORRUPT;
    return CG_OK;
}

/* src/core/scatter.h */
/* Values of a selection, a stretch at a time, with their indices before the transform was undone. */
enum { CG_SPARSE_BATCH_ = 128 };
typedef struct cg_selection_reader_ {
    cg_index_reader_ reader;
    cg_piece_cursor_ *cursor; /* NULL without a code */
    uint64_t index[CG_SPARSE_BATCH_];
    const float *values;
    float buf[CG_CHUNK_];
    /* values [first, first + many) are at hand; next: the first that has not been used */
    size_t batch_first, batch_n, next_unused;
} cg_selection_reader_;

static void cg_selection_reader_open_(cg_selection_reader_ *w, const cg_decoder_ *d, cg_piece_cursor_ *cursor) {
    const cg_decoder_ *set = d->support ? d->support : d;
    w->reader = cg_index_open_(&set->info, set->index);
    w->cursor = cursor;
    if (cursor) cg_piece_cursor_open_(cursor, 0, 0);
    w->values = NULL;
    w->batch_first = w->batch_n = w->next_unused = 0;
}
/* How many there are from value `first` on, a multiple of CG_SPARSE_BATCH_; 0: a codec changed its mind after
   cg_verify_. */
static size_t cg_selection_reader_load_(cg_selection_reader_ *w, const cg_decoder_ *d, size_t first) {
    const size_t k = (size_t)d->lay.k, many = cg_min_(CG_SPARSE_BATCH_, k - first);
    if (first % CG_CHUNK_ == 0)
        w->values = cg_decode_chunk_(d, w->cursor, first, cg_min_(CG_CHUNK_, k - first), w->buf, 0);
    return w->values ? many : 0;
}

/* Chunk `first` of what the sample left, transform undone; with a selection chunks must come one after the other. */
static const float *cg_inverse_transform_chunk_(
    const cg_decoder_ *d, cg_selection_reader_ *w, cg_piece_cursor_ *cursor, size_t first, float *out) {
    const cg_stage *stage = &d->info.op.transform;
    const size_t unit = stage->id == CG_TRANSFORM_ROTATE ? CG_ROTATE_BLOCK_ : CG_DCT_BLOCK_,
                 end = cg_min_(d->transformed_n, first + CG_CHUNK_);
    const uint64_t key = cg_shared_key_(&d->info.tag);
    const float *v = out;
    if (!d->info.op.select.id) {
        v = cg_decode_chunk_(d, cursor, first, end - first, out, 0);
        if (!v) return NULL;
    } else {
        memset(out, 0, 4 * (end - first));
        for (;;) {
            if (w->next_unused == w->batch_first + w->batch_n) {
                if (w->next_unused == (size_t)d->lay.k) break;
                w->batch_first = w->next_unused;
                w->batch_n = cg_selection_reader_load_(w, d, w->batch_first);
                if (!w->batch_n) return NULL;
                cg_index_get_per_value_(&w->reader, w->index, w->batch_n);
            }
            if (w->index[w->next_unused - w->batch_first] >= end) break;
            out[(size_t)w->index[w->next_unused - w->batch_first] - first] = cg_load_(
                w->values, w->next_unused % CG_CHUNK_);
            w->next_unused++;
        }
    }
    for (size_t b = first; b < end; b += unit)
        cg_transform_block_(d->kernels, stage, key, b / unit, cg_at_(v, b - first), out + (b - first), 1);
    return out;
}

/* Dense: every value of y, by blocks. direct: the codes are checked on the way. */
static int cg_decode_block_(const cg_decoder_ *d, cg_selection_reader_ *walk, cg_piece_cursor_ *cursor, size_t block,
    int direct, cg_checksum_ *sum, double *energy) {
    const size_t n = (size_t)d->info.drawn, end = cg_min_(n, (block + 1) * CG_BLOCK_);
    const int turned = d->info.op.transform.id != 0,
              in_place = d->alpha == 1.0f && d->beta == 0.0f && !d->lay.codec && !turned && !d->sink;
    float out[CG_CHUNK_];
    int ok = 1;
    cg_fenv_ env = cg_fenv_enter_();
    sum->a = sum->b = sum->words = 0;
    *energy = 0.0;
    for (size_t first = block * CG_BLOCK_, many; first < end && ok; first += many) {
        many = cg_min_(CG_CHUNK_, end - first);
        if (direct) ok = cg_codes_check_(d, first, cg_min_(CG_CHUNK_, (size_t)d->lay.k - first), sum);
        if (ok) {
            float *y = d->sink ? d->y : cg_at_mut_(d->y, first);
            const float *v;
            cg_codes_prefetch_(d, first);
            if (turned) v = cg_inverse_transform_chunk_(d, walk, cursor, first, out);
            else v = cg_decode_chunk_(d, cursor, first, many, in_place ? y : out, in_place && d->non_temporal);
            if (v && d->sink) *energy += d->sink->take_dense(d->sink->user, first, many, v);
            else if (v && v != y) d->kernels->axpby(v, many, d->alpha, d->beta, y, d->non_temporal);
            ok = v != NULL;
        }
    }
    if (d->non_temporal) d->kernels->stream_fence();
    cg_fenv_leave_(env);
    return ok;
}
/* at: where the block's pieces start */
CG_NOINLINE_ int cg_decode_block_coded_(
    const cg_decoder_ *d, size_t block, size_t at, cg_checksum_ *sum, double *energy) {
    cg_piece_cursor_ cursor;
    cg_piece_cursor_open_(&cursor, block * CG_BLOCK_ / d->lay.piece_values, at);
    return cg_decode_block_(d, NULL, &cursor, block, 0, sum, energy);
}
CG_NOINLINE_ cg_status cg_decode_dense_(const cg_decoder_ *d, int direct) {
    const size_t n = (size_t)d->info.drawn, blocks = n / CG_BLOCK_ + (n % CG_BLOCK_ != 0);
    cg_checksum_ part[CG_WAVE_], sum = { 0, 0, 0 };
    size_t at[CG_WAVE_ + 1] = { 0 };
    double energy[CG_WAVE_];
    int ok[CG_WAVE_];
    for (size_t block = 0; block < blocks; block += CG_WAVE_) {
        int many = cg_wave_size_(blocks - block);
        for (int i = 0; d->lay.value_code && i < many; i++) {
            const size_t per = CG_BLOCK_ / d->lay.piece_values, pieces = (size_t)d->lay.piece_table_bytes / 4,
                         first = (block + (size_t)i) * per;
            at[i + 1] = at[i];
            for (size_t p = first; p < cg_min_(pieces, first + per); p++) at[i + 1] += cg_piece_bytes_(d, p);
        }
        CG_PARALLEL_
        for (int i = 0; i < many; i++)
            ok[i] = d->lay.value_code
                ? cg_decode_block_coded_(d, block + (size_t)i, at[i], &part[i], &energy[i])
                : cg_decode_block_(d, NULL, NULL, block + (size_t)i, direct, &part[i], &energy[i]);
        at[0] = at[many];
        for (int i = 0; i < many; i++) {
            if (!ok[i]) return CG_E_CORRUPT;
            if (d->sink) d->sink->energy += energy[i];
            sum = cg_checksum_concat_(sum, part[i]);
        }
    }
    return !direct || cg_checksum_ok_(d, sum) ? CG_OK : CG_E_CORRUPT;
}
/* A selection behind a transform: its values come one after the other, so blocks do, too. */
CG_NOINLINE_ cg_status cg_decode_sequential_(const cg_decoder_ *d, cg_piece_cursor_ *cursor) {
    const size_t n = (size_t)d->info.drawn;
    cg_selection_reader_ walk;
    cg_checksum_ none;
    double energy;
    cg_selection_reader_open_(&walk, d, cursor);
    for (size_t block = 0; block * CG_BLOCK_ < n; block++) {
        if (!cg_decode_block_(d, &walk, cursor, block, 0, &none, &energy)) return CG_E_CORRUPT;
        if (d->sink) d->sink->energy += energy;
    }
    return CG_OK;
}

/* Where the packet has values, in ascending order: `many` more from value `first` on. */
static void cg_coordinates_get_(const cg_decoder_ *d, cg_index_reader_ *r, size_t first, size_t many, uint64_t *at) {
    const cg_decoder_ *set = d->support ? d->support : d;
    const int indexed = set->info.op.select.id && !set->info.op.transform.id;
    cg_strata_ strata;
    if (indexed) cg_index_get_per_value_(r, at, many);
    if (!set->info.op.sample.id) {
        for (size_t i = 0; !indexed && i < many; i++) at[i] = first + i;
        return;
    }
    cg_strata_open_(&strata, &set->info, first);
    for (size_t i = 0; i < many; i++, cg_strata_next_(&strata)) {
        if (indexed) cg_strata_seek_(&strata, at[i]);
        at[i] = cg_strata_sample_(&strata);
    }
}
static void cg_scale_y_(float *y, size_t n, float beta) { /* where the packet has no value */
    if (beta == 0.0f) memset(y, 0, 4 * n);
    else if (beta != 1.0f)
        for (size_t i = 0; i < n; i++) cg_store_(y, i, cg_times_(beta, cg_load_(y, i)));
}
/* The values of a packet that is sparse in y, a stretch at a time. */
static size_t cg_coordinate_count_(const cg_decoder_ *d) {
    return d->info.op.transform.id ? (size_t)d->info.drawn : (size_t)d->lay.k;
}
static size_t cg_selection_reader_next_(
    cg_selection_reader_ *w, const cg_decoder_ *d, size_t first, float *value, float *buf) {
    const size_t many = cg_min_(CG_SPARSE_BATCH_, cg_coordinate_count_(d) - first);
    if (!buf) buf = w->buf;
    if (d->info.op.transform.id) {
        if (first % CG_CHUNK_ == 0 && !cg_inverse_transform_chunk_(d, w, w->cursor, first, buf)) return 0;
        memcpy(value, buf + first % CG_CHUNK_, 4 * many);
    } else {
        if (!cg_selection_reader_load_(w, d, first)) return 0;
        memcpy(value, cg_at_(w->values, first % CG_CHUNK_), 4 * many);
    }
    if (d->alpha != 1.0f)
        for (size_t i = 0; i < many; i++) value[i] = cg_times_(d->alpha, value[i]);
    return many;
}
/* Into a y that is in the cache, or is added to: fill a stretch, then scatter into it. buf: for a transform of a
   selection. */
static cg_status cg_scatter_into_(const cg_decoder_ *d, cg_piece_cursor_ *cursor, float *buf) {
    const size_t k = cg_coordinate_count_(d), n = (size_t)d->info.n;
    uint64_t at[CG_SPARSE_BATCH_];
    float value[CG_SPARSE_BATCH_];
    size_t filled = 0;
    cg_selection_reader_ w;
    cg_selection_reader_open_(&w, d, cursor);
    for (size_t first = 0, many; first < k; first += many) {
        many = cg_selection_reader_next_(&w, d, first, value, buf);
        if (!many) return CG_E_CORRUPT;
        cg_coordinates_get_(d, &w.reader, first, many, at);
        if (d->sink) {
            d->sink->energy += d->sink->take_sparse(d->sink->user, at, many, value);
            continue;
        }
        cg_scale_y_(cg_at_mut_(d->y, filled), (size_t)at[many - 1] + 1 - filled, d->beta);
        filled = (size_t)at[many - 1] + 1;
        if (w.reader.values_per_index > 1 && !d->info.op.sample.id && !d->support) { /* block by block */
            for (size_t i = 0, run; i < many; i += run) {
                run = cg_min_(many - i, (size_t)(w.reader.values_per_index - at[i] % w.reader.values_per_index));
                d->kernels->axpby(
                    value + i, run, 1.0f, d->beta == 0.0f ? 0.0f : 1.0f, cg_at_mut_(d->y, (size_t)at[i]), 0);
            }
        } else if (d->beta == 0.0f)
            for (size_t i = 0; i < many; i++) cg_store_(d->y, (size_t)at[i], value[i]);
        else
            for (size_t i = 0; i < many; i++)
                cg_store_(d->y, (size_t)at[i], cg_plus_(cg_load_(d->y, (size_t)at[i]), value[i]));
    }
    if (!d->sink) cg_scale_y_(cg_at_mut_(d->y, filled), n - filled, d->beta);
    return CG_OK;
}
CG_NOINLINE_ cg_status cg_scatter_transformed_(const cg_decoder_ *d, cg_piece_cursor_ *cursor) {
    float buf[CG_CHUNK_];
    return cg_scatter_into_(d, cursor, buf);
}
CG_NOINLINE_ cg_status cg_scatter_plain_(const cg_decoder_ *d, cg_piece_cursor_ *cursor) {
    return cg_scatter_into_(d, cursor, NULL);
}
/* Into a y larger than the cache: chunks are put together in L1, mostly zeros, and streamed out. */
CG_NOINLINE_ cg_status cg_scatter_stream_(const cg_decoder_ *d) {
    const size_t k = (size_t)d->lay.k, n = (size_t)d->info.n;
    uint64_t at[CG_SPARSE_BATCH_];
    float value[CG_SPARSE_BATCH_];
    float chunk[CG_CHUNK_];
    uint16_t touched[CG_CHUNK_];
    size_t base = 0, marks = 0;
    cg_selection_reader_ w;
    cg_selection_reader_open_(&w, d, NULL);
    memset(chunk, 0, sizeof chunk);
    for (size_t first = 0, many; first < k; first += many) {
        many = cg_selection_reader_next_(&w, d, first, value, NULL);
        if (!many) return CG_E_CORRUPT;
        cg_coordinates_get_(d, &w.reader, first, many, at);
        for (size_t i = 0; i < many; i++) {
            while ((size_t)at[i] - base >= CG_CHUNK_) {
                d->kernels->axpby(chunk, CG_CHUNK_, 1.0f, 0.0f, cg_at_mut_(d->y, base), 1);
                while (marks) chunk[touched[--marks]] = 0.0f;
                base += CG_CHUNK_;
            }
            touched[marks] = (uint16_t)((size_t)at[i] - base);
            chunk[touched[marks++]] = value[i];
        }
    }
    for (; base < n; base += CG_CHUNK_) {
        d->kernels->axpby(chunk, cg_min_(CG_CHUNK_, n - base), 1.0f, 0.0f, cg_at_mut_(d->y, base), 1);
        while (marks) chunk[touched[--marks]] = 0.0f;
    }
    d->kernels->stream_fence();
    return CG_OK;
}
/* What is not dense, or comes one after the other. */
static cg_status cg_decode_sparse_(const cg_decoder_ *d, int dense, cg_piece_cursor_ *cursor) {
    if (dense) return cg_decode_sequential_(d, cursor);
    if (d->info.op.transform.id && d->info.op.select.id) return cg_scatter_transformed_(d, cursor);
    return d->non_temporal && !cursor && !d->info.op.transform.id && cg_values_per_index_(&d->info.op) == 1
        ? cg_scatter_stream_(d)
        : cg_scatter_plain_(d, cursor);
}
CG_NOINLINE_ cg_status cg_decode_sparse_coded_(const cg_decoder_ *d, int dense) {
    cg_piece_cursor_ cursor;
    return cg_decode_sparse_(d, dense, &cursor);
}

/* A product of factors, in tiles whose part of q stays in L1. */
CG_NOINLINE_ void cg_matrix_decode_(const cg_decoder_ *d) {
    const size_t rows = cg_matrix_rows_(&d->info.op), cols = cg_matrix_cols_(&d->info.op);
    const unsigned rank = cg_matrix_r_(&d->info.op);
    const uint8_t *p = d->codes, *q = p + 4 * rows * rank;
    const int direct = d->alpha == 1.0f && d->beta == 0.0f && !d->sink;
    enum { TALL = 8, FLOATS = 3072 }; /* rows, and values of q or of a result */
    const size_t wide = FLOATS / (rank > TALL ? rank : (unsigned)TALL) / 16 * 16;
    float part[FLOATS], out[FLOATS], left[TALL * 64];
    for (size_t j = 0; j < cols; j += wide) {
        const size_t many = cg_min_(wide, cols - j);
        for (unsigned a = 0; a < rank; a++)
            for (size_t c = 0; c < many; c++) part[a * many + c] = cg_as_float_(cg_get32_(q + 4 * (a * cols + j + c)));
        for (size_t i = 0; i < rows; i += TALL) {
            const size_t tall = cg_min_(TALL, rows - i);
            float *y = d->sink ? d->y : cg_at_mut_(d->y, i * cols + j);
            for (size_t c = 0; c < tall * rank; c++) left[c] = cg_as_float_(cg_get32_(p + 4 * (i * rank + c)));
            if (direct) {
                d->kernels->lowrank_tile(left, part, many, rank, tall, many, y, cols, d->non_temporal && cols % 4 == 0);
            } else {
                d->kernels->lowrank_tile(left, part, many, rank, tall, many, out, many, 0);
                for (size_t r = 0; r < tall; r++) {
                    if (d->sink)
                        d->sink->energy += d->sink->take_dense(d->sink->user, (i + r) * cols + j, many, out + r * many);
                    else d->kernels->axpby(out + r * many, many, d->alpha, d->beta, cg_at_mut_(y, r * cols), 0);
                }
            }
        }
    }
    if (d->non_temporal) d->kernels->stream_fence();
}

/* src/core/decode.h */
/* Everything up to the first look at the values: the header agrees with itself, with len and with n.
   values: a user's codec must be at hand. */
static cg_status cg_decoder_open_(
    cg_decoder_ *d, const cg_extra *side, const void *packet, size_t len, float *y, size_t n, int values) {
    uint64_t value_bytes;
    cg_status s;
    if (!packet || (!y && n)) return CG_E_ARG;
    s = cg_extra_check_(NULL, side);
    if (s == CG_OK) s = cg_header_get_((const uint8_t *)packet, len, &d->info);
    if (s != CG_OK) return s;
    if (d->info.n != n) return CG_E_MISMATCH;
    if (d->info.packet_bytes != len) return CG_E_CORRUPT;
    s = cg_layout_make_(&d->info.op, side, d->info.k, &d->lay);
    if (s != CG_OK && (values || !cg_is_user_codec_(&d->info.op.quantize))) return s;
    value_bytes = cg_add_sat_(cg_add_sat_(d->lay.scale_bytes, d->lay.piece_table_bytes), d->lay.codes_bytes);
    if (d->lay.quantizer &&
        (d->lay.value_code ? d->info.value_bytes > value_bytes ||
                    d->info.value_bytes < d->lay.scale_bytes + d->lay.piece_table_bytes
                           : d->info.value_bytes != value_bytes))
        return CG_E_CORRUPT;
    d->kernels = cg_kernels_now_();
    d->support = NULL;
    d->sink = NULL;
    d->transformed_n = (size_t)cg_transformed_n_(&d->info.op, d->info.drawn);
    d->packet = (const uint8_t *)packet;
    d->scales = d->packet + CG_HEADER_BYTES;
    d->piece_table = d->scales + (size_t)d->lay.scale_bytes;
    d->codes = d->piece_table + (size_t)d->lay.piece_table_bytes;
    d->index = d->scales + d->info.value_bytes;
    d->y = y ? y : &d->empty_y;
    if (d->lay.quantizer && !d->lay.value_code &&
        !cg_padding_zero_(d->codes, (uint64_t)d->lay.k * d->lay.bits_x32 / 32))
        return CG_E_CORRUPT;
    return cg_scales_legal_(d) ? CG_OK : CG_E_CORRUPT;
}
/* The packet whose indices are meant: any that says by itself where its values are. */
CG_NOINLINE_ cg_status cg_support_open_(cg_decoder_ *set, const cg_extra *side, size_t n) {
    cg_status s;
    float none = 0.0f;
    if (!side || !side->support) return CG_E_ARG;
    s = cg_decoder_open_(set, NULL, side->support, side->support_len, &none, n, 0);
    if (s == CG_OK && set->info.op.select.id == CG_SELECT_GIVEN) return CG_E_UNSUPPORTED;
    if (s == CG_OK) s = cg_verify_(set);
    set->y = NULL;
    return s;
}
static uint64_t cg_support_count_(const cg_decoder_ *set) {
    return set->info.op.transform.id ? set->info.drawn : set->info.k;
}
/* Which support a packet was made with: everything that says where its values are. */
static uint32_t cg_support_fingerprint_(const cg_decoder_ *set) {
    const cg_op *op = &set->info.op;
    const int indexed = op->select.id && !op->transform.id;
    uint64_t h = cg_mix64_(cg_support_count_(set) + CG_GOLDEN_);
    if (op->sample.id) { /* random-k is the same for all ranks */
        h = cg_mix64_(h ^ (set->info.drawn + op->sample.id * CG_GOLDEN_));
        h = cg_mix64_(h ^ cg_shared_key_(&set->info.tag));
        if (op->sample.id == CG_SAMPLE_PERMK) h = cg_mix64_(h ^ ((uint64_t)op->sample.size << 32 | set->info.tag.rank));
    }
    if (indexed) {
        cg_checksum_ s = cg_checksum_of_(set->kernels, set->index, set->info.index_bytes);
        h = cg_mix64_(h ^ (s.a + set->info.index_code * CG_GOLDEN_));
        h = cg_mix64_(h ^ (s.b + cg_values_per_index_(op) * CG_GOLDEN_));
    }
    return (uint32_t)h | 1u;
}
static cg_status cg_select_given_(const cg_selector_ *p) {
    cg_decoder_ set;
    cg_index_reader_ r;
    uint64_t at[CG_SPARSE_BATCH_], k;
    cg_status s = cg_support_open_(&set, p->side, p->n);
    if (s != CG_OK) return s;
    k = cg_support_count_(&set);
    r = cg_index_open_(&set.info, set.index);
    for (size_t first = 0, many; first < (size_t)k; first += many) {
        many = cg_min_(CG_SPARSE_BATCH_, (size_t)k - first);
        cg_coordinates_get_(&set, &r, first, many, at);
        for (size_t i = 0; i < many; i++) p->list->value[first + i] = cg_load_(p->x, (size_t)at[i]);
    }
    if (p->kernels->absmax_bits(p->list->value, (size_t)k) >= CG_INF_BITS_) return CG_E_NONFINITE;
    p->list->count = 0;
    p->info->k = k;
    p->info->op.select.size = cg_support_fingerprint_(&set);
    return CG_OK;
}
/* verified: the packet has been through cg_decoder_open_ and cg_verify_. sink: takes the values, in place of y. */
static cg_status cg_decode_to_(const cg_extra *side, const void *packet, size_t len, float alpha, float beta, float *y,
    cg_sink_ *sink, size_t n, int verified) {
    cg_decoder_ d, set;
    cg_status s = cg_is_finite_(alpha) && cg_is_finite_(beta)
        ? cg_decoder_open_(&d, side, packet, len, sink ? &d.empty_y : y, n, 1)
        : CG_E_ARG;
    if (s == CG_OK && d.info.op.select.id == CG_SELECT_GIVEN) {
        s = cg_support_open_(&set, side, n);
        if (s == CG_OK &&
            (d.info.k != cg_support_count_(&set) || d.info.op.select.size != cg_support_fingerprint_(&set)))
            s = CG_E_MISMATCH;
        d.support = &set;
    }
    if (s == CG_OK) {
        const int selected = d.info.op.select.id != 0,
                  dense = !d.info.op.sample.id && (!selected || d.info.op.transform.id);
        const int direct = dense && !selected && !d.lay.value_code && !d.lay.codec && !cg_is_matrix_op_(&d.info.op) &&
            side && (side->flags & CG_DECODE_DIRECT);
        d.alpha = alpha;
        d.beta = beta;
        d.sink = sink;
        d.non_temporal = !sink && beta == 0.0f && n >= (size_t)1 << 22 && (uintptr_t)y % 16 == 0;
        if (!direct && !verified) s = cg_verify_(&d);
        if (s != CG_OK) {
        } else if (cg_is_matrix_op_(&d.info.op)) cg_matrix_decode_(&d);
        else if (dense && !selected) s = cg_decode_dense_(&d, direct && !verified);
        else s = d.lay.value_code ? cg_decode_sparse_coded_(&d, dense) : cg_decode_sparse_(&d, dense, NULL);
    }
    return s;
}
static cg_status cg_decode_(
    const cg_extra *side, const void *packet, size_t len, float alpha, float beta, float *y, size_t n, int verified) {
    return cg_decode_to_(side, packet, len, alpha, beta, y, NULL, n, verified);
}
CG_API_ cg_status cg_decode(
    const cg_extra *side, const void *packet, size_t len, float alpha, float beta, float *y, size_t n) {
    cg_fenv_ env = cg_fenv_enter_();
    cg_status s = cg_decode_(side, packet, len, alpha, beta, y, n, 0);
    cg_fenv_leave_(env);
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
    cg_status s = cg_decoder_open_(&d, NULL, packet, len, y, n, 0);
    if (s == CG_OK) s = cg_verify_(&d);
    if (s != CG_OK) return s;
    if (d.info.op.select.id == CG_SELECT_GIVEN) return CG_E_UNSUPPORTED; /* clear with the support itself */
    if (!d.info.op.sample.id && (!d.info.op.select.id || d.info.op.transform.id)) {
        memset(d.y, 0, 4 * n);
    } else {
        cg_index_reader_ r = cg_index_open_(&d.info, d.index);
        uint64_t at[CG_SPARSE_BATCH_];
        for (size_t first = 0, many; first < cg_coordinate_count_(&d); first += many) {
            many = cg_min_(CG_SPARSE_BATCH_, cg_coordinate_count_(&d) - first);
            cg_coordinates_get_(&d, &r, first, many, at);
            for (size_t i = 0; i < many; i++) cg_store_(d.y, (size_t)at[i], 0.0f);
        }
    }
    return CG_OK;
}
CG_API_ cg_status cg_clear(const void *packet, size_t len, float *y, size_t n) {
    cg_fenv_ env = cg_fenv_enter_();
    cg_status s = cg_clear_(packet, len, y, n);
    cg_fenv_leave_(env);
    return s;
}
CG_API_ cg_status cg_inspect(const void *packet, size_t len, cg_info *info) {
    cg_fenv_ env = cg_fenv_enter_();
    cg_status s = !packet || !info ? CG_E_ARG : cg_header_get_((const uint8_t *)packet, len, info);
    cg_fenv_leave_(env);
    return s;
}

/* Everything that cg_decode would find wrong with a packet of n values, without decoding it. */
CG_OFFERED_ cg_status cg_packet_check_(const cg_extra *side, const void *packet, size_t len, size_t n) {
    cg_decoder_ d;
    float no_output = 0.0f;
    cg_status s = cg_decoder_open_(&d, side, packet, len, &no_output, n, 1);
    return s == CG_OK ? cg_verify_(&d) : s;
}
/* y = alpha D(packet) + beta y, to be decoded by blocks of CG_BLOCK_ values with cg_decoder_add_block_. The packet must
   have been through cg_packet_check_. 0: it cannot be decoded by blocks (a selection, a sample, a code, a matrix) or is
   not valid; d then only says what was asked for (packet, info.packet_bytes, alpha, beta). */
CG_OFFERED_ int cg_decoder_open_blocks_(cg_decoder_ *d, const cg_extra *side, const uint8_t *packet, size_t len,
    float alpha, float beta, float *y, size_t n) {
    const int by_blocks = cg_decoder_open_(d, side, packet, len, y, n, 1) == CG_OK && !d->info.op.select.id &&
        !d->info.op.sample.id && !d->lay.value_code && !d->lay.codec && !cg_is_matrix_op_(&d->info.op);
    d->packet = packet;
    d->info.packet_bytes = len;
    d->alpha = alpha;
    d->beta = beta;
    d->non_temporal = 0;
    return by_blocks;
}
CG_OFFERED_ void cg_decoder_add_block_(const cg_decoder_ *d, size_t block) {
    cg_checksum_ sum;
    double energy;
    cg_decode_block_(d, NULL, NULL, block, 0, &sum, &energy);
}

/* src/core/reduce.h */
/* ---- >>reduce: packets added without leaving their domain ---- */

static int cg_same_stage_(const cg_stage *a, const cg_stage *b) {
    return a->id == b->id && a->flags == b->flags && a->arg == b->arg && a->size == b->size &&
        cg_as_bits_(a->value) == cg_as_bits_(b->value);
}
/* A result is sparse, or integers on the one grid of all, or floats. */
enum { CG_REDUCE_SPARSE_, CG_REDUCE_LEVELS_, CG_REDUCE_FLOATS_ };
typedef struct cg_reducer_ {
    const void *const *packets;
    const size_t *lens;
    size_t count, transformed_n;
    int mode;
    uint64_t zero_sum; /* levels: the symbols of 0 in all packets, together; and in the sum */
    int32_t out_zero;
    cg_info info;               /* of the result */
    cg_layout_ out_lay, in_lay; /* of the result; of the first packet, and where they add as integers of all */
    uint64_t max_values;        /* sparse: values of all packets */
} cg_reducer_;

static cg_status cg_reducer_packet_open_(const cg_reducer_ *a, size_t i, cg_decoder_ *d) {
    cg_info info;
    float none = 0.0f;
    cg_status s;
    if (!a->packets[i]) return CG_E_ARG;
    s = cg_header_get_((const uint8_t *)a->packets[i], a->lens[i], &info);
    if (s == CG_OK) s = cg_decoder_open_(d, NULL, a->packets[i], a->lens[i], &none, (size_t)info.n, 1);
    d->y = NULL;
    return s;
}
/* One domain: the same vector, sample and transform, so that values at one place belong together. */
static cg_status cg_reducer_match_(const cg_info *a, const cg_info *b) {
    if (a->n != b->n || a->drawn != b->drawn || a->tag.seed != b->tag.seed || a->tag.step != b->tag.step ||
        a->tag.tensor != b->tag.tensor)
        return CG_E_MISMATCH;
    if (!cg_same_stage_(&a->op.sample, &b->op.sample) || !cg_same_stage_(&a->op.transform, &b->op.transform))
        return CG_E_MISMATCH;
    if (a->op.select.id == CG_SELECT_GIVEN || b->op.select.id == CG_SELECT_GIVEN)
        return cg_same_stage_(&a->op.select, &b->op.select) && a->k == b->k ? CG_OK : CG_E_MISMATCH;
    return (a->op.select.id != 0) == (b->op.select.id != 0) ? CG_OK : CG_E_MISMATCH;
}
/* What one level of a bucket is worth to a decoder. */
static float cg_grid_step_(const cg_decoder_ *d, size_t bucket) {
    float scale[2];
    cg_levels_ q;
    cg_scales_get_(&d->lay, d->scales, bucket, scale);
    if (d->info.op.quantize.id == CG_QUANTIZE_FLEX16) return scale[0];
    q = cg_levels_make_(&d->info.op.quantize, scale);
    return cg_saturate_(cg_times_(q.step, q.postscale));
}
/* Symbols that are integers around the one that means 0; returns that one, or 0. */
static int32_t cg_grid_zero_symbol_(const cg_stage *q, unsigned *bits) {
    cg_alphabet_ a = CG_ZERO;
    const cg_quantizer_ *row = cg_is_user_codec_(q) ? NULL : cg_quantizer_of_(q);
    *bits = 16;
    if (q->id == CG_QUANTIZE_FLEX16) return 32767;
    if (!row || row->encode != cg_encode_levels_ || !cg_alphabet_of_(q, &a)) return 0;
    *bits = a.bits;
    return a.zero_symbol;
}

/* reach: the largest sum of levels there can be, if less than the packets could have; or 0. */
CG_NOINLINE_ cg_status cg_reducer_open_(
    cg_reducer_ *a, const void *const *packets, const size_t *lens, size_t count, uint64_t reach) {
    cg_decoder_ d, first;
    unsigned bits;
    int32_t zero;
    int grid = 1;
    memset(a, 0, sizeof *a);
    memset(&first, 0, sizeof first);
    a->packets = packets;
    a->lens = lens;
    a->count = count;
    if (!packets || !lens || !count) return CG_E_ARG;
    for (size_t i = 0; i < count; i++) {
        cg_status s = cg_reducer_packet_open_(a, i, &d);
        if (s != CG_OK) return s;
        zero = cg_grid_zero_symbol_(&d.info.op.quantize, &bits);
        if (i == 0) first = d;
        if (cg_is_matrix_op_(&d.info.op) || d.info.op.sample.id == CG_SAMPLE_PERMK) return CG_E_UNSUPPORTED;
        s = cg_reducer_match_(&first.info, &d.info);
        if (s != CG_OK) return s;
        grid = grid && zero && !d.lay.value_code && d.lay.bucket_count == first.lay.bucket_count &&
            d.lay.bucket_size == first.lay.bucket_size;
        for (size_t j = 0; grid && j < (size_t)d.lay.bucket_count; j++)
            grid = cg_grid_step_(&d, j) == cg_grid_step_(&first, j);
        for (size_t j = 0; grid && j < (size_t)d.lay.bucket_count; j++) { /* a denormal step would round */
            float scale = cg_as_float_(cg_get32_(d.scales + 4 * j));
            grid = scale == 0.0f || !cg_is_tiny_(scale);
        }
        a->zero_sum = cg_add_sat_(a->zero_sum, (uint64_t)zero);
        a->max_values = cg_add_sat_(a->max_values, d.info.k);
    }
    a->info = first.info;
    a->in_lay = first.lay;
    a->transformed_n = first.transformed_n;
    a->mode = first.info.op.select.id && first.info.op.select.id != CG_SELECT_GIVEN ? CG_REDUCE_SPARSE_
                                                                                    : CG_REDUCE_FLOATS_;
    memset(&a->info.op.quantize, 0, sizeof a->info.op.quantize);
    memset(&a->info.op.code, 0, sizeof a->info.op.code);
    if (a->mode == CG_REDUCE_SPARSE_) { /* any index set at all is what is above 0 */
        memset(&a->info.op.select, 0, sizeof a->info.op.select);
        a->info.op.select.id = CG_SELECT_THRESHOLD;
        a->info.threshold = 0.0f;
        a->info.op.k = first.info.op.sample.id &&
                first.info.drawn != cg_k_from_ratio_(first.info.op.sample.value, 0, first.info.n)
            ? first.info.drawn
            : 0;
        if (a->max_values > a->transformed_n) a->max_values = a->transformed_n;
    } else if (grid) {
        if (!reach) reach = a->zero_sum;
        for (bits = 2; bits <= 16 && (uint64_t)((1 << (bits - 1)) - 1) < reach;) bits++;
        if (bits > 8 && bits < 16) bits = 16;
        if (bits <= 16 && first.lay.bucket_size <= 0xffffffffu) { /* headroom for all of them */
            a->mode = CG_REDUCE_LEVELS_;
            a->out_zero = (1 << (bits - 1)) - 1;
            a->info.op.quantize.id = bits <= 8 ? CG_QUANTIZE_FLEXPOINT : CG_QUANTIZE_FLEX16;
            a->info.op.quantize.arg = (uint16_t)(bits <= 8 ? bits : 0);
            a->info.op.quantize.size = (uint32_t)first.lay.bucket_size;
        }
    }
    return cg_layout_make_(&a->info.op, NULL, a->mode == CG_REDUCE_SPARSE_ ? a->max_values : a->info.k, &a->out_lay);
}

static size_t cg_reducer_list_bytes_(const cg_reducer_ *a) { /* one list; two are needed to merge */
    return cg_size_or_zero_(cg_add_sat_(
        cg_mul_sat_(8, cg_add_sat_(a->max_values, CG_SLACK_)), 8 * (((uint64_t)a->transformed_n >> 32) + 2)));
}
static void cg_reducer_list_init_(const cg_reducer_ *a, cg_list_ *list, uint8_t *p) {
    memset(list, 0, sizeof *list);
    list->segment_count = a->transformed_n ? (((uint64_t)a->transformed_n - 1) >> 32) + 1 : 1;
    list->segment_start = (uint64_t *)(void *)p;
    p += 8 * (size_t)(list->segment_count + 1);
    list->index_low = (uint32_t *)(void *)p;
    list->value = (float *)(void *)(p + 4 * ((size_t)a->max_values + CG_SLACK_));
}
/* into = list + packet, both ascending. */
CG_NOINLINE_ cg_status cg_list_merge_packet_(const cg_decoder_ *d, const cg_list_ *list, cg_list_ *into) {
    const size_t k = (size_t)d->lay.k;
    cg_selection_reader_ w;
    cg_piece_cursor_ cursor;
    size_t i = 0;
    uint64_t segment = 0, open = 0;
    cg_selection_reader_open_(&w, d, &cursor);
    into->count = 0;
    into->segment_start[0] = 0;
    for (size_t j = 0;;) {
        uint64_t a = UINT64_MAX, b = UINT64_MAX, at;
        float v = 0.0f;
        if (j < k && j == w.batch_first + w.batch_n) {
            w.batch_first = j;
            w.batch_n = cg_selection_reader_load_(&w, d, j);
            if (!w.batch_n) return CG_E_CORRUPT;
            cg_index_get_per_value_(&w.reader, w.index, w.batch_n);
        }
        if (i < list->count) {
            while (i >= list->segment_start[segment + 1]) segment++;
            a = segment << 32 | list->index_low[i];
        }
        if (j < k) b = w.index[j - w.batch_first];
        at = a < b ? a : b;
        if (at == UINT64_MAX) break;
        if (a == at) v = list->value[i++];
        if (b == at) {
            float u = cg_load_(w.values, j++ % CG_CHUNK_);
            v = a == at ? cg_saturate_(cg_plus_(v, u)) : u;
        }
        while (open < at >> 32) into->segment_start[++open] = into->count;
        cg_list_add_(into, (size_t)at, v);
    }
    while (open < into->segment_count) into->segment_start[++open] = into->count;
    return CG_OK;
}
/* A list as a packet of f32; info says the rest. */
static cg_status cg_packet_from_list_(
    cg_info *info, size_t turned, const cg_list_ *list, uint8_t *out, size_t cap, size_t *len) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    uint64_t index_bytes;
    info->k = list->count;
    info->index_code = cg_index_code_(&info->op, turned, list->count);
    index_bytes = cg_index_bytes_(info->index_code, turned, list->count);
    info->value_bytes = 4 * list->count;
    if (cg_add_sat_(index_bytes, CG_HEADER_BYTES + 4 * (uint64_t)list->count) > cap) return CG_E_CAPACITY;
    kernels->copy(list->value, list->count, out + CG_HEADER_BYTES);
    info->index_bytes =
        index_bytes ? cg_index_put_(info->index_code, turned, list, out + CG_HEADER_BYTES + info->value_bytes) : 0;
    *len = cg_packet_finalize_(
        kernels, info, out, cg_checksum_of_(kernels, out + CG_HEADER_BYTES, info->value_bytes + info->index_bytes));
    return CG_OK;
}
CG_NOINLINE_ cg_status cg_reduce_sparse_(cg_reducer_ *a, uint8_t *out, size_t cap, uint8_t *scratch, size_t *len) {
    cg_list_ lists[2];
    cg_decoder_ d;
    cg_reducer_list_init_(a, &lists[0], scratch);
    cg_reducer_list_init_(a, &lists[1], scratch + cg_reducer_list_bytes_(a));
    memset(lists[0].segment_start, 0, 8 * (size_t)(lists[0].segment_count + 1));
    memset(lists[1].segment_start, 0, 8 * (size_t)(lists[1].segment_count + 1));
    for (size_t i = 0; i < a->count; i++) {
        cg_status s = cg_reducer_packet_open_(a, i, &d);
        if (s == CG_OK) s = cg_list_merge_packet_(&d, &lists[i % 2], &lists[(i + 1) % 2]);
        if (s != CG_OK) return s;
    }
    return cg_packet_from_list_(&a->info, a->transformed_n, &lists[a->count % 2], out, cap, len);
}
/* Packed symbols of one grid: integers, with room for their sum. */
static void cg_reduce_levels_(
    const cg_kernels_ *kernels, const cg_reducer_ *a, uint8_t *codes, size_t first, size_t many) {
    uint16_t sums[CG_CHUNK_];
    uint8_t symbols[CG_CHUNK_];
    memset(sums, 0, sizeof sums);
    for (size_t i = 0; i < a->count; i++) {
        const uint8_t *in = (const uint8_t *)a->packets[i], *q = in + 8 + 12 * CG_SLOT_QUANTIZE_;
        cg_stage stage = { 0, 0, 0, 0, 0.0f };
        unsigned bits;
        uint16_t top;
        stage.id = q[0];
        stage.arg = cg_get16_(q + 2);
        top = (uint16_t)(2 * cg_grid_zero_symbol_(&stage, &bits));
        in += CG_HEADER_BYTES + (size_t)a->in_lay.scale_bytes + first / 8 * bits;
        if (bits < 8) kernels->unpack(in, many, bits, symbols);
        else if (bits == 8) memcpy(symbols, in, many);
        if (bits <= 8)
            for (size_t j = 0; j < many; j++) sums[j] = (uint16_t)(sums[j] + (symbols[j] < top ? symbols[j] : top));
        else
            for (size_t j = 0; j < many; j++) sums[j] = (uint16_t)(sums[j] + cg_get16_(in + 2 * j));
    }
    for (size_t j = 0; j < many; j++) { /* modulo 2^16: what counts is less */
        int32_t sum = (int32_t)(((uint32_t)sums[j] + 32768u - (uint32_t)a->zero_sum) & 0xffffu) - 32768 + a->out_zero;
        sum = sum < 0 ? 0 : sum > 2 * a->out_zero ? 2 * a->out_zero : sum;
        symbols[j] = (uint8_t)sum;
        if (a->out_lay.bits_x32 > 8 * 32) cg_put16_(codes + 2 * j, (uint32_t)sum);
    }
    if (a->out_lay.bits_x32 > 8 * 32) return;
    if (a->out_lay.bits_x32 < 8 * 32) kernels->pack(symbols, many, a->out_lay.bits_x32 / 32, codes);
    else memcpy(codes, symbols, many);
}
CG_NOINLINE_ cg_status cg_reduce_dense_(cg_reducer_ *a, uint8_t *out, size_t cap, size_t *len) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    const size_t k = (size_t)a->info.k;
    uint8_t *scales = out + CG_HEADER_BYTES, *codes = scales + (size_t)a->out_lay.scale_bytes;
    cg_decoder_ d;
    a->info.value_bytes = (size_t)(a->out_lay.scale_bytes + a->out_lay.codes_bytes);
    a->info.index_bytes = 0;
    if (a->info.value_bytes > cap - CG_HEADER_BYTES) return CG_E_CAPACITY;
    if (a->mode == CG_REDUCE_LEVELS_) {
        cg_status s = cg_reducer_packet_open_(a, 0, &d);
        if (s != CG_OK) return s;
        for (size_t b = 0; b < (size_t)d.lay.bucket_count; b++)
            cg_put32_(scales + 4 * b, cg_as_bits_(cg_grid_step_(&d, b)));
        for (size_t first = 0; first < k; first += CG_CHUNK_)
            cg_reduce_levels_(
                kernels, a, codes + cg_codes_offset_(&a->out_lay, first), first, cg_min_(CG_CHUNK_, k - first));
        for (size_t bytes = (size_t)(((uint64_t)k * a->out_lay.bits_x32 / 32 + 7) / 8); bytes % 4; bytes++)
            codes[bytes] = 0;
    } else {
        for (size_t i = 0; i < a->count; i++) {
            cg_piece_cursor_ cursor;
            float v[CG_CHUNK_], sum[CG_CHUNK_];
            cg_status s = cg_reducer_packet_open_(a, i, &d);
            if (s != CG_OK) return s;
            cg_piece_cursor_open_(&cursor, 0, 0);
            for (size_t first = 0, many; first < k; first += many) {
                const float *w;
                many = cg_min_(CG_CHUNK_, k - first);
                w = cg_decode_chunk_(&d, &cursor, first, many, v, 0);
                if (!w) return CG_E_CORRUPT;
                for (size_t j = 0; i && j < many; j++)
                    sum[j] = cg_saturate_(cg_plus_(cg_as_float_(cg_get32_(codes + 4 * (first + j))), cg_load_(w, j)));
                kernels->copy(i ? sum : w, many, codes + 4 * first);
            }
        }
    }
    *len = cg_packet_finalize_(kernels, &a->info, out, cg_checksum_of_(kernels, scales, a->info.value_bytes));
    return CG_OK;
}
/* Whether packets can be added, and what that takes. */
static cg_status cg_reduce_plan_(const void *const *packets, const size_t *lens, size_t count, uint64_t reach,
    cg_reducer_ *a, size_t *bound, size_t *scratch) {
    cg_status s = cg_reducer_open_(a, packets, lens, count, reach);
    uint64_t bytes;
    *bound = *scratch = 0;
    if (s != CG_OK) return s;
    bytes = cg_add_sat_(cg_add_sat_(a->out_lay.scale_bytes, a->out_lay.codes_bytes), CG_HEADER_BYTES);
    if (a->mode == CG_REDUCE_SPARSE_) {
        bytes = cg_add_sat_(bytes, cg_index_bound_(&a->info.op, a->transformed_n, a->max_values));
        if (!cg_reducer_list_bytes_(a)) return CG_E_ARG;
        *scratch = cg_size_or_zero_(cg_add_sat_(cg_mul_sat_(2, cg_reducer_list_bytes_(a)), 64));
    }
    *bound = cg_size_or_zero_(bytes);
    return *bound ? CG_OK : CG_E_ARG;
}
CG_API_ cg_status cg_reduce_plan(
    const void *const *packets, const size_t *lens, size_t count, size_t *bound, size_t *scratch) {
    cg_reducer_ a;
    cg_fenv_ env = cg_fenv_enter_();
    cg_status s = bound && scratch ? cg_reduce_plan_(packets, lens, count, 0, &a, bound, scratch) : CG_E_ARG;
    cg_fenv_leave_(env);
    return s;
}
CG_NOINLINE_ cg_status cg_verify_all_(const cg_reducer_ *a) {
    for (size_t i = 0; i < a->count; i++) {
        cg_decoder_ d;
        cg_status s = cg_reducer_packet_open_(a, i, &d);
        if (s == CG_OK) s = cg_verify_(&d);
        if (s != CG_OK) return s;
    }
    return CG_OK;
}
static cg_status cg_reduce_(const void *const *packets, const size_t *lens, size_t count, uint64_t reach, void *out,
    size_t cap, size_t *len, void *scratch, size_t scratch_bytes) {
    cg_reducer_ a;
    size_t bound = 0, need = 0;
    cg_status s = out && len && (scratch || !scratch_bytes)
        ? cg_reduce_plan_(packets, lens, count, reach, &a, &bound, &need)
        : CG_E_ARG;
    if (len) *len = 0;
    if (s == CG_OK && (cap < CG_HEADER_BYTES || need > scratch_bytes)) s = CG_E_CAPACITY;
    if (s == CG_OK) s = cg_verify_all_(&a);
    if (s == CG_OK && a.mode == CG_REDUCE_SPARSE_)
        s = cg_reduce_sparse_(&a, (uint8_t *)out, cap, (uint8_t *)scratch + (64 - ((uintptr_t)scratch & 63)) % 64, len);
    else if (s == CG_OK) s = cg_reduce_dense_(&a, (uint8_t *)out, cap, len);
    return s;
}
CG_API_ cg_status cg_reduce(const void *const *packets, const size_t *lens, size_t count, void *out, size_t cap,
    size_t *len, void *scratch, size_t scratch_bytes) {
    cg_fenv_ env = cg_fenv_enter_();
    cg_status s = cg_reduce_(packets, lens, count, 0, out, cap, len, scratch, scratch_bytes);
    cg_fenv_leave_(env);
    return s;
}
/* Packets are read once: a tile of each is counted, then summed while it is in the cache. */
CG_NOINLINE_ cg_status cg_vote_(
    const void *const *packets, const size_t *lens, size_t count, uint8_t *out, size_t cap, size_t *len) {
    enum { MOST = 1024, FEW = 64, TILE = 4096 };
    const cg_kernels_ *kernels = cg_kernels_now_();
    const uint8_t *in[MOST];
    cg_checksum_ sums[FEW];
    cg_reducer_ a;
    cg_decoder_ d;
    size_t bytes;
    cg_status s = cg_reducer_open_(&a, packets, lens, count, 0);
    if (s != CG_OK) return s;
    if (count > MOST) return CG_E_UNSUPPORTED;
    for (size_t i = 0; i < count; i++) {
        s = cg_reducer_packet_open_(&a, i, &d);
        if (s != CG_OK) return s;
        if (d.info.op.quantize.id != CG_QUANTIZE_SIGN || a.mode == CG_REDUCE_SPARSE_) return CG_E_UNSUPPORTED;
        in[i] = d.codes;
    }
    if (count > FEW) s = cg_verify_all_(&a);
    if (s != CG_OK) return s;
    a.info.op.quantize.id = CG_QUANTIZE_SIGN;
    bytes = (size_t)cg_word_bytes_(a.info.k);
    if (cap < CG_HEADER_BYTES || bytes > cap - CG_HEADER_BYTES) return CG_E_CAPACITY;
    memset(sums, 0, sizeof sums);
    for (size_t at = 0, many; at < bytes; at += many) {
        many = cg_min_(TILE, bytes - at);
        kernels->vote(in, count, many, out + CG_HEADER_BYTES + at);
        for (size_t i = 0; count <= FEW && i < count; i++) kernels->checksum(&sums[i], in[i], many / 4);
        for (size_t i = 0; i < count; i++) in[i] += many;
    }
    for (size_t i = 0; count <= FEW && i < count; i++) {
        s = cg_reducer_packet_open_(&a, i, &d);
        if (s != CG_OK || !cg_checksum_ok_(&d, sums[i])) return CG_E_CORRUPT;
    }
    a.info.value_bytes = bytes;
    a.info.index_bytes = 0;
    *len = cg_packet_finalize_(kernels, &a.info, out, cg_checksum_of_(kernels, out + CG_HEADER_BYTES, bytes));
    return CG_OK;
}
CG_API_ cg_status cg_vote(
    const void *const *packets, const size_t *lens, size_t count, void *out, size_t cap, size_t *len) {
    cg_fenv_ env = cg_fenv_enter_();
    cg_status s;
    if (len) *len = 0;
    s = out && len ? cg_vote_(packets, lens, count, (uint8_t *)out, cap, len) : CG_E_ARG;
    cg_fenv_leave_(env);
    return s;
}
/* CG_E_MISMATCH: both are packets of n levels, but on different grids. A packet without levels (a sum that was too large
   for them) is on any grid. */
CG_OFFERED_ cg_status cg_same_grid_(const void *a, size_t a_len, const void *b, size_t b_len, size_t n) {
    cg_decoder_ d, e;
    float no_output = 0.0f;
    unsigned bits;
    cg_status s = cg_decoder_open_(&d, NULL, a, a_len, &no_output, n, 1);
    if (s == CG_OK) s = cg_decoder_open_(&e, NULL, b, b_len, &no_output, n, 1);
    if (s != CG_OK || !cg_grid_zero_symbol_(&d.info.op.quantize, &bits)) return s;
    if (d.lay.bucket_count != e.lay.bucket_count) return CG_E_MISMATCH;
    for (size_t i = 0; i < (size_t)d.lay.bucket_count; i++)
        if (cg_grid_step_(&d, i) != cg_grid_step_(&e, i)) return CG_E_MISMATCH;
    return CG_OK;
}

/* src/core/sparse.h */
/* sparse: sparse f32 packets as rows of (index, value) pairs, written and read pair by pair

   Offers   a list of pairs in the caller's memory, the packet made of it, and a reader of packets
   Needs    select (cg_list_), indices, packet, decode
   Touches  nothing but its arguments
   Other headers may use: cg_list_bytes_, cg_list_init_, cg_list_append_, cg_list_kth_, cg_sparse_packet_bound_,
      cg_sparse_packet_put_, cg_sparse_reader_, cg_sparse_reader_open_, cg_sparse_reader_fill_
   Core has no use for these itself: its selections fill lists by the vector, and its decoders read by the chunk. */

/* Bytes of a list of `capacity` pairs with indices below n; saturates. */
CG_OFFERED_ uint64_t cg_list_bytes_(uint64_t n, uint64_t capacity) {
    return cg_add_sat_(cg_mul_sat_(8, cg_add_sat_(capacity, CG_SLACK_)), 8 * ((n >> 32) + 2));
}
/* An empty list in mem: cg_list_bytes_(n, capacity) bytes, aligned to 8, or as many for a larger n. */
CG_OFFERED_ void cg_list_init_(cg_list_ *list, void *mem, size_t n, size_t capacity) {
    memset(list, 0, sizeof *list);
    list->capacity = capacity;
    list->segment_count = n ? (((uint64_t)n - 1) >> 32) + 1 : 1;
    list->segment_start = (uint64_t *)mem;
    memset(list->segment_start, 0, 8 * (size_t)(list->segment_count + 1));
    list->index_low = (uint32_t *)(void *)(list->segment_start + list->segment_count + 1);
    list->value = (float *)(void *)(list->index_low + capacity + CG_SLACK_);
}
/* Indices must ascend; the caller sees to the capacity. */
CG_OFFERED_ void cg_list_append_(cg_list_ *list, uint64_t index, float value) {
    for (uint64_t s = (index >> 32) + 1; s <= list->segment_count; s++) list->segment_start[s] = list->count + 1;
    cg_list_add_(list, (size_t)index, value);
}
/* Magnitude bits of the kth largest value, kth from 1 to list->count; *kth becomes its rank among its equals, the
   number of them that belong to the kth largest. */
CG_OFFERED_ uint32_t cg_list_kth_(const cg_list_ *list, size_t *kth) {
    return cg_kth_(list->value, list->count, kth, 0, CG_INF_BITS_ - 1, cg_both_signs_);
}

/* Bytes of a packet of at most `most` of n values; saturates. */
CG_OFFERED_ uint64_t cg_sparse_packet_bound_(uint64_t n, uint64_t most) {
    const cg_op any = cg_threshold(0.0f);
    if (most > n) most = n;
    return cg_add_sat_(CG_HEADER_BYTES, cg_add_sat_(cg_mul_sat_(4, most), cg_index_bound_(&any, n, most)));
}
/* The list (NULL: nothing) as a packet of cg_threshold(threshold) over n values. CG_E_CAPACITY: cap is too small. */
CG_OFFERED_ cg_status cg_sparse_packet_put_(
    float threshold, const cg_tag *tag, size_t n, const cg_list_ *list, uint8_t *out, size_t cap, size_t *len) {
    cg_info info = CG_ZERO;
    cg_list_ empty = CG_ZERO;
    float no_value = 0.0f;
    empty.value = &no_value;
    info.op = cg_threshold(threshold);
    info.tag = *tag;
    info.n = info.drawn = n;
    return cg_packet_from_list_(&info, n, list ? list : &empty, out, cap, len);
}

/* Where a reader stands in a packet whose selection has indices of its own. */
typedef struct cg_sparse_reader_ {
    cg_index_reader_ indices;
    const uint8_t *values;        /* f32 packets without a code: little-endian, of the next pair; moved by the caller */
    size_t unread;                /* indices that have not been in the window */
    size_t window_next, window_n; /* the caller's place in the window, and its length */
    uint64_t window[CG_SPARSE_BATCH_]; /* the next indices, one for every value */
} cg_sparse_reader_;

/* The packet must have been through cg_packet_check_ and stays where it is; info is its header, info->k the pairs. */
CG_OFFERED_ cg_status cg_sparse_reader_open_(
    cg_sparse_reader_ *r, const cg_extra *side, const void *packet, size_t len, size_t n, cg_info *info) {
    cg_decoder_ d;
    float no_output = 0.0f;
    const cg_status s = cg_decoder_open_(&d, side, packet, len, &no_output, n, 0);
    if (s != CG_OK) return s;
    *info = d.info;
    r->indices = cg_index_open_(info, d.index);
    r->values = d.codes;
    r->unread = (size_t)info->k;
    r->window_next = r->window_n = 0;
    return CG_OK;
}
/* The next indices into the window; returns how many, 0 at the end. */
CG_OFFERED_ size_t cg_sparse_reader_fill_(cg_sparse_reader_ *r) {
    r->window_next = 0;
    r->window_n = cg_min_(CG_SPARSE_BATCH_, r->unread);
    r->unread -= r->window_n;
    if (r->window_n) cg_index_get_per_value_(&r->indices, r->window, r->window_n);
    return r->window_n;
}

/* src/core/traits.h */
/* traits: what other headers ask of an operator, answered at once

   Offers   cg_traits_of_
   Needs    stages, shape, select (cg_scratch_bytes_), layout, reduce (cg_grid_zero_symbol_)
   Touches  nothing
   Other headers may use: cg_traits_, cg_traits_of_ */

typedef struct cg_traits_ {
    cg_shape_ shape;        /* how many values every slot leaves at most */
    uint64_t k;             /* values that the selection aims at, by its ratio or op.k */
    int has_fixed_k;        /* it leaves exactly so many */
    int has_user_codec;     /* the values are encoded by a codec of the caller's */
    uint32_t max_level;     /* largest level of a grid around zero, on which packets can be added; 0: there is none */
    uint64_t scale_count;   /* without a selection: scales of a packet */
    uint64_t scratch_bytes; /* of cg_compress; saturates */
} cg_traits_;

/* op must be valid (cg_bound is not 0 for it and some n). */
CG_OFFERED_ cg_traits_ cg_traits_of_(const cg_op *op, uint64_t n) {
    cg_traits_ t;
    cg_layout_ lay;
    unsigned bits;
    memset(&t, 0, sizeof t);
    t.shape = cg_shape_of_(op, n);
    t.k = cg_k_from_ratio_(op->select.value, op->k, n);
    t.has_fixed_k = cg_has_fixed_k_(op);
    t.has_user_codec = cg_is_user_codec_(&op->quantize);
    t.max_level = (uint32_t)cg_grid_zero_symbol_(&op->quantize, &bits);
    if (cg_layout_make_(op, NULL, t.shape.transformed_n, &lay) == CG_OK) t.scale_count = lay.bucket_count;
    t.scratch_bytes = cg_scratch_bytes_(op, n);
    return t;
}

/* src/core/half.h */
/* ---- >>halves ---- */

static void cg_swap16_(uint16_t *half, size_t n) { /* between the wire's order and the machine's */
    for (size_t i = 0; CG_BIG_ENDIAN_ && i < n; i++) {
        uint16_t h = cg_get16_((const uint8_t *)half + 2 * i);
        memcpy((uint8_t *)half + 2 * i, &h, 2);
    }
}
CG_API_ void cg_f16_from_f32(const float *x, size_t n, uint16_t *half) {
    cg_fenv_ env = cg_fenv_enter_();
    if (n) cg_kernels_now_()->f16_encode(x, n, (uint8_t *)half);
    cg_swap16_(half, n);
    cg_fenv_leave_(env);
}
CG_API_ void cg_bf16_from_f32(const float *x, size_t n, uint16_t *half) {
    if (n) cg_kernels_now_()->bf16_encode(x, n, (uint8_t *)half);
    cg_swap16_(half, n);
}
/* Chunks, because a big-endian machine has to bring them into the wire's order first. */
static void cg_widen_(
    void (*widen)(const uint8_t *in, size_t n, float *out, int stream), const uint16_t *half, size_t n, float *x) {
    uint16_t wire[CG_CHUNK_];
    cg_fenv_ env = cg_fenv_enter_();
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
    cg_fenv_leave_(env);
}
CG_API_ void cg_f16_to_f32(const uint16_t *half, size_t n, float *x) {
    cg_widen_(cg_kernels_now_()->f16_decode, half, n, x);
}
CG_API_ void cg_bf16_to_f32(const uint16_t *half, size_t n, float *x) {
    cg_widen_(cg_kernels_now_()->bf16_decode, half, n, x);
}

/* src/core/status.h */
/* ---- >>status ---- */

CG_API_ const char *cg_status_str(cg_status status) {
    switch (status) {
#define CG_STATUS_CASE_(name, number, text) \
  case name: return text;
        CG_STATUS_LIST_(CG_STATUS_CASE_)
#undef CG_STATUS_CASE_
    case CG_STATUS_FORCE_INT_: break;
    }
    return "not a cg_status: is it uninitialised?";
}
CG_API_ const char *cg_version(void) { return CG_VERSION_STRING; }

/* src/core/base/fp_end.h */
#if defined(__clang__)
#  pragma STDC FP_CONTRACT DEFAULT
#  if defined(__x86_64__) || defined(__i386__)
#    pragma float_control(pop)
#  endif
#elif defined(__GNUC__)
#  pragma GCC pop_options
#endif

/* src/core/base/end.h */
#endif /* COMPGRAD_IMPLEMENTATION */
