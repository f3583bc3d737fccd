! SPDX-License-Identifier: BSD-3-Clause
! hybrid.f90 - a Fortran program that solves with MPI and exchanges halos through Aqueduct (hybrid.c).
!
! A row of cells is shared out among the ranks. In each step the edges go to the neighbours, by MPI_Sendrecv in even steps and
! by put and active message in odd ones; then every cell becomes the mean of its neighbours. The same is computed by
! every rank for the whole row, and the two must be equal to the last bit.
!
! MPI is initialised here, before Aqueduct, and finalised here, before Aqueduct ends the process.
! With the argument spoil, one value that rank 1 got through Aqueduct is changed: the test of the test.
program hybrid
    use mpi
    use iso_c_binding
    implicit none

    interface
        function aq_start(rank, ranks) bind(c, name='hybrid_start') result(code)
            import :: c_int
            integer(c_int), intent(out) :: rank, ranks
            integer(c_int) :: code
        end function
        subroutine aq_halo(left_edge, right_edge, left_halo, right_halo) bind(c, name='hybrid_halo')
            import :: c_double
            real(c_double), intent(in) :: left_edge, right_edge
            real(c_double), intent(out) :: left_halo, right_halo
        end subroutine
        subroutine aq_exit(code) bind(c, name='hybrid_exit')
            import :: c_int
            integer(c_int), value :: code
        end subroutine
    end interface

    integer, parameter :: cells = 200, steps = 60
    integer(c_int) :: rank, ranks
    integer :: error, provided, step, wrong, all_wrong, first, mpi_ranks
    double precision, allocatable :: mine(:), whole(:), next(:)
    character(len=8) :: word

    call mpi_init_thread(MPI_THREAD_MULTIPLE, provided, error)
    if (aq_start(rank, ranks) /= 0) stop 1
    call mpi_comm_size(MPI_COMM_WORLD, mpi_ranks, error)
    if (mpi_ranks /= ranks) stop 2
    call get_command_argument(1, word)
    allocate (mine(0:cells + 1), next(cells), whole(0:cells * ranks + 1))
    whole = 0
    do step = 1, cells * ranks
        whole(step) = mod(step * 37, 101) / 7d0
    end do
    first = rank * cells
    mine = whole(first:first + cells + 1)
    do step = 1, steps
        if (mod(step, 2) == 0) then
            call mpi_halo()
        else
            call aq_halo(mine(1), mine(cells), mine(0), mine(cells + 1))
            if (word == 'spoil' .and. rank == 1 .and. step == steps - 1) mine(0) = mine(0) + 1d-9
        end if
        next = (mine(0:cells - 1) + mine(2:cells + 1)) / 2
        mine(1:cells) = next
        whole(1:cells * ranks) = (whole(0:cells * ranks - 1) + whole(2:cells * ranks + 1)) / 2
    end do
    wrong = count(mine(1:cells) /= whole(first + 1:first + cells))
    call mpi_allreduce(wrong, all_wrong, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
    if (wrong == 0) then
        print '(a,i0,a,i0,a)', 'rank ', rank, ' of ', ranks, ' right'
    else
        print '(a,i0,a,i0,a)', 'rank ', rank, ': ', wrong, ' cells are wrong'
    end if
    flush (6)
    call mpi_finalize(error)
    call aq_exit(merge(1, 0, all_wrong > 0))

contains

    subroutine mpi_halo()
        integer :: to_left, to_right

        to_left = merge(int(rank) - 1, MPI_PROC_NULL, rank > 0)
        to_right = merge(int(rank) + 1, MPI_PROC_NULL, rank < ranks - 1)
        call mpi_sendrecv(mine(1), 1, MPI_DOUBLE_PRECISION, to_left, 1, mine(cells + 1), 1, MPI_DOUBLE_PRECISION, to_right, 1, &
                          MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
        call mpi_sendrecv(mine(cells), 1, MPI_DOUBLE_PRECISION, to_right, 2, mine(0), 1, MPI_DOUBLE_PRECISION, to_left, 2, &
                          MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
        call mpi_barrier(MPI_COMM_WORLD, error)
    end subroutine
end program
