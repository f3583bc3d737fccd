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
    call sort()
    call diagonalise()
    call ga_terminate()
    call mpi_finalize(status)
contains

    ! Bins of numbers from all ranks, which count them; each bin is then sorted where it lies.
    subroutine sort()
        integer, parameter :: bins = 24, each = 10, total = bins * each
        integer :: counts, offsets, marks, sorted, map(nproc), first(1), last(1)
        integer :: values(total), place(total), bin(total), ones(total), mine, k

        first = 1
        last = bins
        ok = nga_create(mt_int, 1, last, 'counts', [-1_8], counts)
        ok = ga_duplicate(counts, offsets, 'offsets') .and. ok
        ok = ga_duplicate(counts, marks, 'marks') .and. ok
        do k = 1, nproc
            map(k) = (k - 1) * (bins / nproc) * each + 1
        end do
        last = total
        ok = nga_create_irreg(mt_int, 1, last, 'sorted', map, [nproc], sorted) .and. ok
        mine = 0
        do k = me, total - 1, nproc
            mine = mine + 1
            values(mine) = mod(k * 77, 241)
            place(mine) = k + 1
            bin(mine) = k / each + 1
            ones(mine) = 1
        end do
        call ga_zero(counts)
        call ga_zero(marks)
        if (me == 0) call nga_put(marks, first, first, ones, last)
        call nga_scatter_acc(counts, ones, bin, mine, 1)
        call ga_sync()
        call ga_scan_add(counts, offsets, marks, 1, bins, 1)
        call nga_scatter(sorted, values, place, mine)
        call ga_sync()
        call ga_bin_sorter(sorted, counts, offsets)
        call ga_sync()
        call nga_get(sorted, first, last, values, last)
        if (me == 0) print '(a, l2)', 'bins', ok
        if (me == 0) print '(10i6)', values
        ok = ga_destroy(counts)
        ok = ga_destroy(offsets)
        ok = ga_destroy(marks)
        ok = ga_destroy(sorted)
    end subroutine

    ! By the routines of ScaLAPACK that the library has, which move data by MPI: eigenvalues, and
    ! how far A x is from lambda x.
    subroutine diagonalise()
        integer :: x, ax
        double precision :: values(n)

        ok = ga_create(mt_dbl, n, n, 'a', 0, 0, a)
        ok = ga_duplicate(a, x, 'x') .and. ok
        ok = ga_duplicate(a, ax, 'ax') .and. ok
        do i = me + 1, n, nproc
            do drawn = 1, n
                column(drawn) = mod(i + drawn, 5) + mod(i * drawn, 3)
            end do
            column(i) = 2 * i
            call ga_put(a, 1, n, i, i, column, n)
        end do
        call ga_sync()
        call ga_pdsyev(a, x, values, 8)
        call show('pdsyev', x, ax, values)
        call ga_pdsyevd(a, x, values, 8)
        call show('pdsyevd', x, ax, values)
        call ga_pdsyevx(a, x, values, 8)
        call show('pdsyevx', x, ax, values)
        ok = ga_destroy(a)
        ok = ga_destroy(x)
        ok = ga_destroy(ax)
    end subroutine

    subroutine show(what, x, ax, values)
        character(*), intent(in) :: what
        integer, intent(in) :: x, ax
        double precision, intent(in) :: values(n)
        double precision :: left

        call ga_dgemm('n', 'n', n, n, n, 1.0d0, a, x, 0.0d0, ax)
        do i = me + 1, n, nproc
            call ga_get(x, 1, n, i, i, column, n)
            call ga_acc(ax, 1, n, i, i, column, n, -values(i))
        end do
        call ga_sync()
        left = sqrt(ga_ddot(ax, ax))
        if (me == 0) print '(2a, 3f14.5, l2)', what, ':', values(1), values(2), values(n), left < 1d-9
    end subroutine
end program
