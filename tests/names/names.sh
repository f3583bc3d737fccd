#!/bin/sh
# names.sh - every public name exists and has the right kind, value and type, from C and C++; each
# macro that annotates, declares or stands for a call works in every position; the headers bring
# what clients use without including it; a client that chooses no thread mode, or two, is refused.
# Prints TAP.
# SPDX-License-Identifier: BSD-3-Clause
#
#   names.sh [INCLUDE-FLAGS...]   in a build folder, or with the -I flags of an installed tree;
#                                 AQ_SRC is the source folder

set -u
src=${AQ_SRC:-$(cd "$(dirname "$0")/../.." && pwd)}
here=$src/tests/names
[ $# -gt 0 ] || set -- -I"$src/include" -I"$src/include/smp-conduit" -Iinclude
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
number=0
for flag; do
    case $flag in -I*) find "${flag#-I}/" -name '*.h' ;; esac
done | sort -u >"$work/headers"

# wants VERDICT NAME COMMAND...: remembered for the runner below. VERDICT: compiles; refused:TEXT,
# which the message has; warned:N, so many warnings of the kinds that annotations lead to.
wants()
{
    number=$((number + 1))
    id=$(printf '%04d' $number)
    echo "$1" >"$work/$id.verdict"
    echo "$2" >"$work/$id.name"
    shift 2
    printf '%s\n' "$*" >"$work/$id.sh"
}

cat >"$work/run" <<'END'
#!/bin/sh
job=$1
verdict=$(cat "$job.verdict")
sh "$job.sh" >"$job.out" 2>&1
status=$?
case $verdict in
compiles) [ $status = 0 ] ;;
refused:*) [ $status != 0 ] && grep -q "${verdict#*:}" "$job.out" ;;
warned:*)
    kinds='format|unused-result|unused-value|deprecated-declarations'
    warnings=$(grep -cE "warning: .*\[-W($kinds)" "$job.out")
    echo "$warnings warnings, expected ${verdict#*:}" >>"$job.out"
    [ $status = 0 ] && [ "$warnings" = "${verdict#*:}" ] ;;
esac && : >"$job.ok"
END

# --- names, from data of the specifications' own ---
for header in gasnetex.h gasnet_tools.h; do
    LC_ALL=C awk -v header=$header -f "$here/macros.awk" "$here/macros.list" >"$work/macros_$header"
done
LC_ALL=C awk -v constants=1 -f "$here/macros.awk" "$here/macros.list" >"$work/constants.h"
printf '#include "gasnetex.h"\nint x;\n' >"$work/a.c"
cat >"$work/b.c" <<'END'
#include "gasnetex.h"
#if GASNET_PARSYNC != 1 || defined(GASNET_PAR) || GASNET_RCV_THREAD != 1 || GASNET_SND_THREAD != 1
#error
#endif
END
strict='-Wall -Wextra -Werror -fsyntax-only'

# names LANGUAGE COMPILER STANDARD INCLUDE-FLAGS...: both interfaces in all modes.
names()
{
    suffix=$1 compiler=$2 std=$3
    shift 3
    for mode in SEQ PAR PARSYNC; do
        wants compiles "$compiler $std: public names, their values and types ($mode)" \
            $compiler -std=$std $strict -DGASNET_$mode "$@" "$here/names.$suffix"
        for order in '' -DGASNETEX_FIRST; do
            wants compiles "$compiler $std: GASNet-1 names and their types ($mode $order)" \
                $compiler -std=$std $strict -Wshadow -DGASNET_$mode $order "$@" \
                "$here/gasnet1.$suffix"
        done
    done
}

set -- -I"$src/tests/conformance" -I"$work" "$@"
for cc in gcc clang; do
    command -v $cc >/dev/null 2>&1 || continue
    for std in c11 c17; do names c $cc $std "$@"; done
    wants refused:GASNET_SEQ "$cc: no thread mode" $cc -fsyntax-only "$@" "$work/a.c"
    wants refused:GASNET_SEQ "$cc: two thread modes" $cc -fsyntax-only -DGASNET_SEQ -DGASNET_PAR \
        "$@" "$work/a.c"
    wants compiles "$cc: the mode expands to 1, the others stay undefined" $cc -fsyntax-only \
        -DGASNET_PARSYNC "$@" "$work/b.c"
done
for cxx in g++ clang++; do
    command -v $cxx >/dev/null 2>&1 || continue
    for std in c++11 c++17 c++20; do names cc $cxx $std "$@"; done
done
# The other conduits' headers hold the same names.
for folder in "$src"/include/*-conduit; do
    [ "${folder##*/}" != smp-conduit ] || continue
    for mode in SEQ PAR; do
        wants compiles "gcc: public names with the headers of ${folder##*/} ($mode)" \
            gcc -std=c11 $strict -DGASNET_$mode -I"$folder" "$@" "$here/names.c"
        wants compiles "g++: public names with the headers of ${folder##*/} ($mode)" \
            g++ -std=c++17 $strict -DGASNET_$mode -I"$folder" "$@" "$here/names.cc"
    done
done

# --- macros in their positions ---
wants compiles "every macro with parameters, and each that annotates, has a position" \
    "xargs awk -f '$here/covered.awk' '$here/positions.list' <'$work/headers'"
for language in c:c ++:cc; do
    LC_ALL=C awk -v language=${language%:*} -f "$here/positions.awk" "$here/positions.list" \
        >"$work/positions.${language#*:}"
    LC_ALL=C awk -v language=${language%:*} -v rows=forms -f "$here/positions.awk" \
        "$here/positions.list" >"$work/forms.${language#*:}"
