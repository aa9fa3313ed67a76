/* mean_words: the one line of text that configures a mean, read and printed

   Offers   cg_mean_config_, cg_mean_config_read_, cg_mean_config_print_; the tables of settings, of parameters of kinds
            and of optimizers
   Needs    schedule, kinds, rows; words of core/base; operators as text
   Touches  the caller's configuration and sentence
   An operator, then words name=value in any order. A setting is a row of a table, and so is a parameter of a kind: rows
   of kinds name theirs. */

enum {
    CG_MEAN_OP_TEXT_ = 256, /* bytes of an operator's text, with a final 0 */
    CG_MEAN_TABLE_ = 32     /* ratios of warmup=table */
};
typedef struct cg_mean_config_ {
    cg_op op;
    int by_shape; /* op is a matrix operator, and rows and columns are those of each tensor */
    uint32_t route, fold;
    uint64_t seed;
    cg_ef_desc ef;               /* all but n, op, workers and carry, which are a tensor's */
    uint32_t overlap;            /* 1: yes */
    uint32_t packing;            /* CG_PACK_*_ */
    uint32_t optimizer;          /* row of cg_mean_optimizers_ */
    float momentum;              /* of the optimizer */
    float table[CG_MEAN_TABLE_]; /* of warmup=table */
    const char *given[16];       /* where each setting stands in the text; NULL: it does not */
    int has_op;                  /* the text has an operator */
} cg_mean_config_;

enum { CG_PACK_NONE_, CG_PACK_EACH_, CG_PACK_GLOBAL_ };
static const char *cg_mean_pack_name_(uint32_t i) {
    static const char *const names[] = { "none", "each", "global" };
    return i < sizeof names / sizeof *names ? names[i] : NULL;
}

/* ---- parameters of kinds ---- */

enum { CG_MEAN_REAL_, CG_MEAN_WHOLE_, CG_MEAN_FLAG_ };
typedef struct cg_mean_param_ {
    const char *name, *legal; /* legal: what values are, in a sentence */
    int type;
    size_t at; /* in cg_ef_desc: a float, uint64_t or int */
    float lo, hi;
    int above_lo, below_hi; /* lo or hi itself is out of range */
    const char *word;       /* a value that is a word, or NULL */
    float word_value;
} cg_mean_param_;
static const cg_mean_param_ cg_mean_params_[] = {
    { "momentum", "a number from 0 to below 1", CG_MEAN_REAL_, offsetof(cg_ef_desc, momentum), 0.0f, 1.0f, 0, 1, NULL,
        0.0f },
    { "decay", "a number above 0, at most 1", CG_MEAN_REAL_, offsetof(cg_ef_desc, decay), 0.0f, 1.0f, 1, 0, NULL,
        0.0f },
    { "alpha", "a number above 0, at most 1", CG_MEAN_REAL_, offsetof(cg_ef_desc, alpha), 0.0f, 1.0f, 1, 0, NULL,
        0.0f },
    { "step", "the learning rate, above 0", CG_MEAN_REAL_, offsetof(cg_ef_desc, laq_step), 0.0f, 1e30f, 1, 0, NULL,
        0.0f },
    { "weight", "a number above 0", CG_MEAN_REAL_, offsetof(cg_ef_desc, laq_weight), 0.0f, 1e30f, 1, 0, NULL, 0.0f },
    { "patience", "a whole number of steps, from 1 on", CG_MEAN_WHOLE_, offsetof(cg_ef_desc, laq_patience), 1.0f, 0.0f,
        0, 0, NULL, 0.0f },
    { "reset", "a whole number of steps, from 1 on", CG_MEAN_WHOLE_, offsetof(cg_ef_desc, reset), 1.0f, 0.0f, 0, 0,
        NULL, 0.0f },
    { "lambda", "a number above 0, or sqrt for the square root of the number of ranks", CG_MEAN_REAL_,
        offsetof(cg_ef_desc, lambda), 0.0f, 1e30f, 1, 0, "sqrt", CG_LAMBDA_SQRT },
    { "biased", "", CG_MEAN_FLAG_, offsetof(cg_ef_desc, biased), 0.0f, 0.0f, 0, 0, NULL, 0.0f },
    { "nesterov", "", CG_MEAN_FLAG_, offsetof(cg_ef_desc, nesterov), 0.0f, 0.0f, 0, 0, NULL, 0.0f },
    { "8bit", "", CG_MEAN_FLAG_, offsetof(cg_ef_desc, bytes), 0.0f, 0.0f, 0, 0, NULL, 0.0f },
};
enum { CG_MEAN_PARAM_COUNT_ = sizeof cg_mean_params_ / sizeof cg_mean_params_[0] };
/* The parameter that stands first in a list like "momentum!:nesterov"; *next: the rest of the list. NULL at its end. */
static const cg_mean_param_ *cg_mean_param_next_(const char *list, const char **next) {
    cg_word_ w;
    w.p = list;
    for (w.len = 0; list[w.len] && list[w.len] != ':' && list[w.len] != '!';) w.len++;
    list += w.len;
    while (*list == '!' || *list == ':') list++;
    *next = list;
    for (size_t i = 0; w.len && i < CG_MEAN_PARAM_COUNT_; i++)
        if (cg_word_is_(w, cg_mean_params_[i].name)) return &cg_mean_params_[i];
    return NULL;
}
static uint8_t *cg_mean_field_(const cg_ef_desc *d, const cg_mean_param_ *p) { return (uint8_t *)(uintptr_t)d + p->at; }

