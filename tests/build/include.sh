# The header included many times, and as several copies in one program; as C and as C++. Pieces: c, c++, and one for
# each compiler and standard of C++, such as clang++.c++17.
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
many() {        # many NAME COMPILER OPTION...
    many_name=$1; shift
    built "$many_name: included 5 times" "$@" -I. tests/build/many.c -o "$tmp/many" &&
        check "$many_name: included 5 times" "$tmp/many"
}
# with CALL COMPILER STANDARD OPTION...: if the compiler is here, and takes that
with() {
    call=$1 cxx=$2 std=$3; shift 3
    if ! has "$cxx"; then skip "no $cxx: header as $std"
    elif ! takes $cxx -x c++ -std=$std; then skip "$cxx does not take -std=$std"
    else $call "$cxx $std" $cxx -x c++ -std=$std $WARN "$@"
    fi
}
reads() {       # reads NAME COMPILER OPTION...: no code is made
    reads_name=$1; shift
    check "$reads_name: no warning" "$@" -fsyntax-only -I. tests/build/impl.c
}

# Copies are copies without SIMD too, and built in a third of the time; with it, every standard is only read.
case $piece in
c)
    many "$CC c99" $CC -std=c99 $WARN -DCOMPGRAD_NO_SIMD
    copies "$CC c99: 4 copies" $CC -std=c99 $WARN -DCOMPGRAD_NO_SIMD ;;
c++)
    with many "$CXX" c++11 -DCOMPGRAD_NO_SIMD
    with copies "$CXX" c++11 -DCOMPGRAD_NO_SIMD
    with reads "$CXX" c++11
    with reads "$CXX" c++20
    with reads clang++ c++11 ;;
*)
    cxx=${piece%.*} std=${piece##*.}
    [ $cxx = cxx ] && cxx=$CXX
    with many "$cxx" $std
    with copies "$cxx" $std ;;
esac
