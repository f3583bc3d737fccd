#!/bin/sh
# misuse.sh - bad input and broken rules: each ends the job with one message that says what was wrong,
# a failing status, in good time, and leaves no process behind. Prints TAP.
# SPDX-License-Identifier: BSD-3-Clause
#
#   misuse.sh [--seq|--par] [--filter RE]      in a build folder; AQ_SRC is the source folder
#
# The first part needs a debug build (--enable-debug) and is left out elsewhere; the second, what can go wrong
# at start and with limits, runs in every build.

set -u
src=${AQ_SRC:-$(cd "$(dirname "$0")/../.." && pwd)}
. build-aux/config.env
modes='seq par' filter=.
while [ $# -gt 0 ]; do
    case $1 in
    --seq) modes=seq ;;
    --par) modes=par ;;
    --filter) filter=$2; shift ;;
    *) echo "misuse.sh: unknown option $1" >&2; exit 2 ;;
    esac
    shift
done
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
tag=misuse-tag-$$
tag_re="misuse-ta[g]-$$" # matches the tag, and not the command line that looks for it
count=0 failed=0
message='^\*\*\* (FATAL )?ERROR|^gasnetrun: '
ulimit -c 0

result() { # "" or reason, name
    count=$((count + 1))
    if [ -z "$1" ]; then
        echo "ok $count - $2"
    else
        echo "not ok $count - $2"
        echo "# $1"
        head -n 8 "$work/err" | cut -c1-300 | sed 's/^/#   stderr: /'
        head -n 3 "$work/out" | sed 's/^/#   stdout: /'
        failed=$((failed + 1))
    fi
}

skip() { # name, reason
    count=$((count + 1))
    echo "ok $count - $1 # SKIP $2"
}

left_behind() { # are there processes of ours, after a grace of two seconds?
    for wait in 1 2 3 4 5 6 7 8 9 10; do
        grep -lsa -- "$tag_re" /proc/[0-9]*/cmdline >/dev/null || return 1
        sleep 0.2
    done
    return 0
}

# attempt COMMAND... runs it for at most 25 s; sets rc.
attempt() {
    timeout -k 2 25 "$@" </dev/null >"$work/out" 2>"$work/err"
    rc=$?
}

# dies NAME HIGHEST RE... : the attempt failed, with between one and HIGHEST fatal messages that match every RE.
dies() {
    name=$1 most=$2
    shift 2
    why=
    messages=$(grep -Ec "$message" "$work/err")
    [ "$rc" -ne 0 ] || why="ended with status 0"
    [ "$rc" -ne 124 ] && [ "$rc" -ne 137 ] || why="hung and was killed"
    # a fatal error of a rank ends the job as abort() does
    ! grep -q '^\*\*\* FATAL ERROR (proc' "$work/err" || [ "$rc" -eq 134 ] || why="${why:+$why; }ended with status $rc, not 134"
    [ "$messages" -ge 1 ] || why="${why:+$why; }no message"
    [ "$messages" -le "$most" ] || why="${why:+$why; }$messages messages instead of $most"
    for re; do
        grep -E "$message" "$work/err" | grep -Eq -- "$re" || why="${why:+$why; }message does not say: $re"
    done
    left_behind && why="${why:+$why; }left processes behind"
    result "$why" "$name"
}

ranks() { # N program args: started as users do without a launcher
    n=$1
    shift
    GASNET_PSHM_NODES=$n
    export GASNET_PSHM_NODES
    attempt "$@" "$tag"
    unset GASNET_PSHM_NODES
}

wanted() { echo "$1" | grep -Eq -- "$filter"; }

program=
breaks() { # case, ranks, RE...
    wanted "$1" || return 0
    c=$1 n=$2
    shift 2
    ranks "$n" "$program" "$c"
    dies "$mode -n $n: $c" 1 'FATAL ERROR \((proc|rank|[0-9])[^)]*\)' "$@"
}

returns() { # case, ranks, code: no rule is broken, but the call says so
    wanted "$1" || return 0
    ranks "$2" "$program" "$1"
    why=
    grep -Eq "returned $3" "$work/out" || why="does not return $3"
    left_behind && why="${why:+$why; }left processes behind"
    result "$why" "$mode -n $2: $1 returns $3"
}

