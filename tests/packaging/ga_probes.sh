#!/bin/sh
# ga_probes.sh - the tests of an external ARMCI in the configure script of Global Arrays 5.9
# (--with-armci=PREFIX), asked of the installed tree: headers, the library and all functions that
# libga takes from it, by each compiler and in both forms of the option. Prints TAP.
# SPDX-License-Identifier: BSD-3-Clause
#
# AQ_INSTALL is the installed tree, AQ_BUILD the build folder, which knows the MPI that libarmci was
# made for. Each probe is the program that autoconf makes of it.

set -u
. "${AQ_SRC:?AQ_SRC is the source folder}/tests/armci/installed.sh"
MPIF77=${MPICC%mpicc*}mpif77${MPICC##*mpicc}

cd "$work" || exit 1
export LD_LIBRARY_PATH="$tree/lib" # as users do whose linker is not told a run path

# --- the option: a folder, or a list of words that configure sorts ---

# sort_words WORD...: into $cppflags, $ldflags, $libs, as GA's macro does it
sort_words()
{
    cppflags='' ldflags='' libs=''
    for word; do
        case $word in
        -l* | *.a | *.so) libs="$libs $word" ;;
        -L* | -Wl*) ldflags="$ldflags $word" ;;
        -I*) cppflags="$cppflags $word" ;;
        */lib | */lib64) ldflags="$ldflags -L$word" ;;
        */include) cppflags="$cppflags -I$word" ;;
        *)
            [ ! -d "$word/lib" ] || ldflags="$ldflags -L$word/lib"
            [ ! -d "$word/lib64" ] || ldflags="$ldflags -L$word/lib64"
            [ ! -d "$word/include" ] || cppflags="$cppflags -I$word/include"
            ;;
        esac
    done
}

# compiles FILE: a header probe
# shellcheck disable=SC2086
compiles() { "$MPICC" $cppflags -c "$1" -o probe.o; }

# has_header NAME
has_header()
{
    printf '#include <stdio.h>\n#include <stdlib.h>\n#include <%s>\n' "$1" >header.c
    compiles header.c
}

# has_function NAME: it links, which autoconf finds out without a header
# shellcheck disable=SC2086
has_function()
{
    printf '#ifdef __cplusplus\nextern "C"\n#endif\nchar %s();\nint main(void) { return %s(); }\n' "$1" "$1" \
        >function.c
    "$MPICC" $cppflags $ldflags function.c -o function $libs
}

# has_member TYPE MEMBER
has_member()
{
    printf '#include <armci.h>\nint main(void)\n{\n    static %s x;\n    if (sizeof x.%s)\n        return 0;\n    return 0;\n}\n' \
        "$1" "$2" >member.c
    compiles member.c
}

# finds_library: ARMCI_Init links by itself, or with -larmci, which is then appended
finds_library()
{
    has_function ARMCI_Init && return 0
    libs="-larmci $libs"
    has_function ARMCI_Init
}

# What configure stops without, and what it writes into config.h as 0 or 1: all of it is 1.
probe_all()
{
    check "$form: armci.h" has_header armci.h
    check "$form: ARMCI_Init" finds_library
    for name in armci_group_comm ARMCI_Initialized armci_stride_info_init armci_notify armci_msg_init \
        armci_msg_finalize; do
        check "$form: $name" has_function $name
    done
    check "$form: ARMCI_Group.comm" has_member ARMCI_Group comm
}

form="a list of words"
sort_words "-I$tree/include" "-L$tree/lib" -larmci
probe_all
form="the archive"
# shellcheck disable=SC2046
sort_words "-I$tree/include" "$tree/lib/libarmci.a" $(sed -n "s/^Libs.private: //p" "$tree/lib/pkgconfig/armci.pc")
probe_all
form=PREFIX
sort_words "$tree"
probe_all

# --- the headers and functions that GA's own sources use ---

for header in armci.h message.h parmci.h iterator.h gpc.h mp3.h; do
    check "$header compiles by itself" has_header $header
done

# all NAME...: each links
all()
{
    for name; do
        has_function "$name" || { echo "$name is missing"; return 1; }
    done
}

lacks_function() { ! has_function "$1"; }
check "a function that nobody has is not found" lacks_function ARMCI_No_such_function
check "transfers of GA" all ARMCI_Put ARMCI_PutS ARMCI_PutV ARMCI_PutS_flag ARMCI_GetS ARMCI_GetV ARMCI_AccS \
    ARMCI_AccV ARMCI_NbPutS ARMCI_NbGetS ARMCI_NbAccS ARMCI_INIT_HANDLE ARMCI_Wait ARMCI_WaitAll ARMCI_Test \
    ARMCI_Rmw ARMCI_Fence ARMCI_AllFence ARMCI_GroupFence armci_write_strided armci_read_strided
