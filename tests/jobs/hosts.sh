#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# hosts.sh - several hosts on one machine: network namespaces, each with a name, an address and an ssh server.
#
#   hosts.sh with N COMMAND...    make the hosts, run COMMAND at the desk, end the hosts; COMMAND's exit status
#   hosts.sh up N                 make hosts h1..hN and the desk, and leave them there
#   hosts.sh down                 end them, with everything that runs on them
#   hosts.sh run HOST COMMAND...  run COMMAND on HOST: h1..hN, desk, or room (sees the processes of all hosts)
#   hosts.sh shell [HOST]         the same with a shell (default: desk)
#   hosts.sh check                is it possible here? Exit status 77, with the reason, if not
#
# With hosts that are up (from outside, or in the room):
#   hosts.sh cut HOST | mend HOST       unplug HOST from the switch, plug it in again
#   hosts.sh drop HOST PERCENT [udp]    lose so many of its packets at random, both ways (only UDP); 0: none
#   hosts.sh hole HOST BYTES            UDP packets above BYTES vanish, nobody is told; 0: no more
#   hosts.sh mtu BYTES [HOST]           of all links, or of one host's (1500 at first)
#   hosts.sh family 4|6|46              which addresses there are (46 at first)
#   hosts.sh die HOST                   as by a power failure
#   hosts.sh ps                         what runs on the hosts: "host pid command" lines, without the ssh servers
#
# What it is  All of it lives in namespaces made here: a "room" (network, mount and process namespace) with a
#             switch (a bridge), in it each host with network, mount, UTS, IPC and process namespaces of its
#             own. Nothing outside changes, and all ends with the room's first process. Names and addresses:
#             h1 is 10.99.0.1 and fd99::1, desk 10.99.0.250 and fd99::fa; ssh is set up so that "ssh h2 command"
#             works from every host without questions. Files are the machine's (as if over NFS), /dev/shm is
#             each host's own.
# Users       root, or a plain user where the kernel lets users make user namespaces (then the ssh servers run
#             as that user). Exit status 77, with the reason, where neither works.
# Needs       unshare and nsenter (util-linux), ip (iproute2), sshd, ssh, ssh-keygen (openssh-server, -client);
#             for drop and hole also nft (nftables).
# Owns        the folder $AQ_HOSTS_DIR (with: made and removed; else /tmp/aq-hosts-UID): keys, logs, numbers of
#             first processes. Several can be there at a time, each with a folder of its own.

set -eu
case $PATH in */usr/sbin*) ;; *) PATH=$PATH:/usr/sbin:/sbin ;; esac
self=$(cd "$(dirname "$0")" && pwd)/${0##*/}
dir=${AQ_HOSTS_DIR:-/tmp/aq-hosts-$(id -u)}
port=2222

die() { echo "hosts.sh: $*" >&2; exit 1; }
skip() { echo "hosts.sh: $*" >&2; exit 77; }

number_of() # host $1: the last part of its address
{
    case $1 in
    desk) echo 250 ;;
    h[1-9]|h[1-9][0-9]|h1[0-9][0-9]) echo "${1#h}" ;;
    *) die "no host is called '$1'" ;;
    esac
}

address6() { printf 'fd99::%x' "$(number_of "$1")"; }

# --- what each process of this construction does ---

write_files()
{
    for kind in host user wrong; do
        ssh-keygen -q -t ed25519 -N '' -C "$kind" -f "$dir/${kind}_key"
    done
    echo "* $(cut -d' ' -f1,2 "$dir/host_key.pub")" >"$dir/known_hosts"
    pam=no # without PAM sshd takes a user whose password begins with ! for locked out
    case $(getent shadow "$login" 2>/dev/null | cut -d: -f2) in '!'*) pam=yes ;; esac
    cat >"$dir/ssh_config" <<END
Host *
    Port $port
    User $login
    IdentityFile $dir/user_key
    IdentitiesOnly yes
    UserKnownHostsFile $dir/known_hosts
    StrictHostKeyChecking yes
    BatchMode yes
    LogLevel ERROR
END
    sed s/user_key/wrong_key/ "$dir/ssh_config" >"$dir/ssh_config.wrong"
    # SHLVL: bash that finds itself to be the first one under sshd reads ~/.bashrc, which may take a minute.
    cat >"$dir/sshd_config" <<END
