/* SPDX-License-Identifier: Apache-2.0 */
/* Frames: the pool they come from, calls and returns.
 *
 * A frame is freed when its last lane has returned or exited. A lane's stack in use is the `stack` of the frame it is
 * in. Local memory of a new frame is zero, so that no run depends on what ran before. */
#include <string.h>

#include "base/check.h"
#include "exec/decode/program.h"
#include "exec/memory/access.h"
#include "exec/launch/checker.h"
#include "exec/launch/fault.h"

/* ---- the pool: four size classes per power of two, from 512 bytes ---- */

static uint32_t class_of(size_t bytes) {
  if (bytes <= 512) return 0;
  uint32_t top = 63u - (uint32_t)__builtin_clzll(bytes - 1); /* 2^top < bytes <= 2^(top+1) */
  uint32_t quarter = (uint32_t)((bytes - 1) >> (top - 2)) & 3;
  return (top - 9) * 4 + quarter + 1;
}

static size_t class_bytes(uint32_t size_class) {
  if (size_class == 0) return 512;
  uint32_t top = (size_class - 1) / 4 + 9, quarter = (size_class - 1) % 4;
  return ((size_t)1 << top) + ((size_t)(quarter + 1) << (top - 2));
}

uint32_t core_frame_class(uint32_t frame_bytes) {
  uint32_t size_class = class_of(sizeof(exec_frame) + frame_bytes);
  FF_ASSERT(size_class < CORE_SIZE_CLASSES);
  return size_class;
}

static __attribute__((noinline)) exec_frame *add_frame(core_worker *worker, uint32_t size_class) {
  size_t bytes = class_bytes(size_class);
  exec_frame *frame = ff_alloc_aligned(64, bytes);
  frame->size_class = size_class;
  worker->frame_bytes += bytes;
  return frame;
}

/* `bytes` is a multiple of 64, and mostly 64 or 0: a call would take longer. */
static inline void clear_cells(unsigned char *cells, uint32_t bytes) {
  if (bytes > 256) memset(cells, 0, bytes);
  else
    for (uint32_t n = 0; n < bytes; n += 64) memset(cells + n, 0, 64);
}

static inline exec_frame *new_frame(core_worker *worker, const exec_function *function) {
  exec_frame **pool = &worker->frames[function->frame_class], *frame = *pool;
  if (__builtin_expect(frame != NULL, 1)) *pool = frame->parent;
  else frame = add_frame(worker, function->frame_class);
  frame->function = function;
  clear_cells(frame->registers, function->zero_bytes);
  return frame;
}

void core_frames_trim(core_worker *worker) {
  for (uint32_t c = 0; c < CORE_SIZE_CLASSES; c++)
    while (worker->frames[c]) {
      exec_frame *frame = worker->frames[c];
      worker->frames[c] = frame->parent;
      worker->frame_bytes -= class_bytes(c);
      free(frame);
    }
}

static void clear_local(core_warp *w, const exec_frame *frame, uint32_t bytes) {
  for (uint32_t offset = frame->local; offset < frame->local + bytes; offset += 4) {
    uint32_t *row = (uint32_t *)(void *)core_local_word(w, offset, 0);
    for (uint32_t lane = 0; lane < EXEC_LANES; lane++)
      if (frame->lanes >> lane & 1) row[lane] = 0;
  }
}

static void clear_load_numbers(const core_warp *w, exec_frame *frame) {
  const exec_function *f = frame->function;
  if (!w->trace) return;
  memset(frame->registers + f->loads_offset, 0, f->load_count * 4);
  if (__builtin_expect(f->spill_count != 0, false))
    ((uint32_t *)(void *)(frame->registers + f->loads_offset))[f->ever] = 1;
}

/* Of a new frame; all: of all lanes, as there are no others yet. */
static void start_local(core_warp *w, const exec_frame *frame, bool all) {
  uint32_t bytes = frame->function->local_bytes;
  if (!bytes) return;
  if (all) memset(w->local, 0, (size_t)bytes * EXEC_LANES);
  else clear_local(w, frame, bytes);
  exec_checker *checker = w->launch->checker;
  if (checker) checker->entered(checker, w, frame);
}

void core_warp_start(core_warp *w) {
  const exec_function *kernel = w->launch->functions[0];
  exec_frame *frame = new_frame(w->worker, kernel);
  frame->parent = NULL;
  frame->call = NULL;
  frame->lanes = w->present;
  frame->depth = 0;
  frame->local = 0;
  frame->stack = kernel->stack_bytes;
  clear_load_numbers(w, frame);
  if (kernel->local_bytes) start_local(w, frame, true);
  w->frame = frame;
  w->pc = kernel->code;
  w->active = w->present; /* what all blocks' warps begin with is set (block.c) */
  w->active_count = core_lane_count(w->present);
  w->segment = 0;
  w->rotated = w->rotation = 0;
  w->next_key = EXEC_NO_KEY;
  w->started = true;
}

