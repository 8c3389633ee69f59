/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of plain and compressed files (lines.h): a buffer of what was read, another of what that expands to.
 *
 *   file -> packed -> (zlib, liblzma, or as it is) -> text -> lines
 *
 * `text` has whole lines from `at`, and at its end a part of one that is moved to the front before
 * more comes. */
#include "import/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <lzma.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/memory.h"

enum { PACKED_BYTES = 1 << 16, TEXT_BYTES = 4 * LINES_LIMIT };
#define XZ_MEMORY (UINT64_C(1) << 30) /* what a file may ask for to be expanded; xz -9 asks for 65 MiB */

typedef enum packing { PLAIN, GZIP, XZ } packing;

struct lines {
  char *name;
  int descriptor; /* -1: `packed` is all there is */
  packing packing;
  z_stream gzip;
  lzma_stream xz;
  const uint8_t *packed; /* not yet expanded */
  size_t packed_left;
  bool file_ended, stream_ended; /* stream_ended: the compressed stream is whole */
  uint8_t *own;                  /* PACKED_BYTES, where `packed` points into, if there is a file */
  char *text;
  size_t at, end; /* of what is there in text */
  uint64_t number;
};

/* ---- life ---- */

static lines *create(const char *name, int descriptor) {
  lines *l = ff_alloc(sizeof *l);
  l->name = ff_strdup(name);
  l->descriptor = descriptor;
  l->text = ff_alloc(TEXT_BYTES + 1);
  return l;
}

void lines_close(lines *l) {
  if (!l) return;
  if (l->packing == GZIP) inflateEnd(&l->gzip);
  if (l->packing == XZ) lzma_end(&l->xz);
  if (l->descriptor >= 0) close(l->descriptor);
  free(l->own);
  free(l->text);
  free(l->name);
  free(l);
}

static ff_status read_more(lines *l, ff_error *error) {
  if (l->packed_left || l->file_ended) return FF_OK;
  ssize_t got;
  do got = read(l->descriptor, l->own, PACKED_BYTES);
  while (got < 0 && errno == EINTR);
  if (got < 0) return ff_fail(error, FF_NOT_FOUND, "%s: cannot be read: %s", l->name, strerror(errno));
  l->packed = l->own;
  l->packed_left = (size_t)got;
  l->file_ended = !got;
  return FF_OK;
}

static ff_status begin(lines *l, ff_error *error) {
  static const uint8_t xz[] = {0xfd, '7', 'z', 'X', 'Z', 0}, gzip[] = {0x1f, 0x8b};
  ff_status status = read_more(l, error);
  if (status) return status;
  if (l->packed_left >= sizeof xz && !memcmp(l->packed, xz, sizeof xz)) {
    l->xz = (lzma_stream)LZMA_STREAM_INIT;
    if (lzma_stream_decoder(&l->xz, XZ_MEMORY, LZMA_CONCATENATED))
      return ff_fail(error, FF_INTERNAL, "%s: liblzma refuses to start", l->name);
    l->packing = XZ;
  } else if (l->packed_left >= sizeof gzip && !memcmp(l->packed, gzip, sizeof gzip)) {
    if (inflateInit2(&l->gzip, 15 + 16)) return ff_fail(error, FF_INTERNAL, "%s: zlib refuses to start", l->name);
    l->packing = GZIP;
  }
  return FF_OK;
}

ff_status lines_open(const char *path, lines **out, ff_error *error) {
  struct stat info;
  int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return ff_fail(error, FF_NOT_FOUND, "%s: cannot be read: %s", path, strerror(errno));
  if (fstat(descriptor, &info) || !S_ISREG(info.st_mode)) {
    close(descriptor);
    return ff_fail(error, FF_NOT_FOUND, "%s: cannot be read: it is no regular file", path);
  }
  lines *l = create(path, descriptor);
  l->own = ff_alloc(PACKED_BYTES);
  ff_status status = begin(l, error);
  if (status) lines_close(l);
  else *out = l;
  return status;
}

lines *lines_of_text(const char *name, const char *text, size_t size) {
  lines *l = create(name, -1);
  l->packed = (const uint8_t *)text;
  l->packed_left = size;
  l->file_ended = true;
  return l;
}

/* ---- expanding ---- */

