/* SPDX-License-Identifier: Apache-2.0 */
/* Look-ups in errors.def. The table must be in order of its numbers (tests/unit/driver/test_errors.c checks it). */
#include "driver/errors.h"

#include <stddef.h>
#include <stdlib.h>

typedef struct error_row {
  int number;
  const char *runtime, *driver; /* NULL: not in that interface */
  bool sticky;
  const char *text;
} error_row;

/* A prefix is put before a name, unless the name is empty: sizeof "" == 1. */
#define NAME(prefix, name) (sizeof name > 1 ? prefix name : NULL)
static const error_row rows[] = {
    {0, "cudaSuccess", "CUDA_SUCCESS", false, "no error"},
#define X(number, runtime, driver, sticky, text) \
  {number, NAME("cudaError", runtime), NAME("CUDA_ERROR_", driver), sticky, text},
#include "driver/errors.def"
#undef X
};
#undef NAME

static int compare_row(const void *key, const void *row) {
  int number = *(const int *)key, other = ((const error_row *)row)->number;
  return (number > other) - (number < other);
}

static const error_row *find_row(int number) {
  return bsearch(&number, rows, sizeof rows / sizeof *rows, sizeof *rows, compare_row);
}

const char *cuda_error_name(int error) {
  const error_row *row = find_row(error);
  return row && row->runtime ? row->runtime : "unrecognized error code";
}

const char *cuda_error_string(int error) {
  const error_row *row = find_row(error);
  return row && row->runtime ? row->text : "unrecognized error code";
}

const char *cuda_result_name(int result) {
  const error_row *row = find_row(result);
  return row ? row->driver : NULL;
}

const char *cuda_result_string(int result) {
  const error_row *row = find_row(result);
  return row && row->driver ? row->text : NULL;
}

bool cuda_error_sticky(int error) {
  const error_row *row = find_row(error);
  return row && row->sticky;
}

int cuda_error_to_result(int error) {
  static const struct {
    int error, result;
  } others[] = {
      {9, 1},    /* invalid configuration -> invalid value: what cuLaunchKernel says of an impossible grid */
      {12, 1},   /* invalid pitch -> invalid value */
      {13, 500}, /* invalid symbol -> not found */
      {16, 1},   {17, 1}, {18, 1}, {20, 1}, {21, 1}, /* pointer, texture, descriptor, direction -> invalid value */
      {19, 1},   {26, 1}, {27, 1}, {37, 1}, /* texture binding, filter, normalisation, surface -> invalid value */
      {52, 1},                              /* missing configuration */
      {98, 400},                            /* invalid device function -> invalid handle */
      {35, 36},                             /* insufficient driver -> call requires newer driver */
  };
  const error_row *row = find_row(error);
  if (row && row->driver) return error;
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (others[i].error == error) return others[i].result;
  return 999;
}

int cuda_result_to_error(int result) {
  const error_row *row = find_row(result);
  if (row && row->runtime) return result;
  return result == 202 ? 201 : 999; /* context already current: the runtime knows only invalid contexts */
}
