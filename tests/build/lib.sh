# Sourced by what runs tests, at the top of the repository: counting, compiling, and a folder for what is left behind.
CC=${CC:-cc}
CXX=${CXX:-c++}
GOLDEN=${GOLDEN:-tests/golden}
WARN="-Wall -Wextra -Wconversion -Wsign-conversion -Wshadow -pedantic -Werror"
passed=0 failed=0 skipped=0
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM

has() { command -v "${1%% *}" >/dev/null 2>&1; }      # $CC may be "ccache gcc"
long() { [ "${CG_TEST:-}" = long ]; }                 # make test-long: see tests/run.sh
limit() { if has timeout; then timeout "$@"; else shift; "$@"; fi; }

# takes COMPILER OPTION...: whether the compiler can make a program with these options, silently
takes() {
    printf 'int main(void) { return 0; }\n' >"$tmp/takes.c"
    "$@" "$tmp/takes.c" -o "$tmp/takes" >"$tmp/takes.log" 2>&1 && [ ! -s "$tmp/takes.log" ]
}

# openmp COMPILER: whether -fopenmp means something to it (tcc takes it, silently)
openmp() {
    printf '#ifndef _OPENMP\n#error\n#endif\nint main(void) { return 0; }\n' >"$tmp/openmp.c"
    "$@" -fopenmp "$tmp/openmp.c" -o "$tmp/openmp" >/dev/null 2>&1
}

skip() {
    skipped=$((skipped + 1))
    echo "SKIP: $*"
}

# check NAME COMMAND...: one test, whose output is shown only if it fails
check() {
    check_name=$1; shift
    if "$@" >"$tmp/log" 2>&1; then
        passed=$((passed + 1))
        echo "ok    $check_name"
    else
        failed=$((failed + 1))
        echo "FAIL: $check_name: $*"
        tail -n 40 "$tmp/log"
    fi
}

# count NAME COMMAND...: a program that closes with "Pass: N, fail: N, skip: N." A failure that it
# does not count itself (no such line, or a non-zero exit after fail: 0) counts as one.
count() {
    count_name=$1; shift
    "$@" >"$tmp/log" 2>&1
    status=$?
    line=$(sed -n 's/^Pass: \([0-9]*\), fail: \([0-9]*\), skip: \([0-9]*\)\.$/\1 \2 \3/p' "$tmp/log" | tail -n 1)
    read -r p f s <<END
${line:-0 1 0}
END
    [ "$status" -ne 0 ] && [ "$f" -eq 0 ] && f=1
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    if [ "$f" -ne 0 ]; then
        echo "FAIL: $count_name: $p passed, $f failed, $s skipped, exit status $status"
        tail -n 60 "$tmp/log"
    else
        echo "ok    $count_name: $p passed, $s skipped"
        grep '^ *SKIP' "$tmp/log"
    fi
}

# built NAME COMPILER...: compiles quietly; a failure is shown and counts as a failed test
built() {
    built_name=$1; shift
    "$@" >"$tmp/log" 2>&1 && return
    failed=$((failed + 1))
    echo "FAIL: $built_name does not compile: $*"
    head -n 40 "$tmp/log"
    return 1
}

# made NAME FILE COMMAND...: as built; COMMAND makes FILE, and is not run again as long as it and what it reads are
# the same
made() {
    made_name=$1 file=$2 reads=; shift 2
    for word in "$@"; do case $word in *.c | *.cc | *.o) [ "$word" = "$file" ] || reads="$reads $word" ;; esac; done
    [ -f "$file" ] && [ "$(cat "$file.made" 2>/dev/null)" = "$*" ] &&
        [ -z "$(find $reads compgrad*.h tests/*.h tests/fuzz/*.h bench/*.h examples/*.h -newer "$file")" ] && return
    mkdir -p "${file%/*}" && rm -f "$file" "$file.made"
    built "$made_name" "$@" && echo "$*" >"$file.made"
}

# ---- one object of the implementation for many programs ----

clang=clang-14
has $clang || clang=clang
# config NAME: $compiler with its options, $optimise for the object, $run what runs its programs
config() {
    optimise=-O2 run=
    case $1 in
    cc) compiler="$CC -std=c99" ;;
    openmp) compiler="$CC -std=c99 -fopenmp -DCOMPGRAD_OPENMP"; long || optimise=-O1 ;;
    asan) compiler="$clang -std=c99 -g -fsanitize=address,undefined -fno-sanitize-recover=all" optimise=-O1 ;;
    fuzz) config asan; compiler="$compiler -fsanitize=fuzzer-no-link" ;;
    tsan) compiler="$clang -std=c99 -g -fsanitize=thread" optimise=-O1 ;;
    aarch64 | s390x) compiler="$1-linux-gnu-gcc -std=c99 -static" run=qemu-$1 ;;
    wasm) # a wasi program has neither threads nor a clock of its own
        compiler="$clang --target=wasm32-wasi -msimd128 -std=c99 -D_WASI_EMULATED_PROCESS_CLOCKS"
        compiler="$compiler -lwasi-emulated-process-clocks -Wl,-z,stack-size=1048576 -Wno-unused-command-line-argument"
        run="node --no-warnings tests/build/wasi.mjs" threads= ;;
    *) echo "no configuration $1"; return 1 ;;
    esac
    object=build/test/$1/compgrad.o
}

# object CONFIG: makes its object; where the compiler can, with a list of the stack that each function needs beside it
object() {
    config $1 || return
    usage=
    if takes $compiler -c -fstack-usage; then usage=-fstack-usage; fi
    made "the implementation, $1" $object $compiler $optimise $WARN $usage -I. -c tests/build/impl.c -o $object
}

# linked CONFIG SOURCE FILE OPTION...: a program that links the object of that configuration. The programs themselves
# are compiled with -O1: it takes half as long, and what they call is in the object
linked() {
    config $1 || return
    linked_source=$2 linked_file=$3; shift 3
    made "$linked_source" "$linked_file" $compiler -O1 $WARN -DCOMPGRAD_LINKED -I. -Itests "$linked_source" $object \
        -o "$linked_file" "$@"
}

# golden NAME COMPILER OPTION...: the golden packets and floats come out of this build too
golden() {
    golden_name=$1; shift
    built "golden, $golden_name" "$@" -I. -Itests tests/golden.c -o "$tmp/golden" || return
    count "golden, $golden_name" ${RUN:-} "$tmp/golden" "$GOLDEN"
}

closing() {
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ]
}
