# exit_launcher.pl - part of exit.pl: limits, what gasnetrun offers, help for people who look for
# errors. SPDX-License-Identifier: BSD-3-Clause

use strict;
use warnings;
use File::Basename qw(basename);
use File::Copy qw(copy);
use POSIX qw(:sys_wait_h);
use Time::HiRes qw(time sleep);

our ($here, $asan, $ranks, $program, $gasnetrun, $work, @only);

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

# a copy of a program in the test's folder, which every user can enter
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
           ['^gasnetrun: would start: echo -n 2 .*VERBOSEENV=1', [0, 'running'], [0, '^2 ']], \%mpi, '',
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
    my $bound = "grep Cpus_allowed_list /proc/self/status | cut -f2";
    my $apart = "| sed 's/[][]//g' | sort | awk '!seen[\$2]++'";
    expect('gasnetrun: --bind=share gives each rank a part of the cores', 0, [[1, '^0 .'], [1, '^1 .']], {}, '', @sh,
           "'$gasnetrun' -n 2 --bind=share -l sh -c '$bound' $apart")
        if `nproc` >= 2;
    expect('gasnetrun: unasked, and with --bind=none over AQ_BIND=share, no rank is bound', 0, [[1, '^.']], {}, '', @sh,
           "{ '$gasnetrun' -n 2 sh -c '$bound'; AQ_BIND=share '$gasnetrun' -n 2 --bind=none sh -c '$bound'; " .
           "AQ_BIND=share '${gasnetrun}' -n 2 -c 0 sh -c '$bound'; $bound; } | sort -u");
    expect('gasnetrun: more ranks than processors are not bound', 0, [[1, '^.']], {}, '', @sh,
           "{ '$gasnetrun' -n \$((`nproc` + 1)) --bind=share sh -c '$bound'; $bound; } | sort -u");
    expect('gasnetrun: AQ_BIND with another word is refused', 1, ['AQ_BIND=rack: choose none'], {AQ_BIND => 'rack'}, '',
           $gasnetrun, '-n', 2, $program);
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

1;
