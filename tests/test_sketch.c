/* The count sketch against plain C. The hash of a line of 256 is learnt from the library itself, by adding values
   that tell where they went: so what is checked first is that such a hash keeps what the manual promises of it,
   over many seeds, and then that all arithmetic is the textbook's with that hash, bit for bit. How well it
   recovers is compared with a sketch that hashes every coordinate by itself.

   Seeds are fixed, so nothing here fails by chance from run to run. The limits are those that a truly random hash
   would break with a probability of CHANCE in a whole family of checks (Hoeffding for sums of signs, Bernstein for
   counts, Wilson and Hilferty for chi-square). */
#include "greatest.h"
#include "tier.h"
#define COMPGRAD_IMPLEMENTATION
#include "compgrad_sketch.h"
#include <math.h>
#include <stdio.h>
#ifdef _OPENMP
#  include <omp.h>
#endif

enum { LINE = 256, ROWS_MOST = 15, RED = 64 };
static const double CHANCE = 1e-6;
static int quick;      /* not CG_TEST=long */
static char note[300]; /* what went wrong */

#define TRY(call)             \
  do {                        \
    if (!(call)) FAILm(note); \
  } while (0)
#define SAY(...) (snprintf(note, sizeof note, __VA_ARGS__), 0)

/* ---- random numbers, limits, floats ---- */

static uint64_t mix(uint64_t z) {
    z += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 32) * 0xD6E8FEB86659FD93u;
    z = (z ^ z >> 32) * 0xD6E8FEB86659FD93u;
    return z ^ z >> 32;
}
static uint64_t draw(uint64_t key, uint64_t i) { return mix(mix(key) ^ (i * 0xD1342543DE82EF95u + 1)); }
static double unit(uint64_t key, uint64_t i) { return ((double)(draw(key, i) >> 11) + 0.5) / 9007199254740992.0; }
static double normal(uint64_t key, uint64_t i) {
    return sqrt(-2 * log(unit(key, 2 * i))) * cos(6.283185307179586 * unit(key, 2 * i + 1));
}
/* -8 to 8: sums of these are exact */
static float whole(uint64_t key, uint64_t i) { return (float)((int)(draw(key, i) % 17) - 8); }
/* the same on all machines, sums are not exact */
static float dyadic(uint64_t key, uint64_t i) {
    const uint64_t h = draw(key, i);
    return (float)((int)(h & 0xfffff) - 0x80000) / (float)(1 << (h >> 20) % 20);
}

/* of normal numbers, and of sums of t signs over sqrt(t) */
static double z_limit(double tests) { return sqrt(2 * log(2 * tests / CHANCE)); }
/* how far a count is from its mean */
static double count_limit(double mean, double tests) {
    const double l = log(2 * tests / CHANCE);
    return l / 3 + sqrt(l * l / 9 + 2 * mean * l);
}
static double chi_z(const uint32_t *count, size_t cells) { /* of equal probabilities */
    double total = 0, chi = 0, df = (double)cells - 1;
    for (size_t i = 0; i < cells; i++) total += count[i];
    for (size_t i = 0; i < cells; i++)
        chi += ((double)count[i] - total / (double)cells) * ((double)count[i] - total / (double)cells);
    chi /= total / (double)cells;
    return (pow(chi / df, 1 / 3.0) - (1 - 2 / (9 * df))) / sqrt(2 / (9 * df));
}

static float add32(float a, float b) {
    volatile float r = a + b;
    return r;
}
static float times32(float a, float b) {
    volatile float r = a * b;
    return r;
}
static uint32_t bits_of(float f) {
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}
static int same(const void *a, const void *b, size_t floats) {
    return floats == 0 || memcmp(a, b, floats * sizeof(float)) == 0;
}
/* of values, not of bytes: the same on big-endian machines */
static uint64_t hash_floats(uint64_t h, const float *v, size_t count) {
    for (size_t i = 0; i < count; i++) h = mix(h ^ bits_of(v[i]));
    return h;
}
static uint64_t hash_words(uint64_t h, const uint64_t *v, size_t count) {
    for (size_t i = 0; i < count; i++) h = mix(h ^ v[i]);
    return h;
}
static void *room(size_t bytes) {
    void *p = malloc(bytes ? bytes : 1);
    if (!p) {
        printf("out of memory\n");
        exit(2);
    }
    return p;
}

/* ---- sketches in exactly the memory they ask for ---- */

typedef struct box {
    cg_sketch s;
    unsigned char *block;
    size_t bytes;
    int shift;
} box;

static cg_sketch_desc describe(int rows, size_t cols, size_t n, uint64_t seed, size_t groups) {
    cg_sketch_desc d = CG_ZERO;
    d.rows = rows;
    d.cols = cols;
    d.n = n;
    d.seed = seed;
    d.groups = groups;
    return d;
}
static int box_seed(box *b, uint64_t seed) { /* another hash, empty */
    cg_sketch_desc d = b->s.desc;
    d.seed = seed;
    return cg_sketch_init(&b->s, &d, b->block + RED + b->shift, b->bytes) == CG_OK || SAY("init");
}
static int box_open_at(box *b, cg_sketch_desc d, int shift) {
    b->bytes = cg_sketch_memory(&d);
    b->shift = shift;
    if (b->bytes == 0) return SAY("no memory for %d x %lu", d.rows, (unsigned long)d.cols);
    b->block = (unsigned char *)room(b->bytes + 2 * RED + (size_t)shift);
    memset(b->block, 0xA5, b->bytes + 2 * RED + (size_t)shift);
    return cg_sketch_init(&b->s, &d, b->block + RED + shift, b->bytes) == CG_OK || SAY("init");
}
static int box_open(box *b, cg_sketch_desc d) { return box_open_at(b, d, 0); }
static int box_close(box *b) { /* nothing around it was touched */
    int fine = 1;
    for (size_t i = 0; i < RED; i++)
        fine = fine && b->block[i] == 0xA5 && b->block[RED + (size_t)b->shift + b->bytes + i] == 0xA5;
    free(b->block);
    b->block = NULL;
    return fine || SAY("written beyond the memory given");
}
static size_t row_cells(const cg_sketch *s) { return (size_t)s->desc.rows * s->desc.cols; }
static const float *row_of(const cg_sketch *s, int r) { return s->cells + (size_t)r * s->desc.cols; }

/* ---- learning the hash ---- */

typedef struct map {
    uint32_t cell[ROWS_MOST][LINE];
    signed char sign[ROWS_MOST][LINE];
} map;

/* Values 1 to 256 tell where every coordinate of a line went, unless two of them met. */
static int learn_line(cg_sketch *s, uint64_t line, map *m) {
    uint64_t index[LINE];
    float value[LINE];
    const uint64_t left = s->desc.n - line * LINE;
    const size_t count = left < LINE ? (size_t)left : LINE;
    for (size_t j = 0; j < count; j++) index[j] = line * LINE + j, value[j] = (float)(j + 1);
    cg_sketch_clear(s);
    if (cg_sketch_add_list(s, index, value, count, 1) != CG_OK) return SAY("add_list");
    for (int r = 0; r < s->desc.rows; r++) {
        size_t found = 0;
        memset(m->sign[r], 0, LINE);
        for (size_t c = 0; c < s->desc.cols; c++) {
            const float v = row_of(s, r)[c], a = fabsf(v);
            if (v == 0.0f) continue;
            if (a > (float)count || m->sign[r][(size_t)a - 1])
                return SAY("row %d, line %lu: two of one line met", r, (unsigned long)line);
            m->sign[r][(size_t)a - 1] = v > 0 ? 1 : -1;
            m->cell[r][(size_t)a - 1] = (uint32_t)c;
            found++;
        }
        if (found != count) return SAY("row %d, line %lu: %lu cells", r, (unsigned long)line, (unsigned long)found);
    }
    return 1;
}

/* several to a line, same lane, neighbours across lines, strides, far and equal but for a high bit */
enum { SPOTS = 14 };
static const uint64_t SPOT[SPOTS] = { 0, 1, 255, 256, 257, 511, 512, 4096, 20480, 65536 + 77, ((uint64_t)1 << 32) + 1,
    (uint64_t)1 << 39, ((uint64_t)1 << 40) - 256, ((uint64_t)1 << 40) - 1 };
typedef struct spots {
    uint32_t cell[ROWS_MOST][SPOTS];
    signed char sign[ROWS_MOST][SPOTS];
} spots;

/* Powers of three: a cell shows whoever met in it. */
static int learn_spots(cg_sketch *s, spots *p) {
    float value[SPOTS];
    long power = 1;
    for (int j = 0; j < SPOTS; j++, power *= 3) value[j] = (float)power;
    if (cg_sketch_add_list(s, SPOT, value, SPOTS, 1) != CG_OK) return SAY("add_list");
    for (int r = 0; r < s->desc.rows; r++) {
        const float *row = row_of(s, r);
        int found = 0;
        for (size_t c = 0; c < s->desc.cols; c++) {
            long v = (long)row[c];
            for (int j = 0; v != 0 && j < SPOTS; j++) {
                const int digit = (int)(((v % 3) + 4) % 3) - 1;
                if (digit) p->cell[r][j] = (uint32_t)c, p->sign[r][j] = (signed char)digit, found++;
                v = (v - digit) / 3;
            }
        }
        if (found != SPOTS) return SAY("row %d: %d of %d found", r, found, (int)SPOTS);
    }
    return 1;
}

/* ---- what the hash promises ---- */

static int popcount(uint64_t v) {
    v -= v >> 1 & 0x5555555555555555u;
    v = (v & 0x3333333333333333u) + (v >> 2 & 0x3333333333333333u);
    return (int)(((v + (v >> 4)) & 0x0F0F0F0F0F0F0F0Fu) * 0x0101010101010101u >> 56);
}
/* The sum over trials of a product of signs, over its standard deviation. */
static double product_z(const uint64_t *const *bits, int factors, size_t words) {
    long ones = 0;
    for (size_t w = 0; w < words; w++) {
        uint64_t v = bits[0][w];
        for (int f = 1; f < factors; f++) v ^= bits[f][w];
        ones += popcount(v);
    }
    return fabs((double)(64 * (long)words - 2 * ones)) / sqrt(64.0 * (double)words);
}
#define Z1(a) product_z((const uint64_t *[]){ a }, 1, words)
#define Z2(a, b) product_z((const uint64_t *[]){ a, b }, 2, words)
#define Z4(a, b, c, d) product_z((const uint64_t *[]){ a, b, c, d }, 4, words)
static void keep(double *worst, double z) {
    if (z > *worst) *worst = z;
}

/* Every line goes to a whole line of cells, its lanes XORed by one number, and a coordinate alone goes where it
   went with the others. */
TEST one_line(size_t cols) {
    box b;
    map m;
    const size_t n = 3 * LINE + 77;
    TRY(box_open(&b, describe(ROWS_MOST, cols, n, 0, 0)));
    ASSERT_EQ((cols + LINE - 1) / LINE * LINE, b.s.desc.cols);
    for (uint64_t seed = 0; seed < (quick ? 10 : 100); seed++)
        for (uint64_t line = 0; line < 4; line++) {
            TRY(box_seed(&b, seed) && learn_line(&b.s, line, &m));
            for (int r = 0; r < ROWS_MOST; r++)
                for (size_t j = 0; j < (line == 3 ? 77 : LINE); j++) ASSERT_EQ(m.cell[r][0] ^ j, m.cell[r][j]);
            if (seed > 0 && line < 3) continue;
            for (uint64_t j = 0; j < (line == 3 ? 77 : LINE); j++) {
                const uint64_t i = line * LINE + j;
                const float one = 1;
                size_t found = 0;
                cg_sketch_clear(&b.s);
                ASSERT_EQ(CG_OK, cg_sketch_add_list(&b.s, &i, &one, 1, 1));
                for (int r = 0; r < ROWS_MOST; r++)
                    for (size_t c = 0; c < b.s.desc.cols; c++)
                        if (row_of(&b.s, r)[c] != 0.0f) {
                            ASSERT_EQ(m.cell[r][j], c);
                            ASSERT_EQ((float)m.sign[r][j], row_of(&b.s, r)[c]);
                            found++;
                        }
                ASSERT_EQ(ROWS_MOST, found);
            }
        }
    TRY(box_close(&b));
    PASS();
}

