# exit_supervisor.pl - part of exit.pl: Ctrl-C at a terminal, and what the supervisor of a job finds
# when it is started: ignored signals, processes from before, descriptors.
# SPDX-License-Identifier: BSD-3-Clause

use strict;
use warnings;
use IO::Pty;
use IO::Select;
use POSIX qw(:sys_wait_h);
use Time::HiRes qw(time sleep);

our ($work, $ranks, $tests, $start, $timeout_s, @only);

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

1;
