/* SPDX-License-Identifier: Apache-2.0 */
/* NVTX's functions under their own names, over the state of nvtx.h. In libfarfault-nvtx.so they are what a copy of NVTX
 * calls; libnvToolsExt.so.1, the library of programs that were built with NVTX 2, exports them.
 *
 * Names may come as bytes (UTF-8 by custom), as wide characters, or as a string that was registered before. */
#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

#include "driver/injection/nvtx.h"

enum { TEXT_BYTES = 256 }; /* of a name that came as wide characters */

typedef enum message_type { MESSAGE_UNKNOWN, MESSAGE_ASCII, MESSAGE_UNICODE, MESSAGE_REGISTERED } message_type;

typedef struct attributes { /* nvtxEventAttributes_t; later versions are longer */
  uint16_t version, size;
  uint32_t category;
  int32_t color_type;
  uint32_t color;
  int32_t payload_type, reserved;
  uint64_t payload;
  int32_t message_type;
  const void *message;
} attributes;

NVTX_SHOWN void nvtxMarkEx(const attributes *event);
NVTX_SHOWN void nvtxMarkA(const char *message);
NVTX_SHOWN void nvtxMarkW(const wchar_t *message);
NVTX_SHOWN uint64_t nvtxRangeStartEx(const attributes *event);
NVTX_SHOWN uint64_t nvtxRangeStartA(const char *message);
NVTX_SHOWN uint64_t nvtxRangeStartW(const wchar_t *message);
NVTX_SHOWN void nvtxRangeEnd(uint64_t range);
NVTX_SHOWN int nvtxRangePushEx(const attributes *event);
NVTX_SHOWN int nvtxRangePushA(const char *message);
NVTX_SHOWN int nvtxRangePushW(const wchar_t *message);
NVTX_SHOWN int nvtxRangePop(void);
NVTX_SHOWN uint64_t nvtxDomainRangeStartEx(nvtx_domain *domain, const attributes *event);
NVTX_SHOWN void nvtxDomainRangeEnd(nvtx_domain *domain, uint64_t range);
NVTX_SHOWN int nvtxDomainRangePushEx(nvtx_domain *domain, const attributes *event);
NVTX_SHOWN int nvtxDomainRangePop(nvtx_domain *domain);
NVTX_SHOWN const void *nvtxDomainRegisterStringA(nvtx_domain *domain, const char *string);
NVTX_SHOWN const void *nvtxDomainRegisterStringW(nvtx_domain *domain, const wchar_t *string);
NVTX_SHOWN nvtx_domain *nvtxDomainCreateA(const char *name);
NVTX_SHOWN nvtx_domain *nvtxDomainCreateW(const wchar_t *name);
NVTX_SHOWN void nvtxNameCuStreamA(void *stream, const char *name);
NVTX_SHOWN void nvtxNameCuStreamW(void *stream, const wchar_t *name);
NVTX_SHOWN void nvtxNameCudaStreamA(void *stream, const char *name);
NVTX_SHOWN void nvtxNameCudaStreamW(void *stream, const wchar_t *name);

/* ---- names ---- */

static size_t encode(uint32_t character, char to[4]) {
  static const uint8_t lead[] = {0, 0xc0, 0xe0, 0xf0};
  size_t more = character < 0x80 ? 0 : character < 0x800 ? 1 : character < 0x10000 ? 2 : 3;
  for (size_t i = more; i > 0; i--, character >>= 6) to[i] = (char)(0x80 | (character & 0x3f));
  to[0] = (char)(lead[more] | character);
  return more + 1;
}

/* UTF-8 of as much as there is room for; what is no character is a question mark. */
static const char *narrow(const wchar_t *text, char to[TEXT_BYTES]) {
  size_t length = 0;
  for (; text && *text && length + 4 < TEXT_BYTES; text++) {
    uint32_t character = (uint32_t)*text;
    if (character > 0x10ffff || (character >= 0xd800 && character < 0xe000)) character = '?';
    length += encode(character, to + length);
  }
  to[length] = '\0';
  return to;
}

