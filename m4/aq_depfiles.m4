dnl aq_depfiles.m4 - the files of dependencies, empty as yet, that the Makefile includes.
dnl SPDX-License-Identifier: BSD-3-Clause

dnl AQ_DEPENDENCY_FILES - config.status makes them all in one process. Automake's own way, which finds nothing left to do
dnl when this comes first, starts three processes for each of some 600 files: more than half of the time of a configure
dnl that has its answers cached. Expanded before AC_PROG_CC, which registers automake's.
AC_DEFUN([AQ_DEPENDENCY_FILES],
[AC_CONFIG_COMMANDS([dependency-files],
  [test -f Makefile || AC_MSG_ERROR([there is no Makefile yet])
   aq_deps=`sed -n 's/^DEPDIR = //p' Makefile`
   aq_depfiles=`sed -n "s|^include \(.*\) # am--include-marker|\1|p" Makefile | sed 's|\$(DEPDIR)|'"$aq_deps"'|'`
   for aq_dir in `AS_ECHO(["$aq_depfiles"]) | sed 's|/[[^/]]*$||' | sort -u`; do
     AS_MKDIR_P(["$aq_dir"])
   done
   for aq_file in $aq_depfiles; do
     test -f "$aq_file" || : >"$aq_file" || AC_MSG_ERROR([cannot write $aq_file])
   done])])
