/* SPDX-License-Identifier: Apache-2.0 */
/* A PTX file of which single kernels are wanted: what all of them share, and where each one is.
 *
 * A translation unit of PyTorch's may have thousands of kernels, of which a program uses a few. Only what is used is
 * parsed. Kernels that launch kernels name each other: a file with such is not taken apart. Names are compared in their
 * common form (kernel_name.h). Files are not trusted. */
#ifndef FF_DRIVER_KERNEL_TEXT_H
#define FF_DRIVER_KERNEL_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* What the text defines, in its order: a kernel (with where its statement begins and ends, in bytes), or a variable. */
typedef struct kernel_definition {
  const char *name; /* in the text, not NUL-terminated */
  size_t name_length;
  bool kernel, has_body;
  size_t begin, end;
} kernel_definition;
/* False: it is no PTX. */
bool kernel_text_scan(const char *text, size_t length, void (*each)(void *context, const kernel_definition *definition),
                      void *context);

typedef struct kernel_text kernel_text;

/* The caller frees *out with kernel_text_close. */
ff_status kernel_text_open(const char *path, kernel_text **out, ff_error *error);
void kernel_text_close(kernel_text *text);

/* What is in front of any kernel's own statement: all variables and functions, or, of a file that is not taken apart,
 * everything. NUL-terminated; the text's own. */
const char *kernel_text_shared(const kernel_text *text, size_t *length);
/* The kernel as the file has its name; NULL: it has none such, or is not taken apart. Both live as long as the text. */
const char *kernel_text_name(const kernel_text *text, const char *name);
const char *kernel_text_next(const kernel_text *text, size_t index); /* by index; NULL: no more */
/* The statement of a kernel that kernel_text_name has given, NUL-terminated; the caller frees it. FF_IO: the file,
 * of more than a MiB, is not what it was. */
ff_status kernel_text_read(const kernel_text *text, const char *name, char **statement, size_t *length,
                           ff_error *error);

#endif
