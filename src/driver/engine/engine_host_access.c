/* SPDX-License-Identifier: Apache-2.0 */
/* Which pages of managed memory the program itself read or wrote between its CUDA calls.
 *
 * No signal handler and no protected page: managed allocations are shared memory (one memfd, mapped at the allocation's
 * place in the arena), and a page whose mapping was dropped (madvise MADV_DONTNEED: the bytes stay in the memfd) is
 * mapped again by the kernel, silently, when anything touches it: a load or store of any thread, a read() into it, a
 * debugger. Before its next operation the engine reads in /proc/self/pagemap which pages are mapped. Where the kernel
 * has asynchronous write protection (userfaultfd, Linux 6.7) a bit there also says whether the page was only read.
 *
 *              settle: write-protected, mapping dropped               collect: TRACE_OP_HOST_TOUCH
 *     MAPPED --------------------------------------> ARMED --touch--> MAPPED, read (or written) -------> ARMED
 *
 * Properties and limits
 *   - the program can read and write all its memory at any time; no call of the program fails because of this;
 *   - only an operation of the device (which the engine brackets: collect, run, settle) or a touch maps a page;
 *   - a page without a touch so far is not armed: its first touch counts as a write, as its zeros are made then;
 *   - touches of other threads while the device works cannot be told from the device's, and are not recorded;
 *   - pages that the host's kernel reclaims (or drops for another reason: DAMON) would count as not touched: where the
 *     process may lock as much memory as it needs, managed memory is locked when it is touched.
 *
 * Levels, by what the host can do: EXACT; PAGES (no asynchronous write protection: every touch counts as a write);
 * GROUPS (no userfaultfd at all: the kernel also maps up to 64 KiB around a read, so reads spread). */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "driver/engine/engine_internal.h"

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif
#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24 /* Linux 5.18 */
#endif
#define FEATURE_WP (UINT64_C(1) << 0)        /* UFFD_FEATURE_PAGEFAULT_FLAG_WP */
#define FEATURE_WP_SHMEM (UINT64_C(1) << 12) /* UFFD_FEATURE_WP_HUGETLBFS_SHMEM, Linux 5.19 */
#define FEATURE_WP_ASYNC (UINT64_C(1) << 15) /* UFFD_FEATURE_WP_ASYNC, Linux 6.7 */

#define PAGEMAP_PRESENT (UINT64_C(1) << 63)
#define PAGEMAP_SWAP (UINT64_C(1) << 62)      /* also: just being moved to another frame */
#define PAGEMAP_PROTECTED (UINT64_C(1) << 57) /* write-protected by userfaultfd */

/* The kernel's scan of the page map (Linux 6.7; <linux/fs.h> of Debian 12 has it not yet). */
typedef struct scan_run {
  uint64_t start, end, categories;
} scan_run;
typedef struct scan_argument {
  uint64_t size, flags, start, end, walk_end, runs, run_count, page_count, category_inverted, category_mask,
      category_anyof_mask, return_mask;
} scan_argument;
#define PAGEMAP_SCAN _IOWR('f', 16, scan_argument)
#define SCAN_WRITTEN (UINT64_C(1) << 1) /* not write-protected by userfaultfd */
/* maps a page of a file or of a memfd, which may just be moving to another frame */
#define SCAN_FILE (UINT64_C(1) << 2)
#define SCAN_RUNS 128u
#define SCAN_GAP (UINT64_C(1) << 20) /* between regions that one call scans: less to walk over than a call costs */

#define REGION_LIMIT 8192u             /* each may split a mapping of the kernel's in two; the usual limit is 65,530 */
#define DUMP_BYTES (UINT64_C(1) << 30) /* larger allocations are not in core dumps: a dump would fill their holes */
#define WINDOW_PAGES 4096u             /* of the page map read at once */

typedef enum touch_use { USE_NONE, USE_READ, USE_WRITE } touch_use;
/* an allocation, as long as the program asked for */
typedef struct touch_region {
  uint64_t address, bytes;
} touch_region;

static struct {
  pthread_mutex_t lock; /* guards `regions` against a fork */
  bool started;
  engine_host_access_level level;
  int memory, faults;           /* file descriptors */
  bool locked;                  /* pages are locked as they are touched */
  int drop;                     /* the advice that drops a mapping, of locked memory too where there may be such */
  struct stat identity;         /* of `memory`: a program may close what it did not open */
  FF_VEC(touch_region) regions; /* by address */
  bool limit_noted;
} touches = {.lock = PTHREAD_MUTEX_INITIALIZER, .memory = -1, .faults = -1};

