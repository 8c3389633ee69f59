/* SPDX-License-Identifier: Apache-2.0 */
/* The interpreter loop: runs one warp until it has exited, has to wait, or has used up its turn.
 *
 * One decoded instruction per step for all lanes of the running split. A step looks at one byte (`attention`): if
 * nothing has to be asked, it calls the handler. Form 0 of a handler (all lanes) serves whenever every lane that is
 * inside the frame takes part: the registers of lanes that are not inside do not matter. */
#include "exec/core.h"
#include "exec/launch/fault.h"
#include "exec/instructions/lanes.h"
#include "exec/launch/native.h"

extern const exec_handler ISA(exec_move_handlers)[];
void ISA(exec_choose_access)(const exec_access *a, exec_handler run[2]);
ff_status ISA(exec_choose)(const ptx_func *func, const ptx_instr *instr, exec_choice *choice, ff_error *error);
extern const exec_handler ISA(exec_sync_handlers)[EXEC_SYNC_BARRIER];

typedef struct step { /* what the loop keeps in registers */
  const exec_instr *i;
  const exec_instr *code;
  uint32_t form;
  uint8_t attention;
  const exec_instr *skip; /* compiled code has just left it to the interpreter */
} step;

/* The running split, frame or the set of others has changed. */
INLINE void enter(core_warp *w, step *at) {
  exec_frame *frame = w->frame;
  w->function = frame->function;
  w->x.base[0] = frame->registers;
  w->x.base[1] = frame->function->constants;
  at->i = w->pc;
  at->code = frame->function->code;
  at->attention = EXEC_ATTEND_FLOW | (w->trace ? EXEC_ATTEND_WAIT | EXEC_ATTEND_MARK : 0) |
                  (w->ready_count ? EXEC_ATTEND_LEADER : 0) | (w->starting ? EXEC_ATTEND_START : 0);
  const exec_native_code *native = __atomic_load_n(&w->launch->native, __ATOMIC_ACQUIRE);
  if (native && native[w->function->number].full && !w->rotated) at->attention |= EXEC_ATTEND_NATIVE;
  if (w->active == frame->lanes) {
    at->form = 0;
    w->x.mask = UINT32_MAX;
  } else {
    at->form = 1;
    w->x.mask = w->active;
    lanes_expand(w->active, w->x.lanes);
  }
}

INLINE uint32_t guard_lanes(const core_warp *w, const exec_instr *i) {
  uint32_t predicate = *exec_pred(&w->x, i->guard);
  return (i->guard_negated ? ~predicate : predicate) & w->active;
}

/* A computing or memory instruction for some lanes only. */
INLINE void run_guarded(core_warp *w, const exec_instr *i) {
  uint32_t lanes = guard_lanes(w, i), active = w->active, mask = w->x.mask;
  if (!lanes) return;
  w->active = w->x.mask = lanes;
  lanes_expand(lanes, w->x.lanes);
  i->run[1](&w->x, i);
  w->active = active;
  w->x.mask = mask;
  if (mask != UINT32_MAX) lanes_expand(mask, w->x.lanes);
}

/* The lanes of the running split whose guard is false go on after i; true: lanes are left that execute it. */
INLINE bool split_guard(core_warp *w, step *at) {
  const exec_instr *i = at->i;
  if (i->guard == EXEC_NO_GUARD) return true;
  uint32_t lanes = guard_lanes(w, i);
  if (!lanes) return false;
  if (lanes == w->active) return true;
  core_count(w, i->index);
  core_add_ready(w, w->active & ~lanes, i + 1, w->frame);
  w->active = lanes;
  w->active_count = (uint32_t)__builtin_popcount(lanes);
  w->pc = i;
  enter(w, at);
  return true;
}

/* After an instruction behind which other splits may wait. */
INLINE void rejoin(core_warp *w, step *at, const exec_instr *next) {
  w->pc = next;
  if (w->ready_count) core_switch(w);
  enter(w, at);
}

/* Some lanes branch, some do not. */
INLINE void diverge(core_warp *w, step *at, uint32_t taken) {
  core_diverge(w, at->i, taken);
  enter(w, at);
}

