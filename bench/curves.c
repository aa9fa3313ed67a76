/* cc -O2 -I. bench/curves.c -o curves -lm && ./curves --help        (or: make curves)

   How much error at how many bits: every operator on normal and Laplace vectors and on gradients that the trainer has
   dumped, beside theory's curve for the normal distribution and the ideal scalar quantizer with one step for all values
   and an ideal code for each value by itself, which is computed for the vector at hand. The squared error is a share
   of |x|^2; bits are those of the packet without its header. zfp and SZ3 are asked where they are installed. */

#define _POSIX_C_SOURCE 200809L
#define COMPGRAD_IMPLEMENTATION
#include "compgrad.h"
#include "plot.h"

#include <dirent.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef CURVES_ZFP
#  include <zfp.h>
#endif

enum { MOST_POINTS = 80, MOST_VECTORS = 24, MOST_FAMILIES = 120, DRAWS = 3 };

/* An operator with one of its parameters at several values, which stands at the %; @ is the length of the vector, and
   ~ the sides of the most square matrix of it. along: what lies between two values can be had, too. */
typedef struct family {
    const char *text, *values;
    int along;
    const char *note;
} family;
static const family families[] = {
    /* quantizers */
    { "rate:%", "0.005 0.01 0.02 0.05 0.1 0.2 0.5 1 2 3 4 6 8", 1, NULL },
    { "rate:%:unbiased", "0.05 0.1 0.2 0.5 1 2 4 8", 1, NULL },
    { "step:%", "0.1 0.3 1 3", 1, NULL },
    { "step:%:unbiased", "0.1 0.3 1", 1, NULL },
    { "dense", "", 0, NULL },
    { "huffman", "", 0, NULL },
    { "f16", "", 0, NULL },
    { "bf16", "", 0, NULL },
    { "f16:stochastic", "", 0, NULL },
    { "bf16:stochastic", "", 0, NULL },
    { "bf16|huffman", "", 0, NULL },
    { "sign", "", 0, NULL },
    { "efsign", "", 0, NULL },
    { "onebit:%", "256 1024 4096", 0, NULL },
    { "absmax:%:512", "2 3 4 5 6 7 8", 0, NULL },
    { "absmax:%:512:nearest", "2 3 4 5 6 7 8", 0, NULL },
    { "absmax:%:512:nearest|huffman", "2 3 4 5 6 7 8", 0, NULL },
    { "absmax:%:@:nearest|gamma", "2 3 4 5 6 7 8", 0, NULL },
    { "minmax:%:512", "1 2 3 4 5 6 7 8", 0, NULL },
    { "minmax:%:512:nearest", "1 2 3 4 5 6 7 8", 0, NULL },
    { "klevel:%:512", "2 3 4 5 6 7 8", 0, NULL },
    { "terngrad", "", 0, NULL },
    { "terngrad:clip", "", 0, NULL },
    { "clip:2.5|terngrad|gamma", "", 0, NULL },
    { "clip:%|absmax:4:512:nearest", "1.5 2 2.5 3 4", 0, NULL },
    { "levels:%:512", "1 3 7 15 31 63 127", 0, NULL },
    { "qsgd:%", "1 4 16 64 127", 0, NULL },
    { "flexpoint:%:512", "2 3 4 5 6 7 8", 0, NULL },
    { "flex16:512", "", 0, NULL },
    { "threelc:%", "1 1.5 1.9", 1, NULL },
    { "strom:%", "0.5 1 2", 1, NULL }, /* of the root mean square */
    { "natural", "", 0, NULL },
    { "natural:nearest", "", 0, NULL },
    { "dither:%:512:max", "2 3 4 5 6", 0, NULL },
    { "dynamic8:256", "", 0, NULL },
    { "e4m3:512", "", 0, NULL },
    { "e4m3:512:stochastic", "", 0, NULL },
    { "e5m2:512", "", 0, NULL },
    { "e5m2:512:stochastic", "", 0, NULL },
    { "mxfp4", "", 0, NULL },
    { "mxfp4:stochastic", "", 0, NULL },
    { "nvfp4", "", 0, NULL },
    { "nvfp4:stochastic", "", 0, NULL },
    { "mxe4m3", "", 0, NULL },
    { "mxe4m3:stochastic", "", 0, NULL },
    { "mxe5m2", "", 0, NULL },
    { "mxe5m2:stochastic", "", 0, NULL },
    { "nf4:%", "32 64 256", 0, NULL },
    { "nf4:%:stochastic", "32 64 256", 0, NULL },
    { "eden:%", "0.1 0.25 0.5 1 2 3 4", 1, NULL },
    { "srq:%", "1 2 4 8", 0, NULL },
    { "rotate:3|absmax:%:512:nearest", "2 3 4 6 8", 0, NULL },
    { "dct|absmax:%:512:nearest", "2 4 8", 0, NULL },
    /* selections */
    { "topk:%", "0.001 0.003 0.01 0.03 0.1 0.3 1", 1, NULL },
    { "topk:%|f16", "0.001 0.003 0.01 0.03 0.1 0.3", 1, NULL },
    { "topk:%|absmax:4:512:nearest", "0.001 0.003 0.01 0.03 0.1 0.3", 1, NULL },
    { "topk:%|absmax:4:512:nearest|golomb|huffman", "0.001 0.003 0.01 0.03 0.1 0.3", 1, NULL },
    { "topk:0.01|geometric:%", "1 2 3 4", 0, NULL },
    { "topk:0.1|geometric:%", "1 2 3 4", 0, NULL },
    { "topk:0.01|rate:%", "1 2 3 4 6 8", 1, NULL },
    { "topk:0.1|rate:%", "1 2 3 4 6 8", 1, NULL },
    { "topk:%|rate:4", "0.001 0.003 0.01 0.03 0.1 0.3", 1, NULL },
    { "topk:%|rate:4|golomb", "0.001 0.003 0.01 0.03 0.1 0.3", 1, NULL },
    { "mstopk:%", "0.003 0.01 0.1", 1, NULL },
    { "dgc:%", "0.003 0.01 0.1", 1, NULL },
    { "sidco:%", "0.003 0.01 0.1", 1, NULL },
    { "threshold:%", "1 2 4", 1, NULL }, /* of the root mean square */
    { "chunked:64:%", "0.02 0.05 0.1 0.3", 1, NULL },
    { "chunked:4096:%", "0.001 0.01 0.1", 1, NULL },
    { "sides:%", "0.01 0.1", 1, NULL },
    { "stc:%", "0.001 0.003 0.01 0.03 0.1 0.3", 1, NULL },
    { "sbc:%", "0.001 0.01 0.1", 1, NULL },
    { "adaq:%", "0.001 0.01 0.1", 1, NULL },
    { "qsparse:%:127", "0.001 0.01 0.1", 1, NULL },
    { "cocktail:0.1:%:4", "0.01 0.1 0.3", 1, NULL },
    { "demo_dct:%", "0.02 0.1 0.3", 1, NULL },
    { "wangni:%", "0.01 0.03 0.1 0.3", 1, NULL },
    { "wangni:%|efsign|golomb", "0.01 0.03 0.1 0.3", 1, NULL },
    { "wangnivar:%", "0.1 0.5 2", 1, NULL },
    { "blocks:%", "16 256", 0, NULL },
    /* samples */
    { "randk:%", "0.01 0.1 0.3", 1, NULL },
    { "randk:%:unscaled", "0.01 0.1 0.3", 1, NULL },
    { "permk:%", "2 8", 0, NULL },
    { "cyclic:%:unscaled", "2 8 64", 0, NULL },
    /* matrices */
    { "lowrank:%:~", "1 2 4 8 16", 0, NULL },
    { "atomo:%:~", "1 4 16", 0, NULL },
};
enum { FAMILIES = sizeof families / sizeof *families };

