# SPDX-License-Identifier: BSD-3-Clause
# Lab.pm - jobs on the hosts of hosts.sh: start, watch and judge them, and see what they leave behind.
# Used by hosts.pl in the room of the hosts, from where the processes of all hosts are seen.
package Lab;
use strict;
use warnings;
use Exporter 'import';
use POSIX qw(:sys_wait_h setsid);
use Time::HiRes qw(time sleep);

our @EXPORT = qw($work $verbose $tests $failed hosts on hostnames start launcher await finish output report skip
                 leftovers job judge_end measure_ssh processes read_file write_file);
our ($work, $verbose, $tests, $failed) = ('', 0, 0, 0);

my $here = __FILE__ =~ s{/[^/]*$}{}r;
my $dir  = $ENV{AQ_HOSTS_DIR} // '';

sub read_file {
    my $name = shift;
    open my $f, '<', $name or return '';
    local $/;
    my $text = <$f>;
    return $text // '';
}

sub write_file {
    my ($name, $text) = @_;
    open my $f, '>', $name or die "hosts.pl: $name: $!\n";
    print $f $text;
    close $f or die "hosts.pl: $name: $!\n";
}

sub hostnames { return split ' ', read_file("$dir/names") }

# hosts WORD...: a command of hosts.sh
sub hosts { return system("$here/hosts.sh", @_) == 0 }

# the words that make a command run on a host
sub on { my $host = shift; return ("$here/hosts.sh", 'run', $host, @_) }

# --- jobs ---

# start HOST, {env => {}, stdin => file}, command...: a job in a session of its own; output in $work/out and err
sub start {
    my ($host, $more, @cmd) = @_;
    write_file("$work/$_", '') for qw(out err);
    my $pid = fork;
    die "fork: $!" unless defined $pid;
    return $pid if $pid;
    setsid();
    $ENV{$_} = $more->{env}{$_} for keys %{$more->{env} || {}};
    open STDIN,  '<',  $more->{stdin} || '/dev/null' or die;
    open STDOUT, '>>', "$work/out" or die;
    open STDERR, '>>', "$work/err" or die;
    $SIG{$_} = 'DEFAULT' for qw(INT QUIT HUP TERM PIPE CHLD);
    exec on($host, @cmd) or POSIX::_exit(126);
}

sub output { return read_file("$work/out") . read_file("$work/err") }

# the process on the host that a started command became: nsenter's child
sub launcher {
    my $pid = shift;
    my $limit = time + 5;
    while (time < $limit) {
        my ($child) = split ' ', read_file("/proc/$pid/task/$pid/children");
        return $child if $child && read_file("/proc/$child/cmdline") !~ /hosts\.sh|^sh\0/;
        # sh, sh, then the command: each takes the place of the one before
        sleep 0.01;
    }
    return;
}

# wait until PATTERN has come COUNT times: all that its brackets caught
sub await {
    my ($pattern, $count, $seconds) = @_;
    my $limit = time + ($seconds || 20);
    while (time < $limit) {
        my ($text, $times) = (output(), 0);
        $times++ while $text =~ /$pattern/mg;
        return $text =~ /$pattern/mg if $times >= $count;
        sleep 0.02;
    }
    return;
}

# (exit code as a shell shows it, or 'timeout'; seconds)
sub finish {
    my ($pid, $limit) = @_;
    my $begin = time;
    while (waitpid($pid, WNOHANG) != $pid) {
        if (time - $begin > $limit) {
            kill 'KILL', map { $_->[1] } processes();
            kill 'KILL', -$pid, $pid;
            waitpid $pid, 0;
            return ('timeout', time - $begin);
        }
        sleep 0.005;
    }
    return ($? & 127 ? 128 + ($? & 127) : $? >> 8, time - $begin);
}

# --- what the hosts have, and what a job leaves behind ---

sub first_process { my $host = shift; return read_file("$dir/$host.pid") + 0 }