/* All lanes that the running ones wait for at an instruction with a membermask are there, or have exited. */
INLINE bool all_came(const core_warp *w, const exec_instr *i) {
  const exec_sync *sync = i->side;
  uint32_t absent = w->live & ~w->active, wanted = 0;
  if (LIKELY(!absent) || sync->legacy) return true;
  const uint32_t *member = exec_u32(&w->x, i->src[3]);
  EACH_LANE(w->active) wanted |= member[l];
  return !(wanted & absent);
}

/* Only the lanes with the membermask of the first one run; the others come to the instruction later. True: they wait
 * for lanes that are not there yet. */
static bool split_group(core_warp *w, step *at) {
  const exec_instr *i = at->i;
  const uint32_t *member = exec_u32(&w->x, i->src[3]);
  uint32_t first = member[__builtin_ctz(w->active)], group = 0;
  EACH_LANE(w->active) group |= (uint32_t)(member[l] == first) << l;
  if (group != w->active) {
    core_count(w, i->index);
    core_add_ready(w, w->active & ~group, i, w->frame);
    w->active = group;
    w->active_count = (uint32_t)__builtin_popcount(group);
    w->pc = i;
    enter(w, at);
  }
  return first & w->live & ~group;
}

/* The turn is over at `next`, where the running split goes on later. */
static warp_turn yield(core_warp *w, const exec_instr *next) {
  w->pc = next;
  if (w->ready_count) core_rotate(w);
  return TURN_YIELD;
}

static warp_turn none_runs(const core_warp *w) { return w->live ? TURN_BLOCKED : TURN_DONE; }

/* A whole warp is at barrier w->pc. True: it goes on behind it at once. False: it waits. */
static bool pass_barrier(core_warp *w, uint8_t attention) {
  const exec_instr *i = w->pc;
  uint8_t ask = i->attention & attention;
  if (ask & EXEC_ATTEND_MARK) core_mark(w, i);
  if (ask & EXEC_ATTEND_WAIT) core_trace_waits(w, i);
  core_arrival arrival = core_barrier_arrive_whole(w, i);
  if (arrival == ARRIVED_PASSES) return true;
  if (arrival == ARRIVED_WAITS) {
    w->known = i;
    return false;
  }
  if (core_barrier_arrive(w, i)) {
    w->pc = i + 1;
    return true;
  }
  bool alone = w->other_count == 1 && w->others[0].state != SPLIT_READY; /* nothing of the warp can run */
  if (!alone && core_pick(w)) return true;
  w->rotated = 0;
  w->known = i;
  return false;
}

/* What compiled code has kept over a barrier goes to the frame, as something else than that code goes on. */
static void settle_kept(core_warp *w) {
  ISA(exec_native_calls).spread(w, w->kept_places, w->kept);
  w->kept_places = NULL;
}

/* What became of a warp in compiled code. LEFT: the interpreter goes on at w->pc, which that code left to it. GOES_ON:
 * at w->pc, perhaps in compiled code. The others: the warp's turn is over. */
typedef enum native_turn { NATIVE_GOES_ON, NATIVE_LEFT, NATIVE_GIVES_WAY, NATIVE_WAITS, NATIVE_ENDS } native_turn;

/* Is w->pc where the kernel ends for a whole warp, of which no one is told? */
static bool ends_here(const core_warp *w) {
  const exec_instr *i = w->pc;
  return (i->flow == EXEC_FLOW_EXIT || i->flow == EXEC_FLOW_RET) && i->guard == EXEC_NO_GUARD && !w->frame->parent &&
         !w->other_count && !w->trace;
}

/* That warp ends. Where nothing else of its block looks at that: what core_exit does. */
INLINE void end_here(core_warp *w) {
  core_block *block = w->block;
  core_count(w, w->pc->index + !w->pc->aux);
  if (w->active != EXEC_ALL_LANES || block->barriers_waiting || block->tensor || block->cluster->arrived) {
    core_exit(w, w->pc);
    return;
  }
  core_frame_free(w->worker, w->frame);
  w->live = w->active = 0;
  block->live_threads -= EXEC_LANES;
  block->cluster->live -= EXEC_LANES;
  block->idle_turns = block->busy_turns = 0;
}

