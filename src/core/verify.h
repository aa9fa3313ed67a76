/* verify: everything that can be wrong with the values and indices of a packet

   Offers   cg_verify_, cg_scales_legal_, cg_codes_check_, cg_checksum_ok_, cg_codes_prefetch_
   Needs    base, kernels, codes, packet, layout, indices, decoder
   Touches  nothing
   A packet is canonical: bits that fill sections are zero, indices ascend, and nothing is left over. After
   cg_decoder_open_ and cg_verify_ nothing can fail any more but a user codec. */

/* Are all scales such as an encoder can have stored? */
static int cg_scales_legal_(const cg_decoder_ *d) {
    const cg_quantizer_ *quantizer = d->lay.quantizer;
    float scales[2];
    if (!quantizer || !quantizer->scale_count) return 1;
    for (size_t b = 0; b < (size_t)d->lay.bucket_count; b++) {
        if (quantizer->byte_scale && d->scales[(size_t)d->lay.vector_bytes + b] > quantizer->byte_scale->largest)
            return 0;
        cg_scales_get_(&d->lay, d->scales, b, scales);
        if (!quantizer->legal(scales)) return 0;
    }
    return cg_padding_zero_(
        d->scales, (d->lay.vector_bytes + d->lay.bucket_count * quantizer->scale_count * quantizer->scale_width) * 8);
}
/* Prefetches the first half of the next chunk's codes, which makes the hardware fetch the rest; all of it is slower. */
static void cg_codes_prefetch_(const cg_decoder_ *d, size_t first) {
    const size_t bytes = cg_codes_offset_(&d->lay, CG_CHUNK_);
    const uint8_t *next = d->codes + cg_codes_offset_(&d->lay, first) + bytes;
    if (!cg_is_coded_(&d->lay) && first + CG_CHUNK_ < d->lay.k)
        for (size_t i = 0; i < bytes / 2; i += 64) CG_PREFETCH_(next + i);
}
/* Packed codes of values [first, first + many), a whole chunk or the last: *sum absorbs them, unless the packet is
   small; returns whether all stored floats are finite. */
static int cg_codes_check_(const cg_decoder_ *d, size_t first, size_t many, cg_checksum_ *sum) {
    const uint8_t *in = d->codes + cg_codes_offset_(&d->lay, first);
    const cg_quantizer_ *quantizer = d->lay.quantizer;
    if (d->info.packet_bytes > CG_SMALL_PACKET_)
        CG_KERNEL_(d->kernels, checksum(sum, in, cg_codes_words_(&d->lay, many)));
    return !quantizer->stored_absmax_bits ||
        quantizer->stored_absmax_bits(d->kernels, in, many) < quantizer->stored_limit;
}
/* Do the entries add up to the section, and is each piece one that can be decoded, its floats finite? */
CG_NOINLINE_ int cg_pieces_check_(const cg_decoder_ *d) {
    const cg_layout_ *lay = &d->lay;
    const size_t k = (size_t)lay->k, pieces = cg_piece_count_(lay);
    const size_t codes_bytes = d->info.value_bytes - (size_t)(lay->scale_bytes + lay->piece_table_bytes);
    const unsigned width = cg_float_width_(&d->info.op.quantize);
    size_t offset = 0;
    for (size_t i = 0; i < pieces; i++) {
        const size_t bytes = cg_piece_bytes_(d, i), many = cg_min_(lay->piece_values, k - i * lay->piece_values);
        uint32_t entry;
        if (bytes > codes_bytes - offset) return 0;
        if (lay->value_code == CG_VALUE_CODE_RANS_) {
            if (!cg_rans_check_(d->codes + offset, bytes, many, lay->bits_x32 / 32)) return 0;
            offset += bytes;
            continue;
        }
        entry = cg_get32_(d->piece_table + 4 * i);
        if (!width &&
            !cg_piece_check_(d->kernels, lay->value_code, &lay->alphabet, entry, d->codes + offset, bytes, many))
            return 0;
        if (width) {
            if (!cg_floats_check_(d->kernels, width, entry, d->codes + offset, bytes, many)) return 0;
            if (entry >> 30 == 0 &&
                lay->quantizer->stored_absmax_bits(d->kernels, d->codes + offset, many) >= lay->quantizer->stored_limit)
                return 0;
        }
        offset += bytes;
    }
    return offset == codes_bytes &&
        (lay->value_code != CG_VALUE_CODE_RANS_ || cg_padding_zero_(d->piece_table, 16 * (uint64_t)pieces));
}
/* The whole index section: padding, indices, and the length of the last block. */
CG_NOINLINE_ int cg_index_check_(const cg_decoder_ *d) {
    const cg_info *info = &d->info;
    const uint64_t k = cg_index_count_(&d->plan, info->k);
    cg_index_reader_ r;
    uint64_t next;
    int ok;
    if (!info->index_bytes) return k == 0 || !cg_has_indices_(&d->plan);
    r = cg_index_open_(d->kernels, info, &d->plan, d->index);
    if (!r.coder->padding_ok(&r, k)) return 0;
    ok = r.coder->check(&r, k, &next);
    if (!ok) return 0;
    /* only the last block of the vector may be short, and k must say so */
    return r.values_per_index == 1 ||
        (info->k % r.values_per_index
                ? next == r.universe && info->k % r.values_per_index == r.transformed_n % r.values_per_index
                : next != r.universe || !(r.transformed_n % r.values_per_index));
}
/* Is the packet's checksum right, if its codes have this one? For a user codec, codes are all of the value section.
   Of a small packet codes is not read. */
