/* plot.h: curves as SVG files, and as one HTML page with a table. No dependencies but the C library (-lm), one
   file:

     double x[] = {1e6, 2e6, 3e6}, y[] = {0.5, 0.8, 0.9};
     plot_series s[] = {{"dense", x, y, 3, 0}, {"topk", x, y, 3, 1}};
     plot p = {"Accuracy", "a small network", "bytes sent", "test accuracy", 1, 0, 0, 0, 1, NULL};
     FILE *f = fopen("accuracy.svg", "w");
     int bad = plot_svg(f, &p, s, 2);
     bad |= fclose(f);

   plot_svg and plot_html return 0, or 1 where a plot has no point that could be drawn (the file is valid and says
   so), or -1 where memory or the disk is full. Any text may be NULL. Text is UTF-8 and needs no escapes.

   Points that are NaN, infinite or beyond 1e300, and those that are not positive on a log axis, are left out and
   break the line. Beyond y_low..y_high curves are clipped and their label has an arrow. A curve of more than 400
   points is thinned to the extremes of narrow strips, so peaks stay. Colours go by the order of the series: pass
   the same order to each plot of a page, with n = 0 for what is missing. A page highlights together all that has
   one name: curves, labels and rows with that name as their first cell. Tick labels are 1-2-5; on an axis whose
   label contains "bytes" they are in k, M, G. The same input gives the same bytes, in any locale. */
#ifndef PLOT_H
#define PLOT_H

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct plot_series {
    const char *name;
    const double *x, *y;
    size_t n;
    /* 0 = reference, drawn bold in black; 1 = ordinary; 2 = what plot.dashed tells of, dashed; 3 = a variant of the
       series before it: its colour and mark, dashed */
    int group;
} plot_series;

typedef struct plot {
    const char *title, *subtitle, *x, *y;
    int log_x, log_y;
    double y_low, y_high; /* both 0 = from the data */
    int marks;            /* a mark at every point, not only at the end */
    const char *dashed;   /* what the curves of group 2 are, for the legend */
} plot;

typedef struct plot_page {
    const char *title, *intro; /* plain text, paragraphs separated by \n\n */
    const char *const *cells;  /* rows * cols texts, the first row is the head */
    size_t rows, cols;
    const char *after; /* like intro, below the table */
} plot_page;

enum { PLOT_POINTS_ = 400, PLOT_TICKS_ = 64, PLOT_WIDTH_ = 960, PLOT_COLOURS_ = 7, PLOT_NAME_ = 32 };
static const double plot_line_high_ = 17, plot_least_high_ = 420; /* of a label, of the plot */

typedef struct plot_axis_ {
    double low, high; /* of the data, or of their log10 */
    double from, to;  /* where these are on the paper */
    int log, bytes, count;
    double tick[PLOT_TICKS_];
    char text[PLOT_TICKS_][32]; /* "" = a minor tick */
} plot_axis_;
typedef struct plot_frame_ {
    plot_axis_ x, y;
    double height;
    int id;
} plot_frame_;
typedef struct plot_point_ {
    double x, y;
    size_t piece; /* of the line: there is a gap where this changes */
} plot_point_;
typedef struct plot_label_ {
    size_t series, size;
    /* the curve ends at x, want; the label is at `at`; size and sum are those of a block */
    double x, want, at, sum;
    int off; /* the end is above (1) or below (-1) the plot, or there is none (2) */
} plot_label_;

/* ---- text ---- */

/* Bytes of the character at s, 0 if it is no UTF-8 or nothing that XML allows. */
static size_t plot_char_(const char *s) {
    const unsigned char *u = (const unsigned char *)s;
    size_t n = u[0] < 0x80            ? 1
        : u[0] >= 0xc2 && u[0] < 0xe0 ? 2
        : u[0] >= 0xe0 && u[0] < 0xf0 ? 3
        : u[0] >= 0xf0 && u[0] < 0xf5 ? 4
                                      : 0,
           i;
    if (n == 1) return u[0] >= 0x20 ? u[0] != 0x7f : u[0] == '\n' || u[0] == '\t' || u[0] == '\r';
    for (i = 1; i < n; i++)
        if (u[i] >> 6 != 2) return 0;
    if ((u[0] == 0xe0 && u[1] < 0xa0) || (u[0] == 0xed && u[1] > 0x9f) || (u[0] == 0xf0 && u[1] < 0x90) ||
        (u[0] == 0xf4 && u[1] > 0x8f))
        return 0;
    return u[0] == 0xef && u[1] == 0xbf && u[2] > 0xbd ? 0 : n;
}

static const char *plot_next_(const char *s) { return s + (plot_char_(s) ? plot_char_(s) : 1); }

/* At most `most` characters of s, escaped; returns where it stopped. */
static const char *plot_put_(FILE *f, const char *s, size_t most) {
    for (; s && *s && most; most--, s = plot_next_(s))
        if (strchr("<>&\"'", *s)) fprintf(f, "&#%d;", *s);
        else if (strchr("\n\r\t", *s)) fputc(' ', f);
        else if (plot_char_(s)) fwrite(s, 1, plot_char_(s), f);
        else fputs("\xef\xbf\xbd", f);
    return s;
}

