/* SPDX-License-Identifier: Apache-2.0 */
/* Partitions: a share of a GPU's SMs and of its memory budget, for launches and segments that are made through it (Jain
 * et al. 2019).
 *
 *     ff_partition_create: share read -> way chosen -> SMs taken, from this process's free ones or from the broker
 *                          -> green context or queues, streams -> memory lent                     --ff_partition_destroy--> all given back
 *
 *   green    its streams are a green context's; the driver divides SMs in groups, of which it takes whole ones
 *   rewrite  its kernels are launched as persistent blocks that leave the SMs outside of its range (runtime_rewrite.c)
 *
 * No two partitions of a GPU that this process has at one time have an SM in common, nor GPU memory.
 * Group g of the driver's is taken to be the SMs from g * group_sms on, which matters only where both ways are in use
 * at once, or a broker counts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "broker/client.h"
#include "ptx/rewrite/persistent.h"
#include "runtime/gpu.h"

_Static_assert((int)BROKER_SMS == (int)MAX_SMS, "as many SMs as a broker has room for");

const pool *partition_pool(const ff_partition *p) {
  return p->own_memory ? &p->pool : &p->gpu->devices[p->device].pool;
}

/* ---- what is asked for ---- */

typedef struct wish {
  const char *name;
  uint32_t device, sms; /* sms: as the share says, before rounding */
  uint64_t pieces;      /* 0: memory is not divided */
  partition_way way;
  uint32_t step; /* its SMs come in such groups */
} wish;

/* A plain decimal number, whatever locale the program has set; *end behind it. */
static double read_decimal(const char *text, const char **end) {
  double number = 0, digit = 1;
  bool behind = false;
  for (; (*text >= '0' && *text <= '9') || (*text == '.' && !behind); text++) {
    if (*text == '.') {
      behind = true;
      continue;
    }
    digit = behind ? digit / 10 : 1;
    number = behind ? number + (*text - '0') * digit : number * 10 + (*text - '0');
  }
  *end = text;
  return number;
}

/* "25%" or "8" of `whole`. */
static ff_result read_sms(const char *text, uint32_t whole, uint32_t *sms) {
  const char *end;
  double number = read_decimal(text, &end);
  bool share = *end == '%';
  bool good =
      !end[share] && number > 0 && number <= (share ? 100 : (double)whole) && (share || number == (uint32_t)number);
  if (!good)
    return runtime_fail(FF_ERROR_INVALID,
                        "the share of SMs '%s' is neither a number of 1 to %u nor a percentage of 0%% to 100%%", text,
                        whole);
  *sms = (uint32_t)(share ? number / 100 * whole + 1e-9 : number);
  if (!*sms) *sms = 1;
  return FF_SUCCESS;
}

static ff_result read_memory(const ff_gpu *gpu, uint64_t budget, const char *text, uint64_t *pieces) {
  uint64_t bytes;
  ff_error error;
  if (ff_parse_bytes(text, budget, &bytes, &error))
    return runtime_fail(FF_ERROR_INVALID, "the share of memory '%s': %s", text, error.message);
  *pieces = bytes / gpu->piece;
  if (!*pieces)
    return runtime_fail(FF_ERROR_INVALID, "the share of memory '%s' is less than one piece of %llu bytes", text,
                        (unsigned long long)gpu->piece);
  return FF_SUCCESS;
}

/* The GPU's whole budget, what is lent included. */
static uint64_t whole_budget(const ff_gpu *gpu, const device *d) {
  uint64_t pieces = d->pool.budget_pieces;
  for (uint32_t i = 0; i < PARTITIONS; i++)
    if (d->partitions[i] && d->partitions[i]->own_memory) pieces += d->partitions[i]->pool.budget_pieces;
  return pieces * gpu->piece;
}

