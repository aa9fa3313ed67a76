/* Every operator text in the manuals, the declarations and README.md: it parses, and keeps what is said of it.

   Texts are looked for in src/X/manual.h, src/X/api.h and README.md. One that is not in the table below fails, so that
   nobody prints a recipe that was not measured; so does a row whose text is printed nowhere. A row has the measured
   error |D - x|^2 / |x|^2 (1 minus the share of energy kept), the largest one that the documentation allows, and for a
   selection with a quantizer the measured share of the selected energy that is left after the quantizer. */
#define _POSIX_C_SOURCE 200809L
#define COMPGRAD_IMPLEMENTATION
#include "compgrad.h"
#include "ref.h"
#include "ops.h"
#include "greatest.h"
#include <ctype.h>
#include <dirent.h>
#include <math.h>
#include <stdio.h>

enum { SIDE = 512, N = SIDE * SIDE, TAGS = 4, SEEN = 1000 };
typedef enum vector {
    HEAVY,
    NORMAL
} vector;           /* what is said of "a vector of normally distributed values" is of these */
#define EXACT 1e-11 /* rotations round */
#define ANY 1e30    /* nothing is said */

typedef struct recipe {
    const char *text, *run; /* as printed; with numbers for its parameters, NULL: has them */
    vector on;
    double error, claim; /* claim: of the manual or of README; 1: biased, so that error feedback needs less than 1 */
    double of_selected;
} recipe;
static const recipe recipes[] = {
#include "recipes.h"
};
enum { RECIPES = (int)(sizeof recipes / sizeof recipes[0]) };

static char note[400];

/* ---- texts ---- */

/* Does an operator have this name? By what parses with some parameters, as the library would. */
static int is_name(const char *name, size_t len) {
    static const char *const forms[] = { "%.*s", "%.*s:0.5", "%.*s:1", "%.*s:2:64", "%.*s:64:0.1", "%.*s:2:2:2",
        "%.*s:0.5:4", "%.*s:0.5:0.5:4", "%.*s:200:1:1:1", "topk:0.5|%.*s", "trits:1|%.*s", "rotate:1|%.*s:1",
        "side:0.5|%.*s" };
    char text[80];
    cg_op op;
    if (len == 0 || len > 20) return 0;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        snprintf(text, sizeof text, forms[i], (int)len, name);
        if (cg_op_parse(&op, text) == CG_OK) return 1;
    }
    return 0;
}
/* characters of operator texts, with [ ] for what may be left out, and any beyond ASCII */
static int is_text(char c) {
    return isalnum((unsigned char)c) || (c && strchr("_.:|=[]%", c)) || (unsigned char)c > 127;
}

static char seen[SEEN][80];
static double seen_share[SEEN]; /* "share .83" in the same row of the manual's table; 0: no such words */
static int seen_count;

static void found(const char *text, double share) {
    int i = 0;
    while (i < seen_count && strcmp(seen[i], text)) i++;
    if (i == SEEN) return;
    if (i == seen_count) snprintf(seen[seen_count++], sizeof seen[0], "%s", text);
    if (share > 0) seen_share[i] = share;
}
/* What the rest of the line gives as "share". */
static double share_of(const char *line) {
    const char *at = strstr(line, " share "), *end = strchr(line, '\n');
    return at && end && at < end ? atof(at + 7) : 0;
}
/* Lists the operator texts of one file; 0: it cannot be read. Names without parameters are texts, too, in README.md
   within `...`, in a manual where they begin in the first column of the table of operators. */
