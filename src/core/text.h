/* text: operators to text

   Offers   cg_op_print
   Needs    base (words), stages
   Touches  the caller's text
   Text is written without libc and locale. A stage is name:arg:size:value:flag, stages are joined by '|', and what a
   row of the stage table does not have is left out. */

/* The stage in that slot, which is not empty. */
static void cg_text_stage_(cg_text_ *t, const cg_op *op, unsigned slot) {
    const cg_stage *s = cg_op_stage_const_(op, slot);
    const cg_stage_row_ *row = cg_row_at_(slot, s->id);
    int has_count = op->k && slot == (cg_has_(op, CG_TAKES_K_) ? CG_SLOT_SELECT_ : CG_SLOT_SAMPLE_);
    if (slot == CG_SLOT_CODE_) {
        cg_text_str_(t, cg_index_coder_at_(s->id)->name);
        if (s->id && s->arg) cg_text_char_(t, '|');
        cg_text_str_(t, cg_value_codes_[s->arg].name);
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
    for (unsigned i = 0; i < CG_SLOT_COUNT_; i++) {
        const unsigned slot = cg_slot_order_[i];
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
