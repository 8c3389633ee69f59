/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions on the numbers of a run, as `--fail-if` takes them: "copy.time > 1.1 * baseline.copy.time".
 *
 *   condition  = and { ("or" | "||") and }          and     = not { ("and" | "&&") not }
 *   not        = ("not" | "!") not | comparison     comparison = sum [ ("<" | "<=" | ">" | ">=" | "==" | "!=") sum ]
 *   sum        = product { ("+" | "-") product }    product = sign { ("*" | "/") sign }
 *   sign       = "-" sign | number [unit] | name | "(" condition ")"
 *   name       = ["baseline."] manager "." metric   manager = as `farfault list managers` has it, or in quotes
 *   unit       = ps ns us ms s | B K KiB M MiB G GiB T TiB (powers of 1024) | %
 *
 * Every expression has a dimension (a power of time and one of bytes) that is known before it is evaluated: what adds
 * or compares different ones is refused, as is a whole that is no condition. Times are picoseconds inside. */
#ifndef FF_COMPARE_CONDITION_H
#define FF_COMPARE_CONDITION_H

#include "compare/metrics.h"

typedef struct condition condition;

enum { CONDITION_LENGTH = 4000, CONDITION_DEPTH = 100 };

/* FF_PARSE with the text, and a caret below what is wrong; FF_LIMIT: too long, too deep. condition_free. */
ff_status condition_parse(const char *text, condition **out, ff_error *error);
void condition_free(condition *c); /* NULL: nothing */
const char *condition_text(const condition *c);
bool condition_uses_baseline(const condition *c);
/* FF_NOT_FOUND, as above, where a manager is named that is none of these (NULL-ended; "copy@2" of several devices is
 * `copy`). What is of the baseline is not looked at. */
ff_status condition_check_managers(const condition *c, const char *const *managers, ff_error *error);

/* Whether it holds. `values` gets the numbers that were used: "uvm.faults = 690, copy.time = 892 us". FF_NOT_FOUND: a
 * manager is not in the run, could not run the program, or the number has no value; FF_INVALID: a division by 0. Both
 * with a caret. `baseline` may be NULL where none is used. */
ff_status condition_evaluate(const condition *c, const report_run *run, const report_run *baseline, bool *holds,
                             ff_text *values, ff_error *error);

#endif