static int look_into(const char *path, int readme) {
    static char line[1 << 20];
    FILE *f = fopen(path, "rb");
    size_t len, in = 0, out = 0;
    int table = 0;
    if (!f) return 0;
    len = fread(line, 1, sizeof line - 1, f);
    fclose(f);
    if (len == sizeof line - 1) return 0;
    for (; in < len; in++) /* markdown writes \| in a table */
        if (!(line[in] == '\\' && line[in + 1] == '|')) line[out++] = line[in];
    line[len = out] = 0;
    for (size_t i = 0, start = 0; i < len;) { /* start: of the line */
        char text[80];
        size_t many = 0, from = i, first;
        if (line[i] == '\n') start = i + 1;
        if (i == start && !strncmp(line + i, "     text                    bits", 33)) table = 1;
        if (i == start && !strncmp(line + i, "   Codes for indices", 20)) table = 0;
        if (!is_text(line[i])) {
            i++;
            continue;
        }
        while (is_text(line[i]) && many < sizeof text - 1) {
            text[many++] = line[i++];
            /* an operator that goes on in the next line */
            if (text[many - 1] == '|' && line[i] == '\n')
                while (isspace((unsigned char)line[i])) i++;
        }
        while (many && strchr(".:|", text[many - 1])) many--;
        text[many] = 0;
        first = strcspn(text, ":|[");
        if (!is_name(text, first)) continue;
        if (text[first] || (readme ? from && line[from - 1] == '`' && line[i] == '`' : table && from - start < 29))
            found(text, table && from - start < 29 ? share_of(line + i) : 0);
    }
    return 1;
}

static const recipe *row_of(const char *text) {
    for (int i = 0; i < RECIPES; i++)
        if (!strcmp(recipes[i].text, text)) return &recipes[i];
    return NULL;
}
TEST every_text_is_measured(void) {
    DIR *src = opendir("src");
    struct dirent *d;
    int files = 0, missing = 0;
    ASSERTm("run this from the top of the tree, which has src/ and README.md", src && look_into("README.md", 1));
    while ((d = readdir(src)) != NULL) {
        char path[300];
        snprintf(path, sizeof path, "src/%.200s/manual.h", d->d_name);
        files += look_into(path, 0);
        snprintf(path, sizeof path, "src/%.200s/api.h", d->d_name);
        files += look_into(path, 0);
    }
    closedir(src);
    ASSERTm("manual.h and api.h of four headers", files >= 8);
    for (int i = 0; i < seen_count; i++) {
        const recipe *r = row_of(seen[i]);
        cg_op op;
        if (r && seen_share[i] > 0 && fabs(seen_share[i] - r->of_selected) > 0.0051) {
            printf("  share %g is printed, %g measured: %s\n", seen_share[i], r->of_selected, seen[i]);
            missing++;
        }
        if (r) continue;
        /* README lists names that say nothing by themselves */
        if (!strpbrk(seen[i], ":|[") && cg_op_parse(&op, seen[i]) != CG_OK) continue;
        printf("  printed, but not in tests/recipes.h: %s\n", seen[i]);
        missing++;
    }
    for (int i = 0; i < RECIPES; i++) {
        int there = 0;
        for (int j = 0; j < seen_count; j++) there |= !strcmp(seen[j], recipes[i].text);
        if (!there) printf("  in tests/recipes.h, but printed nowhere: %s\n", recipes[i].text);
        missing += !there;
    }
    ASSERT_EQm("texts without a row, rows without a text, or another share", 0, missing);
    PASS();
}

/* ---- what they keep ---- */

static float vectors[2][N], aux[N];

/* The rows of a matrix differ in size, as layers and neurons do; a value has the tail t^-4 of stochastic gradients. */
static void make_vectors(void) {
    uint64_t state = 4711;
    for (int row = 0; row < SIDE; row++) {
        const double scale = 1e-3 * exp(ref_normal(&state));
        for (int i = row * SIDE; i < (row + 1) * SIDE; i++)
            vectors[HEAVY][i] = (float)(scale * ref_normal(&state) / sqrt(sqrt(ref_uniform(&state))));
    }
    for (int i = 0; i < N; i++) vectors[NORMAL][i] = (float)(1e-3 * ref_normal(&state));
}
/* y = D(C(x)); 0: failed */
static int image(const cg_op *op, const cg_tag *tag, const cg_extra *extra, const float *x, size_t n, float *y) {
    ops_packet pk = ops_pack_cap(op, tag, extra, x, n, cg_bound(op, n));
    const int ok = pk.status == CG_OK && cg_decode(extra, pk.p, pk.len, 1.0f, 0.0f, y, n) == CG_OK;
    free(pk.p);
    return ok;
}
static double difference(const float *x, const float *y, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += ((double)x[i] - (double)y[i]) * ((double)x[i] - (double)y[i]);
    return sum;
}
static int about(double got, double want) { return fabs(got - want) <= 0.03 * want + EXACT; }

