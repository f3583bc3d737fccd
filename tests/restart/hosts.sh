#!/bin/sh
# hosts.sh - N hosts as network namespaces on one switch: runs a command with TEST_HOSTS, a process of each of them.
# Exit status 77 where namespaces cannot be had. SPDX-License-Identifier: BSD-3-Clause
#
#   hosts.sh N COMMAND...       h1 is 10.98.0.1
case $PATH in */usr/sbin*) ;; *) PATH=$PATH:/usr/sbin:/sbin ;; esac
if [ "$1" != inside ]; then
    unshare -rn true 2>/dev/null && command -v ip >/dev/null || exit 77
    exec unshare -rn sh "$0" inside "$@"
fi
shift
count=$1
shift
TEST_HOSTS=
trap 'kill $TEST_HOSTS' EXIT
ip link add switch type bridge && ip link set switch up || exit 77
host=0
while [ $host -lt "$count" ]; do
    host=$((host + 1))
    unshare -n sleep 600 &
    pid=$!
    TEST_HOSTS="$TEST_HOSTS $pid"
    while [ "$(readlink /proc/$pid/ns/net)" = "$(readlink /proc/self/ns/net)" ]; do sleep 0.01; done
    ip link add port$host type veth peer name eth0 netns $pid && ip link set port$host master switch up || exit 77
    nsenter -t $pid -n sh -c "ip link set lo up && ip addr add 10.98.0.$host/24 dev eth0 && ip link set eth0 up" || exit 77
done
export TEST_HOSTS
"$@"
