// SPDX-License-Identifier: Apache-2.0
// What the page shows of a run's history: every kernel, copy, batch and transfer has its mark, curves and map are those of the file, the
// zoom is one for both figures, and a run without a history says how to get one.
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { column, expect, finish, hasColour, open, run, savedRun, work, workloads } from './common.mjs';

const BIN = 2 ** 30; // of the map: 1.07 ms; the curves' bins are a quarter of it
const MARKUP = '<img src=x onerror="window.hurt = 1">';

const part = (bins) => Math.round(bins * BIN);

// 8 bins of the map: two kernels, far-faults in the first, an eviction in the second; allocation 1 fills half by half.
function history() {
  const first = (list) => list.flatMap((value) => [value, 0, 0, 0]);
  const series = {
    faults: first([0, 3, 1, 0, 0, 2, 0, 0]),
    refaults: first([0, 0, 0, 0, 0, 1, 0, 0]),
    evicted_bytes: first([0, 0, 0, 0, 65536, 0, 0, 0]),
    h2d_busy_ps: first([0, BIN / 4, BIN / 8, 0, 0, BIN / 8, 0, 0]),
    d2h_busy_ps: first([0, 0, 0, 0, BIN / 8, 0, BIN / 4, 0]),
    resident_bytes: [0, 65536, 131072, 131072, 65536, 131072, 131072, 0].flatMap((value) => Array(4).fill(value)),
  };
  const map = (allocation, more) => ({ allocation, address: 4096 * allocation, bytes: 131072, row_bytes: 65536, rows: 2, ...more });
  return {
    bin_ps: BIN / 4,
    bins: 32,
    series,
    kernels: {
      count: 2,
      left_out: 0,
      kernel: [0, 1],
      launch: [0, 1],
      stream: [0, 0],
      begin_ps: [BIN, 4 * BIN],
      end_ps: [3 * BIN, 6 * BIN],
      blocks: [10, 20],
    },
    copies: { count: 1, left_out: 0, kind: ['d2h'], stream: [0], allocation: [1], begin_ps: [6 * BIN], end_ps: [7 * BIN], bytes: [131072] },
    batches: { count: 1, left_out: 0, begin_ps: [part(1.2)], end_ps: [part(1.8)], faults: [3], bytes: [65536] },
    transfers: {
      count: 3,
      left_out: 5,
      direction: ['h2d', 'd2h', 'd2h'],
      cause: ['fault', 'write-back', 'copy'],
      begin_ps: [part(1.5), part(4.1), 6 * BIN],
      end_ps: [part(1.7), part(4.4), 7 * BIN],
      bytes: [65536, 65536, 131072],
      pieces: [1, 1, 2],
    },
    heat: {
      bin_ps: BIN,
      bins: 8,
      left_out: 2,
      maps: [
        map(1, {
          accesses: [1, 0, 10, 2, 1, 1000],
          faults: [1, 0, 3, 2, 1, 1],
          evicted_bytes: [4, 0, 65536],
          resident_bytes: [1, 0, 65536, 2, 1, 65536, 4, 0, 0, 7, 1, 0],
        }),
        map(2, { accesses: [5, 0, 7] }),
      ],
    },
  };
}

function sample() {
  const manager = (memory, more) => ({
    memory,
    machine: 'gtx480',
    complete: true,
    ratio: 1,
    link_utilisation: 0.5,
    tlb_miss_rate: 0.25,
    time_ps: 8 * BIN,
    kernel_ps: 4 * BIN,
    transfer_ps: 2 * BIN,
    overlap_ps: BIN,
    launches: 2,
    faults: 6,
    h2d_bytes: 65536,
    d2h_bytes: 196608,
    kernels: [
      { name: `first ${MARKUP}`, launches: 1 },
      { name: 'second', launches: 1 },
    ],
    allocations: [
      { name: `x ${MARKUP}`, id: 1, address: 4096, bytes: 131072 },
      { name: 'y', id: 2, address: 8192, bytes: 131072 },
    ],
    ...more,
  });
  return savedRun([
    manager('with', { history: history() }),
    manager('without', {}),
    manager('nothing happened', { history: { bin_ps: 4096, bins: 0, series: {} } }),
  ]);
}

writeFileSync(join(work, 'run.ffr'), JSON.stringify(sample()));
run('report', 'run.ffr', '--html', 'run.html');
const page = await open('run.html', { viewport: { width: 1200, height: 3200 } }); // all in sight of the pointer
const picture = (figure) => page.evaluate((selector) => document.querySelector(`${selector} canvas`).toDataURL(), figure);

// ---- the timeline ----
expect('lanes', await page.getAttribute('#timeline', 'data-lanes'), "kernels|program's copies|fault batches|moved to GPU|moved to CPU");
expect('marks, with the two that say what is not listed', await page.getAttribute('#timeline', 'data-marks'), '9');
expect('curves', await page.getAttribute('#timeline', 'data-plots'), 'Far-faults per 268 us|Evicted per 268 us|Link used|In GPU memory');
for (const part of ['kernel', 'host', 'fault', 'evict', 'in', 'out'])
  expect(`the timeline's ${part}`, await hasColour(page, '#timeline', part));
expect(
  'what is left out',
  await page.textContent('#timeline-notes'),
  '5 transfers after the first 3 have no mark of their own; the curves count them.',
);
const plot = await page.locator('#timeline canvas').first().boundingBox();
const at = (bin) => plot.x + 150 + ((plot.width - 174) * bin) / 8;
await page.mouse.move(at(2), plot.y + 52);
await page.waitForSelector('#timeline .tip');
expect("a kernel's tip", await page.textContent('#timeline .tip strong'), `first ${MARKUP}`);
await page.mouse.move(at(1.1), plot.y + 40 + 5 * 24 + 36 + 30);
await page.waitForFunction(() => /1\.07 ms to 1\.34 ms/.test(document.querySelector('#timeline .tip')?.textContent));
expect("a bin's tip", /far-faults on a page for the first time3/.test(await page.textContent('#timeline .tip')));