TEST keeps(const recipe *r) {
    static float y[N], selected[N], zero[N];
    const char *text = r->run ? r->run : r->text;
    const float *x = vectors[r->on];
    double error = 0, of_selected = 0;
    cg_extra extra = CG_ZERO;
    ops_packet support;
    size_t n = N;
    cg_op op, selection;
    support.p = NULL;
    ASSERT_EQm(text, CG_OK, cg_op_parse(&op, text));
    if (op.quantize.id >= CG_QUANTIZE_USER) PASS(); /* as its codec says */
    if (op.transform.id == CG_TRANSFORM_LOWRANK || op.transform.id == CG_TRANSFORM_ATOMO)
        n = (size_t)op.transform.size * (size_t)op.transform.value;
    ASSERTm(text, n <= N);
    if (op.select.id == CG_SELECT_BINS || op.select.id == CG_SELECT_VARIANCE) {
        for (size_t i = 0; i < n; i++) /* the gradient is half of x; a variance that has nothing to do with x */
            aux[i] = op.select.id == CG_SELECT_BINS ? 0.5f * x[i] : fabsf(x[i] * x[i * 7919 % n]);
        extra.aux = aux;
    }
    if (op.select.id == CG_SELECT_GIVEN) {
        const cg_op topk = cg_topk(0.1f);
        support = ops_pack(&topk, NULL, x, n);
        extra.support = support.p;
        extra.support_len = support.len;
    }
    selection = op;
    memset(&selection.quantize, 0, sizeof selection.quantize);
    selection.code.arg = 0;
    for (uint64_t t = 0; t < TAGS; t++) {
        cg_tag tag = { 42, t, 1, 0 };
        ASSERTm(text, image(&op, &tag, &extra, x, n, y));
        error += difference(x, y, n) / difference(x, zero, n) / TAGS;
        if (!op.select.id || !op.quantize.id) continue;
        ASSERTm(text, image(&selection, &tag, &extra, x, n, selected));
        of_selected += (1 - difference(selected, y, n) / difference(selected, zero, n)) / TAGS;
    }
    free(support.p);
    snprintf(note, sizeof note, "%s (%s): error %.4g, not %.4g; at most %.4g; of what it selects %.4g, not %.4g",
        r->text, text, error, r->error, r->claim, of_selected, r->of_selected);
    ASSERTm(note, about(error, r->error) && error <= r->claim);
    ASSERTm(note, about(of_selected, r->of_selected));
    PASS();
}

/* The recipes of compgrad_ef.h, on vectors of one size as well, and for several chunks: what a selection has found must
   not be lost by the quantizer after it. */
TEST keeps_what_it_selects(const char *text, vector on, double least) {
    static float y[N], selected[N], zero[N];
    const float *x = vectors[on];
    cg_extra none = CG_ZERO;
    cg_op op, selection;
    double share;
    ASSERT_EQm(text, CG_OK, cg_op_parse(&op, text));
    selection = op;
    memset(&selection.quantize, 0, sizeof selection.quantize);
    ASSERTm(text, image(&op, NULL, &none, x, N, y) && image(&selection, NULL, &none, x, N, selected));
    share = 1 - difference(selected, y, N) / difference(selected, zero, N);
    snprintf(note, sizeof note, "%s keeps %.4f of what it selects", text, share);
    ASSERTm(note, share >= least);
    PASS();
}

GREATEST_MAIN_DEFS();

int main(int argc, char **argv) {
    GREATEST_MAIN_BEGIN();
    make_vectors();
    RUN_TEST(every_text_is_measured);
    for (int i = 0; i < RECIPES; i++) RUN_TESTp(keeps, &recipes[i]);
    for (vector on = HEAVY; on <= NORMAL; on = (vector)(on + 1)) {
        RUN_TESTp(keeps_what_it_selects, "chunked:4096:0.01|absmax:4:64:nearest", on, 0.95);
        RUN_TESTp(keeps_what_it_selects, "chunked:1024:0.02|absmax:4:64:nearest", on, 0.95);
        RUN_TESTp(keeps_what_it_selects, "chunked:64:0.1|absmax:4:64:nearest", on, 0.95);
    }
    GREATEST_MAIN_END();
}
