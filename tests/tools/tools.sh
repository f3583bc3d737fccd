#!/bin/sh
# tools.sh - gasnet_tools.h without a conduit: each program in C and C++, with each compiler, both thread modes,
# linked with the tools-only archive; what shows only from outside (messages, backtraces, freezing). Prints TAP.
# SPDX-License-Identifier: BSD-3-Clause
#
#   tools.sh          in a build folder; AQ_SRC is the source folder

set -u
: "${AQ_SRC:?AQ_SRC is the source folder}"
. build-aux/config.env
. "$AQ_SRC/build-aux/tap.sh"
here=$AQ_SRC/tests/tools
build=$PWD
include="-I$AQ_SRC/include -I$build/include"
ulimit -c 0
# tap NAME PROGRAM: runs it; its tests become this script's
tap()
{
    "$2" >"$work/tap" 2>"$work/err"
    status=$?
    tests=$(grep -c '^ok\|^not ok' "$work/tap")
    [ "$status" = 0 ] && [ "$tests" -gt 0 ] && tail -n 1 "$work/tap" | grep -qx "1..$tests"
    result $? "$1: $tests rules" "$work/tap"
}

# --- the matrix ---

sanitize=$AQ_SANITIZE_FLAGS
case $sanitize in *address*) asan=1 ;; *) asan= ;; esac
own=$CC
own=${own#ccache }
modes=
for m in seq par; do [ -e "libgasnet_tools-$m.a" ] && modes="$modes $m"; done

flags() { case $1 in seq) echo -DGASNETT_THREAD_SINGLE ;; *) echo "-DGASNETT_THREAD_SAFE -D_REENTRANT" ;; esac; }
strict='-Wall -Wextra -Wshadow -Werror -g'

# build PROGRAM MODE COMPILER...: one binary, $work/PROGRAM-MODE-COMPILER
compile() # OUTPUT PROGRAM MODE COMPILER-AND-LANGUAGE
{
    $4 $strict $sanitize -D_GNU_SOURCE=1 $(flags "$3") $include "$here/$2.c" -x none -o "$1" \
        "libgasnet_tools-$3.a" -lpthread -lm
}

programs='tools_atomic tools_lock tools_env tools_timer tools_process tools_lite'
for m in $modes; do
    for p in $programs; do
        check "$p: C, $m, -O0" compile "$work/$p-$m" $p "$m" "$own -std=gnu11 -x c -O0"
        tap "$p $m" "$work/$p-$m"
    done
    check "tools_misuse: C, $m" compile "$work/tools_misuse-$m" tools_misuse "$m" "$own -std=gnu11 -x c"
done
for compiler in "gcc -O3 -std=c99 -x c" "clang -O2 -std=c11 -Wstrict-prototypes -x c" "g++ -O2 -std=c++11 -x c++" \
                "clang++ -O2 -std=c++20 -x c++"; do
    command -v "${compiler%% *}" >/dev/null 2>&1 || continue
    # objects of one compiler and another one's sanitizer do not mix
    [ -z "$sanitize" ] || [ "${compiler%% *}" = "$own" ] || [ "$compiler" != "${compiler#g}" ] || continue
    for m in $modes; do
        # what differs with the mode; the rest once
        case $m in seq) some='tools_atomic tools_lock' ;; *) some=$programs ;; esac
        for p in $some; do
            check "$p: $m, $compiler" compile "$work/x" $p "$m" "$compiler"
            tap "it runs" "$work/x"
        done
    done
done
set -- $modes
m=${2:-$1}
check "true mutexes in a program of one thread" compile "$work/x" tools_lock "$m" \
    "$own -std=gnu11 -DGASNETT_USE_TRUE_MUTEXES=1 -x c"
tap "they work" "$work/x"

# --- thread modes, objects and libraries that do not belong together ---