/* "sm=25%,memory=50%" */
static ff_result read_share(const ff_gpu *gpu, const char *text, wish *w) {
  char copy[128], *rest = NULL;
  const device *d = &gpu->devices[w->device];
  if (strlen(text) >= sizeof copy) return runtime_fail(FF_ERROR_INVALID, "the share '%.40s...' is too long", text);
  strcpy(copy, text);
  for (char *part = strtok_r(copy, ",", &rest); part; part = strtok_r(NULL, ",", &rest)) {
    if (!strncmp(part, "sm=", 3) && !w->sms) TRY(read_sms(part + 3, d->sm_count, &w->sms));
    else if (!strncmp(part, "memory=", 7) && !w->pieces)
      TRY(read_memory(gpu, whole_budget(gpu, d), part + 7, &w->pieces));
    else
      return runtime_fail(FF_ERROR_INVALID, "the share '%s': '%s' is neither sm= nor memory=, or it is there twice",
                          text, part);
  }
  if (!w->sms) return runtime_fail(FF_ERROR_INVALID, "the share '%s' names no SMs (sm=25%% or sm=8)", text);
  return FF_SUCCESS;
}

/* ---- which way ---- */

static bool has_green(const cuda_driver *driver) {
  return driver->DeviceGetDevResource && driver->DevSmResourceSplitByCount && driver->DevResourceGenerateDesc &&
         driver->GreenCtxCreate && driver->GreenCtxDestroy && driver->GreenCtxStreamCreate;
}

/* All groups of SMs that the driver makes of the GPU; no later split must be disjoint with an earlier one, so there is
 * only this one. */
static ff_result find_groups(ff_gpu *gpu, device *d) {
  cuda_resource all;
  unsigned count = 0;
  if (d->groups) return FF_SUCCESS;
  DRIVER_TRY(gpu, DeviceGetDevResource, d->number, &all, CUDA_RESOURCE_SM);
  DRIVER_TRY(gpu, DevSmResourceSplitByCount, NULL, &count, &all, NULL, 0, 1);
  if (!count || count > MAX_SMS) return runtime_fail(FF_ERROR_DRIVER, "cuDevSmResourceSplitByCount: %u groups", count);
  cuda_resource *groups = ff_alloc(count * sizeof *groups);
  int result = gpu->driver->DevSmResourceSplitByCount(groups, &count, &all, NULL, 0, 1);
  if (result || !count || !groups[0].sm.count) {
    free(groups);
    return result ? driver_failed(gpu, result, "cuDevSmResourceSplitByCount")
                  : runtime_fail(FF_ERROR_DRIVER, "cuDevSmResourceSplitByCount: no groups");
  }
  d->groups = groups;
  d->group_count = count;
  d->group_sms = groups[0].sm.count;
  return FF_SUCCESS;
}

static ff_result choose_way(ff_gpu *gpu, const char *wanted, wish *w) {
  device *d = &gpu->devices[w->device];
  const char *chosen = getenv("FF_PARTITION");
  if (chosen && *chosen) wanted = chosen;
  if (!wanted) wanted = "auto";
  bool green = !strcmp(wanted, "green"), any = !strcmp(wanted, "auto");
  if (!green && !any && strcmp(wanted, "rewrite"))
    return runtime_fail(FF_ERROR_INVALID, "a partition's way is green, rewrite or auto, not '%s'", wanted);
  w->way = WAY_REWRITE;
  w->step = 1;
  if (green && !has_green(gpu->driver))
    return runtime_fail(FF_ERROR_NO_DRIVER, "%s has no green contexts: they need the driver of CUDA 12.5 or newer",
                        gpu->driver->path);
  if ((!green && !any) || !has_green(gpu->driver)) return FF_SUCCESS;
  ff_result result = find_groups(gpu, d);
  if (result) return green ? result : FF_SUCCESS;
  if (any && w->sms < d->group_sms) return FF_SUCCESS;
  w->way = WAY_GREEN;
  w->step = d->group_sms;
  return FF_SUCCESS;
}

/* ---- SMs ---- */

static bool is_taken(const device *d, uint32_t sm) { return d->sms_taken[sm / 64] >> sm % 64 & 1; }

static bool is_free(const device *d, uint32_t first, uint32_t count) {
  for (uint32_t sm = first; sm < first + count; sm++)
    if (is_taken(d, sm)) return false;
  return true;
}