enum { PAIRS = SPOTS * (SPOTS - 1) / 2, COLS_MOST = 1280, SPREAD_ROWS = 4, ROW_PAIRS = 6 };
typedef struct tally {
    uint32_t met[PAIRS], apart[PAIRS][COLS_MOST]; /* apart: by which lane and how many lines of cells */
    uint32_t own[SPOTS][2 * COLS_MOST];           /* cell and sign */
    uint32_t rows[ROW_PAIRS][COLS_MOST];          /* the same coordinate in two rows */
    uint64_t *bits[SPOTS], *row_bits[SPREAD_ROWS];
} tally;

static size_t apart(uint32_t a, uint32_t b, size_t cols) {
    const size_t lines = cols / LINE;
    return (a / LINE + lines - b / LINE) % lines * LINE + ((a ^ b) % LINE);
}
static void count_trial(tally *t, const spots *p, int r, size_t cols, size_t trial) {
    for (int i = 0, pair = 0; i < SPOTS; i++) {
        t->own[i][2 * p->cell[r][i] + (p->sign[r][i] > 0)]++;
        t->bits[i][trial / 64] |= (uint64_t)(p->sign[r][i] > 0) << trial % 64;
        for (int j = i + 1; j < SPOTS; j++, pair++) {
            t->met[pair] += p->cell[r][i] == p->cell[r][j];
            t->apart[pair][apart(p->cell[r][i], p->cell[r][j], cols)]++;
        }
    }
}
static int check_pairs(const tally *t, size_t cols, double trials) {
    const double mean = trials / (double)cols;
    double worst = 0, most = 0;
    for (int i = 0, pair = 0; i < SPOTS; i++)
        for (int j = i + 1; j < SPOTS; j++, pair++) {
            if (SPOT[i] / LINE == SPOT[j] / LINE) {
                if (t->met[pair]) return SAY("%d and %d are of one line, and met", i, j);
                continue;
            }
            keep(&most, fabs((double)t->met[pair] - mean));
            keep(&worst, chi_z(t->apart[pair], cols));
            if (fabs((double)t->met[pair] - mean) > count_limit(mean, 2 * PAIRS) ||
                chi_z(t->apart[pair], cols) > z_limit(2 * PAIRS))
                return SAY("cols %lu: coordinates %d and %d met %lu times, expected %.1f; chi-square of their "
                           "distance: z %.1f",
                    (unsigned long)cols, i, j, (unsigned long)t->met[pair], mean, chi_z(t->apart[pair], cols));
        }
    printf("  %lu cols: met %.0f times each in %.0f, +-%.0f (allowed: %.0f)\n", (unsigned long)cols, mean, trials, most,
        count_limit(mean, 2 * PAIRS));
    return 1;
}
static int check_spot_signs(const tally *t, size_t seeds) {
    double worst = 0;
    const double tests = SPOTS + PAIRS + 1001 + ROW_PAIRS; /* 1001 fours */
    size_t words = seeds * SPREAD_ROWS / 64;
    for (int i = 0; i < SPOTS; i++) {
        keep(&worst, Z1(t->bits[i]));
        for (int j = i + 1; j < SPOTS; j++) {
            keep(&worst, Z2(t->bits[i], t->bits[j]));
            for (int k = j + 1; k < SPOTS; k++)
                for (int l = k + 1; l < SPOTS; l++) keep(&worst, Z4(t->bits[i], t->bits[j], t->bits[k], t->bits[l]));
        }
    }
    words = seeds / 64;
    for (int r = 0; r < SPREAD_ROWS; r++)
        for (int q = r + 1; q < SPREAD_ROWS; q++) keep(&worst, Z2(t->row_bits[r], t->row_bits[q]));
    return worst <= z_limit(tests) ||
        SAY("a sign, or a product of two or four of different lines or rows, has a mean of %.1f sigma", worst);
}
TEST spread(size_t cols) {
    box b;
    spots p;
    tally *t = (tally *)calloc(1, sizeof *t);
    const size_t seeds = quick ? 2048 : 16384, trials = seeds * SPREAD_ROWS;
    if (SIZE_MAX <= 0xffffffffu) SKIPm("n is 2^40 here");
    ASSERT(t);
    for (int i = 0; i < SPOTS; i++) t->bits[i] = (uint64_t *)calloc(trials / 64, 8);
    for (int r = 0; r < SPREAD_ROWS; r++) t->row_bits[r] = (uint64_t *)calloc(seeds / 64, 8);
    TRY(box_open(&b, describe(SPREAD_ROWS, cols, (size_t)((uint64_t)1 << 40), 0, 0)));
    for (size_t s = 0; s < seeds; s++) {
        /* seeds that differ in few bits, low or high */
        TRY(box_seed(&b, s % 2 ? s : (uint64_t)s << 40) && learn_spots(&b.s, &p));
        for (int r = 0, pair = 0; r < SPREAD_ROWS; r++) {
            count_trial(t, &p, r, cols, s * SPREAD_ROWS + (size_t)r);
            t->row_bits[r][s / 64] |= (uint64_t)(p.sign[r][0] > 0) << s % 64;
            for (int q = r + 1; q < SPREAD_ROWS; q++, pair++) t->rows[pair][apart(p.cell[r][0], p.cell[q][0], cols)]++;
        }
    }
    TRY(check_pairs(t, cols, (double)trials));
    TRY(check_spot_signs(t, seeds));
    for (int i = 0; i < SPOTS; i++) ASSERT(chi_z(t->own[i], 2 * cols) <= z_limit(SPOTS + ROW_PAIRS));
    for (int i = 0; i < ROW_PAIRS; i++) ASSERT(chi_z(t->rows[i], cols) <= z_limit(SPOTS + ROW_PAIRS));
    for (int i = 0; i < SPOTS; i++) free(t->bits[i]);
    for (int r = 0; r < SPREAD_ROWS; r++) free(t->row_bits[r]);
    free(t);
    TRY(box_close(&b));
    PASS();
}

/* The 256 signs of a line and those of another: all pairs, all fours a, a^x, a^y, a^x^y (what shifts and XORs of
   few words would repeat), all rectangles over two lines (what a product of a line's and a lane's sign would), and
   any fours. */
enum { WORDS_MOST = 64 };
static uint64_t line_bits[2][LINE][WORDS_MOST];
static void check_fours(const uint64_t (*l)[WORDS_MOST], size_t words, double *worst) {
    for (size_t x = 1; x < LINE; x++)
        for (size_t y = x + 1; y < LINE; y++) {
            if ((x ^ y) < y) continue;
            for (size_t a = 0; a < LINE; a++)
                if (a < (a ^ x) && a < (a ^ y) && a < (a ^ x ^ y))
                    keep(worst, Z4(l[a], l[a ^ x], l[a ^ y], l[a ^ x ^ y]));
        }
    for (uint64_t q = 0; q < 50000; q++) {
        const uint64_t h = draw(4, q);
        const size_t i = h & 255, j = h >> 8 & 255, k = h >> 16 & 255, m = h >> 24 & 255;
        if (i != j && i != k && i != m && j != k && j != m && k != m) keep(worst, Z4(l[i], l[j], l[k], l[m]));
    }
}
TEST line_signs(void) {
    static const uint64_t LINES[2] = { 6, 7 };
    box b;
    map m;
    const int rows = 4;
    const size_t words = quick ? 16 : WORDS_MOST;
    double worst = 0, tests = 2 * (256 + 32640 + 690880 + 50000) + 65536 + 32640;
    memset(line_bits, 0, sizeof line_bits);
    TRY(box_open(&b, describe(rows, 256, 1 << 16, 0, 0)));
    for (size_t s = 0; s < words * 64 / (size_t)rows; s++)
        for (int side = 0; side < 2; side++) {
            TRY(box_seed(&b, s) && learn_line(&b.s, LINES[side], &m));
            for (int r = 0; r < rows; r++)
                for (size_t j = 0, t = s * (size_t)rows + (size_t)r; j < LINE; j++)
                    line_bits[side][j][t / 64] |= (uint64_t)(m.sign[r][j] > 0) << t % 64;
        }
    for (int side = 0; side < 2; side++) {
        const uint64_t(*l)[WORDS_MOST] = (const uint64_t(*)[WORDS_MOST])line_bits[side];
        for (size_t i = 0; i < LINE; i++) {
            keep(&worst, Z1(l[i]));
            for (size_t j = i + 1; j < LINE; j++) keep(&worst, Z2(l[i], l[j]));
        }
        check_fours(l, words, &worst);
    }
    for (size_t i = 0; i < LINE; i++)
        for (size_t j = 0; j < LINE; j++) {
            keep(&worst, Z2(line_bits[0][i], line_bits[1][j]));
            if (j > i) keep(&worst, Z4(line_bits[0][i], line_bits[0][j], line_bits[1][i], line_bits[1][j]));
        }
    printf("  signs: %.0f products, the largest mean %.1f sigma (allowed: %.1f)\n", tests, worst, z_limit(tests));
    ASSERT(worst <= z_limit(tests));
    TRY(box_close(&b));
    PASS();
}

static int by_value(const void *a, const void *b) {
    uint64_t x, y;
    memcpy(&x, a, 8);
    memcpy(&y, b, 8);
    return x < y ? -1 : x > y;
}
/* No row of a line is another row of another line, nor of another seed: sums of seed, row and line would be. */
TEST nothing_twice(void) {
    enum { SEEDS = 24, LINES = 24 };
    box b;
    map m;
    size_t count = 0;
    uint64_t *all = (uint64_t *)room(SEEDS * LINES * ROWS_MOST * 8);
    TRY(box_open(&b, describe(ROWS_MOST, 256, 1 << 20, 0, 0)));
    for (uint64_t seed = 0; seed < SEEDS; seed++)
        for (uint64_t line = 0; line < LINES; line++) {
            TRY(box_seed(&b, seed) && learn_line(&b.s, line, &m));
            for (int r = 0; r < ROWS_MOST; r++) {
                uint64_t h = 0;
                for (size_t j = 0; j < LINE; j++) h = mix(h ^ (uint64_t)(m.sign[r][j] > 0));
                all[count++] = h;
            }
        }
    qsort(all, count, 8, by_value);
    for (size_t i = 1; i < count; i++) ASSERT(all[i] != all[i - 1]);
    free(all);
    TRY(box_close(&b));
    PASS();
}

/* ---- the textbook, with the learnt hash ---- */

typedef struct plain {
    int rows;
    size_t cols, n;
    uint32_t *cell;
    signed char *sign;
} plain; /* [n][rows] */

