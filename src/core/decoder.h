/* decoder: an opened packet, and the decoding of one chunk of its values

   Offers   cg_decoder_, cg_sink_, cg_piece_cursor_, cg_decode_chunk_
   Needs    base, kernels, codes (symbols, floats), packet, quantize, layout, encode (scales and ends of buckets)
   Touches  nothing but its arguments
   Other headers may use: cg_decoder_, cg_sink_
   All of it is safe on any bytes that cg_decoder_open_ accepts, and gives finite floats once cg_verify_ has accepted
   them. */

/* Takes decoded values in place of y. Both functions return the sum of the squares of v, which may have any alignment.
   Sparse values have been multiplied by alpha, dense ones not; beta is not used. */
typedef struct cg_sink_ {
    double (*take_dense)(const void *user, size_t first, size_t many, const float *v); /* [first, first + many) of n */
    double (*take_sparse)(const void *user, const uint64_t *at, size_t many, const float *v); /* at ascending indices */
    const void *user;
    double energy; /* result: the sum of what they returned is added */
} cg_sink_;

/* An opened packet. cg_decoder_open_ sets all but alpha, beta and non_temporal, with support and sink NULL. */
typedef struct cg_decoder_ {
    const cg_kernels_ *kernels;
    const uint8_t *packet, *scales, *piece_table, *codes, *index; /* the sections */
    const struct cg_decoder_ *support;                            /* whose indices these values have, or NULL */
    cg_info info;
    cg_layout_ lay;
    cg_plan_ plan;
    float alpha, beta; /* y = alpha*decoded + beta*y */
    float *y;          /* n floats of any alignment */
    float empty_y;     /* y points here if there are no values, as NULL + 0 is undefined */
    cg_sink_ *sink;    /* takes the values in place of y, or NULL */
    int non_temporal;  /* 1: y is larger than the caches, and aligned to 16 bytes */
    /* of a packet with segments, whose lay and sections are not used */
    int need_codec;                /* 0: only its indices are wanted */
    uint64_t coordinates;          /* for how many values of x it has some */
    uint64_t segments_hash;        /* of what their packets have in common on all ranks; 0: no segments */
    struct cg_segment_walk_ *walk; /* of a support: where its reader stands */
} cg_decoder_;

/* Where a reader of pieces stands, and the last piece it has decoded; only with a value code. */
typedef struct cg_piece_cursor_ {
    size_t piece;  /* its number */
    size_t offset; /* bytes from the start of the codes to it */
    int decoded;   /* 1: symbols has it, or levels is open */
    union {
        uint8_t symbols[CG_PIECE_SYMBOLS_]; /* or floats as they are stored */
        cg_rans_reader_ levels;             /* at the next chunk */
    } of;
} cg_piece_cursor_;

/* Pieces of a packet with a value code. */
static size_t cg_piece_count_(const cg_layout_ *lay) {
    return (size_t)(lay->k / lay->piece_values + (lay->k % lay->piece_values != 0));
}
/* Bytes of a piece, which may be more than the section has until cg_pieces_check_ has seen the table. */
static size_t cg_piece_bytes_(const cg_decoder_ *d, size_t piece) {
    if (d->lay.value_code == CG_VALUE_CODE_RANS_) return 4 * (size_t)cg_get16_(d->piece_table + 2 * piece);
    return (size_t)cg_word_bytes_(cg_get32_(d->piece_table + 4 * piece) & 0x3fffffffu);
}
/* At a piece whose offset the caller knows. */
static void cg_piece_cursor_open_(cg_piece_cursor_ *c, size_t piece, size_t offset) {
    c->piece = piece;
    c->offset = offset;
    c->decoded = 0;
}
/* Symbols, or floats as they are stored, from value `first` to the end of its piece, or levels to the end of its chunk,
   which are put in levels; `first` never decreases, and for levels is a multiple of CG_CHUNK_. */
