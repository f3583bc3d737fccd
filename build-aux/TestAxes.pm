# TestAxes.pm - the tables of test sets and what a set varies over: reads build-aux/testsets and
# build-aux/testaxes, selects combinations of axis values.
# SPDX-License-Identifier: BSD-3-Clause
#
# A combination gives each axis of a set one value, the build configuration included. A selection
# of them is named in the set's row: "pairs" holds every pair of values of two axes at least once,
# "twice" at least twice, in different company, "all" is the whole product. What is selected
# depends on nothing but the tables.

package TestAxes;

use strict;
use warnings;
use Exporter qw(import);
our @EXPORT_OK =
    qw(read_table read_axes read_sets product env_of label_of name_of when_rank runs_of);

my %rank = (quick => 0, full => 1, more => 2, long => 3);

# when_rank WHEN: quick, full, more and long in this order; undef for vm, which stands alone.
sub when_rank { return $rank{ $_[0] } }

# Rows of "a | b | c" with comments; a line that ends with a backslash goes on in the next. The
# last field may hold bars.
sub read_table
{
    my ($file, $fields) = @_;
    my @rows;
    open my $in, '<', $file or die "run-testsets: $file: $!\n";
    while (my $line = <$in>) {
        next if $line =~ /^\s*(#|$)/;
        chomp $line;
        while ($line =~ s/\\$//) {
            my $more = <$in> // '';
            chomp $more;
            $line .= $more =~ s/^\s+//r;
        }
        my @row = map { s/^\s+|\s+$//gr } split /\|/, $line, $fields;
        @row == $fields or die "run-testsets: $file line $.: $fields fields wanted\n";
        push @rows, \@row;
    }
    return @rows;
}

# "axis=value,value axis=value" as a hash of lists.
sub parse_conditions
{
    my ($text, $where) = @_;
    my %of;
    for my $word (split ' ', $text) {
        my ($axis, $values) = $word =~ /^(\w+)=(\S+)$/
            or die "run-testsets: $where: '$word' is no axis=value\n";
        $of{$axis} = [split /,/, $values];
    }
    return \%of;
}

# read_axes FILE, BUILDS: the axes as { values => { axis => [...] }, rules => [[conditions,
# words]...] }. A row of one axis and one value makes that value known; the values of "build" are
# the configurations.
sub read_axes
{
    my ($file, @builds) = @_;
    my $axes = { values => { build => [@builds] }, rules => [] };
    for my $row (read_table($file, 2)) {
        my $of = parse_conditions($row->[0], $file);
        my @names = keys %$of;
        if (@names == 1 && @{ $of->{ $names[0] } } == 1) {
            my $known = $axes->{values}{ $names[0] } //= [];
            my $value = $of->{ $names[0] }[0];
            push @$known, $value if !grep { $_ eq $value } @$known;
        }
        push @{ $axes->{rules} }, [$of, $row->[1]];
    }
    for my $rule (@{ $axes->{rules} }) {
        check_values($axes, $rule->[0], $file);
    }
    return $axes;
}

sub check_values
{
    my ($axes, $of, $where) = @_;
    for my $axis (keys %$of) {
        my $known = $axes->{values}{$axis} or die "run-testsets: $where: no axis '$axis'\n";
        for my $value (@{ $of->{$axis} }) {
            grep { $_ eq $value } @$known
                or die "run-testsets: $where: '$value' is no value of $axis; there are @$known\n";
        }
    }
    return;
}

# read_sets FILE, AXES: the rows of testsets, in order; each with what it varies over, build first,
# and with its selections by when.
sub read_sets
{
    my ($file, $axes) = @_;
    my @sets;
    for my $row (read_table($file, 7)) {
        my ($name, $varies, $when, $runs, $seconds, $limit, $command) = @$row;
        my (%over, @order, @builds);
        for my $word (split ' ', $varies) {
            if (grep { $_ eq $word } @{ $axes->{values}{build} }) {
                push @builds, $word;
                next;
            }
            my ($axis, $values) = split /=/, $word, 2;
            exists $axes->{values}{$axis}
                or die "run-testsets: $file: set $name: no axis or build '$axis'\n";
            $over{$axis} = defined $values ? [split /,/, $values] : $axes->{values}{$axis};
            push @order, $axis;
        }
        $over{build} = \@builds if @builds;
        check_values($axes, \%over, "$file: set $name");
        $runs =~ /^(cpu|waits|alone)$/
            or die "run-testsets: $file: set $name: '$runs' is not cpu, waits or alone\n";
        my %select = map { my ($at, $how) = split /:/; ($at => $how // 'all') } split ' ', $when;
        $over{build} //= $axes->{values}{build};
        my @axes = ('build', grep { $_ ne 'build' } @order);
        push @sets, { name => $name, over => \%over, axes => \@axes, select => \%select,
                      runs => $runs, seconds => $seconds, limit => $limit, command => $command };
    }
    return @sets;
}

# Do a combination's values meet the conditions? An axis that it does not vary over meets none.
sub meets
{
    my ($combination, $of) = @_;
    for my $axis (keys %$of) {
        my $value = $combination->{$axis};
        return 0 if !defined $value || !grep { $_ eq $value } @{ $of->{$axis} };
    }
    return 1;
}

# product AXES, SET, BUILDS: every combination of the set in these builds, without what testaxes
# rules out.
sub product
{
    my ($axes, $set, @builds) = @_;
    my @all = ({});
    for my $axis (@{ $set->{axes} }) {
        my @values = @{ $set->{over}{$axis} };
        if ($axis eq 'build') {
            my %in = map { $_ => 1 } @builds;
            @values = grep { $in{$_} } @values;
        }
        @all = map { my $one = $_; map { { %$one, $axis => $_ } } @values } @all;
    }
    my @never = map { $_->[0] } grep { $_->[1] eq 'never' } @{ $axes->{rules} };
    return grep { my $one = $_; !grep { meets($one, $_) } @never } @all;
}

# The pairs of values of two axes in a combination, as strings.
sub pairs_in
{
    my $combination = shift;
    my @words = map { "$_=$combination->{$_}" } sort keys %$combination;
    return $words[0] // 'nothing' if @words < 2;
    my @pairs;
    for my $i (0 .. $#words) {
        push @pairs, map { "$words[$i] $words[$_]" } $i + 1 .. $#words;
    }
    return @pairs;
}

# cover TIMES, HAVE, CANDIDATES: of the candidates those that, with HAVE, hold each pair of values
# TIMES times, or as often as there are combinations with it. Greedy: always the first of those
# that bring most.
sub cover
{
    my ($times, $have, @candidates) = @_;
    my %seen = map { label_of($_) => 1 } @$have;
    @candidates = grep { !$seen{ label_of($_) } } @candidates;
    my @pairs_of = map { [pairs_in($_)] } @candidates;
    my (%there, %missing);
    for my $pairs (@pairs_of, map { [pairs_in($_)] } @$have) { $there{$_}++ for @$pairs }
    for my $pair (keys %there) { $missing{$pair} = $there{$pair} < $times ? $there{$pair} : $times }
    for my $one (@$have) { $missing{$_}-- for pairs_in($one) }
    my @selected;
    while (1) {
        my ($best, $most) = (undef, 0);
        for my $i (0 .. $#candidates) {
            next if !defined $candidates[$i];
            my $brings = grep { $missing{$_} > 0 } @{ $pairs_of[$i] };
            ($best, $most) = ($i, $brings) if $brings > $most;
        }
        last if !defined $best;
        push @selected, $candidates[$best];
        $missing{$_}-- for @{ $pairs_of[$best] };
        undef $candidates[$best];
    }
    return @selected;
}

# runs_of AXES, SET, WHEN, BUILDS_AT: the combinations that run at WHEN: those of each earlier
# "when" too, which the later selections count as there. BUILDS_AT->(when) lists the configurations
# that are built at it. What a smaller run selects is part of every larger one: a selection sees
# the builds of its own "when", whole products those of WHEN.
sub runs_of
{
    my ($axes, $set, $when, $builds_at) = @_;
    my @have;
    for my $at (grep { exists $set->{select}{$_} } qw(quick full more long vm)) {
        next if $at eq 'vm' || $when eq 'vm' ? $at ne $when : when_rank($at) > when_rank($when);
        my $how = $set->{select}{$at};
        my @all = product($axes, $set, $builds_at->($how eq 'all' ? $when : $at));
        if ($how eq 'all') {
            my %seen = map { label_of($_) => 1 } @have;
            push @have, grep { !$seen{ label_of($_) } } @all;
        } elsif ($how =~ /^(pairs|twice)$/) {
            push @have, cover($how eq 'pairs' ? 1 : 2, \@have, @all);
        } else {
            die "run-testsets: set $set->{name}: '$how' is not all, pairs or twice\n";
        }
    }
    return @have;
}

# label_of COMBINATION: the same for equal combinations.
sub label_of
{
    my $of = shift;
    return join ' ', map { "$_=$of->{$_}" } sort keys %$of;
}

# name_of SET, COMBINATION: what users see: the set's name and the values that vary, but for the
# build's.
sub name_of
{
    my ($set, $of) = @_;
    my @shown = grep { $_ ne 'build' && @{ $set->{over}{$_} } > 1 } @{ $set->{axes} };
    return join ' ', $set->{name}, map { $_ eq 'ranks' ? "n=$of->{$_}" : $of->{$_} } @shown;
}

# env_of AXES, COMBINATION: the words of shell that set it up.
sub env_of
{
    my ($axes, $combination) = @_;
    my @words = grep { $_->[1] ne '' && $_->[1] ne 'never' } @{ $axes->{rules} };
    return join ' ', map { $_->[1] } grep { meets($combination, $_->[0]) } @words;
}

1;
