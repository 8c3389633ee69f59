/* SPDX-License-Identifier: Apache-2.0 */
/* Executables: facts of small ELF files made here byte by byte, of this program itself, and of broken files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "fatbin/elf.h"

static const char ptx[] = ".version 8.7\n.target sm_75\n.address_size 64\n";
static char path[64];

/* ---- a maker of ELF files ---- */

typedef struct plan { /* what the file shall have */
  const char *needed[4];
  const char *rpath, *runpath, *soname, *interpreter;
  const char *imported; /* an undefined dynamic symbol */
  /* functions of 16 bytes each, one after the other, in a .text of 64: with a symbol table */
  const char *inside[4];
  const ff_text *fatbin, *relfatbin;
  uint16_t type, machine;
} plan;

typedef struct maker {
  ff_text out, names, strings; /* the file, .shstrtab, .dynstr */
  Elf64_Shdr sections[12];
  unsigned section_count;
} maker;

static uint32_t add_string(ff_text *table, const char *text) {
  uint32_t at = (uint32_t)table->length;
  ff_text_add_bytes(table, text, strlen(text) + 1);
  return at;
}

static uint64_t add_section(maker *m, uint32_t name, uint32_t type, const void *bytes, size_t size, uint32_t link,
                            uint64_t entry) {
  while (m->out.length % 8) ff_text_add_bytes(&m->out, "", 1);
  uint64_t at = m->out.length;
  m->sections[m->section_count++] = (Elf64_Shdr){.sh_name = name,
                                                 .sh_type = type,
                                                 .sh_addr = at,
                                                 .sh_offset = at,
                                                 .sh_size = size,
                                                 .sh_link = link,
                                                 .sh_entsize = entry,
                                                 .sh_addralign = 8};
  ff_text_add_bytes(&m->out, bytes, size);
  return at;
}

/* .text, .strtab, .symtab: in addition to the functions an object of data, a name outside and a function in no
 * section. */
static void add_inside(maker *m, const plan *p) {
  ff_text names = {0};
  Elf64_Sym symbols[8] = {{0}};
  unsigned count = 1, code = m->section_count;
  uint64_t text = add_section(m, add_string(&m->names, ".text"), SHT_PROGBITS, (char[64]){0}, 64, 0, 0);
  m->sections[code].sh_flags = SHF_ALLOC | SHF_EXECINSTR;
  add_string(&names, "");
  for (unsigned i = 0; i < 4 && p->inside[i]; i++)
    symbols[count++] = (Elf64_Sym){.st_name = add_string(&names, p->inside[i]),
                                   .st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC),
                                   .st_shndx = (uint16_t)code,
                                   .st_value = text + 16 * i,
                                   .st_size = 3};
  uint32_t first = symbols[1].st_name;
  symbols[count++] = (Elf64_Sym){
      .st_name = first, .st_info = ELF64_ST_INFO(STB_LOCAL, STT_OBJECT), .st_shndx = 1, .st_value = text + 8};
  symbols[count++] =
      (Elf64_Sym){.st_name = first, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), .st_shndx = SHN_UNDEF};
  symbols[count++] = (Elf64_Sym){
      .st_name = first, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), .st_shndx = (uint16_t)code, .st_value = 1};
  unsigned strings = m->section_count;
  add_section(m, add_string(&m->names, ".strtab"), SHT_STRTAB, names.chars, names.length, 0, 0);
  add_section(m, add_string(&m->names, ".symtab"), SHT_SYMTAB, symbols, count * sizeof *symbols, strings,
              sizeof *symbols);
  free(names.chars);
}

