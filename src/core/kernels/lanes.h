/* lanes: vectors of eight lanes, and the operations that work on each lane alone

   Offers   cg_vf_ (eight f32), cg_vu_ (eight u32, or 32 bytes), cg_vd_ (four f64), cg_vq_ (four u64); arithmetic,
            comparisons and shifts of them; CG_VECTOR_FN_, which every function of vectors begins with
   Needs    base
   Touches  nothing but its arguments
   The vector layer is this room, one room per ISA (avx2, neon, wasm) and vectors. A vector is one part of 32 bytes, or
   two of 16 where registers are that short. What all ISAs can say by an operator of the compiler stands here; it also
   keeps the floating-point flags of fp_begin, which intrinsics lose if the includer has read their header before.
   Comparisons give all ones where they hold, else 0. */

#if CG_VECTOR_
#  if CG_AVX2_
#    define CG_PART_BYTES_ 32
#    define CG_ISA_NATIVE_ CG_ISA_AVX2
#    define CG_TARGET_NATIVE_ __attribute__((target("avx2,f16c,popcnt,bmi,bmi2")))
#  else
#    define CG_PART_BYTES_ 16
#    define CG_ISA_NATIVE_ (CG_NEON_ ? CG_ISA_NEON : CG_ISA_WASM)
#    define CG_TARGET_NATIVE_
#  endif
#  define CG_VECTOR_FN_ static inline __attribute__((always_inline, unused)) CG_TARGET_NATIVE_
typedef float cg_pf_ __attribute__((vector_size(CG_PART_BYTES_)));
typedef double cg_pd_ __attribute__((vector_size(CG_PART_BYTES_)));
typedef int32_t cg_pi_ __attribute__((vector_size(CG_PART_BYTES_)));
typedef uint8_t cg_pb_ __attribute__((vector_size(CG_PART_BYTES_)));
typedef uint16_t cg_ph_ __attribute__((vector_size(CG_PART_BYTES_)));
typedef uint32_t cg_pu_ __attribute__((vector_size(CG_PART_BYTES_)));
typedef uint64_t cg_pq_ __attribute__((vector_size(CG_PART_BYTES_)));

/* CG_EACH1_ and so on: a function of vectors by the expression of its result's part in parts x and y of the arguments.
   r, a and b are the types' letters (f, d, u or q); CG_EACHN_ has a number n beside x. */
#  if CG_PART_BYTES_ == 32
typedef cg_pf_ cg_vf_;
typedef cg_pd_ cg_vd_;
typedef cg_pu_ cg_vu_;
typedef cg_pq_ cg_vq_;
#    define CG_EACH1_(r, name, a, expression) \
      CG_VECTOR_FN_ cg_p##r##_ name(cg_p##a##_ x) { return (cg_p##r##_)(expression); }
#    define CG_EACHN_(r, name, a, expression) \
      CG_VECTOR_FN_ cg_p##r##_ name(cg_p##a##_ x, unsigned n) { return (cg_p##r##_)(expression); }
#    define CG_EACH2_(r, name, a, b, expression) \
      CG_VECTOR_FN_ cg_p##r##_ name(cg_p##a##_ x, cg_p##b##_ y) { return (cg_p##r##_)(expression); }
#  else
#    define CG_PAIR_(t)                                                      \
      typedef struct cg_v##t##_ {                                            \
        cg_p##t##_ a, b;                                                     \
      } cg_v##t##_;                                                          \
      CG_VECTOR_FN_ cg_v##t##_ cg_v##t##_join_(cg_p##t##_ a, cg_p##t##_ b) { \
        const cg_v##t##_ v = { a, b };                                       \
        return v;                                                            \
      }
CG_PAIR_(f)
CG_PAIR_(d)
CG_PAIR_(u)
CG_PAIR_(q)
#    define CG_EACH1_(r, name, a_, expression)                                                 \
      CG_VECTOR_FN_ cg_p##r##_ name##part_(cg_p##a_##_ x) { return (cg_p##r##_)(expression); } \
      CG_VECTOR_FN_ cg_v##r##_ name(cg_v##a_##_ x) { return cg_v##r##_join_(name##part_(x.a), name##part_(x.b)); }
