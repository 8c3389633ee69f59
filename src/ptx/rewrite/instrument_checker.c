/* SPDX-License-Identifier: Apache-2.0 */
/* The function that instrumented code calls before each access, in PTX; the table it reads, and the report it writes.
 *
 *   0 inactive (the access is guarded off), 1 declared, 2 not declared = check(table, address, bytes, what, site,
 *   active)
 *
 * what: the modes of the access, and GENERIC. The loop is that of ptx_use_covers (declared.c): from the access's first
 * byte on, any use that holds it takes it to that use's end, until the access is passed, once for each mode. */
#include "ptx/rewrite/instrument_checker.h"

#include <inttypes.h>
#include <string.h>

_Static_assert(sizeof(ptx_check_report) == 48 && sizeof(ptx_check_table) == 64 && sizeof(ptx_check_use) == 64,
               "as in the text below");

static const char first_part[] =
    ".func (.param .b32 result) " PTX_CHECKER_NAME "(.param .b64 p_table, .param .b64 p_address, .param .b32 p_bytes,\n"
    "  .param .b32 p_what, .param .b32 p_site, .param .b32 p_active)\n{\n"
    "\t.reg .pred %p;\n\t.reg .b32 %result, %bytes, %what, %mode, %i, %n, %t;\n"
    "\t.reg .b64 %table, %address, %end, %at, %use, %low, %high, %m, %x, %y;\n"
    "\tld.param.u32 %t, [p_active];\n\tmov.u32 %result, 0;\n\tsetp.eq.u32 %p, %t, 0;\n\t@%p bra DONE;\n"
    "\tmov.u32 %result, 1;\n\tld.param.u32 %bytes, [p_bytes];\n\tsetp.eq.u32 %p, %bytes, 0;\n\t@%p bra DONE;\n"
    "\tld.param.u64 %table, [p_table];\n\tld.param.u64 %address, [p_address];\n\tld.param.u32 %what, [p_what];\n"
    "\tand.b32 %t, %what, 4;\n\tsetp.eq.u32 %p, %t, 0;\n\t@%p bra GLOBAL;\n"
    "\tisspacep.shared %p, %address;\n\t@%p bra DONE;\n\tisspacep.local %p, %address;\n\t@%p bra DONE;\n";
static const char constants_part[] = "\tisspacep.const %p, %address;\n\t@%p bra DONE;\n";
static const char uses_part[] =
    "GLOBAL:\n\tcvt.u64.u32 %x, %bytes;\n\tadd.u64 %end, %address, %x;\n\tsetp.lt.u64 %p, %end, %address;\n\t@%p bra BAD;\n"
    "\tld.global.u32 %n, [%table+48];\n\tmov.u32 %mode, 1;\n"
    "MODE:\n\tand.b32 %t, %what, %mode;\n\tsetp.eq.u32 %p, %t, 0;\n\t@%p bra NEXT;\n\tmov.u64 %at, %address;\n"
    "AGAIN:\n\tmov.u32 %i, 0;\n\tadd.u64 %use, %table, 0;\n"
    "USE:\n\tsetp.ge.u32 %p, %i, %n;\n\t@%p bra OTHERS;\n\tadd.u32 %i, %i, 1;\n\tadd.u64 %use, %use, 64;\n"
    "\tld.global.u64 %m, [%use+16];\n\tcvt.u32.u64 %t, %m;\n\tand.b32 %t, %t, %mode;\n\tsetp.eq.u32 %p, %t, 0;\n\t@%p bra USE;\n"
    "\tld.global.u64 %low, [%use];\n\tld.global.u64 %high, [%use+8];\n\tld.global.u64 %m, [%use+48];\n"
    "\tsetp.eq.u64 %p, %m, 0;\n\t@%p bra RANGE;\n"
    "\tld.global.u64 %x, [%use+56];\n"
    "\tmov.u32 %t, %ctaid.x;\n\tcvt.u64.u32 %y, %t;\n\tld.global.u64 %m, [%use+24];\n\tmad.lo.s64 %x, %m, %y, %x;\n"
    "\tmov.u32 %t, %ctaid.y;\n\tcvt.u64.u32 %y, %t;\n\tld.global.u64 %m, [%use+32];\n\tmad.lo.s64 %x, %m, %y, %x;\n"
    "\tmov.u32 %t, %ctaid.z;\n\tcvt.u64.u32 %y, %t;\n\tld.global.u64 %m, [%use+40];\n\tmad.lo.s64 %x, %m, %y, %x;\n"
    "\tld.global.u64 %m, [%use+48];\n\tadd.u64 %y, %x, %m;\n\tmax.s64 %low, %low, %x;\n\tmin.s64 %high, %high, %y;\n"
    "RANGE:\n\tsetp.lt.u64 %p, %at, %low;\n\t@%p bra USE;\n\tsetp.ge.s64 %p, %at, %high;\n\t@%p bra USE;\n"
    "\tmov.u64 %at, %high;\n\tsetp.ge.u64 %p, %at, %end;\n\t@%p bra NEXT;\n\tbra AGAIN;\n"
    "NEXT:\n\tshl.b32 %mode, %mode, 1;\n\tsetp.le.u32 %p, %mode, 2;\n\t@%p bra MODE;\n\tbra DONE;\n"
    "OTHERS:\n";
