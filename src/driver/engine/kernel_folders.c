/* SPDX-License-Identifier: Apache-2.0 */
/* Folders of PTX, and the index of each (kernel_folders.h).
 *
 * The index is text: a line that names the format, then for each file "file SIZE SECONDS NANOSECONDS NAME" and a line
 * with a hash for each name in it. Whatever is wrong in it, the file is read again. */
#define _GNU_SOURCE
#include "driver/engine/kernel_folders.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/memory.h"
#include "driver/engine/kernel_name.h"
#include "driver/engine/kernel_text.h"

#define INDEX_NAME ".farfault-kernels"
#define INDEX_FORMAT "farfault kernels 1"

typedef struct unit {
  char *path;       /* another one once the file has changed */
  const char *name; /* in `path`, behind the folder */
  size_t folder;    /* its place among the folders */
  struct stat about;
  kernel_hashes hashes; /* sorted */
  bool known;           /* hashes are there */
} unit;

typedef struct watched { /* a folder, or a folder in one */
  char *path;
  size_t rank;             /* the lower one stands before */
  struct timespec changed; /* its own time when it was read last */
  time_t read;             /* and when that was; 0: it is to be read */
} watched;

struct kernel_folders {
  FF_VEC(unit) units;
  FF_VEC(char *) former; /* paths of files as they were before they changed: callers may hold them */
  FF_VEC(watched) folders;
  size_t listed; /* the user's, which are the first */
  void (*say)(const char *message);
};

static void add_hash(void *context, const kernel_definition *found) {
  kernel_hashes *hashes = context;
  FF_PUSH(hashes, kernel_name_hash(found->name, found->name_length));
}

bool kernel_hashes_of(const char *text, size_t length, kernel_hashes *hashes) {
  return kernel_text_scan(text, length, add_hash, hashes);
}

/* ---- files ---- */

