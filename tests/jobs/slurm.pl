#!/usr/bin/perl
# SPDX-License-Identifier: BSD-3-Clause
# slurm.pl - jobs on several hosts under other people's launchers: do the ranks find each other, does the job
# end everywhere, in time, with the right exit code, and is nothing left of it? Prints TAP.
#
#   slurm.pl [--launcher openmpi|mpich|slurm|slurm-pmi2]... [--case NAME]... [--verbose] [--long]
#
# The hosts are those of tests/jobs/hosts.sh, six ranks on three of them; Slurm's daemons those of
# with-nodes.sh. What is run is spawn_case (other/spawn alone) and exit_case over udp.
# AQ_BUILD is the build folder (default: the current one). A launcher that is not installed is skipped.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Temp qw(tempdir);
use POSIX qw(:sys_wait_h setsid);
use Time::HiRes qw(time sleep);

my $here    = abs_path(dirname($0));
my $hosts   = "$here/hosts.sh";
my $build   = abs_path($ENV{AQ_BUILD} || '.');
my $program = $ENV{AQ_SPAWN_CASE} || "$build/tests/jobs/spawn_case";
my $udp     = "$build/tests/jobs/exit_case-par";     # takes the conduit from GASNET_CONDUIT
my $alone   = "$here/alone.sh";
my ($ranks, $verbose, $long, $inside, @launchers, @only) = (6, 0, 0);
while (@ARGV) {
    my $word = shift;
    if    ($word eq '--launcher') { push @launchers, shift }
    elsif ($word eq '--inside')   { $inside = shift }
    elsif ($word eq '--case')     { push @only, shift }
    elsif ($word eq '--verbose')  { $verbose = 1 }
    elsif ($word eq '--long')     { $long = 1 }
    else                          { die "slurm.pl: unknown option $word\n" }
}
$ENV{OMPI_ALLOW_RUN_AS_ROOT} = $ENV{OMPI_ALLOW_RUN_AS_ROOT_CONFIRM} = 1;
delete @ENV{qw(GASNET_PSHM_NODES GASNET_EXITTIMEOUT)};
my $timeout_s = 1 + 0.1 * $ranks;    # GASNET_EXITTIMEOUT by default

sub have { my $name = shift; return scalar grep { -x "$_/$name" } split(/:/, $ENV{PATH}), '/usr/sbin' }

# --- inside: in the room, with the hosts up ---

my ($tests, $failed) = (0, 0);

sub report {
    my ($name, $problems, $text) = @_;
    $tests++;
    $failed++ if @$problems;
    print @$problems ? "not ok $tests - $name\n" : "ok $tests - $name\n";
    print "# $_\n" for @$problems;
    print map { "#   $_\n" } split /\n/, $text if @$problems || $verbose;
    return;
}

sub command {
    my ($launcher, $want, @args) = @_;
    my @desk = ($hosts, 'run', 'desk');
    if ($launcher eq 'openmpi') {
        my @pass = map { ('-x', $_) } sort keys %{$want->{env} || {}};
        return (@desk, 'mpirun.openmpi', '--host', 'h1:2,h2:2,h3:2', '-n', $ranks, @pass, @args);
    }
    return (@desk, 'mpiexec.hydra', '-launcher', 'ssh', '-hosts', 'h1:2,h2:2,h3:2', '-n', $ranks, @args)
        if $launcher eq 'mpich';
    my @srun = ('srun', '-Q', '--overcommit', '--mpi=' . ($launcher eq 'slurm' ? 'pmix' : 'pmi2'));
    return (@desk, @srun, '-N', 3, '-n', $ranks, '-m', $want->{cyclic} ? 'cyclic' : 'block', @args);
}

# processes of the program on all hosts
sub left {
    my $name = shift;
    my @found;
    for my $dir (glob '/proc/[0-9]*') {
        open my $f, '<', "$dir/cmdline" or next;
        my $line = <$f>;
        next unless defined $line && $line =~ /^\Q$name\E\0/;
        open my $s, '<', "$dir/stat" or next;
        my $stat = <$s>;
        push @found, $dir =~ /(\d+)/ if defined $stat && $stat !~ /\) [ZX] /;
    }
    return @found;
}

