/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of our own invariants, in three levels by cost (never used on input: input gets an ff_error).
 *
 *   FF_ASSERT      cheap, always on
 *   FF_CHECK       linear in what the function touches anyway: level >= 1
 *   FF_CHECK_DEEP  walks whole structures: level >= 2; all tests run at this level
 *
 * The level is a run-time variable (environment FARFAULT_CHECK=0|1|2, default 0; read once), so that one build serves
 * users and tests. A failed check prints the place and the expression and aborts: it is a bug of ours. */
#ifndef FF_BASE_CHECK_H
#define FF_BASE_CHECK_H

extern int ff_check_level; /* 0, 1 or 2 */

void ff_check_level_read(void); /* sets ff_check_level from the environment; runs by itself before main */
_Noreturn void ff_check_failed(const char *file, int line, const char *expression);

#define FF_ASSERT(e) ((e) ? (void)0 : ff_check_failed(__FILE__, __LINE__, #e))
#define FF_CHECK(e) (ff_check_level < 1 || (e) ? (void)0 : ff_check_failed(__FILE__, __LINE__, #e))
#define FF_CHECK_DEEP(e) (ff_check_level < 2 || (e) ? (void)0 : ff_check_failed(__FILE__, __LINE__, #e))

#endif