typedef struct point {
    double bits, error;
} point;
typedef struct curve {
    point at[MOST_POINTS];
    int n, unbiased;
} curve;
typedef struct vector {
    char name[90];
    float *x;
    size_t n;
    double energy;
    curve of[MOST_FAMILIES];
    point ideal[MOST_POINTS];
    int ideal_n;
} vector;
static vector vectors[MOST_VECTORS];
static int vector_count;

static void *room(size_t bytes) {
    void *p = malloc(bytes ? bytes : 1);
    if (!p) fprintf(stderr, "curves: out of memory\n"), exit(2);
    return p;
}
static uint64_t lcg_state = 1;
static double uniform(void) {
    lcg_state = lcg_state * 6364136223846793005u + 1442695040888963407u;
    return ((double)(lcg_state >> 32) + 0.5) * 0x1p-32;
}
static vector *vector_add(const char *name, size_t n) {
    vector *v = &vectors[vector_count++];
    if (vector_count > MOST_VECTORS) fprintf(stderr, "curves: more than %d vectors\n", MOST_VECTORS), exit(2);
    snprintf(v->name, sizeof v->name, "%s", name);
    v->x = (float *)room(4 * n);
    v->n = n;
    return v;
}
static void made(const char *name, size_t n, int laplace) {
    vector *v = vector_add(name, n);
    for (size_t i = 0; i < n; i++) {
        const double u = uniform(), w = uniform();
        v->x[i] =
            (float)(1e-3 * (laplace ? (w < 0.5 ? log(u) : -log(u)) : sqrt(-2 * log(u)) * cos(6.283185307179586 * w)));
    }
}

