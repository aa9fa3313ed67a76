/* begin: opens the implementation of error feedback, for the one file that defines COMPGRAD_IMPLEMENTATION

   Offers   nothing
   Needs    compgrad_exchange.h, whose implementation comes first
   Touches  nothing */
#if defined(COMPGRAD_IMPLEMENTATION) && !defined(COMPGRAD_EF_IMPLEMENTED_) && !defined(COMPGRAD_LINKED)
#  define COMPGRAD_EF_IMPLEMENTED_
