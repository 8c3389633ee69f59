/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a fat binary with machine code (sm_90, not real) and, if asked, PTX or Tile IR: make_fatbin FILE code|both
 * [PTX'S FILE], make_fatbin FILE tile BYTECODE'S FILE.
 * For programs that look like nvcc's to `farfault run`, without nvcc. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fatbin/fatbin.h"

static const char ptx[] = ".version 7.5\n.target sm_75\n.address_size 64\n"
                          ".visible .entry fill(.param .u64 p)\n{\n  .reg .b64 %rd<3>;\n  .reg .b32 %r<2>;\n"
                          "  .shared .align 4 .b8 tile[64];\n  ld.param.u64 %rd1, [p];\n  mov.u32 %r1, %tid.x;\n"
                          "  mad.wide.u32 %rd2, %r1, 4, %rd1;\n  st.global.u32 [%rd2], %r1;\n  ret;\n}\n";

int main(int argc, char **argv) {
  if (argc < 3 || argc > 4) return 64;
  ff_error error;
  char *text = NULL;
  size_t length = sizeof ptx - 1;
  if (argc == 4 && ff_file_read(argv[3], 0, &text, &length, &error)) {
    fprintf(stderr, "%s\n", error.message);
    return 1;
  }
  static const char code[64] = "\177ELF";
  fatbin_item items[] = {{.kind = FATBIN_KIND_ELF, .arch = 90, .name = "fill.cu", .bytes = code, .size = sizeof code},
                         {.kind = FATBIN_KIND_PTX,
                          .arch = 75,
                          .version_major = 7,
                          .version_minor = 5,
                          .name = "fill.cu",
                          .bytes = text ? text : ptx,
                          .size = length}};
  if (!strcmp(argv[2], "tile"))
    items[1] = (fatbin_item){.kind = FATBIN_KIND_TILE,
                             .arch = 90,
                             .version_major = 0x0d03,
                             .packing = FATBIN_ZSTD,
                             .bytes = text,
                             .size = length};
  ff_text out = {0};
  if (fatbin_encode(items, strcmp(argv[2], "code") ? 2 : 1, &out, &error) ||
      ff_file_write(argv[1], out.chars, out.length, &error)) {
    fprintf(stderr, "%s\n", error.message);
    return 1;
  }
  free(out.chars);
  free(text);
  return 0;
}
