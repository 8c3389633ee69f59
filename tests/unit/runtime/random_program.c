/* SPDX-License-Identifier: Apache-2.0 */
/* A random program from its options to its result: the model driver's and the library's settings, threads, the end. */
#include "random_program.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "random_world.h"

static model_driver model;
static char driver_path[512], folder[64];
static const char *module_text, *clean_text;

const model_driver *program_model(void) { return &model; }
const char *program_folder(void) { return folder; }

uint64_t choose(choices *from, uint64_t below) {
  if (below < 2) return 0;
  if (from->bytes) {
    uint64_t value = 0;
    for (uint64_t range = below - 1; range && from->left; range >>= 8, from->left--)
      value = value << 8 | *from->bytes++;
    return value % below;
  }
  uint64_t value = from->state += 0x9e3779b97f4a7c15ull;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ull;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebull;
  return (value ^ (value >> 31)) % below;
}
bool chance(choices *from, uint32_t percent) { return choose(from, 100) < percent; }
uint64_t choose_between(choices *from, uint64_t low, uint64_t high) { return low + choose(from, high - low + 1); }

bool program_wrong(program *of, const char *format, ...) {
  va_list list;
  va_start(list, format);
  pthread_mutex_lock(&of->lock);
  if (of->result->good) vsnprintf(of->result->why, sizeof of->result->why, format, list);
  of->result->good = false;
  pthread_mutex_unlock(&of->lock);
  va_end(list);
  return false;
}

bool program_is_good(program *of) {
  pthread_mutex_lock(&of->lock);
  bool good = of->result->good;
  pthread_mutex_unlock(&of->lock);
  return good;
}

void program_trace(program *of, const char *format, ...) {
  char line[2048];
  va_list list;
  va_start(list, format);
  vsnprintf(line, sizeof line, format, list);
  va_end(list);
  pthread_mutex_lock(&of->lock);
  ff_text_add(&of->trace, "%s\n", line);
  pthread_mutex_unlock(&of->lock);
  if (of->options->verbose) model.note(line);
}

bool program_allows(program *of, ff_result result, const char *what) {
  if (!result) return true;
  program_failures failures = of->options->failures;
  bool of_driver = result == FF_ERROR_DRIVER || result == FF_ERROR_NO_MEMORY,
       of_loss = result == FF_ERROR_LOST || result == FF_ERROR_FAULT;
  if (failures == PROGRAM_LOST && (of_driver || of_loss)) {
    of->lost = true;
    return false;
  }
  if (failures != PROGRAM_NO_FAILURES && of_driver) return false;
  return program_wrong(of, "%s: %s: %s", what, ff_result_name(result), ff_message());
}

char *world_read_file(const char *path, uint64_t *bytes) {
  char *data;
  size_t size;
  if (ff_file_read(path, 1 << 24, &data, &size, NULL)) return NULL;
  *bytes = size;
  return data;
}

/* ---- settings ---- */

static ff_options any_options(program *of) {
  choices *from = &of->choices;
  uint64_t granularity = chance(from, 85) ? 4096 : 512, piece = chance(from, 60) ? 0 : granularity << choose(from, 3);
  uint64_t unit = piece ? piece : granularity;
  uint64_t budget = unit * (chance(from, 70) ? choose_between(from, 1, 16) : choose_between(from, 16, 128));
  static const uint32_t eagerness[] = {0, 0, 10, 40, 80, 97};
  model_options settings = {
      .seed = choose(from, UINT64_MAX),
      .devices = chance(from, 60) ? 1 : (uint32_t)choose_between(from, 2, 3),
      .granularity = granularity,
      .memory = budget + (chance(from, 70) ? 1 << 20 : unit * choose(from, 3)),
      .eagerness = eagerness[choose(from, sizeof eagerness / sizeof *eagerness)],
      .pageable = (model_pageable)choose(from, 3),
      .verbose = of->options->verbose,
  };
  model.reset(&settings);
  of->devices = settings.devices;
  of->granularity = granularity;
  static const int devices[] = {0, 1, 2, 3}, backwards[] = {2, 1, 0};
  ff_options options = {.size = sizeof options,
                        .driver = driver_path,
                        .devices = devices,
                        .device_count = settings.devices,
                        .budget = budget,
                        .piece = piece};
  if (settings.devices > 1 && chance(from, 30)) options.devices = backwards + 3 - settings.devices;
  if (settings.devices == 1 && chance(from, 50)) {
    options.devices = NULL;
    options.device_count = 0;
  }
  options.lookahead = chance(from, 50) ? 0 : (uint32_t)choose_between(from, 1, 8);
  if (chance(from, 40)) options.pinned = 1 + choose(from, 20000);
  of->pinned = options.pinned;
  return options;
}