/* Markup: %s is a text, escaped, %d an int, %g a double with one decimal, or none if that is 0. In every locale. */
static void plot_write_(FILE *f, const char *format, ...) {
    va_list list;
    va_start(list, format);
    for (; *format; format++)
        if (*format != '%') fputc(*format, f);
        else if (*++format == 's') plot_put_(f, va_arg(list, const char *), (size_t)-1);
        else if (*format == 'd') fprintf(f, "%d", va_arg(list, int));
        else {
            long t = (long)floor(va_arg(list, double) * 10 + 0.5), u = t < 0 ? -t : t;
            fprintf(f, u % 10 ? "%s%ld.%ld" : "%s%ld", t < 0 ? "-" : "", u / 10, u % 10);
        }
    va_end(list);
}

/* s in lines of at most `most` characters, broken at spaces, the first at y; returns the y of the next. f may be
   NULL, to measure. */
static double plot_lines_(FILE *f, const char *kind, const char *s, size_t most, double y, double line) {
    for (; s && *s; y += line) {
        size_t n = 0, fit = 0;
        const char *at = s, *end = s;
        for (; *at && n < most; n++, at = plot_next_(at))
            if (*at == ' ' || *at == '\n') fit = n + 1, end = at + 1;
        if (!*at || !fit) fit = n, end = at;
        if (f) plot_write_(f, "<text class='%s' x='24' y='%g'>", kind, y), plot_put_(f, s, fit), fputs("</text>\n", f);
        s = end;
    }
    return y;
}

/* What printf made, with a point as the decimal separator whatever the locale has, and e8 in place of e+08. */
static void plot_tidy_(char *s) {
    char *to = s;
    for (; *s; s++) {
        if (strchr("0123456789-kMGTPE", *s)) *to++ = *s;
        else if (*s == 'e') {
            *to++ = *s++;
            if (*s == '-') *to++ = *s;
            while (s[1] == '0' && s[2]) s++;
        } else if (to[-1] != '.') *to++ = '.';
    }
    *to = 0;
}

/* v with `digits` significant digits, or with that many decimals where fixed. */
static void plot_number_(char *out, size_t room, double v, int digits, int fixed, int bytes) {
    static const char units[] = "kMGTPE";
    int unit = -1;
    double m = v;
    while (bytes && unit < 5 && fabs(m) > 999.9995) m /= 1000, unit++;
    if (bytes && fabs(m) < 1000) snprintf(out, room, "%.*g", digits < 3 ? 3 : digits, m);
    else if (fixed) snprintf(out, room, "%.*f", digits, v);
    else snprintf(out, room, "%.*g", digits, v);
    if (bytes && fabs(m) < 1000 && unit >= 0 && strlen(out) + 1 < room) strncat(out, &units[unit], 1);
    plot_tidy_(out);
}

/* ---- axes ---- */

static int plot_ok_(double v, int log) { return fabs(v) <= 1e300 && (!log || v >= 1e-300); } /* not if NaN */
static int plot_drawn_(const plot *p, const plot_series *s, size_t i) {
    return plot_ok_(s->x[i], p->log_x) && plot_ok_(s->y[i], p->log_y);
}

static double plot_at_(const plot_axis_ *a, double v) {
    double t = ((a->log ? log10(v) : v) - a->low) / (a->high - a->low);
    return a->from + (t < -1e6 ? -1e6 : t > 1e6 ? 1e6 : t) * (a->to - a->from);
}

/* The least of 1, 2, 5 times a power of ten that makes at most `want` steps of span. */
static double plot_step_(double span, int want) {
    double ten = pow(10, floor(log10(span / want))), m = span / want / ten;
    return ten * (m < 1.0001 ? 1 : m < 2.0001 ? 2 : m < 5.0001 ? 5 : 10);
}

static void plot_tick_(plot_axis_ *a, double v, int digits, int fixed) {
    if (a->count == PLOT_TICKS_) return;
    a->tick[a->count] = v;
    a->text[a->count][0] = 0;
    if (digits >= 0) plot_number_(a->text[a->count], sizeof a->text[0], v, digits, fixed, a->bytes);
    a->count++;
}

static void plot_linear_(plot_axis_ *a, double low, double high, int want) {
    double step = plot_step_(high - low, want), k = ceil(low / step - 1e-6), most = fmax(fabs(low), fabs(high));
    int fixed = !a->bytes && most < 1e7 && step > 1e-5, digits = (int)floor(log10(step) + 1e-6);
    digits = fixed ? (digits < 0 ? -digits : 0) : (int)floor(log10(most) + 1e-6) - digits + 1;
    for (; k <= high / step + 1e-6; k += 1) plot_tick_(a, k * step + 0.0, digits, fixed); /* + 0.0: no "-0" */
}

