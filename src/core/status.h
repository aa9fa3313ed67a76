/* status: what a status code means, and the version

   Offers   cg_status_str, cg_version
   Needs    the list of codes in api.h
   Touches  nothing */

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
