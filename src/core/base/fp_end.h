/* fp_end: gives the floating-point flags back to the includer

   Offers   the end of what fp_begin began
   Needs    fp_begin
   Touches  the compiler's floating-point state */
#if defined(__clang__)
#  pragma STDC FP_CONTRACT DEFAULT
#  if defined(__x86_64__) || defined(__i386__)
#    pragma float_control(pop)
#  endif
#elif defined(__GNUC__)
#  pragma GCC pop_options
#endif
#if defined(COMPGRAD_ONLY) && defined(__GNUC__)
#  pragma GCC diagnostic pop
#endif
