#!/bin/sh
# run.sh - every header compiles alone: installed ones as C and C++, internal ones as C. Prints TAP.
# SPDX-License-Identifier: BSD-3-Clause
#
#   run.sh            in a build folder; AQ_SRC is the source folder
#
# Installed headers: C99, C11, C++11 and C++20, gcc and clang, -Wall -Wextra -Werror, with nothing but the two
# -I and the thread mode that a client gives (no _GNU_SOURCE), then all of them twice in both orders.
# Internal headers: C11 with the library's own flags, in seq too where they look at the mode.

set -u
: "${AQ_SRC:?AQ_SRC is the source folder}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. build-aux/config.env

public="-I$AQ_SRC/include -Iinclude -I$AQ_SRC/include/smp-conduit"
strict="-Wall -Wextra -Wshadow -Werror -fsyntax-only"

# job NAME FILE COMMAND...: remembered for the runner below; FILE is what it compiles.
number=0
job()
{
    number=$((number + 1))
    id=$(printf '%05d' "$number")
    echo "$1" >"$work/$id.name"
    shift
    printf '%s\n' "$*" >"$work/$id.sh"
}

# languages LIST FUNCTION ARG...: calls FUNCTION for each COMPILER:STANDARD of the list that is installed. Most
# headers meet each compiler and each standard once; those that clients name, every pair of them.
pairs="gcc:c99 clang:c11 g++:c++20 clang++:c++11"
all="gcc:c99 gcc:c11 clang:c99 clang:c11 g++:c++11 g++:c++20 clang++:c++11 clang++:c++20"
languages()
{
    list=$1
    shift
    for one in $list; do
        compiler=${one%:*} std=${one#*:}
        command -v $compiler >/dev/null 2>&1 || continue
        case $std in
        c++*) "$@" "$compiler -std=$std -x c++" "$compiler $std" cc ;;
        *) "$@" "$compiler -std=$std -Wstrict-prototypes -x c" "$compiler $std" c ;;
        esac
    done
}

# A compiler says "unused" about static inline functions only in the main file: so headers are included.
alone() # header mode compiler label
{
    source=$work/alone-$2-$(echo "$1" | tr / _).txt
    echo "#include \"$1\"" >"$source"
    case $2 in THREAD_* | LITE_*) set -- "$@" "-DGASNETT_$2=1" ;; NONE) set -- "$@" -DNDEBUG ;; *) set -- "$@" "-DGASNET_$2=1" ;; esac
    job "$1 alone, $4, $2" $3 $strict $public "$6" "$source"
}

# The tools, with a conduit: after gasnetex.h only.
after() # mode compiler label
{
    source=$work/after-$1.txt
    printf '#include "%s"\n' gasnetex.h $tools gasnetex.h $tools >"$source"
    job "the tools after gasnetex.h, $3, $1" $2 $strict $public -DGASNET_$1=1 "$source"
}

together() # mode compiler label
{
    source=$work/together-$1.txt
    {
        for h in $headers $headers; do echo "#include \"$h\""; done
        for h in $headers; do echo "$h"; done | sort -r | sed 's/.*/#include "&"/'
    } >"$source"
    job "all headers, twice and in both orders, $3, $1" $2 $strict $public -DGASNET_$1=1 "$source"
}