static int plain_open(plain *p, box *b) { /* leaves the sketch empty */
    map m;
    p->rows = b->s.desc.rows;
    p->cols = b->s.desc.cols;
    p->n = b->s.desc.n;
    p->cell = (uint32_t *)room(p->n * (size_t)p->rows * sizeof *p->cell);
    p->sign = (signed char *)room(p->n * (size_t)p->rows);
    for (size_t i = 0; i < p->n; i++) {
        if (i % LINE == 0 && !learn_line(&b->s, i / LINE, &m)) return 0;
        for (int r = 0; r < p->rows; r++) {
            p->cell[i * (size_t)p->rows + (size_t)r] = m.cell[r][i % LINE];
            p->sign[i * (size_t)p->rows + (size_t)r] = m.sign[r][i % LINE];
        }
    }
    cg_sketch_clear(&b->s);
    return 1;
}
static void plain_close(plain *p) { free(p->cell), free(p->sign); }
static float *plain_cell(const plain *p, float *cells, size_t i, int r, float *sign) {
    const size_t at = i * (size_t)p->rows + (size_t)r;
    *sign = (float)p->sign[at];
    return &cells[(size_t)r * p->cols + p->cell[at]];
}
static void plain_add(const plain *p, float *cells, size_t i, float value, float weight) {
    for (int r = 0; r < p->rows; r++) {
        float sign, *c = plain_cell(p, cells, i, r, &sign);
        *c = add32(*c, sign * times32(weight, value));
    }
}
static void sort_floats(float *v, int count) {
    for (int i = 1; i < count; i++)
        for (int j = i; j > 0 && v[j] < v[j - 1]; j--) {
            const float t = v[j];
            v[j] = v[j - 1];
            v[j - 1] = t;
        }
}
static float median(float *v, int count) {
    sort_floats(v, count);
    return count % 2 ? v[count / 2] : times32(0.5f, add32(v[count / 2 - 1], v[count / 2]));
}
static float plain_estimate(const plain *p, float *cells, size_t i) {
    float v[ROWS_MOST];
    for (int r = 0; r < p->rows; r++) {
        float sign;
        const float *c = plain_cell(p, cells, i, r, &sign);
        v[r] = sign * *c;
    }
    return median(v, p->rows);
}
static double plain_norm(const cg_sketch *s) {
    double norm[ROWS_MOST];
    const int rows = s->desc.rows;
    for (int r = 0; r < rows; r++) {
        double sum = 0;
        for (size_t c = 0; c < s->desc.cols; c++) sum += (double)row_of(s, r)[c] * (double)row_of(s, r)[c];
        norm[r] = sum;
    }
    for (int i = 1; i < rows; i++)
        for (int j = i; j > 0 && norm[j] < norm[j - 1]; j--) {
            const double t = norm[j];
            norm[j] = norm[j - 1];
            norm[j - 1] = t;
        }
    return sqrt(rows % 2 ? norm[rows / 2] : (norm[rows / 2 - 1] + norm[rows / 2]) / 2);
}
/* Sums of m squares in double, in any order, are off by less than m + 1 roundings; the root halves that, and the
   mean of two adds one. */
static int norm_fits(const cg_sketch *s) {
    const double a = cg_sketch_norm(s), b = plain_norm(s), tolerance = ((double)s->desc.cols + 4) / 9007199254740992.0;
    return fabs(a - b) <= tolerance * b || SAY("norm %.17g, plainly %.17g", a, b);
}

/* The k largest of y with at least `least`, of equals the lowest index; ascending. */
typedef struct ranked {
    float size;
    size_t i;
} ranked;
static int by_size(const void *a, const void *b) {
    const ranked *x = (const ranked *)a, *y = (const ranked *)b;
    if (x->size != y->size) return x->size > y->size ? -1 : 1;
    return x->i < y->i ? -1 : x->i > y->i;
}
static size_t plain_select(const float *y, size_t n, size_t k, double least, uint64_t *index) {
    ranked *all = (ranked *)room(n * sizeof *all);
    size_t count = 0;
    for (size_t i = 0; i < n; i++) all[i].size = fabsf(y[i]), all[i].i = i;
    if (n) qsort(all, n, sizeof *all, by_size);
    while (count < n && count < k && (double)all[count].size >= least) count++;
    for (size_t i = 0; i < count; i++) index[i] = all[i].i;
    if (count) qsort(index, count, sizeof *index, by_value);
    free(all);
    return count;
}

/* ---- arithmetic ---- */

typedef struct shape {
    int rows;
    size_t cols, n, groups;
} shape;
static const shape SHAPES[] = { { 1, 256, 0, 0 }, { 5, 256, 1, 0 }, { 5, 512, 255, 0 }, { 3, 256, 256, 0 },
    { 2, 768, 257, 0 }, { 4, 256, 511, 0 }, { 15, 256, 1000, 0 }, { 5, 1280, 5000, 0 }, { 7, 512, 4096, 0 },
    { 14, 300, 3000, 0 }, { 5, 1, 700, 0 }, { 6, 1024, 70001, 0 }, { 5, 512, 5000, 256 }, { 3, 512, 140000, 100 },
    { 1, 256, 1, 64 }, { 4, 256, 257, 1 } };
enum { SHAPE_COUNT = sizeof SHAPES / sizeof SHAPES[0] };
static cg_sketch_desc shape_desc(const shape *h, uint64_t seed) {
    return describe(h->rows, h->cols, h->n, seed, h->groups);
}

/* x at an odd address. */
static float *odd_floats(unsigned char **block, size_t n) {
    *block = (unsigned char *)room(n * 4 + 8);
    return (float *)(void *)(*block + 1);
}
static void put_odd(float *to, const float *from, size_t n) {
    if (n) memcpy((void *)to, from, n * sizeof *from);
}

/* Small integers: sums of sketches are sketches of sums, whatever the order, and from vectors or lists; so with
   groups too. */
TEST linear(int which) {
    enum { PARTS = 5 };
    const shape *h = &SHAPES[which];
    box sum, part[PARTS];
    float *x = (float *)room(PARTS * h->n * sizeof(float)), *total = (float *)calloc(h->n + 1, sizeof(float));
    ASSERT(total);
    TRY(box_open(&sum, shape_desc(h, 9)));
    for (int p = 0; p < PARTS; p++) {
        float *y = x + (size_t)p * h->n;
        TRY(box_open(&part[p], shape_desc(h, 9)));
        for (size_t i = 0; i < h->n; i++) y[i] = whole((uint64_t)p + 50, i), total[i] += (float)(p + 1) * y[i];
        ASSERT_EQ(CG_OK, cg_sketch_add(&part[p].s, y, h->n, (float)(p + 1)));
    }
    ASSERT_EQ(CG_OK, cg_sketch_add(&sum.s, total, h->n, 1));
    for (int p = 0; p < PARTS; p++) {
        box list;
        TRY(box_open(&list, shape_desc(h, 9)));
        for (uint64_t i = h->n; i-- > 0;)
            ASSERT_EQ(CG_OK, cg_sketch_add_list(&list.s, &i, x + (size_t)p * h->n + i, 1, (float)(p + 1)));
        ASSERT(same(list.s.cells, part[p].s.cells, list.s.count));
        TRY(box_close(&list));
    }
    for (int order = 0; order < 12; order++) {
        box got;
        int at[PARTS] = { 0, 1, 2, 3, 4 };
        TRY(box_open(&got, shape_desc(h, 9)));
        for (int p = PARTS - 1; p > 0; p--) {
            const int q = (int)(draw((uint64_t)order, (uint64_t)p) % (uint64_t)(p + 1)), t = at[p];
            at[p] = at[q], at[q] = t;
        }
        for (int p = 0; p < PARTS; p++) ASSERT_EQ(CG_OK, cg_sketch_merge(&got.s, &part[at[p]].s));
        ASSERT(same(sum.s.cells, got.s.cells, got.s.count));
        ASSERT_EQ(CG_OK, cg_sketch_scale(&got.s, 0.25f));
        for (size_t c = 0; c < got.s.count; c++) ASSERT_EQ(0.25f * sum.s.cells[c], got.s.cells[c]);
        ASSERT_EQ(CG_OK, cg_sketch_add(&got.s, total, h->n, -0.25f));
        for (size_t c = 0; c < got.s.count; c++) ASSERT_EQ(0.0f, got.s.cells[c]);
        TRY(box_close(&got));
    }
    TRY(box_close(&sum));
    for (int p = 0; p < PARTS; p++) TRY(box_close(&part[p]));
    free(x), free(total);
    PASS();
}

/* Any floats: add, add_list of all, and the plain loop have the same bits; a list adds in its order, with
   repetitions; so does merge. */
TEST arithmetic(int which) {
    const shape *h = &SHAPES[which];
    box a, b;
    plain p;
    unsigned char *block;
    const size_t n = h->n, many = n ? 2 * n + 3 : 0;
    float *x = (float *)room((n + 1) * 4), *value = (float *)room((many + 1) * 4), *odd = odd_floats(&block, n), *cells;
    uint64_t *index = (uint64_t *)room((many + 1) * 8);
    TRY(box_open(&a, shape_desc(h, 3)) && box_open_at(&b, shape_desc(h, 3), 1) && plain_open(&p, &a));
    cells = (float *)calloc(row_cells(&a.s), sizeof *cells);
    ASSERT(cells);
    for (int round = 0; round < 2; round++) {
        const float weight = round ? -0.37f : 1.0f;
        for (size_t i = 0; i < n; i++)
            x[i] = dyadic((uint64_t)round, i), index[i] = i, plain_add(&p, cells, i, x[i], weight);
        put_odd(odd, x, n);
        ASSERT_EQ(CG_OK, cg_sketch_add(&a.s, odd, n, weight));
        ASSERT_EQ(CG_OK, cg_sketch_add_list(&b.s, index, x, n, weight));
        ASSERT(same(cells, a.s.cells, row_cells(&a.s)));
        ASSERT(same(cells, b.s.cells, row_cells(&a.s)));
    }
    for (size_t j = 0; j < many; j++) {
        index[j] = draw(77, j) % n;
        value[j] = dyadic(78, j);
        plain_add(&p, cells, (size_t)index[j], value[j], 3.1f);
    }
    ASSERT_EQ(CG_OK, cg_sketch_add_list(&a.s, index, value, many, 3.1f));
    ASSERT(same(cells, a.s.cells, row_cells(&a.s)));
    for (size_t c = 0; c < row_cells(&a.s); c++) cells[c] = add32(cells[c], b.s.cells[c]);
    ASSERT_EQ(CG_OK, cg_sketch_merge(&a.s, &b.s));
    ASSERT(same(cells, a.s.cells, row_cells(&a.s)));
    for (size_t c = 0; c < row_cells(&a.s); c++) cells[c] = times32(cells[c], 0.7f);
    ASSERT_EQ(CG_OK, cg_sketch_scale(&a.s, 0.7f));
    ASSERT(same(cells, a.s.cells, row_cells(&a.s)));
    if (h->groups == 0)
        for (size_t i = 0; i < n; i += 97)
            for (int r = 0; r < p.rows; r++) {
                float sign;
                *plain_cell(&p, cells, i, r, &sign) = 0;
            }
    for (size_t i = 0, j = 0; i < n; i += 97) index[j++] = i;
    if (h->groups == 0) ASSERT_EQ(CG_OK, cg_sketch_zero(&a.s, index, (n + 96) / 97));
    ASSERT(same(cells, a.s.cells, row_cells(&a.s)));
    plain_close(&p);
    TRY(box_close(&a) && box_close(&b));
    free(x), free(value), free(block), free(index), free(cells);
    PASS();
}

/* ---- queries ---- */