SetEnv SHLVL=1
Port $port
HostKey $dir/host_key
AuthorizedKeysFile $dir/user_key.pub
StrictModes no
PidFile none
UsePAM $pam
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
MaxStartups 200
MaxSessions 200
UseDNS no
PrintMotd no
END
    write_names 46
    : >"$dir/resolv.conf"
}

write_names() # for address families $1; in place, because the file is mounted
{
    {
        echo '127.0.0.1 localhost'
        echo '::1 localhost ip6-localhost'
        for h in desk $(cat "$dir/names"); do
            case $1 in *4*) echo "10.99.0.$(number_of "$h") $h" ;; esac
            case $1 in *6*) echo "$(address6 "$h") $h" ;; esac
        done
    } >"$dir/hosts"
}

say_pid() # puts the number of this process, as those outside its process namespace count, into file $1
{
    read -r outer _ </proc/self/stat
    echo "$outer" >"$1.new"
    mv "$1.new" "$1"
    mount -t proc proc /proc
}

# the first process of the room
room()
{
    say_pid "$dir/room.pid"
    # so that nothing of sshd's or ip's reaches outside
    mount -t tmpfs -o mode=755 tmpfs /run
    mkdir -p /run/sshd
    mount --bind "$dir/hosts" /etc/hosts
    mount --bind "$dir/ssh_config" /etc/ssh/ssh_config
    [ ! -e /etc/resolv.conf ] || mount --bind "$dir/resolv.conf" /etc/resolv.conf || true
    ip link set lo up
    ip link add name switch type bridge
    ip link set switch up
    for h in desk $(cat "$dir/names"); do
        unshare -n -m -u -i -p -f --kill-child sh "$self" -host "$h" &
    done
    for h in desk $(cat "$dir/names"); do
        await "$dir/$h.pid"
        ip link add name "$h" type veth peer name eth0 netns "$(cat "$dir/$h.pid")"
        ip link set "$h" master switch up
        await "$dir/$h.up"
    done
    : >"$dir/ready"
    reap_for_ever
}

reap_for_ever() # first processes inherit orphans; a shell collects every child while it waits for one
{
    while :; do
        sleep 1 &
        wait $! || :
    done
}

# the first process of a host
host()
{
    say_pid "$dir/$1.pid"
    hostname "$1"
    mount -t tmpfs -o mode=1777 tmpfs /dev/shm
    ip link set lo up
    until ip link show eth0 >/dev/null 2>&1; do sleep 0.01; done
    ip link set eth0 up
    ip addr add "10.99.0.$(number_of "$1")/24" dev eth0
    ip addr add "$(address6 "$1")/64" dev eth0 nodad 2>/dev/null || :
    if [ "$1" = desk ]; then
        : >"$dir/$1.up"
        reap_for_ever
    fi
    as_user "$(command -v sshd)" -D -e -f "$dir/sshd_config" 2>>"$dir/$1.log" &
    sshd=$!
    until grep -q 'listening on' "$dir/$1.log"; do
        kill -0 $sshd || { mv "$dir/$1.log" "$dir/failed"; exit 1; }
        sleep 0.01
    done
    : >"$dir/$1.up"
    while kill -0 $sshd 2>/dev/null; do wait $sshd || :; done
    reap_for_ever
}

# In a user namespace this script is root; users' processes, and sshd, keep their ids of outside.
as_user()
{
    if [ "$uid" = 0 ]; then
        exec "$@"
    else
        exec unshare --map-user="$uid" --map-group="$gid" "$@"
    fi
}

await() # file $1, for 10 s and 2 more a host
{
    n=0
    most=$((1000 + 200 * $(wc -l <"$dir/names")))
    until [ -e "$1" ]; do
        [ ! -e "$dir/failed" ] || { cat "$dir/failed" >&2; return 1; }
        [ $((n += 1)) -le $most ] || { echo "hosts.sh: ${1##*/} did not come" >>"$dir/failed"; return 1; }
        sleep 0.01
    done
}

# --- from outside ---

who_am_i() # uid, gid and login: outside all of this from the system, inside from the folder
{
    if [ -e "$dir/user" ]; then
        read -r uid gid login <"$dir/user"
    else
        uid=$(id -u) gid=$(id -g) login=$(id -un)
    fi
}

