#!/usr/bin/perl
# SPDX-License-Identifier: BSD-3-Clause
# guest.pl - what run.pl runs inside a guest: the suites, one after the other. Prints TAP lines, then "end N".
#
#   guest.pl --build DIR --out DIR --guest one|rails|wire|hosts --suite NAME... [-n N[,N...]] [--filter RE]
#            [--local N] [--seconds S] [--quick] [--verbose]
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use Getopt::Long qw(:config no_ignore_case);
my $here;
BEGIN { $here = abs_path(dirname($0)) }
use lib $here;
use Guest;

my ($ranks, $guest, $local, $filter, $seconds, $quick, @suites) = ('2,4', 'one', 1);
GetOptions('build=s' => \$build, 'out=s' => \$out, 'guest=s' => \$guest, 'suite=s' => \@suites, 'n=s' => \$ranks,
           'local=i' => \$local, 'filter=s' => \$filter, 'seconds=i' => \$seconds, 'quick' => \$quick,
           'verbose' => \$verbose) && !@ARGV
    or die "guest.pl: bad options\n";
my $source = abs_path("$here/../..");
$seconds //= 20;
enter($guest, $local);

# The usual tests of a device, without this library.
sub suite_sanity {
    my $text = run(20, 'ibv_devinfo', '-v');
    judge('ibv_devinfo finds an active device', $text, $? == 0 && $text =~ /PORT_ACTIVE/);
    for my $what (['rc', []], ['rc', ['-e']], ['srq', []], ['uc', []], ['ud', ['-s', 1024]]) {
        my ($kind, $more) = @$what;
        my ($served, $asked) = pair(60, ["ibv_${kind}_pingpong", '-d', 'rxe0', '-g', 1, '-n', 200, @$more],
                                    ["ibv_${kind}_pingpong", '-d', peer_device(), '-g', 1, '-n', 200, @$more,
                                     peer_address()]);
        judge("ibv_${kind}_pingpong @$more", $served . $asked, $asked =~ /bytes in/ && $served =~ /bytes in/);
    }
    for my $tool (qw(ib_write_lat ib_read_lat ib_send_lat ib_atomic_lat ib_write_bw ib_read_bw)) {
        my ($text) = perftest({}, 60, $tool, '-n', 100, $tool =~ /_bw/ ? ('-s', 65536) : ());
        judge($tool, $text, defined perftest_result($tool, $text));
    }
}

sub conformance {
    my ($label, $env, @options) = @_;
    my @command = ("$source/tests/conformance/aq-conformance", '--conduit', 'ibv',
                   '--dir', "$build/tests/conformance/bin", '--launcher', launcher(),
                   '--brief', '--timeout', 240, $quick ? '--quick' : (), @options);
    follow($label, $env, 7200, @command);
}

sub suite_conformance { conformance('', {}, '-n', $ranks, defined $filter ? ('--filter', $filter) : ()) }

