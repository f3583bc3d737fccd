#!/usr/bin/perl
# run.pl - soak: ranks wait for each other while random ones are stopped and continued. Prints TAP.
# SPDX-License-Identifier: BSD-3-Clause
#
#   run.pl [SECONDS]     of all jobs together (60). AQ_BUILD is the build folder
#
# A job has failed if nothing has happened for 20 s while all its processes could run. Sleeps have no limit but
# AQ_SLEEP, so a lost wake-up is not made good by the next look.
use strict;
use warnings;
use File::Temp qw(tempdir);
use POSIX qw(:sys_wait_h);
use Time::HiRes qw(time sleep);

my $build   = $ENV{AQ_BUILD} || '.';
my $seconds = shift // 60;
my $patience_s = 20;
my @jobs = (
    # mode, ranks, conduit, ranks that share memory
    ['seq', 2, 'smp', 2], ['par', 2, 'smp', 2], ['seq', 5, 'smp', 5], ['par', 4, 'smp', 4],
    ['seq', 4, 'udp', 2], ['par', 4, 'udp', 2], ['par', 3, 'udp', 1],
);
@jobs = grep { -x "$build/tests/soak/soak-$_->[0]" } @jobs;
@jobs = grep { $_->[2] eq 'smp' } @jobs unless `$build/aq-info 2>/dev/null` =~ /\budp\b/;
if (!@jobs) {
    print "1..0 # SKIP the programs are not built\n";
    exit 0;
}
print '1..', scalar @jobs, "\n";
my ($number, $failed) = (0, 0);

sub slurp {
    my ($path) = @_;
    open(my $in, '<', $path) or return '';
    local $/;
    return <$in> // '';
}

sub pids {
    my ($work) = @_;
    return map { slurp($_) =~ /^(\d+)\n/ ? $1 : () } glob "$work/pid.*";
}

# Stops one of them for a while; a process that has ended meanwhile is none of ours any more.
sub disturb {
    my ($work) = @_;
    my @pids = grep { slurp("/proc/$_/cmdline") =~ m{soak-} } pids($work);
    sleep(rand(0.03)), return if !@pids;
    my $pid = $pids[rand @pids];
    kill 'STOP', $pid;
    sleep(rand() < 0.1 ? 0.2 : rand(0.02));
    kill 'CONT', $pid;
    sleep(rand(0.03));
}

# Returns why it failed, or '', and the rounds.
sub job {
    my ($mode, $ranks, $conduit, $share, $length) = @_;
    my $work = tempdir('aq-soak.XXXXXX', TMPDIR => 1, CLEANUP => 1);
    my $pid = fork() // die "fork: $!";
    if ($pid == 0) {
        open(STDOUT, '>', "$work/out");
        open(STDERR, '>&', \*STDOUT);
        @ENV{qw(AQ_SLEEP AQ_STALL_REPORT)} = ('1000s', 10);
        $ENV{GASNET_SUPERNODE_MAXSIZE} = $share if $conduit ne 'smp';
        exec("$build/gasnetrun", '-n', $ranks, '-c', $conduit, "$build/tests/soak/soak-$mode", $length, $work) or POSIX::_exit(127);
    }
    my ($size, $moved, $status) = (0, time, undef);
    while (1) {
        disturb($work);
        last if waitpid($pid, WNOHANG) == $pid && defined($status = $?);
        my $is = -s "$work/out" // 0;
        ($size, $moved) = ($is, time) if $is != $size;
        next if time < $moved + $patience_s;
        kill 'TERM', $pid;
        waitpid($pid, 0);
        $status = -1;
        last;
    }
    my $said = slurp("$work/out");
    my ($rounds) = $said =~ /.*^(\d+)$/ms;
    return ($status == 0 ? '' : "status $status\n$said", $rounds // 0);
}

for my $job (@jobs) {
    my ($mode, $ranks, $conduit, $share) = @$job;
    my ($why, $rounds) = job(@$job, $seconds / @jobs);
    $number++;
    print $why eq '' ? 'ok' : 'not ok', " $number - $conduit, $mode, $ranks ranks, $share share memory: $rounds rounds\n";
    next if $why eq '';
    $failed = 1;
    my @lines = split /\n/, $why;
    print "# $_\n" for @lines > 30 ? @lines[-30 .. -1] : @lines;
}
exit $failed;
