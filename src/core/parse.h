/* parse: text to operators, and a sentence that says what is wrong with the text, where, and what to write

   Offers   cg_op_parse, cg_op_parse_why
   Needs    base (words), stages, presets
   Touches  the caller's operator and sentence
   Any bytes may be in the text, and any number of them: what a sentence quotes of it is printable and short. Functions
   that read return 1; or 0, and then the sentence has been written. No libc, no locale. */

/* params, a list of name=example, goes on behind the next ':'; "" at its end. */
static const char *cg_params_skip_(const char *params) {
    while (*params && *params != ':') params++;
    return *params ? params + 1 : params;
}
static void cg_why_param_name_(cg_parser_ *s, const char *params) {
    while (*params && *params != '=') cg_text_char_(&s->why, *params++);
}
/* name:example:example, quoted */
static void cg_why_example_(cg_parser_ *s, const char *name, const char *params) {
    cg_text_char_(&s->why, '\'');
    cg_text_str_(&s->why, name);
    for (; *params; params = cg_params_skip_(params)) {
        while (*params != '=') params++;
        cg_text_char_(&s->why, ':');
        for (params++; *params && *params != ':'; params++) cg_text_char_(&s->why, *params);
    }
    cg_text_char_(&s->why, '\'');
}

/* ---- names, and those that are near ---- */

/* Presets by name that are more than one stage, and other names of single stages: name, parameters as in a row of the
   stage table, their ranges (a letter each, see cg_param_of_), operator. a[i] is the i-th parameter, in its range. */
#define CG_PRESET_LIST_(X)                                                                               \
  X("qsgd", "levels=4", "l", cg_qsgd((int)a[0]))                                                         \
  X("threelc", "multiplier=1", "m", cg_threelc((float)a[0]))                                             \
  X("adacomp", "bin=50", "s", cg_adacomp((uint32_t)a[0]))                                                \
  X("adaq", "ratio=0.01", "r", cg_adaq((float)a[0]))                                                     \
  X("sbc", "ratio=0.01", "r", cg_sbc((float)a[0]))                                                       \
  X("stc", "ratio=0.01", "r", cg_stc((float)a[0]))                                                       \
  X("eden", "bits=1", "e", cg_eden((float)a[0]))                                                         \
  X("drive", "", "", cg_drive())                                                                         \
  X("srq", "bits=4", "b", cg_srq((int)a[0]))                                                             \
  X("demo_dct", "ratio=0.1", "r", cg_demo_dct((float)a[0]))                                              \
  X("demo", "ratio=0.1", "r", cg_demo_dct((float)a[0]))                                                  \
  X("qsparse", "ratio=0.01:levels=4", "rl", cg_qsparse((float)a[0], (int)a[1]))                          \
  X("cocktail", "sampled=0.1:ratio=0.1:bits=4", "rrb", cg_cocktail((float)a[0], (float)a[1], (int)a[2])) \
  X("klevel", "bits=4:bucket=512", "bs", cg_klevel((int)a[0], (uint32_t)a[1]))                           \
  X("fp8", "", "", cg_fp8())                                                                             \
  X("fp8_e5m2", "", "", cg_fp8_e5m2())                                                                   \
  X("mxfp8", "", "", cg_mxe4m3())                                                                        \
  X("mxfp8_e5m2", "", "", cg_mxe5m2())                                                                   \
  X("wangni_variance", "epsilon=0.5", "p", cg_wangnivar((float)a[0]))

typedef struct cg_preset_row_ {
    const char *name, *params, *ranges;
} cg_preset_row_;
static const cg_preset_row_ cg_preset_rows_[] = {
#define CG_PRESET_(name, params, ranges, op) { name, params, ranges },
    CG_PRESET_LIST_(CG_PRESET_)
#undef CG_PRESET_
};
#define CG_PRESET_ROWS_ (sizeof cg_preset_rows_ / sizeof cg_preset_rows_[0])
#define CG_USER_PARAMS_ "id=128:arg=0:size=0:value=0"

