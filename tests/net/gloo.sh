# examples/transport_gloo.h, processes on loopback.
config cc
printf '#include <gloo/context.h>\nint main() { gloo::Context context(0, 1); return context.rank; }\n' >"$tmp/gloo.cc"
if ! has timeout; then
    skip "no timeout: Gloo"
elif ! $CXX -std=c++14 "$tmp/gloo.cc" -o "$tmp/gloo" -lgloo -lpthread >/dev/null 2>&1; then
    skip "no Gloo for $CXX: transport_gloo.h"
else
    mkdir "$tmp/rendezvous"
    built "gloo_calls" $CXX -std=c++14 -O1 $WARN -DCOMPGRAD_LINKED -I. -Itests tests/net/gloo_calls.cc $object -o "$tmp/gloo_calls" -lgloo -lpthread &&
        count "gloo_calls" timeout 120 "$tmp/gloo_calls" "$tmp/rendezvous"
    built "exchange_gloo" $CXX -std=c++14 -O1 $WARN -DCOMPGRAD_LINKED -I. examples/exchange_gloo.cc $object -o "$tmp/exchange_gloo" -lgloo -lpthread &&
        check "exchange_gloo" timeout 60 "$tmp/exchange_gloo"
    rm -rf "$tmp/rendezvous" "$tmp/gloo_calls" "$tmp/exchange_gloo"
fi
