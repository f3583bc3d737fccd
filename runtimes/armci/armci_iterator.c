/*
 * armci_iterator.c - iterator.h: the segments of a strided section, one after the other. No state.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "iterator.h"

#include <string.h>

void armci_stride_info_init(stride_info_t *sinfo, void *base_ptr, int stride_levels,
                            const int *stride_arr, const int *seg_count)
{
    memset(sinfo, 0, sizeof(*sinfo));
    sinfo->base_ptr = base_ptr;
    sinfo->stride_levels = stride_levels;
    sinfo->size = 1;
    sinfo->seg_count[0] = seg_count[0];
    for (int i = 0; i < stride_levels; i++) {
        sinfo->stride_arr[i] = stride_arr[i];
        sinfo->seg_count[i + 1] = seg_count[i + 1];
        sinfo->size *= seg_count[i + 1];
    }
}

void armci_stride_info_destroy(stride_info_t *sinfo)
{
    (void)sinfo;
}

int armci_stride_info_size(stride_info_t *sinfo)
{
    return sinfo->size;
}

int armci_stride_info_count(stride_info_t *sinfo)
{
    return sinfo->size;
}

int armci_stride_info_pos(stride_info_t *sinfo)
{
    return sinfo->pos;
}

void armci_stride_info_next(stride_info_t *sinfo)
{
    sinfo->pos++;
    for (int i = 0; i < sinfo->stride_levels; i++) {
        if (++sinfo->itr[i] < sinfo->seg_count[i + 1])
            return;
        sinfo->itr[i] = 0;
    }
}

void *armci_stride_info_seg_ptr(stride_info_t *sinfo)
{
    ptrdiff_t offset = 0;

    for (int i = 0; i < sinfo->stride_levels; i++)
        offset += (ptrdiff_t)sinfo->itr[i] * sinfo->stride_arr[i];
    return sinfo->base_ptr + offset;
}

int armci_stride_info_seg_size(stride_info_t *sinfo)
{
    return sinfo->seg_count[0];
}

int armci_stride_info_seg_off(stride_info_t *sinfo)
{
    return (int)((char *)armci_stride_info_seg_ptr(sinfo) - sinfo->base_ptr);
}

int armci_stride_info_has_more(stride_info_t *sinfo)
{
    return sinfo->pos < sinfo->size;
}
