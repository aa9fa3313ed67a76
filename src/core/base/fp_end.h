#if defined(__clang__)
#  pragma STDC FP_CONTRACT DEFAULT
#  if defined(__x86_64__) || defined(__i386__)
#    pragma float_control(pop)
#  endif
#elif defined(__GNUC__)
#  pragma GCC pop_options
#endif
