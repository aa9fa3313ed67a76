/* The files of bench/plot.h, read back: well-formed, inside their paper, and what they show is what was given. */
#include "greatest.h"
#include "bench/plot.h"

#include <ctype.h>
#include <locale.h>
#include <stdint.h>

enum { ROOM = 1 << 20 };
static char out[ROOM], other[ROOM];

static uint64_t seed = 1;
static double uniform(void) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(seed >> 33) / 2147483648.0;
}

/* ---- reading back ---- */

static int read_back(FILE *f, char *text) {
    size_t n;
    rewind(f);
    n = fread(text, 1, ROOM - 1, f);
    text[n] = 0;
    fclose(f);
    return strlen(text) == n && n < ROOM - 1;
}
static int svg(const plot *p, const plot_series *s, size_t count, char *text) {
    FILE *f = tmpfile();
    int status = f ? plot_svg(f, p, s, count) : -2;
    return f && read_back(f, text) ? status : -2;
}
static int html(
    const plot_page *page, const plot *p, const plot_series *const *s, const size_t *counts, size_t plots, char *text) {
    FILE *f = tmpfile();
    int status = f ? plot_html(f, page, p, s, counts, plots) : -2;
    return f && read_back(f, text) ? status : -2;
}

/* A strict reader of XML without comments, CDATA or name spaces: NULL, or where it is wrong. */
static const char *xml_text(const char *s, char end) { /* up to end, or to < */
    for (; *s && *s != end && *s != '<'; s++) {
        unsigned char c = (unsigned char)*s;
        if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f || !strncmp(s, "]]>", 3)) return NULL;
        if (c >= 0x80) {
            int more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : 1;
            unsigned long code = c & (0x3fu >> more);
            for (int i = more; i > 0; i--) {
                if (((unsigned char)*++s & 0xc0) != 0x80) return NULL;
                code = code << 6 | ((unsigned char)*s & 0x3f);
            }
            if (c < 0xc0 || code < (more == 1 ? 0x80u : more == 2 ? 0x800u : 0x10000u) || code > 0x10ffff) return NULL;
            if ((code >= 0xd800 && code < 0xe000) || code == 0xfffe || code == 0xffff) return NULL;
        }
        if (c == '&') {
            const char *e = s + 1;
            if (*e++ != '#') return NULL;
            while (isdigit((unsigned char)*e)) e++;
            if (e == s + 2 || *e != ';') return NULL;
            s = e;
        }
    }
    return s;
}
static const char *xml_name(const char *s) {
    if (!isalpha((unsigned char)*s)) return NULL;
    while (isalnum((unsigned char)*s) || *s == '-') s++;
    return s;
}
static const char *xml_tag(const char *s, const char **name, size_t *len) { /* after <; returns after > or at / */
    const char *e = xml_name(s), *seen[20];
    size_t lens[20], n = 0, i;
    *name = s;
    if (!e) return NULL;
    *len = (size_t)(e - s);
    for (s = e; *s == ' '; n++) {
        seen[n] = ++s;
        if (n == 19 || !(e = xml_name(s)) || e[0] != '=' || (e[1] != '\'' && e[1] != '"')) return NULL;
        lens[n] = (size_t)(e - s);
        for (i = 0; i < n; i++)
            if (lens[i] == lens[n] && !memcmp(seen[i], seen[n], lens[n])) return NULL;
        s = xml_text(e + 2, e[1]);
        if (!s || *s != e[1]) return NULL;
        s++;
    }
    return s;
}
static int xml_ok(const char *s) {
    const char *stack[64], *name;
    size_t lens[64], len, depth = 0, roots = 0;
    if (!strncmp(s, "<!doctype html>\n", 16)) s += 16;
    for (;;) {
        const char *from = s;
        if (!(s = xml_text(s, 0))) return 0;
        if (!depth)
            while (from < s)
                if (!isspace((unsigned char)*from++)) return 0;
        if (!*s) return depth == 0 && roots == 1;
        if (*++s == '/') {
            if (!depth-- || strncmp(++s, stack[depth], lens[depth]) || s[lens[depth]] != '>') return 0;
            s += lens[depth] + 1;
            continue;
        }
        if (!(s = xml_tag(s, &name, &len))) return 0;
        roots += depth == 0;
        if (s[0] == '/' && s[1] == '>') s += 2;
        else if (*s++ == '>' && depth < 64) stack[depth] = name, lens[depth++] = len;
        else return 0;
    }
}

/* Whether a number is missing: the words that printf writes then, in any case. */
static int has_nan(const char *s) {
    for (; *s; s++) {
        int a = tolower((unsigned char)s[0]), b = s[0] ? tolower((unsigned char)s[1]) : 0,
            c = s[0] && s[1] ? tolower((unsigned char)s[2]) : 0;
        if ((a == 'n' && b == 'a' && c == 'n') || (a == 'i' && b == 'n' && c == 'f')) return 1;
    }
    return 0;
}

/* A path: how many points and starts it has, and the box around them. */
typedef struct box {
    double left, right, top, bottom;
    int points, starts;
} box;
static box around(const char *d) {
    box b = { 1e9, -1e9, 1e9, -1e9, 0, 0 };
    double x = 0, y = 0, v[7];
    char command = 'M', *end;
    while (*d && *d != '\'') {
        int i, want;
        if (isalpha((unsigned char)*d)) command = *d++;
        b.starts += d[-1] == 'M';
        want = strchr("zZ", command) ? 0 : strchr("HhVv", command) ? 1 : command == 'a' ? 7 : 2;
        for (i = 0; i < want; i++, d = end) {
            v[i] = strtod(d, &end);
            if (end == d) {
                b.points = -1;
                return b;
            }
        }
        if (command == 'M' || command == 'L') x = v[0], y = v[1];
        else if (command == 'H') x = v[0];
        else if (command == 'h') x += v[0];
        else if (command == 'V') y = v[0];
        else if (command == 'a') x += v[5], y += v[6];
        else if (command != 'z') {
            b.points = -1;
            return b;
        }
        b.points++;
        b.left = fmin(b.left, x), b.right = fmax(b.right, x), b.top = fmin(b.top, y), b.bottom = fmax(b.bottom, y);
        while (*d == ' ') d++;
    }
    return b;
}
static const char *curve(const char *text, const char *name) { /* the line of a series */
    char tag[80];
    const char *at;
    snprintf(tag, sizeof tag, "data-s='%s'", name);
    at = strstr(text, tag);
    at = at ? strstr(at, "clip-path") : NULL;
    at = at ? strstr(at, " d='") : NULL;
    return at ? at + 4 : "";
}

static int count_of(const char *s, const char *what) {
    int n = 0;
    for (; (s = strstr(s, what)) != NULL; s++) n++;
    return n;
}

/* All that has to be true of any file. */
static const char *wrong(const char *text) {
    double width = 0, height = 0, x, y, last = -1e9;
    const char *s = strstr(text, "viewBox='0 0 ");
    box clip, b;
    if (!xml_ok(text)) return "not well-formed";
    if (has_nan(text)) return "nan or inf";
    if (!s || sscanf(s, "viewBox='0 0 %lf %lf'", &width, &height) != 2) return "no viewBox";
    s = strstr(text, "<clipPath");
    clip = around(strstr(s ? s : "", " d='") + 4);
    if (clip.right - clip.left < 200 || clip.bottom - clip.top < 200) return "no room for the curves";
    for (s = text; (s = strstr(s, " d='")) != NULL; s++) {
        b = around(s + 4);
        if (b.points < 0) return "a path that cannot be read";
        if (b.points && (b.left < 0 || b.right > width || b.top < 0 || b.bottom > height))
            return "a path leaves the paper";
    }
    for (s = text; (s = strstr(s, "clip-path")) != NULL; s++) {
        b = around(strstr(s, " d='") + 4);
        if (b.points &&
            (b.left < clip.left || b.right > clip.right || b.top < clip.top - 2.1 || b.bottom > clip.bottom + 2.1))
            return "a curve leaves the plot";
    }
    for (s = text; (s = strstr(s, "<text")) != NULL; s++) {
        const char *at = strstr(s, " x='");
        if (!at || sscanf(at, " x='%lf' y='%lf'", &x, &y) != 2) return "a text without a place";
        if (x < 0 || x > width || y < 10 || y > height - 2) return "a text leaves the paper";
    }
    /* a leader goes from its curve's end to its label, and crosses no other */
    for (s = text; (s = strstr(s, "<path class='t'")) != NULL; s++) {
        double from, to, from2, to2;
        const char *o;
        if (sscanf(s, "<path class='t' d='M%*f %lfH%*fL%*f %lf'", &from, &to) != 2) return "no leader";
        for (o = s + 1; (o = strstr(o, "<path class='t'")) != NULL; o++)
            if (sscanf(o, "<path class='t' d='M%*f %lfH%*fL%*f %lf'", &from2, &to2) == 2 &&
                (from2 - from) * (to2 - to) < 0)
                return "leaders cross";
        if (sscanf(strstr(s, "<text class='label'"), "<text class='label' x='%*f' y='%lf'", &y) != 1 ||
            fabs(y - to - 4.5) > 0.11)
            return "a leader misses its label";
    }
    for (last = 0; last < height; last += 2) { /* two labels never share a line */
        int labels = 0;
        for (s = text; (s = strstr(s, "<text class='label")) != NULL; s++)
            if (sscanf(strstr(s, " x='"), " x='%lf' y='%lf'", &x, &y) == 2) labels += y >= last && y < last + 16;
        if (labels > 1) return "labels overlap";
    }
    return NULL;
}
#define ASSERT_RIGHT(text)        \
  do {                            \
    const char *w_ = wrong(text); \
    if (w_) { ASSERTm(w_, 0); }   \
  } while (0)

