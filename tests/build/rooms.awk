# awk -f rooms.awk ROOM...: the rooms of src/ in the order of the headers, seen as text. Every private name (cg_..._) belongs to the
# room where it first stands. A header (folder of src/) may use those of another only if a door lists them, and at most 30; all may
# use core/base. The functions of the kernel table count one by one, the traits of rows (CG_..._ = 1 << N) not at all: they are
# values that functions return. Prints what is wrong, and how many names each header uses.
function module(room) { sub(/^src\//, "", room); return room ~ /^core\/base\// ? "base" : substr(room, 1, index(room, "/") - 1) }
function exempt(room) { return room ~ /\/manual\.h$/ }     # a text by itself
function wrong(text) { print text; bad = 1 }
function use(name,    m) {
    m = module(FILENAME)
    if (!(name in owner)) owner[name] = FILENAME
    else if (name in trait) return
    else if (module(owner[name]) != m && module(owner[name]) != "base" && name != "CG_API_" && name != "CG_CHECKED_") used[m, name] = 1
}
# The comment that a room opens with.
function read_door(text,    list, i, n, word) {
    if (exempt(FILENAME)) return
    for (i = split("Offers Needs Touches", word, " "); i; i--)
        if (text !~ " " word[i] " ") wrong(FILENAME ": its first comment does not say \"" word[i] "\"")
    if (!(i = index(text, "Other headers may use:"))) return
    n = split(substr(text, i + 22), list, ",")
    for (i = 1; i <= n; i++) {
        sub(/^ +/, "", list[i])
        if (match(list[i], /^(cg_[a-z0-9_]*_|CG_[A-Z0-9_]*_|kernels->[a-z0-9_]+)/)) offered[substr(list[i], 1, RLENGTH)] = FILENAME
        if (list[i] !~ /^(cg_[a-z0-9_]*_|CG_[A-Z0-9_]*_|kernels->[a-z0-9_]+)$/) return       # the list ends where a sentence begins
    }
}
FNR == 1 {
    if (opening) read_door(opening)
    opening = $0 ~ /^\/\*/ ? " " : ""
    if (!opening && !exempt(FILENAME)) wrong(FILENAME ": does not open with a door")
    first = 1
    inside = 0
}
{
    line = $0
    if (first && opening) {
        opening = opening $0 " "
        if (index($0, "*/")) { first = 0; read_door(opening); opening = "" }
    }
    text = ""
    while (1) {
        if (inside) { if (!(i = index(line, "*/"))) { line = ""; break } line = substr(line, i + 2); inside = 0 }
        gsub(/"([^"\\]|\\.)*"/, "\"\"", line)
        if (!(i = index(line, "/*"))) break
        text = text substr(line, 1, i - 1) " "
        line = substr(line, i + 2)
        inside = 1
    }
    text = text line
    gsub(/[A-Za-z0-9_]+##[A-Za-z0-9_#]*/, "", text)      # only parts of names
    if (FILENAME ~ /kernels\/table\.h$/ && match(text, /^ *X\([a-z0-9_]+, [a-z0-9_]+,/)) {
        name = substr(text, RSTART, RLENGTH - 1)
        sub(/.*, /, "", name)
        kernel[name] = 1
    }
    if (match(text, /CG_[A-Z0-9_]*_ =( 1 << [0-9]+,?)? *$/)) trait[substr(text, RSTART, index(substr(text, RSTART), " ") - 1)] = 1
    if (match(text, /define CG_[A-Z0-9_]*_ 0x80000000u/)) trait[substr(text, RSTART + 7, RLENGTH - 19)] = 1   # the one that no int holds
    while (match(text, /(kernels|_now_\(\)), [a-z0-9_]+\(/)) {        # of CG_KERNEL_
        name = substr(text, RSTART, RLENGTH - 1)
        text = substr(text, 1, RSTART - 1) " " substr(text, RSTART + RLENGTH)
        sub(/.*, /, "", name)
        if (name in kernel && module(FILENAME) != "core") used[module(FILENAME), "kernels->" name] = 1
    }
    while (match(text, /(->)?[A-Za-z_][A-Za-z0-9_]*/)) {
        name = substr(text, RSTART, RLENGTH)
        text = substr(text, RSTART + RLENGTH)
        if (name ~ /^(cg|CG)_[A-Za-z0-9_]*_$/) use(name)
        else if (name ~ /^->/ && substr(name, 3) in kernel && module(FILENAME) != "core") used[module(FILENAME), "kernels" name] = 1
    }
}
END {
    for (u in used) {
        split(u, part, SUBSEP)
        of = part[2] ~ /^kernels->/ ? "core" : module(owner[part[2]])
        count[part[1] " of " of]++
        if (!(part[2] in offered)) wrong("src/" part[1] " uses " part[2] " (" owner[part[2]] "), which no door offers")
        seen[part[2]] = 1
    }
    for (name in offered) if (!(name in seen)) wrong(offered[name] " offers " name ", which no other header uses")
    for (c in count) {
        print c ": " count[c] " private names"
        if (count[c] > 30) wrong(c ": more than 30")
    }
    exit bad
}
