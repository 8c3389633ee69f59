/* SPDX-License-Identifier: Apache-2.0 */
/* The error numbers of CUDA: names, texts, which are sticky, and how runtime and driver numbers map to each other.
 *
 * errors.def is the table. What always holds: since CUDA 10.1 a number means the same in both interfaces where both
 * have it, so the mappings change only the few that one of them lacks. All functions take any number. */
#ifndef FF_DRIVER_ERRORS_H
#define FF_DRIVER_ERRORS_H

#include <stdbool.h>

const char *cuda_error_name(int error);     /* "cudaErrorInvalidValue"; never NULL: "unrecognized error code" */
const char *cuda_error_string(int error);   /* "invalid argument"; never NULL: "unrecognized error code" */
const char *cuda_result_name(int result);   /* "CUDA_ERROR_INVALID_VALUE"; NULL: no such CUresult */
const char *cuda_result_string(int result); /* "invalid argument"; NULL: no such CUresult */
bool cuda_error_sticky(int error);          /* every later call returns it, until the device is reset */
/* cudaError_t -> CUresult; what has no counterpart becomes the nearest, or 999 */
int cuda_error_to_result(int error);
int cuda_result_to_error(int result); /* CUresult -> cudaError_t; the same */

#endif