/* ---- the tests ---- */

TEST reader_is_strict(void) {
    static const char *const good[] = { "<a/>", "<a b='c'>x</a>\n", "<!doctype html>\n<a><b/>&#60;<c d=\"'\"></c></a>",
        "<a>\xc3\xa4</a>" };
    static const char *const bad[] = { "", "x", "<a>", "</a>", "<a></b>", "<a><b></a></b>", "<a/><b/>", "<a b=c/>",
        "<a b='c/>", "<a b='c'd='e'/>", "<a b='1' b='2'/>", "<a>&</a>", "<a>&amp</a>", "<a>&#;</a>", "<a b='<'/>",
        "<a>\x01</a>", "<a>\xff</a>", "<a>\xc3</a>", "<a>\xc0\x80</a>", "<a>\xe0\x82\x80</a>", "<a>\xed\xa0\x80</a>",
        "<a>\xef\xbf\xbf</a>", "<a>\xf4\x90\x80\x80</a>", "<a>]]></a>", "<a/>x", "<a", "<a>< b/></a>" };
    size_t i;
    for (i = 0; i < sizeof good / sizeof good[0]; i++) ASSERTm(good[i], xml_ok(good[i]));
    for (i = 0; i < sizeof bad / sizeof bad[0]; i++) ASSERTm(bad[i], !xml_ok(bad[i]));
    ASSERT(has_nan("1 -NaN") && has_nan("x='inf'") && !has_nan("in fan a"));
    PASS();
}

enum { METHODS = 18, EPOCHS = 20, STEPS = 3000 };
static double bytes[METHODS][EPOCHS], accuracy[METHODS][EPOCHS], steps[STEPS], loss[METHODS][STEPS];
static char names[METHODS][16];
static plot_series by_bytes[METHODS], by_steps[METHODS];
static const plot both[2] = { { "Accuracy", "one point per epoch", "bytes sent per worker", "test accuracy", 1, 0, 0, 0,
                                  1, "expected to fail" },
    { "Loss", NULL, "steps", "training loss", 0, 0, 0, 2, 0, NULL } };

static void training(void) {
    for (int m = 0; m < METHODS; m++) {
        plot_series a = { names[m], bytes[m], accuracy[m], EPOCHS,
            m == 0           ? 0
                : m % 5 == 4 ? 2
                             : 1 },
                    b = { names[m], steps, loss[m], STEPS, a.group };
        double rate = pow(10, -3 * uniform()), end = 0.9 + 0.01 * uniform();
        snprintf(names[m], sizeof names[m], "method%d.", m);
        for (int e = 0; e < EPOCHS; e++) bytes[m][e] = rate * 4e8 * (e + 1), accuracy[m][e] = end - 0.6 * exp(-0.4 * e);
        for (int k = 0; k < STEPS; k++) steps[k] = k + 1, loss[m][k] = 0.3 + 2 * exp(-k / 300.0) + 0.1 * uniform();
        by_bytes[m] = a, by_steps[m] = b;
    }
}

TEST a_training(void) {
    training();
    ASSERT_EQ(svg(&both[0], by_bytes, METHODS, out), 0);
    ASSERT_RIGHT(out);
    for (int m = 0; m < METHODS; m++) {
        box b = around(curve(out, names[m]));
        ASSERT_EQm(names[m], b.points, EPOCHS);
        ASSERT_EQm(names[m], b.starts, 1);
    }
    ASSERT(strstr(out, ">1M<") && strstr(out, ">1G<"));
    ASSERT(strstr(out, "prefers-color-scheme:dark") && strstr(out, "class='bg'"));
    ASSERT_EQ(svg(&both[0], by_bytes, METHODS, other), 0);
    ASSERT_STR_EQ(out, other);
    ASSERT_EQ(svg(&both[1], by_steps, METHODS, out), 0);
    ASSERT_RIGHT(out);
    ASSERT(strlen(out) < 150000);
    PASS();
}

