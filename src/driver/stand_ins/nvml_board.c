/* SPDX-License-Identifier: Apache-2.0 */
/* What a board is and how it is set, for NVML: cores, bus, the link to the host, clocks, modes. What always holds: a
 * clock is the one that the simulation counts in; it never changes, so that the current one, the highest and the only
 * supported one are the same, and nothing slows it down. */
#include <string.h>
#include <unistd.h>

#include "driver/stand_ins/nvml.h"

enum {
  ATTRIBUTE_CLOCK = 13,
  ATTRIBUTE_SM_COUNT = 16,
  ATTRIBUTE_COMPUTE_MODE = 20,
  ATTRIBUTE_ECC = 32,
  ATTRIBUTE_MEMORY_CLOCK = 36,
  ATTRIBUTE_BUS_WIDTH = 37
};
enum { OFF, ON }; /* nvmlEnableState */

static unsigned capability(void) {
  return (unsigned)(10 * engine_machine()->compute_major + engine_machine()->compute_minor);
}

/* `value` for a live device, into *to. */
static nvmlReturn constant(nvmlDevice device, unsigned value, unsigned *to) {
  int number;
  nvmlReturn error = to ? nvml_device_number(device, &number) : NVML_ERROR_INVALID_ARGUMENT;
  if (!error) *to = value;
  return error;
}

/* ---- what it is ---- */

/* Results of 32-bit floating-point additions per clock of an SM: "Arithmetic Instructions" of the CUDA C++ Programming
 * Guide (its edition 8.0 for 2.x and 3.x). */
static unsigned cores_per_sm(unsigned cc) {
  static const struct {
    unsigned from, cores;
  } steps[] = {{86, 128}, {70, 64}, {61, 128}, {60, 64}, {50, 128}, {30, 192}, {21, 48}, {0, 32}};
  if (cc >= 90) return 128;
  for (size_t i = 0;; i++)
    if (cc >= steps[i].from) return steps[i].cores;
}
EXPORT(nvmlDeviceGetNumGpuCores, (nvmlDevice device, unsigned *cores)) {
  nvmlReturn error = nvml_attribute(device, ATTRIBUTE_SM_COUNT, cores);
  if (!error) *cores *= cores_per_sm(capability());
  return error;
}
EXPORT(nvmlDeviceGetMemoryBusWidth, (nvmlDevice device, unsigned *bits)) {
  return nvml_attribute(device, ATTRIBUTE_BUS_WIDTH, bits);
}

typedef enum nvmlBrand {
  NVML_BRAND_UNKNOWN = 0,
  NVML_BRAND_QUADRO = 1,
  NVML_BRAND_TESLA = 2,
  NVML_BRAND_GEFORCE = 5,
  NVML_BRAND_TITAN = 6,
  NVML_BRAND_NVIDIA = 14,
} nvmlBrand;
/* From the product's name; what has no word of a brand in it and begins with NVIDIA is of the brand NVIDIA. */
EXPORT(nvmlDeviceGetBrand, (nvmlDevice device, unsigned *brand)) {
  static const struct {
    const char *word;
    nvmlBrand brand;
  } words[] = {
      {"GeForce", NVML_BRAND_GEFORCE}, {"Quadro", NVML_BRAND_QUADRO}, {"Tesla", NVML_BRAND_TESLA},
      {"TITAN", NVML_BRAND_TITAN},     {"NVIDIA", NVML_BRAND_NVIDIA},
  };
  nvmlReturn error = constant(device, NVML_BRAND_UNKNOWN, brand);
  for (size_t i = 0; !error && !*brand && i < sizeof words / sizeof *words; i++)
    if (strstr(engine_machine()->name, words[i].word)) *brand = words[i].brand;
  return error;
}

EXPORT(nvmlDeviceGetBoardId, (nvmlDevice device, unsigned *id)) { /* one for each board: its PCI bus */
  int number = 0;
  nvmlReturn error = id ? nvml_device_number(device, &number) : NVML_ERROR_INVALID_ARGUMENT;
  if (!error) *id = ((unsigned)number + 1) << 8;
  return error;
}
EXPORT(nvmlDeviceGetMultiGpuBoard, (nvmlDevice device, unsigned *several)) { return constant(device, 0, several); }
EXPORT(nvmlDeviceOnSameBoard, (nvmlDevice a, nvmlDevice b, int *same)) {
  int first, second;
  nvmlReturn error = same ? nvml_device_number(a, &first) : NVML_ERROR_INVALID_ARGUMENT;
  if (!error) error = nvml_device_number(b, &second);
  if (!error) *same = first == second;
  return error;
}
EXPORT(nvmlDeviceGetBusType, (nvmlDevice device, unsigned *type)) {
  return constant(device, 2 /* NVML_BUS_TYPE_PCIE */, type);
}

