#!/bin/sh
# plot.sh - plots of the rows of aq-bench armci. Usage: plot.sh ROWS DIR
# SPDX-License-Identifier: BSD-3-Clause

set -u
rows=$1 dir=$2
mkdir -p "$dir" || exit 1
command -v gnuplot >/dev/null || { echo "aq-bench armci: gnuplot cannot be started" >&2; exit 1; }
script=$(mktemp) || exit 1
trap 'rm -f "$script"' EXIT

# begin FILE TITLE Y-AXIS UNIT(ns|GB/s)
begin()
{
    unit=$4 curves=''
    head=$(cat <<END
reset
set terminal svg size 820,600 dynamic background rgb 'white' font 'sans,13'
set output '$dir/$1'
set title "$2" noenhanced
set logscale x 2
set logscale y
set format y '%g'
set xlabel 'bytes'
set ylabel '$3'
set key below maxcols 2 samplen 3
set grid lc rgb '#cccccc'
set xtics ('8' 8, '64' 64, '512' 512, '4 Ki' 4096, '64 Ki' 65536, '1 Mi' 1048576, '16 Mi' 16777216)
END
    )
}

# curve TITLE COLOUR STYLE SECTION ROW [OTHER]: the row's times over its sizes, or those of what it
# is compared with
curve()
{
    points=$(awk -F'|' -v section="$4" -v name="$5" -v other="${6:-}" -v unit="$unit" '
        $1 == section && $2 == name && $3 > 0 && (other == "" || $5 == other) && !seen[$3]++ {
            ns = other == "" ? $4 : $6
            if (ns > 0) print $3, unit == "ns" ? ns : $3 / ns
        }' "$rows")
    [ -n "$points" ] || return 0
    number=$((number + 1))
    printf '$d%d << EOD\n%s\nEOD\n' $number "$points" >>"$script"
    curves="$curves${curves:+, }\$d$number using 1:2 with linespoints $3 lc rgb '$2' title '$1' noenhanced"
}

finish()
{
    [ -z "$curves" ] || printf '%s\nplot %s\nunset output\n' "$head" "$curves" >>"$script"
}

number=0
ours='lw 2.5 pt 7 ps 0.5' theirs='lw 1.3 dt 3 pt 6 ps 0.5'

begin armci-local.svg "Gets between two ranks of one host, data in no cache" "GB/s" GB/s
curve "ARMCI_Get" "#1b9e3e" "$ours" "one host: MPI copies twice" "get, cold"
curve "Open MPI message, two copies" "#8c4fc4" "$theirs" "one host: MPI copies twice" "get, cold" "MPI message"
curve "Open MPI message, single copy" "#b48cdc" "$theirs" "one host: MPI copies once" "get, cold" "MPI message"
curve "MPICH message" "#c0392b" "$theirs" "ARMCI-MPI over mpich: one host" "get, cold" "MPI message"
curve "ARMCI-MPI over Open MPI" "#d95f02" "$theirs" "ARMCI-MPI over openmpi: one host" "get, cold"
curve "ARMCI-MPI over MPICH" "#e6ab02" "$theirs" "ARMCI-MPI over mpich: one host" "get, cold"
finish

for conduit in udp mpi ibv; do
    section="$conduit: transfers"
    begin armci-$conduit-strided.svg "64 KiB in segments over $conduit: one call, and a call for each" \
        "nanoseconds" ns
    curve "strided get" "#1b9e3e" "$ours" "$section" "strided get"
    curve "loop of non-blocking gets" "#8c4fc4" "$theirs" "$section" "strided get" "loop of gets"
    curve "strided put" "#d95f02" "$ours" "$section" "strided put"
    curve "loop of non-blocking puts" "#c0392b" "$theirs" "$section" "strided put" "loop of puts"
    finish
    begin armci-$conduit-ways.svg "Contiguous transfers over $conduit, each way" "nanoseconds" ns
    curve "get, automatic" "#1b9e3e" "$ours" "$section" "get, automatic"
    curve "get, buffered" "#2a9fd6" "$theirs" "$section" "get, automatic" buffered
    curve "get, assisted" "#8c4fc4" "$theirs" "$section" "get, automatic" assisted
    curve "put and fence, automatic" "#d95f02" "$ours" "$section" "put, automatic"
    curve "put and fence, buffered" "#c0392b" "$theirs" "$section" "put, automatic" buffered
    finish
done
gnuplot "$script"
