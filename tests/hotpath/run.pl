#!/usr/bin/perl
# run.pl - what the fast paths compile to, read from the disassembly. Prints TAP.
# SPDX-License-Identifier: BSD-3-Clause
#
#   perl run.pl          in a build folder without debug checks or sanitizers; AQ_SRC is the source folder
#
# Inline paths: hotpath.c, compiled as C and as C++, for SEQ and PAR, by each compiler there is. No
# function in it may have an atomic read-modify-write or a full fence, but for the operation itself in
# those called atomic_*; and the way from entry to return that serves a mapped peer may have so many instructions and no more.
#
# Library: every function of the seq library that a short or medium message and a poll can reach. What may have an atomic
# read-modify-write there, and where the walk ends, is listed below with the reason.
#
# x86-64 only: it is that machine's instructions that are read.

use strict;
use warnings;

my $src = $ENV{AQ_SRC} // '.';

# Most instructions on the shortest way through a function without a call, return included; gcc's and clang's
# code differ. What gcc 12 and clang 14 need, with arguments where the function gets them; for atomics one more.
my %bound = (
    #                       gcc clang
    plain_put_blocking_8 => [8, 8],
    plain_put_nb_8       => [8, 10],
    plain_put_nb_leaf_8  => [10, 13],
    plain_put_nbi_8      => [8, 10],
    plain_get_blocking_8 => [10, 9],
    plain_get_nb_8       => [10, 9],
    plain_get_nbi_8      => [10, 9],
    plain_put_val_8      => [7, 7],
    plain_put_nb_val_8   => [7, 7],
    plain_put_nbi_val_8  => [7, 7],
    plain_get_val_8      => [6, 6],
    plain_ad_get         => [11, 14],
    plain_ad_set         => [9, 14],
    atomic_ad_fadd       => [12, 15],
    atomic_ad_inc        => [9, 13],
    atomic_ad_fcas       => [13, 17],
);

# Functions of the library that short and medium messages and polls enter by: calls through the conduit's table are not
# seen in the disassembly, so its entries are named too.
my @entries = qw(aq_am_request_short aq_am_reply_short aq_shm_am_short aq_am_request_medium
                 aq_am_reply_medium aq_shm_am_medium aq_shm_poll aq_poll gasnet_AMPoll);

# May have atomic read-modify-writes.
my %allowed = (
    aq_shm_wake     => 'the wake-up count of a receiver that sleeps: several ranks and its own threads raise it',
    aq_shm_tx_greet => 'the first message to a rank: any rank may add itself to its count of greetings',
);

# Not looked into: not on the way of a message that has space, to a receiver with a handler.
my %stops = (
    'aq_fatal'                                  => 'ends the job',
    'aq_(error|warn|log)\w*'                    => 'prints',
    'aq_(am|short)\w*_waiting|aq_wait_\w+'      => 'no space: waits, and sleeps in the end',
    'aq_callback_progress'                        => 'only while collectives or the like are under way',
    'aq_trace_\w+|aq_\w*traced\w*'              => 'only while tracing or statistics are on',
    'aq_thread_create'                          => 'a thread\'s first call',
    'aq_shm_link|aq_shm_welcome'                => 'the first message between two ranks',
);

my ($count, $failed) = (0, 0);

sub result {
    my ($why, $name) = @_;
    $count++;
    print $why eq '' ? "ok $count - $name\n" : "not ok $count - $name\n";
    return if $why eq '';
    $failed++;
    print "# $_\n" for split /\n/, $why;
}

sub skip_all {
    print "1..0 # SKIP $_[0]\n";
    exit 0;
}

sub has { return system("command -v $_[0] >/dev/null 2>&1") == 0 }

# --- reading disassembly ---

# { function => [ { at, text, op, target, into } ] }: into is the function a jump or call leads to.
sub disassemble {
    my ($file) = @_;
    my (%functions, $now);
    open(my $in, '-|', "objdump -d --no-show-raw-insn '$file'") or die "objdump: $!";
    while (my $line = <$in>) {
        if ($line =~ /^[0-9a-f]+ <(.+)>:$/) {
            $now = $functions{$1} = [];
        } elsif (defined $now && $line =~ /^\s*([0-9a-f]+):\t(.*?)\s*$/) {
            my ($at, $text) = (hex $1, $2);
            my $one = { at => $at, text => $text, op => (split /\s+/, $text)[0] };
            if ($one->{op} =~ /^(?:call|j|bnd|notrack)/
                && $text =~ /\s([0-9a-f]+) <([^>+]+)(?:\+0x[0-9a-f]+)?>$/) {
                ($one->{target}, $one->{into}) = (hex $1, $2);
            }
            push @$now, $one;
        }
    }
    close $in;
    return \%functions;
}

