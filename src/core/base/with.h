/* with: which rows of the tables this build has

   Offers   CG_IF_, CG_OR_BUILT_, CG_MAY_LEAVE_OUT_, CG_KERNEL_, CG_HAS_KERNEL_TABLE_, CG_LEFT_OUT_WHY_
   Needs    the caller's COMPGRAD_ONLY and COMPGRAD_WITH_..., each empty or 1
   Touches  nothing
   A row of a table asks for the macro that has its name, so that there is no list beside the tables. A function that
   only rows name which were left out is not in the object. */

#define CG_BARE_(...) __VA_ARGS__
#ifdef COMPGRAD_ONLY
#  define CG_MAY_LEAVE_OUT_ 1
/* CG_IF_(COMPGRAD_WITH_X, (tokens), (others)): the tokens if the macro is empty or 1, else the others. An empty macro
   or a 1 makes CG_DEFINED_... a word with a comma, behind which the tokens come second. */
#  define CG_IF_(with, in, out) CG_IF_PASTE_(with, in, out)
#  define CG_IF_PASTE_(with, in, out) CG_IF_SECOND_(CG_DEFINED_##with, in, out)
#  define CG_IF_SECOND_(word, in, out) CG_IF_TAKE_(word in, out, )
#  define CG_IF_TAKE_(first, second, ...) CG_BARE_ second
#  define CG_DEFINED_ 0,
#  define CG_DEFINED_1 0,
#else
#  define CG_MAY_LEAVE_OUT_ 0
#  define CG_IF_(with, in, out) CG_BARE_ in
#endif
/* Of each row of a list, "| 1" if it is in the build. */
#define CG_OR_BUILT_(id, ...) CG_IF_(COMPGRAD_WITH_##id, (| 1), (| 0))
/* Calls a kernel of an ISA's table: CG_KERNEL_(kernels, axpby(...)). A build that leaves rows out and has no SIMD calls
   its only kernels by their names, so that those which only such rows call are not in the object. */
#if CG_MAY_LEAVE_OUT_ && !CG_VECTOR_
#  define CG_HAS_KERNEL_TABLE_ 0
#  define CG_KERNEL_(kernels, call) ((void)(kernels), cg_only_##call)
#else
#  define CG_HAS_KERNEL_TABLE_ 1
#  define CG_KERNEL_(kernels, call) (kernels)->call
#endif
/* Of a row that was left out, what its stage is called, and its macro. */
#define CG_LEFT_OUT_WHY_(name, macro) name " was left out (COMPGRAD_WITH_" macro ")"
