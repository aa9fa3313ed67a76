/* mean_save: the state of a mean as bytes, and back: as it was, for another number of ranks, for other tensors

   Offers   the public cg_mean_save_bytes, cg_mean_save, cg_mean_load, cg_mean_load_mean, cg_mean_load_moved
   Needs    mean, save
   Touches  the caller's buffer; loading all of the states, and the number of steps
   A blob is little-endian, every part in whole words; nothing is loaded before all blobs have been checked.

   byte 0  "cgmn"  4 version  8 bytes of all  16 steps  24 tensors  32 ranks  36 rank  40 bytes of the configuration
       44 1: one state has all tensors (pack=), that of the first with values  48 zeros
       112 checksum of everything else, as of a packet
   128 the configuration; then of every tensor n, rows, bytes of its name, bytes of its state (u64 each), its name and
       its state as cg_ef_save has it (none if n is 0); all but the states filled to a word with zeros */

enum {
    CG_MEAN_HEADER_BYTES_ = 128,
    CG_MEAN_SEAL_OFFSET_ = 112,
    CG_MEAN_VERSION_ = 1,
    CG_MEAN_RECORD_BYTES_ = 32,
    CG_MEAN_BLOB_MAGIC_ = 0x6e6d6763 /* "cgmn" */
};
static uint64_t cg_mean_words_(uint64_t bytes) { return cg_add_sat_(bytes, 3) & ~(uint64_t)3; }
static size_t cg_mean_text_len_(const char *text) { return text ? cg_text_len_(text) : 0; }
/* The configuration in text, which has room for CG_MEAN_LINE_ bytes; returns its length. */
enum { CG_MEAN_LINE_ = CG_MEAN_OP_TEXT_ + 1024 };
static size_t cg_mean_line_(const cg_mean *m, char *text) {
    cg_text_ t = cg_mean_text_(text, CG_MEAN_LINE_);
    cg_mean_config_print_(&m->config, &t);
    *t.at = 0;
    return (size_t)(t.at - text);
}
static uint64_t cg_mean_blob_bytes_(const cg_mean *m) {
    char line[CG_MEAN_LINE_];
    uint64_t bytes = CG_MEAN_HEADER_BYTES_ + cg_mean_words_(cg_mean_line_(m, line));
    for (size_t i = 0; i < m->tensors; i++) {
        const cg_mean_tensor_ *t = &m->tensor[i];
        bytes = cg_add_sat_(bytes, CG_MEAN_RECORD_BYTES_ + cg_mean_words_(cg_mean_text_len_(t->name)));
        if (t->ef) bytes = cg_add_sat_(bytes, cg_ef_save_bytes(t->ef));
    }
    return bytes;
}
CG_API_ size_t cg_mean_save_bytes(const cg_mean *mean) {
    return mean && mean->magic == CG_MEAN_MAGIC_ ? cg_size_or_zero_(cg_mean_blob_bytes_(mean)) : 0;
}
static uint8_t *cg_mean_put_text_(uint8_t *p, const char *text, size_t len) {
    if (len) memcpy(p, text, len);
    for (; len % 4; len++) p[len] = 0;
    return p + len;
}
CG_API_ cg_status cg_mean_save(const cg_mean *mean, void *buf, size_t cap, size_t *len) {
    char line[CG_MEAN_LINE_];
    uint8_t *p = (uint8_t *)buf;
    cg_status s = CG_OK;
    size_t line_len, bytes;
    if (len) *len = 0;
    if (!mean || !buf || !len) return CG_E_ARG;
    if (mean->magic != CG_MEAN_MAGIC_ || mean->pending) return CG_E_STATE;
    bytes = cg_mean_save_bytes(mean);
    if (!bytes || cap < bytes) return CG_E_CAPACITY;
    line_len = cg_mean_line_(mean, line);
    memset(p, 0, CG_MEAN_HEADER_BYTES_);
    cg_put32_(p, CG_MEAN_BLOB_MAGIC_);
    cg_put32_(p + 4, CG_MEAN_VERSION_);
    cg_put64_(p + 8, bytes);
    cg_put64_(p + 16, mean->steps);
    cg_put64_(p + 24, mean->tensors);
    cg_put32_(p + 32, (uint32_t)mean->transport.size);
    cg_put32_(p + 36, (uint32_t)mean->transport.rank);
    cg_put32_(p + 40, (uint32_t)line_len);
    cg_put32_(p + 44, mean->config.packing != CG_PACK_NONE_);
    p = cg_mean_put_text_(p + CG_MEAN_HEADER_BYTES_, line, line_len);
    for (size_t i = 0; i < mean->tensors && s == CG_OK; i++) {
        const cg_mean_tensor_ *t = &mean->tensor[i];
        const size_t name_len = cg_mean_text_len_(t->name), state = t->ef ? cg_ef_save_bytes(t->ef) : 0;
        size_t saved = 0;
        cg_put64_(p, t->n);
        cg_put64_(p + 8, t->rows);
        cg_put64_(p + 16, name_len);
        cg_put64_(p + 24, state);
        p = cg_mean_put_text_(p + CG_MEAN_RECORD_BYTES_, t->name, name_len);
        if (t->ef) s = cg_ef_save(t->ef, p, state, &saved);
        p += state;
    }
    if (s != CG_OK) return s;
    cg_seal_put_((uint8_t *)buf, bytes, CG_MEAN_SEAL_OFFSET_);
    *len = bytes;
    return CG_OK;
}

