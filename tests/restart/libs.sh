#!/bin/sh
# libs.sh BUILD - what a program links to that uses the archive of all conduits, par. SPDX-License-Identifier: BSD-3-Clause
value() { sed -n "s/^$1 = //p" "$build/Makefile" | head -1; }
build=$1
echo "$build/libaq-any-par.a" -lpthread -lm "$(value AQ_SYSTEM_LIBS)" "$(value AQ_CONDUIT_LIBS)"
