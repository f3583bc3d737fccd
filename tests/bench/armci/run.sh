#!/bin/sh
# run.sh - aq-bench armci: libarmci beside ARMCI-MPI and MPI. Each row stands beside what it is
# compared with, measured in the same processes where libraries can share them, else in turn.
# SPDX-License-Identifier: BSD-3-Clause
#
# AQ_INSTALL is the installed tree, MPICC the wrapper of the MPI that its libarmci was built with.
# bench_armci.h says what a row is.

set -u
here=$(cd "$(dirname "$0")" && pwd)

usage()
{
    cat <<END
usage: aq-bench armci [options]
  --quick          short slices: about a minute on an idle machine
  --ga             Global Arrays on libarmci and on ARMCI-MPI, nothing else: the same program is
                   linked with both, and they take turns; 2 and 4 ranks, and 2 ranks without shared
                   memory (Open MPI only; over udp in place of smp)
  --strict         exit with 1 if a row has missed its goal
  --only A,B       sections whose name contains A or B
  --list           print the sections and stop
  -c, --conduit C  the networks to measure; udp,mpi unless told otherwise, with --ga smp,mpi
  --no-peers       leave out ARMCI-MPI
  --json FILE      also write all rows as JSON
  --markdown FILE  also write all rows as tables
  --plot DIR       also draw SVG plots there, with gnuplot
A row with a goal ends with the ratio, the goal and ok, MISSED, or noise (the machine was too
unquiet to say). Open MPI's mpirun is used with --oversubscribe; the section on a slow link needs
root and makes a network of its own, with a link of 4 Gbit/s.
END
    exit "$1"
}

fail()
{
    echo "aq-bench armci: $*" >&2
    exit 2
}

how=full only='' list=no strict=no peers=yes ga=no json='' markdown='' plot='' networks=''
while [ $# -gt 0 ]; do
    case $1 in
    --quick) how=quick ;;
    --strict) strict=yes ;;
    --list) list=yes ;;
    --ga) ga=yes ;;
    --peers) peers=yes ;;
    --no-peers) peers=no ;;
    -h | --help) usage 0 ;;
    --only | --json | --markdown | --plot | -c | --conduit)
        [ $# -ge 2 ] || usage 2 >&2
        case $1 in
        --only) only=$2 ;;
        --json) json=$2 ;;
        --markdown) markdown=$2 ;;
        --plot) plot=$2 ;;
        *) networks=$2 ;;
        esac
        shift
        ;;
    *) usage 2 >&2 ;;
    esac
    shift
done

[ -n "$networks" ] || { [ $ga = no ] && networks=udp,mpi || networks=smp,mpi; }
tree=${AQ_INSTALL:?AQ_INSTALL is the installed tree}
[ -n "${MPICC:-}" ] || MPICC=mpicc
MPIRUN=${MPIRUN:-${MPICC%mpicc*}mpirun${MPICC##*mpicc}}
if [ "$list" = no ]; then
    [ -f "$tree/include/armci.h" ] || fail "there is no libarmci in $tree"
    command -v "$MPICC" >/dev/null || fail "$MPICC is not in PATH; MPICC names the wrapper"
fi
work= child=
# leave: the job under way has ended before the folder goes; a compiler that got the signal, too,
# may write there for a moment
leave()
{
    trap '' INT TERM HUP
    if [ -n "$child" ]; then
        kill "$child" 2>/dev/null
        wait "$child" 2>/dev/null
    fi
    [ -n "$work" ] || return
    for try in 1 2 3 4 5 6 7 8 9 10; do
        rm -rf "$work" 2>/dev/null && return
        sleep 0.1
    done
    rm -rf "$work"
}
trap leave EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP
work=$(mktemp -d "${TMPDIR:-/tmp}/aq-bench-XXXXXX") || exit 2
# what MPI's launchers leave behind when a signal meets their start goes with the folder
mkdir "$work/tmp" || exit 2
export TMPDIR="$work/tmp"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
: >"$work/rows"

# --- programs, compiled when they are first needed ---

# program NAME LIBRARY: its path in $program; LIBRARY is ours, or the MPI of an ARMCI-MPI.
program()
{
    program=$work/$1-$2
    [ -x "$program" ] && return 0
    case $2 in
    ours) set -- "$1" "$MPICC" -DBENCH_OURS -I"$tree/include" -L"$tree/lib" -larmci -Wl,-rpath,"$tree/lib" ;;
    *) set -- "$1" "mpicc.$2" "-larmci-$2" ;;
    esac
    name=$1 compiler=$2
    shift 2
    [ "$name" != ga ] || set -- "-lga-$mpi" "$@" "-lscalapack-$mpi" -llapack -lblas -lgfortran
    command -v "$compiler" >/dev/null &&
        "$compiler" -O3 "$here/armci_$name.c" "$here/bench_armci.c" -o "$program" "$@" -lpthread -lm \
            2>"$work/compiler"
}