check_possible()
{
    roots=
    [ "$uid" = 0 ] || roots=-r
    for tool in unshare nsenter setpriv ip sshd ssh ssh-keygen; do
        command -v $tool >/dev/null || skip "$tool is not installed"
    done
    unshare $roots -n -m -p -f mount -t proc proc /proc 2>/dev/null ||
        skip "$login may not make network, mount and process namespaces here"
    unshare $roots -n ip link add name switch type bridge 2>/dev/null || skip "the kernel makes no bridges for $login"
    [ -e /etc/ssh/ssh_config ] || skip "/etc/ssh/ssh_config is not there"
}

up() # number of hosts $1; with $2, end with this process
{
    case $1 in ''|*[!0-9]*|0|????*) die "up wants the number of hosts, got '$1'" ;; esac
    [ ! -e "$dir/room.pid" ] || die "hosts are up already, in $dir; end them with: $self down"
    who_am_i
    check_possible
    mkdir -p -m 700 "$dir"
    echo "$uid $gid $login" >"$dir/user"
    for n in $(seq "$1"); do echo "h$n"; done >"$dir/names"
    write_files
    AQ_HOSTS_DIR=$dir
    export AQ_HOSTS_DIR
    # The user namespace comes first: entering it clears the parent-death signal.
    setsid ${roots:+unshare -r} setpriv ${2:+--pdeathsig KILL} \
        unshare -n -m -p -f --kill-child sh "$self" -room </dev/null >"$dir/room.log" 2>&1 &
    if ! await "$dir/ready"; then
        cat "$dir/room.log" >&2
        down
        die "the hosts did not come up"
    fi
}

down()
{
    if [ -e "$dir/room.pid" ]; then
        read -r pid <"$dir/room.pid"
        # a number may have been given to another process since
        [ "$(readlink "/proc/$pid/ns/pid" || :)" = "$(readlink /proc/self/ns/pid)" ] ||
            kill -KILL "$pid" 2>/dev/null || :
        while kill -0 "$pid" 2>/dev/null; do sleep 0.01; done
    fi
    [ ! -e "$dir/user" ] || rm -rf "$dir"
    [ ! -d "$dir" ] || rmdir "$dir" # with made it, up did not come far
}

# enter HOST COMMAND...: becomes COMMAND on HOST, in the current folder
enter()
{
    where=$1
    shift
    who_am_i
    if [ "${AQ_HOSTS_INSIDE:-}" != room ]; then
        [ -z "${AQ_HOSTS_INSIDE:-}" ] || die "from inside a host other hosts are reached by ssh only"
        read -r pid <"$dir/room.pid" 2>/dev/null || die "no hosts are up in $dir"
        AQ_HOSTS_DIR=$dir AQ_HOSTS_INSIDE=room
        export AQ_HOSTS_DIR AQ_HOSTS_INSIDE
        users=
        [ "$uid" = 0 ] || users='-U --preserve-credentials'
        exec nsenter -t "$pid" $users -n -m -p sh -c 'cd "$0" && exec "$@"' "$PWD" "$self" run "$where" "$@"
    fi
    [ "$where" != room ] || exec "$@"
    read -r pid <"$dir/$where.pid" 2>/dev/null || die "no host is called '$where'"
    AQ_HOSTS_INSIDE=$where
    export AQ_HOSTS_INSIDE
    exec nsenter -t "$pid" -n -m -u -i -p sh -c 'cd "$0" && exec "$@"' "$PWD" "$self" -as-user "$@"
}

with() # number of hosts $1, command
{
    count=$1
    shift
    dir=$(mktemp -d "${TMPDIR:-/tmp}/aq-hosts.XXXXXX")
    trap 'down' EXIT
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 143' TERM
    up "$count" bound
    # in the background, so that a signal to this script need not wait for the command
    exec 3<&0
    (enter "${AQ_HOSTS_AT:-desk}" "$@") <&3 3<&- &
    exec 3<&-
    rc=0
    wait $! || rc=$?
    exit "$rc"
}

# --- in the room ---

port_of() { number_of "$1" >/dev/null; [ -e "$dir/$1.pid" ] || die "no host is called '$1'"; echo "$1"; }