static void mark(device *d, const ff_partition *p, bool taken) {
  for (uint32_t sm = p->sm_first; sm < p->sm_first + p->sm_count; sm++) {
    uint64_t bit = UINT64_C(1) << sm % 64;
    d->sms_taken[sm / 64] = taken ? d->sms_taken[sm / 64] | bit : d->sms_taken[sm / 64] & ~bit;
  }
}

/* SMs that the way can have. */
static uint32_t usable_sms(const device *d, const wish *w) {
  return w->way == WAY_GREEN ? d->group_count * d->group_sms : d->sm_count;
}

/* In whole groups. The last SMs of a GPU whose number is no multiple of the group belong to none: a wish for all
 * gets all groups. */
static uint32_t rounded_sms(const device *d, const wish *w) {
  uint32_t rounded = (w->sms + w->step - 1) / w->step * w->step, usable = usable_sms(d, w);
  return rounded > usable && w->sms >= d->sm_count ? usable : rounded;
}

static ff_result too_many(const device *d, const wish *w, uint32_t count) {
  uint32_t taken = 0;
  for (uint32_t sm = 0; sm < d->sm_count; sm++) taken += is_taken(d, sm);
  return runtime_fail(FF_ERROR_TOO_LARGE,
                      "partition '%s' wants %u SMs side by side%s; of the GPU's %u, %u are other partitions'", w->name,
                      count, w->step > 1 ? " (the driver divides them in groups)" : "", d->sm_count, taken);
}

static ff_result take_sms(ff_gpu *gpu, const wish *w, ff_partition *p) {
  device *d = &gpu->devices[w->device];
  uint32_t count = rounded_sms(d, w), first = 0, usable = usable_sms(d, w);
  if (p->share) {
    const broker_grant *granted = broker_granted(p->share);
    first = granted->sm_first;
    count = granted->sm_count;
    if (first % w->step || first + count > usable || !is_free(d, first, count))
      return runtime_fail(
          FF_ERROR_BUSY,
          "partition '%s': the broker gave SMs %u to %u, which other partitions of this process have without it, or the driver does not give",
          w->name, first, first + count - 1);
  } else {
    while (first + count <= usable && !is_free(d, first, count)) first += w->step;
    if (first + count > usable) return too_many(d, w, count);
  }
  p->sm_first = first;
  p->sm_count = count;
  mark(d, p, true);
  return FF_SUCCESS;
}

static void text_of_uuid(ff_gpu *gpu, uint32_t device, char *text, size_t length) {
  cuda_uuid uuid;
  int at = 0;
  int number = gpu->devices[device].number;
  snprintf(text, length, "GPU %d", number);
  if (!gpu->driver->DeviceGetUuid || gpu->driver->DeviceGetUuid(&uuid, number)) return;
  for (int i = 0; i < 16; i++) at += snprintf(text + at, length - (size_t)at, "%02x", uuid.bytes[i]);
}

static ff_result result_of(ff_status status) {
  switch (status) {
  case FF_LIMIT: return FF_ERROR_BUSY;
  case FF_INVALID: return FF_ERROR_INVALID;
  case FF_NOT_FOUND: return FF_ERROR_NOT_FOUND;
  default: return FF_ERROR_IO;
  }
}

/* Without the lock: it may wait for other processes. It asks for whole steps: for less the broker would also give what
 * is left over at the GPU's end. */
static ff_result ask_broker(const char *gpu, const device *d, const wish *w, double timeout, ff_partition *p) {
  ff_error error;
  if (rounded_sms(d, w) > usable_sms(d, w)) return too_many(d, w, rounded_sms(d, w));
  broker_request request = {.gpu = gpu,
                            .gpu_sms = d->sm_count,
                            .sms = rounded_sms(d, w),
                            .sm_step = w->step,
                            .name = w->name,
                            .timeout_s = timeout};
  ff_status status = broker_take(&request, &p->share, &error);
  if (!status) return FF_SUCCESS;
  return runtime_fail(result_of(status), "partition '%s': %s", w->name, error.message);
}

/* ---- making ---- */