rules() {
    # a wrong message may be noticed at either end
    breaks handler_unknown 2 250 'regist'
    breaks handler_low 2 'handler 7|index 7' 'regist|128'
    breaks handler_args 2 'h_plain|200' '3 arguments' '\b0\b'
    breaks handler_kind 2 'h_payload|201' '[Ss]hort'
    breaks handler_direction 2 '204' '[Rr]equest'
    breaks am_rank 2 gex_AM_RequestShort 'rank 8'
    breaks am_pair_rank 2 gex_AM_RequestShort 'rank 8'
    breaks am_team 1 gex_AM_RequestShort GEX_TM_INVALID
    breaks am_args_query 1 gex_AM_MaxRequestMedium 17 16
    breaks medium_oversize 2 gex_AM_RequestMedium 'the most is [0-9]+'
    breaks long_outside 2 gex_AM_RequestLong segment 0x
    breaks long_across 2 gex_AM_RequestLong segment 0x
    breaks long_null 2 gex_AM_RequestLong segment
    breaks lc_null 2 gex_AM_RequestMedium NULL
    breaks lc_defer 2 gex_AM_RequestMedium GEX_EVENT_DEFER
    breaks reply_group 2 gex_AM_ReplyMedium GEX_EVENT_GROUP
    breaks reply_twice 2 gex_AM_ReplyShort 'already replied|one reply'
    breaks reply_twice 1 gex_AM_ReplyShort 'already replied|one reply'
    breaks reply_from_reply 2 gex_AM_ReplyShort 'reply handler'
    breaks reply_outside 1 gex_AM_ReplyShort handler
    breaks request_in_handler 2 gex_AM_RequestShort handler
    breaks request_in_handler 1 gex_AM_RequestShort handler
    breaks poll_in_handler 2 gasnet_AMPoll handler
    breaks wait_in_handler 2 gex_Event_Wait handler
    breaks bound_in_handler 2 gex_EP_QueryBoundSegmentNB handler
    breaks pair_limit 1 gex_AM_MaxRequestMedium 'endpoint'
    breaks pair_limit_any 1 gex_AM_MaxRequestLong 'endpoint'
    breaks pair_size 1 gex_TM_QuerySize TM-pair
    breaks pair_rank 1 gex_TM_QueryRank TM-pair
    breaks pair_client 1 gex_TM_QueryClient TM-pair
    breaks pair_cdata 1 gex_TM_SetCData TM-pair
    breaks put_flags 1 gex_RMA_PutBlocking '0x40000000'
    breaks lock_not_released 2 'HSL' handler
    breaks am_in_hsl 2 gex_AM_RequestShort HSL
    breaks poll_in_hsl 1 gasnet_AMPoll HSL
    breaks hsl_twice 1 gex_HSL_Lock recursive
    breaks hsl_not_own 1 gex_HSL_Unlock hold
    breaks hsl_destroy_locked 1 gex_HSL_Destroy held
    breaks hsl_destroy_twice 1 gex_HSL_Destroy 'has been destroyed'
    breaks hsl_lock_destroyed 1 gex_HSL_Lock 'has been destroyed'
    returns ok_hsl_init 1 GASNET_OK
    breaks hsl_init_twice 1 gex_HSL_Init 'initialised already' gex_HSL_Destroy
    breaks hsl_init_static 1 gex_HSL_Init 'static initialiser'
    breaks hsl_init_locked 1 gex_HSL_Init 'is held'
    breaks hsl_init_static_locked 1 gex_HSL_Init 'is held'
    breaks hsl_try_twice 1 gex_HSL_Trylock recursive
    breaks hsl_order 1 gex_HSL_Unlock 'reverse order' 0x
    breaks reply_saved 2 gex_AM_ReplyShort 'own handler' 'rank 0'
    breaks reply_saved 1 gex_AM_ReplyShort 'own handler' 'rank 0'
    breaks info_saved 1 gex_Token_Info 'own handler'
    breaks info_outside 1 gex_Token_Info 'outside a handler'
    breaks put_null 2 gex_RMA_PutBlocking 'source is NULL' '8 bytes'
    breaks put_nbi_null 1 gex_RMA_PutNBI 'source is NULL'
    breaks get_null 2 gex_RMA_GetNB 'destination is NULL'
    breaks medium_null 2 gex_AM_RequestMedium 'source is NULL' '8 bytes'
    breaks long_null_source 2 gex_AM_RequestLong 'source is NULL'
    breaks team_null 1 gex_TM_QuerySize GEX_TM_INVALID
    breaks client_null 1 gex_Client_QueryName 'client is NULL'
    breaks ep_null 1 gex_EP_QueryIndex 'endpoint is NULL'
    breaks segment_null 1 gex_Segment_QueryAddr 'segment is NULL'
    breaks event_stale 2 gex_Event_Wait stale
    breaks event_no_op 1 gex_Event_Wait GEX_EVENT_NO_OP
    breaks event_garbage 1 gex_Event_Wait 'not an event|stale'
    breaks leaf_category 2 gex_Event_QueryLeaf categor
    breaks region_nested 1 gex_NBI_BeginAccessRegion region
    breaks region_end 1 gex_NBI_EndAccessRegion region
    breaks region_wait 1 gex_NBI_Wait region
    breaks put_outside 2 gex_RMA_PutBlocking segment 'rank 1' 0x
    breaks put_below 2 gex_RMA_PutBlocking segment 0x
    breaks put_own_address 2 gex_RMA_PutBlocking segment 0x
    breaks get_across 2 gex_RMA_GetBlocking segment 0x
    breaks put_nbi_outside 2 gex_RMA_PutNBI segment 0x
    breaks get_nb_outside 2 gex_RMA_GetNB segment 0x
    breaks val_outside 2 gex_RMA_GetBlockingVal segment 0x
    breaks val_nine 1 gex_RMA_PutBlockingVal 9
    breaks val_zero 1 gex_RMA_PutBlockingVal '\b0\b'
    breaks put_rank 2 gex_RMA_PutBlocking 'rank 8'
    breaks put_lc_null 2 gex_RMA_PutNB NULL
    breaks put_lc_group 2 gex_RMA_PutNB GEX_EVENT_GROUP
    breaks put_in_hsl 2 gex_RMA_PutBlocking HSL
    breaks never_self 1 gex_RMA_PutBlocking GEX_FLAG_PEER_NEVER_SELF
    breaks attach_twice 1 gex_Segment_Attach 'second|again|already'
    breaks translate_rank 2 gex_TM_TranslateRankToJobrank 'rank 8'
    breaks pair_query 1 gex_TM_TranslateRankToJobrank
    breaks pair_index 1 gex_TM_Pair 4000
    breaks notify_twice 2 gasnet_barrier_notify again
    breaks wait_without_notify 2 gasnet_barrier_wait notify
    breaks try_without_notify 1 gasnet_barrier_try notify
}