static void inject(program *of) {
  choices *from = &of->choices;
  static const model_call sites[] = {MODEL_RUN_KERNEL,        MODEL_RUN_COPY,         MODEL_LaunchKernel,
                                     MODEL_MemcpyHtoDAsync,   MODEL_MemcpyDtoHAsync,  MODEL_EventRecord,
                                     MODEL_StreamWaitEvent,   MODEL_EventSynchronize, MODEL_EventQuery,
                                     MODEL_StreamSynchronize, MODEL_MemCreate};
  static const int errors[] = {700, 719, 999, 716};
  model_failure one = {.call = MODEL_ANY};
  switch (of->options->failures) {
  case PROGRAM_NO_FAILURES: return;
  case PROGRAM_FAILURES:
    one.per_million = chance(from, 50) ? 10000 : 100000;
    if (chance(from, 30)) one = (model_failure){.call = MODEL_MemCreate, .per_million = 300000};
    break;
  case PROGRAM_ONE_FAILURE: one.at = choose_between(from, 1, chance(from, 50) ? 40 : 200); break;
  case PROGRAM_LOST:
    one = (model_failure){.call = sites[choose(from, sizeof sites / sizeof *sites)],
                          .at = choose_between(from, 1, chance(from, 60) ? 6 : 40),
                          .lost = true,
                          .error = errors[choose(from, sizeof errors / sizeof *errors)]};
    break;
  }
  model.inject(&one);
}

static bool open_all(program *of, const ff_options *options) {
  ff_result result = ff_open(options, &of->gpu);
  program_trace(of, "open: %u devices, budget %llu, piece %llu, lookahead %u, pinned %llu = %s", of->devices,
                (unsigned long long)options->budget, (unsigned long long)options->piece, options->lookahead,
                (unsigned long long)options->pinned, ff_result_name(result));
  if (!program_allows(of, result, "ff_open")) return false;
  ff_gpu_info info;
  result = ff_module_load(of->gpu, "model", module_text, strlen(module_text), &of->module);
  bool good =
      program_allows(of, result, "ff_module_load") &&
      program_allows(of, ff_module_load(of->gpu, "clean", clean_text, 0, &of->clean_module), "ff_module_load") &&
      program_allows(of, ff_gpu_describe(of->gpu, &info), "ff_gpu_describe");
  for (int n = 0; n <= MIX_USES && good; n++) {
    char name[16];
    snprintf(name, sizeof name, "mix%d", n);
    good = program_allows(of, ff_kernel_find(of->module, name, &of->mix[n]), "ff_kernel_find");
    snprintf(name, sizeof name, "clean%d", n);
    good = good && program_allows(of, ff_kernel_find(of->clean_module, name, &of->clean[n]), "ff_kernel_find");
  }
  good = good && program_allows(of, ff_kernel_find(of->module, "follow", &of->follow), "ff_kernel_find");
  if (!good) {
    ff_close(of->gpu);
    return false;
  }
  of->piece = info.piece;
  of->budget = info.budget;
  if (info.device_count != of->devices || info.budget > options->budget || info.is_virtual)
    program_wrong(of, "ff_gpu_describe: not what was opened");
  return true;
}

static void check_leaks(program *of, const char *when) {
  char text[2048];
  if (model.violations(text, sizeof text)) program_wrong(of, "%s: %s", when, text);
  if (model.leaks(text, sizeof text)) program_wrong(of, "%s are left: %s", when, text);
}

/* With failures ff_open may fail too, and leaves nothing. */
static bool open_somehow(program *of, const ff_options *options) {
  bool early =
      of->options->failures != PROGRAM_NO_FAILURES && of->options->failures != PROGRAM_LOST && chance(&of->choices, 30);
  if (early) inject(of);
  bool opened = open_all(of, options);
  if (!opened && program_is_good(of)) {
    model.inject(NULL);
    check_leaks(of, "after an ff_open that failed");
    if (program_is_good(of)) opened = open_all(of, options);
    early = false;
  }
  if (opened && !early) inject(of);
  return opened;
}

/* ---- threads ---- */

typedef struct worker {
  program *program;
  world *own, *shared;
  choices choices;
  uint32_t steps;
} worker;

