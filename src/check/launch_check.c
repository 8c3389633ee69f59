/* SPDX-License-Identifier: Apache-2.0 */
/* A check's life: what the engine tells it, and what is the same for memcheck and racecheck. */
#include "check/launch_check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check/check_private.h"
#include "exec/memory/system_memory.h"
#include "exec/memory/visibility.h"

/* ---- hooks that do nothing ---- */

static void no_launch(exec_checker *checker, const core_launch *launch) {}
static void no_block(exec_checker *checker, core_block *block) {}
static void no_entered(exec_checker *checker, core_warp *w, const exec_frame *frame) {}
static void no_wrote(exec_checker *checker, core_warp *w, uint32_t lane, ptx_space space, uint64_t address,
                     uint32_t bytes) {}
static uint32_t no_access(exec_checker *checker, const exec_watched *access) { return access->lanes; }
static void no_fence(exec_checker *checker, core_warp *w, const exec_instr *i) {}
static void no_meet(exec_checker *checker, core_warp *w, const exec_instr *i, uint32_t lanes) {}
static void no_arrive(exec_checker *checker, core_warp *w, const exec_instr *i, uint32_t id, uint32_t expected) {}
static void no_release(exec_checker *checker, core_block *block, uint32_t id, uint32_t expected) {}
static void no_malloc(exec_checker *checker, core_warp *w, uint64_t address, uint64_t bytes) {}
static bool no_misuse(exec_checker *checker, core_warp *w, const exec_instr *i, uint32_t lane, uint64_t address) {
  return false;
}

static const exec_checker no_hooks = {no_launch, no_launch, no_block,  no_block,   no_entered, no_wrote,  no_access,
                                      no_fence,  no_meet,   no_arrive, no_release, no_malloc,  no_malloc, no_misuse};

/* ---- a process that is stopped ---- */

/* Prints what was found and not printed yet. Not what is still allocated: that is no leak. */
static void *write_ending(void *argument) {
  check *c = argument;
  while (sem_wait(&c->ending.wake)) {}
  if (!c->ending.number) return NULL; /* it is not needed any more */
  pthread_mutex_lock(&c->lock);
  check_report_flush(c->report);
  pthread_mutex_unlock(&c->lock);
  c->ending.done = true;
  return NULL;
}

static void watch(check *c) {
  ff_ending_create(&c->ending);
  c->watched = !pthread_create(&c->watcher, NULL, write_ending, c);
  if (c->watched) ff_ending_watch(&c->ending);
}

static void unwatch(check *c) {
  if (c->watched && c->ending.process == getpid()) {
    ff_ending_forget(&c->ending);
    sem_post(&c->ending.wake);
    pthread_join(c->watcher, NULL);
    ff_ending_free(&c->ending);
  }
  c->watched = false;
}

ff_status check_create(const check_options *options, exec_memory *memory, char *(*demangle)(const char *), check **out,
                       ff_error *error) {
  check *c = ff_alloc(sizeof *c);
  c->hooks = no_hooks;
  c->options = *options;
  c->memory = memory;
  c->demangle = demangle;
  ff_status status = FF_OK;
  if (options->tool == CHECK_MEMCHECK) {
    check_memcheck_hooks(&c->hooks);
    exec_memory_pad(memory, options->padding);
    if (options->initcheck != CHECK_INIT_NONE)
      status = check_shadow_create(&c->written, exec_memory_base(memory), error);
    if (!status) status = check_shadow_create(&c->heap, exec_memory_base(memory), error);
  } else {
    check_racecheck_hooks(&c->hooks);
    status = check_shadow_create(&c->written, exec_memory_base(memory), error);
    c->race = race_create((uint64_t)options->shadow_mib << 20);
  }
  if (status) {
    race_free(c->race);
    check_shadow_free(&c->written);
    free(c);
    return status;
  }
  pthread_mutex_init(&c->lock, NULL);
  c->report = check_report_create(options, demangle);
  watch(c);
  *out = c;
  return FF_OK;
}

