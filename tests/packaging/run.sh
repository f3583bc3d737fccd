#!/bin/sh
# run.sh - clients built against the installed tree, the ways that build systems of clients do it. Prints TAP.
# SPDX-License-Identifier: BSD-3-Clause
#
#   run.sh            in a build folder; AQ_SRC is the source folder
#
# Installs the build twice: staged (DESTDIR), and with another prefix than the configured one; then
# works outside source and build folder with nothing but that tree.

set -u
: "${AQ_SRC:?AQ_SRC is the source folder}"
. build-aux/config.env
here=$AQ_SRC/tests/packaging
build=$PWD
. "$AQ_SRC/build-aux/tap.sh"
. "$here/clients.sh"
tree=$work/tree
present() { for f; do [ -e "$tree/$f" ] || { echo "missing: $f"; return 1; }; done; }
lacks() { ! grep -rlI -- "$1" "$2"; }
pkg() { PKG_CONFIG_PATH="${root:-$tree}/lib/pkgconfig" pkg-config "$@"; }
# A fragment read as FindGASNet and others read it: its text with a rule of their own appended.
mak() { { cat "$tree/include/smp-conduit/$1.mak"; printf '\nask:\n\t@echo $(%s)\n' "$2"; } | make -s -f - ask; }

modes=$(ls libgasnet-smp-*.a | sed 's/libgasnet-smp-\(.*\)\.a/\1/')

# --- the release ---
# From a repository only: what a release lacks is what the repository has beside it.
if git -c safe.directory="*" -C "$AQ_SRC" rev-parse --git-dir >/dev/null 2>&1; then
    distributed()
    {
        make -s distdir distdir="$work/release" &&
            git -c safe.directory="*" -C "$AQ_SRC" ls-files | while read -r f; do
                [ -e "$work/release/$f" ] || [ "$f" = .gitignore ] || echo "the release lacks $f"
            done >"$work/lacking" && ! grep . "$work/lacking"
    }
    check "a release has every file of the repository" distributed
else
    skip "a release has every file of the repository" "these sources are a release"
fi

# --- installing ---
# as distributions do it, the archives in a folder of the architecture
arch=$($CC -dumpmachine)
check "make install DESTDIR=DIR prefix=/usr libdir=/usr/lib/$arch" \
    make -s install DESTDIR="$work/stage" prefix=/usr libdir="/usr/lib/$arch" includedir=/usr/include
check "staged files are below DESTDIR and the prefix only" \
    sh -c "cd '$work/stage' && ! find . -type f ! -path './usr/*' | grep ."
check "staged files do not name DESTDIR" lacks "$work/stage" "$work/stage"
check "make install prefix=DIR" make -s install prefix="$tree"
check "fragments name the new prefix" grep -qx "GASNET_PREFIX = $tree" "$tree/include/smp-conduit/smp-seq.mak"

check "headers are in place" present include/gasnetex.h include/gasnet_fwd.h include/gasnet_config.h \
    include/gasnet/am.h include/gasnet/am_forms.h \
    include/gasnet_ratomic.h include/gasnet/atomic.h include/gasnet/atomic_forms.h \
    include/smp-conduit/gasnet_core.h include/smp-conduit/gasnet_core_fwd.h include/smp-conduit/gasnet_core_help.h \
    include/smp-conduit/gasnet_extended.h include/smp-conduit/gasnet_extended_fwd.h \
    include/smp-conduit/gasnet_extended_help.h include/smp-conduit/gasnet_extended_help_extra.h \
    include/smp-conduit/gasnet_coll_fwd.h include/smp-conduit/gasnet_ratomic_fwd.h include/smp-conduit/gasnet_vis_fwd.h
for m in $modes; do
    check "library, fragment and pkg-config file of $m are in place" present "lib/libgasnet-smp-$m.a" \
        "include/smp-conduit/smp-$m.mak" "lib/pkgconfig/gasnet-smp-$m.pc"
