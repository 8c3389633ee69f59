/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of stringmatch: a random text of four letters, its suffix tree by Ukkonen's algorithm, and queries that are
 * parts of the text with a wrong letter now and then. The CPU walks the same tree; that the text has at the place what
 * the query has is checked without the tree. */
#include "gpu.h"
#include "workload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const char workload_ptx[];

typedef struct tree_node { /* same as in stringmatch.cu */
  unsigned child[4];       /* 0: none, since the root is nobody's child */
  unsigned first, end;
  unsigned link, unused;
} tree_node;

typedef struct tree {
  tree_node *nodes; /* nodes[0] is the root; room for 2 x length */
  unsigned count;
  const unsigned char *text;
  unsigned length;
} tree;

static unsigned new_node(tree *t, unsigned first, unsigned end) {
  t->nodes[t->count] = (tree_node){.first = first, .end = end};
  return t->count++;
}

/* The text's first letters are in the tree; the active point is `length` letters below `node`, towards text[edge]. */
typedef struct active_point {
  unsigned node, edge, length, waiting; /* waiting: suffixes that are in the tree only as parts of longer ones */
} active_point;

/* Cuts the edge above `below` after the active length, and hangs a leaf for the new letter there. */
static unsigned split_edge(tree *t, active_point *a, unsigned below, unsigned i) {
  tree_node *lower = &t->nodes[below];
  unsigned upper = new_node(t, lower->first, lower->first + a->length);
  t->nodes[a->node].child[t->text[a->edge]] = upper;
  lower->first += a->length;
  t->nodes[upper].child[t->text[lower->first]] = below;
  t->nodes[upper].child[t->text[i]] = new_node(t, i, t->length);
  return upper;
}

static void add_letter(tree *t, active_point *a, unsigned i) {
  unsigned unlinked = 0;
  for (a->waiting++; a->waiting;) {
    if (a->length == 0) a->edge = i;
    unsigned child = t->nodes[a->node].child[t->text[a->edge]], target = a->node;
    if (!child) {
      t->nodes[a->node].child[t->text[a->edge]] = new_node(t, i, t->length);
    } else {
      unsigned edge_length = (t->nodes[child].end < i ? t->nodes[child].end : i) - t->nodes[child].first;
      if (a->length >= edge_length) {
        a->node = child, a->edge += edge_length, a->length -= edge_length;
        continue;
      }
      if (t->text[t->nodes[child].first + a->length] == t->text[i]) {
        a->length++;
        if (unlinked) t->nodes[unlinked].link = a->node;
        return;
      }
      target = split_edge(t, a, child, i);
    }
    if (unlinked) t->nodes[unlinked].link = target;
    unlinked = target;
    a->waiting--;
    if (a->node == 0 && a->length)
      a->length--, a->edge = i - a->waiting + 1;
    else
      a->node = t->nodes[a->node].link;
  }
}

static tree suffix_tree(const unsigned char *text, unsigned length) {
  tree t = {.nodes = workload_memory(2 * (size_t)length + 2, sizeof *t.nodes), .text = text, .length = length};
  new_node(&t, 0, 0);
  active_point active = {0};
  for (unsigned i = 0; i < length; i++) add_letter(&t, &active, i);
  return t;
}

typedef struct matches {
  unsigned *lengths, *places;
} matches;

static void match_on_cpu(const tree *t, const unsigned char *letters, size_t queries, size_t length, matches to) {
  for (size_t i = 0; i < queries * length; i++) {
    const tree_node *node = t->nodes;
    unsigned at = 0, matched = 0;
    for (size_t k = i; k < queries * length; k += queries, at++, matched++) {
      if (matched == 0 || at == node->end) {
        if (!node->child[letters[k]]) break;
        node = &t->nodes[node->child[letters[k]]];
        at = node->first;
      }
      if (t->text[at] != letters[k]) break;
    }
    to.lengths[i] = matched;
    to.places[i] = at - matched;
  }
}

