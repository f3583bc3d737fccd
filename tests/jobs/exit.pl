#!/usr/bin/perl
# SPDX-License-Identifier: BSD-3-Clause
# exit.pl - every way for a job to end, under every launcher: did it end in time, with the right exit code and
# messages, and is nothing left of it? Prints TAP.
#
#   exit.pl [--launcher NAME]... [--mode seq|par] [-n RANKS] [--case N]... [--rounds N] [--verbose]
#
# Launchers: gasnetrun, pshm (GASNET_PSHM_NODES), agents (gasnetrun -H with two "hosts" that are this one, over
# the udp conduit), openmpi, mpich, srun (inside with-slurm.sh); mpi-openmpi, mpi-mpich: the mpi conduit under the launcher
# of its MPI.
# Without --launcher: gasnetrun and pshm, then agents, openmpi, mpich and srun where they are installed (a selection).
# AQ_BUILD is the build folder (default: the current one), AQ_CONFIG its configuration (asan: crashes are
# reported by the sanitizer, with its own codes).
use strict;
use warnings;
use Cwd qw(abs_path getcwd);
use Fcntl;
use File::Basename qw(dirname);
use File::Temp qw(tempdir);
use POSIX qw(:sys_wait_h setsid);
use Time::HiRes qw(time sleep);

our $here  = abs_path(dirname($0));
our $build = abs_path($ENV{AQ_BUILD} || '.');
our $asan  = ($ENV{AQ_CONFIG} || '') =~ /asan|tsan/;
our ($mode, $ranks, $rounds, $verbose, @launchers, @only) = ('par', 4, 12, 0);
while (@ARGV) {
    my $word = shift;
    if    ($word eq '--launcher') { push @launchers, shift }
    elsif ($word eq '--mode')     { $mode = shift }
    elsif ($word eq '-n')         { $ranks = shift }
    elsif ($word eq '--case')     { push @only, shift }
    elsif ($word eq '--rounds')   { $rounds = shift }
    elsif ($word eq '--verbose')  { $verbose = 1 }
    else                          { die "exit.pl: unknown option $word\n" }
}
our $program   = "$build/tests/jobs/exit_case-$mode";
our $gasnetrun = "$build/gasnetrun_smp";
$gasnetrun = "$build/gasnetrun" unless -x $gasnetrun;
our $tests  = 0;
our $failed = 0;
my $token  = "exit-test-$$";
our $work   = tempdir('aq-exit.XXXXXX', TMPDIR => 1, CLEANUP => 1);
our $timeout_s = 1 + 0.1 * $ranks;    # GASNET_EXITTIMEOUT by default

$ENV{AQ_EXIT_TEST} = $token;         # marks every process of ours, for the search for leftovers
delete @ENV{qw(GASNET_PSHM_NODES EXIT_CASE_QUIT GASNET_EXITTIMEOUT)};
# Slurm's daemons share the cores with the ranks and take part in their exit
$timeout_s = $ENV{GASNET_EXITTIMEOUT} = 5 if grep { $_ eq 'srun' } @launchers;
$ENV{OMPI_ALLOW_RUN_AS_ROOT} = $ENV{OMPI_ALLOW_RUN_AS_ROOT_CONFIRM} = 1;

sub have { my $name = shift; return scalar grep { -x "$_/$name" } split /:/, $ENV{PATH} }

