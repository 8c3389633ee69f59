/* SPDX-License-Identifier: Apache-2.0 */
/* YAML files (machines, studies) by libfyaml: a text is opened, the caller walks its nodes, and every error names the
 * file, the line and the column, with a caret.
 *
 * Libfyaml is given only UTF-8 text without directives (lines that begin with %; one of them with
 * bytes that are no text keeps its scanner busy for ever) and without keys behind a `?` (its version 0.7.12 reads
 * memory that is not its own when it gives up a document that begins so); a file is one document; anchors' aliases are
 * no scalars, so that a file cannot be larger than it looks; a key may come twice: the caller looks for that, since the
 * message is its own. */
#ifndef FF_BASE_YAML_H
#define FF_BASE_YAML_H

#include <libfyaml.h>

#include "base/text.h"

enum { FF_YAML_SCALAR = 1023 }; /* bytes of a scalar, at most */

typedef struct ff_yaml {
  const char *file, *text; /* borrowed: the name for messages, the text */
  size_t size;
  ff_error *error;
  struct fy_diag *diag;
  struct fy_parser *parser;
  struct fy_document *document;
} ff_yaml;

/* Parses the text; `kind` is what the file should be, for messages ("machine"). After an error nothing has to be
 * closed. */
ff_status ff_yaml_open(const char *file, const char *text, size_t size, const char *kind, ff_yaml *yaml,
                       ff_error *error);
struct fy_node *ff_yaml_root(const ff_yaml *yaml); /* may be NULL */
void ff_yaml_close(ff_yaml *yaml);

/* The text of a scalar in `buffer` (FF_YAML_SCALAR + 1 bytes); false if it is none, too long, or has a NUL. */
bool ff_yaml_scalar(struct fy_node *node, char *buffer);
/* Where a scalar begins, from 1; a mapping or a sequence (or NULL) has no place of its own: 1 and 0. */
void ff_yaml_place(struct fy_node *node, uint32_t *line, uint32_t *column);
/* FF_PARSE with the message at the node's place. */
ff_status ff_yaml_fail(const ff_yaml *yaml, struct fy_node *node, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