static void match_on_gpu(const tree *t, const unsigned char *letters, unsigned queries, unsigned length, matches to) {
  size_t bytes = (size_t)queries * length * sizeof(unsigned);
  gpu_open(workload_ptx);
  gpu_pointer nodes = gpu_upload(t->nodes, t->count * sizeof *t->nodes), text = gpu_upload(t->text, t->length),
              device_letters = gpu_upload(letters, (size_t)queries * length), lengths = gpu_allocate(bytes),
              places = gpu_allocate(bytes);
  gpu_shape shape = {gpu_divide_up(queries, 128), 1, 128, 1};
  GPU_LAUNCH(gpu_find_kernel("stringmatch"), shape, nodes, text, device_letters, queries, length, lengths, places);
  gpu_copy_to_host(to.lengths, lengths, bytes);
  gpu_copy_to_host(to.places, places, bytes);
  gpu_free(nodes), gpu_free(text), gpu_free(device_letters), gpu_free(lengths), gpu_free(places);
  gpu_close();
}

/* letters[position * queries + query] */
static unsigned char *random_queries(workload_random *random, const tree *t, size_t queries, size_t length) {
  unsigned char *letters = workload_memory(queries * length, 1);
  for (size_t query = 0; query < queries; query++) {
    unsigned start = workload_random_below(random, t->length);
    for (size_t i = 0; i < length; i++)
      letters[i * queries + query] =
          (unsigned char)((t->text[(start + i) % t->length] + (workload_random_below(random, 32) == 0)) % 4);
  }
  return letters;
}

static size_t wrong_places(const tree *t, const unsigned char *letters, size_t queries, size_t length, matches m) {
  size_t wrong = 0;
  for (size_t i = 0; i < queries * length; i++)
    for (unsigned k = 0; k < m.lengths[i]; k++)
      if (m.places[i] + (size_t)k >= t->length || i + k * queries >= queries * length ||
          t->text[m.places[i] + k] != letters[i + k * queries]) {
        wrong++;
        break;
      }
  return wrong;
}

static matches allocate_matches(size_t count) {
  return (matches){workload_memory(count, sizeof(unsigned)), workload_memory(count, sizeof(unsigned))};
}

int main(int argc, char **argv) {
  workload_argument arguments[] = {
      {"text", 65536, 1, 1 << 26}, {"queries", 8192, 1, 1 << 21}, {"letters", 25, 1, 1024}};
  workload_arguments(argc, argv, "stringmatch", "finds parts of queries by the suffix tree of a text", arguments, 3);
  unsigned text_length = (unsigned)arguments[0].value, queries = (unsigned)arguments[1].value,
           length = (unsigned)arguments[2].value;
  size_t count = (size_t)queries * length;
  workload_random random = {21};
  unsigned char *text = workload_memory(text_length, 1);
  for (unsigned i = 0; i < text_length; i++) text[i] = (unsigned char)workload_random_below(&random, 4);
  tree t = suffix_tree(text, text_length);
  unsigned char *letters = random_queries(&random, &t, queries, length);
  matches expected = allocate_matches(count), got = allocate_matches(count);
  workload_cpu_begins();
  match_on_cpu(&t, letters, queries, length, expected);
  workload_cpu_ends();
  match_on_gpu(&t, letters, queries, length, got);

  size_t wrong = wrong_places(&t, letters, queries, length, got), total = 0;
  for (size_t i = 0; i < count; i++) {
    wrong += got.lengths[i] != expected.lengths[i] || got.places[i] != expected.places[i];
    total += got.lengths[i];
  }
  printf("stringmatch: %u nodes, %zu letters matched\n", t.count, total);
  free(text), free(t.nodes), free(letters);
  free(expected.lengths), free(expected.places), free(got.lengths), free(got.places);
  return workload_verdict_exact("stringmatch", 2 * count, wrong);
}
