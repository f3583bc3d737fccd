/*
 * test_g1_handlers.c - handlers as clients write them: odd parameter types, uncast rows, one
 * function at several indices, replies of another kind; arguments that need casts; payloads of 0
 * bytes, of the greatest size, from the stack, from read-only memory and from the segment.
 * Ranks 1+. Conduits all. Source GASNet specification 1.8, active messages, and its clients.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test_g1.h"

enum {
    H_INTS = AQ_TEST_FREE,
    H_UNSIGNED,
    H_SIZE,
    H_TEXT,
    H_EMPTY,
    H_EMPTY_LONG,
    H_BACK,
    H_BIG,
    H_BIG_LONG,
    H_LONG_ASK,
    H_LONG_TELL,
    BIG_MAX = 1 << 20,
    SEGMENT = 4 * BIG_MAX
};

static aq_test_count_t seen, back;
static char *buffer;

static void h_ints(gasnet_token_t token, int a, const int b, unsigned int c)
{
    (void)token, (void)c;
    AQ_CHECK_EQ(a, INT32_MIN);
    AQ_CHECK_EQ(b, -1);
    atomic_fetch_add(&seen, 1);
}

static void h_unsigned(gasnet_token_t token, uint32_t a, unsigned b, uint32_t c)
{
    (void)token;
    AQ_CHECK(a == 0xdeadbeefu && b == 0xffffffffu && c == 0x12345678u);
    atomic_fetch_add(&seen, 1);
}

/* The same on every rank, which the address of a variable is not. */
#define SOME_POINTER ((void *)(uintptr_t)UINT64_C(0x7123456789abcdef))

/* A pointer in two halves, and an argument that is read as a size_t. */
static void h_size(gasnet_token_t token, gasnet_handlerarg_t hi, gasnet_handlerarg_t lo,
                   size_t small)
{
    AQ_CHECK_PTR(aq_test_pointer(hi, lo), SOME_POINTER);
    AQ_CHECK(small == 40000);
    atomic_fetch_add(&seen, 1);
    gasnet_AMReplyMedium0(token, H_EMPTY, NULL, 0);
}

static void h_text(gasnet_token_t token, char *text, const size_t nbytes, int tag)
{
    (void)token;
    AQ_CHECK(nbytes == 6 && memcmp(text, "hello", 6) == 0);
    AQ_CHECK_EQ(tag, 'x');
    atomic_fetch_add(&seen, 1);
}

static void h_empty(gasnet_token_t token, void *buf, size_t nbytes)
{
    (void)token, (void)buf;
    AQ_CHECK_EQ(nbytes, 0);
    atomic_fetch_add(&back, 1);
}

static void h_empty_long(gasnet_token_t token, void *buf, size_t nbytes)
{
    AQ_CHECK_EQ(nbytes, 0);
    AQ_CHECK_PTR(buf, (char *)16);
    gasnet_AMReplyShort0(token, H_BACK);
}

static void h_back(gasnet_token_t token)
{
    (void)token;
    atomic_fetch_add(&back, 1);
}

static void h_big(gasnet_token_t token, void *buf, size_t nbytes, int seed)
{
    AQ_CHECK(aq_test_same(buf, nbytes, (uint64_t)seed));
    AQ_CHECK((uintptr_t)buf % 8 == 0);
    atomic_fetch_add(&seen, 1);
    gasnet_AMReplyShort0(token, H_BACK);
}

static void h_big_long(gasnet_token_t token, void *buf, size_t nbytes, int seed)
{
    AQ_CHECK(aq_test_same(buf, nbytes, (uint64_t)seed));
    atomic_fetch_add(&seen, 1);
    gasnet_AMReplyShort0(token, H_BACK);
}

/* "Give me nbytes at dest": the answer comes from memory outside the segment. */
static void h_long_ask(gasnet_token_t token, gasnet_handlerarg_t hi, gasnet_handlerarg_t lo,
                       int nbytes)
{
    gasnet_AMReplyLong1(token, H_LONG_TELL, buffer, (size_t)nbytes, aq_test_pointer(hi, lo),
                        nbytes);
}

static void h_long_tell(gasnet_token_t token, void *buf, size_t nbytes, int asked)
{
    (void)token;
    AQ_CHECK_EQ(nbytes, asked);
    AQ_CHECK(aq_test_same(buf, nbytes, 77));
    atomic_fetch_add(&back, 1);
}

static gasnet_handlerentry_t table[] = {
    { H_INTS, h_ints }, { H_UNSIGNED, h_unsigned }, { H_SIZE, h_size },
    { H_TEXT, h_text }, { H_EMPTY, h_empty },       { H_EMPTY_LONG, h_empty_long },
    { H_BACK, h_back }, { H_BIG, h_big },           { H_BIG_LONG, h_big_long },
    { 0, h_back },      { H_LONG_ASK, h_long_ask }, { H_LONG_TELL, h_long_tell },
};