/* ---- the link to the host ---- */

/* PCI Express of 16 lanes, of the first generation whose rate each way, as generations are known by (4 GB/s, and twice
 * that each time: its Base Specification's 2.5 to 64 GT/s), is not below the machine's. 0: none has it, as NVLink-C2C.
 */
static unsigned pcie_generation(void) {
  enum { LAST = 6 };
  const machine_spec *m = engine_machine();
  double gbs = m->link_h2d_gbs > m->link_d2h_gbs ? m->link_h2d_gbs : m->link_d2h_gbs, rate = 4;
  unsigned generation = 1;
  for (; generation <= LAST && rate < gbs; generation++) rate *= 2;
  return generation <= LAST ? generation : 0;
}

/* One of these about the link, into *to. */
typedef enum pcie_question { PCIE_GENERATION, PCIE_LANES, PCIE_SPEED } pcie_question;
static nvmlReturn of_pcie(nvmlDevice device, pcie_question what, unsigned *to) {
  /* of a lane: 10^6 transfers per second */
  static const unsigned speeds[] = {0, 2500, 5000, 8000, 16000, 32000, 64000};
  int number;
  nvmlReturn error = to ? nvml_device_number(device, &number) : NVML_ERROR_INVALID_ARGUMENT;
  if (error) return error; /* there is no machine yet */
  unsigned generation = pcie_generation();
  if (!generation) return NVML_ERROR_NOT_SUPPORTED;
  *to = what == PCIE_GENERATION ? generation : what == PCIE_LANES ? 16 : speeds[generation];
  return NVML_SUCCESS;
}
EXPORT(nvmlDeviceGetCurrPcieLinkGeneration, (nvmlDevice device, unsigned *generation)) {
  return of_pcie(device, PCIE_GENERATION, generation);
}
EXPORT(nvmlDeviceGetMaxPcieLinkGeneration, (nvmlDevice device, unsigned *generation)) {
  return of_pcie(device, PCIE_GENERATION, generation);
}
EXPORT(nvmlDeviceGetGpuMaxPcieLinkGeneration, (nvmlDevice device, unsigned *generation)) {
  return of_pcie(device, PCIE_GENERATION, generation);
}
EXPORT(nvmlDeviceGetCurrPcieLinkWidth, (nvmlDevice device, unsigned *lanes)) {
  return of_pcie(device, PCIE_LANES, lanes);
}
EXPORT(nvmlDeviceGetMaxPcieLinkWidth, (nvmlDevice device, unsigned *lanes)) {
  return of_pcie(device, PCIE_LANES, lanes);
}
/* Its enumeration, NVML_PCIE_LINK_MAX_SPEED_2500MBPS and on, counts generations. */
EXPORT(nvmlDeviceGetPcieLinkMaxSpeed, (nvmlDevice device, unsigned *speed)) {
  return of_pcie(device, PCIE_GENERATION, speed);
}
EXPORT(nvmlDeviceGetPcieSpeed, (nvmlDevice device, unsigned *mbps)) { return of_pcie(device, PCIE_SPEED, mbps); }

/* ---- clocks, in MHz ---- */

enum { NVML_CLOCK_GRAPHICS, NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_CLOCK_VIDEO, NVML_CLOCK_COUNT };

