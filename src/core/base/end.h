/* end: closes the implementation that begin.h of the same header opened

   Offers   the #endif
   Needs    begin
   Touches  nothing */
#endif /* COMPGRAD_IMPLEMENTATION */