/* ---- optimizers ---- */

/* What a user's optimizer asks of the memory, where the text has no memory= of its own. */
typedef struct cg_mean_optimizer_ {
    const char *name;
    int has_momentum; /* its momentum follows, as in momentum:0.9 */
    int divides;      /* by the root of a variance, in which a delay counts (cg_ef_stats.delay) */
    void (*choose)(cg_mean_config_ *c);
    const char *says; /* what was chosen and what is left to the user, in cg_mean_describe */
} cg_mean_optimizer_;
static const cg_mean_optimizer_ *cg_mean_optimizer_at_(uint32_t i);
static const char *cg_mean_optimizer_name_(uint32_t i) {
    return cg_mean_optimizer_at_(i) ? cg_mean_optimizer_at_(i)->name : NULL;
}

/* ---- sentences ---- */

typedef struct cg_setting_ {
    const char *name, *example;
    int (*read)(cg_parser_ *s, const struct cg_setting_ *row, cg_mean_config_ *c); /* what follows name= */
    int (*print)(cg_text_ *t, const cg_mean_config_ *c); /* the same; 0: it is the default, and nothing was written */
} cg_setting_;
static const cg_setting_ *cg_setting_at_(uint32_t i); /* NULL: there are no more */
static const char *cg_setting_name_(uint32_t i) { return cg_setting_at_(i) ? cg_setting_at_(i)->name : NULL; }

/* The nearest of the names, or NULL. */
static const char *cg_mean_nearest_(cg_word_ w, const char *(*name_of)(uint32_t)) {
    const char *nearest = NULL;
    int nearest_distance = 99;
    for (uint32_t i = 0; name_of(i); i++) {
        const int d = cg_name_distance_(w, name_of(i));
        if (d >= nearest_distance) continue;
        nearest_distance = d;
        nearest = name_of(i);
    }
    return nearest;
}
/* ": did you mean 'x'? There are a, b, c" */
static void cg_mean_suggest_(cg_parser_ *s, const char *nearest, const char *(*name_of)(uint32_t), const char *after) {
    if (nearest) {
        cg_text_str_(&s->why, "; did you mean '");
        cg_text_str_(&s->why, nearest);
        cg_text_str_(&s->why, after);
        cg_text_char_(&s->why, '\'');
        cg_text_char_(&s->why, '?');
    }
    cg_text_str_(&s->why, nearest ? " There are" : "; there are");
    for (uint32_t i = 0; name_of(i); i++) {
        cg_text_str_(&s->why, i ? ", " : " ");
        cg_text_str_(&s->why, name_of(i));
        cg_text_str_(&s->why, after);
    }
}
static void cg_mean_example_(cg_parser_ *s, const cg_setting_ *row) {
    cg_text_str_(&s->why, ", as in '");
    cg_text_str_(&s->why, row->example);
    cg_text_char_(&s->why, '\'');
}
/* "at 9: 'x' of seed= should be a whole number, as in 'seed=42'" */
static int cg_mean_bad_(cg_parser_ *s, cg_word_ w, const cg_setting_ *row, const char *what, const char *range) {
    cg_why_at_(s, w.p);
    if (w.len) cg_why_quote_(s, w);
    else cg_text_str_(&s->why, "nothing");
    cg_text_str_(&s->why, " stands in ");
    cg_text_str_(&s->why, row->name);
    cg_text_str_(&s->why, "= for ");
    cg_text_str_(&s->why, what);
    cg_text_str_(&s->why, ", which is ");
    cg_text_str_(&s->why, range);
    for (size_t i = 0; i < w.len; i++)
        if (w.p[i] == ',') {
            cg_text_str_(&s->why, " (decimals follow a '.')");
            break;
        }
    cg_mean_example_(s, row);
    return 0;
}

/* ---- parts of values ---- */