static int cg_checksum_ok_(const cg_decoder_ *d, cg_checksum_ codes) {
    cg_checksum_ s;
    if (d->info.packet_bytes <= CG_SMALL_PACKET_) s = cg_packet_checksum_(d->kernels, d->packet, d->info.packet_bytes);
    else {
        s = cg_checksum_of_(d->kernels, d->packet, CG_CHECKSUM_OFFSET_);
        s = cg_checksum_concat_(s, cg_checksum_zeros_(4));
        s = cg_checksum_concat_(s, cg_checksum_of_(d->kernels, d->scales, (size_t)(d->codes - d->scales)));
        s = cg_checksum_concat_(s, codes);
        s = cg_checksum_concat_(s, cg_checksum_of_(d->kernels, d->index, d->info.index_bytes));
    }
    return s.a == cg_get64_(d->packet + CG_CHECKSUM_OFFSET_) && s.b == cg_get64_(d->packet + CG_CHECKSUM_OFFSET_ + 8);
}
/* The same of all bytes of a packet. */
static int cg_checksum_whole_ok_(const cg_decoder_ *d) {
    const cg_checksum_ s = cg_packet_checksum_(d->kernels, d->packet, d->info.packet_bytes);
    return s.a == cg_get64_(d->packet + CG_CHECKSUM_OFFSET_) && s.b == cg_get64_(d->packet + CG_CHECKSUM_OFFSET_ + 8);
}
static cg_status cg_verify_segments_(const cg_decoder_ *d, const cg_extra *extra); /* in core/segments/decode.h */
/* Values and indices of a packet that cg_decoder_open_ has opened: CG_OK or CG_E_CORRUPT. A user codec decodes all its
   values once. Of a segment, whose packet_bytes are 0, the checksum is left to cg_verify_segments_. */
CG_NOINLINE_ cg_status cg_verify_(const cg_decoder_ *d, const cg_extra *extra) {
    const size_t k = (size_t)d->lay.k;
    cg_checksum_ sum = { 0, 0, 0 };
    float out[CG_CHUNK_];
    int finite = 1;
    if (cg_has_segments_(&d->info)) return cg_verify_segments_(d, extra);
    if (d->info.packet_bytes && (!d->lay.quantizer || cg_is_coded_(&d->lay)))
        sum = cg_checksum_of_(d->kernels, d->codes, (size_t)(d->index - d->codes));
    if (d->lay.quantizer && !cg_is_coded_(&d->lay))
        for (size_t i = 0; i < k; i += CG_CHUNK_) {
            cg_codes_prefetch_(d, i);
            finite &= cg_codes_check_(d, i, cg_min_(CG_CHUNK_, k - i), &sum);
        }
    if ((d->info.packet_bytes && !cg_checksum_ok_(d, sum)) || !finite || !cg_index_check_(d)) return CG_E_CORRUPT;
    if (cg_is_coded_(&d->lay) && !cg_pieces_check_(d)) return CG_E_CORRUPT;
    for (size_t i = 0; d->lay.codec && i < k; i += CG_CHUNK_)
        if (!cg_decode_chunk_(d, NULL, i, cg_min_(CG_CHUNK_, k - i), out, 0)) return CG_E_CORRUPT;
    return CG_OK;
}
