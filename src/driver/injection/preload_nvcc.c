/* SPDX-License-Identifier: Apache-2.0 */
/* Programs compile kernels while they run, by ninja and nvcc (PyTorch's cpp_extension, FlashInfer, DeepSpeed), for the
 * GPU that they find: `-gencode=arch=compute_90a,code=sm_90a`, which leaves machine code only. nvcc makes PTX on the
 * way in any case, so it is told to keep it. Machine code and everything else in the file stay as they are.
 *
 * What nvcc keeps without being told: `-arch=sm_90` without `-code`, and `code=compute_90`. */
#include "driver/injection/preload_nvcc.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const both_options[] = {"-gencode", "--generate-code", NULL};
static const char *const code_options[] = {"-code", "--gpu-code", NULL};
static const char *const architecture_options[] = {"-arch", "--gpu-architecture", NULL};

typedef struct text {
  const char *at;
  size_t length;
} text;

/* The value of option `name` ("-code") at `*at`, behind "=" or in the next word; `*at` is then at the value's word. */
static bool value_of(const char *name, const char *words, size_t length, size_t *at, const char **value) {
  size_t known = strlen(name);
  if (strncmp(words + *at, name, known) != 0) return false;
  if (words[*at + known] == '=') {
    *value = words + *at + known + 1;
    return true;
  }
  size_t next = *at + known + 1;
  if (words[*at + known] || next >= length) return false;
  *at = next;
  *value = words + next;
  return true;
}

static bool value_of_any(const char *const names[], const char *words, size_t length, size_t *at, const char **value) {
  for (; *names; names++)
    if (value_of(*names, words, length, at, value)) return true;
  return false;
}

/* "arch=compute_90a" as it stands in an option's value: the architecture, up to a comma, a quote or a bracket. */
static text virtual_architecture(const char *value) {
  text found = {strstr(value, "compute_"), 0};
  if (found.at) found.length = strcspn(found.at, ",'\"] ");
  return found;
}

/* Is this architecture among those that a text names, "compute_90" not for "compute_90a"? */
static bool names(const char *codes, text architecture) {
  for (const char *at = codes; (at = strstr(at, "compute_")); at++)
    if (!strncmp(at, architecture.at, architecture.length) && !isalnum((unsigned char)at[architecture.length]))
      return true;
  return false;
}

/* Does any of the words have PTX made for this architecture? */
static bool makes_ptx(const char *words, size_t length, text architecture) {
  const char *value;
  for (size_t at = 0; at < length; at += strlen(words + at) + 1) {
    const char *codes = NULL;
    if (value_of_any(both_options, words, length, &at, &value)) codes = strstr(value, "code=");
    else if (value_of_any(code_options, words, length, &at, &value)) codes = value;
    if (codes && names(codes, architecture)) return true;
  }
  return false;
}

static bool add(char *to, size_t room, const char *words, size_t length, text architecture) {
  if (!architecture.at) return false;
  if (names(to, architecture) || makes_ptx(words, length, architecture)) return true;
  size_t used = strlen(to);
  int characters = (int)architecture.length;
  int added = snprintf(to + used, room - used, " -gencode arch=%.*s,code=%.*s", characters, architecture.at, characters,
                       architecture.at);
  return added > 0 && (size_t)added < room - used;
}

/* A value of -gencode, or one of -code with the architecture that -arch gives it: machine code without PTX? */
static bool lacks_ptx(const char *code) { return strstr(code, "sm_") && !strstr(code, "compute_"); }

static bool forbids(const char *word) {
  static const char *const words[] = {"-cubin", "--cubin", "-ptx",    "--ptx",     "-dlto",
                                      "--dlto", "-ltoir",  "--ltoir", "-optix-ir", "--optix-ir"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (!strcmp(word, words[i])) return true;
  return false;
}

bool preload_nvcc_options(const char *words, size_t length, char *to, size_t room) {
  const char *value, *code = NULL, *architecture = NULL;
  bool good = true;
  to[0] = '\0';
  for (size_t at = 0; at < length && good; at += strlen(words + at) + 1) {
    if (forbids(words + at)) good = false;
    else if (value_of_any(both_options, words, length, &at, &value)) {
      const char *of = strstr(value, "code=");
      if (of && lacks_ptx(of)) good = add(to, room, words, length, virtual_architecture(value));
    } else if (value_of_any(code_options, words, length, &at, &value)) code = value;
    else if (value_of_any(architecture_options, words, length, &at, &value)) architecture = value;
  }
  if (good && code && architecture && lacks_ptx(code) && virtual_architecture(architecture).at)
    good = add(to, room, words, length, virtual_architecture(architecture));
  if (!good) to[0] = '\0';
  return to[0] != '\0';
}

/* Puts the words of an environment's variable behind; false: there is no room for them. */
static bool add_words(const char *name, char *words, size_t *length, size_t room) {
  for (const char *at = getenv(name); at && *at;) {
    size_t size = strcspn(at, " \t\r\n");
    if (size >= room - *length) return false;
    memcpy(words + *length, at, size);
    words[*length + size] = '\0';
    *length += size + (size != 0);
    at += size + (at[size] != 0);
  }
  return true;
}

void preload_nvcc_keep_ptx(char *words, size_t length, size_t room) {
  static const char name[] = "NVCC_APPEND_FLAGS";
  char options[1024], all[4096];
  const char *own = getenv(name);
  if (!add_words("NVCC_PREPEND_FLAGS", words, &length, room) || !add_words(name, words, &length, room) ||
      !preload_nvcc_options(words, length, options, sizeof options))
    return;
  int written = snprintf(all, sizeof all, "%s%s", own ? own : "", options);
  if (written > 0 && (size_t)written < sizeof all) setenv(name, all, 1);
}
