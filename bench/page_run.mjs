// SPDX-License-Identifier: Apache-2.0
// page_run.mjs FILE.ffr: writes a run such as `farfault run -o` saves it, as large as a page has to stay smooth with: five managers, 100,000
// launches of 500 kernels, 10,000 allocations. Nothing ran: it is for page.mjs, after `farfault report FILE.ffr --html`.
import { writeFileSync } from 'node:fs';

const [file] = process.argv.slice(2);
if (!file) {
  console.error('page_run.mjs FILE.ffr');
  process.exit(64);
}
const [LAUNCHES, LISTED, KERNELS, ALLOCATIONS] = [100000, 20000, 500, 10000];
const list = (length, make) => Array.from({ length }, (_, i) => make(i));
const scatter = (i) => ((i * 2654435761) >>> 0) / 2 ** 32; // from 0 to 1, without an order

// What happened when: launches of `each` ps one after the other, a batch, a transfer and a copy with each.
function history(each, faults) {
  const marks = (share, more) => ({
    count: LISTED,
    left_out: LAUNCHES - LISTED,
    begin_ps: list(LISTED, (i) => i * each),
    end_ps: list(LISTED, (i) => i * each + Math.round(each * share * (0.6 + 0.4 * scatter(i)))),
    ...more,
  });
  const time = LAUNCHES * each;
  const bin = 2 ** Math.ceil(Math.log2(time / 512));
  const bins = Math.ceil(time / bin);
  const series = (value) => list(bins, (i) => Math.round(value(i)));
  return {
    bin_ps: bin,
    bins,
    series: {
      kernel_ps: series(() => bin * 0.7),
      block_ps: series(() => bin * 30),
      h2d_busy_ps: series((i) => bin * Math.abs(Math.sin(i / 20))),
      d2h_busy_ps: series((i) => bin * 0.3 * Math.abs(Math.cos(i / 20))),
      faults: series((i) => faults * scatter(i)),
      resident_bytes: series((i) => 1e6 * i),
    },
    kernels: marks(0.9, {
      kernel: list(LISTED, (i) => i % KERNELS),
      launch: list(LISTED, (i) => i),
      stream: list(LISTED, () => 0),
      blocks: list(LISTED, () => 64),
    }),
    copies: marks(0.2, {
      kind: list(LISTED, () => 'h2d'),
      stream: list(LISTED, () => 0),
      allocation: list(LISTED, () => 1),
      bytes: list(LISTED, () => 4096),
    }),
    batches: marks(0.3, { faults: list(LISTED, () => 3), bytes: list(LISTED, () => 65536) }),
    transfers: marks(0.4, {
      direction: list(LISTED, (i) => (i % 3 ? 'h2d' : 'd2h')),
      cause: list(LISTED, (i) => (i % 3 ? 'fault' : 'write-back')),
      bytes: list(LISTED, () => 65536),
      pieces: list(LISTED, () => 1),
    }),
    heat: {
      bin_ps: bin * 4,
      bins: Math.ceil(bins / 4),
      left_out: ALLOCATIONS - 64,
      maps: list(64, (m) => ({
        allocation: m + 1,
        address: 2 ** 21 * (m + 1),
        bytes: 2 ** 20,
        row_bytes: 65536,
        rows: 16,
        accesses: list(1000, (c) => [Math.floor(c / 16), (c + m) % 16, 5]).flat(),
        resident_bytes: [1, 0, 65536, 2, 1, 65536],
      })),
    },
  };
}

function manager(memory, slower, faults) {
  const time = 5e6 * slower * LAUNCHES;
  return {
    memory,
    machine: 'gtx480',
    complete: true,
    ratio: slower,
    time_ps: time,
    kernel_ps: Math.round(time * 0.7),
    launches: LAUNCHES,
    faults: faults * 250,
    kernels: list(KERNELS, (k) => ({
      name: `kernel_${k}<float, ${k % 7}>(float*, int)`,
      launches: LAUNCHES / KERNELS,
      time_ps: time / KERNELS,
    })),
    allocations: list(ALLOCATIONS, (a) => ({
      name: `main.cu:${a} cudaMallocManaged`,
      id: a + 1,
      address: 2 ** 21 * (a + 1),
      bytes: 2 ** 20,
      managed: true,
      pinned: false,
    })),
    history: history(5e6 * slower, faults),
  };
}

const runs = [
  ['copy', 1, 0],
  ['demand', 4, 200],
  ['replay', 1.7, 200],
  ['tbn', 1.3, 200],
  ['uvm', 1.5, 200],
].map((each) => manager(...each));
writeFileSync(file, JSON.stringify({ schema: 1, version: '0', command: './many 100000', complete: true, notes: [], host: {}, runs }));