/* The part of a value up to ':', `other` or a blank; s->p moves behind it. */
static cg_word_ cg_mean_part_to_(cg_parser_ *s, char other) {
    cg_word_ w;
    w.p = s->p;
    for (w.len = 0; w.p[w.len] && w.p[w.len] != ':' && w.p[w.len] != other && !cg_is_blank_(w.p[w.len]);) w.len++;
    s->p += w.len;
    return w;
}
static cg_word_ cg_mean_part_(cg_parser_ *s) { return cg_mean_part_to_(s, ':'); }
static int cg_mean_colon_(cg_parser_ *s) { return *s->p == ':' ? (s->p++, 1) : 0; }
static int cg_mean_read_real_(cg_parser_ *s, cg_word_ w, const cg_setting_ *row, const char *what, const char *range,
    const float *limits, float *v) {
    cg_decimal_ d;
    float f;
    if (!cg_decimal_read_(w, &d) || d.minus) return cg_mean_bad_(s, w, row, what, range);
    f = cg_float_from_decimal_(d.digits, d.exponent);
    if (f >= CG_FLT_MAX_ || f < limits[0] || f > limits[1] || (f == limits[0] && limits[2] != 0.0f) ||
        (f == limits[1] && limits[3] != 0.0f))
        return cg_mean_bad_(s, w, row, what, range);
    *v = f;
    return 1;
}
static int cg_mean_read_whole_(cg_parser_ *s, cg_word_ w, const cg_setting_ *row, const char *what, const char *range,
    uint64_t lo, uint64_t hi, uint64_t *v) {
    cg_decimal_ d;
    if (!cg_decimal_read_(w, &d) || d.minus || d.has_point || d.overflows || d.whole < lo || d.whole > hi)
        return cg_mean_bad_(s, w, row, what, range);
    *v = d.whole;
    return 1;
}
/* The name of one of a table, as a number. */
static int cg_mean_read_name_(
    cg_parser_ *s, cg_word_ w, const cg_setting_ *row, const char *(*name_of)(uint32_t), uint32_t *id) {
    for (uint32_t i = 0; name_of(i); i++)
        if (cg_word_is_(w, name_of(i))) return *id = i, 1;
    cg_why_at_(s, w.p);
    cg_text_str_(&s->why, "no ");
    cg_text_str_(&s->why, row->name);
    cg_text_char_(&s->why, ' ');
    cg_why_quote_(s, w);
    cg_mean_suggest_(s, cg_mean_nearest_(w, name_of), name_of, "");
    return 0;
}

/* ---- memory= ---- */

