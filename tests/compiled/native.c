/* SPDX-License-Identifier: Apache-2.0 */
/* A provider of exec/launch/native.h that asks the generator itself. Code lives as long as the process. */
#include "native.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "compile/kernel_describe.h"
#include "compile/generator/emit_check.h"
#include "compile/generator/emit.h"
#include "compile/compile_private.h"

static char problem[256];
static FF_VEC(exec_native_code *) all; /* what was made */

static exec_native_function *bodies(const core_launch *launch, const exec_code *code, uint32_t watch, bool any) {
  uint32_t bytes, image_bytes;
  unsigned char *image = NULL;
  const char *message = "";
  exec_native_function *made = NULL;
  const compile_key key = {{1, 2}};
  void *request = native_describe(launch->kernel, code, launch->isa, watch, any, &bytes);
  if (!request) snprintf(problem, sizeof problem, "it is too large");
  else if (!check_request(request, bytes, &message) || !emit_image(request, &image, &image_bytes, &message))
    snprintf(problem, sizeof problem, "%s", message);
  else if (!compile_seal(image, image_bytes, &key) ||
           !compile_is_whole(image, image_bytes, &key, launch->function_count))
    snprintf(problem, sizeof problem, "the image is not whole");
  else made = compile_map(image);
  free(image);
  free(request);
  return made;
}

static const exec_native_code *make(const core_launch *launch, const exec_code *code, uint32_t watch) {
  exec_native_function *full = bodies(launch, code, watch, false), *any = bodies(launch, code, watch, true);
  exec_native_code *made = full && any ? ff_alloc((launch->function_count + (size_t)1) * sizeof *made) : NULL;
  for (uint32_t f = 0; made && f < launch->function_count; f++) made[f] = (exec_native_code){full[f], any[f]};
  if (made) FF_PUSH(&all, made);
  free(full);
  free(any);
  return made;
}

static const exec_native_code *begin(core_launch *launch, const exec_code *code, void **job) {
  exec_code *known = (exec_code *)(uintptr_t)code;
  *job = NULL;
  if (exec_isa_index(launch->isa) >= EXEC_ISAS - 1) return NULL;
  uint32_t watch = native_watch(launch);
  if (!known->native[watch]) known->native[watch] = (void *)(uintptr_t)make(launch, code, watch);
  return known->native[watch];
}

static const exec_native_provider provider = {.begin = begin};

void native_inside(bool compile) {
  if (compile) problem[0] = 0; /* of an earlier program */
  exec_native_use(compile ? &provider : NULL);
}

const char *native_problem(void) { return problem[0] ? problem : NULL; }
