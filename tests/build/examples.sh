# Every example by its own first line, as it is in make test-long. make test takes one without optimisation, the others
# with our object, and the implementation is all that they could miss then.
example() {     # example FILE: the command in its first line, in a copy of the repository; then the program
    command=$(sed -n '1{s,^/[*/] *,,;s, *\*/.*,,;p;}' "$1")
    case $command in
    "cc "*) command="$CC ${command#cc }" ;;
    "c++ "*) has "$CXX" || { skip "no $CXX: $1"; return; }; command="$CXX ${command#c++ }" ;;
    "mpicc "* | "mpicxx "*) return ;;       # tests/net
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
    check "$1" sh -c "cd '$dir' && $command"
}
config cc
here=$(pwd)
mkdir -p "$tmp/clone" && cp -R compgrad*.h examples "$tmp/clone"
if ! long; then                         # measures for half a minute
    overlap=examples/overlap_thread.c
    sed 's/WORK = [0-9]*, REPEATS = [0-9]*/WORK = 5, REPEATS = 1/' $overlap >"$tmp/clone/$overlap"
fi
for f in examples/*.c examples/*.cpp; do
    [ -f "$f" ] && example "$f"
done
