# TestIdle.pm - whether cores have nothing to do, so that one more test set may run beside others.
# SPDX-License-Identifier: BSD-3-Clause
#
# Linux counts the time of each core in /proc/stat. Only cores that this process may use count.

package TestIdle;

use strict;
use warnings;
use Exporter qw(import);
use List::Util qw(sum);
use Time::HiRes qw(time);
our @EXPORT_OK = qw(idle_cores allowed_cores has_idle_core);

use constant SECONDS => 3;    # for which cores are watched
use constant ENOUGH => 0.5;   # idle cores

# idle_cores BEFORE, NOW, CORE...: how many of these cores, by their numbers, had nothing to do
# between two readings of /proc/stat; 0 if they do not tell.
sub idle_cores
{
    my ($before, $now, @cores) = @_;
    my $idle = 0;
    for my $core (@cores) {
        my ($old, $new) = map { [/^cpu$core +([\d ]+)/m ? split(' ', $1) : ()] } $before, $now;
        return 0 if @$old < 8 || @$new < 8;
        my @spent = map { $new->[$_] - $old->[$_] } 0 .. 7;
        my $all = sum(@spent) or return 0;
        $idle += ($spent[3] + $spent[4]) / $all;    # idle, and idle for a disk
    }
    return $idle;
}

# allowed_cores STATUS: the numbers of the cores that /proc/PID/status allows a process.
sub allowed_cores
{
    my ($list) = shift =~ /^Cpus_allowed_list:\s*([\d,-]+)/m or return;
    return map { /(\d+)-(\d+)/ ? $1 .. $2 : $_ } split /,/, $list;
}

sub read_file
{
    open my $file, '<', shift or return '';
    local $/;
    return <$file> // '';
}

my ($since, $stat, @cores);

# watch_cores: what cores do counts from now on.
sub watch_cores
{
    @cores = allowed_cores(read_file('/proc/self/status')) if !@cores;
    ($since, $stat) = (time, read_file('/proc/stat'));
}

# has_idle_core: true if cores were watched for long enough and half of one had nothing to do. Cores
# are watched anew then, from the first call, and where nobody has asked for long.
sub has_idle_core
{
    my $watched = defined $since ? time - $since : 2 * SECONDS + 1;
    return 0 if $watched < SECONDS;
    my $before = $stat;
    watch_cores();
    return $watched <= 2 * SECONDS && idle_cores($before, $stat, @cores) >= ENOUGH;
}

1;
