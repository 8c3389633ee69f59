// SPDX-License-Identifier: Apache-2.0
// The page of a sweep: the chart of any number over any parameter with the right points and means, the table of points with its filters,
// what is said of points without a result and of those that the page does not hold.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { column, expect, farfault, finish, hasColour, open, run, work, workloads } from './common.mjs';

const HOSTILE = '<img src=x onerror="window.hurt = 1">';
const template = readFileSync(join(dirname(farfault), '../share/farfault/report.html'), 'utf8');
const counters = [
  ['time_ps', 'ps', 'simulated time'],
  ['faults', '', 'far-faults'],
  ['h2d_bytes', 'B', 'moved'],
  ['d2d_bytes', 'B', 'never here'],
];

// Two traces, copy without and uvm with three sizes of memory; the last point has no result.
function points() {
  const list = [];
  const add = (trace, memory, gpu_memory, ms, faults, more) =>
    list.push({
      point: list.length + 1,
      state: 'done',
      error: null,
      version: '0.1.0',
      trace,
      trace_checksum: 'c',
      machine: 'gtx480',
      machine_hash: 'h',
      memory,
      gpu_memory,
      time_us: ms * 1000,
      ratio: ms / 2,
      link_utilisation: 0.5,
      tlb_miss_rate: 0,
      time_ps: ms * 1e9,
      faults,
      h2d_bytes: 4096,
      d2d_bytes: 0,
      ...more,
    });
  for (const trace of ['a.fft', HOSTILE]) {
    add(trace, 'copy', null, 2, 0);
    for (const [size, ms] of [
      ['2M', 4],
      ['64K', trace === 'a.fft' ? 8 : 32],
      ['1G', 3],
    ])
      add(trace, 'uvm', size, ms, ms * 10);
  }
  add('a.fft', 'ideal', null, 1, 0, {
    state: 'failed',
    error: 'it ran out of luck',
    time_us: null,
    ratio: null,
    time_ps: null,
    faults: null,
  });
  return list;
}

const page = async (name, results, options) => {
  const data = JSON.stringify({ kind: 'results', file: name, counters, results }).replaceAll('<', '\\u003c');
  writeFileSync(
    join(work, `${name}.html`),
    template.replace('"farfault:data"', () => data),
  );
  return open(`${name}.html`, options);
};
const one = await page('study.db', { points: points(), total: 12000 }, { viewport: { width: 1200, height: 2000 } });
const chart = (what) => one.getAttribute('#sweep-chart', `data-${what}`);

expect("the run's page is hidden", await one.isVisible('#run-page'), false);
expect('the subtitle', (await one.textContent('#subtitle')).startsWith('9 points: 2 recorded programs on 1 machine'));
expect('what the page does not hold', (await one.textContent('#sweep-warnings')).includes('has 12000 points; this page holds the first 9'));
expect('what has no result', (await one.textContent('#sweep-warnings')).includes('1 point failed'));

// ---- the chart ----
expect(
  'it starts with the ratio over the parameter',
  [
    await one.inputValue('[data-choice=show]'),
    await one.inputValue('[data-choice=over]'),
    await one.inputValue('[data-choice="a line per"]'),
  ],
  ['ratio', 'gpu_memory', 'memory'],
);
expect('sizes are in order', await chart('values'), '64K|2M|1G');
expect('dots', await chart('marks'), '6');
expect('lines', await chart('series'), 'copy|uvm');
expect('what is dashed', (await one.textContent('#sweep-notes')).includes('Dashed: copy'));
expect('what a line through several is', (await one.textContent('#sweep-notes')).includes('geometric mean'));
for (const shade of ['s1', 's2']) expect(`the chart's ${shade}`, await hasColour(one, '#sweep-chart', shade));
expect(
  'numbers that are always 0 are no choice',
  (await one.locator('[data-choice=show] option').allTextContents()).includes('d2d_bytes'),
  false,
);
await one.selectOption('[data-choice="only trace"]', HOSTILE);
expect('dots of one trace', await chart('marks'), '3');
const top = await one.evaluate(() => {
  // the highest pixel of the line's colour in the plot: 64K, 32 ms, 16 times copy
  const canvas = document.querySelector('#sweep-chart canvas');
  const hex = getComputedStyle(document.documentElement).getPropertyValue('--s2').trim();
  const wanted = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  for (let i = canvas.width * 44 * 4; i < data.length; i += 4) {
    if (wanted.every((c, k) => data[i + k] === c)) return { x: (i / 4) % canvas.width, y: Math.floor(i / 4 / canvas.width) };
  }
  return null;
});
const box = await one.locator('#sweep-chart canvas').first().boundingBox();
await one.mouse.move(box.x + top.x, box.y + top.y + 3);
await one.waitForSelector('#sweep-chart .tip');
const found = await one.textContent('#sweep-chart .tip');
expect("the highest point's tip", [found.startsWith('uvm'), found.includes('16.0x'), found.includes(HOSTILE)], [true, true, true]);
await one.selectOption('[data-choice=over]', 'trace');
expect('over the traces', [await chart('values'), await chart('marks')], [`a.fft|${HOSTILE}`, '8']);
await one.selectOption('[data-choice="only gpu_memory"]', '2M');
expect("one size: uvm's points with it, and copy's, which has none", [await chart('marks'), await chart('series')], ['4', 'copy|uvm']);
await one.selectOption('[data-choice="only gpu_memory"]', '');
await one.selectOption('[data-choice=show]', 'faults');
expect('far-faults, a line per manager', await chart('series'), 'copy|uvm');
await one.selectOption('[data-choice=over]', 'memory');
expect('over the managers the lines are something else', (await one.inputValue('[data-choice="a line per"]')) !== 'memory');
await one.check('#sweep-controls input[type=checkbox]');
expect('logarithmic', await one.isChecked('#sweep-controls input[type=checkbox]'));

