#!/usr/bin/perl
# test_words.pl - identifiers and file names of the library, runtimes, apps and tests use the field's
# words: no component of a name is one of the retired words below. Prints TAP.
# SPDX-License-Identifier: BSD-3-Clause
#
#   test_words.pl [--list]      --list: every use of a retired word, with its file and line
#
# Reads C code without comments, strings and #include lines; splits a name at underscores, digits
# and changes of case. Messages and comments are not checked.

use strict;
use warnings;
use File::Basename qw(dirname);
use Test::More;
use lib dirname(__FILE__);
use House qw(source_folder files_of slurp code_of is_none);

my $list = @ARGV && $ARGV[0] eq '--list';
my @folders = qw(base core extended conduits other runtimes apps tests);

# The retired words, and what to write instead.
my %instead;
my $word = '';
while (my $line = <DATA>) {
    next if $line =~ /^(#|$)/;
    last if $line =~ /^==/;
    my ($words, $write) = $line =~ /^([\w ]+?)\s*:\s*(.+)$/ or die "test_words.pl: $line";
    $instead{$_} = $write for split ' ', $words;
}

# Names that keep a retired word: a name, or a pattern between slashes, and the reason.
my %allowed;
while (my $line = <DATA>) {
    next if $line =~ /^(#|$)/;
    my ($name, $reason) = $line =~ /^(\S+)\s+(\S.*)$/ or die "test_words.pl: $line";
    $allowed{$name} = 0;
}

# retired_in NAME - the retired words among the components of NAME.
sub retired_in
{
    my $name = shift;
    $name =~ s/([a-z])([A-Z])/$1_$2/g;
    return grep { $instead{$_} } map { lc } split m{[_\d./-]+}, $name;
}

# uses_in TEXT - [name, line] for each name in C code that has a retired word and may not keep it.
sub uses_in
{
    my ($file, $text) = @_;
    my (@uses, $number);
    for my $line (split /\n/, code_of($text)) {
        $number++;
        for my $name ($line =~ /\b([A-Za-z_]\w*)\b/g) {
            next unless retired_in($name);
            if (exists $allowed{$name}) { $allowed{$name}++; next }
            push @uses, [$name, $number];
        }
    }
    return @uses;
}

# --- the test sees what it is there for ---

is_deeply([map { "$_->[0] $_->[1]" } uses_in('x.c', <<'END')], ['aq_lane_open 2', 'nearPeer 4', 'AQ_LEAST 5'],
/* aq_lane_close is a comment, and */ "wishes" is text; // aim
int aq_lane_open(void);
#include "board.h"
int nearPeer, nearest;
#define AQ_LEAST 4
END
   'a planted word is seen; comments, text and parts of longer words are none');

# --- the source ---

my $src = source_folder();
my @files = files_of($src, qr/\.[ch]$/, @folders);
cmp_ok(scalar @files, '>', 200, 'the source is there');
my %where;
for my $file (@files) {
    for my $use (uses_in($file, slurp("$src/$file"))) {
        push @{ $where{ $use->[0] } }, "$file:$use->[1]";
    }
}
for my $name (sort keys %where) {
    my ($first) = retired_in($name);
    diag("$name: write \"$instead{$first}\" for $first: $where{$name}[0], "
         . scalar(@{ $where{$name} }) . ' in all');
    if ($list) { diag("    $_") for @{ $where{$name} } }
}
is(scalar keys %where, 0, 'identifiers use the field\'s words');

my @named = grep { retired_in($_) } files_of($src, qr/./, @folders);
is_none('file names use the field\'s words', map { "$_: rename this file" } @named);

my @idle = sort grep { $allowed{$_} == 0 } keys %allowed;
is_none('every exception is needed', map { "$_: nothing of this name is left; remove the exception" } @idle);
done_testing();

__DATA__
# retired words: what to write
near far                    : local, remote (a peer); INLINE_MAX; numa; suggest
lane lanes                  : channel
wish wishes                 : request; preference
aim aims aimed              : reference
card cards                  : address
minder                      : monitor
board                       : jobarea
ending parting goodbye bye doomed gone : shutdown (of the job); disconnect (of a peer)
parted                      : disconnected
ticket tickets              : rendezvous: match id
piece pieces slice slices parcel parcels : fragment (on the wire); chunk (of a registration)
lent                        : zcopy
held kept                   : deferred
spare spares                : reserve; skip
worth                       : cost
told heard                  : advertised; last_seen
grant grants                : credit_update
hungry news wants owes      : credit_low, update_pending
company burst               : coalescing, batch, GSO batch
flat prog                   : coll_shm; coll_sched
bell bells doorbell door nap naps patience : wakeup, listener, backoff, timeout
visitor visitors stranger strangers : unauthenticated peer
meet shake proof echo letter letters : connect, handshake, verification, timestamp echo, message
here there mine theirs      : local, remote, self, peer
least most                  : MIN, MAX
face faces                  : the conduit's include/
watch guard                 : memory monitor
room                        : space; credits
upcall upcalls              : callback
train trains                : GSO batch, coalescing
fault                       : error; fault injection (_inject)
==
# exceptions: a name and the reason
GEX_FLAG_AM_PREPARE_LEAST_ALLOC   the interface's name
GEX_FLAG_AM_PREPARE_LEAST_CLIENT  the interface's name
AQ_UDP_TS_ECHO                 timestamp echo, as in TCP (RFC 7323)
last_ts_echo                   timestamp echo
loss_ts_echo                   timestamp echo
ts_echo                        timestamp echo
ts_echo_ns                     timestamp echo
AQ_BENCH_LEAST_SLICES          a time slice of a measurement
AQ_BENCH_MAX_SLICES            a time slice of a measurement
AQ_LOAD_SLICES                 a time slice of a measurement
AQ_LOAD_SLICES_UP              a time slice of a measurement
MAX_SLICES                     a time slice of a measurement
SLICES                         a time slice of a measurement
SLICE_NS                       a time slice of a measurement
aq_load_slice                  a time slice of a measurement
aq_load_slice_ns               a time slice of a measurement
aq_load_slices                 a time slice of a measurement
aq_measure_slice               a time slice of a measurement
slice                          a time slice of a measurement
slice_ns                       a time slice of a measurement
slice_us                       a time slice of a measurement
slices                         a time slice of a measurement
test_interrupted_slices_are_left_out a time slice of a measurement
test_unsteady_slices           a time slice of a measurement
AQ_ENV_FAULT_RATE              the interface's setting
