/*
 * aq_ibv_m.c - the module of the ibv conduit: fills in the table of aq_ibv_lib.h with libibverbs.
 *
 * Some verbs are macros or inline functions around what the library exports; they are called here,
 * so that the conduit itself refers to no symbol of it.
 *
 * Threads   any
 * Uses      libibverbs. SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/ibv/aq_ibv_lib.h"

#include "aq_config.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Programs fork, and call system(). Before Linux 5.12 that took pinned pages away from the parent,
 * unless the library was asked to prevent it before it is used. Later kernels copy such pages for
 * the child at once. There it must not be asked: it would mark whatever is registered as not for
 * children, which splits the client's mappings, so that mremap() of them fails, and leaves holes in
 * children. An error means that somebody else here was first. */
static bool aq_ibv_m_forks_need_help(void)
{
#ifdef AQ_HAVE_IBV_FORK_STATE
    return ibv_is_fork_initialized() == IBV_FORK_DISABLED;
#else
    return true; /* a library older than those kernels */
#endif
}

static struct ibv_device **aq_ibv_m_get_device_list(int *count_out)
{
    if (aq_ibv_m_forks_need_help())
        (void)ibv_fork_init();
    return ibv_get_device_list(count_out);
}

static int aq_ibv_m_query_port(struct ibv_context *context, uint8_t port,
                               struct ibv_port_attr *attr_out)
{
    return ibv_query_port(context, port, attr_out);
}

static struct ibv_mr *aq_ibv_m_reg_mr(struct ibv_pd *pd, void *addr, size_t len, int access)
{
    return ibv_reg_mr(pd, addr, len, access);
}

static enum aq_ibv_gid_type aq_ibv_m_gid_type(uint32_t type)
{
    return type == IBV_GID_TYPE_ROCE_V2   ? AQ_IBV_GID_ROCE2
           : type == IBV_GID_TYPE_ROCE_V1 ? AQ_IBV_GID_ROCE1
                                          : AQ_IBV_GID_IB;
}

static int aq_ibv_m_query_gids(struct ibv_context *context, uint8_t port, int table_len,
                               struct aq_ibv_gid_row *rows, size_t max)
{
    static const union ibv_gid none;
    size_t count = 0;

    for (uint32_t i = 0; (int)i < table_len && count < max; i++) {
        struct ibv_gid_entry entry;

        if (ibv_query_gid_ex(context, port, i, &entry, 0) != 0
            || memcmp(&entry.gid, &none, sizeof(none)) == 0)
            continue;
        rows[count].gid = entry.gid;
        rows[count].index = i;
        rows[count++].type = aq_ibv_m_gid_type(entry.gid_type);
    }
    return (int)count;
}

const struct aq_ibv_lib aq_ibv_lib = {
    .version = AQ_IBV_LIB_VERSION,
    .get_device_list = aq_ibv_m_get_device_list,
    .free_device_list = ibv_free_device_list,
    .open_device = ibv_open_device,
    .close_device = ibv_close_device,
    .query_device = ibv_query_device,
    .query_port = aq_ibv_m_query_port,
    .query_pkey = ibv_query_pkey,
    .query_gids = aq_ibv_m_query_gids,
    .get_async_event = ibv_get_async_event,
    .ack_async_event = ibv_ack_async_event,
    .alloc_pd = ibv_alloc_pd,
    .dealloc_pd = ibv_dealloc_pd,
    .reg_mr = aq_ibv_m_reg_mr,
    .dereg_mr = ibv_dereg_mr,
    .create_comp_channel = ibv_create_comp_channel,
    .destroy_comp_channel = ibv_destroy_comp_channel,
    .create_cq = ibv_create_cq,
    .destroy_cq = ibv_destroy_cq,
    .get_cq_event = ibv_get_cq_event,
    .ack_cq_events = ibv_ack_cq_events,
    .create_srq = ibv_create_srq,
    .destroy_srq = ibv_destroy_srq,
    .create_qp = ibv_create_qp,
    .modify_qp = ibv_modify_qp,
    .query_qp = ibv_query_qp,
    .destroy_qp = ibv_destroy_qp,
    .create_ah = ibv_create_ah,
    .destroy_ah = ibv_destroy_ah,
    .wc_status_str = ibv_wc_status_str,
    .event_type_str = ibv_event_type_str,
};
