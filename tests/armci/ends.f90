! ends.f90 - a job in Fortran that rank 2 ends by ARMCI_Error, while the other ranks wait. Run by ends.sh.
! SPDX-License-Identifier: BSD-3-Clause
program ends
    use mpi
    use, intrinsic :: iso_c_binding
    implicit none
    interface
        integer(c_int) function armci_init() bind(c, name="ARMCI_Init")
            import
        end function
        subroutine armci_barrier() bind(c, name="ARMCI_Barrier")
        end subroutine
        subroutine armci_error(text, code) bind(c, name="ARMCI_Error")
            import
            character(kind=c_char), intent(in) :: text(*)
            integer(c_int), value :: code
        end subroutine
    end interface
    integer :: me, failed

    call MPI_Init(failed)
    if (armci_init() /= 0) error stop 3
    call MPI_Comm_rank(MPI_COMM_WORLD, me, failed)
    if (me == 2) call armci_error("enough of Fortran" // c_null_char, 7)
    call armci_barrier() ! rank 2 never comes
    error stop 4
end program