sub command {
    my ($launcher, @args) = @_;
    return ($gasnetrun, '-n', $ranks, $program, @args) if $launcher eq 'gasnetrun';
    return ('env', "GASNET_PSHM_NODES=$ranks", $program, @args) if $launcher eq 'pshm';
    return ('env', "GASNET_SSH_CMD=$work/here", "$build/gasnetrun", '-c', 'udp', '-n', $ranks, '-H', 'a,b', $program, @args)
        if $launcher eq 'agents';
    if ($launcher eq 'openmpi') {
        my $mpirun = have('mpirun.openmpi') ? 'mpirun.openmpi' : 'mpirun';
        return ($mpirun, '--oversubscribe', '-n', $ranks, $program, @args);
    }
    return ('mpiexec.hydra', '-n', $ranks, $program, @args) if $launcher eq 'mpich';
    if ($launcher =~ /^mpi-(.*)/) {
        my @env = ('env', 'GASNET_CONDUIT=mpi', "AQ_MODULE_DIR=$build/modules/$1");
        return (@env, 'mpirun.openmpi', '--oversubscribe', '-n', $ranks, $program, @args) if $1 eq 'openmpi';
        return (@env, 'mpiexec.mpich', '-n', $ranks, $program, @args);
    }
    return ('srun', '-n', $ranks, '--overcommit', '--mpi=pmix', $program, @args) if $launcher eq 'srun';
    die "exit.pl: unknown launcher $launcher\n";
}

# processes that carry the mark of this test, other than this one; each with its command line
sub marked {
    my %found;
    for my $dir (glob '/proc/[0-9]*') {
        my ($pid) = $dir =~ /(\d+)$/;
        next if $pid == $$;
        open my $f, '<', "$dir/environ" or next;
        local $/;
        my $env = <$f>;
        next unless defined $env && $env =~ /(^|\0)AQ_EXIT_TEST=\Q$token\E(\0|$)/;
        open my $s, '<', "$dir/stat" or next;
        my $stat = <$s>;
        next if !defined $stat || $stat =~ /\) [ZX] /;
        open my $c, '<', "$dir/cmdline" or next;
        my $line = <$c>;
        $line = '' unless defined $line;
        $line =~ tr/\0/ /;
        $found{$pid} = $line;
    }
    return \%found;
}

# shared memory objects; those of Open MPI, MPICH (UCX) and Slurm are theirs to remove, and those of jobs
# that other sets run at the same time come and go
sub shared_files {
    return {map { $_ => 1 } grep { !/vader|osc_rdma|open_?mpi|mpich|ucx_|psm|slurm|pmix|\bsem\./ } glob('/dev/shm/* /tmp/GASNT*')};
}

# Start a command in a session of its own; returns its process number. Output goes to $work/output.
sub start {
    my ($env, $stdin, @cmd) = @_;
    open my $empty, '>', "$work/output" or die;       # nobody shall read the last run's
    close $empty;
    my $pid = fork;
    die "fork: $!" unless defined $pid;
    return $pid if $pid;
    setsid();
    chdir "$work/cwd";
    $ENV{$_} = $env->{$_} for keys %$env;
    open STDIN, '<', $stdin or die;
    open STDOUT, '>', "$work/output" or die;
    open STDERR, '>&STDOUT' or die;
    # perl starts with SIGPIPE and friends as it got them; the program shall have the defaults
    $SIG{$_} = 'DEFAULT' for qw(INT QUIT HUP TERM PIPE CHLD);
    exec @cmd or POSIX::_exit(126);
}

# wait for it at most $limit seconds: (exit code as a shell shows it, or 'timeout'; seconds)
sub finish {
    my ($pid, $limit) = @_;
    my $begin = time;
    while (1) {
        my $got = waitpid $pid, WNOHANG;
        last if $got == $pid;
        if (time - $begin > $limit) {
            my $left = marked();
            kill 'KILL', keys %$left if %$left;
            kill 'KILL', $pid;
            waitpid $pid, 0;
            return ('timeout', time - $begin);
        }
        sleep 0.005;
    }
    my $code = $? & 127 ? 128 + ($? & 127) : $? >> 8;
    return ($code, time - $begin);
}

sub output {
    open my $f, '<', "$work/output" or return '';
    local $/;
    my $text = <$f>;
    return defined $text ? $text : '';
}

