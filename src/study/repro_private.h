/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of reproductions, and by nobody else. */
#ifndef FF_STUDY_REPRO_PRIVATE_H
#define FF_STUDY_REPRO_PRIVATE_H

#include "study/reproduce.h"

/* The quantity for one program; REPRO_NONE: not measured. */
double repro_program_value(const repro_data *data, uint32_t program, repro_quantity quantity, const char *a, const char *b);

#define REPRO_COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif
