#!/usr/bin/perl
# test_mutation.pl - tests/mutation/run.pl, over a source of four files and a ./check that fails as
# told: what counts as found, the copy of the source, the time that a ./check may take. Prints TAP.
# SPDX-License-Identifier: BSD-3-Clause

use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Path qw(make_path);
use File::Temp qw(tempdir);
use Test::More;
my $src = abs_path(dirname($0) . '/../..');
plan skip_all => 'git is not installed' if system('command -v git >/dev/null 2>&1');

my $work = tempdir(CLEANUP => 1);
my ($source, $copy) = ("$work/source", "$work/copy");

sub spew
{
    my ($file, $text) = @_;
    make_path(dirname($file));
    open my $out, '>', $file or die "$file: $!";
    print $out $text;
    close $out;
}

sub slurp
{
    my $file = shift;
    open my $in, '<', $file or return '';
    local $/;
    return scalar <$in>;
}

# ./check writes down its arguments and what it finds in the code. "code" says which set fails, when
# that is asked for (expected) or when all is.
sub make_source
{
    spew("$source/check", <<'END');
#!/bin/sh
read -r code <code
echo "$code: $*" >>calls
[ -e configure ] || { echo made >>bootstraps; : >configure; }
verdict() { echo "failed: $1"; echo '0 passed, 1 failed, 0 skipped'; exit 1; }
case $code:$* in
*hangs*) exec sleep 30 ;;
text:*) verdict 'opt: build: exit status 2' ;;
early:*'expected run'*) verdict 'opt: expected run n=2: wrong' ;;
late:*other*|late:*expected*) ;;
late:*) verdict 'opt: other n=4: wrong' ;;
shaky:*expected*) ;;
shaky:*|*other\ shaky*) verdict 'opt: other shaky: wrong' ;;
unable:*) echo '0 passed, 0 failed, 3 skipped'; exit 1 ;;
slow:*expected*) ;;
slow:*) echo '3 sets skipped for want of time: --minutes 1' ;;
esac
echo '1 passed, 0 failed, 0 skipped'
END
    chmod 0755, "$source/check";
    spew("$source/code", "right\n");
    spew("$source/gone/old", "old\n");
    spew("$source/tests/mutation/mutants",
        join '', map { "$_ code: $_\n- right\n+ $_\n? opt expected run\n\n" }
            qw(early late shaky text slow none unable hangs));
    system("cd '$source' && git init -q && git add -A") == 0 or die;
}

sub run_mutants
{
    my @arguments = @_;
    local $ENV{AQ_SRC} = $source;
    unlink "$copy/calls";
    return `'$^X' '$src/tests/mutation/run.pl' --folder '$copy' @arguments 2>&1`;
}

make_source();
my $said = run_mutants(qw(early late shaky text slow none unable));
my @points = $said =~ /^((?:not )?ok \d - \w+: .*\n# .*)/mg;
is(scalar @points, 7, 'a point for each mutant') or diag($said);
like($points[0], qr/^ok .*early\n# found by opt expected run n=2$/, 'found as expected');
like($points[1], qr/^ok .*late\n# found by opt other n=4$/, 'found by another set');
like($points[2], qr/^not ok .*\n.*other shaky fails without the mutant, too/,
    'not if that fails in any case');
like($points[3], qr/^not ok .*\n# does not build: opt: exit/, 'not if it does not build');
like($points[4], qr/^not ok .*\n# cannot say: 3 sets skipped/, 'sets were skipped');
like($points[5], qr/^not ok .*\n# no set found it/, 'none found');
like($points[6], qr/^not ok .*\n# cannot say: 0 passed, 0 failed, 3 skipped/, 'none could');
my @calls = split /\n/, slurp("$copy/calls");
like($calls[0], qr/^right: .*--config opt expected run$/, 'what is expected runs unmutated first');
is(scalar(grep { !/--stop --minutes=60 --without=layers .*--without=format/ } @calls), 0,
    'no run is without bounds, or judges text');
is(slurp("$copy/code"), "right\n", 'the mutant is out in the end');

# The copy after an interrupted run, and after changes of the source.
my ($there, $at) = ("$copy/code", time - 1000);
utime $at, $at, $_ for "$source/code", "$copy/check", "$copy/tests/mutation/mutants";
spew($there, "none\n");
utime $at + 500, $at + 500, $there;
run_mutants('early');
is(slurp($there), "right\n", 'what an interrupted run left is put right');
cmp_ok((stat $there)[9], '>', $at + 500, 'and is newer than the objects that were made of it');
is((stat "$copy/check")[9], $at, 'what is the same keeps its time');
is(slurp("$copy/bootstraps"), "made\nmade\n", 'after a change ./configure is made again');
run_mutants('early');
is(slurp("$copy/bootstraps"), "made\nmade\n", 'and only then');
unlink "$source/gone/old";
run_mutants('early');
ok(!-e "$copy/gone/old", 'what the source has no more is deleted');
is(slurp("$copy/bootstraps"), "made\nmade\nmade\n", 'which is a change, too');

my $began = time;
$said = run_mutants('--minutes 0.02 hangs');
like($said, qr/^not ok 1 - hangs.*\n# cannot say: .\/check was ended/m, 'what hangs is ended');
cmp_ok(time - $began, '<', 20, 'in time');
is(slurp($there), "right\n", 'and the mutant is out');
local $ENV{AQ_SRC} = $source;
unlink "$copy/calls";
my $pid = open my $run, '-|', "exec '$^X' '$src/tests/mutation/run.pl' --folder '$copy' hangs 2>&1";
for (1 .. 200) {
    last if slurp("$copy/calls") =~ /^hangs/m;
    select undef, undef, undef, 0.05;
}
kill 'TERM', $pid;
close $run;
isnt($?, 0, 'a signal ends the run');
is(slurp($there), "right\n", 'and the mutant is out');
spew("$source/code", "early right\n");
spew("$source/check", slurp("$source/check") =~ s/early:/*early*:/r);
$said = run_mutants('early');
like($said, qr/^Bail out! without a mutant: failed: opt expected run n=2$/m,
    'where the expected run fails without a mutant');
unlike($said, qr/^(not )?ok/m, 'none is tried');
done_testing();
