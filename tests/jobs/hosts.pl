#!/usr/bin/perl
# SPDX-License-Identifier: BSD-3-Clause
# hosts.pl - jobs on several hosts: namespaces with names, addresses, ssh servers and a switch that drops packets.
# Prints TAP; one skipped test where the machine allows no such namespaces.
#
#   hosts.pl [--long] [--group NAME]... [--case PATTERN] [--verbose]
#
# Groups: hosts place io exit fault refused network secret rules apps power.
# AQ_BUILD is the build folder (default: the current one).
use strict;
use warnings;
use Cwd qw(abs_path getcwd);
use File::Basename qw(dirname);
use File::Temp qw(tempdir);
use Time::HiRes qw(time sleep);
my $here;
BEGIN { $here = abs_path(dirname($0)) }
use lib $here;
use Lab;

my @arguments = @ARGV;
my ($inside, $long, @groups, $only) = (0, 0);
while (@ARGV) {
    my $word = shift;
    if    ($word eq '--inside')  { $inside = 1 }
    elsif ($word eq '--long')    { $long = 1 }
    elsif ($word eq '--group')   { push @groups, shift }
    elsif ($word eq '--case')    { $only = shift }
    elsif ($word eq '--verbose') { $verbose = 1 }
    else                         { die "hosts.pl: unknown option $word\n" }
}
my $build     = abs_path($ENV{AQ_BUILD} || '.');
my $gasnetrun = "$build/gasnetrun";
my $where     = "$build/tests/jobs/where";
my $exit_case = "$build/tests/jobs/exit_case-par";
my $rules     = "$build/tests/conformance/bin";

if (!$inside) {
    my $why = `'$here/hosts.sh' check 2>&1`;
    if ($? >> 8 == 77) {
        chomp $why;
        print "ok 1 - several hosts # SKIP $why\n1..1\n";
        exit 0;
    }
    $ENV{AQ_HOSTS_AT} = 'room';
    exec "$here/hosts.sh", 'with', 4, $^X, abs_path($0), '--inside', @arguments or die "hosts.pl: hosts.sh: $!\n";
}

