/* cc -O2 -I. bench/train.c -o train -pthread -lm && ./train --help        (or: make train, make demo)

   Trains a network with many workers and each of a dozen methods of compression, and shows what that costs:
   accuracy, loss, bytes, time. Workers are threads, processes connected by TCP, or MPI ranks; whatever they are,
   the result has the same bits. */

#define _POSIX_C_SOURCE 200809L
#include "data.h"
#include "examples/transport_tcp.h"
#include "examples/transport_threads.h"
#ifdef TRAIN_MPI
#  include "examples/transport_mpi.h"
#endif
#define COMPGRAD_IMPLEMENTATION
#include "methods.h"
#include "plot.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#ifndef TRAIN_BUILD
/* what the code is: the Makefile gives a sum of it, so that no other code goes on with its checkpoints */
#  define TRAIN_BUILD ""
#endif
enum {
    WORKERS = 8,
    MAX_WORKERS = 64,
    MAX_RUNS = 64,
    MAX_SEEDS = 32,
    MAX_PATH = 300,
    SCORED = 50 /* images at once */,
    /* because of another, or of the transport; none of a transport's own codes */
    EXIT_PEER = 20,
    PATIENCE = 10, /* seconds for the others to end, after one has failed */
    LATE = 2       /* the same after a timeout: who has not ended by then is the one that was waited for */
};

/* ---- options ---- */

typedef struct options {
    const char *methods, *net, *data, *transport, *csv, *plot, *checkpoint, *dump, *optimizer, *memory;
    /* timeout: seconds; a peer that is gone is noticed at once, this is for one that stands still */
    int workers, batch, epochs, seeds, seed, timeout, layerwise, whole, resume, help;
    float ratio, rate, lambda;
    int every;
} options;
static options opt = { "all", "lenet", "fashion", "threads", NULL, NULL, "bench/out/train", NULL, NULL, NULL, 0, 16, 6,
    1, 1, 30, 0, 0, 0, 0, 0, .05f, 0, 1 };
static data_set data;
static net model;
static uint64_t data_hash;
static char command[8192];      /* as it was called, and can be called again */
static int rank_here, alone;    /* MPI: who this is, and whether the others may see no reason to end */
static int broken[MAX_WORKERS]; /* what the transport said to each worker when it failed */
static pid_t launcher;          /* of the processes that TCP connects */

/* A line to stderr by one write, so that it stays whole among those of other threads and processes. */
static void tell(const char *before, const char *format, va_list args) {
    char text[4000]; /* less than Linux's PIPE_BUF: a pipe takes it at once */
    const size_t most = sizeof text - 1;
    size_t n = (size_t)snprintf(text, sizeof text, "%strain: ", before), at;
    const int more = vsnprintf(text + n, sizeof text - n, format, args);
    ssize_t done = 0;
    n = more < 0 ? n : n + (size_t)more < most ? n + (size_t)more : most;
    text[n++] = '\n';
    for (at = 0; at < n && (done >= 0 || errno == EINTR); at += done > 0 ? (size_t)done : 0)
        done = write(2, text + at, n - at);
}

static void die(const char *format, ...) {
    va_list args;
    va_start(args, format);
    if (alone || !rank_here) tell("", format, args);
    va_end(args);
#ifdef TRAIN_MPI
    if (alone) MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Finalize(); /* all ranks have the same options, and end here */
#endif
    exit(2);
}

/* What happens in the course of training; on a terminal there may be a bar in the line. */
static void say(const char *format, ...) {
    va_list args;
    va_start(args, format);
    tell(isatty(2) ? "\n" : "", format, args);
    va_end(args);
}

static void help(void) {
    size_t i;
    printf(
        "train: a network, many workers, a dozen ways to compress what they tell each other\n\n"
        "  --method LIST     names from below, separated by commas, or all, or an operator such as "
        "'topk:0.01|absmax:4:512',\n"
        "                    which is used with error feedback                                           (all)\n"
        "  --workers N       1 to %d                                                                     (%d)\n"
        "  --ratio R         how much of a gradient top-k and its kin keep, 0 < R <= 1                   (each its "
        "own)\n"
        "  --epochs N        passes over the data                                                        (%d)\n"
        "  --batch N         images of a worker in a step                                                (%d)\n"
        "  --memory NAME     of operators: classic, none, filtered (by momentum .9), difference (of models)  "
        "(classic)\n"
        "  --lambda L        of differences: how much of their mean is taken                             (1)\n"
        "  --every N         of differences: steps of each worker between two exchanges                  (1)\n"
        "  --optimizer NAME  momentum (.9, of the mean) or adamw, at the rate as it is given   (what the method has)\n"
        "  --rate R          learning rate; it falls to 0 by a cosine                                    (%g)\n"
        "  --seeds N         every method so often, with seeds from --seed S (1) on: mean and spread     (%d)\n"
        "  --net NAME        %s                                                            (%s)\n"
        "  --data WHERE      fashion (Fashion-MNIST), glyphs (made here), or a folder with IDX files     (%s)\n"
        "  --transport NAME  threads, tcp (processes of this machine), mpi (mpirun -np N build/train_mpi)  (%s)\n"
        "  --timeout N       tcp, mpi: if a worker stands still for N seconds the others end; tcp names it    (%d)\n"
        "  --layerwise       every tensor is compressed for itself; --whole: all as one vector; both: each; none: "
        "as the method has it\n"
        "  --resume          go on where a run was stopped, and leave out what was done\n"
        "  --checkpoint DIR  where that is kept, at the end of every epoch                               (%s)\n"
        "  --csv FILE        a line for every epoch\n"
        "  --plot FILE.html  table and plots in a page; the plots also as FILE-accuracy.svg, FILE-loss.svg\n"
        "  --dump-gradients DIR   worker 0's gradient at the beginning of every epoch, as raw floats, for bench "
        "--gradients\n\n",
        (int)MAX_WORKERS, (int)WORKERS, opt.epochs, opt.batch, (double)opt.rate, opt.seeds, net_kinds(), opt.net,
        opt.data, opt.transport, opt.timeout, opt.checkpoint);
    for (i = 0; i < METHODS; i++) {
        const method *m = &methods[i];
        const net_tensor one = { "", 0, 1, 1, 1 };
        char text[96];
        cg_op op;
        if (m->ratio <= 0 || method_op_(m, m->ratio, &one, &op, text, sizeof text)) strcpy(text, m->op);
        printf("  %-11s %-17s %s\n", m->name, m->kind == SKETCHED ? "a count sketch" : text, m->about);
    }
}

static int whole_number(const char *option, const char *text, int low, int high) {
    char *end;
    const long v = strtol(text, &end, 10);
    if (*end || end == text || v < low || v > high)
        die("%s %s: give a whole number from %d to %d", option, text, low, high);
    return (int)v;
}
static float fraction(const char *option, const char *text, double high) {
    char *end;
    const double v = strtod(text, &end);
    if (*end || end == text || !((float)v > 0 && v <= high))
        die("%s %s: give a number above 0, at most %g", option, text, high);
    return (float)v;
}

