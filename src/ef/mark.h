/* mark: a hash of everything that a rank has received, so that ranks find out whether they have received the same

   Offers   cg_ef_received_hash_, cg_ef_mark_next_, cg_ef_mark_restart_; the public cg_ef_mark
   Needs    kinds, step (cg_ef_pass_); the checksum of core
   Touches  ef->mark
   Kinds that keep what they received (H, M) need it equal on all ranks, but a step may fail on some of them only. The
   mark goes on with every commit, and exchanges compare it. It is the same on every machine. */

/* Pass over vector[2]: a hash of one chunk and its place, an integer below 2^32. The sum over chunks does not depend on
   their order, so that threads may have it. */
static double cg_ef_received_hash_(const void *user, size_t first, size_t many, float *received) {
    const cg_kernels_ *kernels = cg_kernels_now_();
    cg_checksum_ sum = { 0, 0, 0 };
    uint8_t word[4];
    (void)user;
    if (!CG_BIG_ENDIAN_) CG_KERNEL_(kernels, checksum(&sum, (const uint8_t *)(const void *)received, many));
    for (size_t i = 0; CG_BIG_ENDIAN_ && i < many; i++) {
        cg_put32_(word, cg_load_bits_(received, i));
        CG_KERNEL_(kernels, checksum(&sum, word, 1));
    }
    return (double)(cg_mix64_(cg_mix64_(sum.a + first) ^ sum.b) >> 32);
}
/* The mark after a commit. hash: the sum of cg_ef_received_hash_ over what is now received. */
static void cg_ef_mark_next_(cg_ef *ef, double hash) { ef->mark = cg_mix64_(ef->mark + (uint64_t)hash + CG_GOLDEN_); }
/* The mark of a state whose history is not known: that of the received vector alone. 0 for kinds that have none. */
static void cg_ef_mark_restart_(cg_ef *ef) {
    ef->mark = 0;
    if (ef->vector[2]) cg_ef_mark_next_(ef, cg_ef_pass_(cg_ef_received_hash_, NULL, ef->vector[2], ef->desc.n));
}
CG_API_ uint64_t cg_ef_mark(const cg_ef *ef) { return ef->mark; }
