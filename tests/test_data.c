/* bench/data.h: files in MNIST's format, packed or not, and everything that can be wrong with them; the drawn
   digits, whose bytes are frozen. */
#define _POSIX_C_SOURCE 200809L
#include "bench/data.h"
#include <sys/stat.h>
#include <unistd.h>
#include "greatest.h"

enum { HIGH = 4, WIDE = 5, TRAINED = 7, TESTED = 3 };
static const char *const names[4] = { "train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte" };
static char folder[512], why[1024];
static data_set set;

/* ---- writing sets ---- */

typedef struct blob {
    uint8_t at[4096];
    size_t n;
} blob;

static char *path(int which, const char *suffix) {
    static char text[640];
    snprintf(text, sizeof text, "%s/%s%s", folder, names[which], suffix);
    return text;
}

static void forget(void) /* empties the folder */
{
    int i;
    for (i = 0; i < 4; i++) {
        remove(path(i, ""));
        remove(path(i, ".gz"));
    }
}

static void leave(void) {
    forget();
    rmdir(folder);
}

static void save(int which, const char *suffix, const uint8_t *at, size_t n) {
    FILE *out;
    remove(path(which, suffix)); /* a new file: some file systems write one that is cut to 0 at once */
    out = fopen(path(which, suffix), "wb");
    if (!out || fwrite(at, 1, n, out) != n || fclose(out)) {
        perror(path(which, suffix));
        exit(2);
    }
}

static void put(blob *b, uint32_t value, int bytes, int big) {
    int i;
    for (i = 0; i < bytes; i++) b->at[b->n++] = (uint8_t)((uint64_t)value >> 8 * (big ? bytes - 1 - i : i));
}

static uint8_t pixel(int which, size_t i) { return (uint8_t)(i * 37 + i / 7 + (size_t)which * 11); }
static uint8_t label(int which, size_t i) { return (uint8_t)((i * 3 + (size_t)which) % 10); }

static blob idx(int which) /* file `which` of a good set */
{
    blob b;
    const uint32_t count = which < 2 ? TRAINED : TESTED;
    size_t i;
    b.n = 0;
    put(&b, which % 2 ? 0x801 : 0x803, 4, 1);
    put(&b, count, 4, 1);
    if (which % 2 == 0) {
        put(&b, HIGH, 4, 1);
        put(&b, WIDE, 4, 1);
    }
    for (i = 0; i < (which % 2 ? count : count * HIGH * WIDE); i++)
        b.at[b.n++] = which % 2 ? label(which, i) : pixel(which, i);
    return b;
}

static uint32_t crc(const uint8_t *at, size_t n) /* bit by bit, by itself */
{
    uint32_t sum = 0xffffffffu;
    size_t i;
    int bit;
    for (i = 0; i < n; i++)
        for (sum ^= at[i], bit = 0; bit < 8; bit++) sum = sum & 1 ? sum >> 1 ^ 0xedb88320u : sum >> 1;
    return ~sum;
}

/* A gzip file made by hand: with every field that `flags` allow, and blocks that store `block` bytes each. */
static blob stored(const blob *b, uint32_t flags, size_t block) {
    blob gz;
    size_t i, j, n;
    gz.n = 0;
    put(&gz, 0x088b1f, 3, 0);
    put(&gz, flags, 7, 0);
    if (flags & 4)
        for (put(&gz, 5, 2, 0), i = 0; i < 5; i++) put(&gz, 0xe0, 1, 0);
    if (flags & 8) put(&gz, 0x00434241, 4, 0);
    if (flags & 16) put(&gz, 0x00006261, 3, 0);
    if (flags & 2) put(&gz, 0x4711, 2, 0);
    for (i = 0; i < b->n; i += n) {
        n = block < b->n - i ? block : b->n - i;
        put(&gz, i + n == b->n, 1, 0);
        put(&gz, (uint32_t)n | (uint32_t)(0xffff ^ n) << 16, 4, 0);
        for (j = 0; j < n; j++) gz.at[gz.n++] = b->at[i + j];
    }
    put(&gz, crc(b->at, b->n), 4, 0);
    put(&gz, (uint32_t)b->n, 4, 0);
    return gz;
}

static void save_set(int packed) {
    int i;
    forget();
    for (i = 0; i < 4; i++) {
        const blob b = idx(i), gz = stored(&b, 0, 64);
        save(i, packed ? ".gz" : "", packed ? gz.at : b.at, packed ? gz.n : b.n);
    }
}

static int load(void) {
    memset(why, 0, sizeof why);
    return data_load(&set, folder, why, sizeof why);
}

static int empty(void) {
    return !set.height && !set.width && !set.classes && !set.train.count && !set.train.images && !set.train.labels &&
        !set.test.count && !set.test.images && !set.test.labels;
}

