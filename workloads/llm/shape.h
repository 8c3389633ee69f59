/* SPDX-License-Identifier: Apache-2.0 */
/* What both sides of llm have in common. */
#ifndef WORKLOADS_LLM_SHAPE_H
#define WORKLOADS_LLM_SHAPE_H

enum {
  HEAD = 64,        /* numbers of an attention head: two for each lane; 1 / sqrt(HEAD) is the scores' factor, 0.125 */
  CHUNK = 8,        /* fp16 numbers of a load of 16 bytes */
  TILE_ROWS = 8,    /* that share a load of weights */
  TILE_UNITS = 8,   /* that share one of activations; they divide the units of every product */
  PAGE_TOKENS = 16, /* positions of a page of keys and values */
  CONTEXT = 1024,   /* positions that a sequence can have */
  DECLARED = 448,   /* addresses in a launch's parameters, of which there are 4 KiB */
  DENSE_STORES = 0, /* what llm_dense does with a sum */
  DENSE_ROUNDS = 1, /* to fp16 */
  DENSE_ADDS = 2    /* to what is there */
};

#endif
