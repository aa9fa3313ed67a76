/* status: what a status code and a report mean, in words, and the version

   Offers   cg_status_str, cg_report_print, cg_version
   Needs    the list of codes in api.h, text
   Touches  the caller's text */

CG_API_ const char *cg_status_str(cg_status status) {
    switch (status) {
#define CG_STATUS_CASE_(name, number, text) \
  case name: return text;
        CG_STATUS_LIST_(CG_STATUS_CASE_)
#undef CG_STATUS_CASE_
    case CG_STATUS_FORCE_INT_: break;
    }
    return "not a cg_status: is it uninitialised?";
}
CG_API_ const char *cg_version(void) { return CG_VERSION_STRING; }

/* Microseconds, if there are any. */
static void cg_text_seconds_(cg_text_ *t, const char *before, double seconds) {
    if (!(seconds > 0.0 && seconds < 1e9)) return;
    cg_text_str_(t, before);
    cg_text_uint_(t, (uint64_t)(seconds * 1e6 + 0.5));
    cg_text_str_(t, " us");
}
/* cap is not 0. */
static cg_status cg_report_print_(const cg_report *r, char *text, size_t cap) {
    const cg_status status = (cg_status)r->status;
    cg_text_ t;
    t.at = text;
    t.end = text + cap;
    if (r->rank >= 0 && status != CG_OK) {
        cg_text_str_(&t, "rank ");
        cg_text_uint_(&t, (uint64_t)r->rank);
        cg_text_str_(&t, ": ");
    }
    cg_text_str_(&t, r->why ? r->why : cg_status_str(status));
    if (r->need && (status == CG_E_CAPACITY || status == CG_E_MEMORY)) {
        cg_text_str_(&t, "; ");
        cg_text_uint_(&t, r->need);
        cg_text_str_(&t, " bytes suffice");
    }
    if (r->need && status == CG_E_ARG) {
        cg_text_str_(&t, "; n must be ");
        cg_text_uint_(&t, r->need);
    }
    if (r->at != CG_NO_INDEX && status == CG_E_NONFINITE) {
        cg_text_str_(&t, "; value ");
        cg_text_uint_(&t, r->at);
        cg_text_str_(&t, " is the first");
    }
    if (r->code) {
        cg_text_str_(&t, "; code ");
        if (r->code < 0) cg_text_char_(&t, '-');
        cg_text_uint_(&t, r->code < 0 ? (uint64_t) - (int64_t)r->code : (uint64_t)r->code);
    }
    if (status == CG_OK && r->choice) {
        cg_text_str_(&t, "; ");
        cg_text_str_(&t, r->choice);
        cg_text_seconds_(&t, ", ", r->seconds);
        if (r->instead) cg_text_str_(&t, "; next ");
        if (r->instead) cg_text_str_(&t, r->instead);
        if (r->instead) cg_text_seconds_(&t, ", ", r->instead_seconds);
    }
    if (t.at < t.end) {
        *t.at = 0;
        return CG_OK;
    }
    text[cap - 1] = 0;
    return CG_E_CAPACITY;
}
CG_API_ cg_status cg_report_print(const cg_report *report, char *text, size_t cap) {
    cg_fenv_ env;
    cg_status s;
    if (text && cap) text[0] = 0;
    if (!report || !text) return CG_E_ARG;
    if (!cap) return CG_E_CAPACITY;
    env = cg_fenv_enter_();
    s = cg_report_print_(report, text, cap);
    cg_fenv_leave_(env);
    return s;
}
