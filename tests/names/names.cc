/*
 * names.cc - every public name exists and has the right kind and type, seen from C++11 and later, with
 * the habits of C++ clients: static_cast and reinterpret_cast of handles, constexpr flags, enumerations over
 * the op type, brace initialisation without narrowing.
 *
 * Compiling it is the test.
 * Source GASNet-EX specification 0.19. SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnetex.h"
#include "gasnet_coll.h"
#include "gasnet_mk.h"
#include "gasnet_ratomic.h"
#include "gasnet_vis.h"

#include <type_traits>

#include "aq_args.h"
#include "macros_gasnetex.h"
#include "gasnet_tools.h"
#include "macros_gasnet_tools.h"

static const gex_Token_Info_t gex_Token_Info_t_zero = gex_Token_Info_t();
static const gex_MK_Create_args_t gex_MK_Create_args_t_zero = gex_MK_Create_args_t();

/* decltype of an lvalue in parentheses is a reference, and fields may be const. */
template <typename T> struct plain {
    typedef typename std::remove_reference<T>::type type;
};
#define VALUE(TYPE, ...)                                                                           \
    static_assert(std::is_same<plain<decltype((__VA_ARGS__))>::type, TYPE>::value,                 \
                  #TYPE ": " #__VA_ARGS__);
#define INTEGRAL(EXPR)                                                                             \
    static_assert(std::is_integral<plain<decltype((EXPR))>::type>::value, #EXPR);
#define SAME(A, B) static_assert(std::is_same<A, B>::value, #A " is " #B);
#define DO(...)                                                                                    \
    do {                                                                                           \
        __VA_ARGS__;                                                                               \
    } while (0);
#define case_of(NAME)                                                                              \
    {                                                                                              \
        constexpr gex_Flags_t constant{ NAME };                                                    \
        static_assert(constant != 0, #NAME);                                                       \
    }

#include "names_body.h"

enum class op : gex_OP_t { add = GEX_OP_ADD, mine = GEX_OP_USER_NC };
enum class dt : gex_DT_t { u64 = GEX_DT_U64 };

static_assert(sizeof(gex_Event_t) == sizeof(void *) && sizeof(gex_TM_t) == sizeof(uintptr_t), "sizes");
static_assert(std::is_pointer<gex_Client_t>::value && std::is_pointer<gex_EP_t>::value, "handles");
static_assert(std::is_pointer<gex_MK_t>::value && std::is_pointer<gex_AM_SrcDesc_t>::value, "handles");
static_assert(std::is_pointer<gex_Segment_t>::value && std::is_pointer<gex_Token_t>::value, "handles");
static_assert(std::is_same<gex_AM_Fn_t, void (*)()>::value, "handler type");

static void handler(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t a)
{
    (void)token;
    (void)buf;
    (void)nbytes;
    (void)a;
}

struct holder {
    gex_HSL_t lock = GEX_HSL_INITIALIZER;
    gex_AM_Entry_t table[2] = {
        { GEX_AM_INDEX_BASE + 3, reinterpret_cast<void (*)()>(handler),
          GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 1, nullptr, "handler" },
        { 0, (gex_AM_Fn_t)handler, GEX_FLAG_AM_MEDLONG | GEX_FLAG_AM_REQREP, 1, nullptr, nullptr },
    };
};

void casts(holder *into);
void casts(holder *into)
{
    void *raw = static_cast<void *>(into);
    gex_TM_t tm = static_cast<gex_TM_t>(raw);
    gex_Event_t ev = reinterpret_cast<gex_Event_t>(reinterpret_cast<uintptr_t>(raw));

    into->table[0].gex_nargs = static_cast<unsigned>(op::add) + static_cast<unsigned>(dt::u64);
    if (tm == GEX_TM_INVALID || ev == GEX_EVENT_INVALID)
        gasnet_exit(1);
}
