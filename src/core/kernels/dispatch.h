/* dispatch: the kernels' tables, one per ISA, and the choice between them

   Offers   cg_kernels_now_, cg_kernels_scalar_; of the public functions cg_isa_found, _used, _force, _name
   Needs    base, all rooms of kernels
   Touches  cg_isa_cached_, the only variable of the library; 0 until the CPU has been asked
   Other headers may use: cg_absmax_bits_, cg_axpby_, cg_kernels_now_, cg_move_zero_, cg_scale_checked_ */

/* The list that makes the members makes their values too: C++11 has no designated initialisers, but the order cannot
   get out of step. */
#define CG_KERNEL_SCALAR_(result, name, parameters, arguments) cg_##name##_scalar_,
#if CG_HAS_KERNEL_TABLE_
static const cg_kernels_ cg_kernels_scalar_ = { CG_ISA_SCALAR, CG_KERNEL_LIST_(CG_KERNEL_SCALAR_) };
#else /* see CG_KERNEL_ */
static const cg_kernels_ cg_kernels_scalar_ = { CG_ISA_SCALAR };
#  define CG_RETURN_void_
#  define CG_RETURN_int_ return
#  define CG_RETURN_float_ return
#  define CG_RETURN_size_t_ return
#  define CG_RETURN_uint32_t_ return
#  define CG_KERNEL_ONLY_(result, name, parameters, arguments) \
    CG_INLINE_ result cg_only_##name parameters { CG_RETURN_##result##_ cg_##name##_scalar_ arguments; }
CG_KERNEL_LIST_(CG_KERNEL_ONLY_)
#endif

/* A vector kernel is inlined into a function of each ISA, and compiled for that. The build's own (cg_..._native_) is
   AVX2, NEON or WebAssembly SIMD128. */
#define CG_BODY_(type, call) \
  const type result = call;  \
  cg_vector_end_();          \
  return result
#define CG_BODY_void_(call) call, cg_vector_end_()
#define CG_BODY_int_(call) CG_BODY_(int, call)
#define CG_BODY_float_(call) CG_BODY_(float, call)
#define CG_BODY_size_t_(call) CG_BODY_(size_t, call)
#define CG_BODY_uint32_t_(call) CG_BODY_(uint32_t, call)
#if CG_VECTOR_
#  define CG_KERNEL_NATIVE_(result, name, parameters, arguments) \
    CG_TARGET_NATIVE_ static result cg_##name##_native_ parameters { CG_BODY_##result##_(cg_##name##_simd_ arguments); }
#  define CG_KERNEL_OF_NATIVE_(result, name, parameters, arguments) cg_##name##_native_,
CG_KERNEL_LIST_(CG_KERNEL_NATIVE_)
static const cg_kernels_ cg_kernels_native_ = { CG_ISA_NATIVE_, CG_KERNEL_LIST_(CG_KERNEL_OF_NATIVE_) };
#endif
#if CG_AVX512_
#  define CG_TARGET_AVX512_ __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,f16c,popcnt,bmi,bmi2")))
#  define CG_KERNEL_AVX512_(result, name, parameters, arguments) \
    CG_TARGET_AVX512_ static result cg_##name##_avx512_ parameters { CG_BODY_##result##_(cg_##name##_simd_ arguments); }
#  define CG_KERNEL_OF_AVX512_(result, name, parameters, arguments) cg_##name##_avx512_,
CG_KERNEL_LIST_(CG_KERNEL_AVX512_)
static const cg_kernels_ cg_kernels_avx512_ = { CG_ISA_AVX512, CG_KERNEL_LIST_(CG_KERNEL_OF_AVX512_) };
#endif

/* A cg_isa, 0 (CG_ISA_AUTO) until it is known. Threads that find it 0 all write the same; only cg_isa_force writes
   another. */
static int cg_isa_cached_;

#if defined(__GNUC__)
CG_INLINE_ int cg_isa_load_(void) { return __atomic_load_n(&cg_isa_cached_, __ATOMIC_RELAXED); }
CG_INLINE_ void cg_isa_save_(int isa) { __atomic_store_n(&cg_isa_cached_, isa, __ATOMIC_RELAXED); }
#else
CG_INLINE_ int cg_isa_load_(void) { return cg_isa_cached_; }
CG_INLINE_ void cg_isa_save_(int isa) { cg_isa_cached_ = isa; }
#endif