static void note_argument(const char *s) {
    const int quoted = !*s || s[strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./,:=-")];
    size_t n = strlen(command);
    if (n) command[n++] = ' ';
    if (quoted) command[n++] = '\'';
    for (; *s && n < sizeof command - 8; command[n++] = *s++)
        if (*s == '\'') memcpy(command + n, "'\\'", 3), n += 3;
    if (quoted) command[n++] = '\'';
    command[n] = 0;
    if (*s || n > sizeof command - 8) die("the command is longer than %d characters", (int)sizeof command - 8);
}

static void parse(int argc, char **argv) {
    int i;
    for (i = 1; i < argc; i++) {
        const char *o = argv[i], *v = i + 1 < argc ? argv[i + 1] : NULL;
        if (!strcmp(o, "--help") || !strcmp(o, "-h")) {
            opt.help = 1;
            continue;
        }
        if (!strcmp(o, "--layerwise")) {
            opt.layerwise = 1;
            continue;
        }
        if (!strcmp(o, "--whole")) {
            opt.whole = 1;
            continue;
        }
        if (!strcmp(o, "--resume")) {
            opt.resume = 1;
            continue;
        }
        i++;
        if (strncmp(o, "--", 2)) die("\"%s\" is not an option; --help lists them", o);
        else if (!v) die("%s needs a value, or is not an option; --help lists them", o);
        else if (!strcmp(o, "--method")) opt.methods = v;
        else if (!strcmp(o, "--net")) opt.net = v;
        else if (!strcmp(o, "--data")) opt.data = v;
        else if (!strcmp(o, "--transport")) opt.transport = v;
        else if (!strcmp(o, "--csv")) opt.csv = v;
        else if (!strcmp(o, "--plot")) opt.plot = v;
        else if (!strcmp(o, "--checkpoint")) opt.checkpoint = v;
        else if (!strcmp(o, "--dump-gradients")) opt.dump = v;
        else if (!strcmp(o, "--workers")) opt.workers = whole_number(o, v, 1, MAX_WORKERS);
        else if (!strcmp(o, "--batch")) opt.batch = whole_number(o, v, 1, 4096);
        else if (!strcmp(o, "--epochs")) opt.epochs = whole_number(o, v, 1, 1000);
        else if (!strcmp(o, "--seeds")) opt.seeds = whole_number(o, v, 1, MAX_SEEDS);
        else if (!strcmp(o, "--timeout")) opt.timeout = whole_number(o, v, 1, 1000000);
        else if (!strcmp(o, "--seed")) opt.seed = whole_number(o, v, 0, 1000000);
        else if (!strcmp(o, "--optimizer")) opt.optimizer = v;
        else if (!strcmp(o, "--memory")) opt.memory = v;
        else if (!strcmp(o, "--lambda")) opt.lambda = fraction(o, v, 100);
        else if (!strcmp(o, "--every")) opt.every = whole_number(o, v, 1, 1000);
        else if (!strcmp(o, "--ratio")) opt.ratio = fraction(o, v, 1);
        else if (!strcmp(o, "--rate")) opt.rate = fraction(o, v, 100);
        else die("\"%s\" is not an option; --help lists them", o);
    }
    if (opt.optimizer && strcmp(opt.optimizer, "momentum") && strcmp(opt.optimizer, "adamw"))
        die("--optimizer %s: give momentum or adamw", opt.optimizer);
    for (i = 0; i < argc; i++) note_argument(argv[i]);
}
static int has_adamw(void) { return opt.optimizer && !strcmp(opt.optimizer, "adamw"); }

/* ---- what is run ---- */

typedef struct run {
    method m;
    int layerwise;
    char name[64];
} run;
static run runs[MAX_RUNS];
static size_t run_count;

static void add_run(const method *m, int layerwise) {
    run *r = &runs[run_count];
    size_t i;
    if (m->kind == SKETCHED || by_matrices(m)) layerwise = by_matrices(m); /* these know one way only */
    for (i = 0; i < run_count; i++)
        if (!strcmp(runs[i].m.name, m->name) && runs[i].layerwise == layerwise) return;
    if (run_count == MAX_RUNS) die("more than %d methods; give a shorter --method", (int)MAX_RUNS);
    r->m = *m;
    if (opt.optimizer) r->m.rate = 1, r->m.after = .9f;
    r->layerwise = layerwise;
    snprintf(r->name, sizeof r->name, "%s%s", m->name, layerwise && opt.whole && !by_matrices(m) ? "/layers" : "");
    run_count++;
}

static int memory_kind(void) {
    static const uint32_t kinds[] = { CG_EF_CLASSIC, CG_EF_NONE, CG_EF_FILTERED, CG_EF_DIFFERENCE };
    uint32_t kind = CG_EF_CLASSIC;
    size_t i = 0;
    const cg_status known = opt.memory ? cg_ef_kind_parse(&kind, opt.memory) : CG_OK;
    while (i < sizeof kinds / sizeof *kinds && kinds[i] != kind) i++;
    if (known != CG_OK || i == sizeof kinds / sizeof *kinds)
        die("--memory %s: give classic, none, filtered or difference", opt.memory);
    return (int)kind;
}
static void choose(void) {
    char list[512], *name, *next;
    size_t i;
    if (strlen(opt.methods) >= sizeof list) die("--method: the list is too long");
    strcpy(list, opt.methods);
    for (name = list; name; name = next) {
        method own = { "", "", 0, CG_EF_CLASSIC, 0, CG_ROUTE_AUTO, CG_FOLD_MEAN, 0, .9f, 1,
            "an operator with error feedback" };
        const int all = !strcmp(name, "all") || !strncmp(name, "all,", 4);
        const method *m;
        cg_op op;
        if ((next = strchr(name, ','))) *next++ = 0;
        m = find_method(name);
        if (!m && !all) {
            char text[96], names[4 + METHODS * sizeof own.name] = "all";
            for (i = 0; i < METHODS; i++) strcat(strcat(names, ", "), methods[i].name);
            /* the trainer knows the matrices */
            snprintf(text, sizeof text, !strncmp(name, "lowrank:", 8) ? "%s:8:8" : "%s", name);
            if (strlen(name) >= sizeof own.name)
                die("--method %s: longer than %d characters", name, (int)sizeof own.name - 1);
            if (cg_op_parse(&op, text) != CG_OK)
                die("--method %s: neither a method (%s) nor an operator such as topk:0.01|absmax:4:512 or lowrank:4 "
                    "(the manual in compgrad.h lists them)",
                    name, names);
            strcpy(own.name, name);
            strcpy(own.op, name);
            own.kind = memory_kind();
            if (own.kind == CG_EF_DIFFERENCE) own.before = opt.lambda;
            if (own.kind == CG_EF_FILTERED) own.before = .9f;
            m = &own;
        }
        for (i = 0; i < METHODS; i++) {
            if (all) m = &methods[i];
            if (opt.whole || (!opt.layerwise && !(m->flags & LAYERS))) add_run(m, 0);
            if (opt.layerwise || (!opt.whole && m->flags & LAYERS)) add_run(m, 1);
            if (!all) break;
        }
    }
    for (i = 0; i < run_count && runs[i].m.ratio <= 0; i++)
        ;
    if (opt.ratio > 0 && i == run_count)
        die("--ratio: %s has none that could be chosen; an operator has its ratio in its text", opt.methods);
}

/* ---- what comes out ---- */

typedef struct epoch {
    double train_loss, test_loss, accuracy, sent /* bytes of a worker, in all */, codec /* share of its time */,
        seconds;
} epoch;
typedef struct outcome {
    /* how many are done; the step at which a gradient was not finite, + 1 */
    int epochs, diverged;
    uint64_t model; /* hash of the weights */
    char op[96];
    epoch *epoch;
    float *loss; /* of every step */
} outcome;

static uint64_t mix(uint64_t h) {
    h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9u;
    h = (h ^ h >> 27) * 0x94d049bb133111ebu;
    return h ^ h >> 31;
}
static uint64_t hash(const void *bytes, size_t n, uint64_t h) {
    const unsigned char *b = (const unsigned char *)bytes;
    size_t i;
    for (i = 0; i < n; i++) h = (h ^ b[i]) * 1099511628211u;
    return h;
}
static size_t steps_per_epoch(void) { return data.train.count / (size_t)(opt.workers * opt.batch); }
static size_t all_steps(void) { return steps_per_epoch() * (size_t)opt.epochs; }

static double clock_of(clockid_t which) {
    struct timespec t;
    clock_gettime(which, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Outcomes are rank 0's; the others keep none. */
static outcome outcomes[MAX_RUNS][MAX_SEEDS];
static double started;

/* Of the line with the bar: all columns but the last, after which some terminals begin another line. 0: there is
   no terminal. */
static int bar_width(void) {
    int width = 80;
#ifdef TIOCGWINSZ
    struct winsize size;
    if (!ioctl(1, TIOCGWINSZ, &size) && size.ws_col) width = size.ws_col;
#endif
#ifdef TRAIN_MPI
    /* mpirun may give its ranks a terminal, and write what they say to a file */
    width = 0;
#endif
    return width && isatty(1) ? width - 1 : 0;
}

/* After every step of worker 0. */
static void progress(const run *r, int seed, const outcome *o, size_t step, int end) {
    static double last;
    /* made here, not by a run that is resumed: what is left will take as long as these */
    static size_t steps;
    const size_t all = all_steps() * run_count * (size_t)opt.seeds,
                 run_at = (size_t)(r - runs) * (size_t)opt.seeds + (size_t)(seed - opt.seed);
    const size_t done = all_steps() * run_at + step;
    const double now = clock_of(CLOCK_MONOTONIC), share = (double)done / (double)all,
                 left = (now - started) / (double)++steps * (double)(all - done);
    const int width = bar_width();
    const epoch *e = o->epochs ? &o->epoch[o->epochs - 1] : NULL;
    if (!end && now - last < (width ? .1 : 20)) return;
    last = now;
    if (width) {
        char text[160], accuracy[32] = "";
        int wide, full;
        if (e) snprintf(accuracy, sizeof accuracy, ", accuracy %.2f %%", 100 * e->accuracy);
        snprintf(text, sizeof text, "%3.0f %%  %.20s, seed %d, epoch %d/%d%s, %.0f:%02d left", 100 * share, r->name,
            seed, o->epochs, opt.epochs, accuracy, floor(left / 60), (int)fmod(left, 60));
        wide = width - (int)strlen(text) - 3;
        wide = wide > 24 ? 24 : wide;
        full = (int)(share * wide);
        if (wide > 0)
            printf("\r\033[K[%.*s%.*s] %s", full, "########################", wide - full, "........................",
                text);
        else printf("\r\033[K%.*s", width, text);
        if (end && run_at + 1 == run_count * (size_t)opt.seeds) printf("\r\033[K");
    } else if (o->diverged)
        printf("%3.0f %%  %-14s seed %d  diverged in step %d\n", 100 * share, r->name, seed, o->diverged);
    else if (e)
        printf("%3.0f %%  %-14s seed %d  epoch %2d/%d  loss %.4f  accuracy %.2f %%  %.1f MB sent by a worker\n",
            100 * share, r->name, seed, o->epochs, opt.epochs, e->train_loss, 100 * e->accuracy, e->sent / 1e6);
    else
        printf("%3.0f %%  %-14s seed %d  step %lu of %lu\n", 100 * share, r->name, seed, (unsigned long)step,
            (unsigned long)all_steps());
    fflush(stdout);
}

/* What every worker has, at every worker: rank after rank. */
static int gather(const cg_transport *t, const void *mine, void *all, size_t bytes) {
    char *to = (char *)all;
    int d, code = 0;
    if (t->allgather) code = t->allgather(t->user, mine, all, bytes);
    else memcpy(to + (size_t)t->rank * bytes, mine, bytes);
    for (d = 1; d < t->size && !code && !t->allgather; d++) {
        const int next = (t->rank + d) % t->size, last = (t->rank + t->size - d) % t->size;
        code = t->sendrecv(t->user, mine, bytes, next, to + (size_t)last * bytes, bytes, last);
    }
    if (code) broken[t->rank] = code;
    return code;
}
/* 0 if no worker failed; 2 on all of them if one did, and the lowest of those says why, so that what all have is
   said once; EXIT_PEER. */
static int any_failed(const cg_transport *t, int failed, const char *why) {
    char mine = failed != 0, all[MAX_WORKERS];
    int r = 0;
    if (gather(t, &mine, all, 1)) return EXIT_PEER;
    while (r < t->size && !all[r]) r++;
    if (r == t->rank) say("%s", why);
    return r < t->size ? 2 : 0;
}

/* ---- files ---- */

/* A file that is there as a whole or not at all: it is written beside its place, brought to the disk, and moved. What
   is not an ordinary file, such as a pipe, is written to where it is. */
typedef struct output {
    FILE *f;
    char path[512], fresh[520];
    int code; /* errno of the first failure */
} output;

static FILE *output_open(output *o, const char *path) {
    struct stat s;
    const int odd = !lstat(path, &s) && !S_ISREG(s.st_mode);
    snprintf(o->path, sizeof o->path, "%s", path);
    snprintf(o->fresh, sizeof o->fresh, odd ? "%s" : "%s.new", path);
    o->f = fopen(o->fresh, "wb");
    o->code = o->f ? 0 : errno;
    errno = 0; /* whatever it is at the end has to do with the writing */
    return o->f;
}
static int output_odd(const output *o) { return !strcmp(o->path, o->fresh); }
static void output_drop(const output *o) {
    if (!output_odd(o)) remove(o->fresh);
}
/* All of it is on the disk, beside its place; or else it is removed. 0, or errno. */
static int output_end(output *o) {
    if (!o->f) return o->code;
    if (fflush(o->f) || ferror(o->f) || (!output_odd(o) && fsync(fileno(o->f)))) o->code = errno ? errno : EIO;
    if (fclose(o->f) && !o->code) o->code = errno ? errno : EIO;
    if (o->code) output_drop(o);
    return o->code;
}
/* Moves it to its place, so that it is still there after a power failure. 0, or errno. */
static int output_move(output *o) {
    char folder[sizeof o->path];
    const char *slash = strrchr(o->path, '/');
    int fd;
    if (output_odd(o)) return 0;
    if (rename(o->fresh, o->path)) {
        o->code = errno;
        output_drop(o);
        return o->code;
    }
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - o->path) + 1 : 1, slash ? o->path : ".");
    fd = open(folder, O_RDONLY);
    if (fd >= 0) fsync(fd), close(fd); /* some file systems cannot; the file is there */
    return 0;
}

/* ---- checkpoints ---- */

/* A file per rank, written beside the one before it, so that ranks which were killed at different moments still
   have one in common. What it was made with is in it as text; a resumed run has to be the same. */
typedef struct head {
    char magic[8];
    uint64_t check, bytes, epochs, model;
    double sent, codec, busy;
    char made_with[600];
} head;
static const char magic[9] = "cgtrain3";
typedef struct worker {
    const cg_transport *t;
    cg_transport road;
    struct timed *clock;
    float *weights, *grad, *mem, *loss /* of an epoch's steps */, *losses /* of all workers */;
    uint32_t *order;          /* of the images */
    double codec, busy, sent; /* seconds, seconds, bytes */
    int unsaved;              /* the last checkpoint could not be written, which is said once */
} worker;

static void made_with(const run *r, int seed, int rank, char *text, size_t cap) {
    memset(text, 0, cap);
    snprintf(text, cap,
        "method %s (%s, error feedback %d, route %u, fold %u, flags %d, momentum %g and %g, rate %g) ratio %.9g %s "
        "seed %d; "
        "net %s, %lux%dx%d images (%016" PRIx64
        "), %d workers, batch %d, %d epochs, rate %.9g, optimizer %s, every %d; "
        "worker %d; code \"%s\"",
        r->m.name, r->m.op, r->m.kind, (unsigned)r->m.route, (unsigned)r->m.fold, r->m.flags, (double)r->m.before,
        (double)r->m.after, (double)r->m.rate, (double)(opt.ratio > 0 ? opt.ratio : r->m.ratio),
        r->layerwise ? "layerwise" : "whole", seed, opt.net, (unsigned long)data.train.count, data.height, data.width,
        data_hash, opt.workers, opt.batch, opt.epochs, (double)opt.rate,
        opt.optimizer ? opt.optimizer : "of the method", opt.every, rank, TRAIN_BUILD);
}
static void checkpoint_path(const run *r, int seed, int rank, int which, char *path, size_t cap) {
    char name[80];
    size_t i;
    snprintf(name, sizeof name, "%s%s", r->m.name, r->layerwise ? "-layers" : "");
    for (i = 0; name[i]; i++)
        if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789.-", name[i])) name[i] = '_';
    snprintf(path, cap, "%s/%s-seed%d.worker%d.%d", opt.checkpoint, name, seed, rank, which);
}
static int make_folder(const char *path) {
    char part[400];
    size_t i;
    for (i = 1; path[i - 1] && i < sizeof part; i++) {
        memcpy(part, path, i);
        part[i] = 0;
        if ((path[i] == '/' || !path[i]) && mkdir(part, 0777) && errno != EEXIST) return errno;
    }
    return 0;
}

/* What a worker has to have: weights, the method's state, and (worker 0) the history; when all is done only that. */
static size_t history_bytes(const worker *w) {
    return w->t->rank ? 0 : (size_t)opt.epochs * sizeof(epoch) + all_steps() * sizeof(float);
}
static size_t body_bytes(const worker *w, const method_state *s, uint64_t epochs) {
    return history_bytes(w) + (epochs < (uint64_t)opt.epochs ? 4 * model.n + method_saved_bytes(s) : 0);
}
/* Between a checkpoint's body and where it belongs. */
static cg_status move_body(char *body, int out, const worker *w, method_state *s, const outcome *o, int done) {
    cg_status status = CG_OK;
    if (!w->t->rank) {
        const size_t epochs = (size_t)opt.epochs * sizeof(epoch), losses = all_steps() * sizeof(float);
        if (out) memcpy(body, o->epoch, epochs), memcpy(body + epochs, o->loss, losses);
        else memcpy(o->epoch, body, epochs), memcpy(o->loss, body + epochs, losses);
        body += epochs + losses;
    }
    if (done) return CG_OK;
    if (out) memcpy(body, w->weights, 4 * model.n);
    else memcpy(w->weights, body, 4 * model.n);
    status = out ? method_save(s, body + 4 * model.n) : method_load(s, body + 4 * model.n);
    return status;
}

/* What an earlier run has left: of other options, or half of a file. */
static void checkpoint_forget(const run *r, int seed, int rank, int unfinished_only) {
    char path[512], fresh[520];
    int which;
    for (which = 0; which < 2; which++) {
        checkpoint_path(r, seed, rank, which, path, sizeof path);
        snprintf(fresh, sizeof fresh, "%s.new", path);
        unlink(fresh);
        if (!unfinished_only) unlink(path);
    }
}

/* A worker's file takes the place of its older one when all workers have written theirs: so there is always an epoch
   that all of them have. 0, also where none could be written, as training goes on; or EXIT_PEER. */
static int checkpoint_write(const run *r, int seed, worker *w, method_state *s, const outcome *o) {
    char path[512], failed, all[MAX_WORKERS], *body;
    const int done = o->epochs == opt.epochs;
    const char *first;
    head h = CG_ZERO;
    output out;
    int code, moved;
    memcpy(h.magic, magic, 8);
    h.epochs = (uint64_t)o->epochs;
    h.bytes = body_bytes(w, s, h.epochs);
    h.model = o->model;
    h.sent = w->sent, h.codec = w->codec, h.busy = w->busy;
    made_with(r, seed, w->t->rank, h.made_with, sizeof h.made_with);
    checkpoint_path(r, seed, w->t->rank, o->epochs & 1, path, sizeof path);
    body = (char *)malloc((size_t)h.bytes + 1);
    code = !body || move_body(body, 1, w, s, o, done) != CG_OK ? ENOMEM : make_folder(opt.checkpoint);
    if (!code) {
        h.check = hash(body, (size_t)h.bytes, hash(&h, sizeof h, 1));
        if (output_open(&out, path)) fwrite(&h, sizeof h, 1, out.f), fwrite(body, 1, (size_t)h.bytes, out.f);
        code = output_end(&out);
    }
    free(body);
    failed = code != 0;
    if (gather(w->t, &failed, all, 1)) {
        if (!code) output_drop(&out);
        return EXIT_PEER;
    }
    first = (const char *)memchr(all, 1, (size_t)w->t->size);
    if (!code && first) output_drop(&out);
    else if (!code) code = output_move(&out);
    if (code && !w->unsaved && (!first || first == all + w->t->rank))
        say("no checkpoint: %s: %s. Training goes on, and tries again at the end of every epoch", path, strerror(code));
    w->unsaved = first || code;
    moved = !first && !code;
    /* nobody needs the epoch before any more */
    failed = !moved;
    if (done && !gather(w->t, &failed, all, 1) && !memchr(all, 1, (size_t)w->t->size)) {
        checkpoint_path(r, seed, w->t->rank, ~o->epochs & 1, path, sizeof path);
        remove(path);
    }
    return 0;
}

typedef struct saved {
    head h;
    char *body;
} saved;
/* The epoch; 0: nothing there, or of another run, and why says so; -1: damaged. */
static int checkpoint_read(
    const run *r, int seed, const worker *w, const method_state *s, int which, saved *to, char *why, size_t cap) {
    char path[512], want[sizeof to->h.made_with];
    uint64_t check;
    FILE *f;
    int ok, other = 0;
    to->body = NULL;
    checkpoint_path(r, seed, w->t->rank, which, path, sizeof path);
    if (!(f = fopen(path, "rb"))) return 0;
    made_with(r, seed, w->t->rank, want, sizeof want);
    ok = fread(&to->h, sizeof to->h, 1, f) == 1 && !memcmp(to->h.magic, magic, 8) && !fseek(f, 0, SEEK_END) &&
        (uint64_t)ftell(f) == sizeof to->h + to->h.bytes && !fseek(f, sizeof to->h, SEEK_SET) &&
        (to->body = (char *)malloc((size_t)to->h.bytes + 1)) &&
        fread(to->body, 1, (size_t)to->h.bytes, f) == to->h.bytes;
    fclose(f);
    if (ok) {
        check = to->h.check;
        to->h.check = 0;
        ok = check == hash(to->body, (size_t)to->h.bytes, hash(&to->h, sizeof to->h, 1));
    }
    if (ok && memcmp(want, to->h.made_with, sizeof want)) {
        to->h.made_with[sizeof want - 1] = 0;
        snprintf(why, cap,
            "%s is of another run:\n  it was  %s\n  this is %s\ngive the same options, another --checkpoint, or leave "
            "out --resume",
            path, to->h.made_with, want);
        other = 1;
    }
    ok = ok && !other && to->h.epochs <= (uint64_t)opt.epochs && to->h.bytes == body_bytes(w, s, to->h.epochs);
    if (ok) return (int)to->h.epochs;
    free(to->body);
    to->body = NULL;
    if (!other) say("%s is damaged and left out", path);
    return other ? 0 : -1;
}

/* The latest epoch that all workers have, or 0; below 0: an exit code, where a file is of another run, or a worker
   is gone. */
static int checkpoint_resume(const run *r, int seed, worker *w, method_state *s, outcome *o, char *why, size_t cap) {
    const cg_transport *t = w->t;
    saved mine[2];
    int32_t have[2], all[2 * MAX_WORKERS];
    int i, j, rank, common, best = 0, code, damaged = 0;
    why[0] = 0;
    for (i = 0; i < 2; i++) have[i] = checkpoint_read(r, seed, w, s, i, &mine[i], why, cap);
    code = any_failed(t, why[0] != 0, why);
    if (!code && gather(t, have, all, sizeof have)) code = EXIT_PEER;
    for (i = 0; !code && i < 2 * t->size; i++) damaged |= all[i] < 0;
    for (j = 0; !code && j < 2; j++) {
        common = 1;
        for (rank = 0; rank < t->size; rank++) common &= all[2 * rank] == all[j] || all[2 * rank + 1] == all[j];
        if (common && all[j] > best) best = all[j];
    }
    for (i = 0; i < 2; i++) {
        if (best > 0 && have[i] == best && mine[i].body) {
            if (move_body(mine[i].body, 0, w, s, o, best == opt.epochs) != CG_OK)
                snprintf(why, cap, "worker %d: a checkpoint does not fit", t->rank);
            w->sent = mine[i].h.sent, w->codec = mine[i].h.codec, w->busy = mine[i].h.busy;
            o->model = mine[i].h.model;
        }
        free(mine[i].body);
    }
    if (best) code = any_failed(t, why[0] != 0, why);
    if (!t->rank && bar_width()) printf("\r\033[K");
    if (!code && !t->rank && best > 0 && best < opt.epochs)
        printf("%s, seed %d: goes on after epoch %d of %d\n", r->name, seed, best, opt.epochs);
    if (!code && !t->rank && !best && damaged) printf("%s, seed %d: begins anew\n", r->name, seed);
    if (!t->rank && best == opt.epochs && opt.dump && r == runs && seed == opt.seed)
        say("--dump-gradients: nothing is dumped, as %s is finished; leave out --resume", r->name);
    return code ? -code : best;
}

/* ---- training ---- */

/* The transport, with a clock around it: what an exchange takes beside it is the codec's. */
typedef struct timed {
    cg_transport inner;
    double seconds;
} timed;
static int timed_sendrecv(void *user, const void *out, size_t out_bytes, int to, void *in, size_t in_bytes, int from) {
    timed *t = (timed *)user;
    const double before = clock_of(CLOCK_THREAD_CPUTIME_ID);
    const int code = t->inner.sendrecv(t->inner.user, out, out_bytes, to, in, in_bytes, from);
    t->seconds += clock_of(CLOCK_THREAD_CPUTIME_ID) - before;
    return code;
}
static cg_transport timed_transport(timed *t, const cg_transport *inner) {
    cg_transport outer = *inner;
    t->inner = *inner;
    t->seconds = 0;
    outer.user = t;
    /* collectives differ between transports, in the order of adding and in padding; over */
    outer.allreduce = NULL;
    /* sendrecv alone all of them give the same bits, and send the same bytes */
    outer.allgather = NULL;
    outer.broadcast = NULL;
    outer.sendrecv = timed_sendrecv;
    return outer;
}

static void shuffle(uint32_t *order, size_t n, uint64_t seed) {
    size_t i, j;
    uint32_t swap;
    for (i = 0; i < n; i++) order[i] = (uint32_t)i;
    for (i = n; i > 1; i--) {
        j = (size_t)((mix(seed * 0x9e3779b97f4a7c15u + i) >> 32) * i >> 32);
        swap = order[i - 1], order[i - 1] = order[j], order[j] = swap;
    }
}
static const uint8_t *image(const data_part *p, size_t i) { return p->images + i * (size_t)(data.height * data.width); }

/* From 0 up in the first 1/20 of the steps, then down to 0 by a cosine (its series: no two libraries have the same
   cos). */
static float rate_at(size_t step) {
    const double at = (double)step / (double)all_steps();
    double x, term = 1, sum = 1;
    int i;
    if (at < .05) return (float)((double)opt.rate * (double)(step + 1) / ((double)all_steps() / 20 + 1));
    x = 3.14159265358979 * (at - .05) / .95;
    for (i = 1; i < 16; i++) sum += term *= -x * x / (double)((2 * i - 1) * 2 * i);
    return (float)((double)opt.rate * .5 * (1 + sum));
}

static void dump(const run *r, int seed, int at, const float *grad) {
    char path[512];
    output out;
    if (r != runs || seed != opt.seed) return;
    snprintf(path, sizeof path, "%s/%s-epoch%d.f32", opt.dump, opt.net, at);
    if (output_open(&out, path)) fwrite(grad, 4, model.n, out.f);
    if (output_end(&out) || output_move(&out)) say("--dump-gradients: %s: %s", path, strerror(out.code));
}

static void optimize(worker *w, method_state *s, size_t step, float rate) {
    if (s->squares) net_adamw(&model, w->weights, s->velocity, s->squares, w->grad, step, rate);
    else net_step(&model, w->weights, s->velocity, w->grad, s->m->after, rate);
}
/* One step. 0, or a status; x := the loss. */
static cg_status one_step(
    worker *w, method_state *s, const run *r, int seed, size_t step, float *loss, cg_report *report) {
    const uint8_t *images[4096];
    uint8_t labels[4096];
    const size_t in_epoch = step % steps_per_epoch(),
                 first = (in_epoch * (size_t)opt.workers + (size_t)w->t->rank) * (size_t)opt.batch;
    const float rate = rate_at(step) * r->m.rate;
    const double begin = clock_of(CLOCK_THREAD_CPUTIME_ID);
    double before;
    cg_status status;
    size_t i;
    for (i = 0; i < (size_t)opt.batch; i++) {
        images[i] = image(&data.train, w->order[first + i]);
        labels[i] = data.train.labels[w->order[first + i]];
    }
    *loss = (float)net_gradient(&model, w->weights, images, labels, opt.batch, w->grad, w->mem);
    if (opt.dump && !w->t->rank && !in_epoch) dump(r, seed, (int)(step / steps_per_epoch()), w->grad);
    if (takes_models(s->m)) optimize(w, s, step, rate); /* every worker its own model */
    w->clock->seconds = 0;
    report->bytes_out = 0;
    if (!takes_models(s->m) || (step + 1) % (size_t)opt.every == 0 || in_epoch + 1 == steps_per_epoch()) {
        before = clock_of(CLOCK_THREAD_CPUTIME_ID);
        status = method_step(s, &w->road, step, takes_models(s->m) ? w->weights : w->grad, report);
        w->codec += clock_of(CLOCK_THREAD_CPUTIME_ID) - before - w->clock->seconds;
        if (status != CG_OK) return status;
    }
    if (!takes_models(s->m)) optimize(w, s, step, rate);
    w->busy += clock_of(CLOCK_THREAD_CPUTIME_ID) - begin - w->clock->seconds;
    w->sent += (double)report->bytes_out;
    return CG_OK;
}

/* Everybody scores a part of the test images; what they saw is put together. 0, or the transport's code. */
static int end_epoch(worker *w, size_t step, double seconds, outcome *o) {
    typedef struct seen {
        double loss, correct, sent, codec, busy;
    } seen;
    const size_t steps = steps_per_epoch(), ranks = (size_t)w->t->size, rank = (size_t)w->t->rank;
    const size_t from = data.test.count * rank / ranks, to = data.test.count * (rank + 1) / ranks;
    epoch *e = &o->epoch[o->epochs];
    seen mine = { 0, 0, 0, 0, 0 }, all[MAX_WORKERS], sum = { 0, 0, 0, 0, 0 };
    size_t i, j, many;
    double loss = 0;
    int code;
    for (i = from; i < to; i += many) {
        const uint8_t *images[SCORED];
        many = to - i < SCORED ? to - i : SCORED;
        for (j = 0; j < many; j++) images[j] = image(&data.test, i + j);
        mine.correct += net_score(&model, w->weights, images, data.test.labels + i, (int)many, w->mem, &mine.loss);
    }
    mine.sent = w->sent;
    mine.codec = w->codec;
    mine.busy = w->busy;
    code = gather(w->t, &mine, all, sizeof mine);
    if (!code) code = gather(w->t, w->loss, w->losses, steps * sizeof(float));
    if (code) return code;
    for (i = 0; i < ranks; i++) {
        sum.loss += all[i].loss;
        sum.correct += all[i].correct;
        sum.sent += all[i].sent;
        sum.codec += all[i].codec;
        sum.busy += all[i].busy;
    }
    for (i = 0; i < steps; i++) {
        double mean = 0;
        for (j = 0; j < ranks; j++) mean += (double)w->losses[j * steps + i];
        o->loss[step - steps + i] = (float)(mean / (double)ranks);
        loss += mean / (double)ranks / (double)steps;
    }
    e->train_loss = loss;
    e->test_loss = sum.loss / (double)data.test.count;
    e->accuracy = sum.correct / (double)data.test.count;
    e->sent = sum.sent / (double)ranks;
    e->codec = sum.busy > 0 ? sum.codec / sum.busy : 0;
    e->seconds = seconds;
    o->epochs++;
    return 0;
}

static int worker_open(worker *w, const cg_transport *t) {
    const size_t steps = steps_per_epoch(), scored = net_memory(&model, SCORED), learnt = net_memory(&model, opt.batch);
    memset(w, 0, sizeof *w);
    w->t = t;
    w->clock = (timed *)malloc(sizeof *w->clock);
    if (w->clock) w->road = timed_transport(w->clock, t);
    w->weights = (float *)malloc(4 * model.n);
    w->grad = (float *)malloc(4 * model.n);
    w->mem = (float *)malloc(4 * (scored > learnt ? scored : learnt));
    w->loss = (float *)malloc(4 * steps);
    w->losses = (float *)malloc(4 * steps * (size_t)t->size);
    w->order = (uint32_t *)malloc(4 * data.train.count);
    return !(w->clock && w->weights && w->grad && w->mem && w->loss && w->losses && w->order);
}
static void worker_close(worker *w) {
    free(w->clock), free(w->weights), free(w->grad), free(w->mem), free(w->loss), free(w->losses), free(w->order);
}

/* 0; 2: stopped, and said why; EXIT_PEER. */
static int train(worker *w, const run *r, int seed, outcome *o) {
    const size_t steps = steps_per_epoch();
    method_state s;
    cg_report report = CG_ZERO;
    char why[1800];
    size_t step = 0;
    double begin = clock_of(CLOCK_MONOTONIC), before = 0;
    int code = method_open(&s, &r->m, &model, r->layerwise, opt.ratio, has_adamw(), all_steps(), (uint64_t)seed,
        &w->road, why, sizeof why);
    if ((code = any_failed(w->t, code, why))) {
        method_close(&s);
        return code;
    }
    net_start(&model, (uint64_t)seed, w->weights);
    if (method_begin(&s, w->weights) != CG_OK) say("the model that was to be common cannot be");
    w->codec = w->busy = w->sent = 0;
    strcpy(o->op, s.op);
    if (opt.resume) {
        const int at = checkpoint_resume(r, seed, w, &s, o, why, sizeof why);
        if (at < 0) {
            method_close(&s);
            return -at;
        }
        o->epochs = at;
        step = steps * (size_t)at;
        if (at && !w->t->rank) before = o->epoch[at - 1].seconds;
    }
    checkpoint_forget(r, seed, w->t->rank, opt.resume);
    w->unsaved = 0;
    for (; step < all_steps() && !code && !o->diverged; step++) {
        cg_status status;
        /* nobody would know of what an orphan does */
        if (launcher && getppid() != launcher) {
            code = EXIT_PEER;
            break;
        }
        if (step % steps == 0) shuffle(w->order, data.train.count, mix((uint64_t)seed) + step / steps);
        status = one_step(w, &s, r, seed, step, &w->loss[step % steps], &report);
        if (status == CG_E_TRANSPORT) broken[w->t->rank] = report.code, code = EXIT_PEER;
        /* all have an error in this step: a number that is not finite, or another's, or something worse */
        else if (status != CG_OK) {
            snprintf(why, sizeof why, "%s, worker %d, step %lu: %s", r->name, w->t->rank, (unsigned long)step,
                report.why[0] ? report.why : cg_status_str(status));
            code = any_failed(w->t, status != CG_E_NONFINITE && status != CG_E_PEER, why);
            if (!code) o->diverged = (int)step + 1;
        } else if ((step + 1) % steps == 0) {
            code = end_epoch(w, step + 1, before + clock_of(CLOCK_MONOTONIC) - begin, o) ? EXIT_PEER : 0;
            o->model = hash(w->weights, 4 * model.n, 14695981039346656037u);
            if (!code) code = checkpoint_write(r, seed, w, &s, o);
        }
        if (!w->t->rank && !code) progress(r, seed, o, step + 1, step + 1 == all_steps() || o->diverged);
    }
    method_close(&s);
    return code;
}

/* What a rank does, whatever the transport. */
static int work(const cg_transport *t) {
    outcome scratch = CG_ZERO, *o;
    worker w;
    size_t i;
    int k, code, bad = worker_open(&w, t);
    char why[64];
    for (i = 0; i < run_count; i++)
        for (k = 0; k < opt.seeds; k++) {
            o = t->rank ? &scratch : &outcomes[i][k];
            if (!o->epoch) o->epoch = (epoch *)calloc((size_t)opt.epochs, sizeof(epoch));
            if (!o->loss) o->loss = (float *)calloc(all_steps(), sizeof(float));
            bad |= !o->epoch || !o->loss;
        }
    snprintf(why, sizeof why, "worker %d: not enough memory", t->rank);
    code = any_failed(t, bad, why);
    for (i = 0; i < run_count && !code; i++)
        for (k = 0; k < opt.seeds && !code; k++) {
            o = t->rank ? &scratch : &outcomes[i][k];
            o->epochs = o->diverged = 0;
            code = train(&w, &runs[i], opt.seed + k, o);
        }
    worker_close(&w);
    free(scratch.epoch);
    free(scratch.loss);
    return code;
}

/* ---- what is shown ---- */

typedef struct row {
    const run *r;
    double accuracy, spread, loss, sent /* per step */, fewer, codec, seconds;
    int seeds, diverged;
} row;
static row rows[MAX_RUNS];

static void summarize(void) {
    size_t i;
    int k;
    for (i = 0; i < run_count; i++) {
        row *w = &rows[i];
        double squares = 0;
        memset(w, 0, sizeof *w);
        w->r = &runs[i];
        for (k = 0; k < opt.seeds; k++) {
            const outcome *o = &outcomes[i][k];
            const epoch *e = o->epochs == opt.epochs ? &o->epoch[o->epochs - 1] : NULL;
            if (o->diverged) w->diverged++;
            if (!e) continue;
            w->seeds++;
            w->accuracy += e->accuracy;
            squares += e->accuracy * e->accuracy;
            w->loss += e->train_loss;
            w->sent += e->sent / (double)all_steps();
            w->codec += e->codec;
            w->seconds += e->seconds;
        }
        if (!w->seeds) continue;
        w->accuracy /= w->seeds, w->loss /= w->seeds, w->sent /= w->seeds, w->codec /= w->seeds, w->seconds /= w->seeds;
        if (w->seeds > 1) w->spread = sqrt(fmax(0, (squares - w->seeds * w->accuracy * w->accuracy) / (w->seeds - 1)));
    }
    for (i = 0; i < run_count; i++) { /* against what a dense ring sends: 2 (N-1)/N of the gradient */
        const double dense = 2.0 * (opt.workers - 1) / opt.workers * 4.0 * (double)model.n;
        rows[i].fewer = rows[i].sent > 0 && opt.workers > 1 ? dense / rows[i].sent : 1;
    }
}

enum { COLUMNS = 8, CELL = 112 };
static void cells_of(const row *w, char cell[COLUMNS][CELL]) {
    const outcome *o = &outcomes[w - rows][0];
    snprintf(cell[0], CELL, "%s", w->r->name);
    snprintf(
        cell[1], CELL, "%s%s", o->op, w->r->m.kind == ALONE || w->r->m.kind == CG_EF_SIGNUM ? "" : ", error feedback");
    snprintf(cell[7], CELL, "%s", w->r->m.about);
    if (!w->seeds) {
        snprintf(cell[2], CELL, "-");
        snprintf(cell[3], CELL, "diverged");
        snprintf(cell[4], CELL, "-"), snprintf(cell[5], CELL, "-"), snprintf(cell[6], CELL, "-");
        return;
    }
    snprintf(cell[2], CELL, "%.4f", w->loss);
    if (opt.seeds > 1)
        snprintf(
            cell[3], CELL, "%.2f ± %.2f%s", 100 * w->accuracy, 100 * w->spread, w->diverged ? " (some diverged)" : "");
    else snprintf(cell[3], CELL, "%.2f", 100 * w->accuracy);
    snprintf(cell[4], CELL, "%.0f", w->sent);
    snprintf(cell[5], CELL, w->fewer < 9.95 ? "%.1fx" : "%.0fx", w->fewer);
    snprintf(cell[6], CELL, "%.1f %%", 100 * w->codec);
}
static const char *const heads[COLUMNS] = { "method", "what is sent", "train loss", "accuracy %", "bytes/step, worker",
    "fewer", "codec time", "when to take it" };

/* Which to take: the fewest bytes, and the least work, within a point of dense accuracy; nothing where that says
   nothing. */
static void advice(char *text, size_t cap) {
    const row *dense = NULL, *small = NULL, *cheap = NULL;
    size_t i;
    text[0] = 0;
    for (i = 0; i < run_count; i++)
        if (!strcmp(runs[i].m.name, "dense") && rows[i].seeds && !dense) dense = &rows[i];
    if (!dense || opt.workers < 2 || dense->accuracy <= 2.0 / data.classes) return;
    for (i = 0; i < run_count; i++) {
        const row *w = &rows[i];
        if (w->r->m.name[0] == 'd' && !strcmp(w->r->m.name, "dense")) continue;
        if (!w->seeds || w->diverged || w->r->m.flags & FAILS || w->accuracy < dense->accuracy - .01) continue;
        if (!small || w->fewer > small->fewer) small = w;
        if (w->fewer >= 8 && (!cheap || w->codec < cheap->codec)) cheap = w;
    }
    if (small)
        snprintf(text, cap,
            "Fewest bytes within a point of dense accuracy: %s, %.0f times fewer, %.2f %% against %.2f %%.",
            small->r->name, small->fewer, 100 * small->accuracy, 100 * dense->accuracy);
    if (cheap)
        snprintf(text + strlen(text), cap - strlen(text),
            " Least work for at least 8 times fewer: %s, %.1f %% of the time in the codec, %.0f times fewer.",
            cheap->r->name, 100 * cheap->codec, cheap->fewer);
}

/* Adds what the methods without error feedback lose, beside the same operators with it. */
static void warning(char *text, size_t cap) {
    const char *begin = text[0] ? " Without error feedback" : "Without error feedback", *next = " ";
    size_t i, j;
    for (i = 0; i < run_count; i++) {
        const row *w = &rows[i], *with = NULL;
        const method *m = &w->r->m;
        double lost;
        for (j = 0; m->flags & FAILS && j < run_count && !with; j++)
            if (runs[j].m.kind >= 0 && !strcmp(runs[j].m.op, m->op) && runs[j].layerwise == w->r->layerwise &&
                rows[j].seeds)
                with = &rows[j];
        if (!with) continue;
        snprintf(text + strlen(text), cap - strlen(text), "%s%s%s ", begin, next, with->r->name);
        lost = 100 * (with->accuracy - w->accuracy);
        if (!w->seeds) snprintf(text + strlen(text), cap - strlen(text), "diverges (%s)", w->r->name);
        else if (lost < 1)
            snprintf(text + strlen(text), cap - strlen(text), "ends as high in so few steps (%s)", w->r->name);
        else snprintf(text + strlen(text), cap - strlen(text), "ends %.2f points lower (%s)", lost, w->r->name);
        begin = "", next = ", ";
    }
    if (!begin[0]) snprintf(text + strlen(text), cap - strlen(text), ".");
}

static int print_width(const char *s) /* of UTF-8 */
{
    int n = 0;
    for (; *s; s++) n += ((unsigned char)*s & 0xc0) != 0x80;
    return n;
}
static void print_table(FILE *f) {
    static char cell[MAX_RUNS][COLUMNS][CELL];
    int width[COLUMNS], c;
    char text[1000];
    size_t i;
    for (c = 0; c < COLUMNS; c++) width[c] = print_width(heads[c]);
    for (i = 0; i < run_count; i++) {
        cells_of(&rows[i], cell[i]);
        for (c = 0; c < COLUMNS; c++)
            if (print_width(cell[i][c]) > width[c]) width[c] = print_width(cell[i][c]);
    }
    fprintf(f, "\n%s on %s, %lu weights, workers: %d, epochs: %d of %lu steps, seeds: %d\n\n", opt.net, opt.data,
        (unsigned long)model.n, opt.workers, opt.epochs, (unsigned long)steps_per_epoch(), opt.seeds);
    for (i = 0; i <= run_count; i++)
        for (c = 0; c < COLUMNS; c++) {
            const char *s = i ? cell[i - 1][c] : heads[c];
            const int left = c < 2 || c == COLUMNS - 1, gap = width[c] - print_width(s);
            fprintf(f, "%s%*s%s", c ? "  " : "", left ? 0 : gap, "", s);
            if (c < COLUMNS - 1) fprintf(f, "%*s", left ? gap : 0, "");
            else fprintf(f, "\n");
        }
    fprintf(f,
        "\ncodec time: the share of a worker's computing that goes into compressing, decompressing, adding and "
        "remembering\n");
    advice(text, sizeof text);
    warning(text, sizeof text);
    if (text[0]) fprintf(f, "\n%s\n", text);
}

static void write_csv(FILE *f) {
    size_t i;
    int k, e;
    fprintf(f,
        "# "
        "%s\nmethod,operator,parts,net,workers,seed,epoch,train_loss,test_loss,accuracy,bytes_sent,codec_share,seconds,"
        "weights\n",
        command);
    for (i = 0; i < run_count; i++)
        for (k = 0; k < opt.seeds; k++) {
            for (e = 0; e < outcomes[i][k].epochs; e++) {
                const epoch *p = &outcomes[i][k].epoch[e];
                fprintf(f, "%s,%s,%s,%s,%d,%d,%d,%.6f,%.6f,%.4f,%.0f,%.4f,%.1f,", runs[i].m.name, outcomes[i][k].op,
                    runs[i].layerwise ? "layers" : "whole", opt.net, opt.workers, opt.seed + k, e + 1, p->train_loss,
                    p->test_loss, p->accuracy, p->sent, p->codec, p->seconds);
                if (e + 1 == opt.epochs) fprintf(f, "%016" PRIx64, outcomes[i][k].model);
                fprintf(f, "\n");
            }
            if (outcomes[i][k].diverged)
                fprintf(f, "# %s seed %d diverged in step %d\n", runs[i].name, opt.seed + k, outcomes[i][k].diverged);
        }
}

/* Curves of one run, the mean over seeds: accuracy by bytes, and loss by steps, in a few places so that one sees a
   curve. */
static void curves_of(size_t i, double *bytes, double *accuracy, double *steps, double *loss, size_t places) {
    const size_t all = all_steps();
    size_t p, q;
    int k, e;
    for (e = 0; e < opt.epochs; e++) {
        bytes[e] = accuracy[e] = 0;
        for (k = 0; k < opt.seeds; k++) {
            const outcome *o = &outcomes[i][k];
            bytes[e] += e >= o->epochs ? (double)NAN
                : opt.workers > 1      ? o->epoch[e].sent / opt.seeds
                                       : (double)(e + 1) / opt.seeds;
            accuracy[e] += e < o->epochs ? 100 * o->epoch[e].accuracy / opt.seeds : (double)NAN;
        }
    }
    for (p = 0; p < places; p++) {
        const size_t from = all * p / places, to = all * (p + 1) / places;
        steps[p] = ((double)from + (double)to) / 2;
        loss[p] = 0;
        for (k = 0; k < opt.seeds; k++)
            for (q = from; q < to; q++) {
                const outcome *o = &outcomes[i][k];
                loss[p] += q < (size_t)o->epochs * steps_per_epoch()
                    ? (double)o->loss[q] / (double)(to - from) / opt.seeds
                    : (double)NAN;
            }
    }
}

/* 0, or a message was said. */
static int write_plots(void) {
    enum { PLACES = 60 };
    const size_t places = all_steps() < PLACES ? all_steps() : PLACES, epochs = (size_t)opt.epochs;
    const size_t dot = strlen(opt.plot) > 5 && !strcmp(opt.plot + strlen(opt.plot) - 5, ".html") ? strlen(opt.plot) - 5
                                                                                                 : strlen(opt.plot);
    double *numbers = (double *)malloc(run_count * 2 * (epochs + places) * sizeof(double)), *at = numbers;
    static plot_series by_bytes[MAX_RUNS], by_step[MAX_RUNS];
    static char cell[MAX_RUNS][COLUMNS][CELL];
    static const char *cells[(MAX_RUNS + 1) * COLUMNS];
    const plot_series *series[2];
    size_t counts[2], i;
    plot plots[2];
    plot_page page = CG_ZERO;
    static char intro[sizeof command + 900];
    char subtitle[200], after[1000], path[600];
    output out;
    int c, status; /* 1: there was nothing to draw, and the page says so */
    if (!numbers) return say("--plot %s: not enough memory", opt.plot), 1;
    memset(plots, 0, sizeof plots);
    for (c = 0; c < COLUMNS; c++) cells[c] = heads[c];
    for (i = 0; i < run_count; i++) {
        const int pair = i && !strcmp(runs[i].m.name, runs[i - 1].m.name); /* the whole, and its layers */
        const plot_series s = { runs[i].name, at, at + epochs, epochs,
            pair                                 ? 3
                : !strcmp(runs[i].name, "dense") ? 0
                : runs[i].m.flags & FAILS        ? 2
                                                 : 1 };
        by_bytes[i] = by_step[i] = s;
        by_step[i].x = at + 2 * epochs, by_step[i].y = at + 2 * epochs + places, by_step[i].n = places;
        curves_of(i, at, at + epochs, at + 2 * epochs, at + 2 * epochs + places, places);
        at += 2 * (epochs + places);
        cells_of(&rows[i], cell[i]);
        for (c = 0; c < COLUMNS; c++) cells[(i + 1) * COLUMNS + (size_t)c] = cell[i][c];
    }
    snprintf(subtitle, sizeof subtitle, "%s, %lu weights, %d workers, %d epochs%s", opt.net, (unsigned long)model.n,
        opt.workers, opt.epochs, opt.seeds > 1 ? ", mean over seeds" : "");
    plots[0].title = "Accuracy against what a worker sent";
    plots[0].subtitle = plots[1].subtitle = subtitle;
    plots[0].x = opt.workers > 1 ? "bytes sent by a worker" : "epoch"; /* one has nobody to send to */
    plots[0].y = "test accuracy, %";
    plots[0].log_x = opt.workers > 1;
    plots[0].marks = 1;
    plots[0].dashed = plots[1].dashed = "biased, without error feedback";
    for (i = 0; i < run_count; i++)
        if (100 * rows[i].accuracy > plots[0].y_high) plots[0].y_high = 100 * rows[i].accuracy;
    plots[0].y_high = floor(plots[0].y_high) + 1;
    /* what is far below would hide the differences that matter; its label says so */
    plots[0].y_low = plots[0].y_high - 12;
    plots[1].title = "Loss against steps";
    plots[1].x = "step";
    plots[1].y = "training loss";
    plots[1].log_y = 1;
    series[0] = by_bytes, series[1] = by_step;
    counts[0] = counts[1] = run_count;
    snprintf(intro, sizeof intro,
        "%d workers train the same network, each on its own images; after every step they need the mean of their "
        "gradients. "
        "\"Fewer\" counts all bytes that a worker really sends, headers included, against a dense ring. "
        "\"Codec time\" is the share of a worker's computing that goes into compressing, decompressing, adding and "
        "remembering."
        "\n\nMade by: %s",
        opt.workers, command);
    advice(after, sizeof after);
    warning(after, sizeof after);
    page.title = "compgrad: training with compressed gradients";
    page.intro = intro, page.after = after;
    page.cells = cells, page.rows = run_count + 1, page.cols = COLUMNS;
    status = output_open(&out, opt.plot) && plot_html(out.f, &page, plots, series, counts, 2) == 1;
    if (!output_end(&out)) output_move(&out);
    for (c = 0; c < 2 && !out.code; c++) {
        snprintf(path, sizeof path, "%.*s-%s.svg", (int)dot, opt.plot, c ? "loss" : "accuracy");
        if (output_open(&out, path)) plot_svg(out.f, &plots[c], series[c], counts[c]);
        if (!output_end(&out)) output_move(&out);
    }
    free(numbers);
    if (out.code) return say("--plot %s: %s", out.path, strerror(out.code)), 1;
    printf("to look at: %s%s\n", opt.plot,
        status ? "; there was nothing to draw, as no method came to the end of an epoch" : "");
    return 0;
}

/* Hours went into this. First the file, which nothing that goes wrong later can spoil; what a full disk does not take
   goes to standard output, and what that does not take to stderr. 0, or 2. */
static int show(void) {
    output out;
    int failed = 0, unwritten = 0;
    summarize();
    if (opt.csv) {
        if (output_open(&out, opt.csv)) write_csv(out.f);
        unwritten = output_end(&out) || output_move(&out);
        if (unwritten) say("--csv %s: %s. Its lines stand below the table", opt.csv, strerror(out.code));
    }
    clearerr(stdout); /* of a line of progress */
    errno = 0;
    print_table(stdout);
    if (unwritten) printf("\n"), write_csv(stdout);
    else if (opt.csv) printf("a line per epoch: %s\n", opt.csv);
    if (fflush(stdout) || ferror(stdout)) {
        say("standard output: %s. What belongs there follows here", strerror(errno ? errno : EIO));
        print_table(stderr);
        if (unwritten || !opt.csv) write_csv(stderr);
        failed = 1;
    }
    if (opt.plot) failed |= write_plots();
    return failed || unwritten ? 2 : 0;
}

/* ---- workers, as threads, processes or MPI ranks ---- */

static int milliseconds(int s) { return s < INT_MAX / 1000 ? s * 1000 : INT_MAX; }

#ifndef TRAIN_MPI
static int thread_worker(cg_threads_world *world, int rank, void *user) {
    const cg_transport t = cg_threads_transport(world, rank, CG_THREADS_ALL);
    (void)user;
    /* none: a thread does not go without a word, and the whole process may be stopped for long */
    cg_threads_timeout(world, 1000000000);
    return work(&t);
}
static int run_threads(void) {
    int r, code = cg_threads_run(opt.workers, thread_worker, NULL), what = code == EXIT_PEER ? CG_THREADS_E_LEFT : code;
    if (!code) return show();
    if (code != EXIT_PEER && code != CG_THREADS_E_SYSTEM) return code;
    /* what made the first of them leave */
    for (r = 0; r < opt.workers; r++)
        if (what == CG_THREADS_E_LEFT && broken[r]) what = broken[r];
    say("%s. --resume goes on from the last epoch", cg_threads_error(what));
    return EXIT_PEER;
}

/* What a transport said to a worker, for the launcher, which alone knows whether somebody was killed. */
typedef struct note {
    int rank, code;
} note;

static int process_worker(int rank, const char *addresses, int listener, int notes) {
    cg_tcp_desc desc = CG_ZERO;
    cg_tcp mesh;
    note mine = { 0, 0 };
    int code;
    desc.rank = rank;
    desc.addresses = addresses;
    desc.job = (uint64_t)launcher;
    desc.listener = listener;
    desc.timeout_ms = milliseconds(opt.timeout);
    if (!(code = broken[rank] = cg_tcp_open(&mesh, &desc))) {
        code = work(&mesh.transport);
        cg_tcp_close(&mesh);
    } else code = EXIT_PEER;
    if (!code && !rank) return show();
    if (code != EXIT_PEER) return code;
    mine.rank = rank, mine.code = broken[rank];
    if (getppid() == launcher) return write(notes, &mine, sizeof mine) == sizeof mine ? EXIT_PEER : 2;
    if (!rank)
        say("the process that started the workers is gone, and so they end. --resume goes on from the last epoch");
    return EXIT_PEER;
}

/* The first of the notes so far that tells more than that a peer has closed its connections. */
static void hear(int notes, note *first) {
    note one;
    while (read(notes, &one, sizeof one) == sizeof one)
        if (cg_tcp_kind(first->code) == CG_TCP_E_CLOSED) *first = one;
}

/* Names and ends a worker that the others have waited for. */
static void give_up(int rank, pid_t process, int timeout) {
    char why[64] = "", stopped[64] = "";
    int status;
    if (timeout) snprintf(why, sizeof why, " for %d s (--timeout)", opt.timeout);
    if (waitpid(process, &status, WNOHANG | WUNTRACED) == process && WIFSTOPPED(status))
        snprintf(stopped, sizeof stopped, ": it had been stopped by signal %d", WSTOPSIG(status));
    say("worker %d does not answer%s and was ended%s. To go on from the last epoch: the same command with --resume",
        rank, why, stopped);
    kill(process, SIGKILL);
}

static int run_processes(void) {
    static const struct timespec moment = { 0, 20000000 };
    char addresses[MAX_WORKERS * 32] = "", text[200];
    int listener[MAX_WORKERS], notes[2], port, r, other, status, code, left = opt.workers, failed = 0, lost = 0, late;
    pid_t pid, process[MAX_WORKERS];
    note first = { 0, CG_TCP_E_CLOSED };
    double since = 0; /* the first failure */
    for (r = 0; r < opt.workers; r++) {
        if ((code = cg_tcp_listen("127.0.0.1:0", &listener[r], &port)))
            die("--transport tcp: 127.0.0.1: %s", cg_tcp_error(code, text, sizeof text));
        snprintf(addresses + strlen(addresses), 32, "%s127.0.0.1:%d", r ? "," : "", port);
    }
    if (pipe(notes) || fcntl(notes[0], F_SETFL, O_NONBLOCK)) die("--transport tcp: %s", strerror(errno));
    fflush(stdout);
    launcher = getpid();
    for (r = 0; r < opt.workers; r++) {
        process[r] = fork();
        if (process[r] < 0) {
            code = errno;
            for (other = 0; other < r; other++) kill(process[other], SIGKILL);
            die("--transport tcp: %s", strerror(code));
        }
        if (process[r]) continue;
        for (other = 0; other < opt.workers; other++)
            if (other != r) close(listener[other]);
        exit(process_worker(r, addresses, listener[r], notes[1]));
    }
    close(notes[1]);
    for (r = 0; r < opt.workers; r++) close(listener[r]);
    while (left) {
        pid = waitpid(-1, &status, since > 0 ? WNOHANG : 0);
        for (r = 0; r < opt.workers && process[r] != pid; r++)
            ;
        if (pid > 0 && r < opt.workers) {
            process[r] = 0;
            left--;
            if (WIFSIGNALED(status)) {
                say("worker %d was killed by signal %d; the others stop. To go on from the last epoch: the same "
                    "command with --resume",
                    r, WTERMSIG(status));
                lost = 1;
            } else if (WEXITSTATUS(status) && failed != 2) failed = WEXITSTATUS(status); /* 2: the reason */
            if ((lost || failed) && since <= 0) since = clock_of(CLOCK_MONOTONIC);
            continue;
        }
        if (pid < 0 && errno != EINTR) break;
        hear(notes[0], &first);
        late = !lost && cg_tcp_kind(first.code) == CG_TCP_E_TIMEOUT;
        if (since > 0 && clock_of(CLOCK_MONOTONIC) - since > (late ? LATE : PATIENCE)) {
            for (r = 0; r < opt.workers; r++)
                if (process[r]) give_up(r, process[r], late);
            left = 0, lost = 1;
        } else nanosleep(&moment, NULL);
    }
    hear(notes[0], &first);
    if (failed == EXIT_PEER && !lost)
        say("worker %d: %s. --resume goes on from the last epoch", first.rank,
            cg_tcp_error(first.code, text, sizeof text));
    return lost ? EXIT_PEER : failed;
}

#endif

/* Everything that could go wrong at the end is tried before hours are spent. */
static void try_to_write(const char *option, const char *path, int folder) {
    char probe[400];
    int code, fd = -1;
    if (!path) return;
    if (!path[0]) die("%s: the path is empty", option);
    if (strlen(path) > MAX_PATH) die("%s %s: the path is longer than %d characters", option, path, (int)MAX_PATH);
    snprintf(probe, sizeof probe, folder ? "%s/.train-%ld.probe" : "%s", path, (long)getpid());
    code = folder ? make_folder(path) : 0;
    if (!code && (fd = open(probe, O_WRONLY | O_CREAT | (folder ? O_EXCL : O_APPEND), 0666)) < 0) code = errno;
    if (code) die("%s %s: %s", option, path, strerror(code));
    close(fd);
    if (folder) remove(probe);
}

/* 0, or why says what is wrong. */
static int load(char *why, size_t cap) {
    char what[600];
    const char *folder = strcmp(opt.data, "fashion") ? opt.data : DATA_FASHION;
    why[0] = 0;
    if (strcmp(opt.data, "glyphs") ? data_load(&data, folder, what, sizeof what)
                                   : data_glyphs(&data, 1, 8000, 2000, what, sizeof what))
        snprintf(why, cap, "--data %.400s: %s", opt.data, what);
    else if (net_init(&model, opt.net, data.height, data.width, data.classes))
        snprintf(why, cap, "--net %.400s: not one of %s, or not for images of %d x %d", opt.net, net_kinds(),
            data.height, data.width);
    else if (!steps_per_epoch())
        snprintf(why, cap, "%d workers with batches of %d need %d images; there are %lu", opt.workers, opt.batch,
            opt.workers * opt.batch, (unsigned long)data.train.count);
    if (why[0]) return 1;
    data_hash = hash(data.train.images, data.train.count * (size_t)(data.height * data.width),
        hash(data.train.labels, data.train.count, 1));
    data_hash = hash(data.test.images, data.test.count * (size_t)(data.height * data.width),
        hash(data.test.labels, data.test.count, data_hash));
    started = clock_of(CLOCK_MONOTONIC);
    return 0;
}

#ifdef TRAIN_MPI
/* MPI does not say which rank has ended a job; whoever reads a core file or a log of the system can look it up here. */
static void introduce(const cg_transport *t) {
    typedef struct person {
        long process;
        char host[80];
    } person;
    person me = CG_ZERO, all[MAX_WORKERS];
    int r;
    me.process = (long)getpid();
    gethostname(me.host, sizeof me.host - 1);
    if (gather(t, &me, all, sizeof me) || t->rank) return;
    for (r = 0; r < t->size; r++) printf("worker %d is process %ld on %s\n", r, all[r].process, all[r].host);
    fflush(stdout);
}
#endif

int main(int argc, char **argv) {
    static char lines[1 << 14];
    int code = 0, i, k;
    char why[1100];
    setvbuf(stdout, lines, _IOLBF, sizeof lines); /* whole lines, also where others write to the same file */
    signal(SIGXFSZ, SIG_IGN);                     /* a file that may not grow is a full disk, and does not end this */
#ifdef TRAIN_MPI
    cg_mpi mpi;
    if (MPI_Init(&argc, &argv) != MPI_SUCCESS || cg_mpi_open(&mpi, MPI_COMM_WORLD) != MPI_SUCCESS) return 2;
    rank_here = mpi.transport.rank;
    opt.transport = "mpi";
#endif
    parse(argc, argv);
    if (opt.help) {
        if (!rank_here) help();
#ifdef TRAIN_MPI
        MPI_Finalize();
#endif
        return 0;
    }
    choose();
#ifdef TRAIN_MPI
    if (strcmp(opt.transport, "mpi"))
        die("--transport %s: this is the program for MPI; build/train has the others", opt.transport);
    if (opt.workers && opt.workers != mpi.transport.size)
        die("--workers %d, but mpirun started %d", opt.workers, mpi.transport.size);
    opt.workers = mpi.transport.size;
    if (opt.workers > MAX_WORKERS) die("%d ranks: at most %d", opt.workers, (int)MAX_WORKERS);
    mpi.timeout_ms = milliseconds(opt.timeout);
#else
    if (!opt.workers) opt.workers = WORKERS;
    if (!strcmp(opt.transport, "mpi"))
        die("--transport mpi: this is the program without MPI. make build/train_mpi && mpirun -np %d build/train_mpi "
            "...",
            opt.workers);
    if (strcmp(opt.transport, "threads") && strcmp(opt.transport, "tcp"))
        die("--transport %s: give threads, tcp or mpi", opt.transport);
#endif
    alone = 1;
    if (!rank_here) {
        try_to_write("--csv", opt.csv, 0);
        try_to_write("--plot", opt.plot, 0);
        try_to_write("--checkpoint", opt.checkpoint, 1);
        try_to_write("--dump-gradients", opt.dump, 1);
    }
    code = load(why, sizeof why);
#ifdef TRAIN_MPI
    code = any_failed(&mpi.transport, code, why);
    if (code == 2) return MPI_Finalize(), code;
    if (!code) {
        introduce(&mpi.transport);
        code = work(&mpi.transport);
    }
    if (code == EXIT_PEER)
        say("worker %d: %s. --resume goes on from the last epoch", rank_here,
            cg_mpi_error(broken[rank_here], why, sizeof why));
    if (code) MPI_Abort(MPI_COMM_WORLD, code);
    if (!rank_here) code = show();
    cg_mpi_close(&mpi);
    MPI_Finalize();
#else
    if (code) die("%s", why);
    code = strcmp(opt.transport, "tcp") ? run_threads() : run_processes();
#endif
    for (i = 0; i < MAX_RUNS; i++)
        for (k = 0; k < MAX_SEEDS; k++) free(outcomes[i][k].epoch), free(outcomes[i][k].loss);
    data_free(&data);
    return code;
}
