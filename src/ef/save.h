/* save: the state as bytes, the same on every machine, and back

   Offers   the public cg_ef_save_bytes, cg_ef_save, cg_ef_load and cg_ef_load_mean
   Needs    residual8, mark; seals of core
   Touches  the caller's buffer; loading all of the state but its description
   Other headers may use: cg_ef_blob_check_
   A blob is little-endian, every part in whole words. Nothing is loaded before all blobs have been checked.

   byte 0  "cgef"  4 version  8 kind  12 parts present (bit 0 residual, 1 velocity, 2 received, 3 residual in 8 bits)
       16 n  24 steps  32 silent  40 moves  48 first of carry  56 floats of carry  64 floats of warm
       72 moved, ten doubles  152 error  160 error when sent  168 score  176 reach  184 size (doubles)
       192 scale  196 hint  200 threshold (floats)  204 zeros  208 mark  216 zeros  240 checksum of everything else, as
       of a packet. Version 2 has a mark, and is that of kinds which keep what they received; version 1 has zeros there.
   256 residual, velocity, received (floats; or n codes and the scales of 64, filled to a word), carry, warm */

static void cg_put_double_(uint8_t *p, double v) {
    uint64_t u;
    memcpy(&u, &v, 8);
    cg_put64_(p, u);
}
static double cg_get_double_(const uint8_t *p) {
    const uint64_t u = cg_get64_(p);
    double v;
    memcpy(&v, &u, 8);
    return v;
}
/* Bytes of an 8-bit residual of n values in a blob: codes and scales, filled to a word. */
static uint64_t cg_residual8_saved_bytes_(size_t n) {
    return (cg_add_sat_(n, cg_mul_sat_(2, cg_add_sat_(n, CG_EF_BUCKET_ - 1) / CG_EF_BUCKET_)) + 3) & ~(uint64_t)3;
}
/* The word at byte 12: which sections this state has. */
static uint32_t cg_ef_section_mask_(const cg_ef *ef) {
    return (ef->vector[0] ? 1u : 0u) | (ef->vector[1] ? 2u : 0u) | (ef->vector[2] ? 4u : 0u) | (ef->bytes ? 8u : 0u);
}
static uint64_t cg_ef_blob_bytes_(const cg_ef *ef) {
    uint64_t bytes = CG_EF_HEADER_BYTES_;
    for (int i = 0; i < 3; i++)
        if (ef->vector[i]) bytes = cg_add_sat_(bytes, cg_mul_sat_(4, ef->desc.n));
    if (ef->bytes) bytes = cg_add_sat_(bytes, cg_residual8_saved_bytes_(ef->desc.n));
    return cg_add_sat_(bytes, cg_mul_sat_(4, cg_add_sat_(ef->carry ? ef->desc.carry : 0, ef->warm_count)));
}
CG_API_ size_t cg_ef_save_bytes(const cg_ef *ef) { return ef ? cg_size_or_zero_(cg_ef_blob_bytes_(ef)) : 0; }