/* ---- what the host can do ---- */

static uint64_t page_floor(uint64_t x) { return x / EXEC_PAGE_BYTES * EXEC_PAGE_BYTES; }
static uint64_t page_ceiling(uint64_t x) { return page_floor(x + EXEC_PAGE_BYTES - 1); }
/* in the memfd */
static off_t offset_of(uint64_t address) { return (off_t)(address - exec_memory_base(ff_engine.memory)); }

/* A child shares nothing with its parent: what it writes is its own. (On a real GPU it could not touch managed
 * memory.) */
static void fork_begins(void) { pthread_mutex_lock(&touches.lock); }
static void fork_over(void) { pthread_mutex_unlock(&touches.lock); }
static void in_child(void) {
  for (size_t i = 0; i < touches.regions.count; i++) {
    touch_region r = touches.regions.items[i];
    mmap((void *)r.address, r.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, touches.memory,
         offset_of(r.address));
  }
  touches.level = ENGINE_TOUCH_OFF;
  pthread_mutex_unlock(&touches.lock);
}

static int open_userfaultfd(uint64_t features) {
  int fd = ff_descriptor_apart((int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY));
  if (fd < 0) return -1;
  struct uffdio_api api = {.api = UFFD_API, .features = features};
  if (ioctl(fd, UFFDIO_API, &api) == 0) return fd;
  close(fd);
  return -1;
}

/* A memfd as large as the arena; -1: none. */
static int open_memory(void) {
  struct rlimit limit;
  /* ftruncate would raise SIGXFSZ */
  if (getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur < EXEC_ARENA_BYTES) return -1;
  int fd = ff_descriptor_apart(memfd_create("managed memory", MFD_CLOEXEC));
  if (fd < 0) return -1;
  if (ftruncate(fd, (off_t)EXEC_ARENA_BYTES) == 0 && fstat(fd, &touches.identity) == 0) return fd;
  close(fd);
  return -1;
}

static bool page_map_readable(void) {
  int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  uint64_t entry = 0;
  bool readable = fd >= 0 && pread(fd, &entry, sizeof entry,
                                   (off_t)((uintptr_t)&entry / EXEC_PAGE_BYTES * sizeof entry)) == sizeof entry;
  if (fd >= 0) close(fd);
  return readable && entry & PAGEMAP_PRESENT;
}

/* Of the page map from `begin` on: up to SCAN_RUNS runs of mapped pages; how many, -1: the kernel has no such scan.
 * What was looked at ends at `*looked`. */
static int scan_mapped(int file, uint64_t begin, uint64_t end, scan_run *runs, uint64_t *looked) {
  scan_argument scan = {
      .size = sizeof scan, .start = begin, .end = end, .runs = (uintptr_t)runs, .run_count = SCAN_RUNS};
  scan.category_mask = SCAN_FILE;
  scan.return_mask = SCAN_WRITTEN;
  int count = ioctl(file, PAGEMAP_SCAN, &scan);
  *looked = scan.walk_end;
  return count;
}

static bool page_map_scannable(void) {
  static scan_run runs[SCAN_RUNS];
  int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  uint64_t page = (uintptr_t)runs / EXEC_PAGE_BYTES * EXEC_PAGE_BYTES, looked;
  bool scannable = fd >= 0 && scan_mapped(fd, page, page + EXEC_PAGE_BYTES, runs, &looked) >= 0;
  if (fd >= 0) close(fd);
  return scannable;
}

/* Whether pages may be locked, so many that none the program itself locks could become too many: more than its
 * limit. */
static bool locks_freely(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_MEMLOCK, &limit) || madvise((void *)exec_memory_base(ff_engine.memory), 0, MADV_DONTNEED_LOCKED))
    return false;
  uint64_t bytes = EXEC_PAGE_BYTES;
  if (limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < EXEC_ARENA_BYTES) bytes += page_ceiling(limit.rlim_cur);
  void *probe = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (probe == MAP_FAILED) return false;
  bool freely = !mlock2(probe, bytes, MLOCK_ONFAULT);
  munmap(probe, bytes);
  return freely;
}