static int heavy_is(const cg_sketch *s, size_t k, const float *y, size_t n) {
    const size_t want = k < n ? k : n, bytes = cg_sketch_heavy_scratch(s, k);
    uint64_t *index = (uint64_t *)room((want + 1) * 8), *expect = (uint64_t *)room((want + 1) * 8);
    float *value = (float *)room((want + 1) * 4);
    unsigned char *scratch = (unsigned char *)room(bytes + 1 + RED);
    int fine = 1;
    index[want] = 12345;
    value[want] = 777;
    memset(scratch, 0xA5, bytes + 1 + RED);
    if (cg_sketch_heavy(s, k, index, value, scratch + 1, bytes) != CG_OK)
        fine = SAY("heavy %lu of %lu", (unsigned long)k, (unsigned long)n);
    plain_select(y, n, k, 0, expect);
    for (size_t j = 0; fine && j < want; j++)
        if (index[j] != expect[j] || bits_of(value[j]) != bits_of(y[index[j]]))
            fine = SAY("heavy %lu of %lu, place %lu: %lu (%g), not %lu (%g)", (unsigned long)k, (unsigned long)n,
                (unsigned long)j, (unsigned long)index[j], (double)value[j], (unsigned long)expect[j],
                (double)y[expect[j]]);
    if (fine && (index[want] != 12345 || value[want] != 777)) fine = SAY("heavy wrote more than k");
    for (size_t j = 0; fine && j < RED; j++)
        if (scratch[1 + bytes + j] != 0xA5) fine = SAY("heavy wrote beyond its scratch");
    free(index), free(expect), free(value), free(scratch);
    return fine;
}
static int above_is(const cg_sketch *s, double tau, size_t k, const float *y, size_t n) {
    const size_t most = k < n ? k : n, bytes = cg_sketch_heavy_scratch(s, k);
    uint64_t *index = (uint64_t *)room(most * 8), *expect = (uint64_t *)room(most * 8);
    float *value = (float *)room(most * 4);
    void *scratch = room(bytes);
    size_t count = 99999999, want = cg_sketch_norm(s) > 0 ? plain_select(y, n, k, tau * cg_sketch_norm(s), expect) : 0;
    int fine = cg_sketch_heavy_above(s, tau, k, index, value, &count, scratch, bytes) == CG_OK || SAY("heavy_above");
    if (fine && count != want)
        fine = SAY(
            "heavy_above %g, %lu: %lu, not %lu", tau, (unsigned long)k, (unsigned long)count, (unsigned long)want);
    for (size_t j = 0; fine && j < want; j++)
        if (index[j] != expect[j] || bits_of(value[j]) != bits_of(y[index[j]]))
            fine = SAY("heavy_above %g, %lu: place %lu", tau, (unsigned long)k, (unsigned long)j);
    free(index), free(expect), free(value), free(scratch);
    return fine;
}
static int queries(const cg_sketch *s, size_t n) {
    double tau[] = { 1e-9, 0.001, 0.03, 0.1, 0.3, 0.9, 30, 0, 0 };
    const size_t ks[] = { 0, 1, 2, 7, n / 100 + 1, n / 3 + 1, n - (n > 0), n, n + 1, 3 * n + 1000 };
    float *y = (float *)room((n + 1) * 4);
    unsigned char *block;
    float *odd = odd_floats(&block, n);
    int fine = 1;
    y[n] = 55;
    if (cg_sketch_estimate_all(s, y, n) != CG_OK || y[n] != 55) fine = SAY("estimate_all");
    if (cg_sketch_estimate_all(s, odd, n) != CG_OK || !same(y, odd, n)) fine = SAY("estimate_all to an odd address");
    free(block);
    for (size_t i = 0; fine && i < n; i++)
        if (bits_of(cg_sketch_estimate(s, i)) != bits_of(y[i]))
            fine = SAY("estimate(%lu) is not estimate_all's", (unsigned long)i);
    /* by less than a float's rounding above an estimate, and below */
    for (int side = 0; n && side < 2; side++)
        if (cg_sketch_norm(s) > 0)
            tau[7 + side] = (double)fabsf(y[n / 2]) / cg_sketch_norm(s) * (side ? 1 + 1e-11 : 1 - 1e-11);
    for (size_t i = 0; fine && i < sizeof ks / sizeof *ks; i++) {
        fine = heavy_is(s, ks[i], y, n);
        for (size_t j = 0; fine && j < sizeof tau / sizeof *tau; j++)
            fine = tau[j] <= 0 || above_is(s, tau[j], ks[i], y, n);
    }
    free(y);
    return fine && norm_fits(s);
}
TEST queried(int which) {
    const shape *h = &SHAPES[which];
    const size_t n = h->n;
    box b;
    plain p;
    float *x = (float *)room((n + 1) * 4);
    TRY(box_open(&b, shape_desc(h, 11)) && plain_open(&p, &b));
    TRY(queries(&b.s, n)); /* nothing in it */
    ASSERT_EQ(0.0, cg_sketch_norm(&b.s));
    for (int kind = 0; kind < 3; kind++) { /* few values, ties everywhere, floats */
        cg_sketch_clear(&b.s);
        for (size_t i = 0; i < n; i++)
            x[i] = kind == 0 ? (float)(draw(5, i) % 500 == 0) : kind == 1 ? whole(6, i) : dyadic(7, i);
        ASSERT_EQ(CG_OK, cg_sketch_add(&b.s, x, n, kind == 2 ? 0.01f : 1));
        TRY(queries(&b.s, n));
        for (size_t i = 0; i < n; i++) ASSERT_EQ(plain_estimate(&p, b.s.cells, i), cg_sketch_estimate(&b.s, i));
    }
    ASSERT_EQ(0.0f, cg_sketch_estimate(&b.s, n));
    ASSERT_EQ(0.0f, cg_sketch_estimate(&b.s, UINT64_MAX));
    for (size_t c = 0; c < b.s.count; c++) b.s.cells[c] = 1; /* all estimates +-1, or of even rows 0: ties */
    TRY(queries(&b.s, n));
    for (size_t i = 0; i < n; i++) ASSERT_EQ(plain_estimate(&p, b.s.cells, i), cg_sketch_estimate(&b.s, i));
    plain_close(&p);
    TRY(box_close(&b));
    free(x);
    PASS();
}
/* Every number of rows, and cells of every size: the largest floats, denormals, both zeros. */
TEST medians(int rows) {
    const size_t n = 1500;
    box b;
    plain p;
    TRY(box_open(&b, describe(rows, 512, n, 21, 0)) && plain_open(&p, &b));
    for (int round = 0; round < 4; round++) {
        for (size_t c = 0; c < b.s.count; c++) {
            const uint64_t v = draw((uint64_t)round, c);
            b.s.cells[c] = round == 0 ? dyadic(1, c)
                : round == 1          ? (float)((int)(v % 3) - 1)
                : round == 2          ? (float)((int)(v % 9) - 4) * 1e-45f
                                      : (v & 1 ? 1.5e38f : 1.7e38f) * (v & 2 ? 1.0f : -1.0f);
        }
        for (size_t i = 0; i < n; i++) ASSERT_EQ(plain_estimate(&p, b.s.cells, i), cg_sketch_estimate(&b.s, i));
        if (round < 3) TRY(queries(&b.s, n));
    }
    plain_close(&p);
    TRY(box_close(&b));
    PASS();
}
/* Two finite cells have a finite mean, even where their sum is too large for a float; and the heaviest coordinate is
   found by it. */
TEST a_mean_of_large_cells_is_finite(int rows) {
    enum { N = 300 };
    const uint64_t place = 77;
    const float large[2] = { 3.25e38f, -3.25e38f };
    float y[N], value;
    uint64_t index;
    box b;
    TRY(box_open(&b, describe(rows, 256, N, 5, 0)));
    for (int i = 0; i < 2; i++) {
        const size_t bytes = cg_sketch_heavy_scratch(&b.s, 1);
        void *scratch = room(bytes);
        cg_sketch_clear(&b.s);
        ASSERT_EQ(CG_OK, cg_sketch_add_list(&b.s, &place, &large[i], 1, 1));
        ASSERT_EQ(large[i], cg_sketch_estimate(&b.s, place));
        ASSERT_EQ(CG_OK, cg_sketch_heavy(&b.s, 1, &index, &value, scratch, bytes));
        ASSERT(index == place && value == large[i]);
        for (int isa = CG_ISA_SCALAR; isa <= CG_ISA_NEON; isa++) {
            if (cg_isa_force((cg_isa)isa) != CG_OK) continue;
            ASSERT_EQ(CG_OK, cg_sketch_estimate_all(&b.s, y, N));
            ASSERT_EQ(large[i], y[place]);
        }
        ASSERT_EQ(CG_OK, cg_isa_force(CG_ISA_AUTO));
        free(scratch);
    }
    TRY(box_close(&b));
    PASS();
}

/* ---- HEAVYMIX ---- */

static int mix_of(const cg_sketch *s, size_t k, const cg_tag *tag, uint64_t *index, float *value) {
    const size_t bytes = cg_sketch_heavy_scratch(s, k);
    void *scratch = room(bytes);
    const cg_status got = cg_sketch_heavymix(s, k, tag, index, value, scratch, bytes);
    free(scratch);
    return got == CG_OK || SAY("heavymix: %s", cg_status_str(got));
}
static int mix_fits(const cg_sketch *s, size_t k, const cg_tag *tag) {
    const size_t n = s->desc.n, want = k < n ? k : n;
    uint64_t *index = (uint64_t *)room((want + 1) * 8);
    float *value = (float *)room((want + 1) * 4);
    float *y = (float *)room((n + 1) * 4);
    const double least = cg_sketch_norm(s) / sqrt((double)(want + (want == 0)));
    size_t heavy = 0, held = 0;
    int fine = 1;
    index[want] = 4711;
    if (cg_sketch_estimate_all(s, y, n) != CG_OK) return SAY("estimate_all");
    fine = mix_of(s, k, tag, index, value);
    if (fine && index[want] != 4711) fine = SAY("heavymix wrote more than k");
    for (size_t j = 0; fine && j < want; j++) {
        if (index[j] >= n || (j && index[j] <= index[j - 1]))
            fine = SAY("heavymix: not ascending at %lu", (unsigned long)j);
        else if (bits_of(value[j]) != bits_of(y[index[j]])) fine = SAY("heavymix: value %lu", (unsigned long)j);
        else held += fabs((double)y[index[j]]) >= least;
    }
    for (size_t i = 0; i < n; i++) heavy += fabs((double)y[i]) >= least;
    if (fine && held != (heavy < want ? heavy : want))
        fine = SAY("heavymix %lu: %lu of %lu heavy ones", (unsigned long)k, (unsigned long)held, (unsigned long)heavy);
    free(index), free(value), free(y);
    return fine;
}
TEST mixes(int which) {
    const shape *h = &SHAPES[which];
    const size_t ks[] = { 1, 2, 10, h->n / 10 + 1, h->n / 2 + 1, h->n + 0, h->n + 5 };
    cg_tag tag = { 1, 2, 3, 4 };
    box b;
    uint64_t none[1] = { 0 };
    float nothing[1];
    TRY(box_open(&b, shape_desc(h, 31)));
    for (int round = 0; round < 3; round++) { /* nothing, a few large ones, all alike */
        float *x = (float *)room((h->n + 1) * 4);
        for (size_t i = 0; i < h->n; i++)
            x[i] = round == 0 ? 0 : round == 1 ? (float)normal(1, i) * (draw(2, i) % 200 ? 0.01f : 1.0f) : 1.0f;
        cg_sketch_clear(&b.s);
        ASSERT_EQ(CG_OK, cg_sketch_add(&b.s, x, h->n, 1));
        for (size_t i = 0; i < sizeof ks / sizeof *ks; i++)
            if (ks[i] && (h->n < 20000 || ks[i] < 20000)) TRY(mix_fits(&b.s, ks[i], &tag));
        TRY(mix_of(&b.s, 0, &tag, none, nothing));
        free(x);
    }
    TRY(box_close(&b));
    PASS();
}
/* The fill: by seed, step and tensor, not by rank, nor by what is in the sketch as long as the heavy ones are the
   same; everybody equally often. Drawn without putting back, inclusions are a little correlated: that is the
   factor (rest - 1)/rest of chi-square. */
