/*
 * names.c - every public name exists and has the right kind and type, seen from C.
 *
 * Compiling it is the test: only static assertions, and a function that nobody calls.
 * Source GASNet-EX specification 0.19. SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnetex.h"
#include "gasnet_coll.h"
#include "gasnet_mk.h"
#include "gasnet_ratomic.h"
#include "gasnet_vis.h"

#include "aq_args.h"
#include "macros_gasnetex.h"
#include "gasnet_tools.h"
#include "macros_gasnet_tools.h"

static const gex_Token_Info_t gex_Token_Info_t_zero;
static const gex_MK_Create_args_t gex_MK_Create_args_t_zero;

#define VALUE(TYPE, ...) \
    _Static_assert(_Generic((__VA_ARGS__), TYPE : 1, default : 0), #TYPE ": " #__VA_ARGS__);
#define INTEGRAL(EXPR) \
    _Static_assert(_Generic((EXPR) + 0, int : 1, unsigned : 1, long : 1, default : 0), #EXPR);
#define SAME(A, B) _Static_assert(_Generic((A)0, B : 1, default : 0), #A " is " #B);
#define DO(...)      \
    do {             \
        __VA_ARGS__; \
    } while (0);
#define case_of(NAME) _Static_assert((NAME) != 0, #NAME);

/* Enumerators, case labels and static initialisers want integer constant expressions. */
enum { a_flag = GEX_FLAG_IMMEDIATE, an_index = GEX_AM_INDEX_BASE };
static const gex_Rank_t nobody = GEX_RANK_INVALID;

#include "names_body.h"

/* gasnet_exit is declared not to return: no warning about the missing return. */
int ends(void);
int ends(void)
{
    (void)nobody;
    gasnet_exit(a_flag + an_index);
}
