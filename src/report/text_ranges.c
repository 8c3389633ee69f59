/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges of a program as a tree: "forward/layer1" is below "forward", which has all that its own kernels and those of
 * the ranges inside have. What is outermost comes in the order in which it was first launched in, and so does what is
 * inside of each. */
#include "report/text_ranges.h"

#include <stdlib.h>
#include <string.h>

#include "report/table.h"

typedef struct node {
  const char *path;
  size_t length; /* of this range's path; `path` may go on */
  sim_counters sum;
} node;

typedef FF_VEC(node) node_list;

static bool is_node(const node *one, const char *path, size_t length) {
  return one->length == length && !memcmp(one->path, path, length);
}

static bool is_inside(const node *one, const char *path, size_t length) {
  return one->length > length && !memcmp(one->path, path, length) && one->path[length] == '/';
}

static size_t find_node(const node_list *nodes, const char *path, size_t length) {
  size_t at = 0;
  while (at < nodes->count && !is_node(&nodes->items[at], path, length)) at++;
  return at;
}

/* Behind all that is in the same parent, which is there already and has the first `parent` bytes; 0: there is none. */
static void insert_node(node_list *nodes, const char *path, size_t length, size_t parent) {
  size_t at = parent ? find_node(nodes, path, parent) + 1 : nodes->count;
  while (parent && at < nodes->count && is_inside(&nodes->items[at], path, parent)) at++;
  node one = {.path = path, .length = length};
  FF_PUSH(nodes, one);
  memmove(&nodes->items[at + 1], &nodes->items[at], (nodes->count - 1 - at) * sizeof one);
  nodes->items[at] = one;
}

static void add_counters(sim_counters *sum, const sim_counters *more) {
#define X(name, unit, help) sum->name += more->name;
#include "machine/observe/counters.def"
#undef X
}

static void add_kernel(node_list *nodes, const sim_kernel_result *kernel) {
  const char *path = kernel->range;
  for (size_t length = 0, parent = 0; path[length]; parent = length) {
    length = parent ? parent + 1 : 0;
    length += strcspn(path + length, "/");
    if (find_node(nodes, path, length) == nodes->count) insert_node(nodes, path, length, parent);
    add_counters(&nodes->items[find_node(nodes, path, length)].sum, &kernel->counters);
  }
}

/* Its own name, two spaces for each range around it. */
static void name_cell(table *t, const node *one) {
  ff_text text = {0};
  size_t begin = 0;
  for (size_t i = 0; i < one->length; i++)
    if (one->path[i] == '/') {
      begin = i + 1;
      ff_text_add(&text, "  ");
    }
  ff_text_add(&text, "%.*s", (int)(one->length - begin), one->path + begin);
  table_cell_cut(t, text.chars, 48);
  free(text.chars);
}

static void nodes_write(const node_list *nodes, ff_text *out) {
  static const char *const names[] = {"range",      "launches", "time",   "warp instr.", "accesses",
                                      "far-faults", "to GPU",   "remote", NULL};
  table t;
  table_start(&t, "lrrrrrrr");
  t.spare = (const char *const[]){"accesses", "warp instr.", NULL};
  table_names(&t, names);
  for (size_t i = 0; i < nodes->count; i++) {
    const sim_counters *c = &nodes->items[i].sum;
    name_cell(&t, &nodes->items[i]);
    table_count(&t, c->launches);
    table_time(&t, c->time_ps);
    table_count(&t, c->warp_instructions);
    table_count(&t, c->accesses);
    table_count(&t, c->faults);
    table_bytes(&t, c->h2d_bytes);
    table_bytes(&t, c->remote_bytes);
  }
  table_write(&t, 2, out);
  table_free(&t);
}

bool text_ranges_write(const sim_result *result, ff_text *out) {
  node_list nodes = {0};
  for (uint32_t i = 0; i < result->kernel_count; i++) add_kernel(&nodes, &result->kernels[i]);
  bool several = nodes.count > 1;
  if (several) nodes_write(&nodes, out);
  free(nodes.items);
  return several;
}
