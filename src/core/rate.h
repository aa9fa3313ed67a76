/* rate: the search for a step whose packet has the bytes that were asked for, and the section of values it makes

   Offers   cg_rate_encode_
   Needs    base, random, codes (rans, rans_plan, rans_put), quantize (rate), layout, source, encode (waves)
   Touches  the packet's value section; scratch
   A histogram of some of the values says which step may fit; all pieces are planned with it, and the bytes that their
   plans have together say in which direction to go on. Then the pieces are written as planned. Everything that decides
   is an integer, so that every machine finds the same step. */

typedef struct cg_rate_ {
    const cg_encoder_ *e;
    cg_rans_plan_ *plans; /* of all pieces */
    cg_rate_grid_ grid;
} cg_rate_;
/* One piece, as cg_rans_levels_ sees it. */
typedef struct cg_rate_piece_ {
    const cg_rate_ *rate;
    size_t begin, n;
    cg_key_ key;
    cg_rate_counts_ counts; /* of the first look at the levels, in order, if `counted` began at 0 */
    size_t counted;
} cg_rate_piece_;
enum { CG_RATE_STEP_ = 1024 /* values that are fetched at a time: a rotated block, at least */ };

static void cg_rate_make_(const cg_rans_levels_ *self, size_t first, size_t many, int16_t *out) {
    cg_rate_piece_ *p = (cg_rate_piece_ *)self->user;
    const cg_rate_grid_ *grid = &p->rate->grid;
    float buf[CG_RATE_STEP_];
    for (size_t i = 0, sub; i < many; i += sub) {
        const float *v;
        sub = cg_min_(CG_RATE_STEP_, many - i);
        v = cg_source_fetch_(p->rate->e->src, p->begin + first + i, sub, buf);
        CG_KERNEL_(p->rate->e->kernels,
            rate_encode(grid, p->key, (uint32_t)(first + i), v, sub, (uint8_t *)(void *)(out + i)));
        if (p->counted == first + i && !grid->stochastic) {
            cg_rate_count_(grid, v, out + i, sub, &p->counts);
            p->counted += sub;
        }
    }
}
static cg_rate_piece_ cg_rate_piece_of_(const cg_rate_ *rate, size_t piece) {
    cg_rate_piece_ p;
    p.rate = rate;
    p.begin = piece * CG_RANS_PIECE_;
    p.n = cg_min_(CG_RANS_PIECE_, (size_t)rate->e->lay->k - p.begin);
    p.key = cg_block_key_(rate->e->key, piece);
    p.key.shift = rate->e->noise_shift;
    memset(&p.counts, 0, sizeof p.counts);
    p.counted = SIZE_MAX;
    return p;
}
CG_NOINLINE_ void cg_rate_plan_piece_(const cg_rate_ *rate, size_t piece) {
    cg_fenv_ env = cg_fenv_enter_thread_();
    cg_rate_piece_ p = cg_rate_piece_of_(rate, piece);
    cg_rans_levels_ levels;
    cg_rans_counts_ c;
    cg_rans_list_ list;
    levels.make = cg_rate_make_;
    levels.user = &p;
    cg_rans_plan_make_(&levels, p.n, 16, &c, &list, &rate->plans[piece]);
    cg_fenv_leave_thread_(env);
}
/* Plans all pieces with a step; returns the bytes of their codes. */
CG_NOINLINE_ uint64_t cg_rate_plan_(cg_rate_ *rate, float step) {
    const size_t pieces = (size_t)cg_rans_pieces_(rate->e->lay->k);
    uint64_t bytes = 0;
    rate->grid.step = step;
    rate->grid.inv = 1.0f / step;
    for (size_t piece = 0; piece < pieces; piece += CG_WAVE_) {
        const int many = cg_wave_size_(pieces - piece);
        CG_PARALLEL_
        for (int i = 0; i < many; i++) cg_rate_plan_piece_(rate, piece + (size_t)i);
        for (int i = 0; i < many; i++) bytes += rate->plans[piece + (size_t)i].bytes;
    }
    return bytes;
}
/* Writes a piece to out, which has room for cap bytes; returns how many it has, or SIZE_MAX if it does not fit. */
CG_NOINLINE_ size_t cg_rate_put_piece_(
    const cg_rate_ *rate, size_t piece, uint8_t *out, size_t cap, cg_rate_counts_ *counts) {
    cg_fenv_ env = cg_fenv_enter_thread_();
    cg_rate_piece_ p = cg_rate_piece_of_(rate, piece);
    const cg_rans_plan_ *plan = &rate->plans[piece];
    cg_rans_levels_ levels;
    cg_rans_list_ list;
    size_t bytes;
    levels.make = cg_rate_make_;
    levels.user = &p;
    p.counted = 0;
    list.count = 0;
    if (plan->nonzero && plan->form <= CG_RANS_SPARSE_) cg_rans_list_make_(&levels, p.n, &list);
    bytes = cg_rans_put_(plan, &levels, &list, p.n, 16, out, cap);
    if (bytes == SIZE_MAX) bytes = cg_rans_plain_put_(&levels, p.n, 16, out, cap);
    *counts = p.counts;
    cg_fenv_leave_thread_(env);
    return bytes;
}
/* Writes all pieces as planned, each into a room of as many bytes as were planned, or as any piece has if the code may
   be as long as that, and then close together. Returns their end; NULL: one did not fit its room. */
