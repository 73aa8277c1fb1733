! A Fortran program that calls MPI, for mpi_layer.sh, which puts each of Fortran's interfaces in the place of MODULE: an all-reduce
! and a broadcast of 4,000 and 1,000 bytes five times, an all-reduce and an all-to-all in place, 1,000 bytes from every rank but 0
! to rank 0, and a barrier of each half of the ranks, half of which is a copy.
program mpi_program
  ! MODULE
  implicit none
  ! INCLUDE
  integer :: rank, ranks, error, i, counts(4), at(4), ints(250)
  double precision :: x(500), y(500)
  HANDLE(Comm) :: half, copy
  HANDLE(Request) :: request
  STATE :: status

  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  x = rank
  ints = rank
  do i = 1, 5
    call MPI_Allreduce(x, y, 500, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, error)
    call MPI_Bcast(ints, 250, MPI_INTEGER, 0, MPI_COMM_WORLD, error)
  end do
  if (any(y /= ranks * (ranks - 1) / 2) .or. any(ints /= 0)) call MPI_Abort(MPI_COMM_WORLD, 3, error)
  call MPI_Allreduce(MPI_IN_PLACE, y, 500, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, error)
  if (any(y /= ranks * (ranks * (ranks - 1) / 2))) call MPI_Abort(MPI_COMM_WORLD, 4, error)
  if (rank > 0) then
    call MPI_Send(ints, 250, MPI_INTEGER, 0, 7, MPI_COMM_WORLD, error)
  else
    do i = 1, ranks - 1
      call MPI_Irecv(ints, 250, MPI_INTEGER, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, request, error)
      call MPI_Wait(request, status, error)
    end do
  end if
  counts = 100
  at = (/ 0, 100, 200, 300 /)
  call MPI_Alltoallv(MPI_IN_PLACE, counts, at, MPI_DOUBLE_PRECISION, y, counts, at, MPI_DOUBLE_PRECISION, MPI_COMM_WORLD, error)
  call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), rank, half, error)
  call MPI_Comm_dup(half, copy, error)
  call MPI_Barrier(half, error)
  call MPI_Ibarrier(copy, request, error)
  call MPI_Wait(request, status, error)
  call MPI_Finalize(error)
end program mpi_program