static int cg_mean_read_param_(
    cg_parser_ *s, cg_word_ w, const cg_setting_ *row, const cg_mean_param_ *p, cg_ef_desc *d) {
    const float limits[4] = { p->lo, p->hi, (float)p->above_lo, (float)p->below_hi };
    const int one = 1;
    uint64_t whole = 0;
    float real = 0.0f;
    if (p->type == CG_MEAN_FLAG_) memcpy(cg_mean_field_(d, p), &one, sizeof one);
    else if (p->type == CG_MEAN_WHOLE_) {
        if (!cg_mean_read_whole_(s, w, row, p->name, p->legal, 1, UINT64_MAX, &whole)) return 0;
        memcpy(cg_mean_field_(d, p), &whole, sizeof whole);
    } else {
        if (p->word && cg_word_is_(w, p->word)) real = p->word_value;
        else if (!cg_mean_read_real_(s, w, row, p->name, p->legal, limits, &real)) return 0;
        memcpy(cg_mean_field_(d, p), &real, sizeof real);
    }
    return 1;
}
/* One part behind the kind's name: a number, which is the first parameter, a flag, or name=number. */
static int cg_mean_read_memory_part_(
    cg_parser_ *s, const cg_setting_ *row, const cg_ef_row_ *kind, int is_first, uint32_t *seen, cg_ef_desc *d) {
    const cg_word_ all = cg_mean_part_(s);
    cg_word_ name = all, value = all;
    cg_decimal_ number;
    const char *list = kind->params;
    const cg_mean_param_ *p, *found = NULL;
    uint32_t bit;
    size_t equals = 0;
    while (equals < all.len && all.p[equals] != '=') equals++;
    name.len = equals;
    if (equals < all.len) {
        value.p += equals + 1;
        value.len -= equals + 1;
    }
    for (const char *next; (p = cg_mean_param_next_(list, &next)) != NULL && !found; list = next)
        if ((is_first && list == kind->params && equals == all.len && p->type != CG_MEAN_FLAG_ &&
                (!all.len || cg_decimal_read_(all, &number) || (p->word && cg_word_is_(all, p->word)))) ||
            (cg_word_is_(name, p->name) && (equals < all.len) == (p->type != CG_MEAN_FLAG_)))
            found = p;
    if (!found) {
        cg_why_at_(s, all.p);
        cg_text_str_(&s->why, "memory=");
        cg_text_str_(&s->why, kind->name);
        cg_text_str_(&s->why, " has no ");
        cg_why_quote_(s, name);
        cg_text_str_(&s->why, *kind->params ? "; it takes" : "; it takes nothing");
        list = kind->params;
        for (const char *next; (p = cg_mean_param_next_(list, &next)) != NULL; list = next) {
            cg_text_str_(&s->why, list == kind->params ? " :" : ", :");
            cg_text_str_(&s->why, p->name);
            if (p->type != CG_MEAN_FLAG_) cg_text_char_(&s->why, '=');
        }
        return 0;
    }
    bit = 1u << (unsigned)(found - cg_mean_params_);
    if (*seen & bit) {
        cg_why_at_(s, all.p);
        cg_text_str_(&s->why, found->name);
        cg_text_str_(&s->why, " stands twice in memory=");
        return 0;
    }
    *seen |= bit;
    return cg_mean_read_param_(s, value, row, found, d);
}
/* Must the first parameter of a kind be given? */
static int cg_mean_is_required_(const char *list) {
    while (*list && *list != ':' && *list != '!') list++;
    return *list == '!';
}
static int cg_mean_read_memory_(cg_parser_ *s, const cg_setting_ *row, cg_mean_config_ *c) {
    const cg_ef_row_ *kind;
    const cg_mean_param_ *first;
    const char *next;
    uint32_t seen = 0;
    if (!cg_mean_read_name_(s, cg_mean_part_(s), row, cg_ef_kind_name, &c->ef.kind)) return 0;
    kind = cg_ef_row_at_(c->ef.kind);
    for (int is_first = 1; cg_mean_colon_(s); is_first = 0)
        if (!cg_mean_read_memory_part_(s, row, kind, is_first, &seen, &c->ef)) return 0;
    first = cg_mean_param_next_(kind->params, &next);
    if (!first || !cg_mean_is_required_(kind->params) || seen & 1u << (unsigned)(first - cg_mean_params_)) return 1;
    cg_why_at_(s, s->p);
    cg_text_str_(&s->why, "memory=");
    cg_text_str_(&s->why, kind->name);
    cg_text_str_(&s->why, " lacks its ");
    cg_text_str_(&s->why, first->name);
    cg_text_str_(&s->why, ": ");
    cg_text_str_(&s->why, first->legal);
    cg_text_str_(&s->why, ", as in 'memory=");
    cg_text_str_(&s->why, kind->name);
    cg_text_str_(&s->why, ":0.9'");
    return 0;
}
static int cg_mean_print_memory_(cg_text_ *t, const cg_mean_config_ *c) {
    const char *list = cg_ef_row_at_(c->ef.kind)->params, *next;
    const cg_mean_param_ *p;
    cg_text_str_(t, cg_ef_kind_name(c->ef.kind));
    for (int is_first = 1; (p = cg_mean_param_next_(list, &next)) != NULL; list = next, is_first = 0) {
        uint64_t whole = 0;
        float real = 0.0f;
        int flag = 0;
        if (p->type == CG_MEAN_FLAG_) memcpy(&flag, cg_mean_field_(&c->ef, p), sizeof flag);
        else if (p->type == CG_MEAN_WHOLE_) memcpy(&whole, cg_mean_field_(&c->ef, p), sizeof whole);
        else memcpy(&real, cg_mean_field_(&c->ef, p), sizeof real);
        if (!flag && !whole && real == 0.0f && !(is_first && cg_mean_is_required_(list))) continue;
        cg_text_char_(t, ':');
        if (flag || !is_first) cg_text_str_(t, p->name);
        if (flag) continue;
        if (!is_first) cg_text_char_(t, '=');
        if (p->type == CG_MEAN_WHOLE_) cg_text_uint_(t, whole);
        else if (p->word && real == p->word_value) cg_text_str_(t, p->word);
        else cg_text_float_(t, real);
    }
    return 1;
}

/* ---- the other settings ---- */