CG_NOINLINE_ uint8_t *cg_rate_put_(const cg_rate_ *rate, int any_length, cg_rate_counts_ *all) {
    const cg_layout_ *lay = rate->e->lay;
    const size_t pieces = (size_t)cg_rans_pieces_(lay->k);
    uint8_t *end = rate->e->codes, *room[CG_WAVE_ + 1];
    size_t bytes[CG_WAVE_];
    cg_rate_counts_ counts[CG_WAVE_];
    memset(all, 0, sizeof *all);
    room[0] = end;
    for (size_t piece = 0; piece < pieces; piece += CG_WAVE_) {
        const int many = cg_wave_size_(pieces - piece);
        for (int i = 0; i < many; i++)
            room[i + 1] = room[i] +
                (any_length ? (size_t)cg_rans_codes_bound_(
                                  cg_min_(CG_RANS_PIECE_, (size_t)lay->k - (piece + (size_t)i) * CG_RANS_PIECE_), 16)
                            : rate->plans[piece + (size_t)i].bytes);
        CG_PARALLEL_
        for (int i = 0; i < many; i++)
            bytes[i] = cg_rate_put_piece_(
                rate, piece + (size_t)i, room[i], (size_t)(room[i + 1] - room[i]), &counts[i]);
        for (int i = 0; i < many; i++) {
            if (bytes[i] == SIZE_MAX) return NULL;
            cg_rate_counts_add_(all, &counts[i]);
            if (end != room[i]) memmove(end, room[i], bytes[i]);
            cg_put16_(rate->e->table + 2 * (piece + (size_t)i), (uint32_t)(bytes[i] / 4));
            end += bytes[i];
        }
        room[0] = room[many];
    }
    return end;
}

/* The largest magnitude of all values as bits. above[i]: how many of them, or of those in every 16th chunk of many
   values, have at least the bits i << 20 after they were multiplied by lift. */
