#!/usr/bin/perl
# SPDX-License-Identifier: BSD-3-Clause
# run.pl - the ibv conduit over a kernel's own RDMA device, Soft-RoCE in a virtual machine. Prints TAP; one skipped
# test where the machine lacks what is needed.
#
#   run.pl [--guest NAME]... [--suite NAME]... [-n N[,N...]] [--filter RE] [--seconds S] [--quick] [--timeout S]
#          [--local N] [--keep DIR] [--verbose]
#
# Guests    one     one host with one device
#           rails   one host with two devices, each rank on both
#           wire    one host with two devices, each rank on one of them, so that packets cross the wire between
#           hosts   two hosts with a device each, ranks started by ssh
# Suites    sanity  the device itself: ibv_devinfo, the pingpongs of libibverbs
#           conformance  the conformance programs (-n, --filter, --quick)
#           reference    a selection of them with AQ_NO_OVERRIDES=1
#           stress  random traffic with checksums
#           ft      NAS FT, classes S and W
#           kill    a rank dies by kill -9, and its job ends
#           lost    from some time on the wire loses all packets, without a notification (guest wire)
#           down    a port goes down (guest wire)
#           limits  the limit of locked memory is too small: the message contains a remedy
#           leave   ranks end one after the other: the last does not wait for ranks that have ended
#           fences  puts over another device than messages are fenced, or not, as configured (guest rails)
#           lists   transfers to consecutive remote memory share work requests, or not, as configured
#           demand  GEX_FLAG_IMMEDIATE where memory is registered on demand
#           restart  jobs over groups that end while their processes go on: nothing is left of them
#           armci  the programs of libarmci
#           armci-bench  aq-bench armci's rows about a network (--filter net|pipe|service)
#           ga     a program of Global Arrays over libarmci, its results beside those of ARMCI-MPI
#           pin     puts from memory that was never registered, with and without overlap
#           bench   aq-bench beside perftest, on the same device, in the same boot
#           units   the unit tests, on the guest's kernel
# The default is guest one with sanity, conformance, stress, ft, kill, limits and leave. One machine is up at a time; each
# takes half a minute to boot where there is no KVM. --timeout: of each guest, boot included (default 1800).
# --local: so many ranks of a host share memory, as in GASNET_SUPERNODE_MAXSIZE (default 1: all go over the device).
# --keep: where the guests leave files, such as the figures of bench, and what their kernels said (default: nowhere).
# AQ_BUILD is the build folder (default: the current one), AQ_VM_LOCK a file that is locked while a guest is up.
use strict;
use warnings;
use Cwd qw(abs_path);
use Fcntl qw(:flock);
use File::Basename qw(dirname);
use File::Copy qw(copy);
use File::Temp qw(tempdir);
use Getopt::Long qw(:config no_ignore_case);
my $here;
BEGIN { $here = abs_path(dirname($0)) }

my %rxe = (one => [], rails => ['--rxe', 2], wire => ['--rxe', 2], hosts => ['--hosts', 2]);
my @known = qw(sanity conformance reference stress ft kill lost down limits leave fences lists demand restart armci armci-bench ga pin bench units);
my (@guests, @suites, $quick, $filter, $seconds, $keep, $verbose);
my ($ranks, $timeout, $local) = ('2,4', 1800, 1);

# The comment at the beginning of this file.
sub help {
    open my $self, '<', $0 or die "run.pl: $0: $!\n";
    while (my $line = <$self>) {
        last unless $line =~ /^#/;
        print $line =~ s/^# ?//r unless $line =~ /^#!|SPDX/;
    }
    exit 0;
}

GetOptions('guest=s' => \@guests, 'suite=s' => \@suites, 'n=s' => \$ranks, 'filter=s' => \$filter,
           'local=i' => \$local, 'seconds=i' => \$seconds, 'quick' => \$quick, 'timeout=i' => \$timeout,
           'keep=s' => \$keep, 'verbose' => \$verbose, 'help' => \&help) && !@ARGV
    or die "run.pl: its options: run.pl --help\n";
@guests = ('one') unless @guests;
@suites = grep { !/^(reference|lost|down|fences|lists|demand|restart|armci|armci-bench|ga|pin|bench|units)$/ } @known unless @suites;
for my $guest (@guests) { die "run.pl: no guest $guest; there are @{[sort keys %rxe]}\n" unless $rxe{$guest} }
for my $suite (@suites) {
    my $name = $suite;
    die "run.pl: no suite $name; there are @known\n" unless grep { $_ eq $name } @known;
}
my $build = abs_path($ENV{AQ_BUILD} || '.');

sub skip_all {
    print "ok 1 - ibv in a virtual machine # SKIP $_[0]\n1..1\n";
    exit 0;
}

