/* ref.h - compgrad's packet format in the plainest C, written from the specification and not from the
   library: one value at a time, a full sort for top-k, memory from malloc. Include compgrad.h first.

   ref_compress makes a packet, ref_decode the vector in it, ref_valid says whether a body is well formed,
   ref_fill makes test vectors. Nothing here is fast, and only the tests may use libm. */

#ifndef REF_H
#define REF_H

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__GNUC__)
#  define REF_FN static __attribute__((unused))
#else
#  define REF_FN static
#endif

/* ---- bytes, bits and floats ---- */

REF_FN void *ref_alloc(size_t bytes) {
    void *p = calloc(bytes ? bytes : 1, 1);
    if (!p) {
        fprintf(stderr, "out of memory\n");
        exit(2);
    }
    return p;
}

REF_FN void ref_put(unsigned char *p, uint64_t v, int bytes) {
    int i;
    for (i = 0; i < bytes; i++) p[i] = (unsigned char)(v >> (8 * i));
}

REF_FN uint64_t ref_get(const unsigned char *p, int bytes) {
    uint64_t v = 0;
    int i;
    for (i = 0; i < bytes; i++) v |= (uint64_t)p[i] << (8 * i);
    return v;
}

REF_FN uint32_t ref_bits(float f) {
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}
REF_FN float ref_float(uint32_t u) {
    float f;
    memcpy(&f, &u, 4);
    return f;
}
REF_FN uint32_t ref_mag(float f) { return ref_bits(f) & 0x7fffffffu; }
REF_FN int ref_finite(float f) { return ref_mag(f) < 0x7f800000u; }

/* One IEEE operation each: volatile keeps the compiler from fusing a product into a sum. */
REF_FN float ref_mul(float a, float b) {
    volatile float r = a * b;
    return r;
}
REF_FN float ref_add(float a, float b) {
    volatile float r = a + b;
    return r;
}
REF_FN float ref_sub(float a, float b) {
    volatile float r = a - b;
    return r;
}
REF_FN float ref_div(float a, float b) {
    volatile float r = a / b;
    return r;
}
REF_FN float ref_clamp(float v) { return v > FLT_MAX ? FLT_MAX : v < -FLT_MAX ? -FLT_MAX : v; }

REF_FN void ref_put_bits(unsigned char *p, uint64_t at, uint64_t v, int bits) {
    int i;
    for (i = 0; i < bits; i++, at++)
        if (v >> i & 1) p[at >> 3] = (unsigned char)(p[at >> 3] | 1u << (at & 7));
}

REF_FN uint64_t ref_get_bits(const unsigned char *p, uint64_t at, int bits) {
    uint64_t v = 0;
    int i;
    for (i = 0; i < bits; i++, at++) v |= (uint64_t)(p[at >> 3] >> (at & 7) & 1) << i;
    return v;
}

REF_FN uint64_t ref_pad4(uint64_t bits) { return ((bits + 7) / 8 + 3) / 4 * 4; } /* bits to whole words */

REF_FN void ref_checksum(const unsigned char *p, size_t len, uint64_t *a, uint64_t *b) {
    uint64_t m = len / 4, i;
    *a = *b = 0;
    for (i = 0; i < m; i++) {
        uint64_t w = i >= 38 && i < 42 ? 0 : ref_get(p + 4 * i, 4); /* bytes 152..168 are its own */
        *a += w;
        *b += (m - i) * w;
    }
}

REF_FN void ref_seal(unsigned char *p, size_t len) {
    uint64_t a, b;
    ref_checksum(p, len, &a, &b);
    ref_put(p + 152, a, 8);
    ref_put(p + 160, b, 8);
}

/* ---- randomness ---- */

#define REF_G UINT64_C(0x9E3779B97F4A7C15)

