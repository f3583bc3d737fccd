# in_place.sh - a build folder, $place, as build systems of clients use it without installing it; read by run.sh, where
# everything is made already, and by configure.sh, where nothing is. SPDX-License-Identifier: BSD-3-Clause
#
# Runs in the folder of the clients. at_once: what is made at the same time, of what is configured, CONDUIT-MODE each;
# at_once_flags: arguments of make.

place_mak() { { cat "$place/$1-conduit/$1-$2.mak"; printf '\nask:\n\t@echo $(%s)\n' "$3"; } | make -s -f - ask; }

# --- what tells clients that a folder is configured ---
check "gasnet_config.h at the top is the one in include" cmp "$place/gasnet_config.h" "$place/include/gasnet_config.h"
check "it is a file, and its text has the versions" sh -c "[ ! -h '$place/gasnet_config.h' ] &&
    grep -qx '#define GASNET_RELEASE_VERSION_MAJOR 2025' '$place/gasnet_config.h' &&
    sed -n 's/.*EX_SPEC_VERSION_MAJOR  *\([0-9]\)/\1/p' '$place/gasnet_config.h' | grep -qx 0 &&
    sed -n 's/.*EX_SPEC_VERSION_MINOR  *\([0-9]\)/\1/p' '$place/gasnet_config.h' | grep -qx 19"

# --- files of a client, filled in by config.status ---
names="PERL CONDUITS EXESUFFIX CC_FAMILY CXX_FAMILY CC_SUBFAMILY CXX_SUBFAMILY GASNET_THREAD_DEFINES GASNET_THREAD_LIBS
    GASNET_CC GASNET_CXX CC CXX CFLAGS CXXFLAGS CPPFLAGS LDFLAGS LIBS AR RANLIB LN_S SHELL EXEEXT OBJEXT prefix exec_prefix
    bindir libdir includedir host host_cpu host_os build PACKAGE_VERSION srcdir top_srcdir abs_top_srcdir abs_top_builddir"
for name in $names; do echo "$name=<@$name@>"; done >client.in

filled()
{
    [ "$(grep -c . "$1")" = "$(echo $names | wc -w)" ] && ! grep -v '=<[^@]*>$' "$1" &&
        for line in 'PERL=</.*perl>' 'CONDUITS=<smp.*>' 'EXESUFFIX=<>' 'CC_FAMILY=<[A-Z][A-Za-z]*>' 'CC_SUBFAMILY=<NONE>' \
            'CXX_FAMILY=<[A-Z][A-Za-z]*>' 'GASNET_THREAD_DEFINES=<-D_REENTRANT>' 'GASNET_THREAD_LIBS=<-lpthread>'; do
            grep -x -- "$line" "$1" || return 1
        done
}
check "config.status --file" sh -c "cd '$place' && ./config.status --file='$PWD/client.file:$PWD/client.in'"
check "fills in what clients ask for" filled client.file
cp -p "$place/libtool" libtool.before
check "CONFIG_FILES=... config.status" sh -c "cd '$place' && CONFIG_FILES='$PWD/client.var:$PWD/client.in' ./config.status &&
    CONFIG_FILES='$PWD/client.both:$PWD/client.in' CONFIG_HEADERS= ./config.status"
check "fills in the same" sh -c "cmp client.file client.var && cmp client.file client.both"
check "and writes nothing else: make may be running" \
    sh -c "[ ! '$place/libtool' -nt libtool.before ] && [ ! '$place/aq_config.h' -nt libtool.before ]"

# --- conduits and modes, at the same time ---
configured=" $(make -s --no-print-directory -C "$place/smp-conduit" echovar VARNAME=aq_conduit_modes | sed 's/.*=//') "
rows=$(for row in $at_once; do case $configured in *" $row "*) echo "$row" ;; esac; done)
case $configured in *' udp-seq '*) rows="$rows amudprun" ;; esac
{
    echo "all: $(echo $rows) smp-seq-again"
    for row in $rows; do
        case $row in
        amudprun) printf '%s:\n\t$(MAKE) -s -C %s/other/amudp amudprun %s\n' "$row" "$place" "$at_once_flags" ;;
        *) printf '%s:\n\t$(MAKE) -s -C %s/%s-conduit %s %s\n' "$row" "$place" "${row%-*}" "${row#*-}" "$at_once_flags" ;;
        esac
    done
    printf 'smp-seq-again:\n\t$(MAKE) -s -C %s/smp-conduit seq %s\n' "$place" "$at_once_flags"
} >at-once.mk
# The objects of modules are in the archives of every mode.
rm -f "$place"/*-conduit/*.mak "$place"/*-conduit/*.a "$place/other/amudp/amudprun"
rm -f "$place"/conduits/*/module/*.module.o
check "make -C smp-conduit smp-seq.mak" \
    sh -c "make -s -C '$place/smp-conduit' smp-seq.mak && grep -q GASNET_LIBS '$place/smp-conduit/smp-seq.mak' && ! ls '$place'/smp-conduit/*.a"
check "make -C of $(echo $rows), and smp-seq again, at once" make -j6 -f at-once.mk
for row in $rows; do
    [ $row != amudprun ] || continue
    cat >in-place.mk <<END
include $place/${row%-*}-conduit/$row.mak
in-place: client.c
	\$(GASNET_CC) \$(GASNET_CPPFLAGS) \$(GASNET_CFLAGS) -c client.c -o $row.o
	\$(GASNET_LD) $row.o -o in-place-$row \$(GASNET_LDFLAGS) \$(GASNET_LIBS)
END
    check "$row: a client of the build folder" make -s -f in-place.mk in-place
    case $row in
    ibv-*) ;; # needs a device
    *) check "it runs: contrib/gasnetrun_${row%-*}" right 2 "$place/${row%-*}-conduit/contrib/gasnetrun_${row%-*}" -n 2 ./in-place-$row ;;
    esac
done
case $rows in
*amudprun*) check "other/amudp/amudprun starts programs" right 2 "$place/other/amudp/amudprun" -np 2 -spawn L ./in-place-udp-seq ;;
esac
check "the pkg-config file there leads to the same" sh -c "
    [ \"\$(PKG_CONFIG_PATH='$place/smp-conduit' pkg-config --variable=GASNET_LIBS smp-seq)\" = '$(place_mak smp seq GASNET_LIBS)' ] &&
    cc \$(PKG_CONFIG_PATH='$place/smp-conduit' pkg-config --cflags smp-seq) client.c -o in-place-pc \
        \$(PKG_CONFIG_PATH='$place/smp-conduit' pkg-config --libs smp-seq)"
check "GASNET_PREFIX is the build folder" [ "$(place_mak smp par GASNET_PREFIX)" = "$place" ]
check "make echovar in a conduit's folder" \
    sh -c "make -s --no-print-directory -C '$place/smp-conduit' echovar VARNAME=prefix | grep -q '^prefix=/'"