static ff_text make_elf(const plan *p) {
  maker m = {0};
  Elf64_Ehdr header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                       .e_type = p->type ? p->type : ET_DYN,
                       .e_machine = p->machine ? p->machine : EM_X86_64,
                       .e_version = 1,
                       .e_phoff = sizeof(Elf64_Ehdr),
                       .e_ehsize = sizeof(Elf64_Ehdr),
                       .e_phentsize = sizeof(Elf64_Phdr),
                       .e_phnum = 3,
                       .e_shentsize = sizeof(Elf64_Shdr)};
  Elf64_Phdr segments[3] = {
      {.p_type = PT_LOAD}, {.p_type = PT_DYNAMIC}, {.p_type = p->interpreter ? PT_INTERP : PT_NULL}};
  ff_text_add_bytes(&m.out, &header, sizeof header);
  ff_text_add_bytes(&m.out, segments, sizeof segments);
  add_string(&m.names, "");
  m.section_count = 1;
  add_string(&m.strings, "");
  Elf64_Dyn dynamic[12] = {{0}};
  unsigned count = 0;
  for (int i = 0; i < 4 && p->needed[i]; i++)
    dynamic[count++] = (Elf64_Dyn){DT_NEEDED, {add_string(&m.strings, p->needed[i])}};
  if (p->rpath) dynamic[count++] = (Elf64_Dyn){DT_RPATH, {add_string(&m.strings, p->rpath)}};
  if (p->runpath) dynamic[count++] = (Elf64_Dyn){DT_RUNPATH, {add_string(&m.strings, p->runpath)}};
  if (p->soname) dynamic[count++] = (Elf64_Dyn){DT_SONAME, {add_string(&m.strings, p->soname)}};
  Elf64_Sym symbols[2] = {{0}, {.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC)}};
  if (p->imported) symbols[1].st_name = add_string(&m.strings, p->imported);
  uint64_t strings =
      add_section(&m, add_string(&m.names, ".dynstr"), SHT_STRTAB, m.strings.chars, m.strings.length, 0, 0);
  dynamic[count++] = (Elf64_Dyn){DT_STRTAB, {strings}};
  dynamic[count++] = (Elf64_Dyn){DT_STRSZ, {m.strings.length}};
  add_section(&m, add_string(&m.names, ".dynsym"), SHT_DYNSYM, symbols, sizeof symbols, 1, sizeof *symbols);
  segments[1].p_offset = add_section(&m, add_string(&m.names, ".dynamic"), SHT_DYNAMIC, dynamic,
                                     (count + 1) * sizeof *dynamic, 1, sizeof *dynamic);
  segments[1].p_filesz = (count + 1) * sizeof *dynamic;
  if (p->interpreter)
    segments[2].p_offset = add_section(&m, add_string(&m.names, ".interp"), SHT_PROGBITS, p->interpreter,
                                       strlen(p->interpreter) + 1, 0, 0);
  if (p->interpreter) segments[2].p_filesz = strlen(p->interpreter) + 1;
  if (p->fatbin)
    add_section(&m, add_string(&m.names, ".nv_fatbin"), SHT_PROGBITS, p->fatbin->chars, p->fatbin->length, 0, 0);
  if (p->relfatbin)
    add_section(&m, add_string(&m.names, "__nv_relfatbin"), SHT_PROGBITS, p->relfatbin->chars, p->relfatbin->length, 0,
                0);
  if (p->inside[0]) add_inside(&m, p);
  uint32_t own_name = add_string(&m.names, ".shstrtab");
  add_section(&m, own_name, SHT_STRTAB, m.names.chars, m.names.length, 0, 0);
  segments[0].p_filesz = m.out.length;
  header.e_shoff = m.out.length;
  header.e_shnum = (uint16_t)m.section_count;
  header.e_shstrndx = (uint16_t)(m.section_count - 1);
  ff_text_add_bytes(&m.out, m.sections, m.section_count * sizeof *m.sections);
  memcpy(m.out.chars, &header, sizeof header);
  memcpy(m.out.chars + sizeof header, segments, sizeof segments);
  free(m.names.chars);
  free(m.strings.chars);
  return m.out;
}

static ff_text make_fatbin(bool with_ptx, bool with_code, uint32_t arch) {
  fatbin_item items[2];
  uint32_t count = 0;
  if (with_code)
    items[count++] = (fatbin_item){.kind = FATBIN_KIND_ELF, .arch = arch, .bytes = "\177ELF....", .size = 8};
  if (with_ptx)
    items[count++] = (fatbin_item){.kind = FATBIN_KIND_PTX,
                                   .arch = arch,
                                   .packing = FATBIN_ZSTD,
                                   .name = "saxpy.cu",
                                   .bytes = ptx,
                                   .size = sizeof ptx - 1};
  ff_text out = {0};
  assert_int_equal(fatbin_encode(items, count, &out, NULL), FF_OK);
  return out;
}