static int cg_mean_read_route_(cg_parser_ *s, const cg_setting_ *row, cg_mean_config_ *c) {
    return cg_mean_read_name_(s, cg_mean_part_(s), row, cg_route_name, &c->route);
}
static int cg_mean_print_route_(cg_text_ *t, const cg_mean_config_ *c) {
    cg_text_str_(t, cg_route_name(c->route));
    return c->route != 0;
}
static int cg_mean_read_fold_(cg_parser_ *s, const cg_setting_ *row, cg_mean_config_ *c) {
    return cg_mean_read_name_(s, cg_mean_part_(s), row, cg_fold_name, &c->fold);
}
static int cg_mean_print_fold_(cg_text_ *t, const cg_mean_config_ *c) {
    cg_text_str_(t, cg_fold_name(c->fold));
    return c->fold != 0;
}
static int cg_mean_print_whole_(cg_text_ *t, uint64_t v) {
    cg_text_uint_(t, v);
    return v != 0;
}
static int cg_mean_read_seed_(cg_parser_ *s, const cg_setting_ *row, cg_mean_config_ *c) {
    return cg_mean_read_whole_(s, cg_mean_part_(s), row, "the seed", "a whole number", 0, UINT64_MAX, &c->seed);
}
static int cg_mean_print_seed_(cg_text_ *t, const cg_mean_config_ *c) { return cg_mean_print_whole_(t, c->seed); }
static int cg_mean_read_dense_(cg_parser_ *s, const cg_setting_ *row, cg_mean_config_ *c) {
    return cg_mean_read_whole_(s, cg_mean_part_(s), row, "the first steps, which are dense",
        "a whole number below 2^62", 0, UINT64_MAX / 4, &c->ef.dense_steps);
}
static int cg_mean_print_dense_(cg_text_ *t, const cg_mean_config_ *c) {
    return cg_mean_print_whole_(t, c->ef.dense_steps);
}
static int cg_mean_read_small_(cg_parser_ *s, const cg_setting_ *row, cg_mean_config_ *c) {
    uint64_t small;
    if (!cg_mean_read_whole_(s, cg_mean_part_(s), row, "the values below which a tensor is dense", "a whole number", 0,
            SIZE_MAX, &small))
        return 0;
    c->ef.small = (size_t)small;
    return 1;
}
static int cg_mean_print_small_(cg_text_ *t, const cg_mean_config_ *c) { return cg_mean_print_whole_(t, c->ef.small); }
static const char *cg_mean_yes_name_(uint32_t i) { return i == 0 ? "no" : i == 1 ? "yes" : NULL; }
static int cg_mean_read_overlap_(cg_parser_ *s, const cg_setting_ *row, cg_mean_config_ *c) {
    return cg_mean_read_name_(s, cg_mean_part_(s), row, cg_mean_yes_name_, &c->overlap);
}
static int cg_mean_print_overlap_(cg_text_ *t, const cg_mean_config_ *c) {
    cg_text_str_(t, "yes");
    return c->overlap != 0;
}
static int cg_mean_read_pack_(cg_parser_ *s, const cg_setting_ *row, cg_mean_config_ *c) {
    return cg_mean_read_name_(s, cg_mean_part_(s), row, cg_mean_pack_name_, &c->packing);
}
static int cg_mean_print_pack_(cg_text_ *t, const cg_mean_config_ *c) {
    cg_text_str_(t, cg_mean_pack_name_(c->packing));
    return c->packing != CG_PACK_NONE_;
}
static int cg_mean_read_clip_(cg_parser_ *s, const cg_setting_ *row, cg_mean_config_ *c) {
    static const float limits[4] = { 0.0f, CG_FLT_MAX_, 1.0f, 0.0f };
    cg_word_ w = cg_mean_part_(s);
    if (cg_word_is_(w, "value") && cg_mean_colon_(s)) {
        c->ef.clip_by = CG_CLIP_VALUE;
        w = cg_mean_part_(s);
    }
    return cg_mean_read_real_(s, w, row, "the limit",
        "a number above 0, as in clip=value:1 for every value or clip=1 for the norm", limits, &c->ef.clip);
}
static int cg_mean_print_clip_(cg_text_ *t, const cg_mean_config_ *c) {
    if (c->ef.clip_by) cg_text_str_(t, "value:");
    cg_text_float_(t, c->ef.clip);
    return c->ef.clip != 0.0f;
}
/* power:4:468: kind, stages, steps in a stage; table:0.25,0.1,0.03:468: the ratios of the stages in place of their
   number */