team_rules() {
    breaks tm_destroyed 1 gex_TM_TranslateRankToJobrank destroyed
    breaks tm_destroy_twice 1 gex_TM_Destroy destroyed
    breaks tm_destroy_first 2 gex_TM_Destroy primordial
    breaks tm_destroy_flags 1 gex_TM_Destroy 0x40000000
    breaks split_pair 1 gex_TM_Split TM-pair
    breaks split_no_size 1 gex_TM_Split 'size is 0'
    breaks split_outside 1 gex_TM_Split segment 0x
    breaks split_flags 2 gex_TM_Split flags 0x8
    breaks split_in_hsl 1 gex_TM_Split HSL
    breaks create_rank 2 gex_TM_Create 'rank 8'
    breaks create_index 1 gex_TM_Create 'endpoint 3' primordial
    breaks create_twice 2 gex_TM_Create 'jobrank 0 twice'
    breaks create_layout 1 gex_TM_Create none SCRATCH
    breaks create_layouts 1 gex_TM_Create several SCRATCH
    breaks create_number 1 gex_TM_Create 'num_new is 2'
    breaks create_addrs 1 gex_TM_Create scratch_addrs NULL
}

endpoint_rules() {
    breaks pair_am 1 gex_AM_RequestShort 'endpoint 0 here and 1 there'
    breaks pair_am_from 1 gex_AM_RequestShort 'endpoint 1 here and 0 there'
    breaks ep_unpublished 2 gex_RMA_PutBlocking 'endpoint 1 of rank 1' gex_EP_PublishBoundSegment
    breaks ep_outside 1 gex_RMA_PutBlocking 'endpoint 1 of rank 0' 0x
    breaks publish_twice 2 gex_EP_PublishBoundSegment 'endpoint 1' twice
    breaks publish_pair 1 gex_EP_PublishBoundSegment TM-pair
    breaks seg_destroy_attached 1 gex_Segment_Destroy gex_Segment_Attach
    breaks seg_destroy_twice 1 gex_Segment_Destroy 'already'
    breaks mk_host 1 gex_MK_Destroy GEX_MK_HOST
}

