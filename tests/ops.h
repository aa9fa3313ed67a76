/* ops.h - every operator the tests run through, and one call that packs a vector with canaries around it.
   Include compgrad.h and ref.h first. */

#ifndef OPS_H
#define OPS_H

enum { OPS_SAMPLES = 3, OPS_SELECTS = 3, OPS_CODES = 3, OPS_QUANTIZERS = 7 + 32, OPS_CANARY = 64 };

REF_FN cg_op ops_sample(int i) { return i == 0 ? cg_dense() : i == 1 ? cg_randk(0.3f) : cg_unscaled(cg_randk(0.11f)); }

REF_FN cg_op ops_select(int i) { return i == 0 ? cg_dense() : i == 1 ? cg_topk(0.2f) : cg_threshold(2e-3f); }

REF_FN cg_op ops_quantizer(int i, uint32_t bucket) {
    int bits = (i - 7) % 8 + 1, kind = (i - 7) / 8;
    cg_op op;
    switch (i) {
    case 0: return cg_dense();
    case 1: return cg_f16();
    case 2: return cg_bf16();
    case 3: return cg_sign();
    case 4: return cg_efsign();
    case 5: return cg_terngrad();
    case 6: return cg_nearest(cg_terngrad());
    default: op = kind & 1 ? cg_minmax(bits, bucket) : cg_absmax(bits, bucket); return kind & 2 ? cg_nearest(op) : op;
    }
}

REF_FN int ops_has_bucket(int i) { return i >= 7; }

REF_FN cg_op ops_compose(int sample, int select, int code, int quantizer, uint32_t bucket) {
    cg_op op = cg_then(cg_then(ops_sample(sample), ops_select(select)), ops_quantizer(quantizer, bucket));
    return code ? cg_coded(op, (cg_coding)code) : op;
}

REF_FN const char *ops_text(const cg_op *op) {
    static char text[128];
    return cg_op_print(op, text, sizeof text) == CG_OK ? text : "(op that does not print)";
}

REF_FN const char *ops_status(int s) { return cg_status_str((cg_status)s); }

typedef struct ops_packet {
    unsigned char *p;
    size_t len, cap;
    cg_status status;
    int touched;
} ops_packet;

/* Compresses into fresh memory of exactly cap bytes and a canary; touched: it wrote beyond the cap. */
REF_FN ops_packet ops_pack_cap(
    const cg_op *op, const cg_tag *tag, const cg_extra *side, const float *x, size_t n, size_t cap) {
    ops_packet r;
    size_t need = cg_scratch(op, n), i;
    void *scratch = need ? malloc(need) : NULL;
    if (scratch) memset(scratch, 0xa5, need); /* nobody promised zeros */
    r.cap = cap;
    r.p = (unsigned char *)ref_alloc(cap + OPS_CANARY);
    memset(r.p, 0xA5, cap + OPS_CANARY);
    r.len = 12345;
    r.status = cg_compress_with(op, tag, side, x, n, r.p, cap, &r.len, scratch, need);
    for (i = cap, r.touched = 0; i < cap + OPS_CANARY; i++) r.touched |= r.p[i] != 0xA5;
    free(scratch);
    return r;
}

REF_FN ops_packet ops_pack(const cg_op *op, const cg_tag *tag, const float *x, size_t n) {
    return ops_pack_cap(op, tag, NULL, x, n, cg_bound(op, n));
}

#endif /* OPS_H */
