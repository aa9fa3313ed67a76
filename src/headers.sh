#!/bin/sh
# sh src/headers.sh [FOLDER]: writes compgrad*.h, each the rooms below one after the other, at the top of the tree or
# into FOLDER. It only concatenates: a line names each room where it begins.
cd "$(dirname "$0")/.." || exit 1
to=${1:-.}

header() { # header NAME ROOM...
    name=$1
    shift
    {
        printf '/* %s: made of the files in src/ by "make headers"; change those, not this one. */\n' "$name"
        for room; do
            printf '\n/* src/%s */\n' "$room"
            cat "src/$room" || exit 1
        done
    } >"$to/$name.new" && mv "$to/$name.new" "$to/$name" || exit 1
}

header compgrad.h core/manual.h core/api.h core/begin.h core/base/platform.h core/base/with.h core/base/fp_begin.h \
    core/base/bits.h core/base/math.h core/base/report.h core/base/environment.h core/base/words.h core/random.h \
    core/kernels/table.h core/kernels/lanes.h core/kernels/avx2.h core/kernels/neon.h core/kernels/wasm.h core/kernels/halves.h \
    core/kernels/vectors.h core/kernels/formats.h core/kernels/levels.h core/kernels/pack.h core/kernels/filter.h \
    core/kernels/decode.h core/kernels/axpby.h core/kernels/rotate.h core/kernels/sums.h core/kernels/lookup.h \
    core/kernels/dct.h core/kernels/fp8.h core/kernels/natural.h core/kernels/stochastic.h core/kernels/clip.h core/kernels/rate.h core/kernels/dynamic8.h \
    core/kernels/vote.h core/kernels/matrix.h core/kernels/floats.h core/kernels/index.h core/kernels/lines.h core/kernels/dispatch.h \
    core/codes/bits.h core/codes/huffman.h core/codes/elias.h core/codes/quartic.h core/codes/symbols.h \
    core/codes/floats.h core/codes/golomb.h core/codes/rans.h core/codes/rans_plan.h core/codes/rans_put.h core/lowrank.h core/atomo.h \
    core/stages.h core/plan.h core/presets.h core/text.h core/parse.h core/packet.h \
    core/quantize/scales.h core/quantize/formats.h core/quantize/lloyd.h core/quantize/plain.h core/quantize/rate.h core/layout.h \
    core/segments/table.h core/sample.h core/transform.h core/source.h \
    core/select/list.h core/select/filter.h core/select/topk.h core/select/thresholds.h core/select/wangni.h \
    core/select/sides.h core/select/with_aux.h core/select/chunked.h core/matrix.h core/error.h core/indices.h \
    core/rows.h \
    core/encode.h core/rate.h core/compress.h core/decoder.h core/verify.h core/decode_into.h core/decode.h \
    core/segments/decode.h core/segments/compress.h core/reduce.h core/segments/reduce.h \
    core/sparse.h core/resolve.h core/about.h core/f16.h core/status.h core/base/fp_end.h core/base/end.h

header compgrad_exchange.h exchange/manual.h exchange/api.h exchange/begin.h core/base/fp_begin.h \
    exchange/ranks.h exchange/sums.h exchange/collectives.h exchange/routes.h exchange/memory.h exchange/opening.h exchange/notes.h \
    exchange/packets.h exchange/coroutine.h exchange/lists.h exchange/robust.h exchange/accumulate.h exchange/allgather.h \
    exchange/owner.h exchange/legs.h exchange/partial.h exchange/merge.h exchange/region.h exchange/direct.h exchange/shared_linear.h \
    exchange/costs.h exchange/rows.h exchange/exchange.h exchange/joined.h exchange/packed.h exchange/layers.h exchange/levels.h \
    core/base/fp_end.h core/base/end.h

header compgrad_ef.h ef/manual.h ef/api.h ef/mean_api.h ef/begin.h core/base/fp_begin.h ef/kinds.h ef/omega.h ef/schedule.h \
    ef/report.h ef/residual8.h ef/delay.h ef/plan.h ef/step.h ef/mark.h ef/laq.h ef/rollback.h ef/compress.h ef/commit.h \
    ef/exchange.h ef/agree.h ef/withdraw.h ef/rows.h ef/adjust.h ef/save.h \
    ef/diff.h ef/mean_words.h ef/mean.h ef/mean_step.h ef/mean_next.h ef/mean_agree.h ef/mean_describe.h ef/mean_save.h \
    core/base/fp_end.h core/base/end.h

header compgrad_sketch.h sketch/manual.h sketch/api.h sketch/begin.h core/base/fp_begin.h sketch/hash.h \
    sketch/sketch.h sketch/estimate.h sketch/heavy.h sketch/packets.h sketch/exchange.h \
    sketch/sketched.h sketch/fetched.h core/base/fp_end.h core/base/end.h

header compgrad_sync.h sync/manual.h sync/api.h sync/server_api.h sync/begin.h core/base/fp_begin.h \
    sync/spectrum.h sync/graph.h sync/graph_make.h sync/local.h sync/local_save.h \
    sync/gossip_kinds.h sync/gossip.h sync/gossip_save.h sync/pair.h \
    sync/wire.h sync/server.h sync/server_next.h sync/server_save.h sync/client.h core/base/fp_end.h core/base/end.h
