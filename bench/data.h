/* data.h - images to train on: Fashion-MNIST or any set in MNIST's format from files, and drawn digits that need
   no file.

     data_set set;
     char why[512];
     if (data_load(&set, DATA_FASHION, why, sizeof why)) { fprintf(stderr, "%s\n", why); return 1; }
     ... set.train.images + i * set.height * set.width, set.train.labels[i], i < set.train.count ...
     data_free(&set);                                         // harmless after a failure, too

   Or data_glyphs(&set, seed, 8000, 2000, why, sizeof why): 16x16 grey pictures of the digits 0 to 9, drawn here
   with pens that slip, in front of noise, some of them crossed or blotted. Image i of a part depends on the seed,
   the part and i alone, and is made with integers: the same bytes on every machine. Ten images in a row, from a
   multiple of ten on, are of ten different classes.

   data_load wants four files in its folder, each packed with gzip or not:
     train-images-idx3-ubyte[.gz]  train-labels-idx1-ubyte[.gz]
     t10k-images-idx3-ubyte[.gz]   t10k-labels-idx1-ubyte[.gz]
   Every number and checksum in them is checked. classes is one more than the largest label, and at least 2. Both
   return 0, or else `why` says which file is wrong, what was expected and what was found. C99 alone: no gzip is run. */

#ifndef DATA_H
#define DATA_H

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DATA_FASHION "/usr/share/datasets/fashion-mnist" /* where Debian's package dataset-fashion-mnist puts it */

/* images: count*height*width bytes */
typedef struct data_part {
    size_t count;
    uint8_t *images, *labels;
} data_part;
typedef struct data_set {
    int height, width, classes;
    data_part train, test;
} data_set;

static inline int data_load(data_set *set, const char *dir, char *why, size_t why_bytes);
static inline int data_glyphs(data_set *set, uint64_t seed, size_t train, size_t test, char *why, size_t why_bytes);
static inline void data_free(data_set *set);

/* ---- reading a file, growing as it comes ---- */

enum { DATA_SIDE_MAX_ = 4096 };
static const size_t data_most_ = (size_t)1 << 30; /* a file, unpacked: more is not a set of this kind, or a bomb */

typedef struct data_bytes_ {
    uint8_t *at;
    size_t n, room;
} data_bytes_;
typedef struct data_file_ {
    char path[4096];
    data_bytes_ bytes;
    char *why;
    size_t why_bytes;
} data_file_;

static inline int data_fail_(data_file_ *file, const char *format, ...) /* "path: what is wrong"; always 1 */
{
    va_list args;
    int used = snprintf(file->why, file->why_bytes, "%s: ", file->path);
    if (used > 0 && (size_t)used < file->why_bytes) {
        va_start(args, format);
        vsnprintf(file->why + used, file->why_bytes - (size_t)used, format, args);
        va_end(args);
    }
    return 1;
}

static inline int data_room_(data_bytes_ *bytes, size_t more) /* room for so many more; 0 if there is */
{
    uint8_t *at;
    size_t room = bytes->room ? bytes->room : 4096;
    if (more > data_most_ - bytes->n) return 1;
    if (bytes->n + more <= bytes->room) return 0;
    while (room < bytes->n + more) room *= 2;
    at = (uint8_t *)realloc(bytes->at, room);
    if (!at) return 1;
    bytes->at = at;
    bytes->room = room;
    return 0;
}

/* Opens dir/name or else dir/name.gz. */
static inline FILE *data_open_(data_file_ *file, const char *dir, const char *name) {
    size_t length = strlen(dir);
    int packed, used;
    for (packed = 0; packed < 2; packed++) {
        FILE *in;
        used = snprintf(file->path, sizeof file->path, "%s/%s%s", dir, name, packed ? ".gz" : "");
        if (used < 0 || (size_t)used >= sizeof file->path) {
            data_fail_(file, "the name is longer than %lu bytes", (unsigned long)sizeof file->path - 1);
            return NULL;
        }
        in = fopen(file->path, "rb");
        if (in) return in;
        if (errno != ENOENT) {
            data_fail_(file, "expected a file that can be read, found: %s", strerror(errno));
            return NULL;
        }
    }
    while (length && dir[length - 1] == '/') length--;
    if (length == strlen(DATA_FASHION) && strncmp(dir, DATA_FASHION, length) == 0)
        data_fail_(file, "no such file, nor without .gz; to put it there: apt-get install dataset-fashion-mnist");
    else
        data_fail_(
            file, "no such file, nor without .gz; expected the four files of a set in MNIST's format in %s", dir);
    return NULL;
}

