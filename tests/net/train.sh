# bench/train.c with every method, between threads, processes and MPI ranks; killed and resumed; with files that are damaged
# and options that make no sense. What comes out has to have the same bits every time.
train=$tmp/train
td=$tmp/train.d                         # what a run leaves
fashion=$(sed -n 's/^#define DATA_FASHION "\(.*\)".*/\1/p' bench/data.h)

glyphs() { timeout 120 "$train" --data glyphs --net small "$@" >"$td/out" 2>"$td/err"; }
fine() { glyphs "$@" || { echo "exit status $?:"; cat "$td/out" "$td/err"; return 1; }; }

# facts CSV: its lines without the codec's share and the seconds, which are never the same
facts() { sed '/^#/d' "$1" | awk -F, -v OFS=, '{ $(NF - 1) = $(NF - 2) = ""; print }'; }
same() {                                # CSV CSV
    facts "$1" >"$td/one" && facts "$2" >"$td/two" && [ "$(wc -l <"$td/one")" -gt 1 ] || { echo "no lines"; return 1; }
    diff "$td/one" "$td/two"
}
# above CSV NUMBER METHOD...: the accuracy in the last epoch of each
above() {
    above_csv=$1 above_all=$2; shift 2
    for m in "$@"; do
        awk -F, -v m="$m" -v least="$above_all" '$1 == m { a = $(NF - 4) } END { if (a < least) { print m ": " a ", less than " least; exit 1 } }' "$above_csv" || return
    done
}

# ---- every method ----

# all_train WORKERS: two epochs of each, a line for each of them, a hash of the weights in the last
all_train() {
    fine --workers $1 --ratio 0.01 --epochs 2 --checkpoint "$td/ck.all$1" --csv "$td/all$1.csv" || return
    for m in $methods; do
        [ "$(grep -c "^$m,.*,small,$1,1,[12],[0-9.]*,[0-9.]*,0[.][0-9]*,[0-9]*,[0-9.]*,[0-9.]*,\([0-9a-f]\{16\}\)*\$" "$td/all$1.csv")" = 2 ] || {
            echo "$m: not two lines:"; grep "^$m," "$td/all$1.csv"; return 1; }
        [ "$(grep -c "^$m,.*,2,.*,[0-9a-f]\{16\}\$" "$td/all$1.csv")" = 1 ] || { echo "$m: no hash of the weights"; return 1; }
        grep -q "^$m  *.*x  *[0-9.]* %" "$td/out" || { echo "$m: not in the table"; cat "$td/out"; return 1; }
    done
}
# The worst of six seeds, with three and four workers: dense 90 %, the vote, which is slow, 62 %, the others 84 %; guessing would be 10 %.
# Top-k of 1/1000: 85 % or more, without error feedback 58 % or less; efsign with 8 images: 92 and 86 %
learnt() {
    above "$td/all$1.csv" .87 dense && above "$td/all$1.csv" .5 vote &&
        above "$td/all$1.csv" .78 $(for m in $methods; do case $m in *-alone|vote) ;; *) echo $m ;; esac; done)
}
feedback_helps() {
    fine --workers 4 --ratio 0.001 --epochs 2 --method topk,topk-alone --checkpoint "$td/ck.help" --csv "$td/help.csv" || return
    awk -F, '$1 == "topk" { a = $(NF - 4) } $1 == "topk-alone" { b = $(NF - 4) } END { print a, b; exit !(a > .78 && b > .2 && a > b + .15) }' "$td/help.csv" || return
    fine --workers 4 --batch 8 --epochs 2 --method sign-alone,efsign --checkpoint "$td/ck.help" --csv "$td/help.csv" || return
    awk -F, '$1 == "efsign" { a = $(NF - 4) } $1 == "sign-alone" { b = $(NF - 4) } END { print a, b; exit !(a > .88 && a > b + .04) }' "$td/help.csv" &&
        grep '^Without error feedback efsign ends [0-9.]* points lower (sign-alone)[.]$' "$td/out"
}
hash_repeats() {
    fine --workers 4 --epochs 2 --method dense --checkpoint "$td/ck.again" --csv "$td/again.csv" || return
    sed -n '/^dense,/p; /^method,/p' "$td/all4.csv" >"$td/before.csv"
    same "$td/before.csv" "$td/again.csv"
}
seeds_differ() {
    fine --workers 3 --epochs 1 --method dense,eden --seeds 3 --seed 7 --checkpoint "$td/ck.seeds" --csv "$td/seeds.csv" || return
    [ "$(sed -n 's/.*,\([0-9a-f]\{16\}\)$/\1/p' "$td/seeds.csv" | sort -u | wc -l)" -eq 6 ] && grep -q '±' "$td/out" || { cat "$td/out" "$td/seeds.csv"; return 1; }
    [ "$(grep -c '^[de].*,small,3,[789],1,' "$td/seeds.csv")" = 6 ]
}

# ---- every transport ----

