// SPDX-License-Identifier: Apache-2.0
// The search of a page with 100,000 launches and 10,000 allocations: kernels, launches by number, allocations, lines; each leads to its place,
// by the pointer and by the keyboard, and finding takes no time that a reader would notice. And the section of lines itself.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { column, expect, finish, open, run, savedRun, work } from './common.mjs';

const LAUNCHES = 100000;
const LISTED = 20000;
const KERNELS = 1000;
const MARKUP = '<img src=x onerror="window.hurt = 1">';
const file = join(work, 'kernels.cu');
writeFileSync(file, Array.from({ length: 50 }, (_, i) => `text of line ${i + 1} ${i === 30 ? MARKUP : ''}\n`).join(''));

const numbers = (make, length = LISTED) => Array.from({ length }, (_, i) => make(i));
const bin = 2 ** 30;
const history = {
  bin_ps: bin,
  bins: 100,
  series: { kernel_ps: numbers(() => bin / 2, 100) },
  kernels: {
    count: LISTED,
    left_out: LAUNCHES - LISTED,
    kernel: numbers((i) => i % KERNELS),
    launch: numbers((i) => i),
    stream: numbers(() => 0),
    begin_ps: numbers((i) => i * 1e6),
    end_ps: numbers((i) => i * 1e6 + 8e5),
    blocks: numbers(() => 1),
  },
};
const one = {
  memory: 'replay',
  machine: 'gtx480',
  complete: true,
  ratio: 1,
  time_ps: 100 * bin,
  kernel_ps: 50 * bin,
  launches: LAUNCHES,
  faults: 40,
  kernels: numbers(
    (i) => ({ name: i === 700 ? `gemm ${MARKUP}` : `kernel_${i}<float, 2>(float*)`, launches: 100, time_ps: 1000 + i }),
    KERNELS,
  ),
  allocations: numbers(
    (i) => ({ name: `app.cu:${i} cudaMallocManaged`, id: i + 1, address: 4096 * (i + 1), bytes: 4096, managed: true, pinned: false }),
    10000,
  ),
  by_line: [
    { kernel: 0, file, line: 31, ptx: 12, pc: 3, instruction: 'ld.global.f32', faults: 30, h2d_bytes: 4096, sectors: 8 },
    { kernel: 1, ptx: 40, pc: 9, instruction: 'st.global.f32', faults: 10, sectors: 4 },
  ],
  history,
};
writeFileSync(
  join(work, 'run.ffr'),
  JSON.stringify(
    savedRun([
      one,
      { ...one, memory: 'copy', faults: 0, kernels: [{ name: 'other', launches: 5 }], by_line: undefined, history: undefined },
    ]),
  ),
);
run('report', 'run.ffr', '--html', 'run.html');
const page = await open('run.html');
const found = () => page.locator('#search-found .found-text').allTextContents();
const headings = () => page.locator('#search-found h3').allTextContents();
const type = (text) => page.fill('#search', text);
const inView = (id) =>
  page.evaluate((wanted) => Math.abs(document.getElementById(wanted).getBoundingClientRect().top) < window.innerHeight / 2, id);

// ---- the lines ----
expect('places', await column(page, '#line-table', 'place'), ['kernels.cu:31', 'PTX 40']);
expect('their text', await column(page, '#line-table', 'source'), [`text of line 31 ${MARKUP}`, '-']);
expect('shares of the far-faults', await column(page, '#line-table', 'share'), ['75.0 %', '25.0 %']);
await page.click('#line-table tbody tr:nth-child(1)');
expect(
  'the lines around it',
  (await page.textContent('#line-source pre')).match(/text of line \d+/g),
  [29, 30, 31, 32, 33].map((n) => `text of line ${n}`),
);
expect('the one that was meant', (await page.textContent('#line-source strong')).trim(), `31  text of line 31 ${MARKUP}`);
await page.click('#line-table tbody tr:nth-child(2)');
expect('a line without a source', await page.textContent('#line-source'), '');