void check_free(check *c) {
  if (!c) return;
  unwatch(c);
  check_report_free(c->report);
  for (size_t n = 0; n < c->allocations.count; n++) free(c->allocations.items[n].stack);
  free(c->allocations.items);
  check_shadow_free(&c->written);
  check_shadow_free(&c->heap);
  race_free(c->race);
  free(c->title);
  pthread_mutex_destroy(&c->lock);
  free(c);
}

exec_checker *check_hooks(check *c) { return c ? &c->hooks : NULL; }

/* ---- operations ---- */

check_allocation *check_allocation_of(check *c, const exec_allocation *allocation) {
  return allocation->id < c->allocations.count && allocation->range == EXEC_ALLOCATED
             ? &c->allocations.items[allocation->id]
             : NULL;
}

static void allocated(check *c, const trace_op *op) {
  while (c->allocations.count <= op->alloc.id) FF_PUSH(&c->allocations, (check_allocation){0});
  check_allocation *a = &c->allocations.items[op->alloc.id];
  free(a->stack);
  *a = (check_allocation){.address = op->alloc.address,
                          .bytes = op->alloc.bytes,
                          .live = !op->alloc.initialised,
                          .tracked = !op->alloc.initialised && op->alloc.memory == TRACE_MEMORY_DEVICE};
  snprintf(a->name, sizeof a->name, "%s", op->alloc.name);
  if (a->tracked) check_shadow_clear(&c->written, a->address, a->bytes);
  if (op->alloc.initialised || !c->options.backtrace) return;
  a->stack = ff_alloc(sizeof *a->stack);
  check_stack_take(a->stack);
}

static void copied(check *c, const trace_op *op) {
  const exec_allocation *from = exec_memory_find(c->memory, op->copy.from);
  const check_allocation *source = from && !from->freed ? check_allocation_of(c, from) : NULL;
  for (uint64_t row = 0; row < op->copy.height; row++) {
    uint64_t to = op->copy.to + row * op->copy.to_pitch;
    if (source && source->tracked)
      check_shadow_copy(&c->written, to, op->copy.from + row * op->copy.from_pitch, op->copy.width);
    else check_shadow_set(&c->written, to, op->copy.width);
  }
}

void check_operation(check *c, const trace_op *op) {
  switch (op->kind) {
  case TRACE_OP_ALLOC: allocated(c, op); break;
  case TRACE_OP_FREE:
    if (op->free.id < c->allocations.count) c->allocations.items[op->free.id].live = false;
    break;
  case TRACE_OP_COPY: copied(c, op); break;
  case TRACE_OP_SET:
    for (uint64_t row = 0; row < op->set.height; row++)
      check_shadow_set(&c->written, op->set.to + row * op->set.pitch, op->set.width);
    break;
  default: break;
  }
}

/* ---- findings ---- */

const char *check_space_text(ptx_space space) {
  switch (space) {
  case PTX_SPACE_SHARED: return "shared";
  case PTX_SPACE_LOCAL: return "local";
  case PTX_SPACE_CONST: return "constant";
  default: return "global";
  }
}

void check_thread_of(const core_warp *w, uint32_t lane, check_thread *thread) {
  for (int n = 0; n < 3; n++) thread->thread[n] = w->tid[n][lane], thread->block[n] = w->block->ctaid[n];
  thread->known = true;
}

check_finding *check_found_at(check *c, check_kind kind, check_level level, const core_warp *w, const exec_instr *i,
                              uint32_t lane, uint64_t detail, const char *access) {
  bool fresh;
  const ptx_func *func = w->function->source;
  check_finding *f =
      check_report_find(c->report, kind, level, check_key(kind, func, i->index, w->launch->kernel, detail), &fresh);
  if (!fresh) return NULL;
  f->kernel = ff_strdup(c->title ? c->title : w->launch->functions[0]->name);
  check_site_fill(c->report, &f->sites[f->site_count++], func, i->index, access);
  check_thread_of(w, lane, &f->threads[0]);
  if (c->options.backtrace) {
    ff_text tail = {0};
    check_stack_add(&c->stack, "Saved host backtrace up to driver entry point at kernel launch time", c->demangle,
                    &tail);
    f->tail = tail.chars;
  }
  return f;
}

