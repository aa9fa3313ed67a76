/* words: text read and written without libc and locale: words, numbers, pieces of sentences, and which name is near

   Offers   cg_text_, which sentences are written to; cg_parser_ and cg_word_; cg_decimal_read_,
            cg_float_from_decimal_, cg_text_float_; cg_why_at_, cg_why_, cg_why_quote_; cg_name_distance_, cg_same_text_
   Needs    math
   Touches  the caller's text
   Every header may use all of it, as all of base. What does not fit into a text is dropped. */

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

static int cg_same_text_(const char *a, const char *b) {
    while (*a && *a == *b) a++, b++;
    return *a == *b;
}

typedef struct cg_parser_ {
    const char *text, *p; /* all of it, and the next byte */
    cg_text_ why;         /* the sentence; what does not fit is dropped */
} cg_parser_;
/* A word of the text: up to the next ':', '|', blank or end. */
typedef struct cg_word_ {
    const char *p;
    size_t len;
} cg_word_;

static int cg_is_blank_(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
static char cg_lower_(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }
static void cg_skip_blanks_(cg_parser_ *s) {
    while (cg_is_blank_(*s->p)) s->p++;
}
/* Skips blanks, then c; 0: c is not there, and nothing has been skipped. */
static int cg_take_(cg_parser_ *s, char c) {
    const char *before = s->p;
    cg_skip_blanks_(s);
    if (*s->p == c) {
        s->p++;
        return 1;
    }
    s->p = before;
    return 0;
}
/* The word after blanks; it stays to be read. */
static cg_word_ cg_word_next_(cg_parser_ *s) {
    cg_word_ w;
    cg_skip_blanks_(s);
    w.p = s->p;
    for (w.len = 0; w.p[w.len] && w.p[w.len] != ':' && w.p[w.len] != '|' && !cg_is_blank_(w.p[w.len]);) w.len++;
    return w;
}
/* Is the word this name, in letters of either case? Names are in small letters. */
static int cg_word_is_(cg_word_ w, const char *name) {
    size_t i = 0;
    for (; i < w.len && name[i]; i++)
        if (cg_lower_(w.p[i]) != name[i]) return 0;
    return i == w.len && !name[i];
}

/* *id = the number of the name that text is, in letters of either case; name_of gives the names, and NULL behind the
   last. CG_E_ARG: it is none of them. */
/* Characters before the final 0. Volatile, as compilers make a call of strlen of such a loop otherwise, and the
   implementation is for machines without a C library, too. */
CG_OFFERED_ size_t cg_text_len_(const char *text) {
    size_t len = 0;
    while (((const volatile char *)text)[len]) len++;
    return len;
}
CG_OFFERED_ cg_status cg_name_parse_(uint32_t *id, const char *text, const char *(*name_of)(uint32_t)) {
    cg_word_ w;
    if (!id || !text) return CG_E_ARG;
    w.p = text;
    w.len = cg_text_len_(text);
    for (uint32_t i = 0; name_of(i); i++)
        if (cg_word_is_(w, name_of(i))) return *id = i, CG_OK;
    return CG_E_ARG;
}

/* ---- pieces of sentences ---- */

static void cg_why_at_(cg_parser_ *s, const char *where) {
    cg_text_str_(&s->why, "at ");
    cg_text_uint_(&s->why, (uint64_t)(where - s->text));
    cg_text_str_(&s->why, ": ");
}
static int cg_why_(cg_parser_ *s, const char *where, const char *sentence) {
    cg_why_at_(s, where);
    cg_text_str_(&s->why, sentence);
    return 0;
}
/* The word in quotes, cut to 24 bytes. */
static void cg_why_quote_(cg_parser_ *s, cg_word_ w) {
    cg_text_char_(&s->why, '\'');
    for (size_t i = 0; i < w.len && i < 24; i++)
        cg_text_char_(&s->why, w.p[i] >= ' ' && w.p[i] <= '~' && w.p[i] != '\'' ? w.p[i] : '?');
    cg_text_str_(&s->why, w.len > 24 ? "...'" : "'");
}
enum { CG_NEAR_LETTERS_ = 24 };
/* The letters of a word that count in comparisons, small and without '-' and '_'; returns how many, at most
   CG_NEAR_LETTERS_. */
static int cg_letters_(const char *p, size_t len, char *out) {
    int count = 0;
    for (size_t i = 0; i < len && p[i] && count < CG_NEAR_LETTERS_; i++)
        if (p[i] != '-' && p[i] != '_') out[count++] = cg_lower_(p[i]);
    return count;
}
/* How many letters must be changed, added, left out or swapped with their neighbour to make b of a. */
static int cg_edit_distance_(const char *a, int a_len, const char *b, int b_len) {
    int row[3][CG_NEAR_LETTERS_ + 1]; /* of the letters i - 2, i - 1 and i of a */
    for (int j = 0; j <= b_len; j++) row[1][j] = j, row[0][j] = 0;
    for (int i = 1; i <= a_len; i++) {
        int *const now = row[(i + 1) % 3], *const last = row[i % 3], *const before = row[(i + 2) % 3];
        now[0] = i;
        for (int j = 1; j <= b_len; j++) {
            int best = last[j - 1] + (a[i - 1] != b[j - 1]);
            if (best > last[j] + 1) best = last[j] + 1;
            if (best > now[j - 1] + 1) best = now[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && best > before[j - 2] + 1)
                best = before[j - 2] + 1;
            now[j] = best;
        }
    }
    return row[(a_len + 1) % 3][b_len];
}
/* How far a word is from a name; 99: too far to be meant. The first letters of a name are near it. */
static int cg_name_distance_(cg_word_ w, const char *name) {
    char a[CG_NEAR_LETTERS_], b[CG_NEAR_LETTERS_];
    const int a_len = cg_letters_(w.p, w.len, a), b_len = cg_letters_(name, CG_NEAR_LETTERS_, b);
    const int limit = a_len < 2 ? 0 : a_len < 6 ? 1 : a_len < 10 ? 2 : 3;
    int d = cg_edit_distance_(a, a_len, b, b_len), same = 0;
    while (same < a_len && same < b_len && a[same] == b[same]) same++;
    if (a_len > 2 && same == a_len && d > 1) return 1;
    return w.len > CG_NEAR_LETTERS_ || d > limit ? 99 : d;
}
/* A decimal number: [-] digits with at most one point, then perhaps an exponent. */
typedef struct cg_decimal_ {
    uint64_t digits; /* at most 18 of them */
    int exponent, minus;
    int has_point;  /* or an exponent */
    uint64_t whole; /* without one: the number, unless it overflows */
    int overflows;
} cg_decimal_;
static int cg_decimal_read_(cg_word_ w, cg_decimal_ *d) {
    size_t i = w.len && w.p[0] == '-';
    int any = 0, point = 0, minus, e = 0;
    d->digits = d->whole = 0;
    d->exponent = d->has_point = d->overflows = 0;
    d->minus = i != 0;
    for (; i < w.len && ((w.p[i] >= '0' && w.p[i] <= '9') || (w.p[i] == '.' && !point)); i++) {
        if (w.p[i] == '.') {
            point = d->has_point = 1;
            continue;
        }
        any = 1;
        d->overflows |= d->whole > (UINT64_MAX - (uint64_t)(w.p[i] - '0')) / 10;
        d->whole = d->whole * 10 + (uint64_t)(w.p[i] - '0');
        if (d->digits < 100000000000000000u) {
            d->digits = d->digits * 10 + (uint64_t)(w.p[i] - '0');
            d->exponent -= point;
        } else d->exponent += !point;
        if (d->exponent > 100000) d->exponent = 100000;
        if (d->exponent < -100000) d->exponent = -100000;
    }
    if (!any || i == w.len) return any;
    if (cg_lower_(w.p[i]) != 'e') return 0;
    d->has_point = 1;
    minus = ++i < w.len && w.p[i] == '-';
    if (i < w.len && (w.p[i] == '-' || w.p[i] == '+')) i++;
    if (i == w.len) return 0;
    for (; i < w.len; i++) {
        if (w.p[i] < '0' || w.p[i] > '9') return 0;
        if (e < 100000) e = e * 10 + (w.p[i] - '0');
    }
    d->exponent += minus ? -e : e;
    return 1;
}
