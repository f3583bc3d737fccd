#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# test_aq_bench_against.sh - aq-bench --against: this tree beside a second one, and what can be wrong with that one.
# What the figures are is not judged here. Prints TAP. AQ_INSTALL is the installed tree.

: "${AQ_INSTALL:?AQ_INSTALL is the installed tree}"
. "$(dirname "$0")/../../build-aux/tap.sh"
bench=$AQ_INSTALL/bin/aq-bench
TMPDIR=$work/tmp
export TMPDIR
unset AQ_BENCH_PREFIX AQ_BENCH_DATADIR PKG_CONFIG_PATH

# against ARGS... - aq-bench --against the second tree
against()
{
    timeout 150 "$bench" --against "$work/other" --quick "$@" >"$work/out" 2>"$work/err"
}

# fails WORD ARGS... - it exits with 2 and says WORD
fails()
{
    word=$1
    shift
    against "$@"
    [ $? -eq 2 ] && grep -q -- "$word" "$work/err"
}

# pretend NAME LINE... - the second tree's launcher NAME is a script of these lines
pretend()
{
    name=$1
    shift
    rm -f "$work/other/bin/$name"
    { echo '#!/bin/sh'; printf '%s\n' "$@"; } >"$work/other/bin/$name"
    chmod +x "$work/other/bin/$name"
}

! grep -q '#include "\|aqueduct\.h\|gasnet_internal' "$AQ_INSTALL/share/aqueduct/bench/bench_portable.c"
result $? "the portable program includes what is public only"

# The second tree is a copy: its files name the places where they lie.
cp -R "$AQ_INSTALL" "$work/other" || exit 1

against --conduits smp --rounds 2 --label copy --csv "$work/csv" --plot "$work/plot"
result $? "a whole comparison over smp"
[ "$(grep -c '^| .* | *[0-9.]* [nu]s | *[0-9.]* [nu]s | *[*0-9.]* |$' "$work/out")" -eq 18 ]
result $? "its table has the 18 rows"
grep -q 'smp: ours | *copy | *ratio' "$work/out"
result $? "the table calls the other one by its label"
grep -q '^[0-9]* of 18 cells \(is\|are\) above 1\.00' "$work/out"
result $? "it says how many cells are above 1.0"
[ "$(grep -c '\*\*' "$work/out")" -eq "$(grep -c '^- smp ' "$work/out")" ]
result $? "each of them is marked and listed"
[ "$(grep -c '^smp,[a-z_]*/[0-9]*,".*",[0-9.]*,[0-9.]*,[0-9.]*,[0-9.]*,[0-9.]*,2$' "$work/csv")" -eq 18 ]
result $? "the CSV file has the same rows"
if command -v gnuplot >/dev/null; then
    [ -s "$work/plot/against.svg" ] && grep -q '^# Against copy$' "$work/plot/against.md" &&
        grep -q '^| barrier ' "$work/plot/against.md"
    result $? "the page and its plot are written"
else
    skip "the page and its plot are written" "no gnuplot"
fi

against --conduits smp --rounds 1 --only barrier,put/8
[ $? -eq 0 ] && [ "$(grep -c '^| .* ns |' "$work/out")" -eq 2 ]
result $? "--only chooses rows"
for conduit in udp mpi; do
    if [ -f "$AQ_INSTALL/lib/pkgconfig/gasnet-$conduit-seq.pc" ]; then
        OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
            against --conduits "$conduit" --rounds 1 --only put/8,am_short,barrier
        [ $? -eq 0 ] && [ "$(grep -c '^| .*[nu]s |' "$work/out")" -eq 3 ]
        result $? "over $conduit"
    else
        skip "over $conduit" "this build has no $conduit"
    fi
done
if [ -f "$AQ_INSTALL/lib/pkgconfig/gasnet-smp-par.pc" ]; then
    against --conduits smp --mode par --rounds 1 --only self
    [ $? -eq 0 ] && [ "$(grep -c '^| .* ns |' "$work/out")" -eq 3 ]
    result $? "par mode"
fi

check "a prefix without pkg-config files is refused, with the places that were searched" sh -c "
    '$bench' --against '$work/plot' 2>&1 | grep -q 'no gasnet-CONDUIT-seq.pc in lib/pkgconfig'"
fails 'no gasnet-ofi-seq.pc' --conduits ofi
result $? "a conduit that is not there is refused by name"
fails 'no row' --conduits smp --rounds 1 --only nonsense
result $? "--only without a row that fits is refused"
fails 'from 1 to' --rounds 0
result $? "no rounds are refused"
fails 'one of seq, par, parsync' --mode fast
result $? "an unknown mode is refused"

pretend gasnetrun_smp 'echo "no licence" >&2' 'exit 3'
fails 'ended with code 3' --conduits smp --rounds 1 && grep -q 'no licence' "$work/err" && grep -q "$work/other" "$work/err"
result $? "a launcher that fails: its code, its words and its tree are named"
pretend gasnetrun_smp 'printf "AQ_PORTABLE\tstart\tput/8\n"' 'sleep 1000 & wait'
fails 'did not end within 5 s; last row: put/8' --conduits smp --rounds 1 --limit 5
result $? "a job that hangs is ended in time, and the row it began is named"
pretend gasnetrun_smp 'exit 0'
fails 'ended before all rows were measured' --conduits smp --rounds 1
result $? "a job that ends without figures is no success"
pretend broken-cc 'echo "broken-cc: out of order"' 'exit 1'
sed "s,^GASNET_CC=.*,GASNET_CC=$work/other/bin/broken-cc," "$AQ_INSTALL/lib/pkgconfig/gasnet-smp-seq.pc" \
    >"$work/other/lib/pkgconfig/gasnet-smp-seq.pc"
fails 'cannot be built for smp' --conduits smp && grep -q 'broken-cc: out of order' "$work/err"
result $? "a compiler that fails is shown with what it said"

check "no process is left" tap_gone
[ -z "$(ls "$work/tmp")" ]
result $? "no file is left"

tap_end
