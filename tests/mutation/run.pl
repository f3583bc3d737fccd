#!/usr/bin/perl
# run.pl - do the tests find bugs? Puts each mutant into a copy of the source and runs ./check there
# until a set fails.
# SPDX-License-Identifier: BSD-3-Clause
#
#   run.pl [--folder DIR] [--more] [--minutes N] [NAME]...
#   run.pl --lines
#
# DIR, by default build/mutation, holds the copy and its builds; they are kept, so that a second run
# is faster. NAME: only these mutants. --more: ./check --more instead of ./check. --minutes: each
# ./check is given so many, by default 60, and is ended a fifth later.
#
# First the runs that are expected to fail must pass without a mutant. Then for each mutant the run
# that is expected to fail, and, if it passed, all of ./check but for sets that judge the source as
# text. A mutant is code that compiles: if it does not build, it is none. A set that was not
# expected to fail must pass once the mutant is out again. Prints TAP: one point for each mutant, ok
# if a set failed, with the set's name. Takes some minutes a mutant.
# --lines runs nothing: a point is ok if the mutant's line stands once in its file of the source
# folder, and ./check has the run that is expected to fail.
# Depends on tests/mutation/mutants, ./check --stop --minutes --without, git, timeout.

use strict;
use warnings;
use Cwd qw(abs_path);
use File::Compare qw(compare);
use File::Basename qw(dirname);
use File::Path qw(make_path);
use Getopt::Long;
use POSIX ();

my $src = abs_path($ENV{AQ_SRC} || dirname($0) . '/../..');
my $folder = $ENV{AQ_BUILD} ? "$ENV{AQ_BUILD}/mutation" : "$src/build/mutation";
my ($more, $lines, $minutes) = (0, 0, 60);
GetOptions('folder=s' => \$folder, 'more' => \$more, 'lines' => \$lines, 'minutes=f' => \$minutes)
    or die "usage: run.pl [--folder DIR] [--more] [--minutes N] [NAME]...\n       run.pl --lines\n";
my %wanted = map { $_ => 1 } @ARGV;

# Sets that judge the source as text or compile it only, and the tests of the tests.
my @no_test = qw(layers words format links mutant-lines headers selection mutant-runs);