CG_NOINLINE_ uint32_t cg_rate_histogram_(const cg_encoder_ *e, int all, float lift, uint32_t *above) {
    const size_t k = (size_t)e->lay->k, apart = k <= 8 * CG_BLOCK_ || all ? 1 : 16;
    uint32_t absmax_bits = 0;
    float buf[CG_CHUNK_];
    memset(above, 0, (CG_RATE_BINS_ + 1) * sizeof *above);
    for (size_t first = 0, chunk = 0, many; first < k; first += many, chunk++) {
        const float *v;
        many = cg_min_(CG_CHUNK_, k - first);
        v = cg_source_fetch_(e->src, first, many, buf);
        absmax_bits = cg_max32_(absmax_bits, CG_KERNEL_(e->kernels, absmax_bits(v, many)));
        if (chunk % apart == 0)
            for (size_t i = 0; i < many; i++)
                above[(cg_as_bits_(cg_times_(cg_load_(v, i), lift)) & CG_ABS_MASK_) >> 20]++;
    }
    for (unsigned i = CG_RATE_BINS_; i-- > 0;) above[i] += above[i + 1];
    return absmax_bits;
}
/* How many values of a histogram are above `level` steps, about. */
static uint32_t cg_rate_above_(const cg_rate_grid_ *g, const uint32_t *above, float level) {
    const uint32_t u = cg_as_bits_(cg_times_(level, g->step)), i = u >> 20;
    if (u >= CG_INF_BITS_) return 0;
    return above[i] - (uint32_t)((uint64_t)(above[i] - above[i + 1]) * (u & 0xfffffu) >> 20);
}
/* About how many 65536ths of a bit the values of a histogram cost with a grid. */
static uint64_t cg_rate_model_(const cg_rate_grid_ *g, const uint32_t *above) {
    uint32_t token[CG_RANS_MOST_], before = above[0];
    uint64_t cost;
    for (unsigned t = 0; t < CG_RANS_MOST_; t++) {
        const uint32_t next = t + 1 < CG_RANS_MOST_ ? cg_rans_base_(t + 1, CG_RANS_MAGNITUDES_) : 65536;
        uint32_t n = cg_rate_above_(g, above, (float)(int32_t)next - (g->stochastic ? 0.5f : g->dead));
        if (g->stochastic && !t) { /* below a step by chance */
            const float inv = 1.0f / g->step;
            uint64_t sum = 0; /* of |v|/step, in 2^-24ths */
            n = cg_rate_above_(g, above, 1.0f);
            for (uint32_t i = 0; i < CG_RATE_BINS_ && above[i] > n; i++) {
                const uint32_t in = above[i] - cg_max32_(above[i + 1], n);
                const float part = cg_times_(cg_as_float_(i << 20 | 0x80000u), inv);
                if (i && in) sum += (uint64_t)in * (uint32_t)cg_times_(part < 1.0f ? part : 1.0f, 16777216.0f);
            }
            n += (uint32_t)(sum >> 24);
        }
        n = n < before ? n : before;
        token[t] = before - n;
        before = n;
    }
    cost = cg_rans_entropy_(token, CG_RANS_MOST_);
    for (unsigned i = 1; i < CG_RANS_MOST_; i++)
        cost += (uint64_t)token[i] * (1 + cg_rans_extra_(i, CG_RANS_MAGNITUDES_)) * CG_RANS_BIT_;
    return cost;
}
/* Where the model says so many 65536ths, between two steps: as bits. */
static uint32_t cg_rate_guess_(cg_rate_grid_ g, const uint32_t *above, uint32_t low, uint32_t high, uint64_t cost) {
    while (high - low > 1u << 13) {
        const uint32_t mid = low + (high - low) / 2;
        g.step = cg_as_float_(mid);
        if (cg_rate_model_(&g, above) > cost) low = mid;
        else high = mid;
    }
    return high;
}
/* The dead zone for so many bits per value. */
static float cg_rate_dead_(float bits) {
    return bits < 0.75f ? 0.25f : bits < 1.5f ? 0.3f : bits < 3.0f ? 0.35f : bits < 6.0f ? 0.45f : 0.48f;
}
/* The least magnitude but 0, as bits, if it may be the largest one, too; else 0. */
CG_NOINLINE_ uint32_t cg_rate_least_bits_(
    const cg_encoder_ *e, const uint32_t *above, float lift, uint32_t absmax_bits) {
    const size_t k = (size_t)e->lay->k;
    float buf[CG_CHUNK_];
    if (above[1] != above[cg_as_bits_(cg_times_(cg_as_float_(absmax_bits), lift)) >> 20])
        return 0; /* others were seen */
    for (size_t first = 0, many; first < k; first += many) {
        const float *v;
        many = cg_min_(CG_CHUNK_, k - first);
        v = cg_source_fetch_(e->src, first, many, buf);
        for (size_t i = 0; i < many; i++) {
            const uint32_t m = cg_load_bits_(v, i) & CG_ABS_MASK_;
            if (m && m != absmax_bits) return 0;
        }
    }
    return absmax_bits;
}
/* Searches the step of a section of at most `most` bytes, and hardly fewer if a step has that; plans all pieces. */
CG_NOINLINE_ void cg_rate_search_(cg_rate_ *rate, const uint32_t *above, uint32_t absmax_bits, uint64_t most) {
    const uint64_t k = rate->e->lay->k, sampled = above[0],
                   frame = rate->e->lay->scale_bytes + rate->e->lay->piece_table_bytes,
                   room = most > frame ? most - frame : 0, slack = most / 40 + (k / 2667 < 16 ? k / 2667 : 16),
                   enough = room > slack ? room - slack : 0;
    const float absmax = cg_times_(cg_as_float_(absmax_bits), rate->grid.lift);
    const uint32_t least = cg_as_bits_(absmax / 32766.0f) + 1; /* no value is beyond the levels from here on */
    /* steps as bits: with low there are too many bytes, or it is least - 1; with high there are not, or it is most */
    uint32_t low = least - 1, at, apart = 1u << 17,
             high = rate->grid.stochastic ? cg_as_bits_(absmax) + (40u << 23) : cg_as_bits_(cg_times_(absmax, 4.0f));
    uint64_t bytes = 0, ratio = 1024; /* ratio: what the model says over what it is, in 1024ths */
    rate->grid.keep = UINT32_MAX;
    if (absmax_bits ==
        cg_rate_least_bits_(rate->e, above, rate->grid.lift, absmax_bits)) { /* one magnitude, and perhaps zeros */
        if (cg_rate_plan_(rate, absmax) <= room) return;
    }
    for (unsigned attempt = 0; attempt < 48; attempt++) {
        const uint64_t bits = (room + enough) * 4 * ratio / 1024;
        at = cg_rate_guess_(rate->grid, above, low, high, (bits * CG_RANS_BIT_ / k + 1) * sampled);
        if (attempt > 12) at = low + (high - low) / 2;
        else if (at <= low + (1u << 13) && low < least) at = least;
        else if (at >= high || at <= low + (1u << 13)) { /* out of what is known: a little into it, then further */
            const uint32_t inside = high - low > 2 * apart ? apart : (high - low) / 2;
            at = at >= high ? high - inside : low + inside;
            if (apart < 1u << 26) apart *= 4;
        }
        if (high - low <= 1u << 11) at = least; /* only while low is below it */
        bytes = cg_rate_plan_(rate, cg_as_float_(at));
        if (bytes <= room && (bytes >= enough || at == least)) return; /* or these values have no more bits */
        if (bytes > room) low = at;
        else high = at;
        if (high - low <= 1u << 11 && low >= least) break;
        if (bytes) ratio = cg_rate_model_(&rate->grid, above) / sampled * k / (512 * bytes);
        ratio = ratio < 64 ? 64 : ratio > 65536 ? 65536 : ratio;
    }
    if (!rate->grid.stochastic && low >= least) {
        /* a step that is a little larger makes many levels of 1 zeros at once: of those some are kept */
        uint32_t keep = 0;
        for (uint32_t bit = 1u << 31; bit >= 1u << 20; bit >>= 1) {
            rate->grid.keep = keep | bit;
            bytes = cg_rate_plan_(rate, cg_as_float_(low));
            if (bytes <= room) keep |= bit;
            if (bytes <= room && bytes >= enough) return;
        }
        rate->grid.keep = keep;
        if (keep && cg_rate_plan_(rate, cg_as_float_(low)) <= room) return;
        rate->grid.keep = UINT32_MAX;
    }
    (void)cg_rate_plan_(rate, cg_as_float_(high));
}
/* The sum of the squares of all values over their number, in the order of sums of this library. */
CG_NOINLINE_ double cg_rate_mean_square_(const cg_encoder_ *e) {
    const size_t k = (size_t)e->lay->k;
    double all = 0.0;
    float buf[CG_CHUNK_];
    for (size_t block = 0; block < k; block += CG_BLOCK_) {
        double sum = 0.0;
        for (size_t i = block, many; i < cg_min_(k, block + CG_BLOCK_); i += many) {
            many = cg_min_(CG_CHUNK_, k - i);
            sum += cg_lane_sum_of_(e->kernels, cg_source_fetch_(e->src, i, many, buf), many, CG_SUM_SQUARES_);
        }
        all += sum;
    }
    return all / (double)k;
}
/* The step of `step:s`: s root mean squares, or as many as the largest level takes. */
static void cg_rate_fix_(cg_rate_ *rate, uint32_t absmax_bits) {
    const float s = rate->e->stage->value, absmax = cg_times_(cg_as_float_(absmax_bits), rate->grid.lift),
                least = cg_as_float_(cg_as_bits_(absmax / 32766.0f) + 1);
    double step = cg_times64_(cg_sqrt_(cg_rate_mean_square_(rate->e)), (double)s);
    step = cg_times64_(step, (double)rate->grid.lift);
    rate->grid.step = step > 1.0e37 ? 1.0e37f : (float)step;
    if (!(rate->grid.step > least)) rate->grid.step = least;
    rate->grid.dead = s >= 2.5f ? 0.25f : s >= 1.4f ? 0.3f : s >= 0.6f ? 0.35f : s >= 0.06f ? 0.45f : 0.48f;
    rate->grid.keep = UINT32_MAX;
}
/* The whole value section of a quantizer whose levels are entropy coded. scratch: cg_rans_scratch_ bytes. *sum becomes
   its checksum, *bytes its length. */