/* ---- theory ---- */

/* The entropy in bits of n values with these counts. */
static double entropy(const size_t *count, size_t levels, size_t n) {
    double bits = 0;
    for (size_t i = 0; i < levels; i++)
        if (count[i]) bits -= (double)count[i] / (double)n * log2((double)count[i] / (double)n);
    return bits;
}
/* Level trunc(|x|/step + r) with a sign, each level decoded as the mean of what it stands for, and every level with as
   many bits as its frequency says: no table, no rounding up. */
static point scalar_quantizer(const vector *v, double step, double r) {
    enum { LEVELS = 1 << 16 };
    static size_t count[2 * LEVELS];
    static double sum[LEVELS], squares[LEVELS];
    size_t levels = 1;
    double error = 0;
    point p;
    memset(count, 0, sizeof count);
    memset(sum, 0, sizeof sum);
    memset(squares, 0, sizeof squares);
    for (size_t i = 0; i < v->n; i++) {
        const double m = fabs((double)v->x[i]), q = m / step + r;
        const size_t level = q < LEVELS - 1 ? (size_t)q : LEVELS - 1;
        count[2 * level + (level && v->x[i] < 0)]++;
        sum[level] += m;
        squares[level] += m * m;
        if (level >= levels) levels = level + 1;
    }
    for (size_t l = 0; l < levels; l++) {
        const double many = (double)(count[2 * l] + count[2 * l + 1]);
        error += l && many > 0 ? squares[l] - sum[l] * sum[l] / many : squares[l];
    }
    p.bits = entropy(count, 2 * levels, v->n);
    p.error = error / v->energy;
    return p;
}
/* The lowest of dead zones, step by step. */
static void ideal(vector *v) {
    const double rms = sqrt(v->energy / (double)v->n);
    for (int i = 0; i < 46; i++) {
        const double step = rms * exp2(5.5 - i * 0.3);
        point best = { 0, 0 };
        for (int r = 0; r < 6; r++) {
            const point p = scalar_quantizer(v, step, 0.5 - 0.06 * r);
            /* on one scale: a bit is worth a factor of 4 in the error, and more where there are few bits */
            if (!r || log(p.error) + 2 * log(2.0) * p.bits < log(best.error) + 2 * log(2.0) * best.bits) best = p;
        }
        if (best.bits > 1e-3 && best.bits < 14 && best.error > 1e-9) v->ideal[v->ideal_n++] = best;
    }
}
/* The bits of a curve with ascending bits at this error, between its points on logarithmic scales; -1: it has none. */
static double bits_at(const point *p, int n, double error) {
    for (int i = 0; i + 1 < n; i++)
        if (p[i].error >= error && p[i + 1].error <= error && p[i].error > p[i + 1].error && p[i + 1].error > 0) {
            const double t = log(p[i].error / error) / log(p[i].error / p[i + 1].error);
            return p[i].bits * pow(p[i + 1].bits / p[i].bits, t);
        }
    return -1;
}

/* ---- operators ---- */

