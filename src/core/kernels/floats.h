/* floats: kernels that take f32 and bf16 values apart into exponents and the rest, and put them together

   Offers   exponents, sign_mantissas, floats_join
   Needs    base, table, the vector layer
   Touches  nothing but its arguments
   width: bytes of a value, 4 (f32) or 2 (bf16), as they are on the wire. The rest of a value is 3 bytes, or 1, with the
   sign on top. */

/* exponents: one byte each. */
static void cg_exponents_scalar_(unsigned width, const uint8_t *in, size_t n, uint8_t *exponents) {
    if (width == 4)
        for (size_t i = 0; i < n; i++) exponents[i] = (uint8_t)(cg_get32_(in + 4 * i) >> 23);
    else
        for (size_t i = 0; i < n; i++) exponents[i] = (uint8_t)(cg_get16_(in + 2 * i) >> 7);
}
#if CG_VECTOR_
CG_VECTOR_FN_ cg_vu_ cg_exponent8_(const uint8_t *in) { return cg_vu_shr_(cg_vu_shl_(cg_vu_load_(in), 1), 24); }
CG_VECTOR_FN_ cg_vu_ cg_exponent16_(const uint8_t *in) { return cg_vu_shr16_(cg_vu_shl16_(cg_vu_load_(in), 1), 8); }
CG_VECTOR_FN_ void cg_exponents_simd_(unsigned width, const uint8_t *in, size_t n, uint8_t *exponents) {
    size_t i = 0;
    if (width == 4)
        for (; i + 32 <= n; i += 32) {
            const uint8_t *p = in + 4 * i;
            cg_vb_put_(exponents + i,
                cg_vb_narrow_(cg_exponent8_(p), cg_exponent8_(p + 32), cg_exponent8_(p + 64), cg_exponent8_(p + 96)));
        }
    else
        for (; i + 32 <= n; i += 32)
            cg_vb_put16_(exponents + i, cg_exponent16_(in + 2 * i), cg_exponent16_(in + 2 * i + 32));
    cg_exponents_scalar_(width, in + width * i, n - i, exponents + i);
}
#endif

/* sign_mantissas: what else there is of each value. */
static void cg_sign_mantissas_scalar_(unsigned width, const uint8_t *in, size_t n, uint8_t *sign_mantissas) {
    if (width == 4) {
        for (size_t i = 0; i < n; i++) {
            uint32_t u = cg_get32_(in + 4 * i);
            cg_put16_(sign_mantissas + 3 * i, u);
            sign_mantissas[3 * i + 2] = (uint8_t)((u >> 16 & 0x7f) | (u >> 24 & 0x80));
        }
    } else {
        for (size_t i = 0; i < n; i++) sign_mantissas[i] = (uint8_t)((in[2 * i] & 0x7f) | (in[2 * i + 1] & 0x80));
    }
}
#if CG_VECTOR_
CG_VECTOR_FN_ cg_vu_ cg_sign_mantissa16_(const uint8_t *in) { /* of 16 bf16, as u16 */
    const cg_vu_ v = cg_vu_load_(in);
    return cg_vu_or_(cg_vu_and_(v, cg_vu_set_(0x7f007fu)), cg_vu_and_(cg_vu_shr16_(v, 8), cg_vu_set_(0x800080u)));
}
CG_VECTOR_FN_ void cg_sign_mantissas_simd_(unsigned width, const uint8_t *in, size_t n, uint8_t *sign_mantissas) {
    const cg_vu_ low = cg_vu_set_(0x7fffff), sign = cg_vu_set_(0x800000);
    size_t i = 0;
    if (width == 4)
        for (; i + 10 <= n; i += 8) { /* the store writes 4 bytes more than its values */
            const cg_vu_ v = cg_vu_load_(in + 4 * i);
            cg_vu_store24_(sign_mantissas + 3 * i, cg_vu_or_(cg_vu_and_(v, low), cg_vu_and_(cg_vu_shr_(v, 8), sign)));
        }
    else
        for (; i + 32 <= n; i += 32)
            cg_vb_put16_(sign_mantissas + i, cg_sign_mantissa16_(in + 2 * i), cg_sign_mantissa16_(in + 2 * i + 32));
    cg_sign_mantissas_scalar_(width, in + width * i, n - i, sign_mantissas + (width - 1) * i);
}
#endif

/* floats_join: the values of n exponents and as many rests. */
static void cg_floats_join_scalar_(
    unsigned width, const uint8_t *exponents, const uint8_t *sign_mantissas, size_t n, uint8_t *out) {
    if (width == 4) {
        for (size_t i = 0; i < n; i++) {
            uint32_t r = cg_get16_(sign_mantissas + 3 * i) | (uint32_t)sign_mantissas[3 * i + 2] << 16;
            cg_put32_(out + 4 * i, (r & 0x7fffff) | (r & 0x800000) << 8 | (uint32_t)exponents[i] << 23);
        }
    } else {
        for (size_t i = 0; i < n; i++)
            cg_put16_(out + 2 * i,
                (sign_mantissas[i] & 0x7fu) | (sign_mantissas[i] & 0x80u) << 8 | (uint32_t)exponents[i] << 7);
    }
}
#if CG_VECTOR_
CG_VECTOR_FN_ void cg_floats_join_simd_(
    unsigned width, const uint8_t *exponents, const uint8_t *sign_mantissas, size_t n, uint8_t *out) {
    const cg_vu_ low = cg_vu_set_(width == 4 ? 0x7fffffu : 0x7f007fu),
                 sign = cg_vu_set_(width == 4 ? 0x800000u : 0x800080u);
    size_t i = 0;
    if (width == 4)
        for (; i + 10 <= n; i += 8) { /* the load reads 4 bytes more than its values */
            const cg_vu_ r = cg_vu_load24_(sign_mantissas + 3 * i),
                         v = cg_vu_or_(cg_vu_and_(r, low), cg_vu_shl_(cg_vu_and_(r, sign), 8));
            cg_vu_store_(out + 4 * i, cg_vu_or_(v, cg_vu_shl_(cg_vu_bytes_(exponents + i), 23)));
        }
    else
        for (; i + 16 <= n; i += 16) {
            const cg_vu_ r = cg_vu_bytes16_(sign_mantissas + i),
                         v = cg_vu_or_(cg_vu_and_(r, low), cg_vu_shl16_(cg_vu_and_(r, sign), 8));
            cg_vu_store_(out + 2 * i, cg_vu_or_(v, cg_vu_shl16_(cg_vu_bytes16_(exponents + i), 7)));
        }
    cg_floats_join_scalar_(width, exponents + i, sign_mantissas + (width - 1) * i, n - i, out + width * i);
}
#endif
