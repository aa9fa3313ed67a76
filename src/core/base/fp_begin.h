/* fp_begin: strict floating point from here to fp_end, whatever flags the includer compiles with

   Offers   pragmas: no contraction, no reassociation, no fast math
   Needs    nothing
   Touches  the compiler's floating-point state, which fp_end gives back; every header has both once
   All code whose results are part of a packet stands between the two. */
#if defined(COMPGRAD_ONLY) && defined(__GNUC__) /* functions that only rows name which were left out */
#  pragma GCC diagnostic push
#  pragma GCC diagnostic ignored "-Wunused-function"
#endif
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
