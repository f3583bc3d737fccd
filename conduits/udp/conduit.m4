dnl conduit.m4 - udp needs libsodium, for the keyed hash in each datagram.
dnl SPDX-License-Identifier: BSD-3-Clause
dnl
dnl Sets aq_conduit_udp to yes or no, aq_conduit_udp_why to the reason for a no, aq_conduit_udp_libs;
dnl aq_conduit_udp_client_libs, which clients link with besides, under the name they know;
dnl aq_conduit_udp_spawners: programs start themselves.
AC_DEFUN([AQ_PROBE_CONDUIT_udp],
[aq_conduit_udp=yes
aq_conduit_udp_spawners=no
AC_CHECK_HEADER([sodium.h], [], [aq_conduit_udp=no])
AC_CHECK_LIB([sodium], [crypto_shorthash_siphashx24], [:], [aq_conduit_udp=no])
AS_IF([test "x$aq_conduit_udp" = xyes], [aq_conduit_udp_libs=-lsodium
   AC_DEFINE([AQ_HAVE_SODIUM], [1], [Define to 1 if libsodium is there.])
   aq_conduit_udp_client_libs=-lamudp],
  [aq_conduit_udp_why="no libsodium (Debian: libsodium-dev)"])
])
