#!/usr/bin/perl
# gasnet_trace - sums up traces written by GASNET_TRACEFILE: which calls, from which lines, how many bytes,
# how long. Also joins the files of several ranks into one that a viewer opens.
# SPDX-License-Identifier: BSD-3-Clause
#
# An event is a line of the file; the brackets around all of them may be missing, and so may the end of the
# last line: files of jobs that were killed are read as well. docs/tracing.md describes the events.

use strict;
use warnings;
use Getopt::Long qw(:config no_ignore_case no_auto_abbrev);
use JSON::PP ();

# Groups that -report knows, and what is in them.
my %groups = (
    PUT     => sub { $_[0]{cat} eq 'put' },
    GET     => sub { $_[0]{cat} eq 'get' },
    BARRIER => sub { $_[0]{cat} eq 'barrier' },
    ATOMIC  => sub { $_[0]{cat} eq 'atomic' },
    SYNC    => sub { $_[0]{cat} eq 'sync' },
    COLL    => sub { $_[0]{cat} eq 'collective' },
    AM      => sub { $_[0]{cat} eq 'message' },
    ALL     => sub { 1 },
    # what programs in other languages once wrote; nothing records it here
    MEMORY        => undef,
    TI_ARRAY_COPY => undef,
);
my @report_order = qw(PUT GET BARRIER ATOMIC SYNC COLL AM ALL MEMORY TI_ARRAY_COPY);
my %sort_keys = (
    TOTAL => [ 1, sub { $_[0]{ns} } ],
    AVG   => [ 1, sub { $_[0]{ns} / $_[0]{calls} } ],
    MIN   => [ 1, sub { $_[0]{min} } ],
    MAX   => [ 1, sub { $_[0]{max} } ],
    CALLS => [ 1, sub { $_[0]{calls} } ],
    BYTES => [ 1, sub { $_[0]{bytes} } ],
    TYPE  => [ 0, sub { $_[0]{type} } ],
    SRC   => [ 0, sub { $_[0]{src} } ],
);
my %filters = map { $_ => 1 } qw(LOCAL GLOBAL WAIT WAITNOTIFY);

my %option = (report => 'PUT,GET,BARRIER', sort => 'TOTAL', filter => '', by_thread => 0, by_peer => 0,
              internal => 0, full => 0, debug => 0);

my $usage = <<"END";
usage: gasnet_trace [options] tracefile...

Sums up what GASNET_TRACEFILE recorded: calls by kind and by line of the program.

  -o FILE          write to FILE instead of standard output
  -report LIST     what to show: PUT, GET, BARRIER (these by default), ATOMIC, SYNC, COLL, AM, ALL
  -sort LIST       order of the lines: TOTAL, AVG, MIN, MAX (times), CALLS, BYTES, TYPE, SRC
  -filter LIST     what to leave out: LOCAL and GLOBAL transfers (with the rank itself, with others),
                   WAIT and WAITNOTIFY (time in a barrier, and between notify and wait)
  -t, -thread      each thread of each rank on a line of its own
  -p, -peer        each peer on a line of its own; -nopeer: all together, as by default
  -i, -internal    also the library's own messages, polling and sleep (with -report ALL)
  -f, -full        whole names of source files
  -merge FILE      join the files into FILE, which Perfetto opens as one timeline, and sum up nothing
  -d               tell what was read
  -h, -help        this text
END

sub fail
{
    print STDERR "gasnet_trace: $_[0]\n";
    exit 1;
}

sub words_of
{
    my ($text, $known, $what) = @_;
    my @words = map { uc } grep { $_ ne '' } split /[,\s]+/, $text;
    for my $word (@words) {
        fail("-$what $word: want one or more of " . join(', ', sort keys %$known) . ", with commas between")
            if !exists $known->{$word};
    }
    return @words;
}

# --- reading ---

# The usual line is taken apart by hand, which is many times faster than a JSON parser in Perl.
my $plain = qr/\A\{"name":"(\w+)","cat":"(\w+)","ph":"X","pid":(\d+),"tid":(\d+),"ts":([\d.]+),"dur":([\d.]+),(?:"bind_id":"\w+","flow_\w+":true,)?"args":\{"bytes":(\d+)(?:,"peer":(\d+))?([^\\]*)\}\},?\s*\z/;

