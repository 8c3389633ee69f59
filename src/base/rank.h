/* SPDX-License-Identifier: Apache-2.0 */
/* Which of the processes this one is that mpirun, mpiexec or srun started together: they tell it by variables.
 * FARFAULT_RANK counts before theirs; what is no number there ("none") says that it was started alone. */
#ifndef FF_BASE_RANK_H
#define FF_BASE_RANK_H

/* From 0; -1: it was started alone, or is the only one. */
int ff_rank(void);

#endif