is_openmpi() { "$1" --showme:version 2>/dev/null | grep -q 'Open MPI'; }

# --- sections ---

# wanted TITLE: by --only
wanted()
{
    [ -z "$only" ] && return 0
    for word in $(echo "$only" | tr ' ,' '_ '); do
        case $(echo "$1" | tr ' ' '_') in *"$word"*) return 0 ;; esac
    done
    return 1
}

# launch LIBRARY RANKS BINDING: the launcher's line in $launch
launch()
{
    if [ "$1" = ours ]; then compiler=$MPICC run=$MPIRUN; else compiler=mpicc.$1 run=mpirun.$1; fi
    if is_openmpi "$compiler"; then
        launch="$run --oversubscribe --bind-to $3 -n $2"
    else
        launch="$run -bind-to $3 -n $2"
    fi
}

# section TITLE LIBRARY RANKS BINDING SETTINGS PROGRAM [ARGUMENT...]
section()
{
    title=$1 library=$2 ranks=$3 binding=$4 settings=$5 name=$6
    shift 6
    wanted "$title" || return 0
    if [ "$list" = yes ]; then
        echo "$title"
        return 0
    fi
    echo "# $title"
    if ! program "$name" "$library"; then
        echo "left out: armci_$name.c does not compile with this library"
        return 0
    fi
    launch "$library" "$ranks" "$binding"
    # shellcheck disable=SC2086
    env $settings timeout -k 5 $limit $before $launch "$program" "$@" $how </dev/null >"$work/out" 2>"$work/err" &
    child=$!
    wait $child || { echo "left out: ended with status $?"; tail -5 "$work/err"; }
    child=
    sed "s/^/$title|/" "$work/out" | tee -a "$work/rows" | awk -v form=text -f "$here/rows.awk"
}
before='' limit=600
[ $how = full ] || limit=60

# one_host: ranks that share memory
one_host()
{
    twice=''
    is_openmpi "$MPICC" && twice=OMPI_MCA_btl_vader_single_copy_mechanism=none
    section "one host: MPI copies twice" ours 2 core "GASNET_CONDUIT=smp $twice" local
    section "one host: MPI copies once" ours 2 core GASNET_CONDUIT=smp local
    section "one host: locks" ours 8 none GASNET_CONDUIT=smp lock
    section "one host: service" ours 4 none GASNET_CONDUIT=smp service many
    section "one host: no memory shared" ours 2 none "GASNET_CONDUIT=udp $apart" local
}

# network CONDUIT
network()
{
    conduit="GASNET_CONDUIT=$1"
    section "$1: progress" ours 2 none "$conduit $apart" service progress
    [ "$1" = mpi ] ||
        section "$1: no service thread" ours 2 none "$conduit $apart GASNET_PROGRESS_THREAD=0" \
            service control
    section "$1: flood" ours 4 none "$conduit $apart" service many
    [ "$1" = mpi ] ||
        section "$1: flood on two hosts in name" ours 4 none \
            "$conduit GASNET_SUPERNODE_MAXSIZE=2" service many
    section "$1: transfers" ours 2 none "$conduit $apart" net
    section "$1: pipelines" ours 2 none "$conduit $apart" pipe plain
}

others()
{
    for mpi in openmpi mpich; do
        [ "$list" = no ] && ! program local $mpi && continue
        section "ARMCI-MPI over $mpi: one host" $mpi 2 core A= local
        section "ARMCI-MPI over $mpi: transfers" $mpi 2 core A= net
    done
}

# A loopback interface of its own, through which a token bucket lets 4 Gbit/s.
slow_link()
{
    [ "$(id -u)" = 0 ] && command -v tc >/dev/null && unshare -n true 2>/dev/null || return 0
    before="unshare -n sh $work/shape"
    cat >"$work/shape" <<'END'
ip link set lo up && tc qdisc add dev lo root tbf rate 4gbit burst 256k latency 20ms || exit 1
exec "$@"
END
    section "udp: pipelines on a slow link" ours 2 none "GASNET_CONDUIT=udp $apart" pipe shaped
    before=''
}

