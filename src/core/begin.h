/* begin: opens the implementation, which one file of the program compiles

   Offers   nothing; base/end closes what this room opens
   Needs    the options COMPGRAD_IMPLEMENTATION and COMPGRAD_LINKED
   Touches  nothing */

#if defined(COMPGRAD_IMPLEMENTATION) && !defined(COMPGRAD_IMPLEMENTED_) && !defined(COMPGRAD_LINKED)
#  define COMPGRAD_IMPLEMENTED_ /* a second include with COMPGRAD_IMPLEMENTATION still defined does no harm */