expect('the time is marked through the curves', await page.isVisible('#timeline .time-line'));
await page.click('#timeline .legend button:has-text("batch")');
expect(
  'a kind of mark that is switched off',
  await page.getAttribute('#timeline .legend button:has-text("batch")', 'aria-pressed'),
  'false',
);
await page.mouse.move(at(1.5), plot.y + 40 + 2 * 24 + 12);
expect('it has no tip', await page.isVisible('#timeline .hover'), false);
await page.click('#timeline .legend button:has-text("batch")');
await page.mouse.move(at(1.5), plot.y + 40 + 2 * 24 + 13);
expect('and on again', await page.isVisible('#timeline .hover'));

// ---- the map of pages ----
const views = () => page.locator('#map-choices button').allTextContents();
expect('views of the map', await views(), ['pages on the GPU', 'accesses', 'far-faults', 'evictions']);
expect('bands', await page.getAttribute('#heatmap', 'data-bands'), `x ${MARKUP}|y`);
expect('rectangles: resident 2, far-faults 2, evictions 1', await page.getAttribute('#heatmap', 'data-marks'), '5');
expect('what has no map', (await page.textContent('#map-notes')).includes('none of 2 more'));
for (const part of ['fault', 'evict', 'absent']) expect(`the map's ${part}`, await hasColour(page, '#heatmap', part));
const map = await page.locator('#heatmap canvas').first().boundingBox();
await page.mouse.move(at(2.5), map.y + 4 + 12);
expect(
  "the map's tip",
  (await page.textContent('#heatmap .hover')).startsWith(
    `x ${MARKUP}time2.15 ms to 3.22 msbytesfrom 64.0 KiB, 64.0 KiBon the GPU100.0 %far-faults1`,
  ),
);
await page.mouse.move(at(3.5), map.y + 4 + 2);
expect('what stays until it changes', (await page.textContent('#heatmap .hover')).includes('on the GPU100.0 %'));
await page.mouse.move(at(6.5), map.y + 4 + 2);
expect('where nothing is left', (await page.textContent('#heatmap .hover')).includes('on the GPU0.0 %'));
await page.click('[data-view=accesses]');
expect('cells with accesses', await page.getAttribute('#heatmap', 'data-marks'), '3');
expect('their strongest colour', await hasColour(page, '#heatmap', 'kernel'));

// ---- the zoom ----
const [whole, wholeMap] = [await picture('#timeline'), await picture('#heatmap')];
await page.click('#zoom-in');
expect('a closer look at both', [(await picture('#timeline')) !== whole, (await picture('#heatmap')) !== wholeMap], [true, true]);
await page.click('#zoom-whole');
await page.mouse.move(5, 5);
expect('the whole again', [(await picture('#timeline')) === whole, (await picture('#heatmap')) === wholeMap], [true, true]);
await page.mouse.click(at(2), plot.y + 52); // the first kernel, bins 1 to 3: from 0.9 to 3.1
const moved = await page.locator('#heatmap canvas').first().boundingBox(); // this view has less to explain
await page.mouse.move(plot.x + 150 + ((plot.width - 174) * (3.05 - 0.9)) / 2.2, moved.y + 4 + 12);
expect('a kernel alone', (await page.textContent('#heatmap .hover')).includes('time3.22 ms to 4.29 ms'));

// ---- other managers, other colours ----
await page.selectOption('#manager', '1');
expect(
  'without a history',
  [await page.isVisible('#no-history'), await page.isVisible('#timeline'), await page.isVisible('#pages')],
  [true, false, false],
);
await page.selectOption('#manager', '2');
expect('with an empty one', await page.isVisible('#no-history'));
await page.selectOption('#manager', '0');
expect(
  'with one again',
  [await page.isVisible('#no-history'), await page.isVisible('#timeline'), await page.isVisible('#pages')],
  [false, true, true],
);
await page.click('#theme');
for (const part of ['kernel', 'fault', 'evict']) expect(`the timeline's ${part} when it is dark`, await hasColour(page, '#timeline', part));
await page.setViewportSize({ width: 400, height: 800 });
expect('the page is as wide as the window', await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth));
expect('elements made of names', await page.evaluate(() => document.querySelectorAll('img').length), 0);
expect('trouble', page.trouble, []);

// ---- as farfault writes it ----
if (existsSync(join(workloads, 'vectoradd'))) {
  run('run', '--machine', 'gtx480', '--memory', 'copy,uvm+gpu-memory=50%', '-o', 'own.ffr', join(workloads, 'vectoradd'), '1000000');
  run('report', 'own.ffr', '--html', 'own.html');
  const own = await open('own.html');
  expect(
    'lanes of a real run',
    await own.getAttribute('#timeline', 'data-lanes'),
    "kernels|program's copies|fault batches|moved to GPU|moved to CPU",
  );
  expect('its far-faults', (await column(own, '#kernel-table', 'faults'))[0] !== '0');
  expect('its map', [await hasColour(own, '#heatmap', 'fault'), await hasColour(own, '#heatmap', 'absent')], [true, true]);
  await own.selectOption('#manager', '0');
  expect("copy's map has no pages", await own.locator('#map-choices button').allTextContents(), ['accesses']);
  expect('trouble in it', own.trouble, []);
}
await finish();
