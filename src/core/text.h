/* text: operators to text, and the pieces of sentences

   Offers   cg_op_print; cg_text_, which sentences are written to; cg_float_from_decimal_
   Needs    base, stages
   Touches  the caller's text
   Text is written without libc and locale. A stage is name:arg:size:value:flag, stages are joined by '|', and what a
   row of the stage table does not have is left out. */

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
    const cg_stage_row_ *row = cg_row_at_(slot, s->id);
    int has_count = op->k && slot == (cg_has_(op, CG_TAKES_K_) ? CG_SLOT_SELECT_ : CG_SLOT_SAMPLE_);
    if (slot == CG_SLOT_CODE_) {
        cg_text_str_(t, cg_index_coder_at_(s->id)->name);
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