/* Code for full warps has left the warp at w->pc. True: that was a barrier, and the warp goes on behind it. False:
 * *turn says what became of it. */
INLINE bool pass_end(core_warp *w, uint8_t attention, native_turn *turn) {
  if (w->pc->flow == EXEC_FLOW_BARRIER && w->pc->guard == EXEC_NO_GUARD) {
    *turn = NATIVE_WAITS;
    return pass_barrier(w, attention);
  }
  *turn = NATIVE_LEFT;
  if (!ends_here(w)) return false;
  end_here(w);
  *turn = NATIVE_ENDS;
  return false;
}

/* A whole warp begins in compiled code and comes to its end there, as most do: true. False: `how` that code has
 * returned. */
INLINE bool run_through(core_warp *w, uint32_t *how) {
  *how = w->launch->native->full(w, 0, &ISA(exec_native_calls));
  if (UNLIKELY(*how != EXEC_NATIVE_EXIT || !ends_here(w))) return false;
  end_here(w);
  return true;
}

#define NOT_ASKED UINT32_MAX

/* Compiled code goes on at w->pc. known: since compiled code for full warps left it at the barrier before w->pc, its
 * frame has not changed. attention: step.attention. how: NOT_ASKED, or what code for full warps has just returned. */
static native_turn run_native(core_warp *w, uint8_t attention, bool known, uint32_t how) {
  const exec_function *function = w->function;
  const exec_native_code *code = &w->launch->native[function->number];
  const exec_frame *frame = w->frame;
  native_turn turn;
  for (;; how = NOT_ASKED) {
    uint32_t number = (uint32_t)(w->pc - function->code);
    if (how == NOT_ASKED) {
      bool whole = w->active == UINT32_MAX && !w->ready_count;
      if (UNLIKELY(w->kept_places && !(known && whole))) settle_kept(w);
      how = whole ? code->full(w, number | (known ? EXEC_NATIVE_KNOWN : 0), &ISA(exec_native_calls))
                  : EXEC_NATIVE_DECLINE;
    }
    if (how == EXEC_NATIVE_EXIT) {
      if (!pass_end(w, attention, &turn)) return turn;
      how = EXEC_NATIVE_AGAIN;
    }
    known = how == EXEC_NATIVE_AGAIN && w->active == UINT32_MAX;
    if (how == EXEC_NATIVE_DECLINE) {
      exec_native_function any = __atomic_load_n(&code->any, __ATOMIC_ACQUIRE);
      if (any) how = any(w, number, &ISA(exec_native_calls));
      else exec_native_wish(w->launch);
    }
    if (how != EXEC_NATIVE_AGAIN || w->frame != frame) break;
  }
  if (how == EXEC_NATIVE_YIELD) return NATIVE_GIVES_WAY;
  return how == EXEC_NATIVE_AGAIN ? NATIVE_GOES_ON : NATIVE_LEFT;
}

/* Waited a whole warp at barrier `known`, where compiled code for full warps has left it, and may it go on? Then that
 * code goes on, and nothing of what `enter` sets has changed. */
INLINE bool was_known(const core_warp *w, const exec_instr *known) {
  return known && w->active == EXEC_ALL_LANES && !w->other_count && !w->starting && !w->trace && w->pc == known + 1 &&
         (w->pc->attention & EXEC_ATTEND_NATIVE);
}

/* Begins a whole warp in compiled code? The kernel is the first of its functions. */
INLINE bool starts_compiled(core_warp *w) {
  const exec_native_code *native = __atomic_load_n(&w->launch->native, __ATOMIC_ACQUIRE);
  const exec_function *kernel = w->frame->function;
  if (!native || !native->full || w->active != EXEC_ALL_LANES || w->trace || !(w->pc->attention & EXEC_ATTEND_NATIVE))
    return false;
  w->function = kernel;
  w->x.base[0] = w->frame->registers;
  w->x.base[1] = kernel->constants;
  w->x.mask = UINT32_MAX;
  return true;
}

