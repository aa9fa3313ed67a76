/* ---- >>environment: the caller's rounding mode, flush-to-zero and traps change no bit ---- */

typedef struct cg_fenv_ {
    uint64_t saved;
} cg_fenv_;

CG_INLINE_ cg_fenv_ cg_fenv_enter_(void) {
    cg_fenv_ env = { 0 };
#if (defined(__x86_64__) || defined(__SSE2_MATH__)) && (defined(__GNUC__) || defined(__TINYC__))
    uint32_t now = 0, clean = 0x1f80; /* nearest, no FTZ or DAZ, all traps masked */
    /* stmxcsr (%rax): tcc has no name for it */
    __asm__ __volatile__(".byte 0x0f, 0xae, 0x18" : : "a"(&now) : "memory");
    env.saved = now;
    __asm__ __volatile__(".byte 0x0f, 0xae, 0x10" : : "a"(&clean) : "memory"); /* ldmxcsr (%rax) */
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
    uint32_t was = (uint32_t)env.saved;
    __asm__ __volatile__(".byte 0x0f, 0xae, 0x10" : : "a"(&was) : "memory");
#elif defined(__aarch64__) && defined(__GNUC__)
    if (env.saved) __asm__ __volatile__("msr fpcr, %0" : : "r"(env.saved) : "memory");
#elif defined(__s390x__) && defined(__GNUC__)
    uint32_t was = (uint32_t)env.saved;
    __asm__ __volatile__("sfpc %0" : : "r"(was) : "memory");
#elif defined(__riscv_flen) && defined(__GNUC__)
    unsigned long was = (unsigned long)env.saved, unused;
    __asm__ __volatile__("fsrm %0, %1" : "=r"(unused) : "r"(was) : "memory");
    (void)unused;
#else
    (void)env;
#endif
}