CG_NOINLINE_ cg_status cg_rate_encode_(const cg_encoder_ *e, uint8_t *scratch, cg_checksum_ *sum, size_t *bytes) {
    const cg_layout_ *lay = e->lay;
    const uint64_t promise = lay->quantizer->promise(e->stage, lay->k);
    uint32_t *above = (uint32_t *)(void *)scratch, absmax_bits;
    uint8_t *end = e->codes;
    cg_rate_counts_ counts;
    cg_rate_ rate;
    float scales[2];
    *bytes = 0;
    if (!lay->k) return CG_OK;
    if (e->src->producer) e->src->producer->started = 1;
    absmax_bits = cg_rate_histogram_(e, 0, 1.0f, above);
    if (absmax_bits >= CG_INF_BITS_) return CG_E_NONFINITE;
    memset(e->scales, 0, (size_t)(lay->scale_bytes + lay->piece_table_bytes));
    rate.e = e;
    rate.plans = (cg_rans_plan_ *)(void *)(scratch + CG_RATE_ABOVE_BYTES_);
    rate.grid.lift = absmax_bits < 0x17800000u ? CG_POW2_100_       /* 2^-80 */
        : absmax_bits >= 0x67800000u           ? CG_POW2_MINUS_100_ /* 2^80 */
                                               : 1.0f;
    rate.grid.stochastic = (e->stage->flags & CG_FLAG_UNBIASED) != 0;
    rate.grid.dead = cg_rate_dead_(e->stage->value);
    rate.grid.step = rate.grid.inv = 0.0f;
    rate.grid.keep = UINT32_MAX;
    memset(&counts, 0, sizeof counts);
    if (absmax_bits && !promise) {
        cg_rate_fix_(&rate, absmax_bits);
        (void)cg_rate_plan_(&rate, rate.grid.step);
        end = cg_rate_put_(&rate, 1, &counts);
    } else if (absmax_bits) {
        uint64_t most = promise;
        /* all that was seen is 0, or nearly; or magnitudes are not those of the search */
        if (!above[1] || rate.grid.lift != 1.0f) (void)cg_rate_histogram_(e, !above[1], rate.grid.lift, above);
        do {
            cg_rate_search_(&rate, above, absmax_bits, most);
            end = cg_rate_put_(&rate, 0, &counts);
            most -= most / 256; /* if a piece was longer than planned */
        } while (!end && most > lay->k / 2048 + CG_RATE_LEAST_);
    }
    if (!end) return CG_E_CAPACITY;
    cg_rate_scales_(&rate.grid, &counts, scales);
    cg_scales_put_(e, 0, scales);
    *bytes = (size_t)(end - e->scales);
    *sum = cg_checksum_of_(e->kernels, e->scales, *bytes);
    return CG_OK;
}
