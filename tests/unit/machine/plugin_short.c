/* SPDX-License-Identifier: Apache-2.0 */
/* A shared object whose plug-in is smaller than a policy, although it says the right version. */
extern const unsigned ff_policy_plugin[3] __attribute__((visibility("default")));
const unsigned ff_policy_plugin[3] = {2, 0, 0};
