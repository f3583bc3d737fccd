#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# no-device.sh - a machine without an RDMA device: the ibv conduit ends with a message, the others work as usual.
# Runs in a build folder. TAP.

if [ ! -e modules/aq-ibv.so ]; then
    echo "ok 1 - ibv without a device # SKIP this build has no ibv conduit"
    echo "1..1"
    exit 0
fi
if ls /sys/class/infiniband/* >/dev/null 2>&1; then
    echo "ok 1 - ibv without a device # SKIP this machine has one"
    echo "1..1"
    exit 0
fi

count=0
# expect NAME CODE PATTERN COMMAND...: CODE is 0 or not0; the output of COMMAND, on one line, matches PATTERN
expect()
{
    name=$1 code=$2 pattern=$3
    shift 3
    count=$((count + 1))
    timeout 30 "$@" >no-device.log 2>&1 </dev/null
    rc=$?
    if { [ "$code" = 0 ] && [ $rc -eq 0 ]; } || { [ "$code" = not0 ] && [ $rc -ne 0 ] && [ $rc -lt 124 ]; }; then
        if tr '\n' ' ' <no-device.log | grep -Eq -- "$pattern"; then
            echo "ok $count - $name"
            return
        fi
    fi
    echo "not ok $count - $name"
    echo "# exit code $rc, expected $code; the output should match $pattern"
    sed 's/^/# /' no-device.log
}

program=tests/conformance/bin/test_client_plain-par
[ -x $program ] || program=tests/conformance/bin/test_client_plain-seq
no_device='no (RDMA|InfiniBand|verbs)[^.;]*device|no device'
expect 'a job over ibv ends and says that there is no device' not0 "$no_device" \
    env GASNET_CONDUIT=ibv GASNET_SUPERNODE_MAXSIZE=1 ./gasnetrun -n 2 $program
expect 'so does a job whose ranks share memory' not0 "$no_device" env GASNET_CONDUIT=ibv ./gasnetrun -n 2 $program
expect 'aq-info lists ibv and the reason against it' 0 "ibv.*($no_device)" ./aq-info --conduits
expect 'the same program runs over another conduit' 0 '^' \
    env GASNET_CONDUIT=smp ./gasnetrun -n 2 $program
rm -f no-device.log
echo "1..$count"
