/* api: the public declarations of compgrad.h

   Offers   operators, packets, compress and decode, reduction, and the macros that declare functions
   Needs    stddef.h and stdint.h
   Touches  nothing */

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
    {} /* initialises a struct to zeros, as in cg_extra e = CG_ZERO, without a warning in C or C++ */
#else
#  define CG_ZERO \
    { 0 }
#endif

/* ---- status: 0 is success. The numbers are part of the interface and stay as they are. ---- */

#define CG_STATUS_LIST_(X)                                                                                             \
  X(CG_OK, 0, "ok")                                                                                                    \
  X(CG_AGAIN, 1, "no error: move the message in cg_io, then call cg_exchange_next again")                              \
  X(CG_E_ARG, 10,                                                                                                      \
      "bad argument: a null pointer, a number out of range, or an operator that is not valid or not for this n; "      \
      "cg_op_parse_why and the call's report say which")                                                               \
  X(CG_E_CAPACITY, 11,                                                                                                 \
      "an output or its scratch is too small: the header names beside the call what gives the bytes, and a report, "   \
      "where the call has one, has them")                                                                              \
  X(CG_E_CORRUPT, 20, "these bytes are not as they were written: send or read them again")                             \
  X(CG_E_VERSION, 21,                                                                                                  \
      "made with a format version, stage or codec that this build does not know: update compgrad, take the stage in "  \
      "(COMPGRAD_WITH_...), or pass the codec in cg_extra.codecs")                                                     \
  X(CG_E_MISMATCH, 22,                                                                                                 \
      "intact, but of something else: compare n, operator, kind, tensor, step and seed on both sides")                 \
  X(CG_E_NONFINITE, 30, "NaN or Inf in the values or in their sum: skip this step, or lower the loss scale")           \
  X(CG_E_TRANSPORT, 40, "a transport callback failed: see its code in the report")                                     \
  X(CG_E_PEER, 41, "another rank failed in this step: see its rank in the report")                                     \
  X(CG_E_MEMORY, 50,                                                                                                   \
      "not enough memory given: the _memory function beside the call gives the bytes for this description, and a "     \
      "report, where the call has one, has them")                                                                      \
  X(CG_E_STATE, 51,                                                                                                    \
      "call out of order: one that begins or ends something is missing before it, or what it would undo is not there") \
  X(CG_E_UNSUPPORTED, 60,                                                                                              \
      "not supported in this combination: the manual's tables say what goes together, and the call's report what "     \
      "does not")

typedef enum cg_status {
#define CG_STATUS_ENUM_(name, number, text) name = number,
    CG_STATUS_LIST_(CG_STATUS_ENUM_)
#undef CG_STATUS_ENUM_
        CG_STATUS_FORCE_INT_ = 0x7fffffff
} cg_status;

/* One sentence that says what happened and what to do. Any value is allowed; the result is never NULL. */
CG_API_ const char *cg_status_str(cg_status status);
#define CG_NO_INDEX UINT64_MAX /* cg_report.at: there is none */
/* How a call went: in detail, and of an exchange also what it moved. */
typedef struct cg_report {
    int rank;        /* the rank that caused the error, or -1 if that is unknown or there was none */
    int code;        /* what the failed callback returned, else 0 */
    const char *why; /* a sentence, constant text; after CG_OK "ok", perhaps with a warning */
    /* Bytes sent and received by this rank. Exact for sendrecv. For your own collectives the least that they can move:
       allgather (N-1) bytes_each in both directions, broadcast N-1 times the buffer out of the root and once into every
       other rank, allreduce 2 (N-1)/N of its bytes in both directions */
    uint64_t bytes_out, bytes_in;
    uint32_t rounds;  /* callbacks that succeeded */
    uint32_t route;   /* the route taken, which CG_ROUTE_AUTO chose; of several layers 0 if they took several */
    const void *used; /* this rank's contribution, in mem until mem is used again; NULL after an error */
    size_t used_len;
    uint32_t status; /* cg_status: what the call returned */
    /* CG_E_CAPACITY, CG_E_MEMORY: bytes that suffice for the buffer that why names. CG_E_ARG: the n that the operator
       takes. 0: neither is the trouble */
    uint64_t need;
    uint64_t
        at; /* CG_E_NONFINITE: index of the first value that is not finite; CG_NO_INDEX: of no value in particular */
    uint32_t sum; /* cg_sum: how f32 values were summed; 0: no sum of f32 values went over the network */
    /* CG_ROUTE_AUTO: why it took route, as a sentence, and the name of the route that would have come next; NULL:
       another route was asked for, or no other one was weighed. What both take by desc.alpha and beta, the opening left
       out; 0: not computed */
    const char *choice, *instead;
    double seconds, instead_seconds;
    uint64_t reserved[8]; /* zeros */
} cg_report;
/* Writes the whole sentence, with its final 0: why, and before and after it whatever else says where and how much, as
   in "rank 2: NaN or Inf in the values ...; value 17 is the first". 400 bytes always suffice; what does not fit is cut
   off, and the status is CG_E_CAPACITY. CG_E_ARG: report or text is NULL. */
