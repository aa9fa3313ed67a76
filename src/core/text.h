/* text: operators to text and back

   Offers   cg_op_print, cg_op_parse
   Needs    base, stages, presets
   Touches  the caller's text or operator
   Text is read and written without libc and locale. A stage is name:arg:size:value:flag, stages are joined by '|',
   and what a row of the stage table does not have is left out. */

typedef struct cg_text_ {
    char *at, *end; /* next character, end of the buffer; at == end: full, and text may have been lost */
} cg_text_;

/* What no longer fits is dropped; cg_op_print_ sees it by at == end. */
static void cg_text_char_(cg_text_ *t, char c) {
    if (t->at < t->end) *t->at++ = c;
}
static void cg_text_str_(cg_text_ *t, const char *s) {
    while (*s) cg_text_char_(t, *s++);
}
static void cg_text_uint_(cg_text_ *t, uint64_t v) {
    char digits[20];
    int count = 0;
    do {
        digits[count++] = (char)('0' + v % 10);
        v /= 10;
    } while (v);
    while (count) cg_text_char_(t, digits[--count]);
}
static double cg_power10_(int e) {
    double p = 1.0;
    while (e-- > 0) p *= 10.0;
    return p;
}
/* digits * 10^exponent as a float, at most CG_FLT_MAX_. Nearly always the nearest; printing and parsing agree
   because both call this function. */
static float cg_float_from_decimal_(uint64_t digits, int exponent) {
    double d = (double)digits;
    if (!digits || exponent < -80) return 0.0f;
    if (exponent > 60) return CG_FLT_MAX_;
    d = exponent < 0 ? d / cg_power10_(-exponent) : d * cg_power10_(exponent);
    return d >= (double)CG_FLT_MAX_ ? CG_FLT_MAX_ : (float)d;
}
/* The shortest decimal that reads back as the same float. f >= 0 and finite. */
static void cg_text_float_(cg_text_ *t, float f) {
    uint64_t digits = 0;
    int exponent = 0, point;
    double d = (double)f;
    if (f > 0.0f) {
        while (d >= 1.0) {
            d /= 10.0;
            exponent++;
        }
        while (d < 0.1) {
            d *= 10.0;
            exponent--;
        }
        /* now d is in [0.1, 1), and f = d*10^exponent */
        for (int many = 1; many <= 17; many++) {
            digits = (uint64_t)(d * cg_power10_(many) + 0.5);
            if (cg_float_from_decimal_(digits, exponent - many) == f || many == 17) {
                exponent -= many;
                break;
            }
        }
    }
    for (; digits && digits % 10 == 0; digits /= 10) exponent++;
    /* point: how many digits stand before the last */
    for (point = 0; point < 9 && digits >= (uint64_t)cg_power10_(point + 1); point++) {}
    if (exponent >= 0 && exponent + point <= 8) {
        cg_text_uint_(t, digits * (uint64_t)cg_power10_(exponent));
    } else if (exponent < 0 && exponent >= -9) {
        uint64_t pow10 = (uint64_t)cg_power10_(-exponent);
        cg_text_uint_(t, digits / pow10);
        cg_text_char_(t, '.');
        for (digits %= pow10, pow10 /= 10; pow10; digits %= pow10, pow10 /= 10)
            cg_text_char_(t, (char)('0' + digits / pow10));
    } else {
        cg_text_uint_(t, digits);
        cg_text_char_(t, 'e');
        if (exponent < 0) cg_text_char_(t, '-');
        cg_text_uint_(t, (uint64_t)(exponent < 0 ? -exponent : exponent));
    }
}

