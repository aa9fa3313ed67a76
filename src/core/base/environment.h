/* environment: the caller's rounding mode, flush-to-zero and traps change no bit of a result

   Offers   cg_fenv_enter_ and cg_fenv_leave_, in pairs around all floating-point work of a thread;
            cg_fenv_enter_thread_ and cg_fenv_leave_thread_
   Needs    platform
   Touches  the control word of the calling thread's floating-point unit
   Every header may use all of it, as all of base. On machines without a case below the control word is left alone. */

typedef struct cg_fenv_ {
    uint64_t saved; /* the caller's control word */
} cg_fenv_;

/* Sets round to nearest, denormals kept, no traps. The result goes to cg_fenv_leave_ on the same thread, on every way
   out. Pairs may be nested. */
CG_INLINE_ cg_fenv_ cg_fenv_enter_(void) {
    cg_fenv_ env = { 0 };
#if (defined(__x86_64__) || defined(__SSE2_MATH__)) && (defined(__GNUC__) || defined(__TINYC__))
    uint32_t now = 0, clean = 0x1f80; /* nearest, no FTZ or DAZ, all traps masked */
    /* stmxcsr (%rax) and ldmxcsr (%rax) as bytes, as tcc does not know their names */
    __asm__ __volatile__(".byte 0x0f, 0xae, 0x18" : : "a"(&now) : "memory");
    env.saved = now;
    /* loading it takes longer than all of this; the low six bits are flags of what has happened, and change nothing */
    if ((now ^ clean) & 0xffc0) __asm__ __volatile__(".byte 0x0f, 0xae, 0x10" : : "a"(&clean) : "memory");
#elif defined(__aarch64__) && defined(__GNUC__)
    uint64_t now, clean = 0;
    __asm__ __volatile__("mrs %0, fpcr" : "=r"(now) : : "memory");
    env.saved = now;
    if (now) __asm__ __volatile__("msr fpcr, %0" : : "r"(clean) : "memory");
#elif defined(__s390x__) && defined(__GNUC__)
    uint32_t now, clean = 0;
    __asm__ __volatile__("efpc %0" : "=r"(now) : : "memory");
    env.saved = now;
    __asm__ __volatile__("sfpc %0" : : "r"(clean) : "memory");
#elif defined(__riscv_flen) && defined(__GNUC__)
    unsigned long now, clean = 0;
    __asm__ __volatile__("fsrm %0, %1" : "=r"(now) : "r"(clean) : "memory");
    env.saved = now;
#endif
    return env;
}
CG_INLINE_ void cg_fenv_leave_(cg_fenv_ env) {
#if (defined(__x86_64__) || defined(__SSE2_MATH__)) && (defined(__GNUC__) || defined(__TINYC__))
    uint32_t now = 0, saved = (uint32_t)env.saved;
    __asm__ __volatile__(".byte 0x0f, 0xae, 0x18" : : "a"(&now) : "memory");
    if (now != saved) __asm__ __volatile__(".byte 0x0f, 0xae, 0x10" : : "a"(&saved) : "memory");
#elif defined(__aarch64__) && defined(__GNUC__)
    if (env.saved) __asm__ __volatile__("msr fpcr, %0" : : "r"(env.saved) : "memory");
#elif defined(__s390x__) && defined(__GNUC__)
    uint32_t saved = (uint32_t)env.saved;
    __asm__ __volatile__("sfpc %0" : : "r"(saved) : "memory");
#elif defined(__riscv_flen) && defined(__GNUC__)
    unsigned long saved = (unsigned long)env.saved, unused;
    __asm__ __volatile__("fsrm %0, %1" : "=r"(unused) : "r"(saved) : "memory");
    (void)unused;
#else
    (void)env;
#endif
}
/* The same around the work of a thread that CG_PARALLEL_ may have started: threads have their own environment. Without
   threads the caller has entered. */
#if defined(COMPGRAD_OPENMP) && defined(_OPENMP)
CG_INLINE_ cg_fenv_ cg_fenv_enter_thread_(void) { return cg_fenv_enter_(); }
CG_INLINE_ void cg_fenv_leave_thread_(cg_fenv_ env) { cg_fenv_leave_(env); }
#else
CG_INLINE_ cg_fenv_ cg_fenv_enter_thread_(void) {
    const cg_fenv_ env = { 0 };
    return env;
}
CG_INLINE_ void cg_fenv_leave_thread_(cg_fenv_ env) { (void)env; }
#endif