# refused WORD NAME COMMAND...
refused()
{
    word=$1 name=$2
    shift 2
    ! "$@" >"$work/out" 2>&1 && grep -q -- "$word" "$work/out"
    result $? "$name" "$work/out"
}
echo '#include "gasnet_tools.h"
int main(void) { return gasnett_nsleep(0); }' >"$work/one.c"
for compiler in gcc clang; do
    command -v $compiler >/dev/null 2>&1 || continue
    one() { word=$1 name=$2; shift 2; refused "$word" "$compiler: $name is refused" $compiler $include "$@" -fsyntax-only "$work/one.c"; }
    one "at most one" "SAFE with SINGLE" -DGASNETT_THREAD_SAFE -DGASNETT_THREAD_SINGLE
    one "at most one" "LITE with SAFE" -DGASNETT_LITE_MODE -DGASNETT_THREAD_SAFE
    one "gasnetex.h before" "GASNET_PAR without gasnetex.h" -DGASNET_PAR
    one "gasnetex.h before" "GASNET_SEQ without gasnetex.h" -DGASNET_SEQ
    one "gasnetex.h before" "GASNET_PARSYNC without gasnetex.h" -DGASNET_PARSYNC
    ex() { word=$1 name=$2; shift 2; refused "$word" "$compiler: $name is refused" $compiler $include "-I$AQ_SRC/include/smp-conduit" \
        -DGASNET_ALLOW_OPTIMIZED_DEBUG -include gasnetex.h "$@" -fsyntax-only "$work/one.c"; }
    ex contradicts "GASNET_PAR with SINGLE" -DGASNET_PAR -DGASNETT_THREAD_SINGLE
    ex contradicts "GASNET_SEQ with SAFE" -DGASNET_SEQ -DGASNETT_THREAD_SAFE
    ex contradicts "GASNET_PARSYNC with SAFE" -DGASNET_PARSYNC -DGASNETT_THREAD_SAFE
    ex "do not include gasnetex" "LITE with gasnetex.h" -DGASNET_PAR -DGASNETT_LITE_MODE
    echo '#include "gasnet_tools.h"
#if !(WANT) || GASNETT_THREAD_SAFE + GASNETT_THREAD_SINGLE + GASNETT_LITE_MODE != 1
#error wrong
#endif' >"$work/two.c"
    selects() { name=$1; shift; check "$compiler: $name" $compiler $include "$@" -fsyntax-only "$work/two.c"; }
    selects "without a choice: SINGLE" '-DWANT=GASNETT_THREAD_SINGLE==1' -U_REENTRANT
    selects "with _REENTRANT: SAFE" '-DWANT=GASNETT_THREAD_SAFE==1' -D_REENTRANT
    selects "with _THREAD_SAFE: SAFE" '-DWANT=GASNETT_THREAD_SAFE==1' -D_THREAD_SAFE
    selects "after pthread.h: SAFE" '-DWANT=GASNETT_THREAD_SAFE==1' -include pthread.h
    selects "an empty definition becomes 1" '-DWANT=GASNETT_THREAD_SAFE==1' -DGASNETT_THREAD_SAFE=
    with() { name=$1; shift; check "$compiler: $name" $compiler $include "-I$AQ_SRC/include/smp-conduit" \
        -DGASNET_ALLOW_OPTIMIZED_DEBUG -include gasnetex.h "$@" -fsyntax-only "$work/two.c"; }
    with "GASNET_PAR is SAFE" -DGASNET_PAR '-DWANT=GASNETT_THREAD_SAFE==1'
    with "GASNET_PAR and a client's own SAFE" -DGASNET_PAR -DGASNETT_THREAD_SAFE '-DWANT=GASNETT_THREAD_SAFE==1'
    with "GASNET_SEQ is SINGLE" -DGASNET_SEQ '-DWANT=GASNETT_THREAD_SINGLE==1'
    with "GASNET_PARSYNC is SINGLE" -DGASNET_PARSYNC '-DWANT=GASNETT_THREAD_SINGLE==1'
done
link() { $own $sanitize $include "$@" -o "$work/x" -lpthread -lm; }
case $modes in
*seq*par*)
    refused compiled_for_PAR "a SAFE program with the seq library does not link; the message says why" \
        link -DGASNETT_THREAD_SAFE "$work/one.c" libgasnet_tools-seq.a
    refused compiled_for_SEQ "a SINGLE program with the par library does not link" \
        link -DGASNETT_THREAD_SINGLE "$work/one.c" libgasnet_tools-par.a
    check "a program with NDEBUG links all the same" link -DNDEBUG -DGASNETT_THREAD_SAFE "$work/one.c" libgasnet_tools-par.a
    check "a LITE program links with the seq library" link -DGASNETT_LITE_MODE "$work/one.c" libgasnet_tools-seq.a
    check "a LITE program links with the par library" link -DGASNETT_LITE_MODE "$work/one.c" libgasnet_tools-par.a ;;