CG_API_ cg_status cg_report_print(const cg_report *report, char *text, size_t cap);
/* CG_VERSION_STRING of the compiled implementation. */
CG_API_ const char *cg_version(void);

/* ---- operators ----
   An operator is plain data: copy it, compare it, fill it in yourself or with the functions below. All zeros send
   32-bit floats. */

typedef struct cg_stage {
    uint8_t id;    /* one of CG_SAMPLE_*, CG_TRANSFORM_*, CG_SELECT_*, CG_QUANTIZE_*, CG_CLIP_*; 0: no stage */
    uint8_t flags; /* CG_FLAG_* */
    uint16_t arg;  /* number of bits, levels or rounds; rank of a matrix */
    uint32_t size; /* values in a bucket, chunk, bin or block; ranks of PermK; rows of a matrix */
    float value;   /* fraction kept, threshold or another real parameter; columns of a matrix */
} cg_stage;

typedef struct cg_op {
    cg_stage sample, transform, select, quantize, code, clip; /* clip is done before quantize */
    /* Number of values kept, in place of a fraction: by topk or mstopk if the operator has one of them, otherwise by
       randk. Larger than the vector: all values. 0: the fraction decides. */
    uint64_t k;
    uint64_t reserved; /* must be 0 */
} cg_op;

enum { CG_SAMPLE_RANDK = 1, CG_SAMPLE_PERMK = 2, CG_SAMPLE_CYCLIC = 3 };
enum { CG_CLIP_RMS = 1 };
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
    CG_QUANTIZE_RATE,
    CG_QUANTIZE_STEP,
    CG_QUANTIZE_NVFP4,
    CG_QUANTIZE_GEOMETRIC,
    CG_QUANTIZE_USER = 128 /* 128 to 255: the id of a cg_codec */
};
enum { /* names of version 0.1 */
    CG_SELECT_WANGNI_VARIANCE = CG_SELECT_WANGNIVAR,
    CG_SELECT_ADACOMP = CG_SELECT_BINS,
    CG_QUANTIZE_TERNARY = CG_QUANTIZE_TERNGRAD,
    CG_QUANTIZE_QSGD = CG_QUANTIZE_LEVELS,
    CG_QUANTIZE_STEPS = CG_QUANTIZE_FLEXPOINT,
    CG_QUANTIZE_STEPS16 = CG_QUANTIZE_FLEX16,
    CG_QUANTIZE_THREELC = CG_QUANTIZE_TRITS
};
enum { /* flags of a stage; what a bit means depends on the stage */
    CG_FLAG_UNSCALED = 1 /* samples: without the factor that makes them unbiased */,
    CG_FLAG_PRIVATE = 2 /* randk, rotate: every rank draws its own, so that errors of ranks are independent */,
    CG_FLAG_NEAREST = 1 /* quantizers: round to nearest instead of at random */,
    CG_FLAG_STOCHASTIC = 1 /* f16, bf16, e4m3, e5m2, MX, NVFP4, NF4: round at random instead of to nearest */,
    CG_FLAG_UNBIASED = 1 /* rate, step: round at random instead of with a dead zone */,
    CG_FLAG_MAX = 2 /* levels, dither: relative to the largest magnitude instead of the L2 norm */,
    CG_FLAG_CLIP = 2 /* terngrad: clip at 2.5 standard deviations */,
    CG_FLAG_NORM = 2 /* minmax: a range of sqrt(2) times the L2 norm */
};
typedef enum cg_coding {
    /* codes for indices; CG_CODE_AUTO is the shorter of Elias-Fano and bitmap */
    CG_CODE_AUTO = 0,
    CG_CODE_ELIAS_FANO = 1,
    CG_CODE_BITMAP = 2,
    CG_CODE_GOLOMB = 3,
    /* codes for values */
    CG_CODE_PACKED = 16,
    CG_CODE_GAMMA,
    CG_CODE_DELTA,
    CG_CODE_OMEGA,
    CG_CODE_HUFFMAN,
    CG_CODE_QUARTIC
} cg_coding;

/* Functions that make operators. They accept any argument: if one is out of range, the operator is refused later, by
   cg_bound (0) and cg_compress (CG_E_ARG). A bucket is the number of consecutive values that share a scale. "At random"
   means unbiased, by random numbers that follow from the tag. */

