#!/usr/bin/perl
# test_format.pl - the C files are laid out as .clang-format says, no line of them and of the test
# tables is longer than 100 columns, and no file of the project is longer than 600 lines. Prints TAP.
# SPDX-License-Identifier: BSD-3-Clause
#
# Takes clang-format 14, Debian 12's: another version lays out some code in another way.

use strict;
use warnings;
use File::Basename qw(dirname);
use File::Temp qw(tempdir);
use Test::More;
use lib dirname(__FILE__);
use House qw(source_folder files_of slurp is_none);

my ($columns, $lines) = (100, 600);
my %foreign = ('include/gasnet_portable_platform.h' => 'its text is part of the interface',
               'build-aux/ltmain.sh' => 'libtool makes it');

# Files that are still too long.
my %long = map { $_ => 1 } grep { !/^#/ } split /\s*\n/, join '', <DATA>;

sub find_clang_format
{
    for my $name (qw(clang-format-14 clang-format)) {
        my $version = `$name --version 2>/dev/null` // '';
        return $name if $version =~ /version 14\./;
    }
    return undef;
}

# unformatted SRC FILES - those that clang-format would change.
sub unformatted
{
    my ($program, $src, @files) = @_;
    my %bad;
    while (my @some = splice @files, 0, 40) {
        my $out = `cd '$src' && $program --style=file --dry-run @some 2>&1`;
        $bad{$1} //= $2 while $out =~ /^(\S+?):(\d+):\d+: warning: code should be clang-formatted/mg;
        $bad{$_} = 0 for $? != 0 && !%bad ? @some : ();
    }
    return map { "$_, line $bad{$_}" } sort keys %bad;
}

sub wide_lines
{
    my ($src, @files) = @_;
    my @wide;
    for my $file (@files) {
        my $number = 0;
        for my $line (split /\n/, slurp("$src/$file")) {
            $number++;
            utf8::decode($line);
            push @wide, "$file, line $number: " . length($line) . ' columns' if length $line > $columns;
        }
    }
    return @wide;
}

sub long_files
{
    my ($src, @files) = @_;
    return grep { (slurp("$src/$_") =~ tr/\n//) > $lines } @files;
}

# --- planted files: the test sees what it is there for ---

my $src = source_folder();
my $clang_format = find_clang_format();
my $plant = tempdir(CLEANUP => 1);
my %planted = (
    '.clang-format' => slurp("$src/.clang-format"),
    'good.c' => "int one(void)\n{\n    return 1;\n}\n",
    'bad.c' => "int one(void) {\n  return 1; }\n",
    'wide.c' => '/* ' . 'x' x 95 . " */\n",
    'long.c' => "int x;\n" x 601,
);
for my $file (keys %planted) {
    open my $out, '>', "$plant/$file" or die;
    print $out $planted{$file};
    close $out;
}
my @planted = sort grep { /\.c$/ } keys %planted;
is_deeply([wide_lines($plant, @planted)], ['wide.c, line 1: 101 columns'], 'a wide line is seen');
is_deeply([long_files($plant, @planted)], ['long.c'], 'a long file is seen');

# --- the source ---

my @top = qw(include base core extended conduits other runtimes apps tests);
my @c = grep { !$foreign{$_} } files_of($src, qr/\.[ch]$/, @top);
my @ours = grep { !$foreign{$_} } files_of($src, qr/\.(c|h|pl|sh|pm|awk)$/, @top, 'build-aux');
cmp_ok(scalar @c, '>', 400, 'the source is there');

my @tables = ('check', map { "build-aux/$_" } qw(testsets testaxes configurations));
my @wide = wide_lines($src, @c, @tables);
is_none("no line of C or of a test table is longer than $columns columns", @wide);

my @long = long_files($src, @ours);
my @unknown = grep { !$long{$_} } @long;
is_none("no file is longer than $lines lines", map { "$_: split this file" } @unknown);
my %is_long = map { $_ => 1 } @long;
my @idle = grep { !$is_long{$_} } sort keys %long;
is_none('every exception is needed', map { "$_: short enough, or gone; remove the exception" } @idle);

SKIP: {
    skip 'no clang-format 14', 2 unless $clang_format;
    is_deeply([unformatted($clang_format, $plant, 'good.c', 'bad.c')], ['bad.c, line 1'],
              'a file that is not formatted is seen');
    my @bad = unformatted($clang_format, $src, @c);
    is_none('all C files are formatted', map { "$_: run clang-format -i" } @bad);
}
done_testing();

__DATA__
# files longer than 600 lines, to be split
