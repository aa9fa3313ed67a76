/* begin: opens the implementation of gossip and local SGD, for the one file that defines COMPGRAD_IMPLEMENTATION

   Offers   nothing
   Needs    compgrad_ef.h, whose implementation comes first
   Touches  nothing */
#if defined(COMPGRAD_IMPLEMENTATION) && !defined(COMPGRAD_SYNC_IMPLEMENTED_) && !defined(COMPGRAD_LINKED)
#  define COMPGRAD_SYNC_IMPLEMENTED_