static int cg_mean_read_warmup_(cg_parser_ *s, const cg_setting_ *row, cg_mean_config_ *c) {
    static const float limits[4] = { 0.0f, 1.0f, 1.0f, 0.0f };
    cg_warmup *w = &c->ef.warmup;
    uint64_t stages = 0;
    if (!cg_mean_read_name_(s, cg_mean_part_(s), row, cg_warmup_name, &w->kind)) return 0;
    if (!w->kind) return 1;
    if (!cg_mean_colon_(s))
        return cg_mean_bad_(s, cg_mean_part_(s), row, "the stages", "a whole number from 1 to 4096");
    if (cg_warmup_rows_[w->kind].has_table) {
        do {
            if (stages == CG_MEAN_TABLE_)
                return cg_mean_bad_(s, cg_mean_part_(s), row, "one ratio more", "one too many: at most 32 fit");
            if (!cg_mean_read_real_(
                    s, cg_mean_part_to_(s, ','), row, "a ratio", "above 0, at most 1", limits, &c->table[stages]))
                return 0;
            stages++;
        } while (*s->p == ',' && *s->p++);
    } else if (!cg_mean_read_whole_(s, cg_mean_part_(s), row, "the stages", "a whole number from 1 to 4096", 1,
                   CG_EF_MAX_STAGES_, &stages))
        return 0;
    w->stages = (uint32_t)stages;
    return !cg_mean_colon_(s) ||
        cg_mean_read_whole_(s, cg_mean_part_(s), row, "the steps in a stage", "a whole number from 1 to 2^48", 1,
            (uint64_t)1 << 48, &w->period);
}
static int cg_mean_print_warmup_(cg_text_ *t, const cg_mean_config_ *c) {
    const cg_warmup *w = &c->ef.warmup;
    cg_text_str_(t, cg_warmup_name(w->kind));
    cg_text_char_(t, ':');
    if (!cg_warmup_rows_[w->kind].has_table) cg_text_uint_(t, w->stages);
    for (uint32_t i = 0; cg_warmup_rows_[w->kind].has_table && i < w->stages; i++) {
        if (i) cg_text_char_(t, ',');
        cg_text_float_(t, c->table[i]);
    }
    if (w->period) cg_text_char_(t, ':');
    if (w->period) cg_text_uint_(t, w->period);
    return w->kind != 0;
}
static int cg_mean_read_optimizer_(cg_parser_ *s, const cg_setting_ *row, cg_mean_config_ *c) {
    static const float limits[4] = { 0.0f, 1.0f, 0.0f, 1.0f };
    if (!cg_mean_read_name_(s, cg_mean_part_(s), row, cg_mean_optimizer_name_, &c->optimizer)) return 0;
    if (!cg_mean_optimizer_at_(c->optimizer)->has_momentum) return 1;
    if (!cg_mean_colon_(s)) return cg_mean_bad_(s, cg_mean_part_(s), row, "its momentum", "a number from 0 to below 1");
    return cg_mean_read_real_(
        s, cg_mean_part_(s), row, "its momentum", "a number from 0 to below 1", limits, &c->momentum);
}
static int cg_mean_print_optimizer_(cg_text_ *t, const cg_mean_config_ *c) {
    const cg_mean_optimizer_ *o = cg_mean_optimizer_at_(c->optimizer);
    cg_text_str_(t, o->name);
    if (o->has_momentum) cg_text_char_(t, ':');
    if (o->has_momentum) cg_text_float_(t, c->momentum);
    return c->optimizer != 0;
}
/* In the order in which they are printed. */
static const cg_setting_ cg_settings_[] = {
    { "memory", "memory=momentum:0.9", cg_mean_read_memory_, cg_mean_print_memory_ },
    { "route", "route=scatter", cg_mean_read_route_, cg_mean_print_route_ },
    { "fold", "fold=mean", cg_mean_read_fold_, cg_mean_print_fold_ },
    { "seed", "seed=42", cg_mean_read_seed_, cg_mean_print_seed_ },
    { "dense", "dense=100", cg_mean_read_dense_, cg_mean_print_dense_ },
    { "warmup", "warmup=power:4:468", cg_mean_read_warmup_, cg_mean_print_warmup_ },
    { "clip", "clip=1", cg_mean_read_clip_, cg_mean_print_clip_ },
    { "small", "small=1024", cg_mean_read_small_, cg_mean_print_small_ },
    { "pack", "pack=each", cg_mean_read_pack_, cg_mean_print_pack_ },
    { "overlap", "overlap=yes", cg_mean_read_overlap_, cg_mean_print_overlap_ },
    { "optimizer", "optimizer=momentum:0.9", cg_mean_read_optimizer_, cg_mean_print_optimizer_ },
};
enum {
    CG_SETTING_COUNT_ = sizeof cg_settings_ / sizeof cg_settings_[0],
    CG_SETTING_MEMORY_ = 0,
    CG_SETTING_SMALL_ = 7
};
static const cg_setting_ *cg_setting_at_(uint32_t i) { return i < CG_SETTING_COUNT_ ? &cg_settings_[i] : NULL; }

/* ---- what optimizers ask for ---- */

/* What kinds without a residual are given where the text has no operator: 80 times fewer bits. */
static cg_op cg_mean_unbiased_op_(void) { return cg_unbiased(cg_rate(0.4f)); }
/* As the state will draw, so that what is printed is what is sent. */
static void cg_mean_draw_privately_(cg_mean_config_ *c) {
    if (cg_ef_has_trait_(&c->ef, CG_EF_UNBIASED_ONLY_) && !c->by_shape &&
        !(cg_route_row_of_(c->route)->traits & CG_ROUTE_ALLREDUCES_))
        c->op = cg_ef_drawn_by_rank_(c->op);
}

