/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_amudp.c - libamudp.a: the helper library of the udp conduit that build systems of clients name
 * after the conduit's own. The conduit is whole without it; it holds the strings by which `ident
 * libamudp.a` says what it is.
 */
extern const char gasneti_amudp_ident[];
const char gasneti_amudp_ident[] = "$AMUDPLibraryVersion: 3.21 $\0$GASNetDefaultSpawnFunction: S $";