# An exchange with memory is locked without saying so.
sub is_atomic {
    my ($text) = @_;
    return $text =~ /^lock\s/ || $text =~ /^xchg\s.*\(/;
}

sub is_fence { return $_[0] =~ /^(mfence|lock or[lq]?\s+\$0x0,(0x0|-0x\w+)?\(%[er]sp\))/ }

# Fewest instructions from the first to a return, over ways without a call; undef if every way has one.
sub shortest {
    my ($code) = @_;
    my %index = map { $code->[$_]{at} => $_ } 0 .. $#$code;
    my (%cost, @todo);
    @todo = ([0, 0]);
    my $best;
    while (@todo) {
        @todo = sort { $a->[1] <=> $b->[1] } @todo;
        my ($i, $n) = @{ shift @todo };
        next if !defined $i || $i > $#$code || (defined $cost{$i} && $cost{$i} <= $n);
        $cost{$i} = $n;
        my $one = $code->[$i];
        my $next = $one->{op} =~ /^(nop|endbr64|data16|cs)/ || $one->{text} =~ /^xchg\s+%ax,%ax/ ? $n : $n + 1;
        if ($one->{op} =~ /^(ret|repz)/) {
            $best = $next if !defined $best || $next < $best;
        } elsif ($one->{op} =~ /^call/) {
            next;
        } elsif ($one->{op} =~ /^jmp/) {
            push @todo, [$index{ $one->{target} // -1 }, $next];
        } elsif ($one->{op} =~ /^j/) {
            push @todo, [$index{ $one->{target} // -1 }, $next], [$i + 1, $next];
        } else {
            push @todo, [$i + 1, $next];
        }
    }
    return $best;
}

# --- the inline paths ---

sub check_function {
    my ($label, $name, $code) = @_;
    my $most = $bound{$name} && $bound{$name}[$label =~ /^clang/ ? 1 : 0];
    my @atomics = grep { is_atomic($_->{text}) || is_fence($_->{text}) } @$code;
    my $least = $name =~ /^atomic_/ ? 1 : 0;
    my $length = shortest($code);
    my $why = '';

    $why .= "expected $least atomic instructions, found " . @atomics . ":\n"
        . join("\n", map { "    $_->{text}" } @atomics) . "\n" if @atomics != $least;
    if (defined $most) {
        my $is = defined $length ? "$length instructions" : 'no way without a call';
        $why .= "$is; the bound is $most\n" if !defined $length || $length > $most;
        $why .= join("\n", map { "    $_->{text}" } @$code) . "\n" if $why ne '';
    }
    my $note = defined $most && defined $length ? "$length instructions, at most $most; " : '';
    result($why, "$label: $name: $note" . ($least ? 'one atomic' : 'no atomics'));
}

sub check_inline {
    my ($compiler, $language, $mode, $work) = @_;
    my $label = "$compiler -x $language -O2 $mode";
    my $standard = $language eq 'c' ? 'gnu11' : 'gnu++11';
    my $object = "$work/hotpath-$mode.o";
    my $output = `$compiler -x $language -std=$standard -O2 -DGASNET_$mode=1 -I'$src/include' -Iinclude \\
        -I'$src/include/smp-conduit' -c '$src/tests/hotpath/hotpath.c' -o '$object' 2>&1`;
    if ($? != 0) {
        result("does not compile:\n$output", $label);
        return;
    }
    my $functions = disassemble($object);
    my @names = sort grep { /^(plain|atomic)_\w+$/ } keys %$functions;
    result(@names >= 25 ? '' : 'only ' . @names . ' functions found', "$label: functions read");
    for my $name (@names) {
        # what the compiler has put aside belongs to it
        my @code = @{ $functions->{$name} };
        push @code, @{ $functions->{"$name.cold"} } if $functions->{"$name.cold"};
        check_function($label, $name, \@code);
    }
    for my $name (sort keys %bound) {
        result('no such function', "$label: $name") if !$functions->{$name};
    }
}

# --- the library ---

sub base_name {
    my ($name) = @_;
    $name =~ s/\.(cold|part|constprop|isra|lto_priv)\b.*//;
    return $name;
}

sub check_library {
    my ($program) = @_;
    my $functions = disassemble($program);
    my (%from, %seen, @atomic);
    my @todo = @entries;

    for my $entry (@entries) {
        result(defined $functions->{$entry} ? '' : 'not in the program: has it another name now?',
               "library, seq: $entry is there");
    }
    while (defined(my $name = shift @todo)) {
        next if $seen{$name}++ || !$functions->{$name};
        my $base = base_name($name);
        next if grep { $base =~ /^(?:$_)$/ } keys %stops;
        for my $one (@{ $functions->{$name} }) {
            push @atomic, [$name, $one->{text}] if is_atomic($one->{text}) || is_fence($one->{text});
            if (defined $one->{into} && $one->{into} ne $name && $one->{into} !~ /\@plt$/) {
                $from{ $one->{into} } //= $name;
                push @todo, $one->{into};
            }
        }
    }
    my $why = '';
    for my $found (grep { !$allowed{ base_name($_->[0]) } } @atomic) {
        my ($name, $text) = @$found;
        my $way = $name;
        for (my $up = $from{$name}; defined $up; $up = $from{$up}) { $way = "$up -> $way" }
        $why .= "$way: $text\n";
    }
    result($why, 'library, seq: short messages and polls have no atomic read-modify-write of their own');
    print "#   looked at ", scalar(keys %seen), " functions from ", join(', ', @entries), "\n";
    print "#   allowed: $_, $allowed{$_}\n" for sort keys %allowed;
}

# --- main ---

chomp(my $machine = `uname -m`);
skip_all("reads x86-64 instructions, and this is $machine") if $machine ne 'x86_64';
skip_all('objdump is not installed') if !has('objdump');
my $config = `cat build-aux/config.env 2>/dev/null`;
skip_all('this build has debug checks') if $config =~ /^AQ_DEBUG_NAME='?GASNET_DEBUG/m;
skip_all('this build has sanitizers') if $config =~ /^AQ_SANITIZE_FLAGS='?[^'\s]/m;

chomp(my $work = `mktemp -d`);
END { system('rm', '-rf', $work) if defined $work && $work ne '' }
for my $compiler (grep { has($_) } qw(gcc clang)) {
    for my $language (grep { $_ eq 'c' || has($compiler eq 'gcc' ? 'g++' : 'clang++') } 'c', 'c++') {
        check_inline($compiler, $language, $_, $work) for qw(SEQ PAR);
    }
}
my $program = 'tests/conformance/bin/test_am_short_args-seq';
if (-x $program) {
    check_library($program);
} else {
    $count++;
    print "ok $count - library, seq # SKIP seq is not built\n";
}
print "1..$count\n";
exit($failed != 0);