static double tick_x(const char *text, const char *tick) { /* where the tick of that text is */
    char end[40];
    const char *at;
    double x = -1;
    snprintf(end, sizeof end, ">%s</text>", tick);
    at = strstr(text, end);
    while (at && strncmp(at, "tx' x='", 7)) at--;
    return at && sscanf(at, "tx' x='%lf'", &x) == 1 ? x : -1;
}

TEST points_are_where_they_belong(void) {
    double x[] = { 1, 10, 100, 1000 }, y[] = { 0, 1, 3, 4 };
    plot_series s = { "a", x, y, 4, 1 };
    plot p = { "t", "s", "x", "y", 1, 0, 0, 4, 0, NULL };
    double at[8];
    box clip;
    ASSERT_EQ(svg(&p, &s, 1, out), 0);
    ASSERT_EQ(sscanf(curve(out, "a"), "M%lf %lf %lf %lf %lf %lf %lf %lf", at, at + 1, at + 2, at + 3, at + 4, at + 5,
                  at + 6, at + 7),
        8);
    clip = around(strstr(strstr(out, "<clipPath"), " d='") + 4);
    ASSERT_IN_RANGE(clip.bottom - 2, at[1], 0.11);
    ASSERT_IN_RANGE(clip.top + 2, at[7], 0.11);
    ASSERT_IN_RANGE(at[1] - (at[1] - at[7]) / 4, at[3], 0.11);
    ASSERT_IN_RANGE(at[1] - (at[1] - at[7]) * 3 / 4, at[5], 0.11);
    ASSERT_IN_RANGE(at[2] - at[0], at[4] - at[2], 0.21);
    ASSERT_IN_RANGE(at[2] - at[0], at[6] - at[4], 0.21);
    ASSERT_IN_RANGE(at[0], tick_x(out, "1"), 0.01);
    ASSERT_IN_RANGE(at[4], tick_x(out, "100"), 0.01);
    ASSERT_IN_RANGE(at[6], tick_x(out, "1000"), 0.01);
    PASS();
}

TEST odd_data(void) {
    static const double odd[] = { 0, -0.0, 1, -1, 1, 1, 5e-324, 1e-300, 1e300, 1.7e308, -1.7e308, -1e300, 0.1, 1e9,
        1e9 + 1, 1e-9, 123456789.0, 1e16, -7 };
    enum { ODD = sizeof odd / sizeof odd[0], MOST = 6 };
    double x[4][MOST], y[4][MOST];
    for (int k = 0; k < 800; k++) {
        plot_series s[4];
        plot p = { "title", k % 3 ? "sub" : NULL, k % 2 ? "bytes" : "x", k % 5 ? NULL : "bytes", 0, 0, 0, 0, k % 2,
            NULL };
        size_t count = (size_t)(uniform() * 5), can = 0;
        p.log_x = uniform() < 0.5, p.log_y = uniform() < 0.5;
        if (uniform() < 0.4) p.y_low = odd[(int)(uniform() * ODD)], p.y_high = odd[(int)(uniform() * ODD)];
        if (uniform() < 0.1) p.y_low = NAN;
        for (size_t i = 0; i < count; i++) {
            s[i].name = i % 2 ? "b" : NULL, s[i].x = x[i], s[i].y = y[i], s[i].n = (size_t)(uniform() * (MOST + 1)),
            s[i].group = (int)(uniform() * 5) - 1;
            if (!s[i].n && k % 2) s[i].x = s[i].y = NULL;
            for (int j = 0; j < MOST; j++) {
                double pick = uniform();
                x[i][j] = pick < 0.1 ? NAN : pick < 0.15 ? INFINITY : k % 4 == 0 ? 7 : odd[(int)(uniform() * ODD)];
                y[i][j] = pick > 0.9 ? NAN
                    : pick > 0.85    ? -INFINITY
                    : k % 4 == 0     ? odd[k / 4 % ODD]
                                     : odd[(int)(uniform() * ODD)];
                can += (size_t)j < s[i].n && plot_drawn_(&p, &s[i], (size_t)j);
            }
        }
        ASSERT_EQ(svg(&p, s, count, out), can ? 0 : 1);
        ASSERT_RIGHT(out);
        ASSERT_EQ(strstr(out, ">no data<") == NULL, can != 0);
        ASSERT_EQ(count_of(out, "<g class='s "), (int)count);
    }
    PASS();
}