/* ---- blobs that are read ---- */

/* A tensor of a blob. */
typedef struct cg_mean_record_ {
    const uint8_t *blob, *end;
    const uint8_t *at; /* of the record */
    size_t index;
    size_t n, rows, name_len, state_bytes;
    const char *name;
    const uint8_t *state;
} cg_mean_record_;
/* Reads the record at r->at; 0: it does not fit in, or says what cannot be. */
static int cg_mean_record_read_(cg_mean_record_ *r) {
    uint64_t room = (uint64_t)(r->end - r->at), name, state;
    if (room < CG_MEAN_RECORD_BYTES_) return 0;
    r->n = cg_size_or_zero_(cg_get64_(r->at));
    r->rows = cg_size_or_zero_(cg_get64_(r->at + 8));
    name = cg_get64_(r->at + 16);
    state = cg_get64_(r->at + 24);
    if (cg_get64_(r->at) > SIZE_MAX / 8 || cg_get64_(r->at + 8) > SIZE_MAX / 8) return 0;
    room -= CG_MEAN_RECORD_BYTES_;
    if (name > room || cg_mean_words_(name) > room || state > room - cg_mean_words_(name)) return 0;
    r->name_len = (size_t)name;
    r->state_bytes = (size_t)state;
    r->name = (const char *)(const void *)(r->at + CG_MEAN_RECORD_BYTES_);
    r->state = r->at + CG_MEAN_RECORD_BYTES_ + (size_t)cg_mean_words_(name);
    return 1;
}
/* The record of that index; *r has been opened, and its records have been checked. */
static void cg_mean_record_seek_(cg_mean_record_ *r, size_t index) {
    if (index < r->index) {
        r->index = 0;
        r->at = r->blob + CG_MEAN_HEADER_BYTES_ + (size_t)cg_mean_words_(cg_get32_(r->blob + 40));
    }
    cg_mean_record_read_(r);
    for (; r->index < index; r->index++) {
        r->at = r->state + r->state_bytes;
        cg_mean_record_read_(r);
    }
}
/* Checks the frame of a blob and opens it at its first record. *values: those of all tensors. */
static cg_status cg_mean_blob_open_(cg_mean *m, cg_mean_record_ *r, const void *buf, size_t len, uint64_t *values) {
    const uint8_t *p = (const uint8_t *)buf;
    uint64_t tensors;
    *values = 0;
    if (!p) return cg_mean_say_(m, CG_E_ARG, "the saved state is NULL");
    if (len < CG_MEAN_HEADER_BYTES_ || cg_get32_(p) != CG_MEAN_BLOB_MAGIC_)
        return cg_mean_say_(m, CG_E_CORRUPT, "these bytes are not a state that cg_mean_save has written");
    if (cg_get32_(p + 4) != CG_MEAN_VERSION_)
        return cg_mean_say_(m, CG_E_VERSION, "a later version of compgrad has written this state");
    if (cg_get64_(p + 8) != len || len % 4 || !cg_seal_is_intact_(p, len, CG_MEAN_SEAL_OFFSET_))
        return cg_mean_say_(m, CG_E_CORRUPT, "the saved state is cut off or damaged: its length or checksum is wrong");
    tensors = cg_get64_(p + 24);
    r->blob = p;
    r->end = p + len;
    r->index = 0;
    if (cg_mean_words_(cg_get32_(p + 40)) > len - CG_MEAN_HEADER_BYTES_ || cg_get32_(p + 32) > 0x7fffffffu ||
        cg_get32_(p + 44) > 1 || !cg_get32_(p + 32) || cg_get32_(p + 36) >= cg_get32_(p + 32))
        return cg_mean_say_(m, CG_E_CORRUPT, "the header of the saved state says what cannot be");
    r->at = p + CG_MEAN_HEADER_BYTES_ + (size_t)cg_mean_words_(cg_get32_(p + 40));
    for (uint64_t i = 0; i < tensors; i++) {
        if (!cg_mean_record_read_(r) || (r->state_bytes != 0) != (r->n && !(cg_get32_(p + 44) && *values)))
            return cg_mean_say_(m, CG_E_CORRUPT, "a tensor of the saved state is damaged");
        *values = cg_add_sat_(*values, r->n);
        r->at = r->state + r->state_bytes;
    }
    if (r->at != r->end) return cg_mean_say_(m, CG_E_CORRUPT, "the saved state has more bytes than its tensors");
    r->at = p + CG_MEAN_HEADER_BYTES_ + (size_t)cg_mean_words_(cg_get32_(p + 40));
    cg_mean_record_seek_(r, 0);
    return CG_OK;
}
static int cg_mean_same_name_(const cg_mean_record_ *r, const char *name) {
    size_t i = 0;
    if (r->name_len != cg_mean_text_len_(name)) return 0;
    while (i < r->name_len && r->name[i] == name[i]) i++;
    return i == r->name_len;
}
static void cg_mean_say_tensor_(cg_text_ *t, uint64_t n, uint64_t rows, const char *name, size_t name_len) {
    cg_text_str_(t, name_len ? "'" : "");
    for (size_t j = 0; j < name_len && j < 40; j++) cg_text_char_(t, name[j] >= ' ' && name[j] <= '~' ? name[j] : '?');
    cg_text_str_(t, name_len ? "' of " : "nameless of ");
    cg_text_uint_(t, n);
    cg_text_str_(t, " values");
    if (rows < 2) return;
    cg_text_str_(t, " in ");
    cg_text_uint_(t, rows);
    cg_text_str_(t, " rows");
}
/* Has it one state for all tensors, as this mean has, or as it has not? */
static cg_status cg_mean_blob_packed_(cg_mean *m, const cg_mean_record_ *r) {
    if (cg_get32_(r->blob + 44) == (m->config.packing != CG_PACK_NONE_)) return CG_OK;
    return cg_mean_say_(m, CG_E_MISMATCH,
        m->config.packing ? "the saved state was opened without pack=, and this mean with it"
                          : "the saved state was opened with pack=, and this mean without");
}
/* Are its tensors those of this mean, by number, name and shape? */
static cg_status cg_mean_blob_same_(cg_mean *m, cg_mean_record_ *r) {
    const uint64_t tensors = cg_get64_(r->blob + 24);
    cg_text_ t = cg_mean_text_(m->why, sizeof m->why);
    for (size_t i = 0; i < m->tensors && tensors == m->tensors; i++) {
        const cg_mean_tensor_ *mine = &m->tensor[i];
        cg_mean_record_seek_(r, i);
        if (r->n == mine->n && r->rows == mine->rows && cg_mean_same_name_(r, mine->name)) continue;
        cg_mean_say_(m, CG_E_MISMATCH, "the saved state is of other tensors");
        cg_text_str_(&t, "tensor ");
        cg_text_uint_(&t, i);
        cg_text_str_(&t, " of the saved state is ");
        cg_mean_say_tensor_(&t, r->n, r->rows, r->name, r->name_len);
        cg_text_str_(&t, ", and of this mean ");
        cg_mean_say_tensor_(&t, mine->n, mine->rows, mine->name, cg_mean_text_len_(mine->name));
        *t.at = 0;
        return CG_E_MISMATCH;
    }
    if (tensors == m->tensors) return CG_OK;
    cg_mean_say_(m, CG_E_MISMATCH, "the saved state is of other tensors");
    cg_text_str_(&t, "the saved state has ");
    cg_text_uint_(&t, tensors);
    cg_text_str_(&t, " tensors, and this mean ");
    cg_text_uint_(&t, m->tensors);
    cg_text_str_(&t, "; cg_mean_load_moved takes other tensors of as many values");
    *t.at = 0;
    return CG_E_MISMATCH;
}
/* A state that takes the blob of a tensor as its own, to read it: that of any active tensor, with another n. */
static void cg_mean_reader_(const cg_mean *m, const cg_mean_record_ *r, cg_ef *reader) {
    *reader = *m->efs[0];
    reader->desc.n = r->n;
    reader->warm_count = r->state_bytes >= CG_EF_HEADER_BYTES_ ? cg_size_or_zero_(cg_get64_(r->state + 64)) : 0;
}
static cg_status cg_mean_state_why_(cg_mean *m, size_t tensor, const char *name, cg_status s) {
    cg_text_ t = cg_mean_text_(m->why, sizeof m->why);
    cg_mean_say_(m, s, "the saved state of a tensor does not fit");
    cg_mean_tensor_name_(&t, tensor, name);
    cg_text_str_(&t,
        s == CG_E_MISMATCH ? ": its saved state is of another kind of memory, operator or second leg: open the mean as "
                             "it was opened, with '"
            : s == CG_E_VERSION ? ": a later version of compgrad has written its state; it was opened with '"
                                : ": its saved state is damaged; the mean was opened with '");
    cg_mean_config_print_(&m->config, &t);
    cg_text_char_(&t, '\'');
    *t.at = 0;
    return s;
}