static ff_result make_green(ff_gpu *gpu, ff_partition *p) {
  device *d = &gpu->devices[p->device];
  cuda_description description;
  TRY(gpu_on(gpu, p->device));
  DRIVER_TRY(gpu, DevResourceGenerateDesc, &description, &d->groups[p->sm_first / d->group_sms],
             p->sm_count / d->group_sms);
  DRIVER_TRY(gpu, GreenCtxCreate, &p->green, description, d->number, CUDA_GREEN_DEFAULT_STREAM);
  return FF_SUCCESS;
}

static ff_result make_queues(ff_gpu *gpu, ff_partition *p) {
  static const ptx_persistent_queue empty[PARTITION_STREAMS];
  TRY(gpu_on(gpu, p->device));
  DRIVER_TRY(gpu, MemAlloc, &p->queues, sizeof empty);
  DRIVER_TRY(gpu, MemcpyHtoD, p->queues, empty, sizeof empty);
  return FF_SUCCESS;
}

static ff_result build(ff_gpu *gpu, const wish *w, ff_partition *p) {
  TRY(take_sms(gpu, w, p));
  TRY(p->way == WAY_GREEN ? make_green(gpu, p) : make_queues(gpu, p));
  for (uint32_t i = 0; i < PARTITION_STREAMS; i++)
    TRY(stream_make(gpu, p->device, STREAM_PARTITIONS + p->slot * PARTITION_STREAMS + i, p->green));
  if (w->pieces) {
    TRY(launch_flush(gpu)); /* what is queued was planned with the whole budget */
    TRY(memory_lend(gpu, p->device, &p->pool, w->pieces));
    p->own_memory = true;
  }
  return FF_SUCCESS;
}

static ff_result take_slot(ff_gpu *gpu, ff_partition *p) {
  device *d = &gpu->devices[p->device];
  while (p->slot < PARTITIONS && d->partitions[p->slot]) p->slot++;
  if (p->slot == PARTITIONS)
    return runtime_fail(FF_ERROR_TOO_LARGE, "a GPU has at most %d partitions at one time", PARTITIONS);
  d->partitions[p->slot] = p;
  return FF_SUCCESS;
}

void partition_free(ff_partition *p) {
  ff_gpu *gpu = p->gpu;
  device *d = &gpu->devices[p->device];
  INSIST(gpu_on(gpu, p->device));
  for (uint32_t i = 0; i < PARTITION_STREAMS; i++) {
    stream *s = &gpu->streams[partition_stream(p, i)];
    if (s->handle) INSIST(gpu->driver->StreamDestroy(s->handle));
    s->handle = NULL;
  }
  if (p->green) INSIST(gpu->driver->GreenCtxDestroy(p->green));
  if (p->queues) INSIST(gpu->driver->MemFree(p->queues));
  if (p->own_memory) memory_take_back(gpu, p->device, &p->pool);
  mark(d, p, false);
  d->partitions[p->slot] = NULL;
  broker_give_back(p->share);
  free(p->name);
  free(p);
}

/* Frees it, and what went wrong stays the thread's message. */
static ff_result give_up(ff_partition *p, ff_result result) {
  char reason[2048];
  snprintf(reason, sizeof reason, "%s", ff_message());
  partition_free(p);
  runtime_restore_message(reason);
  return result;
}

static ff_result prepare(ff_gpu *gpu, const ff_partition_options *o, wish *w) {
  if (gpu->lost) return runtime_fail(FF_ERROR_LOST, "%s", gpu->lost_message);
  if (w->device >= gpu->device_count)
    return runtime_fail(FF_ERROR_INVALID, "ff_partition_create: there is no GPU %u", w->device);
  if (!gpu->devices[w->device].sm_count || gpu->devices[w->device].sm_count > MAX_SMS)
    return runtime_fail(FF_ERROR_DRIVER, "the GPU says that it has %u SMs", gpu->devices[w->device].sm_count);
  TRY(read_share(gpu, o->share, w));
  return choose_way(gpu, o->way, w);
}