TEST gaps_break_the_line(void) {
    double x[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 }, y[] = { 1, 2, NAN, 4, INFINITY, 6, 7, 8, -9 }, gone[] = { -1, 0, NAN };
    plot_series s[] = { { "a", x, y, 9, 1 }, { "gone", x, gone, 3, 1 } };
    plot p = { "t", "s", "x", "y", 0, 1, 0, 0, 0, NULL };
    box b;
    ASSERT_EQ(svg(&p, s, 2, out), 0);
    ASSERT_RIGHT(out);
    b = around(curve(out, "a"));
    ASSERT_EQ(b.starts, 3); /* 1-2, 4 alone, 6-7-8 */
    ASSERT_EQ(b.points, 2 + 2 + 3);
    ASSERT(strstr(curve(out, "a"), "h0M"));
    ASSERT(strstr(out, ">gone (no data)<"));
    PASS();
}

TEST beyond_the_plot_is_clipped(void) {
    double x[] = { 0, 1, 2, 3, 4 }, up[] = { 0.5, 1e30, 1e300, 0.5, 2 }, down[] = { 0.5, 0.5, 0.5, 0.5, -5 };
    plot_series s[] = { { "up", x, up, 5, 1 }, { "down", x, down, 5, 2 }, { "flat", x, down, 4, 0 } };
    plot p = { "t", "s", "x", "y", 0, 0, 0.25, 1, 1, NULL };
    ASSERT_EQ(svg(&p, s, 3, out), 0);
    ASSERT_RIGHT(out);
    ASSERT(strstr(out, ">up \xe2\x86\x91<") && strstr(out, ">down \xe2\x86\x93<") && strstr(out, ">flat<"));
    ASSERT_EQ(around(curve(out, "up")).starts, 2);
    ASSERT(!strstr(out, "\xe2\x80\x93 \xe2\x80\x93"));
    p.dashed = "a < b";
    ASSERT_EQ(svg(&p, s, 3, out), 0);
    ASSERT(strstr(out, ">\xe2\x80\x93 \xe2\x80\x93 a &#60; b<"));
    ASSERT(strstr(out, "class='s ref' data-s='flat'"));
    p.y_low = 0, p.y_high = 1e-9, up[3] = 5e-10; /* 1e300 is infinitely far from here */
    ASSERT_EQ(svg(&p, s, 3, out), 0);
    ASSERT_RIGHT(out);
    PASS();
}

TEST thinning_keeps_peaks_and_ends(void) {
    enum { MANY = 20000 };
    static double x[MANY], y[MANY];
    for (int shape = 0; shape < 4; shape++) {
        plot_series s = { "a", x, y, MANY, 1 };
        plot p = { "t", "s", "x", "y", shape == 1, 0, 0, 10, 0, NULL };
        double first, last, early = 0;
        box b, clip;
        const char *d;
        for (int i = 0; i < MANY; i++)
            x[i] = shape == 2 ? 7 : shape == 3 ? (i * 7919) % MANY : i + 1, y[i] = 1 + uniform();
        y[12345] = 9, y[777] = 0.1, y[0] = 5, y[MANY - 1] = 6;
        if (shape == 0)
            for (int i = 5000; i < 6000; i++) y[i] = NAN;
        ASSERT_EQ(svg(&p, &s, 1, out), 0);
        ASSERT_RIGHT(out);
        d = curve(out, "a");
        b = around(d);
        clip = around(strstr(strstr(out, "<clipPath"), " d='") + 4);
        ASSERT(b.points <= 400 && b.points > 100);
        ASSERT_IN_RANGE(clip.top + 2 + 42, b.top, 0.11); /* of 420 for 10 */
        ASSERT_IN_RANGE(clip.bottom - 2 - 4.2, b.bottom, 0.11);
        ASSERT_EQ(sscanf(d, "M%*f %lf", &first), 1);
        ASSERT_IN_RANGE(clip.bottom - 2 - 210, first, 0.11);
        for (d = strchr(d, '\''); d[-1] != ' ';) d--;
        ASSERT_EQ(sscanf(d, "%lf", &last), 1);
        ASSERT_IN_RANGE(clip.bottom - 2 - 252, last, 0.11);
        ASSERT_EQ(b.starts, shape == 0 ? 2 : 1);
        if (shape == 1) { /* a log axis keeps its first decade */
            ASSERT_EQ(sscanf(curve(out, "a"), "M%*f %*f %*f %*f %lf", &early), 1);
            ASSERT(early > clip.left + 30 && early < clip.left + 150);
        }
    }
    PASS();
}