/* ---- loading ---- */

/* The blobs of all ranks that saved: one each, of the same step. */
static cg_status cg_mean_blobs_all_(cg_mean *m, const cg_mean_record_ *r, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (cg_get32_(r[i].blob + 32) != count)
            return cg_mean_say_(m, CG_E_ARG, "give the states of all ranks that were saved, each once");
        for (size_t j = 0; j < i; j++)
            if (cg_get32_(r[j].blob + 36) == cg_get32_(r[i].blob + 36))
                return cg_mean_say_(m, CG_E_ARG, "the state of a rank is given twice: give each once");
        if (cg_get64_(r[i].blob + 16) != cg_get64_(r[0].blob + 16))
            return cg_mean_say_(
                m, CG_E_MISMATCH, "the states were saved after different steps: take those of one step");
    }
    return CG_OK;
}
/* Room for `count` records and pointers in the memory of exchanges, which is not in use now. */
static cg_status cg_mean_load_room_(cg_mean *m, size_t count) {
    if (!count) return cg_mean_say_(m, CG_E_ARG, "no saved state is given");
    if (count > m->mem_bytes / (sizeof(cg_mean_record_) + sizeof(void *) + sizeof(size_t)))
        return cg_mean_say_(m, CG_E_MEMORY, "so many saved states at once do not fit into the memory of this mean");
    return CG_OK;
}
static cg_status cg_mean_blobs_open_(
    cg_mean *m, cg_mean_record_ *r, const void *const *bufs, const size_t *lens, size_t count, uint64_t *values) {
    cg_status s = CG_OK;
    for (size_t i = 0; i < count && s == CG_OK; i++) {
        uint64_t more;
        s = cg_mean_blob_open_(m, &r[i], bufs[i], lens[i], &more);
        if (s == CG_OK && i && more != *values)
            s = cg_mean_say_(m, CG_E_MISMATCH, "the saved states have different numbers of values");
        *values = more;
    }
    return s;
}
/* cg_mean_load and cg_mean_load_mean. exact: one blob, of as many ranks. */
static cg_status cg_mean_load_(cg_mean *m, const void *const *bufs, const size_t *lens, size_t count, int exact) {
    cg_mean_record_ *r = (cg_mean_record_ *)m->mem;
    const void **state = (const void **)(void *)(r + count);
    size_t *state_bytes = (size_t *)(void *)(state + count);
    uint64_t values;
    cg_status s = cg_mean_load_room_(m, count);
    if (s == CG_OK) s = cg_mean_blobs_open_(m, r, bufs, lens, count, &values);
    for (size_t i = 0; i < count && s == CG_OK; i++) s = cg_mean_blob_packed_(m, &r[i]);
    for (size_t i = 0; i < count && s == CG_OK; i++) s = cg_mean_blob_same_(m, &r[i]);
    if (s == CG_OK && !exact) s = cg_mean_blobs_all_(m, r, count);
    if (s == CG_OK && exact && cg_get32_(r->blob + 32) != (uint32_t)m->transport.size)
        s = cg_mean_say_(m, CG_E_MISMATCH,
            "this state was saved by another number of ranks: give those of all of them to cg_mean_load_mean");
    for (int load = 0; load < 2; load++) /* all are checked before any is loaded */
        for (size_t i = 0; i < m->tensors && s == CG_OK; i++) {
            cg_ef *ef = m->tensor[i].ef;
            for (size_t j = 0; ef && j < count && s == CG_OK; j++) {
                cg_mean_record_seek_(&r[j], i);
                state[j] = r[j].state;
                state_bytes[j] = r[j].state_bytes;
                if (!load) s = cg_ef_blob_check_(ef, r[j].state, r[j].state_bytes, exact);
            }
            if (ef && load) s = cg_ef_load_(ef, state, state_bytes, count, exact);
            if (s != CG_OK) cg_mean_state_why_(m, i, m->tensor[i].name, s);
        }
    if (s != CG_OK) return s;
    m->steps = cg_get64_(r->blob + 16);
    return cg_mean_say_(m, CG_OK, cg_status_str(CG_OK));
}
static cg_status cg_mean_load_ready_(cg_mean *m, const void *const *bufs, const size_t *lens) {
    if (!m) return CG_E_ARG;
    if (m->magic != CG_MEAN_MAGIC_ || m->pending) return CG_E_STATE;
    return bufs && lens ? CG_OK : cg_mean_say_(m, CG_E_ARG, "no saved state is given: bufs or lens is NULL");
}
CG_API_ cg_status cg_mean_load(cg_mean *mean, const void *buf, size_t len) {
    const cg_fenv_ env = cg_fenv_enter_();
    cg_status s = cg_mean_load_ready_(mean, &buf, &len);
    if (s == CG_OK) s = cg_mean_load_(mean, &buf, &len, 1, 1);
    cg_fenv_leave_(env);
    return s;
}
CG_API_ cg_status cg_mean_load_mean(cg_mean *mean, const void *const *bufs, const size_t *lens, size_t count) {
    const cg_fenv_ env = cg_fenv_enter_();
    cg_status s = cg_mean_load_ready_(mean, bufs, lens);
    if (s == CG_OK) s = cg_mean_load_(mean, bufs, lens, count, 0);
    cg_fenv_leave_(env);
    return s;
}

