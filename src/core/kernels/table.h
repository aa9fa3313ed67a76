/* table: the kernels' contracts, and the structs they take

   Offers   cg_kernels_, the table of all kernels of one ISA; cg_checksum_, cg_levels_, cg_bucketizer_, cg_rate_grid_,
            cg_dither_, cg_bernoulli_, cg_index_bits_, cg_line_target_
   Needs    base, random
   Touches  nothing but its arguments
   Other headers may use: cg_checksum_, cg_kernels_, cg_line_target_, kernels->absmax_bits, kernels->axpby,
   kernels->checksum, kernels->line_add, kernels->line_estimate, kernels->line_project
   A kernel cg_..._scalar_ is the specification; cg_..._simd_ below it is written once over the vector layer, is
   compiled for every ISA of the build (dispatch), and returns the same bits, but for the sign and payload of a NaN.
   Kernels run between cg_fenv_enter_ and cg_fenv_leave_. */

/* Fletcher's checksum over consecutive little-endian u32 words, modulo 2^64. Checksums of neighbouring runs can be
   joined, see cg_checksum_concat_. */
typedef struct cg_checksum_ {
    uint64_t a;     /* sum of the words */
    uint64_t b;     /* sum of a after each word */
    uint64_t words; /* how many words */
} cg_checksum_;

/* The uniform grid of a bucket; made by cg_levels_make_, but for inv_step, which encoders set. */
typedef struct cg_levels_ {
    /* encode: symbol = round((v*prescale - encode_offset)*inv_step) + zero_symbol, within [0, max_symbol] */
    float prescale;      /* a power of two, 1 but for huge or tiny values */
    float encode_offset; /* equals decode_offset, but 0 for a range of 0 */
    float inv_step;      /* levels per (prescaled) value; 0 gives the symbol of level 0 to all values */
    int32_t zero_symbol; /* the symbol of level 0: 0 if the grid begins at decode_offset, else max_symbol/2 */
    int32_t max_symbol;  /* 1..255 */
    /* decode: value = (decode_offset + (symbol - zero_symbol)*step)*postscale, kept finite */
    float decode_offset; /* the (prescaled) value of level 0 */
    float step;          /* (prescaled) value per level */
    float postscale;     /* 1/prescale */
    float range;         /* (prescaled) value of the levels 0..max_symbol or 0..zero_symbol: inv_step is taken of it */
    int stochastic;      /* adds cg_noise_ before it rounds */
} cg_levels_;

/* Symbols by thresholds on the magnitude. */
typedef struct cg_bucketizer_ {
    float inv_scale;     /* multiplies |v| before the comparisons */
    int32_t limit_count; /* 0..7; symbols without the sign are 0..limit_count */
    float limit[7];      /* ascending; those from limit_count on are not looked at */
    uint8_t sign_bit;    /* is set in the symbol of a negative value; 0: no signs */
} cg_bucketizer_;

/* A grid with a dead zone for all values, of levels of 16 bits. */
typedef struct cg_rate_grid_ {
    float lift; /* 1, 2^100 or 2^-100: values are multiplied by it first */
    float step; /* of values that were */
    float inv;  /* 1/step */
    float dead; /* added to |v|/step before it is cut to a level; stochastic: not used */
    int stochastic;
    uint32_t keep; /* of 2^32 values of level 1 so many are kept, others become 0; UINT32_MAX: all */
} cg_rate_grid_;

/* Natural dithering: levels are powers of two. */
typedef struct cg_dither_ {
    float inv_scale; /* multiplies v: magnitudes up to the scale become at most 1 */
    unsigned bits;   /* per symbol, 2..8: a sign and the level */
    int stochastic;  /* else to nearest */
} cg_dither_;

/* Selection of values by chance: one of magnitude m is selected with probability (m*prescale)*inv_threshold. */
typedef struct cg_bernoulli_ {
    cg_key_ key;         /* of the block of 65536 positions */
    float threshold;     /* from this magnitude on a value is certain, and sent as it is; below as +-threshold */
    float prescale;      /* a power of two that keeps inv_threshold finite */
    float inv_threshold; /* 1/(threshold*prescale) */
} cg_bernoulli_;

