/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FF_COMPILE_CHECK_H
#define FF_COMPILE_CHECK_H

#include "compile/request.h"

/* Is this a request that the generator can read without looking at it again? False: *message says why not. */
bool check_request(const unsigned char *data, uint32_t bytes, const char **message);

#endif
