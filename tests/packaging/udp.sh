# udp.sh - the part of run.sh for the udp conduit: the names by which its clients and their launchers find it.
# SPDX-License-Identifier: BSD-3-Clause
udp_mak() { { cat "$tree/include/udp-conduit/udp-$1.mak"; printf '\nask:\n\t@echo $(%s)\n' "$2"; } | make -s -f - ask; }

check "udp: headers are in place" present include/udp-conduit/gasnet_core.h include/udp-conduit/gasnet_core_fwd.h \
    include/udp-conduit/gasnet_core_help.h include/udp-conduit/gasnet_extended.h include/udp-conduit/gasnet_extended_fwd.h \
    include/udp-conduit/gasnet_extended_help.h include/udp-conduit/gasnet_coll_fwd.h \
    include/udp-conduit/gasnet_ratomic_fwd.h include/udp-conduit/gasnet_vis_fwd.h \
    include/udp-conduit/amudp_const.h include/udp-conduit/amx_portable_platform.h
check "udp: launchers are in place" present bin/amudprun bin/gasnetrun_udp
check "udp: the helper library is in place" present lib/libamudp.a
check "udp: documents are in place" present share/doc/GASNet/README-udp share/doc/GASNet/README-ssh-spawner
check "udp: its own headers serve C" sh -c "printf '#include <amx_portable_platform.h>\n#include <amudp_const.h>\nint x[PLATFORM_ARCH_64 * AMUDP_MAX_SHORT];\n' >udp-headers.c &&
    $CC -Wall -Wextra -Werror -fsyntax-only -I$tree/include -I$tree/include/udp-conduit udp-headers.c"
for m in $modes; do
    check "udp: library, fragment and pkg-config file of $m are in place" present "lib/libgasnet-udp-$m.a" \
        "include/udp-conduit/udp-$m.mak" "lib/pkgconfig/gasnet-udp-$m.pc"
    check "udp: $m client through pkg-config" \
        sh -c "$(pkg gasnet-udp-$m --variable=GASNET_CC) $(pkg gasnet-udp-$m --cflags) client.c -o udp-pc-$m $(pkg gasnet-udp-$m --libs)"
    check "it runs: GASNET_SPAWNFN=L ./prog 2" right 2 env GASNET_SPAWNFN=L "./udp-pc-$m" 2
    check "udp: $m client through the make fragment" \
        sh -c "$(udp_mak $m GASNET_CC) $(udp_mak $m GASNET_CPPFLAGS) $(udp_mak $m GASNET_CFLAGS) -c client.c -o udp-mak-$m.o &&
               $(udp_mak $m GASNET_LD) $(udp_mak $m GASNET_LDFLAGS) udp-mak-$m.o -o udp-mak-$m $(udp_mak $m GASNET_LIBS)"
    check "it runs: amudprun -np 2 -spawn L" right 2 "$tree/bin/amudprun" -np 2 -spawn L "./udp-mak-$m"
    check "udp: $m: the helper library stands behind the conduit's" \
        sh -c "echo ' $(udp_mak $m GASNET_LIBS) ' | grep -q ' -lgasnet-udp-$m -lamudp '"
    check "udp: $m: the fragment asks for no spawner, no C++ and no MPI" \
        [ "$(udp_mak $m GASNET_SPAWNER_DEFAULT)$(udp_mak $m GASNET_LD_REQUIRES_CXX)$(udp_mak $m GASNET_LD_REQUIRES_MPI)" = "" ]
    check "udp: $m: what the program says of itself" sh -c "tr '\$' '\n' <udp-mak-$m >udp-ident &&
        grep -aqx 'GASNetConduitName: UDP ' udp-ident && grep -aqx 'GASNetDefaultSpawnFunction: S ' udp-ident &&
        grep -aq '^AMUDPLibraryVersion: 3.21 ' udp-ident && grep -aq '^GASNetConfig: .*CONDUIT=UDP(' udp-ident &&
        ! grep -a 'GASNet[A-Z]*Spawner' udp-ident"
done
check "udp: gasnetrun_udp -n 3" right 3 "$tree/bin/gasnetrun_udp" -n 3 ./udp-mak-seq
check "udp: a program looks for amudprun where GASNET_PREFIX says" \
    refused 'GASNET_SSH_SERVERS=' env -u GASNET_SSH_SERVERS -u GASNET_SPAWNFN GASNET_PREFIX="$tree" PATH=/nowhere "./udp-pc-seq" 2
check "udp: gasnetrun_smp refuses nothing, and says that it is another conduit's program" \
    sh -c "'$tree/bin/gasnetrun_smp' -t -n 1 ./udp-mak-seq 2>&1 | grep -q 'no word of the command is a program linked with the smp'"
for l in "$tree"/lib/libgasnet-udp-*.a "$tree/lib/libamudp.a"; do
    check "udp: global names of ${l##*/} are ours" \
        sh -c "! nm -g --defined-only $l | awk 'NF == 3 { print \$3 }' | grep -vE '^_?$ours'"
done
if [ -n "$CXX" ]; then
    check "udp: C++ client, no warnings" sh -c "$(pkg gasnet-udp-par --variable=GASNET_CXX) -std=c++17 -Wall -Wextra -Werror \
        $(pkg gasnet-udp-par --variable=GASNET_CXXCPPFLAGS) $(pkg gasnet-udp-par --variable=GASNET_CXXFLAGS) client.cc -o udp-cxx $(pkg gasnet-udp-par --libs)"
    check "it runs" right 2 env GASNET_SPAWNFN=L ./udp-cxx 2
fi
