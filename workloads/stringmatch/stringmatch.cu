/* SPDX-License-Identifier: Apache-2.0 */
/* Finds parts of queries in a long text by its suffix tree: a thread takes one query, and from each of its letters
 * walks down from the root as long as the letters agree. Nodes and text are read here and there over the whole tree, a
 * few bytes at each place: nothing can be foreseen and almost no two lanes share a line. */
#include "device.h"

struct tree_node { /* same as in stringmatch.c */
  unsigned child[4];
  unsigned first, end; /* the letters of the edge that leads here: text[first] .. text[end - 1] */
  unsigned link, unused;
};

/* lengths[position * queries + query]: how many letters from there stand somewhere in the text; places: where. */
extern "C" __global__ void stringmatch(const tree_node *nodes, const unsigned char *text, const unsigned char *letters,
                                       unsigned queries, unsigned length, unsigned *lengths, unsigned *places) {
  unsigned query = blockIdx.x * blockDim.x + threadIdx.x;
  if (query >= queries) return;
  for (unsigned position = 0; position < length; position++) {
    unsigned node = 0, at = 0, end = 0, matched = 0;
    while (position + matched < length) {
      unsigned letter = letters[(position + matched) * queries + query];
      if (at == end) { /* at a node */
        unsigned child = nodes[node].child[letter];
        if (!child) break;
        node = child;
        at = nodes[node].first;
        end = nodes[node].end;
      }
      if (text[at] != letter) break;
      at++;
      matched++;
    }
    lengths[position * queries + query] = matched;
    places[position * queries + query] = at - matched;
  }
}