few="--ratio 0.01 --batch 500 --epochs 1 --whole --layerwise"       # steps: MPICH's ranks wait busily, and there may be more of them than cores
by_threads() { fine --workers $1 $few --checkpoint "$td/ck.way" --csv "$td/threads$1.csv"; }
by_tcp() { fine --workers $1 $few --transport tcp --checkpoint "$td/ck.way" --csv "$td/tcp$1.csv" && same "$td/threads$1.csv" "$td/tcp$1.csv"; }
parts_differ() {                        # otherwise --layerwise was not tried
    [ "$(grep '^topk,.*,layers,' "$td/threads4.csv" | sed 's/.*,//')" != "$(grep '^topk,.*,whole,' "$td/threads4.csv" | sed 's/.*,//')" ] &&
        [ "$(grep -c ',layers,' "$td/threads4.csv")" = "$(grep -c ',whole,' "$td/threads4.csv")" ]
}
# ways EXPECTED OPTION...: what the CSV has as methods and parts
ways() {
    expected=$1; shift
    fine --workers 2 --batch 500 --epochs 1 "$@" --checkpoint "$td/ck.way" --csv "$td/way.csv" || return
    [ "$(sed '/^#/d; /^method,/d' "$td/way.csv" | cut -d , -f 1,3 | tr '\n' ' ')" = "$expected " ] || { cat "$td/way.csv"; return 1; }
}
one_way() {                             # methods that have only one are labelled so, and not run twice
    ways "sketched,whole powersgd,layers lowrank:3,layers topk,whole topk,layers" --method sketched,powersgd,lowrank:3,topk,topk --whole --layerwise &&
        ways "sketched,whole" --method sketched --layerwise && ways "powersgd,layers" --method powersgd --whole
}
longer_tcp() {                          # the runs of all_train, whose lines come from threads
    fine --workers $1 --ratio 0.01 --epochs 2 --transport tcp --checkpoint "$td/ck.way" --csv "$td/longer.csv" && same "$td/all$1.csv" "$td/longer.csv"
}
by_mpi() {
    by_mpi_ranks=$1; shift
    timeout 200 "$@" -np $by_mpi_ranks "$tmp/train_mpi" --data glyphs --net small --transport mpi $few --checkpoint "$td/ck.way" --csv "$td/mpi.csv" >"$td/out"
    status=$?
    cat "$td/out"
    [ $status -eq 0 ] && ! od -An -c "$td/out" | grep -q 033 && [ "$(grep -c '^worker [0-3] is process [1-9]' "$td/out")" -eq $by_mpi_ranks ] || return
    same "$td/threads$by_mpi_ranks.csv" "$td/mpi.csv"
}
mpi_refuses() {                         # LAUNCHER OPTION...: once, by one rank
    timeout 60 "$@" -np 3 "$tmp/train_mpi" --data "$td/nosuch" --checkpoint "$td/ck.way" >"$td/out" 2>&1
    status=$?
    cat "$td/out"
    [ $status -ne 0 ] && [ $status -ne 124 ] && [ "$(grep -c "^train: .*$td/nosuch" "$td/out")" -eq 1 ]
}
# mpi_killed LAUNCHER OPTION...: a rank is killed, the job ends by itself; resumed, it has the bits of threads
mpi_killed() {
    ck=$td/ck.mpi
    mpi_long="$tmp/train_mpi --data glyphs --net small $long --method efsign --checkpoint $ck"
    fine $long --method efsign --checkpoint "$ck" --csv "$td/long-mpi.csv" || return
    for try in 1 2 3 4 5; do
        forget efsign
        rm -f "$td/rc" "$td/out"
        { timeout 120 "$@" -np 4 $mpi_long >"$td/out" 2>"$td/err"; echo $? >"$td/rc"; } &
        shell=$!
        begun efsign || { wait $shell; return 1; }
        kill -9 $(sed -n 's/^worker 2 is process \([0-9]*\).*/\1/p' "$td/out")
        wait $shell
        status=$(cat "$td/rc")
        midway efsign || continue
        echo "exit status $status"; cat "$td/out" "$td/err"
        [ "$status" -ne 0 ] && [ "$status" -ne 124 ] || return
        timeout 120 "$@" -np 4 $mpi_long --resume --csv "$td/mpi.csv" >"$td/out" || return
        tr -d '\r' <"$td/out" >"$td/two" && cp "$td/two" "$td/out" && went_on efsign && same "$td/long-mpi.csv" "$td/mpi.csv"
        return
    done
    echo "always ended before it was killed"
    return 1
}
# mpi_stands_still LAUNCHER OPTION...: a rank is stopped; after the timeout the others say so, and the job ends
mpi_stands_still() {
    ck=$td/ck.mpi
    forget efsign
    rm -f "$td/rc" "$td/out"
    { timeout 60 "$@" -np 3 "$tmp/train_mpi" --data glyphs --net small --epochs 60 --timeout 2 --method efsign --checkpoint "$ck" \
        >"$td/out" 2>"$td/err"; echo $? >"$td/rc"; } &
    shell=$!
    until grep -q '^worker 2 is process' "$td/out" 2>/dev/null && [ -n "$(kept efsign 1)" ] || [ -s "$td/rc" ]; do soon; done
    pid=$(sed -n 's/^worker 1 is process \([0-9]*\).*/\1/p' "$td/out") since=$(date +%s)
    kill -STOP $pid
    wait $shell
    status=$(cat "$td/rc") took=$(($(date +%s) - since))
    echo "exit status $status after $took s"; cat "$td/out" "$td/err"
    gone $pid && [ "$status" -ne 0 ] && [ "$status" -ne 124 ] && [ $took -ge 2 ] && [ $took -lt 30 ] &&
        grep -q '^train: worker [02]: timeout, .*--resume' "$td/err"
}
# train_with NAME COMPILER LAUNCHER OPTION...; -O1: it is quicker to build, and bits must not depend on it
train_with() {
    mpi=$1 compiler=$2; shift 2
    built "train, $mpi" $compiler -std=c99 -O1 $WARN -DTRAIN_MPI -DCOMPGRAD_LINKED -I. bench/train.c $object -o "$tmp/train_mpi" -pthread -lm || return
    for ranks in $mpi_counts; do check "train: $ranks ranks of $mpi give the bits of threads" by_mpi $ranks "$@"; done
    check "train: data that $mpi's ranks cannot read" mpi_refuses "$@"
    case " $*" in *oversubscribe*)
        check "train: a rank of $mpi is killed, and the job is resumed" mpi_killed "$@"
        check "train: a rank of $mpi stands still, and the job ends" mpi_stands_still "$@" ;;
    esac
    rm -f "$tmp/train_mpi" "$td/mpi.csv"
}
train_mpi() {
    options="--allow-run-as-root --oversubscribe"
    if has mpicc.openmpi || has mpicc.mpich; then       # Debian's names, where both can be installed
        if has mpicc.openmpi && has mpirun.openmpi; then train_with OpenMPI mpicc.openmpi mpirun.openmpi $options
        else skip "no mpicc.openmpi: train by OpenMPI"; fi
        if has mpicc.mpich && has mpiexec.mpich; then
            if long || ! has mpicc.openmpi; then train_with MPICH mpicc.mpich mpiexec.mpich; fi
        else skip "no mpicc.mpich: train by MPICH"; fi
    elif has mpicc && has mpirun; then
        case $(mpirun --version 2>&1) in *"Open MPI"*) ;; *) options= ;; esac
        train_with MPI mpicc mpirun $options
    else
        skip "no mpicc: train by MPI"
    fi
}

# ---- killed, and resumed ----

long="--workers 4 --epochs 6"
soon() { sleep 0.02 2>/dev/null || sleep 1; }
children() { ps -A -o pid= -o ppid= | awk -v parent="$1" '$2 == parent { print $1 }' | sort -n; }
# begin OPTION...: a run in the background; $trainer is its process. Its exit status will be in rc
begin() {
    rm -f "$td/rc"
    { timeout 120 "$train" --data glyphs --net small "$@" >"$td/out" 2>"$td/err"; echo $? >"$td/rc"; } &
    shell=$! trainer=
    until [ -n "$trainer" ] || [ -s "$td/rc" ]; do for p in $(children $shell); do trainer=$(children $p); done; done
}
# workers: $pids are those of a run by processes, in the order of their ranks
workers() { pids=; until [ "$(echo $pids | wc -w)" -eq 4 ] || [ -s "$td/rc" ]; do pids=$(children $trainer); done; }
# gone PID...: within a minute, or as dead as it gets where nobody collects orphans. What is left is ended here
gone() {
    tenths=0
    while [ $tenths -lt 600 ]; do
        tenths=$((tenths + 1))
        left=
        for p in "$@"; do ps -A -o pid= -o stat= | awk -v p=$p '$1 == p && $2 !~ /Z/ { exit 1 }' || left="$left $p"; done
        [ -n "$left" ] || return 0
        sleep 0.1 2>/dev/null || sleep 1
    done
    echo "still there: $left"
    kill -9 $left
    return 1
}
# kept METHOD WORKER: its checkpoints; a method that goes by layers says so in the name
kept() { ls "$ck/$1-seed1.worker$2".[01] "$ck/$1-layers-seed1.worker$2".[01] 2>/dev/null; }
forget() { rm -f "$ck/$1"-seed1.* "$ck/$1"-layers-seed1.*; }
# begun METHOD: waits for a checkpoint of all four workers. Fails if the run has ended
begun() {
    for w in 0 1 2 3; do
        until [ -n "$(kept $1 $w)" ]; do
            [ ! -s "$td/rc" ] || { echo "it ended:"; cat "$td/out" "$td/err"; return 1; }
            soon
        done
    done
}
# midway METHOD: there is a checkpoint, and not one of the end, which of this worker is short
midway() { for f in $(kept $1 1); do if [ "$(wc -c <"$f")" -gt 2000 ]; then return; fi; done; return 1; }