/* Decades, with 2 and 5 between if there are few, minor ticks if not many, and linear ones in less than a decade. */
static void plot_ticks_(plot_axis_ *a, int want) {
    double span = a->high - a->low, decade;
    int skip = a->log ? (int)ceil(span / want) : 1, i;
    a->count = 0;
    if (!a->log) plot_linear_(a, a->low, a->high, want);
    else if (span < 0.8) plot_linear_(a, pow(10, a->low), pow(10, a->high), want);
    else
        for (decade = floor(a->low); decade <= a->high; decade++)
            for (i = 1; i < (span < 5 ? 10 : 2); i++) {
                double at = decade + log10(i);
                int named = i == 1 ? fmod(decade, skip) == 0 : span * 3 <= want + 2 && (i == 2 || i == 5);
                if (at >= a->low - 1e-9 && at <= a->high + 1e-9 && (named || span < 5))
                    plot_tick_(a, i * pow(10, decade), named ? 7 : -1, 0);
            }
}

/* The axis for data from low to high: round = out to the next ticks. Without a width it gets one. */
static void plot_axis_for_(plot_axis_ *a, double low, double high, int exact, int round, int want) {
    double most = fmax(fabs(low), fabs(high)), step;
    if (a->log) low = log10(low), high = log10(high), most = 1e3;
    if (high - low <= most * 1e-9 || high - low < 1e-290) {
        double more = a->log ? 0.5 : most < 1e-290 ? 1 : most / 2;
        low -= more, high += more;
    } else if (a->log && !exact) low -= (high - low) * 0.03, high += (high - low) * 0.03;
    else if (!exact && round) {
        step = plot_step_(high - low, want);
        low = floor(low / step + 1e-6) * step, high = ceil(high / step - 1e-6) * step;
    } else if (!exact && low > 0 && low < high / 10) low = 0;
    a->low = low, a->high = high;
    plot_ticks_(a, want);
}

/* Both axes from the points that can be drawn; 0 if there is none. */
static int plot_frame_for_(plot_frame_ *f, const plot *p, const plot_series *s, size_t count) {
    double box[4] = { 1, 1, 1, 1 };
    int some = 0, exact = p->y_low < p->y_high && plot_ok_(p->y_low, p->log_y) && plot_ok_(p->y_high, p->log_y);
    size_t i, j;
    for (i = 0; i < count; i++)
        for (j = 0; j < s[i].n; j++) {
            double x = s[i].x[j], y = s[i].y[j];
            if (!plot_drawn_(p, &s[i], j)) continue;
            if (!some || x < box[0]) box[0] = x;
            if (!some || x > box[1]) box[1] = x;
            if (!some || y < box[2]) box[2] = y;
            if (!some || y > box[3]) box[3] = y;
            some = 1;
        }
    f->x.log = p->log_x, f->y.log = p->log_y;
    f->x.bytes = p->x && strstr(p->x, "bytes"), f->y.bytes = p->y && strstr(p->y, "bytes");
    plot_axis_for_(&f->x, box[0], box[1], 0, 0, 8);
    plot_axis_for_(&f->y, exact ? p->y_low : box[2], exact ? p->y_high : box[3], exact, 1, 7);
    return some;
}

/* ---- curves ---- */

/* The points to draw, at most PLOT_POINTS_: all, or both ends and of each of many strips the lowest and the
   highest. Strips are equally wide on the paper, or equally many points where all have one x. */
static size_t plot_points_(const plot_frame_ *f, const plot *p, const plot_series *s, plot_point_ *out) {
    plot_point_ now = { 0, 0, 0 }, low = now, high = now;
    size_t i, n = 0, drawn = 0, seen = 0, low_at = 0, high_at = 0;
    int strip = -1, at, strips = PLOT_POINTS_ / 2 - 1;
    double way = 0, all = 0, last = 0;
    for (i = 0; i < s->n; i++) {
        if (!plot_drawn_(p, s, i)) continue;
        now.x = plot_at_(&f->x, s->x[i]);
        if (drawn++) all += fabs(now.x - last);
        last = now.x;
    }
    for (i = 0; i < s->n; i++) {
        if (!plot_drawn_(p, s, i)) {
            now.piece++;
            continue;
        }
        now.x = plot_at_(&f->x, s->x[i]), now.y = plot_at_(&f->y, s->y[i]);
        if (seen++) way += fabs(now.x - last);
        last = now.x;
        if (drawn <= PLOT_POINTS_ || seen == 1) {
            out[n++] = now;
            continue;
        }
        at = (int)((all > 0 ? way / all : (double)seen / (double)drawn) * strips * (1 - 1e-9));
        /* a strip is complete: its extremes in the order in which they came */
        if (at != strip || seen == drawn) {
            if (strip >= 0) out[n++] = low_at < high_at ? low : high;
            if (strip >= 0 && low_at != high_at) out[n++] = low_at < high_at ? high : low;
            strip = at, low = high = now, low_at = high_at = i;
        }
        if (now.y < low.y) low = now, low_at = i;
        if (now.y > high.y) high = now, high_at = i;
        if (seen == drawn) out[n++] = now;
    }
    return n;
}

