# rows.awk - rows of aq-bench armci as text, JSON or tables, and rows that compare two sections.
# SPDX-License-Identifier: BSD-3-Clause
#
# Input    section|name|size|ns|other|other's ns|ratio|spread|goal|verdict
#          section|name|size|value|unit||||goal|verdict
# form     text json markdown beside

BEGIN { FS = "|" }

function time_text(ns) {
    if (ns == "") return ""
    if (ns >= 1e6) return sprintf("%.2f ms", ns / 1e6)
    if (ns >= 1e4) return sprintf("%.1f us", ns / 1e3)
    return sprintf(ns < 100 ? "%.1f ns" : "%.0f ns", ns)
}

function size_text(bytes) {
    if (bytes == 0) return "-"
    if (bytes >= 1048576 && bytes % 1048576 == 0) return bytes / 1048576 " MiB"
    if (bytes >= 1024 && bytes % 1024 == 0) return bytes / 1024 " KiB"
    return bytes " B"
}

function is_figure() { return $7 == "" }
function value() { return is_figure() && $5 != "ns" ? sprintf("%.4g %s", $4, $5) : time_text($4) }
function other() { return is_figure() ? "" : $5 }

# The ratio in as many digits as it takes to see on which side of the goal it is.
function ratio_text(    goal, digits, text) {
    if (is_figure())
        return ""
    split($9, goal, " ")
    for (digits = 2; digits < 6; digits++) {
        text = sprintf("%." digits "f", $7)
        if ($9 == "-" || (goal[1] == "<=" ? ($7 <= goal[2]) == (text + 0 <= goal[2] + 0) : \
                                            ($7 >= goal[2]) == (text + 0 >= goal[2] + 0)))
            break
    }
    return text
}

NF < 10 { next }
is_figure() && $5 == "ns" && $9 != "-" && form != "beside" { # the limit as the value
    split($9, limit, " ")
    if (form != "json") $9 = limit[1] " " time_text(limit[2])
}

form == "text" {
    printf "%-40s %8s %12s  %-20s %11s %7s  %-8s %s\n", $2, size_text($3), value(), other(),
        time_text($6), ratio_text(), $9 == "-" ? "" : $9, $10
    fflush()
}

form == "json" {
    printf "%s{\"section\": \"%s\", \"name\": \"%s\", \"size\": %d, \"value\": %s, \"unit\": \"%s\"",
        NR == 1 ? "[\n" : ",\n", $1, $2, $3, $4, is_figure() ? $5 : "ns"
    if (!is_figure())
        printf ", \"other\": \"%s\", \"other_value\": %s, \"ratio\": %s, \"spread\": %s", $5, $6, $7, $8
    if ($9 != "-")
        printf ", \"goal\": \"%s\", \"verdict\": \"%s\"", $9, $10
    printf "}"
}
END { if (form == "json") print (NR == 0 ? "[]" : "\n]") }

form == "markdown" && NR == 1 {
    command = "aq-bench armci" (ga == "yes" ? " --ga" : "")
    print "<!-- SPDX-License-Identifier: BSD-3-Clause -->\n# What " \
        (ga == "yes" ? "Global Arrays costs on ARMCI" : "ARMCI costs") "\n"
    print "<!-- Written by `" command " --markdown FILE" (ga == "yes" ? "" : " --plot DIR") "`. -->\n"
    print "`" command (how == "quick" ? " --quick" : "") "`, " date " UTC. " machine ". " \
        (ga == "yes" ? "[armci.md](../armci.md#global-arrays) says how to read the rows." : \
        "[armci.md](../armci.md#figures) says how to read the rows and has the plots.")
}
form == "markdown" {
    if ($1 != section)
        print "\n## " $1 "\n\n| row | size | time or value | beside | time | ratio | goal | verdict |\n|---|--:|--:|---|--:|--:|--:|---|"
    section = $1
    printf "| %s | %s | %s | %s | %s | %s | %s | %s |\n", $2, size_text($3), value(), other(), time_text($6),
        ratio_text(), $9 == "-" ? "" : $9, $10
}

# --- rows of two sections ---

form == "beside" { ns[$1, $2, $3] = $4 }

# How many times as fast a row is in section a as in section b.
function beside(name, size, a, b, label, goal,    x, y, verdict) {
    x = ns[a, name, size]
    y = ns[b, name, size]
    if (x == "" || y == "" || x <= 0)
        return
    verdict = "-|"
    if (goal)
        verdict = ">= " goal "|" (y / x < goal ? "MISSED" : "ok")
    printf "beside each other|%s|%d|%s|%s|%s|%.6f|1|%s\n", name, size, x, label, y, y / x, verdict
}

function beside_armci_mpi(mpi,    theirs, ours) {
    ours = "one host: MPI copies twice"
    theirs = "ARMCI-MPI over " mpi ": one host"
    beside("get 8 B", 8, ours, theirs, "ARMCI-MPI, " mpi, 10)
    beside("get, cold", 524288, ours, theirs, "ARMCI-MPI, " mpi, 0)
    beside("strided get, 256 B", 16384, ours, theirs, "ARMCI-MPI, " mpi, 0)
    beside("strided put, 256 B", 16384, ours, theirs, "ARMCI-MPI, " mpi, 0)
    beside("accumulate", 65536, ours, theirs, "ARMCI-MPI, " mpi, 0)
    beside("lock and unlock", 0, ours, theirs, "ARMCI-MPI, " mpi, 0)
    beside("fetch and add", 8, ours, theirs, "ARMCI-MPI, " mpi, 0)
}

function beside_no_sharing(    on, off) {
    on = "one host: MPI copies twice"
    off = "one host: no memory shared"
    beside("get 8 B", 8, on, off, "no memory shared", 5)
    beside("get, cold", 524288, on, off, "no memory shared", 1.5)
    beside("strided get, 256 B", 16384, on, off, "no memory shared", 1.5)
    beside("strided put, 256 B", 16384, on, off, "no memory shared", 1.5)
    beside("accumulate", 65536, on, off, "no memory shared", 1.5)
}

END {
    if (form == "beside") {
        beside_no_sharing()
        beside_armci_mpi("openmpi")
        beside_armci_mpi("mpich")
    }
}