static int fill_is_fair(size_t n, size_t k, int trials) {
    enum { HEAVY = 3, MOST = 700 };
    static uint32_t count[MOST];
    const uint64_t where[HEAVY] = { 5, n / 2, n - 1 };
    const float large[HEAVY] = { 10, -10, 10 }, small[HEAVY] = { -7, 7, 7 };
    const double rest = (double)(n - HEAVY), p = (double)(k - HEAVY) / rest;
    double chi = 0, z, df = rest - 1;
    uint64_t one[MOST], two[MOST];
    float value[MOST];
    box a, b;
    if (!box_open(&a, describe(5, 4096, n, 1, 0)) || !box_open(&b, describe(7, 1024, n, 2, 0))) return 0;
    memset(count, 0, sizeof count);
    if (cg_sketch_add_list(&a.s, where, large, HEAVY, 1) != CG_OK ||
        cg_sketch_add_list(&b.s, where, small, HEAVY, 1) != CG_OK)
        return SAY("add_list");
    for (uint64_t i = 0; i < n; i++) {
        const float v = (float)normal(3, i) * 0.01f;
        if (cg_sketch_add_list(&b.s, &i, &v, 1, 1) != CG_OK) return SAY("add_list");
    }
    for (int t = 0; t < trials; t++) {
        cg_tag tag = { 0, 0, 0, 0 };
        if (t % 3 == 0) tag.seed = (uint64_t)t;
        if (t % 3 == 1) tag.step = (uint64_t)t;
        if (t % 3 == 2) tag.tensor = (uint32_t)t;
        if (!mix_of(&a.s, k, &tag, one, value)) return 0;
        tag.rank = (uint32_t)t;
        if (t % 16 == 0 && (!mix_of(&b.s, k, &tag, two, value) || memcmp(one, two, k * 8) != 0))
            return SAY("the fill depends on more than the key");
        for (size_t j = 0; j < k; j++) count[one[j]]++;
    }
    for (size_t i = 0; i < n; i++) {
        if (i == 5 || i == n / 2 || i == n - 1) {
            if (count[i] != (uint32_t)trials) return SAY("a heavy one is missing");
        } else chi += (count[i] - trials * p) * (count[i] - trials * p);
    }
    chi *= df / rest / (trials * p * (1 - p));
    z = (pow(chi / df, 1 / 3.0) - (1 - 2 / (9 * df))) / sqrt(2 / (9 * df));
    printf("  fill: %lu of %lu: chi-square z %.1f\n", (unsigned long)k, (unsigned long)n, z);
    return z <= z_limit(4)
        ? box_close(&a) && box_close(&b)
        : SAY("%lu of %lu: some are drawn more often, z = %.1f", (unsigned long)k, (unsigned long)n, z);
}
TEST fill(void) {
    const int trials = quick ? 4000 : 30000;
    TRY(fill_is_fair(700, 40, trials));
    TRY(fill_is_fair(13, 10, trials));
    TRY(fill_is_fair(13, 12, trials));
    TRY(fill_is_fair(600, 503, trials / 10));
    PASS();
}

/* ---- one set of bits on all machines ---- */

/* Everything that can be asked, of cells that depend on the order of sums. */
static int transcript(const shape *h, int shift, uint64_t *hash) {
    const size_t n = h->n, k = n / 50 + 1;
    cg_tag tag = { 8, 1, 2, 3 };
    box b;
    unsigned char *block;
    float *x = odd_floats(&block, n), *y = (float *)room((n + 1) * 4), *value = (float *)room((k + 1) * 4);
    uint64_t *index = (uint64_t *)room((k + 1) * 8), at = 0;
    size_t count = 0;
    double norm;
    void *scratch;
    int fine = box_open_at(&b, shape_desc(h, 77), shift);
    for (uint64_t round = 0; fine && round < 3; round++) {
        for (size_t i = 0; i < n; i++) y[i] = dyadic(round, i) * (draw(9, i) % 300 ? 1.0f : 64.0f);
        put_odd(x, y, n);
        fine = cg_sketch_add(&b.s, x, n, 0.3f) == CG_OK && cg_sketch_scale(&b.s, 0.9f) == CG_OK;
    }
    scratch = room(cg_sketch_heavy_scratch(&b.s, k));
    if (fine) {
        const size_t bytes = cg_sketch_heavy_scratch(&b.s, k), got = k < n ? k : n;
        at = hash_floats(at, b.s.cells, b.s.count);
        norm = cg_sketch_norm(&b.s);
        memcpy(index, &norm, 8);
        at = hash_words(at, index, 1);
        fine = cg_sketch_estimate_all(&b.s, y, n) == CG_OK;
        at = hash_floats(at, y, n);
        fine = fine && cg_sketch_heavy(&b.s, k, index, value, scratch, bytes) == CG_OK;
        at = hash_floats(hash_words(at, index, got), value, got);
        fine = fine && cg_sketch_heavy_above(&b.s, 0.01, k, index, value, &count, scratch, bytes) == CG_OK;
        at = hash_floats(hash_words(at, index, count), value, count);
        fine = fine && cg_sketch_heavymix(&b.s, k, &tag, index, value, scratch, bytes) == CG_OK;
        at = hash_floats(hash_words(at, index, got), value, got);
    }
    *hash = at;
    free(block), free(y), free(value), free(index), free(scratch);
    return box_close(&b) && (fine || SAY("a call failed"));
}
static const uint64_t FROZEN[SHAPE_COUNT] = { 0x34dad06bc3c2f1cbu, 0x3393dc0820968d72u, 0x9011d05c7c0b858bu,
    0xe4dc7e7a67f22bccu, 0x448b88bc7f0f6906u, 0xa64d1ca0f9bf026au, 0xc59d38ecbba8b6b3u, 0xfa574bcecd24c3c6u,
    0x7a21b83b68740fb6u, 0x23a363dd7ca89817u, 0xcb369ed3aa894e5bu, 0x8361d063a5b040e3u, 0x86abbea49141a1c1u,
    0x34568e52867a0924u, 0x74474bf5413c6169u, 0x56f6ec655cb6d142u };
TEST same_bits(int which) {
    static const cg_isa ISAS[] = { CG_ISA_SCALAR, CG_ISA_AVX2, CG_ISA_NEON, CG_ISA_AVX512, CG_ISA_WASM };
    uint64_t first, other;
    TRY(transcript(&SHAPES[which], 0, &first));
    for (int shift = 1; shift < 70; shift += 23) {
        TRY(transcript(&SHAPES[which], shift, &other));
        ASSERT_EQ(first, other);
    }
    for (int i = 0; i < 3; i++) {
        if (!cg_isa_found(ISAS[i])) continue;
        ASSERT_EQ(CG_OK, cg_isa_force(ISAS[i]));
        TRY(transcript(&SHAPES[which], 0, &other));
        ASSERT_EQ(CG_OK, cg_isa_force(CG_ISA_AUTO));
        ASSERT_EQm(cg_isa_name(ISAS[i]), first, other);
    }
    if (first != FROZEN[which]) printf("    0x%016llxu,\n", (unsigned long long)first);
    ASSERT_EQ(FROZEN[which], first);
    PASS();
}
#ifdef _OPENMP
TEST threads(void) {
    static const shape LARGE[] = { { 5, 30000, 1500007, 0 }, { 4, 256, 300000, 4096 }, { 15, 512, 70001, 100 } };
    uint64_t one, many;
    for (int i = 0; i < 3; i++) {
        omp_set_num_threads(1);
        TRY(transcript(&LARGE[i], 0, &one));
        for (int t = 2; t < 8; t += 1 + t % 2) {
            omp_set_num_threads(t);
            TRY(transcript(&LARGE[i], 0, &many));
            ASSERT_EQ(one, many);
        }
    }
    PASS();
}
#endif

/* ---- the theorem, the variance it rests on, and the norm ---- */

enum { VECTOR = 4096 };
static const char *const VECTOR_NAMES[] = { "one value", "one line", "normal", "heavy tail", "every 256th" };
static void make_vector(int kind, float *x) { /* x[0..256) are looked at, and are 0 but for dense ones */
    for (size_t i = 0; i < VECTOR; i++) {
        const float v = (float)normal(40, i), u = (float)pow(unit(41, i), -0.6);
        x[i] = kind == 0 ? (float)(i == 3000)
            : kind == 1  ? (float)(i / LINE == 7) * v
            : kind == 2  ? v
            : kind == 3  ? v * u
                         : (float)(i % LINE == 0) * v;
    }
}
/* cols = 3/e^2 with e = 1/16. Of one row the error has mean 0 and variance (|x|^2 - |x in its line|^2)/cols,
   whatever the vector. */
TEST guarantee(int kind) {
    static float x[VECTOR];
    static const int ROWS[] = { 9, 15 };
    const size_t cols = 768, where = 17;
    const double e = 1 / 16.0;
    const int trials = quick ? 500 : 3000;
    double all = 0, own = 0;
    make_vector(kind, x);
    for (size_t i = 0; i < VECTOR; i++)
        all += (double)x[i] * (double)x[i], own += i < LINE ? (double)x[i] * (double)x[i] : 0;
    for (int w = 0; w < 2; w++) {
        box b;
        const double d = exp(-(ROWS[w] - 1) / 8.0);
        double sum = 0, squares = 0, fourth = 0, mean, variance, m = (double)trials * ROWS[w], bad = 0;
        TRY(box_open(&b, describe(ROWS[w], cols, VECTOR, 0, 0)));
        for (int t = 0; t < trials; t++) {
            map hash;
            TRY(box_seed(&b, 1000 + (uint64_t)t) && learn_line(&b.s, 0, &hash));
            cg_sketch_clear(&b.s);
            ASSERT_EQ(CG_OK, cg_sketch_add(&b.s, x, VECTOR, 1));
            bad += fabs((double)cg_sketch_estimate(&b.s, where) - (double)x[where]) > e * sqrt(all);
            for (int r = 0; r < ROWS[w]; r++) {
                const double error = hash.sign[r][where] * (double)row_of(&b.s, r)[hash.cell[r][where]] -
                    (double)x[where];
                sum += error, squares += error * error, fourth += error * error * error * error;
            }
        }
        mean = sum / m, variance = squares / m;
        if (w)
            printf("  %-11s off by more than |x|/16: %.4f of the time, promised %.3f; variance %.3f of (|x|^2 - "
                   "own)/cols\n",
                VECTOR_NAMES[kind], bad / trials, d, variance * (double)cols / (all - own));
        ASSERT(bad <= d * trials + count_limit(d * trials, 1));
        ASSERT(fabs(mean) <= z_limit(20) * sqrt((all - own) / (double)cols / m));
        ASSERT(
            fabs(variance - (all - own) / (double)cols) <= z_limit(20) * sqrt((fourth / m - variance * variance) / m));
        TRY(box_close(&b));
    }
    PASS();
}
/* |row|^2 has mean |x|^2 and variance 2/cols times the sum of x_i^2 x_j^2 over different lines: that needs four
   signs at a time. */
TEST norms(int kind) {
    static float x[VECTOR];
    const size_t cols = 512;
    const int rows = 15, trials = quick ? 300 : 2000;
    double all = 0, lines = 0, expected, sum = 0, squares = 0, fourth = 0, m = (double)rows * trials;
    box b;
    make_vector(kind, x);
    for (size_t l = 0; l < VECTOR / LINE; l++) {
        double line = 0;
        for (size_t j = 0; j < LINE; j++) line += (double)x[l * LINE + j] * (double)x[l * LINE + j];
        all += line, lines += line * line;
    }
    expected = 2 / (double)cols * (all * all - lines);
    TRY(box_open(&b, describe(rows, cols, VECTOR, 0, 0)));
    for (int t = 0; t < trials; t++) {
        TRY(box_seed(&b, 5000 + (uint64_t)t));
        ASSERT_EQ(CG_OK, cg_sketch_add(&b.s, x, VECTOR, 1));
        TRY(norm_fits(&b.s));
        for (int r = 0; r < rows; r++) {
            double row = 0, off;
            for (size_t c = 0; c < cols; c++) row += (double)row_of(&b.s, r)[c] * (double)row_of(&b.s, r)[c];
            off = row - all;
            sum += off, squares += off * off, fourth += off * off * off * off;
        }
    }
    /* cells are f32: each of at most n sums is off by n roundings of the largest partial sum */
    ASSERT(fabs(sum / m) <= z_limit(10) * sqrt(expected / m) + VECTOR / 16777216.0 * all);
    ASSERT(fabs(squares / m - expected) <=
        z_limit(10) * sqrt((fourth / m - squares / m * squares / m) / m) + VECTOR / 16777216.0 * all * all);
    TRY(box_close(&b));
    PASS();
}

/* ---- as good as a hash for every coordinate ---- */