/* Whether the set is the good one: everything but what is in file `except`. */
static int good(int except) {
    size_t i;
    if (set.height != HIGH || set.width != WIDE || set.train.count != TRAINED || set.test.count != TESTED) return 0;
    if (except % 2 != 1 && set.classes != 10) return 0;
    for (i = 0; i < TRAINED * HIGH * WIDE && except != 0; i++)
        if (set.train.images[i] != pixel(0, i)) return 0;
    for (i = 0; i < TRAINED && except != 1; i++)
        if (set.train.labels[i] != label(1, i)) return 0;
    for (i = 0; i < TESTED * HIGH * WIDE && except != 2; i++)
        if (set.test.images[i] != pixel(2, i)) return 0;
    for (i = 0; i < TESTED && except != 3; i++)
        if (set.test.labels[i] != label(3, i)) return 0;
    return 1;
}

/* The load fails, names the file and says these things, and leaves nothing behind. */
static int refused(int which, const char *suffix, const char *expected, const char *found) {
    const size_t length = strlen(path(which, suffix));
    if (load() && empty() && strncmp(why, path(which, suffix), length) == 0 && strncmp(why + length, ": ", 2) == 0 &&
        strstr(why + length, expected) && strstr(why + length, found))
        return 1;
    printf("wanted %s%s: ...%s...%s, got: %s\n", names[which], suffix, expected, found, why);
    data_free(&set);
    return 0;
}

static int gzip(const char *options) /* packs the whole set; 0 if there is such a program */
{
    char command[800];
    snprintf(command, sizeof command, "gzip -f %s '%s'/*-ubyte 2>/dev/null", options, folder);
    return system(command);
}

/* ---- sets that are right ---- */

TEST plain(void) {
    save_set(0);
    ASSERT_EQm(why, 0, load());
    ASSERT(good(-1));
    data_free(&set);
    ASSERT(empty());
    data_free(&set);
    PASS();
}

TEST stored_blocks(uint32_t flags) {
    int i;
    save_set(1);
    for (i = 0; i < 4; i++) {
        const blob b = idx(i), gz = stored(&b, flags, (size_t)i * 10 + 1);
        save(i, ".gz", gz.at, gz.n);
    }
    ASSERT_EQm(why, 0, load());
    ASSERT(good(-1));
    data_free(&set);
    PASS();
}

TEST mixed(void) /* some packed; the plain one goes first; what is inside counts, not the name */
{
    blob b = idx(2), gz = stored(&b, 0, 999);
    save_set(0);
    remove(path(2, ""));
    save(2, ".gz", gz.at, gz.n);
    ASSERT_EQm(why, 0, load());
    ASSERT(good(-1));
    data_free(&set);
    save(0, ".gz", (const uint8_t *)"rubbish", 7);
    ASSERT_EQm(why, 0, load());
    ASSERT(good(-1));
    data_free(&set);
    save(2, "", gz.at, gz.n);
    save(2, ".gz", (const uint8_t *)"rubbish", 7);
    ASSERT_EQm(why, 0, load());
    ASSERT(good(-1));
    data_free(&set);
    PASS();
}

TEST classes(void) /* one more than the largest label of both parts, from 2 to 256 */
{
    static const int largest[] = { 0, 1, 2, 9, 10, 255 };
    size_t k;
    int part;
    for (k = 0; k < sizeof largest / sizeof *largest; k++)
        for (part = 0; part < 2; part++) {
            blob a = idx(1), b = idx(3);
            memset(a.at + 8, 0, TRAINED);
            memset(b.at + 8, 0, TESTED);
            (part ? b.at : a.at)[9] = (uint8_t)largest[k];
            save_set(0);
            save(1, "", a.at, a.n);
            save(3, "", b.at, b.n);
            ASSERT_EQm(why, 0, load());
            ASSERT_EQ_FMT(largest[k] < 1 ? 2 : largest[k] + 1, set.classes, "%d");
            data_free(&set);
        }
    PASS();
}

/* What gzip makes of bytes of every kind: nothing, noise, long runs, text, copies from far away; more than its
   window. */
