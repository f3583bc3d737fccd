#!/usr/bin/perl
# test_layers.pl - an #include never points upward: base < other < core < extended < conduits.
# Prints TAP. SPDX-License-Identifier: BSD-3-Clause
#
# include       is below everything
# base          includes only include/ of the project
# other/NAME    includes base, and nothing of another folder of other
# core          includes base and other
# extended      includes core besides
# conduits/NAME includes extended besides, and nothing of another conduit; nothing else includes a
#               conduit's header. conduits/list.h and the like, in no conduit's folder, are made of all
# clients       apps, runtimes and the tests in @clients include what is installed and nothing else

use strict;
use warnings;
use File::Basename qw(dirname);
use File::Path qw(make_path);
use File::Temp qw(tempdir);
use Test::More;
use lib dirname(__FILE__);
use House qw(source_folder files_of slurp is_none);

my @order = qw(include base other core extended conduits);
my %height = map { $order[$_] => $_ } 0 .. $#order;
my @clients = qw(apps runtimes tests/clients tests/conformance tests/names tests/armci
    tests/comex tests/interop tests/misuse tests/trace tests/soak);
my $clients = join '|', @clients;

# Includes that no rule allows: "folder or file -> folder or file" => used how often.
my %exceptions;
while (my $line = <DATA>) {
    next if $line =~ /^(#|$)/;
    my ($from, $to) = $line =~ /^(\S+) -> (\S+)\s+\S/ or die "test_layers.pl: $line";
    $exceptions{"$from -> $to"} = 0;
}

# layer_of FILE - its layer and its folder: (conduits, conduits/udp) of conduits/udp/aq_udp.h.
sub layer_of
{
    my $file = shift;
    return ('include', 'include') if $file =~ m{^(include|conduits/\w+/include)/};
    return ('list', 'conduits') if $file =~ m{^conduits/[^/]+$};
    return ($2, $1) if $file =~ m{^((other|conduits)/\w+)/};
    return ('client', $1) if $file =~ m{^((?:$clients)(?:/\w+(?=/))?)};
    return ($1, $1) if $file =~ m{^(base|core|extended)/};
    return ('', '');
}

# target_of SRC FILE NAME - the project's file that #include "NAME" in FILE means; undef for other files.
sub target_of
{
    my ($src, $file, $name) = @_;
    return $name if $name =~ m{^(base|other|core|extended|conduits|runtimes|apps|tests)/};
    for my $folder (dirname($file), 'include') {
        my $path = "$folder/$name";
        1 while $path =~ s{[^/]+/\.\./}{};
        return $path if -e "$src/$path";
    }
    return undef;
}

# allowed FROM TO - may the file FROM include the file TO?
sub allowed
{
    my ($from, $to) = @_;
    my ($from_layer, $from_folder) = layer_of($from);
    my ($to_layer, $to_folder) = layer_of($to);
    return 1 if $to_layer eq '' || $from_folder eq $to_folder || $to_layer eq 'include';
    return 1 if $from_layer eq 'list' && $to_layer =~ /^(base|core)$/;
    for my $one ($from, $from_folder, $from_layer) {
        for my $other ($to, $to_folder) {
            next unless exists $exceptions{"$one -> $other"};
            $exceptions{"$one -> $other"}++;
            return 1;
        }
    }
    return 0 if !exists $height{$from_layer} || !exists $height{$to_layer};
    return $height{$to_layer} < $height{$from_layer};
}

# upward_in SRC - "FILE includes TARGET" for each include that is not allowed; and how many were read.
sub upward_in
{
    my $src = shift;
    my (@upward, $count);
    for my $file (files_of($src, qr/\.(c|h|cc|inc)$/, @order, @clients)) {
        for my $name (slurp("$src/$file") =~ /^[ \t]*#[ \t]*include[ \t]*["<]([^">]+)[">]/mg) {
            my $target = target_of($src, $file, $name) // next;
            $count++;
            push @upward, "$file includes $target" unless allowed($file, $target);
        }
    }
    return ($count, sort @upward);
}

# --- planted includes: the test sees what it is there for ---

my %planted = (
    'base/a.h'             => 'core/b.h',
    'base/inner.c'         => 'other/x/x.h',
    'other/x/x.h'          => '../../core/b.h',
    'other/x/sideways.c'   => 'other/y/y.h',
    'other/y/y.h'          => 'base/a.h',
    'core/b.h'             => 'other/x/x.h',
    'core/up.c'            => 'conduits/one/one.h',
    'extended/c.h'         => 'core/b.h',
    'conduits/one/one.h'   => 'extended/c.h',
    'conduits/two/two.c'   => 'conduits/one/one.h',
    'apps/fine/app.c'      => 'gasnetex.h',
    'runtimes/r/r.c'       => 'core/b.h',
    'include/gasnetex.h'   => 'gasnet/part.h',
    'include/gasnet/part.h' => 'core/b.h',
);
my $plant = tempdir(CLEANUP => 1);
for my $file (keys %planted) {
    make_path(dirname("$plant/$file"));
    open my $out, '>', "$plant/$file" or die;
    print $out "/* planted */\n#include \"$planted{$file}\"\n";
    close $out;
}
my ($planted_count, @seen) = upward_in($plant);
is_deeply(\@seen, [
    'base/a.h includes core/b.h',
    'base/inner.c includes other/x/x.h',
    'conduits/two/two.c includes conduits/one/one.h',
    'core/up.c includes conduits/one/one.h',
    'include/gasnet/part.h includes core/b.h',
    'other/x/sideways.c includes other/y/y.h',
    'other/x/x.h includes core/b.h',
    'runtimes/r/r.c includes core/b.h',
], 'planted upward and sideways includes are seen, and no others');

# --- the source ---

my ($count, @upward) = upward_in(source_folder());
cmp_ok($count, '>', 1000, 'the includes were found');
is_none('no include points upward or sideways', @upward);
my @idle = grep { $exceptions{$_} == 0 } sort keys %exceptions;
is_none('every exception is needed', map { "$_: there is no such include; remove the exception" } @idle);
done_testing();

__DATA__
# what may be included besides: includer -> included, and the reason
other/launcher -> other/spawn   the two ends of the connections by which jobs start
