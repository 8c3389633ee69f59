/* SPDX-License-Identifier: Apache-2.0 */
/* A file larger than the GPU's budget goes through a kernel into another file: two segments on files, one launch. The
 * launch says which bytes each block reads and writes, so it is run in windows of blocks: what the next window needs is
 * read and copied while this one runs.
 *
 *     stream_file [MEGABYTES [BUDGET_IN_MEGABYTES]]        16 MiB with 4 MiB of GPU memory */
#include <farfault/farfault.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(call)                                                      \
  do {                                                                   \
    if (call) fprintf(stderr, "%s: %s\n", #call, ff_message()), exit(1); \
  } while (0)

enum { THREADS = 256, BLOCK_BYTES = THREADS * 4 };

/* to[i] = from[i] * 2654435761 ^ i */
static const char code[] = ".version 7.0\n.target sm_52\n.address_size 64\n"
                           ".visible .entry scramble(.param .u64 from, .param .u64 to) {\n"
                           "  .reg .b32 %i<6>; .reg .b64 %d<6>;\n"
                           "  mov.u32 %i1, %ctaid.x; mov.u32 %i2, %ntid.x; mov.u32 %i3, %tid.x;\n"
                           "  mad.lo.u32 %i4, %i1, %i2, %i3;\n"
                           "  ld.param.u64 %d1, [from]; ld.param.u64 %d2, [to];\n"
                           "  mul.wide.u32 %d3, %i4, 4; add.u64 %d4, %d1, %d3; add.u64 %d5, %d2, %d3;\n"
                           "  ld.global.u32 %i5, [%d4];\n"
                           "  mul.lo.u32 %i5, %i5, 2654435761; xor.b32 %i5, %i5, %i4;\n"
                           "  st.global.u32 [%d5], %i5;\n"
                           "  ret;\n}\n";

static uint32_t word_at(uint32_t i) { return i * 747796405u + 1; }

static FILE *open_file(const char *path, const char *mode) {
  FILE *file = fopen(path, mode);
  if (!file) perror(path), exit(1);
  return file;
}

static void write_input(const char *path, uint32_t words) {
  FILE *file = open_file(path, "wb");
  for (uint32_t i = 0; i < words; i++) {
    uint32_t word = word_at(i);
    if (fwrite(&word, sizeof word, 1, file) != 1) perror(path), exit(1);
  }
  if (fclose(file)) perror(path), exit(1);
}

static uint32_t count_wrong(const char *path, uint32_t words) {
  FILE *file = open_file(path, "rb");
  uint32_t wrong = 0, word;
  for (uint32_t i = 0; i < words; i++)
    wrong += fread(&word, sizeof word, 1, file) != 1 || word != (word_at(i) * 2654435761u ^ i);
  wrong += fgetc(file) != EOF;
  fclose(file);
  return wrong;
}

int main(int argc, char **argv) {
  uint32_t megabytes = argc > 1 ? (uint32_t)atoi(argv[1]) : 16, words = megabytes << 18;
  ff_options options = {.size = sizeof options, .budget = (uint64_t)(argc > 2 ? atoi(argv[2]) : 4) << 20};
  ff_gpu *gpu;
  ff_segment *from, *to;
  ff_module *module;
  ff_kernel *scramble;
  ff_statistics moved;
  write_input("stream_file.in", words);

  CHECK(ff_open(&options, &gpu));
  CHECK(ff_segment_open(gpu, "input", "stream_file.in", FF_FILE_READ, 0, 0, &from));
  CHECK(ff_segment_open(gpu, "output", "stream_file.out", FF_FILE_WRITE | FF_FILE_CREATE, 0, 4ull * words, &to));
  CHECK(ff_module_load(gpu, "scramble", code, 0, &module));
  CHECK(ff_kernel_find(module, "scramble", &scramble));
  ff_argument arguments[] = {FF_ADDRESS(from), FF_ADDRESS(to)};
  ff_use uses[] = {
      {.segment = from, .access = FF_READ, .per_block = {BLOCK_BYTES}, .block_bytes = BLOCK_BYTES},
      {.segment = to, .access = FF_WRITE, .per_block = {BLOCK_BYTES}, .block_bytes = BLOCK_BYTES},
  };
  ff_launch_request launch = {.kernel = scramble,
                              .grid = {words / THREADS},
                              .block = {THREADS},
                              .arguments = arguments,
                              .argument_count = 2,
                              .uses = uses,
                              .use_count = 2};
  CHECK(ff_launch(gpu, &launch, NULL));
  CHECK(ff_wait_all(gpu));
  CHECK(ff_segment_flush(to));
  CHECK(ff_statistics_get(gpu, &moved));
  CHECK(ff_close(gpu));

  uint32_t wrong = count_wrong("stream_file.out", words);
  printf("stream_file: %u MiB in %llu windows with at most %llu MiB of GPU memory: %u words are wrong\n", megabytes,
         (unsigned long long)moved.windows, (unsigned long long)(moved.peak_resident_bytes >> 20), wrong);
  remove("stream_file.in");
  remove("stream_file.out");
  return wrong != 0 || moved.peak_resident_bytes > options.budget;
}
