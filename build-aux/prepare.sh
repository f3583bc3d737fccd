# prepare.sh - what ./demo and ./check share: install what is missing, build. Read by sh.
# SPDX-License-Identifier: BSD-3-Clause
#
# Expects top (the source folder) and self (the name to speak under). Owns CONFIG_SHELL: bash, which configure
# prefers, takes half as long again as dash, in configure and in every recipe of make.

[ ! -x /bin/dash ] || export CONFIG_SHELL=/bin/dash

# Each row: who needs it (b build, d programs of the demo, c checks; v checks in virtual machines, s checks under Slurm,
# whose daemons come along, and fuzzing: both only in --more, which continuous integration runs, and beyond; l checks of
# --long), how to see that it is there, Debian packages. An sshd that systemd would start at once is also only for s and v:
# for c it then counts as there.
aq_needs()
{
    cat <<'END'
b|command -v make|make
b|command -v gcc|gcc libc6-dev
b|test -f /usr/include/stdio.h|libc6-dev
b|command -v autoconf|autoconf
b|command -v automake|automake
b|command -v libtoolize|libtool
b|command -v pkg-config|pkg-config
b|perl -MTAP::Parser -e 1|perl
b|pkg-config --exists hwloc|libhwloc-dev
b|pkg-config --exists pmix|libpmix-dev
b|pkg-config --exists libsodium|libsodium-dev
b|test -f /usr/include/infiniband/verbs.h|libibverbs-dev
d|pkg-config --exists fftw3|libfftw3-dev
c|pkg-config --exists cmocka|libcmocka-dev
c|command -v g++|g++
c|command -v clang|clang
c|command -v clang-format|clang-format
c|command -v gfortran|gfortran
c|command -v objdump|binutils
c|command -v valgrind|valgrind
c|command -v mpirun.openmpi|openmpi-bin
c|command -v mpicc.openmpi|libopenmpi-dev
c|command -v mpiexec.mpich|mpich
c|command -v mpicc.mpich|libmpich-dev
c|ls /usr/lib/*/libga-openmpi.a|libglobalarrays-dev
c|ls /usr/lib/*/libarmci-openmpi.a|libarmci-mpi-dev
c|ls /usr/lib/*/libscalapack-openmpi.so|libscalapack-openmpi-dev
c|ls /usr/lib/*/liblapack.so|liblapack-dev
c|ls /usr/lib/*/libblas.so|libblas-dev
c|command -v gnuplot|gnuplot-nox
c|command -v fi_pingpong|libfabric-bin
c|test -x /usr/sbin/sshd -o -d /run/systemd/system|openssh-server
s|test -x /usr/sbin/sshd|openssh-server
c|command -v ssh|openssh-client
c|PATH=$PATH:/usr/sbin:/sbin command -v ip|iproute2
c|test -x /usr/sbin/nft|nftables
c|command -v spin|spin
c|/usr/bin/perl -MIO::Pty -e 1|libio-pty-perl
s|command -v srun|slurm-wlm
s|test -x /usr/sbin/munged|munge
s|ls /usr/lib/llvm*/lib/clang/*/lib/linux/libclang_rt.fuzzer-*.a|libclang-rt-dev
l|PATH=$PATH:/usr/sbin:/sbin command -v debootstrap|debootstrap
v|command -v qemu-system-x86_64|qemu-system-x86
v|command -v busybox && ! ldd "$(command -v busybox)"|busybox-static
v|command -v xz|xz-utils
v|command -v ibv_rc_pingpong|ibverbs-utils
v|command -v ib_write_lat|perftest
v|test -e /etc/libibverbs.d/rxe.driver|ibverbs-providers
v|PATH=$PATH:/usr/sbin:/sbin command -v rdma|iproute2
v|test -x /usr/sbin/sshd|openssh-server
END
}

# Do the checks in virtual machines run here? Without KVM too, but they are for one kind of machine.
aq_can_emulate() { [ "$(uname -m)" = x86_64 ]; }

# aq_missing WHO: the packages of the rows for WHO (letters) whose test fails.
aq_missing()
{
    aq_needs | while IFS='|' read -r who seen packages; do
        case $1 in *"$who"*) ;; *) continue ;; esac
        sh -c "$seen" >/dev/null 2>&1 || printf '%s ' "$packages"
    done
}

# Installs what is missing for WHO; ends the script if that is not possible.
aq_install_missing()
{
    missing=$(aq_missing "$1")
    [ -n "$missing" ] || return 0
    command="apt-get install -y --no-install-recommends $missing"
    if ! command -v apt-get >/dev/null 2>&1; then
        echo "$self: missing here: $missing(these are Debian's names)." >&2
        echo "$self: there is no apt-get to install them with; install their likes and start again." >&2
        exit 1
    fi
    if [ "$(id -u)" = 0 ]; then
        as_root=
    elif command -v sudo >/dev/null 2>&1 && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
        as_root=sudo
    else
        echo "$self: missing: $missing" >&2
        echo "$self: not root, and no sudo without a password. Have somebody run this, then start again:" >&2
        echo "    apt-get update && $command" >&2
        exit 1
    fi
    echo "$self: installing what is missing: ${as_root:+$as_root }$command"
    log=$(mktemp)
    # A list of packages that is missing or old is the usual reason for a first refusal.
    # shellcheck disable=SC2086
    if ! $as_root env DEBIAN_FRONTEND=noninteractive $command >"$log" 2>&1 &&
       ! { $as_root apt-get update >>"$log" 2>&1 &&
           $as_root env DEBIAN_FRONTEND=noninteractive $command >>"$log" 2>&1; }; then
        tail -n 20 "$log" >&2
        rm -f "$log"
        echo "$self: could not install: $missing" >&2
        exit 1
    fi
    rm -f "$log"
    missing=$(aq_missing "$1")
    if [ -n "$missing" ]; then
        echo "$self: still missing after the installation: $missing" >&2
        exit 1
    fi
}

# Makes ./configure when it is missing or, in a git checkout, older than what it is made from.
aq_bootstrap()
{
    if [ -x "$top/configure" ]; then
        [ -e "$top/.git" ] || return 0
        newer=$(cd "$top" && find bootstrap configure.ac Makefile.am m4/aq_*.m4 build-aux/*.am build-aux/*.am.in \
                    conduits base core extended other runtimes apps tests include \
                    \( -name 'bootstrap' -o -name '*.ac' -o -name '*.m4' -o -name 'Makefile.*' -o -name '*.am' \
                       -o -name '*.in' \) -newer configure ! -name 'rules.am' ! -name probes.m4 | head -n 1
                cd "$top" && find include -name '*.h' -newer configure | while read -r h; do
                    grep -qF "$h" fragments.am conduits/rules.am || echo "$h"; done)
        [ -n "$newer" ] || return 0
    fi
    echo "$self: making ./configure"
    (cd "$top" && ./bootstrap) >"$1" 2>&1 || { tail -n 30 "$1" >&2; echo "$self: ./bootstrap failed" >&2; exit 1; }
}

# Holds the build folder, on descriptor 9, until this script and what it execs ends: two at once would overwrite each other.
aq_lock()
{
    mkdir -p "$AQ_BUILD"
    command -v flock >/dev/null 2>&1 || return 0
    exec 9>>"$AQ_BUILD/in-use"
    if ! flock -n 9; then
        echo "$self: $AQ_BUILD is in use by $(cat "$AQ_BUILD/in-use"); start again when that has ended" >&2
        exit 1
    fi
    echo "$self, process $$" >"$AQ_BUILD/in-use"
}

aq_cores() { nproc 2>/dev/null || echo 2; }