static void cg_mean_choose_classic_(cg_mean_config_ *c) { c->ef.kind = CG_EF_CLASSIC; }
/* Of unbiased operators the filter comes first, and the optimizer stays as it is. A biased one delays part of the
   gradient, and a momentum behind the mean amplifies what is delayed: then it goes into the memory. */
static void cg_mean_choose_momentum_(cg_mean_config_ *c) {
    cg_resolved_ r;
    if (c->by_shape || c->momentum == 0.0f) {
        c->ef.kind = CG_EF_CLASSIC;
        return;
    }
    c->ef.kind = CG_EF_FILTERED;
    if (cg_resolve_(&c->op, NULL, 65536, &r) == CG_OK && cg_ef_biased_why_(&c->ef, &r)) c->ef.kind = CG_EF_MOMENTUM;
    c->ef.momentum = c->momentum;
}
/* Models in place of gradients, so that nothing is delayed; the state refuses biased operators. */
static void cg_mean_choose_models_(cg_mean_config_ *c) { c->ef.kind = CG_EF_DIFFERENCE; }
static const cg_mean_optimizer_ cg_mean_optimizers_[] = {
    { "any", 0, 0, cg_mean_choose_classic_, "" },
    { "sgd", 0, 0, cg_mean_choose_classic_,
        "for SGD without momentum: classic memory, which delays and loses nothing" },
    { "momentum", 1, 0, cg_mean_choose_momentum_,
        "for SGD with momentum: with memory=filtered or classic your optimizer keeps it; with memory=momentum it is in "
        "the memory, so set that of your optimizer to 0" },
    { "adam", 0, 1, cg_mean_choose_models_,
        "for Adam: with memory=difference every rank's Adam steps its own model, and cg_mean_step takes the models; "
        "with any other memory it takes gradients, and what waits in a residual spoils the variances" },
};
static const cg_mean_optimizer_ *cg_mean_optimizer_at_(uint32_t i) {
    return i < sizeof cg_mean_optimizers_ / sizeof cg_mean_optimizers_[0] ? &cg_mean_optimizers_[i] : NULL;
}

/* ---- the whole line ---- */

