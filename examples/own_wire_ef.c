/* cc -O2 -I. examples/own_wire_ef.c -o own_wire_ef && ./own_wire_ef

   Error feedback when you move the packets yourself, over a link that loses every fifth message. A worker compresses
   its gradient, sends the packet, and then calls cg_ef_commit if the packet arrived or cg_ef_rollback if it did not.
   Either way, the decoded packets that arrived plus the residual equal the sum of all gradients; to the last bit here,
   because all numbers are multiples of 1/16. */

#define COMPGRAD_IMPLEMENTATION
#include "compgrad_ef.h"

#include <stdio.h>
#include <stdlib.h>

enum { N = 4000, STEPS = 300 };

static float grad[N], all[N], arrived[N];
static uint32_t state = 1;

static uint32_t draw(void) { return (state = state * 1664525u + 1013904223u) >> 8; }

static void make_gradient(void) /* some directions that stay, and noise */
{
    int i;
    for (i = 0; i < N; i++) {
        grad[i] = (float)(i % 17 - 8) / 16.0f + (float)((int)(draw() % 129u) - 64) / 16.0f;
        all[i] += grad[i];
    }
}

/* The receiver; 0 if it got nothing. */
static int wire(const void *packet, size_t len, cg_status *s) {
    if (draw() % 5u == 0) return 0;
    *s = cg_decompress_add(packet, len, 1.0f, arrived, N);
    return 1;
}

int main(void) {
    cg_ef_desc d = CG_ZERO;
    cg_ef ef;
    cg_tag tag = { 42, 0, 0, 0 }; /* seed, step, tensor, rank */
    cg_status s;
    size_t cap, len, sent = 0, lost = 0, wrong = 0;
    double gain = 0;
    void *memory, *packet;
    int i;

    d.op = cg_topk(0.05f);
    d.n = N;
    cap = cg_ef_bound(&d);
    memory = malloc(cg_ef_memory(&d));
    packet = malloc(cap);
    if (!memory || !packet) return 1;
    s = cg_ef_init(&ef, &d, memory, cg_ef_memory(&d));

    printf("A worker sends the 5 %% largest of %d values in every step; every fifth packet is lost.\n", N);
    for (tag.step = 0; tag.step < STEPS && s == CG_OK; tag.step++) {
        make_gradient();
        s = cg_ef_compress(&ef, &tag, grad, packet, cap, &len);
        if (s != CG_OK) break;
        sent += len;
        if (wire(packet, len, &s)) {
            if (s == CG_OK) s = cg_ef_commit(&ef, packet, len, NULL);
            gain += (double)cg_ef_stats_of(&ef).gain;
        } else {
            s = cg_ef_rollback(&ef, packet, len); /* not sent again: its values go with the next packets */
            lost++;
        }
    }
    if (s != CG_OK) {
        fprintf(stderr, "step %lu: %s\n", (unsigned long)tag.step, cg_status_str(s));
        return 1;
    }
    for (i = 0; i < N; i++) wrong += arrived[i] + cg_ef_residual(&ef)[i] != all[i];
    printf("%d packets of %lu bytes instead of %lu, %lu of them lost; the others took %.0f %% of the energy that was "
           "waiting\n",
        STEPS, (unsigned long)(sent / STEPS), (unsigned long)sizeof grad, (unsigned long)lost,
        100 * gain / (double)(STEPS - lost));
    printf("arrived + residual differs from the sum of all gradients in %lu of %d places\n", (unsigned long)wrong, N);
    free(packet);
    free(memory);
    return wrong != 0;
}
