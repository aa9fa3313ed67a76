# Sourced by tests/run.sh: the jobs of make test-long. Programs that know the long tier run again, in full; what needs
# more than a C compiler is new. Sanitizers and emulators are slow: what runs under them is as short as in make test.
export ASAN_OPTIONS=print_legend=0
can_asan= can_fuzz= can_wasm= machines=
if takes $clang -fsanitize=address,undefined; then can_asan=1; else skip "no $clang with sanitizers"; fi
if takes $clang -c -fsanitize=fuzzer,address,undefined; then can_fuzz=1; else skip "no $clang with libFuzzer"; fi
for machine in aarch64 s390x; do        # NEON; big-endian
    if has $machine-linux-gnu-gcc && has qemu-$machine; then machines="$machines $machine"
    else skip "no $machine-linux-gnu-gcc or qemu-$machine: $machine"; fi
done
if has node && has wasm-ld && takes $clang --target=wasm32-wasi -msimd128; then can_wasm=1
else skip "no node, or no $clang for wasm32-wasi: WebAssembly"; fi

# The longest first.
for machine in $machines; do
    jobs $machine/test_catalogue $machine/test_ef_safe $machine/test_sketch build/golden.$machine
done
jobs test_isa test_faults test_exchange test_select test_topk test_bytes test_ef net/train.resume net/train.mpi net/mpi
if [ -n "$can_asan" ]; then
    jobs asan/test_isa asan/test_faults build/golden.asan asan/test_exchange asan/test_topk
    jobs $(programs tests/test_*.c | sed 's,^,asan/,')
fi
for machine in $machines; do
    # The golden packets hold every operator to its bits; beside them the tests that machines can differ in
    for t in roundtrip errors half matrix ops user wire; do jobs $machine/test_$t; done
    [ $machine = aarch64 ] && jobs aarch64/test_isa aarch64/test_random
done
if [ -n "$can_wasm" ]; then jobs wasm/test_isa wasm/test_sketch build/golden.wasm; fi
for compiler in gcc $clang tcc g++ $(echo $clang | sed 's/clang/clang++/'); do
    jobs build/warnings.$compiler
    [ $compiler = gcc ] || jobs build/golden.$compiler
done
jobs build/golden.qemu64 build/golden.each build/golden.native build/openmp build/freestanding build/stack
jobs build/examples
for std in c++11 c++17 c++20; do jobs build/include.cxx.$std build/include.clang++.$std; done
if [ -n "$can_fuzz" ]; then jobs $(programs tests/fuzz/fuzz_*.c | sed 's,^fuzz_,build/libfuzzer.,'); fi
if takes $clang -fsanitize=thread -pthread; then jobs build/tsan; else skip "no $clang with the thread sanitizer"; fi
jobs build/only net/train.methods net/train.shows net/train.disk net/tcp net/sync build/fuzz build/demo build/benches
jobs $(programs $(grep -l '"tier.h"' tests/test_*.c))