/* quantizers */
CG_API_ cg_op cg_dense(void); /* 32-bit floats */
CG_API_ cg_op cg_f16(void);   /* IEEE half precision */
CG_API_ cg_op cg_bf16(void);  /* the upper 16 bits of a float, rounded to nearest */
/* 1 to 8 bits: evenly spaced levels between - and + the largest magnitude of the bucket, rounded at random */
CG_API_ cg_op cg_absmax(int bits, uint32_t bucket);
/* 1 to 8 bits: evenly spaced levels from the minimum to the maximum of the bucket, rounded at random */
CG_API_ cg_op cg_minmax(int bits, uint32_t bucket);
/* cg_minmax with a range of sqrt(2) times the L2 norm of the bucket, Huffman coded */
CG_API_ cg_op cg_klevel(int bits, uint32_t bucket);
/* integers of 2 to 8 or 16 bits times a power of two per bucket, rounded to nearest */
CG_API_ cg_op cg_flexpoint(int bits, uint32_t bucket);
/* The least error at so many bits per value, 0.005 to 8: one step for all values, found for just that size, a dead
   zone, and an entropy code. Values and scales take no more than was asked (or 24 bytes), and as a rule no less than
   95 % of it less .006 bits; they take less where the values have not so many bits in them. */
CG_API_ cg_op cg_rate(float bits);
/* The same with a step of share * root mean square: the error is given, and the size follows. */
CG_API_ cg_op cg_step(float share);
/* cg_flexpoint with 16 bits */
CG_API_ cg_op cg_flex16(uint32_t bucket);
/* 1 to 127 levels from 0 to the L2 norm of the bucket, with a sign, rounded at random; bucket 0: the whole vector */
CG_API_ cg_op cg_levels(int levels, uint32_t bucket);
/* cg_levels of the whole vector, in the Elias omega code */
CG_API_ cg_op cg_qsgd(int levels);
CG_API_ cg_op cg_sign(void);   /* +1 or -1; zero becomes +1 */
CG_API_ cg_op cg_efsign(void); /* the sign times the mean magnitude of the vector */
/* each value becomes the mean of the negative or of the other values of its column; column 0: the whole vector */
CG_API_ cg_op cg_onebit(uint32_t column);
/* -max, 0 or max, at random, where max is the largest magnitude of the vector */
CG_API_ cg_op cg_terngrad(void);
/* the nearest of -m, 0 and m, where m is s times the largest magnitude, 1 <= s < 2 */
CG_API_ cg_op cg_trits(float s);
CG_API_ cg_op cg_threelc(float s); /* cg_trits in the quartic code */
CG_API_ cg_op cg_strom(float tau); /* -tau or tau where |x| > tau, otherwise 0 */
CG_API_ cg_op cg_natural(void);    /* powers of two, rounded at random */
/* 2 to 8 bits: the L2 norm of the bucket times powers of two, rounded at random; bucket 0: the whole vector */
CG_API_ cg_op cg_dither(int bits, uint32_t bucket);
/* Dettmers' dynamic 8-bit numbers, relative to the largest magnitude of the vector */
CG_API_ cg_op cg_dynamic8(void);
CG_API_ cg_op cg_e4m3(uint32_t bucket); /* fp8 E4M3 with a scale for each bucket */
CG_API_ cg_op cg_e5m2(uint32_t bucket); /* fp8 E5M2 with a scale for each bucket */
CG_API_ cg_op cg_fp8(void);             /* cg_e4m3(512) */
CG_API_ cg_op cg_fp8_e5m2(void);        /* cg_e5m2(512) */
/* OCP microscaling formats: 32 values share a power of two */
CG_API_ cg_op cg_mxfp4(void);
CG_API_ cg_op cg_mxe4m3(void);
CG_API_ cg_op cg_mxe5m2(void);
/* 4-bit floats like those of mxfp4; 16 values share a scale in E4M3, and all values one float */
CG_API_ cg_op cg_nvfp4(void);
/* for values that a selection has left: a sign and 2^(bits-1) levels, 1 to 4 bits, evenly spaced on a logarithmic scale
   between the smallest and the largest magnitude of the bucket (1 bit: their mean), to nearest; bucket 0: all values */
CG_API_ cg_op cg_geometric(int bits, uint32_t bucket);
CG_API_ cg_op cg_nf4(void); /* 4-bit normal quantiles; 64 values share a scale */
/* Lloyd-Max levels of the normal distribution, 1 to 4 bits in steps of 1/32; needs cg_rotate before it */
CG_API_ cg_op cg_lloyd(float bits);
/* the cg_codec with this id, 128 to 255; arg (0 to 65535), size and value are passed on to it */
CG_API_ cg_op cg_user(int id, int arg, uint32_t size, float value);

/* before any quantizer, behind a selection: magnitudes beyond s times the root mean square of the values that are left
   are cut to it (biased); s > 0 */
