# Sourced by tests/run.sh and .ci/run, at the top of the repository: counting, and a folder for what is built.
CC=${CC:-cc}
CXX=${CXX:-c++}
GOLDEN=${GOLDEN:-tests/golden}
WARN="-Wall -Wextra -Wconversion -Wsign-conversion -Wshadow -pedantic -Werror"
passed=0 failed=0 skipped=0
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM

has() { command -v "${1%% *}" >/dev/null 2>&1; }      # $CC may be "ccache gcc"

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
