/* SPDX-License-Identifier: Apache-2.0 */
/* Two tenants on one GPU, each with its SMs and its share of the memory budget, at the same time: what each kernel does
 * is right, its blocks are on its own SMs. `partition green` and `partition rewrite` choose the way. */
#include <farfault/farfault.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(call)                                                      \
  do {                                                                   \
    if (call) fprintf(stderr, "%s: %s\n", #call, ff_message()), exit(1); \
  } while (0)

enum { BLOCKS = 448, THREADS = 256, ROUNDS = 2000 };

/* work: each thread adds 1 to its word `rounds` times; where[block] becomes the block's SM */
static const char code[] =
    ".version 7.0\n.target sm_52\n.address_size 64\n"
    ".visible .entry work(.param .u64 words, .param .u64 where, .param .u32 rounds) {\n"
    ".reg .pred %p; .reg .b32 %i<8>; .reg .b64 %d<8>;\n"
    "mov.u32 %i1, %ctaid.x; mov.u32 %i2, %ntid.x; mov.u32 %i3, %tid.x; mad.lo.u32 %i4, %i1, %i2, %i3;\n"
    "ld.param.u64 %d1, [words]; ld.param.u64 %d2, [where]; ld.param.u32 %i5, [rounds];\n"
    "mul.wide.u32 %d3, %i4, 4; add.u64 %d4, %d1, %d3; mul.wide.u32 %d5, %i1, 4; add.u64 %d6, %d2, %d5;\n"
    "mov.u32 %i6, %smid; st.global.u32 [%d6], %i6; mov.u32 %i7, 0;\n"
    "again: add.u32 %i7, %i7, 1; setp.lt.u32 %p, %i7, %i5; @%p bra again; st.global.u32 [%d4], %i7; ret; }\n";

typedef struct tenant {
  ff_partition *partition;
  ff_segment *words, *where;
  ff_ticket ticket;
} tenant;

static ff_gpu *gpu;
static ff_kernel *work;

static void make(tenant *t, const char *name, const char *share, const char *way) {
  ff_partition_options options = {.size = sizeof options, .name = name, .share = share, .way = way};
  ff_partition_info info;
  CHECK(ff_partition_create(gpu, &options, &t->partition));
  CHECK(ff_partition_segment_create(t->partition, NULL, BLOCKS * THREADS * 4, &t->words));
  CHECK(ff_partition_segment_create(t->partition, NULL, BLOCKS * 4, &t->where));
  CHECK(ff_partition_describe(t->partition, &info));
  printf("%s: %s, SMs %u to %u of %u, %llu MiB\n", info.name, info.way, info.sm_first,
         info.sm_first + info.sm_count - 1, info.gpu_sms, (unsigned long long)(info.budget >> 20));
}

static void run(tenant *t) { /* returns at once */
  uint32_t rounds = ROUNDS;
  ff_argument arguments[] = {FF_ADDRESS(t->words), FF_ADDRESS(t->where), FF_VALUE(rounds)};
  ff_use uses[] = {{.segment = t->words, .access = FF_WRITE}, {.segment = t->where, .access = FF_WRITE}};
  CHECK(ff_partition_launch(t->partition,
                            &(ff_launch_request){.kernel = work,
                                                 .grid = {BLOCKS},
                                                 .block = {THREADS},
                                                 .arguments = arguments,
                                                 .argument_count = 3,
                                                 .uses = uses,
                                                 .use_count = 2},
                            &t->ticket));
}

/* Words that are wrong, and blocks that were on SMs of others: of those only a rewritten kernel knows the range. */
static uint32_t wrong(tenant *t) {
  uint32_t *words, *where, count = 0;
  ff_partition_info info;
  ff_gpu_info about;
  CHECK(ff_gpu_describe(gpu, &about));
  CHECK(ff_partition_describe(t->partition, &info));
  CHECK(ff_segment_map(t->words, FF_READ, 0, 0, (void **)&words));
  CHECK(ff_segment_map(t->where, FF_READ, 0, 0, (void **)&where));
  for (uint32_t i = 0; i < BLOCKS * THREADS; i++) count += words[i] != ROUNDS;
  for (uint32_t i = 0; i < BLOCKS && (about.is_virtual || info.way[0] == 'r'); i++)
    count += where[i] < info.sm_first || where[i] >= info.sm_first + info.sm_count;
  CHECK(ff_segment_unmap(t->words, words));
  CHECK(ff_segment_unmap(t->where, where));
  return count;
}

int main(int argc, char **argv) {
  tenant left, right;
  ff_module *module;
  CHECK(ff_open(&(ff_options){.size = sizeof(ff_options), .budget = 64 << 20}, &gpu));
  CHECK(ff_module_load(gpu, "work", code, 0, &module));
  CHECK(ff_kernel_find(module, "work", &work));
  make(&left, "left", "sm=50%,memory=25%", argc > 1 ? argv[1] : NULL);
  make(&right, "right", "sm=25%,memory=50%", argc > 1 ? argv[1] : NULL);
  run(&left);
  run(&right); /* at the same time */
  CHECK(ff_wait(gpu, left.ticket));
  CHECK(ff_wait(gpu, right.ticket));
  uint32_t bad = wrong(&left) + wrong(&right);
  CHECK(ff_close(gpu));
  printf("partition: %u words or blocks are wrong\n", bad);
  return bad != 0;
}