static engine_host_access_level asked_level(void) {
  static const char *const names[] = {
      [ENGINE_TOUCH_OFF] = "off", [ENGINE_TOUCH_GROUPS] = "groups", [ENGINE_TOUCH_PAGES] = "pages"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (!strcmp(ff_engine.options.host_touches, names[i])) return (engine_host_access_level)i;
  return ENGINE_TOUCH_EXACT;
}

static engine_host_access_level best_level(engine_host_access_level most) {
  if (most == ENGINE_TOUCH_OFF || sysconf(_SC_PAGESIZE) != (long)EXEC_PAGE_BYTES || !page_map_readable())
    return ENGINE_TOUCH_OFF;
  touches.memory = open_memory();
  if (touches.memory < 0) return ENGINE_TOUCH_OFF;
  if (most >= ENGINE_TOUCH_EXACT && page_map_scannable() &&
      (touches.faults = open_userfaultfd(FEATURE_WP | FEATURE_WP_SHMEM | FEATURE_WP_ASYNC)) >= 0)
    return ENGINE_TOUCH_EXACT;
  if (most >= ENGINE_TOUCH_PAGES && (touches.faults = open_userfaultfd(FEATURE_WP | FEATURE_WP_SHMEM)) >= 0)
    return ENGINE_TOUCH_PAGES;
  return ENGINE_TOUCH_GROUPS;
}

static void note_level(engine_host_access_level asked) {
  static const char *const notes[] = {
      [ENGINE_TOUCH_OFF] = "what the host does with managed memory is not recorded: this system does not show it",
      [ENGINE_TOUCH_GROUPS] =
          "what the host does with managed memory: this system does not tell reads from writes, nor pages of 64 KiB apart",
      [ENGINE_TOUCH_PAGES] =
          "what the host does with managed memory: this system does not tell reads from writes; all count as writes"};
  if (asked == ENGINE_TOUCH_OFF)
    session_note(ff_engine.session, "what the host does with managed memory is not recorded, as was asked for");
  else if (touches.level < ENGINE_TOUCH_EXACT) session_note(ff_engine.session, notes[touches.level]);
}

/* When the program has its first managed memory. */
static void start(void) {
  engine_host_access_level asked = asked_level();
  touches.started = true;
  touches.level = best_level(asked);
  note_level(asked);
  if (!touches.level) return;
  touches.locked = locks_freely();
  touches.drop = touches.locked ? MADV_DONTNEED_LOCKED : MADV_DONTNEED;
  pthread_atfork(fork_begins, fork_over, in_child);
  engine_append(&(trace_op){.kind = TRACE_OP_HOST_TOUCH}); /* of nothing: from here on they are recorded */
}

/* Recording ends; what is mapped stays as it is. */
static void give_up(const char *what) {
  touches.level = ENGINE_TOUCH_OFF;
  ff_text note = {0};
  ff_text_add(&note, "what the host does with managed memory was recorded only in part: %s: %s", what, strerror(errno));
  session_note(ff_engine.session, note.chars);
  free(note.chars);
}

/* ---- regions ---- */

/* The first region that ends behind `address`. */
static size_t region_behind(uint64_t address) {
  size_t low = 0, high = touches.regions.count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (touches.regions.items[middle].address + touches.regions.items[middle].bytes > address) high = middle;
    else low = middle + 1;
  }
  return low;
}

static void region_insert(touch_region region) {
  size_t at = region_behind(region.address);
  pthread_mutex_lock(&touches.lock);
  FF_PUSH(&touches.regions, region);
  memmove(&touches.regions.items[at + 1], &touches.regions.items[at], (touches.regions.count - 1 - at) * sizeof region);
  touches.regions.items[at] = region;
  pthread_mutex_unlock(&touches.lock);
}

static void region_remove(size_t at) {
  pthread_mutex_lock(&touches.lock);
  touches.regions.count--;
  memmove(&touches.regions.items[at], &touches.regions.items[at + 1],
          (touches.regions.count - at) * sizeof(touch_region));
  pthread_mutex_unlock(&touches.lock);
}

/* Puts the memfd where anonymous memory was. Small allocations (variables) may have contents. */
static bool map_shared(uint64_t address, uint64_t bytes, bool filled) {
  struct stat now;
  off_t offset = offset_of(address);
  if (fstat(touches.memory, &now) || now.st_dev != touches.identity.st_dev || now.st_ino != touches.identity.st_ino) {
    errno = EBADF; /* the program has closed it */
    return false;
  }
  if (filled && pwrite(touches.memory, (const void *)address, bytes, offset) != (ssize_t)bytes) return false;
  if (mmap((void *)address, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, touches.memory,
           offset) == MAP_FAILED)
    return false;
  madvise((void *)address, bytes, MADV_NOHUGEPAGE);
  if (bytes > DUMP_BYTES) madvise((void *)address, bytes, MADV_DONTDUMP);
  if (touches.locked && mlock2((void *)address, bytes, MLOCK_ONFAULT)) touches.locked = false;
  struct uffdio_register range = {.range = {address, bytes}, .mode = UFFDIO_REGISTER_MODE_WP};
  if (touches.level >= ENGINE_TOUCH_PAGES && ioctl(touches.faults, UFFDIO_REGISTER, &range))
    touches.level = ENGINE_TOUCH_GROUPS;
  return true;
}