/* A tick's text, as a number. */
static double value(const char *s) {
    static const char units[] = "kMGTPE";
    char *end;
    double v = strtod(s, &end);
    const char *unit = *end ? strchr(units, *end) : NULL;
    return unit && !end[1] ? v * pow(1000, (double)(unit - units + 1)) : *end ? NAN : v;
}
static const char *bad_ticks(const plot_axis_ *a) {
    double before = -1e9, most = fmax(fabs(a->low), fabs(a->high)), step = 0, previous = 0;
    int named = 0;
    const char *last = "";
    for (int i = 0; i < a->count; i++) {
        double at = plot_at_(a, a->tick[i]), v = value(a->text[i]);
        if (at < -0.01 || at > 400.01) return "outside";
        if (at <= (i ? plot_at_(a, a->tick[i - 1]) : -1)) return "not ascending";
        if (!a->text[i][0]) continue;
        if (strlen(a->text[i]) > 14) return "long";
        if (at - before < 14) return "too close";
        if (!strcmp(a->text[i], last)) return "equal texts";
        if (!(fabs(v - a->tick[i]) <= 1e-6 * (a->log ? a->tick[i] : most))) return "text is another number";
        if (named > 1 && !a->log && fabs(a->tick[i] - previous - step) > 1e-4 * step) return "not equally far";
        if (named) step = a->tick[i] - previous;
        if (named && !a->log && fabs(v - value(last) - step) > 1e-3 * step) return "texts not equally far";
        before = at, last = a->text[i], previous = a->tick[i];
        named++;
    }
    if (!a->log) {
        double digit = step / pow(10, floor(log10(step) + 1e-4));
        if (fabs(digit - 1) > 1e-3 && fabs(digit - 2) > 1e-3 && fabs(digit - 5) > 1e-3) return "not 1-2-5";
    }
    return named < 2 ? "fewer than two" : named > 12 ? "too many" : NULL;
}
TEST ticks_are_sane(void) {
    for (int k = 0; k < 40000; k++) {
        plot_axis_ a;
        double low = pow(10, 24 * uniform() - 12),
               high = uniform() < 0.5 ? low * (1 + pow(10, 1 - 8 * uniform())) : pow(10, 24 * uniform() - 12);
        int exact = uniform() < 0.4, round = uniform() < 0.5;
        const char *bad;
        memset(&a, 0, sizeof a);
        a.log = uniform() < 0.4, a.bytes = uniform() < 0.4, a.to = 400;
        if (!a.log && uniform() < 0.3) low = -low;
        if (!a.log && uniform() < 0.2) high = 0;
        if (uniform() < 0.02) high = low;
        plot_axis_for_(&a, fmin(low, high), fmax(low, high), exact, round, 7 + (uniform() < 0.5));
        bad = bad_ticks(&a);
        if (bad)
            printf("\n%s: %g to %g, log %d, bytes %d, exact %d, round %d: first '%s'", bad, low, high, a.log, a.bytes,
                exact, round, a.text[0]);
        ASSERT_EQm(bad, bad, NULL);
    }
    PASS();
}
TEST ticks_by_example(void) {
    plot_axis_ a;
    char text[32];
    memset(&a, 0, sizeof a);
    a.to = 400;
    plot_axis_for_(&a, 0.12, 0.97, 0, 1, 7);
    ASSERT_EQ(a.count, 6);
    ASSERT_STR_EQ(a.text[0], "0.0");
    ASSERT_STR_EQ(a.text[5], "1.0");
    a.log = a.bytes = 1;
    plot_axis_for_(&a, 1e5, 1e10, 1, 0, 8);
    ASSERT_EQ(a.count, 6);
    ASSERT_STR_EQ(a.text[0], "100k");
    ASSERT_STR_EQ(a.text[1], "1M");
    ASSERT_STR_EQ(a.text[5], "10G");
    strcpy(text, "1,5e+08"), plot_tidy_(text);
    ASSERT_STR_EQ(text, "1.5e8");
    strcpy(text,
        "-0\xd9\xab"
        "25"),
        plot_tidy_(text); /* a decimal separator of two bytes */
    ASSERT_STR_EQ(text, "-0.25");
    strcpy(text, "2e-07"), plot_tidy_(text);
    ASSERT_STR_EQ(text, "2e-7");
    PASS();
}
TEST any_locale(void) {
    static const char *const commas[] = { "de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE", "German" };
    int i, found = 0;
    training();
    ASSERT_EQ(svg(&both[0], by_bytes, METHODS, out), 0);
    for (i = 0; i < 5 && !found; i++) found = setlocale(LC_ALL, commas[i]) != NULL;
    if (!found) SKIPm("no locale with a decimal comma");
    found = svg(&both[0], by_bytes, METHODS, other);
    setlocale(LC_ALL, "C");
    ASSERT_EQ(found, 0);
    ASSERT_STR_EQ(out, other);
    PASS();
}

