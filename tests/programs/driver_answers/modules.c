/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about modules, functions and entry points. */
#define _GNU_SOURCE
#include "answers.h"


#define HEAD ".version 7.0\n.target sm_75\n.address_size 64\n"
#include "modules.h"

static void images(void) {
  W m = 0, f = 0, word[8] = {0};
  char log[2048], text[100];
  answers_context();
  ASK("null", cuModuleLoadData, &m, 0);
  ASK("null module", cuModuleLoadData, 0, module_text);
  ASK("empty", cuModuleLoadData, &m, "");
  ASK("words", cuModuleLoadData, &m, "hello");
  ASK("only a head", cuModuleLoadData, &m, HEAD);
  ASK("no target", cuModuleLoadData, &m, ".version 7.0\n.address_size 64\n");
  ASK("version 99.0", cuModuleLoadData, &m, ".version 99.0\n.target sm_75\n.address_size 64\n");
  ASK("version 9.0", cuModuleLoadData, &m, ".version 9.0\n.target sm_75\n.address_size 64\n");
  ASK("version 9.1", cuModuleLoadData, &m, ".version 9.1\n.target sm_75\n.address_size 64\n");
  ASK("version 3.0, sm_30", cuModuleLoadData, &m, ".version 3.0\n.target sm_30\n.address_size 64\n");
  ASK("sm_100", cuModuleLoadData, &m, ".version 8.7\n.target sm_100\n.address_size 64\n");
  ASK("sm_90a", cuModuleLoadData, &m, ".version 8.7\n.target sm_90a\n.address_size 64\n");
  ASK("sm_999", cuModuleLoadData, &m, ".version 8.7\n.target sm_999\n.address_size 64\n");
  ASK("32 bits", cuModuleLoadData, &m, ".version 7.0\n.target sm_75\n.address_size 32\n");
  ASK("unknown instruction", cuModuleLoadData, &m, HEAD ".entry f() { wobble.u32 1; ret; }");
  ASK("undeclared register", cuModuleLoadData, &m, HEAD ".entry f() { mov.u32 %r1, 1; ret; }");
  ASK("wrong type", cuModuleLoadData, &m, HEAD ".entry f() { .reg .f32 %f; .reg .b64 %d; add.f32 %f, %d, %f; ret; }");
  ASK("missing brace", cuModuleLoadData, &m, HEAD ".entry f() { ret;");
  ASK("unresolved function", cuModuleLoadData, &m, HEAD ".extern .func g();\n.visible .entry f() { call g; ret; }");
  ASK("unresolved variable", cuModuleLoadData, &m,
      HEAD
      ".extern .global .u32 g;\n.visible .entry f() { .reg .b32 %r; ld.global.u32 %r, [g]; st.global.u32 [g], %r; ret; }");
  ASK("twice the same name", cuModuleLoadData, &m, HEAD ".visible .entry f() { ret; } .visible .entry f() { ret; }");
  ASK("too much shared memory", cuModuleLoadData, &m,
      HEAD ".visible .entry f() { .shared .b8 s[100000]; .reg .b32 %r; mov.u32 %r, s; st.shared.u32 [%r], %r; ret; }");
  ASK("too much constant memory", cuModuleLoadData, &m,
      HEAD ".visible .const .b8 c[70000]; .visible .entry f() { ret; }");
  ASK("parameters of 4356 bytes, 7.0", cuModuleLoadData, &m,
      HEAD ".visible .entry f(.param .align 4 .b8 p[4356]) { ret; }");
  ASK("parameters of 4356 bytes, 8.1", cuModuleLoadData, &m,
      ".version 8.1\n.target sm_75\n.address_size 64\n.visible .entry f(.param .align 4 .b8 p[4356]) { ret; }");
  ASK("parameters of 40000 bytes", cuModuleLoadData, &m,
      ".version 8.1\n.target sm_75\n.address_size 64\n.visible .entry f(.param .align 4 .b8 p[40000]) { ret; }");
  ASK("2000 threads", cuModuleLoadData, &m, HEAD ".visible .entry f() .maxntid 2000, 1, 1 { ret; }");
  static const unsigned char elf[256] = {0x7f, 'E', 'L', 'F', 2, 1, 1, 0};
  ASK("ELF header", cuModuleLoadData, &m, elf);
  static const unsigned box[64] = {0x50, 0xed, 0x55, 0xba, 0x01, 0x00, 0x10, 0x00};
  ASK("nearly a fat binary", cuModuleLoadData, &m, box);
  static const unsigned empty_box[8] = {0xba55ed50, 0x00100001, 0, 0};
  ASK("an empty fat binary", cuModuleLoadData, &m, empty_box);
  ASK("an empty fat binary", cuModuleLoadFatBinary, &m, empty_box);
  ASK("PTX", cuModuleLoadFatBinary, &m, module_text);
  ASK("no file", cuModuleLoad, &m, "/nowhere/at/all.ptx");
  ASK("null", cuModuleLoad, &m, 0);
  ASK("a folder", cuModuleLoad, &m, "/tmp");
  ASK("null", cuModuleUnload, 0);
  for (int i = 0; i < 3; i++) {
    static const char *const bad[] = {HEAD ".entry f() { wobble.u32 1; ret; }",
                                      HEAD ".extern .func g();\n.visible .entry f() { call g; ret; }", "nonsense"};
    int options[] = {5, 6, 3, 4};
    static char info[2048];
    memset(log, 0, sizeof log);
    memset(info, 0, sizeof info);
    W values[] = {(W)log, sizeof log, (W)info, sizeof info};
    snprintf(text, sizeof text, "with a log, %d", i);
    ASK(text, cuModuleLoadDataEx, &m, bad[i], 4, options, values);
    char *end = strchr(log, '\n');
    if (end) *end = 0;
    say(text, "first line: %s", log);
    snprintf(text, sizeof text, "log %d", i);
    say(text, "size is %s", values[1] == sizeof log ? "as before" : values[1] == 0 ? "0" : "that of the text");
    say(text, "information: %s", info[0] ? "some" : "none");
  }
  for (int option = -1; option < 35; option++) {
    W value = 0;
    snprintf(text, sizeof text, "option %d of 0", option);
    if (!ASK(text, cuModuleLoadDataEx, &m, HEAD ".visible .entry f() { ret; }", 1, &option, &value))
      DO(cuModuleUnload, m);
  }
  static const W options[][2] = {{0, 16}, {0, 1},  {0, 300}, {1, 128}, {1, 2000}, {7, 4},  {7, 5},
                                 {7, 9},  {9, 75}, {9, 90},  {9, 100}, {9, 12},   {10, 1}, {10, 2},
                                 {11, 1}, {12, 1}, {13, 1},  {14, 1},  {14, 3}};
  for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
    int option = (int)options[i][0];
    W value = options[i][1];
    snprintf(text, sizeof text, "option %d of %lu", option, value);
    if (!ASK(text, cuModuleLoadDataEx, &m, module_text, 1, &option, &value)) DO(cuModuleUnload, m);
  }
  m = answers_module(module_text);
  ASK("not there", cuModuleGetFunction, &f, m, "absent");
  ASK("empty", cuModuleGetFunction, &f, m, "");
  ASK("null name", cuModuleGetFunction, &f, m, 0);
  ASK("null", cuModuleGetFunction, 0, m, "nothing");
  ASK("null module", cuModuleGetFunction, &f, 0, "nothing");
  ASK("a variable", cuModuleGetFunction, &f, m, "counter");
  ASK("", cuModuleGetGlobal_v2, word, word + 1, m, "counter");
  say("size of counter", "%lu", word[1]);
  ASK("hidden", cuModuleGetGlobal_v2, word, word + 1, m, "hidden");
  ASK("constant", cuModuleGetGlobal_v2, word, word + 1, m, "table");
  say("size of table", "%lu", word[1]);
  ASK("a function", cuModuleGetGlobal_v2, word, word + 1, m, "nothing");
  ASK("not there", cuModuleGetGlobal_v2, word, word + 1, m, "absent");
  ASK("null size", cuModuleGetGlobal_v2, word, 0, m, "counter");
  ASK("null address", cuModuleGetGlobal_v2, 0, word, m, "counter");
  ASK("nulls", cuModuleGetGlobal_v2, 0, 0, m, "counter");
  ASK("null name", cuModuleGetGlobal_v2, word, word + 1, m, 0);
  DO(cuModuleGetGlobal_v2, word, word + 1, m, "counter");
  ASK("a module's", cuMemFree_v2, word[0]);
  ASK("a module's", cuMemGetAddressRange_v2, word + 2, word + 3, word[0]);
  say("range of a module's", "%lu", word[3]);
  ASK("not there", cuModuleGetTexRef, word, m, "absent");
  ASK("not there", cuModuleGetSurfRef, word, m, "absent");
  unsigned count = 99;
  ASK("", cuModuleGetFunctionCount, &count, m);
  say("functions", "%u", count);
  ASK("null", cuModuleGetFunctionCount, 0, m);
  ASK("two of them", cuModuleEnumerateFunctions, word, 2, m);
  ASK("none of them", cuModuleEnumerateFunctions, word, 0, m);
  ASK("", cuModuleGetLoadingMode, &count);
  say("loading mode", "%u", count);
  f = answers_function(m, "mixed");
  W offset = 0, bytes = 0;
  for (W i = 0; i < 5; i++) {
    offset = bytes = 99;
    snprintf(text, sizeof text, "parameter %lu", i);
    ASK(text, cuFuncGetParamInfo, f, i, &offset, &bytes);
    say(text, "at %lu, %lu bytes", offset, bytes);
  }
  ASK("null size", cuFuncGetParamInfo, f, 0, &offset, 0);
  ASK("null offset", cuFuncGetParamInfo, f, 0, 0, &bytes);
  const char *name = NULL;
  ASK("", cuFuncGetName, &name, f);
  say("name", "%s", name ? name : "null");
  ASK("null", cuFuncGetName, 0, f);
  ASK("", cuFuncGetModule, word, f);
  say("module", "%d", word[0] == m);
  ASK("", cuFuncIsLoaded, &count, f);
  say("loaded", "%u", count);
  ASK("", cuFuncLoad, f);
  ASK("after loading", cuFuncIsLoaded, &count, f);
  say("loaded after loading", "%u", count);
  /* libraries */
  W library = 0, kernel = 0;
  ASK("", cuLibraryLoadData, &library, module_text, 0, 0, 0, 0, 0, 0);
  ASK("words", cuLibraryLoadData, word, "hello", 0, 0, 0, 0, 0, 0);
  ASK("null", cuLibraryLoadData, word, 0, 0, 0, 0, 0, 0, 0);
  ASK("no file", cuLibraryLoadFromFile, word, "/nowhere/at/all", 0, 0, 0, 0, 0, 0);
  ASK("", cuLibraryGetKernel, &kernel, library, "nothing");
  ASK("not there", cuLibraryGetKernel, word, library, "absent");
  ASK("null", cuLibraryGetKernel, 0, library, "nothing");
  ASK("", cuKernelGetFunction, &f, kernel);
  ASK("", cuLibraryGetModule, &m, library);
  ASK("", cuLibraryGetGlobal, word, word + 1, library, "counter");
  ASK("not there", cuLibraryGetGlobal, word, word + 1, library, "absent");
  ASK("not managed", cuLibraryGetManaged, word, word + 1, library, "counter");
  ASK("not there", cuLibraryGetUnifiedFunction, word, library, "absent");
  ASK("", cuLibraryGetKernelCount, &count, library);
  say("kernels", "%u", count);
  ASK("its module", cuModuleUnload, m);
  int number = 0;
  ASK("", cuKernelGetAttribute, &number, 0, kernel, 0);
  ASK("no device", cuKernelGetAttribute, &number, 0, kernel, 5);
  ASK("", cuKernelSetAttribute, 8, 1000, kernel, 0);
  ASK("number 0", cuKernelSetAttribute, 0, 1000, kernel, 0);
  ASK("", cuKernelGetName, &name, kernel);
  ASK("", cuKernelGetLibrary, word, kernel);
  ASK("", cuLibraryUnload, library);
  /* linking */
  W link = 0, image = 0, size = 0;
  ASK("null", cuLinkCreate_v2, 0, 0, 0, 0);
  ASK("", cuLinkCreate_v2, 0, 0, 0, &link);
  ASK("nothing", cuLinkComplete, link, &image, &size);
  DO(cuLinkDestroy, link);
  DO(cuLinkCreate_v2, 0, 0, 0, &link);
  ASK("words", cuLinkAddData_v2, link, 1, "hello", 6, "name", 0, 0, 0);
  DO(cuLinkDestroy, link);
  DO(cuLinkCreate_v2, 0, 0, 0, &link);
  ASK("type 9", cuLinkAddData_v2, link, 9, "hello", 6, "name", 0, 0, 0);
  ASK("null", cuLinkAddData_v2, link, 1, 0, 6, "name", 0, 0, 0);
  ASK("no file", cuLinkAddFile_v2, link, 1, "/nowhere/at/all", 0, 0, 0);
  static const char caller[] = HEAD ".extern .func g();\n.visible .entry f() { call g; ret; }";
  ASK("a caller", cuLinkAddData_v2, link, 1, caller, sizeof caller, "name", 0, 0, 0);
  ASK("unresolved", cuLinkComplete, link, &image, &size);
  ASK("null", cuLinkComplete, link, 0, 0);
  ASK("", cuLinkDestroy, link);
  ASK("null", cuLinkDestroy, 0);
}