TEST packed_by_gzip(int kind) {
    static const char *const options[] = { "-1", "-n", "-9" };
    const uint32_t count = kind == 0 ? 1 : 300, side = kind == 0 ? 2 : 28;
    const size_t n = (size_t)count * side * side;
    uint8_t *all = (uint8_t *)calloc(1, n + 16);
    uint64_t stream = (uint64_t)kind;
    blob head;
    size_t i;
    int k, broken, same;
    if (!all) exit(2);
    head.n = 0;
    put(&head, 0x803, 4, 1);
    put(&head, count, 4, 1);
    put(&head, side, 4, 1);
    put(&head, side, 4, 1);
    memcpy(all, head.at, 16);
    for (i = 0; i < n; i++) {
        const uint64_t r = data_random_(&stream);
        all[16 + i] = (uint8_t)r;
        if (kind < 2) all[16 + i] = 7;
        if (kind == 3) all[16 + i] = (uint8_t) "etaoin shrdlu cmfwyp"[r % 20 * (r >> 40 & 15) / 16];
        if (kind == 4 && i >= 31000 && i % 1000 < 990) all[16 + i] = all[16 + i - 31000];
    }
    for (k = 0; k < 3; k++) {
        save_set(0);
        save(0, "", all, n + 16);
        head.n = 0;
        put(&head, 0x801, 4, 1);
        put(&head, count, 4, 1);
        memset(head.at + 8, 3, count);
        save(1, "", head.at, 8 + count);
        memset(head.at, 0, sizeof head.at);
        head.n = 0;
        put(&head, 0x803, 4, 1);
        put(&head, 1, 4, 1);
        put(&head, side, 4, 1);
        put(&head, side, 4, 1);
        save(2, "", head.at, 16 + side * side);
        save(3, "", (const uint8_t *)"\0\0\10\1\0\0\0\1\11", 9);
        if (gzip(options[k])) {
            free(all);
            SKIPm("no gzip");
        }
        broken = load();
        same = !broken && set.train.count == count && set.height == (int)side &&
            memcmp(set.train.images, all + 16, n) == 0 && set.train.labels[count - 1] == 3 && set.test.count == 1 &&
            set.test.labels[0] == 9 && set.classes == 10;
        data_free(&set);
        if (!same) {
            free(all);
            FAILm(broken ? why : options[k]);
        }
    }
    free(all);
    PASS();
}

/* A block with codes that the standard fixes, made by hand: copies of every length from 3 to 258 and many
   distances, as gzip seldom makes them. */
static void bits(uint8_t *at, size_t *n, uint32_t value, int count, int reversed) {
    int i;
    for (i = 0; i < count; i++, ++*n)
        at[*n / 8] = (uint8_t)(at[*n / 8] | (value >> (reversed ? count - 1 - i : i) & 1) << *n % 8);
}

static void literal_or_length(uint8_t *at, size_t *n, uint32_t symbol) {
    if (symbol < 144) bits(at, n, 0x30 + symbol, 8, 1);
    else if (symbol < 256) bits(at, n, 0x190 + symbol - 144, 9, 1);
    else if (symbol < 280) bits(at, n, symbol - 256, 7, 1);
    else bits(at, n, 0xc0 + symbol - 280, 8, 1);
}

/* Where each symbol starts, and how many bits follow: the two tables of RFC 1951, 3.2.5, as it prints them. */
static const uint32_t length_base[29] = { 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67,
    83, 99, 115, 131, 163, 195, 227, 258 };
static const int length_bits[29] = { 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5,
    0 };
static const uint32_t distance_base[30] = { 1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513,
    769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577 };
static const int distance_bits[30] = { 0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11,
    12, 12, 13, 13 };

static void copy(uint8_t *at, size_t *n, uint32_t length, uint32_t distance) {
    uint32_t a = 28, b = 29;
    while (length_base[a] > length) a--;
    while (distance_base[b] > distance) b--;
    literal_or_length(at, n, 257 + a);
    bits(at, n, length - length_base[a], length_bits[a], 0);
    bits(at, n, b, 5, 1);
    bits(at, n, distance - distance_base[b], distance_bits[b], 0);
}

TEST copies(void) {
    enum { ROOM = 1 << 20 };
    uint8_t *packed = (uint8_t *)calloc(1, ROOM), *wanted = (uint8_t *)calloc(1, ROOM);
    data_file_ file;
    size_t n = 8 * 10, w = 0, i;
    uint32_t k, sum;
    int same;
    if (!packed || !wanted) exit(2);
    memcpy(packed, "\x1f\x8b\x08", 3);
    /* the last block, and its codes are the fixed ones */
    bits(packed, &n, 3, 3, 0);
    literal_or_length(packed, &n, 9);
    copy(packed, &n, 11, 1); /* from the very first byte */
    for (; w < 12; w++) wanted[w] = 9;
    for (k = 0; k < 256; k++) literal_or_length(packed, &n, k), wanted[w++] = (uint8_t)k;
    for (k = 0; k < 700; k++) {
        const uint32_t length = k < 256 ? k + 3 : 3 + k * 7 % 256, d = k < 256 ? k % 37 + 1 : 1 + k * 7919 % 32768;
        const uint32_t distance = d <= w ? d : (uint32_t)w;
        copy(packed, &n, length, distance);
        for (i = 0; i < length; i++, w++) wanted[w] = wanted[w - distance];
        literal_or_length(packed, &n, k % 256);
        wanted[w++] = (uint8_t)k;
    }
    literal_or_length(packed, &n, 256);
    n = (n + 7) / 8 * 8;
    sum = crc(wanted, w);
    bits(packed, &n, sum, 32, 0);
    bits(packed, &n, (uint32_t)w, 32, 0);
    memset(&file, 0, sizeof file);
    file.why = why;
    file.why_bytes = sizeof why;
    file.bytes.at = packed;
    file.bytes.n = n / 8;
    same = !data_gunzip_(&file) && file.bytes.n == w && memcmp(file.bytes.at, wanted, w) == 0;
    free(file.bytes.at);
    free(wanted);
    ASSERTm(why, same);
    PASS();
}