CG_API_ cg_op cg_clip(float s);

/* selections; ratio is the fraction of the values to keep, 0 < ratio <= 1, rounded to at least one value */
CG_API_ cg_op cg_topk(float ratio);          /* the largest magnitudes; of equal ones those with the lowest indices */
CG_API_ cg_op cg_threshold(float magnitude); /* all values with |x| > magnitude */
/* |x| above a threshold that is estimated from a sample; keeps 0.8 to 1.3 times the ratio */
CG_API_ cg_op cg_dgc(float ratio);
/* |x| above a threshold found by bisection, filled up to exactly the ratio */
CG_API_ cg_op cg_mstopk(float ratio);
/* |x| above a threshold from fitted exponential distributions; keeps 0.8 to 1.3 times the ratio */
CG_API_ cg_op cg_sidco(float ratio);
/* unbiased: each value with a probability that grows with its magnitude; keeps the ratio on average */
CG_API_ cg_op cg_wangni(float ratio);
/* the same with the fewest values whose expected squared error is at most epsilon |x|^2 */
CG_API_ cg_op cg_wangnivar(float epsilon);
/* AdaComp's selection: values that, with the gradient cg_extra.aux added once more, reach the largest magnitude of
   their bin. It also replaces them, which no other selection does: each becomes + or - one magnitude, the mean over all
   bins of their largest. */
CG_API_ cg_op cg_bins(uint32_t bin);
/* the largest of the positive and the largest of the negative values, the ratio of each */
CG_API_ cg_op cg_sides(float ratio);
CG_API_ cg_op cg_chunked(float ratio, uint32_t chunk); /* cg_topk within every chunk */
CG_API_ cg_op cg_blocks(uint32_t block);               /* blocks that are not all zero */
/* the indices of the packet cg_extra.support; sends no indices of its own */
CG_API_ cg_op cg_given(void);
CG_API_ cg_op cg_variance(float alpha); /* values with x^2 > alpha times their variance, cg_extra.aux */

/* samples: all ranks compute them from the tag, so no indices are sent */
CG_API_ cg_op cg_randk(float ratio); /* a random value of each of k strata, times n/k; k is ratio*n, rounded */
/* rank i, below workers, keeps its own random one of every group of `workers` neighbours, times workers */
CG_API_ cg_op cg_permk(uint32_t workers);
/* all values of block number tag.step mod `blocks`, times `blocks`; blocks are equally long, and neighbours share a
   value where they have to, which is then times half as much */
CG_API_ cg_op cg_cyclic(uint32_t blocks);

/* transforms */
CG_API_ cg_op cg_rotate(int rounds); /* 1 to 3 rounds of random signs and a Hadamard matrix, in blocks of 1024 */
CG_API_ cg_op cg_dct(void);          /* DCT-II in blocks of 64 */
/* x is a row-major matrix of rows*cols = n values; sends two factors of rank 1 to 64, from one power iteration */
CG_API_ cg_op cg_lowrank(uint32_t rows, uint32_t cols, int rank);
/* x as before; sends at most `budget` (1 to 64) singular triples, chosen at random so that the result is unbiased */
CG_API_ cg_op cg_atomo(uint32_t rows, uint32_t cols, int budget);

/* named compositions */
CG_API_ cg_op cg_srq(int bits); /* cg_rotate(1), then cg_minmax */
CG_API_ cg_op cg_drive(void);   /* cg_eden(1) */
/* cg_rotate(3), then cg_lloyd; 0 < bits <= 4, rounded to 1/32; below 1 bit, cg_randk(bits) comes first */
CG_API_ cg_op cg_eden(float bits);
CG_API_ cg_op cg_demo_dct(float ratio); /* cg_dct, then cg_chunked by 64 */
CG_API_ cg_op cg_stc(float ratio);      /* cg_topk, then cg_efsign, Golomb coded */
/* the largest positive or the largest negative values, whichever have the larger mean, as that mean; Golomb coded */
CG_API_ cg_op cg_sbc(float ratio);
CG_API_ cg_op cg_adaq(float ratio); /* cg_sides, then cg_onebit(0) */
/* cg_bins, then cg_efsign; x is the residual with the gradient added, cg_extra.aux the gradient alone */
CG_API_ cg_op cg_adacomp(uint32_t bin);
CG_API_ cg_op cg_qsparse(float ratio, int levels); /* cg_topk, then cg_levels of the kept values */
/* cg_randk(sampled) unscaled, then cg_topk, then cg_absmax(bits, 512) to nearest */
CG_API_ cg_op cg_cocktail(float sampled, float ratio, int bits);