static inline int data_read_(data_file_ *file, const char *dir, const char *name) {
    data_bytes_ *bytes = &file->bytes;
    FILE *in = data_open_(file, dir, name);
    int broken = 0;
    if (!in) return 1;
    while (!broken && !feof(in)) {
        if (data_room_(bytes, 1)) {
            broken = data_fail_(file, "expected less than a gigabyte, found more, or the memory is used up");
            break;
        }
        errno = 0;
        bytes->n += fread(bytes->at + bytes->n, 1, bytes->room - bytes->n, in);
        if (ferror(in) && errno == EINTR) clearerr(in);
        else if (ferror(in)) broken = data_fail_(file, "expected a file that can be read, found: %s", strerror(errno));
    }
    fclose(in);
    return broken;
}

/* ---- unpacking gzip (RFC 1952 around RFC 1951): functions return NULL, or what is wrong with the bytes ---- */

enum { DATA_CODE_ = 15 }; /* the longest code in bits */
/* by the next 15 bits: symbol * 16 + length, 0 for none */
typedef uint16_t data_codes_[1 << DATA_CODE_];
typedef struct data_packed_ {
    /* `at` runs on behind the end, where zeros are read */
    const uint8_t *in;
    size_t n, at;
    uint64_t hold;
    int held; /* bits read ahead, the next one lowest */
    data_bytes_ *out;
    data_codes_ symbols, distances;
} data_packed_;

static const char data_short_[] = "it ends too early", data_wrong_[] = "it is damaged";
static const char data_large_[] = "unpacked it has more than a gigabyte, or the memory is used up";

static inline uint32_t data_take_(data_packed_ *p, int bits) /* up to 32; at least 49 are in hold before */
{
    uint32_t value;
    for (; p->held <= 48; p->held += 8, p->at++) p->hold |= (uint64_t)(p->at < p->n ? p->in[p->at] : 0) << p->held;
    value = (uint32_t)(p->hold & (((uint64_t)1 << bits) - 1));
    p->hold >>= bits;
    p->held -= bits;
    return value;
}

/* bytes; more than n: it ended too early */
static inline size_t data_taken_(const data_packed_ *p) { return p->at - (size_t)(p->held / 8); }

static inline int data_symbol_(data_packed_ *p, const uint16_t *codes) /* -1: no such code */
{
    int entry;
    data_take_(p, 0);
    entry = codes[p->hold & 0x7fff];
    data_take_(p, entry & 15);
    return entry ? entry >> 4 : -1;
}

/* The codes that have these lengths: counting up in the order of length, then symbol; looked up with their first
   bit lowest. */
static inline const char *data_codes_of_(uint16_t *codes, const uint8_t *lengths, int count) {
    uint32_t code = 0, bit, reversed, i;
    int length, symbol;
    memset(codes, 0, sizeof(data_codes_));
    for (length = 1; length <= DATA_CODE_; length++, code <<= 1)
        for (symbol = 0; symbol < count; symbol++) {
            if (lengths[symbol] != length) continue;
            if (code >> length) return data_wrong_;
            for (reversed = 0, bit = 0; bit < (uint32_t)length; bit++) reversed = reversed << 1 | (code >> bit & 1);
            for (i = reversed; i < 1u << DATA_CODE_; i += 1u << length) codes[i] = (uint16_t)(symbol * 16 + length);
            code++;
        }
    return NULL;
}

static inline const char *data_fixed_(data_packed_ *p) {
    uint8_t lengths[288], fives[30];
    int i;
    for (i = 0; i < 288; i++) lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    memset(fives, 5, sizeof fives);
    data_codes_of_(p->symbols, lengths, 288);
    return data_codes_of_(p->distances, fives, 30);
}

