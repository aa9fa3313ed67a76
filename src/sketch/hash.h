/* hash: which cells a line of coordinates goes to, and with which signs

   Offers   cg_line_target_of_, cg_row_key_, cg_line_hash_; cg_group_count_ and cg_group_cell_
   Needs    random and kernels of core
   Touches  nothing
   A line is 256 neighbouring coordinates, which a row moves together to one slot of 256 cells: coordinate i of the line
   to cell i ^ xor_mask of the slot, with a sign of its own. All of it is a function of seed, row and line. */

static uint64_t cg_row_key_(const cg_sketch *s, int row) {
    return cg_mix64_(s->desc.seed + (uint64_t)(row + 1) * CG_GOLDEN_);
}
static size_t cg_row_slots_(const cg_sketch *s) { return s->desc.cols / CG_SKETCH_LINE_; }
static uint64_t cg_line_hash_(uint64_t row_key, uint64_t line) { return cg_mix64_(row_key + (line + 1) * CG_GOLDEN_); }
/* Upper half of the hash: the slot; lowest 8 bits: xor_mask. */
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
/* Groups of a level: 256^level coordinates each. Those of level 1 are the lines, of level 2 lines of lines, ... */
static size_t cg_group_count_(const cg_sketch *s, int level) {
    size_t many = s->desc.n;
    for (int l = 0; l < level; l++) many = many / CG_SKETCH_LINE_ + (many % CG_SKETCH_LINE_ != 0);
    return many;
}
/* The cell of a group in a row, level from 1; *sign becomes the group's sign bit. */
static float *cg_group_cell_(const cg_sketch *s, int row, int level, uint64_t group, uint32_t *sign) {
    const uint64_t h = cg_line_hash_(cg_mix64_(cg_row_key_(s, row) + (uint64_t)level), group);
    *sign = (uint32_t)h & 0x80000000u;
    return s->cells + (size_t)s->desc.rows * s->desc.cols +
        ((size_t)(level - 1) * (size_t)s->desc.rows + (size_t)row) * s->desc.groups +
        (size_t)((h >> 32) * (uint64_t)s->desc.groups >> 32);
}
