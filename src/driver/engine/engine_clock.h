/* SPDX-License-Identifier: Apache-2.0 */
/* The program's clocks, if they are virtual (--virtual-time; virtual_clock.h): where their values come from, and which
 * time is not the program's. */
#ifndef FF_DRIVER_ENGINE_CLOCK_H
#define FF_DRIVER_ENGINE_CLOCK_H

/* Before the engine is made: finds out whether they are. */
void engine_clock_find(void);
/* Once it is made: from now on the device's simulation answers. */
void engine_clock_attach(void);
/* The calling thread works for us from here on; ... until here. Nothing where clocks are the host's. */
void engine_clock_enter(void);
void engine_clock_leave(void);

#endif
