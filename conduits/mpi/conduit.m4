dnl conduit.m4 - mpi needs an MPI-3 compiler wrapper, for its module and for clients of the static archive.
dnl SPDX-License-Identifier: BSD-3-Clause
dnl
dnl --with-mpicc=COMMAND (also --with-mpi-cc, MPI_CC) says which; else mpicc, mpicc.openmpi, mpicc.mpich in turn.
dnl --with-mpi-cflags, --with-mpi-libs: for the module. --with-mpirun-cmd: how gasnetrun starts its jobs, a template as in
dnl MPIRUN_CMD; else the launcher that lies beside the wrapper.
dnl Sets aq_conduit_mpi to yes or no, aq_conduit_mpi_why to the reason for a no; MPI_MODULE_CC, the wrapper;
dnl MPI_MODULE_RUN, the command; aq_conduit_mpi_client_ld, by which clients link, and aq_conduit_mpi_client_libs;
dnl aq_conduit_mpi_spawners: programs are started by MPI.

dnl AQ_MPI_COMPILES - can the wrapper aq_mpi_cc compile and link an MPI-3 program?
AC_DEFUN([AQ_MPI_COMPILES],
[AC_LANG_CONFTEST([AC_LANG_PROGRAM([[#include <mpi.h>
#if MPI_VERSION < 3
#error older than MPI-3
#endif
]], [[MPI_Win win = MPI_WIN_NULL; return MPI_Win_flush(0, win);]])])
rm -f conftest$EXEEXT
OMPI_CC=$CC MPICH_CC=$CC $aq_mpi_cc $with_mpi_cflags -o conftest$EXEEXT conftest.c $with_mpi_libs >&AS_MESSAGE_LOG_FD 2>&1 &&
  test -s conftest$EXEEXT])

dnl AQ_MPI_FIND_LAUNCHER - MPI_MODULE_RUN for the wrapper aq_mpi_cc. Names that only one MPI has come first, for plain
dnl mpirun may be another's.
AC_DEFUN([AQ_MPI_FIND_LAUNCHER],
[AC_MSG_CHECKING([for the launcher of this MPI])
echo '#include <mpi.h>
#ifdef OPEN_MPI
AQ_ANSWER openmpi
#else
AQ_ANSWER mpich
#endif' >conftest.c
aq_mpi_kind=`OMPI_CC=$CC MPICH_CC=$CC $aq_mpi_cc $with_mpi_cflags -E conftest.c 2>/dev/null | sed -n 's/^AQ_ANSWER *//p'`
AS_CASE([$aq_mpi_kind],
  [openmpi], [aq_mpi_names="mpirun.openmpi mpirun mpiexec"],
  [aq_mpi_names="mpiexec.mpich mpiexec.hydra mpiexec mpirun"])
set dummy $aq_mpi_cc
aq_mpi_run=
for aq_dir in `AS_DIRNAME(["$[2]"])` `echo "$PATH" | tr ':' ' '`; do
  for aq_name in $aq_mpi_names; do
    AS_IF([test "x$aq_mpi_run" = x && test -x "$aq_dir/$aq_name"], [aq_mpi_run=$aq_dir/$aq_name])
  done
done
AC_MSG_RESULT([${aq_mpi_run:-none; gasnetrun will look for mpirun}])
MPI_MODULE_RUN="${aq_mpi_run:-mpirun} -np %N %C"])

AC_DEFUN([AQ_PROBE_CONDUIT_mpi],
[aq_conduit_mpi_spawners=no
AC_ARG_WITH([mpicc], [AS_HELP_STRING([--with-mpicc=COMMAND], [compiler wrapper of the MPI to use])],
  [MPI_CC=$withval], [AS_IF([test "x$with_mpi_cc" != x], [MPI_CC=$with_mpi_cc])])
AC_ARG_VAR([MPI_CC], [compiler wrapper of the MPI to use])
AS_IF([test "x$MPI_CC" = xyes], [AC_MSG_ERROR([--with-mpicc needs a value])])
aq_conduit_mpi=no
aq_conduit_mpi_why="no MPI-3 compiler wrapper (Debian: libopenmpi-dev openmpi-bin, or libmpich-dev mpich)"
aq_try="$MPI_CC"
AS_IF([test "x$aq_try" = x], [aq_try="mpicc mpicc.openmpi mpicc.mpich"],
  [aq_conduit_mpi_why="there is no program $MPI_CC"])
AS_IF([test "x$MPI_CC" = xno], [aq_try=; aq_conduit_mpi_why="switched off"])
for aq_name in $aq_try; do
  AC_PATH_PROG([AQ_MPI_PATH], [$aq_name])
  AS_IF([test "x$AQ_MPI_PATH" != x],
    [aq_mpi_cc=$AQ_MPI_PATH
     AC_MSG_CHECKING([whether $aq_mpi_cc compiles MPI-3 programs])
     AQ_MPI_COMPILES
     AS_IF([test $? -eq 0], [aq_conduit_mpi=yes],
       [aq_conduit_mpi_why="$aq_mpi_cc cannot compile and link an MPI-3 program"])
     AC_MSG_RESULT([$aq_conduit_mpi])])
  AS_UNSET([AQ_MPI_PATH])
  AS_UNSET([ac_cv_path_AQ_MPI_PATH])
  AS_IF([test $aq_conduit_mpi = yes], [break])
done
AS_IF([test $aq_conduit_mpi = yes],
  [MPI_MODULE_CC=$aq_mpi_cc
   AQ_MPI_FIND_LAUNCHER
   AS_IF([test "x$with_mpirun_cmd" != x], [MPI_MODULE_RUN=$with_mpirun_cmd])
   AC_DEFINE_UNQUOTED([AQ_MPIRUN_CMD], ["$MPI_MODULE_RUN"], [How gasnetrun starts MPI programs.])
   aq_conduit_mpi_client_ld=$MPI_MODULE_CC
   aq_conduit_mpi_client_libs="-lammpi${with_mpi_libs:+ $with_mpi_libs}"])
rm -f conftest conftest.c conftest$EXEEXT
AC_SUBST([MPI_MODULE_CC])
AC_SUBST([MPI_MODULE_RUN])
AC_SUBST([MPI_MODULE_CFLAGS], [$with_mpi_cflags])
AC_SUBST([MPI_MODULE_LIBS], [$with_mpi_libs])
])