/* Writes n floats at p, nothing if v is NULL; returns where the next section begins. */
static uint8_t *cg_ef_write_floats_(uint8_t *p, const float *v, size_t n) {
    for (size_t i = 0; v && i < n; i++, p += 4) cg_put32_(p, cg_as_bits_(v[i]));
    return p;
}
static cg_status cg_ef_save_(const cg_ef *ef, uint8_t *buf, size_t cap, size_t *len) {
    const size_t n = ef->desc.n, bytes = cg_size_or_zero_(cg_ef_blob_bytes_(ef)),
                 padded_bytes = cg_size_or_zero_(cg_residual8_saved_bytes_(n)),
                 used_bytes = n + 2 * ((n + CG_EF_BUCKET_ - 1) / CG_EF_BUCKET_); /* both of the 8-bit residual */
    uint8_t *p = buf + CG_EF_HEADER_BYTES_;
    if (cg_ef_is_unready_(ef)) return CG_E_STATE;
    if (cap < bytes) return CG_E_CAPACITY;
    memset(buf, 0, CG_EF_HEADER_BYTES_);
    cg_put32_(buf, CG_EF_MAGIC_);
    cg_put32_(buf + 4, cg_ef_has_trait_(&ef->desc, CG_EF_KEEPS_RECEIVED_) ? CG_EF_VERSION_MARKED_ : CG_EF_VERSION_);
    cg_put32_(buf + 8, ef->desc.kind);
    cg_put32_(buf + 12, cg_ef_section_mask_(ef));
    cg_put64_(buf + 16, n);
    cg_put64_(buf + 24, ef->steps);
    cg_put64_(buf + 32, ef->silent);
    cg_put64_(buf + 40, ef->moves);
    cg_put64_(buf + 48, ef->carry_first);
    cg_put64_(buf + 56, ef->carry ? ef->desc.carry : 0);
    cg_put64_(buf + 64, ef->warm_count);
    for (int i = 0; i < 10; i++) cg_put_double_(buf + 72 + 8 * i, ef->moved[i]);
    cg_put_double_(buf + 152, ef->error);
    cg_put_double_(buf + 160, ef->error_sent);
    cg_put_double_(buf + 168, ef->score);
    cg_put_double_(buf + 176, ef->reach);
    cg_put_double_(buf + 184, ef->size);
    cg_put32_(buf + 192, cg_as_bits_(ef->scale));
    cg_put32_(buf + 196, cg_as_bits_(ef->hint));
    cg_put32_(buf + 200, cg_as_bits_(ef->threshold));
    cg_put64_(buf + CG_EF_MARK_OFFSET_, ef->mark);
    p = cg_ef_write_floats_(p, ef->vector[0], n);
    if (ef->bytes) {
        memcpy(p, ef->bytes, used_bytes);
        memset(p + used_bytes, 0, padded_bytes - used_bytes);
        p += padded_bytes;
    }
    p = cg_ef_write_floats_(p, ef->vector[1], n);
    p = cg_ef_write_floats_(p, ef->vector[2], n);
    p = cg_ef_write_floats_(p, ef->carry, ef->desc.carry);
    cg_ef_write_floats_(p, ef->warm, ef->warm_count);
    cg_seal_put_(buf, bytes, CG_EF_SEAL_OFFSET_);
    *len = bytes;
    return CG_OK;
}
CG_API_ cg_status cg_ef_save(const cg_ef *ef, void *buf, size_t cap, size_t *len) {
    cg_fenv_ env;
    cg_status s;
    if (len) *len = 0;
    if (!ef || !buf || !len) return CG_E_ARG;
    env = cg_fenv_enter_();
    s = cg_ef_save_(ef, (uint8_t *)buf, cap, len);
    cg_fenv_leave_(env);
    return s;
}
static int cg_ef_is_nonnegative_(double v) { return v >= 0.0 && v <= 1.7976931348623157e308; }
/* Whether `count` little-endian floats at p are finite. */
static int cg_floats_finite_(const uint8_t *p, uint64_t count) {
    for (uint64_t i = 0; i < count; i++)
        if (!cg_is_finite_(cg_as_float_(cg_get32_(p + 4 * (size_t)i)))) return 0;
    return 1;
}
/* Finds everything that can be wrong with a blob for this state; p may be NULL. exact: it is loaded as it is, so its
   carry must be as long as this state's. Otherwise it is one of several to be averaged, which may come from ranks with
   carries of other lengths. */
