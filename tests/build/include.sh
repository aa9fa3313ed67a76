# The header included many times, and as several copies in one program; as C and as C++.
copies() {      # copies NAME COMPILER OPTION...: two private copies, one public, and one file that uses that
    copies_name=$1; shift
    for copy in copy_a copy_b copy_c; do
        static=-DCOMPGRAD_STATIC
        [ $copy = copy_c ] && static=
        built "$copies_name" "$@" $static -DCOPY=$copy -c -I. -Itests tests/build/copies.c -o "$tmp/$copy.o" || return
    done
    built "$copies_name" "$@" -c -I. -Itests tests/build/copies.c -o "$tmp/copies.o" || return
    built "$copies_name" $1 "$tmp/copies.o" "$tmp"/copy_[abc].o -o "$tmp/copies" || return
    check "$copies_name" "$tmp/copies"
}

includes() {    # includes NAME COMPILER OPTION...
    includes_name=$1; shift
    built "$includes_name: included 5 times" "$@" -I. tests/build/many.c -o "$tmp/many" &&
        check "$includes_name: included 5 times" "$tmp/many"
    copies "$includes_name: 4 copies" "$@"
}

includes "$CC c99" $CC -std=c99 $WARN
for cxx in "$CXX" clang++; do
    [ "$cxx" = clang++ ] && [ "$CXX" = clang++ ] && continue
    for std in c++11 c++17 c++20; do
        if ! has "$cxx"; then skip "no $cxx: header as $std"
        elif ! takes $cxx -x c++ -std=$std; then skip "$cxx does not take -std=$std"
        else includes "$cxx $std" $cxx -x c++ -std=$std $WARN
        fi
    done
done