/* The line, clipped here so that no coordinate is far away; the clip path then only trims its width. */
static void plot_line_(FILE *f, const plot_frame_ *r, const plot_point_ *p, size_t n) {
    double top = r->y.to - 4, low = r->y.from + 4, px = -1, py = -1;
    size_t i;
    plot_write_(f, "<path class='l' clip-path='url(#clip%d)' d='", r->id);
    for (i = 0; i < n; i++) {
        double x0 = p[i].x, y0 = p[i].y, x1 = x0, y1 = y0, t;
        int joined = i && p[i].piece == p[i - 1].piece;
        if (joined) x0 = p[i - 1].x, y0 = p[i - 1].y;
        else if (i + 1 < n && p[i + 1].piece == p[i].piece) continue; /* the next one draws from here */
        if ((y0 < top && y1 < top) || (y0 > low && y1 > low)) continue;
        if (y0 < top || y0 > low)
            t = ((y0 < top ? top : low) - y0) / (y1 - y0), x0 += t * (x1 - x0), y0 = y0 < top ? top : low;
        if (y1 < top || y1 > low)
            t = ((y1 < top ? top : low) - y0) / (y1 - y0), x1 = x0 + t * (x1 - x0), y1 = y1 < top ? top : low;
        if (x0 != px || y0 != py) plot_write_(f, "M%g %g", x0, y0);
        if (joined) plot_write_(f, " %g %g", x1, y1);
        else fputs("h0", f); /* a point on its own: round ends make a dot */
        px = joined ? x1 : -1, py = y1;
    }
    fputs("'/>", f);
}

/* Circle, square, triangle or diamond. */
static void plot_mark_(FILE *f, size_t shape, double x, double y, double r) {
    static const double corner[3][4][2] = { { { -.9, -.9 }, { .9, -.9 }, { .9, .9 }, { -.9, .9 } },
        { { 0, -1.2 }, { 1.1, .8 }, { -1.1, .8 }, { -1.1, .8 } },
        { { 0, -1.2 }, { 1.2, 0 }, { 0, 1.2 }, { -1.2, 0 } } };
    int i;
    if (shape % 4 == 0) plot_write_(f, "M%g %ga%g %g 0 1 0 %g 0a%g %g 0 1 0 %g 0", x - r, y, r, r, 2 * r, r, r, -2 * r);
    else
        for (i = 0; i < 4; i++)
            plot_write_(
                f, i ? " %g %g" : "M%g %g", x + r * corner[shape % 4 - 1][i][0], y + r * corner[shape % 4 - 1][i][1]);
    fputc('z', f);
}

/* ---- labels ---- */

static int plot_group_(const plot_series *s) { return s->group == 0 || s->group == 2 ? s->group : 1; }

/* one more than the last point that can be drawn, or 0 */
static size_t plot_end_(const plot *p, const plot_series *s) {
    size_t n = s->n;
    while (n && !plot_drawn_(p, s, n - 1)) n--;
    return n;
}

/* Where the curves end, from top to bottom; those that have no point come last. */
static void plot_ends_(const plot_frame_ *f, const plot *p, const plot_series *s, size_t count, plot_label_ *out) {
    size_t i, j, at;
    for (i = 0; i < count; i++) {
        plot_label_ one = { 0, 0, 0, 0, 0, 0, 2 };
        one.series = i, one.want = f->y.from;
        j = plot_end_(p, &s[i]);
        if (j) {
            double y = plot_at_(&f->y, s[i].y[j - 1]);
            one.off = y < f->y.to - 0.05 ? 1 : y > f->y.from + 0.05 ? -1 : 0;
            one.x = plot_at_(&f->x, s[i].x[j - 1]);
            one.want = fmin(fmax(y, f->y.to), f->y.from);
        }
        for (at = i; at > 0 && (out[at - 1].want > one.want || (out[at - 1].off == 2 && one.off != 2)); at--)
            out[at] = out[at - 1];
        out[at] = one;
    }
}

/* Moves the labels as little as possible (least squares) until each has its line: what collides forms a block
   around its mean. */
static void plot_spread_(plot_label_ *l, size_t n, double top, double bottom) {
    size_t i, j, blocks = 0, at = n;
    for (i = 0; i < n; i++) {
        l[blocks].sum = l[i].want - plot_line_high_ * (double)i, l[blocks].size = 1;
        for (blocks++; blocks > 1 &&
             l[blocks - 2].sum * (double)l[blocks - 1].size >= l[blocks - 1].sum * (double)l[blocks - 2].size;
             blocks--)
            l[blocks - 2].sum += l[blocks - 1].sum, l[blocks - 2].size += l[blocks - 1].size;
    }
    for (i = blocks; i-- > 0;)
        for (j = l[i].size; j-- > 0;) {
            at--;
            l[at].at = fmax(top, fmin(bottom - (double)(n - 1) * plot_line_high_, l[i].sum / (double)l[i].size)) +
                (double)at * plot_line_high_;
        }
}

