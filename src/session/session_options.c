/* SPDX-License-Identifier: Apache-2.0 */
/* What `farfault run` says to the virtual GPU inside the program's process: the FARFAULT_* variables.
 *
 * An option that is too long or not a number goes into `problem`, so that session_create refuses it; it is not cut. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/session.h"
#include "trace/origin.h"

static void read_text(session_options *options, const char *name, char *to, size_t size) {
  const char *value = getenv(name);
  if (!value) return;
  if (strlen(value) >= size)
    snprintf(options->problem, sizeof options->problem, "%s is longer than %zu characters", name, size - 1);
  else strcpy(to, value);
}

static uint32_t read_devices(session_options *options) {
  const char *value = getenv("FARFAULT_DEVICES");
  if (!value || !*value) return 1;
  char *end;
  unsigned long number = strtoul(value, &end, 10);
  if (isdigit((unsigned char)value[0]) && !*end && number >= 1 && number <= TRACE_DEVICES_MAX) return (uint32_t)number;
  snprintf(options->problem, sizeof options->problem, "FARFAULT_DEVICES is not a number from 1 to %u: '%.60s'",
           TRACE_DEVICES_MAX, value);
  return 1;
}

uint32_t session_driver_version(const char *text) {
  unsigned major = 0;
  const char *at = text;
  for (; isdigit((unsigned char)*at) && major < 100; at++) major = 10 * major + (unsigned)(*at - '0');
  if (major < 11 || major > 99 || at[0] != '.' || !isdigit((unsigned char)at[1]) || at[2]) return 0;
  return 1000 * major + 10 * (unsigned)(at[1] - '0');
}

static void check_driver_version(session_options *options) {
  const char *value = getenv("FARFAULT_DRIVER_VERSION");
  if (!value || !*value || session_driver_version(value)) return;
  snprintf(options->problem, sizeof options->problem,
           "FARFAULT_DRIVER_VERSION is not a version of CUDA from 11.0 on, as 12.4: '%.60s'", value);
}

bool session_sm_range(const char *text, uint32_t *first, uint32_t *count) {
  unsigned from = 0, to = 0;
  int length = 0, one = 0;
  if (!isdigit((unsigned char)text[0]) || strlen(text) > 9) return false;
  if (sscanf(text, "%4u%n-%4u%n", &from, &one, &to, &length) < 2) to = from, length = one;
  if (text[length] || to < from || (length > one && !isdigit((unsigned char)text[one + 1]))) return false;
  *first = from;
  *count = to - from + 1;
  return true;
}

static void read_sm_range(session_options *options) {
  const char *value = getenv("FARFAULT_BIND_SMS");
  if (!value || !*value || session_sm_range(value, &options->sm_first, &options->sm_count)) return;
  snprintf(options->problem, sizeof options->problem, "FARFAULT_BIND_SMS is not a range of SMs, as 0-9: '%.60s'",
           value);
}

static uint64_t read_number(session_options *options, const char *name, uint64_t limit) {
  const char *value = getenv(name);
  if (!value || !*value) return 0;
  char *end;
  errno = 0;
  unsigned long long number = strtoull(value, &end, 10);
  if (isdigit((unsigned char)value[0]) && !*end && !errno && number <= limit) return number;
  snprintf(options->problem, sizeof options->problem, "%s is not a number from 0 to %llu: '%.60s'", name,
           (unsigned long long)limit, value);
  return 0;
}

void session_options_from_environment(session_options *options) {
  *options = (session_options){0};
  read_text(options, "FARFAULT_MEMORY", options->managers, sizeof options->managers);
  read_text(options, "FARFAULT_MACHINE", options->machine, sizeof options->machine);
  read_text(options, "FARFAULT_SET", options->choices.set, sizeof options->choices.set);
  for (int i = 0; i < SIM_CHOICE_COUNT; i++)
    read_text(options, sim_choice_infos[i].variable, options->choices.text[i], SIM_CHOICE_LENGTH);
  read_text(options, "FARFAULT_HOST_TOUCHES", options->host_touches, sizeof options->host_touches);
  if (options->host_touches[0] && strcmp(options->host_touches, "off") && strcmp(options->host_touches, "on") &&
      strcmp(options->host_touches, "pages") && strcmp(options->host_touches, "groups"))
    snprintf(options->problem, sizeof options->problem,
             "FARFAULT_HOST_TOUCHES is not 'on', 'off', 'pages' or 'groups': '%s'", options->host_touches);
  read_text(options, "FARFAULT_RESULTS", options->results, sizeof options->results);
  read_text(options, "FARFAULT_RECORD", options->record, sizeof options->record);
  read_text(options, "FARFAULT_PROGRESS", options->progress, sizeof options->progress);
  read_text(options, "FARFAULT_ISA", options->isa, sizeof options->isa);
  read_text(options, "FARFAULT_EXECUTE", options->execute, sizeof options->execute);
  if (options->execute[0] && strcmp(options->execute, "interpret") && strcmp(options->execute, "compile") &&
      strcmp(options->execute, "auto"))
    snprintf(options->problem, sizeof options->problem,
             "FARFAULT_EXECUTE is not 'interpret', 'compile' or 'auto': '%s'", options->execute);
  options->history = read_number(options, "FARFAULT_HISTORY", 1) == 1;
  options->lines = read_number(options, "FARFAULT_LINES", 1) == 1;
  options->profile = read_number(options, "FARFAULT_PROFILE_RANGE", 1) == 1;
  read_text(options, "FARFAULT_PROFILE_NVTX", options->profile_nvtx, sizeof options->profile_nvtx);
  options->max_instructions = read_number(options, "FARFAULT_MAX_INSTRUCTIONS", UINT64_MAX);
  options->devices = read_devices(options);
  check_driver_version(options);
  read_sm_range(options);
  options->threads = (uint32_t)read_number(options, "FARFAULT_THREADS", 4096);
}
