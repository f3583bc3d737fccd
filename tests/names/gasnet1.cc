/*
 * gasnet1.cc - every name of the GASNet-1 interface exists and has the right kind and type, seen from C++11
 * and later. Compiling it is the test. With GASNETEX_FIRST, gasnetex.h comes before gasnet.h.
 * Source GASNet specification 1.8. SPDX-License-Identifier: BSD-3-Clause
 */
#ifdef GASNETEX_FIRST
#include "gasnetex.h"
#endif
#include "gasnet.h"
#include "gasnetex.h"
#include "gasnet_tools.h"
#include "gasnet_vis.h"
#include "gasnet.h"

#include <type_traits>
#include <vector>

#include "aq_args.h"

template <typename T> struct plain {
    typedef typename std::remove_reference<T>::type type;
};
#define VALUE(TYPE, ...)                                                                           \
    static_assert(std::is_same<plain<decltype((__VA_ARGS__))>::type, TYPE>::value,                 \
                  #TYPE ": " #__VA_ARGS__);
#define SAME(A, B) static_assert(std::is_same<A, B>::value, #A " is " #B);
#define DO(...)                                                                                    \
    do {                                                                                           \
        __VA_ARGS__;                                                                               \
    } while (0);

#include "gasnet1_body.h"

static_assert(std::is_same<gex_AM_Fn_t, void (*)()>::value, "handlers are cast to this type");
static_assert(sizeof(gasnet_handle_t) == sizeof(void *) && std::is_pointer<gasnet_handle_t>::value, "handles");
static_assert(sizeof(gasnet_handlerarg_t) == 4 && sizeof(gasnet_valget_handle_t) <= 8, "sizes");
static_assert(sizeof(gasnet_memvec_t) == sizeof(gex_Memvec_t), "lists are handed on");

namespace {
void h_medium(gasnet_token_t token, void *buf, size_t nbytes, gasnet_handlerarg_t a)
{
    static_cast<void>(token), static_cast<void>(buf), static_cast<void>(nbytes), static_cast<void>(a);
}

/* Tables grow as a run-time system learns its messages; the return codes are wrapped by the client. */
#define GASNET_SAFE_CALL(call)                                                                     \
    do {                                                                                           \
        int code = (call);                                                                         \
        if (code != GASNET_OK)                                                                     \
            gasnet_exit(code);                                                                     \
    } while (0)

template <typename F> void add(std::vector<gasnet_handlerentry_t> &table, gasnet_handler_t index, F *fn)
{
    gasnet_handlerentry_t entry = { index, reinterpret_cast<void (*)()>(fn) };

    table.push_back(entry);
}
}

void run(const std::vector<char> &data);
void run(const std::vector<char> &data)
{
    std::vector<gasnet_handlerentry_t> table;
    const void *address = data.data();
    uintptr_t wide = reinterpret_cast<uintptr_t>(address);

    add(table, 128, h_medium);
    table.push_back({ 0, (void (*)())h_medium });
    GASNET_SAFE_CALL(gasnet_attach(table.data(), static_cast<int>(table.size()), 4096, 0));
    GASNET_SAFE_CALL(gasnet_AMRequestMedium1(0, 128, data.data(), data.size(), wide >> 32));
    GASNET_SAFE_CALL(gasnet_AMRequestMedium2(0, 128, data.data(), data.size(), true ? 1 : 2, wide & 7));
}