sub read_mutants
{
    my @mutants;
    open my $in, '<', "$src/tests/mutation/mutants" or die "run.pl: mutants: $!\n";
    while (my $line = <$in>) {
        next if $line =~ /^(#|$)/;
        $line =~ /^(\S+) (\S+): (.+)$/ or die "run.pl: mutants line $.: NAME FILE: text wanted\n";
        my $mutant = { name => $1, file => $2, about => $3 };
        for my $mark ('-', '+', '?') {
            my $piece = <$in> // '';
            $piece =~ /^\Q$mark\E (.+)$/ or die "run.pl: mutants line $.: '$mark text' wanted\n";
            $mutant->{$mark} = $1;
        }
        push @mutants, $mutant;
    }
    return @mutants;
}

sub slurp
{
    my $file = shift;
    open my $in, '<', $file or die "run.pl: $file: $!\n";
    local $/;
    return scalar <$in>;
}

sub spew
{
    my ($file, $text) = @_;
    open my $out, '>', $file or die "run.pl: $file: $!\n";
    print $out $text or die "run.pl: $file: $!\n";
    close $out or die "run.pl: $file: $!\n";
}

# --- the copy ---

sub files_of_source
{
    open my $files, '-|', 'git', '-C', $src, 'ls-files', '-z' or die "run.pl: git: $!\n";
    local $/ = "\0";
    chomp(my @files = <$files>);
    close $files or die "run.pl: git ls-files failed in $src\n";
    return grep { -e "$src/$_" || -l "$src/$_" } @files;
}

# The copy is what git knows of, as it is in the work tree. Unchanged files keep their times, and so
# their objects; what is copied gets the time of now, since an object of an interrupted run may be
# newer than the source. The copy has no .git, by which ./check would see that ./configure is old:
# after any change it is made again.
sub copy_source
{
    make_path($folder);
    my @files = files_of_source();
    my $changed = delete_other_files(@files);
    for my $file (@files) {
        next if is_same("$src/$file", "$folder/$file");
        make_path(dirname("$folder/$file"));
        my @cp = ('cp', '-P', '--remove-destination', '--preserve=mode');
        system(@cp, "$src/$file", "$folder/$file") == 0 or die "run.pl: cannot copy $file\n";
        $changed++;
    }
    unlink "$folder/configure" if $changed;
}

# True if the copy has the file as the source has it.
sub is_same
{
    my ($file, $copy) = @_;
    return -l $copy && readlink $file eq readlink $copy if -l $file;
    return !-l $copy && -f $copy && !(-x $file xor -x $copy) && compare($file, $copy) == 0;
}

# Deletes what an earlier copy had and the source has no more, with the conduit's header that
# ./bootstrap made of it; returns how many. The list of what was copied is in the copy.
sub delete_other_files
{
    my $list = "$folder/copied-files";
    my %there = map { $_ => 1 } @_;
    my @gone = grep { !$there{$_} } -f $list ? split /\0/, slurp($list) : ();
    for my $file (@gone) {
        unlink "$folder/$file";
        unlink "$folder/include/$1-conduit/$2" if $file =~ m{^conduits/(\w+)/include/(.+)};
    }
    spew($list, join "\0", @_);
    return scalar @gone;
}

# --- ./check in the copy ---

# The exit status of a command for sh; a signal ends the command first, then this script, which puts
# the source in order.
sub status_of
{
    my $command = shift;
    my $signal;
    my $pid = fork // die "run.pl: fork: $!\n";
    if ($pid == 0) {
        exec 'sh', '-c', $command or POSIX::_exit(127);
    }
    local @SIG{qw(INT TERM HUP)} = (sub { $signal = shift; kill 'TERM', $pid }) x 3;
    1 while waitpid($pid, 0) != $pid;
    my $status = $?;
    die "run.pl: interrupted\n" if $signal || $status >> 8 == 130;
    return $status;
}

# Runs ./check in the copy with these arguments. Returns what came of it: passed; failed, with the
# run's configuration and name; "not built" or unfinished, with the reason.
sub run_check
{
    my ($log_name, @arguments) = @_;
    my $log = "$folder/$log_name.log";
    my $limit = sprintf '%.1f', $minutes * 60 * 1.2;
    my @command = ('timeout', '--foreground', '-k', '30', $limit, './check', '--stop',
                   "--minutes=$minutes", (map { "--without=$_" } @no_test), @arguments);
    my $status = status_of("cd '$folder' && exec " . join(' ', map { "'$_'" } @command)
                           . " >'$log' 2>&1 </dev/null");
    my $said = slurp($log);
    return ('unfinished', "./check was ended after $limit s; see $log") if $status >> 8 == 124;
    return ('unfinished', "./check did not run; see $log") if $said !~ /^\d+ passed, \d+ failed/m;
    if ($said =~ /^failed: ([^:]+): ([^:]+): (.*)/m) {
        return $2 eq 'build' ? ('not built', "$1: $3; see $log") : ('failed', $1, $2);
    }
    return ('unfinished', "$1; see $log") if $said =~ /^(\d+ sets skipped for want of time.*)/m;
    return ('unfinished', "$1; see $log") if $status && $said =~ /^(\d+ passed, .*)/m; # none passed
    return 'passed';
}

# The runs that are expected to fail pass without a mutant, or no more is asked.
sub check_without_mutants
{
    my %runs;
    for my $mutant (@_) {
        my ($config, $run) = split ' ', $mutant->{'?'}, 2;
        $runs{$config}{$run} = 1;
    }
    for my $config (sort keys %runs) {
        my @runs = sort keys %{ $runs{$config} };
        my ($outcome, @what) = run_check("none-$config", '--config', $config, @runs);
        next if $outcome eq 'passed';
        print "Bail out! without a mutant: $outcome: @what\n";
        exit 1;
    }
}

# The expected run is part of ./check, so all of ./check would fail, too. What failed besides must
# pass without the mutant, which RESTORE takes out: a test of the mutant, and not of the machine.
sub check
{
    my ($mutant, $restore) = @_;
    my $log = "mutant-$mutant->{name}";
    my ($config, $run) = split ' ', $mutant->{'?'}, 2;
    my ($outcome, @what) = run_check($log, '--config', $config, $run);
    return ($outcome, @what) if $outcome ne 'passed';
    my @size = $more ? '--more' : ();
    ($outcome, @what) = run_check($log, @size);
    return ($outcome, @what) if $outcome ne 'failed';
    $restore->();
    my ($without, @why) = run_check("$log-out", @size, '--config', @what);
    return ($outcome, @what) if $without eq 'passed';
    return ('unfinished', "@what fails without the mutant, too: $without: @why");
}

# --- mutants ---

# How often the mutant's line stands in a text.
sub times_in
{
    my ($mutant, $text) = @_;
    return scalar(() = $text =~ /\Q$mutant->{'-'}\E/g);
}

# True if ./check has the run that the mutant is expected to fail.
sub has_run
{
    my ($config, $run) = split ' ', shift->{'?'}, 2;
    local $ENV{AQ_SRC} = $src;
    my $list = `perl '$src/build-aux/run-testsets' --build --when full --list '$run' 2>/dev/null`;
    return $list =~ /^\Q$config\E +(?!build)/m;
}

# Points for the mutants whose lines are looked up only.
sub look_up
{
    my $number = 0;
    for my $mutant (@_) {
        my $file = "$src/$mutant->{file}";
        my $times = -f $file ? times_in($mutant, slurp($file)) : 'no file, so 0';
        my $has_run = has_run($mutant);
        printf "%sok %d - %s: its line stands %s times in %s; ./check %s '%s'\n",
            $times eq '1' && $has_run ? '' : 'not ', ++$number, $mutant->{name}, $times,
            $mutant->{file}, $has_run ? 'has' : 'has no', $mutant->{'?'};
    }
}

# Puts the mutant into the copy, runs ./check, takes it out; prints its point.
sub try
{
    my ($number, $mutant) = @_;
    my $file = "$folder/$mutant->{file}";
    my $text = slurp($file);
    my $times = times_in($mutant, $text);
    if ($times != 1) {
        print "not ok $number - $mutant->{name}: its line stands $times times in $mutant->{file}\n";
        return;
    }
    my $restore = sub { spew($file, $text) if slurp($file) ne $text };
    spew($file, $text =~ s/\Q$mutant->{'-'}\E/$mutant->{'+'}/r);
    my ($outcome, @what) = eval { check($mutant, $restore) };
    my $trouble = $@;
    $restore->();
    die $trouble if $trouble;
    print $outcome eq 'failed' ? '' : 'not ', "ok $number - $mutant->{name}: $mutant->{about}\n";
    my %say = (failed => 'found by', passed => 'no set found it', 'not built' => 'does not build:',
               unfinished => 'cannot say:');
    print join(' ', '#', $say{$outcome}, @what), "\n";
}

my @mutants = grep { !%wanted || $wanted{ $_->{name} } } read_mutants();
@mutants or die "run.pl: no such mutant\n";
$| = 1;
print '1..', scalar @mutants, "\n";
if ($lines) {
    look_up(@mutants);
    exit 0;
}
copy_source();
check_without_mutants(@mutants);
try($_ + 1, $mutants[$_]) for 0 .. $#mutants;