/* The row of the stage number *i of all slots; NULL behind the last, and *i is then how far behind. */
static const cg_stage_row_ *cg_row_number_(size_t *i) {
    for (unsigned slot = 0; slot < CG_SLOT_COUNT_; slot++)
        for (unsigned id = 1; cg_row_at_(slot, id); id++)
            if ((*i)-- == 0) return cg_row_at_(slot, id);
    return NULL;
}
/* The i-th of all names that a stage can have, with its parameters; NULL behind the last. */
static const char *cg_stage_name_(size_t i, const char **params) {
    const cg_stage_row_ *row = cg_row_number_(&i);
    *params = row && !cg_is_left_out_(row) ? row->params : "";
    if (row) return row->name;
    if (i < CG_PRESET_ROWS_) {
        *params = cg_preset_rows_[i].params;
        return cg_preset_rows_[i].name;
    }
    i -= CG_PRESET_ROWS_;
    if (i == 0) return "dense";
    if (i == 1) {
        *params = CG_USER_PARAMS_;
        return "user";
    }
    i -= 2;
    for (unsigned id = 1; cg_index_coder_at_(id); id++, i--)
        if (i == 0) return cg_index_coder_at_(id)->name;
    return i + 1 < CG_VALUE_CODE_COUNT_ ? cg_value_codes_[i + 1].name : NULL;
}
/* What people call things elsewhere, without '-' and '_', and what it is here. */
static const char *const cg_other_names_[][2] = { { "powersgd", "lowrank:4:512:256" }, { "svd", "atomo:4:512:256" },
    { "int8", "absmax:8:512" }, { "int4", "absmax:4:512" }, { "q8", "absmax:8:512" }, { "q4", "absmax:4:512" },
    { "8bit", "absmax:8:512" }, { "4bit", "absmax:4:512" }, { "quantize", "absmax:8:512" }, { "fp16", "f16" },
    { "float16", "f16" }, { "half", "f16" }, { "bfloat16", "bf16" }, { "fp4", "mxfp4" }, { "f32", "dense" },
    { "fp32", "dense" }, { "float32", "dense" }, { "float", "dense" }, { "none", "dense" }, { "identity", "dense" },
    { "random", "randk:0.01" }, { "randomk", "randk:0.01" }, { "signsgd", "sign" }, { "efsignsgd", "efsign" },
    { "1bit", "onebit" }, { "1bitsgd", "onebit" }, { "ternary", "terngrad" }, { "3lc", "threelc:1" },
    { "hadamard", "rotate:2" }, { "rice", "golomb" }, { "elias", "omega" }, { "entropy", "huffman" } };

static int cg_unknown_name_(cg_parser_ *s, cg_word_ w) {
    const char *nearest = NULL, *nearest_params = "", *name, *params;
    char letters[CG_NEAR_LETTERS_ + 1];
    int nearest_distance = 99;
    cg_why_at_(s, w.p);
    cg_text_str_(&s->why, "no operator ");
    cg_why_quote_(s, w);
    cg_text_str_(&s->why, "; ");
    letters[cg_letters_(w.p, w.len, letters)] = 0;
    for (size_t i = 0; i < sizeof cg_other_names_ / sizeof *cg_other_names_; i++)
        if (cg_same_text_(letters, cg_other_names_[i][0])) nearest = cg_other_names_[i][1];
    if (nearest) {
        cg_text_str_(&s->why, "did you mean '");
        cg_text_str_(&s->why, nearest);
        cg_text_str_(&s->why, "'?");
        return 0;
    }
    for (size_t i = 0; (name = cg_stage_name_(i, &params)) != NULL; i++) {
        size_t len = 0;
        const int d = cg_name_distance_(w, name);
        if (d < nearest_distance) {
            nearest_distance = d;
            nearest = name;
            nearest_params = "";
        }
        /* a name, and its parameter without the ':' */
        while (len < w.len && name[len] && cg_lower_(w.p[len]) == name[len]) len++;
        if (*params && !name[len] && len < w.len && (cg_lower_(w.p[len]) < 'a' || cg_lower_(w.p[len]) > 'z') &&
            w.p[len] != '-' && w.p[len] != '_' && nearest_distance > 0) {
            nearest_distance = 0;
            nearest = name;
            nearest_params = params;
        }
    }
    if (!nearest) {
        cg_text_str_(&s->why, "the operators are in the table of compgrad.h; one is 'topk:0.01|absmax:4:512'");
        return 0;
    }
    cg_text_str_(&s->why, "did you mean ");
    cg_why_example_(s, nearest, nearest_params);
    cg_text_char_(&s->why, '?');
    return 0;
}