/* The text of a family at one value for a vector; 0: it does not suit it. */
static int spelled(const family *f, const char *value, const vector *v, char *text, size_t cap) {
    const int of_rms = !strncmp(f->text, "strom", 5) || !strncmp(f->text, "threshold", 9);
    size_t rows = 1, at = 0;
    for (size_t d = 1; d * d <= v->n; d++)
        if (v->n % d == 0) rows = d;
    for (const char *s = f->text; *s && at + 40 < cap; s++) {
        if (*s == '%' && of_rms)
            at += (size_t)snprintf(text + at, cap - at, "%g", atof(value) * sqrt(v->energy / (double)v->n));
        else if (*s == '%') at += (size_t)snprintf(text + at, cap - at, "%s", value);
        else if (*s == '@') at += (size_t)snprintf(text + at, cap - at, "%lu", (unsigned long)v->n);
        else if (*s == '~') {
            if (rows < 64 || (strstr(f->text, "atomo") && rows > 512))
                return 0; /* no matrix worth the name, or too slow */
            at += (size_t)snprintf(text + at, cap - at, "%lu:%lu", (unsigned long)rows, (unsigned long)(v->n / rows));
        } else text[at++] = *s;
    }
    text[at] = 0;
    return 1;
}
static int by_bits(const void *a, const void *b) {
    const point *p = (const point *)a, *q = (const point *)b;
    return (p->bits > q->bits) - (p->bits < q->bits);
}
static void measure(vector *v, int which, FILE *csv) {
    const family *f = &families[which];
    curve *c = &v->of[which];
    char values[200], text[200], *value, *rest;
    snprintf(values, sizeof values, "%s", *f->values ? f->values : "0");
    for (value = strtok_r(values, " ", &rest); value; value = strtok_r(NULL, " ", &rest)) {
        cg_op op;
        cg_about about;
        point p = { 0, 0 };
        size_t cap, need, len;
        float *y;
        void *packet, *scratch;
        char why[256];
        if (!spelled(f, value, v, text, sizeof text)) continue;
        if (cg_op_parse_why(&op, text, why, sizeof why) != CG_OK || cg_op_about(&op, v->n, &about) != CG_OK)
            fprintf(stderr, "curves: %s: %s\n", text, why), exit(2);
        c->unbiased = about.unbiased && (c->unbiased || !c->n);
        cap = cg_bound(&op, v->n);
        need = cg_scratch(&op, v->n);
        packet = room(cap);
        scratch = room(need);
        y = (float *)room(4 * v->n);
        for (int t = 0; t < DRAWS; t++) {
            const cg_tag tag = { 1, (uint64_t)t, 2, 3 };
            if (op.sample.id == CG_SAMPLE_PERMK && tag.rank >= op.sample.size) op.sample.size = 4;
            if (cg_compress(&op, &tag, v->x, v->n, packet, cap, &len, need ? scratch : NULL, need) != CG_OK ||
                cg_decompress(packet, len, y, v->n) != CG_OK)
                fprintf(stderr, "curves: %s does not compress %s\n", text, v->name), exit(2);
            for (size_t i = 0; i < v->n; i++) {
                const double e = (double)y[i] - (double)v->x[i];
                p.error += e * e / v->energy / DRAWS;
            }
            p.bits += 8.0 * (double)(len - CG_HEADER_BYTES) / (double)v->n / DRAWS;
        }
        free(packet);
        free(scratch);
        free(y);
        c->at[c->n++] = p;
        fprintf(csv, "%s,%s,%s,%.6g,%.6g\n", v->name, f->text, text, p.bits, p.error);
    }
    qsort(c->at, (size_t)c->n, sizeof *c->at, by_bits);
}

/* ---- others ---- */

#ifdef CURVES_ZFP
static curve zfp(const vector *v) { /* as a line of values, with a bound of the error */
    curve c;
    float *y = (float *)room(4 * v->n);
    memset(&c, 0, sizeof c);
    for (int i = 0; i < 14; i++) {
        zfp_field *field = zfp_field_1d(v->x, zfp_type_float, v->n), *to = zfp_field_1d(y, zfp_type_float, v->n);
        zfp_stream *z = zfp_stream_open(NULL);
        size_t cap, bytes;
        void *buffer;
        bitstream *bits;
        point p = { 0, 0 };
        zfp_stream_set_accuracy(z, sqrt(v->energy / (double)v->n) * exp2(4 - i));
        cap = zfp_stream_maximum_size(z, field);
        buffer = room(cap);
        bits = stream_open(buffer, cap);
        zfp_stream_set_bit_stream(z, bits);
        zfp_stream_rewind(z);
        bytes = zfp_compress(z, field);
        zfp_stream_rewind(z);
        if (!bytes || !zfp_decompress(z, to)) fprintf(stderr, "curves: zfp failed\n"), exit(2);
        for (size_t j = 0; j < v->n; j++) {
            const double e = (double)y[j] - (double)v->x[j];
            p.error += e * e / v->energy;
        }
        p.bits = 8.0 * (double)bytes / (double)v->n;
        c.at[c.n++] = p;
        zfp_stream_close(z);
        stream_close(bits);
        zfp_field_free(field);
        zfp_field_free(to);
        free(buffer);
    }
    free(y);
    return c;
}
#endif
/* SZ3 by its program: sz3 -f -i FILE -z FILE -o FILE -1 N -M ABS BOUND. */
static int sz3_is_here(void) { return system("command -v sz3 >/dev/null 2>&1") == 0; }
static curve sz3(const vector *v) {
    char folder[] = "/tmp/curvesXXXXXX", path[3][64], command[400];
    curve c;
    float *y = (float *)room(4 * v->n);
    FILE *f;
    memset(&c, 0, sizeof c);
    if (!mkdtemp(folder)) fprintf(stderr, "curves: no folder for sz3\n"), exit(2);
    for (int i = 0; i < 3; i++) snprintf(path[i], sizeof path[i], "%s/%c", folder, "xzy"[i]);
    f = fopen(path[0], "wb");
    if (!f || fwrite(v->x, 4, v->n, f) != v->n || fclose(f)) fprintf(stderr, "curves: cannot write for sz3\n"), exit(2);
    for (int i = 0; i < 14; i++) {
        point p = { 0, 0 };
        long bytes;
        snprintf(command, sizeof command, "sz3 -f -i %s -z %s -o %s -1 %lu -M ABS %.6g >/dev/null 2>&1", path[0],
            path[1], path[2], (unsigned long)v->n, sqrt(v->energy / (double)v->n) * exp2(3 - i));
        if (system(command)) break;
        f = fopen(path[2], "rb");
        if (!f || fread(y, 4, v->n, f) != v->n) break;
        fclose(f);
        f = fopen(path[1], "rb");
        if (!f || fseek(f, 0, SEEK_END) || (bytes = ftell(f)) <= 0) break;
        fclose(f);
        for (size_t j = 0; j < v->n; j++) {
            const double e = (double)y[j] - (double)v->x[j];
            p.error += e * e / v->energy;
        }
        p.bits = 8.0 * (double)bytes / (double)v->n;
        c.at[c.n++] = p;
    }
    if (c.n < 14) fprintf(stderr, "curves: sz3 failed after %d bounds\n", c.n);
    for (int i = 0; i < 3; i++) remove(path[i]);
    rmdir(folder);
    free(y);
    return c;
}

