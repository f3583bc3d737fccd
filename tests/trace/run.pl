#!/usr/bin/perl
# run.pl - do traces and statistics hold what happened, whatever happens to the job? Prints TAP.
# SPDX-License-Identifier: BSD-3-Clause
#
#   run.pl [--mode seq|par] [-n RANKS]
#
# Runs in a build folder; AQ_SRC is the source folder. Every trace is read twice: strictly, as JSON, where
# the job ended in order, and leniently, line by line, where a rank was killed.
use strict;
use warnings;
use Cwd qw(abs_path);
use Fcntl ();
use File::Basename qw(dirname);
use File::Temp qw(tempdir);
use JSON::PP ();
use POSIX ();

my $src = abs_path($ENV{AQ_SRC} || dirname($0) . '/../..');
my ($ranks, @modes) = (3, grep { -x "tests/trace/traced-$_" } qw(seq par));
while (@ARGV) {
    my $word = shift;
    if    ($word eq '--mode') { @modes = (shift) }
    elsif ($word eq '-n')     { $ranks = shift }
    else                      { die "run.pl: unknown option $word\n" }
}
my $run  = abs_path('gasnetrun');
my $sum  = "$src/other/trace/gasnet_trace";
my $work = tempdir('aq-trace.XXXXXX', TMPDIR => 1, CLEANUP => 1);
my ($tests, $mode) = (0);
my $asan = ($ENV{AQ_CONFIG} || '') =~ /asan|tsan/;
my $json = JSON::PP->new->utf8;

delete @ENV{grep { /\AGASNET_(TRACE|STATS)/ } keys %ENV};

# What traced.c does: calls and bytes of each rank.
my %known = (
    PUT => [10, 640], PUT_NB => [3, 3000], PUT_NBI => [7, 56], PUT_VAL => [1, 4], PUT_VAL_NB => [1, 8],
    PUT_VAL_NBI => [2, 2], GET => [5, 163840], GET_NB => [1, 16], GET_NBI => [1, 24], GET_VAL => [1, 4],
    NBI_WAIT => [2, 0], AMREQUEST_SHORT => [20, 0], AMREPLY_SHORT => [20, 0],
    AMHANDLER_REQUEST_SHORT => [20, 0], AMHANDLER_REPLY_SHORT => [20, 0], BARRIER => [4, 0],
    BARRIER_NOTIFY => [1, 0], BARRIER_WAIT => [1, 0], SEGMENT_ATTACH => [1, 1 << 20], CLIENT_INIT => [1, 0],
);

sub ok
{
    my ($ok, $name, @why) = @_;
    $tests++;
    print $ok ? 'ok' : 'not ok', " $tests - ", defined $mode ? "$mode: " : '', "$name\n";
    print map { "# $_\n" } map { split /\n/ } @why if !$ok;
    return $ok;
}

# Runs a command under an environment; its output and its exit status.
sub job
{
    my ($env, @command) = @_;
    local %ENV = (%ENV, %$env);
    my $pid = open my $from, '-|';
    defined $pid or die "run.pl: no process: $!\n";
    if (!$pid) {
        open STDERR, '>&', \*STDOUT;
        exec 'timeout', 90, @command or exit 127;
    }
    my $text = do { local $/; <$from> };
    close $from;
    return (defined $text ? $text : '', $? >> 8);
}

sub traced { my ($env, @args) = @_; return job($env, $run, '-n', $ranks, "tests/trace/traced-$mode", @args) }

sub text_of
{
    my ($name) = @_;
    open my $file, '<', $name or return '';
    local $/;
    my $text = <$file>;
    return defined $text ? $text : '';
}

# The events of a file: strictly, or what whole lines there are; undef if it is no JSON.
sub strict { my ($name) = @_; return eval { $json->decode(text_of($name)) } }

sub lenient
{
    my ($name, $bad_out) = @_;
    my @events;
    $$bad_out = 0;
    for my $line (split /\n/, text_of($name)) {
        next if $line =~ /\A[\[\]]\z/;
        $line =~ s/,\z//;
        my $event = eval { $json->decode($line) };
        if (ref $event eq 'HASH') { push @events, $event }
        else                      { $$bad_out++ }
    }
    return \@events;
}

# Calls and bytes by rank and name.
sub counts_of
{
    my %count;
    for (grep { $_->{ph} eq 'X' } @{ $_[0] }) {
        $count{ $_->{pid} }{ $_->{name} }[0]++;
        $count{ $_->{pid} }{ $_->{name} }[1] += $_->{args}{bytes} || 0;
    }
    return \%count;
}

# The same from a table of statistics; "job" is a rank too.
sub stats_of
{
    my ($text) = @_;
    my %count;
    for (split /\n/, $text) {
        next if !/\A(\w+)>   (\w+): +(\d+)(?:  bytes avg\/min\/max\/total = \d+\/\d+\/\d+\/(\d+))?  us avg/;
        $count{$1}{$2} = [$3, defined $4 ? $4 : 0];
    }
    return \%count;
}

sub differences
{
    my ($want, $got, @who) = @_;
    my @bad;
    for my $who (@who) {
        for my $name (sort keys %$want) {
            my ($calls, $bytes) = @{ $got->{$who}{$name} || [0, 0] };
            push @bad, "rank $who: $name: $calls calls and $bytes bytes, not $want->{$name}[0] and "
                . $want->{$name}[1] if $calls != $want->{$name}[0] || $bytes != $want->{$name}[1];
        }
    }
    return @bad;
}

# Calls of a thread lie inside one another or apart.
sub not_nested
{
    my ($events) = @_;
    my (%threads, @bad);
    push @{ $threads{"$_->{pid}.$_->{tid}"} }, $_
        for grep { $_->{ph} eq 'X' && $_->{name} ne 'UNFINISHED_WAIT' } @$events;
    for my $thread (sort keys %threads) {
        my @open;
        # whole nanoseconds: sums of decimal fractions do not compare
        for (sort { $a->[0] <=> $b->[0] || $b->[1] <=> $a->[1] }
             map { [sprintf('%.0f', $_->{ts} * 1000), sprintf('%.0f', $_->{ts} * 1000)
                    + sprintf('%.0f', $_->{dur} * 1000), $_->{name}] } @{ $threads{$thread} }) {
            pop @open while @open && $open[-1][1] <= $_->[0];
            push @bad, "thread $thread: $_->[2] ends after $open[-1][2], in which it began"
                if @open && $_->[1] > $open[-1][1];
            push @open, $_;
        }
    }
    return @bad;
}

# Each arrow has one beginning and one end, the beginning first and in the right rank.
sub bad_arrows
{
    my ($events) = @_;
    my (%out, %in, @bad);
    for (grep { defined $_->{bind_id} } @$events) {
        my $side = $_->{flow_out} ? \%out : \%in;
        push @bad, "two events with the arrow $_->{bind_id}" if $side->{ $_->{bind_id} };
        $side->{ $_->{bind_id} } = $_;
    }
    for my $id (keys %in) {
        my ($from, $to) = ($out{$id}, $in{$id});
        if (!$from) { push @bad, "$to->{name}: nobody sent $id"; next }
        push @bad, "$id: from rank $from->{pid} to $from->{args}{peer}, but handled by $to->{pid}"
            if $from->{args}{peer} != $to->{pid} || $to->{args}{peer} != $from->{pid};
        push @bad, "$id: handled before it was sent" if $to->{ts} < $from->{ts};
        push @bad, "$id: the data differ"
            if $json->encode($from->{args}{data} || []) ne $json->encode($to->{args}{data} || []);
    }
    push @bad, 'no arrows at all' if !%in;
    return @bad;
}

sub named { my ($events, $name) = @_; return grep { $_->{name} eq $name } @$events }

# --- what a trace and statistics hold ---

sub test_counts
{
    my ($reference) = @_;
    my $name = $reference ? 'reference paths: ' : '';
    my $env = { GASNET_TRACEFILE => "$work/t.json", GASNET_STATSFILE => "$work/s.txt",
                ($reference ? (AQ_NO_OVERRIDES => 1) : ()) };
    my ($text, $status) = traced($env, 'counts');
    my $events = strict("$work/t.json");
    my $stats = stats_of(text_of("$work/s.txt"));
    my (@bad, %job);

    ok($status == 0 && $text eq '', "${name}a traced job runs, silently", $text);
    ok($events, "${name}one file of all ranks is JSON", $@) or return;
    @bad = differences(\%known, counts_of($events), 0 .. $ranks - 1);
    ok(!@bad, "${name}the trace holds what was done, by rank", @bad);
    @bad = differences(\%known, $stats, 0 .. $ranks - 1);
    ok(!@bad, "${name}so do the statistics", @bad);
    @bad = differences(counts_of($events)->{$_}, $stats, $_) for 0 .. $ranks - 1;
    ok(!@bad, "${name}and both agree on everything else", @bad);
    $job{$_} = [map { $_ * $ranks } @{ $known{$_} }] for keys %known;
    @bad = differences(\%job, $stats, 'job');
    ok(!@bad, "${name}the job's section is the sum", @bad);
    ok(scalar(text_of("$work/s.txt") =~ /^0> GASNet Statistical Summary:$/m), "${name}it has the heading that scripts know");
    @bad = not_nested($events);
    ok(!@bad, "${name}calls of a thread nest", @bad);
    @bad = bad_arrows($events);
    ok(!@bad, "${name}messages are followed to their handlers", @bad);
    ok(scalar(named($events, 'process_name')) == $ranks && scalar(named($events, 'gasnet_trace_end')) == $ranks,
       "${name}every rank has its name and its end");
    my ($handled) = named($events, 'AMHANDLER_REQUEST_SHORT');
    ok($handled && $handled->{args}{function} eq 'request_handler' && defined $handled->{args}{data}[0],
       "${name}handlers have their names and arguments");
    return;
}

sub test_files
{
    my (undef, $status) = traced({ GASNET_TRACEFILE => "$work/t%.json", GASNET_STATSFILE => "$work/s%.txt" },
                                 'counts');
    my @traces = map { strict("$work/t$_.json") } 0 .. $ranks - 1;
    my @bad;

    ok($status == 0 && $ranks == grep({ $_ } @traces), 'a file for each rank, each JSON');
    for my $rank (0 .. $ranks - 1) {
        push @bad, differences(\%known, counts_of($traces[$rank] || []), $rank);
        push @bad, "file $rank holds another rank" if grep { $_->{pid} != $rank } @{ $traces[$rank] || [] };
        push @bad, differences(\%known, stats_of(text_of("$work/s$rank.txt")), $rank);
    }
    ok(!@bad, 'and each holds its own', @bad);
    ok(scalar(text_of("$work/s0.txt") =~ /^job> GASNet Statistical Summary: $ranks ranks$/m), 'the sum is in the first');

    unlink "$work/m.json";
    my ($text) = job({}, $sum, '-merge', "$work/m.json", map { "$work/t$_.json" } 0 .. $ranks - 1);
    my $merged = strict("$work/m.json");
    @bad = $merged ? differences(\%known, counts_of($merged), 0 .. $ranks - 1) : $@;
    ok($merged && !@bad && $text eq '', 'gasnet_trace -merge makes one of them', @bad, $text);
    return;
}

sub test_masks
{
    my %env = (GASNET_TRACEFILE => "$work/t.json", GASNET_STATSFILE => "$work/s.txt");
    my ($events, $stats, $text, %cats);

    traced({ %env, GASNET_TRACEMASK => 'GB', GASNET_STATSMASK => '^GB' }, 'counts');
    $events = strict("$work/t.json") || [];
    $cats{ $_->{cat} }++ for @$events;
    ok(join(' ', sort keys %cats) eq '__metadata barrier get', 'GASNET_TRACEMASK=GB: gets and barriers',
       join ' ', sort keys %cats);
    $stats = stats_of(text_of("$work/s.txt"));
    ok(!$stats->{0}{GET} && !$stats->{0}{BARRIER} && $stats->{0}{PUT}, 'GASNET_STATSMASK=^GB: all but these');
    traced({ %env, GASNET_TRACENODES => '1', GASNET_STATSNODES => '0,2-9' }, 'counts');
    $events = strict("$work/t.json") || [];
    ok(!grep({ $_->{pid} != 1 } @$events) && @$events > 50, 'GASNET_TRACENODES=1: rank 1 alone');
    $stats = stats_of(text_of("$work/s.txt"));
    ok(!$stats->{1} && $stats->{0} && $stats->{job}, 'GASNET_STATSNODES=0,2-9: not rank 1');
    traced({ %env, GASNET_TRACEMASK => 'A' }, 'counts');
    ok(!bad_arrows(strict("$work/t.json") || []), 'arrows find their ends when little is traced');
    ($text) = traced({ %env, GASNET_TRACEMASK => 'G?' }, 'counts');
    ok(scalar($text =~ /GASNET_TRACEMASK=G\?: '\?' is not one of the categories/), 'a wrong letter is named', $text);
    return;
}

