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
use File::Basename qw(basename dirname);
use File::Copy qw(copy);
use File::Temp qw(tempdir);
use IO::Pty;
use IO::Select;
use POSIX qw(:sys_wait_h setsid);
use Time::HiRes qw(time sleep);

my $here  = abs_path(dirname($0));
my $build = abs_path($ENV{AQ_BUILD} || '.');
my $asan  = ($ENV{AQ_CONFIG} || '') =~ /asan|tsan/;
my ($mode, $ranks, $rounds, $verbose, @launchers, @only) = ('par', 4, 12, 0);
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
my $program   = "$build/tests/jobs/exit_case-$mode";
my $gasnetrun = "$build/gasnetrun_smp";
$gasnetrun = "$build/gasnetrun" unless -x $gasnetrun;
my $tests  = 0;
my $failed = 0;
my $token  = "exit-test-$$";
my $work   = tempdir('aq-exit.XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $timeout_s = 1 + 0.1 * $ranks;    # GASNET_EXITTIMEOUT by default

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

# processes that carry our mark, other than this one; each with its command line
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
    return {map { $_ => 1 } grep { !/vader|open_?mpi|mpich|ucx_|psm|slurm|pmix|\bsem\./ } glob('/dev/shm/* /tmp/GASNT*')};
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

# what is left a moment after the end: "" or its description
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
my $start  = 2.5;                    # seconds; Slurm and Open MPI need more
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

my @quick = (1, 2, 3, 5, 8, 11, 22, 24, 43, 100, 102, 106, 107, 109);
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
    return \%want;
}

