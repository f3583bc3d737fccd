#!/usr/bin/perl
# test_links.pl - what the documents point to is there: each relative link, with its heading, and
# each path of the source between backticks. Prints TAP. SPDX-License-Identifier: BSD-3-Clause
#
# Reads the .md files and the READMEs. A path counts if it begins with a folder of the source and a
# slash; NAME and * in it stand for any name. Paths that ./bootstrap, the build or the reader makes
# stand at the end.

use strict;
use warnings;
use File::Basename qw(dirname);
use File::Path qw(make_path);
use File::Temp qw(tempdir);
use Test::More;
use lib dirname(__FILE__);
use House qw(source_folder files_of slurp is_none);

my @folders = qw(include base core extended conduits other runtimes apps tests docs build-aux m4);
my $folders = join '|', @folders;

my %made;
while (my $line = <DATA>) {
    next if $line =~ /^(#|$)/;
    my ($path) = $line =~ /^(\S+)\s+\S/ or die "test_links.pl: $line";
    $made{$path} = 0;
}

# is_made PATH - does it begin with a path of the list?
sub is_made
{
    my $path = shift;
    for my $start (keys %made) {
        next unless $path =~ m{^\Q$start\E(/|$)};
        $made{$start}++;
        return 1;
    }
    return 0;
}

# anchors_of TEXT - the names of its headings, as GitHub makes them.
sub anchors_of
{
    my $text = shift;
    $text =~ s/^```.*?^```//gsm;
    my %anchors;
    for my $heading ($text =~ /^#+\s+(.*?)\s*$/mg) {
        my $anchor = lc $heading =~ s/[^\w\s-]//gr;
        $anchor =~ s/\s/-/g;
        $anchors{$anchor} = 1;
    }
    $anchors{$_} = 1 for $text =~ /<a (?:id|name)="([^"]+)"/g;
    return \%anchors;
}

# broken_in SRC FILE - what it points to that is not there; how much was looked at.
sub broken_in
{
    my ($src, $file) = @_;
    my $text = slurp("$src/$file");
    my ($count, @broken) = (0);
    for my $target ($text =~ /\]\(([^)\s]+)\)/g, $text =~ /\bsrc="([^"]+)"/g) {
        next if $target =~ m{^(\w+:|//)};
        my ($path, $anchor) = $target =~ /^([^#]*)(?:#(.*))?$/;
        my $aim = $path eq '' ? "$src/$file" : "$src/" . dirname($file) . "/$path";
        $count++;
        if (!-e $aim) {
            push @broken, "$file: the link $target";
        } elsif (defined $anchor && -f $aim && !anchors_of(slurp($aim))->{$anchor}) {
            push @broken, "$file: no heading for the link $target";
        }
    }
    for my $path ($text =~ m{`((?:$folders)/[\w./*\@-]*)`}g) {
        $count++;
        (my $glob = $path) =~ s/\bNAME\b|(?<=_)NAME|\@c\@/*/g;
        push @broken, "$file: the path $path" unless is_made($path) || grep { -e } glob "$src/$glob";
    }
    return ($count, @broken);
}

# --- planted documents: the test sees what it is there for ---

my $plant = tempdir(CLEANUP => 1);
my %planted = (
    'core/aq_here.c' => "x\n",
    'docs/other.md'  => "# A heading, of words\n",
    'docs/one.md'    => "[a](../core/aq_here.c) [b](../core/aq_gone.c) [c](other.md#a-heading-of-words)\n"
        . "[d](other.md#no-such) [e](#own) [f](https://example.org/x) <img src=\"gone.svg\">\n"
        . "`core/aq_here.c` `core/aq_away.c` `core/aq_NAME.c` `tests/NAME.c` `make -C core/x`\n# Own\n",
);
for my $file (keys %planted) {
    make_path(dirname("$plant/$file"));
    open my $out, '>', "$plant/$file" or die;
    print $out $planted{$file};
    close $out;
}
my ($planted_count, @seen) = broken_in($plant, 'docs/one.md');
is_deeply(\@seen, [
    'docs/one.md: the link ../core/aq_gone.c',
    'docs/one.md: no heading for the link other.md#no-such',
    'docs/one.md: the link gone.svg',
    'docs/one.md: the path core/aq_away.c',
    'docs/one.md: the path tests/NAME.c',
], 'planted links and paths to nothing are seen, and no others');

# --- the documents ---

my $src = source_folder();
my @files = (grep({ -f "$src/$_" } qw(README.md CONTRIBUTING.md)),
             files_of($src, qr{(\.md|/README)$}, @folders));
my ($count, @broken) = (0);
for my $file (@files) {
    my ($looked, @found) = broken_in($src, $file);
    $count += $looked;
    push @broken, @found;
}
cmp_ok($count, '>', 200, 'links and paths were found');
is_none('the documents point to nothing that is not there', @broken);
my @idle = grep { $made{$_} == 0 } sort keys %made;
is_none('every exception is needed', map { "$_: no document names it; remove the exception" } @idle);
done_testing();

__DATA__
# what is not in the source: where it comes from
conduits/mynet          the reader, of conduits/loop
include/mynet-conduit   ./bootstrap, of the reader's conduit
tests/conformance/bin   make check-conformance, in the build folder
tests/unit/bin          make check-build, in the build folder