TEST impossible(int which) /* what no packer writes */
{
    data_file_ file;
    size_t n = 8 * 10;
    int refusal;
    memset(&file, 0, sizeof file);
    file.why = why;
    file.why_bytes = sizeof why;
    file.bytes.at = (uint8_t *)calloc(1, 64);
    file.bytes.n = 64;
    if (!file.bytes.at) exit(2);
    memcpy(file.bytes.at, "\x1f\x8b\x08", 3);
    bits(file.bytes.at, &n, which == 0 ? 7 : 3, 3, 0); /* 0: a block of no kind */
    literal_or_length(file.bytes.at, &n, 'a');
    if (which == 1 || which == 2) literal_or_length(file.bytes.at, &n, 285 + (uint32_t)which);
    if (which == 3) literal_or_length(file.bytes.at, &n, 257), bits(file.bytes.at, &n, 30, 5, 1);
    if (which == 4) copy(file.bytes.at, &n, 3, 2); /* from before the beginning */
    if (which == 5) file.bytes.at[2] = 7;
    if (which == 6) file.bytes.at[3] = 32;
    refusal = data_gunzip_(&file);
    free(file.bytes.at);
    ASSERT(refusal);
    ASSERTm(why, strstr(why, which < 5 ? "it is damaged" : "it is packed in another way"));
    PASS();
}

/* ---- sets that are wrong ---- */

TEST missing(void) {
    data_file_ file;
    int i;
    for (i = 0; i < 4; i++) {
        save_set(i % 2);
        remove(path(i, i % 2 ? ".gz" : ""));
        ASSERT(refused(i, ".gz", "no such file", folder));
    }
    ASSERTm("the package has Fashion-MNIST only", !strstr(why, "apt-get"));
    for (i = 0; i < 3; i++) { /* in the package's own folder, which may have all its files */
        static const char *const spelled[] = { DATA_FASHION, DATA_FASHION "/", DATA_FASHION "//" };
        memset(&file, 0, sizeof file);
        file.why = why;
        file.why_bytes = sizeof why;
        ASSERT(!data_open_(&file, spelled[i], "missing-idx3-ubyte"));
        ASSERT(strstr(why, DATA_FASHION) == why && strstr(why, "missing-idx3-ubyte.gz: ") &&
            strstr(why, "apt-get install dataset-fashion-mnist"));
    }
    ASSERT(!data_open_(&file, DATA_FASHION "-2", "missing-idx3-ubyte"));
    ASSERT(!strstr(why, "apt-get"));
    ASSERT(!data_open_(&file, "/usr", "missing-idx3-ubyte"));
    ASSERT(!strstr(why, "apt-get"));
    PASS();
}

TEST not_a_file(void) {
    char longer[5000];
    int i;
    for (i = 0; i < 4; i++) {
        save_set(0);
        remove(path(i, ""));
        ASSERT_EQ(0, mkdir(path(i, ""), 0700));
        ASSERT(refused(i, "", "expected a file that can be read, found: ", strerror(EISDIR)));
    }
    save_set(0);
    ASSERT_NEQ(0, data_load(&set, path(0, ""), why, sizeof why)); /* the folder is a file */
    ASSERT(empty() && strstr(why, names[0]) && strstr(why, strerror(ENOTDIR)));
    memset(longer, 'x', sizeof longer);
    longer[sizeof longer - 1] = 0;
    ASSERT_NEQ(0, data_load(&set, longer, why, sizeof why));
    ASSERT(empty() && strstr(why, "xxxx") == why);
    PASS();
}

TEST not_allowed(void) {
    const uid_t who = geteuid();
    int i, ok = 1;
    if (who == 0 && (chmod(folder, 0755) || seteuid(65534))) SKIPm("root may read everything");
    for (i = 0; i < 4; i++) {
        if (who == 0 && seteuid(0)) exit(2);
        save_set(0);
        chmod(path(i, ""), 0);
        if (who == 0 && seteuid(65534)) exit(2);
        ok = ok && refused(i, "", "expected a file that can be read, found: ", strerror(EACCES));
    }
    if (who == 0 && seteuid(0)) exit(2);
    ASSERT(ok);
    PASS();
}

