#!/usr/bin/perl
# trace-picture - draws part of a trace as SVG: a channel for each thread, calls as bars within their callers,
# messages as lines from sender to handler.
# SPDX-License-Identifier: BSD-3-Clause
#
#   trace-picture.pl [--from US] [--to US] [--width PX] [--title TEXT] TRACE >picture.svg
#
# For documents; to look around in a trace, open it in Perfetto. Times are microseconds since the job began.

use strict;
use warnings;
use Getopt::Long;
use JSON::PP ();

my ($from, $to, $width, $title) = (0, undef, 1100, '');
GetOptions('from=f' => \$from, 'to=f' => \$to, 'width=i' => \$width, 'title=s' => \$title) && @ARGV == 1
    or die "usage: trace-picture.pl [--from US] [--to US] [--width PX] [--title TEXT] TRACE >picture.svg\n";

my %colour = (put => '#2f6fb3', get => '#3fa0a0', atomic => '#8a5fb5', sync => '#d9a441', barrier => '#c4553b',
              collective => '#a8436f', message => '#4f9a4f', poll => '#9a9a9a', internal => '#c9c9c9',
              object => '#7a6a5a', lock => '#000000', always => '#000000');
my ($left, $top, $bar, $gap) = (90, 46, 15, 14);

my $json = JSON::PP->new->utf8;
my (%channels, %sent, @arrows, %seen);
open my $file, '<', $ARGV[0] or die "trace-picture: $ARGV[0]: $!\n";
while (my $line = <$file>) {
    next if $line !~ /"ph":"X"/;
    $line =~ s/,\s*\z//;
    my $event = eval { $json->decode($line) } or next;
    push @{ $channels{"$event->{pid}.$event->{tid}"} }, $event;
    $to = $event->{ts} + $event->{dur} if !defined $to || ($to eq 'auto' && $event->{ts} + $event->{dur} > $to);
}
close $file;
my $scale = ($width - $left - 20) / ($to - $from);

sub by_channel { my ($p, $t) = split /\./, $a; my ($q, $u) = split /\./, $b; return $p <=> $q || $t <=> $u }
sub x { my $t = shift; $t = $from if $t < $from; $t = $to if $t > $to; return $left + ($t - $from) * $scale }

# Depth in the stack of calls; bars that would be thinner than a hair are joined with their neighbours.
my (%bars, %depth, %y);
for my $channel (sort by_channel keys %channels) {
    my (@open, @last);
    for my $event (sort { $a->{ts} <=> $b->{ts} || $b->{dur} <=> $a->{dur} } @{ $channels{$channel} }) {
        my $end = $event->{ts} + $event->{dur};
        pop @open while @open && $open[-1] <= $event->{ts} + 0.0005;
        my $depth = @open;
        push @open, $end;
        $event->{depth} = $depth;
        next if $end < $from || $event->{ts} > $to;
        $depth{$channel} = $depth if !defined $depth{$channel} || $depth > $depth{$channel};
        $seen{ $event->{cat} } = 1;
        my ($x, $w) = (x($event->{ts}), x($end) - x($event->{ts}));
        $w = 0.4 if $w < 0.4;
        my $last = $last[$depth];
        if ($last && $last->{cat} eq $event->{cat} && $x - ($last->{x} + $last->{w}) < 0.3 && $last->{w} + $w < 40) {
            $last->{w} = $x + $w - $last->{x} if $x + $w > $last->{x} + $last->{w};
            $last->{n}++;
            $last->{name} .= ", $event->{name}" if index($last->{name}, $event->{name}) < 0;
            next;
        }
        $last[$depth] = { x => $x, w => $w, depth => $depth, cat => $event->{cat}, name => $event->{name},
                          us => $event->{dur}, n => 1 };
        push @{ $bars{$channel} }, $last[$depth];
    }
}
my $at = $top;
for my $channel (sort by_channel keys %bars) {
    $y{$channel} = $at;
    $at += $bar * (1 + $depth{$channel}) + $gap;
}
for my $channel (keys %channels) {
    for my $event (grep { defined $_->{bind_id} && defined $y{$channel} } @{ $channels{$channel} }) {
        my $end = $sent{ $event->{bind_id} } ||= {};
        $end->{ $event->{flow_out} ? 'out' : 'in' } = [$event->{ts}, $y{$channel} + $bar * ($event->{depth} + 0.5)];
    }
}

sub escape { my $t = shift; $t =~ s/&/&amp;/g; $t =~ s/</&lt;/g; return $t }

my $height = $at + 34;
print qq(<svg xmlns="http://www.w3.org/2000/svg" width="$width" height="$height" viewBox="0 0 $width $height" ),
    qq(font-family="sans-serif" font-size="11">\n<rect width="100%" height="100%" fill="#ffffff"/>\n);
print qq(<text x="$left" y="16" font-size="13">@{[escape($title)]}</text>\n);

# a scale of round numbers
my $step = 10 ** int(log(($to - $from) / 8) / log 10);
$step *= 2 while ($to - $from) / $step > 12;
for (my $t = int($from / $step + 0.999999) * $step; $t <= $to; $t += $step) {
    my $x = sprintf '%.1f', x($t);
    print qq(<line x1="$x" y1="$top" x2="$x" y2="@{[$at - $gap]}" stroke="#e4e4e4"/>\n),
        qq(<text x="$x" y="@{[$top - 8]}" text-anchor="middle" fill="#555">@{[$step >= 1000 ? $t / 1000 . ' ms' : "$t us"]}</text>\n);
}
for my $channel (sort by_channel keys %bars) {
    my ($rank, $thread) = split /\./, $channel;
    my $several = grep({ /^$rank\./ } keys %bars) > 1;
    print qq(<text x="8" y="@{[$y{$channel} + 12]}">rank $rank@{[$several ? ".$thread" : '']}</text>\n),
        qq(<line x1="$left" y1="@{[$y{$channel} + $bar * (1 + $depth{$channel})]}" x2="@{[$width - 20]}" ),
        qq(y2="@{[$y{$channel} + $bar * (1 + $depth{$channel})]}" stroke="#cccccc"/>\n);
    for (@{ $bars{$channel} }) {
        printf qq(<rect x="%.2f" y="%d" width="%.2f" height="%d" fill="%s"><title>%s, %s</title></rect>\n), $_->{x},
            $y{$channel} + $bar * $_->{depth}, $_->{w}, $bar - 1, $colour{ $_->{cat} } || '#888888', $_->{name},
            $_->{n} > 1 ? "$_->{n} calls" : "$_->{us} us";
        printf qq(<text x="%.1f" y="%d" fill="#ffffff" font-size="9">%s</text>\n), $_->{x} + 3,
            $y{$channel} + $bar * $_->{depth} + 10, $_->{name} if $_->{n} == 1 && $_->{w} > 6 * length($_->{name}) + 6;
    }
}
for (values %sent) {
    next if !$_->{out} || !$_->{in} || $_->{in}[0] < $from || $_->{out}[0] > $to;
    printf qq(<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#222222" stroke-width="0.7" opacity="0.6"/>\n),
        x($_->{out}[0]), $_->{out}[1], x($_->{in}[0]), $_->{in}[1];
}
my $x = $left;
for my $cat (sort keys %seen) {
    print qq(<rect x="$x" y="@{[$at + 4]}" width="11" height="11" fill="@{[$colour{$cat} || '#888888']}"/>),
        qq(<text x="@{[$x + 15]}" y="@{[$at + 14]}">$cat</text>\n);
    $x += 30 + 7 * length $cat;
}
print "</svg>\n";
