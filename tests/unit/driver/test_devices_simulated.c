/* SPDX-License-Identifier: Apache-2.0 */
/* Several devices, each simulated under two managers. */
#include "devices_cases.h"

int main(void) { return run_devices("copy,demand"); }
