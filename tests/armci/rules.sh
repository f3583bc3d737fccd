# rules.sh - the rules that a debug build of libarmci checks, for run.sh and sanitizers.sh. To be read in.
# SPDX-License-Identifier: BSD-3-Clause
#
# Needs  ends WAY STATUS WORDS, which runs ends.c over $ends_on with 3 ranks, and leaves what it says in $work/run

# no_rank_in CALL...: the last run has said once for each call that the rank does not exist
no_rank_in()
{
    for call; do
        lines=$(grep -c "^ARMCI: rank 2: $call: there is no rank [0-9-]*; there are 0 to 2" "$work/run")
        [ "$lines" = 1 ] || return 1
    done
}

no_ranks()
{
    ends no-rank 3 'there is no rank' &&
        no_rank_in ARMCI_NbPut ARMCI_NbGetS ARMCI_NbAcc ARMCI_NbGetV ARMCI_NbAccV ARMCI_NbPutValueInt \
            ARMCI_PutS_flag_dir ARMCI_Rmw
}

handle_anew()
{
    check "a handle that is made anew, $ends_on" ends handle 1 \
        'rank 2: ARMCI_INIT_HANDLE: the handle at .* has operations under way'
}

# In every build these end the job.
wrong_ranks()
{
    check "a rank that does not exist, ARMCI_Lock, $ends_on" ends lock-rank 1 \
        'rank 2: ARMCI_Lock: there is no rank 3; there are 0 to 2'
    check "a rank that does not exist, ARMCI_Unlock, $ends_on" ends unlock-rank 1 \
        'rank 2: ARMCI_Unlock: there is no rank -1; there are 0 to 2'
    check "a rank that does not exist, armci_notify, $ends_on" ends notify-rank 1 \
        'rank 2: armci_notify: there is no rank 3; there are 0 to 2'
    check "a rank that does not exist, armci_notify_wait, $ends_on" ends wait-rank 1 \
        'rank 2: armci_notify_wait: there is no rank -1; there are 0 to 2'
}

broken_rules()
{
    check "an address outside, $ends_on" ends outside 1 \
        'rank 2: ARMCI_Put: \[.*, +4) is not inside one allocation of rank 0'
    check "a section that leaves its allocation, $ends_on" ends across 1 \
        'rank 2: ARMCI_GetS: \[.*, +72) is not inside one allocation of rank 0'
    check "a section of an aggregate handle, $ends_on" ends aggregate 1 \
        'rank 2: ARMCI_NbPutS: \[.*, +72) is not inside one allocation of rank 0'
    check "a list that leaves its allocation, $ends_on" ends list 1 \
        'rank 2: ARMCI_NbGetV: \[.*, +8) is not inside one allocation of rank 0'
    check "a value that leaves its allocation, $ends_on" ends put-value 1 \
        'rank 2: ARMCI_PutValueLong: \[.*, +8) is not inside one allocation of rank 0'
    check "memory that is not for others, $ends_on" ends freed 1 \
        'rank 2: ARMCI_Acc: \[.*, +4) is not inside one allocation of rank 2'
    check "an address outside of many allocations, $ends_on" ends many 1 \
        'rank 2: ARMCI_Put: \[.*, +4) is not inside one allocation of rank 2'
    check "a mutex that another holds, $ends_on" ends unlock 1 \
        'rank 2: ARMCI_Unlock: mutex 0 of rank 0 is not held by this rank'
    check "a rank that does not exist in a transfer, $ends_on" no_ranks
    handle_anew
}