/* ---- parameters ---- */

/* A parameter or result of `frame` that stands in its local memory has a value. */
static void tell_written(core_warp *w, const exec_frame *frame, const exec_place *place, uint32_t mask) {
  exec_checker *checker = w->launch->checker;
  for (uint32_t m = checker ? mask : 0; m; m &= m - 1)
    checker->wrote(checker, w, (uint32_t)__builtin_ctz(m), PTX_SPACE_LOCAL, frame->local + place->local,
                   place->words * 4);
}

/* Copies a parameter's words for the lanes of `mask`; either side may live in local memory. whole: the other lanes'
 * registers of `to` do not matter. */
static void copy_param(core_warp *w, const exec_frame *from, const exec_place *source, const exec_frame *to,
                       const exec_place *target, uint32_t mask, bool whole) {
  uint32_t words = source->words < target->words ? source->words : target->words;
  for (uint32_t word = 0; word < words; word++) {
    const uint32_t *a = source->local != EXEC_NO_OFFSET
                            ? (const uint32_t *)(void *)core_local_word(w, from->local + source->local + 4 * word, 0)
                            : (const uint32_t *)(const void *)(from->registers + source->offset + word * EXEC_SLOT);
    uint32_t *b = target->local != EXEC_NO_OFFSET
                      ? (uint32_t *)(void *)core_local_word(w, to->local + target->local + 4 * word, 0)
                      : (uint32_t *)(void *)(to->registers + target->offset + word * EXEC_SLOT);
    if (mask == EXEC_ALL_LANES || (whole && target->local == EXEC_NO_OFFSET)) {
      memcpy(b, a, EXEC_SLOT);
      continue;
    }
    for (uint32_t lane = 0; lane < EXEC_LANES; lane++)
      if (mask >> lane & 1) b[lane] = a[lane];
  }
  if (target->local != EXEC_NO_OFFSET) tell_written(w, to, target, mask);
}

/* ---- memory on the stack ----
 *
 * All lanes of a frame have one stack pointer, frame->stack: an alloca of any of them moves it for all, by the most
 * that one asks for, and it goes back when all of them restore it, or return. Other lanes' bytes between are not
 * used. */

static uint64_t operand_of(const exec_warp *x, const exec_instr *i, uint32_t offset, uint32_t lane) {
  return i->aux ? exec_u64(x, offset)[lane] : exec_u32(x, offset)[lane];
}

static void give_all(core_warp *w, const exec_instr *i, uint32_t value) {
  for (uint32_t m = w->active; m; m &= m - 1) {
    uint32_t lane = (uint32_t)__builtin_ctz(m);
    if (i->aux) exec_u64(&w->x, i->dst)[lane] = value;
    else exec_u32(&w->x, i->dst)[lane] = value;
  }
}

void core_stack_allocate(exec_warp *x, const exec_instr *i) {
  core_warp *w = (core_warp *)x;
  exec_frame *frame = w->frame;
  uint64_t bytes = 0, align = i->immediate > 16 ? (uint64_t)i->immediate : 16;
  uint32_t lane = (uint32_t)__builtin_ctz(w->active);
  for (uint32_t m = w->active; m; m &= m - 1) {
    uint64_t wanted = operand_of(x, i, i->src[0], (uint32_t)__builtin_ctz(m));
    if (wanted > bytes) bytes = wanted, lane = (uint32_t)__builtin_ctz(m);
  }
  uint64_t at = (frame->stack + align - 1) & ~(align - 1), limit = w->launch->stack_limit;
  if (at > limit || bytes > limit - at)
    core_fault(w, i, lane, EXEC_FAULT_STACK, 0,
               "stack overflow: alloca of %llu bytes aligned to %llu, with %u of the %u bytes of the thread's stack in "
               "use (cudaLimitStackSize sets the limit)",
               (unsigned long long)bytes, (unsigned long long)align, frame->stack, (uint32_t)limit);
  frame->stack = (uint32_t)(at + ((bytes + 15) & ~UINT64_C(15)));
  if (frame->stack > limit) frame->stack = (uint32_t)limit;
  for (uint64_t offset = at; offset < frame->stack; offset += 4) { /* cleared, as variables are */
    uint32_t *row = (uint32_t *)(void *)core_local_word(w, (uint32_t)offset, 0);
    for (uint32_t m = w->active; m; m &= m - 1) row[__builtin_ctz(m)] = 0;
  }
  exec_checker *checker = w->launch->checker;
  for (uint32_t m = checker ? w->active : 0; m; m &= m - 1)
    checker->wrote(checker, w, (uint32_t)__builtin_ctz(m), PTX_SPACE_LOCAL, at, frame->stack - (uint32_t)at);
  give_all(w, i, (uint32_t)at);
}

void core_stack_save(exec_warp *x, const exec_instr *i) {
  core_warp *w = (core_warp *)x;
  give_all(w, i, w->frame->stack);
}

