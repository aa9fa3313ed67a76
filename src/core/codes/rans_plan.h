/* rans_plan: how a piece of levels is going to be written, chosen by what each form would cost

   Offers   cg_rans_levels_, cg_rans_plan_, cg_rans_plan_make_, cg_rans_list_make_
   Needs    base, bits, rans
   Touches  nothing but its arguments
   Costs are counted in 65536ths of a bit, in integers: every machine chooses the same. They are estimates, a little too
   large as a rule; cg_rans_put_ says how many bytes it has written. */

/* Makes levels [first, first + many) of a piece, many <= CG_CHUNK_, first a multiple of CG_CHUNK_. */
typedef struct cg_rans_levels_ {
    void (*make)(const struct cg_rans_levels_ *self, size_t first, size_t many, int16_t *out);
    void *user;
} cg_rans_levels_;

typedef struct cg_rans_code_ { /* a table as it is written */
    uint16_t freq[CG_RANS_TOKENS_];
    uint8_t symbols, escapes;
    uint32_t word_bits; /* what its symbols cost, without extra bits */
} cg_rans_code_;
typedef struct cg_rans_plan_ {
    uint32_t bytes; /* about how many, a multiple of 4; of a plain piece exactly */
    uint32_t nonzero;
    uint8_t form, lanes, signs, k, gamma; /* k and gamma: Rice */
    uint8_t zero_contexts, magnitude_contexts, limit[2];
    uint8_t tables, classes;
    uint8_t table_of[48]; /* the table of a class by sum, see cg_rans_sum_class_ */
    uint16_t class_freq[CG_RANS_TABLES_][CG_RANS_TABLES_];
    cg_rans_code_ table[CG_RANS_TABLES_];
} cg_rans_plan_;
/* The levels of a piece that are not zero, if they are at most CG_RANS_LIST_. */
typedef struct cg_rans_list_ {
    uint32_t count;
    uint16_t zeros[CG_RANS_LIST_]; /* before each */
    int16_t level[CG_RANS_LIST_];
} cg_rans_list_;

#define CG_RANS_BIT_ 65536u
/* log2(v) * 65536, v > 0. */
static uint32_t cg_rans_log2_(uint32_t v) {
    /* log2(1 + i/128) * 65536 */
    static const uint32_t table[129] = { 0, 736, 1466, 2190, 2909, 3623, 4331, 5034, 5732, 6425, 7112, 7795, 8473, 9146,
        9814, 10477, 11136, 11791, 12440, 13086, 13727, 14363, 14996, 15624, 16248, 16868, 17484, 18096, 18704, 19308,
        19909, 20505, 21098, 21687, 22272, 22854, 23433, 24007, 24579, 25146, 25711, 26272, 26830, 27384, 27936, 28484,
        29029, 29571, 30109, 30645, 31178, 31707, 32234, 32758, 33279, 33797, 34312, 34825, 35334, 35841, 36346, 36847,
        37346, 37842, 38336, 38827, 39316, 39802, 40286, 40767, 41246, 41722, 42196, 42667, 43137, 43603, 44068, 44530,
        44990, 45448, 45904, 46357, 46809, 47258, 47705, 48150, 48593, 49034, 49472, 49909, 50344, 50776, 51207, 51636,
        52063, 52488, 52911, 53332, 53751, 54169, 54584, 54998, 55410, 55820, 56229, 56635, 57040, 57443, 57845, 58245,
        58643, 59039, 59434, 59827, 60219, 60609, 60997, 61384, 61769, 62152, 62534, 62915, 63294, 63671, 64047, 64421,
        64794, 65166, 65536 };
    const unsigned e = cg_log2_(v);
    const uint32_t m = v << (31 - e), i = m >> 24 & 127u, part = m >> 8 & 0xffffu;
    return (e << 16) + table[i] + ((table[i + 1] - table[i]) * part >> 16);
}
/* What counts cost in their own frequencies: sum of c*log2(total/c). */
static uint64_t cg_rans_entropy_(const uint32_t *count, unsigned tokens) {
    uint64_t total = 0, bits = 0;
    for (unsigned i = 0; i < tokens; i++)
        if (count[i]) {
            total += count[i];
            bits += (uint64_t)count[i] * cg_rans_log2_(count[i]);
        }
    return total ? total * cg_rans_log2_((uint32_t)total) - bits : 0;
}
/* Bits of a gamma code. */
CG_INLINE_ unsigned cg_rans_gamma_bits_(uint32_t v) { return 2 * cg_log2_(v) + 1; }
CG_INLINE_ unsigned cg_rans_freq_bits_(uint32_t f) { return f ? 4 + cg_log2_(f) : 4; }
/* Frequencies of `symbols` counts, of which one at least is not 0; together they are CG_RANS_TOTAL_, and none is 0
   whose count is not. Returns the cost of the counts in them. */
