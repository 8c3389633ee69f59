/* SPDX-License-Identifier: Apache-2.0 */
/* What `farfault machine schema` prints. */
#ifndef FF_CLI_MACHINE_COMMAND_H
#define FF_CLI_MACHINE_COMMAND_H

#include "base/text.h"

/* The JSON Schema (draft 7, which editors know) of machine files, from the tables of values and limits, added to
 * *out. */
void machine_schema_write(ff_text *out);

#endif