/* The classes of series i, and its place among those that have a colour. */
static size_t plot_class_(FILE *f, const plot_series *s, size_t i) {
    const char *more = s[i].group == 2 ? " fail" : s[i].group == 3 && i ? " pair" : "";
    size_t j, k = 0;
    while (i && s[i].group == 3) i--;
    for (j = 0; j < i; j++) k += s[j].group != 0 && s[j].group != 3;
    if (f && s[i].group == 0) plot_write_(f, "ref%s", more);
    else if (f) plot_write_(f, "c%d d%d%s", (int)(k % PLOT_COLOURS_), (int)(k / PLOT_COLOURS_ % 3), more);
    return s[i].group == 0 ? 0 : k;
}

/* One curve with its marks, its end, a leader from there to the label, and the label. */
static void plot_curve_(FILE *f, const plot_frame_ *r, const plot *p, const plot_series *s, const plot_label_ *l) {
    plot_point_ point[PLOT_POINTS_];
    const plot_series *one = &s[l->series];
    size_t n = plot_points_(r, p, one, point), i, shape;
    double x = r->x.to;
    fputs("<g class='s ", f);
    shape = plot_class_(f, s, l->series);
    plot_write_(f, "' data-s='%s'>", one->name);
    if (n) {
        plot_line_(f, r, point, n);
        plot_write_(f, "<path class='t' d='M%g %gH%gL%g %g'/>", l->x, l->want, x + 4, x + 22, l->at);
        plot_write_(f, "<path class='l' d='M%g %gh20'/><path class='m' d='", x + 22, l->at);
        for (i = 0; p->marks && i + 1 < n; i++)
            if (point[i].y > r->y.to - 0.1 && point[i].y < r->y.from + 0.1)
                plot_mark_(f, shape, point[i].x, point[i].y, 2.4);
        if (!l->off) plot_mark_(f, shape, l->x, l->want, 4);
        plot_mark_(f, shape, x + 32, l->at, 4);
        fputs("'/>", f);
    }
    plot_write_(f, "<text class='label%s' x='%g' y='%g'>", n ? "" : " q", x + 48, l->at + 4.5);
    if (one->name && *plot_put_(f, one->name, PLOT_NAME_)) fputs("\xe2\x80\xa6", f);
    plot_write_(f, "%s</text></g>\n",
        l->off == 2        ? " (no data)"
            : l->off == 1  ? " \xe2\x86\x91"
            : l->off == -1 ? " \xe2\x86\x93"
                           : "");
}

/* ---- a plot ---- */

/* The colours keep apart under the common colour blindnesses; the second set is for dark paper. */
static void plot_style_(FILE *f) {
    static const char *const colour[2][PLOT_COLOURS_] = { { "#1f77d0", "#b53d0b", "#00a473", "#d268ba", "#b39500",
                                                              "#1c3f8c", "#742450" },
        { "#3f87ff", "#e8632a", "#35dda0", "#a878cc", "#f2e04a", "#a5dfff", "#cc6f78" } };
    static const char *const paper[2] = {
        ".bg{fill:#fff}.grid{stroke:#dfe3e8}.minor{stroke:#f0f2f4}.axis{stroke:#8c959f}.plot text{fill:#1f2328}"
        ".plot .q{fill:#59636e}.m{stroke:#fff}.ref{color:#111}",
        ".bg{fill:#0d1117}.grid{stroke:#2a313a}.minor{stroke:#1a2028}.axis{stroke:#6e7681}.plot text{fill:#e6edf3}"
        ".plot .q{fill:#9198a1}.m{stroke:#0d1117}.ref{color:#fff}"
    };
    int dark, i;
    fputs(".plot text{font:13px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}.plot "
          ".h1{font-size:19px;font-weight:600}"
          ".plot .e{text-anchor:end}.plot .mid{text-anchor:middle}.grid,.minor,.axis{fill:none}"
          ".l{fill:none;stroke:currentColor;stroke-width:1.8;stroke-linejoin:round;stroke-linecap:round}.ref "
          ".l{stroke-width:3}"
          ".d1 .l{stroke-dasharray:11 3}.d2 .l{stroke-dasharray:1 3.6}.fail .l{stroke-dasharray:5 5;stroke-width:1.3}"
          ".pair .l{stroke-dasharray:7 3 1 3}"
          ".plot .fail text,.plot .i{font-style:italic}"
          ".t{fill:none;stroke:currentColor;stroke-width:.8;opacity:.5}.m{fill:currentColor;stroke-width:.8}\n",
        f);
    for (dark = 0; dark < 2; dark++) {
        fprintf(f, "%s%s", dark ? "@media(prefers-color-scheme:dark){" : "", paper[dark]);
        for (i = 0; i < PLOT_COLOURS_; i++) fprintf(f, ".c%d{color:%s}", i, colour[dark][i]);
        fputs(dark ? "}\n" : "\n", f);
    }
}