# Between Prepare, Commit and Cancel.
negotiated_rules() {
    breaks np_none 2 gex_AM_CommitRequestMedium GEX_AM_SRCDESC_NO_OP
    breaks np_size 2 gex_AM_CommitRequestMedium 101 100
    breaks np_args 2 gex_AM_CommitRequestMedium '2 arguments' numargs
    breaks np_kind 2 gex_AM_CommitRequestLong gex_AM_PrepareRequestMedium
    breaks np_direction 2 gex_AM_CommitReplyMedium gex_AM_PrepareRequestMedium
    breaks np_index 2 gex_AM_CommitRequestMedium1 'index 7' 128
    breaks np_flags 2 gex_AM_CommitRequestMedium 0x800 GEX_FLAG_IMMEDIATE
    breaks np_nested 2 gex_AM_PrepareRequestMedium between
    breaks np_send 2 gex_AM_RequestShort between
    breaks np_poll 1 gasnet_AMPoll between
    breaks np_put 2 gex_RMA_PutBlocking between
    breaks np_lock 2 gex_AM_CommitRequestMedium HSL
    breaks np_min 2 gex_AM_PrepareRequestMedium 1048576 LEAST_ALLOC
    breaks np_min_max 2 gex_AM_PrepareRequestMedium '9 bytes' 'most_payload of 8'
    breaks np_nargs 2 gex_AM_PrepareRequestMedium '17 arguments'
    breaks np_rank 2 gex_AM_PrepareRequestMedium 'rank 8'
    breaks np_lc_ours 2 gex_AM_PrepareRequestMedium lc_opt NULL
    breaks np_lc_null 2 gex_AM_PrepareRequestMedium lc_opt NULL
    breaks np_lc_defer 2 gex_AM_PrepareRequestMedium GEX_EVENT_DEFER
    breaks np_cancel_flags 2 gex_AM_CancelRequestMedium flags
    breaks np_cancel_kind 2 gex_AM_CancelRequestLong gex_AM_PrepareRequestMedium
    breaks np_query 1 gex_AM_SrcDescSize 'not a descriptor'
    breaks np_twice 2 gex_AM_CommitRequestMedium already
    breaks np_addr 2 gex_AM_SrcDescAddr already
    breaks np_dest_moved 2 gex_AM_CommitRequestLong destination 0x
    breaks np_dest_outside 2 gex_AM_CommitRequestLong segment 0x
    breaks np_keep 2 handler between
    breaks np_keep 1 handler between
    breaks np_reply 2 gex_AM_ReplyShort between
    breaks np_group 2 gex_AM_PrepareReplyLong GEX_EVENT_GROUP
    breaks np_reply_outside 1 gex_AM_PrepareReplyMedium handler
    if wanted ok_np_unwritten; then
        ranks 2 "$program" ok_np_unwritten
        why=
        [ $rc -eq 0 ] || why="ended with status $rc"
        grep -q 'WARNING.*gex_AM_CommitRequestMedium.*GASNET_SD_INIT' "$work/err" || why="${why:+$why; }no warning"
        result "$why" "$mode: a buffer that was not written is warned about"
    fi
}

# The GASNet-1 interface: messages name its calls. The program is another one meanwhile.
gasnet1_rules() {
    program=$(pwd)/tests/misuse/misuse-g1-$mode
    breaks any_count 1 gasnet_AMRequestShort 'numargs is 3' '2 arguments'
    breaks any_nobody 2 250 gasnet_attach
    if [ "$AQ_DEBUG_NAME" = GASNET_DEBUG ]; then
        breaks early_put 2 gasnet_put 'before gasnet_attach'
        breaks early_am 1 gasnet_AMRequestShort0 'before gasnet_attach'
        breaks early_query 1 gasnet_QueryGexObjects 'before gasnet_attach'
        breaks ex_put 2 gasnet_put GEX_FLAG_USES_GASNET1
        breaks ex_am 2 gasnet_AMRequestMedium0 GEX_FLAG_USES_GASNET1
        breaks ex_vis 2 gasnet_puts_bulk GEX_FLAG_USES_GASNET1
        breaks put_node 2 gasnet_put_nb_bulk 'rank 8'
        breaks am_node 2 gasnet_AMRequestShort0 'node 8'
        breaks put_outside 2 gasnet_put_bulk segment 0x
        breaks get_outside 2 gasnet_get_nbi segment 0x
        breaks memset_outside 2 gasnet_memset_nbi segment 0x
        breaks val_outside 2 gasnet_put_val segment 0x
        breaks val_nine 1 gasnet_get_nb_val 9
        breaks valget_twice 2 gasnet_wait_syncnb_valget once
        breaks medium_oversize 2 gasnet_AMRequestMedium0 'the most is [0-9]+'
        breaks long_outside 2 gasnet_AMRequestLongAsync0 segment 0x
        breaks reply_outside 1 gasnet_AMReplyShort0 handler
        breaks put_in_handler 2 gasnet_put handler
        breaks put_in_handler 8 gasnet_put handler # rank 1 may be in gasnet_attach still
        breaks am_in_lock 1 gasnet_AMRequestShort0 HSL
        breaks region_wait 1 gex_NBI_Wait region
    fi
    program=$(pwd)/tests/misuse/misuse-$mode
}