/* the lengths come packed too: 16, 17 and 18 are runs of the last one or of 0 */
static inline const char *data_dynamic_(data_packed_ *p) {
    static const uint8_t order[19] = { 16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15 };
    uint8_t lengths[320] = { 0 };
    const int symbols = (int)data_take_(p, 5) + 257, distances = (int)data_take_(p, 5) + 1,
              first = (int)data_take_(p, 4) + 4;
    int i, symbol, run, value;
    for (i = 0; i < first; i++) lengths[order[i]] = (uint8_t)data_take_(p, 3);
    if (symbols > 286 || distances > 30 || data_codes_of_(p->symbols, lengths, 19)) return data_wrong_;
    for (i = 0; i < symbols + distances;) {
        symbol = data_symbol_(p, p->symbols);
        if (symbol < 0 || (symbol == 16 && i == 0)) return data_wrong_;
        value = symbol < 16 ? symbol : symbol == 16 ? lengths[i - 1] : 0;
        run = symbol < 16  ? 1
            : symbol == 16 ? 3 + (int)data_take_(p, 2)
            : symbol == 17 ? 3 + (int)data_take_(p, 3)
                           : 11 + (int)data_take_(p, 7);
        if (run > symbols + distances - i) return data_wrong_;
        while (run--) lengths[i++] = (uint8_t)value;
    }
    if (data_codes_of_(p->symbols, lengths, symbols)) return data_wrong_;
    return data_codes_of_(p->distances, lengths + symbols, distances);
}

static inline const char *data_coded_(data_packed_ *p) /* a block of literals and copies of what came before */
{
    data_bytes_ *out = p->out;
    for (;;) {
        int symbol = data_symbol_(p, p->symbols), extra;
        size_t length, distance;
        if (symbol == 256 || data_taken_(p) > p->n) return NULL;
        if (symbol < 0 || symbol > 285) return data_wrong_;
        if (out->room - out->n < 258 && data_room_(out, 258)) return data_large_;
        if (symbol < 256) {
            out->at[out->n++] = (uint8_t)symbol;
            continue;
        }
        symbol -= 257;
        extra = symbol < 8 ? 0 : symbol / 4 - 1;
        length = symbol == 28 ? 258
            : symbol < 8      ? (size_t)symbol + 3
                              : ((size_t)(4 + symbol % 4) << extra) + 3 + data_take_(p, extra);
        symbol = data_symbol_(p, p->distances);
        if (symbol < 0) return data_wrong_;
        extra = symbol < 4 ? 0 : symbol / 2 - 1;
        distance = (symbol < 4 ? (size_t)symbol : (size_t)(2 + symbol % 2) << extra) + 1 + data_take_(p, extra);
        if (distance > out->n) return data_wrong_;
        for (; length; length--, out->n++) out->at[out->n] = out->at[out->n - distance];
    }
}

static inline const char *data_stored_(data_packed_ *p) {
    uint32_t length;
    data_take_(p, p->held % 8);
    length = data_take_(p, 16);
    if ((length ^ data_take_(p, 16)) != 0xffff) return data_wrong_;
    if (data_room_(p->out, length)) return data_large_;
    while (length--) p->out->at[p->out->n++] = (uint8_t)data_take_(p, 8);
    return NULL;
}

static inline uint32_t data_sum_(const uint8_t *at, size_t n) /* CRC-32 */
{
    uint32_t table[256], sum = 0xffffffffu, i, bit;
    for (i = 0; i < 256; i++)
        for (table[i] = i, bit = 0; bit < 8; bit++) table[i] = table[i] >> 1 ^ (0xedb88320u & (0u - (table[i] & 1)));
    while (n--) sum = sum >> 8 ^ table[(sum ^ *at++) & 255];
    return ~sum;
}

