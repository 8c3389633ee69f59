/* SPDX-License-Identifier: Apache-2.0 */
/* Reading kernelslist.g (kernel_list.h). */
#include "import/kernel_list.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "trace/operations.h"

enum { LONG_LINES = 60 };

/* The file that the list names, or that with the ending of a compressed one if only that is there. */
static char *find_file(const char *folder, const char *name) {
  static const char *const endings[] = {"", ".xz", ".gz"};
  for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
    ff_text path = {0};
    ff_text_add(&path, "%s%s%s%s", name[0] == '/' ? "" : folder, name[0] == '/' ? "" : "/", name, endings[i]);
    if (!access(path.chars, F_OK)) return path.chars;
    free(path.chars);
  }
  ff_text path = {0};
  ff_text_add(&path, "%s%s%s", name[0] == '/' ? "" : folder, name[0] == '/' ? "" : "/", name);
  return path.chars;
}

static ff_status read_copy(const lines *from, char *line, list_entry *entry, ff_error *error) {
  char *address = strchr(line, ',') + 1, *bytes = strchr(address, ','), *end;
  if (bytes && address[0] == '0' && (address[1] | 32) == 'x') {
    entry->address = strtoull(address, &end, 16);
    bool good = end == bytes && bytes[1] >= '0' && bytes[1] <= '9';
    entry->bytes = strtoull(bytes + 1, &end, 10);
    while (*end == ' ') end++;
    if (good && !*end && entry->address < OPERATION_ADDRESS_MAX &&
        entry->bytes <= OPERATION_ADDRESS_MAX - entry->address)
      return FF_OK;
  }
  return lines_fail(from, error, "a copy is expected as 'MemcpyHtoD,0xADDRESS,BYTES': '%.*s'", LONG_LINES, line);
}

ff_status list_read(lines *from, const char *folder, list_entries *out, ff_error *error) {
  char *line;
  ff_status status;
  while (!(status = lines_next(from, &line, error)) && line) {
    list_entry entry = {0};
    size_t length = strlen(line);
    while (length && (line[length - 1] == ' ' || line[length - 1] == '\t')) line[--length] = '\0';
    if (!*line) continue;
    if (!strncmp(line, "MemcpyHtoD,", 11) || !strncmp(line, "MemcpyDtoH,", 11)) {
      entry.to_host = line[6] == 'D';
      status = read_copy(from, line, &entry, error);
      if (status) return status;
      if (!entry.bytes) continue;
    } else if (!strncmp(line, "kernel", 6)) {
      entry.file = find_file(folder, line);
    } else {
      return lines_fail(from, error, "neither a copy nor a kernel's file: '%.*s'", LONG_LINES, line);
    }
    FF_PUSH(out, entry);
  }
  return status;
}

void list_free(list_entries *list) {
  for (size_t i = 0; i < list->count; i++) free(list->items[i].file);
  free(list->items);
  *list = (list_entries){0};
}
