dnl aq_options.m4 - options that are accepted because build systems of clients pass them.
dnl SPDX-License-Identifier: BSD-3-Clause
dnl
dnl Each names something that this library decides at run time or has only one form of, so none of
dnl them changes the build; declaring them keeps configure from warning about them. Kinds of memory
dnl that this library has not got are refused, but may be switched off or looked for.

AC_DEFUN([AQ_ACCEPTED_OPTIONS],
[m4_foreach_w([aq_option],
  [trace stats srclines debug-malloc pthreads rwlock tls threadinfo-opt rpath mpi-compat pshm
   pshm-posix pshm-sysv pshm-file pshm-hugetlbfs pshm-xpmem large-pshm hugetlbfs aligned-segments
   backtrace memory-kinds hwloc-utils plpa pmi pmi2-fast-barrier
   valgrind dev-warnings gasnet-verbose cross-compile fork pdeathsig mmap loopback-memsync
   throttle-poll conservative-local-copy system-debug-malloc force-generic-atomicops
   force-os-atomicops force-compiler-atomicops force-native-timers force-gettimeofday
   force-posix-realtime force-yield-membars force-slow-membars force-true-weakatomics
   force-generic-semaphores full-path-expansion bug3480-workaround ibv-odp],
  [AC_ARG_ENABLE(aq_option, [])
])
m4_foreach_w([aq_option],
  [max-pthreads-per-node mpi-cc mpi-cflags mpi-libs mpirun-cmd host-detect cache-line-bytes maxeps
   segment-mmap-max smp-spawner perl cpp cxxcpp ssh-cmd ssh-options ssh-nodefile ssh-out-degree],
  [AC_ARG_WITH(aq_option, [])
])
m4_foreach_w([aq_option], [kind-cuda-uva kind-hip kind-ze],
  [AC_ARG_ENABLE(aq_option, [],
    [AS_CASE([$enableval], [no|probe], [],
      [AC_MSG_ERROR([--enable-]aq_option[: this library has no memory of devices yet, only host
  memory (GEX_MK_HOST); leave the option out, or write --disable-]aq_option)])])
])
AS_IF([test "x$enable_pthreads" = xno && test "x$enable_par" = xyes],
  [AC_MSG_ERROR([--enable-par needs threads, which --disable-pthreads forbids])])
])

dnl AQ_COMPILER_OPTIONS - the --with- spellings of CC, CFLAGS and their like; call before AC_PROG_CC.
AC_DEFUN([AQ_COMPILER_OPTIONS],
[m4_foreach([aq_pair], [[cc,CC], [cxx,CXX], [cflags,CFLAGS], [cxxflags,CXXFLAGS],
    [cppflags,CPPFLAGS], [ldflags,LDFLAGS], [libs,LIBS]],
  [AQ_COMPILER_OPTION(aq_pair)
])])

AC_DEFUN([AQ_COMPILER_OPTION],
[AC_ARG_WITH([$1], [AS_HELP_STRING([--with-$1=VALUE], [the same as $2=VALUE])],
  [AS_CASE([$withval], [yes|no], [AC_MSG_ERROR([--with-$1 needs a value])], [$2=$withval])])])