// ---- what is found ----
await page.keyboard.press('/');
expect('/ leads to the field', await page.evaluate(() => document.activeElement.id), 'search');
await type('KERNEL_99 float');
expect(
  'kernels',
  await found(),
  [99, 990, 991, 992, 993, 994].map((i) => `kernel_${i}<float, 2>(float*)`),
);
expect('how many', await headings(), ['Kernels first 6 of 11']);
await type('app.cu:9999');
expect('an allocation', await found(), ['app.cu:9999 cudaMallocManaged']);
await page.keyboard.press('Enter');
expect('it is the first of the table', (await column(page, '#allocation-table', 'name'))[0], 'app.cu:9999 cudaMallocManaged');
expect('and marked', await page.textContent('#allocation-table tr.marked th'), 'app.cu:9999 cudaMallocManaged');
expect('and in view', await inView('allocations'));
expect('the list is gone', await page.isVisible('#search-found'), false);
await page.fill('#allocation-table input', 'app.cu:17');
expect('until something else is wanted', await page.locator('#allocation-table tr.marked').count(), 0);
await type('line 31');
expect('a line by its text', await found(), [`kernels.cu:31  text of line 31 ${MARKUP}`]);
await page.click('#search-found .found');
expect('its source is shown', await page.isVisible('#line-source pre'));
await type('gemm <img');
expect('a name that looks like markup', await found(), [`gemm ${MARKUP}`]);
await type('no such thing');
expect('nothing', await page.textContent('#search-found'), 'Nothing has all of these words.');

// ---- launches ----
await type('launch 12346');
expect(
  'a launch',
  [await found(), await page.textContent('#search-found .found-note')],
  [['launch 12346: kernel_345<float, 2>(float*)'], 'at 12.3 ms, for 800 ns'],
);
await page.click('#search-found .found');
expect('it is in view', await inView('history'));
await page.waitForTimeout(200);
const plot = await page.locator('#timeline canvas').first().boundingBox();
await page.mouse.move(plot.x + plot.width / 2, plot.y + 52);
expect('and alone', (await page.textContent('#timeline .hover')).startsWith('kernel_345<float, 2>(float*)launch12346'));
await type('50000');
expect(
  'one without a time',
  await page.textContent('#search-found .found'),
  'launch 50000not among the 20000 launches that this file has with their times',
);
await type('100001');
expect('one that never was', await page.textContent('#search-found'), 'Nothing has all of these words.');

// ---- what a frame draws depends on the figure's width, not on the number of launches ----
await type('launch 12346');
await page.click('#search-found .found');
await page.waitForTimeout(200);
// How many rectangles the next frame has after so many clicks on "wider".
const rectangles = (clicks) =>
  page.evaluate(async (times) => {
    const { prototype } = CanvasRenderingContext2D;
    const { fillRect } = prototype;
    let drawn = 0;
    prototype.fillRect = function counted(...where) {
      drawn++;
      return fillRect.apply(this, where);
    };
    for (let i = 0; i < times; i++) document.querySelector('#zoom-out').click();
    await new Promise(requestAnimationFrame);
    await new Promise(requestAnimationFrame);
    prototype.fillRect = fillRect;
    return drawn;
  }, clicks);
const [some, all] = [await rectangles(8), await rectangles(8)];
expect('some hundred launches, a rectangle each, drawn once', some > 200 && some < 400, true);
expect('20,000 launches as a few', all < 20, true);

// ---- the keyboard, and time ----
await type('kernel_5');
await page.keyboard.press('ArrowDown');
await page.keyboard.press('ArrowDown');
expect('the second', await page.evaluate(() => document.activeElement.textContent.slice(0, 9)), 'kernel_50');
await page.keyboard.press('ArrowUp');
await page.keyboard.press('ArrowUp');
expect('back in the field', await page.evaluate(() => document.activeElement.id), 'search');
await page.keyboard.press('Escape');
expect('closed', await page.isVisible('#search-found'), false);
const slowest = await page.evaluate(() => {
  const field = document.getElementById('search');
  let most = 0;
  for (const text of ['k', 'ke', 'app', 'app.cu:1', 'float', 'cuda']) {
    field.value = text;
    const before = performance.now();
    field.dispatchEvent(new Event('input'));
    most = Math.max(most, performance.now() - before);
  }
  return most;
});
expect(`a letter takes less than half a second on any machine (${Math.round(slowest)} ms)`, slowest < 500);
await page.selectOption('#manager', '1');
await type('other');
expect("another manager's", await found(), ['other']);
await type('kernel_1');
expect('and no more the first ones', await page.textContent('#search-found'), 'Nothing has all of these words.');
await type('7');
expect('a number without a history', await headings(), ['Allocations first 6 of 3439']);
expect('no lines, no section', await page.isVisible('#lines'), false);
await page.setViewportSize({ width: 400, height: 800 });
expect('the page is as wide as the window', await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth));
expect('hurt', await page.evaluate(() => window.hurt ?? 'not hurt'), 'not hurt');
expect('trouble', page.trouble, []);
await finish();
