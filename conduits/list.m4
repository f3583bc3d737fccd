dnl list.m4 - the conduits, in order of preference: one line each; the rest is in conduits/NAME/.
dnl SPDX-License-Identifier: BSD-3-Clause
dnl
dnl conduits/NAME/conduit.m4 says when it can be built, conduits/NAME/Makefile.inc lists NAME_sources,
dnl conduits/NAME/include/ holds public headers that only this conduit has.  Run ./bootstrap after a change.
AQ_CONDUIT([smp], [one host, shared memory])
AQ_CONDUIT([ibv], [InfiniBand and RoCE: RDMA])
AQ_CONDUIT([udp], [any Ethernet, reliable messages over UDP])
AQ_CONDUIT([mpi], [any MPI-3 library])
