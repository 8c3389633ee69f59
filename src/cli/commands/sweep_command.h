/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of `farfault sweep`: sweep_command.c (the command), sweep_run.c (points run, here and by other ranks, into
 * the database), sweep_rank.c (a rank that is told what to run). */
#ifndef FF_CLI_SWEEP_H
#define FF_CLI_SWEEP_H

#include <time.h>

#include "cli/cli.h"
#include "cli/running/slots.h"
#include "sweep/database.h"
#include "sweep/rank_message.h"

typedef struct sweep_cluster { /* what mpirun made us part of */
  const sweep_ranks *ranks;    /* NULL: one process */
  int rank, count;
} sweep_cluster;

/* Joins the ranks if mpirun started us. False with a message: that is not possible. */
bool sweep_cluster_join(sweep_cluster *cluster);
/* Seconds of silence after which a rank counts as lost. */
double sweep_cluster_patience(void);
/* How long to wait before ranks are asked again, if one was heard last at that time (slots_now). */
struct timespec sweep_poll(double heard);
/* The work of a rank other than 0; returns the exit status. `program`: as in sweep_work. */
int sweep_rank_work(const sweep_cluster *cluster, uint32_t at_once, const char *program, const char *database);
/* What the temporary files of a rank's children are known by: the database, and the rank; the caller frees it. */
char *sweep_folder_name(const char *database, int rank);
/* Rank 0 lets the others go (and waits a little for their leave). `lost`: some are gone already. */
void sweep_cluster_dismiss(const sweep_cluster *cluster, const bool *lost);

typedef struct sweep_work {
  const sweep_plan *plan;
  sweep_database *database;
  const sweep_cluster *cluster;
  const char *program; /* that runs a point; NULL: a copy of this process (cli_sim_point) */
  const char *output;  /* the database's path */
  uint32_t at_once;    /* points at a time in this process */
  uint32_t there;      /* points that were finished already: filled */
  uint32_t run;        /* points that were run now: filled */
  bool *lost;          /* ranks that are gone: filled, one per rank; NULL without a cluster */
  ff_error error;      /* the database could not be written: then the sweep stopped */
} sweep_work;

/* Runs every point that is not finished. Returns the signal that stopped it, 0: none. */
int sweep_run(sweep_work *work);

#endif