sub test_client
{
    my ($text, $status) = traced({ GASNET_TRACEFILE => "$work/t.json", GASNET_STATSFILE => "$work/s.txt" },
                                 'client');
    my $events = strict("$work/t.json") || [];
    my @lines = map { $_->{args}{text} } grep { $_->{ph} eq 'i' && $_->{pid} == 0 && $_->{tid} } @$events;
    my @puts = grep { $_->{pid} == 0 } named($events, 'PUT');

    ok($status == 0, 'the client finds masks and positions as it set them', $text);
    ok(join('|', @lines) eq "plain 42 \"quoted\" back\\slash\ttab|forced|on again", 'its lines are in the trace',
       @lines);
    ok(@puts == 2 && $puts[0]{args}{file} eq 'program.upc' && $puts[0]{args}{line} == 17,
       'with the line of its program');
    ok(!grep({ $_->{args}{bytes} == 77 || $_->{args}{bytes} == 55 } @puts),
       'what a mask or GET_TRACELOCAL leaves out is not');
    $text = text_of("$work/s.txt");
    ok($text =~ /^1> statistics line of rank 1$/m && $text =~ /^1> callback of rank 1$/m,
       'its lines are in the statistics', $text);
    my @sections = $text =~ /^0>   PUT: +(\d+)/mg;
    ok("@sections" eq '3 1', 'GASNETT_STATS_DUMP(1) writes and begins anew', "@sections");
    ($text, $status) = traced({}, 'counts');
    ok($status == 0 && $text eq '', 'without a trace, nothing is said');
    return;
}