static void write_file(const void *bytes, size_t size) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, size, file), size);
  assert_int_equal(fclose(file), 0);
}

static fatbin_report check(const plan *p) {
  ff_text file = make_elf(p);
  write_file(file.chars, file.length);
  free(file.chars);
  fatbin_report report;
  assert_int_equal(fatbin_check_executable(path, &report, NULL), FF_OK);
  assert_int_equal(report.kind, FATBIN_FILE_ELF);
  return report;
}

/* ---- facts ---- */

static void test_shared_runtime(void **state) {
  ff_text code = make_fatbin(true, true, 80), more = make_fatbin(true, false, 90);
  ff_text_add_bytes(&code, more.chars, more.length);
  fatbin_report r = check(&(plan){.needed = {"libcudart.so.12", "libcuda.so.1", "libc.so.6"},
                                  .rpath = "/a",
                                  .runpath = "$ORIGIN/../lib",
                                  .soname = "libx.so",
                                  .interpreter = "/lib64/ld.so",
                                  .imported = "__cudaRegisterFatBinary",
                                  .fatbin = &code});
  assert_int_equal(r.needed_count, 3);
  assert_string_equal(r.needed[0], "libcudart.so.12");
  assert_string_equal(r.needed[2], "libc.so.6");
  assert_string_equal(r.cudart, "libcudart.so.12");
  assert_string_equal(r.rpath, "/a");
  assert_string_equal(r.runpath, "$ORIGIN/../lib");
  assert_string_equal(r.soname, "libx.so");
  assert_string_equal(r.interpreter, "/lib64/ld.so");
  assert_true(r.needs_libcuda);
  assert_int_equal(r.runtime, FATBIN_RUNTIME_SHARED);
  assert_int_equal(r.images, 2);
  assert_int_equal(r.ptx, 2);
  assert_int_equal(r.ptx_lowest, 80);
  assert_int_equal(r.ptx_highest, 90);
  assert_int_equal(r.machine_code, 1);
  assert_int_equal(r.code_lowest, 80);
  assert_int_equal(r.code_highest, 80);
  assert_false(r.relocatable || r.damaged || r.no_sections || r.executable);
  fatbin_report_free(&r);
  free(code.chars);
  free(more.chars);
}

static void test_static_runtime(void **state) {
  ff_text code = make_fatbin(true, true, 75);
  fatbin_report r = check(&(plan){.needed = {"libc.so.6"}, .imported = "dlopen", .fatbin = &code});
  assert_int_equal(r.runtime, FATBIN_RUNTIME_STATIC);
  assert_null(r.cudart);
  assert_false(r.needs_libcuda);
  fatbin_report_free(&r);
  /* the runtime comes by way of another library: it is imported, so it can be replaced */
  r = check(&(plan){.needed = {"libmine.so"}, .imported = "__cudaRegisterFatBinary", .fatbin = &code});
  assert_int_equal(r.runtime, FATBIN_RUNTIME_SHARED);
  assert_null(r.cudart);
  fatbin_report_free(&r);
  /* an object file imports nothing yet */
  r = check(&(plan){.type = ET_REL, .fatbin = &code});
  assert_int_equal(r.runtime, FATBIN_RUNTIME_NONE);
  assert_int_equal(r.ptx, 1);
  fatbin_report_free(&r);
  free(code.chars);
}

static void test_runtime_inside(void **state) {
  ff_text code = make_fatbin(true, true, 75);
  fatbin_report r = check(&(plan){.needed = {"libc.so.6"}, .inside = {"__cudaRegisterFatBinary"}, .fatbin = &code});
  assert_int_equal(r.runtime, FATBIN_RUNTIME_STATIC);
  assert_false(r.stripped);
  fatbin_report_free(&r);
  /* its symbols say that it is another program with CUDA code */
  r = check(&(plan){.inside = {"__cudaRegisterFatBinary2"}, .fatbin = &code});
  assert_int_equal(r.runtime, FATBIN_RUNTIME_NONE);
  fatbin_report_free(&r);
  r = check(&(plan){.needed = {"libcuda.so.1"}, .fatbin = &code}); /* stripped, but it may do without a runtime */
  assert_int_equal(r.runtime, FATBIN_RUNTIME_NONE);
  assert_true(r.stripped);
  fatbin_report_free(&r);
  free(code.chars);
}

