#!/bin/sh
# sh tests/run.sh [part of a name]: every tests/test_*.c, the checks of tests/build, real transports in tests/net.
#
# make test       every test function and every promise at least once
# make test-long  (CG_TEST=long in the environment) the same with more repetitions and larger sizes, other compilers,
#                 sanitizers, fuzzers, other machines under qemu. A test asks for it by long_test() of tests/tier.h,
#                 a script by long() of tests/build/lib.sh
#
# A job is a program or a piece of a script; make runs them in parallel (JOBS at a time) and builds before them what
# they link. Each prints a line when it ends; what it said in full is in build/test/log.
# Also from the environment: CC, CXX, and GREATEST = the path of upstream's greatest.h, to use that one.
# The last line is "N passed, N failed, N skipped"; what cannot run on this machine says SKIP and is counted.
cd "$(dirname "$0")/.." || exit 1
. tests/build/lib.sh
export CC CXX GOLDEN GREATEST
filter=${1:-} list= begin=$(date +%s)

# jobs NAME...: those that are wanted, in the order in which they begin
jobs() {
    for j in "$@"; do
        case " $list " in *" $j "*) continue ;; esac
        case $j in *"$filter"*) list="$list $j" ;; esac
    done
}
programs() { for t in "$@"; do t=${t##*/}; echo "${t%.c}"; done; }

if long; then
    . tests/long.sh
else
    # First what needs no object, as that is not yet there; then the longest first, and whatever else there is.
    jobs build/golden.fast build/include.c++ build/freestanding build/include.c build/golden.assert build/golden.static
    jobs net/train.resume net/mpi test_transport test_tcp_open build/openmp net/train.mpi test_exchange test_isa
    jobs test_faults net/train.methods net/train.shows net/train.disk build/examples net/gloo
    jobs test_select test_topk test_sketch test_limits
    jobs test_ef_safe net/train.wrong
    jobs $(programs tests/test_*.c)
    jobs build/golden.plain build/pollution build/stack build/snippets build/rooms build/counts build/only build/wire build/fuzz net/tcp net/sync
fi
[ -n "$list" ] || { echo "no test has \"$filter\" in its name"; exit 1; }

rm -rf build/test/log build/test/result build/test/src
mkdir -p build/test/log build/test/result || exit 1
if [ -n "${GREATEST:-}" ]; then       # "greatest.h" is first looked for beside the test, so the tests move
    mkdir build/test/src && cp -p tests/*.[ch] build/test/src && cp "$GREATEST" build/test/src/greatest.h || exit 1
fi

# tree PID: it and what it has started
tree() {
    echo $1
    for child in $(ps -A -o pid= -o ppid= | awk -v parent=$1 '$2 == parent { print $1 }'); do tree $child; done
}
cores=$(getconf _NPROCESSORS_ONLN 2>/dev/null) || cores=2
# One more job than cores: some of them wait for a timeout, or for a process to end.
MAKEFLAGS= MFLAGS= MAKELEVEL= ${MAKE:-make} -s -k -j ${JOBS:-$((cores + 1))} -f tests/jobs.mk JOBS="$list" jobs &
make=$!
trap 'kill $(tree $make) 2>/dev/null; wait; exit 130' INT TERM
wait $make

for r in build/test/result/*; do
    [ -f "$r" ] || continue
    read -r p f s <"$r" && passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
done
for j in $list; do
    [ -f "build/test/result/$(echo "$j" | tr / .)" ] && continue
    failed=$((failed + 1))
    echo "FAIL: $j did not come to an end"
done
echo "$(echo $list | wc -w) jobs in $(($(date +%s) - begin)) s"
closing