/* ---- who is dominated ---- */

/* Does some other family have an error as small with 2 % fewer bits, or an error 2 % smaller with as few? Between two
   points of a family whose parameter is a real number, anything can be had. unbiased: only of such. */
static const char *better(const vector *v, int which, const point *p, int unbiased) {
    for (int f = 0; f < FAMILIES; f++) {
        const curve *c = &v->of[f];
        if (f == which || (unbiased && !c->unbiased)) continue;
        for (int i = 0; i < c->n; i++) {
            const double b = c->at[i].bits / p->bits, e = c->at[i].error / fmax(p->error, 1e-30);
            if ((b <= 0.98 && e <= 1.0) || (b <= 1.0 && e <= 0.98)) return families[f].text;
        }
        if (families[f].along && p->error > 0) {
            const double b = bits_at(c->at, c->n, p->error);
            if (b > 0 && b <= 0.98 * p->bits) return families[f].text;
        }
    }
    return NULL;
}
typedef struct verdict {
    const char *by, *by_unbiased; /* who is better at most of the points that have somebody; NULL: some point has not */
    double least, most;           /* bits over those of the ideal quantizer */
} verdict;
static const char *often(const char *const *who, int n) {
    const char *best = NULL;
    int most = 0;
    for (int i = 0; i < n; i++) {
        int same = 0;
        for (int j = 0; j < n; j++) same += who[i] == who[j];
        if (same > most) most = same, best = who[i];
    }
    return best;
}
static verdict judge(int f, int from, int to) {
    static const char *all[MOST_VECTORS * MOST_POINTS], *unbiased[MOST_VECTORS * MOST_POINTS];
    verdict d = { NULL, NULL, 1e9, 0 };
    int n = 0, free_points = 0, free_unbiased = 0;
    for (int i = from; i < to; i++)
        for (int j = 0; j < vectors[i].of[f].n; j++) {
            const point *p = &vectors[i].of[f].at[j];
            const double b = bits_at(vectors[i].ideal, vectors[i].ideal_n, p->error);
            all[n] = better(&vectors[i], f, p, 0);
            unbiased[n] = better(&vectors[i], f, p, 1);
            free_points += !all[n];
            free_unbiased += !unbiased[n];
            n++;
            if (b > 0) d.least = fmin(d.least, p->bits / b), d.most = fmax(d.most, p->bits / b);
        }
    if (n && !free_points) d.by = often(all, n);
    if (n && !free_unbiased) d.by_unbiased = often(unbiased, n);
    return d;
}
/* A family's text in a cell of a table. */
static void named(FILE *out, const char *s) {
    fputc('`', out);
    for (; *s; s++)
        if (*s == '|') fputs("\\|", out);
        else if (*s == '%') fputs("…", out);
        else if (*s == '~') fputs("rows:cols", out);
        else fputc(*s == '@' ? 'n' : *s, out);
    fputc('`', out);
}
static void table(FILE *out) {
    int real = 0;
    while (real < vector_count && strncmp(vectors[real].name, "the ", 4)) real++;
    fprintf(out, "| operator | | normal, Laplace | gradients | dominated everywhere by |\n|---|---|---|---|---|\n");
    for (int f = 0; f < FAMILIES; f++) {
        const verdict made_up = judge(f, 0, real), found = judge(f, real, vector_count),
                      all = judge(f, 0, vector_count);
        char cell[2][40];
        for (int i = 0; i < 2; i++) {
            const verdict *d = i ? &found : &made_up;
            if (d->most <= 0) strcpy(cell[i], "");
            else if (d->most < 1.05 * d->least) snprintf(cell[i], sizeof cell[i], "%.2fx", d->least);
            else snprintf(cell[i], sizeof cell[i], "%.2fx to %.3gx", d->least, d->most);
        }
        fprintf(out, "| ");
        named(out, families[f].text);
        fprintf(out, " | %s | %s | %s | ", vectors[0].of[f].unbiased ? "unbiased" : "", cell[0], cell[1]);
        if (all.by) {
            const int company = vectors[0].of[f].unbiased && all.by_unbiased != NULL;
            named(out, company ? all.by_unbiased : all.by);
            if (vectors[0].of[f].unbiased && !company) fprintf(out, ", not by unbiased ones");
        }
        fprintf(out, " |\n");
    }
}