static void functions(void) {
  static const char *const names[] = {"nothing", "store", "bounded", "required", "crowded",
                                      "sharing", "big",   "mixed",   "constants"};
  char text[100];
  int number = 0;
  answers_context();
  W m = answers_module(module_text);
  for (int i = 0; i < 9; i++) {
    W f = answers_function(m, names[i]);
    for (int a = 0; a < 17; a++) {
      number = -7;
      snprintf(text, sizeof text, "%s, attribute %d", names[i], a);
      int got = DO(cuFuncGetAttribute, &number, a, f);
      if (got) say(text, "%s", answers_name(got));
      else say(text, "%d", number);
    }
  }
  W f = answers_function(m, "nothing"), s = answers_function(m, "sharing");
  ASK("null", cuFuncGetAttribute, 0, 0, f);
  ASK("number -1", cuFuncGetAttribute, &number, -1, f);
  ASK("null function", cuFuncGetAttribute, &number, 0, 0);
  static const int settings[][2] = {{0, 1},     {3, 1},      {8, 0},      {8, -1},        {8, 1000},    {8, 49152},
                                    {8, 49153}, {8, 232448}, {8, 232449}, {8, 228 << 10}, {8, 1 << 20}, {9, -2},
                                    {9, -1},    {9, 0},      {9, 50},     {9, 100},       {9, 101},     {10, 1},
                                    {11, 2},    {12, 2},     {13, 1},     {14, 1},        {14, 2},      {15, 0},
                                    {15, 1},    {15, 2},     {15, 3},     {16, 0}};
  for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
    snprintf(text, sizeof text, "nothing, %d to %d", settings[i][0], settings[i][1]);
    ASK(text, cuFuncSetAttribute, f, settings[i][0], settings[i][1]);
    DO(cuFuncGetAttribute, &number, settings[i][0], f);
    say(text, "%d", number);
  }
  ASK("sharing, all but its own", cuFuncSetAttribute, s, 8, 232448 - 4096);
  ASK("sharing, more", cuFuncSetAttribute, s, 8, 232448 - 4095);
  for (int i = -1; i < 5; i++) {
    snprintf(text, sizeof text, "%d", i);
    ASK(text, cuFuncSetCacheConfig, f, i);
    ASK(text, cuFuncSetSharedMemConfig, f, i);
  }
}

