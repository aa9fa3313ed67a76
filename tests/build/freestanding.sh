# Nothing from outside but memcpy, memset and memmove. (Stack protectors, which some systems turn on by
# themselves, would call the C library.)
needs() {       # needs FILE: says what else the object wants
    ! nm -u "$1" | awk '{ print $NF }' | grep -v -x -e memcpy -e memset -e memmove
}
free="-ffreestanding -nostdlib -fno-stack-protector -c"
if ! has nm; then skip "no nm: what a freestanding build needs from outside"
elif ! takes $CC -c -ffreestanding -fno-stack-protector; then skip "$CC does not take -ffreestanding"
else
    for o in -O0 -O2 -O3; do
        for simd in "" -DCOMPGRAD_NO_SIMD; do
            built "freestanding $o $simd" $CC -std=c99 $WARN $o $simd $free -I. tests/build/impl.c -o "$tmp/free.o" &&
                check "freestanding $o $simd" needs "$tmp/free.o"
        done
    done
fi
