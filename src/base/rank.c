/* SPDX-License-Identifier: Apache-2.0 */
#include "base/rank.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>

/* A number that is no number says nothing. */
static int number_in(const char *variable) {
  const char *text = getenv(variable);
  if (!text || !isdigit((unsigned char)*text)) return -1;
  char *end;
  unsigned long number = strtoul(text, &end, 10);
  return *end || number >= INT_MAX ? -1 : (int)number;
}

/* The nearest launcher first: Open MPI's mpirun inside a job of Slurm leaves Slurm's variables as they were. */
int ff_rank(void) {
  const char *said = getenv("FARFAULT_RANK");
  if (said && *said) return number_in("FARFAULT_RANK");
  static const struct {
    const char *rank, *size;
  } launchers[] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                   {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"},
                   {"PMI_RANK", "PMI_SIZE"},
                   {"PMIX_RANK", "PMIX_SIZE"},
                   {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}};
  for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
    int rank = number_in(launchers[i].rank);
    if (rank >= 0) return number_in(launchers[i].size) == 1 ? -1 : rank;
  }
  return -1;
}
