/* ============================================================================================== */
#if defined(COMPGRAD_IMPLEMENTATION) && !defined(COMPGRAD_EF_IMPLEMENTED_) && !defined(COMPGRAD_LINKED)
#  define COMPGRAD_EF_IMPLEMENTED_