/* names of version 0.1 */
CG_API_ cg_op cg_mxfp8(void);                    /* cg_mxe4m3 */
CG_API_ cg_op cg_mxfp8_e5m2(void);               /* cg_mxe5m2 */
CG_API_ cg_op cg_wangni_variance(float epsilon); /* cg_wangnivar */
CG_API_ cg_op cg_demo(float ratio);              /* cg_demo_dct */

/* Functions that change an operator. */
/* rounding to nearest: absmax, minmax, terngrad, levels, natural, dither */
CG_API_ cg_op cg_nearest(cg_op op);
/* rounding at random, so that the mean is kept: f16, bf16, e4m3, e5m2, mxfp4, mxe4m3, mxe5m2, nvfp4, nf4 */
CG_API_ cg_op cg_stochastic(cg_op op);
CG_API_ cg_op cg_unbiased(cg_op op); /* rate, step: rounding at random, so that the mean is kept */
/* levels (and qsgd), dither: relative to the largest magnitude of each bucket instead of the L2 norm */
CG_API_ cg_op cg_maxnorm(cg_op op, uint32_t bucket);
CG_API_ cg_op cg_clipped(cg_op op);  /* terngrad: values are clipped at 2.5 standard deviations */
CG_API_ cg_op cg_unscaled(cg_op op); /* samples: without the factor that makes them unbiased */
/* randk, rotate, or both: drawn by every rank for itself. The error of the mean of W ranks is then W times smaller than
   that of one, where common samples and rotations make errors that add up; such packets are added decoded */
CG_API_ cg_op cg_private(cg_op op);
CG_API_ cg_op cg_coded(cg_op op, cg_coding coding); /* the same values in another code */
/* The stages of both. If both have the same stage, the result is refused by cg_bound and cg_compress. */
CG_API_ cg_op cg_then(cg_op first, cg_op second);

/* Reads an operator from text such as "topk:0.01|absmax:4:512|golomb". Letters may be of either case, blanks may stand
   around '|' and ':', and a ratio may be in percent ("topk:1%"). On CG_E_ARG *op is all zeros. */
CG_API_ CG_CHECKED_ cg_status cg_op_parse(cg_op *op, const char *text);
/* The same, and writes what is wrong into why[0..cap): the byte of the text where it is, what it is and what to write,
   for example "at 0: no operator 'tpok'; did you mean 'topk'?". 256 bytes always suffice; what does not fit is cut off,
   and why always ends with a 0, unless cap is 0. After CG_OK it is empty. why may be NULL if cap is 0. */
CG_API_ CG_CHECKED_ cg_status cg_op_parse_why(cg_op *op, const char *text, char *why, size_t cap);
/* Writes the text of an operator, with its final 0; 160 bytes always suffice. cg_op_parse reads the same operator back;
   only a ratio that k overrides is left out, and becomes 1. The text "bins:50" does not show that cg_bins also replaces
   values. CG_E_CAPACITY: cap is too small. CG_E_ARG: the operator is not valid. After an error the text is empty. */
CG_API_ CG_CHECKED_ cg_status cg_op_print(const cg_op *op, char *text, size_t cap);

/* What an operator does to vectors of n values, before it does it. */
typedef struct cg_about {
    int unbiased;     /* 1: the expected decoded vector D is x ("nearly", as the manual's table has it, for lloyd) */
    int needs_memory; /* 1: biased, so that training stalls without error feedback (compgrad_ef.h) */
    int fixed_size;   /* 1: all packets have the same length */
    /* The least bound that is known for all x: the expectation of |D - x|^2 is at most omega |x|^2, beside rounding to
       32-bit floats, and values too small or too large for a format (f16, denormals in natural). For lloyd it is that
       of normally distributed values, which is what a rotation makes of any.
       -1: none is known (sign, bins, lloyd after fewer than three rounds, codecs of yours) */
    double omega;
    /* 1 - omega, the contraction of error feedback; 0: omega is not below 1. -1: the data decides how much of x is sent
       (lowrank, threshold, variance, given, strom), or omega is not known */
    double delta;
    /* Expected bits per value of x, without the header, which adds 8*CG_HEADER_BYTES/n. With a code for values, whose
       length the data decides, the most. -1: the data decides how many values are sent, or a codec of yours does */
    double bits;
    char why[200]; /* a sentence: "ok", perhaps with a warning; after CG_E_ARG what is wrong, and what would do */
} cg_about;
/* CG_E_ARG: the operator is not valid, or does not take n (cg_bound is 0); about->why says why, and what would do. Then
   omega, delta and bits are -1, and all else is 0. A codec of yours is not asked whether it takes n. */
CG_API_ cg_status cg_op_about(const cg_op *op, size_t n, cg_about *about);

/* ---- compress and decode ---- */

/* Says which vector this is. It travels in the packet; a NULL pointer to a tag means zeros. Random numbers that all
   ranks share (sample, rotation) follow from seed, step and tensor; those of one rank (rounding) also from rank. Let
   every vector of a step have its own tensor, and change step with every step. */