# what a job leaves behind, a moment after its end: "" or a description
sub leftovers {
    my $before = shift;
    my $end = time + 2;
    my $left;
    while (1) {
        $left = marked();
        last if !%$left || time > $end;
        sleep 0.02;
    }
    my @what = map { "process $_ ($left->{$_})" } keys %$left;
    kill 'KILL', keys %$left if %$left;
    my $now = shared_files();
    push @what, map { "shared memory $_" } grep { !$before->{$_} } sort keys %$now;
    return join ', ', @what;
}

sub report {
    my ($name, $problems, $text) = @_;
    $tests++;
    if (@$problems) {
        $failed++;
        print "not ok $tests - $name\n";
        print "# $_\n" for @$problems;
        print map { "#   $_\n" } split /\n/, $text;
    } else {
        print "ok $tests - $name\n";
        print map { "#   $_\n" } split /\n/, $text if $verbose;
    }
}

# %want: code => number or pattern; within => seconds; lines => number of "*** " lines or [least, most];
# quit => number of quit handlers that must have run; says => pattern
sub judge {
    my ($name, $want, $code, $seconds, $before) = @_;
    my $text = output();
    my @problems;
    my $limit = $want->{within};
    if ($code eq 'timeout') {
        push @problems, sprintf 'still running after %.1f s', $seconds;
    } else {
        push @problems, "exit code $code, expected $want->{code}" unless $code =~ /^(?:$want->{code})$/;
        push @problems, sprintf 'took %.2f s, allowed are %.2f s', $seconds, $limit if $seconds > $limit;
    }
    my $lines = () = $text =~ /^\*\*\* /mg;
    if (defined $want->{lines}) {
        my ($least, $most) = ref $want->{lines} ? @{$want->{lines}} : ($want->{lines}) x 2;
        push @problems, "$lines messages, expected $least to $most" if $lines < $least || $lines > $most;
    }
    my $quit = () = $text =~ /^quit-handler /mg;
    push @problems, "$quit quit handlers ran, expected $want->{quit}"
        if defined $want->{quit} && $quit != $want->{quit};
    push @problems, "nothing says /$want->{says}/" if defined $want->{says} && $text !~ /$want->{says}/;
    my $left = leftovers($before);
    push @problems, "left behind: $left" if $left ne '';
    report($name, \@problems, $text);
}

sub run_case {
    my ($launcher, $case, $want, %more) = @_;
    return if @only && !grep { $_ eq $case } @only;
    my $before = shared_files();
    my @args = ($case, defined $more{who} ? $more{who} : ());
    my $pid = start($more{env} || {}, $more{stdin} || '/dev/null', command($launcher, @args));
    my ($code, $seconds) = finish($pid, 30);
    judge("$launcher: case $case: $want->{name}", $want, $code, $seconds, $before);
    return;
}

# --- what must come; within: the exit timeout plus what starting takes on a busy machine ---

my $others = $ranks - 1;
my $who    = 1 % $ranks;             # who acts where one acts alone
our $start  = 2.5;                    # seconds; Slurm and Open MPI need more
my %by_number;

sub add {
    my ($case, $name, $code, %more) = @_;
    $by_number{$case} = {name => $name, code => $code, %more};
}