static ff_status expand_gzip(lines *l, ff_error *error) {
  z_stream *z = &l->gzip;
  if (l->stream_ended && l->packed_left) { /* another one behind it */
    inflateReset(z);
    l->stream_ended = false;
  }
  z->next_in = (Bytef *)(uintptr_t)l->packed;
  z->avail_in = (uInt)l->packed_left;
  z->next_out = (Bytef *)l->text + l->end;
  z->avail_out = (uInt)(TEXT_BYTES - l->end);
  int result = inflate(z, Z_NO_FLUSH);
  l->packed = z->next_in;
  l->packed_left = z->avail_in;
  l->end = TEXT_BYTES - z->avail_out;
  l->stream_ended = result == Z_STREAM_END;
  if (result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR) return FF_OK;
  return lines_fail(l, error, "behind this line the gzip data is broken");
}

static ff_status expand_xz(lines *l, ff_error *error) {
  lzma_stream *x = &l->xz;
  x->next_in = l->packed;
  x->avail_in = l->packed_left;
  x->next_out = (uint8_t *)l->text + l->end;
  x->avail_out = TEXT_BYTES - l->end;
  lzma_ret result = lzma_code(x, l->file_ended ? LZMA_FINISH : LZMA_RUN);
  l->packed = x->next_in;
  l->packed_left = x->avail_in;
  l->end = TEXT_BYTES - x->avail_out;
  l->stream_ended = result == LZMA_STREAM_END;
  if (result == LZMA_OK || result == LZMA_STREAM_END || result == LZMA_BUF_ERROR) return FF_OK;
  return lines_fail(l, error, "behind this line the xz data is broken");
}

static void copy_plain(lines *l) {
  size_t count = TEXT_BYTES - l->end < l->packed_left ? TEXT_BYTES - l->end : l->packed_left;
  memcpy(l->text + l->end, l->packed, count);
  l->packed += count;
  l->packed_left -= count;
  l->end += count;
  l->stream_ended = true;
}

/* More text behind what is there; *more: some came. */
static ff_status expand(lines *l, bool *more, ff_error *error) {
  memmove(l->text, l->text + l->at, l->end - l->at);
  l->end -= l->at;
  l->at = 0;
  size_t before = l->end;
  for (*more = false; !*more;) {
    ff_status status = read_more(l, error);
    if (status) return status;
    bool last = l->file_ended && !l->packed_left;
    if (last && (l->packing == PLAIN || l->stream_ended)) return FF_OK;
    if (l->packing == PLAIN) copy_plain(l);
    else if ((status = l->packing == XZ ? expand_xz(l, error) : expand_gzip(l, error))) return status;
    *more = l->end > before;
    if (last && !*more && !l->stream_ended)
      return lines_fail(l, error, "behind this line the compressed file is cut off");
  }
  return FF_OK;
}

/* ---- lines ---- */

ff_status lines_next(lines *l, char **line, ff_error *error) {
  size_t looked = 0;
  for (;;) {
    char *start = l->text + l->at, *newline = memchr(start + looked, '\n', l->end - l->at - looked);
    looked = l->end - l->at;
    if (newline ? newline - start > LINES_LIMIT : looked > LINES_LIMIT) {
      l->number++;
      return lines_fail(l, error, "a line of more than %d bytes", LINES_LIMIT);
    }
    if (newline) {
      l->number++;
      l->at += (size_t)(newline - start) + 1;
      *newline = '\0';
      if (newline > start && newline[-1] == '\r') newline[-1] = '\0';
      *line = start;
      return FF_OK;
    }
    bool more;
    ff_status status = expand(l, &more, error);
    if (status) return status;
    if (more) continue;
    *line = NULL;
    if (!looked) return FF_OK;
    l->number++; /* the last line has no end */
    *line = l->text;
    l->text[l->end] = '\0';
    l->at = l->end = 0;
    return FF_OK;
  }
}

ff_status lines_fail(const lines *l, ff_error *error, const char *format, ...) {
  ff_error what;
  va_list args;
  va_start(args, format);
  ff_vfail(&what, FF_PARSE, format, args);
  va_end(args);
  return ff_fail(error, FF_PARSE, "%s:%llu: %s", l->name, (unsigned long long)l->number, what.message);
}

uint64_t lines_number(const lines *l) { return l->number; }
