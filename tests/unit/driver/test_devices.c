/* SPDX-License-Identifier: Apache-2.0 */
/* Several devices without a simulation. */
#include "devices_cases.h"

int main(void) { return run_devices(NULL); }