static cg_status cg_ef_blob_check_(const cg_ef *ef, const uint8_t *p, size_t len, int exact) {
    const size_t n = ef->desc.n;
    uint64_t carry, first, warm, floats;
    int marked;
    if (!p) return CG_E_ARG;
    if (len < CG_EF_HEADER_BYTES_ || len % 4 || cg_get32_(p) != CG_EF_MAGIC_) return CG_E_CORRUPT;
    if (!cg_seal_is_intact_(p, len, CG_EF_SEAL_OFFSET_)) return CG_E_CORRUPT;
    marked = cg_get32_(p + 4) == CG_EF_VERSION_MARKED_;
    if (cg_get32_(p + 4) != CG_EF_VERSION_ && !marked) return CG_E_VERSION;
    first = cg_get64_(p + 48);
    carry = cg_get64_(p + 56);
    warm = cg_get64_(p + 64);
    if (cg_get32_(p + 8) != ef->desc.kind || cg_get32_(p + 12) != cg_ef_section_mask_(ef) || cg_get64_(p + 16) != n ||
        warm != ef->warm_count)
        return CG_E_MISMATCH;
    if (marked && !ef->vector[2]) return CG_E_VERSION;
    /* a carry may be longer than the rank's stripe, and reach beyond the vector */
    if ((exact && carry != (ef->carry ? ef->desc.carry : 0)) || first > n) return CG_E_MISMATCH;
    floats = cg_add_sat_(carry, warm);
    for (int i = 0; i < 3; i++)
        if (ef->vector[i]) floats = cg_add_sat_(floats, n);
    if (cg_add_sat_(CG_EF_HEADER_BYTES_ + (ef->bytes ? cg_residual8_saved_bytes_(n) : 0), cg_mul_sat_(4, floats)) !=
        len)
        return CG_E_CORRUPT;
    for (int i = 0; i < 15; i++)
        if (!cg_ef_is_nonnegative_(cg_get_double_(p + 72 + 8 * i))) return CG_E_CORRUPT;
    if (!(cg_as_float_(cg_get32_(p + 192)) > 0.0f && cg_as_float_(cg_get32_(p + 192)) <= 1.0f) ||
        !cg_floats_finite_(p + 196, 2))
        return CG_E_CORRUPT;
    for (size_t i = 204; i < CG_EF_SEAL_OFFSET_; i++)
        if (p[i] && !(marked && i - CG_EF_MARK_OFFSET_ < 8)) return CG_E_CORRUPT;
    if (ef->bytes) {
        for (size_t b = 0; b < (n + CG_EF_BUCKET_ - 1) / CG_EF_BUCKET_; b++)
            if ((p[CG_EF_HEADER_BYTES_ + n + 2 * b + 1] << 8 | p[CG_EF_HEADER_BYTES_ + n + 2 * b]) > 0x7f7f)
                return CG_E_CORRUPT;
        p += cg_size_or_zero_(cg_residual8_saved_bytes_(n));
    }
    return cg_floats_finite_(p + CG_EF_HEADER_BYTES_, floats) ? CG_OK : CG_E_CORRUPT;
}
static void cg_ef_load_header_(cg_ef *ef, const uint8_t *p) {
    ef->steps = cg_get64_(p + 24);
    ef->silent = cg_get64_(p + 32);
    ef->moves = cg_get64_(p + 40);
    ef->carry_first = cg_size_or_zero_(cg_get64_(p + 48));
    for (int i = 0; i < 10; i++) ef->moved[i] = cg_get_double_(p + 72 + 8 * i);
    ef->error = cg_get_double_(p + 152);
    ef->error_sent = cg_get_double_(p + 160);
    ef->score = cg_get_double_(p + 168);
    ef->reach = cg_get_double_(p + 176);
    ef->size = cg_get_double_(p + 184);
    ef->scale = cg_as_float_(cg_get32_(p + 192));
    ef->hint = cg_as_float_(cg_get32_(p + 196));
    ef->threshold = cg_as_float_(cg_get32_(p + 200));
    ef->mark = cg_get64_(p + CG_EF_MARK_OFFSET_);
    ef->may_withdraw = 0;
    cg_ef_delay_forget_(ef); /* it is made anew by the next steps */
}
/* Reads n floats from p, nothing if v is NULL; returns where the next section begins. */
static const uint8_t *cg_ef_read_floats_(const uint8_t *p, float *v, size_t n) {
    for (size_t i = 0; v && i < n; i++, p += 4) v[i] = cg_as_float_(cg_get32_(p));
    return p;
}
/* Loads a blob that has been checked. A carry of another length is skipped. */
static void cg_ef_load_one_(cg_ef *ef, const uint8_t *blob) {
    const size_t n = ef->desc.n;
    const uint8_t *p = blob + CG_EF_HEADER_BYTES_;
    p = cg_ef_read_floats_(p, ef->vector[0], n);
    if (ef->bytes) {
        memcpy(ef->bytes, p, n + 2 * ((n + CG_EF_BUCKET_ - 1) / CG_EF_BUCKET_));
        p += cg_size_or_zero_(cg_residual8_saved_bytes_(n));
    }
    p = cg_ef_read_floats_(p, ef->vector[1], n);
    p = cg_ef_read_floats_(p, ef->vector[2], n);
    if (cg_get64_(blob + 56) == ef->desc.carry) cg_ef_read_floats_(p, ef->carry, ef->desc.carry);
    p += 4 * cg_size_or_zero_(cg_get64_(blob + 56));
    cg_ef_read_floats_(p, ef->warm, ef->warm_count);
    cg_ef_load_header_(ef, blob);
    /* version 1 has no mark: what ranks have received must be the same, and they find out whether it is */
    if (cg_get32_(blob + 4) == CG_EF_VERSION_ && ef->steps) cg_ef_mark_restart_(ef);
}
/* Value i of a vector in a blob (which: 0 residual, 1 velocity, 2 received), divided by the blob's scale: vectors are
   stored times 1 / (1 + w) of the last operator, a variance times its square; shifts and received are not. */
