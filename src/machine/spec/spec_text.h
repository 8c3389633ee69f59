/* SPDX-License-Identifier: Apache-2.0 */
/* A machine file as a text: what stands at each value and its source, and a new file that is like it but for some
 * values and keeps everything else, comments too. */
#ifndef FF_MACHINE_SPEC_TEXT_H
#define FF_MACHINE_SPEC_TEXT_H

#include "base/text.h"
#include "machine/spec/spec_table.h"

typedef struct spec_span { /* of bytes of the text, with quotes */
  size_t start, end;
} spec_span;

typedef struct spec_entry {
  char *value, *source; /* as written; of tables in one line: "[[4K, 3.22], [8K, 4.87]]". NULL: not in the file */
  spec_span value_span, source_span; /* of single values */
  bool inherited;                    /* it stands in the file of the machine that this one is like */
} spec_entry;

typedef struct spec_text {
  char path[256]; /* of the file */
  char *text;
  size_t size;
  machine_spec spec;
  spec_entry entries[SPEC_PARAM_COUNT];
  spec_span title, like_span;
  char *like, *like_path; /* the machine that it is like, as written, and its file; NULL: none */
  /* of the value's group: where the line of its first value begins; 0: not in the file */
  size_t group_line[SPEC_PARAM_COUNT];
} spec_text;

/* A bundled machine's name or a file, as machine_spec_load; refused in the same way. spec_text_free. */
ff_status spec_text_read(const char *name, spec_text *text, ff_error *error);
void spec_text_free(spec_text *text);


/* The new file's text, added to *out: `count` changes, each with the source `source` (NULL: that it was set, and what
 * the old value and source were), and the title (NULL: the old one and what was changed). The text loads, and gives the
 * machine that machine_spec_set_all makes. FF_INVALID: a change cannot be made; FF_UNSUPPORTED: the file is written in
 * a form that cannot be edited. */
ff_status spec_text_change(const spec_text *base, const char *const *assignments, size_t count, const char *source,
                           const char *title, ff_text *out, ff_error *error);

#endif
