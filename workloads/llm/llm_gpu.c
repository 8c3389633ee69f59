/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU's tokens: in each step all sequences that have a slot go through all layers together, one row for each token that they have and
 * that was not seen yet (Orca, OSDI 2022); keys and values lie in pages that any sequence may have (vLLM, SOSP 2023).
 *
 *     arrives --admit--> has a slot and pages --step: a row per token of the prompt--> --step: a row--> ... wanted tokens are made --leave-->
 *
 * Weights of layers that are not resident are in pinned host memory, and come through two buffers in turn: one is copied while the
 * kernels of the layer in the other one run. */
#include "llm.h"

#include <stdlib.h>
#include <string.h>

#include "gpu.h"
#include "workload.h"

extern const char workload_ptx[];

typedef struct layer {
  gpu_pointer weights[MATRICES]; /* of a layer that is not resident: 0 */
  void *pinned;                  /* its matrices behind one another; NULL: it is resident */
  gpu_pointer pool;              /* 0: pages are allocations */
  gpu_pointer *page;             /* the addresses of all pages */
} layer;

/* What a step's kernels read of their batch, in one allocation: each part's first word. */
typedef struct parts {
  size_t table, token, slot, position, same, last, words;
} parts;

typedef struct gpu {
  const model *m;
  const service *s;
  layer *layers;
  unsigned pages, rows; /* that a slot can have; rows that a step can have */
  size_t page_bytes;
  parts parts;
  uint32_t *batch; /* on the host */
  gpu_pointer on_gpu, embedding, turn, x, in, wide, scores, token, score;
  gpu_kernel embed, norm, dense, place, attend, gate, choose;
  gpu_stream copies;
  gpu_pointer buffer[2]; /* of layers that are not resident */
  unsigned fetched;      /* layers that were, so far */
  /* the sequences */
  unsigned *serving; /* [slots]: a request's number plus 1; 0: none */
  unsigned *seen;    /* [slots]: tokens of it whose keys and values are in its pages */
  unsigned *held;    /* [slots][pages]: numbers of pages */
  unsigned *unused;  /* a stack of pages */
  unsigned unused_count;
} gpu;

static size_t layer_bytes(const model *m) {
  size_t bytes = 0;
  for (int i = 0; i < MATRICES; i++) bytes += model_bytes(m, i);
  return bytes;
}

/* ---- memory ---- */

static void open_layer(gpu *g, unsigned which) {
  const model *m = g->m;
  layer *l = &g->layers[which];
  size_t pages = (size_t)g->s->slots * g->pages, offset = 0;
  if (which >= g->s->resident) l->pinned = gpu_allocate_pinned(layer_bytes(m));
  for (int i = 0; i < MATRICES; offset += model_bytes(m, i++)) {
    if (l->pinned) memcpy((char *)l->pinned + offset, m->weights[which][i], model_bytes(m, i));
    else l->weights[i] = gpu_upload(m->weights[which][i], model_bytes(m, i));
  }
  l->page = workload_memory(pages, sizeof *l->page);
  if (!g->s->own_pages) l->pool = gpu_allocate(pages * g->page_bytes);
  for (size_t i = 0; i < pages; i++) l->page[i] = l->pool ? l->pool + i * g->page_bytes : gpu_allocate(g->page_bytes);
}

static void close_layer(gpu *g, unsigned which) {
  layer *l = &g->layers[which];
  for (int i = 0; i < MATRICES && !l->pinned; i++) gpu_free(l->weights[i]);
  if (l->pinned) gpu_free_pinned(l->pinned);
  if (l->pool) gpu_free(l->pool);
  for (size_t i = 0; i < (size_t)g->s->slots * g->pages && !l->pool; i++) gpu_free(l->page[i]);
  free(l->page);
}

static parts divide(const gpu *g) {
  parts p = {0};
  p.token = 2 * (size_t)g->m->layers * g->s->slots * g->pages; /* the table is of addresses */
  p.slot = p.token + g->rows;
  p.position = p.slot + g->rows;
  p.same = p.position + g->rows;
  p.last = p.same + g->rows;
  p.words = p.last + g->s->slots;
  return p;
}