/* ---- numbers ---- */

typedef struct cg_param_ {
    const char *stage, *stage_params; /* whose parameter it is, and all of its parameters */
    const char *name;                 /* up to '=' */
    double lo, hi;
    int lo_exclusive; /* lo itself is too small */
    int is_whole;
    int is_ratio; /* may be given in percent */
} cg_param_;
static cg_param_ cg_param_make_(const char *stage, const char *stage_params, const char *name, double lo, double hi) {
    cg_param_ p;
    p.stage = stage;
    p.stage_params = stage_params;
    p.name = name;
    p.lo = lo;
    p.hi = hi;
    p.lo_exclusive = p.is_ratio = 0;
    p.is_whole = 1;
    return p;
}
/* What follows of a sentence about a parameter: its range, and an example. */
static int cg_why_range_(cg_parser_ *s, const cg_param_ *p) {
    cg_text_str_(&s->why, ": ");
    if (p->is_whole) cg_text_str_(&s->why, "a whole number ");
    if (p->lo >= 0.0) {
        cg_text_str_(&s->why, p->lo_exclusive ? "above " : "from ");
        cg_text_float_(&s->why, (float)p->lo);
        if (p->hi < 1e9) {
            cg_text_str_(&s->why, p->lo_exclusive ? ", at most " : " to ");
            cg_text_float_(&s->why, (float)p->hi);
        } else if (!p->lo_exclusive) cg_text_str_(&s->why, " on");
        cg_text_str_(&s->why, ", ");
    }
    cg_text_str_(&s->why, "as in ");
    cg_why_example_(s, p->stage, p->stage_params);
    return 0;
}
/* "at 5: '2' <problem> ratio of topk: <range>, <example>" */
static int cg_why_param_(cg_parser_ *s, cg_word_ w, const char *problem, const cg_param_ *p) {
    cg_why_at_(s, w.p);
    cg_why_quote_(s, w);
    cg_text_str_(&s->why, problem);
    cg_why_param_name_(s, p->name);
    cg_text_str_(&s->why, " of ");
    cg_text_str_(&s->why, p->stage);
    return cg_why_range_(s, p);
}
static int cg_why_missing_(cg_parser_ *s, const cg_param_ *p) {
    cg_why_at_(s, s->p);
    cg_text_str_(&s->why, p->stage);
    cg_text_str_(&s->why, " lacks its ");
    cg_why_param_name_(s, p->name);
    return cg_why_range_(s, p);
}
/* The number of the next parameter, as *value and as *d. */
static int cg_parse_number_(cg_parser_ *s, const cg_param_ *p, double *value, cg_decimal_ *d) {
    cg_word_ w = cg_word_next_(s), all = w;
    int is_percent = w.len && w.p[w.len - 1] == '%', has_comma = 0;
    float f;
    if (!w.len) return cg_why_missing_(s, p);
    s->p += w.len;
    if (is_percent) w.len--;
    for (size_t i = 0; i < w.len; i++) has_comma |= w.p[i] == ',';
    if (!cg_decimal_read_(w, d))
        return cg_why_param_(s, all,
            has_comma ? " is not a number (decimals follow a '.'), but should be the "
                      : " is not a number, but should be the ",
            p);
    is_percent |= cg_take_(s, '%');
    if (is_percent && !p->is_ratio) return cg_why_param_(s, all, " is a percentage, but should be the ", p);
    if (p->is_whole && d->has_point) return cg_why_param_(s, all, " is not a whole number, but should be the ", p);
    if (is_percent) d->exponent -= 2;
    f = cg_float_from_decimal_(d->digits, d->exponent);
    *value = p->is_whole ? (double)d->whole : (double)f;
    /* CG_FLT_MAX_ itself, or a number beyond the range that was cut to it? */
    if (p->is_whole ? d->overflows
                    : f >= CG_FLT_MAX_ && cg_float_from_decimal_(d->digits, d->exponent - 1) >= CG_FLT_MAX_ / 9.9f)
        *value = 1e300;
    if (d->minus) *value = -*value;
    if (!(*value >= p->lo && *value <= p->hi) || (p->lo_exclusive && *value == p->lo))
        return cg_why_param_(s, all, " is out of range for the ", p);
    return 1;
}
/* ':' and the number behind it */
static int cg_parse_param_(cg_parser_ *s, const cg_param_ *p, double *value) {
    cg_decimal_ d;
    return cg_take_(s, ':') ? cg_parse_number_(s, p, value, &d) : cg_why_missing_(s, p);
}