typedef struct cg_tag {
    uint64_t seed, step;
    uint32_t tensor, rank;
} cg_tag;

/* Your own quantizer: constant data, passed in cg_extra.codecs, used by cg_user(id, ...). It sees the output of sample,
   transform and selection as a dense vector of n values. x, in and out may have any alignment. */
typedef struct cg_codec {
    uint8_t id; /* 128 to 255 */
    /* Bytes that compress needs at most for n values; must not decrease as n grows. 0: bad parameters. */
    size_t (*bound)(const struct cg_codec *self, const cg_stage *stage, size_t n);
    /* Writes x[0..n), which are finite, to out, at most cap bytes, and their number to *len. */
    cg_status (*compress)(const struct cg_codec *self, const cg_stage *stage, const cg_tag *tag, const float *x,
        size_t n, void *out, size_t cap, size_t *len);
    /* Writes values [first, first + count) of n to out; first is a multiple of 2048, count at most 2048. len is the
       length from compress, rounded up to a multiple of 4 with zeros. Calls come in any order, more than once, and with
       OpenMP from several threads. Must accept any bytes, and return CG_OK with finite values, or CG_E_CORRUPT. */
    cg_status (*decode)(const struct cg_codec *self, const cg_stage *stage, const void *in, size_t len, size_t n,
        size_t first, size_t count, float *out);
    const void *user; /* for your use */
} cg_codec;

/* One packet of several tensors that lie one behind the other in x: they keep their own statistics, scales, selection
   and random numbers, as if each were compressed by a call of its own, but share one header and one checksum. What they
   decode to is the same, bit for bit, as that of such calls. */
enum { CG_SEGMENT_OP = 0, CG_SEGMENT_EXACT = 1, CG_SEGMENT_OPS = 2 }; /* cg_segments.op[i] */
enum {
    /* A selection of the call's operator selects from all segments together that have this operator, as if they were
       one vector: topk:0.01 keeps 1 % of all of them, most where the largest values are. Scales stay those of each
       segment. For selections of single values that need neither aux nor a support, without a sample, transform or
       codec of yours, and for less than 2^32 values. */
    CG_SEGMENTS_GLOBAL = 1
};
typedef struct cg_segments {
    const size_t *n; /* their lengths, which add up to the n of the call; 0 is allowed */
    size_t count;    /* at least 1, less than 2^32 */
    /* What compresses segment i. CG_SEGMENT_OP: the operator of the call; CG_SEGMENT_EXACT: 32-bit floats, for norms
       and biases; CG_SEGMENT_OPS + j: ops[j]. NULL: the operator of the call, all of them */
    const uint32_t *op;
    const cg_op *ops;
    size_t op_count;
    const uint32_t *tensor; /* cg_tag.tensor of segment i; NULL: that of the call plus i */
    uint32_t flags;         /* CG_SEGMENTS_GLOBAL or 0 */
} cg_segments;

/* cg_extra.flags: decode dense packets in one pass, while the checksum is computed. If the packet turns out to be
   corrupt, y has been written to: it is then unspecified. */
enum { CG_DECODE_DIRECT = 1 };

/* Optional inputs of encoding and decoding. A NULL pointer to it, or zeros, means none. Encoding returns
   CG_E_UNSUPPORTED for an input that the operator cannot use, and CG_E_ARG if one that it needs is missing. */
typedef struct cg_extra {
    /* n floats for cg_bins and cg_adacomp (the gradient that is part of x) or cg_variance (the variance of x) */
    const float *aux;
    /* Scales that all ranks agreed on, in place of the vector's own, in the order of the packet. */
    const float *scale;
    /* cg_given: a packet with indices of its own. Decoding needs the same packet as encoding. */
    const void *support;
    size_t support_len;
    const cg_codec *const *codecs; /* pointers to your own quantizers */
    size_t codec_count;
    uint32_t flags; /* CG_DECODE_DIRECT */
    /* cg_compress_with, cg_decode and cg_ef_compress_with write here how they went: status, why, need and at. NULL:
       they do not */
    cg_report *report;
    /* N > 0: stochastic rounding as rank tag.rank % N of N, whose noise is the same but for a shift of rank/N, so that
       much of their errors cancels in the mean of all N; each by itself is as unbiased as before. 0: noise of the
       rank's own. Only for encoding, and for packets that are added once: not for sums that are encoded again */
    uint32_t correlated;
    uint32_t reserved32; /* must be 0 */
    /* Encoding: x consists of these segments. Each is given its part of aux, scale and support, if its operator uses
       them; such a support has the same segments. Decoding does not look at it. NULL: x is one vector */
    const cg_segments *segments;
} cg_extra;
typedef cg_extra cg_side; /* the name of version 0.1 */