# strike METHOD VICTIM OPTION...: kills that worker while METHOD trains; the run has to end by itself, and to say who it was
strike() {
    method=$1 victim=$2; shift 2
    for try in 1 2 3 4 5; do
        forget $method
        begin $long "$@" --transport tcp --resume --checkpoint "$ck"
        workers
        begun $method || { wait $shell; return 1; }
        pid=$(echo $pids | cut -d ' ' -f $((victim + 1)))
        kill -9 $pid
        wait $shell
        status=$(cat "$td/rc")
        [ $try -gt 1 ] || [ -z "$last" ] || went_on $last || return         # the one that was struck before
        midway $method || continue              # it was too late
        echo "exit status $status"; cat "$td/out" "$td/err"
        [ "$status" -ne 0 ] && [ "$status" -ne 124 ] && gone $pids || return
        last=$method
        [ $(echo $pids | cut -d ' ' -f 1) -gt $trainer ] || continue       # process ids began anew: nobody knows which worker this was
        grep -q "worker $victim was killed" "$td/err" && ! grep -q "worker [^$victim] was killed" "$td/err" && grep -q -e --resume "$td/err"
        return
    done
    echo "$method: always ended before it was killed"
    return 1
}
# went_on METHOD: the run before has said so
went_on() { grep -q "^$1, seed 1: goes on after epoch [1-5] of 6\$" "$td/out" || { echo "$1 did not go on midway"; cat "$td/out"; return 1; }; }
resumed() {                             # CSV OPTION...
    resumed_csv=$1; shift
    fine $long "$@" --resume --checkpoint "$ck" --csv "$td/resumed.csv" && same "$resumed_csv" "$td/resumed.csv"
}
after_all() { resumed "$td/long.csv" --method $table --transport tcp && went_on $last; }
# threads_killed METHOD TRANSPORT: all workers at once; resumed by that transport
threads_killed() {
    fine $long --method $1 --checkpoint "$ck" --csv "$td/long-$1.csv" || return
    for try in 1 2 3 4 5; do
        forget $1
        begin $long --method $1 --resume --checkpoint "$ck"
        begun $1 || { wait $shell; return 1; }
        kill -9 $trainer
        wait $shell
        midway $1 || continue
        resumed "$td/long-$1.csv" --method $1 --transport $2 && went_on $1
        return
    done
    echo "$1: always ended before it was killed"
    return 1
}
# Of four workers one is stopped and another killed: the launcher does not wait for ever, and ends what it has started
stuck() {
    forget efsign
    begin --workers 4 --epochs 60 --method efsign --transport tcp --checkpoint "$ck"
    workers
    begun efsign || { wait $shell; return 1; }
    kill -STOP $(echo $pids | cut -d ' ' -f 3)
    kill -9 $(echo $pids | cut -d ' ' -f 2)
    wait $shell
    status=$(cat "$td/rc")
    echo "exit status $status"; cat "$td/out" "$td/err"
    gone $pids && [ "$status" -ne 0 ] && [ "$status" -ne 124 ] || return
    [ "$(grep -c 'does not answer.*--resume' "$td/err")" -eq 1 ] && [ "$(grep -c 'was killed' "$td/err")" -eq 1 ]
}
# The launcher is killed: its workers do not go on without it
orphaned() {
    for try in 1 2 3 4 5; do
        forget efsign
        begin $long --method efsign --transport tcp --checkpoint "$ck"
        workers
        begun efsign || { wait $shell; return 1; }
        kill -9 $trainer
        wait $shell
        gone $pids || return
        midway efsign || continue
        cat "$td/out" "$td/err"
        grep -q 'is gone.*--resume' "$td/err" && resumed "$td/long-efsign.csv" --method efsign && went_on efsign
        return
    done
    echo "always ended before they knew"
    return 1
}
not_silent() {                          # where there is not enough memory for so many threads
    ( ulimit -v 400000 2>/dev/null; glyphs --workers 64 --epochs 1 --method dense --checkpoint "$td/ck.memory" ) || [ "$(grep -c '^train: ' "$td/err")" -eq 1 ]
}
no_sockets() {                          # the system's own reason
    ( ulimit -n 20 && glyphs --workers 64 --epochs 1 --method dense --transport tcp --checkpoint "$td/ck.memory" )
    status=$?
    cat "$td/out" "$td/err"
    [ $status -eq 2 ] && [ "$(grep -c '^train: .*Too many open files' "$td/err")" -eq 1 ]
}
finished() {                            # at once, with the same table
    fine $long --method $table --transport tcp --checkpoint "$td/ck.long" --csv "$td/long.csv" || return
    sed -n '/^method /,$p' "$td/out" >"$td/table"
    fine $long --method $table --resume --checkpoint "$td/ck.long" --csv "$td/finished.csv" || return
    sed -n '/^method /,$p' "$td/out" | sed "s,finished.csv,long.csv," | diff "$td/table" - && sed '/^#/d' "$td/long.csv" >"$td/one" &&
        sed '/^#/d' "$td/finished.csv" | diff "$td/one" - && ! grep epoch.*loss "$td/out"
}
# refused WAS IS OPTION...: a finished table, resumed with other options
refused() {
    was=$1 is=$2; shift 2
    glyphs $long --method efsign --resume --checkpoint "$td/ck.long" "$@"
    status=$?
    cat "$td/out" "$td/err"
    [ $status -eq 2 ] && grep -q "$was" "$td/err" && grep -q "$is" "$td/err" && ! grep -q '^method' "$td/out" && [ "$(grep -c 'another run' "$td/err")" -eq 1 ]
}

layers_beside() {                       # do not take each other's files
    fine $long --method efsign --layerwise --checkpoint "$td/ck.layers" --csv "$td/layers.csv" || return
    ck=$td/ck.long
    resumed "$td/layers.csv" --method efsign --layerwise
}