sub event_of
{
    my ($line, $json) = @_;
    if ($line =~ $plain) {
        my %event = (name => $1, cat => $2, ph => 'X', pid => $3, tid => $4, ts => $5, dur => $6,
                     bytes => $7, peer => $8);
        my $rest = $9;
        ($event{line}, $event{file}) = ($1, $2) if $rest =~ /"line":(\d+),"file":"([^"]*)"/;
        return \%event;
    }
    $line =~ s/,\s*\z//;
    return {} if $line =~ /\A\s*[\[\]]?\s*\z/;
    my $found = eval { $json->decode($line) };
    return undef if ref $found ne 'HASH';
    my $args = ref $found->{args} eq 'HASH' ? $found->{args} : {};
    return { %$args, %$found };
}

# Calls handle(event, line) for each event of the files.
sub read_files
{
    my ($handle, @files) = @_;
    my $json = JSON::PP->new->utf8;
    for my $name (@files) {
        my ($events, $cut, $file) = (0, 0);
        if ($name eq '-') {
            $file = \*STDIN;
        } else {
            open $file, '<', $name or fail("cannot read $name: $!");
        }
        while (my $line = <$file>) {
            my $event = event_of($line, $json);
            if (!defined $event) {
                $cut++;
            } elsif (defined $event->{ph}) {
                $events++;
                $handle->($event, $line);
            }
        }
        close $file;
        print STDERR "$name: $events events, $cut lines that are none\n" if $option{debug};
        print STDERR "gasnet_trace: $name: $cut lines are not whole events and were left out\n"
            if $cut && !$option{debug};
        print STDERR "gasnet_trace: $name holds no events; is it a file that GASNET_TRACEFILE wrote?\n"
            if !$events;
    }
    return;
}

# --- summing up ---

my (%rows, %notified, %dropped);

sub add
{
    my ($group, $event, $type, $ns) = @_;
    my $file = defined $event->{file} ? $event->{file} : '';
    $file =~ s{.*/}{} if !$option{full};
    my $src = $file eq '' ? '-' : "$file:$event->{line}";
    my $who = $option{by_thread} ? "$event->{pid}.$event->{tid}" : '';
    my $peer = $option{by_peer} ? (defined $event->{peer} ? $event->{peer} : '-') : '';
    my $row = $rows{$group}{join "\0", $type, $src, $who, $peer} ||=
        { type => $type, src => $src, who => $who, peer => $peer, calls => 0, bytes => 0, ns => 0 };
    my $bytes = $event->{bytes} || 0;
    $row->{min} = $ns if !$row->{calls} || $ns < $row->{min};
    $row->{max} = $ns if !$row->{calls} || $ns > $row->{max};
    $row->{least} = $bytes if !$row->{calls} || $bytes < $row->{least};
    $row->{most} = $bytes if !$row->{calls} || $bytes > $row->{most};
    $row->{calls}++;
    $row->{bytes} += $bytes;
    $row->{ns} += $ns;
    return;
}

sub barrier_type
{
    my ($event) = @_;
    my $thread = "$event->{pid}.$event->{tid}";
    # what lies between a notify and its wait is the program's own time
    if ($event->{name} eq 'BARRIER_NOTIFY') {
        $notified{$thread} = $event->{ts} + $event->{dur};
    } elsif (defined $notified{$thread} && $event->{name} =~ /\ABARRIER_(?:WAIT|TRY)\z/) {
        my $between = $event->{ts} - delete $notified{$thread};
        add('BARRIER', $event, 'WAITNOTIFY', $between * 1000)
            if $between >= 0 && !$dropped{WAITNOTIFY};
    }
    return $event->{name};
}

sub take
{
    my ($event, @report) = @_;
    return if $event->{ph} ne 'X' || (!$option{internal} && $event->{cat} =~ /\A(?:internal|poll)\z/);
    my $type = $event->{name};
    if ($event->{cat} =~ /\A(?:put|get|atomic)\z/) {
        my $where = defined $event->{peer} && $event->{peer} == $event->{pid} ? 'LOCAL' : 'GLOBAL';
        return if $dropped{$where};
        $type .= " $where";
    }
    for my $group (@report) {
        next if !$groups{$group} || !$groups{$group}->($event);
        my $shown = $group eq 'BARRIER' ? barrier_type($event) : $type;
        next if $dropped{WAIT} && $shown eq 'BARRIER_WAIT';
        add($group, $event, $shown, $event->{dur} * 1000);
    }
    return;
}

