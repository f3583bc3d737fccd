/*
 * aq_ibv_lib.h - what the conduit asks of libibverbs, as a table that the module fills in
 * (base/aq_module.h).
 *
 * The calls of the hot path (post, poll, arm) are inline functions of verbs.h, which go through the
 * device's own table and need no library at link time; what is exported by libibverbs is here, so
 * that a machine without it loses this conduit only. Each entry is the verb of its name.
 *
 * Uses      infiniband/verbs.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_IBV_LIB_H
#define AQ_IBV_LIB_H

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>

#define AQ_IBV_LIB_VERSION 1

/* A GID and how it is used. */
struct aq_ibv_gid_row {
    union ibv_gid gid;
    uint32_t index;
    uint32_t type; /* enum aq_ibv_gid_type */
};

enum aq_ibv_gid_type { AQ_IBV_GID_IB, AQ_IBV_GID_ROCE1, AQ_IBV_GID_ROCE2 };

struct aq_ibv_lib {
    uint32_t version; /* AQ_IBV_LIB_VERSION */

    /* devices */
    struct ibv_device **(*get_device_list)(int *count_out);
    void (*free_device_list)(struct ibv_device **list);
    struct ibv_context *(*open_device)(struct ibv_device *device);
    int (*close_device)(struct ibv_context *context);
    int (*query_device)(struct ibv_context *context, struct ibv_device_attr *attr_out);
    int (*query_port)(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr_out);
    int (*query_pkey)(struct ibv_context *context, uint8_t port, int index, __be16 *pkey_out);
    /* Those of a port that are not zero; how many, or negative. */
    int (*query_gids)(struct ibv_context *context, uint8_t port, int table_len,
                      struct aq_ibv_gid_row *rows, size_t max);
    int (*get_async_event)(struct ibv_context *context, struct ibv_async_event *event_out);
    void (*ack_async_event)(struct ibv_async_event *event);

    /* memory */
    struct ibv_pd *(*alloc_pd)(struct ibv_context *context);
    int (*dealloc_pd)(struct ibv_pd *pd);
    struct ibv_mr *(*reg_mr)(struct ibv_pd *pd, void *addr, size_t len, int access);
    int (*dereg_mr)(struct ibv_mr *mr);

    /* queues */
    struct ibv_comp_channel *(*create_comp_channel)(struct ibv_context *context);
    int (*destroy_comp_channel)(struct ibv_comp_channel *comp_channel);
    struct ibv_cq *(*create_cq)(struct ibv_context *context, int entries, void *own,
                                struct ibv_comp_channel *comp_channel, int vector);
    int (*destroy_cq)(struct ibv_cq *cq);
    int (*get_cq_event)(struct ibv_comp_channel *comp_channel, struct ibv_cq **cq_out,
                        void **own_out);
    void (*ack_cq_events)(struct ibv_cq *cq, unsigned count);
    struct ibv_srq *(*create_srq)(struct ibv_pd *pd, struct ibv_srq_init_attr *attr);
    int (*destroy_srq)(struct ibv_srq *srq);
    struct ibv_qp *(*create_qp)(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
    int (*modify_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
    int (*query_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
                    struct ibv_qp_init_attr *init);
    int (*destroy_qp)(struct ibv_qp *qp);
    struct ibv_ah *(*create_ah)(struct ibv_pd *pd, struct ibv_ah_attr *attr);
    int (*destroy_ah)(struct ibv_ah *ah);

    /* words */
    const char *(*wc_status_str)(enum ibv_wc_status status);
    const char *(*event_type_str)(enum ibv_event_type type);
};

/* The module's; seen by who loads it. */
extern const struct aq_ibv_lib aq_ibv_lib __attribute__((visibility("default")));

#endif