done
for m in $(ls libgasnet_tools-*.a | sed 's/libgasnet_tools-\(.*\)\.a/\1/'); do
    check "tools library, fragment and pkg-config file of $m are in place" present "lib/libgasnet_tools-$m.a" \
        "include/gasnet_tools-$m.mak" "lib/pkgconfig/gasnet_tools-$m.pc"
done
check "headers of the tools are in place, private ones too" present include/gasnet_tools.h include/gasnet/tools_mode.h \
    include/gasnet_portable_platform.h include/portable_platform.h include/portable_inttypes.h include/gasnet_basic.h \
    include/gasnet_help.h include/gasnet_toolhelp.h include/gasnet_asm.h include/gasnet_atomicops.h \
    include/gasnet_atomic_bits.h include/gasnet_atomic_fwd.h include/gasnet_arch_arm.h include/gasnet_membar.h \
    include/gasnet_timer.h include/gasnet_trace.h include/gasnet_ammacros.h
check "shared libraries are in place" present lib/libaqueduct-seq.so lib/libaqueduct-par.so \
    lib/pkgconfig/aqueduct-seq.pc lib/pkgconfig/aqueduct-par.pc
check "programs are in place" present bin/gasnetrun bin/gasnetrun_smp bin/aq-info bin/aq-bench bin/tour
check "launchers' Perl names are in place" present bin/gasnetrun_smp.pl bin/ident
check "documents are in place" present share/doc/GASNet/README share/doc/GASNet/README-smp share/doc/GASNet/README-tools \
    share/doc/GASNet/GASNet-EX.txt share/doc/GASNet/LICENSE share/doc/GASNet/version.git lib/valgrind/gasnet.supp
check "links of the installed documents lead somewhere" sh -c "cd '$tree/share/doc/GASNet' && test -e docs/design/udp.md &&
    find . -name 'README*' -o -name '*.md' | while read -r f; do
        sed -e '/^\`\`\`/,/^\`\`\`/d' -e '/^    /d' \$f | grep -oE '\]\([^() ]+\)' | sed 's/^](//; s/)\$//; s/#.*//' |
            grep -v : | while read -r to; do
            test -e \"\$(dirname \$f)/\$to\" || echo \$f: \$to
        done
    done | { ! grep .; }"
check "the documents tell the interface's level" sh -c "grep -m1 'GEX_SPEC_VERSION_MAJOR' $tree/share/doc/GASNet/GASNet-EX.txt | grep -q ' 0\$' &&
    grep -m1 'GEX_SPEC_VERSION_MINOR' $tree/share/doc/GASNet/GASNet-EX.txt | grep -q ' 19\$'"
check "a source folder looks like one" sh -c "cd $AQ_SRC && ls configure gasnetex.h gasnet.h gasnet_config.h.in version.git \
    other/valgrind/gasnet.supp other/contrib/cross-configure-* docs/GASNet-EX.* Bootstrap"
check "no other name matches include/*-conduit/*.mak" \
    sh -c "! ls $tree/include/*-conduit/*.mak | sed 's|.*/||' | grep -vE '^[a-z]+-(seq|par|parsync)\.mak\$'"
check "no file is left out of the source's headers" \
    sh -c "cd $AQ_SRC/include && find . -name '*.h' | while read -r h; do cmp \$h $tree/include/\$h || exit 1; done"

# --- clients, outside ---
clients_folder