/* The stage in that slot, which is not empty. */
static void cg_text_stage_(cg_text_ *t, const cg_op *op, unsigned slot) {
    const cg_stage *s = cg_op_stage_const_(op, slot);
    const cg_stage_row_ *row = cg_stage_row_of_(slot, s->id);
    int has_count = op->k && slot == (cg_has_fixed_k_(op) ? CG_SLOT_SELECT_ : CG_SLOT_SAMPLE_);
    if (slot == CG_SLOT_CODE_) {
        cg_text_str_(t, cg_index_code_names_[s->id]);
        if (s->id && s->arg) cg_text_char_(t, '|');
        cg_text_str_(t, cg_value_code_names_[s->arg]);
        return;
    }
    if (!row) {
        cg_text_str_(t, "user:");
        cg_text_uint_(t, s->id);
        cg_text_char_(t, ':');
        cg_text_uint_(t, s->arg);
        cg_text_char_(t, ':');
        cg_text_uint_(t, s->size);
        cg_text_char_(t, ':');
        if (s->value < 0.0f) cg_text_char_(t, '-');
        cg_text_float_(t, s->value < 0.0f ? -s->value : s->value);
        return;
    }
    cg_text_str_(t, row->name);
    if (row->arg_hi) {
        cg_text_char_(t, ':');
        cg_text_uint_(t, s->arg);
    }
    if (row->size_hi && (s->size != row->size_default || row->size_default < row->size_lo)) {
        cg_text_char_(t, ':');
        cg_text_uint_(t, s->size);
    }
    if (has_count) {
        cg_text_str_(t, ":k=");
        cg_text_uint_(t, op->k);
    } else if (row->value_hi > 0.0f) {
        cg_text_char_(t, ':');
        cg_text_float_(t, s->value);
    }
    for (unsigned f = 0; f < 2; f++)
        if (s->flags >> f & 1) {
            cg_text_char_(t, ':');
            cg_text_str_(t, row->flag_names[f]);
        }
}
/* CG_E_ARG and CG_E_CAPACITY leave an empty text. */
static cg_status cg_op_print_(const cg_op *op, char *text, size_t cap) {
    cg_text_ t;
    int first = 1;
    if (!op || !text) return CG_E_ARG;
    if (cap) text[0] = 0;
    if (cg_op_check_new_(op) != CG_OK) return CG_E_ARG;
    t.at = text;
    t.end = text + cap;
    for (unsigned slot = 0; slot < CG_SLOT_COUNT_; slot++) {
        if (cg_stage_is_empty_(cg_op_stage_const_(op, slot))) continue;
        if (!first) cg_text_char_(&t, '|');
        first = 0;
        cg_text_stage_(&t, op, slot);
    }
    if (first) cg_text_str_(&t, "dense");
    if (t.at == t.end) {
        if (cap) text[0] = 0;
        return CG_E_CAPACITY;
    }
    *t.at = 0;
    return CG_OK;
}

CG_API_ cg_status cg_op_print(const cg_op *op, char *text, size_t cap) {
    cg_fenv_ env = cg_fenv_enter_();
    cg_status s = cg_op_print_(op, text, cap);
    cg_fenv_leave_(env);
    return s;
}

/* Parsing: each function returns 1 and moves *text behind what it read, or returns 0; of
   these cg_parse_literal_, cg_parse_name_ and cg_parse_uint_ leave *text as it was. */