static void add_allocation(check *c, const exec_allocation *allocation, ff_text *out, ff_text *tail) {
  const check_allocation *known = check_allocation_of(c, allocation);
  ff_text_add(out, " at 0x%" PRIx64 " of size %" PRIu64 " bytes", allocation->address, allocation->bytes);
  ff_text_add(out, " (%.*s)", (int)strcspn(allocation->name, "("), allocation->name);
  if (out->chars[out->length - 2] == ' ') {
    out->chars[out->length - 2] = ')';
    out->chars[--out->length] = '\0';
  }
  ff_text_add(out, "\n");
  if (known && known->stack && tail)
    check_stack_add(known->stack, "Saved host backtrace up to driver entry point at allocation time", c->demangle,
                    tail);
}

static const char *plural(uint64_t count) { return count == 1 ? "" : "s"; }

void check_add_neighbour(check *c, uint64_t address, uint32_t bytes, ff_text *out, ff_text *tail) {
  const exec_allocation *holder = exec_memory_find(c->memory, address);
  if (!holder) {
    const exec_allocation *end = exec_memory_find(c->memory, address + bytes - 1);
    if (end && !end->freed) {
      ff_text_add(out, "and begins %" PRIu64 " byte%s before the allocation", end->address - address,
                  plural(end->address - address));
      add_allocation(c, end, out, tail);
      return;
    }
    ff_text host = {0};
    if (exec_system_memory_describe(c->memory, address, &host)) {
      ff_text_add(out, "and is in %s, which kernels of this machine cannot access; %s\n", host.chars, EXEC_REACHED_BY);
      free(host.chars);
      return;
    }
    const exec_allocation *nearest = exec_memory_nearest(c->memory, address);
    if (!nearest) {
      ff_text_add(out, "and nothing is allocated\n");
      return;
    }
    bool before = address < nearest->address;
    uint64_t distance = before ? nearest->address - address : address - (nearest->address + nearest->bytes) + 1;
    ff_text_add(out, "and is %" PRIu64 " byte%s %s the nearest allocation", distance, plural(distance),
                before ? "before" : "after");
    add_allocation(c, nearest, out, tail);
    return;
  }
  uint64_t offset = address - holder->address;
  const char *closed =
      !holder->freed && !holder->read_only && !exec_memory_may(holder, true) ? exec_memory_why_closed(holder) : NULL;
  if (closed) {
    ff_text_add(out, "and is %" PRIu64 " byte%s inside %s,", offset, plural(offset), closed);
  } else if (holder->freed) {
    ff_text_add(out, "and is %" PRIu64 " byte%s inside an allocation that was freed,", offset, plural(offset));
  } else if (holder->range != EXEC_ALLOCATED) {
    ff_text_add(out, "and is %" PRIu64 " byte%s inside a range that is %s,", offset, plural(offset),
                holder->range == EXEC_RESERVED ? "reserved but not mapped" : "mapped without that access");
  } else if (offset < holder->bytes && holder->bytes - offset < bytes) {
    uint64_t over = bytes - (holder->bytes - offset);
    ff_text_add(out, "and goes %" PRIu64 " byte%s past the end of the allocation", over, plural(over));
  } else if (holder->read_only) {
    ff_text_add(out, "and is in constant memory, inside");
  } else {
    ff_text_add(out, "and is inside the nearest allocation");
  }
  add_allocation(c, holder, out, tail);
}

/* ---- launches, faults, calls ---- */

void check_launch(check *c, const char *title) {
  free(c->title);
  c->title = ff_strdup(title);
  c->muted = c->options.kernel[0] && !strstr(title, c->options.kernel);
  if (c->options.backtrace) check_stack_take(&c->stack);
}

void check_fault(check *c, const exec_fault *fault) {
  bool fresh;
  pthread_mutex_lock(&c->lock);
  check_finding *f = check_report_find(c->report, CHECK_FAULT, CHECK_ERROR,
                                       check_key(CHECK_FAULT, c->title, fault->line, NULL, fault->kind), &fresh);
  if (fresh) {
    size_t first = strcspn(fault->message, "\n");
    ff_text title = {0};
    ff_text_add(&title, "The kernel ended: %.*s", (int)first, fault->message);
    f->title = title.chars;
    if (fault->message[first]) f->details = ff_strdup(fault->message + first + 1);
    f->kernel = ff_strdup(c->title ? c->title : "?");
    memcpy(f->threads[0].thread, fault->thread, sizeof fault->thread);
    memcpy(f->threads[0].block, fault->block, sizeof fault->block);
    f->threads[0].known = true;
  }
  check_report_flush(c->report);
  pthread_mutex_unlock(&c->lock);
}