static uint64_t cg_rans_normalize_(const uint32_t *count, unsigned symbols, uint16_t *freq) {
    uint64_t total = 0, cost = 0;
    uint32_t sum = 0;
    for (unsigned i = 0; i < symbols; i++) total += count[i];
    for (unsigned i = 0; i < symbols; i++) {
        uint64_t f = ((uint64_t)count[i] * (2 * CG_RANS_TOTAL_) + total) / (2 * total);
        f = count[i] && !f ? 1 : f;
        freq[i] = (uint16_t)f;
        sum += (uint32_t)f;
    }
    while (sum != CG_RANS_TOTAL_) { /* one more where that gains most, or one fewer where that costs least */
        const int more = sum < CG_RANS_TOTAL_;
        unsigned best = symbols;
        uint64_t of_best = 0, to_best = 1;
        for (unsigned i = 0; i < symbols; i++) {
            const uint64_t of = count[i], to = more ? 2u * freq[i] + 1u : 2u * freq[i] - 1u;
            if (!count[i] || (!more && freq[i] < 2)) continue;
            if (best == symbols || (more ? of * to_best > of_best * to : of * to_best < of_best * to)) {
                best = i;
                of_best = of;
                to_best = to;
            }
        }
        freq[best] = (uint16_t)(more ? freq[best] + 1u : freq[best] - 1u);
        sum = more ? sum + 1 : sum - 1;
    }
    for (unsigned i = 0; i < symbols; i++)
        if (count[i]) cost += (uint64_t)count[i] * (10 * CG_RANS_BIT_ - cg_rans_log2_(freq[i]));
    return cost;
}
/* The table of counts, of which one at least is not 0; may_escape: rare numbers may share a symbol. Returns what table,
   symbols and extra bits cost. */
static uint64_t cg_rans_code_make_(
    const uint32_t *count, unsigned tokens, unsigned direct, int may_escape, cg_rans_code_ *code) {
    uint32_t own[CG_RANS_TOKENS_];
    uint64_t total = 0, cost, rare = 0;
    unsigned symbols = tokens, last;
    while (!count[symbols - 1]) symbols--;
    for (unsigned i = 0; i < symbols; i++) {
        own[i] = count[i];
        total += count[i];
    }
    code->escapes = 0;
    for (last = symbols; may_escape && last > 1 && (rare + count[last - 1]) * CG_RANS_TOTAL_ < 2 * total; last--)
        rare += count[last - 1];
    cost = 0;
    if (last + 1 < symbols && rare) {
        const uint32_t base = cg_rans_base_(last, direct);
        code->escapes = 1;
        for (unsigned i = last; i < symbols; i++)
            cost += (uint64_t)count[i] * cg_rans_gamma_bits_(cg_rans_base_(i, direct) - base + 1);
        own[last] = (uint32_t)rare;
        symbols = last + 1;
    }
    for (unsigned i = 0; i < symbols - (unsigned)code->escapes; i++)
        cost += (uint64_t)count[i] * cg_rans_extra_(i, direct);
    code->symbols = (uint8_t)symbols;
    total = cg_rans_normalize_(own, symbols, code->freq);
    code->word_bits = (uint32_t)(total / CG_RANS_BIT_);
    cost = cost * CG_RANS_BIT_ + total + 7 * CG_RANS_BIT_;
    for (unsigned i = 0; i + 1 < symbols; i++) cost += cg_rans_freq_bits_(code->freq[i]) * CG_RANS_BIT_;
    return cost;
}
/* The class of a block by the sum of its magnitudes: two an octave. */
CG_INLINE_ unsigned cg_rans_sum_class_(uint32_t sum) {
    unsigned e;
    if (sum < 2) return sum;
    e = cg_log2_(sum);
    return 2 * e + (sum >> (e - 1) & 1u);
}
CG_INLINE_ uint32_t cg_rans_sum_(const int16_t *v, size_t n) {
    uint32_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        const int32_t level = v[i];
        sum += level < 0 ? (uint32_t)-level : (uint32_t)level;
    }
    return sum;
}

