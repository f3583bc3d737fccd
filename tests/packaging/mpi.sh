# mpi.sh - the part of run.sh for the mpi conduit: the names by which its clients and their launchers find it, and the MPI
# that they have to be linked with. SPDX-License-Identifier: BSD-3-Clause
mpi_mak() { { cat "$tree/include/mpi-conduit/mpi-$1.mak"; printf '\nask:\n\t@echo $(%s)\n' "$2"; } | make -s -f - ask; }
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM

check "mpi: headers are in place" present include/mpi-conduit/gasnet_core.h include/mpi-conduit/gasnet_core_fwd.h \
    include/mpi-conduit/gasnet_core_help.h include/mpi-conduit/gasnet_extended.h include/mpi-conduit/gasnet_extended_fwd.h \
    include/mpi-conduit/gasnet_extended_help.h include/mpi-conduit/gasnet_coll_fwd.h \
    include/mpi-conduit/gasnet_ratomic_fwd.h include/mpi-conduit/gasnet_vis_fwd.h \
    include/mpi-conduit/ammpi.h include/mpi-conduit/amx_portable_platform.h
check "mpi: launchers are in place" present bin/gasnetrun_mpi bin/gasnetrun_mpi.pl
check "mpi: helper library and module are in place" present lib/libammpi.a lib/aqueduct/aq-mpi.so
check "mpi: documents are in place" present share/doc/GASNet/README-mpi share/doc/GASNet/README-mpi-spawner
check "mpi: its own headers serve C, without mpi.h" sh -c "printf '#include <amx_portable_platform.h>\n#include <ammpi.h>\nint x[PLATFORM_ARCH_64 * AMMPI_MAX_SHORT];\n' >mpi-headers.c &&
    $CC -Wall -Wextra -Werror -fsyntax-only -I$tree/include -I$tree/include/mpi-conduit mpi-headers.c"
for m in $modes; do
    check "mpi: library, fragment and pkg-config file of $m are in place" present "lib/libgasnet-mpi-$m.a" \
        "include/mpi-conduit/mpi-$m.mak" "lib/pkgconfig/gasnet-mpi-$m.pc"
    check "mpi: $m: clients link by MPI's wrapper" sh -c "[ '$(mpi_mak $m GASNET_LD)' = '$(pkg gasnet-mpi-$m --variable=GASNET_LD)' ] &&
        case '$(mpi_mak $m GASNET_LD)' in */mpi*) ;; *) exit 1 ;; esac"
    check "mpi: $m: and are told so" [ "$(mpi_mak $m GASNET_LD_REQUIRES_MPI)$(pkg gasnet-mpi-$m --variable=GASNET_LD_REQUIRES_MPI)" = 11 ]
    check "mpi: $m: the fragment asks for no spawner and no C++" \
        [ "$(mpi_mak $m GASNET_SPAWNER_DEFAULT)$(mpi_mak $m GASNET_LD_REQUIRES_CXX)" = "" ]
    check "mpi: $m client through pkg-config" \
        sh -c "$(pkg gasnet-mpi-$m --variable=GASNET_LD) $(pkg gasnet-mpi-$m --cflags) client.c -o mpi-pc-$m $(pkg gasnet-mpi-$m --libs)"
    check "it runs: gasnetrun_mpi -n 2" right 2 "$tree/bin/gasnetrun_mpi" -n 2 "./mpi-pc-$m"
    check "mpi: $m client through the make fragment" \
        sh -c "$(mpi_mak $m GASNET_CC) $(mpi_mak $m GASNET_CPPFLAGS) $(mpi_mak $m GASNET_CFLAGS) -c client.c -o mpi-mak-$m.o &&
               $(mpi_mak $m GASNET_LD) $(mpi_mak $m GASNET_LDFLAGS) mpi-mak-$m.o -o mpi-mak-$m $(mpi_mak $m GASNET_LIBS)"
    check "it runs: gasnetrun -n 2, messages over MPI" \
        right 2 env GASNET_SUPERNODE_MAXSIZE=1 "$tree/bin/gasnetrun" -n 2 "./mpi-mak-$m"
    check "it runs: by nobody" right 1 "./mpi-mak-$m"
    check "mpi: $m: the helper library stands behind the conduit's" \
        sh -c "echo ' $(mpi_mak $m GASNET_LIBS) ' | grep -q ' -lgasnet-mpi-$m -lammpi '"
    check "mpi: $m: what the program says of itself" sh -c "tr '\$' '\n' <mpi-mak-$m >mpi-ident &&
        grep -aqx 'GASNetConduitName: MPI ' mpi-ident && grep -aqx 'AMMPILibraryVersion: 2.11 ' mpi-ident &&
        grep -aq '^MPIVersion: ' mpi-ident && grep -aq '^GASNetConfig: .*CONDUIT=MPI(' mpi-ident &&
        ! grep -a 'GASNet[A-Z]*Spawner' mpi-ident"
