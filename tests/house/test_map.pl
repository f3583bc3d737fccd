#!/usr/bin/perl
# test_map.pl - tests/README.md: a row for each folder of tests, short enough to be read as a table,
# with the times that build-aux/testsets adds up to. Prints TAP. SPDX-License-Identifier: BSD-3-Clause
#
# A time is what "./check --list" plans for all runs of the folder's sets. The map may differ by a
# fifth, or by ten seconds.

use strict;
use warnings;
use File::Basename qw(dirname);
use List::Util qw(max);
use Test::More;
use lib dirname(__FILE__);
use House qw(source_folder slurp is_none);

my $src = source_folder();
my $longest = 200; # characters of a row

# rows_of TEXT - the rows of the table: the folder, its line, the times in seconds, in ./check and
# what --more adds.
sub rows_of
{
    my %rows;
    for my $line (split /\n/, shift) {
        my ($folder, $times) = $line =~ /^\| `(\w+)\/` \|.*\|([^|]*\|[^|]*)\|$/ or next;
        my @times = map { /^\s*(?:\+ )?(\d+) (s|min)\b/ ? $1 * ($2 eq 's' ? 1 : 60) : 0 } split /\|/, $times;
        $rows{$folder} = { line => $line, times => \@times };
    }
    return %rows;
}

# planned WHEN - seconds of the runs by folder.
sub planned
{
    my $when = shift;
    my %of;
    open my $list, '-|', $^X, "$src/build-aux/run-testsets", '--build', '--list', '--when', $when
        or die "run-testsets: $!\n";
    while (my $line = <$list>) {
        $of{$2} += $1 if $line =~ m{\s(\d+) s  .*?\btests/(\w+)/};
    }
    close $list or die "run-testsets --list --when $when failed\n";
    return %of;
}

sub is_near { my ($said, $real) = @_; return abs($said - $real) <= max(10, $real / 5) }

my %planted = rows_of("| `one/` | a | b | c |\n| `two/` | what | 3 min | + 20 s (`--long`, 1 min) |\n| `x/` | y | | |\n");
is_deeply([map { @{ $planted{$_}{times} } } qw(one two x)], [0, 0, 180, 20, 0, 0], 'rows are read');
ok(is_near(100, 119) && is_near(3, 12) && !is_near(100, 130) && !is_near(0, 20), 'times are compared');

$ENV{AQ_SRC} = $src;
my %rows = rows_of(slurp("$src/tests/README.md"));
my @folders = map { m{/([^/]+)/$} } glob "$src/tests/*/";
my @unmapped = grep { !$rows{$_} } @folders;
is_none('each folder of tests has a row', map { "tests/$_: tests/README.md has no row for it" } @unmapped);
my %is_folder = map { $_ => 1 } @folders;
my @gone = grep { !$is_folder{$_} } sort keys %rows;
is_none('each row has a folder', map { "tests/$_: tests/README.md has a row for it" } @gone);

my @long = grep { length($rows{$_}{line}) > $longest } sort keys %rows;
is_none('no row is longer than a screen', map { "$_: its row has " . length($rows{$_}{line}) . " characters, more than $longest" } @long);

my %check = planned('full');
my %more = planned('more');
my @wrong;
for my $folder (sort keys %rows) {
    my ($in_check, $added) = @{ $rows{$folder}{times} };
    my $real = $check{$folder} // 0;
    my $really_added = ($more{$folder} // 0) - $real;
    push @wrong, "$folder: $in_check s in ./check, planned are $real" unless is_near($in_check, $real);
    push @wrong, "$folder: --more adds $added s, planned are $really_added" unless is_near($added, $really_added);
}
is_none('the times are those of build-aux/testsets', @wrong);
done_testing();