sub test_much
{
    my ($text, $status) = traced({ GASNET_TRACEFILE => "$work/t.json" }, 'many');
    my $events = strict("$work/t.json");

    ok($status == 0 && $events && scalar(named($events, 'PUT')) == 50000 * $ranks,
       '50000 puts of each rank, none lost', $text, $@);
    unlink "$work/t.json";
    ($text, $status) = traced({ GASNET_TRACEFILE => "$work/t.json", GASNET_STATSFILE => "$work/s.txt" }, 'threads');
    $events = strict("$work/t.json");
    ok($status == 0 && $events && scalar(named($events, 'PUT')) == 4000 * $ranks
       && scalar(named($events, 'AMHANDLER_REPLY_SHORT')) == 4000 * $ranks, 'threads: none lost either', $text, $@);
    my @bad = not_nested($events || []);
    ok(!@bad, 'threads: calls nest', @bad[0 .. ($#bad < 5 ? $#bad : 5)]);
    my $stats = stats_of(text_of("$work/s.txt"));
    ok($stats->{job}{PUT}[0] == 4000 * $ranks, 'threads: the statistics agree');
    ($text, $status) = traced({ GASNET_TRACEFILE => "$work/t.json", GASNET_STATSFILE => "$work/s.txt" }, 'fork');
    $events = strict("$work/t.json");
    ok($status == 0 && $events && scalar(named($events, 'PUT')) == 2 * $ranks
       && stats_of(text_of("$work/s.txt"))->{job}{PUT}[0] == 2 * $ranks, 'a child process adds nothing', $text);
    return;
}

# --- the end of a job ---

sub test_ends
{
    my %env = (GASNET_TRACEFILE => "$work/t.json", GASNET_STATSFILE => "$work/s.txt");
    my ($text, $status, $events, $bad, @missing);

    ($text, $status) = traced(\%env, 'exit', 1);
    $events = strict("$work/t.json");
    ok($status == 7 && $events && scalar(named($events, 'gasnet_trace_end')) == $ranks,
       'one rank exits while others wait: JSON, every rank with its end', $text, $@);
    $events ||= [];
    ok(!differences({ map { $_ => $known{$_} } qw(PUT GET PUT_NBI) }, counts_of($events), 0 .. $ranks - 1),
       'and nothing is missing');
    ok(stats_of(text_of("$work/s.txt"))->{job}{PUT}[0] == 10 * $ranks, 'so are the statistics');

    for my $how ($asan ? () : qw(segv abort)) {
        ($text, $status) = traced(\%env, $how, 1);
        $events = lenient("$work/t.json", \$bad);
        my $why = $how eq 'segv' ? 'SIGSEGV' : 'SIGABRT';
        ok(!$bad && grep({ $_->{pid} == 1 && ($_->{args}{text} || '') eq $why } @$events),
           "$how: the crashed rank's trace ends with $why", $text);
        ok(!differences({ map { $_ => $known{$_} } qw(PUT GET PUT_NBI) }, counts_of($events), 0 .. $ranks - 1),
           "$how: nothing is missing");
    }
    ($text, $status) = traced(\%env, 'kill', 1);
    $events = lenient("$work/t.json", \$bad);
    ok($bad == 0 && scalar(named($events, 'gasnet_trace_end')) == $ranks - 1,
       'kill -9 of a rank leaves a file of whole events', $text);
    @missing = differences({ map { $_ => $known{$_} } qw(PUT GET PUT_NBI) }, counts_of($events), 0 .. $ranks - 1);
    ok(!@missing, 'with what it did up to half a second before', @missing);
    ($text, $status) = job({}, $sum, '-report', 'ALL', "$work/t.json");
    ok($status == 0 && $text =~ /PUT GLOBAL/, 'gasnet_trace reads it', $text);

    ($text) = job(\%env, 'timeout', '--foreground', '-s', 'TERM', 2, $run, '-n', $ranks, "tests/trace/traced-$mode", 'hang');
    $events = lenient("$work/t.json", \$bad);
    my ($wait) = grep { $_->{pid} == 1 } named($events, 'UNFINISHED_WAIT');
    ok($bad == 0 && $wait && $wait->{args}{for} eq 'barrier', 'a job ended in a wait shows who waited for what',
       $text, "$bad bad lines", text_of("$work/t.json"));
    return;
}

# --- files that cannot be written ---

sub test_bad_files
{
    my ($text, $status);

    ($text, $status) = traced({ GASNET_TRACEFILE => '/dev/full', GASNET_STATSFILE => '/dev/full' }, 'many');
    ok($status == 0, 'full disk: the job goes on', $text);
    ok(2 == (() = $text =~ /No space left/g) && $text =~ /GASNET_TRACEFILE: cannot write to \/dev\/full/
       && $text =~ /GASNET_STATSFILE: cannot write to \/dev\/full/, 'with one message for each file', $text);
    ($text, $status) = traced({ GASNET_TRACEFILE => "$work/none/t.json" }, 'counts');
    ok($status == 0 && 1 == (() = $text =~ /cannot write to .*No such file/g), 'no such folder: one message, no trace',
       $text);
    ($text, $status) = traced({ GASNET_TRACEFILE => "$work/none/t%.json" }, 'counts');
    ok($status == 0 && 1 == (() = $text =~ /cannot write/g), 'also with a file for each rank', $text);
    test_no_reader();
    test_small_disk();
    ($text, $status) = traced({ GASNET_STATSFILE => '-' }, 'counts');
    ok($status == 0 && $text =~ /^job>   PUT: +@{[10 * $ranks]} /m, 'GASNET_STATSFILE=-: on the console', $text);
    ($text, $status) = traced({ GASNET_TRACEFILE => '', GASNET_STATSFILE => '' }, 'counts');
    ok($status == 0 && $text eq '', 'empty names: off', $text);
    return;
}

# A pipe that takes 4 KiB, without a reader: the end of the job does not wait for a reader. What is written before may
# wait for 10 s, what is written at the end for 2 s, half of GASNET_EXITTIMEOUT.
sub test_no_reader
{
    my $set_size = 1031; # F_SETPIPE_SZ
    my ($text, $status);

    unlink "$work/fifo"; # of the other mode
    POSIX::mkfifo("$work/fifo", 0600) or die "run.pl: mkfifo: $!\n";
    open my $fifo, '+<', "$work/fifo" or die "run.pl: fifo: $!\n";
    fcntl $fifo, $set_size, 4096 or die "run.pl: fcntl: $!\n";
    fcntl $fifo, Fcntl::F_SETFL(), Fcntl::O_NONBLOCK();
    for my $env ({ GASNET_TRACEFILE => "$work/fifo" }, { GASNET_STATSFILE => "$work/fifo" }) {
        my ($name) = keys %$env;
        my $began = time;

        ($text, $status) = traced({ %$env, GASNET_EXITTIMEOUT => 4 }, 'counts');
        my $took = time - $began;
        ok($status == 0 && $took < 19 && 1 == (() = $text =~ /$name: cannot write to .*fifo: its reader takes nothing/g),
           "$name: a pipe that nobody reads: one message, and the job ends", "$text# after $took s\n");
        1 while sysread $fifo, my $drained, 4096;
    }
    pipe my $from, my $to or die "run.pl: pipe: $!\n";
    fcntl $to, $set_size, 4096 or die "run.pl: fcntl: $!\n";
    fcntl $to, Fcntl::F_SETFD(), 0;
    ($text, $status) = job({ GASNET_STATSFILE => 'stdout' }, 'sh', '-c',
                           "'$run' -n $ranks tests/trace/traced-$mode counts >&" . fileno $to);
    ok($status == 0 && $text =~ /GASNET_STATSFILE: cannot write to stdout: its reader takes nothing/,
       'GASNET_STATSFILE=stdout that nobody reads: the same', $text);
    return;
}

# A file system that fills up in the midst of the job.
sub test_small_disk
{
    my $share = $> == 0 ? 'unshare -m' : 'unshare -rm';
    my $script = "mount -t tmpfs -o size=256k none '$work/small' || exit 88; "
        . "GASNET_TRACEFILE='$work/small/t.json' '$run' -n $ranks tests/trace/traced-$mode many; status=\$?; "
        . "cp '$work/small/t.json' '$work/small.json'; exit \$status";

    mkdir "$work/small";
    my ($text, $status) = job({}, split(/ /, $share), 'sh', '-c', $script);
    if ($status == 88 || ($status == 1 && $text =~ /unshare/)) {
        ok(1, 'a disk that fills up # SKIP no mount name space');
        return;
    }
    my $events = lenient("$work/small.json", \my $bad);
    ok($status == 0 && !$bad && @$events > 1000 && 1 == (() = $text =~ /No space left/g),
       'a disk that fills up: whole events up to there, one message, and the job goes on', $text,
       scalar(@$events), "bad: $bad");
    return;
}

# --- the summariser ---

# Two hosts in name, two ranks each: collectives of a team go through one rank of each host. Whoever
# else sends messages for them shows that they do not: in one level ranks 1 and 3 would send a
# message or more in each of the hundred broadcasts, and of the reductions to one.
sub test_levels
{
    my (undef, $status) = job({ GASNET_CONDUIT => 'udp', GASNET_SUPERNODE_MAXSIZE => 2,
                                GASNET_STATSFILE => "$work/l%.txt" }, $run, '-n', 4, "tests/trace/traced-$mode", 'levels');
    my @sent = map { (stats_of(text_of("$work/l$_.txt"))->{$_}{OWN_REQUEST} || [0])->[0] } 0 .. 3;
    ok($status == 0 && $sent[0] >= 400 && $sent[2] >= 400 && $sent[1] < 100 && $sent[3] < 100,
       "$mode: one rank of each neighborhood sends a team's collectives", "messages of ranks 0 to 3: @sent");
    return;
}

sub test_summary
{
    my ($text, $status);

    traced({ GASNET_TRACEFILE => "$work/t.json" }, 'client');
    ($text, $status) = job({}, $sum, '-report', 'PUT', '-sort', 'CALLS', "$work/t.json");
    ok($status == 0 && $text =~ /program\.upc:17 +PUT GLOBAL/ && $text !~ /BARRIER/, 'gasnet_trace: by source line',
       $text);
    traced({ GASNET_TRACEFILE => "$work/t.json" }, 'counts');
    ($text, $status) = job({}, $sum, '-t', '-p', "$work/t.json");
    my @rows = $text =~ /^ +- +PUT GLOBAL +\d+\.1 +\d+ +10 .* 640$/mg;
    ok(@rows == $ranks, 'gasnet_trace -t -p: by thread and peer', $text);
    ok(scalar($text =~ /WAITNOTIFY/), 'it knows the time between notify and wait', $text);
    ($text, $status) = job({}, $sum, '-filter', 'GLOBAL,WAITNOTIFY', "$work/t.json");
    ok($status == 0 && $text !~ /GLOBAL/ && $text !~ /WAITNOTIFY/, 'gasnet_trace -filter', $text);
    ($text, $status) = job({}, $sum, '-o', "$work/o.txt", "$work/t.json");
    ok($status == 0 && $text eq '' && text_of("$work/o.txt") =~ /^PUT$/m, 'gasnet_trace -o', $text);
    ($text, $status) = job({}, $sum, '-report', 'NONSENSE', "$work/t.json");
    ok($status != 0 && $text =~ /NONSENSE/, 'gasnet_trace names a wrong word', $text);
    ($text, $status) = job({}, $sum, "$work/nosuch.json");
    ok($status != 0 && $text =~ /cannot read/, 'and a file that is not there', $text);
    ($text, $status) = job({}, $sum, '-h');
    ok($status == 0 && $text =~ /usage/, 'gasnet_trace -h');
    return;
}

for (@modes) {
    $mode = $_;
    test_counts(0);
    test_counts(1);
    test_files();
    test_masks();
    test_client();
    test_much();
    test_ends();
    test_bad_files();
    test_levels();
    test_summary();
}
print "1..$tests\n";