TEST headers(void) {
    int i;
    for (i = 0; i < 4; i++) {
        const char *const what = i % 2 ? "expected labels, which begin with 00000801"
                                       : "expected images, which begin with 00000803";
        blob b = idx(i ^ 1);
        save_set(0);
        save(i, "", b.at, b.n); /* images for labels and the other way round */
        ASSERT(refused(i, "", what, i % 2 ? "found 00000803" : "found 00000801"));
        b = idx(i);
        b.at[2] = 9; /* signed bytes */
        save(i, "", b.at, b.n);
        ASSERT(refused(i, "", what, i % 2 ? "found 00000901" : "found 00000903"));
        save(i, "", (const uint8_t *)"<!DOCTYPE html><html>", 21);
        ASSERT(refused(i, "", what, "found 3c21444f"));
        b = idx(i);
        memset(b.at + 4, 0, 4); /* none */
        save(i, "", b.at, i % 2 ? 8 : 16);
        ASSERT(refused(i, "", i % 2 ? "expected at least one of the labels" : "expected at least one of the images",
            "found none"));
    }
    PASS();
}

TEST sizes(void) {
    static const uint32_t sides[] = { 0, 4097, 65536, 0x80000000u, 0xffffffffu };
    size_t k;
    int i, at;
    for (i = 0; i < 4; i += 2) {
        blob b;
        save_set(0);
        for (k = 0; k < sizeof sides / sizeof *sides; k++)
            for (at = 8; at <= 12; at += 4) {
                b = idx(i);
                b.n = (size_t)at;
                put(&b, sides[k], 4, 1);
                b.n = idx(i).n;
                save(i, "", b.at, b.n);
                ASSERT(refused(i, "", "expected images of 1 to 4096 pixels a side",
                    k == 0       ? "found 0"
                        : k == 1 ? "found 4097"
                                 : "found "));
            }
        b.n = 4;
        put(&b, 0xffffffffu, 4, 1); /* 2^56 bytes, nearly */
        put(&b, 4096, 4, 1);
        put(&b, 4096, 4, 1);
        save(i, "", b.at, idx(i).n);
        ASSERT(refused(i, "", "expected 72057594021150720 bytes for 4294967295 images", i ? "found 60" : "found 140"));
    }
    PASS();
}

TEST counts(void) {
    int i, more;
    for (i = 0; i < 4; i++)
        for (more = -1; more <= 1; more += 2) {
            blob b = idx(i);
            const size_t one = i % 2 ? 1 : HIGH * WIDE;
            const uint32_t count = (i < 2 ? TRAINED : TESTED) + (uint32_t)more;
            char found[40];
            memset(b.at + b.n, 0, one);
            save_set(0);
            /* a byte that is missing, or one too many */
            save(i, "", b.at, b.n + (size_t)more);
            snprintf(found, sizeof found, "found %lu", (unsigned long)(b.n + (size_t)more - (i % 2 ? 8 : 16)));
            ASSERT(refused(i, "",
                i < 2       ? i ? "expected 7 bytes for 7 labels" : "expected 140 bytes for 7 images"
                    : i > 2 ? "expected 3 bytes for 3 labels"
                            : "expected 60 bytes for 3 images",
                found));
            b.at[7] = (uint8_t)count; /* a whole image or label */
            save(i, "", b.at, b.n + one * (size_t)more);
            snprintf(found, sizeof found, "found %d", (int)(i % 2 ? count : (uint32_t)(i < 2 ? TRAINED : TESTED)));
            ASSERT(refused(i | 1, "", "expected a label for each of the ", found));
            ASSERT(strstr(why, names[i & 2]) != NULL);
        }
    PASS();
}

TEST shapes(void) /* images to test of another size */
{
    blob b = idx(2);
    save_set(0);
    b.at[11] = WIDE;
    b.at[15] = HIGH;
    save(2, "", b.at, b.n);
    ASSERT(refused(2, "", "expected images of 4x5", "found 5x4"));
    b.at[11] = HIGH;
    b.at[15] = 2;
    save(2, "", b.at, 16 + TESTED * HIGH * 2);
    ASSERT(refused(2, "", "expected images of 4x5", "found 4x2"));
    b.at[11] = 2;
    b.at[15] = WIDE;
    save(2, "", b.at, 16 + TESTED * 2 * WIDE);
    ASSERT(refused(2, "", "expected images of 4x5", "found 2x5"));
    PASS();
}

