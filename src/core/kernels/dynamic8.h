/* dynamic8: kernels of the 8-bit dynamic tree format, and of Strom's fixed threshold

   Offers   dynamic8_encode, dynamic8_decode, strom_encode; cg_dynamic8_limits_
   Needs    base, table, the vector layer
   Touches  nothing but its arguments
   Dettmers' tree: a sign, then 7 bits that are z zeros, a 1 and 6-z bits f, for 10^-z*(0.1 + 0.9*(f + 0.5)/2^(6-z));
   no 1 at all is 0. So far it is the positive half of bitsandbytes' map, which has 1.0 in addition, on that side
   alone. Here code 127 is 1.0 (not 0.99297), so that the largest magnitude is exact on both sides. As numbers the
   7-bit codes are in the order of the magnitudes. Code 0 has no sign. */

/* the magnitude of each code */
static const float cg_dynamic8_values_[128] = { .0f, 5.49999982e-7f, 3.24999996e-6f, 7.7499999e-6f, 2.12499999e-5f,
    4.37499984e-5f, 6.62500024e-5f, 8.87499991e-5f, .000156249997f, .000268750009f, .000381249993f, .000493749976f,
    .000606250018f, .000718750001f, .000831249985f, .000943750027f, .00128125004f, .00184375001f, .00240624999f,
    .00296874996f, .00353124994f, .00409374991f, .00465625012f, .00521874987f, .00578125007f, .00634374982f,
    .00690625003f, .00746874977f, .00803124998f, .00859375019f, .00915625039f, .00971874967f, .0114062503f,
    .0142187504f, .0170312505f, .0198437497f, .0226562507f, .0254687499f, .0282812491f, .0310937501f, .0339062512f,
    .0367187485f, .0395312496f, .0423437506f, .0451562516f, .047968749f, .05078125f, .053593751f, .0564062484f,
    .0592187494f, .0620312504f, .0648437515f, .0676562488f, .0704687536f, .0732812509f, .0760937482f, .078906253f,
    .0817187503f, .0845312476f, .0873437524f, .0901562497f, .092968747f, .0957812518f, .0985937491f, .107031249f,
    .12109375f, .135156244f, .149218753f, .163281247f, .177343756f, .19140625f, .205468744f, .219531253f, .233593747f,
    .247656256f, .26171875f, .275781244f, .289843738f, .303906262f, .317968756f, .33203125f, .346093744f, .360156238f,
    .374218762f, .388281256f, .40234375f, .416406244f, .430468738f, .444531262f, .458593756f, .47265625f, .486718744f,
    .500781238f, .514843762f, .528906226f, .54296875f, .557031274f, .571093738f, .585156262f, .599218726f, .61328125f,
    .627343774f, .641406238f, .655468762f, .669531226f, .68359375f, .697656274f, .711718738f, .725781262f, .739843726f,
    .75390625f, .767968774f, .782031238f, .796093762f, .810156226f, .82421875f, .838281274f, .852343738f, .866406262f,
    .880468726f, .89453125f, .908593774f, .922656238f, .936718762f, .950781226f, .96484375f, .978906274f, 1.0f };
/* The code is above i where t > limits[i]: the midpoint of values i and i+1, rounded down. */
static const float cg_dynamic8_limits_[128] = { 2.74999991e-7f, 1.89999992e-6f, 5.49999959e-6f, 1.44999995e-5f,
    3.24999965e-5f, 5.50000004e-5f, 7.75000008e-5f, .000122499987f, .000212500003f, .000325000001f, .000437499984f,
    .000549999997f, .000662499981f, .000774999964f, .000887500006f, .00111249997f, .00156250002f, .00212499988f,
    .00268749986f, .00324999983f, .00381249981f, .00437500002f, .00493749976f, .00549999997f, .00606249971f,
    .00662499992f, .00718749966f, .00774999987f, .00831250008f, .00887500029f, .00943749957f, .0105625f, .0128124999f,
    .015625f, .0184374992f, .0212500002f, .0240624994f, .0268749986f, .0296874996f, .0324999988f, .0353124999f,
    .0381249972f, .0409374982f, .0437499993f, .0465625003f, .0493749976f, .0521874987f, .0549999997f, .057812497f,
    .0606249981f, .0634374991f, .0662499964f, .0690625012f, .0718749985f, .0746874958f, .0775000006f, .0803124979f,
    .0831249952f, .0859375f, .0887499973f, .0915624946f, .0943749994f, .0971874967f, .102812499f, .114062496f,
    .128124997f, .142187491f, .15625f, .170312494f, .184375003f, .198437497f, .212499991f, .2265625f, .240624994f,
    .254687488f, .268749982f, .282812476f, .296875f, .310937494f, .324999988f, .339062482f, .353124976f, .3671875f,
    .381249994f, .395312488f, .409374982f, .423437476f, .4375f, .451562494f, .465624988f, .479687482f, .493749976f,
    .5078125f, .521874964f, .535937488f, .550000012f, .564062476f, .578125f, .592187464f, .606249988f, .620312512f,
    .634374976f, .6484375f, .662499964f, .676562488f, .690625012f, .704687476f, .71875f, .732812464f, .746874988f,
    .760937512f, .774999976f, .7890625f, .803124964f, .817187488f, .831250012f, .845312476f, .859375f, .873437464f,
    .887499988f, .901562512f, .915624976f, .9296875f, .943749964f, .957812488f, .971875012f, .989453137f, CG_FLT_MAX_ };
