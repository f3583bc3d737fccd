dnl aq_summary.m4 - collects what configure found and prints it at the end.
dnl SPDX-License-Identifier: BSD-3-Clause

dnl AQ_SUMMARY_ON(WHAT, DETAIL)  - is there and used
AC_DEFUN([AQ_SUMMARY_ON],
[AS_VAR_APPEND([aq_summary], ["$(printf '  %-22s yes  %s' "$1" "$2")
"])])

dnl AQ_SUMMARY_OFF(WHAT, WHY, [DEBIAN-PACKAGES]) - is not used; what to install to have it
AC_DEFUN([AQ_SUMMARY_OFF],
[AS_VAR_APPEND([aq_summary], ["$(printf '  %-22s no   %s' "$1" "$2")
"])
m4_ifval([$3], [AS_VAR_APPEND([aq_missing], [" $3"])])])

AC_DEFUN([AQ_SUMMARY_PRINT],
[cat <<AQ_END_OF_SUMMARY

$PACKAGE_NAME $PACKAGE_VERSION (GASNet-EX interface $AQ_RELEASE)

$aq_summary
  thread modes           $aq_modes
  segment                $aq_segment
  checks (debug)         $aq_debug
  sanitizers             ${aq_sanitizers:-none}
  largest segment        $aq_max_segsize
  compiler               $CC $AQ_OPT_CFLAGS
  installs in            $prefix
AQ_END_OF_SUMMARY
AS_IF([test "x$aq_missing" != x],
  [AS_ECHO([""])
   AS_ECHO(["  For what is off:  apt-get install$aq_missing"])])
AS_ECHO([""])
AS_IF([test "x$aq_debug" = xyes && test "x$GASNET_SUPPRESS_DEBUG_WARNING" != x1],
  [AS_ECHO(["  This is a debug build: every call is checked and nothing is optimised. Do not measure with it."])
   AS_ECHO([""])])
])
