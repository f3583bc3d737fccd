#!/bin/sh
# make-client-file.sh VALUES PREFIX INCLUDEDIR LIBDIR TEMPLATE CONDUIT MODE [HEADERS] - prints a file for clients.
# SPDX-License-Identifier: BSD-3-Clause
#
# Fills the @NAMES@ of a make fragment or pkg-config template. Run at installation, because only then is the
# prefix known ("make install prefix=DIR" must give files that name DIR). Folders below the prefix are
# written relative to it; VALUES (build-aux/client.values) holds what configure found. HEADERS is given for a build
# folder: it is the source's include folder, and INCLUDEDIR has only the headers that configure and make write.

set -eu
values=$1 prefix=$2 includedir=$3 libdir=$4 template=$5 conduit=$6 mode=$7 headers=${8:-}

# below DIR: DIR with a leading PREFIX replaced by the word @PREFIX@, which the template explains.
below() {
    case $1 in
    "$prefix"/*) echo "@PREFIX@/${1#"$prefix"/}" ;;
    *) echo "$1" ;;
    esac
}

# up DIR: ../.. from DIR to the prefix, or nothing if DIR is elsewhere.
up() {
    case $1 in
    "$prefix"/*) echo "${1#"$prefix"/}" | sed 's|//*|/|g; s|[^/][^/]*|..|g' ;;
    esac
}

value() { sed -n "s/^$1=//p" "$values"; }

upper=$(echo "$mode" | tr '[:lower:]' '[:upper:]')
case $mode in
seq) threads= threadlibs= ;;
*) threads=' -D_REENTRANT' threadlibs=' -lpthread' ;;
esac
syslibs=$(value SYSTEM_LIBS)
# of the row "NAME:libs;NAME:libs;", the one of this conduit
ownlibs=$(value CONDUIT_LIBS | tr ';' '\n' | sed -n "s/^$conduit://p")
ld=$(value CONDUIT_LD | tr ';' '\n' | sed -n "s/^$conduit://p")
case " $syslibs " in *" -lpthread "*) threadlibs= ;; esac
case " $syslibs " in *" -lm "*) m= ;; *) m=' -lm' ;; esac
# Programs that start themselves, or are started by MPI, have no spawners to choose from.
case " $(value CONDUIT_NO_SPAWNERS) " in *" $conduit "*) drop='/^GASNET_SPAWNER_/d' ;; *) drop= ;; esac
# Only where a wrapper adds the MPI libraries.
[ -n "$ld" ] && mpi= || mpi='/^GASNET_LD_REQUIRES_MPI/d'
# Programs that use the tools alone say what they are by other words.
case $mode in
seq) toolsmode=-DGASNETT_THREAD_SINGLE toolsthreads= ;;
*) toolsmode="-DGASNETT_THREAD_SAFE$threads" toolsthreads=-lpthread ;;
esac
case $(value DEBUG_NAME) in GASNET_DEBUG) toolsdebug= ;; *) toolsdebug=-DNDEBUG ;; esac
libdirs="-L$(below "$libdir")"
if [ -n "$headers" ]; then
    ups=
    includes="-I$(below "$includedir") -I$headers -I$headers/$conduit-conduit"
else
    ups=$(up "$libdir/pkgconfig")
    includes="-I$(below "$includedir") -I$(below "$includedir")/$conduit-conduit"
    # Clients take the first -L, less /lib, for the prefix, also where archives are in a folder of the architecture.
    case $libdir in
    "$prefix"/lib) ;;
    "$prefix"/*) libdirs="-L@PREFIX@/lib $libdirs" ;;
    esac
fi

sed -e '/^# SPDX/!s|@CONDUIT@|'"$conduit"'|g' \
    -e "s|@CONDUITNAME@|$(echo "$conduit" | tr '[:lower:]' '[:upper:]')|g" \
    -e "s|@MODE@|$mode|g" -e "s|@UPPERMODE@|$upper|g" \
    -e "s|@PCPREFIX@|${ups:+\${pcfiledir\}/$ups}|g" \
    -e "s|@ABSPREFIX@|$prefix|g" \
    -e "s|@INCLUDES@|$includes|g" \
    -e "s|@INCLUDEDIR@|$(below "$includedir")|g" \
    -e "s|@LIBDIRS@|$libdirs|g" \
    -e "s|@LIBDIR@|$(below "$libdir")|g" \
    -e "s|@THREADS@|$threads|g" \
    -e "s|@TOOLSMODE@|$toolsmode|g" -e "s|@TOOLSTHREADLIBS@|$toolsthreads|g" -e "s|@TOOLSDEBUG@|$toolsdebug|g" \
    -e "s|@LIBS@|${ownlibs:+ $ownlibs}$threadlibs$m${syslibs:+ $syslibs}|g" \
    -e "s|@RELEASE@|$(value RELEASE)|g" \
    -e "s|@GASNET_CC@|$(value GASNET_CC)|g" \
    -e "s|@GASNET_CXX@|$(value GASNET_CXX)|g" \
    -e "s|@GASNET_LD@|${ld:-$(value GASNET_CC)}|g" -e "$mpi" \
    -e "$drop" -e "s|@OPT@|$(value GASNET_OPT)|g" \
    "$template" |
    case $template in
    *.mak.in) sed 's|@PREFIX@|$(GASNET_PREFIX)|g' ;;
    *) sed "s|@PREFIX@|\${GASNET_PREFIX}|g; s|^prefix=\$|prefix=$prefix|" ;;
    esac
