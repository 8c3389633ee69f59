/* SPDX-License-Identifier: Apache-2.0 */
/* DRAM: channels of banks, each with one open row. */
#ifndef FF_MACHINE_MEMORY_DRAM_H
#define FF_MACHINE_MEMORY_DRAM_H

#include "machine/observe/tally.h"
#include "machine/time.h"
#include "machine/timing.h"

/* A row that a bank has open from `open` on, when it takes columns, until `closed`, and then another one. */
typedef struct dram_row {
  int64_t row;
  ps open, closed;
} dram_row;
enum { DRAM_ROWS = 4 }; /* of a bank, dram_rows at most, that requests can join before its last one */
typedef struct dram_bank {
  int64_t row;                          /* the last one that was opened; -1: none */
  ps ready, activated, written, closed; /* closed: the row before */
  dram_row rows[DRAM_ROWS];             /* before it, a ring in the order of time */
  uint32_t next;                        /* of it: is overwritten next */
} dram_bank;
typedef struct dram_write { /* that a channel has taken over and not done yet */
  dram_bank *bank;
  int64_t row;
  uint32_t sectors;
} dram_write;
typedef struct dram_channel {
  server bus, activations;
  dram_bank *banks;
  uint32_t reads;     /* that no write has paired with yet, at most DRAM_READS_KEPT */
  uint32_t queued;    /* of `writes` */
  ps drained;         /* the end of the last batch of them */
  dram_write *writes; /* dram_write_batch of them, by bank and row; NULL: each goes at its turn */
} dram_channel;

enum { DRAM_READS_KEPT = 64 };

/* How long so many sectors hold the channel's bus. A write that comes among reads has it turned round: it pays for one
 * read before it. Writes alone go at the peak, as those of a batch do. */
static inline ps bus_time(const timing *t, dram_channel *channel, uint32_t sectors, bool write) {
  if (!write) {
    channel->reads += channel->reads < DRAM_READS_KEPT;
    return t->dram_read[sectors];
  }
  if (!channel->reads) return t->dram_write[sectors];
  channel->reads--;
  return t->dram_mixed_write[sectors];
}

/* Is the row one of dram_rows before the last one opened, and not closed yet at `at`? Then *column is when the bank can
 * take one of it: row hits go before requests that wait for other rows, and theirs open as if there had been none. With
 * dram_rows 0 it is the one before, which takes them at once, open or not. */
static inline bool row_waits(const timing *t, const dram_bank *bank, int64_t row, ps at, ps *column) {
  uint32_t rows = t->dram_rows ? t->dram_rows : 1;
  for (uint32_t i = 1; i <= rows; i++) {
    const dram_row *r = &bank->rows[(bank->next - i) % DRAM_ROWS];
    if (r->closed <= at) return false;
    if (r->row != row) continue;
    *column = t->dram_rows && at < r->open ? r->open : at;
    return true;
  }
  return false;
}

/* When the bank can take a column of the row, which is open from then on. Where writes go in batches, requests join
 * rows before the last one, too (row_waits). channel NULL: a vault of a memory stack, which looks back itself
 * (stacks.c). */
static inline ps bank_column(const timing *t, dram_channel *channel, dram_bank *bank, int64_t row, ps ask, ps at,
                             const tally *tally) {
  ps column = at > bank->ready ? at : bank->ready;
  bool batches = channel && channel->writes;
  if (bank->row == row || (batches && row_waits(t, bank, row, at, &column))) {
    COUNT(tally, dram_row_hits, 1);
    return column;
  }
  COUNT(tally, dram_row_misses, 1);
  if (bank->row >= 0) {
    if (column < bank->written) column = bank->written;
    column += t->t_rp;
    if (column < bank->activated + t->t_rc) column = bank->activated + t->t_rc;
    bank->closed = column - t->t_rp;
    if (batches) bank->rows[bank->next++ % DRAM_ROWS] = (dram_row){bank->row, bank->activated + t->t_rcd, bank->closed};
  }
  if (channel && t->t_rrd) column = server_take(&channel->activations, ask, column, t->t_rrd);
  bank->activated = column;
  bank->row = row;
  return column + t->t_rcd;
}

/* The bank's columns are taken until then. A hit of the row before is over before the next row is open and leaves that
 * as it is: when a bank is ready never goes back. */
static inline void bank_take(dram_bank *bank, ps until) {
  if (bank->ready < until) bank->ready = until;
}

/* All writes that were taken over: if there were reads before, the bus is turned round, and back later; it carries the
 * writes row by row. Returns when that is over. */
static inline ps write_batch(const timing *t, dram_channel *channel, ps ask, ps at, const tally *tally) {
  ps bursts = channel->reads ? t->dram_turn : 0, last = 0;
  for (uint32_t i = 0; i < channel->queued; i++) {
    dram_write *w = &channel->writes[i];
    ps burst = t->dram_write[w->sectors], column = bank_column(t, channel, w->bank, w->row, ask, at, tally);
    bank_take(w->bank, column + burst);
    ps written = column + t->t_cl + burst + t->t_wr;
    if (w->bank->written < written) w->bank->written = written;
    bursts += burst;
    if (last < column + t->t_cl + burst) last = column + t->t_cl + burst;
  }
  channel->queued = channel->reads = 0;
  ps end = server_take(&channel->bus, ask, ask, bursts) + bursts;
  channel->drained = end > last ? end : last;
  return channel->drained;
}

/* The channel takes a write over, once the batch before is done; the one that makes a batch full is over when that
 * is. */
static inline ps write_later(const timing *t, dram_channel *channel, uint32_t batch, dram_write write, ps ask, ps at,
                             const tally *tally) {
  uint32_t i = channel->queued++;
  for (; i > 0; i--) {
    const dram_write *earlier = &channel->writes[i - 1];
    if (earlier->bank < write.bank || (earlier->bank == write.bank && earlier->row <= write.row)) break;
    channel->writes[i] = *earlier;
  }
  channel->writes[i] = write;
  if (channel->queued == batch) return write_batch(t, channel, ask, at, tally);
  return at > channel->drained ? at : channel->drained;
}

#endif
