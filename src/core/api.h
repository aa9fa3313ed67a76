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