// ---- several machines: one of them at first, so that no line goes through means over machines ----
const both = points().concat(points().map((point) => ({ ...point, point: point.point + 9, machine: 'h200' })));
const two = await page('machines.db', { points: both, total: both.length });
expect('the first machine', await two.inputValue('[data-choice="only machine"]'), 'gtx480');
expect('its dots', await two.getAttribute('#sweep-chart', 'data-marks'), '6');
await two.selectOption('[data-choice="only machine"]', '');
expect('those of all', await two.getAttribute('#sweep-chart', 'data-marks'), '12');
await two.selectOption('[data-choice="a line per"]', 'machine');
expect('a line per machine', await two.getAttribute('#sweep-chart', 'data-series'), 'gtx480|h200');

// ---- a point that one place lacks: no line through the mean of the others ----
expect('no gaps so far', await chart('gaps'), '');
const fewer = points().filter(({ trace, gpu_memory }) => trace === 'a.fft' || gpu_memory !== '2M');
const three = await page('fewer.db', { points: fewer, total: fewer.length });
const gaps = () => three.getAttribute('#sweep-chart', 'data-gaps');
expect('where the line has a gap', await gaps(), 'uvm at 2M');
expect('which the page says', (await three.textContent('#sweep-notes')).includes('No line through uvm at 2M'));
expect('the dots are there', await three.getAttribute('#sweep-chart', 'data-marks'), '5');
await three.selectOption('[data-choice="only trace"]', 'a.fft');
expect('one trace has no gap', await gaps(), '');

// ---- the table ----
expect('rows', (await column(one, '#sweep-table', 'point')).length, 9);
await one.fill('#sweep-table input', 'uvm ratio<=2');
expect('rows of a filter', await column(one, '#sweep-table', 'point'), ['2', '4', '6', '8']);
await one.click('#sweep-table th[data-key=ratio] button');
expect('the highest first', await column(one, '#sweep-table', 'ratio'), ['2.00x', '2.00x', '1.50x', '1.50x']);
await one.fill('#sweep-table input', 'state=failed');
expect(
  'without a result',
  [await column(one, '#sweep-table', 'error'), await column(one, '#sweep-table', 'time_us')],
  [['it ran out of luck'], ['-']],
);

await one.click('#theme');
await one.setViewportSize({ width: 400, height: 800 });
expect('the page is as wide as the window', await one.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth));
expect('elements made of names', await one.evaluate(() => document.querySelectorAll('img').length), 0);
expect('trouble', one.trouble, []);
const none = await page('none.db', { points: [], total: 0 });
expect(
  'an empty sweep',
  [await none.isVisible('#sweep-figure'), (await none.textContent('#sweep-table')).includes('There are no points.'), none.trouble],
  [false, true, []],
);

// ---- as farfault writes it ----
if (existsSync(join(workloads, 'vectoradd'))) {
  writeFileSync(join(work, 'own.yaml'), 'trace: own.fft\nmachine: gtx480\nmemory: [replay, tbn]\ngpu-memory: [50%, 100%]\n');
  run('record', '-o', 'own.fft', '--', join(workloads, 'vectoradd'), '200000');
  run('sweep', 'own.yaml', '-o', 'own.db');
  run('report', 'own.db', '--html', 'own.html');
  const own = await open('own.html');
  expect('points of a real sweep', (await column(own, '#sweep-table', 'memory')).sort(), ['replay', 'replay', 'tbn', 'tbn']);
  expect(
    'its chart',
    [await own.getAttribute('#sweep-chart', 'data-values'), await hasColour(own, '#sweep-chart', 's2')],
    ['50%|100%', true],
  );
  expect('trouble in it', own.trouble, []);
}
await finish();
