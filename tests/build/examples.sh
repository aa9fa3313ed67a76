# Every example by its own first line, as it is in make test-long; examples/*_mpi.c with Open MPI, whose options these
# are. What they compute with any MPI, and how they end, is in tests/net. make test takes one without optimisation, the others
# with our object, and the implementation is all that they could miss then.
example() {     # example FILE: the command in its first line, in a copy of the repository; then the program
    command=$(sed -n '1{s,^/[*/] *,,;s, *\*/.*,,;p;}' "$1")
    case $command in
    "cc "*) command="$CC ${command#cc }" ;;
    "c++ "*) has "$CXX" || { skip "no $CXX: $1"; return; }; command="$CXX ${command#c++ }" ;;
    "mpicc "*)
        case $(mpirun --version 2>&1) in *"Open MPI"*) ;; *) skip "no Open MPI: $1"; return ;; esac
        has mpicc || { skip "no mpicc: $1"; return; } ;;
    *) check "$1 opens with its compile command" false; return ;;
    esac
    if ! long && [ "$1" = examples/quickstart.c ]; then command=$(echo "$command" | sed 's/ -O2 / /')
    elif ! long; then
        check "$1 brings the implementation" grep -q '^#define COMPGRAD_IMPLEMENTATION' "$1"
        command=$(echo "$command" | sed "s, -O2 , -O1 -DCOMPGRAD_LINKED '$here/$object' ,")
    fi
    dir=$tmp/clone
    case $command in *examples/*) ;; *) dir=$dir/examples ;; esac
    case $command in *-fopenmp*) openmp $CC || { skip "$CC has no -fopenmp: $1"; return; } ;; esac
    case $command in *'&&'*) ;; *) out=$(echo "$command" | sed -n 's/.* -o *\([^ ]*\).*/\1/p'); command="$command && ./${out:-a.out}" ;; esac
    check "$1" shown sh -c "cd '$dir' && $command"
    case $1 in */overlap_*) check "$1 shows its steps" steps "$dir/$1" ;; esac
}
# shown COMMAND...: it succeeds, and says first what it shows: a sentence, which may take two lines
shown() {
    limit 300 "$@" >"$tmp/shown"
    status=$?
    cat "$tmp/shown"
    [ $status -eq 0 ] && sed -n '1,2p' "$tmp/shown" | tr '\n' ' ' | grep -q '^[A-Z0-9].* .* .*[.] '
}
# steps SOURCE: as many lines as it repeats its measurement, before the best of them
steps() {
    repeats=$(sed -n 's/.*REPEATS = \([0-9]*\).*/\1/p' "$1")
    cat "$tmp/shown"
    awk -v n=$repeats '/^step [0-9]+ of / { i++; if ($2 != i || $4 + 0 != n) bad = 1 } /^best: / { if (i != n) bad = 1; i = 0; bests++ } END { exit bad || !bests }' "$tmp/shown"
}
config cc
here=$(pwd)
mkdir -p "$tmp/clone" && cp -R compgrad*.h examples "$tmp/clone"
if ! long; then                         # they measure for half a minute
    for overlap in examples/overlap_thread.c examples/overlap_mpi.c; do
        sed 's/WORK = [0-9]*, REPEATS = [0-9]*/WORK = 5, REPEATS = 2/' $overlap >"$tmp/clone/$overlap"
    done
    sed 's/STEPS = [0-9]*/STEPS = 6/' examples/adam.c >"$tmp/clone/examples/adam.c"     # and this one trains as long
fi
for f in examples/*.c examples/*.cpp; do
    [ -f "$f" ] && example "$f"
done