/* A bit for each of at most 64 levels: whether it is not zero. */
CG_INLINE_ uint64_t cg_rans_nonzero_(const int16_t *v, size_t n) {
    uint64_t bits = 0;
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        uint64_t w;
        memcpy(&w, v + i, 8);
        if (w)
            bits |= (uint64_t)((unsigned)(v[i] != 0) | (unsigned)(v[i + 1] != 0) << 1 | (unsigned)(v[i + 2] != 0) << 2 |
                        (unsigned)(v[i + 3] != 0) << 3)
                << i;
    }
    for (; i < n; i++) bits |= (uint64_t)(v[i] != 0) << i;
    return bits;
}

enum { CG_RANS_SUMS_ = 44, CG_RANS_MOST_ = 38 }; /* classes by sum; tokens of magnitudes */
/* What is counted of a piece. */
typedef struct cg_rans_counts_ {
    uint32_t token[CG_RANS_SUMS_][CG_RANS_MOST_]; /* magnitudes, by class */
    uint32_t blocks[CG_RANS_SUMS_];
    uint8_t sum_class[CG_RANS_PIECE_ / CG_RANS_BLOCK_]; /* of each block */
    uint32_t nonzero, negative;
} cg_rans_counts_;
/* Counts n levels, and lists those that are not zero if they are few. */
CG_NOINLINE_ void cg_rans_count_(const cg_rans_levels_ *levels, size_t n, cg_rans_counts_ *c, cg_rans_list_ *list) {
    int16_t v[CG_CHUNK_];
    size_t next = 0; /* after the last that is not zero */
    memset(c->token, 0, sizeof c->token);
    memset(c->blocks, 0, sizeof c->blocks);
    c->nonzero = c->negative = list->count = 0;
    for (size_t first = 0, many; first < n; first += many) {
        many = cg_min_(CG_CHUNK_, n - first);
        levels->make(levels, first, many, v);
        for (size_t b = 0, in_block; b < many; b += in_block) {
            uint32_t sum, *token;
            uint64_t some; /* which are not zero */
            unsigned sum_class;
            in_block = cg_min_(CG_RANS_BLOCK_, many - b);
            some = cg_rans_nonzero_(v + b, in_block);
            sum = some ? cg_rans_sum_(v + b, in_block) : 0;
            sum_class = cg_rans_sum_class_(sum);
            c->sum_class[(first + b) / CG_RANS_BLOCK_] = (uint8_t)sum_class;
            c->blocks[sum_class]++;
            token = c->token[sum_class];
            token[0] += (uint32_t)in_block - cg_popcount_(some);
            for (; some; some &= some - 1) {
                const size_t i = b + cg_ctz_(some);
                const int32_t level = v[i];
                token[cg_rans_token_((uint32_t)(level < 0 ? -level : level), CG_RANS_MAGNITUDES_)]++;
                c->negative += level < 0;
                if (c->nonzero++ < CG_RANS_LIST_) {
                    list->zeros[list->count] = (uint16_t)(first + i - next);
                    list->level[list->count++] = v[i];
                    next = first + i + 1;
                }
            }
        }
    }
}
/* Lists the levels that are not zero; there are at most CG_RANS_LIST_. */
CG_NOINLINE_ void cg_rans_list_make_(const cg_rans_levels_ *levels, size_t n, cg_rans_list_ *list) {
    int16_t v[CG_CHUNK_];
    size_t next = 0;
    list->count = 0;
    for (size_t first = 0, many; first < n; first += many) {
        many = cg_min_(CG_CHUNK_, n - first);
        levels->make(levels, first, many, v);
        for (size_t b = 0; b < many; b += CG_RANS_BLOCK_) {
            uint64_t some = cg_rans_nonzero_(v + b, cg_min_(CG_RANS_BLOCK_, many - b));
            for (; some && list->count < CG_RANS_LIST_; some &= some - 1) {
                const size_t i = b + cg_ctz_(some);
                list->zeros[list->count] = (uint16_t)(first + i - next);
                list->level[list->count++] = v[i];
                next = first + i + 1;
            }
        }
    }
}
/* A class of blocks on its own: what its levels cost, about, and its table. */
static uint64_t cg_rans_class_cost_(const uint32_t *token) {
    uint64_t cost = cg_rans_entropy_(token, CG_RANS_MOST_) + 11 * CG_RANS_BIT_;
    unsigned used = 0;
    for (unsigned i = 0; i < CG_RANS_MOST_; i++)
        if (token[i]) used++;
    return cost + 8 * CG_RANS_BIT_ * (uint64_t)used;
}
/* Joins neighbouring classes as long as that makes the piece shorter or there are too many; c->token and c->blocks of
   the first class of each group become those of the group. Returns the groups, table_of says which class is where. */
