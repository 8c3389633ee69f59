/* SPDX-License-Identifier: Apache-2.0 */
/* Device attributes from a machine, and the structs of cudaGetDeviceProperties from the attributes.
 *
 * What always holds: a struct member and the attribute of the same meaning have the same value. */
#include "driver/properties.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static int capability(const machine_spec *s) { return (int)(s->compute_major * 10 + s->compute_minor); }

/* Single-precision over double-precision throughput: "Arithmetic instructions" of the CUDA C++ Programming Guide. */
static int single_to_double(int cc) {
  static const struct {
    int from, ratio;
  } steps[] = {
      {20, 8}, {21, 12}, {30, 24}, {35, 3},  {50, 32}, {60, 2},   {61, 32},
      {70, 2}, {75, 32}, {80, 2},  {86, 64}, {90, 2},  {103, 64}, {110, 64},
  };
  int ratio = 8;
  for (size_t i = 0; i < sizeof steps / sizeof *steps && steps[i].from <= cc; i++) ratio = steps[i].ratio;
  return ratio;
}

static uint64_t nearest(double value) { return (uint64_t)(value + 0.5); }

double properties_memory_clock_mhz(const machine_spec *s) {
  if (!s->dram_bus_bits) return s->dram_clock_mhz;
  uint64_t times = nearest(s->dram_gbs * 8e3 / (2 * s->dram_clock_mhz * (double)s->dram_bus_bits));
  return s->dram_clock_mhz * (double)(times ? times : 1);
}

uint64_t properties_bus_bits(const machine_spec *s) {
  return s->dram_bus_bits ? s->dram_bus_bits : 32 * nearest(s->dram_gbs * 8e3 / (2 * 32 * s->dram_clock_mhz));
}

static int clamp(double value) { return value > INT_MAX ? INT_MAX : (int)value; }

enum { ATOMIC_OPERATIONS = 13 }; /* CUatomicOperation has so many */

bool properties_atomics(const int *operations, unsigned count, unsigned *capabilities) {
  if (!capabilities || !operations || !count) return false;
  for (unsigned i = 0; i < count; i++) {
    if (operations[i] < 0 || operations[i] >= ATOMIC_OPERATIONS) return false;
    capabilities[i] = 0;
  }
  return true;
}

bool properties_attribute(const machine_spec *s, int device, int attribute, int *value) {
  int cc = capability(s);
#define BY(two, three, five, six) (cc < 30 ? (two) : cc < 50 ? (three) : cc < 60 ? (five) : (six))
  switch (attribute) {
#define X(number, name, expression)       \
  case number:                            \
    *value = clamp((double)(expression)); \
    return true;
#include "driver/attributes.def"
#undef X
  }
#undef BY
  return false;
}

static int attribute_of(const machine_spec *s, int device, int attribute) {
  int value = 0;
  properties_attribute(s, device, attribute, &value);
  return value;
}

/* FNV-1a over the name, twice with different starts; the last byte tells devices apart. */
void properties_uuid(const machine_spec *machine, int device, char uuid[16]) {
  for (int half = 0; half < 2; half++) {
    uint64_t hash = 1469598103934665603u + (uint64_t)half;
    for (const char *c = machine->name; *c; c++) hash = (hash ^ (unsigned char)*c) * 1099511628211u;
    memcpy(uuid + 8 * half, &hash, 8);
  }
  uuid[15] = (char)(uuid[15] + device);
}

void properties_bus_write(int device, char text[16]) { snprintf(text, 16, "0000:%02x:00.0", (unsigned)device + 1); }

int properties_bus_read(const char *text) {
  unsigned domain = 0, bus, slot, function = 0;
  if (sscanf(text, "%x:%x:%x.%x", &domain, &bus, &slot, &function) < 3) {
    domain = function = 0;
    if (sscanf(text, "%x:%x.%x", &bus, &slot, &function) < 2) return -1;
  }
  return domain || slot || function || !bus || bus > INT_MAX ? INT_MAX : (int)bus - 1;
}

static void copy_name(char *to, size_t size, const char *from) {
  size_t length = strlen(from);
  if (length >= size) length = size - 1;
  memcpy(to, from, length);
}

/* A member whose first attribute number is 0 has none, and stays zero here. */
#define MEMBER(type, field, ...)                                       \
  {                                                                    \
    static const int from[] = {__VA_ARGS__};                           \
    type *to = (type *)&out->field;                                    \
    for (size_t i = 0; from[0] && i < sizeof from / sizeof *from; i++) \
      to[i] = (type)attribute_of(machine, device, from[i]);            \
  }
#define ABSENT(type, field, ...)
#define FILL_OTHERS()                                      \
  do {                                                     \
    copy_name(out->name, sizeof out->name, machine->name); \
    properties_uuid(machine, device, out->uuid);           \
    out->totalGlobalMem = gpu_memory;                      \
  } while (0)
#define X(majors, type, field, dimension, ...) IN_##majors(type, field, __VA_ARGS__)

#define IN_11_13 MEMBER
#define IN_11_12 MEMBER
#define IN_12_13 ABSENT
#define IN_12_12 ABSENT
#define IN_13_13 ABSENT
void properties_fill_11(const machine_spec *machine, int device, uint64_t gpu_memory, cudaDeviceProp_11 *out) {
  memset(out, 0, sizeof *out);
#include "driver/properties.def"
  FILL_OTHERS();
}

#undef IN_12_13
#undef IN_12_12
#define IN_12_13 MEMBER
#define IN_12_12 MEMBER
void properties_fill_12(const machine_spec *machine, int device, uint64_t gpu_memory, cudaDeviceProp_12 *out) {
  memset(out, 0, sizeof *out);
#include "driver/properties.def"
  FILL_OTHERS();
}

#undef IN_11_12
#undef IN_12_12
#undef IN_13_13
#define IN_11_12 ABSENT
#define IN_12_12 ABSENT
#define IN_13_13 MEMBER
void properties_fill_13(const machine_spec *machine, int device, uint64_t gpu_memory, cudaDeviceProp_13 *out) {
  memset(out, 0, sizeof *out);
#include "driver/properties.def"
  FILL_OTHERS();
}