add(0,  'all return 0', 0, lines => 0);
add(1,  'all exit', 1, lines => 0);
add(2,  'all return from main', 2, lines => 0);
add(3,  'one exits, the others are in a barrier', 3, lines => 0, quit => $others);
add(4,  'SIGINT to one, the others are in a barrier', 1, lines => 1);
add(5,  'one exits, the others spin', 5, lines => 0, quit => $others);
add(6,  'all exit before attach', 6, lines => 0);
add(7,  'one exits before attach', 7, lines => 0);
add(8,  'one returns from main, the others are in a barrier', 8, lines => 0, quit => $others);
add(9,  'one returns from main, the others spin', 9, lines => 0, quit => $others);
add(10, 'all exit in a handler', 10, lines => 0);
add(11, 'one exits in a handler', 11, lines => 0, quit => $others);
add(12, 'one exits in a handler, by a message to itself', 12, lines => 0, quit => $others);
add(13, 'one exits in a handler, all ranks ask it to', 13, lines => 0, quit => $others);
add(20, 'each exits with another code: the largest', 20 + $others, lines => 0);
add(21, 'exit in a handler that holds an HSL', 21, lines => 0, quit => $others);
add(22, 'one exits, the others sleep and never enter the library again', 22, lines => 0, quit => $others);
add(23, 'one exits, the others ignore SIGQUIT', 23, lines => 0);
add(24, "one exits, the others' SIGQUIT handler stays", 24, lines => 0);
add(25, 'all return, an earlier atexit handler calls gasnet_exit', 25, lines => 0);
add(26, 'children of ranks exit, crash and run shells; then all exit', 26, lines => 0);
add(27, 'one exits, all signals are blocked everywhere', 27, lines => 0);
add(28, 'one exits while another of its threads holds stdout', 28, lines => 0);
add(29, 'rank 0 exits while another of its threads reads stdin', 29, lines => 0);
add(31, 'GASNET_CATCH_EXIT=0: exit() in one rank ends that rank only', 3, lines => 0);
add(36, 'GASNET_CATCH_EXIT=0: after its last words a rank ends, the others wait in the library', 3, lines => 0);
add(38, 'GASNET_CATCH_EXIT=0: a put to a rank of another host that has left ends with its loss', '[1-9]\d*',
    lines => [1, $others], says => "rank $who was lost \\(it has left");
add(35, 'all call _exit(0): accepted in silence', 0, lines => 0);
add(39, 'all exit with implicit puts that nobody has waited for', 39, lines => 0);
add(43, 'all exit with 256, of which the system keeps 0', 0, lines => [1, 2], says => 'exit code 256 is status 0'); # a host
add(44, 'all return 512 + 44 from main', 44, lines => 0);
add(45, 'one exits with -2', 254, lines => 0, quit => $others);
add(51, 'all threads of all ranks exit', 51, lines => 0);
add(52, 'one thread exits, the others are in a barrier or poll', 52, lines => 0, quit => $others);
add(53, 'one thread exits, the others spin', 53, lines => 0, quit => $others);
add(54, 'one thread exits, the others poll', 54, lines => 0, quit => $others);
add(55, 'one thread exits, the others send', 55, lines => 0, quit => $others);
add(100, 'SIGSEGV in one, the others are in a barrier', 139, lines => 1, says => "Caught a fatal signal \\(proc $who\\): SIGSEGV\\(11\\)");
add(101, 'SIGSEGV in one, the others spin', 139, lines => 1, says => 'SIGSEGV\(11\)');
add(102, 'abort in one', 134, lines => 1, says => 'SIGABRT\(6\)');
add(103, 'SIGFPE in one', 136, lines => 1, says => 'SIGFPE\(8\)');
add(104, 'illegal instruction in one', 132, lines => 1, says => 'SIGILL\(4\)');
add(105, 'SIGBUS in one', 135, lines => 1, says => 'SIGBUS\(7\)');
add(106, 'SIGKILL in one', 137, lines => 1);
add(107, '_exit(7) in one', 7, lines => $others ? 1 : 0);
add(108, 'stack overflow in one', 139, lines => 1, says => 'SIGSEGV\(11\)');
add(109, 'SIGTERM in one', 1, lines => 1, says => "Caught a signal \\(proc $who\\): SIGTERM\\(15\\)");
add(110, 'SIGPIPE in one', 1, lines => 1, says => 'SIGPIPE\(13\)');
add(200, 'SIGSEGV in all', 139, lines => [1, $ranks]);
add(202, 'abort in all', 134, lines => [1, $ranks]);
add(206, 'SIGKILL in all', 137, lines => [1, 1]);
add(300, 'SIGSEGV in several threads of one', 139, lines => [1, 1]);

my @quick = (1, 2, 3, 5, 8, 11, 22, 24, 38, 39, 43, 100, 102, 106, 107, 109);
my %threads = map { $_ => 1 } 28, 29, 51 .. 55, 300;