/* Which name at which version is which symbol. */
static void entry_points(void) {
  static const struct {
    const char *symbol, *name;
    int since, per_thread;
  } all[] = {
#define X(symbol, name, since, per_thread) {#symbol, #name, since, per_thread},
#include "driver/driver_api/stubs_libcuda.def"
#undef X
  };
  MUST(cuInit, 0);
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    void *exported = answers_symbol(all[i].symbol), *now = NULL, *before = NULL;
    int status = -1, earlier = -1;
    if (all[i].since > 13000) continue;
    int got = DO(cuGetProcAddress_v2, all[i].name, &now, all[i].since, all[i].per_thread ? 2 : 1, &status);
    int had = DO(cuGetProcAddress_v2, all[i].name, &before, all[i].since - 1, all[i].per_thread ? 2 : 1, &earlier);
    say(all[i].symbol, "%s, since %d: %d %d %s, earlier: %d %d %s", exported ? "exported" : "not exported",
        all[i].since, got, status,
        !now              ? "null"
        : now == exported ? "itself"
                          : "another",
        had, earlier,
        !before              ? "null"
        : before == exported ? "itself"
                             : "another");
  }
  void *address = NULL;
  int status = 0;
  ASK("null", cuGetProcAddress_v2, "cuInit", 0, 13000, 0, 0);
  ASK("null name", cuGetProcAddress_v2, 0, &address, 13000, 0, 0);
  ASK("empty", cuGetProcAddress_v2, "", &address, 13000, 0, 0);
  ASK("with a suffix", cuGetProcAddress_v2, "cuMemAlloc_v2", &address, 13000, 0, &status);
  say("with a suffix", "%d %s", status, address ? "found" : "null");
  ASK("not there", cuGetProcAddress_v2, "cuNothing", &address, 13000, 0, &status);
  say("not there", "%d", status);
  ASK("not there, no status", cuGetProcAddress_v2, "cuNothing", &address, 13000, 0, 0);
  ASK("version 1000", cuGetProcAddress_v2, "cuInit", &address, 1000, 0, &status);
  say("version 1000", "%d", status);
  ASK("version 99000", cuGetProcAddress_v2, "cuInit", &address, 99000, 0, &status);
  ASK("flags 3", cuGetProcAddress_v2, "cuInit", &address, 13000, 3, &status);
  ASK("flags 4", cuGetProcAddress_v2, "cuInit", &address, 13000, 4, &status);
  ASK("not there", cuGetProcAddress, "cuNothing", &address, 13000, 0);
  ASK("", cuGetProcAddress, "cuInit", &address, 13000, 0);
  W table = 0;
  ASK("null", cuGetExportTable, 0, 0);
  ASK("zeros", cuGetExportTable, &table, "0123456789abcdef");
}

const section sections_modules[] = {
    {"images", images}, {"functions", functions}, {"entries", entry_points}, {NULL, NULL}};
