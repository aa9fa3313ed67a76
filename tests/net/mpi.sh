# examples/transport_mpi.h with every MPI that is here, many ranks on few cores. When a rank is killed, mpirun
# has to end the job: MPI promises the others no error, they may wait for the dead one until mpirun kills them too.

alive() { for f in "$tmp"/pid.*; do kill -0 "$(cat "$f")" 2>/dev/null && return; done; false; }

# killed LAUNCHER OPTION...: four ranks exchange until one is killed; then the launcher fails, in time, and nobody is left
killed() {
    rm -f "$tmp"/pid.*
    timeout 60 "$@" "$tmp/mpi_calls" forever "$tmp/pid" &
    launcher=$! tries=0
    until [ -s "$tmp/pid.0" ] && [ -s "$tmp/pid.1" ] && [ -s "$tmp/pid.2" ] && [ -s "$tmp/pid.3" ]; do
        tries=$((tries + 1))
        [ $tries -lt 30 ] || { echo "the ranks did not start"; kill $launcher; return 1; }
        sleep 1
    done
    sleep 1
    kill -9 "$(cat "$tmp/pid.1")" || { echo "rank 1 ended by itself"; return 1; }
    wait $launcher
    status=$?
    echo "the launcher ended with $status"
    [ $status -ne 0 ] && [ $status -ne 124 ] || return 1          # 124: by timeout
    for tries in 1 2 3 4 5; do alive || return 0; sleep 1; done
    echo "some ranks are still there"
    return 1
}

# late LAUNCHER OPTION...: rank 1 does not come, and nobody waits longer than the timeout. It ends by MPI_Abort, not
# with 0
late() {
    timeout 60 "$@" "$tmp/mpi_calls" late >"$tmp/late" 2>&1
    cat "$tmp/late"
    grep -q '^late: 0 wrong$' "$tmp/late"
}

# with_mpi NAME COMPILER C++COMPILER LAUNCHER OPTION...
with_mpi() {
    mpi=$1 compiler=$2 cxx=$3; shift 3
    printf '#define COMPGRAD_IMPLEMENTATION\n#include "examples/transport_mpi.h"\nint main() { cg_mpi m; return cg_mpi_open(&m, MPI_COMM_WORLD); }\n' >"$tmp/mpi.cc"
    if has "$cxx" && takes $cxx; then       # MPI's own C++ part, which has warnings, stays out
        check "$mpi: transport_mpi.h is C++11" $cxx -std=c++11 $WARN -DOMPI_SKIP_MPICXX -DMPICH_SKIP_MPICXX -I. -fsyntax-only "$tmp/mpi.cc"
    else skip "no $cxx: transport_mpi.h as C++"; fi
    with="$compiler -std=c99 -O1 $WARN -DCOMPGRAD_LINKED -I. -Itests $object"
    built "$mpi: mpi_calls" $with tests/net/mpi_calls.c -o "$tmp/mpi_calls" || return
    for ranks in $counts; do count "$mpi: calls of $ranks ranks" timeout 120 "$@" -np $ranks "$tmp/mpi_calls"; done
    check "$mpi: a rank that does not come is a timeout" late "$@" -np 3
    check "$mpi: a killed rank ends the job" killed "$@" -np 4
    built "$mpi: exchange_mpi" $with examples/exchange_mpi.c -o "$tmp/exchange_mpi" &&
        for ranks in $counts; do check "$mpi: exchange_mpi, $ranks ranks" timeout 120 "$@" -np $ranks "$tmp/exchange_mpi"; done
    overlap=examples/overlap_mpi.c
    if ! long; then sed "$less" $overlap >"$tmp/overlap_mpi.c" && overlap=$tmp/overlap_mpi.c; fi
    built "$mpi: overlap_mpi" $with -Iexamples $overlap -o "$tmp/overlap_mpi" &&
        check "$mpi: overlap_mpi" timeout 120 "$@" -np 2 "$tmp/overlap_mpi"
    rm -f "$tmp"/*_mpi "$tmp/mpi_calls"
}

config cc
less='s/WORK = [0-9]*, REPEATS = [0-9]*/WORK = 5, REPEATS = 1/'         # what it measures is not our concern here
counts=3
if long; then counts="3 4 8"; fi
openmpi_options="--allow-run-as-root --oversubscribe"
if ! has timeout; then
    skip "no timeout: MPI"
elif has mpicc.openmpi || has mpicc.mpich; then         # Debian's names, where both can be installed
    if has mpicc.openmpi && has mpirun.openmpi; then with_mpi OpenMPI mpicc.openmpi mpicxx.openmpi mpirun.openmpi $openmpi_options
    else skip "no mpicc.openmpi: OpenMPI"; fi
    if has mpicc.mpich && has mpiexec.mpich; then
        # a second MPI is a repetition
        if long || ! has mpicc.openmpi; then with_mpi MPICH mpicc.mpich mpicxx.mpich mpiexec.mpich; fi
    else skip "no mpicc.mpich: MPICH"; fi
elif has mpicc && has mpirun; then
    case $(mpirun --version 2>&1) in *"Open MPI"*) ;; *) openmpi_options= ;; esac
    with_mpi MPI mpicc mpicxx mpirun $openmpi_options
else
    skip "no mpicc: MPI"
fi