/* ---- the page map ---- */

typedef struct page_map { /* a window of it, moved along as pages are asked for in order */
  int file;
  uint64_t first, count; /* pages in the window */
  uint64_t entries[WINDOW_PAGES];
} page_map;

static page_map map; /* guarded by the engine's lock */

static bool map_open(void) {
  map.count = 0;
  map.file = ff_descriptor_apart(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
  if (map.file < 0) give_up("/proc/self/pagemap");
  return map.file >= 0;
}

static touch_use use_of(uint64_t address) {
  uint64_t page = address / EXEC_PAGE_BYTES;
  if (page - map.first >= map.count) {
    ssize_t got = pread(map.file, map.entries, sizeof map.entries, (off_t)(page * sizeof map.entries[0]));
    map.first = page;
    map.count = got > 0 ? (uint64_t)got / sizeof map.entries[0] : 0;
    if (!map.count) return USE_NONE;
  }
  uint64_t entry = map.entries[page - map.first];
  /* a protected entry without a page is an armed one */
  bool moving = entry & PAGEMAP_SWAP && !(entry & PAGEMAP_PROTECTED);
  return entry & PAGEMAP_PRESENT || moving ? USE_WRITE : USE_NONE;
}

/* From here on a touch of these pages shows. First the protection: a store in between is at worst taken for a later
 * one. */
static void arm(uint64_t begin, uint64_t end) {
  struct uffdio_writeprotect protect = {.range = {begin, end - begin}, .mode = UFFDIO_WRITEPROTECT_MODE_WP};
  if (touches.level == ENGINE_TOUCH_EXACT && ioctl(touches.faults, UFFDIO_WRITEPROTECT, &protect))
    touches.level = ENGINE_TOUCH_GROUPS;
  if (madvise((void *)begin, end - begin, touches.drop)) give_up("madvise");
}

/* ---- allocations come and go ---- */

void engine_host_access_begin(void) {
  if (ff_engine.trace && !touches.started) start();
}

void engine_host_access_track(const exec_allocation *allocation, bool filled) {
  if (!ff_engine.trace || !touches.level) return;
  if (touches.regions.count >= REGION_LIMIT) {
    if (!touches.limit_noted)
      session_note(ff_engine.session,
                   "what the host does with managed memory is recorded for the first 8192 allocations only");
    touches.limit_noted = true;
    return;
  }
  uint64_t bytes = page_ceiling(allocation->bytes);
  region_insert((touch_region){allocation->address, bytes}); /* before it is mapped: a fork must find it */
  if (map_shared(allocation->address, bytes, filled)) {
    touches.regions.items[region_behind(allocation->address)].bytes = allocation->bytes;
    if (filled) arm(allocation->address, allocation->address + bytes);
    return;
  }
  region_remove(region_behind(allocation->address));
  give_up("managed memory cannot be shared");
}

void engine_host_access_forget(const exec_allocation *allocation) {
  size_t at = region_behind(allocation->address);
  if (at == touches.regions.count || touches.regions.items[at].address != allocation->address) return;
  uint64_t bytes = page_ceiling(allocation->bytes);
  struct stat now;
  mmap((void *)allocation->address, bytes, PROT_READ | PROT_WRITE,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
  if (!fstat(touches.memory, &now) && now.st_dev == touches.identity.st_dev && now.st_ino == touches.identity.st_ino)
    fallocate(touches.memory, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset_of(allocation->address), (off_t)bytes);
  region_remove(at);
}

/* ---- looking ---- */

static void append_touch(const touch_region *region, uint64_t begin, uint64_t end, touch_use use) {
  uint64_t region_end = region->address + region->bytes;
  trace_op op = {.kind = TRACE_OP_HOST_TOUCH};
  op.touch.address = begin;
  op.touch.bytes = (end < region_end ? end : region_end) - begin;
  op.touch.write = use == USE_WRITE;
  engine_append(&op);
}

static uint64_t region_end(size_t at) {
  return page_ceiling(touches.regions.items[at].address + touches.regions.items[at].bytes);
}

/* What of the run of pages is in the regions [from, to). */
static void run_found(const scan_run *run, size_t from, size_t to, bool append, bool rearm) {
  for (size_t i = from; i < to && touches.regions.items[i].address < run->end; i++) {
    const touch_region *region = &touches.regions.items[i];
    uint64_t begin = run->start > region->address ? run->start : region->address, end = region_end(i);
    if (end > run->end) end = run->end;
    if (begin >= end) continue;
    if (append) append_touch(region, begin, end, run->categories & SCAN_WRITTEN ? USE_WRITE : USE_READ);
    if (rearm) arm(begin, end);
  }
}

/* The regions [from, to) where the kernel's scan tells mapped pages and written ones: it also sees a page that
 * compaction is just moving, which the page map itself does not tell from an armed one. */
static void regions_scan_exactly(size_t from, size_t to, uint64_t begin, uint64_t end, bool append, bool rearm) {
  scan_run runs[SCAN_RUNS];
  for (uint64_t at = begin, looked; at < end && touches.level == ENGINE_TOUCH_EXACT; at = looked) {
    int count = scan_mapped(map.file, at, end, runs, &looked);
    if (count < 0) give_up("PAGEMAP_SCAN");
    for (int i = 0; i < count; i++) {
      while (from < to && region_end(from) <= runs[i].start) from++;
      run_found(&runs[i], from, to, append, rearm);
    }
  }
}

/* The first region behind `from` that begins at `end` or later, or too far behind the one before it for one call of
 * the kernel's to scan both. */
static size_t neighbours_end(size_t from, uint64_t end) {
  size_t to = from + 1;
  while (to < touches.regions.count && touches.regions.items[to].address < end &&
         touches.regions.items[to].address - region_end(to - 1) <= SCAN_GAP)
    to++;
  return to;
}

/* The region's runs of pages of one use within [begin, end), in order: appended, armed. */
static void region_scan(const touch_region *region, uint64_t begin, uint64_t end, bool append, bool rearm) {
  if (begin < region->address) begin = region->address;
  if (end > region->address + region->bytes) end = region->address + region->bytes;
  for (uint64_t at = page_floor(begin), next; at < end && touches.level; at = next) {
    touch_use use = use_of(at);
    for (next = at + EXEC_PAGE_BYTES; next < end && use_of(next) == use;) next += EXEC_PAGE_BYTES;
    if (use == USE_NONE) continue;
    if (append) append_touch(region, at, next, use);
    if (rearm) arm(at, next);
  }
}

static void scan(uint64_t begin, uint64_t end, bool append, bool rearm) {
  size_t first = region_behind(begin);
  if (!touches.level || first == touches.regions.count || touches.regions.items[first].address >= end || !map_open())
    return;
  for (size_t i = first, next; i < touches.regions.count && touches.regions.items[i].address < end; i = next) {
    if (touches.level < ENGINE_TOUCH_EXACT) {
      next = i + 1;
      region_scan(&touches.regions.items[i], begin, end, append, rearm);
      continue;
    }
    next = neighbours_end(i, end);
    uint64_t from = touches.regions.items[i].address, to = region_end(next - 1);
    regions_scan_exactly(i, next, begin > from ? page_floor(begin) : from, end < to ? page_ceiling(end) : to, append,
                         rearm);
  }
  close(map.file);
}

/* How many page faults the process has had. If none since the last look at all pages, none of them was touched. */
static uint64_t page_faults(void) {
  struct rusage usage;
  if (getrusage(RUSAGE_SELF, &usage)) return UINT64_MAX;
  return (uint64_t)usage.ru_minflt + (uint64_t)usage.ru_majflt;
}

static void scan_all(bool append, bool rearm) {
  static uint64_t faults_seen = UINT64_MAX; /* when all pages that had been touched were armed */
  if (!touches.level || !touches.regions.count) return;
  uint64_t faults = page_faults();
  if (faults == faults_seen && faults != UINT64_MAX) return;
  scan(0, UINT64_MAX, append, rearm);
  faults_seen = rearm ? faults : UINT64_MAX; /* of before: what others touched meanwhile counts */
}

engine_host_access_level engine_host_access_level_now(void) { return touches.level; }
void engine_host_access_collect(bool launch) { scan_all(true, !launch); }
void engine_host_access_settle(uint64_t address, uint64_t bytes) { scan(address, address + bytes, false, true); }
void engine_host_access_settle_all(void) { scan_all(false, true); }