/* Least squares: of labels that touch, no head would rather go up and no tail rather down, unless the edge is there. */
TEST labels_are_spread(void) {
    plot_label_ l[40];
    for (int k = 0; k < 2000; k++) {
        size_t n = 1 + (size_t)(uniform() * 25), i, j, end;
        double top = 50, bottom = 50 + fmax(420, (double)n * plot_line_high_), near = uniform();
        for (i = 0; i < n; i++) {
            double want = top + (bottom - top) * (k % 2 ? near + (1 - near) * uniform() * 0.3 : uniform());
            for (j = i; j > 0 && l[j - 1].want > want; j--) l[j].want = l[j - 1].want;
            l[j].want = want;
        }
        plot_spread_(l, n, top, bottom);
        for (i = 0; i < n; i = end) {
            double head = 0, tail = 0;
            for (end = i + 1; end < n && l[end].at - l[end - 1].at < plot_line_high_ + 1e-6; end++)
                ASSERT(l[end].at - l[end - 1].at > plot_line_high_ - 1e-6);
            ASSERT(l[i].at > top - 1e-6 && l[end - 1].at < bottom + 1e-6);
            for (j = i; j < end; j++) {
                head += l[j].at - l[j].want, tail += l[end - 1 - (j - i)].at - l[end - 1 - (j - i)].want;
                if (l[i].at > top + 1e-6) ASSERT(head < 1e-6);
                if (l[end - 1].at < bottom - 1e-6) ASSERT(tail > -1e-6);
            }
        }
    }
    PASS();
}
TEST many_series_need_more_paper(void) {
    static plot_series s[90];
    double x[] = { 1, 2 }, y[] = { 1, 1 };
    plot p = { "t", "s", "x", "y", 0, 0, 0, 0, 1, NULL };
    for (int i = 0; i < 90; i++)
        s[i].name = "a rather long name of a method, longer than its room", s[i].x = x, s[i].y = y, s[i].n = 2,
        s[i].group = i % 3;
    ASSERT_EQ(svg(&p, s, 90, out), 0);
    ASSERT_RIGHT(out);
    ASSERT(strstr(out, "\xe2\x80\xa6<"));
    for (int i = 0; i < 21; i++) s[i].group = 1; /* no two of 21 have the same colour and dashes */
    ASSERT_EQ(svg(&p, s, 21, out), 0);
    for (int c = 0; c < 7; c++)
        for (int d = 0; d < 3; d++) {
            char class_[24];
            snprintf(class_, sizeof class_, "<g class='s c%d d%d'", c, d);
            ASSERT_EQ(count_of(out, class_), 1);
            snprintf(class_, sizeof class_, d ? ".d%d .l{" : ".c%d{", d ? d : c);
            ASSERT(strstr(out, class_));
        }
    PASS();
}

TEST variants_share_a_colour(void) {
    double x[] = { 1, 2 }, y[] = { 1, 2 };
    plot_series s[] = { { "ref", x, y, 2, 0 }, { "ref2", x, y, 2, 3 }, { "a", x, y, 2, 1 }, { "a2", x, y, 2, 3 },
        { "a3", x, y, 2, 3 }, { "b", x, y, 2, 1 } };
    plot p = { "t", "s", "x", "y", 0, 0, 0, 0, 0, NULL };
    ASSERT_EQ(svg(&p, s, 6, out), 0);
    ASSERT_RIGHT(out);
    ASSERT(strstr(out, "<g class='s ref' data-s='ref'>") && strstr(out, "<g class='s ref pair' data-s='ref2'>"));
    ASSERT(strstr(out, "<g class='s c0 d0' data-s='a'>") && strstr(out, "<g class='s c0 d0 pair' data-s='a2'>"));
    ASSERT(strstr(out, "<g class='s c0 d0 pair' data-s='a3'>"));
    ASSERT(strstr(out, "<g class='s c1 d0' data-s='b'>")); /* as if they were not there */
    ASSERT(strstr(out, ".pair .l{stroke-dasharray:"));
    ASSERT_EQ(svg(&p, s + 1, 1, out), 0); /* of nothing */
    ASSERT(strstr(out, "<g class='s c0 d0' data-s='ref2'>"));
    PASS();
}