# flip FILE OFFSET: the lowest bit of that byte; an offset below 0 counts from the end
flip() {
    flip_at=$2
    [ $flip_at -ge 0 ] || flip_at=$(($(wc -c <"$1") + flip_at))
    old=$(od -An -tu1 -j $flip_at -N 1 "$1" | tr -d ' ')
    printf "\\$(printf %03o $((old ^ 1)))" | dd of="$1" bs=1 seek=$flip_at conv=notrunc 2>/dev/null
}
cut_short() { head -c $(($(wc -c <"$1") - $2)) "$1" >"$td/short" && cp "$td/short" "$1"; }
# damaged HOW AMOUNT WORKER: both files of worker, then one of them, the later and the earlier
damaged() {
    for which in "0 1" 0 1; do
        if [ "$which" = 1 ] && ! long; then continue; fi
        rm -rf "$ck" && cp -r "$td/ck.mid" "$ck" || return
        for i in $which; do if [ -f "$ck/efsign-seed1.worker$3.$i" ]; then $1 "$ck/efsign-seed1.worker$3.$i" $2 || return; fi; done
        resumed "$td/long-efsign.csv" --method efsign || { echo "files $which of worker $3"; return 1; }
        cat "$td/out" "$td/err"
        for i in 0 1; do
            f=$ck/efsign-seed1.worker$3.$i broken=0
            case $which in *$i*) if [ -f "$td/ck.mid/${f##*/}" ]; then broken=1; fi ;; esac
            [ "$(grep -c "^train: $f is damaged and left out\$" "$td/err")" = $broken ] || {
                echo "file $i of $which, worker $3: not said, or more than once"; return 1; }
        done
        if [ "$which" = "0 1" ]; then ! grep 'goes on' "$td/out" && grep -q '^efsign, seed 1: begins anew$' "$td/out" || return; fi
    done
}
damaged_end() {                         # worker 0's file after the end
    rm -rf "$ck" && cp -r "$td/ck.long" "$ck" && $1 "$(ls "$ck"/efsign-seed1.worker0.[01])" $2 && resumed "$td/long-efsign.csv" --method efsign &&
        grep -q 'damaged and left out' "$td/err" && grep -q '^efsign, seed 1: begins anew$' "$td/out"
}
# A finished run of other options lies in the folder; a new one is stopped and resumed
old_files() {
    rm -rf "$ck"
    fine --workers 4 --epochs 4 --batch 32 --method efsign --checkpoint "$ck" || return
    for try in 1 2 3 4 5; do
        begin $long --method efsign --checkpoint "$ck"
        until grep -q '6 epochs' "$ck"/efsign-seed1.worker3.[01] 2>/dev/null || [ -s "$td/rc" ]; do soon; done
        kill -9 $trainer
        wait $shell
        if midway efsign; then break; fi
    done
    resumed "$td/long-efsign.csv" --method efsign && went_on efsign
}
# The last file of a worker cannot be written: the epoch before is kept, by all of them
unwritten() {
    fine --workers 4 --epochs 2 --method efsign --checkpoint "$td/ck.short" --csv "$td/short.csv" || return
    mkdir -p "$td/ck.unwritten/efsign-seed1.worker2.0.new"
    fine --workers 4 --epochs 2 --method efsign --checkpoint "$td/ck.unwritten" || return
    cat "$td/err"; ls "$td/ck.unwritten"
    grep -q 'no checkpoint: .*worker2' "$td/err" && [ "$(ls "$td/ck.unwritten"/efsign-seed1.worker?.1 | wc -l)" -eq 4 ] || return
    rmdir "$td/ck.unwritten/efsign-seed1.worker2.0.new"
    fine --workers 4 --epochs 2 --method efsign --checkpoint "$td/ck.unwritten" --resume --csv "$td/unwritten.csv" &&
        same "$td/short.csv" "$td/unwritten.csv" && grep -q 'goes on after epoch 1 of 2' "$td/out"
}
# Code that is not the same does not go on with a checkpoint; make tells both programs of the same code
other_code() {
    $CC -std=c99 -O0 -DTRAIN_BUILD='"1234567"' -DCOMPGRAD_LINKED -I. bench/train.c $object -o "$tmp/train_other" -pthread -lm || return
    timeout 120 "$tmp/train_other" --data glyphs --net small $long --method efsign --resume --checkpoint "$td/ck.long" >"$td/out" 2>"$td/err"
    status=$?
    cat "$td/out" "$td/err"
    [ $status -eq 2 ] && grep -q 'it was .*code ""' "$td/err" && grep -q 'this is .*code "1234567"' "$td/err" || return
    has make || return 0
    make -n -B build/train build/train_mpi | grep -o "TRAIN_BUILD='\"[0-9][0-9]*\"'" >"$td/marks"
    [ "$(wc -l <"$td/marks")" -eq 2 ] && [ "$(sort -u "$td/marks" | wc -l)" -eq 1 ]
}
own_probe() {                           # is not removed, whatever a user calls it
    mkdir -p "$td/ck.probe" && echo mine >"$td/ck.probe/probe" || return
    fine --workers 2 --epochs 1 --method dense --checkpoint "$td/ck.probe" && [ "$(cat "$td/ck.probe/probe")" = mine ] && ! ls -A "$td/ck.probe" | grep '^[.]'
}

train_resume() {
    table=topk,sketched,efsign killed=topk flips=25 flips0=590 cuts=5000
    if long; then
        table=$(echo $methods | tr ' ' ,) killed="topk dgc sketched powersgd vote" flips="0 9 25 46 70 -1" flips0="30 590" cuts="1 5000"
    fi
    check "train: a finished table comes back at once" finished
    check "train: resumed with another batch: refused" refused "batch 16" "batch 32" --batch 32
    check "train: resumed with other epochs: refused" refused "6 epochs" "7 epochs" --epochs 7
    check "train: resumed with other workers: refused" refused "4 workers" "3 workers" --workers 3
    check "train: resumed with another rate: refused" refused "rate 0.05" "rate 0.07" --rate 0.07
    check "train: resumed with another net: refused" refused "net small" "net mlp" --net mlp
    check "train: layers beside the whole in a folder" layers_beside
    check "train: resumed by other code: refused" other_code
    check "train: a last checkpoint that cannot be written" unwritten
    check "train: a file of the user's among the checkpoints" own_probe
    check "train: resumed by processes with other epochs: refused" refused "6 epochs" "7 epochs" --epochs 7 --transport tcp
    if ! has ps; then skip "no ps: train, killed workers"; return; fi
    ck=$td/ck.strike number=0 last=
    for m in $(echo $table | tr , ' '); do
        check "train: worker $((number % 4)) is killed while $m trains, the others end" strike $m $((number % 4)) --method $table
        number=$((number + 1))
    done
    check "train: after all that, resumed: as if nothing had been" after_all
    ck=$td/ck.threads way=tcp
    for m in $killed efsign; do
        check "train: a process is killed while $m trains, and resumed by $way" threads_killed $m $way
        if [ $way = tcp ]; then way=threads; else way=tcp; fi
    done
    check "train: a worker stands still and another is killed: all end" stuck
    check "train: the launcher is killed, and its workers end" orphaned
    ck=$td/ck.damaged
    for try in 1 2 3 4 5; do            # so that there are two files of each, none of the end
        rm -rf "$td/ck.mid"
        begin $long --method efsign --checkpoint "$td/ck.mid"
        until [ -f "$td/ck.mid/efsign-seed1.worker3.0" ] || [ -s "$td/rc" ]; do soon; done
        kill -9 $trainer
        wait $shell
        rm -rf "$ck" && cp -r "$td/ck.mid" "$ck"
        if midway efsign; then break; fi
    done
    check "train: it was killed midway" midway efsign
    for at in $flips; do check "train: a checkpoint with a bit flipped at $at is not taken" damaged flip $at 2; done
    for at in $flips0; do check "train: a checkpoint of worker 0 with a bit flipped at $at is not taken" damaged flip $at 0; done
    for less in $cuts; do check "train: a checkpoint that is $less bytes too short is not taken" damaged cut_short $less 1; done
    check "train: a damaged file of the end is not taken" damaged_end flip 590
    check "train: a short file of the end is not taken" damaged_end cut_short 3
    check "train: old files of another run do not stop a resume" old_files
}