# what runs on the hosts besides their own processes: [host, pid here, command line]
sub processes {
    my %host = map { (readlink('/proc/' . first_process($_) . '/ns/pid') // "-$_") => $_ } 'desk', hostnames();
    my %first = map { first_process($_) => 1 } 'desk', hostnames();
    my @found;
    for my $proc (glob '/proc/[0-9]*') {
        my ($pid) = $proc =~ /(\d+)$/;
        my $host = $host{readlink("$proc/ns/pid") // next} or next;
        my ($comm, $state, $parent) = read_file("$proc/stat") =~ /\((.*)\) (\S) (\d+)/s or next;
        next if $first{$pid} || $state eq 'Z' || ($first{$parent} && $comm =~ /^(sshd|sleep)$/);
        push @found, [$host, $pid, read_file("$proc/cmdline") =~ tr/\0/ /r];
    }
    return @found;
}

# Returns "" or what a job has left on the hosts after at most SECONDS
sub leftovers {
    my $seconds = shift // 2;
    my $limit = time + $seconds;
    my @left;
    while (1) {
        @left = processes();
        last if !@left || time > $limit;
        sleep 0.05;
    }
    my @what = map { "process $_->[1] on $_->[0] ($_->[2])" } @left;
    kill 'KILL', map { $_->[1] } @left;
    for my $host ('desk', hostnames()) {
        my $first = first_process($host);
        next unless -d "/proc/$first";
        push @what, map { "$_ on $host" } grep { !m{/\.\.?$} } glob("/proc/$first/root/dev/shm/*");
        push @what, map { "UDP socket $_ on $host" }
            map { read_file("/proc/$first/net/$_") =~ /^\s*\d+: (\S+)/mg } qw(udp udp6);
        push @what, map { "Unix socket $_ on $host" } read_file("/proc/$first/net/unix") =~ /(\@aq\S*)/g;
    }
    return join ', ', @what;
}

# --- verdicts ---

sub report {
    my ($name, $problems, $text) = @_;
    $tests++;
    $failed++ if @$problems;
    print @$problems ? 'not ok' : 'ok', " $tests - $name\n";
    print "# $_\n" for @$problems;
    if (@$problems || $verbose) {
        my @lines = split /\n/, $text // output();
        splice @lines, 20, @lines - 40, '...' if @lines > 41;
        print "#   $_\n" for @lines;
    }
}

sub skip {
    my ($name, $why) = @_;
    $tests++;
    print "ok $tests - $name # SKIP $why\n";
}

my $start_seconds = 0;    # that the start of a job may take besides, where ssh itself is slow

# How long ssh takes here and now, of two times the shorter. A start on several hosts waits for up to eight in a
# row; the bounds have time for 0.3 s each. What was measured when ssh was slowest counts.
sub measure_ssh {
    my $ssh;
    for (1, 2) {
        my $begin = time;
        system on('desk', 'ssh', 'h1', 'true');
        my $took = time - $begin;
        $ssh = $took if !defined $ssh || $took < $ssh;
    }
    $start_seconds = 8 * ($ssh - 0.3) if 8 * ($ssh - 0.3) > $start_seconds;
    printf "# ssh takes %.2f s: %.1f s more for a start\n", $ssh, $start_seconds;
}

# judge_end WANT, CODE, SECONDS: problems. WANT: code => pattern, within => seconds, says => pattern,
# messages => [least, most] of lines that begin with *** or gasnetrun:, gone => seconds after which nothing is left
sub judge_end {
    my ($want, $code, $seconds) = @_;
    my ($text, @problems) = (output());
    if ($code eq 'timeout') {
        push @problems, sprintf 'still running after %.1f s', $seconds;
    } else {
        push @problems, "exit code $code, expected $want->{code}" unless $code =~ /^(?:$want->{code})$/;
        push @problems, sprintf 'took %.2f s, allowed are %.2f s', $seconds, $want->{within}
            if defined $want->{within} && $seconds > $want->{within};
    }
    my $lines = () = $text =~ /^(?:\*\*\* |gasnetrun)/mg;
    my ($least, $most) = @{$want->{messages} || [0, 0]};
    push @problems, "$lines messages, expected $least to $most" if $lines < $least || $lines > $most;
    push @problems, "nothing says /$want->{says}/" if defined $want->{says} && $text !~ /$want->{says}/;
    push @problems, 'a message is broken over two lines' if $text =~ /^;/m;
    my $left = leftovers($want->{gone});
    push @problems, "left behind: $left" if $left ne '';
    return @problems;
}

# job NAME, HOST, MORE, WANT, command...: run it to its end and judge; WANT->{look} may add problems. Its time
# includes its start; where that is late, ssh may have become slower since it was measured.
sub job {
    my ($name, $host, $more, $want, @cmd) = @_;
    my $pid = start($host, $more, @cmd);
    my ($code, $seconds) = finish($pid, $more->{limit} || 60);
    measure_ssh() if defined $want->{within} && $seconds > $want->{within} + $start_seconds;
    my %in = defined $want->{within} ? (within => $want->{within} + $start_seconds) : ();
    my @problems = judge_end({code => 0, %$want, %in}, $code, $seconds);
    push @problems, $want->{look}->(read_file("$work/out"), read_file("$work/err")) if $want->{look};
    report($name, \@problems);
    return !@problems;
}

1;