#    define CG_EACHN_(r, name, a_, expression)                                                             \
      CG_VECTOR_FN_ cg_p##r##_ name##part_(cg_p##a_##_ x, unsigned n) { return (cg_p##r##_)(expression); } \
      CG_VECTOR_FN_ cg_v##r##_ name(cg_v##a_##_ x, unsigned n) {                                           \
        return cg_v##r##_join_(name##part_(x.a, n), name##part_(x.b, n));                                  \
      }
#    define CG_EACH2_(r, name, a_, b_, expression)                                                            \
      CG_VECTOR_FN_ cg_p##r##_ name##part_(cg_p##a_##_ x, cg_p##b_##_ y) { return (cg_p##r##_)(expression); } \
      CG_VECTOR_FN_ cg_v##r##_ name(cg_v##a_##_ x, cg_v##b_##_ y) {                                           \
        return cg_v##r##_join_(name##part_(x.a, y.a), name##part_(x.b, y.b));                                 \
      }
#  endif

CG_EACH1_(f, cg_vf_of_, u, x) /* the same bits */
CG_EACH1_(u, cg_vu_of_, f, x)
CG_EACH2_(u, cg_vu_and_, u, u, x &y)
CG_EACH2_(u, cg_vu_or_, u, u, x | y)
CG_EACH2_(u, cg_vu_xor_, u, u, x ^ y)
CG_EACH2_(u, cg_vu_andnot_, u, u, ~x &y)
CG_EACH2_(u, cg_vu_add_, u, u, x + y)
CG_EACH2_(u, cg_vu_sub_, u, u, x - y)
CG_EACH2_(u, cg_vu_mul_, u, u, x *y)
CG_EACH2_(u, cg_vu_gt_, u, u, (cg_pi_)x > (cg_pi_)y) /* as signed */
CG_EACHN_(u, cg_vu_shl_, u, x << n)
CG_EACHN_(u, cg_vu_shr_, u, x >> n)
CG_EACHN_(u, cg_vu_sar_, u, (cg_pi_)x >> (int)n)
CG_EACHN_(u, cg_vu_shl16_, u, (cg_ph_)x << (uint16_t)n) /* of u16 */
CG_EACHN_(u, cg_vu_shr16_, u, (cg_ph_)x >> (uint16_t)n)
CG_EACH2_(u, cg_vb_add_, u, u, (cg_pb_)x + (cg_pb_)y) /* of bytes */
CG_EACH2_(u, cg_vb_sub_, u, u, (cg_pb_)x - (cg_pb_)y)
CG_EACH1_(u, cg_vb_is_zero_, u, (cg_pb_)x == (cg_pb_)(x ^ x))
CG_EACH2_(q, cg_vq_add_, q, q, x + y)

CG_VECTOR_FN_ cg_pf_ cg_pf_mul_(cg_pf_ x, cg_pf_ y) { /* never fused with a sum */
    cg_pf_ p = x * y;
    CG_NO_FMA_(p);
    return p;
}
CG_EACH2_(f, cg_vf_mul_, f, f, cg_pf_mul_(x, y))
CG_EACH2_(f, cg_vf_add_, f, f, x + y)
CG_EACH2_(f, cg_vf_sub_, f, f, x - y)
/* Products in f64 are exact here, of two f32: fused or not, the sum is the same. */
CG_EACH2_(d, cg_vd_add_, d, d, x + y)
CG_EACH2_(d, cg_vd_mul_, d, d, x *y)
#  define CG_ZERO_D_ ((cg_pd_)((cg_pq_)x ^ (cg_pq_)x))
CG_EACH1_(d, cg_vd_abs_, d, (cg_pq_)x << 1 >> 1)
CG_EACH1_(d, cg_vd_negative_, d, (cg_pq_)x &(cg_pq_)(x < CG_ZERO_D_)) /* x where it is below 0, else +0 */
CG_EACH1_(d, cg_vd_nonnegative_, d, (cg_pq_)x &(cg_pq_)(x >= CG_ZERO_D_))
#endif
