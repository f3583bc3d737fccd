dnl aq_conduits.m4 - which conduits are built: --enable-NAME, --disable-NAME, --enable-NAME=probe.
dnl SPDX-License-Identifier: BSD-3-Clause
dnl
dnl AQ_CONDUITS probes every conduit of conduits/list.m4 and sets, for each, the conditional
dnl CONDUIT_NAME; AC_SUBSTs CONDUITS (those that are built), AQ_CONDUIT_LIBS (what they link with
dnl besides the system: aq_conduit_NAME_libs, which the probe may set), AQ_CONDUIT_CLIENT_LIBS (the
dnl same by conduit: "NAME:libs;...", with aq_conduit_NAME_client_libs first: names that clients
dnl expect), AQ_CONDUIT_CLIENT_LD (what links their programs, if not the compiler: an MPI's wrapper,
dnl "NAME:aq_conduit_NAME_client_ld;...") and AQ_CONDUIT_NO_SPAWNERS (whose aq_conduit_NAME_spawners
dnl is no: their programs have no spawners to choose from); appends to the summary.
dnl A conduit that was asked for by name and cannot be built ends configure.

AC_DEFUN([AQ_CONDUIT],
[AC_ARG_ENABLE([$1],
  [AS_HELP_STRING([--disable-$1], [leave out the $1 conduit ($2)])],
  [], [AS_IF([test "x$enable_auto_conduit_detect" = xno], [enable_$1=no], [enable_$1=probe])])
aq_conduit_$1=no
aq_conduit_$1_why="switched off"
AS_IF([test "x$enable_$1" != xno],
  [AQ_PROBE_CONDUIT_$1
   AS_IF([test "x$enable_$1" = xyes && test "x$aq_conduit_$1" = xno],
     [AC_MSG_ERROR([the $1 conduit was asked for but cannot be built: $aq_conduit_$1_why])])])
AM_CONDITIONAL(m4_toupper([CONDUIT_$1]), [test "x$aq_conduit_$1" = xyes])
AS_IF([test "x$aq_conduit_$1" = xyes],
  [CONDUITS="${CONDUITS:+$CONDUITS }$1"
   AQ_CONDUIT_LIBS="${AQ_CONDUIT_LIBS:+$AQ_CONDUIT_LIBS }$aq_conduit_$1_libs"
   AQ_SUMMARY_ON([conduit $1], [$2])],
  [AQ_SUMMARY_OFF([conduit $1], [$aq_conduit_$1_why])])
aq_client_libs="${aq_client_libs}$1:${aq_conduit_$1_client_libs:+$aq_conduit_$1_client_libs }$aq_conduit_$1_libs;"
aq_client_ld="${aq_client_ld}$1:$aq_conduit_$1_client_ld;"
AS_IF([test "x$aq_conduit_$1_spawners" = xno], [aq_no_spawners="${aq_no_spawners}$1 "])
m4_append([aq_known_conduits], [ $1 ])dnl
])

AC_DEFUN([AQ_CONDUITS],
[AC_ARG_ENABLE([auto-conduit-detect],
  [AS_HELP_STRING([--disable-auto-conduit-detect], [build only the conduits enabled by name])])
CONDUITS=
AQ_CONDUIT_LIBS=
aq_client_libs=
aq_client_ld=
aq_no_spawners=
m4_include([conduits/list.m4])
m4_foreach_w([aq_name], [udp mpi ibv ofi ucx],
  [m4_if(m4_index(m4_defn([aq_known_conduits]), [ ]aq_name[ ]), [-1],
    [AC_ARG_ENABLE(aq_name, [])
     AS_IF([test "x$enable_]aq_name[" = xyes],
       [AC_MSG_ERROR([this release has no ]aq_name[ conduit; it has: m4_normalize(m4_defn([aq_known_conduits]))])])])]
)
AS_IF([test "x$CONDUITS" = x], [AC_MSG_ERROR([no conduit left to build])])
AC_SUBST([CONDUITS])
AC_SUBST([AQ_CONDUIT_LIBS])
AC_SUBST([AQ_CONDUIT_CLIENT_LIBS], [$aq_client_libs])
AC_SUBST([AQ_CONDUIT_CLIENT_LD], [$aq_client_ld])
AC_SUBST([AQ_CONDUIT_NO_SPAWNERS], [$aq_no_spawners])
])
