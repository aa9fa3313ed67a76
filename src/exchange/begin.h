/* ============================================================================================== */
#if defined(COMPGRAD_IMPLEMENTATION) && !defined(COMPGRAD_EXCHANGE_IMPLEMENTED_) && !defined(COMPGRAD_LINKED)
#  define COMPGRAD_EXCHANGE_IMPLEMENTED_