# ---- a full disk, a worker that stands still, many that speak at once ----

# A run under a limit of 512 bytes for every file, as on a full disk; its output goes through a pipe, which has none.
# $status is what it returned
full() {
    { (ulimit -f 1 && exec timeout 120 "$train" --data glyphs --net small "$@" 2>"$td/full.err"); echo $? >"$td/rc"; } | cat >"$td/out"
    status=$(cat "$td/rc")
    cp "$td/full.err" "$td/err"
    cat "$td/out" "$td/err"
}
leftovers() { find "$@" -name '*.new' | grep .; }
two="--workers 3 --epochs 2 --batch 50 --method dense,topk"
full_disk() {
    rm -rf "$td/full" && mkdir "$td/full" && echo "what was there before" >"$td/full/a.csv" && cp "$td/full/a.csv" "$td/full/a.html" || return
    fine $two --checkpoint "$td/ck.full" --csv "$td/full.csv" || return
    full $two "$@" --checkpoint "$td/full/ck" --csv "$td/full/a.csv" --plot "$td/full/a.html"
    [ "$status" -eq 2 ] && ! leftovers "$td/full" && [ "$(cat "$td/full/a.csv" "$td/full/a.html" | sort -u)" = "what was there before" ] || return
    # each is said once: that no checkpoint of a method is kept, and what became of the CSV and of the plots
    [ "$(grep -c '^train: no checkpoint: .*dense-seed1.*: File too large' "$td/err")" -eq 1 ] &&
        [ "$(grep -c '^train: no checkpoint: .*topk-seed1.*: File too large' "$td/err")" -eq 1 ] &&
        [ "$(grep -c "^train: --csv $td/full/a.csv: File too large" "$td/err")" -eq 1 ] &&
        [ "$(grep -c "^train: --plot $td/full/a.html: File too large" "$td/err")" -eq 1 ] && [ "$(wc -l <"$td/err")" -eq 4 ] || return
    grep -q '^topk  *topk:.*x  *[0-9.]* %' "$td/out" || { echo "no table"; return 1; }
    sed -n '/^method,/,$p' "$td/out" >"$td/printed.csv"
    same "$td/full.csv" "$td/printed.csv"
}
# full_output OPTION...: standard output takes nothing
full_output() {
    timeout 120 "$train" --data glyphs --net small $two "$@" >/dev/full 2>"$td/err"
    status=$?
    cat "$td/err"
    [ $status -eq 2 ] && grep -q '^train: standard output: No space left on device' "$td/err" && grep -q '^topk  *topk:.*x  *[0-9.]* %' "$td/err"
}
output_full() { full_output --checkpoint "$td/ck.full" --csv "$td/output.csv" && same "$td/full.csv" "$td/output.csv" && ! grep -q '^topk,' "$td/err"; }
all_full() {
    full_output --checkpoint "$td/ck.full" --csv /dev/full || return
    sed -n '/^method,/,$p' "$td/err" >"$td/printed.csv"
    grep -q '^train: --csv /dev/full: No space left on device' "$td/err" && same "$td/full.csv" "$td/printed.csv" && [ -c /dev/full ]
}
plot_full() {                           # the CSV is there before
    glyphs $two --checkpoint "$td/ck.full" --csv "$td/plot_full.csv" --plot /dev/full
    status=$?
    cat "$td/out" "$td/err"
    [ $status -eq 2 ] && grep -q '^train: --plot /dev/full: No space' "$td/err" && grep -q '^topk  *topk:' "$td/out" && same "$td/full.csv" "$td/plot_full.csv"
}
# Worker 2 cannot write any more: the others do not go on to epochs that it has not
one_full() {
    ck=$td/ck.one
    fine $long --method efsign --checkpoint "$ck" --csv "$td/long-one.csv" || return
    for try in 1 2 3 4 5; do
        rm -rf "$ck"
        begin $long --method efsign --checkpoint "$ck"
        until [ -f "$ck/efsign-seed1.worker3.0" ] || [ -s "$td/rc" ]; do soon; done
        kill -9 $trainer
        wait $shell
        if midway efsign; then break; fi
    done
    rm -f "$ck"/*.new
    mkdir "$ck/efsign-seed1.worker2.0.new" "$ck/efsign-seed1.worker2.1.new" || return
    resumed "$td/long-one.csv" --method efsign || return
    cat "$td/err"; ls "$ck"
    [ "$(grep -c '^train: no checkpoint: .*worker2' "$td/err")" -eq 1 ] || return
    rmdir "$ck"/*.new
    resumed "$td/long-one.csv" --method efsign && went_on efsign
}
# The file is on the disk before it takes the place of the one before, and its name after; a message is one write
synced() {
    cat >"$td/calls.c" <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static ssize_t (*really_write)(int, const void *, size_t);
static void note(const char *what, const char *path) {
    char line[2000];
    int fd = open(getenv("CALLS"), O_WRONLY | O_CREAT | O_APPEND, 0666), n = snprintf(line, sizeof line, "%s %s\n", what, path);
    if (!really_write) really_write = (ssize_t (*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
    if (fd < 0 || really_write(fd, line, (size_t)n) != n) abort();
    close(fd);
}
int fsync(int fd) {
    char link[64], path[1000];
    ssize_t n;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    n = readlink(link, path, sizeof path - 1);
    path[n > 0 ? n : 0] = 0;
    note("fsync", path);
    return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(fd);
}
int rename(const char *from, const char *to) {
    note("rename", from);
    return ((int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename"))(from, to);
}
ssize_t write(int fd, const void *at, size_t n) {
    if (!really_write) really_write = (ssize_t (*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
    if (fd == 2) note("said", n > 7 && !memcmp(at, "train: ", 7) && !memchr(at, '\n', n - 1) && ((const char *)at)[n - 1] == '\n' ? "a line" : "a piece");
    return really_write(fd, at, n);
}
END
    $CC -shared -fPIC "$td/calls.c" -o "$td/calls.so" -ldl || return
    mkdir -p "$td/ck.sync/efsign-seed1.worker2.0.new" && rm -f "$td/calls" || return
    CALLS=$td/calls LD_PRELOAD=$td/calls.so fine --workers 3 --epochs 3 --batch 100 --method efsign --checkpoint "$td/ck.sync" --csv "$td/sync.csv" || return
    cat "$td/calls"
    awk -v folder="$td/ck.sync" '
        $1 == "fsync" { synced[$2] = 1; if ($2 == folder) after++ }
        $1 == "rename" { if (!synced[$2]) { print $2 " was not brought to the disk"; bad = 1 } if (index($2, folder) == 1) moved++ }
        $1 == "said" { said++; if ($3 != "line") bad = 1 }
        END { print moved, after, said; exit bad || moved != 6 || after != 6 || said != 1 }' "$td/calls"   # worker 2 stops the second of three epochs
}
# A worker stands still: it is named, after the time that was given
stands_still() {
    ck=$td/ck.still
    forget efsign
    begin --workers 4 --epochs 1000 --method efsign --transport tcp --checkpoint "$ck" "$@"
    workers
    begun efsign || { wait $shell; return 1; }
    stopped_at=$(date +%s)
    kill -STOP $(echo $pids | cut -d ' ' -f 3)
    wait $shell
    took=$(($(date +%s) - stopped_at)) status=$(cat "$td/rc")
    echo "exit status $status after $took s"; cat "$td/out" "$td/err"
    gone $pids && [ "$status" -ne 0 ] && [ "$status" -ne 124 ] && [ $took -ge $seconds ] && [ $took -le $((seconds + 8)) ] || return
    [ "$(grep -c "^train: worker 2 does not answer for $seconds s .*stopped by signal.*--resume" "$td/err")" -eq 1 ] && [ "$(wc -l <"$td/err")" -eq 1 ]
}
spoken() {                              # sixteen workers, each with two files that are damaged
    fine --workers 16 --epochs 2 --batch 50 --method dense --checkpoint "$td/ck.speak" || return
    for f in "$td"/ck.speak/*; do flip "$f" 25 && cp "$f" "${f%.*}.1" || return; done
    fine --workers 16 --epochs 2 --batch 50 --method dense --checkpoint "$td/ck.speak" --transport tcp --resume || return
    cat "$td/err"
    [ "$(grep -c '^train: [^ ]*worker[0-9]*[.][01] is damaged and left out$' "$td/err")" -eq 32 ] && [ "$(wc -l <"$td/err")" -eq 32 ]
}

train_disk() {
    check "train: a full disk: nothing is left behind, nothing is lost" full_disk
    check "train: a full disk, by processes" full_disk --transport tcp
    if [ -c /dev/full ]; then
        check "train: standard output takes nothing" output_full
        check "train: neither the CSV nor standard output takes anything" all_full
        check "train: the plots are not taken, after the CSV" plot_full
    else skip "no /dev/full: train's output"; fi
    check "train: messages of sixteen processes are whole lines" spoken
    if ! has ps; then skip "no ps: train, killed and stopped workers"; return; fi
    check "train: one worker cannot write: all keep an epoch in common" one_full
    if [ -d /proc/self/fd ] && takes $CC -shared -fPIC; then check "train: checkpoints are on the disk before they are moved" synced
    else skip "no /proc or shared libraries: train's order of fsync and rename"; fi
    seconds=2
    check "train: a worker stands still and is named" stands_still --timeout 2
    if long; then seconds=30; check "train: the same after 30 s, as nothing was said" stands_still; fi
}

# ---- wrong input ----

# wrong PATTERN OPTION...: exit status 2, the reason on stderr, no table and no training
wrong() {
    pattern=$1; shift
    timeout 60 "$train" --checkpoint "$td/ck.wrong" "$@" >"$td/out" 2>"$td/err"
    status=$?
    cat "$td/out" "$td/err"
    [ $status -eq 2 ] && [ ! -s "$td/out" ] && grep -q -e "$pattern" "$td/err" && [ "$(grep -c '^train: ' "$td/err")" -eq 1 ]
}
wrong_method() {
    wrong "$1" --data glyphs --method "$1" || return
    for m in $methods; do grep -q "[ (]$m[,)]" "$td/err" || { echo "$m is not in the message"; return 1; }; done
}
# idx FOLDER IMAGES: 8 x 8 pixels, ten classes, in files as MNIST's
idx() {
    mkdir -p "$1"
    for part in train t10k; do
        { printf '\000\000\010\003\000\000\000\'$(printf %03o $2)'\000\000\000\010\000\000\000\010'; awk -v n=$(($2 * 64)) 'BEGIN { for (i = 0; i < n; i++) printf "%c", 33 + i * i % 89 }'; } >"$1/$part-images-idx3-ubyte"
        { printf '\000\000\010\001\000\000\000\'$(printf %03o $2); i=0; while [ $i -lt $2 ]; do printf '\'$(printf %03o $((i % 10))); i=$((i + 1)); done; } >"$1/$part-labels-idx1-ubyte"
    done
}
own_data() { timeout 60 "$train" --data "$td/idx" --net small --workers 3 --batch 4 --epochs 2 --method dense,topk --checkpoint "$td/ck.own"; }
other_labels() {                        # is not the same data
    cp -r "$td/idx" "$td/other" && flip "$td/other/train-labels-idx1-ubyte" 20 || return
    timeout 60 "$train" --data "$td/other" --net small --workers 3 --batch 4 --epochs 2 --method dense,topk --checkpoint "$td/ck.own" --resume \
        >"$td/out" 2>"$td/err"
    status=$?
    cat "$td/out" "$td/err"
    [ $status -eq 2 ] && [ "$(grep -c 'another run' "$td/err")" -eq 1 ]
}
short_data() {                          # FILE: the message has its name
    rm -rf "$td/other"
    cp -r "$td/idx" "$td/other" && cut_short "$td/other/$1" 1 && wrong "$1" --data "$td/other" --net small --workers 2 --batch 4
}

train_wrong() {
    g="--data glyphs --net small --epochs 1"
    check "train: unknown method" wrong_method nosuch
    check "train: an operator that does not parse" wrong_method "topk:7|f16"
    check "train: no method" wrong_method ""
    for way in threads tcp; do check "train: an operator that needs more than text, by $way" wrong given $g --workers 3 --transport $way --method given; done
    check "train: too little memory" not_silent
    check "train: too few sockets" no_sockets
    check "train: the second method is unknown" wrong nosuch $g --method dense,nosuch
    check "train: an operator of 48 characters" wrong "longer than 47" $g --method "topk:0.0100000000000000000000000000000000000000000"
    for r in 0 2 x -1 nan 1e-60 ""; do check "train: --ratio \"$r\"" wrong "--ratio $r" $g --method topk --ratio "$r"; done
    check "train: --ratio, and a method without" wrong "--ratio.*powersgd" $g --method powersgd --ratio 0.1
    check "train: --ratio, and two methods without" wrong "--ratio" $g --method dense,powersgd --ratio 0.1
    for w in 0 1000 x 4x ""; do check "train: --workers \"$w\"" wrong "--workers $w" $g --workers "$w"; done
    check "train: --epochs x" wrong "--epochs x" --data glyphs --epochs x
    check "train: --epochs 0" wrong "--epochs 0" --data glyphs --epochs 0
    check "train: --timeout 0" wrong "--timeout 0" $g --timeout 0
    check "train: --batch 0" wrong "--batch 0" $g --batch 0
    check "train: --seeds 99999999999" wrong "--seeds 99999999999" $g --seeds 99999999999
    for r in 0 1e-60; do check "train: --rate $r" wrong "--rate $r" $g --rate $r; done
    check "train: unknown option" wrong "--nosuch" $g --nosuch 1
    check "train: unknown option at the end" wrong "--nosuch" $g --nosuch
    check "train: not an option" wrong nosuch $g nosuch
    check "train: no value" wrong "--method" $g --method
    check "train: unknown net" wrong "nosuch.*lenet.*mlp.*small" --data glyphs --net nosuch
    check "train: unknown transport" wrong "nosuch.*threads.*tcp.*mpi" $g --transport nosuch
    check "train: MPI in the program without" wrong "mpi.*train_mpi" $g --transport mpi
    check "train: no such folder" wrong "$td/nosuch" --data "$td/nosuch"
    echo >"$td/file"
    for o in csv plot checkpoint dump-gradients; do
        check "train: --$o where nothing can be written" wrong "--$o.*$td/file/x" $g --method dense --workers 2 "--$o" "$td/file/x"
        check "train: --$o where nothing can be written, by processes" wrong "--$o.*$td/file/x" $g --method dense --workers 2 --transport tcp "--$o" "$td/file/x"
    done
    check "train: --checkpoint without a path" wrong "--checkpoint.*empty" $g --method dense --workers 2 --checkpoint ""
    long_path=$td/$(printf %0300d 0)
    for o in csv plot checkpoint dump-gradients; do
        check "train: --$o with a long path" wrong "--$o.*longer than" $g --method dense --workers 2 "--$o" "$long_path"
    done
    check "train: too few images" wrong "8000" $g --workers 64 --batch 126
    idx "$td/idx" 40
    check "train: a folder of IDX files" own_data
    check "train: resumed with other labels: refused" other_labels
    for f in train-images-idx3 train-labels-idx1 t10k-images-idx3 t10k-labels-idx1; do check "train: $f is too short" short_data $f-ubyte; done
    check "train: images too small for lenet" wrong "lenet" --data "$td/idx" --net lenet --workers 2 --batch 4
    check "train: fewer images than a step needs" wrong "40" --data "$td/idx" --net small --workers 3 --batch 16
}

# ---- what is written ----

helped() {
    for o in $(grep -o '"--[a-z-]*"' bench/train.c | tr -d '"' | sort -u); do
        case $o in --|--help) continue ;; esac
        grep -q -e "$o[ ;:]" "$td/help" || { echo "$o is not in --help"; return 1; }
    done
}
csv_lines() {
    [ "$(sed -n '/^#/!{p;q;}' "$1")" = method,operator,parts,net,workers,seed,epoch,train_loss,test_loss,accuracy,bytes_sent,codec_share,seconds,weights ] || { head "$1"; return 1; }
    awk -F, '!/^#/ && NF != 14 { print; bad = 1 } END { exit bad }' "$1" && [ "$(grep -c -v '^#' "$1")" = $(($(echo $methods | wc -w) * 2 + 1)) ]
}
plotted() {                             # OPTION...
    rm -f "$td"/plot*
    fine "$@" --checkpoint "$td/ck.plot" --plot "$td/plot.html" || return
    for f in plot.html plot-accuracy.svg plot-loss.svg; do
        [ -s "$td/$f" ] && ! grep -w -n -e nan -e inf -e -nan "$td/$f" || { echo "$f"; return 1; }
    done
    grep -q '</html>' "$td/plot.html" && grep -q '</svg>' "$td/plot-loss.svg" && grep -q '</svg>' "$td/plot-accuracy.svg"
}
diverges() {                            # the CSV says so, and no plot is not a plot that could not be written
    fine --workers 2 --epochs 2 --method dense --rate 100 --checkpoint "$td/ck.diverge" --csv "$td/diverge.csv" --plot "$td/diverge.html" || return
    cat "$td/out" "$td/err" "$td/diverge.csv"
    grep -q '^# dense seed 1 diverged in step [1-9][0-9]*$' "$td/diverge.csv" && grep -q 'nothing to draw' "$td/out" && grep -q '^dense .*diverged' "$td/out"
}
advised() {                             # only where there is something to say
    fine --workers 2 --epochs 2 --ratio 0.05 --method dense,topk --checkpoint "$td/ck.advice" &&
        grep -q '^Fewest bytes' "$td/out" && grep -q '^codec time: ' "$td/out" &&
        fine --workers 1 --epochs 2 --ratio 0.05 --method dense,topk --checkpoint "$td/ck.advice" && ! grep '^Fewest bytes' "$td/out" &&
        fine --workers 2 --epochs 1 --batch 500 --rate 0.00001 --ratio 0.05 --method dense,topk --checkpoint "$td/ck.advice" && ! grep '^Fewest bytes' "$td/out"
}
again() {                               # the command in the CSV, pasted
    mkdir -p "$td/it's here" && fine --workers 2 --epochs 1 --method 'topk:0.01|f16' --checkpoint "$td/it's here/ck" --csv "$td/it's here/a.csv" || return
    cp "$td/it's here/a.csv" "$td/again.csv" && rm -r "$td/it's here/a.csv" && sed -n '1s/^# //p' "$td/again.csv" >"$td/paste" && cat "$td/paste" &&
        timeout 60 sh "$td/paste" >/dev/null && same "$td/again.csv" "$td/it's here/a.csv"
}
dumped() {
    fine --workers 2 --epochs 3 --method dense --checkpoint "$td/ck.dump" --dump-gradients "$td/dump/deep" || return
    n=$(sed -n 's/.*, \([0-9]*\) weights,.*/\1/p' "$td/out")
    [ "$n" -gt 1000 ] && [ "$(ls "$td/dump/deep" | wc -l)" -eq 3 ] || return
    for f in "$td"/dump/deep/*; do [ "$(wc -c <"$f")" -eq $((4 * n)) ] || { ls -l "$td/dump/deep"; return 1; }; done
    ! cmp -s "$td/dump/deep/small-epoch0.f32" "$td/dump/deep/small-epoch1.f32" || return
    fine --workers 2 --epochs 3 --method dense --checkpoint "$td/ck.dump" --dump-gradients "$td/dump/none" --resume && grep -q 'nothing is dumped' "$td/err"
}
# What dumped() has left, measured: a table for each file, in it both figures of each operator, and lines in the CSV
measured() {
    timeout 300 "$tmp/bench" --quick --n 65536 --reps 1 --csv "$td/bench.csv" --gradients "$td/dump/deep" >"$td/out" 2>"$td/err" || {
        cat "$td/out" "$td/err"; return 1; }
    sed -n '/^Real gradients/,$p' "$td/out" >"$td/real"
    cat "$td/real" "$td/err"
    for f in small-epoch0 small-epoch1 small-epoch2; do
        grep -q "$f" "$td/real" && [ "$(grep -c "^topk,0.01 $f," "$td/bench.csv")" -eq 1 ] || { echo "$f"; cat "$td/bench.csv"; return 1; }
    done
    [ "$(grep -c '^topk:0.01  *[0-9.]*  *[0-9.]* ' "$td/real")" -eq 3 ] && [ "$(grep -c '^efsign ' "$td/real")" -eq 3 ]
}
# On what is dumped, rate takes at most 0.95 of the bits that absmax:b:n:nearest|gamma takes at its error, b = 2..8
never_worse() {
    timeout 120 "$train" --data glyphs --net mlp --workers 2 --epochs 3 --batch 8 --method dense --checkpoint "$td/ck.worse" \
        --dump-gradients "$td/dump/mlp" >"$td/out" 2>&1 || { cat "$td/out"; return 1; }
    timeout 120 "$tmp/curves" --gradients "$td/dump/mlp" --never-worse 0.95 || return
    ! timeout 120 "$tmp/curves" --gradients "$td/dump/mlp" --never-worse 0.4 >/dev/null
}
plain() {
    fine --workers 2 --epochs 2 --method dense,topk --checkpoint "$td/ck.plain" || return
    cat "$td/out"
    ! od -An -c "$td/out" | grep -q '\\r\|033' && sed -n 1p "$td/out" | grep -q 'dense .*step 1 of 500$' && grep -q 'dense .*epoch  *2/2 .*accuracy' "$td/out" && grep -q 'topk .*epoch  *2/2 .*accuracy' "$td/out"
}
bar() {
    for columns in 0 100 72; do         # 0: unknown, which counts as 80
        most=$((columns ? columns - 1 : 79))
        timeout 60 script -qec "stty cols $columns; '$train' --data glyphs --net small --workers 2 --epochs 2 --method dense,topk-alone \
            --checkpoint '$td/ck.bar'" /dev/null </dev/null >"$td/out" || return
        od -c "$td/out" | tail -n 40
        tr '\r' '\n' <"$td/out" | tr -d '\033' | sed 's/^\[K//' | grep ' left$' >"$td/bars"
        grep -q '^\[#*[.]*\] *[0-9]* %.*accuracy' "$td/bars" && ! grep -q 'epoch  2/2  loss' "$td/out" && grep -q '^topk-alone .*f16' "$td/out" || return
        awk -v most=$most 'length > most { print length ": " $0; bad = 1 } END { exit bad }' "$td/bars" || return
    done
}
real_images() {
    timeout 120 "$train" --net lenet --workers 2 --batch 64 --epochs 1 --method dense --checkpoint "$td/ck.real" --csv "$td/real.csv" && above "$td/real.csv" .8 dense
}

train_shows() {
    check "train: --help has every option" helped
    check "train: --plot" plotted --workers 4 --epochs 3 --method dense,topk,topk-alone,sketched
    check "train: --plot of the whole and of layers" plotted --workers 2 --epochs 1 --method dense,topk --whole --layerwise
    check "train: they share a colour" grep -q "c0 d0 pair' data-s='topk/layers'" "$td/plot-loss.svg"
    check "train: --plot of one worker and epoch" plotted --workers 1 --epochs 1 --method dense,topk
    check "train: --plot of two seeds" plotted --workers 2 --epochs 2 --method dense,eden --seeds 2
    check "train: a run that diverges" diverges
    check "train: advice" advised
    check "train: the command in the table can be pasted" again
    check "train: --dump-gradients" dumped
    linked cc bench/curves.c "$tmp/curves" -lm && check "rate is never worse than absmax of the vector, on what train has dumped" never_worse
    if linked cc bench/bench.c "$tmp/bench" -pthread -lm; then
        check "bench: --gradients, of what train has dumped" measured
    fi
    check "train: plain lines in a file" plain
    if has script && script -qec true /dev/null >/dev/null 2>&1 </dev/null; then check "train: a bar on a terminal" bar
    else skip "no script -qec: train's bar on a terminal"; fi
    if ! long; then return; fi
    if [ -d "$fashion" ]; then check "train: lenet, an epoch of Fashion-MNIST" real_images
    else skip "no $fashion: train with lenet"; fi
}

train_methods() {
    check "train: a dozen methods in --help" [ "$(echo $methods | wc -w)" -ge 12 ]
    for n in $counts; do check "train: every method, $n workers" all_train $n; done
    for n in ${counts#1 }; do check "train: and they learn, $n workers" learnt $n; done
    check "train: dense learns with one worker" above "$td/all1.csv" .87 dense
    check "train: top-k and efsign need error feedback" feedback_helps
    check "train: the same weights again" hash_repeats
    check "train: other seeds, other weights" seeds_differ
    for n in $counts; do
        check "train: $n workers as threads" by_threads $n
        check "train: $n processes give the bits of threads, every method" by_tcp $n
    done
    check "train: layers are not the whole" parts_differ
    check "train: methods that know only one of them" one_way
    long && check "train: the same over two epochs" longer_tcp 4
    check "train: --csv has a line per epoch and method, of as many columns as its head" csv_lines "$td/all4.csv"
}

config cc
counts="1 4" mpi_counts=3
if long; then counts="1 3 4" mpi_counts="3 4"; fi
if ! has timeout; then
    skip "no timeout: train"
elif mkdir "$td" && built "train" $CC build/test/cc/train.o $object -o "$train" $threads -lm; then      # by object/train
    "$train" --help >"$td/help"
    methods=$(sed -n 's/^  \([a-z][a-z-]*\) .*/\1/p' "$td/help")
    case $piece in
    methods) train_methods ;;
    mpi)
        if ! long; then few="--ratio 0.01 --batch 1000 --epochs 1 --whole --layerwise --method topk,powersgd,sketched"; fi
        for n in $mpi_counts; do by_threads $n; done
        train_mpi ;;
    resume) train_resume ;;
    disk) train_disk ;;
    wrong) train_wrong ;;
    shows) train_shows ;;
    esac
fi