static void say(const kernel_folders *folders, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(const kernel_folders *folders, const char *format, ...) {
  char message[2048];
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  if (folders->say) folders->say(message);
}

static int compare_hashes(const void *left, const void *right) {
  uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
  return (a > b) - (a < b);
}

static void sort_hashes(kernel_hashes *hashes) {
  if (hashes->count) qsort(hashes->items, hashes->count, sizeof *hashes->items, compare_hashes);
}

static void read_unit(const kernel_folders *folders, unit *one) {
  char *text;
  size_t length;
  ff_error error;
  one->known = true;
  if (ff_file_read(one->path, 0, &text, &length, &error)) {
    say(folders, "--kernels: %s", error.message);
    return;
  }
  if (!kernel_hashes_of(text, length, &one->hashes))
    say(folders, "--kernels: %s is no PTX text (it must begin with .version): it is left out", one->path);
  sort_hashes(&one->hashes);
  free(text);
}

static bool same_time(const struct timespec *a, const struct timespec *b) {
  return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/* "file SIZE SECONDS NANOSECONDS NAME": which unit that is, unless it has changed; NULL: none. */
static unit *indexed_unit(const char *line, unit *units, size_t count) {
  long long size, seconds;
  long nanoseconds;
  int used = 0;
  if (sscanf(line, "file %lld %lld %ld %n", &size, &seconds, &nanoseconds, &used) != 3 || !used) return NULL;
  const struct timespec changed = {.tv_sec = (time_t)seconds, .tv_nsec = nanoseconds};
  for (size_t i = 0; i < count; i++)
    if (!units[i].known && !strcmp(units[i].name, line + used))
      return units[i].about.st_size == size && same_time(&units[i].about.st_mtim, &changed) ? &units[i] : NULL;
  return NULL;
}

static void read_index(const char *path, unit *units, size_t count) {
  char *text, *rest, *line;
  size_t length;
  unit *current = NULL;
  if (ff_file_read(path, 0, &text, &length, NULL)) return;
  rest = text;
  line = strsep(&rest, "\n");
  if (strcmp(line, INDEX_FORMAT)) rest = NULL;
  while (rest && (line = strsep(&rest, "\n")) && *line) {
    char *end;
    if (!strncmp(line, "file ", 5)) {
      current = indexed_unit(line, units, count);
      if (current) current->known = true;
      continue;
    }
    uint64_t hash = strtoull(line, &end, 16);
    if (*end || end == line) break;
    if (current) FF_PUSH(&current->hashes, hash);
  }
  free(text);
  for (size_t i = 0; i < count; i++) sort_hashes(&units[i].hashes);
}

static void write_index(const char *path, const unit *units, size_t count) {
  ff_text text = {0};
  ff_text_add(&text, INDEX_FORMAT "\n");
  for (size_t i = 0; i < count; i++) {
    ff_text_add(&text, "file %lld %lld %ld %s\n", (long long)units[i].about.st_size,
                (long long)units[i].about.st_mtim.tv_sec, units[i].about.st_mtim.tv_nsec, units[i].name);
    for (size_t k = 0; k < units[i].hashes.count; k++)
      ff_text_add(&text, "%llx\n", (unsigned long long)units[i].hashes.items[k]);
  }
  ff_file_write(path, text.chars, text.length, NULL); /* not to be written there: files are read each time */
  free(text.chars);
}

/* ---- folders ---- */

static int is_text(const struct dirent *entry) {
  size_t length = strlen(entry->d_name);
  return length > 4 && !strcmp(entry->d_name + length - 4, ".ptx") && !strchr(entry->d_name, '\n');
}

static int by_name(const struct dirent **left, const struct dirent **right) {
  return strcmp((*left)->d_name, (*right)->d_name);
}

static void add_unit(kernel_folders *folders, size_t folder, const char *name) {
  unit one = {.folder = folder};
  ff_text path = {0};
  ff_text_add(&path, "%s/%s", folders->folders.items[folder].path, name);
  if (stat(path.chars, &one.about)) say(folders, "--kernels: %s: %s", path.chars, strerror(errno));
  else if (!S_ISREG(one.about.st_mode)) say(folders, "--kernels: %s is not a file: it is left out", path.chars);
  else {
    one.path = path.chars;
    one.name = path.chars + path.length - strlen(name);
    FF_PUSH(&folders->units, one);
    return;
  }
  free(path.chars);
}

static int is_folder(const struct dirent *entry) {
  return (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN) && entry->d_name[0] != '.' && !is_text(entry);
}

static bool is_watched(const kernel_folders *folders, const char *path) {
  for (size_t i = 0; i < folders->folders.count; i++)
    if (!strcmp(folders->folders.items[i].path, path)) return true;
  return false;
}

/* Compilers put what they keep into folders of their own below a given one (TMPDIR). Theirs are read as they come, and
 * have no index. */
static void watch_inner(kernel_folders *folders, size_t outer) {
  struct dirent **entries;
  int count = scandir(folders->folders.items[outer].path, &entries, is_folder, by_name);
  for (int i = 0; i < count; i++) {
    struct stat about;
    ff_text path = {0};
    ff_text_add(&path, "%s/%s", folders->folders.items[outer].path, entries[i]->d_name);
    watched one = {.path = path.chars, .rank = folders->listed + outer};
    if (!is_watched(folders, path.chars) && !stat(path.chars, &about) && S_ISDIR(about.st_mode))
      FF_PUSH(&folders->folders, one);
    else free(path.chars);
    free(entries[i]);
  }
  if (count >= 0) free(entries);
}

static void add_folder(kernel_folders *folders, size_t number) {
  struct dirent **entries;
  const char *folder = folders->folders.items[number].path;
  int count = scandir(folder, &entries, is_text, by_name);
  if (count < 0) {
    say(folders, "--kernels: %s: %s", folder, strerror(errno));
    return;
  }
  size_t first = folders->units.count;
  for (int i = 0; i < count; i++) {
    add_unit(folders, number, entries[i]->d_name);
    free(entries[i]);
  }
  free(entries);
  if (!count) say(folders, "--kernels: %s has no .ptx files", folder);
  size_t added = folders->units.count - first;
  if (!added) return;
  unit *units = folders->units.items + first;
  ff_text index = {0};
  ff_text_add(&index, "%s/" INDEX_NAME, folder);
  read_index(index.chars, units, added);
  bool changed = false;
  for (size_t i = 0; i < added; i++) {
    if (units[i].known) continue;
    read_unit(folders, &units[i]);
    changed = true;
  }
  if (changed) write_index(index.chars, units, added);
  free(index.chars);
}

kernel_folders *kernel_folders_open(const char *list, void (*say_it)(const char *message)) {
  kernel_folders *folders = ff_alloc(sizeof *folders);
  folders->say = say_it;
  char *names = ff_strdup(list), *rest = names, *folder;
  while ((folder = strsep(&rest, ":"))) {
    if (!*folder) continue;
    watched one = {.path = ff_strdup(folder), .rank = folders->listed++};
    FF_PUSH(&folders->folders, one);
    add_folder(folders, folders->listed - 1);
  }
  free(names);
  return folders;
}

static unit *find_unit(const kernel_folders *folders, size_t folder, const char *name) {
  for (size_t i = 0; i < folders->units.count; i++)
    if (folders->units.items[i].folder == folder && !strcmp(folders->units.items[i].name, name))
      return &folders->units.items[i];
  return NULL;
}

/* A compiler writes a file again, and one that was looked at while it was being written has changed since. What the
 * file holds now has a path of its own, so that it is not taken for what it was. */
static bool read_changed(kernel_folders *folders, unit *one) {
  struct stat about;
  if (stat(one->path, &about) ||
      (about.st_size == one->about.st_size && same_time(&about.st_mtim, &one->about.st_mtim)))
    return false;
  char *path = ff_strdup(one->path);
  FF_PUSH(&folders->former, one->path);
  one->name = path + (one->name - one->path);
  one->path = path;
  one->about = about;
  one->hashes.count = 0;
  read_unit(folders, one);
  return true;
}

/* The index is left as it is: the next process reads these files once more and writes it. */
static void add_new_units(kernel_folders *folders, size_t folder) {
  struct dirent **entries;
  int count = scandir(folders->folders.items[folder].path, &entries, is_text, by_name);
  for (int i = 0; i < count; i++) {
    size_t before = folders->units.count;
    if ((entries[i]->d_type == DT_REG || entries[i]->d_type == DT_LNK || entries[i]->d_type == DT_UNKNOWN) &&
        !find_unit(folders, folder, entries[i]->d_name))
      add_unit(folders, folder, entries[i]->d_name);
    if (folders->units.count > before) read_unit(folders, &folders->units.items[before]);
    free(entries[i]);
  }
  if (count >= 0) free(entries);
}

/* May a file have come since the folder was read? A folder that changed in the second before it was read may have
 * changed once more without another time. */
static bool may_have_more(watched *folder) {
  struct stat about;
  if (stat(folder->path, &about)) return false;
  if (same_time(&about.st_mtim, &folder->changed) && about.st_mtim.tv_sec + 1 < folder->read) return false;
  folder->changed = about.st_mtim;
  folder->read = time(NULL);
  return true;
}

bool kernel_folders_renew(kernel_folders *folders) {
  size_t before = folders ? folders->units.count : 0;
  bool changed = false;
  for (size_t i = 0; i < before; i++) changed = read_changed(folders, &folders->units.items[i]) || changed;
  for (size_t i = 0; folders && i < folders->folders.count; i++) { /* those that are found in one are behind it */
    if (!may_have_more(&folders->folders.items[i])) continue;
    add_new_units(folders, i);
    if (i < folders->listed) watch_inner(folders, i);
  }
  return folders && (changed || folders->units.count > before);
}

void kernel_folders_close(kernel_folders *folders) {
  for (size_t i = 0; folders && i < folders->units.count; i++) {
    free(folders->units.items[i].path);
    free(folders->units.items[i].hashes.items);
  }
  for (size_t i = 0; folders && i < folders->folders.count; i++) free(folders->folders.items[i].path);
  for (size_t i = 0; folders && i < folders->former.count; i++) free(folders->former.items[i]);
  if (folders) free(folders->units.items), free(folders->folders.items), free(folders->former.items);
  free(folders);
}

/* ---- looking up ---- */

static size_t defined_in(const unit *one, const uint64_t *names, size_t count) {
  size_t found = 0;
  for (size_t i = 0; i < count && one->hashes.count; i++)
    found += bsearch(&names[i], one->hashes.items, one->hashes.count, sizeof *names, compare_hashes) != NULL;
  return found;
}

/* Of two that define as many of the names. */
static bool stands_before(const kernel_folders *folders, const unit *one, const unit *other) {
  const struct timespec *a = &one->about.st_mtim, *b = &other->about.st_mtim;
  size_t rank = folders->folders.items[one->folder].rank, other_rank = folders->folders.items[other->folder].rank;
  if (rank != other_rank) return rank < other_rank;
  if (!same_time(a, b)) return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
  return strcmp(one->name, other->name) < 0;
}

const char *kernel_folders_best(const kernel_folders *folders, const uint64_t *names, size_t count) {
  size_t most = 0;
  const unit *best = NULL;
  for (size_t i = 0; folders && i < folders->units.count; i++) {
    const unit *one = &folders->units.items[i];
    size_t found = defined_in(one, names, count);
    if (found > most || (found && found == most && stands_before(folders, one, best))) best = one, most = found;
  }
  return best ? best->path : NULL;
}
