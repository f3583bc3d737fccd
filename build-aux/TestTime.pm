# TestTime.pm - what the runner of tests makes of time: how long steps take together, how slow a
# machine is, when a step hangs.
# SPDX-License-Identifier: BSD-3-Clause
#
# A step has "runs" (build, cpu, waits or alone), "seconds", which it is planned to take, and
# "limit", seconds after which it hangs; one that has finished also has "took".

package TestTime;

use strict;
use warnings;
use Exporter qw(import);
use List::Util qw(max min);
our @EXPORT_OK = qw(clock time_of slowness stretched is_overdue);

# The part of its time by which a set that computes makes the whole longer, beside builds.
use constant SHARE => 0.6;
# From so many planned seconds on, the steps that have finished tell how slow the machine is.
use constant ENOUGH => 60;
# A limit grows so many times where the machine is slow, not more.
use constant MOST_STRETCH => 6;
# A step that takes so many times what it should is late by itself.
use constant MARGIN => 5;

# clock SECONDS: as users read it.
sub clock
{
    my $s = int(shift() + 0.5);
    return $s < 100 ? "$s s" : sprintf '%d min %02d s', $s / 60, $s % 60;
}

# time_of CORES, STEP...: about how long it takes. Builds and sets that compute share the cores; the
# larger of them is seldom the only one.
sub time_of
{
    my $cores = shift;
    my %sum = (build => 0, cpu => 0, waits => 0, alone => 0);
    $sum{ $_->{runs} } += $_->{seconds} for @_;
    return $sum{alone} + max($sum{build} + $sum{cpu} * SHARE, $sum{waits} / $cores);
}

# slowness STEP...: how many times what is planned the steps took, all of which have finished: one
# under way would make its own limit grow. A build that found all built says nothing.
sub slowness
{
    my ($took, $planned) = (0, 0);
    for my $step (@_) {
        next if $step->{runs} eq 'build' && $step->{took} < $step->{seconds};
        $took += $step->{took};
        $planned += $step->{seconds};
    }
    return $planned < ENOUGH ? 1 : $took / $planned;
}

# stretched LIMIT, SLOWNESS: a limit ends what hangs, not what a slow machine needs longer for.
sub stretched
{
    my ($limit, $slowness) = @_;
    return int($limit * min(MOST_STRETCH, max(1, $slowness)));
}

# is_overdue STEP, SECONDS, SLOWNESS: true if a step that has run for so long hangs, and did not
# only begin late. A tenth of its limit it may take in any case.
sub is_overdue
{
    my ($step, $ran, $slowness) = @_;
    return $ran > MARGIN * max(1, $slowness) * $step->{seconds} && $ran > $step->{limit} / 10;
}

1;