static void both(int want_seen, int want_back)
{
    aq_test_wait(&seen, want_seen);
    aq_test_wait(&back, want_back);
    aq_test_barrier();
    atomic_store(&seen, 0);
    atomic_store(&back, 0);
    aq_test_barrier();
}

#define HALVES(P) ((uintptr_t)(P)) >> 32, (uintptr_t)(P) /* two arguments from one macro */

static void check_types(gasnet_node_t to)
{
    static const char text[] = "hello";
    const uint64_t wide = 0xabcdef0112345678u;
    gasnet_handler_t second = table[9].index;

    rule("gasnet-1 10.1: handlers with parameters of any integer type");
    gasnet_AMRequestShort3(to, H_INTS, INT32_MIN, (char)-1, 0);
    gasnet_AMRequestShort3(to, H_UNSIGNED, 0xdeadbeefu, -1L, wide);
    gasnet_AMRequestShort3(to, H_SIZE, HALVES(SOME_POINTER), 40000);
    gasnet_AMRequestMedium1(to, H_TEXT, text, sizeof(text), 'x');
    rule("gasnet-1 10.3: counting forms with macros that make several arguments");
    gasnet_AMRequestShort(to, H_SIZE, 3, HALVES(SOME_POINTER), 40000);
    gasnet_AMRequestMedium(to, H_TEXT, text, sizeof(text), 1, 'x');
    rule("gasnet-1 7.2: one function at several indices");
    gasnet_AMRequestShort0(to, second);
    both(6, 3);
}

static void check_empty(gasnet_node_t to)
{
    rule("gasnet-1 10.3: payloads of 0 bytes: sources not looked at, Long delivers dest_addr");
    gasnet_AMRequestMedium0(to, H_EMPTY, NULL, 0);
    gasnet_AMRequestMedium0(to, H_EMPTY, (void *)8, 0);
    gasnet_AMRequestLong0(to, H_EMPTY_LONG, NULL, 0, (char *)16);
    gasnet_AMRequestLongAsync0(to, H_EMPTY_LONG, (void *)8, 0, (char *)16);
    both(0, 4);
}

static void check_sizes(gasnet_node_t to)
{
    const size_t medium = gasnet_AMMaxMedium();
    const size_t max = gasnet_AMMaxLongRequest() < BIG_MAX ? gasnet_AMMaxLongRequest() : BIG_MAX;
    char *dest = (char *)aq_test_base(to) + 3, *ours = aq_test_base(aq_test_me);
    char stack[1000];

    rule("gasnet-1 10.2: Medium of 1 byte, of an odd number, of the most; from heap and stack");
    aq_test_fill(stack, sizeof(stack), 1);
    gasnet_AMRequestMedium1(to, H_BIG, stack, 1, 1);
    gasnet_AMRequestMedium1(to, H_BIG, stack, 999, 1);
    aq_test_fill(buffer, medium, 2);
    gasnet_AMRequestMedium1(to, H_BIG, buffer, medium, 2);
    memset(buffer, 0, medium);
    both(3, 3);
    rule("gasnet-1 10.2: Long of 1 byte, of many; from heap, stack and segment");
    gasnet_AMRequestLong1(to, H_BIG_LONG, stack, 1, dest, 1);
    gasnet_AMRequestLong1(to, H_BIG_LONG, stack, 999, dest + 10, 1);
    both(2, 2);
    aq_test_fill(buffer, max, 3);
    gasnet_AMRequestLong1(to, H_BIG_LONG, buffer, max, dest, 3);
    memset(buffer, 0, max);
    both(1, 1);
    aq_test_fill(ours + 2 * BIG_MAX, max, 4);
    gasnet_AMRequestLongAsync1(to, H_BIG_LONG, ours + 2 * BIG_MAX, max, dest, 4);
    both(1, 1);
    rule("gasnet-1 10.2: Long replies, with a source outside the segment");
    aq_test_fill(buffer, BIG_MAX, 77);
    aq_test_barrier();
    gasnet_AMRequestShort3(to, H_LONG_ASK, HALVES(ours + 5), 1);
    gasnet_AMRequestShort3(to, H_LONG_ASK, HALVES(ours + 100), 12345);
    both(0, 2);
}

int main(int argc, char **argv)
{
    gex_Rank_t k;

    buffer = malloc(BIG_MAX);
    if (buffer == NULL)
        return 1;
    aq_test_start_gasnet1(&argc, &argv, 1, table, AQ_LENGTH(table), SEGMENT);
    for (k = 0; k < 2; k++) {
        check_types(aq_test_peer(k));
        check_empty(aq_test_peer(k));
        check_sizes(aq_test_peer(k));
    }
    free(buffer);
    return aq_test_finish();
}