static void find_kernels(gpu *g) {
  g->embed = gpu_find_kernel("llm_embed");
  g->norm = gpu_find_kernel("llm_norm");
  g->dense = gpu_find_kernel("llm_dense");
  g->place = gpu_find_kernel("llm_place");
  g->attend = gpu_find_kernel("llm_attend");
  g->gate = gpu_find_kernel("llm_gate");
  g->choose = gpu_find_kernel("llm_choose");
}

static void open_all(gpu *g) {
  const model *m = g->m;
  unsigned slots = g->s->slots, widest = 3 * m->width > 2 * m->hidden ? 3 * m->width : 2 * m->hidden;
  gpu_open(workload_ptx);
  find_kernels(g);
  g->embedding = gpu_upload(m->embedding, (size_t)m->tokens * m->width * sizeof(uint16_t));
  g->turn = gpu_upload(m->turn, CONTEXT * HEAD * sizeof(float));
  g->x = gpu_allocate((size_t)g->rows * m->width * sizeof(float));
  g->in = gpu_allocate((size_t)g->rows * (m->width > m->hidden ? m->width : m->hidden) * sizeof(float));
  g->wide = gpu_allocate((size_t)g->rows * widest * sizeof(float));
  g->scores = gpu_allocate((size_t)slots * m->tokens * sizeof(float));
  g->token = gpu_allocate(slots * sizeof(uint32_t));
  g->score = gpu_allocate(slots * sizeof(float));
  g->parts = divide(g);
  g->batch = workload_memory(g->parts.words, sizeof *g->batch);
  g->on_gpu = gpu_allocate(g->parts.words * sizeof *g->batch);
  g->layers = workload_memory(m->layers, sizeof *g->layers);
  for (unsigned i = 0; i < m->layers; i++) open_layer(g, i);
  if (g->s->resident < m->layers) g->copies = gpu_open_stream();
  for (unsigned i = 0; i < 2 && g->copies; i++) g->buffer[i] = gpu_allocate(layer_bytes(m));
  g->serving = workload_memory(slots, sizeof *g->serving);
  g->seen = workload_memory(slots, sizeof *g->seen);
  g->held = workload_memory((size_t)slots * g->pages, sizeof *g->held);
  g->unused = workload_memory((size_t)slots * g->pages, sizeof *g->unused);
  for (unsigned i = slots * g->pages; i > 0; i--) g->unused[g->unused_count++] = i - 1;
}

static void close_all(gpu *g) {
  gpu_wait();
  for (unsigned i = 0; i < g->m->layers; i++) close_layer(g, i);
  for (unsigned i = 0; i < 2 && g->copies; i++) gpu_free(g->buffer[i]);
  if (g->copies) gpu_close_stream(g->copies);
  gpu_free(g->embedding), gpu_free(g->turn), gpu_free(g->x), gpu_free(g->in), gpu_free(g->wide);
  gpu_free(g->scores), gpu_free(g->token), gpu_free(g->score), gpu_free(g->on_gpu);
  gpu_close();
  free(g->layers), free(g->batch), free(g->serving), free(g->seen), free(g->held), free(g->unused);
}

/* ---- weights ---- */

/* Of the layers that are not resident, in turn, the next one is put on its way, behind the kernels that still read that buffer. */
static void fetch_next(gpu *g) {
  unsigned streamed = g->m->layers - g->s->resident, which = g->s->resident + g->fetched % streamed;
  gpu_after(g->copies, NULL);
  gpu_copy_pinned_on(g->copies, g->buffer[g->fetched++ % 2], g->layers[which].pinned, layer_bytes(g->m));
}

/* The layer's matrices; kernels that are launched from now on wait until they are there. */
static void find_weights(gpu *g, unsigned which, gpu_pointer at[MATRICES]) {
  memcpy(at, g->layers[which].weights, MATRICES * sizeof *at);
  if (which < g->s->resident) return;
  if (!g->fetched) fetch_next(g);
  gpu_after(NULL, g->copies);
  at[0] = g->buffer[(g->fetched - 1) % 2];
  for (int i = 1; i < MATRICES; i++) at[i] = at[i - 1] + model_bytes(g->m, i - 1);
  fetch_next(g);
}

/* ---- a step ---- */

static gpu_pointer part(const gpu *g, size_t word) { return g->on_gpu + word * sizeof(uint32_t); }

