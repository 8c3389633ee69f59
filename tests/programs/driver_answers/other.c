/* SPDX-License-Identifier: Apache-2.0 */
/* Questions for the runtime (libcudart.so.13) and for NVML. */
#define _GNU_SOURCE
#include "answers.h"

#define BAD 0x1234567000ul

/* A call of the runtime: its result, and what it leaves as the last error. */
#define RUN(label, name, ...)                                    \
  do {                                                           \
    char line[200], first[80];                                   \
    int returned = DO(name, __VA_ARGS__);                        \
    snprintf(first, sizeof first, "%s", answers_name(returned)); \
    int last = DO(cudaGetLastError, 0);                          \
    snprintf(line, sizeof line, "%s %s", #name, label);          \
    say(line, "%s, last %s", first, answers_name(last));         \
  } while (0)

static void runtime_errors(void) {
  answers_runtime();
  for (int code = 0; code <= 1000; code++) {
    const char *(*name)(int) = (const char *(*)(int))answers_symbol("cudaGetErrorName");
    const char *(*text)(int) = (const char *(*)(int))answers_symbol("cudaGetErrorString");
    char key[20];
    snprintf(key, sizeof key, "%d", code);
    if (strcmp(name(code), "unrecognized error code") || code == 55) say(key, "%s: %s", name(code), text(code));
  }
}

static void runtime_properties(void) {
  static int words[400];
  answers_runtime();
  RUN("", cudaGetDeviceProperties, words, 0);
  char key[40];
  for (int i = 288 / 4; i < 1008 / 4; i++) {
    snprintf(key, sizeof key, "at %d", i * 4);
    say(key, "%d", words[i]);
  }
  RUN("null", cudaGetDeviceProperties, 0, 0);
  RUN("no device", cudaGetDeviceProperties, words, 5);
}

static int touched;
static void touch(void *data) { (void)data, touched++; }

static void runtime_calls(void) {
  W p = 0, q = 0, s = 0, e = 0, word[32] = {0};
  int number = 0;
  float time = 0;
  static char host[8192];
  char text[100];
  answers_runtime();
  RUN("", cudaGetDeviceCount, &number);
  RUN("null", cudaGetDeviceCount, 0);
  RUN("", cudaRuntimeGetVersion, &number);
  RUN("null", cudaRuntimeGetVersion, 0);
  RUN("9", cudaSetDevice, 9);
  RUN("-1", cudaSetDevice, -1);
  RUN("null", cudaGetDevice, 0);
  RUN("", cudaGetDevice, &number);
  RUN("none", cudaSetValidDevices, 0, 0);
  number = 9;
  RUN("9", cudaSetValidDevices, &number, 1);
  RUN("", cudaGetDeviceFlags, &number);
  say("flags", "%d", number);
  RUN("7", cudaSetDeviceFlags, 7);
  RUN("4", cudaSetDeviceFlags, 4);
  RUN("0x1000", cudaSetDeviceFlags, 0x1000);
  RUN("0", cudaMalloc, &p, 0);
  say("memory of nothing", "%s", p ? "given" : "null");
  RUN("null", cudaMalloc, 0, 16);
  RUN("too much", cudaMalloc, &p, 1ul << 46);
  RUN("", cudaMalloc, &p, 4096);
  RUN("second", cudaMalloc, &q, 4096);
  RUN("middle", cudaFree, p + 64);
  RUN("bad", cudaFree, BAD);
  RUN("host", cudaFree, host);
  RUN("null", cudaFree, 0);
  RUN("null", cudaFreeHost, 0);
  RUN("host", cudaFreeHost, host);
  RUN("device", cudaFreeHost, p);
  static const char *const kinds[] = {
      "host to host", "host to device", "device to host", "device to device", "default", "5", "-1"};
  for (int k = 0; k < 7; k++) {
    int kind = k == 6 ? -1 : k;
    for (int way = 0; way < 4; way++) {
      snprintf(text, sizeof text, "%s: %s to %s", kinds[k], way & 1 ? "device" : "host", way & 2 ? "device" : "host");
      RUN(text, cudaMemcpy, way & 2 ? p : (W)host, way & 1 ? q : (W)host + 4096, 64, kind);
      RUN(text, cudaMemcpyAsync, way & 2 ? p : (W)host, way & 1 ? q : (W)host + 4096, 64, kind, 0);
      RUN(text, cudaMemcpy2D, way & 2 ? p : (W)host, 64, way & 1 ? q : (W)host + 4096, 64, 32, 4, kind);
    }
  }
  RUN("nothing", cudaMemcpy, 0, 0, 0, 1);
  RUN("nothing, kind 9", cudaMemcpy, 0, 0, 0, 9);
  RUN("null to", cudaMemcpy, 0, host, 16, 1);
  RUN("null from", cudaMemcpy, p, 0, 16, 1);
  RUN("past the end", cudaMemcpy, p + 4090, host, 16, 1);
  RUN("small pitch", cudaMemcpy2D, p, 16, host, 64, 32, 4, 1);
  RUN("small pitch, no height", cudaMemcpy2D, p, 16, host, 64, 32, 0, 1);
  RUN("large pitch", cudaMemcpy2D, p, 1ul << 32, host, 64, 32, 4, 1);
  RUN("past the end", cudaMemset, p + 4090, 1, 16);
  RUN("nothing", cudaMemset, p, 1, 0);
  RUN("null", cudaMemset, 0, 1, 16);
  RUN("host", cudaMemset, host, 1, 16);
  RUN("small pitch", cudaMemset2D, p, 16, 1, 32, 4);
  RUN("", cudaMemset2D, p, 64, 1, 32, 4);
  RUN("no symbol", cudaMemcpyToSymbol, host, host, 4, 0, 1);
  RUN("no symbol", cudaMemcpyFromSymbol, host, host, 4, 0, 2);
  RUN("no symbol", cudaGetSymbolAddress, word, host);
  RUN("no symbol", cudaGetSymbolSize, word, host);
  RUN("null", cudaGetSymbolAddress, word, 0);
  RUN("no function", cudaFuncGetAttributes, word, host);
  RUN("null", cudaFuncGetAttributes, word, 0);
  RUN("no function", cudaFuncSetAttribute, host, 8, 100);
  RUN("no function", cudaFuncSetCacheConfig, host, 1);
  RUN("no function", cudaOccupancyMaxActiveBlocksPerMultiprocessor, word, host, 32, 0);
  RUN("no function", cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, word, host, 32, 0, 0);
  RUN("no function", cudaGetFuncBySymbol, word, host);
  RUN("null", cudaStreamCreate, 0);
  RUN("", cudaStreamCreate, &s);
  RUN("flags 3", cudaStreamCreateWithFlags, word, 3);
  RUN("priority 9", cudaStreamCreateWithPriority, word, 1, 9);
  RUN("null", cudaStreamDestroy, 0);
  RUN("legacy", cudaStreamDestroy, 1);
  RUN("null", cudaStreamQuery, 0);
  RUN("null event", cudaStreamWaitEvent, s, 0, 0);
  RUN("null", cudaStreamAddCallback, s, 0, 0, 0);
  RUN("null", cudaLaunchHostFunc, s, 0, 0);
  RUN("", cudaLaunchHostFunc, s, touch, 0);
  RUN("null", cudaEventCreate, 0);
  RUN("flags 9", cudaEventCreateWithFlags, word, 9);
  RUN("flags 4", cudaEventCreateWithFlags, word, 4);
  RUN("", cudaEventCreate, &e);
  RUN("not recorded", cudaEventQuery, e);
  RUN("not recorded", cudaEventSynchronize, e);
  RUN("not recorded", cudaEventElapsedTime, &time, e, e);
  RUN("null", cudaEventRecord, 0, s);
  RUN("null", cudaEventDestroy, 0);
  RUN("flags 64", cudaHostAlloc, word, 64, 64);
  RUN("nothing", cudaHostAlloc, word, 0, 0);
  say("host memory of nothing", "%s", word[0] ? "given" : "null");
  RUN("null", cudaHostAlloc, 0, 64, 0);
  RUN("nothing", cudaMallocHost, word, 0);
  RUN("host", cudaHostGetDevicePointer, word, host, 0);
  RUN("host", cudaHostGetFlags, word, host);
  RUN("host", cudaHostUnregister, host);
  RUN("null", cudaHostRegister, 0, 64, 0);
  RUN("flags 64", cudaHostRegister, host, 64, 64);
  RUN("", cudaHostRegister, host, 4096, 0);
  RUN("twice", cudaHostRegister, host, 4096, 0);
  RUN("", cudaHostUnregister, host);
  RUN("flags 4", cudaMallocManaged, word, 64, 4);
  RUN("flags 0", cudaMallocManaged, word, 64, 0);
  RUN("nothing", cudaMallocManaged, word, 0, 1);
  RUN("null", cudaMallocManaged, 0, 64, 1);
  RUN("null", cudaMallocPitch, 0, word, 64, 4);
  RUN("", cudaMallocPitch, word, word + 1, 100, 4);
  say("pitch", "%lu", word[1]);
  RUN("no width", cudaMallocPitch, word, word + 1, 0, 4);
  say("no width", "%lu", word[1]);
  RUN("no height", cudaMallocPitch, word, word + 1, 100, 0);
  for (int limit = -1; limit < 9; limit++) {
    snprintf(text, sizeof text, "%d", limit);
    word[0] = 777;
    RUN(text, cudaDeviceGetLimit, word, limit);
    if (word[0] != 777) snprintf(text, sizeof text, "limit %d", limit), say(text, "%lu", word[0]);
  }
  RUN("9", cudaDeviceSetLimit, 9, 100);
  RUN("itself", cudaDeviceCanAccessPeer, &number, 0, 0);
  RUN("itself", cudaDeviceEnablePeerAccess, 0, 0);
  RUN("none", cudaDeviceEnablePeerAccess, 4, 0);
  RUN("itself", cudaDeviceDisablePeerAccess, 0);
  RUN("null", cudaDeviceGetAttribute, 0, 1, 0);
  RUN("number 999", cudaDeviceGetAttribute, &number, 999, 0);
  RUN("no device", cudaDeviceGetAttribute, &number, 1, 9);
  RUN("5 characters", cudaDeviceGetPCIBusId, text, 5, 0);
  RUN("nonsense", cudaDeviceGetByPCIBusId, &number, "hello");
  RUN("null", cudaChooseDevice, &number, 0);
  static const struct {
    const char *name;
    int which;
  } places[] = {{"device", 0}, {"host", 1}, {"null", 2}, {"nonsense", 3}, {"device, middle", 4}};
  for (int i = 0; i < 5; i++) {
    W addresses[] = {p, (W)host, 0, BAD, p + 100};
    int answer[32];
    memset(answer, 0x5a, sizeof answer);
    RUN(places[i].name, cudaPointerGetAttributes, answer, addresses[i]);
    snprintf(text, sizeof text, "pointer, %s", places[i].name);
    W *pointers = (W *)(answer + 2);
    say(text, "type %d device %d, device pointer %s, host pointer %s", answer[0], answer[1],
        pointers[0] == addresses[i] ? "itself"
        : pointers[0]               ? "another"
                                    : "null",
        pointers[1] == addresses[i] ? "itself"
        : pointers[1]               ? "another"
                                    : "null");
  }
  RUN("null", cudaPointerGetAttributes, 0, p);
  RUN("null", cudaGraphCreate, 0, 0);
  RUN("null", cudaGraphDestroy, 0);
  RUN("null", cudaGraphLaunch, 0, s);
  RUN("null", cudaGraphExecDestroy, 0);
  RUN("not capturing", cudaStreamEndCapture, s, word);
  RUN("legacy", cudaStreamBeginCapture, 0, 0);
  RUN("mode 4", cudaStreamBeginCapture, s, 4);
  RUN("", cudaStreamBeginCapture, s, 0);
  RUN("capturing", cudaStreamSynchronize, s);
  RUN("invalidated", cudaStreamIsCapturing, s, &number);
  say("capture status", "%d", number);
  RUN("invalidated", cudaStreamEndCapture, s, word);
  RUN("", cudaStreamBeginCapture, s, 0);
  RUN("while capturing", cudaMalloc, word, 16);
  RUN("while capturing", cudaDeviceSynchronize, 0);
  RUN("while capturing", cudaStreamEndCapture, s, word);
  RUN("null", cudaMemGetInfo, 0, 0);
  RUN("null", cudaMallocAsync, 0, 64, s);
  RUN("nothing", cudaMallocAsync, word, 0, s);
  RUN("", cudaMallocAsync, word, 64, s);
  RUN("", cudaFreeAsync, word[0], s);
  RUN("twice", cudaFreeAsync, word[0], s);
  RUN("null", cudaFreeAsync, 0, s);
  RUN("from a pool", cudaMallocAsync, word, 64, s);
  RUN("of a pool", cudaFree, word[0]);
  RUN("null", cudaIpcGetMemHandle, 0, p);
  RUN("host", cudaIpcGetMemHandle, word, host);
  RUN("", cudaProfilerStart, 0);
  RUN("", cudaProfilerStop, 0);
  RUN("", cudaDeviceSynchronize, 0);
  RUN("", cudaFree, p);
  RUN("twice", cudaFree, p);
  RUN("2", cudaDeviceSetCacheConfig, 2);
  RUN("", cudaDeviceReset, 0);
  RUN("after reset", cudaGetDeviceFlags, &number);
  say("flags after reset", "%d", number);
  RUN("after reset", cudaDeviceGetCacheConfig, &number);
  say("cache config after reset", "%d", number);
  RUN("after reset", cudaFree, q);
  RUN("after reset", cudaMalloc, &p, 64);
  say("host functions", "%d", touched);
}

static const char *const nvml_names[] = {
#define X(name) #name,
#include "driver/stand_ins/nvml_names.def"
#undef X
};
#define NVML_COUNT (sizeof nvml_names / sizeof *nvml_names)

static W nvml_open(void) {
  W device = 0;
  answers_nvml();
  MUST(nvmlInit_v2, 0);
  MUST(nvmlDeviceGetHandleByIndex_v2, 0, &device);
  return device;
}

static int may_be_asked(const char *name) {
  static const char *const not [] = {"HandleBy", "Count",          "Vgpu",     "vgpu",       "Topology",
                                     "P2P",      "GridLicensable", "Affinity", "FieldValues"};
  if (strncmp(name, "nvmlDeviceGet", 13) != 0) return 0;
  for (size_t i = 0; i < sizeof not / sizeof *not ; i++)
    if (strstr(name, not [i])) return 0;
  return 1;
}

static void nvml_codes(size_t part) {
  static char room[4][65536];
  for (size_t i = part; i < NVML_COUNT; i += 4) {
    if (!may_be_asked(nvml_names[i])) continue;
    ALONE({
      W device = nvml_open();
      if (!answers_symbol(nvml_names[i])) say(nvml_names[i], "no such function"), answers_done();
      int codes[4];
      for (int k = 0; k < 4; k++) {
        memset(room, 0, sizeof room);
        W second = k == 0 ? (W)room[0] : (W)(k - 1);
        W arguments[12] = {device, second, (W)room[1], (W)room[2], (W)room[3], 0, 0, 0, 0, 0, 0, 0};
        codes[k] = answers_call(nvml_names[i], arguments);
      }
      say(nvml_names[i], "%d; with 0, 1, 2: %d %d %d", codes[0], codes[1], codes[2], codes[3]);
    });
  }
}
static void nvml_0(void) { nvml_codes(0); }
static void nvml_1(void) { nvml_codes(1); }
static void nvml_2(void) { nvml_codes(2); }
static void nvml_3(void) { nvml_codes(3); }

#define NUMBER(label, name, ...)                            \
  do {                                                      \
    unsigned value[32] = {0};                               \
    int result = DO(name, __VA_ARGS__);                     \
    if (result) say(#name " " label, "error %d", result);   \
    else say(#name " " label, "%u %u", value[0], value[1]); \
  } while (0)

static void nvml_values(void) {
  char text[300] = "";
  int number = 0;
  answers_nvml();
  ASK("before", nvmlDeviceGetCount_v2, &number);
  ASK("before", nvmlShutdown, 0);
  ASK("", nvmlInit_v2, 0);
  ASK("null", nvmlDeviceGetCount_v2, 0);
  W device = 0;
  ASK("5", nvmlDeviceGetHandleByIndex_v2, 5, &device);
  ASK("null", nvmlDeviceGetHandleByIndex_v2, 0, 0);
  ASK("nonsense", nvmlDeviceGetHandleByUUID, "GPU-hello", &device);
  ASK("nonsense", nvmlDeviceGetHandleByPciBusId_v2, "hello", &device);
  MUST(nvmlDeviceGetHandleByIndex_v2, 0, &device);
  ASK("", nvmlDeviceGetName, device, text, 100);
  say("name", "%s", text);
  ASK("5 characters", nvmlDeviceGetName, device, text, 5);
  ASK("null device", nvmlDeviceGetName, 0, text, 100);
  ASK("null", nvmlDeviceGetName, device, 0, 100);
  ASK("", nvmlSystemGetDriverVersion, text, 80);
  ASK("", nvmlSystemGetCudaDriverVersion_v2, &number);
  say("CUDA version", "%d", number);
  ASK("", nvmlDeviceGetUUID, device, text, 96);
  say("length of UUID", "%zu", strlen(text));
  ASK("", nvmlDeviceGetSerial, device, text, 96);
  ASK("", nvmlDeviceGetVbiosVersion, device, text, 96);
  ASK("", nvmlDeviceGetBoardPartNumber, device, text, 96);
  W memory[8] = {0};
  ASK("", nvmlDeviceGetMemoryInfo, device, memory);
  say("memory", "%lu", memory[0]);
  memset(memory, 0, sizeof memory);
  *(unsigned *)memory = 40 | 2 << 24;
  ASK("", nvmlDeviceGetMemoryInfo_v2, device, memory);
  say("memory, version 2", "%lu, reserved %s", memory[1], memory[2] ? "some" : "none");
  memset(memory, 0, sizeof memory);
  ASK("", nvmlDeviceGetBAR1MemoryInfo, device, memory);
  say("BAR1", "%lu", memory[0]);
  NUMBER("", nvmlDeviceGetBrand, device, value);
  NUMBER("", nvmlDeviceGetArchitecture, device, value);
  NUMBER("", nvmlDeviceGetNumGpuCores, device, value);
  NUMBER("", nvmlDeviceGetMemoryBusWidth, device, value);
  NUMBER("", nvmlDeviceGetCudaComputeCapability, device, value, value + 1);
  NUMBER("", nvmlDeviceGetMaxPcieLinkGeneration, device, value);
  NUMBER("", nvmlDeviceGetMaxPcieLinkWidth, device, value);
  NUMBER("", nvmlDeviceGetGpuMaxPcieLinkGeneration, device, value);
  NUMBER("", nvmlDeviceGetPcieSpeed, device, value);
  NUMBER("", nvmlDeviceGetPcieLinkMaxSpeed, device, value);
  NUMBER("", nvmlDeviceGetBusType, device, value);
  NUMBER("", nvmlDeviceGetComputeMode, device, value);
  NUMBER("", nvmlDeviceGetPersistenceMode, device, value);
  NUMBER("", nvmlDeviceGetDisplayMode, device, value);
  NUMBER("", nvmlDeviceGetDisplayActive, device, value);
  NUMBER("", nvmlDeviceGetEccMode, device, value, value + 1);
  NUMBER("", nvmlDeviceGetDefaultEccMode, device, value);
  NUMBER("", nvmlDeviceGetMigMode, device, value, value + 1);
  NUMBER("", nvmlDeviceGetMaxMigDeviceCount, device, value);
  NUMBER("", nvmlDeviceGetMinorNumber, device, value);
  NUMBER("", nvmlDeviceGetIndex, device, value);
  NUMBER("", nvmlDeviceGetNumFans, device, value);
  NUMBER("", nvmlDeviceGetPowerManagementMode, device, value);
  NUMBER("", nvmlDeviceGetPowerManagementDefaultLimit, device, value);
  NUMBER("", nvmlDeviceGetPowerManagementLimitConstraints, device, value, value + 1);
  NUMBER("", nvmlDeviceGetEnforcedPowerLimit, device, value);
  NUMBER("", nvmlDeviceGetMultiGpuBoard, device, value);
  NUMBER("", nvmlDeviceGetGpuOperationMode, device, value, value + 1);
  NUMBER("", nvmlDeviceGetBoardId, device, value + 2);
  NUMBER("", nvmlDeviceGetAccountingMode, device, value);
  NUMBER("", nvmlDeviceGetGspFirmwareMode, device, value, value + 1);
  for (int clock = 0; clock < 5; clock++) {
    snprintf(text, sizeof text, "%d", clock);
    unsigned value = 0;
    int result = DO(nvmlDeviceGetMaxClockInfo, device, clock, &value);
    char key[60];
    snprintf(key, sizeof key, "max clock %d", clock);
    say(key, "%d %u", result, value);
    result = DO(nvmlDeviceGetMaxCustomerBoostClock, device, clock, &value);
    snprintf(key, sizeof key, "max boost clock %d", clock);
    say(key, "%d %u", result, value);
    result = DO(nvmlDeviceGetDefaultApplicationsClock, device, clock, &value);
    snprintf(key, sizeof key, "default clock %d", clock);
    say(key, "%d %u", result, value);
  }
  for (int kind = 0; kind < 9; kind++) {
    unsigned value = 0;
    snprintf(text, sizeof text, "temperature threshold %d", kind);
    int result = DO(nvmlDeviceGetTemperatureThreshold, device, kind, &value);
    say(text, "%d %u", result, value);
  }
  for (int link = 0; link < 20; link += 6) {
    unsigned value = 0;
    snprintf(text, sizeof text, "link %d", link);
    int result = DO(nvmlDeviceGetNvLinkState, device, link, &value);
    say(text, "%d %u", result, value);
  }
  static const int fields[] = {1, 12, 82, 91, 93, 108, 138, 139, 159, 160, 170, 184, 186, 194, 199, 250, 999};
  for (int i = 0; i < 17; i++) {
    W field[5] = {0}; /* nvmlFieldValue_t: id, scope, timestamp, latency, type, return, value */
    ((int *)field)[0] = fields[i];
    int result = DO(nvmlDeviceGetFieldValues, device, 1, field);
    snprintf(text, sizeof text, "field %d", fields[i]);
    say(text, "%d: %d, type %d", result, ((int *)field)[7], ((int *)field)[6]);
  }
  for (int code = 0; code < 32; code++) {
    const char *(*ask)(int) = (const char *(*)(int))answers_symbol("nvmlErrorString");
    snprintf(text, sizeof text, "error %d", code);
    say(text, "%s", ask(code));
  }
  const char *(*ask)(int) = (const char *(*)(int))answers_symbol("nvmlErrorString");
  say("error 999", "%s", ask(999));
  ASK("", nvmlShutdown, 0);
  ASK("again", nvmlShutdown, 0);
}

const section sections_other[] = {{"runtime_errors", runtime_errors},
                                  {"runtime_properties", runtime_properties},
                                  {"runtime", runtime_calls},
                                  {"nvml", nvml_values},
                                  {"nvml_0", nvml_0},
                                  {"nvml_1", nvml_1},
                                  {"nvml_2", nvml_2},
                                  {"nvml_3", nvml_3},
                                  {NULL, NULL}};