/* Reads an index section of Elias-Fano code or a bitmap. */
typedef struct cg_index_bits_ {
    const uint8_t *low_part;  /* Elias-Fano: where the low parts begin; they end where the high bits begin */
    const uint8_t *next_high; /* next unread word of the high bits, or of the bitmap */
    const uint8_t *end;       /* of the section */
    uint64_t word;            /* unread bits of the current 64-bit word */
    uint64_t bit_base;        /* the number of its first bit; 2^64 - 64 before the first word */
    uint64_t read_count;      /* indices read */
    unsigned low_bits;        /* Elias-Fano: bits of a low part */
    int bitmap;               /* else Elias-Fano */
} cg_index_bits_;

/* Where a row of a sketch takes a line. */
typedef struct cg_line_target_ {
    float *cells;          /* the first of CG_SKETCH_LINE_ */
    uint32_t xor_mask;     /* 8 bits, XORed to the offset in the line */
    cg_key_ sign_key;      /* of the line's signs, and of its weights in groups */
    const float *prefetch; /* as many cells that will be needed next, or these */
} cg_line_target_;

/* All kernels, as X(type of the result, name, parameters, arguments). The table, its values for each ISA and the test
   of every kernel are made of this one list. Common to them:
     - v, x, y and out are arrays of floats at any address, in and symbols bytes at any address;
     - n may be 0, and n values are read and written, no more, unless said otherwise;
     - non_temporal (decoders): out begins at a multiple of 16 bytes and is larger than the caches, so that stores
       may bypass them; stream_fence() ends such a run;
     - lanes: 16 f64 partial sums, to lane i % 16 goes the term of value i of this call; the caller sets them before;
     - absmax bits: the largest magnitude as f32 bits, 0 for n == 0. From CG_INF_BITS_ on some value is Inf or NaN:
       the finite check. Unless said otherwise an encoder writes symbols for such values too, of no meaning;
     - position: of v[0] within its block of 65536, for the noise of stochastic rounding. */
