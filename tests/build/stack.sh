# At most 40 KiB of stack where the compiler optimises (-O0 keeps every temporary of every intrinsic apart): each
# function as the compiler counts it, and the sum as measured.
over() { ! awk -F '\t' '$2 > 40960 || $3 == "dynamic"' "$1" | grep .; }
if takes $CC -c -fstack-usage; then
    for o in -O1 -O2 -O3; do
        (cd "$tmp" && mkdir -p su && rm -f su/*)
        built "stack use $o" $CC -std=c99 $o -fstack-usage -I. -c tests/build/impl.c -o "$tmp/su/impl.o" || continue
        if [ -s "$tmp/su/impl.su" ]; then check "no function needs more than 40 KiB of stack, $o" over "$tmp/su/impl.su"
        else skip "$CC wrote no stack use, $o"; fi
    done
else
    skip "$CC does not take -fstack-usage"
fi
if printf '#include <ucontext.h>\nint main(void) { makecontext(0, 0, 0); return 0; }\n' >"$tmp/uc.c" && $CC "$tmp/uc.c" -o "$tmp/uc" >/dev/null 2>&1; then
    for o in -O1 -O2; do
        built "stack.c $o" $CC $o -I. -Itests tests/build/stack.c -o "$tmp/stack" && check "calls together stay within 40 KiB of stack, $o" "$tmp/stack" && cat "$tmp/log"
    done
else
    skip "no ucontext.h: stack use along calls"
fi
