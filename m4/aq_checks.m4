dnl aq_checks.m4 - compiler flags and the optional parts.
dnl SPDX-License-Identifier: BSD-3-Clause

dnl AQ_CHECK_CFLAGS(VARIABLE, FLAGS) - VARIABLE is AC_SUBSTed with those of FLAGS that $CC knows.
AC_DEFUN([AQ_CHECK_CFLAGS],
[$1=
for aq_flag in $2; do
  AS_VAR_PUSHDEF([aq_known], [aq_cv_cflag_$aq_flag])
  AC_CACHE_CHECK([whether $CC takes $aq_flag], [aq_known],
    [aq_save_CFLAGS=$CFLAGS
     CFLAGS="$CFLAGS -Werror $aq_flag"
     AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])], [AS_VAR_SET([aq_known], [yes])], [AS_VAR_SET([aq_known], [no])])
     CFLAGS=$aq_save_CFLAGS])
  AS_VAR_IF([aq_known], [yes], [$1="${$1:+$$1 }$aq_flag"])
  AS_VAR_POPDEF([aq_known])
done
AC_SUBST([$1])])

dnl AQ_OPTIONAL_LIBRARY(NAME, MODULE, PACKAGES, USE, DEFAULT) - headers of a library through pkg-config.
dnl Sets HAVE_NAME (header and conditional), NAME_CFLAGS, NAME_LIBS.
AC_DEFUN([AQ_OPTIONAL_LIBRARY],
[m4_pushdef([aq_lower], m4_tolower([$1]))dnl
AC_ARG_WITH(aq_lower, AS_HELP_STRING([--without-]aq_lower, [do without $1: $4]), [], [AS_VAR_SET([with_]aq_lower, [check])])
aq_have=no
AS_VAR_IF([with_]aq_lower, [no],
  [AQ_SUMMARY_OFF(aq_lower, [switched off])],
  [PKG_CHECK_MODULES([$1], [$2],
     [aq_have=yes
      AQ_SUMMARY_ON(aq_lower, [$4])],
     [AS_VAR_IF([with_]aq_lower, [check], [],
        [AC_MSG_ERROR([--with-]aq_lower[ was given, but pkg-config does not find $2 (Debian: $3)])])
      AQ_SUMMARY_OFF(aq_lower, [$4], [$3])])])
AS_IF([test "x$aq_have" = xyes], [AC_DEFINE([HAVE_$1], [1], [Define to 1 if $1 was found.])])
AM_CONDITIONAL([HAVE_$1], [test "x$aq_have" = xyes])
m4_popdef([aq_lower])])

dnl AQ_OPTIONAL_PROGRAM(VARIABLE, NAMES, PACKAGES, USE)
AC_DEFUN([AQ_OPTIONAL_PROGRAM],
[AC_PATH_PROGS([$1], [$2])
AS_IF([test "x$$1" = x], [AQ_SUMMARY_OFF(m4_car(m4_unquote(m4_split([$2]))), [$4], [$3])],
  [AQ_SUMMARY_ON(m4_car(m4_unquote(m4_split([$2]))), [$4])])
AM_CONDITIONAL([HAVE_$1], [test "x$$1" != x])])

AC_DEFUN([AQ_OPTIONAL_PARTS],
[AC_ARG_ENABLE([hwloc], [AS_HELP_STRING([--disable-hwloc], [the same as --without-hwloc])],
  [AS_IF([test "x$enableval" = xno], [with_hwloc=no])])
AQ_OPTIONAL_LIBRARY([HWLOC], [hwloc >= 2.0], [pkg-config libhwloc-dev], [binding ranks to cores (gasnetrun --bind)])
AQ_OPTIONAL_LIBRARY([PMIX], [pmix >= 3], [pkg-config libpmix-dev], [starting under mpirun and srun])
AQ_OPTIONAL_LIBRARY([FFTW], [fftw3], [pkg-config libfftw3-dev], [the application apps/ft])
AQ_OPTIONAL_LIBRARY([CMOCKA], [cmocka], [pkg-config libcmocka-dev], [unit tests])
AQ_OPTIONAL_PROGRAM([GNUPLOT], [gnuplot], [gnuplot-nox], [plots of aq-bench])
AQ_OPTIONAL_PROGRAM([OPENMPI_CC], [mpicc.openmpi], [libopenmpi-dev openmpi-bin], [Open MPI beside us in aq-bench])
AQ_OPTIONAL_PROGRAM([MPICH_CC], [mpicc.mpich], [libmpich-dev mpich], [MPICH beside us in aq-bench])
AQ_OPTIONAL_PROGRAM([OSHCC], [oshcc], [libopenmpi-dev], [OpenSHMEM beside us in aq-bench])
])

