/*
 * iterator.h - walks over the pieces of a strided section.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef _STRIDE_INFO_H_
#define _STRIDE_INFO_H_ 1

#include "armci.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Programs declare this; they look at it through the calls only. */
typedef struct {
    char *base_ptr;
    int stride_levels;
    int stride_arr[ARMCI_MAX_STRIDE_LEVEL];
    int seg_count[ARMCI_MAX_STRIDE_LEVEL + 1];
    int size;                        /* pieces */
    int pos;                         /* number of the current one */
    int itr[ARMCI_MAX_STRIDE_LEVEL]; /* its index at each level */
} stride_info_t;

void armci_stride_info_init(stride_info_t *sinfo, void *base_ptr, int stride_levels,
                            const int *stride_arr, const int *seg_count);
void armci_stride_info_destroy(stride_info_t *sinfo);
int armci_stride_info_size(stride_info_t *sinfo);
int armci_stride_info_count(stride_info_t *sinfo);
int armci_stride_info_pos(stride_info_t *sinfo);
void armci_stride_info_next(stride_info_t *sinfo);
void *armci_stride_info_seg_ptr(stride_info_t *sinfo);
int armci_stride_info_seg_size(stride_info_t *sinfo);
int armci_stride_info_seg_off(stride_info_t *sinfo);
int armci_stride_info_has_more(stride_info_t *sinfo);

#ifdef __cplusplus
}
#endif

#endif