static nvmlReturn clock_of(nvmlDevice device, unsigned type, unsigned *mhz) {
  if (type >= NVML_CLOCK_COUNT) return NVML_ERROR_INVALID_ARGUMENT;
  nvmlReturn error = constant(device, 0, mhz);
  if (error) return error;
  if (type == NVML_CLOCK_VIDEO) return NVML_ERROR_NOT_SUPPORTED;
  error = nvml_attribute(device, type == NVML_CLOCK_MEM ? ATTRIBUTE_MEMORY_CLOCK : ATTRIBUTE_CLOCK, mhz);
  *mhz /= 1000; /* of kHz: the 877.5 MHz of a V100 are 877 there, too */
  return error || *mhz ? error : NVML_ERROR_NOT_SUPPORTED;
}
EXPORT(nvmlDeviceGetClockInfo, (nvmlDevice device, unsigned type, unsigned *mhz)) {
  return clock_of(device, type, mhz);
}
EXPORT(nvmlDeviceGetMaxClockInfo, (nvmlDevice device, unsigned type, unsigned *mhz)) {
  return clock_of(device, type, mhz);
}
/* of what: 0 the current one; 1 to 3: application clocks and the user's boost, which are not there */
EXPORT(nvmlDeviceGetClock, (nvmlDevice device, unsigned type, unsigned what, unsigned *mhz)) {
  unsigned found;
  nvmlReturn error = mhz ? clock_of(device, type, &found) : NVML_ERROR_INVALID_ARGUMENT;
  if (error) return error;
  if (what > 3) return NVML_ERROR_INVALID_ARGUMENT;
  if (what) return NVML_ERROR_NOT_SUPPORTED;
  *mhz = found;
  return NVML_SUCCESS;
}
/* *count: room in `list`, then how many there are */
static nvmlReturn one_clock(nvmlDevice device, unsigned type, unsigned *count, unsigned *list) {
  unsigned mhz;
  nvmlReturn error = count ? clock_of(device, type, &mhz) : NVML_ERROR_INVALID_ARGUMENT;
  if (error) return error;
  bool room = *count >= 1;
  if (room && !list) return NVML_ERROR_INVALID_ARGUMENT;
  *count = 1;
  if (!room) return NVML_ERROR_INSUFFICIENT_SIZE;
  *list = mhz;
  return NVML_SUCCESS;
}
EXPORT(nvmlDeviceGetSupportedMemoryClocks, (nvmlDevice device, unsigned *count, unsigned *list)) {
  return one_clock(device, NVML_CLOCK_MEM, count, list);
}
EXPORT(nvmlDeviceGetSupportedGraphicsClocks, (nvmlDevice device, unsigned memory, unsigned *count, unsigned *list)) {
  unsigned right;
  nvmlReturn error = clock_of(device, NVML_CLOCK_MEM, &right);
  if (error) return error;
  return memory == right ? one_clock(device, NVML_CLOCK_GRAPHICS, count, list) : NVML_ERROR_NOT_FOUND;
}

/* P0: full speed */
EXPORT(nvmlDeviceGetPerformanceState, (nvmlDevice device, unsigned *state)) { return constant(device, 0, state); }
EXPORT(nvmlDeviceGetPowerState, (nvmlDevice device, unsigned *state)) { return constant(device, 0, state); }

/* A mask of what holds the clocks down: nothing does, and nothing could. */
static nvmlReturn no_reasons(nvmlDevice device, unsigned long long *mask) {
  int number;
  nvmlReturn error = mask ? nvml_device_number(device, &number) : NVML_ERROR_INVALID_ARGUMENT;
  if (!error) *mask = 0;
  return error;
}
EXPORT(nvmlDeviceGetCurrentClocksEventReasons, (nvmlDevice d, unsigned long long *mask)) { return no_reasons(d, mask); }
EXPORT(nvmlDeviceGetCurrentClocksThrottleReasons, (nvmlDevice d, unsigned long long *mask)) {
  return no_reasons(d, mask);
}
EXPORT(nvmlDeviceGetSupportedClocksEventReasons, (nvmlDevice d, unsigned long long *mask)) {
  return no_reasons(d, mask);
}
EXPORT(nvmlDeviceGetSupportedClocksThrottleReasons, (nvmlDevice d, unsigned long long *mask)) {
  return no_reasons(d, mask);
}

/* ---- modes ---- */

EXPORT(nvmlDeviceGetComputeMode, (nvmlDevice device, unsigned *mode)) {
  return nvml_attribute(device, ATTRIBUTE_COMPUTE_MODE, mode);
}
/* The virtual GPU lives as long as the process: nothing persists. */
EXPORT(nvmlDeviceGetPersistenceMode, (nvmlDevice device, unsigned *mode)) { return constant(device, OFF, mode); }
EXPORT(nvmlDeviceGetDisplayMode, (nvmlDevice device, unsigned *mode)) { return constant(device, OFF, mode); }
EXPORT(nvmlDeviceGetDisplayActive, (nvmlDevice device, unsigned *mode)) { return constant(device, OFF, mode); }
EXPORT(nvmlDeviceGetAccountingMode, (nvmlDevice device, unsigned *mode)) { return constant(device, OFF, mode); }
EXPORT(nvmlDeviceGetVirtualizationMode, (nvmlDevice device, unsigned *mode)) {
  return constant(device, 0 /* NVML_GPU_VIRTUALIZATION_MODE_NONE */, mode);
}

typedef struct nvmlDeviceAddressingMode {
  unsigned version, value; /* 0: none; 1: HMM; 2: ATS */
} nvmlDeviceAddressingMode;
EXPORT(nvmlDeviceGetAddressingMode, (nvmlDevice device, nvmlDeviceAddressingMode *mode)) {
  int number;
  nvmlReturn error = mode ? nvml_device_number(device, &number) : NVML_ERROR_INVALID_ARGUMENT;
  if (error) return error;
  if (mode->version != NVML_STRUCT_VERSION(nvmlDeviceAddressingMode, 1)) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  mode->value = (unsigned)engine_machine()->system_memory;
  return NVML_SUCCESS;
}