/* Polynomials over 2^61 - 1 with random coefficients: four-wise, for cells and signs. */
static const uint64_t PRIME = ((uint64_t)1 << 61) - 1;
static uint64_t modular(uint64_t a, uint64_t b) {
    const uint64_t a1 = a >> 31, a0 = a & 0x7fffffff, b1 = b >> 31, b0 = b & 0x7fffffff, mid = a1 * b0 + a0 * b1;
    const uint64_t sum = 2 * a1 * b1 + (mid >> 30) + ((mid & 0x3fffffff) << 31) + a0 * b0;
    const uint64_t r = (sum & PRIME) + (sum >> 61);
    return r >= PRIME ? r - PRIME : r;
}
static uint64_t polynomial(const uint64_t *c, int terms, uint64_t i) {
    uint64_t v = 0;
    while (terms-- > 0) v = (modular(v, i) + c[terms]) % PRIME;
    return v;
}
enum { Q_N = 1 << 16, Q_ROWS = 5, Q_COLS = 1536 }; /* about n/50 */
typedef struct textbook {
    uint16_t cell[Q_N][Q_ROWS];
    signed char sign[Q_N][Q_ROWS];
    float cells[Q_ROWS][Q_COLS];
} textbook;
static void textbook_open(textbook *t, uint64_t seed) {
    for (uint64_t r = 0; r < Q_ROWS; r++) {
        uint64_t c[8];
        for (uint64_t j = 0; j < 8; j++) c[j] = draw(seed, 10 * r + j) % PRIME;
        for (uint64_t i = 0; i < Q_N; i++) {
            t->cell[i][r] = (uint16_t)(polynomial(c, 4, i) % Q_COLS);
            t->sign[i][r] = (signed char)(polynomial(c + 4, 4, i) & 1 ? 1 : -1);
        }
    }
}
static void textbook_estimates(textbook *t, const float *x, float *y) {
    memset(t->cells, 0, sizeof t->cells);
    for (size_t i = 0; i < Q_N; i++)
        for (int r = 0; r < Q_ROWS; r++) t->cells[r][t->cell[i][r]] += (float)t->sign[i][r] * x[i];
    for (size_t i = 0; i < Q_N; i++) {
        float v[Q_ROWS];
        for (int r = 0; r < Q_ROWS; r++) v[r] = (float)t->sign[i][r] * t->cells[r][t->cell[i][r]];
        y[i] = median(v, Q_ROWS);
    }
}
typedef struct load {
    const char *name;
    size_t heavy;
} load;
static const load LOADS[] = { { "heavy tail", 327 }, { "runs of 16", 320 }, { "runs of 64", 320 },
    { "a run of 300", 300 }, { "every 256th", 256 }, { "every 257th", 255 }, { "every 4096th", 16 } };
enum { LOAD_COUNT = sizeof LOADS / sizeof LOADS[0] };
static void make_load(int kind, uint64_t seed, float *x) {
    for (uint64_t i = 0; i < Q_N; i++) {
        const double v = normal(seed, i);
        const float large = (float)((1 + 2 * unit(seed + 7, i)) * (draw(seed + 8, i) & 1 ? 1 : -1));
        const int in = kind == 1 ? i % 3200 >= 1000 && i % 3200 < 1016 && i < 64000
            : kind == 2          ? i % 13000 >= 1000 && i % 13000 < 1064 && i < 65000
            : kind == 3          ? i >= 30000 && i < 30300
            : kind == 4          ? i % 256 == 0
            : kind == 5          ? i % 257 == 3
            : kind == 6          ? i % 4096 == 5
                                 : 0;
        x[i] = kind == 0 ? (float)(v * pow(unit(seed + 9, i), -0.7))
            : in         ? (kind == 6 ? 1.2f : 1.4f) * large
                         : (float)(0.1 * v);
    }
}
/* k-th largest magnitude */
static float kth(const float *y, size_t n, size_t k, float *work) {
    size_t low = 0, high = n - 1;
    for (size_t i = 0; i < n; i++) work[i] = fabsf(y[i]);
    while (low < high) {
        const float pivot = work[(low + high) / 2];
        size_t i = low, j = high;
        for (;;) {
            while (work[i] > pivot) i++;
            while (work[j] < pivot) j--;
            if (i <= j) {
                const float t = work[i];
                work[i] = work[j];
                work[j] = t;
                i++;
                if (j == 0) break;
                j--;
            }
            if (i > j) break;
        }
        if (k - 1 <= j) high = j;
        else if (k - 1 >= i) low = i;
        else break;
    }
    return work[k - 1];
}
/* Of the k largest, how many are among the k largest estimates; and |x - what these say| / |x|. */
static void score(const float *x, const float *y, size_t k, double *recall, double *error) {
    static float work[Q_N];
    const float t = kth(x, Q_N, k, work), u = kth(y, Q_N, k, work);
    double all = 0, off = 0, hit = 0;
    for (size_t i = 0; i < Q_N; i++) {
        const int taken = fabsf(y[i]) >= u;
        const double d = (double)x[i] - (taken ? (double)y[i] : 0);
        hit += taken && fabsf(x[i]) >= t;
        all += (double)x[i] * (double)x[i], off += d * d;
    }
    *recall = hit / (double)k;
    *error = sqrt(off / all);
}
typedef struct figures {
    double sum, squares;
} figures;
static void figure(figures *f, double v) { f->sum += v, f->squares += v * v; }
static double spread_of(const figures *f, double m) { return sqrt(fmax(0, f->squares / m - f->sum / m * f->sum / m)); }
TEST quality(void) {
    static textbook t;
    static float x[Q_N], y[Q_N];
    figures f[LOAD_COUNT][4], apart_by[LOAD_COUNT];
    box b;
    const int seeds = quick ? 10 : 60;
    int bad = 0;
    memset(f, 0, sizeof f), memset(apart_by, 0, sizeof apart_by);
    TRY(box_open(&b, describe(Q_ROWS, Q_COLS, Q_N, 0, 0)));
    for (int s = 0; s < seeds; s++) {
        textbook_open(&t, (uint64_t)s + 100);
        for (int kind = 0; kind < LOAD_COUNT; kind++) {
            double ours[2], theirs[2];
            make_load(kind, 1000u * (uint64_t)s + (uint64_t)kind * 17, x);
            TRY(box_seed(&b, (uint64_t)s + 100));
            ASSERT_EQ(CG_OK, cg_sketch_add(&b.s, x, Q_N, 1));
            ASSERT_EQ(CG_OK, cg_sketch_estimate_all(&b.s, y, Q_N));
            score(x, y, LOADS[kind].heavy, &ours[0], &ours[1]);
            textbook_estimates(&t, x, y);
            score(x, y, LOADS[kind].heavy, &theirs[0], &theirs[1]);
            for (int j = 0; j < 2; j++) figure(&f[kind][j], ours[j]), figure(&f[kind][2 + j], theirs[j]);
            figure(&apart_by[kind], ours[0] - theirs[0]);
        }
    }
    for (int kind = 0; kind < LOAD_COUNT; kind++) {
        const double m = seeds, recall = (f[kind][0].sum - f[kind][2].sum) / m,
                     error = (f[kind][1].sum - f[kind][3].sum) / m;
        printf("  %-13s recall %.3f (spread %.3f), a hash for each %.3f (%.3f); error %.3f (%.3f), %.3f (%.3f); recall "
               "differs by %+.4f +- %.4f\n",
            LOADS[kind].name, f[kind][0].sum / m, spread_of(&f[kind][0], m), f[kind][2].sum / m,
            spread_of(&f[kind][2], m), f[kind][1].sum / m, spread_of(&f[kind][1], m), f[kind][3].sum / m,
            spread_of(&f[kind][3], m), recall, spread_of(&apart_by[kind], m) / sqrt(m));
        if (recall < -0.02 || error > 0.02) bad++;
    }
    ASSERT_EQ(0, bad);
    TRY(box_close(&b));
    PASS();
}

/* ---- groups ---- */

/* `heavy` values of +-1 to +-2, many close to 1; in pairs that are opposite, in one line or in one group of lines,
   if they are to cancel; and noise. */
enum { NOISE = 2000 };
static void plant(uint64_t n, uint64_t seed, size_t heavy, int cancel, uint64_t *index, float *value) {
    for (size_t j = 0; j < heavy; j++) {
        do {
            index[j] = draw(seed, 31 * j + n) % n;
            if (j % 2 && cancel) index[j] = j % 4 == 1 ? index[j - 1] ^ 77 : index[j - 1] ^ (256 * 19 + 5);
            for (size_t i = 0; i < j; i++)
                if (index[i] == index[j]) index[j] = n;
            if (index[j] >= n) seed++;
        } while (index[j] >= n);
        value[j] = j % 2 && cancel ? -value[j - 1]
                                   : (float)((1 + pow(unit(seed, j + 5000), 3)) * (draw(seed, j + 9000) & 1 ? 1 : -1));
    }
    for (size_t j = heavy; j < heavy + NOISE; j++)
        index[j] = draw(seed + 1, j) % n, value[j] = (float)(0.03 * normal(seed + 2, j));
}
static int found_all(const cg_sketch *s, size_t k, const uint64_t *planted, size_t heavy, int above) {
    const size_t bytes = cg_sketch_heavy_scratch(s, k);
    uint64_t *index = (uint64_t *)room(k * 8);
    float *value = (float *)room(k * 4);
    void *scratch = room(bytes);
    size_t hit = 0, count = k;
    cg_status got = above ? cg_sketch_heavy_above(s, 0.9 / cg_sketch_norm(s), k, index, value, &count, scratch, bytes)
                          : cg_sketch_heavy(s, k, index, value, scratch, bytes);
    int fine = got == CG_OK || SAY("heavy: %s", cg_status_str(got));
    for (size_t j = 0; fine && j < count; j++) {
        if (j && index[j] <= index[j - 1]) fine = SAY("not ascending");
        if (bits_of(value[j]) != bits_of(cg_sketch_estimate(s, index[j]))) fine = SAY("not its estimate");
        for (size_t i = 0; i < heavy; i++) hit += planted[i] == index[j];
    }
    if (fine && hit != heavy) fine = SAY("%lu of %lu planted values found", (unsigned long)hit, (unsigned long)heavy);
    free(index), free(value), free(scratch);
    return fine;
}
TEST huge(int log2n, int rows, int cancel) {
    enum { HEAVY = 8 };
    uint64_t index[HEAVY + NOISE];
    float value[HEAVY + NOISE];
    const uint64_t n = ((uint64_t)1 << log2n) - (log2n < 40 ? 3 : 0);
    const clock_t begin = clock();
    int missed = 0, trials = quick ? 5 : 30;
    if (n > SIZE_MAX) SKIPm("32 bits");
    for (int t = 0; t < trials; t++) {
        box b;
        plant(n, (uint64_t)(t + 100 * log2n), HEAVY, cancel, index, value);
        TRY(box_open(&b, describe(rows, 8192, (size_t)n, (uint64_t)t, 8192)));
        ASSERT_EQ(CG_OK, cg_sketch_add_list(&b.s, index, value, HEAVY + NOISE, 1));
        if (!found_all(&b.s, HEAVY, index, HEAVY, 1) || !found_all(&b.s, HEAVY, index, HEAVY, 0)) {
            if (!missed++)
                printf(
                    "  n = 2^%d, %d rows, %s: seed %d: %s\n", log2n, rows, cancel ? "opposite values" : "any", t, note);
        }
        TRY(box_close(&b));
        if (clock() - begin > 20 * CLOCKS_PER_SEC) FAILm("not quickly");
    }
    printf("  n = 2^%d, %d rows: %d of %d missed, %.1f ms each\n", log2n, rows, missed, trials,
        1e3 * (double)(clock() - begin) / CLOCKS_PER_SEC / trials);
    ASSERT_EQ(0, missed);
    PASS();
}
static int above_alike(const cg_sketch *with, const cg_sketch *without) {
    enum { MOST = 3000 };
    static const double TAU[] = { 0.02, 0.05, 0.1, 0.11, 0.12, 0.2 };
    static uint64_t i1[MOST], i2[MOST];
    static float v1[MOST], v2[MOST];
    const size_t bytes = cg_sketch_heavy_scratch(with, MOST);
    void *scratch = room(bytes);
    size_t c1 = 0, c2 = 0;
    int fine = 1;
    for (int t = 0; fine && t < 6; t++)
        fine = cg_sketch_heavy_above(with, TAU[t], MOST, i1, v1, &c1, scratch, bytes) == CG_OK &&
            cg_sketch_heavy_above(without, TAU[t], MOST, i2, v2, &c2, scratch, bytes) == CG_OK && c1 == c2 &&
            memcmp(i1, i2, 8 * c1) == 0 && same(v1, v2, c1);
    free(scratch);
    return fine || SAY("heavy_above: %lu with groups, %lu without, or others", (unsigned long)c1, (unsigned long)c2);
}
/* With groups and without: the same, as long as what is asked for is above 4 |x| / sqrt(min(cols, groups)). With
   fewer rows one of two million other coordinates may meet large ones in most rows: then they differ, as groups
   show that there is nothing. */
