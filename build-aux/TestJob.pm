# TestJob.pm - one command of a test run: started, watched, and ended with all that it started.
# SPDX-License-Identifier: BSD-3-Clause
#
# A job carries a mark in its environment, by which everything that it has started is found again,
# whatever it is called. What a job starts that runs tests itself carries both marks, one after the
# other. Past its limit of time or of output all of that is killed; what outlives its job is killed
# too, and told of.
# Several jobs can be under way at a time. Lines of standard output are kept and, with standard
# error, written to a log.

package TestJob;

use strict;
use warnings;
use Cwd qw(abs_path);
use POSIX qw(:sys_wait_h setsid);
use Time::HiRes qw(time sleep);

use constant OUTPUT_MB => 64;    # more than any job prints whose programs end

# start PROPERTY => VALUE...: command, dir, log (file), mark, limit (s), nice, env (hash).
sub start
{
    my ($class, %of) = @_;
    my %is = (buffer => '', bytes => 0, lines => [], tests => 0, began => time);
    my $self = bless { %of, %is }, $class;
    open $self->{out}, '>', $self->{log} or die "run-testsets: $self->{log}: $!\n";
    $self->{out}->autoflush(1);
    pipe $self->{reader}, my $writer or die "run-testsets: pipe: $!\n";
    $self->{reader}->blocking(0);
    $self->{pid} = fork // die "run-testsets: fork: $!\n";
    $self->become_command($writer) if $self->{pid} == 0;
    close $writer;
    return $self;
}

# In the child: never returns.
sub become_command
{
    my ($self, $writer) = @_;
    setsid();
    POSIX::nice($self->{nice}) if $self->{nice};
    $SIG{$_} = 'DEFAULT' for qw(INT TERM HUP PIPE);
    open STDIN, '<', '/dev/null';
    open STDOUT, '>&', $writer;
    open STDERR, '>&', $self->{out};
    chdir $self->{dir} or POSIX::_exit(127);
    my $marks = join ' ', grep { defined } $ENV{TESTSET_MARK}, $self->{mark};
    %ENV = (%ENV, %{ $self->{env} }, TESTSET_MARK => $marks, AQ_BUILD => abs_path('.'));
    $ENV{PATH} = "$ENV{AQ_BUILD}:$ENV{PATH}";
    { exec '/bin/sh', '-c', $self->{command} }
    POSIX::_exit(127);
}

# poll: takes in what is there; true once the job has ended, and has no process left or was given
# time to have none.
sub poll
{
    my $self = shift;
    $self->take_lines;
    $self->wait_for_it if !defined $self->{status};
    my $late = time - $self->{began} > $self->{limit} ? "took longer than $self->{limit} s"
        : $self->{bytes} > OUTPUT_MB << 20 ? 'printed more than ' . OUTPUT_MB . ' MB' : undef;
    if (defined $late && !$self->{ended}) {
        $self->{late} = $late;
        $self->kill_all;
        for (1 .. 20) {
            $self->wait_for_it;
            last if defined $self->{status};
            sleep 0.05;
        }
        $self->{status} //= 9;
    }
    return 0 if !defined $self->{status};
    return $self->end;
}

sub take_lines
{
    my $self = shift;
    my $before = $self->{bytes};
    while (my $got = sysread $self->{reader}, $self->{buffer}, 65536, length $self->{buffer}) {
        $self->{bytes} += $got;
        while ($self->{buffer} =~ s/\A([^\n]*)\n//) { $self->keep_line($1) }
        last if $self->{bytes} - $before > OUTPUT_MB << 20;
    }
    return;
}

sub keep_line
{
    my ($self, $line) = @_;
    print { $self->{out} } "$line\n";
    push @{ $self->{lines} }, $line;
    $self->{tests}++ if $line =~ /^(not )?ok\b/;
    return;
}

# The time of the processors that a child and all that it waited for have used is added up when it
# is waited for itself.
sub wait_for_it
{
    my $self = shift;
    my (undef, undef, $user, $system) = times;
    return if waitpid($self->{pid}, WNOHANG) != $self->{pid};
    $self->{status} = $?;
    my (undef, undef, $user_now, $system_now) = times;
    $self->{cpu} = $user_now + $system_now - $user - $system;
    $self->{took} = time - $self->{began};
    return;
}

# Remaining processes get 3 s to end.
sub end
{
    my $self = shift;
    my @left = $self->{late} ? () : $self->processes;
    $self->{grace} //= time + 3;
    return 0 if @left && time < $self->{grace};
    if ($self->{late}) {
        $self->{trouble} = "$self->{late} and was ended";
    } elsif (@left) {
        $self->{trouble} = sprintf 'left %d process(es) behind: %s', scalar @left, join ' ', @left;
    }
    $self->kill_all;
    $self->take_lines;
    $self->keep_line($self->{buffer}) if $self->{buffer} ne '';
    close $self->{reader};
    close $self->{out};
    $self->{took} //= time - $self->{began};
    $self->{cpu} //= 0;
    $self->{ended} = 1;
    return 1;
}

# processes: the numbers of those that carry the job's mark.
sub processes
{
    my $self = shift;
    my @found;
    for my $dir (glob '/proc/[0-9]*') {
        my ($pid) = $dir =~ /(\d+)$/;
        next if $pid == $$;
        open my $in, '<', "$dir/environ" or next;
        local $/;
        my $environ = <$in>;
        next if !defined $environ || $environ !~ /(?:^|\0)TESTSET_MARK=([^\0]*)/;
        next if !grep { $_ eq $self->{mark} } split ' ', $1;
        push @found, $pid;
    }
    return @found;
}

sub kill_all
{
    my $self = shift;
    for (1 .. 20) {
        my @pids = $self->processes or return;
        kill 'KILL', @pids;
        sleep 0.1;
    }
    return;
}

1;