# Under other launchers: their own messages and, for crashes, their own codes.
sub expected {
    my ($launcher, $case) = @_;
    my %want = %{$by_number{$case}};
    my $crash = $case >= 100 && $case !~ /09$|10$/;
    $want{within} = $start + $timeout_s;
    if ($asan && $crash) {
        $want{code} = '[1-9]\d*';
        delete @want{qw(lines says)};
    }
    return \%want if $launcher =~ /gasnetrun|pshm|agents/;
    $want{within} += $launcher eq 'srun' ? 6 : 4;
    $want{lines} = [0, 2] if $crash && defined $want{lines};
    $want{code} = '[1-9]\d*' if $crash;
    delete $want{says} if $launcher eq 'mpich';
    delete @want{qw(lines says)} if $case == 38;    # mpirun ends the job: the rank has left without MPI_Finalize
    return \%want;
}

sub run_cases {
    my ($launcher, @cases) = @_;
    for my $case (@cases) {
        next if $threads{$case} && $mode eq 'seq';
        next if $asan && $case == 108;
        next if $case == 38 && $launcher !~ /^(agents|mpi-)/;    # elsewhere no network is between the ranks
        my $want = expected($launcher, $case);
        my %env = ();
        $env{EXIT_CASE_QUIT} = 1 if defined $want->{quit};
        $env{GASNET_CATCH_EXIT} = 0 if $case == 31 || $case == 36 || $case == 38;
        run_case($launcher, $case, $want, env => \%env, stdin => $case == 29 ? "$work/never" : '/dev/null');
    }
}

# --- files and buffers are complete ---

sub run_flush {
    my $launcher = shift;
    return if @only && !grep { $_ eq '30' } @only;
    my $before = shared_files();
    my $at_once = {OMPI_MCA_odls_base_sigkill_timeout => 0};    # no rank may end before rank 0, which writes for 0.5 s
    my $pid = start($at_once, '/dev/null', command($launcher, 30));
    my ($code, $seconds) = finish($pid, 30);
    my $text = output();
    my @problems;
    for my $r (0 .. $ranks - 1) {
        my $size = -s "$work/cwd/out.$r" || 0;
        my $want = 0;
        $want += length "line $_ of rank $r\n" for 0 .. 999;
        push @problems, "out.$r has $size bytes, expected $want" if $size != $want;
        push @problems, "last words of rank $r are missing" unless $text =~ /last words of rank $r/;
        unlink "$work/cwd/out.$r";
    }
    push @problems, "exit code $code, expected 30" if $code ne '30';
    my $left = leftovers($before);
    push @problems, "left behind: $left" if $left ne '';
    report("$launcher: case 30: what stdio holds is written out", \@problems, $text);
}