dnl AQ_RUNTIME_ARMCI - libarmci, and libcomex over it, is built where there is an MPI, par, and a segment to allocate in.
AC_DEFUN([AQ_RUNTIME_ARMCI],
[AC_ARG_ENABLE([armci], [AS_HELP_STRING([--disable-armci], [do without libarmci, for Global Arrays, and libcomex])])
aq_armci=no
AS_IF([test "x$enable_armci" = xno], [AQ_SUMMARY_OFF([armci], [switched off])],
  [test "x$enable_mpi" = xno], [AQ_SUMMARY_OFF([armci], [Global Arrays; needs the mpi conduit, which is switched off])],
  [test "x$MPI_MODULE_CC" = x], [AQ_SUMMARY_OFF([armci], [Global Arrays; needs an MPI], [libopenmpi-dev openmpi-bin])],
  [test "x$enable_par" = xno], [AQ_SUMMARY_OFF([armci], [Global Arrays; needs par])],
  [test "x$aq_segment" = xeverything], [AQ_SUMMARY_OFF([armci], [Global Arrays; needs segment fast or large])],
  [aq_armci=yes
   AQ_SUMMARY_ON([armci], [libarmci for Global Arrays, libcomex, with $MPI_MODULE_CC])])
AS_IF([test "x$enable_armci" = xyes && test $aq_armci = no],
  [AC_MSG_ERROR([--enable-armci was given, but libarmci cannot be built: see the summary of a run without it])])
AM_CONDITIONAL([HAVE_ARMCI], [test $aq_armci = yes])])

dnl AQ_COMPILER_FAMILY(VARIABLE) - AC_SUBSTs what clients call the family of the compiler $VARIABLE: VARIABLE_FAMILY and
dnl VARIABLE_SUBFAMILY.
AC_DEFUN([AQ_COMPILER_FAMILY],
[AS_CASE([`$$1 --version 2>/dev/null | sed 1q`],
  [*clang*], [$1_FAMILY=Clang], [$1_FAMILY=GNU])
AC_SUBST([$1_FAMILY])
AC_SUBST([$1_SUBFAMILY], [NONE])])

dnl AQ_COMPILER_IDENTITY(PREFIX, COMPILER, LANGUAGE) - what gasnet_portable_platform.h calls a compiler: AC_SUBSTs
dnl PREFIX_FAMILYID, PREFIX_VERSION and PREFIX_IDSTR, each C text; 0 and "" if there is no such compiler.
AC_DEFUN([AQ_COMPILER_IDENTITY],
[for aq_word in FAMILYID VERSION IDSTR; do
  aq_text=`{ echo '#include "gasnet_portable_platform.h"'; echo "AQ_ANSWER PLATFORM_COMPILER_$aq_word"; } |
    $2 -E -x $3 "-I$srcdir/include" - 2>/dev/null | sed -n 's/^AQ_ANSWER *//p'`
  AS_CASE([$aq_word/$aq_text], [IDSTR/], [aq_text='""'], [*/], [aq_text=0])
  eval "$1_$aq_word=\$aq_text"
done
AC_SUBST([$1_FAMILYID])
AC_SUBST([$1_VERSION])
AC_SUBST([$1_IDSTR])])