for m in $modes; do
    check "$m client through pkg-config" \
        sh -c "$(pkg gasnet-smp-$m --variable=GASNET_CC) $(pkg gasnet-smp-$m --cflags) client.c -o pc-$m $(pkg gasnet-smp-$m --libs)"
    check "it runs: GASNET_PSHM_NODES=2" right 2 env GASNET_PSHM_NODES=2 "./pc-$m"
    check "$m client through the make fragment" \
        sh -c "$(mak smp-$m GASNET_CC) $(mak smp-$m GASNET_CPPFLAGS) $(mak smp-$m GASNET_CFLAGS) -c client.c -o mak-$m.o &&
               $(mak smp-$m GASNET_LD) $(mak smp-$m GASNET_LDFLAGS) mak-$m.o -o mak-$m $(mak smp-$m GASNET_LIBS)"
    check "it runs: gasnetrun -n 2" right 2 "$tree/bin/gasnetrun" -n 2 "./mak-$m"
    check "$m: the configuration is in the program" \
        sh -c "tr '\$' '\n' <mak-$m | grep -aqx 'GASNetConduitName: SMP ' && tr '\$' '\n' <mak-$m | grep -aq '^GASNetConfig: '"
done
for m in par parsync; do
    case $modes in *parsync*) ;; *) continue ;; esac
    case $m in par) other=parsync ;; *) other=par ;; esac
    check "$m: the mode is in the program" \
        sh -c "$tree/bin/ident ./mak-$m | grep -qi 'GASNetThreadModel: GASNET_$m *\\$'"
    check "$m: a client does not link with the library of $other" \
        sh -c "! $(mak smp-$m GASNET_LD) mak-$m.o -o mixed $(mak smp-$other GASNET_LIBS) 2>mixed.err &&
               grep -qi 'undefined reference.*aq_start_client_compiled_for_${m}_' mixed.err"
done
check "it runs: gasnetrun_smp -n 3" right 3 "$tree/bin/gasnetrun_smp" -n 3 ./mak-seq
check "it runs: gasnetrun_smp.pl -n 3" right 3 "$tree/bin/gasnetrun_smp.pl" -n 3 ./mak-seq
check "ident shows the configuration" sh -c "$tree/bin/ident ./mak-seq | grep -qF 'GASNetConduitName: SMP ' &&
    $tree/bin/ident ./mak-seq | grep -q 'GASNetThreadModel: GASNET_SEQ'"