/* Contents of a packet's header. */
typedef struct cg_info {
    cg_op op;
    cg_tag tag;
    /* length of the vector; sampled length, that is, how many values the sample kept; number of values in the packet */
    uint64_t n, drawn, k;
    uint32_t index_code; /* CG_CODE_ELIAS_FANO, CG_CODE_BITMAP or CG_CODE_GOLOMB; 0: no indices */
    float threshold;     /* smallest magnitude that topk, mstopk, dgc or sidco kept; otherwise 0 */
    size_t value_bytes, index_bytes, packet_bytes; /* packet_bytes: the whole packet */
    /* A packet with segments: how many, and CG_SEGMENTS_GLOBAL or 0 beside bits of no concern. Then drawn and k are
       those of all segments, value_bytes their values and indices, index_bytes the table of segments, op the operator
       of those that have no other, tag.tensor that of the first unless the table names another. 0: it has none */
    uint32_t segments, segment_flags;
} cg_info;

/* The most bytes that a packet of n values can take. 0: the operator is not valid, does not fit n (a matrix), or the
   size overflows. */
CG_API_ size_t cg_bound(const cg_op *op, size_t n);
/* The same with cg_extra, which an operator with a codec of your own needs. */
CG_API_ size_t cg_bound_with(const cg_op *op, const cg_extra *side, size_t n);
/* Bytes of scratch that cg_compress needs for n values; 0: none, or the operator is not valid (then cg_bound is 0). */
CG_API_ size_t cg_scratch(const cg_op *op, size_t n);
/* The same with cg_extra, which segments need. */
CG_API_ size_t cg_scratch_with(const cg_op *op, const cg_extra *side, size_t n);

/* Writes x[0..n) as a packet, and its length to *len.
   Requires: x may be NULL only if n is 0. scratch may be NULL only if scratch_bytes is 0. x, packet and scratch must
   not overlap.
   Guarantees: succeeds if op is valid, cap >= cg_bound(op, n), scratch_bytes >= cg_scratch(op, n) and all values are
   finite. Writes nothing beyond cap and scratch_bytes, and does not change x. On error *len is 0, and the contents
   of packet are unspecified.
   Returns: CG_E_ARG, CG_E_CAPACITY (cap or scratch too small), CG_E_NONFINITE; with PermK, CG_E_ARG if tag->rank is
   not below the number of workers. cg_compress_with says more in cg_extra.report. */
CG_API_ CG_CHECKED_ cg_status cg_compress(const cg_op *op, const cg_tag *tag, const float *x, size_t n, void *packet,
    size_t cap, size_t *len, void *scratch, size_t scratch_bytes);
/* The same with cg_extra; then cg_bound_with gives the capacity. */
CG_API_ CG_CHECKED_ cg_status cg_compress_with(const cg_op *op, const cg_tag *tag, const cg_extra *side, const float *x,
    size_t n, void *packet, size_t cap, size_t *len, void *scratch, size_t scratch_bytes);

/* y = beta*y + alpha*D, where D is the vector that the packet decodes to.
   Requires: alpha and beta finite; n as it was when the packet was made; len the exact length of the packet. If beta
   is 0, y is not read and may be uninitialised.
   Guarantees: packet may hold any bytes. Nothing is read beyond len or written beyond n, and y changes only if the
   result is CG_OK (see CG_DECODE_DIRECT).
   Returns: CG_E_ARG; CG_E_CORRUPT; CG_E_VERSION (unknown format, stage or codec); CG_E_MISMATCH (other n or
   support). */
CG_API_ CG_CHECKED_ cg_status cg_decode(
    const cg_extra *side, const void *packet, size_t len, float alpha, float beta, float *y, size_t n);
/* y = D: cg_decode with alpha 1 and beta 0 */
CG_API_ CG_CHECKED_ cg_status cg_decompress(const void *packet, size_t len, float *y, size_t n);
/* y = y + weight*D: cg_decode with alpha = weight and beta 1 */
CG_API_ CG_CHECKED_ cg_status cg_decompress_add(const void *packet, size_t len, float weight, float *y, size_t n);
/* Sets y[i] to 0 for every index i that the packet has a value for; all of y if the packet is dense. Same contract as
   cg_decode. CG_E_UNSUPPORTED for a packet of cg_given: pass its support instead. */
CG_API_ CG_CHECKED_ cg_status cg_clear(const void *packet, size_t len, float *y, size_t n);
/* Reads and checks the header alone, neither the checksum nor the values. len may be as short as CG_HEADER_BYTES, so
   that a receiver can learn packet_bytes before it has the rest. */
CG_API_ CG_CHECKED_ cg_status cg_inspect(const void *packet, size_t len, cg_info *info);