static void run_steps(worker *one) {
  for (uint32_t i = 0; i < one->steps && program_is_good(one->program) && !one->program->lost; i++) {
    world *in = one->shared && chance(&one->choices, 30) ? one->shared : one->own;
    pthread_mutex_lock(&in->lock);
    world_step(in, &one->choices);
    pthread_mutex_unlock(&in->lock);
    if (one->choices.bytes && !one->choices.left) return;
  }
}

static void *worker_main(void *argument) {
  run_steps(argument);
  return NULL;
}

static void run_threads(program *of, world *worlds, uint32_t threads, uint32_t steps) {
  worker workers[8];
  pthread_t ids[8];
  for (uint32_t t = 0; t < threads; t++)
    workers[t] = (worker){of, &worlds[t], threads > 1 ? &worlds[threads] : NULL,
                          threads > 1 ? (choices){.state = choose(&of->choices, UINT64_MAX)} : of->choices, steps};
  for (uint32_t t = 1; t < threads; t++)
    if (pthread_create(&ids[t], NULL, worker_main, &workers[t])) abort();
  run_steps(&workers[0]);
  for (uint32_t t = 1; t < threads; t++) pthread_join(ids[t], NULL);
  if (threads == 1) of->choices = workers[0].choices;
}

/* One in five programs closes with everything going on; of those with failures with these, so that nothing is known
 * then. */
static void end_worlds(program *of, world *worlds, uint32_t count) {
  bool abrupt = chance(&of->choices, 20), failures = of->options->failures != PROGRAM_NO_FAILURES;
  of->torn |= abrupt && failures;
  if (!abrupt) model.inject(NULL);
  of->result->failed_calls = model.failures();
  for (uint32_t w = 0; w < count && program_is_good(of); w++) {
    if (!abrupt) world_end(&worlds[w], &of->choices);
    else if (!failures) world_leave(&worlds[w], &of->choices);
  }
}

/* Mostly few; now and then so many that events are used again and old launches are forgotten. */
static uint32_t any_steps(program *of) {
  choices *from = &of->choices;
  if (of->options->steps) return of->options->steps;
  if (!choose(from, 200)) return 3000;
  return (uint32_t)choose_between(from, 1, chance(from, 80) ? 40 : 120);
}

static void run_worlds(program *of, world *worlds, uint32_t threads) {
  uint32_t steps = any_steps(of), count = threads > 1 ? threads + 1 : 1;
  for (uint32_t w = 0; w < count; w++) {
    worlds[w] = (world){.program = of, .index = w};
    pthread_mutex_init(&worlds[w].lock, NULL);
  }
  run_threads(of, worlds, threads, steps);
  end_worlds(of, worlds, count);
  ff_statistics statistics = {0};
  ff_statistics_get(of->gpu, &statistics);
  of->result->windows = statistics.windows;
  of->result->evicted_bytes = statistics.evicted_bytes;
  of->result->torn = of->torn;
  ff_result result = ff_close(of->gpu);
  program_trace(of, "close = %s", ff_result_name(result));
  if (of->options->failures == PROGRAM_NO_FAILURES) program_allows(of, result, "ff_close");
  if (program_is_good(of)) check_leaks(of, "at the end");
  for (uint32_t w = 0; w < count; w++) {
    if (program_is_good(of)) world_replay(&worlds[w]);
    world_free(&worlds[w]);
    pthread_mutex_destroy(&worlds[w].lock);
  }
}

void program_run(const program_options *options, program_result *result) {
  program program = {.options = options,
                     .result = result,
                     .choices = {options->seed, options->bytes, options->byte_count},
                     .pins = options->threads < 2,
                     .clean_text = clean_text};
  world worlds[9];
  uint32_t threads = options->threads < 1 ? 1 : options->threads > 8 ? 8 : options->threads;
  *result = (program_result){.good = true};
  pthread_mutex_init(&program.lock, NULL);
  ff_options opening = any_options(&program);
  if (open_somehow(&program, &opening)) run_worlds(&program, worlds, threads);
  result->trace = program.trace.chars;
  pthread_mutex_destroy(&program.lock);
}

bool program_start(const char *driver) {
  const char *temporary = getenv("TMPDIR");
  unsetenv("FARFAULT_DRIVER");
  unsetenv("FF_CHECK");
  snprintf(driver_path, sizeof driver_path, "%s", driver);
  snprintf(folder, sizeof folder, "%s/farfault-XXXXXX", temporary && strlen(temporary) < 40 ? temporary : "/tmp");
  if (!model_load(driver, &model) || !mkdtemp(folder)) return false;
  module_text = kernels_register(&model, &clean_text);
  return true;
}

void program_end(void) {
  model.reset(&(model_options){.seed = 0});
  rmdir(folder);
}