static void dense(const gpu *g, gpu_pointer from, gpu_pointer weights, gpu_pointer to, unsigned inputs, unsigned units,
                  unsigned rows, unsigned how) {
  gpu_shape shape = {gpu_divide_up(units, 4 * TILE_UNITS), gpu_divide_up(rows, TILE_ROWS), 128, 1};
  GPU_LAUNCH(g->dense, shape, from, weights, to, inputs, units, rows, how);
}

static void dense_of(const gpu *g, gpu_pointer from, const gpu_pointer *weights, int matrix, gpu_pointer to,
                     unsigned rows, unsigned how) {
  dense(g, from, weights[matrix], to, model_inputs(g->m, matrix), model_units(g->m, matrix), rows, how);
}

static void norm(const gpu *g, gpu_pointer which, unsigned rows) {
  unsigned width = g->m->width;
  gpu_pointer x = g->x, in = g->in;
  GPU_LAUNCH(g->norm, ((gpu_shape){gpu_divide_up(rows, 4), 1, 128, 1}), x, which, in, width, rows);
}

/* The pages of all sequences, or the pool that has them. */
static void declare(const gpu *g, unsigned which, uint64_t address[DECLARED]) {
  const layer *l = &g->layers[which];
  unsigned count = 0;
  memset(address, 0, DECLARED * sizeof *address);
  address[0] = l->pool;
  for (unsigned slot = 0; slot < g->s->slots && !l->pool; slot++)
    for (unsigned i = 0; i < g->pages && g->serving[slot]; i++) {
      const request *r = &g->s->requests[g->serving[slot] - 1];
      if (i < request_pages(r)) address[count++] = l->page[g->held[slot * g->pages + i]];
    }
}

static void run_layer(gpu *g, unsigned which, unsigned rows) {
  unsigned width = g->m->width, hidden = g->m->hidden, pages = g->pages;
  gpu_pointer slot = part(g, g->parts.slot), position = part(g, g->parts.position), same = part(g, g->parts.same),
              table = g->on_gpu + (size_t)which * g->s->slots * g->pages * sizeof(uint64_t), wide = g->wide, in = g->in,
              turn = g->turn, weights[MATRICES];
  uint64_t declared[DECLARED];
  find_weights(g, which, weights);
  declare(g, which, declared);
  norm(g, same, rows);
  dense_of(g, g->in, weights, QKV, g->wide, rows, DENSE_ROUNDS);
  GPU_LAUNCH(g->place, ((gpu_shape){rows, 1, 128, 1}), wide, slot, position, turn, table, width, pages, declared);
  GPU_LAUNCH(g->attend, ((gpu_shape){rows, width / HEAD, 32, 1}), wide, slot, position, table, in, width, pages,
             declared);
  dense_of(g, g->in, weights, PROJECTION, g->x, rows, DENSE_ADDS);
  norm(g, same, rows);
  dense_of(g, g->in, weights, GATE_UP, g->wide, rows, DENSE_ROUNDS);
  GPU_LAUNCH(g->gate, ((gpu_shape){rows, 1, 128, 1}), wide, in, hidden);
  dense_of(g, g->in, weights, DOWN, g->x, rows, DENSE_ADDS);
}

static uint32_t token_of(const request *r, unsigned at) {
  return at < r->prompt ? r->token[at] : r->made[ON_GPU][at - r->prompt];
}
static unsigned known(const request *r, unsigned seen) { return seen < r->prompt ? r->prompt : seen + 1; }

/* Rows, slot by slot; sequences: how many have one. Returns the rows. */
static unsigned fill_batch(gpu *g, unsigned *sequences) {
  unsigned rows = 0;
  *sequences = 0;
  for (unsigned slot = 0; slot < g->s->slots; slot++) {
    if (!g->serving[slot]) continue;
    const request *r = &g->s->requests[g->serving[slot] - 1];
    for (unsigned at = g->seen[slot]; at < known(r, g->seen[slot]); at++, rows++) {
      g->batch[g->parts.token + rows] = token_of(r, at);
      g->batch[g->parts.slot + rows] = slot;
      g->batch[g->parts.position + rows] = at;
      g->batch[g->parts.same + rows] = rows;
    }
    g->batch[g->parts.last + (*sequences)++] = rows - 1;
  }
  for (unsigned which = 0; which < g->m->layers; which++)
    for (unsigned i = 0; i < g->s->slots * g->pages; i++)
      memcpy(&g->batch[2 * ((size_t)which * g->s->slots * g->pages + i)], &g->layers[which].page[g->held[i]],
             sizeof(uint64_t));
  return rows;
}