/* Segment i of a whole packet with segments, which is checked up to that segment, but for its checksum and values: what
   cg_inspect would say of a packet of this segment alone, and *first (NULL: not wanted), its first value in x. With
   CG_SEGMENTS_GLOBAL info->k may be any number. CG_E_ARG: there is no such segment. */
CG_API_ CG_CHECKED_ cg_status cg_segment_inspect(
    const void *packet, size_t len, size_t i, cg_info *info, uint64_t *first);
/* Segment i of a packet with segments as a packet of its own: what cg_compress would have made of it (of a selection
   from all segments, a packet of threshold:0). info->packet_bytes of cg_segment_inspect suffices for cap. The packet is
   verified. After an error *out_len is 0. */
CG_API_ CG_CHECKED_ cg_status cg_segment_copy(
    const cg_extra *side, const void *packet, size_t len, size_t i, void *out, size_t cap, size_t *out_len);

/* All segments of a packet as packets of their own, one behind the other; cg_inspect tells where each ends. The length
   of the packet plus CG_HEADER_BYTES for every segment suffices for cap. */
CG_API_ CG_CHECKED_ cg_status cg_segments_split(
    const cg_extra *side, const void *packet, size_t len, void *out, size_t cap, size_t *out_len);

/* ---- adding packets without decoding them ----
   The packets must belong to one vector (equal n, seed, step and tensor) and have equal samples and transforms, and all
   or none of them a selection; otherwise CG_E_MISMATCH. The sum is again a packet:
     - packets with a selection are merged by index, into 32-bit floats;
     - packed levels around zero (absmax, levels, terngrad, trits, flexpoint, flex16) of equal steps are added as
       integers, if 16 bits hold the sum; cg_extra.scale makes steps equal;
     - all others are added as 32-bit floats, in the order given, and transformed back only when the sum is decoded.
   If the sample or rotation of any of them is private, all are decoded instead, and the sum is a dense packet: only n
   and tag need to be equal then.
   Packets with segments are added segment by segment, up to 256 of them, if they have the same segments.
   CG_E_UNSUPPORTED: PermK and matrices; packets of cg_given beside private ones. On error *len is 0. */

/* Bytes that cg_reduce needs for the sum of these packets, and for scratch. */
CG_API_ CG_CHECKED_ cg_status cg_reduce_plan(
    const void *const *packets, const size_t *lens, size_t count, size_t *bound, size_t *scratch);
/* Writes the sum of the packets. Succeeds if cap and scratch_bytes are at least what cg_reduce_plan says and no
   packet is corrupt. */
CG_API_ CG_CHECKED_ cg_status cg_reduce(const void *const *packets, const size_t *lens, size_t count, void *out,
    size_t cap, size_t *len, void *scratch, size_t scratch_bytes);
/* Writes the majority of up to 1024 cg_sign packets without indices, as a cg_sign packet; a tie gives +. The
   length of one of them suffices for cap. */
CG_API_ CG_CHECKED_ cg_status cg_vote(
    const void *const *packets, const size_t *lens, size_t count, void *out, size_t cap, size_t *len);

/* ---- 16-bit floats, as uint16_t in the byte order of the machine ----
   Conversion to 16 bits rounds to nearest, ties to even. Finite values that are too large become the largest finite
   value; Inf and NaN stay Inf and NaN. */

CG_API_ void cg_f16_from_f32(const float *x, size_t n, uint16_t *half);
CG_API_ void cg_f16_to_f32(const uint16_t *half, size_t n, float *x);
CG_API_ void cg_bf16_from_f32(const float *x, size_t n, uint16_t *half);
CG_API_ void cg_bf16_to_f32(const uint16_t *half, size_t n, float *x);

/* ---- SIMD, for tests: the best instructions are found at run time, and all of them give the same bits ---- */

typedef enum cg_isa {
    CG_ISA_AUTO = 0,
    CG_ISA_SCALAR = 1,
    CG_ISA_AVX2 = 2,
    CG_ISA_NEON = 3,
    CG_ISA_AVX512 = 4, /* F, BW, DQ and VL; in vectors of 32 bytes */
    CG_ISA_WASM = 5    /* WebAssembly SIMD128 */
} cg_isa;
CG_API_ int cg_isa_found(cg_isa isa); /* 1 if this build and this CPU have it, otherwise 0 */
CG_API_ cg_isa cg_isa_used(void);     /* the one in use; never CG_ISA_AUTO */
/* Uses this one from now on, in all threads; CG_ISA_AUTO: the best again. CG_E_UNSUPPORTED: it was not found. */
CG_API_ CG_CHECKED_ cg_status cg_isa_force(cg_isa isa);
CG_API_ const char *cg_isa_name(cg_isa isa); /* "avx2", for example */

#endif /* COMPGRAD_H */