/* The grid, under the curves, and the texts of one axis. */
static void plot_grid_(FILE *f, const plot_frame_ *r, const plot_axis_ *a, int minor) {
    int i, across = a == &r->x;
    plot_write_(f, "<path class='%s' d='", minor ? "minor" : "grid");
    for (i = 0; i < a->count; i++)
        if ((a->text[i][0] == 0) != minor) continue;
        else if (across) plot_write_(f, "M%g %gV%g", plot_at_(a, a->tick[i]), r->y.from, r->y.to);
        else plot_write_(f, "M%g %gH%g", r->x.from, plot_at_(a, a->tick[i]), r->x.to);
    fputs("'/>\n", f);
    for (i = 0; i < a->count && !minor; i++)
        if (!a->text[i][0]) continue;
        else if (across)
            plot_write_(f, "<text class='q mid tx' x='%g' y='%g'>%s</text>\n", plot_at_(a, a->tick[i]), r->y.from + 19,
                a->text[i]);
        else
            plot_write_(f, "<text class='q e ty' x='%g' y='%g'>%s</text>\n", r->x.from - 8,
                plot_at_(a, a->tick[i]) + 4.5, a->text[i]);
}

/* Where everything is: room for the longest tick on the left, for the longest name on the right, and a line for
   each label. */
static void plot_layout_(plot_frame_ *r, const plot *p, const plot_series *s, size_t count) {
    size_t i, name = 4, tick = 2;
    double room = (double)count * plot_line_high_;
    for (i = 0; i < count; i++) {
        const char *c = s[i].name;
        size_t n = plot_end_(p, &s[i]) ? 2 : 10, most = n + PLOT_NAME_ + 1;
        for (; c && *c && n < most; n++) c = plot_next_(c);
        name = n > name ? n : name;
    }
    for (i = 0; i < (size_t)r->y.count; i++) tick = strlen(r->y.text[i]) > tick ? strlen(r->y.text[i]) : tick;
    r->x.from = 32 + 7.6 * (double)tick;
    r->x.to = PLOT_WIDTH_ - 56 - 7.4 * (double)name;
    r->y.to = plot_lines_(NULL, "q", p->subtitle, 132, plot_lines_(NULL, "h1", p->title, 85, 38, 25), 19) + 21;
    r->y.from = r->y.to + (room > plot_least_high_ ? room : plot_least_high_);
    r->height = r->y.from + 58;
}

static int plot_draw_(FILE *f, const plot *p, const plot_series *s, size_t count, int id) {
    plot_frame_ r;
    plot_label_ *label = (plot_label_ *)malloc((count ? count : 1) * sizeof *label);
    int some, fails = 0, group, i;
    double middle;
    size_t j;
    if (!label) return -1;
    memset(&r, 0, sizeof r);
    r.id = id < 0 ? 0 : id;
    some = plot_frame_for_(&r, p, s, count);
    plot_layout_(&r, p, s, count);
    middle = (r.x.from + r.x.to) / 2;
    plot_write_(f,
        "<svg xmlns='http://www.w3.org/2000/svg' class='plot' viewBox='0 0 %d %g' width='%d' height='%g' role='img' "
        "aria-label='%s'>\n",
        PLOT_WIDTH_, r.height, PLOT_WIDTH_, r.height, p->title);
    if (id < 0) fputs("<style>", f), plot_style_(f), fputs("</style>\n", f);
    plot_write_(f, "<clipPath id='clip%d'><path d='M%g %gH%gV%gH%gz'/></clipPath>\n", r.id, r.x.from - 2, r.y.to - 2,
        r.x.to + 2, r.y.from + 2, r.x.from - 2);
    plot_write_(f, "<rect class='bg' width='%d' height='%g' rx='6'/>\n", PLOT_WIDTH_, r.height);
    plot_lines_(f, "q", p->subtitle, 132, plot_lines_(f, "h1", p->title, 85, 38, 25), 19);
    for (i = 1; some && i >= 0; i--) plot_grid_(f, &r, &r.x, i), plot_grid_(f, &r, &r.y, i);
    plot_write_(f, "<path class='axis' d='M%g %gH%g'/>\n", r.x.from, r.y.from, r.x.to);
    plot_write_(f, "<text x='24' y='%g'>%s</text>\n<text class='mid' x='%g' y='%g'>%s</text>\n", r.y.to - 14, p->y,
        middle, r.y.from + 42, p->x);
    plot_ends_(&r, p, s, count, label);
    plot_spread_(label, count, r.y.to + 2, r.y.from - 2);
    for (group = 2; group >= 0; group--) /* the reference on top */
        for (j = 0; j < count; j++)
            if (plot_group_(&s[label[j].series]) == group) plot_curve_(f, &r, p, s, &label[j]), fails |= group == 2;
    if (fails && p->dashed)
        plot_write_(f, "<text class='q e i' x='%g' y='%g'>\xe2\x80\x93 \xe2\x80\x93 %s</text>\n",
            (double)(PLOT_WIDTH_ - 24), r.y.from + 42, p->dashed);
    if (!some) plot_write_(f, "<text class='q mid' x='%g' y='%g'>no data</text>\n", middle, (r.y.from + r.y.to) / 2);
    fputs("</svg>\n", f);
    free(label);
    return some ? 0 : 1;
}

