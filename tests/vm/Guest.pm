# SPDX-License-Identifier: BSD-3-Clause
# Guest.pm - jobs inside a guest of run.pl: start, watch, judge them.
package Guest;
use strict;
use warnings;
use Exporter 'import';
use JSON::PP qw(decode_json);
use POSIX qw(:sys_wait_h setsid);
use Time::HiRes qw(sleep);

our @EXPORT = qw($build $out $verbose enter leave run job job_unprivileged start finish ranks_of kill_rank leftovers pair
                 perftest perftest_result perftest_mean json_rows read_file peer_device peer_address ports_of_wire launcher follow
                 judge skip);
our ($build, $out, $verbose) = ('', '', 0);

my ($guest, $tests, $work) = ('one', 0, '/tmp/aq-guest');
my @address = split ' ', $ENV{RXE_VM_ADDRS} // '';

sub read_file {
    my ($name) = @_;
    open my $f, '<', $name or return '';
    local $/;
    my $text = <$f>;
    return $text // '';
}

sub write_script {
    my ($name, $text) = @_;
    open my $f, '>', "$work/$name" or die "guest.pl: $work/$name: $!\n";
    print $f "#!/bin/sh\n$text";
    close $f;
    chmod 0755, "$work/$name";
    return "$work/$name";
}

# enter GUEST, NEAR: from now on jobs start as they have to there, so many ranks of a host sharing memory
sub enter {
    ($guest, my $local) = @_;
    $| = 1;
    mkdir $work;
    chdir $work or die "guest.pl: $work: $!\n";
    delete @ENV{grep { /^(GASNET_|AQ_BUILD|AQ_SRC|PMIX_|SLURM_)/ && !/^GASNET_IBV_/ } keys %ENV};
    $ENV{GASNET_CONDUIT}          = 'ibv';
    $ENV{GASNET_SUPERNODE_MAXSIZE} = $local;
    $ENV{GASNET_EXITTIMEOUT}      = 30;    # emulated processors, maybe of a busy machine
    $ENV{GASNET_HOST_TIMEOUT}     = 60;
    $ENV{AQ_TEST_PATIENCE}        = 120;
    $ENV{AQ_TEST_BYTEWISE}        = 1; # Soft-RoCE copies payloads by the kernel's memcpy, which knows no words
    $ENV{GASNET_PHYSMEM_MAX}      = '1/3' if $guest eq 'wire'; # each of two "hosts" has half of the memory
    # Two "hosts" that are this one, and a device for each other rank. The launcher sees to it that all ranks have the
    # same environment, so each chooses by its number.
    write_script('wire-ssh', "while [ \$# -gt 2 ]; do shift; done\nexec sh -c \"\$2\"\n");
    my %ports = ports_of_wire();
    my $ports = join ' ', map { "$_=$ports{$_}" } sort keys %ports;
    my $how = $guest eq 'wire'    ? "$ports GASNET_SSH_CMD=$work/wire-ssh "
                                    . "exec '$build/gasnetrun' -c ibv -H a,b \"\$@\"\n"
              : $guest eq 'hosts' ? "exec '$build/gasnetrun' -c ibv -H rxe-host0,rxe-host1 \"\$@\"\n"
              :                     "exec '$build/gasnetrun' -c ibv \"\$@\"\n";
    write_script('launch', $how);
    elsewhere("mkdir -p $work"); # ranks start there in the folder of the launcher
}

sub ports_of_wire {
    return (GASNET_IBV_PORTS_TYPE => 'JRank%2', GASNET_IBV_PORTS_0 => 'rxe0', GASNET_IBV_PORTS_1 => 'rxe1');
}

sub launcher { return "$work/launch" }
sub leave { print "end $tests\n" }
sub peer_device { return $guest eq 'wire' ? 'rxe1' : 'rxe0' }
sub peer_address { return $address[0] }

# --- verdicts ---

sub judge {
    my ($name, $text, $good) = @_;
    $tests++;
    print $good ? 'ok' : 'not ok', " - $name\n";
    return if $good && !$verbose;
    my @lines = split /\n/, $text;
    splice @lines, 30, @lines - 60, '...' if @lines > 61;
    print "#   $_\n" for @lines;
}

