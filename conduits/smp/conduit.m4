dnl conduit.m4 - smp needs nothing beyond Linux.
dnl SPDX-License-Identifier: BSD-3-Clause
dnl
dnl Sets aq_conduit_smp to yes or no, and aq_conduit_smp_why to the reason for a no.
AC_DEFUN([AQ_PROBE_CONDUIT_smp],
[aq_conduit_smp=yes
AC_CHECK_FUNC([memfd_create], [],
  [aq_conduit_smp=no
   aq_conduit_smp_why="no memfd_create(): needs Linux with glibc 2.27 or later"])
])
