# At most 40 KiB of stack where the compiler optimises (-O0 keeps every temporary of every intrinsic apart): each
# function as the compiler counts it, and the sum as measured.
over() { ! awk -F '\t' '$2 > 40960 || $3 == "dynamic"' "$1" | grep .; }
listed() {      # listed FILE OPTION
    if [ -s "$1" ]; then check "no function needs more than 40 KiB of stack, $2" over "$1"
    else skip "$CC wrote no stack use, $2"; fi
}
config cc
if takes $CC -c -fstack-usage; then
    listed build/test/cc/compgrad.su -O2
    for o in -O1 -O3; do
        long && built "stack use $o" $CC -std=c99 $o -fstack-usage -I. -c tests/build/impl.c -o "$tmp/impl.o" &&
            listed "$tmp/impl.su" $o
    done
else
    skip "$CC does not take -fstack-usage"
fi
printf '#include <ucontext.h>\nint main(void) { makecontext(0, 0, 0); return 0; }\n' >"$tmp/uc.c"
if $CC "$tmp/uc.c" -o "$tmp/uc" >/dev/null 2>&1; then
    built "stack.c" $CC -O1 -DCOMPGRAD_LINKED -I. -Itests tests/build/stack.c $object -o "$tmp/stack" &&
        check "calls together stay within 40 KiB of stack" "$tmp/stack" && cat "$tmp/log"
    long && built "stack.c -O1" $CC -O1 -I. -Itests tests/build/stack.c -o "$tmp/stack" &&
        check "calls together stay within 40 KiB of stack, -O1" "$tmp/stack" && cat "$tmp/log"
else
    skip "no ucontext.h: stack use along calls"
fi