CG_NOINLINE_ unsigned cg_rans_join_(cg_rans_counts_ *c, uint8_t *table_of) {
    uint8_t head[CG_RANS_SUMS_];                        /* first classes of the groups */
    uint64_t own[CG_RANS_SUMS_], joined[CG_RANS_SUMS_]; /* joined: with the group after it */
    uint32_t both[CG_RANS_MOST_];
    uint32_t all = 0;
    unsigned groups = 0;
    for (unsigned i = 0; i < CG_RANS_SUMS_; i++)
        if (c->blocks[i]) {
            own[groups] = cg_rans_class_cost_(c->token[i]);
            all += c->blocks[i];
            head[groups++] = (uint8_t)i;
        }
    for (unsigned g = 0; g < groups; g++) joined[g] = 0; /* unknown */
    while (groups > 1) {
        unsigned best = 0;
        uint64_t gain_of_best = 0, loss_of_best = UINT64_MAX;
        for (unsigned g = 0; g + 1 < groups; g++) {
            const uint32_t a = c->blocks[head[g]], b = c->blocks[head[g + 1]];
            uint64_t apart, together;
            if (!joined[g]) {
                for (unsigned t = 0; t < CG_RANS_MOST_; t++) both[t] = c->token[head[g]][t] + c->token[head[g + 1]][t];
                joined[g] = cg_rans_class_cost_(both);
            }
            apart = own[g] + own[g + 1] + (uint64_t)a * (cg_rans_log2_(all) - cg_rans_log2_(a)) +
                (uint64_t)b * (cg_rans_log2_(all) - cg_rans_log2_(b)) + 12 * CG_RANS_BIT_;
            together = joined[g] + (uint64_t)(a + b) * (cg_rans_log2_(all) - cg_rans_log2_(a + b));
            if (together <= apart ? apart - together >= gain_of_best
                                  : !gain_of_best && together - apart < loss_of_best) {
                best = g;
                gain_of_best = together <= apart ? apart - together : 0;
                loss_of_best = together <= apart ? 0 : together - apart;
            }
        }
        if (loss_of_best && groups <= CG_RANS_TABLES_) break;
        for (unsigned t = 0; t < CG_RANS_MOST_; t++) c->token[head[best]][t] += c->token[head[best + 1]][t];
        c->blocks[head[best]] += c->blocks[head[best + 1]];
        own[best] = joined[best];
        joined[best] = 0;
        if (best) joined[best - 1] = 0;
        groups--;
        for (unsigned g = best + 1; g < groups; g++) {
            head[g] = head[g + 1];
            own[g] = own[g + 1];
            joined[g] = joined[g + 1];
        }
    }
    for (unsigned i = 0, g = 0; i < CG_RANS_SUMS_; i++) {
        while (g + 1 < groups && i >= head[g + 1]) g++;
        table_of[i] = (uint8_t)g;
    }
    for (unsigned g = 0; g < groups; g++) { /* groups to the front: group g is not behind class g */
        if (head[g] == g) continue;
        memcpy(c->token[g], c->token[head[g]], sizeof c->token[g]);
        c->blocks[g] = c->blocks[head[g]];
    }
    return groups;
}
/* What the classes of the blocks cost, and their frequencies: of all blocks, or by the class before. */
static uint64_t cg_rans_classes_plan_(const cg_rans_counts_ *c, size_t blocks, cg_rans_plan_ *plan) {
    uint32_t count[CG_RANS_TABLES_][CG_RANS_TABLES_], all[CG_RANS_TABLES_];
    uint16_t freq[CG_RANS_TABLES_];
    uint64_t alone, chained = 0;
    unsigned last = 0;
    memset(count, 0, sizeof count);
    memset(all, 0, sizeof all);
    for (size_t b = 0; b < blocks; b++) {
        const unsigned s = plan->table_of[c->sum_class[b]];
        count[last][s]++;
        all[s]++;
        last = s;
    }
    alone = cg_rans_normalize_(all, plan->tables, freq);
    for (unsigned s = 0; s + 1 < plan->tables; s++) alone += cg_rans_freq_bits_(freq[s]) * CG_RANS_BIT_;
    for (unsigned t = 0; t < plan->tables; t++) {
        uint32_t any = 0;
        for (unsigned s = 0; s < plan->tables; s++) any |= count[t][s];
        if (!any) count[t][plan->tables - 1] = 1;
        chained += cg_rans_normalize_(count[t], plan->tables, plan->class_freq[t]);
        for (unsigned s = 0; s + 1 < plan->tables; s++)
            chained += cg_rans_freq_bits_(plan->class_freq[t][s]) * CG_RANS_BIT_;
    }
    plan->classes = plan->tables;
    if (chained < alone) return chained + CG_RANS_BIT_;
    plan->classes = 1;
    memcpy(plan->class_freq[0], freq, sizeof freq);
    return alone + CG_RANS_BIT_;
}
/* What the states of a piece cost beside its symbols, which take so many bits; sets the lanes. */
static uint64_t cg_rans_states_plan_(uint64_t word_bits, unsigned lanes_most, cg_rans_plan_ *plan) {
    const unsigned lanes = word_bits < 1024 ? 1 : word_bits < 8192 || lanes_most < 16 ? 4 : 16;
    plan->lanes = (uint8_t)lanes;
    return (uint64_t)(word_bits < 64 * lanes ? 32 : 28) * lanes * CG_RANS_BIT_;
}
/* Cost of a dense piece, and its tables. */
CG_NOINLINE_ uint64_t cg_rans_dense_plan_(cg_rans_counts_ *c, size_t n, cg_rans_plan_ *plan) {
    uint64_t cost = (plan->signs ? 0 : (uint64_t)c->nonzero * CG_RANS_BIT_) + 10 * CG_RANS_BIT_, word_bits = 0;
    plan->tables = (uint8_t)cg_rans_join_(c, plan->table_of);
    for (unsigned g = 0; g < plan->tables; g++) {
        cost += cg_rans_code_make_(c->token[g], CG_RANS_MOST_, CG_RANS_MAGNITUDES_, 1, &plan->table[g]);
        word_bits += plan->table[g].word_bits;
    }
    plan->classes = 1;
    if (plan->tables > 1) cost += 32 * CG_RANS_BIT_ + cg_rans_classes_plan_(c, (n + 63) / 64, plan);
    return cost + cg_rans_states_plan_(word_bits, 16, plan);
}
/* Cost of a sparse piece, and its tables. */
CG_NOINLINE_ uint64_t cg_rans_sparse_plan_(const cg_rans_list_ *list, cg_rans_plan_ *plan) {
    uint32_t zeros[4][CG_RANS_TOKENS_], magnitudes[4][CG_RANS_TOKENS_], context[128], sum = 0;
    uint64_t cost = (plan->signs ? 0 : (uint64_t)list->count * CG_RANS_BIT_) + 22 * CG_RANS_BIT_, one, three,
             word_bits = 0;
    cg_rans_code_ code[4];
    unsigned a = 0;
    memset(zeros, 0, sizeof zeros);
    memset(magnitudes, 0, sizeof magnitudes);
    memset(context, 0, sizeof context);
    for (uint32_t i = 0; i < list->count; i++) {
        a += cg_rans_token_(list->zeros[i], CG_RANS_ZEROS_) - a / 4;
        context[a]++;
    }
    plan->limit[0] = plan->limit[1] = 127;
    for (unsigned i = 0; i < 128; i++) { /* thirds */
        if (3 * sum < list->count) plan->limit[0] = (uint8_t)i;
        if (3 * sum < 2 * list->count) plan->limit[1] = (uint8_t)i;
        sum += context[i];
    }
    a = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        const unsigned t = cg_rans_token_(list->zeros[i], CG_RANS_ZEROS_);
        const int32_t level = list->level[i];
        const unsigned m = cg_rans_token_((uint32_t)(level < 0 ? -level : level) - 1, CG_RANS_MAGNITUDES_);
        zeros[(unsigned)(a >= plan->limit[0]) + (unsigned)(a >= plan->limit[1])][t]++;
        zeros[3][t]++;
        a += t - a / 4;
        magnitudes[(unsigned)(a >= plan->limit[0]) + (unsigned)(a >= plan->limit[1])][m]++;
        magnitudes[3][m]++;
    }
    for (unsigned which = 0, at = 0; which < 2; which++) {
        uint32_t(*count)[CG_RANS_TOKENS_] = which ? magnitudes : zeros;
        const unsigned tokens = which ? CG_RANS_MOST_ : 32, direct = which ? CG_RANS_MAGNITUDES_ : CG_RANS_ZEROS_;
        one = cg_rans_code_make_(count[3], tokens, direct, (int)which, &code[3]);
        word_bits += code[3].word_bits;
        three = 7 * CG_RANS_BIT_;
        for (unsigned i = 0; i < 3; i++) {
            uint32_t any = 0;
            for (unsigned t = 0; t < tokens; t++) any |= count[i][t];
            if (!any) count[i][0] = 1;
            three += cg_rans_code_make_(count[i], tokens, direct, (int)which, &code[i]);
        }
        for (unsigned i = 0; three < one && i < 3; i++) plan->table[at++] = code[i];
        if (one <= three) plan->table[at++] = code[3];
        cost += three < one ? three : one;
        if (which) plan->magnitude_contexts = three < one ? 3 : 1;
        else plan->zero_contexts = three < one ? 3 : 1;
    }
    return cost + cg_rans_states_plan_(word_bits, 4, plan);
}
/* Bits of a Rice piece, and its parameters. */
static uint64_t cg_rans_rice_plan_(const cg_rans_list_ *list, cg_rans_plan_ *plan) {
    uint64_t unary = 0, gamma = 0, best = UINT64_MAX, bits;
    plan->k = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        const uint32_t m = (uint32_t)(list->level[i] < 0 ? -list->level[i] : list->level[i]);
        unary += m < 16 ? m : 15 + cg_rans_gamma_bits_(m - 15);
        gamma += cg_rans_gamma_bits_(m);
    }
    for (unsigned k = 0; k < 16; k++) {
        bits = 0;
        for (uint32_t i = 0; i < list->count; i++) {
            const uint32_t q = (uint32_t)list->zeros[i] >> k;
            bits += q < 16 ? q + 1 + k : 32;
        }
        if (bits < best) {
            best = bits;
            plan->k = (uint8_t)k;
        }
    }
    plan->gamma = (uint8_t)(gamma < unary);
    return (best + (gamma < unary ? gamma : unary) + list->count + 20) * CG_RANS_BIT_;
}
/* Chooses how n levels of at most `width` bits are written. *list and *c are the caller's room for them; *list is
   of use to cg_rans_put_ unless the form is dense. */
