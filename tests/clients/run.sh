#!/bin/sh
# run.sh - clients in the manner of the known ones, built from an installed tree in a folder outside. Prints TAP.
# SPDX-License-Identifier: BSD-3-Clause
#
#   run.sh [CONDUIT]  smp unless named; AQ_SRC is the source folder, AQ_INSTALL the installed tree
#
# Each client is compiled the way its own build system does it: through pkg-config, through the make fragments
# included or echoed, or with nothing but the -I, -D, -L and -l words that FindGASNet picks out.

set -u
: "${AQ_SRC:?AQ_SRC is the source folder}" "${AQ_INSTALL:?AQ_INSTALL is the installed tree}"
here=$AQ_SRC/tests/clients
c=${1:-smp}
C=$(echo "$c" | tr '[:lower:]' '[:upper:]')
tree=$AQ_INSTALL
. "$AQ_SRC/build-aux/tap.sh"
cd "$work" || exit 1
cp "$here"/*.c "$here"/*.cc "$here"/*.f90 .

# without its launcher where that is possible
case $c in
smp) plain='GASNET_PSHM_NODES=3' start2='GASNET_PSHM_NODES=2' ;;
udp) plain="$tree/bin/gasnetrun_$c -n 3" start2="$tree/bin/amudprun -np 2" ;;
*) plain="$tree/bin/gasnetrun_$c -n 3" start2="$tree/bin/gasnetrun_$c -n 2" ;;
esac

# right N COMMAND...: it ran on N ranks and every rank was right.
right()
{
    ranks=$1
    shift
    timeout 100 "$@" >"$work/run" 2>&1
    status=$?
    cat "$work/run"
    [ $status = 0 ] && [ "$(grep -c "of $ranks right" "$work/run")" = "$ranks" ]
}

# runs NAME PROGRAM: on 1, 2 and 4 ranks, native and over messages only.
runs()
{
    for ranks in 1 2 4; do
        check "$1 runs on $ranks ranks" right $ranks "$tree/bin/gasnetrun_$c" -n $ranks "$2"
    done
    check "$1 runs on 3 ranks, everything over active messages" \
        right 3 env AQ_NO_OVERRIDES=1 $plain "$2"
}

# GASNET_LD_REQUIRES_MPI: who does not link by GASNET_LD adds what that would add.
wrapper=$(PKG_CONFIG_PATH="$tree/lib/pkgconfig" pkg-config --variable=GASNET_LD "gasnet-$c-seq")
[ "$c" != mpi ] || mpi=$("$wrapper" --showme:link 2>/dev/null || "$wrapper" -link_info | cut -d' ' -f2-)
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM
libs() { case " $2 " in *GASNET_LIBS* | *--libs*) echo "$1${mpi:+ $mpi}" ;; *) echo "$1" ;; esac; }

pkg() { libs "$(PKG_CONFIG_PATH="$tree/lib/pkgconfig" pkg-config "$@")" "$*"; }
# A fragment read as FindGASNet reads it: its text with a rule of their own appended.
mak() { libs "$({ cat "$tree/include/$c-conduit/$1.mak"; printf '\nask:\n\t@echo $(%s)\n' "$2"; } | make -s -f - ask)" "$2"; }
words() { echo "$2" | tr ' ' '\n' | grep -E -- "^-[$1]" | tr '\n' ' '; }

# --- UPC++: pkg-config, C++17, seq and par ---
for m in seq par; do
    check "UPC++ ($m): the file for which threads do not matter" sh -c "$(pkg gasnet-$c-$m --variable=GASNET_CC) -Wall -Wextra -Werror \
        $(pkg gasnet-$c-$m --variable=GASNET_CPPFLAGS) $(pkg gasnet-$c-$m --variable=GASNET_CFLAGS) -c upcxx_lite.c -o lite-$m.o"
    check "UPC++ ($m): pkg-config, C++17, no warnings" sh -c "$(pkg gasnet-$c-$m --variable=GASNET_CXX) -std=c++17 -Wall -Wextra -Werror \
        $(pkg gasnet-$c-$m --variable=GASNET_CXXCPPFLAGS) $(pkg gasnet-$c-$m --variable=GASNET_CXXFLAGS) upcxx_like.cc lite-$m.o -o upcxx-$m \
        $(pkg gasnet-$c-$m --variable=GASNET_LDFLAGS) $(pkg gasnet-$c-$m --variable=GASNET_LIBS)"
    runs "UPC++ ($m)" ./upcxx-$m
done
check "UPC++: its launcher learns the conduit from the program" \
    sh -c "tr '\$' '\n' <upcxx-par | grep -aqx 'GASNetConduitName: $C ' && tr '\$' '\n' <upcxx-par | grep -aqx 'RuntimeLikeUPCXX: 1 '"
check "UPC++: started, and with a segment size, as its launcher does it" \
    right 2 env GASNET_MAX_SEGSIZE=128.0MB/P GASNET_SPAWNFN=L GASNET_BACKTRACE=1 $start2 ./upcxx-par

# --- Realm: a fragment's words, its own -D, C++17 ---
check "Realm: fragment's words, C++17, no warnings" sh -c "$(mak $c-par GASNET_CXX) -std=c++17 -Wall -Wextra -Werror -O2 \
    -DGASNET_CONDUIT_$C -DGASNETI_BUG1389_WORKAROUND=1 $(words I "$(mak $c-par GASNET_INCLUDES)") realm_like.cc -o realm \
    $(words Ll "$(mak $c-par GASNET_LIBS)") -lpthread"
runs "Realm" ./realm
check "Realm: every library word is found through the -L words" sh -c "
    for l in $(words l "$(mak $c-par GASNET_LIBS)"); do
        gcc $(words L "$(mak $c-par GASNET_LIBS)") \$l -shared -o /dev/null || exit 1
    done"
check "Realm: as a module that is loaded late" sh -c "$(mak $c-par GASNET_CXX) -std=c++17 -O2 -fPIC -shared -DGASNET_CONDUIT_$C \
    $(words I "$(mak $c-par GASNET_INCLUDES)") realm_like.cc -o realm.so $(words Ll "$(mak $c-par GASNET_LIBS)")"
check "Realm (GASNet-1): fragment's words, C++" sh -c "$(mak $c-par GASNET_CXX) -std=c++17 -Wall -Wextra -O2 -DGASNET_CONDUIT_$C \
    -DGASNETI_BUG1389_WORKAROUND=1 $(words I "$(mak $c-par GASNET_INCLUDES)") legion1_like.cc -o legion1 $(words Ll "$(mak $c-par GASNET_LIBS)")"
runs "Realm (GASNet-1)" ./legion1

# --- Caffeine: pkg-config variables, Fortran ---
for m in seq par; do
    check "Caffeine ($m): the first library word is the -L of the tree" \
        sh -c "[ '$(pkg gasnet-$c-$m --variable=GASNET_LIBS | cut -d' ' -f1)' -ef / ] || ls $(pkg gasnet-$c-$m --variable=GASNET_LIBS | cut -d' ' -f1 | sed 's/^-L//')/../include/gasnetex.h"
    check "Caffeine ($m): C half" sh -c "$(pkg gasnet-$c-$m --variable=GASNET_CC) -Wall -Wextra -Werror $(pkg gasnet-$c-$m --variable=GASNET_CPPFLAGS) \
        $(pkg gasnet-$c-$m --variable=GASNET_CFLAGS) -c caffeine_like.c -o caf-$m.o"
    check "Caffeine ($m): Fortran half and link with gfortran" sh -c "gfortran -Wall caffeine_like.f90 caf-$m.o -o caf-$m \
        $(pkg gasnet-$c-$m --variable=GASNET_LDFLAGS) $(pkg gasnet-$c-$m --variable=GASNET_LIBS)"
    runs "Caffeine ($m)" ./caf-$m
done

# --- OpenSHMEM: examines the tree as its configure does, then a fragment included by make ---
check "OpenSHMEM: version from gasnet_config.h as text" sh -c "
    for v in MAJOR MINOR PATCH; do
        awk -v v=GASNET_RELEASE_VERSION_\$v '\$0 ~ v { n++; x = \$3 } END { exit !(n == 1 && x ~ /^[0-9]+\$/) }' $tree/include/gasnet_config.h || exit 1
    done"
check "OpenSHMEM: conduits from the folders" sh -c "cd $tree/include && for d in *-conduit; do ls \$d/gasnet_core.h \$d/\${d%-conduit}-par.mak; done"
for m in seq par parsync; do
    [ -e "$tree/include/$c-conduit/$c-$m.mak" ] || { skip "OpenSHMEM ($m)" "$m is not built"; continue; }
    printf 'include %s\nshmem-%s: openshmem_like.c\n\t$(GASNET_LD) $(GASNET_CPPFLAGS) $(GASNET_CFLAGS) -Wall -Wextra -Werror $< -o $@ $(GASNET_LDFLAGS) $(GASNET_LIBS)\n' \
        "$tree/include/$c-conduit/$c-$m.mak" $m >shmem.mk
    check "OpenSHMEM ($m): fragment included by make" make -s -f shmem.mk shmem-$m
    runs "OpenSHMEM ($m)" ./shmem-$m
done

# --- Chapel, XcalableMP, OpenUH, PANDO ---
check "Chapel: fragment" sh -c "$(mak $c-par GASNET_CC) -std=gnu17 -Wall -Wextra $(mak $c-par GASNET_CPPFLAGS) $(mak $c-par GASNET_CFLAGS) \
    chapel_like.c -o chapel $(mak $c-par GASNET_LDFLAGS) $(mak $c-par GASNET_LIBS)"
runs "Chapel" ./chapel
check "XcalableMP: seq fragment" sh -c "$(mak $c-seq GASNET_CC) $(mak $c-seq GASNET_CPPFLAGS) $(mak $c-seq GASNET_CFLAGS) \
    xmp_like.c -o xmp $(mak $c-seq GASNET_LDFLAGS) $(mak $c-seq GASNET_LIBS)"
runs "XcalableMP" ./xmp
check "OpenUH: only -I, its own mode" sh -c "gcc -std=gnu99 -O2 -Wall -Wextra $(words I "$(mak $c-par GASNET_INCLUDES)") openuh_like.c -o openuh \
    $(mak $c-par GASNET_LIBS)"
runs "OpenUH" ./openuh
check "PANDO: pkg-config, its own mode" sh -c "g++ -std=c++17 -O2 -Wall -Wextra $(words I "$(pkg gasnet-$c-par --cflags)") pando_like.cc -o pando \
    $(pkg gasnet-$c-par --libs)"
runs "PANDO" ./pando

# --- the interface's own test suite ---
check "test suite: par fragment, no warnings" sh -c "$(mak $c-par GASNET_CC) -std=gnu99 -Wall -Wextra -Werror $(mak $c-par GASNET_CPPFLAGS) \
    $(mak $c-par GASNET_CFLAGS) suite_like.c -o suite $(mak $c-par GASNET_LDFLAGS) $(mak $c-par GASNET_LIBS)"
runs "test suite" ./suite
check "test suite: a setting of a client's own is its business" sh -c "$tree/bin/gasnetrun_$c -n 1 ./suite 2>&1 | grep -c EXITTIMEOUT | grep -qx 0"

# --- Nanos++ and HPX: what they look for in the archive ---
check "Nanos++: AC_CHECK_LIB finds gasnetc_AMPoll" sh -c "echo 'char gasnetc_AMPoll(void); int main(void) { return (int)(long)&gasnetc_AMPoll == 0; }' >nanos.c &&
    gcc -w nanos.c -o nanos $(mak $c-par GASNET_LIBS)"
check "HPX: the whole archive goes into a shared object" sh -c "gcc -shared -o hpx.so -Wl,--whole-archive \
    $(pkg gasnet-$c-par --libs | tr ' ' '\n' | sed -n 's/^-L//p' | head -n 1)/libgasnet-$c-par.a -Wl,--no-whole-archive -lpthread -lm -ldl -lrt"

check "no process is left" tap_gone
tap_end