# the youngest process whose command line matches; those of the last run may still be there
sub find_process {
    my $pattern = shift;
    for my $dir (sort { substr($b, 6) <=> substr($a, 6) } glob '/proc/[0-9]*') {
        open my $f, '<', "$dir/cmdline" or next;
        my $line = <$f>;
        return substr $dir, 6 if defined $line && $line =~ $pattern;
    }
    return;
}

my @still;    # ranks that were there when a launcher's time was up

# run it to its end, at most $limit seconds; once all ranks are ready, kill $victim, or call it
sub run {
    my ($cmd, $limit, $output, $victim, $prog) = @_;
    unlink $output;    # what the last job has said
    my $pid = fork;
    die "fork: $!" unless defined $pid;
    if ($pid == 0) {
        setsid();
        open STDIN,  '<', '/dev/null' or die;
        open STDOUT, '>', $output or die;
        open STDERR, '>&STDOUT' or die;
        exec @$cmd or POSIX::_exit(126);
    }
    my $begin = time;
    while (waitpid($pid, WNOHANG) != $pid) {
        if ($victim && (() = slurp($output) =~ /^ready \d+/mg) == $ranks) {
            sleep 1;    # until helpers of the daemons' own, and those of the last run, are gone
            my $daemon = ref $victim eq 'CODE' ? $victim->() : find_process($victim);
            kill 'KILL', $daemon if $daemon;
            undef $victim;
            $begin = time;
        }
        if (time - $begin > $limit) {
            @still = left($prog);
            kill 'KILL', -$pid;
            waitpid $pid, 0;
            return ('timeout', $limit);
        }
        sleep 0.01;
    }
    return ($? & 127 ? 128 + ($? & 127) : $? >> 8, time - $begin);
}

sub slurp {
    open my $f, '<', shift or return '';
    local $/;
    my $text = <$f>;
    return defined $text ? $text : '';
}

# %want: code => pattern; says => pattern; count => [pattern, number]; within => seconds; what to run: program,
# args, env, wrapper, cyclic; victim, limit: see run(); after: called at the end;
# ranks_end: they must be gone though the launcher stays
sub run_case {
    my ($launcher, $output, $case, $name, %want) = @_;
    my $prog = $want{program} || $program;
    my @words = ($want{wrapper} || (), $prog, $case, @{$want{args} || []});
    local @ENV{keys %{$want{env}}} = values %{$want{env}} if $want{env};
    my ($code, $seconds) = run([command($launcher, \%want, @words)], $want{limit} || 30, $output,
                               $want{victim}, $prog);
    my $text = slurp($output);
    my @problems;
    push @problems, "ranks outlive the launcher's timeout: @still" if $code eq 'timeout' && $want{ranks_end} && @still;
    $want{after}->() if $want{after};
    push @problems, "exit code $code, expected $want{code}" unless $code =~ /^(?:$want{code})$/;
    push @problems, sprintf 'took %.1f s, allowed are %.1f s', $seconds, $want{within} if $seconds > $want{within};
    push @problems, "nothing says /$want{says}/" if $want{says} && $text !~ /$want{says}/m;
    if ($want{count}) {
        my ($pattern, $number) = @{$want{count}};
        my $n = () = $text =~ /$pattern/mg;
        push @problems, "$n times /$pattern/, expected $number" if $n != $number;
    }
    my $end = time + 2;
    my @left;
    sleep 0.05 while (@left = left($prog)) && time < $end;
    push @problems, 'left behind: process ' . join ', ', @left if @left;
    kill 'KILL', @left if @left;
    report(sprintf('%s: %s (%.1f s)', $launcher, $name, $seconds), \@problems, $text);
    return;
}

# which cases run under which launcher; the others are for --long
my %short = (
    slurm        => qr/./,
    'slurm-pmi2' => qr/^(?:data|quit|udp-data)$/,
    openmpi      => qr/^(?:data|quit|kill|killhost|udp-data|udp-kill)$/,
    mpich        => qr/^(?:data|split|codes|quit|kill|orphan|udp-data)$/,
);

