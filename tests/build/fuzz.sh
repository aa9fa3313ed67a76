# Short runs of the fuzz targets, without libFuzzer: the same inputs every time.
inputs=1
if long; then inputs=10; fi
# target NAME INPUTS WHAT OPTION...
target() {
    target_name=$1 target_inputs=$(($2 * inputs)) what=$3; shift 3
    linked cc tests/fuzz/fuzz_$target_name.c build/test/cc/fuzz_$target_name -DFUZZ_MAIN $threads "$@" &&
        check "$target_inputs $what" build/test/cc/fuzz_$target_name $target_inputs
}
target decode 2000 "packets with changed fields and a right checksum, and sums of them"
# this one needs private names, so it has the implementation in it
target exchange 5000 "exchanges with changed messages" -UCOMPGRAD_LINKED -DCOMPGRAD_STATIC
target roundtrip 4000 "operators, there and back"
target sketch 1500 "rows of calls on sketches, and of exchanges of them"
target memory 2500 "rows of calls on states of error feedback, and of steps of ranks"
target sync 4000 "steps of gossip with changed messages, pairs, states and graphs of any bytes"