# all packets of host $2 pass this filter: table $1, tests $3...
filter()
{
    table="$1_$2" link=$2
    shift 2
    {
        echo "table bridge $table"
        echo "delete table bridge $table"
        [ "$1" = none ] || cat <<END
table bridge $table {
    chain c {
        type filter hook forward priority 0
        iifname $link $* counter drop
        oifname $link $* counter drop
    }
}
END
    } | nft -f -
}

every_link() # hosts in $1, ip link set arguments
{
    for h in $1; do
        ip link set "$h" $2 "$3"
        nsenter -t "$(cat "$dir/$h.pid")" -n ip link set eth0 $2 "$3"
    done
}

family()
{
    for h in desk $(cat "$dir/names"); do
        on="nsenter -t $(cat "$dir/$h.pid") -n ip"
        $on -4 addr flush dev eth0
        $on -6 addr flush dev eth0 scope global
        case $1 in *4*) $on addr add "10.99.0.$(number_of "$h")/24" dev eth0 ;; esac
        case $1 in *6*) $on addr add "$(address6 "$h")/64" dev eth0 nodad ;; esac
    done
    write_names "$1"
}

list_processes()
{
    for h in desk $(cat "$dir/names"); do
        read -r init <"$dir/$h.pid"
        own=$(readlink "/proc/$init/ns/pid") || continue
        for p in /proc/[0-9]*; do
            [ "$(readlink "$p/ns/pid" 2>/dev/null)" = "$own" ] || continue
            pid=${p#/proc/}
            read -r stat <"$p/stat" 2>/dev/null || continue
            set -- ${stat##*) }
            case ${stat%)*}:$2 in
            *"(sshd:$init"|*"(sleep:$init") continue ;;
            esac
            [ "$pid" != "$init" ] && [ "$1" != Z ] || continue
            echo "$h $pid $(tr '\0' ' ' <"$p/cmdline" 2>/dev/null)"
        done
    done
}

inside() # runs the rest in the room
{
    [ "${AQ_HOSTS_INSIDE:-}" = room ] || enter room "$self" "$@"
}

usage() { sed -n '/^#   hosts.sh with/,/^#   hosts.sh ps/s/^# \{0,1\}//p' "$self" >&2; exit "${1:-1}"; }

[ $# -gt 0 ] || usage
[ -d "$dir" ] && who_am_i
case $1 in
-room) room ;;
-host) host "$2" ;;
-as-user) shift; as_user "$@" ;;
with) [ $# -ge 3 ] || usage; shift; with "$@" ;;
up) up "${2:-}"; echo "hosts $(tr '\n' ' ' <"$dir/names")are up; try: $self shell; end them with: $self down" ;;
down) down ;;
check) who_am_i; check_possible ;;
run) [ $# -ge 3 ] || usage; shift; enter "$@" ;;
shell) enter "${2:-desk}" "${SHELL:-sh}" ;;
cut) inside "$@"; ip link set "$(port_of "$2")" down ;;
mend) inside "$@"; ip link set "$(port_of "$2")" up ;;
drop)
    inside "$@"
    if [ "$3" = 0 ]; then filter drop "$(port_of "$2")" none; exit; fi
    only='' some=
    [ "${4:-}" != udp ] || only='meta l4proto udp'
    [ "$3" -ge 100 ] || some="numgen random mod 100 < $3"
    filter drop "$(port_of "$2")" "$only $some"
    ;;
hole)
    inside "$@"
    if [ "$3" = 0 ]; then filter hole "$(port_of "$2")" none; exit; fi
    every_link "desk $(cat "$dir/names")" gso_max_segs 1 # packets as they would be on a wire
    filter hole "$(port_of "$2")" "meta l4proto udp meta length > $3"
    ;;
mtu) inside "$@"; every_link "${3:-desk $(cat "$dir/names")}" mtu "$2" ;;
family) inside "$@"; family "$2" ;;
die)
    inside "$@"
    ip link set "$(port_of "$2")" down # a machine without power says no farewells
    kill -KILL "$(cat "$dir/$2.pid")"
    ;;
ps) inside "$@"; list_processes ;;
-h|--help) usage 0 ;;
*) usage ;;
esac
