/* ============================================================================================== */
#if defined(COMPGRAD_IMPLEMENTATION) && !defined(COMPGRAD_IMPLEMENTED_) && !defined(COMPGRAD_LINKED)
#  define COMPGRAD_IMPLEMENTED_ /* a second include with COMPGRAD_IMPLEMENTATION still defined does no harm */
