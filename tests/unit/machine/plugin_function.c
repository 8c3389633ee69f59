/* SPDX-License-Identifier: Apache-2.0 */
/* A shared object in which the plug-in's name is a function. */
__attribute__((visibility("default"))) int ff_policy_plugin(void);
int ff_policy_plugin(void) { return 1; }