static warp_turn interpret(core_warp *w, const exec_instr *known, const exec_instr *skip);

/* Goes on where compiled code has left it. */
static warp_turn go_on(core_warp *w, native_turn turn) {
  switch (turn) {
  case NATIVE_WAITS: return TURN_BLOCKED;
  case NATIVE_ENDS: return TURN_DONE;
  case NATIVE_GIVES_WAY: return yield(w, w->pc);
  case NATIVE_LEFT: return interpret(w, NULL, w->pc);
  default: return interpret(w, NULL, NULL);
  }
}

warp_turn ISA(core_run)(core_warp *w);
warp_turn ISA(core_run)(core_warp *w) {
  const exec_instr *known = w->known;
  w->known = NULL;
  if (LIKELY(was_known(w, known))) return go_on(w, run_native(w, 0, true, NOT_ASKED));
  if (!w->started) {
    core_warp_start(w);
    uint32_t how;
    if (starts_compiled(w)) return run_through(w, &how) ? TURN_DONE : go_on(w, run_native(w, 0, false, how));
  }
  if (!w->active && !core_pick(w)) return none_runs(w);
  return interpret(w, known, NULL);
}

/* The running split goes on at w->pc. known: compiled code for full warps has left it at this barrier, and it has not
 * run since, or NULL. skip: compiled code has left this instruction to the interpreter, or NULL. */
