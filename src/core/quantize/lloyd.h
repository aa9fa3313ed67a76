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
