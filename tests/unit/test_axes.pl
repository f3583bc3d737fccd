#!/usr/bin/perl
# test_axes.pl - which combinations of axis values the test sets run: every pair that can be is
# there, nothing that was ruled out, each run once, the same selection every time; the runner, and
# what ./check says of itself. Prints TAP.
# SPDX-License-Identifier: BSD-3-Clause

use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Temp qw(tempdir);
use List::Util qw(min);
use Test::More;
my $src;
BEGIN { $src = abs_path(dirname($0) . '/../..') }
use lib "$src/build-aux";
use TestAxes qw(read_table read_axes read_sets product env_of label_of name_of when_rank runs_of);
use TestIdle qw(idle_cores allowed_cores);
use TestTime qw(slowness stretched is_overdue);

my @when = qw(quick full more long);
my $work = tempdir(CLEANUP => 1);

sub table
{
    my ($name, $text) = @_;
    open my $out, '>', "$work/$name" or die;
    print $out $text;
    close $out;
    return "$work/$name";
}

sub slurp
{
    my $file = shift;
    open my $in, '<', $file or return '';
    local $/;
    return scalar <$in>;
}

# The pairs of values of a set's axes, worked out anew from combinations: pair => how often.
sub count_pairs
{
    my %count;
    for my $of (@_) {
        my @axes = sort keys %$of;
        for my $one (@axes) {
            $count{"$one=$of->{$one} $_=$of->{$_}"}++ for grep { $_ gt $one } @axes;
        }
    }
    return \%count;
}

