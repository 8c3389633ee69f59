/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of llm's host side: the model and the requests (llm.c), the GPU's tokens (llm_gpu.c), the CPU's (llm_cpu.c). */
#ifndef WORKLOADS_LLM_H
#define WORKLOADS_LLM_H

#include <stddef.h>
#include <stdint.h>

#include "shape.h"

/* Matrices of a layer: [units][inputs], fp16. */
enum { QKV, PROJECTION, GATE_UP, DOWN, MATRICES };

typedef struct model {
  unsigned layers, width, hidden, tokens; /* tokens: of the vocabulary */
  uint16_t *embedding;                    /* [tokens][width]; the last product is with it, too */
  uint16_t *(*weights)[MATRICES];         /* of each layer */
  float *turn;                            /* [CONTEXT][cosine, sine][HEAD / 2] of positions */
} model;

unsigned model_units(const model *m, int matrix);
unsigned model_inputs(const model *m, int matrix);
static inline size_t model_bytes(const model *m, int matrix) {
  return (size_t)model_units(m, matrix) * model_inputs(m, matrix) * sizeof(uint16_t);
}

typedef struct request {
  unsigned arrival;        /* the step before which it comes */
  unsigned prompt, wanted; /* tokens given, tokens to make */
  uint32_t *token;         /* [prompt] */
  uint32_t *made[2];       /* [wanted] on the GPU, on the CPU */
  float *score[2];         /* with which each was chosen */
} request;
enum { ON_GPU, ON_CPU };

typedef struct service {
  request *requests;
  unsigned count, slots;
  unsigned
      resident; /* so many layers' weights stay on the GPU; those of the others are copied in again for each step */
  int own_pages; /* pages of keys and values are allocations of their own, which launches name; else a pool for each layer */
} service;

static inline unsigned request_pages(const request *r) {
  return (r->prompt + r->wanted + PAGE_TOKENS - 1) / PAGE_TOKENS;
}

/* Both fill made and score of every request. Steps: of the GPU. */
unsigned llm_on_gpu(const model *m, const service *s);
void llm_on_cpu(const model *m, const service *s);

#endif