# Remote atomics: domains and operations on them.
ad_rules() {
    program=$(pwd)/tests/misuse/misuse-ad-$mode
    breaks create_pair 1 gex_AD_Create TM-pair
    breaks create_team 1 gex_AD_Create GEX_TM_INVALID
    breaks create_type 1 gex_AD_Create 'dt is 0x40'
    breaks create_two_types 1 gex_AD_Create 'dt is 0xc'
    breaks create_empty 1 gex_AD_Create 'ops is 0'
    breaks create_bits 1 gex_AD_Create 0x20000 'this type'
    breaks create_user 1 gex_AD_Create 0x40000000
    breaks create_flags 1 gex_AD_Create GEX_FLAG_AD_FAVOR
    breaks create_in_lock 1 gex_AD_Create HSL
    breaks destroyed 2 gex_AD_OpNBI_U64 destroyed
    breaks destroy_twice 1 gex_AD_Destroy destroyed
    breaks destroy_invalid 1 gex_AD_Destroy GEX_AD_INVALID
    breaks op_type 2 gex_AD_OpNBI_I64 'type is .* 0x8' 0x4
    breaks op_code 2 gex_AD_OpNBI_U64 'opcode 0x20' 'not among'
    breaks op_set 2 gex_AD_OpNBI_U64 'not one operation'
    breaks op_none 1 gex_AD_OpNBI_U64 'not one operation'
    breaks op_rank 2 gex_AD_OpNBI_U64 'rank 8'
    breaks op_jobrank 2 gex_AD_OpNBI_U64 'jobrank 1 .*not a member'
    breaks op_outside 2 gex_AD_OpNBI_U64 segment 'rank 1' 0x
    breaks op_below 2 gex_AD_OpNBI_U64 segment 'rank 1' 0x
    breaks op_across 1 gex_AD_OpNBI_U64 aligned
    breaks op_unaligned 2 gex_AD_OpNBI_U64 'aligned to 8'
    breaks op_result 2 gex_AD_OpNB_U64 'result_p is NULL'
    breaks op_result_is_target 1 gex_AD_OpNBI_U64 'target itself'
    breaks op_my_rank 2 gex_AD_OpNBI_U64 GEX_FLAG_AD_MY_RANK 'rank 1'
    breaks op_both_places 1 gex_AD_OpNBI_U64 GEX_FLAG_AD_MY_NBRHD
    breaks op_offset 1 gex_AD_OpNBI_U64 offset
    breaks op_in_lock 1 gex_AD_OpNBI_U64 HSL
    breaks op_in_handler 2 gex_AD_OpNBI_U64 handler
    breaks team_first 2 gex_TM_Destroy 'atomic domain'
    program=$(pwd)/tests/misuse/misuse-$mode
}