/* ---- never worse ---- */

/* Bits and error of an operator on v, with one tag. */
static point once(const vector *v, const char *text) {
    const cg_tag tag = { 1, 0, 2, 3 };
    point p = { 0, 0 };
    cg_op op;
    size_t cap, need, len;
    void *packet, *scratch;
    float *y = (float *)room(4 * v->n);
    if (cg_op_parse(&op, text) != CG_OK) fprintf(stderr, "curves: %s does not parse\n", text), exit(2);
    packet = room(cap = cg_bound(&op, v->n));
    scratch = room(need = cg_scratch(&op, v->n));
    if (cg_compress(&op, &tag, v->x, v->n, packet, cap, &len, need ? scratch : NULL, need) != CG_OK ||
        cg_decompress(packet, len, y, v->n) != CG_OK)
        fprintf(stderr, "curves: %s does not compress %s\n", text, v->name), exit(2);
    for (size_t i = 0; i < v->n; i++) {
        const double e = (double)y[i] - (double)v->x[i];
        p.error += e * e / v->energy;
    }
    p.bits = 8.0 * (double)(len - CG_HEADER_BYTES) / (double)v->n;
    free(packet);
    free(scratch);
    free(y);
    return p;
}
/* At the error of absmax:b:n:nearest|gamma, rate takes at most `share` of its bits; returns how often it does not. */
static int worse(const vector *v, double share) {
    int bad = 0;
    for (int b = 2; b <= 8; b++) {
        char text[80];
        point old, at = { 0, 0 };
        double lo = log(0.005), hi = log(8.0);
        snprintf(text, sizeof text, "absmax:%d:%lu:nearest|gamma", b, (unsigned long)v->n);
        old = once(v, text);
        for (int i = 0; i < 12; i++) { /* the fewest bits whose error is no larger */
            const double middle = (lo + hi) / 2;
            point p;
            snprintf(text, sizeof text, "rate:%.6g", exp(middle));
            p = once(v, text);
            if (p.error <= old.error) hi = middle, at = p;
            else lo = middle;
        }
        printf("%-40s absmax:%d %8.4f bits, error %.3g; rate %8.4f bits, error %.3g: %.2f%s\n", v->name, b, old.bits,
            old.error, at.bits, at.error, at.bits / old.bits,
            at.bits > 0 && at.bits <= share * old.bits ? "" : "  TOO MANY");
        bad += !(at.bits > 0 && at.bits <= share * old.bits);
    }
    return bad;
}

/* ---- pictures ---- */