done
set -- -I"$here" "$@"
switches=$(sed -n 's/^number *\(GASNETT_USE_GCC_ATTRIBUTE_\)\*/\1/p' "$here/macros.list" |
    awk '{ for (i = 2; i <= NF; i++) print $1 $i }')
off=$(printf -- '-D%s=0 ' $switches)
# what a client of a debug build sees: some macros are others there
config=$(echo '#include "gasnet_config.h"' | gcc "$@" -M -x c - | tr ' ' '\n' | grep 'gasnet_config\.h$')
mkdir "$work/debug"
sed 's/GASNET_NDEBUG/GASNET_DEBUG/' "$config" >"$work/debug/gasnet_config.h"
# what an annotation that is switched off leaves behind
quiet='-Wno-implicit-fallthrough -Wno-deprecated-declarations'

# positions SUFFIX COMPILER STANDARDS...: the first standard in all ways; -pedantic where the
# headers' own language allows it.
positions()
{
    suffix=$1 file=$work/positions.$1 file_name=positions.$1 compiler=$2 first=$3
    shift 2
    calls=$(sed -n '$s/^[^0-9]*\([0-9]*\) wrong calls.*/\1/p' "$file")
    for std in "$@"; do
        pedantic=-pedantic
        [ $std != c++98 ] || pedantic=
        wants compiles "$compiler $std: macros in their positions" $compiler -std=$std \
            $strict $quiet $pedantic -DGASNET_PAR $flags "$file"
        wants compiles "$compiler $std: messages, for each number of arguments" $compiler \
            -std=$std $strict $pedantic -DGASNET_PAR $flags "$work/forms.$suffix"
    done
    for mode in SEQ PARSYNC; do
        wants compiles "$compiler $first: macros in their positions ($mode)" $compiler -std=$first \
            $strict $quiet -DGASNET_$mode $flags "$file"
    done
    # compilers look at what is not used in the main file only
    echo "#include \"$file_name\"" >"$work/includes-$file_name"
    wants compiles "$compiler $first: macros in their positions, in a header" $compiler \
        -std=$first $strict $quiet -DGASNET_PAR $flags "$work/includes-$file_name"
    wants compiles "$compiler $first: macros in their positions, a debug build" $compiler \
        -std=$first $strict $quiet -DGASNET_PAR -I"$work/debug" $flags "$file"
    wants compiles "$compiler $first: macros in their positions, optimised" $compiler -std=$first \
        -Wall -Wextra -Werror $quiet -O2 -fvisibility=hidden -DNDEBUG -DGASNET_PAR $flags \
        -c "$file" -o "$file-$compiler.o"
    # gcc looks at unused results as it generates code
    warn="$compiler -std=$first -Wall -Wextra -Wno-implicit-fallthrough -DGASNET_PAR $flags"
    warn="$warn -DWRONG -S -o /dev/null"
    wants "warned:$calls" "$compiler: annotations take effect in every position" $warn "$file"
    for mismatch in -DGASNETT_COMPILER_FORCE_MISMATCH -DGASNETT_COMPILER_FORCE_MISMATCH=1; do
        wants "warned:$calls" "$compiler: the same with $mismatch" $warn $mismatch "$file"
    done
    wants warned:0 "$compiler: annotations that are switched off have none" $warn $off -DPLAIN \
        "$file"
}

flags=$*
! command -v gcc >/dev/null 2>&1 || positions c gcc gnu17 c99 c11
! command -v clang >/dev/null 2>&1 || positions c clang gnu17 c99 c11
! command -v g++ >/dev/null 2>&1 || positions cc g++ c++17 c++98 c++11 c++20
! command -v clang++ >/dev/null 2>&1 || positions cc clang++ c++17 c++98 c++11 c++20
for switch in $switches; do
    wants compiles "g++: macros in their positions with $switch 0" g++ $strict $quiet \
        -D$switch=0 -DGASNET_PAR "$@" "$work/positions.cc"
done

# --- what clients use without including it, from either header alone ---
# brought LANGUAGE COMPILER STANDARD
brought()
{
    command -v "$2" >/dev/null 2>&1 || return
    for around in -DNDEBUG -D_GNU_SOURCE '-fvisibility=hidden -Wshadow'; do
        for choice in gasnetex.h:-DGASNET_SEQ gasnetex.h:-DGASNET_PAR \
            gasnetex.h:-DGASNET_PARSYNC gasnet_tools.h:-DGASNETT_THREAD_SINGLE gasnet_tools.h:-DGASNETT_THREAD_SAFE; do
            wants compiles "$2 $3: system headers come with $choice ($around)" $2 -x $1 -std=$3 \
                $strict $around ${choice#*:} $flags "'-DHEADER=\"${choice%:*}\"'" "$here/brought.h"
        done
    done
}
for std in c99 gnu17; do brought c gcc $std; done
brought c clang c99
for std in c++11 c++20; do brought c++ g++ $std; done
brought c++ clang++ c++11

find "$work" -name '*.sh' | xargs -P "$(nproc)" -I{} sh -c 'sh "$1/run" "${2%.sh}"' - "$work" {}

echo "1..$number"
count=0
failed=0
for script in "$work"/*.sh; do
    count=$((count + 1))
    job=${script%.sh}
    if [ -e "$job.ok" ]; then
        echo "ok $count - $(cat "$job.name")"
    else
        echo "not ok $count - $(cat "$job.name")"
        { head -n 12 "$job.out"; tail -n 1 "$job.out"; } | sed 's/^/# /'
        failed=$((failed + 1))
    fi
done
[ $failed -eq 0 ]