TEST grouped(void) {
    const size_t n = quick ? 300001 : 2000003;
    float *x = (float *)room(n * 4);
    box with, without;
    for (uint64_t t = 0; t < (quick ? 2 : 6); t++) {
        enum { K = 12 };
        uint64_t i1[K], i2[K];
        float v1[K], v2[K];
        size_t bytes;
        void *scratch;
        for (size_t i = 0; i < n; i++) x[i] = (float)(0.01 * normal(t, i));
        for (uint64_t j = 0; j < K; j++) x[draw(t + 60, j) % n] = 10.0f + (float)j;
        TRY(box_open(&with, describe(9, 4096, n, t, 4096)) && box_open(&without, describe(9, 4096, n, t, 0)));
        ASSERT_EQ(CG_OK, cg_sketch_add(&with.s, x, n, 1));
        ASSERT_EQ(CG_OK, cg_sketch_add(&without.s, x, n, 1));
        ASSERT(same(with.s.cells, without.s.cells, row_cells(&with.s)));
        bytes = cg_sketch_heavy_scratch(&with.s, K);
        scratch = room(bytes);
        ASSERT_EQ(CG_OK, cg_sketch_heavy(&with.s, K, i1, v1, scratch, bytes));
        ASSERT_EQ(CG_OK, cg_sketch_heavy(&without.s, K, i2, v2, scratch, bytes));
        ASSERT_EQ(0, memcmp(i1, i2, sizeof i1));
        ASSERT(same(v1, v2, K));
        for (int j = 0; j < K; j++) ASSERT((double)fabsf(v1[j]) >= 4 * cg_sketch_norm(&with.s) / 64);
        free(scratch);
        TRY(above_alike(&with.s, &without.s));
        TRY(box_close(&with) && box_close(&without));
    }
    free(x);
    PASS();
}

/* Few cells, many groups: what is large is only an estimate, below the guarantee, and groups must not be asked, as
   they know that there is nothing. */
TEST below(void) {
    const size_t n = 1000003;
    float *x = (float *)room(n * 4);
    box with, without;
    for (size_t i = 0; i < n; i++) x[i] = (float)normal(1, i);
    TRY(box_open(&with, describe(9, 256, n, 1, 65536)) && box_open(&without, describe(9, 256, n, 1, 0)));
    ASSERT_EQ(CG_OK, cg_sketch_add(&with.s, x, n, 1));
    ASSERT_EQ(CG_OK, cg_sketch_add(&without.s, x, n, 1));
    TRY(above_alike(&with.s, &without.s));
    free(x);
    TRY(box_close(&with) && box_close(&without));
    PASS();
}

/* ---- packets ---- */

static const char *const PACK_OPS[] = { "dense", "f16", "absmax:8:512", "topk:0.1", "topk:0.05|f16", "huffman",
    "minmax:4:64", "efsign" };
static cg_sketch_desc packed_desc(int groups) { return describe(3, 512, 5000, 6, groups ? 100 : 0); }
static int fill_box(box *b, uint64_t key) {
    for (uint64_t i = 0; i < b->s.desc.n; i++) {
        const float v = dyadic(key, i) / 1024;
        if (cg_sketch_add_list(&b->s, &i, &v, 1, 1) != CG_OK) return SAY("add_list");
    }
    return 1;
}
TEST packed(int which, int groups) {
    cg_op op;
    cg_tag tag = { 1, 22, 33, 44 };
    cg_info info;
    box a, b;
    float *y;
    unsigned char *packet, *scratch;
    size_t cap, len = 1, bytes;
    ASSERT_EQ(CG_OK, cg_op_parse(&op, PACK_OPS[which]));
    TRY(box_open(&a, packed_desc(groups)) && box_open(&b, packed_desc(groups)) && fill_box(&a, 1));
    cap = cg_sketch_bound(&a.s, &op), bytes = cg_sketch_scratch(&a.s, &op);
    ASSERT(cap > 0);
    packet = (unsigned char *)room(cap + 1), scratch = (unsigned char *)room(bytes + 1),
    y = (float *)room(4 * a.s.count);
    for (int round = 0; round < 3; round++) {
        const float alpha = round ? -0.5f : 1.0f, beta = round == 1 ? 0.3f : round == 2 ? 1.0f : 0.0f;
        ASSERT_EQ(CG_OK, cg_sketch_pack(&a.s, &op, &tag, packet + 1, cap, &len, scratch + 1, bytes));
        ASSERT_EQ(CG_OK, cg_inspect(packet + 1, len, &info));
        ASSERT(info.tag.step == 22 && info.tag.tensor == 33 && info.tag.rank == 44 && info.n == a.s.count);
        memcpy(y, b.s.cells, 4 * b.s.count);
        ASSERT_EQ(CG_OK, cg_decode(NULL, packet + 1, len, alpha, beta, y, a.s.count));
        ASSERT_EQ(CG_OK, cg_sketch_unpack(&b.s, packet + 1, len, alpha, beta));
        ASSERT(same(y, b.s.cells, b.s.count));
        if (round == 0 && (which == 0 || which == 5)) ASSERT(same(a.s.cells, b.s.cells, b.s.count));
    }
    ASSERT_EQ(CG_E_CAPACITY, cg_sketch_pack(&a.s, &op, &tag, packet, len - 1, &len, scratch, bytes));
    ASSERT_EQ(0u, len);
    TRY(box_close(&a) && box_close(&b));
    free(packet), free(scratch), free(y);
    PASS();
}
/* want CG_OK: any error will do */
static int refuses(box *b, const float *before, const void *packet, size_t len, cg_status want) {
    const cg_status got = cg_sketch_unpack(&b->s, packet, len, 1, 1);
    if (got == CG_OK || (want != CG_OK && got != want)) return SAY("unpack: %s", cg_status_str(got));
    if (cg_sketch_load(&b->s, packet, len) != got) return SAY("load says something else");
    return same(before, b->s.cells, b->s.count) || SAY("cells changed");
}
TEST foreign(void) {
    cg_op dense = cg_dense();
    box a, b;
    cg_tag tag = { 6, 0, 0, 0 };
    size_t cap, len;
    unsigned char *packet;
    float *before;
    TRY(box_open(&a, packed_desc(1)) && fill_box(&a, 2));
    before = (float *)room(4 * a.s.count);
    memcpy(before, a.s.cells, 4 * a.s.count);
    for (int change = 0; change < 8; change++) {
        cg_sketch_desc d = packed_desc(1);
        if (change == 0) d.n = 5001; /* as many cells */
        if (change == 1) d.seed = 7;
        if (change == 2) d.rows = 4;
        if (change == 3) d.cols = 768;
        if (change == 4) d.groups = 0;
        if (change == 5) d.groups = 101;
        if (change == 6) d.seed = (uint64_t)1 << 63 | 6;
        if (change == 7) d.cols = 256, d.groups = 356; /* as many cells again */
        TRY(box_open(&b, d) && fill_box(&b, 3));
        if (change == 0 || change == 7) ASSERT_EQ(a.s.count, b.s.count);
        cap = cg_sketch_bound(&b.s, &dense);
        packet = (unsigned char *)room(cap);
        ASSERT_EQ(CG_OK, cg_sketch_save(&b.s, packet, cap, &len));
        TRY(refuses(&a, before, packet, len, CG_E_MISMATCH));
        ASSERT_EQ(CG_E_MISMATCH, cg_sketch_merge(&a.s, &b.s));
        ASSERT(same(before, a.s.cells, a.s.count));
        packet[len - 1] ^= 1; /* foreign and broken: broken */
        TRY(refuses(&a, before, packet, len, CG_E_CORRUPT));
        free(packet);
        TRY(box_close(&b));
    }
    packet = (unsigned char *)room(cg_bound(&dense, a.s.count));
    ASSERT_EQ(CG_OK, cg_compress(&dense, &tag, before, a.s.count, packet, cg_bound(&dense, a.s.count), &len, NULL, 0));
    TRY(refuses(&a, before, packet, len, CG_E_MISMATCH)); /* not of a sketch */
    free(packet), free(before);
    TRY(box_close(&a));
    PASS();
}
TEST broken(int which) {
    cg_op op;
    box a, b;
    size_t cap, len, bytes;
    unsigned char *packet, *scratch, *copy;
    float *before;
    ASSERT_EQ(CG_OK, cg_op_parse(&op, PACK_OPS[which]));
    TRY(box_open(&a, packed_desc(0)) && box_open(&b, packed_desc(0)) && fill_box(&a, 4) && fill_box(&b, 5));
    cap = cg_sketch_bound(&a.s, &op), bytes = cg_sketch_scratch(&a.s, &op);
    packet = (unsigned char *)room(cap), scratch = (unsigned char *)room(bytes), before = (float *)room(4 * b.s.count);
    memcpy(before, b.s.cells, 4 * b.s.count);
    ASSERT_EQ(CG_OK, cg_sketch_pack(&a.s, &op, NULL, packet, cap, &len, scratch, bytes));
    for (size_t at = 0; at < len; at += at < CG_HEADER_BYTES ? 1 : 37) {
        packet[at] = (unsigned char)(packet[at] ^ 1 << draw(1, at) % 8);
        TRY(refuses(&b, before, packet, len, CG_OK));
        packet[at] = (unsigned char)(packet[at] ^ 1 << draw(1, at) % 8);
        copy = (unsigned char *)room(at); /* exactly as long as it says */
        memcpy(copy, packet, at);
        TRY(refuses(&b, before, copy, at, CG_OK));
        free(copy);
    }
    ASSERT(cg_sketch_unpack(&b.s, packet, len + (size_t)0, HUGE_VALF, 1) != CG_OK &&
        cg_sketch_unpack(&b.s, packet, len, 1, -HUGE_VALF) != CG_OK);
    ASSERT(cg_sketch_unpack(NULL, packet, len, 1, 1) == CG_E_ARG && cg_sketch_unpack(&b.s, NULL, len, 1, 1) != CG_OK);
    ASSERT(same(before, b.s.cells, b.s.count));
    ASSERT_EQ(CG_OK, cg_sketch_unpack(&b.s, packet, len, 1, 0)); /* it was a good packet */
    TRY(box_close(&a) && box_close(&b));
    free(packet), free(scratch), free(before);
    PASS();
}
TEST saved(int which) {
    const shape *h = &SHAPES[which];
    cg_op dense = cg_dense();
    box a, b;
    size_t len = 0, cap;
    unsigned char *blob;
    TRY(box_open(&a, shape_desc(h, 4)) && box_open_at(&b, shape_desc(h, 4), 3) && fill_box(&a, 8) && fill_box(&b, 9));
    cap = cg_sketch_bound(&a.s, &dense);
    blob = (unsigned char *)room(cap);
    ASSERT_EQ(CG_OK, cg_sketch_save(&a.s, blob, cap, &len));
    ASSERT_EQ(CG_OK, cg_sketch_load(&b.s, blob, len));
    ASSERT(same(a.s.cells, b.s.cells, a.s.count));
    ASSERT_EQ(CG_E_CAPACITY, cg_sketch_save(&a.s, blob, len - 1, &len));
    free(blob);
    TRY(box_close(&a) && box_close(&b));
    PASS();
}

/* ---- refusals ---- */

