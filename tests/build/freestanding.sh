# Nothing from outside but memcpy, memset and memmove. (Stack protectors, which some systems turn on by
# themselves, would call the C library.)
needs() {       # needs FILE: says what else the object wants
    ! nm -u "$1" | awk '{ print $NF }' | grep -v -x -e memcpy -e memset -e memmove
}
none() { ! grep . "$1"; }       # passes if the file is empty, else shows it
free="-ffreestanding -nostdlib -fno-stack-protector -c"
freestanding() {        # freestanding OPTION...
    built "freestanding $*" $CC -std=c99 $WARN "$@" $free -I. tests/build/impl.c -o "$tmp/free.o" &&
        check "freestanding $*" needs "$tmp/free.o"
}
if ! has nm; then skip "no nm: what a freestanding build needs from outside"
elif ! takes $CC -c -ffreestanding -fno-stack-protector; then skip "$CC does not take -ffreestanding"
elif long; then
    for o in -O0 -O2 -O3; do
        for simd in "" -DCOMPGRAD_NO_SIMD; do freestanding $o $simd; done
    done
else
    freestanding -O0 -DCOMPGRAD_NO_SIMD
    pie=
    if takes $CC -fno-pie -no-pie; then pie=-fno-pie; fi        # with -fpie constant tables of pointers look like data
    if freestanding -O0 $pie && [ -n "$pie" ]; then
        nm "$tmp/free.o" | awk 'NF == 3 && $2 ~ /[bBdDcCgGsS]/ && ++words > 1' >"$tmp/list"
        check "no mutable data but one word" none "$tmp/list"
    fi
fi