/* "cudaMemcpy_ptds" is what the program wrote as cudaMemcpy. */
static int plain_name(const char *call) {
  static const char *const suffixes[] = {"_ptsz", "_ptds", "_v2", "_v3"};
  size_t length = strlen(call);
  for (size_t n = 0; n < sizeof suffixes / sizeof *suffixes; n++) {
    size_t have = strlen(suffixes[n]);
    if (length > have && !strcmp(call + length - have, suffixes[n])) return (int)(length - have);
  }
  return (int)length;
}

void check_call_failed(check *c, const char *call, int number, const char *name, const char *text) {
  bool fresh;
  if (!c->options.api_errors || c->options.tool != CHECK_MEMCHECK || c->ended) return;
  check_stack stack;
  check_stack_take(&stack);
  pthread_mutex_lock(&c->lock);
  uint64_t place = 0;
  for (int n = 0; n < stack.count; n++) place = place * 31 + (uintptr_t)stack.frames[n];
  check_finding *f = check_report_find(c->report, CHECK_API, CHECK_ERROR,
                                       check_key(CHECK_API, NULL, place, NULL, (uint64_t)number), &fresh);
  if (fresh) {
    ff_text title = {0}, tail = {0};
    const char *entry = check_stack_call(&stack);
    call = entry ? entry : call;
    ff_text_add(&title, "Program hit %s (error %d) due to \"%s\" on CUDA API call to %.*s.", name, number, text,
                plain_name(call), call);
    f->title = title.chars;
    if (c->options.backtrace)
      check_stack_add(&stack, "Saved host backtrace up to driver entry point at error", c->demangle, &tail);
    f->tail = tail.chars;
    check_report_flush(c->report);
  }
  pthread_mutex_unlock(&c->lock);
}

/* ---- the end ---- */

static void add_leak(check *c, const check_allocation *a) {
  bool fresh;
  check_finding *f =
      check_report_find(c->report, CHECK_LEAK, CHECK_ERROR,
                        check_key(CHECK_LEAK, NULL, a->address, NULL, (uint64_t)(a - c->allocations.items)), &fresh);
  if (!fresh) return;
  ff_text title = {0}, tail = {0};
  ff_text_add(&title, "Leaked %" PRIu64 " bytes at 0x%" PRIx64 " (%s)", a->bytes, a->address, a->name);
  f->title = title.chars;
  f->address = a->address;
  f->bytes = a->bytes;
  if (a->stack)
    check_stack_add(a->stack, "Saved host backtrace up to driver entry point at allocation time", c->demangle, &tail);
  f->tail = tail.chars;
}

static void look_for_leaks(check *c) {
  if (c->options.tool != CHECK_MEMCHECK) return;
  for (size_t n = 0; n < c->allocations.count; n++) {
    check_allocation *a = &c->allocations.items[n];
    const exec_allocation *allocation = exec_memory_find(c->memory, a->address);
    /* a pool keeps what the program freed */
    if (!a->live || !allocation || allocation->freed || allocation->id != n) continue;
    c->leaked++;
    c->leaked_bytes += a->bytes;
    if (c->options.leaks) add_leak(c, a);
    a->live = false;
  }
  check_heap_leaks(c);
}

void check_finish(check *c, bool last) {
  if (c->ended) return;
  if (last) unwatch(c);
  pthread_mutex_lock(&c->lock);
  look_for_leaks(c);
  if (last) check_report_finish(c->report, c->leaked_bytes, c->leaked);
  else check_report_flush(c->report);
  c->ended = last;
  pthread_mutex_unlock(&c->lock);
}

void check_launch_end(exec_checker *checker, const core_launch *launch) {
  check *c = check_of(checker);
  pthread_mutex_lock(&c->lock);
  check_report_flush(c->report);
  pthread_mutex_unlock(&c->lock);
}