# --- archives in a folder of the architecture ---
multi=$work/stage/usr
multi_pkg() { PKG_CONFIG_PATH="$multi/lib/$arch/pkgconfig" pkg-config "$@"; }
multi_mak() { { cat "$multi/include/smp-conduit/smp-seq.mak"; printf '\nask:\n\t@echo $(%s)\n' "$1"; } | make -s -f - ask GASNET_PREFIX="$multi"; }
# Clients take the first word of GASNET_LIBS, less /lib, for the prefix.
leads_to_prefix()
{
    first=${1%% *}
    found=${first#-L}
    echo "$1"
    [ "$first" != "$found" ] && [ -f "${found%/lib}/include/gasnetex.h" ] && [ "${found%/lib}" != "$found" ]
}
check "lib/$arch: the first -L of GASNET_LIBS leads to the headers" \
    leads_to_prefix "$(multi_pkg gasnet-smp-seq --variable=GASNET_LIBS)"
check "lib/$arch: in the make fragment too" leads_to_prefix "$(multi_mak GASNET_LIBS)"
check "lib/$arch: client through pkg-config, the tree moved" \
    sh -c "$CC $(multi_pkg gasnet-smp-par --cflags) client.c -o multi-pc $(multi_pkg gasnet-smp-par --libs)"
check "it runs" right 2 "$multi/bin/gasnetrun" -n 2 ./multi-pc
check "lib/$arch: client through the make fragment, the tree moved" \
    sh -c "$CC $(multi_mak GASNET_CPPFLAGS) $(multi_mak GASNET_CFLAGS) client.c -o multi-mak $(multi_mak GASNET_LIBS)"
check "lib/$arch: client through the flags in GASNET_ variables" \
    sh -c "$CC $(multi_pkg gasnet-smp-par --variable=GASNET_CPPFLAGS) $(multi_pkg gasnet-smp-par --variable=GASNET_CFLAGS) client.c -o multi-var \
        $(multi_pkg gasnet-smp-par --variable=GASNET_LDFLAGS) $(multi_pkg gasnet-smp-par --variable=GASNET_LIBS)"
check "lib/$arch: the same without moving says /usr" \
    [ "$(sed -n 's/^GASNET_PREFIX = //p' "$multi/include/smp-conduit/smp-seq.mak")" = /usr ]
check "lib/$arch: client of the shared library" sh -c "$CC $(multi_pkg aqueduct-par --cflags) client.c -o multi-so $(multi_pkg aqueduct-par --libs)"
check "it runs" right 2 env LD_LIBRARY_PATH="$multi/lib/$arch" "$multi/bin/gasnetrun" -c smp -n 2 ./multi-so

# --- a build folder used in place ---
place=$build
at_once='smp-seq smp-par smp-parsync udp-seq udp-par mpi-seq mpi-par ibv-seq' at_once_flags=
. "$here/in_place.sh"
[ -z "$CXX" ] || . "$here/single.sh"

# --- what the files for clients say ---
check "variables in the pkg-config file and in the fragment agree" sh -c "
    for v in GASNET_CC GASNET_CXX GASNET_LD GASNET_OPT_CFLAGS GASNET_MISC_CFLAGS GASNET_MISC_CPPFLAGS GASNET_DEFINES; do
        a=\$(PKG_CONFIG_PATH=$tree/lib/pkgconfig pkg-config gasnet-smp-par --variable=\$v)
        b=\$({ cat $tree/include/smp-conduit/smp-par.mak; printf '\\nask:\\n\\t@echo \$('\$v')\\n'; } | make -s -f - ask)
        [ \"\$(echo \$a)\" = \"\$(echo \$b)\" ] || { echo \"\$v: \$a / \$b\"; exit 1; }
    done"
check "public flags are -I, -D, -O and -g only" \
    sh -c "! echo '$(pkg gasnet-smp-par --cflags) $(mak smp-par GASNET_CPPFLAGS) $(mak smp-par GASNET_CFLAGS)' | tr ' ' '\n' | grep -vE '^(-[IDO].*|-g[0-9]?|)\$'"
check "public libraries are -L and -l only, the -L first" \
    sh -c "! echo '$(mak smp-par GASNET_LIBS)' | tr ' ' '\n' | grep -vE '^-[Ll]' && [ '$(mak smp-par GASNET_LIBS | cut -d' ' -f1)' = '-L$tree/lib' ]"
check "the version is the interface's release" [ "$(pkg gasnet-smp-seq --modversion)" = 2025.8.0 ]
if [ -n "$CXX" ]; then
    for std in c++11 c++20; do
        check "$std client through pkg-config, no warnings" sh -c "$(pkg gasnet-smp-par --variable=GASNET_CXX) -std=$std -Wall -Wextra -Werror \
            $(pkg gasnet-smp-par --variable=GASNET_CXXCPPFLAGS) $(pkg gasnet-smp-par --variable=GASNET_CXXFLAGS) client.cc -o $std $(pkg gasnet-smp-par --libs)"
        check "it runs" right 2 env GASNET_PSHM_NODES=2 ./$std
    done
fi

# --- programs of the tools alone ---
tmak() { { cat "$tree/include/gasnet_tools-$1.mak"; printf '\nask:\n\t@echo $(%s)\n' "$2"; } | make -s -f - ask; }
for m in $(ls "$build"/libgasnet_tools-*.a | sed 's/.*libgasnet_tools-\(.*\)\.a/\1/'); do
    check "$m program of the tools through pkg-config" sh -c "$(pkg gasnet_tools-$m --variable=GASNETTOOLS_CC) $AQ_SANITIZE_FLAGS \
        $(pkg gasnet_tools-$m --cflags) $AQ_SRC/tests/tools/tools_process.c -o tools-pc-$m $(pkg gasnet_tools-$m --libs)"
    check "it runs" ./tools-pc-$m
    check "$m program of the tools through the make fragment" sh -c "$(tmak $m GASNETTOOLS_CC) $(tmak $m GASNETTOOLS_CPPFLAGS) \
        $(tmak $m GASNETTOOLS_CFLAGS) -c $AQ_SRC/tests/tools/tools_atomic.c -o tools-mak.o &&
        $(tmak $m GASNETTOOLS_LD) $AQ_SANITIZE_FLAGS $(tmak $m GASNETTOOLS_LDFLAGS) tools-mak.o -o tools-mak-$m $(tmak $m GASNETTOOLS_LIBS)"
    check "it runs" ./tools-mak-$m
    check "$m: what the fragment and the pkg-config file of the tools say agrees" sh -c "
        for v in CC CXX LD CFLAGS CXXFLAGS CPPFLAGS INCLUDES TOOLLIB_NAME DEBUGFLAGS THREADFLAGS THREADLIBS LIBS; do
            a=\$(PKG_CONFIG_PATH=$tree/lib/pkgconfig pkg-config gasnet_tools-$m --variable=GASNETTOOLS_\$v |
                sed 's|$tree/lib/pkgconfig/[.][.]/[.][.]|$tree|g')
            b=\$({ cat $tree/include/gasnet_tools-$m.mak; printf '\\nask:\\n\\t@echo \$(GASNETTOOLS_'\$v')\\n'; } | make -s -f - ask)
            [ \"\$(echo \$a)\" = \"\$(echo \$b)\" ] || { echo \"\$v: \$a / \$b\"; exit 1; }
        done"
    if [ -n "$CXX" ]; then
        check "$m: C++ program of the tools, no warnings" sh -c "$(tmak $m GASNETTOOLS_CXX) $AQ_SANITIZE_FLAGS -std=c++17 -Wall -Wextra -Werror \
            $(tmak $m GASNETTOOLS_CPPFLAGS) $(tmak $m GASNETTOOLS_CXXFLAGS) -x c++ $AQ_SRC/tests/tools/tools_lock.c -x none -o tools-cxx \
            $(tmak $m GASNETTOOLS_LIBS)"
        check "it runs" ./tools-cxx
    fi
    check "global names of libgasnet_tools-$m.a are ours" \
        sh -c "! nm -g --defined-only $tree/lib/libgasnet_tools-$m.a | awk 'NF == 3 { print \$3 }' | grep -vE '^(gasnett_|gasnet_|gasneti_|aq_)'"
done
check "tools in a conduit's program: par client with gasnet_tools.h and the seq library do not link" \
    refused compiled_for_PAR sh -c "printf '#include \"gasnetex.h\"\n#include \"gasnet_tools.h\"\nint main(void) { return gasnett_nsleep(0); }\n' >mixed.c &&
        $CC $AQ_SANITIZE_FLAGS -D_GNU_SOURCE -DGASNET_PAR -I$tree/include -I$tree/include/smp-conduit mixed.c -o mixed -L$tree/lib -lgasnet-smp-seq -lpthread -lm"
if command -v mpicc.openmpi >/dev/null 2>&1; then
    check "mpi.h, which has platform macros of its own, before and after the tools" sh -c "
        printf '#include <mpi.h>\n#include \"gasnet_tools.h\"\n#if !PLATFORM_COMPILER_VERSION || _PORTABLE_PLATFORM_H < 24\n#error wrong\n#endif\n' >mpi1.c &&
        printf '#include \"gasnet_tools.h\"\n#include <mpi.h>\n#if !PLATFORM_COMPILER_VERSION || _PORTABLE_PLATFORM_H < 24\n#error wrong\n#endif\n' >mpi2.c &&
        mpicc.openmpi -Wall -Wextra -Werror -fsyntax-only -DGASNETT_THREAD_SAFE -I$tree/include mpi1.c mpi2.c"
fi

# --- shared library ---
for m in seq par; do
    check "$m client of the shared library" sh -c "$CC $(pkg aqueduct-$m --cflags) client.c -o so-$m $(pkg aqueduct-$m --libs)"
    check "it runs, the conduit chosen at start" \
        right 2 env LD_LIBRARY_PATH="$tree/lib" GASNET_CONDUIT=smp "$tree/bin/gasnetrun" -n 2 "./so-$m"
    check "a conduit that there is not is refused with a message" \
        refused nosuch env LD_LIBRARY_PATH="$tree/lib" GASNET_CONDUIT=nosuch GASNET_PSHM_NODES=2 "./so-$m"
done
check "a static client does not need the shared library" sh -c "! ldd ./pc-par | grep aqueduct"
check "the archive can go into a shared object" sh -c "$CC -shared -fPIC -Dmain=client_main $(pkg gasnet-smp-par --cflags) client.c -o plugin.so \
    $(pkg gasnet-smp-par --libs) && $CC plugin_main.c -o plugin_main -ldl"
check "it runs, loaded by dlopen" right 2 "$tree/bin/gasnetrun" -n 2 ./plugin_main ./plugin.so
for m in seq par; do
    check "a shared object may need libaqueduct-$m.so" sh -c "$CC -shared -fPIC -Dmain=client_main $(pkg aqueduct-$m --cflags) client.c \
        -o plugin-$m.so $(pkg aqueduct-$m --libs)"
    check "it runs, loaded by dlopen" \
        right 2 env LD_LIBRARY_PATH="$tree/lib" GASNET_CONDUIT=smp "$tree/bin/gasnetrun" -n 2 ./plugin_main "./plugin-$m.so"
done

# --- names ---
ours='(gasnet_|gasneti_|gasnett_|gasnete_|gasnetc_|gex_|firehose_|fh|aq_|aqueduct_|_start_aq_|_stop_aq_)'
for m in $modes; do
    check "global names of libgasnet-smp-$m.a are ours" \
        sh -c "! nm -g --defined-only $tree/lib/libgasnet-smp-$m.a | awk 'NF == 3 { print \$3 }' | grep -vE '^_?$ours'"
done
for m in seq par; do
    check "global names of libaqueduct-$m.so are ours" \
        sh -c "! nm -D --defined-only $tree/lib/libaqueduct-$m.so | awk '{ print \$3 }' | grep -vE '^_?$ours'"
done

# --- the udp conduit ---
if [ -e "$build/libgasnet-udp-seq.a" ]; then
    . "$here/udp.sh"
fi

# --- the mpi conduit ---
if [ -e "$build/libgasnet-mpi-seq.a" ]; then
    . "$here/mpi.sh"
fi

# --- headers and library that do not belong together ---
other() # NAME SED-SCRIPT: a copy of the headers configured otherwise
{
    mkdir -p "$work/$1"
    cp -R "$tree/include" "$work/$1"
    sed -i "$2" "$work/$1/include/gasnet_config.h"
    echo "-I$work/$1/include -I$work/$1/include/smp-conduit"
}
mismatch() # WORD HEADERS MODE LIBRARY
{
    refused "$1" sh -c "$CC -D_GNU_SOURCE -DGASNET_$3 $2 client.c -o mismatch -L$tree/lib -lgasnet-smp-$4 -lpthread -lm"
}
own="-I$tree/include -I$tree/include/smp-conduit"
client_with() { $CC $AQ_SANITIZE_FLAGS -D_GNU_SOURCE $own "$@" -L"$tree/lib" -lgasnet-smp-"$m" -lpthread -lm; }
m=par
# shellcheck disable=SC2086
check "a client with macros that are words of the configuration links" client_with -DGASNET_PAR -DPAR=1 -DSEQ=2 -DPARSYNC=3 \
    -DLITE=4 -DFAST=5 -DLARGE=6 -DEVERYTHING=7 -Ddebug=8 -Dnodebug=9 -include gasnetex.h -include gasnet_tools.h client.c -o words
check "and is known by its configuration" sh -c "$tree/bin/ident ./words | grep -qE 'GASNetConfig:.*,SEGMENT=(FAST|LARGE|EVERYTHING),'"
case $modes in *parsync*) m=parsync ;; esac
cat >locks.c <<'END'
#include "gasnetex.h"
#include "gasnet_tools.h"
static gasnett_mutex_t lock = GASNETT_MUTEX_INITIALIZER;
GASNETT_THREADKEY_DEFINE(key);

static void *other(void *arg)
{
    return gasnett_mutex_trylock(&lock) == EBUSY && gasnett_threadkey_get(key) == NULL ? arg : NULL;
}

int main(void)
{
    pthread_t thread;
    void *result;

    gasnett_threadkey_set(key, &lock);
    gasnett_mutex_lock(&lock);
    pthread_create(&thread, NULL, other, &lock);
    pthread_join(thread, &result);
    gasnett_mutex_unlock(&lock);
    return result == NULL;
}
END
# shellcheck disable=SC2086
check "a parsync client's locks and thread keys are real" sh -c "$CC $AQ_SANITIZE_FLAGS -D_GNU_SOURCE -DGASNET_PARSYNC $own -include errno.h locks.c -o locks -L$tree/lib -lgasnet-smp-$m -lpthread -lm && ./locks"
flipped=$(case $AQ_DEBUG_NAME in GASNET_DEBUG) echo GASNET_NDEBUG ;; *) echo GASNET_DEBUG ;; esac)
check "par client with the seq library does not link; the message names the mode" mismatch compiled_for_PAR_ "$own" PAR seq
check "seq client with the par library does not link; the message names the mode" mismatch compiled_for_SEQ_ "$own" SEQ par
if [ "$AQ_DEBUG_NAME" = GASNET_NDEBUG ]; then
    check "a client that defines NDEBUG links all the same" \
        sh -c "$CC $AQ_SANITIZE_FLAGS -DNDEBUG $(pkg gasnet-smp-par --cflags) client.c -o ndebug $(pkg gasnet-smp-par --libs)"
