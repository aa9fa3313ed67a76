/* rans_put: a planned piece of levels is written

   Offers   cg_rans_put_, cg_rans_plain_put_
   Needs    base, bits, rans, rans_plan
   Touches  nothing but its arguments
   The string of bits is written forwards; then the levels are coded from the last to the first, and their words follow
   upwards, so that the reader finds them downwards from the end. */

typedef struct cg_rans_words_ {
    uint8_t *at, *end;
    int is_full; /* a word did not fit */
} cg_rans_words_;
CG_INLINE_ void cg_rans_word_put_(cg_rans_words_ *w, uint32_t word) {
    if (CG_LIKELY_(w->end - w->at >= 2)) {
        cg_put16_(w->at, word);
        w->at += 2;
    } else w->is_full = 1;
}
static void cg_rans_state_put_(cg_rans_words_ *w, uint32_t state) {
    cg_rans_word_put_(w, state);
    cg_rans_word_put_(w, state >> 16);
}
/* How a symbol is put. */
typedef struct cg_rans_step_ {
    uint64_t inv; /* 2^42/freq, rounded up: x*inv >> 42 is x/freq for all x < freq << 22 */
    uint32_t freq, first;
} cg_rans_step_;
CG_INLINE_ uint32_t cg_rans_put_into_(uint32_t x, const cg_rans_step_ *s) {
    const uint32_t q = (uint32_t)(x * s->inv >> 42);
    return (q << 10) + (x - q * s->freq) + s->first;
}
CG_INLINE_ void cg_rans_symbol_put_(cg_rans_words_ *w, uint32_t *state, const cg_rans_step_ *s) {
    uint32_t x = *state;
    if (x >> 22 >= s->freq) {
        cg_rans_word_put_(w, x);
        x >>= 16;
    }
    *state = cg_rans_put_into_(x, s);
}
static void cg_rans_gamma_put_(cg_bitstream_ *b, uint32_t v) {
    const unsigned zeros = cg_log2_(v);
    cg_bitstream_put_(b, ((uint64_t)(v - (1u << zeros)) << 1 | 1u) << zeros, 2 * zeros + 1);
}
static void cg_rans_freq_put_(cg_bitstream_ *b, uint32_t f) {
    const unsigned length = f ? cg_log2_(f) + 1 : 0;
    cg_bitstream_put_(b, length, 4);
    if (length > 1) cg_bitstream_put_(b, f - (1u << (length - 1)), length - 1);
}
static void cg_rans_table_put_(cg_bitstream_ *b, const cg_rans_code_ *code) {
    cg_bitstream_put_(b, code->symbols - 1u, 6);
    cg_bitstream_put_(b, code->escapes, 1);
    for (unsigned s = 0; s + 1 < code->symbols; s++) cg_rans_freq_put_(b, code->freq[s]);
}
/* The extra bits of a number. */
CG_INLINE_ void cg_rans_extra_put_(
    cg_bitstream_ *b, const cg_rans_code_ *code, uint32_t v, unsigned token, unsigned direct) {
    if (code->escapes && token + 1u >= code->symbols)
        cg_rans_gamma_put_(b, v - cg_rans_base_(code->symbols - 1u, direct) + 1);
    else {
        const unsigned extra = cg_rans_extra_(token, direct);
        if (extra) cg_bitstream_put_(b, v - cg_rans_base_(token, direct), extra);
    }
}
static void cg_rans_steps_(const uint16_t *freq, unsigned symbols, cg_rans_step_ *step) {
    unsigned sum = 0;
    for (unsigned s = 0; s < symbols; s++) {
        const uint64_t f = freq[s] ? freq[s] : 1;
        step[s].inv = (((uint64_t)1 << 42) + f - 1) / f;
        step[s].freq = freq[s];
        step[s].first = sum;
        sum += freq[s];
    }
}
/* The same of a table, for each token. */
static void cg_rans_token_steps_(const cg_rans_code_ *code, cg_rans_step_ *step) {
    cg_rans_steps_(code->freq, code->symbols, step);
    for (unsigned t = code->symbols; t < CG_RANS_TOKENS_; t++) step[t] = step[code->symbols - 1];
}
static uint32_t cg_rans_magnitude_(int16_t level) { return (uint32_t)(level < 0 ? -(int32_t)level : (int32_t)level); }