static const char *message_of(const attributes *event, char room[TEXT_BYTES]) {
  if (!event || event->size < sizeof *event || !event->message) return NULL;
  switch (event->message_type) {
  case MESSAGE_ASCII:
  case MESSAGE_REGISTERED: return event->message; /* a handle of ours is its text */
  case MESSAGE_UNICODE: return narrow(event->message, room);
  default: return NULL;
  }
}

/* ---- marks: points in time have no kernels and no memory ---- */

void nvtxMarkEx(const attributes *event) { (void)event; }
void nvtxMarkA(const char *message) { (void)message; }
void nvtxMarkW(const wchar_t *message) { (void)message; }

/* ---- ranges ---- */

uint64_t nvtxDomainRangeStartEx(nvtx_domain *domain, const attributes *event) {
  char room[TEXT_BYTES];
  return farfault_nvtx_start(domain, message_of(event, room));
}

uint64_t nvtxRangeStartEx(const attributes *event) { return nvtxDomainRangeStartEx(NULL, event); }
uint64_t nvtxRangeStartA(const char *message) { return farfault_nvtx_start(NULL, message); }

uint64_t nvtxRangeStartW(const wchar_t *message) {
  char room[TEXT_BYTES];
  return farfault_nvtx_start(NULL, narrow(message, room));
}

void nvtxRangeEnd(uint64_t range) { farfault_nvtx_end(range); }

void nvtxDomainRangeEnd(nvtx_domain *domain, uint64_t range) {
  (void)domain;
  farfault_nvtx_end(range);
}

int nvtxDomainRangePushEx(nvtx_domain *domain, const attributes *event) {
  char room[TEXT_BYTES];
  return farfault_nvtx_push(domain, message_of(event, room));
}

int nvtxRangePushEx(const attributes *event) { return nvtxDomainRangePushEx(NULL, event); }
int nvtxRangePushA(const char *message) { return farfault_nvtx_push(NULL, message); }

int nvtxRangePushW(const wchar_t *message) {
  char room[TEXT_BYTES];
  return farfault_nvtx_push(NULL, narrow(message, room));
}

int nvtxRangePop(void) { return farfault_nvtx_pop(NULL); }
int nvtxDomainRangePop(nvtx_domain *domain) { return farfault_nvtx_pop(domain); }

/* ---- handles ---- */

const void *nvtxDomainRegisterStringA(nvtx_domain *domain, const char *string) {
  (void)domain;
  return farfault_nvtx_keep(string);
}

const void *nvtxDomainRegisterStringW(nvtx_domain *domain, const wchar_t *string) {
  char room[TEXT_BYTES];
  (void)domain;
  return farfault_nvtx_keep(narrow(string, room));
}

nvtx_domain *nvtxDomainCreateA(const char *name) { return farfault_nvtx_domain(name); }

nvtx_domain *nvtxDomainCreateW(const wchar_t *name) {
  char room[TEXT_BYTES];
  return farfault_nvtx_domain(narrow(name, room));
}

/* ---- streams: the driver's and the runtime's are the same ---- */

void nvtxNameCuStreamA(void *stream, const char *name) { farfault_nvtx_name_stream(stream, name); }
void nvtxNameCudaStreamA(void *stream, const char *name) { farfault_nvtx_name_stream(stream, name); }

void nvtxNameCuStreamW(void *stream, const wchar_t *name) {
  char room[TEXT_BYTES];
  farfault_nvtx_name_stream(stream, narrow(name, room));
}
void nvtxNameCudaStreamW(void *stream, const wchar_t *name) { nvtxNameCuStreamW(stream, name); }

/* ---- by number ---- */

enum { NVTX_CORE = 1, NVTX_CUDA, NVTX_CUDART = 4, NVTX_CORE2 }; /* NvtxCallbackModule */

void (*ff_nvtx_function(unsigned module, unsigned number))(void) {
  static const struct {
    unsigned module, number;
    void (*function)(void);
  } calls[] = {
#define CALL(module, number, name) {module, number, (void (*)(void))name},
#define IGNORED(name)
#include "driver/injection/nvtx_calls.def"
#undef CALL
#undef IGNORED
  };
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
    if (calls[i].module == module && calls[i].number == number) return calls[i].function;
  return NULL;
}