TEST texts_are_escaped(void) {
    static const char evil[] = "<b>&amp;\"'</b>]]>",
                      bytes_not_text[] = "a\x01\xff\xc0\x80\xed\xa0\x80\xef\xbf\xbf\xf4\x90\x80\x80z\xc3";
    static const char *const cells[] = { evil, bytes_not_text, evil, "1", "x", NULL };
    double x[] = { 1, 2 }, y[] = { 1, 2 };
    plot_series s[] = { { evil, x, y, 2, 0 }, { bytes_not_text, x, y, 2, 1 } };
    plot p = { evil, evil, evil, bytes_not_text, 0, 0, 0, 0, 0, NULL };
    const plot_series *all[] = { s };
    size_t count = 2;
    plot_page page = { evil, evil, cells, 3, 2, bytes_not_text };
    ASSERT_EQ(svg(&p, s, 2, out), 0);
    ASSERT_RIGHT(out);
    ASSERT(strstr(out, "data-s='&#60;b&#62;&#38;amp;&#34;&#39;&#60;/b&#62;]]&#62;'"));
    ASSERT(strstr(out, ">a\xef\xbf\xbd\xef\xbf\xbd"));
    ASSERT_EQ(strstr(out, "<b>"), NULL);
    ASSERT_EQ(html(&page, &p, all, &count, 1, out), 0);
    ASSERT(xml_ok(out));
    ASSERT_EQ(strstr(out, "<b>"), NULL);
    PASS();
}

TEST the_page(void) {
    static const char *const cells[] = { "method", "bytes", "note", "method0.", "1.5 GB", "", "method4.", "20 MB",
        "expected", "stranger", "diverged", "none" };
    const plot_series *all[] = { by_bytes, by_steps };
    size_t counts[] = { METHODS, METHODS }, none[] = { METHODS, 0 };
    plot_page page = { "A page", "One.\nStill one.\n\nTwo.", cells, 4, 3, "After." };
    training();
    ASSERT_EQ(html(&page, both, all, counts, 2, out), 0);
    ASSERT(xml_ok(out));
    ASSERT(!strncmp(out, "<!doctype html>\n", 16));
    ASSERT(strstr(out, "<p>One. Still one.</p>\n<p>Two.</p>") && strstr(out, "<p>After.</p>"));
    ASSERT_EQ(count_of(out, "data-s='method4.'"), 3); /* two plots and a row */
    ASSERT(strstr(out, "<tr class='s' data-s='method4.'><td><svg class='key c3 d0 fail'"));
    ASSERT(strstr(out, "<g class='s c3 d0 fail' data-s='method4.'>"));
    ASSERT(strstr(out, "<tr><td>stranger</td><td class='n'>diverged</td><td>none</td></tr>"));
    ASSERT(strstr(out, "<th scope='col'>method</th><th scope='col' class='n'>bytes</th><th scope='col'>note</th>"));
    ASSERT(strstr(out, "id='clip0'") && strstr(out, "id='clip1'") && strstr(out, "url(#clip1)"));
    /* the name space of two plots, nothing from the network */
    ASSERT_EQ(count_of(out, "http"), 2);
    ASSERT_EQ(count_of(out, "src=") + count_of(out, "href=") + count_of(out, "@import"), 0);
    ASSERT_EQ(html(&page, both, all, none, 2, out), 1);
    ASSERT(xml_ok(out));
    memset(&page, 0, sizeof page);
    ASSERT_EQ(html(&page, NULL, NULL, NULL, 0, out), 0);
    ASSERT(xml_ok(out));
    PASS();
}

TEST write_errors_are_told(void) {
    FILE *f = tmpfile(), *full;
    plot_page page;
    const plot_series *all[] = { by_bytes };
    size_t count = METHODS;
    memset(&page, 0, sizeof page);
    training();
    ASSERT(f);
    ASSERT_EQ(plot_svg(f, &both[0], by_bytes, METHODS), 0);
    fclose(f);
    full = fopen("/dev/full", "w");
    if (!full) SKIPm("no /dev/full");
    ASSERT_EQ(plot_svg(full, &both[0], by_bytes, 1), -1);
    ASSERT_EQ(plot_html(full, &page, both, all, &count, 1), -1);
    fclose(full);
    full = fopen("/dev/full", "w");
    ASSERT(full);
    ASSERT_EQ(plot_html(full, &page, both, all, &count, 0), -1);
    fclose(full);
    PASS();
}

GREATEST_MAIN_DEFS();
int main(int argc, char **argv) {
    GREATEST_MAIN_BEGIN();
    RUN_TEST(reader_is_strict);
    RUN_TEST(a_training);
    RUN_TEST(points_are_where_they_belong);
    RUN_TEST(odd_data);
    RUN_TEST(gaps_break_the_line);
    RUN_TEST(beyond_the_plot_is_clipped);
    RUN_TEST(thinning_keeps_peaks_and_ends);
    RUN_TEST(ticks_are_sane);
    RUN_TEST(ticks_by_example);
    RUN_TEST(any_locale);
    RUN_TEST(labels_are_spread);
    RUN_TEST(many_series_need_more_paper);
    RUN_TEST(variants_share_a_colour);
    RUN_TEST(texts_are_escaped);
    RUN_TEST(the_page);
    RUN_TEST(write_errors_are_told);
    GREATEST_MAIN_END();
}
