#!/bin/sh
# sh tests/run.sh [part of a name]: every tests/test_*.c, the golden packets, the checks of tests/build, real transports.
# From the environment: CC, CXX, and GREATEST = the path of upstream's greatest.h, to use that one.
# The last line is "N passed, N failed, N skipped"; what cannot run on this machine says SKIP and is counted.
cd "$(dirname "$0")/.." || exit 1
. tests/build/lib.sh
wanted() { case $1 in *"$filter"*) echo "-- $1" ;; *) return 1 ;; esac; }
filter=${1:-}

src=tests warn=$WARN
if [ -n "${GREATEST:-}" ]; then       # "greatest.h" is first looked for beside the test, so the tests move
    src=$tmp/src warn="-Wall -Wextra"
    mkdir "$src" && cp tests/*.[ch] "$src" && cp "$GREATEST" "$src/greatest.h" || exit 1
fi
threads=
takes $CC -pthread && threads=-pthread
for t in tests/test_*.c; do
    name=$(basename "$t" .c)
    [ -f "$t" ] && wanted "$name" || continue
    built "$name" $CC -std=c99 -O2 $warn -I. -I"$src" "$src/$name.c" -o "$tmp/$name" $threads -lm || continue
    count "$name" "$tmp/$name"
    rm -f "$tmp/$name"
done

for part in golden include config pollution freestanding stack snippets fuzz; do
    if wanted "build/$part"; then . "tests/build/$part.sh"; fi
done
for part in tcp mpi gloo train; do      # processes that talk
    if wanted "net/$part"; then . "tests/net/$part.sh"; fi
done
closing