static __attribute__((noinline)) warp_turn interpret(core_warp *w, const exec_instr *known, const exec_instr *skip) {
  step at;
  enter(w, &at);
  at.skip = skip;
  known = known && at.i == known + 1 && (at.attention & at.i->attention & EXEC_ATTEND_NATIVE) ? at.i : NULL;
  if (w->kept_places && (!known || w->starting || w->ready_count)) settle_kept(w);
  for (;;) {
    while (LIKELY(!(at.i->attention & at.attention))) {
      at.i->run[at.form](&w->x, at.i);
      at.i++;
    }
    uint8_t ask = at.i->attention & at.attention;
    if (ask & EXEC_ATTEND_START) {
      core_count(w, at.i->index);
      w->pc = at.i;
      return TURN_YIELD;
    }
    if (ask & EXEC_ATTEND_LEADER) {
      if (w->rotated) w->rotated--;
      uint64_t key = core_key(w->frame, at.i);
      if (key == w->next_key || (key > w->next_key && !w->rotated)) {
        uint32_t active = w->active;
        w->pc = at.i;
        core_switch(w);
        enter(w, &at);
        /* compiled code left it for this, unless others stand here, too, but in frames of their own */
        if (w->active != active) at.skip = NULL;
      }
      ask = at.i->attention & at.attention;
    }
    if (ask & EXEC_ATTEND_NATIVE) {
      if (at.i == at.skip) {
        at.skip = NULL;
      } else {
        w->pc = at.i;
        native_turn turn = run_native(w, at.attention, at.i == known, NOT_ASKED);
        known = NULL;
        if (turn > NATIVE_LEFT) return go_on(w, turn);
        enter(w, &at);
        at.skip = turn == NATIVE_LEFT ? w->pc : NULL;
        continue;
      }
    }
    if (ask & EXEC_ATTEND_MARK) core_mark(w, at.i);
    if (ask & EXEC_ATTEND_WAIT) core_trace_waits(w, at.i);
    const exec_instr *i = at.i;
    switch ((exec_flow)i->flow) {
    case EXEC_FLOW_NONE:
      i->run[at.form](&w->x, i);
      at.i++;
      break;
    case EXEC_FLOW_GUARDED:
      run_guarded(w, i);
      at.i++;
      break;
    case EXEC_FLOW_BRA_IF: {
      uint32_t taken = guard_lanes(w, i);
      if (!taken) {
        at.i++;
        break;
      }
      if (UNLIKELY(taken != w->active)) {
        diverge(w, &at, taken);
        break;
      }
    }
      /* fall through */
    case EXEC_FLOW_BRA: {
      const exec_instr *target = at.code + i->target;
      core_count(w, i->index + 1);
      w->segment = target->index;
      at.i = target;
      if (target <= i && UNLIKELY(w->budget < 0)) return yield(w, target);
      break;
    }
    case EXEC_FLOW_BRX:
      if (!split_guard(w, &at)) {
        at.i++;
        break;
      }
      core_branch_indexed(w, i);
      if (w->pc <= i && UNLIKELY(w->budget < 0)) return yield(w, w->pc);
      rejoin(w, &at, w->pc);
      break;
    case EXEC_FLOW_CALL:
    case EXEC_FLOW_CALL_INDIRECT: {
      if (!split_guard(w, &at)) {
        at.i++;
        break;
      }
      const exec_call *call = i->side;
      w->pc = i;
      const exec_function *callee = i->flow == EXEC_FLOW_CALL ? core_function(w, i, call->callee) : core_callee(w, i);
      core_call(w, i, callee);
      if (UNLIKELY(w->budget < 0)) return yield(w, w->pc);
      enter(w, &at);
      break;
    }
    case EXEC_FLOW_HOST_CALL:
      if (split_guard(w, &at)) {
        core_host_call(w, i);
        rejoin(w, &at, i + 1);
      } else {
        at.i++;
      }
      break;
    case EXEC_FLOW_RET:
      if (!split_guard(w, &at)) {
        at.i++;
        break;
      }
      if (w->frame->parent) {
        core_return(w, i);
        rejoin(w, &at, w->pc);
        break;
      }
      /* fall through */
    case EXEC_FLOW_EXIT:
      if (!split_guard(w, &at)) {
        at.i++;
        break;
      }
      core_count(w, i->index + !i->aux);
      core_exit(w, i);
      if (!w->other_count || !core_pick(w)) return none_runs(w);
      enter(w, &at);
      break;
    case EXEC_FLOW_BARRIER:
      if (!split_guard(w, &at)) {
        at.i++;
        break;
      }
      core_arrival arrival = core_barrier_arrive_whole(w, i);
      if (arrival == ARRIVED_WAITS) return TURN_BLOCKED;
      if (arrival == ARRIVED_PASSES || core_barrier_arrive(w, i)) {
        rejoin(w, &at, i + 1);
        break;
      }
      if (!core_pick(w)) return TURN_BLOCKED;
      enter(w, &at);
      break;
    case EXEC_FLOW_SYNC: {
      if (!split_guard(w, &at)) {
        at.i++;
        break;
      }
      bool apart = UNLIKELY(!all_came(w, i));
      if (apart && split_group(w, &at)) {
        core_sync_wait(w, i, exec_u32(&w->x, i->src[3])[__builtin_ctz(w->active)]);
        if (!core_pick(w)) return TURN_BLOCKED;
        enter(w, &at);
        break;
      }
      i->run[at.form](&w->x, i);
      if (i->guard != EXEC_NO_GUARD || apart) rejoin(w, &at, i + 1);
      else at.i++;
      break;
    }
    case EXEC_FLOW_YIELD:
      core_count(w, i->index + 1);
      w->polls = EXEC_SPIN_POLLS;
      return yield(w, i + 1);
    case EXEC_FLOW_PULL:
      core_count(w, i->index + 1);
      w->block->pulled = true;
      return yield(w, i + 1);
    case EXEC_FLOW_TRAP:
      if (split_guard(w, &at))
        core_fault(w, i, (uint32_t)__builtin_ctz(w->active), EXEC_FAULT_TRAP, 0, "the kernel executed trap");
      at.i++;
      break;
    case EXEC_FLOW_UNSUPPORTED:
      if (split_guard(w, &at))
        core_fault(w, i, (uint32_t)__builtin_ctz(w->active), EXEC_FAULT_UNSUPPORTED, 0, "%s", (const char *)i->side);
      at.i++;
      break;
    }
  }
}

const exec_isa_table ISA(exec_isa) = {
    .run = ISA(core_run),
    .choose = ISA(exec_choose),
    .choose_access = ISA(exec_choose_access),
    .sync = ISA(exec_sync_handlers),
    .moves = ISA(exec_move_handlers),
};