sub skip {
    my ($name, $why) = @_;
    $tests++;
    print "ok - $name # SKIP $why\n";
}

# --- jobs ---

# A command in a session of its own, its output in a file; returns [process, file].
my $started = 0;
sub start_command {
    my ($env, @command) = @_;
    my $file = "$work/out." . ++$started;
    open my $empty, '>', $file or die "guest.pl: $file: $!\n";
    close $empty;
    my $pid = fork // die "guest.pl: fork: $!\n";
    return [$pid, $file] if $pid;
    setsid();
    $ENV{$_} = $env->{$_} for keys %$env;
    open STDIN,  '<',  '/dev/null' or die;
    open STDOUT, '>>', $file       or die;
    open STDERR, '>&', \*STDOUT    or die;
    exec @command or POSIX::_exit(126);
}

sub start {
    my ($n, @command) = @_;
    return start_command({}, launcher(), '-n', $n, @command);
}

# its output; $? as of its end. Past the limit its session is ended.
sub finish {
    my ($job, $limit) = @_;
    my ($pid, $file) = @$job;
    my $end = time + $limit;
    my ($status, $late) = (0, '');
    until (waitpid($pid, WNOHANG) == $pid) {
        if (time > $end) {
            kill 'KILL', -$pid;
            waitpid $pid, 0;
            $late = "\nended from outside after $limit s\n";
            $? = 124 << 8;
            last;
        }
        sleep 0.05;
    }
    $status = $?;
    my $text = read_file($file) . $late;
    unlink $file;
    $? = $status;
    return $text;
}

# run [{ENVIRONMENT}] LIMIT COMMAND...
sub run {
    my $env = ref $_[0] ? shift : {};
    my ($limit, @command) = @_;
    return finish(start_command($env, @command), $limit);
}

# job LIMIT RANKS COMMAND...
sub job {
    my ($limit, $n, @command) = @_;
    return finish(start($n, @command), $limit);
}

# job_unprivileged LIMIT KILOBYTES COMMAND: two ranks without privileges that may lock so much. They are the owner of the
# build folder, since other users may have no access to it, as in a home folder.
sub job_unprivileged {
    my ($limit, $kilobytes, @command) = @_;
    my ($uid, $gid) = (stat $build)[4, 5];
    chmod 0666, glob '/dev/infiniband/*';
    return run($limit, 'sh', '-c', "ulimit -l $kilobytes; exec \"\$@\"", 'sh',
               'setpriv', '--reuid', $uid, '--regid', $gid, '--clear-groups', '--bounding-set=-all',
               '--inh-caps=-all', launcher(), '-n', 2, @command);
}