static int cg_parse_literal_(const char **text, const char *word) {
    const char *p = *text;
    while (*word)
        if (*p++ != *word++) return 0;
    *text = p;
    return 1;
}
/* A whole word: ':', '|' or the end must follow. */
static int cg_parse_name_(const char **text, const char *name) {
    const char *p = *text;
    if (!cg_parse_literal_(&p, name) || (*p && *p != ':' && *p != '|')) return 0;
    *text = p;
    return 1;
}
/* A decimal number up to limit. */
static int cg_parse_uint_(const char **text, uint64_t limit, uint64_t *v) {
    const char *p = *text;
    uint64_t r = 0;
    for (; *p >= '0' && *p <= '9'; p++) {
        uint64_t digit = (uint64_t)(*p - '0');
        if (r > (limit - digit) / 10) return 0;
        r = r * 10 + digit;
    }
    if (p == *text) return 0;
    *text = p;
    *v = r;
    return 1;
}
/* A number without a sign: digits with at most one point, then perhaps an exponent. 0 beyond the range of a float. */
static int cg_parse_float_(const char **text, float *f) {
    const char *p = *text;
    uint64_t digits = 0, e = 0;
    int exponent = 0, any = 0, point = 0, minus = 0;
    for (;; p++) {
        if (*p == '.' && !point) {
            point = 1;
            continue;
        }
        if (*p < '0' || *p > '9') break;
        any = 1;
        if (digits < 100000000000000000u) {
            digits = digits * 10 + (uint64_t)(*p - '0');
            exponent -= point;
        } else exponent += !point;
        if (exponent > 100000) exponent = 100000;
    }
    if (!any) return 0;
    if (*p == 'e' || *p == 'E') {
        p++;
        minus = *p == '-';
        if (*p == '-' || *p == '+') p++;
        if (!cg_parse_uint_(&p, 100000, &e)) return 0;
        exponent += minus ? -(int)e : (int)e;
    }
    *text = p;
    *f = cg_float_from_decimal_(digits, exponent);
    /* CG_FLT_MAX_ itself, or a number beyond the range that was cut to it? */
    return *f < CG_FLT_MAX_ || cg_float_from_decimal_(digits, exponent - 1) < CG_FLT_MAX_ / 9.9f;
}
/* What follows "user:": id:arg:size:value, all of them. */
static int cg_parse_user_(const char **text, cg_op *op) {
    uint64_t id, arg, size;
    float value, sign;
    if (!cg_parse_uint_(text, 255, &id) || !cg_parse_literal_(text, ":") || !cg_parse_uint_(text, 65535, &arg) ||
        !cg_parse_literal_(text, ":") || !cg_parse_uint_(text, 0xffffffffu, &size) || !cg_parse_literal_(text, ":"))
        return 0;
    sign = cg_parse_literal_(text, "-") ? -1.0f : 1.0f;
    if (!cg_parse_float_(text, &value)) return 0;
    *op = cg_user((int)id, (int)arg, (uint32_t)size, sign * value);
    return 1;
}
/* Presets by name that are more than one stage, and other names of single stages: name, number of parameters,
   operator. Parameters are a[0], a[1], a[2], at most 1e9, so that conversions to integers are defined. */
#define CG_PRESET_LIST_(X)                             \
  X("qsgd", 1, cg_qsgd((int)a[0]))                     \
  X("threelc", 1, cg_threelc(a[0]))                    \
  X("adacomp", 1, cg_adacomp((uint32_t)a[0]))          \
  X("adaq", 1, cg_adaq(a[0]))                          \
  X("sbc", 1, cg_sbc(a[0]))                            \
  X("stc", 1, cg_stc(a[0]))                            \
  X("eden", 1, cg_eden(a[0]))                          \
  X("drive", 0, cg_drive())                            \
  X("srq", 1, cg_srq((int)a[0]))                       \
  X("demo_dct", 1, cg_demo_dct(a[0]))                  \
  X("demo", 1, cg_demo_dct(a[0]))                      \
  X("qsparse", 2, cg_qsparse(a[0], (int)a[1]))         \
  X("cocktail", 3, cg_cocktail(a[0], a[1], (int)a[2])) \
  X("klevel", 2, cg_klevel((int)a[0], (uint32_t)a[1])) \
  X("fp8", 0, cg_fp8())                                \
  X("fp8_e5m2", 0, cg_fp8_e5m2())                      \
  X("mxfp8", 0, cg_mxe4m3())                           \
  X("mxfp8_e5m2", 0, cg_mxe5m2())                      \
  X("wangni_variance", 1, cg_wangnivar(a[0]))