static double cg_ef_blob_value_(const cg_ef *ef, const uint8_t *p, int which, size_t i) {
    const size_t n = ef->desc.n, padded_bytes = ef->bytes ? cg_size_or_zero_(cg_residual8_saved_bytes_(n)) : 0;
    double scale =
        which == 2 || cg_ef_has_trait_(&ef->desc, CG_EF_HAS_SHIFT_) ? 1.0 : (double)cg_as_float_(cg_get32_(p + 192));
    if (which == 1) scale = cg_ef_velocity_scale_(&ef->desc, scale);
    p += CG_EF_HEADER_BYTES_;
    if (which == 0 && ef->bytes) {
        const float bucket_scale = cg_residual8_scale_get_(p + n + 2 * (i / CG_EF_BUCKET_));
        float f;
        cg_bucket_dequantize_(cg_kernels_now_(), &cg_residual8_stage_, bucket_scale, p + i, 1, &f);
        return (double)f / scale;
    }
    p += padded_bytes;
    for (int v = 0; v < which; v++)
        if (ef->vector[v]) p += 4 * n;
    return (double)cg_as_float_(cg_get32_(p + 4 * i)) / scale;
}
/* Value i of a blob's carry, which is 0 outside of the rank's stripe. */
static double cg_ef_blob_carry_(const cg_ef *ef, const uint8_t *p, size_t i) {
    const uint64_t first = cg_get64_(p + 48), many = cg_get64_(p + 56), warm = cg_get64_(p + 64);
    const size_t len = cg_size_or_zero_(cg_ef_blob_bytes_(ef)) - 4 * (ef->carry ? ef->desc.carry : 0) +
        4 * (size_t)many;
    if (i < first || i - first >= many) return 0.0;
    return (double)cg_as_float_(cg_get32_(p + len - 4 * (size_t)(warm + many) + 4 * (i - (size_t)first)));
}
/* The mean over blobs of value i of a vector. A carry is what one rank withheld of a mean: `count` times it is added to
   the sum, so that every rank has it in its residual. */