/* How a file is linked, without a look at its code. */
static void test_links(void **state) {
  ff_text code = make_fatbin(true, true, 75);
  fatbin_report r = check(&(plan){.needed = {"libc.so.6", "libcudart.so.13"}, .fatbin = &code}), links;
  assert_int_equal(r.images, 1);
  assert_int_equal(fatbin_check_links(path, &links, NULL), FF_OK);
  assert_int_equal(links.needed_count, 2);
  assert_string_equal(links.needed[1], "libcudart.so.13");
  assert_string_equal(links.cudart, r.cudart);
  assert_int_equal(links.images, 0);
  fatbin_report_free(&links);
  fatbin_report_free(&r);
  free(code.chars);
  write_file("hello", 5);
  assert_int_equal(fatbin_check_links(path, &links, NULL), FF_OK);
  assert_int_equal(links.kind, FATBIN_FILE_OTHER);
  assert_int_equal(fatbin_check_links("/nonexistent/file", &links, NULL), FF_NOT_FOUND);
}

static void test_no_cuda(void **state) {
  fatbin_report r = check(&(plan){.needed = {"libc.so.6"}, .interpreter = "/lib64/ld.so"});
  assert_int_equal(r.runtime, FATBIN_RUNTIME_NONE);
  assert_int_equal(r.images, 0);
  fatbin_report_free(&r);
  fatbin_ptx_texts texts;
  ff_error error;
  assert_int_equal(fatbin_extract_ptx(path, &texts, &error), FF_NOT_FOUND);
  assert_non_null(strstr(error.message, "no CUDA code"));
}

static void test_no_ptx(void **state) {
  ff_text code = make_fatbin(false, true, 90);
  fatbin_report r = check(&(plan){.needed = {"libcudart.so.13"}, .fatbin = &code});
  assert_int_equal(r.ptx, 0);
  assert_int_equal(r.machine_code, 1);
  assert_int_equal(r.code_highest, 90);
  assert_true(r.kernels); /* not an ELF file that could be looked into */
  fatbin_report_free(&r);
  fatbin_ptx_texts texts;
  ff_error error;
  assert_int_equal(fatbin_extract_ptx(path, &texts, &error), FF_NOT_FOUND);
  assert_non_null(strstr(error.message, "machine code only"));
  free(code.chars);
}

/* Machine code as nvcc's linker adds it to every program: an ELF file, here with a section for `function`. */
static fatbin_report check_machine_code(const char *function) {
  maker m = {0};
  Elf64_Ehdr header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                       .e_shentsize = sizeof(Elf64_Shdr)};
  ff_text_add_bytes(&m.out, &header, sizeof header);
  add_string(&m.names, "");
  add_section(&m, add_string(&m.names, function), SHT_PROGBITS, "code", 4, 0, 0);
  add_section(&m, 0, SHT_STRTAB, m.names.chars, m.names.length, 0, 0);
  header.e_shoff = m.out.length;
  header.e_shnum = 2;
  header.e_shstrndx = 1;
  ff_text_add_bytes(&m.out, m.sections, 2 * sizeof *m.sections);
  memcpy(m.out.chars, &header, sizeof header);
  fatbin_item item = {
      .kind = FATBIN_KIND_ELF, .arch = 75, .packing = FATBIN_ZSTD, .bytes = m.out.chars, .size = m.out.length};
  ff_text code = {0};
  assert_int_equal(fatbin_encode(&item, 1, &code, NULL), FF_OK);
  fatbin_report r = check(&(plan){.needed = {"libcudart.so.13"}, .fatbin = &code});
  free(code.chars);
  free(m.out.chars);
  free(m.names.chars);
  return r;
}

static void test_no_functions(void **state) {
  fatbin_report r = check_machine_code(".text._Z3addPf");
  assert_true(r.kernels);
  fatbin_report_free(&r);
  r = check_machine_code(".nv.info");
  assert_int_equal(r.machine_code, 1);
  assert_false(r.kernels);
  fatbin_report_free(&r);
}