$work = tempdir('aq-hosts-test.XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $dir = $ENV{AQ_HOSTS_DIR};
delete @ENV{grep { /^(GASNET_|AQ_UDP_|SSH_|PBS_|SLURM_|LSB_|OAR_|PE_HOSTFILE|SSS_)/ } keys %ENV};
$ENV{GASNET_HOST_TIMEOUT} = 3;    # the default is meant for busy networks, not for impatient tests
$ENV{AQ_SPIN} = 5;                # each host thinks that the processors are its own

sub wanted { my $name = shift; return !defined $only || $name =~ /$only/ }

# the words that start N ranks on a list of hosts
sub run_on { my ($n, $list, @more) = @_; return ($gasnetrun, '-c', 'udp', '-n', $n, '-H', $list, @more) }

# --- hosts: are they what the rest relies on? ---

sub group_hosts {
    return unless wanted('hosts');
    my $ssh = 'for h in h1 h2 h3 h4; do ssh $h hostname; done';
    job('ssh reaches each host', 'desk', {}, {look => sub { $_[0] eq "h1\nh2\nh3\nh4\n" ? () : 'other names' }},
        'sh', '-c', $ssh);
    hosts('drop', 'h2', 100);
    hosts('cut', 'h3');
    job('a dropped and an unplugged host are silent, others not', 'desk', {}, {code => 255},
        'sh', '-c', 'ssh -4 -o ConnectTimeout=1 h2 true && exit 1; ssh -4 -o ConnectTimeout=1 h3 true && exit 2; '
                    . 'ssh h4 exit 255');
    hosts('drop', 'h2', 0);
    hosts('mend', 'h3');
}

# --- place: who is where ---

# hosts in list order, blocks, the earlier ones one more
sub blocks {
    my ($n, @hosts) = @_;
    my @of;
    for my $i (0 .. $#hosts) {
        push @of, ($hosts[$i]) x (int($n / @hosts) + ($i < $n % @hosts ? 1 : 0));
    }
    return @of;
}

# problems in the "place" lines of a job whose ranks should be on these hosts
sub look_place {
    my ($text, @of) = @_;
    my (@problems, %index, %ranks);
    my $n = @of;
    for my $r (0 .. $#of) {
        $index{$of[$r]} = scalar keys %index unless exists $index{$of[$r]};
        push @{$ranks{$of[$r]}}, $r;
    }
    my $hosts = keys %index;
    for my $r (0 .. $#of) {
        my @mates = @{$ranks{$of[$r]}};
        my ($at) = grep { $mates[$_] == $r } 0 .. $#mates;
        my $want = join ' ', 'place', $r, $n, $of[$r], $hosts, $index{$of[$r]}, $hosts, $index{$of[$r]},
                             scalar @mates, $at, join ',', @mates;
        push @problems, "no line '$want'" unless $text =~ /^\Q$want\E$/m;
    }
    my $lines = () = $text =~ /\n/g;
    push @problems, "$lines lines, expected $n" if $lines != $n;
    return @problems;
}

sub place {
    my ($name, $from, $env, $of, @cmd) = @_;
    return unless wanted($name);
    job($name, $from, {env => $env}, {within => 10, look => sub { look_place($_[0], @$of) }}, @cmd, $where, 'place');
}

sub group_place {
    for my $case ([2, 2], [2, 4], [3, 6], [3, 7], [4, 8], [4, 16]) {
        my ($hosts, $n) = @$case;
        my @hosts = map { "h$_" } 1 .. $hosts;
        place("$n ranks on $hosts hosts", 'desk', {}, [blocks($n, @hosts)], run_on($n, join ',', @hosts));
    }
    place('4 ranks on 2 hosts, started on one of them', 'h1', {}, [blocks(4, 'h1', 'h2')], run_on(4, 'h1,h2'));
    place('4 ranks on 2 hosts, the starting one is the second', 'h2', {}, [blocks(4, 'h1', 'h2')], run_on(4, 'h1,h2'));
    place('3 ranks on one host, from another', 'desk', {}, [('h3') x 3], run_on(3, 'h3'));
    place('h2:1,h1:3 as slots', 'desk', {}, ['h2', ('h1') x 3], run_on(4, 'h2:1,h1:3'));
    place('2 ranks, 4 hosts in the list: two are used', 'desk', {}, ['h1', 'h2'], run_on(2, 'h1,h2,h3,h4'));
    place('-N 2 of 4 hosts', 'desk', {}, [blocks(6, 'h1', 'h2')], run_on(6, 'h1,h2,h3,h4', '-N', 2));
    write_file("$work/hostfile", "# ours\nh3 slots=2\nh1\n");
    place('a file of hosts', 'desk', {}, [qw(h3 h3 h1 h1)], $gasnetrun, '-c', 'udp', '-n', 4, '--hostfile', "$work/hostfile");
    place('GASNET_SSH_SERVERS', 'desk', {GASNET_SSH_SERVERS => 'h4 h2'}, [qw(h4 h4 h2)], $gasnetrun, '-c', 'udp', '-n', 3);
    place('addresses as hosts, IPv4', 'desk', {}, [qw(h1 h2)], run_on(2, '10.99.0.1,10.99.0.2'));
    job('nobody names a conduit: the shared library takes one that joins hosts', 'desk', {},
        {within => 20, look => sub { $_[0] =~ /gave the right answers/ ? () : ('no "gave the right answers"') }},
        $gasnetrun, '-n', 4, '-H', 'h1,h2', "$build/tests/jobs/tour-shared") if wanted('nobody names a conduit');
    for my $degree (1, 2) {
        place("agents start agents: out degree $degree", 'desk', {GASNET_SSH_OUT_DEGREE => $degree},
              [blocks(8, qw(h1 h2 h3 h4))], run_on(8, 'h1,h2,h3,h4'));
    }
    return unless $long;
    place('64 ranks on 4 hosts', 'desk', {}, [blocks(64, qw(h1 h2 h3 h4))], run_on(64, 'h1,h2,h3,h4'));
    write_file("$work/slow-ssh", "#!/bin/sh\ncase \" \$* \" in *' h2 '*) sleep 6 ;; esac\nexec ssh \"\$@\"\n");
    chmod 0755, "$work/slow-ssh";
    place('a host that takes 6 s to answer', 'desk', {GASNET_SSH_CMD => "$work/slow-ssh"}, [qw(h1 h1 h2 h2)],
          run_on(4, 'h1,h2'));
}

# --- io: what goes in and what comes out ---

sub group_io {
    my %env = (GASNET_HOSTS_TEST => 'a value with  blanks, "quotes", $dollars', OTHER_TEST => "it's",
               GASNET_HOSTS_EMPTY => '');
    my @names = qw(GASNET_HOSTS_TEST OTHER_TEST GASNET_HOSTS_EMPTY);
    my $look = sub {
        my $text = shift;
        my @problems;
        for my $r (0 .. 3) {
            for my $name (@names) {
                my $want = "env $r $name $env{$name} $env{$name}";
                push @problems, "no line '$want'" unless $text =~ /^\Q$want\E$/m;
            }
        }
        return @problems;
    };
    wanted('environment') and job('environment: GASNET_*, and what -E names', 'desk', {env => \%env}, {look => $look},
        run_on(4, 'h1,h2', '-E', 'OTHER_TEST,NOT_SET', $where, 'env', @names));

    my @words = ('two words', '', 'a"b', "c'd", '$HOME', '*', 'back\\slash', 'semi;colon', '--', '-n', "two\nlines");
    my $args = sub {
        my $text = shift;
        my $want = join '', map { "arg 1 $_ <$words[$_]>\n" } 0 .. $#words;
        return $text =~ /\Q$want\E/ ? () : 'not what was given';
    };
    job('arguments arrive as they are', 'desk', {}, {look => $args}, run_on(2, 'h1,h2', $where, 'args', @words))
        if wanted('arguments');

    my $text = join '', map { "line $_ of the standard input\n" } 1 .. 20000;
    write_file("$work/in", $text);
    my $got = sub {
        my ($out) = @_;
        my @problems;
        my $rest = join '', sort grep { /^rank/ } $out =~ /^.*\n/mg;
        push @problems, "others: $rest" if $rest ne join '', map { "rank $_ read 0 bytes\n" } 1 .. 3;
        $out =~ s/^rank \d read \d+ bytes\n//mg;
        push @problems, sprintf 'rank 0 gave back %d bytes of %d', length $out, length $text if $out ne $text;
        return @problems;
    };
    wanted('standard input') and job('standard input goes to rank 0', 'desk', {stdin => "$work/in"}, {look => $got},
        run_on(4, 'h2,h1', $where, 'cat'));

    for my $prefix (0, 1) {
        my $n = 4;
        my $lines = sub {
            my ($out, $err) = @_;
            my @problems;
            for (['out', $out, 7], ['err', $err, 5]) {
                my ($kind, $all, $step) = @$_;
                my $filler = join('', 'a' .. 'z') x 3;
                for my $r (0 .. $n - 1) {
                    my $want = join '', map { "$kind $r $_ " . substr($filler, 0, ($_ * $step + $r) % 70) . ".\n" } 0 .. 1999;
                    my $mark = $prefix ? "[$r] " : '';
                    my $have = join '', map { s/^\Q$mark\E//r } grep { /^\Q$mark\E$kind $r / } $all =~ /^.*\n/mg;
                    push @problems, sprintf '%s of rank %d: %d bytes, expected %d', $kind, $r, length $have, length $want
                        if $have ne $want;
                }
                my $count = () = $all =~ /\n/g;
                push @problems, "$count lines of $kind" if $count != 2000 * $n;
            }
            return @problems;
        };
        next unless wanted('stdout');
        job('stdout and stderr of all ranks, whole lines, in order' . ($prefix ? ', with prefix' : ''), 'desk', {},
            {look => $lines}, run_on($n, 'h1,h2', $prefix ? '-l' : (), $where, 'lines', 2000));
    }
    my $command = join ' ', run_on(4, 'h1,h2', $where, 'lines', 20000);
    job('a slow reader gets everything', 'desk', {},
        {look => sub { $_[0] =~ /^80000$/m ? () : 'not 80000 lines' }},
        'sh', '-c', "$command 2>/dev/null | { sleep 2; wc -l; }") if wanted('slow reader');
    job('a reader that leaves early', 'desk', {}, {code => '0', look => sub { $_[0] =~ /^out/ ? () : 'no line' }},
        'sh', '-c', "$command 2>/dev/null | head -n 1") if wanted('leaves');
    # what a profile on the hosts might print
    write_file("$work/chatty-ssh", "#!/bin/sh\necho 'Welcome to this host'\nexec ssh \"\$@\"\n");
    chmod 0755, "$work/chatty-ssh";
    place('a login that prints a greeting', 'desk', {GASNET_SSH_CMD => "$work/chatty-ssh"}, [qw(h1 h2)],
          run_on(2, 'h1,h2'));
}

# --- exit: codes and crashes ---

sub group_exit {
    my @cases = (
        [0, 'all return 0', 0], [1, 'all exit', 1], [2, 'all return from main', 2],
        [3, 'one exits, the others are in a barrier', 3, 3], [5, 'one exits, the others spin', 5, 3],
        [5, 'the first host\'s rank exits', 5, 0], [11, 'one exits in a handler', 11, 3],
        [20, 'each exits with another code', 23], [22, 'one exits, the others sleep', 22, 2],
        [100, 'SIGSEGV in one', 139, 3, 'proc 3\): SIGSEGV'], [102, 'abort in one', 134, 2, 'proc 2\): SIGABRT'],
        [106, 'SIGKILL in one', 137, 3, 'rank 3.*SIGKILL'], [107, '_exit(7) in one', 7, 2, 'rank 2'],
        [109, 'SIGTERM in one', 1, 3, 'proc 3\): SIGTERM'], [200, 'SIGSEGV in all', 139, undef, 'SIGSEGV'],
    );
    for (@cases) {
        my ($case, $what, $code, $who, $says) = @$_;
        my $name = "exit_case $case: $what";
        next unless wanted($name);
        my $messages = $case < 100 ? [0, 0] : $case == 200 ? [1, 4] : [1, 1];
        job($name, 'desk', {}, {code => $code, within => 8, messages => $messages, says => $says},
            run_on(4, 'h1,h2', $exit_case, $case, defined $who ? $who : ()));
    }
}

# --- fault: what happens to a running job ---

my $six = 'h1,h2,h3';

# run traffic on three hosts, do something to it, judge how it ends
sub fault {
    my ($name, $want, $do, %more) = @_;
    return unless wanted($name);
    my $pid = start('desk', {env => $more{env} || {}}, run_on(6, $six, $where, $more{what} || 'traffic'));
    my %rank;
    my @ready = await('^ready (\d+) (\d+) (\S+)$', 6, 20);
    while (my ($r, $number, $host) = splice @ready, 0, 3) { $rank{$r} = [$host, $number] }
    my ($code, $seconds) = (0, 0);
    my @problems;
    if (keys %rank == 6) {
        sleep 0.3;
        $do->(\%rank, launcher($pid), $pid);
    } else {
        push @problems, 'the ranks never were ready';
        kill 'KILL', launcher($pid) // $pid;
    }
    ($code, $seconds) = finish($pid, $more{limit} || 30);
    $more{after}->() if $more{after};
    push @problems, judge_end({gone => 6, messages => [1, 1], within => 8, %$want}, $code, $seconds);
    push @problems, 'transferred data were damaged' if output() =~ /DAMAGED/;
    report($name, \@problems);
}

sub matching { my ($host, $pattern) = @_; return map { $_->[1] } grep { $_->[0] eq $host && $_->[2] =~ /$pattern/ } processes() }

sub group_fault {
    for my $r (0, 3, 5) {
        fault("SIGKILL to rank $r", {code => 137, says => "rank $r.*SIGKILL"},
              sub { my $rank = shift; hosts('run', $rank->{$r}[0], 'kill', '-KILL', $rank->{$r}[1]) });
    }
    fault('SIGTERM to a rank', {code => 1, says => 'proc 3\): SIGTERM'},
          sub { my $rank = shift; hosts('run', $rank->{3}[0], 'kill', '-TERM', $rank->{3}[1]) });
    for my $degree (32, 1) {
        my $more = $degree == 1 ? ', agents in a chain' : '';
        my %env = (env => {GASNET_SSH_OUT_DEGREE => $degree});
        fault("SIGKILL to the agent on h2$more", {code => '[1-9]\d*', says => 'h2'},
              sub { kill 'KILL', matching('h2', qr/gasnetrun.*--agent/) }, %env);
        fault("SIGKILL to the ssh session on h2$more", {code => '[1-9]\d*', says => 'h2'},
              sub { kill 'KILL', matching('h2', qr/^sshd: /) }, %env);
    }
    fault('SIGKILL to ssh, h2\'s, where gasnetrun runs', {code => '[1-9]\d*', says => 'h2'},
          sub { kill 'KILL', matching('desk', qr/^(?:\S*\/)?ssh .*\bh2\b/) });
    fault('SIGKILL to gasnetrun', {code => 137, messages => [0, 1]}, sub { kill 'KILL', $_[1] });
    for my $sig (qw(INT TERM HUP)) {
        fault("SIG$sig to gasnetrun", {code => 1}, sub { kill $sig, $_[1] });
    }
    fault('Ctrl-C: SIGINT to all processes at the terminal', {code => 1}, sub {
        my $group = getpgrp $_[1];
        kill 'INT', grep { (getpgrp($_) // 0) == $group } map { $_->[1] } grep { $_->[0] eq 'desk' } processes();
    });
    fault('SIGSTOP to gasnetrun for longer than hosts wait for it', {code => 255, says => 'gasnetrun was stopped for [45] s'},
          sub { kill 'STOP', $_[1]; sleep 4.5; kill 'CONT', $_[1], $_[2] });
    fault('SIGSTOP to gasnetrun for a shorter time, then TERM', {code => 1}, sub {
        kill 'STOP', $_[1];
        sleep 2.5;
        kill 'CONT', $_[1], $_[2];
        sleep 1;
        kill 'TERM', $_[1];
    });
    fault('Ctrl-Z for longer than a host may be silent, then TERM', {code => 1}, sub {
        kill 'TSTP', $_[1];
        sleep 5;
        kill 'CONT', $_[1], $_[2];    # nsenter stops when its child does
        sleep 1;
        kill 'TERM', $_[1];
    }) if $long;
    fault('h2 is unplugged', {code => '[1-9]\d*', says => 'h2', within => 10},
          sub { hosts('cut', 'h2') }, after => sub { sleep 4; hosts('mend', 'h2') });
    fault('h2 falls silent', {code => '[1-9]\d*', says => 'h2', within => 10},
          sub { hosts('drop', 'h2', 100) }, after => sub { sleep 4; hosts('drop', 'h2', 0) });
    if ($long) {
        fault('the desk is unplugged', {code => '[1-9]\d*', within => 10, gone => 12},
              sub { hosts('cut', 'desk') }, after => sub { sleep 4; hosts('mend', 'desk') });
        fault('UDP between the hosts dies, ssh lives', {code => '[1-9]\d*', says => 'h2|rank [23]', within => 60},
              sub { hosts('drop', 'h2', 100, 'udp') }, limit => 90, after => sub { hosts('drop', 'h2', 0) },
              env => {GASNET_REQUESTTIMEOUT_MAX => 5000000});
    }
}

# --- refused: jobs that cannot start ---

sub refused {
    my ($name, $says, $env, @cmd) = @_;
    return unless wanted($name);
    job($name, 'desk', {env => $env, limit => 60}, {code => '[1-9]\d*', says => $says, messages => [1, 1], within => 30, gone => 3}, @cmd);
}

sub group_refused {
    refused('a host name that nobody knows', 'nowhere', {}, run_on(4, 'h1,nowhere', $where));
    refused('an address where nobody is', '10\.99\.0\.77', {}, run_on(4, 'h1,10.99.0.77', $where));
    refused('ssh refuses the key', 'h[12]', {GASNET_SSH_OPTIONS => "-F $dir/ssh_config.wrong"}, run_on(2, 'h1,h2', $where));
    refused('no such ssh', 'no-ssh', {GASNET_SSH_CMD => '/nonexistent/no-ssh'}, run_on(2, 'h1,h2', $where));
    refused('the folder is missing on the hosts', 'h[12]', {GASNET_SSH_REMOTE_PATH => '/nonexistent/folder'},
            run_on(2, 'h1,h2', $where));
    refused('no host in the list', 'host', {}, run_on(2, ',', $where));
    if ($long) {
        hosts('drop', 'h2', 100, 'udp');
        refused('ssh works, UDP to h2 does not', 'h2|rank', {}, run_on(2, 'h1,h2', $where));
        hosts('drop', 'h2', 0);
        hosts('drop', 'h2', 100);
        refused('h2 does not answer at all', 'h2', {}, run_on(2, 'h1,h2', $where));
        hosts('drop', 'h2', 0);
    }
    # a program that one of the hosts does not have
    mkdir "$work/local";
    system 'cp', $where, "$work/local/where";
    chomp(my $h2 = read_file("$dir/h2.pid"));
    system 'nsenter', '-t', $h2, '-m', 'mount', '-t', 'tmpfs', 'tmpfs', "$work/local";
    refused('the program is missing on h2', 'h2', {}, run_on(4, 'h1,h2', "$work/local/where"));
    system 'nsenter', '-t', $h2, '-m', 'umount', "$work/local";
    place('and after all that a job starts as ever', 'desk', {}, [qw(h1 h1 h2 h2)], run_on(4, 'h1,h2'));
}

# --- network: other links ---

sub stress { my $seconds = shift; return ("$rules/stress-par", '--seconds', $seconds) }

# what a router would tell of a link behind it with a small MTU
sub route_mtu {
    my ($verb, @more) = @_;
    for my $host (qw(h1 h2 h4)) {
        chomp(my $first = read_file("$dir/$host.pid"));
        system 'nsenter', '-t', $first, '-n', 'ip', 'route', $verb, '10.99.0.3/32', 'dev', 'eth0', @more;
    }
}

sub group_network {
    my @job = run_on(4, 'h1,h2,h3,h4');
    my $run = sub {
        my ($name, $env, @cmd) = @_;
        job($name, 'desk', {env => $env}, {within => 30}, @cmd) if wanted($name);
    };
    hosts('mtu', 9000);
    $run->('MTU 9000: stress', {}, @job, stress(2));
    $run->('MTU 9000: test_rma_large', {}, @job, "$rules/test_rma_large-par");
    hosts('mtu', 1500);
    hosts('mtu', 9000, 'h1');
    $run->('MTU 9000 on one host, 1500 on the others and the switch: stress', {}, @job, stress(2));
    hosts('mtu', 1500, 'h1');
    hosts('family', 6);
    $run->('IPv6 only: stress', {}, @job, stress(2));
    place('IPv6 only: an address as host', 'desk', {}, [qw(h1 h2)], run_on(2, 'fd99::1,fd99::2'));
    hosts('family', 4);
    $run->('IPv4 only: stress', {}, @job, stress(1));
    hosts('family', 46);
    hosts('drop', 'h2', 5, 'udp');
    $run->('5 % of h2\'s packets are lost: stress', {}, @job, stress(2));
    $run->('5 % of h2\'s packets are lost: test_am_alltoall', {}, @job, "$rules/test_am_alltoall-par");
    $run->('5 % of h2\'s packets are lost: FT class S', {}, @job, "$build/ft", 'S', 'exchange') if -x "$build/ft";
    hosts('drop', 'h2', 0);
    route_mtu('add', 'mtu', 1300);
    $run->('the way to h3 is known to be narrow: stress', {}, @job, stress(2));
    route_mtu('del');
    return unless $long;
    for my $kind ('drop=2%,dup=1%,reorder=2%', 'drop=10%') {
        $run->("AQ_UDP_FAULTS=$kind: stress", {AQ_UDP_FAULTS => $kind}, @job, stress(4));
    }
    hosts('drop', $_, 5, 'udp') for qw(h1 h2 h3 h4);
    $run->('5 % of all packets are lost at each host: FT class S', {}, @job, "$build/ft", 'S', $_)
        for -x "$build/ft" ? qw(exchange slabs pencils) : ();
    $run->('5 % of all packets are lost at each host: stress', {}, @job, stress(20));
    hosts('drop', $_, 0) for qw(h1 h2 h3 h4);
}

# --- secret: what others on the hosts can read ---

sub group_secret {
    my $name = 'the job\'s key is in no command line and no environment';
    return unless wanted($name);
    my $pid = start('desk', {}, run_on(4, 'h1,h2', $where, 'secret'));
    my ($key) = await('^secret ([0-9a-f]{64})$', 1);
    await('^ready ', 4);
    my (@problems, $looked);
    if (defined $key) {
        my $bytes = pack 'H*', $key;
        for (processes()) {
            my ($host, $p, $line) = @$_;
            my $text = read_file("/proc/$p/cmdline") . read_file("/proc/$p/environ");
            push @problems, "process $p on $host shows it ($line)"
                if $text =~ /\Q$key\E/i || index($text, $bytes) >= 0 || index($text, substr $bytes, 0, 12) >= 0;
            push @problems, "process $p on $host shows ${\ length $1} hex digits: $1" if $text =~ /\b([0-9a-f]{32,})\b/i;
            $looked++;
        }
        push @problems, 'nobody to look at' unless $looked;
    } else {
        push @problems, 'no key was shown';
    }
    kill 'TERM', launcher($pid) // $pid;
    my ($code, $seconds) = finish($pid, 20);
    push @problems, judge_end({code => 1, messages => [1, 1]}, $code, $seconds);
    report($name, \@problems);
}

# --- rules and apps: programs that have tests of their own ---

sub pass_on { # a TAP producer's points become ours
    my ($name, @cmd) = @_;
    return unless wanted($name);
    my $text = `@cmd 2>&1`;
    my ($bad, $good) = (scalar(() = $text =~ /^not ok/mg), scalar(() = $text =~ /^ok/mg));
    my @problems;
    push @problems, "$bad of " . ($good + $bad) . ' failed' if $bad;
    push @problems, 'nothing ran' if !$good;
    my $left = leftovers(3);
    push @problems, "left behind: $left" if $left ne '';
    report("$name ($good)", \@problems, join "\n", grep { !/^ok/ } split /\n/, $text);
}

# without those that go to and fro thousands of times, which takes long where the hosts share processors
my @few = qw(am_alltoall am_flood am_medium_sizes am_short_args am_token am_replies barrier_ex coll_broadcast
             coll_teams tm_create tm_split tm_pair ad_team rma_sizes rma_large seg_attach sys_queries vis_random
             npam_sizes exit_handler thread_am g1_mix nbi_sync poll_blockuntil);

sub group_rules {
    write_file("$work/launch", "#!/bin/sh\nexec '$here/hosts.sh' run desk '$gasnetrun' -c udp -H \"\$TEST_HOSTS\" "
                               . "-E AQ_TEST_WATCHDOG,AQ_TEST_QUICK,AQ_TEST_RANKS \"\$@\"\n");
    chmod 0755, "$work/launch";
    my $filter = $long ? '.' : '^test_(' . join('|', @few) . ')$';
    for ($long ? ([4, 6]) : ([3, 4])) {
        my ($hosts, $n) = @$_;
        $ENV{TEST_HOSTS} = join ',', map { "h$_" } 1 .. $hosts;
        pass_on("conformance, $n ranks on $hosts hosts", "'$ENV{AQ_SRC}/tests/conformance/aq-conformance'",
                '--conduit udp', "--dir '$rules'", '--brief --quick', $long ? '' : '--par', "-n $n", "--filter '$filter'",
                "--launcher '$work/launch'");
    }
}

sub group_apps {
    my $run = sub {
        my ($name, $env, $n, $list, @cmd) = @_;
        job($name, 'desk', {env => $env, limit => 120}, {within => 100}, run_on($n, $list, @cmd)) if wanted($name);
    };
    $run->('stress, 4 ranks on 4 hosts', {}, 4, 'h1,h2,h3,h4', stress($long ? 30 : 4));
    $run->('stress, 6 ranks on 3 hosts', {}, 6, 'h1,h2,h3', stress(3));
    if (!-x "$build/ft") {
        skip('FT', 'built without FFTW 3');
        return;
    }
    for my $transpose (qw(exchange slabs pencils)) {
        $run->("FT class S, $transpose, 4 ranks on 4 hosts", {}, 4, 'h1,h2,h3,h4', "$build/ft", 'S', $transpose);
    }
    $run->('FT class W, 4 ranks on 4 hosts', {}, 4, 'h1,h2,h3,h4', "$build/ft", 'W', 'slabs') if $long;
}

# --- power: a host dies for good ---

sub group_power {
    my $name = 'h4 loses power';
    return unless wanted($name);
    my $pid = start('desk', {}, run_on(4, 'h3,h4', $where, 'traffic'));
    my $there = await('^ready (\d+) (\d+) (\S+)$', 4, 20);
    hosts('die', 'h4');
    my ($code, $seconds) = finish($pid, 30);
    my @problems = judge_end({code => '[1-9]\d*', says => 'h4', messages => [1, 1], within => 10, gone => 6}, $code, $seconds);
    push @problems, 'the ranks never were ready' unless $there;
    report($name, \@problems);
    place('and the others go on', 'desk', {}, [qw(h1 h1 h3 h3)], run_on(4, 'h1,h3'));
}

# --- all of it ---

for ($gasnetrun, $where, $exit_case) { die "hosts.pl: $_ is missing; run make first\n" unless -x }
$ENV{AQ_SRC} ||= abs_path("$here/../..");
$ENV{TMPDIR} ||= '/tmp';
my %group = (hosts => \&group_hosts, place => \&group_place, io => \&group_io, exit => \&group_exit, fault => \&group_fault,
             refused => \&group_refused, network => \&group_network, secret => \&group_secret,
             rules => \&group_rules, apps => \&group_apps, power => \&group_power);
measure_ssh();
for my $name (@groups ? @groups : qw(hosts place io exit fault refused network secret rules apps power)) {
    die "hosts.pl: no group is called $name\n" unless $group{$name};
    my $begin = time;
    $group{$name}->();
    printf "# %s: %.0f s\n", $name, time - $begin;
}
print "1..$tests\n";
exit($failed ? 1 : 0);