headers=$(cd "$AQ_SRC/include" && ls ./*.h gasnet/*.h | sed 's|^\./||'
          cd "$AQ_SRC/include/smp-conduit" && ls ./*.h | sed 's|^\./||'
          echo gasnet_config.h)
# What belongs to the tools wants gasnetex.h before it, or no conduit.
tools="gasnet_tools.h $(cd "$AQ_SRC/include" && ls gasnet/tools_*.h)"
for h in $headers; do
    case " $(echo $tools) " in
    *" $h "*) mode=THREAD_SAFE ;;
    *) mode=PAR ;;
    esac
    case $h in
    gasnet.h | gasnetex.h | gasnet_tools.h | gasnet_coll.h | gasnet_vis.h | gasnet_ratomic.h | gasnet_mk.h | \
        gasnet_fwd.h | aqueduct*.h) languages "$all" alone "$h" $mode ;;
    *) languages "$pairs" alone "$h" $mode ;;
    esac
done
for mode in THREAD_SINGLE LITE_MODE NONE; do languages "$all" alone gasnet_tools.h $mode; done
for mode in SEQ PAR PARSYNC; do languages "$all" after $mode; done
for h in gasnet_portable_platform.h portable_platform.h portable_inttypes.h gasnet_basic.h gasnet_toolhelp.h \
    gasnet_membar.h gasnet_timer.h; do languages "$all" alone $h NONE; done
languages "$all" alone gasnetex.h SEQ
languages "$all" alone gasnetex.h PARSYNC
languages "$all" together PAR

# The headers of each conduit alone, with its own -I.
for folder in "$AQ_SRC"/include/*-conduit; do
    c=${folder##*/}
    c=${c%-conduit}
    [ "$c" != smp ] || continue
    for h in $(cd "$folder" && ls ./*.h | sed 's|^\./||'); do
        echo "#include \"$h\"" >"$work/conduit-$c-$h.txt"
        job "$h of $c alone, C99" gcc -x c -std=c99 $strict "-I$AQ_SRC/include" -Iinclude "-I$folder" -DGASNET_PAR=1 \
            "$work/conduit-$c-$h.txt"
        job "$h of $c alone, C++11" g++ -x c++ -std=c++11 $strict "-I$AQ_SRC/include" -Iinclude "-I$folder" \
            -DGASNET_SEQ=1 "$work/conduit-$c-$h.txt"
    done
done

# A client that gives the conduit's name itself, as some do, and libclang-based binding generators.
echo '#include "gasnetex.h"' >"$work/named.txt"
job "gasnetex.h with the client's own -DGASNET_CONDUIT_SMP" gcc -x c $strict $public \
    -DGASNET_PAR -DGASNET_CONDUIT_SMP -DGASNETI_BUG1389_WORKAROUND=1 "$work/named.txt"

# gasnet_fwd.h asks for no thread mode and makes no name outside GEX_, _GEX_, gex_.
echo '#include "gasnet_fwd.h"' >"$work/fwd.txt"
job "gasnet_fwd.h without a thread mode" gcc -x c -std=c99 $strict "-I$AQ_SRC/include" "$work/fwd.txt"
job "gasnet_fwd.h defines only GEX_ names" "! { gcc -x c -E -dM -I$AQ_SRC/include $work/fwd.txt | cut -d' ' -f2 | sort >$work/fwd.m;
    echo '#include <stdint.h>' | gcc -x c -E -dM - | cut -d' ' -f2 | sort >$work/std.m;
    comm -23 $work/fwd.m $work/std.m | grep -vE '^_?GEX_'; }"

# gasnet_config.h is read as text by the build systems of clients.
one_line() { echo "test \"\$(grep -c '$1' include/gasnet_config.h)\" = 1 && test \"\$(awk '/$1/ { print \$3 }' include/gasnet_config.h)\" = $2"; }
job "gasnet_config.h: one line says the release's major number" "$(one_line GASNET_RELEASE_VERSION_MAJOR 2025)"
job "gasnet_config.h: one line says the release's minor number" "$(one_line GASNET_RELEASE_VERSION_MINOR 8)"
job "gasnet_config.h: one line says the release's patch number" "$(one_line GASNET_RELEASE_VERSION_PATCH 0)"
job "gasnet_config.h: one line says EX_SPEC_VERSION_MAJOR" "$(one_line EX_SPEC_VERSION_MAJOR 0)"
job "gasnet_config.h: one line says EX_SPEC_VERSION_MINOR" "$(one_line EX_SPEC_VERSION_MINOR 19)"

# Internal headers; those of a module by its conduit's own compiler, if the conduit is built.
module_compiler()
{
    name=$(echo "${1%/module/*}" | sed 's/.*\///' | tr '[:lower:]' '[:upper:]')
    make -s echovar VARNAME="${name}_MODULE_CC" 2>/dev/null | sed -n "s/^${name}_MODULE_CC=//p"
}
for h in $(cd "$AQ_SRC" && find base core extended conduits other -name '*.h' | sort); do
    source=$work/internal-$(echo "$h" | tr / _).txt
    echo "#include \"$h\"" >"$source"
    case $h in conduits/*/module/*|other/spawn/*/module/*) compiler=$(module_compiler "$h") ;; *) compiler=gcc ;; esac
    [ -n "$compiler" ] || continue
    modes=PAR
    ! grep -qE 'AQ_THREADED|GASNET_(SEQ|PAR)' "$AQ_SRC/$h" || modes='SEQ PAR'
    for mode in $modes; do
        job "$h alone, C11, $mode" $compiler -x c -std=gnu11 $strict $public "-I$AQ_SRC" -I. -D_GNU_SOURCE=1 \
            -DHAVE_CONFIG_H -DAQ_BUILD_LIBRARY=1 -DGASNET_$mode=1 "$source"
    done
done

ls "$work"/*.sh | xargs -P "$(nproc)" -I{} sh -c 'sh {} >{}.out 2>&1 && touch {}.ok'

echo "1..$number"
n=0
for script in "$work"/*.sh; do
    n=$((n + 1))
    read -r name <"${script%.sh}.name"
    if [ -e "$script.ok" ]; then
        echo "ok $n - $name"
    else
        echo "not ok $n - $name"
        sed 's/^/# /' "$script.out" | head -n 15
    fi
done
test "$(ls "$work" | grep -c '\.ok$')" = "$number"