static void draw(const vector *v, const char *prefix, const curve *others, const char *const *names, int count) {
    static double x[MOST_FAMILIES + 8][MOST_POINTS], y[MOST_FAMILIES + 8][MOST_POINTS];
    static char shown[MOST_FAMILIES][64];
    static plot_series s[MOST_FAMILIES + 8];
    char path[400], title[160];
    plot p;
    FILE *f;
    int n = 0;
    memset(&p, 0, sizeof p);
    for (int i = 0; i < v->ideal_n; i++) x[n][i] = v->ideal[i].bits, y[n][i] = v->ideal[i].error;
    s[n].name = "ideal scalar quantizer", s[n].x = x[n], s[n].y = y[n], s[n].n = (size_t)v->ideal_n, s[n].group = 2;
    n++;
    for (int i = 0; i < 60; i++) x[n][i] = 0.003 * pow(3000, i / 59.0), y[n][i] = exp2(-2 * x[n][i]);
    s[n].name = "normal: 2^-2R", s[n].x = x[n], s[n].y = y[n], s[n].n = 60, s[n].group = 2, n++;
    for (int o = 0; o < count; o++, n++) {
        for (int i = 0; i < others[o].n; i++) x[n][i] = others[o].at[i].bits, y[n][i] = others[o].at[i].error;
        s[n].name = names[o], s[n].x = x[n], s[n].y = y[n], s[n].n = (size_t)others[o].n, s[n].group = 2;
    }
    for (int o = 0; o < FAMILIES; o++, n++) {
        char *to = shown[o];
        for (const char *t = families[o].text; *t && to < shown[o] + 60; t++)
            if (*t == '%') to += sprintf(to, "…");
            else *to++ = *t == '@' ? 'n' : *t;
        *to = 0;
        for (int i = 0; i < v->of[o].n; i++) x[n][i] = v->of[o].at[i].bits, y[n][i] = v->of[o].at[i].error;
        s[n].name = shown[o], s[n].x = x[n], s[n].y = y[n], s[n].n = (size_t)v->of[o].n;
        s[n].group = o > 0; /* the first in bold */
    }
    snprintf(title, sizeof title, "Error and bits: %.80s", v->name);
    p.title = title;
    p.subtitle = "bits of an element, without the header, and squared error as a share of |x|^2; lower and to the left "
                 "is better";
    p.x = "bits of an element";
    p.y = "|D - x|^2 / |x|^2";
    p.log_x = p.log_y = 1;
    p.y_low = 1e-6;
    p.y_high = 3;
    p.marks = 1;
    p.dashed = "theory, and other compressors";
    snprintf(path, sizeof path, "%.300s-%.63s.svg", prefix, strncmp(v->name, "the ", 4) ? v->name : v->name + 16);
    for (char *c = path; *c; c++)
        if (*c == ' ') *c = '-';
    f = fopen(path, "w");
    if (!f || plot_svg(f, &p, s, (size_t)n) < 0 || fclose(f))
        fprintf(stderr, "curves: cannot write %s\n", path), exit(2);
    printf("%s\n", path);
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }
/* Of every net the first, a middle and the last of the gradients in the folder. */
static void gradients(const char *folder) {
    char *names[400], path[600];
    int n = 0;
    DIR *dir = opendir(folder);
    struct dirent *entry;
    while (dir && n < 400 && (entry = readdir(dir)) != NULL) {
        const size_t len = strlen(entry->d_name);
        if (len > 4 && !strcmp(entry->d_name + len - 4, ".f32")) names[n++] = strdup(entry->d_name);
    }
    if (dir) closedir(dir);
    if (!n) fprintf(stderr, "curves: no *.f32 in %s; train --dump-gradients writes them\n", folder), exit(2);
    qsort(names, (size_t)n, sizeof *names, by_name);
    for (int i = 0, first = 0, end = 0; i < n; i++) {
        FILE *f;
        long bytes;
        const size_t net = strcspn(names[i], "-"); /* NET-epochE.f32 */
        if (i == end)
            for (first = i; end < n && !strncmp(names[end], names[i], net + 1);) end++;
        if (i != first && i != (first + end) / 2 && i != end - 1) {
            free(names[i]);
            continue;
        }
        char name[90];
        vector *v;
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        f = fopen(path, "rb");
        if (!f || fseek(f, 0, SEEK_END) || (bytes = ftell(f)) < 4 || bytes % 4 || fseek(f, 0, SEEK_SET))
            fprintf(stderr, "curves: cannot read %s\n", path), exit(2);
        snprintf(name, sizeof name, "the gradient of %.*s", (int)strcspn(names[i], "."), names[i]);
        v = vector_add(name, (size_t)bytes / 4);
        if (fread(v->x, 4, v->n, f) != v->n || fclose(f)) fprintf(stderr, "curves: cannot read %s\n", path), exit(2);
        free(names[i]);
    }
}