void core_stack_restore(exec_warp *x, const exec_instr *i) {
  core_warp *w = (core_warp *)x;
  exec_frame *frame = w->frame;
  uint64_t least = frame->local + frame->function->stack_bytes, most = 0;
  for (uint32_t m = w->active; m; m &= m - 1) {
    uint32_t lane = (uint32_t)__builtin_ctz(m);
    uint64_t saved = operand_of(x, i, i->src[0], lane);
    if (saved < least || saved > frame->stack || saved % 16)
      core_fault(w, i, lane, EXEC_FAULT_ILLEGAL_INSTRUCTION, 0,
                 "stackrestore of 0x%llx: not what stacksave gave in this function, or it was restored before",
                 (unsigned long long)saved);
    if (saved > most) most = saved;
  }
  if (w->active == (frame->lanes & w->live)) frame->stack = (uint32_t)most;
}

/* ---- calls ---- */

void core_call(core_warp *w, const exec_instr *i, const exec_function *callee) {
  const exec_call *call = i->side;
  exec_frame *parent = w->frame;
  if (w->launch->stack_limit - parent->stack < callee->stack_bytes)
    core_fault(w, i, (uint32_t)__builtin_ctz(w->active), EXEC_FAULT_STACK, 0,
               "stack overflow: %s needs %u bytes of the thread's stack, %u of %u are left at call depth %u "
               "(cudaLimitStackSize sets the limit)",
               callee->name, callee->stack_bytes, w->launch->stack_limit - parent->stack, w->launch->stack_limit,
               parent->depth + 1);
  core_count(w, i->index + 1);
  exec_frame *frame = new_frame(w->worker, callee);
  frame->parent = parent;
  frame->call = i;
  frame->lanes = w->active;
  frame->depth = parent->depth + 1;
  frame->local = parent->stack;
  frame->stack = parent->stack + callee->stack_bytes;
  clear_load_numbers(w, frame);
  start_local(w, frame, false);
  uint32_t count = call->argument_count < callee->param_count ? call->argument_count : callee->param_count;
  for (uint32_t p = 0; p < count; p++)
    copy_param(w, parent, &call->arguments[p], frame, &callee->params[p], w->active, true);
  w->frame = frame;
  w->pc = callee->code;
  w->segment = callee->code->index;
}

void core_return(core_warp *w, const exec_instr *i) {
  exec_frame *frame = w->frame, *parent = frame->parent;
  const exec_call *call = frame->call->side;
  const exec_function *callee = frame->function;
  core_count(w, i->index + !i->aux);
  uint32_t count = call->result_count < callee->result_count ? call->result_count : callee->result_count;
  bool whole = w->active == parent->lanes;
  for (uint32_t r = 0; r < count; r++)
    copy_param(w, frame, &callee->results[r], parent, &call->results[r], w->active, whole);
  w->pc = frame->call + 1;
  w->segment = w->pc->index;
  w->frame = parent;
  frame->lanes &= ~w->active;
  if (!frame->lanes) core_frame_free(w->worker, frame);
}

const exec_function *core_function_later(core_warp *w, const exec_instr *i, uint32_t f) {
  ff_error error = {0};
  const exec_function *function = exec_kernel_decode_later(w->launch->kernel, w->launch->isa, f, &error);
  if (!function) core_fault(w, i, (uint32_t)__builtin_ctz(w->active), EXEC_FAULT_UNSUPPORTED, 0, "%s", error.message);
  return function;
}

const exec_function *core_callee(core_warp *w, const exec_instr *i) {
  const exec_call *call = i->side;
  const uint64_t *address = exec_u64(&w->x, call->target);
  uint32_t first = (uint32_t)__builtin_ctz(w->active), same = 0;
  for (uint32_t lane = 0; lane < EXEC_LANES; lane++)
    if ((w->active >> lane & 1) && address[lane] == address[first]) same |= 1u << lane;
  uint64_t distance = address[first] - EXEC_CODE_WINDOW, index = distance / 16 - 1;
  const exec_kernel *kernel = w->launch->kernel;
  const ptx_module *module = kernel->program->module;
  bool is_function = distance % 16 == 0 && distance && index < module->func_count;
  uint32_t f = is_function ? exec_kernel_function(kernel, module->funcs[index]) : EXEC_NO_OFFSET;
  if (f == EXEC_NO_OFFSET || !f) /* 0 is the kernel itself */
    core_fault(w, i, first, EXEC_FAULT_INVALID_PC, address[first], "indirect call to 0x%llx, where no function is",
               (unsigned long long)address[first]);
  if (same != w->active) {
    core_count(w, i->index); /* by all of them */
    core_add_ready(w, w->active & ~same, i, w->frame);
    w->active = same;
    w->active_count = core_lane_count(same);
  }
  return core_function(w, i, f);
}