static void cg_rans_rice_put_(cg_bitstream_ *b, const cg_rans_plan_ *plan, const cg_rans_list_ *list) {
    cg_bitstream_put_(b, (uint64_t)plan->k << 2 | CG_RANS_RICE_, 6);
    cg_bitstream_put_(b, plan->gamma, 1);
    cg_bitstream_put_(b, list->count, 13);
    for (uint32_t i = 0; i < list->count; i++) {
        const uint32_t zeros = list->zeros[i], q = zeros >> plan->k, m = cg_rans_magnitude_(list->level[i]);
        if (q < 16) {
            cg_bitstream_put_(b, (uint64_t)1 << q, q + 1);
            cg_bitstream_put_(b, zeros & ((1u << plan->k) - 1), plan->k);
        } else cg_bitstream_put_(b, (uint64_t)zeros << 16, 32);
        cg_bitstream_put_(b, list->level[i] < 0, 1);
        if (plan->gamma) cg_rans_gamma_put_(b, m);
        else if (m < 16) cg_bitstream_put_(b, (uint64_t)1 << (m - 1), m);
        else {
            cg_bitstream_put_(b, 0, 15);
            cg_rans_gamma_put_(b, m - 15);
        }
    }
}
/* The context of a number of zeros or a magnitude. */
CG_INLINE_ unsigned cg_rans_plan_context_(const cg_rans_plan_ *plan, unsigned contexts, unsigned a) {
    return contexts < 2 ? 0 : (unsigned)(a >= plan->limit[0]) + (unsigned)(a >= plan->limit[1]);
}
/* Bits of a sparse piece; table[i] becomes the two tables of level i, 4 bits each. */
CG_NOINLINE_ void cg_rans_sparse_bits_(
    cg_bitstream_ *b, const cg_rans_plan_ *plan, const cg_rans_list_ *list, uint8_t *table) {
    unsigned a = 0;
    cg_bitstream_put_(b, list->count - 1u, 12);
    if (plan->zero_contexts + plan->magnitude_contexts > 2) {
        cg_bitstream_put_(b, plan->limit[0], 7);
        cg_bitstream_put_(b, plan->limit[1], 7);
    }
    for (unsigned i = 0; i < (unsigned)plan->zero_contexts + plan->magnitude_contexts; i++)
        cg_rans_table_put_(b, &plan->table[i]);
    for (uint32_t i = 0; i < list->count; i++) {
        const uint32_t zeros = list->zeros[i], m = cg_rans_magnitude_(list->level[i]) - 1;
        const unsigned token = cg_rans_token_(zeros, CG_RANS_ZEROS_),
                       of_zeros = cg_rans_plan_context_(plan, plan->zero_contexts, a);
        unsigned of_magnitude;
        cg_rans_extra_put_(b, &plan->table[of_zeros], zeros, token, CG_RANS_ZEROS_);
        a += token - a / 4;
        of_magnitude = plan->zero_contexts + cg_rans_plan_context_(plan, plan->magnitude_contexts, a);
        if (!plan->signs) cg_bitstream_put_(b, list->level[i] < 0, 1);
        cg_rans_extra_put_(
            b, &plan->table[of_magnitude], m, cg_rans_token_(m, CG_RANS_MAGNITUDES_), CG_RANS_MAGNITUDES_);
        table[i] = (uint8_t)(of_zeros | of_magnitude << 4);
    }
}
CG_NOINLINE_ void cg_rans_sparse_words_(
    cg_rans_words_ *w, const cg_rans_plan_ *plan, const cg_rans_list_ *list, const uint8_t *table, uint32_t *state) {
    cg_rans_step_ step[CG_RANS_TABLES_][CG_RANS_TOKENS_];
    const unsigned lane_mask = plan->lanes - 1u;
    for (unsigned t = 0; t < (unsigned)plan->zero_contexts + plan->magnitude_contexts; t++)
        cg_rans_token_steps_(&plan->table[t], step[t]);
    for (uint32_t i = list->count; i-- > 0;) {
        const unsigned m = cg_rans_token_(cg_rans_magnitude_(list->level[i]) - 1, CG_RANS_MAGNITUDES_),
                       zeros = cg_rans_token_(list->zeros[i], CG_RANS_ZEROS_);
        cg_rans_symbol_put_(w, &state[(2 * i + 1) & lane_mask], &step[table[i] >> 4][m]);
        cg_rans_symbol_put_(w, &state[2 * i & lane_mask], &step[table[i] & 15][zeros]);
    }
}
/* Bits of a dense piece; class_of becomes the classes of its blocks. */
CG_NOINLINE_ void cg_rans_dense_bits_(
    cg_bitstream_ *b, const cg_rans_plan_ *plan, const cg_rans_levels_ *levels, size_t n, uint8_t *class_of) {
    int16_t v[CG_CHUNK_];
    for (unsigned t = 0; t < plan->tables; t++) cg_rans_table_put_(b, &plan->table[t]);
    if (plan->tables > 1) {
        cg_bitstream_put_(b, plan->classes > 1, 1);
        for (unsigned t = 0; t < plan->classes; t++)
            for (unsigned s = 0; s + 1 < plan->tables; s++) cg_rans_freq_put_(b, plan->class_freq[t][s]);
    }
    for (size_t first = 0, many; first < n; first += many) {
        many = cg_min_(CG_CHUNK_, n - first);
        levels->make(levels, first, many, v);
        for (size_t block = 0, in_block; block < many; block += in_block) {
            const int16_t *at = v + block;
            const cg_rans_code_ *code;
            const unsigned t =
                plan->table_of[cg_rans_sum_class_(cg_rans_sum_(at, in_block = cg_min_(CG_RANS_BLOCK_, many - block)))];
            uint64_t signs = 0;
            unsigned nonzero = 0;
            uint32_t most = 0;
            class_of[(first + block) / CG_RANS_BLOCK_] = (uint8_t)t;
            code = &plan->table[t];
            for (size_t i = 0; i < in_block; i++) {
                const uint32_t m = cg_rans_magnitude_(at[i]);
                signs |= (uint64_t)(at[i] < 0) << nonzero;
                nonzero += m != 0;
                most = m > most ? m : most;
            }
            if (!plan->signs && nonzero) cg_bitstream_put_(b, signs & 0xffffffffu, nonzero < 32 ? nonzero : 32);
            if (!plan->signs && nonzero > 32) cg_bitstream_put_(b, signs >> 32, nonzero - 32);
            if (most < 1u << CG_RANS_MAGNITUDES_ && !(code->escapes && most + 1 >= code->symbols)) continue;
            for (size_t i = 0; i < in_block; i++) {
                const uint32_t m = cg_rans_magnitude_(at[i]);
                if (m) cg_rans_extra_put_(b, code, m, cg_rans_token_(m, CG_RANS_MAGNITUDES_), CG_RANS_MAGNITUDES_);
            }
        }
    }
}
/* The levels of a block, where there is room for all words that they can take and one more; returns where they end. */
CG_INLINE_ uint8_t *cg_rans_block_put_(
    uint8_t *at, uint32_t *state, const cg_rans_step_ *step, const int16_t *v, size_t n, unsigned lane_mask) {
    for (size_t i = n; i-- > 0;) {
        const cg_rans_step_ *s = &step[cg_rans_token_(cg_rans_magnitude_(v[i]), CG_RANS_MAGNITUDES_)];
        const uint32_t x = state[i & lane_mask], full = x >> 22 >= s->freq;
        cg_put16_(at, x);
        at += 2 * full;
        state[i & lane_mask] = cg_rans_put_into_(x >> 16 * full, s);
    }
    return at;
}
CG_NOINLINE_ void cg_rans_dense_words_(cg_rans_words_ *w, const cg_rans_plan_ *plan, const cg_rans_levels_ *levels,
    size_t n, const uint8_t *class_of, uint32_t *states, uint32_t *class_state) {
    cg_rans_step_ step[CG_RANS_TABLES_][CG_RANS_TOKENS_], class_step[CG_RANS_TABLES_][CG_RANS_TABLES_];
    int16_t v[CG_CHUNK_];
    uint32_t state[CG_RANS_LANES_];
    const unsigned lane_mask = plan->lanes - 1u;
    memcpy(state, states, sizeof state);
    for (unsigned t = 0; t < plan->tables; t++) cg_rans_token_steps_(&plan->table[t], step[t]);
    for (unsigned t = 0; plan->tables > 1 && t < plan->classes; t++)
        cg_rans_steps_(plan->class_freq[t], plan->tables, class_step[t]);
    for (size_t chunk = (n + CG_CHUNK_ - 1) / CG_CHUNK_; chunk-- > 0;) {
        const size_t begin = chunk * CG_CHUNK_, many = cg_min_(CG_CHUNK_, n - begin);
        levels->make(levels, begin, many, v);
        for (size_t block = (many + CG_RANS_BLOCK_ - 1) / CG_RANS_BLOCK_; block-- > 0;) {
            const size_t at = begin / CG_RANS_BLOCK_ + block, in_block = cg_min_(CG_RANS_BLOCK_, many - 64 * block);
            const unsigned t = class_of[at];
            const int16_t *level = v + 64 * block;
            if (plan->table[t].symbols > 1) {
                if (w->end - w->at < 2 * CG_RANS_BLOCK_ + 2)
                    for (size_t i = in_block; i-- > 0;)
                        cg_rans_symbol_put_(w, &state[i & lane_mask],
                            &step[t][cg_rans_token_(cg_rans_magnitude_(level[i]), CG_RANS_MAGNITUDES_)]);
                else if (lane_mask == 15) w->at = cg_rans_block_put_(w->at, state, step[t], level, in_block, 15);
                else w->at = cg_rans_block_put_(w->at, state, step[t], level, in_block, lane_mask);
            }
            if (plan->tables > 1) {
                const unsigned before = plan->classes > 1 && at ? class_of[at - 1] : 0;
                cg_rans_symbol_put_(w, class_state, &class_step[before][t]);
            }
        }
    }
    memcpy(states, state, sizeof state);
}
/* The same without a plan. */
static size_t cg_rans_plain_put_(const cg_rans_levels_ *levels, size_t n, unsigned width, uint8_t *out, size_t cap) {
    const size_t bytes = 4 + (size_t)cg_word_bytes_((uint64_t)n * width);
    int16_t v[CG_CHUNK_];
    cg_bitstream_ b;
    if (bytes > cap) return SIZE_MAX;
    memset(out + bytes - 4, 0, 4);
    cg_put32_(out, CG_RANS_PLAIN_);
    b = cg_bitstream_open_(out + 4, out + bytes);
    for (size_t first = 0, many; first < n; first += many) {
        many = cg_min_(CG_CHUNK_, n - first);
        levels->make(levels, first, many, v);
        for (size_t i = 0; i < many; i++)
            cg_bitstream_put_(&b, (uint64_t)(uint16_t)v[i] & (((uint64_t)1 << width) - 1), width);
    }
    return bytes;
}
/* Writes n levels as planned, list being what cg_rans_plan_make_ has made of them; returns the bytes, a multiple of 4,
   or SIZE_MAX if they are more than cap. What follows the piece up to cap may be scribbled on. */
