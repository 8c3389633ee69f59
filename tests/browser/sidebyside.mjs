// SPDX-License-Identifier: Apache-2.0
// The figure of all managers over time: each has a history with bins of its own, their marks stand on one axis, and it and the figures of one
// manager show the same part of the time, whichever is moved.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, finish, hasColour, open, run, savedRun, work } from './common.mjs';

const MS = 1e9;
const BIN = 2 ** 28; // 268 us

// `bins` bins of `width`; kernels: [begin, end] in ms; faults: [bin, how many].
function history(width, bins, kernels, faults) {
  const series = (values) => Array.from({ length: bins }, (_, i) => values[i] ?? 0);
  return {
    bin_ps: width,
    bins,
    series: {
      h2d_busy_ps: series({ 0: width, 1: width / 2 }),
      kernel_ps: series({ 2: width }),
      ...(faults ? { faults: series(faults) } : {}),
    },
    kernels: {
      count: kernels.length,
      left_out: faults ? 0 : 7,
      kernel: kernels.map((_, i) => i % 2),
      launch: kernels.map((_, i) => i),
      stream: kernels.map(() => 0),
      begin_ps: kernels.map(([begin]) => begin * MS),
      end_ps: kernels.map(([, end]) => end * MS),
      blocks: kernels.map(() => 1),
    },
  };
}

const manager = (memory, ms, more) => ({
  memory,
  machine: 'gtx480',
  complete: true,
  ratio: ms / 2,
  time_ps: ms * MS,
  kernel_ps: MS,
  launches: 2,
  kernels: [
    { name: 'first', launches: 1 },
    { name: 'second', launches: 1 },
  ],
  allocations: [],
  ...more,
});

const sample = savedRun([
  manager('copy', 2, {
    history: history(BIN / 4, 30, [
      [0.5, 1],
      [1, 1.5],
    ]),
  }),
  manager('demand', 8, {
    faults: 12,
    history: history(
      BIN,
      30,
      [
        [1, 4],
        [5, 7],
      ],
      { 4: 12 },
    ),
  }),
  manager('nothing', 1, {}),
  { ...manager('big', 0), error: 'big: it does not fit' },
]);
writeFileSync(join(work, 'run.ffr'), JSON.stringify(sample));
run('report', 'run.ffr', '--html', 'run.html');
const page = await open('run.html', { viewport: { width: 1200, height: 3200 } });
const side = (what) => page.getAttribute('#side-figure', `data-${what}`);
const shown = async () => [Number(await side('from')) / MS, Number(await side('to')) / MS];
const picture = (figure) => page.evaluate((selector) => document.querySelector(`${selector} canvas`).toDataURL(), figure);

// ---- what is drawn ----
expect('managers', await side('managers'), 'copy|demand');
expect('marks', await side('marks'), '4');
expect('the longest run is the whole', await shown(), [0, 8]);
for (const part of ['kernel', 'absent']) expect(`its ${part}`, await hasColour(page, '#side-figure', part));
expect('the highest rate of far-faults', (await page.textContent('#side-key')).includes('full height: 44.7 per ms'));
expect(
  'what is said',
  await page.textContent('#side-notes'),
  [
    'Under copy only the first 2 launches are drawn each; behind them the height is the share of the time in which a kernel ran. ',
    'Without a history: nothing, big. ',
  ].join(''),
);

// ---- the pointer ----
const plot = await page.locator('#side-figure canvas').first().boundingBox();
const row = 14 + 2 * 27 + 14; // a manager's height
const at = (ms, [from, to] = [0, 8]) => plot.x + 150 + ((plot.width - 174) * (ms - from)) / (to - from);
const top = (index) => plot.y + 4 + index * row + 12;
await page.mouse.move(at(1.25), top(1));
expect(
  'a tip',
  await page.textContent('#side-figure .hover'),
  [
    'demandkernelfirstlaunch1bin1.07 ms to 1.34 mslink, to GPU0.0 %far-faults12',
    'At 1.25 ms. Click: show this manager in the figures below.',
  ].join(''),
);
await page.mouse.move(at(1.25), top(0));
expect("its neighbour's", (await page.textContent('#side-figure .hover')).startsWith('copykernelsecondlaunch2bin1.21 ms to 1.28 ms'));
await page.mouse.move(at(4), top(0));
expect('where it is over', (await page.textContent('#side-figure .hover')).includes('The program was over.'));
expect('what it starts with', await page.inputValue('#manager'), '1');
await page.mouse.click(at(1), top(0));
expect('a click chooses', await page.inputValue('#manager'), '0');
await page.mouse.click(at(1), top(1));
expect('another one too', await page.inputValue('#manager'), '1');

// ---- the zoom ----
const [whole, one] = [await picture('#side-figure'), await picture('#timeline')];
await page.click('#side-in');
expect('closer', await shown(), [2, 6]);
expect('both are closer', [(await picture('#side-figure')) !== whole, (await picture('#timeline')) !== one], [true, true]);
await page.click('#zoom-in');
expect('closer by the figure of one', await shown(), [3, 5]);
await page.selectOption('#manager', '0');
expect('a manager that is over by then has its own part', await shown(), [3, 5]);
await page.selectOption('#manager', '1');
await page.click('#zoom-out');
expect('and the other one its last', await shown(), [2, 6]);
await page.click('#side-whole');
await page.mouse.move(5, 5);
expect('all again', [(await picture('#side-figure')) === whole, (await picture('#timeline')) === one], [true, true]);
const lanes = await page.locator('#timeline canvas').first().boundingBox();
await page.mouse.move(lanes.x + 150 + ((lanes.width - 174) * 2) / 8, lanes.y + 52);
expect('a launch under the others', /under copy500 us \(6\.00x\)/.test(await page.textContent('#timeline .hover')));
await page.mouse.click(lanes.x + 150 + ((lanes.width - 174) * 2) / 8, lanes.y + 52);
expect('a kernel alone', await shown(), [0.85, 4.15]);
await page.mouse.move(plot.x + 300, top(0));
await page.keyboard.down('Control');
await page.mouse.wheel(0, 300);
await page.keyboard.up('Control');
await page.waitForFunction(() => Number(document.querySelector('#side-figure').dataset.from) < 0.85e9);
await page.click('#theme');
expect('its kernels when it is dark', await hasColour(page, '#side-figure', 'kernel'));
await page.setViewportSize({ width: 400, height: 800 });
expect('the page is as wide as the window', await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth));
expect('trouble', page.trouble, []);

// ---- one manager has nobody beside it ----
writeFileSync(join(work, 'one.ffr'), JSON.stringify({ ...sample, runs: sample.runs.slice(1, 3) }));
run('report', 'one.ffr', '--html', 'one.html');
const alone = await open('one.html');
expect('alone', [await alone.isVisible('#side'), await alone.isVisible('#timeline')], [false, true]);
expect('trouble in it', alone.trouble, []);
await finish();