# follow LABEL, {ENVIRONMENT}, LIMIT, COMMAND...: prints its TAP lines as part of this run
sub follow {
    my ($label, $env, $limit, @command) = @_;
    my $job  = start_command($env, @command);
    my ($pid, $file) = @$job;
    my ($seen, $end, $over, $text) = (0, time + $limit, 0, '');
    open my $in, '<', $file or die "guest.pl: $file: $!\n";
    while (1) {
        my $done = waitpid($pid, WNOHANG) == $pid;
        my $status = $?;
        seek $in, 0, 1;
        while (my $line = <$in>) {
            $text .= $line;
            if ($text !~ /\n\z/) { next }
            ($line, $text) = ($text, '');
            if ($line =~ /^(not )?ok \d+ - (.*)/) {
                $seen++;
                $tests++;
                print $1 // '', "ok - $label$2\n";
            } elsif ($line =~ /^(\s|#)/) {
                print $line;
            }
        }
        last if $done;
        if (time > $end) {
            kill 'KILL', -$pid;
            waitpid $pid, 0;
            $over = 1;
            last;
        }
        sleep 0.1;
    }
    unlink $file;
    judge("$label$command[0] ended within $limit s and ran something", '', $seen > 0 && !$over) if $over || !$seen;
}

# --- who is there ---

# the other host, when there is one
sub elsewhere {
    my ($command) = @_;
    return $guest eq 'hosts' ? `ssh rxe-host1 '$command' </dev/null` : '';
}

# Prints each process and its command line; no single quotes, since a shell has it in them.
my $list = q(for (glob "/proc/[0-9]*/cmdline") { open my $f, "<", $_ or next; local $/; )
         . q(my $l = <$f>; next unless length $l; $l =~ tr/\0/ /; print m{(\d+)} ? "$1 $l\n" : "" });

# processes of test programs: [where, pid, command line]
sub programs {
    my @found;
    for my $where ('here', 'there') {
        my $text = $where eq 'here'  ? `$^X -e '$list'`
                 : $guest eq 'hosts' ? `ssh rxe-host1 perl <<'END'\n$list\nEND`
                 :                     '';
        push @found, map { /^(\d+) (.*)/ ? [$where, $1, $2] : () }
            grep { m{^\d+ (?:sh -c )?\S*/(?:tests/conformance/bin/|ft |gasnetrun)} } split /\n/, $text;
    }
    return @found;
}

# ranks of a job once N of them are there: processes whose first word is the program itself, no parent of another
sub ranks_of {
    my ($job, $n, $limit) = @_;
    my $end = time + $limit;
    my @ranks;
    while (time < $end) {
        @ranks = grep { $_->[2] =~ m{^\S*/tests/conformance/bin/} } programs();
        last if @ranks >= $n;
        return () if !kill 0, $job->[0];
        sleep 0.3;
    }
    return @ranks;
}

sub kill_rank {
    my ($rank) = @_;
    my ($where, $pid) = @$rank;
    if ($where eq 'here') { kill 'KILL', $pid }
    else                  { elsewhere("kill -9 $pid") }
}

# "" or the processes that are left after at most LIMIT seconds
sub leftovers {
    my ($limit) = @_;
    my $end = time + $limit;
    my @left;
    while (@left = programs()) {
        last if time > $end;
        sleep 0.3;
    }
    return join ', ', map { "$_->[1] $_->[0] ($_->[2])" } @left;
}

# the rows of a file of aq-bench: {"name/size"} = [median, unit, ratio to the limit]
sub json_rows {
    my ($file) = @_;
    my $data = eval { decode_json(read_file($file)) } or return {};
    return {map { ("$_->{name}/" . ($_->{size} // $_->{ranks} // 0) =>
                   [$_->{subject}{median}, $_->{unit}, $_->{ratio} && $_->{ratio}{median}]) } @{$data->{rows}}};
}

# --- the device without the library ---

# pair LIMIT, [SERVER...], [CLIENT...]: what both said. The client runs on the other host, if there is one.
sub pair {
    my ($limit, $server, $client) = @_;
    my $served = start_command({}, @$server);
    sleep 2;
    my @client = $guest eq 'hosts' ? ('ssh', 'rxe-host1', @$client) : @$client;
    my $asked  = finish(start_command({}, @client), $limit);
    return (finish($served, 10), $asked);
}

# Each on a core of its own, as ranks are: a software device works on the core that posts, and a process that wanders
# to the other one, away from its device's work, has two cores to itself. unbound => 1: let it.
sub perftest {
    my ($how, $limit, $tool, @options) = @_;
    my @all    = ($tool, '-x', 1, '-F', @options);
    my @cores  = $guest eq 'hosts' ? (0, 0) : (1, 0);
    my @bound  = map { $how->{unbound} ? [] : ['taskset', '-c', $_] } @cores;
    return reverse pair($limit, [@{$bound[0]}, @all, '-d', 'rxe0'],
                        [@{$bound[1]}, @all, '-d', peer_device(), peer_address()]);
}

# its typical latency in microseconds, or its average bandwidth in MB/s with, behind a blank, the message rate in 1/us
sub perftest_result {
    my ($tool, $text) = @_;
    for my $line (split /\n/, $text) {
        my @column = split ' ', $line;
        next unless @column >= 5 && $line =~ /^\s*\d+\s+\d+\s+[\d.]+\s/;
        return $column[4] if $tool =~ /_lat/;
        return "$column[3] $column[4]";
    }
    return;
}

# its average latency in microseconds
sub perftest_mean {
    my ($tool, $text) = @_;
    for my $line (split /\n/, $text) {
        my @column = split ' ', $line;
        next unless @column >= 6 && $line =~ /^\s*\d+\s+\d+\s+[\d.]+\s/;
        return $column[5];
    }
    return;
}

1;
