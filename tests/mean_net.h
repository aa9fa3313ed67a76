/* Ranks that are threads, for tests of cg_mean: messages wait in queues, one callback can fail, and bytes that arrive
   can be changed. After a failure everybody meets (net_meet), queues are emptied, and all can go on. */
#ifndef MEAN_NET_H
#define MEAN_NET_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "compgrad_ef.h"

enum { NET_MOST = 8 };
typedef struct net_message {
    struct net_message *next;
    size_t bytes;
    unsigned char data[1];
} net_message;
typedef struct net {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    int size, waiting, meeting; /* of net_meet */
    int broken;                 /* a callback has failed since they met */
    int calls[NET_MOST];        /* since then */
    int fail_rank, fail_call;   /* this call of this rank fails; fail_call < 0: none */
    int hurt_rank, hurt_call;   /* a byte that it receives is changed */
    net_message *first[NET_MOST][NET_MOST], *last[NET_MOST][NET_MOST]; /* from, to */
    int sizes_differ; /* a message was not as long as its receiver expected */
    int stuck;        /* ranks that waited for ever */
} net;
typedef struct net_end {
    net *w;
    int rank;
} net_end;

static int net_sendrecv(void *user, const void *out, size_t out_bytes, int to, void *in, size_t in_bytes, int from) {
    const net_end *e = (const net_end *)user;
    net *w = e->w;
    int me = e->rank, call, code = 0;
    pthread_mutex_lock(&w->lock);
    call = w->calls[me]++;
    if (me == w->fail_rank && call == w->fail_call) {
        w->broken = 1;
        code = 7;
    }
    if (!code && to >= 0) {
        net_message *m = (net_message *)malloc(sizeof *m + out_bytes);
        m->next = NULL;
        m->bytes = out_bytes;
        if (out_bytes) memcpy(m->data, out, out_bytes);
        if (w->last[me][to]) w->last[me][to]->next = m;
        else w->first[me][to] = m;
        w->last[me][to] = m;
    }
    pthread_cond_broadcast(&w->wake);
    if (!code && from >= 0) {
        net_message *m;
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += 20;
        while (!w->first[from][me] && !w->broken)
            if (pthread_cond_timedwait(&w->wake, &w->lock, &until)) {
                w->stuck++;
                w->broken = 1;
                pthread_cond_broadcast(&w->wake);
            }
        m = w->first[from][me];
        if (!m) code = 8;
        else {
            w->first[from][me] = m->next;
            if (!m->next) w->last[from][me] = NULL;
            if (m->bytes != in_bytes) {
                w->sizes_differ++;
                w->broken = 1;
                pthread_cond_broadcast(&w->wake);
                code = 9;
            } else if (in_bytes) memcpy(in, m->data, in_bytes);
            if (!code && in_bytes && me == w->hurt_rank && call == w->hurt_call)
                ((unsigned char *)in)[in_bytes / 2] ^= 0x40;
            free(m);
        }
    }
    pthread_mutex_unlock(&w->lock);
    return code;
}
static cg_transport net_transport(net_end *e, net *w, int rank) {
    cg_transport t = CG_ZERO;
    e->w = w;
    e->rank = rank;
    t.user = e;
    t.rank = rank;
    t.size = w->size;
    t.sendrecv = net_sendrecv;
    return t;
}
/* Every rank waits here for all others; then nothing is under way any more. */
static void net_meet(net *w) {
    int meeting;
    pthread_mutex_lock(&w->lock);
    meeting = w->meeting;
    if (++w->waiting == w->size) {
        for (int a = 0; a < w->size; a++)
            for (int b = 0; b < w->size; b++) {
                while (w->first[a][b]) {
                    net_message *m = w->first[a][b];
                    w->first[a][b] = m->next;
                    free(m);
                }
                w->last[a][b] = NULL;
            }
        memset(w->calls, 0, sizeof w->calls);
        w->broken = w->waiting = 0;
        w->meeting++;
        pthread_cond_broadcast(&w->wake);
    } else
        while (w->meeting == meeting) pthread_cond_wait(&w->wake, &w->lock);
    pthread_mutex_unlock(&w->lock);
}
typedef struct net_thread {
    net *w;
    int rank, code;
    int (*fn)(net *w, int rank, void *user);
    void *user;
} net_thread;
static void *net_thread_main(void *user) {
    net_thread *t = (net_thread *)user;
    t->code = t->fn(t->w, t->rank, t->user);
    return NULL;
}
/* Runs fn on `size` ranks; the first code that is not 0. A rank that returns early must not leave others at net_meet.
   */
static int net_run(net *w, int size, int (*fn)(net *, int, void *), void *user) {
    pthread_t id[NET_MOST];
    net_thread t[NET_MOST];
    int code = 0;
    memset(w, 0, sizeof *w);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->wake, NULL);
    w->size = size;
    w->fail_call = w->hurt_call = -1;
    for (int r = 0; r < size; r++) {
        t[r].w = w;
        t[r].rank = r;
        t[r].fn = fn;
        t[r].user = user;
        if (pthread_create(&id[r], NULL, net_thread_main, &t[r])) abort();
    }
    for (int r = 0; r < size; r++) {
        pthread_join(id[r], NULL);
        if (t[r].code && !code) code = t[r].code;
    }
    return code;
}

#endif