check "memory and locks of GA" all ARMCI_Malloc ARMCI_Free ARMCI_Malloc_local ARMCI_Free_local \
    ARMCI_Malloc_group ARMCI_Free_group ARMCI_Malloc_memdev ARMCI_Free_memdev ARMCI_Malloc_group_memdev \
    ARMCI_Set_shm_limit ARMCI_Uses_shm ARMCI_Uses_shm_grp ARMCI_Create_mutexes ARMCI_Destroy_mutexes \
    ARMCI_Lock ARMCI_Unlock
check "start, end, groups of GA" all ARMCI_Init ARMCI_Init_args ARMCI_Init_mpi_comm ARMCI_Initialized \
    ARMCI_Finalize ARMCI_Cleanup ARMCI_Error ARMCI_Group_create ARMCI_Group_free ARMCI_Group_get_world \
    ARMCI_Group_set_default ARMCI_Absolute_id ARMCI_Same_node armci_group_comm
check "messages and domains of GA" all armci_msg_snd armci_msg_rcv armci_msg_barrier armci_msg_igop \
    armci_msg_lgop armci_msg_llgop armci_msg_fgop armci_msg_dgop armci_msg_bcast armci_msg_gop_scope \
    armci_msg_sel_scope armci_msg_bintree armci_msg_me armci_msg_nproc armci_msg_abort \
    armci_msg_group_barrier armci_msg_group_igop armci_msg_group_lgop armci_msg_group_llgop \
    armci_msg_group_fgop armci_msg_group_dgop armci_msg_group_gop_scope armci_msg_group_bcast_scope \
    armci_domain_id armci_domain_my_id armci_domain_count armci_domain_nprocs armci_domain_glob_proc_id \
    armci_domain_same_id armci_exchange_address armci_exchange_address_grp
check "GP arrays, test programs" all ARMCI_Memat ARMCI_Memget ARMCI_Memctl ARMCI_Get armci_timer

# What an existing libga takes from its ARMCI, by the linker's own list.
ga=$(ls /usr/lib/*/libga-openmpi.a 2>/dev/null)
taken()
{
    nm "$ga" 2>/dev/null | awk '$1 == "U" && $2 ~ /^P?(ARMCI|armci)/ { print $2 }' | sort -u >wanted
    nm --defined-only "$ga" 2>/dev/null | awk 'NF == 3 { print $3 }' | sort -u >its_own
    comm -23 wanted its_own >taken
    wc -l taken
    [ "$(wc -l <taken)" -gt 70 ] || return 1
    while read -r name; do
        has_function "$name" || { echo "$name is missing"; return 1; }
    done <taken
}
if [ -n "$ga" ]; then
    check "all that $(basename "$ga") takes" taken
else
    skip "all that libga takes" "needs libglobalarrays-dev"
fi

# --- other languages; the calls of a start and an end, in GA's order ---

cat >start.c <<'END'
#include <armci.h>
#include <message.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    void *flags[64], *local;
    ARMCI_Group world, mirror;
    int list[64], me, nproc, largest;
    MPI_Comm comm;

    MPI_Init(&argc, &argv);
    ARMCI_Init_args(&argc, &argv);
    nproc = armci_msg_nproc();
    me = armci_msg_me();
    largest = armci_domain_nprocs(ARMCI_DOMAIN_SMP, armci_domain_my_id(ARMCI_DOMAIN_SMP));
    armci_msg_igop(&largest, 1, "max");
    for (int i = 0; i < nproc; i++)
        list[i] = i;
    ARMCI_Group_get_world(&world);
    MPI_Comm_dup(armci_group_comm(&world), &comm);
    ARMCI_Group_create(nproc, list, &mirror);
    if (ARMCI_Malloc(flags, 56) != 0 || (local = ARMCI_Malloc_local(1000)) == NULL)
        ARMCI_Error("no memory", 1);
    ARMCI_AllFence();
    armci_msg_barrier();
    ARMCI_Free_local(local);
    ARMCI_Free(flags[me]);
    ARMCI_Group_free(&mirror);
    ARMCI_Finalize();
    MPI_Comm_free(&comm);
    MPI_Finalize();
    printf("%d of %d, nodes of %d\n", me, nproc, largest);
    return 0;
}
END

# shellcheck disable=SC2086
starts()
{
    "$MPICC" $cppflags $ldflags start.c -o start $libs && timeout -k 5 60 "$MPIRUN" -n 2 ./start >said || return 1
    cat said
    grep -q '^1 of 2, nodes of 2$' said
}
check "a program starts and ends as GA does" starts

# shellcheck disable=SC2086
fortran()
{
    printf '      program main\n      external armci_init\n      end\n' >main.f
    "$MPIF77" $ldflags main.f -o fortran -Wl,--no-as-needed $libs && ./fortran
}
if command -v "$MPIF77" >/dev/null; then
    check "Fortran links with it" fortran
else
    skip "Fortran links with it" "needs $MPIF77"
fi
check "no process is left" tap_gone
tap_end