# Pairs that TIMES runs, or as many as can be, do not hold.
sub missing
{
    my ($times, $all, @runs) = @_;
    my ($can, $are) = (count_pairs(@$all), count_pairs(@runs));
    return join ', ', grep { ($are->{$_} // 0) < min($times, $can->{$_}) } sort keys %$can;
}

# --- tables of the test's own ---

my $axes = read_axes(table('axes', <<'END'), qw(opt debug));
# comment
net=a | NET=a
net=b | NET=b
net=c | NET=c
n=1   |
n=2   | N=2
way=x | WAY="x y|z"
way=y |
net=a way=y       | never
net=b,c n=2       | BOTH=1
build=debug net=c | never
END
my %values = (build => ['opt', 'debug'], net => ['a', 'b', 'c'], n => [1, 2], way => ['x', 'y']);
is_deeply($axes->{values}, \%values,
    'values are known in the order of their rows');
my ($set, $fixed) = read_sets(table('sets', <<'END'), $axes);
vary  | build net n way | full:pairs more:twice \
                          long | cpu | 1 | 2 | run | this
fixed | opt net=b n     | quick | alone | 1 | 2 | run that
END
is($set->{command}, 'run | this', 'a row goes on after a backslash; its last field may hold bars');
my $builds = sub { return $_[0] eq 'full' ? 'opt' : ('opt', 'debug') };
my @full = runs_of($axes, $set, 'full', $builds);
my @more = runs_of($axes, $set, 'more', $builds);
my @long = runs_of($axes, $set, 'long', $builds);
my @all = product($axes, $set, 'opt', 'debug');
is(scalar @all, (2 * 2 * 2 + 2) + (2 * 2 + 2), 'a product is without what is ruled out');
is(missing(1, [product($axes, $set, 'opt')], @full), '', 'pairs: every pair of values occurs');
cmp_ok(scalar @full, '<', 8, 'and in fewer runs than the product has');
is(missing(2, \@all, @more), '', 'twice: every pair occurs twice, or as often as it can');
is_deeply([sort map { label_of($_) } @long], [sort map { label_of($_) } @all],
    'all: the product, each once');
is_deeply([@more[0 .. $#full]], \@full, 'a larger run holds the smaller');
is(scalar runs_of($axes, $set, 'quick', $builds), 0, 'and a set does not run before its time');
is(env_of($axes, { net => 'b', n => 2, way => 'x' }), 'NET=b N=2 WAY="x y|z" BOTH=1',
    'words of values, and of values that meet');
is(name_of($fixed, { build => 'opt', net => 'b', n => 2 }), 'fixed 2', 'a name shows what varies');
for my $wrong ('v | nonsense | full | cpu | 1 | 2 | c', 'v | net=d | full | cpu | 1 | 2 | c',
    'v | opt | full | idle | 1 | 2 | c', 'v | opt | full') {
    is(eval { read_sets(table('wrong', "$wrong\n"), $axes); 1 }, undef, "refused: $wrong");
}

# --- the tables of the project ---

my @configs = read_table("$src/build-aux/configurations", 6);
my $real = read_axes("$src/build-aux/testaxes", map { $_->[0] } @configs);
my $at = sub {
    my $when = shift;
    return map { $_->[0] } grep { when_rank($_->[2]) <= when_rank($when) } @configs;
};
my %runs;
for my $one (read_sets("$src/build-aux/testsets", $real)) {
    for my $when (grep { exists $one->{select}{$_} && $_ ne 'vm' } @when) {
        my @selected = runs_of($real, $one, $when, $at);
        my $how = $one->{select}{$when};
        next if $how eq 'all';
        my $times = $how eq 'twice' ? 2 : 1;
        my $missing = missing($times, [product($real, $one, $at->($when))], @selected);
        is($missing, '', "$one->{name}, $when: every pair of values, in " . @selected . ' runs');
        my @again = runs_of($real, $one, $when, $at);
        is_deeply(\@again, \@selected, "$one->{name}, $when: the same selection every time");
    }
    next if exists $one->{select}{vm};
    $runs{ "$_->{build} " . name_of($one, $_) }++ for runs_of($real, $one, 'long', $at);
}
is(join(', ', grep { $runs{$_} > 1 } sort keys %runs), '',
    'no two runs of a configuration have one name');

# --- when a step hangs ---

my @finished = ({ runs => 'cpu', seconds => 40, took => 20 },
    { runs => 'waits', seconds => 40, took => 140 });
is(slowness(), 1, 'a machine is not slow before anything has finished');
is(slowness($finished[0]), 1, 'nor by one short step');
is(slowness(@finished), 2, 'it is as slow as what has finished says');
is(slowness(@finished, { runs => 'build', seconds => 180, took => 2 }), 2,
    'a build that finds all built says nothing');
is(slowness(@finished, { runs => 'build', seconds => 80, took => 480 }), 4, 'one that builds does');
is_deeply([map { stretched(300, $_) } 0.5, 1, 2, 100], [300, 300, 600, 1800],
    'a limit grows with it, six times at most');
my $hangs = { seconds => 20, limit => 900 };
my @overdue = map { is_overdue($hangs, @$_) ? 1 : 0 } [99, 1], [101, 1], [101, 2], [201, 2];
is_deeply(\@overdue, [0, 1, 0, 1],
    'time is up: a step has failed that takes five times what it should, on this machine');
ok(!is_overdue({ seconds => 1, limit => 300 }, 29, 1), 'but for a tenth of its limit');
my $before = "cpu  9 9\ncpu0 100 0 50 1000 20 3 3 4 0 0\ncpu1 0 0 0 0 0 0 0 0 0 0\n";
my @later = ("cpu0 200 0 50 1060 60 3 3 4 9 0\ncpu1 100 0 0 0 0 0 0 0 0 0\n",
    "cpu1 0 0 0 25 0 0 0 75 0 0\ncpu0 100 0 50 1100 20 3 3 4 0 0\n", $before, '');
my @idle = map { sprintf '%.2f', idle_cores($before, $_, 0, 1) } @later;
is_deeply(\@idle, ['0.50', '1.25', '0.00', '0.00'],
    'idle cores: half of the time one; one and a quarter; no time; unknown');
is(idle_cores($before, $later[1], 0), 1, 'other cores do not count');
is_deeply([allowed_cores("Name: x\nCpus_allowed_list:\t0-2,5,8-9\n")], [0 .. 2, 5, 8, 9],
    'allowed cores');

# --- the runner, with sets of the test's own ---

# A source folder whose ./configure makes a Makefile that builds nothing.
sub make_source
{
    my ($name, $configurations, $testaxes, $testsets) = @_;
    my $top = "$work/$name";
    mkdir $_ for $top, "$top/build", "$top/build-aux";
    symlink "$src/build-aux/configure-once.sh", "$top/build-aux/configure-once.sh" or die;
    table("$name/configure", "echo 'all install install-tests:' >Makefile\n");
    table("$name/build-aux/configurations", $configurations);
    table("$name/build-aux/testaxes", $testaxes);
    table("$name/build-aux/testsets", $testsets);
    return $top;
}

# What the runner says of such a folder.
sub runner_says
{
    my ($top, @arguments) = @_;
    local @ENV{qw(AQ_SRC AQ_BUILD)} = ($top, "$top/build");
    open my $said, '-|', "exec '$^X' '$src/build-aux/run-testsets' @arguments 2>&1" or die;
    local $/;
    my $all = <$said>;
    close $said;
    return $all;
}

my $opt = "opt | 1 | quick | - | all more:no-such-target | --nothing\n";
like(`sh '$src/check' --help`, qr{\A +\./check .*\S\.\n\z}s, './check --help ends with a whole sentence');
my $top = make_source('counts', $opt, "n=1 | SAID=one\nn=2 | SAID=two\n", <<'END');
right  | opt n | quick | cpu   | 1 | 20 | echo "ok 1 - $SAID"; echo 1..1
wrong  | opt   | quick | waits | 1 | 20 | echo 'not ok 1 - broken'; echo 1..1
silent | opt   | quick | waits | 1 | 20 | true
slow   | opt   | quick | alone | 1 |  1 | sleep 20
stays  | opt   | quick | cpu   | 1 | 20 | sleep 20 >/dev/null & echo 'ok 1'; echo 1..1
floods | opt   | quick | cpu   | 1 | 60 | yes "$(printf %1000d 0)"
END
my $said = runner_says($top, '--when quick');
isnt($?, 0, 'the runner: failures are its exit status');
like($said, qr/^3 passed, 5 failed, 0 skipped$/m, 'it counts every set');
like($said, qr/^ok +here +right $_ .*cpu/m, "a run of the axis's value $_") for 1, 2;
like($said, qr/^failed: here: $_/m, "told: $_")
    for 'wrong: broken', 'silent: bad TAP', 'slow: took longer than 1 s', 'stays: left 1 process',
    'floods: printed more than 64 MB';
$said = runner_says($top,
    '--when quick --without wrong --without slow --without stays --without floods');
like($said, qr/^2 passed, 1 failed, 0 skipped$/m, '--without leaves sets out');
like(runner_says($top, '--build --when quick right'), qr/^2 passed, 0 failed/m, 'a build');
like(runner_says($top, '--build --when more right'), qr/^failed: opt: build/m,
    'more:TARGET is built for more');
like(runner_says($top, '--when quick --without x'), qr/no test set 'x'/, 'those that there are');

# Six seconds, with a processor for each set: one hangs, one began late, one never begins.
$top = make_source('late', $opt, '', <<'END');
hangs  | opt | quick | cpu   | 0.5 |  30 | sleep 50
long   | opt | quick | cpu   |  20 | 100 | echo 'ok 1'; sleep 50
waits  | opt | quick | alone |   5 |  30 | echo 'ok 1'; echo 1..1
END
my $jobs = $ENV{AQ_JOBS};
$ENV{AQ_JOBS} = 2;
$said = runner_says($top, '--when quick --minutes 0.1');
isnt($?, 0, 'what hangs when time is up has failed');
like($said, qr/^failed: here: hangs: did not end in \d+ s, where 1 s are planned$/m, 'it is told');
like($said, qr/^2 sets skipped for want of time: --minutes 0.1\n0 passed, 1 failed, 2 skipped$/m,
    'the last lines tell how many sets were skipped, one of them under way');
table('late/build-aux/testsets', <<'END');
short  | opt | quick | cpu   |   1 | 100 | echo 'ok 1'; echo 1..1
long   | opt | quick | cpu   |  20 | 100 | echo 'ok 1'; sleep 50
END
$said = runner_says($top, '--when quick --minutes 0.06');
is($?, 0, 'skipped sets are no failure');
like($said, qr/^1 sets skipped .*\n1 passed, 0 failed, 1 skipped$/m, 'but told');
delete $ENV{AQ_JOBS};
$ENV{AQ_JOBS} = $jobs if defined $jobs;

# --config filters what a run of its size, or the smallest that builds it, selects.
$top = make_source('select', <<'END', "n=1 |\nn=2 |\nn=3 |\nway=x |\nway=y |\nway=z |\n", <<'END2');
opt   | 1 | quick | - | all | --nothing
other | 1 | full  | - | all | --nothing
debug | 1 | more  | - | all | --nothing
clang | 1 | more  | - | all | --nothing
END
vary  | build n way | full:pairs more:pairs long | cpu | 1 | 20 | run
END2
for my $case (['full', 'opt', 'full'], ['full', 'clang', 'more'], ['more', 'other', 'more'],
    ['full', 'debug', 'more'], ['long', 'clang', 'long']) {
    my ($at, $config, $in) = @$case;
    my @lines = runner_says($top, "--build --when $in --list") =~ /(.*\n)/g;
    my $whole = join '', grep { /^$config / } @lines;
    is(runner_says($top, "--build --when $at --list --config $config"), $whole,
        "--when $at --config $config: what --when $in runs of it");
}
my %names = map { $_ => join '', runner_says($top, "--config opt --build --when $_ --list") } @when;
my ($larger) = grep { index($names{full}, $_) < 0 } $names{long} =~ /(vary \d \w)/g;
like(runner_says($top, "--config opt --build --list '$larger'"), qr/is a run of --(more|long) only/,
    'a run that only a larger selection has is told as that');

# A runner in a set of a runner: its jobs end with the set; it tests its own installed tree.
my $inner = make_source('inner', $opt, '', <<'END');
tree   | opt | quick | cpu   | 1 | 20 | echo "ok 1 - tree $AQ_INSTALL"; echo 1..1
sleeps | opt | full  | cpu   | 1 | 90 | echo $$ >"$AQ_SRC/pid"; exec sleep 90
END
my $run = "AQ_SRC='$inner' AQ_BUILD='$inner/build' '$^X' '$src/build-aux/run-testsets'";
$top = make_source('outer', $opt, '', <<END);
tree   | opt | quick | cpu   | 1 | 20 | $run --build --when quick
here   | opt | quick | cpu   | 1 | 20 | $run --when quick
sleeps | opt | full  | alone | 1 |  4 | $run --when full sleeps
END
{
    local $ENV{AQ_INSTALL} = '/elsewhere';
    runner_says($top, '--build --when full');
    my @trees = map { slurp("$top/build/check/opt-$_.log") } 'tree', 'here';
    like($_, qr/^1 passed, 0 failed/m, 'a run in a set of another') for @trees;
    like(slurp("$inner/build/check/opt-tree.log"), qr{^ok 1 - tree \Q$inner/build/install\E$}m,
        'tests the tree that it installs');
    like(slurp("$inner/build/check/here-tree.log"), qr{^ok 1 - tree \Q$inner/build/install\E$}m,
        'not that of the outer run');
    delete local $ENV{TESTSET_MARK};
    runner_says($inner, '--when quick');
    like(slurp("$inner/build/check/here-tree.log"), qr{^ok 1 - tree /elsewhere$}m,
        'by hand AQ_INSTALL is the installed tree');
}
my ($pid) = slurp("$inner/pid") =~ /^(\d+)$/;
ok(defined $pid, 'a job of a run in a set of another');
unlike(slurp("/proc/$pid/cmdline"), qr/^sleep/, 'ends with the limit of that set')
    or kill 'KILL', $pid;
done_testing();