sub suite_reference {
    conformance('reference: ', {AQ_NO_OVERRIDES => 1}, '--par', '-n', 2,
                '--filter', $filter // '_(rma_sizes|am_replies|ad_ops)');
}

sub suite_stress {
    for my $mode ('par', 'seq') {
        my $n    = $local > 1 ? 4 : $guest eq 'one' && $mode eq 'par' ? 3 : 2;
        my $text = job(120 + 6 * $seconds, $n, "$build/tests/conformance/bin/stress-$mode", '--seconds', $seconds);
        judge("stress-$mode for $seconds s, $n ranks", $text, $? == 0 && $text =~ /^ok /m && $text !~ /^not ok/m);
    }
}

sub suite_ft {
    return skip('ft', 'built without FFTW 3') unless -x "$build/ft";
    for my $case (['S', 'exchange', 2], ['S', 'slabs', 4], ['S', 'pencils', 4], ['W', 'slabs', 2]) {
        my ($class, $transpose, $n) = @$case;
        my $text = job(600, $n, "$build/ft", $class, $transpose);
        judge("ft: class $class, $transpose, $n ranks", $text,
              $? == 0 && $text =~ /ranks: verified,/ && $text !~ /NOT VERIFIED/);
    }
}

# Ranks come to the end of a job one after the other; the last one does not wait for those that are gone, which would be
# for a quarter of the exit timeout.
sub suite_leave {
    local $ENV{GASNET_EXITTIMEOUT} = 160;
    for my $time (1 .. 4) {
        my $began = time;
        my $text  = job(200, 4, "$build/tests/conformance/bin/test_barrier_ex-seq");
        my $took  = time - $began;
        judge("nobody waits at the end for who has left, time $time", $text . "$took s\n", $? == 0 && $took < 36);
    }
    # longer than retries take: one that has left, and is owed credits, is told nothing
    local @ENV{qw(GASNET_CATCH_EXIT EXIT_CASE_SECONDS)} = (0, 20);
    my $text = job(200, 3, "$build/tests/jobs/exit_case-seq", 36);
    judge('GASNET_CATCH_EXIT=0: the others go on', $text, $? >> 8 == 3 && $text !~ /FATAL/);
    delete local $ENV{GASNET_EXITTIMEOUT};
    $text = job(120, 3, "$build/tests/jobs/exit_case-seq", 38);
    my $code = $? >> 8;
    judge('GASNET_CATCH_EXIT=0: a put to a rank that has left ends with its loss', $text,
          $code != 0 && $code != 124 && $text =~ /rank 1 was lost/);
}

# A rank dies by kill -9 in the middle of traffic: the others end, soon, and the job says which rank it was.
sub suite_kill {
    for my $which (0, 1) {
        my $job  = start(3, "$build/tests/conformance/bin/stress-par", '--seconds', 300);
        my @pids = ranks_of($job, 3, 150);
        if (@pids < 3) {
            judge("kill -9: all ranks are there", finish($job, 1), 0);
            next;
        }
        sleep 3;
        my $victim = $pids[$which * $#pids];
        kill_rank($victim);
        my $began = time;
        my $text  = finish($job, 60);
        my $code  = $? >> 8;
        my $took  = time - $began;
        my $left  = leftovers(30);
        judge(sprintf('kill -9 of %s rank: the job has failed, %d s later, and says so',
                      $which ? 'the last' : 'the first', $took),
              $text . ($left eq '' ? '' : "left behind: $left"),
              $code != 0 && $code != 124 && $took < 45 && $left eq '' && $text =~ /rank \d|proc \d/);
    }
}

# cut NAME, [BEFORE...], [AFTER...], RE: traffic between two devices, in the middle of which the first commands are run;
# the second ones mend what they did. The job ends by itself, soon, in words that RE matches, and leaves nothing.
sub cut {
    my ($name, $before, $after, $words) = @_;
    return skip($name, 'only where packets cross a wire') unless $guest eq 'wire';
    my $job  = start(2, "$build/tests/conformance/bin/stress-par", '--seconds', 300);
    my @pids = ranks_of($job, 2, 150);
    return judge("$name: all ranks are there", finish($job, 1), 0) if @pids < 2;
    sleep 3;
    my $said  = run(20, @$before);
    my $began = time;
    my $text  = finish($job, 180);    # the device gives up by itself, after a time that we don't set
    my $code  = $? >> 8;
    my $took  = time - $began;
    my $left  = leftovers(30);
    $said .= run(20, @$after);
    judge("$name: the job has failed, after $took s, and says why",
          $said . $text . ($left eq '' ? '' : "left behind: $left"),
          $code != 0 && $code != 124 && $left eq '' && $text =~ $words);
}

# The peer becomes unreachable without a notification: requests are repeated until retries are exhausted.
sub suite_lost {
    cut('packets to the peer are lost', [qw(ip link set wire1 nomaster)], [qw(ip link set wire1 master wire)],
        qr/rank \d.*port rxe[01]:1.*retry.*does not acknowledge.*GASNET_IBV_PORTS/s);
}

# The port itself goes down, and its device reports that.
sub suite_down {
    cut('the port goes down', [qw(ip link set eth1 down)], [qw(ip link set eth1 up)],
        qr/proc \d[^\n]*port rxe1:1[^\n]* has been down[^\n]*GASNET_IBV_PORTS/);
}

# The library's pieces on the guest's kernel, which is Debian's own: what a newer one allows is not needed.
sub suite_units {
    follow('', {}, 900, 'sh', "$source/build-aux/tap-each.sh",
           grep { -x && !m{/test_firehose_threads$} } glob "$build/tests/unit/bin/test_*");
}

# Locked memory: unlimited for root, so the test runs as a user who may not exceed the limit.
sub suite_limits {
    my $text = job_unprivileged(120, 64, "$build/tests/conformance/bin/test_client_plain-par");
    judge('64 KiB of locked memory: the message names ulimit -l', $text, $? != 0 && $text =~ /ulimit -l/);
}

# Puts that go another way than messages are followed by a read, or not, as the setting says.
sub suite_fences {
    return skip('fences', 'only with several devices for each rank') unless $guest eq 'rails';
    for my $setting ('the default', 0) {
        my %env  = (AQ_IBV_STATS => 1, AQ_TEST_QUICK => 1, $setting eq '0' ? (GASNET_USE_FENCED_PUTS => 0) : ());
        my $text = run(\%env, 300, launcher(), '-n', 2, "$build/tests/conformance/bin/test_rma_sizes-seq");
        my @each = $text =~ /(\d+) fences/g;
        my $good = $setting eq '0' ? !grep { $_ } @each : !grep { !$_ } @each;
        judge("fences of each rank with GASNET_USE_FENCED_PUTS $setting: @each", $text, $? == 0 && @each == 2 && $good);
    }
}

# Transfers to consecutive remote addresses join into work requests with lists of local pieces, or not, as the setting
# says; the programs check the data. Each run of a section is a transfer here, none is packed.
sub suite_lists {
    for my $pieces (8, 1) {
        for my $program (qw(nbi_region vis_random)) {
            my %env  = (AQ_IBV_STATS => 1, AQ_TEST_QUICK => 1, AQ_IBV_GATHER => $pieces, GASNET_VIS_MAXCHUNK => 1);
            my $text = run(\%env, 300, launcher(), '-n', 2, "$build/tests/conformance/bin/test_$program-seq");
            my @each = $text =~ /(\d+) transfers joined/g;
            my $good = $pieces == 1 ? !grep { $_ } @each : grep { $_ } @each;
            judge("transfers that joined others in $program with AQ_IBV_GATHER=$pieces: @each", $text,
                  $? == 0 && @each == 2 && $good);
        }
    }
}

# Memory that is registered on demand: a message to what is not registered yet takes another way, which is not to wait
# either where it must not.
sub suite_demand {
    for my $mode (qw(seq par)) {
        my $text = run({AQ_IBV_REGISTER => 'demand', AQ_TEST_QUICK => 1}, 300, launcher(), '-n', 2,
                       "$build/tests/conformance/bin/test_rma_flags-$mode");
        judge("GEX_FLAG_IMMEDIATE with registration on demand, $mode", $text, $? == 0);
    }
}

# Like beside like. A blocking put is complete when its acknowledgement is back, so it is held against a write of 8
# bytes at a queue depth of 1 (ib_write_bw -t 1), whose next one waits for the last one's completion; ib_write_lat is
# half of a ping-pong of two writes, which no completion is waited for. An active message's round trip is two sends.
# Both run on one core each. Figures are means: aq-bench's of slices, perftest's of a run.
# Beside these aq-bench has its own limit for each row: the same by bare verbs, in the same two processes, in slices
# that alternate with the library's. What the host does to the guest meanwhile hits both alike.
my @ratios = (
    # what, ours (aq-bench), theirs (a figure below), the factor of theirs, at most (or, with a minus, at least)
    ['put of 8 bytes / write at depth 1',    'put/8',             'write8',     1, 1.15],
    ['get of 8 bytes / read',                'get/8',             'read8',      1, 1.15],
    ['short message there and back / 2 sends', 'am_short/0',      'send8',      2, 1.20],
    ['fetch-and-add / atomic',               'fadd/8',            'atomic',     1, 1.15],
    ['stream of 64 KiB puts / writes',       'put_stream/65536',  'write64k',   1, -0.9],
    ['stream of 64 KiB gets / reads',        'get_stream/65536',  'read64k',    1, -0.9],
);
my @theirs = (
    ['write8', 'ib_write_bw', '-n', 1000, '-s', 8, '-t', 1], ['read8', 'ib_read_lat', '-n', 1000, '-s', 8],
    ['send8', 'ib_send_lat', '-n', 1000, '-s', 8], ['atomic', 'ib_atomic_lat', '-n', 1000],
    ['write64k', 'ib_write_bw', '-n', 500, '-s', 65536], ['read64k', 'ib_read_bw', '-n', 500, '-s', 65536],
    ['write_lat8', 'ib_write_lat', '-n', 1000, '-s', 8],
);

sub median {
    my @sorted = sort { $a <=> $b } @_;
    return $sorted[$#sorted / 2];
}

# Figures of a round: microseconds, or bytes per microsecond.
sub bench_theirs {
    my ($figures) = @_;
    for my $case (@theirs) {
        my ($name, $tool, @options) = @$case;
        my ($said) = perftest({}, 120, $tool, @options);
        my $value = perftest_result($tool, $said);
        judge("$tool @options", $said, 0) unless defined $value;
        next unless defined $value;
        my ($first, $rate) = split ' ', $value;     # of _bw tools: MB/s of 2^20 bytes, million messages a second
        push @{$figures->{$name}},
            $tool !~ /_bw$/ ? perftest_mean($tool, $said) : $name eq 'write8' ? 1 / $rate : $first * 1.048576;
    }
}

# For information: the streams with processes that are bound to no core, as perftest is usually run.
sub bench_unbound {
    my ($figures) = @_;
    for my $case (grep { $_->[1] =~ /_bw$/ && $_->[0] =~ /64k$/ } @theirs) {
        my ($name, $tool, @options) = @$case;
        my ($said)  = perftest({unbound => 1}, 120, $tool, @options);
        my ($value) = split ' ', perftest_result($tool, $said) // '';
        push @{$figures->{"$name unbound"}}, $value * 1.048576 if defined $value;
    }
}

sub bench_ours {
    my ($figures, $round) = @_;
    my $file = "$out/aq-bench-ibv-$guest-$round.json";
    unlink $file;
    my $text = run(900, launcher(), '-n', 2, "$build/aq-bench", '-c', 'ibv', '--no-peers', '--json', $file,
                   '--only', 'am_short/,put/8,get/8,fadd/8,put_stream/65536,get_stream/65536');
    my $rows = $? == 0 ? json_rows($file) : {};
    for my $row (map { $_->[1] } @ratios) {
        next unless $rows->{$row};
        my ($ns, $unit, $ratio) = @{$rows->{$row}};
        my ($size) = $row =~ m{_stream/(\d+)};
        push @{$figures->{$row}}, defined $size ? 1e3 * $size / $ns : $ns / 1e3;
        next unless defined $ratio; # of times: of bandwidths it is the inverse
        push @{$figures->{"$row to verbs"}}, defined $size ? 1 / $ratio : $ratio;
    }
    judge("aq-bench, round $round", $text, !grep { !$rows->{$_->[1]} } @ratios);
    print "# $_\n" for split /\n/, $text;
}

sub bench_judge {
    my ($what, $bound, @values) = @_;
    return judge("$what: measured", '', 0) unless @values;
    my $ratio = median(@values);
    my $good  = $bound > 0 ? $ratio <= $bound : $ratio >= -$bound;
    judge(sprintf('%s: %.2f, %s %.2f', $what, $ratio, $bound > 0 ? 'at most' : 'at least', abs $bound), '', $good);
}

sub suite_bench {
    my $figures = {};
    for my $round (1 .. ($quick ? 1 : 3)) {
        bench_ours($figures, $round);
        bench_theirs($figures);
    }
    bench_unbound($figures);
    printf "# %-20s %s\n", $_, join ' ', map { sprintf '%.2f', $_ } @{$figures->{$_}} for sort keys %$figures;
    for my $row (@ratios) {
        my ($what, $ours, $theirs, $times, $bound) = @$row;
        bench_judge("$what, verbs in the same processes", $bound, @{$figures->{"$ours to verbs"} // []});
        next unless $figures->{$ours} && $figures->{$theirs};
        bench_judge("$what, perftest", $bound,
                    median(@{$figures->{$ours}}) / median(@{$figures->{$theirs}}) / $times);
    }
}

# What overlapping registration with sending is worth: a put from memory never registered, against one registered
# before, and against registering everything first.
sub suite_pin {
    my %first;
    for my $overlap ('yes', 'no') {
        my $text = run({AQ_IBV_OVERLAP => $overlap}, 600, launcher(), '-n', 2, "$build/tests/vm/pin_cost",
                       ($quick ? 4 : 64) << 20);
        my %of = map { /^(\d+) \S+ (\S+) \S+$/ ? ($1 => $2) : () } split /\n/, $text;
        judge("pin_cost, overlap $overlap", $text, $? == 0 && %of);
        print "# overlap $overlap: $_\n" for split /\n/, $text;
        $first{$overlap} = \%of;
    }
    for my $size (sort { $a <=> $b } keys %{$first{yes}}) {
        printf "# %d bytes for the first time: %.2f of the time of registering first\n", $size,
            $first{yes}{$size} / $first{no}{$size} if $first{no}{$size};
    }
}

# Jobs over groups of processes that go on (tests/restart): a process holds the same after each, of the device too.
sub suite_restart {
    my %env = (MALLOC_ARENA_MAX => 1, GLIBC_TUNABLES => 'glibc.malloc.tcache_count=0', TEST_MAPPINGS => 2,
               TEST_RESOURCES => 'PATH=$PATH:/sbin rdma resource show', $guest eq 'wire' ? ports_of_wire() : ());
    # sanitizers keep what was freed for a while, and go on mapping
    %env = (%env, TEST_SANITIZER => 1, TEST_RSS_KB => 65536,
            ASAN_OPTIONS => join(':', grep { defined } $ENV{ASAN_OPTIONS}, 'quarantine_size_mb=8'))
        if ($ENV{AQ_CONFIG} // '') =~ /asan|tsan/;
    my @cases = (['seq', 2, 'again', 100, 0], ['par', 2, 'again', 25, 0], ['par', 4, 'halves', 2, 0],
                 ['seq', 4, 'turns', 1, 0], ['par', 3, 'members', 1, 0], ['par', 2, 'failed', 1, 3],
                 ['seq', 3, 'killed', 1, 137, qr/was lost/]);
    my %on_demand = (AQ_IBV_REGISTER => 'demand', TEST_DISCARD => 0);
    for my $case (['seq', 2, 'again', 20, 0, qr/^/, %on_demand], ['par', 3, 'members', 1, 0, qr/^/, %on_demand],
                  @cases) {
        my ($mode, $n, $name, $count, $status, $words, %more) = @$case;
        # GASNET_ERR_RESOURCE: the whole segment is pinned
        my $text = run({%env, TEST_DISCARD => 10002, %more}, 300, "$build/tests/restart/restart-$mode", $n, $name, $count);
        my $code = $? >> 8;
        my $held = $text =~ /^# after all: (.*)/m ? ": $1" : '';
        judge("restart-$mode: $name, $n processes" . (%more ? ', registering on demand' : '') . $held, "$text# exit status $code, expected $status\n",
              $code == $status && ($? & 127) == 0 && $text =~ ($words // qr/^/));
    }
}

# armci_job SECONDS, NAME, RANKS, ARGUMENT...: what the program says, started by mpirun
sub armci_job {
    my ($limit, $name, $n, @arguments) = @_;
    open my $file, '<', "$out/armci/mpirun" or return '';
    chomp(my $mpirun = <$file>);
    my %env = (AQ_MODULE_DIR => "$build/modules",
               OMPI_ALLOW_RUN_AS_ROOT => 1, OMPI_ALLOW_RUN_AS_ROOT_CONFIRM => 1,
               OMPI_MCA_rmaps_base_oversubscribe => 1, $guest eq 'wire' ? ports_of_wire() : ());
    return run(\%env, $limit, $mpirun, '-n', $n, "$out/armci/$name", @arguments);
}

sub suite_armci {
    my @cases = (['transfers', 'short'], ['handles'], ['memory'], ['sync'], ['messages'], ['programs'],
                 ['accumulate', 20000], ['protocols', 'put_direct', 'put_buffered'], ['parts', 'again'], ['remains']);
    @cases = grep { $_->[0] =~ /^(handles|sync|remains)$/ } @cases if $quick;
    for my $case (@cases) {
        my ($name, @arguments) = @$case;
        my $n    = $name eq 'parts' ? 3 : 2;
        my $text = armci_job(400, $name, $n, @arguments);
        my $code = $?;
        judge("armci: @$case, $n ranks", $text, $code == 0 && $n == (() = $text =~ /of $n right/g));
    }
}

# The rows of aq-bench armci that are about a network. For information: seconds of an emulated processor are too unlike
# each other for verdicts.
sub suite_armci_bench {
    local $ENV{OMPI_MCA_hwloc_base_binding_policy} = 'none';    # service threads and the wake-ups beside them move
    for my $case (['net'], ['pipe', 'plain'], ['service', 'progress']) {
        my ($name, @arguments) = @$case;
        if (defined $filter && $name !~ $filter) {
            skip("armci-bench: $name", "not wanted by --filter");
            next;
        }
        my $text = armci_job(1500, "bench-$name", 2, @arguments, $quick ? 'quick' : 'full');
        my $good = $? == 0;
        my @rows = map { [split /\|/, $_, -1] } grep { tr/|// == 8 } split /\n/, $text;
        judge("armci-bench: $name @arguments", $text, $good && @rows >= 10);
        printf "# %s\n", join ' | ', @$_ for @rows;
        judge('armci-bench: all operations end while their target computes', $text, $text =~ /^all end while.*\|ok$/m)
            if $name eq 'service';
    }
}

sub suite_ga {
    return skip('ga', 'needs Open MPI, Global Arrays and ARMCI-MPI') unless -x "$out/armci/arrays-c";
    my $expected = read_file("$out/armci/arrays-c-expected");
    for my $when ('demand', 'attach') {
        local $ENV{AQ_IBV_REGISTER} = $when;
        my $text = armci_job(400, 'arrays-c', 2);
        my $code = $?;
        judge("ga: arrays-c, 2 ranks, AQ_IBV_REGISTER $when", "$text--- expected\n$expected",
              $code == 0 && $expected ne '' && $text eq $expected);
    }
}

my %suite = (sanity => \&suite_sanity, conformance => \&suite_conformance, reference => \&suite_reference,
             stress => \&suite_stress, ft => \&suite_ft, kill => \&suite_kill, lost => \&suite_lost,
             down => \&suite_down, limits => \&suite_limits, fences => \&suite_fences, lists => \&suite_lists,
             demand => \&suite_demand, leave => \&suite_leave,
             restart => \&suite_restart, armci => \&suite_armci, 'armci-bench' => \&suite_armci_bench, ga => \&suite_ga,
             bench => \&suite_bench, pin => \&suite_pin, units => \&suite_units);
$suite{$_}->() for @suites;
leave();
