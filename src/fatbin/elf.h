/* SPDX-License-Identifier: Apache-2.0 */
/* Executables, shared objects and object files with CUDA code inside, looked at without running them.
 *
 * The file is not trusted. Every offset is checked against the file's size before it is read,
 * a part is read only as far as the file goes, and a field that makes no sense leaves the fact it would give unset. */
#ifndef FF_FATBIN_ELF_H
#define FF_FATBIN_ELF_H

#include "fatbin/fatbin.h"

typedef enum fatbin_file_kind {
  FATBIN_FILE_OTHER,     /* none of the below */
  FATBIN_FILE_ELF,       /* 64-bit little-endian ELF: executable, shared object or object file */
  FATBIN_FILE_ELF_OTHER, /* ELF of another class or byte order */
  FATBIN_FILE_SCRIPT,    /* starts with #! */
  FATBIN_FILE_FATBIN,    /* a fat binary by itself (nvcc -fatbin) */
} fatbin_file_kind;

typedef enum fatbin_runtime {                      /* how the CUDA runtime gets into the program */
                              FATBIN_RUNTIME_NONE, /* no CUDA code registers itself here, and no libcudart is needed */
                              FATBIN_RUNTIME_SHARED, /* imports it: libcudart can be replaced */
                              /* contains it (nvcc's default), or, if stripped, seems to: has CUDA code and needs
                               * neither library */
                              FATBIN_RUNTIME_STATIC,
} fatbin_runtime;

typedef struct fatbin_report {
  fatbin_file_kind kind;
  bool executable;  /* the user may execute it */
  bool foreign;     /* ELF of another processor than this program's */
  bool no_sections; /* ELF without a section table: whether it has CUDA code cannot be seen */
  bool stripped;    /* ELF without a symbol table: its functions cannot be found */
  char **needed;    /* NEEDED libraries, in order */
  uint32_t needed_count;
  /* ELF: the dynamic loader; script: the words after #!. NULL: none, as in a static executable */
  char *interpreter;
  char *rpath, *runpath, *soname; /* NULL: none */
  fatbin_runtime runtime;
  char *cudart;                       /* the libcudart it needs: "libcudart.so.13"; NULL: none of its own */
  bool needs_libcuda;                 /* libcuda.so.1 is among `needed` */
  uint32_t images;                    /* fat binaries */
  uint32_t ptx, machine_code, tile;   /* entries in them; tile: of Tile IR */
  uint32_t ptx_lowest, ptx_highest;   /* architectures, 75: compute_75; 0: none */
  uint32_t code_lowest, code_highest; /* the same of machine code, 75: sm_75 */
  /* before the first PTX or Tile IR there is machine code with functions in it; nvcc's linker adds some without any */
  bool kernels;
  bool relocatable; /* has relocatable device code (nvcc -rdc=true) */
  bool damaged;     /* a fat binary in it is broken; `damage` says how, the counts leave it out */
  ff_error damage;
} fatbin_report;

/* Looks at the file. FF_IO, FF_NOT_FOUND: it cannot be read. A file that is no program is no error: see `kind`. */
ff_status fatbin_check_executable(const char *path, fatbin_report *report, ff_error *error);
/* Only how it is linked: kind, needed, interpreter, rpath, runpath, soname, cudart, needs_libcuda. */
ff_status fatbin_check_links(const char *path, fatbin_report *report, ff_error *error);
void fatbin_report_free(fatbin_report *report);

typedef struct fatbin_ptx_text {
  char *text; /* NUL-terminated */
  size_t length;
  char *name; /* of the source file; "" if the fat binary does not say */
  uint32_t arch;
  char suffix;    /* 'a', 'f' or 0 */
  uint32_t image; /* number of its fat binary in the file, from 0 */
} fatbin_ptx_text;

typedef struct fatbin_ptx_texts {
  fatbin_ptx_text *items;
  uint32_t count;
} fatbin_ptx_texts;

/* Every PTX text in the file's fat binaries, in order. FF_NOT_FOUND: it has none (the message says what it has
 * instead); FF_PARSE: one is broken. The caller frees the list with fatbin_ptx_texts_free. */
ff_status fatbin_extract_ptx(const char *path, fatbin_ptx_texts *texts, ff_error *error);
void fatbin_ptx_texts_free(fatbin_ptx_texts *texts);

/* The source file ("FillKernel.cu") that the local variable at `address` of the loaded executable or shared object is
 * from; `base`: where it is loaded. The caller frees it. NULL: its symbol table does not say. */
char *elf_source_of(const char *path, uint64_t address, uint64_t base);

#endif