/* dynamic8_encode: t = |v*inv_scale|, rounded, at most 1 (as is a NaN), to the nearest value, ties to the lower. */
static void cg_dynamic8_encode_scalar_(const float *v, size_t n, float inv_scale, uint8_t *symbols) {
    for (size_t i = 0; i < n; i++) {
        float f = cg_load_(v, i);
        uint32_t u = cg_as_bits_(cg_times_(f, inv_scale)) & CG_ABS_MASK_, code = 0;
        float t = cg_as_float_(u < 0x3f800000u ? u : 0x3f800000u);
        for (uint32_t step = 64; step; step /= 2) code += t > cg_dynamic8_limits_[code + step - 1] ? step : 0;
        symbols[i] = (uint8_t)(code | (code ? cg_as_bits_(f) >> 24 & 0x80u : 0u));
    }
}
/* As a function of t the code is close to seven straight lines, one per decade, each the lowest of them in its decade.
   These lines, drawn 0.6 too low and rounded down, give the code or one less (with 0.2 to spare, so that rounding does
   no harm); a comparison with one limit decides. */
#if CG_VECTOR_
static const float cg_dynamic8_slope_[8] = { 1111111.11f, 222222.222f, 44444.4444f, 8888.88889f, 1777.77778f,
    355.555556f, 71.1111111f, 0.0f };
static const float cg_dynamic8_intercept_[8] = { .288888889f, 1.17777778f, 2.95555556f, 6.51111111f, 13.6222222f,
    27.8444444f, 56.2888889f, 0.0f };
/* -1 where u, as the bits of a float that is not negative, is above limit */
CG_VECTOR_FN_ cg_vu_ cg_above8_(cg_vu_ u, float limit) { return cg_vu_gt_(u, cg_vu_set_(cg_as_bits_(limit))); }
CG_VECTOR_FN_ cg_vu_ cg_dynamic8_encode8_(cg_vu_ v, cg_vf_ inv, cg_vf_ slope, cg_vf_ intercept) {
    const float *limit = cg_dynamic8_limits_;
    const cg_vu_ u = cg_vu_min_(cg_vu_abs_(cg_vu_of_(cg_vf_mul_(cg_vf_of_(v), inv))), cg_vu_set_(0x3f800000u));
    const cg_vu_ a = cg_vu_add_(cg_above8_(u, 1e-1f), cg_above8_(u, 1e-2f)),
                 b = cg_vu_add_(cg_above8_(u, 1e-3f), cg_above8_(u, 1e-4f)),
                 c = cg_vu_add_(cg_above8_(u, 1e-5f), cg_above8_(u, 1e-6f));
    const cg_vu_ decade = cg_vu_sub_(cg_vu_set_(0), cg_vu_add_(cg_vu_add_(a, b), c));
    const cg_vf_ t = cg_vf_of_(u), x = cg_vf_mul_(t, cg_vf_lookup8_(slope, decade));
    const cg_vu_ code = cg_vu_trunc_(cg_vf_add_(x, cg_vf_lookup8_(intercept, decade)));
    uint32_t at[8];
    cg_vu_store_(at, code);
    /* eight loads: no slower than a gather instruction, and faster where microcode slows those down */
    return cg_vu_sub_(code,
        cg_vf_gt_(t,
            cg_vf_make_(limit[at[0]], limit[at[1]], limit[at[2]], limit[at[3]], limit[at[4]], limit[at[5]],
                limit[at[6]], limit[at[7]])));
}
CG_VECTOR_FN_ void cg_dynamic8_encode_simd_(const float *v, size_t n, float inv_scale, uint8_t *symbols) {
    const cg_vf_ inv = cg_vf_set_(inv_scale), slope = cg_vf_load_(cg_dynamic8_slope_, 0),
                 intercept = cg_vf_load_(cg_dynamic8_intercept_, 0);
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        const cg_vu_ a = cg_vu_floats_(v, i), b = cg_vu_floats_(v, i + 8), c = cg_vu_floats_(v, i + 16),
                     d = cg_vu_floats_(v, i + 24);
        const cg_vu_ code = cg_vb_narrow_(cg_dynamic8_encode8_(a, inv, slope, intercept),
            cg_dynamic8_encode8_(b, inv, slope, intercept), cg_dynamic8_encode8_(c, inv, slope, intercept),
            cg_dynamic8_encode8_(d, inv, slope, intercept));
        cg_prefetch32_(v, i, CG_CHUNK_);
        cg_vb_put_(symbols + i, cg_vu_or_(code, cg_vu_andnot_(cg_vb_is_zero_(code), cg_vb_narrow_tops_(a, b, c, d))));
    }
    if (i < n) cg_dynamic8_encode_scalar_(cg_at_(v, i), n - i, inv_scale, symbols + i);
}
#endif

