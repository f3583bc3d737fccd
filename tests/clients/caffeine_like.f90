! caffeine_like.f90 - a Fortran program over caffeine_like.c; every image prints "R of N right".
! SPDX-License-Identifier: BSD-3-Clause
module caf_interface
  use, intrinsic :: iso_c_binding
  implicit none
  interface
    subroutine caf_init(team, rank, size, segment) bind(c)
      import
      type(c_ptr), intent(out) :: team, segment
      integer(c_int), intent(out) :: rank, size
    end subroutine
    subroutine caf_form_team(parent, number, team) bind(c)
      import
      type(c_ptr), value :: parent
      integer(c_int64_t), value :: number
      type(c_ptr), intent(out) :: team
    end subroutine
    subroutine caf_team_info(team, rank, size) bind(c)
      import
      type(c_ptr), value :: team
      integer(c_int), intent(out) :: rank, size
    end subroutine
    subroutine caf_sync(team) bind(c)
      import
      type(c_ptr), value :: team
    end subroutine
    subroutine caf_broadcast(team, root, data, bytes) bind(c)
      import
      type(c_ptr), value :: team, data
      integer(c_int), value :: root
      integer(c_size_t), value :: bytes
    end subroutine
    subroutine caf_sum_int64(team, data, count) bind(c)
      import
      type(c_ptr), value :: team
      integer(c_int64_t), intent(inout) :: data(*)
      integer(c_size_t), value :: count
    end subroutine
    subroutine caf_reduce_pairs(team, data, count, operation) bind(c)
      import
      type(c_ptr), value :: team
      real(c_double), intent(inout) :: data(*)
      integer(c_size_t), value :: count
      type(c_funptr), value :: operation
    end subroutine
    subroutine caf_put_strided(rank, offset, remote_stride, first, stride, element, extent, dims) bind(c)
      import
      integer(c_int), value :: rank
      integer(c_size_t), value :: offset, element, dims
      integer(c_ptrdiff_t), intent(in) :: remote_stride(*), stride(*)
      type(c_ptr), value :: first
      integer(c_size_t), intent(in) :: extent(*)
    end subroutine
    subroutine caf_get_strided(rank, offset, remote_stride, first, stride, element, extent, dims) bind(c)
      import
      integer(c_int), value :: rank
      integer(c_size_t), value :: offset, element, dims
      integer(c_ptrdiff_t), intent(in) :: remote_stride(*), stride(*)
      type(c_ptr), value :: first
      integer(c_size_t), intent(in) :: extent(*)
    end subroutine
    subroutine caf_event_post(rank, offset) bind(c)
      import
      integer(c_int), value :: rank
      integer(c_size_t), value :: offset
    end subroutine
    subroutine caf_event_wait(offset, threshold) bind(c)
      import
      integer(c_size_t), value :: offset
      integer(c_int64_t), value :: threshold
    end subroutine
    function caf_atomic(rank, offset, which, operand) bind(c) result(new)
      import
      integer(c_int), value :: rank, which
      integer(c_size_t), value :: offset
      integer(c_int64_t), value :: operand
      integer(c_int64_t) :: new
    end function
    subroutine caf_stop(code) bind(c)
      import
      integer(c_int), value :: code
    end subroutine
  end interface
contains
  ! minimum of the first, maximum of the second
  subroutine widen(left, right) bind(c)
    real(c_double), intent(in) :: left(2)
    real(c_double), intent(inout) :: right(2)
    right(1) = min(left(1), right(1))
    right(2) = max(left(2), right(2))
  end subroutine
end module

program caffeine_like
  use caf_interface
  implicit none
  integer, parameter :: n = 6
  integer(c_size_t), parameter :: counter = 0, event = 8, matrix = 4096
  type(c_ptr) :: world, team, segment
  integer(c_int) :: me, images, next, team_me, team_size
  integer(c_int64_t) :: sums(2)
  real(c_double) :: pair(2)
  real(c_double), target :: a(n, n), b(n, n), scalar
  real(c_double), target :: sent
  integer(c_int64_t), pointer :: words(:)
  integer :: i, j
  logical :: right = .true.

  call caf_init(world, me, images, segment)
  call c_f_pointer(segment, words, [2])
  words = 0
  next = mod(me + 1, images)
  call caf_sync(world)

  ! the transpose of a(2:5:3, 6:2:-2) into the neighbour's matrix, and back
  do j = 1, n
    do i = 1, n
      a(i, j) = 100 * me + 10 * i + j
    end do
  end do
  b = 0
  call caf_put_strided(next, matrix, [int(8 * n, c_ptrdiff_t), 8_c_ptrdiff_t], c_loc(a(2, 6)), &
                       [24_c_ptrdiff_t, -int(16 * n, c_ptrdiff_t)], 8_c_size_t, [2_c_size_t, 3_c_size_t], 2_c_size_t)
  call caf_get_strided(next, matrix, [int(8 * n, c_ptrdiff_t), 8_c_ptrdiff_t], c_loc(b(2, 6)), &
                       [24_c_ptrdiff_t, -int(16 * n, c_ptrdiff_t)], 8_c_size_t, [2_c_size_t, 3_c_size_t], 2_c_size_t)
  right = right .and. all(b(2:5:3, 6:2:-2) == a(2:5:3, 6:2:-2)) .and. count(b /= 0) == 6

  ! no dimensions at all: a scalar
  sent = me + 0.5
  call caf_put_strided(next, matrix + 2048, [0_c_ptrdiff_t], c_loc(sent), [0_c_ptrdiff_t], 8_c_size_t, &
                       [0_c_size_t], 0_c_size_t)
  call caf_get_strided(next, matrix + 2048, [0_c_ptrdiff_t], c_loc(scalar), [0_c_ptrdiff_t], 8_c_size_t, &
                       [0_c_size_t], 0_c_size_t)
  right = right .and. scalar == sent

  ! events and atomics
  call caf_event_post(next, event)
  call caf_event_wait(event, 1_c_int64_t)
  right = right .and. caf_atomic(0, counter, 0, 5_c_int64_t) >= 5
  call caf_sync(world)
  right = right .and. caf_atomic(0, counter, 2, 0_c_int64_t) == 5_c_int64_t * images

  ! teams without scratch, a wide number for the colour
  call caf_form_team(world, int(mod(me, 2), c_int64_t) + 4294967296_c_int64_t, team)
  call caf_team_info(team, team_me, team_size)
  right = right .and. team_me == me / 2
  call caf_sync(team)
  sums = [int(1, c_int64_t), int(me, c_int64_t)]
  call caf_sum_int64(team, sums, 2_c_size_t)
  right = right .and. sums(1) == team_size
  pair = [real(me, c_double), real(me, c_double)]
  call caf_reduce_pairs(team, pair, 1_c_size_t, c_funloc(widen))
  right = right .and. pair(1) == mod(me, 2) .and. pair(2) == mod(me, 2) + 2 * (team_size - 1)
  scalar = me
  call caf_broadcast(team, team_size - 1, c_loc(scalar), 8_c_size_t)
  right = right .and. scalar == mod(me, 2) + 2 * (team_size - 1)
  call caf_sync(world)

  if (right) print '(i0,a,i0,a)', me, ' of ', images, ' right'
  flush (6)
  call caf_sync(world)
  call caf_stop(merge(0_c_int, 1_c_int, right))
end program
