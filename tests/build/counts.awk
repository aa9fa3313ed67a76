# awk -f counts.awk ROOM...: how often rooms compare with the constant of one stage, code, route, fold or kind, outside of tables (lines
# that begin with [CG_, {, CG_ROW or X( are those of a table). Prints the counts by header, and every place with -v places=1; fails above
# -v limit=N for all together.
FNR == 1 { header = FILENAME; sub(/^src\//, "", header); sub(/\/.*/, "", header); inside = 0 }
{
    line = $0
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
    if (text ~ /^[ \t]*(\[CG_|\{|CG_ROW|X\()/) next
    while (match(text, /(==|!=|<|>|<=|>=|case) *CG_(SAMPLE|TRANSFORM|SELECT|QUANTIZE|CODE|ROUTE|FOLD|EF|GRAPH|GOSSIP|LOCAL)_[A-Z0-9_]*|CG_(SAMPLE|TRANSFORM|SELECT|QUANTIZE|CODE|ROUTE|FOLD|EF|GRAPH|GOSSIP|LOCAL)_[A-Z0-9_]* *(==|!=|<|>)/)) {
        found = substr(text, RSTART, RLENGTH)
        text = substr(text, RSTART + RLENGTH)
        if (found ~ /_ *$/ || found ~ /_ *(==|!=|<|>)$/) continue       # private: a trait, a size
        count[header]++
        total++
        if (places) print FILENAME ":" FNR ": " found
    }
}
END {
    for (h in count) print h ": " count[h] " comparisons with one stage, code, route, fold or kind"
    print "all: " total + 0 " comparisons, at most " limit
    exit limit != "" && total > limit
}
