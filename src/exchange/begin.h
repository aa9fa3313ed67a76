/* begin: opens the implementation of exchanges, for the one file that defines COMPGRAD_IMPLEMENTATION

   Offers   nothing
   Needs    compgrad.h, whose implementation comes first
   Touches  nothing */

#if defined(COMPGRAD_IMPLEMENTATION) && !defined(COMPGRAD_EXCHANGE_IMPLEMENTED_) && !defined(COMPGRAD_LINKED)
#  define COMPGRAD_EXCHANGE_IMPLEMENTED_