/* Of %u variables in %s: address, bytes. */
static const char variables_part[] =
    "\tmov.u32 %%i, 0;\n\tmov.u64 %%use, %s;\n"
    "VARIABLE:\n\tld.global.u64 %%low, [%%use];\n\tld.global.u64 %%high, [%%use+8];\n\tadd.u64 %%high, %%high, %%low;\n"
    "\tadd.u64 %%use, %%use, 16;\n\tadd.u32 %%i, %%i, 1;\n"
    "\tsetp.lt.u64 %%p, %%address, %%low;\n\t@%%p bra NOT_THIS;\n\tsetp.le.u64 %%p, %%end, %%high;\n\t@%%p bra DONE;\n"
    "NOT_THIS:\n\tsetp.lt.u32 %%p, %%i, %u;\n\t@%%p bra VARIABLE;\n";
static const char last_part[] =
    "BAD:\n\tmov.u32 %result, 2;\n\tatom.global.cas.b32 %t, [%table], 0, 1;\n\tsetp.ne.u32 %p, %t, 0;\n\t@%p bra DONE;\n"
    "\tld.param.u32 %t, [p_site];\n\tst.global.u32 [%table+4], %t;\n\tst.global.u64 [%table+8], %address;\n\tst.global.u32 [%table+16], %bytes;\n"
    "\tmov.u32 %t, %ctaid.x;\n\tst.global.u32 [%table+24], %t;\n\tmov.u32 %t, %ctaid.y;\n\tst.global.u32 [%table+28], %t;\n"
    "\tmov.u32 %t, %ctaid.z;\n\tst.global.u32 [%table+32], %t;\n\tmov.u32 %t, %tid.x;\n\tst.global.u32 [%table+36], %t;\n"
    "\tmov.u32 %t, %tid.y;\n\tst.global.u32 [%table+40], %t;\n\tmov.u32 %t, %tid.z;\n\tst.global.u32 [%table+44], %t;\n"
    "DONE:\n\tst.param.b32 [result], %result;\n\tret;\n}\n";

void ptx_checker_print(const ptx_module *module, bool constants, uint32_t variables, ff_text *out) {
  ff_text_add(out, ".version %u.%u\n.target sm_%u\n.address_size 64\n", module->version_major, module->version_minor,
              module->target ? module->target : 50);
  if (variables) ff_text_add(out, ".global .align 8 .u64 %s[%u];\n", PTX_CHECKER_VARIABLES, 2 * variables);
  ff_text_add(out, "%s%s%s", first_part, constants ? constants_part : "", uses_part);
  if (variables) ff_text_add(out, variables_part, PTX_CHECKER_VARIABLES, variables);
  ff_text_add(out, "%s", last_part);
}

/* ---- tables ---- */

size_t ptx_check_bytes(uint32_t count) { return sizeof(ptx_check_table) + count * sizeof(ptx_check_use); }

/* Every block's range, before it is cut to the use, within 63 bits: the device adds in 64. */
static bool fits(const ff_virtual_use *use, const uint32_t grid[3]) {
  __int128 low = use->base, high = (__int128)use->base + use->bytes;
  if (high > INT64_MAX) return false;
  if (!use->block_bytes) return true;
  low += use->start;
  high = low + use->block_bytes;
  for (int d = 0; d < 3; d++) {
    __int128 most = (__int128)use->per_block[d] * (grid[d] ? grid[d] - 1 : 0);
    if (most < 0) low += most;
    else high += most;
  }
  return low > INT64_MIN && high < INT64_MAX;
}

ff_status ptx_check_fill(const ff_virtual_use *uses, uint32_t count, const uint32_t grid[3], ptx_check_table *table,
                         ff_error *error) {
  memset(table, 0, ptx_check_bytes(count));
  table->count = count;
  for (uint32_t i = 0; i < count; i++) {
    const ff_virtual_use *use = &uses[i];
    if (!fits(use, grid))
      return ff_fail(error, FF_INVALID, "the range of segment '%s' leaves the address space for some block",
                     use->segment ? use->segment : "?");
    table->uses[i] = (ptx_check_use){.base = use->base,
                                     .end = use->base + use->bytes,
                                     .block_bytes = use->block_bytes,
                                     .first = (int64_t)(use->base + (uint64_t)use->start),
                                     .mode = (use->read ? PTX_USE_READ : 0u) | (use->write ? PTX_USE_WRITE : 0u)};
    memcpy(table->uses[i].per_block, use->per_block, sizeof use->per_block);
  }
  return FF_OK;
}

/* ---- reports ---- */

ff_status ptx_check_explain(const ptx_checked *checked, const char *kernel, const ptx_check_report *report,
                            const ff_virtual_use *uses, uint32_t count, ff_text *text, ff_error *error) {
  ptx_check_access access;
  if (report->taken != 1 || report->site >= checked->site_count)
    return ff_fail(error, FF_INVALID, "the report of kernel %s is damaged (site %u of %u)", kernel, report->site,
                   checked->site_count);
  const ptx_check_site *site = &checked->sites[report->site];
  if (!ptx_check_access_of(site->instr, &access))
    return ff_fail(error, FF_INVALID, "the report of kernel %s is damaged", kernel);
  ptx_space space = access.generic ? PTX_SPACE_GENERIC : PTX_SPACE_GLOBAL;
  ptx_use_explain(uses, count, report->block, space, report->address, report->bytes, access.need, text);
  ptx_put_thread(kernel, report->block, report->thread, text);
  ptx_put_place(site->func, site->instr, !site->func->entry, text);
  return FF_OK;
}
