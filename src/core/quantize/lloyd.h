/* lloyd: Lloyd-Max levels of a normal distribution, for rotated blocks (DRIVE, EDEN)

   Offers   cg_encode_lloyd_, cg_decode_lloyd_, cg_set_scales_l2norm_, cg_rescale_lloyd_
   Needs    base, kernels, quantize/scales, quantize/formats
   Touches  nothing but its arguments
   A bucket is one rotated block of 1024 values, whose scale first is its norm, and after encoding what makes the result
   unbiased. With a fraction of a bit, the first values of a block have one bit more than the others. */

/* Magnitudes of the levels for 1, 2, 3 and 4 bits, of which one is the sign. */
static const float cg_lloyd_centroids_[4][8] = {
    { 0.797884561f },
    { 0.452780035f, 1.51041762f },
    { 0.245094183f, 0.756005281f, 1.34390925f, 2.15194571f },
    { 0.128394938f, 0.388048258f, 0.656759118f, 0.942340345f, 1.25623121f, 1.61804638f, 2.06901694f, 2.73258957f },
};
/* The limits halfway between the centroids; inv_scale is left to the caller. */
static cg_bucketizer_ cg_lloyd_thresholds_(unsigned bits) {
    cg_bucketizer_ thresholds;
    thresholds.inv_scale = 0.0f;
    thresholds.limit_count = (1 << (bits - 1)) - 1;
    thresholds.sign_bit = (uint8_t)(1u << (bits - 1));
    for (int i = 0; i < thresholds.limit_count; i++)
        thresholds.limit[i] =
            (float)(((double)cg_lloyd_centroids_[bits - 1][i] + (double)cg_lloyd_centroids_[bits - 1][i + 1]) * 0.5);
    return thresholds;
}
/* How many values of a block have one bit more than the others: the first ones, as the rotation has mixed them. */
static size_t cg_lloyd_extra_bit_n_(const cg_stage *stage) { return (size_t)((int)(stage->value * 32.0f) % 32) * 32; }

/* n is CG_ROTATE_BLOCK_, scales[0] the norm of the values; lanes += <centroids, values>. */
CG_ENCODE_FN_(cg_encode_lloyd_) {
    const size_t extra_bit_n = cg_lloyd_extra_bit_n_(stage), split[3] = { 0, extra_bit_n, n };
    const unsigned whole_bits = (unsigned)stage->value;
    uint8_t symbols[CG_ROTATE_BLOCK_];
    CG_UNUSED_(key);
    CG_UNUSED_(position);
    if (whole_bits == 1 && !extra_bit_n) { /* one centroid: the product is a multiple of the sum of magnitudes */
        CG_KERNEL_(kernels, sign_encode(v, n, out, lanes));
        for (int i = 0; i < 16; i++)
            lanes[i] *= (double)cg_lloyd_centroids_[0][0] * (cg_is_tiny_(scales[0]) ? (double)CG_POW2_100_ : 1.0);
        return 0;
    }
    for (int group = 0; group < 2; group++) {
        const unsigned bits = group == 0 ? whole_bits + 1 : whole_bits;
        const size_t from = split[group], many = split[group + 1] - from;
        cg_bucketizer_ thresholds;
        if (!many) continue;
        thresholds = cg_lloyd_thresholds_(bits);
        {
            const float *w = cg_at_(v, from);
            const float norm = scales[0];
            float lifted[256];
            for (size_t at = 0, sub_n; at < many; at += sub_n) {
                const float *u = cg_at_(w, at);
                float scale = norm;
                sub_n = many - at;
                if (cg_is_tiny_(norm)) {
                    sub_n = cg_min_(sub_n, 256);
                    scale = cg_times_(norm, CG_POW2_100_);
                    for (size_t i = 0; i < sub_n; i++) lifted[i] = cg_times_(cg_load_(u, i), CG_POW2_100_);
                    u = lifted;
                }
                thresholds.inv_scale = cg_ratio_or_zero_(32.0f, scale);
                CG_KERNEL_(kernels,
                    bucketize(&thresholds, u, sub_n, symbols + from + at, cg_lloyd_centroids_[bits - 1], lanes));
            }
        }
        CG_KERNEL_(kernels, pack(symbols + from, many, bits, out));
        out += many / 8 * bits;
    }
    return 0;
}
static unsigned cg_bits_x32_lloyd_(const cg_stage *stage) { return (unsigned)(stage->value * 32.0f); }
static void cg_set_scales_l2norm_(const cg_stage *stage, const cg_bucket_stats_ *stat, float *scales) {
    (void)stage;
    scales[0] = cg_saturate64_(cg_sqrt_(stat->sums[0]));
}
/* The scale |z|^2 / <centroids, z> makes the result unbiased. With a tiny norm the product is 2^100 too large. */
static void cg_rescale_lloyd_(const cg_bucket_stats_ *stat, double total, float *scales) {
    if (cg_is_tiny_(scales[0])) total *= (double)CG_POW2_MINUS_100_;
    scales[0] = total > 0.0 ? cg_saturate64_(stat->sums[0] / total) : 0.0f;
}
CG_DECODE_FN_(cg_decode_lloyd_) {
    const size_t extra_bit_n = cg_lloyd_extra_bit_n_(stage), split[3] = { 0, extra_bit_n, n };
    const unsigned whole_bits = (unsigned)stage->value;
    uint8_t symbols[CG_ROTATE_BLOCK_];
    if (whole_bits == 1 && !extra_bit_n) {
        CG_KERNEL_(
            kernels, sign_decode(in, n, cg_saturate_(cg_times_(scales[0], cg_lloyd_centroids_[0][0])), out, stream));
        return;
    }
    for (int group = 0; group < 2; group++) {
        const unsigned bits = group == 0 ? whole_bits + 1 : whole_bits, half = 1u << (bits - 1);
        const size_t from = split[group], many = split[group + 1] - from;
        float table[16] = { 0.0f };
        if (!many) continue;
        for (unsigned i = 0; i < half; i++) {
            table[i] = cg_saturate_(cg_times_(scales[0], cg_lloyd_centroids_[bits - 1][i]));
            table[i + half] = -table[i];
        }
        CG_KERNEL_(kernels, unpack(in, many, bits, symbols));
        CG_KERNEL_(kernels, table_decode(table, symbols, many, cg_at_mut_(out, from), stream));
        in += many / 8 * bits;
    }
}
