/* SPDX-License-Identifier: Apache-2.0 */
/* A part of a trace as a trace of its own: some launches or blocks, or what damage left.
 *
 * All operations that are no launches are kept, so that memory is in the same places at the same times. Launches that
 * are not selected are left out; of a block that is not selected each warp has only its EXIT. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "trace/file.h"

typedef struct copier {
  trace_file *from;
  trace_file_writer *to;
  const trace_selection *selection;
  trace_copied *copied;
  uint64_t launch; /* its number in `from`, the last one met */
  bool keeps;      /* that launch */
} copier;

static bool selected(const trace_selection *s, const trace_launch *launch) {
  return launch->id >= s->first_launch && launch->id <= s->last_launch &&
         (!s->kernel || strstr(launch->kernel, s->kernel));
}

static bool chooses_launches(const trace_selection *s) {
  return s->kernel || s->first_launch || s->last_launch != UINT64_MAX;
}

static void copy_operation(copier *c, const trace_op *op) {
  if (op->kind == TRACE_OP_LAUNCH) {
    c->launch = op->launch->id;
    c->keeps = selected(c->selection, op->launch);
    if (!c->keeps) return;
    c->copied->launches++;
  }
  trace_file_put_operation(c->to, op);
  c->copied->operations++;
}

static void copy_record(copier *c, const trace_item *item) {
  if (!c->keeps || item->launch->id != c->launch) return; /* also those of a launch that was lost */
  if (item->block < c->selection->first_block || item->block > c->selection->last_block) return;
  trace_file_seek(c->to, item->block, item->warp);
  trace_file_put_record(c->to, item->record);
  c->copied->accesses += trace_word_kind(item->record[0]) == TRACE_ACCESS;
}

static ff_status copy_items(copier *c, void (*lost)(const char *message), ff_error *error) {
  trace_item item;
  ff_error damage;
  for (;;) {
    ff_status status = trace_file_next(c->from, &item, &damage);
    if (status && !c->selection->repair) return ff_fail(error, status, "%s", damage.message);
    if (status) {
      c->copied->lost_frames++;
      if (lost) lost(damage.message);
      continue;
    }
    if (item.kind == TRACE_ITEM_END) return FF_OK;
    if (item.kind == TRACE_ITEM_OPERATION) copy_operation(c, item.op);
    else copy_record(c, &item);
  }
}

ff_status trace_file_copy(trace_file *from, const char *path, const trace_selection *selection,
                          void (*lost)(const char *message), trace_copied *copied, ff_error *error) {
  const trace_file_info *info = trace_file_information(from);
  copier c = {.from = from, .selection = selection, .copied = copied};
  *copied = (trace_copied){0};
  trace_file_about about = info->about;
  about.footprints |= selection->footprints;
  ff_status status = trace_file_create(path, &about, &c.to, error);
  if (status) return status;
  trace_file_rewind(from);
  status = copy_items(&c, lost, error);
  if (!status && chooses_launches(selection) && !copied->launches)
    status = ff_fail(error, FF_INVALID, "%s: none of its launches is chosen", path);
  if (status) {
    trace_file_abandon(c.to);
    return status;
  }
  about.complete = about.complete && !copied->lost_frames;
  return trace_file_finish(c.to, &about, error);
}