/* ---- other boundaries ---- */

/* Value i of a vector of the tensor at which the records stand: the mean over blobs, at scale 1. A carry is what one
   rank withheld of a mean: as many times as there are ranks, it belongs to the sum of their residuals. Of several ranks
   the mean of all h is H. */
static double cg_mean_moved_value_(const cg_ef *reader, const cg_mean_record_ *r, size_t count, int which, size_t i) {
    const int has_shift = cg_ef_has_trait_(&reader->desc, CG_EF_HAS_SHIFT_);
    double sum = 0.0;
    for (size_t j = 0; j < count; j++) {
        sum += cg_ef_blob_value_(reader, r[j].state, has_shift && which == 0 && count > 1 ? 2 : which, i);
        if (which == 0 && !has_shift)
            sum += cg_times64_((double)cg_get32_(r[j].blob + 32), cg_ef_blob_carry_(reader, r[j].state, i));
    }
    return sum / (double)count;
}
/* Fills one vector of the state of a tensor from value `from` on of all values of the blobs. */
static void cg_mean_move_vector_(cg_mean *m, cg_ef *ef, cg_mean_record_ *r, size_t count, int which, uint64_t from) {
    float e[CG_EF_BUCKET_];
    cg_ef reader;
    uint64_t first = 0; /* of the tensor at which the records stand */
    size_t index = 0;
    for (size_t j = 0; j < count; j++) cg_mean_record_seek_(&r[j], 0);
    cg_mean_reader_(m, r, &reader);
    for (size_t i = 0; i < ef->desc.n; i++) {
        float v;
        while (from + i - first >= r->n) {
            first += r->n;
            index++;
            for (size_t j = 0; j < count; j++) cg_mean_record_seek_(&r[j], index);
            cg_mean_reader_(m, r, &reader);
        }
        v = cg_saturate_((float)cg_mean_moved_value_(&reader, r, count, which, (size_t)(from + i - first)));
        if (which || !ef->bytes) {
            ef->vector[which][i] = v;
            continue;
        }
        e[i % CG_EF_BUCKET_] = v;
        if (i % CG_EF_BUCKET_ == CG_EF_BUCKET_ - 1 || i == ef->desc.n - 1)
            cg_residual8_encode_(cg_kernels_now_(), ef, i / CG_EF_BUCKET_, e);
    }
}
/* Checks every state of every blob, and adds up the bounds of their magnitudes. *begun: none has yet to begin. */
static cg_status cg_mean_moved_check_(cg_mean *m, cg_mean_record_ *r, size_t count, double *reach, int *begun) {
    const size_t tensors = cg_size_or_zero_(cg_get64_(r->blob + 24));
    cg_ef reader;
    *reach = 0.0;
    *begun = 1;
    for (size_t j = 0; j < count; j++)
        for (size_t i = 0; i < tensors; i++) {
            cg_status s;
            cg_mean_record_seek_(&r[j], i);
            if (cg_get64_(r[j].blob + 24) != tensors || (j && (cg_mean_record_seek_(r, i), r->n != r[j].n)))
                return cg_mean_say_(m, CG_E_MISMATCH, "the saved states are of different tensors");
            if (!r[j].n) continue;
            cg_mean_reader_(m, &r[j], &reader);
            s = cg_ef_blob_check_(&reader, r[j].state, r[j].state_bytes, 0);
            if (s != CG_OK) return cg_mean_state_why_(m, i, NULL, s);
            *reach += 2.0 * cg_get_double_(r[j].state + 176) / (double)cg_as_float_(cg_get32_(r[j].state + 192));
            *begun &= cg_get64_(r[j].state + CG_EF_MARK_OFFSET_) != 0;
        }
    return CG_OK;
}
/* The one state of all tensors, whose boundaries it does not know. */
static cg_status cg_mean_load_packed_(cg_mean *m, cg_mean_record_ *r, size_t count) {
    const void **state = (const void **)(void *)(r + count);
    size_t *state_bytes = (size_t *)(void *)(state + count);
    cg_status s = CG_OK;
    for (size_t j = 0; j < count && m->active; j++) {
        cg_mean_record_seek_(&r[j], 0);
        while (!r[j].n) cg_mean_record_seek_(&r[j], r[j].index + 1);
        state[j] = r[j].state;
        state_bytes[j] = r[j].state_bytes;
    }
    if (m->active) s = cg_ef_load_(m->efs[0], state, state_bytes, count, count == 1);
    if (s != CG_OK) return cg_mean_state_why_(m, 0, NULL, s);
    m->steps = cg_get64_(r->blob + 16);
    return cg_mean_say_(m, CG_OK, cg_status_str(CG_OK));
}
static cg_status cg_mean_load_moved_(cg_mean *m, const void *const *bufs, const size_t *lens, size_t count) {
    cg_mean_record_ *r = (cg_mean_record_ *)m->mem;
    uint64_t values = 0, mine = 0, from = 0, ef_steps;
    double reach;
    int begun;
    cg_status s = cg_mean_load_room_(m, count);
    if (s == CG_OK) s = cg_mean_blobs_open_(m, r, bufs, lens, count, &values);
    if (s != CG_OK) return s;
    for (size_t i = 0; i < m->tensors; i++) mine = cg_add_sat_(mine, m->tensor[i].n);
    if (mine != values)
        return cg_mean_say_(
            m, CG_E_MISMATCH, "the saved state has another number of values in all its tensors together");
    if (count > 1) s = cg_mean_blobs_all_(m, r, count);
    else if (cg_get32_(r->blob + 32) != (uint32_t)m->transport.size)
        s = cg_mean_say_(
            m, CG_E_MISMATCH, "this state was saved by another number of ranks: give those of all of them");
    for (size_t i = 0; i < count && s == CG_OK; i++) s = cg_mean_blob_packed_(m, &r[i]);
    if (s == CG_OK && m->config.packing) return cg_mean_load_packed_(m, r, count);
    if (s == CG_OK && m->active) s = cg_mean_moved_check_(m, r, count, &reach, &begun);
    if (s != CG_OK) return s;
    m->steps = cg_get64_(r->blob + 16);
    for (size_t i = 0; i < m->tensors; from += m->tensor[i++].n) {
        cg_ef *ef = m->tensor[i].ef;
        if (!ef) continue;
        cg_mean_record_seek_(r, 0);
        while (!r->n) cg_mean_record_seek_(r, r->index + 1);
        ef_steps = cg_get64_(r->state + 24);
        cg_ef_reset(ef);
        for (int which = 0; which < 3; which++)
            if (ef->vector[which] || (!which && ef->bytes)) cg_mean_move_vector_(m, ef, r, count, which, from);
        ef->steps = ef_steps;
        ef->reach = ef->size = reach < 1e300 ? reach : 1e300;
        if (begun) cg_ef_mark_restart_(ef);
    }
    return cg_mean_say_(m, CG_OK, cg_status_str(CG_OK));
}
CG_API_ cg_status cg_mean_load_moved(cg_mean *mean, const void *const *bufs, const size_t *lens, size_t count) {
    const cg_fenv_ env = cg_fenv_enter_();
    cg_status s = cg_mean_load_ready_(mean, bufs, lens);
    if (s == CG_OK) s = cg_mean_load_moved_(mean, bufs, lens, count);
    cg_fenv_leave_(env);
    return s;
}
