/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of reproductions, and by no other file. */
#ifndef FF_STUDY_REPRO_PRIVATE_H
#define FF_STUDY_REPRO_PRIVATE_H

#include "partition/hash.h"
#include "reproduce/reproduce.h"

/* The quantity for one program; REPRO_NONE: not measured. "both=x&y" for a: of a speed that of `both` over the product
 * of x's and y's, each over b; of what is saved that of `both` less the sum of x's and y's. */
double repro_program_value(const repro_data *data, uint32_t program, repro_quantity quantity, const char *a,
                           const char *b);

/* "yes", "no", "fitted"; "": there is nothing to compare. */
const char *repro_within(const repro_paper *paper, const repro_row *row, double score);

/* Chains of dependent loads (Jain 2019, section V-F). */
typedef struct chain_place {
  uint32_t module, bank, set;
} chain_place;
typedef struct chain_request {
  uint32_t chains;   /* a block of one thread each */
  uint32_t loads;    /* of each */
  uint64_t physical; /* where the program's memory will begin: a multiple of 2 MiB; it takes chain_bytes */
  chain_place place; /* of all their lines */
} chain_request;

/* Writes a recording of a program that allocates memory and launches one kernel with that many chains. Each follows
 * CHAIN_LINES lines again and again, of its own, more than a set has ways, each in a row of its own. FF_LIMIT: there
 * are not so many lines of that place. */
ff_status chain_write(const address_hash *hash, const chain_request *request, const char *path, ff_error *error);
uint64_t chain_bytes(const chain_request *request);

enum { REPRO_TOM_LINK_GBS = 40 };  /* each way between the GPU and a stack in machines/tom.yaml, for shares of it */
enum { REPRO_GTX1080_MHZ = 1733 }; /* core clock in machines/gtx1080.yaml, for figures in cycles */

#define REPRO_COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif
