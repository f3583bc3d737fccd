/*
 * armci_section.c - the arguments of strided and vector calls: checks, a section with 64-bit sizes,
 * a cursor over its runs; packing of local sections.
 *
 * Threads   any; no state
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "armci_impl.h"

#include <string.h>

int aq_armci_section_init(const char *call, struct aq_armci_section *section, void *src,
                          const int *src_stride, void *dst, const int *dst_stride, const int *count,
                          int levels, int proc)
{
    if (src == NULL || dst == NULL)
        return FAIL;
    if (levels < 0 || levels > ARMCI_MAX_STRIDE_LEVEL)
        return FAIL4;
    if (count == NULL || (levels > 0 && (src_stride == NULL || dst_stride == NULL)))
        return FAIL2;
    if (count[0] < 0)
        return FAIL3;
    if (!aq_armci_is_proc(proc)) {
        aq_armci_say_no_rank(call, proc);
        return FAIL5;
    }
    section->call = call;
    section->src = src;
    section->dst = dst;
    section->bytes = (size_t)count[0];
    section->levels = 0;
    section->runs = 1;
    for (int i = 0; i < levels; i++) {
        if (count[i + 1] <= 0)
            return 1;
        if (count[i + 1] == 1)
            continue;
        section->src_stride[section->levels] = src_stride[i];
        section->dst_stride[section->levels] = dst_stride[i];
        section->count[section->levels] = (size_t)count[i + 1];
        section->runs *= (size_t)count[i + 1];
        section->levels++;
    }
    return section->bytes == 0;
}

void aq_armci_cursor_begin(struct aq_armci_cursor *at, const struct aq_armci_section *section)
{
    *at = (struct aq_armci_cursor){ .section = section, .src = section->src, .dst = section->dst };
}

void aq_armci_cursor_next(struct aq_armci_cursor *at)
{
    const struct aq_armci_section *section = at->section;

    at->done = 0;
    for (size_t i = 0; i < section->levels; i++) {
        at->src += section->src_stride[i];
        at->dst += section->dst_stride[i];
        if (++at->index[i] < section->count[i])
            return;
        at->src -= (ptrdiff_t)section->count[i] * section->src_stride[i];
        at->dst -= (ptrdiff_t)section->count[i] * section->dst_stride[i];
        at->index[i] = 0;
    }
}

int aq_armci_check_giov(const char *call, const armci_giov_t *darr, int len, int proc)
{
    if (darr == NULL || len < 1)
        return FAIL;
    if (!aq_armci_is_proc(proc)) {
        aq_armci_say_no_rank(call, proc);
        return FAIL5;
    }
    for (int i = 0; i < len; i++) {
        if (darr[i].src_ptr_array == NULL || darr[i].dst_ptr_array == NULL)
            return FAIL2;
        if (darr[i].bytes < 1)
            return FAIL3;
        if (darr[i].ptr_array_len < 1)
            return FAIL4;
    }
    return 0;
}

/* Copies n runs between ptr and buf. bytes is a constant where a compiler makes a load of it. */
static inline __attribute__((always_inline)) void pack_runs(char *ptr, ptrdiff_t stride, int n,
                                                            size_t bytes, char *buf, bool out)
{
    for (; n > 0; n--, ptr += stride, buf += bytes)
        memcpy(out ? buf : ptr, out ? ptr : buf, bytes);
}

static void pack_level(char *ptr, ptrdiff_t stride, int n, size_t bytes, char *buf, bool out)
{
    switch (bytes) {
    case 4:
        pack_runs(ptr, stride, n, 4, buf, out);
        break;
    case 8:
        pack_runs(ptr, stride, n, 8, buf, out);
        break;
    case 16:
        pack_runs(ptr, stride, n, 16, buf, out);
        break;
    default:
        pack_runs(ptr, stride, n, bytes, buf, out);
        break;
    }
}

/* Copies runs between ptr and buf in the order of addresses: level 1 changes fastest. */
static void pack(char *ptr, int levels, const int stride_arr[], const int count[], char **buf,
                 bool out)
{
    if (levels <= 1) {
        const size_t bytes = (size_t)count[0];
        const int n = levels == 0 ? 1 : count[1];

        pack_level(ptr, levels == 0 ? 0 : stride_arr[0], n, bytes, *buf, out);
        *buf += (size_t)(n > 0 ? n : 0) * bytes;
        return;
    }
    for (int i = 0; i < count[levels]; i++)
        pack(ptr + (ptrdiff_t)i * stride_arr[levels - 1], levels - 1, stride_arr, count, buf, out);
}

void armci_write_strided(void *ptr, int stride_levels, int stride_arr[], int count[], char *buf)
{
    pack(ptr, stride_levels, stride_arr, count, &buf, true);
}

void armci_read_strided(void *ptr, int stride_levels, int stride_arr[], int count[], char *buf)
{
    pack(ptr, stride_levels, stride_arr, count, &buf, false);
}
