/*
 * brought.h - what clients use without including its header: one thing of each that gasnetex.h and
 * gasnet_tools.h bring. HEADER is the one of the two that is asked.
 *
 * Compiling it is the test. SPDX-License-Identifier: BSD-3-Clause
 */
#include HEADER

int brought(const char *format, ...);
int brought(const char *format, ...)
{
    char *text = (char *)malloc(BUFSIZ); /* stdlib.h, stdio.h */
    va_list list;                        /* stdarg.h */
    uint64_t many = UINT64_MAX;          /* stdint.h, without __STDC_LIMIT_MACROS */
    size_t length = 0;                   /* stddef.h */
    int failure = errno = EINTR;         /* errno.h */
    int sum = INT_MAX;                   /* limits.h */

    va_start(list, format);
    if (text == NULL || vsnprintf(text, BUFSIZ, format, list) < 0)
        fprintf(stderr, "%" PRIu64 "\n", many); /* inttypes.h, without __STDC_FORMAT_MACROS */
    va_end(list);
    if (text != NULL)
        length = strlen(text);            /* string.h */
    sum -= isdigit('7') ? 1 : 2;          /* ctype.h */
    sum -= (int)getpid() + sched_yield(); /* unistd.h, sched.h */
#if defined(GASNET_PAR) || defined(GASNET_PARSYNC) || defined(GASNETT_THREAD_SAFE)
    {
        pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

        pthread_mutex_lock(&lock); /* pthread.h */
        pthread_mutex_unlock(&lock);
    }
#endif
    fflush(stdout);
    free(text);
    return sum + failure + (int)length;
}