static void test_relocatable(void **state) {
  ff_text linked = make_fatbin(false, true, 75), one = make_fatbin(true, true, 75), two = make_fatbin(true, true, 75);
  ff_text_add_bytes(&one, two.chars, two.length);
  plan p = {.needed = {"libcudart.so.13"}, .fatbin = &linked, .relfatbin = &one};
  fatbin_report r = check(&p);
  assert_true(r.relocatable);
  assert_int_equal(r.images, 3);
  assert_int_equal(r.ptx, 2);
  fatbin_report_free(&r);
  fatbin_ptx_texts texts;
  assert_int_equal(fatbin_extract_ptx(path, &texts, NULL), FF_OK);
  assert_int_equal(texts.count, 2);
  for (uint32_t i = 0; i < 2; i++) {
    assert_string_equal(texts.items[i].text, ptx);
    assert_int_equal(texts.items[i].length, sizeof ptx - 1);
    assert_string_equal(texts.items[i].name, "saxpy.cu");
    assert_int_equal(texts.items[i].arch, 75);
    assert_int_equal(texts.items[i].image, i + 1);
  }
  fatbin_ptx_texts_free(&texts);
  free(linked.chars);
  free(one.chars);
  free(two.chars);
}

static void test_foreign(void **state) {
  fatbin_report r = check(&(plan){.machine = EM_RISCV});
  assert_true(r.foreign);
  fatbin_report_free(&r);
  ff_text file = make_elf(&(plan){.needed = {"libc.so.6"}});
  file.chars[EI_CLASS] = ELFCLASS32;
  write_file(file.chars, file.length);
  assert_int_equal(fatbin_check_executable(path, &r, NULL), FF_OK);
  assert_int_equal(r.kind, FATBIN_FILE_ELF_OTHER);
  fatbin_report_free(&r);
  file.chars[EI_CLASS] = ELFCLASS64;
  memset(file.chars + offsetof(Elf64_Ehdr, e_shoff), 0, 8); /* the section table stripped: libraries are still seen */
  write_file(file.chars, file.length);
  assert_int_equal(fatbin_check_executable(path, &r, NULL), FF_OK);
  assert_true(r.no_sections);
  assert_int_equal(r.needed_count, 1);
  fatbin_report_free(&r);
  free(file.chars);
}

static void test_other_files(void **state) {
  fatbin_report r;
  ff_error error;
  fatbin_ptx_texts texts;
  write_file("#! /usr/bin/env bash -x \nexit 0\n", 32);
  chmod(path, 0755);
  assert_int_equal(fatbin_check_executable(path, &r, NULL), FF_OK);
  assert_int_equal(r.kind, FATBIN_FILE_SCRIPT);
  assert_true(r.executable);
  assert_string_equal(r.interpreter, "/usr/bin/env bash -x");
  fatbin_report_free(&r);
  chmod(path, 0644);
  write_file("#!", 2);
  assert_int_equal(fatbin_check_executable(path, &r, NULL), FF_OK);
  assert_string_equal(r.interpreter, "");
  fatbin_report_free(&r);
  write_file("hello", 5);
  assert_int_equal(fatbin_check_executable(path, &r, NULL), FF_OK);
  assert_int_equal(r.kind, FATBIN_FILE_OTHER);
  assert_int_equal(fatbin_extract_ptx(path, &texts, &error), FF_NOT_FOUND);
  write_file("", 0);
  assert_int_equal(fatbin_check_executable(path, &r, NULL), FF_OK);
  assert_int_equal(r.kind, FATBIN_FILE_OTHER);
  ff_text code = make_fatbin(true, true, 75);
  write_file(code.chars, code.length);
  assert_int_equal(fatbin_check_executable(path, &r, NULL), FF_OK);
  assert_int_equal(r.kind, FATBIN_FILE_FATBIN);
  assert_int_equal(r.ptx, 1);
  fatbin_report_free(&r);
  assert_int_equal(fatbin_extract_ptx(path, &texts, &error), FF_OK);
  assert_string_equal(texts.items[0].text, ptx);
  fatbin_ptx_texts_free(&texts);
  free(code.chars);
  assert_int_equal(fatbin_check_executable("/nonexistent/file", &r, &error), FF_NOT_FOUND);
  assert_non_null(strstr(error.message, "/nonexistent/file"));
  assert_int_equal(fatbin_check_executable("/", &r, &error), FF_IO);
  assert_int_equal(fatbin_extract_ptx("/dev/null", &texts, &error), FF_IO);
}