# Collectives.
coll_rules() {
    program=$(pwd)/tests/misuse/misuse-coll-$mode
    breaks pair 2 gex_Coll_BroadcastNB TM-pair
    breaks no_team 1 gex_Coll_BroadcastNB GEX_TM_INVALID
    breaks barrier_pair 2 gex_Coll_BarrierNB TM-pair
    breaks flags 2 gex_Coll_BroadcastNB 'flags are 0x1'
    breaks root 2 gex_Coll_BroadcastNB 'root is 99'
    breaks dst_null 2 gex_Coll_BroadcastNB 'dst is NULL'
    breaks src_null 1 gex_Coll_BroadcastNB 'src is NULL'
    breaks overlap 2 gex_Coll_BroadcastNB overlap
    breaks one_root 2 gex_Coll_ReduceToOneNB 'root is 99'
    breaks one_dst 2 gex_Coll_ReduceToOneNB 'dst is NULL'
    breaks one_src 2 gex_Coll_ReduceToOneNB 'src is NULL'
    breaks one_overlap 1 gex_Coll_ReduceToOneNB overlap
    breaks one_flags 1 gex_Coll_ReduceToOneNB 'flags are 0x4'
    breaks type 1 gex_Coll_ReduceToAllNB 'dt is 0x3'
    breaks size 2 gex_Coll_ReduceToAllNB 'dt_sz is 4' '8 bytes'
    breaks size_zero 1 gex_Coll_ReduceToAllNB 'dt_sz is 0'
    breaks count 2 gex_Coll_ReduceToAllNB 'dt_cnt is 0'
    breaks count_huge 1 gex_Coll_ReduceToAllNB 'address space'
    breaks op 2 gex_Coll_ReduceToAllNB 'op 0x10'
    breaks op_float 2 gex_Coll_ReduceToAllNB 'op 0x4'
    breaks op_user_type 1 gex_Coll_ReduceToAllNB GEX_OP_USER
    breaks no_fn 1 gex_Coll_ReduceToAllNB 'user_op is NULL'
    breaks in_handler 2 gex_Coll_BroadcastNB handler
    breaks under_lock 2 gex_Coll_BroadcastNB HSL
    breaks named_open 2 gex_Coll_BroadcastNB gasnet_barrier_notify
    breaks legacy_flags 2 gasnet_coll_broadcast GASNET_COLL_OUT
    breaks legacy_bytes 2 gasnet_coll_gather_all 'nbytes is 0'
    breaks legacy_image 2 gasnet_coll_scatter 'image 77'
    breaks operator_polls 2 gasnet_AMPoll HSL
    breaks sizes_differ 2 gex_Coll_BroadcastNB 'rank 0' '64 bytes' '32' 'same sizes'
    breaks sizes_large 2 gex_Coll_BroadcastNB 'same sizes'
    breaks sizes_reduce 2 gex_Coll_ReduceToOneNB 'same sizes'
    breaks places_differ 2 gex_Coll_ReduceToAllNB 'dst == src' 'or none'
    export AQ_NO_OVERRIDES=1
    breaks sizes_differ 2 'same sizes'
    unset AQ_NO_OVERRIDES
    program=$(pwd)/tests/misuse/misuse-$mode
}

# What is checked in every build: it is off the fast path, and what follows a break would be a hang.
team_ends() {
    program=$(pwd)/tests/misuse/misuse-coll-$mode
    breaks destroy_open 2 gex_TM_Destroy synchronised
    breaks destroy_reduce 2 gex_TM_Destroy synchronised
    breaks destroy_named 2 gex_TM_Destroy gasnet_coll_barrier_notify
    export AQ_NO_OVERRIDES=1
    breaks destroy_open 2 gex_TM_Destroy synchronised
    breaks destroy_reduce 2 gex_TM_Destroy synchronised
    unset AQ_NO_OVERRIDES
    # in two levels
    export GASNET_CONDUIT=udp GASNET_SUPERNODE_MAXSIZE=2
    breaks destroy_open 4 gex_TM_Destroy synchronised
    breaks destroy_reduce 4 gex_TM_Destroy synchronised
    unset GASNET_CONDUIT GASNET_SUPERNODE_MAXSIZE
    program=$(pwd)/tests/misuse/misuse-$mode
}

# Transfers that are not contiguous: a program of their own, by copies and then by messages.
vis_rules() {
    program=$(pwd)/tests/misuse/misuse-vis-$mode
    for AQ_NO_OVERRIDES in 0 1; do
        export AQ_NO_OVERRIDES
        breaks put_above 2 gex_VIS_StridedPutBlocking segment 0x
        breaks put_below 2 gex_VIS_StridedPutBlocking segment 0x
        breaks put_rank 2 gex_VIS_StridedPutBlocking 'rank 8'
        breaks get_below 2 gex_VIS_StridedGetNB segment 0x
        breaks vector_outside 2 gex_VIS_VectorPutNBI segment 0x
        breaks indexed_outside 2 gex_VIS_IndexedPutBlocking segment 0x
        breaks arm_kind 2 'handler 200' '[Mm]edium'
        breaks arm_replies 2 gex_AM_ReplyShort 'reply handler'
    done
    breaks leaf_hidden 2 gex_VIS_StridedPutNB 'local completion' # there is an event to ask about
    unset AQ_NO_OVERRIDES
    breaks put_team 1 gex_VIS_StridedPutBlocking GEX_TM_INVALID
    breaks huge 2 gex_VIS_StridedPutBlocking 'address space'
    breaks vector_sums 2 gex_VIS_VectorGetBlocking '\b16\b' '\b24\b'
    breaks indexed_sums 2 gex_VIS_IndexedGetNB '\b16\b' '\b8\b'
    breaks strided_null 2 gex_VIS_StridedPutBlocking 'source is NULL'
    breaks vector_null 2 gex_VIS_VectorGetBlocking 'destination is NULL'
    breaks indexed_null 2 gex_VIS_IndexedPutBlocking 'source is NULL'
    breaks leaf_get 2 gex_VIS_StridedGetNBI GEX_FLAG_ENABLE_LEAF_LC
    breaks leaf_blocking 2 gex_VIS_StridedPutBlocking GEX_FLAG_ENABLE_LEAF_LC
    breaks in_handler 2 gex_VIS_StridedPutBlocking handler
    breaks in_lock 2 gex_VIS_StridedPutBlocking HSL
    breaks arm_large 1 gex_VIS_SetPeerCompletionHandler 128 127
    breaks arm_flags 1 gex_VIS_SetPeerCompletionHandler flags
    breaks arm_index 1 gex_VIS_SetPeerCompletionHandler 'handler 7' GEX_AM_INDEX_BASE
    breaks arm_get 2 gex_VIS_StridedGetBlocking 'peer completion'
    breaks arm_immediate 2 gex_VIS_StridedPutNBI GEX_FLAG_IMMEDIATE
    program=$(pwd)/tests/misuse/misuse-$mode
}

