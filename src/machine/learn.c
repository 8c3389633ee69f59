/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/model.h"
void learner_instance(sim *s, const stack_instance *i, ps time) { (void)s; (void)i; (void)time; }