static void test_itself(void **state) {
  fatbin_report r;
  assert_int_equal(fatbin_check_executable("/proc/self/exe", &r, NULL), FF_OK);
  assert_int_equal(r.kind, FATBIN_FILE_ELF);
  assert_true(r.executable);
  assert_false(r.foreign);
  assert_non_null(r.interpreter);
  assert_int_equal(r.runtime, FATBIN_RUNTIME_NONE);
  bool found = false;
  for (uint32_t i = 0; i < r.needed_count; i++) found |= strncmp(r.needed[i], "libcmocka", 9) == 0;
  assert_true(found);
  fatbin_report_free(&r);
}

/* ---- broken files ---- */

static void use(void) {
  fatbin_report r;
  fatbin_ptx_texts texts;
  ff_error error = {.message = ""};
  assert_int_equal(fatbin_check_executable(path, &r, NULL), FF_OK);
  fatbin_report_free(&r);
  if (fatbin_extract_ptx(path, &texts, &error) != FF_OK) assert_true(error.message[0] != '\0');
  fatbin_ptx_texts_free(&texts);
  assert_int_equal(fatbin_check_links(path, &r, NULL), FF_OK);
  fatbin_report_free(&r);
}

static ff_text whole_file(void) {
  ff_text code = make_fatbin(true, true, 75);
  ff_text file = make_elf(&(plan){.needed = {"libcudart.so.13"},
                                  .runpath = "/x",
                                  .interpreter = "/lib64/ld.so",
                                  .imported = "__cudaRegisterFatBinary",
                                  .inside = {"cudaMalloc", "cudaFree"},
                                  .fatbin = &code,
                                  .relfatbin = &code});
  free(code.chars);
  return file;
}

static void test_truncated(void **state) {
  ff_text file = whole_file();
  for (size_t size = 0; size < file.length; size++) {
    write_file(file.chars, size);
    use();
  }
  free(file.chars);
}

static void test_flipped(void **state) {
  ff_text file = whole_file();
  for (size_t at = 0; at < file.length; at++) {
    char before = file.chars[at];
    file.chars[at] = (char)(before ^ (at % 3 == 0 ? 0xff : at % 3 == 1 ? 0x80 : 1));
    write_file(file.chars, file.length);
    use();
    file.chars[at] = before;
  }
  free(file.chars);
}

/* A fat binary that is broken: a fact of the report, an error of the extraction. */
static void test_damaged_fatbin(void **state) {
  ff_text code = make_fatbin(true, true, 75);
  code.chars[FATBIN_HEADER_BYTES + 4] = 1; /* header size of the first entry */
  plan p = {.needed = {"libcudart.so.13"}, .fatbin = &code};
  fatbin_report r = check(&p);
  assert_true(r.damaged);
  assert_non_null(strstr(r.damage.message, "header size"));
  fatbin_report_free(&r);
  fatbin_ptx_texts texts;
  ff_error error;
  assert_int_equal(fatbin_extract_ptx(path, &texts, &error), FF_PARSE);
  assert_non_null(strstr(error.message, path));
  free(code.chars);
}

int main(void) {
  snprintf(path, sizeof path, "/tmp/farfault_test_elf_%d", (int)getpid());
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_shared_runtime), cmocka_unit_test(test_static_runtime), cmocka_unit_test(test_no_cuda),
      cmocka_unit_test(test_runtime_inside), cmocka_unit_test(test_links),          cmocka_unit_test(test_no_functions),
      cmocka_unit_test(test_no_ptx),         cmocka_unit_test(test_relocatable),    cmocka_unit_test(test_foreign),
      cmocka_unit_test(test_other_files),    cmocka_unit_test(test_itself),         cmocka_unit_test(test_truncated),
      cmocka_unit_test(test_flipped),        cmocka_unit_test(test_damaged_fatbin),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  unlink(path);
  return failed;
}