# --- Global Arrays: one program, each ARMCI in turn ---

# ga_round RANKS BINDING ROUND LIBRARY [CONDUIT]: one run with $sharing; its rows go to $work/rounds
ga_round()
{
    program ga "$4" || fail "armci_ga.c does not link with Global Arrays of $mpi: $(tail -n 1 "$work/compiler")"
    launch "$4" "$1" "$2"
    # shellcheck disable=SC2086
    env GASNET_CONDUIT="${5:-}" $sharing timeout -k 5 $limit $launch "$program" $how </dev/null >"$work/out" 2>"$work/err" &
    child=$!
    wait $child || { cat "$work/err" >&2; fail "armci_ga on ${5:-$4} has ended with status $?"; }
    child=
    sed "s/^/${5:-$4}|$3|/" "$work/out" >>"$work/rounds"
}

# ga_sections RANKS BINDING [WHICH]: all networks and the other ARMCI in each round; WHICH ranks
ga_sections()
{
    wanted_networks=''
    for network in $(echo "$networks" | tr , ' '); do
        title="Global Arrays: $1 ranks${3:-}, $network"
        wanted "$title" || continue
        [ "$list" = no ] || echo "$title"
        wanted_networks="$wanted_networks $network"
    done
    [ "$list" = no ] && [ -n "$wanted_networks" ] || return 0
    : >"$work/rounds"
    for round in $rounds; do
        for network in $wanted_networks; do ga_round "$1" "$2" "$round" ours "$network"; done
        [ "$peers" = no ] || ga_round "$1" "$2" "$round" "$mpi"
    done
    for network in $wanted_networks; do
        title="Global Arrays: $1 ranks${3:-}, $network"
        echo "# $title"
        awk -f "$here/ga.awk" -v ours="$network" -v theirs="$mpi" -v title="$title" "$work/rounds" |
            tee -a "$work/rows" | awk -v form=text -f "$here/rows.awk"
    done
}

apart=GASNET_SUPERNODE_MAXSIZE=1
if [ $ga = yes ]; then
    mpi=mpich rounds='1 2 3 4 5'
    is_openmpi "$MPICC" && mpi=openmpi
    [ $how = full ] || rounds='1 2'
    sharing=''
    ga_sections 2 core
    ga_sections 4 none
    if [ $mpi = openmpi ]; then
        # smp has no ranks without shared memory
        networks=$(echo "$networks" | tr , '\n' | sed 's/^smp$/udp/' | sort -u -r | tr '\n' ' ')
        sharing="$apart OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,self OMPI_MCA_osc=pt2pt"
        ga_sections 2 none ' without shared memory'
    elif [ "$list" = no ] && wanted 'Global Arrays: without shared memory'; then
        echo "# Global Arrays without shared memory: left out, MPICH is not told how"
    fi
else
    one_host
    for network in $(echo "$networks" | tr , ' '); do
        network "$network"
        [ "$network" != udp ] || slow_link
    done
    [ "$peers" = no ] || others
fi
[ "$list" = no ] || exit 0

# --- what needs two sections, files, the verdict ---

awk -F'|' -f "$here/rows.awk" -v form=beside "$work/rows" >"$work/beside"
if [ -s "$work/beside" ]; then
    echo "# sections beside each other"
    awk -v form=text -f "$here/rows.awk" "$work/beside"
    cat "$work/beside" >>"$work/rows"
fi
[ -z "$json" ] || awk -v form=json -f "$here/rows.awk" "$work/rows" >"$json" || exit 2
machine()
{
    echo "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) processors; Linux $(uname -r);" \
        "load average at the end $(cut -d ' ' -f 2 /proc/loadavg)"
}
[ -z "$markdown" ] || awk -v form=markdown -v how="$how" -v date="$(date -u '+%Y-%m-%d, %H:%M')" -v machine="$(machine)" \
    -v ga="$ga" -f "$here/rows.awk" "$work/rows" >"$markdown" || exit 2
[ -z "$plot" ] || sh "$here/plot.sh" "$work/rows" "$plot" || exit 2
awk -F'|' '{ n[$10]++ } END { printf "# %d ok, %d MISSED, %d noise\n", n["ok"], n["MISSED"], n["noise"] }' "$work/rows"
[ "$strict" = no ] || ! grep -q '|MISSED$' "$work/rows"