static ff_result create(ff_gpu *gpu, const ff_partition_options *o, ff_partition **out) {
  wish w = {.name = o->name ? o->name : "partition", .device = o->device};
  char uuid[64];
  TRY(prepare(gpu, o, &w));
  ff_partition *p = ff_alloc(sizeof *p);
  *p = (ff_partition){.gpu = gpu, .device = w.device, .name = ff_strdup(w.name), .way = w.way};
  ff_result result = take_slot(gpu, p);
  if (result) {
    free(p->name);
    free(p);
    return result;
  }
  if (o->apart) {
    text_of_uuid(gpu, w.device, uuid, sizeof uuid);
    gpu_leave(gpu);
    result = ask_broker(uuid, &gpu->devices[w.device], &w, o->timeout_s, p);
    gpu_enter(gpu);
  }
  if (!result) result = build(gpu, &w, p);
  if (result) return give_up(p, result);
  *out = p;
  return FF_SUCCESS;
}

ff_result ff_partition_create(ff_gpu *gpu, const ff_partition_options *options, ff_partition **partition) {
  ff_partition_options o = {0};
  if (!gpu || !options || !partition) return runtime_fail(FF_ERROR_INVALID, "ff_partition_create: NULL");
  if (options->size < offsetof(ff_partition_options, device) || options->size > 4096)
    return runtime_fail(FF_ERROR_INVALID, "ff_partition_create: ff_partition_options.size is not set");
  memcpy(&o, options, options->size < sizeof o ? options->size : sizeof o);
  if (!o.share) return runtime_fail(FF_ERROR_INVALID, "ff_partition_create: no share");
  gpu_enter(gpu);
  ff_result result = create(gpu, &o, partition);
  gpu_leave(gpu);
  return result;
}

/* ---- the end ---- */

static ff_result destroy(ff_partition *p) {
  ff_gpu *gpu = p->gpu;
  for (size_t i = 0; i < gpu->stores.count; i++)
    if (gpu->stores.items[i]->partition == p) {
      const store *s = gpu->stores.items[i];
      return runtime_fail(FF_ERROR_BUSY, "partition '%s' has segments still%s%s%s", p->name,
                          s->segments.count ? ": '" : "", s->segments.count ? s->segments.items[0]->name : "",
                          s->segments.count ? "'" : "");
    }
  TRY(launch_flush(gpu));
  for (uint32_t i = 0; i < PARTITION_STREAMS && !gpu->lost; i++) {
    uint32_t index = partition_stream(p, i);
    TRY(work_close(gpu, index));
    TRY(work_wait(gpu, (operation){index, gpu->streams[index].issued}));
  }
  for (uint32_t i = 0; i < PARTITION_STREAMS; i++) { /* in a lost context nothing runs any more */
    stream *s = &gpu->streams[partition_stream(p, i)];
    s->open = false;
    s->completed = s->issued;
  }
  partition_free(p);
  return FF_SUCCESS;
}

ff_result ff_partition_destroy(ff_partition *partition) {
  if (!partition) return FF_SUCCESS;
  ff_gpu *gpu = partition->gpu;
  gpu_enter(gpu);
  ff_result result = destroy(partition);
  gpu_leave(gpu);
  return result;
}

/* ---- questions ---- */

ff_result ff_partition_describe(ff_partition *partition, ff_partition_info *info) {
  if (!partition || !info) return runtime_fail(FF_ERROR_INVALID, "ff_partition_describe: NULL");
  ff_gpu *gpu = partition->gpu;
  gpu_enter(gpu);
  const pool *from = partition_pool(partition);
  *info = (ff_partition_info){.name = partition->name,
                              .device = partition->device,
                              .way = partition->way == WAY_GREEN ? "green" : "rewrite",
                              .sm_first = partition->sm_first,
                              .sm_count = partition->sm_count,
                              .gpu_sms = gpu->devices[partition->device].sm_count,
                              .budget = from->budget_pieces * gpu->piece,
                              .own_budget = partition->own_memory,
                              .apart = partition->share != NULL};
  gpu_leave(gpu);
  return FF_SUCCESS;
}
