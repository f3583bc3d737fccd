#!/bin/sh
# bare.sh - the README's two commands on a bare Debian: ./demo and ./check in a clone that nobody
# else may enter, once as root and once as a user with sudo. Prints TAP.
# SPDX-License-Identifier: BSD-3-Clause
#
#   bare.sh [--as root|user]... [ARGUMENT of ./check]...
#
# The Debian is debootstrap's smallest, a fresh copy for each user, so that ./demo and ./check install
# what is missing each time, once as root and once by sudo. The copy is the root of a mount and a
# process name space; the network is the machine's, and so are apt's sources, proxies and
# certificates. Needs root, debootstrap and a mirror; AQ_SRC is the source folder, a git checkout.
# BARE_SUITE names another Debian.

set -u
: "${AQ_SRC:?AQ_SRC is the source folder}"
skip_all() { echo "1..0 # SKIP $*"; exit 0; }
[ "$(id -u)" = 0 ] || skip_all "only root makes a Debian"
PATH=$PATH:/usr/sbin:/sbin
command -v debootstrap >/dev/null || skip_all "debootstrap is not installed"
git -C "$AQ_SRC" rev-parse -q HEAD >/dev/null 2>&1 || skip_all "the source folder is no git checkout"
unshare -m true 2>/dev/null || skip_all "no right to make name spaces"

users=
while [ "${1:-}" = --as ]; do
    users="$users $2"
    shift 2
done
users=${users:-root user}
. "$AQ_SRC/build-aux/tap.sh"
root=$work/fresh # then the user's copy
suite=${BARE_SUITE:-bookworm}
demo_bound=240 # seconds of ./demo, longer by as much as this machine compiles more slowly than a usual one

# The first mirror that apt knows, in either form of its list; Debian's own if there is none.
mirror()
{
    {
        sed -n 's/^URIs: *\([^ ]*\).*/\1/p' /etc/apt/sources.list.d/*.sources
        sed -n 's/^deb \(\[[^]]*\] \)\{0,1\}\([^ ]*\).*/\2/p' /etc/apt/sources.list /etc/apt/sources.list.d/*.list
        echo http://deb.debian.org/debian
    } 2>/dev/null | head -n 1
}

# What lets apt reach its mirrors from here lets it from there.
copy_network()
{
    cp -L /etc/resolv.conf /etc/hosts "$root/etc/" 2>/dev/null
    for file in apt.conf apt.conf.d auth.conf auth.conf.d preferences.d trusted.gpg.d keyrings; do
        [ ! -e "/etc/apt/$file" ] || cp -a "/etc/apt/$file" "$root/etc/apt/"
    done
    if ls /etc/apt/sources.list.d/*.sources /etc/apt/sources.list >/dev/null 2>&1; then
        rm -f "$root/etc/apt/sources.list"
        cp -a /etc/apt/sources.list /etc/apt/sources.list.d "$root/etc/apt/" 2>/dev/null
    fi
    for dir in /usr/share/keyrings /usr/local/share/ca-certificates /etc/ssl/certs; do
        [ ! -d "$dir" ] || { mkdir -p "$root$dir" && cp -aL "$dir/." "$root$dir/"; }
    done
}

make_debian()
{
    mkdir "$root" && debootstrap --variant=minbase "$suite" "$root" "$(mirror)" && copy_network &&
        git clone -q --bare --no-hardlinks "$AQ_SRC" "$root/srv/aqueduct.git"
}

# inside SCRIPT ARGUMENT...: sh -c SCRIPT in the Debian, which is a machine of its own but for its
# network
inside()
{
    unshare --mount --pid --fork --kill-child --uts --ipc sh -c '
        root=$1
        shift
        mount --bind "$root" "$root" && mount -t proc proc "$root/proc" && mount --rbind /sys "$root/sys" &&
            mount -t tmpfs -o mode=755 tmpfs "$root/dev" && mkdir "$root/dev/pts" "$root/dev/shm" &&
            mount -t devpts -o newinstance,ptmxmode=666 devpts "$root/dev/pts" &&
            mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm" || exit 1
        ln -s pts/ptmx "$root/dev/ptmx"
        ln -s /proc/self/fd "$root/dev/fd"
        for node in null zero full random urandom tty; do
            touch "$root/dev/$node"
            mount --bind "/dev/$node" "$root/dev/$node" || exit 1
        done
        cd "$root" && pivot_root . mnt && umount -l /mnt || exit 1
        exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive \
            ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} \
            ${no_proxy:+no_proxy="$no_proxy"} TESTSET_MARK="${TESTSET_MARK:-}" sh -c "$@"' sh "$root" "$@"
}

# as USER COMMAND...: in the clone of that user
as()
{
    who=$1
    shift
    if [ "$who" = root ]; then
        inside 'cd /root/aqueduct && exec "$@"' sh "$@"
    else
        inside 'cd /home/user/aqueduct && exec su user -c "$*"' sh "$@"
    fi
}

# fresh_debian USER: what both have at the start: git, and sudo for the user
fresh_debian()
{
    root=$work/$1
    cp -a "$work/fresh" "$root" || return 1
    inside 'apt-get update && apt-get install -y --no-install-recommends git ca-certificates' || return 1
    [ "$1" != user ] ||
        inside 'apt-get install -y --no-install-recommends sudo && useradd -m user &&
            echo "user ALL=(ALL) NOPASSWD: ALL" >/etc/sudoers.d/user'
}

# installed SELF FILE: SELF says in the file that it installed packages, as this user has to
installed()
{
    by=
    [ "$user" = root ] || by='sudo '
    grep -q "^$1: installing what is missing: ${by}apt-get install" "$2"
}

ends_with_all_passed() { tail -n 1 "$1" | grep -q '^[0-9]* passed, 0 failed, '; }

make_debian >"$work/out" 2>&1
result $? "a bare Debian ($suite)" "$work/out"
for user in $users; do
    home=/root
    [ "$user" = root ] || home=/home/user
    fresh_debian "$user" >"$work/out" 2>&1
    result $? "$user: a fresh one, with git as the README says" "$work/out"
    inside "git clone -q /srv/aqueduct.git $home/aqueduct && chown -R $user: $home && chmod 700 $home" >"$work/out" 2>&1
    result $? "$user: a clone that nobody else may enter" "$work/out"
    began=$(date +%s)
    as "$user" ./demo >"$work/out" 2>&1
    status=$?
    took=$(($(date +%s) - began))
    most=$(as "$user" sh tests/packaging/slowness.sh | awk -v bound=$demo_bound '{ print int(bound * $2) }')
    [ "$took" -le "${most:-0}" ] || status=1
    result $status "$user: ./demo in $took s, at most ${most:-unknown} s" "$work/out"
    installed demo "$work/out"
    result $? "$user: it installed what it needs" "$work/out"
    as "$user" ./check "$@" >"$work/out" 2>&1 && ends_with_all_passed "$work/out"
    result $? "$user: ./check $*: $(tail -n 1 "$work/out")" "$work/out"
    installed check "$work/out"
    result $? "$user: it installed what it needs" "$work/out"
    rm -rf "$root"
done
tap_end