REF_FN uint64_t ref_mix64(uint64_t z) {
    z ^= z >> 30;
    z *= UINT64_C(0xBF58476D1CE4E5B9);
    z ^= z >> 27;
    z *= UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

REF_FN uint64_t ref_shared(const cg_tag *t) {
    return ref_mix64(ref_mix64(ref_mix64(t->seed + REF_G) ^ (t->step + 2 * REF_G)) ^ (t->tensor + 3 * REF_G));
}

REF_FN uint64_t ref_private(const cg_tag *t) { return ref_mix64(ref_shared(t) ^ (t->rank + 4 * REF_G)); }

/* the key of a sample, or of a rotation before its own constant */
REF_FN uint64_t ref_draws(const cg_tag *t, int is_private) {
    return is_private ? ref_private(t) ^ 0xBB67AE8584CAA73Bu : ref_shared(t);
}

REF_FN uint32_t ref_hash(uint64_t key, uint64_t block, uint32_t c) {
    uint64_t s = ref_mix64(key + (block + 1) * REF_G);
    uint32_t a = (uint32_t)s, b = (uint32_t)(s >> 32), h = c ^ a;
    h ^= h >> 16;
    h *= 0x7FEB352Du;
    h ^= h >> 15;
    h += b;
    h *= 0x846CA68Bu;
    return h ^ h >> 16;
}

REF_FN float ref_noise(uint64_t key, uint64_t j) {
    uint32_t p = (uint32_t)(j & 65535), h = ref_hash(key, j >> 16, (p >> 4) << 3 | (p & 7));
    if (p & 8) h = h << 16 | h >> 16;
    return ref_mul((float)(h < 0x80000000u ? (int64_t)h : (int64_t)h - INT64_C(0x100000000)), 0x1p-32f);
}

/* ---- 16-bit floats, by double arithmetic: mant stored mantissa bits, emin the least exponent ---- */

REF_FN uint16_t ref_half(float v, int mant, int emin, int emax) {
    uint32_t sign = ref_bits(v) >> 31 << 15;
    double a = fabs((double)v), top = ldexp(2.0 - ldexp(1.0, -mant), emax), q;
    int e;
    if (a == 0.0) return (uint16_t)sign;
    frexp(a, &e);
    e = e - 1 < emin ? emin : e - 1;
    q = nearbyint(ldexp(a, mant - e)); /* exact but for this one rounding to even */
    if (ldexp(q, e - mant) > top) {
        q = ldexp(top, mant - emax);
        e = emax;
    }
    /* q carrying into the next binade adds one to the exponent by itself */
    return (uint16_t)(sign + ((uint32_t)(e - emin) << mant) + (uint32_t)q);
}

REF_FN float ref_unhalf(uint16_t h, int mant, int emin) {
    int e = (h & 0x7fff) >> mant, m = h & ((1 << mant) - 1);
    double a = e ? ldexp((double)(m + (1 << mant)), e - 1 + emin - mant) : ldexp((double)m, emin - mant);
    return (float)(h >> 15 ? -a : a);
}

REF_FN uint16_t ref_to_f16(float v) { return ref_half(v, 10, -14, 15); }
REF_FN uint16_t ref_to_bf16(float v) { return ref_half(v, 7, -126, 127); }
REF_FN float ref_from_f16(uint16_t h) { return ref_unhalf(h, 10, -14); }
REF_FN float ref_from_bf16(uint16_t h) { return ref_unhalf(h, 7, -126); }

/* ---- what an operator makes of n ---- */

REF_FN uint64_t ref_count(float ratio, uint64_t k, uint64_t n) {
    double want = k ? (double)k : floor((double)ratio * (double)n + 0.5);
    if (n == 0) return 0;
    return want < 1.0 ? 1 : want > (double)n ? n : (uint64_t)want;
}

REF_FN void ref_stratum(uint64_t n, uint64_t k, uint64_t j, uint64_t *start, uint64_t *len) {
    *start = j * n / k; /* tests stay far below 2^32, so the product is exact */
    *len = (j + 1) * n / k - *start;
}

REF_FN uint64_t ref_draw(uint64_t key, uint64_t n, uint64_t k, uint64_t j, uint64_t *len) {
    uint64_t start;
    ref_stratum(n, k, j, &start, len);
    return start + ((uint64_t)ref_hash(key, j >> 16, (uint32_t)(j & 65535)) * *len >> 32);
}

typedef struct ref_levels {
    float f, g, sub, inv, base, step;
    int bias, maxcode;
} ref_levels;

REF_FN ref_levels ref_levels_of(int symmetric, int bits, float lo, float hi) {
    ref_levels l;
    float amax = fabsf(lo) > fabsf(hi) ? fabsf(lo) : fabsf(hi);
    l.f = amax >= 0x1p126f ? 0.5f : amax < 0x1p-80f ? 0x1p100f : 1.0f;
    l.g = 1.0f / l.f;
    if (symmetric && bits >= 2) {
        int L = (1 << (bits - 1)) - 1;
        float a = ref_mul(hi, l.f);
        l.sub = l.base = 0.0f;
        l.inv = hi == 0.0f ? 0.0f : ref_div((float)L, a);
        l.step = ref_div(a, (float)L);
        l.bias = L;
        l.maxcode = 2 * L;
    } else {
        float range = ref_sub(ref_mul(hi, l.f), ref_mul(lo, l.f));
        l.maxcode = (1 << bits) - 1;
        l.sub = l.base = ref_mul(lo, l.f);
        l.inv = range == 0.0f ? 0.0f : ref_div((float)l.maxcode, range);
        l.step = ref_div(range, (float)l.maxcode);
        l.bias = 0;
    }
    return l;
}

REF_FN int ref_level(const ref_levels *l, float v, int nearest, float noise) {
    float t = ref_mul(ref_sub(ref_mul(v, l->f), l->sub), l->inv);
    double code;
    if (!nearest) t = ref_add(t, noise);
    code = (double)nearbyintf(t) + l->bias;
    return code < 0 ? 0 : code > l->maxcode ? l->maxcode : (int)code;
}

REF_FN float ref_unlevel(const ref_levels *l, int code) {
    int lvl = (code < l->maxcode ? code : l->maxcode) - l->bias;
    return ref_clamp(ref_mul(ref_add(l->base, ref_mul((float)lvl, l->step)), l->g));
}

/* The value section of k coded values: scales per bucket, and bits per code. */
typedef struct ref_shape {
    int id, bits, scales, symmetric, nearest;
    uint64_t bucket, buckets, bytes;
} ref_shape;

REF_FN ref_shape ref_shape_of(int id, int flags, int arg, uint64_t size, uint64_t k) {
    ref_shape s;
    s.id = id;
    s.bits = 32;
    s.scales = 0;
    s.bucket = k;
    s.symmetric = id != CG_QUANTIZE_MINMAX;
    s.nearest = flags & CG_FLAG_NEAREST;
    switch (id) {
    case CG_QUANTIZE_F16:
    case CG_QUANTIZE_BF16: s.bits = 16; break;
    case CG_QUANTIZE_SIGN: s.bits = 1; break;
    case CG_QUANTIZE_EFSIGN:
        s.bits = 1;
        s.scales = 1;
        break;
    case CG_QUANTIZE_TERNGRAD:
        s.bits = 2;
        s.scales = 1;
        break;
    case CG_QUANTIZE_ABSMAX:
        s.bits = arg;
        s.scales = 1;
        s.bucket = size;
        break;
    case CG_QUANTIZE_MINMAX:
        s.bits = arg;
        s.scales = 2;
        s.bucket = size;
        break;
    default: break;
    }
    s.buckets = k && s.scales ? (k + s.bucket - 1) / s.bucket : 0;
    s.bytes = s.buckets * (uint64_t)s.scales * 4 + ref_pad4(k * (uint64_t)s.bits);
    return s;
}

REF_FN int ref_ef_low(uint64_t drawn, uint64_t k) {
    int l = 0;
    while (drawn / k >> (l + 1)) l++;
    return l;
}

REF_FN uint64_t ref_ef_high_bits(uint64_t drawn, uint64_t k) { return k + ((drawn - 1) >> ref_ef_low(drawn, k)) + 1; }

REF_FN uint64_t ref_ef_bytes(uint64_t drawn, uint64_t k) {
    return k ? ref_pad4(k * (uint64_t)ref_ef_low(drawn, k)) + ref_pad4(ref_ef_high_bits(drawn, k)) : 0;
}

/* ---- the encoder ---- */

typedef struct ref_item {
    uint32_t mag;
    uint64_t index;
    float v;
} ref_item;

REF_FN int ref_by_magnitude(const void *pa, const void *pb) {
    const ref_item *a = (const ref_item *)pa, *b = (const ref_item *)pb;
    if (a->mag != b->mag) return a->mag > b->mag ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

REF_FN int ref_by_index(const void *pa, const void *pb) {
    const ref_item *a = (const ref_item *)pa, *b = (const ref_item *)pb;
    return a->index < b->index ? -1 : a->index > b->index;
}

REF_FN float ref_mean_magnitude(const ref_item *v, uint64_t k) {
    double total = 0.0;
    uint64_t first, i;
    for (first = 0; first < k; first += 65536) {
        double lane[16] = { 0 };
        int w;
        for (i = first; i < k && i < first + 65536; i++) lane[i % 16] += (double)fabsf(v[i].v);
        for (w = 8; w; w /= 2)
            for (i = 0; i < (uint64_t)w; i++) lane[i] += lane[i + (uint64_t)w];
        total += lane[0];
    }
    return (float)(total / (double)k);
}

REF_FN void ref_scale_of(const ref_shape *s, const ref_item *v, uint64_t n, float *lo, float *hi) {
    uint64_t i;
    if (s->id == CG_QUANTIZE_EFSIGN) {
        *lo = *hi = ref_mean_magnitude(v, n);
        return;
    }
    *lo = *hi = s->symmetric ? fabsf(v[0].v) : v[0].v;
    for (i = 1; i < n; i++) {
        float x = s->symmetric ? fabsf(v[i].v) : v[i].v;
        if (x < *lo) *lo = x;
        if (x > *hi) *hi = x;
    }
    *lo = ref_add(*lo, 0.0f);
    *hi = ref_add(*hi, 0.0f);
    if (s->symmetric) *lo = -*hi;
}

REF_FN void ref_put_values(unsigned char *p, const ref_shape *s, const ref_item *v, uint64_t k, uint64_t key) {
    unsigned char *codes = p + s->buckets * (uint64_t)s->scales * 4;
    ref_levels l = ref_levels_of(1, 2, 0.0f, 0.0f);
    uint64_t j;
    for (j = 0; j < k; j++) {
        uint64_t code;
        if (s->scales && j % s->bucket == 0) {
            uint64_t left = k - j < s->bucket ? k - j : s->bucket, b = j / s->bucket;
            float lo, hi;
            ref_scale_of(s, v + j, left, &lo, &hi);
            if (s->scales == 2) {
                ref_put(p + 8 * b, ref_bits(lo), 4);
                ref_put(p + 8 * b + 4, ref_bits(hi), 4);
            } else ref_put(p + 4 * b, ref_bits(hi), 4);
            l = ref_levels_of(s->symmetric, s->bits, lo, hi);
        }
        switch (s->id) {
        case 0: code = ref_bits(v[j].v); break;
        case CG_QUANTIZE_F16: code = ref_to_f16(v[j].v); break;
        case CG_QUANTIZE_BF16: code = ref_to_bf16(v[j].v); break;
        case CG_QUANTIZE_SIGN:
        case CG_QUANTIZE_EFSIGN: code = v[j].v < 0.0f; break;
        default: code = (uint64_t)ref_level(&l, v[j].v, s->nearest, ref_noise(key, j)); break;
        }
        ref_put_bits(codes, j * (uint64_t)s->bits, code, s->bits);
    }
}

REF_FN void ref_put_indices(unsigned char *p, int ix, const ref_item *v, uint64_t k, uint64_t drawn) {
    int l = k ? ref_ef_low(drawn, k) : 0;
    uint64_t i;
    for (i = 0; i < k; i++) {
        if (ix == CG_CODE_BITMAP) {
            ref_put_bits(p, v[i].index, 1, 1);
            continue;
        }
        ref_put_bits(p, i * (uint64_t)l, v[i].index, l);
        ref_put_bits(p + ref_pad4(k * (uint64_t)l), (v[i].index >> l) + i, 1, 1);
    }
}

REF_FN void ref_put_stage(unsigned char *p, const cg_stage *s) {
    p[0] = s->id;
    p[1] = s->flags;
    ref_put(p + 2, s->arg, 2);
    ref_put(p + 4, s->size, 4);
    ref_put(p + 8, ref_bits(s->value), 4);
}

/* The packet, to be freed, and its length; NULL if a value that would be sent is not finite. */
REF_FN unsigned char *ref_compress(const cg_op *op, const cg_tag *tag, const float *x, uint64_t n, size_t *len) {
    static const cg_tag zero;
    const cg_stage *stages[6];
    uint64_t drawn = n, k, j, ix_bytes = 0;
    float threshold = 0.0f;
    int ix = 0;
    ref_item *v;
    ref_shape s;
    unsigned char *p;

    if (!tag) tag = &zero;
    if (op->sample.id) drawn = ref_count(op->sample.value, op->select.id == CG_SELECT_TOPK ? 0 : op->k, n);
    v = (ref_item *)ref_alloc((size_t)drawn * sizeof *v);
    for (j = 0; j < drawn; j++) {
        uint64_t at = j, size = 1;
        if (op->sample.id) at = ref_draw(ref_draws(tag, op->sample.flags & 2), n, drawn, j, &size);
        memcpy(&v[j].v, (const char *)x + 4 * at, 4); /* x may have any alignment */
        if (!ref_finite(v[j].v)) {
            free(v);
            return NULL;
        }
        if (op->sample.id && !(op->sample.flags & CG_FLAG_UNSCALED)) v[j].v = ref_clamp(ref_mul(v[j].v, (float)size));
        v[j].mag = ref_mag(v[j].v);
        v[j].index = j;
    }
    k = drawn;
    if (op->select.id == CG_SELECT_TOPK) {
        k = ref_count(op->select.value, op->k, drawn);
        qsort(v, (size_t)drawn, sizeof *v, ref_by_magnitude);
        if (k) threshold = ref_float(v[k - 1].mag);
        qsort(v, (size_t)k, sizeof *v, ref_by_index);
    } else if (op->select.id == CG_SELECT_THRESHOLD) {
        for (j = k = 0; j < drawn; j++)
            if (fabsf(v[j].v) > op->select.value) v[k++] = v[j];
    }
    s = ref_shape_of(op->quantize.id, op->quantize.flags, op->quantize.arg, op->quantize.size, k);
    if (op->select.id) {
        uint64_t ef = ref_ef_bytes(drawn, k), map = ref_pad4(drawn);
        ix = op->code.id ? op->code.id : map < ef ? CG_CODE_BITMAP : CG_CODE_ELIAS_FANO;
        if (!k) ix = CG_CODE_ELIAS_FANO;
        ix_bytes = ix == CG_CODE_BITMAP ? map : ef;
    }
    *len = (size_t)(CG_HEADER_BYTES + s.bytes + ix_bytes);
    p = (unsigned char *)ref_alloc(*len);
    memcpy(p, "cgpk", 4);
    p[4] = 1;
    p[5] = (unsigned char)ix;
    stages[0] = &op->sample;
    stages[1] = &op->transform;
    stages[2] = &op->select;
    stages[3] = &op->quantize;
    stages[4] = &op->code;
    stages[5] = &op->clip;
    for (j = 0; j < 6; j++) ref_put_stage(p + 8 + 12 * j, stages[j]);
    ref_put(p + 80, n, 8);
    ref_put(p + 88, drawn, 8);
    ref_put(p + 96, k, 8);
    ref_put(p + 104, tag->seed, 8);
    ref_put(p + 112, tag->step, 8);
    ref_put(p + 120, tag->tensor, 4);
    ref_put(p + 124, tag->rank, 4);
    ref_put(p + 128, s.bytes, 8);
    ref_put(p + 136, ix_bytes, 8);
    ref_put(p + 144, ref_bits(threshold), 4);
    ref_put_values(p + CG_HEADER_BYTES, &s, v, k, ref_private(tag));
    if (op->select.id) ref_put_indices(p + CG_HEADER_BYTES + s.bytes, ix, v, k, drawn);
    ref_seal(p, *len);
    free(v);
    return p;
}

/* ---- the decoder ---- */

typedef struct ref_packet {
    uint64_t n, drawn, k, v_bytes, ix_bytes;
    cg_tag tag;
    int ix, sampled, selected;
    ref_shape s;
    const unsigned char *scales, *codes, *indices;
} ref_packet;

REF_FN ref_packet ref_open(const unsigned char *p) {
    ref_packet r;
    const unsigned char *q = p + 8 + 36;
    r.n = ref_get(p + 80, 8);
    r.drawn = ref_get(p + 88, 8);
    r.k = ref_get(p + 96, 8);
    r.tag.seed = ref_get(p + 104, 8);
    r.tag.step = ref_get(p + 112, 8);
    r.tag.tensor = (uint32_t)ref_get(p + 120, 4);
    r.tag.rank = (uint32_t)ref_get(p + 124, 4);
    r.v_bytes = ref_get(p + 128, 8);
    r.ix_bytes = ref_get(p + 136, 8);
    r.ix = p[5];
    r.sampled = p[8];
    r.selected = p[8 + 24];
    r.s = ref_shape_of(q[0], q[1], (int)ref_get(q + 2, 2), ref_get(q + 4, 4), r.k);
    r.scales = p + CG_HEADER_BYTES;
    r.codes = r.scales + r.s.buckets * (uint64_t)r.s.scales * 4;
    r.indices = r.scales + r.v_bytes;
    return r;
}

REF_FN float ref_value(const ref_packet *r, uint64_t j) {
    uint64_t code = ref_get_bits(r->codes, j * (uint64_t)r->s.bits, r->s.bits);
    float lo = 0.0f, hi = 0.0f;
    ref_levels l;
    if (r->s.scales) {
        uint64_t b = j / r->s.bucket * (uint64_t)r->s.scales;
        lo = ref_float((uint32_t)ref_get(r->scales + 4 * b, 4));
        hi = ref_float((uint32_t)ref_get(r->scales + 4 * (b + (uint64_t)r->s.scales - 1), 4));
        if (r->s.scales == 1) lo = -hi;
    }
    switch (r->s.id) {
    case 0: return ref_float((uint32_t)code);
    case CG_QUANTIZE_F16: return ref_from_f16((uint16_t)code);
    case CG_QUANTIZE_BF16: return ref_from_bf16((uint16_t)code);
    case CG_QUANTIZE_SIGN: return code ? -1.0f : 1.0f;
    case CG_QUANTIZE_EFSIGN: return code ? -hi : hi;
    default: break;
    }
    l = ref_levels_of(r->s.symmetric, r->s.bits, lo, hi);
    return ref_unlevel(&l, (int)code);
}

/* The k coded positions among the drawn, or 0 if they are not k increasing numbers below drawn. */
REF_FN int ref_get_indices(const ref_packet *r, uint64_t *index) {
    uint64_t i, found = 0;
    if (!r->selected) {
        for (i = 0; i < r->k; i++) index[i] = i;
        return 1;
    }
    if (r->ix == CG_CODE_BITMAP) {
        for (i = 0; i < r->ix_bytes * 8; i++)
            if (ref_get_bits(r->indices, i, 1)) {
                if (i >= r->drawn || found == r->k) return 0;
                index[found++] = i;
            }
    } else if (r->k) {
        int l = ref_ef_low(r->drawn, r->k);
        uint64_t low = r->k * (uint64_t)l, high = ref_pad4(low);
        for (i = low; i < high * 8; i++)
            if (ref_get_bits(r->indices, i, 1)) return 0;
        for (i = 0; i < (r->ix_bytes - high) * 8; i++)
            if (ref_get_bits(r->indices + high, i, 1)) {
                uint64_t at;
                if (found == r->k) return 0;
                at = (i - found) << l | ref_get_bits(r->indices, found * (uint64_t)l, l);
                if (at >= r->drawn || (found && at <= index[found - 1])) return 0;
                index[found++] = at;
            }
    }
    return found == r->k;
}

/* D(packet) into d[0..n), and has[i] = 1 where the packet has a value. The packet must be a valid one. */
REF_FN void ref_decode(const unsigned char *p, float *d, unsigned char *has) {
    ref_packet r = ref_open(p);
    uint64_t *index = (uint64_t *)ref_alloc((size_t)r.k * 8), j, size;
    memset(d, 0, (size_t)r.n * 4);
    memset(has, 0, (size_t)r.n);
    if (!ref_get_indices(&r, index)) {
        fprintf(stderr, "ref_decode: bad indices\n");
        exit(2);
    }
    for (j = 0; j < r.k; j++) {
        uint64_t at = r.sampled ? ref_draw(ref_draws(&r.tag, p[9] & 2), r.n, r.drawn, index[j], &size) : index[j];
        d[at] = ref_value(&r, j);
        has[at] = 1;
    }
    free(index);
}

/* Whether the body under a good header is one that may be decoded. */
REF_FN int ref_valid(const unsigned char *p) {
    ref_packet r = ref_open(p);
    uint64_t *index = (uint64_t *)ref_alloc((size_t)r.k * 8), i;
    int ok = ref_get_indices(&r, index);
    for (i = 0; i < r.s.buckets * (uint64_t)r.s.scales; i++) {
        float a = ref_float((uint32_t)ref_get(r.scales + 4 * i, 4));
        if (!ref_finite(a)) ok = 0;
        if (r.s.scales == 1 && ref_bits(a) >> 31) ok = 0;
        if (r.s.scales == 2 && i % 2 && !(ref_float((uint32_t)ref_get(r.scales + 4 * (i - 1), 4)) <= a)) ok = 0;
    }
    for (i = 0; i < r.k; i++) {
        uint64_t c = ref_get_bits(r.codes, i * (uint64_t)r.s.bits, r.s.bits);
        if (r.s.id == 0 && (c & 0x7f800000u) == 0x7f800000u) ok = 0;
        if (r.s.id == CG_QUANTIZE_F16 && (c & 0x7c00u) == 0x7c00u) ok = 0;
        if (r.s.id == CG_QUANTIZE_BF16 && (c & 0x7f80u) == 0x7f80u) ok = 0;
    }
    for (i = r.k * (uint64_t)r.s.bits; i < ref_pad4(r.k * (uint64_t)r.s.bits) * 8; i++)
        if (ref_get_bits(r.codes, i, 1)) ok = 0;
    free(index);
    return ok;
}

/* y = beta*y + alpha*D, as the header of the library says it. */
REF_FN void ref_apply(const float *d, const unsigned char *has, float alpha, float beta, float *y, size_t n) {
    size_t i;
    for (i = 0; i < n; i++) {
        float a = alpha == 1.0f ? d[i] : ref_mul(alpha, d[i]);
        if (beta == 0.0f) y[i] = has[i] ? a : 0.0f;
        else if (beta == 1.0f) y[i] = has[i] ? ref_add(y[i], a) : y[i];
        else y[i] = has[i] ? ref_add(ref_mul(beta, y[i]), a) : ref_mul(beta, y[i]);
    }
}

/* ---- vectors ---- */

REF_FN uint32_t ref_rand(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 32);
}

REF_FN double ref_uniform(uint64_t *state) { return ((double)ref_rand(state) + 0.5) * 0x1p-32; } /* in (0,1) */

REF_FN double ref_normal(uint64_t *state) {
    double u = ref_uniform(state), v = ref_uniform(state);
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}

typedef enum ref_kind {
    REF_LAPLACE,
    REF_GAUSSIAN,
    REF_OUTLIER,
    REF_CONSTANT,
    REF_ZEROS,
    REF_DENORMALS,
    REF_UP,
    REF_DOWN,
    REF_TWO,
    REF_GEOMETRIC,
    REF_HUGE,
    REF_SIGNED_ZEROS,
    REF_TIES,
    REF_KINDS
} ref_kind;

REF_FN float ref_sample(ref_kind kind, size_t i, size_t n, uint64_t *state) {
    double u = ref_uniform(state), s = ref_rand(state) & 1 ? 1.0 : -1.0;
    switch (kind) {
    case REF_LAPLACE: return (float)(-log(u) * s * 1e-3);
    case REF_GAUSSIAN: return (float)(ref_normal(state) * 0.1);
    case REF_OUTLIER: return i == n / 3 ? 1e4f : (float)(s * u * 1e-4);
    case REF_CONSTANT: return 0.3f;
    case REF_DENORMALS: return (float)(s * floor(u * 4e6)) * 0x1p-149f;
    case REF_UP: return (float)i - (float)n / 3.0f;
    case REF_DOWN: return (float)(n - i) * 1e-6f;
    case REF_TWO: return s > 0 ? 1.0f : -2.0f;
    case REF_GEOMETRIC: return (float)(s * ldexp(1.0 + 1e-7, 120 - (int)(i % 240)));
    case REF_HUGE: return (float)(s * (double)FLT_MAX * (i % 3 == 0 ? 1.0 : u));
    case REF_SIGNED_ZEROS: return i % 5 == 4 ? (float)(s * 1e-20) : (float)s * 0.0f;
    case REF_TIES: return (float)(s * floor(u * 4.0));
    default: return 0.0f;
    }
}

REF_FN void ref_fill(ref_kind kind, uint64_t seed, float *x, size_t n) {
    size_t i;
    for (i = 0; i < n; i++) x[i] = ref_sample(kind, i, n, &seed);
}

#endif /* REF_H */
