/* SPDX-License-Identifier: Apache-2.0 */
/* Colours of pages (Jain 2019, section V): pages of one colour share memory modules, pages of different colours share
 * none, so that a program which has some colours only can neither evict another's lines from the L2 nor keep another's
 * banks busy.
 *
 * A module has one colour, and all modules that a page touches have that page's colour (where not all pages can be
 * looked at: those that were). colours_create asserts it at the deep check level, for some pages.
 *
 *   xor hashes: module = M a. Addresses within a page of 2^p bytes add the vectors M e_b, b < p, which span a space W:
 *     a page touches one coset of W, its colour is that coset, and there are 2^(rank M - rank of M restricted to bits
 *     below p) of them. Bit i of
 *     the colour is a mask of the address again, a sum of the modules' masks in which all bits below p cancel.
 *   other hashes: modules that some page touches together get one colour. For interleave and modulo the pages of a
 *     whole period are looked at; for polynomials the first 2^degree pages, which leave every remainder once, as long
 *     as that is at most 2^17 pages
 *     and 2^24 pieces; beyond that as many pages as stay below, half of them from the start and half spread over 128
 *     GiB.
 *
 * More than COLOURS_MAX colours are put together, neighbours first, in equal groups if their number allows it. */
#ifndef FF_PARTITION_COLOURS_H
#define FF_PARTITION_COLOURS_H

#include "partition/hash.h"

enum { COLOURS_MAX = 64 }; /* a set of colours is a uint64_t: bit c is colour c */

typedef struct colours colours;

/* Of pages of `page_bytes` (a power of two, 128 bytes to 1 GiB), aligned to their size. hash NULL: one colour, one
 * module. The hash must outlive it; the caller frees it with colours_free. FF_INVALID: no such page. */
ff_status colours_create(const address_hash *hash, uint64_t page_bytes, colours **out, ff_error *error);
void colours_free(colours *c);

uint32_t colours_count(const colours *c); /* at least 1 */
uint64_t colours_all(const colours *c);   /* the set of all */
/* Of the page that has this address. */
uint32_t colours_of(const colours *c, uint64_t physical);
/* colours_of(a ^ b) = colours_of(a) ^ colours_of(b): the number of a colour is linear in the address. */
bool colours_linear(const colours *c);
uint32_t colours_of_module(const colours *c, uint32_t module);
uint32_t colours_modules_in(const colours *c, uint64_t set); /* how many modules these colours have */

#endif