# a reader that takes its time gets everything, however short the exit timeout, and the job has its own exit code;
# ranks that wait for another's last words are not ended either
sub run_slow_reader {
    my ($launcher, $seconds) = @_;
    return if @only && !grep { $_ eq '37' } @only;
    my $before = shared_files();
    unlink "$work/cwd/code";
    my $pid = start({GASNET_EXITTIMEOUT => 0.3}, '/dev/null', 'sh', '-c',
                    '{ "$@"; echo $? >code; } | { sleep ' . $seconds . "; tr -cd '#' | wc -c; }", 'sh',
                    command($launcher, 37));
    my ($status, $took) = finish($pid, 30 + $seconds);
    my ($bytes) = output() =~ /^\s*(\d+)\s*$/m;
    my $want = $ranks * 5000 * 39;
    my $code = -s "$work/cwd/code" ? `cat $work/cwd/code` + 0 : $status;
    my @problems;
    push @problems, 'the reader got ' . ($bytes // 'nothing') . ", not $want bytes" if ($bytes // -1) != $want;
    push @problems, "exit code $code, expected 37" if $code ne '37';
    my $left = leftovers($before);
    push @problems, "left behind: $left" if $left ne '';
    report("$launcher: case 37: a slow reader of stdout gets everything", \@problems, output());
}

# standard error is a full pipe without a reader: messages do not prevent the end of the job
sub run_deaf_reader {
    my ($launcher, $case) = @_;
    return if @only && !grep { $_ eq 'deaf' } @only;
    my $before = shared_files();
    pipe my $from, my $to or die "pipe: $!";
    fcntl $to, F_SETFL, O_NONBLOCK;
    1 while syswrite $to, 'x' x 4096;
    fcntl $to, F_SETFL, 0;
    fcntl $to, F_SETFD, 0;
    my $pid = start({}, '/dev/null', 'sh', '-c', 'exec 2>&' . fileno($to) . '; exec "$@"', 'sh', command($launcher, $case));
    my ($code, $seconds) = finish($pid, 30);
    judge("$launcher: case $case: $by_number{$case}{name}; nobody reads standard error",
          {code => $asan ? '[1-9]\d*' : $by_number{$case}{code}, within => $start + $timeout_s}, $code, $seconds, $before);
}

# --- signals from outside ---

# wait until all ranks say that they are ready; their process numbers by rank
sub ready {
    my $limit = time + 10;
    while (time < $limit) {
        my %pid = output() =~ /^(?:\[\d+\] )?ready (\d+) (\d+)$/mg;
        return \%pid if keys %pid == $ranks;
        sleep 0.01;
    }
    return {};
}

# send $sig to a rank (number) or to the started process ('launcher') or to its whole process group ('group')
sub run_signal {
    my ($launcher, $case, $sig, $target, $want) = @_;
    return if @only && !grep { $_ eq $case } @only;
    my $before = shared_files();
    my $pid = start({}, '/dev/null', command($launcher, $case));
    my $ready = ready();
    my $to = $target eq 'launcher' ? $pid : $target eq 'group' ? -$pid : $ready->{$target};
    sleep 0.05;
    kill $sig, $to if $to;
    my ($code, $seconds) = finish($pid, 30);
    $want = {within => $start + $timeout_s, %$want};
    $want->{within} += 5 if $launcher !~ /gasnetrun|pshm|agents/;
    my $what = {32 => 'in a barrier', 33 => 'spinning', 34 => 'asleep'}->{$case};
    judge("$launcher: SIG$sig to $target, ranks $what", $want, $code, $seconds, $before);
}

sub run_signals {
    my $launcher = shift;
    my $ours = $launcher =~ /gasnetrun|pshm|agents/;
    for my $rank (0 .. $ranks - 1) {
        run_signal($launcher, 32, 'KILL', $rank,
                   {code => $ours || $launcher eq 'openmpi' ? 137 : '[1-9]\d*',
                    $ours ? (lines => 1, says => "rank $rank .*SIGKILL") : ()});
    }
    run_signal($launcher, 33, 'KILL', $ranks - 1, {code => $ours ? 137 : '[1-9]\d*'});
    return unless $ours;
    for my $case (32, 33, 34) {
        run_signal($launcher, $case, 'KILL', 'launcher', {code => 137, lines => 0});
        run_signal($launcher, $case, 'TERM', 'launcher', {code => 1, lines => 1});
    }
    run_signal($launcher, 32, $_, 'launcher', {code => 1, lines => 1}) for qw(INT HUP QUIT);
    run_signal($launcher, 33, $_, 'group', {code => 1, lines => [1, $ranks + 1]}) for qw(INT TERM HUP);
    run_signal($launcher, 32, $_, 1 % $ranks, {code => 1, lines => 1}) for qw(INT TERM HUP QUIT);
}

# SIGKILL at any moment from the very start: to any one process of the job
sub run_random {
    my $launcher = shift;
    return if @only && !grep { $_ eq 'random' } @only;
    my $before = shared_files();
    my (@problems, %codes);
    for my $round (1 .. $rounds) {
        my $pid = start({}, '/dev/null', command($launcher, 32));
        sleep(rand(0.06));
        my $found = marked();
        my @all = sort { $a <=> $b } keys %$found;
        my $victim = @all ? $all[int rand @all] : $pid;
        kill 'KILL', $victim;
        my ($code, $seconds) = finish($pid, 20);
        my $which = $victim == $pid ? 'the launcher' : 'a rank';
        if ($code eq 'timeout') {
            push @problems, sprintf 'round %d: still running %.1f s after SIGKILL to %s', $round, $seconds, $which;
        } elsif ($code == 0) {
            push @problems, "round $round: exit code 0 after SIGKILL to $which";
        }
        my $left = leftovers($before);
        push @problems, "round $round ($which): left behind: $left" if $left ne '';
    }
    report("$launcher: SIGKILL to one process at any moment, $rounds times", \@problems, output());
}

require "$here/exit_supervisor.pl";
require "$here/exit_launcher.pl";

# --- all of it ---

mkdir "$work/cwd";
chmod 0777, "$work/cwd";
# a standard input without data: a FIFO that this test holds open
POSIX::mkfifo("$work/never", 0600);
open my $hold, '+<', "$work/never" or die;

die "exit.pl: $program is missing; run make first\n" unless -x $program;
my $everything = !@launchers;
@launchers = ('gasnetrun', 'pshm', -e "$build/udp-conduit" ? 'agents' : ()) if $everything;
# stands in for ssh: the command runs here, whatever the host
open my $here_file, '>', "$work/here" or die;
print $here_file "#!/bin/sh\nfor last; do :; done\nexec sh -c \"\$last\"\n";
close $here_file;
chmod 0755, "$work/here";
for my $launcher (@launchers) {
    my $ours = $launcher =~ /gasnetrun|pshm|agents/;
    my @cases = $ours ? sort { $a <=> $b } keys %by_number : @quick;
    run_cases($launcher, @cases);
    run_flush($launcher);
    run_signals($launcher);
    # MPI's ends wait for one another's, at most three timeouts and 5 s, were it not for the reader
    run_slow_reader($launcher, $launcher =~ /mpich/ ? 8 : 1.5);
    next unless $ours;
    if ($launcher ne 'agents') {    # whose console is gasnetrun's own, which waits for its reader as a rank does
        run_deaf_reader($launcher, $_) for 100, 106, 109;
    }
    run_ctrl_c($launcher);
    run_supervisor($launcher);
    run_random($launcher);
}
if ($everything) {
    run_limits();
    run_options();
    run_aids();
    my @more = ('--mode', $mode, '-n', $ranks, map { ('--case', $_) } @only);
    for my $launcher ('openmpi', 'mpich') {
        my $needs = {openmpi => 'mpirun.openmpi', mpich => 'mpiexec.hydra'}->{$launcher};
        $tests++;
        if (!have($needs)) {
            print "ok $tests - $launcher # SKIP $needs is not installed\n";
            next;
        }
        print "ok $tests - $launcher is there\n";
        run_cases($launcher, @only ? grep { exists $by_number{$_} } @only : @quick);
        run_flush($launcher);
        run_signals($launcher);
    }
    $tests++;
    my $why = `$here/with-slurm.sh --check 2>&1`;
    if ($? != 0) {
        chomp $why;
        print "ok $tests - srun # SKIP $why\n";
    } else {
        my $text = `'$here/with-slurm.sh' '$here/exit.pl' --launcher srun @more 2>&1`;
        my $bad = $? >> 8;
        if ($bad == 77) {
            print "ok $tests - srun # SKIP Slurm does not start here\n";
        } else {
            $failed++ if $bad != 0;
            print $bad == 0 ? 'ok' : 'not ok', " $tests - srun\n";
        }
        print map { "#   $_\n" } split /\n/, $text if $bad != 0 || $verbose;
    }
}
print "1..$tests\n";
exit($failed ? 1 : 0);