esac
mkdir "$work/other"
flipped=$(case $AQ_DEBUG_NAME in GASNET_DEBUG) echo GASNET_NDEBUG ;; *) echo GASNET_DEBUG ;; esac)
sed "s/$AQ_DEBUG_NAME/$flipped/" include/gasnet_config.h >"$work/other/gasnet_config.h"
word=$(case $flipped in GASNET_DEBUG) echo debug ;; *) echo nodebug ;; esac)
refused "_${word}_2025" "a program for the other debug mode does not link" \
    $own $sanitize "-I$work/other" "-I$AQ_SRC/include" $(flags "$m") "$work/one.c" "libgasnet_tools-$m.a" -o "$work/x" -lpthread -lm
sed "s/\(VERSION_MAJOR\) 2025/\1 2024/" include/gasnet_config.h >"$work/other/gasnet_config.h"
refused "_2024_8_0" "a program for another release does not link" \
    $own $sanitize "-I$work/other" "-I$AQ_SRC/include" $(flags "$m") "$work/one.c" "libgasnet_tools-$m.a" -o "$work/x" -lpthread -lm

# --- identification ---
check "identification strings are in the program" sh -c "tr '\$' '\n' <'$work/tools_process-$m' | grep -aqx 'ToolsTestIdent: kept by the linker ' &&
    tr '\$' '\n' <'$work/tools_process-$m' | grep -aq '^GASNetToolsConfig: RELEASE=2025.8.0,SPEC=1.20,'"
check "and stay when the linker drops what nobody uses" sh -c "$own $sanitize -D_GNU_SOURCE=1 $(flags "$m") $include -O2 -ffunction-sections -fdata-sections \
    '$here/tools_process.c' -Wl,--gc-sections 'libgasnet_tools-$m.a' -o '$work/gc' -lpthread -lm && tr '\$' '\n' <'$work/gc' | grep -aqx 'ToolsTestIdent: kept by the linker '"

# --- environment, from outside ---
env_program=$work/tools_env-$m
env GASNET_VERBOSEENV= "$env_program" show >"$work/num" 2>"$work/err"
cat >"$work/want" <<'END'
ENV parameter: TOOLS_TEXT = some text
ENV parameter: TOOLS_UNSET = *not set*                                 (default)
ENV parameter: TOOLS_EMPTY = *empty*
ENV parameter: TOOLS_DEFAULT = usual                                   (default)
ENV parameter: TOOLS_SIZE = 10KB (10 KB)
ENV parameter: TOOLS_COUNT = 12                                        (default)
ENV parameter: TOOLS_FLAG = YES
ENV parameter: TOOLS_REAL = 0.25                                       (default)
ENV parameter: TOOLS_OWN = mine                                        (default)
ENV parameter: TOOLS_OWN_SIZE = 2 MB
ENV parameter: TOOLS_OWN_INT = -3                                      (default)
ENV parameter: TOOLS_OWN_REAL = 0.5                                    (default)
END
check "GASNET_VERBOSEENV shows each variable once, in the order of reading" diff "$work/want" "$work/err"
check "gasnett_verboseenv says 1" grep -qx 1 "$work/num"
for off in 0 N no; do
    env GASNET_VERBOSEENV=$off "$env_program" show >"$work/num" 2>"$work/err"
    check "GASNET_VERBOSEENV=$off shows nothing" sh -c "! [ -s '$work/err' ] && grep -qx 0 '$work/num'"
done
"$env_program" show >"$work/num" 2>"$work/err"
check "nor does a run without it" sh -c "! [ -s '$work/err' ]"

# says RE... in $work/err; $status of the run
run() { "$@" </dev/null >"$work/stdout" 2>"$work/err"; status=$?; }
says()
{
    name=$1
    shift
    why=
    for re; do grep -Eq -- "$re" "$work/err" || why="$why, does not say $re"; done
    [ -z "$why" ]
    result $? "$name${why:+$why}" "$work/err"
}
for getter in yesno dbl; do
    run "$env_program" bad $getter
    says "a value that is no $getter ends the program and names the variable" \
        '^\*\*\* FATAL ERROR \([^)]+:[0-9]+\): .*TOOLS_TEST.*perhaps'
    check "by abort" [ $status = 134 ]
done

# --- ends ---
process=$work/tools_process-$m
run env GASNET_BACKTRACE_TYPE=EXECINFO "$process" fatal
says "gasnett_fatalerror names the place and advises" \
    '^\*\*\* FATAL ERROR \([^)]+:[0-9]+\): in cases_of_ends\(\) at .*tools_process\.c:[0-9]+: value 12 of something$' \
    '^\*\*\* NOTICE .*GASNET_BACKTRACE=1'
