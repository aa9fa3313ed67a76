/* ---- >>hash: where a line goes, and with which signs ---- */

enum { CG_SKETCH_MAX_ROWS_ = 15 };
#define CG_SKETCH_LINE_ 256u /* neighbours that move together */

/* of a line in a row; ahead: cells that will be needed next */
typedef struct cg_line_target_ {
    float *cells;
    uint32_t xor_mask;
    cg_key_ sign_key;
    const float *prefetch;
} cg_line_target_;

static uint64_t cg_row_key_(const cg_sketch *s, int row) {
    return cg_mix64_(s->desc.seed + (uint64_t)(row + 1) * CG_GOLDEN_);
}
static size_t cg_row_slots_(const cg_sketch *s) { return s->desc.cols / CG_SKETCH_LINE_; }
static uint64_t cg_line_hash_(uint64_t row_key, uint64_t line) { return cg_mix64_(row_key + (line + 1) * CG_GOLDEN_); }
static size_t cg_line_slot_(const cg_sketch *s, uint64_t hash) {
    return (size_t)((hash >> 32) * (uint64_t)cg_row_slots_(s) >> 32);
}
static cg_line_target_ cg_line_target_of_(const cg_sketch *s, int row, uint64_t hash) {
    cg_line_target_ p;
    p.cells = s->cells + (size_t)row * s->desc.cols + cg_line_slot_(s, hash) * CG_SKETCH_LINE_;
    p.xor_mask = (uint32_t)(hash & 255u);
    p.sign_key = cg_block_key_(hash, 0);
    p.prefetch = p.cells;
    return p;
}
/* Lane e of a line is bit e / 8 (from the top) of word e % 8: eight lanes have their signs in eight words. One
   round more than for rounding, where products of four bits do not matter. */
CG_INLINE_ uint32_t cg_sign_word_(cg_key_ key, unsigned i) {
    const uint32_t h = cg_hash32_(key, i) * 0x31848BABu;
    return h ^ h >> 15;
}
CG_INLINE_ uint32_t cg_line_bit_(cg_key_ key, unsigned e, unsigned set) {
    return cg_sign_word_(key, 8 * set + (e & 7u)) << (e >> 3) & 0x80000000u;
}
CG_INLINE_ uint32_t cg_sign_bit_(cg_key_ key, unsigned e) { return cg_line_bit_(key, e, 0); }
/* In sums of groups a value counts 1/2, 1, 3/2 or 2 times: with signs alone, two equal ones would cancel in all
   rows once in 2^rows. */
CG_INLINE_ float cg_group_weight_(cg_key_ key, unsigned e) {
    return (cg_line_bit_(key, e, 1) ? 1.0f : 0.5f) + (cg_line_bit_(key, e, 2) ? 1.0f : 0.0f);
}
CG_INLINE_ float cg_xor_sign_(float v, uint32_t sign) { return cg_as_float_(cg_as_bits_(v) ^ sign); }

/* Groups: level 1 are lines, level 2 lines of lines, ... */
static size_t cg_group_count_(const cg_sketch *s, int level) {
    size_t many = s->desc.n;
    for (int l = 0; l < level; l++) many = many / CG_SKETCH_LINE_ + (many % CG_SKETCH_LINE_ != 0);
    return many;
}
static float *cg_group_cell_(const cg_sketch *s, int row, int level, uint64_t group, uint32_t *sign) {
    const uint64_t h = cg_line_hash_(cg_mix64_(cg_row_key_(s, row) + (uint64_t)level), group);
    *sign = (uint32_t)h & 0x80000000u;
    return s->cells + (size_t)s->desc.rows * s->desc.cols +
        ((size_t)(level - 1) * (size_t)s->desc.rows + (size_t)row) * s->desc.groups +
        (size_t)((h >> 32) * (uint64_t)s->desc.groups >> 32);
}
