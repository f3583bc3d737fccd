dnl conduit.m4 - loop needs nothing beyond Linux.
dnl SPDX-License-Identifier: BSD-3-Clause
dnl
dnl Sets aq_conduit_loop to yes or no, and aq_conduit_loop_why to the reason for a no. A conduit over a
dnl library would look for it here, and set aq_conduit_loop_libs to what it links with.
AC_DEFUN([AQ_PROBE_CONDUIT_loop],
[aq_conduit_loop=yes
AC_CHECK_HEADER([sys/un.h], [],
  [aq_conduit_loop=no
   aq_conduit_loop_why="no <sys/un.h>: needs Unix sockets"])
])