sub run_cases {
    my ($launcher, @cases) = @_;
    for my $case (@cases) {
        next if $threads{$case} && $mode eq 'seq';
        next if $asan && $case == 108;
        next if $case == 38 && $launcher ne 'agents';    # elsewhere no rank is on another host
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
    my $pid = start({}, '/dev/null', command($launcher, 30));
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

# standard error is a pipe that is full, and nobody reads: what is to be said keeps no job from ending
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

# Ctrl-C typed at a terminal reaches the launcher and all ranks alike: one message, status 1
sub run_ctrl_c {
    my $launcher = shift;
    return if @only && !grep { $_ eq 'ctrl-c' } @only;
    my $before = shared_files();
    my $terminal = eval { IO::Pty->new };
    if (!$terminal) {
        $tests++;
        print "ok $tests - $launcher: Ctrl-C at a terminal # SKIP the system gives no pseudo-terminal: $!\n";
        return;
    }
    my $pid = start_at_terminal($terminal, command($launcher, 33));
    my ($text, $code, $typed, $limit) = ('', undef, 0, time + 40);
    while (!defined $code && time < $limit) {
        $text .= read_terminal($terminal);
        my %ready = map { $_ => 1 } $text =~ /ready (\d+) \d+/g;
        if (!$typed && keys %ready == $ranks) {
            sleep 0.05;
            syswrite $terminal, "\003";
            $typed = 1;
        }
        $code = $? & 127 ? 128 + ($? & 127) : $? >> 8 if waitpid($pid, WNOHANG) == $pid;
    }
    $text .= read_terminal($terminal);
    my $lines = () = $text =~ /\*\*\* /g;    # behind the echoed ^C
    my @problems;
    push @problems, 'the ranks never were ready' if !$typed;
    push @problems, 'status ' . (defined $code ? $code : 'unknown') . ', expected 1' unless defined $code && $code == 1;
    push @problems, "$lines messages, expected 1" if $lines != 1;
    my $left = leftovers($before);
    push @problems, "left behind: $left" if $left ne '';
    report("$launcher: Ctrl-C at a terminal", \@problems, $text);
}

# Start a command in a session whose terminal is the other end of $terminal; returns its process number.
sub start_at_terminal {
    my ($terminal, @cmd) = @_;
    my $pid = fork;
    die "fork: $!" unless defined $pid;
    return $pid if $pid;
    $terminal->make_slave_controlling_terminal;
    my $slave = $terminal->slave;
    close $terminal;
    chdir "$work/cwd";
    open STDIN,  '<&', $slave or POSIX::_exit(126);
    open STDOUT, '>&', $slave or POSIX::_exit(126);
    open STDERR, '>&', $slave or POSIX::_exit(126);
    close $slave;
    $SIG{$_} = 'DEFAULT' for qw(INT QUIT HUP TERM PIPE CHLD);
    exec @cmd or POSIX::_exit(126);
}

# what has been written at the terminal by now, waiting a moment for it
sub read_terminal {
    my $terminal = shift;
    my $text = '';
    my $ready = IO::Select->new($terminal);
    while ($ready->can_read(0.02)) {
        sysread $terminal, my $more, 65536 or last;    # EIO: nobody holds the other end any more
        $text .= $more;
    }
    return $text;
}

# --- what the supervisor finds when it is started ---

# the words before a command that make it start with these signals ignored
sub ignoring { return ('perl', '-e', '$SIG{$_} = "IGNORE" for split /,/, shift; exec @ARGV', join ',', @_) }

# nohup starts programs with SIGHUP ignored: this does not end the job, neither sent to the launcher nor to a rank
sub run_nohup {
    my $launcher = shift;
    my $before = shared_files();
    my $pid = start({}, '/dev/null', ignoring('HUP'), command($launcher, 32));
    my $ready = ready();
    kill 'HUP', $pid, $launcher eq 'agents' ? () : values %$ready;    # ssh does not hand an ignored signal on
    sleep 0.4;
    my $alive = waitpid($pid, WNOHANG) == 0;
    kill 'TERM', $pid if $alive;
    my ($code, $seconds) = $alive ? finish($pid, 20) : ("$? at once", 0);
    judge("$launcher: SIGHUP is ignored if it was before, SIGTERM is not",
          {code => 1, lines => 1, says => 'SIGTERM', within => $start + $timeout_s}, $code, $seconds, $before);
}

# Shells without job control, cron and CI start programs in the background with signals ignored: these end the job all
# the same, sent to the launcher or to a rank.
sub run_background {
    my ($launcher, $sig) = @_;
    for my $to ('the launcher', 'a rank') {
        my $before = shared_files();
        my $pid = start({}, '/dev/null', ignoring('INT', 'QUIT', 'TERM'), command($launcher, 32));
        my $ready = ready();
        kill $sig, $to eq 'a rank' ? $ready->{0} : $pid;
        my ($code, $seconds) = finish($pid, 8);
        judge("$launcher: SIG$sig to $to ends the job although it was ignored before",
              {code => 1, lines => 1, says => "SIG$sig", within => $start + $timeout_s}, $code, $seconds, $before);
    }
}

# with SIGCHLD ignored the kernel reaps children unasked
sub run_child_ignored {
    my $launcher = shift;
    my @cmd = (ignoring('CHLD'), command($launcher));
    for my $how ([2, 2, 0], [106, 137, 1]) {
        my ($case, $want, $lines) = @$how;
        my $before = shared_files();
        my ($code, $seconds) = finish(start({}, '/dev/null', @cmd, $case), 10);
        judge("$launcher: SIGCHLD was ignored before, case $case",
              {code => $want, lines => $lines, within => $start + $timeout_s}, $code, $seconds, $before);
    }
    my $before = shared_files();
    my $pid = start({}, '/dev/null', @cmd, 34);
    my $ready = ready();
    my $ignored = 0;
    for my $rank (values %$ready) {
        open my $f, '<', "/proc/$rank/status" or next;
        my ($mask) = join('', <$f>) =~ /^SigIgn:\s*([0-9a-f]+)/m;
        $ignored++ if hex(substr $mask, -5) & 1 << 16;
    }
    kill 'TERM', $pid;
    my ($code, $seconds) = finish($pid, 10);
    # the ranks find it as the launcher did; on another host there is nothing to find
    $code = "$code, $ignored ranks ignore SIGCHLD" if $ignored != $ranks && $launcher ne 'agents';
    judge("$launcher: SIGCHLD was ignored before, SIGTERM to launcher", {code => 1, lines => 1, within => $start + $timeout_s},
          $code, $seconds, $before);
}

# a shell starts jobs in the background, then becomes the launcher: they are not of the job
sub run_earlier {
    my $launcher = shift;
    my $before = shared_files();
    my $script = 'sleep 60 & echo "earlier $!"; (sleep 61 & echo "earlier $!"; sleep 1) & sleep 0.3; exec "$@"';
    my $pid = start({}, '/dev/null', 'sh', '-c', $script, 'sh', command($launcher, 34));
    ready();
    sleep 1.2;                       # the second one's parent is gone
    kill 'TERM', $pid;
    my ($code, $seconds) = finish($pid, 20);
    my @earlier = output() =~ /^earlier (\d+)$/mg;
    my $living = kill 'KILL', @earlier;
    $code = "$code, $living of 2 earlier processes live" if $living != 2;
    judge("$launcher: processes from before the job live on", {code => 1, lines => 1, within => $start + $timeout_s},
          $code, $seconds, $before);
}

# a command under a filter that lets close_range() fail as on an old kernel
my $without_close_range = <<'PERL';
my @ld  = (0x20, 0, 0, 0);                            # the system call's number
my @jeq = (0x15, 0, 1, 436);
my @no  = (0x06, 0, 0, 0x00050000 | 38);              # ENOSYS
my @yes = (0x06, 0, 0, 0x7fff0000);
my $filter = join '', map { pack 'SCCL', @$_ } \@ld, \@jeq, \@no, \@yes;
my $program = pack 'S x![P] P', 4, $filter;
my $prctl = shift;
syscall($prctl + 0, 38, 1, 0, 0, 0) == 0 && syscall($prctl + 0, 22, 2, $program, 0, 0) == 0 or die "seccomp: $!";
exec @ARGV;
PERL

# the supervisor holds none of the descriptors that the client has got
sub run_descriptors {
    my $launcher = shift;
    my %prctl = (x86_64 => 157, aarch64 => 167);
    my $prctl = $prctl{(POSIX::uname())[4]};
    for my $old (0, 1) {
        next if $old && !$prctl;
        my $before = shared_files();
        my @filter = $old ? ('perl', '-e', $without_close_range, $prctl) : ();
        my $pid = start({}, '/dev/null', 'bash', '-c', 'exec 9</dev/zero 99</dev/zero; exec "$@"', 'bash', @filter,
                        command($launcher, 34));
        my $ready = ready();
        sleep 0.1;
        my $held = grep { (readlink($_) || '') eq '/dev/zero' } glob "/proc/$pid/fd/*";
        my $kept = map { grep { (readlink($_) || '') eq '/dev/zero' } glob "/proc/$_/fd/*" } values %$ready;
        kill 'TERM', $pid;
        my ($code, $seconds) = finish($pid, 20);
        $code = "$code, $held of the client's descriptors are held" if $held;
        $code = "$code, ranks have $kept of 2 descriptors each" if $kept != 2 * $ranks;
        judge("$launcher: the client's descriptors are closed" . ($old ? ', without close_range()' : ''),
              {code => 1, lines => 1, within => $start + $timeout_s}, $code, $seconds, $before);
    }
}

sub run_supervisor {
    my $launcher = shift;
    return if @only && !grep { $_ eq 'supervisor' } @only;
    run_nohup($launcher);
    run_background($launcher, $_) for qw(INT QUIT TERM);
    run_child_ignored($launcher);
    run_earlier($launcher);
    run_descriptors($launcher) if $launcher eq 'pshm' && have('bash');
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

# --- limits ---

sub run_limits {
    my $before = shared_files();
    my $check = sub {
        my ($name, $code, $says, $env, @cmd) = @_;
        my $pid = start($env, '/dev/null', @cmd);
        my ($got, $seconds) = finish($pid, 30);
        judge($name, {code => $code, says => $says, within => 10}, $got, $seconds, $before);
    };
    return if @only && !grep { $_ eq 'limits' } @only;
    for my $n (-1, 1000000000, 'many', '4x') {
        $check->("pshm: GASNET_PSHM_NODES=$n", '[1-9]\d*', 'GASNET_PSHM_NODES', {GASNET_PSHM_NODES => $n}, $program, 0);
    }
    for my $n (-1, 0, 1000000000, 'many') {
        $check->("gasnetrun: -n $n", 1, '-n', {}, $gasnetrun, '-n', $n, $program, 0);
    }
    $check->('gasnetrun: no such program', 1, 'no such program', {}, $gasnetrun, '-n', 2, "$work/missing");
    $check->('gasnetrun: not a program', 1, 'cannot run|not an executable', {}, $gasnetrun, '-n', 2, "$here/exit_case.c");
    $check->('gasnetrun: programs that are not ours run too', 0, 'hello', {}, $gasnetrun, '-n', 2, '/bin/echo', 'hello');
    $check->('gasnetrun: their failure is reported', 1, '', {}, $gasnetrun, '-n', 2, '/bin/false');
    $check->('gasnetrun: a shell around each rank', 0, 'ready 1', {}, $gasnetrun, '-n', 2, '/bin/sh', '-c', "$program 0; exit \$?");
    $check->('gasnetrun: descriptors closed by a wrapper', '[1-9]\d*', 'descriptor', {}, $gasnetrun, '-n', 2, '/bin/bash', '-c',
             "for f in /proc/self/fd/*; do n=\${f##*/}; [ \$n -ge 100 ] && eval \"exec \$n>&-\"; done; exec $program 0")
        if -x '/bin/bash';
    $check->('gasnetrun: what ranks leave running ends with the job', 0, 'ready 1', {}, $gasnetrun, '-n', 2, '/bin/sh', '-c',
             "sleep 100 & exec $program 0");
    $check->('gasnetrun: and so do the children of that', 0, 'ready 1', {}, $gasnetrun, '-n', 2, '/bin/sh', '-c',
             "(sleep 100; sleep 100) & exec $program 0");
    $check->('pshm: standard input, output and error closed', 4, '', {GASNET_PSHM_NODES => 4}, '/bin/sh', '-c',
             "$program 2 <&- >&- 2>&-; test \$? = 2 && exit 4");
    $check->('gasnetrun: standard input, output and error closed', 4, '', {}, '/bin/sh', '-c',
             "$gasnetrun -n 4 $program 2 <&- >&- 2>&-; test \$? = 2 && exit 4");
    # the launcher is killed while shells stand between it and the ranks
    my $pid = start({}, '/dev/null', $gasnetrun, '-n', $ranks, '/bin/sh', '-c', "$program 33; exit \$?");
    ready();
    kill 'KILL', $pid;
    my ($code, $seconds) = finish($pid, 20);
    judge('gasnetrun: SIGKILL to it, shells around the ranks', {code => 137, within => 20}, $code, $seconds, $before);
    # as a user who may start few processes, and who need not have a way into the build folder
    return unless $> == 0 && have('setpriv') && have('prlimit');
    chmod 0755, $work;
    my ($run_copy, $program_copy) = map { copy_of($_) } $gasnetrun, $program;
    for my $how ('gasnetrun', 'pshm') {
        my @cmd = $how eq 'gasnetrun' ? ($run_copy, '-n', 64, $program_copy, 0)
                                      : ('env', 'GASNET_PSHM_NODES=64', $program_copy, 0);
        $check->("$how: out of processes", '[1-9]\d*', 'only \d+ of 64 ranks could be started.*ulimit -u', {},
                 'setpriv', '--reuid=64999', '--clear-groups', '--inh-caps=-all', '--bounding-set=-all', 'prlimit', '--nproc=20',
                 @cmd);
        $check->("$how: out of descriptors", '[1-9]\d*', 'descriptor|Too many open files', {},
                 'prlimit', $how eq 'pshm' ? '--nofile=4' : '--nofile=6', @cmd);
    }
}

# a copy of a program in our folder, which every user can enter
sub copy_of {
    my $file = shift;
    my $copy = "$work/" . basename($file);
    copy($file, $copy) or die "exit.pl: $copy: $!\n";
    chmod 0755, $copy;
    return $copy;
}

# --- what gasnetrun offers ---

# returns (exit code, output) of a command fed with $stdin
sub capture {
    my ($env, $stdin, @cmd) = @_;
    open my $f, '>', "$work/stdin" or die;
    print $f $stdin;
    close $f;
    my $pid = start($env, "$work/stdin", @cmd);
    my ($code) = finish($pid, 30);
    return ($code, output());
}

sub expect {
    my ($name, $code, $patterns, $env, $stdin, @cmd) = @_;
    my ($got, $text) = capture($env, $stdin, @cmd);
    my @problems;
    push @problems, "exit code $got, expected $code" if $got !~ /^(?:$code)$/;
    for my $p (@$patterns) {
        my ($count, $pattern) = ref $p ? @$p : (undef, $p);
        my $seen = () = $text =~ /$pattern/mg;
        push @problems, "/$pattern/ was seen $seen times" if defined $count ? $seen != $count : $seen == 0;
    }
    report($name, \@problems, $text);
}

sub run_options {
    return if @only && !grep { $_ eq 'options' } @only;
    my @sh = ('/bin/sh', '-c');
    expect('gasnetrun: standard input goes to rank 0', 0, [[1, '^got hello there$']], {}, "hello there\n",
           $gasnetrun, '-n', 3, @sh, 'read -r x && echo "got $x"; true');
    expect('gasnetrun: -l puts the rank before each line', 0,
           [[1, '^\[0\] one$'], [1, '^\[2\] one$'], [3, '^\[\d\] two$'], [3, '^\[\d\] unfinished$']], {}, '',
           $gasnetrun, '-n', 3, '-l', @sh, 'echo one; echo two >&2; printf unfinished');
    expect('gasnetrun: -l keeps long lines and many lines apart', 0, [[12000, '^\[\d\] x{70}$'], [4, '^\[\d\] y{3000}$']], {}, '',
           $gasnetrun, '-n', 4, '-l', 'perl', '-e', 'print "x" x 70, "\n" for 1..3000; print "y" x 3000, "\n"');
    expect('gasnetrun: -t runs nothing', 0, ['^gasnetrun: would start 2 ranks', [0, '^hello']], {}, '',
           $gasnetrun, '-n', 2, '-t', '/bin/echo', 'hello');
    my %mpi = (MPIRUN_CMD => 'echo -n %N %C');
    expect('gasnetrun: -t shows the command of another launcher', 0,
           ['^gasnetrun: would start: echo -n 2 ', [0, 'running'], [0, 'VERBOSEENV'], [0, '^2 ']], \%mpi, '',
           $gasnetrun, '-t', '-spawner=mpi', '-n', 2, $program);
    expect('gasnetrun: -v shows the command of another launcher', 0, ['^gasnetrun: running: .*VERBOSEENV=1'], \%mpi, '',
           $gasnetrun, '-v', '-spawner=mpi', '-n', 2, $program);
    expect('gasnetrun: -v tells what it does', 0, ['^gasnetrun: starting 2 ranks', '^ENV parameter'], {}, '',
           $gasnetrun, '-n2', '-v', $program, 0);
    expect('gasnetrun: -c names the conduit or counts CPUs', 0, [[2, '^smp FORK$'], [2, '^none$']], {}, '', @sh,
           "'$gasnetrun' -n 2 -c smp /bin/sh -c 'echo \$GASNET_CONDUIT \$GASNET_SMP_SPAWNER | sed s/fork/FORK/'; " .
           "'${gasnetrun}' -n 2 -c 0 /bin/sh -c 'echo none'");
    expect('gasnetrun: --bind gives each rank CPUs of its own', 0, [[1, '^0 .'], [1, '^1 .']], {}, '', @sh,
           "'$gasnetrun' -n 2 --bind=hwthread -l sh -c 'grep Cpus_allowed_list /proc/self/status | cut -f2' | sed 's/[][]//g' | " .
           "sort | awk '!seen[\$2]++'")
        if `nproc` >= 2;
    expect('gasnetrun: unknown options print the usage', 1, ['^usage:'], {}, '', $gasnetrun, '-foo', '-n', 2, $program);
    expect('gasnetrun: -N 2 is refused by spawner fork', 1, ['-N 2'], {}, '', $gasnetrun, '-n', 2, '-N', 2, $program);
    expect('gasnetrun: -spawner=nonsense is refused', 1, ['nonsense'], {}, '', $gasnetrun, '-spawner=nonsense', '-n', 2, $program);
    expect('gasnetrun: a template without %N is refused', 1, ['MPIRUN_CMD'], {MPIRUN_CMD => 'mpirun %C'}, '',
           $gasnetrun, '-spawner=mpi', '-n', 2, $program);
    expect('gasnetrun: variables reach a launcher of unknown kind by env', 0, ['^-n 2 env .*GASNET_FOO=a b .*exit_case.* 7$'],
           {PMIRUN_CMD => 'echo -n %N %C', GASNET_FOO => 'a b'}, '', @sh,
           "sed 's/^/-n /' <<E\n\$('$gasnetrun' -spawner=pmi -n 2 '$program' 7)\nE");
    expect('gasnetrun: the variable is not left to programs that ranks run', 0, [[2, '^inner$'], [0, 'is rank \d+ of this job already']], {}, '',
           $gasnetrun, '-n', 2, @sh, "'$gasnetrun' -n 1 /bin/echo inner");
}

# --- help for people who look for errors ---

sub run_aids {
    return if @only && !grep { $_ eq 'aids' } @only;
    my @run = ($gasnetrun, '-n', 2, $program);
    expect('GASNET_BACKTRACE: a fatal signal prints where it was', 139, ['SIGSEGV', 'exit_case'], {GASNET_BACKTRACE => 1,
           GASNET_BACKTRACE_TYPE => 'EXECINFO'}, '', @run, 100) unless $asan;
    expect('GASNET_NO_CATCH_SIGNAL: the default action, reported by the supervisor', 139, [[0, 'Caught a fatal'], [1, 'SIGSEGV']],
           {GASNET_NO_CATCH_SIGNAL => 'segv'}, '', @run, 100) unless $asan;
    expect('GASNET_NO_CATCH_SIGNAL=*', 134, [[0, 'Caught'], [1, 'SIGABRT']], {GASNET_NO_CATCH_SIGNAL => '*'}, '', @run, 102);
    # frozen processes wait beyond every timeout; SIGTERM to the launcher ends them all the same
    for my $how (['GASNET_FREEZE', 0, 2], ['GASNET_FREEZE_ON_ERROR', 102, 1]) {
        my ($name, $case, $count) = @$how;
        my $before = shared_files();
        my $pid = start({$name => 1, GASNET_EXITTIMEOUT => 0.3}, '/dev/null', @run, $case);
        sleep 1.5;
        my $alive = waitpid($pid, WNOHANG) == 0;
        my $text = output();
        kill 'TERM', $pid;
        my ($code, $seconds) = $alive ? finish($pid, 20) : (0, 0);
        my @problems;
        push @problems, 'ended by itself' unless $alive;
        my $seen = () = $text =~ /gasnet_frozen/g;
        push @problems, "$seen processes said how to go on, expected $count" if $seen != $count;
        push @problems, "exit code $code" if $code eq 'timeout' || ($case == 0 && $code ne '1');
        my $left = leftovers($before);
        push @problems, "left behind: $left" if $left ne '';
        report("$name: waits for a debugger", \@problems, output());
    }
    my $before = shared_files();
    my $pid = start({GASNET_BACKTRACE_SIGNAL => 'USR1', GASNET_BACKTRACE_TYPE => 'EXECINFO'}, '/dev/null', @run, 34);
    my $limit = time + 10;
    my ($rank) = output() =~ /^ready 1 (\d+)/m;
    while (!$rank && time < $limit) { sleep 0.02; ($rank) = output() =~ /^ready 1 (\d+)/m }
    kill 'USR1', $rank if $rank;
    sleep 0.3;
    my $text = output();
    kill 'TERM', $pid;
    my ($code) = finish($pid, 20);
    my @problems;
    push @problems, 'no backtrace' unless $text =~ /exit_case/;
    push @problems, "exit code $code, expected 1" if $code ne '1';
    report('GASNET_BACKTRACE_SIGNAL: prints one and goes on', \@problems, $text);
}

# --- all of it ---

mkdir "$work/cwd";
chmod 0777, "$work/cwd";
# a standard input that never says anything: a FIFO which we hold open
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