/* clang-format off */
#define CG_KERNEL_LIST_(X)                                                                                            \
  /* Encoding. Those that return absmax bits make the finite check on the way. */                                     \
  /* absmax bits of n values */                                                                                       \
  X(uint32_t, absmax_bits, (const float *v, size_t n), (v, n))                                                        \
  /* lowers *lo and raises *hi to the values (meaningless after a NaN; a zero has any sign); returns absmax bits */   \
  X(uint32_t, range, (const float *v, size_t n, float *lo, float *hi), (v, n, lo, hi))                                \
  /* f32 to the wire, 4 bytes each; returns absmax bits */                                                            \
  X(uint32_t, copy, (const float *v, size_t n, uint8_t *out), (v, n, out))                                            \
  /* f16 to the wire, 2 bytes each, to nearest even, at most +-65504; returns absmax bits */                          \
  X(uint32_t, f16_encode, (const float *v, size_t n, uint8_t *out), (v, n, out))                                      \
  /* bf16 to the wire, 2 bytes each, to nearest even, finite values stay finite; returns absmax bits */               \
  X(uint32_t, bf16_encode, (const float *v, size_t n, uint8_t *out), (v, n, out))                                     \
  /* a bit each, 1 where v < 0, to (n + 7)/8 bytes; adds |v| to lanes unless NULL. Returns absmax bits; with lanes,   \
       only whether they are below CG_INF_BITS_ is specified */                                                       \
  X(uint32_t, sign_encode, (const float *v, size_t n, uint8_t *out, double *lanes), (v, n, out, lanes))               \
  /* values of one bucket to symbols 0..q->max_symbol, a byte each */                                                 \
  X(void, levels_encode, (const cg_levels_ *q, cg_key_ key, uint32_t position, const float *v, size_t n, uint8_t      \
      *symbols), (q, key, position, v, n, symbols))                                                                   \
  /* symbols of 1..7 bits, each below 2^bits, to (n*bits + 7)/8 bytes, LSB first */                                   \
  X(void, pack, (const uint8_t *symbols, size_t n, unsigned bits, uint8_t *out), (symbols, n, bits, out))             \
  /* index (v[0] has first_index) and value of all whose magnitude bits are at least threshold_bits <= 2^31; returns  \
       how many. n <= CG_CHUNK_; index and value have room for n + CG_SLACK_, which may be scribbled on */            \
  X(size_t, filter, (const float *v, size_t n, uint32_t threshold_bits, uint32_t first_index, uint32_t *index,        \
      float *value), (v, n, threshold_bits, first_index, index, value))                                               \
  /* index and value of what is selected by chance; returns how many. Room as for filter */                           \
  X(size_t, bernoulli, (const cg_bernoulli_ *c, const float *v, size_t n, uint32_t first_index, uint32_t *index,      \
      float *value), (c, v, n, first_index, index, value))                                                            \
  /* adds to *above how many magnitude bits are larger than pivot < 2^31; returns absmax bits */                      \
  X(uint32_t, count_above, (const float *v, size_t n, uint32_t pivot, size_t *above), (v, n, pivot, above))           \
  /* values to levels of 16 bits, integers of this machine */                                                         \
  X(void, rate_encode, (const cg_rate_grid_ *g, cg_key_ key, uint32_t position, const float *v, size_t n, uint8_t     \
      *out), (g, key, position, v, n, out))                                                                           \
  /* Decoding. Any bytes are legal input; finite scales give finite values, but for f16 and bf16. */                  \
  /* the reverse of pack: reads (n*bits + 7)/8 bytes */                                                               \
  X(void, unpack, (const uint8_t *in, size_t n, unsigned bits, uint8_t *symbols), (in, n, bits, symbols))             \
  /* symbols of one bucket to values; a symbol above q->max_symbol counts as that */                                  \
  X(void, levels_decode, (const cg_levels_ *q, const uint8_t *symbols, size_t n, float *out, int non_temporal),       \
      (q, symbols, n, out, non_temporal))                                                                             \
  /* levels of rate_encode to values, by the step, the value of level 1, an offset above it and a power of two; in may\
       be the end of out */                                                                                           \
  X(void, rate_decode, (const float *value, const uint8_t *in, size_t n, float *out), (value, in, n, out))            \
  /* bits to -scale (1) or scale (0) */                                                                               \
  X(void, sign_decode, (const uint8_t *in, size_t n, float scale, float *out, int non_temporal), (in, n, scale,       \
      out, non_temporal))                                                                                             \
  X(void, f16_decode, (const uint8_t *in, size_t n, float *out, int non_temporal), (in, n, out, non_temporal))        \
  X(void, bf16_decode, (const uint8_t *in, size_t n, float *out, int non_temporal), (in, n, out, non_temporal))       \
  /* the largest magnitude of n 16-bit floats of the wire, as their bits: the finite check of a packet */             \
  X(uint32_t, absmax16_bits, (const uint8_t *in, size_t n), (in, n))                                                  \
  /* y = beta*y + alpha*x; y is not read if beta is 0, and non_temporal counts only then */                           \
  X(void, axpby, (const float *x, size_t n, float alpha, float beta, float *y, int non_temporal), (x, n, alpha,       \
      beta, y, non_temporal))                                                                                         \
  /* y = from, then from = 0 */                                                                                       \
  X(void, move_zero, (float *from, size_t n, float *y, int non_temporal), (from, n, y, non_temporal))                 \
  /* orders non-temporal stores before all later stores of this thread */                                             \
  X(void, stream_fence, (void), ())                                                                                   \
  /* continues *sum over word_count words of 4 bytes */                                                               \
  X(void, checksum, (cg_checksum_ *sum, const uint8_t *words, size_t word_count), (sum, words, word_count))           \
  /* Transforms and sums. */                                                                                          \
  /* randomized Hadamard transform of CG_ROTATE_BLOCK_ values, or its inverse, to v; from may be v. rounds is 1 to 3, \
       flips has 32 words for each */                                                                                 \
  X(void, rotate_from, (const float *from, float *v, const uint32_t *flips, int rounds, int inverse), (from, v,       \
      flips, rounds, inverse))                                                                                        \
  /* orthonormal DCT-II of CG_DCT_BLOCK_ values in place, or its inverse */                                           \
  X(void, dct, (float *v, int inverse), (v, inverse))                                                                 \
  /* adds a term (CG_SUM_*) of each value to lanes */                                                                 \
  X(void, lane_sum, (const float *v, size_t n, int term, double *lanes), (v, n, term, lanes))                         \
  /* y = beta*y + alpha*x, where one of the products fades, and adds squares of x or y to lanes, by mode              \
       (CG_AXPBY_*). x may be y */                                                                                    \
  X(void, axpby_fading, (const float *x, size_t n, float alpha, float beta, float *y, int mode, double *lanes),       \
      (x, n, alpha, beta, y, mode, lanes))                                                                            \
  /* More formats. */                                                                                                 \
  /* symbols by g's thresholds; adds centroid[symbol without sign]*|v| to lanes unless NULL (then centroid may be) */ \
  X(void, bucketize, (const cg_bucketizer_ *g, const float *v, size_t n, uint8_t *symbols, const float *centroid,     \
      double *lanes), (g, v, n, symbols, centroid, lanes))                                                            \
  /* symbol: how many of 15 ascending limits are below v*inv_scale; 0 for a NaN */                                    \
  X(void, nf4_search, (const float *limit, float inv_scale, const float *v, size_t n, uint8_t *symbols), (limit,      \
      inv_scale, v, n, symbols))                                                                                      \
  /* values table[symbol % 16] of 16 floats at any address */                                                         \
  X(void, table_decode, (const float *table, const uint8_t *symbols, size_t n, float *out, int non_temporal),         \
      (table, symbols, n, out, non_temporal))                                                                         \
  /* v*inv_scale to E4M3 or E5M2, a byte each, to nearest even, at most +-448 or +-57344 */                           \
  X(void, fp8_encode, (const float *v, size_t n, float inv_scale, int is_e5m2, uint8_t *out), (v, n, inv_scale,       \
      is_e5m2, out))                                                                                                  \
  X(void, fp8_decode, (const uint8_t *in, size_t n, float scale, int is_e5m2, float *out, int non_temporal), (in,     \
      n, scale, is_e5m2, out, non_temporal))                                                                          \
  /* f16 or bf16 to the wire, 2 bytes each, rounded at random; what is too large becomes the largest. Returns absmax  \
       bits */                                                                                                        \
  X(uint32_t, half_stochastic, (const float *v, size_t n, cg_key_ key, uint32_t position, int is_bf16, uint8_t *out), \
      (v, n, key, position, is_bf16, out))                                                                            \
  /* v*inv_scale to a format CG_SMALL_E4M3_, _E5M2_ or _E2M1_, a byte each, rounded at random; likewise */            \
  X(void, fp8_stochastic, (const float *v, size_t n, float inv_scale, int format, cg_key_ key, uint32_t position,     \
      uint8_t *out), (v, n, inv_scale, format, key, position, out))                                                   \
  /* symbol: one of the two neighbours of v*inv_scale among 16 ascending values, at random; 0 for a NaN */            \
  X(void, nf4_stochastic, (const float *value, float inv_scale, cg_key_ key, uint32_t position, const float *v, size_t\
      n, uint8_t *symbols), (value, inv_scale, key, position, v, n, symbols))                                         \
  /* magnitudes of at most the float with these bits; out may be v */                                                 \
  X(void, cut, (const float *v, size_t n, uint32_t limit_bits, float *out), (v, n, limit_bits, out))                 \
  /* powers of two: n bytes of exponents, then (n + 7)/8 bytes of signs; returns absmax bits */                       \
  X(uint32_t, natural_encode, (const float *v, size_t n, cg_key_ key, uint32_t position, int stochastic, uint8_t      \
      *out), (v, n, key, position, stochastic, out))                                                                  \
  X(void, natural_decode, (const uint8_t *in, size_t n, float *out, int non_temporal), (in, n, out, non_temporal))    \
  /* v*inv_scale to 0 or +-2^-j, as symbols of q->bits bits */                                                        \
  X(void, dither_encode, (const cg_dither_ *q, cg_key_ key, uint32_t position, const float *v, size_t n, uint8_t      \
      *symbols), (q, key, position, v, n, symbols))                                                                   \
  /* bits above the low `bits` of a symbol are ignored */                                                             \
  X(void, dither_decode, (unsigned bits, float scale, const uint8_t *symbols, size_t n, float *out, int               \
      non_temporal), (bits, scale, symbols, n, out, non_temporal))                                                    \
  /* v*inv_scale, magnitudes up to 1, to the nearest dynamic8 value */                                                \
  X(void, dynamic8_encode, (const float *v, size_t n, float inv_scale, uint8_t *symbols), (v, n, inv_scale, symbols)) \
  X(void, dynamic8_decode, (const uint8_t *symbols, size_t n, float scale, float *out, int non_temporal),             \
      (symbols, n, scale, out, non_temporal))                                                                         \
  /* symbol 2 above tau, 0 below -tau, 1 between and for a NaN; tau >= 0 */                                           \
  X(void, strom_encode, (const float *v, size_t n, float tau, uint8_t *symbols), (v, n, tau, symbols))                \
  /* bitwise majority of `count` strings of `bytes` bytes: 1 where more than half have 1. count <= 65535 */           \
  X(void, vote, (const uint8_t *const *in, size_t count, size_t bytes, uint8_t *out), (in, count, bytes, out))        \
  /* Matrices: m has rows of cols floats, stride floats apart. prefetch: rows*cols floats that are needed next, or    \
       NULL; they are not accessed. */                                                                                \
  /* p[a][i] += sum over j of m[i][j]*q[a][j], a < r, in f64; rows of q and p are q_stride and p_stride doubles       \
       apart, the values of q are f32's, cols <= CG_TILE_COLS_ */                                                     \
  X(void, project, (const float *m, size_t stride, size_t rows, size_t cols, const double *q, size_t q_stride,        \
      unsigned r, double *p, size_t p_stride, const float *prefetch), (m, stride, rows, cols, q, q_stride, r, p,      \
      p_stride, prefetch))                                                                                            \
  /* q[a][j] += sum over i of p[i][a]*m[i][j], a < r, in f32 for CG_TILE_ROWS_ rows at a time, then in f64 */         \
  X(void, project_t, (const float *m, size_t stride, size_t rows, size_t cols, const float *p, size_t p_stride,       \
      unsigned r, double *q, size_t q_stride, const float *prefetch), (m, stride, rows, cols, p, p_stride, r, q,      \
      q_stride, prefetch))                                                                                            \
  /* out[i][j] = sum over a < r of p[i][a]*q[a][j], j < count, in f32 and kept finite; p has r floats per row.        \
       non_temporal: every row of out begins at a multiple of 16 bytes */                                             \
  X(void, lowrank_tile, (const float *p, const float *q, size_t q_stride, unsigned r, size_t rows, size_t count,      \
      float *out, size_t out_stride, int non_temporal), (p, q, q_stride, r, rows, count, out, out_stride,             \
      non_temporal))                                                                                                  \
  /* Floats taken apart for entropy coding: values of 4 (f32) or 2 (bf16) bytes on the wire. */                       \
  /* the exponents, a byte each */                                                                                    \
  X(void, exponents, (unsigned width, const uint8_t *in, size_t n, uint8_t *exponents), (width, in, n, exponents))    \
  /* the rest of each value, width - 1 bytes */                                                                       \
  X(void, sign_mantissas, (unsigned width, const uint8_t *in, size_t n, uint8_t *sign_mantissas),                     \
      (width, in, n, sign_mantissas))                                                                                 \
  /* both together again */                                                                                           \
  X(void, floats_join, (unsigned width, const uint8_t *exponents, const uint8_t *sign_mantissas, size_t n,            \
      uint8_t *out), (width, exponents, sign_mantissas, n, out))                                                      \
  /* Index sets. Any bytes are legal. */                                                                              \
  /* up to `count` more indices; returns how many, fewer only where the bits run out */                               \
  X(size_t, index_get, (cg_index_bits_ *r, uint64_t *index, size_t count), (r, index, count))                         \
  /* whether r, which has not read yet, holds k ascending indices below universe, and no more; *next: the last + 1 */ \
  X(int, index_check, (cg_index_bits_ *r, uint64_t k, uint64_t universe, uint64_t *next), (r, k, universe, next))     \
  /* Sketches: many values of a line, at most CG_SKETCH_LINE_; p: the targets of the line, one per row. */            \
  /* adds weight times the line to its cells in all rows */                                                           \
  X(void, line_add, (const cg_line_target_ *p, int rows, const float *x, size_t many, float weight),                  \
      (p, rows, x, many, weight))                                                                                     \
  /* the line's part of the sum of its groups in one row */                                                           \
  X(float, line_project, (const cg_line_target_ *p, const float *x, size_t many, float weight), (p, x, many, weight)) \
  /* estimates of the first `many` coordinates of the line; rows <= CG_SKETCH_MAX_ROWS_ */                            \
  X(void, line_estimate, (const cg_line_target_ *p, int rows, size_t many, float *out), (p, rows, many, out))
/* clang-format on */
#define CG_KERNEL_MEMBER_(result, name, parameters, arguments) result(*name) parameters;
typedef struct cg_kernels_ { /* see CG_KERNEL_ */
    cg_isa isa;
#if CG_HAS_KERNEL_TABLE_
    CG_KERNEL_LIST_(CG_KERNEL_MEMBER_)
#endif
} cg_kernels_;
#if !CG_HAS_KERNEL_TABLE_
#  define CG_KERNEL_ONLY_(result, name, parameters, arguments) CG_INLINE_ result cg_only_##name parameters;
CG_KERNEL_LIST_(CG_KERNEL_ONLY_)
#  undef CG_KERNEL_ONLY_
#endif