static float cg_ef_blobs_mean_(const cg_ef *ef, const void *const *bufs, size_t count, int which, size_t i) {
    const int differs = cg_ef_has_trait_(&ef->desc, CG_EF_HAS_SHIFT_);
    double sum = 0.0;
    for (size_t blob = 0; blob < count; blob++) {
        /* the mean of all shifts h is H, but for carries */
        sum += cg_ef_blob_value_(ef, (const uint8_t *)bufs[blob], differs && which == 0 ? 2 : which, i);
        if (which == 0 && !differs)
            sum += cg_times64_((double)count, cg_ef_blob_carry_(ef, (const uint8_t *)bufs[blob], i));
    }
    return cg_saturate_((float)(sum / (double)count));
}
/* Loads the mean of blobs that have been checked: counters and warm from the first, vectors averaged at scale 1, and no
   carry is left. */
static void cg_ef_load_mean_(cg_ef *ef, const void *const *bufs, size_t count) {
    const size_t n = ef->desc.n;
    float e[CG_EF_BUCKET_];
    double reach = 0.0;
    cg_ef_load_one_(ef, (const uint8_t *)bufs[0]);
    for (int which = 0; which < 3; which++)
        for (size_t i = 0; ef->vector[which] && i < n; i++)
            ef->vector[which][i] = cg_ef_blobs_mean_(ef, bufs, count, which, i);
    for (size_t i = 0; ef->bytes && i < n; i++) {
        e[i % CG_EF_BUCKET_] = cg_ef_blobs_mean_(ef, bufs, count, 0, i);
        if (i % CG_EF_BUCKET_ == CG_EF_BUCKET_ - 1 || i == n - 1)
            cg_residual8_encode_(cg_kernels_now_(), ef, i / CG_EF_BUCKET_, e);
    }
    for (size_t blob = 0; blob < count; blob++) {
        const double one = cg_get_double_((const uint8_t *)bufs[blob] + 176);
        reach = one > reach ? one : reach;
    }
    if (ef->carry) memset(ef->carry, 0, 4 * ef->desc.carry);
    ef->scale = 1.0f;
    ef->reach = 2.0 * reach;
    if (!cg_ef_has_trait_(&ef->desc, CG_EF_COPIES_RECEIVED_))
        cg_ef_mark_restart_(ef); /* or all have that of the first */
}
static cg_status cg_ef_load_(cg_ef *ef, const void *const *bufs, const size_t *lens, size_t count, int exact) {
    cg_fenv_ env;
    cg_status s = CG_OK;
    if (!ef || !bufs || !lens || !count) return CG_E_ARG;
    if (cg_ef_is_unready_(ef)) return CG_E_STATE;
    env = cg_fenv_enter_();
    for (size_t blob = 0; blob < count && s == CG_OK; blob++)
        s = cg_ef_blob_check_(ef, (const uint8_t *)bufs[blob], lens[blob], exact);
    /* what was received must have been the same */
    for (size_t blob = 1; blob < count && s == CG_OK && cg_ef_has_trait_(&ef->desc, CG_EF_COPIES_RECEIVED_); blob++)
        if (cg_get64_((const uint8_t *)bufs[blob] + CG_EF_MARK_OFFSET_) !=
            cg_get64_((const uint8_t *)bufs[0] + CG_EF_MARK_OFFSET_))
            s = CG_E_MISMATCH;
    if (s == CG_OK && exact) cg_ef_load_one_(ef, (const uint8_t *)bufs[0]);
    else if (s == CG_OK) cg_ef_load_mean_(ef, bufs, count);
    cg_fenv_leave_(env);
    return s;
}
CG_API_ cg_status cg_ef_load(cg_ef *ef, const void *buf, size_t len) { return cg_ef_load_(ef, &buf, &len, 1, 1); }
CG_API_ cg_status cg_ef_load_mean(cg_ef *ef, const void *const *bufs, const size_t *lens, size_t count) {
    return cg_ef_load_(ef, bufs, lens, count, 0);
}