/* dynamic8_decode: the value of the code times scale, rounded; -0 (0x80) counts as +0. */
static void cg_dynamic8_decode_scalar_(const uint8_t *symbols, size_t n, float scale, float *out, int non_temporal) {
    (void)non_temporal;
    for (size_t i = 0; i < n; i++) {
        float f = cg_dynamic8_values_[symbols[i] & 0x7f];
        cg_store_(out, i, cg_times_(symbols[i] > 0x80 ? -f : f, scale));
    }
}
#if CG_VECTOR_
CG_VECTOR_FN_ void cg_dynamic8_decode_simd_(
    const uint8_t *symbols, size_t n, float scale, float *out, int non_temporal) {
    const float *value = cg_dynamic8_values_;
    const cg_vf_ scale_v = cg_vf_set_(scale);
    const cg_vu_ minus_zero = cg_vu_set_(0x80), sign_bit = cg_vu_set_(CG_SIGN_BIT_);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const uint8_t *p = symbols + i;
        const cg_vf_ f = cg_vf_make_(value[p[0] & 0x7f], value[p[1] & 0x7f], value[p[2] & 0x7f], value[p[3] & 0x7f],
            value[p[4] & 0x7f], value[p[5] & 0x7f], value[p[6] & 0x7f], value[p[7] & 0x7f]);
        const cg_vu_ sign = cg_vu_and_(cg_vu_gt_(cg_vu_bytes_(p), minus_zero), sign_bit);
        cg_vf_stream_(out, i, cg_vf_mul_(cg_vf_of_(cg_vu_or_(cg_vu_of_(f), sign)), scale_v), non_temporal);
    }
    if (i < n) cg_dynamic8_decode_scalar_(symbols + i, n - i, scale, cg_at_mut_(out, i), 0);
}
#endif

/* strom_encode: symbol 2 where v > tau, 0 where v < -tau, else (a NaN, too) 1; tau >= 0. */
static void cg_strom_encode_scalar_(const float *v, size_t n, float tau, uint8_t *symbols) {
    for (size_t i = 0; i < n; i++) {
        float f = cg_load_(v, i);
        symbols[i] = (uint8_t)(1 + (f > tau) - (f < -tau));
    }
}
#if CG_VECTOR_
CG_VECTOR_FN_ cg_vu_ cg_strom_encode8_(const float *v, size_t i, cg_vf_ tau, cg_vf_ minus) {
    const cg_vf_ f = cg_vf_load_(v, i);
    return cg_vu_sub_(cg_vf_gt_(minus, f), cg_vf_gt_(f, tau));
}
CG_VECTOR_FN_ void cg_strom_encode_simd_(const float *v, size_t n, float tau, uint8_t *symbols) {
    const cg_vf_ t = cg_vf_set_(tau), m = cg_vf_set_(-tau);
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        const cg_vu_ s = cg_vb_narrow_signed_(cg_strom_encode8_(v, i, t, m), cg_strom_encode8_(v, i + 8, t, m),
            cg_strom_encode8_(v, i + 16, t, m), cg_strom_encode8_(v, i + 24, t, m));
        cg_prefetch32_(v, i, CG_AHEAD_);
        cg_vb_put_(symbols + i, cg_vb_add_(s, cg_vb_set_(1)));
    }
    if (i < n) cg_strom_encode_scalar_(cg_at_(v, i), n - i, tau, symbols + i);
}
#endif
