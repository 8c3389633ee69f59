/* SPDX-License-Identifier: Apache-2.0 */
/* From a request to an image (compile/image.h). */
#ifndef FF_COMPILE_EMIT_H
#define FF_COMPILE_EMIT_H

#include "compile/request.h"

/* The caller frees *image. False: *message (static) says why there is none. */
bool emit_image(const native_request *request, unsigned char **image, uint32_t *bytes, const char **message);

#endif
