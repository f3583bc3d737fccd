# single.sh - a client that is configured with --enable-single=opt --with-gasnet=TREE and makes one runtime out of a build
# folder, $place, as it is; read by run.sh. SPDX-License-Identifier: BSD-3-Clause
#
# Runs in a folder of its own. The client decides by what it finds there, in this order: what kind of folder it is, which
# release and interface, checked or optimised code, then the conduits; it configures nothing and installs nothing.

mkdir "$work/single" && cd "$work/single" || exit 1
cp "$AQ_SRC/tests/clients/upcxx_like.cc" "$AQ_SRC/tests/clients/upcxx_lite.c" .

# kind TREE: build, source or install
kind()
{
    if [ -f "$1/gasnet_config.h" ] && [ -x "$1/config.status" ] && [ -f "$1/Makefile" ]; then
        echo build
    elif [ -x "$1/configure" ] && [ -f "$1/gasnetex.h" ]; then
        echo source
    elif [ -f "$1/include/gasnet.h" ]; then
        echo install
    fi
}

# number NAME FILE: of the first line that has both
number() { sed -n "s/.*$1[^0-9]*\([0-9][0-9]*\).*/\1/p" "$2" | head -n 1; }

# single_configure MODE TREE: what --enable-single=MODE --with-gasnet=TREE does
single_configure()
{
    [ "$(kind "$2")" = build ] || { echo "$2 is no build folder"; return 1; }
    [ "$(number RELEASE_VERSION_MAJOR "$2/gasnet_config.h")" -ge 2020 ] || { echo "$2 is too old"; return 1; }
    [ "$(number EX_SPEC_VERSION_MINOR "$2/gasnet_config.h")" -ge 10 ] || { echo "its interface is too old"; return 1; }
    case $1 in
    opt) grep -q '^# *define  *GASNET_NDEBUG  *1' "$2/gasnet_config.h" ;;
    debug) grep -q '^# *define  *GASNET_DEBUG  *1' "$2/gasnet_config.h" ;;
    esac || { echo "$2 is not configured for $1"; return 1; }
    for name in CONDUITS CC_FAMILY CXX_FAMILY GASNET_THREAD_DEFINES GASNET_THREAD_LIBS top_srcdir; do
        echo "$name='@$name@'"
    done >vars.in
    mine=$PWD
    (cd "$2" && CONFIG_FILES="$mine/vars:$mine/vars.in" ./config.status) && . ./vars
}

# single_linker CONDUIT: the C++ compiler, or what the conduit insists on
single_linker() { case $1 in mpi) echo '$(GASNET_LD)' ;; *) echo '$(GASNET_CXX)' ;; esac; }

# single_make CONDUIT MODE: the runtime and a program
single_make()
{
    make -s -C "$place/$1-conduit" "$1-$2.mak" && make -s -C "$place/$1-conduit" "$2" || return 1
    cat >single.mk <<END
include $place/$1-conduit/$1-$2.mak
runtime.o: upcxx_lite.c
	\$(GASNET_CC) $AQ_SANITIZE_FLAGS $GASNET_THREAD_DEFINES \$(GASNET_CPPFLAGS) \$(GASNET_CFLAGS) -c upcxx_lite.c -o \$@
program.o: upcxx_like.cc
	\$(GASNET_CXX) $AQ_SANITIZE_FLAGS -std=c++17 \$(GASNET_CXXCPPFLAGS) \$(GASNET_CXXFLAGS) -c upcxx_like.cc -o \$@
$1-$2: runtime.o program.o
	$(single_linker $1) $AQ_SANITIZE_FLAGS program.o runtime.o -o \$@ \$(GASNET_LDFLAGS) \$(GASNET_LIBS) $GASNET_THREAD_LIBS -lstdc++
END
    rm -f runtime.o program.o
    make -s -f single.mk "$1-$2"
}

# single_run CONDUIT PROGRAM: as the client's launcher does it with what is in the folder
single_run()
{
    case $1 in
    smp) right 2 env GASNET_PSHM_NODES=2 "./$2" ;;
    udp) right 2 env GASNET_SPAWNFN=L "$place/other/amudp/amudprun" -np 2 "./$2" ;;
    *) right 2 "$place/$1-conduit/contrib/gasnetrun_$1" -n 2 "./$2" ;;
    esac
}

codemode=$(case $AQ_DEBUG_NAME in GASNET_DEBUG) echo debug ;; *) echo opt ;; esac)
othermode=$(case $codemode in opt) echo debug ;; *) echo opt ;; esac)
touch before
check "--enable-single=$codemode --with-gasnet=BUILD-FOLDER is accepted" single_configure "$codemode" "$place"
check "--enable-single=$othermode is not: the folder says which it is" \
    refused "not configured for $othermode" single_configure "$othermode" "$place"
check "nor is an installed tree, and a source folder is seen as one" \
    sh -c "[ '$(kind "$tree")' = install ] && [ '$(kind "$AQ_SRC")' = source ]"
check "where the sources are, the folder says" test -f "$place/$top_srcdir/include/gasnetex.h" -o -f "$top_srcdir/include/gasnetex.h"
check "make -C other/amudp amudprun" make -s -C "$place/other/amudp" amudprun
# the modes differ in nothing that the second two conduits add
for row in smp-seq smp-par udp-seq udp-par mpi-seq ibv-seq; do
    c=${row%-*} m=${row#*-}
    case $configured in *" $row "*) ;; *) continue ;; esac
    case " $CONDUITS " in *" $c "*) ;; *) result 1 "@CONDUITS@ has $c" ;; esac
    check "$row: its runtime and a program of the build folder" single_make $c $m
    [ $c = ibv ] || check "$row: it runs" single_run $c $row # ibv needs a device
done
check "nothing was configured again" sh -c "[ ! '$place/config.status' -nt before ] && [ ! '$place/gasnet_config.h' -nt before ] &&
    [ ! '$place/Makefile' -nt before ]"
cd "$work/client" || exit 1