static void leave(gpu *g, unsigned slot) {
  unsigned pages = request_pages(&g->s->requests[g->serving[slot] - 1]);
  while (pages) g->unused[g->unused_count++] = g->held[slot * g->pages + --pages];
  g->serving[slot] = 0;
}

/* Each sequence has one token more; those that have all that they want leave. */
static void take_tokens(gpu *g, unsigned sequences) {
  uint32_t *token = workload_memory(sequences, sizeof *token);
  float *score = workload_memory(sequences, sizeof *score);
  gpu_copy_to_host(token, g->token, sequences * sizeof *token);
  gpu_copy_to_host(score, g->score, sequences * sizeof *score);
  for (unsigned slot = 0, i = 0; slot < g->s->slots; slot++) {
    if (!g->serving[slot]) continue;
    request *r = &g->s->requests[g->serving[slot] - 1];
    g->seen[slot] = known(r, g->seen[slot]);
    unsigned made = g->seen[slot] - r->prompt;
    r->made[ON_GPU][made] = token[i];
    r->score[ON_GPU][made] = score[i++];
    if (made + 1 == r->wanted) leave(g, slot);
  }
  free(token), free(score);
}

static void step(gpu *g) {
  unsigned sequences, rows = fill_batch(g, &sequences), width = g->m->width, tokens = g->m->tokens;
  gpu_pointer token = part(g, g->parts.token), embedding = g->embedding, x = g->x, scores = g->scores, made = g->token,
              score = g->score;
  gpu_copy_to_device(g->on_gpu, g->batch, g->parts.words * sizeof *g->batch);
  GPU_LAUNCH(g->embed, ((gpu_shape){rows, 1, 128, 1}), token, embedding, x, width);
  for (unsigned i = 0; i < g->m->layers; i++) run_layer(g, i, rows);
  norm(g, part(g, g->parts.last), sequences);
  dense(g, g->in, g->embedding, g->scores, width, tokens, sequences, DENSE_STORES);
  GPU_LAUNCH(g->choose, ((gpu_shape){sequences, 1, 32, 1}), scores, made, score, tokens);
  take_tokens(g, sequences);
}

/* ---- sequences ---- */

static unsigned free_slot(const gpu *g) {
  unsigned slot = 0;
  while (slot < g->s->slots && g->serving[slot]) slot++;
  return slot;
}

/* Requests in the order in which they come; `next` is the first that has no slot yet. */
static unsigned admit(gpu *g, unsigned next, unsigned now) {
  for (unsigned slot; next < g->s->count && g->s->requests[next].arrival <= now && (slot = free_slot(g)) < g->s->slots;
       next++) {
    unsigned pages = request_pages(&g->s->requests[next]);
    g->serving[slot] = next + 1;
    g->seen[slot] = 0;
    for (unsigned i = 0; i < pages; i++) g->held[slot * g->pages + i] = g->unused[--g->unused_count];
  }
  return next;
}

unsigned llm_on_gpu(const model *m, const service *s) {
  gpu g = {.m = m, .s = s, .page_bytes = 2 * (size_t)PAGE_TOKENS * m->width * sizeof(uint16_t)};
  unsigned longest = 0, steps = 0;
  for (unsigned i = 0; i < s->count; i++) {
    const request *r = &s->requests[i];
    if (request_pages(r) > g.pages) g.pages = request_pages(r);
    if (r->prompt > longest) longest = r->prompt;
  }
  g.rows = s->slots * longest;
  open_all(&g);
  for (unsigned next = 0, now = 0; next < s->count || g.unused_count < s->slots * g.pages; now++) {
    next = admit(&g, next, now);
    if (g.unused_count == s->slots * g.pages) continue; /* there is none to serve: nothing runs in this step */
    step(&g);
    steps++;
  }
  close_all(&g);
  return steps;
}
