/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of compile/. */
#ifndef FF_COMPILE_PRIVATE_H
#define FF_COMPILE_PRIVATE_H

#include "compile/compile.h"
#include "compile/image.h"
#include "exec/launch/native.h"

#define COMPILE_MAX_IMAGE (64u << 20)

typedef struct compile_key {
  uint64_t half[2];
} compile_key;

/* The key of a request for the compiler that would be asked; false: there is none. */
bool compile_make_key(const void *request, uint32_t bytes, compile_key *key);

/* spawn.c: asks farfault-compile, which keeps the image in the cache, also if this process ends before. The caller
 * frees *image. NULL: it could not. *microseconds: how long it took. */
unsigned char *compile_ask(const void *request, uint32_t bytes, const compile_key *key, uint32_t *image_bytes,
                           uint64_t *microseconds);
/* How long it may take, from asking to the last byte: 60 s if this is never called. */
void compile_patience(uint32_t milliseconds);

/* image.c: seals what the compiler made (key, checksum); is it whole, and for this key? */
bool compile_seal(unsigned char *image, uint32_t bytes, const compile_key *key);
bool compile_is_whole(const unsigned char *image, uint32_t bytes, const compile_key *key, uint32_t function_count);
/* Maps it for execution, for as long as the process lives: a body of each function. NULL: the host does not let us. */
exec_native_function *compile_map(const unsigned char *image);

/* code_store.c: the cache on disk. NULL: not there, or broken. */
unsigned char *compile_load(const compile_key *key, uint32_t function_count, uint32_t *bytes);
/* The same at a path that compile_path gave. */
unsigned char *compile_load_at(const char *path, uint32_t function_count, uint32_t *bytes);
/* Has farfault-compile given it up, because it took more processor time than it may? */
bool compile_refused(const compile_key *key);
/* Where the cache has the image of that key; false: there is no cache. */
bool compile_path(const compile_key *key, char *path, size_t room);
/* For farfault-compile: seals an image and keeps it at such a path, whose last part is the key; the path is no longer
 * whole then. */
bool compile_keep_at(char *path, unsigned char *image, uint32_t bytes);

#endif
