/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which the blocks' prints are output.
 *
 * What a block prints is kept with the block. The first block that has not finished passes its text on as it comes;
 * the others' texts wait until all blocks before them have finished. So the output does not depend on the number of
 * workers. What waits is bounded: a launch that prints more loses it, and the output says so. */
#include <stdlib.h>
#include <string.h>

#include "exec/launch/print_order.h"

#define WAITING_LIMIT (UINT64_C(256) << 20)
#define FLUSH_BYTES 65536u

typedef struct waiting {
  uint64_t block;
  char *text;
  size_t length;
} waiting;

struct core_output {
  pthread_mutex_t lock;
  void (*print)(void *context, const char *text, size_t length);
  void *context;
  uint64_t head; /* the first block that has not finished */
  uint64_t waiting_bytes;
  FF_VEC(waiting) waiting; /* a heap by block: finished blocks behind the head */
  bool lost;
};

core_output *core_output_create(const exec_config *config) {
  core_output *output = ff_alloc(sizeof *output);
  pthread_mutex_init(&output->lock, NULL);
  output->print = config->print;
  output->context = config->print_context;
  return output;
}

static void pass_on(const core_output *output, const char *text, size_t length) {
  if (length && output->print) output->print(output->context, text, length);
}

static void heap_push(core_output *output, waiting item) {
  FF_PUSH(&output->waiting, item);
  waiting *heap = output->waiting.items;
  size_t at = output->waiting.count - 1;
  for (; at && heap[(at - 1) / 2].block > item.block; at = (at - 1) / 2) heap[at] = heap[(at - 1) / 2];
  heap[at] = item;
}

static waiting heap_pop(core_output *output) {
  waiting *heap = output->waiting.items, top = heap[0], last = heap[--output->waiting.count];
  size_t at = 0, count = output->waiting.count;
  for (size_t child; (child = 2 * at + 1) < count; at = child) {
    if (child + 1 < count && heap[child + 1].block < heap[child].block) child++;
    if (heap[child].block >= last.block) break;
    heap[at] = heap[child];
  }
  if (count) heap[at] = last;
  return top;
}

/* The head has finished: it moves on over all blocks that have finished too. */
static void advance(core_output *output) {
  output->head++;
  while (output->waiting.count && output->waiting.items[0].block == output->head) {
    waiting next = heap_pop(output);
    pass_on(output, next.text, next.length);
    output->waiting_bytes -= next.length;
    free(next.text);
    output->head++;
  }
}

void core_output_flush(core_output *output, core_block *block, bool end) {
  if (!output || (!end && block->print.length < FLUSH_BYTES)) return;
  pthread_mutex_lock(&output->lock);
  ff_text *text = &block->print;
  if (block->index == output->head) {
    pass_on(output, text->chars, text->length);
    text->length = 0;
    if (end) advance(output);
  } else if (end) {
    if (output->waiting_bytes + text->length > WAITING_LIMIT) {
      output->lost = true;
      text->length = 0;
    }
    waiting item = {block->index, NULL, text->length};
    if (text->length) {
      item.text = ff_alloc(text->length);
      memcpy(item.text, text->chars, text->length);
    }
    output->waiting_bytes += text->length;
    heap_push(output, item);
    text->length = 0;
  } else if (text->length > WAITING_LIMIT / 16) {
    output->lost = true;
    text->length = 0;
  }
  pthread_mutex_unlock(&output->lock);
}

void core_output_finish(core_output *output) {
  static const char lost[] = "[farfault: a kernel printed more than could be kept; some of it is missing]\n";
  if (!output) return;
  while (output->waiting.count) {
    waiting next = heap_pop(output);
    pass_on(output, next.text, next.length);
    free(next.text);
  }
  if (output->lost) pass_on(output, lost, sizeof lost - 1);
  pthread_mutex_destroy(&output->lock);
  free(output->waiting.items);
  free(output);
}