TEST truncated(int packed) /* 0: not packed, 1: stored, 2: by gzip; at every length */
{
    static uint8_t all[4096];
    const char *const suffix = packed ? ".gz" : "";
    size_t n, length;
    int i;
    for (i = 0; i < 4; i++) {
        FILE *in;
        save_set(packed == 1);
        if (packed == 2 && gzip("-9")) SKIPm("no gzip");
        in = fopen(path(i, suffix), "rb");
        if (!in) exit(2);
        n = fread(all, 1, sizeof all, in);
        fclose(in);
        ASSERT_EQm(why, 0, load());
        data_free(&set);
        for (length = 0; length < n; length++) {
            save(i, suffix, all, length);
            ASSERT(refused(i, suffix, !packed && length < (i % 2 ? 8u : 16u) ? "expected a header of" : "expected ",
                packed && length > 1 ? "it ends too early" : "found "));
        }
        all[n] = 0;
        save(i, suffix, all, n + 1);
        ASSERT(refused(i, suffix, "expected ", packed ? "there are bytes behind it" : "found "));
    }
    PASS();
}

/* every bit of packed files turned: an error, or a bit that does not matter. 0: stored, 1: by gzip */
TEST damaged(int how) {
    static uint8_t all[4096];
    size_t n, bit, refusals = 0;
    int i;
    for (i = 0; i < 2; i++) {
        FILE *in;
        save_set(how == 0);
        if (how && gzip("-9")) SKIPm("no gzip");
        in = fopen(path(i, ".gz"), "rb");
        if (!in) exit(2);
        n = fread(all, 1, sizeof all, in);
        fclose(in);
        for (bit = 0; bit < 8 * n; bit++) {
            all[bit / 8] ^= (uint8_t)(1 << bit % 8);
            save(i, ".gz", all, n);
            all[bit / 8] ^= (uint8_t)(1 << bit % 8);
            if (load()) {
                ASSERT(empty() && strstr(why, path(i, ".gz")) == why);
                refusals++;
            } else {
                ASSERT(good(-1));
                data_free(&set);
            }
        }
        ASSERT_GTm("all bits matter but those of the time, the name and the like", refusals, 8 * (n - (how ? 34 : 10)));
        refusals = 0;
    }
    PASS();
}

/* Bytes from nowhere behind a right header, in memory of exactly their size: a sanitizer would see a step out of it. */
TEST random_bytes(void) {
    uint64_t stream = 5;
    data_file_ file;
    int round, opened = 0;
    for (round = 0; round < 4000; round++) {
        const size_t n = (size_t)data_between_(&stream, 4, round % 10 ? 90 : 2000);
        size_t i;
        memset(&file, 0, sizeof file);
        file.why = why;
        file.why_bytes = sizeof why;
        file.bytes.at = (uint8_t *)malloc(n);
        file.bytes.n = file.bytes.room = n;
        if (!file.bytes.at) exit(2);
        for (i = 0; i < n; i++) file.bytes.at[i] = (uint8_t)data_random_(&stream);
        memcpy(file.bytes.at, "\x1f\x8b\x08", 4);
        /* fixed or own codes */
        if (n > 10) file.bytes.at[10] = (uint8_t)((file.bytes.at[10] & 0xf8) | (round % 2 ? 2 : 4) | (round >> 1 & 1));
        opened += !data_gunzip_(&file);
        free(file.bytes.at);
    }
    ASSERT_EQ_FMTm("a checksum of 32 bits was met by chance", 0, opened, "%d");
    PASS();
}

TEST raw_random(void) /* and whole files of them, not packed */
{
    uint64_t stream = 6;
    int round;
    for (round = 0; round < 500; round++) {
        uint8_t bytes[64];
        const size_t n = (size_t)data_between_(&stream, 0, 64);
        const int which = round % 4;
        size_t i;
        if (round % 50 == 0) save_set(0);
        for (i = 0; i < n; i++) bytes[i] = (uint8_t)data_random_(&stream);
        if (n >= 4 && round % 3) memcpy(bytes, which % 2 ? "\0\0\x8\1" : "\0\0\x8\3", 4);
        save(which, "", bytes, n);
        ASSERT(refused(which, "", "expected ", "found "));
        save_set(0);
    }
    PASS();
}

TEST large(void) /* sizes near the limit, without that memory */
{
    data_bytes_ bytes = { NULL, 0, 0 };
    ASSERT_EQ(0, data_room_(&bytes, 1));
    ASSERT_GTE(bytes.room, 1u);
    bytes.n = bytes.room = data_most_ - 5;
    ASSERT_NEQ(0, data_room_(&bytes, 6));
    ASSERT_NEQ(0, data_room_(&bytes, SIZE_MAX));
    free(bytes.at);
    PASS();
}

