/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU's tokens: each request by itself, token after token, with its keys and values in one piece. Every sum has the kernels' order: that of
 * a dense layer by 32 lanes, each with every 32nd chunk, and then by halves. So the bits are the same, whatever
 * a step's batch was and wherever pages are.
 *
 * Weights are kept as floats in an order in which the 32 lanes' numbers are side by side: [unit][chunk round][number of the chunk][lane]. */
#include "llm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exact.h"
#include "workload.h"

enum { LANES = 32, ROUND = LANES * CHUNK };

typedef struct reference {
  const model *m;
  float *embedding;
  float *(*weights)[MATRICES];
  float *keys, *values; /* of the request at hand: [layer][position][width] */
  float *x, *in, *packed, *wide, *scores;
} reference;

/* The number that fp16 bits are. No infinities here. */
static float widened(uint16_t bits) {
  float size = (float)(bits & 0x3ff) + ((bits & 0x7c00) ? 1024 : 0);
  int exponent = (bits & 0x7c00) ? (bits >> 10 & 31) - 25 : -24;
  return ldexpf(bits & 0x8000 ? -size : size, exponent);
}

/* To the nearest fp16 number, of two the even one; for numbers that fp16 can hold. */
static float rounded(float value) {
  union {
    float number;
    uint32_t bits;
  } u = {value};
  if (fabsf(value) < 0x1p-14f) return copysignf((fabsf(value) + 0.75f) - 0.75f, value); /* multiples of 2^-24 */
  u.bits += 0xfff + (u.bits >> 13 & 1);
  u.bits &= ~0x1fffu;
  return u.number;
}

static size_t padded(unsigned inputs) { return ((size_t)inputs + ROUND - 1) / ROUND * ROUND; }
static size_t place(size_t i) { return i / ROUND * ROUND + i % CHUNK * LANES + i % ROUND / CHUNK; }

static float *packed_weights(const uint16_t *from, unsigned units, unsigned inputs) {
  float *to = workload_memory(units * padded(inputs), sizeof *to);
  for (size_t unit = 0; unit < units; unit++)
    for (size_t i = 0; i < inputs; i++) to[unit * padded(inputs) + place(i)] = widened(from[unit * inputs + i]);
  return to;
}

static float by_halves(float sum[LANES]) {
  for (unsigned half = LANES / 2; half > 0; half /= 2)
    for (unsigned i = 0; i < half; i++) sum[i] += sum[i + half];
  return sum[0];
}

static void dense(reference *r, const float *from, const float *weights, float *to, unsigned inputs, unsigned units,
                  int how) {
  memset(r->packed, 0, padded(inputs) * sizeof *r->packed);
  for (size_t i = 0; i < inputs; i++) r->packed[place(i)] = from[i];
  for (size_t unit = 0; unit < units; unit++) {
    const float *weight = weights + unit * padded(inputs);
    float sum[LANES] = {0};
    for (size_t i = 0; i < padded(inputs); i += LANES)
      for (size_t lane = 0; lane < LANES; lane++)
        sum[lane] += weight[i + lane] * r->packed[i + lane]; /* an exact product */
    float total = by_halves(sum);
    to[unit] = how == DENSE_ADDS ? to[unit] + total : how == DENSE_ROUNDS ? rounded(total) : total;
  }
}

static void norm(const float *x, float *to, unsigned width) {
  float sum[LANES] = {0};
  for (unsigned i = 0; i < width; i++) sum[i % LANES] = fmaf(x[i], x[i], sum[i % LANES]);
  float root = sqrtf(by_halves(sum) / (float)width + 1e-5f);
  for (unsigned i = 0; i < width; i++) to[i] = rounded(x[i] / root);
}

static void turned(const float *from, float *to, const float *turn, unsigned width) {
  for (unsigned i = 0; i < width / 2; i++) {
    unsigned pair = i % (HEAD / 2), low = i / (HEAD / 2) * HEAD + pair, high = low + HEAD / 2;
    float a = from[low], b = from[high], c = turn[pair], s = turn[HEAD / 2 + pair];
    to[low] = rounded(fmaf(a, c, -(b * s)));
    to[high] = rounded(fmaf(a, s, b * c));
  }
}