fi
check "client for the other debug mode does not link; the message names it" \
    mismatch "_$(case $flipped in GASNET_DEBUG) echo debug ;; *) echo nodebug ;; esac)_2025" "$(other debug "s/$AQ_DEBUG_NAME/$flipped/")" PAR par
check "client for another segment mode does not link; the message names it" \
    mismatch _LARGE_ "$(other segment 's/GASNET_SEGMENT_[A-Z]*/GASNET_SEGMENT_LARGE/')" PAR par
check "client for another release does not link; the message names it" \
    mismatch _2024_8_0 "$(other release 's/\(VERSION_MAJOR\) 2025/\1 2024/')" PAR par

# --- moving the tree ---
mv "$tree" "$work/moved"
root=$work/moved
check "moved: pkg-config files follow" \
    sh -c "$CC $(pkg gasnet-smp-seq --cflags) client.c -o moved $(pkg gasnet-smp-seq --libs)"
check "moved: it runs" right 2 "$root/bin/gasnetrun" -n 2 ./moved
ln -s "$root" "$tree"
moved() { { cat "$root/include/smp-conduit/smp-seq.mak"; printf '\nask:\n\t@echo $(%s)\n' "$1"; } | make -s -f - ask GASNET_PREFIX="$root"; }
check "moved: the fragment follows GASNET_PREFIX" [ "$(moved GASNET_INCLUDES)" = "-I$root/include -I$root/include/smp-conduit" ]

cd "$build" || exit 1
rm "$tree"
mv "$root" "$tree"
check "make uninstall prefix=DIR" make -s uninstall prefix="$tree"
check "uninstall leaves no file" sh -c "! find '$tree' ! -type d | grep ."
tap_end