TEST room_for_why(void) {
    char text[600];
    size_t room;
    forget();
    ASSERT_NEQ(0, data_load(&set, folder, NULL, 0));
    ASSERT_NEQ(0, data_glyphs(&set, 1, 0, 1, NULL, 0));
    for (room = 1; room < 300; room++) {
        memset(text, '#', sizeof text);
        ASSERT_NEQ(0, data_load(&set, folder, text, room));
        ASSERT(strlen(text) < room && text[room] == '#');
        memset(text, '#', sizeof text);
        ASSERT_NEQ(0, data_glyphs(&set, 1, 1, 0, text, room));
        ASSERT(strlen(text) < room && text[room] == '#');
    }
    PASS();
}

/* ---- the real thing ---- */

TEST fashion(void) {
    size_t train[10] = { 0 }, test[10] = { 0 }, i;
    FILE *in = fopen(DATA_FASHION "/train-images-idx3-ubyte.gz", "rb");
    if (!in) in = fopen(DATA_FASHION "/train-images-idx3-ubyte", "rb");
    if (!in) SKIPm("Fashion-MNIST is not installed");
    fclose(in);
    ASSERT_EQm(why, 0, data_load(&set, DATA_FASHION, why, sizeof why));
    ASSERT(set.height == 28 && set.width == 28 && set.classes == 10 && set.train.count == 60000 &&
        set.test.count == 10000);
    for (i = 0; i < 60000; i++) train[set.train.labels[i]]++;
    for (i = 0; i < 10000; i++) test[set.test.labels[i]]++;
    for (i = 0; i < 10; i++) ASSERT(train[i] == 6000 && test[i] == 1000);
    data_free(&set);
    PASS();
}

/* ---- drawn digits ---- */

enum { PIXELS = 256 };

static uint64_t hash(uint64_t h, const uint8_t *at, size_t n) {
    while (n--) h = (h ^ *at++) * 0x100000001b3u;
    return h;
}

TEST frozen(void) /* new numbers here mean other images: results shown elsewhere change, too */
{
    uint64_t h = 0xcbf29ce484222325u;
    ASSERT_EQ(0, data_glyphs(&set, 1, 1000, 200, why, sizeof why));
    ASSERT(
        set.height == 16 && set.width == 16 && set.classes == 10 && set.train.count == 1000 && set.test.count == 200);
    h = hash(h, set.train.images, 1000 * PIXELS);
    h = hash(h, set.train.labels, 1000);
    h = hash(h, set.test.images, 200 * PIXELS);
    h = hash(h, set.test.labels, 200);
    data_free(&set);
    ASSERT_EQ_FMT(0xa2976137df2c2233ull, (unsigned long long)h, "%#llx");
    PASS();
}

TEST balance(void) {
    size_t i, k, same = 0;
    ASSERT_EQ(0, data_glyphs(&set, 3, 5000, 1000, why, sizeof why));
    for (i = 0; i < 5000; i += 10) {
        unsigned train = 0, test = 0;
        for (k = 0; k < 10; k++) train |= 1u << set.train.labels[i + k], test |= 1u << set.test.labels[i % 1000 + k];
        ASSERT(train == 1023 && test == 1023);
        same += i >= 10 && set.train.labels[i] == set.train.labels[i - 10];
    }
    ASSERTm("labels have a period", same > 20 && same < 100); /* 50 expected of 499 */
    data_free(&set);
    PASS();
}

TEST independent(void) /* of the number of images; of nothing else */
{
    data_set small;
    size_t i;
    ASSERT_EQ(0, data_glyphs(&set, 9, 500, 50, why, sizeof why));
    ASSERT_EQ(0, data_glyphs(&small, 9, 37, 400, why, sizeof why));
    ASSERT_MEM_EQ(set.train.images, small.train.images, 37 * PIXELS);
    ASSERT_MEM_EQ(set.train.labels, small.train.labels, 37);
    ASSERT_MEM_EQ(set.test.images, small.test.images, 50 * PIXELS);
    ASSERT_MEM_EQ(set.test.labels, small.test.labels, 50);
    for (i = 0; i < 37; i++) ASSERT(memcmp(set.train.images + i * PIXELS, small.test.images + i * PIXELS, PIXELS) != 0);
    data_free(&small);
    for (i = 0; i < 4; i++) { /* seeds far apart and next to each other */
        static const uint64_t seeds[] = { 8, 10, 9 + ((uint64_t)1 << 32), ~(uint64_t)9 };
        size_t k, labels = 0;
        ASSERT_EQ(0, data_glyphs(&small, seeds[i], 500, 50, why, sizeof why));
        for (k = 0; k < 500; k++) {
            ASSERT(memcmp(set.train.images + k * PIXELS, small.train.images + k * PIXELS, PIXELS) != 0);
            labels += set.train.labels[k] == small.train.labels[k];
        }
        ASSERTm("labels of two seeds go together", labels < 150); /* 50 expected, in tens */
        data_free(&small);
    }
    data_free(&set);
    PASS();
}

