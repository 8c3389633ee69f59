/* SPDX-License-Identifier: Apache-2.0 */
/* Fat binaries: the containers in which nvcc and clang put PTX text and machine code into a program.
 *
 *   wrapper (24 bytes)  what a program hands to __cudaRegisterFatBinary; points to one fat binary, and after a device
 *                       link (version 2) to a null-ended array of more of them, one per translation unit
 *   fat binary          header (16 bytes), then entries
 *   entry               header (64 bytes or more: kind, architecture, flags, name, options), then its payload:
 *                       raw, an LZ4 block or a zstd frame
 *
 * All numbers are little-endian. The reader trusts nothing: every offset and length is checked against the bytes it
 * was given, texts are bounded before they are allocated, and nothing is read through a misaligned pointer. An entry
 * borrows from the fat binary's bytes, which must outlive it. */
#ifndef FF_FATBIN_FATBIN_H
#define FF_FATBIN_FATBIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/text.h"

#define FATBIN_WRAPPER_MAGIC 0x466243b1u
#define FATBIN_MAGIC 0xba55ed50u
#define FATBIN_WRAPPER_BYTES 24u
#define FATBIN_HEADER_BYTES 16u
#define FATBIN_ENTRY_BYTES 64u
/* a fat binary in memory, bytes: its own size field is all that bounds it */
#define FATBIN_MAX_IMAGE (UINT64_C(1) << 32)
#define FATBIN_MAX_PAYLOAD (UINT64_C(1) << 29) /* a payload after decompression, bytes */
#define FATBIN_MAX_ENTRIES 65536u              /* in one fat binary */
#define FATBIN_MAX_LINKED 65536u               /* fat binaries behind one wrapper */

/* Others exist (link-time intermediate code) and are kept. TILE: Tile IR's bytecode, of nvcc 13 --enable-tile. */
enum { FATBIN_KIND_PTX = 1, FATBIN_KIND_ELF = 2, FATBIN_KIND_TILE = 128 };

enum { /* flags of an entry, as stored */
       FATBIN_FLAG_64BIT = 0x1,
       FATBIN_FLAG_DEBUG = 0x2,
       FATBIN_FLAG_ALWAYS = 0x10,
       FATBIN_FLAG_LZ4 = 0x2000,
       FATBIN_FLAG_ZSTD = 0x8000,
       FATBIN_FLAG_ARCHITECTURE = 0x100000, /* "a": for exactly this architecture */
       FATBIN_FLAG_FAMILY = 0x200000,       /* "f": for this architecture and later ones of its family */
};

typedef enum fatbin_packing { FATBIN_RAW, FATBIN_LZ4, FATBIN_ZSTD } fatbin_packing;

typedef struct fatbin_entry {
  uint32_t kind;
  uint32_t arch;                         /* 75: compute_75 or sm_75 */
  char suffix;                           /* 'a', 'f' or 0 */
  uint32_t version_major, version_minor; /* PTX: of the PTX ISA; Tile IR: major 0xMMmm is version mm.MM */
  uint64_t flags;                        /* as stored */
  fatbin_packing packing;
  const unsigned char *payload; /* borrowed; as stored */
  uint64_t payload_bytes;       /* as stored, without padding if packed */
  uint64_t unpacked_bytes;      /* == payload_bytes if raw */
  const char *name, *options;   /* borrowed, not NUL-terminated; source file, compiler options */
  uint32_t name_length, options_length;
  uint64_t offset; /* of the entry in the fat binary, for messages */
} fatbin_entry;

typedef struct fatbin {
  const unsigned char *data; /* borrowed */
  uint64_t bytes;            /* header and entries; what follows is not part of it */
  fatbin_entry *entries;     /* owned: fatbin_close */
  uint32_t entry_count;
} fatbin;

/* Reads the fat binary at `data`, of which at most `limit` bytes may be touched. FF_PARSE: it is broken (the message
 * gives the offset). Unknown kinds are no error. */
ff_status fatbin_open(const void *data, uint64_t limit, fatbin *out, ff_error *error);
void fatbin_close(fatbin *image);

/* What was registered: all fat binaries behind a wrapper in this process's memory. */
typedef struct fatbin_set {
  fatbin *images; /* owned: fatbin_set_close */
  uint32_t count;
  bool relocatable; /* version 2: [0] is the device linker's output, the others one module each,
                                           * whose PTX must be linked together */
} fatbin_set;
/* `wrapper`: a wrapper or, as cuModuleLoadData allows, a fat binary itself. Sizes are the headers' own. */
ff_status fatbin_open_registered(const void *wrapper, fatbin_set *set, ff_error *error);
void fatbin_set_close(fatbin_set *set);

/* The payload as it was before packing, NUL-terminated one past *size; the caller frees it. FF_PARSE: broken,
 * FF_LIMIT: larger than FATBIN_MAX_PAYLOAD. */
ff_status fatbin_unpack(const fatbin_entry *entry, char **bytes, size_t *size, ff_error *error);
/* The same for PTX, without the padding that may follow the text: *length == strlen(*text). */
ff_status fatbin_ptx(const fatbin_entry *entry, char **text, size_t *length, ff_error *error);

/* Does a GPU of compute capability `capability` (75: 7.5) run PTX for this target (PTX ISA, ".target")? A plain one
 * runs on that GPU and on later ones, "f" on those of the same major number, "a" on that one alone. 101 is what CUDA 13
 * calls 110. */
bool fatbin_target_runs(uint32_t arch, char suffix, uint32_t capability);

/* The PTX entry for a GPU of compute capability `capability` (75: 7.5): the highest that such a GPU runs (a plain one
 * goes before "a" and "f" at the same architecture). If there is none, the lowest there is, and *note says so (one
 * sentence without a full stop; else it is emptied; may be NULL). "a" and "f" are such only where the fat binary has
 * machine code for the GPU, so that a driver loads it, and the PTX can stand for that code. NULL: there is none. */
typedef char fatbin_note[160];
const fatbin_entry *fatbin_best_ptx(const fatbin *image, uint32_t capability, fatbin_note *note);
/* The Tile IR entry, chosen by the same rule; it is read with fatbin_unpack. NULL: there is none. */
const fatbin_entry *fatbin_best_tile(const fatbin *image, uint32_t capability);

/* ---- the other direction ---- */

typedef struct fatbin_item {
  uint32_t kind, arch;
  char suffix;
  uint32_t version_major, version_minor;
  fatbin_packing packing;
  bool debug;
  const char *name, *options; /* NULL: none */
  const void *bytes;
  size_t size;
} fatbin_item;
/* Appends a whole fat binary with these items to *out, as nvcc's fatbinary would write it. */
ff_status fatbin_encode(const fatbin_item *items, uint32_t count, ff_text *out, ff_error *error);

#endif