TEST shapes_refused(void) {
    static const int ROWS[] = { 0, -1, 16, 1 << 30, -2147483647 - 1 };
    cg_sketch_desc d = describe(5, 256, 100, 1, 0);
    cg_sketch s;
    unsigned char mem[5 * 256 * 4 + 200];
    size_t need = cg_sketch_memory(&d);
    ASSERT(need > 0 && need <= sizeof mem);
    ASSERT_EQ(CG_OK, cg_sketch_init(&s, &d, mem, need));
    ASSERT_EQ(CG_E_MEMORY, cg_sketch_init(&s, &d, mem, 5 * 256 * 4 - 1));
    ASSERT_EQ(CG_E_MEMORY, cg_sketch_init(&s, &d, NULL, need));
    ASSERT_EQ(CG_E_ARG, cg_sketch_init(NULL, &d, mem, need));
    ASSERT_EQ(CG_E_ARG, cg_sketch_init(&s, NULL, mem, need));
    ASSERT_EQ(0u, cg_sketch_memory(NULL));
    for (int i = 0; i < 5; i++) {
        d = describe(ROWS[i], 256, 100, 1, 0);
        ASSERT_EQ(0u, cg_sketch_memory(&d));
        ASSERT_EQ(CG_E_ARG, cg_sketch_init(&s, &d, mem, sizeof mem));
    }
    for (int i = 0; i < 9; i++) {
        d = describe(5, 256, 100, 1, 0);
        if (i == 0) d.cols = 0;
        if (i == 1) d.cols = SIZE_MAX;
        if (i == 2) d.cols = SIZE_MAX - 255;
        if (i == 3) d.cols = SIZE_MAX / 4;
        if (i == 4) d.cols = SIZE_MAX / 20 + 1; /* 5 rows of 4 bytes: too much by a little */
        if (i == 5) d.groups = SIZE_MAX;
        if (i == 6) d.groups = SIZE_MAX / 4;
        if (i == 7) d.n = SIZE_MAX;
        if (i == 8) d.cols = SIZE_MAX / 16, d.groups = SIZE_MAX / 16;
        if (i == 7 && SIZE_MAX <= 0xffffffffu) continue;
        ASSERT_EQ(0u, cg_sketch_memory(&d));
        ASSERT_EQ(CG_E_ARG, cg_sketch_init(&s, &d, mem, sizeof mem));
    }
    if (SIZE_MAX > 0xffffffffu) {
        d = describe(5, 256, (size_t)((uint64_t)1 << 40), 1, 0);
        ASSERT(cg_sketch_memory(&d) > 0);
        d.n++;
        ASSERT_EQ(0u, cg_sketch_memory(&d));
    }
    PASS();
}
static int refuses_all(const cg_sketch *s) {
    const size_t bytes = cg_sketch_heavy_scratch(s, 4), cap = 168 + 4 * s->count;
    void *scratch = room(bytes), *packet = room(cap);
    uint64_t index[4];
    float value[4];
    size_t count, len;
    const int fine = cg_sketch_heavy(s, 4, index, value, scratch, bytes) == CG_E_NONFINITE &&
        cg_sketch_heavy_above(s, 0.1, 4, index, value, &count, scratch, bytes) == CG_E_NONFINITE &&
        cg_sketch_heavymix(s, 4, NULL, index, value, scratch, bytes) == CG_E_NONFINITE &&
        cg_sketch_save(s, packet, cap, &len) == CG_E_NONFINITE;
    free(scratch), free(packet);
    return fine || SAY("NaN and Inf in cells: accepted");
}
/* A cell whose sum has become too large for a float is found, in whatever row or level of groups it is: an estimate is
   a median, which may not show it, and a search by groups has no end if the norm is Inf. */
TEST overflow_is_found(int groups) {
    enum { N = 70000 };
    const float huge[2] = { 3e38f, 3e38f };
    const uint64_t same_place[2] = { 77, 77 };
    box b;
    TRY(box_open(&b, describe(5, 512, N, 1, groups ? 256 : 0)));
    ASSERT_EQ(CG_OK, cg_sketch_add_list(&b.s, same_place, huge, 2, 1));
    TRY(refuses_all(&b.s));
    for (size_t cell = 0; cell < b.s.count; cell += b.s.count / 37 + 1) {
        cg_sketch_clear(&b.s);
        ASSERT_EQ(CG_OK, cg_sketch_add_list(&b.s, same_place, huge, 1, 1));
        b.s.cells[cell] = cell % 2 ? HUGE_VALF : -HUGE_VALF;
        TRY(refuses_all(&b.s));
    }
    TRY(box_close(&b));
    PASS();
}
/* Whatever is refused leaves the cells as they were. */
TEST values_refused(int groups) {
    static const float BAD[] = { HUGE_VALF, -HUGE_VALF, 0 };
    enum { N = 3000 };
    static float x[N];
    static uint64_t index[N];
    const size_t places[] = { 0, 1, 255, 256, 1000, N - 1 };
    box b, c;
    float *before;
    uint64_t i1[4];
    float v1[4];
    size_t count;
    unsigned char scratch[64];
    TRY(box_open(&b, describe(5, 512, N, 1, groups ? 64 : 0)) &&
        box_open(&c, describe(5, 512, N, 1, groups ? 64 : 0)) && fill_box(&b, 3));
    before = (float *)room(4 * b.s.count);
    memcpy(before, b.s.cells, 4 * b.s.count);
    for (size_t i = 0; i < N; i++) x[i] = 1, index[i] = i;
    for (int k = 0; k < 3; k++) {
        const float bad = k < 2 ? BAD[k] : nanf("");
        for (int p = 0; p < 6; p++) {
            x[places[p]] = bad;
            ASSERT_EQ(CG_E_NONFINITE, cg_sketch_add(&b.s, x, N, 1));
            ASSERT_EQ(CG_E_NONFINITE, cg_sketch_add(&b.s, x, N, 0));
            ASSERT_EQ(CG_E_NONFINITE, cg_sketch_add_list(&b.s, index, x, N, 1));
            x[places[p]] = 1;
        }
        ASSERT(cg_sketch_add(&b.s, x, N, bad) != CG_OK && cg_sketch_add_list(&b.s, index, x, N, bad) != CG_OK &&
            cg_sketch_scale(&b.s, bad) != CG_OK);
    }
    for (int p = 0; p < 6; p++)
        for (int far = 0; far < 3; far++) {
            index[places[p]] = far == 0 ? N : far == 1 ? UINT64_MAX : (uint64_t)1 << 32 | 5;
            ASSERT_EQ(CG_E_ARG, cg_sketch_add_list(&b.s, index, x, N, 1));
            ASSERT(cg_sketch_zero(&b.s, index, N) != CG_OK);
            index[places[p]] = places[p];
        }
    ASSERT_EQ(CG_E_MISMATCH, cg_sketch_add(&b.s, x, N - 1, 1));
    ASSERT_EQ(CG_E_MISMATCH, cg_sketch_estimate_all(&b.s, x, N - 1));
    ASSERT(cg_sketch_add(&b.s, NULL, N, 1) == CG_E_ARG && cg_sketch_add(NULL, x, N, 1) == CG_E_ARG);
    ASSERT_EQ(CG_E_ARG, cg_sketch_add_list(&b.s, NULL, x, 1, 1));
    ASSERT(cg_sketch_add_list(&b.s, index, NULL, 1, 1) == CG_E_ARG && cg_sketch_merge(&b.s, NULL) == CG_E_ARG &&
        cg_sketch_merge(NULL, &b.s) == CG_E_ARG);
    ASSERT_EQ(CG_E_CAPACITY, cg_sketch_heavy(&b.s, 4, i1, v1, scratch, sizeof scratch));
    ASSERT_EQ(CG_E_ARG, cg_sketch_heavy(&b.s, 4, NULL, v1, scratch, sizeof scratch));
    for (int t = 0; t < 4; t++) {
        const double tau = t == 0 ? 0.0 : t == 1 ? -1.0 : t == 2 ? nan("") : HUGE_VAL;
        ASSERT_EQ(CG_E_ARG, cg_sketch_heavy_above(&b.s, tau, 4, i1, v1, &count, scratch, sizeof scratch));
    }
    ASSERT_EQ(CG_E_CAPACITY, cg_sketch_heavymix(&b.s, 4, NULL, i1, v1, scratch, sizeof scratch));
    ASSERT(same(before, b.s.cells, b.s.count));
    ASSERT_EQ(CG_OK, cg_sketch_add_list(&b.s, NULL, NULL, 0, 1));
    if (groups) ASSERT_EQ(CG_E_UNSUPPORTED, cg_sketch_zero(&b.s, index, 3)); /* the groups would still have it */
    ASSERT(same(before, b.s.cells, b.s.count));
    /* somebody else's arithmetic */
    for (size_t i = 0; i < b.s.count; i++) b.s.cells[i] = i % 2 ? HUGE_VALF : nanf("");
    TRY(refuses_all(&b.s));
    free(before);
    TRY(box_close(&b) && box_close(&c));
    PASS();
}

/* Whatever is wrong far behind is seen before the first cell changes. */
TEST late(void) {
    const size_t n = 200001;
    float *x = (float *)calloc(n, sizeof *x);
    uint64_t *index = (uint64_t *)calloc(n, sizeof *index);
    box b;
    ASSERT(x && index);
    TRY(box_open(&b, describe(3, 512, n, 1, 64)));
    for (size_t at = 65535; at < n; at += at == 65535 ? 1 : 67232) {
        memset(b.s.cells, 0, 4 * b.s.count);
        x[0] = 1, x[at] = at % 2 ? HUGE_VALF : nanf("");
        ASSERT_EQ(CG_E_NONFINITE, cg_sketch_add(&b.s, x, n, 1));
        ASSERT_EQ(CG_E_NONFINITE, cg_sketch_add_list(&b.s, index, x, n, 1));
        x[at] = 0, index[at] = n;
        ASSERT_EQ(CG_E_ARG, cg_sketch_add_list(&b.s, index, x, n, 1));
        index[at] = 0;
        for (size_t c = 0; c < b.s.count; c++) ASSERT_EQ(0u, bits_of(b.s.cells[c]));
    }
    free(x), free(index);
    TRY(box_close(&b));
    PASS();
}

GREATEST_MAIN_DEFS();
int main(int argc, char **argv) {
    static const size_t COLS[] = { 256, 512, 768, 1280 };
    GREATEST_MAIN_BEGIN();
    quick = !long_test();
    for (int i = 0; i < 4; i++) RUN_TESTp(one_line, COLS[i]);
    RUN_TESTp(one_line, (size_t)1);
    for (int i = 0; i < 4; i++) RUN_TESTp(spread, COLS[i]);
    RUN_TEST(line_signs);
    RUN_TEST(nothing_twice);
    for (int i = 0; i < SHAPE_COUNT; i++) {
        RUN_TESTp(linear, i);
        RUN_TESTp(arithmetic, i);
        if (SHAPES[i].n < 20000) RUN_TESTp(queried, i);
        RUN_TESTp(mixes, i);
        RUN_TESTp(same_bits, i);
        RUN_TESTp(saved, i);
    }
#ifdef _OPENMP
    RUN_TEST(threads);
#endif
    for (int rows = 1; rows <= ROWS_MOST; rows++) RUN_TESTp(medians, rows);
    for (int rows = 1; rows <= ROWS_MOST; rows++) RUN_TESTp(a_mean_of_large_cells_is_finite, rows);
    RUN_TEST(fill);
    for (int kind = 0; kind < 5; kind++) RUN_TESTp(guarantee, kind);
    for (int kind = 0; kind < 5; kind++) RUN_TESTp(norms, kind);
    RUN_TEST(quality);
    RUN_TEST(grouped);
    RUN_TEST(below);
    RUN_TESTp(huge, 30, 5, 0);
    RUN_TESTp(huge, 34, 5, 0);
    RUN_TESTp(huge, 40, 7, 0);
    RUN_TESTp(huge, 30, 5, 1);
    for (int i = 0; i < 8; i++)
        for (int groups = 0; groups < 2; groups++) RUN_TESTp(packed, i, groups);
    RUN_TEST(foreign);
    for (int i = 0; i < 4; i++) RUN_TESTp(broken, i);
    RUN_TEST(shapes_refused);
    RUN_TESTp(overflow_is_found, 0);
    RUN_TESTp(overflow_is_found, 1);
    for (int groups = 0; groups < 2; groups++) RUN_TESTp(values_refused, groups);
    RUN_TEST(late);
    GREATEST_MAIN_END();
}
