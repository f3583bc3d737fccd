dnl conduit.m4 - ibv needs the verbs library, rdma-core's libibverbs; its module links with it.
dnl SPDX-License-Identifier: BSD-3-Clause
dnl
dnl Sets aq_conduit_ibv to yes or no, aq_conduit_ibv_why to the reason for a no, IBV_MODULE_CC and IBV_MODULE_LIBS, and
dnl aq_conduit_ibv_client_libs: static archives hold the module, so their clients link with the library.
AC_DEFUN([AQ_PROBE_CONDUIT_ibv],
[aq_conduit_ibv=yes
AC_CHECK_HEADER([infiniband/verbs.h], [], [aq_conduit_ibv=no])
AC_CHECK_LIB([ibverbs], [_ibv_query_gid_ex], [:], [aq_conduit_ibv=no])
AS_IF([test "x$aq_conduit_ibv" = xyes],
  [IBV_MODULE_LIBS=-libverbs
   aq_conduit_ibv_client_libs=-libverbs
   AC_CHECK_LIB([ibverbs], [ibv_is_fork_initialized],
     [AC_DEFINE([AQ_HAVE_IBV_FORK_STATE], [1], [Define to 1 if libibverbs (35) tells whether forks need its help.])])],
  [aq_conduit_ibv_why="no libibverbs 32 or later with its headers (Debian: libibverbs-dev)"])
IBV_MODULE_CC=$CC
AC_SUBST([IBV_MODULE_CC])
AC_SUBST([IBV_MODULE_LIBS])
])