CG_NOINLINE_ const uint8_t *cg_piece_cursor_get_(
    cg_piece_cursor_ *c, const cg_decoder_ *d, size_t first, uint8_t *levels) {
    const cg_layout_ *lay = &d->lay;
    const size_t piece = first / lay->piece_values,
                 many = cg_min_(lay->piece_values, (size_t)lay->k - piece * lay->piece_values);
    const unsigned width = cg_float_width_(&d->info.op.quantize);
    for (; c->piece < piece; c->piece++, c->decoded = 0) c->offset += cg_piece_bytes_(d, c->piece);
    if (lay->value_code == CG_VALUE_CODE_RANS_) { /* chunk by chunk */
        cg_rans_reader_ *r = &c->of.levels;
        if (!c->decoded)
            (void)cg_rans_open_(r, d->codes + c->offset, cg_piece_bytes_(d, piece), many, lay->bits_x32 / 32);
        c->decoded = 1;
        while (r->position < first - piece * lay->piece_values) cg_rans_skip_(r);
        cg_rans_next_(r, cg_min_(CG_CHUNK_, many - r->position), levels);
        return levels;
    }
    if (!c->decoded) {
        const uint32_t entry = cg_get32_(d->piece_table + 4 * piece);
        const size_t bytes = cg_piece_bytes_(d, piece);
        if (width) cg_floats_get_(d->kernels, width, entry, d->codes + c->offset, bytes, many, c->of.symbols);
        else
            cg_piece_get_(
                d->kernels, lay->value_code, &lay->alphabet, entry, d->codes + c->offset, bytes, many, c->of.symbols);
        c->decoded = 1;
    }
    return c->of.symbols + (first - piece * lay->piece_values) * (width ? width : 1);
}
/* Values [first, first + many) from symbols, or from packed bits if that is the quantizer's output, by buckets. */
static void cg_decode_buckets_(
    const cg_decoder_ *d, const uint8_t *in, size_t first, size_t many, float *out, int stream) {
    const cg_layout_ *lay = &d->lay;
    const cg_quantizer_ *quantizer = lay->quantizer;
    float scales[2];
    if (quantizer->needs != CG_NEEDS_BUCKET_STATS_) {
        if (quantizer->scale_count) cg_scales_get_(lay, d->scales, 0, scales);
        quantizer->decode(d->kernels, &d->info.op.quantize, scales, in, many, out, stream);
        return;
    }
    for (size_t i = first, b = cg_quotient_(first, (size_t)lay->bucket_size), stop; i < first + many; i = stop, b++) {
        stop = cg_min_(first + many, cg_bucket_end_(lay, b));
        cg_scales_get_(lay, d->scales, b, scales);
        quantizer->decode(d->kernels, &d->info.op.quantize, scales,
            in + (quantizer->output == CG_OUTPUT_SYMBOLS_ ? i - first : (i - first) * lay->bits_x32 / 256), stop - i,
            cg_at_mut_(out, i - first), stream && (i - first) % 4 == 0);
    }
}
/* Values [first, first + many), at most CG_CHUNK_, from packed symbols. */
CG_NOINLINE_ void cg_decode_packed_(
    const cg_decoder_ *d, const uint8_t *in, size_t first, size_t many, float *out, int stream) {
    uint8_t symbols[CG_CHUNK_];
    CG_KERNEL_(d->kernels, unpack(in, many, d->lay.bits_x32 / 32, symbols));
    cg_decode_buckets_(d, symbols, first, many, out, stream);
}
/* Values [first, first + many) as floats: in out, or where they lie, at any alignment; NULL: the user codec refused, or
   made a value that is not finite. first is a multiple of CG_CHUNK_, many at most that; cursor: NULL without a value
   code. */
static const float *cg_decode_chunk_(
    const cg_decoder_ *d, cg_piece_cursor_ *cursor, size_t first, size_t many, float *out, int stream) {
    const cg_layout_ *lay = &d->lay;
    const uint8_t *in;
    if (lay->codec) {
        cg_status s = lay->codec->decode(
            lay->codec, &d->info.op.quantize, d->codes, d->info.value_bytes, (size_t)lay->k, first, many, out);
        return s == CG_OK && CG_KERNEL_(d->kernels, absmax_bits(out, many)) < CG_INF_BITS_ ? out : NULL;
    }
    /* levels are put into the end of out, where floats, which are twice as wide, reach them one by one */
    in = cg_is_coded_(lay) ? cg_piece_cursor_get_(cursor, d, first, (uint8_t *)out + 2 * many)
                           : d->codes + cg_codes_offset_(lay, first);
#if !CG_BIG_ENDIAN_
    if (lay->bits_x32 == 32 * 32) return (const float *)(const void *)in; /* f32 as it is */
#endif
    if (lay->quantizer->output == CG_OUTPUT_SYMBOLS_ && lay->bits_x32 < 8 * 32 && !cg_is_coded_(lay))
        cg_decode_packed_(d, in, first, many, out, stream);
    else cg_decode_buckets_(d, in, first, many, out, stream);
    return out;
}
