/* SPDX-License-Identifier: Apache-2.0 */
/* Open files of ours beside a program's. 0, 1 and 2 are a program's standard files even where it has closed them: a
 * file that is opened there gets what it prints next, or is closed when it opens them anew. */
#ifndef FF_BASE_DESCRIPTOR_H
#define FF_BASE_DESCRIPTOR_H

/* The open file `fd` with another number where it has one of these three, closed when a program is executed; `fd` is
 * then closed. -1 with errno: `fd` was negative, or there are no more numbers. */
int ff_descriptor_apart(int fd);

#endif
