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
  char *path;       /* another one once the file has changed, if it was given to a caller */
  const char *name; /* in `path`, behind the folder */
  struct stat about;
  kernel_hashes hashes; /* sorted */
  bool known;           /* hashes are there */
  bool given;           /* a caller may hold `path` */
} unit;

typedef struct unit_list {
  unit *items; /* sorted by name */
  size_t count, capacity;
} unit_list;

typedef struct watched watched;
typedef struct watched_list {
  watched *items;
  size_t count, capacity;
} watched_list;

struct watched { /* a folder */
  char *path;
  unit_list units;
  watched_list inner;      /* the folders in one of the user's, sorted by path; those have none */
  struct timespec changed; /* its own time when it was read last */
  time_t read;             /* and when that was; 0: it is to be read */
};

struct kernel_folders {
  watched_list listed;   /* the user's, in his order */
  FF_VEC(char *) former; /* paths that callers may hold, of files that have changed or gone since */
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

static int compare_name(const void *name, const void *one) { return strcmp(name, ((const unit *)one)->name); }

/* "file SIZE SECONDS NANOSECONDS NAME": which unit that is, unless it has changed; NULL: none. */
static unit *indexed_unit(const char *line, unit *units, size_t count) {
  long long size, seconds;
  long nanoseconds;
  int used = 0;
  if (sscanf(line, "file %lld %lld %ld %n", &size, &seconds, &nanoseconds, &used) != 3 || !used) return NULL;
  const struct timespec changed = {.tv_sec = (time_t)seconds, .tv_nsec = nanoseconds};
  unit *one = bsearch(line + used, units, count, sizeof *units, compare_name);
  if (!one || one->known) return NULL;
  return one->about.st_size == size && same_time(&one->about.st_mtim, &changed) ? one : NULL;
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

/* Behind the units in `to`. False: it is no file. */
static bool add_unit(const kernel_folders *folders, const char *folder, const char *name, unit_list *to) {
  unit one = {0};
  ff_text path = {0};
  ff_text_add(&path, "%s/%s", folder, name);
  if (stat(path.chars, &one.about)) say(folders, "--kernels: %s: %s", path.chars, strerror(errno));
  else if (!S_ISREG(one.about.st_mode)) say(folders, "--kernels: %s is not a file: it is left out", path.chars);
  else {
    one.path = path.chars;
    one.name = path.chars + path.length - strlen(name);
    FF_PUSH(to, one);
    return true;
  }
  free(path.chars);
  return false;
}

static void read_folder(const kernel_folders *folders, watched *one) {
  struct dirent **entries;
  int count = scandir(one->path, &entries, is_text, by_name);
  if (count < 0) {
    say(folders, "--kernels: %s: %s", one->path, strerror(errno));
    return;
  }
  for (int i = 0; i < count; i++) {
    add_unit(folders, one->path, entries[i]->d_name, &one->units);
    free(entries[i]);
  }
  free(entries);
  if (!count) say(folders, "--kernels: %s has no .ptx files", one->path);
  if (!one->units.count) return;
  ff_text index = {0};
  ff_text_add(&index, "%s/" INDEX_NAME, one->path);
  read_index(index.chars, one->units.items, one->units.count);
  bool changed = false;
  for (size_t i = 0; i < one->units.count; i++) {
    if (one->units.items[i].known) continue;
    read_unit(folders, &one->units.items[i]);
    changed = true;
  }
  if (changed) write_index(index.chars, one->units.items, one->units.count);
  free(index.chars);
}

kernel_folders *kernel_folders_open(const char *list, void (*say_it)(const char *message)) {
  kernel_folders *folders = ff_alloc(sizeof *folders);
  folders->say = say_it;
  char *names = ff_strdup(list), *rest = names, *folder;
  while ((folder = strsep(&rest, ":"))) {
    if (!*folder) continue;
    watched one = {.path = ff_strdup(folder)};
    read_folder(folders, &one);
    FF_PUSH(&folders->listed, one);
  }
  free(names);
  return folders;
}

/* ---- what changes ---- */

static void drop_path(kernel_folders *folders, unit *one) {
  if (one->given) FF_PUSH(&folders->former, one->path);
  else free(one->path);
}

/* True: it defined something. */
static bool forget_unit(kernel_folders *folders, unit *one) {
  bool had = one->hashes.count > 0;
  drop_path(folders, one);
  free(one->hashes.items);
  return had;
}

static bool forget_folder(kernel_folders *folders, watched *one) {
  bool had = false;
  for (size_t i = 0; i < one->units.count; i++) had = forget_unit(folders, &one->units.items[i]) || had;
  for (size_t i = 0; i < one->inner.count; i++) had = forget_folder(folders, &one->inner.items[i]) || had;
  free(one->units.items);
  free(one->inner.items);
  free(one->path);
  return had;
}

/* A compiler writes a file again, and one that was looked at while it was being written has changed since. What the
 * file holds now has a path of its own, so that it is not taken for what it was. A file that is gone has nothing. */
static bool read_changed(kernel_folders *folders, unit *one) {
  struct stat about;
  bool failed = stat(one->path, &about) != 0;
  if (failed && errno != ENOENT && errno != ENOTDIR) return false;
  if (failed || !S_ISREG(about.st_mode)) {
    bool had = one->hashes.count > 0;
    one->hashes.count = 0;
    one->about = (struct stat){0}; /* if it comes back, it is another */
    return had;
  }
  if (about.st_size == one->about.st_size && same_time(&about.st_mtim, &one->about.st_mtim)) return false;
  char *path = ff_strdup(one->path);
  one->name = path + (one->name - one->path);
  drop_path(folders, one);
  one->path = path;
  one->given = false;
  one->about = about;
  one->hashes.count = 0;
  read_unit(folders, one);
  return true;
}

/* Forgets the files that have left the folder, and reads those that have come into it. The index is left as it is: the
 * next process reads these files once more and writes it. True: what is defined is other than it was. */
static bool follow_files(kernel_folders *folders, watched *folder) {
  struct dirent **entries;
  int count = scandir(folder->path, &entries, is_text, by_name);
  if (count < 0) return false;
  unit_list now = {0}, *before = &folder->units;
  size_t next = 0;
  bool changed = false;
  for (int i = 0; i < count; i++) {
    const char *name = entries[i]->d_name;
    unsigned char type = entries[i]->d_type;
    while (next < before->count && strcmp(before->items[next].name, name) < 0)
      changed = forget_unit(folders, &before->items[next++]) || changed;
    if (next < before->count && !strcmp(before->items[next].name, name)) FF_PUSH(&now, before->items[next++]);
    else if ((type == DT_REG || type == DT_LNK || type == DT_UNKNOWN) && add_unit(folders, folder->path, name, &now)) {
      read_unit(folders, &now.items[now.count - 1]);
      changed = true;
    }
    free(entries[i]);
  }
  free(entries);
  while (next < before->count) changed = forget_unit(folders, &before->items[next++]) || changed;
  free(before->items);
  folder->units = now;
  return changed;
}

static int is_folder(const struct dirent *entry) {
  return (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN) && entry->d_name[0] != '.' && !is_text(entry);
}

static bool is_listed(const kernel_folders *folders, const char *path) {
  for (size_t i = 0; i < folders->listed.count; i++)
    if (!strcmp(folders->listed.items[i].path, path)) return true;
  return false;
}

/* Compilers put what they keep into folders of their own below a given one (TMPDIR), some for a while only. Theirs are
 * read as they come, and have no index. True: what is defined is other than it was. */
static bool follow_inner(kernel_folders *folders, watched *outer) {
  struct dirent **entries;
  int count = scandir(outer->path, &entries, is_folder, by_name);
  if (count < 0) return false;
  watched_list now = {0}, *before = &outer->inner;
  size_t next = 0;
  bool changed = false;
  for (int i = 0; i < count; i++) {
    struct stat about;
    ff_text path = {0};
    ff_text_add(&path, "%s/%s", outer->path, entries[i]->d_name);
    free(entries[i]);
    while (next < before->count && strcmp(before->items[next].path, path.chars) < 0)
      changed = forget_folder(folders, &before->items[next++]) || changed;
    if (next < before->count && !strcmp(before->items[next].path, path.chars)) FF_PUSH(&now, before->items[next++]);
    else if (!is_listed(folders, path.chars) && !stat(path.chars, &about) && S_ISDIR(about.st_mode)) {
      FF_PUSH(&now, (watched){.path = path.chars});
      continue;
    }
    free(path.chars);
  }
  free(entries);
  while (next < before->count) changed = forget_folder(folders, &before->items[next++]) || changed;
  free(before->items);
  outer->inner = now;
  return changed;
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

static bool renew(kernel_folders *folders, watched *one, bool inner) {
  bool changed = false;
  for (size_t i = 0; i < one->units.count; i++) changed = read_changed(folders, &one->units.items[i]) || changed;
  if (may_have_more(one)) {
    changed = follow_files(folders, one) || changed;
    if (!inner) changed = follow_inner(folders, one) || changed;
  }
  for (size_t i = 0; i < one->inner.count; i++) changed = renew(folders, &one->inner.items[i], true) || changed;
  return changed;
}

bool kernel_folders_renew(kernel_folders *folders) {
  bool changed = false;
  for (size_t i = 0; folders && i < folders->listed.count; i++)
    changed = renew(folders, &folders->listed.items[i], false) || changed;
  return changed;
}

void kernel_folders_close(kernel_folders *folders) {
  for (size_t i = 0; folders && i < folders->listed.count; i++) forget_folder(folders, &folders->listed.items[i]);
  for (size_t i = 0; folders && i < folders->former.count; i++) free(folders->former.items[i]);
  if (folders) free(folders->listed.items), free(folders->former.items);
  free(folders);
}

/* ---- looking up ---- */

static size_t defined_in(const unit *one, const uint64_t *names, size_t count) {
  size_t found = 0;
  for (size_t i = 0; i < count && one->hashes.count; i++)
    found += bsearch(&names[i], one->hashes.items, one->hashes.count, sizeof *names, compare_hashes) != NULL;
  return found;
}

static bool written_later(const unit *one, const unit *other) {
  const struct timespec *a = &one->about.st_mtim, *b = &other->about.st_mtim;
  if (!same_time(a, b)) return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
  return strcmp(one->name, other->name) < 0;
}

typedef struct choice {
  unit *unit;    /* NULL: none yet */
  size_t found;  /* names that it defines */
  size_t folder; /* the one that stands first is looked at first, with this number */
} choice;

static void choose_from(const watched *folder, size_t number, const uint64_t *names, size_t count, choice *best) {
  for (size_t i = 0; i < folder->units.count; i++) {
    unit *one = &folder->units.items[i];
    size_t found = defined_in(one, names, count);
    if (found > best->found ||
        (found && found == best->found && best->folder == number && written_later(one, best->unit)))
      *best = (choice){one, found, number};
  }
}

static unit *choose(const kernel_folders *folders, const uint64_t *names, size_t count) {
  choice best = {0};
  const watched_list *listed = &folders->listed;
  for (size_t i = 0; i < listed->count; i++) choose_from(&listed->items[i], i, names, count, &best);
  for (size_t i = 0; i < listed->count; i++) /* those in one folder stand together */
    for (size_t k = 0; k < listed->items[i].inner.count; k++)
      choose_from(&listed->items[i].inner.items[k], listed->count + i, names, count, &best);
  return best.unit;
}

const char *kernel_folders_best(kernel_folders *folders, const uint64_t *names, size_t count) {
  enum { TRIES = 4 }; /* of a file that changes all the time */
  unit *best = NULL;
  for (int i = 0; folders && i < TRIES; i++) {
    best = choose(folders, names, count);
    if (!best || !read_changed(folders, best)) break;
  }
  if (!best) return NULL;
  best->given = true;
  return best->path;
}
