#!/usr/bin/perl
# run.pl - do the tests find bugs? Puts each mutant into a copy of the source and runs ./check there until a set fails.
# SPDX-License-Identifier: BSD-3-Clause
#
#   run.pl [--folder DIR] [--more] [NAME]...
#   run.pl --lines
#
# DIR, by default build/mutation, holds the copy and its builds; they are kept, so that a second run is
# faster. NAME: only these mutants. --more: ./check --more instead of ./check. Prints TAP: one point for each
# mutant, ok if a set failed, with the set's name; that ./check passes without a mutant is not asked here.
# --lines runs nothing: a point is ok if the mutant's line stands once in its file of the source folder, and
# ./check has the run that is expected to fail.
# Takes some minutes a mutant: first the run that is expected to fail, then, if it passed, all. Depends on tests/mutation/mutants, ./check --stop.

use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Path qw(make_path);
use Getopt::Long;

my $src = abs_path($ENV{AQ_SRC} || dirname($0) . '/../..');
my ($folder, $more, $lines) = ($ENV{AQ_BUILD} ? "$ENV{AQ_BUILD}/mutation" : "$src/build/mutation");
GetOptions('folder=s' => \$folder, 'more' => \$more, 'lines' => \$lines)
    or die "usage: run.pl [--folder DIR] [--more] [NAME]...\n       run.pl --lines\n";
my %wanted = map { $_ => 1 } @ARGV;

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

# The copy is what git knows of, as it is in the work tree; unchanged files keep their times, and so their objects.
sub copy_source
{
    make_path($folder);
    open my $files, '-|', 'git', '-C', $src, 'ls-files', '-z' or die "run.pl: git: $!\n";
    local $/ = "\0";
    while (my $file = <$files>) {
        chomp $file;
        next if !-e "$src/$file" && !-l "$src/$file";
        make_path(dirname("$folder/$file"));
        next if system('cmp', '-s', "$src/$file", "$folder/$file") == 0;
        system('cp', '-a', "$src/$file", "$folder/$file") == 0 or die "run.pl: cannot copy $file\n";
    }
}

# Runs ./check in the copy with these arguments; returns the name of the first set that failed, or
# nothing.
sub run_check
{
    my ($mutant, @arguments) = @_;
    my $log = "$folder/mutant-$mutant->{name}.log";
    my $command = join ' ', './check', '--stop', map { "'$_'" } @arguments;
    system("cd '$folder' && $command >'$log' 2>&1 </dev/null");
    my $said = slurp($log);
    die "run.pl: ./check did not run; see $log\n" if $said !~ /^\d+ passed, \d+ failed/m;
    return $said =~ /^failed: (.+)$/m ? $1 : undef;
}

# The expected run is part of ./check, so all of ./check would fail, too.
sub check
{
    my $mutant = shift;
    my ($config, $run) = split ' ', $mutant->{'?'}, 2;
    return run_check($mutant, '--config', $config, $run) // run_check($mutant, $more ? '--more' : ());
}

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
    return system("perl '$src/build-aux/run-testsets' --build --when full --list --config '$config' '$run' >/dev/null 2>&1") == 0;
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

my @mutants = grep { !%wanted || $wanted{ $_->{name} } } read_mutants();
@mutants or die "run.pl: no such mutant\n";
$| = 1;
print '1..', scalar @mutants, "\n";
if ($lines) {
    look_up(@mutants);
    exit 0;
}
copy_source();
my $list = "$folder/tests/mutation/mutants"; # in the copy: without the mutant, whose line is not there
my $all = slurp($list);
my $number = 0;
for my $mutant (@mutants) {
    $number++;
    my $file = "$folder/$mutant->{file}";
    my $text = slurp($file);
    my $times = times_in($mutant, $text);
    if ($times != 1) {
        print "not ok $number - $mutant->{name}: its line stands $times times in $mutant->{file}\n";
        next;
    }
    spew($file, $text =~ s/\Q$mutant->{'-'}\E/$mutant->{'+'}/r);
    spew($list, $all =~ s/^\Q$mutant->{name}\E .*\n(?:[-+?] .*\n)+//mr);
    my $found = eval { check($mutant) };
    my $trouble = $@;
    spew($file, $text);
    spew($list, $all);
    die $trouble if $trouble;
    print $found ? '' : 'not ', "ok $number - $mutant->{name}: $mutant->{about}\n";
    print '# ', $found ? "found by $found" : 'no set found it', "\n";
}
