# Every piece of C that the documentation shows compiles and runs.
wrap() {        # wrap FILE: a program, or functions, as they are; else preprocessor lines first, the rest as a main
    grep -q 'int main' "$1" && { cat "$1"; return; }
    printf '#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n'
    grep -q COMPGRAD_IMPLEMENTATION "$1" || printf '#define COMPGRAD_IMPLEMENTATION\n'
    grep '^ *#' "$1"
    if ! grep -q 'compgrad[a-z_]*\.h' "$1"; then
        if grep -q cg_sketch "$1"; then printf '#include "compgrad_sketch.h"\n'; else printf '#include "compgrad.h"\n'; fi
    fi
    if grep -q '^{' "$1"; then
        grep -v '^ *#' "$1"
        if grep -q '^int send_gradient' "$1"; then cat <<'END'
int main(void) {
    static float grad[1000], sum[1000];
    static unsigned char packet[1 << 16], scratch[1 << 21];
    size_t len;
    for (int i = 0; i < 1000; i++) grad[i] = (float)(i - 300);
    if (send_gradient(grad, 1000, packet, sizeof packet, scratch, &len)) return 1;
    if (add_gradient(packet, len, sum, 1000)) return 2;
    return sum[999] < 174 || sum[999] > 175.5f || sum[0] < 0 || sum[0] > 0;      /* 0.25 * 699 */
}
END
        elif grep -q '^int step_or_dense' "$1"; then cat <<'END'
static int dense, broken;
static int my_mean(float *grad) {
    dense++;
    return grad[7] < 7 || grad[7] > 7;                          /* as it was given */
}
static int my_sendrecv(void *user, const void *out, size_t out_bytes, int to, void *in, size_t in_bytes, int from) {
    (void)user, (void)out, (void)out_bytes, (void)to, (void)in, (void)in_bytes, (void)from;
    return broken;
}
int main(void) {
    static float grad[1000];
    static unsigned char state[1 << 20], mem[1 << 20];
    cg_exchange_desc x = CG_ZERO;
    cg_ef_desc d = CG_ZERO;
    cg_transport net = CG_ZERO;
    cg_ef ef;
    if (!read_operator(&d.op, "tpok:0.01") || read_operator(&d.op, "topk:0.01")) return 1;
    d.n = 1000;
    if (cg_ef_init(&ef, &d, state, sizeof state) != CG_OK) return 2;
    net.size = 2;
    net.sendrecv = my_sendrecv;
    broken = -104;
    for (int i = 0; i < 1000; i++) grad[i] = (float)i;
    if (step_or_dense(&ef, &x, &net, grad, mem, sizeof mem, my_mean) || dense != 1) return 3;
    for (int i = 0; i < 1000; i++)
        if (cg_ef_residual(&ef)[i] < 0 || cg_ef_residual(&ef)[i] > 0) return 4;
    net.size = 1;
    if (step_or_dense(&ef, &x, &net, grad, mem, sizeof mem, my_mean) || dense != 1) return 5;
    return cg_ef_residual(&ef)[7] < 7 || grad[7] > 0;           /* 1 % of the gradient was sent, and the rest kept */
}
END
        else echo 'int main(void) { return 0; }'
        fi
        return
    fi
    if grep -q cg_sketch "$1"; then cat <<'END'
static cg_sketch other;                 /* another worker's: coordinate 7 is large */
static cg_sketched sgd;
static cg_fetched fetch;
static cg_exchange_desc x;
static cg_transport transport;
static cg_report report;
static unsigned char mem[1 << 20], state[4][1 << 18], scratch[1 << 18];
static uint64_t index[10];
static float value[10];
static size_t k = 10, bytes = sizeof mem;
static cg_status status;
static int sketches(size_t n) {
    const float one = 1e6f;
    cg_sketched_desc s = CG_ZERO;
    cg_fetched_desc f = CG_ZERO;
    s.sketch.rows = 5; s.sketch.cols = n / 50; s.sketch.n = n; s.sketch.seed = 42;
    s.k = f.k = k;
    f.sketch = s.sketch;
    index[0] = 7;
    transport.size = 1;
    (void)mem, (void)bytes, (void)scratch, (void)value, (void)x, (void)report, (void)status;
    return cg_sketch_init(&other, &s.sketch, state[0], sizeof state[0]) | cg_sketch_add_list(&other, index, &one, 1, 1)
        | cg_sketched_init(&sgd, &s, state[1], sizeof state[1]) | cg_fetched_init(&fetch, &f, state[2], sizeof state[2]);
}
#define PREPARE if (sketches(n)) return 2;
#define ALONE
END
    elif grep -q cg_mean_step "$1"; then cat <<'END'
static const size_t sizes[2] = { 600, 400 };
enum { tensors = 2 };
static cg_transport net;
static char why[400];
static float grad_0[600] = { 0 }, grad_1[400] = { 0 };
static float *grads[2] = { grad_0, grad_1 };
#define PREPARE net.size = 1; grad_1[7] = 2.5f;
#define ALONE
END
    elif grep -q cg_ef "$1"; then cat <<'END'
static const cg_transport transport = { NULL, 0, 1, 0, NULL, NULL, NULL, NULL, NULL, { 0 } };
static unsigned char mem[1 << 20];
static cg_report report;
#define ALONE
END
    elif grep -q cg_exchange "$1"; then cat <<'END'
static int my_sockets;
static int my_sendrecv(void *user, const void *out, size_t out_bytes, int to, void *in, size_t in_bytes, int from) {
    (void)user, (void)out, (void)out_bytes, (void)to, (void)in, (void)in_bytes, (void)from;
    return 1;                           /* alone, it is not called */
}
#define ALONE
END
    fi
    cat <<'END'
static float grad[1000], sum[1000];
int main(void) {
    size_t n = 1000;
    uint64_t step = 1;
    uint32_t layer = 2;
#ifdef ALONE
    int rank = 0, ranks = 1;
    (void)ranks;
#else
    uint32_t rank = 3;
#endif
    for (size_t i = 0; i < n; i++) grad[i] = (float)(i * 37 % 101) - 50;
    (void)n, (void)step, (void)layer, (void)rank, (void)grad, (void)sum;
#ifdef PREPARE
    PREPARE
#endif
    {
END
    grep -v '^ *#' "$1"
    if grep -q cg_mean_step "$1"; then printf '    if (strcmp(cg_mean_why(mean), "ok") || grad_1[7] < 2.49f || cg_mean_steps(mean) != 1) return 1;\n'; fi
    if grep -q 'cg_status s = cg_ef' "$1"; then printf '    if (s != CG_OK) return 1;\n'; fi
    if grep -q 'cg_status status = cg_sketch' "$1"; then printf '    while (k && index[k - 1] != 7) k--;\n    if (status != CG_OK || !k) return 1;\n'
    elif grep -q cg_sketch "$1"; then printf '    if (status != CG_OK) return 1;\n'; fi
    printf '    }\n    return 0;\n}\n'
}

snippet() {     # snippet NAME FILE
    wrap "$2" >"$tmp/snippet.c"
    built "$1" $CC -std=c99 -Wall -Wextra -Werror -O1 -DCOMPGRAD_LINKED -I. "$tmp/snippet.c" $object -o "$tmp/snippet" -lm &&
        check "$1" "$tmp/snippet"
}

config cc                               # $object
awk 'NR > 20 || (code && /^   [^ ]/) { exit } /^       / { code = 1; print }' compgrad.h >"$tmp/header.txt"
snippet "the code in the first 20 lines of compgrad.h" "$tmp/header.txt"
awk 'NR > 25 || (code && /^   [^ ]/) { exit } /^       / { code = 1; print }' compgrad_exchange.h >"$tmp/header.txt"
snippet "the code in the first lines of compgrad_exchange.h" "$tmp/header.txt"
awk 'NR > 25 || (code && /^   [^ ]/) { exit } /^       / { code = 1; print }' compgrad_ef.h >"$tmp/header.txt"
snippet "the code in the first lines of compgrad_ef.h" "$tmp/header.txt"
for block in 1 2; do
    awk -v want=$block 'NR > 30 { exit } /^       / { if (!code++) block++; if (block == want) print; next } /^   [^ ]/ { code = 0 }' compgrad_sketch.h >"$tmp/header.txt"
    snippet "the code in the first lines of compgrad_sketch.h, part $block" "$tmp/header.txt"
done

if [ -f README.md ]; then
    awk -v to="$tmp/block" '/^```c *$/ { file = to (++blocks); next } /^```/ { file = "" } file { print >file }' README.md
    for f in "$tmp"/block*; do
        if [ -f "$f" ]; then snippet "C block ${f##*/block} of README.md" "$f"; else check "README.md shows C code" false; fi
    done
else
    skip "no README.md"
fi

# An outside program over the names that programs are compiled against, in C and in C++
cat >"$tmp/mean.c" <<'END'
#include "compgrad_ef.h"
#include <stdio.h>
#include <stdlib.h>
int main(void) {
    cg_transport net = CG_ZERO; size_t n[2] = { 300, 20 }; float a[300] = { 0 }, b[20] = { 0 }, *grads[2] = { a, b }; char why[200]; cg_mean *m;
    net.size = 1; a[7] = 3; b[1] = 2;
    size_t bytes = cg_mean_memory("topk:0.1 memory=momentum:0.9 seed=42", n, 2, &net, why, sizeof why);
    if (cg_mean_open(&m, "topk:0.1 memory=momentum:0.9 seed=42", n, 2, &net, malloc(bytes), bytes) != CG_OK) return puts(cg_mean_why(m)), 1;
    if (cg_mean_step(m, grads) != CG_OK) return puts(cg_mean_why(m)), 2;
    return !(a[7] > 2.9f && b[1] > 1.9f && cg_mean_save_bytes(m) > 1000);
}
END
cp "$tmp/mean.c" "$tmp/mean.cc"
built "ten lines of C with a mean" $CC -std=c99 -O1 -DCOMPGRAD_LINKED -I. "$tmp/mean.c" $object -o "$tmp/mean" -lm &&
    check "ten lines of C with a mean" "$tmp/mean"
if has "$CXX"; then
    built "ten lines of C++ with a mean" $CXX -std=c++11 -O1 -DCOMPGRAD_LINKED -I. "$tmp/mean.cc" $object -o "$tmp/mean" -lm &&
        check "ten lines of C++ with a mean" "$tmp/mean"
else
    skip "no $CXX: ten lines of C++ with a mean"
fi