check "and aborts" [ $status = 134 ]
run env GASNET_BACKTRACE=1 GASNET_BACKTRACE_TYPE=EXECINFO "$process" fatal
says "with GASNET_BACKTRACE=1 it shows who called" '^\[[^]]+\] .*cases_of_ends' '^\[[^]]+\] .*main'
run "$process" fatal-nopos
says "gasnett_fatalerror_nopos has no place" '^\*\*\* FATAL ERROR \([^)]+\): only this$'
run "$process" kill
check "gasnett_killmyprocess: the code, and nothing is written" sh -c "[ $status = 7 ] && ! [ -s '$work/stdout' ]"
run "$process" mmap
says "gasnett_mmap without a conduit is fatal" 'FATAL ERROR .*gasnett_mmap'
run "$process" flush
check "gasnett_flush_streams writes stdout out" grep -qx flushed "$work/stdout"
run env GASNET_FS_SYNC=1 "$process" flush
check "also with GASNET_FS_SYNC" grep -qx flushed "$work/stdout"
run "$process" close
check "gasnett_close_streams writes out and closes" sh -c "[ $status = 0 ] && grep -qx flushed '$work/stdout'"

# --- backtraces ---
trace_says() { name=$1; shift; for re; do grep -Eq -- "$re" "$work/stdout" || { result 1 "$name: no $re" "$work/stdout"; return; }; done; result 0 "$name"; }
run "$process" backtrace-early
says "before gasnett_backtrace_init: a warning" '^\*\*\* WARNING .*gasnett_backtrace_init'
check "and -1" [ $status = 0 ]
run env GASNET_BACKTRACE_TYPE=EXECINFO "$process" backtrace
trace_says "EXECINFO names a static function of this program, lines lead with brackets" '^\[[^]]+\] #[0-9]+ .*tools_stack_bottom' '^\[[^]]+\] #[0-9]+ .*main'
if command -v gdb >/dev/null 2>&1 && [ -z "$sanitize" ] && gdb -nx -batch -p $$ -ex quit >/dev/null 2>&1; then
    run env GASNET_BACKTRACE_TYPE=GDB "$process" backtrace
    trace_says "GDB does too" '^\[[^]]+\] .*tools_stack_bottom'
fi
run env GASNET_BACKTRACE_TYPE=PGDBG,LADEBUG,DBX "$process" backtrace
trace_says "ways that there are not here are passed over" '^\[[^]]+\] .*tools_stack_bottom'
run "$process" backtrace-user
trace_says "a client's own way comes first" '^\[[^]]+\] line one of the user' '^\[[^]]+\] line two'
run env GASNET_BACKTRACE_TYPE=EXECINFO "$process" backtrace-user
trace_says "unless the user says otherwise" 'tools_stack_bottom'
run env GASNET_BACKTRACE_TYPE=MINE "$process" backtrace-user
trace_says "it can be asked for by name" 'line one of the user'
run env GASNET_BACKTRACE_TYPE=EXECINFO GASNET_BACKTRACE_SIGNAL=USR1 "$process" backtrace-signal
says "GASNET_BACKTRACE_SIGNAL prints one" '^\[[^]]+\] .*main'
check "and goes on" [ $status = 0 ]
run env GASNET_BACKTRACE_SIGNAL=nonsense "$process" backtrace-signal
says "a signal that is none is named" 'FATAL ERROR .*GASNET_BACKTRACE_SIGNAL=nonsense'

# --- freezing: until SIGCONT ---
frozen() # NAME ENVIRONMENT CASE
{
    : >"$work/err" # what the last one said is not for us
    env $2 "$process" $3 >"$work/stdout" 2>"$work/err" </dev/null &
    pid=$!
    tries=0
    until grep -q frozen "$work/err" || [ $tries = 300 ]; do sleep 0.1; tries=$((tries + 1)); done
    kill -0 $pid 2>/dev/null
    alive=$?
    kill -CONT $pid 2>/dev/null
    tries=0
    while kill -0 $pid 2>/dev/null && [ $tries -lt 100 ]; do sleep 0.1; tries=$((tries + 1)); done
    kill -KILL $pid 2>/dev/null
    wait $pid
    status=$?
    says "$1: tells host, process and variable" "frozen on host $(hostname), process $pid: .*gasnet_frozen"
    check "$1: waits" [ $alive = 0 ]
    check "$1: SIGCONT lets it go on" [ $status = 0 ]
}
frozen "gasnett_freezeForDebuggerNow" A=B freeze
frozen "GASNET_FREEZE" GASNET_FREEZE=1 nothing
frozen "gasnett_freezeForDebuggerErr" GASNET_FREEZE_ON_ERROR=1 freeze-error
run "$process" freeze-error
check "gasnett_freezeForDebuggerErr without GASNET_FREEZE_ON_ERROR does not wait" [ $status = 0 ]