static inline int plot_svg(FILE *f, const plot *p, const plot_series *s, size_t count) {
    int status = plot_draw_(f, p, s, count, -1);
    return fflush(f) || ferror(f) ? -1 : status;
}

/* ---- the page ---- */

static void plot_paragraphs_(FILE *f, const char *s) {
    while (s && *s) {
        const char *at = s;
        size_t n = 0;
        for (; *at && (at[0] != '\n' || at[1] != '\n'); n++) at = plot_next_(at);
        fputs("<p>", f), plot_put_(f, s, n), fputs("</p>\n", f);
        for (s = at; *s == '\n';) s++;
    }
}

/* whether most of the column's cells that are not empty are numbers */
static int plot_numbers_(const plot_page *p, size_t col) {
    size_t i, all = 0, numbers = 0;
    for (i = 1; i < p->rows; i++) {
        const char *s = p->cells[i * p->cols + col];
        all += s && *s;
        while (s && *s && strchr(" -+.", *s)) s++;
        numbers += s && *s >= '0' && *s <= '9';
    }
    return numbers && numbers * 2 >= all;
}

/* A row whose first cell is the name of a curve has the curve's line and mark before it. */
static void plot_row_(FILE *f, const plot_page *p, size_t row, const plot_series *s, size_t i) {
    size_t col;
    plot_write_(f, s ? "<tr class='s' data-s='%s'>" : "<tr>", p->cells[row * p->cols]);
    for (col = 0; col < p->cols; col++) {
        fprintf(f, "%s%s>", row ? "<td" : "<th scope='col'", plot_numbers_(p, col) ? " class='n'" : "");
        if (s && !col) {
            fputs("<svg class='key ", f), plot_class_(f, s, i);
            fputs("' width='30' height='12' aria-hidden='true'><path class='l' d='M2 6h26'/><path class='m' d='", f);
            plot_mark_(f, plot_class_(NULL, s, i), 15, 6, 4), fputs("'/></svg>", f);
        }
        plot_write_(f, row ? "%s</td>" : "%s</th>", p->cells[row * p->cols + col]);
    }
    fputs("</tr>\n", f);
}

static void plot_table_(
    FILE *f, const plot_page *p, const plot_series *const *series, const size_t *counts, size_t plots) {
    size_t row, i, j;
    if (!p->cells || !p->rows || !p->cols) return;
    fputs("<div class='wide'><table>\n<thead>\n", f);
    for (row = 0; row < p->rows; row++) {
        const char *name = p->cells[row * p->cols];
        const plot_series *found = NULL;
        size_t which = 0;
        for (i = 0; row && name && i < plots && !found; i++)
            for (j = 0; j < counts[i] && !found; j++)
                if (series[i][j].name && !strcmp(series[i][j].name, name)) found = series[i], which = j;
        plot_row_(f, p, row, found, which);
        if (!row) fputs("</thead>\n<tbody>\n", f);
    }
    fputs("</tbody>\n</table></div>\n", f);
}

static void plot_page_style_(FILE *f) {
    fputs(":root{color-scheme:light "
          "dark;--ink:#1f2328;--soft:#59636e;--line:#dfe3e8;--paper:#f6f8fa;--card:#fff;--hover:#eef3fb}\n"
          "@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--soft:#9198a1;--line:#2a313a;--paper:#010409;--card:#"
          "0d1117;--hover:#161f2e}}\n"
          "*{box-sizing:border-box}"
          "body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.55 system-ui,-apple-system,'Segoe "
          "UI',Roboto,'DejaVu Sans',sans-serif}\n"
          "main{max-width:1200px;margin:0 auto;padding:32px 20px 56px}h1{font-size:1.75rem;line-height:1.25;margin:0 0 "
          ".6em}p{max-width:74ch;margin:0 0 1em}\n"
          ".wide{overflow-x:auto;margin:24px 0;background:var(--card);border:1px solid var(--line);border-radius:8px}"
          ".plot{display:block;width:100%;min-width:760px;height:auto}\n"
          "table{border-collapse:collapse;width:100%;font-size:14px;font-variant-numeric:tabular-nums}"
          "th,td{padding:6px 11px;text-align:left}td{white-space:nowrap}\n"
          "th{color:var(--soft);font-weight:600;border-bottom:2px solid "
          "var(--line);vertical-align:bottom}td{border-top:1px solid var(--line)}"
          "th.n,td.n{text-align:right}td:last-child:not(.n){white-space:normal;min-width:24ch;line-height:1.35}tr>:"
          "first-child{position:sticky;left:0;background:var(--card)}\n"
          "th[tabindex]{cursor:pointer}th[tabindex]:hover{color:var(--ink)}"
          "th[aria-sort]::after{content:' \\2191'}th[aria-sort=descending]::after{content:' \\2193'}\n"
          "tr.on td{background:var(--hover)}.key{margin-right:8px;vertical-align:-1px}.s{transition:opacity "
          ".12s}g.s{cursor:default}"
          ".hit{fill:none;stroke:transparent;stroke-width:11;pointer-events:stroke}"
          ".pick g.s{opacity:.16}.pick g.ref{opacity:.4}.pick tr.s{opacity:.5}.pick .s.on{opacity:1}\n"
          ".pick .on .l{stroke-width:3}.pick .on .t{opacity:1}.pick .on text{font-weight:600}"
          "@media(max-width:600px){main{padding:20px 12px}th,td{padding:6px 9px}.key{display:none}}\n",
        f);
}