static inline const char *data_unpack_(data_packed_ *p) {
    const uint32_t method = data_take_(p, 24), flags = data_take_(p, 8);
    const char *wrong = NULL;
    uint32_t i, last = 0, sum, size;
    if (method != 0x088b1f || flags > 31) return p->n < 4 ? data_short_ : "it is packed in another way";
    /* the time and two hints; then what the flags announce */
    for (i = 0; i < 6; i++) data_take_(p, 8);
    for (i = flags & 4 ? data_take_(p, 16) : 0; i; i--) data_take_(p, 8);
    for (i = 8; i <= 16; i *= 2)
        while ((flags & i) && data_take_(p, 8) && data_taken_(p) <= p->n) continue;
    if (flags & 2) data_take_(p, 16);
    while (!wrong && !last && data_taken_(p) <= p->n) {
        last = data_take_(p, 1);
        i = data_take_(p, 2);
        wrong = i == 0 ? data_stored_(p) : i == 1 ? data_fixed_(p) : i == 2 ? data_dynamic_(p) : data_wrong_;
        if (!wrong && i) wrong = data_coded_(p);
    }
    data_take_(p, p->held % 8);
    /* zeros from behind the end can look like damage */
    if (!wrong || data_taken_(p) > p->n) {
        sum = data_take_(p, 32);
        size = data_take_(p, 32);
        wrong = data_taken_(p) > p->n                                                ? data_short_
            : data_taken_(p) < p->n                                                  ? "there are bytes behind it"
            : size != (uint32_t)p->out->n || sum != data_sum_(p->out->at, p->out->n) ? "its checksum differs"
                                                                                     : NULL;
    }
    return wrong;
}

static inline int data_gunzip_(data_file_ *file) /* replaces the bytes of a packed file by what they stand for */
{
    data_bytes_ out = { NULL, 0, 0 };
    data_packed_ *p = (data_packed_ *)calloc(1, sizeof *p);
    const char *wrong = data_large_;
    if (p && !data_room_(&out, 1)) {
        p->in = file->bytes.at;
        p->n = file->bytes.n;
        p->out = &out;
        wrong = data_unpack_(p);
    }
    if (wrong)
        data_fail_(
            file, "expected one whole file packed by gzip, found %lu bytes: %s", (unsigned long)file->bytes.n, wrong);
    free(p);
    free(file->bytes.at);
    file->bytes = out;
    return wrong != NULL;
}

