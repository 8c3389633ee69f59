/* SPDX-License-Identifier: Apache-2.0 */
/* The model driver's modules: which kernels an image has, and their parameters' sizes (model_driver.h). */
#include <stdlib.h>

#include "model_state.h"

static const char window_suffix[] = "__window";

/* The kernel of that name, or the one that NAME__window is a window of. */
static bool set_kernel(struct cuda_function_ *function, const char *name, size_t length) {
  size_t suffix = sizeof window_suffix - 1;
  if (length >= sizeof function->name) return false;
  memcpy(function->name, name, length);
  function->name[length] = '\0';
  function->window = length > suffix && !strcmp(function->name + length - suffix, window_suffix);
  if (function->window) length -= suffix;
  for (uint32_t i = 0; i < model.kernel_count && !function->kernel; i++)
    if (strlen(model.kernels[i].name) == length && !strncmp(model.kernels[i].name, name, length))
      function->kernel = &model.kernels[i];
  return function->kernel != NULL;
}

static bool add_size(struct cuda_function_ *function, unsigned long size) {
  if (function->count == MODEL_PARAMETERS || !size || size > 4096) return false;
  function->size[function->count++] = (uint32_t)size;
  return true;
}

/* "NAME SIZE SIZE ...\n" at *text; moves past it. */
static bool read_line(const char **text, struct cuda_function_ *function) {
  size_t length = strcspn(*text, " \n");
  if (!set_kernel(function, *text, length)) return false;
  for (*text += length; **text && **text != '\n';) {
    char *end;
    if (!add_size(function, strtoul(*text, &end, 10)) || end == *text) return false;
    *text = end;
  }
  if (**text) ++*text;
  return true;
}

/* The bytes of a parameter "... .u64 name" or "... .b8 name[48]", without its ".param" and up to its end. */
static unsigned long parameter_size(const char *text, const char *end) {
  static const char types[] = "bsuf";
  unsigned long bytes = 0;
  for (const char *at = text; at < end; at++) {
    if (*at == '.' && strchr(types, at[1]) && at[1] && at[2] >= '0' && at[2] <= '9')
      bytes = strtoul(at + 2, NULL, 10) / 8;
    if (*at == '[') bytes *= strtoul(at + 1, NULL, 10);
  }
  return bytes;
}

/* ".entry NAME ( .param ..., .param ... )": `text` behind ".entry". NULL: it is not that. */
static const char *read_entry(const char *text, struct cuda_function_ *function) {
  text += strspn(text, " \t\r\n");
  size_t length = strcspn(text, " \t\r\n({");
  if (!set_kernel(function, text, length)) return NULL;
  text += length;
  text += strspn(text, " \t\r\n");
  const char *close = *text == '(' ? strchr(text, ')') : NULL;
  for (const char *at = text; close && (at = strstr(at, ".param")) && at < close;) {
    const char *end = at + strcspn(at, ",)");
    if (!add_size(function, parameter_size(at + 6, end))) return NULL;
    at = end;
  }
  return close || *text != '(' ? text : NULL;
}

static struct cuda_function_ *add_function(struct cuda_module_ *module) {
  if (module->count == sizeof module->functions / sizeof *module->functions) return NULL;
  struct cuda_function_ *function = &module->functions[module->count++];
  function->device = module->device;
  return function;
}

bool module_read(struct cuda_module_ *module, const char *image) {
  struct cuda_function_ *function;
  if (!strncmp(image, "\177ELF", 4)) image += 4;
  if (!strncmp(image, "model\n", 6)) {
    for (image += 6; *image;)
      if (!(function = add_function(module)) || !read_line(&image, function)) return false;
    return true;
  }
  if (!strstr(image, ".version")) return false;
  while ((image = strstr(image, ".entry")))
    if (!(function = add_function(module)) || !(image = read_entry(image + 6, function))) return false;
  return true;
}