CG_NOINLINE_ void cg_rans_plan_make_(const cg_rans_levels_ *levels, size_t n, unsigned width, cg_rans_counts_ *c,
    cg_rans_list_ *list, cg_rans_plan_ *plan) {
    cg_rans_plan_ other;
    uint64_t best = (32 + 8 * cg_word_bytes_((uint64_t)n * width)) * CG_RANS_BIT_, cost;
    cg_rans_count_(levels, n, c, list);
    plan->nonzero = c->nonzero;
    plan->signs = (uint8_t)(!c->negative ? 1 : c->negative == c->nonzero ? 2 : 0);
    plan->form = CG_RANS_PLAIN_;
    plan->bytes = 0;
    if (!c->nonzero) {
        plan->form = CG_RANS_RICE_;
        return;
    }
    if (c->nonzero <= CG_RANS_LIST_) {
        cost = cg_rans_rice_plan_(list, plan);
        if (cost < best) {
            plan->form = CG_RANS_RICE_;
            best = cost;
        }
        other = *plan;
        cost = cg_rans_sparse_plan_(list, &other);
        if (cost < best) {
            *plan = other;
            plan->form = CG_RANS_SPARSE_;
            best = cost;
        }
    }
    if (c->nonzero > 256) {
        other = *plan;
        cost = cg_rans_dense_plan_(c, n, &other);
        /* a sparse piece takes less time, which is worth a little */
        if (cost < best - (plan->form == CG_RANS_SPARSE_ ? best / 32 : 0)) {
            *plan = other;
            plan->form = CG_RANS_DENSE_;
            best = cost;
        }
    }
    if (plan->form == CG_RANS_SPARSE_ || plan->form == CG_RANS_DENSE_) best += best >> 9;
    plan->bytes = (uint32_t)(cg_word_bytes_((best + CG_RANS_BIT_ - 1) / CG_RANS_BIT_ +
        (plan->form == CG_RANS_SPARSE_ || plan->form == CG_RANS_DENSE_ ? 24 : 0)));
}