# a case of spawn_case, or of exit_case over udp; see run_case() for the rest
sub try_case {
    my ($launcher, $output, $id, $name, @args) = @_;
    my %want = @args;
    return if @only && !grep { $_ eq $id } @only;
    return unless $long || $id =~ $short{$launcher};
    return if $id =~ /^udp/ && !-x $udp;
    run_case($launcher, $output, $want{case} || $id, $name, %want);
    return;
}

# Seconds that a launcher may need of its own: three times what it takes to run true, and no less than on
# a busy machine.
sub start_of {
    my ($launcher, $output) = @_;
    my ($code, $seconds) = run([command($launcher, {}, 'true')], 30, $output, undef, 'true');
    printf "# %s runs true in %.1f s, exit code %s\n", $launcher, $seconds, $code;
    my $least = $launcher eq 'openmpi' ? 8 : 5;
    return 3 * $seconds > $least ? 3 * $seconds : $least;
}

sub inside {
    my $launcher = shift;
    my $output = tempdir('aq-slurm-run.XXXXXX', TMPDIR => 1, CLEANUP => 1) . '/output';
    my $start = start_of($launcher, $output);
    my $end = $start + $timeout_s + 1;
    my $all = $ranks - 1;
    my $hydra = $launcher eq 'mpich';    # ends the others itself, at once, when a rank dies or fails
    my $lost = $launcher eq 'openmpi' ? '137' : '[1-9]\d*';
    my @try = ($launcher, $output);

    try_case(@try, 'data', 'exchanges, addresses, hosts and key', code => 0, within => $start + 2,
             count => ['^checked \d+$', $ranks], says => '^ready 5 h3 \d+ \S+ 2/3$');
    try_case(@try, 'cyclic', 'the same, ranks dealt round the hosts', code => 0, within => $start + 2,
             case => 'data', cyclic => 1, count => ['^checked \d+$', $ranks], says => '^ready 5 h3 \d+ \S+ 2/3$')
        if $launcher =~ /slurm/;
    # ranks 1 and 4 cannot share memory with their neighbours: five hosts
    try_case(@try, 'split', 'the same, two ranks in process namespaces of their own', code => 0,
             within => $start + 2, case => 'data', wrapper => $alone, count => ['^checked \d+$', $ranks],
             says => '^ready 4 h3 \d+ \S+ 3/5$');
    try_case(@try, 'late', 'ranks return one after the other', code => 0, within => $start + 2,
             count => ['^\*\*\* ', 0]);
    try_case(@try, 'codes', 'each rank exits with another code: the largest', code => 20 + $all,
             within => $start + 1, count => ['^\*\*\* ', 0]);
    for my $who ($long ? (0, 3) : 3) {
        try_case(@try, 'quit', "rank $who exits, the others are asked on all hosts", code => 6,
                 args => [$who], within => $start + 1, count => ['^quit-handler', $all]);
    }
    for my $who ($launcher eq 'slurm' || $long ? (0, 3) : 0) {
        try_case(@try, 'kill', "SIGKILL in rank $who", code => $lost, args => [$who], within => $end,
                 $hydra ? () : (says => "rank $who .*on h" . (1 + int($who / 2)) . '\b'));
    }
    try_case(@try, 'hang', 'rank 3 exits, the others ignore SIGQUIT', code => 6, args => [3], within => $end);
    try_case(@try, 'killhost', "SIGKILL in all ranks of host $_", code => $lost, args => [2 * $_ - 2],
             within => $end)
        for $launcher eq 'slurm' || $long ? (1, 3) : 3;

    # the launcher itself may wait for its lost daemon for ever: what counts is that no rank is left
    try_case(@try, 'orphan', 'the launcher\'s daemon on a host is killed', case => 'wait', code => '.*',
             victim => $launcher eq 'openmpi' ? qr/^orted/
                       : $hydra ? qr/^\S*hydra_pmi_proxy/ : qr/^slurmstepd/,
             limit => 5, within => $end);
    # a datagram that does not arrive is not refused; here too the launcher may wait for its daemon
    try_case(@try, 'unplug', 'a host is unplugged', case => 'wait', code => '.*', env => {GASNET_HOST_TIMEOUT => 2},
             victim => sub { system $hosts, 'cut', 'h2'; return }, limit => 12, within => 12,
             says => '^\*\*\* FATAL ERROR \(h1:\d+\): host h2 \(ranks 2-3\) was lost: nothing heard of it for 2 s ',
             count => ['^\*\*\* ', 1], ranks_end => 1,
             after => sub { system $hosts, 'mend', 'h2' });
    my @udp = (program => $udp, env => {GASNET_CONDUIT => 'udp', EXIT_CASE_QUIT => 1});
    try_case(@try, 'udp-data', 'over udp: all return 0', @udp, case => 0, code => 0, within => $start + 2,
             count => ['^\*\*\* ', 0]);
    try_case(@try, 'udp-exit', 'over udp: rank 3 exits, the others are in a barrier', @udp, case => 3, args => [3],
             code => 3, within => $start + 1, count => ['^quit-handler', $all]);
    try_case(@try, 'udp-spin', 'over udp: rank 3 returns from main, the others spin', @udp, case => 9, args => [3],
             code => 9, within => $start + 1, count => ['^quit-handler', $all]);
    try_case(@try, 'udp-segv', 'over udp: SIGSEGV in rank 3', @udp, case => 100, args => [3], code => '[1-9]\d*',
             within => $start + 1, says => 'Caught a fatal signal \(proc 3\): SIGSEGV');
    try_case(@try, 'udp-kill', 'over udp: SIGKILL in rank 3', @udp, case => 106, args => [3], code => $lost,
             within => $end);
    print "1..$tests\n";
    exit($failed ? 1 : 0);
}