# The same offence where the transfer goes by messages instead of by shared memory.
reference_rules() {
    AQ_NO_OVERRIDES=1
    export AQ_NO_OVERRIDES
    breaks put_outside 2 gex_RMA_PutBlocking segment
    breaks get_nb_outside 2 gex_RMA_GetNB segment
    breaks event_stale 2 gex_Event_Wait stale
    breaks notify_twice 2 gasnet_barrier_notify
    unset AQ_NO_OVERRIDES
}

# Each call before the start, and the NULL that clients hold until then.
before_start() {
    wanted before_start || return 0
    attempt "$(pwd)/tests/misuse/misuse-early-$mode"
    why=
    [ $rc -eq 0 ] || why="$(tail -n 1 "$work/out")"
    result "$why" "$mode: every call says that the library is not started"
}

# Noticed in every build.
limits() {
    breaks second_client 1 gex_Client_Init 'already|second|one client'
    breaks attach_bound 1 gex_Segment_Attach gex_EP_BindSegment
    returns ok_register_args 1 GASNET_ERR_BAD_ARG
    returns ok_waitmode 1 GASNET_ERR_BAD_ARG
    returns attach_large 2 'GASNET_ERR_(RESOURCE|BAD_ARG)'
    returns attach_odd 1 GASNET_ERR_BAD_ARG
    returns attach_zero 1 GASNET_ERR_BAD_ARG
}

setting() { # VAR=value RE...: a setting that cannot be understood
    s=$1
    wanted "setting $s" || return 0
    shift
    attempt env "$s" GASNET_PSHM_NODES=2 "$program" none "$tag"
    dies "$mode: $s" 1 "$@"
}

limited() { # shell command that sets a limit
    GASNET_PSHM_NODES=4 attempt sh -c "$1"'; exec "$0" "$@"' "$program" none "$tag"
}

start() {
    for bad in -1 abc 1.5 99999999999 1000000000 4x; do
        wanted "ranks $bad" || continue
        ranks "$bad" "$program" none
        dies "$mode: GASNET_PSHM_NODES=$bad" 1 GASNET_PSHM_NODES
    done
    setting GASNET_MAX_SEGSIZE=banana GASNET_MAX_SEGSIZE banana
    setting GASNET_MAX_SEGSIZE=-4M GASNET_MAX_SEGSIZE
    setting GASNET_EXITTIMEOUT=soon GASNET_EXITTIMEOUT soon
    setting GASNET_CATCH_EXIT=perhaps GASNET_CATCH_EXIT perhaps
    setting AQ_NO_OVERRIDES=maybe AQ_NO_OVERRIDES maybe
    setting GASNET_CONDUIT=carrier-pigeon carrier-pigeon smp
    if wanted 'segsize small'; then
        attempt env GASNET_MAX_SEGSIZE=16K GASNET_PSHM_NODES=2 "$program" none "$tag"
        why=
        [ $rc -ne 0 ] || why='attached 64 KB although GASNET_MAX_SEGSIZE=16K'
        grep -q 'GASNET_MAX_SEGSIZE\|segment' "$work/err" || why="${why:+$why; }no message"
        result "$why" "$mode: more than GASNET_MAX_SEGSIZE"
    fi
    if [ "${AQ_SANITIZE_FLAGS:-}" = '' ] && wanted 'limit'; then
        limited "ulimit -n 5"
        dies "$mode: out of file descriptors" 4 'descriptor|ulimit -n|Too many open files'
        limited "ulimit -v 14000"
        dies "$mode: out of address space" 4 'memory|ulimit -v|address space'
    fi
}