/* ---- stages ---- */

/* The parameter of a preset by the letter of its range. */
static cg_param_ cg_param_of_(const cg_preset_row_ *row, const char *name, char range) {
    cg_param_ p = cg_param_make_(row->name, row->params, name, 1.0, 8.0); /* b: bits */
    switch (range) {
    case 'l': p.hi = 127.0; break;                /* levels */
    case 's': p.hi = (double)CG_SIZE_MAX_; break; /* values in a bucket or bin */
    case 'm': p.hi = (double)1.99999988f; break;  /* multiplier */
    case 'r': p.hi = 1.0; break;                  /* ratio */
    case 'e': p.hi = 4.0; break;                  /* bits of eden */
    case 'p': p.hi = (double)CG_FLT_MAX_; break;  /* any positive number */
    default: break;
    }
    p.is_ratio = range == 'r';
    p.is_whole = range == 'b' || range == 'l' || range == 's';
    if (range == 'r' || range == 'e' || range == 'p') {
        p.lo = 0.0;
        p.lo_exclusive = 1;
    }
    return p;
}
static int cg_parse_preset_(cg_parser_ *s, size_t which, cg_op *op) {
    const cg_preset_row_ *row = &cg_preset_rows_[which];
    const char *name = row->params;
    double a[3] = { 0.0, 0.0, 0.0 };
    size_t i = 0;
    for (int j = 0; row->ranges[j]; j++, name = cg_params_skip_(name)) {
        const cg_param_ p = cg_param_of_(row, name, row->ranges[j]);
        if (!cg_parse_param_(s, &p, &a[j])) return 0;
    }
#define CG_PRESET_(name_, params, ranges, preset) \
  if (i++ == which) *op = preset;
    CG_PRESET_LIST_(CG_PRESET_)
#undef CG_PRESET_
    return 1;
}
/* What follows "user". */
static int cg_parse_user_(cg_parser_ *s, cg_op *op) {
    static const double hi[4] = { 255.0, 65535.0, (double)CG_SIZE_MAX_, (double)CG_FLT_MAX_ };
    const char *name = CG_USER_PARAMS_;
    double a[4];
    for (int i = 0; i < 4; i++, name = cg_params_skip_(name)) {
        cg_param_ p = cg_param_make_("user", CG_USER_PARAMS_, name, i == 0 ? 128.0 : i == 3 ? -hi[3] : 0.0, hi[i]);
        p.is_whole = i < 3;
        if (!cg_parse_param_(s, &p, &a[i])) return 0;
    }
    *op = cg_user((int)a[0], (int)a[1], (uint32_t)a[2], (float)a[3]);
    return 1;
}
/* The ratio of a stage, or k= and a number in its place: the ratio may then be any legal one, as k decides. */
static int cg_parse_ratio_(cg_parser_ *s, const cg_stage_row_ *row, const cg_param_ *p, cg_op *op, double *ratio) {
    const char *before = s->p;
    const cg_param_ k = cg_param_make_(p->stage, "k=k=100", "k=", 1.0, (double)UINT64_MAX);
    cg_decimal_ d;
    cg_word_ w;
    double count;
    if (!cg_take_(s, ':')) return cg_why_missing_(s, p);
    w = cg_word_next_(s);
    if (w.len < 2 || cg_lower_(w.p[0]) != 'k' || w.p[1] != '=') {
        s->p = before;
        return cg_parse_param_(s, p, ratio);
    }
    if (!(row->traits & (CG_TAKES_K_ | CG_SAMPLES_RATIO_)))
        return cg_why_param_(s, w, " is a count, which only topk, mstopk and randk take; give the ", p);
    s->p = w.p + 2;
    if (!cg_parse_number_(s, &k, &count, &d)) return 0;
    op->k = d.whole;
    *ratio = 1.0;
    return 1;
}
/* A ':' stands behind a stage that is complete without it; flags is a list of two, or NULL. */
static int cg_why_too_many_(cg_parser_ *s, cg_word_ w, const char *name, const char *params, const char *const *flags) {
    cg_decimal_ d;
    const char *nearest = NULL;
    cg_why_at_(s, w.p);
    if (!w.len || cg_decimal_read_(w, &d)) {
        cg_why_quote_(s, w);
        cg_text_str_(&s->why, " is one parameter too many: ");
        cg_why_example_(s, name, params);
        cg_text_str_(&s->why, " is complete");
        return 0;
    }
    cg_text_str_(&s->why, name);
    cg_text_str_(&s->why, " has no flag ");
    cg_why_quote_(s, w);
    for (int i = 0; flags && i < 2; i++)
        if (flags[i][0] && cg_name_distance_(w, flags[i]) < 99) nearest = flags[i];
    if (nearest) {
        cg_text_str_(&s->why, "; did you mean '");
        cg_text_str_(&s->why, nearest);
        cg_text_str_(&s->why, "'?");
    } else if (flags && flags[0][0]) {
        cg_text_str_(&s->why, "; it has ");
        cg_text_str_(&s->why, flags[0]);
        cg_text_str_(&s->why, flags[1][0] ? " and " : "");
        cg_text_str_(&s->why, flags[1]);
    } else {
        cg_text_str_(&s->why, "; ");
        cg_why_example_(s, name, params);
        cg_text_str_(&s->why, " is complete");
    }
    return 0;
}
/* The flags of a stage, in any order. */
static int cg_parse_flags_(cg_parser_ *s, const cg_stage_row_ *row, cg_stage *stage) {
    while (cg_take_(s, ':')) {
        const cg_word_ w = cg_word_next_(s);
        unsigned f = 0;
        while (f < 2 && !(row->flag_names[f][0] && cg_word_is_(w, row->flag_names[f]))) f++;
        if (f == 2) return cg_why_too_many_(s, w, row->name, row->params, row->flag_names);
        if (stage->flags >> f & 1) return cg_why_(s, w.p, "this flag stands twice: once is enough");
        stage->flags = (uint8_t)(stage->flags | 1u << f);
        s->p += w.len;
    }
    return 1;
}
static int cg_parse_row_(cg_parser_ *s, const cg_stage_row_ *row, cg_op *op) {
    const char *name = row->params;
    cg_stage stage = CG_ZERO;
    double v;
    stage.id = row->id;
    if (row->arg_hi) {
        const cg_param_ p = cg_param_make_(row->name, row->params, name, row->arg_lo, row->arg_hi);
        if (!cg_parse_param_(s, &p, &v)) return 0;
        stage.arg = (uint16_t)v;
        name = cg_params_skip_(name);
    }
    if (row->size_hi) {
        const cg_param_ p = cg_param_make_(row->name, row->params, name, row->size_lo, row->size_hi);
        const char *before = s->p;
        int is_there = cg_take_(s, ':');
        const cg_word_ w = cg_word_next_(s);
        is_there = is_there && w.len && ((w.p[0] >= '0' && w.p[0] <= '9') || w.p[0] == '-' || w.p[0] == '.');
        s->p = before;
        stage.size = row->size_default;
        if (is_there || row->size_default < row->size_lo) {
            if (!cg_parse_param_(s, &p, &v)) return 0;
            stage.size = (uint32_t)v;
        }
        name = cg_params_skip_(name);
    }
    if (row->value_hi > 0.0f) {
        cg_param_ p = cg_param_make_(row->name, row->params, name, (double)row->value_lo, (double)row->value_hi);
        p.lo_exclusive = row->value_lo_exclusive;
        p.is_ratio = row->value_hi == 1.0f;
        p.is_whole = row->value_hi == 16777216.0f; /* columns of a matrix */
        if (!(p.is_ratio ? cg_parse_ratio_(s, row, &p, op, &v) : cg_parse_param_(s, &p, &v))) return 0;
        stage.value = (float)v;
    }
    *cg_op_stage_(op, row->slot) = stage;
    return cg_parse_flags_(s, row, cg_op_stage_(op, row->slot));
}
/* One stage, code or preset that has the name w; *op has nothing else. */
static int cg_parse_stage_(cg_parser_ *s, cg_word_ w, cg_op *op) {
    *op = cg_dense();
    s->p = w.p + w.len;
    for (unsigned slot = 0; slot < CG_SLOT_COUNT_; slot++)
        for (unsigned id = 1; cg_row_at_(slot, id); id++)
            if (cg_word_is_(w, cg_row_at_(slot, id)->name)) {
                if (!cg_is_left_out_(cg_row_at_(slot, id))) return cg_parse_row_(s, cg_row_at_(slot, id), op);
                cg_op_stage_(op, slot)->id = (uint8_t)id; /* cg_parse_all_ says it */
                return 1;
            }
    for (size_t i = 0; i < CG_PRESET_ROWS_; i++)
        if (cg_word_is_(w, cg_preset_rows_[i].name)) return cg_parse_preset_(s, i, op);
    for (unsigned i = 1; cg_index_coder_at_(i); i++)
        if (cg_word_is_(w, cg_index_coder_at_(i)->name)) return op->code.id = (uint8_t)i, 1;
    for (unsigned i = 1; i < CG_VALUE_CODE_COUNT_; i++)
        if (cg_word_is_(w, cg_value_codes_[i].name)) return op->code.arg = (uint16_t)i, 1;
    if (cg_word_is_(w, "dense")) return 1;
    return cg_word_is_(w, "user") ? cg_parse_user_(s, op) : cg_unknown_name_(s, w);
}

