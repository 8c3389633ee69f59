/* SPDX-License-Identifier: Apache-2.0 */
/* DRAM: channels of banks, each with one open row. */
#ifndef FF_MACHINE_MEMORY_DRAM_H
#define FF_MACHINE_MEMORY_DRAM_H

#include "machine/observe/tally.h"
#include "machine/time.h"
#include "machine/timing.h"

typedef struct dram_bank {
  int64_t row;
  ps ready, activated, written;
} dram_bank;
typedef struct dram_channel {
  server bus;
  dram_bank *banks;
  uint32_t reads; /* that no write has paired with yet, at most DRAM_READS_KEPT */
} dram_channel;

enum { DRAM_READS_KEPT = 64 };

/* How long so many sectors hold the channel's bus. A write that comes among reads has it turned round: it pays for one
 * read before it. Writes alone go at the peak. */
static inline ps bus_time(const timing *t, dram_channel *channel, uint32_t sectors, bool write) {
  if (!write) {
    channel->reads += channel->reads < DRAM_READS_KEPT;
    return t->dram_read[sectors];
  }
  if (!channel->reads) return t->dram_write[sectors];
  channel->reads--;
  return t->dram_mixed_write[sectors];
}

/* When the bank can take a column of the row, which is open from then on. */
static inline ps bank_column(const timing *t, dram_bank *bank, int64_t row, ps at, const tally *tally) {
  ps column = at > bank->ready ? at : bank->ready;
  if (bank->row == row) {
    COUNT(tally, dram_row_hits, 1);
    return column;
  }
  COUNT(tally, dram_row_misses, 1);
  if (bank->row >= 0) {
    if (column < bank->written) column = bank->written;
    column += t->t_rp;
    if (column < bank->activated + t->t_rc) column = bank->activated + t->t_rc;
  }
  bank->activated = column;
  bank->row = row;
  return column + t->t_rcd;
}

#endif
