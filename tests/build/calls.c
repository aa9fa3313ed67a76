/* cc -finstrument-functions tests/build/calls.c -pthread: how often one step of cg_ef_exchange on two ranks checks its
   operator, parses headers and plans. The compiler calls count() at the entry of every function; what rank 0 does in
   its second step is counted, with packets of both ranks to be decoded. Fails above what is allowed. */
#include "examples/transport_threads.h"
#define COMPGRAD_STATIC
#define COMPGRAD_NO_SIMD
#define COMPGRAD_IMPLEMENTATION
#include "compgrad_ef.h"
#include <stdio.h>

#define NOT_COUNTED __attribute__((no_instrument_function))
enum { N = 64, CHECKS, HEADERS, PLANS, KINDS };
static const char *const names[] = { "operator checked", "headers parsed", "plans made" };
static __thread int counting;
static __thread unsigned counts[KINDS];
static unsigned result[KINDS];

void __cyg_profile_func_enter(void *function, void *site) NOT_COUNTED;
void __cyg_profile_func_exit(void *function, void *site) NOT_COUNTED;
void __cyg_profile_func_enter(void *function, void *site) {
    (void)site;
    if (!counting) return;
    if (function == (void *)cg_op_check_) counts[CHECKS]++;
    if (function == (void *)cg_header_get_like_) counts[HEADERS]++;
    if (function == (void *)cg_plan_resume_) counts[PLANS]++;
}
void __cyg_profile_func_exit(void *function, void *site) {
    (void)function;
    (void)site;
}

typedef struct job {
    const char *text;
    uint32_t route;
} job;
static int worker(cg_threads_world *world, int rank, void *user) {
    const job *j = (const job *)user;
    const cg_transport t = cg_threads_transport(world, rank, CG_THREADS_ALL);
    cg_ef_desc ef_desc = CG_ZERO;
    cg_exchange_desc desc = CG_ZERO;
    cg_ef ef;
    float grad[N];
    size_t bytes;
    void *state, *mem;
    cg_status s;
    ef_desc.n = N;
    if (cg_op_parse(&ef_desc.op, j->text) != CG_OK) return 1;
    bytes = cg_ef_memory(&ef_desc);
    state = malloc(bytes);
    if (!state || cg_ef_init(&ef, &ef_desc, state, bytes) != CG_OK) return 2;
    desc.route = j->route;
    bytes = cg_ef_exchange_memory(&ef, &desc, &t);
    mem = malloc(bytes);
    if (!mem) return 3;
    for (desc.tag.step = 0; desc.tag.step < 2; desc.tag.step++) {
        for (int i = 0; i < N; i++) grad[i] = (float)((i * 37 + rank * 11 + (int)desc.tag.step * 5) % 29 - 14);
        counting = rank == 0 && desc.tag.step == 1;
        s = cg_ef_exchange(&ef, &desc, &t, grad, mem, bytes, NULL);
        counting = 0;
        if (s != CG_OK) return 4;
    }
    if (rank == 0) memcpy(result, counts, sizeof result);
    free(mem);
    free(state);
    return 0;
}
/* calls OPERATOR ROUTE CHECKS HEADERS PLANS: at most so many. */
int main(int argc, char **argv) {
    int bad = 0, code;
    job j;
    if (argc < 6) return 2;
    j.text = argv[1];
    j.route = (uint32_t)atoi(argv[2]);
    code = cg_threads_run(2, worker, &j);
    if (code) return printf("%s: a rank failed, %d\n", argv[1], code), 1;
    for (int i = 0; i < 3; i++) {
        printf("%s, route %u: %s %u times, at most %s\n", argv[1], (unsigned)j.route, names[i], result[CHECKS + i],
            argv[3 + i]);
        bad |= result[CHECKS + i] > (unsigned)atoi(argv[3 + i]);
    }
    return bad;
}
