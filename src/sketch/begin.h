/* begin: opens the implementation of sketches, for the one file that defines COMPGRAD_IMPLEMENTATION

   Offers   nothing
   Needs    compgrad_exchange.h, whose implementation comes first
   Touches  nothing */
#if defined(COMPGRAD_IMPLEMENTATION) && !defined(COMPGRAD_SKETCH_IMPLEMENTED_) && !defined(COMPGRAD_LINKED)
#  define COMPGRAD_SKETCH_IMPLEMENTED_