done
mpirun=$(tr '$' '\n' <mpi-pc-seq | sed -n 's/^AqueductMpirun: \([^ ]*\) .*/\1/p')
check "mpi: the launcher of that MPI starts it" right 2 "$mpirun" -n 2 ./mpi-pc-seq
check "mpi: gasnetrun_mpi.pl" right 2 "$tree/bin/gasnetrun_mpi.pl" -n 2 ./mpi-pc-seq
check "mpi: gasnetrun_mpi -t tells the command" \
    sh -c "'$tree/bin/gasnetrun_mpi' -t -n 3 ./mpi-pc-seq a 'b c' 2>&1 | grep -q '^gasnetrun: would start: $mpirun .*-*np* 3 .*mpi-pc-seq a b c'"
check "mpi: MPIRUN_CMD wins" sh -c "MPIRUN_CMD='$mpirun -n %N %C' '$tree/bin/gasnetrun_mpi' -t -n 3 ./mpi-pc-seq 2>&1 | grep -q 'would start: $mpirun -n 3'"
check "mpi: a spawner that it has not is refused" refused spawner "$tree/bin/gasnetrun_mpi" -spawner=fork -n 2 ./mpi-pc-seq
for l in "$tree"/lib/libgasnet-mpi-*.a "$tree/lib/libammpi.a"; do
    check "mpi: global names of ${l##*/} are ours" \
        sh -c "! nm -g --defined-only $l | awk 'NF == 3 { print \$3 }' | grep -vE '^_?$ours'"
done
for m in seq par; do
    check "mpi: libaqueduct-$m.so needs no MPI" sh -c "! ldd '$tree/lib/libaqueduct-$m.so' | grep -iE 'libmpi|openmpi|mpich|open-rte'"
    check "mpi: a client of libaqueduct-$m.so loads it" \
        right 2 env LD_LIBRARY_PATH="$tree/lib" "$tree/bin/gasnetrun" -c mpi -n 2 "./so-$m"
    check "mpi: without the module that says what is missing" refused 'AQ_MODULE_DIR' env AQ_MODULE_DIR=/nowhere \
        LD_LIBRARY_PATH="$tree/lib" GASNET_CONDUIT=mpi "./so-$m"
    check "mpi: and the other conduits work" right 2 env AQ_MODULE_DIR=/nowhere LD_LIBRARY_PATH="$tree/lib" \
        "$tree/bin/gasnetrun" -c smp -n 2 "./so-$m"
done
if [ -n "$CXX" ]; then
    check "mpi: C++ client, no warnings" sh -c "$(pkg gasnet-mpi-par --variable=GASNET_CXX) -std=c++17 -Wall -Wextra -Werror \
        $(pkg gasnet-mpi-par --variable=GASNET_CXXCPPFLAGS) $(pkg gasnet-mpi-par --variable=GASNET_CXXFLAGS) -c client.cc -o mpi-cxx.o &&
        $(pkg gasnet-mpi-par --variable=GASNET_LD) mpi-cxx.o -o mpi-cxx $(pkg gasnet-mpi-par --libs) -lstdc++"
    check "it runs" right 2 "$tree/bin/gasnetrun_mpi" -n 2 ./mpi-cxx
fi