# RLIMIT_NPROC does not bind root: the job runs as a user who has no other process.
processes() {
    wanted 'limit processes' || return 0
    if [ "$(id -u)" -ne 0 ] || ! command -v setpriv >/dev/null || ! command -v prlimit >/dev/null; then
        skip "$mode: out of processes" "needs root, setpriv and prlimit"
        return 0
    fi
    cp "$program" "$work/program"
    cd / || exit 1
    GASNET_PSHM_NODES=8 attempt setpriv --reuid=54321 --regid=54321 --clear-groups \
        prlimit --nproc=3 "$work/program" none "$tag"
    cd - >/dev/null || exit 1
    dies "$mode: out of processes" 1 'fork|process|ulimit -u'
}

launcher() {
    [ -x ./gasnetrun ] || return 0
    for bad in 0 -1 abc 1000000000 4x ''; do
        wanted "gasnetrun $bad" || continue
        attempt ./gasnetrun -n "$bad" "$program" none "$tag"
        dies "gasnetrun -n '$bad'" 1 "${bad:-n}"
    done
    if wanted gasnetrun; then
        attempt ./gasnetrun -n 2 ./no-such-program "$tag"
        dies "gasnetrun: no such program" 1 no-such-program
        attempt ./gasnetrun -n 2
        dies "gasnetrun: no program given" 1 program
    fi
}

# Client and library compiled for different things do not link, and the missing name says what was wanted.
mismatch() {
    wanted mismatch || return 0
    inc="-I$src/include -I$src/include/smp-conduit -Iinclude"
    for pair in SEQ:par PAR:seq; do
        want=${pair%:*} have=${pair#*:}
        [ -f "libgasnet-smp-$have.a" ] || continue
        for source in misuse misuse_g1; do
            # shellcheck disable=SC2086
            $CC -DGASNET_$want=1 -D_GNU_SOURCE $inc ${AQ_SANITIZE_FLAGS:-} "$src/tests/misuse/$source.c" -o "$work/p" \
                "libgasnet-smp-$have.a" -lpthread -lm -lrt >"$work/out" 2>"$work/err"
            rc=$?
            why=
            [ $rc -ne 0 ] || why="linked"
            grep -q "undefined.*$want" "$work/err" || why="${why:+$why; }the message does not name $want"
            result "$why" "client for $want, library for $have ($source.c)"
        done
    done
    have=${modes%% *}
    mkdir -p "$work/inc"
    sed -e 's/GASNET_NDEBUG/GASNET_SWAP/; s/GASNET_DEBUG/GASNET_NDEBUG/; s/GASNET_SWAP/GASNET_DEBUG/' \
        include/gasnet_config.h >"$work/inc/gasnet_config.h"
    # shellcheck disable=SC2086
    $CC -DGASNET_$(echo $have | tr a-z A-Z)=1 -D_GNU_SOURCE -I"$work/inc" $inc ${AQ_SANITIZE_FLAGS:-} \
        "$src/tests/misuse/misuse.c" -o "$work/p" "libgasnet-smp-$have.a" -lpthread -lm -lrt >"$work/out" 2>"$work/err"
    rc=$?
    why=
    [ $rc -ne 0 ] || why="linked"
    grep -q 'undefined.*_\(no\)\?debug_' "$work/err" || why="${why:+$why; }the message does not name the debug setting"
    result "$why" "client and library differ in debugging"
}

for mode in $modes; do
    program=$(pwd)/tests/misuse/misuse-$mode
    if [ ! -x "$program" ]; then
        skip "$mode" "not built"
        continue
    fi
    if [ "$AQ_DEBUG_NAME" = GASNET_DEBUG ]; then
        rules
        team_rules
        endpoint_rules
        negotiated_rules
        vis_rules
        coll_rules
        ad_rules
        reference_rules
        before_start
    fi
    team_ends
    gasnet1_rules
    limits
    start
    processes
done
program=$(pwd)/tests/misuse/misuse-${modes%% *}
launcher
mismatch
echo "1..$count"
[ $failed -eq 0 ]
