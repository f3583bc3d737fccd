/*
 * iterator.h - an iterator over the segments of a strided section: its runs of contiguous bytes.
 *
 * Context of all calls: any time, any thread; no other part of ARMCI is needed. Arguments are not
 * checked.
 * Source: the ARMCI interface, stride iterators. Test: tests/armci.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef _STRIDE_INFO_H_
#define _STRIDE_INFO_H_ 1

#include "armci.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Programs declare objects of this type, and use them by the calls below only. */
typedef struct {
    char *base_ptr;
    int stride_levels;
    int stride_arr[ARMCI_MAX_STRIDE_LEVEL];
    int seg_count[ARMCI_MAX_STRIDE_LEVEL + 1];
    int size;                        /* number of segments */
    int pos;                         /* number of the current segment */
    int itr[ARMCI_MAX_STRIDE_LEVEL]; /* its index at each level */
} stride_info_t;

/**
 * armci_stride_info_init - begin at the first segment of a section.
 * base_ptr       beginning of the section
 * stride_levels  0 to ARMCI_MAX_STRIDE_LEVEL
 * stride_arr     stride_levels distances in bytes; copied
 * seg_count      seg_count[0]: bytes of a segment; then the number of segments at each level;
 *                copied
 */
void armci_stride_info_init(stride_info_t *sinfo, void *base_ptr, int stride_levels,
                            const int *stride_arr, const int *seg_count);

/** armci_stride_info_destroy - ends the use of an iterator; nothing has to be freed. */
void armci_stride_info_destroy(stride_info_t *sinfo);

/** armci_stride_info_size, armci_stride_info_count - the number of segments. */
int armci_stride_info_size(stride_info_t *sinfo);
int armci_stride_info_count(stride_info_t *sinfo);

/** armci_stride_info_pos - the number of the current segment, from 0 on; the number of segments at
 * the end. */
int armci_stride_info_pos(stride_info_t *sinfo);

/** armci_stride_info_next - go to the next segment. */
void armci_stride_info_next(stride_info_t *sinfo);

/** armci_stride_info_seg_ptr, _seg_size, _seg_off - address, bytes, and distance in bytes from
 * base_ptr of the current segment. */
void *armci_stride_info_seg_ptr(stride_info_t *sinfo);
int armci_stride_info_seg_size(stride_info_t *sinfo);
int armci_stride_info_seg_off(stride_info_t *sinfo);

/** armci_stride_info_has_more - 1 if there is a current segment, 0 at the end. */
int armci_stride_info_has_more(stride_info_t *sinfo);

#ifdef __cplusplus
}
#endif

#endif