/* Multi-Instance GPU: compute capabilities 8.0, 9.0 and 10.x have it (MIG user guide), and it is off. */
static bool has_mig(void) { return capability() == 80 || capability() == 90 || capability() / 10 == 10; }
EXPORT(nvmlDeviceGetMigMode, (nvmlDevice device, unsigned *current, unsigned *pending)) {
  nvmlReturn error = current && pending ? constant(device, OFF, current) : NVML_ERROR_INVALID_ARGUMENT;
  if (error) return error;
  if (!has_mig()) return NVML_ERROR_NOT_SUPPORTED;
  *pending = OFF;
  return NVML_SUCCESS;
}
EXPORT(nvmlDeviceIsMigDeviceHandle, (nvmlDevice device, unsigned *is)) { return constant(device, 0, is); }
EXPORT(nvmlDeviceGetMaxMigDeviceCount, (nvmlDevice device, unsigned *count)) { return constant(device, 0, count); }
EXPORT(nvmlDeviceGetMigDeviceHandleByIndex, (nvmlDevice device, unsigned index, nvmlDevice *instance)) {
  int number;
  nvmlReturn error = instance ? nvml_device_number(device, &number) : NVML_ERROR_INVALID_ARGUMENT;
  if (error) return error;
  return has_mig() ? NVML_ERROR_NOT_FOUND : NVML_ERROR_NOT_SUPPORTED;
}

/* ---- error correction: memory that never fails ---- */

bool nvml_has_ecc(void) {
  unsigned on;
  return !nvml_attribute(nvml_device(0), ATTRIBUTE_ECC, &on) && on;
}
static nvmlReturn ecc_device(nvmlDevice device) {
  int number;
  nvmlReturn error = nvml_device_number(device, &number);
  return error || nvml_has_ecc() ? error : NVML_ERROR_NOT_SUPPORTED;
}
EXPORT(nvmlDeviceGetEccMode, (nvmlDevice device, unsigned *current, unsigned *pending)) {
  nvmlReturn error = current && pending ? ecc_device(device) : NVML_ERROR_INVALID_ARGUMENT;
  if (!error) *current = *pending = ON;
  return error;
}
EXPORT(nvmlDeviceGetDefaultEccMode, (nvmlDevice device, unsigned *mode)) {
  nvmlReturn error = mode ? ecc_device(device) : NVML_ERROR_INVALID_ARGUMENT;
  if (!error) *mode = ON;
  return error;
}
/* kind: 0 corrected, 1 not; counter: 0 since the driver was loaded, 1 of the board's life */
static nvmlReturn no_errors(nvmlDevice device, unsigned kind, unsigned counter, unsigned long long *count) {
  nvmlReturn error = count && kind < 2 && counter < 2 ? ecc_device(device) : NVML_ERROR_INVALID_ARGUMENT;
  if (!error) *count = 0;
  return error;
}
EXPORT(nvmlDeviceGetTotalEccErrors, (nvmlDevice device, unsigned kind, unsigned counter, unsigned long long *count)) {
  return no_errors(device, kind, counter, count);
}
EXPORT(nvmlDeviceGetMemoryErrorCounter,
       (nvmlDevice device, unsigned kind, unsigned counter, unsigned place, unsigned long long *count)) {
  if (place > 7) return NVML_ERROR_INVALID_ARGUMENT; /* L1, L2, device memory, registers, textures, CBU, SRAM */
  return no_errors(device, kind, counter, count);
}

/* ---- the host's side: every device is as near to every processor and to all memory ---- */

EXPORT(nvmlDeviceGetCpuAffinity, (nvmlDevice device, unsigned words, unsigned long *set)) {
  int number;
  nvmlReturn error = words && set ? nvml_device_number(device, &number) : NVML_ERROR_INVALID_ARGUMENT;
  if (error) return error;
  long count = sysconf(_SC_NPROCESSORS_CONF);
  memset(set, 0, words * sizeof *set);
  for (size_t i = 0; i < (size_t)count && i < 8 * sizeof *set * words; i++)
    set[i / (8 * sizeof *set)] |= 1ul << i % (8 * sizeof *set);
  return NVML_SUCCESS;
}
EXPORT(nvmlDeviceGetCpuAffinityWithinScope, (nvmlDevice device, unsigned words, unsigned long *set, unsigned scope)) {
  return scope < 2 ? nvmlDeviceGetCpuAffinity(device, words, set) : NVML_ERROR_INVALID_ARGUMENT; /* node, socket */
}