/* ---- rows of stages ---- */

typedef struct cg_stages_read_ {
    cg_op op;                      /* of all stages so far */
    cg_word_ name[CG_SLOT_COUNT_]; /* of the stage that fills each slot; p NULL: none does */
    cg_word_ last;                 /* the stage that was read last; p NULL: none was */
    unsigned reached;              /* the last slot that is filled */
    int left_out;                  /* the sentence names a stage that this build was made without */
} cg_stages_read_;
static const char *const cg_slot_names_[] = { "sample", "transform", "selection", "quantizer", "code", "clip" };

/* Another stage, w, must come behind the others, in a slot that is free: it would be done in another order than the
   text says. */
static int cg_stage_fits_in_(cg_parser_ *s, const cg_stages_read_ *read, cg_word_ w, const cg_op *one) {
    for (unsigned slot = 0; slot < CG_SLOT_COUNT_; slot++) {
        const int has_code = slot == CG_SLOT_CODE_ &&
            !((one->code.id && read->op.code.id) || (one->code.arg && read->op.code.arg)); /* two kinds of codes */
        if (cg_stage_is_empty_(cg_op_stage_const_(one, slot)) || has_code) continue;
        if (!read->name[slot].p && cg_slot_place_(slot) >= cg_slot_place_(read->reached)) continue;
        cg_why_at_(s, w.p);
        if (read->name[slot].p) {
            cg_why_quote_(s, w);
            cg_text_str_(&s->why, " is a second ");
            cg_text_str_(&s->why, cg_slot_names_[slot]);
            cg_text_str_(&s->why, " after ");
            cg_why_quote_(s, read->name[slot]);
            cg_text_str_(
                &s->why, slot == CG_SLOT_CODE_ ? ": indices and values have one code each" : ": only one fits");
            return 0;
        }
        cg_why_quote_(s, w);
        cg_text_str_(&s->why, " is a ");
        cg_text_str_(&s->why, cg_slot_names_[slot]);
        cg_text_str_(&s->why, " and must stand before ");
        cg_why_quote_(s, read->name[read->reached]);
        cg_text_str_(&s->why, "; the order is sample|transform|selection|clip|quantizer|code");
        return 0;
    }
    if (read->op.k && one->k) return cg_why_(s, w.p, "k stands twice: give this stage a ratio, as in 'topk:0.01'");
    if ((read->op.k || one->k) && read->op.sample.id && cg_has_(one, CG_TAKES_K_) && !one->k)
        return cg_why_(s, w.p, "with topk or mstopk, k is their count: give randk a ratio, as in 'randk:0.1'");
    return 1;
}
/* What stands behind the stage of this name is neither '|' nor the end. */
static int cg_why_trailing_(cg_parser_ *s, cg_word_ stage) {
    const int is_param = cg_take_(s, ':');
    const cg_word_ w = cg_word_next_(s);
    const char *name, *params;
    size_t i = 0;
    while ((name = cg_stage_name_(i, &params)) != NULL && !cg_word_is_(is_param ? stage : w, name)) i++;
    if (is_param && name) return cg_why_too_many_(s, w, name, params, NULL);
    cg_why_at_(s, w.p);
    cg_why_quote_(s, w);
    cg_text_str_(&s->why, " follows a stage without ");
    cg_text_str_(&s->why, name ? "'|'" : "':' or '|'");
    cg_text_str_(&s->why, "; parameters are joined by ':' and stages by '|', as in 'topk:0.01|absmax:4:512'");
    return 0;
}
/* The operator of all stages, which is good by itself, in read->op. */
static int cg_parse_all_(cg_parser_ *s, cg_stages_read_ *read) {
    const char *why;
    unsigned conflict;
    do {
        const cg_word_ w = cg_word_next_(s);
        cg_op one;
        if (!w.len) {
            if (*s->p == ':') return cg_why_(s, s->p, "a name is missing before ':', as in 'topk:0.01'");
            if (*s->p == '|' || (w.p > s->text && read->last.p))
                return cg_why_(s, s->p, "a stage is missing beside '|', as in 'topk:0.01|absmax:4:512'");
            return cg_why_(
                s, s->p, "the text is empty: write an operator, as in 'topk:0.01' or 'topk:0.01|absmax:4:512'");
        }
        if (!cg_parse_stage_(s, w, &one)) return 0;
        why = cg_op_left_out_(&one);
        if (why) return read->left_out = 1, cg_why_(s, w.p, why);
        if (!cg_stage_fits_in_(s, read, w, &one)) return 0;
        for (unsigned i = 0; i < CG_SLOT_COUNT_; i++) {
            const unsigned slot = cg_slot_order_[i];
            if (cg_stage_is_empty_(cg_op_stage_const_(&one, slot))) continue;
            read->reached = slot;
            read->name[slot] = w;
        }
        read->last = w;
        read->op = cg_then(read->op, one);
    } while (cg_take_(s, '|'));
    cg_skip_blanks_(s);
    if (*s->p) return cg_why_trailing_(s, read->last);
    for (unsigned slot = 0; slot < CG_SLOT_COUNT_; slot++)
        if (cg_stage_check_(slot, cg_op_stage_const_(&read->op, slot)) != CG_OK)
            return cg_why_(s, s->text, "a stage has a parameter out of range");
    why = cg_op_conflict_(&read->op, cg_op_traits_(&read->op), &conflict);
    if (why) return cg_why_(s, read->name[conflict].p ? read->name[conflict].p : s->text, why);
    if (cg_op_check_(&read->op) != CG_OK) return cg_why_(s, s->text, "these stages do not go together");
    why = cg_op_only_old_(&read->op);
    return !why || cg_why_(s, read->name[CG_SLOT_QUANTIZE_].p, why);
}
/* *op is zero, which is dense, unless CG_OK is returned. */
static cg_status cg_op_parse_(cg_op *op, const char *text, char *why, size_t cap) {
    cg_parser_ s;
    cg_stages_read_ read;
    cg_status status = CG_E_ARG;
    memset(&read, 0, sizeof read);
    s.text = s.p = text;
    s.why.at = why;
    s.why.end = why && cap ? why + (cap - 1) : why; /* the 0 at the end always fits */
    if (op) *op = read.op;
    if (!op) cg_text_str_(&s.why, "op is NULL: give the address of a cg_op");
    else if (!text) cg_text_str_(&s.why, "text is NULL: give an operator, as in 'topk:0.01'");
    else if (cg_parse_all_(&s, &read)) {
        *op = read.op;
        status = CG_OK;
    } else if (read.left_out) status = CG_E_VERSION;
    if (why && cap) *s.why.at = 0;
    return status;
}
CG_API_ cg_status cg_op_parse_why(cg_op *op, const char *text, char *why, size_t cap) {
    cg_fenv_ env = cg_fenv_enter_();
    cg_status s = cg_op_parse_(op, text, why, cap);
    cg_fenv_leave_(env);
    return s;
}
CG_API_ cg_status cg_op_parse(cg_op *op, const char *text) { return cg_op_parse_why(op, text, NULL, 0); }