TEST range(void) /* black and white and all between; no image twice, none without ink */
{
    size_t seen[256] = { 0 }, i, k, used = 0, sum = 0;
    uint64_t hashes[1000];
    ASSERT_EQ(0, data_glyphs(&set, 4, 1000, 1, why, sizeof why));
    for (i = 0; i < 1000; i++) {
        const uint8_t *image = set.train.images + i * PIXELS;
        int most = 0;
        hashes[i] = hash(0, image, PIXELS);
        for (k = 0; k < i; k++) ASSERT(hashes[k] != hashes[i]);
        for (k = 0; k < PIXELS; k++) {
            seen[image[k]]++;
            sum += image[k];
            if (image[k] > most) most = image[k];
        }
        ASSERT_GT(most, 90);
    }
    for (i = 0; i < 256; i++) used += seen[i] > 0;
    ASSERT_EQ_FMT((size_t)256, used, "%zu");
    ASSERTm("the mean of the pixels", sum > 30u * 1000 * PIXELS && sum < 90u * 1000 * PIXELS);
    data_free(&set);
    PASS();
}

/* the nearest of 3000 images is mostly, and not always, of the same class; every class is both found and missed */
TEST learnable(void) {
    size_t right[10] = { 0 }, all = 0, i, k;
    int p;
    ASSERT_EQ(0, data_glyphs(&set, 5, 3000, 500, why, sizeof why));
    for (i = 0; i < 500; i++) {
        const uint8_t *image = set.test.images + i * PIXELS;
        long least = -1;
        size_t best = 0;
        for (k = 0; k < 3000; k++) {
            const uint8_t *other = set.train.images + k * PIXELS;
            long far = 0;
            for (p = 0; p < PIXELS; p++) far += (image[p] - other[p]) * (image[p] - other[p]);
            if (least < 0 || far < least) least = far, best = k;
        }
        right[set.test.labels[i]] += set.train.labels[best] == set.test.labels[i];
        all += set.train.labels[best] == set.test.labels[i];
    }
    for (i = 0; i < 10; i++) ASSERT_GTEm("a class that cannot be told", right[i], 30u); /* of 50 */
    ASSERT_EQ_FMTm("of 500", (size_t)1, (size_t)(all >= 400 && all < 495), "%zu");
    data_free(&set);
    PASS();
}

TEST no_room(void) {
    ASSERT_NEQ(0, data_glyphs(&set, 1, SIZE_MAX / 16, 1, why, sizeof why));
    ASSERT(empty() && strstr(why, "glyphs") == why);
    ASSERT_NEQ(0, data_glyphs(&set, 1, 0, 10, why, sizeof why));
    ASSERT(empty() && strstr(why, "found 0 and 10"));
    ASSERT_NEQ(0, data_glyphs(&set, 1, 10, 0, why, sizeof why));
    ASSERT(empty() && strstr(why, "found 10 and 0"));
    PASS();
}

SUITE(files) {
    int i;
    RUN_TEST(plain);
    for (i = 0; i < 32; i++) RUN_TESTp(stored_blocks, (uint32_t)i);
    RUN_TEST(mixed);
    RUN_TEST(classes);
    for (i = 0; i < 5; i++) RUN_TESTp(packed_by_gzip, i);
    RUN_TEST(copies);
    for (i = 0; i < 7; i++) RUN_TESTp(impossible, i);
    RUN_TEST(fashion);
}

SUITE(failures) {
    int i;
    RUN_TEST(missing);
    RUN_TEST(not_a_file);
    RUN_TEST(not_allowed);
    RUN_TEST(headers);
    RUN_TEST(sizes);
    RUN_TEST(counts);
    RUN_TEST(shapes);
    for (i = 0; i < 3; i++) RUN_TESTp(truncated, i);
    for (i = 0; i < 2; i++) RUN_TESTp(damaged, i);
    RUN_TEST(random_bytes);
    RUN_TEST(raw_random);
    RUN_TEST(large);
    RUN_TEST(room_for_why);
}

SUITE(glyphs) {
    RUN_TEST(frozen);
    RUN_TEST(balance);
    RUN_TEST(independent);
    RUN_TEST(range);
    RUN_TEST(learnable);
    RUN_TEST(no_room);
}

GREATEST_MAIN_DEFS();

int main(int argc, char **argv) {
    const char *tmp = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/test_data.XXXXXX", tmp && *tmp && strlen(tmp) < 400 ? tmp : "/tmp");
    if (!mkdtemp(folder) || atexit(leave)) return 2;
    GREATEST_MAIN_BEGIN();
    RUN_SUITE(files);
    RUN_SUITE(failures);
    RUN_SUITE(glyphs);
    GREATEST_MAIN_END();
}
