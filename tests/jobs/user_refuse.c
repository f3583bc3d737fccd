/*
 * user_refuse.c - runs a program in which process_vm_readv and process_vm_writev are refused with
 * EPERM, as a container's seccomp profile does.
 * Usage: user_refuse [--kill] program args...; with --kill a call ends the process instead, which
 * shows that there was none. Exit status 77 if the kernel takes no filter.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef SECCOMP_RET_KILL_PROCESS
#define SECCOMP_RET_KILL_PROCESS SECCOMP_RET_KILL
#endif

/* No look at the architecture: only our own programs run under this. */
static int refuse(unsigned answer)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, answer),
    };
    struct sock_fprog program = { sizeof(rules) / sizeof(rules[0]), rules };

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
           && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* Is a process refused even its own memory now? */
static int is_refused(void)
{
    char from = 1, to = 0;
    struct iovec self = { &to, 1 }, remote_addr = { &from, 1 };

    return process_vm_readv(getpid(), &self, 1, &remote_addr, 1, 0) < 0 && errno == EPERM;
}

int main(int argc, char **argv)
{
    const int kill = argc > 1 && strcmp(argv[1], "--kill") == 0;

    if (argc < 2 + kill)
        return 2;
    if (!refuse(kill ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ERRNO | EPERM)) {
        fprintf(stderr, "seccomp: %s\n", strerror(errno));
        return 77;
    }
    if (!kill && !is_refused())
        return 77;
    execvp(argv[1 + kill], argv + 1 + kill);
    fprintf(stderr, "%s: %s\n", argv[1 + kill], strerror(errno));
    return 127;
}
