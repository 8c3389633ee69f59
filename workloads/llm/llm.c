/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of llm: random weights, random prompts, and requests that come in a fixed order. Tokens and their scores are compared bit for bit
 * with what the CPU makes of each request alone.
 *
 * With `resident` layers fewer than there are, the program itself brings the weights of the others again and again, layer by layer, as programs
 * do whose weights are larger than the GPU's memory. With `own_pages` each page of keys and values is an allocation, and launches name
 * those that they use. */
#include "llm.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workload.h"

unsigned model_units(const model *m, int matrix) {
  return matrix == QKV ? 3 * m->width : matrix == GATE_UP ? 2 * m->hidden : m->width;
}
unsigned model_inputs(const model *m, int matrix) { return matrix == DOWN ? m->hidden : m->width; }

/* The fp16 number whole / 2^scale; |whole| < 2048, and not so small that it has no leading bit. */
static uint16_t half_of(int whole, int scale) {
  int exponent = 25 - scale, size = abs(whole);
  if (!size) return 0;
  while (size < 1024) size *= 2, exponent--;
  return (uint16_t)((whole < 0 ? 0x8000 : 0) | exponent << 10 | (size & 0x3ff));
}

/* Numbers of [-most, most), where most is the power of two next above 1.7 / sqrt(inputs): sums of products of them keep their size. */
static uint16_t *random_weights(workload_random *random, size_t units, size_t inputs) {
  int scale = 10 + (int)floor(log2(sqrt((double)inputs) / 1.7));
  uint16_t *to = workload_memory(units * inputs, sizeof *to);
  for (size_t i = 0; i < units * inputs; i++) to[i] = half_of((int)workload_random_below(random, 2048) - 1024, scale);
  return to;
}

static model make_model(unsigned layers, unsigned width, unsigned tokens, workload_random *random) {
  model m = {.layers = layers, .width = width, .hidden = 2 * width, .tokens = tokens};
  m.embedding = random_weights(random, tokens, width);
  m.weights = workload_memory(layers, sizeof *m.weights);
  for (unsigned layer = 0; layer < layers; layer++)
    for (int i = 0; i < MATRICES; i++)
      m.weights[layer][i] = random_weights(random, model_units(&m, i), model_inputs(&m, i));
  m.turn = workload_memory(CONTEXT * HEAD, sizeof *m.turn);
  for (unsigned at = 0; at < CONTEXT; at++)
    for (unsigned i = 0; i < HEAD / 2; i++) {
      double angle = at * pow(10000, -2.0 * i / HEAD);
      m.turn[at * HEAD + i] = (float)cos(angle);
      m.turn[at * HEAD + HEAD / 2 + i] = (float)sin(angle);
    }
  return m;
}

static void free_model(model *m) {
  for (unsigned layer = 0; layer < m->layers; layer++)
    for (int i = 0; i < MATRICES; i++) free(m->weights[layer][i]);
  free(m->embedding), free(m->weights), free(m->turn);
}

/* From half of it to all of it. */
static unsigned about(workload_random *random, unsigned most) {
  unsigned least = (most + 1) / 2;
  return least + workload_random_below(random, most - least + 1);
}

/* One after the other, up to three steps apart. */
static void make_requests(service *s, unsigned prompt, unsigned wanted, unsigned tokens, workload_random *random) {
  unsigned now = 0;
  s->requests = workload_memory(s->count, sizeof *s->requests);
  for (unsigned i = 0; i < s->count; i++) {
    request *r = &s->requests[i];
    r->arrival = now;
    now += workload_random_below(random, 4);
    r->prompt = about(random, prompt);
    r->wanted = about(random, wanted);
    r->token = workload_memory(r->prompt, sizeof *r->token);
    for (unsigned k = 0; k < r->prompt; k++) r->token[k] = workload_random_below(random, tokens);
    for (int side = 0; side < 2; side++) {
      r->made[side] = workload_memory(r->wanted, sizeof *r->made[side]);
      r->score[side] = workload_memory(r->wanted, sizeof *r->score[side]);
    }
  }
}

/* How many tokens are not the CPU's, or were not chosen by the same score. */
static size_t wrong_tokens(const request *r) {
  size_t wrong = 0;
  for (unsigned i = 0; i < r->wanted; i++)
    wrong += r->made[ON_GPU][i] != r->made[ON_CPU][i] ||
             memcmp(&r->score[ON_GPU][i], &r->score[ON_CPU][i], sizeof(float)) != 0;
  return wrong;
}

static size_t weight_bytes(const model *m) {
  size_t bytes = 0;
  for (int i = 0; i < MATRICES; i++) bytes += model_bytes(m, i);
  return m->layers * bytes + (size_t)m->tokens * m->width * sizeof(uint16_t);
}

int main(int argc, char **argv) {
  workload_argument arguments[] = {
      {"layers", 4, 1, 64},          {"heads", 2, 1, 64},     {"vocabulary", 512, 32, 65536},
      {"requests", 5, 1, 1024},      {"slots", 3, 1, 64},     {"prompt", 20, 1, CONTEXT / 2},
      {"tokens", 6, 1, CONTEXT / 2}, {"resident", 64, 0, 64}, {"own_pages", 0, 0, 1}};
  workload_arguments(argc, argv, "llm", "tokens of a transformer, requests that come and go, keys and values in pages",
                     arguments, 9);
  workload_random random = {41};
  unsigned tokens = (unsigned)arguments[2].value, prompt = (unsigned)arguments[5].value,
           wanted = (unsigned)arguments[6].value;
  unsigned layers = (unsigned)arguments[0].value, resident = (unsigned)arguments[7].value;
  tokens -= tokens % TILE_UNITS;
  model m = make_model(layers, HEAD * (unsigned)arguments[1].value, tokens, &random);
  service s = {.count = (unsigned)arguments[3].value,
               .slots = (unsigned)arguments[4].value,
               .resident = resident < layers ? resident : layers,
               .own_pages = (int)arguments[8].value};
  if (s.slots * ((prompt + wanted + PAGE_TOKENS - 1) / PAGE_TOKENS) > DECLARED) {
    fprintf(stderr, "llm: slots times pages of %d tokens are more than %d, which the kernels' parameters can name\n",
            PAGE_TOKENS, DECLARED);
    return 2;
  }
  make_requests(&s, prompt, wanted, tokens, &random);
  unsigned steps = llm_on_gpu(&m, &s);
  llm_on_cpu(&m, &s);

  size_t checked = 0, wrong = 0, given = 0;
  for (unsigned i = 0; i < s.count; i++) {
    request *r = &s.requests[i];
    checked += r->wanted;
    given += r->prompt;
    wrong += wrong_tokens(r);
    free(r->token);
    for (int side = 0; side < 2; side++) free(r->made[side]), free(r->score[side]);
  }
  printf("llm: %zu tokens behind %zu of prompts, %u steps, %zu bytes of weights\n", checked, given, steps,
         weight_bytes(&m));
  free(s.requests);
  free_model(&m);
  return workload_verdict_exact("llm", checked, wrong);
}
