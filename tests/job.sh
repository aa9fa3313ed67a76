# sh tests/job.sh JOB: one of the jobs of tests/run.sh, by itself. What it prints goes to build/test/log, its counts to
# build/test/result (and the processor's seconds below them); shown are a line with its seconds, what was skipped, and
# all of a failure.
cd "$(dirname "$0")/.." || exit 1
. tests/build/lib.sh
unset MAKEFLAGS MFLAGS MAKELEVEL         # a make in a test is not one of those that share the cores
job=$1
flat=$(echo "$job" | tr / .)
log=build/test/log/$flat result=build/test/result/$flat
begin=$(date +%s)

src=tests                               # GREATEST: tests/run.sh has made copies of the tests beside that one
[ -z "${GREATEST:-}" ] || src=build/test/src
threads=
takes $CC -pthread && threads=-pthread

# program CONFIG NAME ARGUMENT...: tests/NAME.c in that configuration
program() {
    config_name=$1 name=$2; shift 2
    exe=build/test/$config_name/$name
    config $config_name || return
    [ $config_name = cc ] || CG_TEST=short
    warn=$WARN
    [ $src = tests ] || warn="-Wall -Wextra"
    made "$name" $exe $compiler -O1 $warn -DCOMPGRAD_LINKED -I. -I$src $src/$name.c $object -o $exe $threads -lm &&
        count "$name" limit 600 $run $exe "$@"
}

{
    case $job in
    object/train) made "train" build/test/cc/train.o $CC -std=c99 -O2 $WARN -DCOMPGRAD_LINKED -I. -c bench/train.c \
        -o build/test/cc/train.o && passed=1 ;;
    object/*) object ${job#*/} && passed=1 ;;
    test_*) program cc $job ;;
    */test_*) program ${job%%/*} ${job#*/} ;;
    *)  piece=${job#*.}                 # build/golden.plain: the piece "plain" of tests/build/golden.sh
        . "tests/${job%%.*}.sh" ;;
    esac
} >"$log" 2>&1

{ echo "$passed $failed $skipped"; times; } >"$result"
say=ok
[ $failed -eq 0 ] || say=FAIL
{
    printf '%-4s %4d s  %s: %d passed' $say $(($(date +%s) - begin)) "$job" $passed
    [ $failed -eq 0 ] || printf ', %d failed' $failed
    [ $skipped -eq 0 ] || printf ', %d skipped' $skipped
    echo
    if [ $failed -eq 0 ]; then grep '^ *SKIP' "$log"; else grep -v '^ok  ' "$log"; fi
} >"$tmp/say"
cat "$tmp/say"
case $job in object/*) [ $failed -eq 0 ] ;; esac      # without it, what links it need not begin
