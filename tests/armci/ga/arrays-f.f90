! arrays-f.f90 - Global Arrays through its Fortran interface: rank 0 prints what comes out.
! Compiled with integers of 8 bytes, as Debian's library is. SPDX-License-Identifier: BSD-3-Clause
program arrays
    implicit none
    include 'mpif.h'
#include "mafdecls.fh"
#include "global.fh"
    integer, parameter :: n = 50
    integer(4) :: status
    integer :: a, b, i, me, nproc, turn, drawn
    double precision :: column(n), total
    logical :: ok

    call mpi_init(status)
    call ga_initialize()
    ok = ma_init(mt_dbl, 1000000, 1000000)
    me = ga_nodeid()
    nproc = ga_nnodes()
    ok = ga_create(mt_dbl, n, n, 'a', 0, 0, a)
    ok = ga_duplicate(a, b, 'b') .and. ok
    do i = me + 1, n, nproc
        column = i
        call ga_put(a, 1, n, i, i, column, n)
    end do
    call ga_sync()
    column = 1
    call ga_acc(a, 1, n, n, n, column, n, 2.0d0)
    call ga_sync()
    call ga_get(a, 1, n, n, n, column, n)
    if (me == 0) print '(a, f14.4)', 'last column', (sum(column) - n * n) / nproc
    call ga_sync()
    call ga_dgemm('n', 't', n, n, n, 1.0d0, a, a, 0.0d0, b)
    call ga_transpose(b, a)
    total = ga_ddot(a, b) / ga_ddot(b, b)
    if (me == 0) print '(a, f14.4)', 'symmetric', total
    ok = ga_destroy(b) .and. ok
    ok = ga_create(mt_int, 4, 1, 'turns', 0, 0, b) .and. ok
    call ga_zero(b)
    drawn = 0
    do
        turn = ga_read_inc(b, 2, 1, 1)
        if (turn >= 200) exit
        drawn = drawn + 1
    end do
    call ga_igop(1, drawn, 1, '+')
    if (me == 0) print '(a, i8, l2)', 'turns', drawn, ok
    ok = ga_destroy(a)
    ok = ga_destroy(b)
    call ga_terminate()
    call mpi_finalize(status)
end program