static void attend(reference *r, const float *query, unsigned layer, unsigned position, float *to) {
  unsigned width = r->m->width;
  const float *keys = r->keys + (size_t)layer * CONTEXT * width, *values = r->values + (size_t)layer * CONTEXT * width;
  for (unsigned head = 0; head < width; head += HEAD) {
    float weight[CONTEXT], highest = -1e30f, sum[LANES] = {0};
    for (unsigned at = 0; at <= position; at++) {
      float score = 0;
      for (unsigned i = 0; i < HEAD; i++) score = fmaf(query[head + i], keys[at * width + head + i], score);
      weight[at] = score * 0.125f;
      highest = weight[at] > highest ? weight[at] : highest;
    }
    for (unsigned at = 0; at <= position; at++) {
      weight[at] = exact_exp(weight[at] - highest);
      sum[at % LANES] += weight[at];
    }
    float total = by_halves(sum);
    for (unsigned i = 0; i < HEAD; i++) {
      float made = 0;
      for (unsigned at = 0; at <= position; at++) made = fmaf(weight[at], values[at * width + head + i], made);
      to[head + i] = rounded(made / total);
    }
  }
}

/* x, of one token at one position, through all layers. */
static void forward(reference *r, uint32_t token, unsigned position) {
  const model *m = r->m;
  unsigned width = m->width;
  for (unsigned i = 0; i < width; i++) r->x[i] = widened(m->embedding[(size_t)token * width + i]);
  for (unsigned layer = 0; layer < m->layers; layer++) {
    float *const *weights = r->weights[layer];
    size_t row = ((size_t)layer * CONTEXT + position) * width;
    const float *turn = m->turn + position * HEAD;
    norm(r->x, r->in, width);
    dense(r, r->in, weights[QKV], r->wide, width, 3 * width, DENSE_ROUNDS);
    turned(r->wide + width, r->keys + row, turn, width);
    memcpy(r->values + row, r->wide + 2 * width, width * sizeof(float));
    turned(r->wide, r->in, turn, width);
    attend(r, r->in, layer, position, r->wide);
    dense(r, r->wide, weights[PROJECTION], r->x, width, width, DENSE_ADDS);
    norm(r->x, r->in, width);
    dense(r, r->in, weights[GATE_UP], r->wide, width, 2 * m->hidden, DENSE_ROUNDS);
    for (unsigned i = 0; i < m->hidden; i++) {
      float gate = r->wide[i];
      r->wide[i] = rounded(gate / (1 + exact_exp(-gate)) * r->wide[m->hidden + i]);
    }
    dense(r, r->wide, weights[DOWN], r->x, m->hidden, width, DENSE_ADDS);
  }
}

static uint32_t choose(reference *r, float *score) {
  uint32_t best = 0;
  norm(r->x, r->in, r->m->width);
  dense(r, r->in, r->embedding, r->scores, r->m->width, r->m->tokens, DENSE_STORES);
  for (uint32_t i = 1; i < r->m->tokens; i++) best = r->scores[i] > r->scores[best] ? i : best;
  *score = r->scores[best];
  return best;
}

static void serve(reference *r, request *q) {
  for (unsigned at = 0; at < q->prompt + q->wanted - 1; at++) {
    forward(r, at < q->prompt ? q->token[at] : q->made[ON_CPU][at - q->prompt], at);
    if (at + 1 < q->prompt) continue;
    unsigned made = at + 1 - q->prompt;
    q->made[ON_CPU][made] = choose(r, &q->score[ON_CPU][made]);
  }
}

void llm_on_cpu(const model *m, const service *s) {
  size_t widest = padded(3 * m->width > 2 * m->hidden ? 3 * m->width : 2 * m->hidden),
         cached = (size_t)m->layers * CONTEXT * m->width;
  reference r = {m,
                 packed_weights(m->embedding, m->tokens, m->width),
                 workload_memory(m->layers, sizeof *r.weights),
                 workload_memory(cached, sizeof(float)),
                 workload_memory(cached, sizeof(float)),
                 workload_memory(m->width, sizeof(float)),
                 workload_memory(m->width, sizeof(float)),
                 workload_memory(widest, sizeof(float)),
                 workload_memory(widest, sizeof(float)),
                 workload_memory(m->tokens, sizeof(float))};
  for (unsigned layer = 0; layer < m->layers; layer++)
    for (int i = 0; i < MATRICES; i++)
      r.weights[layer][i] = packed_weights(m->weights[layer][i], model_units(m, i), model_inputs(m, i));
  workload_cpu_begins();
  for (unsigned i = 0; i < s->count; i++) serve(&r, &s->requests[i]);
  workload_cpu_ends();
  for (unsigned layer = 0; layer < m->layers; layer++)
    for (int i = 0; i < MATRICES; i++) free(r.weights[layer][i]);
  free(r.embedding), free(r.weights), free(r.keys), free(r.values);
  free(r.x), free(r.in), free(r.packed), free(r.wide), free(r.scores);
}