/* Skips blanks and comments, from '#' to the end of a line. */
static void cg_mean_skip_(cg_parser_ *s) {
    for (;; s->p++) {
        if (*s->p == '#')
            while (s->p[1] && s->p[1] != '\n') s->p++;
        else if (!cg_is_blank_(*s->p)) return;
    }
}
/* The name before the '=' of the setting that begins here; len 0: none begins here. */
static cg_word_ cg_setting_word_(const char *p) {
    cg_word_ w;
    w.p = p;
    for (w.len = 0;; w.len++) {
        const char c = cg_lower_(p[w.len]);
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-')) break;
    }
    if (p[w.len] != '=') w.len = 0;
    return w;
}
/* Is "name:value" an operator, where name=value stands? */
static int cg_setting_is_operator_(cg_word_ name) {
    char text[CG_MEAN_OP_TEXT_];
    size_t len = 0;
    cg_op op;
    for (; len + 1 < sizeof text && name.p[len] && !cg_is_blank_(name.p[len]); len++) text[len] = name.p[len];
    text[len] = 0;
    text[name.len] = ':';
    return len + 1 < sizeof text && cg_op_parse(&op, text) == CG_OK;
}
static int cg_mean_unknown_(cg_parser_ *s, cg_word_ name) {
    cg_why_at_(s, name.p);
    cg_text_str_(&s->why, "no setting ");
    cg_why_quote_(s, name);
    if (!cg_setting_is_operator_(name))
        return cg_mean_suggest_(s, cg_mean_nearest_(name, cg_setting_name_), cg_setting_name_, "="), 0;
    cg_text_str_(&s->why, ": it is an operator, which stands first and has ':' before its parameters");
    return 0;
}
/* The operator, which ends before the first setting. */
static int cg_mean_read_op_(cg_parser_ *s, cg_mean_config_ *config) {
    char text[CG_MEAN_OP_TEXT_ + 8];
    char why[320];
    const char *end = s->text;
    size_t len = 0, last = 0;
    int at_word = 1, in_comment = 0;
    for (; *end; end++, len++) {
        char c = *end;
        in_comment = c != '\n' && (in_comment || (at_word && c == '#'));
        if (in_comment) c = ' ';
        else if (at_word && cg_setting_word_(end).len) break;
        at_word = cg_is_blank_(c);
        if (!at_word) last = len + 1;
        if (last > CG_MEAN_OP_TEXT_)
            return cg_why_(s, s->text, "the operator, with what stands before it, takes more than 256 bytes");
        if (len < CG_MEAN_OP_TEXT_) text[len] = c;
    }
    s->p = end;
    text[last] = 0;
    config->has_op = last != 0;
    config->op = cg_eden(4.0f);
    if (!config->has_op && !cg_bound(&config->op, 1024))
        return cg_why_(s, s->text,
            "there is no operator, and this build left out the stages of the default, eden:4: "
            "write one, as in 'topk:0.01'");
    if (!config->has_op || cg_op_parse_why(&config->op, text, why, sizeof why) == CG_OK) return 1;
    memcpy(text + last, ":1:1", 5);
    if (cg_op_parse(&config->op, text) == CG_OK && cg_op_traits_(&config->op) & CG_IS_MATRIX_)
        return config->by_shape = 1;
    cg_text_str_(&s->why, why);
    return 0;
}
static int cg_mean_read_settings_(cg_parser_ *s, cg_mean_config_ *c) {
    for (cg_mean_skip_(s); *s->p; cg_mean_skip_(s)) {
        const cg_word_ name = cg_setting_word_(s->p);
        uint32_t i = 0;
        if (!name.len) {
            cg_word_ w = cg_mean_part_(s);
            cg_why_at_(s, w.p);
            cg_why_quote_(s, w);
            cg_text_str_(&s->why,
                " is not name=value; the operator stands first, and behind it only settings, as in "
                "'topk:0.01 route=scatter seed=42'");
            return 0;
        }
        while (i < CG_SETTING_COUNT_ && !cg_word_is_(name, cg_settings_[i].name)) i++;
        if (i == CG_SETTING_COUNT_) return cg_mean_unknown_(s, name);
        if (c->given[i]) {
            cg_why_at_(s, name.p);
            cg_text_str_(&s->why, cg_settings_[i].name);
            cg_text_str_(&s->why, "= stands twice, first at ");
            cg_text_uint_(&s->why, (uint64_t)(c->given[i] - s->text));
            cg_text_str_(&s->why, ": leave one of them out");
            return 0;
        }
        c->given[i] = name.p;
        s->p = name.p + name.len + 1;
        if (!cg_settings_[i].read(s, &cg_settings_[i], c)) return 0;
        if (*s->p && !cg_is_blank_(*s->p)) {
            cg_why_at_(s, s->p);
            cg_why_quote_(s, cg_mean_part_(s));
            cg_text_str_(&s->why, " is too much behind ");
            cg_text_str_(&s->why, cg_settings_[i].name);
            cg_text_char_(&s->why, '=');
            cg_mean_example_(s, &cg_settings_[i]);
            return 0;
        }
    }
    return 1;
}
/* Reads config, which may be NULL; 0: why has a sentence. *c refers to itself, and to the text only while this runs. */
static int cg_mean_config_read_(cg_mean_config_ *c, const char *config, cg_text_ *why) {
    cg_parser_ s;
    int ok;
    memset(c, 0, sizeof *c);
    s.text = s.p = config ? config : "";
    s.why = *why;
    ok = cg_mean_read_op_(&s, c) && cg_mean_read_settings_(&s, c);
    *why = s.why;
    if (!ok) return 0;
    /* the operator that measurements recommend is for vectors that fill the blocks of its rotation */
    if (!c->has_op && !c->given[CG_SETTING_SMALL_]) c->ef.small = 1024;
    if (!c->given[CG_SETTING_MEMORY_]) cg_mean_optimizer_at_(c->optimizer)->choose(c);
    if (!c->has_op && cg_ef_has_trait_(&c->ef, CG_EF_UNBIASED_ONLY_)) c->op = cg_mean_unbiased_op_();
    cg_mean_draw_privately_(c);
    if (cg_warmup_rows_[c->ef.warmup.kind].has_table) c->ef.warmup.table = c->table;
    memset(c->given, 0, sizeof c->given); /* the text is not kept */
    return 1;
}
/* Writes it on one line, with everything that is not the default. */
static void cg_mean_config_print_(const cg_mean_config_ *c, cg_text_ *t) {
    char op[CG_MEAN_OP_TEXT_ + 64];
    if (cg_op_print(&c->op, op, sizeof op) != CG_OK) op[0] = 0;
    if (c->by_shape) op[cg_text_len_(op) - 4] = 0; /* the :1:1 in the place of rows and columns */
    cg_text_str_(t, op);
    for (uint32_t i = 0; i < CG_SETTING_COUNT_; i++) {
        char *before = t->at;
        cg_text_char_(t, ' ');
        cg_text_str_(t, cg_settings_[i].name);
        cg_text_char_(t, '=');
        if (!cg_settings_[i].print(t, c)) t->at = before;
    }
}
