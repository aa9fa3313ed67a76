/* ============================================================================================== */
#if defined(COMPGRAD_IMPLEMENTATION) && !defined(COMPGRAD_SKETCH_IMPLEMENTED_) && !defined(COMPGRAD_LINKED)
#  define COMPGRAD_SKETCH_IMPLEMENTED_
