/* Nodes of a graph in one thread: their cg_gossip are driven in turn, and their messages are matched here. A node may
   be away (it takes no step, and who wants to meet it is told so at once), and a link between two nodes may be down. */
#ifndef GOSSIP_SIM_H
#define GOSSIP_SIM_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compgrad_sync.h"

enum { NODES_MOST = 64, SIM_DOWN = 5, SIM_SIZES = 6 };
typedef struct gossip_node {
    cg_gossip g;
    void *mem;
    float *x, *grad;
    cg_io io;
    cg_status status;
    int away, waiting, sent, received, code;
} gossip_node;
typedef struct gossip_sim {
    int nodes;
    cg_gossip_desc desc;
    gossip_node node[NODES_MOST];
    int down[NODES_MOST][NODES_MOST];                                 /* links */
    void (*hurt)(void *user, int from, int to, void *in, size_t len); /* what has arrived */
    void *hurt_user;
    uint64_t bytes;
} gossip_sim;

static void gossip_sim_close(gossip_sim *s) {
    for (int i = 0; i < s->nodes; i++) {
        free(s->node[i].mem);
        free(s->node[i].x);
        free(s->node[i].grad);
    }
    memset(s, 0, sizeof *s);
}
static cg_status gossip_sim_init_node(gossip_sim *s, int i) {
    cg_gossip_desc d = s->desc;
    d.rank = i;
    free(s->node[i].mem);
    s->node[i].mem = malloc(cg_gossip_memory(&d) + 1);
    return cg_gossip_init(&s->node[i].g, &d, s->node[i].x, (char *)s->node[i].mem + 1, cg_gossip_memory(&d));
}
/* x of all nodes is zeros, or as x0 says. */
static cg_status gossip_sim_open(gossip_sim *s, const cg_gossip_desc *desc, float (*x0)(int node, size_t i)) {
    cg_status status = CG_OK;
    memset(s, 0, sizeof *s);
    s->nodes = desc->graph->desc.nodes;
    s->desc = *desc;
    for (int i = 0; i < s->nodes && status == CG_OK; i++) {
        s->node[i].x = calloc(desc->n + 1, sizeof(float));
        s->node[i].grad = calloc(desc->n + 1, sizeof(float));
        for (size_t k = 0; x0 && k < desc->n; k++) s->node[i].x[k] = x0(i, k);
        status = gossip_sim_init_node(s, i);
    }
    return status;
}
static void gossip_sim_next(gossip_node *k) {
    k->status = cg_gossip_next(&k->g, k->code, &k->io);
    k->code = k->sent = k->received = 0;
    k->waiting = k->status == CG_AGAIN;
}
/* One step of all that are not away. Returns 0 if some node waits for ever. */
static int gossip_sim_step(gossip_sim *s, float rate, uint64_t step) {
    int left = 0;
    for (int i = 0; i < s->nodes; i++) {
        gossip_node *k = &s->node[i];
        k->waiting = 0;
        if (k->away) continue;
        k->status = cg_gossip_start(&k->g, k->x, k->grad, rate, step);
        if (k->status != CG_OK) continue;
        gossip_sim_next(k);
        left += k->waiting;
    }
    while (left) {
        int moved = 0;
        for (int i = 0; i < s->nodes; i++) {
            gossip_node *a = &s->node[i], *b;
            if (!a->waiting) continue;
            if (a->io.to >= 0 && !a->sent) {
                b = &s->node[a->io.to];
                if (b->away || s->down[i][a->io.to] || s->down[a->io.to][i]) {
                    a->code = SIM_DOWN, a->sent = 1, moved = 1;
                } else if (b->waiting && b->io.from == i && !b->received) {
                    if (b->io.in_bytes == a->io.out_bytes) {
                        memcpy(b->io.in, a->io.out, a->io.out_bytes);
                        s->bytes += a->io.out_bytes;
                        if (s->hurt) s->hurt(s->hurt_user, i, a->io.to, b->io.in, b->io.in_bytes);
                    } else a->code = b->code = SIM_SIZES;
                    a->sent = b->received = 1, moved = 1;
                } else if (!b->waiting) {
                    a->code = SIM_DOWN, a->sent = 1, moved = 1;
                }
            }
            if (a->io.from >= 0 && !a->received) {
                b = &s->node[a->io.from];
                if (b->away || s->down[i][a->io.from] || s->down[a->io.from][i] || !b->waiting)
                    a->code = SIM_DOWN, a->received = 1, moved = 1;
            }
            if ((a->io.to < 0 || a->sent) && (a->io.from < 0 || a->received)) {
                gossip_sim_next(a);
                left -= !a->waiting;
                moved = 1;
            }
        }
        for (int i = 0; !moved && s->hurt && i < s->nodes; i++)
            if (s->node[i].waiting) { /* after a damaged note others wait for a packet: a timeout strikes one of them */
                s->node[i].code = SIM_DOWN, s->node[i].sent = s->node[i].received = 1, moved = 1;
            }
        if (!moved) return 0;
    }
    return 1;
}

#endif