#if CG_AVX2_
/* out[0..3]: eax, ebx, ecx, edx of the leaf, subleaf 0 */
static void cg_cpuid_(uint32_t leaf, uint32_t *out) {
    uint32_t a = leaf, b, c = 0, d;
#  if defined(__i386__) /* ebx may hold the GOT pointer */
    __asm__ __volatile__("xchgl %%ebx, %1\n\tcpuid\n\txchgl %%ebx, %1" : "+a"(a), "=&r"(b), "+c"(c), "=d"(d));
#  else
    __asm__ __volatile__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
#  endif
    out[0] = a;
    out[1] = b;
    out[2] = c;
    out[3] = d;
}
/* Whether the CPU has all that the targets name, and an operating system that saves its registers. */
static int cg_has_avx_(int avx512) {
    const uint32_t features = avx512 ? 0xc0030128u : 0x128u; /* bmi1, avx2, bmi2; avx512 f, dq, bw, vl */
    const uint32_t registers = avx512 ? 0xe6 : 6;            /* xmm, ymm; opmask, zmm */
    uint32_t r[4], lo, hi;
    cg_cpuid_(0, r);
    if (r[0] < 7) return 0;
    cg_cpuid_(1, r); /* popcnt, xsave, avx, f16c */
    if ((r[2] & 0x38800000u) != 0x38800000u) return 0;
    __asm__ __volatile__(".byte 0x0f, 0x01, 0xd0" : "=a"(lo), "=d"(hi) : "c"(0)); /* xgetbv */
    if ((lo & registers) != registers) return 0;
    cg_cpuid_(7, r);
    return (r[1] & features) == features;
}
#endif
/* The table of an ISA; NULL if this build does not have it. */
static const cg_kernels_ *cg_kernels_of_(cg_isa isa) {
    if (isa == CG_ISA_SCALAR) return &cg_kernels_scalar_;
#if CG_VECTOR_
    if (isa == CG_ISA_NATIVE_) return &cg_kernels_native_;
#endif
#if CG_AVX512_
    if (isa == CG_ISA_AVX512) return &cg_kernels_avx512_;
#endif
    return NULL;
}
CG_API_ int cg_isa_found(cg_isa isa) {
    if (isa == CG_ISA_AUTO) return 1;
#if CG_AVX2_
    if (isa == CG_ISA_AVX2 || isa == CG_ISA_AVX512) return cg_kernels_of_(isa) && cg_has_avx_(isa == CG_ISA_AVX512);
#endif
    return cg_kernels_of_(isa) != NULL;
}
CG_API_ cg_isa cg_isa_used(void) {
    static const uint8_t best[] = { CG_ISA_AVX512, CG_ISA_AVX2, CG_ISA_NEON, CG_ISA_WASM, CG_ISA_SCALAR };
    int isa = cg_isa_load_();
    if (isa == CG_ISA_AUTO) {
        const uint8_t *p = best;
        while (!cg_isa_found((cg_isa)*p)) p++;
        cg_isa_save_(isa = *p);
    }
    return (cg_isa)isa;
}
CG_API_ cg_status cg_isa_force(cg_isa isa) {
    if (!cg_isa_found(isa)) return CG_E_UNSUPPORTED;
    cg_isa_save_((int)isa);
    return CG_OK;
}
CG_API_ const char *cg_isa_name(cg_isa isa) {
    static const char *const name[] = { "auto", "scalar", "avx2", "neon", "avx512", "wasm" };
    return (unsigned)isa < sizeof name / sizeof *name ? name[isa] : "?";
}
/* The table to be used, for one whole call: a cg_isa_force of another thread may come between two. */
static const cg_kernels_ *cg_kernels_now_(void) { return cg_kernels_of_(cg_isa_used()); }

/* For other headers, which do not see the kernel table. y may be at any address; v and y are one vector or apart. */
CG_OFFERED_ void cg_axpby_(const float *v, size_t n, float alpha, float beta, float *y) { /* y = alpha v + beta y */
    CG_KERNEL_(cg_kernels_now_(), axpby(v, n, alpha, beta, y, 0));
}
/* The largest magnitude as bits; CG_INF_BITS_ or more if some value is not finite. */
CG_OFFERED_ uint32_t cg_absmax_bits_(const float *v, size_t n) {
    return CG_KERNEL_(cg_kernels_now_(), absmax_bits(v, n));
}
/* y = alpha v, which may be y, and the largest magnitude of v as bits: both in one pass over memory. stream: past the
   caches, y at a multiple of 16 bytes. */
CG_OFFERED_ uint32_t cg_scale_checked_(const float *v, size_t n, float alpha, float *y, int stream) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    uint32_t absmax_bits = 0;
    for (size_t i = 0, many; i < n; i += many) {
        many = cg_min_(CG_CHUNK_, n - i);
        absmax_bits = cg_max32_(absmax_bits, CG_KERNEL_(kernels, absmax_bits(cg_at_(v, i), many)));
        if (v != y || alpha != 1.0f)
            CG_KERNEL_(kernels, axpby(cg_at_(v, i), many, alpha, 0.0f, cg_at_mut_(y, i), stream));
    }
    if (stream) CG_KERNEL_(kernels, stream_fence());
    return absmax_bits;
}
/* y = v, v = 0. stream: past the caches, y at a multiple of 16 bytes; last: no other call follows, so that the stores
   are made visible. */
CG_OFFERED_ void cg_move_zero_(float *v, size_t n, float *y, int stream, int last) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    CG_KERNEL_(kernels, move_zero(v, n, y, stream));
    if (stream && last) CG_KERNEL_(kernels, stream_fence());
}