CG_NOINLINE_ size_t cg_rans_put_(const cg_rans_plan_ *plan, const cg_rans_levels_ *levels, const cg_rans_list_ *list,
    size_t n, unsigned width, uint8_t *out, size_t cap) {
    uint8_t work[CG_RANS_LIST_]; /* tables of levels, or classes of blocks */
    uint32_t state[CG_RANS_LANES_], class_state = CG_RANS_LOW_;
    cg_bitstream_ b = cg_bitstream_open_(out, out + cap);
    cg_rans_words_ w;
    size_t bytes;
    if (!plan->nonzero) return 0;
    if (plan->form == CG_RANS_PLAIN_) return cg_rans_plain_put_(levels, n, width, out, cap);
    if (plan->form == CG_RANS_RICE_) {
        cg_rans_rice_put_(&b, plan, list);
        bytes = (size_t)(b.next - out) + (b.filled != 0);
        if (bytes > cap) return SIZE_MAX;
        for (; bytes % 4; bytes++) {
            if (bytes == cap) return SIZE_MAX;
            out[bytes] = 0;
        }
        return bytes;
    }
    cg_bitstream_put_(&b, plan->form | (plan->lanes == 16 ? 2u : plan->lanes == 4 ? 1u : 0u) << 2, 5);
    cg_bitstream_put_(&b, plan->signs, 2);
    for (unsigned i = 0; i < plan->lanes; i++) state[i] = CG_RANS_LOW_;
    if (plan->form == CG_RANS_SPARSE_) {
        cg_bitstream_put_(&b, plan->zero_contexts > 1, 1);
        cg_bitstream_put_(&b, plan->magnitude_contexts > 1, 1);
        cg_rans_sparse_bits_(&b, plan, list, work);
    } else {
        cg_bitstream_put_(&b, plan->tables - 1u, 3);
        cg_rans_dense_bits_(&b, plan, levels, n, work);
    }
    bytes = (size_t)(b.next - out) + (b.filled != 0);
    if (bytes > cap) return SIZE_MAX;
    w.at = out + bytes;
    w.end = out + cap;
    w.is_full = 0;
    if (bytes % 2) {
        if (w.at == w.end) return SIZE_MAX;
        *w.at++ = 0;
    }
    if (plan->form == CG_RANS_SPARSE_) cg_rans_sparse_words_(&w, plan, list, work, state);
    else cg_rans_dense_words_(&w, plan, levels, n, work, state, &class_state);
    for (unsigned i = plan->lanes; i-- > 0;) cg_rans_state_put_(&w, state[i]);
    if (plan->form == CG_RANS_DENSE_ && plan->tables > 1) cg_rans_state_put_(&w, class_state);
    if ((size_t)(w.at - out) % 4) {
        out[0] = (uint8_t)(out[0] | 16u);
        cg_rans_word_put_(&w, 0);
    }
    return w.is_full ? SIZE_MAX : (size_t)(w.at - out);
}
