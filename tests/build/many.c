/* The headers many times in one file: implementation after a plain include, twice, and plain again. The last
   headers have to bring the implementation of those before them. */
#include "compgrad_sketch.h"
#include "compgrad_sync.h"
#include "compgrad_ef.h"
#include "compgrad_exchange.h"
#include "compgrad.h"
#define COMPGRAD_IMPLEMENTATION
#include "compgrad_sketch.h"
#include "compgrad_sync.h"
#include "compgrad_ef.h"
#include "compgrad_exchange.h"
#include "compgrad.h"
#include "compgrad_ef.h"
#include "compgrad_sketch.h"
#include "compgrad_sync.h"
#undef COMPGRAD_IMPLEMENTATION
#include "compgrad.h"
#include "compgrad_exchange.h"
#include "compgrad_ef.h"
#include "compgrad_sketch.h"
#include "compgrad_sync.h"

int main(void) {
    float x[3] = { 1, -2, 3 }, y[3] = { 0, 0, 0 };
    unsigned char packet[CG_HEADER_BYTES + 12];
    size_t len;
    cg_op op = cg_dense();
    if (cg_compress(&op, NULL, x, 3, packet, sizeof packet, &len, NULL, 0) != CG_OK) return 1;
    if (cg_decompress(packet, len, y, 3) != CG_OK) return 2;
    {
        static unsigned char mem[1 << 16];
        cg_exchange_desc desc = CG_ZERO;
        cg_transport alone = CG_ZERO;
        alone.size = 1;
        if (cg_exchange(&desc, &alone, y, 3, mem, sizeof mem, NULL) != CG_OK) return 3;
        {
            cg_ef_desc d = CG_ZERO;
            cg_ef ef;
            d.n = 3;
            if (cg_ef_init(&ef, &d, mem, cg_ef_memory(&d)) != CG_OK) return 4;
            if (cg_ef_compress(&ef, NULL, x, packet, sizeof packet, &len) != CG_OK ||
                cg_ef_commit(&ef, packet, len, NULL) != CG_OK)
                return 5;
        }
        {
            cg_sketch_desc d = CG_ZERO;
            cg_sketch sketch;
            d.rows = 1;
            d.cols = 1;
            d.n = 3;
            if (cg_sketch_init(&sketch, &d, mem, sizeof mem) != CG_OK || cg_sketch_add(&sketch, x, 3, 1) != CG_OK)
                return 6;
            if (cg_sketch_estimate(&sketch, 1) > -2) return 7; /* three of one line do not collide */
        }
        {
            cg_graph_desc d = CG_ZERO;
            cg_graph graph;
            d.nodes = 4;
            if (cg_graph_init(&graph, &d, mem, sizeof mem, NULL, 0) != CG_OK) return 8;
            if (cg_graph_gap(&graph) < 0.66) return 9;
        }
    }
    return y[0] < 1 || y[1] > -2 || y[2] < 3;
}