# --- showing ---

sub by_keys
{
    my ($x, $y, @keys) = @_;
    for my $key (@keys) {
        my ($is_number, $value) = @{ $sort_keys{$key} };
        my $order = $is_number ? $value->($y) <=> $value->($x) : $value->($x) cmp $value->($y);
        return $order if $order;
    }
    return $x->{type} cmp $y->{type} || $x->{src} cmp $y->{src} || $x->{who} cmp $y->{who}
        || $x->{peer} cmp $y->{peer};
}

sub us { return sprintf '%.3f', $_[0] / 1000 }

sub show
{
    my ($out, $group, @keys) = @_;
    my @lines = sort { by_keys($a, $b, @keys) } values %{ $rows{$group} || {} };
    print $out "$group\n";
    if (!@lines) {
        print $out "  nothing recorded\n\n";
        return;
    }
    my @head = ('SRC', 'TYPE', ($option{by_thread} ? 'THREAD' : ()), ($option{by_peer} ? 'PEER' : ()),
                'CALLS', 'AVG us', 'MIN us', 'MAX us', 'TOTAL us', 'AVG B', 'MIN B', 'MAX B', 'TOTAL B');
    my @table = map {
        [ $_->{src}, $_->{type}, ($option{by_thread} ? $_->{who} : ()), ($option{by_peer} ? $_->{peer} : ()),
          $_->{calls}, us($_->{ns} / $_->{calls}), us($_->{min}), us($_->{max}), us($_->{ns}),
          int($_->{bytes} / $_->{calls}), $_->{least}, $_->{most}, $_->{bytes} ]
    } @lines;
    my @width = map { length } @head;
    for my $row (@table) {
        for my $i (0 .. $#head) {
            $width[$i] = length $row->[$i] if length $row->[$i] > $width[$i];
        }
    }
    for my $row (\@head, @table) {
        my $text = join '  ', map { $_ < 2 ? sprintf('%-*s', $width[$_], $row->[$_])
                                           : sprintf('%*s', $width[$_], $row->[$_]) } 0 .. $#head;
        print $out "  $text\n";
    }
    print $out "\n";
    return;
}

# One array of all whole events. Ends like any trace: the last line says that it is complete.
sub merge
{
    my ($name, @files) = @_;
    open my $out, '>', $name or fail("cannot write $name: $!");
    print $out "[\n";
    read_files(sub {
        my ($event, $line) = @_;
        return if $event->{name} eq 'gasnet_trace_complete';
        $line =~ s/,?\s*\z//;
        print $out "$line,\n";
    }, @files);
    print $out qq({"name":"gasnet_trace_complete","cat":"__metadata","ph":"M","pid":0,"tid":0,"args":{}}\n]\n);
    close $out or fail("cannot write $name: $!");
    return;
}

my ($output, $merged, $help);
GetOptions('o=s' => \$output, 'report=s' => \$option{report}, 'sort=s' => \$option{sort},
           'filter=s' => \$option{filter}, 't|thread!' => \$option{by_thread},
           'p|peer' => sub { $option{by_peer} = 1 }, 'nopeer' => sub { $option{by_peer} = 0 },
           'i|internal!' => \$option{internal}, 'f|full!' => \$option{full}, 'd|debug' => \$option{debug},
           'merge=s' => \$merged, 'h|help|?' => \$help)
    or do { print STDERR $usage; exit 2 };
if ($help) {
    print $usage;
    exit 0;
}
if (!@ARGV) {
    print STDERR $usage;
    exit 2;
}
if (defined $merged) {
    merge($merged, @ARGV);
    exit 0;
}
my %wanted = map { $_ => 1 } words_of($option{report}, \%groups, 'report');
my @report = grep { $wanted{$_} } @report_order;
my @keys = words_of($option{sort}, \%sort_keys, 'sort');
%dropped = map { $_ => 1 } words_of($option{filter}, \%filters, 'filter');

read_files(sub { take($_[0], @report) }, @ARGV);
my $out = \*STDOUT;
if (defined $output) {
    open $out, '>', $output or fail("cannot write $output: $!");
}
show($out, $_, @keys) for @report;
close $out or fail("cannot write: $!");