# --- the rate of ticks ---
timer=$work/tools_timer-$m
if [ "$(uname -m)" = x86_64 ] && [ "$("$timer" rate)" != 1000000000 ]; then
    rate=$("$timer" rate)
    run env GASNET_TSC_VERBOSE=1 "$timer" rate
    says "GASNET_TSC_VERBOSE tells the rate" 'GASNET_TSC_RATE=walltime: .* Hz'
    run env GASNET_TSC_RATE=$rate "$timer" rate
    check "a rate that is right is taken" sh -c "[ $status = 0 ] && ! grep FATAL '$work/err' && [ \$(cat '$work/stdout') -gt $((rate / 1000 * 999)) ]"
    run env GASNET_TSC_RATE=$((rate + rate / 200)) "$timer" rate
    says "one that is a little wrong gives a warning" '^\*\*\* WARNING .*GASNET_TSC_RATE_TOLERANCE'
    run env GASNET_TSC_RATE=$((rate + rate / 200)) GASNET_TSC_RATE_TOLERANCE=0.1 "$timer" rate
    check "that a larger tolerance silences" sh -c "[ $status = 0 ] && ! [ -s '$work/err' ]"
    run env GASNET_TSC_RATE=$((rate * 2)) "$timer" rate
    says "one that is quite wrong is fatal" 'FATAL ERROR .*GASNET_TSC_RATE_HARD_TOLERANCE'
    for wrong in fast 12 3GHz 999999999999999; do
        run env GASNET_TSC_RATE=$wrong "$timer" rate
        says "GASNET_TSC_RATE=$wrong is refused" "FATAL ERROR .*GASNET_TSC_RATE=$wrong"
    done
fi

# --- misuse ---
if [ "$AQ_DEBUG_NAME" = GASNET_DEBUG ]; then
    for m in $modes; do
        for case in $("$work/tools_misuse-$m" list); do
            run timeout 10 "$work/tools_misuse-$m" "$case"
            call=$(echo "$case" | sed 's/^\(mutex\|rwlock\|cond\)_\(assert\|[a-z]*lock\|destroy\|wait\).*/gasnett_\1_\2/')
            says "$m: $case ends with a message" "FATAL ERROR .*$call.* at .*tools_misuse\.c:[0-9]+: "
        done
    done
    for case in unreachable assume; do
        run "$process" $case
        says "gasnett_$case is checked" "FATAL ERROR .*tools_process\.c:[0-9]+: gasnett_$case"
    done
else
    run timeout 10 "$work/tools_misuse-seq" cond_wait_unlocked
    case $modes in *seq*) says "waiting in a program of one thread is fatal in every build" 'FATAL ERROR .*gasnett_cond_wait' ;; esac
fi

# --- names ---
for m in $modes; do
    check "global names of libgasnet_tools-$m.a are ours" sh -c "! nm -g --defined-only libgasnet_tools-$m.a |
        awk 'NF == 3 { print \$3 }' | grep -vE '^(__odr_asan.)?(gasnett_|gasnet_|gasneti_|aq_)'"
    check "libgasnet_tools-$m.a needs nothing of a conduit" sh -c "
        nm -g --defined-only libgasnet_tools-$m.a | awk 'NF == 3 { print \$3 }' | sort -u >'$work/defined'
        ! nm -g libgasnet_tools-$m.a | awk '\$1 == \"U\" { print \$2 }' | grep -E '^(gasnet|gex_|aq_)' | sort -u | comm -23 - '$work/defined' | grep ."
    check "libgasnet_tools-$m.a can go into a shared object" $own $sanitize -shared -o "$work/x.so" \
        -Wl,--whole-archive "libgasnet_tools-$m.a" -Wl,--no-whole-archive -lpthread -lm
done
tap_end