inside($inside) if $inside;

# --- outside ---

@launchers = qw(openmpi mpich slurm slurm-pmi2) unless @launchers;
my %runs = map { $_ => 1 } @launchers;
my @rest = (map({ ('--case', $_) } @only), $verbose ? '--verbose' : (), $long ? '--long' : ());

# the lines of one launcher's run, numbered on
sub follow {
    my @cmd = @_;
    open my $out, '-|', @cmd or die "$cmd[0]: $!";
    my $seen = 0;
    while (my $line = <$out>) {
        next if $line =~ /^1\.\.\d+$/ && ++$seen;
        $failed++ if $line =~ /^not ok/;
        $line =~ s/^((?:not )?ok) \d+/"$1 " . ++$tests/e;
        print $line;
    }
    close $out;
    my $status = $? >> 8;
    return if $seen;
    $tests++;
    if ($status == 77) {
        print "ok $tests # SKIP the hosts or daemons do not come up here\n";
    } else {
        $failed++;
        print "not ok $tests - @cmd[0 .. 1] ended with status $status\n";
    }
    return;
}

sub skip {
    $tests++;
    print "ok $tests # SKIP @_\n";
    return;
}

$| = 1;
for my $launcher (@launchers) {
    my @again = ($^X, "$here/slurm.pl", @rest, '--inside', $launcher);
    if ($launcher =~ /slurm/) {
        chomp(my $why = `"$here/with-nodes.sh" --check`);
        if ($? == 0) {
            local $ENV{AQ_NODES_AT} = 'room';
            follow("$here/with-nodes.sh", 3, @again);
        } else {
            skip($why);
        }
        next;
    }
    my $tool = $launcher eq 'openmpi' ? 'mpirun.openmpi' : 'mpiexec.hydra';
    if (!have($tool)) {
        skip("$tool is not installed");
    } elsif (system("$hosts with 1 true 2>/dev/null") >> 8 == 77) {
        skip('no namespaces here');
    } else {
        local $ENV{AQ_HOSTS_AT} = 'room';
        follow($hosts, 'with', 3, @again);
    }
}
print "1..$tests\n";
exit($failed ? 1 : 0);
