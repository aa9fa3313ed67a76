# sh bench/optimizers.sh [FILE.csv]: what memories cost under the optimizers that people have, on the small network with
# four workers: AdamW and SGD with momentum .9, three seeds. Dense gradients are tried at five rates, the others at two
# to four. A packet of differences has 1/300 of the model's bytes (or 1/155, every other step), one of filtered momentum
# 1/75; top-k has as many. Takes ten minutes; bench/results/optimizers.csv is what it wrote.
cd "$(dirname "$0")/.." || exit 1
out=${1:-bench/out/optimizers.csv}
mkdir -p bench/out && make -s build/train || exit 1
: >"$out"
run() {         # run OPTIONS...
    build/train --net small --workers 4 --epochs 6 --seeds 3 --checkpoint bench/out/optimizers --csv bench/out/one.csv "$@" >bench/out/one.log 2>&1 || exit 1
    sed 's/^# .*build\/train /# build\/train /; s/ --checkpoint [^ ]* --csv [^ ]*//' bench/out/one.csv >>"$out"
    echo "$(grep ' ± ' bench/out/one.log | sed 's/.*  \([0-9.]* ± [0-9.]*\) .*/\1/')  $*"
}
for rate in .0005 .001 .002 .004 .008; do run --method dense --optimizer adamw --rate $rate; done
for rate in .002 .003 .004; do
    run --method 'randk:0.175|eden:1' --memory difference --every 2 --optimizer adamw --rate $rate
done
run --method 'randk:0.0777|eden:1' --memory difference --lambda 2 --optimizer adamw --rate .002
for rate in .001 .002; do run --method 'topk:0.0029|f16' --memory classic --optimizer adamw --rate $rate; done
for rate in .0125 .025 .05 .1 .2; do run --method dense --optimizer momentum --rate $rate; done
for rate in .0125 .025; do run --method 'randk:0.3889|eden:1' --memory filtered --optimizer momentum --rate $rate; done
for rate in .0125 .025; do run --method 'topk:0.016|f16' --memory classic --optimizer momentum --rate $rate; done