$ENV{PATH} .= ':/usr/sbin:/sbin';
my %package = ('qemu-system-x86_64' => 'qemu-system-x86', busybox => 'busybox-static', rdma => 'iproute2',
               ibv_rc_pingpong => 'ibverbs-utils', ib_write_lat => 'perftest', sshd => 'openssh-server');
my @missing = map { $package{$_} } grep { my $p = $_; !grep { -x "$_/$p" } split /:/, $ENV{PATH} } sort keys %package;
push @missing, 'ibverbs-providers' unless -e '/etc/libibverbs.d/rxe.driver';
skip_all("lacking @missing") if @missing;
skip_all('not an x86_64 machine') if `uname -m` !~ /^x86_64/;
skip_all('this build has no ibv conduit') unless -e "$build/modules/aq-ibv.so" || "@suites" eq 'sanity';

my ($count, $failed) = (0, 0);
$| = 1;

sub verdict {
    my ($good, $text) = @_;
    $count++;
    $failed++ unless $good;
    print $good ? 'ok' : 'not ok', " $count - $text\n";
}

# Programs are built here, and run by the guest.
sub build_armci {
    my ($guest, $folder) = @_;
    local @ENV{qw(AQ_SRC AQ_BUILD)} = (abs_path("$here/../.."), $build);
    mkdir "$folder/armci";
    my $said = `sh '$here/armci.sh' '$folder/armci' 2>&1`;
    verdict($? == 0, "$guest: programs of libarmci build");
    print "# $_\n" for $? ? split /\n/, $said : ();
}

# One guest from boot to end: its lines, numbered anew; its last one tells that none is missing.
sub run_guest {
    my ($guest) = @_;
    my $folder = tempdir('aq-vm.XXXXXX', TMPDIR => 1, CLEANUP => 1);
    my @options = ('--guest', $guest, '-n', $ranks, '--local', $local, $quick ? '--quick' : (),
                   $verbose ? '--verbose' : (),
                   defined $filter ? ('--filter', $filter) : (), defined $seconds ? ('--seconds', $seconds) : (),
                   map { ('--suite', $_) } @suites);
    my $out = $keep // $folder;
    build_armci($guest, $out) if grep { /^(armci|armci-bench|ga)$/ } @suites;
    my @command = ("$here/rxe-vm", '--timeout', $timeout, '--mem', 3072, '--console', "$folder/console", '--rw', $out,
                   $verbose ? '-v' : (), @{$rxe{$guest}}, '--', $^X, "$here/guest.pl", '--build', $build, '--out', $out,
                   @options);
    my $ended = 0;
    my $machine = open my $lines, '-|', @command or die "run.pl: $command[0]: $!\n";
    local @SIG{qw(INT TERM HUP)} = (sub { kill 'TERM', $machine; exit 1 }) x 3; # it ends its guests then
    while (my $line = <$lines>) {
        if    ($line =~ /^(not )?ok (?:\d+ )?- (.*)/) { verdict(!$1, "$guest: $2") }
        elsif ($line =~ /^end (\d+)$/)                { $ended = 1 }
        elsif ($line !~ /^TAP version|^1\.\.\d/)      { print $line =~ /^(#|\s)/ ? $line : "# $line" }
    }
    close $lines;
    my $status = $? >> 8;
    if ($status == 125 && !$ended) {
        verdict(0, "$guest: a guest could be had");
    } elsif (!$ended) {
        verdict(0, "$guest: all suites came to their end" . ($status == 124 ? " within $timeout s" : ''));
    }
    kernel_says($guest, "$folder/console");
}

# The kernel must not have logged an error. With --keep its whole log is kept.
sub kernel_says {
    my ($guest, $console) = @_;
    open my $in, '<', $console or return;
    my @lines = <$in>;
    copy($console, "$keep/console-$guest") or warn "run.pl: $keep/console-$guest: $!\n" if defined $keep;
    my @at = grep { $lines[$_] =~ /BUG:|Oops|Call Trace|WARNING: CPU|Out of memory|soft lockup/ } 0 .. $#lines;
    my ($next, $room) = (0, 300);
    for my $hit (@at) { # what it is about comes before, who did it after
        my ($from, $to) = ($hit < $next + 12 ? $next : $hit - 12, $hit + 60 < $#lines ? $hit + 60 : $#lines);
        print "# kernel: ...\n" if $from > $next;
        for my $line (@lines[$from .. $to]) { print "# kernel: $line" if $room-- > 0 }
        $next = $to + 1;
    }
    verdict(!@at, "$guest: no complaint of the kernel" . (@at && $room < 0 ? ' (the rest: --keep)' : ''));
}

my $lock;
if ($ENV{AQ_VM_LOCK}) {
    open $lock, '>>', $ENV{AQ_VM_LOCK} or die "run.pl: $ENV{AQ_VM_LOCK}: $!\n";
    flock $lock, LOCK_EX or die "run.pl: flock: $!\n";
}
run_guest($_) for @guests;
print "1..$count\n";
exit($failed != 0);
