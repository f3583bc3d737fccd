#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# alone.sh - start a rank's program; ranks 1 and 4 in a process namespace of their own, as a container might.
case ${PMIX_RANK:-${PMI_RANK:-0}} in
1|4) exec unshare -p -f --kill-child "$@" ;;
esac
exec "$@"