/* Free of < and &, which an XML reader would trip over. */
static void plot_script_(FILE *f) {
    fputs("<script>\n(function(){\n"
          "var body=document.body,pin=null,all=[].slice.call(document.querySelectorAll('[data-s]'));\n"
          "function each(what,how){[].slice.call(document.querySelectorAll(what)).forEach(how)}\n"
          "function name(e){var t=e.target.closest('[data-s]');return t?t.getAttribute('data-s'):null}\n"
          "function "
          "show(n){body.classList.toggle('pick',n!==null);all.forEach(function(a){a.classList.toggle('on',a."
          "getAttribute('data-s')===n)})}\n"
          "body.addEventListener('mouseover',function(e){var n=name(e);show(n===null?pin:n)});\n"
          "document.documentElement.addEventListener('mouseleave',function(){show(pin)});\n"
          "body.addEventListener('click',function(e){if(e.target.closest('th'))return;var "
          "n=name(e);pin=n===pin?null:n;show(pin)});\n"
          "each('.plot .l',function(l){var "
          "h=l.cloneNode(false);h.setAttribute('class','hit');l.parentNode.insertBefore(h,l)});\n",
        f);
    fputs(
        "function value(s){var m=/^([-+]?[\\d.,\\s]*\\d(?:e[-+]?\\d+)?)\\s*([kKMGTP](?=i?B|[^a-zA-Z]|$))?/.exec(s);\n"
        "  return "
        "m?parseFloat(m[1].replace(/[,\\s]/g,''))*Math.pow(1000,'kMGTP'.indexOf((m[2]||'-').replace('K','k'))+1):NaN}\n"
        "each('thead th',function(th,col){\n"
        "  function sort(){\n"
        "    var down=th.getAttribute('aria-sort')==='ascending',rows=[].slice.call(document.querySelectorAll('tbody "
        "tr'));\n"
        "    rows=rows.map(function(r,i){var "
        "s=r.cells[col].textContent.trim();return{r:r,i:i,s:s,v:th.className==='n'?value(s):0}});\n"
        "    rows.sort(function(a,b){var x=isNaN(a.v),y=isNaN(b.v);\n"
        "      if(x||y)return x-y||a.i-b.i;\n"
        "      return(th.className==='n'?a.v-b.v:a.s.localeCompare(b.s))*(down?-1:1)||a.i-b.i});\n"
        "    each('thead th',function(o){o.removeAttribute('aria-sort')});\n"
        "    th.setAttribute('aria-sort',down?'descending':'ascending');\n"
        "    rows.forEach(function(r){r.r.parentNode.appendChild(r.r)})}\n"
        "  th.tabIndex=0;\n"
        "  th.addEventListener('click',sort);\n"
        "  th.addEventListener('keydown',function(e){if(e.key==='Enter'||e.key===' '){e.preventDefault();sort()}})});\n"
        "})();\n</script>\n",
        f);
}

static inline int plot_html(FILE *f, const plot_page *p, const plot *plots, const plot_series *const *series,
    const size_t *counts, size_t plots_count) {
    int status = 0, one;
    size_t i;
    plot_write_(f,
        "<!doctype html>\n<html lang='en'>\n<head>\n<meta charset='utf-8'/>\n<meta name='viewport' "
        "content='width=device-width,initial-scale=1'/>\n"
        "<title>%s</title>\n<style>\n",
        p->title);
    plot_style_(f), plot_page_style_(f);
    plot_write_(f, "</style>\n</head>\n<body>\n<main>\n<h1>%s</h1>\n", p->title);
    plot_paragraphs_(f, p->intro);
    for (i = 0; i < plots_count; i++) {
        fputs("<div class='wide'>", f);
        one = plot_draw_(f, &plots[i], series[i], counts[i], (int)i);
        fputs("</div>\n", f);
        if (one < 0 || !status) status = one;
    }
    plot_table_(f, p, series, counts, plots_count);
    plot_paragraphs_(f, p->after);
    fputs("</main>\n", f);
    plot_script_(f);
    fputs("</body>\n</html>\n", f);
    return fflush(f) || ferror(f) ? -1 : status;
}

#endif
