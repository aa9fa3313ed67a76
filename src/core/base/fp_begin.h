/* Bits must not depend on the includer's flags: no contraction, no reassociation, no fast math, between
   here and the end of this file, and nothing of it leaks into the includer's own code. */
#if defined(__clang__)
#  if defined(__x86_64__) || defined(__i386__)
#    pragma float_control(push)
#    pragma float_control(precise, on)
#  endif
#  pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#  pragma GCC push_options
#  pragma GCC optimize("no-fast-math", "fp-contract=off")
#endif