static inline uint32_t data_u32_(const uint8_t *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* ---- MNIST's format: big-endian numbers, then a byte per pixel or label ---- */

/* Reads one file of `dims` sizes into size[], and keeps its payload in file->bytes. */
static inline int data_idx_(data_file_ *file, const char *dir, const char *name, uint32_t dims, uint32_t *size) {
    const size_t header = 4 + 4 * (size_t)dims;
    const char *const what = dims == 3 ? "images" : "labels";
    uint64_t expected = 1;
    uint32_t i;
    if (data_read_(file, dir, name)) return 1;
    if (file->bytes.n >= 2 && file->bytes.at[0] == 0x1f && file->bytes.at[1] == 0x8b && data_gunzip_(file)) return 1;
    if (file->bytes.n >= 4 && data_u32_(file->bytes.at) != 0x800 + dims)
        return data_fail_(
            file, "expected %s, which begin with %08x, found %08x", what, 0x800u + dims, data_u32_(file->bytes.at));
    if (file->bytes.n < header)
        return data_fail_(file, "expected a header of %lu bytes, found %lu in all", (unsigned long)header,
            (unsigned long)file->bytes.n);
    for (i = 0; i < dims; i++) {
        size[i] = data_u32_(file->bytes.at + 4 + 4 * i);
        if (i > 0 && (size[i] == 0 || size[i] > DATA_SIDE_MAX_))
            return data_fail_(file, "expected images of 1 to %d pixels a side, found %lu", (int)DATA_SIDE_MAX_,
                (unsigned long)size[i]);
        expected *= size[i]; /* at most 2^32 * 2^12 * 2^12 */
    }
    if (size[0] == 0) return data_fail_(file, "expected at least one of the %s, found none", what);
    if (file->bytes.n - header != expected)
        return data_fail_(file, "expected %llu bytes for %lu %s, found %lu", (unsigned long long)expected,
            (unsigned long)size[0], what, (unsigned long)(file->bytes.n - header));
    memmove(file->bytes.at, file->bytes.at + header, (size_t)expected);
    return 0;
}

static inline int data_part_load_(
    data_set *set, data_part *part, data_file_ *file, const char *dir, const char *images, const char *labels) {
    uint32_t size[3] = { 0 }, count = 0;
    size_t i;
    if (data_idx_(file, dir, images, 3, size)) return 1;
    if (set->height && (set->height != (int)size[1] || set->width != (int)size[2]))
        return data_fail_(file, "expected images of %dx%d, as those to train on, found %lux%lu", set->height,
            set->width, (unsigned long)size[1], (unsigned long)size[2]);
    set->height = (int)size[1];
    set->width = (int)size[2];
    part->images = file->bytes.at;
    memset(&file->bytes, 0, sizeof file->bytes);
    if (data_idx_(file, dir, labels, 1, &count)) return 1;
    if (count != size[0])
        return data_fail_(file, "expected a label for each of the %lu in %s, found %lu", (unsigned long)size[0], images,
            (unsigned long)count);
    part->labels = file->bytes.at;
    part->count = count;
    memset(&file->bytes, 0, sizeof file->bytes);
    for (i = 0; i < part->count; i++)
        if (part->labels[i] >= set->classes) set->classes = part->labels[i] + 1;
    return 0;
}

static inline int data_load(data_set *set, const char *dir, char *why, size_t why_bytes) {
    data_file_ file;
    int broken;
    memset(&file, 0, sizeof file);
    memset(set, 0, sizeof *set);
    file.why = why;
    file.why_bytes = why_bytes;
    set->classes = 2;
    broken = data_part_load_(set, &set->train, &file, dir, "train-images-idx3-ubyte", "train-labels-idx1-ubyte") ||
        data_part_load_(set, &set->test, &file, dir, "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte");
    free(file.bytes.at);
    if (broken) data_free(set);
    return broken;
}

static inline void data_free(data_set *set) {
    free(set->train.images);
    free(set->train.labels);
    free(set->test.images);
    free(set->test.labels);
    memset(set, 0, sizeof *set);
}

/* ---- drawn digits: lengths in 1/64 pixel, everything in integers ---- */

enum { DATA_GLYPH_ = 16 };

/* Two or three ways to write each digit: the points xy of a pen's path on a grid of 10x10, y down; it turns
   smoothly near each point, sharply at one given twice, and lifts at a '/'. */
static const char *const data_digits_[10][3] = {
    { "50 20 13 16 29 59 79 86 83 70 40", "60 30 12 16 39 69 86 82 50", "40 20 14 29 49 69 85 70 40" },
    { "32 51 50 50 59", "50 50 49 49", "33 50 50 59 59/39 39 79 79" },
    { "22 30 70 83 54 19 19 89", "12 30 80 84 38 29 16 38 89", "22 20 80 84 56 19 19 19 89" },
    { "11 40 91 84 44 44 94 89 39 18", "10 10 80 80 44 44 94 89 29 18", "21 60 83 54 34 34 64 97 59 29 17" },
    { "50 16 16 86/63 63 69 69", "60 60 15 15 85/60 60 69 69", "20 20 25 25 85/70 70 79 79" },
    { "80 30 30 24 24 63 96 79 18", "80 20 20 14 14 84 89 59 19", "70 30 30 34 34 73 86 79 28" },
    { "70 31 15 18 59 88 74 34 16", "50 22 15 19 79 85 45 17", "60 20 16 39 79 86 54 26 28" },
    { "10 80 80 39", "10 80 80 49/25 75 75", "11 10 80 80 55 49" },
    { "70 20 13 54 86 79 29 16 54 83 70 40", "60 20 13 55 97 59 17 55 93 50", "50 20 23 50 80 73 44 16 29 69 86 44" },
    { "82 50 21 15 55 82 82 79", "80 30 14 45 83 80 80 69 39", "71 30 24 64 81 71 71 77 59 28" },
};

typedef struct data_pen_ {
    int x, y, inner, outer;
    int cos, sin, wide, high, slant, left, top;
} data_pen_;

static inline uint64_t data_mix_(uint64_t x) {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static inline uint64_t data_stream_(uint64_t seed, int part, uint64_t index) {
    return data_mix_(data_mix_(data_mix_(seed + 0x9e3779b97f4a7c15u) + (uint64_t)part) + index);
}

static inline uint64_t data_random_(uint64_t *stream) { return data_mix_(*stream += 0x9e3779b97f4a7c15u); }

static inline int data_between_(uint64_t *stream, int low, int high) /* low <= result <= high */
{
    return low + (int)((data_random_(stream) >> 32) * (uint64_t)(high - low + 1) >> 32);
}

/* A line from where the pen is: each pixel keeps the darkest ink that it got, full within `inner` of the line and
   none from `outer` on. */
static inline void data_line_(data_pen_ *pen, int x, int y, int *ink) {
    const int dx = x - pen->x, dy = y - pen->y, square = dx * dx + dy * dy, full = pen->inner * pen->inner,
              none = pen->outer * pen->outer;
    const int x0 = (dx < 0 ? x : pen->x) - pen->outer, x1 = (dx < 0 ? pen->x : x) + pen->outer;
    const int y0 = (dy < 0 ? y : pen->y) - pen->outer, y1 = (dy < 0 ? pen->y : y) + pen->outer;
    int row, col;
    for (row = y0 < 64 ? 0 : y0 / 64; row < DATA_GLYPH_ && row * 64 <= y1; row++)
        for (col = x0 < 64 ? 0 : x0 / 64; col < DATA_GLYPH_ && col * 64 <= x1; col++) {
            int px = col * 64 + 32 - pen->x, py = row * 64 + 32 - pen->y, far, dot = px * dx + py * dy, value;
            if (dot >= square) px -= dx, py -= dy;
            else if (dot > 0) {
                px -= (int)((int64_t)dx * dot / square);
                py -= (int)((int64_t)dy * dot / square);
            }
            far = px * px + py * py;
            value = far <= full ? 255 : far >= none ? 0 : 255 * (none - far) / (none - full);
            if (ink[row * DATA_GLYPH_ + col] < value) ink[row * DATA_GLYPH_ + col] = value;
        }
    pen->x = x;
    pen->y = y;
}

/* A point of the grid as this hand places it: x and y in 1/16 of a step of the grid, from its middle. */
static inline void data_place_(const data_pen_ *pen, int x, int y, int *at) {
    const int v = y * pen->high / 16, u = x * pen->wide / 16 + pen->slant * v / 64;
    at[0] = pen->left + (pen->cos * u - pen->sin * v) / 1024;
    at[1] = pen->top + (pen->sin * u + pen->cos * v) / 1024;
}

/* One stroke: through the middles between its points, bent towards the points, as a quadratic spline. Returns
   where it ends. */
static inline const char *data_stroke_(data_pen_ *pen, const char *path, int wobble, uint64_t *stream, int *ink) {
    int point[16][2] = { { 0 } }, count = 0, i, k;
    for (; *path && *path != '/'; path += path[2] == ' ' ? 3 : 2, count++) {
        /* in this order everywhere */
        const int x = data_between_(stream, -wobble, wobble), y = data_between_(stream, -wobble, wobble);
        data_place_(pen, (path[0] - '0') * 16 - 72 + x, (path[1] - '0') * 16 - 72 + y, point[count]);
    }
    pen->x = point[0][0];
    pen->y = point[0][1];
    for (i = 1; i + 1 < count; i++) {
        const int ends = i + 2 == count, x0 = pen->x, y0 = pen->y, x1 = point[i][0], y1 = point[i][1];
        const int x2 = ends ? point[i + 1][0] : (x1 + point[i + 1][0]) / 2,
                  y2 = ends ? point[i + 1][1] : (y1 + point[i + 1][1]) / 2;
        for (k = 1; k <= 3; k++)
            data_line_(pen, (x0 * (3 - k) * (3 - k) + 2 * x1 * k * (3 - k) + x2 * k * k) / 9,
                (y0 * (3 - k) * (3 - k) + 2 * y1 * k * (3 - k) + y2 * k * k) / 9, ink);
    }
    return *path ? path + 1 : path;
}

static inline void data_hand_(data_pen_ *pen, uint64_t *stream) /* how this digit is held, sized and placed */
{
    /* half the angle has the tangent turn / 64 */
    const int turn = data_between_(stream, -8, 8), whole = 4096 + turn * turn;
    pen->cos = 1024 * (4096 - turn * turn) / whole;
    pen->sin = 1024 * 128 * turn / whole;
    pen->wide = data_between_(stream, 56, 88);
    pen->high = data_between_(stream, 60, 88);
    pen->slant = data_between_(stream, -18, 18);
    pen->left = 512 + data_between_(stream, -88, 88);
    pen->top = 512 + data_between_(stream, -88, 88);
    pen->inner = data_between_(stream, 8, 56);
    pen->outer = pen->inner + 52;
}

static inline void data_stray_(uint64_t *stream, int *ink) /* a short line that means nothing */
{
    const int dx = data_between_(stream, -320, 320), dy = data_between_(stream, -320, 320);
    data_pen_ pen;
    memset(&pen, 0, sizeof pen);
    pen.inner = data_between_(stream, 8, 32);
    pen.outer = pen.inner + 52;
    pen.x = data_between_(stream, 0, 1023);
    pen.y = data_between_(stream, 0, 1023);
    data_line_(&pen, pen.x + dx, pen.y + dy, ink);
}

static inline void data_blot_(uint64_t *stream, int *ink) /* a rectangle without ink */
{
    const int high = data_between_(stream, 2, 6), wide = data_between_(stream, 2, 6);
    const int top = data_between_(stream, 0, DATA_GLYPH_ - high), left = data_between_(stream, 0, DATA_GLYPH_ - wide);
    int row;
    for (row = top; row < top + high; row++) memset(ink + row * DATA_GLYPH_ + left, 0, (size_t)wide * sizeof *ink);
}

static inline void data_glyph_(uint64_t seed, int part, uint64_t index, uint8_t *image, uint8_t *label) {
    uint64_t stream = data_stream_(seed, part, index), tens = data_stream_(~seed, part, index / 10), noise = 0;
    const int digit = (int)((index % 10 + (tens >> 32)) % 10), bright = data_between_(&stream, 110, 255),
              grain = data_between_(&stream, 10, 36);
    int ink[DATA_GLYPH_ * DATA_GLYPH_] = { 0 }, count, i;
    const char *path = data_digits_[digit][data_between_(&stream, 0, 2)];
    data_pen_ pen;
    memset(&pen, 0, sizeof pen);
    data_hand_(&pen, &stream);
    while (*path) path = data_stroke_(&pen, path, 7, &stream, ink);
    for (count = data_between_(&stream, -5, 1); count > 0; count--) data_blot_(&stream, ink);
    for (count = data_between_(&stream, -1, 1); count > 0; count--) data_stray_(&stream, ink);
    for (i = 0; i < DATA_GLYPH_ * DATA_GLYPH_; i++, noise >>= 16) {
        int value;
        if (i % 4 == 0) noise = data_random_(&stream);
        value = ink[i] * bright / 255 + 24 + ((int)(noise & 255) - (int)(noise >> 8 & 255)) * grain / 128;
        image[i] = (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
    }
    *label = (uint8_t)digit;
}

static inline int data_part_draw_(data_part *part, uint64_t seed, int which, size_t count) {
    const size_t pixels = DATA_GLYPH_ * DATA_GLYPH_;
    size_t i;
    if (count == 0 || count > SIZE_MAX / pixels) return 1;
    part->images = (uint8_t *)malloc(count * pixels);
    part->labels = (uint8_t *)malloc(count);
    if (!part->images || !part->labels) return 1;
    part->count = count;
    for (i = 0; i < count; i++) data_glyph_(seed, which, i, part->images + i * pixels, part->labels + i);
    return 0;
}

static inline int data_glyphs(data_set *set, uint64_t seed, size_t train, size_t test, char *why, size_t why_bytes) {
    memset(set, 0, sizeof *set);
    set->height = set->width = DATA_GLYPH_;
    set->classes = 10;
    if (!data_part_draw_(&set->train, seed, 0, train) && !data_part_draw_(&set->test, seed, 1, test)) return 0;
    data_free(set);
    snprintf(why, why_bytes,
        "glyphs: expected at least one image to train on and one to test, and the memory for them, found %lu and %lu",
        (unsigned long)train, (unsigned long)test);
    return 1;
}

#endif /* DATA_H */
