# make demo ends soon, with a table and plots.
demo_shows() {
    for f in demo-accuracy.svg demo-loss.svg demo.csv; do
        [ -s "bench/out/$f" ] || { echo "no bench/out/$f"; return 1; }
    done
    [ "$(grep -c "<svg .*class='plot'" bench/out/demo.html)" -eq 2 ] &&
        [ "$(grep -c '<tr' bench/out/demo.html)" -ge 15 ]       # the head, and 14 methods
}
check "make build/train" make build/train CC="$CC"
check "make demo" limit 300 make demo CC="$CC"
check "make demo: table and plots" demo_shows
