# House.pm - what the tests of this folder share: the files of the source folder, C code without its
# comments and strings, the point that nothing was found. SPDX-License-Identifier: BSD-3-Clause
package House;

use strict;
use warnings;
use Cwd qw(abs_path);
use Exporter qw(import);
use File::Basename qw(dirname);
use File::Find qw(find);
use Test::More;

our @EXPORT_OK = qw(source_folder files_of slurp code_of is_none);

# source_folder - AQ_SRC, or the folder above this one.
sub source_folder
{
    return abs_path($ENV{AQ_SRC} || dirname(__FILE__) . '/../..');
}

# files_of SRC PATTERN FOLDER... - paths below SRC of the files whose names match PATTERN. Leaves out
# what ./bootstrap and builds make: build folders, headers of conduits, conduits/list.h.
sub files_of
{
    my ($src, $pattern, @folders) = @_;
    my @files;
    for my $folder (grep { -d "$src/$_" } @folders) {
        find({ no_chdir => 1, wanted => sub {
            my $file = substr($_, length("$src/"));
            $file =~ s{^\./}{};
            if (-d $_) {
                $File::Find::prune = 1
                    if $file =~ m{^(build|\.git|autom4te\.cache|include/\w+-conduit)$|/bin$};
                return;
            }
            push @files, $file if $file =~ $pattern && $file !~ m{^conduits/list\.h$};
        } }, "$src/$folder");
    }
    return sort @files;
}

sub slurp
{
    my $file = shift;
    open my $in, '<', $file or die "$file: $!\n";
    local $/;
    return scalar <$in>;
}

# code_of TEXT - C text with comments, strings, characters and #include lines blanked; lines stay.
sub code_of
{
    my $text = shift;
    my $blank = sub { my $gone = shift; $gone =~ s/[^\n]/ /g; return $gone };
    $text =~ s{(/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|^[ \t]*\#[ \t]*include[^\n]*)}
              {$blank->($1)}gsme;
    return $text;
}

# is_none NAME, FOUND... - a point that is ok if nothing was found, and tells what was.
sub is_none
{
    my ($name, @found) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    diag($_) for @found;
    return is(scalar @found, 0, $name);
}

1;