int main(int argc, char **argv) {
    const char *folder = NULL, *prefix = "bench/out/curves", *csv_path = "bench/out/curves.csv", *table_path = NULL;
    size_t n = 1 << 17;
    const char *names[2];
    FILE *csv, *out;
    static const char *const usage =
        "curves: bits and error of every operator, as SVG files and a table\n\n"
        "  --n N            length of the vectors that are made                     (131072)\n"
        "  --gradients DIR  also every *.f32 file in DIR; train --dump-gradients DIR writes them\n"
        "  --svg PREFIX     of the pictures' files                                  (bench/out/curves)\n"
        "  --csv FILE       all points                                              (bench/out/curves.csv)\n"
        "  --table FILE     the table, as Markdown                                  (stdout)\n"
        "  --never-worse S  instead: does rate take at most the share S of the bits of absmax:b:n:nearest|gamma, at\n"
        "                   its error, for b from 2 to 8, on each of the gradients?\n";
    double never_worse = 0;
    for (int a = 1; a < argc; a += 2) {
        const char *value = a + 1 < argc ? argv[a + 1] : "";
        if (!strcmp(argv[a], "--help")) return fputs(usage, stdout), 0;
        if (!strcmp(argv[a], "--n")) n = (size_t)strtoul(value, NULL, 0);
        else if (!strcmp(argv[a], "--gradients")) folder = value;
        else if (!strcmp(argv[a], "--svg")) prefix = value;
        else if (!strcmp(argv[a], "--csv")) csv_path = value;
        else if (!strcmp(argv[a], "--table")) table_path = value;
        else if (!strcmp(argv[a], "--never-worse")) never_worse = atof(value);
        else return fprintf(stderr, "curves: \"%s\" is not an option\n%s", argv[a], usage), 2;
    }
    if (n < 1024) return fprintf(stderr, "curves: --n takes a number from 1024 on\n"), 2;
    made("normal", n, 0);
    made("Laplace", n, 1);
    if (folder) gradients(folder);
    else fprintf(stderr, "curves: gradients SKIPPED: --gradients DIR gives them\n");
#ifndef CURVES_ZFP
    fprintf(stderr, "curves: zfp SKIPPED: it is not installed (Debian: libzfp-dev)\n");
#endif
    if (!sz3_is_here()) fprintf(stderr, "curves: SZ3 SKIPPED: there is no program sz3\n");
    if (never_worse > 0) {
        int bad = 0;
        for (int i = 2; i < vector_count; i++) {
            vector *v = &vectors[i];
            for (size_t j = 0; j < v->n; j++) v->energy += (double)v->x[j] * (double)v->x[j];
            bad += worse(v, never_worse);
        }
        printf("%d of %d take more\n", bad, 7 * (vector_count - 2));
        return bad != 0 || vector_count == 2;
    }
    csv = fopen(csv_path, "w");
    if (!csv) return fprintf(stderr, "curves: cannot write %s\n", csv_path), 2;
    fputs("vector,operator,text,bits,error\n", csv);
    for (int i = 0; i < vector_count; i++) {
        vector *v = &vectors[i];
        curve others[2];
        int count = 0;
        for (size_t j = 0; j < v->n; j++) v->energy += (double)v->x[j] * (double)v->x[j];
        if (!(v->energy > 0 && v->energy < 1e300))
            return fprintf(stderr, "curves: %s is zero or not finite\n", v->name), 2;
        ideal(v);
        for (int j = 0; j < v->ideal_n; j++)
            fprintf(csv, "%s,ideal,,%.6g,%.6g\n", v->name, v->ideal[j].bits, v->ideal[j].error);
        for (int f = 0; f < FAMILIES; f++) measure(v, f, csv);
#ifdef CURVES_ZFP
        others[count] = zfp(v);
        names[count++] = "zfp";
#endif
        if (sz3_is_here()) others[count] = sz3(v), names[count++] = "SZ3";
        for (int o = 0; o < count; o++)
            for (int j = 0; j < others[o].n; j++)
                fprintf(csv, "%s,%s,,%.6g,%.6g\n", v->name, names[o], others[o].at[j].bits, others[o].at[j].error);
        draw(v, prefix, others, names, count);
    }
    if (fclose(csv)) return fprintf(stderr, "curves: cannot write %s\n", csv_path), 2;
    out = table_path ? fopen(table_path, "w") : stdout;
    if (!out) return fprintf(stderr, "curves: cannot write %s\n", table_path), 2;
    table(out);
    return table_path && fclose(out) ? 2 : 0;
}