static int cg_parse_params_(const char **text, float *params, int count) {
    for (int p = 0; p < count; p++)
        if (!cg_parse_literal_(text, ":") || !cg_parse_float_(text, &params[p]) || params[p] > 1e9f) return 0;
    return 1;
}
static int cg_parse_preset_(const char **text, cg_op *op) {
    float a[3] = { 0.0f, 0.0f, 0.0f };
#define CG_PRESET_(name, count, preset)              \
  if (cg_parse_name_(text, name)) {                  \
    if (!cg_parse_params_(text, a, count)) return 0; \
    *op = preset;                                    \
    return 1;                                        \
  }
    CG_PRESET_LIST_(CG_PRESET_)
#undef CG_PRESET_
    return 0;
}
/* ":size", or nothing if the stage has a default. */
static int cg_parse_size_(const char **text, const cg_stage_row_ *row, cg_stage *s) {
    const char *p = *text;
    uint64_t v;
    s->size = row->size_default;
    if (cg_parse_literal_(&p, ":") && *p >= '0' && *p <= '9') {
        if (!cg_parse_uint_(&p, 0xffffffffu, &v)) return 0;
        s->size = (uint32_t)v;
        *text = p;
        return 1;
    }
    return row->size_default >= row->size_lo; /* left out */
}
/* One stage, code or preset; *op has nothing else. */
static int cg_parse_stage_(const char **text, cg_op *op) {
    const cg_stage_row_ *row = NULL;
    cg_stage s = CG_ZERO;
    uint64_t v;
    *op = cg_dense();
    if (cg_parse_name_(text, "dense")) return 1;
    if (cg_parse_literal_(text, "user:")) return cg_parse_user_(text, op);
    for (unsigned i = 1; i < CG_INDEX_CODE_COUNT_; i++)
        if (cg_parse_name_(text, cg_index_code_names_[i])) {
            op->code.id = (uint8_t)i;
            return 1;
        }
    for (unsigned i = 1; i < CG_VALUE_CODE_COUNT_; i++)
        if (cg_parse_name_(text, cg_value_code_names_[i])) {
            op->code.arg = (uint16_t)i;
            return 1;
        }
    for (size_t i = 0; i < CG_STAGE_ROWS_ && !row; i++)
        if (cg_parse_name_(text, cg_stage_rows_[i].name)) row = &cg_stage_rows_[i];
    if (!row) return cg_parse_preset_(text, op);
    s.id = row->id;
    if (row->arg_hi) {
        if (!cg_parse_literal_(text, ":") || !cg_parse_uint_(text, 65535, &v)) return 0;
        s.arg = (uint16_t)v;
    }
    if (row->size_hi && !cg_parse_size_(text, row, &s)) return 0;
    if (row->value_hi == 1.0f && cg_parse_literal_(text, ":k=")) { /* the ratio may be any legal one, as k decides */
        if (!cg_parse_uint_(text, CG_TOO_LARGE_, &op->k) || !op->k) return 0;
        s.value = 1.0f;
    } else if (row->value_hi > 0.0f) {
        if (!cg_parse_literal_(text, ":") || !cg_parse_float_(text, &s.value)) return 0;
    }
    for (unsigned f = 0; f < 2; f++) {
        const char *p = *text;
        if (row->allowed_flags >> f & 1 && cg_parse_literal_(&p, ":") && cg_parse_name_(&p, row->flag_names[f])) {
            s.flags = (uint8_t)(s.flags | 1u << f);
            *text = p;
        }
    }
    *cg_op_stage_(op, row->slot) = s;
    return 1;
}
/* *op is zero, which is dense, unless CG_OK is returned. */
static cg_status cg_op_parse_(cg_op *op, const char *text) {
    cg_op all = CG_ZERO, one;
    unsigned reached = 0; /* the slot that the last stage fills */
    int more;
    if (!op) return CG_E_ARG;
    *op = all;
    if (!text) return CG_E_ARG;
    do {
        if (!cg_parse_stage_(&text, &one)) return CG_E_ARG;
        for (unsigned slot = 0; slot < CG_SLOT_COUNT_; slot++) {
            if (cg_stage_is_empty_(cg_op_stage_const_(&one, slot))) continue;
            if (slot < reached) return CG_E_ARG; /* out of order: it would be done in another one than the text says */
            reached = slot;
        }
        all = cg_then(all, one);
        more = cg_parse_literal_(&text, "|");
    } while (more);
    if (*text || cg_op_check_new_(&all) != CG_OK) return CG_E_ARG;
    *op = all;
    return CG_OK;
}
CG_API_ cg_status cg_op_parse(cg_op *op, const char *text) {
    cg_fenv_ env = cg_fenv_enter_();
    cg_status s = cg_op_parse_(op, text);
    cg_fenv_leave_(env);
    return s;
}
